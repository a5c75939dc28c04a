"""`critical_noise`: the noise beyond which more noise protects hardly anybody, by Moore's closed form and exactly.

c* = smallest c with G(c) - G(infinity) <= epsilon x targets, G by `agreement_curves`: sizes upwards until one is
enough, then bisection of log c. It answers the question of Moore (1996), section VII, without the Taylor series (own
derivation); knees of the curve are not looked for, since they depend on the window. Called by the steward, and by
`protect.kim_winkler`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import log
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import BadPlan
from ..notes import Note
from ..table import Table
from ..tolerances import is_real
from .agreement_chance import Sum
from .agreement_curves import (
    AgreementCurve,
    CurvePoint,
    agreement_words,
    check_sizes,
    curve_lines,
    curve_of,
    number_list,
    plain_floor,
    point_at,
    ratio_of,
)
from .closed_form import MooreNoise, moore_noise
from .comparison_setting import INFINITE, ComparisonSetting, make_situation

if TYPE_CHECKING:
    from ..attacks import Linkage
    from ..masking import Mask

LOWEST, HIGHEST = 1e-3, 1e6  # sd ratios that are tried
COARSE, FINE = 4, 24  # sizes tried in a decade, while agreement falls and where it does not
BEYOND = 3  # sizes tried beyond the critical one
PRECISION = 1e-4  # of the logarithm of the critical size
# At which the curve is shown
USUAL_R0 = (0.995, 0.99, 0.98, 0.97, 0.95, 0.9, 0.5, 0.1)

Agreeing = Callable[[float], Sum]
Trace = dict[float, Sum]


@dataclass(frozen=True, slots=True)
class CriticalNoise:
    """How much noise is enough: the sd ratio (Kim's c) beyond which more saves at most `epsilon` of the targets.

    `critical_sd_ratio` is the smallest c with G(c) - G(infinity) <= epsilon x targets, where G is the expected number
    of targets whose own record agrees; `at_critical` and `floor` are what that and unlimited noise leave. `moore` is
    the closed form of the literature, for comparison. `is_monotone` says whether G fell along all sizes tried.
    """

    attack: Linkage
    mask: Mask
    fields: tuple[str, ...]
    targets: int
    epsilon: float
    disagreeing: int
    critical_sd_ratio: float
    at_critical: CurvePoint | None
    floor: CurvePoint
    moore: MooreNoise
    curve: AgreementCurve
    is_monotone: bool
    notes: tuple[Note, ...] = ()

    @property
    def closed_form(self) -> dict[str, float]:
        """Moore's c of each number field (NaN: his formula says nothing)."""
        return {one.column: one.sd_ratio for one in self.moore.fields}

    @property
    def critical_r0(self) -> float:
        """R0 = 1 / (1 + c^2) of the critical noise."""
        return 1 / (1 + self.critical_sd_ratio**2)

    def to_dict(self) -> dict[str, Any]:
        """Return figures only: no record."""
        return {
            "attack": self.attack.to_dict(),
            "mask": type(self.mask).__name__,
            "fields": list(self.fields),
            "targets": self.targets,
            "epsilon": self.epsilon,
            "disagreeing": self.disagreeing,
            "critical_sd_ratio": self.critical_sd_ratio,
            "critical_r0": self.critical_r0,
            "floor": plain_floor(self.floor),
            "is_monotone": self.is_monotone,
            "moore": self.moore.to_dict(),
            "curve": self.curve.to_dict()["points"],
            "notes": [note.to_dict() for note in self.notes],
        }

    def __repr__(self) -> str:
        return "\n".join(self.lines())

    def lines(self) -> list[str]:
        """Return what fits on one screen."""
        words = agreement_words(self.fields, self.disagreeing)
        points = sorted(
            (*self.curve.points, *([self.at_critical] if self.at_critical else [])), key=lambda p: p.sd_ratio
        )
        return [
            f"CriticalNoise: {self.targets:,} targets, {type(self.mask).__name__}, {words}",
            f"  critical sd ratio {self.critical_sd_ratio:.4g} (R0 = {self.critical_r0:.4f}): beyond it more noise "
            f"makes at most {self.epsilon:.1%} of the targets disagree",
            f"  unlimited noise leaves {self.floor.agreeing:.1f} ({self.floor.share:.1%}) agreeing",
            "",
            *curve_lines((*points, self.floor)),
            f"  expected over all possible noise; numerical error of agreeing at most "
            f"{max(point.agreeing_error for point in (*points, self.floor)):.1g}",
            "",
            *self.moore.lines(),
            *(["", *(f"  - {note}" for note in self.notes)] if self.notes else []),
        ]


def critical_noise(
    table: Table,
    *,
    attack: Linkage | None = None,
    mask: Mask | None = None,
    epsilon: float = 0.01,
    disagreeing: int = 0,
    substantial_share: float = 0.5,
    sd_ratios: Sequence[float] | float | None = None,
) -> CriticalNoise:
    """Return how much noise is enough against an intruder who compares fields (by default `Linkage()`).

    `mask` is a CorrelatedNoise or an IndependentNoise with a variance_ratio (by default correlated noise on the
    number fields); its own size is not read. `disagreeing` fields may disagree. `sd_ratios` are the sizes at which
    the curve is shown.
    """
    if not (is_real(epsilon) and 0 < epsilon < 1):
        raise BadPlan(f"epsilon is a share of the targets between 0 and 1, such as 0.01, not {epsilon!r}")
    if not (is_real(substantial_share) and 0 <= substantial_share <= 1):
        raise BadPlan(
            f"substantial_share is a share of the records between 0 and 1, not {substantial_share!r}"
        )
    sizes = [ratio_of(r) for r in USUAL_R0] if sd_ratios is None else number_list("sd_ratios", sd_ratios)
    situation = make_situation(table, attack, mask)
    check_sizes(situation, sizes, disagreeing)
    curve = curve_of(situation, sizes, disagreeing)
    found = _find(situation, disagreeing, epsilon * len(situation.targets), curve.floor.agreeing)
    rules = situation.rules
    moore = moore_noise(
        table, situation.fields, rules, disagreeing=disagreeing, substantial_share=substantial_share
    )
    return CriticalNoise(
        attack=situation.attack,
        mask=situation.mask,
        fields=situation.fields,
        targets=len(situation.targets),
        epsilon=epsilon,
        disagreeing=disagreeing,
        critical_sd_ratio=found.sd_ratio,
        at_critical=point_at(situation, found.sd_ratio, disagreeing) if found.sd_ratio else None,
        floor=curve.floor,
        moore=moore,
        curve=curve,
        is_monotone=found.is_monotone,
        notes=(*curve.notes, *found.notes),
    )


@dataclass(frozen=True, slots=True)
class _Found:
    sd_ratio: float
    is_monotone: bool = True
    notes: tuple[Note, ...] = ()


def _find(situation: ComparisonSetting, disagreeing: int, tolerated: float, floor: float) -> _Found:
    """Search upwards for the first size that is enough; where agreement does not fall throughout, in small steps."""
    if not (situation.is_open.sum(axis=1) > disagreeing).any():
        return _Found(0.0, notes=(Note("calibration.no_open_values"),))

    def agreeing(size: float) -> Sum:
        return situation.agreeing(size, disagreeing)

    limit = floor + tolerated
    trace, enough = _climb(situation, agreeing, limit, COARSE)
    is_monotone = _falls(trace)
    notes: list[Note] = []
    if not is_monotone:
        trace, enough = _climb(situation, agreeing, limit, FINE)
        notes.append(Note("calibration.rising_agreement", {"steps": FINE}))
    if any(one.value - one.error > limit for size, one in trace.items() if size > enough):
        notes.append(Note("calibration.agreement_beyond"))
    below = max((size for size in trace if size < enough), default=None)
    if below is None:
        notes.append(Note("calibration.least_size", {"sd_ratio": enough, "units": enough != LOWEST}))
        return _Found(enough, is_monotone, tuple(notes))
    return _Found(_root(agreeing, limit, below, enough), is_monotone, tuple(notes))


def _climb(
    situation: ComparisonSetting, agreeing: Agreeing, limit: float, per_decade: int
) -> tuple[Trace, float]:
    """Try sizes upwards until one is enough, and some beyond it; return what was found and the first that is enough."""
    decades = np.log10(HIGHEST / LOWEST)
    sizes = LOWEST * 10 ** (np.arange(int(decades * per_decade) + 1) / per_decade)
    trace: Trace = {}
    enough, beyond = INFINITE, 0
    for size in map(float, sizes):
        if not _is_possible(situation, size):
            continue
        trace[size] = agreeing(size)
        if enough < INFINITE:
            beyond += 1
        elif trace[size].value <= limit:
            enough = size
        if beyond == BEYOND:
            break
    return trace, enough


def _is_possible(situation: ComparisonSetting, size: float) -> bool:
    """Return whether the mask can be so small: noise that is lost in the unit of a column is refused."""
    try:
        situation.law(size)
    except BadPlan:
        return False
    return True


def _falls(trace: Trace) -> bool:
    sums = list(trace.values())
    return all(after.value - before.value <= before.error + after.error for before, after in pairwise(sums))


def _root(agreeing: Agreeing, limit: float, below: float, enough: float) -> float:
    """Return where agreement crosses the limit between two sizes, by bisection of the logarithm's bracket."""
    from scipy.optimize import brentq

    def excess(log_size: float) -> float:
        return agreeing(float(np.exp(log_size))).value - limit

    if enough == INFINITE:
        raise BadPlan(f"no noise up to {HIGHEST:g} sds is enough: take a larger epsilon")
    return float(np.exp(brentq(excess, log(below), log(enough), xtol=PRECISION)))

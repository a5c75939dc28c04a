"""How many targets still agree with their own records, and how many correct links that makes, along the noise.

G(c) = sum over targets of P(own record agrees on all fields but so many); correct(c) = sum of P x E 1 / (1 + K), K the
others that agree as well (`full_agreement`): the curve of table 4 of Moore (1996), in expectation over the noise (own
derivation). Called by `agreement_curve`, and by `critical_noise_search` for what it prints.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from math import isinf, sqrt
from typing import TYPE_CHECKING, Any

from ..errors import BadPlan
from ..notes import Note
from ..table import Table
from ..tolerances import is_real
from .comparison_setting import INFINITE, ComparisonSetting, make_situation
from .full_agreement import MOST_PAIRS

if TYPE_CHECKING:
    import pyarrow as pa

    from ..attacks import Linkage
    from ..masking import Mask

FINE_R0 = tuple(round(1 - step / 1000, 3) for step in range(1, 26))  # Moore's future research 2
TOO_MANY_PAIRS = Note("calibration.too_many_pairs", {"most": MOST_PAIRS})


@dataclass(frozen=True, slots=True)
class CurvePoint:
    """What one size of the noise leaves: expectations over all possible noise, with their numerical errors.

    `agreeing` is G, the targets whose own record agrees; `share` that of the targets; `correct` the correct links of
    an intruder who claims full agreements, ties shared (nothing where a field may disagree).
    """

    sd_ratio: float
    r0: float
    agreeing: float
    agreeing_error: float
    share: float
    correct: float | None
    correct_error: float | None


@dataclass(frozen=True, slots=True)
class AgreementCurve:
    """Agreement along the noise, and what no noise takes away (`floor`)."""

    targets: int
    fields: tuple[str, ...]
    disagreeing: int
    points: tuple[CurvePoint, ...]
    floor: CurvePoint
    notes: tuple[Note, ...] = ()

    @property
    def table(self) -> pa.Table:
        """One row for each size of the noise."""
        import pyarrow as pa

        return pa.Table.from_pylist([asdict(point) for point in self.points])

    def to_dict(self) -> dict[str, Any]:
        """Return figures only."""
        return {
            "targets": self.targets,
            "fields": list(self.fields),
            "disagreeing": self.disagreeing,
            "points": [asdict(point) for point in self.points],
            "floor": plain_floor(self.floor),
            "notes": [note.to_dict() for note in self.notes],
        }

    def __repr__(self) -> str:
        head = f"AgreementCurve: {self.targets:,} targets, {agreement_words(self.fields, self.disagreeing)}"
        notes = ["", *(f"  - {note}" for note in self.notes)] if self.notes else []
        return "\n".join([head, *curve_lines((*self.points, self.floor)), *notes])


def plain_floor(point: CurvePoint) -> dict[str, Any]:
    """Return the figures of infinite noise, which has no size to be written."""
    return {name: value for name, value in asdict(point).items() if name not in ("sd_ratio", "r0")}


def agreement_words(fields: tuple[str, ...], disagreeing: int) -> str:
    """Say on how many fields a record must agree."""
    n = len(fields)
    return (
        f"agreement on all {n} fields" if not disagreeing else f"agreement on {n - disagreeing} of {n} fields"
    )


def curve_lines(points: Sequence[CurvePoint]) -> list[str]:
    """Return one line for each size of the noise."""
    lines = [f"  {'sd ratio':>9}{'R0':>8}{'agreeing':>11}{'share':>8}{'correct links':>15}"]
    for point in points:
        ratio = "no limit" if isinf(point.sd_ratio) else f"{point.sd_ratio:.4f}"
        correct = "" if point.correct is None else f"{point.correct:.1f}"
        lines.append(
            f"  {ratio:>9}{point.r0:>8.3f}{point.agreeing:>11.1f}{point.share:>8.1%}{correct:>15}".rstrip()
        )
    return lines


def agreement_curve(
    table: Table,
    *,
    attack: Linkage | None = None,
    mask: Mask | None = None,
    disagreeing: int = 0,
    sd_ratios: Sequence[float] | float | None = None,
    r0: Sequence[float] | float | None = None,
) -> AgreementCurve:
    """Return G and the predicted correct links at some sizes of the noise, exact but for a stated numerical error.

    Sizes are `sd_ratios` (Kim's c) or `r0`; by default R0 from .999 to .975 in steps of .001. The size that `mask`
    itself has is not read.
    """
    if sd_ratios is not None and r0 is not None:
        raise BadPlan("give sd_ratios or r0, not both")
    factors = FINE_R0 if r0 is None else number_list("r0", r0)
    sizes = [ratio_of(r) for r in factors] if sd_ratios is None else number_list("sd_ratios", sd_ratios)
    situation = make_situation(table, attack, mask)
    check_sizes(situation, sizes, disagreeing)
    return curve_of(situation, sizes, disagreeing)


def number_list(name: str, values: Any) -> list[float]:
    """Return one number or several as a list, refusing what is no number."""
    try:
        found: list[float] = [values] if is_real(values) else list(values)
    except TypeError:
        found = []
    if not found or not all(map(is_real, found)):
        raise BadPlan(f"{name} must be at least one number, such as 0.1 or [0.1, 0.2], not {values!r}")
    return found


def ratio_of(r0: float) -> float:
    """Return Kim's c of a non-distortion factor R0 = 1 / (1 + c^2)."""
    if not (is_real(r0) and 0 < r0 < 1):
        raise BadPlan(f"r0 must lie between 0 and 1, not {r0!r}")
    return sqrt((1 - r0) / r0)


def check_sizes(situation: ComparisonSetting, sizes: Sequence[float], disagreeing: int) -> None:
    """Refuse sizes that are none, and more disagreements than there are fields."""
    wrong = [size for size in sizes if not 0 < size < INFINITE]
    if wrong:
        raise BadPlan(f"sd_ratios must be positive numbers below {INFINITE:g}, not {wrong[0]!r}")
    count = len(situation.fields)
    if not isinstance(disagreeing, int) or isinstance(disagreeing, bool) or not 0 <= disagreeing < count:
        raise BadPlan(f"disagreeing must be a whole number from 0 to {count - 1}: there are {count} fields")


def curve_of(situation: ComparisonSetting, sizes: Sequence[float], disagreeing: int) -> AgreementCurve:
    """Return the curve of a situation."""
    points = tuple(point_at(situation, size, disagreeing) for size in sizes)
    return AgreementCurve(
        targets=len(situation.targets),
        fields=situation.fields,
        disagreeing=disagreeing,
        points=points,
        floor=floor_of(situation, disagreeing),
        notes=notes_of(situation, disagreeing),
    )


def notes_of(situation: ComparisonSetting, disagreeing: int) -> tuple[Note, ...]:
    """Return what a steward should know about the figures."""
    crowded = () if disagreeing or situation.pairs is not None else (TOO_MANY_PAIRS,)
    return (*situation.notes, *crowded)


def floor_of(situation: ComparisonSetting, disagreeing: int) -> CurvePoint:
    """Return what is left as the noise grows without limit."""
    return point_at(situation, INFINITE, disagreeing, named=float("inf"))


def point_at(
    situation: ComparisonSetting, sd_ratio: float, disagreeing: int, *, named: float | None = None
) -> CurvePoint:
    """Return what one size of the noise leaves."""
    from .agreement_chance import Sum

    chances = situation.chances(sd_ratio, disagreeing)
    agreeing = Sum.of(chances)
    correct = None if disagreeing else situation.correct(sd_ratio, chances)
    return CurvePoint(
        sd_ratio=sd_ratio if named is None else named,
        r0=1 / (1 + sd_ratio**2) if named is None else 0.0,
        agreeing=agreeing.value,
        agreeing_error=agreeing.error,
        share=agreeing.value / len(situation.targets),
        correct=None if correct is None else correct.value,
        correct_error=None if correct is None else correct.error,
    )

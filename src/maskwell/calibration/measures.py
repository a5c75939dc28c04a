"""What a tolerance looks at: one figure of an attack on a release, for all its targets or for the most outlying tenth.

Correct / targets; correct / incorrect (Moore 1996, conjecture 6: 2 to 1); Pr(h < p) and mean h (Goldstein and Shlomo,
section 2, (2)). Every figure is a ratio of two numbers that are averaged over the noise (a rate has the denominator 1),
so that one linear form, numerator - limit x denominator, says for all of them by how much a release exceeds the
tolerance. Chosen by the tolerance of a plan (`measure_of`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ..arrow_buffers import to_numpy
from ..attacks import Risk
from ..attacks.protocol import Ints
from ..errors import BadPlan
from ..table import Floats, Table
from ..tolerances import ExpectedH, MaxRate, ProbH, Ratio
from ..words.calibration import measured_error, measured_figure
from .estimates import Ends, Estimate, Pair, ends_of_mean, ends_of_ratio, ends_of_share
from .outlier_share import worst_tenth

if TYPE_CHECKING:
    from ..tolerances import Tolerance

ALL, OUTLYING = "all", "outlying"
OVER = (ALL, OUTLYING)


@dataclass(frozen=True, slots=True)
class MeasureCounts:
    """What an attack found among some targets: links that are right and wrong (ties shared), and the h it has."""

    targets: int
    correct: float
    incorrect: float
    h: Ints | None

    @property
    def at_zero(self) -> float:
        """Pr(h = 0), NaN where no h is measured."""
        return float((self.h == 0).mean()) if self.h is not None and len(self.h) else float("nan")


def count_links(
    risk: Risk, truth: Table, over: str = ALL, outlying_by: Sequence[str] | None = None
) -> MeasureCounts:
    """Count an attack's links, over all targets or over the tenth of them that lies farthest out.

    An attack that measures no h does not say how far out that is: then it is by the true values of `outlying_by`, or
    of the key columns that are numbers.
    """
    if over == ALL:
        known = None if risk.h is None else risk.h.known
        return MeasureCounts(risk.targets, risk.expected_correct, risk.expected_incorrect, known)
    worst = worst_tenth(risk, truth, outlying_by)
    claimed = worst & np.asarray(to_numpy(_column(risk, "claimed")), dtype=bool)
    correct = float(np.asarray(to_numpy(_column(risk, "expected_correct")))[claimed].sum())
    h = None if risk.h is None else risk.h.values[worst]
    return MeasureCounts(
        int(worst.sum()), correct, float(claimed.sum()) - correct, None if h is None else h[h >= 0]
    )


def _column(risk: Risk, name: str) -> Any:
    return risk.table[name].combine_chunks()


@dataclass(frozen=True, slots=True)
class Measure:
    """A figure and its limit: `parts` gives numerator and denominator, `at_least` says that more is safer.

    `ends` says how sure a figure can be at most, given how many targets it is about (see `estimates`).
    """

    name: str
    limit: float
    parts: Callable[[MeasureCounts], tuple[float, float]]
    at_least: bool = False
    is_share: bool = True
    needs_h: bool = False
    ends: Ends = ends_of_share

    def excess(self, numerator: Floats, denominator: Floats) -> Floats:
        """Return by how much the tolerance is exceeded (positive: not met)."""
        over = numerator - self.limit * denominator
        return -over if self.at_least else over

    def judged(self, found: MeasureCounts) -> int:
        """Return how many targets the figure is about."""
        return len(_known_h(found)) if self.needs_h else found.targets

    def unsafe_end(self, top: float, bottom: float, judged: float, level: float) -> Pair:
        """Return how far on the unsafe side the pooled count lets the figure lie, but for a chance of `level`."""
        low, high = self.ends(top, bottom, judged, level)
        return low if self.at_least else high

    def estimate(self, numerators: Floats, denominators: Floats, judged: Floats) -> Estimate:
        """Estimate the figure from its parts in each draw, no surer than the pooled count allows."""
        top, bottom = float(np.mean(numerators)), float(np.mean(denominators))
        ends = self.ends(top, bottom, float(np.sum(judged)), 0.025)
        return Estimate.of(numerators, denominators).widened(ends, 1.0 if self.is_share else np.inf)

    def shown(self, figure: float) -> str:
        """Return a figure as text."""
        return measured_figure(figure, self.is_share)

    def shown_error(self, se: float) -> str:
        """Return a standard error as text."""
        return measured_error(se, self.is_share)


def rate_measure(limit: float = np.inf) -> Measure:
    """Return the share of the targets that are linked correctly."""
    return Measure("rate of correct links", limit, lambda found: (found.correct / found.targets, 1.0))


def measure_of(tolerance: Tolerance) -> Measure:
    """Return what a tolerance looks at."""
    match tolerance:
        case MaxRate():
            return rate_measure(tolerance.max_rate)
        case Ratio():
            name = "correct links to one incorrect"
            return Measure(name, tolerance.max_ratio, _right_and_wrong, is_share=False, ends=ends_of_ratio)
        case ExpectedH():
            return mean_h_measure(tolerance.at_least)
        case ProbH():
            return below_measure(tolerance.below, tolerance.at_most)
    raise BadPlan(
        f"a tolerance is MaxRate(0.15), Ratio(2), ExpectedH(3) or ProbH(below=3, at_most=0.1), not {tolerance!r}"
    )


def mean_h_measure(limit: float = 0.0) -> Measure:
    """Return the mean of h."""
    return Measure("mean h", limit, _mean_h, at_least=True, is_share=False, needs_h=True, ends=ends_of_mean)


def below_measure(below: int, limit: float = np.inf) -> Measure:
    """Return the share of the targets whose h is below a number."""
    return Measure(f"Pr(h < {below})", limit, lambda found: _below(found, below), needs_h=True)


def _right_and_wrong(found: MeasureCounts) -> tuple[float, float]:
    return found.correct / found.targets, found.incorrect / found.targets


def _mean_h(found: MeasureCounts) -> tuple[float, float]:
    return float(_known_h(found).mean()), 1.0


def _below(found: MeasureCounts, count: int) -> tuple[float, float]:
    return float((_known_h(found) < count).mean()), 1.0


def _known_h(found: MeasureCounts) -> Ints:
    if found.h is None or not len(found.h):
        raise BadPlan(
            "no target has an h, so that nothing can be said about it: give an attack that links, or a rate"
        )
    return found.h


def check_has_h(name: str, risk: Risk, measure: Measure) -> None:
    """Refuse a tolerance on h for an attack that has none."""
    if measure.needs_h and risk.h is None:
        raise BadPlan(
            f"{name} measures no h, which the tolerance is about: attack by the nearest-record intruder, or tolerate a "
            "MaxRate"
        )

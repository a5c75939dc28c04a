"""Means over draws of the noise, how sure they are, and what can be said where all draws came out alike.

Student's interval takes the draws as they scatter. Where few targets are judged, or hardly any is found, draws often
come out alike by chance, and their scatter says nothing. So no interval is narrower than what the pooled count allows
(all targets of all draws): for shares that of Clopper and Pearson (1934), exact for targets that are found
independently of each other and on the safe side where some are found more easily than others. Where targets are found
together, draws scatter more than the count says, which Student's interval sees only with enough draws: with ten draws
or so the level is then not kept. Ratios of means have their error by the residuals (Cochran 1977, section 6.3). Used
by every figure of `measures`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import inf, isfinite, nan, sqrt

import numpy as np

from ..table import Floats

Pair = tuple[float, float]
Ends = Callable[[float, float, float, float], tuple[Pair, Pair]]


def quantile(probability: float, replicates: int) -> float:
    """Return Student's quantile for a mean of so many draws."""
    from scipy.special import stdtrit

    return float(stdtrit(replicates - 1, probability))


def share_above(count: float, judged: float, level: float) -> float:
    """Return what a share lies below, but for a chance of `level`, where `count` of so many were found."""
    from scipy.special import betaincinv

    return 1.0 if count >= judged else float(betaincinv(count + 1.0, judged - count, 1 - level))


def share_below(count: float, judged: float, level: float) -> float:
    """Return what a share lies above, but for a chance of `level`, where `count` of so many were found."""
    return 1 - share_above(judged - count, judged, level)


def ends_of_share(top: float, bottom: float, judged: float, level: float) -> tuple[Pair, Pair]:
    """Return both ends for a share of the targets, each at this level."""
    count = top * judged
    return (share_below(count, judged, level), 1.0), (share_above(count, judged, level), 1.0)


def ends_of_ratio(top: float, bottom: float, judged: float, level: float) -> tuple[Pair, Pair]:
    """Return both ends for correct to incorrect links: those of the share of the claimed links that is correct.

    Who claims nothing has no ratio: it is taken as 0, as for a release.
    """
    claimed = top + bottom
    (low, _), (high, _) = ends_of_share(top / claimed if claimed else 0.0, 1.0, judged * claimed, level)
    return (low * claimed, (1 - low) * claimed), (high * claimed, (1 - high) * claimed)


def ends_of_mean(top: float, bottom: float, judged: float, level: float) -> tuple[Pair, Pair]:
    """Return both ends for a mean of counts: there may be targets of a kind that no draw has shown.

    Of all, a share of up to 1 - level^(1 / judged) can be so without showing among so many: their count is taken as 0
    for the lower end, which is exact where all counts seen are alike, and as one more for the upper.
    """
    unseen = share_above(0.0, judged, level)
    return (top * (1 - unseen), 1.0), (top + unseen, 1.0)


def figure_of(top: float, bottom: float) -> float:
    """Return a ratio: of nothing to nothing it is 0, of something to nothing infinite."""
    return top / bottom if bottom else inf if top else 0.0


@dataclass(frozen=True, slots=True)
class Estimate:
    """A mean over draws of the noise, its Monte Carlo standard error, and its 95% interval."""

    mean: float
    se: float
    low: float
    high: float

    @classmethod
    def of(cls, numerators: Floats, denominators: Floats | float = 1.0) -> Estimate:
        """Estimate a ratio of means; the error is that of the residuals, over the mean denominator."""
        bottom, count = float(np.mean(denominators)), len(numerators)
        if bottom == 0:
            top = float(np.mean(numerators))
            return cls(inf if top > 0 else 0.0, nan if top > 0 else 0.0, 0.0, inf if top > 0 else 0.0)
        mean = float(np.mean(numerators)) / bottom
        residuals = numerators - mean * denominators
        se = float(np.std(residuals, ddof=1)) / sqrt(count) / bottom
        half = quantile(0.975, count) * se
        return cls(mean, se, mean - half, mean + half)

    def widened(self, ends: tuple[Pair, Pair], most: float = inf) -> Estimate:
        """Return the estimate with an interval that has these ends in it, from 0 to `most`."""
        low, high = (figure_of(*end) for end in ends)
        return Estimate(self.mean, self.se, max(min(self.low, low), 0.0), min(max(self.high, high), most))

    def to_dict(self) -> dict[str, float | None]:
        """Return the figures; what is not finite as nothing."""
        values = {"mean": self.mean, "se": self.se, "low": self.low, "high": self.high}
        return {name: value if isfinite(value) else None for name, value in values.items()}

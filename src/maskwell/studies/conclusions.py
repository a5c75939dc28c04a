"""What simulated files allow to conclude: a statement holds, does not hold, or there are too few files to say."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import inf, isfinite, log, sqrt

from ..table import Floats

HOLDS, FAILS, UNDECIDED = "It holds here", "It does not hold here", "Too few files to say"
CHANCE = 0.05  # intervals are of 95%
FEWEST = 6  # of fewer files not even unanimous ones are unlikely enough: 2 / 2^5 is above 0.05
EXPLAINED = (
    f"±: half of a 95% interval by the spread between files (fewer than {FEWEST} have none). A statement holds where "
    "the intervals of all its figures lie within the margin, does not hold where one lies outside it (at 5% for "
    "all together), and else there are too few files to say. Margins are ours, not the paper's"
)


@dataclass(frozen=True, slots=True)
class StudyEstimate:
    """A mean over simulated files with its Monte Carlo standard error; `step` is what one target in all is worth."""

    mean: float
    error: float
    files: int
    step: float = 0.0

    def half(self, chance: float = CHANCE) -> float:
        """Return half of the interval that misses the truth with a chance.

        By Student's t, and at least by the rule of three: targets that are all alike do not show that others are.
        """
        from scipy.special import stdtrit

        if self.files < FEWEST:
            return inf
        return max(float(stdtrit(self.files - 1, 1 - chance / 2)) * self.error, -log(chance / 2) * self.step)

    def low(self, chance: float = CHANCE) -> float:
        """Return the lower end of the interval."""
        return self.mean - self.half(chance)

    def high(self, chance: float = CHANCE) -> float:
        """Return the upper end of the interval."""
        return self.mean + self.half(chance)

    def text(self, digits: int = 2, sign: str = "") -> str:
        """Return the mean, and half of its interval where there is one."""
        mean = f"{round(self.mean, digits) + 0.0:{sign}.{digits}f}"  # no -0.0
        return f"{mean} ± {self.half():.{digits}f}" if isfinite(self.half()) else mean


def estimate(values: Floats, whole: float = 1.0) -> StudyEstimate:
    """Estimate a mean from files x targets (or one target for each file) that give at most `whole`.

    Targets of one file may be alike, so that the error is that of the means of the files.
    """
    means = values.reshape(len(values), -1).mean(axis=1)
    error = float(means.std(ddof=1)) / sqrt(len(means)) if len(means) > 1 else inf
    return StudyEstimate(float(means.mean()), error, len(means), whole / values.size)


def apart(one: Floats, other: Floats) -> StudyEstimate:
    """Estimate the difference of two means that are not of the same files, so that it cannot be taken file by file."""
    first, second = estimate(one), estimate(other)
    error = sqrt(first.error**2 + second.error**2)
    return StudyEstimate(first.mean - second.mean, error, min(first.files, second.files))


def judge_margin(estimates: Iterable[StudyEstimate], low: float = -inf, high: float = inf) -> str:
    """Judge whether all figures lie within a margin.

    Each must be seen to lie within it. One that is outside suffices against it; since any of them may be that one by
    chance, its interval is made wider by their number.
    """
    several = list(estimates)
    chance = CHANCE / len(several)
    if any(one.high(chance) < low or one.low(chance) > high for one in several):
        return FAILS
    return HOLDS if all(low < one.low() and one.high() < high for one in several) else UNDECIDED


def together(outcomes: Iterable[str]) -> str:
    """Return the outcome of several statements together: one that does not hold suffices against them."""
    several = set(outcomes)
    return next((one for one in (FAILS, UNDECIDED) if one in several), HOLDS)


def verdict(statement: str, outcome: str, found: str, who: str = "the paper") -> str:
    """Say what is stated, whether it holds, and by which figures."""
    return f"{who}: {statement}. {outcome}: {found}."


def listing(estimates: Iterable[StudyEstimate], digits: int = 2, sign: str = "") -> str:
    """Return several figures with their intervals."""
    return ", ".join(one.text(digits, sign) for one in estimates)

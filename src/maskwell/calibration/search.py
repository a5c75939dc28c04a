"""The search for the weakest scale that meets a tolerance: bisection of its logarithm, or a grid where it is not safe.

Bisection needs a risk that falls as the scale grows. That is checked on all that was tried: the same draws serve every
scale, so that a rise shows in paired differences beyond their Monte Carlo error (Student's t for paired differences,
Bonferroni over pairs; own derivation). Used by `calibrate`, `columns` and `bounded_noise`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import combinations
from math import inf, log, sqrt
from typing import Any

import numpy as np

from ..errors import BadPlan
from ..notes import Note
from .estimates import quantile
from .trials import Bench, Trial

SEARCH = "search"
FARTHEST = 2.0**10  # how far from the given scale it is looked, both ways
STRIDE = 2.0  # factor between scales until one fails and one meets
BEYOND = 3  # scales tried beyond the one found, a stride apart
HARDLY = 1 / 3  # of what is tolerated: a rise from there has far to go
CERTAINTY = 0.01  # the chance that some rise is seen where there is none
NEGLIGIBLE = 1e-12  # rounding
MOST_IN_GRID = 24  # scales of a grid
FINEST_IN_GRID = 2.0**0.25  # factor between scales of a grid


@dataclass
class Scales:
    """Scales that were tried on the draws of the search. Scales that the plan refuses have no trial.

    Neither have those whose draws would take more than may be computed, which `allows` tells: they are `too_dear`.

    `known` are all trials on these draws: plans that are rounded to the same figures are tried once.
    """

    bench: Bench
    mask_at: Callable[[float], Any]
    replicates: int
    is_met: Callable[[Trial], bool]
    round: str = SEARCH
    largest: float = inf
    tried: dict[float, Trial | None] = field(default_factory=dict)
    known: list[Trial] = field(default_factory=list)
    allows: Callable[[Any], bool] | None = None
    too_dear: list[float] = field(default_factory=list)

    def at(self, factor: float) -> Trial | None:
        """Return the trial of a scale, or nothing where the plan refuses it (lost in a unit, or too large)."""
        if factor not in self.tried:
            self.tried[factor] = self._trial(factor)
        return self.tried[factor]

    def _trial(self, factor: float) -> Trial | None:
        try:
            mask = self.mask_at(factor)
            self.bench.resolved(mask)
        except BadPlan:
            return None
        if self.allows is not None and not self.allows(mask):
            self.too_dear.append(factor)
            return None
        same = next((trial for trial in self.known if trial.mask == mask), None)
        if same is not None:
            return same
        self.known.append(self.bench.run(mask, factor, self.round, self.replicates, keys_of=SEARCH))
        return self.known[-1]

    def meets(self, factor: float) -> bool:
        """Return whether a scale meets the tolerance; a refused one does not."""
        trial = self.at(factor)
        return trial is not None and self.is_met(trial)

    @property
    def trials(self) -> list[Trial]:
        """The trials there were, weakest scale first, each once."""
        once = {id(trial): trial for trial in self.tried.values() if trial is not None}
        return sorted(once.values(), key=lambda trial: trial.factor)

    def still_falls(self) -> bool:
        """Whether the risk fell from the last scale but one to the largest, beyond Monte Carlo error."""
        last = self.trials[-2:]
        return len(last) == 2 and _is_riskier(last[0], last[1], CERTAINTY)

    def has_fallen(self) -> bool:
        """Whether the risk fell at all from the smallest to the largest scale, beyond Monte Carlo error."""
        ends = self.trials[0], self.trials[-1]
        return ends[0] is not ends[1] and _is_riskier(ends[0], ends[1], CERTAINTY)


@dataclass(frozen=True)
class SearchResult:
    """The weakest scale that meets the tolerance (nothing where none does), and how it was found."""

    trial: Trial | None
    is_monotone: bool
    notes: tuple[Note, ...] = ()


def find_weakest(scales: Scales, precision: float, start: float = 1.0) -> SearchResult:
    """Search from a scale both ways; look beyond what is found; where the risk does not fall throughout, by a grid."""
    start = min(start, scales.largest)
    fails, meets = bracket(scales, start)
    if meets is not None:
        meets = bisect(scales, fails, meets, precision) if fails is not None else meets
        _look_beyond(scales, meets)
    rises = _rises(scales.trials)
    if rises is not None:
        return _by_grid(scales, precision, rises)
    if meets is None:
        return SearchResult(None, True)
    return SearchResult(scales.at(meets), True, _least_notes(scales, fails, meets))


def bracket(scales: Scales, start: float) -> tuple[float | None, float | None]:
    """Return a scale that fails and a larger one that meets, a stride apart, or nothing where there is none."""
    at = start
    if scales.meets(at):
        while at > start / FARTHEST:
            if not scales.meets(at / STRIDE):
                return at / STRIDE, at
            at /= STRIDE
        return None, at
    most, stride = min(start * FARTHEST, scales.largest), STRIDE
    while at < most and stride > 1.05:
        tried = min(at * stride, most)
        if scales.meets(tried):
            return at, tried
        if scales.at(tried) is None:
            stride = sqrt(stride)  # too much for the plan: less far
        else:
            at = tried
    return at, None


def bisect(scales: Scales, fails: float, meets: float, precision: float) -> float:
    """Halve the logarithm of the bracket until it is as narrow as the precision says; return its upper end."""
    while log(meets / fails) > log(1 + precision):
        middle = sqrt(fails * meets)
        if scales.meets(middle):
            meets = middle
        else:
            fails = middle
    return meets


def _look_beyond(scales: Scales, meets: float) -> None:
    """Try scales beyond the one found, up to where next to nothing of what is tolerated is left."""
    for i in range(1, BEYOND + 1):
        if meets * STRIDE**i > scales.largest:
            return
        trial = scales.at(meets * STRIDE**i)
        if trial is not None and trial.is_far_within(HARDLY):
            return


def _rises(trials: list[Trial]) -> tuple[Trial, Trial] | None:
    """Return two scales of which the larger one is riskier beyond Monte Carlo error, if there are such."""
    pairs = list(combinations(trials, 2))
    risky = (pair for pair in pairs if _is_riskier(pair[1], pair[0], CERTAINTY / len(pairs)))
    return next(risky, None)


def _is_riskier(one: Trial, other: Trial, level: float) -> bool:
    """Whether one scale exceeds the tolerance by more than another on the same draws, at a level."""
    difference = one.excess - other.excess
    se = float(difference.std(ddof=1)) / sqrt(len(difference))
    return float(difference.mean()) > quantile(1 - level, len(difference)) * se + NEGLIGIBLE


def _by_grid(scales: Scales, precision: float, rises: tuple[Trial, Trial]) -> SearchResult:
    """Try a grid over all scales between those tried; return the weakest from which on all larger ones meet."""
    ends = scales.trials[0].factor, _end_of_grid(scales)
    count = min(int(np.ceil(np.log(ends[1] / ends[0]) / np.log(FINEST_IN_GRID))) + 1, MOST_IN_GRID)
    for factor in np.geomspace(*ends, max(count, 2)):
        scales.at(float(factor))
    ordered = scales.trials
    meets = None
    for trial in reversed(ordered):
        if not scales.is_met(trial):
            break
        meets = trial
    figures = {
        "means": tuple(trial.figure.mean for trial in rises),
        "factors": tuple(trial.factor for trial in rises),
        "is_share": rises[0].measure.is_share,
        "scales": len(ordered),
    }
    note = Note("calibration.rising_risk", figures)
    if meets is None:
        return SearchResult(None, False, (note,))
    below = [trial.factor for trial in ordered if trial.factor < meets.factor]
    if below:
        meets = scales.at(bisect(scales, below[-1], meets.factor, precision))
    return SearchResult(meets, False, (note,))


def _end_of_grid(scales: Scales) -> float:
    """Return a scale up to which to look: the largest tried, or larger where that one fails."""
    end = scales.trials[-1].factor
    most = min(end * FARTHEST, scales.largest)
    while end * STRIDE <= most and not scales.meets(end) and scales.at(end) is not None:
        end *= STRIDE
    return scales.trials[-1].factor


def _least_notes(scales: Scales, fails: float | None, meets: float) -> tuple[Note, ...]:
    """Say where less noise was not tried, or is refused by the plan."""
    if fails is None:
        return (Note("calibration.least_tried", {"factor": meets}),)
    weakest = min(scales.trials, key=lambda trial: trial.factor)
    too_dear = [factor for factor in scales.too_dear if factor < meets]
    if scales.is_met(weakest) and too_dear:
        return (Note("calibration.least_in_budget", {"factor": max(too_dear)}),)
    if scales.is_met(weakest):
        return (Note("calibration.least_allowed"),)
    return ()

"""The best candidates and all posterior weights without looking at every pair, for normal noise of one covariance.

In coordinates in which the noise has variance 1 and is independent, log f(z|x) is a constant less |z - x|^2 / 2.
What is left out is bounded, not guessed (`kernels.gaussian_sums`; compare Gray and Moore 2000). Let a weight be
s / (1 - s), s = exp(-|z - x|^2 / 2) / S, S the sum over the true records. S lacks at most a share d of S without its
largest term, so 1 - s is right within a factor 1 + d and the weight too; of the sum of weights at most a share e is
left out. A posterior, weight / (sum + anything), is then right within a factor (1 + d)(1 + e): `neglected` is that
factor less 1 (own derivation). Rounding comes on top: where s comes within SURE of 1, 1 - s is known to five or six
digits, as it is when all pairs are looked at.

Scores are too high by at most log(1 + d). Links, seconds and ties are still those of comparing all pairs: where that
leaves open who is first or second, the sums concerned are made whole, and only these. Used by `scores`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ....errors import BadPlan
from ....table import Floats
from ...candidate_scores import SAME_SCORE
from ...protocol import NOBODY, Bools, Ints
from ..posterior_odds import SURE
from .trees import Points, Trees, TreeSums

LARGEST_EPS = 0.1  # of the mass neglected: beyond, a posterior would say little
WHOLE = 1e-15  # what a sum may lack that is taken for whole


@dataclass(frozen=True, slots=True)
class PrunedBest:
    """What `BestCandidates` has, the log weight of the best as it is part of the total, and `neglected`.

    Every posterior is right within a factor of 1 + neglected.
    """

    score: Floats
    ties: Ints
    place: Ints
    second_score: Floats
    second: Ints
    log_total: Floats
    log_weight: Floats
    neglected: Floats


@dataclass(frozen=True, slots=True)
class PrunedSearch:
    """Searchers and candidates, score = offset - |candidate - searcher|^2 / 2; without an offset, nobody's.

    Where f(z) is an average over records, `true` has these, offsets are - log f(z) (without the constant of the normal
    density), too high by at most `unsure`, and are made whole in place where they must be. `units` has N for each
    candidate. Weights are exponentials of scores, or leave the searcher out of f(z) as `against_others` does.
    """

    searchers: Points
    candidates: Points
    offset: Floats
    eps: float
    trees: Trees
    possible: Ints
    units: Floats
    leaves_out: bool = False
    true: Trees | None = None
    unsure: float = 0.0

    @classmethod
    def coherent(
        cls, known: Points, true: Points, released: Points, units: Ints, eps: float, *, averaged: bool = True
    ) -> PrunedSearch:
        """Prepare scores log f(z|x) - log f(z), f(z) the mean over the true records of the block: of N `units`.

        `averaged`: the known records are among the true ones, and left out of f(z) in the weights.
        """
        from ....kernels.gaussian_leaves import Rules

        _check(eps)
        trees, count = Trees.of(true, np.zeros(len(true.values))), np.maximum(units, 1).astype(np.float64)
        sums = trees.weigh(released, Rules(_half(eps), averaged, False, False, 0.0))
        offset, unsure = np.log(count) - sums.log_sum, float(sums.lacking.max(initial=0.0))
        offset = np.where(np.isfinite(offset), offset, -np.inf)
        possible, grown = _trees_of_possible(released, offset - np.log(count) if averaged else offset)
        return cls(known, released, offset, eps, grown, possible, count, averaged, trees, unsure)

    @classmethod
    def given(cls, searchers: Points, candidates: Points, offset: Floats, eps: float) -> PrunedSearch:
        """Prepare scores of given offsets, whose exponentials are the weights."""
        _check(eps)
        possible, grown = _trees_of_possible(candidates, offset)
        return cls(searchers, candidates, offset, eps, grown, possible, np.ones(len(offset)))

    @property
    def log_f(self) -> Floats:
        """log f(z) of each candidate, without the constant; minus infinity where nobody leads to it."""
        return np.where(np.isfinite(self.offset), -self.offset, -np.inf)

    def best(self) -> PrunedBest:
        """Find for every searcher its best candidate, ties, the second, and the sum of all weights."""
        sums = self._weighed(self.searchers, self.unsure)
        self._make_whole(np.flatnonzero(_is_open(sums.costs, self.unsure + self._tolerance(sums))), sums)
        place, second, ties = self._ranked(sums)
        score, second_score = self._scores(place), self._scores(second)
        log_weight, neglected = self.log_weights(place), (1 + self.unsure) * (1 + sums.lacking) - 1
        total = sums.log_sum + self._rest(place)
        return PrunedBest(score, ties, place, second_score, second, total, log_weight, neglected)

    def _rest(self, place: Ints) -> Floats | float:
        """Return the log of how many others f(z) is averaged over, in the blocks of some candidates."""
        return (
            np.log(np.maximum(self.units[place] - 1.0, SURE)) if self.leaves_out and len(self.units) else 0.0
        )

    def log_weights(self, place: Ints) -> Floats:
        """Return the log weight of every searcher's candidate (-1: none), rounded as in the sum of all."""
        return np.asarray(self._log_weight(place) + self._rest(place))

    def make_whole(self) -> None:
        """Make the sums of all candidates whole, so that no offset is unsure."""
        if self.true is not None and self.unsure:
            self._make_sums_whole(self.true, self.possible)

    def _log_weight(self, place: Ints) -> Floats:
        if not self.leaves_out:
            return self._scores(place)
        rows, share = np.flatnonzero(place >= 0), np.full(len(place), -np.inf)
        share[rows] = self._squared(rows, place[rows], self.offset - np.log(self.units))
        return np.asarray(share - np.log(np.maximum(1.0 - np.exp(share), SURE)))

    def pairs(self, rows: Ints, places: Ints) -> Floats:
        """Score listed pairs."""
        same = self.searchers.blocks[rows] == self.candidates.blocks[places]
        return np.where(same, self._squared(rows, places, self.offset), -np.inf)

    def _squared(self, rows: Ints, places: Ints, offset: Floats) -> Floats:
        """Return offsets less half the squared distances of listed pairs."""
        total = np.zeros(len(rows))
        for here, there in zip(self.searchers.values.T, self.candidates.values.T, strict=True):
            apart = there[places] - here[rows]
            total += apart * apart
        return np.asarray(offset[places] - 0.5 * total)

    def standing(self, rows: Ints, places: Ints, most: int = 10) -> tuple[Ints, Ints]:
        """Count the candidates that score higher than each listed pair, up to `most`, and those that score the same,
        itself included; a pair that cannot be scores lower than all that can.
        """
        searchers = self.searchers.take(rows)
        if self.unsure:
            low, high = self._around(rows, places, self.unsure)
            near = self.trees.within(searchers, low, high, most=most)
            some = np.flatnonzero((near.count > 1) & (near.above < most))
            self._make_marked_whole(searchers.take(some), low[some], high[some])
        found = self.trees.within(searchers, *self._around(rows, places, 0.0), most=most)
        return found.above, np.where(np.isfinite(self.pairs(rows, places)), found.count, 0)

    def _around(self, rows: Ints, places: Ints, slack: float) -> tuple[Floats, Floats]:
        """Return bounds, as the trees have scores, of what cannot be told from the scores of pairs."""
        own = self.pairs(rows, places)
        score = own - np.log(self.units[places]) if self.leaves_out else own
        wide = slack + SAME_SCORE * np.maximum(np.abs(np.where(np.isfinite(own), own, 0.0)), 1.0)
        return score - wide, score + wide

    def _scores(self, places: Ints) -> Floats:
        """Score every searcher's candidate, minus infinity where it has none."""
        rows, out = np.flatnonzero(places >= 0), np.full(len(places), -np.inf)
        out[rows] = self.pairs(rows, places[rows])
        return out

    def _weighed(self, searchers: Points, slack: float) -> TreeSums:
        from ....kernels.gaussian_leaves import Rules

        slack += 2 * SAME_SCORE * (1.0 + np.log(self.units.max(initial=1.0)))
        return self.trees.weigh(searchers, Rules(_half(self.eps), False, self.leaves_out, True, slack))

    def _tolerance(self, sums: TreeSums) -> Floats:
        """Return by how much two scores near the second can differ and still be taken for the same."""
        second = np.where(np.isfinite(sums.costs[:, 1]), -sums.costs[:, 1], 0.0)
        return 2 * SAME_SCORE * np.maximum(np.abs(second + self._above(sums.numbers[:, 0])), 1.0)

    def _above(self, numbers: Ints) -> Floats:
        """Return what scores have in addition to what they are in the trees, in the blocks of some candidates."""
        return np.log(self.units[self._named(numbers)]) if self.leaves_out else np.zeros(len(numbers))

    def _ranked(self, sums: TreeSums) -> tuple[Ints, Ints, Ints]:
        """Sort ties out: the first among the best, the first among the next best, and how many are best."""
        place, second, ties = *sums.numbers.T.copy(), np.where(sums.numbers[:, 0] >= 0, 1, 0)
        rows = np.flatnonzero(_is_open(sums.costs, self._tolerance(sums)))
        searchers, one, two = self.searchers.take(rows), sums.costs[rows, 0], sums.costs[rows, 1]
        above = self._above(place[rows])
        firsts = self.trees.within(searchers, _lowest(above - one) - above)
        next_best = np.where(firsts.costs[:, 0] == one, two, one)
        others = self.trees.within(searchers, _lowest(above - next_best) - above).lowest
        place[rows], ties[rows] = firsts.lowest[:, 0], firsts.count
        second[rows] = np.where(others[:, 0] == place[rows], others[:, 1], others[:, 0])
        return self._named(place), self._named(second), ties

    def _named(self, numbers: Ints) -> Ints:
        named = np.append(self.possible, NOBODY)
        return np.asarray(named[numbers])

    def _make_whole(self, rows: Ints, sums: TreeSums) -> None:
        """Make the sums whole that leave open who is first or second, and rank again.

        Whoever is second scores no less than the second here less what is unsure, for two candidates do: all that can
        be first or second, or tie with these, are marked.
        """
        if not self.unsure or not len(rows):
            return
        searchers, above = self.searchers.take(rows), self._above(sums.numbers[rows, 0])
        low = _lowest(above - sums.costs[rows, 1]) - above - self.unsure
        self._make_marked_whole(searchers, low, np.full(len(rows), np.inf))
        again = self._weighed(searchers, 0.0)
        sums.costs[rows], sums.numbers[rows] = again.costs, again.numbers

    def _make_marked_whole(self, searchers: Points, low: Floats, high: Floats) -> None:
        """Make the sums whole of all candidates that score within bounds for somebody."""
        marks: Bools = np.zeros(len(self.possible), bool)
        self.trees.within(searchers, low, high, most=len(marks) + 1, marks=marks)
        if self.true is not None and marks.any():
            self._make_sums_whole(self.true, self.possible[marks])

    def _make_sums_whole(self, true: Trees, chosen: Ints) -> None:
        from ....kernels.gaussian_leaves import Rules

        sums = true.weigh(self.candidates.take(chosen), Rules(WHOLE, False, False, False, 0.0))
        self.offset[chosen] = np.log(self.units[chosen]) - sums.log_sum
        self.trees.renew(
            (self.offset - np.log(self.units) if self.leaves_out else self.offset)[self.possible]
        )


def log_sums(true: Points, released: Points, eps: float) -> tuple[Floats, float]:
    """Return log sums of exp(-|z - x|^2 / 2) over the true records of each block, and the share they may lack."""
    return log_sums_by(Trees.of(true, np.zeros(len(true.values))), released, eps)


def log_sums_by(trees: Trees, released: Points, eps: float) -> tuple[Floats, float]:
    """Return the same by trees that are grown already, over true records without an offset."""
    from ....kernels.gaussian_leaves import Rules

    _check(eps)
    sums = trees.weigh(released, Rules(_half(eps), False, False, False, 0.0))
    return sums.log_sum, float(sums.lacking.max(initial=0.0))


def _check(eps: float) -> None:
    if not 0 < eps <= LARGEST_EPS:
        raise BadPlan(f"eps, the posterior mass that may be neglected, is above 0 and at most {LARGEST_EPS}")


def _half(eps: float) -> float:
    """Return what each of two sums may lack, so that both factors together stay within 1 + eps."""
    return float(np.sqrt(1 + eps) - 1)


def _trees_of_possible(candidates: Points, offset: Floats) -> tuple[Ints, Trees]:
    """Return which candidates are possible, and trees over these."""
    possible = np.flatnonzero(np.isfinite(offset))
    return possible, Trees.of(candidates.take(possible), offset[possible])


def _lowest(top: Floats) -> Floats:
    """Return the lowest score that is as good as a best one, as `candidate_scores` has it."""
    return np.asarray(top - SAME_SCORE * np.maximum(np.abs(top), 1.0))


def _is_open(costs: Floats, near: Floats) -> Bools:
    """Whether the first and the second, or the second and the third, are too close to be told apart."""
    one, two, three = costs.T
    with np.errstate(invalid="ignore"):
        return np.asarray((two - one <= near) | (three - two <= near))

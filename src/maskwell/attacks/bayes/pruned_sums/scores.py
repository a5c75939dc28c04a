"""Scores without looking at every pair, where plain normal noise and many records allow it: the answers of `Odds`.

A value rounded to a unit u has the density of its noise convolved with a uniform one on a unit, and that is nearly
normal with u^2 / 12 more variance (Sheppard, 1898, Proceedings of the London Mathematical Society 29, 353-380). By the
next term of Edgeworth's series the density, r sds s from its centre, is then off by a share of (u / s)^4 / 2880
|r^4 - 6 r^2 + 3|. So an age in years is searched by trees as an amount in cents is. Chosen by `posterior` from
LEAST_PAIRS pairs on (LEAST_CELLS where several units are coarse).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ....laws import Additive, Normal
from ....laws.noise import sds_and_correlations
from ....laws.transform import FINE, Outlet
from ....masking import Release
from ....schema import OPEN
from ....table import Floats, Table
from ...candidate_scores import BestCandidates, lowest
from ...pair_density import LoweredLaw, cholesky_whitener, is_lowered, is_thick, laws_on
from ...protocol import NOBODY, Bools, IntruderKnowledge, Ints
from ..belief import BeliefStanding
from ..candidates import CandidateBlocks
from ..posterior_odds import against_others
from .posterior_sums import PrunedSearch, log_sums
from .trees import Points

LEAST_PAIRS = 5_000_000  # below, all pairs are looked at
# The same where several columns are coarse: a pair is then a sum over hundreds of points
LEAST_CELLS = 200_000
SEVERAL = 3  # coarse columns
# Of the noise's sd: up to there rates differ by less than 0.001 from those by exact cells (tests)
COARSE = 2.0
AT_TWO_SDS = 5 / 2880  # what a share is off by there and nearer, in fourth powers of unit by sd
FAR = 4.0  # sds
RANKS = 10  # the place of the right record is counted up to here


@dataclass(frozen=True, slots=True)
class ScorePart:
    """The records of one kind: their numbers in the order of candidates, and their search.

    `searchers` look for `candidates`; scores are those of the search and what each searcher has `above` them, too high
    by at most `unsure`.
    """

    searchers: Ints
    candidates: Ints
    pruning: PrunedSearch
    above: Floats
    unsure: float = 0.0


@dataclass(frozen=True, slots=True)
class TreeScores:
    """The scores of all pairs by parts; `place` tells where a known and a released record stand in their parts.

    Units that were taken for noise put densities off by at most a share of `rounding` within 2 sds of their centres.
    """

    ground: CandidateBlocks
    parts: dict[int, ScorePart]
    kind: tuple[Ints, Ints]
    place: tuple[Ints, Ints]
    log_absent: Floats
    averaged: bool
    to_masked: bool
    rounding: float = 0.0

    def best(self) -> tuple[BestCandidates, Floats, float]:
        """Return the best links, the logs of their weights, and the share by which no probability is off."""
        count = len(self.kind[0 if self.to_masked else 1])
        best, weights, neglected = BestCandidates.nothing(count), np.full(count, np.nan), 0.0
        for part in self.parts.values():
            found, rows = part.pruning.best(), part.searchers
            lacking = float(found.neglected.max(initial=0.0))
            neglected = max(neglected, (1 + lacking) * (1 + part.unsure) - 1)
            best.score[rows], best.ties[rows] = found.score + part.above, found.ties
            weights[rows] = found.log_weight + part.above
            best.second_score[rows] = found.second_score + part.above
            best.log_total[rows] = found.log_total + part.above
            for into, place in ((best.place, found.place), (best.second, found.second)):
                into[rows] = np.where(place >= 0, part.candidates[np.maximum(place, 0)], NOBODY)
        return best, weights, neglected

    def is_tied(self, best: BestCandidates, rows: Ints, found: Ints) -> Bools:
        """Tell whether candidates are as good as the best ones."""
        known, released = (rows, found) if self.to_masked else (found, rows)
        return np.asarray(self.pairs(known, released) >= lowest(best.score[rows]))

    def pairs(self, known: Ints, released: Ints) -> Floats:
        """Score listed pairs."""
        out = np.full(len(known), -np.inf)
        blocks = self.ground.blocks
        same = blocks.known[known] == blocks.released[released]
        same &= self.kind[0][known] == self.kind[1][released]
        for number, part in self.parts.items():
            here = np.flatnonzero(same & (self.kind[0][known] == number))
            if len(here):
                near, far = self._places(known[here], released[here])
                out[here] = part.pruning.pairs(near, far) + part.above[near]
        return out

    def _places(self, known: Ints, released: Ints) -> tuple[Ints, Ints]:
        """Return where records stand in their parts, searchers first."""
        near, far = self.place[0][known], self.place[1][released]
        return (near, far) if self.to_masked else (far, near)

    def weights(self, scores: Floats, released: Ints) -> Floats:
        """Return the log posterior weights of scores."""
        leaves_out = self.averaged and self.to_masked
        return against_others(scores, self.ground.units[released]) if leaves_out else scores

    def log_total(self, best: BestCandidates, *, to_masked: bool = True) -> Floats:
        """Return the log of all posterior weights of each searcher, of not being released too."""
        if self.to_masked:
            return np.asarray(np.logaddexp(best.log_total, self.log_absent))
        return np.maximum(best.log_total, np.log(self.ground.units)) if self.averaged else best.log_total

    def probability(self, best: BestCandidates, log_weights: Floats) -> Floats:
        """Return the posterior of each link, NaN where there is none."""
        return np.exp(np.where(best.place >= 0, np.minimum(log_weights - self.log_total(best), 0.0), np.nan))

    def standing(
        self, best: BestCandidates, rows: Ints, found: Ints, *, to_masked: bool = True
    ) -> BeliefStanding:
        """Return, for some searchers, how given candidates stand among all of theirs, up to the tenth place."""
        known, released = (rows, found) if self.to_masked else (found, rows)
        own = self.pairs(known, released)
        better, ties = np.zeros(len(rows), np.int64), np.zeros(len(rows), np.int64)
        possible = np.isfinite(own)
        for number, part in self.parts.items():
            here = np.flatnonzero(possible & (self.kind[0][known] == number))
            if len(here):
                at = self._places(known[here], released[here])
                better[here], ties[here] = part.pruning.standing(*at, most=RANKS)
        total = np.where(possible, self.log_total(best)[rows], 0.0)
        inside = self.ground.blocks.known[known] == self.ground.blocks.released[released]
        better = np.where(possible, better, RANKS)
        chance = np.exp(np.minimum(self.weights(own, released) - total, 0.0))
        return BeliefStanding(np.where(inside, better, -1), np.where(inside, ties, 0), chance)


def prepare_tree_scores(
    plan: Any,
    known: IntruderKnowledge,
    release: Release,
    fields: Sequence[str],
    ground: CandidateBlocks,
    logs: tuple[Floats, Floats],
) -> TreeScores | None:
    """Prepare a search by trees, or nothing where the laws or the sizes do not allow it.

    `logs` are log f(z) of each released record, unless the truth gives it, and the log weights of not being released.
    """
    laws = laws_on(release.card, fields)
    if not laws or not all(is_plain(law) for law in laws) or pairs_of(ground) < least_pairs(laws):
        return None
    rounding = sum(rounding_error(law) for law in laws)
    laws = [without_units(law) for law in laws]
    truth, targets = known.population, known.targets
    by_truth = [LoweredLaw.of(law, release.table, truth) for law in laws]
    if not all(_is_open_or_closed(one) for one in by_truth):
        return None
    sides = by_truth if targets is truth else [LoweredLaw.of(law, release.table, targets) for law in laws]
    averaged = plan.kernel == "coherent" and plan.marginal == "truth"
    built = _ScoreBuilder(ground, by_truth, sides, averaged, plan.to_masked, plan.eps, logs).built()
    return replace(built, rounding=rounding)


def least_pairs(laws: Sequence[Any]) -> int:
    """Return from how many pairs on trees are taken for plain laws."""
    coarse = [len(coarse_units(law)) for law in laws if isinstance(law, Additive)]
    return LEAST_CELLS if max(coarse, default=0) >= SEVERAL else LEAST_PAIRS


def pairs_of(ground: CandidateBlocks) -> int:
    """Return how many pairs of a true and a released record share a block with a known one."""
    count = (
        int(max(codes.max(initial=0) for codes in (ground.blocks.known, ground.blocks.released, ground.true)))
        + 1
    )
    here = np.zeros(count, bool)
    here[ground.blocks.known] = True
    true = np.bincount(ground.true[ground.true >= 0], minlength=count)
    return int((true * np.bincount(ground.blocks.released, minlength=count))[here].sum())


def is_plain(law: Any) -> bool:
    """Whether noise is normal, the same for every record, and thin in no direction."""
    if not is_lowered(law) or not isinstance(law.noise, Normal):
        return False
    return is_thick(law.noise)


def coarse_units(law: Additive) -> dict[int, float]:
    """Return the units, by the number of their column, that are too coarse for points and fine enough for Sheppard's.

    Only where they are the same for every value: not on the log scale, and without limits or codes.
    """
    sds, out = law.noise.resolution, dict[int, float]()
    for j, outlet in enumerate(law.outlets):
        alike = outlet == Outlet(unit=outlet.unit)
        if alike and outlet.unit is not None and FINE * sds[j] < float(outlet.unit) <= COARSE * sds[j]:
            out[j] = float(outlet.unit)
    return out


def rounding_error(law: Additive) -> float:
    """Return by what share Sheppard's normal density is off within 2 sds, added up over the columns."""
    sds = law.noise.resolution
    return AT_TWO_SDS * sum((unit / float(sds[j])) ** 4 for j, unit in coarse_units(law).items())


def without_units(law: Additive) -> Additive:
    """Return a law with Sheppard's variance of a unit as part of the noise, where units are coarse enough to matter."""
    coarse = coarse_units(law)
    if not coarse:
        return law
    covariance = law.noise.covariance.copy()
    for j, unit in coarse.items():
        covariance[j, j] += unit**2 / 12
    outlets = tuple(Outlet() if j in coarse else outlet for j, outlet in enumerate(law.outlets))
    sds, correlations = sds_and_correlations(covariance)
    rows = tuple(tuple(row) for row in correlations.tolist())
    return replace(law, noise=Normal(tuple(sds.tolist()), rows), outlets=outlets)


def is_searched_by_trees(law: Any, truth: Table) -> bool:
    """Whether trees may be taken for a law: every value that leaves is a point, or Sheppard's normal cell.

    On the log scale that depends on the least value that leaves, which is taken for FAR sds below the least true one.
    """
    if not is_plain(law):
        return False
    sds, marginal = law.noise.resolution, np.sqrt(np.diag(law.noise.covariance))
    for j, (name, outlet) in enumerate(zip(law.columns, law.outlets, strict=True)):
        if outlet != Outlet(unit=outlet.unit, log_shift=outlet.log_shift):
            return False
        largest = COARSE * sds[j]
        if outlet.log_shift is not None:
            least = float(np.nanmin(np.abs(truth.floats(name) + outlet.log_shift), initial=np.inf))
            largest = FINE * sds[j] * least * np.exp(-FAR * marginal[j])
        if outlet.unit is not None and float(outlet.unit) > largest:
            return False
    return True


def _is_open_or_closed(one: LoweredLaw) -> bool:
    """Whether every open released value is a point that open true ones lead to, and statuses never change."""
    coded = any(code is not None for outlet in one.law.outlets for code in outlet.codes)
    return not coded and bool((one.is_point | ~one.fits.opened).all())


@dataclass(frozen=True, slots=True)
class _ScoreBuilder:
    """What the parts are made of: the laws on true and on known records."""

    ground: CandidateBlocks
    truth: list[LoweredLaw]
    known: list[LoweredLaw]
    averaged: bool
    to_masked: bool
    eps: float
    logs: tuple[Floats, Floats]

    def built(self) -> TreeScores:
        """Split the records by what is open, and grow the trees of each part."""
        released, true, known = self._statuses()
        patterns, kinds = np.unique(np.concatenate([released, true, known]), axis=0, return_inverse=True)
        kind_z, kind_x, kind_k = np.split(kinds.ravel(), np.cumsum([len(released), len(true)]))
        parts: dict[int, ScorePart] = {}
        orders = self.ground.blocks.orders
        places = np.zeros(len(known), np.int64), np.zeros(len(released), np.int64)
        for number in range(len(patterns)):
            rows = orders[0][kind_k[orders[0]] == number]
            candidates = orders[1][kind_z[orders[1]] == number]
            places[0][rows], places[1][candidates] = np.arange(len(rows)), np.arange(len(candidates))
            others = np.flatnonzero(kind_x == number)
            if len(rows) and len(candidates) and len(others):
                parts[number] = self._part(rows, others, candidates)
        sides = (kind_k, kind_z), places
        return TreeScores(self.ground, parts, *sides, self.logs[1], self.averaged, self.to_masked)

    def _statuses(self) -> tuple[Any, Any, Any]:
        sides = [[one.fits.statuses_z for one in self.truth], [one.fits.statuses_x for one in self.truth]]
        sides.append([one.fits.statuses_x for one in self.known])
        return tuple(np.concatenate(side, axis=1) for side in sides)  # type: ignore[return-value]

    def _part(self, rows: Ints, others: Ints, released: Ints) -> ScorePart:
        """Prepare the search of some known records for released ones of their kind, or the other way round."""
        points = self._points(rows, others, released)
        if not self.to_masked:
            return self._turned(rows, released, points)
        nothing = np.zeros(len(rows))
        if self.averaged:
            return ScorePart(
                rows, released, PrunedSearch.coherent(*points, self.ground.units[released], self.eps), nothing
            )
        offset = self._constants(released) - self.logs[0][released]
        return ScorePart(rows, released, PrunedSearch.given(points[0], points[2], offset, self.eps), nothing)

    def _points(self, rows: Ints, others: Ints, released: Ints) -> tuple[Points, Points, Points]:
        """Return known, true and released records where the noise has variance 1."""
        blocks = self.ground.blocks
        sets = [(self.known, "x", rows, blocks.known), (self.truth, "x", others, self.ground.true)]
        known, true = (Points(_white(laws, side, at), codes[at]) for laws, side, at, codes in sets)
        return known, true, Points(_white(self.truth, "z", released), blocks.released[released])

    def _constants(self, released: Ints) -> Floats:
        """Return what log f(z|x) of released records has beside the distance."""
        return sum((_constant(one, released) for one in self.truth), np.zeros(len(released)))

    def _turned(self, rows: Ints, released: Ints, points: tuple[Points, Points, Points]) -> ScorePart:
        """Prepare the search of released records for known ones; what they have above is the same for all of these."""
        known, true, masked = points
        search = PrunedSearch.given(masked, known, np.zeros(len(rows)), self.eps)
        if not self.averaged:
            return ScorePart(released, rows, search, self._constants(released) - self.logs[0][released])
        log_f, lacking = log_sums(true, masked, self.eps)
        return ScorePart(released, rows, search, np.log(self.ground.units[released]) - log_f, lacking)


def _open(one: LoweredLaw, side: str, rows: Ints) -> list[int]:
    """Return the columns that are open in records of one kind."""
    statuses = one.fits.statuses_x if side == "x" else one.fits.statuses_z
    return np.flatnonzero(statuses[rows[0]] == OPEN).tolist() if len(rows) else []


def _white(laws: list[LoweredLaw], side: str, rows: Ints) -> Floats:
    """Return records of one kind where their noise has variance 1 and is independent; at one point, if none is open."""
    parts = [np.zeros((len(rows), 0 if any(_open(one, side, rows) for one in laws) else 1))]
    for one in laws:
        chosen = _open(one, side, rows)
        values = (one.centre if side == "x" else one.lower)[np.ix_(rows, np.array(chosen, np.int64))]
        parts.append(values @ _whitening_matrix(one, chosen).T)
    return np.ascontiguousarray(np.concatenate(parts, axis=1))


def _whitening_matrix(one: LoweredLaw, chosen: list[int]) -> Floats:
    return cholesky_whitener(one.law.noise.only(chosen)) if chosen else np.empty((0, 0))


def _constant(one: LoweredLaw, rows: Ints) -> Floats:
    """Return what log f(z|x) has beside the distance."""
    chosen = _open(one, "z", rows)
    scale = float(np.log(np.abs(np.diag(_whitening_matrix(one, chosen)))).sum()) if chosen else 0.0
    return np.asarray(
        one.factor[np.ix_(rows, np.array(chosen, np.int64))].sum(axis=1)
        + scale
        - len(chosen) * np.log(2 * np.pi) / 2
    )

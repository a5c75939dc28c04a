"""Winkler's matcher: patterns counted once and weighed, each searcher linked to its best candidate.

score of a pair = sum over fields of its weight of agreement or disagreement (Fellegi and Sunter 1969; Moore 1996,
section IX). Links are classed by how many fields agree: all, all but one, fewer (Moore 1996, section III), or by two
cut-offs of the score. Called by `Linkage.guess`; pairs are compared by `sorted_pairs`.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ...errors import MaskwellWarning
from ...notes import Note
from ...table import Floats
from ..one_to_one import proved_gap
from ..protocol import NOBODY, Bools, Guess, Ints
from .assignment import assign
from .em import EMFit
from .remarks import remarks
from .sorted_pairs import (
    SAME_SCORE,
    BestLinks,
    BlockSortedRecords,
    arrange,
    best_of,
    best_seen,
    count_pairs,
    ranks,
)

if TYPE_CHECKING:
    from ..agreement import ComparedField
    from .plan import Linkage

KINDS = RE_IDENTIFICATION, QUESTIONABLE, FALSE, NO_CANDIDATE = (
    "re-identification",
    "questionable",
    "false",
    "no candidate",
)

IsTied = Callable[[Ints, Ints], Bools]


def match(
    plan: Linkage,
    compared: ComparedField,
    blocks: tuple[Ints, Ints],
    orders: tuple[Ints, Ints],
    notes: list[Note],
) -> Guess:
    """Count the patterns, weigh them, and link every searcher to its best candidate.

    `orders` are keyed orders of the intruder's and of the released records, for ties.
    """
    sides = [compared.known, compared.released]
    near, far = (0, 1) if plan.to_masked else (1, 0)
    arranged = arrange(
        compared.bounds(sides[near]), sides[far], (blocks[near], blocks[far]), (orders[near], orders[far])
    )
    thrifty = plan.links == "re-identified" and plan.assignment == "best"
    counts, seen = count_pairs(arranged, marked=thrifty)
    weighed = PatternWeights.by(plan, counts, arranged)
    notes = notes + remarks(compared, arranged, counts)
    gap: float | None = None
    if plan.assignment == "one-to-one":
        best, is_tied, gap = assign(arranged, weighed.scores)
        notes = [*notes, Note("attacks.one_to_one_score", {"gap": proved_gap(gap)})]
    else:
        best, is_tied = _best(weighed, arranged, seen)
    partners = Partners(
        weighed,
        arranged
        if plan.to_masked
        else arrange(compared.bounds(compared.known), compared.released, blocks, orders),
    )
    answer = _Answer(weighed, arranged, best)
    figures: dict[str, Any] = {
        "fields": compared.fields,
        "counts": counts,
        "fit": weighed.fit,
        "patterns_of": answer.patterns_of,
        "looked_up": "re-identified" if seen.shape[1] else "all",
        "gap": gap,
    }
    return answer.guess(is_tied, partners, figures, notes)


@dataclass(frozen=True, slots=True)
class PatternWeights:
    """The patterns with their scores and ranks, and the classes that the plan makes of them."""

    plan: Linkage
    fit: EMFit
    scores: Floats
    rank: Ints

    @classmethod
    def by(cls, plan: Linkage, counts: Ints, arranged: BlockSortedRecords) -> PatternWeights:
        """Weigh the patterns as the plan says."""
        matches = min(int(np.count_nonzero(arranged.candidates)), len(arranged.places))
        fit = plan.weights.fit(counts, matches)
        if not fit.converged:
            warnings.warn(f"EM has not converged in {fit.iterations:,} steps", MaskwellWarning, stacklevel=2)
        scores = fit.scores()
        return cls(plan, fit, scores, ranks(scores))

    def kinds(self, pattern: Ints) -> Ints:
        """Return the class of links with these patterns: an index into KINDS."""
        if self.plan.cut_offs is not None:
            scores, (first, second) = self.scores[pattern], self.plan.cut_offs
            return np.where(scores >= first, 0, np.where(scores >= second, 1, 2))
        return np.minimum(len(self.fit.m) - agreement_counts(pattern), 2)

    def may_be_found(self) -> Bools:
        """Return for each rank whether links of that rank are re-identifications, or some of them are."""
        kinds = self.kinds(np.arange(len(self.rank)))
        found = np.zeros(int(self.rank.max()) + 1, bool)
        found[self.rank[kinds == 0]] = True
        least, most = np.full(len(found), 9), np.zeros(len(found), np.int64)
        np.minimum.at(least, self.rank, kinds)
        np.maximum.at(most, self.rank, kinds)
        return np.asarray(found | (least != most))

    def pattern_of_rank(self) -> Ints:
        """Return a pattern of each rank: the one with most agreements."""
        out = np.zeros(int(self.rank.max()) + 1, np.int64)
        order = np.argsort(agreement_counts(np.arange(len(self.rank))), kind="stable")
        out[self.rank[order]] = order
        return out


def agreement_counts(pattern: Ints) -> Ints:
    """Return how many fields agree in each pattern."""
    return np.bitwise_count(pattern.astype(np.uint32)).astype(np.int64)


def _best(weighed: PatternWeights, arranged: BlockSortedRecords, seen: Any) -> tuple[BestLinks, IsTied]:
    if seen.shape[1]:
        top = best_seen(seen, weighed.rank)
        again = np.flatnonzero((top >= 0) & weighed.may_be_found()[top])
        best = best_of(arranged, weighed.rank, again)
        best = BestLinks(top, best.ties, best.place, best.next_rank, best.next_place)
    else:
        best = best_of(arranged, weighed.rank)

    def is_tied(rows: Ints, places: Ints) -> Bools:
        inside = (places >= arranged.start[rows]) & (places < arranged.stop[rows])
        return np.asarray(inside & (weighed.rank[arranged.patterns(rows, places)] == best.rank[rows]))

    return best, is_tied


@dataclass(frozen=True, slots=True)
class _Answer:
    """The best links in sorted order, to be told in the order of the searchers."""

    weighed: PatternWeights
    arranged: BlockSortedRecords
    best: BestLinks

    def guess(self, is_tied: IsTied, partners: Partners, figures: dict[str, Any], notes: list[Note]) -> Guess:
        """Return the answer in the order of the searchers."""
        plan, a, best, back = self.weighed.plan, self.arranged, self.best, self.arranged.row_of
        pattern, linked, known = self._patterns(), best.place >= 0, best.rank >= 0
        kind = np.where(known, self.weighed.kinds(pattern), KINDS.index(NO_CANDIDATE))
        claimed = linked & {"all links": True, "clear links": best.ties == 1}.get(plan.claims, kind == 0)
        return Guess(
            searcher=a.searchers[back],
            found=self._numbers(best.place),
            score=np.where(known, self.weighed.scores[pattern], np.nan)[back],
            ties=best.ties[back],
            candidates=a.candidates[back],
            claimed=claimed[back],
            kind=kind[back],
            kinds=KINDS,
            is_tied=lambda rows, found: is_tied(back[rows], a.place_of[found]),
            in_block=lambda rows, found: self.patterns_of(rows, found)[1],
            partners=partners,
            to_masked=plan.to_masked,
            second=self._numbers(best.next_place),
            second_score=self._runner_up()[back],
            columns={"agreeing": np.where(known, agreement_counts(pattern), 0)[back]},
            figures=figures,
            notes=tuple(notes),
        )

    def _patterns(self) -> Ints:
        """Return the pattern of each best link; where nobody was looked up, that of its rank."""
        linked = np.flatnonzero(self.best.place >= 0)
        pattern = self.weighed.pattern_of_rank()[self.best.rank]
        pattern[linked] = self.arranged.patterns(linked, self.best.place[linked])
        return pattern

    def _numbers(self, places: Ints) -> Ints:
        return np.where(places >= 0, self.arranged.places[places], NOBODY)[self.arranged.row_of]

    def _runner_up(self) -> Floats:
        by_rank = self.weighed.scores[self.weighed.pattern_of_rank()]
        return np.where(self.best.next_place >= 0, by_rank[self.best.next_rank], np.nan)

    def patterns_of(self, rows: Ints, found: Ints) -> tuple[Ints, Bools]:
        """Return the pattern of searchers with given candidates, and whether they share a block."""
        a, here, places = self.arranged, self.arranged.row_of[rows], self.arranged.place_of[found]
        comparable = (places >= a.start[here]) & (places < a.stop[here])
        return a.patterns(here, places), comparable


class Partners:
    """Released records in the block of one of the intruder's that he would not claim for it, most similar first."""

    def __init__(self, weighed: PatternWeights, arranged: BlockSortedRecords) -> None:
        self._weighed, self._arranged = weighed, arranged

    def __call__(self, known: int) -> Ints:
        """Return the numbers of the released records."""
        a, row = self._arranged, int(self._arranged.row_of[known])
        begin, end = int(a.start[row]), int(a.stop[row])
        pattern = a.patterns(np.array([row]), np.arange(begin, end))
        scores = self._weighed.scores[pattern]
        allowed = (self._weighed.kinds(pattern) > 0) & (pattern != (1 << a.fields) - 1)
        if self._weighed.plan.claims != "re-identifications" and len(scores):
            allowed &= scores < scores.max() - SAME_SCORE
        order = np.argsort(-scores, kind="stable")
        return np.asarray(a.places[begin + order[allowed[order]]])

"""Intruders who score every candidate of a block: from scores of pairs, a batch at a time, to an answer.

For each searcher the largest score, its ties within SAME_SCORE, the second, and the log of the sum of exp(weights),
added batch by batch (log a + b by the larger of both). One-to-one links are the assignment of largest total (Kuhn 1955)
by `one_to_one`, block by block. Used by `bayes` and `nearest`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any, Protocol

import numpy as np

from ..errors import BadPlan
from ..kernels.log_sums import log_sum
from ..notes import Note
from ..table import Floats
from .linkage.assignment import MOST_CELLS, check_size, optimal_of
from .one_to_one import Assignment, Chunk, Digests, Rounded, ScoreBlock, best_of_matrix, in_chunks
from .protocol import NOBODY, Bools, Guess, Ints

KINDS = LINKED, NO_CANDIDATE = ("linked", "no candidate")
# Scores closer than this, relative to their size or 1, differ by rounding alone: they are differences of log densities,
# which are thousands where there are hundreds of fields
SAME_SCORE = 1e-10
ASSIGNMENTS = ("best", "one-to-one")
PAIRS_AT_ONCE = 200_000  # scores held in one go
PAIRS_STREAMED = 1_000_000  # of a block too large to be held
ROUNDED_CELLS = 160_000_000  # scores of a block that are held rounded (640 MB)


@dataclass(frozen=True, slots=True)
class Batch:
    """Scores between the intruder's records of a block and some of its released ones: minus infinity is impossible.

    `log_weights` are the logs of their posterior weights where these are not the scores themselves.
    """

    known: Ints
    released: Ints
    scores: Floats
    log_weights: Floats | None = None


class ScoresPairs(Protocol):
    """What an intruder brings who can score any pair; higher is likelier."""

    def pairs(self, known: Ints, released: Ints) -> Floats:
        """Score listed pairs."""


class Scorer(ScoresPairs, Protocol):
    """What an intruder brings who scores all candidates; `pairs` only after `batches` has been exhausted."""

    def batches(self) -> Iterator[Batch]:
        """Score all pairs within blocks, the records of each side in a keyed order."""

    def matrix(self, known: Ints, released: Ints) -> Floats:
        """Score all pairs of some records of one block: known x released."""


def option_problems(plan: Any) -> list[str]:
    """List what is wrong with `fields` (frozen already) and `assignment`."""
    problems = []
    if isinstance(plan.fields, tuple):
        names = plan.fields
        problems += [] if names else ["name at least one field"]
        problems += [f"field {n!r} is named twice" for n in sorted({n for n in names if names.count(n) > 1})]
    if plan.assignment not in ASSIGNMENTS:
        problems.append(f"assignment must be 'best' or 'one-to-one', not {plan.assignment!r}")
    return problems


@dataclass(frozen=True, slots=True)
class Blocks:
    """The block of every record on both sides, and keyed orders in which they are looked at."""

    known: Ints
    released: Ints
    orders: tuple[Ints, Ints]

    def __iter__(self) -> Iterator[tuple[int, Ints, Ints]]:
        """Yield each block that both sides share, with its records in keyed order."""
        ours, theirs = members(self.known, self.orders[0]), members(self.released, self.orders[1])
        return ((block, records, theirs[block]) for block, records in ours.items() if block in theirs)

    def sizes(self, *, released: bool) -> Ints:
        """Return how many records of the other side share the block of each record of one side."""
        here, there = (self.released, self.known) if released else (self.known, self.released)
        counts = np.bincount(there, minlength=int(max(here.max(initial=0), there.max(initial=0))) + 1)
        return np.asarray(counts[here])

    def released_with(self, known: int) -> Ints:
        """Return the released records in the block of one of the intruder's, in keyed order."""
        order = self.orders[1]
        return np.asarray(order[self.released[order] == self.known[known]])


def members(blocks: Ints, order: Ints) -> dict[int, Ints]:
    """Return the records of each block, in a given order."""
    ordered = order[np.argsort(blocks[order], kind="stable")]
    numbers, starts = np.unique(blocks[ordered], return_index=True)
    return dict(zip(numbers.tolist(), np.split(ordered, starts[1:]), strict=True))


def in_runs(records: Ints, width: int) -> Iterator[Ints]:
    """Cut records into runs that make about as many pairs with `width` others as are scored at once."""
    length = max(1, PAIRS_AT_ONCE // max(width, 1))
    return (records[begin : begin + length] for begin in range(0, len(records), length))


@dataclass(frozen=True, slots=True)
class BestCandidates:
    """For each searcher its best score, how many candidates have it, the first of them, and the next best.

    `log_total` is the log of the sum of all its weights.
    """

    score: Floats
    ties: Ints
    place: Ints
    second_score: Floats
    second: Ints
    log_total: Floats

    @classmethod
    def nothing(cls, count: int) -> BestCandidates:
        """Start with no candidate for anybody."""
        low, nobody = np.full(count, -np.inf), np.full(count, NOBODY, np.int64)
        return cls(low, np.zeros(count, np.int64), nobody, low.copy(), nobody.copy(), low.copy())

    def add(self, rows: Ints, candidates: Ints, scores: Floats, log_weights: Floats) -> None:
        """Take scores of further candidates in: rows x candidates, those that come first win ties."""
        new = _two_best(scores)
        places = [self.place[rows], self.second[rows], candidates[new[1]], candidates[new[3]]]
        values = np.stack([self.score[rows], self.second_score[rows], new[0], new[2]])
        at = np.arange(len(rows))
        top, first = _first_best(values)
        counts = np.stack([self.ties[rows], new[4]])
        self.ties[rows] = (counts * (values[::2] >= lowest(top))).sum(axis=0)
        self.score[rows], self.place[rows] = top, np.stack(places)[first, at]
        values[first, at] = -np.inf
        self.second_score[rows], then = _first_best(values)
        self.second[rows] = np.stack(places)[then, at]
        with np.errstate(invalid="ignore"):  # densities that a card of somebody else makes infinite
            self.log_total[rows] = np.logaddexp(self.log_total[rows], log_sum(log_weights, axis=1))


def _two_best(scores: Floats) -> tuple[Floats, Ints, Floats, Ints, Ints]:
    """Return the best score of each row and its place, those of the next best, and how many are as good as the best."""
    scores = scores.T.copy()
    top, first = _first_best(scores)
    ties = (scores >= lowest(top)).sum(axis=0)
    scores[first, np.arange(len(first))] = -np.inf
    second, then = _first_best(scores)
    return top, first, second, then, ties


def _first_best(values: Floats) -> tuple[Floats, Ints]:
    """Return the largest value of each column and the first place that has it but for rounding."""
    top = values.max(axis=0)
    return top, np.asarray((values >= lowest(top)).argmax(axis=0))


def lowest(top: Floats) -> Floats:
    """Return the lowest score that is as good as the best one."""
    size = np.where(np.isfinite(top), np.maximum(np.abs(top), 1.0), 0.0)
    return np.asarray(top - SAME_SCORE * size)


@dataclass(frozen=True, slots=True)
class OneToOneLinks:
    """One-to-one links of largest total score; `alike` numbers the candidates that are interchangeable.

    No assignment within blocks has a total score that is larger by more than `gap`.
    """

    best: BestCandidates
    alike: Ints = field(repr=False)
    gap: float = 0.0

    def is_tied(self, rows: Ints, found: Ints) -> Bools:
        """Tell whether candidates cannot be told from those linked."""
        return np.asarray(self.alike[found] == self.alike[self.best.place[rows]])


def assign_candidates(
    batches: Iterable[Batch], counts: tuple[int, int], to_masked: bool, scorer: Scorer | None = None
) -> OneToOneLinks:
    """Assign candidates to searchers, each at most once, in each block: first as many links as are possible at all,
    then the largest total score. Candidates with the same score for every searcher are the ties.

    A block with more pairs than are held at once is held rounded, and certified by passes of the `scorer`; one with
    more than that is passed over by it in every round.
    """
    searchers, candidates = counts if to_masked else counts[::-1]
    out = _Links(BestCandidates.nothing(searchers), np.arange(candidates), Digests.of(candidates))
    for parts in _by_block(batches):
        near, far, rough = out.enter(parts, to_masked)
        if len(near) * len(far) <= MOST_CELLS:
            continue
        if scorer is None:
            check_size(len(near), len(far))
        else:
            out.link(near, far, optimal_of(_rescored_block(scorer, near, far, to_masked), rough), None)
    return OneToOneLinks(out.best, out.alike, out.gap)


@dataclass(slots=True)
class _Links:
    """Links as they are found, block by block."""

    best: BestCandidates
    alike: Ints
    digests: Digests
    gap: float = 0.0

    def enter(self, parts: Iterator[Batch], to_masked: bool) -> tuple[Ints, Ints, Rounded | None]:
        """Take the scores of a block in, and link its records if they can all be held.

        Return both sides, and the scores rounded where these can be held alone.
        """
        held: list[Batch] = []
        rough: list[Rounded] = []
        known, cells, released = np.empty(0, np.int64), 0, []
        for batch in parts:
            near, far, scores, log_weights = _searcher_scores(batch, to_masked)
            total = log_sum(log_weights, axis=1)
            self.best.log_total[near] = np.logaddexp(self.best.log_total[near], total)
            self.digests.add(near, far, scores)
            known, cells = batch.known, cells + batch.scores.size
            released.append(batch.released)
            rough += [one.scores.astype(np.float32) for one in (*held, batch)] if cells > MOST_CELLS else []
            held = [*held, batch] if cells <= MOST_CELLS else []
            rough = rough if cells <= ROUNDED_CELLS else []
        every = np.concatenate(released)
        near, far = (known, every) if to_masked else (every, known)
        same = self.digests.alike(far)
        self.alike[far] = far[same]
        if cells <= MOST_CELLS:
            scores = np.concatenate([batch.scores for batch in held], axis=1)
            scores = scores if to_masked else np.ascontiguousarray(scores.T)
            self.link(near, far, best_of_matrix(scores), scores)
        whole = np.concatenate(rough, axis=1) if MOST_CELLS < cells <= ROUNDED_CELLS else None
        return near, far, whole if whole is None or to_masked else whole.T

    def link(self, near: Ints, far: Ints, found: Assignment, scores: Floats | None) -> None:
        """Enter the links of a block."""
        rows = np.flatnonzero(found.column >= 0)
        columns = found.column[rows]
        self.best.place[near[rows]] = far[columns]
        if scores is not None:
            self.best.score[near[rows]] = scores[rows, columns]
        same = self.digests.alike(far)
        self.best.ties[near[rows]] = np.bincount(same)[same[columns]]
        self.gap += found.gap


def _rescored_block(scorer: Scorer, near: Ints, far: Ints, to_masked: bool) -> ScoreBlock:
    """Return a block whose pairs are scored anew each time, some rows after the other."""

    def listed(rows: Ints, columns: Ints) -> Floats:
        sides = (near[rows], far[columns]) if to_masked else (far[columns], near[rows])
        return scorer.pairs(*sides)

    def chunks() -> Iterator[Chunk]:
        every = np.arange(len(far))
        for run in in_chunks(len(near), len(far), PAIRS_STREAMED):
            scores = scorer.matrix(near[run], far) if to_masked else scorer.matrix(far, near[run]).T
            yield run, every, np.ascontiguousarray(scores)

    return ScoreBlock((len(near), len(far)), chunks, listed)


def _searcher_scores(batch: Batch, to_masked: bool) -> tuple[Ints, Ints, Floats, Floats]:
    """Return searchers, candidates, their scores and the logs of their weights: searchers x candidates."""
    if to_masked:
        weights = batch.scores if batch.log_weights is None else batch.log_weights
        return batch.known, batch.released, batch.scores, weights
    turned = np.ascontiguousarray(batch.scores.T)
    return batch.released, batch.known, turned, turned


def _by_block(batches: Iterable[Batch]) -> Iterator[Iterator[Batch]]:
    """Return the batches of each block together; they come one after the other."""
    return (parts for _, parts in groupby(batches, key=lambda batch: id(batch.known)))


def whole_blocks(batches: Iterable[Batch]) -> Iterator[Batch]:
    """Join the batches of a block; they come one after the other."""
    for parts in _by_block(batches):
        held: list[Batch] = []
        for batch in parts:
            held.append(batch)
            check_size(len(batch.known), sum(len(part.released) for part in held))
        yield _concatenate_batches(held)


def _concatenate_batches(parts: Sequence[Batch]) -> Batch:
    released = np.concatenate([part.released for part in parts])
    scores = np.concatenate([part.scores for part in parts], axis=1)
    if parts[0].log_weights is None:
        return Batch(parts[0].known, released, scores)
    weights = [part.log_weights for part in parts if part.log_weights is not None]
    return Batch(parts[0].known, released, scores, np.concatenate(weights, axis=1))


def search(
    scorer: Scorer, blocks: Blocks, *, to_masked: bool, assignment: str
) -> tuple[BestCandidates, Callable[[Ints, Ints], Bools], float | None]:
    """Link every searcher; return the links, a function that tells whether candidates tie with them, and the gap of a
    one-to-one assignment.
    """
    counts = len(blocks.known), len(blocks.released)
    if assignment == "one-to-one":
        links = assign_candidates(scorer.batches(), counts, to_masked, scorer)
        linked = np.flatnonzero((links.best.place >= 0) & np.isneginf(links.best.score))
        sides = (linked, links.best.place[linked])
        links.best.score[linked] = scorer.pairs(*(sides if to_masked else sides[::-1]))
        return links.best, links.is_tied, links.gap
    best = BestCandidates.nothing(counts[0] if to_masked else counts[1])
    for batch in scorer.batches():
        best.add(*_searcher_scores(batch, to_masked))
    best.ties[np.isneginf(best.score)] = 0
    best.place[np.isneginf(best.score)] = NOBODY
    best.second[np.isneginf(best.second_score)] = NOBODY

    def is_tied(rows: Ints, found: Ints) -> Bools:
        known, released = (rows, found) if to_masked else (found, rows)
        inside = _same_block(blocks, rows, found, to_masked=to_masked)
        tied = np.zeros(len(rows), bool)
        scores = scorer.pairs(known[inside], released[inside])
        tied[inside] = scores >= lowest(best.score[rows[inside]])
        is_first: Bools = found == best.place[rows]
        return tied | is_first

    return best, is_tied, None


def partners_of(
    scorer: ScoresPairs, blocks: Blocks, best: BestCandidates, *, to_masked: bool
) -> Callable[[int], Ints]:
    """Return a function that lists the released records an intruder would not claim for one of his, likeliest first."""

    def partners(known: int) -> Ints:
        released = blocks.released_with(known)
        if not len(released):
            return released
        scores = scorer.pairs(np.full(len(released), known), released)
        if to_masked:
            claimed = (released == best.place[known]) | (scores >= lowest(scores.max(keepdims=True)))
        else:
            theirs = best.score[released]
            claimed = (best.place[released] == known) | (np.isfinite(theirs) & (scores >= lowest(theirs)))
        order = np.argsort(-scores, kind="stable")
        return np.asarray(released[order[~(claimed & np.isfinite(scores))[order]]])

    return partners


def guess_from_links(
    plan: Any,
    blocks: Blocks,
    best: BestCandidates,
    is_tied: Callable[[Ints, Ints], Bools],
    partners: Callable[[int], Ints],
    *,
    scores: tuple[Floats, Floats],
    columns: dict[str, Any],
    fields: tuple[str, ...],
    notes: Sequence[Note] = (),
) -> Guess:
    """Put links into the form in which all intruders answer; `scores` are those shown of the best and the second."""
    linked = best.place >= 0
    return Guess(
        searcher=np.arange(len(best.place)),
        found=best.place,
        score=np.where(linked, scores[0], np.nan),
        ties=best.ties,
        candidates=blocks.sizes(released=not plan.to_masked),
        claimed=linked,
        kind=np.where(linked, 0, 1),
        kinds=KINDS,
        is_tied=is_tied,
        in_block=lambda rows, found: _same_block(blocks, rows, found, to_masked=plan.to_masked),
        partners=partners,
        to_masked=plan.to_masked,
        second=best.second,
        second_score=np.where(best.second >= 0, scores[1], np.nan),
        columns=columns,
        figures={"fields": fields},
        notes=tuple(notes),
    )


def _same_block(blocks: Blocks, rows: Ints, found: Ints, *, to_masked: bool) -> Bools:
    known, released = (rows, found) if to_masked else (found, rows)
    return np.asarray(blocks.known[known] == blocks.released[released])


def check_fields_named(fields: Sequence[str], remedy: str) -> None:
    """Refuse an intruder who compares nothing."""
    if not fields:
        raise BadPlan(f"the release has no column that the intruder can compare: {remedy}")

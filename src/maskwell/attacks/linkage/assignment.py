"""One-to-one links of a matcher: in each block the assignment of largest total score.

max over injective assignments of the sum of pattern scores (Kuhn 1955; Winkler 1994 for record linkage). scipy's
matrix where a block fits, else `attacks.one_to_one` over listed pairs. Chosen by `Linkage(assignment="one-to-one")`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any

import numpy as np

from ...errors import BadPlan
from ...table import Floats
from ..one_to_one import (
    Assignment,
    Chunk,
    Digests,
    Rounded,
    ScoreBlock,
    best_of_matrix,
    in_chunks,
    optimal,
    rounded_block,
    transpose_assignment,
)
from ..protocol import NOBODY, Bools, Ints
from .sorted_pairs import BestLinks, BlockSortedRecords, ranks

# Scores of a block that are held at once (288 MB); beyond, they are computed in each round
MOST_CELLS = 36_000_000
CHUNK_CELLS = 4_000_000  # of those that are not


def assign(
    arranged: BlockSortedRecords, scores: Floats
) -> tuple[BestLinks, Callable[[Ints, Ints], Bools], float]:
    """Assign candidates to searchers, each at most once; return also by how much no total score can be larger.

    Candidates that have the same pattern with every searcher of the block are interchangeable: these are the ties.
    """
    rank = ranks(scores)
    count = len(arranged.searchers)
    top, place, ties = (
        np.full(count, NOBODY, np.int64),
        np.full(count, NOBODY, np.int64),
        np.zeros(count, np.int64),
    )
    alike, gap = np.arange(len(arranged.places)), 0.0
    for rows in _blocks(arranged):
        begin = int(arranged.start[rows.start])
        found, same = _of_block(arranged, rows, scores)
        linked = np.flatnonzero(found.column >= 0)
        here, there = rows.start + linked, begin + found.column[linked]
        alike[begin : begin + len(same)] = begin + same
        place[here], top[here] = there, rank[arranged.patterns(here, there)]
        gap += found.gap
    has = place >= 0
    sizes = np.bincount(alike, minlength=len(alike))
    ties[has] = sizes[alike[place[has]]]
    nobody = np.full(count, NOBODY, np.int64)

    def is_tied(rows: Ints, places: Ints) -> Bools:
        return np.asarray(alike[places] == alike[place[rows]])

    return BestLinks(top, ties, place, nobody, nobody), is_tied, gap


def _of_block(arranged: BlockSortedRecords, rows: slice, scores: Floats) -> tuple[Assignment, Ints]:
    """Assign the candidates of one block; return also the first candidate with the same patterns as each."""
    from ...kernels.pairs import all_patterns

    begin, end = int(arranged.start[rows.start]), int(arranged.stop[rows.start])
    count, wide = rows.stop - rows.start, end - begin
    if count * wide <= MOST_CELLS:
        pattern = all_patterns(arranged.low[rows], arranged.high[rows], arranged.found, begin, end)
        return best_of_matrix(scores[pattern]), interchangeable(pattern)
    digests, first = Digests.of(wide), np.arange(wide)

    def patterns() -> Iterator[tuple[Ints, Any]]:
        for run in in_chunks(count, wide, CHUNK_CELLS):
            at = slice(rows.start + int(run[0]), rows.start + int(run[-1]) + 1)
            yield run, all_patterns(arranged.low[at], arranged.high[at], arranged.found, begin, end)

    def chunks() -> Iterator[Chunk]:
        return ((run, first, scores[pattern]) for run, pattern in patterns())

    def listed(searchers: Ints, places: Ints) -> Floats:
        return np.asarray(scores[arranged.patterns(rows.start + searchers, begin + places)])

    for run, pattern in patterns():
        digests.add(run, first, pattern.astype(np.float64))
    return optimal_of(ScoreBlock((count, wide), chunks, listed)), digests.alike(first)


def optimal_of(block: ScoreBlock, rough: Rounded | None = None) -> Assignment:
    """Return the best assignment of a block, the smaller side searching; `rough` has its scores, rounded."""
    count, wide = block.shape
    if count <= wide:
        return optimal(block, None if rough is None else rounded_block(rough, block))

    def chunks() -> Iterator[Chunk]:
        for rows, columns, scores in block.chunks():
            yield columns, rows, np.ascontiguousarray(scores.T)

    other = ScoreBlock((wide, count), chunks, lambda i, j: block.scores(j, i))
    return transpose_assignment(
        optimal(other, None if rough is None else rounded_block(rough.T, other)), count
    )


def _blocks(arranged: BlockSortedRecords) -> list[slice]:
    """Return the runs of searchers that share a block with candidates."""
    edges = np.flatnonzero(np.diff(arranged.start, prepend=NOBODY, append=NOBODY))
    empty = arranged.candidates == 0
    runs = [slice(int(a), int(b)) for a, b in pairwise(edges)]
    kept = []
    for run in runs:
        some = np.flatnonzero(~empty[run])
        if len(some):
            kept.append(slice(run.start + int(some[0]), run.start + int(some[-1]) + 1))
    return kept


def check_size(rows: int, columns: int) -> None:
    """Refuse an assignment that would take too much memory."""
    if rows * columns > MOST_CELLS:
        raise BadPlan(
            f"one-to-one assignment of {rows:,} records to {columns:,} in one block is too large: "
            "add a matching block, or leave the one-to-one assignment out"
        )


def interchangeable(pattern: Any) -> Ints:
    """Return for each candidate the first one that has its patterns."""
    columns = np.ascontiguousarray(pattern.T).view(np.dtype((np.void, pattern.dtype.itemsize * len(pattern))))
    _, first, inverse = np.unique(columns.ravel(), return_index=True, return_inverse=True)
    return np.asarray(first[inverse.ravel()])

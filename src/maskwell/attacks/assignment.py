"""One-to-one links: in each block the assignment of largest total score."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np

from ..errors import BadPlan
from ..table import Floats
from .arranging import Arranged, Best, ranks
from .contract import NOBODY, Bools, Ints

MOST_CELLS = 25_000_000


def assign(arranged: Arranged, scores: Floats) -> tuple[Best, Callable[[Ints, Ints], Bools]]:
    """Assign candidates to searchers, each at most once.

    Candidates that have the same pattern with every searcher of the block are interchangeable: these are the ties.
    """
    from ..kernels.pairs import all_patterns

    rank = ranks(scores)
    count = len(arranged.searchers)
    top, place, ties = (
        np.full(count, NOBODY, np.int64),
        np.full(count, NOBODY, np.int64),
        np.zeros(count, np.int64),
    )
    alike = np.arange(len(arranged.places))
    for rows in _blocks(arranged):
        begin, end = int(arranged.start[rows.start]), int(arranged.stop[rows.start])
        check_size(rows.stop - rows.start, end - begin)
        pattern = all_patterns(arranged.low[rows], arranged.high[rows], arranged.found, begin, end)
        chosen, found = _solved(scores[pattern])
        here = rows.start + chosen
        alike[begin:end] = begin + interchangeable(pattern)
        place[here], top[here] = begin + found, rank[pattern[chosen, found]]
    linked = place >= 0
    sizes = np.bincount(alike, minlength=len(alike))
    ties[linked] = sizes[alike[place[linked]]]
    nobody = np.full(count, NOBODY, np.int64)

    def is_tied(rows: Ints, places: Ints) -> Bools:
        return np.asarray(alike[places] == alike[place[rows]])

    return Best(top, ties, place, nobody, nobody), is_tied


def _blocks(arranged: Arranged) -> list[slice]:
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
            "add a matching block, or use assignment='best'"
        )


def _solved(scores: Floats) -> tuple[Ints, Ints]:
    from scipy.optimize import linear_sum_assignment

    rows, columns = linear_sum_assignment(scores, maximize=True)
    return np.asarray(rows, dtype=np.int64), np.asarray(columns, dtype=np.int64)


def interchangeable(pattern: Any) -> Ints:
    """Return for each candidate the first one that has its patterns."""
    columns = np.ascontiguousarray(pattern.T).view(np.dtype((np.void, pattern.dtype.itemsize * len(pattern))))
    _, first, inverse = np.unique(columns.ravel(), return_index=True, return_inverse=True)
    return np.asarray(first[inverse.ravel()])

"""Searchers and candidates sorted by block, and the two passes over their pairs."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from ..table import Floats
from .contract import NOBODY, Ints

WORD = 64
MOST_MARKED_FIELDS = 10  # beyond this a mask of the patterns each searcher has met is larger than it is worth
PAIRS_AT_ONCE = 4_000_000
SAME_SCORE = 1e-9


@dataclass(frozen=True, slots=True)
class Arranged:
    """Searchers and candidates sorted by block, ready for the kernels.

    `searchers` and `places` are the record numbers in sorted order, `place_of` the sorted place of each candidate;
    `low` and `high` are searchers x fields, `found` fields x candidates.
    """

    searchers: Ints
    places: Ints
    place_of: Ints
    low: Floats
    high: Floats
    found: Floats
    start: Ints
    stop: Ints

    @property
    def fields(self) -> int:
        """How many fields are compared."""
        return len(self.found)

    @property
    def candidates(self) -> Ints:
        """How many candidates each searcher has."""
        return np.asarray(self.stop - self.start)

    def chunks(self, rows: Ints | None = None) -> list[Ints | slice]:
        """Cut the searchers (or some of them) into runs of about equally many pairs."""
        ends = np.cumsum(self.candidates if rows is None else self.candidates[rows])
        pairs = int(ends[-1]) if len(ends) else 0
        cuts = np.searchsorted(ends, np.arange(PAIRS_AT_ONCE, pairs, PAIRS_AT_ONCE))
        edges = np.unique([0, *cuts, len(ends)])
        runs = [slice(int(a), int(b)) for a, b in pairwise(edges)]
        return runs if rows is None else [rows[run] for run in runs]  # type: ignore[return-value]


def arrange(
    bounds: tuple[Floats, Floats], found: Floats, blocks: tuple[Ints, Ints], orders: tuple[Ints, Ints]
) -> Arranged:
    """Sort both sides by block; within a block records stand in keyed orders, never in that of a file."""
    ours, theirs = blocks
    searchers, places = (order[_sorted(side[order])] for side, order in zip(blocks, orders, strict=True))
    place_of = np.empty(len(places), np.int64)
    place_of[places] = np.arange(len(places))
    sizes = np.bincount(theirs, minlength=int(max(ours.max(initial=0), theirs.max(initial=0))) + 1)
    ends = np.cumsum(sizes)
    mine = ours[searchers]
    start, stop = ends[mine] - sizes[mine], ends[mine]
    gathered = np.empty(found.shape)
    for f in range(len(found)):
        np.take(found[f], places, out=gathered[f])
    low, high = (np.take(side, searchers, axis=0) for side in bounds)
    return Arranged(searchers, places, place_of, low, high, gathered, start, stop)


def _sorted(blocks: Ints) -> Ints:
    """Sort block numbers, keeping the order within a block."""
    small = blocks.astype(np.uint16) if blocks.max(initial=0) < 2**16 else blocks
    return np.argsort(small, kind="stable")


def count_pairs(arranged: Arranged, *, marked: bool) -> tuple[Ints, Any]:
    """Count the pairs of each pattern, and mark for each searcher the patterns it met: one pass over the pairs."""
    from ..kernels.pairs import count_patterns

    width = arranged.fields
    words = max(1, (1 << width) // WORD) if marked and width <= MOST_MARKED_FIELDS else 0
    seen = np.zeros((len(arranged.searchers), words), np.uint64)

    def work(run: Any) -> Ints:
        counts = np.zeros(1 << width, np.int64)
        a = arranged
        count_patterns(a.low[run], a.high[run], a.found, a.start[run], a.stop[run], counts, seen[run])
        return counts

    parts = _threaded(work, arranged.chunks())
    return np.asarray(sum(parts, np.zeros(1 << width, np.int64))), seen


def _threaded(work: Callable[[Any], Any], runs: list[Any]) -> list[Any]:
    threads = min(os.cpu_count() or 1, len(runs))
    if threads <= 1:
        return [work(run) for run in runs]
    with ThreadPoolExecutor(threads) as pool:
        return list(pool.map(work, runs))


@dataclass(frozen=True, slots=True)
class Best:
    """For each searcher (in sorted order) the rank of its best candidates, how many, the first and the next best."""

    rank: Ints
    ties: Ints
    place: Ints
    next_rank: Ints
    next_place: Ints


def best_of(arranged: Arranged, rank: Ints, rows: Ints | None = None) -> Best:
    """Find the best candidates of the searchers, or of some of them."""
    from ..kernels.pairs import best_links

    count = len(arranged.searchers)
    out = [np.full(count, NOBODY, np.int64) for _ in range(5)]
    out[1][:] = 0

    def work(run: Any) -> None:
        a, mine = arranged, [np.empty(len(arranged.start[run]), np.int64) for _ in range(5)]
        best_links(a.low[run], a.high[run], a.found, a.start[run], a.stop[run], rank, *mine)
        for whole, part in zip(out, mine, strict=True):
            whole[run] = part

    _threaded(work, arranged.chunks(rows))
    return Best(*out)


def ranks(scores: Floats) -> Ints:
    """Rank scores from 0 on; scores that differ by rounding alone share a rank."""
    order = np.argsort(scores, kind="stable")
    steps = np.diff(scores[order]) > SAME_SCORE * max(1.0, float(np.abs(scores).max()))
    out = np.empty(len(scores), np.int64)
    out[order] = np.concatenate([[0], np.cumsum(steps)])
    return out


def best_seen(seen: Any, rank: Ints) -> Ints:
    """Return the highest rank among the patterns that each searcher has met; -1 where it met none."""
    out = np.full(len(seen), NOBODY, np.int64)
    waiting = np.flatnonzero(seen.any(axis=1))
    for pattern in np.argsort(-rank, kind="stable"):
        if not len(waiting):
            break
        met = (seen[waiting, pattern // WORD] >> np.uint64(pattern % WORD)) & np.uint64(1) == 1
        out[waiting[met]] = rank[pattern]
        waiting = waiting[~met]
    return out

"""Comparing pairs of records: each field agrees when the found value lies between the searcher's two bounds.

Candidates are sorted by block, one contiguous row a field; a searcher's candidates are those from `start` to `stop`.
The pattern of a pair has bit f set where field f agrees. Nothing here grows with the number of pairs.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from numba import njit

from . import announce

announce(__file__)

TILE = 512
WORD = 64
NONE = -1

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Words = npt.NDArray[np.uint64]
Patterns = npt.NDArray[np.uint32]


@njit(cache=True, nogil=True, inline="always")
def _compare(low: Floats, high: Floats, found: Floats, begin: int, count: int, pattern: Patterns) -> None:
    """Put the patterns of a searcher with some consecutive candidates into `pattern`."""
    column = found[0, begin : begin + count]
    below, above = low[0], high[0]
    for j in range(count):
        pattern[j] = np.uint32((column[j] >= below) & (column[j] <= above))
    for f in range(1, len(low)):
        column = found[f, begin : begin + count]
        below, above, shift = low[f], high[f], np.uint32(f)
        for j in range(count):
            pattern[j] |= np.uint32((column[j] >= below) & (column[j] <= above)) << shift


@njit(cache=True, nogil=True)
def count_patterns(
    low: Floats, high: Floats, found: Floats, start: Ints, stop: Ints, counts: Ints, seen: Words
) -> None:
    """Add the pairs of each pattern to `counts`, and mark in `seen` (searchers x words) the patterns each one met.

    With no words in `seen` nothing is marked.
    """
    pattern = np.empty(TILE, np.uint32)
    words = seen.shape[1]
    for i in range(len(low)):
        mask = np.uint64(0)
        for begin in range(start[i], stop[i], TILE):
            count = min(TILE, stop[i] - begin)
            _compare(low[i], high[i], found, begin, count, pattern)
            if words == 1:
                for j in range(count):
                    counts[pattern[j]] += 1
                    mask |= np.uint64(1) << np.uint64(pattern[j])
            else:
                for j in range(count):
                    counts[pattern[j]] += 1
                    if words:
                        seen[i, pattern[j] // WORD] |= np.uint64(1) << np.uint64(pattern[j] % WORD)
        if words == 1:
            seen[i, 0] |= mask


@njit(cache=True, nogil=True)
def best_links(
    low: Floats,
    high: Floats,
    found: Floats,
    start: Ints,
    stop: Ints,
    rank: Ints,
    best: Ints,
    ties: Ints,
    first: Ints,
    runner_up: Ints,
    second: Ints,
) -> None:
    """Find for each searcher the candidates of highest rank: rank, how many, the first, and the best other one.

    `rank` orders the patterns; `first` and `second` are places among the candidates, -1 where there is none.
    """
    pattern = np.empty(TILE, np.uint32)
    for i in range(len(low)):
        top, count_top, place, next_rank, next_place = NONE, 0, NONE, NONE, NONE
        for begin in range(start[i], stop[i], TILE):
            count = min(TILE, stop[i] - begin)
            _compare(low[i], high[i], found, begin, count, pattern)
            for j in range(count):
                this = rank[pattern[j]]
                if this <= next_rank and this < top:
                    continue
                if this > top:
                    next_rank, next_place = top, place
                    top, count_top, place = this, 1, begin + j
                elif this == top:
                    count_top += 1
                    if next_rank < top:
                        next_rank, next_place = this, begin + j
                else:
                    next_rank, next_place = this, begin + j
        best[i], ties[i], first[i], runner_up[i], second[i] = top, count_top, place, next_rank, next_place


@njit(cache=True, nogil=True)
def all_patterns(low: Floats, high: Floats, found: Floats, begin: int, end: int) -> Patterns:
    """Return searchers x candidates: the pattern of every pair with the candidates from `begin` to `end`."""
    out = np.zeros((len(low), end - begin), np.uint32)
    for i in range(len(low)):
        if end > begin:
            _compare(low[i], high[i], found, begin, end - begin, out[i])
    return out


@njit(cache=True, nogil=True)
def paired_patterns(low: Floats, high: Floats, found: Floats, candidate: Ints) -> Patterns:
    """Return the pattern of each searcher with one candidate."""
    out = np.zeros(len(low), np.uint32)
    for i in range(len(low)):
        for f in range(low.shape[1]):
            value = found[f, candidate[i]]
            out[i] |= np.uint32((value >= low[i, f]) & (value <= high[i, f])) << np.uint32(f)
    return out

"""Comparing pairs of records: each field agrees when the found value lies between the searcher's two bounds.

The pattern of a pair has bit f set where field f agrees: the comparison vector of Fellegi and Sunter (1969), with the
tolerance |t - p| <= q |t| of Moore (1996), section III, or any other in the bounds. Candidates are sorted by block, one
contiguous row a field; a searcher's candidates are those from `start` to `stop`. Nothing here grows with the number of
pairs. `attacks/linkage/assignment` compares with it; `attacks/linkage/sorted_pairs` decides where sorted columns find
the same counts sooner.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from numba import njit

from . import announce

announce(__file__)

TILE = 512  # candidates compared at once: their patterns stay near the processor
WORD = 64  # patterns that one word marks
NONE = -1  # no candidate
PLACE_BITS = 32  # of a number that holds a rank and a place

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


@njit(cache=True, nogil=True, inline="always")
def _place(ranked: int, end: int) -> int:
    """Return the place of a candidate from its rank and the number of candidates after it; -1 of -1."""
    return NONE if ranked < 0 else end - 1 - (ranked & ((1 << PLACE_BITS) - 1))


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
    pattern, ranked = np.empty(TILE, np.uint32), np.empty(TILE, np.int64)
    for i in range(len(low)):
        end, top, tied = stop[i], NONE, 0
        # A rank with the number of candidates after it is one number, larger for better and then for earlier ones: the
        # two largest are found without a branch, which in small blocks costs more than the comparison.
        largest, next_one = NONE, NONE
        for begin in range(start[i], end, TILE):
            count = min(TILE, end - begin)
            _compare(low[i], high[i], found, begin, count, pattern)
            for j in range(count):
                ranked[j] = rank[pattern[j]]
                this = (ranked[j] << PLACE_BITS) | (end - begin - j - 1)
                next_one = max(next_one, min(largest, this))
                largest = max(largest, this)
            if largest >> PLACE_BITS > top:
                top, tied = largest >> PLACE_BITS, 0
            for j in range(count):
                tied += ranked[j] == top
        best[i], ties[i], first[i] = top, tied, _place(largest, end)
        runner_up[i], second[i] = next_one >> PLACE_BITS, _place(next_one, end)


@njit(cache=True, nogil=True)
def all_patterns(low: Floats, high: Floats, found: Floats, begin: int, end: int) -> Patterns:
    """Return searchers x candidates: the pattern of every pair with the candidates from `begin` to `end`."""
    out = np.zeros((len(low), end - begin), np.uint32)
    for i in range(len(low)):
        if end > begin:
            _compare(low[i], high[i], found, begin, end - begin, out[i])
    return out

"""All pairs of a small job compared by numpy: that is done before a compiler would be loaded.

A tile has searchers with equally many candidates: searchers x candidates, the pattern of each pair. The answers are
those of `kernels.pairs`, to the bit.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from ...table import Floats
from ..protocol import NOBODY, Ints

PAIRS_IN_A_TILE = 65_536  # their values stay near the processor


@dataclass(frozen=True, slots=True)
class Tile:
    """Some searchers (by their place in the sorted order), and their patterns with all their candidates."""

    searchers: Ints
    pattern: Any


def tiles_of(low: Floats, high: Floats, found: Floats, start: Ints, stop: Ints) -> list[Tile]:
    """Compare every searcher with all its candidates, those from `start` to `stop`."""
    made = []
    for width, searchers in _alike(stop - start):
        windows = sliding_window_view(found, width, axis=1)
        step = max(1, PAIRS_IN_A_TILE // width)
        runs = (searchers[i : i + step] for i in range(0, len(searchers), step))
        made += [Tile(some, _patterns(low[some], high[some], windows, start[some])) for some in runs]
    return made


def _alike(widths: Ints) -> Iterator[tuple[int, Ints]]:
    """Put searchers with equally many candidates together; those without any are left out."""
    order = np.argsort(widths, kind="stable")
    edges = np.flatnonzero(np.diff(widths[order], prepend=NOBODY, append=NOBODY))
    for begin, end in pairwise(edges.tolist()):
        width = int(widths[order[begin]])
        if width:
            yield width, order[begin:end]


def _patterns(low: Floats, high: Floats, windows: Any, start: Ints) -> Any:
    pattern = np.zeros((len(start), windows.shape[2]), np.min_scalar_type((1 << len(windows)) - 1))
    for f in reversed(range(len(windows))):
        values = windows[f][start]
        agree = values >= low[:, f, None]
        agree &= values <= high[:, f, None]
        pattern += pattern
        pattern |= agree.view(np.uint8)
    return pattern


def count_tiles(tiles: Sequence[Tile], patterns: int) -> Ints:
    """Count the pairs of each pattern."""
    counts, step = np.zeros(patterns, np.int64), max(PAIRS_IN_A_TILE, patterns)
    found = np.concatenate([tile.pattern.ravel() for tile in tiles]) if tiles else np.empty(0, np.uint8)
    for i in range(0, len(found), step):
        counts += np.bincount(found[i : i + step], minlength=patterns)
    return counts


def best_in_tiles(tiles: Sequence[Tile], start: Ints, rank: Ints) -> list[Ints]:
    """Find for each searcher the candidates of highest rank: rank, how many, the first, and the best other one.

    As `kernels.pairs.best_links`: -1 where there is none.
    """
    best, ties, first, runner_up, second = out = [np.full(len(start), NOBODY, np.int64) for _ in range(5)]
    ties[:] = 0
    narrow = rank.astype(np.min_scalar_type(-int(rank.max()) - 1))
    for tile in tiles:
        here, everyone, ranked = tile.searchers, np.arange(len(tile.searchers)), narrow.take(tile.pattern)
        place = ranked.argmax(axis=1)
        top = ranked[everyone, place]
        best[here], first[here] = top, start[here] + place
        ties[here] = np.count_nonzero(ranked == top[:, None], axis=1)
        ranked[everyone, place] = NOBODY
        place = ranked.argmax(axis=1)
        left = ranked[everyone, place]
        runner_up[here] = left
        second[here] = np.where(left >= 0, start[here] + place, NOBODY)
    return out

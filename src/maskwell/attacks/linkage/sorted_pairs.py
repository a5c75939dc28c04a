"""Searchers and candidates sorted by block, and the two passes over their pairs.

Pass 1 counts the 2^k patterns, pass 2 finds for each searcher the candidates of the best-ranked pattern and their ties.
Own derivation: with only 2^k scores, ranks of patterns are all that a pair needs, and a searcher whose marked patterns
show its best rank is looked up only where links are named. numpy compares up to FEW_COMPARISONS values, else
`kernels.pairs`. Used by `matcher`; by `field_choice` on samples (Winkler 1988 estimates on counts as well).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from ...table import Floats
from ..protocol import NOBODY, Ints
from ..threads import map_on_threads

WORD = 64  # patterns that one word marks
MOST_MARKED_FIELDS = 10  # beyond this a mask of the patterns each searcher has met is larger than it is worth
PAIRS_AT_ONCE = 4_000_000  # compared in one go by numpy
FEW_COMPARISONS = 50_000_000  # numpy makes them in less time than it takes to load the compiler
SAME_SCORE = 1e-9  # of the largest score: a smaller difference is rounding


@dataclass(frozen=True)
class BlockSortedRecords:
    """Searchers and candidates sorted by block, ready for the kernels.

    `searchers` and `places` are the record numbers of searchers and candidates in sorted order; `low` and `high` are
    searchers x fields, `found` fields x candidates.
    """

    searchers: Ints
    places: Ints
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

    @cached_property
    def row_of(self) -> Ints:
        """The sorted place of each searcher."""
        return _inverse(self.searchers)

    @cached_property
    def place_of(self) -> Ints:
        """The sorted place of each candidate."""
        return _inverse(self.places)

    @cached_property
    def tiles(self) -> list[Tile] | None:
        """The patterns of all pairs, where these are few; else nothing, and the pairs are passed over one by one."""
        if int(self.candidates.sum()) * self.fields > FEW_COMPARISONS:
            return None
        return tiles_of(self.low, self.high, self.found, self.start, self.stop)

    def patterns(self, searchers: Ints, places: Ints) -> Ints:
        """Return the pattern of each searcher (by its sorted place) with one candidate, or of one with several."""
        pattern = np.zeros(len(places), np.int64)
        low, high = self.low[searchers], self.high[searchers]
        for f, values in enumerate(self.found):
            found = values[places]
            pattern |= ((found >= low[:, f]) & (found <= high[:, f])).astype(np.int64) << f
        return pattern

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
) -> BlockSortedRecords:
    """Sort both sides by block; within a block records stand in keyed orders, never in that of a file."""
    ours, theirs = blocks
    count = int(max(ours.max(initial=0), theirs.max(initial=0))) + 1
    searchers, places = (_block_order(side, order) for side, order in zip(blocks, orders, strict=True))
    sizes = np.bincount(theirs, minlength=count)
    ends = np.cumsum(sizes)
    mine = ours[searchers]
    start, stop = ends[mine] - sizes[mine], ends[mine]
    gathered = np.empty(found.shape)
    for f in range(len(found)):
        np.take(found[f], places, out=gathered[f], mode="clip")  # in place; "raise" would gather beside it
    low, high = (np.take(side, searchers, axis=0) for side in bounds)
    return BlockSortedRecords(searchers, places, low, high, gathered, start, stop)


def _block_order(blocks: Ints, order: Ints) -> Ints:
    """Sort records by the number of their block, keeping their order within a block.

    Numbers that carry their places are sorted faster than places by numbers.
    """
    bits = len(order).bit_length()
    carried = (blocks[order] << bits) | np.arange(len(order))
    carried.sort()
    carried &= (1 << bits) - 1
    return np.asarray(order[carried])


def _inverse(numbers: Ints) -> Ints:
    places = np.empty(len(numbers), np.int64)
    places[numbers] = np.arange(len(numbers))
    return places


def count_pairs(arranged: BlockSortedRecords, *, marked: bool) -> tuple[Ints, Any]:
    """Count the pairs of each pattern, and mark for each searcher the patterns it met: one pass over the pairs."""
    width = arranged.fields
    if not marked and arranged.tiles is not None:
        return count_tiles(arranged.tiles, 1 << width), np.zeros((len(arranged.searchers), 0), np.uint64)
    from ...kernels.pairs import count_patterns

    words = max(1, (1 << width) // WORD) if marked and width <= MOST_MARKED_FIELDS else 0
    seen = np.zeros((len(arranged.searchers), words), np.uint64)

    def work(run: Any) -> Ints:
        counts = np.zeros(1 << width, np.int64)
        a = arranged
        count_patterns(a.low[run], a.high[run], a.found, a.start[run], a.stop[run], counts, seen[run])
        return counts

    parts = map_on_threads(work, arranged.chunks())
    return np.asarray(sum(parts, np.zeros(1 << width, np.int64))), seen


@dataclass(frozen=True, slots=True)
class BestLinks:
    """For each searcher (in sorted order) the rank of its best candidates, how many, the first and the next best."""

    rank: Ints
    ties: Ints
    place: Ints
    next_rank: Ints
    next_place: Ints


def best_of(arranged: BlockSortedRecords, rank: Ints, rows: Ints | None = None) -> BestLinks:
    """Find the best candidates of the searchers, or of some of them."""
    if rows is None and arranged.tiles is not None:
        return BestLinks(*best_in_tiles(arranged.tiles, arranged.start, rank))
    from ...kernels.pairs import best_links

    count = len(arranged.searchers)
    out = [np.full(count, NOBODY, np.int64) for _ in range(5)]
    out[1][:] = 0

    def work(run: Any) -> None:
        a, mine = arranged, [np.empty(len(arranged.start[run]), np.int64) for _ in range(5)]
        best_links(a.low[run], a.high[run], a.found, a.start[run], a.stop[run], rank, *mine)
        for whole, part in zip(out, mine, strict=True):
            whole[run] = part

    map_on_threads(work, arranged.chunks(rows))
    return BestLinks(*out)


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


# All pairs of a small job compared by numpy: that is done before a compiler would be loaded.
#
# A tile has searchers with equally many candidates: searchers x candidates, the pattern of each pair. The answers
# are those of `kernels.pairs`, to the bit.


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

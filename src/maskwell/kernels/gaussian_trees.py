"""Trees over the blocks of some points whose leaves are tiles, and where a query stands in them.

k-d trees (Friedman, Bentley and Finkel 1977), cut at the median of the longest side, with up to FAN children for each
node and the largest offset of each child beside its box, which is what `gaussian_sums` bounds scores by. Grown by
`attacks/bayes/pruned_sums/trees`, once for each file of points.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from numba import njit

from . import announce
from .gaussian_tiles import WIDE, keys_below, lean, padded_width
from .kdtree import FAN, NONE, divide, enclose, sort

announce(__file__)

NOWHERE = -1e30  # offset of a place in a tile that holds no point

Floats = npt.NDArray[np.float64]
Singles = npt.NDArray[np.float32]
Ints = npt.NDArray[np.int64]


class Grove(NamedTuple):
    """Trees whose leaves are tiles; coordinates have zeros after them (`padded_width`).

    Node -1 - t is tile t; a node from 0 on has up to FAN children (`kids`), lane by lane: the low and then the high
    `sides` of their boxes (nodes x 2 coordinates x FAN), `peak`, no less than any offset in them, and `sizes`, their
    points (0: no child). `roots` are those of the blocks.

    A tile has coordinates and then offsets (tiles x (coordinates + 1) x WIDE), `exact` and `single`: these from the
    tile's middle and its peak. `about` has the middle, the peak, the half diagonal, and how many points stand at the
    first place: 1, or all of them where they and their offsets are the same. The numbers of its points, ascending,
    stand in `order` from `start` on (-1: no tile; fewer are needed where many points are the same).
    """

    roots: Ints
    kids: Ints
    sides: Floats
    peak: Floats
    sizes: Singles
    exact: Floats
    single: Singles
    about: Floats
    start: Ints
    order: Ints


class GroveWorkspace(NamedTuple):
    """A grove while it grows, with the low and high sides of a box, and the ranges of points that wait.

    A range that waits has its first place, the one after its last, and the lane of its parent (-1 - block: none);
    one that is being halved also into how many pieces.
    """

    grove: Grove
    box: Floats
    waiting: Ints
    halves: Ints


@njit(cache=True, nogil=True)
def _allocate_grove(number: Ints, begin: Ints, end: Ints, fields: int) -> GroveWorkspace:
    """Make room for a grove: nodes have two children at least."""
    tiles, across, blocks = 0, padded_width(fields), len(begin)
    for b in range(blocks):
        tiles += (end[b] - begin[b] + WIDE - 1) // WIDE
    grove = Grove(
        np.empty(blocks, np.int64), np.full(tiles * FAN, NONE), np.zeros(tiles * FAN * 2 * across),
        np.full(tiles * FAN, -np.inf), np.zeros(tiles * FAN, np.float32),
        np.zeros(tiles * (across + 1) * WIDE), np.zeros(tiles * (across + 1) * WIDE, np.float32),
        np.zeros((tiles, across + 3)), np.full(tiles, NONE), number,
    )  # fmt: skip
    return GroveWorkspace(
        grove,
        np.empty((2, fields)),
        np.empty((tiles + blocks, 3), np.int64),
        np.empty((2 * FAN, 4), np.int64),
    )


@njit(cache=True, nogil=True)
def _hang(growing: GroveWorkspace, here: Ints, name: int, peak: float) -> None:
    """Write a node or tile into the lane of its parent, with its box."""
    grove, lane, fields = growing.grove, here[2], growing.box.shape[1]
    if lane < 0:
        grove.roots[-1 - lane] = name
        return
    across = padded_width(fields)
    grove.kids[lane], grove.peak[lane], grove.sizes[lane] = name, peak, np.float32(here[1] - here[0])
    place = lane // FAN * 2 * across * FAN + lane % FAN
    for k in range(fields):
        grove.sides[place + k * FAN] = growing.box[0, k]
        grove.sides[place + (across + k) * FAN] = growing.box[1, k]


@njit(cache=True, nogil=True)
def _fill(
    growing: GroveWorkspace, tile: int, rows: Floats, offsets: Floats, here: Ints, is_alike: bool, peak: float
) -> None:
    """Write one tile; of points that are all the same only the first stands in it."""
    grove, size, fields = growing.grove, 1 if is_alike else here[1] - here[0], rows.shape[1]
    across, begin, square = padded_width(fields), here[0], 0.0
    start = tile * (across + 1) * WIDE
    for k in range(fields):
        low, high = growing.box[0, k], growing.box[1, k]
        grove.about[tile, k], square = low / 2 + high / 2, square + (high / 2 - low / 2) ** 2
        for j in range(WIDE):
            value = rows[begin + min(j, size - 1), k]
            grove.exact[start + k * WIDE + j] = value
            grove.single[start + k * WIDE + j] = np.float32(value - grove.about[tile, k])
    for j in range(WIDE):
        offset = offsets[grove.order[begin + j]] if j < size else NOWHERE
        grove.exact[start + across * WIDE + j] = offset
        grove.single[start + across * WIDE + j] = np.float32(offset - peak)
    grove.about[tile, across], grove.about[tile, across + 1] = peak, np.sqrt(square)
    grove.about[tile, across + 2], grove.start[tile] = here[1] - begin if is_alike else 1, begin


@njit(cache=True, nogil=True)
def _branch(growing: GroveWorkspace, node: int, rows: Floats, here: Ints, waits: int) -> int:
    """Halve a range into pieces that fill their nodes, and let them wait; return how many wait.

    All but the last have WIDE times a power of FAN points.
    """
    tiles, unit, halves, waiting = (here[1] - here[0] + WIDE - 1) // WIDE, 1, growing.halves, growing.waiting
    while unit * FAN < tiles:
        unit *= FAN
    halves[0, 0], halves[0, 1], halves[0, 2], height = here[0], here[1], node * FAN, 1
    halves[0, 3] = (tiles + unit - 1) // unit
    while height > 0:
        height -= 1
        a, b, lane, pieces = halves[height]
        if pieces == 1:
            waiting[waits, 0], waiting[waits, 1], waiting[waits, 2] = a, b, lane
            waits += 1
            continue
        middle, side = a + pieces // 2 * unit * WIDE, enclose(rows, a, b, growing.box[0], growing.box[1])
        if side != NONE:
            divide(rows, growing.grove.order, a, b, middle, side)
        halves[height, 1], halves[height, 3] = middle, pieces // 2
        halves[height + 1, 0], halves[height + 1, 1] = middle, b
        halves[height + 1, 2], halves[height + 1, 3] = lane + pieces // 2, pieces - pieces // 2
        height += 2
    return waits


@njit(cache=True, nogil=True)
def grow(rows: Floats, number: Ints, begin: Ints, end: Ints, offsets: Floats) -> Grove:
    """Grow a tree for each block of rows, from `begin` to `end`; rows and their numbers are sorted in place.

    `offsets` are by number.
    """
    growing, nodes, tiles, waits = _allocate_grove(number, begin, end, rows.shape[1]), 0, 0, 0
    waiting, box = growing.waiting, growing.box
    for block in range(len(begin)):
        waiting[waits, 0], waiting[waits, 1], waiting[waits, 2] = begin[block], end[block], -1 - block
        waits += 1
    here = np.empty(3, np.int64)
    while waits > 0:
        waits -= 1
        here[:] = waiting[waits]
        is_alike, peak = enclose(rows, here[0], here[1], box[0], box[1]) == NONE, offsets[number[here[0]]]
        for place in range(here[0] + 1, here[1]):
            is_alike = is_alike and offsets[number[place]] == peak
            peak = max(peak, offsets[number[place]])
        if here[1] - here[0] > WIDE and not is_alike:
            _hang(growing, here, nodes, peak)
            waits = _branch(growing, nodes, rows, here, waits)
            nodes += 1
            continue
        _hang(growing, here, -1 - tiles, peak)
        sort(rows, number, here[0], here[1])
        _fill(growing, tiles, rows, offsets, here, is_alike, peak)
        tiles += 1
    return growing.grove


@lean()
def _nearest(kids: Ints, count: Singles, node: int, below: Floats) -> int:
    """Return the child of highest key."""
    best = 0
    for j in range(FAN):
        if count[node * FAN + j] > 0 and below[0, j] > below[0, best]:
            best = j
    return int(kids[node * FAN + best])


@njit(cache=True, nogil=True)
def locate(grove: Grove, queries: Floats, roots: Ints) -> Ints:
    """Return for each query the tile (-1: no tree) that is found by always going nearer."""
    kids, sides, count, first = grove.kids, grove.sides, grove.sizes, grove.roots
    out, query, level = (
        np.empty(len(queries), np.int64),
        np.zeros(padded_width(queries.shape[1])),
        np.zeros(len(kids)),
    )
    below, mass = np.empty((1, FAN)), np.empty(FAN, np.float32)
    for i in range(len(queries)):
        for k in range(queries.shape[1]):
            query[k] = queries[i, k]
        node = first[roots[i]] if roots[i] >= 0 else 0
        while node >= 0 and roots[i] >= 0:
            keys_below(sides, level, count, node, query, 0.0, below, mass)
            node = _nearest(kids, count, node, below)
        out[i] = -1 - node if roots[i] >= 0 else NONE
    return out

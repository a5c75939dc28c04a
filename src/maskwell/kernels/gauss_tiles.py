"""Points in tiles of WIDE, each the leaf of a tree, and sums of exp(offset - |point - query|^2 / 2) over a tile.

A tile is summed in double precision, or in single precision from its own middle. In single precision the exponent of a
point is off by at most `single_error`: coordinates are rounded relative to the tile's middle, which is as near to the
query as the tile's own points but for its half diagonal h, so with u = 2^-24, d the distance and p coordinates

    |rounded d^2 - d^2| <= u (4 d^2 + 4 d h + (p + 1) d^2),    products and sums included, to first order in u,

half of it in the exponent; offset, base and their sums add u times a few of their sizes, the exponential 1e-6.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from numba import njit

from .forest import ALIKE, FAN, NONE, Forest

WIDE = 32  # points of a tile
ACROSS = 4  # coordinates at a time
FLUSHED = 8  # tiles that are added up in single precision
NOWHERE = -1e30  # offset of a place in a tile that holds no point
UNIT = 2.0**-24
EXPONENTIAL = 1e-6  # relative error of exponentials and sums of FLUSHED in single precision, more than there is
SURE = 1e-9  # the least that is left when a share is taken away from 1

SHIFT_64, SHIFT_32 = 1.5 * 2.0**52, np.float32(1.5 * 2.0**23)
LOG2_HIGH, LOG2_LOW = 6.93147180369123816490e-01, 1.90821492927058770002e-10
HIGH_32, LOW_32 = np.float32(0.693359375), np.float32(-2.12194440e-4)
PER_LOG2 = 1.4426950408889634
PER_LOG2_32, HALF = np.float32(PER_LOG2), np.float32(0.5)
LEAST_64, LEAST_32, MOST_32 = -700.0, np.float32(-80.0), np.float32(70.0)
T2, T3, T4, T5 = np.float32(1 / 2), np.float32(1 / 6), np.float32(1 / 24), np.float32(1 / 120)
T6, ONE, ZERO = np.float32(1 / 720), np.float32(1), np.float32(0)

Floats = npt.NDArray[np.float64]
Singles = npt.NDArray[np.float32]
Ints = npt.NDArray[np.int64]


@njit(cache=True, nogil=True, _nrt=False, fastmath={"contract"})
def exp_64(x: float) -> float:
    """Return exp(x) for x up to 700, in a form that compilers do side by side: 2^k times Taylor's polynomial.

    The remainder of degree 14 at |r| <= log(2) / 2 is below 2^-53. Below -700 it is exp(-700).
    """
    x = max(x, LEAST_64)
    shifted = x * PER_LOG2 + SHIFT_64
    k = shifted - SHIFT_64
    r = (x - k * LOG2_HIGH) - k * LOG2_LOW
    p = 1 / 6227020800
    p = p * r + 1 / 479001600
    p = p * r + 1 / 39916800
    p = p * r + 1 / 3628800
    p = p * r + 1 / 362880
    p = p * r + 1 / 40320
    p = p * r + 1 / 5040
    p = p * r + 1 / 720
    p = p * r + 1 / 120
    p = p * r + 1 / 24
    p = p * r + 1 / 6
    p = p * r + 1 / 2
    p = p * r + 1
    p = p * r + 1
    return p * np.int64((np.float64(shifted).view(np.int64) + 1023) << 52).view(np.float64)


@njit(cache=True, nogil=True, _nrt=False, fastmath={"contract"})
def exp_32(x: np.float32) -> np.float32:
    """Return exp(x) in single precision for x up to 80, as `exp_64` does; below -80 it is exp(-80)."""
    x = max(x, LEAST_32)
    shifted = x * PER_LOG2_32 + SHIFT_32
    k = shifted - SHIFT_32
    r = (x - k * HIGH_32) - k * LOW_32
    p = T6 * r + T5
    p = p * r + T4
    p = p * r + T3
    p = p * r + T2
    p = p * r + ONE
    p = p * r + ONE
    return p * np.int32((np.float32(shifted).view(np.int32) + np.int32(127)) << np.int32(23)).view(np.float32)


@njit(cache=True, nogil=True, _nrt=False)
def single_error(fields: int, half: float, diagonal: float, other: float) -> float:
    """Bound the error of an exponent in single precision, d^2 / 2 being at most `half`.

    `diagonal` is the half diagonal of the tile, `other` the size of base and value; offsets lie at most `half` below
    the tile's peak. The tenth on top is more than all second orders.
    """
    first = (fields + 10) * half + 2 * diagonal * np.sqrt(2 * half) + 2 * other
    return 1.1 * UNIT * first + EXPONENTIAL


class Grove(NamedTuple):
    """Trees whose leaves are tiles; coordinates have zeros after them (`padded`).

    Node -1 - t is tile t; a node from 0 on has up to FAN children (`kids`), lane by lane: the low and then the high
    `sides` of their boxes (nodes x 2 coordinates x FAN), `peak`, no less than any offset in them, and `count`, their
    points (0: no child). `roots` are those of the blocks.

    A tile has coordinates and then offsets (tiles x (coordinates + 1) x WIDE), `exact` and `single`: these from the
    tile's middle and its peak. `about` has the middle, the peak, the half diagonal, and how many points stand at the
    first place: 1, or all of them where they are the same. The numbers of its points, ascending, stand in `order` from
    `start` on.
    """

    roots: Ints
    kids: Ints
    sides: Floats
    peak: Floats
    count: Singles
    exact: Floats
    single: Singles
    about: Floats
    start: Ints
    order: Ints


@njit(cache=True, nogil=True)
def _named(child: Ints) -> tuple[Ints, int, int]:
    """Return what each node of a forest is called in a grove, and how many nodes and tiles that makes."""
    name, nodes, tiles = np.empty(len(child), np.int64), 0, 0
    for node in range(len(child)):
        if child[node] >= 0:
            name[node], nodes = nodes, nodes + 1
        else:
            name[node], tiles = -1 - tiles, tiles + 1
    return name, nodes, tiles


@njit(cache=True, nogil=True, inline="always")
def padded(fields: int) -> int:
    """Return the number of coordinates with the zeros after them."""
    return max(ACROSS * ((fields + ACROSS - 1) // ACROSS), ACROSS)


@njit(cache=True, nogil=True)
def _fill_tile(
    rows: Floats, offsets: Floats, repeat: int, exact: Floats, single: Singles, about: Floats
) -> None:
    """Write one tile: rows and offsets are those of its points."""
    size, fields, across, peak, square = len(rows), rows.shape[1], len(exact) - 1, -np.inf, 0.0
    for j in range(size):
        peak = max(peak, offsets[j])
    for k in range(fields):
        low, high = rows[0, k], rows[0, k]
        for j in range(size):
            low, high = min(low, rows[j, k]), max(high, rows[j, k])
        about[k], square = low / 2 + high / 2, square + (high / 2 - low / 2) ** 2
        for j in range(WIDE):
            exact[k, j] = rows[min(j, size - 1), k]
            single[k, j] = np.float32(exact[k, j] - about[k])
    for j in range(WIDE):
        exact[across, j] = offsets[j] if j < size else NOWHERE
        single[across, j] = np.float32(offsets[j] - peak if j < size else NOWHERE)
    about[across], about[across + 1], about[across + 2] = peak, np.sqrt(square), repeat


@njit(cache=True, nogil=True)
def _fill_node(
    forest: Forest, node: int, name: Ints, offsets: Floats, kids: Ints, sides: Floats, peak: Floats, count: Singles
) -> None:
    """Write the children of one node, side by side."""
    begin, size, fields = forest.child[node], forest.end[node] - forest.child[node], len(forest.middle)
    for j in range(size):
        first, stop = forest.first[begin + j], forest.stop[begin + j]
        kids[j], count[j] = name[begin + j], np.float32(stop - first)
        for place in range(first, stop):
            peak[j] = max(peak[j], offsets[forest.number[place]])
        for k in range(fields):
            place = 2 * fields * begin + k * size + j
            sides[k, j], sides[k + len(sides) // 2, j] = forest.boxes[place], forest.boxes[place + fields * size]


@njit(cache=True, nogil=True)
def in_tiles(forest: Forest, rows: Floats, offsets: Floats, blocks: int) -> Grove:
    """Lay out a forest with leaves of at most WIDE points; `rows` (in its order) are its points, offsets by number."""
    across, grown = padded(rows.shape[1]), blocks
    for node in range(len(forest.child)):
        if node < grown and forest.child[node] >= 0:
            grown = forest.end[node]
    name, nodes, tiles = _named(forest.child[:grown])
    kids, count = np.full((nodes, FAN), NONE), np.zeros((nodes, FAN), np.float32)
    sides, peak = np.zeros((nodes, 2 * across, FAN)), np.full((nodes, FAN), -np.inf)
    exact, single = np.zeros((tiles, across + 1, WIDE)), np.zeros((tiles, across + 1, WIDE), np.float32)
    about, begin = np.zeros((tiles, across + 3)), np.empty(tiles, np.int64)
    for node in range(grown):
        this, first, stop = name[node], forest.first[node], forest.stop[node]
        if this >= 0:
            _fill_node(forest, node, name, offsets, kids[this], sides[this], peak[this], count[this])
            continue
        tile, alike = -1 - this, forest.child[node] == ALIKE
        size, repeat = 1 if alike else stop - first, stop - first if alike else 1
        begin[tile], theirs = first, offsets[forest.number[first : first + size]]
        _fill_tile(rows[first : first + size], theirs, repeat, exact[tile], single[tile], about[tile])
    flat = kids.ravel(), sides.ravel(), peak.ravel(), count.ravel(), exact.ravel(), single.ravel()
    return Grove(name[:blocks].copy(), *flat, about, begin, forest.number)


# Loops run over the width of `room`, not over a constant: compilers unroll those instead of working side by side.
# Four coordinates are taken at a time; there are zeros up to a multiple of it.


@njit(cache=True, nogil=True, _nrt=False)
def values_64(exact: Floats, tile: int, query: Floats, least: float, room: Floats) -> int:
    """Put the scores of a tile into the first row of `room`, the same to the last bit as one by one, and return how many
    are not below the least.
    """
    wide, passing = np.uintp(room.shape[1]), 0
    at = np.uintp(tile * (len(query) + 1)) * wide
    for j in range(wide):
        room[0, j] = 0.0
    for k in range(0, len(query), 2):
        a, b = query[k], query[k + 1]
        for j in range(wide):
            s, t = exact[at + j] - a, exact[at + wide + j] - b
            room[0, j] = (room[0, j] + s * s) + t * t
        at += wide + wide
    for j in range(wide):
        room[0, j] = exact[at + j] - 0.5 * room[0, j]
        passing += room[0, j] >= least
    return passing


@njit(cache=True, nogil=True, _nrt=False, fastmath={"contract"}, error_model="numpy")
def add_64(room: Floats, ref: float, scale: float) -> None:
    """Add the weights of scores to the second row: e / (1 - e scale) of e = exp(score - ref)."""
    wide, share = np.uintp(room.shape[1]), -scale
    if scale > 0:
        for j in range(wide):
            e = exp_64(room[0, j] - ref)
            room[1, j] += e / max(1.0 + e * share, SURE)
    else:
        for j in range(wide):
            room[1, j] += exp_64(room[0, j] - ref)


@njit(cache=True, nogil=True, _nrt=False, fastmath={"contract"}, error_model="numpy")
def add_32(
    single: Singles, tile: int, aim: Singles, base: float, scale: float, least: float, room: Singles
) -> int:
    """Do both in single precision: scores less the reference, `base` the tile's peak less it, `aim` the query from the
    tile's middle. The third row has the weights; there 1 - e scale is no less than a half.
    """
    wide, passing, share, half = np.uintp(room.shape[1]), np.int32(0), np.float32(-scale), np.float32(0.5)
    start, peak, low = np.uintp(tile * (len(aim) + 1)) * wide, np.float32(base), np.float32(least)
    at = start + np.uintp(len(aim)) * wide
    for j in range(wide):
        room[0, j] = single[at + j]
    for k in range(ACROSS, len(aim), ACROSS):
        a, b, c, d = aim[k], aim[k + 1], aim[k + 2], aim[k + 3]
        at = start + np.uintp(k) * wide
        for j in range(wide):
            s, t = single[at + j] - a, single[at + wide + j] - b
            u, v = single[at + wide + wide + j] - c, single[at + wide + wide + wide + j] - d
            room[0, j] -= half * (s * s + t * t + u * u + v * v)
    a, b, c, d, at = aim[0], aim[1], aim[2], aim[3], start
    for j in range(wide):
        s, t = single[at + j] - a, single[at + wide + j] - b
        u, v = single[at + wide + wide + j] - c, single[at + wide + wide + wide + j] - d
        value = room[0, j] - half * (s * s + t * t + u * u + v * v) + peak
        e = exp_32(value)
        w = e / max(ONE + e * share, half)
        room[0, j], room[2, j] = value, w
        room[1, j] += w
        passing = np.int32(passing + np.int32(value >= low))
    return int(passing)


@njit(cache=True, nogil=True, _nrt=False)
def keys_below(
    sides: Floats, peak: Floats, count: Singles, node: int, query: Floats, ref: float, room: Floats, mass: Singles
) -> None:
    """Put the keys of a node's children into the first row of `room`, and the most that each can add into `mass`.

    A key is the peak less half the least squared distance, by the very sum of the scores: no score is higher. Masses
    are in single precision, so a share of 1e-5 is added that is more than their rounding.
    """
    wide, more = np.uintp(room.shape[1]), np.float32(1 + 1e-5)
    low = np.uintp(node * 2 * len(query)) * wide
    high, at = low + np.uintp(len(query)) * wide, np.uintp(node) * wide
    for j in range(wide):
        room[0, j] = 0.0
    for k in range(0, len(query), 2):
        a, b = query[k], query[k + 1]
        for j in range(wide):
            s = max(max(sides[low + j] - a, a - sides[high + j]), 0.0)
            t = max(max(sides[low + wide + j] - b, b - sides[high + wide + j]), 0.0)
            room[0, j] = (room[0, j] + s * s) + t * t
        low, high = low + wide + wide, high + wide + wide
    for j in range(wide):
        key = peak[at + j] - 0.5 * room[0, j]
        room[0, j] = key
        mass[j] = count[at + j] * exp_32(min(np.float32(key - ref), MOST_32)) * more

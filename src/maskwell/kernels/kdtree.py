"""A k-d tree for each block of points, in arrays.

Friedman, Bentley and Finkel (1977): nodes are cut at the median of the longest side of their box until they have few
points. Differences: up to FAN children for a node, and all points the same is a leaf of any size.
The points of a block stand together, and so do those of every node; a node knows the box around its points. Points
are kept twice: as they are, and in single precision for the sieve. Grown by `attacks/nearest/search`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from numba import njit

from . import announce
from .distance_sieve import slack

announce(__file__)

NONE = -1  # no child, no side, no point
ALIKE = -2  # instead of a child: all points of the node are the same
FAN = 16  # children of a node: their boxes are compared side by side

Floats = npt.NDArray[np.float64]
Singles = npt.NDArray[np.float32]
Ints = npt.NDArray[np.int64]


class Forest(NamedTuple):
    """Trees over the blocks of some points.

    A node holds the points at places `first` to `stop`; its children are the nodes from `child` to `end`, or there are
    none (-1, or -2 where all points of the node are the same). `number` has the number of the point at each place,
    ascending within a leaf.

    What is compared together lies together: `points` has coordinate k of point j of a leaf of n at q first + k n + j,
    and `boxes` the low side k of the box of child j of a node with c children at 2 q child + k c + j, high sides after
    all low ones. No ball up to a distance of `within` holds the box of a node.

    For the sieve, points are `seen` from the `middle` in the `unit`, with squared `lengths` (2 x places: less what
    rounding can do, and with it).
    """

    points: Floats
    number: Ints
    first: Ints
    stop: Ints
    child: Ints
    end: Ints
    boxes: Floats
    within: Floats
    seen: Singles
    lengths: Singles
    middle: Floats
    unit: float


@njit(cache=True, nogil=True)
def _swap(rows: Floats, number: Ints, i: int, j: int) -> None:
    number[i], number[j] = number[j], number[i]
    for k in range(rows.shape[1]):
        rows[i, k], rows[j, k] = rows[j, k], rows[i, k]


@njit(cache=True, nogil=True)
def _median(a: float, b: float, c: float) -> float:
    return max(min(a, b), min(max(a, b), c))


@njit(cache=True, nogil=True)
def divide(rows: Floats, number: Ints, begin: int, end: int, middle: int, side: int) -> None:
    """Move the rows with the smallest values of a side before the middle, as quickselect does."""
    state = np.uint64(end - begin)
    while end - begin > 1:
        state = state * np.uint64(6364136223846793005) + np.uint64(1442695040888963407)
        some = begin + int((state >> np.uint64(33)) % np.uint64(end - begin))
        pivot = _median(rows[begin, side], rows[some, side], rows[end - 1, side])
        i, j = begin, end - 1
        while i <= j:
            while rows[i, side] < pivot:
                i += 1
            while rows[j, side] > pivot:
                j -= 1
            if i <= j:
                _swap(rows, number, i, j)
                i, j = i + 1, j - 1
        if middle <= j:
            end = j + 1
        elif middle >= i:
            begin = i
        else:
            return


@njit(cache=True, nogil=True)
def enclose(rows: Floats, begin: int, end: int, low: Floats, high: Floats) -> int:
    """Write the box around some rows and return its longest side, -1 when it has none."""
    for k in range(len(low)):
        low[k], high[k] = rows[begin, k], rows[begin, k]
    for i in range(begin + 1, end):
        for k in range(len(low)):
            low[k] = min(low[k], rows[i, k])
            high[k] = max(high[k], rows[i, k])
    longest, side = 0.0, NONE
    for k in range(len(low)):
        if high[k] - low[k] > longest:
            longest, side = high[k] - low[k], k
    return side


@njit(cache=True, nogil=True)
def _branch(rows: Floats, number: Ints, edges: Ints, leaf: int, low: Floats, high: Floats) -> int:
    """Halve the rows between the first two edges until there are FAN pieces or all are leaves; return how many.

    A piece is halved across its longest side, so that leaves are full.
    """
    pieces, before = 1, 0
    while before < pieces < FAN:
        before = pieces
        for piece in range(before - 1, -1, -1):
            a, b = edges[piece], edges[piece + 1]
            side = enclose(rows, a, b, low, high) if b - a > leaf and pieces < FAN else NONE
            if side == NONE:
                continue
            middle = a + leaf * (((b - a + leaf - 1) // leaf + 1) // 2)
            divide(rows, number, a, b, middle, side)
            for later in range(pieces, piece, -1):
                edges[later + 1] = edges[later]
            edges[piece + 1] = middle
            pieces += 1
    return pieces


@njit(cache=True, nogil=True)
def sort(rows: Floats, number: Ints, begin: int, end: int) -> None:
    """Sort some rows by their numbers, as shell sort does: quick where they are sorted already."""
    gap = 1
    while 3 * gap < end - begin:
        gap = 3 * gap + 1
    while gap > 0:
        for i in range(begin + gap, end):
            j = i
            while j >= begin + gap and number[j - gap] > number[j]:
                _swap(rows, number, j - gap, j)
                j -= gap
        gap //= 3


@njit(cache=True, nogil=True)
def plant(rows: Floats, number: Ints, begin: Ints, end: Ints, leaf: int, norm: int, unit: float) -> Forest:
    """Grow one tree for each block of rows, from `begin` to `end`; root b belongs to block b.

    Rows and their numbers are sorted in place. Nodes of more than `leaf` points are divided, unless they are all
    alike. In the unit no coordinate is beyond 1.
    """
    blocks, fields, nodes = len(begin), rows.shape[1], len(begin)
    for block in range(blocks):
        nodes += 2 * ((end[block] - begin[block]) // leaf)
    first, stop = np.empty(nodes, np.int64), np.empty(nodes, np.int64)
    child, after = np.empty(nodes, np.int64), np.empty(nodes, np.int64)
    boxes, within = np.empty(2 * fields * nodes), np.zeros(nodes)
    low, high, edges = np.empty(fields), np.empty(fields), np.empty(FAN + 1, np.int64)
    for node in range(blocks):
        first[node], stop[node] = begin[node], end[node]
        child[node] = ALIKE if enclose(rows, begin[node], end[node], low, high) == NONE else NONE
    grown, node = blocks, 0
    while node < grown:
        if child[node] == ALIKE or stop[node] - first[node] <= leaf:
            sort(rows, number, first[node], stop[node])
            node += 1
            continue
        edges[0], edges[1] = first[node], stop[node]
        pieces = _branch(rows, number, edges, leaf, low, high)
        child[node], after[node] = grown, grown + pieces
        for j in range(pieces):
            this = grown + j
            first[this], stop[this] = edges[j], edges[j + 1]
            child[this] = ALIKE if enclose(rows, edges[j], edges[j + 1], low, high) == NONE else NONE
            for k in range(fields):
                place = 2 * fields * grown + k * pieces + j
                boxes[place], boxes[place + fields * pieces] = low[k], high[k]
                half = (high[k] - low[k]) / 2
                within[this] += half * half if norm == 2 else half
        grown, node = grown + pieces, node + 1
    points, seen, lengths, middle = _laid_out(rows, first, stop, child, grown, unit)
    return Forest(points, number, first, stop, child, after, boxes, within, seen, lengths, middle, unit)


@njit(cache=True, nogil=True)
def _laid_out(
    rows: Floats, first: Ints, stop: Ints, child: Ints, grown: int, unit: float
) -> tuple[Floats, Singles, Singles, Floats]:
    """Lay out the points of every leaf, as they are and as the sieve sees them, with their lengths and the middle."""
    count, fields = rows.shape
    points, seen = np.empty(count * fields), np.empty(count * fields, np.float32)
    lengths, middle, share = np.empty((2, count), np.float32), np.zeros(fields), slack(fields)
    for i in range(count):
        for k in range(fields):
            middle[k] += rows[i, k] / count
    for node in range(grown):
        a, size = first[node], stop[node] - first[node]
        if child[node] >= 0:
            continue
        for j in range(size):
            square = 0.0
            for k in range(fields):
                single = np.float32((rows[a + j, k] - middle[k]) * unit)
                points[fields * a + k * size + j], seen[fields * a + k * size + j] = rows[a + j, k], single
                square += np.float64(single) * np.float64(single)
            lengths[0, a + j] = np.float32(square * (1 - share))
            lengths[1, a + j] = np.float32(square * (1 + share))
    return points, seen, lengths, middle

"""A k-d tree for each block of points: nearest points with their ties, and how many lie within a radius.

The points of a block stand together, and so do those of every node; a node knows the box around its points. The
distance of a pair is always the same sum, over coordinates 0 to q - 1 in order. The bounds from a box are that very
sum over the nearest (or furthest) sides of the box, and rounding never turns an order round: a bound holds for the
computed distances to the last bit, and a tree finds what comparing all pairs would find.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from numba import njit

from . import announce

announce(__file__)

NONE = -1
ALIKE = -2  # instead of a child: all points of the node are the same
DEEPEST = 128  # of the stack: a node waits at each level of a balanced tree
TILE = 64

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


class Forest(NamedTuple):
    """Trees over the blocks of some points.

    `points` are q x m in the order of the leaves, `number` their numbers (ascending within a leaf). A node holds
    those from `first` to `stop`; its children are `child` and the one after it, or there are none (-1, or -2 where
    all points of the node are the same). `low` and `high` are the sides of its box.
    """

    points: Floats
    number: Ints
    first: Ints
    stop: Ints
    child: Ints
    low: Floats
    high: Floats


@njit(cache=True, nogil=True, inline="always")
def _swap(rows: Floats, number: Ints, i: int, j: int) -> None:
    number[i], number[j] = number[j], number[i]
    for k in range(rows.shape[1]):
        rows[i, k], rows[j, k] = rows[j, k], rows[i, k]


@njit(cache=True, nogil=True, inline="always")
def _median(a: float, b: float, c: float) -> float:
    return max(min(a, b), min(max(a, b), c))


@njit(cache=True, nogil=True)
def _divide(rows: Floats, number: Ints, begin: int, end: int, middle: int, side: int) -> None:
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
def _enclose(rows: Floats, begin: int, end: int, low: Floats, high: Floats) -> int:
    """Write the box around some rows and return its longest side, -1 when it has none."""
    low[:], high[:] = rows[begin], rows[begin]
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
def plant(rows: Floats, number: Ints, begin: Ints, end: Ints, leaf: int) -> Forest:
    """Grow one tree for each block of rows, from `begin` to `end`; root b belongs to block b.

    Rows and their numbers are sorted in place. A node of more than `leaf` points is halved across its longest side, so
    that leaves are full.
    """
    nodes = len(begin)
    for b in range(len(begin)):
        nodes += 2 * ((end[b] - begin[b]) // leaf)
    first, stop, child = np.zeros(nodes, np.int64), np.zeros(nodes, np.int64), np.full(nodes, NONE, np.int64)
    low, high = np.zeros((nodes, rows.shape[1])), np.zeros((nodes, rows.shape[1]))
    first[: len(begin)], stop[: len(begin)] = begin, end
    grown, node = len(begin), 0
    while node < grown:
        a, b = first[node], stop[node]
        if b > a:
            side = _enclose(rows, a, b, low[node], high[node])
            if side == NONE:
                child[node] = ALIKE
            elif b - a > leaf:
                middle = a + leaf * (((b - a + leaf - 1) // leaf + 1) // 2)
                _divide(rows, number, a, b, middle, side)
                child[node] = grown
                first[grown], stop[grown], first[grown + 1], stop[grown + 1] = a, middle, middle, b
                grown += 2
        node += 1
    points = np.empty((rows.shape[1], len(rows)))
    for node in range(grown):
        if child[node] < 0:
            a, b = first[node], stop[node]
            order = a + np.argsort(number[a:b])
            number[a:b] = number[order]
            for k in range(rows.shape[1]):
                for i in range(a, b):
                    points[k, i] = rows[order[i - a], k]
    return Forest(points, number, first[:grown], stop[:grown], child[:grown], low[:grown], high[:grown])


# Distances.


@njit(cache=True, nogil=True, inline="always")
def _distances(
    points: Floats, begin: int, count: int, searchers: Floats, i: int, norm: int, out: Floats
) -> None:
    """Put the distances of some consecutive points from searcher i into `out`."""
    start = np.uintp(begin)
    for j in range(count):
        out[j] = 0.0
    for k in range(searchers.shape[1]):
        here = searchers[i, k]
        if norm == 2:
            for j in range(count):
                apart = points[k, start + np.uintp(j)] - here
                out[j] += apart * apart
        else:
            for j in range(count):
                out[j] += abs(points[k, start + np.uintp(j)] - here)


@njit(cache=True, nogil=True, inline="always")
def _at_least(low: Floats, high: Floats, node: int, searchers: Floats, i: int, norm: int) -> float:
    """Return the least distance from searcher i that a point in the box of a node can have."""
    total = 0.0
    for k in range(searchers.shape[1]):
        here = searchers[i, k]
        apart = max(max(low[node, k] - here, here - high[node, k]), 0.0)
        total += apart * apart if norm == 2 else apart
    return total


@njit(cache=True, nogil=True, inline="always")
def _at_most(low: Floats, high: Floats, node: int, searchers: Floats, i: int, norm: int) -> float:
    """Return the largest distance from searcher i that a point in the box of a node can have."""
    total = 0.0
    for k in range(searchers.shape[1]):
        here = searchers[i, k]
        apart = max(here - low[node, k], high[node, k] - here)
        total += apart * apart if norm == 2 else apart
    return total


@njit(cache=True, nogil=True)
def locate(forest: Forest, searchers: Floats, roots: Ints) -> Ints:
    """Return for each searcher a place near it: the first of the leaf that is found by always going nearer."""
    out = np.full(len(searchers), NONE, np.int64)
    low, high, child = forest.low, forest.high, forest.child
    for i in range(len(searchers)):
        node = roots[i]
        while node >= 0 and child[node] >= 0:
            left = child[node]
            one = _at_least(low, high, left, searchers, i, 2)
            other = _at_least(low, high, left + 1, searchers, i, 2)
            node = left + (other < one)
        if node >= 0:
            out[i] = forest.first[node]
    return out


# How many lie closer.


@njit(cache=True, nogil=True)
def count_closer(
    forest: Forest, searchers: Floats, roots: Ints, limit: Floats, most: int, norm: int, out: Ints
) -> None:
    """Count for each searcher the points of its tree at a distance below its limit, up to `most`.

    Whole nodes are counted that lie within, and those outside are left; nearer nodes come first.
    """
    low, high, child, first, stop = forest.low, forest.high, forest.child, forest.first, forest.stop
    waiting, buffer = np.empty(DEEPEST, np.int64), np.empty(TILE)
    for i in range(len(searchers)):
        below, count, height = limit[i], 0, 0
        if roots[i] >= 0 and _at_least(low, high, roots[i], searchers, i, norm) < below:
            waiting[0], height = roots[i], 1
        while height > 0 and count < most:
            height -= 1
            node = waiting[height]
            if _at_most(low, high, node, searchers, i, norm) < below:
                count += stop[node] - first[node]
            elif child[node] >= 0:
                left = child[node]
                one = _at_least(low, high, left, searchers, i, norm)
                other = _at_least(low, high, left + 1, searchers, i, norm)
                nearer = left + (other < one)
                if max(one, other) < below:
                    waiting[height] = 2 * left + 1 - nearer
                    height += 1
                if min(one, other) < below:
                    waiting[height] = nearer
                    height += 1
            else:
                for begin in range(first[node], stop[node], TILE):
                    size = min(TILE, stop[node] - begin)
                    _distances(forest.points, begin, size, searchers, i, norm, buffer)
                    for j in range(size):
                        count += buffer[j] < below
                    if count >= most:
                        break
        out[i] = min(count, most)


# The nearest.


@njit(cache=True, nogil=True)
def _nearest_three(
    forest: Forest,
    searchers: Floats,
    i: int,
    root: int,
    norm: int,
    same: float,
    spare: tuple[Ints, Floats, Floats],
) -> tuple[float, float, float, int, int]:
    """Return the three smallest distances and the places of the first two; the third where it may tie only."""
    low, high, child, first, stop = forest.low, forest.high, forest.child, forest.first, forest.stop
    waiting, bound, buffer = spare
    one, two, three, place, second = np.inf, np.inf, np.inf, NONE, NONE
    waiting[0], bound[0], height = root, 0.0, 1
    while height > 0:
        height -= 1
        node, reach = waiting[height], two * same
        if bound[height] > reach:
            continue
        if child[node] >= 0:
            left = child[node]
            this = _at_least(low, high, left, searchers, i, norm)
            that = _at_least(low, high, left + 1, searchers, i, norm)
            nearer = left + (that < this)
            if max(this, that) <= reach:
                waiting[height], bound[height] = 2 * left + 1 - nearer, max(this, that)
                height += 1
            if min(this, that) <= reach:
                waiting[height], bound[height] = nearer, min(this, that)
                height += 1
            continue
        last = stop[node] if child[node] == NONE else min(stop[node], first[node] + 3)
        for begin in range(first[node], last, TILE):
            size = min(TILE, last - begin)
            _distances(forest.points, begin, size, searchers, i, norm, buffer)
            for j in range(size):
                here = buffer[j]
                if here > reach:
                    continue
                if here < one:
                    three, two, one, second, place = two, one, here, place, begin + j
                elif here < two:
                    three, two, second = two, here, begin + j
                elif here < three:
                    three = here
                reach = two * same
    return one, two, three, place, second


@njit(cache=True, nogil=True)
def _lowest(
    forest: Forest,
    searchers: Floats,
    i: int,
    root: int,
    norm: int,
    limit: float,
    spare: tuple[Ints, Floats, Floats],
) -> tuple[int, int, int, float, float]:
    """Count the points within a limit and return the two of lowest number and their distances."""
    low, high, child, first, stop = forest.low, forest.high, forest.child, forest.first, forest.stop
    waiting, _, buffer = spare
    count, lowest, second, distance, other = 0, NONE, NONE, np.inf, np.inf
    waiting[0], height = root, 1
    while height > 0:
        height -= 1
        node = waiting[height]
        if _at_least(low, high, node, searchers, i, norm) > limit:
            continue
        if child[node] >= 0:
            waiting[height], waiting[height + 1] = child[node] + 1, child[node]
            height += 2
            continue
        last = stop[node]
        if child[node] == ALIKE:
            last = min(last, first[node] + 2)
            count += stop[node] - last
        for begin in range(first[node], last, TILE):
            size = min(TILE, last - begin)
            _distances(forest.points, begin, size, searchers, i, norm, buffer)
            for j in range(size):
                if buffer[j] <= limit:
                    count += 1
                    number = forest.number[begin + j]
                    if lowest == NONE or number < lowest:
                        lowest, second, distance, other = number, lowest, buffer[j], distance
                    elif second == NONE or number < second:
                        second, other = number, buffer[j]
    return count, lowest, second, distance, other


@njit(cache=True, nogil=True)
def find_nearest(
    forest: Forest,
    searchers: Floats,
    roots: Ints,
    norm: int,
    same: float,
    place: Ints,
    distance: Floats,
    ties: Ints,
    second: Ints,
    second_distance: Floats,
) -> None:
    """Find for each searcher the nearest point of its tree, how many are as near, and the next nearest.

    Distances up to `same` times the least are as near; of those the lowest number is named.
    """
    spare = np.empty(DEEPEST, np.int64), np.empty(DEEPEST), np.empty(TILE)
    for i in range(len(searchers)):
        root = roots[i]
        if root < 0:
            continue
        one, two, three, first, other = _nearest_three(forest, searchers, i, root, norm, same, spare)
        place[i], distance[i], ties[i] = forest.number[first], one, 1
        if other >= 0:
            second[i], second_distance[i] = forest.number[other], two
        if other >= 0 and (two <= one * same or (three < np.inf and three <= two * same)):
            ties[i], place[i], _, distance[i], _ = _lowest(
                forest, searchers, i, root, norm, one * same, spare
            )
            # The one named may be further than the least by rounding: then the least is the next nearest.
            limit = (two if distance[i] == one else one) * same
            _, a, b, near, far = _lowest(forest, searchers, i, root, norm, limit, spare)
            second[i], second_distance[i] = (b, far) if a == place[i] else (a, near)

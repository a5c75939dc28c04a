"""Searching the trees of a forest: the nearest points with their ties, and how many lie within a radius.

Branch and bound (Friedman, Bentley and Finkel 1977); counts take whole nodes that lie within the radius, as in Gray and
Moore (2000). The bounds from boxes hold for the computed distances to the last bit, and the sieve only leaves out what
cannot count: a tree finds what comparing all pairs finds, ties included. Chosen by `attacks/nearest/search`.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from numba import njit

from . import announce
from .distance_sieve import (
    TILE,
    Three,
    count_within_bound,
    fill_aim,
    fill_products,
    is_open,
    may_lie,
    must_lie,
    nearest_three,
)
from .distances import distances, from_boxes, through_box
from .kdtree import ALIKE, FAN, NONE, Forest

announce(__file__)

DEEPEST = 512  # nodes that wait: fewer than FAN for each level of a balanced tree

Floats = npt.NDArray[np.float64]
Singles = npt.NDArray[np.float32]
Ints = npt.NDArray[np.int64]


@njit(cache=True, nogil=True)
def locate(forest: Forest, searchers: Floats, roots: Ints) -> Ints:
    """Return for each searcher a place near it (-1: no tree): the first of the leaf found by always going nearer."""
    out, bound = np.empty(len(searchers), np.int64), np.empty(FAN)
    for i in range(len(searchers)):
        node = roots[i]
        while node >= 0 and forest.child[node] >= 0:
            begin, count = forest.child[node], forest.end[node] - forest.child[node]
            from_boxes(forest.boxes, begin, count, searchers, i, 2, bound)
            node = begin
            for j in range(1, count):
                if bound[j] < bound[node - begin]:
                    node = begin + j
        out[i] = forest.first[node] if node >= 0 else NONE
    return out


# How many lie closer. Arrays are taken out of the forest once: in the loops that would cost more than comparing.


@njit(cache=True, nogil=True, inline="always")
def _descend(
    children: tuple[int, int],
    nodes: tuple[Ints, Ints, Floats, Floats],
    searchers: Floats,
    i: int,
    below: float,
    norm: int,
    waiting: Ints,
    height: int,
    tile: Floats,
) -> tuple[int, int]:
    """Let the children wait that a ball may cut, the nearest on top; return how many nodes wait then, and how many
    points lie in children that are wholly within.
    """
    begin, end = children
    first, stop, within, boxes = nodes
    size, count, nearest, least = end - begin, 0, NONE, np.inf
    from_boxes(boxes, begin, size, searchers, i, norm, tile)
    for j in range(size):
        if tile[j] >= below:
            continue
        node = begin + j
        if within[node] < below and through_box(boxes, begin, size, j, searchers, i, norm) < below:
            count += stop[node] - first[node]
            continue
        waiting[height] = node
        if tile[j] < least:
            nearest, least = height, tile[j]
        height += 1
    if nearest >= 0:
        waiting[nearest], waiting[height - 1] = waiting[height - 1], waiting[nearest]
    return height, count


@njit(cache=True, nogil=True, inline="always")
def _count_in_leaf(
    leaf: tuple[int, int, int],
    stored: tuple[Floats, Singles, Singles],
    searchers: Floats,
    i: int,
    below: float,
    bounds: tuple[np.float32, np.float32],
    most: int,
    norm: int,
    room: tuple[Singles, Singles, Floats],
) -> int:
    """Count the points of a leaf, up to its last, at a distance below a limit, and stop when there are enough."""
    first, last, size = leaf
    points, seen, lengths = stored
    aim, products, tile = room
    count, begin = 0, first
    while begin < last and count < most:
        at, some = len(aim) * first + begin - first, min(TILE, last - begin)
        inside, still = 0, 1
        if norm == 2:
            fill_products(seen, at, size, some, aim, products)
            inside = count_within_bound(products, 0, 0, some, lengths, 1, begin, bounds[1])
            still = count_within_bound(products, 0, 0, some, lengths, 0, begin, bounds[0]) - inside
        if still:
            distances(points, at, size, some, searchers, i, norm, tile)
            inside = 0
            for j in range(some):
                inside += tile[j] < below
        count, begin = count + inside, begin + TILE
    return count


@njit(cache=True, nogil=True)
def count_closer(
    forest: Forest, searchers: Floats, roots: Ints, limit: Floats, most: int, norm: int, out: Ints
) -> int:
    """Count for each searcher the points of its tree at a distance below its limit, up to `most`.

    Whole nodes are counted that lie within, and those outside are left; nearer nodes come first. Returns how many
    pairs were compared.
    """
    first, stop, child, end = forest.first, forest.stop, forest.child, forest.end
    nodes = first, stop, forest.within, forest.boxes
    stored = forest.points, forest.seen, forest.lengths
    middle, unit, fields = forest.middle, forest.unit, searchers.shape[1]
    waiting, tile, compared = np.empty(DEEPEST, np.int64), np.empty(TILE), 0
    aim, products = np.empty(fields, np.float32), np.empty((1, TILE), np.float32)
    room = aim, products, tile
    for i in range(len(searchers)):
        below, count, height = limit[i], 0, 0
        square = fill_aim(searchers, i, middle, unit, aim)
        bounds = may_lie(square, below, unit, fields), must_lie(square, below, unit, fields)
        if roots[i] >= 0:
            waiting[0], height = roots[i], 1
        while height > 0 and count < most:
            height -= 1
            node = waiting[height]
            if child[node] >= 0:
                children = child[node], end[node]
                height, inside = _descend(children, nodes, searchers, i, below, norm, waiting, height, tile)
                count += inside
                continue
            size, alike = stop[node] - first[node], child[node] == ALIKE
            leaf = first[node], first[node] + 1 if alike else stop[node], size
            inside = _count_in_leaf(leaf, stored, searchers, i, below, bounds, most - count, norm, room)
            count += inside * size if alike else inside
            compared += leaf[1] - leaf[0]
        out[i] = min(count, most)
    return compared


# The nearest.


@njit(cache=True, nogil=True, inline="always")
def _nearest_in_leaf(
    leaf: tuple[int, int, int],
    stored: tuple[Floats, Singles, Singles],
    searchers: Floats,
    i: int,
    sight: tuple[float, float],
    norm: int,
    same: float,
    three: Three,
    room: tuple[Singles, Singles, Floats],
) -> Three:
    """Keep the three smallest distances with those of the points of a leaf, up to its last."""
    first, last, size = leaf
    points, seen, lengths = stored
    aim, products, tile = room
    for begin in range(first, last, TILE):
        at, some = len(aim) * first + begin - first, min(TILE, last - begin)
        if norm == 2:
            fill_products(seen, at, size, some, aim, products)
            may = may_lie(sight[0], three.two * same, sight[1], len(aim))
            if count_within_bound(products, 0, 0, some, lengths, 0, begin, may) == 0:
                continue
        distances(points, at, size, some, searchers, i, norm, tile)
        for j in range(some):
            if tile[j] <= three.two * same:
                three = nearest_three(three, tile[j], begin + j)
    return three


@njit(cache=True, nogil=True, inline="always")
def _approach(
    children: tuple[int, int],
    boxes: Floats,
    searchers: Floats,
    i: int,
    norm: int,
    reach: float,
    waiting: Ints,
    bound: Floats,
    height: int,
    tile: Floats,
) -> int:
    """Let the children wait that lie within reach, nearer ones above; return how many nodes wait."""
    begin, bottom, size = children[0], height, children[1] - children[0]
    from_boxes(boxes, begin, size, searchers, i, norm, tile)
    for j in range(size):
        if tile[j] > reach:
            continue
        at = height
        while at > bottom and bound[at - 1] < tile[j]:
            waiting[at], bound[at] = waiting[at - 1], bound[at - 1]
            at -= 1
        waiting[at], bound[at] = begin + j, tile[j]
        height += 1
    return height


@njit(cache=True, nogil=True)
def _lowest(
    forest: Forest, root: int, searchers: Floats, i: int, norm: int, limit: float, waiting: Ints, tile: Floats
) -> tuple[int, int, int, float, float]:
    """Count the points within a limit, and return the two of lowest number and their distances."""
    count, lowest, second, distance, other = 0, NONE, NONE, np.inf, np.inf
    waiting[0], height, fields = root, 1, searchers.shape[1]
    while height > 0:
        height -= 1
        node = waiting[height]
        first, size = forest.first[node], forest.stop[node] - forest.first[node]
        if forest.child[node] >= 0:
            begin, children = forest.child[node], forest.end[node] - forest.child[node]
            from_boxes(forest.boxes, begin, children, searchers, i, norm, tile)
            for j in range(children):
                if tile[j] <= limit:
                    waiting[height] = begin + j
                    height += 1
            continue
        last = min(size, 2) if forest.child[node] == ALIKE else size
        for begin in range(0, last, TILE):
            some = min(TILE, last - begin)
            distances(forest.points, fields * first + begin, size, some, searchers, i, norm, tile)
            for j in range(some):
                here, number = tile[j], forest.number[first + begin + j]
                if here > limit:
                    continue
                count += 1 if begin + j + 1 < last else 1 + size - last
                if lowest == NONE or number < lowest:
                    lowest, second, distance, other = number, lowest, here, distance
                elif second == NONE or number < second:
                    second, other = number, here
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
) -> int:
    """Find for each searcher the nearest point of its tree, how many are as near, and the next nearest.

    Distances up to `same` times the least are as near; of those the lowest number is named. Returns how many pairs
    were compared.
    """
    first, stop, child, end, boxes = forest.first, forest.stop, forest.child, forest.end, forest.boxes
    stored, middle, unit = (forest.points, forest.seen, forest.lengths), forest.middle, forest.unit
    waiting, bound, tile = np.empty(DEEPEST, np.int64), np.empty(DEEPEST), np.empty(TILE)
    aim, products = np.empty(searchers.shape[1], np.float32), np.empty((1, TILE), np.float32)
    room, compared = (aim, products, tile), 0
    for i in range(len(searchers)):
        if roots[i] < 0:
            continue
        three = Three(np.inf, np.inf, np.inf, NONE, NONE)
        sight = fill_aim(searchers, i, middle, unit, aim), unit
        waiting[0], bound[0], height = roots[i], 0.0, 1
        while height > 0:
            height -= 1
            node, reach = waiting[height], three.two * same
            if bound[height] > reach:
                continue
            if child[node] >= 0:
                children = child[node], end[node]
                height = _approach(children, boxes, searchers, i, norm, reach, waiting, bound, height, tile)
                continue
            last = min(stop[node], first[node] + 3) if child[node] == ALIKE else stop[node]
            leaf = first[node], last, stop[node] - first[node]
            three = _nearest_in_leaf(leaf, stored, searchers, i, sight, norm, same, three, room)
            compared += last - first[node]
        place[i], distance[i], ties[i] = forest.number[three.place], three.one, 1
        if three.second >= 0:
            second[i], second_distance[i] = forest.number[three.second], three.two
        if is_open(three, same):
            nearly = three.one * same
            ties[i], place[i], _, distance[i], _ = _lowest(
                forest, roots[i], searchers, i, norm, nearly, waiting, tile
            )
            # The one named may be further than the least by rounding: then the least is the next nearest.
            limit = (three.two if distance[i] == three.one else three.one) * same
            _, a, b, near, far = _lowest(forest, roots[i], searchers, i, norm, limit, waiting, tile)
            second[i], second_distance[i] = (b, far) if a == place[i] else (a, near)
    return compared

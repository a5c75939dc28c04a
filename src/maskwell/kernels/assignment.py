"""One-to-one assignment of largest total score over listed pairs: shortest augmenting paths with prices.

Costs are minus scores. With prices u of rows and v <= 0 of columns cost - u - v >= 0 for every listed pair and = 0 for
those chosen; columns that nobody has cost nothing (Jonker and Volgenant, 1987, Computing 38, 325-340: bids, then
Dijkstra's order; where all columns are taken, prices come from Bertsekas' auction, 1988, Annals of OR 14, 105-123). A
row that can have no column stays alone, at a cost above all sums of others: costs are pairs (level, cost) in the order
of a dictionary, and level 1 is that of staying alone. Chosen where a block is too large for scipy's matrix.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from numba import njit

from . import announce

announce(__file__)

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Digests = npt.NDArray[np.uint64]

NONE = -1  # no row or no column
SETTLED = -2  # in place of a place in the heap: the column's distance is final
BIDS = 3  # passes in which rows bid for their best column before paths are searched: more hardly help
WIDE = 64  # columns of a tile: their costs fit the fastest memory, and boxes are tight
STRIDE = 7919  # a prime: rows begin to look at places this far apart, so that equal columns are not all the same ones


class Graph(NamedTuple):
    """Listed pairs by row: where each row begins, columns and costs."""

    start: Ints
    column: Ints
    cost: Floats


class Prices(NamedTuple):
    """Prices of one side with their levels."""

    level: Ints
    value: Floats


class Match(NamedTuple):
    """The column of each row and the row of each column, -1 for none."""

    column: Ints
    row: Ints


class AssignmentRoom(NamedTuple):
    """What a search notes of columns: distances, the rows they are reached from, places in the heap, those met."""

    level: Ints
    value: Floats
    back: Ints
    place: Ints
    heap: Ints
    met: Ints


@njit(cache=True, nogil=True)
def _before(level: int, value: float, other_level: int, other: float) -> bool:
    return level < other_level or (level == other_level and value < other)


@njit(cache=True, nogil=True)
def _two_best(graph: Graph, columns: Prices, row: int) -> tuple[int, int, float, int, float]:
    """Return the cheapest column of a row (-1: alone), its (level, cost) at these prices, and those of the next."""
    best, level, value, next_level, next_value = NONE, 1, 0.0, 1, np.inf
    for at in range(graph.start[row], graph.start[row + 1]):
        j = graph.column[at]
        own_level, own = -columns.level[j], graph.cost[at] - columns.value[j]
        if _before(own_level, own, level, value):
            best, next_level, next_value, level, value = j, level, value, own_level, own
        elif _before(own_level, own, next_level, next_value):
            next_level, next_value = own_level, own
    return best, level, value, next_level, next_value


@njit(cache=True, nogil=True)
def _give(match: Match, row: int, column: int) -> int:
    """Give a row a column; return the row that had it."""
    before = match.row[column]
    if before != NONE:
        match.column[before] = NONE
    match.column[row], match.row[column] = column, row
    return int(before)


@njit(cache=True, nogil=True)
def _price_rows(graph: Graph, rows: Prices, columns: Prices, match: Match, tolerance: float) -> None:
    """Set prices of rows to their lowest costs; columns that are dearer are given up, and free best ones taken."""
    for i in range(len(match.column)):
        best, level, value, _, _ = _two_best(graph, columns, i)
        rows.level[i], rows.value[i] = level, value
        had = match.column[i]
        if had != NONE:
            for at in range(graph.start[i], graph.start[i + 1]):
                if graph.column[at] == had:
                    dearer = graph.cost[at] - columns.value[had] > value + tolerance
                    if dearer or -columns.level[had] != level:
                        match.column[i], match.row[had] = NONE, NONE
        if match.column[i] == NONE and best != NONE and match.row[best] == NONE:
            _give(match, i, best)


@njit(cache=True, nogil=True)
def _bid(graph: Graph, rows: Prices, columns: Prices, match: Match, waiting: Ints, count: int) -> int:
    """Let waiting rows take their best columns, whose prices fall to those of the next best; return how many wait."""
    left = 0
    for k in range(count):
        i = waiting[k]
        best, level, value, next_level, next_value = _two_best(graph, columns, i)
        rows.level[i], rows.value[i] = level, value
        if best == NONE or next_level != level or next_value == np.inf:
            waiting[left] = i
            left += 1
            continue
        if match.row[best] != NONE and next_value == value:
            waiting[left] = i
            left += 1
            continue
        columns.value[best] -= next_value - value
        rows.value[i] = next_value
        loser = _give(match, i, best)
        if loser != NONE:
            waiting[left] = loser
            left += 1
    return left


@njit(cache=True, nogil=True)
def _rise(room: AssignmentRoom, place: int) -> None:
    """Move an entry of the heap up to where it belongs."""
    j = room.heap[place]
    while place > 0:
        above = (place - 1) // 2
        k = room.heap[above]
        if not _before(room.level[j], room.value[j], room.level[k], room.value[k]):
            break
        room.heap[place], room.place[k] = k, place
        place = above
    room.heap[place], room.place[j] = j, place


@njit(cache=True, nogil=True)
def _pop(room: AssignmentRoom, size: int) -> int:
    """Take the nearest column off the heap of a size, and call it settled."""
    first, j = room.heap[0], room.heap[size - 1]
    room.place[first] = SETTLED
    last, place = size - 1, 0
    while 2 * place + 1 < last:
        below = 2 * place + 1
        k = room.heap[below]
        if below + 1 < last:
            other = room.heap[below + 1]
            if _before(room.level[other], room.value[other], room.level[k], room.value[k]):
                below, k = below + 1, other
        if not _before(room.level[k], room.value[k], room.level[j], room.value[j]):
            break
        room.heap[place], room.place[k] = k, place
        place = below
    if j != first:
        room.heap[place], room.place[j] = j, place
    return int(first)


@njit(cache=True, nogil=True)
def _reach(
    graph: Graph,
    rows: Prices,
    columns: Prices,
    room: AssignmentRoom,
    row: int,
    here: tuple[int, float],
    sizes: tuple[int, int],
) -> tuple[int, int]:
    """Note what a row at some distance leads to; return the sizes of the heap and of the list of columns met."""
    (level, value), (size, met) = here, sizes
    for at in range(graph.start[row], graph.start[row + 1]):
        j = graph.column[at]
        if room.place[j] == SETTLED:
            continue
        far_level = level - rows.level[row] - columns.level[j]
        far = value + max(
            graph.cost[at] - rows.value[row] - columns.value[j], 0.0 if far_level == level else -np.inf
        )
        if room.place[j] == NONE:
            room.met[met], room.heap[size], room.place[j] = j, j, size
            size, met = size + 1, met + 1
        elif not _before(far_level, far, room.level[j], room.value[j]):
            continue
        room.level[j], room.value[j], room.back[j] = far_level, far, row
        _rise(room, room.place[j])
    return size, met


@njit(cache=True, nogil=True)
def _search(
    graph: Graph, rows: Prices, columns: Prices, match: Match, room: AssignmentRoom, begin: int
) -> tuple[int, int, int, float, int]:
    """Find the cheapest way to one more pair from a row that waits, or who stays alone in its place.

    Return the free column (-1: none), the row that stays alone (-1: nobody), the distance, and how many were met.
    """
    row, level, value, size, met = begin, 0, 0.0, 0, 0
    alone, alone_level, alone_value = begin, 1 - rows.level[begin], -rows.value[begin]
    while True:
        size, met = _reach(graph, rows, columns, room, row, (level, value), (size, met))
        if size == 0:
            return NONE, alone, alone_level, alone_value, met
        nearest = room.heap[0]
        level, value = room.level[nearest], room.value[nearest]
        if not _before(level, value, alone_level, alone_value):
            return NONE, alone, alone_level, alone_value, met
        if match.row[nearest] == NONE:
            return nearest, NONE, level, value, met
        _pop(room, size)
        size -= 1
        row = match.row[nearest]
        own_level, own = level + 1 - rows.level[row], value - rows.value[row]
        if _before(own_level, own, alone_level, alone_value):
            alone, alone_level, alone_value = row, own_level, own


@njit(cache=True, nogil=True)
def _exchange(match: Match, room: AssignmentRoom, begin: int, column: int, alone: int) -> None:
    """Change the pairs along the way back from a free column, or from the column of who stays alone."""
    if column == NONE:
        column = match.column[alone]
        if alone == begin:
            return
        match.column[alone] = NONE
    while True:
        row = room.back[column]
        before = match.column[row]
        match.column[row], match.row[column] = column, row
        if row == begin:
            return
        column = before


@njit(cache=True, nogil=True)
def _augment(
    graph: Graph, rows: Prices, columns: Prices, match: Match, room: AssignmentRoom, begin: int
) -> None:
    """Give a waiting row a column, and change prices so that all pairs chosen cost as little as any."""
    column, alone, level, value, met = _search(graph, rows, columns, match, room, begin)
    rows.level[begin] += level
    rows.value[begin] += value
    for k in range(met):
        j = room.met[k]
        if room.place[j] == SETTLED:
            owner = match.row[j]
            rows.level[owner] += level - room.level[j]
            rows.value[owner] += value - room.value[j]
            columns.level[j] += room.level[j] - level
            columns.value[j] += room.value[j] - value
    _exchange(match, room, begin, column, alone)
    for k in range(met):
        room.place[room.met[k]] = NONE


@njit(cache=True, nogil=True)
def assign(graph: Graph, rows: Prices, columns: Prices, match: Match, tolerance: float) -> None:
    """Complete a matching at given prices of columns to the cheapest one; all arrays are changed in place.

    Pairs of `match` that are dearer than the row's cheapest by more than `tolerance` are given up first. Prices of
    columns must be 0, unless every column is matched in the end.
    """
    wide = len(match.row)
    _price_rows(graph, rows, columns, match, tolerance)
    waiting = np.flatnonzero(match.column == NONE)
    left = len(waiting)
    for _ in range(BIDS):
        left = _bid(graph, rows, columns, match, waiting, left)
    room = AssignmentRoom(
        np.zeros(wide, np.int64),
        np.zeros(wide),
        np.full(wide, NONE),
        np.full(wide, NONE),
        np.empty(wide, np.int64),
        np.empty(wide, np.int64),
    )
    for k in range(left):
        _augment(graph, rows, columns, match, room, waiting[k])


@njit(cache=True, nogil=True)
def auction(graph: Graph, columns: Prices, match: Match, step: float, most: int) -> None:
    """Let rows without a column outbid each other by at least `step`, with at most so many bids: prices follow."""
    count = len(match.column)
    waiting, left, bids = np.empty(count, np.int64), 0, 0
    for i in range(count):
        if graph.start[i] < graph.start[i + 1] and match.column[i] == NONE:
            waiting[left] = i
            left += 1
    while left > 0 and bids < most:
        left -= 1
        i = waiting[left]
        bids += 1
        best, value, then = NONE, np.inf, np.inf
        for at in range(graph.start[i], graph.start[i + 1]):
            cost = graph.cost[at] - columns.value[graph.column[at]]
            if cost < value:
                best, value, then = graph.column[at], cost, value
            elif cost < then:
                then = cost
        columns.value[best] -= (then - value if then < np.inf else 0.0) + step
        loser = _give(match, i, best)
        if loser != NONE:
            waiting[left] = loser
            left += 1


@njit(cache=True, nogil=True)
def keep_cheapest(
    scores: Floats, rows: Ints, columns: Ints, prices: Floats, costs: Floats, found: Ints
) -> None:
    """Keep the cheapest columns of rows, by minus score less price: `costs` and `found` (rows x kept) are in order.

    `scores` are some of the pairs, `rows` and `columns` their numbers; pairs that cannot be, and columns with a price
    of minus infinity, are left out.
    """
    wide, kept = len(columns), costs.shape[1]
    for a in range(len(rows)):
        i = rows[a]
        begin = (i * STRIDE) % wide
        for k in range(wide):
            b = begin + k if begin + k < wide else begin + k - wide
            cost = -scores[a, b] - prices[columns[b]]
            if cost < costs[i, kept - 1]:
                _keep(costs[i], found[i], cost, columns[b])


class Tiles(NamedTuple):
    """Points (fields x columns) in tiles of WIDE that lie together: their offsets, and the box around each tile."""

    points: Floats
    offset: Floats
    low: Floats
    high: Floats


@njit(cache=True, nogil=True)
def _tile_costs(tiles: Tiles, point: Floats, begin: int, end: int, bases: Floats, costs: Floats) -> float:
    """Put |point - column|^2 / 2 + base of the columns of a tile into `costs`; return the least."""
    for b in range(begin, end):
        costs[b - begin] = bases[b]
    for k in range(len(point)):
        here = point[k]
        for b in range(begin, end):
            apart = tiles.points[k, b] - here
            costs[b - begin] += 0.5 * apart * apart
    least = costs[0]
    for b in range(1, end - begin):
        least = min(least, costs[b])
    return float(least)


@njit(cache=True, nogil=True)
def cheaper(tiles: Tiles, rows: Floats, prices: Floats, bounds: Floats, costs: Floats, found: Ints) -> None:
    """Keep the cheapest columns of rows (points) below their bounds: |row - column|^2 / 2 - offset - price.

    `costs` and `found` (rows x kept) are in order; infinity and -1 where fewer are below.
    """
    wide, kept = tiles.points.shape[1], costs.shape[1]
    count = len(tiles.low)
    bases, least, room = np.empty(wide), np.empty(count), np.empty(WIDE)
    for b in range(wide):
        bases[b] = -tiles.offset[b] - prices[b]
    for t in range(count):
        least[t] = bases[t * WIDE : min((t + 1) * WIDE, wide)].min()
    for i in range(len(rows)):
        for place in range(kept):
            costs[i, place], found[i, place] = bounds[i], NONE
        for t in range(count):
            floor = least[t]
            for k in range(rows.shape[1]):
                away = max(tiles.low[t, k] - rows[i, k], rows[i, k] - tiles.high[t, k], 0.0)
                floor += 0.5 * away * away
            if floor >= costs[i, kept - 1]:
                continue
            begin, end = t * WIDE, min((t + 1) * WIDE, wide)
            if _tile_costs(tiles, rows[i], begin, end, bases, room) >= costs[i, kept - 1]:
                continue
            for b in range(begin, end):
                _keep(costs[i], found[i], room[b - begin], b)


@njit(cache=True, nogil=True)
def _keep(costs: Floats, found: Ints, cost: float, column: int) -> None:
    """Enter a column where it is cheaper than one of those kept, which are in order."""
    place = len(costs) - 1
    if not cost < costs[place]:
        return
    while place > 0 and cost < costs[place - 1]:
        costs[place], found[place] = costs[place - 1], found[place - 1]
        place -= 1
    costs[place], found[place] = cost, column


@njit(cache=True, nogil=True)
def add_digests(bits: Digests, keys: Digests, digests: Digests) -> None:
    """Add a 64-bit digest of each column of some rows (by their keys): columns are the same where these are.

    Words are mixed as by Steele, Lea and Flood's SplittableRandom (2014), so that a sum over rows tells columns apart.
    """
    for a in range(bits.shape[0]):
        for b in range(bits.shape[1]):
            word = bits[a, b] + keys[a]
            word = (word ^ (word >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
            word = (word ^ (word >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
            digests[b] += word ^ (word >> np.uint64(31))

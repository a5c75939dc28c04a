"""Which points of a tree score within bounds: counted, marked, and the two of lowest number named.

score = offset - |point - query|^2 / 2. Branch and bound on the boxes of a k-d tree (Friedman, Bentley and Finkel 1977):
a node is opened only if its largest offset less half the squared distance of its box is not below the lower bound. For
`attacks/bayes/pruned_sums/trees`, which counts ties and candidates of the Bayesian intruder with it.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from numba import njit

from . import announce
from .gaussian_leaves import LOOSE, NOBODY
from .gaussian_tiles import WIDE, cost_of, keys_below, lean, padded_width, values_64
from .gaussian_trees import Grove
from .kdtree import FAN, NONE

announce(__file__)

DEEPEST = 512  # nodes that wait: fewer than FAN for each level of a balanced tree

Bools = npt.NDArray[np.bool_]
Floats = npt.NDArray[np.float64]
Singles = npt.NDArray[np.float32]
Ints = npt.NDArray[np.int64]


@lean()
def _name(number: int, cost: float, lowest: Ints, costs: Floats, i: int) -> None:
    """Keep the two lowest numbers of query i, and their costs."""
    if lowest[i, 0] == NONE or number < lowest[i, 0]:
        lowest[i, 1], costs[i, 1] = lowest[i, 0], costs[i, 0]
        lowest[i, 0], costs[i, 0] = number, cost
    elif lowest[i, 1] == NONE or number < lowest[i, 1]:
        lowest[i, 1], costs[i, 1] = number, cost


@lean()
def _look(
    exact: Floats, tile: int, begin: int, repeat: int, order: Ints, query: Floats, bounds: tuple[float, float],
    i: int, room: Floats, counts: Ints, lowest: Ints, costs: Floats, marks: Bools,
) -> None:  # fmt: skip
    """Count the points of a tile above the bounds and within them; those within are marked and named."""
    low, high = bounds
    loose = low - LOOSE * (abs(low) + 1.0)
    if values_64(exact, tile, query, loose - LOOSE * room[1, 0], room) == 0:
        return
    for lane in range(WIDE):
        cost = cost_of(exact, tile * WIDE + lane, query)
        if cost > NOBODY or -cost < low:
            continue
        if -cost > high:
            counts[i, 0] += repeat
            continue
        counts[i, 1] += repeat
        for n in range(repeat):
            if n < 2:
                _name(order[begin + lane + n], cost, lowest, costs, i)
            if len(marks):
                marks[order[begin + lane + n]] = True


@njit(cache=True, nogil=True)
def sweep(
    grove: Grove, queries: Floats, roots: Ints, low: Floats, high: Floats, most: int,
    counts: Ints, lowest: Ints, costs: Floats, marks: Bools,
) -> None:  # fmt: skip
    """Count for each query the points that score above `high` (up to `most`, then it ends) and from `low` to `high`.

    `counts` (n x 2) are these; of those within, `lowest` and `costs` (n x 2) have the two lowest numbers and minus
    their scores, and `marks` (by number, or empty) is set. Higher nodes come first.
    """
    first, kids, sides, peaks, sizes = grove.roots, grove.kids, grove.sides, grove.peak, grove.sizes
    exact, about, start, order, fields = (
        grove.exact,
        grove.about,
        grove.start,
        grove.order,
        padded_width(queries.shape[1]),
    )
    room, below, mass = np.zeros((2, WIDE)), np.empty((1, FAN)), np.empty(FAN, np.float32)
    waiting, query = np.empty(DEEPEST, np.int64), np.zeros(fields)
    for i in range(len(queries)):
        for k in range(queries.shape[1]):
            query[k] = queries[i, k]
        waiting[0], height = first[roots[i]], 1
        counts[i, 0], counts[i, 1], lowest[i, 0], lowest[i, 1] = 0, 0, NONE, NONE
        while height > 0 and counts[i, 0] < most:
            height -= 1
            node = waiting[height]
            if node >= 0:
                keys_below(sides, peaks, sizes, node, query, 0.0, below, mass)
                height = _wait(kids, node, low[i], below, waiting, height)
                continue
            tile = -1 - node
            repeat, room[1, 0] = int(about[tile, fields + 2]), max(about[tile, fields] - low[i], 0.0)
            bounds = low[i], high[i]
            _look(
                exact, tile, start[tile], repeat, order, query, bounds, i, room, counts, lowest, costs, marks
            )
        counts[i, 0] = min(counts[i, 0], most)


@lean()
def _wait(kids: Ints, node: int, low: float, below: Floats, waiting: Ints, height: int) -> int:
    """Let the children wait whose key is not below a bound, the highest on top; return how many nodes wait."""
    highest, key = NONE, -np.inf
    for j in range(FAN):
        if below[0, j] >= low and below[0, j] > -np.inf:
            waiting[height] = kids[node * FAN + j]
            if below[0, j] > key:
                highest, key = height, below[0, j]
            height += 1
    if highest != NONE:
        waiting[highest], waiting[height - 1] = waiting[height - 1], waiting[highest]
    return height


@njit(cache=True, nogil=True)
def renew(grove: Grove, offsets: Floats) -> None:
    """Write new offsets, by number, which are no higher than those before."""
    across = grove.about.shape[1] - 3
    for tile in range(len(grove.start)):
        at = (tile * (across + 1) + across) * WIDE
        for lane in range(WIDE):
            if grove.start[tile] >= 0 and grove.exact[at + lane] > -NOBODY:
                value = offsets[grove.order[grove.start[tile] + lane]]
                grove.exact[at + lane] = value
                grove.single[at + lane] = np.float32(value - grove.about[tile, across])

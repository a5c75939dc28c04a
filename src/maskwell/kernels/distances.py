"""Distances of points and of boxes, norm 2 (squared Euclidean) or 1 (city block): sum of |s_k - c_k|^norm.

From a box they are sums of max(low - s, s - high, 0)^norm (least) and of max(s - low, high - s)^norm (largest), the
bounds of Friedman, Bentley and Finkel (1977).
The distance of a pair is always the same sum, over coordinates 0 to q - 1 in order. The bounds from a box are that very
sum over the nearest (or furthest) sides of the box, and rounding never turns an order round: a bound holds for the
computed distances to the last bit. The coordinates of what lies together are a stride apart. What is here becomes part
of the loops that use it.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from numba import njit

from . import announce

announce(__file__)

Floats = npt.NDArray[np.float64]


@njit(cache=True, nogil=True, inline="always")
def distances(
    points: Floats, begin: int, stride: int, size: int, searchers: Floats, i: int, norm: int, out: Floats
) -> None:
    """Put the distances of some points from searcher i into `out`."""
    start, step = np.uintp(begin), np.uintp(stride)
    for j in range(size):
        out[j] = 0.0
    for k in range(searchers.shape[1]):
        here = searchers[i, k]
        if norm == 2:
            for j in range(size):
                apart = points[start + np.uintp(j)] - here
                out[j] += apart * apart
        else:
            for j in range(size):
                out[j] += abs(points[start + np.uintp(j)] - here)
        start += step


@njit(cache=True, nogil=True, inline="always")
def from_boxes(
    boxes: Floats, begin: int, size: int, searchers: Floats, i: int, norm: int, out: Floats
) -> None:
    """Put into `out` the least distances from searcher i that points in the boxes of some siblings can have."""
    fields, step = searchers.shape[1], np.uintp(size)
    low, high = np.uintp(2 * fields * begin), np.uintp(2 * fields * begin + fields * size)
    for j in range(size):
        out[j] = 0.0
    for k in range(fields):
        here = searchers[i, k]
        for j in range(size):
            apart = max(max(boxes[low + np.uintp(j)] - here, here - boxes[high + np.uintp(j)]), 0.0)
            out[j] += apart * apart if norm == 2 else apart
        low, high = low + step, high + step


@njit(cache=True, nogil=True, inline="always")
def through_box(
    boxes: Floats, begin: int, size: int, which: int, searchers: Floats, i: int, norm: int
) -> float:
    """Return the largest distance from searcher i that a point in the box of one of some siblings can have."""
    total, fields = 0.0, searchers.shape[1]
    for k in range(fields):
        here, place = searchers[i, k], 2 * fields * begin + k * size + which
        apart = max(here - boxes[place], boxes[place + fields * size] - here)
        total += apart * apart if norm == 2 else apart
    return total


@njit(cache=True, nogil=True)
def log_kernel(searchers: Floats, points: Floats, above: Floats, out: Floats) -> None:
    """Put above - |searcher - point|^2 / 2 of all pairs into `out` (searchers x points).

    `points` are fields x points.
    """
    for i in range(len(searchers)):
        row = out[i]
        for j in range(len(above)):
            row[j] = above[j]
        for k in range(points.shape[0]):
            here, field = searchers[i, k], points[k]
            for j in range(len(above)):
                apart = field[j] - here
                row[j] -= 0.5 * apart * apart

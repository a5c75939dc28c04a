"""Nearest points and counts from matrix products: min over c of |s - c|^2, and how many c have |s - c|^2 < limit.

The bounds of `distance_sieve` decide (own derivation there); pairs that they leave open are compared in full, so that
the answer is that of all pairs. Chosen by `attacks/nearest/search` where a k-d tree
compares a large share of all pairs.
The products are made here, two searchers and four coordinates at a time. A library's multiplication with threads of its
own, called from ours, took up to fifty times as long on a machine with other work.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from numba import njit

from . import announce
from .distance_sieve import TILE, Three, count_within_bound, may_lie, must_lie, nearest_three

announce(__file__)

ACROSS = 4  # coordinates at a time: searchers and points have zeros up to a multiple of it
WIDE = 256  # points at a time

Floats = npt.NDArray[np.float64]
Singles = npt.NDArray[np.float32]
Ints = npt.NDArray[np.int64]


@njit(cache=True, nogil=True, fastmath={"contract"})
def _multiply(aims: Singles, seen: Singles, begin: int, size: int, out: Singles) -> None:
    """Put the products of an even number of aims with some consecutive points (q x m) into `out`."""
    start, zero = np.uintp(begin), np.float32(0)
    for i in range(0, len(aims), 2):
        for j in range(size):
            out[i, j], out[i + 1, j] = zero, zero
        for k in range(0, aims.shape[1], 4):
            a, b, c, d = aims[i, k], aims[i, k + 1], aims[i, k + 2], aims[i, k + 3]
            e, f, g, h = aims[i + 1, k], aims[i + 1, k + 1], aims[i + 1, k + 2], aims[i + 1, k + 3]
            for j in range(size):
                at = start + np.uintp(j)
                w, x, y, z = seen[k, at], seen[k + 1, at], seen[k + 2, at], seen[k + 3, at]
                out[i, j] = out[i, j] + a * w + b * x + c * y + d * z
                out[i + 1, j] = out[i + 1, j] + e * w + f * x + g * y + h * z


@njit(cache=True, nogil=True, inline="always")
def _squared_distance(points: Floats, place: int, searchers: Floats, i: int) -> float:
    total = 0.0
    for k in range(searchers.shape[1]):
        apart = points[place, k] - searchers[i, k]
        total += apart * apart
    return total


@njit(cache=True, nogil=True)
def sift_nearest(
    aims: Singles,
    seen: Singles,
    lengths: Singles,
    points: Floats,
    searchers: Floats,
    squares: Floats,
    unit: float,
    same: float,
    start: float,
    distances: Floats,
    places: Ints,
) -> None:
    """Find for each searcher the three smallest distances (n x 3) and the places of the first two (n x 2).

    `aims` are twice the searchers as the sieve sees them, an even number, `squares` the squared lengths of searchers;
    `seen` (q x m) are the points as the sieve sees them, `lengths` their squared lengths, `points` (m x q) themselves.
    The search begins at the share `start` of the points: where near ones stand, soon nothing passes the sieve.
    """
    fields, products = searchers.shape[1], np.empty((len(aims), WIDE), np.float32)
    turns = (len(points) + WIDE - 1) // WIDE
    for turn in range(turns):
        first = (turn + int(start * turns)) % turns * WIDE
        width = min(WIDE, len(points) - first)
        _multiply(aims, seen, first, width, products)
        for i in range(len(searchers)):
            three = Three(distances[i, 0], distances[i, 1], distances[i, 2], places[i, 0], places[i, 1])
            length = may_lie(squares[i], three.two * same, unit, fields)
            for at in range(0, width, TILE):
                size = min(TILE, width - at)
                if count_within_bound(products, i, at, size, lengths, 0, first + at, length) == 0:
                    continue
                for j in range(at, at + size):
                    if lengths[0, first + j] + length > products[i, j]:
                        continue
                    here = _squared_distance(points, first + j, searchers, i)
                    if here <= three.two * same:
                        three = nearest_three(three, here, first + j)
                        length = may_lie(squares[i], three.two * same, unit, fields)
            distances[i, 0], distances[i, 1], distances[i, 2] = three.one, three.two, three.three
            places[i, 0], places[i, 1] = three.place, three.second


@njit(cache=True, nogil=True)
def sift_closer(
    aims: Singles,
    seen: Singles,
    lengths: Singles,
    points: Floats,
    searchers: Floats,
    squares: Floats,
    unit: float,
    limit: Floats,
    out: Ints,
) -> None:
    """Add to `out` how many points lie at a distance below each searcher's limit; the rest as for the nearest."""
    fields, products = searchers.shape[1], np.empty((len(aims), WIDE), np.float32)
    for first in range(0, len(points), WIDE):
        width = min(WIDE, len(points) - first)
        _multiply(aims, seen, first, width, products)
        for i in range(len(searchers)):
            must = must_lie(squares[i], limit[i], unit, fields)
            may = may_lie(squares[i], limit[i], unit, fields)
            for at in range(0, width, TILE):
                size = min(TILE, width - at)
                count = count_within_bound(products, i, at, size, lengths, 1, first + at, must)
                if count_within_bound(products, i, at, size, lengths, 0, first + at, may) != count:
                    count = 0
                    for j in range(at, at + size):
                        if lengths[0, first + j] + may <= products[i, j]:
                            count += _squared_distance(points, first + j, searchers, i) < limit[i]
                out[i] += count

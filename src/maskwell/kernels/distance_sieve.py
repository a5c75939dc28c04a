"""Which pairs can lie within a limit, by products in single precision: a sieve, not a result.

|s - c|^2 = |s|^2 + |c|^2 - 2 s.c. Searchers s and points c are seen from a common middle, in a unit in which no
coordinate is beyond 1, and rounded to single precision. In whatever order the products of s.c are added, all rounding
together is at most `slack` (|s|^2 + |c|^2), so a squared distance lies between two bounds:

    (1 - slack) (|s|^2 + |c|^2) - 2 s.c    and    (1 + slack) (|s|^2 + |c|^2) - 2 s.c

Own derivation, from the bound n u / (1 - n u) of a sum of n products (Higham 2002, section 3.1) and 2 |s||c| <= |s|^2 +
|c|^2. Only pairs that the bounds leave open are compared in full, by the same sum in the same order as everywhere, so
that the sieve changes no answer. What is here becomes part of the loops that use it: the k-d trees and
`distance_sieve_search`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from numba import njit

from . import announce

announce(__file__)

TILE = 64  # points compared side by side
UNIT = 2.0**-24  # relative rounding of single precision
WIDER = 1e-6  # of a limit: more than the rounding of the sums with it
TINY = 1e-30  # absolute: more than what products can lose below the smallest single number

Floats = npt.NDArray[np.float64]
Singles = npt.NDArray[np.float32]
Ints = npt.NDArray[np.int64]


@njit(cache=True, nogil=True, inline="always")
def slack(fields: int) -> float:
    """Return what rounding can do to a squared distance, relative to the squared lengths of both points.

    The q products take q units, the rounding of the points four, the sums with lengths three; twice that is safe.
    """
    return 2 * (fields + 8) * UNIT


@njit(cache=True, nogil=True, inline="always")
def may_lie(square: float, limit: float, unit: float, fields: int) -> np.float32:
    """Return what the length of a point must be added to, for the test whether it may lie within a limit."""
    return np.float32(square * (1 - slack(fields)) - limit * unit * unit * (1 + WIDER) - TINY)


@njit(cache=True, nogil=True, inline="always")
def must_lie(square: float, limit: float, unit: float, fields: int) -> np.float32:
    """Return what the length of a point must be added to, for the test whether it surely lies within a limit."""
    return np.float32(square * (1 + slack(fields)) - limit * unit * unit * (1 - WIDER) + TINY)


@njit(cache=True, nogil=True, inline="always")
def fill_aim(searchers: Floats, i: int, middle: Floats, unit: float, aim: Singles) -> float:
    """Put twice searcher i, as the sieve sees it, into `aim`, and return its squared length."""
    square = 0.0
    for k in range(len(aim)):
        here = np.float32((searchers[i, k] - middle[k]) * unit)
        aim[k] = np.float32(2) * here
        square += np.float64(here) * np.float64(here)
    return square


@njit(cache=True, nogil=True, inline="always")
def fill_products(seen: Singles, begin: int, stride: int, size: int, aim: Singles, out: Singles) -> None:
    """Put the products of an aim with some points into the first row of `out`; coordinates are a stride apart."""
    start, step, odd = np.uintp(begin), np.uintp(stride), len(aim) % 2
    here = aim[0] if odd else np.float32(0)
    if odd:
        for j in range(size):
            out[0, j] = here * seen[start + np.uintp(j)]
        start += step
    else:
        for j in range(size):
            out[0, j] = np.float32(0)
    for k in range(odd, len(aim), 2):
        here, there = aim[k], aim[k + 1]
        for j in range(size):
            both = here * seen[start + np.uintp(j)] + there * seen[start + step + np.uintp(j)]
            out[0, j] += both
        start += step + step


@njit(cache=True, nogil=True, inline="always")
def count_within_bound(
    products: Singles, i: int, at: int, size: int, lengths: Singles, row: int, begin: int, length: np.float32
) -> int:
    """Count the points of a tile whose length and the given one are at most their product."""
    here, there, count = (
        np.uintp(at),
        np.uintp(begin),
        np.int32(0),
    )  # as narrow as the numbers: twice as quick
    for j in range(size):
        within = lengths[row, there + np.uintp(j)] + length <= products[i, here + np.uintp(j)]
        count = np.int32(count + np.int32(within))
    return int(count)


# The nearest three.


class Three(NamedTuple):
    """The three smallest distances so far, the third only where it may tie, and the places of the first two."""

    one: float
    two: float
    three: float
    place: int
    second: int


@njit(cache=True, nogil=True, inline="always")
def nearest_three(three: Three, distance: float, place: int) -> Three:
    """Return the three smallest distances when one more is to choose from."""
    if distance < three.one:
        return Three(distance, three.one, three.two, place, three.place)
    if distance < three.two:
        return Three(three.one, distance, three.two, three.place, place)
    return Three(three.one, three.two, min(distance, three.three), three.place, three.second)


@njit(cache=True, nogil=True, inline="always")
def is_open(three: Three, same: float) -> bool:
    """Whether there are ties, at the first or at the second place, so that who is named is still open."""
    first = three.second >= 0 and three.two <= three.one * same
    return first or (three.three < np.inf and three.three <= three.two * same)

"""Points in tiles of WIDE, each the leaf of a tree, and sums of exp(offset - |point - query|^2 / 2) over a tile.

A tile is summed in double precision, or in single precision from its own middle. In single precision the exponent of a
point is off by at most `single_error`: coordinates are rounded relative to the tile's middle, which is as near to the
query as the tile's own points but for its half diagonal h, so with u = 2^-24, d the distance and p coordinates

    |rounded d^2 - d^2| <= u (4 d^2 + 4 d h + (p + 1) d^2),    products and sums included, to first order in u,

half of it in the exponent; offset, base and their sums add u times a few of their sizes, the exponential 1e-6. Own
derivation, by the model of rounding in Higham (2002), section 2.2.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
from numba import njit

from . import announce

announce(__file__)

WIDE = 64  # points of a tile
ACROSS = 4  # coordinates at a time
FLUSHED = 8  # tiles that are added up in single precision
UNIT = 2.0**-24  # relative rounding of single precision
# Relative error of exponentials and sums of FLUSHED in single precision, more than there is
EXPONENTIAL = 1e-6
SURE = 1e-9  # the least that is left when a share is taken away from 1

# Adding them rounds to a whole number, left in the last bits
SHIFT_64, SHIFT_32 = 1.5 * 2.0**52, np.float32(1.5 * 2.0**23)
# Log 2 in two parts, the first with zeros at its end: k times it is exact
LOG2_HIGH, LOG2_LOW = 6.93147180369123816490e-01, 1.90821492927058770002e-10
HIGH_32, LOW_32 = np.float32(0.693359375), np.float32(-2.12194440e-4)  # the same in single precision
PER_LOG2 = 1.4426950408889634  # 1 / log 2
PER_LOG2_32, HALF = np.float32(PER_LOG2), np.float32(0.5)
# Exponents whose exponentials are ordinary numbers
LEAST_64, LEAST_32, MOST_32 = -700.0, np.float32(-80.0), np.float32(70.0)
# Of Taylor's polynomial, degree 6 in single precision
T2, T3, T4, T5 = np.float32(1 / 2), np.float32(1 / 6), np.float32(1 / 24), np.float32(1 / 120)
T6, ONE, ZERO = np.float32(1 / 720), np.float32(1), np.float32(0)

Floats = npt.NDArray[np.float64]
Singles = npt.NDArray[np.float32]
Ints = npt.NDArray[np.int64]
Function = TypeVar("Function", bound=Callable[..., Any])


def lean(**options: Any) -> Callable[[Function], Function]:
    """Compile a function that makes no arrays, without counting references: that took a third of the time of calls."""
    made: Callable[[Function], Function] = njit(cache=True, nogil=True, _nrt=False, **options)  # type: ignore[call-overload]
    return made


@lean(fastmath={"contract"})
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
    power: float = np.int64((np.float64(shifted).view(np.int64) + 1023) << 52).view(np.float64)
    return p * power


@lean(fastmath={"contract"})
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


@lean()
def single_error(fields: int, half: float, diagonal: float, other: float) -> float:
    """Bound the error of an exponent in single precision, d^2 / 2 being at most `half`.

    `diagonal` is the half diagonal of the tile, `other` the size of base and value; offsets lie at most `half` below
    the tile's peak. The tenth on top is more than all second orders.
    """
    first = (fields + 10) * half + 2 * diagonal * np.sqrt(2 * half) + 2 * other
    return float(1.1 * UNIT * first + EXPONENTIAL)


@njit(cache=True, nogil=True, inline="always")
def padded_width(fields: int) -> int:
    """Return the number of coordinates with the zeros after them."""
    return max(ACROSS * ((fields + ACROSS - 1) // ACROSS), ACROSS)


# Loops run over the width of `room`, not over a constant: compilers unroll those instead of working side by side.
# Four coordinates are taken at a time; there are zeros up to a multiple of it.


@lean()
def values_64(exact: Floats, tile: int, query: Floats, least: float, room: Floats) -> int:
    """Put the scores of a tile into the first row of `room`, the same to the last bit as one by one.

    Returns how many are not below the least.
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


@lean(fastmath={"contract"}, error_model="numpy")
def add_64(room: Floats, ref: float, scale: float) -> None:
    """Add the weights of scores to the second row, and keep what stood there in the third: e / (1 - e scale) of
    e = exp(score - ref); 1 - e scale is taken for no less than a half.
    """
    for j in range(room.shape[1]):
        e = exp_64(room[0, j] - ref)
        room[2, j] = room[1, j]
        room[1, j] += e / max(1.0 - e * scale, 0.5)


@lean(fastmath={"contract"})
def values_32(single: Singles, tile: int, aim: Singles, base: float, room: Singles) -> None:
    """Put the scores of a tile, less the reference, into the first row: `base` is the tile's peak less the reference,
    `aim` the query seen from the tile's middle.
    """
    wide, half, peak = np.uintp(room.shape[1]), np.float32(0.5), np.float32(base)
    start = np.uintp(tile * (len(aim) + 1)) * wide
    off = start + np.uintp(len(aim)) * wide
    a, b, c, d, at = aim[0], aim[1], aim[2], aim[3], start
    for j in range(wide):
        s, t = single[at + j] - a, single[at + wide + j] - b
        u, v = single[at + wide + wide + j] - c, single[at + wide + wide + wide + j] - d
        room[0, j] = single[off + j] - half * (s * s + t * t + u * u + v * v) + peak
    for k in range(ACROSS, len(aim), ACROSS):
        a, b, c, d = aim[k], aim[k + 1], aim[k + 2], aim[k + 3]
        at = start + np.uintp(k) * wide
        for j in range(wide):
            s, t = single[at + j] - a, single[at + wide + j] - b
            u, v = single[at + wide + wide + j] - c, single[at + wide + wide + wide + j] - d
            room[0, j] -= half * (s * s + t * t + u * u + v * v)


@lean(fastmath={"contract"})
def add_32(room: Singles) -> None:
    """Do the same in single precision with scores less the reference, where scale is 0."""
    for j in range(room.shape[1]):
        room[2, j] = room[1, j]
        room[1, j] += exp_32(room[0, j])


@lean(fastmath={"contract"}, error_model="numpy")
def add_shares_32(room: Singles, scale: float) -> None:
    """Do the same where scale is not 0."""
    share, half = np.float32(-scale), np.float32(0.5)
    for j in range(room.shape[1]):
        e = exp_32(room[0, j])
        room[2, j] = room[1, j]
        room[1, j] += e / max(ONE + e * share, half)


@lean()
def reaching_32(room: Singles, least: float) -> int:
    """Return how many scores are not below the least."""
    count, low = np.int32(0), np.float32(least)
    for j in range(room.shape[1]):
        count = np.int32(count + np.int32(room[0, j] >= low))
    return int(count)


@lean()
def keys_below(
    sides: Floats,
    peak: Floats,
    count: Singles,
    node: int,
    query: Floats,
    ref: float,
    room: Floats,
    mass: Singles,
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


@lean()
def cost_of(exact: Floats, place: int, query: Floats) -> float:
    """Return minus the score of the point at a place (tile times WIDE plus lane), by the same sum in the same order."""
    across, total = len(query), 0.0
    start = place // WIDE * (across + 1) * WIDE + place % WIDE
    for k in range(across):
        apart = exact[start + k * WIDE] - query[k]
        total += apart * apart
    return float(0.5 * total - exact[start + across * WIDE])

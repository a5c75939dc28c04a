"""Probabilities of many boxes under one correlated normal law, compiled: fewer digits than `normal_box`, far faster.

Genz's separation of variables (1992) on one lattice, the same for all boxes. Each box gets one answer for each random
shift of the lattice: sums of answers keep their shifts, so that the spread over shifts gives the error of any sum,
however the errors of its boxes hang together. With the lattice fixed the answers are smooth in the bounds. Used by
`calibration/agreement_chance` and `calibration/full_agreement`, which need one box for each pair and level of noise.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
import numpy.typing as npt
from numba import njit

from . import announce
from .normal_box import GENERATOR

announce(__file__)

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

ROOT_HALF = math.sqrt(0.5)
SINGULAR = 1e-12  # a conditional variance below this part of the coordinate's own counts as zero
NO_LOADING = 1e-10  # a loading below it is rounding
GOLDEN = 0.6180339887498949  # (root of 5 - 1) / 2, as in normal_box

# Wichura's algorithm AS 241 (PPND16), Applied Statistics 37 (1988) 477-484: numerators and denominators of the
# quantile near the middle, in the tails, and far out; highest power first.
MIDDLE = (
    (2.5090809287301226727e3, 3.3430575583588128105e4, 6.7265770927008700853e4, 4.5921953931549871457e4)
    + (1.3731693765509461125e4, 1.9715909503065514427e3, 1.3314166789178437745e2, 3.3871328727963666080e0),
    (5.2264952788528545610e3, 2.8729085735721942674e4, 3.9307895800092710610e4, 2.1213794301586595867e4)
    + (5.3941960214247511077e3, 6.8718700749205790830e2, 4.2313330701600911252e1, 1.0),
)
TAIL = (
    (7.74545014278341407640e-4, 2.27238449892691845833e-2, 2.41780725177450611770e-1)
    + (1.27045825245236838258e0, 3.64784832476320460504e0, 5.76949722146069140550e0)
    + (4.63033784615654529590e0, 1.42343711074968357734e0),
    (1.05075007164441684324e-9, 5.47593808499534494600e-4, 1.51986665636164571966e-2)
    + (1.48103976427480074590e-1, 6.89767334985100004550e-1, 1.67638483018380384940e0)
    + (2.05319162663775882187e0, 1.0),
)
FAR = (
    (2.01033439929228813265e-7, 2.71155556874348757815e-5, 1.24266094738807843860e-3)
    + (2.65321895265761230930e-2, 2.96560571828504891230e-1, 1.78482653991729133580e0)
    + (5.46378491116411436990e0, 6.65790464350110377720e0),
    (2.04426310338993978564e-15, 1.42151175831644588870e-7, 1.84631831751005468180e-5)
    + (7.86869131145613259100e-4, 1.48753612908506148525e-2, 1.36929880922735805310e-1)
    + (5.99832206555887937690e-1, 1.0),
)


@njit(cache=True, nogil=True, inline="always")
def _ratio(over: tuple[float, ...], under: tuple[float, ...], r: float) -> float:
    above, below = 0.0, 0.0
    for i in range(8):
        above = above * r + over[i]
        below = below * r + under[i]
    return above / below


@njit(cache=True, nogil=True)
def normal_quantile(p: float) -> float:
    """Return x with P(N(0, 1) <= x) = p, infinite at 0 and 1."""
    q = p - 0.5
    if abs(q) <= 0.425:
        return q * _ratio(MIDDLE[0], MIDDLE[1], 0.180625 - q * q)
    tail = p if q < 0.0 else 1.0 - p
    if tail <= 0.0:
        return -math.inf if q < 0.0 else math.inf
    r = math.sqrt(-math.log(tail))
    x = _ratio(TAIL[0], TAIL[1], r - 1.6) if r <= 5.0 else _ratio(FAR[0], FAR[1], r - 5.0)
    return -x if q < 0.0 else x


@njit(cache=True, nogil=True, inline="always")
def _below(x: float) -> float:
    return 0.5 * math.erfc(-x * ROOT_HALF)


@njit(cache=True, nogil=True, inline="always")
def _mass(low: float, high: float) -> tuple[float, float, bool]:
    """Return the normal mass of an interval, what lies below it, and whether it was mirrored to keep its digits."""
    flip = low + high > 0.0
    a, b = (-high, -low) if flip else (low, high)
    below = _below(a)
    return max(_below(b) - below, 0.0), below, flip


@njit(cache=True, nogil=True)
def _narrowest_first(lower: Floats, upper: Floats, order: Ints, masses: Floats) -> int:
    """Put the bounded coordinates in order of their masses; return how many there are, -1 if one is empty."""
    count = 0
    for j in range(len(lower)):
        if not lower[j] < upper[j]:
            return -1
        if lower[j] == -math.inf and upper[j] == math.inf:
            continue
        mass, _, _ = _mass(lower[j], upper[j])
        place = count
        while place > 0 and masses[place - 1] > mass:
            masses[place], order[place] = masses[place - 1], order[place - 1]
            place -= 1
        masses[place], order[place] = mass, j
        count += 1
    return count


@njit(cache=True, nogil=True)
def _factor(correlation: Floats, order: Ints, count: int, loadings: Floats, last: Ints, pivots: Ints) -> int:
    """Fill the loadings of the ordered coordinates on independent normals; return the rank.

    `last[i]` is the last normal that coordinate i depends on: given the earlier ones it is bounded by it.
    """
    rank = 0
    for i in range(count):
        rest = correlation[order[i], order[i]]
        for k in range(rank):
            known = correlation[order[i], order[pivots[k]]]
            for j in range(k):
                known -= loadings[i, j] * loadings[pivots[k], j]
            loadings[i, k] = known / loadings[pivots[k], k]
            if abs(loadings[i, k]) < NO_LOADING:
                loadings[i, k] = 0.0
            else:
                last[i] = k
            rest -= loadings[i, k] * loadings[i, k]
        if rest > SINGULAR:
            loadings[i, rank], last[i], pivots[rank] = math.sqrt(rest), rank, i
            rank += 1
    return rank


@njit(cache=True, nogil=True)
def _is_diagonal(loadings: Floats, count: int, rank: int) -> bool:
    for i in range(count):
        for k in range(min(i, rank)):
            if loadings[i, k] != 0.0:
                return False
    return rank == count


@njit(cache=True, nogil=True)
def _product(
    lower: Floats,
    upper: Floats,
    order: Ints,
    count: int,
    loadings: Floats,
    last: Ints,
    rank: int,
    uniform: Floats,
    drawn: Floats,
) -> float:
    """Return the product of conditional masses along one point of the lattice."""
    weight = 1.0
    for k in range(rank):
        low, high = -math.inf, math.inf
        for i in range(k, count):
            if last[i] != k:
                continue
            shift = 0.0
            for j in range(k):
                shift += loadings[i, j] * drawn[j]
            one = (lower[order[i]] - shift) / loadings[i, k]
            other = (upper[order[i]] - shift) / loadings[i, k]
            low, high = max(low, min(one, other)), min(high, max(one, other))
        if not low < high:
            return 0.0
        mass, below, flip = _mass(low, high)
        weight *= mass
        if weight == 0.0 or k == rank - 1:
            break
        along = 1.0 - uniform[k] if flip else uniform[k]
        x = normal_quantile(below + mass * along)
        drawn[k] = -x if flip else x
    return weight


@njit(cache=True, nogil=True)
def box_chances(lower: Floats, upper: Floats, correlation: Floats, points: Floats, out: Floats) -> None:
    """Put into `out` (boxes x shifts) P(lower <= N(0, correlation) <= upper), one answer for each shift.

    `lower` and `upper` are boxes x coordinates, infinite where a side is open; `points` shifts x points x (at least
    coordinates - 1), uniform. A box of one coordinate, or of uncorrelated ones, is exact under every shift.
    """
    width = lower.shape[1]
    order, last, pivots = np.empty(width, np.int64), np.empty(width, np.int64), np.empty(width, np.int64)
    masses, drawn, loadings = np.empty(width), np.empty(width), np.empty((width, width))
    for row in range(len(lower)):
        low, high = lower[row], upper[row]
        count = _narrowest_first(low, high, order, masses)
        if count <= 0:
            out[row] = 1.0 + count
            continue
        loadings[:] = 0.0
        rank = _factor(correlation, order, count, loadings, last, pivots)
        if _is_diagonal(loadings, count, rank):
            out[row] = np.prod(masses[:count])
            continue
        for shift in range(points.shape[0]):
            total = 0.0
            for point in points[shift]:
                total += _product(low, high, order, count, loadings, last, rank, point, drawn)
            out[row, shift] = total / points.shape[1]


@lru_cache(maxsize=16)
def lattice(coordinates: int, points: int, shifts: int) -> Floats:
    """Return the points for boxes of so many coordinates, folded by the tent map: shifts x points x dimensions.

    The lattice is that of `normal_box`; `points` should be a power of two.
    """
    dimensions = max(coordinates - 1, 1)
    if dimensions > len(GENERATOR):
        raise ValueError(f"A box may bound at most {len(GENERATOR) + 1} coordinates, not {coordinates}.")
    along = np.arange(points)[:, None] * GENERATOR[:dimensions] / points
    number = np.arange(1.0, shifts * dimensions + 1.0).reshape(shifts, 1, dimensions)
    shifted = (along + number**2 * GOLDEN) % 1.0  # squares of a golden ratio scatter like chance
    folded = np.clip(np.abs(2.0 * shifted - 1.0), 1e-16, 1.0 - 1e-16)
    folded.setflags(write=False)
    return np.ascontiguousarray(folded)


@njit(cache=True, nogil=True)
def shared_chances(
    chances: Floats, start: Ints, certain: Ints, nodes: Floats, weights: Floats, out: Floats
) -> None:
    """Put into `out` (targets x shifts) E 1 / (1 + K), K the number of others that agree with each target.

    The others of target t agree independently, with the `chances` (pairs x shifts) from start[t] to start[t + 1],
    and `certain[t]` more agree always: the integral over s from 0 to 1 of s^certain times the product of
    1 - p + p s, by the quadrature given.
    """
    for t in range(len(certain)):
        for shift in range(chances.shape[1]):
            total = 0.0
            for k in range(len(nodes)):
                product = weights[k] * nodes[k] ** certain[t]
                for pair in range(start[t], start[t + 1]):
                    product *= 1.0 - chances[pair, shift] * (1.0 - nodes[k])
                total += product
            out[t, shift] = total

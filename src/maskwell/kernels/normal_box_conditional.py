"""Densities of some coordinates and probabilities of boxes of the others under a normal law, nearly: one by one.

Points come first, and are exact. Given them, and given that the coordinates before it lie in their intervals, a
coordinate is taken for normal with the mean and the variance that it then has (Mendell and Elston, 1974, Biometrics 30,
41-57), the narrowest interval first. So a box of one coordinate is exact too, and one of independent coordinates. Boxes
that are likely are off by a hundredth or so, unlikely ones by more. Some microseconds do what a lattice takes
milliseconds for (see `normal_box`): taken to weigh records by, where each of very many pairs is such a box.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit
from numpy.typing import NDArray

from . import announce
from .densities import LOG_ROOT_2_PI, log_normal_interval

announce(__file__)

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Kinds = NDArray[np.int8]

UNUSED, POINT, BOX = 0, 1, 2
LEAST_VARIANCE = 1e-12  # of a coordinate given others: below it is rounding


@njit(cache=True, nogil=True, error_model="numpy")
def conditioned_logs(lower: Floats, upper: Floats, kinds: Kinds, correlation: Floats, out: Floats) -> None:
    """Fill the log density of the points, at `lower`, and probability of the boxes of each record; unit variances."""
    size = correlation.shape[0]
    mean, rest, rank, order = np.empty(size), np.empty((size, size)), np.empty(size), np.empty(size, np.int64)
    for i in range(len(lower)):
        count = 0
        for j in range(size):
            mean[j] = 0.0
            for k in range(size):
                rest[j, k] = correlation[j, k]
            if kinds[i, j] == UNUSED:
                continue
            rank[count] = -math.inf
            if kinds[i, j] == BOX:
                rank[count] = log_normal_interval(lower[i, j], upper[i, j], 1.0)
            order[count] = j
            count += 1
        _sort(rank, order, count)
        total = 0.0
        for place in range(count):
            k = order[place]
            sd = math.sqrt(max(rest[k, k], LEAST_VARIANCE))
            low, high = (lower[i, k] - mean[k]) / sd, (upper[i, k] - mean[k]) / sd
            if kinds[i, k] == POINT:
                total -= 0.5 * low * low + LOG_ROOT_2_PI + math.log(sd)
                shift, kept = low, 0.0
            else:
                log_mass = log_normal_interval(low, high, 1.0)
                total += log_mass
                shift, kept = _moments(low, high, log_mass)
            if total == -math.inf:
                break
            _pass_on(mean, rest, order[:count], place, (sd * shift, kept))
        out[i] = total


@njit(cache=True, nogil=True)
def _sort(rank: Floats, order: Ints, count: int) -> None:
    """Sort the first places by their rank, those of one rank as they stand."""
    for i in range(1, count):
        one, at, j = rank[i], order[i], i - 1
        while j >= 0 and rank[j] > one:
            rank[j + 1], order[j + 1] = rank[j], order[j]
            j -= 1
        rank[j + 1], order[j + 1] = one, at


@njit(cache=True, nogil=True)
def _moments(low: float, high: float, log_mass: float) -> tuple[float, float]:
    """Return mean and variance of a standard normal variable between two ends."""
    if log_mass == -math.inf:
        return 0.0, 1.0
    below, above = _share(low, log_mass), _share(high, log_mass)
    mean = below - above
    variance = 1.0 - mean * mean
    if below > 0.0:
        variance += low * below
    if above > 0.0:
        variance -= high * above
    return mean, min(max(variance, 0.0), 1.0)


@njit(cache=True, nogil=True)
def _share(end: float, log_mass: float) -> float:
    """Return the normal density at an end of an interval, divided by its mass."""
    return 0.0 if math.isinf(end) else math.exp(-0.5 * end * end - LOG_ROOT_2_PI - log_mass)


@njit(cache=True, nogil=True, error_model="numpy")
def _pass_on(mean: Floats, rest: Floats, order: Ints, place: int, moments: tuple[float, float]) -> None:
    """Give the coordinates that follow the moments that they have once this one has its value or interval."""
    k, (shift, kept) = order[place], moments
    variance = max(rest[k, k], LEAST_VARIANCE)
    for one in range(place + 1, len(order)):
        j = order[one]
        slope = rest[j, k] / variance
        mean[j] += slope * shift
        for other in range(place + 1, one + 1):
            m = order[other]
            rest[j, m] -= slope * rest[m, k] * (1.0 - kept)
            rest[m, j] = rest[j, m]

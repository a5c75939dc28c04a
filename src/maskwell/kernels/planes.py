"""Probabilities of boxes that bound one or two coordinates of a normal law, compiled; right to 1e-12 also in the tails.

One coordinate has a closed form. In the plane the second coordinate is slope * first + N(0, sd^2): its mass given the
first is integrated over the first by Gauss and Legendre. The log of the integrand is concave with a second derivative
below -1, so it has one peak and ends within 9 of it; panels are cut at the peak, where an end of the second coordinate
is crossed, and so that the integrand falls by a bounded part within each.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit
from numpy.polynomial.chebyshev import cheb2poly, chebinterpolate
from numpy.polynomial.legendre import leggauss
from numpy.typing import NDArray
from scipy.special import erfcx

from . import announce

announce(__file__)

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
Line = tuple[
    float, float, float, float
]  # ends of the second coordinate, its slope on the first, its sd given it

ROOT_HALF = math.sqrt(0.5)
ROOT_2_PI = math.sqrt(2.0 * math.pi)
LOG_ROOT_2_PI = math.log(ROOT_2_PI)
SINGULAR = 1e-12  # a conditional variance below this part of the coordinate's own counts as zero
NO_LOADING = 1e-10
QUADRATURE_ERROR = 1e-12
NEGLIGIBLE_LOG = 36.0  # what lies this far below the peak of a log-integrand is left out
NODES, WEIGHTS = leggauss(20)
MOST_FALL = 20.0  # of the log-integrand within a panel
LONGEST = 4.5  # panel, in sds of the first coordinate
EDGE = (-7.5, -3.75, 0.0, 3.75, 7.5)  # cuts about an end of the second coordinate, in its sds
NARROW = 0.5
CELLS, DEGREE = 64, 8


def _fitted(cell: int) -> Floats:
    """Return the polynomial, in a cell's own units, of erfcx(x) / y where y = 4 / (4 + x)."""

    def ratio(units: Floats) -> Floats:
        y = (cell + 0.5 * (1.0 + units)) / CELLS
        return np.asarray(erfcx(4.0 / y - 4.0) / y)

    return np.asarray(cheb2poly(chebinterpolate(ratio, DEGREE))[::-1])


ERFCX = np.array([_fitted(cell) for cell in range(CELLS)])


@njit(cache=True, nogil=True, inline="always")
def _tail(x: float) -> float:
    """Return exp(x^2 / 2) P(N(0, 1) > x) for x >= 0."""
    y = 4.0 / (4.0 + ROOT_HALF * x)
    cell = min(int(y * CELLS), CELLS - 1)
    units = 2.0 * (y * CELLS - cell) - 1.0
    value = 0.0
    for i in range(DEGREE + 1):
        value = value * units + ERFCX[cell, i]
    return 0.5 * value * y


@njit(cache=True, nogil=True)
def _narrow(middle: float, half: float) -> float:
    """Return exp(middle^2 / 2) times the mass within `half` of `middle`: a series in Hermite polynomials."""
    before, here, term, total = 0.0, 1.0, 2.0 * half, 0.0
    square = half * half
    for j in range(9):
        total += term * here
        before = middle * here - 2.0 * j * before
        here = middle * before - (2.0 * j + 1.0) * here
        term *= square / ((2.0 * j + 2.0) * (2.0 * j + 3.0))
    return total / ROOT_2_PI


@njit(cache=True, nogil=True)
def _mass(a: float, b: float, width: float) -> tuple[float, float, float]:
    """Return e, f and d: P(a < N(0, 1) < b) = exp(e) f, and the difference of densities at a and b = exp(e) d."""
    middle, half = 0.5 * (a + b), 0.5 * width
    if half * (abs(middle) + 1.0) <= NARROW:
        mass = _narrow(middle, half)
        return -0.5 * middle * middle, mass, mass * middle * (1.0 - half * half / 3.0)
    if a < 0.0 < b:
        at_a, at_b = math.exp(-0.5 * a * a), math.exp(-0.5 * b * b)
        return 0.0, 1.0 - at_a * _tail(-a) - at_b * _tail(b), (at_a - at_b) / ROOT_2_PI
    near, far = (a, b) if a >= 0.0 else (-b, -a)
    fall = math.exp(-0.5 * width * (near + far))
    change = (1.0 - fall) / ROOT_2_PI
    return -0.5 * near * near, _tail(near) - fall * _tail(far), change if a >= 0.0 else -change


@njit(cache=True, nogil=True)
def log_mass(lower: float, upper: float) -> float:
    """Return log P(lower <= N(0, 1) <= upper); minus infinity where lower >= upper."""
    if not lower < upper:
        return -math.inf
    exponent, factor, _ = _mass(lower, upper, upper - lower)
    if exponent == 0.0 and factor > 0.5:
        return math.log1p(-_outside(lower, upper))
    return exponent + math.log(factor)


@njit(cache=True, nogil=True)
def _outside(lower: float, upper: float) -> float:
    return math.exp(-0.5 * lower * lower) * _tail(-lower) + math.exp(-0.5 * upper * upper) * _tail(upper)


# --- the integrand -----------------------------------------------------------------------------------------


@njit(cache=True, nogil=True)
def _log_joint(t: float, line: Line) -> tuple[float, float]:
    """Return the log-integrand at t, short of the constant of the normal density, and its derivative."""
    low, high, slope, sd = line
    a, b = (low - slope * t) / sd, (high - slope * t) / sd
    exponent, factor, change = _mass(a, b, (high - low) / sd)
    mean = min(max(change / factor, a), b)
    return exponent - 0.5 * t * t + math.log(factor), slope / sd * mean - t


@njit(cache=True, nogil=True)
def _panel(start: float, end: float, top: float, line: Line) -> float:
    """Return the integral of exp(log joint - top) over one panel."""
    low, high, slope, sd = line
    half, middle, width, total = 0.5 * (end - start), 0.5 * (start + end), (high - low) / sd, 0.0
    for i in range(len(NODES)):
        t = middle + half * NODES[i]
        exponent, factor, _ = _mass((low - slope * t) / sd, (high - slope * t) / sd, width)
        total += WEIGHTS[i] * factor * math.exp(exponent - 0.5 * t * t - top)
    return half * total


@njit(cache=True, nogil=True)
def _peak(low: float, high: float, line: Line) -> float:
    """Return the peak of the integrand to a tenth of its width: false position, halved where an end stays."""
    pull = abs(line[2]) * (max(line[0], -line[1], 0.0) + 1.0)
    left, right = min(max(-pull, low), high), max(min(pull, high), low)
    rise, fall = _log_joint(left, line)[1], _log_joint(right, line)[1]
    if rise <= 0.0 or fall >= 0.0:
        return left if rise <= 0.0 else right
    for _ in range(100):
        t = right - fall * (right - left) / (fall - rise)
        if not left < t < right:
            t = 0.5 * (left + right)
        rate = _log_joint(t, line)[1]
        if abs(rate) < 0.1:
            return t
        if rate > 0.0:
            left, rise, fall = t, rate, 0.5 * fall
        else:
            right, fall, rise = t, rate, 0.5 * rise
    return 0.5 * (left + right)


@njit(cache=True, nogil=True)
def _reach(peak: float, sign: float, room: float, line: Line) -> float:
    """Return how far from the peak the integrand matters, at most `room`: Newton's steps, which stop short of it."""
    top, rate = _log_joint(peak, line)
    down = max(-sign * rate, 0.0)
    reach = min(room, 2.0 * NEGLIGIBLE_LOG / (down + math.sqrt(down * down + 2.0 * NEGLIGIBLE_LOG)))
    for _ in range(100):
        value, rate = _log_joint(peak + sign * reach, line)
        beyond = top - value - NEGLIGIBLE_LOG
        if beyond <= 4.0:
            break
        step = beyond / max(-sign * rate, 1e-300)
        reach = reach - step if step < reach else 0.5 * reach
    return reach


@njit(cache=True, nogil=True)
def _stretch(start: float, end: float, top: float, line: Line) -> float:
    """Integrate between two cuts in panels of one length."""
    fall = abs(_log_joint(end, line)[0] - _log_joint(start, line)[0])
    panels = 1 + int(max(min(fall, 100.0) / MOST_FALL, (end - start) / LONGEST))
    length, total = (end - start) / panels, 0.0
    for i in range(panels):
        total += _panel(start + i * length, end if i == panels - 1 else start + (i + 1) * length, top, line)
    return total


@njit(cache=True, nogil=True)
def log_plane(low: float, high: float, line: Line) -> float:
    """Return the log probability that the first coordinate lies in [low, high] and the second between its ends."""
    low_2, high_2, slope, sd = line
    if slope == 0.0:
        return log_mass(low, high) + log_mass(low_2 / sd, high_2 / sd)
    peak = _peak(low, high, line)
    top = _log_joint(peak, line)[0]
    if not top > -math.inf:
        return top
    start, end = peak - _reach(peak, -1.0, peak - low, line), peak + _reach(peak, 1.0, high - peak, line)
    blur = sd / abs(slope)
    total, here = 0.0, start
    while here < end:
        stop = peak if here < peak < end else end
        if end - start > 3.0 * blur:
            for side in (low_2 / slope, high_2 / slope):
                for k in EDGE:
                    cut = side + k * blur
                    stop = cut if here < cut < stop else stop
        total += _stretch(here, stop, top, line)
        here = stop
    return top + math.log(total) - LOG_ROOT_2_PI


@njit(cache=True, nogil=True)
def _log_pair(lower: Floats, upper: Floats, i: int, j: int, correlation: float) -> float:
    """Return the log probability of two bounded coordinates; where one determines the other their intervals meet."""
    slope = correlation if abs(correlation) >= NO_LOADING else 0.0
    rest = 1.0 - correlation * correlation
    if rest > SINGULAR:
        return log_plane(lower[i], upper[i], (lower[j], upper[j], slope, math.sqrt(rest)))
    ends = lower[j] / slope, upper[j] / slope
    return log_mass(max(lower[i], min(ends[0], ends[1])), min(upper[i], max(ends[0], ends[1])))


@njit(cache=True, nogil=True)
def few_bounded(
    lower: Floats, upper: Floats, correlation: Floats, log_p: Floats, error: Floats, many: Bools
) -> int:
    """Answer the records that bound at most two coordinates, mark the others as many, and return their number.

    The coordinates have unit variance, or none: these must hold zero. A box with a missing end has no answer.
    """
    left = 0
    for i in range(len(lower)):
        count = first = second = 0
        possible, known = True, True
        for j in range(lower.shape[1]):
            low, high = lower[i, j], upper[i, j]
            known = known and not (math.isnan(low) or math.isnan(high))
            if correlation[j, j] == 0.0:
                possible = possible and low <= 0.0 <= high
                continue
            possible = possible and low < high
            if low > -math.inf or high < math.inf:
                count += 1
                first, second = (j, second) if count == 1 else (first, j)
        many[i] = False
        error[i] = 0.0
        if not (known and possible):
            log_p[i] = -math.inf if known else math.nan
        elif count == 0:
            log_p[i] = 0.0
        elif count == 1:
            log_p[i] = log_mass(lower[i, first], upper[i, first])
        elif count == 2:
            if log_mass(lower[i, second], upper[i, second]) < log_mass(lower[i, first], upper[i, first]):
                first, second = second, first
            log_p[i] = _log_pair(lower[i], upper[i], first, second, correlation[second, first])
            error[i] = QUADRATURE_ERROR
        else:
            many[i] = True
            left += 1
    return left

"""Probabilities of boxes that bound one or two coordinates of a normal law, compiled; right to 1e-12 also in the tails.

One coordinate has a closed form. In the plane the second coordinate is slope * first + N(0, sd^2): its mass given the
first is integrated over the first by Gauss and Legendre. The log of the integrand is concave (Prekopa 1973) with a
second derivative below -1, so it has one peak and ends within 9 of it; panels are cut at the peak, where an end of the
second coordinate is crossed, and so that the integrand falls by a bounded part within each: own derivation. Chosen by
`normal_box` for every record that bounds at most two coordinates.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit
from numpy.polynomial.chebyshev import cheb2poly, chebfit, chebpts1
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
NO_LOADING = 1e-10  # a correlation below it is rounding
QUADRATURE_ERROR = 1e-12  # what is said of the error of P
NEGLIGIBLE_LOG = 36.0  # what lies this far below the peak of a log-integrand is left out
NODES, WEIGHTS = leggauss(16)  # of a panel whose log-integrand falls by at most MOST_FALL
MOST_FALL = 20.0  # of the log-integrand within a panel
LONGEST = 4.5  # panel, in sds of the first coordinate
EDGE = (-7.5, -2.5, 2.5, 7.5)  # cuts about an end of the second coordinate, in its sds
SHARP = 3.0  # a range of more of these sds is cut
NARROW = 0.5  # half widths x (1 + distance) up to which nine terms of the series do
CELLS, DEGREE = 64, 8  # of the table of erfcx: piecewise polynomials of degree 8


def _erfcx_polynomials() -> Floats:
    """Return polynomials, highest power first, of erfcx(x) / y in each cell of y = 4 / (4 + x), on -1 to 1."""
    units = chebpts1(DEGREE + 1)
    y = (np.arange(CELLS) + 0.5 * (1.0 + units[:, None])) / CELLS
    series = chebfit(units, erfcx(4.0 / y - 4.0) / y, DEGREE)
    return np.array([cheb2poly(column)[::-1] for column in series.T], float)


ERFCX = _erfcx_polynomials()


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
def _peak(low: float, high: float, line: Line) -> tuple[float, float, float]:
    """Return the peak of the integrand, to a tenth of its width, with the log-integrand and its derivative there.

    False position, where an end that stays counts half.
    """
    pull = abs(line[2]) * (max(line[0], -line[1], 0.0) + 1.0)
    left, right = min(max(-pull, low), high), max(min(pull, high), low)
    top, rise = _log_joint(left, line)
    if rise <= 0.0:
        return left, top, rise
    top, fall = _log_joint(right, line)
    if fall >= 0.0:
        return right, top, fall
    t, rate = right, fall
    for _ in range(100):
        t = right - fall * (right - left) / (fall - rise)
        t = t if left < t < right else 0.5 * (left + right)
        top, rate = _log_joint(t, line)
        if abs(rate) < 0.1:
            break
        if rate > 0.0:
            left, rise, fall = t, rate, 0.5 * fall
        else:
            right, fall, rise = t, rate, 0.5 * rise
    return t, top, rate


@njit(cache=True, nogil=True)
def _reach(at: tuple[float, float, float], sign: float, room: float, line: Line) -> tuple[float, float]:
    """Return how far from the peak the integrand matters, at most `room`, and the log-integrand there.

    Newton's steps on a concave function never pass what they look for.
    """
    peak, top, rate = at
    if room <= 0.0:
        return 0.0, top
    down = max(-sign * rate, 0.0)
    reach = min(room, 2.0 * NEGLIGIBLE_LOG / (down + math.sqrt(down * down + 2.0 * NEGLIGIBLE_LOG)))
    value = top
    for _ in range(100):
        value, rate = _log_joint(peak + sign * reach, line)
        beyond = top - value - NEGLIGIBLE_LOG
        if beyond <= 4.0:
            break
        step = beyond / max(-sign * rate, 1e-300)
        reach = reach - step if step < reach else 0.5 * reach
    return reach, value


@njit(cache=True, nogil=True)
def _stretch(start: float, end: float, fall: float, top: float, line: Line) -> float:
    """Integrate between two cuts in panels of one length, as many as the fall of the log-integrand asks for."""
    panels = 1 + int(max(min(abs(fall), 100.0) / MOST_FALL, (end - start) / LONGEST))
    length, total = (end - start) / panels, 0.0
    for i in range(panels):
        total += _panel(start + i * length, start + (i + 1) * length, top, line)
    return total


@njit(cache=True, nogil=True)
def _next_cut(here: float, stop: float, line: Line) -> float:
    """Return the first cut about an end of the second coordinate between `here` and `stop`, or `stop`."""
    low, high, slope, sd = line
    for side in (low / slope, high / slope):
        for k in EDGE:
            cut = side + k * sd / slope
            stop = cut if here < cut < stop else stop
    return stop


@njit(cache=True, nogil=True)
def log_plane(low: float, high: float, line: Line) -> float:
    """Return the log probability that the first coordinate lies in [low, high] and the second between its ends."""
    low_2, high_2, slope, sd = line
    if slope == 0.0:
        return log_mass(low, high) + log_mass(low_2 / sd, high_2 / sd)
    at = _peak(low, high, line)
    peak, top, _ = at
    if not top > -math.inf:
        return top
    before, here_log = _reach(at, -1.0, peak - low, line)
    after, end_log = _reach(at, 1.0, high - peak, line)
    here, end = peak - before, peak + after
    sharp, total = before + after > SHARP * sd / abs(slope), 0.0
    while here < end:
        target = peak if here < peak else end
        stop = _next_cut(here, target, line) if sharp else target
        stop_log = _log_joint(stop, line)[0] if stop < target else (top if target == peak else end_log)
        total += _stretch(here, stop, stop_log - here_log, top, line)
        here, here_log = stop, stop_log
    return top + math.log(total) - LOG_ROOT_2_PI


@njit(cache=True, nogil=True)
def _pair(lower: Floats, upper: Floats, i: int, j: int, correlation: float) -> tuple[float, float]:
    """Return the log probability of two bounded coordinates and its error; the narrower one is taken first.

    Where one determines the other, their intervals meet.
    """
    if log_mass(lower[j], upper[j]) < log_mass(lower[i], upper[i]):
        i, j = j, i
    rest = (1.0 - correlation) * (1.0 + correlation)
    if rest > SINGULAR:
        slope = correlation if abs(correlation) >= NO_LOADING else 0.0
        line = lower[j], upper[j], slope, math.sqrt(rest)
        return log_plane(lower[i], upper[i], line), QUADRATURE_ERROR
    ends = lower[j] / correlation, upper[j] / correlation
    low, high = max(lower[i], min(ends[0], ends[1])), min(upper[i], max(ends[0], ends[1]))
    return log_mass(low, high), 0.0


@njit(cache=True, nogil=True)
def _bounded_span(lower: Floats, upper: Floats, correlation: Floats) -> tuple[int, int, int]:
    """Return how many coordinates a box bounds and the first and last of them; -1 where it is empty, -2 with a gap."""
    count, first, last, possible = 0, -1, -1, True
    for j in range(len(lower)):
        low, high = lower[j], upper[j]
        if math.isnan(low) or math.isnan(high):
            return -2, -1, -1
        if correlation[j, j] == 0.0:
            possible = possible and low <= 0.0 <= high
            continue
        possible = possible and low < high
        if low > -math.inf or high < math.inf:
            count, first, last = count + 1, j if count == 0 else first, j
    return count if possible else -1, first, last


@njit(cache=True, nogil=True)
def few_bounded(lower: Floats, upper: Floats, correlation: Floats, log_p: Floats, error: Floats) -> Bools:
    """Fill in log P and its error for the records that bound at most two coordinates, and mark the others.

    The coordinates have unit variance, or none: these must hold zero. A box with a missing end has no answer.
    """
    many = np.zeros(len(lower), np.bool_)
    for i in range(len(lower)):
        count, first, last = _bounded_span(lower[i], upper[i], correlation)
        log_p[i], error[i], many[i] = 0.0, 0.0, count > 2
        if count < 0:
            log_p[i] = -math.inf if count == -1 else math.nan
        elif count == 1:
            log_p[i] = log_mass(lower[i, first], upper[i, first])
        elif count == 2:
            log_p[i], error[i] = _pair(lower[i], upper[i], first, last, correlation[first, last])
    return many

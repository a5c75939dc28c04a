"""Sequential probits of a category, by patterns of known columns: counts are all that their parameters need."""

from __future__ import annotations

from math import cos, exp, log, pi, sin
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from numba import njit

from . import announce
from .coefficients import draw_coefficients
from .equations import HALF_LOG_2PI, Moments
from .programs import enclosed, inner, lean
from .randoms import log_normal_cdf

announce(__file__)

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

MOST_NEWTON, AT_REST, LONGEST = 25, 1e-6, 2.0
FARTHEST, LARGEST, FLATTEST = 30.0, 30.0, 1e-6
HALF_T_DF = 2.0


class Stick(NamedTuple):
    """One stick: columns by pattern and the group of each, tried and taken by pattern, priors, parameters (changed).

    Without group effects `effects` has no column. `mode` has the linear predictors at the last mode, where Newton
    begins.
    """

    columns: Floats
    group: Ints
    tried: Floats
    taken: Floats
    precision: Floats
    linear: Floats
    coefficients: Floats
    effects: Floats
    mode: Floats


@lean
def stick_eta(stick: Stick, p: int) -> float:
    """Return the linear predictor of a pattern."""
    eta = stick.effects[stick.group[p], 0] if stick.effects.shape[1] > 0 else 0.0
    for c in range(stick.columns.shape[1]):
        eta += stick.coefficients[c] * stick.columns[p, c]
    return float(eta)


@inner
def _fill_etas(stick: Stick, etas: Floats) -> None:
    for p in range(len(etas)):
        etas[p] = stick_eta(stick, p)


@njit(cache=True, nogil=True)
def draw_stick(stick: Stick, variance: float, rng: np.random.Generator) -> None:
    """Draw coefficients and effects by an elliptical slice around their mode (see `samplers.gibbs.turned`)."""
    many = len(stick.group)
    first, middle, second = np.empty(many), np.empty(many), np.empty(many)
    targets, weights = np.empty(many), np.empty(many)
    _fill_etas(stick, first)
    fixed, effects = stick.coefficients.copy(), stick.effects.copy()
    middle[:] = stick.mode
    for _ in range(MOST_NEWTON):
        _working(stick, middle, targets, weights)
        _solve(stick, targets, weights, variance, 0.0, rng)
        _fill_etas(stick, second)
        change = np.abs(second - middle).max()
        if change > LONGEST:
            second = middle + (second - middle) * (LONGEST / change)
        middle[:] = second
        if change < AT_REST:
            break
    _working(stick, middle, targets, weights)
    _solve(stick, targets, weights, variance, 0.0, rng)
    _fill_etas(stick, middle)
    stick.mode[:] = middle
    mode, mode_effects = stick.coefficients.copy(), stick.effects.copy()
    _solve(stick, targets, weights, variance, 1.0, rng)
    _fill_etas(stick, second)
    first -= middle
    second -= middle
    angle = _angle(stick, (middle, first, second), (targets, weights), rng)
    along, across = cos(angle), sin(angle)
    stick.coefficients[:] = mode + (fixed - mode) * along + (stick.coefficients - mode) * across
    stick.effects[:] = (
        mode_effects + (effects - mode_effects) * along + (stick.effects - mode_effects) * across
    )


@inner
def _working(stick: Stick, etas: Floats, targets: Floats, weights: Floats) -> None:
    """Fill targets and weights of one Newton step."""
    for p in range(len(etas)):
        eta = min(max(etas[p], -LARGEST), LARGEST)
        density = -0.5 * eta * eta - HALF_LOG_2PI
        ahead, behind = exp(density - log_normal_cdf(eta)), exp(density - log_normal_cdf(-eta))
        left = stick.tried[p] - stick.taken[p]
        slope = stick.taken[p] * ahead - left * behind
        curve = stick.taken[p] * ahead * (ahead + eta) + left * behind * (behind - eta)
        weights[p] = max(curve, FLATTEST * stick.tried[p])
        targets[p] = eta + slope / weights[p] if weights[p] > 0.0 else 0.0


@enclosed
def _solve(
    stick: Stick, targets: Floats, weights: Floats, variance: float, noisy: float, rng: np.random.Generator
) -> None:
    """Put the mean of the working model, or a draw from it, in place."""
    size, (groups, width) = stick.columns.shape[1], stick.effects.shape
    moments = Moments(
        np.zeros((size, size)),
        np.zeros(size),
        np.zeros((groups, size, width)),
        np.zeros((groups, width, width)),
        np.zeros((groups, width)),
        np.empty((0, 0)),
    )
    for p in range(len(targets)):
        weight, row, g = weights[p], stick.columns[p], stick.group[p]
        for a in range(size):
            moments.fixed_target[a] += weight * row[a] * targets[p]
            for b in range(a + 1):
                moments.fixed[a, b] += weight * row[a] * row[b]
            if width:
                moments.mixed[g, a, 0] += weight * row[a]
        if width:
            moments.group[g, 0, 0] += weight
            moments.group_target[g, 0] += weight * targets[p]
    between = np.empty((width, width))
    between[:] = 1.0 / variance
    given = stick.precision, stick.linear, noisy
    draw_coefficients(moments, given, between, stick.coefficients, stick.effects, rng)


@inner
def _pattern_log(tried: float, taken: float, eta: float) -> float:
    total = 0.0
    if taken > 0.0:
        total += taken * log_normal_cdf(eta)
    if tried > taken:
        total += (tried - taken) * log_normal_cdf(-eta)
    return total


@inner
def _excess(
    stick: Stick, ellipse: tuple[Floats, Floats, Floats], pseudo: tuple[Floats, Floats], angle: float
) -> float:
    total, along, across = 0.0, cos(angle), sin(angle)
    for p in range(len(stick.group)):
        eta = ellipse[0][p] + along * ellipse[1][p] + across * ellipse[2][p]
        off = pseudo[0][p] - eta
        total += _pattern_log(stick.tried[p], stick.taken[p], eta) + 0.5 * pseudo[1][p] * off * off
    return total


@inner
def _angle(
    stick: Stick,
    ellipse: tuple[Floats, Floats, Floats],
    pseudo: tuple[Floats, Floats],
    rng: np.random.Generator,
) -> float:
    height = _excess(stick, ellipse, pseudo, 0.0) + log(rng.random())
    angle = 2.0 * pi * rng.random()
    low, high = angle - 2.0 * pi, angle
    while high - low > 1e-12:
        if _excess(stick, ellipse, pseudo, angle) > height:
            return angle
        if angle < 0.0:
            low = angle
        else:
            high = angle
        angle = low + (high - low) * rng.random()
    return 0.0


@njit(cache=True, nogil=True)
def stretch_stick(stick: Stick, variance: float, scale: float, rng: np.random.Generator) -> float:
    """Draw the variance of the effects, then a common factor on them and their sd; return the variance."""
    groups = len(stick.effects)
    scatter = (stick.effects * stick.effects).sum()
    auxiliary = rng.standard_gamma(0.5 * (HALF_T_DF + 1)) / (HALF_T_DF / variance + scale**-2)
    drawn = (0.5 * scatter + HALF_T_DF * auxiliary) / rng.standard_gamma(0.5 * (HALF_T_DF + groups))
    rest = np.empty(len(stick.group))
    for p in range(len(rest)):
        rest[p] = stick_eta(stick, p) - stick.effects[stick.group[p], 0]
    log_now, narrow = log(drawn), scale**-2
    height = _factor_log(stick, rest, 0.0, log_now, narrow) + log(rng.random())
    low = -rng.random()
    high = low + 1.0
    while low > -FARTHEST and _factor_log(stick, rest, low, log_now, narrow) > height:
        low -= 1.0
    while high < FARTHEST and _factor_log(stick, rest, high, log_now, narrow) > height:
        high += 1.0
    factor = 1.0
    for _ in range(200):
        value = low + (high - low) * rng.random()
        if _factor_log(stick, rest, value, log_now, narrow) > height:
            factor = exp(value)
            break
        if value < 0.0:
            low = value
        else:
            high = value
    stick.effects[:] *= factor
    return float(drawn * factor * factor)


@inner
def _factor_log(stick: Stick, rest: Floats, log_factor: float, log_now: float, narrow: float) -> float:
    factor, log_variance, total = exp(log_factor), log_now + 2.0 * log_factor, 0.0
    for p in range(len(rest)):
        eta = rest[p] + factor * stick.effects[stick.group[p], 0]
        total += _pattern_log(stick.tried[p], stick.taken[p], eta)
    tail = log(HALF_T_DF * exp(-log_variance) + narrow)
    return total + 2.0 * log_factor - 2.0 * log_variance - 1.5 * tail

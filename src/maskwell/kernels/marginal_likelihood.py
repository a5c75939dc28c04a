"""Likelihoods of responses whose linear predictor is normal: eta_i ~ Normal(mean_i, variance_i), integrated out.

log E[exp(l(eta_i))]. Probit: Phi(mean / sqrt(1 + variance)). Logit: Gauss-Hermite nodes about the mean. Counts: nodes
about the mode of the integrand, scaled by its curvature (Liu and Pierce 1994).
Each family has a `_total`, the log likelihood of all records, and a `_slopes`, which also writes its derivatives by
the mean and by the variance of each record. Integrals are sums over Gauss-Hermite nodes: `nodes` and `weights` are the
positive half of an even rule for the standard normal law, weights summing to one half. With weights on the nodes that
are proportional to the integrand, d/dmean = E[l'(eta)] and d/dvariance = E[l'(eta)^2 + l''(eta)] / 2 (Price 1958).
Used by `analysis/samplers/marginal`, which chooses the number of nodes.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
from numba import njit

from . import announce
from .densities import log_normal_cdf

announce(__file__)

Floats = npt.NDArray[np.float64]

TINY = 1e-200  # a product of chances that small is turned to a logarithm
FAR = 40.0  # so far out on the logit scale a chance is exp(eta) to all digits
SMALLEST_VARIANCE = 1e-14  # below it eta is as good as known, and 1 / variance loses its use
STEPS = 40  # of Newton, at most 2 each: more than any count needs
HIGHEST = 600.0  # of a log rate


@njit(cache=True, nogil=True)
def logit_total(signs: Floats, mean: Floats, variance: Floats, nodes: Floats, weights: Floats) -> float:
    """Return the sum of log E[1 / (1 + exp(-sign eta))]; sign 1 for a response of 1, -1 for 0.

    A pair of nodes at mean ± h gives 2 E (C + E) / (1 + 2 E C + E^2) with E = exp(sign mean), C = cosh h: one division
    each, and C anew only where the variance differs from the record before.
    """
    total, product, last = 0.0, 1.0, -1.0
    hyperbolic = np.empty(len(nodes))
    for i in range(len(mean)):
        at, spread = signs[i] * mean[i], variance[i]
        if spread != last:
            last, sd = spread, math.sqrt(spread)
            for g in range(len(nodes)):
                hyperbolic[g] = math.cosh(sd * nodes[g])
        if at + spread + 7.0 * sd < -FAR:
            total += at + 0.5 * spread
            continue
        power = math.exp(min(at, 300.0))
        square, chance = power * power, 0.0
        for g in range(len(nodes)):
            cosh = hyperbolic[g]
            chance += weights[g] * (power * cosh + square) / (1.0 + 2.0 * power * cosh + square)
        product *= 2.0 * chance
        if product < TINY:
            total += math.log(product)
            product = 1.0
    return total + math.log(product)


@njit(cache=True, nogil=True)
def logit_slopes(
    signs: Floats, moments: tuple[Floats, Floats], rule: tuple[Floats, Floats], slopes: tuple[Floats, Floats]
) -> float:
    """Return what `logit_total` does, and write the derivatives into `slopes`."""
    mean, variance = moments
    nodes, weights = rule
    total = 0.0
    for i in range(len(mean)):
        at, sd = signs[i] * mean[i], math.sqrt(variance[i])
        if at + variance[i] + 7.0 * sd < -FAR:
            total += at + 0.5 * variance[i]
            slopes[0][i], slopes[1][i] = signs[i], 0.5
            continue
        chance = first = second = 0.0
        for g in range(2 * len(nodes)):
            node, weight = nodes[g // 2], weights[g // 2]
            one = 1.0 / (1.0 + math.exp(-at - (sd * node if g % 2 else -sd * node)))
            chance += weight * one
            first += weight * one * (1.0 - one)
            second += weight * one * (1.0 - one) * (1.0 - 2.0 * one)
        total += math.log(chance)
        slopes[0][i] = signs[i] * first / chance
        slopes[1][i] = 0.5 * second / chance
    return total


@njit(cache=True, nogil=True)
def probit_total(signs: Floats, mean: Floats, variance: Floats) -> float:
    """Return the sum of log Phi(sign mean / sqrt(1 + variance))."""
    total, product = 0.0, 1.0
    for i in range(len(mean)):
        at = signs[i] * mean[i] / math.sqrt(1.0 + variance[i])
        if at < -20.0:
            total += log_normal_cdf(at)
            continue
        product *= 0.5 * math.erfc(-at * math.sqrt(0.5))
        if product < TINY:
            total += math.log(product)
            product = 1.0
    return total + math.log(product)


@njit(cache=True, nogil=True)
def probit_slopes(signs: Floats, moments: tuple[Floats, Floats], slopes: tuple[Floats, Floats]) -> float:
    """Return what `probit_total` does, and write the derivatives into `slopes`."""
    mean, variance = moments
    total = 0.0
    for i in range(len(mean)):
        scale = 1.0 / math.sqrt(1.0 + variance[i])
        at = signs[i] * mean[i] * scale
        log_chance = log_normal_cdf(at)
        ratio = math.exp(-0.5 * at * at - 0.5 * math.log(2.0 * math.pi) - log_chance)
        total += log_chance
        slopes[0][i] = signs[i] * ratio * scale
        slopes[1][i] = -0.5 * ratio * at * scale * scale
    return total


@njit(cache=True, nogil=True)
def count_terms(count: float, power: float, shape: float) -> tuple[float, float, float]:
    """Return what a count's l(eta) has beside count eta, l'(eta) and l''(eta), from `power` = exp(eta).

    Poisson with `shape` 0; else negative binomial, eta less log(shape): count eta - (count + shape) log(1 + exp eta).
    """
    if shape == 0.0:
        return -power, count - power, -power
    both, lean = count + shape, power / (1.0 + power)
    return -both * math.log1p(power), count - both * lean, -both * lean * (1.0 - lean)


@njit(cache=True, nogil=True)
def count_centre(count: float, shape: float, mean: float, variance: float) -> tuple[float, float, float]:
    """Return about the mode of exp(l(eta)) times the normal density of eta, the sd that fits there, exp of the mode.

    Newton's steps until one is a tenth of the sd: the error is then its square.
    """
    level = count + 0.5
    heard = level if shape == 0.0 else level * shape / (level + shape)
    guess = math.log(level if shape == 0.0 else level / shape)
    at = (mean + variance * heard * guess) / (1.0 + variance * heard)
    for _ in range(STEPS):
        _, first, second = count_terms(count, math.exp(min(at, HIGHEST)), shape)
        bend = 1.0 / variance - second
        step = min(max((first - (at - mean) / variance) / bend, -2.0), 2.0)
        at += step
        if step * step * bend < 0.01:
            break
    power = math.exp(min(at, HIGHEST))
    return at, 1.0 / math.sqrt(1.0 / variance - count_terms(count, power, shape)[2]), power


@njit(cache=True, nogil=True)
def count_total(
    counts: Floats, shape: float, moments: tuple[Floats, Floats], rule: tuple[Floats, Floats]
) -> float:
    """Return the sum of log E[exp(l(eta))], nodes centred at the mode of each record and scaled by its curvature.

    Of a negative binomial, the mean is that of eta less log(shape); constants are left out.
    """
    nodes, weights = rule
    total, product = 0.0, 1.0
    for i in range(len(counts)):
        count, mean, variance = counts[i], moments[0][i], max(moments[1][i], SMALLEST_VARIANCE)
        centre, sd, power = count_centre(count, shape, mean, variance)
        away, half = centre - mean, 0.5 / variance
        level = count_terms(count, power, shape)[0]
        mass = 0.0
        for g in range(len(nodes)):
            reach = sd * nodes[g]
            ratio = math.exp(reach)
            same = 0.5 * nodes[g] * nodes[g] - half * reach * reach - level
            odd = count * reach - 2.0 * half * away * reach
            above = math.exp(count_terms(count, power * ratio, shape)[0] + same + odd)
            below = math.exp(count_terms(count, power / ratio, shape)[0] + same - odd)
            mass += weights[g] * (above + below)
        total += level + count * centre - half * away * away
        product *= mass * sd / math.sqrt(variance)
        if product < TINY or product > 1.0 / TINY:
            total += math.log(product)
            product = 1.0
    return total + math.log(product)


@njit(cache=True, nogil=True)
def count_slopes(
    counts: Floats,
    shape: float,
    moments: tuple[Floats, Floats],
    rule: tuple[Floats, Floats],
    slopes: tuple[Floats, Floats],
) -> tuple[float, float]:
    """Return what `count_total` does and its derivative by the shape, and write the derivatives into `slopes`."""
    nodes, weights = rule
    total = by_shape = 0.0
    for i in range(len(counts)):
        count, mean, variance = counts[i], moments[0][i], max(moments[1][i], SMALLEST_VARIANCE)
        centre, sd, power = count_centre(count, shape, mean, variance)
        away, half = centre - mean, 0.5 / variance
        level = count_terms(count, power, shape)[0]
        mass = first = second = third = 0.0
        for g in range(2 * len(nodes)):
            node = nodes[g // 2] if g % 2 else -nodes[g // 2]
            reach = sd * node
            value, slope, bend = count_terms(count, power * math.exp(reach), shape)
            log_term = value - level + count * reach + 0.5 * node * node - half * reach * (reach + 2.0 * away)
            mine = weights[g // 2] * math.exp(log_term)
            mass += mine
            first += mine * slope
            second += mine * (slope * slope + bend)
            if shape > 0.0:
                third += mine * (value / (count + shape) - slope / shape)
        total += level + count * centre - half * away * away + math.log(mass * sd / math.sqrt(variance))
        slopes[0][i], slopes[1][i] = first / mass, 0.5 * second / mass
        by_shape += third / mass
    return total, by_shape

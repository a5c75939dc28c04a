"""The record loops of the paper's Metropolis sampler: independence proposals for true values, one record at a time.

Goldstein and Shlomo, A probabilistic procedure for anonymisation, appendix (A1)-(A3): X ~ N(R x, R (1 - R) var(x)),
accepted by the ratio of (A2) times the ratio of proposals, which the paper leaves out (Hastings 1970). The terms of a
target are inlined: calls would count the references of a dozen arrays each time. Only for
`analysis/samplers/goldstein`, to show the paper's sampler and its faults.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from numba import njit

from . import announce
from .densities import log_normal_cdf
from .random import root_of, truncated_normal

announce(__file__)

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


class NumberTarget(NamedTuple):
    """What the true numbers (records x numbers) are weighed by, and proposed from.

    `rest` is the response less all but the numbers, `slopes` their coefficients; `base` the mean of each number but
    for the earlier numbers, whose coefficients are `among` (strictly lower triangular).
    """

    rest: Floats
    slopes: Floats
    variance: float
    base: Floats
    among: Floats
    variances: Floats
    released: Floats
    noise_variances: Floats
    centres: Floats
    spreads: Floats


class CategoryTarget(NamedTuple):
    """What the true codes (records x categories) are weighed by, and proposed from.

    Arrays by level hold the levels of category k at `starts[k]` to `starts[k + 1]`, with 0 for its first level.
    `rest` and `residuals` are the response and the numbers less all but the categories; the chances of category k are
    those of the probit steps `stick_starts[k]` to `stick_starts[k + 1]`.
    """

    tables: Floats
    log_shares: Floats
    starts: Ints
    rest: Floats
    effects: Floats
    variance: float
    residuals: Floats
    number_effects: Floats
    variances: Floats
    sticks: Floats
    stick_effects: Floats
    stick_starts: Ints


@njit(cache=True, nogil=True)
def move_numbers(
    rng: np.random.Generator, numbers: Floats, target: NumberTarget, hastings: bool, as_printed: bool
) -> Ints:
    """Propose each true number by (A3), in place; return how many proposals of each were accepted.

    Without `hastings` the ratio of proposals is left out. `as_printed` takes (A2) at its word: its middle term has the
    released value where the true one is meant, so that it cancels. Both are faults, kept to show what they do.
    """
    records, count = numbers.shape
    accepted = np.zeros(count, np.int64)
    for i in range(records):
        for j in range(count):
            old = numbers[i, j]
            new = target.centres[i, j] + math.sqrt(target.spreads[i, j]) * rng.standard_normal()
            change = _noise_and_response(numbers, i, j, new, target)
            if not as_printed:
                change += _covariate_model(numbers, i, j, new, target)
            if hastings:
                change += _gain(new - target.centres[i, j], old - target.centres[i, j], target.spreads[i, j])
            if rng.standard_exponential() > -change:
                numbers[i, j] = new
                accepted[j] += 1
    return accepted


@njit(cache=True, nogil=True, inline="always")
def _gain(old: float, new: float, variance: float) -> float:
    """Return what the log of a normal density gains from a residual to a new one."""
    return 0.5 * (old - new) * (old + new) / variance


@njit(cache=True, nogil=True, inline="always")
def _noise_and_response(numbers: Floats, i: int, j: int, new: float, target: NumberTarget) -> float:
    """Return the gain of the first and the last term of (A2) when number j of record i becomes `new`."""
    old = numbers[i, j]
    residual = target.rest[i]
    for k in range(numbers.shape[1]):
        residual -= target.slopes[k] * numbers[i, k]
    z = target.released[i, j]
    change = _gain(z - old, z - new, target.noise_variances[i, j])
    return change + _gain(residual, residual - target.slopes[j] * (new - old), target.variance)


@njit(cache=True, nogil=True, inline="always")
def _covariate_model(numbers: Floats, i: int, j: int, new: float, target: NumberTarget) -> float:
    """Return the gain of the middle term of (A2): of number j's own equation and of those it occurs in."""
    step, change = new - numbers[i, j], 0.0
    for m in range(j, numbers.shape[1]):
        residual = numbers[i, m] - target.base[i, m]
        for k in range(m):
            residual -= target.among[m, k] * numbers[i, k]
        moved = residual + step if m == j else residual - target.among[m, j] * step
        change += _gain(residual, moved, target.variances[m])
    return change


@njit(cache=True, nogil=True)
def move_codes(rng: np.random.Generator, codes: Ints, target: CategoryTarget, hastings: bool) -> Ints:
    """Propose each true code from fixed shares, in place; return how many proposals of each were accepted."""
    records, count = codes.shape
    accepted = np.zeros(count, np.int64)
    for i in range(records):
        for k in range(count):
            start, old = target.starts[k], codes[i, k]
            new = _from_shares(rng, target.log_shares, start, target.starts[k + 1])
            if new == old:
                accepted[k] += 1
                continue
            change = 0.0
            for sign in (1.0, -1.0):  # one call only, since it is inlined
                codes[i, k] = new if sign > 0.0 else old
                change += sign * _log_target(codes, i, k, target)
            if hastings:
                change += target.log_shares[start + old] - target.log_shares[start + new]
            if rng.standard_exponential() > -change:
                codes[i, k] = new
                accepted[k] += 1
    return accepted


@njit(cache=True, nogil=True)
def _from_shares(rng: np.random.Generator, log_shares: Floats, start: int, end: int) -> int:
    """Return a level drawn from the shares between two places, which add up to 1."""
    left = rng.random()
    for place in range(start, end - 1):
        left -= math.exp(log_shares[place])
        if left < 0.0:
            return place - start
    return end - 1 - start


@njit(cache=True, nogil=True, inline="always")
def _log_target(codes: Ints, i: int, k: int, target: CategoryTarget) -> float:
    """Return the log density of record i as far as it depends on the code of category k."""
    count, residual = codes.shape[1], target.rest[i]
    for m in range(count):
        residual -= target.effects[target.starts[m] + codes[i, m]]
    total = target.tables[i, target.starts[k] + codes[i, k]] - 0.5 * residual * residual / target.variance
    for j in range(len(target.variances)):
        residual = target.residuals[i, j]
        for m in range(count):
            residual -= target.number_effects[j, target.starts[m] + codes[i, m]]
        total -= 0.5 * residual * residual / target.variances[j]
    for m in range(k, count):
        total += _log_chance(codes, i, m, target)
    return float(total)


@njit(cache=True, nogil=True, inline="always")
def _log_chance(codes: Ints, i: int, m: int, target: CategoryTarget) -> float:
    """Return the log chance of a record's code in category m, by probit steps: at s, or beyond it?"""
    total, first = 0.0, target.stick_starts[m]
    for s in range(min(codes[i, m] + 1, target.stick_starts[m + 1] - first)):
        predictor = target.sticks[i, first + s]
        for earlier in range(m):
            predictor += target.stick_effects[first + s, target.starts[earlier] + codes[i, earlier]]
        total += log_normal_cdf(predictor if codes[i, m] == s else -predictor)
    return total


@njit(cache=True, nogil=True)
def draw_utilities(rng: np.random.Generator, predictor: Floats, here: npt.NDArray[np.bool_]) -> Floats:
    """Return Albert and Chib's normal utilities: above 0 for those who stop here, below for those who go beyond."""
    out = np.empty(len(predictor))
    for i in range(len(predictor)):
        lower, upper = (0.0, math.inf) if here[i] else (-math.inf, 0.0)
        out[i] = truncated_normal(rng, predictor[i], 1.0, lower, upper)
    return out


@njit(cache=True, nogil=True)
def draw_coefficients(
    rng: np.random.Generator, design: Floats, response: Floats, variance: float, prior_precision: float
) -> Floats:
    """Return a draw of a regression's coefficients from their normal law given its variance; few columns."""
    records, count = design.shape
    gram, out = np.zeros((count, count)), np.zeros(count)
    for i in range(records):
        for j in range(count):
            value = design[i, j] / variance
            out[j] += value * response[i]
            for k in range(j + 1):
                gram[j, k] += value * design[i, k]
    for j in range(count):
        gram[j, j] += prior_precision
    root = root_of(gram)
    for j in range(count):  # forward: the mean in the root's coordinates; there the draw's sds are 1
        for k in range(j):
            out[j] -= root[j, k] * out[k]
        out[j] /= root[j, j]
    for j in range(count):
        out[j] += rng.standard_normal()
    for j in range(count - 1, -1, -1):
        for k in range(j + 1, count):
            out[j] -= root[k, j] * out[k]
        out[j] /= root[j, j]
    return out

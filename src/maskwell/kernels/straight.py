"""Whole Gibbs sweeps of linear gaussian systems in one loop over the records.

Where every equation of a number is gaussian and linear with slopes that all records share, a record is a short vector
of basis values: 1, known columns, unknown numbers, levels of one unknown category. Numbers are integrated out when the
category is drawn; and the sums of products of basis values by group are all that the parameters need.
"""

from __future__ import annotations

from math import exp, log
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from numba import njit

from . import announce
from .coefficients import draw_coefficients
from .equations import Moments
from .programs import enclosed, inlined, inner, lean
from .randoms import log_normal_cdf
from .roots import factorise
from .sticks import Stick, draw_stick, stretch_stick

announce(__file__)

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

HALF_T_DF = 2.0
FARTHEST = 30.0  # of the log of a factor on group effects


class Records(NamedTuple):
    """The records: basis values (changed), codes of the category (changed), group, pattern of known columns, noise."""

    basis: Floats
    code: Ints
    group: Ints
    pattern: Ints
    noise_linear: Floats
    noise_precision: Floats
    table: Floats


class Shape(NamedTuple):
    """Where things are: numbers and levels in the basis, and the columns and responses of the gaussian equations.

    `level[k]` is the place of level k (-1: none); `columns[e, :width[e]]` are places; `known` are the places of what
    never changes; `grouped` says whether groups have effects.
    """

    number: Ints
    level: Ints
    known: Ints
    response: Ints
    width: Ints
    columns: Ints
    grouped: bool


class Priors(NamedTuple):
    """Of each gaussian equation: precisions and precision x mean of the coefficients, scales of the two sds."""

    precision: Floats
    linear: Floats
    residual_scale: Floats
    effect_scale: Floats


class Parameters(NamedTuple):
    """Of each gaussian equation: coefficients, precision, effects of the groups and their variance."""

    coefficients: Floats
    precision: Floats
    effects: Floats
    variance: Floats


class Sticks(NamedTuple):
    """Sequential probits of the category: columns by pattern, the group of a pattern, priors, and parameters.

    `coefficients[s]`, `effects[s]`, `variance[s]` belong to stick s; `mode[s]` is where Newton begins. Groups of
    patterns are those of the records.
    """

    columns: Floats
    group: Ints
    precision: Floats
    linear: Floats
    effect_scale: Floats
    coefficients: Floats
    effects: Floats
    variance: Floats
    mode: Floats


class Sweep(NamedTuple):
    """Working space: residual slopes of the equations, roots, sums of products by group, counts by pattern."""

    slopes: Floats
    root: Floats
    chance: Floats
    sums: Floats
    counts: Floats
    residual: Floats
    half: Floats
    logs: Floats
    best: Floats


@njit(cache=True, nogil=True)
def sweep(
    records: Records,
    shape: Shape,
    priors: Priors,
    parameters: Parameters,
    sticks: Sticks,
    room: Sweep,
    rng: np.random.Generator,
) -> None:
    """Draw all unknown values, then all parameters."""
    _prepare(records, shape, parameters, sticks, room)
    draw_records(records, shape, parameters, room, rng)
    for e in range(len(shape.response)):
        _draw_equation(shape, priors, parameters, e, room, rng)
    for s in range(len(sticks.effect_scale)):
        stick = _stick(shape, sticks, s, room)
        draw_stick(stick, sticks.variance[s], rng)
        if shape.grouped:
            sticks.variance[s] = stretch_stick(stick, sticks.variance[s], sticks.effect_scale[s], rng)


@enclosed
def _stick(shape: Shape, sticks: Sticks, s: int, room: Sweep) -> Stick:
    """Return a stick with what was counted: records that reached it, and that stopped there."""
    tried, width = np.zeros(len(room.counts)), 1 if shape.grouped else 0
    for k in range(s, room.counts.shape[1]):
        tried += room.counts[:, k]
    priors = sticks.precision[s], sticks.linear[s]
    effects = sticks.effects[s].reshape((-1, 1))[:, :width]
    taken = room.counts[:, s].copy()
    return Stick(
        sticks.columns, sticks.group, tried, taken, *priors, sticks.coefficients[s], effects, sticks.mode[s]
    )


@enclosed
def _prepare(records: Records, shape: Shape, parameters: Parameters, sticks: Sticks, room: Sweep) -> None:
    """Fill residual slopes, the root of the numbers' precision, and the log chances of the levels by pattern."""
    room.slopes[:] = 0.0
    for e in range(len(shape.response)):
        room.slopes[e, shape.response[e]] += 1.0
        for c in range(shape.width[e]):
            room.slopes[e, shape.columns[e, c]] -= parameters.coefficients[e, c]
    size = len(shape.number)
    for a in range(size):
        for b in range(a + 1):
            room.root[a, b] = records.noise_precision[a, b]
            for e in range(len(shape.response)):
                room.root[a, b] += (
                    parameters.precision[e]
                    * room.slopes[e, shape.number[a]]
                    * room.slopes[e, shape.number[b]]
                )
    factorise(room.root, size)
    room.sums[:] = 0.0
    room.counts[:] = 0.0
    room.chance[:] = 0.0
    for s in range(len(sticks.effect_scale)):
        for p in range(len(sticks.columns)):
            eta = _stick_eta(shape, sticks, s, p)
            ahead, behind = log_normal_cdf(eta), log_normal_cdf(-eta)
            room.chance[p, s] += ahead
            for k in range(s + 1, room.chance.shape[1]):
                room.chance[p, k] += behind


@inner
def _stick_eta(shape: Shape, sticks: Sticks, s: int, p: int) -> float:
    eta = sticks.effects[s, sticks.group[p]] if shape.grouped else 0.0
    for c in range(sticks.columns.shape[1]):
        eta += sticks.coefficients[s, c] * sticks.columns[p, c]
    return float(eta)


@lean
def draw_records(
    records: Records, shape: Shape, parameters: Parameters, room: Sweep, rng: np.random.Generator
) -> None:
    """Draw the category with the numbers integrated out, then the numbers; add up products."""
    places, levels = records.basis.shape[1], len(shape.level)
    for i in range(len(records.basis)):
        basis, group = records.basis[i], records.group[i]
        for e in range(len(shape.response)):
            total = -parameters.effects[e, group] if shape.grouped else 0.0
            for b in shape.known:
                total += room.slopes[e, b] * basis[b]
            room.residual[e] = total
        for k in range(levels):
            room.logs[k] = _level_log(records, shape, parameters, i, k, room)
        code = 0
        if levels > 1:
            code = _pick(room.logs, rng)
            if shape.level[records.code[i]] >= 0:
                basis[shape.level[records.code[i]]] = 0.0
            if shape.level[code] >= 0:
                basis[shape.level[code]] = 1.0
            records.code[i] = code
            room.counts[records.pattern[i], code] += 1.0
        _place_numbers(shape, basis, code, room, rng)
        for a in range(places):
            for b in range(a + 1):
                room.sums[group, a, b] += basis[a] * basis[b]


@inlined
def _level_log(records: Records, shape: Shape, parameters: Parameters, i: int, k: int, room: Sweep) -> float:
    """Return the log weight of a level with the numbers integrated out; leave half of their solution behind."""
    size, fit = len(shape.number), records.table[i, k] + room.chance[records.pattern[i], k]
    for a in range(size):
        room.half[k, a] = records.noise_linear[i, a]
    for e in range(len(shape.response)):
        off = room.residual[e]
        if shape.level[k] >= 0:
            off += room.slopes[e, shape.level[k]]
        weighted = parameters.precision[e] * off
        fit -= 0.5 * weighted * off
        for a in range(size):
            room.half[k, a] -= weighted * room.slopes[e, shape.number[a]]
    for a in range(size):
        for b in range(a):
            room.half[k, a] -= room.root[a, b] * room.half[k, b]
        room.half[k, a] /= room.root[a, a]
        fit += 0.5 * room.half[k, a] * room.half[k, a]
    return float(fit)


@inlined
def _place_numbers(shape: Shape, basis: Floats, code: int, room: Sweep, rng: np.random.Generator) -> None:
    """Draw the numbers given the category."""
    size = len(shape.number)
    for a in range(size - 1, -1, -1):
        value = room.half[code, a] + rng.standard_normal()
        for b in range(a + 1, size):
            value -= room.root[b, a] * basis[shape.number[b]]
        basis[shape.number[a]] = value / room.root[a, a]


@inner
def _pick(logs: Floats, rng: np.random.Generator) -> int:
    total, top = 0.0, -np.inf
    for k in range(len(logs)):
        top = max(top, logs[k])
    for k in range(len(logs)):
        logs[k] = exp(logs[k] - top)
        total += logs[k]
    left = rng.random() * total
    for k in range(len(logs)):
        left -= logs[k]
        if left < 0.0:
            return k
    return len(logs) - 1


@inner
def _product(sums: Floats, g: int, a: int, b: int) -> float:
    return float(sums[g, a, b] if a >= b else sums[g, b, a])


@enclosed
def _draw_equation(
    shape: Shape, priors: Priors, parameters: Parameters, e: int, room: Sweep, rng: np.random.Generator
) -> None:
    """Draw the parameters of a gaussian equation from the sums of products."""
    size, groups, answer = shape.width[e], len(room.sums), shape.response[e]
    width = 1 if shape.grouped else 0
    weight = parameters.precision[e]
    moments = Moments(
        np.zeros((size, size)),
        np.zeros(size),
        np.zeros((groups, size, width)),
        np.zeros((groups, width, width)),
        np.zeros((groups, width)),
        np.empty((0, 0)),
    )
    for g in range(groups):
        for a in range(size):
            first = shape.columns[e, a]
            moments.fixed_target[a] += weight * _product(room.sums, g, first, answer)
            for b in range(a + 1):
                moments.fixed[a, b] += weight * _product(room.sums, g, first, shape.columns[e, b])
            if width:
                moments.mixed[g, a, 0] = weight * _product(room.sums, g, first, 0)
        if width:
            moments.group[g, 0, 0] = weight * room.sums[g, 0, 0]
            moments.group_target[g, 0] = weight * _product(room.sums, g, answer, 0)
    between = np.empty((width, width))
    between[:] = 1.0 / parameters.variance[e]
    given = priors.precision[e, :size], priors.linear[e, :size], 1.0
    effects = parameters.effects[e].reshape((-1, 1))[:, :width]
    draw_coefficients(moments, given, between, parameters.coefficients[e, :size], effects, rng)
    _draw_spreads(shape, priors, parameters, e, room, rng)


@enclosed
def _draw_spreads(
    shape: Shape, priors: Priors, parameters: Parameters, e: int, room: Sweep, rng: np.random.Generator
) -> None:
    """Draw the residual variance of an equation, then the variance of its effects and a common factor on them."""
    total, count, cross, square, scatter = _squares(shape, parameters, e, room)
    sd2 = 1.0 / parameters.precision[e]
    auxiliary = rng.standard_gamma(0.5 * (HALF_T_DF + 1)) / (HALF_T_DF / sd2 + priors.residual_scale[e] ** -2)
    rate = 0.5 * total + HALF_T_DF * auxiliary
    parameters.precision[e] = rng.standard_gamma(0.5 * (HALF_T_DF + count)) / rate
    if not shape.grouped:
        return
    weight, groups = parameters.precision[e], len(room.sums)
    drawn = _effect_variance(parameters.variance[e], scatter, groups, priors.effect_scale[e], rng)
    factor = _factor(drawn, weight * cross, weight * square, priors.effect_scale[e], rng)
    parameters.variance[e] = drawn * factor * factor
    for g in range(groups):
        parameters.effects[e, g] *= factor


@inner
def _squares(
    shape: Shape, parameters: Parameters, e: int, room: Sweep
) -> tuple[float, float, float, float, float]:
    """Return the residual sum of squares and its count; residual x effect, effect x effect; squares of effects."""
    total, count, cross, square, scatter = 0.0, 0.0, 0.0, 0.0, 0.0
    places = room.sums.shape[1]
    for b in range(places):
        room.best[b] = 0.0
    room.best[shape.response[e]] = 1.0
    for c in range(shape.width[e]):
        room.best[shape.columns[e, c]] -= parameters.coefficients[e, c]
    for g in range(len(room.sums)):
        own, level = 0.0, 0.0
        for a in range(places):
            if room.best[a] != 0.0:
                level += room.best[a] * _product(room.sums, g, a, 0)
                for b in range(a):
                    own += 2.0 * room.best[a] * room.best[b] * room.sums[g, a, b]
                own += room.best[a] * room.best[a] * room.sums[g, a, a]
        number = room.sums[g, 0, 0]
        effect = parameters.effects[e, g] if shape.grouped else 0.0
        total += own - 2.0 * effect * level + effect * effect * number
        count += number
        cross += effect * level
        square += effect * effect * number
        scatter += effect * effect
    return max(total, 0.0), count, cross, square, scatter


@inner
def _effect_variance(
    now: float, scatter: float, groups: int, scale: float, rng: np.random.Generator
) -> float:
    auxiliary = rng.standard_gamma(0.5 * (HALF_T_DF + 1)) / (HALF_T_DF / now + scale**-2)
    return float((0.5 * scatter + HALF_T_DF * auxiliary) / rng.standard_gamma(0.5 * (HALF_T_DF + groups)))


@inner
def _factor(variance: float, cross: float, square: float, scale: float, rng: np.random.Generator) -> float:
    """Draw a factor on effects and their sd by a slice (see `samplers.gibbs.scaling`)."""
    narrow, log_now = scale**-2, log(variance)
    height = _factor_log(0.0, log_now, cross, square, narrow) + log(rng.random())
    low = -rng.random()
    high = low + 1.0
    while low > -FARTHEST and _factor_log(low, log_now, cross, square, narrow) > height:
        low -= 1.0
    while high < FARTHEST and _factor_log(high, log_now, cross, square, narrow) > height:
        high += 1.0
    for _ in range(200):
        value = low + (high - low) * rng.random()
        if _factor_log(value, log_now, cross, square, narrow) > height:
            return exp(value)
        if value < 0.0:
            low = value
        else:
            high = value
    return 1.0


@inner
def _factor_log(log_factor: float, log_now: float, cross: float, square: float, narrow: float) -> float:
    factor, log_variance = exp(log_factor), log_now + 2.0 * log_factor
    tail = log(HALF_T_DF * exp(-log_variance) + narrow)
    return factor * (cross - 0.5 * factor * square) + 2.0 * log_factor - 2.0 * log_variance - 1.5 * tail

"""Whole Gibbs sweeps of linear gaussian systems, mostly from sums over the records.

Where every equation of a number is gaussian and linear with slopes that all records share, a record is a short vector
of basis values: 1, known columns, unknown numbers, levels of one unknown category. The sums of products of basis
values, and their sums by group, are all that the parameters need: `gibbs_linear_levels` draws the category,
`gibbs_linear_sums` these sums. Sds have half-t priors (2 degrees of freedom) as mixtures of inverse gammas (Huang and
Wand 2013); a factor on group effects and their sd is drawn by a slice (Liu and Sabatti 2000; Neal 2003). Sufficient
statistics in place of values is our own derivation. Chosen by `analysis/samplers/gibbs/linear_gaussian`.
"""

from __future__ import annotations

from math import exp, log, sqrt
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from numba import njit

from . import announce
from .gibbs_intercepts import integrate, put_draw
from .gibbs_linear_levels import (
    LEAST,
    LinearParameters,
    LinearRecords,
    LinearShape,
    Sweep,
    draw_codes,
    fill_weights,
    prepare,
)
from .gibbs_linear_sums import draw_sums, put_numbers
from .programs import inline_lean, inner
from .stick_breaking_probit import TAKEN, TRIED, Stick, draw_stick, log_chances, stretch_stick

announce(__file__)

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

HALF_T_DF = 2.0  # of every sd: with 2 the correlations of group effects are uniform
FARTHEST = 30.0  # of the log of a factor on group effects
MOVED = 0.25  # share of sweeps that move a stick's effects by Metropolis steps: they cost a third of a sweep
STRIDE = 0.7  # of a Metropolis step of a stick's effects, in sds of these
TINY = 1e-100  # product of chances of which the log is taken


class LinearPriors(NamedTuple):
    """Of each gaussian equation: precisions and precision x mean of the coefficients, scales of the two sds."""

    precision: Floats
    linear: Floats
    residual_scale: Floats
    effect_scale: Floats


class Sticks(NamedTuple):
    """Sequential probits of the category: columns by pattern, the group of a pattern, priors, and parameters.

    `coefficients[s]`, `effects[s]`, `variance[s]` belong to stick s; groups of patterns are those of the records;
    `room`, `fixed`, `shift` are the working space of `stick_breaking_probit.Stick`.
    """

    columns: Floats
    group: Ints
    precision: Floats
    linear: Floats
    effect_scale: Floats
    coefficients: Floats
    effects: Floats
    variance: Floats
    room: Floats
    fixed: Floats
    shift: Floats


class LinearChain(NamedTuple):
    """All that changes in a chain: `flat` has the numbers of `parameters` and of `sticks`, one after the other."""

    parameters: LinearParameters
    sticks: Sticks
    flat: Floats


@njit(cache=True, nogil=True)
def sweep(
    records: LinearRecords,
    shape: LinearShape,
    priors: LinearPriors,
    chain: LinearChain,
    room: Sweep,
    kept: Floats,
    rng: np.random.Generator,
) -> None:
    """Sweep as often as `kept` has rows, which get the parameters.

    A sweep draws all unknown values and the gaussian equations' parameters, `shape.repeats` times; then the sticks.
    """
    parameters, sticks = chain.parameters, chain.sticks
    for t in range(len(kept)):
        _fill_chances(shape, sticks, room)
        for again in range(shape.repeats):
            prepare(records, shape, parameters, room)
            if len(shape.level) > 1:
                if shape.grouped and again == 0 and rng.random() < MOVED:
                    fill_weights(records, sticks.group, room)
                    for s in range(len(sticks.effect_scale)):
                        _move_effects(records, shape, sticks, s, room, rng)
                draw_codes(records, sticks.group, room, rng)
            draw_sums(records, shape, room, rng)
            for e in range(len(shape.response)):
                _draw_equation(shape, priors, parameters, e, room, rng)
        for s in range(len(sticks.effect_scale)):
            _draw_stick(shape, sticks, s, room, rng)
        for j in range(len(chain.flat)):
            kept[t, j] = chain.flat[j]


@njit(cache=True, nogil=True)
def draw_values(
    records: LinearRecords,
    shape: LinearShape,
    chain: LinearChain,
    room: Sweep,
    numbers: Floats,
    rng: np.random.Generator,
) -> None:
    """Draw the codes and the numbers of every record given the parameters; sweeps have no need of numbers."""
    _fill_chances(shape, chain.sticks, room)
    prepare(records, shape, chain.parameters, room)
    if len(shape.level) > 1:
        draw_codes(records, chain.sticks.group, room, rng)
    put_numbers(records, shape, room, numbers, rng)


@inline_lean
def _stick_of(sticks: Sticks, s: int, room: Sweep) -> Stick:
    return Stick(
        sticks.columns,
        sticks.group,
        sticks.precision[s],
        sticks.linear[s],
        sticks.coefficients[s],
        sticks.effects[s],
        sticks.room,
        sticks.fixed,
        sticks.shift,
        room.joint,
    )


@inner
def _draw_stick(shape: LinearShape, sticks: Sticks, s: int, room: Sweep, rng: np.random.Generator) -> None:
    """Draw the parameters of a stick from the counts: of records that reached it, and that stopped there."""
    for p in range(len(sticks.group)):
        sticks.room[TAKEN, p], sticks.room[TRIED, p] = room.counts[p, s], 0.0
        for k in range(s, room.counts.shape[1]):
            sticks.room[TRIED, p] += room.counts[p, k]
    stick = _stick_of(sticks, s, room)
    draw_stick(stick, sticks.variance[s], rng)
    if shape.grouped:
        sticks.variance[s] = stretch_stick(stick, sticks.variance[s], sticks.effect_scale[s], rng)


@inner
def _fill_chances(shape: LinearShape, sticks: Sticks, room: Sweep) -> None:
    """Fill the log chances of the levels by pattern."""
    room.chance[:] = 0.0
    for s in range(len(sticks.effect_scale)):
        for p in range(len(sticks.columns)):
            ahead, behind = log_chances(_stick_eta(shape, sticks, s, p))
            room.chance[p, s] += ahead
            for k in range(s + 1, room.chance.shape[1]):
                room.chance[p, k] += behind


@inner
def _move_effects(
    records: LinearRecords, shape: LinearShape, sticks: Sticks, s: int, room: Sweep, rng: np.random.Generator
) -> None:
    """Move the effects of a stick by Metropolis steps, one for each group, with the codes integrated out.

    Where hardly a record of a group has another level, codes and effect hold each other fast; codes must be drawn
    next.
    """
    proposed, gain, effects = room.joint.weight, room.joint.answer, sticks.effects[s]
    for g in range(len(effects)):
        proposed[g] = effects[g] + STRIDE * sqrt(sticks.variance[s]) * rng.standard_normal()
        gain[g] = 0.5 * (effects[g] * effects[g] - proposed[g] * proposed[g]) / sticks.variance[s]
    for p in range(len(sticks.group)):
        g = sticks.group[p]
        eta = _stick_eta(shape, sticks, s, p)
        ahead, behind = log_chances(eta)
        next_ahead, next_behind = log_chances(eta + proposed[g] - effects[g])
        for k in range(room.chance.shape[1]):
            change = 0.0
            if k >= s:
                change = next_ahead - ahead if k == s else next_behind - behind
            room.logs[0, k] = exp(max(room.chance[p, k], LEAST))
            room.logs[1, k] = exp(max(room.chance[p, k] + change, LEAST))
        gain[g] += _gain(records, p, room)
    for g in range(len(effects)):
        if log(rng.random()) < gain[g]:
            effects[g] = proposed[g]
    _fill_chances(shape, sticks, room)


@inline_lean
def _gain(records: LinearRecords, p: int, room: Sweep) -> float:
    """Return how much the log likelihood of a pattern's records gains, from the chances of levels to others."""
    total, after, before = 0.0, 1.0, 1.0
    for i in range(records.begin[p], records.begin[p + 1]):
        now, then = 0.0, 0.0
        for k in range(room.chance.shape[1]):
            now += room.logs[0, k] * room.weight[i, k]
            then += room.logs[1, k] * room.weight[i, k]
        before *= now
        after *= then
        if min(before, after) < TINY:
            total += log(after) - log(before)
            after, before = 1.0, 1.0
    return float(total + log(after) - log(before))


@inline_lean
def _stick_eta(shape: LinearShape, sticks: Sticks, s: int, p: int) -> float:
    eta = sticks.effects[s, sticks.group[p]] if shape.grouped else 0.0
    for c in range(sticks.columns.shape[1]):
        eta += sticks.coefficients[s, c] * sticks.columns[p, c]
    return float(eta)


@inline_lean
def _product(second: Floats, a: int, b: int) -> float:
    return float(second[a, b] if a >= b else second[b, a])


@inner
def _draw_equation(
    shape: LinearShape,
    priors: LinearPriors,
    parameters: LinearParameters,
    e: int,
    room: Sweep,
    rng: np.random.Generator,
) -> None:
    """Draw the parameters of a gaussian equation from the sums of products."""
    size, answer, joint = shape.width[e], shape.response[e], room.joint
    weight, between = parameters.precision[e], 1.0 / parameters.variance[e]
    groups = len(room.first) if shape.grouped else 0
    for a in range(size):
        column = shape.columns[e, a]
        joint.target[a] = weight * _product(room.second, column, answer)
        for b in range(a + 1):
            joint.fixed[a, b] = weight * _product(room.second, column, shape.columns[e, b])
        for g in range(groups):
            joint.mixed[g, a] = weight * room.first[g, column]
    for g in range(groups):
        joint.weight[g] = weight * room.first[g, 0]
        joint.answer[g] = weight * room.first[g, answer]
    integrate(joint, size, groups, (priors.precision[e], priors.linear[e]), between)
    put_draw(joint, size, between, parameters.coefficients[e], parameters.effects[e, :groups], rng)
    _draw_spreads(shape, priors, parameters, e, room, rng)


@inner
def _draw_spreads(
    shape: LinearShape,
    priors: LinearPriors,
    parameters: LinearParameters,
    e: int,
    room: Sweep,
    rng: np.random.Generator,
) -> None:
    """Draw the residual variance of an equation, then the variance of its effects and a common factor on them."""
    total, count, cross, square, scatter = _squares(shape, parameters, e, room)
    sd2 = 1.0 / parameters.precision[e]
    auxiliary = rng.standard_gamma(0.5 * (HALF_T_DF + 1)) / (HALF_T_DF / sd2 + priors.residual_scale[e] ** -2)
    rate = 0.5 * total + HALF_T_DF * auxiliary
    parameters.precision[e] = rng.standard_gamma(0.5 * (HALF_T_DF + count)) / rate
    if not shape.grouped:
        return
    weight, groups = parameters.precision[e], len(room.first)
    drawn = _effect_variance(parameters.variance[e], scatter, groups, priors.effect_scale[e], rng)
    factor = _factor(drawn, weight * cross, weight * square, priors.effect_scale[e], rng)
    parameters.variance[e] = drawn * factor * factor
    for g in range(groups):
        parameters.effects[e, g] *= factor


@inner
def _squares(
    shape: LinearShape, parameters: LinearParameters, e: int, room: Sweep
) -> tuple[float, float, float, float, float]:
    """Return the residual sum of squares and its count; residual x effect, effect x effect; squares of effects."""
    total, count, cross, square, scatter = 0.0, 0.0, 0.0, 0.0, 0.0
    places, best = len(room.second), room.best
    best[:] = 0.0
    best[shape.response[e]] = 1.0
    for c in range(shape.width[e]):
        best[shape.columns[e, c]] -= parameters.coefficients[e, c]
    for a in range(places):
        if best[a] != 0.0:
            for b in range(a):
                total += 2.0 * best[a] * best[b] * room.second[a, b]
            total += best[a] * best[a] * room.second[a, a]
    for g in range(len(room.first)):
        number, effect, level = room.first[g, 0], parameters.effects[e, g] if shape.grouped else 0.0, 0.0
        if shape.grouped:
            for a in range(places):
                level += best[a] * room.first[g, a]
        total += effect * (effect * number - 2.0 * level)
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
    """Draw a factor on effects and their sd by a slice (see `samplers.gibbs.scale_moves`)."""
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

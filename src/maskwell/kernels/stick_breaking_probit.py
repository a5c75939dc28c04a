"""Sequential probits of a category, by patterns of known columns: counts are all that their parameters need.

P(stop at level s | got there) = Phi(x'b_s + u_g), so that the log likelihood of a stick is the sum over patterns of
taken log Phi(eta) + (tried - taken) log Phi(-eta) (Albert and Chib 2001). Coefficients and effects are drawn by an
elliptical slice around the mode (Murray, Adams and MacKay 2010), the effects' variance under a half-t prior (Huang and
Wand 2013), then a common factor on effects and their sd (Liu and Sabatti 2000). Chosen by `gibbs_linear`, whose
category has few patterns; other samplers draw utilities in `gibbs_records`.
"""

from __future__ import annotations

from math import cos, erfc, exp, log, log1p, pi, sin, sqrt
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from . import announce
from .densities import log_normal_cdf
from .gibbs_intercepts import JointIntercepts, integrate, put_draw, put_mean
from .programs import inline_lean, inner

announce(__file__)

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

# Steps; change of a predictor that ends them; the longest step of one
MOST_NEWTON, AT_REST, LONGEST = 25, 0.02, 2.0
FARTHEST, LARGEST, FLATTEST = 30.0, 30.0, 1e-6  # of a log factor; of a predictor; least weight of a count
HALF_T_DF = 2.0  # of every sd, as in gibbs_linear
LOGIT_BY_PROBIT = 1.7  # about: where Newton begins need not be exact
WIDEST = 1.0  # of the first bracket of the log of a factor on effects
ROOT_HALF, ROOT_2PI = sqrt(0.5), sqrt(2.0 * pi)
MIDDLE, FIRST, SECOND, TARGETS, WEIGHTS, TRIED, TAKEN, ROWS = range(8)  # rows of the working space


class Stick(NamedTuple):
    """One stick: columns by pattern and the group of each, priors, parameters (changed).

    Without group effects `effects` is empty. Rows of `room`, one value a pattern: see above; TRIED and TAKEN have the
    counts of records that reached this stick, and that stopped there. `fixed` and `shift` are room for two sets of
    coefficients and of effects.
    """

    columns: Floats
    group: Ints
    precision: Floats
    linear: Floats
    coefficients: Floats
    effects: Floats
    room: Floats
    fixed: Floats
    shift: Floats
    joint: JointIntercepts


@inline_lean
def stick_eta(stick: Stick, p: int) -> float:
    """Return the linear predictor of a pattern."""
    eta = stick.effects[stick.group[p]] if len(stick.effects) > 0 else 0.0
    for c in range(stick.columns.shape[1]):
        eta += stick.coefficients[c] * stick.columns[p, c]
    return float(eta)


@inner
def _fill_etas(stick: Stick, row: int) -> None:
    for p in range(len(stick.group)):
        stick.room[row, p] = stick_eta(stick, p)


@inner
def draw_stick(stick: Stick, variance: float, rng: np.random.Generator) -> None:
    """Draw coefficients and effects by an elliptical slice around their mode (see `samplers.gibbs.elliptical_slice`).

    That is exact about any centre that is found without what is drawn: Newton begins at the counts, and may rest
    early.
    """
    size, between, room = stick.columns.shape[1], 1.0 / variance, stick.room
    _fill_etas(stick, FIRST)
    _put_aside(stick, 0)
    _begin(stick)
    for _ in range(MOST_NEWTON):
        _fill_newton_targets(stick)
        _joint_of_working(stick)
        integrate(stick.joint, size, len(stick.effects), (stick.precision, stick.linear), between)
        put_mean(stick.joint, size, between, stick.coefficients, stick.effects)
        _fill_etas(stick, SECOND)
        if _move_predictors(stick) < AT_REST:
            break
    _fill_etas(stick, MIDDLE)
    _put_aside(stick, 1)
    put_draw(stick.joint, size, between, stick.coefficients, stick.effects, rng)
    for p in range(len(stick.group)):
        room[SECOND, p] = stick_eta(stick, p) - room[MIDDLE, p]
        room[FIRST, p] -= room[MIDDLE, p]
    angle = _angle(stick, rng)
    _turn(stick.coefficients, stick.fixed, angle)
    _turn(stick.effects, stick.shift, angle)


@inner
def _put_aside(stick: Stick, row: int) -> None:
    for a in range(len(stick.coefficients)):
        stick.fixed[row, a] = stick.coefficients[a]
    for g in range(len(stick.effects)):
        stick.shift[row, g] = stick.effects[g]


@inner
def _turn(values: Floats, others: Floats, angle: float) -> None:
    """Go from the values before (first of the others) by an angle about the mode (the second)."""
    along, across = cos(angle), sin(angle)
    for a in range(len(values)):
        mode = others[1, a]
        values[a] = mode + (others[0, a] - mode) * along + (values[a] - mode) * across


@inner
def _begin(stick: Stick) -> None:
    """Put about the probits of the shares of what was tried where Newton begins."""
    for p in range(len(stick.group)):
        tried, taken = stick.room[TRIED, p], stick.room[TAKEN, p]
        stick.room[MIDDLE, p] = log((taken + 0.5) / (tried - taken + 0.5)) / LOGIT_BY_PROBIT


@inner
def _move_predictors(stick: Stick) -> float:
    """Go to the new linear predictors, or part of the way where they are far; return how far they are."""
    change, share = 0.0, 1.0
    for p in range(len(stick.group)):
        change = max(change, abs(stick.room[SECOND, p] - stick.room[MIDDLE, p]))
    if change > LONGEST:
        share = LONGEST / change
    for p in range(len(stick.group)):
        stick.room[MIDDLE, p] += share * (stick.room[SECOND, p] - stick.room[MIDDLE, p])
    return change


@inner
def _fill_newton_targets(stick: Stick) -> None:
    """Fill targets and weights of one Newton step."""
    room = stick.room
    for p in range(len(stick.group)):
        eta = min(max(room[MIDDLE, p], -LARGEST), LARGEST)
        density, tail = exp(-0.5 * eta * eta) / ROOT_2PI, 0.5 * erfc(abs(eta) * ROOT_HALF)
        ahead, behind = density / (1.0 - tail), density / tail
        if eta < 0.0:
            ahead, behind = behind, ahead
        taken = room[TAKEN, p]
        left = room[TRIED, p] - taken
        slope = taken * ahead - left * behind
        curve = taken * ahead * (ahead + eta) + left * behind * (behind - eta)
        room[WEIGHTS, p] = max(curve, FLATTEST * room[TRIED, p])
        room[TARGETS, p] = eta + slope / room[WEIGHTS, p] if room[WEIGHTS, p] > 0.0 else 0.0


@inner
def _joint_of_working(stick: Stick) -> None:
    """Add up the products of the working model."""
    joint, size, grouped = stick.joint, stick.columns.shape[1], len(stick.effects) > 0
    joint.fixed[:] = 0.0
    joint.target[:] = 0.0
    joint.mixed[:] = 0.0
    joint.weight[:] = 0.0
    joint.answer[:] = 0.0
    for p in range(len(stick.group)):
        weight, g = stick.room[WEIGHTS, p], stick.group[p]
        answer = weight * stick.room[TARGETS, p]
        for a in range(size):
            part = weight * stick.columns[p, a]
            joint.target[a] += stick.columns[p, a] * answer
            for b in range(a + 1):
                joint.fixed[a, b] += part * stick.columns[p, b]
            if grouped:
                joint.mixed[g, a] += part
        if grouped:
            joint.weight[g] += weight
            joint.answer[g] += answer


@inline_lean
def log_chances(eta: float) -> tuple[float, float]:
    """Return log P(N(0, 1) <= eta) and log P(N(0, 1) > eta)."""
    tail = 0.5 * erfc(abs(eta) * ROOT_HALF)
    far, near = log(tail) if tail > 1e-300 else log_normal_cdf(-abs(eta)), log1p(-tail)
    return (near, far) if eta > 0.0 else (far, near)


@inline_lean
def _pattern_log(stick: Stick, p: int, eta: float) -> float:
    if stick.room[TRIED, p] == 0.0:
        return 0.0
    ahead, behind = log_chances(eta)
    taken = stick.room[TAKEN, p]
    return float(taken * ahead + (stick.room[TRIED, p] - taken) * behind)


@inner
def _excess(stick: Stick, angle: float) -> float:
    """Return how much the log likelihood exceeds that of the working model, at an angle."""
    total, along, across, room = 0.0, cos(angle), sin(angle), stick.room
    for p in range(len(stick.group)):
        eta = room[MIDDLE, p] + along * room[FIRST, p] + across * room[SECOND, p]
        off = room[TARGETS, p] - eta
        total += _pattern_log(stick, p, eta) + 0.5 * room[WEIGHTS, p] * off * off
    return total


@inner
def _angle(stick: Stick, rng: np.random.Generator) -> float:
    height = _excess(stick, 0.0) + log(rng.random())
    angle = 2.0 * pi * rng.random()
    low, high = angle - 2.0 * pi, angle
    while high - low > 1e-12:
        if _excess(stick, angle) > height:
            return angle
        if angle < 0.0:
            low = angle
        else:
            high = angle
        angle = low + (high - low) * rng.random()
    return 0.0


@inner
def stretch_stick(stick: Stick, variance: float, scale: float, rng: np.random.Generator) -> float:
    """Draw the variance of the effects, then a common factor on them and their sd; return the variance."""
    groups, scatter = len(stick.effects), 0.0
    for g in range(groups):
        scatter += stick.effects[g] * stick.effects[g]
    auxiliary = rng.standard_gamma(0.5 * (HALF_T_DF + 1)) / (HALF_T_DF / variance + scale**-2)
    drawn = (0.5 * scatter + HALF_T_DF * auxiliary) / rng.standard_gamma(0.5 * (HALF_T_DF + groups))
    for p in range(len(stick.group)):
        stick.room[MIDDLE, p] = stick_eta(stick, p) - stick.effects[stick.group[p]]
    log_now, narrow = log(drawn), scale**-2
    height = _factor_log(stick, 0.0, log_now, narrow) + log(rng.random())
    # About the spread of the log of an sd that these groups tell: few values are then tried.
    width = min(WIDEST, 3.0 / sqrt(2.0 * groups))
    low = -width * rng.random()
    high = low + width
    while low > -FARTHEST and _factor_log(stick, low, log_now, narrow) > height:
        low -= width
    while high < FARTHEST and _factor_log(stick, high, log_now, narrow) > height:
        high += width
    factor = 1.0
    for _ in range(200):
        value = low + (high - low) * rng.random()
        if _factor_log(stick, value, log_now, narrow) > height:
            factor = exp(value)
            break
        if value < 0.0:
            low = value
        else:
            high = value
    for g in range(groups):
        stick.effects[g] *= factor
    return float(drawn * factor * factor)


@inner
def _factor_log(stick: Stick, log_factor: float, log_now: float, narrow: float) -> float:
    factor, log_variance, total = exp(log_factor), log_now + 2.0 * log_factor, 0.0
    for p in range(len(stick.group)):
        eta = stick.room[MIDDLE, p] + factor * stick.effects[stick.group[p]]
        total += _pattern_log(stick, p, eta)
    tail = log(HALF_T_DF * exp(-log_variance) + narrow)
    return total + 2.0 * log_factor - 2.0 * log_variance - 1.5 * tail

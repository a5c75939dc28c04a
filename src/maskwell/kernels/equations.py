"""Systems of regressions in flat arrays: linear predictors of records, log likelihoods, and sums over records.

eta_i = offset_i + sum over columns c of clean_ic program_c(state_i) b_c, with b_c one coefficient or one for each
group. Families: normal, probit (also a stick), logit, cumulative probit between cuts, Poisson, negative binomial
(McCullagh and Nelder 1989). `accumulate` adds up X'WX and X'Wt for a normal draw of coefficients. The Gibbs kernels
for models of any form are built from these; `gibbs_linear` does without where all is linear and normal.
"""

from __future__ import annotations

from math import exp, lgamma, log, log1p, pi
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from . import announce
from .densities import log_normal_cdf
from .programs import Programs, inline_lean, inner, lean, program_value

announce(__file__)

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]

GAUSSIAN, PROBIT, LOGIT, ORDERED, POISSON, NEGATIVE_BINOMIAL = 0, 1, 2, 3, 4, 5
HALF_LOG_2PI = 0.5 * log(2.0 * pi)


class Layout(NamedTuple):
    """What does not change: the columns of all equations, one after the other.

    A column is `clean[i, source]` times a program of the state; its coefficient is one for all records (`factor` -1:
    `coefficients[place]`) or one for each group (`effects[place + stride * codes[i, factor]]`). The last
    equation is the model of interest; `offset` is its own.
    """

    clean: Floats
    codes: Ints
    programs: Programs
    begin: Ints
    source: Ints
    factor: Ints
    place: Ints
    stride: Ints
    response: Ints
    family: Ints
    stick: Ints
    offset: Floats
    counted: Bools


class Values(NamedTuple):
    """The parameters of a chain: what Gibbs changes."""

    coefficients: Floats
    effects: Floats
    precision: Floats
    cuts: Floats
    shape: Floats


class EquationMoments(NamedTuple):
    """Weighted sums of products: fixed columns with each other and the target, and by group; `room` is to work in."""

    fixed: Floats
    fixed_target: Floats
    mixed: Floats
    group: Floats
    group_target: Floats
    room: Floats


@inline_lean
def coefficient(layout: Layout, values: Values, c: int, i: int) -> float:
    """Return the coefficient of a column for a record."""
    if layout.factor[c] < 0:
        return float(values.coefficients[layout.place[c]])
    return float(values.effects[layout.place[c] + layout.stride[c] * layout.codes[i, layout.factor[c]]])


@inline_lean
def predictor(layout: Layout, values: Values, e: int, i: int, row: Floats) -> float:
    """Return the linear predictor of an equation for a record whose state is `row`."""
    eta = layout.offset[i] if e == len(layout.family) - 1 and len(layout.offset) > 0 else 0.0
    for c in range(layout.begin[e], layout.begin[e + 1]):
        value = coefficient(layout, values, c, i) * layout.clean[i, layout.source[c]]
        if value != 0.0:
            eta += value * program_value(layout.programs, c, row)
    return eta


@inline_lean
def applies(layout: Layout, e: int, i: int, row: Floats) -> bool:
    """Whether an equation speaks of a record: its response is there, and a stick has been reached."""
    if layout.stick[e] >= 0:
        return bool(row[layout.response[e]] >= layout.stick[e])
    return bool(e < len(layout.family) - 1 or layout.counted[i])


@inline_lean
def response_log(layout: Layout, values: Values, e: int, y: float, eta: float) -> float:
    """Return the log likelihood of a response given its linear predictor, constants in eta and y kept."""
    family = layout.family[e]
    if family == GAUSSIAN:
        off = y - eta
        return float(0.5 * log(values.precision[e]) - HALF_LOG_2PI - 0.5 * values.precision[e] * off * off)
    if family == PROBIT:
        ahead = y == layout.stick[e] if layout.stick[e] >= 0 else y > 0.5
        return log_normal_cdf(eta if ahead else -eta)
    return _other_log(family, y, eta, values.cuts, values.shape[0])


@inner
def _other_log(family: int, y: float, eta: float, cuts: Floats, size: float) -> float:
    """Return the log likelihood of the families that are neither gaussian nor probit."""
    if family == LOGIT:
        return -_softplus(-eta) if y > 0.5 else -_softplus(eta)
    if family == ORDERED:
        return ordered_log(cuts, int(y), eta)
    if family == POISSON:
        return y * eta - exp(eta) - lgamma(y + 1.0) if eta < 700.0 else -np.inf
    less = eta - log(size)
    chance = y * (less - _softplus(less)) - size * _softplus(less)
    return chance + lgamma(y + size) - lgamma(size) - lgamma(y + 1.0)


@inline_lean
def _softplus(x: float) -> float:
    return x + log1p(exp(-x)) if x > 0.0 else log1p(exp(x))


@lean
def ordered_log(cuts: Floats, code: int, eta: float) -> float:
    """Return the log probability of a code: a standard normal between two cuts seen from eta."""
    if code == 0:
        return log_normal_cdf(cuts[0] - eta)
    if code == len(cuts):
        return log_normal_cdf(eta - cuts[code - 1])
    low, high = cuts[code - 1] - eta, cuts[code] - eta
    if low > 0.0:  # the upper tail by symmetry, where the difference keeps its digits
        low, high = -high, -low
    above, below = log_normal_cdf(high), log_normal_cdf(low)
    gap = exp(below - above)
    return above + log1p(-gap) if gap < 1.0 else -np.inf


@inline_lean
def record_log(layout: Layout, values: Values, e: int, i: int, row: Floats) -> float:
    """Return an equation's log likelihood of a record whose state is `row`, 0 where it does not apply."""
    if not applies(layout, e, i, row):
        return 0.0
    return response_log(layout, values, e, row[layout.response[e]], predictor(layout, values, e, i, row))


@lean
def predictors(layout: Layout, values: Values, e: int, state: Floats, out: Floats) -> None:
    """Fill the linear predictors of all records."""
    for i in range(len(state)):
        out[i] = predictor(layout, values, e, i, state[i])


@lean
def squares(layout: Layout, values: Values, e: int, state: Floats) -> tuple[float, int]:
    """Return the sum of squared residuals of a gaussian equation, and of how many records."""
    total, count = 0.0, 0
    for i in range(len(state)):
        if applies(layout, e, i, state[i]):
            off = state[i, layout.response[e]] - predictor(layout, values, e, i, state[i])
            total += off * off
            count += 1
    return total, count


@lean
def total_log(layout: Layout, values: Values, e: int, state: Floats) -> float:
    """Return an equation's log likelihood of all records."""
    total = 0.0
    for i in range(len(state)):
        total += record_log(layout, values, e, i, state[i])
    return total


@lean
def accumulate(
    layout: Layout,
    values: Values,
    where: tuple[int, int],
    state: Floats,
    pseudo: tuple[Floats, Floats],
    moments: EquationMoments,
) -> None:
    """Add up the moments of an equation, for the effects of one factor (-1: none); `where` is both numbers.

    `pseudo` holds targets and weights of the records, empty for a gaussian equation: then its response and precision.
    """
    e, factor = where
    targets, weights = pseudo
    first, last = layout.begin[e], layout.begin[e + 1]
    fixed, mine = moments.room[0], moments.room[1]
    for i in range(len(state)):
        row = state[i]
        if not applies(layout, e, i, row):
            continue
        own = len(weights) > 0
        target = targets[i] if own else row[layout.response[e]]
        weight = weights[i] if own else values.precision[e]
        if e == len(layout.family) - 1 and len(layout.offset) > 0:
            target -= layout.offset[i]
        p, q = 0, 0
        for c in range(first, last):
            value = layout.clean[i, layout.source[c]] * program_value(layout.programs, c, row)
            if layout.factor[c] < 0:
                fixed[p] = value
                p += 1
            elif layout.factor[c] == factor:
                mine[q] = value
                q += 1
            else:
                target -= value * coefficient(layout, values, c, i)
        _add(moments, fixed[:p], mine[:q], target, weight, layout.codes[i, factor] if q else 0)


@inner
def _add(
    moments: EquationMoments, fixed: Floats, mine: Floats, target: float, weight: float, group: int
) -> None:
    for a in range(len(fixed)):
        scaled = weight * fixed[a]
        moments.fixed_target[a] += scaled * target
        for b in range(a + 1):
            moments.fixed[a, b] += scaled * fixed[b]
        for b in range(len(mine)):
            moments.mixed[group, a, b] += scaled * mine[b]
    for a in range(len(mine)):
        scaled = weight * mine[a]
        moments.group_target[group, a] += scaled * target
        for b in range(a + 1):
            moments.group[group, a, b] += scaled * mine[b]


@lean
def scale_sums(
    layout: Layout, values: Values, where: tuple[int, int], state: Floats, pseudo: tuple[Floats, Floats]
) -> tuple[float, float]:
    """Return the weighted sums of residual x part and part x part, the part being one column of group effects.

    `where` is the equation and the column. They say what a common factor on the column's effects would do to the fit.
    """
    e, column = where
    targets, weights = pseudo
    cross, square = 0.0, 0.0
    for i in range(len(state)):
        row = state[i]
        if not applies(layout, e, i, row):
            continue
        own = len(weights) > 0
        target = targets[i] if own else row[layout.response[e]]
        weight = weights[i] if own else values.precision[e]
        part = coefficient(layout, values, column, i) * layout.clean[i, layout.source[column]]
        part *= program_value(layout.programs, column, row)
        rest = target - predictor(layout, values, e, i, row) + part
        cross += weight * rest * part
        square += weight * part * part
    return cross, square


@lean
def column_part(layout: Layout, values: Values, column: int, state: Floats, out: Floats) -> None:
    """Fill what one column adds to the linear predictor of each record."""
    for i in range(len(state)):
        part = coefficient(layout, values, column, i) * layout.clean[i, layout.source[column]]
        out[i] = part * program_value(layout.programs, column, state[i])


@lean
def pseudo_squares(
    layout: Layout, values: Values, e: int, state: Floats, pseudo: tuple[Floats, Floats]
) -> tuple[float, int]:
    """Return the sum of squares of targets about their linear predictors, and of how many records."""
    total, count = 0.0, 0
    for i in range(len(state)):
        if applies(layout, e, i, state[i]):
            off = pseudo[0][i] - predictor(layout, values, e, i, state[i])
            total += off * off
            count += 1
    return total, count

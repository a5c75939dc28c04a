"""Responses that are not gaussian: the likelihood by linear predictor, and the normal that lies closest to it.

At eta, slope l'(eta) and curvature w = -l''(eta) give the target eta + l'(eta) / w of weight w: one step of iterated
weighted least squares is one Newton step (McCullagh and Nelder 1989, section 2.5). `excess` is what this normal leaves
of the log likelihood, which the elliptical slice of `analysis/samplers/gibbs/elliptical_slice` follows.
"""

from __future__ import annotations

from math import cos, exp, sin

import numpy as np
import numpy.typing as npt

from . import announce
from .densities import log_normal_cdf
from .equations import (
    HALF_LOG_2PI,
    LOGIT,
    ORDERED,
    POISSON,
    PROBIT,
    Layout,
    Values,
    ordered_log,
    response_log,
)
from .programs import inner, lean

announce(__file__)

Floats = npt.NDArray[np.float64]
LARGEST = 30.0  # beyond it a mean exp(eta) is no count of this world; Newton's steps stop there
FLATTEST = 1e-6  # least weight of a record: a flat likelihood has no curvature to divide by


@lean
def fill_working_response(
    layout: Layout, values: Values, state: Floats, etas: Floats, pseudo: tuple[Floats, Floats]
) -> None:
    """Fill the targets and weights whose least squares is one Newton step of the model of interest."""
    e = len(layout.family) - 1
    targets, weights = pseudo
    for i in range(len(state)):
        if not layout.counted[i]:
            weights[i] = 0.0
            continue
        eta = min(max(etas[i], -LARGEST), LARGEST)
        slope, curve = _slope_and_curve(
            layout.family[e], state[i, layout.response[e]], eta, values.cuts, values.shape[0]
        )
        weights[i] = max(curve, FLATTEST)
        targets[i] = eta + slope / weights[i]


@inner
def _slope_and_curve(family: int, y: float, eta: float, cuts: Floats, size: float) -> tuple[float, float]:
    """Return the first derivative of the log likelihood in eta and minus the second."""
    if family == LOGIT:
        chance = 1.0 / (1.0 + exp(-eta))
        return (1.0 if y > 0.5 else 0.0) - chance, chance * (1.0 - chance)
    if family == PROBIT:
        side = 1.0 if y > 0.5 else -1.0
        slope = side * exp(-0.5 * eta * eta - HALF_LOG_2PI - log_normal_cdf(side * eta))
        return slope, slope * (slope + eta)
    if family == ORDERED:
        return _ordered_slope(cuts, int(y), eta)
    mean = exp(eta)
    if family == POISSON:
        return y - mean, mean
    return y - (y + size) * mean / (size + mean), (y + size) * size * mean / (size + mean) ** 2


@inner
def _ordered_slope(cuts: Floats, code: int, eta: float) -> tuple[float, float]:
    log_mass = ordered_log(cuts, code, eta)
    slope, bend = 0.0, 0.0
    if code > 0:
        low = cuts[code - 1] - eta
        density = exp(-0.5 * low * low - HALF_LOG_2PI - log_mass)
        slope, bend = slope + density, bend + low * density
    if code < len(cuts):
        high = cuts[code] - eta
        density = exp(-0.5 * high * high - HALF_LOG_2PI - log_mass)
        slope, bend = slope - density, bend - high * density
    return slope, slope * slope - bend


@lean
def excess(
    layout: Layout,
    values: Values,
    state: Floats,
    ellipse: tuple[Floats, Floats, Floats],
    angle: float,
    pseudo: tuple[Floats, Floats],
) -> float:
    """Return the log likelihood less its normal approximation at a point of an ellipse of linear predictors.

    `ellipse` has the predictors at the centre, and those of the two directions.
    """
    e, total = len(layout.family) - 1, 0.0
    middle, first, second = ellipse
    along, across = cos(angle), sin(angle)
    for i in range(len(state)):
        if layout.counted[i]:
            eta = middle[i] + along * first[i] + across * second[i]
            off = pseudo[0][i] - eta
            y = state[i, layout.response[e]]
            total += response_log(layout, values, e, y, eta) + 0.5 * pseudo[1][i] * off * off
    return total


@lean
def interest_log(layout: Layout, values: Values, state: Floats, etas: Floats) -> float:
    """Return the log likelihood of the model of interest at given linear predictors."""
    e, total = len(layout.family) - 1, 0.0
    for i in range(len(state)):
        if layout.counted[i]:
            total += response_log(layout, values, e, state[i, layout.response[e]], etas[i])
    return total


@lean
def beside_cut(cuts: Floats, k: int, codes: Floats, etas: Floats) -> float:
    """Return the log likelihood of the records in the two codes beside cut k; of all records where k is -1."""
    total = 0.0
    for i in range(len(codes)):
        code = int(codes[i])
        if k < 0 or code == k or code == k + 1:
            total += ordered_log(cuts, code, etas[i])
    return total

"""Noised counts with the true ones integrated out: the likelihood by linear predictor, and the normal closest to it.

With P(y | eta) the model and c(y) the chance of what was released, the likelihood is sum c(y) P(y | eta). Its
derivatives are those of the model averaged over the true count given the release (Louis 1982). Chosen by
`analysis/samplers/gibbs/elliptical_slice` where a Poisson or negative binomial response was noised.
"""

from __future__ import annotations

from math import cos, exp, log, sin

import numpy as np
import numpy.typing as npt

from . import announce
from .equations import POISSON
from .gibbs_counts import Hidden, count_log, walked_mass
from .programs import inner, lean
from .working_response import LARGEST

announce(__file__)

Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]
Model = tuple[int, float]  # the family, and the shape of a negative binomial

LEAST_SHARE = 0.02  # of the curvature that known counts have: the least weight a record gets


@lean
def hidden_working(
    model: Model, state: Floats, counted: Bools, hidden: Hidden, etas: Floats, pseudo: tuple[Floats, Floats]
) -> None:
    """Fill the targets and weights whose least squares is one Newton step of the model of interest."""
    family, size = model
    targets, weights = pseudo
    for i in range(len(state)):
        if not counted[i]:
            weights[i] = 0.0
            continue
        eta = min(max(etas[i], -LARGEST), LARGEST)
        _, count, variance = _count_moments(family, size, state, hidden, i, eta)
        mean = exp(eta)
        if family == POISSON:
            slope, curve, known = count - mean, mean - variance, mean
        else:
            share = size / (size + mean)
            slope, known = (count - mean) * share, (count + size) * mean * share / (size + mean)
            curve = known - variance * share * share
        weights[i] = max(curve, LEAST_SHARE * known, 1e-6)
        targets[i] = eta + slope / weights[i]


@lean
def hidden_log(
    model: Model,
    state: Floats,
    counted: Bools,
    hidden: Hidden,
    ellipse: tuple[Floats, Floats, Floats],
    angle: float,
    pseudo: tuple[Floats, Floats],
) -> float:
    """Return the log likelihood less its normal approximation at a point of an ellipse of linear predictors.

    `ellipse` has the predictors at the centre, and those of the two directions; without weights in `pseudo` it is the
    log likelihood itself.
    """
    total, along, across = 0.0, cos(angle), sin(angle)
    middle, first, second = ellipse
    for i in range(len(state)):
        if counted[i]:
            eta = middle[i] + along * first[i] + across * second[i]
            total += _count_moments(model[0], model[1], state, hidden, i, eta)[0]
            if len(pseudo[1]) > 0:
                off = pseudo[0][i] - eta
                total += 0.5 * pseudo[1][i] * off * off
    return total


@inner
def _count_moments(
    family: int, size: float, state: Floats, hidden: Hidden, i: int, eta: float
) -> tuple[float, float, float]:
    """Return the log likelihood of a record, and mean and variance of its true count given what was released."""
    j, unknown, chances = hidden
    k = chances.which[i]
    if k < 0 or not unknown[i, j]:
        return count_log(family, eta, size, state[i, j]), state[i, j], 0.0
    first, given = chances.first[k], chances.chance[chances.begin[k] : chances.begin[k + 1]]
    total, one, two, span = walked_mass(family, eta, size, first, given, chances.endless[k])
    start = float(span[0])
    if total > 0.0 and total < np.inf:
        one, two = one / total, two / total
        return count_log(family, eta, size, start) + log(total), start + one, two - one * one
    return _listed_sum(family, eta, size, first, given)


@inner
def _listed_sum(
    family: int, eta: float, size: float, first: int, given: Floats
) -> tuple[float, float, float]:
    """Do the same by logarithms: the model is far from all that may have given the release."""
    top, where = -np.inf, first
    for k in range(len(given)):
        if given[k] > 0.0:
            here = log(given[k]) + count_log(family, eta, size, float(first + k))
            if here > top:
                top, where = here, first + k
    if not top > -np.inf:
        return -np.inf, float(first), 0.0
    total, one, two = 0.0, 0.0, 0.0
    for k in range(len(given)):
        share = given[k] * exp(count_log(family, eta, size, float(first + k)) - top)
        off = float(first + k - where)
        total, one, two = total + share, one + share * off, two + share * off * off
    one, two = one / total, two / total
    return top + log(total), where + one, two - one * one

"""Moves along groups of scales (Liu and Sabatti 2000): what Gibbs draws one by one is stretched together.

Standard deviations of group effects near 0, and the utilities of probit models, hold each other in place; a common
factor frees them. The factor is drawn by a slice from the density that leaves the posterior as it is.
"""

from __future__ import annotations

from collections.abc import Callable
from math import exp, log
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from ...system import GAUSSIAN
from .layout import LayoutPart
from .slice_sampler import slice_draw

if TYPE_CHECKING:
    from .sweeps import GibbsChain

Floats = npt.NDArray[np.float64]

HALF_T_DF = 2.0  # of every standard deviation; with 2 the correlations of group effects are uniform
FARTHEST = (-30.0, 30.0)  # of the log of a factor


def rescale_effects(chain: GibbsChain, part: LayoutPart, k: int) -> None:
    """Stretch each column of a factor's effects together with their sd: small sds move by this, not by the above.

    A move along the group of scales (Liu and Sabatti 2000): the effects' density given their covariance does not
    change, so that the fit and the prior of the covariance decide.
    """
    laid_out, e = chain.plan.laid_out, part.number
    place, scales = part.effects[k], chain.plan.priors[e].effect_scales[k]
    before = sum(other.width for other in part.effects[:k])
    first = int(laid_out.layout.begin[e]) + (part.stop - part.begin) + before
    effects = chain.values.effects[place.begin : place.stop].reshape(place.groups, place.width)
    for a in range(place.width):
        covariance = chain.covariances[e][k]
        density = _factor_density(covariance, a, scales, _fit(chain, part, first + a))
        factor = float(np.exp(slice_draw(chain.rng, density, 0.0, 1.0, FARTHEST)))
        effects[:, a] *= factor
        chain.covariances[e][k] = _scaled_covariance(covariance, a, factor)


def _factor_density(
    covariance: Floats, a: int, scales: Floats, fit: Callable[[float], float]
) -> Callable[[float], float]:
    """Return the log density of the log of a factor on one column of effects and its sd."""
    width = len(scales)

    def of_one(log_factor: float) -> float:  # the usual case, without matrices
        factor, log_variance = exp(log_factor), log_now + 2 * log_factor
        tail = log(HALF_T_DF * exp(-log_variance) + narrow)
        return fit(factor) + 2 * log_factor - 2 * log_variance - 1.5 * tail

    def of_many(log_factor: float) -> float:
        factor = exp(log_factor)
        grown = log_half_t(_scaled_covariance(covariance, a, factor), scales)
        return fit(factor) + grown + (width + 1) * log_factor

    log_now, narrow = log(float(covariance[0, 0])), float(scales[0]) ** -2
    return of_one if width == 1 else of_many


def _scaled_covariance(covariance: Floats, a: int, factor: float) -> Floats:
    by = np.ones(len(covariance))
    by[a] = factor
    return np.asarray(covariance * np.outer(by, by))


def log_half_t(covariance: Floats, scales: Floats) -> float:
    """Return the log density of a covariance whose sds are half-t and whose correlations are uniform, to a constant."""
    width = len(scales)
    diagonal = np.diag(np.linalg.inv(covariance))
    tails = np.log(HALF_T_DF * diagonal + 1 / scales**2).sum()
    log_determinant = float(np.linalg.slogdet(covariance)[1])
    return float(-0.5 * (HALF_T_DF + 2 * width) * log_determinant - 0.5 * (HALF_T_DF + width) * tails)


def _fit(chain: GibbsChain, part: LayoutPart, column: int) -> Callable[[float], float]:
    """Return the log likelihood of an equation as a function of a factor on one column of effects."""
    from ....kernels.equations import column_part, predictors, scale_sums
    from ....kernels.working_response import interest_log

    layout, e = chain.plan.laid_out.layout, part.number
    if part.equation.family == GAUSSIAN or part.equation.stick is not None:
        cross, square = scale_sums(layout, chain.values, (e, column), chain.state, chain.pseudo[e])
        return lambda factor: factor * (cross - 0.5 * factor * square)
    etas, share = np.empty(len(chain.state)), np.empty(len(chain.state))
    predictors(layout, chain.values, e, chain.state, etas)
    column_part(layout, chain.values, column, chain.state, share)
    etas -= share
    return lambda factor: float(interest_log(layout, chain.values, chain.state, etas + factor * share))


def rescale_utilities(chain: GibbsChain, part: LayoutPart) -> None:
    """Stretch utilities, coefficients and effects of a probit equation together (Liu and Wu 1999)."""
    from ....kernels.equations import pseudo_squares

    values, prior, e = chain.values, chain.plan.priors[part.number], part.number
    square, count = pseudo_squares(chain.plan.laid_out.layout, values, e, chain.state, chain.pseudo[e])
    coefficients = values.coefficients[part.begin : part.stop]
    size, pull = coefficients / prior.sd, prior.mean / prior.sd
    power, cross = count + len(size), float(size @ pull)
    square += float(size @ size)
    for place, covariance in zip(part.effects, chain.covariances[e], strict=True):
        effects = values.effects[place.begin : place.stop].reshape(place.groups, place.width)
        square += float(np.einsum("ga,ab,gb->", effects, np.linalg.inv(covariance), effects))
        power += effects.size

    def log_density(log_factor: float) -> float:
        factor = exp(log_factor)
        return power * log_factor - 0.5 * factor * factor * square + factor * cross

    factor = exp(slice_draw(chain.rng, log_density, 0.0, 2.0 / np.sqrt(power), FARTHEST))
    coefficients *= factor
    for place in part.effects:
        values.effects[place.begin : place.stop] *= factor

"""The mode of a marginal posterior and the normal law that fits there.

Quasi-Newton climbs in coordinates of about unit curvature (Nocedal and Wright 2006, chapter 6), and second derivatives
by differences of gradients: Laplace's normal law (Tierney and Kadane 1986). Proposals of `independence_chain` start
from it, for this sampler and for `enumeration`.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol

import numpy as np

from ...system import GAUSSIAN, LOGIT, NEGATIVE_BINOMIAL, POISSON, PROBIT, Floats
from ..conjugate.reduced_form import triangle_of
from .families import fine_enough, has_extra
from .posterior import MarginalPosterior, ParameterLayout
from .problem import filter_of

TOLERANCE = 1e-3  # of the log likelihood of all records, by the nodes of its integrals
STEP = 0.1  # of a standard deviation: how far apart gradients are taken for the curvature


class ModeFit(NamedTuple):
    """The mode, a root of the covariance there, and the error of integration measured there."""

    mode: Floats
    root: Floats
    error: float


class Smooth(Protocol):
    """A log density of a vector of parameters, and its gradient."""

    def gradient(self, theta: Floats) -> tuple[float, Floats]:
        """Return the log density and its gradient."""


def fit(posterior: MarginalPosterior) -> ModeFit | None:
    """Climb to the mode and take the curvature there; None where there is no proper one."""
    theta, root = first_guess(posterior)
    refine(posterior, theta)
    theta = climb(posterior, theta, root)
    error = refine(posterior, theta)
    found = settle(posterior, theta, root)
    return None if found is None else ModeFit(*found, error)


def settle(posterior: Smooth, theta: Floats, root: Floats) -> tuple[Floats, Floats] | None:
    """Return the mode near a point, and a root of the covariance there; None where there is no proper one."""
    for _ in range(2):  # the second time on the scale that the curvature gave
        found = _curvature(posterior, theta, root)
        if found is None:
            return None
        root = found
        theta = climb(posterior, theta, root)
    return theta, root


def refine(posterior: MarginalPosterior, theta: Floats) -> float:
    """Choose how many nodes to integrate with; return the error that is left in the log likelihood."""
    parameters = posterior.unpack(theta)
    law = posterior.law(parameters)
    filters = [filter_of(kind, law.covariance) for kind in posterior.problem.kinds]
    mean, variance = posterior.predictors(parameters, law, filters)
    return fine_enough(posterior.family, mean, variance, parameters.extra, TOLERANCE)


def climb(posterior: Smooth, theta: Floats, root: Floats) -> Floats:
    """Go to the mode in coordinates in which the posterior is about a standard normal law."""
    from scipy.optimize import minimize

    def down(x: Floats) -> tuple[float, Floats]:
        try:
            value, slope = posterior.gradient(theta + root @ x)
        except np.linalg.LinAlgError:
            return np.inf, np.zeros(len(x))
        if not (np.isfinite(value) and np.isfinite(slope).all()):
            return np.inf, np.zeros(len(x))
        return -value, -(root.T @ slope)

    with np.errstate(all="ignore"):
        found = minimize(
            down, np.zeros(len(theta)), jac=True, method="BFGS", options={"gtol": 0.02, "maxiter": 500}
        )
    return np.asarray(theta + root @ found.x)


def _curvature(posterior: Smooth, theta: Floats, root: Floats) -> Floats | None:
    """Return a root of the inverse of minus the second derivatives, from differences of gradients."""
    size = len(theta)
    bend = np.empty((size, size))
    for k in range(size):
        step = STEP * root[:, k]
        try:
            ahead, behind = posterior.gradient(theta + step)[1], posterior.gradient(theta - step)[1]
        except np.linalg.LinAlgError:
            return None
        bend[k] = root.T @ (behind - ahead) / (2.0 * STEP)
    bend = 0.5 * (bend + bend.T)
    if not np.isfinite(bend).all():
        return None
    values, vectors = np.linalg.eigh(bend)
    if values[-1] <= 0.0:
        return None
    # where the posterior hardly bends downwards the proposal is wide, not infinite
    values = np.maximum(values, 1e-2 * min(1.0, values[-1]))
    return np.asarray(root @ (vectors / np.sqrt(values)))


def first_guess(posterior: MarginalPosterior) -> tuple[Floats, Floats]:
    """Return a start from least squares on the released values, and the scale of the parameters around it."""
    problem, size = posterior.problem, len(posterior)
    root, n = np.zeros((size, size)), len(posterior.problem)
    own, logs, ends = [], [], posterior.ends
    share = np.sum([np.diag(kind.noise) * (kind.stop - kind.start) for kind in problem.kinds], axis=0) / n
    for j, covariate in enumerate(problem.covariates):
        design = problem.clean @ covariate.clean + problem.released @ covariate.before
        target = problem.released[:, j] - problem.clean @ covariate.shift
        coefficients, inverse, sd = least_squares(design, target, posterior.priors[j].sd)
        here = slice(ends[j + 1], ends[j + 2])
        root[here, here] = sd * inverse
        own.append(coefficients)
        logs.append(0.5 * np.log(max(sd**2 - share[j], 0.1 * sd**2)))
    root[ends[-2] :, ends[-2] :] = np.eye(len(logs)) / np.sqrt(2.0 * n)
    design = problem.columns + np.einsum(
        "ns,skq,nq->nk", problem.multipliers, problem.slopes, problem.released
    )
    target, width = link_scale_response(problem.family, problem.response)
    if problem.fixed is not None:
        target = target - problem.fixed
    coefficients, inverse, sd = least_squares(design, target, posterior.priors[-1].sd)
    width = sd if problem.family == GAUSSIAN else width
    root[: ends[0], : ends[0]] = width * inverse
    if has_extra(problem.family):
        root[ends[0], ends[0]] = 1.0 / np.sqrt(2.0 * n) if problem.family == GAUSSIAN else 3.0 / np.sqrt(n)
    extra = float(np.log(max(sd, 1e-300))) if problem.family == GAUSSIAN else 0.0
    return posterior.pack(ParameterLayout(coefficients, extra, tuple(own), np.array(logs))), root


def link_scale_response(family: int, response: Floats) -> tuple[Floats, float]:
    """Return a response on the scale of the linear predictor, and the sd one record leaves a coefficient of size 1."""
    from scipy.special import ndtri

    middle = float(np.clip(response.mean(), 0.5 / len(response), None))
    if family in (POISSON, NEGATIVE_BINOMIAL):
        return np.log(response + 0.5), float(1.0 / np.sqrt(min(middle, 1.0)))
    if family == GAUSSIAN:
        return response, 1.0
    middle = min(middle, 1.0 - 0.5 / len(response))
    spread = middle * (1.0 - middle)
    if family == LOGIT:
        return np.log(middle / (1.0 - middle)) + (response - middle) / spread, float(1.0 / np.sqrt(spread))
    assert family == PROBIT
    at = float(ndtri(middle))
    height = np.exp(-0.5 * at**2) / np.sqrt(2.0 * np.pi)
    return at + (response - middle) / height, float(np.sqrt(spread) / height)


def least_squares(design: Floats, target: Floats, prior_sd: Floats) -> tuple[Floats, Floats, float]:
    """Return coefficients, the inverse triangle of the design (with a trace of the prior) and the residual sd."""
    size = design.shape[1]
    spread = float(target.std()) or 1.0
    rows = np.vstack([design, np.diag(np.minimum(spread / prior_sd, 1e3))])
    triangle = triangle_of(np.column_stack([rows, np.append(target, np.zeros(size))]))
    inverse = np.asarray(np.linalg.inv(triangle[:size, :size]), np.float64)
    sd = abs(float(triangle[size, size])) / np.sqrt(max(len(target) - size, 1))
    return inverse @ triangle[:size, size], inverse, max(sd, 1e-9 * spread)

"""SIMEX: add more of the noise, see where the estimates go, and follow them back to no noise at all.

Cook and Stefanski (1994); the variance by the simulation jackknife of Stefanski and Cook (1995): the mean of the
estimated variances less the variance over replicates, both followed back to no noise. The added noise is drawn from
the law itself, so that shape and correlations, also with the noise of the response, are its own.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType

import numpy as np

from ...errors import BadPlan, nearest, raise_all
from ..system import Floats
from .glm import Data, Family, OrdinaryFit, fit_ordinary
from .problem import CorrectionProblem

EXTRAPOLANTS: Mapping[str, int] = MappingProxyType({"linear": 1, "quadratic": 2, "cubic": 3})


@dataclass(frozen=True, slots=True)
class SimexRuns:
    """How much noise is added (times the variance of that released), how often, and the curve back."""

    lambdas: tuple[float, ...] = (0.5, 1.0, 1.5, 2.0)
    replicates: int = 100
    extrapolant: str = "quadratic"

    def __post_init__(self) -> None:
        problems = []
        if self.extrapolant not in EXTRAPOLANTS:
            hint = nearest(str(self.extrapolant), EXTRAPOLANTS)
            problems.append(f"the extrapolant is one of {', '.join(EXTRAPOLANTS)}{hint}")
        elif len(set(self.lambdas)) < EXTRAPOLANTS[self.extrapolant]:
            problems.append(f"a {self.extrapolant} extrapolant needs more lambdas")
        if any(not 0 < value < np.inf for value in self.lambdas):
            problems.append("lambdas are amounts of added noise: give finite numbers above 0")
        if not isinstance(self.replicates, int) or self.replicates < 2:
            problems.append("SIMEX needs at least 2 replicates")
        raise_all(problems, BadPlan)


@dataclass(frozen=True, slots=True)
class ExtrapolatedEstimates:
    """Estimates (coefficients, residual variance) followed back to no noise, and their covariance.

    `path` has the mean estimates at no added noise and at each lambda: what the curve was laid through.
    """

    estimates: Floats
    joint: Floats = field(repr=False)
    path: Floats = field(repr=False)


def follow_back(problem: CorrectionProblem, family: Family, plan: SimexRuns) -> ExtrapolatedEstimates:
    """Simulate at each lambda and extrapolate estimates and covariances to -1: no noise."""
    naive = fit_ordinary(problem.data, family)
    means, spreads = [naive.estimates], [naive.joint]
    starts = [naive.coefficients] * plan.replicates
    for amount in sorted(plan.lambdas):
        fits = [_fit_noisier(problem, family, amount, b, starts[b]) for b in range(plan.replicates)]
        starts = [fitted.coefficients for fitted in fits]
        estimates = np.array([fitted.estimates for fitted in fits])
        means.append(estimates.mean(axis=0))
        between = np.cov(estimates, rowvar=False)
        spreads.append(np.mean([fitted.joint for fitted in fits], axis=0) - between)
    amounts = np.array([0.0, *sorted(plan.lambdas)])
    degree, path = EXTRAPOLANTS[plan.extrapolant], np.array(means)
    joint = back_to_none(amounts, np.array(spreads).reshape(len(amounts), -1), degree)
    width = path.shape[1]
    return ExtrapolatedEstimates(back_to_none(amounts, path, degree), joint.reshape(width, width), path)


def _fit_noisier(
    problem: CorrectionProblem, family: Family, amount: float, replicate: int, start: Floats
) -> OrdinaryFit:
    return fit_ordinary(_noisier(problem, amount, replicate), family, start)


def _noisier(problem: CorrectionProblem, amount: float, replicate: int) -> Data:
    """Add noise to all records; the same draws serve every lambda, so that the path is smooth."""
    assert problem.draw is not None
    data = problem.data
    noise = float(np.sqrt(amount)) * problem.draw(replicate)
    moved = np.einsum("nkq,nq->nk", problem.loadings, noise)
    return replace(data, y=data.y + moved[:, 0], design=data.design + moved[:, 1:])


def back_to_none(amounts: Floats, path: Floats, degree: int) -> Floats:
    """Return polynomials through the path, by least squares, at -1."""
    powers = np.vander(amounts, degree + 1, increasing=True)
    coefficients = np.linalg.lstsq(powers, path, rcond=None)[0]
    return np.asarray(np.power(-1.0, np.arange(degree + 1)) @ coefficients)

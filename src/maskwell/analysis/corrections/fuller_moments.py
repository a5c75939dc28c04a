"""Moment correction of linear models: the covariance of the noise is taken out of the moment matrix (Fuller 1987, 2.2).

With z = x + u and the noise of the response v, E[z(y+v) - cov(u,v)] = E[xy] and E[zz' - cov(u)] = E[xx'], so that the
corrected normal equations are unbiased estimating equations, whatever the laws of x and u. Their sandwich gives the
standard errors. cov(u, v) matters: with Kim's noise on response and predictors the uncorrected slope is right, and
taking out cov(u) alone makes it wrong.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from ...errors import BadPlan
from ..system import Floats
from .glm import check_rank, smallest_share
from .problem import CorrectionProblem, contrast_of

LARGE = 1e-8  # least eigenvalue of corrected correlations: below it the noise is as large as the signal


@dataclass(frozen=True, slots=True)
class MomentEstimates:
    """Coefficients and residual variance, the sandwich of both together, and the corrected moments per record."""

    coefficients: Floats
    variance: float
    joint: Floats = field(repr=False)
    moments: Floats = field(repr=False)

    @property
    def estimates(self) -> Floats:
        """Coefficients and residual variance."""
        return np.append(self.coefficients, self.variance)


def corrected_moments(problem: CorrectionProblem) -> Floats:
    """Return the moments of (response, design) per record without those of the noise."""
    data = problem.data
    both = np.column_stack([data.y - data.offset, data.design])
    total = float(data.weights.sum())
    check_rank(both[:, 1:].T @ (both[:, 1:] * data.weights[:, None]))
    raw = both.T @ (both * data.weights[:, None])
    return np.asarray((raw - problem.noise_moments()) / total)


def solve_moments(problem: CorrectionProblem) -> MomentEstimates:
    """Solve the corrected normal equations, with the sandwich of coefficients and residual variance."""
    moments = corrected_moments(problem)
    gram = moments[1:, 1:]
    if smallest_share(gram) < LARGE:
        raise BadPlan(
            f"the noise of {_and(problem.variables)} is larger than the signal: without it the moments of the "
            "predictors are those of no data; use fit alone, whose covariate model holds them, or fewer predictors"
        )
    beta = np.asarray(np.linalg.solve(gram, moments[1:, 0]), np.float64)
    return _moment_estimates(problem, beta, moments)


def _moment_estimates(problem: CorrectionProblem, beta: Floats, moments: Floats) -> MomentEstimates:
    data, contrast = problem.data, contrast_of(beta)
    count, total = len(problem), float(data.weights.sum())
    free = max(count - len(beta), 1)
    residual = data.y - data.predictor(beta)
    noise = problem.noise_along(contrast)
    scores = data.design * residual[:, None] - noise[:, 1:]
    squares = residual**2 - noise @ contrast
    left = float(contrast @ moments @ contrast)
    influence = np.column_stack([np.linalg.solve(moments[1:, 1:], scores.T).T, squares - left])
    influence *= (data.weights / total)[:, None]
    joint = influence.T @ influence * (count / free)
    return MomentEstimates(beta, left * count / free, joint, moments)


def _and(names: tuple[str, ...]) -> str:
    quoted = [repr(name) for name in names]
    return quoted[0] if len(quoted) == 1 else f"{', '.join(quoted[:-1])} and {quoted[-1]}"

"""How much wider intervals of a linear model become by noise, when the true values are at hand.

The moment-corrected estimate has the score psi = (x + u)(e + d) - E[u d], d = v - u'beta the noise of the residual.
Its variance over fresh residuals and fresh noise, in the sandwich with the true moments, against the ordinary variance
without noise: nothing is approximated but the number of records. For normal noise the fourth moments have a closed
form (Isserlis 1918): var(psi) = (xx' + cov(u)) (s^2 + var d) + cov(u,d) cov(u,d)'. Other noise is drawn.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np

from ..system import Floats
from .fuller_moments import MomentEstimates
from .glm import Data, inverse
from .problem import CorrectionProblem, contrast_of

ENOUGH = 200_000  # drawn scores: their variance is then known to half a percent


@dataclass(frozen=True, slots=True)
class CovariancePair:
    """Covariances of the coefficients without noise and with it, from the same records."""

    ordinary: Floats = field(repr=False)
    noised: Floats = field(repr=False)

    @property
    def ratios(self) -> Floats:
        """How many times wider the interval of each coefficient is."""
        with np.errstate(invalid="ignore"):
            return np.asarray(np.sqrt(np.diag(self.noised) / np.diag(self.ordinary)))


def widened_by_normal(truth: CorrectionProblem, beta: Floats, variance: float) -> CovariancePair:
    """Return both covariances for normal noise; `truth` has the true values and the noise to come."""
    data, contrast = truth.data, contrast_of(beta)
    noise = truth.noise_along(contrast)
    squares = data.weights**2
    spread = squares * (variance + noise @ contrast)
    weighted = replace(truth, data=replace(data, weights=spread))
    meat = data.design.T @ (data.design * spread[:, None]) + weighted.noise_moments()[1:, 1:]
    meat = meat + noise[:, 1:].T @ (noise[:, 1:] * squares[:, None])
    return _sandwiches(data, variance, meat)


def widened_by_draws(
    truth: CorrectionProblem,
    beta: Floats,
    variance: float,
    noisy: Callable[[int], CorrectionProblem],
    seed: int,
) -> CovariancePair:
    """Return both covariances for any noise; `noisy(number)` gives the records as released, fresh noise each time."""
    data, contrast = truth.data, contrast_of(beta)
    width, rng = data.design.shape[1], np.random.default_rng(seed)
    rounds = max(1, -(-ENOUGH // len(truth)))
    meat = np.zeros((width, width))
    for number in range(rounds):
        released = noisy(number)
        moved = released.data.y - data.y
        fresh = data.predictor(beta) + np.sqrt(variance) * rng.standard_normal(len(truth))
        residual = fresh + moved - released.data.predictor(beta)
        noise = released.noise_along(contrast)
        scores = released.data.design * residual[:, None] - noise[:, 1:]
        scores *= data.weights[:, None]
        meat += scores.T @ scores / rounds
    return _sandwiches(data, variance, meat)


def widened_by_release(problem: CorrectionProblem, solved: MomentEstimates) -> CovariancePair:
    """Return both covariances as a release tells them: the sandwich with noise, and what the truth would have given."""
    data, width = problem.data, problem.data.design.shape[1]
    squares = replace(problem, data=replace(data, weights=data.weights**2))
    bread = inverse(solved.moments[1:, 1:]) / float(data.weights.sum())
    raw = data.design.T @ (data.design * data.weights[:, None] ** 2)
    meat = solved.variance * (raw - squares.noise_moments()[1:, 1:])
    return CovariancePair(np.asarray(bread @ meat @ bread), solved.joint[:width, :width])


def _sandwiches(data: Data, variance: float, meat: Floats) -> CovariancePair:
    bread = inverse(data.design.T @ (data.design * data.weights[:, None]))
    plain = variance * data.design.T @ (data.design * data.weights[:, None] ** 2)
    return CovariancePair(np.asarray(bread @ plain @ bread), np.asarray(bread @ meat @ bread))

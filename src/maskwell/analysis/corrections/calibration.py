"""Regression calibration: noised predictors are replaced by their expectation given what was released.

The expectation is linear in the released values and the clean columns, its coefficients from the moments (Carroll,
Ruppert, Stefanski and Crainiceanu 2006, chapter 4): with r the residuals of the released values on the clean columns
and R their covariance, the noise to be expected is cov(u) R^-1 r. For linear models this is the moment correction
again; for others it is an approximation that is good where the noise moves the linear predictor little. Standard
errors by the sandwich of all equations stacked, so that the calibration's own uncertainty is in them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np

from ...errors import BadPlan
from ..system import Floats
from .fuller_moments import LARGE
from .glm import Data, Family, fit_ordinary, smallest_share
from .problem import CorrectionProblem, contrast_of

STEP = 1e-2  # of numerical derivatives, in standard errors of each parameter


@dataclass(frozen=True, slots=True)
class RegressionCalibration:
    """What the noise is expected to be: clean columns, variables that the design uses, and the fitted moments."""

    clean: Floats = field(repr=False)
    used: tuple[int, ...]
    coefficients: Floats
    spread: Floats

    @property
    def flat(self) -> Floats:
        """The parameters in a row: coefficients, then the upper triangle of the residual covariance."""
        return np.append(self.coefficients.ravel(), self.spread[np.triu_indices(len(self.spread))])

    def with_flat(self, flat: Floats) -> RegressionCalibration:
        """Return the calibration at other values of its parameters."""
        size, width = self.coefficients.size, len(self.spread)
        spread = np.zeros((width, width))
        spread[np.triu_indices(width)] = flat[size:]
        spread = spread + np.triu(spread, 1).T
        return replace(self, coefficients=flat[:size].reshape(self.coefficients.shape), spread=spread)

    def residuals(self, problem: CorrectionProblem) -> Floats:
        """Return the released values of the used variables less what clean columns say of them."""
        return np.asarray(problem.values[:, self.used] - self.clean @ self.coefficients)

    def influence(self, problem: CorrectionProblem) -> Floats:
        """Return how each record moved the parameters."""
        weights, residuals = problem.data.weights, self.residuals(problem)
        gram = self.clean.T @ (self.clean * weights[:, None])
        turned = np.linalg.solve(gram, (self.clean * weights[:, None]).T).T
        first = (turned[:, :, None] * residuals[:, None, :]).reshape(len(residuals), -1)
        rows, columns = np.triu_indices(len(self.spread))
        second = residuals[:, rows] * residuals[:, columns] - self.spread[rows, columns]
        return np.column_stack([first, second * (weights / weights.sum())[:, None]])


def calibrate(problem: CorrectionProblem) -> RegressionCalibration:
    """Regress the noised predictors on the clean columns and keep the covariance of what is left."""
    moves = np.abs(problem.loadings).max(axis=0) > 0
    used = tuple(int(j) for j in np.flatnonzero(moves[1:].any(axis=0)))
    clean, weights = _clean_columns(problem, moves), problem.data.weights
    values = problem.values[:, used]
    gram = clean.T @ (clean * weights[:, None])
    coefficients: Floats = np.asarray(
        np.linalg.solve(gram, clean.T @ (values * weights[:, None])), np.float64
    )
    residuals = values - clean @ coefficients
    spread = residuals.T @ (residuals * weights[:, None]) / weights.sum()
    if used and smallest_share(spread - problem.covariance[np.ix_(used, used)]) < LARGE:
        raise BadPlan(
            f"the noise of {', '.join(repr(problem.variables[j]) for j in used)} is larger than the signal: nothing of "
            "the released values is left to calibrate by; use fit alone, or fewer predictors"
        )
    return RegressionCalibration(clean, used, coefficients, spread)


def _clean_columns(problem: CorrectionProblem, moves: Floats) -> Floats:
    """Return the constant, the clean columns of the design and what noised ones are multiplied by, none twice."""
    from scipy.linalg import qr

    design, count = problem.data.design, len(problem)
    parts = [np.ones((count, 1)), design[:, ~moves[1:].any(axis=1)]]
    loadings = problem.loadings[:, 1:].reshape(count, -1)
    varies = (loadings != loadings[0]).any(axis=0)
    clean = np.column_stack([*parts, loadings[:, varies]])
    sizes = np.sqrt((clean**2).mean(axis=0))
    clean = clean[:, sizes > 0] / sizes[sizes > 0]
    clean[:, 1:] *= 0.5  # so that the pivots begin with the constant
    triangle, order = qr(clean, mode="r", pivoting=True)
    kept = np.abs(np.diag(triangle)) > 1e-9 * abs(triangle[0, 0])
    return np.asarray(clean[:, np.sort(order[: len(kept)][kept])])


@dataclass(frozen=True, slots=True)
class CalibratedEstimates:
    """Estimates of a calibrated fit, coefficients then residual variance, with their stacked sandwich."""

    estimates: Floats
    joint: Floats = field(repr=False)
    attenuation: tuple[float, ...] = ()


def solve_calibrated(problem: CorrectionProblem, family: Family) -> CalibratedEstimates:
    """Fit the model to the calibrated columns."""
    calibration = calibrate(problem)
    data = _calibrated_data(problem, calibration)
    fitted = fit_ordinary(data, family)
    beta, count = fitted.coefficients, len(problem)
    left = 1.0
    if family.has_scale:
        left = float(data.weights @ _squares(problem, calibration, data, beta)) / float(data.weights.sum())
    theta = np.append(beta, left)
    joint = _stacked_sandwich(problem, family, calibration, theta, np.sqrt(np.diag(fitted.joint)))
    free = max(count - len(beta), 1)
    if family.has_scale:
        theta[-1] *= count / free
    noise = np.diag(problem.covariance)[list(calibration.used)]
    kept = tuple(map(float, 1 - noise / np.diag(calibration.spread)))
    return CalibratedEstimates(theta, joint * (count / free), kept)


def _calibrated_data(problem: CorrectionProblem, calibration: RegressionCalibration) -> Data:
    """Take the noise to be expected off response and design."""
    data, used = problem.data, list(calibration.used)
    if not used:
        return data
    gain = np.linalg.solve(calibration.spread, problem.covariance[used])
    expected = calibration.residuals(problem) @ gain
    moved = np.einsum("nkq,nq->nk", problem.loadings, expected)
    return replace(data, y=data.y - moved[:, 0], design=data.design - moved[:, 1:])


def _squares(
    problem: CorrectionProblem, calibration: RegressionCalibration, data: Data, beta: Floats
) -> Floats:
    """Return squared residuals less what the noise that could not be expected adds to them."""
    used, noise = list(calibration.used), problem.covariance
    rest = noise
    if used:
        rest = noise - noise[:, used] @ np.linalg.solve(calibration.spread, noise[used])
    along = np.einsum("nkq,k->nq", problem.loadings, contrast_of(beta))
    return np.asarray((data.y - data.predictor(beta)) ** 2 - np.einsum("nq,qr,nr->n", along, rest, along))


def _stacked_sandwich(
    problem: CorrectionProblem,
    family: Family,
    calibration: RegressionCalibration,
    theta: Floats,
    errors: Floats,
) -> Floats:
    """Return the covariance of the estimates, that of the calibration carried along."""

    def contributions(values: Floats, nuisance: Floats) -> Floats:
        here = calibration.with_flat(nuisance)
        data = _calibrated_data(problem, here)
        beta = values[:-1]
        scores = data.design * family.score(data.y, data.predictor(beta))[:, None]
        last = np.zeros(len(problem))
        if family.has_scale:
            last = _squares(problem, here, data, beta) - values[-1]
        return np.column_stack([scores, last]) * data.weights[:, None]

    own, nuisance = contributions(theta, calibration.flat), calibration.flat
    bread = -slopes(lambda values: contributions(values, nuisance).sum(axis=0), theta, errors)
    if not family.has_scale:
        bread[-1, -1] = 1.0
    if calibration.used:
        moved = calibration.influence(problem)
        sizes = np.sqrt((moved**2).sum(axis=0))
        own = own + moved @ slopes(lambda values: contributions(theta, values).sum(axis=0), nuisance, sizes).T
    influence = np.linalg.solve(bread, own.T).T
    return np.asarray(influence.T @ influence)


def slopes(function: Callable[[Floats], Floats], at: Floats, sizes: Floats) -> Floats:
    """Return the derivatives of a function of several numbers, by differences on both sides."""
    out = []
    for j, size in enumerate(sizes):
        step = STEP * float(size) if size > 0 else 1e-6
        there = [at.copy(), at.copy()]
        there[0][j] += step
        there[1][j] -= step
        out.append((function(there[0]) - function(there[1])) / (there[0][j] - there[1][j]))
    return np.array(out).T

"""Ordinary fits, which take values for what they are: a row for each parameter, estimate and error.

They are made of the original file and, unadjusted, of the released one.
"""

from __future__ import annotations

import numpy as np

from ...table import Floats

MOST = 1e4  # the largest ratio of the variance between groups to that within them that is looked for
STEPS, NEAR = 50, 1e-10  # of Newton's method


def least_squares(x: Floats, y: Floats) -> Floats:
    """Fit a linear model; the last row is the residual variance."""
    coefficients, variance, errors = _weighted_fit(x.T @ x, x.T @ y, float(y @ y), len(y))
    own = variance * np.sqrt(2 / (len(y) - x.shape[1]))
    return np.column_stack([np.append(coefficients, variance), np.append(errors, own)])


def _weighted_fit(xx: Floats, xy: Floats, yy: float, records: int) -> tuple[Floats, float, Floats]:
    """Return coefficients, residual variance and errors, given weighted sums of squares and products."""
    inverse = np.linalg.inv(xx)
    coefficients = inverse @ xy
    variance = (yy - float(xy @ coefficients)) / (records - len(xx))
    return coefficients, variance, np.sqrt(variance * np.diag(inverse))


def random_intercepts(x: Floats, y: Floats, groups: Floats) -> Floats:
    """Fit a linear model with an intercept for every group (REML); the last rows are the variances u and e.

    The variances have no errors here (nan): those of a likelihood are not what the paper's chains give.
    """
    from scipy.optimize import minimize_scalar

    sums = _Sums(x, y, groups)
    best = minimize_scalar(
        lambda log_ratio: sums.deviance(float(np.exp(log_ratio))),
        bounds=(-12.0, float(np.log(MOST))),
        method="bounded",
        options={"xatol": 1e-8},
    )
    ratio = float(np.exp(best.x))
    coefficients, variance, errors = sums.fitted(ratio)
    values = [*coefficients, ratio * variance, variance]
    return np.column_stack([values, [*errors, np.nan, np.nan]])


class _Sums:
    """What the likelihood needs of the records: sums of squares and products, of all and of the sums of the groups."""

    def __init__(self, x: Floats, y: Floats, groups: Floats) -> None:
        _, codes = np.unique(groups, return_inverse=True)
        both = np.column_stack([x, y])
        self.products, self.records = both.T @ both, len(y)
        self.sizes = np.bincount(codes).astype(np.float64)
        self.totals = np.column_stack([np.bincount(codes, weights=column) for column in both.T])

    def _weighted_products(self, ratio: float) -> Floats:
        """Return the products weighted by the inverse covariance: I - ratio / (1 + ratio n) 1 1' in each group."""
        weights = ratio / (1 + ratio * self.sizes)
        return np.asarray(self.products - (self.totals * weights[:, None]).T @ self.totals)

    def fitted(self, ratio: float) -> tuple[Floats, float, Floats]:
        """Return coefficients, residual variance and errors where the ratio of the variances is known."""
        products = self._weighted_products(ratio)
        return _weighted_fit(products[:-1, :-1], products[:-1, -1], float(products[-1, -1]), self.records)

    def deviance(self, ratio: float) -> float:
        """Return -2 log restricted likelihood, without what does not depend on the ratio."""
        products = self._weighted_products(ratio)
        _, variance, _ = self.fitted(ratio)
        free = self.records - len(products) + 1
        spread = float(np.log1p(ratio * self.sizes).sum()) + float(np.linalg.slogdet(products[:-1, :-1])[1])
        return free * float(np.log(variance)) + spread


def logistic(x: Floats, y: Floats) -> Floats:
    """Fit a logistic model by its score equations, X'(y - p) = 0; they have a solution for responses with noise too."""
    coefficients = np.zeros(x.shape[1])
    for _ in range(STEPS):
        p = 1 / (1 + np.exp(-np.clip(x @ coefficients, -30, 30)))
        information = (x * (p * (1 - p))[:, None]).T @ x
        step = np.linalg.solve(information, x.T @ (y - p))
        coefficients = coefficients + step
        if float(np.abs(step).max()) < NEAR:
            break
    return np.column_stack([coefficients, np.sqrt(np.diag(np.linalg.inv(information)))])

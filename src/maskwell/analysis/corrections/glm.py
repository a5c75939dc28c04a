"""Ordinary fits of generalised linear models to columns taken at their word: least squares and Newton's steps.

beta <- beta + I(beta)^-1 s(beta), I the expected information (Fisher's scoring; McCullagh and Nelder 1989, section
2.5), halved where it leads down. Covariances: the inverse of the observed information, and the sandwich (White 1980).
Every correction ends in such a fit, and the unadjusted estimates beside it are one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

import numpy as np

from ...errors import BadPlan, nearest
from ..system import Floats

FORECASTS = "forecasts"
MOST_STEPS, CLOSE = 60, 1e-10  # of scoring; change of the log likelihood that ends it
FLAT = 1e-12  # a design whose correlations have such a small eigenvalue is collinear
FAR = 30.0  # a linear predictor beyond this is a probability of 0 or 1: the groups are separated


@dataclass(frozen=True, slots=True)
class Family:
    """A law of the response by its mean: mean, its slope and the variance, at each linear predictor."""

    name: str
    mean: Callable[[Floats], Floats]
    slope: Callable[[Floats], Floats]
    variance: Callable[[Floats], Floats]
    curvature: Callable[[Floats], Floats]

    @property
    def has_scale(self) -> bool:
        """Whether the residual variance is a parameter."""
        return self.name == "gaussian"

    def score(self, y: Floats, eta: Floats) -> Floats:
        """Return the derivative of each record's log likelihood by its linear predictor (unit scale)."""
        return np.asarray((y - self.mean(eta)) * self.slope(eta) / self.variance(eta))

    def expected(self, eta: Floats) -> Floats:
        """Return the expected information of each record on its linear predictor (unit scale)."""
        return np.asarray(self.slope(eta) ** 2 / self.variance(eta))

    def observed(self, y: Floats, eta: Floats) -> Floats:
        """Return minus the second derivative of each record's log likelihood (unit scale)."""
        slope, variance = self.slope(eta), self.variance(eta)
        change = self.curvature(eta) / variance - slope * self._variance_slope(eta) / variance**2
        return np.asarray(slope**2 / variance - (y - self.mean(eta)) * change)

    def _variance_slope(self, eta: Floats) -> Floats:
        if self.name == "gaussian":
            return np.zeros_like(eta)
        slope = self.slope(eta)
        return slope if self.name == "poisson" else np.asarray((1 - 2 * self.mean(eta)) * slope)


def _logistic(eta: Floats) -> Floats:
    return np.asarray(0.5 * (1.0 + np.tanh(eta / 2)))


def _logistic_slope(eta: Floats) -> Floats:
    mean = _logistic(eta)
    return np.asarray(mean * (1 - mean))


def _normal_mean(eta: Floats) -> Floats:
    from scipy.special import ndtr

    return np.asarray(ndtr(eta))


def _normal_slope(eta: Floats) -> Floats:
    return np.asarray(np.exp(-(eta**2) / 2) / np.sqrt(2 * np.pi))


def _normal_variance(eta: Floats) -> Floats:
    return np.maximum(_normal_mean(eta) * _normal_mean(-eta), 1e-300)


FAMILIES: Mapping[str, Family] = MappingProxyType(
    {
        "gaussian": Family("gaussian", lambda eta: eta, np.ones_like, np.ones_like, np.zeros_like),
        "logit": Family(
            "logit",
            _logistic,
            _logistic_slope,
            lambda eta: np.maximum(_logistic_slope(eta), 1e-300),
            lambda eta: _logistic_slope(eta) * (1 - 2 * _logistic(eta)),
        ),
        "probit": Family(
            "probit", _normal_mean, _normal_slope, _normal_variance, lambda eta: -eta * _normal_slope(eta)
        ),
        "poisson": Family("poisson", np.exp, np.exp, np.exp, np.exp),
    }
)


def family_of(name: str, asker: str = "the corrections") -> Family:
    """Return a family by its name, as for `fit` ("binary" is "logit"); refuse those that the asker does not know."""
    from ..model_fit import LINKS, SYNONYMS

    known = ("gaussian", "binary", *list(FAMILIES)[1:])
    if not isinstance(name, str):
        raise BadPlan(f"family must be one of {', '.join(known)}")
    family = " ".join(name.casefold().replace("_", " ").replace("-", " ").split())
    family = SYNONYMS.get(family, family)
    family = "logit" if family == "binary" else family
    if family not in FAMILIES:
        near = "" if family in LINKS else nearest(family, (*known, *SYNONYMS))
        others = "" if asker == FORECASTS else "; for others use fit alone"
        raise BadPlan(
            f"family {name!r} is none that {asker} know{near}: these are {', '.join(known)}{others}"
        )
    return FAMILIES[family]


def check_linear(name: str, asker: str, otherwise: str) -> None:
    """Refuse a family that is not gaussian, where moments are all there is."""
    if name != "gaussian" and family_of(name).name != "gaussian":
        raise BadPlan(f"{asker} is for gaussian models, not for family {name!r}: {otherwise}")


@dataclass(frozen=True, slots=True)
class OrdinaryFit:
    """An ordinary fit: coefficients, the residual variance (1 without a scale) and two covariances of coefficients.

    `covariance` trusts the model (the inverse of the observed information), `sandwich` only its mean (White, HC1);
    `joint` is the sandwich of coefficients and residual variance together.
    """

    coefficients: Floats
    variance: float
    covariance: Floats = field(repr=False)
    joint: Floats = field(repr=False)

    @property
    def sandwich(self) -> Floats:
        """The covariance of the coefficients that holds whatever the variances of the records are."""
        p = len(self.coefficients)
        return self.joint[:p, :p]

    @property
    def estimates(self) -> Floats:
        """Coefficients and residual variance."""
        return np.append(self.coefficients, self.variance)


@dataclass(frozen=True, slots=True)
class Data:
    """A response, its design, the weights of the records, and what is added to the linear predictor."""

    y: Floats
    design: Floats
    weights: Floats
    offset: Floats | float = 0.0

    def predictor(self, coefficients: Floats) -> Floats:
        """Return the linear predictor of each record."""
        return np.asarray(self.design @ coefficients + self.offset)


def fit_ordinary(data: Data, family: Family, start: Floats | None = None) -> OrdinaryFit:
    """Fit by weighted maximum likelihood: one step for least squares, else Newton's steps by expected information."""
    if family.has_scale:
        gram = _gram(data.design, data.weights)
        coefficients = solve(gram, data.design.T @ (data.weights * (data.y - data.offset)))
    else:
        coefficients = _newton(data, family, start)
    return _ordinary_fit(data, family, coefficients)


def _newton(data: Data, family: Family, start: Floats | None) -> Floats:
    """Climb by Fisher's scoring, halving steps that lead down."""
    beta = _first(data, family) if start is None else start.copy()
    height = log_likelihood(data, family, beta)
    for _ in range(MOST_STEPS):
        _check_separation(data, family, beta)
        eta = data.predictor(beta)
        score = data.design.T @ (data.weights * family.score(data.y, eta))
        step = solve(_gram(data.design, data.weights * family.expected(eta)), score)
        gain = float(score @ step)
        while True:
            reached = log_likelihood(data, family, beta + step)
            if reached >= height - 1e-9 * abs(height) or float(np.abs(step).max()) < CLOSE:
                break
            step = step / 2
        beta, height = beta + step, reached
        if gain < CLOSE:
            return beta
    raise BadPlan(
        "the ordinary fit did not converge: leave a predictor out, or use fit alone with its priors"
    )


def _first(data: Data, family: Family) -> Floats:
    """Return a start: least squares on a linear version of the response."""
    mean = float(np.average(data.y, weights=data.weights))
    if family.name == "poisson":
        target = np.log(data.y + 0.5) - data.offset
    else:
        target = (data.y - mean) / max(mean * (1 - mean), 1e-9) - data.offset
    return solve(_gram(data.design, data.weights), data.design.T @ (data.weights * target)) * (
        1.0 if family.name == "poisson" else 0.5
    )


def _check_separation(data: Data, family: Family, beta: Floats) -> None:
    if family.name == "poisson":
        return
    eta = data.predictor(beta)
    sure = np.where(data.y > 0.5, eta, -eta) > 0
    if float(np.abs(eta).max()) > FAR or bool(sure.all()):
        raise BadPlan(
            "the predictors separate the two values of the response, so that no finite coefficients fit best: "
            "leave a predictor out, or use fit alone, whose priors hold them"
        )


def log_likelihood(data: Data, family: Family, beta: Floats) -> float:
    """Return the weighted log likelihood, up to a constant of the response."""
    eta = data.predictor(beta)
    return float(data.weights @ log_density(family, data.y, eta))


def log_density(family: Family, y: Floats, eta: Floats, variance: float = 1.0) -> Floats:
    """Return the log density of each response, up to what does not depend on the linear predictor."""
    if family.name == "gaussian":
        return np.asarray(-((y - eta) ** 2) / (2 * variance))
    if family.name == "poisson":
        with np.errstate(over="ignore"):
            return np.asarray(y * eta - np.exp(eta))
    if family.name == "logit":
        return np.asarray(y * eta - np.logaddexp(0.0, eta))
    from scipy.special import log_ndtr

    return np.asarray(log_ndtr(np.where(y > 0.5, eta, -eta)))


def _ordinary_fit(data: Data, family: Family, beta: Floats) -> OrdinaryFit:
    """Add covariances: from the observed information, and the sandwich of the score and the residual variance."""
    eta, count = data.predictor(beta), len(data.y)
    free = max(count - len(beta), 1)
    residual = data.y - eta
    total = float(data.weights.sum())
    spread = float(data.weights @ residual**2) / total * count / free if family.has_scale else 1.0
    bread = inverse(_gram(data.design, data.weights * family.observed(data.y, eta)))
    scores = data.design * (data.weights * family.score(data.y, eta))[:, None]
    influence = scores @ bread
    if family.has_scale:
        about = data.weights * (residual**2 - spread * free / count) / total
        influence = np.column_stack([influence, about])
    else:
        influence = np.column_stack([influence, np.zeros(count)])
    joint = influence.T @ influence * (count / free)
    return OrdinaryFit(beta, spread, bread * spread, joint)


def _gram(design: Floats, weights: Floats) -> Floats:
    return np.asarray(design.T @ (design * weights[:, None]))


def solve(matrix: Floats, right: Floats) -> Floats:
    """Solve with a symmetric matrix, refusing one that is singular."""
    check_rank(matrix)
    return np.asarray(np.linalg.solve(matrix, right))


def inverse(matrix: Floats) -> Floats:
    """Return the inverse of a symmetric matrix, refusing one that is singular."""
    check_rank(matrix)
    turned = np.linalg.inv(matrix)
    return np.asarray((turned + turned.T) / 2)


def check_rank(matrix: Floats) -> None:
    """Refuse a moment matrix whose columns determine each other."""
    scale = np.sqrt(np.abs(np.diag(matrix)))
    if (scale == 0).any() or smallest_share(matrix) < FLAT:
        raise BadPlan(
            "a predictor is constant or determined by the others, so that its coefficient cannot be told: leave it out"
        )


def smallest_share(matrix: Floats) -> float:
    """Return the smallest eigenvalue of the correlations that a moment matrix gives (negative: no moments at all)."""
    scale = np.sqrt(np.abs(np.diag(matrix)))
    scale = np.where(scale > 0, scale, 1.0)
    return float(np.linalg.eigvalsh(matrix / np.outer(scale, scale))[0])

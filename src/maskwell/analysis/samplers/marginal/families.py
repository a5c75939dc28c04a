"""The likelihood of a response given normal linear predictors, by family, and how finely it must be integrated.

log E p(y | eta), eta ~ N(mean, variance): closed for gaussian and probit, else Gauss-Hermite sums
(`kernels.marginal_likelihood`; Liu and Pierce 1994 for counts). The fewest pairs of nodes are taken whose total log
likelihood agrees with that of 96 nodes, at these variances and at WIDER ones. Used by `posterior`.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np

from ...system import GAUSSIAN, LOGIT, NEGATIVE_BINOMIAL, POISSON, PROBIT, Floats

SUPPORTED = (GAUSSIAN, PROBIT, LOGIT, POISSON, NEGATIVE_BINOMIAL)
INTEGRATED = (LOGIT, POISSON, NEGATIVE_BINOMIAL)
NODE_PAIRS = (2, 3, 4, 5, 6, 8, 10, 12, 16, 20, 24, 32)  # pairs of nodes that are tried, the fewest first
FINEST = 48  # pairs of nodes: what the others are held against
WIDER = 1.3  # times the variances: errors of opposite signs do not cancel at both


class Slopes(NamedTuple):
    """A log likelihood with its derivatives: by each record's mean and variance, and by the log of sigma or shape."""

    total: float
    mean: Floats
    variance: Floats
    extra: float


@lru_cache
def rule(pairs: int) -> tuple[Floats, Floats]:
    """Return the positive nodes of a Gauss-Hermite rule for the standard normal law, and their weights."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(2 * pairs)
    return nodes[pairs:].copy(), weights[pairs:] / weights.sum()


def has_extra(family: int) -> bool:
    """Whether a family has a parameter beside its coefficients: sigma, or shape."""
    return family in (GAUSSIAN, NEGATIVE_BINOMIAL)


class ResponseLikelihood:
    """The log likelihood of one response, integrated with a number of pairs of nodes."""

    def __init__(self, family: int, response: Floats, pairs: int = NODE_PAIRS[0]) -> None:
        self.family, self.pairs = family, pairs
        self.response = response
        self.signs = 2.0 * response - 1.0
        counts = response if family == NEGATIVE_BINOMIAL else response[:0]
        self.levels, self.level_counts = np.unique(counts, return_counts=True)

    def total(self, mean: Floats, variance: Floats, extra: float) -> float:
        """Return the log likelihood; `extra` is the log of sigma or of the shape."""
        from ....kernels import marginal_likelihood

        match self.family:
            case f if f == GAUSSIAN:
                whole, error = variance + np.exp(2.0 * extra), self.response - mean
                return float(-0.5 * np.log(whole).sum() - 0.5 * (error**2 / whole).sum())
            case f if f == PROBIT:
                return float(marginal_likelihood.probit_total(self.signs, mean, variance))
            case f if f == LOGIT:
                return float(marginal_likelihood.logit_total(self.signs, mean, variance, *rule(self.pairs)))
            case f if f == POISSON:
                return float(
                    marginal_likelihood.count_total(self.response, 0.0, (mean, variance), rule(self.pairs))
                )
            case _:
                shape = float(np.exp(extra))
                moments = mean - extra, variance
                inside = marginal_likelihood.count_total(self.response, shape, moments, rule(self.pairs))
                return float(inside) + self._constant(shape)[0]

    def slopes(self, mean: Floats, variance: Floats, extra: float) -> Slopes:
        """Return the log likelihood and its derivatives."""
        from ....kernels import marginal_likelihood

        out = np.empty(len(mean)), np.empty(len(mean))
        moments = mean, variance
        match self.family:
            case f if f == GAUSSIAN:
                return self._gaussian_slopes(mean, variance, extra)
            case f if f == PROBIT:
                return Slopes(float(marginal_likelihood.probit_slopes(self.signs, moments, out)), *out, 0.0)
            case f if f == LOGIT:
                total = marginal_likelihood.logit_slopes(self.signs, moments, rule(self.pairs), out)
                return Slopes(float(total), *out, 0.0)
            case f if f == POISSON:
                total, _ = marginal_likelihood.count_slopes(
                    self.response, 0.0, moments, rule(self.pairs), out
                )
                return Slopes(float(total), *out, 0.0)
            case _:
                shape, moments = float(np.exp(extra)), (mean - extra, variance)
                total, by_shape = marginal_likelihood.count_slopes(
                    self.response, shape, moments, rule(self.pairs), out
                )
                constant, its_slope = self._constant(shape)
                return Slopes(float(total) + constant, *out, shape * (float(by_shape) + its_slope))

    def _gaussian_slopes(self, mean: Floats, variance: Floats, extra: float) -> Slopes:
        own = np.exp(2.0 * extra)
        precision, error = 1.0 / (variance + own), self.response - mean
        by_mean = error * precision
        by_variance = 0.5 * (by_mean**2 - precision)
        total = 0.5 * np.log(precision).sum() - 0.5 * (error * by_mean).sum()
        return Slopes(float(total), by_mean, by_variance, float(2.0 * own * by_variance.sum()))

    def _constant(self, shape: float) -> tuple[float, float]:
        """Return the sum of log gamma(y + shape) / gamma(shape), and its slope."""
        from scipy.special import digamma, gammaln

        each = gammaln(self.levels + shape) - gammaln(shape)
        slope = digamma(self.levels + shape) - digamma(shape)
        return float(self.level_counts @ each), float(self.level_counts @ slope)


def fine_enough(
    family: ResponseLikelihood, mean: Floats, variance: Floats, extra: float, tolerance: float
) -> float:
    """Choose the fewest nodes whose log likelihood is within `tolerance` of that with 96; return the difference.

    It has to be so with the variances given and with larger ones, lest errors of opposite signs just cancel.
    """
    if family.family not in INTEGRATED:
        return 0.0
    wider, error = (variance, WIDER * variance), 0.0
    family.pairs = FINEST
    best = [family.total(mean, own, extra) for own in wider]
    for pairs in NODE_PAIRS:
        family.pairs = pairs
        found = [family.total(mean, own, extra) for own in wider]
        error = max(abs(one - other) for one, other in zip(found, best, strict=True))
        if error < tolerance:
            break
    return error

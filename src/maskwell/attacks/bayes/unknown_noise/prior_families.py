"""Priors of single unknowns, on the log of their value: density, and nodes to integrate over them.

Inverse gamma on the sd and gamma on the variance are powers of a gamma variable, psi = scale (G / shape)^power, so that
log psi has mean log scale + power (digamma(shape) - log shape) and sd |power| sqrt(trigamma(shape)). Nodes are Gauss
and Hermite's for a normal log psi of that mean and sd, reweighted by the density (Naylor and Smith 1982). Resolved by
`priors`; `quadrature_nodes` decides how many nodes.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any, Protocol, runtime_checkable

import numpy as np

from ....table import Floats

LARGE = 1e4  # from this shape on Stirling's series is more exact than the difference of large logs
LEAST = 1e-300  # a quantile that underflows; sds are above 0
TAIL = 1e-13  # share of a prior beyond its first and its last cut
SHARES = (TAIL, 1e-4)  # where a prior is cut into panels, and alike from above


class ResolvedPrior(Protocol):
    """The prior of one unknown psi > 0."""

    @property
    def centre(self) -> float:
        """The mean of log psi."""

    @property
    def spread(self) -> float:
        """The sd of log psi."""

    def log_density(self, log_value: Floats) -> Floats:
        """Return the log density of log psi (not of psi)."""

    def cuts(self) -> tuple[Floats, float]:
        """Return values of log psi, rising, between which nearly all of it lies, and the largest that can be."""

    def nodes(self, count: int) -> tuple[Floats, Floats]:
        """Return values of psi and the logs of their weights, which sum to 1."""


@cache
def hermite(count: int) -> tuple[Floats, Floats]:
    """Return the nodes of Gauss and Hermite for the standard normal and the logs of their weights."""
    from scipy.special import roots_hermitenorm

    nodes, weights = roots_hermitenorm(count)
    return np.asarray(nodes), np.asarray(np.log(weights) - np.log(2 * np.pi) / 2)


def reweighted_nodes(belief: ResolvedPrior, count: int) -> tuple[Floats, Floats]:
    """Return nodes as for a normal log psi, their weights corrected by the density.

    More nodes lie both closer and farther out, so that wide priors and values far from what was expected are reached.
    """
    standard, logs = hermite(count)
    log_values = belief.centre + belief.spread * standard
    logs = logs + standard**2 / 2 + belief.log_density(log_values)
    return np.exp(log_values), logs - np.logaddexp.reduce(logs)


@dataclass(frozen=True, slots=True)
class GammaPower:
    """psi = scale (G / shape)^power, G gamma of that shape: a gamma or an inverse gamma on the sd or the variance."""

    shape: float
    scale: float
    power: float

    @property
    def centre(self) -> float:
        """The mean of log psi."""
        from scipy.special import digamma

        return float(np.log(self.scale) + self.power * (digamma(self.shape) - np.log(self.shape)))

    @property
    def spread(self) -> float:
        """The sd of log psi."""
        from scipy.special import polygamma

        return float(abs(self.power) * np.sqrt(polygamma(1, self.shape)))

    def log_density(self, log_value: Floats) -> Floats:
        """Return the log density of log psi, exact also for large shapes."""
        log_gamma = (log_value - np.log(self.scale)) / self.power
        with np.errstate(over="ignore"):
            kernel = -self.shape * (np.expm1(log_gamma) - log_gamma)
        return np.asarray(kernel + _log_peak(self.shape) - np.log(abs(self.power)))

    def cuts(self) -> tuple[Floats, float]:
        """Return quantiles of log psi."""
        from scipy.special import gammainccinv, gammaincinv

        if self.shape > LARGE:
            return _normal_cuts(self), np.inf
        ends = [inverse(self.shape, SHARES) for inverse in (gammaincinv, gammainccinv)]
        with np.errstate(divide="ignore"):
            logs = np.log(np.concatenate([*ends, gammaincinv(self.shape, [0.5])]) / self.shape)
        return np.unique(np.log(self.scale) + self.power * np.maximum(logs, np.log(LEAST))), np.inf

    def nodes(self, count: int) -> tuple[Floats, Floats]:
        """Return values of psi and the logs of their weights."""
        return reweighted_nodes(self, count)


def _normal_cuts(belief: ResolvedPrior) -> Floats:
    """Return quantiles of a normal log psi."""
    from scipy.special import ndtri

    steps = np.concatenate([ndtri(SHARES), [0.0], -ndtri(SHARES)[::-1]])
    return np.asarray(belief.centre + belief.spread * steps)


def _log_peak(shape: float) -> float:
    """Return shape log shape - shape - log Gamma(shape)."""
    from scipy.special import gammaln

    if shape > LARGE:
        return float(np.log(shape / (2 * np.pi)) / 2 - 1 / (12 * shape))
    return float(shape * np.log(shape) - shape - gammaln(shape))


@dataclass(frozen=True, slots=True)
class LogNormal:
    """log psi is normal."""

    centre: float
    spread: float

    def log_density(self, log_value: Floats) -> Floats:
        """Return the log density of log psi."""
        away = (log_value - self.centre) / self.spread
        return np.asarray(-(away**2) / 2 - np.log(self.spread) - np.log(2 * np.pi) / 2)

    def cuts(self) -> tuple[Floats, float]:
        """Return quantiles of log psi."""
        return _normal_cuts(self), np.inf

    def nodes(self, count: int) -> tuple[Floats, Floats]:
        """Return values of psi and the logs of their weights."""
        standard, logs = hermite(count)
        return np.exp(self.centre + self.spread * standard), logs


@runtime_checkable
class Distribution(Protocol):
    """A distribution of the user's own, such as scipy's."""

    def logpdf(self, x: Any) -> Any:
        """Return the log density at some values."""

    def ppf(self, q: Any) -> Any:
        """Return the values below which some shares lie."""


@runtime_checkable
class UpperTail(Protocol):
    """What a distribution has that tells its upper tail by itself."""

    def isf(self, q: Any) -> Any:
        """Return the values above which some shares lie."""


@dataclass(frozen=True, slots=True)
class Own:
    """A distribution of the user's own, with `logpdf` and `ppf` (and `isf` for its upper tail, if it has one).

    Nodes are its quantiles where a standard normal has those of Gauss and Hermite: right also for densities with edges.
    """

    law: Distribution

    @property
    def centre(self) -> float:
        """The mean of log psi."""
        values, logs = self.nodes(65)
        return float(np.exp(logs) @ np.log(values))

    @property
    def spread(self) -> float:
        """The sd of log psi."""
        values, logs = self.nodes(65)
        return float(np.sqrt(np.exp(logs) @ (np.log(values) - self.centre) ** 2))

    def log_density(self, log_value: Floats) -> Floats:
        """Return the log density of log psi."""
        with np.errstate(divide="ignore", over="ignore"):
            return np.asarray(self.law.logpdf(np.exp(log_value)) + log_value, dtype=np.float64)

    def cuts(self) -> tuple[Floats, float]:
        """Return quantiles of log psi, and its edges where the density has any."""
        low, high, shares = float(self.law.ppf(0.0)), float(self.law.ppf(1.0)), np.array(SHARES)
        inner = np.concatenate([self.law.ppf(shares), [self.law.ppf(0.5)], self._above(shares)])
        cuts = np.append(
            inner[(inner > LEAST) & (inner < np.inf)], [end for end in (low, high) if 0 < end < np.inf]
        )
        return np.unique(np.log(cuts)), float(np.log(high))

    def _above(self, shares: Floats) -> Floats:
        """Return the values that such shares lie above."""
        if isinstance(self.law, UpperTail):
            return np.asarray(self.law.isf(shares), dtype=np.float64)
        return np.asarray(self.law.ppf(1.0 - np.maximum(shares, 2**-53)), dtype=np.float64)

    def nodes(self, count: int) -> tuple[Floats, Floats]:
        """Return values of psi and the logs of their weights."""
        from scipy.special import ndtr

        standard, logs = hermite(count)
        low, high = ndtr(np.minimum(standard, 0.0)), ndtr(-np.maximum(standard, 0.0))
        values = np.where(standard <= 0, self.law.ppf(low), self._above(high))
        return np.maximum(np.asarray(values, dtype=np.float64), LEAST), logs

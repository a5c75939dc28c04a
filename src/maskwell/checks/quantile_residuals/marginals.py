"""The distribution function of one column's noise, both tails with relative precision.

G(t) = P(noise <= t) and S(t) = 1 - G(t) of the noise before its size k(x) and centre c(x): a released value has
probability G(b) - G(a) with a = (lower - c) / k, b = (upper - c) / k (Dunn and Smyth 1996, randomised quantile
residuals). An upper tail is never computed as 1 - G: a value 9 sds out would have no digits left.

    normal             Phi(t / sd)
    Laplace            exp(t / beta) / 2 below 0, beta = sd / sqrt 2
    mixtures           sum of w Phi((t - m) / s); turned ones over all combinations of components, equal ones merged,
                       and above 20,000 of them those that lie close together, with their mean and variance
    lognormal bias     an integral, by `bias_lognormal_log_interval`
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from ...laws import JointMixture, Laplace, Mixture, Normal, RotatedMixture
from ...laws.mixture import MOST_COMPONENTS

Floats = npt.NDArray[np.float64]
Tails = tuple[Floats, Floats]

# Components: from here on scores are read off a spline, which costs the same for any number of them
MANY = 64
NODES = 4_001  # of that spline over the whole range: its scores are then off by less than 1e-8
# Sds of the narrowest component: means that are put together where there are too many of them
CLOSE_MEANS = 0.01
FARTHEST = 37.0  # normal score whose tail probability is about the smallest double


class NoiseMarginal(Protocol):
    """The noise of one column, standardised by nothing: t is on the scale of the noise."""

    @property
    def sd(self) -> float:
        """Its standard deviation."""

    @property
    def roughness(self) -> float:
        """The smallest f times sd from which on the characteristic function at frequency f is negligible (1e-5)."""

    def tails(self, t: Floats) -> Tails:
        """Return G(t) and S(t)."""


@dataclass(frozen=True, slots=True)
class NormalMarginal:
    """Normal noise."""

    sd: float
    roughness: float = 1.0  # exp(-2 pi^2) is 3e-9

    def tails(self, t: Floats) -> Tails:
        """Return Phi and its complement."""
        from scipy.special import ndtr

        scaled = t / self.sd
        return np.asarray(ndtr(scaled)), np.asarray(ndtr(-scaled))


@dataclass(frozen=True, slots=True)
class LaplaceMarginal:
    """Laplace noise: its kink makes the characteristic function fall as 1 / f^2 alone."""

    sd: float
    roughness: float = 25.0

    def tails(self, t: Floats) -> Tails:
        """Return the two exponential tails."""
        scaled = t / (self.sd / 2**0.5)
        near = 0.5 * np.exp(-np.abs(scaled))
        return np.where(scaled < 0, near, 1.0 - near), np.where(scaled < 0, 1.0 - near, near)


@dataclass(frozen=True, slots=True)
class MixtureMarginal:
    """A mixture of normals; a component without spread is a point."""

    weights: Floats
    means: Floats
    sds: Floats

    @property
    def sd(self) -> float:
        """The sd of the mixture."""
        mean = float(self.weights @ self.means)
        square = float(self.weights @ (self.sds**2 + self.means**2))
        return float(max(square - mean**2, 0.0) ** 0.5)

    @property
    def roughness(self) -> float:
        """That of the narrowest component."""
        least = float(self.sds[self.weights > 0].min())
        return max(4.0, self.sd / least) if least > 0 else np.inf

    def tails(self, t: Floats) -> Tails:
        """Sum the components."""
        from scipy.special import ndtr

        low, high = np.zeros(len(t)), np.zeros(len(t))
        for weight, mean, sd in zip(self.weights, self.means, self.sds, strict=True):
            with np.errstate(divide="ignore", invalid="ignore"):
                scaled: Floats = (t - mean) / sd if sd > 0 else np.where(t >= mean, np.inf, -np.inf)
            low += weight * np.asarray(ndtr(scaled))
            high += weight * np.asarray(ndtr(-scaled))
        return low, high

    def splined(self) -> NoiseMarginal:
        """Return the same law read off a spline of its normal scores, where it has many components."""
        if len(self.weights) <= MANY or self.sds.min() <= 0:
            return self
        return SplinedMarginal.of(self)


@dataclass(frozen=True, slots=True)
class SplinedMarginal:
    """A law by a cubic spline of its normal scores y(t) = Phi^-1(G(t)), which are smooth: relative precision holds."""

    sd: float
    roughness: float
    ends: tuple[float, float]
    curve: Any

    @classmethod
    def of(cls, law: MixtureMarginal) -> SplinedMarginal:
        """Tabulate the scores of a mixture between the ends of the doubles."""
        from scipy.interpolate import CubicSpline

        widest = FARTHEST * law.sds.max()
        nodes = np.linspace(law.means.min() - widest, law.means.max() + widest, NODES)
        low, high = law.tails(nodes)
        score = normal_score(low, high)
        inside = np.abs(score) < FARTHEST
        first, last = nodes[inside][[0, -1]]
        return cls(law.sd, law.roughness, (first, last), CubicSpline(nodes[inside], score[inside]))

    def tails(self, t: Floats) -> Tails:
        """Return the tails of the interpolated score."""
        from scipy.special import ndtr

        score = self.curve(np.clip(t, *self.ends))
        score = np.where(t < self.ends[0], -np.inf, np.where(t > self.ends[1], np.inf, score))
        return np.asarray(ndtr(score)), np.asarray(ndtr(-score))


@dataclass(frozen=True, slots=True)
class BiasMarginal:
    """z = theta x + e with a lognormal theta, for given true values: t is z itself."""

    x: Floats
    bias_sd: float
    noise_sd: float

    @property
    def sd(self) -> float:
        """One: the size of the noise differs from cell to cell, and is given apart."""
        return 1.0

    @property
    def roughness(self) -> float:
        """That of the lognormal factor."""
        return log_roughness(float(np.sqrt(np.log1p(self.bias_sd**2))))

    def tails(self, t: Floats) -> Tails:
        """Integrate below or above, whichever is about the smaller."""
        from ...kernels.densities import bias_lognormal_log_interval

        upper = t > self.x / np.sqrt(1 + self.bias_sd**2)  # the median of theta x
        ends = np.where(upper, t, -np.inf), np.where(upper, np.inf, t)
        sds = np.full(len(t), self.noise_sd)
        near = np.exp(bias_lognormal_log_interval(*ends, self.x, self.bias_sd, sds))
        return np.where(upper, 1.0 - near, near), np.where(upper, near, 1.0 - near)


def log_roughness(log_sd: float) -> float:
    """Return the roughness of a lognormal value: its characteristic function falls as exp(-(log 2 pi f)^2 / 2 s^2)."""
    return max(1.0, log_sd * float(np.exp(min(4.8 * log_sd, 500.0))) / (2 * np.pi))


def normal_score(low: Floats, high: Floats) -> Floats:
    """Return the normal score of a probability from the smaller of its tails."""
    from scipy.special import ndtri

    return np.asarray(np.where(low < 0.5, ndtri(low), -ndtri(high)))


def clip_scores(score: Floats) -> Floats:
    """Return scores as numbers: what underflows lies as far out as a double can say."""
    return np.clip(np.where(np.isnan(score), FARTHEST, score), -FARTHEST, FARTHEST)


def marginal_of(noise: Any, column: int) -> NoiseMarginal | None:
    """Return the law of one column of a noise, or nothing where this module has none of its kind."""
    if isinstance(noise, Normal):
        return NormalMarginal(noise.sds[column])
    if isinstance(noise, Laplace):
        return LaplaceMarginal(noise.sds[column])
    if isinstance(noise, Mixture):
        shape = (noise.weights, noise.means[column], noise.sds[column])
        return MixtureMarginal(*map(np.array, shape)).splined()
    if isinstance(noise, JointMixture):
        return marginal_of(noise.flat(column), 0)
    if isinstance(noise, RotatedMixture):
        return _rotated_marginal(noise, column)
    return None


def _rotated_marginal(noise: RotatedMixture, column: int) -> NoiseMarginal:
    """Add the units that make up a column one after the other, merging components that come out equal."""
    weights, means, variances = np.ones(1), np.zeros(1), np.zeros(1)
    for turn in noise._root[column]:
        if turn == 0.0:
            continue
        weights = np.outer(weights, noise.weights).ravel()
        means = np.add.outer(means, turn * np.array(noise.unit_means)).ravel()
        variances = np.add.outer(variances, (turn * np.array(noise.unit_sds)) ** 2).ravel()
        weights, means, variances = _merge_equal_components(weights, means, variances)
        if len(weights) > MOST_COMPONENTS:
            weights, means, variances = _reduce_components(weights, means, variances)
    return MixtureMarginal(weights, means, np.sqrt(variances)).splined()


def _merge_equal_components(
    weights: Floats, means: Floats, variances: Floats
) -> tuple[Floats, Floats, Floats]:
    size = np.sqrt(variances.max() + (means**2).max()) or 1.0
    shapes = np.column_stack([np.round(means / size, 10), np.round(variances / size**2, 10)])
    _, first, member = np.unique(shapes, axis=0, return_index=True, return_inverse=True)
    merged = np.bincount(member.ravel(), weights).astype(np.float64)
    return merged, means[first], variances[first]


def _reduce_components(weights: Floats, means: Floats, variances: Floats) -> tuple[Floats, Floats, Floats]:
    """Put components together that lie close, with their mean and variance kept, until they can be listed.

    With bins of w sds of the narrowest component the density is off by a share of about (w t)^2 / 24 at t of those sds:
    1e-4 at the width begun with and t = 5, far below what any test sees.
    """
    width, narrowest = CLOSE_MEANS, float(np.sqrt(variances.min()))
    while True:
        shapes = np.column_stack(
            [np.round(means / (width * narrowest)), np.round(np.log(variances) / (width / 10))]
        )
        _, member = np.unique(shapes, axis=0, return_inverse=True)
        member = member.ravel()
        total = np.bincount(member, weights).astype(np.float64)
        if len(total) <= MOST_COMPONENTS:
            break
        width *= 2
    mean = np.bincount(member, weights * means) / total
    variance = np.bincount(member, weights * (variances + (means - mean[member]) ** 2)) / total
    return total, mean, variance

"""Noise with an independent normal error added to it, where the sum is none of the noises that masks draw from.

A mixture of normals stays one, each component with the error in its covariance. Laplace and normal together have the
density exp(s^2 / 2b^2) / 2b [e^(-t/b) Phi(t/s - s/b) + e^(t/b) Phi(-t/s - s/b)] (the normal-Laplace law, Reed 2006).
Only densities are asked of these: nothing is drawn from them and none is written. Chosen by `error_law` where errors
add to the noise on one scale.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any, ClassVar

import numpy as np

from ....errors import NoLaw
from ....laws import JointMixture, Laplace, Normal, RotatedMixture
from ....laws.convolution import convolve
from ....laws.mixture import MOST_COMPONENTS
from ....laws.noise import Noise, Row, conditional_sds, correlated_box, scaled_root
from ....table import Floats


def noise_plus_error(noise: Noise, sds: Floats) -> Any:
    """Return a noise plus independent normal errors of given sds, one for each column."""
    found = convolve(noise, Normal(tuple(sds.tolist())))
    if found is not None:
        return found
    if isinstance(noise, Laplace):
        return LaplaceAndNormal(noise.sds, tuple(sds.tolist()))
    if isinstance(noise, JointMixture):
        covariance = noise.within_covariance + np.diag(sds**2)
        parts = [(w, mean, covariance) for w, mean in zip(noise.weights, noise.means, strict=True) if w > 0]
        return ListedComponents(tuple(parts), noise)
    if isinstance(noise, RotatedMixture):
        return ListedComponents(_rotated_components(noise, sds), noise)
    raise NoLaw(f"an error of the intruder cannot be added to {noise.form} noise: leave it out")


def _rotated_components(noise: RotatedMixture, sds: Floats) -> tuple[tuple[float, Floats, Floats], ...]:
    """List the components of a turned mixture, each with the error in its covariance."""
    if len(noise.weights) ** len(noise.sds) > MOST_COMPONENTS:
        raise NoLaw(
            f"{len(noise.weights)} components turned in {len(noise.sds)} columns are too many to list, which an error "
            "of the intruder needs: leave it out"
        )
    root = scaled_root(noise.sds, noise.correlations)[list(noise.chosen or range(len(noise.sds)))]
    weights, means, spreads = map(np.array, (noise.weights, noise.unit_means, noise.unit_sds))
    parts = []
    for choice in product(np.flatnonzero(weights), repeat=len(noise.sds)):
        at, scaled = list(choice), root * spreads[list(choice)]
        parts.append((float(np.prod(weights[at])), root @ means[at], scaled @ scaled.T + np.diag(sds**2)))
    return tuple(parts)


@dataclass(frozen=True, slots=True, eq=False)
class ListedComponents:
    """A mixture of normals: weight, mean and covariance of each component; `base` is the noise without the error."""

    form: ClassVar[str] = "listed mixture"
    parts: tuple[tuple[float, Floats, Floats], ...]
    base: Noise

    @property
    def width(self) -> int:
        """The number of columns."""
        return len(self.parts[0][1])

    @property
    def covariance(self) -> Floats:
        """Columns x columns."""
        mean = sum((weight * mean for weight, mean, _ in self.parts), np.zeros(self.width))
        squares = [w * (cov + np.outer(m - mean, m - mean)) for w, m, cov in self.parts]
        return np.asarray(sum(squares, np.zeros((self.width, self.width))))

    @property
    def resolution(self) -> Floats:
        """Each column's sd inside the tightest component given the others."""
        return np.asarray(np.min([conditional_sds(covariance) for _, _, covariance in self.parts], axis=0))

    def only(self, chosen: Sequence[int]) -> ListedComponents:
        """Return the noise of some columns alone."""
        at = np.array(chosen, np.int64)
        parts = tuple((w, mean[at], covariance[np.ix_(at, at)]) for w, mean, covariance in self.parts)
        return ListedComponents(parts, self.base.only(chosen))

    def log_box(self, lower: Floats, upper: Floats, is_point: Sequence[bool]) -> tuple[Floats, Floats]:
        """Sum the boxes of the components."""
        logs, total = np.full(len(lower), -np.inf), np.zeros(len(lower))
        for weight, mean, covariance in self.parts:
            log, error = correlated_box(covariance, lower - mean, upper - mean, is_point)
            logs, total = np.logaddexp(logs, log + np.log(weight)), total + weight * error
        return logs, total

    def log_mean_exp(self, column: int, scale: Floats) -> Floats:
        """The bias that the noise itself has on the log scale, where no error is added."""
        return self.base.log_mean_exp(column, scale)


@dataclass(frozen=True, slots=True)
class LaplaceAndNormal:
    """Independent columns, each the sum of a Laplace (`laplace_sds`) and a normal (`sds`) variable."""

    form: ClassVar[str] = "laplace and normal"
    laplace_sds: Row
    sds: Row

    @property
    def width(self) -> int:
        """The number of columns."""
        return len(self.sds)

    @property
    def covariance(self) -> Floats:
        """Columns x columns."""
        return np.diag(np.square(self.laplace_sds) + np.square(self.sds))

    @property
    def resolution(self) -> Floats:
        """The smaller of the scale of the Laplace and the sd of the normal part: what bends within is smooth."""
        scales = np.array(self.laplace_sds) / 2**0.5
        return np.where(scales > 0, np.minimum(scales, self.sds), self.sds)

    def only(self, chosen: Sequence[int]) -> LaplaceAndNormal:
        """Return the noise of some columns alone."""
        return LaplaceAndNormal(
            tuple(self.laplace_sds[i] for i in chosen), tuple(self.sds[i] for i in chosen)
        )

    def log_box(self, lower: Floats, upper: Floats, is_point: Sequence[bool]) -> tuple[Floats, Floats]:
        """Return the log density of points times the probability of the intervals."""
        total = np.zeros(len(lower))
        for j, (laplace, sd) in enumerate(zip(self.laplace_sds, self.sds, strict=True)):
            ends = lower[:, j], upper[:, j]
            if laplace == 0 or sd == 0:
                alone: Noise = Normal((sd,)) if laplace == 0 else Laplace((laplace,))
                total += alone.log_box(ends[0][:, None], ends[1][:, None], is_point[j : j + 1])[0]
            elif is_point[j]:
                total += _log_density(ends[0], laplace / 2**0.5, sd)
            else:
                total += _log_interval(*ends, laplace / 2**0.5, sd)
        return total, np.zeros(len(lower))

    def log_mean_exp(self, column: int, scale: Floats) -> Floats:
        """The bias that the Laplace noise has on the log scale, where no error is added."""
        return Laplace(self.laplace_sds).log_mean_exp(column, scale)


def _log_halves(at: Floats, scale: float, sd: float) -> tuple[Floats, Floats]:
    """Return logs of 2 P(normal < at < sum) and of 2 P(normal > at > sum), of a Laplace and a normal added."""
    from scipy.special import log_ndtr

    ratio, bend = sd / scale, 0.5 * (sd / scale) ** 2
    above, below = log_ndtr(at / sd - ratio), log_ndtr(-at / sd - ratio)
    return bend - at / scale + above, bend + at / scale + below


def _log_density(at: Floats, scale: float, sd: float) -> Floats:
    return np.asarray(np.logaddexp(*_log_halves(at, scale, sd)) - np.log(2.0 * scale))


def _log_tail(at: Floats, scale: float, sd: float) -> Floats:
    """Return log P(sum > at) of a Laplace and a normal added."""
    from scipy.special import log_ndtr

    safe = np.where(np.isfinite(at), at, 0.0)
    (above, below), normal = _log_halves(safe, scale, sd), log_ndtr(-safe / sd)
    own = normal + np.log1p(-0.5 * np.exp(below - normal))
    tail = np.logaddexp(own, above - np.log(2.0))
    return np.where(np.isfinite(at), tail, np.where(at > 0, -np.inf, 0.0))


def _log_interval(lower: Floats, upper: Floats, scale: float, sd: float) -> Floats:
    """Return log P(lower <= sum <= upper), from the side on which the tails are small."""
    with np.errstate(divide="ignore", invalid="ignore"):
        flip = lower + upper < 0
        low, high = np.where(flip, -upper, lower), np.where(flip, -lower, upper)
        first, last = _log_tail(low, scale, sd), _log_tail(high, scale, sd)
        return np.where(high > low, first + np.log(-np.expm1(last - first)), -np.inf)

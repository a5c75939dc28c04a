"""Mixtures of normals as noise: a component per cell, a component per record, or turned unit mixtures.

f(e) = sum of w_j N(e; theta_j, c sigma^2) (Hawala, section 2, (1)). One component for each record: means
sqrt(1 - within) U L', covariance within Sigma, L L' = Sigma (Roque 2000). Turned: e = L y with independent unit
mixtures y, any number of components. Boxes are sums over components. Made by `masks.mixture`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any, ClassVar

import numpy as np

from ..errors import NoLaw
from ..kernels.log_sums import log_sum
from ..keys import Stream
from .noise import (
    Floats,
    Matrix,
    Normal,
    Row,
    combine,
    conditional_sds,
    correlated_box,
    scaled_root,
    symmetric_root,
)

MOST_COMPONENTS = 20_000  # what the listed density of a turned mixture may cost


@dataclass(frozen=True, slots=True)
class Mixture:
    """Independent columns, each a mixture of normals: `means` and `sds` are columns x components."""

    form: ClassVar[str] = "mixture"
    correlations: ClassVar[Matrix] = ()
    weights: Row
    means: Matrix
    sds: Matrix

    @property
    def width(self) -> int:
        """The number of columns."""
        return len(self.means)

    @property
    def covariance(self) -> Floats:
        """Columns x columns (diagonal)."""
        weights, means, sds = np.array(self.weights), np.array(self.means), np.array(self.sds)
        average = means @ weights
        return np.asarray(np.diag((means**2 + sds**2) @ weights - average**2))

    @property
    def resolution(self) -> Floats:
        """The smallest component sd of each column."""
        return np.asarray(np.array(self.sds).min(axis=1))

    def draw(self, stream: Stream, columns: Sequence[str]) -> Floats:
        """Draw a component for each cell, then its normal."""
        edges = np.cumsum(self.weights)[:-1]
        out = np.empty((len(stream), self.width), order="F")
        for j, column in enumerate(columns):
            component = np.searchsorted(edges, stream.uniforms(column, "component"), side="right")
            sds, means = np.array(self.sds[j]), np.array(self.means[j])
            out[:, j] = means[component] + sds[component] * stream.normals(column)
        return out

    def only(self, chosen: Sequence[int]) -> Mixture:
        """Return the noise of some columns alone."""
        return Mixture(self.weights, tuple(self.means[i] for i in chosen), tuple(self.sds[i] for i in chosen))

    def log_box(self, lower: Floats, upper: Floats, is_point: Sequence[bool]) -> tuple[Floats, Floats]:
        """Return the log density of points times the probability of the intervals."""
        from ..kernels.densities import mixture_log_interval, mixture_logpdf

        total, weights = np.zeros(len(lower)), np.array(self.weights)
        for j in range(self.width):
            shape = (weights, np.array(self.means[j]), np.array(self.sds[j]))
            ends = (lower[:, j].copy(), upper[:, j].copy())
            total += mixture_logpdf(ends[0], *shape) if is_point[j] else mixture_log_interval(*ends, *shape)
        return total, np.zeros(len(lower))

    def log_mean_exp(self, column: int, scale: Floats) -> Floats:
        """The log of the weighted exponentials."""
        means, sds = np.array(self.means[column]), np.array(self.sds[column])
        exponents = np.multiply.outer(scale, means) + np.multiply.outer(scale, sds) ** 2 / 2
        return np.asarray(np.log(np.exp(exponents) @ np.array(self.weights)))

    def to_dict(self) -> dict[str, Any]:
        """Return the noise as plain data."""
        return {
            "form": self.form,
            "weights": list(self.weights),
            "means": [list(row) for row in self.means],
            "sds": [list(row) for row in self.sds],
        }


@dataclass(frozen=True, slots=True)
class JointMixture:
    """A mixture of multivariate normals with one component drawn per record (Roque, k >= p + 1).

    The component means are sqrt(1 - within) `unit_means` L' (components x columns), the covariance inside a
    component is within Sigma. Sigma = L L' comes from sds and correlations (`scaled_root`), and the unit means
    have mean 0 and covariance I, so that the covariance of the noise is Sigma itself.
    """

    form: ClassVar[str] = "joint mixture"
    weights: Row
    unit_means: Matrix
    within: float
    sds: Row
    correlations: Matrix
    chosen: tuple[int, ...] = ()

    @property
    def width(self) -> int:
        """The number of columns."""
        return len(self.chosen or self.sds)

    def _columns(self) -> list[int]:
        return list(self.chosen or range(len(self.sds)))

    @property
    def _sigma(self) -> Floats:
        return Normal(self.sds, self.correlations).covariance

    @property
    def means(self) -> Floats:
        """Components x columns."""
        turned = np.array(self.unit_means) @ scaled_root(self.sds, self.correlations).T
        return np.asarray(np.sqrt(1 - self.within) * turned[:, self._columns()])

    @property
    def within_covariance(self) -> Floats:
        """Columns x columns, the same in every component."""
        return np.asarray(self.within * self._sigma[np.ix_(self._columns(), self._columns())])

    @property
    def covariance(self) -> Floats:
        """Columns x columns, computed from the components."""
        weights, means = np.array(self.weights), self.means
        centred = means - weights @ means
        return np.asarray(self.within_covariance + (weights * centred.T) @ centred)

    @property
    def resolution(self) -> Floats:
        """Each column's sd inside a component given the others."""
        return conditional_sds(self.within_covariance)

    def draw(self, stream: Stream, columns: Sequence[str]) -> Floats:
        """Draw one component for each record, then a correlated normal."""
        joint = "\x1f".join(columns)
        component = np.searchsorted(
            np.cumsum(self.weights)[:-1], stream.uniforms(joint, "component"), side="right"
        )
        standard = np.empty((len(stream), self.width), order="F")
        for j, column in enumerate(columns):
            standard[:, j] = stream.normals(column)
        root = np.sqrt(self.within) * scaled_root(self.sds, self.correlations)
        return self.means[component] + combine(standard, root)

    def only(self, chosen: Sequence[int]) -> JointMixture:
        """Return the noise of some columns alone."""
        columns = self._columns()
        shape = (self.weights, self.unit_means, self.within, self.sds, self.correlations)
        return JointMixture(*shape, chosen=tuple(columns[i] for i in chosen))

    def log_box(self, lower: Floats, upper: Floats, is_point: Sequence[bool]) -> tuple[Floats, Floats]:
        """Sum the boxes of the components."""
        return _mixture_box(self.weights, self.means, self.within_covariance, lower, upper, is_point)

    def log_mean_exp(self, column: int, scale: Floats) -> Floats:
        """The log of the weighted exponentials."""
        return self.flat(column).log_mean_exp(0, scale)

    def flat(self, column: int) -> Mixture:
        """Return one column's noise as an ordinary mixture."""
        sd = float(np.sqrt(self.within_covariance[column, column]))
        return Mixture(self.weights, (tuple(self.means[:, column]),), ((sd,) * len(self.weights),))

    def to_dict(self) -> dict[str, Any]:
        """Return the noise as plain data."""
        return {
            "form": self.form,
            "weights": list(self.weights),
            "unit_means": [list(row) for row in self.unit_means],
            "within": self.within,
            "sds": list(self.sds),
            "correlations": [list(row) for row in self.correlations],
        }


def _mixture_box(
    weights: Row, means: Floats, covariance: Floats, lower: Floats, upper: Floats, is_point: Sequence[bool]
) -> tuple[Floats, Floats]:
    logs = np.empty((len(weights), len(lower)))
    error = np.zeros(len(lower))
    for k, weight in enumerate(weights):
        logs[k], this = correlated_box(covariance, lower - means[k], upper - means[k], is_point)
        logs[k] += np.log(weight) if weight > 0 else -np.inf
        error += weight * this
    return log_sum(logs, axis=0), error


@dataclass(frozen=True, slots=True)
class RotatedMixture:
    """Correlated noise made of independent unit mixtures turned by the root of Sigma (any k >= 2)."""

    form: ClassVar[str] = "rotated mixture"
    weights: Row
    unit_means: Row
    unit_sds: Row
    sds: Row
    correlations: Matrix
    chosen: tuple[int, ...] = ()

    @property
    def width(self) -> int:
        """The number of columns."""
        return len(self.chosen or self.sds)

    def _columns(self) -> list[int]:
        return list(self.chosen or range(len(self.sds)))

    @property
    def _root(self) -> Floats:
        """The rows of L (L L' = Sigma) of the chosen columns."""
        return np.asarray(scaled_root(self.sds, self.correlations)[self._columns()])

    @property
    def covariance(self) -> Floats:
        """Columns x columns."""
        unit = Mixture(self.weights, (self.unit_means,), (self.unit_sds,)).covariance[0, 0]
        return np.asarray(unit * self._root @ self._root.T)

    @property
    def resolution(self) -> Floats:
        """Each column's sd inside the tightest component given the others."""
        return conditional_sds(min(self.unit_sds) ** 2 * self._root @ self._root.T)

    def draw(self, stream: Stream, columns: Sequence[str]) -> Floats:
        """Draw an independent unit mixture for each column, then turn them."""
        width = len(self.sds)
        unit = Mixture(self.weights, (self.unit_means,) * width, (self.unit_sds,) * width)
        return combine(unit.draw(stream, columns), self._root)

    def only(self, chosen: Sequence[int]) -> RotatedMixture:
        """Return the noise of some columns alone."""
        columns = self._columns()
        shape = (self.weights, self.unit_means, self.unit_sds, self.sds, self.correlations)
        return RotatedMixture(*shape, chosen=tuple(columns[i] for i in chosen))

    def log_box(self, lower: Floats, upper: Floats, is_point: Sequence[bool]) -> tuple[Floats, Floats]:
        """Turn back where every column is a point and the root has an inverse; else list the components."""
        if self.width == len(self.sds) and all(is_point) and np.linalg.cond(self._turn) < 1e10:
            return self._turned_back(lower)
        return self._listed_box(lower, upper, is_point)

    @property
    def _turn(self) -> Floats:
        return np.asarray(symmetric_root(np.array(self.correlations))[self._columns()])

    def _turned_back(self, points: Floats) -> tuple[Floats, Floats]:
        sds = np.array(self.sds)[self._columns()]
        unit = Mixture(self.weights, (self.unit_means,) * self.width, (self.unit_sds,) * self.width)
        turned = combine(points / sds, np.asarray(np.linalg.inv(self._turn), dtype=np.float64))
        logs, error = unit.log_box(turned, turned, (True,) * self.width)
        return logs - np.linalg.slogdet(self._turn)[1] - np.log(sds).sum(), error

    def _listed_box(self, lower: Floats, upper: Floats, is_point: Sequence[bool]) -> tuple[Floats, Floats]:
        root, logs, total_error = self._root, [], np.zeros(len(lower))
        for weight, means, sds in self._components():
            mean, scaled = root @ means, root * sds
            log, error = correlated_box(scaled @ scaled.T, lower - mean, upper - mean, is_point)
            logs.append(log + np.log(weight))
            total_error += weight * error
        return np.asarray(np.logaddexp.reduce(np.array(logs), axis=0)), total_error

    def _components(self) -> list[tuple[float, Floats, Floats]]:
        if len(self.weights) ** len(self.sds) > MOST_COMPONENTS:
            raise NoLaw(
                f"{len(self.weights)} components turned in {len(self.sds)} columns are too many to list, which a value "
                "that is closed or at a limit needs; use construction 'components' or smaller groups"
            )
        triples = list(zip(self.weights, self.unit_means, self.unit_sds, strict=True))
        listed = []
        for combination in product(triples, repeat=len(self.sds)):
            weights, means, sds = map(np.array, zip(*combination, strict=True))
            listed.append((float(np.prod(weights)), means, sds))
        return [item for item in listed if item[0] > 0]

    def log_mean_exp(self, column: int, scale: Floats) -> Floats:
        """The sum over the independent units that make up the column."""
        unit = Mixture(self.weights, (self.unit_means,), (self.unit_sds,))
        return np.asarray(sum(unit.log_mean_exp(0, scale * turn) for turn in self._root[column]))

    def to_dict(self) -> dict[str, Any]:
        """Return the noise as plain data."""
        return {
            "form": self.form,
            "weights": list(self.weights),
            "unit_means": list(self.unit_means),
            "unit_sds": list(self.unit_sds),
            "sds": list(self.sds),
            "correlations": [list(row) for row in self.correlations],
        }

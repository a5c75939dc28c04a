"""Noise that does not depend on the value: the contract, normal and Laplace noise.

Each noise draws from a keyed stream and gives the log of its own density. `log_box` takes a mixture of points
and intervals: the density of the point coordinates times the probability that the others fall
between `lower` and `upper`, with the absolute error of that probability.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

import numpy as np
import numpy.typing as npt

from ..keystream import Stream

Floats = npt.NDArray[np.float64]
Row = tuple[float, ...]
Matrix = tuple[Row, ...]


class Noise(Protocol):
    """What every noise offers to a law."""

    form: ClassVar[str]

    @property
    def width(self) -> int:
        """The number of columns."""

    @property
    def covariance(self) -> Floats:
        """Columns x columns."""

    @property
    def resolution(self) -> Floats:
        """For each column the smallest sd left given the others: units far below it need no interval."""

    def draw(self, stream: Stream, columns: Sequence[str]) -> Floats:
        """Draw records x columns."""

    def only(self, chosen: Sequence[int]) -> Noise:
        """Return the noise of some columns alone."""

    def log_box(self, lower: Floats, upper: Floats, is_point: Sequence[bool]) -> tuple[Floats, Floats]:
        """Return the log density-and-probability of each record, and the error of the probability."""

    def log_mean_exp(self, column: int, scale: Floats) -> Floats:
        """Return log E exp(scale x noise): the bias of noise on the log scale."""

    def to_dict(self) -> dict[str, Any]:
        """Return the noise as plain data."""


def symmetric_root(covariance: Floats) -> Floats:
    """Return the symmetric square root, unique also where the matrix is exactly singular."""
    eigenvalues, vectors = np.linalg.eigh(covariance)
    root = (vectors * np.sqrt(np.clip(eigenvalues, 0.0, None))) @ vectors.T
    return np.asarray((root + root.T) / 2)


def combine(columns: Floats, matrix: Floats) -> Floats:
    """Return `columns @ matrix.T` summed in a fixed order, so that no bit depends on the number of records."""
    out = np.zeros((len(columns), len(matrix)), order="F")
    for i, row in enumerate(matrix):
        for j in np.flatnonzero(row):
            out[:, i] += row[j] * columns[:, j]
    return out


def conditional_sds(covariance: Floats) -> Floats:
    """Return each column's sd given all the others (0 where they determine it)."""
    sds = np.sqrt(np.diag(covariance))
    scale = np.where(sds > 0, sds, 1.0)
    eigenvalues, vectors = np.linalg.eigh(covariance / np.outer(scale, scale))
    if eigenvalues[0] <= 1e-12 * max(eigenvalues[-1], 0.0):
        involved = np.abs(vectors[:, eigenvalues <= 1e-12 * eigenvalues[-1]]).max(axis=1) > 1e-9
        return np.where(involved, 0.0, sds)
    precision = (vectors**2 / eigenvalues).sum(axis=1)
    return np.asarray(sds / np.sqrt(precision))


@dataclass(frozen=True, slots=True)
class Normal:
    """Normal noise with given sds and correlations (none: independent)."""

    form: ClassVar[str] = "normal"
    sds: Row
    correlations: Matrix = ()

    @property
    def width(self) -> int:
        """The number of columns."""
        return len(self.sds)

    @property
    def covariance(self) -> Floats:
        """Columns x columns."""
        sds = np.array(self.sds)
        return np.diag(sds**2) if not self.correlations else np.outer(sds, sds) * np.array(self.correlations)

    @property
    def resolution(self) -> Floats:
        """Each column's sd given the others."""
        return conditional_sds(self.covariance) if self.correlations else np.array(self.sds)

    def draw(self, stream: Stream, columns: Sequence[str]) -> Floats:
        """Draw by the symmetric root: the draw of an open column is the same whichever others are closed."""
        out = np.empty((len(stream), self.width), order="F")
        for j, column in enumerate(columns):
            out[:, j] = stream.normals(column)
        if self.correlations:
            return combine(out, symmetric_root(self.covariance))
        out *= np.array(self.sds)
        return out

    def only(self, chosen: Sequence[int]) -> Normal:
        """Return the noise of some columns alone."""
        correlations = tuple(tuple(self.correlations[i][j] for j in chosen) for i in chosen)
        return Normal(tuple(self.sds[i] for i in chosen), correlations if self.correlations else ())

    def log_box(self, lower: Floats, upper: Floats, is_point: Sequence[bool]) -> tuple[Floats, Floats]:
        """Return the log density of points times the probability of the box given them."""
        if self.correlations and self.width > 1:
            return correlated_box(self.covariance, lower, upper, is_point)
        from ..kernels.densities import normal_log_interval, normal_logpdf

        total = np.zeros(len(lower))
        for j, sd in enumerate(self.sds):
            sds = np.full(len(lower), sd)
            ends = (lower[:, j].copy(), upper[:, j].copy())
            total += normal_logpdf(ends[0], sds) if is_point[j] else normal_log_interval(*ends, sds)
        return total, np.zeros(len(lower))

    def log_mean_exp(self, column: int, scale: Floats) -> Floats:
        """Half the variance."""
        return np.asarray((scale * self.sds[column]) ** 2 / 2)

    def to_dict(self) -> dict[str, Any]:
        """Return the noise as plain data."""
        correlations = {"correlations": [list(row) for row in self.correlations]} if self.correlations else {}
        return {"form": self.form, "sds": list(self.sds), **correlations}


def correlated_box(
    covariance: Floats, lower: Floats, upper: Floats, is_point: Sequence[bool]
) -> tuple[Floats, Floats]:
    """Return the log density of points times the probability of the box given them, for correlated normals."""
    from ..kernels.rectangle import conditional_rectangle

    return conditional_rectangle(lower, lower, upper, covariance, np.array(is_point))


@dataclass(frozen=True, slots=True)
class Laplace:
    """Independent Laplace noise with given sds (its scale is sd / sqrt 2)."""

    form: ClassVar[str] = "laplace"
    sds: Row

    @property
    def width(self) -> int:
        """The number of columns."""
        return len(self.sds)

    @property
    def covariance(self) -> Floats:
        """Columns x columns."""
        return np.diag(np.array(self.sds) ** 2)

    @property
    def resolution(self) -> Floats:
        """The scale: the density has a kink, so the unit must be small against it."""
        return np.array(self.sds) / 2**0.5

    def draw(self, stream: Stream, columns: Sequence[str]) -> Floats:
        """Draw by the inverse distribution function."""
        out = np.empty((len(stream), self.width), order="F")
        for j, column in enumerate(columns):
            uniform = stream.uniforms(column)
            tail = np.minimum(uniform, 1.0 - uniform)
            out[:, j] = np.sign(uniform - 0.5) * -np.log(2.0 * tail) * (self.sds[j] / 2**0.5)
        return out

    def only(self, chosen: Sequence[int]) -> Laplace:
        """Return the noise of some columns alone."""
        return Laplace(tuple(self.sds[i] for i in chosen))

    def log_box(self, lower: Floats, upper: Floats, is_point: Sequence[bool]) -> tuple[Floats, Floats]:
        """Return the log density of points times the probability of the intervals."""
        from ..kernels.densities import laplace_log_interval, laplace_logpdf

        total = np.zeros(len(lower))
        for j, sd in enumerate(self.sds):
            scales = np.full(len(lower), sd / 2**0.5)
            ends = (lower[:, j].copy(), upper[:, j].copy())
            total += laplace_logpdf(ends[0], scales) if is_point[j] else laplace_log_interval(*ends, scales)
        return total, np.zeros(len(lower))

    def log_mean_exp(self, column: int, scale: Floats) -> Floats:
        """Finite only while the scale stays below 1."""
        squared = (scale * self.sds[column]) ** 2 / 2
        return np.where(squared < 1, -np.log1p(-np.minimum(squared, 0.999999)), np.nan)

    def to_dict(self) -> dict[str, Any]:
        """Return the noise as plain data."""
        return {"form": self.form, "sds": list(self.sds)}

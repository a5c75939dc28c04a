"""Noise that does not depend on the value: the contract, normal and Laplace noise.

Each noise draws from a keyed stream and gives the log of its own density. `log_box` takes a mixture of points
and intervals: the density of the point coordinates times the probability that the others fall between `lower` and
`upper`, with the absolute error of that probability: for correlated normals by `kernels.normal_box` (Genz 1992), or
nearly by `kernels.normal_box_conditional` (Mendell and Elston 1974) where it only weighs records. Roots of covariances
are symmetric ones, since data may be exactly singular. Held by `additive`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

import numpy as np
import numpy.typing as npt

from ..keys import Stream

Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]
Row = tuple[float, ...]
Matrix = tuple[Row, ...]

STRICT = 1e-6  # absolute error of the probability of a box, where one is asked for by itself
NULL = 1e-12  # eigenvalues of correlations below this share of the largest are rounding error


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
    def correlations(self) -> Matrix:
        """The correlations by which it is drawn; none where the columns are drawn one by one."""

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


def symmetric_root(matrix: Floats) -> Floats:
    """Return the symmetric square root, unique also where the matrix is exactly singular."""
    eigenvalues, vectors = np.linalg.eigh(matrix)
    kept = np.where(eigenvalues > NULL * eigenvalues[-1], eigenvalues, 0.0)
    root = (vectors * np.sqrt(kept)) @ vectors.T
    return np.asarray((root + root.T) / 2)


def scaled_root(sds: Row, correlations: Matrix) -> Floats:
    """Return L with L L' = Sigma: the symmetric root of the correlations, its rows stretched by the sds.

    Unlike the symmetric root of Sigma itself it keeps its digits where the columns have very different units, and
    a stretched column stretches its own noise and leaves that of the others alone.
    """
    return np.array(sds)[:, None] * symmetric_root(np.array(correlations))


def combine(columns: Floats, matrix: Floats) -> Floats:
    """Return `columns @ matrix.T` summed in a fixed order, so that no bit depends on the number of records."""
    out = np.zeros((len(columns), len(matrix)), order="F")
    for i, row in enumerate(matrix):
        for j in np.flatnonzero(row):
            out[:, i] += row[j] * columns[:, j]
    return out


def conditional_sds(covariance: Floats) -> Floats:
    """Return each column's sd given all the others (0 where they determine it)."""
    sds, correlations = sds_and_correlations(covariance)
    eigenvalues, vectors = np.linalg.eigh(correlations)
    null = eigenvalues <= NULL * eigenvalues[-1]
    precision = (vectors[:, ~null] ** 2 / eigenvalues[~null]).sum(axis=1)
    determined = (np.abs(vectors[:, null]) > 1e-6).any(axis=1)
    return np.where(determined, 0.0, sds / np.sqrt(np.where(determined, 1.0, precision)))


def sds_and_correlations(covariance: Floats) -> tuple[Floats, Floats]:
    """Return sds and correlations; a column without variance keeps a row of zeros."""
    sds = np.sqrt(np.diag(covariance))
    scale = np.where(sds > 0, sds, 1.0)
    return sds, np.asarray(covariance / np.outer(scale, scale))


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
        """Draw every column, so that the draw of an open one is the same whichever others are closed."""
        out = np.empty((len(stream), self.width), order="F")
        for j, column in enumerate(columns):
            out[:, j] = stream.normals(column)
        if self.correlations:
            return combine(out, scaled_root(self.sds, self.correlations))
        out *= np.array(self.sds)
        return out

    def only(self, chosen: Sequence[int]) -> Normal:
        """Return the noise of some columns alone."""
        rows = [self.correlations[i] for i in chosen] if self.correlations else []
        correlations = tuple(tuple(row[j] for j in chosen) for row in rows)
        return Normal(tuple(self.sds[i] for i in chosen), correlations)

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
    covariance: Floats, lower: Floats, upper: Floats, is_point: Sequence[bool], *, tolerance: float = STRICT
) -> tuple[Floats, Floats]:
    """Return the log density of points times the probability of the box given them, for correlated normals.

    Boxes without a point are costly and, on coarse units, often the same: each is computed once. The error of a
    probability is at most a hundredth of it, and the tolerance.
    """
    if not any(is_point) and len(lower) > 1:
        boxes, member = np.unique(np.concatenate([lower, upper], axis=1), axis=0, return_inverse=True)
        low, high = np.split(boxes, 2, axis=1)
        log, error = _correlated_box(covariance, low, high, is_point, tolerance)
        return log[member.ravel()], error[member.ravel()]
    return _correlated_box(covariance, lower, upper, is_point, tolerance)


def weight_box(noise: Noise, lower: Floats, upper: Floats, is_point: Sequence[bool]) -> tuple[Floats, Floats]:
    """Return what `noise.log_box` does, a probability to a hundredth of itself: enough to weigh one record by."""
    if isinstance(noise, Normal) and noise.correlations and noise.width > 1:
        return correlated_box(noise.covariance, lower, upper, is_point, tolerance=np.inf)
    return noise.log_box(lower, upper, is_point)


def box_nearly(noise: Normal, lower: Floats, upper: Floats, is_point: Bools, is_open: Bools) -> Floats:
    """Return the log of each record's density and probability over its open columns (`kernels.normal_box_conditional`).

    Records may differ in which columns are points; boxes of several columns are right to a hundredth or so.
    """
    from ..kernels.normal_box_conditional import BOX, POINT, UNUSED, conditioned_logs

    sds, correlations = sds_and_correlations(noise.covariance)
    scale, out = np.where(sds > 0, sds, 1.0), np.empty(len(lower))
    kinds = np.where(is_open, np.where(is_point, POINT, BOX), UNUSED).astype(np.int8)
    low, high = (np.ascontiguousarray(side / scale) for side in (lower, upper))
    conditioned_logs(low, high, kinds, np.ascontiguousarray(correlations), out)
    return np.asarray(out - np.where(kinds == POINT, np.log(scale), 0.0).sum(axis=1))


def _correlated_box(
    covariance: Floats, lower: Floats, upper: Floats, is_point: Sequence[bool], tolerance: float
) -> tuple[Floats, Floats]:
    from ..kernels.normal_box import conditional_rectangle

    sds, correlations = sds_and_correlations(covariance)
    scale, points = np.where(sds > 0, sds, 1.0), np.array(is_point)
    ends = lower / scale, upper / scale
    log, error = conditional_rectangle(ends[0], *ends, correlations, points, tolerance=tolerance)
    return log - np.log(scale[points]).sum(), error


@dataclass(frozen=True, slots=True)
class Laplace:
    """Independent Laplace noise with given sds (its scale is sd / sqrt 2)."""

    form: ClassVar[str] = "laplace"
    correlations: ClassVar[Matrix] = ()
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
        """None: the density has a kink, so that a unit always needs its interval."""
        return np.zeros(len(self.sds))

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
        """Infinite from a scale of 1 (an sd of sqrt 2) on: such noise has no mean on the log scale."""
        squared = np.minimum((scale * self.sds[column]) ** 2 / 2, 1.0)
        with np.errstate(divide="ignore"):
            return np.asarray(-np.log1p(-squared))

    def to_dict(self) -> dict[str, Any]:
        """Return the noise as plain data."""
        return {"form": self.form, "sds": list(self.sds)}

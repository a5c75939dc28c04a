"""Noise of unknown size, and bias and noise of unknown sizes, averaged over a prior: laws as any other to a pair.

p(e) = sum over nodes of weight x N(e; 0, scale^2 V): a scale mixture of normals (Andrews and Mallows 1974). At points
it depends on the distance e'V^-1 e alone, so that one table serves all pairs (`density_tables`); boxes go to
`normal_boxes`. Chosen by `integral` where one factor on all sds of a law is unknown (`AveragedNoise`), or both sds of a
column with bias (`AveragedBias`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from ....kernels.log_sums import log_sum
from ....laws import Laplace, Noise, Normal, Outlet
from ....laws.unknowns import scaled_noise
from ....table import Floats
from ...protocol import Bools
from .density_tables import WORTH, EvenFunctionTable, LogOf
from .normal_boxes import averaged_boxes

UNLIKELY = -25.0  # nodes of a smaller log weight do not decide whether a unit is fine
BOXES_AT_ONCE = 1_000_000  # intervals x nodes held at a time
SINGULAR = 1e10  # condition of correlations from which on a density is left to the law itself
SAME_WIDTH = 1e-6  # by which shares the widths of intervals may differ that are taken to be the same


@dataclass(frozen=True, eq=False)
class AveragedNoise:
    """The average of `noise` times each of `scales`: to the density of a law a noise as any other; it is never drawn.

    The same size is meant for all columns of a record, so that they are dependent also where the noise has no
    correlations. `kept` holds tables of densities and the noise of some columns.
    """

    form: ClassVar[str] = "averaged"
    noise: Noise
    scales: Floats
    log_weights: Floats
    kept: dict[Any, Any] = field(default_factory=dict, repr=False)

    @property
    def width(self) -> int:
        """The number of columns."""
        return self.noise.width

    @property
    def covariance(self) -> Floats:
        """Columns x columns."""
        return np.asarray(np.exp(self.log_weights) @ self.scales**2 * self.noise.covariance)

    @property
    def resolution(self) -> Floats:
        """That of the smallest likely size: what is a point there is one at every other."""
        return np.asarray(self.scales[self.log_weights > UNLIKELY].min() * self.noise.resolution)

    def only(self, chosen: Sequence[int]) -> AveragedNoise:
        """Return the noise of some columns alone."""
        if list(chosen) == list(range(self.width)):
            return self
        key = ("only", *chosen)
        if key not in self.kept:
            self.kept[key] = AveragedNoise(self.noise.only(chosen), self.scales, self.log_weights)
        found: AveragedNoise = self.kept[key]
        return found

    def at(self, chosen: Bools) -> AveragedNoise:
        """Return the noise at some of its nodes."""
        key = ("at", chosen.tobytes())
        if key not in self.kept:
            self.kept[key] = AveragedNoise(self.noise, self.scales[chosen], self.log_weights[chosen])
        found: AveragedNoise = self.kept[key]
        return found

    def log_box(self, lower: Floats, upper: Floats, is_point: Sequence[bool]) -> tuple[Floats, Floats]:
        """Return the log of the averaged density and probability, and the error of the probability."""
        if self.width == 1 and isinstance(self.noise, Normal | Laplace):
            return self._one_column(lower[:, 0], upper[:, 0], is_point[0]), np.zeros(len(lower))
        if self.is_regular:
            if all(is_point):
                return self.points(lower), np.zeros(len(lower))
            return averaged_boxes(self, lower, upper, np.array(is_point))
        return self.by_nodes(lower, upper, is_point)

    def by_nodes(self, lower: Floats, upper: Floats, is_point: Sequence[bool]) -> tuple[Floats, Floats]:
        """Return the same as `log_box`, by one node after another."""
        total, error = np.full(len(lower), -np.inf), np.zeros(len(lower))
        for scale, log_weight in zip(self.scales.tolist(), self.log_weights.tolist(), strict=True):
            log, this = scaled_noise(self.noise, scale).log_box(lower, upper, is_point)
            np.logaddexp(total, log_weight + log, out=total)
            error += np.exp(log_weight) * this
        return total, error

    def _one_column(self, lower: Floats, upper: Floats, is_point: bool) -> Floats:
        """Return the logs of one column, whose noise is symmetric: by a table where only a distance matters."""
        sd = float(np.sqrt(self.noise.covariance[0, 0]))
        if is_point and isinstance(self.noise, Normal) and sd > 0:
            return self.points(lower[:, None])
        if is_point:
            return self._even("points", lower, lambda at: self._column_nodes(at, at, True), sd)
        finite, out = np.isfinite(upper - lower), np.empty(len(lower))
        ends, place = np.unique(np.array([lower[~finite], upper[~finite]]), axis=1, return_inverse=True)
        out[~finite] = self._column_nodes(ends[0], ends[1], False)[place.ravel()]
        out[finite] = self._bounded(lower[finite], upper[finite], sd)
        return out

    def _bounded(self, lower: Floats, upper: Floats, sd: float) -> Floats:
        """Return the logs of intervals; of one width, they depend on the middle alone."""
        half = 0.5 * float(np.median(upper - lower)) if len(lower) else 0.0
        if np.abs(upper - lower - 2 * half).max(initial=0.0) > SAME_WIDTH * half:
            return self._column_nodes(lower, upper, False)

        def log_of(at: Floats) -> Floats:
            return self._column_nodes(at - half, at + half, False)

        return self._even(("interval", f"{half:.5e}"), 0.5 * (lower + upper), log_of, sd)

    def _column_nodes(self, lower: Floats, upper: Floats, is_point: bool) -> Floats:
        return self.by_nodes(lower[:, None], upper[:, None], (is_point,))[0]

    def points(self, points: Floats) -> Floats:
        """Return the averaged normal density, which depends on the distance from the centre alone."""
        distances = np.sqrt((self.whitened(points) ** 2).sum(axis=1))
        return np.asarray(self.at_distances(distances) - self.log_volume)

    def whitened(self, points: Floats) -> Floats:
        """Return points in coordinates in which normal noise of a size of 1 is standard."""
        scaled = points / np.array(self._normal.sds)
        if not self._normal.correlations:
            return np.asfortranarray(scaled)
        return np.asfortranarray((np.linalg.inv(self._root) @ scaled.T).T)

    @property
    def log_volume(self) -> float:
        """The log of the volume of a unit of these coordinates."""
        return float(np.log(np.array(self._normal.sds) * np.diag(self._root)).sum())

    @property
    def is_regular(self) -> bool:
        """Whether the noise is normal and every column has some of its own."""
        return isinstance(self.noise, Normal) and _is_regular(self.noise)

    @property
    def _normal(self) -> Normal:
        assert isinstance(self.noise, Normal)
        return self.noise

    @property
    def _root(self) -> Floats:
        noise = self._normal
        return np.linalg.cholesky(np.array(noise.correlations)) if noise.correlations else np.eye(noise.width)

    def at_distances(self, distances: Floats) -> Floats:
        """Return the averaged density of standard normals at distances."""
        return self._even("distances", distances, self._at_some, 1.0)

    def _at_some(self, distances: Floats) -> Floats:
        from ....kernels.bias_density import FORWARD, bias_log_mean

        further, none = self.width - 1, np.zeros(len(self.scales))
        weights = self.log_weights - further * np.log(self.scales)
        logs = bias_log_mean(distances, np.zeros(len(distances)), none, self.scales, weights, FORWARD)
        return np.asarray(logs - further * np.log(2 * np.pi) / 2)

    def _even(self, key: Any, at: Floats, log_of: LogOf, sd: float) -> Floats:
        """Return an even function at distances, by its table where there are many; `sd` is that of a scale of 1."""
        if key not in self.kept:
            if len(at) < WORTH:
                return log_of(at)
            self.kept[key] = EvenFunctionTable.of(
                log_of, sd * float(self.scales.min()), sd * float(self.scales.max())
            )
        table: EvenFunctionTable = self.kept[key]
        return table.logs(at)


def _is_regular(noise: Normal) -> bool:
    """Whether every column has noise of its own."""
    if not all(noise.sds):
        return False
    return not noise.correlations or bool(np.linalg.cond(np.array(noise.correlations)) < SINGULAR)


@dataclass(frozen=True, eq=False)
class AveragedBias:
    """The law of one column, z normal around x with variance sd^2 + bias_sd^2 x^2, averaged over nodes of both sds."""

    form: ClassVar[str] = "averaged bias"
    has_density: ClassVar[bool] = True
    opens_codes: ClassVar[bool] = False
    columns: tuple[str, ...]
    outlets: tuple[Outlet, ...]
    bias_sds: Floats
    sds: Floats
    log_weights: Floats

    def logpdf_with_error(self, z: Floats, x: Floats) -> tuple[Floats, Floats]:
        """Return the log of the averaged density, or probability at a limit, of each record; there is no error."""
        out, is_open = np.zeros(len(z)), ~np.isnan(x[:, 0])
        out[is_open] = self._opened(z[is_open, 0], x[is_open, 0])
        return out, np.zeros(len(z))

    def _opened(self, z: Floats, x: Floats) -> Floats:
        from ....kernels.bias_density import FORWARD, bias_log_mean

        finest = self.sds[self.log_weights > UNLIKELY].min()
        cell = self.outlets[0].cell(z, x, np.full(len(z), finest))
        out, point, box = np.full(len(z), -np.inf), cell.is_point, ~cell.is_point & (cell.lower < np.inf)
        nodes = (self.bias_sds, self.sds, self.log_weights)
        out[point] = bias_log_mean(z[point], x[point], *nodes, FORWARD)
        out[box] = self._boxes(cell.lower[box], cell.upper[box], x[box]) + cell.log_factor[box]
        return out

    def _boxes(self, lower: Floats, upper: Floats, x: Floats) -> Floats:
        """Return the log of the averaged probability of intervals; what is the same is computed once."""
        boxes, place = np.unique(np.column_stack([lower, upper, x]), axis=0, return_inverse=True)
        size = max(1, BOXES_AT_ONCE // len(self.sds))
        parts = [self._some_boxes(*boxes[i : i + size].T) for i in range(0, len(boxes), size)]
        return np.concatenate([np.empty(0), *parts])[place.ravel()]

    def _some_boxes(self, lower: Floats, upper: Floats, x: Floats) -> Floats:
        from ....kernels.densities import normal_log_interval

        sds = np.hypot(self.sds, np.multiply.outer(x, self.bias_sds))
        begin, end = (np.repeat(side - x, len(self.sds)) for side in (lower, upper))
        logs = normal_log_interval(begin, end, sds.ravel()).reshape(sds.shape)
        return log_sum(logs + self.log_weights, axis=1)

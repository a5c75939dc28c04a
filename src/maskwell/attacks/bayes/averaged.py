"""Noise of unknown size, and bias and noise of unknown sizes, averaged over a prior: laws as any other to a pair."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ...laws import Noise, Normal, Outlet
from ...laws.unknowns import scaled_noise
from ...table import Floats
from ..ranking import log_sum

UNLIKELY = -25.0  # nodes of a smaller log weight do not decide whether a unit is fine
BOXES_AT_ONCE = 1_000_000  # intervals x nodes held at a time
SINGULAR = 1e10  # condition of correlations from which on a density is left to the law itself


@dataclass(frozen=True, eq=False)
class AveragedNoise:
    """The average of `noise` times each of `scales`: to the density of a law a noise as any other; it is never drawn.

    The same size is meant for all columns of a record, so that they are dependent also where the noise has no
    correlations.
    """

    form: ClassVar[str] = "averaged"
    noise: Noise
    scales: Floats
    log_weights: Floats

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
        return AveragedNoise(self.noise.only(chosen), self.scales, self.log_weights)

    def log_box(self, lower: Floats, upper: Floats, is_point: Sequence[bool]) -> tuple[Floats, Floats]:
        """Return the log of the averaged density and probability, and the error of the probability."""
        if isinstance(self.noise, Normal) and all(is_point) and _is_regular(self.noise):
            return self._points(self.noise, lower), np.zeros(len(lower))
        total, error = np.full(len(lower), -np.inf), np.zeros(len(lower))
        for scale, log_weight in zip(self.scales.tolist(), self.log_weights.tolist(), strict=True):
            log, this = scaled_noise(self.noise, scale).log_box(lower, upper, is_point)
            np.logaddexp(total, log_weight + log, out=total)
            error += np.exp(log_weight) * this
        return total, error

    def _points(self, noise: Normal, points: Floats) -> Floats:
        """Return the averaged normal density, which depends on the distance from the centre alone."""
        from ...kernels.bias import FORWARD, bias_log_mean

        sds, further = np.array(noise.sds), noise.width - 1
        root = np.linalg.cholesky(np.array(noise.correlations)) if noise.correlations else np.eye(len(sds))
        distance = np.sqrt((np.linalg.solve(root, (points / sds).T) ** 2).sum(axis=0))
        weights = self.log_weights - further * np.log(self.scales)
        centre, none = np.zeros(len(points)), np.zeros(len(self.scales))
        logs = bias_log_mean(distance, centre, none, self.scales, weights, FORWARD)
        return np.asarray(logs - further * np.log(2 * np.pi) / 2 - np.log(sds * np.diag(root)).sum())


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
        from ...kernels.bias import FORWARD, bias_log_mean

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
        from ...kernels.densities import normal_log_interval

        sds = np.hypot(self.sds, np.multiply.outer(x, self.bias_sds))
        begin, end = (np.repeat(side - x, len(self.sds)) for side in (lower, upper))
        logs = normal_log_interval(begin, end, sds.ravel()).reshape(sds.shape)
        return log_sum(logs + self.log_weights, axis=1)

"""Probabilities of boxes under correlated normal noise of unknown size, averaged over nodes of it.

At most nodes the units of columns are fine beside the noise: boxes are small there. At the others the pairs that lie
too far away to matter beside what the larger sizes gave are passed by: no box is likelier than one of its sides.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.polynomial.legendre import leggauss

from ....laws.noise import weight_box
from ....laws.unknowns import scaled_noise
from ....table import Floats
from ...contract import Bools
from ...ranking import log_sum

if TYPE_CHECKING:
    from .averaged import AveragedNoise

SMALL = 0.4  # sds: three points in each side of a box are then exact to 1e-7, to 1e-5 at 5 sds
AT_ONCE = 200_000  # points
NOTHING = 40.0  # logs below what was found already
HOPELESS = -2_000.0  # a log probability from which on its bound is as good
OPEN_END = 38.0  # sds: an end beyond is none


def averaged_boxes(
    noise: AveragedNoise, lower: Floats, upper: Floats, is_point: Bools
) -> tuple[Floats, Floats]:
    """Return the log of the averaged density and probability, and the error of the probability."""
    out, error = np.empty(len(lower)), np.zeros(len(lower))
    with np.errstate(invalid="ignore"):
        widths = np.where(is_point, 0.0, upper - lower)
    kinds, member = np.unique(np.isfinite(widths), axis=0, return_inverse=True)
    for number, finite in enumerate(kinds):
        here = np.flatnonzero(member.ravel() == number)
        most = np.where(finite, np.where(finite, widths[here], 0.0).max(axis=0), np.inf)
        out[here], error[here] = _alike(noise, lower[here], upper[here], is_point, most)
    return out, error


def _alike(
    noise: AveragedNoise, lower: Floats, upper: Floats, is_point: Bools, widths: Floats
) -> tuple[Floats, Floats]:
    """Return the same for boxes that are bounded in the same columns; the largest sizes come first."""
    total, error = np.full(len(lower), -np.inf), np.zeros(len(lower))
    fine = noise.scales >= (widths / (SMALL * noise.noise.resolution)).max()
    if fine.any():
        total = _small(noise.at(fine), lower, upper, is_point)
    for k in np.flatnonzero(~fine)[np.argsort(-noise.scales[~fine])]:
        log_weight, at = noise.log_weights[k], scaled_noise(noise.noise, float(noise.scales[k]))
        logs, this = _at_node(at, lower, upper, is_point, total - log_weight - NOTHING)
        np.logaddexp(total, log_weight + logs, out=total)
        error += np.exp(log_weight) * this
    return total, error


def _small(noise: AveragedNoise, lower: Floats, upper: Floats, is_point: Bools) -> Floats:
    """Return the logs of boxes that are small beside the noise: the density at a few points in them."""
    nodes, weights = leggauss(3)
    steps = [np.zeros(1) if point else nodes for point in is_point]
    logs = [np.zeros(1) if point else np.log(0.5 * weights) for point in is_point]
    grid = np.array(np.meshgrid(*steps, indexing="ij")).reshape(len(steps), -1).T
    log_weights = np.array(np.meshgrid(*logs, indexing="ij")).reshape(len(steps), -1).sum(axis=0)
    half, out = np.where(is_point, 0.0, 0.5 * (upper - lower)), np.empty(len(lower))
    middle = lower + half
    for begin in range(0, len(lower), AT_ONCE // len(grid) + 1):
        run = slice(begin, begin + AT_ONCE // len(grid) + 1)
        points = middle[run, None] + half[run, None] * grid
        found = noise.points(points.reshape(-1, points.shape[2])).reshape(points.shape[:2])
        out[run] = log_sum(found + log_weights, axis=1)
    return np.asarray(out + np.log(2.0 * half[:, ~is_point]).sum(axis=1))


def _at_node(noise: Any, lower: Floats, upper: Floats, points: Bools, least: Floats) -> tuple[Floats, Floats]:
    """Return the logs at one size; what stays below `least` anyway is only bounded."""
    bound, error = _bound(noise, lower, upper, points), np.zeros(len(lower))
    here = np.flatnonzero((bound > least) & (bound > HOPELESS))
    reach = np.where(points, np.inf, OPEN_END * np.array(noise.sds))
    low = np.where(lower[here] < -reach, -np.inf, lower[here])
    high = np.where(upper[here] > reach, np.inf, upper[here])
    if len(here):
        bound[here], error[here] = weight_box(noise, low, high, points.tolist())
    return bound, error


def _bound(noise: Any, lower: Floats, upper: Floats, points: Bools) -> Floats:
    """Return the log probability of the least likely side of each box, where at most one column is a point."""
    from ....kernels.densities import normal_log_interval, normal_logpdf

    if points.sum() > 1:
        return np.zeros(len(lower))
    sides = []
    for j, sd in enumerate(noise.sds):
        ends, sds = (lower[:, j].copy(), upper[:, j].copy()), np.full(len(lower), sd)
        if points[j]:
            return normal_logpdf(ends[0], sds)
        sides.append(normal_log_interval(*ends, sds))
    return np.asarray(np.min(sides, axis=0))

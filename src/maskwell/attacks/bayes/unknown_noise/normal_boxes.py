"""Probabilities of boxes under correlated normal noise of unknown size, averaged over nodes of it.

At most nodes the units of columns are fine beside the noise: boxes are small there, and the density is summed over a
few points of each side, fewer the finer it is. Where that would be many points in all (15 columns with 2 each are
32,768) the mean of a normal density in a box is taken for the density of noise with a little more variance,

    1/|B| int_B N(t; 0, s^2 V) dt = N(middle; 0, s^2 V + diag(width^2 / 12))        (Sheppard 1898),

but for a share of (width / sd)^4 / 2880 He_4, He_4 the Hermite polynomial of the distance in sds: with sides of 0.4 sds
0.03% at 3 sds and 0.4% at 5, of 0.7 sds 0.3% and 4%. Both variances are diagonal in one set of coordinates, so that all
nodes s take one product of matrices. The largest sizes come first: pairs that lie too far away to matter beside what
these gave are passed by at the others, where no box is likelier than one of its sides.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.linalg
from numpy.polynomial.legendre import leggauss

from ....kernels.log_sums import log_sum
from ....laws.noise import box_nearly, weight_box
from ....laws.unknowns import scaled_noise
from ....table import Floats
from ...protocol import Bools

if TYPE_CHECKING:
    from .prior_average import AveragedNoise

SMALL = 0.4  # sds: three points in each side of a box are then exact to 1e-7, to 1e-5 at 5 sds
POINTS = (
    (0.02, 1),
    (0.12, 2),
    (SMALL, 3),
    (0.7, 4),
)  # a side in sds given the others: so many points are exact to 4e-4 at 5 sds
MOST_POINTS = 9  # of a box, three in each of two sides: beyond, its variance is added to that of the noise
SAME = 6  # significant digits to which boxes are as wide
AT_ONCE = 200_000  # points
NOTHING = 40.0  # logs below what was found already
EXACT = 2  # columns in intervals: of more a box is computed to a hundredth or so, one column after the other
HOPELESS = -2_000.0  # a log probability from which on its bound is as good
OPEN_END = 38.0  # sds: an end beyond is none


def averaged_boxes(
    noise: AveragedNoise, lower: Floats, upper: Floats, is_point: Bools
) -> tuple[Floats, Floats]:
    """Return the log of the averaged density and probability, and the error of the probability."""
    out, error = np.empty(len(lower)), np.zeros(len(lower))
    with np.errstate(invalid="ignore"):
        widths = np.where(is_point, 0.0, upper - lower)
    is_bounded = np.isfinite(widths)
    kind = is_bounded @ (1 << np.arange(widths.shape[1]))
    for number in np.flatnonzero(np.bincount(kind)):
        here = np.flatnonzero(kind == number)
        finite = is_bounded[here[0]]
        most = np.where(finite, np.where(finite, widths[here], 0.0).max(axis=0), np.inf)
        out[here], error[here] = _alike(noise, lower[here], upper[here], is_point, most)
    return out, error


def _alike(
    noise: AveragedNoise, lower: Floats, upper: Floats, is_point: Bools, widths: Floats
) -> tuple[Floats, Floats]:
    """Return the same for boxes that are bounded in the same columns; the largest sizes come first."""
    total, error = np.full(len(lower), -np.inf), np.zeros(len(lower))
    relative = (widths / noise.noise.resolution).max() / noise.scales  # the widest side at each size
    above, points = 0.0, POINTS if (~is_point).sum() > EXACT else ((SMALL, 3),)
    for most, _ in points:
        these, above = (relative >= above) & (relative < most), most
        if these.any():
            sides = widths / noise.noise.resolution / noise.scales[these].min()
            counts = [next(count for most, count in points if side < most) for side in sides.tolist()]
            counts = [1 if point else count for point, count in zip(is_point, counts, strict=True)]
            _add_small(noise.at(these), lower, upper, is_point, counts, total)
    coarse = np.flatnonzero(relative >= above)
    for k in coarse[np.argsort(-noise.scales[coarse])]:
        log_weight, at = noise.log_weights[k], scaled_noise(noise.noise, float(noise.scales[k]))
        logs, this = _at_node(at, lower, upper, is_point, total - log_weight - NOTHING)
        np.logaddexp(total, log_weight + logs, out=total)
        error += np.exp(log_weight) * this
    return total, error


def _add_small(
    noise: AveragedNoise, lower: Floats, upper: Floats, is_point: Bools, counts: list[int], total: Floats
) -> None:
    """Add to the total what small boxes have: the density at a few points in each that is not too far away."""
    half = np.where(is_point, 0.0, 0.5 * (upper - lower))
    log_volume = np.log(2.0 * half[:, ~is_point]).sum(axis=1)
    near = noise.points(lower + half) + log_volume  # by the middle alone
    is_enough = np.prod(counts) == 1
    here = np.flatnonzero(near > total - NOTHING) if not is_enough else np.arange(len(total))
    if not is_enough and len(here):
        middle, half = lower[here] + half[here], half[here]
        is_many = np.prod(counts) > MOST_POINTS
        near = (
            _with_their_variance(noise, middle, half) if is_many else _in_boxes(noise, middle, half, counts)
        )
        near += log_volume[here]
    total[here] = np.logaddexp(total[here], near)


def _in_boxes(noise: AveragedNoise, middle: Floats, half: Floats, counts: list[int]) -> Floats:
    """Return the logs of the mean density in boxes, by so many points of each side."""
    rules = [leggauss(count) for count in counts]
    grid = np.array(np.meshgrid(*(nodes for nodes, _ in rules), indexing="ij")).reshape(len(rules), -1).T
    logs = [np.log(0.5 * weights) for _, weights in rules]
    log_weights = np.array(np.meshgrid(*logs, indexing="ij")).reshape(len(rules), -1).sum(axis=0)
    out, size = np.empty(len(middle)), AT_ONCE // len(grid) + 1
    for begin in range(0, len(middle), size):
        run = slice(begin, begin + size)
        points = middle[run, None] + half[run, None] * grid
        found = noise.points(points.reshape(-1, points.shape[2])).reshape(points.shape[:2])
        out[run] = log_sum(found + log_weights, axis=1)
    return out


def _with_their_variance(noise: AveragedNoise, middle: Floats, half: Floats) -> Floats:
    """Return the logs of the mean density in boxes by Sheppard's correction: boxes of one width together."""
    with np.errstate(divide="ignore"):
        digits = np.where(half > 0, 10.0 ** (SAME - 1 - np.floor(np.log10(half))), 1.0)
    wide = np.round(half * digits) / digits
    if not np.ptp(wide, axis=0).any():
        return _by_one_width(noise, middle, wide[0])
    widths, which = np.unique(wide, axis=0, return_inverse=True)
    out, order = np.empty(len(middle)), np.argsort(which.ravel(), kind="stable")
    ends = np.cumsum(np.bincount(which.ravel()))
    for width, here in zip(widths, np.split(order, ends[:-1]), strict=True):
        out[here] = _by_one_width(noise, middle[here], width)
    return out


def _by_one_width(noise: AveragedNoise, middle: Floats, half: Floats) -> Floats:
    """Return the same of boxes of one width: in coordinates u in which V is 1 and the boxes' variance a diagonal."""
    sds = np.sqrt(np.diagonal(noise.noise.covariance))
    inside, turn = scipy.linalg.eigh(
        np.diag((half / sds) ** 2 / 3), noise.noise.covariance / np.outer(sds, sds)
    )  # half^2 / 3 is width^2 / 12
    variances = noise.scales[:, None] ** 2 + np.maximum(inside, 0.0)
    log_volume = np.log(sds).sum() - float(np.linalg.slogdet(turn)[1])
    constant = noise.log_weights - 0.5 * np.log(2 * np.pi * variances).sum(axis=1) - log_volume
    out, size = np.empty(len(middle)), AT_ONCE // len(variances) + 1
    for begin in range(0, len(middle), size):
        squares = (middle[begin : begin + size] / sds @ turn) ** 2
        out[begin : begin + size] = log_sum(constant - 0.5 * squares @ (1 / variances).T, axis=1)
    return out


def _at_node(noise: Any, lower: Floats, upper: Floats, points: Bools, least: Floats) -> tuple[Floats, Floats]:
    """Return the logs at one size; what stays below `least` anyway is only bounded."""
    bound, error = _log_upper_bound(noise, lower, upper, points), np.zeros(len(lower))
    here = np.flatnonzero((bound > least) & (bound > HOPELESS))
    reach = np.where(points, np.inf, OPEN_END * np.array(noise.sds))
    low = np.where(lower[here] < -reach, -np.inf, lower[here])
    high = np.where(upper[here] > reach, np.inf, upper[here])
    if len(here) and (~points).sum() > EXACT:
        bound[here] = box_nearly(noise, low, high, np.tile(points, (len(here), 1)), np.ones(low.shape, bool))
    elif len(here):
        bound[here], error[here] = weight_box(noise, low, high, points.tolist())
    return bound, error


def _log_upper_bound(noise: Any, lower: Floats, upper: Floats, points: Bools) -> Floats:
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

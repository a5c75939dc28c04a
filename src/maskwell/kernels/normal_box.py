"""Probabilities of boxes under a normal law, and densities of some coordinates with boxes for the others.

P(lower <= N(0, C) <= upper) is the product of masses of z_k given z_1 .. z_(k-1), averaged over a lattice of uniforms
(Genz 1992), the narrowest coordinate first (Gibson, Glasbey and Elston 1994).
One covariance, many records; boxes that bound one or two coordinates are answered by `normal_box_planes`, small ones
of more by `normal_box_small`. The covariance may be singular: a coordinate that others determine narrows the interval
of the last free coordinate it depends on. A record's answer does not depend on the other records of the call, to the
bit: all is elementwise, and sums run in a fixed order. The laws of correlated noise with limits or units use it
(`laws/noise`), and the density of released values; where many boxes with fewer digits do, `normal_box_lattice`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache, partial

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_ndtr, ndtr, ndtri, ndtri_exp

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
Ints = NDArray[np.intp]
Answer = tuple[Floats, Floats]
Way = tuple[
    Callable[[Floats, Floats], Floats], Callable[[Floats, Floats, Floats], Answer]
]  # masses; with a draw

LOG_2_PI = float(np.log(2.0 * np.pi))
SINGULAR = 1e-12  # a conditional variance below this part of the coordinate's own counts as zero
OFF_SUPPORT = 1e-9  # in sds: further than this from the support of a singular law the density is zero

# Lattice rule, extensible in base 2: Cools, Kuo and Nuyens, SIAM J. Sci. Comput. 28 (2006) 2162-2188.
GENERATOR = np.array(
    [1, 182667, 469891, 498753, 110745, 446247, 250185, 118627, 245333, 283199, 408519, 391023]
    + [246327, 126539, 399185, 461527, 300343, 69681, 516695, 436179, 106383, 238523, 413283, 70841]
)
SHIFTS = 12  # of the lattice: the standard error has 11 degrees of freedom
BLOCK_POINTS = 64  # points of a shift that are added at once; doubled until the error is small enough
MOST_BLOCKS = 256  # 16,384 points of each shift at most
RECORDS_AT_ONCE = 64  # 64 x 12 shifts x 64 points are held at a time
RELATIVE_TOLERANCE = 1e-2  # of P: what an intruder weighs by need not be surer
DEEP_LOG = -100.0  # below this, tail masses are kept as logarithms from the start
SURELY_DEEP_LOG = -110.0  # a bound below this needs no first try


def normal_rectangle(lower: Floats, upper: Floats, covariance: Floats, *, tolerance: float = 1e-6) -> Answer:
    """Return log P(lower <= N(0, covariance) <= upper) of each record, and a bound on the error of P.

    `lower` and `upper` are (n, m), infinite where a side is open. One bounded coordinate: closed form. Two:
    quadrature. More, all within a sd or three (for weights, without a tolerance, all but one): a few nodes along each
    (`normal_box_small`). Else: Genz's separation of variables on a lattice, doubled until the error is below
    `tolerance` and a hundredth of P, or the points are spent; the bound is then 3.5 standard errors over 12 shifts of
    the lattice.
    """
    from .normal_box_planes import few_bounded

    sds = np.sqrt(np.diagonal(covariance))
    scale = np.where(sds > 0.0, sds, 1.0)
    lower, upper = np.divide(lower, scale, order="C"), np.divide(upper, scale, order="C")
    correlation = np.divide(covariance / scale, scale[:, None], order="C")
    log_p, error = np.empty(len(lower)), np.empty(len(lower))
    many = np.flatnonzero(few_bounded(lower, upper, correlation, log_p, error))
    if len(many) and (sds > 0.0).all():
        many = many[_cells(lower, upper, correlation, many, log_p, error, not np.isfinite(tolerance))]
    if not len(many):
        return log_p, error
    bounded = (sds > 0.0) & ((lower[many] > -np.inf) | (upper[many] < np.inf))
    for order, members in _groups(_log_mass(lower[many], upper[many]), bounded):
        records = many[members]
        box, block = np.ix_(records, order), np.ix_(order, order)
        log_p[records], error[records] = _box(lower[box], upper[box], correlation[block], tolerance)
    return log_p, error


def _cells(
    lower: Floats,
    upper: Floats,
    correlation: Floats,
    many: Ints,
    log_p: Floats,
    error: Floats,
    for_weights: bool,
) -> Bools:
    """Answer those of many boxes that are small, for weights also but for one coordinate; return which are left."""
    from .normal_box_small import one_wide, small_boxes

    left = np.ones(len(many), bool)
    for answer in (partial(small_boxes, for_weights=for_weights), *((one_wide,) if for_weights else ())):
        here = np.flatnonzero(left)
        found = np.empty(len(here)), np.empty(len(here))
        still = answer(lower[many[here]], upper[many[here]], correlation, *found)
        done = many[here[~still]]
        log_p[done], error[done] = found[0][~still], found[1][~still]
        left[here] = still
    return left


def conditional_rectangle(
    point: Floats,
    lower: Floats,
    upper: Floats,
    covariance: Floats,
    is_point: Bools,
    *,
    tolerance: float = 1e-6,
) -> Answer:
    """Return the log of (density of the point coordinates) x (probability of the others' box given them).

    All arrays are (n, m); `point` is read where `is_point` (m,), `lower` and `upper` elsewhere. Where the points' own
    law is singular, the density is that on its support, and minus infinity off it. The second array bounds the error
    of the probability.
    """
    law = _conditional_law(np.ascontiguousarray(covariance, float).tobytes(), tuple(is_point.tolist()))
    points, boxed = point[:, is_point], ~is_point
    mean = _combine(law.slopes, points)
    low, high = lower[:, boxed] - mean - law.slack, upper[:, boxed] - mean + law.slack
    log_p, error = normal_rectangle(low, high, law.rest, tolerance=tolerance)
    return law.log_density(points) + log_p, error


@dataclass(frozen=True, slots=True)
class _ConditionalLaw:
    """The law of the points, and of the others given them: all that does not depend on a record."""

    scale: Floats  # sds of the points, 1 for a constant
    whitening: Floats
    off_support: Floats
    log_constant: float
    constants: Bools
    slopes: Floats
    slack: Floats
    rest: Floats

    def log_density(self, point: Floats) -> Floats:
        """Return the log density of each point on the support of the law."""
        off = np.abs(_combine(self.off_support, point))
        size = np.maximum(np.abs(point / self.scale).max(axis=1, initial=0.0), 1.0)
        outside = (off > OFF_SUPPORT * size[:, None]).any(axis=1)
        outside |= (point[:, self.constants] != 0.0).any(axis=1)
        squares = _combine(self.whitening.T, point) ** 2
        total = _combine(np.ones((1, squares.shape[1])), squares)[:, 0]
        return np.where(outside, -np.inf, -0.5 * total - self.log_constant)


@lru_cache(maxsize=256)
def _conditional_law(covariance_bytes: bytes, is_point: tuple[bool, ...]) -> _ConditionalLaw:
    """Decompose a covariance once for all calls: many calls have few records, and the same law."""
    covariance = np.frombuffer(covariance_bytes).reshape(len(is_point), -1)
    given, boxed = np.flatnonzero(is_point), np.flatnonzero(~np.array(is_point, bool))
    scale, vectors, values = _axes(covariance[np.ix_(given, given)])
    kept = values > SINGULAR * max(len(values), 1)
    constants = np.diagonal(covariance)[given] <= 0.0
    whitening = vectors[:, kept] / np.sqrt(values[kept]) / scale[:, None]
    log_constant = 0.5 * (kept.sum() * LOG_2_PI + np.log(values[kept]).sum())
    loadings, variances = covariance[np.ix_(boxed, given)] @ whitening, np.diagonal(covariance)[boxed]
    rest = covariance[np.ix_(boxed, boxed)] - loadings @ loadings.T
    settled = np.diagonal(rest) <= SINGULAR * variances
    return _ConditionalLaw(
        scale=scale,
        whitening=whitening,
        off_support=(vectors[:, ~kept] * ~constants[:, None] / scale[:, None]).T,
        log_constant=log_constant + _log_stretch(scale, vectors[:, kept]),
        constants=constants,
        slopes=loadings @ whitening.T,
        slack=np.where(settled, OFF_SUPPORT * np.sqrt(variances), 0.0),
        rest=np.where(settled | settled[:, None], 0.0, rest),
    )


def _axes(covariance: Floats) -> tuple[Floats, Floats, Floats]:
    """Return sds (1 for a constant), and the axes of the correlations with the variances along them."""
    sds = np.sqrt(np.diagonal(covariance))
    scale = np.where(sds > 0.0, sds, 1.0)
    values, vectors = np.linalg.eigh(covariance / scale / scale[:, None])
    return scale, vectors, values


def _log_stretch(scale: Floats, directions: Floats) -> float:
    """Return the log of the volume of a unit cube of `directions` after each coordinate is multiplied by its scale."""
    order = np.argsort(
        -scale, kind="stable"
    )  # large rows first: so the triangle keeps the digits of the small ones
    triangle = np.linalg.qr((scale[:, None] * directions)[order], mode="r")
    return float(np.log(np.abs(np.diagonal(triangle))).sum())


def _combine(matrix: Floats, rows: Floats) -> Floats:
    """Return rows @ matrix.T, added column by column: the bits of a BLAS product depend on the number of rows."""
    total = np.zeros((len(rows), len(matrix)))
    for j in range(matrix.shape[1]):
        total += rows[:, j, None] * matrix[:, j]
    return total


def _groups(masses: Floats, bounded: Bools) -> Iterator[tuple[Ints, Ints]]:
    """Group the records by their bounded coordinates, the narrowest first: the order Genz's method likes best."""
    if not bounded.any():
        return iter(())
    order = np.argsort(np.where(bounded, masses, np.inf), axis=1, kind="stable")
    order[np.arange(order.shape[1]) >= bounded.sum(axis=1)[:, None]] = -1
    kinds, kind_of, counts = np.unique(order, axis=0, return_inverse=True, return_counts=True)
    members = np.split(np.argsort(kind_of.ravel(), kind="stable"), np.cumsum(counts)[:-1])
    return ((kind[kind >= 0], records) for kind, records in zip(kinds, members, strict=True) if kind[0] >= 0)


def _box(lower: Floats, upper: Floats, correlation: Floats, tolerance: float) -> Answer:
    """Answer records that all have the same bounded coordinates in the same order."""
    loadings = _cholesky(correlation)
    if loadings.shape[1] == 1:
        low, high = _interval(0, [], lower, upper, loadings)
        return _log_mass(low[:, 0], high[:, 0]), np.zeros(len(lower))
    if loadings.shape[1] > len(GENERATOR) + 1:
        raise ValueError(
            f"A box may bound at most {len(GENERATOR) + 1} coordinates; this one has {loadings.shape[1]}."
        )
    lattice = partial(_lattice, loadings=loadings, tolerance=tolerance)
    log_p, error = np.full(len(lower), -np.inf), np.zeros(len(lower))
    near = _most_log_p(lower, upper, correlation) > SURELY_DEEP_LOG
    if near.any():
        log_p[near], error[near] = _in_chunks(partial(lattice, way=NEAR), lower[near], upper[near])
    deep = log_p < DEEP_LOG
    if deep.any():
        log_p[deep], error[deep] = _in_chunks(partial(lattice, way=DEEP), lower[deep], upper[deep])
    return log_p, error


def _most_log_p(lower: Floats, upper: Floats, correlation: Floats) -> Floats:
    """Return an upper bound of log P: the least of those of the first coordinate with one other."""
    from .normal_box_planes import few_bounded

    most, log_p, error = np.zeros(len(lower)), np.empty(len(lower)), np.empty(len(lower))
    for j in range(1, lower.shape[1]):
        pair = [0, j]
        ends = np.ascontiguousarray(lower[:, pair]), np.ascontiguousarray(upper[:, pair])
        few_bounded(*ends, np.ascontiguousarray(correlation[np.ix_(pair, pair)]), log_p, error)
        most = np.minimum(most, log_p)
    return most


def _in_chunks(function: Callable[[Floats, Floats], Answer], lower: Floats, upper: Floats) -> Answer:
    starts = range(0, len(lower), RECORDS_AT_ONCE)
    parts = [function(lower[i : i + RECORDS_AT_ONCE], upper[i : i + RECORDS_AT_ONCE]) for i in starts]
    return np.concatenate([part[0] for part in parts]), np.concatenate([part[1] for part in parts])


def _cholesky(correlation: Floats) -> Floats:
    """Return loadings on independent normals, (m, rank); a coordinate that earlier ones determine adds no column."""
    m = len(correlation)
    loadings, pivots = np.zeros((m, m)), list[int]()
    for i in range(m):
        for j, pivot in enumerate(pivots):
            known = sum(loadings[i, k] * loadings[pivot, k] for k in range(j))
            loadings[i, j] = (correlation[i, pivot] - known) / loadings[pivot, j]
        rest = correlation[i, i] - sum(loading**2 for loading in loadings[i])
        if rest > SINGULAR:
            loadings[i, len(pivots)] = np.sqrt(rest)
            pivots.append(i)
    loadings[np.abs(loadings) < 1e-10] = 0.0
    return loadings[:, : len(pivots)]


def _interval(k: int, drawn: list[Floats], lower: Floats, upper: Floats, loadings: Floats) -> Answer:
    """Return the bounds on the k-th independent normal, given the earlier ones, from all that end in it."""
    low, high = np.full((1, 1), -np.inf), np.full((1, 1), np.inf)
    for i, row in enumerate(loadings):
        if row[k] == 0.0 or row[k + 1 :].any():
            continue
        shift = sum((row[j] * drawn[j] for j in range(k)), np.zeros((1, 1)))
        ends = (lower[:, i, None] - shift) / row[k], (upper[:, i, None] - shift) / row[k]
        low, high = np.maximum(low, np.minimum(*ends)), np.minimum(high, np.maximum(*ends))
    return low, high


def _log_mass(lower: Floats, upper: Floats) -> Floats:
    """Return log P(lower <= N(0, 1) <= upper) elementwise; minus infinity where lower >= upper."""
    with np.errstate(all="ignore"):
        flip = lower + upper > 0.0
        a, b = np.where(flip, -upper, lower), np.where(flip, -lower, upper)
        log_b, width, middle = log_ndtr(b), b - a, 0.5 * (a + b)
        wide = log_b + np.log1p(-np.exp(log_ndtr(a) - log_b))
        bend = np.log1p(width**2 * (middle**2 - 1.0) / 24.0)
        narrow = np.log(width) - 0.5 * (LOG_2_PI + middle**2) + bend
        mass = np.where(width * (np.abs(middle) + width) < 1e-3, narrow, wide)
    return np.where(lower < upper, mass, -np.inf)


def _sum(values: Floats) -> Floats:
    """Sum over the last axis in an order that its length alone decides (numpy's own depends on the shape)."""
    while values.shape[-1] % 2 == 0:
        half = values.shape[-1] // 2
        values = values[..., :half] + values[..., half:]
    total = values[..., 0]
    for k in range(1, values.shape[-1]):
        total = total + values[..., k]
    return total


# --- more coordinates: separation of variables on a lattice --------------------------------------------------


def _lattice(lower: Floats, upper: Floats, *, loadings: Floats, tolerance: float, way: Way) -> Answer:
    """Average the product of conditional masses over more and more lattice points, for each record as it needs."""
    sums = np.zeros((len(lower), SHIFTS))
    log_scale, blocks = np.zeros(len(lower)), np.zeros(len(lower))
    active = np.arange(len(lower))
    for block in range(MOST_BLOCKS):
        log_weights = _log_weights(
            _points(block, loadings.shape[1] - 1), lower[active], upper[active], loadings, way
        )
        if block == 0:
            top = log_weights.max(axis=(1, 2))
            log_scale = np.where(top > -np.inf, top, 0.0)
        sums[active] += _sum(np.exp(log_weights - log_scale[active, None, None]))
        blocks[active] += 1.0
        if block & (block + 1) == 0:
            mean, error = _mean_and_error(sums[active] / (blocks[active, None] * BLOCK_POINTS))
            unsure = (error * np.exp(log_scale[active]) > tolerance) | (error > RELATIVE_TOLERANCE * mean)
            active = active[unsure]
        if not len(active):
            break
    mean, error = _mean_and_error(sums / (blocks[:, None] * BLOCK_POINTS))
    with np.errstate(divide="ignore"):
        return log_scale + np.log(mean), error * np.exp(log_scale)


def _mean_and_error(shift_means: Floats) -> Answer:
    mean = _sum(shift_means) / SHIFTS
    variance = _sum((shift_means - mean[:, None]) ** 2) / (SHIFTS - 1)
    return mean, 3.5 * np.sqrt(variance / SHIFTS)


@lru_cache(maxsize=2 * MOST_BLOCKS)
def _points(block: int, dimensions: int) -> Floats:
    """Return one block of the lattice under all shifts, folded by the tent map: (dimensions, shifts * points)."""
    index = np.arange(block * BLOCK_POINTS, (block + 1) * BLOCK_POINTS)
    bits = np.arange(20)
    fraction = ((index[:, None] >> bits & 1) / 2.0 ** (bits + 1)).sum(axis=1)  # exact: a radical inverse
    along = fraction * GENERATOR[:dimensions, None, None]
    number = np.arange(1.0, SHIFTS * dimensions + 1.0).reshape(dimensions, SHIFTS, 1)
    shifted = (along + number**2 * 0.6180339887498949) % 1.0  # squares of a golden ratio scatter like chance
    folded: Floats = np.clip(np.abs(2.0 * shifted - 1.0), 1e-16, 1.0 - 1e-16)
    return folded.reshape(dimensions, -1)


def _log_weights(points: Floats, lower: Floats, upper: Floats, loadings: Floats, way: Way) -> Floats:
    """Return the log of the product of conditional masses at each point: (records, shifts, points)."""
    rank, (masses, draws) = loadings.shape[1], way
    drawn, log_weight = list[Floats](), np.zeros((len(lower), points.shape[1]))
    for k in range(rank - 1):
        log_mass, draw = draws(*_interval(k, drawn, lower, upper, loadings), points[k])
        drawn.append(draw)
        log_weight += log_mass
    log_weight += masses(*_interval(rank - 1, drawn, lower, upper, loadings))
    return log_weight.reshape(len(lower), SHIFTS, -1)


def _near_log_mass(low: Floats, high: Floats) -> Floats:
    """Return the log mass of [low, high] under N(0, 1), to the digits of the mass."""
    with np.errstate(invalid="ignore", divide="ignore"):
        flip = low + high > 0.0
        below, above = ndtr(np.where(flip, -high, low)), ndtr(np.where(flip, -low, high))
        return np.asarray(np.log(np.maximum(above - below, 0.0)))


def _step(low: Floats, high: Floats, uniform: Floats) -> Answer:
    """Return the log mass of [low, high] under N(0, 1) and the `uniform` quantile of N(0, 1) truncated to it."""
    with np.errstate(invalid="ignore", divide="ignore"):
        flip = low + high > 0.0
        below = ndtr(np.where(flip, -high, low))
        mass = np.maximum(ndtr(np.where(flip, -low, high)) - below, 0.0)
        draw = ndtri(below + mass * np.where(flip, 1.0 - uniform, uniform))
        return np.log(mass), np.where(mass > 0.0, np.where(flip, -draw, draw), 0.0)


def _tail_step(low: Floats, high: Floats, uniform: Floats) -> Answer:
    """`_step` where masses may be below the smallest float64."""
    log_mass = _log_mass(low, high)
    with np.errstate(all="ignore"):
        flip = low + high > 0.0
        log_below = log_ndtr(np.where(flip, -high, low))
        along = log_mass + np.log(np.where(flip, 1.0 - uniform, uniform))
        draw = ndtri_exp(np.minimum(np.logaddexp(log_below, along), -1e-300))
        return log_mass, np.where(log_mass > -np.inf, np.where(flip, -draw, draw), 0.0)


NEAR: Way = (_near_log_mass, _step)
DEEP: Way = (_log_mass, _tail_step)

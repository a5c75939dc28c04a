"""Probabilities that correlated normals fall into boxes: exact in one column, quadrature in two, lattices beyond.

Answers depend on the record alone: the same bits whatever other records are in the batch, no random numbers.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]
Integers = npt.NDArray[np.int64]

TOLERANCE = 1e-6  # absolute error of a probability that ends the refinement of a lattice
SHIFTS, FIRST_POINTS, MOST_POINTS = 12, 64, 4096
CELLS = 1 << 20  # records x points handled at once
SINGULAR = 1e-10  # a variance below this share of the largest counts as none
PRIMES = (2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37, 41, 43, 47, 53, 59, 61, 67, 71, 73, 79, 83, 89, 97, 101)


def conditional_rectangle(
    point: Floats, lower: Floats, upper: Floats, covariance: Floats, is_point: Bools
) -> tuple[Floats, Floats]:
    """Return the log of the density of the point columns times the probability of the others' box given them.

    The second array is the absolute error of that probability. Where the point columns are linearly dependent
    the density is that on their support, and minus infinity off it.
    """
    points, boxes = np.flatnonzero(is_point), np.flatnonzero(~np.asarray(is_point))
    logs, weights = _log_density(point[:, points], covariance[np.ix_(points, points)])
    if not len(boxes):
        return logs, np.zeros(len(point))
    cross = covariance[np.ix_(boxes, points)]
    slope = cross @ weights
    given = covariance[np.ix_(boxes, boxes)] - slope @ cross.T
    centre = _turned(point[:, points], slope)
    box, error = normal_rectangle(lower[:, boxes] - centre, upper[:, boxes] - centre, (given + given.T) / 2)
    return logs + box, error


def _turned(columns: Floats, matrix: Floats) -> Floats:
    """Return `columns @ matrix.T` summed in a fixed order: no bit depends on the number of records."""
    out = np.zeros((len(columns), len(matrix)))
    for i, row in enumerate(matrix):
        for j, weight in enumerate(row):
            out[:, i] += weight * columns[:, j]
    return out


def _log_density(point: Floats, covariance: Floats) -> tuple[Floats, Floats]:
    """Return the log density on the support of a normal law, and the pseudo-inverse of its covariance."""
    width = len(covariance)
    if not width:
        return np.zeros(len(point)), np.zeros((0, 0))
    sds = np.sqrt(np.diag(covariance))
    scale = np.where(sds > 0, sds, 1.0)
    values, vectors = np.linalg.eigh(covariance / np.outer(scale, scale))
    kept = values > SINGULAR * values[-1]
    turned = _turned(point / scale, vectors.T)
    squares = np.zeros(len(point))
    off = np.zeros(len(point), bool)
    for k in range(width):
        if kept[k]:
            squares += turned[:, k] ** 2 / values[k]
        else:
            off |= np.abs(turned[:, k]) > 1e-9 * (1 + np.abs(point / scale).max(axis=1))
    inverse = (vectors[:, kept] / values[kept]) @ vectors[:, kept].T / np.outer(scale, scale)
    constant = (
        np.log(values[kept]).sum()
        + 2 * _log_stretch(scale, vectors[:, kept])
        + kept.sum() * np.log(2 * np.pi)
    )
    return np.where(off, -np.inf, -(squares + constant) / 2), np.asarray(inverse)


def _log_stretch(scale: Floats, support: Floats) -> float:
    """Return the log of how much the scales stretch volumes on the support."""
    stretched = scale[:, None] * support
    return float(np.linalg.slogdet(stretched.T @ stretched)[1]) / 2


def normal_rectangle(
    lower: Floats, upper: Floats, covariance: Floats, *, tolerance: float = TOLERANCE
) -> tuple[Floats, Floats]:
    """Return log P(lower <= N(0, covariance) <= upper) for each record, and the absolute error of P."""
    law = _Triangle.of(covariance)
    logs, error = np.zeros(len(lower)), np.zeros(len(lower))
    fixed = np.ones(len(lower), bool)
    for j in law.constant:
        fixed &= (lower[:, j] <= 0) & (upper[:, j] >= 0)
    empty = (
        ~fixed | (lower > upper).any(axis=1) | (lower == np.inf).any(axis=1) | (upper == -np.inf).any(axis=1)
    )
    wanted = np.flatnonzero(~empty)
    logs[empty] = -np.inf
    if law.rank and len(wanted):
        bounds = lower[wanted], upper[wanted]
        logs[wanted], error[wanted] = _solve(law, *bounds, tolerance)
    return logs, error


@dataclass(frozen=True)
class _Triangle:
    """Columns written as sums of independent normals: column `j` is the sum of `rows[j][k] y[k]`, k < rank.

    `ends[k]` lists the columns whose last term is y[k]: they bound y[k] once the earlier ones are known. In a
    singular law several columns end in the same one.
    """

    rows: Floats
    rank: int
    ends: tuple[tuple[int, ...], ...]
    constant: tuple[int, ...]

    @classmethod
    def of(cls, covariance: Floats) -> _Triangle:
        """Factor by pivots, the largest variance left first."""
        left, width = np.array(covariance, dtype=np.float64), len(covariance)
        size = np.where(np.diag(left) > 0, np.diag(left), 1.0)
        rows, terms = np.zeros((width, width)), 0
        for _ in range(width):
            shares = np.diag(left) / size
            pivot = int(np.argmax(shares))
            if shares[pivot] <= SINGULAR:
                break
            rows[:, terms] = left[:, pivot] / np.sqrt(left[pivot, pivot])
            left = left - np.outer(rows[:, terms], rows[:, terms])
            left[pivot, :] = left[:, pivot] = 0.0
            terms += 1
        rows = np.where(np.abs(rows) > 1e-9 * np.sqrt(size)[:, None], rows, 0.0)[:, :terms]
        last = [int(np.flatnonzero(row)[-1]) if row.any() else -1 for row in rows]
        ends = tuple(tuple(j for j in range(width) if last[j] == k) for k in range(terms))
        return cls(rows, terms, ends, tuple(j for j in range(width) if last[j] < 0))


def _solve(law: _Triangle, lower: Floats, upper: Floats, tolerance: float) -> tuple[Floats, Floats]:
    if law.rank == 1:
        low, high = _bounds(law, 0, lower, upper, np.zeros((len(lower), 0)))
        return _log_mass(low, high), np.zeros(len(lower))
    if law.rank == 2:
        return _in_pieces(len(lower), 800, lambda part: _two(law, lower[part], upper[part]))
    return _by_lattice(law, lower, upper, tolerance)


def _in_pieces(
    count: int, points: int, work: Callable[[slice], tuple[Floats, Floats]]
) -> tuple[Floats, Floats]:
    step = max(1, CELLS // points)
    parts = [work(slice(start, start + step)) for start in range(0, count, step)]
    return np.concatenate([p[0] for p in parts]), np.concatenate([p[1] for p in parts])


def _bounds(law: _Triangle, k: int, lower: Floats, upper: Floats, known: Floats) -> tuple[Floats, Floats]:
    """Return the interval of y[k] given the earlier ones (`known`: records x ... x k)."""
    shape = known.shape[:-1]
    low, high = np.full(shape, -np.inf), np.full(shape, np.inf)
    extra = (1,) * (len(shape) - 1)
    for j in law.ends[k]:
        centre = np.zeros(shape)
        for i in range(k):
            if law.rows[j, i]:
                centre += law.rows[j, i] * known[..., i]
        weight = law.rows[j, k]
        below = (lower[:, j].reshape(-1, *extra) - centre) / weight
        above = (upper[:, j].reshape(-1, *extra) - centre) / weight
        if weight < 0:
            below, above = above, below
        low, high = np.maximum(low, below), np.minimum(high, above)
    return low, np.maximum(low, high)


def _log_mass(low: Floats, high: Floats) -> Floats:
    """Return log P(low <= N(0, 1) <= high), stable in both tails."""
    from .densities import normal_log_interval

    flat = normal_log_interval(np.ravel(low), np.ravel(high), np.ones(low.size))
    return np.asarray(flat).reshape(low.shape)


def _two(law: _Triangle, lower: Floats, upper: Floats) -> tuple[Floats, Floats]:
    """Integrate the second column's probability over the first by Gauss-Legendre on panels where it changes."""
    none = np.zeros((len(lower), 0))
    low, high = _bounds(law, 0, lower, upper, none)
    nodes, weights = np.polynomial.legendre.leggauss(12)
    edges = _panels(law, lower, upper, low, high)
    half = np.diff(edges, axis=1) / 2
    y = (edges[:, :-1] + half)[:, :, None] + half[:, :, None] * nodes
    inner = _log_mass(*_bounds(law, 1, lower, upper, y[..., None]))
    with np.errstate(divide="ignore"):
        logs = inner - y**2 / 2 - np.log(2 * np.pi) / 2 + np.log(half[:, :, None] * weights)
    logs = np.where(half[:, :, None] > 0, logs, -np.inf).reshape(len(lower), -1)
    result = _log_sum(logs)
    return result, 1e-12 * np.exp(np.minimum(result, 0.0))


def _panels(law: _Triangle, lower: Floats, upper: Floats, low: Floats, high: Floats) -> Floats:
    """Return edges that crowd where the integrand changes: its peak, the ends, and the other column's bounds."""
    spots = [np.clip(0.0, low, high)]
    for j in law.ends[1]:
        for bound in (lower[:, j], upper[:, j]):
            slope = law.rows[j, 0]
            if slope:
                at = np.where(np.isfinite(bound), bound / slope, 0.0)
                spots += [at + step * law.rows[j, 1] / slope for step in (-8, -4, -2, -1, 0, 1, 2, 4, 8)]
    peak, reach = spots[0], 1.0 / np.maximum(1.0, np.abs(spots[0]))
    spots += [
        peak + sign * step * reach for sign in (-1, 1) for step in (0.25, 0.5, 1, 2, 3, 4, 6, 8, 12, 24, 39)
    ]
    start = np.maximum(low, np.minimum(peak - 40 * reach, peak))
    end = np.minimum(high, peak + 40 * reach)
    edges = np.sort(np.column_stack([start, end, *spots]), axis=1)
    return np.asarray(np.clip(edges, start[:, None], end[:, None]))


def _log_sum(logs: Floats) -> Floats:
    top = logs.max(axis=-1)
    safe = np.where(np.isfinite(top), top, 0.0)
    with np.errstate(divide="ignore"):
        return np.asarray(safe + np.log(np.exp(logs - safe[..., None]).sum(axis=-1)))


def _by_lattice(law: _Triangle, lower: Floats, upper: Floats, tolerance: float) -> tuple[Floats, Floats]:
    """Average over shifted lattices (Genz), doubling the points of those records whose error is still large."""
    logs, error = np.empty(len(lower)), np.full(len(lower), np.inf)
    todo, points = np.arange(len(lower)), FIRST_POINTS
    while len(todo) and points <= MOST_POINTS:
        lattice = _lattice(law.rank - 1, points)
        step = max(1, CELLS // lattice[..., 0].size)
        for start in range(0, len(todo), step):
            some = todo[start : start + step]
            logs[some], error[some] = _averaged(law, lower[some], upper[some], lattice)
        todo, points = todo[error[todo] > tolerance], 2 * points
    return logs, error


def _lattice(width: int, points: int) -> Floats:
    """Return shifts x points x width: a Richtmyer lattice with fixed shifts, folded to be periodic."""
    roots = np.sqrt(
        np.array([PRIMES[k % len(PRIMES)] + 101 * (k // len(PRIMES)) for k in range(width)], float)
    )
    steps = np.outer(np.arange(1, points + 1), roots)
    shifts = np.outer(
        np.arange(SHIFTS), np.sqrt(np.array([103.0, 107.0, 109.0, 113.0])[np.arange(width) % 4] + roots)
    )
    placed = (steps[None] + shifts[:, None]) % 1.0
    return np.asarray(np.clip(np.abs(2 * placed - 1), 1e-12, 1 - 1e-12))


def _averaged(law: _Triangle, lower: Floats, upper: Floats, lattice: Floats) -> tuple[Floats, Floats]:
    records, (shifts, points, _) = len(lower), lattice.shape
    known = np.empty((records, shifts, points, law.rank - 1))
    logs = np.zeros((records, shifts, points))
    for k in range(law.rank):
        low, high = _bounds(law, k, lower, upper, known[..., :k])
        logs += _log_mass(low, high)
        if k < law.rank - 1:
            known[..., k] = _inside(low, high, lattice[..., k])
    each = _log_sum(logs) - np.log(points)
    mean = _log_sum(each) - np.log(shifts)
    spread = np.exp(np.minimum(each, 0.0)).std(axis=1, ddof=1) / np.sqrt(shifts)
    return mean, 3.5 * spread


def _inside(low: Floats, high: Floats, share: Floats) -> Floats:
    """Return the normal quantile that lies a given share of the way from low to high, stable in both tails."""
    from scipy.special import ndtr, ndtri

    flip = low > 0
    a, b = np.where(flip, -high, low), np.where(flip, -low, high)
    way = np.where(flip, 1 - share, share)
    start = ndtr(a)
    y = ndtri(start + way * (ndtr(b) - start))
    nearest = np.where(np.isfinite(b), b, 0.0)
    y = np.clip(np.where(np.isfinite(y), y, nearest), a, b)
    return np.asarray(np.where(flip, -y, y))

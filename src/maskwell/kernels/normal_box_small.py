"""Probabilities of small boxes of several coordinates under a normal law: the cells of values rounded to coarse units.

Within a cell that is not much wider than the law is along each coordinate the density is smooth, and a few nodes of
Gauss and Legendre along each coordinate integrate it (Abramowitz and Stegun 1964, 25.4.29). What fewer nodes give
instead tells the error, of cells far out along strong correlations (P below 1e-5) not always enough. For weights, right
to a hundredth, fewer nodes do, and one coordinate may be wide or have no end: given the nodes of the others its
interval has a closed form. Chosen by `normal_box`, which leaves wider cells to its lattice.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit
from numpy.polynomial.legendre import leggauss
from numpy.typing import NDArray

from . import announce
from .densities import log_normal_interval

announce(__file__)

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

LOG_2_PI = math.log(2.0 * math.pi)
NODES = ((1.6, 3), (3.2, 5))  # widths in sds given the other coordinates, up to which so many nodes do
WEIGHT_NODES = ((0.2, 2), (1.6, 3), (2.4, 4), (3.2, 5))  # the same for weights, right to a hundredth
# In a cell, of 14 ns each: beyond these a lattice is nearly as quick
MOST_POINTS, MOST_WEIGHT_POINTS = 1_000, 10_000
CROSSING = 1e-3  # of P: two rules may agree by chance where their errors cross
HUNDREDTH = 0.01  # of P: what a weight is right to, or a lattice has to do
SINGULAR = 1e-9  # the least eigenvalue of correlations
FAR = 1000.0  # squared sds from the centre: nothing is left there that anybody weighs


def small_boxes(
    lower: Floats,
    upper: Floats,
    correlation: Floats,
    log_p: Floats,
    error: Floats,
    *,
    for_weights: bool = False,
) -> Bools:
    """Fill log P and the error of P of those boxes that are small; return which are left.

    The law has unit variances and `correlation`; boxes are (n, m), with infinite ends where a side is open.
    """
    left = np.ones(len(lower), bool)
    size = len(correlation)
    try:
        root = np.linalg.cholesky(correlation)
    except np.linalg.LinAlgError:
        return left
    whitening = np.linalg.inv(root)
    sds = 1.0 / np.sqrt((whitening**2).sum(axis=0))  # of each coordinate given the others
    with np.errstate(invalid="ignore"):
        widest = ((upper - lower) / sds).max(axis=1)
        possible = (upper > lower).all(axis=1)
    constant = 0.5 * size * LOG_2_PI + float(np.log(np.diagonal(root)).sum())
    most_points = MOST_WEIGHT_POINTS if for_weights else MOST_POINTS
    for most, count in WEIGHT_NODES if for_weights else NODES:
        if count**size > most_points:
            break
        here = np.flatnonzero(left & possible & (widest <= most))
        ends = np.ascontiguousarray(lower[here]), np.ascontiguousarray(upper[here])
        log_p[here] = _gauss_legendre_logs(*ends, whitening, constant, count)
        share = _relative_error(
            log_p[here] - _gauss_legendre_logs(*ends, whitening, constant, count - 1), count
        )
        error[here] = np.exp(log_p[here]) * (share + CROSSING)
        left[here] = for_weights & (share > HUNDREDTH)  # more nodes may do
    return left


def one_wide(lower: Floats, upper: Floats, correlation: Floats, log_p: Floats, error: Floats) -> Bools:
    """Do as `small_boxes` for weights, with boxes of which all coordinates are small but one."""
    left, size = np.ones(len(lower), bool), len(correlation)
    if np.linalg.eigvalsh(correlation)[0] <= SINGULAR:
        return left
    sds = 1.0 / np.sqrt(np.diagonal(np.linalg.inv(correlation)))
    with np.errstate(invalid="ignore"):
        widths = (upper - lower) / sds
        possible = (upper > lower).all(axis=1)
    for wide in range(size):
        order = np.array([*(j for j in range(size) if j != wide), wide])
        widest = np.delete(widths, wide, axis=1).max(axis=1)
        whitening = np.linalg.inv(np.linalg.cholesky(correlation[np.ix_(order, order)]))
        constant = 0.5 * (size - 1) * LOG_2_PI - float(np.log(np.diagonal(whitening)[:-1]).sum())
        for most, count in WEIGHT_NODES:
            here = np.flatnonzero(left & possible & (widest <= most))
            if count ** (size - 1) > MOST_WEIGHT_POINTS or not len(here):
                continue
            ends = lower[np.ix_(here, order)], upper[np.ix_(here, order)]
            log_p[here] = _weighed_open(*ends, whitening, constant, count)
            rough = _weighed_open(*ends, whitening, constant, count - 1)
            share = _relative_error(log_p[here] - rough, count)
            error[here] = np.exp(log_p[here]) * (share + CROSSING)
            left[here] = share > HUNDREDTH
    return left


def _weighed_open(lower: Floats, upper: Floats, whitening: Floats, constant: float, count: int) -> Floats:
    nodes, weights = leggauss(count)
    out = np.empty(len(lower))
    open_cell_logs(lower, upper, whitening, (nodes, 0.5 * weights), out)
    return out - constant


def _relative_error(log_ratio: Floats, count: int) -> Floats:
    """Return the error of a rule by what one node less gives, for one of two nodes by the square of that.

    Along a side h that lies x sds away one node errs by h^2 (x^2 - 1) / 24, two by h^4 (x^4 - 6 x^2 + 3) / 4320.
    """
    difference = np.abs(np.expm1(-log_ratio))
    return np.asarray(difference**2 if count == 2 else difference)


def _gauss_legendre_logs(
    lower: Floats, upper: Floats, whitening: Floats, constant: float, count: int
) -> Floats:
    nodes, weights = leggauss(count)
    out = np.empty(len(lower))
    cell_logs(lower, upper, whitening, (nodes, 0.5 * weights), out)
    return out - constant


@njit(cache=True, nogil=True, error_model="numpy")
def _middle(lower: Floats, upper: Floats, whitening: Floats, x: Floats) -> tuple[float, float]:
    """Put the first coordinates of a cell's middle into x; return the log of their volume, and |W x|^2 of them."""
    log_volume, square = 0.0, 0.0
    for j in range(len(x)):
        log_volume += math.log(upper[j] - lower[j])
        x[j] = 0.5 * (lower[j] + upper[j])
        y = 0.0
        for k in range(j + 1):
            y += whitening[j, k] * x[k]
        square += y * y
    return log_volume, square


@njit(cache=True, nogil=True, error_model="numpy")
def cell_logs(
    lower: Floats, upper: Floats, whitening: Floats, rule: tuple[Floats, Floats], out: Floats
) -> None:
    """Fill the log of the integral of exp(-|W x|^2 / 2) over each cell, W lower triangular."""
    nodes, weights = rule
    size = whitening.shape[0]
    x, turn = np.empty(size), np.zeros(size, np.int64)
    square, weight = np.zeros(size + 1), np.ones(size + 1)
    for i in range(len(lower)):
        log_volume, centre = _middle(lower[i], upper[i], whitening, x)
        total, level = 0.0, 0
        turn[0] = 0
        while level >= 0 and centre < FAR:
            if turn[level] == len(nodes):
                level -= 1
                if level >= 0:
                    turn[level] += 1
                continue
            middle, half = (
                0.5 * (lower[i, level] + upper[i, level]),
                0.5 * (upper[i, level] - lower[i, level]),
            )
            x[level] = middle + half * nodes[turn[level]]
            y = 0.0
            for k in range(level + 1):
                y += whitening[level, k] * x[k]
            square[level + 1] = square[level] + y * y
            weight[level + 1] = weight[level] * weights[turn[level]]
            if level == size - 1:
                total += float(weight[size]) * math.exp(0.5 * (centre - square[size]))
                turn[level] += 1
            else:
                level += 1
                turn[level] = 0
        out[i] = log_volume - 0.5 * centre + (math.log(total) if centre < FAR else 0.0)


@njit(cache=True, nogil=True, error_model="numpy")
def open_cell_logs(
    lower: Floats, upper: Floats, whitening: Floats, rule: tuple[Floats, Floats], out: Floats
) -> None:
    """Fill the same with the last coordinate in a closed form, so that it may have any width."""
    nodes, weights = rule
    last = whitening.shape[0] - 1
    x, turn = np.empty(last), np.zeros(last, np.int64)
    square, weight = np.zeros(last + 1), np.ones(last + 1)
    steep = whitening[last, last]
    for i in range(len(lower)):
        log_volume, centre = _middle(lower[i], upper[i], whitening, x)
        shift = 0.0
        for j in range(last):
            shift += whitening[last, j] * x[j]
        low, high = steep * lower[i, last], steep * upper[i, last]
        middle_log = log_normal_interval(low + shift, high + shift, 1.0) - 0.5 * centre
        out[i] = log_volume + middle_log
        if not middle_log > -0.5 * FAR:
            continue
        total, level = 0.0, 0
        turn[0] = 0
        while level >= 0:
            if turn[level] == len(nodes):
                level -= 1
                if level >= 0:
                    turn[level] += 1
                continue
            half = 0.5 * (upper[i, level] - lower[i, level])
            x[level] = lower[i, level] + half * (1.0 + nodes[turn[level]])
            y = 0.0
            for k in range(level + 1):
                y += whitening[level, k] * x[k]
            square[level + 1] = square[level] + y * y
            weight[level + 1] = weight[level] * weights[turn[level]]
            if level < last - 1:
                level += 1
                turn[level] = 0
                continue
            shift = 0.0
            for k in range(last):
                shift += whitening[last, k] * x[k]
            log = log_normal_interval(low + shift, high + shift, 1.0) - 0.5 * square[last]
            total += float(weight[last]) * math.exp(log - middle_log)
            turn[level] += 1
        out[i] += math.log(total)

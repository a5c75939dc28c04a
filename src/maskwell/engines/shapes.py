"""The three shapes of work, written once over any way of cutting the records into parts."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ..errors import BadPlan
from ..kernels.summation import BLOCK, grids, partial, total

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]
Part = slice | Integers
Parts = Callable[[int], Iterable[Part]]


@dataclass(frozen=True, slots=True)
class Moments:
    """Counts, means and variances of open values, correlations over pairwise-open records (NaN: undefined)."""

    counts: Floats
    means: Floats
    variances: Floats
    correlations: Floats
    low: Floats
    high: Floats
    closed_pairs: bool

    @property
    def sds(self) -> Floats:
        """The standard deviations (n - 1)."""
        return np.sqrt(self.variances)


def moments(values: Floats, parts: Parts) -> Moments:
    """Sum on exact grids, so that no bit depends on the order of records or on how they are cut."""
    try:
        with np.errstate(over="ignore"):
            return _moments(values, parts)
    except OverflowError:
        raise BadPlan("a column holds numbers so large that their squares overflow: rescale it") from None


def _moments(values: Floats, parts: Parts) -> Moments:
    low, high, counts = _ranges(values, parts)
    largest = np.maximum(np.abs(low), np.abs(high))
    means = _sums(values, parts, largest, lambda block: map(_zero_filled, block)) / np.maximum(counts, 1)
    if counts.min(initial=len(values)) == len(values):
        return _complete(values, parts, means, low, high)
    return _pairwise(values, parts, means, low, high, counts)


def _ranges(values: Floats, parts: Parts) -> tuple[Floats, Floats, Floats]:
    """Return the least and largest open value of each column and how many there are."""
    width = values.shape[1]
    low, high, counts = np.full(width, np.inf), np.full(width, -np.inf), np.zeros(width)
    for part in parts(len(values)):
        for j in range(width):
            column = values[part, j]
            low[j] = np.fmin(low[j], np.fmin.reduce(column))
            high[j] = np.fmax(high[j], np.fmax.reduce(column))
            counts[j] += len(column) - np.count_nonzero(np.isnan(column))
    return np.where(counts > 0, low, 0.0), np.where(counts > 0, high, 0.0), counts


def _sums(
    values: Floats, parts: Parts, largest: Floats, form: Callable[[list[Floats]], Iterable[Floats]]
) -> Floats:
    """Sum the columns that `form` makes of the columns of each block of records."""
    grid = grids(largest, len(values))
    running = np.zeros(grid.shape)
    for part in parts(len(values)):
        for block in _blocks(values, part):
            for j, column in enumerate(form(block)):
                running[:, j] += partial(column, grid[:, j])
    return total(running)


def _blocks(values: Floats, part: Part) -> Iterator[list[Floats]]:
    """Cut a part into blocks of columns that stay near the processor."""
    columns = [values[part, j] for j in range(values.shape[1])]
    for start in range(0, len(columns[0]) if columns else 0, BLOCK):
        yield [column[start : start + BLOCK] for column in columns]


def _zero_filled(column: Floats) -> Floats:
    """Return a column with 0 for closed values."""
    closed = np.isnan(column)
    return np.where(closed, 0.0, column) if closed.any() else column


def _complete(values: Floats, parts: Parts, means: Floats, low: Floats, high: Floats) -> Moments:
    width, count = len(means), len(values)
    rows, columns = np.triu_indices(width)
    bound = np.maximum(np.abs(low - means), np.abs(high - means))

    def products(block: list[Floats]) -> Iterator[Floats]:
        centred = [column - mean for column, mean in zip(block, means, strict=True)]
        yield from centred
        for i, j in zip(rows, columns, strict=True):
            yield centred[i] * centred[j]

    both = _sums(values, parts, np.concatenate([bound, bound[rows] * bound[columns]]), products)
    drift, sums = both[:width], both[width:]
    matrix = np.zeros((width, width))
    matrix[rows, columns] = matrix[columns, rows] = sums - drift[rows] * drift[columns] / max(count, 1)
    covariance = matrix / max(count - 1, 1)
    variances = np.diag(covariance).copy()
    counts = np.full(width, float(count))
    return Moments(counts, means, variances, _correlations(covariance), low, high, closed_pairs=False)


def _correlations(covariance: Floats) -> Floats:
    sds = np.sqrt(np.diag(covariance))
    with np.errstate(divide="ignore", invalid="ignore"):
        correlations = covariance / np.outer(sds, sds)
    np.fill_diagonal(correlations, 1.0)
    return np.asarray(np.clip(correlations, -1.0, 1.0))


def _pairwise(
    values: Floats, parts: Parts, means: Floats, low: Floats, high: Floats, counts: Floats
) -> Moments:
    """Correlate each pair over the records where both are open."""
    width = len(means)
    bound = np.maximum(np.abs(low - means), np.abs(high - means))
    pairs = [(i, j) for i in range(width) for j in range(i, width)]
    limits = [_pair_limits(bound[i], bound[j]) for i, j in pairs]
    sums = _sums(values, parts, np.concatenate(limits), lambda block: _pair_columns(block, means, pairs))
    correlations, variances = np.eye(width), np.zeros(width)
    for (i, j), (n, a, b, aa, bb, ab) in zip(pairs, sums.reshape(-1, 6), strict=True):
        if i == j:
            variances[i] = (aa - a * a / n) / (n - 1) if n > 1 else 0.0
        else:
            with np.errstate(divide="ignore", invalid="ignore"):
                spread = (aa - a * a / n) * (bb - b * b / n) if n > 1 else np.float64(np.nan)
                correlation = (ab - a * b / n) / np.sqrt(spread) if n > 1 else np.float64(np.nan)
            correlations[i, j] = correlations[j, i] = np.clip(correlation, -1.0, 1.0)
    return Moments(counts, means, variances, correlations, low, high, closed_pairs=True)


def _pair_limits(a: float, b: float) -> Floats:
    return np.array([1.0, a, b, a * a, b * b, a * b])


def _pair_columns(block: list[Floats], means: Floats, pairs: list[tuple[int, int]]) -> Iterator[Floats]:
    """Yield what each pair sums: its records, both columns, their squares and their product, where both are open."""
    is_open = [(~np.isnan(column)).astype(np.float64) for column in block]
    centred = [_zero_filled(column - mean) for column, mean in zip(block, means, strict=True)]
    squares = [column * column for column in centred]
    for i, j in pairs:
        yield is_open[i] * is_open[j]
        yield centred[i] * is_open[j]
        yield centred[j] * is_open[i]
        yield squares[i] * is_open[j]
        yield squares[j] * is_open[i]
        yield centred[i] * centred[j]


def per_record(work: Callable[[Part], Floats], count: int, width: int, parts: Parts) -> Floats:
    """Run work on every part and put the answers in their places."""
    out = np.empty((count, width), order="F")
    for part in parts(count):
        out[part] = work(part)
    return out


def per_block(
    work: Callable[[Integers], Floats],
    blocks: Integers,
    width: int,
    parts: Callable[[Integers], Iterable[Integers]],
) -> Floats:
    """Run work on the records of each block and put the answers in their places."""
    out = np.empty((len(blocks), width), order="F")
    order = np.argsort(blocks, kind="stable")
    edges = np.flatnonzero(np.diff(blocks[order], prepend=blocks[order[:1]] - 1 if len(blocks) else 0))
    for which in parts(np.arange(len(edges))):
        for block in which:
            end = edges[block + 1] if block + 1 < len(edges) else len(order)
            records = order[edges[block] : end]
            out[records] = work(records)
    return out

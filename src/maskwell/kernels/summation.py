"""Sums of float64 that are the same to the last bit in any order and any partition of the records.

After Demmel and Nguyen (2013). The largest magnitude and the number of values fix a few grids, coarse to fine. Each
value is cut into its parts on these grids; parts on one grid add up without rounding, so no order and no partition can
change a bit. The last sum, over the grids, is made once. Values are (n, k), summed column by column, or (n,).
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]

DIGITS = 53  # binary digits of a double
SMALLEST_EXPONENT, LARGEST_EXPONENT = -1022, 1008  # some room is left for what is done with the sums
LOST = -50  # what falls below the last grid is at most 2**LOST of the largest value, 1e-15 of all magnitudes
MOST_VALUES = 2**31  # beyond, too few digits of a grid would be left
BLOCK = 16_384  # values handled at once: they stay near the processor


def grids(max_abs: npt.ArrayLike, count: int) -> Floats:
    """Return levels x columns: the constants that cut `count` values of at most `max_abs` into exact pieces.

    Raises OverflowError where that many values that large could add up beyond the largest double.
    """
    largest = np.asarray(max_abs, dtype=np.float64)
    if not np.isfinite(largest).all():
        raise OverflowError("missing or infinite values cannot be summed")
    if count > MOST_VALUES:
        raise OverflowError(f"{count:,} values are too many to be summed exactly")
    carry = math.ceil(math.log2(max(count, 1)))
    spare = max(carry - 1, 1)  # a grid of 53 digits holds `count` values that use 53 - spare of them
    first = np.frexp(largest)[1] + spare
    if first.max(initial=0) > LARGEST_EXPONENT:
        raise OverflowError("the values are too large to be summed")
    levels = 1 + max(math.ceil((carry + spare - DIGITS + 1 - LOST) / (DIGITS - spare)), 1)
    exponents = first - np.arange(levels).reshape(-1, *[1] * first.ndim) * (DIGITS - spare)
    return np.asarray(np.ldexp(1.5, np.maximum(exponents, SMALLEST_EXPONENT)))


def partial(values: Floats, grid: Floats) -> Floats:
    """Return levels x columns: the exact sum of the pieces; partial sums can be added in any order, exactly."""
    out = np.zeros((len(grid), math.prod(grid.shape[1:])))
    rest, piece = np.empty((2, min(BLOCK, len(values))))
    for j, constants in enumerate(grid.reshape(out.shape).T):
        column = values[:, j] if values.ndim == 2 else values
        for start in range(0, len(column), BLOCK):
            block = column[start : start + BLOCK]
            _cut(block, rest[: len(block)], piece[: len(block)], constants, out[:, j])
    return out.reshape(grid.shape)


def _cut(values: Floats, rest: Floats, piece: Floats, constants: Floats, out: Floats) -> None:
    """Add the pieces of some values, level by level, to what is there; exact, so numpy may add as it likes."""
    left = values
    for level, constant in enumerate(constants):
        np.add(left, constant, out=piece)
        np.subtract(piece, constant, out=piece)
        out[level] += piece.sum()
        if level + 1 < len(constants):
            left = np.subtract(left, piece, out=rest)


def total(partials: Floats) -> Floats:
    """Return the sum of each column from its partial sums, rounded once; a 0-d array for a vector."""
    columns = partials.reshape(len(partials), -1).T
    return np.array([math.fsum(column) for column in columns]).reshape(partials.shape[1:])


def reproducible_sum(values: Floats) -> Floats:
    """Return the sum over the records, of all in one piece."""
    return total(partial(values, grids(np.abs(values).max(axis=0, initial=0.0), len(values))))

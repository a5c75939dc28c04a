"""Sums of float64 whose bits depend neither on order nor on how the records were cut into chunks.

After Demmel and Nguyen (2013): the largest magnitude and the number of values fix a few nested grids, coarse to fine.
Each value is split into its parts on these grids; parts on one grid add up without rounding, whatever the order.
All functions work column by column on (n, k) matrices, or on plain vectors.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]

THREE_GRIDS_SUFFICE = 2**28  # values; beyond, a fourth grid keeps the error below 1e-15 of the sum of magnitudes
MOST_VALUES = 2**40


def grids(max_abs: ArrayLike, count: int) -> Floats:
    """Return the splitting constants, one row a grid, for `count` values no larger than `max_abs` (per column).

    Raises OverflowError where `count` such values could add up beyond the largest float64.
    """
    largest = np.asarray(max_abs, dtype=np.float64)
    if not np.isfinite(largest).all():
        raise OverflowError("A sum has infinite or missing values among its terms.")
    if not 0 <= count <= MOST_VALUES:
        raise OverflowError(f"A reproducible sum takes at most {MOST_VALUES} values; there are {count}.")
    headroom = max(math.ceil(math.log2(max(count, 1))) - 1, 1)
    first = np.frexp(largest)[1] + headroom
    if (first > 1022).any():
        raise OverflowError("A sum of so many and so large values may exceed the largest float64.")
    levels = 3 if count <= THREE_GRIDS_SUFFICE else 4
    exponents = np.stack([first - level * (53 - headroom) for level in range(levels)])
    return np.ldexp(1.5, np.maximum(exponents, -1022))  # at -1022 the grid is that of the subnormals


def partial(values: Floats, constants: Floats) -> Floats:
    """Return the exact sums of the parts of `values` on each grid; such partial sums may be added in any order."""
    rest = np.array(np.asarray(values, dtype=np.float64).T, order="C")  # a copy, each column in one piece
    part = np.empty_like(rest)
    sums = np.empty(constants.shape)
    for level, constant in enumerate(constants[..., None]):
        np.add(rest, constant, out=part)
        part -= constant
        rest -= part
        sums[level] = part.sum(axis=-1)  # exact, so that numpy's order of summation does not matter
    return sums


def total(partials: Floats) -> Floats:
    """Return the sum over all grids, rounded once."""
    columns = partials.reshape(len(partials), -1).T
    return np.array([math.fsum(column) for column in columns]).reshape(partials.shape[1:])


def reproducible_sum(values: Floats) -> Floats:
    """Return the sum over the first axis, the same bits for any order of the records."""
    values = np.asarray(values, dtype=np.float64)
    return total(partial(values, grids(np.abs(values).max(axis=0, initial=0.0), len(values))))

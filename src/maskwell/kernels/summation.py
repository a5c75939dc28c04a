"""Sums that are the same to the last bit for any order and any partition (draft by the lead; to be replaced)."""
from __future__ import annotations
import numpy as np
import numpy.typing as npt
Floats = npt.NDArray[np.float64]
def grids(max_abs: Floats, count: int) -> Floats:
    bits = int(np.ceil(np.log2(max(count, 2)))) + 2
    top = np.ceil(np.log2(np.where(np.asarray(max_abs) > 0, max_abs, 1.0)))
    return np.array([1.5 * 2.0 ** (top + bits - k * (53 - bits - 1)) for k in range(3)])
def partial(values: Floats, grid: Floats) -> Floats:
    out = np.zeros(grid.shape)
    rest = values
    for k in range(len(grid)):
        part = (rest + grid[k]) - grid[k]
        out[k] = part.sum(axis=0)
        rest = rest - part
    return out
def total(partials: Floats) -> Floats:
    return np.asarray((partials[2] + partials[1]) + partials[0])

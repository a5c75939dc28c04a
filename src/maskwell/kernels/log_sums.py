"""Logs of sums of exponentials: log sum_i exp(a_i) = max a + log sum_i exp(a_i - max a), so that nothing overflows.

Used wherever densities in arrays are added up; loops have `densities.log_add` and `log_total`. Plain numpy, so that
importing it loads no compiler.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]


def log_sum(logs: Floats, axis: int) -> Floats:
    """Return the log of summed exponentials, minus infinity where all are."""
    top = logs.max(axis=axis, initial=-np.inf, keepdims=True)
    shift = np.where(np.isfinite(top), top, 0.0)
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(np.exp(logs - shift).sum(axis=axis)) + shift.squeeze(axis))

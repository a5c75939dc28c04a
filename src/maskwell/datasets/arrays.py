"""The kinds of arrays the survey is made of."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Flags = NDArray[np.bool_]


def read_only(array: NDArray[Any]) -> NDArray[Any]:
    """Keep a cached array from being changed by who asked for it."""
    array.setflags(write=False)
    return array

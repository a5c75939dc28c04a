"""How work is cut into pieces: three shapes (moments, per record, per block) that give the same bits anywhere."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import numpy as np
import numpy.typing as npt

from .shapes import Floats, Moments, Part

__all__ = ["Engine", "Floats", "Moments", "Part"]


class Engine(Protocol):
    """The three shapes in which work on a file is asked for."""

    def moments(self, values: Floats) -> Moments:
        """Return means, variances and pairwise correlations of the open values."""

    def per_record(self, work: Callable[[Part], Floats], count: int, width: int) -> Floats:
        """Run work on parts of the records and put the answers in their places."""

    def per_block(
        self, work: Callable[[npt.NDArray[np.int64]], Floats], blocks: npt.NDArray[np.int64], width: int
    ) -> Floats:
        """Run work on the records of each block and put the answers in their places."""

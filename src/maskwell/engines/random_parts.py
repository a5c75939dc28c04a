"""An engine that cuts the records into random pieces, to prove that nothing depends on how they are cut."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from . import shapes
from .shapes import Floats, Integers, Moments, Part


@dataclass(frozen=True, slots=True)
class ChoppedEngine:
    """Work on random pieces in random order; the same seed gives the same pieces."""

    pieces: int = 7
    seed: int = 0

    def _parts(self, count: int) -> Iterator[Part]:
        shuffled = np.argsort(_words(self.seed, count), kind="stable").astype(np.int64)
        yield from (piece for piece in np.array_split(shuffled, self.pieces) if len(piece))

    def moments(self, values: Floats) -> Moments:
        """Return means, variances and pairwise correlations of the open values."""
        return shapes.moments(values, self._parts)

    def per_record(self, work: Callable[[Part], Floats], count: int, width: int) -> Floats:
        """Run work on parts of the records and put the answers in their places."""
        return shapes.per_record(work, count, width, self._parts)

    def per_block(self, work: Callable[[Integers], Floats], blocks: Integers, width: int) -> Floats:
        """Run work on the records of each block and put the answers in their places."""

        def chopped(which: Integers) -> Iterator[Integers]:
            return (which[part] for part in self._parts(len(which)))

        return shapes.per_block(work, blocks, width, chopped)


def _words(seed: int, count: int) -> np.ndarray[tuple[int], np.dtype[np.uint64]]:
    stretched = hashlib.shake_256(f"chopped {seed}".encode()).digest(8 * count)
    return np.frombuffer(stretched, np.uint64)

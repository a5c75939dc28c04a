"""The ordinary engine: chunks of 65,536 records, one after the other."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from . import shapes
from .shapes import Floats, Integers, Moments, Part

CHUNK = 65_536


@dataclass(frozen=True, slots=True)
class Local:
    """Work in consecutive chunks, small enough to stay near the processor."""

    chunk: int = CHUNK

    def _parts(self, count: int) -> Iterator[Part]:
        for start in range(0, count, self.chunk):
            yield slice(start, min(start + self.chunk, count))

    def moments(self, values: Floats) -> Moments:
        """Return means, variances and pairwise correlations of the open values."""
        return shapes.moments(values, self._parts)

    def per_record(self, work: Callable[[Part], Floats], count: int, width: int) -> Floats:
        """Run work on parts of the records and put the answers in their places."""
        return shapes.per_record(work, count, width, self._parts)

    def per_block(self, work: Callable[[Integers], Floats], blocks: Integers, width: int) -> Floats:
        """Run work on the records of each block and put the answers in their places."""
        return shapes.per_block(work, blocks, width, lambda which: [which])

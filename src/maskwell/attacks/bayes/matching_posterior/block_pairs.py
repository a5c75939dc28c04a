"""Records that take part, sorted by block, and their pairs with the released ones of the same block."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ....table import Floats, Table
from ...protocol import Ints

if TYPE_CHECKING:
    from ....kernels.matching_noise_mcmc import BlockPlace


@dataclass(frozen=True, slots=True)
class Side:
    """Records of one table that take part, sorted by block: their numbers, and where each block begins and ends."""

    table: Table
    records: Ints
    ends: Ints

    @classmethod
    def of(cls, table: Table, codes: Ints, blocks: Ints) -> Side:
        """Sort the records of some blocks (given in rising order) by block."""
        place = np.searchsorted(blocks, codes)
        here = np.flatnonzero(blocks[np.minimum(place, len(blocks) - 1)] == codes)
        order = here[np.argsort(place[here], kind="stable")]
        return cls(
            table, order, np.concatenate([[0], np.cumsum(np.bincount(place[here], minlength=len(blocks)))])
        )

    @property
    def sizes(self) -> Ints:
        """How many records each block has."""
        return np.diff(self.ends)

    @property
    def block(self) -> Ints:
        """The number of each record's block."""
        return np.repeat(np.arange(len(self.ends) - 1), self.sizes)


@dataclass(frozen=True, slots=True)
class BlockPairs:
    """All pairs of one side with the released records of the same block, in one row: (a, i) at `row[a] + i`."""

    side: Side
    released: Side

    @property
    def row(self) -> Ints:
        """Where each row begins, less the number of its first record."""
        block, widths = self.side.block, self.released.sizes
        return np.concatenate([[0], np.cumsum(widths[block])])[:-1] - self.released.ends[block]

    @property
    def count(self) -> int:
        """How many pairs there are."""
        return int((self.side.sizes * self.released.sizes).sum())

    def listed(self) -> tuple[Ints, Ints]:
        """Return the record numbers of all pairs: released ones, and those of the side."""
        nothing = np.empty(0, np.int64)
        z = [np.tile(self.released.records[b], a) for a, b in self._blocks()]
        x = np.repeat(self.side.records, self.released.sizes[self.side.block])
        return np.concatenate([nothing, *z]), x

    def _blocks(self) -> list[tuple[int, slice]]:
        ends = self.released.ends
        return [(int(n), slice(a, b)) for n, a, b in zip(self.side.sizes, ends, ends[1:], strict=False)]

    def matrices(self, flat: Floats) -> list[Floats]:
        """Return what belongs to the pairs of each block as a matrix: records of the side x released ones."""
        parts, at = [], 0
        for rows, columns in zip(self.side.sizes, self.released.sizes, strict=True):
            parts.append(flat[at : at + rows * columns].reshape(rows, columns))
            at += rows * columns
        return parts

    def place(self) -> BlockPlace:
        """Return the blocks as the compiled loops have them."""
        from ....kernels.matching_noise_mcmc import BlockPlace

        block, ends = self.side.block, self.released.ends
        begin, end = self.side.ends[:-1][block], self.side.ends[1:][block]
        return BlockPlace(block, ends[:-1][block], ends[1:][block], begin, end)

    def others_of_records(self) -> BlockPlace:
        """Return for each released record where the side's records of its block begin and end."""
        from ....kernels.matching_noise_mcmc import BlockPlace

        block, ends = self.released.block, self.side.ends
        return BlockPlace(block, block, block, ends[:-1][block], ends[1:][block])

"""Section 5: three binary identifiers, ones among which are false; exactly, and on files."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ...attacks import NearestRecord, attack
from ...masking import Masking
from ...masks import Pram
from ...schema import Column, Schema
from ...table import Floats, Table

FIELDS = ("a", "b", "c")
RARE = 0.1  # pr(y = 1)
MASK = Pram(FIELDS, matrix=((0.9, 0.1), (0.0, 1.0)))  # a 0 becomes 1 with probability 0.1
ONE_IS_ONE, ALL_NOISY, ALL_TRUE, CORRECT = ROWS = (
    "pr(z = 1)",
    "pr(all three z = 1)",
    "pr(all three y = 1)",
    "of those identified, correct",
)


@dataclass(frozen=True, slots=True)
class Binaries:
    """Independent binary identifiers, 1 with probability `RARE`."""

    records: int = 10_000

    fields: ClassVar[tuple[str, ...]] = FIELDS

    def table(self, rng: np.random.Generator) -> Table:
        """Draw a file."""
        import pyarrow as pa

        codes = (rng.random((len(FIELDS), self.records)) < RARE).astype(int)
        columns = [Column(name, "category", frozenset({"key"}), categories=("0", "1")) for name in FIELDS]
        values = {name: pa.array(row.astype(str)) for name, row in zip(FIELDS, codes, strict=True)}
        ids = pa.array(np.arange(self.records).astype(str))
        schema = Schema((Column("id", "text", frozenset({"id"})), *columns))
        return Table.from_frame(pa.table({"id": ids} | values), schema)


@dataclass(frozen=True, slots=True)
class FavourableRecords:
    """Released records that look like the most favourable target: all identifiers are 1."""

    data: Binaries = Binaries()
    mask: Pram = MASK

    def found(self, masking: Masking) -> Floats:
        """Return the figures of `ROWS` for one file.

        Every released record looks for its owner. One that is all 1 finds, at distance 0, true records that are; this
        is correct where h = 0: where its own true record is no farther off than that.
        """
        truth, released = (
            table.values(FIELDS).all(axis=1) for table in (masking.truth, masking.release.table)
        )
        ones = masking.release.table.values(FIELDS).mean()
        h = attack(PLAN, masking).h
        assert h is not None
        correct = h.values[released] == 0
        return np.array([ones, released.mean(), truth.mean(), correct.mean()])


PLAN = NearestRecord(fields=FIELDS, match_blocks=(), direction="to_original", distance="gower")


def exact() -> dict[str, float]:
    """Return the figures of `ROWS`, computed."""
    one = float(np.array([1 - RARE, RARE]) @ np.array(MASK.matrix)[:, 1])
    count = len(FIELDS)
    return dict(zip(ROWS, (one, one**count, RARE**count, (RARE / one) ** count), strict=True))


def figures(found: Mapping[FavourableRecords, Floats]) -> dict[str, Floats]:
    """Return the exact figures beside those of the files."""
    out = {f"{row} | exact": np.array([value]) for row, value in exact().items()}
    simulated = found[FavourableRecords()].T
    return out | {f"{row} | simulated": values for row, values in zip(ROWS, simulated, strict=True)}

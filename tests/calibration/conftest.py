"""The built-in survey and its intruder, drawn once; small tables with codes, gaps and correlated amounts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from maskwell.attacks import Linkage
from maskwell.calibration import Search
from maskwell.datasets import housing
from maskwell.schema import Column, Schema
from maskwell.table import Table

MakeAmounts = Callable[..., Table]


def terms(**options: Any) -> dict[str, Any]:
    """What a search is about stands in a Search, all else beside it."""
    names = {one.name for one in fields(Search)}
    search = Search(**{name: value for name, value in options.items() if name in names})
    return {"search": search} | {name: value for name, value in options.items() if name not in names}


@pytest.fixture(scope="package")
def survey() -> Table:
    return housing()


@pytest.fixture(scope="package")
def small_survey() -> Table:
    return housing(6000, seed=4)


@pytest.fixture(scope="package")
def intruder() -> Linkage:
    """Return Moore's intruder: targets in small cells, matching without the region."""
    return Linkage(largest_target_block=7, match_blocks=("BEDROOMS", "BATHS", "YR_BLT"))


@pytest.fixture(scope="package")
def amounts() -> MakeAmounts:
    """Return a function that makes correlated amounts A, B, C in blocks, with codes and gaps unless told otherwise."""

    def make(
        records: int = 300, *, seed: int = 1, top: float | None = 900, bottom: float | None = 100
    ) -> Table:
        rng = np.random.default_rng(seed)
        shared = rng.standard_normal(records)
        key = frozenset({"key"})
        frame = {"ID": [f"r{i}" for i in range(records)], "BLOCK": rng.choice(["a", "b", "c"], records)}
        columns = [
            Column("ID", "text", frozenset({"id"})),
            Column("BLOCK", "category", frozenset({"block"}), categories=("a", "b", "c")),
        ]
        for name in "ABC":
            values = np.rint(500 + 150 * (shared + rng.standard_normal(records)))
            values = values if top is None else np.minimum(values, top)
            values = values if bottom is None else np.maximum(values, bottom)
            frame[name] = pa.array(values.astype(np.int64), mask=rng.random(records) < 0.1)
            columns.append(Column(name, "integer", key, 1, top, bottom))
        return Table.from_frame(pa.table(frame), Schema(tuple(columns), series="amounts"))

    return make

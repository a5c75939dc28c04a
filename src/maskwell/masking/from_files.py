"""Files masked elsewhere, opened as a masking so that they can be attacked, compared and audited."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from ..arrow_buffers import from_numpy
from ..card import NoiseCard
from ..errors import BadInput, raise_all
from ..io import load, read
from ..schema import MISSING, Schema
from ..table import Table
from .results import Integers, Masking, Release, pair_by_id


def from_files(
    truth: str | Path | Table,
    masked: str | Path | Table,
    links: Any,
    schema: Schema | None,
    card: NoiseCard | None,
) -> Masking:
    """Tie two files by their links; records of the truth without a link were not released."""
    original = truth if isinstance(truth, Table) else read(truth, schema)
    released = masked if isinstance(masked, Table) else read(masked, schema)
    columns = _links(links)
    there = pair_by_id(columns["truth_id"], _ids(original), "truth_id")
    here = pair_by_id(columns["released_id"], _ids(released), "released_id")
    order = _order(there, here, len(original), len(released))
    aligned = _table_in_truth_order(released, order, len(original))
    release = Release(released, card or NoiseCard(records=len(released)))
    kept = None if len(order) == len(original) else np.sort(order)
    return Masking(original, aligned, release.card, kept=kept, given=(release, order), notes=original.notes)


def _table_in_truth_order(released: Table, order: Integers, count: int) -> Table:
    """Put released records in the order of the truth; a record that was not released has nothing but missing values."""
    import pyarrow as pa

    place = np.full(count, -1, np.int64)
    place[order] = np.arange(len(order))
    absent = place < 0
    at: Any = from_numpy(place, absent)
    data = pa.table({name: released.array(name).take(at) for name in released.names})
    statuses = {
        name: np.where(absent, MISSING, released.status(name)[place]).astype(np.uint8)
        for name in released.names
    }
    closed = {name: status for name, status in statuses.items() if status.any()}
    return replace(released, data=data, closed=closed)


def _ids(table: Table) -> Any:
    import pyarrow as pa

    if table.ids is not None:
        return table.ids
    return from_numpy(np.arange(1, len(table) + 1)).cast(pa.string())


def _links(links: Any) -> Any:
    import pyarrow as pa

    table = links if isinstance(links, pa.Table) else load(Path(links)).data
    wanted = ("truth_id", "released_id")
    raise_all(
        [f"the links have no column {name!r}" for name in wanted if name not in table.column_names], BadInput
    )
    return {name: table.column(name).combine_chunks().cast(pa.string()) for name in wanted}


def _order(there: Any, here: Any, originals: int, released: int) -> Any:
    problems = []
    if np.bincount(there, minlength=1).max() > 1:
        problems.append("the links name a truth_id twice")
    if np.bincount(here, minlength=1).max() > 1:
        problems.append("the links name a released_id twice")
    if len(here) != released:
        problems.append(
            f"the links name {len(here):,} of {released:,} released records; every one needs its truth"
        )
    raise_all(problems, BadInput)
    order = np.empty(released, np.int64)
    order[here] = there
    return order

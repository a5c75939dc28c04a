"""Combinations of values as whole numbers, alike in two tables: what blocks, classes and floors are counted by."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from ..arrow_buffers import codes_of, dictionary_codes, from_numpy
from ..schema import OPEN
from ..table import Floats, Table
from .agreement import CLOSED, CLOSED_STEP
from .protocol import Ints


def block_codes(known: Table, released: Table, columns: Sequence[str]) -> tuple[Ints, Ints]:
    """Number the combinations of some columns, alike in both tables; a missing value is a value of its own."""
    parts = [_column_codes(known, released, name) for name in columns]
    codes = parts[0][0] if len(parts) == 1 else joint_codes(parts, len(known) + len(released))
    return codes[: len(known)], codes[len(known) :]


def joint_codes(parts: Iterable[tuple[npt.NDArray[np.integer[Any]], int]], total: int) -> Ints:
    """Number the combinations that occur of several codes, each given with how many there are (from 0 on)."""
    codes, size = np.zeros(total, np.int64), 1
    for these, count in parts:
        if size * count >= 2**62:
            codes, size = codes_of(codes)
        codes, size = codes * count + these, size * count
    return codes_of(codes)[0]


def _column_codes(known: Table, released: Table, name: str) -> tuple[Ints, int]:
    import pyarrow as pa

    if known.schema[name].is_number and released.schema[name].is_number:
        return codes_of(np.concatenate([_values(table, name) for table in (known, released)]))
    return dictionary_codes(pa.concat_arrays([_texts(table, name) for table in (known, released)]))


def _values(table: Table, name: str) -> Floats:
    values = table.floats(name) + 0.0
    if name not in table.closed:
        return values
    status = table.status(name)
    return np.where(status == OPEN, values, CLOSED + status * CLOSED_STEP)


def _texts(table: Table, name: str) -> Any:
    """Return labels as text; a closed value is a text that no label can be."""
    import pyarrow as pa
    import pyarrow.compute as pc

    array, status = table.array(name).cast(pa.string()), table.status(name)
    if not status.any():
        return array
    closed: Any = from_numpy(status)
    codes: Any = pa.array([f"\x00{code}" for code in range(256)]).take(closed)
    return pc.if_else(from_numpy(status == OPEN), array, codes)

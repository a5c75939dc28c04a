"""How masked records leave: shuffled under the key, with new ids, in columns rebuilt from nothing."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from ..keystream import Stream, identified
from ..schema import Column
from ..table import Source, Table
from .results import Integers, Masking, Release, stream_of


def release_stage(masking: Masking) -> str:
    """Return the stage of order and ids: another for every release number and card."""
    card = hashlib.sha256(masking.card.to_json().encode()).hexdigest()[:16]
    return f"release {masking.number} {card}"


def released_order(masking: Masking) -> Integers:
    """Return the records of the truth in the order in which they leave."""
    stream = stream_of(masking, release_stage(masking))
    order = stream.order("", "shuffle")
    if masking.kept is None:
        return order
    kept = np.zeros(len(masking.truth), bool)
    kept[masking.kept] = True
    return np.asarray(order[kept[order]])


def leave(masking: Masking) -> Release:
    """Build the release: nothing in it refers to the truth, its order or its ids."""
    schema = masking.masked.schema
    dropped = [column.name for column in schema.columns if column.drop]
    table = masking.masked.select([name for name in schema.names if name not in dropped]).take(masking.order)
    table = replace(table, source=_source(table), notes=())
    stream = stream_of(masking, release_stage(masking)).at(masking.order)
    table = _with_new_ids(table, stream)
    for name in table.schema.with_role("group"):
        table = _relabelled(table, name, stream)
    table = _without_unused(table, masking)
    return Release(table, replace(masking.card.public(), records=len(table)))


def _source(table: Table) -> Source:
    """Keep format and types, of the columns that leave as what they were."""
    types = {name: kind for name, kind in table.source.types.items() if name in table.schema}
    return replace(table.source, types=types)


def _replaced(table: Table, name: str, array: Any, column: Column) -> Table:
    data = table.data.set_column(table.data.schema.get_field_index(name), name, array)
    return replace(table, data=data, schema=table.schema.changed({name: column}))


def _with_new_ids(table: Table, stream: Stream) -> Table:
    name = table.schema.id_column
    if name is None:
        return table
    import pyarrow.types as types

    wanted = table.source.types.get(name)
    whole = wanted is not None and types.is_integer(wanted)
    return _replaced(table, name, _fresh_ids(stream, name, whole=whole), table.schema[name])


def _fresh_ids(stream: Stream, name: str, *, whole: bool) -> Any:
    """Return distinct random ids: 15 decimal digits for integer ids, 16 hexadecimal ones for text."""
    import pyarrow as pa

    drawn = stream.words(name, "ids")[:, 0].copy()
    for attempt in range(1, 100):
        if whole:
            drawn = drawn % np.uint64(9 * 10**14) + np.uint64(10**14)
        _, first, counts = np.unique(drawn, return_inverse=True, return_counts=True)
        clash = np.flatnonzero(counts[first] > 1)
        if not len(clash):
            break
        drawn[clash] = stream.at(clash).words(f"{name}\x1f{attempt}", "ids")[:, 0]
    if whole:
        return pa.array(drawn.astype(np.int64)).cast(pa.string())
    digits = drawn.astype(">u8").tobytes().hex().encode()
    offsets: Any = np.arange(len(drawn) + 1, dtype=np.int64) * 16
    return pa.LargeStringArray.from_buffers(len(drawn), pa.py_buffer(offsets), pa.py_buffer(digits)).cast(
        pa.string()
    )


def _relabelled(table: Table, name: str, stream: Stream) -> Table:
    """Give groups new numbers 1..G in an order that the key decides."""
    import pyarrow as pa
    import pyarrow.compute as pc

    column, array = table.schema[name], table.array(name)
    labels = pc.drop_null(pc.unique(array)).cast(pa.string())
    keyed = Stream(stream.key, stream.series, stream.stage, identified(labels)).order(name, "ids")
    rank = np.empty(len(labels), np.int64)
    rank[keyed] = np.arange(1, len(labels) + 1)
    numbers = pa.array(rank).take(pc.index_in(array.cast(pa.string()), value_set=labels))
    if column.kind == "integer":
        return _replaced(table, name, numbers, replace(column, top=None, bottom=None, unit=None))
    categories = tuple(str(i + 1) for i in range(len(labels))) if column.kind == "category" else ()
    table = replace(table, source=_untyped(table.source, name))
    return _replaced(
        table, name, numbers.cast(pa.string()), replace(column, categories=categories, labels=())
    )


def _untyped(source: Source, name: str) -> Source:
    return replace(source, types={key: kind for key, kind in source.types.items() if key != name})


def _without_unused(table: Table, masking: Masking) -> Table:
    """Leave out categories and labels that no released record has, unless the card's law speaks of them."""
    import pyarrow.compute as pc

    changes = {}
    for column in table.schema.columns:
        law = masking.card.law_of(column.name)
        if column.kind == "category" and (law is None or law.form == "rank swap"):
            used = set(pc.unique(table.array(column.name)).to_pylist())
            kept = tuple(category for category in column.categories if category in used)
            changes[column.name] = replace(column, categories=kept)
    schema = table.schema.changed(changes)
    return replace(
        table, schema=schema.changed({c.name: _with_used_labels(c, table) for c in schema.columns})
    )


def _with_used_labels(column: Column, table: Table) -> Column:
    status = table.status(column.name)
    missing = {str(code) for i, code in enumerate(column.missing) if np.any(status == 4 + i)}
    used = set(column.categories) | missing | _labelled_numbers(column, table)
    return replace(column, labels=tuple(pair for pair in column.labels if pair[0] in used))


def _labelled_numbers(column: Column, table: Table) -> set[str]:
    """Return the labelled numbers that occur (a survey may label some values of an amount)."""
    if not column.is_number or not column.labels:
        return set()
    values: npt.NDArray[np.float64] = np.unique(table.values([column.name]))
    return {f"{value:g}" for value in values[~np.isnan(values)][:10_000]}

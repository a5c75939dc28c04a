"""How masked records leave: shuffled under the key, with new ids, in columns rebuilt from nothing."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import replace
from itertools import count as counting
from itertools import islice
from typing import Any

import numpy as np

from ..errors import BadInput
from ..keys import Stream, Words, ids_from_texts
from ..schema import BOTTOM_CODED, MISSING, TOP_CODED, Column
from ..table import Source, Table, coded_values
from .results import Integers, Masking, Release, stream_of

LONG_ID, SHORT_ID = 15, 9  # digits of the new ids where the old were whole numbers of 64 and of 32 bits
MOST_SHORT_IDS = 1_000_000


def release_stage(masking: Masking) -> str:
    """Return the stage of order and ids: another for every release number and card."""
    card = hashlib.sha256(masking.card.steady_text().encode()).hexdigest()[:16]
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
        table = _renumber_groups(table, name, stream)
    table = _without_unused(table, masking)
    return Release(table, replace(masking.card.public(), records=len(table)))


def _source(table: Table) -> Source:
    """Keep format and types of the columns that leave, and nothing about the others."""
    types = {name: kind for name, kind in table.source.types.items() if name in table.schema}
    return Source(table.source.kind, types, _dialect(table.source.dialect, table))


def _dialect(dialect: Any, table: Table) -> Any:
    """Leave out what a reader noted of columns that do not leave."""
    from ..io.stat_files import Ranges

    if isinstance(dialect, Mapping):
        return {name: noted for name, noted in dialect.items() if name in table.schema}
    if isinstance(dialect, Ranges):
        return replace(
            dialect, of={name: noted for name, noted in dialect.of.items() if name in table.schema}
        )
    return dialect


def _table_with_column(table: Table, name: str, array: Any, column: Column) -> Table:
    data = table.data.set_column(table.data.schema.get_field_index(name), name, array)
    return replace(table, data=data, schema=table.schema.changed({name: column}))


def _with_new_ids(table: Table, stream: Stream) -> Table:
    name = table.schema.id_column
    if name is None:
        return table
    import pyarrow as pa
    import pyarrow.types as types

    wanted = table.source.types.get(name)
    if wanted is None or not types.is_integer(wanted):
        return _table_with_column(table, name, _hexadecimal(_distinct(stream, name, 0)), table.schema[name])
    short = wanted.bit_width == 32 and len(table) <= MOST_SHORT_IDS
    if not short and wanted.bit_width < 64:
        table = replace(table, source=_source_with_type(table.source, name, pa.int64()))
    drawn = _distinct(stream, name, SHORT_ID if short else LONG_ID)
    return _table_with_column(
        table, name, pa.array(drawn.astype(np.int64)).cast(pa.string()), table.schema[name]
    )


def _distinct(stream: Stream, name: str, digits: int) -> Words:
    """Return a random number for each record, of so many decimal digits or (0) of 64 bits, no two the same."""
    drawn = _numbers(stream, name, digits)
    for attempt in range(1, 100):
        _, first, counts = np.unique(drawn, return_inverse=True, return_counts=True)
        clash = np.flatnonzero(counts[first] > 1)
        if not len(clash):
            return drawn
        drawn[clash] = _numbers(stream.at(clash), f"{name}\x1f{attempt}", digits)
    raise BadInput("no distinct ids could be drawn: are two records the same?")


def _numbers(stream: Stream, name: str, digits: int) -> Words:
    drawn = stream.words(name, "ids")[:, 0].copy()
    return drawn if not digits else drawn % np.uint64(9 * 10 ** (digits - 1)) + np.uint64(10 ** (digits - 1))


def _hexadecimal(drawn: Words) -> Any:
    """Write numbers as texts of 16 hexadecimal digits."""
    import pyarrow as pa

    letters = drawn.astype(">u8").tobytes().hex().encode()
    offsets: Any = np.arange(len(drawn) + 1, dtype=np.int64) * 16
    buffers = (pa.py_buffer(offsets), pa.py_buffer(letters))
    return pa.LargeStringArray.from_buffers(len(drawn), *buffers).cast(pa.string())


def _renumber_groups(table: Table, name: str, stream: Stream) -> Table:
    """Give groups new numbers from 1 on, in an order that the key decides; codes of the column are passed over."""
    import pyarrow as pa
    import pyarrow.compute as pc

    table = _without_ends(table, name)
    column, array = table.schema[name], table.array(name)
    labels = pc.drop_null(pc.unique(array)).cast(pa.string())
    keyed = Stream(stream.key, stream.series, stream.stage, ids_from_texts(labels)).order(name, "ids")
    free = _free_numbers(column, len(labels))
    number = np.empty(len(labels), np.int64)
    number[keyed] = free
    numbers = pa.array(number).take(pc.index_in(array.cast(pa.string()), value_set=labels))
    if column.is_number:
        kind = pa.int64() if column.kind == "integer" else pa.float64()
        return _table_with_column(table, name, numbers.cast(kind), replace(column, unit=None, labels=()))
    table = replace(table, source=_source_with_type(table.source, name, None))
    categories = tuple(map(str, free)) if column.kind == "category" else ()
    return _table_with_column(
        table, name, numbers.cast(pa.string()), replace(column, categories=categories, labels=())
    )


def _without_ends(table: Table, name: str) -> Table:
    """Forget top and bottom codes of a column of group numbers; a group known by such a code alone is missing."""
    status = table.status(name)
    closed = {**table.closed, name: np.where(np.isin(status, (TOP_CODED, BOTTOM_CODED)), MISSING, status)}
    column = replace(table.schema[name], top=None, bottom=None)
    kept = {known: marks.astype(np.uint8) for known, marks in closed.items() if marks.any()}
    return replace(table, schema=table.schema.changed({name: column}), closed=kept)


def _free_numbers(column: Column, count: int) -> list[int]:
    """Return the first whole numbers from 1 on that are no missing code of the column."""
    codes = {str(code).removesuffix(".0") for code in column.missing}
    return list(islice((number for number in counting(1) if str(number) not in codes), count))


def _source_with_type(source: Source, name: str, kind: Any) -> Source:
    """Return the source with another original type for a column, or with none."""
    types = {key: known for key, known in source.types.items() if key != name}
    return replace(source, types=types if kind is None else {**types, name: kind})


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
    """Keep the labels of categories, and of the numbers and codes that occur."""
    if not column.labels:
        return column
    status = table.status(column.name)
    occur = {code for mark, code in coded_values(column).items() if np.any(status == mark)}
    if column.is_number:
        values = table.values([column.name])[:, 0]
        occur |= set(np.unique(values[~np.isnan(values)]).tolist())
    used = {*column.categories, *map(str, occur)}
    labels = tuple(pair for pair in column.labels if pair[0] in used or _as_number(pair[0]) in occur)
    return replace(column, labels=labels)


def _as_number(code: str) -> float | None:
    try:
        return float(code)
    except ValueError:
        return None

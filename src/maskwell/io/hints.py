"""What a statistics file says of its columns (labels, missing codes), brought together with a schema."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ..notes import Note
from ..schema import FIRST_MISSING_CODE, MISSING, Column, Schema
from ..table import Table
from .numbers import Array, codes_text
from .raw_columns import Hint, Raw
from .roles import MOST_BLOCK_VALUES
from .texts import Unreadable, as_text, in_order

if TYPE_CHECKING:
    import pyarrow as pa


def without_codes(raw: Raw) -> pa.Table:
    """Return the raw columns with the file's own missing codes made null, for a schema to be proposed from."""
    data = raw.data
    for name, hint in raw.hints.items():
        if hint.missing:
            at = data.column_names.index(name)
            data = data.set_column(at, name, _values_without_codes(data.column(name), hint))
    return data


def _values_without_codes(column: Array, hint: Hint) -> Array:
    import pyarrow as pa
    import pyarrow.compute as pc

    is_text = pa.types.is_string(column.type)
    codes = [code for code in hint.missing if isinstance(code, str) == is_text]
    coded = pc.is_in(
        column, value_set=pa.array(codes, pa.string() if is_text else pa.float64()).cast(column.type)
    )
    return pc.if_else(coded, pa.scalar(None, column.type), column)


def schema_with_hints(schema: Schema, raw: Raw) -> tuple[Schema, list[Note]]:
    """Return the schema with descriptions, labels and missing codes of the file where it has none of its own."""
    changes, notes = {}, []
    for name, hint in raw.hints.items():
        if name in schema and not schema[name].drop:
            column = schema[name]
            extra = _further_codes(column, hint)
            if extra:
                notes.append(Note("io.missing_codes", {"column": name, "codes": tuple(codes_text(extra))}))
            changes[name] = _column_with_hint(
                replace(column, missing=column.missing + extra), hint, raw.data.column(name)
            )
    return schema.changed(changes), notes


def _further_codes(column: Column, hint: Hint) -> tuple[float | str, ...]:
    known = set(codes_text(column.missing))
    return tuple(code for code in hint.missing if codes_text([code])[0] not in known)


def _column_with_hint(column: Column, hint: Hint, values: Array) -> Column:
    """Add the file's words; a number whose every value has a label is a category."""
    column = replace(column, description=column.description or hint.description)
    if column.labels or not hint.labels:
        return column
    used = _distinct_texts(values) | set(hint.cells)
    kept = {code: label for code, label in hint.labels.items() if code in used or code in column.categories}
    return replace(column, labels=tuple(kept.items()))


def _distinct_texts(values: Array) -> set[str]:
    try:
        return set(as_text(values.combine_chunks()).unique().drop_null().to_pylist())
    except Unreadable:
        return set()


def as_categories(schema: Schema, raw: Raw) -> Schema:
    """Return a proposed schema in which every number whose values all have labels is a category."""
    changes: dict[str, Column] = {}
    for name, hint in raw.hints.items():
        column = schema[name]
        used = (
            _distinct_texts(raw.data.column(name)) - set(codes_text(hint.missing)) if hint.labels else set()
        )
        if column.is_number and not column.roles & {"id", "weight"} and used and used <= set(hint.labels):
            few = len(used) <= MOST_BLOCK_VALUES
            amount = (
                frozenset({"block"}) if few else frozenset[str]()
            )  # what a key becomes: nobody masks it by noise
            changes[name] = Column(
                name,
                "category",
                amount if "key" in column.roles else column.roles,
                categories=tuple(in_order(used)),
                description=column.description,
                drop=column.drop,
            )
    return schema.changed(changes)


def apply_cells(table: Table, raw: Raw) -> Table:
    """Give the records with a code that no number can hold (Stata's .a to .z) their status."""
    closed = dict(table.closed)
    for name, hint in raw.hints.items():
        if hint.cells and name in table.schema:
            closed[name] = _with_cells(table.status(name), table.schema[name], hint.cells)
    return replace(table, closed={name: status for name, status in closed.items() if status.any()})


def _with_cells(status: Any, column: Column, cells: Mapping[str, Any]) -> Any:
    status = status.copy()
    for code, at in cells.items():
        if code in column.missing:
            status[at & (status == MISSING)] = FIRST_MISSING_CODE + column.missing.index(code)
    return np.asarray(status, np.uint8)

"""Raw columns and a schema made into a Table, with every problem of the file listed at once."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ..arrow_buffers import from_numpy, is_null, to_numpy
from ..errors import BadInput, nearest, raise_all
from ..notes import Note, has_code
from ..schema import BOTTOM_CODED, FIRST_MISSING_CODE, MISSING, OPEN, TOP_CODED, Column, Schema
from ..table import Source, Statuses, Table
from ..words.phrases import number_text
from .ids import duplicate_id_problems
from .numbers import (
    EXACT_BELOW,
    Array,
    Fault,
    Floats,
    Numbers,
    array_with_nulls,
    doubles,
    fault_at,
    flags,
    is_word,
    parse,
)
from .texts import Unreadable, as_text, booleans_mixed, in_order, spelled_alike

if TYPE_CHECKING:
    import pyarrow as pa

_CHUNK = 16_384  # numbers that stay near the processor


@dataclass(slots=True)
class ConformedColumn:
    """One column on its way into the table."""

    column: Column
    array: Array = None
    status: Statuses | None = None
    problems: list[str] = field(default_factory=list)
    notes: list[Note] = field(default_factory=list)
    keeps_type: bool = True

    def refuse(self, faults: Iterable[Fault]) -> None:
        """Add the faults as sentences about this column."""
        self.problems += [fault.sentence(self.column.name) for fault in faults]


def conform(
    raw: pa.Table, schema: Schema, source: Source, *, decimal: str = ".", notes: Iterable[Note] = ()
) -> Table:
    """Make a table of raw columns (text or typed) as a schema describes them.

    Raises `BadInput` with one sentence for each problem: the column, the first record (counted from 1), what
    kind of thing was found and the remedy, never the value.
    """
    names, notes = _file_column_names(raw.column_names, schema), tuple(notes)
    problems = _name_problems(names, schema, how_read(notes))
    if raw.num_rows == 0:
        raise BadInput([*problems, "there are no records"])
    columns = [column for column in schema.columns if column.name in names]
    done = [_conform_column(column, raw.column(names[column.name]), decimal) for column in columns]
    raise_all([*problems, *(problem for one in done for problem in one.problems)], BadInput)
    return _table(done, schema, source, [*notes, *(note for one in done for note in one.notes)])


def how_read(notes: Iterable[Note]) -> str:
    """Return the note on how a CSV file was read as text, nothing for other sources."""
    return next((str(note) for note in notes if has_code([note], "io.dialect", "io.dialect_as_asked")), "")


def _table(done: list[ConformedColumn], schema: Schema, source: Source, notes: list[Note]) -> Table:
    import pyarrow as pa

    data = pa.table({one.column.name: one.array for one in done})
    closed = {one.column.name: one.status for one in done if one.status is not None and one.status.any()}
    kept = {one.column.name for one in done if one.keeps_type}
    types = {name: kind for name, kind in source.types.items() if name in kept}
    schema = replace(schema, columns=tuple(one.column for one in done))
    return Table(schema, data, closed, replace(source, types=types), tuple(notes))


def _file_column_names(names: Iterable[str], schema: Schema) -> dict[str, str]:
    """Return the file's name of each column by the schema's name (equal in NFC), others by their own."""
    spelled = {unicodedata.normalize("NFC", name): name for name in schema.names}
    return {spelled.get(unicodedata.normalize("NFC", name), name): name for name in names}


def _name_problems(names: dict[str, str], schema: Schema, how: str) -> list[str]:
    absent = [column.name for column in schema.columns if column.name not in names and not column.drop]
    extra = [name for name in names if name not in schema]
    if len(extra) == len(names) and absent and not any(nearest(name, absent) for name in extra):
        read = f" (it was {how})" if how else ""
        return [
            f"no column of the schema is in the data{read}: check that its first line holds the names of the columns"
        ]
    return [
        *(
            f"column {n!r} of the schema is not in the data{nearest(n, extra)}: add it or take it out"
            for n in absent
        ),
        *(f"column {n!r} is not in the schema{nearest(n, absent)}: describe it or drop it" for n in extra),
    ]


def _conform_column(column: Column, raw: Array, decimal: str) -> ConformedColumn:
    array = _one_array(raw)
    out = ConformedColumn(column)
    try:
        _fill(out, array, decimal)
    except Unreadable as found:
        out.problems.append(f"column {column.name!r} {found}")
    if out.problems and column.drop and not column.roles:
        return _dropped_text_column(column, array)
    return out


def _fill(out: ConformedColumn, array: Array, decimal: str) -> None:
    if "id" in out.column.roles:
        _fill_ids(out, array)
    elif out.column.is_number:
        _fill_numbers(out, array, decimal)
    else:
        _fill_texts(out, array)


def _one_array(column: Array) -> Array:
    import pyarrow as pa

    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    return column.combine_chunks() if column.num_chunks != 1 else column.chunk(0)


def _dropped_text_column(column: Column, array: Array) -> ConformedColumn:
    """Keep a column that will be dropped as text, whatever it holds."""
    import pyarrow as pa

    try:
        text = array.cast(pa.string())
    except pa.ArrowException:
        text = pa.nulls(len(array), pa.string())
    plain = Column(column.name, "text", description=column.description, drop=True)
    return ConformedColumn(plain, text, is_null(text).astype(np.uint8), keeps_type=False)


def _fill_ids(out: ConformedColumn, array: Array) -> None:
    """Keep ids exactly, as text; each record needs its own."""
    import pyarrow as pa

    if pa.types.is_floating(array.type):
        raise Unreadable("is the id and holds decimal numbers: store ids as text or as whole numbers")
    out.array = as_text(array)
    out.refuse(fault_at(is_null(out.array), "a record without an id", "give each record an id of its own"))
    out.problems += duplicate_id_problems(out.column.name, out.array)


def _fill_texts(out: ConformedColumn, array: Array) -> None:
    """Keep categories and other text as text, null where a missing code stands."""

    text = as_text(array)
    status = is_null(text).astype(np.uint8) * np.uint8(MISSING)
    for i, code in enumerate(out.column.missing):
        status[is_word(text, code if isinstance(code, str) else number_text(code))] = FIRST_MISSING_CODE + i
    out.array, out.status = array_with_nulls(text, status > MISSING), status
    if out.column.kind == "category":
        _check_categories(out, out.array)


def _check_categories(out: ConformedColumn, text: Array) -> None:
    import pyarrow as pa
    import pyarrow.compute as pc

    name = out.column.name
    if not out.column.categories:
        found = in_order(text.unique().drop_null().to_pylist())
        out.column = replace(out.column, categories=tuple(found))
        out.notes.append(Note("io.categories", {"column": name, "count": len(found)}))
    known = pa.array(out.column.categories, pa.string())
    unknown = flags(pc.and_(text.is_valid(), pc.invert(pc.is_in(text, value_set=known))))
    if unknown.any():
        distinct = len(text.filter(from_numpy(unknown)).unique())
        what = f"values that are not among its categories ({distinct} different)"
        out.refuse(fault_at(unknown, what, "add them to the schema or correct them"))
    if booleans_mixed(out.column.categories):
        out.refuse(_mixed_boolean_faults(text))


def _mixed_boolean_faults(text: Array) -> list[Fault]:
    """Return a fault when yes and no are spelled in more than one way."""
    import pyarrow as pa
    import pyarrow.compute as pc

    used = text.unique().drop_null().to_pylist()
    if not booleans_mixed(used):
        return []
    like_first = [word for word in used if spelled_alike(used[0], word)]
    other = pc.and_(text.is_valid(), pc.invert(pc.is_in(text, value_set=pa.array(like_first, pa.string()))))
    return fault_at(
        flags(other), "yes and no in more than one spelling", "spell them in one way, such as 0 and 1"
    )


def _fill_numbers(out: ConformedColumn, array: Array, decimal: str) -> None:
    import pyarrow as pa

    if _is_plain(out.column, array):
        out.array, out.notes = array, _unit_notes(out.column, to_numpy(array))
        return
    status = is_null(array).astype(np.uint8) * np.uint8(MISSING)
    is_text = _is_text(array.type)
    out.keeps_type = not (is_text or pa.types.is_boolean(array.type))
    numbers = (
        _numbers_from_text(out.column, array, status, decimal) if is_text else _typed_column_numbers(array)
    )
    if numbers.faults:
        out.refuse(numbers.faults)
        return
    status[np.isnan(numbers.values) & (status == OPEN)] = MISSING
    _close_codes(out.column, numbers.values, status)
    faults = _value_faults(out.column, numbers, status)
    out.refuse(faults)
    if not faults:
        out.array, out.status = _amounts(out.column, numbers, status), status
        out.notes += _unit_notes(out.column, numbers.values[status == OPEN])


def _is_plain(column: Column, array: Array) -> bool:
    """Return whether numbers can stay as they are: in the type of a table, all open, none a code, nothing to check."""
    import pyarrow as pa

    kind = pa.int64() if column.kind == "integer" else pa.float64()
    if array.type != kind or array.null_count or column.missing or "weight" in column.roles:
        return False
    return column.top is None and column.bottom is None and bool(np.isfinite(to_numpy(array)).all())


def _is_text(kind: pa.DataType) -> bool:
    import pyarrow.types as types

    return types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind)


def _numbers_from_text(column: Column, array: Array, status: Statuses, decimal: str) -> Numbers:
    """Parse text after its text codes; a field of blanks is missing."""
    import pyarrow as pa
    import pyarrow.compute as pc

    text = pc.ascii_trim_whitespace(array.cast(pa.string()))
    status[is_word(text, "")] = MISSING
    for i, code in enumerate(column.missing):
        if isinstance(code, str):
            status[is_word(text, code)] = FIRST_MISSING_CODE + i
    return parse(array_with_nulls(text, status != OPEN), decimal)


def _typed_column_numbers(array: Array) -> Numbers:
    """Take numbers from a column that holds them; refuse every other type."""
    import pyarrow as pa
    import pyarrow.types as types

    kind = array.type
    if types.is_null(kind):
        return Numbers(np.full(len(array), np.nan))
    if not (
        types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind) or types.is_boolean(kind)
    ):
        raise Unreadable.of(kind)
    if types.is_boolean(kind):
        array = array.cast(pa.uint8())
    values = to_numpy(doubles(array))
    remedy = "correct it, or leave it missing"
    faults = fault_at(np.isinf(values), "an infinite number", remedy)
    if types.is_integer(kind) and np.any(np.abs(values) >= EXACT_BELOW):
        return _large(array, values)
    return Numbers(values, faults=tuple(faults))


def _large(array: Array, values: Floats) -> Numbers:
    """Keep whole numbers that no double holds exactly; refuse those that no int64 holds."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if pa.types.is_uint64(array.type):
        beyond = flags(pc.greater(array, pa.scalar(2**63 - 1, pa.uint64())))
        if beyond.any():
            return Numbers(values, faults=tuple(fault_at(beyond, *_OVERFLOW)))
    whole = to_numpy(array.cast(pa.int64()).fill_null(0))
    return Numbers(values, whole)


_OVERFLOW = ("a whole number beyond 2^63 - 1", "make the column an id, a category or continuous")


def _close_codes(column: Column, values: Floats, status: Statuses) -> None:
    """Mark the declared missing codes, then the top and the bottom code."""
    numeric = [
        (FIRST_MISSING_CODE + i, code) for i, code in enumerate(column.missing) if not isinstance(code, str)
    ]
    codes = [*numeric, (TOP_CODED, column.top), (BOTTOM_CODED, column.bottom)]
    for mark, code in codes:
        if code is not None:
            status[(values == code) & (status == OPEN)] = mark


def _value_faults(column: Column, numbers: Numbers, status: Statuses) -> list[Fault]:
    values, is_open = numbers.values, status == OPEN
    faults = []
    if column.top is not None:
        above = is_open & (values > column.top)
        faults += fault_at(above, "values above the top code", "raise the top code, or declare missing codes")
    if column.bottom is not None:
        below = is_open & (values < column.bottom)
        faults += fault_at(
            below, "values below the bottom code", "lower the bottom code, or declare missing codes"
        )
    if column.kind == "integer":
        broken = is_open & (values != np.rint(values))
        faults += fault_at(broken, "numbers that are not whole", "make the column continuous, or round them")
        if numbers.whole is None:
            faults += fault_at(is_open & (np.abs(values) >= 2.0**63), *_OVERFLOW)
    if "weight" in column.roles:
        faults += _weight_faults(values, status)
    return faults


def _weight_faults(values: Floats, status: Statuses) -> list[Fault]:
    remedy = "every record needs a positive weight"
    is_open = status == OPEN
    return [
        *fault_at(status == MISSING, "a missing weight", remedy),
        *fault_at(status > MISSING, "a code where a weight belongs", remedy),
        *fault_at(is_open & (values == 0), "a weight of zero", remedy),
        *fault_at(is_open & (values < 0), "a negative weight", remedy),
    ]


def _amounts(column: Column, numbers: Numbers, status: Statuses) -> Array:
    """Make the Arrow array: int64 or float64, null and nothing beneath unless open."""
    closed = status != OPEN
    held: Any = numbers.values
    if column.kind == "integer" and numbers.whole is not None:
        held = numbers.whole
    if closed.any():
        held = np.where(closed, 0, held)
    return from_numpy(held.astype(np.int64) if column.kind == "integer" else held, closed)


def _off_unit(values: Floats, unit: float) -> int:
    steps = values / unit
    return int(np.count_nonzero(np.abs(steps - np.rint(steps)) > 1e-9 * np.maximum(1.0, np.abs(steps))))


def _unit_notes(column: Column, values: Floats) -> list[Note]:
    if column.unit is None:
        return []
    off = sum(_off_unit(values[i : i + _CHUNK], column.unit) for i in range(0, len(values), _CHUNK))
    if not off:
        return []
    return [Note("io.off_unit", {"column": column.name, "count": off, "unit": column.unit})]

"""Records and their schema: open values, and the status of every value that is not open."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from .arrow_buffers import from_numpy, to_numpy
from .errors import BadInput, BadPlan, raise_all
from .notes import Note
from .schema import BOTTOM_CODED, FIRST_MISSING_CODE, OPEN, TOP_CODED, Column, Schema

if TYPE_CHECKING:
    import pyarrow as pa

Floats = npt.NDArray[np.float64]
Statuses = npt.NDArray[np.uint8]


@dataclass(frozen=True, slots=True)
class Source:
    """What it takes to write a table back as it came: the format and the original types, no path, no value."""

    kind: str = "pyarrow"
    types: Mapping[str, Any] = field(default_factory=dict)
    dialect: Any = None


@dataclass(frozen=True, slots=True)
class Table:
    """Records with their schema, held in Arrow.

    `data` has one Arrow array per column (amounts as float64 or int64, categories as text, ids as text) and a
    null wherever the value is not open; `closed` holds the status of those columns that have such cells.
    `notes` say what the reader found and decided.
    """

    schema: Schema
    data: pa.Table
    closed: Mapping[str, Statuses] = field(default_factory=dict)
    source: Source = field(default_factory=Source)
    notes: tuple[Note, ...] = ()

    def __len__(self) -> int:
        return int(self.data.num_rows)

    def __eq__(self, other: object) -> bool:
        """Whether schema, values and statuses are the same; where they came from does not count."""
        if not isinstance(other, Table):
            return NotImplemented
        if self.schema != other.schema or self.closed.keys() != other.closed.keys():
            return False
        same = all(np.array_equal(status, other.closed[name]) for name, status in self.closed.items())
        return same and all(self.array(name).equals(other.array(name)) for name in self.names)

    def __repr__(self) -> str:
        roles = {
            role: list(self.schema.with_role(role)) for role in ("id", "block", "key", "weight", "group")
        }
        said = ", ".join(f"{role}: {' '.join(names)}" for role, names in roles.items() if names)
        return f"<Table of {len(self):,} records x {len(self.schema.columns)} columns; {said or 'no roles'}>"

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the columns in order."""
        return self.schema.names

    @property
    def ids(self) -> pa.Array[Any] | None:
        """The ids of the records as text, or nothing when the schema names no id column."""
        name = self.schema.id_column
        return None if name is None else self.array(name)

    def array(self, name: str) -> pa.Array[Any]:
        """Return a column as one Arrow array: null unless open."""
        _ = self.schema[name]
        return _one_chunk(self.data.column(name))

    def status(self, name: str) -> Statuses:
        """Return 0 open, 1 missing, 2 top-coded, 3 bottom-coded, 4+ the declared missing codes in order."""
        _ = self.schema[name]
        closed = self.closed.get(name)
        return np.zeros(len(self), np.uint8) if closed is None else closed

    def gap_patterns(self, names: Sequence[str]) -> dict[str, npt.NDArray[np.int64]]:
        """Return the statuses of columns that are not open throughout: of those with equal ones the first."""
        found = {self.status(name).tobytes(): name for name in reversed(names) if name in self.closed}
        return {name: self.status(name).astype(np.int64) for name in names if name in found.values()}

    def is_open(self, columns: Sequence[str] | str) -> npt.NDArray[np.bool_]:
        """Return records x columns: whether each value is open (one column may be named bare)."""
        columns = (columns,) if isinstance(columns, str) else columns
        out = np.ones((len(self), len(columns)), bool)
        for j, name in enumerate(columns):
            _ = self.schema[name]
            if name in self.closed:
                np.equal(self.closed[name], OPEN, out=out[:, j])
        return out

    def values(self, columns: Sequence[str] | str) -> Floats:
        """Return records x columns of amounts or category codes (0..K-1), NaN unless open; see `floats` for one column.

        One column may be named bare; it is then the only one of the result.
        """
        if not isinstance(columns, Iterable):
            raise BadPlan(
                f"values takes the names of columns, such as values(['INCOME']), not a {type(columns).__name__}"
            )
        columns = (columns,) if isinstance(columns, str) else tuple(columns)
        out = np.empty((len(self), len(columns)), order="F")
        for j, name in enumerate(columns):
            out[:, j] = self._floats(self.schema[name])
        return out

    def floats(self, name: str) -> Floats:
        """Return one column of amounts or category codes, NaN unless open; not to be written to."""
        return self._floats(self.schema[name])

    def class_codes(self, name: str) -> Floats:
        """Return one column as numbers, whatever its kind: `floats`, or of a text the place of each of its values.

        Places are those among its different values, by the alphabet; NaN unless open.
        """
        column = self.schema[name]
        return self._text_places(name) if column.kind == "text" else self._floats(column)

    def has_classes(self, name: str) -> bool:
        """Whether a column parts the records as a category does: it is one, or a text whose values repeat.

        A text counts where its values are shared by two records on average, as where a draft takes it for a category;
        ids and groups do not.
        """
        import pyarrow.compute as pc

        column = self.schema[name]
        if column.kind != "text" or column.roles & {"id", "group"}:
            return column.kind == "category"
        array = self.array(name)
        different: Any = pc.count_distinct(array)
        return 0 < 2 * int(different.as_py()) <= len(array) - array.null_count

    def _text_places(self, name: str) -> Floats:
        import pyarrow as pa
        import pyarrow.compute as pc

        encoded: Any = self.array(name).dictionary_encode()
        texts = encoded.dictionary.to_pylist()
        place = np.empty(len(texts))
        place[sorted(range(len(texts)), key=texts.__getitem__)] = np.arange(len(texts))
        indices = to_numpy(pc.cast(encoded.indices, pa.float64()))
        out = np.full(len(indices), np.nan)
        known = ~np.isnan(indices)
        out[known] = place[indices[known].astype(np.int64)]
        return out

    def _floats(self, column: Column) -> Floats:
        if column.kind == "text":
            raise BadPlan(f"column {column.name!r} is text, not a number or a category")
        if column.kind == "category":
            return self._codes(column)
        return np.asarray(to_numpy(self.array(column.name)), dtype=np.float64)

    def _codes(self, column: Column) -> Floats:
        import pyarrow as pa
        import pyarrow.compute as pc

        indices = pc.index_in(self.array(column.name), value_set=pa.array(column.categories, pa.string()))
        return to_numpy(indices.cast(pa.float64()))

    def with_columns(self, columns: Mapping[str, tuple[Column, Floats, Statuses]]) -> Table:
        """Return the table with some columns replaced by (description, values or codes, status)."""
        data, closed = self.data, dict(self.closed)
        for name, (column, values, status) in columns.items():
            data = data.set_column(data.schema.get_field_index(name), name, to_arrow(column, values, status))
            closed.pop(name, None)
            if status.any():
                closed[name] = status
        schema = self.schema.changed({name: column for name, (column, _, _) in columns.items()})
        return replace(self, schema=schema, data=data, closed=closed)

    def select(self, names: Sequence[str]) -> Table:
        """Return some of the columns."""
        raise_all(self.schema.missing_columns(names), BadPlan)
        schema = replace(self.schema, columns=tuple(self.schema[name] for name in names))
        closed = {name: status for name, status in self.closed.items() if name in schema}
        return replace(self, schema=schema, data=self.data.select(list(names)), closed=closed)

    def take(self, records: npt.NDArray[np.int64]) -> Table:
        """Return some records in a given order, in memory of their own (nothing of the parent is kept)."""
        import pyarrow as pa

        taken = {name: _rebuilt(self.array(name).take(from_numpy(records))) for name in self.names}
        closed = {name: status[records] for name, status in self.closed.items()}
        closed = {name: status for name, status in closed.items() if status.any()}
        return replace(self, data=pa.table(taken), closed=closed)

    def to_arrow(self) -> pa.Table:
        """Return the records as an Arrow table with codes written back and the original types restored."""
        import pyarrow as pa

        return pa.table({name: self.written(name) for name in self.names})

    def written(self, name: str) -> pa.Array[Any]:
        """Return a column as it is written: codes in place of statuses, in the type it came in if that fits."""
        column, array = self.schema[name], self.array(name)
        if name in self.closed:
            array = _with_codes(column, array, self.closed[name])
        return _in_type(array, self.source.types.get(name))

    def to_frame(self) -> Any:
        """Return a dataframe of the kind the table came from (a pyarrow Table for files)."""
        from .io.frames import to_native

        return to_native(self)

    @classmethod
    def from_frame(cls, frame: Any, schema: Schema | None = None) -> Table:
        """Make a table of a pandas, polars, pyarrow or duckdb frame; without a schema one is proposed."""
        from .io.frames import from_native

        return from_native(frame, schema)


def to_arrow(column: Column, values: Floats, status: Statuses) -> pa.Array[Any]:
    """Make the Arrow array of a column from values (amounts or codes), null unless open."""
    import pyarrow as pa

    closed = status != OPEN
    if column.kind == "category":
        labels = pa.array(column.categories, pa.string())
        codes: Any = from_numpy(np.where(closed, 0, values).astype(np.int32), closed)
        return labels.take(codes)
    if column.kind == "integer":
        return from_numpy(_whole(column, np.where(closed, 0, values)), closed)
    return from_numpy(np.where(closed, 0.0, values) if closed.any() else values, closed)


def _whole(column: Column, values: Floats) -> npt.NDArray[np.int64]:
    if values.size and float(np.abs(values).max()) > 2.0**53:
        raise BadInput(
            f"column {column.name!r} holds whole numbers beyond 2^53, which noise cannot be added to exactly; "
            "divide it by a power of ten first, or make it an id"
        )
    return np.rint(values).astype(np.int64)


def _with_codes(column: Column, array: pa.Array[Any], status: Statuses) -> pa.Array[Any]:
    """Write the codes of closed cells back; a code that is text in a column of numbers stays null here."""
    import pyarrow as pa
    import pyarrow.compute as pc

    for code, literal in coded_values(column).items():
        at = status == code
        if at.any() and not (column.is_number and isinstance(literal, str)):
            wide = pa.float64() if isinstance(literal, float) and not literal.is_integer() else array.type
            value = pa.scalar(literal if column.is_number else str(literal), wide)
            array = pc.if_else(from_numpy(at), value, array.cast(wide))
    return array


def coded_values(column: Column) -> dict[int, float | str]:
    """Return what is written for each status that is a code: top, bottom and the declared missing codes."""
    codes: dict[int, float | str] = {}
    if column.top is not None:
        codes[TOP_CODED] = column.top
    if column.bottom is not None:
        codes[BOTTOM_CODED] = column.bottom
    return codes | {FIRST_MISSING_CODE + i: code for i, code in enumerate(column.missing)}


def _in_type(array: pa.Array[Any], wanted: Any) -> pa.Array[Any]:
    """Cast back to the original type; where noise left its range, keep the wider one."""
    import pyarrow as pa

    if wanted is None or array.type.equals(wanted):
        return array
    try:
        narrow = _cast_array(array, wanted)
        return narrow if _same_values(array, narrow) else array
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        return array


def _cast_array(array: Any, wanted: Any) -> Any:
    """Cast to a type; to decimals through text, so that no digit is lost on the way."""
    import pyarrow as pa
    import pyarrow.types as types

    through = types.is_decimal(wanted) and (types.is_floating(array.type) or types.is_integer(array.type))
    return (array.cast(pa.string()) if through else array).cast(wanted)


def _same_values(array: Any, narrow: Any) -> bool:
    """Return whether a cast kept the values: whether what is written reads back the same."""
    import pyarrow.types as types

    from .io.numbers import doubles

    if types.is_floating(array.type):
        return bool(doubles(narrow).equals(array))
    return bool(narrow.cast(array.type).equals(array))


def _one_chunk(column: pa.ChunkedArray[Any]) -> pa.Array[Any]:
    import pyarrow as pa

    chunks: Any = column.chunks
    if len(chunks) == 1:
        return chunks[0]  # type: ignore[no-any-return]
    whole: pa.Array[Any] = pa.concat_arrays(chunks) if chunks else pa.array([], column.type)
    return whole


def _rebuilt(array: pa.Array[Any]) -> pa.Array[Any]:
    """Return a copy with nothing under its nulls and no unused dictionary value."""
    import pyarrow as pa
    import pyarrow.types as types

    if array.null_count == 0:
        return array
    if types.is_floating(array.type) or types.is_integer(array.type):
        zeros: Any = array.fill_null(0)
        return from_numpy(to_numpy(zeros), to_numpy(array.is_null()))
    whole: pa.Array[Any] = pa.array(array.to_pylist(), array.type)
    return whole

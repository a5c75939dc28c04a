"""Parquet and Arrow files: no metadata from the source, nothing under nulls, only labels that are used."""

from __future__ import annotations

import re
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import BadInput, MaskwellWarning
from ..notes import Note
from ..schema import FIRST_MISSING_CODE
from ..table import Source, Table
from .arrow_footer import stored_counts
from .headers import clean_names
from .memory import FileCounts, check_memory
from .numbers import Array
from .raw_columns import Raw

if TYPE_CHECKING:
    import pyarrow as pa

_VALUE_BYTES = 24


def load_columnar(
    path: Path, kind: str, memory_limit: int | None = None, expected: FileCounts | None = None
) -> Raw:
    """Read a Parquet or Arrow (Feather version 2) file; where counts are expected, after they were compared."""
    import pyarrow as pa

    reader = _read_parquet if kind == "parquet" else _read_arrow
    try:
        data = reader(path, memory_limit, expected)
    except (pa.ArrowException, OSError, UnicodeDecodeError):
        name = "a Parquet" if kind == "parquet" else "an Arrow"
        raise BadInput(f"the file is not {name} file, or it is damaged or encrypted") from None
    return raw_from_arrow(data, kind)


def raw_from_arrow(data: pa.Table, kind: str, notes: tuple[Note, ...] = (), dialect: Any = None) -> Raw:
    """Make raw columns of an Arrow table: names checked, labels looked up, metadata left behind."""
    import pyarrow as pa

    names, name_notes = clean_names(data.column_names)
    columns = {name: plain(data.column(i)) for i, name in enumerate(names)}
    types = {name: data.schema.field(i).type for i, name in enumerate(names)}
    source = Source(kind, types, dialect)
    return Raw(pa.table(columns), source, notes=(*notes, *name_notes))


def plain(column: Array) -> Array:
    """Replace dictionary codes by their values, so that labels nobody has are gone."""
    import pyarrow as pa

    return column.cast(column.type.value_type) if pa.types.is_dictionary(column.type) else column


def _read_parquet(path: Path, memory_limit: int | None, expected: FileCounts | None) -> pa.Table:
    import pyarrow.parquet as pq

    with pq.ParquetFile(path) as file:
        found, plain_types = file.metadata, file.schema_arrow
        sizes = sum(found.row_group(i).total_byte_size for i in range(found.num_row_groups))
        if expected is not None:
            expected.check(found.num_rows, found.num_columns)
            expected.check_bytes(sizes)
        check_memory(max(2 * sizes, found.num_rows * found.num_columns * _VALUE_BYTES), memory_limit)
        if expected is None:
            return file.read()
    texts = [field.name for field in plain_types if _is_text(field.type)]
    with pq.ParquetFile(path, read_dictionary=texts) as file:
        coded = file.read()
    expected.check_bytes(size := _expanded_bytes(coded))
    check_memory(2 * size, memory_limit)
    return coded.cast(plain_types)


def _is_text(kind: Any) -> bool:
    import pyarrow.types as types

    return types.is_string(kind) or types.is_large_string(kind) or types.is_binary(kind)


def _expanded_bytes(coded: pa.Table) -> int:
    """Return what texts take once they are written out: a dictionary holds each once, however long and frequent."""
    import pyarrow as pa
    import pyarrow.compute as pc

    total = 0
    columns: list[Any] = coded.columns
    for column in columns:
        for chunk in column.chunks if pa.types.is_dictionary(column.type) else ():
            if chunk.dictionary.type in (pa.string(), pa.large_string(), pa.binary()):
                lengths = pc.take(pc.binary_length(chunk.dictionary), chunk.indices)
                total += int(pc.sum(lengths.cast(pa.int64())).as_py() or 0)
    return total


def _read_arrow(path: Path, memory_limit: int | None, expected: FileCounts | None) -> pa.Table:
    import pyarrow.ipc as ipc

    records, columns, size = stored_counts(path)
    if expected is not None:
        expected.check(records, columns)
        expected.check_bytes(size)
    check_memory(max(4 * path.stat().st_size, 2 * size), memory_limit)
    with path.open("rb") as file:
        coded = ipc.open_file(file).read_all()
    if expected is not None:
        expected.check_bytes(_expanded_bytes(coded))
    return coded


def write_columnar(table: Table, path: Path, kind: str) -> None:
    """Write a table as Parquet or Arrow; the same table gives the same bytes."""
    import pyarrow.ipc as ipc
    import pyarrow.parquet as pq

    warn_of_text_codes(table)
    data = clean_arrow(table)
    if kind == "parquet":
        pq.write_table(data, path, compression="zstd", write_statistics=False)
        return
    with (
        path.open("wb") as file,
        ipc.new_file(file, data.schema, options=ipc.IpcWriteOptions(compression="lz4")) as out,
    ):
        out.write_table(data)


def warn_of_text_codes(table: Table, held: str = "") -> None:
    """Warn of missing codes that are text in a column of numbers, but for those a format holds (a pattern)."""
    for name, status in table.closed.items():
        column = table.schema[name]
        codes = {FIRST_MISSING_CODE + i: code for i, code in enumerate(column.missing)}
        texts = [i for i, code in codes.items() if isinstance(code, str) and not re.fullmatch(held, code)]
        if column.is_number and np.isin(status, texts).any():
            note = f"column {name!r}: its missing codes that are text become plain missing values here"
            warnings.warn(note, MaskwellWarning, stacklevel=4)


def clean_arrow(table: Table) -> pa.Table:
    """Return the table as it is written, in memory of its own: nothing under nulls, no label that is not used."""
    import pyarrow as pa

    return pa.table(
        {name: _fresh(table.written(name), table.schema[name].categories) for name in table.names}
    )


def _fresh(array: Array, order: tuple[str, ...]) -> Array:
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.types as types

    kind = array.type
    if types.is_dictionary(kind):
        return _dictionary_array(array.cast(kind.value_type), kind, order)
    if types.is_integer(kind) or types.is_floating(kind):
        mask = np.asarray(array.is_null()) if array.null_count else None
        return pa.array(array.fill_null(0).to_numpy(zero_copy_only=False).copy(), kind, mask=mask)
    if types.is_string(kind) or types.is_large_string(kind):
        return pc.if_else(array.is_valid(), array.fill_null(""), pa.scalar(None, kind))
    return pa.array(array.to_pylist(), kind)


def _dictionary_array(values: Array, kind: Any, order: tuple[str, ...]) -> Array:
    """Encode values with the labels that occur, in the order of the schema's categories."""
    import pyarrow as pa
    import pyarrow.compute as pc

    used = values.unique().drop_null().to_pylist()
    places = {label: i for i, label in enumerate(order)}
    used.sort(key=lambda label: (places.get(str(label), len(places)), label))
    labels = pa.array(used, kind.value_type)
    codes = pc.index_in(values, value_set=labels).cast(kind.index_type)
    return pa.DictionaryArray.from_arrays(_fresh(codes, ()), labels, ordered=kind.ordered)

"""CSV in and out: an explicit dialect, every column as text, no message but our own."""

from __future__ import annotations

import codecs
import os
import tempfile
import warnings
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from ..errors import BadInput, MaskwellWarning
from ..notes import Note
from ..table import Source, Statuses, Table, coded_values
from ..words.io import DELIMITERS
from ..words.phrases import number_text
from .csv_scan import CHUNK_BYTES, broken_line, check_text, is_regular, read_irregular
from .dialect import HEAD_BYTES, Dialect, find_dialect, header_of, line_end
from .headers import clean_names
from .memory import check_memory
from .numbers import Array, to_text
from .raw_columns import Raw
from .spreadsheets import formula_warning
from .titles import title_problem

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["Dialect", "load_csv", "write_csv"]

# Measured on 20 single digits and on 10 longer fields a record: 3.4 bytes per byte and 14 per field at the peak.
_BYTES_PER_BYTE, _BYTES_PER_FIELD, _BYTES_ANYWAY = 4, 16, 50_000_000
_LONGEST_LINE, _LONGEST_HEAD, _BUFFER_BYTES = 1 << 23, 1 << 24, 1 << 25
_RECORDS_AT_ONCE = 65_536


def load_csv(
    path: Path, dialect: Dialect | None = None, encoding: str = "utf-8", memory_limit: int | None = None
) -> Raw:
    """Read a CSV file as text, empty fields as null, in the dialect given or found."""
    if path.stat().st_size == 0:
        raise BadInput("the file is empty: there are no records")
    encoding = _codec(dialect.encoding if dialect and encoding == "utf-8" else encoding)
    with _private_copy(path, encoding) as text:
        check_text(text)
        return _load(text, dialect, encoding, memory_limit)


def _load(path: Path, dialect: Dialect | None, encoding: str, memory_limit: int | None) -> Raw:
    head, whole = _head(path)
    if problem := title_problem(head, DELIMITERS if dialect is None else dialect.delimiter):
        raise BadInput(problem)
    if dialect is None:
        dialect, notes = find_dialect(head, whole=whole, encoding=encoding)
    else:
        bom, notes = head.startswith("\ufeff"), [Note("io.dialect_as_asked", dialect.figures)]
        dialect = replace(dialect, newline=line_end(head), bom=bom, encoding=encoding)
    if not (header := header_of(head, dialect)):
        raise BadInput("the file holds no header: there are no records")
    if head.removeprefix("\ufeff")[:1] in ("\r", "\n"):
        raise BadInput("the first line is blank: put the line with the names of the columns first")
    names, header_notes = clean_names(header)
    check_memory(_memory_needed(path.stat().st_size, head, dialect, len(names)), memory_limit)
    data = _read_text(path, dialect, names)
    if encoding != "utf-8":
        notes = [*notes, Note("io.encoding", {"encoding": encoding})]
    return Raw(data, Source("csv", dialect=dialect), dialect.decimal, (*notes, *header_notes))


def _memory_needed(size: int, head: str, dialect: Dialect, fields: int) -> int:
    """Estimate the bytes that reading takes at its peak, from the length of the first lines."""
    records = size * head.count(dialect.newline) // len(head)
    return _BYTES_ANYWAY + _BYTES_PER_BYTE * size + _BYTES_PER_FIELD * records * fields


def _codec(encoding: str) -> str:
    try:
        name = codecs.lookup(encoding).name
    except (LookupError, ValueError):
        raise BadInput(f"there is no encoding {encoding!r}: use utf-8, latin-1, cp1252 or utf-16") from None
    return "utf-8" if name == "utf-8-sig" else name


def _head(path: Path) -> tuple[str, bool]:
    """Return the first lines of a UTF-8 file (the first two at least), and whether they are all."""
    with path.open("rb") as file:
        head = file.read(HEAD_BYTES)
        while len(head.splitlines()) <= 2 and len(head) < _LONGEST_HEAD and (more := file.read(len(head))):
            head += more
        whole = not file.read(1)
    return head.decode("utf-8", errors="ignore"), whole


@contextmanager
def _private_copy(path: Path, encoding: str) -> Iterator[Path]:
    """Give the file as UTF-8 under a plain name in a folder that only we can open."""
    with tempfile.TemporaryDirectory(prefix="maskwell-") as folder:
        copy = Path(folder, "input.csv")
        if encoding == "utf-8":
            copy.symlink_to(path.resolve())
        else:
            _transcode(path, copy, encoding)
        yield copy


def _transcode(path: Path, copy: Path, encoding: str) -> None:
    try:
        with (
            path.open(encoding=encoding, newline="") as old,
            copy.open("w", encoding="utf-8", newline="") as new,
        ):
            while text := old.read(CHUNK_BYTES):
                new.write(text)
    except UnicodeError:
        raise BadInput(f"the file is not in {encoding}: name its true encoding") from None


def _read_text(path: Path, dialect: Dialect, names: list[str]) -> pa.Table:
    fields = len(names)
    data = _duckdb_text(path, dialect, fields) if is_regular(path, dialect, fields) else None
    if data is not None:
        return data.rename_columns(names)
    if problem := broken_line(path, dialect, fields):
        raise BadInput(problem)
    return read_irregular(path, dialect, names)


def _duckdb_text(path: Path, dialect: Dialect, fields: int) -> pa.Table | None:
    """Read every field as text, or nothing when DuckDB refuses (its reason quotes the line)."""
    import duckdb

    columns = ", ".join(f"'c{i}': 'VARCHAR'" for i in range(fields))
    query = (
        f"SELECT * FROM read_csv($path, columns={{{columns}}}, auto_detect=false, header=true, delim=$delimiter, "
        "quote=$quote, escape=$quote, nullstr='', allow_quoted_nulls=true, compression='none', strict_mode=true, "
        f"null_padding=false, ignore_errors=false, max_line_size={_LONGEST_LINE}, buffer_size={_BUFFER_BYTES})"
    )
    given = {"path": str(path), "delimiter": dialect.delimiter, "quote": dialect.quote}
    with duckdb.connect(":memory:", config=_duckdb_settings(path.parent)) as connection:
        try:
            found: pa.Table = connection.sql(query, params=given).to_arrow_table()
        except duckdb.Error:
            return None
    return found


def _duckdb_settings(folder: Path) -> dict[str, Any]:
    return {
        "autoinstall_known_extensions": False,
        "autoload_known_extensions": False,
        "temp_directory": str(folder / "duckdb"),
        "preserve_insertion_order": True,
    }


def dialect_of(table: Table, delimiter: str | None = None) -> Dialect:
    """Return how a table is written: as it came, else as RFC 4180 says; a delimiter given goes before both."""
    dialect = table.source.dialect if isinstance(table.source.dialect, Dialect) else Dialect()
    return replace(dialect, encoding="utf-8", delimiter=delimiter or dialect.delimiter)


def write_csv(table: Table, path: Path, delimiter: str | None = None) -> None:
    """Write a table in its dialect; warn of texts that a spreadsheet would run."""
    dialect = dialect_of(table, delimiter)
    if said := formula_warning(table):
        warnings.warn(str(said), MaskwellWarning, stacklevel=4)
    with path.open("wb") as file, ThreadPoolExecutor(os.cpu_count()) as pool:
        if dialect.bom:
            file.write(codecs.BOM_UTF8)
        file.write((dialect.delimiter.join(_quoted_names(table.names, dialect)) + dialect.newline).encode())
        for start in range(0, len(table), _RECORDS_AT_ONCE):
            part = [(table, name, start, dialect) for name in table.names]
            _write_records(list(pool.map(_fields, part)), dialect, file)


def _quoted_names(names: Iterable[str], dialect: Dialect) -> list[str]:
    import pyarrow as pa

    return [name or "" for name in _with_quotes(pa.array(names, pa.string()), dialect).to_pylist()]


def _fields(part: tuple[Table, str, int, Dialect]) -> Array:
    """Return the written fields of one column for some records: empty where missing."""
    table, name, start, dialect = part
    column, array = table.schema[name], table.array(name).slice(start, _RECORDS_AT_ONCE)
    is_number = column.is_number and "id" not in column.roles
    text = to_text(array, dialect.decimal) if is_number else _with_quotes(array, dialect)
    if name in table.closed:
        text = _with_codes(
            text, coded_values(column), table.closed[name][start : start + len(array)], dialect
        )
    return text.fill_null("" if len(table.names) > 1 else dialect.quote * 2)


def _with_codes(text: Array, codes: dict[int, float | str], status: Statuses, dialect: Dialect) -> Array:
    """Write the codes of closed cells literally, text codes too."""
    import pyarrow as pa
    import pyarrow.compute as pc

    for mark, code in codes.items():
        at = status == mark
        if at.any():
            literal = code if isinstance(code, str) else number_text(code, dialect.decimal)
            text = pc.if_else(
                pa.array(at), pa.scalar(_quoted_names([literal], dialect)[0], pa.string()), text
            )
    return text


def _with_quotes(text: Array, dialect: Dialect) -> Array:
    """Quote the fields that hold a delimiter, a quote or a line end."""
    import pyarrow.compute as pc

    special = "".join(f"\\x{ord(sign):02x}" for sign in (dialect.delimiter, dialect.quote, "\r", "\n"))
    needed = pc.match_substring_regex(text, f"[{special}]")
    if not pc.any(needed).as_py():
        return text
    doubled = pc.replace_substring(text, dialect.quote, dialect.quote * 2)
    return pc.if_else(needed, pc.binary_join_element_wise(dialect.quote, doubled, dialect.quote, ""), text)


def _write_records(columns: list[Array], dialect: Dialect, file: BinaryIO) -> None:
    import pyarrow.compute as pc

    lines = pc.binary_join_element_wise(*columns, dialect.delimiter)
    ended = pc.binary_join_element_wise(lines, "", dialect.newline)
    file.write(ended.buffers()[2])

"""How data comes in and goes out: files, frames and bundles."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from ..errors import BadInput, CannotWrite, nearest
from ..notes import Note
from ..schema import Schema

if TYPE_CHECKING:
    from ..table import Table
    from .dialect import Dialect
    from .inspect import SchemaProposal
    from .memory import FileCounts
    from .raw_columns import Raw

__all__ = ["FORMATS", "load", "read", "write"]

FORMATS = {
    "csv": "csv",
    "tsv": "csv",
    "txt": "csv",
    "parquet": "parquet",
    "pq": "parquet",
    "arrow": "arrow",
    "feather": "arrow",
    "ipc": "arrow",
    "sav": "sav",
    "zsav": "sav",
    "dta": "dta",
    "xpt": "xpt",
    "sas7bdat": "xpt",
}


def read(
    path: str | Path,
    schema: Schema | str | Path | None = None,
    *,
    format: str | None = None,
    dialect: Dialect | None = None,
    encoding: str = "utf-8",
    memory_limit: int | None = None,
    expected: FileCounts | None = None,
) -> Table:
    """Read a file of records; without a schema (or the path of one) a schema is proposed.

    What a person must decide about the columns then stands in the table's notes, one for each column.
    The format follows from the file's ending unless given. `dialect` and `encoding` are for CSV, whose dialect
    is otherwise found and said in the table's notes. `memory_limit` (bytes) replaces the memory of the machine.
    `expected` are the counts that the file must have, compared before it is read.
    """
    known = Schema.read(schema) if isinstance(schema, (str, Path)) else schema
    raw = load(
        path, format=format, dialect=dialect, encoding=encoding, memory_limit=memory_limit, expected=expected
    )
    return conform_raw(raw, known)


def load(
    path: str | Path,
    *,
    format: str | None = None,
    dialect: Dialect | None = None,
    encoding: str = "utf-8",
    memory_limit: int | None = None,
    expected: FileCounts | None = None,
) -> Raw:
    """Read a file as it is, before any schema: text columns from CSV, typed ones from other formats."""
    file = Path(path)
    before = _stamp(file)
    ending = _file_suffix(file, format, BadInput)
    kind = FORMATS[ending]
    if kind == "csv":
        from .csv import load_csv

        raw = load_csv(file, dialect, encoding, memory_limit)
    elif kind in ("parquet", "arrow"):
        from .parquet import load_columnar

        raw = load_columnar(file, kind, memory_limit, expected)
    else:
        from .stat_files import load_stat

        raw = load_stat(file, ending, memory_limit, expected)
    if expected is not None:
        expected.check(raw.data.num_rows, raw.data.num_columns)
    if _stamp(file) != before:
        raise BadInput(f"the file {str(path)!r} changed while it was read: read it again when it is complete")
    return raw


def conform_raw(raw: Raw, schema: Schema | None) -> Table:
    """Make a table of raw columns by a schema, or by the one proposed for them."""
    from .conform import conform
    from .hints import apply_cells, schema_with_hints

    if schema is None:
        return conform_proposed(raw, proposal_of(raw))
    schema, said = schema_with_hints(schema, raw)
    table = conform(raw.data, schema, raw.source, decimal=raw.decimal, notes=(*raw.notes, *said))
    return apply_cells(table, raw)


def proposal_of(raw: Raw) -> SchemaProposal:
    """Propose a schema for raw columns, with what the file itself says of their codes and labels."""
    from .hints import as_categories, without_codes
    from .inspect import propose

    labels = {name: hint.description for name, hint in raw.hints.items()}
    proposal = propose(without_codes(raw), decimal=raw.decimal, labels=labels)
    return replace(proposal, schema=as_categories(proposal.schema, raw))


def conform_proposed(raw: Raw, proposal: SchemaProposal) -> Table:
    """Make a table by a schema that nobody has seen; what is open stands in the notes."""
    from .inspect import unreviewed_schema

    table = conform_raw(raw, unreviewed_schema(proposal.schema))
    asked = [
        Note("io.column_undecided", {"column": name, "questions": questions})
        for name, questions in proposal.questions().items()
    ]
    return replace(table, notes=(*table.notes, Note("io.no_schema"), *asked))


def write(table: Table, path: str | Path, format: str | None = None) -> None:
    """Write a table, whole or not at all, in the format of the file's ending unless another is given."""
    file = Path(path)
    ending = _file_suffix(file, format, CannotWrite)
    if not file.parent.is_dir():
        raise CannotWrite(f"the folder {str(file.parent)!r} does not exist: make it first")
    _write_whole(file, lambda target: _write_as(table, target, ending))


def _write_as(table: Table, target: Path, ending: str) -> None:
    kind = FORMATS[ending]
    if kind == "csv":
        from .csv import write_csv

        write_csv(table, target, "\t" if ending == "tsv" else None)
    elif kind in ("parquet", "arrow"):
        from .parquet import write_columnar

        write_columnar(table, target, kind)
    else:
        from .stat_export import write_stat

        write_stat(table, target, ending)


def _write_whole(file: Path, writer: Callable[[Path], None]) -> None:
    """Write beside the target and move it into place, so that nothing partial ever stands there."""
    beside = file.with_name(f".{file.name}.{os.urandom(4).hex()}.part")
    try:
        writer(beside)
        os.replace(beside, file)
    except OSError as error:
        raise CannotWrite(
            f"the file {str(file)!r} cannot be written: {error.strerror or 'no reason given'}"
        ) from None
    finally:
        with suppress(OSError):
            beside.unlink(missing_ok=True)


def _file_suffix(file: Path, format: str | None, error: type[BadInput] | type[CannotWrite]) -> str:
    ending = (format or file.suffix.removeprefix(".")).lower()
    if ending in FORMATS:
        return ending
    listed, option = f"one of {', '.join(FORMATS)}", "name it with the option format"
    if ending:
        raise error(f"the format {ending!r} is not {listed}{nearest(ending, FORMATS)}: {option}")
    raise error(f"the file {file.name!r} has no ending that says its format: {option}, {listed}")


def _stamp(file: Path) -> tuple[int, int]:
    try:
        found = file.stat()
    except OSError as error:
        raise BadInput(f"the file {str(file)!r} cannot be read: {error.strerror}") from None
    if not file.is_file():
        raise BadInput(f"{str(file)!r} is not a file")
    return found.st_size, found.st_mtime_ns

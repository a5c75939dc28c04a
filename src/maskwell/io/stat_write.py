"""SPSS, Stata and SAS transport files written with the labels and missing codes that are still in use."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import CannotWrite, raise_all
from ..schema import FIRST_MISSING_CODE, OPEN, Column
from ..table import Table
from .columnar import clean_arrow, warn_of_text_codes
from .numbers import EXACT_BELOW, codes_text, number_text, to_text
from .stat import Ranges
from .stat_bytes import fix_times

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

_EXTENDED = re.compile(r"\.[a-z]")
_STATA_LONG = (-2_147_483_647, 2_147_483_620)
_STATA_LARGEST = 8.9e307
_SPSS_CODES, _SPSS_CODE_BYTES = 3, 8


@dataclass(frozen=True, slots=True)
class Limits:
    """What a format allows: names (pattern, length, reserved words), text, descriptions and labels in bytes."""

    program: str
    name: str
    name_bytes: int
    reserved: frozenset[str]
    text_bytes: int
    description_bytes: int
    label_bytes: int


_SPSS_WORDS = frozenset("all and by eq ge gt le lt ne not or to with".split())
_STATA_WORDS = frozenset(
    "_all _b byte _coef _cons double float if in int long _n _pi _pred _rc _skip strl using with".split()
)
LIMITS = {
    "sav": Limits("SPSS", r"[^\W\d_][\w.@#$]*", 64, _SPSS_WORDS, 32_767, 256, 120),
    "dta": Limits("Stata", r"[^\W\d]\w*", 32, _STATA_WORDS, 2_045, 80, 32_000),
    "xpt": Limits("a SAS transport file", r"[A-Za-z_][A-Za-z0-9_]*", 8, frozenset(), 200, 40, 0),
}


def write_stat(table: Table, path: Path, ending: str) -> None:
    """Write an SPSS, Stata or SAS transport file; the same table gives the same bytes."""
    if ending == "sas7bdat":
        raise CannotWrite("SAS's own format cannot be written: write a .xpt transport file, which SAS reads")
    try:
        import pandas  # noqa: F401, ICN001
        import pyreadstat
    except ImportError:
        raise CannotWrite("SPSS, Stata and SAS files need pyreadstat: pip install maskwell[stat]") from None
    kind = "sav" if ending == "zsav" else ending
    data = clean_arrow(table)
    raise_all([*_name_problems(table, kind), *_value_problems(table, data, kind)], CannotWrite)
    writer = {"sav": pyreadstat.write_sav, "dta": pyreadstat.write_dta, "xpt": pyreadstat.write_xport}[kind]
    described = {column.name: column.description for column in table.schema.columns if column.description}
    options = {"sav": _spss_options, "dta": _stata_options, "xpt": _sas_options}[kind](table, data)
    if ending == "zsav":
        options["compress"] = True
    try:
        writer(_frame(table, data, kind), str(path), column_labels=described or None, **options)
    except (pyreadstat.ReadstatError, pyreadstat.PyreadstatError):
        raise CannotWrite(f"{LIMITS[kind].program} cannot hold this table: its names, texts or codes do not fit") from None
    fix_times(path, kind)


def codebook(table: Table) -> tuple[str, ...]:
    """Return one sentence for each column with labels, for formats that hold none (SAS transport files, CSV)."""
    return tuple(
        f"column {column.name!r}: " + ", ".join(f"{code} = {label}" for code, label in column.labels)
        for column in table.schema.columns
        if column.labels
    )


def _name_problems(table: Table, kind: str) -> Iterator[str]:
    limits = LIMITS[kind]
    for column in table.schema.columns:
        name, says = column.name, f"column {column.name!r}:"
        if not re.fullmatch(limits.name, name) or name.lower() in limits.reserved:
            yield f"{says} {limits.program} does not allow this name; rename it (letters, digits, underscores)"
        if len(name.encode()) > limits.name_bytes:
            yield f"{says} {limits.program} allows names of at most {limits.name_bytes} bytes; shorten it"
        if len(column.description.encode()) > limits.description_bytes:
            yield f"{says} its description is longer than {limits.description_bytes} bytes; shorten it"
        if limits.label_bytes and any(len(label.encode()) > limits.label_bytes for _, label in column.labels):
            yield f"{says} it has a label longer than {limits.label_bytes} bytes; shorten it"
    lowered = [name.lower() for name in table.names] if kind != "dta" else []
    for name in sorted({name for name in lowered if lowered.count(name) > 1}):
        yield f"columns named {name!r} differ only in upper and lower case; rename all but one"


def _value_problems(table: Table, data: pa.Table, kind: str) -> Iterator[str]:
    for column in table.schema.columns:
        array, says = data.column(column.name), f"column {column.name!r}:"
        if _is_text(array.type):
            if _longest(array) > LIMITS[kind].text_bytes:
                yield f"{says} it holds text longer than {LIMITS[kind].text_bytes} bytes; shorten it"
        elif column.is_number and _largest(array) >= EXACT_BELOW and column.kind == "integer":
            yield f"{says} it holds whole numbers beyond 2^53, which the format cannot; make it text"
        elif kind == "dta" and _largest(array) > _STATA_LARGEST:
            yield f"{says} it holds numbers that Stata takes for missing; divide them by a power of ten"
        if kind == "sav":
            yield from _code_problems(table, column, _is_text(array.type))


def _is_text(kind: pa.DataType) -> bool:
    import pyarrow.types as types

    return types.is_dictionary(kind) or types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind)


def _longest(array: pa.ChunkedArray[Any]) -> int:
    import pyarrow as pa
    import pyarrow.compute as pc

    return pc.max(pc.binary_length(array.cast(pa.string()))).as_py() or 0


def _largest(array: pa.ChunkedArray[Any]) -> float:
    import pyarrow as pa
    import pyarrow.compute as pc

    found = pc.min_max(array.cast(pa.float64(), safe=False)).as_py()
    return max(abs(found["min"] or 0.0), abs(found["max"] or 0.0))

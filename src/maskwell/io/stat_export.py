"""SPSS, Stata and SAS transport files written with the labels and missing codes that are still in use."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import CannotWrite, raise_all
from ..schema import FIRST_MISSING_CODE, MISSING, Column
from ..table import Table
from .numbers import EXACT_BELOW, Array, codes_text, to_text
from .parquet import clean_arrow, warn_of_text_codes
from .stat_files import Ranges

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

_EXTENDED = r"\.[a-z]"
_STATA_LONG = (-2_147_483_647, 2_147_483_620)
_STATA_LARGEST = 8.9e307
_SPSS_CODES, _SPSS_CODE_BYTES = 3, 8


@dataclass(frozen=True, slots=True)
class FormatLimits:
    """What a format allows: names (pattern, length, reserved words), text, descriptions and labels in bytes."""

    program: str
    name: str
    name_bytes: int
    reserved: str
    text_bytes: int
    description_bytes: int
    label_bytes: int


_SPSS_WORDS = "all|and|by|eq|ge|gt|le|lt|ne|not|or|to|with"
_STATA_WORDS = (
    "_all|_b|byte|_coef|_cons|double|float|if|in|int|long|_n|_pi|_pred|_rc|_skip|strl|str[0-9]+|using|with"
)
LIMITS = {
    "sav": FormatLimits("SPSS", r"[^\W\d_][\w.@#$]*", 64, _SPSS_WORDS, 32_767, 256, 120),
    "dta": FormatLimits("Stata", r"[^\W\d]\w*", 32, _STATA_WORDS, 2_045, 80, 32_000),
    "xpt": FormatLimits("a SAS transport file", r"[A-Za-z_][A-Za-z0-9_]*", 8, "", 200, 40, 0),
}


def write_stat(table: Table, path: Path, ending: str) -> None:
    """Write an SPSS, Stata or SAS transport file; the same table gives the same bytes."""
    if ending == "sas7bdat":
        raise CannotWrite("SAS's own format cannot be written: write a .xpt transport file, which SAS reads")
    try:
        import pandas  # noqa: F401
        import pyreadstat
    except ImportError:
        raise CannotWrite("SPSS, Stata and SAS files need pyreadstat: pip install maskwell[stat]") from None
    kind = "sav" if ending == "zsav" else ending
    data = _with_whole_codes(table, clean_arrow(_without_letters(table) if kind == "dta" else table))
    raise_all([*_name_problems(table, kind), *_value_problems(table, data, kind)], CannotWrite)
    writer: Any = {"sav": pyreadstat.write_sav, "dta": pyreadstat.write_dta, "xpt": pyreadstat.write_xport}[
        kind
    ]
    described = {column.name: column.description for column in table.schema.columns if column.description}
    options = {"sav": _spss_options, "dta": _stata_options, "xpt": _sas_options}[kind](table, data)
    if ending == "zsav":
        options["compress"] = True
    try:
        writer(_frame(table, data, kind), str(path), column_labels=described or None, **options)
    except (pyreadstat.ReadstatError, pyreadstat.PyreadstatError):
        raise CannotWrite(
            f"{LIMITS[kind].program} cannot hold this table: its names, texts or codes do not fit"
        ) from None
    fix_times(path, kind)


def _with_whole_codes(table: Table, data: pa.Table) -> pa.Table:
    """Write categories that came as text (CSV) but are whole numbers as numbers, which can carry labels."""
    import pyarrow as pa

    for i, column in enumerate(table.schema.columns):
        array = data.column(i)
        if column.kind == "category" and column.name not in table.source.types and _is_text(array.type):
            try:
                whole = array.cast(pa.int64())
            except pa.ArrowInvalid:
                continue
            if whole.cast(array.type).equals(array):
                data = data.set_column(i, column.name, whole)
    return data


def _without_letters(table: Table) -> Table:
    """Return the table with the cells that Stata writes as .a to .z made plain missing."""
    closed = dict(table.closed)
    for name in table.closed:
        coded = np.isin(closed[name], list(_letters(table, name)))
        closed[name] = np.where(coded, np.uint8(MISSING), closed[name])
    return replace(table, closed=closed)


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
        if not re.fullmatch(limits.name, name) or re.fullmatch(limits.reserved, name.lower()):
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

    return (
        types.is_dictionary(kind)
        or types.is_string(kind)
        or types.is_large_string(kind)
        or types.is_string_view(kind)
    )


def _longest(array: Array) -> int:
    import pyarrow as pa
    import pyarrow.compute as pc

    return pc.max(pc.binary_length(array.cast(pa.string()))).as_py() or 0


def _largest(array: Array) -> float:
    import pyarrow as pa
    import pyarrow.compute as pc

    return float(pc.max(pc.abs(array.cast(pa.float64(), safe=False))).as_py() or 0.0)


def _code_problems(table: Table, column: Column, is_text: bool) -> Iterator[str]:
    declared = _spss_missing(table, column, is_text)
    has_range = any(isinstance(code, dict) for code in declared)
    if len(declared) > (2 if has_range else _SPSS_CODES):
        yield f"column {column.name!r}: SPSS allows three missing codes, or a range and one; make some of them one code"
    if is_text and any(len(code.encode()) > _SPSS_CODE_BYTES for code in declared):
        yield f"column {column.name!r}: SPSS allows missing codes of at most {_SPSS_CODE_BYTES} bytes; shorten it"


def _spss_missing(table: Table, column: Column, is_text: bool) -> list[Any]:
    """Return the codes declared missing, as SPSS wants them: a range where the file had one and it still holds."""
    if is_text:
        return _few(table, column, dict(enumerate(codes_text(column.missing))))
    codes = {i: code for i, code in enumerate(column.missing) if not isinstance(code, str)}
    kept = table.source.dialect.of.get(column.name, ()) if isinstance(table.source.dialect, Ranges) else ()
    ranges = [(low, high) for low, high in kept if not _any_open_between(table, column, low, high)]
    outside = {i: code for i, code in codes.items() if not any(low <= code <= high for low, high in ranges)}
    return [*({"lo": low, "hi": high} for low, high in ranges), *_few(table, column, outside)]


def _few(table: Table, column: Column, codes: dict[int, Any]) -> list[Any]:
    """Return the codes; of more than three only those that occur."""
    if len(codes) <= _SPSS_CODES:
        return list(codes.values())
    present = set(np.unique(table.status(column.name)).tolist())
    return [code for i, code in codes.items() if FIRST_MISSING_CODE + i in present]


def _any_open_between(table: Table, column: Column, low: float, high: float) -> bool:
    if not column.is_number:
        return False
    values = table.values([column.name])[:, 0]
    return bool(np.any((values >= low) & (values <= high)))


def _spss_options(table: Table, data: pa.Table) -> dict[str, Any]:
    columns = {
        column.name: (column, _is_text(data.schema.field(column.name).type))
        for column in table.schema.columns
    }
    missing = {name: _spss_missing(table, *described) for name, described in columns.items()}
    labels = {name: _labels(table, *described) for name, described in columns.items()}
    measures = {name: "scale" if column.is_number else "nominal" for name, (column, _) in columns.items()}
    whole = {
        name: "F8.0"
        for name, (column, is_text) in columns.items()
        if not is_text and column.kind != "continuous"
    }
    return {
        "missing_ranges": {name: codes for name, codes in missing.items() if codes},
        "variable_value_labels": {name: found for name, found in labels.items() if found},
        "variable_measure": measures,
        "variable_format": whole,
    }


def _stata_options(table: Table, data: pa.Table) -> dict[str, Any]:
    letters = {name: sorted(_letters(table, name).values()) for name in table.names}
    labels = {}
    for column in table.schema.columns:
        if not _is_text(data.schema.field(column.name).type):
            found = {
                int(code): label for code, label in _labels(table, column, False).items() if code == int(code)
            }
            labels[column.name] = found | _letter_labels(table, column)
    return {
        "version": 14,
        "missing_user_values": {name: found for name, found in letters.items() if found},
        "variable_value_labels": {name: found for name, found in labels.items() if found},
    }


def _sas_options(table: Table, data: pa.Table) -> dict[str, Any]:
    return {"file_format_version": 5, "table_name": "DATA"}


def _labels(table: Table, column: Column, is_text: bool) -> dict[Any, str]:
    """Return the labels of declared categories and of values and codes that occur, keyed as the column is written."""
    if not column.labels:
        return {}
    allowed = set(column.categories) | _occurring_texts(table, column)
    kept = {code: label for code, label in column.labels if code in allowed}
    if is_text:
        return kept
    return {float(code): label for code, label in kept.items() if re.fullmatch(r"-?\d+(\.\d+)?", code)}


def _occurring_texts(table: Table, column: Column) -> set[str]:
    values = table.array(column.name).unique().drop_null()
    texts = (to_text(values) if column.is_number else values).to_pylist()
    return {*texts, *(codes_text([code])[0] for code in _present_codes(table, column).values())}


def _present_codes(table: Table, column: Column) -> dict[int, float | str]:
    from ..table import coded_values

    present = set(np.unique(table.status(column.name)).tolist())
    return {mark: code for mark, code in coded_values(column).items() if mark in present}


def _letters(table: Table, name: str) -> dict[int, str]:
    """Return the letter of each status that Stata writes as an extended missing value (.a to .z)."""
    column = table.schema[name]
    if not (column.is_number or (column.categories and all(map(_is_whole, column.categories)))):
        return {}
    present = _present_codes(table, column)
    return {
        mark: code[1]
        for mark, code in present.items()
        if isinstance(code, str) and re.fullmatch(_EXTENDED, code)
    }


def _is_whole(text: str) -> bool:
    return re.fullmatch(r"0|-?[1-9]\d*", text) is not None


def _letter_labels(table: Table, column: Column) -> dict[str, str]:
    labels = dict(column.labels)
    letters = _letters(table, column.name).values()
    return {letter: labels[f".{letter}"] for letter in letters if f".{letter}" in labels}


def _frame(table: Table, data: pa.Table, kind: str) -> pd.DataFrame:
    import pandas as pd

    warn_of_text_codes(table, _EXTENDED if kind == "dta" else "")
    return pd.DataFrame({name: _series(table, name, data.column(name), kind) for name in table.names})


def _series(table: Table, name: str, column: Array, kind: str) -> Any:
    """Return a column as pyreadstat wants it: text as objects, numbers as doubles, Stata's whole ones as int32."""
    import pandas as pd
    import pyarrow as pa

    if _is_text(column.type):
        return pd.Series(column.cast(pa.string()).to_pylist(), dtype=object)
    numbers = column.cast(pa.float64(), safe=False)
    if kind == "dta" and pa.types.is_integer(column.type) and _fits_long(numbers):
        numbers = column.cast(pa.int32())
    letters = _letters(table, name) if kind == "dta" else {}
    if letters:
        return pd.Series(_with_letters(numbers.to_pylist(), table.status(name), letters), dtype=object)
    if pa.types.is_integer(numbers.type):
        return pd.Series(numbers.to_pylist(), dtype="Int32")
    return pd.Series(numbers.to_numpy())


def _fits_long(numbers: Array) -> bool:
    import pyarrow.compute as pc

    low, high = pc.min(numbers).as_py() or 0, pc.max(numbers).as_py() or 0
    return bool(_STATA_LONG[0] <= low and high <= _STATA_LONG[1])


def _with_letters(values: list[Any], status: Any, letters: dict[int, str]) -> list[Any]:
    for mark, letter in letters.items():
        for record in np.flatnonzero(status == mark).tolist():
            values[record] = letter
    return values


# The creation times in the headers of statistics files, overwritten so that equal tables give equal bytes.


_SPSS_TIME = (92, b"01 Jan 7000:00:00")
_SAS_TIME = b"01JAN70:00:00:00"
_SAS_PLACES = (144, 160, 464, 480)
_STATA_TAG, _STATA_TIME = b"<timestamp>", b"01 Jan 1970 00:00"
_STATA_HEAD_BYTES = 4096


def fix_times(path: Path, ending: str) -> None:
    """Overwrite the creation times of a file that pyreadstat has just written."""
    with path.open("r+b") as file:
        head = file.read(_STATA_HEAD_BYTES)
        for place, text in _times(head, ending):
            file.seek(place)
            file.write(text)


def _times(head: bytes, ending: str) -> list[tuple[int, bytes]]:
    if ending == "xpt":
        return [(place, _SAS_TIME) for place in _SAS_PLACES]
    if ending == "dta":
        return [(_stata_place(head), _STATA_TIME)]
    return [_SPSS_TIME]


def _stata_place(head: bytes) -> int:
    """Return where the time stands: after the tag and one byte that holds its length."""
    tag = head.find(_STATA_TAG)
    place = tag + len(_STATA_TAG) + 1
    if tag < 0 or head[place - 1] != len(_STATA_TIME):
        raise CannotWrite(
            "the Stata file's header is not as expected: this version of pyreadstat cannot be used"
        )
    return place

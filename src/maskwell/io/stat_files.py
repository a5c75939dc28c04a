"""SPSS, Stata and SAS files read with their labels and user-missing codes, through pyreadstat."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from ..errors import BadInput
from ..table import Source
from ..words.phrases import number_text
from .headers import clean_names
from .memory import FileCounts, check_memory
from .numbers import EXACT_BELOW, Array, array_with_nulls, is_word
from .raw_columns import Hint, Raw

if TYPE_CHECKING:
    pass

MEMORY_RATIO = 12
_KINDS = {"zsav": "sav", "sas7bdat": "xpt"}


@dataclass(frozen=True, slots=True)
class Ranges:
    """The ranges of values that an SPSS file declares missing, by column: what codes alone cannot say."""

    of: Mapping[str, tuple[tuple[float, float], ...]] = field(default_factory=dict)


def load_stat(
    path: Path, ending: str, memory_limit: int | None = None, expected: FileCounts | None = None
) -> Raw:
    """Read an SPSS (sav, zsav), Stata (dta) or SAS (sas7bdat, xpt) file with what it says of its columns."""
    import pyarrow as pa

    check_memory(MEMORY_RATIO * path.stat().st_size, memory_limit)
    if expected is not None:
        said = _read(path, ending, metadataonly=True)[1]
        if said.number_rows is not None and said.number_rows >= 0:  # not every file says it
            expected.check(said.number_rows, said.number_columns)
    columns, meta = _read(path, ending)
    names, notes = clean_names(list(columns))
    renamed = dict(zip(names, columns, strict=True))
    hints = {name: _hint(meta, old, columns[old]) for name, old in renamed.items()}
    data = pa.table({name: _array(columns[old], hints[name]) for name, old in renamed.items()})
    types = {name: data.schema.field(name).type for name in names}
    ranges = {name: found for name, old in renamed.items() if (found := _ranges(meta, old))}
    source = Source(_KINDS.get(ending, ending), types, Ranges(ranges))
    return Raw(data, source, notes=tuple(notes), hints=hints)


def _read(path: Path, ending: str, **further: Any) -> tuple[dict[str, list[Any]], Any]:
    try:
        import pyreadstat
    except ImportError:
        raise BadInput("SPSS, Stata and SAS files need pyreadstat: pip install maskwell[stat]") from None
    readers: dict[str, Any] = {
        "dta": pyreadstat.read_dta,
        "xpt": pyreadstat.read_xport,
        "sas7bdat": pyreadstat.read_sas7bdat,
    }
    options = {} if ending == "xpt" else {"user_missing": True}
    try:
        columns, meta = readers.get(ending, pyreadstat.read_sav)(
            str(path), output_format="dict", **options, **further
        )
    except Exception:  # pyreadstat raises many kinds, and some quote values
        raise BadInput(
            f"the file is not a readable {ending} file: it is damaged or of another version"
        ) from None
    return dict(columns), meta


def _hint(meta: Any, name: str, values: list[Any]) -> Hint:
    labels = {
        _code_text(code): str(label) for code, label in meta.variable_value_labels.get(name, {}).items()
    }
    cells = _extended_cells(values, meta.missing_user_values.get(name, ()))
    codes = (*_declared_codes(meta.missing_ranges.get(name, ()), values, labels), *cells)
    if cells:
        labels = {f".{code}" if f".{code}" in cells else code: label for code, label in labels.items()}
    return Hint(meta.column_names_to_labels.get(name) or "", labels, codes, cells)


def _code_text(code: Any) -> str:
    return code if isinstance(code, str) else number_text(float(code))


def _extended_cells(values: list[Any], letters: Sequence[str]) -> dict[str, npt.NDArray[np.bool_]]:
    """Return where Stata's missing values .a to .z stand; they come as single letters among the numbers."""
    return {f".{letter}": np.array([value == letter for value in values]) for letter in sorted(letters)}


def _declared_codes(
    declared: Sequence[Any], values: list[Any], labels: Mapping[str, str]
) -> list[float | str]:
    """Return the codes declared missing: single ones, and those of a range that occur or have a label."""
    codes: dict[float | str, None] = {}
    for low, high in ((one["lo"], one["hi"]) for one in declared):
        if low == high:
            codes[_whole(low)] = None
            continue
        numbers = {value for value in values if isinstance(value, float)} | _numbers(labels)
        codes |= dict.fromkeys(_whole(number) for number in sorted(numbers) if low <= number <= high)
    return list(codes)


def _numbers(codes: Mapping[str, str]) -> set[float]:
    return {float(code) for code in codes if code.lstrip("-").replace(".", "", 1).isdecimal()}


def _whole(code: float | str) -> float | str:
    return int(code) if isinstance(code, float) and code.is_integer() else code


def _ranges(meta: Any, name: str) -> tuple[tuple[float, float], ...]:
    declared = meta.missing_ranges.get(name, ())
    return tuple((one["lo"], one["hi"]) for one in declared if one["lo"] != one["hi"])


def _array(values: list[Any], hint: Hint) -> Array:
    """Make an Arrow array: whole numbers as int64, empty text and extended missing values as null."""
    import pyarrow as pa

    if hint.cells:
        values = [None if isinstance(value, str) else value for value in values]
    array = pa.array(values)
    if pa.types.is_string(array.type):
        return array_with_nulls(array, is_word(array, ""))
    if not pa.types.is_floating(array.type):
        return array
    numbers = array.drop_null().to_numpy(zero_copy_only=False)
    whole = bool(numbers.size) and bool(
        np.all((numbers == np.rint(numbers)) & (np.abs(numbers) < EXACT_BELOW))
    )
    return array.cast(pa.int64()) if whole else array

"""Texts that a spreadsheet would run: a cell of a CSV file that begins with =, +, -, @, a tab or a line end.

A quote does not help and an added sign would change the data for every other reader, so the texts are written as they
are and whoever writes or reads the file is told. Numbers, negative ones too, are no formulas.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..notes import Note
from ..table import coded_values

if TYPE_CHECKING:
    from ..table import Table

_FORMULA = r"(?s)^[=@+\-\t\r]."
_NUMBER = r"^[+\-]?(?:\d+[.,]?\d*|[.,]\d+)(?:[eE][+\-]?\d+)?$"


def formula_columns(table: Table) -> tuple[str, ...]:
    """Return the columns of a table whose names, texts or codes a spreadsheet would take for formulas."""
    return tuple(name for name in table.names if _would_run(_texts(table, name)))


def formula_warning(table: Table) -> Note | None:
    """Say which columns of a table a spreadsheet would take for formulas; nothing where there are none."""
    columns = formula_columns(table)
    return Note("io.formulas", {"columns": columns}) if columns else None


def _texts(table: Table, name: str) -> Any:
    """Return the different texts that are written in a column, its name among them."""
    import pyarrow as pa
    import pyarrow.compute as pc

    column = table.schema[name]
    codes = [code for code in coded_values(column).values() if isinstance(code, str)]
    array = table.array(name)
    is_text = not column.is_number and "id" not in column.roles
    values = pc.unique(array.cast(pa.string())).drop_null() if is_text else pa.array([], pa.string())
    return pa.concat_arrays([values, pa.array([name, *codes], pa.string())])


def _would_run(texts: Any) -> bool:
    import pyarrow.compute as pc

    starts = pc.match_substring_regex(texts, _FORMULA)
    numbers = pc.match_substring_regex(texts, _NUMBER)
    return bool(pc.any(pc.and_not(starts, numbers)).as_py())

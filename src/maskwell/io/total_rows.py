"""A row of totals at the end of a file, which is no record: its word, and its numbers, the sums of those above."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from .column_drafts import ColumnFinding
from .column_profile import Facts, Floats

if TYPE_CHECKING:
    import pyarrow as pa

FEWEST_ADDED = 3  # numbers above that are not 0
ROUNDED = 1e-6  # share of a sum that it may be off by, written with few digits
_WORD = re.compile(
    r"\W*(grand |sub)?(totals?|totale|totaux|sums?|summe|gesamt\w*|insgesamt|somme|suma|soma)\b.*",
    re.IGNORECASE,
)


def total_row(raw: pa.Table, facts: Sequence[Facts]) -> list[ColumnFinding]:
    """Say that the last record looks like a row of totals, where it does."""
    last = [raw.column(name)[-1].as_py() for name in raw.column_names]
    words = [one.name for one, value in zip(facts, last, strict=True) if _is_word(value)]
    sums = [one.name for one in facts if one.numbers is not None and _ends_in_sum(one.numbers)]
    if not words or not sums:
        return []
    text = (
        f"the last record ({raw.num_rows:,}) has the word of a total in {', '.join(words)} and the sums of "
        f"{', '.join(sums)}"
    )
    otherwise = "A row of totals? Then take it out of the file, and draft the schema anew"
    return [ColumnFinding(None, "total", text, otherwise=otherwise, asks=": taken for a record")]


def _is_word(value: object) -> bool:
    return isinstance(value, str) and _WORD.fullmatch(value) is not None


def _ends_in_sum(numbers: Floats) -> bool:
    """Whether the last number is the sum of those above, several of which are not 0."""
    above, last = numbers[:-1][~np.isnan(numbers[:-1])], float(numbers[-1])
    if np.isnan(last) or np.count_nonzero(above) < FEWEST_ADDED:
        return False
    return abs(last - float(above.sum())) <= ROUNDED * float(np.abs(above).sum())

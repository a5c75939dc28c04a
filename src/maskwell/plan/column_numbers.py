"""The values of a column as numbers: of groups and classes from 0 on, of codes those that their labels are."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from ..table import Table

SHORT = re.compile(r"-?\d{1,2}([.,]0+)?")  # whole numbers as codes are: larger ones are amounts


def group_codes(table: Table, name: str) -> Any:
    """Number the values of a column; -1 where there is none."""
    encoded: Any = table.array(name).dictionary_encode()
    return encoded.indices.fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int64)


def code_numbers(table: Table, name: str) -> Any:
    """Return the numbers that the labels of a category are, NaN where there is none."""
    labels = np.array([float(label.replace(",", ".")) for label in table.schema[name].categories] + [np.nan])
    return labels[np.nan_to_num(table.floats(name), nan=len(labels) - 1).astype(np.int64)]


def class_numbers(table: Table, name: str) -> Any:
    """Number the classes of a category from 0 on, a missing one too."""
    codes = group_codes(table, name)
    return (codes - codes.min(initial=0)).astype(float)


def are_numbers(labels: Iterable[str]) -> bool:
    """Whether all labels are short whole numbers, as codes are."""
    return all(map(SHORT.fullmatch, labels))

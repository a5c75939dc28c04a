"""The values of a column as numbers: of groups and classes from 0 on, of codes those that their labels are."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from ..table import Table

SHORT = re.compile(r"-?\d{1,2}([.,]0+)?")  # whole numbers as codes are: larger ones are amounts

WORDS = 1000.0  # the first number of labels that are words: above all short whole numbers


def group_codes(table: Table, name: str) -> Any:
    """Number the values of a column; -1 where there is none."""
    encoded: Any = table.array(name).dictionary_encode()
    return encoded.indices.fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int64)


def code_numbers(table: Table, name: str) -> Any:
    """Return the numbers that the labels of a category are, NaN where there is none."""
    labels = np.array([float(label.replace(",", ".")) for label in table.schema[name].categories] + [np.nan])
    return labels[np.nan_to_num(table.floats(name), nan=len(labels) - 1).astype(np.int64)]


def label_numbers(table: Table, names: Sequence[str]) -> dict[str, Any]:
    """Return the labels of some categories as numbers that are equal where the labels are; NaN where there is none.

    Labels that are numbers stand for these; others follow above all such.
    """
    texts = (label for name in names for label in table.schema[name].categories if not are_numbers([label]))
    words = {label: WORDS + i for i, label in enumerate(dict.fromkeys(texts))}
    found = dict[str, Any]()
    for name in names:
        labels = table.schema[name].categories
        numbers = [words[one] if one in words else float(one.replace(",", ".")) for one in labels]
        codes = np.nan_to_num(table.floats(name), nan=len(labels)).astype(np.int64)
        found[name] = np.array([*numbers, np.nan])[codes]
    return found


def class_numbers(table: Table, name: str) -> Any:
    """Number the classes of a category from 0 on, a missing one too."""
    codes = group_codes(table, name)
    return (codes - codes.min(initial=0)).astype(float)


def are_numbers(labels: Iterable[str]) -> bool:
    """Whether all labels are short whole numbers, as codes are."""
    return all(map(SHORT.fullmatch, labels))

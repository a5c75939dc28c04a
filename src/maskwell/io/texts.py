"""Columns as text: canonical spellings of whole numbers and booleans, and what cannot be text."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import product
from typing import TYPE_CHECKING

import numpy as np

from ..arrow_buffers import to_numpy
from .numbers import Array, array_with_nulls, doubles, is_word, to_text

if TYPE_CHECKING:
    import pyarrow as pa


class Unreadable(Exception):
    """A column whose type no schema describes; the text completes a sentence that begins with its name."""

    @classmethod
    def of(cls, kind: pa.DataType) -> Unreadable:
        """Say what the type is and what to do about it."""
        import pyarrow.types as types

        if types.is_temporal(kind):
            return cls("holds dates or times: turn it into a number or a category, or drop it")
        if types.is_nested(kind):
            return cls("holds lists or records: split it into columns, or drop it")
        return cls(f"holds {kind} values, which are neither numbers nor text: convert it, or drop it")


def as_text(array: Array) -> Array:
    """Return a column as text: 1 for whole numbers (1.0 too), true and false; empty text is null."""
    import pyarrow as pa
    import pyarrow.types as types

    kind = array.type
    if types.is_decimal(kind):
        return _decimals_as_text(array)
    if types.is_floating(kind):
        numbers = doubles(array)
        return to_text(array_with_nulls(numbers, np.isnan(to_numpy(numbers))))
    if types.is_integer(kind) or types.is_boolean(kind) or types.is_null(kind):
        return array.cast(pa.string())
    if not (types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind)):
        raise Unreadable.of(kind)
    text = array if types.is_string(kind) else array.cast(pa.string())
    return array_with_nulls(text, is_word(text, ""))


def _decimals_as_text(array: Array) -> Array:
    """Write decimals exactly, without zeros at their end: 1.50 as 1.5, 1.00 as 1."""
    import pyarrow as pa
    import pyarrow.compute as pc

    text = array.cast(pa.string())
    if pc.any(pc.match_substring(text, "E")).as_py():
        return to_text(text.cast(pa.float64()))
    return pc.replace_substring_regex(pc.replace_substring_regex(text, r"(\.[0-9]*?)0+$", r"\1"), r"\.$", "")


def in_order(words: Iterable[str]) -> list[str]:
    """Sort categories: numbers by size, else text by code point."""
    found = list(words)
    try:
        return sorted(found, key=lambda word: (float(word), word))
    except ValueError:
        return sorted(found)


_PAIRS = (("no", "yes"), ("n", "y"), ("false", "true"), ("f", "t"))
_SPELLINGS = {"0": "digits", "1": "digits"} | {
    change(word): f"{pair}{change.__name__}"
    for pair, change in product(_PAIRS, (str.lower, str.upper, str.capitalize))
    for word in pair
    if change is not str.capitalize or len(word) > 1
}


def booleans_mixed(words: Sequence[str]) -> bool:
    """Return whether all words spell yes or no, and not all in the same way.

    Single letters of several pairs none of which is complete, such as F and N, are letters and no yes and no.
    """
    families = [_SPELLINGS.get(word) for word in words]
    if None in families or len(set(families)) <= 1:
        return False
    letters = {word.lower() for word in words}
    return (
        any(len(word) > 1 or word in "01" for word in letters)
        or {"n", "y"} <= letters
        or {"t", "f"} <= letters
    )


def spelled_alike(first: str, second: str) -> bool:
    """Whether two words that say yes or no do so in one spelling."""
    return _SPELLINGS.get(first) == _SPELLINGS.get(second)

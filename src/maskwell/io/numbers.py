"""Numbers as text: parsed with every refusal told by its kind, written in the shortest plain form."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from ..arrow_buffers import from_numpy, letters_of, to_numpy
from ..words.phrases import number_text

Array: TypeAlias = Any  # a pyarrow array: the stubs trail what its compute functions take and return
Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]

EXACT_BELOW = 2.0**53
_VALID = r"^[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?$"
_NOT_FINITE = re.compile(r"[+-]?(nan|inf|infinity)", re.IGNORECASE)
_THOUSANDS = re.compile(r"[+-]?\d{1,3}(([,. '\u2019\u00a0\u202f])\d{3})(\2\d{3})*([.,]\d+)?")
_DATE = re.compile(r"\d{1,4}([-/.])\d{1,2}\1\d{1,4}([ T].*)?|\d{1,2}:\d{2}(:[\d.]+)?")
_OTHER_DECIMAL = re.compile(r"(?=.*\d)[+-]?\d*[.,]\d*([eE][+-]?\d+)?")


@dataclass(frozen=True, slots=True)
class Fault:
    """A kind of field that is not a number: what it is, the first record that has one, how many do, the remedy."""

    what: str
    first: int
    count: int
    remedy: str

    def sentence(self, column: str) -> str:
        """Say it of a column; never with the value."""
        more = "" if self.count == 1 else f" ({self.count:,} records)"
        return f"column {column!r}: {self.what}, first at record {self.first:,}{more}: {self.remedy}"


def fault_at(flags: Flags, what: str, remedy: str) -> list[Fault]:
    """Return a fault for the flagged records, or nothing when there is none."""
    count = int(np.count_nonzero(flags))
    return [Fault(what, int(np.argmax(flags)) + 1, count, remedy)] if count else []


@dataclass(frozen=True, slots=True)
class Numbers:
    """Parsed amounts, NaN where there is none; `whole` holds them as int64 where a double cannot."""

    values: Floats
    whole: Integers | None = None
    faults: tuple[Fault, ...] = ()


_REMEDIES = {
    "text where a number belongs": "correct it, declare it as a missing code, or make the column a category",
    "numbers with thousands separators": "take the separators out (or, if the sign is the decimal one, say so "
    "with the options delimiter and decimal, in Python dialect=Dialect(...))",
    "numbers with the other decimal sign": "write them all with one sign, or name it "
    "with the options delimiter and decimal, in Python dialect=Dialect(...)",
    "an infinite, too large or undefined number": "correct it, or leave the field empty",
    "dates or times": "turn the column into a number (age, days since) or a category (year), or drop it",
}
_TEXT, _GROUPED, _OTHER_SIGN, _UNDEFINED, _DATES = _REMEDIES


def parse(text: Array, decimal: str) -> Numbers:
    """Parse trimmed text to doubles; nulls become NaN."""
    import pyarrow as pa

    pointed = _with_points(text, decimal)
    try:
        parsed = pointed.cast(pa.float64())
    except pa.ArrowInvalid:
        return Numbers(np.empty(0), faults=_faults(text, pointed))
    values = to_numpy(parsed)
    undefined = ~np.isfinite(values) & flags(text.is_valid())
    if undefined.any():
        return Numbers(values, faults=tuple(fault_at(undefined, _UNDEFINED, _REMEDIES[_UNDEFINED])))
    return Numbers(values, _whole(pointed, values))


def _with_points(text: Array, decimal: str) -> Array:
    """Turn decimal commas into points; a point then stands for nothing and spoils the number."""
    import pyarrow.compute as pc

    if decimal == ".":
        return text
    return pc.replace_substring(pc.replace_substring(text, ".", "?"), ",", ".")


def _whole(text: Array, values: Floats) -> Integers | None:
    """Return the numbers as int64 when one is too large for a double to hold and all of them are whole."""
    import pyarrow as pa

    if not np.any(np.abs(values) >= EXACT_BELOW):
        return None
    try:
        return to_numpy(text.cast(pa.int64()).fill_null(0))
    except pa.ArrowInvalid:
        return None


def _faults(text: Array, pointed: Array) -> tuple[Fault, ...]:
    import pyarrow.compute as pc

    valid = flags(pc.match_substring_regex(pointed, _VALID))
    records = np.flatnonzero(flags(text.is_valid()) & ~valid)
    found: dict[str, list[int]] = {}
    for record, field in zip(records.tolist(), text.take(records).to_pylist(), strict=True):
        found.setdefault(_kind(field), []).append(record + 1)
    return tuple(Fault(kind, at[0], len(at), _REMEDIES[kind]) for kind, at in found.items())


def _kind(field: str) -> str:
    if _NOT_FINITE.fullmatch(field):
        return _UNDEFINED
    if _THOUSANDS.fullmatch(field):
        return _GROUPED
    if _DATE.fullmatch(field):
        return _DATES
    return _OTHER_SIGN if _OTHER_DECIMAL.fullmatch(field) else _TEXT


def doubles(array: Array) -> Array:
    """Return numbers as float64: decimals and single floats by their shortest text, so that 0.1 stays 0.1."""
    import pyarrow as pa
    import pyarrow.types as types

    if types.is_decimal(array.type) or types.is_float32(array.type):
        array = array.cast(pa.string())
    return array.cast(pa.float64(), safe=False)


def flags(array: Array) -> Flags:
    """Return a column of booleans in numpy, false where null."""
    return to_numpy(array)


def is_word(text: Array, word: str) -> Flags:
    """Return which fields of a text column are a word."""
    if not word and not text.null_count:
        return np.asarray(np.diff(letters_of(text)[0]) == 0)
    import pyarrow as pa
    import pyarrow.compute as pc

    if not word:
        return np.asarray(to_numpy(pc.binary_length(text)) == 0)  # several times as fast
    return flags(pc.equal(text, pa.scalar(word)))


def array_with_nulls(array: Array, at: Flags) -> Array:
    """Return a column with some fields made null."""
    if not at.any():
        return array
    import pyarrow as pa
    import pyarrow.compute as pc

    return pc.if_else(from_numpy(at), pa.scalar(None, array.type), array)


def to_text(array: Array, decimal: str = ".") -> Array:
    """Write numbers in their shortest form that reads back the same: 12.35, 100, 0.00001, 1e+16."""
    import pyarrow as pa
    import pyarrow.compute as pc

    text = array.cast(pa.string())
    if not pa.types.is_floating(array.type):
        return text
    text = pc.if_else(pc.equal(text, pa.scalar("-0")), "0", text)
    text = _plain(text)
    return pc.replace_substring(text, ".", decimal) if decimal != "." else text


def _plain(text: Array) -> Array:
    """Write out numbers with a small exponent, which Arrow writes as 1e+10."""
    import pyarrow as pa
    import pyarrow.compute as pc

    scientific = flags(pc.match_substring(text, "e"))
    if not scientific.any():
        return text
    plain = pa.array(
        [number_text(float(field)) for field in text.filter(from_numpy(scientific)).to_pylist()], pa.string()
    )
    return pc.replace_with_mask(text, from_numpy(scientific), plain)


def codes_text(codes: Iterable[float | str], decimal: str = ".") -> list[str]:
    """Write codes as they stand in a file."""
    return [code if isinstance(code, str) else number_text(code, decimal) for code in codes]

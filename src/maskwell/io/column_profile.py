"""What a column holds, before anything is decided about it: numbers, texts, dates; how many, how often."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from .identities import decimal_unit
from .numbers import doubles
from .texts import as_text, in_order

if TYPE_CHECKING:
    pass

Floats = npt.NDArray[np.float64]
Counts = npt.NDArray[np.int64]

MOST_NUMBER_CATEGORIES, LARGEST_CATEGORY_SHARE = 20, 0.05
MOST_TEXT_CATEGORIES = 1000
MOST_LITERALS = 5
LEAST_GROUPED_SHARE, LEAST_NUMBER_SHARE = 0.1, 0.95
_SEPARATORS = (
    (",", r"\."),
    (r"\.", ","),
    ("[ '\u2019\u00a0\u202f]", "[.,]"),
)  # with the decimal sign beside it
_NUMBER = r"^[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]{1,2})?$"
_LABEL = r"^(\+|-?0[0-9]|-?[0-9]{16,}$)"  # digits that are a name: leading zeros, a plus, more than 15 digits
_DATE = (
    r"^(([0-9]{4}[-/.][0-9]{1,2}[-/.][0-9]{1,2}|[0-9]{1,2}[-/.][0-9]{1,2}[-/.]([0-9]{4}|[0-9]{2}))([ T].*)?"
    r"|[0-9]{4}[-/][0-9]{1,2}|[0-9]{1,2}[- ]?[A-Za-z]{3}[- ]?([0-9]{4}|[0-9]{2})|[0-9]{1,2}:[0-9]{2}(:[0-9.]+)?)$"
)
_STRAY = re.compile(r"[0-9]|^[+-]?inf(inity)?$|[^ -~\u00a1-\u024f]", re.IGNORECASE)  # no code for "no value"


@dataclass(frozen=True, slots=True)
class Facts:
    """What a column holds: amounts (`numbers`, one a record) or texts (`codes`, one a record, point to them)."""

    name: str
    records: int
    shape: str  # number, text, date, empty or nested
    missing: int = 0
    distinct: int = 0
    support: Floats = field(default_factory=lambda: np.empty(0))
    counts: Counts = field(default_factory=lambda: np.empty(0, np.int64))
    numbers: Floats | None = None
    unit: float | None = None
    whole: bool = False
    is_float: bool = False  # in its source, so that it can be no id
    texts: tuple[str, ...] = ()
    codes: npt.NDArray[np.int32] | None = None
    literals: tuple[str, ...] = ()
    literal_places: tuple[Counts, ...] = ()  # where each of them stands
    stray: int | None = None  # the first record whose value does not fit the others
    strays: Counts = field(
        default_factory=lambda: np.empty(0, np.int64)
    )  # where values are no numbers as others are
    grouped: bool = False  # numbers with thousands separators
    label: str = ""  # what the file says of the column in words

    @property
    def present(self) -> int:
        """How many records have a value."""
        return self.records - self.missing

    @property
    def category_codes(self) -> npt.NDArray[np.integer]:
        """The place of each record's value among the different ones, -1 where there is none."""
        if self.codes is not None:
            return self.codes
        assert self.numbers is not None
        return np.where(np.isnan(self.numbers), -1, np.searchsorted(self.support, self.numbers))


def facts_of(name: str, column: Any, decimal: str) -> Facts:
    """Look at a whole column."""
    import pyarrow.types as types

    array = _plain(column)
    if array.null_count == len(array):
        return Facts(name, len(array), "empty")
    if types.is_large_string(array.type):
        return _text_facts(name, array, decimal)
    if types.is_integer(array.type) or types.is_floating(array.type):
        return _number_facts(name, array, array)
    return Facts(name, len(array), "date" if types.is_temporal(array.type) else "nested")


def _plain(column: Any) -> Any:
    """One array: text for text and booleans, floats for decimals, whole numbers that floats cannot hold as text."""
    import pyarrow as pa
    import pyarrow.types as types

    if types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    kind = column.type
    if types.is_boolean(kind) or types.is_string(kind) or types.is_string_view(kind):
        column = column.cast(pa.large_string())
    elif types.is_decimal(kind):
        column = as_text(column).cast(pa.large_string()) if _are_long(column) else doubles(column)
    elif types.is_float32(kind):
        column = doubles(column)
    elif types.is_integer(kind) and _are_long(column):
        column = column.cast(pa.large_string())
    return pa.concat_arrays(column.chunks)


def _are_long(column: Any) -> bool:
    """Whether there are whole numbers of more digits than floats hold."""
    import pyarrow.compute as pc

    ends: Any = pc.min_max(column).as_py()
    return getattr(column.type, "scale", 0) <= 0 and max(abs(end or 0) for end in ends.values()) >= 10**15


def _number_facts(name: str, array: Any, source: Any, **more: Any) -> Facts:
    """Facts of numbers, given as they are and as their source has them (text or numbers)."""
    import pyarrow.types as types

    numbers = np.asarray(array.to_numpy(zero_copy_only=False)).astype(np.float64)
    unit, infinite = decimal_unit(numbers), np.isinf(numbers)
    numbers[infinite] = np.nan
    support, counts = np.unique(numbers[~np.isnan(numbers)], return_counts=True)
    known: dict[str, Any] = {
        "missing": len(numbers) - int(counts.sum()),
        "distinct": len(support),
        "unit": unit,
        "whole": unit == 1.0
        and not (types.is_large_string(source.type) and _matches(source, "[.,eE]").any()),
        "is_float": types.is_floating(source.type),
        "texts": _words(source) if len(support) <= MOST_TEXT_CATEGORIES and unit == 1.0 else (),
        "stray": int(np.argmax(infinite)) + 1 if infinite.any() else None,
    }
    return Facts(
        name, len(numbers), "number", numbers=numbers, support=support, counts=counts, **known | more
    )


def _words(source: Any) -> tuple[str, ...]:
    """The different values as the reader spells them, in the order of their size."""
    words: Any = as_text(source.unique()).drop_null()
    return tuple(in_order(words.to_pylist()))


def _text_facts(name: str, array: Any, decimal: str) -> Facts:
    import pyarrow.compute as pc

    amounts = _amounts(array, decimal)
    if amounts is None:
        amounts = _amounts(_trimmed_texts(array), decimal)
    if amounts is not None:
        return _number_facts(name, amounts, array)
    encoded = array.dictionary_encode()
    codes = encoded.indices.fill_null(-1).to_numpy()
    known = {
        "missing": array.null_count,
        "distinct": len(encoded.dictionary),
        "codes": codes,
        "texts": _words(encoded.dictionary) if len(encoded.dictionary) <= MOST_TEXT_CATEGORIES else (),
    }
    words = pc.ascii_trim_whitespace(encoded.dictionary)
    if _matches(words.slice(0, 100), _DATE).all() and _matches(words, _DATE).all():
        return Facts(name, len(array), "date", **known)
    counts = np.bincount(codes[codes >= 0], minlength=len(words))
    if _are_grouped(words, counts):
        return Facts(name, len(array), "text", grouped=True, **known)
    is_number = _matches(_decimal_point_texts(words, decimal), _NUMBER)
    if is_number.all() or 2 * counts[is_number].sum() < counts.sum():
        return Facts(name, len(array), "text", **known)
    return _mixed_facts(name, words, is_number, decimal, known)


def _are_grouped(words: Any, counts: Counts) -> bool:
    """Whether 95% of the values are numbers by one separator of thousands, and 10% have it: 8,512.74, 12 345."""
    for separator, decimal in _SEPARATORS:
        grouped = _matches(words, rf"^[+-]?[0-9]{{1,3}}({separator}[0-9]{{3}})+({decimal}[0-9]+)?$")
        if counts[grouped].sum() >= LEAST_GROUPED_SHARE * counts.sum():
            numbers = grouped | _matches(words, rf"^[+-]?[0-9]+({decimal}[0-9]+)?$")
            if counts[numbers].sum() >= LEAST_NUMBER_SHARE * counts.sum():
                return True
    return False


def _mixed_facts(
    name: str, words: Any, is_number: npt.NDArray[np.bool_], decimal: str, known: dict[str, Any]
) -> Facts:
    """Numbers with other texts among them: a few words are codes (NA, refused), anything else is a stray."""
    import pyarrow as pa

    codes, numerals = known["codes"], words.filter(pa.array(is_number))
    others = np.flatnonzero(~is_number)[: MOST_LITERALS + 1]
    literals = words.take(pa.array(others)).to_pylist()
    amounts = _amounts(numerals, decimal)
    if amounts is None or len(literals) > MOST_LITERALS or any(map(_STRAY.search, literals)):
        places = np.flatnonzero((codes >= 0) & ~is_number[codes])
        strays = places if amounts is not None else places[:0]
        return Facts(name, len(codes), "text", stray=int(places[0]) + 1, strays=strays, **known)
    values = np.full(len(words) + 1, np.nan)
    values[:-1][is_number] = amounts.to_numpy()
    named = [(literal, place) for literal, place in zip(literals, others, strict=True) if literal]
    more = known | {"literals": tuple(literal for literal, _ in named)}
    more["literal_places"] = tuple(np.flatnonzero(codes == place) for _, place in named)
    return _number_facts(name, pa.array(values[codes]), numerals, **more)


def _amounts(texts: Any, decimal: str) -> Any:
    """The texts as floats, or nothing unless all are finite numbers and none is a label made of digits."""
    import pyarrow as pa
    import pyarrow.compute as pc

    pointed = _decimal_point_texts(texts, decimal)
    try:
        pointed.slice(0, 1000).cast(pa.float64())  # to fail early: Arrow words an error for every text
        amounts = pointed.cast(pa.float64())
    except pa.ArrowInvalid:
        return None
    finite = pc.all(pc.is_finite(amounts)).as_py()
    return amounts if finite and not _matches(texts, _LABEL).any() else None


def _trimmed_texts(texts: Any) -> Any:
    """Texts as the reader of numbers takes them: without blanks around them, null where nothing is left."""
    import pyarrow as pa
    import pyarrow.compute as pc

    trimmed: Any = pc.ascii_trim_whitespace(texts)
    return pc.if_else(pc.equal(trimmed, pa.scalar("", trimmed.type)), pa.scalar(None, trimmed.type), trimmed)


def _decimal_point_texts(texts: Any, decimal: str) -> Any:
    """Texts with a decimal point in place of the decimal sign; a point that is no decimal sign makes no number."""
    import pyarrow.compute as pc

    if decimal == ".":
        return texts
    return pc.replace_substring(pc.replace_substring(texts, ".", "'"), decimal, ".")


def _matches(texts: Any, pattern: str) -> npt.NDArray[np.bool_]:
    import pyarrow.compute as pc

    found = pc.match_substring_regex(texts, pattern).fill_null(False)
    return np.asarray(found.to_numpy(zero_copy_only=False), bool)

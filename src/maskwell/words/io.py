"""What readers say of a file: how it was read, what was changed, what a person must decide about its columns."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence

from ..notes import Wording
from .phrases import comma_list, number_text, plural

DELIMITERS = {",": "comma", ";": "semicolon", "\t": "tab"}


def dialect_phrase(delimiter: str, decimal: str) -> str:
    """Name the delimiter and the decimal sign of a CSV file."""
    name = DELIMITERS.get(delimiter)
    separated = f"{name}-separated" if name else f"separated by {delimiter!r}"
    return f"{separated}, decimal {'comma' if decimal == ',' else 'point'}"


def _dialect(*, delimiter: str, decimal: str) -> str:
    return f"read as {dialect_phrase(delimiter, decimal)}"


def _dialect_as_asked(*, delimiter: str, decimal: str) -> str:
    return f"{_dialect(delimiter=delimiter, decimal=decimal)}, as asked"


def _name_of_several_alphabets(*, place: int, name: str, alphabets: Iterable[str]) -> str:
    return (
        f"the name of column {place}, {name!r}, mixes {' and '.join(alphabets)} letters, which can look alike: "
        "check it"
    )


def _missing_codes(*, column: str, codes: Iterable[str]) -> str:
    return f"column {column!r}: missing codes taken from the file ({comma_list(codes)})"


def _off_unit(*, column: str, count: int, unit: float) -> str:
    return f"column {column!r}: {count:,} values are off its unit {number_text(unit)}"


def _column_undecided(*, column: str, questions: Iterable[object]) -> str:
    return f"column {column!r} is undecided: {' '.join(map(str, questions))}"


def present_share(count: int, present: int) -> str:
    """Write a count as a share of the values present, or as it is where the share is tiny."""
    share = count / present
    return f"{share:.1%}" if share >= 0.001 else f"{count:,}"


def spike_phrase(*, codes: Sequence[float], counts: Sequence[int], present: int) -> str:
    """Say what share of the values each of some codes has."""
    return comma_list(
        f"{present_share(count, present)} are {number_text(code)}"
        for count, code in zip(counts, codes, strict=True)
    )


def word_phrase(*, word: str, records: int, first: int) -> str:
    """Name a word that stands among numbers, with its records."""
    where = f"record {first:,}" if records == 1 else f"{records:,} records, first {first:,}"
    return f"{json.dumps(word, ensure_ascii=False)} ({where})"


def chance_phrase(chance: float) -> str:
    """Write the share that chance would give."""
    return f"{chance:.1%}" if chance >= 0.001 else "under 0.1%"


def _formulas(*, columns: Sequence[str]) -> str:
    named = plural(
        len(columns), f"column {columns[0]!r} has", f"columns {', '.join(map(repr, columns))} have"
    )
    return (
        f"{named} texts that begin with =, +, - or @, which a spreadsheet runs as formulas when it opens a CSV file: "
        "import what is not a number as text"
    )


def _question(text: str, meaning: str) -> Wording:
    return Wording(text, "caution", f"a question of a proposed schema: {meaning}")


# Why a proposed schema drops a column, by the kind of what was found.
REASONS_TO_DROP = {
    "all-missing": "no value at all",
    "nested": "lists or records",
    "date": "dates or times",
    "boolean": "yes and no in several spellings",
    "id": "an identifier?",
    "group": "the id of a group?",
    "repeats": "an id, a group or an amount?",
    "weight": "a weight?",
    "text": "text that cannot be masked",
    "stray": "numbers but for a few records",
    "thousands": "numbers with thousands separators",
}


def _reason_to_drop(*, kind: str) -> str:
    return f"dropped until a schema decides ({REASONS_TO_DROP.get(kind, kind)})"


WORDS: dict[str, Wording] = {
    "io.dialect": Wording(_dialect, "info", "how a CSV file was read, as found from its first lines"),
    "io.dialect_as_asked": Wording(_dialect_as_asked, "info", "how a CSV file was read, as the caller asked"),
    "io.encoding": Wording(
        "read from {encoding}; it is written in UTF-8", "info", "a CSV file in another encoding than UTF-8"
    ),
    "io.commas_before_three_digits": Wording(
        "all commas are followed by three digits: check that they are not thousands separators",
        "caution",
        "commas taken for decimal signs that may part thousands",
    ),
    "io.name_normalized": Wording(
        "the name of column {place}, {name!r}, was put into Unicode normal form (NFC)",
        "info",
        "a name of a column whose accents were encoded otherwise",
    ),
    "io.name_of_several_alphabets": Wording(
        _name_of_several_alphabets, "caution", "a name of a column with letters of several alphabets"
    ),
    "io.missing_codes": Wording(
        _missing_codes, "info", "codes for no value that a statistics file declares and the schema does not"
    ),
    "io.categories": Wording(
        "column {column!r}: the schema lists no categories; the {count} found are taken",
        "info",
        "a category column whose categories were taken from the data",
    ),
    "io.off_unit": Wording(_off_unit, "caution", "values that are no multiples of their column's unit"),
    "io.formulas": Wording(_formulas, "caution", "texts that a spreadsheet would run as formulas"),
    "io.pandas_index": Wording(
        "the index of the pandas frame is not data and was left out", "info", "a pandas frame with an index"
    ),
    "io.lazy_frame": Wording("the lazy frame was collected", "info", "a lazy frame of polars"),
    "io.no_schema": Wording(
        "no schema was given: one was proposed from the data",
        "caution",
        "a file that was read without a schema",
    ),
    "io.column_undecided": Wording(
        _column_undecided,
        "caution",
        "what is open about a column of a proposed schema; its questions are notes",
    ),
    "io.asks_identifier": _question("an identifier?", "values that may identify records"),
    "io.asks_top_code": _question("a top code?", "many records at the largest value"),
    "io.asks_bottom_code": _question("a bottom code?", "many records at the smallest value"),
    "io.asks_spike": _question("codes for no value among its values?", "values apart from the rest"),
    "io.asks_code": _question("words for no value among its categories?", "categories such as NA"),
    "io.asks_unit": _question("a coarser unit?", "values that are all multiples of 10 or more"),
    "io.asks_identity": _question("recomputed from others?", "a column that is a sum of others"),
    "io.asks_zeros": _question("real zeros?", "many zeros among amounts"),
    "io.asks_named_id": _question("an id, a group or a category?", "few values under the name of an id"),
    "io.asks_date_part": _question("a part of a date, or an amount?", "months, days, hours"),
    "io.asks_few_values": _question("an amount, or classes?", "few different numbers that are not whole"),
    "io.asks_body": _question("the weight of a body, or a survey weight?", "a weight beside a height"),
    "io.dropped": Wording(
        _reason_to_drop,
        "caution",
        "a column that a proposed schema drops; the kind of what was found says why",
    ),
}

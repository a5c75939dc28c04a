"""How a CSV file is written: its delimiter, decimal sign, line ends; found by a look at its head."""

from __future__ import annotations

import csv
import re
from dataclasses import dataclass
from io import StringIO
from itertools import zip_longest

from ..errors import BadInput, raise_all
from ..notes import Note
from ..words.io import DELIMITERS, dialect_phrase

HEAD_BYTES = 1 << 18
_SHARE_OF_LINES = 0.5

_COMMA_NUMBER = re.compile(r"\s*[+-]?\d*,\d+([eE][+-]?\d+)?\s*")
_POINT_NUMBER = re.compile(r"\s*[+-]?\d*\.\d+([eE][+-]?\d+)?\s*")
_WHOLE_NUMBER = re.compile(r"\s*[+-]?\d+([eE][+-]?\d+)?\s*")
_LIKE_THOUSANDS = re.compile(r"\s*[+-]?[1-9]\d{0,2},\d{3}\s*")

Records = list[list[str]]


@dataclass(frozen=True, slots=True)
class Dialect:
    """How a CSV file is written; a table that came from one is written back in the same way, in UTF-8.

    `encoding` is that of the file read. Tables from elsewhere are written as RFC 4180 says, with LF line ends.
    """

    delimiter: str = ","
    decimal: str = "."
    quote: str = '"'
    encoding: str = "utf-8"
    newline: str = "\n"
    bom: bool = False

    def __post_init__(self) -> None:
        raise_all(self._problems(), BadInput)

    def _problems(self) -> list[str]:
        texts = (self.delimiter, self.decimal, self.quote, self.encoding, self.newline)
        if not all(isinstance(text, str) for text in texts) or not isinstance(self.bom, bool):
            return ["the dialect must be told in texts, its byte order mark by true or false"]
        signs = (("delimiter", self.delimiter), ("quote", self.quote))
        found = [
            f"the dialect's {what} must be one ASCII character other than a line end"
            for what, sign in signs
            if len(sign) != 1 or not sign.isascii() or sign in "\r\n\0"
        ]
        if self.decimal not in (".", ","):
            found.append("the dialect's decimal sign must be a point or a comma")
        if len({self.delimiter, self.decimal, self.quote}) < 3:
            found.append("the dialect's delimiter, decimal sign and quote must differ")
        if self.newline not in ("\n", "\r\n", "\r"):
            found.append("the dialect's newline must be LF, CRLF or CR")
        return found

    def __str__(self) -> str:
        return dialect_phrase(self.delimiter, self.decimal)

    @property
    def figures(self) -> dict[str, str]:
        """What a note on the dialect tells."""
        return {"delimiter": self.delimiter, "decimal": self.decimal}


def find_dialect(head: str, *, whole: bool, encoding: str = "utf-8") -> tuple[Dialect, list[Note]]:
    """Return the dialect of a file from its first characters, and notes on what it rests on.

    `whole` says that the head is the whole file; otherwise its last record may be cut and is left out.
    """
    newline, bom = line_end(head), head.startswith("\ufeff")
    readings = {sign: _records(head.removeprefix("\ufeff"), sign, whole) for sign in DELIMITERS}
    delimiter = _best_delimiter(readings)
    decimal, notes = _decimal(delimiter, readings[delimiter])
    dialect = Dialect(delimiter, decimal, encoding=encoding, newline=newline, bom=bom)
    return dialect, [Note("io.dialect", dialect.figures), *notes]


def line_end(head: str) -> str:
    """Return the first line end of a text (LF when there is none)."""
    found = re.search(r"\r\n|\n|\r", head)
    return found.group() if found else "\n"


def header_of(head: str, dialect: Dialect) -> list[str]:
    """Return the fields of the first record."""
    records = _records(head.removeprefix("\ufeff"), dialect.delimiter, True, quote=dialect.quote, at_most=1)
    return records[0] if records else []


def _records(head: str, delimiter: str, whole: bool, quote: str = '"', at_most: int | None = None) -> Records:
    """Split a head into records; empty where a quote is never closed within what `csv` can hold."""
    records: Records = []
    try:
        for record in csv.reader(StringIO(head, newline=""), delimiter=delimiter, quotechar=quote):
            if record:
                records.append(record)
            if len(records) == at_most:
                return records
    except csv.Error:
        return []
    return records if whole or len(records) < 2 else records[:-1]


def _best_delimiter(readings: dict[str, Records]) -> str:
    """Choose the delimiter that splits most lines into as many fields as the header, then into most fields."""
    scores = {sign: _agreement(records) for sign, records in readings.items()}
    many = {sign: score for sign, score in scores.items() if score[0] >= _SHARE_OF_LINES and score[1] > 1}
    if not many:
        single = [sign for sign, score in scores.items() if score == (1.0, 1)]
        return single[0] if single else max(scores, key=lambda sign: scores[sign][1])
    best = max(many.values())
    winners = [sign for sign, score in many.items() if score == best]
    if len(winners) > 1:
        names = " and ".join(DELIMITERS[sign] for sign in winners)
        raise BadInput(
            f"the file can be read as separated by {names}: say which with the option delimiter "
            "(in Python: dialect=Dialect(delimiter=))"
        )
    return winners[0]


def _agreement(records: Records) -> tuple[float, int]:
    """Return the share of records with as many fields as the header, and that number."""
    if not records:
        return 0.0, 0
    fields = len(records[0])
    return sum(len(record) == fields for record in records) / len(records), fields


def _decimal(delimiter: str, records: Records) -> tuple[str, list[Note]]:
    """Return the decimal sign: a comma only where whole columns of numbers have one and none has a point."""
    if delimiter == ",":
        return ".", []
    columns = [[field for field in column if field and field.strip()] for column in zip_longest(*records[1:])]
    with_comma = [column for column in columns if _all_numbers(column, _COMMA_NUMBER)]
    if not with_comma or any(_all_numbers(column, _POINT_NUMBER) for column in columns):
        return ".", []
    numbers = [field for column in with_comma for field in column if _COMMA_NUMBER.fullmatch(field)]
    if all(_LIKE_THOUSANDS.fullmatch(field) for field in numbers):
        return ",", [Note("io.commas_before_three_digits")]
    return ",", []


def _all_numbers(column: list[str], kind: re.Pattern[str]) -> bool:
    """Return whether a column has a number of a kind, and else numbers of that kind, whole ones or codes."""
    matches = [bool(kind.fullmatch(field)) for field in column]
    others = [field for field, match in zip(column, matches, strict=True) if not match]
    words = {field for field in others if not _WHOLE_NUMBER.fullmatch(field)}
    return any(matches) and not any(any(sign.isdigit() for sign in word) for word in words)

"""Titles above the header of a CSV file, as spreadsheets export them: found, so that the header can be named."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable
from io import StringIO
from itertools import islice

from .headers import NUMBER

MOST_TITLES, LOOKED_AT = 10, 60  # lines above the header, records in all
LEAST_FIELDS = 3
ALIKE = 0.8  # share of the records below a header that have as many fields, and a number: a footer has not
_UNNAMED = re.compile(r"\s*(Unnamed: ?\d+\w*|\.\.\.\d+)?\s*")  # and as pandas and readr name them

Lines = list[tuple[int, list[str]]]


def title_problem(head: str, delimiters: Iterable[str], quote: str = '"') -> str:
    """Say that the first line looks like a title, and which line the header seems to be; nothing where it does not."""
    for delimiter in delimiters:
        lines = _numbered_records(head.removeprefix("\ufeff"), delimiter, quote)
        for place in range(1, min(len(lines) - 1, MOST_TITLES)):
            if _is_header(lines, place):
                above = "the lines above it" if lines[place][0] > 2 else "that line"
                return f"line 1 looks like a title: the header seems to be line {lines[place][0]}; take {above} out"
    return ""


def _numbered_records(head: str, delimiter: str, quote: str) -> Lines:
    """Return the first records with the lines where they begin; blank lines are left out."""
    reader = csv.reader(StringIO(head, newline=""), delimiter=delimiter, quotechar=quote)
    found, line = Lines(), 1
    try:
        for record in islice(reader, LOOKED_AT):
            if record:
                found.append((line, record))
            line = reader.line_num + 1
    except csv.Error:
        return []
    return found


def _is_header(lines: Lines, place: int) -> bool:
    """Whether a line names every column, those above name few, and those below have as many fields, with numbers."""
    names = [name.strip() for name in lines[place][1]]
    if len(names) < LEAST_FIELDS or len({*names}) < len(names) or any(map(_is_no_name, names)):
        return False
    above, below = lines[:place], [fields for _, fields in lines[place + 1 :]]
    if any(2 * sum(not _UNNAMED.fullmatch(name) for name in fields) > len(names) for _, fields in above):
        return False
    alike = [len(fields) == len(names) and any(map(NUMBER.fullmatch, fields)) for fields in below]
    return sum(alike) >= ALIKE * len(below)


def _is_no_name(name: str) -> bool:
    return bool(_UNNAMED.fullmatch(name) or NUMBER.fullmatch(name))

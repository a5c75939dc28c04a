"""A pass over the bytes of a CSV file: its encoding, and lines with too few or too many fields."""

from __future__ import annotations

import codecs
import csv
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from ..errors import BadInput
from .dialect import Dialect

CHUNK_BYTES = 1 << 23
_MARKS = (
    (codecs.BOM_UTF32_LE, "UTF-32", "utf-32"),
    (codecs.BOM_UTF32_BE, "UTF-32", "utf-32"),
    (codecs.BOM_UTF16_LE, "UTF-16", "utf-16"),
    (codecs.BOM_UTF16_BE, "UTF-16", "utf-16"),
)
_OTHER_FILES = (
    (b"PK\x03\x04", "a zip or Excel file"),
    (b"\x1f\x8b", "a gzip file"),
    (b"\x28\xb5\x2f\xfd", "a zstd file"),
    (b"PAR1", "a Parquet file"),
    (b"ARROW1", "an Arrow file"),
)


def check_text(path: Path) -> None:
    """Refuse a file that is not UTF-8 text, naming what it seems to be and the option to read it."""
    with path.open("rb") as file:
        head = file.read(4096)
    _check_head(head)
    decoder = codecs.getincrementaldecoder("utf-8")()
    lines = 1
    for chunk in _chunks(path):
        if (nul := chunk.find(0)) >= 0:
            line = lines + chunk.count(b"\n", 0, nul)
            raise BadInput(f"line {line} holds a NUL byte: the file is damaged, or not text")
        try:
            decoder.decode(chunk)
        except UnicodeDecodeError as error:
            line = lines + chunk.count(b"\n", 0, error.start)
            raise BadInput(_not_utf8(chunk[error.start :], line)) from None
        lines += chunk.count(b"\n")
    if decoder.getstate()[0]:
        raise BadInput(f"line {lines} ends in the middle of a UTF-8 character: the file is cut short")


def _check_head(head: bytes) -> None:
    for mark, kind in _OTHER_FILES:
        if head.startswith(mark):
            raise BadInput(f"this is {kind}, not CSV text: unpack it or save it as CSV")
    for mark, name, option in _MARKS:
        if head.startswith(mark):
            raise BadInput(f'the file is in {name}, not UTF-8: read it with encoding="{option}"')
    even, odd = head[0::2].count(0), head[1::2].count(0)
    if min(even, odd) == 0 and max(even, odd) > len(head) // 4:
        option = "utf-16-le" if odd else "utf-16-be"
        raise BadInput(f'the file is in UTF-16, not UTF-8: read it with encoding="{option}"')


def _not_utf8(rest: bytes, line: int) -> str:
    high = {byte for byte in rest[:65536] if byte >= 0x80}
    windows = any(byte < 0xA0 for byte in high)
    name, option = ("Windows-1252", "cp1252") if windows else ("Latin-1", "latin-1")
    return (
        f'the file is not in UTF-8 (line {line}); it seems to be in {name}: read it with encoding="{option}"'
    )


def _chunks(path: Path) -> Iterator[bytes]:
    with path.open("rb") as file:
        while chunk := file.read(CHUNK_BYTES):
            yield chunk


@dataclass(slots=True)
class _Counter:
    """Counts delimiters line by line over chunks; a doubtful line is any that may be ragged."""

    dialect: Dialect
    fields: int
    in_quotes: int = 0
    delimiters: int = 0
    length: int = 0

    def doubtful(self, chunk: bytes) -> bool:
        """Return whether a line that ends in this chunk does not have the right number of delimiters."""
        data = np.frombuffer(chunk, np.uint8)
        outside = self._outside(data)
        ends = self._places(data, "\r" if self.dialect.newline == "\r" else "\n", outside)
        places = self._places(data, self.dialect.delimiter, outside)
        counts = np.diff(np.searchsorted(places, ends), prepend=0)
        lengths = np.diff(ends, prepend=-1) - 1
        if ends.size:
            counts[0] += self.delimiters
            lengths[0] += self.length
        before = int(ends[-1]) + 1 if ends.size else 0
        carried = (0, 0) if ends.size else (self.delimiters, self.length)
        self.delimiters = carried[0] + len(places) - int(np.searchsorted(places, before))
        self.length = carried[1] + len(data) - before
        return bool(np.any((counts != self.fields - 1) & (lengths > 1)))

    def _outside(self, data: npt.NDArray[np.uint8]) -> npt.NDArray[np.bool_] | None:
        quotes = data == ord(self.dialect.quote)
        if not self.in_quotes and not quotes.any():
            return None
        inside = (np.cumsum(quotes, dtype=np.uint8) + np.uint8(self.in_quotes)) & 1
        self.in_quotes = int(inside[-1])
        return np.asarray(inside == 0)

    @staticmethod
    def _places(
        data: npt.NDArray[np.uint8], sign: str, outside: npt.NDArray[np.bool_] | None
    ) -> npt.NDArray[np.int64]:
        found = data == ord(sign)
        return np.flatnonzero(found if outside is None else found & outside)

    def at_end(self) -> bool:
        """Return whether the last line, which has no line end, is doubtful."""
        return bool(self.in_quotes) or (self.length > 0 and self.delimiters != self.fields - 1)


def looks_ragged(path: Path, dialect: Dialect, fields: int) -> bool:
    """Return whether a line may not have that many fields (a fast check that can cry wolf at odd quotes)."""
    counter = _Counter(dialect, fields)
    return any(counter.doubtful(chunk) for chunk in _chunks(path)) or counter.at_end()


def broken_line(path: Path, dialect: Dialect, fields: int) -> str | None:
    """Read the file record by record and say which line is ragged or badly quoted, if one is."""
    ragged: list[tuple[int, int]] = []
    line = 1
    with path.open(encoding="utf-8-sig", newline="") as file:
        reader = csv.reader(file, delimiter=dialect.delimiter, quotechar=dialect.quote, strict=True)
        try:
            for record in reader:
                if record and len(record) != fields:
                    ragged.append((line, len(record)))
                line = reader.line_num + 1
        except csv.Error:
            return f"line {line}: a quoted field is not closed, or text follows its closing quote; correct it"
    if not ragged:
        return None
    first, found = ragged[0]
    others = "" if len(ragged) == 1 else f" ({len(ragged)} such lines)"
    return (
        f"line {first} has {found} fields where the header has {fields}{others}: correct it, or quote fields "
        f"that hold the delimiter"
    )


def mixed_line_ends(path: Path) -> str | None:
    """Say that lines end in two ways, if they do (line ends inside quoted fields count too)."""
    both = all_ends = 0
    for chunk in _chunks(path):
        both += chunk.count(b"\r\n")
        all_ends += chunk.count(b"\n")
    if 0 < both < all_ends:
        return "some lines end in CRLF and others in LF: save the file with one kind of line end"
    return None

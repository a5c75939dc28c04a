"""A pass over the bytes of a CSV file: its encoding, lines with too few or too many fields, stray quotes."""

from __future__ import annotations

import codecs
import csv
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from ..errors import BadInput, OtherEncoding
from .dialect import Dialect

if TYPE_CHECKING:
    import pyarrow as pa

Bytes = npt.NDArray[np.uint8]
Flags = npt.NDArray[np.bool_]

CHUNK_BYTES = 1 << 23
_RECORDS_AT_ONCE = 65_536
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
            raise _not_utf8(chunk[error.start :], line) from None
        lines += chunk.count(b"\n")
    if decoder.getstate()[0]:
        raise BadInput(f"line {lines} ends in the middle of a UTF-8 character: the file is cut short")


def _check_head(head: bytes) -> None:
    for mark, kind in _OTHER_FILES:
        if head.startswith(mark):
            raise BadInput(f"this is {kind}, not CSV text: unpack it or save it as CSV")
    for mark, name, option in _MARKS:
        if head.startswith(mark):
            raise OtherEncoding(f"the file is in {name}, not UTF-8", option)
    even, odd = head[0::2].count(0), head[1::2].count(0)
    if min(even, odd) == 0 and max(even, odd) > len(head) // 4:
        option = "utf-16-le" if odd else "utf-16-be"
        raise OtherEncoding("the file is in UTF-16, not UTF-8", option)


def _not_utf8(rest: bytes, line: int) -> OtherEncoding:
    high = {byte for byte in rest[:65536] if byte >= 0x80}
    windows = any(byte < 0xA0 for byte in high)
    name, option = ("Windows-1252", "cp1252") if windows else ("Latin-1", "latin-1")
    return OtherEncoding(f"the file is not in UTF-8 (line {line}); it seems to be in {name}", option)


def _chunks(path: Path) -> Iterator[bytes]:
    with path.open("rb") as file:
        while chunk := file.read(CHUNK_BYTES):
            yield chunk


@dataclass(slots=True)
class _Counter:
    """Counts delimiters line by line over chunks, and watches where quotes stand."""

    dialect: Dialect
    fields: int
    in_quotes: int = 0
    closed: bool = False
    last: int = ord("\n")
    delimiters: int = 0
    length: int = 0
    line_ends: int = 0
    other_line_ends: int = 0

    def is_odd(self, chunk: bytes) -> bool:
        """Return whether a line that ends here has another number of fields, or a quote stands inside a field."""
        data = np.frombuffer(chunk, np.uint8)
        quotes = data == ord(self.dialect.quote)
        if self.in_quotes or self.closed or quotes.any():
            inside = (np.cumsum(quotes, dtype=np.uint8) + np.uint8(self.in_quotes)) & 1 == 1
            return self._has_stray_quote(data, quotes, inside) or self._has_odd_line(data, ~inside)
        self.last = int(data[-1])
        return self._has_odd_line(data, None)

    def _has_stray_quote(self, data: Bytes, quotes: Flags, inside: Flags) -> bool:
        """Return whether a quote opens after, or closes before, anything but a delimiter, line end or quote."""
        beside = np.zeros(256, bool)
        beside[[ord(sign) for sign in (self.dialect.delimiter, self.dialect.quote, "\r", "\n")]] = True
        before = np.append(np.uint8(self.last), data[:-1])
        after_closing = np.append(self.closed, (quotes & ~inside)[:-1])
        stray = (quotes & inside & ~beside[before]) | (after_closing & ~beside[data])
        self.in_quotes, self.last = int(inside[-1]), int(data[-1])
        self.closed = bool(quotes[-1] and not inside[-1])
        return bool(stray.any())

    def _has_odd_line(self, data: Bytes, outside: Flags | None) -> bool:
        ends = self._places(data, "\r" if self.dialect.newline == "\r" else "\n", outside)
        places = self._places(data, self.dialect.delimiter, outside)
        self.line_ends += len(ends)
        self.other_line_ends += len(
            self._places(data, "\n" if self.dialect.newline == "\r" else "\r", outside)
        )
        counts = np.diff(np.searchsorted(places, ends), prepend=0)
        lengths = np.diff(ends, prepend=-1) - 1
        if ends.size:
            counts[0] += self.delimiters
            lengths[0] += self.length
            self.delimiters = self.length = 0
        rest = int(ends[-1]) + 1 if ends.size else 0
        self.delimiters += len(places) - int(np.searchsorted(places, rest))
        self.length += len(data) - rest
        return bool(np.any((counts != self.fields - 1) & ((lengths > 1) | (counts > 0))))

    @staticmethod
    def _places(data: Bytes, sign: str, outside: Flags | None) -> npt.NDArray[np.int64]:
        found = data == ord(sign)
        return np.flatnonzero(found if outside is None else found & outside)

    def ends_odd(self) -> bool:
        """Return whether the file ends inside quotes or in a ragged line, or its lines end in several ways."""
        expected = self.line_ends if self.dialect.newline == "\r\n" else 0
        ragged = self.length > 0 and self.delimiters != self.fields - 1
        return bool(self.in_quotes) or ragged or self.other_line_ends != expected


def is_regular(path: Path, dialect: Dialect, fields: int) -> bool:
    """Return whether every line has that many fields and every quote stands where RFC 4180 has it."""
    counter = _Counter(dialect, fields)
    chunks = (chunk.removeprefix(codecs.BOM_UTF8) for chunk in _chunks(path))
    return not any(counter.is_odd(chunk) for chunk in chunks if chunk) and not counter.ends_odd()


def broken_line(path: Path, dialect: Dialect, fields: int) -> str | None:
    """Read the file record by record and say which line is ragged or badly quoted, if one is."""
    ragged: list[tuple[int, int]] = []
    line = 1
    with _reader(path, dialect) as reader:
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


def read_irregular(path: Path, dialect: Dialect, names: list[str]) -> pa.Table:
    """Read a file whose quotes or line ends are irregular, but where no line is broken: slower, and exact."""
    import pyarrow as pa

    fields = [(name, pa.string()) for name in names]
    batches = []
    with _reader(path, dialect) as reader:
        records = (record or [""] for record in reader if record or len(names) == 1)
        next(records)
        while batch := list(islice(records, _RECORDS_AT_ONCE)):
            columns = [
                pa.array([text or None for text in column], pa.string())
                for column in zip(*batch, strict=True)
            ]
            batches.append(pa.record_batch(columns, schema=pa.schema(fields)))
    return pa.Table.from_batches(batches, schema=pa.schema(fields))


@contextmanager
def _reader(path: Path, dialect: Dialect) -> Iterator[Any]:
    """Open a file for the csv module, whose limit on fields belongs to the whole process and is put back."""
    before = csv.field_size_limit(2**31 - 1)
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            yield csv.reader(file, delimiter=dialect.delimiter, quotechar=dialect.quote, strict=True)
    finally:
        csv.field_size_limit(before)

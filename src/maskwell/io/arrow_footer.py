"""What an Arrow file says of its own size, read from its footer: records, columns, bytes once it is unpacked.

pyarrow unpacks a batch when it is opened, and a compressed batch can be thousands of times its size on disk. The
counts stand in flatbuffers (Arrow Columnar Format 1.4, File.fbs and Message.fbs): a table is a signed offset back to
its vtable, which holds the place of each field; a vector is a count and its items. A compressed buffer begins with
its length before compression (-1: it is not compressed).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from struct import calcsize, unpack_from
from struct import error as struct_error
from typing import BinaryIO

from ..errors import BadInput

MAGIC = b"ARROW1"
MOST_METADATA = 1 << 26  # bytes of a footer or of the head of one batch
_SCHEMA, _DICTIONARIES, _BATCHES = 1, 2, 3  # fields of the footer
_HEADER_TYPE, _HEADER = 1, 2  # of a message
_DICTIONARY_TYPE, _DICTIONARY_DATA = 2, 1
_LENGTH, _BUFFERS, _COMPRESSION = 0, 2, 3  # of a batch
_BLOCK, _BUFFER = "<qi4xq", "<qq"


@dataclass(frozen=True, slots=True)
class _Table:
    """One table of a flatbuffer: the bytes, and where it begins."""

    data: bytes
    at: int

    def field(self, number: int) -> int:
        """Return where a field stands, 0 where it is left out."""
        vtable = self.at - self._whole("<i", self.at)
        size = self._whole("<H", vtable)
        place = 4 + 2 * number
        found = self._whole("<H", vtable + place) if place < size else 0
        return self.at + found if found else 0

    def table(self, number: int) -> _Table:
        """Return the table that a field points to."""
        at = self.field(number)
        if not at:
            raise struct_error
        return _Table(self.data, at + self._whole("<I", at))

    def vector(self, number: int) -> tuple[int, int]:
        """Return how many items a vector has and where they begin."""
        at = self.field(number)
        if not at:
            return 0, 0
        start = at + self._whole("<I", at)
        return self._whole("<I", start), start + 4

    def structs(self, number: int, shape: str) -> Iterator[tuple[int, ...]]:
        """Yield the structs of a vector."""
        count, start = self.vector(number)
        for i in range(count):
            yield unpack_from(shape, self.data, start + i * calcsize(shape))

    def whole(self, number: int, shape: str) -> int:
        """Return a number, 0 where it is left out."""
        at = self.field(number)
        return self._whole(shape, at) if at else 0

    def _whole(self, shape: str, at: int) -> int:
        if at < 0:
            raise struct_error
        return int(unpack_from(shape, self.data, at)[0])


def stored_counts(path: Path) -> tuple[int, int, int]:
    """Return the records, the columns and the unpacked bytes that an Arrow file says it holds."""
    try:
        with path.open("rb") as file:
            footer = _footer(file, path.stat().st_size)
            columns = footer.table(_SCHEMA).vector(1)[0]
            records = size = 0
            for field in (_DICTIONARIES, _BATCHES):
                for offset, head, _ in footer.structs(field, _BLOCK):
                    length, unpacked = _batch(file, offset, head)
                    size += unpacked
                    records += length if field == _BATCHES else 0
            return records, columns, size
    except (struct_error, OSError, ValueError, OverflowError):
        raise BadInput("the file is not an Arrow file, or it is damaged or encrypted") from None


def _footer(file: BinaryIO, size: int) -> _Table:
    ending = _bytes(file, size - 10, 10)
    (length,) = unpack_from("<i", ending)
    if ending[4:] != MAGIC:
        raise struct_error
    data = _bytes(file, size - 10 - length, length)
    return _Table(data, int(unpack_from("<I", data)[0]))


def _bytes(file: BinaryIO, at: int, count: int) -> bytes:
    if at < 0 or not 0 <= count <= MOST_METADATA:
        raise struct_error
    file.seek(at)
    return file.read(count)


def _batch(file: BinaryIO, offset: int, head: int) -> tuple[int, int]:
    """Return the records of a batch and its bytes once it is unpacked."""
    data = _bytes(file, offset, head)
    start = 8 if data[:4] == b"\xff\xff\xff\xff" else 4
    message = _Table(data, start + int(unpack_from("<I", data, start)[0]))
    batch = message.table(_HEADER)
    if message.whole(_HEADER_TYPE, "<B") == _DICTIONARY_TYPE:
        batch = batch.table(_DICTIONARY_DATA)
    compressed, size = bool(batch.field(_COMPRESSION)), 0
    for place, length in batch.structs(_BUFFERS, _BUFFER):
        unpacked = -1
        if compressed and length >= 8:
            (unpacked,) = unpack_from("<q", _bytes(file, offset + head + place, 8))
        size += length if unpacked < 0 else unpacked
    return batch.whole(_LENGTH, "<q"), size

"""Whether a file fits into memory, asked before it is read."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from ..errors import BadBundle, BadInput

_CGROUPS = (
    ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory.current"),
    ("/sys/fs/cgroup/memory/memory.limit_in_bytes", "/sys/fs/cgroup/memory/memory.usage_in_bytes"),
)

# A text of a page in every cell, and room for heads and paddings
_CELL_BYTES, _SLACK_BYTES = 1_000, 10_000_000


@dataclass(frozen=True, slots=True)
class FileCounts:
    """How many records and columns a file must have by what goes with it; nothing where that is not told.

    Files expand: a Parquet file of one megabyte can hold a hundred million records. So what a file says of itself is
    compared with this before any of it is read.
    """

    records: int | None = None
    columns: int | None = None
    source: str = "the card"  # who tells the records

    def check(self, records: int, columns: int) -> None:
        """Refuse a file of other counts."""
        if self.records is not None and records != self.records:
            raise BadBundle(
                f"{self.source} speaks of {self.records:,} records and the data file has {records:,}: "
                "they do not belong together"
            )
        if self.columns is not None and columns != self.columns:
            raise BadBundle(
                f"the schema describes {self.columns:,} columns and the data file has {columns:,}: "
                "they do not belong together"
            )

    def check_bytes(self, size: int) -> None:
        """Refuse a file whose cells would be longer, unpacked, than those of any file of records."""
        if self.records is None or self.columns is None:
            return
        if size > _SLACK_BYTES + self.records * self.columns * _CELL_BYTES:
            raise BadBundle(
                f"the data file would take {_size(size)} for {self.records:,} records of {self.columns:,} columns: "
                "it is damaged or not what it says"
            )


def check_memory(needed: int, limit: int | None = None) -> None:
    """Refuse a file that needs more memory than there is (or than `limit`, in bytes)."""
    free = available() if limit is None else limit
    if free is not None and needed > free:
        raise BadInput(
            f"the file needs about {_size(needed)} of memory to be read and {_size(free)} is available: "
            "use a machine with more memory, or read fewer records or columns"
        )


def available() -> int | None:
    """Return the bytes of memory this process may still take, or nothing where the system does not say."""
    known = [free for free in (_machine(), *(_group(*files) for files in _CGROUPS)) if free is not None]
    return min(known, default=None)


def _machine() -> int | None:
    try:
        lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
    except OSError:
        return None
    kilobytes = (int(line.split()[1]) for line in lines if line.startswith("MemAvailable:"))
    return next((1024 * found for found in kilobytes), None)


def _group(limit: str, used: str) -> int | None:
    try:
        limit_text, used_text = (
            Path(limit).read_text(encoding="ascii"),
            Path(used).read_text(encoding="ascii"),
        )
    except OSError:
        return None
    return None if limit_text.strip() == "max" else max(0, int(limit_text) - int(used_text))


def _size(count: int) -> str:
    for unit, step in (("GB", 10**9), ("MB", 10**6)):
        if count >= step:
            return f"{count / step:.1f} {unit}"
    return f"{count / 1000:.1f} kB"

"""Whether a file fits into memory, asked before it is read."""

from __future__ import annotations

from pathlib import Path

from ..errors import BadInput

_CGROUPS = (
    ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory.current"),
    ("/sys/fs/cgroup/memory/memory.limit_in_bytes", "/sys/fs/cgroup/memory/memory.usage_in_bytes"),
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

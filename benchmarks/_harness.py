"""What every benchmark shares: the machine, repeated timing, peak memory, output."""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import time
from collections.abc import Callable
from importlib.metadata import version
from typing import Any


def best(work: Callable[[], Any], repeats: int) -> float:
    """Return the least processor seconds of several runs: on shared machines a wall clock tells little."""
    seconds = []
    for _ in range(repeats):
        start = time.process_time()
        work()
        seconds.append(time.process_time() - start)
    return min(seconds)


def alternated(work: Callable[[], Any], rival: Callable[[], Any], repeats: int) -> tuple[float, float]:
    """Time two jobs turn by turn, so that both meet the same neighbours on the machine."""
    ours, theirs = [], []
    for _ in range(repeats):
        ours.append(best(work, 1))
        theirs.append(best(rival, 1))
    return min(ours), min(theirs)


def peak_mb(code: str) -> float:
    """Return the peak memory in MB that a piece of code adds in a fresh process.

    The code defines `prepare()` and `work(prepared)`; what the process held before `work` is not counted.
    """
    program = f"""
import resource, threading, time
{code}
def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * resource.getpagesize()
prepared = prepare()
before, peak, going = resident(), [0], [True]
def watch():
    while going[0]:
        peak[0] = max(peak[0], resident())
        time.sleep(0.001)
watcher = threading.Thread(target=watch)
watcher.start()
result = work(prepared)
going[0] = False
watcher.join()
print((max(peak[0], resident()) - before) / 1e6)
"""
    out = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    return float(out.stdout)


def machine() -> dict[str, Any]:
    """Describe where the figures were measured."""
    model = platform.processor() or platform.machine()
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            model = next(line.split(":")[1].strip() for line in file if line.startswith("model name"))
    except (OSError, StopIteration):
        pass
    return {"processor": model, "cores": os.cpu_count(), "system": platform.system()}


def versions() -> dict[str, str]:
    """Return the versions that the figures depend on."""
    named = ("maskwell", "numpy", "scipy", "numba", "pyarrow", "cryptography", "duckdb", "splink")
    return {"python": platform.python_version(), **{name: version(name) for name in named}}


def report(name: str, rows: list[dict[str, Any]], *, as_json: bool) -> None:
    """Print the rows as JSON or as a table."""
    if as_json:
        print(
            json.dumps(
                {"benchmark": name, "machine": machine(), "versions": versions(), "rows": rows}, indent=1
            )
        )
        return
    print(f"{name}: {machine()['processor']}, {machine()['cores']} cores")
    keys = list(dict.fromkeys(key for row in rows for key in row))
    cells = [[_cell(row.get(key)) for key in keys] for row in rows]
    widths = [max(len(key), *(len(line[j]) for line in cells)) for j, key in enumerate(keys)]
    for line in [keys, *cells]:
        print("  " + "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip())


def _cell(value: Any) -> str:
    if value is None:
        return ""
    return f"{value:.3g}" if isinstance(value, float) else str(value)


def arguments(description: str) -> argparse.Namespace:
    """Read the two options every benchmark has."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--quick", action="store_true", help="smaller sizes, within a minute")
    return parser.parse_args()

"""Kim's noise through `apply`, against the bare floor of keyed draws and against numpy's own generator.

The floor draws the same number of keyed normals and multiplies them by one matrix, with nothing else: no moments,
no rounding, no statuses, no card. `apply` does all of that; `apply and release` shuffles and gives new ids too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from _harness import alternated, arguments, peak_mb, report

from maskwell.keystream import Key, Stream, numbered
from maskwell.laws.noise import combine, symmetric_root
from maskwell.masking import apply
from maskwell.masks import CorrelatedNoise
from maskwell.schema import Column, Schema
from maskwell.table import Table

NAMES = ("A", "B", "C", "D", "E")
CHUNK = 65_536


def table(records: int) -> Table:
    """Make a table of five correlated amounts with two decimals and text ids."""
    rng = np.random.default_rng(1)
    shared = rng.standard_normal(records)
    columns = [Column("ID", "text", frozenset({"id"}))]
    data: dict[str, Any] = {"ID": pa.array(np.arange(records)).cast(pa.string())}
    for j, name in enumerate(NAMES):
        data[name] = pa.array(np.round(1000 + 100 * (shared + (j + 1) * rng.standard_normal(records)), 2))
        columns.append(Column(name, "continuous", frozenset({"key"}), unit=0.01))
    return Table(Schema(tuple(columns)), pa.table(data))


MASK = CorrelatedNoise(NAMES, sd_ratio=0.3)
KEY = Key.from_seed(1)


def keyed_floor(records: int) -> np.ndarray[Any, Any]:
    """Draw the keyed normals and multiply by one matrix, chunk by chunk."""
    root = symmetric_root(np.eye(5) + 0.3)
    stream, out = Stream(KEY, "floor", "0", numbered(records)), np.empty((records, 5), order="F")
    for start in range(0, records, CHUNK):
        part = stream.at(slice(start, start + CHUNK))
        normals = np.column_stack([part.normals(name) for name in NAMES])
        out[start : start + CHUNK] = combine(normals, root)
    return out


def numpy_floor(records: int) -> np.ndarray[Any, Any]:
    """Draw the same number of normals by numpy's generator and multiply by one matrix."""
    rng = np.random.default_rng(1)
    return np.asarray(rng.standard_normal((records, 5)) @ symmetric_root(np.eye(5) + 0.3))


MEMORY = """
import sys
sys.path.insert(0, {folder!r})
from mask import table, MASK, KEY, apply
def prepare():
    apply(MASK, table(2000), key=KEY).release
    return table({records})
def release(masking):
    return masking, masking.release
def work(prepared):
    return {work}
"""


def memory_ratio(records: int, work: str) -> tuple[float, float]:
    """Return the peak memory added, in MB and as a multiple of the data (five doubles a record)."""
    code = MEMORY.format(folder=str(Path(__file__).parent), records=records, work=work)
    peak = peak_mb(code)
    return peak, peak / (records * 5 * 8 / 1e6)


def speed(records: int, job: str, work: Callable[[Table], Any], repeats: int) -> Iterator[dict[str, Any]]:
    """Time a job beside both rivals."""
    data = table(records)
    for rival, floor in (("keyed draws", keyed_floor), ("numpy draws", numpy_floor)):
        ours, theirs = alternated(lambda: work(data), lambda: floor(records), repeats)  # noqa: B023
        each = {
            "job": job,
            "cells": records * 5,
            "seconds": ours,
            "microseconds_a_cell": ours / records / 5 * 1e6,
        }
        yield {**each, "rival": rival, "rival_seconds": theirs, "ratio": ours / theirs}


def growth(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the exponent of time against cells from 10^5 cells on: 1 is linear."""
    ours = [row for row in rows if row["job"] == "apply" and row["rival"] == "keyed draws"]
    slope = np.polyfit(np.log([row["cells"] for row in ours]), np.log([row["seconds"] for row in ours]), 1)[0]
    return {"job": "apply: growth exponent", "exponent": float(slope)}


def main() -> None:
    """Run the benchmark."""
    chosen = arguments(__doc__ or "")
    sizes = [20_000, 200_000] if chosen.quick else [20_000, 200_000, 1_000_000, 2_000_000]
    rows: list[dict[str, Any]] = []
    for records in sizes:
        repeats = 3 if records > 500_000 else 7
        rows += speed(records, "apply", lambda data: apply(MASK, data, key=KEY), repeats)
        rows += speed(records, "apply and release", lambda data: apply(MASK, data, key=KEY).release, repeats)
    rows.append(growth(rows))
    largest = sizes[-1] if chosen.quick else 1_000_000
    jobs = {
        "apply": "apply(MASK, prepared, key=KEY)",
        "apply and release": "release(apply(MASK, prepared, key=KEY))",
    }
    for job, text in jobs.items():
        peak, ratio = memory_ratio(largest, text)
        rows.append({"job": f"{job}: memory", "cells": largest * 5, "peak_mb": peak, "times_the_data": ratio})
    report("mask", rows, as_json=chosen.json)


if __name__ == "__main__":
    main()

"""Kim's noise through `apply`, against the bare floor of keyed draws and against numpy's own generator.

The floor draws the same number of keyed normals and multiplies them by one matrix (BLAS), with nothing else: no
moments, no rounding, no statuses, no card. `apply` does all of it; `apply and release` also shuffles and gives new ids.
The file of the first rows has no gaps. The survey's rows show what missing and coded values cost: correlations over
pairwise-open records, statuses, and a search for identities over the whole file.

Memory is the peak that the job adds to a process that already holds the table, as a multiple of its amounts (five
doubles a record; ids and statuses are not counted as data).
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from _harness import alternated, arguments, peak_mb, report

from maskwell.datasets import housing
from maskwell.errors import MaskwellWarning
from maskwell.keys import Key, Stream, ids_from_numbers
from maskwell.laws.noise import symmetric_root
from maskwell.masking import apply
from maskwell.masks import CorrelatedNoise
from maskwell.schema import Column, Schema
from maskwell.table import Table

NAMES = ("A", "B", "C", "D", "E")
CHUNK = 65_536


def table(records: int) -> Table:
    """Make a table of five correlated amounts with two decimals and ids of twelve digits."""
    rng = np.random.default_rng(1)
    shared = rng.standard_normal(records)
    columns = [Column("ID", "text", frozenset({"id"}))]
    data: dict[str, Any] = {"ID": pa.array(np.arange(10**11, 10**11 + records)).cast(pa.string())}
    for j, name in enumerate(NAMES):
        data[name] = pa.array(np.round(1000 + 100 * (shared + (j + 1) * rng.standard_normal(records)), 2))
        columns.append(Column(name, "continuous", frozenset({"key"}), unit=0.01))
    return Table(Schema(tuple(columns)), pa.table(data))


MASK = CorrelatedNoise(NAMES, sd_ratio=0.3)
AMOUNTS = CorrelatedNoise(("INCOME", "HOME_VAL", "MORTGAGE", "MAINTAIN", "TAXES"), r0=0.97)
KEY = Key.from_seed(1)


def keyed_floor(records: int) -> np.ndarray[Any, Any]:
    """Draw the keyed normals and multiply by one matrix, chunk by chunk."""
    root = symmetric_root(np.eye(5) + 0.3)
    stream, out = Stream(KEY, "floor", "0", ids_from_numbers(records)), np.empty((records, 5), order="F")
    for start in range(0, records, CHUNK):
        part = stream.at(slice(start, start + CHUNK))
        normals = np.column_stack([part.normals(name) for name in NAMES])
        out[start : start + CHUNK] = normals @ root
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


def speed(data: Table, job: str, work: Callable[[Table], Any], repeats: int) -> Iterator[dict[str, Any]]:
    """Time a job beside both rivals."""
    records = len(data)
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
    warnings.simplefilter("ignore", MaskwellWarning)
    sizes = [20_000, 200_000] if chosen.quick else [20_000, 200_000, 1_000_000, 2_000_000]
    rows: list[dict[str, Any]] = []
    for records in sizes:
        repeats = 3 if records > 500_000 else 7
        data = table(records)
        rows += speed(data, "apply", lambda data: apply(MASK, data, key=KEY), repeats)
        rows += speed(data, "apply and release", lambda data: apply(MASK, data, key=KEY).release, repeats)
    rows.append(growth(rows))
    survey = housing(64_998 if chosen.quick else 1_000_000)
    rows += speed(survey, "apply to the survey", lambda data: apply(AMOUNTS, data, key=KEY), 3)
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

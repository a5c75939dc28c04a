"""`maskwell release` from the file to the verdict, with the default intruders: seconds and memory of the whole command.

The file is made up: ids, classes that make blocks, and skewed amounts that hang together. Each row is the command in a
process of its own, on a plan as `maskwell new` would have it (noise with the data's covariance, on the log scale; a
search for its scale). How much is computed follows from the counts and the plan's budget; the seconds of the stages are
as the command tells them. The aim for 2,000,000 records is 5 minutes on 2 cores and 3 GB.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from _harness import arguments, report

from maskwell.schema import Column, Schema

PLAN = """
[input]
file = "people.parquet"
schema = "people.toml"

[[masks]]
mask = "CorrelatedNoise"
columns = "role: key"
sd_ratio = {sd}
transform = "log"

[tolerance]
max_rate = 0.1
{calibrate}
[output]
release = "release"
private = "private"
"""
CLASSES = {"REGION": 20, "KIND": 5, "SIZE": 8}


def write_people(folder: Path, records: int, amounts: int, classes: dict[str, int]) -> None:
    """Write a made-up file with its schema."""
    rng = np.random.default_rng(1)
    data: dict[str, Any] = {"ID": pa.array(np.arange(10**9, 10**9 + records)).cast(pa.string())}
    columns = [Column("ID", "text", frozenset({"id"}))]
    for name, count in classes.items():
        labels = [f"{name[0].lower()}{i:02d}" for i in range(count)]
        data[name] = pa.DictionaryArray.from_arrays(pa.array(rng.integers(0, count, records)), labels).cast(
            pa.string()
        )
        columns.append(Column(name, "category", frozenset({"block"}), categories=tuple(labels)))
    shared = rng.standard_normal(records)
    for j in range(amounts):
        log = 0.4 * (shared + 1.5 * rng.standard_normal(records))
        data[f"A{j:02d}"] = pa.array(np.round(1000 * np.exp(log)))
        columns.append(Column(f"A{j:02d}", "continuous", frozenset({"key"}), unit=1))
    pq.write_table(pa.table(data), folder / "people.parquet")
    (folder / "people.toml").write_text(Schema(tuple(columns)).to_toml())


def run(folder: Path) -> tuple[int, float, float, str]:
    """Run the command; return its exit code, its seconds, its peak memory in MB, and what it told."""
    command = [sys.executable, "-m", "maskwell", "release", "plan.toml"]
    begun = time.perf_counter()
    with (folder / "said").open("w") as said:
        process = subprocess.Popen(command, cwd=folder, stdout=said, stderr=subprocess.STDOUT)
        _, status, usage = os.wait4(process.pid, 0)
    seconds = time.perf_counter() - begun
    process.returncode = os.waitstatus_to_exitcode(status)
    return process.returncode, seconds, usage.ru_maxrss / 1024, (folder / "said").read_text()


def row(records: int, amounts: int, sd: float, *, calibrate: bool, classes: dict[str, int]) -> dict[str, Any]:
    """Release one made-up file."""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        write_people(folder, records, amounts, classes)
        section = "\n[calibrate]\n" if calibrate else ""
        (folder / "plan.toml").write_text(PLAN.format(sd=sd, calibrate=section))
        code, seconds, peak, said = run(folder)
    stages: dict[str, float] = {}
    for name, spent in re.findall(r"^(\w[\w ]*?) +([\d.]+) s$", said, re.MULTILINE):
        stages[name] = stages.get(name, 0.0) + float(spent)
    job = f"{records:,} x {amounts + len(classes)}, noise {'searched' if calibrate else 'given'}"
    return {
        "job": job,
        "seconds": seconds,
        "peak_mb": peak,
        "exit": code,
        **{f"{k} s": v for k, v in stages.items()},
    }


def main() -> None:
    """Measure and print."""
    own = arguments(__doc__ or "")
    if own.quick:
        rows = [row(3_000, 5, 1.5, calibrate=False, classes={"REGION": 20})]
    else:
        rows = [
            row(15_000, 22, 1.0, calibrate=True, classes={"REGION": 20, "KIND": 5, "SIZE": 2}),
            row(2_000_000, 5, 1.2, calibrate=False, classes=CLASSES | {"AGE": 9}),
            row(2_000_000, 5, 1.0, calibrate=True, classes=CLASSES | {"AGE": 9}),
        ]
    report("release", rows, as_json=own.json)


if __name__ == "__main__":
    main()

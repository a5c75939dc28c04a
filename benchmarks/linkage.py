"""Record linkage: pairs a second and core in the scan, whole attacks, memory, and two rivals from file to links.

A scan is one pass over the pairs of arranged arrays: counting the patterns (and marking those each searcher met), or
finding the best candidates. An attack is `attack(Linkage(), masking)` on tables in memory: bounds, sorting, both
passes, EM, marking and the table of links; with `links="re-identified"` the second pass is for re-identifications only.

The rivals and we start from Parquet files in fresh processes and end with the best link of each target: Splink on
DuckDB (custom levels, EM on all blocked pairs) and plain SQL in DuckDB (given weights, no EM). `link` is the same job
as theirs: the intruder's file and the release. `attack` also opens the truth and the links and marks the answer.
Compiled code comes from its cache. The answers are compared: pattern counts exactly, parameters, and links.

Seconds are processor seconds of all threads, `wall_seconds` are by the clock on the wall; every program may use all
cores.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from _contestants import FIELDS
from _harness import arguments, peak_mb, report

from maskwell.attacks import Linkage, attack
from maskwell.attacks.linkage.sorted_pairs import BlockSortedRecords, arrange, best_of, count_pairs
from maskwell.datasets import housing
from maskwell.errors import MaskwellWarning
from maskwell.keys import Key
from maskwell.masking import Masking, apply
from maskwell.masks import CorrelatedNoise
from maskwell.schema import Column, Schema
from maskwell.table import Table

HERE = Path(__file__).parent
AMOUNTS = ("INCOME", "HOME_VAL", "MORTGAGE", "MAINTAIN", "TAXES")
SURVEY = Linkage(match_blocks=("BEDROOMS", "BATHS", "YR_BLT"))
# Splink stops when no parameter moves by more than 1e-4 in a step; where steps shrink slowly more than that is left.
SAME_PARAMETERS = 2e-3
SAME_LINKS = 0.99  # parameters that differ so little may order two near patterns otherwise


# The files.


def records(count: int, per_block: int, fields: int = 5) -> tuple[dict[str, Any], dict[str, Any], Any]:
    """Draw a truth, a release in random order, and for each released record its number in the truth."""
    rng = np.random.default_rng(1)
    block, order = rng.integers(0, max(count // per_block, 1), count), rng.permutation(count)
    truth, masked = {"B": block}, {"B": block[order]}
    for f in range(fields):
        values = np.round(np.exp(rng.normal(8.0, 0.9, count)), 2)
        truth[f"F{f}"] = values
        masked[f"F{f}"] = np.round(values + 0.03 * values.std() * rng.standard_normal(count), 2)[order]
    return truth, masked, order


def ids(count: int, first: int) -> Any:
    """Return ids of twelve digits."""
    return pa.array(np.arange(first, first + count)).cast(pa.string())


def synthetic(count: int, per_block: int, fields: int = 5) -> Masking:
    """Make a masking of synthetic records, in memory."""
    truth, masked, order = records(count, per_block, fields)
    keys = (Column(f"F{f}", "continuous", frozenset({"key"})) for f in range(fields))
    schema = Schema(
        (Column("ID", "text", frozenset({"id"})), Column("B", "integer", frozenset({"block"})), *keys)
    )
    names = ids(count, 10**11), ids(count, 2 * 10**11)
    tables = (
        Table(schema, pa.table({"ID": n, **side})) for n, side in zip(names, (truth, masked), strict=True)
    )
    links = pa.table({"truth_id": names[0].take(pa.array(order)), "released_id": names[1]})
    return Masking.from_files(*tables, links)


def survey() -> Masking:
    """Make a masking of the built-in survey."""
    return apply(CorrelatedNoise(AMOUNTS, r0=0.97), housing(), key=Key.from_seed(1))


def write_files(folder: Path, targets: int, released: int, per_block: int) -> None:
    """Write truth, release, links and the intruder's file."""
    truth, masked, order = records(released, per_block)
    names = ids(released, 10**11), ids(released, 2 * 10**11)
    chosen = np.sort(np.random.default_rng(2).permutation(released)[:targets])
    tables = {
        "truth": pa.table({"ID": names[0], **truth}),
        "masked": pa.table({"ID": names[1], **masked}),
        "links": pa.table({"truth_id": names[0].take(pa.array(order)), "released_id": names[1]}),
    }
    tables["targets"] = tables["truth"].take(pa.array(chosen))
    for name, table in tables.items():
        pq.write_table(table, folder / f"{name}.parquet")


# Scans and attacks.


def timed(work: Callable[[], Any], repeats: int) -> tuple[float, float]:
    """Return the least processor and wall seconds of several runs."""
    times = []
    for _ in range(repeats):
        wall, start = time.perf_counter(), time.process_time()
        work()
        times.append((time.process_time() - start, time.perf_counter() - wall))
    return min(each[0] for each in times), min(each[1] for each in times)


def arranged(plan: Linkage, masking: Masking, targets: Table | None) -> BlockSortedRecords:
    """Sort both sides as the attack does, in any order within blocks."""
    known, released = targets or masking.truth, masking.release.table
    compared, _ = plan.compared(known, released)
    orders = np.arange(len(known)), np.random.default_rng(3).permutation(len(released))
    return arrange(
        compared.bounds(compared.known), compared.released, plan.blocks_of(known, released), orders
    )


def rows_of(
    job: str, plan: Linkage, masking: Masking, targets: Table | None = None, repeats: int = 3
) -> Iterator[dict[str, Any]]:
    """Time both scans and both kinds of attack on one pair of files."""
    sides = arranged(plan, masking, targets)
    pairs, rank = int(sides.candidates.sum()), np.arange(1 << sides.fields)
    thrifty = Linkage(match_blocks=plan.match_blocks, links="re-identified")
    works = {
        "scan: count patterns": lambda: count_pairs(sides, marked=False),
        "scan: count and mark": lambda: count_pairs(sides, marked=True),
        "scan: best links": lambda: best_of(sides, rank),
        "attack": lambda: attack(plan, masking, targets=targets),
        "attack, re-identified": lambda: attack(thrifty, masking, targets=targets),
    }
    for kind, work in works.items():
        seconds, wall = timed(work, repeats)
        row = {"job": f"{kind}: {job}", "fields": sides.fields, "pairs": pairs, "seconds": seconds}
        yield row | {"wall_seconds": wall, "pairs_per_second_per_core": pairs / seconds}


def some(table: Table, count: int) -> Table:
    """Return some records."""
    return table.take(np.sort(np.random.default_rng(2).permutation(len(table))[:count]))


def scans(*, quick: bool) -> Iterator[dict[str, Any]]:
    """Time all sizes."""
    scale, large = (10, 4_000) if quick else (1, 20_000)
    masking = survey()
    small = Linkage(match_blocks=SURVEY.match_blocks, largest_target_block=7)
    targets = masking.truth.take(small.target_records(masking.truth))
    yield from rows_of(f"{len(targets):,} x 64,998", SURVEY, masking, targets)
    yield from rows_of("64,998 x 64,998", SURVEY, masking, repeats=2)
    few, many = 100_000 // scale, 1_000_000 // scale
    masking = synthetic(many, 50)
    yield from rows_of(f"{few:,} x {many:,}, 50 a block", Linkage(), masking, some(masking.truth, few))
    for per_block in (20, 100):
        job = f"{many:,} x {many:,}, {per_block} a block"
        yield from rows_of(job, Linkage(), synthetic(many, per_block), repeats=2)
    for count in (1_500, large):
        job = f"{count:,} x {count:,}, no blocks"
        yield from rows_of(job, Linkage(match_blocks=()), synthetic(count, count, 8), repeats=2)


MEMORY = """
import sys
sys.path.insert(0, {folder!r})
from linkage import Linkage, attack, synthetic
def prepare():
    attack(Linkage(), synthetic(2000, 20))
    masking = synthetic({count}, {per_block})
    masking.release
    return masking
def work(prepared):
    return attack(Linkage(), prepared)
"""


def memory(*, quick: bool) -> Iterator[dict[str, Any]]:
    """Measure what an attack adds to a process that holds the tables, with few and with many pairs."""
    count = 100_000 if quick else 1_000_000
    for per_block in (20, 100):
        code = MEMORY.format(folder=str(HERE), count=count, per_block=per_block)
        job = f"memory of an attack: {count:,} x {count:,}, {per_block} a block"
        yield {"job": job, "pairs": count * per_block, "peak_mb": peak_mb(code)}


# Rivals.


def contest(folder: Path, name: str) -> dict[str, Any]:
    """Run a contestant in a process of its own and return what it says."""
    command = [sys.executable, str(HERE / "_contestants.py"), name, str(folder), repr(time.time())]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"{name} failed: {done.stderr}")
    said: dict[str, Any] = json.loads((folder / f"{name}.json").read_text(encoding="utf-8"))
    return said


def check(folder: Path, said: dict[str, dict[str, Any]]) -> float:
    """Refuse answers that differ, and return the share of targets, tied ones aside, that Splink links as we do."""
    for name, one in said.items():
        if one["counts"] != said["link"]["counts"]:
            raise RuntimeError(f"{name} counts other patterns: {one['counts']} for {said['link']['counts']}")
    for key in ("m", "u", "p"):
        apart = np.abs(np.asarray(said["splink"][key]) - np.asarray(said["link"][key])).max()
        if apart > SAME_PARAMETERS:
            raise RuntimeError(f"Splink's {key} is {apart:.2g} off ours")
    answers = {name: pq.read_table(folder / f"{name}.parquet").sort_by("target_id") for name in said}
    ours = answers["link"]
    if not np.allclose(answers["sql"]["score"].to_numpy(), ours["score"].to_numpy(), rtol=0, atol=1e-9):
        raise RuntimeError("the best scores of plain SQL are not ours")
    alone = ours["ties"].to_numpy() == 1
    for name in [each for each in ("attack", "sql", "splink") if each in answers]:
        same = ours["linked_id"].to_numpy() == answers[name]["linked_id"].to_numpy()
        share = float(same[alone].mean())
        if share < (SAME_LINKS if name == "splink" else 1.0):
            raise RuntimeError(f"{name} links {1 - share:.2%} of the targets otherwise")
    return share


def contests(*, quick: bool) -> Iterator[dict[str, Any]]:
    """Run the contestants of each size and return ratios."""
    everybody, larger = ("link", "attack", "one_pass", "sql", "splink"), ("link", "sql", "splink")
    if quick:
        yield from contest_of(10_000, 100_000, 50, everybody, 1)
        return
    yield from contest_of(100_000, 1_000_000, 50, everybody, 4)
    yield from contest_of(1_000_000, 1_000_000, 20, larger, 1)


def contest_of(
    targets: int, released: int, per_block: int, contestants: tuple[str, ...], repeats: int
) -> Iterator[dict[str, Any]]:
    """Run contestants turn by turn, compare their answers, and return ratios."""
    job = f"{targets:,} x {released:,}, {per_block} a block, from files"
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_files(folder, targets, released, per_block)
        rounds = []
        for _ in range(repeats):
            rounds.append({each: contest(folder, each) for each in contestants})
            share = check(folder, rounds[-1])
    best = {each: _least([one[each] for one in rounds]) for each in contestants}
    pairs = sum(rounds[0]["link"]["counts"])
    for ours in contestants:
        for rival in ("splink", "sql") if ours not in ("splink", "sql") else ():
            yield _against(f"{ours}: {job}", pairs, best[ours], rival, best[rival]) | {"same_links": share}


def _least(runs: list[dict[str, Any]]) -> dict[str, float]:
    return {key: min(run[key] for run in runs) for key in ("seconds", "wall_seconds", "peak_mb")}


def _against(
    job: str, pairs: int, ours: dict[str, float], rival: str, theirs: dict[str, float]
) -> dict[str, Any]:
    """Write a row; the ratios say how many times as long (or as large) the rival is."""
    row: dict[str, Any] = {"job": job, "fields": len(FIELDS), "pairs": pairs, **ours, "rival": rival}
    row |= {f"rival_{key}": value for key, value in theirs.items()}
    row["ratio"] = theirs["seconds"] / ours["seconds"]
    return row | {"wall_ratio": theirs["wall_seconds"] / ours["wall_seconds"]}


def main() -> None:
    """Run the benchmark."""
    chosen = arguments(__doc__ or "")
    warnings.simplefilter("ignore", MaskwellWarning)
    rows = [*contests(quick=chosen.quick), *memory(quick=chosen.quick), *scans(quick=chosen.quick)]
    report("linkage", rows, as_json=chosen.json)


if __name__ == "__main__":
    main()

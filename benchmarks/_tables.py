"""The tables of docs/benchmarks.md, made from benchmarks/results when the documentation is built.

A results file holds one run (what `--json` prints) or several (`runs`): then a cell is the range over them.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).parent / "results"
RIVALS = {"splink": "Splink on DuckDB", "sql": "plain SQL in DuckDB"}
SCANS = ("scan: count patterns", "scan: count and mark", "scan: best links")
ATTACKS = ("attack", "attack, re-identified")

Rows = list[dict[str, Any]]


def linkage(folder: Path = RESULTS) -> str:
    """Return the tables of `linkage.py` as Markdown, or a sentence where no results are committed yet."""
    file = folder / "linkage.json"
    if not file.exists():
        return "No results are committed yet; `python benchmarks/linkage.py` measures them."
    found = json.loads(file.read_text(encoding="utf-8"))
    runs = found.get("runs", [found])
    rows = [run["rows"] for run in runs]
    return "\n\n".join([_where(runs), _rivals(rows), _sizes(rows), _memory(rows)])


def _where(runs: list[dict[str, Any]]) -> str:
    machine, versions = runs[0]["machine"], runs[0]["versions"]
    named = ", ".join(
        f"{name} {versions[name]}" for name in ("numba", "duckdb", "splink") if name in versions
    )
    count = "one run" if len(runs) == 1 else f"the range of {len(runs)} runs"
    return f"Figures of {count} on {machine['processor']} with {machine['cores']} cores, {named}."


def _rivals(runs: list[Rows]) -> str:
    head = (
        "job",
        "rival",
        "times as fast as the rival",
        "by the wall clock",
        "memory, MB",
        "memory of the rival, MB",
    )
    lines = [
        (
            _named(row["job"]),
            RIVALS[row["rival"]],
            _range(runs, row, "ratio", "{:.1f}".format),
            _range(runs, row, "wall_ratio", "{:.1f}".format),
            _range(runs, row, "peak_mb", "{:,.0f}".format),
            _range(runs, row, "rival_peak_mb", "{:,.0f}".format),
        )
        for row in runs[0]
        if "rival" in row
    ]
    return _table(head, lines)


def _sizes(runs: list[Rows]) -> str:
    """One line a size: the scans in million pairs a second and core, the attacks in seconds by the wall clock."""
    head = ("records", "fields", "pairs", "count patterns", "count and mark", "best links", *_attack_heads())
    jobs = {row["job"]: row for row in runs[0]}
    sizes = [job.removeprefix(f"{SCANS[0]}: ") for job in jobs if job.startswith(SCANS[0])]
    lines = []
    for size in sizes:
        first = jobs[f"{SCANS[0]}: {size}"]
        rates = (_range(runs, jobs[f"{s}: {size}"], "pairs_per_second_per_core", _millions) for s in SCANS)
        walls = (_range(runs, jobs[f"{a}: {size}"], "wall_seconds", "{:.2g} s".format) for a in ATTACKS)
        lines.append((size, f"{first['fields']}", f"{first['pairs']:,}", *rates, *walls))
    return _table(head, lines)


def _attack_heads() -> tuple[str, ...]:
    return "whole attack", 'whole attack, `links="re-identified"`'


def _memory(runs: list[Rows]) -> str:
    lines = [
        (row["job"].split(": ", 1)[1], f"{row['pairs']:,}", _range(runs, row, "peak_mb", "{:,.0f}".format))
        for row in runs[0]
        if row["job"].startswith("memory")
    ]
    return _table(("records", "pairs", "memory that an attack adds, MB"), lines)


def _named(job: str) -> str:
    name, size = job.split(": ", 1)
    return f"`{name}`: {size}"


def _millions(rate: float) -> str:
    return f"{rate / 1e6:,.0f} M"


def _range(runs: list[Rows], row: dict[str, Any], key: str, written: Callable[[float], str]) -> str:
    """Write a figure of a row, or its least and largest over the runs."""
    same = [
        one for run in runs for one in run if (one["job"], one.get("rival")) == (row["job"], row.get("rival"))
    ]
    ends = {written(min(one[key] for one in same)): None, written(max(one[key] for one in same)): None}
    return " to ".join(ends)


def _table(head: tuple[str, ...], lines: list[tuple[str, ...]]) -> str:
    written = [head, ("---",) * len(head), *lines]
    return "\n".join(f"| {' | '.join(line)} |" for line in written)

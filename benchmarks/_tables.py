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
    """Return the tables of `linkage.py` as Markdown."""
    return _written(folder, "linkage", _rivals, _sizes, _memory)


def nearest(folder: Path = RESULTS) -> str:
    """Return the tables of `nearest.py` as Markdown."""
    return _written(folder, "nearest", _searches, _ways, _searched_memory)


def bayes(folder: Path = RESULTS) -> str:
    """Return the tables of `bayes.py` as Markdown."""
    return _written(folder, "bayes", _posteriors, _searched_memory)


def assignment(folder: Path = RESULTS) -> str:
    """Return the table of `assignment.py` as Markdown."""
    return _written(folder, "assignment", _assignments)


def _assignments(runs: list[Rows]) -> str:
    """One line for each block: seconds, how many times as fast as scipy, and the proved gap."""
    head = ("job", "processor seconds", "scipy's", "times as fast", "gap proved")
    lines = []
    for row in (row for rows in runs for row in rows):
        theirs, ratio = (
            "" if row[name] is None else f"{row[name]:,.3g}" for name in ("rival_seconds", "ratio")
        )
        lines.append((row["job"], f"{row['seconds']:,.3g}", theirs, ratio, f"{row['gap']:.0e}"))
    return _table(head, lines)


def fit(folder: Path = RESULTS) -> str:
    """Return the tables of `fit.py` as Markdown."""
    return _written(folder, "fit", _fits, _fitted_memory)


def _fits(runs: list[Rows]) -> str:
    """One line for each job and rival: effective draws a second of both, the ratio, and whether they agree."""
    head = ("job", "rival", "ours", "rival's", "times as many", "R-hat of the rival", "means apart (s.e.)")
    lines = []
    for row in (row for rows in runs for row in rows if "rival" in row):
        ours = f"{row['effective_per_second']:,.0f}"
        if row["ratio"] is None:
            lines.append((row["job"], row["rival"], ours, row["note"], "", "", ""))
            continue
        theirs, apart = f"{row['rival_effective_per_second']:,.3g}", f"{row['agreement']:.1f}"
        lines.append(
            (
                row["job"],
                row["rival"],
                ours,
                theirs,
                f"{row['ratio']:,.3g}",
                f"{row['rival_r_hat']:.2f}",
                apart,
            )
        )
    return _table(head, lines)


def _fitted_memory(runs: list[Rows]) -> str:
    """One line for each large file: what it holds, and the peak of the whole process."""
    rows = [row for rows in runs for row in rows if row["job"].startswith("memory: ")]
    lines = [
        (row["job"].removeprefix("memory: "), f"{row['records_mb']:,.0f}", f"{row['peak_mb']:,.0f}")
        for row in rows
    ]
    return _table(("file", "MB of records", "MB at the peak, libraries included"), lines)


def _written(folder: Path, name: str, *tables: Callable[[list[Rows]], str]) -> str:
    """Return tables of a benchmark's runs, or a sentence where no results are committed yet."""
    file = folder / f"{name}.json"
    if not file.exists():
        return f"No results are committed yet; `python benchmarks/{name}.py` measures them."
    found = json.loads(file.read_text(encoding="utf-8"))
    runs = found.get("runs", [found])
    rows = [run["rows"] for run in runs]
    return "\n\n".join([_where(runs), *(table(rows) for table in tables)])


def _posteriors(runs: list[Rows]) -> str:
    """One line for each search: seconds, growth, and how many times as fast as numpy it is."""
    head = (
        "job",
        "fields",
        "eps",
        "processor seconds",
        "growth",
        "times as fast as numpy",
        "bound on what is neglected",
    )
    lines = []
    for first in (row for row in runs[0] if "ratio" in row):
        whole = first["job"].endswith(f"x {first['rival_records']:,}")
        growth = _of_eps(runs, first, "growth", "{:.2f}".format) if "growth" in first else ""
        ratio = _of_eps(runs, first, "ratio", "{:,.3g}".format) + ("" if whole else " (extrapolated)")
        seconds, bound = (_of_eps(runs, first, name, "{:.2g}".format) for name in ("seconds", "neglected"))
        seconds += " (extrapolated)" if "our_records" in first else ""
        lines.append(
            (first["job"], f"{first['fields']}", f"{first['eps']:.0e}", seconds, growth, ratio, bound)
        )
    return _table(head, lines)


def _of_eps(runs: list[Rows], first: dict[str, Any], name: str, shown: Any) -> str:
    """Return the range of a figure over the runs, of the same job, fields and eps."""
    same = [
        row[name]
        for rows in runs
        for row in rows
        if all(row.get(key) == first[key] for key in ("job", "fields", "eps")) and name in row
    ]
    low, high = shown(min(same)), shown(max(same))
    return low if low == high else f"{low} to {high}"


def _searches(runs: list[Rows]) -> str:
    """One line for each job and size: seconds, growth, and how many times as fast as each rival it is."""
    rivals = ("numba loop", "brute", "cKDTree")
    head = (
        "job",
        "processor seconds",
        "growth",
        *(f"times as fast as: {NEAREST[rival]}" for rival in rivals),
    )
    jobs = {row["job"]: row for row in runs[0] if "microseconds_per_target" in row}
    lines = []
    for job, first in jobs.items():
        ratios = (_against(runs, job, rival) for rival in rivals)
        growth = _range(runs, first, "growth", "{:.2f}".format) if "growth" in first else ""
        lines.append((job, _range(runs, first, "seconds", "{:.2g}".format), growth, *ratios))
    return _table(head, lines)


NEAREST = {
    "numba loop": "a plain loop in numba",
    "brute": "our own scan of all pairs",
    "cKDTree": "scipy's cKDTree, used naively",
}


WAYS = ("tree", "matrix", "by itself")


def _against(runs: list[Rows], job: str, rival: str) -> str:
    row = next(row for row in runs[0] if row["job"] == job and row.get("rival") == rival)
    return _range(runs, row, "ratio", "{:.3g}".format) + (" (extrapolated)" if row["extrapolated"] else "")


def _ways(runs: list[Rows]) -> str:
    """One line for each number of fields: the ways of searching against our own scan of all pairs."""
    head = ("job", "fields", *(f"{way}, times as fast as all pairs" for way in WAYS))
    kinds = [
        (kind, row["fields"])
        for row in runs[0]
        for kind in ("nearest", "closer")
        if row["job"].startswith(f"{kind}, tree")
    ]
    lines = []
    for kind, fields in kinds:
        found = {way: _of_way(runs[0], kind, way, fields) for way in WAYS}
        cells = (_range(runs, found[way], "ratio", "{:.2g}".format) for way in WAYS)
        lines.append((f"{kind}: 10,000 x 10,000", f"{fields}", *cells))
    return _table(head, lines)


def _of_way(rows: Rows, kind: str, way: str, fields: int) -> dict[str, Any]:
    return next(row for row in rows if row["job"].startswith(f"{kind}, {way}:") and row["fields"] == fields)


def _searched_memory(runs: list[Rows]) -> str:
    lines = [
        (
            row["job"].removeprefix("memory of "),
            f"{row['fields']}",
            f"{row['records_mb']:.0f}",
            _range(runs, row, "peak_mb", "{:,.0f}".format),
        )
        for row in runs[0]
        if row["job"].startswith("memory of")
    ]
    return _table(("job", "fields", "the records, MB", "memory added, MB"), lines)


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
    names = ("job", "rival", "fields")
    same = [one for run in runs for one in run if all(one.get(name) == row.get(name) for name in names)]
    ends = {written(min(one[key] for one in same)): None, written(max(one[key] for one in same)): None}
    return " to ".join(ends)


def _table(head: tuple[str, ...], lines: list[tuple[str, ...]]) -> str:
    written = [head, ("---",) * len(head), *lines]
    return "\n".join(f"| {' | '.join(line)} |" for line in written)

"""The benchmark tables of the documentation are made from the committed results, and do without them."""

from __future__ import annotations

import json
import runpy
from pathlib import Path
from typing import Any

TABLES = runpy.run_path(str(Path(__file__).parents[1] / "benchmarks" / "_tables.py"))


def run(ratio: float) -> dict[str, Any]:
    size = "1,000 x 2,000, 50 a block"
    rival: dict[str, Any] = {"job": f"link: {size}, from files", "rival": "splink", "ratio": ratio}
    rival |= {"wall_ratio": 4.0, "peak_mb": 300.0, "rival_peak_mb": 2000.0}
    kinds = (*TABLES["SCANS"], *TABLES["ATTACKS"])
    figures = {"fields": 5, "pairs": 50_000, "pairs_per_second_per_core": 3e8, "wall_seconds": 0.25}
    memory = {"job": f"memory of an attack: {size}", "pairs": 50_000, "peak_mb": 44.4}
    return {
        "machine": {"processor": "a processor", "cores": 2},
        "versions": {"numba": "1.0", "duckdb": "2.0"},
        "rows": [rival, *({"job": f"{kind}: {size}", **figures} for kind in kinds), memory],
    }


def test_without_results_the_page_says_so(tmp_path):
    assert "No results are committed yet" in TABLES["linkage"](tmp_path)


def test_one_run_gives_its_figures(tmp_path):
    (tmp_path / "linkage.json").write_text(json.dumps(run(9.04)), encoding="utf-8")
    text = TABLES["linkage"](tmp_path)
    assert "one run on a processor with 2 cores, numba 1.0, duckdb 2.0" in text
    assert (
        "| `link`: 1,000 x 2,000, 50 a block, from files | Splink on DuckDB | 9.0 | 4.0 | 300 | 2,000 |"
        in text
    )
    assert "| 1,000 x 2,000, 50 a block | 5 | 50,000 | 300 M | 300 M | 300 M | 0.25 s | 0.25 s |" in text
    assert "| 1,000 x 2,000, 50 a block | 50,000 | 44 |" in text


def test_several_runs_give_ranges(tmp_path):
    (tmp_path / "linkage.json").write_text(json.dumps({"runs": [run(9.0), run(11.0)]}), encoding="utf-8")
    text = TABLES["linkage"](tmp_path)
    assert "the range of 2 runs" in text
    assert "| Splink on DuckDB | 9.0 to 11.0 | 4.0 |" in text


def searched(seconds: float) -> dict[str, Any]:
    rows = [
        {
            "job": "exact h: 9 targets x 9",
            "fields": 5,
            "seconds": seconds,
            "microseconds_per_target": 1.0,
            "growth": 1.5,
        }
        | {"rival": rival, "ratio": 10 * seconds, "extrapolated": rival == "numba loop"}
        for rival in TABLES["NEAREST"]
    ]
    for count, kind, way in (
        (c, k, w) for c in (5, 20) for k in ("nearest", "closer") for w in TABLES["WAYS"]
    ):
        rows.append({"job": f"{kind}, {way}: 10,000 x 10,000", "fields": count, "ratio": count * seconds})
    rows.append({"job": "memory of exact h: 9 targets x 9", "fields": 5, "peak_mb": 11.0, "records_mb": 8.0})
    return run(1.0) | {"rows": rows}


def test_searches_have_a_line_for_each_size_and_number_of_fields(tmp_path):
    assert "No results are committed yet" in TABLES["nearest"](tmp_path)
    runs = {"runs": [searched(1.0), searched(2.0)]}
    (tmp_path / "nearest.json").write_text(json.dumps(runs), encoding="utf-8")
    text = TABLES["nearest"](tmp_path)
    assert (
        "| exact h: 9 targets x 9 | 1 to 2 | 1.50 | 10 to 20 (extrapolated) | 10 to 20 | 10 to 20 |" in text
    )
    assert "| nearest: 10,000 x 10,000 | 5 | 5 to 10 | 5 to 10 | 5 to 10 |" in text
    assert "| closer: 10,000 x 10,000 | 20 | 20 to 40 | 20 to 40 | 20 to 40 |" in text
    assert "| exact h: 9 targets x 9 | 5 | 8 | 11 |" in text


def test_fits_have_a_line_for_each_job_and_rival(tmp_path):
    assert "No results are committed yet" in TABLES["fit"](tmp_path)
    ours = {"job": "linear, 9 records", "effective_per_second": 1234.0, "rival": "nutpie"}
    theirs = {"rival_effective_per_second": 10.0, "ratio": 123.4, "rival_r_hat": 1.011, "agreement": 2.04}
    slow = ours | {"rival": "numpyro", "ratio": None, "note": "the rival did not end"}
    memory = {"job": "memory: linear, 9 records", "records_mb": 8.0, "peak_mb": 640.0}
    found = run(1.0) | {"rows": [ours | theirs, slow, memory]}
    (tmp_path / "fit.json").write_text(json.dumps(found), encoding="utf-8")
    text = TABLES["fit"](tmp_path)
    assert "| linear, 9 records | nutpie | 1,234 | 10 | 123 | 1.01 | 2.0 |" in text
    assert "| linear, 9 records | numpyro | 1,234 | the rival did not end |" in text
    assert "| linear, 9 records | 8 | 640 |" in text

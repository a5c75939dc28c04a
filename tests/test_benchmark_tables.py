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

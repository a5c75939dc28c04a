"""`maskwell audit` and `maskwell compare`: what is said of a written release is what is said of it before it is."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from typer.testing import CliRunner

import maskwell as mw
from maskwell.cli import app
from maskwell.schema import Column, Schema
from maskwell.table import Table

MASKS: dict[str, Any] = {
    "correlated": mw.CorrelatedNoise(("x", "y"), sd_ratio=1.0),
    "mixture": mw.MixtureNoise(("x", "y"), variance_ratio=1.0, within_variance_ratio=0.5),
    "chain": mw.Chain((mw.IndependentNoise(("x", "y"), variance_ratio=1.0), mw.Pram(("k",), stay=0.8))),
}


@pytest.fixture(scope="module")
def table() -> Table:
    rng = np.random.default_rng(4)
    x, y = rng.normal(50, 9, size=(2, 400)).round(1)
    columns = (
        Column("x", "continuous", frozenset({"key"}), unit=0.1),
        Column("y", "continuous", frozenset({"key"}), unit=0.1),
        Column("k", "category", frozenset({"key"}), categories=("a", "b", "c")),
    )
    return Table.from_frame(
        pa.table({"x": x, "y": y, "k": rng.choice(["a", "b", "c"], 400)}), Schema(columns)
    )


def said(command: str, folder: Path, *more: str) -> tuple[int, dict[str, Any]]:
    where = ["--release", str(folder / "out"), "--private", str(folder / "in")]
    result = CliRunner().invoke(app, [command, *where, "--json", *more])
    assert result.exit_code in (0, 1), result.output
    return result.exit_code, json.loads(result.stdout)


@pytest.mark.filterwarnings("ignore::maskwell.errors.MaskwellWarning")
@pytest.mark.parametrize("kind", MASKS)
def test_a_written_release_is_audited_as_it_was_before(kind: str, table: Table, tmp_path: Path) -> None:
    masking = mw.apply(MASKS[kind], table, seed=3)
    before = {row["check"]: row["verdict"] for row in mw.audit(masking).to_dict()["findings"]}
    masking.write(release=tmp_path / "out", private=tmp_path / "in")
    code, found = said("audit", tmp_path)
    after = {row["check"]: row["verdict"] for row in found["findings"]}
    assert code == (1 if "fail" in after.values() else 0)
    assert {name: after[name] for name, verdict in before.items() if verdict != "not checked"} == {
        name: verdict for name, verdict in before.items() if verdict != "not checked"
    }


@pytest.mark.filterwarnings("ignore::maskwell.errors.MaskwellWarning")
def test_a_written_release_is_compared_as_it_was_before(table: Table, tmp_path: Path) -> None:
    masking = mw.apply(MASKS["correlated"], table, seed=3)
    masking.write(release=tmp_path / "out", private=tmp_path / "in")
    before = json.loads(json.dumps(mw.compare(masking).to_dict()))
    assert said("compare", tmp_path) == (0, before)

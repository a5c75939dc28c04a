"""Four hundred homes, and plans for them."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import maskwell as mw
from maskwell.keys import Key
from maskwell.pipeline.rehearsal import OF_KEYS, OF_LAWS
from maskwell.plan import ReleasePlan
from maskwell.schema import Column, Schema
from maskwell.table import Table

KEY = Key(bytes(range(32)))
NOISE = {"mask": "CorrelatedNoise", "columns": ["X", "Y"], "r0": 0.5}
LIGHT = NOISE | {"r0": 0.9}
EXCHANGED = {"exempt_values": "the intruder holds X and Y; what he is after is SAID"}
INTRUDERS = [
    {"name": "nearest", "attack": "NearestRecord"},
    {"name": "informed", "attack": "NearestRecord", "distance": "posterior"},
]


def homes(records: int = 400) -> Table:
    """Records with two correlated amounts in two regions, of four kinds, and an answer that nobody outside knows."""
    rng = np.random.default_rng(5)
    x, y = rng.multivariate_normal([500, 900], [[10_000, 4_000], [4_000, 40_000]], records).round().T
    columns = {
        "ID": [f"home {i:04d}" for i in range(records)],
        "REGION": rng.choice(["north", "south"], records),
        "KIND": rng.choice(["a", "b", "c", "d"], records),
        "X": x,
        "Y": y,
        "SAID": rng.choice(["yes", "no"], records),
    }
    schema = Schema(
        (
            Column("ID", "text", frozenset({"id"})),
            Column("REGION", "category", frozenset({"block"}), categories=("north", "south")),
            Column("KIND", "category", frozenset({"block"}), categories=("a", "b", "c", "d")),
            Column("X", "continuous", frozenset({"key"}), unit=1),
            Column("Y", "continuous", frozenset({"key"}), unit=1),
            Column("SAID", "category", frozenset({"sensitive"}), categories=("yes", "no")),
        ),
        series="homes",
    )
    return Table.from_frame(pa.table(columns), schema)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with the homes as a CSV file and their schema."""
    mw.write(homes(), tmp_path / "homes.csv")
    (tmp_path / "homes.toml").write_text(homes().schema.to_toml())
    return tmp_path


@pytest.fixture
def short_audit(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave out of audits what asks only whether noise follows its law and no common seed: it does, in homes.

    For tests of keys, folders, tolerances and words. Those of `test_advising`, the release that passes in
    `test_releasing`, the golden figures and the pages of the documentation make whole audits.
    """
    from maskwell.pipeline import verdict

    whole = verdict.audit_masking

    def short(
        case: Any, masking: Any, risks: Any, left_out: tuple[str, ...] = (), *told: Any, **named: Any
    ) -> Any:
        return whole(case, masking, risks, (*left_out, *OF_KEYS, *OF_LAWS), *told, **named)

    monkeypatch.setattr(verdict, "audit_masking", short)


def plan_in(folder: Path, *masks: dict[str, Any], **sections: Any) -> ReleasePlan:
    whole = {
        "input": {"file": "homes.csv", "schema": "homes.toml"},
        "output": {"release": "out", "private": "inside"},
        "masks": list(masks) or [NOISE],
        "intruders": INTRUDERS,
        "tolerance": {"max_rate": 0.15},
    }
    return ReleasePlan.from_dict(whole | sections, folder)


def bytes_of(folder: Path) -> dict[str, str]:
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}

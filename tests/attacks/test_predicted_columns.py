"""What is said to be known to nobody, and is told by what is known, parts the file all the same."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import maskwell as mw
from maskwell.attacks.predicted_columns import predicted_columns, told_share
from maskwell.keys import Key
from maskwell.pipeline import release
from maskwell.plan import ReleasePlan
from maskwell.schema import Column, Schema

KEY = Key(bytes(range(32)))
HIDDEN = ("S0", "S1", "S2", "BOTH", "COIN")


def people(records: int = 600, flipped: float = 0.0) -> mw.Table:
    """Amounts, and answers that are nothing but an amount above its median."""
    rng = np.random.default_rng(3)
    x = rng.normal(100, 20, (records, 3)).round(1)
    above = (x > np.median(x, axis=0)) ^ (rng.random((records, 3)) < flipped)
    data = {f"X{j}": x[:, j] for j in range(3)} | {
        f"S{j}": np.where(above[:, j], "yes", "no") for j in range(3)
    }
    data |= {"BOTH": np.where(x.sum(axis=1) > 300, "yes", "no"), "COIN": rng.choice(["yes", "no"], records)}
    hidden, key = frozenset({"sensitive"}), frozenset({"key"})
    columns = [Column(f"X{j}", "continuous", key, unit=0.1) for j in range(3)]
    columns += [
        Column(name, "category", hidden, categories=("no", "yes"))
        for name in (*["S0", "S1", "S2", "BOTH", "COIN"],)
    ]
    return mw.Table.from_frame(pa.table(data), Schema(tuple(columns)))


def test_functions_of_known_numbers_are_told_and_coins_are_not() -> None:
    found = predicted_columns(people(flipped=0.04), HIDDEN, ["X0", "X1", "X2"])
    assert found == {"S0": "X0", "S1": "X1", "S2": "X2", "BOTH": "X0, X1, X2"}
    assert predicted_columns(people(), HIDDEN, []) == {}


def test_a_coin_is_told_by_no_number() -> None:
    rng = np.random.default_rng(4)
    shares = [told_share(rng.integers(0, 2, 500), rng.normal(size=500)) for _ in range(200)]
    assert abs(np.mean(shares)) < 4 * np.std(shares) / np.sqrt(200) + 0.005  # the bias is of second order
    assert max(shares) < 0.1


@pytest.mark.parametrize("excepted", [{}, {"S0": "nobody asks"}])
def test_intruders_rely_on_what_is_told(excepted: dict[str, str], tmp_path: Path) -> None:
    table = people()
    mw.write(table, tmp_path / "in.csv")
    (tmp_path / "in.toml").write_text(table.schema.to_toml())
    plan = ReleasePlan.from_dict(
        {
            "input": {"file": "in.csv", "schema": "in.toml"},
            "output": {"release": "out", "private": "inside"},
            "masks": [{"mask": "IndependentNoise", "columns": ["X0", "X1", "X2"], "variance_ratio": 1.0}],
            "intruders": [{"name": "law", "attack": "BayesIntruder"}],
            "targets": {"not_known": excepted},
            "tolerance": {"max_rate": 0.9},
        },
        tmp_path,
    )
    outcome = release(plan, key=KEY, advise=False)
    assert outcome.after["law"].attack.match_blocks == ("S0", "S1", "S2", "BOTH")
    assert any("S0 is taken as known, because X0 tells it" in str(note) for note in outcome.notes)
    assert any("because sensitive: COIN" in str(note) for note in outcome.notes)

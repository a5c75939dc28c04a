"""`calibrate` with bounds on utility: one scale that meets both, a scale for each column, and where none does."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import maskwell as mw
from maskwell.analysis import forecast
from maskwell.attacks import NearestRecord
from maskwell.calibration import Bound, Calibration, Search, calibrate, expected_risk
from maskwell.calibration.bounded_noise import MOST_TIMES
from maskwell.masks import Chain, CorrelatedNoise, IndependentNoise, mask_from_dict
from maskwell.notes import has_code
from maskwell.schema import Column, Schema
from maskwell.table import Table
from maskwell.tolerances import MaxRate

from .conftest import terms

QUICK: dict[str, Any] = {"replicates": 3, "confirmations": 8, "precision": 0.1, "floor": "report"}
KEYS = ("X1", "X2", "K1", "K2")
INFORMED = NearestRecord(distance="posterior", fields=KEYS)
OF_TWO = NearestRecord(distance="posterior", fields=KEYS[:2])
TWO = IndependentNoise(KEYS[:2], variance_ratio=0.3)
MODEL = "Y ~ X1 + X2"
ALONE = IndependentNoise(KEYS, variance_ratio=0.3)


@pytest.fixture(scope="module")
def table() -> Table:
    """Four keys of which two explain Y, which is no key: they decide about the model, all four about the risk."""
    rng = np.random.default_rng(5)
    keys = rng.standard_normal((200, 4)) @ np.linalg.cholesky(0.7 * np.eye(4) + 0.3).T
    columns = {
        "Y": keys[:, 0] + keys[:, 1] + rng.standard_normal(200),
        **dict(zip(KEYS, keys.T, strict=True)),
    }
    described = [Column(name, "continuous", frozenset({"key"} if name != "Y" else ())) for name in columns]
    schema = Schema((Column("ID", "text", frozenset({"id"})), *described), series="bounds")
    return Table.from_frame(pa.table({"ID": [f"r{i}" for i in range(200)], **columns}), schema)


def found_with(table: Table, mask: Any = ALONE, *bounds: Bound, **options: Any) -> Calibration:
    asked = {"attack": INFORMED, "tolerance": MaxRate(0.15), "bounds": bounds, "seed": 1} | QUICK | options
    return calibrate(mask, table, **terms(**asked))


def widened(table: Table, mask: Any) -> float:
    """Return the largest widening of the model, by the forecast itself."""
    wider = forecast(MODEL, table, mask).widening
    return max(wider[name] for name in ("X1", "X2"))


def risk_of(table: Table, mask: Any, attack: Any = INFORMED) -> Any:
    """Return the expected risk of a mask on draws of its own."""
    return expected_risk(mask, table, attack, seed=77, search=Search(replicates=12)).largest.rate


@pytest.fixture(scope="module")
def plain(table: Table) -> Calibration:
    return found_with(table)


@pytest.fixture(scope="module")
def held(table: Table, plain: Calibration) -> Calibration:
    return found_with(table, ALONE, Bound(MODEL, at_most=widened(table, plain.searched.mask) / 2))


@pytest.fixture(scope="module")
def refused(table: Table) -> Calibration:
    """Only the columns of the model are noised, so that nothing else can hide a record."""
    return found_with(table, TWO, Bound(MODEL, at_most=0.1), attack=OF_TWO, tolerance=MaxRate(0.05))


def test_a_bound_that_holds_changes_nothing(table, plain):
    """No bound: nothing to tell. One that holds at one scale for all: the same search, and its widening."""
    assert (plain.widening, plain.trade_off) == ((), None)
    found = found_with(table, ALONE, Bound(MODEL, at_most=50.0))
    assert found.met
    assert found.mask == plain.mask
    assert len(found.trace) == len(plain.trace)
    (one,) = found.widening
    assert one.met
    assert one.largest == pytest.approx(widened(table, found.mask))
    assert one.coefficient in ("X1", "X2")


def test_scales_for_each_column_meet_both_where_one_for_all_does_not(table, plain, held):
    """Half the widening that one scale for all costs: the model's columns have less noise, the others more."""
    allowed = widened(table, plain.searched.mask) / 2
    assert held.met
    (one,) = held.widening
    assert one.met
    assert one.largest == pytest.approx(widened(table, held.mask))
    assert 0.8 * allowed < one.largest <= allowed  # as much as is allowed, but for two digits on the card
    ratios = {piece.columns[0]: piece.variance_ratio for piece in held.mask.masks}
    assert (
        max(ratios["X1"], ratios["X2"]) < plain.searched.mask.variance_ratio < min(ratios["K1"], ratios["K2"])
    )
    assert mask_from_dict(held.mask.to_dict()) == held.mask


def test_the_risk_is_within_the_tolerance_on_draws_of_its_own(table, held):
    rate = risk_of(table, held.mask)
    assert rate.mean <= 0.15 + 4 * rate.se
    assert held.confirmation.bound(held.confirmed_level) <= 0


def test_it_takes_about_twice_the_trials(plain, held):
    """A search along one curve more: not one for each column and move."""
    assert len(held.trace) <= 2 * len(plain.trace) + 4


def test_what_one_scale_would_have_cost_is_told(held):
    said = repr(held)
    assert "  bounds      X" in said
    assert "less noise in X1, X2, more in K1, K2" in " ".join(said.split())
    assert max(map(len, said.splitlines())) <= 100
    told = json.loads(json.dumps(held.to_dict(), allow_nan=False))
    assert told["widening"][0]["formula"] == MODEL
    assert told["widening"][0]["met"] is True
    assert told["trade_off"] is None
    held.figure()


def test_where_none_meets_both_the_trade_off_is_told_both_ways(table, refused):
    """The figures are those of the forecast and of the attack, at the two plans that are named."""
    assert not refused.met
    assert refused.mask is None
    both = refused.trade_off
    assert widened(table, both.at_bounds.mask) <= 0.1
    assert both.at_bounds.figure.mean > 0.05
    fresh = risk_of(table, both.at_bounds.mask, OF_TWO)
    error = (fresh.se**2 + both.at_bounds.figure.se**2) ** 0.5
    assert abs(fresh.mean - both.at_bounds.figure.mean) <= 4 * error
    (one,) = refused.widening
    assert not one.met
    assert one.largest == pytest.approx(widened(table, both.at_tolerance.mask))
    assert both.at_tolerance.figure.mean <= 0.05
    assert refused.closest is both.at_bounds


def test_the_least_widening_is_not_more_than_that_of_one_scale(table, refused):
    alone = found_with(table, TWO, attack=OF_TWO, tolerance=MaxRate(0.05))
    assert refused.widening[0].largest <= widened(table, alone.mask)


def test_where_none_meets_both_it_says_so_in_figures(refused):
    said = " ".join(repr(refused).split())
    assert said.startswith("Calibration NOT met by IndependentNoise within the bounds")
    assert "no noise was found that meets both" in said
    assert f"{refused.widening[0].largest:.1%}" in said
    assert refused.trade_off.at_bounds.said in said
    told = json.loads(json.dumps(refused.to_dict(), allow_nan=False))
    assert told["trade_off"]["at_bounds"]["mask"]["mask"] in ("Chain", "IndependentNoise")
    assert max(map(len, repr(refused).splitlines())) <= 100


def test_correlated_noise_comes_apart_by_the_columns_of_the_model(table):
    mask = CorrelatedNoise(KEYS, sd_ratio=0.6)
    alone = found_with(table, mask)
    found = found_with(table, mask, Bound(MODEL, at_most=0.6 * widened(table, alone.searched.mask)))
    assert found.met
    used, others = found.mask.masks
    assert (used.columns, others.columns) == (KEYS[:2], KEYS[2:])
    assert used.sd_ratio < alone.searched.mask.sd_ratio < others.sd_ratio <= MOST_TIMES * alone.mask.sd_ratio
    assert found.widening[0].met
    assert has_code(found.notes, "calibration.independent_groups")


def test_a_mask_that_stays_whole_has_one_scale(table):
    """Noise that keeps all moments needs all columns: what the bound allows is one scale, and too little."""
    found = found_with(table, CorrelatedNoise(KEYS, sd_ratio=0.6, keep="moments"), Bound(MODEL, at_most=0.1))
    assert not found.met
    assert isinstance(found.trade_off.at_bounds.mask, CorrelatedNoise)
    assert widened(table, found.trade_off.at_bounds.mask) <= 0.1


def test_scales_for_each_column_keep_to_the_bounds(table, plain):
    """`per_column` looks for a cheap mask; with bounds it looks within them, and says where they decide."""
    allowed = widened(table, plain.searched.mask)
    options = {"per_column": True, "precision": 0.3, "replicates": 2}
    loose = found_with(table, ALONE, Bound(MODEL, at_most=1.3 * allowed), **options)
    assert loose.met
    assert loose.columns is not None
    assert loose.widening[0].met
    tight = found_with(table, ALONE, Bound(MODEL, at_most=0.4 * allowed), **options)
    assert has_code(tight.notes, "calibration.bounds_not_objective")


def test_two_bounds_hold_together(table, plain):
    """The second model is about a column of its own: each bound ends the noise of its columns."""
    bounds = (Bound(MODEL, at_most=0.6 * widened(table, plain.searched.mask)), Bound("Y ~ K1", at_most=0.2))
    found = found_with(table, ALONE, *bounds, tolerance=MaxRate(0.2))
    assert [one.formula for one in found.widening] == [MODEL, "Y ~ K1"]
    assert found.met
    assert all(one.met for one in found.widening)


def test_a_stage_without_a_scale_stays(table, plain):
    chain = Chain((ALONE, mw.masks.Subsample(0.9)))
    found = found_with(table, chain, Bound(MODEL, at_most=0.6 * widened(table, plain.searched.mask)))
    masks = (found.mask or found.trade_off.at_tolerance.mask).masks
    assert masks[-1] == chain.masks[-1]


def test_the_command_takes_models(
    run: Any, table: Table, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    mw.write(table, "t.csv")
    Path("t.toml").write_text(table.schema.to_toml(), encoding="utf-8")
    models = "".join(f'[[models]]\nformula = "{one}"\nat_most_wider = 0.05\n' for one in (MODEL, "Y ~ X1"))
    plan = """[input]\nfile = "t.csv"\nschema = "t.toml"
[[masks]]\nmask = "IndependentNoise"\ncolumns = ["X1", "X2"]\nvariance_ratio = 0.1
[[intruders]]\nname = "informed"\nattack = "NearestRecord"\ndistance = "posterior"\nfields = ["X1", "X2"]
[targets]\nmatch_blocks = []
[tolerance]\nmax_rate = 0.05
[calibrate]\nreplicates = 2\nconfirmations = 2
"""
    Path("plan.toml").write_text(plan + models, encoding="utf-8")
    ran = run("calibrate", "plan.toml", "--ignore-floor", "--seed", 1, "--json")
    said = json.loads(ran.out)
    assert (ran.code, said["met"]) == (1, False)
    assert [one["formula"] for one in said["widening"]] == [MODEL, "Y ~ X1"]
    assert {one["at_most"] for one in said["widening"]} == {0.05}
    assert said["trade_off"]["at_bounds"]["figure"]["mean"] > 0.05
    ran = run("calibrate", "t.csv", "--schema", "t.toml", "--columns", "X1,X2", "--at-most-wider", 0.05)
    assert ran.code == 2
    assert "--model" in ran.err

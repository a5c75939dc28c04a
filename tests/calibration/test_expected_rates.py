"""`expected_risk`: means over the noise with Monte Carlo errors, against the replicates and a closed form."""

from __future__ import annotations

import json

import numpy as np
import pytest

from maskwell.attacks import Linkage, NearestRecord, Quantiles, attack
from maskwell.calibration import Search, expected_risk
from maskwell.errors import BadPlan
from maskwell.keys import Key
from maskwell.masking import apply
from maskwell.masks import CorrelatedNoise, RankSwap

from .conftest import terms

MASK, PLAN = CorrelatedNoise(("A", "B"), sd_ratio=0.5), NearestRecord(fields=("A", "B"))


@pytest.fixture(scope="module")
def table(make_amounts):
    return make_amounts(60)


def test_the_means_are_those_of_the_draws(table):
    key = Key.from_seed(4)
    found = expected_risk(MASK, table, PLAN, key=key, search=Search(replicates=5))["NearestRecord"]
    keys = [
        Key(
            key.subkey(series=table.schema.series, purpose="calibration", stage=f"expected {i}", column=""),
            True,
        )
        for i in range(5)
    ]
    risks = [attack(PLAN, apply(MASK, table, key=one)) for one in keys]
    rates = np.array([risk.rate for risk in risks])
    assert found.rate.mean == pytest.approx(rates.mean())
    assert found.rate.se == pytest.approx(rates.std(ddof=1) / np.sqrt(5))
    assert found.at_zero.mean == pytest.approx(np.mean([risk.h.at_zero for risk in risks]))
    assert found.below.mean == pytest.approx(np.mean([risk.h.below(3) for risk in risks]))
    assert found.expected_h.mean == pytest.approx(np.mean([risk.h.expected for risk in risks]))
    assert found.rate.low < found.rate.mean < found.rate.high


def test_the_rate_is_that_of_a_simulation(table):
    """Two columns, noise like the data: nearest in sds of the release, by plain numpy."""
    found = expected_risk(MASK, table, PLAN, seed=1, search=Search(replicates=40))["NearestRecord"].rate
    x = table.values(("A", "B"))
    root = np.linalg.cholesky(0.25 * np.cov(x.T))
    rng, rates = np.random.default_rng(0), []
    for _ in range(400):
        z = x + rng.standard_normal(x.shape) @ root.T
        distance = (((x[:, None] - z) / z.std(axis=0, ddof=1)) ** 2).sum(axis=2)
        rates.append((distance.argmin(axis=1) == np.arange(len(x))).mean())
    error = np.hypot(found.se, np.std(rates) / 20)
    assert abs(found.mean - np.mean(rates)) < 4 * error + 0.005  # sds on the card have two digits


def test_intruders_stand_side_by_side(table):
    found = expected_risk(
        MASK, table, [PLAN, Linkage(fields=("A", "B"))], seed=1, below=5, search=Search(replicates=3)
    )
    assert list(found) == ["NearestRecord", "Linkage"]
    assert found["Linkage"].at_zero is None
    assert found.largest is max(found.values(), key=lambda one: one.rate.mean)
    shown = repr(found)
    assert "Pr(h < 5)" in shown
    assert shown.count("E(h)") == shown.count("Pr(h = 0)") == 1
    data = found.to_dict()
    json.dumps(data, allow_nan=False)
    assert set(data["intruders"]["Linkage"]) == {"rate"}


def test_the_worst_decile_is_riskier(table):
    plan = NearestRecord(fields=("A", "B"))
    everybody, outer = (
        expected_risk(MASK, table, plan, seed=1, search=Search(replicates=6, over=over)).largest.rate.mean
        for over in ("all", "outlying")
    )
    assert outer > everybody


def test_nothing_found_is_not_nothing_to_find(table):
    """So much noise, so few targets and draws: an interval from 0 to 0 would be a claim that nobody can make."""
    plan = NearestRecord(fields=("A", "B"), targets=Quantiles((0.5,), of="A"))
    strong = CorrelatedNoise(("A", "B"), sd_ratio=50)
    found = expected_risk(strong, table, plan, seed=2, search=Search(replicates=4))["NearestRecord"]
    assert found.rate.mean == found.rate.se == found.rate.low == 0
    assert found.rate.high == pytest.approx(1 - 0.025**0.25)
    shares = (found.rate, found.at_zero, found.below)
    assert all(0 <= one.low <= one.mean <= one.high <= 1 and one.low < one.high for one in shares)
    assert 0 <= found.expected_h.low < found.expected_h.mean < found.expected_h.high


def test_the_same_key_gives_the_same_figures(table):
    one, two = (
        expected_risk(MASK, table, PLAN, seed=5, search=Search(replicates=3)).to_dict() for _ in range(2)
    )
    assert one == two


def test_intruders_without_a_law_are_named(table):
    plans = [PLAN, NearestRecord(fields=("A", "B"), distance="posterior")]
    found = expected_risk(RankSwap(("A", "B"), 0.2), table, plans, seed=1, search=Search(replicates=2))
    assert len(found) == 1
    assert found.notes[0].code == "calibration.refused_intruder"
    assert "posterior" in repr(found)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"mask": 3}, "expected_risk needs a mask"),
        ({"table": 3}, "expected_risk needs a Table"),
        ({"attack": 3}, "is no attack"),
        ({"replicates": 1}, "at least 2"),
        ({"below": 0}, "below is a whole number"),
        ({"over": 1}, "over is"),
        ({"seed": 1.5}, "a seed a whole number"),
    ],
)
def test_wrong_arguments_are_refused_in_a_sentence(table, change, words):
    with pytest.raises(BadPlan, match=words):
        expected_risk(**terms(**{"mask": MASK, "table": table, "attack": PLAN, **change}))

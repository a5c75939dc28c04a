"""Correct links are predicted: the attack itself, averaged over noise, finds as many."""

from __future__ import annotations

import numpy as np
import pytest

from maskwell.attacks import Linkage, attack
from maskwell.calibration import full_agreement
from maskwell.calibration.comparison_setting import make_situation
from maskwell.kernels.normal_box_lattice import shared_chances
from maskwell.masking import apply
from maskwell.masks import CorrelatedNoise

pytestmark = pytest.mark.filterwarnings("ignore:.*alone in their block")


def simulated(table, plan, mask, seeds):
    return np.array(
        [attack(plan, apply(mask, table, exact=True, seed=s)).expected_correct for s in range(seeds)]
    )


@pytest.mark.parametrize("sd_ratio", [0.0709, 0.1759, 0.3333, 3.0])
def test_predicted_links_are_those_of_the_attack(small_survey, intruder, sd_ratio):
    situation = make_situation(small_survey, intruder)
    counts = simulated(small_survey, intruder, CorrelatedNoise(situation.fields, sd_ratio=sd_ratio), 12)
    found = situation.correct(sd_ratio)
    assert abs(counts.mean() - found.value) < 4 * counts.std(ddof=1) / len(counts) ** 0.5 + found.error


def test_ties_of_the_same_values_are_shared(amounts):
    """All records are targets in three large blocks, and a field without noise narrows their candidates."""
    table, plan = amounts(400), Linkage()
    mask = CorrelatedNoise(("A", "B"), sd_ratio=0.6)
    situation = make_situation(table, plan, mask)
    counts, found = simulated(table, plan, mask, 25), situation.correct(0.6)
    assert found.value < situation.agreeing(0.6).value
    assert abs(counts.mean() - found.value) < 4 * counts.std(ddof=1) / len(counts) ** 0.5 + found.error


def test_pairs_share_block_and_closed_fields(amounts):
    situation = make_situation(amounts(120), Linkage())
    pairs = situation.pairs
    block, open_ = situation.blocks[1], ~np.isnan(situation.truth)
    closed = np.where(situation.released >= 1e308, situation.released, 0)
    for t in range(len(situation.targets)):
        here = pairs.record[pairs.start[t] : pairs.start[t + 1]]
        same = (block == block[t]) & (closed == closed[:, [t]]).all(axis=0) & (np.arange(120) != t)
        expected = np.flatnonzero(same) if open_[t].any() else np.array([], int)
        np.testing.assert_array_equal(np.sort(here), expected)
        assert pairs.certain[t] == (0 if open_[t].any() else np.count_nonzero(same))


def test_what_cannot_be_likely_is_left_out_and_nothing_else(amounts, monkeypatch):
    situation = make_situation(amounts(200), Linkage())
    monkeypatch.setattr(full_agreement, "points_each", lambda *_: 16)
    thrifty = situation.correct(0.2).value
    monkeypatch.setattr(full_agreement, "NEGLIGIBLE", -1.0)
    assert thrifty == pytest.approx(situation.correct(0.2).value, abs=1e-4)


def test_too_many_pairs_are_not_counted(amounts, monkeypatch):
    monkeypatch.setattr(full_agreement, "MOST_PAIRS", 10)
    situation = make_situation(amounts(), Linkage())
    assert situation.pairs is None
    assert situation.correct(0.2) is None


@pytest.mark.parametrize("certain", [0, 3, 400, 50_000])
@pytest.mark.parametrize("likely", [0, 200])
def test_the_quadrature_holds_for_any_number_of_ties(certain, likely):
    out = np.empty((1, 1))
    shared_chances(
        np.ones((likely, 1)), np.array([0, likely]), np.array([certain]), *full_agreement.quadrature(), out
    )
    assert out[0, 0] == pytest.approx(1 / (1 + certain + likely), rel=1e-6)

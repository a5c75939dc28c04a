"""The critical noise meets its own definition, and its floor is the limit it says."""

from __future__ import annotations

import json
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest

from maskwell.attacks import Linkage
from maskwell.calibration import critical_noise
from maskwell.calibration.comparison_setting import INFINITE, make_situation
from maskwell.calibration.critical_noise_search import LOWEST
from maskwell.errors import BadPlan
from maskwell.masks import IndependentNoise
from maskwell.notes import has_code, texts
from maskwell.schema import Column, Schema
from maskwell.table import Table


@pytest.fixture(scope="module")
def found(amounts):
    return critical_noise(amounts(), epsilon=0.02, sd_ratios=[0.1, 1.0])


def test_it_is_the_smallest_noise_within_the_tolerance(amounts, found):
    situation, tolerated = make_situation(amounts()), 0.02 * 300
    excess = [
        situation.agreeing(found.critical_sd_ratio * step).value - found.floor.agreeing
        for step in (0.99, 1.01)
    ]
    assert excess[0] > tolerated > excess[1]
    assert found.at_critical.agreeing - found.floor.agreeing == pytest.approx(tolerated, abs=0.01)
    assert found.is_monotone
    assert found.critical_r0 == pytest.approx(1 / (1 + found.critical_sd_ratio**2))


def test_the_floor_is_closed_fields_and_clamps(amounts):
    """A value agrees at its clamp with probability 1/2, two of them with that of an orthant."""
    situation = make_situation(amounts(2000), Linkage(fields=("A", "B")))
    law = situation.law(INFINITE)
    r = law.noise.covariance[0, 1] / np.sqrt(np.prod(np.diag(law.noise.covariance)))
    sides = np.zeros(situation.is_open.shape)
    for j, outlet in enumerate(law.outlets):
        sides[:, j] += situation.high[:, j] >= outlet.high
        sides[:, j] -= situation.low[:, j] <= outlet.low
    sides[~situation.is_open] = np.nan
    both = 0.25 + np.arcsin(r) / (2 * np.pi)
    one = np.where(sides == 0, 0.0, np.where(np.isnan(sides), 1.0, 0.5))
    expected = np.where(
        (np.abs(sides) == 1).all(axis=1), np.where(sides.prod(axis=1) > 0, both, 0.5 - both), one.prod(axis=1)
    )
    assert situation.agreeing(INFINITE).value == pytest.approx(expected.sum(), abs=1e-2)


def test_agreement_falls_to_its_floor(amounts):
    situation = make_situation(amounts())
    for disagreeing in (0, 1):
        sums = [situation.agreeing(c, disagreeing) for c in (0.05, 0.2, 1.0, 10.0, 1e3, INFINITE)]
        assert all(a.value > b.value - b.error for a, b in pairwise(sums))
        assert sums[-2].value == pytest.approx(sums[-1].value, abs=0.5)


def test_a_laxer_intruder_needs_more_noise(amounts, found):
    lax = critical_noise(amounts(), epsilon=0.02, disagreeing=1, sd_ratios=[1.0])
    assert lax.critical_sd_ratio > found.critical_sd_ratio
    assert lax.moore.ignoring == sorted(lax.closed_form.values())[1]


def test_moore_is_far_below_on_the_survey(survey, intruder):
    found = critical_noise(survey, attack=intruder, sd_ratios=[0.1395])
    assert [round(c, 4) for c in found.closed_form.values()] == [0.2064, 0.1504, 0.1447, 0.3165, 0.1395]
    assert found.targets == 771
    assert found.curve.points[0].agreeing - found.floor.agreeing > 0.01 * 771
    assert found.critical_sd_ratio > found.moore.smallest
    assert found.floor.agreeing_error < 0.5


def test_it_is_written_and_shown(found):
    data = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert data["critical_sd_ratio"] == found.critical_sd_ratio
    assert data["moore"]["label"].startswith("Moore's")
    shown = repr(found)
    assert "critical sd ratio" in shown
    assert "Moore's conjectures" in shown
    assert len(shown.splitlines()) < 25


def test_where_agreement_rises_the_search_goes_in_small_steps(amounts):
    """Noise on the log scale with its mean corrected pushes most values to the bottom, where small ones agree again."""
    mask, plan = IndependentNoise(("A",), variance_ratio=1.0, transform="log"), Linkage(fields=("A",))
    table = amounts(bottom=400, top=None)
    found = critical_noise(table, attack=plan, mask=mask, sd_ratios=[1.0])
    assert not found.is_monotone
    assert has_code(found.notes, "calibration.rising_agreement")
    situation = make_situation(table, plan, mask)
    excess = [
        situation.agreeing(found.critical_sd_ratio * step).value - found.floor.agreeing
        for step in (0.99, 1.01)
    ]
    assert excess[0] > 0.01 * 300 > excess[1]


def test_where_no_target_is_open_no_noise_is_needed(amounts):
    table = amounts()
    blocks = np.array(table.array("BLOCK").to_pylist())
    sizes = {name: np.count_nonzero(blocks == name) for name in "abc"}
    smallest = min(sizes, key=lambda name: sizes[name])
    closed = (blocks == smallest).astype(np.uint8)
    values = np.where(closed, np.nan, 300.0 + np.arange(300))
    shut = table.with_columns({name: (table.schema[name], values, closed) for name in "ABC"})
    plan = Linkage(largest_target_block=sizes[smallest])
    found = critical_noise(shut, attack=plan, mask=IndependentNoise(("A", "B", "C"), variance_ratio=1.0))
    assert found.targets == sizes[smallest]
    assert found.critical_sd_ratio == 0
    assert found.floor.agreeing == found.targets
    assert found.floor.correct == pytest.approx(1)
    assert has_code(found.notes, "calibration.no_open_values")


@pytest.mark.parametrize("epsilon", [0, 1, -0.1, float("nan"), "a", None, True])
def test_a_tolerance_is_a_share(amounts, epsilon):
    with pytest.raises(BadPlan, match="between 0 and 1"):
        critical_noise(amounts(), epsilon=epsilon)


@pytest.mark.parametrize("share", [2, -0.1, "a", None, float("nan")])
def test_a_substantial_share_is_a_share(amounts, share):
    with pytest.raises(BadPlan, match="substantial_share is a share of the records between 0 and 1"):
        critical_noise(amounts(), substantial_share=share)


@pytest.mark.parametrize("sizes", ["a", ["a"], [], [None], [True], int])
def test_sizes_are_numbers(amounts, sizes):
    with pytest.raises(BadPlan, match="sd_ratios must be at least one number"):
        critical_noise(amounts(), sd_ratios=sizes)


@pytest.mark.parametrize("size", [0, -1.0, float("inf"), float("nan")])
def test_sizes_are_positive(amounts, size):
    with pytest.raises(BadPlan, match="sd_ratios must be positive numbers"):
        critical_noise(amounts(), sd_ratios=[0.1, size])


def test_one_size_may_stand_alone(amounts, found):
    alone = critical_noise(amounts(), epsilon=0.02, sd_ratios=0.1)
    assert alone.curve.points == found.curve.points[:1]


def test_where_the_least_noise_is_enough_a_note_says_so(amounts):
    """99% may agree more than under unlimited noise, and more than 1% always agree: closed fields."""
    whole = amounts()
    exact = whole.with_columns(
        {
            name: (Column(name, "continuous", frozenset({"key"})), whole.floats(name), whole.status(name))
            for name in "ABC"
        }
    )
    coded, plain = (critical_noise(table, epsilon=0.99, sd_ratios=0.1) for table in (whole, exact))
    said = "the least noise that was tried is enough: c = "
    assert f"{said}0.001" in texts(plain.notes)
    assert plain.critical_sd_ratio == LOWEST
    size = coded.critical_sd_ratio
    assert f"{said}{size:g} (less would be lost in the units of the columns)" in texts(coded.notes)
    with pytest.raises(BadPlan):
        make_situation(whole).law(LOWEST)
    for each, table in ((coded, whole), (plain, exact)):
        agreeing = make_situation(table).agreeing(each.critical_sd_ratio).value
        assert agreeing <= each.floor.agreeing + 0.99 * 300


def test_codes_on_both_sides_of_columns_without_a_unit():
    rng = np.random.default_rng(3)
    values = {name: np.clip(10 * rng.normal(size=200), -15, 15) for name in "AB"}
    columns = tuple(Column(name, "continuous", frozenset({"key"}), top=15.0, bottom=-15.0) for name in "AB")
    found = critical_noise(Table.from_frame(pa.table(values), Schema(columns)), sd_ratios=[0.1, 1.0])
    assert found.critical_sd_ratio > 0.1
    assert found.is_monotone

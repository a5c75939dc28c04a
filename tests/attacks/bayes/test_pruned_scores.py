"""The search by trees inside the intruder gives the answers of all pairs."""

from __future__ import annotations

import warnings

import numpy as np
import pyarrow as pa
import pytest

import maskwell as mw
from maskwell.attacks.attack_run import attack_by
from maskwell.attacks.bayes.pruned_sums import scores
from maskwell.notes import has_code
from maskwell.schema import Column, Schema
from maskwell.table import Table

NAMES, KEY = ("A", "B", "C"), frozenset({"key"})
UNSEEN = "attacks.unseen_candidates"


def table_of(count, gaps=0.05, seed=1, round_to=None, units=(None, None, None)):
    rng = np.random.default_rng(seed)
    values = rng.multivariate_normal(np.zeros(3), [[1, 0.5, 0], [0.5, 1, 0.3], [0, 0.3, 1]], count)
    values = values * [1.0, 50.0, 2000.0]
    if round_to is not None:
        values = np.round(values / round_to) * round_to
    values[rng.random(values.shape) < gaps] = np.nan
    columns = {name: pa.array(column, from_pandas=True) for name, column in zip(NAMES, values.T, strict=True)}
    groups = pa.array(rng.integers(0, 3, count).astype(str))
    described = [Column(name, "continuous", KEY, unit=unit) for name, unit in zip(NAMES, units, strict=True)]
    schema = Schema((*described, Column("G", "category", frozenset({"block"}), categories=("0", "1", "2"))))
    return Table.from_frame(pa.table(columns | {"G": groups}), schema)


def masked(mask, table):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", mw.MaskwellWarning)
        return mw.apply(mask, table, seed=5)


MASKS = {
    "light": mw.CorrelatedNoise(NAMES, sd_ratio=0.1),
    "medium": mw.IndependentNoise(NAMES, variance_ratio=0.1),
    "heavy, sampled": mw.Chain((mw.CorrelatedNoise(NAMES, sd_ratio=1.0), mw.Subsample(0.5))),
}
PLANS = {
    "coherent": {},
    "forward": {"kernel": "forward"},
    "gaussian": {"marginal": "gaussian"},
    "some": {"targets": mw.attacks.Sample(100)},
    "to original": {"direction": "to_original"},
    "gaussian, to original": {"direction": "to_original", "marginal": "gaussian"},
    "some, to original": {"direction": "to_original", "targets": mw.attacks.Sample(100)},
}


@pytest.mark.parametrize("mask", MASKS.values(), ids=MASKS)
@pytest.mark.parametrize("options", PLANS.values(), ids=PLANS)
def test_trees_give_the_answers_of_all_pairs(mask, options, monkeypatch):
    masking, plan = masked(mask, table_of(500)), mw.BayesIntruder(**options)
    plain, whole, _, _ = attack_by(plan, masking)
    monkeypatch.setattr(scores, "LEAST_PAIRS", 0)
    risk, guess, _, _ = attack_by(plan, masking)
    assert has_code(risk.notes, UNSEEN)
    assert not has_code(plain.notes, UNSEEN)
    for name in ("found", "second", "ties", "candidates", "kind"):
        np.testing.assert_array_equal(getattr(guess, name), getattr(whole, name), err_msg=name)
    np.testing.assert_allclose(guess.score, whole.score, rtol=1e-5, atol=1e-5)
    for name in whole.columns:
        np.testing.assert_allclose(guess.columns[name], whole.columns[name], atol=3e-6, err_msg=name)
    assert risk.belief.ranks.to_dict() == plain.belief.ranks.to_dict()


def test_ties_are_shared_by_trees_too(monkeypatch):
    """Values on a coarse grid, and some records released twice over: the same ties, the same rate."""
    masking = masked(
        mw.IndependentNoise(NAMES, variance=(1.0, 2500.0, 4e6)), table_of(400, round_to=[2, 100, 4000])
    )
    plain = mw.attack(mw.BayesIntruder(), masking)
    monkeypatch.setattr(scores, "LEAST_PAIRS", 0)
    risk = mw.attack(mw.BayesIntruder(), masking)
    assert risk.expected_correct == pytest.approx(plain.expected_correct)
    assert risk.table["ties"] == plain.table["ties"]


@pytest.mark.parametrize(
    "mask",
    [
        mw.BiasNoise(NAMES, bias_sd=0.1, sd_ratio=0.1),
        mw.MixtureNoise(NAMES, variance_ratio=0.1, within_variance_ratio=0.05),
        mw.Chain((mw.IndependentNoise(NAMES[:2], variance_ratio=0.1), mw.Pram(("G",), stay=0.8))),
    ],
    ids=["value-dependent", "mixture", "with categories"],
)
def test_other_laws_look_at_all_pairs(mask, monkeypatch):
    monkeypatch.setattr(scores, "LEAST_PAIRS", 0)
    risk = mw.attack(mw.BayesIntruder(match_blocks=()), masked(mask, table_of(60, gaps=0)))
    assert not has_code(risk.notes, UNSEEN)


UNITS = (1.0, 10.0, 500.0)  # of sds 1, 50 and 2,000: the first is coarse


def rounded_table(count):
    """Return amounts of which the first leaves in whole numbers of its sd."""
    return table_of(count, gaps=0.0, seed=3, round_to=UNITS, units=UNITS)


@pytest.mark.parametrize("assignment", ["best", "one-to-one"])
@pytest.mark.parametrize("ratio", [0.55, 1.0, 3.0])
def test_coarse_units_are_taken_for_noise_and_rates_stay_as_they_are(assignment, ratio, monkeypatch):
    """By exact cells, and by Sheppard's normal ones: the same rate, but for a thousandth and a few records."""
    table = rounded_table(1_500)
    masking = masked(mw.CorrelatedNoise(NAMES, sd_ratio=ratio), table)
    plan = mw.BayesIntruder(assignment=assignment)
    law = scores.laws_on(masking.release.card, NAMES)[0]
    assert scores.coarse_units(law)
    assert scores.is_searched_by_trees(law, table)
    exact = mw.attack(plan, masking)
    monkeypatch.setattr(scores, "LEAST_PAIRS", 0)
    quick = mw.attack(plan, masking)
    assert has_code(quick.notes, "attacks.units_as_noise")
    assert abs(quick.rate - exact.rate) < 0.001 + 4 / 1_500


def test_sheppards_density_is_as_near_as_it_is_said(monkeypatch):
    """The density of noise and a uniform part of a unit, against the normal one with u^2 / 12 more variance."""
    from scipy.stats import norm

    for unit in (0.5, 1.0, 2.0):
        law = masked(
            mw.IndependentNoise(("A",), variance=1.0 / unit**2), rounded_table(50)
        ).release.card.laws[0]
        sd, wide = law.noise.sds[0], scores.without_units(law).noise.sds[0]
        apart = np.linspace(0, 2 * wide, 50)
        exact = norm.cdf((apart + 0.5) / sd) - norm.cdf((apart - 0.5) / sd)
        off = np.abs(norm.pdf(apart, scale=wide) / exact - 1).max()
        assert off < 1.3 * scores.rounding_error(law)  # the next terms of the series


def test_units_are_left_to_exact_cells_where_they_are_too_coarse_or_not_alike():
    table = rounded_table(50)
    weak = masked(mw.IndependentNoise(("A",), variance=0.16), table).release.card.laws[0]
    clamped = masked(mw.IndependentNoise(("A",), variance=1.0, limits=(-2, 2)), table).release.card.laws[0]
    for law in (weak, clamped):
        assert not scores.coarse_units(law)
        assert not scores.is_searched_by_trees(law, table)
        assert scores.without_units(law) is law


@pytest.mark.parametrize("unit", [0.01, 1.0, 200.0])
def test_whether_trees_are_taken_on_the_log_scale_is_known_before_any_noise(unit, monkeypatch):
    rng = np.random.default_rng(4)
    values = np.round(rng.lognormal(7, 0.5, 400) / unit) * unit + unit
    schema = Schema((Column("A", "continuous", KEY, unit=unit),))
    table = Table.from_frame(pa.table({"A": values}), schema)
    masking = masked(mw.IndependentNoise("A", variance_ratio=0.5, transform="log"), table)
    law = masking.release.card.laws[0]
    monkeypatch.setattr(scores, "LEAST_PAIRS", 0)
    notes = mw.attack(mw.BayesIntruder(), masking).notes
    assert has_code(notes, UNSEEN) == scores.is_searched_by_trees(law, table)
    assert scores.is_searched_by_trees(law, table) == (unit < 100)

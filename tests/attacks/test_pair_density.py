"""Pairs of records under a card: the same figures as the card gives for two tables laid side by side."""

from __future__ import annotations

import warnings
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from scipy.stats import multivariate_normal, norm

import maskwell as mw
from maskwell.attacks import pair_density
from maskwell.attacks.pair_density import all_logs, law_terms, laws_on, pair_logs, summed_logs
from maskwell.errors import BadInput, NoLaw
from maskwell.notes import has_code

AMOUNTS = ("INCOME", "TAX", "AGE")
MASKS = {
    "correlated, clamped and rounded": mw.CorrelatedNoise(AMOUNTS, sd_ratio=0.5),
    "independent": mw.IndependentNoise(AMOUNTS, variance_ratio=0.3),
    "mixture": mw.MixtureNoise(AMOUNTS, variance_ratio=0.3, within_variance_ratio=0.02),
    "joint mixture": mw.MixtureNoise(
        AMOUNTS, variance_ratio=0.3, within_variance_ratio=0.02, components=4, correlated=True
    ),
    "turned mixture": mw.MixtureNoise(
        AMOUNTS, variance_ratio=0.3, within_variance_ratio=0.02, components=2, correlated=True
    ),
    "bias": mw.BiasNoise(AMOUNTS, bias_sd=0.2, sd_ratio=0.1),
    "lognormal bias": mw.BiasNoise(AMOUNTS, bias_sd=0.2, sd_ratio=0.1, shape="lognormal"),
    "laplace": mw.IndependentNoise(("WAGE",), variance_ratio=0.2, shape="laplace"),
    "log scale": mw.IndependentNoise(("WAGE", "OTHER"), variance_ratio=0.1, transform="log", shift=1.0),
    "steps": mw.IndependentNoise(("WAGE",), variance_ratio=0.2, spread=mw.laws.Step((1000.0,), (0.5, 2.0))),
    "codes": mw.CodeNoise(("SEX",), variance=0.3),
    "rounded codes": mw.CodeNoise(("SEX",), variance=0.3, rounded=True),
    "pram": mw.Pram(("EDU",), stay=0.7),
    "grouping": mw.Grouping(("AGE",), breaks=(30, 50, 70)),
    "coding": mw.Coding(("WAGE",), top=4000, bottom=500),
    "chain": mw.Chain(
        (
            mw.CorrelatedNoise(("WAGE", "OTHER"), sd_ratio=0.3),
            mw.Coding(("WAGE",), top=4000, bottom=500),
            mw.Pram(("EDU",), stay=0.7),
        )
    ),
}


@pytest.fixture(scope="module")
def people(make_people):
    """Records with every kind of column, without the total that would forbid masking its parts."""
    table = make_people(120)
    return table.select([name for name in table.names if name != "TOTAL"])


def masked(mask, table, **rest):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", mw.MaskwellWarning)
        return mw.apply(mask, table, seed=3, **rest)


def some_pairs(masking, count=1500, seed=1):
    """Pairs at random, and all true ones."""
    rng = np.random.default_rng(seed)
    z = np.concatenate([rng.integers(0, len(masking.order), count), np.arange(len(masking.order))])
    x = np.concatenate([rng.integers(0, len(masking.truth), count), masking.order])
    return z, x


@pytest.mark.parametrize("name", MASKS)
def test_pairs_have_the_density_that_the_card_gives_two_tables(name, people):
    masking = masked(MASKS[name], people)
    card, released = masking.release.card, masking.release.table
    z, x = some_pairs(masking)
    ours = pair_logs(card, released, people, z, x)
    np.testing.assert_allclose(ours, card.logpdf(released.take(z), people.take(x)), rtol=1e-12, atol=1e-12)
    assert np.isfinite(ours[-len(released) :]).all(), "what was drawn is possible"


def test_statuses_decide_which_pairs_are_possible(people):
    masking = masked(MASKS["correlated, clamped and rounded"], people)
    z, x = some_pairs(masking, 3000)
    logs = pair_logs(masking.release.card, masking.release.table, people, z, x)
    same = np.ones(len(z), bool)
    for name in AMOUNTS:
        same &= masking.release.table.status(name)[z] == people.status(name)[x]
    np.testing.assert_array_equal(np.isfinite(logs), same)
    assert 0 < same.sum() < len(same)


def test_long_lists_are_cut_into_runs(people, monkeypatch):
    masking = masked(MASKS["chain"], people)
    z, x = some_pairs(masking)
    args = masking.release.card, masking.release.table, people, z, x
    whole = pair_logs(*args)
    monkeypatch.setattr("maskwell.attacks.pair_density.PAIRS_AT_ONCE", 77)
    np.testing.assert_array_equal(pair_logs(*args), whole)


def test_no_pairs_give_no_figures(people):
    masking = masked(MASKS["pram"], people)
    nobody = np.empty(0, np.int64)
    assert pair_logs(masking.release.card, masking.release.table, people, nobody, nobody).shape == (0,)


def test_the_law_of_some_columns_is_the_marginal_law(make_amounts):
    table = make_amounts(60, "ABC")
    masking = masked(mw.CorrelatedNoise(("A", "B", "C"), sd_ratio=0.5), table, exact=True)
    (law,) = laws_on(masking.release.card, ["A", "C"])
    released, order = masking.release.table, masking.order
    ours = summed_logs(law_terms([law], released, table), np.arange(60), order)
    whole = masking.release.card.laws[0].noise.covariance
    residual = released.values(["A", "C"]) - table.values(["A", "C"])[order]
    expected = multivariate_normal(np.zeros(2), whole[np.ix_([0, 2], [0, 2])]).logpdf(residual)
    np.testing.assert_allclose(ours, expected, rtol=1e-10)


def test_the_marginal_of_lognormal_bias_keeps_its_own_column(people):
    masking = masked(mw.BiasNoise(AMOUNTS, bias_sd=0.2, sd_ratio=0.1, shape="lognormal"), people)
    card, released = masking.release.card, masking.release.table
    z, x = some_pairs(masking, 300)
    one = [summed_logs(law_terms(laws_on(card, [name]), released, people), z, x) for name in AMOUNTS]
    np.testing.assert_allclose(sum(one), pair_logs(card, released, people, z, x), rtol=1e-12)


def test_columns_without_a_law_are_left_out(people):
    card = masked(MASKS["independent"], people).release.card
    assert laws_on(card, ["SEX"]) == []


def test_independent_noise_is_a_normal_density_by_hand(make_amounts):
    table = make_amounts(20, "A")
    masking = masked(mw.IndependentNoise(("A",), variance=0.25), table, exact=True)
    z, x = masking.release.table.floats("A"), table.floats("A")
    pairs = np.arange(20), np.arange(20)[::-1].copy()
    ours = pair_logs(masking.release.card, masking.release.table, table, *pairs)
    np.testing.assert_allclose(ours, norm(0, 0.5).logpdf(z[pairs[0]] - x[pairs[1]]), rtol=1e-12)


def test_an_exchange_has_no_law(people):
    masking = masked(mw.RankSwap(("TAX",), window_ratio=0.1), people)
    with pytest.raises(NoLaw, match="rank swap of 'TAX' has no law"):
        pair_logs(masking.release.card, masking.release.table, people, np.arange(2), np.arange(2))


def test_categories_that_are_not_the_cards_are_refused(people):
    masking = masked(MASKS["pram"], people)
    column = people.schema["EDU"]
    other = people.schema.changed({"EDU": replace(column, categories=("high", "low"))})
    released = masking.release.table
    with pytest.raises(BadInput, match="column 'EDU' has other categories than its card"):
        pair_logs(masking.release.card, replace(released, schema=other), people, np.arange(2), np.arange(2))


@pytest.mark.parametrize("name", MASKS)
def test_a_matrix_of_all_pairs_has_the_figures_of_listed_ones(people, name):
    masking = masked(MASKS[name], people)
    release, truth = masking.release.table, masking.truth
    laws = laws_on(masking.card, [column for law in masking.card.laws for column in law.columns])
    terms = law_terms(laws, release, truth)
    z, x = np.arange(0, len(release), 2), np.arange(1, len(truth), 3)
    listed = summed_logs(terms, np.tile(z, len(x)), np.repeat(x, len(z))).reshape(len(x), len(z))
    np.testing.assert_allclose(all_logs(terms, z, x), listed, rtol=1e-9, atol=1e-9)


def test_records_with_many_values_at_limits_are_weighed_nearly_and_it_is_said():
    """The same intruder with integrals finds as many, with the same probabilities to a hundredth."""
    rng, names = np.random.default_rng(3), tuple("ABCDEF")
    common = rng.normal(size=50)
    columns = tuple(mw.Column(name, "continuous", frozenset({"key"}), unit=1) for name in names)
    values = {name: np.round(100 + 20 * (common + rng.normal(size=50))) for name in names}
    table = mw.Table.from_frame(pa.table(values), mw.Schema(columns))
    noise = mw.CorrelatedNoise(names, sd_ratio=0.4, limits=tuple((name, 90, 110) for name in names))
    masking = mw.apply(noise, table, seed=2)
    near = mw.attack(mw.BayesIntruder(), masking)
    assert has_code(near.notes, "attacks.rough_boxes")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pair_density, "MANY_KINDS", 10**6)
        patch.setattr(pair_density, "MOST_BOXES", 99)
        patch.setattr(pair_density, "MOST_ENDLESS", 99)
        exact = mw.attack(mw.BayesIntruder(), masking)
    assert not has_code(exact.notes, "attacks.rough_boxes")
    mine, theirs = (one.table["probability"].to_numpy(zero_copy_only=False) for one in (near, exact))
    assert np.abs(mine - theirs).max() < 0.02
    assert near.expected_correct == pytest.approx(exact.expected_correct, abs=1)


def test_zero_on_the_log_scale_lies_in_its_own_cell_and_in_no_other() -> None:
    """A record released as 0 is held against itself where a card is judged: log 0 from log 0 is no number."""
    names = ("A", "B")
    schema = mw.Schema(tuple(mw.Column(n, "continuous", frozenset({"key"}), unit=0.01) for n in names))
    rng = np.random.default_rng(4)
    values = {name: np.exp(rng.normal(0, 1.5, 60)).round(2) + 0.01 for name in names}
    truth = mw.Table.from_frame(pa.table(values), schema)
    card = mw.CorrelatedNoise(names, sd_ratio=0.5, transform="log").card(truth)
    zeros = mw.Table.from_frame(
        pa.table({**values, "A": np.where(np.arange(60) < 5, 0.0, values["A"])}), schema
    )
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        logs = pair_logs(card, zeros, zeros, np.arange(60), np.arange(60))
        apart = pair_logs(card, zeros, zeros, np.arange(10, 15), np.arange(5))
    assert np.isfinite(logs).all()
    assert np.isneginf(apart).all()

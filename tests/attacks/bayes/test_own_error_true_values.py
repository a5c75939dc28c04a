"""An intruder whose own values are off and who holds a law of true values: by hand, by quadrature, in frequencies."""

from __future__ import annotations

import warnings
from dataclasses import replace
from itertools import permutations

import numpy as np
import pyarrow as pa
import pytest
from scipy.special import logsumexp
from scipy.stats import gamma, multivariate_normal, norm

import maskwell as mw
from maskwell.attacks.bayes.own_error.error_law import OwnError, own_terms
from maskwell.card import SwapParameters
from maskwell.errors import BadPlan
from maskwell.masking import Masking, Release, Setting
from maskwell.notes import Note, has_code
from maskwell.schema import Column, Schema
from maskwell.table import Table

from .test_frequencies import (
    COVARIANCE,
    ID,
    KEY,
    by_hand,
    clustered,
    in_bins,
    known_normal,
    many,
    posterior,
    release_of,
)
from .test_own_error import LETTERS

NOISE = mw.IndependentNoise(("A",), variance=0.5)


def told(truth, released, card):
    """A masking whose released record i is that of unit i."""
    ids = [f"r{i}" for i in range(len(truth))]
    links = pa.table({"truth_id": ids, "released_id": ids})
    return Masking.from_files(truth, released, links, card=card)


def believed(plan, masking, known):
    """What he gives to every released record for known records of his own."""
    from maskwell.attacks.attack_run import attack_by

    _, guess, _, _ = attack_by(plan, masking, known)
    rows, count = np.arange(len(guess)), len(masking.release.table)
    columns = [guess.figures["standing"](rows, np.full(len(rows), i)).probability for i in range(count)]
    return np.stack(columns, axis=1), guess


# --- the steward's own records ---------------------------------------------------------------------------------


def test_true_records_are_weighed_by_how_well_they_fit():
    """All of it by hand: g(y | x) of each true record, p(z | y), f(z), and the target's share taken out of it."""
    x, z = np.array([0.3, -1.0, 0.8, 2.0]), np.array([0.1, -0.4, 1.5, 0.9])
    masking, y = by_hand(x, z, NOISE), np.array([0.5, 3.0])
    known = masking.truth.take(np.array([0, 3])).with_columns(
        {"A": (masking.truth.schema["A"], y, np.zeros(2, np.uint8))}
    )
    found, guess = believed(mw.BayesIntruder(error=OwnError({"A": 0.7})), masking, known)
    own = norm.pdf(y[:, None], x, 0.7)
    forward = norm.pdf(z, x[:, None], np.sqrt(0.5))
    ratio = own / own.sum(axis=1, keepdims=True) @ forward / forward.mean(axis=0)
    weights = ratio * 3 / (4 - ratio)
    np.testing.assert_allclose(found, weights / weights.sum(axis=1, keepdims=True), rtol=1e-10)
    (note,) = [note for note in guess.notes if note.code == "attacks.weighed_by_truth"]
    share = own / own.sum(axis=1, keepdims=True)
    assert f"about {np.median(1 / (share**2).sum(axis=1)):.3g} (median" in str(note)


@pytest.mark.parametrize("released", [5, 3])
def test_no_error_is_the_limit_of_a_small_one_and_a_huge_one_says_nothing(released):
    x, z = (8.0, 11.0, 12.5, 20.0, 14.0), (9.5, 10.0, 15.0, 17.0, 13.0)[:released]
    masking = by_hand(x, z, mw.BiasNoise(("A",), bias_sd=0.1, sd=2.0))
    unaware = mw.BayesIntruder(response_knowledge=False)
    exact, absent = posterior(unaware, masking)
    nearly, missed = posterior(replace(unaware, error=OwnError({"A": 1e-6})), masking)
    np.testing.assert_allclose(nearly, exact, rtol=1e-9)
    np.testing.assert_allclose(missed, absent, rtol=1e-9)
    nothing, missed = posterior(replace(unaware, error=OwnError({"A": 1e9})), masking)
    np.testing.assert_allclose(nothing, 0.2, rtol=1e-6)
    np.testing.assert_allclose(missed, 1 - released / 5, rtol=1e-6, atol=1e-12)


def test_a_column_in_clear_leads_to_the_true_records_that_have_it():
    """A is in clear and known with an error, B is masked: only the true record with the same A can be a release's."""
    frame = {"ID": ["r0", "r1", "r2"], "A": [1.0, 2.0, 2.0], "B": [0.0, 1.0, 3.0]}
    schema = Schema(
        (Column("ID", "text", ID), Column("A", "continuous", KEY), Column("B", "continuous", KEY))
    )
    truth = Table.from_frame(pa.table(frame), schema)
    released = Table.from_frame(pa.table(frame | {"B": [0.2, 1.4, 2.1]}), schema)
    masking = told(
        truth, released, mw.IndependentNoise(("B",), variance=1.0).card(truth, Setting(exact=True))
    )
    known = truth.take(np.array([1])).with_columns(
        {
            "A": (schema["A"], np.array([1.7]), np.zeros(1, np.uint8)),
            "B": (schema["B"], np.array([0.6]), np.zeros(1, np.uint8)),
        }
    )
    found, _ = believed(
        mw.BayesIntruder(fields=("A", "B"), error=OwnError({"A": 0.5, "B": 1.0})), masking, known
    )
    own = norm.pdf(1.7, [1, 2, 2], 0.5) * norm.pdf(0.6, [0, 1, 3], 1.0)
    forward = norm.pdf([0.2, 1.4, 2.1], np.array([[0.0], [1.0], [3.0]]), 1.0)
    forward *= np.array([[1, 0, 0], [0, 1, 1], [0, 1, 1]])
    ratio = own / own.sum() @ forward / forward.mean(axis=0)
    weights = ratio * 2 / (3 - np.minimum(ratio, 3 * (1 - 1e-9)))
    np.testing.assert_allclose(found[0], weights / weights.sum(), rtol=1e-6)


def test_own_factors_are_those_of_the_error():
    schema = Schema((Column("A", "integer", missing=(-9,)), Column("B", "continuous")))
    known = Table.from_frame(pa.table({"A": [40, -9], "B": [1.0, 2.0]}), schema)
    true = Table.from_frame(pa.table({"A": [41, 40, -9], "B": [1.0, 2.0, 2.0]}), schema)
    terms = own_terms(OwnError({"A": 0.8}), ("A", "B"), known, true)
    found = [
        [sum(t.logs(np.array([i]), np.array([j]))[0] for t in terms) for j in range(3)] for i in range(2)
    ]
    chance = norm.cdf(-0.5 / 0.8) - norm.cdf(-1.5 / 0.8)
    np.testing.assert_allclose(np.exp(found), [[chance, 0, 0], [0, 0, 1]], rtol=1e-9)


def test_records_that_fit_no_true_one_are_weighed_without_any():
    """B is said to be exact and is nobody's: any true A is then as likely, and the note says for how many."""
    values = np.random.default_rng(3).normal(size=(20, 2))
    masking = mw.apply(mw.IndependentNoise(("A", "B"), variance=0.1), many(values, 20), seed=1, exact=True)
    status = np.zeros(20, np.uint8)
    other = masking.truth.with_columns({"B": (masking.truth.schema["B"], values[:, 1] + 1e-3, status)})
    plan = mw.BayesIntruder(error=OwnError({"A": 0.5}))
    found, guess = believed(plan, masking, other)
    assert Note("attacks.unknown_to_truth", {"count": 20}) in guess.notes
    a, b = masking.release.table.values(("A", "B")).T
    rough = norm.logpdf(a, values[:, :1], np.sqrt(0.35)) + norm.logpdf(b, values[:, 1:] + 1e-3, np.sqrt(0.1))
    truth = norm.logpdf(a, values[:, :1], np.sqrt(0.1)) + norm.logpdf(b, values[:, 1:], np.sqrt(0.1))
    ratio = np.exp(rough - logsumexp(truth, axis=0) + np.log(20))
    weights = ratio * 19 / (20 - np.minimum(ratio, 20 * (1 - 1e-9)))
    np.testing.assert_allclose(found, weights / weights.sum(axis=1, keepdims=True), rtol=1e-6)


def test_sums_that_vanish_are_bounded_from_below():
    """A target 80 sds from everything: no product of densities can be held, and he still has candidates."""
    masking = by_hand([0.0, 1.0, 90.0], [0.1, 0.9], mw.IndependentNoise(("A",), variance=0.01))
    chances, _ = posterior(mw.BayesIntruder(error=OwnError({"A": 0.01})), masking)
    assert np.isfinite(chances).all()
    assert (chances[:2].argmax(axis=1) == [0, 1]).all()


# --- does it come true? ----------------------------------------------------------------------------------------


def normal_population(table):
    return multivariate_normal([0, 0], COVARIANCE).logpdf(table.values(("A", "B")))


@pytest.fixture(scope="module")
def releases():
    """200 populations of 20 units with two normal amounts."""
    return many(np.random.default_rng(21).multivariate_normal([0, 0], COVARIANCE, 200 * 20), 20)


@pytest.mark.parametrize("variance", [0.02, 0.2])
@pytest.mark.parametrize("sds", [{"A": 0.5}, {"A": 0.5, "B": 0.5}, {"A": 0.1, "B": 2.0}])
@pytest.mark.parametrize("fraction", [1.0, 0.5])
def test_probabilities_come_true_of_who_fits_a_normal_law(releases, variance, sds, fraction):
    """In every bin within 4 standard errors, clustered by release: errors of half an sd, small and large ones."""
    noise = mw.IndependentNoise(("A", "B"), variance=variance)
    mask = noise if fraction == 1 else mw.Chain((noise, mw.Subsample(fraction)))
    masking = mw.apply(mask, releases, seed=22, exact=True)
    plan = mw.BayesIntruder(marginal="gaussian", error=OwnError(sds), response_knowledge=False)
    belief = mw.attack(plan, masking).belief
    assert_comes_true(belief, release_of(masking))
    if fraction < 1:
        gaps = (belief.standing.better < 0) - belief.not_released
        assert abs(clustered(gaps, release_of(masking))) < 4


@pytest.mark.parametrize("released", [4, 2])
def test_the_posterior_is_that_of_all_matchings_enumerated(released):
    """Four units of a known population, a target known with an error: every way in which records belong to units."""
    z, y = np.array([0.1, -0.4, 1.5, 0.9])[:released], 0.6
    masking = by_hand([0.3, -1.0, 0.8, 2.0], z, NOISE)
    status = np.zeros(1, np.uint8)
    known = masking.truth.take(np.array([0])).with_columns(
        {"A": (masking.truth.schema["A"], np.array([y]), status)}
    )
    error = OwnError({"A": 0.7}, population=lambda x: norm.logpdf(x.floats("A")))
    plan = mw.BayesIntruder(marginal=lambda t: norm.logpdf(t.floats("A"), 0, np.sqrt(1.5)), error=error)
    found, guess = believed(plan, masking, known)
    gain = 1 / 1.49
    own, other = norm.pdf(z, gain * y, np.sqrt(0.5 + 0.49 * gain)), norm.pdf(z, 0, np.sqrt(1.5))
    weights = np.zeros(released + 1)
    for owners in permutations(range(4), released):
        densities = [own[i] if unit == 0 else other[i] for i, unit in enumerate(owners)]
        weights[owners.index(0) if 0 in owners else released] += np.prod(densities)
    expected = weights / weights.sum()
    np.testing.assert_allclose(found[0], expected[:released], rtol=1e-5)
    assert guess.columns.get("not_released", np.zeros(1))[0] == pytest.approx(expected[released], rel=1e-5)


def assert_comes_true(belief, release):
    gaps = in_bins(belief.probability, belief.share, release)
    assert len(gaps) >= 3
    assert max(map(abs, gaps)) < 4
    assert abs(clustered(belief.share - belief.probability, release)) < 4


@pytest.mark.parametrize("sds", [{"A": 0.5}, {"A": 0.5, "B": 0.5}])
def test_probabilities_come_true_of_who_knows_the_population(releases, sds):
    """And without a population of his own, as if any true value were as likely, he is too sure by far."""
    few = releases.take(np.arange(4000 if len(sds) == 1 else 1400))
    masking = mw.apply(mw.IndependentNoise(("A", "B"), variance=0.2), few, seed=23, exact=True)
    plans = [
        mw.BayesIntruder(marginal=known_normal(0.2), error=OwnError(sds, population=p))
        for p in (normal_population, None)
    ]
    knows, guesses = (mw.attack(plan, masking) for plan in plans)
    assert_comes_true(knows.belief, release_of(masking))
    assert clustered(guesses.belief.share - guesses.belief.probability, release_of(masking)) < -4
    assert has_code(guesses.notes, "attacks.true_values_flat")
    assert has_code(knows.notes, "attacks.true_values_given")


def test_probabilities_come_true_under_clamped_noise_that_grows_with_the_value():
    """Skewed amounts, bias and noise, clamped, rounded to whole numbers: the population's law is known."""
    rng, shape, scale = np.random.default_rng(24), 6.0, 10.0
    table = many(rng.gamma(shape, scale, (100 * 20, 1)), 20)
    mask = mw.BiasNoise(("A",), bias_sd=0.15, sd=6.0, limits=(("A", 20.0, 110.0),))
    masking = mw.apply(mask, table, seed=25, exact=True)
    (law,) = masking.card.laws
    nodes = gamma.ppf((np.arange(300) + 0.5) / 300, shape, scale=scale)

    def marginal(released):
        z, where = np.unique(released.floats("A"), return_inverse=True)
        i, j = np.divmod(np.arange(len(z) * len(nodes)), len(nodes))
        logs = law.logpdf(z[i][:, None], nodes[j][:, None]).reshape(len(z), -1)
        return (logsumexp(logs, axis=1) - np.log(len(nodes)))[where]

    def population(true):
        with np.errstate(divide="ignore"):
            return gamma.logpdf(true.floats("A"), shape, scale=scale)

    plan = mw.BayesIntruder(marginal=marginal, error=OwnError({"A": 12.0}, population=population))
    risk = mw.attack(plan, masking)
    assert abs(clustered(risk.belief.share - risk.belief.probability, release_of(masking))) < 4
    gaps = in_bins(risk.belief.probability, risk.belief.share, release_of(masking))
    assert gaps
    assert max(map(abs, gaps)) < 4
    z = masking.release.table.floats("A")
    assert ((z == 20) | (z == 110)).mean() > 0.03


def test_probabilities_come_true_where_categories_are_wrong():
    """A category with noise and a share of wrong ones, beside an amount: both laws known."""
    rng, shares = np.random.default_rng(26), np.array([0.7, 0.2, 0.1])
    values, codes = rng.normal(size=(150 * 20, 1)), rng.choice(3, 150 * 20, p=shares)
    table = many(values, 20)
    schema = Schema((*table.schema.columns, Column("C", "category", KEY, categories=LETTERS)))
    table = Table.from_frame(table.data.append_column("C", pa.array(np.array(LETTERS)[codes])), schema)
    mask = mw.Chain((mw.IndependentNoise(("A",), variance=0.1), mw.Pram(("C",), stay=0.8)))
    masking = mw.apply(mask, table, seed=27, exact=True)
    law = next(law for law in masking.card.laws if law.columns == ("C",))
    seen = np.log(shares @ np.array(law.matrix))

    def marginal(z):
        return norm.logpdf(z.floats("A"), 0, np.sqrt(1.1)) + seen[z.floats("C").astype(int)]

    def population(x):
        return norm.logpdf(x.floats("A")) + np.log(shares)[x.floats("C").astype(int)]

    error = OwnError({"A": 0.4}, {"C": 0.4}, population=population)
    belief = mw.attack(mw.BayesIntruder(marginal=marginal, error=error), masking).belief
    assert_comes_true(belief, release_of(masking))


def test_the_truth_of_the_steward_is_far_less_too_sure_than_no_law_at_all(releases):
    masking = mw.apply(mw.IndependentNoise(("A", "B"), variance=0.2), releases, seed=28, exact=True)
    error = OwnError({"A": 0.5, "B": 0.5})
    truth, nothing = (
        mw.attack(mw.BayesIntruder(error=error, **options), masking).belief
        for options in ({}, {"marginal": known_normal(0.2)})
    )
    gaps = [(belief.probability - belief.share).mean() for belief in (truth, nothing)]
    assert 0 < gaps[0] < gaps[1] / 3
    assert clustered(truth.share - nothing.share, release_of(masking)) > 4


def test_a_block_too_large_for_all_its_pairs_is_refused(monkeypatch):
    monkeypatch.setattr("maskwell.attacks.bayes.own_error.true_value_law.KEPT_PAIRS", 15)
    masking = by_hand([0.0, 1.0, 2.0, 3.0], [0.1, 1.2, 2.0, 2.5], NOISE)
    with pytest.raises(BadPlan, match="4 targets whose values are off, in a block of 4 true records"):
        mw.attack(mw.BayesIntruder(error=OwnError({"A": 1.0})), masking)
    assert mw.attack(mw.BayesIntruder(marginal="gaussian", error=OwnError({"A": 1.0})), masking).rate >= 0


@pytest.mark.parametrize("marginal", ["truth", "gaussian", lambda released: np.zeros(len(released))])
def test_all_kinds_of_columns_and_statuses_have_a_posterior(make_people, marginal):
    """Amounts with codes and missing values, whole numbers, categories masked and in clear, a sample."""
    amounts = mw.CorrelatedNoise(("INCOME", "TAX", "AGE"), sd_ratio=0.6)
    mask = mw.Chain((amounts, mw.Pram(("EDU",), stay=0.8), mw.Subsample(0.7)))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", mw.MaskwellWarning)
        masking = mw.apply(mask, make_people(80), seed=2)
    population = (lambda table: np.zeros(len(table))) if callable(marginal) else None
    error = OwnError({"INCOME": 2000.0, "AGE": 2.0}, {"EDU": 0.2, "SEX": 0.1}, population=population)
    plan = mw.BayesIntruder(marginal=marginal, error=error, response_knowledge=False)
    chances, absent = posterior(plan, masking)
    total = chances.sum(axis=1)
    linked = total > 0
    assert linked.sum() > 60
    np.testing.assert_allclose((total + absent)[linked], 1.0, rtol=1e-9)


def test_exchanged_records_are_somebody_elses_in_part():
    """A share of records carries A of another of its block: p(z | y) mixes with f(z), all by hand."""
    x, z, share = np.array([0.3, -1.0, 0.8, 2.0]), np.array([0.1, -0.4, 1.5, 0.9]), 0.3
    masking = by_hand(x, z, NOISE)
    card = replace(masking.release.card, swapped=SwapParameters(share, ("A",), ()))
    swapped = replace(masking, given=(Release(masking.release.table, card), masking.order))
    status = np.zeros(4, np.uint8)
    known = masking.truth.with_columns({"A": (masking.truth.schema["A"], x + 0.2, status)})
    found, _ = believed(mw.BayesIntruder(error=OwnError({"A": 0.7})), swapped, known)
    own = norm.pdf(x[:, None] + 0.2, x, 0.7)
    plain = norm.pdf(z, x[:, None], np.sqrt(0.5))
    forward = (1 - share) * plain + share * plain.mean(axis=0)
    ratio = own / own.sum(axis=1, keepdims=True) @ forward / forward.mean(axis=0)
    weights = ratio * 3 / (4 - ratio)
    np.testing.assert_allclose(found, weights / weights.sum(axis=1, keepdims=True), rtol=1e-10)
    normal, _ = believed(mw.BayesIntruder(marginal="gaussian", error=OwnError({"A": 0.7})), swapped, known)
    np.testing.assert_allclose(normal.sum(axis=1), 1.0, rtol=1e-9)


# --- what is refused -------------------------------------------------------------------------------------------


def test_a_population_goes_with_an_f_of_ones_own():
    masking = by_hand([0.0, 1.0], [0.1, 1.2], NOISE)
    with pytest.raises(BadPlan, match="give marginal a function too"):
        mw.attack(mw.BayesIntruder(error=OwnError({"A": 1.0}, population=normal_population)), masking)
    with pytest.raises(BadPlan, match="population is a function"):
        OwnError({"A": 1.0}, population="normal")
    plan = mw.BayesIntruder(
        marginal=lambda z: np.zeros(len(z)), error=OwnError({"A": 1.0}, population=lambda x: np.zeros(3))
    )
    with pytest.raises(BadPlan, match="one log density for each true record"):
        mw.attack(plan, masking)
    assert plan.error.to_dict() == {"sds": {"A": 1.0}, "population": "a function of the user's own"}


def test_more_amounts_than_nodes_can_do_are_refused():
    values = np.random.default_rng(1).normal(size=(8, 4))
    masking = mw.apply(mw.IndependentNoise(tuple("ABCD"), variance=0.1), many(values, 8), seed=1)
    error = OwnError(dict.fromkeys("ABCD", 0.5), population=lambda x: np.zeros(len(x)))
    with pytest.raises(BadPlan, match="4 amounts are known with an error"):
        mw.attack(mw.BayesIntruder(marginal=lambda z: np.zeros(len(z)), error=error), masking)
    assert (
        mw.attack(
            mw.BayesIntruder(marginal="gaussian", error=OwnError(dict.fromkeys("ABCD", 0.5))), masking
        ).rate
        >= 0
    )


def test_a_category_that_nobody_has_is_allowed():
    """The release leaves it out of its schema; his wrong ones may still be that one."""
    schema = Schema(
        (
            Column("ID", "text", ID),
            Column("A", "continuous", KEY),
            Column("C", "category", KEY, categories=(*LETTERS, "d")),
        )
    )
    frame = {
        "ID": [f"r{i}" for i in range(60)],
        "A": np.random.default_rng(1).normal(size=60),
        "C": list("abc") * 20,
    }
    masking = mw.apply(
        mw.IndependentNoise(("A",), variance=0.2), Table.from_frame(pa.table(frame), schema), seed=1
    )
    assert masking.release.table.schema["C"].categories == LETTERS
    for options in ({}, {"kernel": "forward"}, {"marginal": "gaussian"}):
        risk = mw.attack(mw.BayesIntruder(error=OwnError(wrong={"C": 0.5}), **options), masking)
        assert risk.rate > 1 / 60

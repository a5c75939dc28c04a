"""Do probabilities come true? Over many simulated releases whose population law the intruder knows, and by hand.

A block with a population and noise of its own is a release of its own: many of them are attacked at once.
"""

from __future__ import annotations

import warnings
from itertools import permutations

import numpy as np
import pyarrow as pa
import pytest
from scipy.special import logsumexp
from scipy.stats import multivariate_normal, norm

import maskwell as mw
from maskwell.attacks.attack_run import attack_by
from maskwell.masking import Masking, Setting
from maskwell.schema import Column, Schema
from maskwell.table import Table

KEY, ID, BLOCK = frozenset({"key"}), frozenset({"id"}), frozenset({"block"})
EDGES = np.array([0.0, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 0.9, 0.97, 1.0])
COVARIANCE = np.array([[1.0, 0.5], [0.5, 1.0]])
MEAN, SD = 86.1, 22.0  # Trottini's DATA2
KERNELS = ("coherent", "forward", "paper", "fms")


def many(values, units):
    """A table of amounts A, B ... whose blocks of so many units are independent populations."""
    names = "ABCD"[: values.shape[1]]
    count = len(values)
    blocks = [f"b{i}" for i in range(count // units)]
    frame = {"ID": [f"r{i}" for i in range(count)], "R": np.repeat(blocks, units)}
    columns = [Column("ID", "text", ID), Column("R", "category", BLOCK, categories=tuple(blocks))]
    columns += [Column(name, "continuous", KEY) for name in names]
    return Table.from_frame(pa.table(frame | dict(zip(names, values.T, strict=True))), Schema(tuple(columns)))


def clustered(gaps, release):
    """The sum of gaps in standard errors, releases being independent and what happens within one not."""
    sums = np.bincount(release, weights=gaps)
    return sums.sum() / np.sqrt((sums**2).sum())


def in_bins(said, right, release):
    """The gaps between what is said and what comes true in bins of what is said, in standard errors."""
    place = np.searchsorted(EDGES, said, side="right")
    bins = [place == i for i in np.unique(place)]
    return [
        clustered((right - said)[one], release[one])
        for one in bins
        if (said * (1 - said))[one].sum() > 20 and len(np.unique(release[one])) > 30
    ]


def release_of(masking):
    """The number of the release of each target."""
    return np.unique(np.asarray(masking.truth.array("R")), return_inverse=True)[1]


def second_chance(risk, masking):
    """What he gives to his second link, and whether that one is right."""
    table = risk.table
    ratio = np.exp(np.asarray(table["second_score"]) - np.asarray(table["score"]))
    names = np.asarray(masking.truth.ids)[masking.order]
    true = dict(zip(np.asarray(masking.release.table.ids), names, strict=True))
    right = [
        true.get(s) == t
        for s, t in zip(table["second_id"].to_pylist(), table["target_id"].to_pylist(), strict=True)
    ]
    return np.asarray(table["probability"]) * ratio, np.array(right, float)


@pytest.fixture(scope="module")
def amounts():
    """300 populations of 24 units with two normal amounts."""
    values = np.random.default_rng(11).multivariate_normal([0, 0], COVARIANCE, 300 * 24)
    return many(values, 24)


def known_normal(variance):
    """log f(z) of an intruder who knows the population's law."""
    law = multivariate_normal([0, 0], COVARIANCE + variance * np.eye(2))
    return lambda released: law.logpdf(released.values(("A", "B")))


@pytest.mark.parametrize("variance", [0.02, 0.2, 1.0])
@pytest.mark.parametrize("fraction", [1.0, 0.5])
def test_coherent_probabilities_come_true(amounts, variance, fraction):
    """Of the best link, the second one and of not being released, in every bin, within 4 standard errors."""
    noise = mw.IndependentNoise(("A", "B"), variance=variance)
    mask = noise if fraction == 1 else mw.Chain((noise, mw.Subsample(fraction)))
    masking = mw.apply(mask, amounts, seed=12, exact=True)
    plan = mw.BayesIntruder(marginal=known_normal(variance), response_knowledge=False)
    risk = mw.attack(plan, masking)
    belief, release = risk.belief, release_of(masking)
    pairs = [(belief.probability, belief.share), second_chance(risk, masking)]
    if fraction < 1:
        pairs.append((belief.not_released, (belief.standing.better < 0) * 1.0))
    for said, right in pairs:
        there = ~np.isnan(said)
        gaps = in_bins(said[there], right[there], release[there])
        assert gaps
        assert max(map(abs, gaps)) < 4
        assert abs(clustered((right - said)[there], release[there])) < 4


def test_probabilities_of_a_normal_law_fitted_to_the_release_come_true_too(amounts):
    """Who fits a normal law to 7,200 released records knows the population well enough."""
    masking = mw.apply(mw.IndependentNoise(("A", "B"), variance=0.2), amounts, seed=13, exact=True)
    belief = mw.attack(mw.BayesIntruder(marginal="gaussian"), masking).belief
    gaps = in_bins(belief.probability, belief.share, release_of(masking))
    assert len(gaps) >= 4
    assert max(map(abs, gaps)) < 4


def test_the_truth_of_the_steward_is_an_upper_bound(amounts):
    """With his f(z) more links are right than with the population's own law: by more than 4 standard errors."""
    masking = mw.apply(mw.IndependentNoise(("A", "B"), variance=0.02), amounts, seed=14, exact=True)
    plans = [mw.BayesIntruder(), mw.BayesIntruder(marginal=known_normal(0.02))]
    steward, outsider = (mw.attack(plan, masking).belief.share for plan in plans)
    assert clustered(steward - outsider, release_of(masking)) > 4


LETTERS = ("a", "b", "c")


def clamped_and_coded(amount, letter, units):
    """A table of populations with an amount between 0 and 1 and a category."""
    table = many(np.asarray(amount, float)[:, None], units)
    schema = Schema((*table.schema.columns, Column("C", "category", KEY, categories=LETTERS)))
    return Table.from_frame(table.data.append_column("C", pa.array(np.array(LETTERS)[letter])), schema)


def known_by_card(card, population, weights):
    """log f(z) by the card's own density over the nodes of a population, once for each released record that differs."""

    def log_f(released):
        both = np.stack(
            [released.values(("A",))[:, 0], np.unique(released.array("C"), return_inverse=True)[1]]
        )
        _, first, which = np.unique(both, axis=1, return_index=True, return_inverse=True)
        z, x = np.divmod(np.arange(len(first) * len(population)), len(population))
        logs = card.logpdf(released.take(first[z]), population.take(x)).reshape(len(first), -1)
        return logsumexp(logs + np.log(weights), axis=1)[which]

    return log_f


def test_probabilities_of_clamped_amounts_and_categories_come_true():
    """Uniform amounts clamped to 0 and 1, categories changed at random: densities, masses and ties together.

    The forward kernel, which cannot compare a density with a mass, is too sure of itself.
    """
    rng, shares = np.random.default_rng(16), np.array([0.6, 0.3, 0.1])
    count = 500 * 20
    table = clamped_and_coded(rng.random(count), rng.choice(3, count, p=shares), 20)
    noise = mw.IndependentNoise(("A",), variance=0.05, limits=(("A", 0.0, 1.0),))
    masking = mw.apply(mw.Chain((noise, mw.Pram(("C",), stay=0.6))), table, seed=17, exact=True)
    nodes, weights = np.polynomial.legendre.leggauss(24)
    population = clamped_and_coded(np.tile((nodes + 1) / 2, 3), np.repeat(range(3), 24), 72)
    known = known_by_card(masking.card, population, np.outer(shares, weights / 2).ravel())
    risk = mw.attack(mw.BayesIntruder(marginal=known), masking)
    belief, z = risk.belief, masking.release.table.values(("A",))
    assert ((z == 0) | (z == 1)).mean() > 0.1
    assert (np.asarray(risk.table["ties"]) > 1).mean() > 0.05
    gaps = in_bins(belief.probability, belief.share, release_of(masking))
    assert len(gaps) >= 3
    assert max(map(abs, gaps)) < 4
    forward = mw.attack(mw.BayesIntruder(kernel="forward"), masking).belief
    assert clustered(forward.share - forward.probability, release_of(masking)) < -4


def known_bias(bias_sd, sd):
    """log f(z) of bias and noise over a normal population, by Gauss-Hermite quadrature with 201 nodes."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(201)
    x = MEAN + SD * nodes
    spread = np.hypot(sd, bias_sd * x)

    def log_f(released):
        z = released.values(("A",))
        return np.log(norm.pdf(z, x, spread) @ (weights / weights.sum()))

    return log_f


@pytest.fixture(scope="module")
def heavy():
    """What each kernel's intruder believes of 500 releases of 25 records under heavy bias and noise."""
    values = np.random.default_rng(15).normal(MEAN, SD, (500 * 25, 1))
    masking = mw.apply(mw.BiasNoise(("A",), bias_sd=0.3, sd=44.0), many(values, 25), seed=15, exact=True)
    marginals = {"coherent": known_bias(0.3, 44.0)}
    plans = [mw.BayesIntruder(kernel=kernel, marginal=marginals.get(kernel, "truth")) for kernel in KERNELS]
    beliefs = [mw.attack(plan, masking).belief for plan in plans]
    return dict(zip(KERNELS, beliefs, strict=True)), release_of(masking)


def test_coherent_comes_true_under_heavy_bias_and_noise(heavy):
    beliefs, release = heavy
    belief = beliefs["coherent"]
    assert abs(clustered(belief.share - belief.probability, release)) < 4
    assert max(map(abs, in_bins(belief.probability, belief.share, release))) < 4
    assert belief.calibration.sentence.startswith("as sure as he should be")


@pytest.mark.parametrize("kernel", KERNELS[1:])
def test_the_other_kernels_are_too_sure_under_heavy_masking(heavy, kernel):
    """They say 6% where 5% come true, and find fewer than the coherent one: each by more than 4 standard errors."""
    beliefs, release = heavy
    belief = beliefs[kernel]
    assert clustered(belief.share - belief.probability, release) < -4
    assert belief.calibration.sentence.startswith("too sure: says 6")
    assert clustered(beliefs["coherent"].share - belief.share, release) > 4


def by_hand(x, z, mask):
    """A masking of one amount: released record i is that of unit i, later units were not released."""
    schema = Schema((Column("ID", "text", ID), Column("A", "continuous", KEY)))
    truth_ids, released_ids = [f"t{i}" for i in range(len(x))], [f"r{i}" for i in range(len(z))]
    truth = Table.from_frame(pa.table({"ID": truth_ids, "A": np.asarray(x, float)}), schema)
    released = Table.from_frame(pa.table({"ID": released_ids, "A": np.asarray(z, float)}), schema)
    links = pa.table({"truth_id": truth_ids[: len(z)], "released_id": released_ids})
    return Masking.from_files(truth, released, links, card=mask.card(truth, Setting(exact=True)))


def posterior(plan, masking):
    """Searchers x candidates: what he gives to every candidate, and to there being none."""
    _, guess, _, _ = attack_by(plan, masking)
    rows = np.arange(len(guess))
    candidates = len(masking.release.table) if guess.to_masked else len(masking.truth)
    columns = [guess.figures["standing"](rows, np.full(len(rows), i)).probability for i in range(candidates)]
    return np.stack(columns, axis=1), guess.columns.get("not_released", np.zeros(len(rows)))


BIAS = mw.BiasNoise(("A",), bias_sd=0.1, sd=2.0)
X, Z = (8.0, 11.0, 12.5, 20.0, 14.0), (9.5, 10.0, 15.0, 17.0)


@pytest.mark.parametrize("kernel", KERNELS)
def test_records_that_are_alike_are_equally_likely(kernel):
    masking = by_hand(X, [12.0] * 5, BIAS)
    belief = mw.attack(mw.BayesIntruder(kernel=kernel), masking).belief
    np.testing.assert_allclose(belief.probability, 0.2, rtol=1e-12)
    np.testing.assert_allclose(belief.share, 0.2, rtol=1e-12)
    np.testing.assert_allclose(belief.places[:5], 1.0, rtol=1e-12)
    np.testing.assert_allclose(posterior(mw.BayesIntruder(kernel=kernel), masking)[0], 0.2, rtol=1e-12)


def test_units_that_are_alike_say_nothing():
    """All true records are the same: the steward's f(z) is f(z|x), and every released record equally likely."""
    masking = by_hand([12.0] * 5, X, BIAS)
    np.testing.assert_allclose(posterior(mw.BayesIntruder(), masking)[0], 0.2, rtol=1e-12)


PLANS = [
    *({"kernel": kernel} for kernel in KERNELS),
    {"marginal": "gaussian"},
    {"marginal": lambda released: norm.logpdf(released.values(("A",))[:, 0], 13, 6)},
    {"direction": "to_original"},
    {"direction": "to_original", "kernel": "forward"},
]


@pytest.mark.parametrize("options", PLANS)
@pytest.mark.parametrize("released", [5, 4])
def test_the_posterior_sums_to_one(options, released):
    plan = mw.BayesIntruder(**options, response_knowledge=False)
    chances, absent = posterior(plan, by_hand(X, (*Z, 13.0)[:released], BIAS))
    assert (chances > 0).all()
    np.testing.assert_allclose(chances.sum(axis=1) + absent, 1.0, rtol=1e-10)
    if plan.to_masked and plan.kernel != "forward":
        assert (absent > 0).all() == (released < 5)


def test_the_posterior_sums_to_one_with_codes_categories_and_blocks(make_people):
    amounts = mw.CorrelatedNoise(("INCOME", "TAX", "AGE"), sd_ratio=0.6)
    mask = mw.Chain((amounts, mw.Pram(("EDU",), stay=0.8), mw.Subsample(0.7)))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", mw.MaskwellWarning)
        masking = mw.apply(mask, make_people(80), seed=2)
    for options in ({}, {"kernel": "forward"}, {"marginal": "gaussian"}):
        chances, absent = posterior(mw.BayesIntruder(**options, response_knowledge=False), masking)
        total = chances.sum(axis=1)
        linked = total > 0
        assert linked.sum() > 60
        np.testing.assert_allclose((total + absent)[linked], 1.0, rtol=1e-9)


@pytest.mark.parametrize("options", [*PLANS[:5], *PLANS[6:]])
@pytest.mark.parametrize("scale", [1e-6, 12.5, 1e9])
def test_another_unit_changes_no_probability(options, scale):
    masking = by_hand(X, Z, BIAS)
    other = by_hand(
        scale * np.array(X), scale * np.array(Z), mw.BiasNoise(("A",), bias_sd=0.1, sd=2.0 * scale)
    )
    plan = mw.BayesIntruder(**options, response_knowledge=False)
    for one, two in zip(posterior(plan, masking), posterior(plan, other), strict=True):
        np.testing.assert_allclose(one, two, rtol=1e-8)


@pytest.mark.parametrize("options", [{}, {"kernel": "forward"}, {"marginal": "gaussian"}])
def test_another_zero_changes_no_probability_under_additive_noise(options):
    noise = mw.IndependentNoise(("A",), variance=4.0)
    plan = mw.BayesIntruder(**options)
    one = posterior(plan, by_hand(X, Z, noise))[0]
    two = posterior(plan, by_hand(1000 + np.array(X), 1000 + np.array(Z), noise))[0]
    np.testing.assert_allclose(one, two, rtol=1e-8)


@pytest.mark.parametrize("released", [4, 2])
def test_the_posterior_is_that_of_all_matchings_enumerated(released):
    """Four units of a known population, some released: every way in which records belong to units, weighed."""
    x, z = np.array([0.3, -1.0, 0.8, 2.0]), np.array([0.1, -0.4, 1.5, 0.9])[:released]
    masking = by_hand(x, z, mw.IndependentNoise(("A",), variance=0.5))

    def log_f(table):
        return norm.logpdf(table.values(("A",))[:, 0], 0.0, np.sqrt(1.5))

    chances, absent = posterior(mw.BayesIntruder(marginal=log_f, response_knowledge=False), masking)
    for target, value in enumerate(x):
        weights = np.zeros(released + 1)
        for owners in permutations(range(4), released):
            densities = [
                norm.pdf(z[i], value, np.sqrt(0.5)) if unit == 0 else norm.pdf(z[i], 0, np.sqrt(1.5))
                for i, unit in enumerate(owners)
            ]
            weights[owners.index(0) if 0 in owners else released] += np.prod(densities)
        expected = weights / weights.sum()
        np.testing.assert_allclose(chances[target], expected[:released], rtol=1e-10)
        np.testing.assert_allclose(absent[target], expected[released], rtol=1e-10, atol=1e-300)


def test_one_record_of_one_unit_is_his():
    masking = by_hand([3.0], [4.0], mw.BiasNoise(("A",), bias_sd=0.1, sd=2.0))
    for kernel in KERNELS:
        chances, absent = posterior(mw.BayesIntruder(kernel=kernel), masking)
        np.testing.assert_allclose(chances, [[1.0]], rtol=1e-12)
        assert absent == [0.0]

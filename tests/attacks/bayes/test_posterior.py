"""The intruder who knows the law against plain numpy on the card's own density, and by hand."""

from __future__ import annotations

import warnings
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from scipy.optimize import linear_sum_assignment
from scipy.spatial import cKDTree
from scipy.special import logsumexp
from scipy.stats import norm

import maskwell as mw
from maskwell.attacks.attack_run import attack_by
from maskwell.card import SwapParameters
from maskwell.errors import BadInput, BadPlan, NoLaw
from maskwell.masking import Masking, Release
from maskwell.schema import Column, Schema
from maskwell.table import Table

AMOUNTS = ("INCOME", "TAX", "AGE")
KEY, ID = frozenset({"key"}), frozenset({"id"})
MASK = mw.Chain((mw.CorrelatedNoise(AMOUNTS, sd_ratio=0.6), mw.Pram(("EDU",), stay=0.8)))


def masked(mask, table, **rest):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", mw.MaskwellWarning)
        return mw.apply(mask, table, seed=5, **rest)


@pytest.fixture(scope="module")
def masking(make_people):
    return masked(MASK, make_people(120))


def same_in(masking, columns):
    """Known x released: which pairs are the same in some columns that left in clear."""
    truth, released = masking.truth, masking.release.table
    same = np.ones((len(truth), len(released)), bool)
    for name in columns:
        same &= np.asarray(truth.array(name))[:, None] == np.asarray(released.array(name))
    return same


def law(masking, card=None):
    """Known x released: log p(z | x) by the card, from two tables with every pair laid side by side."""
    truth, released = masking.truth, masking.release.table
    x, z = np.divmod(np.arange(len(truth) * len(released)), len(released))
    card = replace(card or masking.release.card, swapped=None)
    return card.logpdf(released.take(z), truth.take(x)).reshape(len(truth), len(released))


@pytest.fixture(scope="module")
def expected(masking):
    """Known x released: log f(z|x) and log f(z|x) - log f(z), in blocks of REGION, with SEX in clear."""
    block = same_in(masking, ["REGION"])
    logs = np.where(block & same_in(masking, ["SEX"]), law(masking), -np.inf)
    return logs, logs - logsumexp(logs, axis=0) + np.log(block.sum(axis=0))


def against_others(scores, count):
    """f(z|x) over the mean of f(z|x') over the other true records x' of the block."""
    ratio = np.exp(scores)
    return ratio * (count - 1) / np.maximum(count - ratio, 1e-12 * count)


def test_the_best_release_is_that_of_plain_numpy(masking, expected):
    _, scores = expected
    risk, guess, _, _ = attack_by(mw.BayesIntruder(), masking)
    np.testing.assert_array_equal(guess.found, scores.argmax(axis=1))
    np.testing.assert_allclose(guess.score, scores.max(axis=1), rtol=1e-10, atol=1e-10)
    weights = against_others(scores, same_in(masking, ["REGION"]).sum(axis=0))
    posterior = weights.max(axis=1) / weights.sum(axis=1)
    np.testing.assert_allclose(risk.table["probability"], posterior, rtol=1e-8)
    np.testing.assert_array_equal(guess.candidates, same_in(masking, ["REGION"]).sum(axis=1))
    assert risk.fields == (*AMOUNTS, "EDU", "SEX")
    assert np.isneginf(scores).any()


def test_the_best_original_is_that_of_plain_numpy(masking, expected):
    logs, scores = expected
    risk, guess, _, _ = attack_by(mw.BayesIntruder(direction="to_original"), masking)
    np.testing.assert_array_equal(guess.found, logs.argmax(axis=0))
    np.testing.assert_allclose(guess.score, scores.max(axis=0), rtol=1e-10, atol=1e-10)
    posterior = np.exp(logs.max(axis=0) - logsumexp(logs, axis=0))
    np.testing.assert_allclose(risk.table["probability"], posterior, rtol=1e-10)


def test_one_to_one_is_the_assignment_of_largest_sum(masking, expected):
    _, scores = expected
    _, guess, _, _ = attack_by(mw.BayesIntruder(assignment="one-to-one"), masking)
    rows, columns = linear_sum_assignment(np.where(np.isfinite(scores), scores, -1e7), maximize=True)
    assert np.isfinite(scores[rows, columns]).all()
    linked = np.arange(len(rows))
    np.testing.assert_allclose(scores[linked, guess.found].sum(), scores[rows, columns].sum(), rtol=1e-10)
    assert len(np.unique(guess.found)) == len(rows)


def test_both_directions_of_one_to_one_are_the_same_links(masking):
    one = attack_by(mw.BayesIntruder(assignment="one-to-one"), masking)[1]
    two = attack_by(mw.BayesIntruder(assignment="one-to-one", direction="to_original"), masking)[1]
    np.testing.assert_array_equal(two.found[one.found], np.arange(len(one)))


def test_small_batches_give_the_same_answer(masking, monkeypatch):
    plans = [mw.BayesIntruder(), mw.BayesIntruder(direction="to_original", assignment="one-to-one")]
    whole = [mw.attack(plan, masking).table for plan in plans]
    for module in ("candidate_scores", "bayes.posterior_odds"):
        monkeypatch.setattr(f"maskwell.attacks.{module}.PAIRS_AT_ONCE", 300)
    for plan, table in zip(plans, whole, strict=True):
        again = mw.attack(plan, masking).table
        for name in ("linked_id", "ties", "correct"):
            assert again[name] == table[name]
        np.testing.assert_allclose(again["score"], table["score"], rtol=1e-12)


def test_some_targets_meet_the_same_f_of_z(masking, expected):
    """f(z) is over all true records of the block, whoever the targets are."""
    some = np.arange(0, 120, 7)
    _, scores = expected
    risk = mw.attack(mw.BayesIntruder(), masking, targets=masking.truth.take(some))
    np.testing.assert_allclose(risk.table["score"], scores[some].max(axis=1), rtol=1e-10, atol=1e-10)
    back = mw.attack(mw.BayesIntruder(direction="to_original"), masking, targets=masking.truth.take(some))
    best = scores[some].max(axis=0)
    block = same_in(masking, ["REGION"]).sum(axis=0)
    linked = np.isfinite(best)
    np.testing.assert_allclose(
        np.asarray(back.table["probability"].to_pylist(), float)[linked],
        (np.exp(best) / block)[linked],
        rtol=1e-9,
    )
    assert back.class_of("no candidate").links == (~linked).sum()


def test_units_that_were_not_released_take_their_share(make_people):
    table = make_people(120)
    masking = masked(mw.Chain((MASK, mw.Subsample(0.5))), table)
    block = same_in(masking, ["REGION"])
    logs = np.where(block & same_in(masking, ["SEX"]), law(masking), -np.inf)
    scores = (
        logs - logsumexp(logs, axis=0) + np.log(block.sum(axis=0))
    )  # in the truth: who was not released too
    region = np.asarray(table.array("REGION"))
    absent = (region[:, None] == region).sum(axis=1) - block.sum(axis=1)
    weights = against_others(scores, (region[:, None] == region).sum(axis=0)[masking.order])
    posterior = weights.max(axis=1) / (weights.sum(axis=1) + absent)
    risk = mw.attack(mw.BayesIntruder(response_knowledge=False), masking)
    ours = np.asarray(risk.table["probability"].to_pylist(), float)
    linked = weights.max(axis=1) > 0
    np.testing.assert_allclose(ours[linked], posterior[linked], rtol=1e-8)
    assert np.isnan(ours[~linked]).all()


def test_swapped_records_may_carry_the_values_of_anybody_in_their_block(masking):
    share, moved = 0.3, (*AMOUNTS, "SEX")
    card = replace(masking.release.card, swapped=SwapParameters(share, moved, ("REGION",)))
    swapped = replace(masking, given=(Release(masking.release.table, card), masking.order))
    block, sex = same_in(masking, ["REGION"]), same_in(masking, ["SEX"])
    amounts, edu = (
        law(masking, replace(card, laws=tuple(one for one in card.laws if ("EDU" in one.columns) == is_edu)))
        for is_edu in (False, True)
    )
    own = np.where(block & sex, amounts, -np.inf)
    size = np.log(block.sum(axis=0))
    anybody = logsumexp(own, axis=0) - size
    mixed = np.logaddexp(np.log(1 - share) + own, np.log(share) + anybody)
    logs = np.where(block, mixed + edu, -np.inf)
    scores = logs - logsumexp(logs, axis=0) + size
    _, guess, _, _ = attack_by(mw.BayesIntruder(), swapped)
    np.testing.assert_allclose(guess.score, scores.max(axis=1), rtol=1e-9, atol=1e-9)
    np.testing.assert_array_equal(guess.found, scores.argmax(axis=1))


def two_records(x, z, **noise):
    """A masking of two records with one amount: record i of one file is record i of the other."""
    schema = Schema((Column("ID", "text", ID), Column("A", "continuous", KEY)))
    truth = Table.from_frame(pa.table({"ID": ["t0", "t1"], "A": x}), schema)
    released = Table.from_frame(pa.table({"ID": ["r0", "r1"], "A": z}), schema)
    links = pa.table({"truth_id": ["t0", "t1"], "released_id": ["r0", "r1"]})
    card = mw.IndependentNoise(("A",), **noise).card(truth)
    return Masking.from_files(truth, released, links, card=card)


def test_two_records_by_hand():
    """One amount with noise of sd 1: every figure can be written down."""
    x, z = np.array([0.0, 2.0]), np.array([1.2, 1.9])
    masking = two_records(x, z, variance=1.0)
    density = norm.pdf(z, x[:, None])
    ratio = density / density.mean(axis=0)
    risk = mw.attack(mw.BayesIntruder(), masking)
    assert risk.table["linked_id"].to_pylist() == ["r0", "r1"]
    np.testing.assert_allclose(risk.table["score"], np.log(ratio.max(axis=1)))
    # Two records can be matched in two ways: straight has the density of both diagonals, crossed of the others.
    straight = density[0, 0] * density[1, 1]
    crossed = density[0, 1] * density[1, 0]
    np.testing.assert_allclose(risk.table["probability"], straight / (straight + crossed))
    back = mw.attack(mw.BayesIntruder(direction="to_original"), masking)
    assert back.table["linked_id"].to_pylist() == ["t1", "t1"]
    one = mw.attack(mw.BayesIntruder(direction="to_original", assignment="one-to-one"), masking)
    assert one.correct == 2


def test_a_mass_at_a_limit_is_no_density():
    """The second record left at the clamp, where probabilities are far smaller numbers than densities elsewhere."""
    x, z = [0.49, 0.505], [0.485, 0.5]
    masking = two_records(x, z, variance=1e-4, limits=(("A", None, 0.5),))
    density = norm.pdf(z[0], x, 0.01)
    half = float(masking.release.card.laws[0].outlets[0].unit or 0) / 2
    mass = norm.sf(z[1] - half, x, 0.01)  # what is rounded to the clamp stands there too
    assert density[1] > mass[1], "a raw argmax of f(z|x) takes the wrong record"
    risk = mw.attack(mw.BayesIntruder(), masking)
    assert risk.correct == 2
    np.testing.assert_allclose(
        risk.table["score"], np.log([density[0] / density.mean(), mass[1] / mass.mean()])
    )


def test_identical_releases_tie(make_people):
    masking = masked(mw.Pram(("EDU",), stay=0.6), make_people(120))
    risk, guess, _, _ = attack_by(mw.BayesIntruder(fields=("EDU",), match_blocks=()), masking)
    codes = masking.release.table.floats("EDU")
    status = masking.release.table.status("EDU")
    for known in range(0, 120, 9):
        best = guess.found[known]
        alike = (codes == codes[best]) | ((status == status[best]) & (status > 0))
        assert guess.ties[known] == alike.sum()
    assert risk.expected_correct < 12


def test_partners_are_the_other_records_of_the_block_likeliest_first(masking, expected):
    _, scores = expected
    block = same_in(masking, ["REGION"])
    _, guess, _, _ = attack_by(mw.BayesIntruder(), masking)
    for known in (0, 50, 119):
        partners = guess.partners(known)
        assert set(partners) == set(np.flatnonzero(block[known])) - {scores[known].argmax()}
        assert (np.diff(np.nan_to_num(scores[known, partners], neginf=-1e9)) <= 1e-9).all()


def test_permuted_links_change_what_is_correct_and_no_score(masking):
    order = np.random.default_rng(1).permutation(masking.order)
    other = replace(masking, given=(masking.release, order))
    one, two = (mw.attack(mw.BayesIntruder(), case) for case in (masking, other))
    untouched = ["target_id", "linked_id", "score", "class", "claimed", "ties", "candidates", "probability"]
    assert one.table.select(untouched) == two.table.select(untouched)
    assert one.correct > two.correct


def test_a_release_without_a_law_is_refused(people):
    masking = masked(mw.RankSwap(("TAX",), window_ratio=0.1), people)
    with pytest.raises(NoLaw, match="rank swap of 'TAX' has no law"):
        mw.attack(mw.BayesIntruder(), masking)
    with pytest.raises(NoLaw, match="no other column has one either, so take the nearest-record intruder"):
        mw.attack(mw.BayesIntruder(), masking)
    both = mw.Chain(
        (mw.RankSwap(("TAX",), window_ratio=0.1), mw.IndependentNoise(("INCOME",), variance_ratio=0.1))
    )
    with pytest.raises(NoLaw, match="name fields that have one, or take the nearest-record intruder"):
        mw.attack(mw.BayesIntruder(fields=("TAX",)), masked(both, people))
    links = pa.table({"truth_id": people.ids, "released_id": people.ids})
    with pytest.raises(NoLaw, match=r"the release has no noise law, .* take the nearest-record intruder"):
        mw.attack(mw.BayesIntruder(), Masking.from_files(people, people, links))


def test_fields_that_the_release_made_anew_are_refused(people):
    parts = {"WAGE": 1.0, "OTHER": 1.0}
    mask = mw.Chain(
        (mw.IndependentNoise(("WAGE", "OTHER"), variance_ratio=0.3), mw.Recompute("TOTAL", parts))
    )
    masking = masked(mask, people)
    with pytest.raises(BadInput, match="column 'TOTAL' is a sum of others in the release: name its parts"):
        mw.attack(mw.BayesIntruder(fields=("WAGE", "TOTAL")), masking)
    with pytest.raises(BadInput, match="column 'HH' is numbered anew in the release"):
        mw.attack(mw.BayesIntruder(fields=("WAGE", "HH")), masking)
    assert "TOTAL" not in mw.attack(mw.BayesIntruder(), masking).fields


def test_targets_described_otherwise_are_refused(masking):
    truth = masking.truth
    column = replace(truth.schema["EDU"], categories=("high", "middle", "low"))
    other = replace(truth, schema=truth.schema.changed({"EDU": column}))
    with pytest.raises(BadInput, match="the intruder's column 'EDU' is described otherwise than the truth's"):
        mw.attack(mw.BayesIntruder(), masking, targets=other)


@pytest.mark.parametrize(
    ("options", "said"),
    [({"assignment": "greedy"}, "assignment must be"), ({"fields": []}, "name at least one field")],
)
def test_bad_plans_are_refused(options, said):
    with pytest.raises(BadPlan, match=said):
        mw.BayesIntruder(**options)


def test_plans_of_one_kind_are_named_by_what_differs(masking):
    plans = [
        mw.Linkage(fields=AMOUNTS, weights=mw.attacks.Fixed()),
        mw.NearestRecord(),
        mw.BayesIntruder(),
        mw.BayesIntruder(assignment="one-to-one"),
        mw.BayesIntruder(direction="to_original"),
        mw.BayesIntruder(direction="to_original"),
    ]
    risks = mw.attack(plans, masking)
    assert list(risks) == [
        "Linkage",
        "NearestRecord",
        "BayesIntruder",
        "BayesIntruder one-to-one",
        "BayesIntruder to_original 1",
        "BayesIntruder to_original 2",
    ]
    assert all(name in repr(risks) for name in risks)
    assert list(mw.attack({"he": plans[2]}, masking)) == ["he"]


def hawala(seed, count=1500):
    """Eight independent normal amounts whose mean is their sd."""
    names = [f"V{j}" for j in range(8)]
    values = 1 + np.random.default_rng(seed).standard_normal((count, 8))
    schema = Schema((Column("ID", "text", ID), *(Column(name, "continuous", KEY) for name in names)))
    columns = dict(zip(names, values.T, strict=True))
    return Table.from_frame(pa.table({"ID": [f"r{i}" for i in range(count)], **columns}), schema), tuple(
        names
    )


def test_who_knows_a_mixture_undoes_it():
    """Hawala's k=2, d=.2445, c=.025: he is right in 93% of 1,500 links, within 4 standard errors, and says so."""
    table, names = hawala(100)
    masking = masked(
        mw.MixtureNoise(names, variance_ratio=0.2445, within_variance_ratio=0.025), table, exact=True
    )
    bayes = mw.BayesIntruder(direction="to_original")
    risk = mw.attack(bayes, masking)
    assert abs(risk.rate - 0.93) < 4 * np.sqrt(0.93 * 0.07 / 1500)
    chance = np.asarray(risk.table["probability"])
    assert abs(chance.mean() - risk.rate) < 4 * np.sqrt((chance * (1 - chance)).sum()) / 1500
    one = mw.attack(mw.BayesIntruder(assignment="one-to-one"), masking)
    nearest = mw.attack(mw.NearestRecord(direction="to_original"), masking)
    x, z = table.values(names), masking.release.table.values(names)
    assert one.correct == pytest.approx(assigned_by_scipy(x, z, masking.order, d=0.2445, c=0.025), abs=2)
    assert nearest.correct == nearest_by_tree(x, z, masking.order)
    assert nearest.rate < risk.rate < one.rate


def assigned_by_scipy(x, z, order, *, d, c):
    """How many links of the likeliest one-to-one assignment are right, from the paper's density of the noise."""
    logs = np.zeros((len(z), len(x)))
    for j, sd in enumerate(x.std(axis=0, ddof=1)):
        noise = z[:, j, None] - x[:, j]
        means = np.sqrt(d - c) * sd * np.array([-1.0, 1.0])
        logs += np.logaddexp(*(norm.logpdf(noise, mean, np.sqrt(c) * sd) for mean in means))
    rows, columns = linear_sum_assignment(logs, maximize=True)
    return int(np.sum(order[rows] == columns))


def nearest_by_tree(x, z, order):
    """How many released records have their own as the nearest original, in sds of the release."""
    sds = z.std(axis=0, ddof=1)
    return int(np.sum(cKDTree(x / sds).query(z / sds)[1] == order))


@pytest.mark.parametrize("fraction", [None, 0.5])
def test_what_he_believes_of_his_links_comes_true(fraction, make_amounts):
    """Over files of 25 records, links believed with probability p are right in a share p, within 4 standard errors.

    Matchings exclude each other, so links of one file are not independent: the error is taken over files.
    """
    noise = mw.IndependentNoise(("A", "B"), variance_ratio=0.3)
    mask = noise if fraction is None else mw.Chain((noise, mw.Subsample(fraction)))
    gaps = []
    for seed in range(60):
        masking = mw.apply(mask, make_amounts(25, seed=seed), seed=seed)
        table = mw.attack(mw.BayesIntruder(), masking).table
        gaps.append(np.mean(table["probability"].to_numpy() - table["expected_correct"].to_numpy()))
    assert abs(np.mean(gaps)) < 4 * np.std(gaps, ddof=1) / np.sqrt(len(gaps))


def test_plain_noise_of_the_same_variance_is_not_undone():
    table, names = hawala(101)
    masking = masked(mw.IndependentNoise(names, variance_ratio=0.2445), table, exact=True)
    risk = mw.attack(mw.BayesIntruder(direction="to_original"), masking)
    assert abs(risk.rate - 0.58) < 4 * np.sqrt(0.58 * 0.42 / 1500)
    # noise of one sd for all columns: the likeliest original is the nearest one
    nearest = mw.attack(mw.NearestRecord(direction="to_original"), masking)
    assert abs(nearest.rate - risk.rate) < 4 * np.sqrt(2 * 0.58 * 0.42 / 1500)

"""The options of the Bayesian intruder, what he refuses, and the answers that follow from them."""

from __future__ import annotations

import warnings
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

import maskwell as mw
from maskwell.attacks import attack_from_dict
from maskwell.attacks.attack_run import attack_by
from maskwell.attacks.bayes.card_check import check_card
from maskwell.errors import BadInput, BadPlan, NoLaw
from maskwell.masking import Masking, Release
from maskwell.notes import has_code
from maskwell.schema import Column, Schema
from maskwell.table import Table

KEY = frozenset({"key"})
NAMES = ("A", "B")


def table_of(values, names=NAMES):
    values = np.asarray(values, float).reshape(len(values), -1)
    schema = Schema(tuple(Column(name, "continuous", KEY) for name in names[: values.shape[1]]))
    return Table.from_frame(pa.table(dict(zip(schema.names, values.T, strict=True))), schema)


def masked(mask, table, seed=5, **rest):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", mw.MaskwellWarning)
        return mw.apply(mask, table, seed=seed, **rest)


@pytest.fixture(scope="module")
def table():
    return table_of(np.random.default_rng(3).normal(50, 10, (60, 2)))


@pytest.fixture(scope="module")
def masking(table):
    return masked(mw.BiasNoise(NAMES, bias_sd=0.03, sd_ratio=0.3), table)


# What is refused.


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"kernel": "coherrent"}, "did you mean 'coherent'"),
        ({"marginal": "release"}, "marginal must be 'truth' or 'gaussian'"),
        ({"kernel": "paper", "marginal": "gaussian"}, "marginal is the f"),
        (
            {"kernel": "fms", "error": mw.attacks.OwnError(sds={"A": 1.0})},
            "takes the intruder's values for exact",
        ),
        ({"prior": 20}, "prior takes a Prior: such as Prior"),
        ({"error": {"A": 1.0}}, "error takes an OwnError: such as OwnError"),
        ({"helpers": -1}, "helpers is a whole number from 0 on or 'all'"),
        ({"helpers": True}, "helpers is a whole number"),
        ({"helpers": "everybody"}, "helpers is a whole number"),
        ({"helpers": 3, "assignment": "one-to-one"}, "each record belong to one unit"),
        ({"helpers": 3, "direction": "to_original"}, "helpers look for masked records"),
        ({"helpers": 3, "error": mw.attacks.OwnError(sds={"A": 1.0})}, "helpers are known without error"),
        ({"threshold": 1.0}, "threshold must be a number from 0 to below 1"),
        ({"eps": -1e-3}, "eps must be a number from 0 to below 0.5"),
        (
            {"prior": mw.attacks.Prior(), "error": mw.attacks.OwnError(sds={"A": 1.0})},
            "either a prior or an error",
        ),
    ],
)
def test_bad_options_are_refused(options, said):
    with pytest.raises(BadPlan, match=said):
        mw.BayesIntruder(**options)


def test_a_release_by_rank_swapping_alone_has_no_law(table):
    swapped = masked(mw.RankSwap(NAMES, window_ratio=0.1), table)
    for plan in (
        mw.BayesIntruder(),
        mw.BayesIntruder(helpers="all"),
        mw.BayesIntruder(prior=mw.attacks.Prior()),
    ):
        for fields in (None, ("A",)):
            with pytest.raises(NoLaw, match="has no law"):
                mw.attack(replace(plan, fields=fields), swapped)


def other_card(masking, **changes):
    card = replace(masking.release.card, **changes)
    given = Release(masking.release.table, card), masking.order
    return Masking(masking.truth, masking.masked, card, given=given)


def test_the_card_of_a_release_of_another_size_is_refused(masking):
    with pytest.raises(BadInput, match="the card speaks of 61 records and the release has 60"):
        mw.attack(mw.BayesIntruder(), other_card(masking, records=61))


def test_the_card_of_another_release_is_refused(table, masking):
    far = masked(mw.IndependentNoise(NAMES, variance=1e-8), table_of(table.values(NAMES) + 1e4), exact=True)
    with pytest.raises(BadInput, match="is it the card of another release"):
        mw.attack(mw.BayesIntruder(), other_card(masking, laws=far.card.laws))


@pytest.mark.parametrize(("columns", "scale"), [(20, 1e12), (200, 1e-6)])
def test_units_and_many_fields_change_nothing(columns, scale):
    """Log densities of thousands are neither taken for a foreign card nor for ties of records that differ."""
    values = np.random.default_rng(0).standard_normal((60, columns))
    names = tuple(f"c{i}" for i in range(columns))
    options: list[dict[str, str]] = [{}, {"assignment": "one-to-one"}, {"helpers": "all"}]
    rates = []
    for factor in (1.0, scale):
        found = masked(mw.IndependentNoise(names, variance_ratio=1.0), table_of(factor * values, names))
        rates.append([mw.attack(mw.BayesIntruder(**one), found).rate for one in options])
    assert rates[0] == pytest.approx(rates[1], abs=0.01)
    assert min(rates[0]) > 0.8


@pytest.mark.parametrize("ratio", [0.05, 1.2])
def test_a_card_of_the_same_records_with_other_noise_is_refused(table, masking, ratio):
    """Only the links tell: as many records, the same columns, half or four times the noise."""
    other = masked(mw.BiasNoise(NAMES, bias_sd=0.03, sd_ratio=ratio), table)
    how = "nearer to" if ratio > 0.3 else "further from"
    with pytest.raises(BadInput, match=f"{how} their true ones .* is it the card of another release"):
        mw.attack(mw.BayesIntruder(), other_card(masking, laws=other.card.laws))


def test_links_of_another_release_are_told_from_its_card(masking):
    order = np.random.default_rng(1).permutation(masking.order)
    risk = mw.attack(mw.BayesIntruder(), replace(masking, given=(masking.release, order)))
    assert has_code(risk.notes, "attacks.wrong_links")


@pytest.mark.parametrize(
    "mask",
    [
        mw.IndependentNoise(("INCOME", "TAX"), variance_ratio=0.2),
        mw.CorrelatedNoise(("INCOME", "TAX", "AGE"), sd_ratio=0.4),
        mw.IndependentNoise("AGE", variance=30.0, limits=(("AGE", 18.0, 60.0),)),
        mw.IndependentNoise(("INCOME", "TAX"), variance=(1e6, 4e4), shape="laplace"),
        mw.MixtureNoise(("INCOME", "TAX"), 0.5, 0.1, components=4, correlated=True),
        mw.BiasNoise(("INCOME", "TAX"), bias_sd=0.1, sd=(100.0, 10.0), shape="lognormal"),
        mw.Chain((mw.Pram(("SEX", "EDU"), stay=0.8), mw.Coding("TAX", top=6_000), mw.Subsample(0.8))),
    ],
)
def test_no_card_is_refused_on_its_own_release(make_people, mask):
    for seed in range(3):
        masking = masked(mask, make_people(200), seed=seed)
        assert check_card(masking, masking.card.columns) == []


def test_a_target_that_no_noise_explains_is_counted(table, masking):
    """He is given his likeliest record with certainty, as Bayes would have it: the report says what that is worth."""
    ids = pa.array([f"r{i}" for i in range(60)])
    schema = Schema((Column("ID", "text", frozenset({"id"})), *table.schema.columns))
    frame = pa.table({"ID": ids, **{n: table.values(NAMES)[:, j] for j, n in enumerate(NAMES)}})
    truth = Table.from_frame(frame, schema)
    release = masked(mw.BiasNoise(NAMES, bias_sd=0.03, sd_ratio=0.3), truth)
    values = table.values(NAMES)[:10].copy()
    values[0] = 500.0
    off = {"ID": ids[:10], **{n: values[:, j] for j, n in enumerate(NAMES)}}
    risk = mw.attack(mw.BayesIntruder(), release, targets=Table.from_frame(pa.table(off), schema))
    assert risk.table["probability"][0].as_py() > 0.99
    assert [n.figures["count"] for n in risk.notes if n.code == "attacks.contradicted"] == [1]
    assert not has_code(mw.attack(mw.BayesIntruder(), release).notes, "attacks.contradicted")


def test_more_helpers_than_there_are_units_are_refused(masking):
    with pytest.raises(BadPlan, match="60 helpers are more than there are others: give at most 59"):
        mw.attack(mw.BayesIntruder(helpers=60), masking)


def test_a_prior_on_what_is_not_there_is_refused(masking):
    from scipy.stats import lognorm

    with pytest.raises(BadPlan, match="scale"):
        mw.attack(mw.BayesIntruder(prior=mw.attacks.Prior(given={"scale": lognorm(0.1)})), masking)


# Edges.


def test_one_record_is_his():
    alone = masked(mw.IndependentNoise(("A",), variance=1.0), table_of([5.0]))
    for options in ({}, {"kernel": "forward"}, {"helpers": "all"}):
        risk = mw.attack(mw.BayesIntruder(**options), alone)
        assert risk.rate == 1.0
        assert risk.table["probability"][0].as_py() == pytest.approx(1.0)


def test_without_noise_equal_values_are_found_and_impossible_targets_are_nobodys():
    """phi = sigma = 0: only a record with the same value can be his."""
    table = table_of([[1.0], [2.0], [3.0]])
    base = masked(mw.BiasNoise(("A",), bias_sd=0.1, sd=1.0), table)
    law = base.card.laws[0]
    silent = replace(law, spreads=(replace(law.spreads[0], bias_sd=0.0, sd=0.0),))
    card = replace(base.release.card, laws=(silent,))
    masking = Masking(table, table, card, given=(Release(table, card), np.arange(3)))
    for kernel in ("coherent", "forward", "paper", "fms"):
        plan = mw.BayesIntruder(kernel=kernel)
        risk = mw.attack(plan, masking)
        assert risk.rate == 1.0
        known = Table.from_frame(
            pa.table({"ID": ["a", "b"], "A": [2.0, 2.5]}),
            Schema((Column("ID", "text", frozenset({"id"})), *table.schema.columns)),
        )
        guess = plan.guess(
            mw.attacks.protocol.IntruderKnowledge(known, table),
            masking.release,
            lambda t, side="": np.arange(len(t)),
        )
        assert guess.found.tolist() == [1, -1]
        assert guess.columns["probability"][0] == pytest.approx(1.0)
        assert np.isnan(guess.columns["probability"][1])
        assert guess.kinds[guess.kind[1]] == "no candidate"


def test_a_threshold_lets_him_claim_what_he_is_sure_of(masking):
    plain, sure = (mw.attack(mw.BayesIntruder(threshold=t), masking) for t in (0.0, 0.5))
    chance = np.asarray(plain.table["probability"])
    assert sure.claims == int((chance > 0.5).sum()) < plain.claims
    assert sure.class_of("below the threshold").links == plain.claims - sure.claims
    row = sure.belief.curve([0.5]).to_pylist()[0]
    assert (row["links"], row["correct"]) == (sure.claims, pytest.approx(sure.expected_correct))


def test_forward_is_coherent_with_a_flat_marginal(masking):
    flat = mw.BayesIntruder(marginal=lambda released: np.zeros(len(released)))
    one, two = (attack_by(plan, masking)[1] for plan in (flat, mw.BayesIntruder(kernel="forward")))
    np.testing.assert_array_equal(one.found, two.found)
    np.testing.assert_allclose(one.columns["probability"], two.columns["probability"], rtol=1e-12)


def test_a_change_of_unit_changes_no_belief(table):
    """In cents instead of euros the same noise gives the same posterior, told or not."""

    def believed(scale, plan):
        mask = mw.BiasNoise(NAMES, bias_sd=0.03, sd_ratio=0.3)
        masking = masked(mask, table_of(table.values(NAMES) * scale), exact=True)
        guess = attack_by(plan, masking)[1]
        return masking.order[guess.found], guess.columns["probability"]

    plans = [mw.BayesIntruder(), mw.BayesIntruder(kernel="paper"), mw.BayesIntruder(prior=mw.attacks.Prior())]
    plans += [
        mw.BayesIntruder(kernel="fms", prior=mw.attacks.Prior(family="gamma")),
        mw.BayesIntruder(marginal="gaussian"),
    ]
    for plan in plans:
        one, two = believed(1.0, plan), believed(100.0, plan)
        np.testing.assert_array_equal(one[0], two[0])
        np.testing.assert_allclose(one[1], two[1], rtol=1e-6)


# Samples.


def test_not_released_and_released_are_all_there_is(table):
    sampled = masked(mw.Chain((mw.IndependentNoise(NAMES, variance_ratio=0.25), mw.Subsample(0.5))), table)
    for options in ({}, {"kernel": "paper"}, {"kernel": "fms"}, {"helpers": "all"}, {"helpers": 5}):
        risk, guess, _, _ = attack_by(mw.BayesIntruder(**options, response_knowledge=False), sampled)
        absent, standing = guess.columns["not_released"], guess.figures["standing"]
        released = np.arange(len(sampled.release.table))
        for row in (0, 17, 59):
            chance = standing(np.full(len(released), row), released).probability
            assert chance.sum() + absent[row] == pytest.approx(1.0, abs=1e-9)
        truth = np.isin(np.arange(60), sampled.order)
        assert absent[~truth].mean() > absent[truth].mean() or "kernel" in options
        assert set(guess.kinds) == {"linked", "likelier absent", "no candidate"}
        assert risk.belief is not None


def test_what_the_forward_kernel_does_not_weigh_it_does_not_report(table):
    sampled = masked(mw.Chain((mw.IndependentNoise(NAMES, variance_ratio=0.25), mw.Subsample(0.5))), table)
    plans = [mw.BayesIntruder(kernel=k, response_knowledge=False) for k in ("forward", "coherent")]
    forward, coherent = (mw.attack(plan, sampled) for plan in plans)
    assert forward.belief.not_released is None
    assert "not to be in the release" not in repr(forward)
    doubted = coherent.class_of("likelier absent").links
    assert f"{doubted} of the links claimed are of targets that he holds for likelier absent" in repr(
        coherent
    )


def test_amounts_that_he_collected_himself_are_coded_as_the_truth(make_people):
    """Without codes or units of his own, beyond the top: he finds what he would find with the steward's records."""
    people = make_people(90)
    masking = masked(mw.CorrelatedNoise(("INCOME", "AGE"), sd_ratio=0.3), people)
    plain = {
        n: replace(people.schema[n], kind="continuous", top=None, bottom=None) for n in ("INCOME", "AGE")
    }
    frame = people.to_arrow()
    income = np.asarray(frame["INCOME"]).copy()
    income[income == 90_000] = 120_000.0
    frame = frame.set_column(frame.column_names.index("INCOME"), "INCOME", pa.array(income))
    held = Table.from_frame(frame, people.schema.changed(plain))
    plan = mw.BayesIntruder(fields=("INCOME", "AGE"), match_blocks=("REGION",))
    own, true = (mw.attack(plan, masking, targets=table) for table in (held, people))
    assert own.table["linked_id"].equals(true.table["linked_id"])
    np.testing.assert_allclose(np.asarray(own.table["probability"]), np.asarray(true.table["probability"]))


# What the report says.


def test_the_report_names_what_was_compared_and_assumed(make_people):
    masking = masked(mw.CorrelatedNoise(("INCOME", "TAX"), sd_ratio=0.4), make_people(90))
    risk = mw.attack(mw.BayesIntruder(threshold=0.25, marginal="gaussian"), masking)
    said = " ".join(repr(risk).split())
    assert "compares INCOME, TAX by the noise, within blocks of REGION" in said
    assert "LEFT IN CLEAR and compared exactly: AGE, SEX; they and the blocks alone single out" in said
    assert "holds the card; kernel coherent; f(z) a normal law fitted to the release; no helpers;" in said
    assert "claims links above 0.25" in said
    table, released = masking.truth, masking.release.table
    keys = [
        [
            *zip(
                *(part for n in ("REGION", "AGE", "SEX") for part in (t.array(n).to_pylist(), t.status(n))),
                strict=True,
            )
        ]
        for t in (table, released)
    ]
    assert risk.assumed.alone == sum(keys[1].count(key) == 1 for key in keys[0])
    plan = mw.BayesIntruder(
        fields=("TAX",), match_blocks=(), prior=mw.attacks.Prior(mean_over_sd=5.0), kernel="forward"
    )
    said = " ".join(repr(mw.attack(plan, masking)).split())
    assert "compares TAX by the noise, among all records, no blocks" in said
    assert "not told the parameters: prior inverse gamma, mean over sd 5; kernel forward; no helpers" in said
    assert "IN CLEAR" not in said
    beside = mw.attack({"all": mw.BayesIntruder(), "tax": replace(plan, prior=None)}, masking)
    assert "LEFT IN CLEAR and compared exactly by all: AGE, SEX" in repr(beside)


def test_to_original_says_nothing_of_the_marginal(masking):
    assert mw.attack(mw.BayesIntruder(direction="to_original"), masking).notes == ()


# Plans as data.


@pytest.mark.parametrize(
    "plan",
    [
        mw.BayesIntruder(kernel="paper", prior=mw.attacks.Prior(family="gamma", mean_over_sd=5.0)),
        mw.BayesIntruder(helpers="all", sampling=mw.attacks.Sampling(chains=2, draws=200)),
        mw.BayesIntruder(error=mw.attacks.OwnError(sds={"A": 2.0}), threshold=0.5, eps=1e-3),
    ],
)
def test_plans_survive_being_written(plan):
    assert attack_from_dict(plan.to_dict()) == plan


def test_a_function_of_the_users_own_is_named_only():
    data = mw.BayesIntruder(marginal=np.zeros_like).to_dict()
    assert data["marginal"] == "a function of the user's own"
    with pytest.raises(BadPlan, match="marginal must be"):
        attack_from_dict(data)


def test_intruders_side_by_side_answer_as_they_do_alone(make_people):
    """What they share is computed once, and changes nothing: also with swaps, priors and errors among them."""
    noisy = masked(mw.CorrelatedNoise(("INCOME", "TAX"), sd_ratio=0.3), make_people(90))
    where = {"match_blocks": ("REGION",), "fields": ("INCOME", "TAX")}
    swapped = mw.swap(noisy, mw.NearestRecord(**where), mw.tolerances.SwapShare(0.5))
    assert swapped.swapping is not None
    plans = {
        "told": mw.BayesIntruder(**where),
        "untold": mw.BayesIntruder(**where, prior=mw.attacks.Prior(mean_over_sd=3.0)),
        "one-to-one": mw.BayesIntruder(**where, assignment="one-to-one"),
        "off": mw.BayesIntruder(**where, error=mw.attacks.OwnError(sds={"TAX": 10.0})),
        "ceiling": mw.BayesIntruder(**where, helpers="all"),
        "other fields": mw.BayesIntruder(match_blocks=("REGION",), fields=("INCOME",)),
    }
    beside = mw.attack(plans, swapped)
    assert beside.refused == {}
    for name, plan in plans.items():
        assert beside[name].to_dict() == mw.attack(plan, swapped).to_dict(), name


@pytest.mark.parametrize("fraction", [1.0, 0.6])
def test_what_left_in_clear_is_the_same_as_a_block(make_people, fraction):
    """Helpers in the block of REGION who know SEX, in clear, believe what those in blocks of both believe."""
    noise = mw.CorrelatedNoise(("INCOME", "TAX"), sd_ratio=0.5)
    mask = noise if fraction == 1.0 else mw.Chain((noise, mw.Subsample(fraction)))
    masking = masked(mask, make_people(40))
    for helpers in (6, "all"):
        known, split = (
            attack_by(mw.BayesIntruder(helpers=helpers, **where), masking)[1]
            for where in (
                {"fields": ("INCOME", "TAX", "SEX"), "match_blocks": ("REGION",)},
                {"fields": ("INCOME", "TAX"), "match_blocks": ("REGION", "SEX")},
            )
        )
        for name in known.columns:
            np.testing.assert_allclose(known.columns[name], split.columns[name], rtol=1e-9, atol=1e-12)

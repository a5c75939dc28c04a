from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import norm

from maskwell.laws import Additive, Normal
from maskwell.laws.chain import ChainedLaw, combined_of
from maskwell.masking import apply
from maskwell.masks import (
    BiasNoise,
    Chain,
    CodeNoise,
    Coding,
    CorrelatedNoise,
    Grouping,
    IndependentNoise,
    MixtureNoise,
    Pram,
    RankSwap,
    Recompute,
    Subsample,
    mask_from_dict,
)
from maskwell.schema import OPEN, TOP_CODED, Column

from .conftest import EXACT, numbers, plain, table_of, within_four


@pytest.fixture
def survey():
    rng = np.random.default_rng(9)
    parts = rng.integers(0, 1000, size=(2000, 2))
    return table_of(
        Column("EARNED", "integer"),
        Column("OTHER", "integer"),
        Column("TOTAL", "integer"),
        Column("AGE", "integer", top=90, missing=(-9,)),
        Column("SEX", "category", categories=("m", "f", "x")),
        EARNED=parts[:, 0],
        OTHER=parts[:, 1],
        TOTAL=parts.sum(axis=1),
        AGE=np.minimum(rng.integers(1, 99, size=2000), 90),
        SEX=rng.choice(["m", "f", "x"], size=2000).tolist(),
    )


@pytest.fixture
def people(survey):
    return survey.select(("EARNED", "OTHER", "AGE", "SEX"))


def test_disjoint_masks_keep_their_own_laws(survey):
    masks = (
        CorrelatedNoise(("EARNED", "OTHER"), sd_ratio=0.3),
        IndependentNoise("AGE", variance_ratio=0.1),
        Pram("SEX", stay=0.8),
        Recompute("TOTAL", {"EARNED": 1, "OTHER": 1}),
        Subsample(0.5),
    )
    card = Chain(masks).card(survey)
    assert card.laws == tuple(law for mask in masks for law in mask.card(survey).laws)
    assert card.columns == ("EARNED", "OTHER", "AGE", "SEX")
    assert card.recomputed == (("TOTAL", (("EARNED", 1.0), ("OTHER", 1.0))),)
    assert card.subsampled == 0.5
    masking = apply(Chain(masks), survey, seed=1)
    assert np.isfinite(masking.card.logpdf(masking.masked, survey)).all()


def test_a_total_is_recomputed_from_masked_parts_and_carries_no_law(survey):
    plan = Chain(
        [IndependentNoise(("EARNED", "OTHER"), variance_ratio=0.3), Recompute("TOTAL", ["EARNED", "OTHER"])]
    )
    masking = apply(plan, survey, seed=1)
    z = masking.masked.values(["EARNED", "OTHER", "TOTAL"])
    assert np.array_equal(z[:, 0] + z[:, 1], z[:, 2])
    assert masking.card.law_of("TOTAL") is None
    assert not np.array_equal(z[:, 2], survey.values(["TOTAL"])[:, 0])


def test_noise_after_noise_is_the_noise_of_the_sum(table):
    plan = Chain(
        [CorrelatedNoise(("A", "B"), sd_ratio=0.3), IndependentNoise(("B", "C"), variance_ratio=0.1)]
    )
    law = plan.card(table, EXACT).laws[0]
    x = table.values([*"ABC"])
    sigma = np.cov(x.T)
    expected = np.zeros((3, 3))
    expected[:2, :2] = 0.09 * sigma[:2, :2]
    expected[1:, 1:] += 0.1 * np.diag(np.diag(sigma)[1:])
    assert isinstance(law, ChainedLaw)
    assert np.allclose(law.combined.noise.covariance, expected, rtol=1e-12)
    noise = apply(plan, table, seed=1, exact=True).masked.values([*"ABC"]) - x
    assert within_four(np.einsum("ni,nj->nij", noise, noise), expected)


def test_normal_noise_after_a_mixture(table):
    plan = Chain([MixtureNoise("A", 0.3, 0.05, components=3), IndependentNoise("A", variance_ratio=0.1)])
    masking = apply(plan, table, seed=1, exact=True)
    x = table.values("A")
    noise = combined_of(masking.card.laws[0]).noise
    assert noise.covariance[0, 0] == pytest.approx(0.4 * x.var(ddof=1), rel=1e-12)
    assert np.square(noise.sds[0]) == pytest.approx([0.15 * x.var(ddof=1)] * 3, rel=1e-12)
    assert within_four((masking.masked.values("A") - x) ** 2, 0.4 * x.var(ddof=1))


def test_codes_after_noise_show_as_codes_and_have_the_tail_as_density(people):
    plan = Chain([CorrelatedNoise(("EARNED", "AGE"), sd_ratio=0.5), Coding(("EARNED", "AGE"), top=(900, 90))])
    masking = apply(plan, people, seed=1)
    law = masking.card.laws[0]
    assert [outlet.codes for outlet in law.outlets] == [(None, 900.0), (None, 90.0)]
    status, before = masking.masked.status("AGE"), people.status("AGE")
    noised = np.flatnonzero((before == OPEN) & (status == TOP_CODED))
    assert len(noised) > 50
    assert np.all(status[before == TOP_CODED] == TOP_CODED)
    assert np.all(masking.masked.values(["AGE"])[status == OPEN] < 90)
    assert masking.masked.schema["EARNED"].top == 900
    logs = masking.card.logpdf(masking.masked, people)
    assert np.isfinite(logs).all()
    both = noised[masking.masked.status("EARNED")[noised] == OPEN]
    record = both[:1]
    (z, _), (x, age) = (
        masking.masked.values(["EARNED", "AGE"])[record][0],
        people.values(["EARNED", "AGE"])[record][0],
    )
    (v, c), (_, w) = law.noise.covariance
    given = norm(age + c / v * (z - x), np.sqrt(w - c**2 / v))
    assert logs[record[0]] == pytest.approx(norm(x, np.sqrt(v)).logpdf(z) + given.logsf(89.5), abs=1e-3)


def test_codes_follow_each_column_of_several_noises(people):
    plan = Chain(
        [
            IndependentNoise("EARNED", variance_ratio=0.1),
            BiasNoise("OTHER", bias_sd=0.2, sd=5.0, shape="lognormal"),
            Coding(("EARNED", "OTHER", "AGE"), top=(900, 800, 85), bottom=(100, 50, 10)),
        ]
    )
    masking = apply(plan, people, seed=1)
    for name, top, bottom in (("EARNED", 900, 100), ("OTHER", 800, 50), ("AGE", 85, 10)):
        values = masking.masked.values([name])
        assert np.nanmax(values) < top
        assert np.nanmin(values) > bottom
        assert set(masking.masked.status(name)) == {0, 2, 3}
    assert np.isfinite(masking.card.logpdf(masking.masked, people)).all()


def test_limits_of_the_noise_stay_when_the_other_side_is_coded(people):
    noise = IndependentNoise("EARNED", variance_ratio=0.5, limits=(("EARNED", 0, None),))
    masking = apply(Chain([noise, Coding("EARNED", top=900)]), people, seed=1)
    z = masking.masked.values(["EARNED"])
    assert np.nanmin(z) == 0
    assert set(masking.masked.status("EARNED")) == {0, 2}
    assert np.isfinite(masking.card.logpdf(masking.masked, people)).all()


def test_tables_of_categories_multiply(survey):
    plan = Chain([Grouping("SEX", groups={"m": ["m"], "other": ["f", "x"]}), Pram("SEX", stay=0.9)])
    masking = apply(plan, survey, seed=1)
    assert masking.masked.schema["SEX"].categories == ("m", "other")
    assert np.allclose(combined_of(masking.card.laws[0]).matrix, [[0.9, 0.1], [0.1, 0.9], [0.1, 0.9]])
    assert np.isfinite(masking.card.logpdf(masking.masked, survey)).all()


def test_three_tables_of_categories_multiply(survey):
    other = Grouping("SEX", groups={"m": ["m"], "other": ["f", "x"]})
    renamed = Grouping("SEX", groups={"man": ["m"], "else": ["other"]})
    change, two = np.full((3, 3), 0.1) + 0.7 * np.eye(3), np.array([[0.8, 0.2], [0.2, 0.8]])
    join = np.array([[1, 0], [0, 1], [0, 1]])
    plans = {
        (Pram("SEX", stay=0.8), other, Pram("SEX", stay=0.8)): change @ join @ two,
        (other, renamed, Pram("SEX", stay=0.8)): join @ two,
        (other, Pram("SEX", stay=0.8), renamed): join @ two,
    }
    for masks, expected in plans.items():
        masking = apply(Chain(masks), survey, seed=1)
        assert np.allclose(combined_of(masking.card.laws[0]).matrix, expected)
        z, x = masking.masked.values(["SEX"])[:, 0], survey.values(["SEX"])[:, 0]
        for code in range(3):
            share, p = np.mean(z[x == code] == 1), expected[code, 1]
            assert abs(share - p) <= 4 * np.sqrt(p * (1 - p) / np.count_nonzero(x == code))


def test_invariant_change_after_grouping_keeps_the_shares_of_the_groups(survey, messages):
    other = Grouping("SEX", groups={"other": ["f", "x"], "m": ["m"]})
    masking = apply(Chain([other, Pram("SEX", stay=0.8, invariant=True)]), survey, seed=1)
    matrix = np.array(combined_of(masking.card.laws[0]).matrix)
    counts = np.bincount(survey.values(["SEX"])[:, 0].astype(int))
    groups = np.array([counts[1:].sum(), counts[0]])
    errors = np.sqrt(counts @ (matrix * (1 - matrix)))
    assert np.all(np.abs(counts @ matrix - groups) <= np.maximum(errors, 10))
    after = np.bincount(masking.masked.values(["SEX"])[:, 0].astype(int))
    assert np.all(np.abs(after - counts @ matrix) <= 4 * errors)
    again = Chain([Pram("SEX", stay=0.5), Pram("SEX", stay=0.8, invariant=True)])
    (problem,) = messages(lambda: again.card(survey))
    assert problem.startswith("column 'SEX': after a random change the shares are not known to the plan")


@pytest.mark.parametrize(
    "masks",
    [
        (
            IndependentNoise("AGE", variance_ratio=0.1, shape="laplace"),
            IndependentNoise("AGE", variance_ratio=0.1),
        ),
        (
            IndependentNoise("AGE", variance_ratio=0.1, transform="log"),
            IndependentNoise("AGE", variance_ratio=0.1),
        ),
        (BiasNoise("AGE", bias_sd=0.1, sd=1.0), IndependentNoise("AGE", variance_ratio=0.1)),
        (Coding("AGE", top=80), IndependentNoise("AGE", variance_ratio=0.1)),
        (RankSwap("AGE", 0.1), IndependentNoise("AGE", variance_ratio=0.1)),
        (IndependentNoise("AGE", variance_ratio=0.1), RankSwap("AGE", 0.1)),
        (Grouping("AGE", breaks=(30,)), IndependentNoise("AGE", variance_ratio=0.1)),
        (IndependentNoise("AGE", variance_ratio=0.1), Grouping("AGE", breaks=(30,))),
        (Pram("SEX", stay=0.9), CodeNoise("SEX", variance=0.1)),
        (CodeNoise("SEX", variance=0.1), CodeNoise("SEX", variance=0.1)),
        (Grouping("AGE", breaks=(30,)), Pram("AGE", stay=0.9, invariant=True)),
    ],
)
def test_what_has_no_closed_form_is_refused(survey, masks, messages):
    (problem,) = messages(lambda: Chain(masks).card(survey))
    assert "is masked twice and the law of both together has no closed form" in problem
    assert problem.endswith("mask it once")


def test_all_problems_of_a_chain_are_said_at_once(survey, messages):
    plan = Chain(
        [
            IndependentNoise("TOTAL", variance_ratio=0.1),
            Recompute("TOTAL", {"EARNED": 1, "OTHER": 1}),
            Recompute("TOTAL", {"EARNED": 1, "OTHER": 1}),
            Grouping("OTHER", breaks=(10,)),
            Subsample(0.5),
            Subsample(0.5),
            Pram("AGE", stay=0.5),
            IndependentNoise("WAGE", variance_ratio=0.1),
        ]
    )
    assert messages(lambda: plan.card(survey)) == (
        "a chain may subsample only once",
        "column 'AGE' is of kind 'integer'; this mask is for category",
        "there is no column 'WAGE' (did you mean 'AGE'?)",
        "column 'TOTAL' is recomputed and masked too: it must do one of the two",
        "column 'TOTAL' cannot be recomputed: its part 'OTHER' is released as classes",
        "column 'TOTAL' is recomputed twice",
    )


def test_totals_of_totals_are_computed_in_order(messages):
    values = np.column_stack([numbers(40)[:, :2], np.zeros((40, 2))])
    values[:, 2] = values[:, 0] + values[:, 1]
    values[:, 3] = values[:, 2] + values[:, 0]
    first, second = Recompute("C", ["A", "B"]), Recompute("D", {"C": 1, "A": 1})
    noise = IndependentNoise(("A", "B"), variance_ratio=0.2)
    assert messages(lambda: Chain([noise, second, first]).card(plain(values))) == (
        "column 'D' is recomputed before its part 'C': change their order",
    )
    z = apply(Chain([noise, first, second]), plain(values), seed=1).masked.values([*"ABCD"])
    assert np.allclose(z[:, 3], 2 * z[:, 0] + z[:, 1])


def test_recompute_and_chain_say_what_is_wrong(messages):
    assert messages(lambda: Recompute("T", {})) == (
        "'T' must be recomputed from at least one other column, not from itself",
    )
    assert messages(lambda: Recompute("T", [("A", 1.0), ("A", 2.0), "T"])) == (
        "part 'A' is named twice",
        "'T' must be recomputed from at least one other column, not from itself",
    )
    assert messages(lambda: Chain([])) == ("a chain needs at least one mask",)


def test_a_chain_of_one_is_that_mask(survey):
    mask = IndependentNoise("AGE", variance_ratio=0.1)
    assert Chain([mask]).card(survey) == mask.card(survey)


def test_plans_come_back_from_plain_data():
    plan = Chain(
        [
            IndependentNoise(("A", "B"), variance=[1.0, 2.0], limits=[["A", 0, None]]),
            Coding("A", top=[5.0]),
            CodeNoise("Q", variance=[0.1, 0.2]),
            MixtureNoise("C", 0.3, 0.1, weights=[0.4, 0.6]),
            Recompute("T", {"A": 1.0}),
            Grouping("S", groups={"a": ["b"]}),
        ]
    )
    assert mask_from_dict(plan.to_dict()) == plan
    assert hash(plan) == hash(mask_from_dict(plan.to_dict()))


def test_a_law_without_columns_in_common_may_be_of_any_kind(survey):
    card = Chain([RankSwap("AGE", 0.1), IndependentNoise("EARNED", variance=4.0)]).card(survey)
    assert isinstance(card.law_of("EARNED"), Additive)
    assert card.law_of("EARNED").noise == Normal((2.0,))

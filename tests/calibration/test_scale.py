"""Which masks have a free scale, how it is set, and how a plan at another scale is written."""

from __future__ import annotations

from math import inf, sqrt

import numpy as np
import pytest

from maskwell.calibration.scale import (
    columns_apart,
    has_scale,
    join_masks,
    largest_factor,
    one_figure,
    round_digits,
    scale_mask,
    scale_of,
    scale_words,
    writable,
)
from maskwell.errors import BadPlan
from maskwell.laws.chain import combined_of
from maskwell.masking import Setting, apply
from maskwell.masks import (
    MASKS,
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
)

NOISES = [
    CorrelatedNoise(("INCOME", "AGE"), sd_ratio=0.3),
    CorrelatedNoise(("INCOME", "AGE"), r0=0.9),
    IndependentNoise(("INCOME", "AGE"), variance_ratio=0.1),
    IndependentNoise(("INCOME", "AGE"), variance=(1e6, 25.0)),
    IndependentNoise(("INCOME", "AGE"), variance=25.0, shape="laplace"),
    MixtureNoise(("INCOME", "AGE"), 0.2, 0.05),
    CodeNoise(("EDU",), variance=0.5),
]
WITHOUT_SCALE = [
    Coding(("AGE",), top=80),
    Grouping(("AGE",), breaks=(30, 60)),
    Subsample(0.5),
    Recompute("TOTAL", ("WAGE", "OTHER")),
    Chain([Subsample(0.5), Coding(("AGE",), top=80)]),
]
EXACT = Setting(exact=True)


@pytest.mark.parametrize("mask", NOISES, ids=scale_words)
@pytest.mark.parametrize("factor", [0.8, 1.0, 2.5])
def test_the_sd_of_the_noise_is_multiplied(people, mask, factor):
    before, after = (
        np.concatenate(
            [np.sqrt(np.diag(combined_of(law).noise.covariance)) for law in plan.card(people, EXACT).laws]
        )
        for plan in (mask, scale_mask(mask, factor))
    )
    np.testing.assert_allclose(after, factor * before, rtol=1e-12)


def test_kept_moments_stay_kept(people):
    """Shlomo's noise: with r0 scaled the released variance is still that of the data."""
    mask = scale_mask(CorrelatedNoise(("INCOME",), r0=0.9, keep="moments"), 2.0)
    law = mask.card(people, EXACT).laws[0]
    variance = np.nanvar(people.floats("INCOME"), ddof=1)
    assert law.slope**2 * variance + law.noise.covariance[0, 0] == pytest.approx(variance)
    assert mask.noise_sd_ratio == pytest.approx(2 * sqrt(0.1 / 0.9))


def test_bias_noise_scales_both_its_parts():
    mask = scale_mask(BiasNoise(("A", "B"), bias_sd=0.1, sd=(1.0, 2.0)), 3.0)
    assert mask.bias_sd == pytest.approx(0.3)
    assert mask.sd == pytest.approx((3.0, 6.0))


def test_windows_and_chances_end_where_they_are_full(people):
    assert scale_mask(RankSwap(("A",), 0.3), 10).window_ratio == 1.0
    assert largest_factor(RankSwap(("AGE",), 0.2), people) == pytest.approx(5)
    pram = Pram(("EDU",), stay=0.8)
    most = largest_factor(pram, people)
    assert scale_mask(pram, most).stay == pytest.approx(1 / 3)  # EDU has three categories: any is as likely
    table = Pram(("SEX",), matrix=((0.9, 0.1), (0.25, 0.75)))
    assert scale_mask(table, 2).matrix == pytest.approx(np.array([[0.8, 0.2], [0.5, 0.5]]))
    assert largest_factor(table, people) == pytest.approx(1 / 0.35, rel=1e-4)  # there both rows are the same
    assert largest_factor(CorrelatedNoise(("AGE",), sd_ratio=1), people) == inf
    assert most == pytest.approx(10 / 3)
    assert largest_factor(Chain([RankSwap(("AGE",), 0.2), pram]), people) == pytest.approx(5)


def test_changes_stop_where_they_hide_most_while_noise_grows(people):
    """A category that is certain to be changed tells as much as one that is not changed."""
    noise, pram = CorrelatedNoise(("AGE",), sd_ratio=1), Pram(("EDU",), stay=0.8)
    table = Pram(("SEX",), matrix=((0.9, 0.1), (0.25, 0.75)))
    grown = scale_mask(Chain([noise, pram, table]), 50, people)
    assert grown.masks[0].sd_ratio == 50
    assert grown.masks[1].stay == pytest.approx(1 / 3)
    rows = np.asarray(grown.masks[2].matrix)
    assert rows[0] == pytest.approx(rows[1], abs=1e-4)
    assert scale_mask(Chain([noise, pram]), 2, people).masks[1].stay == pytest.approx(0.6)
    even = Pram(("EDU",), matrix=((0.8, 0.1, 0.1), (0.1, 0.8, 0.1), (0.1, 0.1, 0.8)))
    assert largest_factor(even, people) == pytest.approx(10 / 3, rel=1e-4)  # as with stay = 0.8
    assert largest_factor(Pram(("SEX",), matrix=((0.0, 1.0), (0.5, 0.5))), people) == 1.0


def test_a_chain_scales_the_stages_that_can():
    chain = Chain(
        [CorrelatedNoise(("A", "B"), sd_ratio=0.2), Coding(("A",), top=9), CodeNoise(("C",), variance=1)]
    )
    twice = scale_mask(chain, 2)
    assert [type(mask) for mask in twice.masks] == [CorrelatedNoise, Coding, CodeNoise]
    assert (twice.masks[0].sd_ratio, twice.masks[1].top, twice.masks[2].variance) == (0.4, 9, 4)


@pytest.mark.parametrize("mask", WITHOUT_SCALE, ids=lambda mask: type(mask).__name__)
def test_masks_without_a_scale_are_refused_by_name(mask):
    assert not has_scale(mask)
    with pytest.raises(BadPlan, match=r"no free scale.*CorrelatedNoise, IndependentNoise"):
        scale_mask(mask, 2)


def test_every_mask_has_a_scale_or_is_known_to_have_none():
    with_scale = {type(mask).__name__ for mask in NOISES} | {"BiasNoise", "RankSwap", "Pram"}
    without = {type(mask).__name__ for mask in WITHOUT_SCALE}
    assert with_scale | without == set(MASKS)


@pytest.mark.parametrize("factor", [0, -1, inf, float("nan"), "2", True, None])
def test_factors_are_positive_numbers(factor):
    with pytest.raises(BadPlan, match="positive number"):
        scale_mask(NOISES[0], factor)


@pytest.mark.parametrize("mask", ["noise", 3, None, CorrelatedNoise])
def test_what_is_no_mask_is_refused(mask):
    with pytest.raises(BadPlan, match="is no mask"):
        scale_mask(mask, 2)


@pytest.mark.parametrize(
    ("value", "up"),
    [(0.12345, 0.124), (0.124, 0.124), (1234.0, 1240.0), (0.0999, 0.0999), (9.996, 10.0), (0, 0)],
)
def test_figures_are_rounded_towards_more_noise(value, up):
    assert round_digits(value) == up


@pytest.mark.parametrize("factor", [0.31234, 1.0, 3.4567])
@pytest.mark.parametrize(
    "mask", [*NOISES, RankSwap(("AGE",), 0.1), Pram(("SEX",), stay=0.9)], ids=scale_words
)
def test_a_written_plan_has_few_digits_and_no_less_noise(mask, factor):
    exact = scale_mask(mask, factor)
    short = writable(exact)
    for name, value in scale_of(exact).items():
        written = scale_of(short)[name]
        assert writable(short) == short
        shrinks = name in ("r0", "stay")
        size = [1 - np.array(v) if shrinks else np.array(v) for v in (value, written)]
        assert np.all(size[1] >= size[0] - 1e-12)
        assert np.all(size[1] <= size[0] * 1.01)
        few = [float(f"{one:.3g}") for one in np.atleast_1d(size[1])]
        np.testing.assert_allclose(np.atleast_1d(size[1]), few, rtol=1e-12)


def test_a_matrix_without_room_stays_exact():
    full = Pram(("SEX",), matrix=((0.0, 1.0), (0.5, 0.5)))
    assert writable(full).matrix == full.matrix
    assert writable(scale_mask(Pram(("SEX",), matrix=((0.9, 0.1), (0.3, 0.7))), 1.2345)).matrix == (
        (0.876, 0.124),
        (0.371, 0.629),
    )


def test_scales_are_said_in_their_own_names():
    assert scale_words(CorrelatedNoise(("A",), r0=0.9)) == "r0=0.9"
    assert scale_words(IndependentNoise(("A", "B"), variance=(1, 2.5))) == "variance=(1, 2.5)"
    chain = Chain(
        [IndependentNoise(("A",), variance_ratio=0.1), IndependentNoise(("B",), variance_ratio=0.2)]
    )
    assert scale_words(chain) == "variance_ratio 0.1 (A), 0.2 (B)"
    assert scale_of(chain)["IndependentNoise(B) variance_ratio"] == 0.2
    mixed = Chain([CorrelatedNoise(("A", "B"), sd_ratio=0.1), CodeNoise(("C",), variance=2)])
    assert scale_words(mixed) == "CorrelatedNoise sd_ratio 0.1 (A, B); CodeNoise variance 2 (C)"
    assert one_figure(CorrelatedNoise(("A",), sd_ratio=0.3)) == ("sd_ratio", 0.3)
    assert one_figure(CorrelatedNoise(("A",), r0=0.3)) is None  # falls as the noise grows
    assert one_figure(mixed) is None
    single = Chain([CorrelatedNoise(tuple("ABCDE"), sd_ratio=0.3), Coding(("A",), top=9)])
    assert scale_words(single) == "sd_ratio=0.3"
    assert one_figure(single) == ("sd_ratio", 0.3)
    assert "0.3 (A and 4 more)" in scale_words(Chain([*single.masks, CodeNoise(("F",), variance=1)]))


@pytest.mark.parametrize(
    "mask",
    [
        IndependentNoise(("INCOME", "AGE"), variance_ratio=0.1),
        IndependentNoise(("INCOME", "AGE"), variance=(1e6, 25.0), limits=(("AGE", 18, 80),)),
        MixtureNoise(("INCOME", "AGE"), 0.2, 0.05),
        BiasNoise(("INCOME", "AGE"), bias_sd=0.1, sd=(500.0, 4.0)),
        RankSwap(("INCOME", "AGE"), 0.1),
        CodeNoise(("EDU", "SEX"), variance=0.5),
        Pram(("EDU", "SEX"), stay=0.8),
    ],
    ids=lambda mask: type(mask).__name__,
)
def test_taken_apart_a_mask_draws_the_same(people, study_key, mask):
    pieces = columns_apart(mask, people)
    assert [piece.columns for piece in pieces] == [(name,) for name in mask.columns]
    whole, apart = (apply(plan, people, key=study_key).masked for plan in (mask, join_masks(pieces)))
    for name in mask.columns:
        np.testing.assert_array_equal(whole.floats(name), apart.floats(name))


def test_correlated_noise_does_not_come_apart(people):
    chain = Chain([CorrelatedNoise(("INCOME", "AGE"), sd_ratio=0.1), Coding(("AGE",), top=80)])
    assert columns_apart(chain, people) == chain.masks
    turned = MixtureNoise(("INCOME", "AGE"), 0.2, 0.05, correlated=True)
    assert columns_apart(turned, people) == (turned,)


def test_constant_columns_are_left_out_where_the_mask_passes_over_them(people):
    flat = people.with_columns(
        {"WAGE": (people.schema["WAGE"], np.full(len(people), 7.0), np.zeros(len(people), np.uint8))}
    )
    mask = IndependentNoise(("AGE", "WAGE"), variance_ratio=0.1, skip_constant=True)
    assert [piece.columns for piece in columns_apart(mask, flat)] == [("AGE",)]

"""compare(): every kind of mask gives figures, right ones where the right ones are known."""

import json
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

import maskwell as mw
from maskwell.errors import BadPlan
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
)
from maskwell.notes import has_code
from maskwell.schema import Column, Schema
from maskwell.table import Table
from maskwell.utility import compare

COUNT = 2_500
KEY = frozenset({"key"})
COLUMNS = (
    Column("income", "continuous", KEY, missing=(-9.0,)),
    Column("other", "continuous", KEY),
    Column("total", "continuous", KEY),
    Column("skewed", "continuous", KEY),
    Column("colour", "category", KEY, categories=("blue", "green", "red")),
    Column("region", "integer", frozenset({"block"})),
    Column("weight", "continuous", frozenset({"weight"})),
)
NUMBERS = ("income", "other", "skewed")
SUMMED = COLUMNS
COLUMNS = tuple(column for column in COLUMNS if column.name != "total")


def people(count=COUNT, seed=0, gaps=0.1, columns=COLUMNS):
    rng = np.random.default_rng(seed)
    shared = rng.standard_normal(count)
    income = 50 + 10 * (0.8 * shared + 0.6 * rng.standard_normal(count))
    other = 20 + 5 * (0.6 * shared + 0.8 * rng.standard_normal(count))
    total = income + other
    if gaps:
        income = np.where(rng.random(count) < gaps, -9.0, income)
    frame = {
        "income": income,
        "other": other,
        "total": total,
        "skewed": np.exp(rng.normal(2, 0.8, count)),
        "colour": rng.choice(["blue", "green", "red"], count, p=[0.6, 0.3, 0.1]),
        "region": rng.integers(0, 8, count),
        "weight": rng.uniform(1, 5, count),
    }
    names = [column.name for column in columns]
    return Table.from_frame(pa.table({name: frame[name] for name in names}), Schema(columns))


MASKS = {
    "independent": IndependentNoise(NUMBERS, variance_ratio=0.3),
    "moments": CorrelatedNoise(NUMBERS, r0=0.8, keep="moments"),
    "log": IndependentNoise(("skewed",), variance_ratio=0.1, transform="log"),
    "mixture": MixtureNoise(NUMBERS, variance_ratio=0.3, within_variance_ratio=0.1),
    "bias": BiasNoise(NUMBERS, bias_sd=0.2, sd_ratio=0.2),
    "changed": Pram(("colour",), stay=0.8),
    "classes": Grouping(("income",), breaks=(40, 60)),
    "grouped": Grouping(("colour",), groups=(("cold", ("blue", "green")), ("warm", ("red",)))),
    "coded": Coding(("skewed",), top=20),
    "noised and coded": Chain([IndependentNoise(NUMBERS, variance_ratio=0.2), Coding(("skewed",), top=20)]),
    "ranks": RankSwap(NUMBERS, window_ratio=0.1),
    "subsample": Chain([IndependentNoise(NUMBERS, variance_ratio=0.3), Subsample(fraction=0.4)]),
    "codes": CodeNoise(("colour",), variance=0.2),
}


@pytest.mark.parametrize("name", MASKS)
def test_every_mask_has_figures_on_one_screen_and_as_json(name):
    masking = apply(MASKS[name], people(), seed=1)
    found = compare(masking)
    told = json.dumps(found.to_dict(), allow_nan=False)
    lines = repr(found).splitlines()
    assert len(lines) <= 45
    assert max(map(len, lines)) <= 100
    assert json.loads(told)["records"] == COUNT
    assert found.judgements
    assert all(sentence.endswith(".") for sentence in found.verdicts)
    assert {column.name for column in found.columns if column.masked} == {
        name for name in masking.card.masked if name in masking.masked.names
    }


@pytest.mark.parametrize("name", ["independent", "moments", "mixture", "bias", "log"])
def test_the_card_gives_means_and_sds_back(name):
    """Within 4 standard errors of what noise leaves in a mean and an sd; the weights make both a fifth larger."""
    masking = apply(MASKS[name], people(), seed=2)
    for column in compare(masking).columns:
        if column.masked:
            left = np.sqrt(1.3 / column.records)
            assert abs(column.mean_corrected - column.mean) < 4 * left * column.sd_after
            tails = 3.0 if column.name == "skewed" else 1.0
            assert abs(column.sd_ratio_corrected - 1) < 4 * left * tails
            assert column.corrected_by
            assert not column.why_not


def test_corrected_figures_are_nearer_to_the_truth_than_released_ones():
    found = compare(apply(IndependentNoise(("income", "other"), variance_ratio=0.5), people(), seed=3))
    for name in ("income", "other"):
        assert found[name].sd_ratio == pytest.approx(np.sqrt(1.5), abs=0.05)
        assert abs(found[name].sd_ratio_corrected - 1) < 0.05
    correlations = found.correlations
    at = correlations.names.index("income"), correlations.names.index("other")
    assert correlations.after[at] == pytest.approx(correlations.before[at] / 1.5, abs=0.06)
    assert correlations.corrected[at] == pytest.approx(correlations.before[at], abs=0.06)


def test_limits_that_cut_noise_off_are_undone_by_the_estimated_distribution():
    rng = np.random.default_rng(4)
    held = np.clip(np.rint(rng.gamma(1.5, 20, 20_000)), 1, 199)
    column = Column("money", "integer", KEY, bottom=0, top=200)
    table = Table.from_frame(pa.table({"money": held.astype(np.int64)}), Schema((column,)))
    found = compare(apply(IndependentNoise(("money",), variance_ratio=0.2), table, seed=1))["money"]
    error = found.sd * np.sqrt(0.2 / 20_000)  # of the mean of the noise
    assert found.corrected_by == "estimated distribution"
    assert abs(found.mean_after - found.mean) > 4 * error  # the cut noise is no longer centred
    assert abs(found.mean_corrected - found.mean) < 4 * error
    assert abs(found.sd_ratio_corrected - 1) < 0.01 < abs(found.sd_ratio - 1)


def limited(high):
    held = np.random.default_rng(4).gamma(1.5, 20, 5_000)
    table = Table.from_frame(pa.table({"money": held}), Schema((Column("money", "continuous", KEY),)))
    mask = IndependentNoise(("money",), variance_ratio=0.2, limits=(("money", None, high),))
    return compare(apply(mask, table, seed=1))


def test_a_correction_that_leans_on_many_values_at_a_limit_says_so():
    """Limits that cut true values off: nothing tells how far beyond they lay, so that the sd is far too small."""
    found = limited(40.0)
    (note,) = [note for note in found.notes if note.code == "utility.values_at_limit"]
    assert note.figures["name"] == "money"
    assert found["money"].notes == (note,)
    assert found["money"].sd_ratio_corrected < 0.8
    assert not has_code(limited(150.0).notes, "utility.values_at_limit")


def test_noise_too_small_for_a_grid_is_taken_off_as_if_there_were_no_limit():
    held = np.random.default_rng(4).integers(1, 100_000, 2_000)
    column = Column("money", "integer", KEY, bottom=0, top=100_000)
    table = Table.from_frame(pa.table({"money": held}), Schema((column,)))
    masking = apply(IndependentNoise(("money",), variance_ratio=1e-6), table, seed=1)
    at_limit = np.where(np.arange(2_000) == 0, 99_999, masking.masked.floats("money"))
    status = np.zeros(2_000, np.uint8)
    masked = masking.masked.with_columns({"money": (masking.masked.schema["money"], at_limit, status)})
    found = compare(replace(masking, masked=masked))["money"]
    assert found.corrected_by == "moments, limits ignored"
    assert found.sd_corrected == pytest.approx(found.sd_after, rel=1e-5)


def test_a_total_is_corrected_by_the_noise_of_its_parts():
    mask = Chain(
        [
            IndependentNoise(("income", "other"), variance_ratio=0.5),
            Recompute("total", {"income": 1, "other": 1}),
        ]
    )
    found = compare(
        apply(mask, people(gaps=0, columns=SUMMED), seed=1), models=["total ~ skewed", "skewed ~ total"]
    )
    assert found["total"].corrected_by == "moments"
    assert found["total"].sd_ratio > 1.08 > 1.04 > found["total"].sd_ratio_corrected
    assert [model.adjusted_by for model in found.models] == ["moment correction"] * 2
    assert all(forecast.widening for forecast in found.forecasts)


def test_changes_of_categories_are_undone_by_their_table():
    found = compare(apply(Pram(("colour",), stay=0.7), people(20_000), seed=1))["colour"]
    assert found.changed == pytest.approx(0.3, abs=0.02)
    assert found.total_variation > 0.05
    for name, share in found.shares.items():
        assert found.shares_corrected[name] == pytest.approx(share, abs=0.025)


def test_weights_enter_means_and_groups():
    table = people()
    weights, other = table.floats("weight"), table.floats("other")
    found = compare(
        apply(IndependentNoise(("income",), variance_ratio=0.1), table, seed=1), groups=["region"]
    )
    assert found.weighted
    assert found["other"].mean == pytest.approx(np.average(other, weights=weights))
    group = found.groups[0]
    here = (table.floats("region") == float(group.level)) & ~np.isnan(table.floats("income"))
    assert group.mean == pytest.approx(np.average(table.floats("income")[here], weights=weights[here]))
    assert group.records == here.sum()


def test_groups_of_the_schema_come_first_and_those_too_small_are_passed_over():
    table = people()
    schema = table.schema.changed({"region": replace(table.schema["region"], roles=frozenset({"group"}))})
    masking = apply(MASKS["independent"], replace(table, schema=schema), seed=1)
    assert {group.group for group in compare(masking).groups} == {"region"}
    assert compare(masking).group_count == 8 * 3
    few = compare(apply(IndependentNoise(("income",), variance_ratio=0.1), people(40), seed=1))
    assert few.group_count < 8
    assert has_code(few.notes, "utility.small_levels")


def test_open_shares_are_told_before_and_after():
    found = compare(apply(MASKS["coded"], people(), seed=1))
    assert found["skewed"].open_share == 1 > found["skewed"].open_share_after
    assert found["income"].open_share == found["income"].open_share_after == pytest.approx(0.9, abs=0.02)
    assert has_code(found.notes, "utility.closed_values")


def test_no_mask_moves_no_figure():
    masking = apply(IndependentNoise(("income",), variance_ratio=0.1), people(), seed=1)
    found = compare(replace(masking, masked=masking.truth, card=mw.NoiseCard()))
    assert all(column.ks == 0 or np.isnan(column.ks) for column in found.columns)
    assert found.correlations.largest == 0
    assert np.isnan(found.il1s)
    assert all(group.overlap == 1 for group in found.groups)


def test_exchanged_columns_keep_their_own_figures(make_people):
    fields = ("INCOME", "TAX", "AGE")
    masking = apply(CorrelatedNoise(fields, sd_ratio=0.3), make_people(), seed=5)
    attack = mw.Linkage(fields=fields, match_blocks=("REGION", "SEX"), weights=mw.attacks.Fixed())
    swapped = mw.swap(masking, attack, mw.tolerances.SwapShare(0.25))
    found, before = compare(swapped), compare(masking)
    assert swapped.swapping.swaps > 0
    names = found.correlations.names
    inside, across = (names.index("INCOME"), names.index("TAX")), (names.index("INCOME"), names.index("WAGE"))
    assert np.isfinite(found.correlations.corrected[inside])
    assert np.isnan(found.correlations.corrected[across])
    assert np.isfinite(before.correlations.corrected[across])
    assert has_code(found.notes, "utility.exchanged_values")


def test_a_masking_made_elsewhere_without_a_card_is_compared():
    masking = apply(MASKS["independent"], people(), seed=1)
    bare = replace(masking, card=mw.NoiseCard())
    found = compare(bare)
    assert found["income"].masked
    assert np.isnan(found["income"].sd_corrected)
    assert "card" in found["income"].why_not
    assert found["income"].ks == compare(masking)["income"].ks


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"groups": ["regoin"]}, "did you mean 'region'"),
        ({"groups": ["income"]}, "it is an amount"),
        ({"groups": "region"}, "a list of columns"),
        ({"models": ["incme ~ other"]}, "did you mean 'income'"),
        ({"models": ["income"]}, "a model is a formula"),
        ({"models": [3]}, "a formula or a Model"),
    ],
)
def test_bad_questions_are_refused_in_one_sentence(given, said):
    masking = apply(IndependentNoise(("income",), variance_ratio=0.1), people(60), seed=1)
    with pytest.raises(BadPlan, match=said):
        compare(masking, **given)


def test_it_is_for_maskings_only():
    with pytest.raises(BadPlan, match="needs a masking"):
        compare(people(60))

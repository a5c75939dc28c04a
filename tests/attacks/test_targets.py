"""Which records an intruder holds: a keyed sample, or those at quantiles, held against plain sorting."""

from __future__ import annotations

import warnings
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

import maskwell as mw
from maskwell.attacks import attack_from_dict
from maskwell.attacks.answers import intruder_records
from maskwell.attacks.targets import choice_from_dict, standardised_values
from maskwell.errors import BadPlan
from maskwell.notes import Note
from maskwell.schema import Column, Schema
from maskwell.table import Table

AMOUNTS = ("INCOME", "TAX", "AGE")
NEAREST = mw.NearestRecord(match_blocks=())


@pytest.fixture(scope="module")
def masking(people):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", mw.MaskwellWarning)
        return mw.apply(mw.CorrelatedNoise(AMOUNTS, sd_ratio=0.3), people, seed=5)


def amounts(**columns):
    described = (
        Column("ID", "text", frozenset({"id"})),
        *(Column(name, "continuous", frozenset({"key"})) for name in columns),
    )
    arrays = {name: pa.array(np.asarray(v, float), from_pandas=True) for name, v in columns.items()}
    ids = [f"t{i}" for i in range(len(next(iter(arrays.values()))))]
    return Table.from_frame(pa.table({"ID": ids, **arrays}), Schema(described))


def chosen(targets, table, order=None, **options):
    plan = mw.NearestRecord(targets=targets, **options)
    return plan.target_records(table, None if order is None else lambda _: np.asarray(order))


# Samples.


def test_a_sample_is_drawn_by_the_key_and_not_by_the_order_of_the_file(people, masking):
    plan = replace(NEAREST, targets=mw.attacks.Sample(30))
    drawn, numbers, _ = intruder_records(plan, masking, None)
    assert len(set(drawn.ids.to_pylist())) == 30
    assert (np.diff(numbers) > 0).all()
    turned = mw.apply(masking.mask, people.take(np.arange(len(people))[::-1]), key=masking.key)
    assert set(intruder_records(plan, turned, None)[0].ids.to_pylist()) == set(drawn.ids.to_pylist())
    other = mw.apply(masking.mask, people, seed=6)
    assert set(intruder_records(plan, other, None)[0].ids.to_pylist()) != set(drawn.ids.to_pylist())


def test_every_record_is_as_likely_in_a_sample(make_amounts):
    table, counts, draws = make_amounts(40), np.zeros(40), 400
    for seed in range(draws):
        plan = replace(NEAREST, targets=mw.attacks.Sample(10))
        counts[
            intruder_records(plan, mw.apply(mw.IndependentNoise("A", variance=1.0), table, seed=seed), None)[
                1
            ]
        ] += 1
    expected = draws * 10 / 40
    assert counts.sum() == draws * 10
    # each count is binomial; 40 of them at 4.5 sds are all inside but once in 4,000 seeds of this test
    assert (np.abs(counts - expected) <= 4.5 * np.sqrt(expected * 0.75)).all()


def test_a_smaller_sample_is_part_of_a_larger_one(masking):
    small, large = (
        set(intruder_records(replace(NEAREST, targets=mw.attacks.Sample(k)), masking, None)[1])
        for k in (10, 50)
    )
    assert small < large


def test_a_sample_larger_than_the_file_is_the_file(people, masking):
    risk = mw.attack(replace(NEAREST, targets=mw.attacks.Sample(5_000)), masking)
    assert (risk.targets, risk.interval) == (len(people), None)
    assert risk.rate == mw.attack(NEAREST, masking).rate


def test_a_sample_among_the_records_of_small_blocks(make_people):
    people = make_people(400)
    plan = mw.NearestRecord(largest_target_block=70, target_blocks=("EDU", "SEX"))
    small = plan.target_records(people)
    some = replace(plan, targets=mw.attacks.Sample(5)).target_records(people, lambda _: np.arange(400)[::-1])
    np.testing.assert_array_equal(some, small[-5:])


# Quantiles.


def test_the_record_of_a_quantile_is_the_one_of_that_rank():
    table = amounts(A=[5.0, 1.0, 4.0, 2.0, 3.0])
    at = mw.attacks.Quantiles((0.2, 0.4, 0.5, 0.81, 1.0), of="A")
    with pytest.raises(BadPlan, match="the same of 5 records"):
        chosen(at, table)
    np.testing.assert_array_equal(chosen(mw.attacks.Quantiles((0.2, 0.4, 0.5), of="A"), table), [1, 3, 4])
    np.testing.assert_array_equal(chosen(mw.attacks.Quantiles((1.0, 0.61), of="A"), table), [0, 2])
    np.testing.assert_array_equal(chosen(mw.attacks.Quantiles(1e-9, of="A"), table), [1])


def test_no_rounding_moves_a_quantile():
    table = amounts(A=np.arange(1000.0))
    for tenths in range(1, 1001):
        assert chosen(mw.attacks.Quantiles(tenths / 1000, of="A"), table)[0] == tenths - 1


def test_quantiles_of_the_distance_and_of_the_signed_row_sum(people):
    """The record of smallest row sum is far below the mean, not near the centre."""
    values = people.values(AMOUNTS)
    z = (values - np.nanmean(values, axis=0)) / np.nanstd(values, axis=0, ddof=1)
    measures = {"distance": np.sqrt((z**2).sum(axis=1)), "row sum": z.sum(axis=1)}
    at = tuple(np.arange(1, 10) / 10)
    for of, measure in measures.items():
        ranked = np.argsort(measure)[: np.count_nonzero(~np.isnan(measure))]
        expected = [ranked[int(np.ceil(p * len(ranked) - 1e-9)) - 1] for p in at]
        np.testing.assert_array_equal(chosen(mw.attacks.Quantiles(at, of=of), people), expected)
    least = chosen(mw.attacks.Quantiles(1e-9, of="row sum"), people)[0]
    assert measures["row sum"][least] == np.nanmin(measures["row sum"]) < -3


def test_units_do_not_matter_for_distance_and_row_sum():
    rng = np.random.default_rng(1)
    a, b = rng.standard_normal((2, 101))
    for of in ("distance", "row sum"):
        at = mw.attacks.Quantiles((0.1, 0.5, 0.9, 1.0), of=of)
        plain, stretched = chosen(at, amounts(A=a, B=b)), chosen(at, amounts(A=1e3 * a + 7, B=1e-4 * b))
        np.testing.assert_array_equal(plain, stretched)


def test_equal_values_go_by_the_keyed_order():
    table = amounts(A=[1.0, 1.0, 1.0, 0.0])
    at = mw.attacks.Quantiles((0.5, 0.75, 1.0), of="A")
    np.testing.assert_array_equal(chosen(at, table, order=[0, 1, 2, 3]), [0, 1, 2])
    np.testing.assert_array_equal(chosen(at, table, order=[2, 3, 0, 1]), [2, 0, 1])


def test_records_that_are_not_open_have_no_rank():
    table = amounts(A=[3.0, np.nan, 1.0, 2.0], B=[1.0, 2.0, np.nan, 4.0])
    np.testing.assert_array_equal(chosen(mw.attacks.Quantiles((0.3, 0.6, 1.0), of="A"), table), [2, 3, 0])
    np.testing.assert_array_equal(np.sort(chosen(mw.attacks.Quantiles((0.5, 1.0)), table)), [0, 3])


def test_a_code_is_not_a_value(people):
    """The top code of INCOME is the largest number in the file, and no record at it is open."""
    top = chosen(mw.attacks.Quantiles(1.0, of="INCOME"), people)[0]
    assert people.status("INCOME")[top] == 0
    assert people.floats("INCOME")[top] == np.nanmax(people.floats("INCOME"))


def test_columns_without_spread_or_open_values_raise_no_warning():
    table = amounts(A=[1.0, 2.0, 3.0], B=[7.0, 7.0, 7.0], C=[np.nan] * 3, D=[1.0, np.nan, np.nan])
    assert chosen(mw.attacks.Quantiles(1.0, of="row sum", columns=("A", "B")), table)[0] == 2
    assert chosen(mw.attacks.Quantiles(1.0, columns=("A", "D")), table)[0] == 0
    for column in ("C", ("A", "C")):
        with pytest.raises(BadPlan, match="no record is open"):
            chosen(mw.attacks.Quantiles(0.5, columns=column), table)
    with pytest.raises(BadPlan, match="no record is open"):
        chosen(mw.attacks.Quantiles(0.5, of="C"), table)


def test_standardised_values_are_those_of_numpy():
    values = np.random.default_rng(3).standard_normal((50, 3)) * [1.0, 1e200, 1e-200]
    values[::7, 0] = np.nan
    with np.errstate(over="ignore", under="ignore"):
        plain = values / [1.0, 1e200, 1e-200]
    expected = (plain - np.nanmean(plain, axis=0)) / np.nanstd(plain, axis=0, ddof=1)
    np.testing.assert_allclose(standardised_values(values), expected, rtol=1e-9, atol=1e-12)
    assert not standardised_values(np.full((5, 1), 0.1)).any()


def test_targets_at_quantiles_keep_their_order_in_the_answer(masking, people):
    plan = replace(NEAREST, targets=mw.attacks.Quantiles((0.9, 0.1, 0.5), of="INCOME"))
    found = mw.attack(plan, masking).table["target_id"].to_pylist()
    values = dict(zip(people.ids.to_pylist(), people.floats("INCOME"), strict=True))
    assert values[found[1]] < values[found[2]] < values[found[0]]


# Refusals and plain data.


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: mw.attacks.Sample(0), "at least 1"),
        (lambda: mw.attacks.Sample(2.5), "whole number"),
        (lambda: mw.attacks.Sample(True), "whole number"),
        (lambda: mw.attacks.Quantiles(()), "at least one quantile"),
        (lambda: mw.attacks.Quantiles((0.5, 0.0)), "share above 0"),
        (lambda: mw.attacks.Quantiles(1.5), "share above 0"),
        (lambda: mw.attacks.Quantiles(float("nan")), "share above 0"),
        (lambda: mw.attacks.Quantiles("0.5"), "share above 0"),
        (lambda: mw.attacks.Quantiles((0.5, 0.5)), r"quantile 0\.5 is named twice"),
        (lambda: mw.attacks.Quantiles(0.5, columns=("A", "A")), "'A' is named twice"),
        (lambda: mw.attacks.Quantiles(0.5, columns=()), "at least one column"),
        (lambda: mw.attacks.Quantiles(0.5, columns=3), "names of columns"),
        (lambda: mw.attacks.Quantiles(0.5, columns=(3,)), "names of columns"),
        (lambda: mw.attacks.Quantiles(0.5, of=3), "a column's name"),
        (lambda: mw.attacks.Quantiles(0.5, of="A", columns=("B",)), "leave them out"),
        (lambda: mw.NearestRecord(targets=10), "Sample or Quantiles"),
        (lambda: choice_from_dict({"sample": 3, "of": "A"}), "no option 'of'"),
        (lambda: choice_from_dict({"at": [0.5], "column": "A"}), "did you mean 'columns'"),
    ],
)
def test_choices_that_make_no_sense(make, text):
    with pytest.raises(BadPlan, match=text):
        make()


@pytest.mark.parametrize(
    ("choice", "text"),
    [
        (mw.attacks.Quantiles(0.5, of="INCOM"), "did you mean 'INCOME'"),
        (mw.attacks.Quantiles(0.5, columns=("TAXX",)), "did you mean 'TAX'"),
        (mw.attacks.Quantiles(0.5, of="ID"), "is text, not a number"),
        (mw.attacks.Quantiles(0.5, columns=("INCOME", "ID")), "is text, not a number"),
    ],
)
def test_columns_that_have_no_quantiles_are_refused_in_a_sentence(choice, text, people):
    with pytest.raises(BadPlan, match=text) as refusal:
        chosen(choice, people)
    assert len(refusal.value.problems) == 1


def test_a_table_without_number_keys_needs_columns(people):
    with pytest.raises(BadPlan, match="name the columns"):
        chosen(mw.attacks.Quantiles(0.5), people.select(["ID", "SEX"]))


def test_one_name_and_one_figure_need_no_list(people):
    assert mw.attacks.Quantiles(0.5, columns="TAX") == mw.attacks.Quantiles((0.5,), columns=("TAX",))
    assert mw.attacks.Quantiles(np.array([0.25, 0.5])) == mw.attacks.Quantiles((0.25, 0.5))
    assert hash(mw.attacks.Quantiles(np.array([0.25, 0.5]))) == hash(mw.attacks.Quantiles([0.25, 0.5]))


@pytest.mark.parametrize(
    "choice",
    [
        mw.attacks.Sample(7),
        mw.attacks.Quantiles(0.5),
        mw.attacks.Quantiles((0.1, 0.9), of="row sum", columns=("A", "B")),
        mw.attacks.Quantiles(1, of="A"),
    ],
)
def test_choices_come_back_from_plain_data(choice):
    plan = mw.NearestRecord(targets=choice)
    assert attack_from_dict(plan.to_dict()) == plan
    assert choice_from_dict(choice.to_dict()) == choice


def test_a_target_file_and_a_choice_contradict_each_other(people, masking):
    with pytest.raises(BadPlan, match="not both"):
        mw.attack(replace(NEAREST, targets=mw.attacks.Sample(3)), masking, targets=people)


@pytest.mark.parametrize(
    ("data", "text"),
    [
        ({"attack": "NearestRecrod"}, "did you mean 'NearestRecord'"),
        ({"attack": "NearestRecord", "fieldz": ["A"]}, "no option 'fieldz'.*did you mean 'fields'"),
        ({"attack": "Linkage", "weights": {"weights": "ME"}}, "no weights 'ME'"),
        ({"attack": "Linkage", "rule": {"rule": "Rel"}}, "no agreement rule 'Rel'"),
    ],
)
def test_plain_data_that_is_no_attack(data, text):
    with pytest.raises(BadPlan, match=text):
        attack_from_dict(data)


def test_options_written_by_hand_are_understood():
    """As a plan file has them: weights and rules by name, also where a column is called like an option."""
    weights = {"attack": "NearestRecord", "weights": {"weights": 2.0, "at": 1.0}}
    assert attack_from_dict(weights) == mw.NearestRecord(weights={"weights": 2.0, "at": 1.0})
    rules = {"attack": "Linkage", "rules": {"INCOME": {"rule": "Absolute", "amount": 5}}}
    assert attack_from_dict(rules) == mw.Linkage(rules={"INCOME": mw.attacks.Absolute(5)})


@pytest.mark.parametrize("options", [{"direction": "to_original"}, {"assignment": "one-to-one"}], ids=str)
@pytest.mark.parametrize("kind", [mw.NearestRecord, mw.BayesIntruder, mw.Linkage])
def test_some_targets_are_judged_among_all_candidates(kind, options, people):
    """Where records compete or are searched among, choosing some of them must not make the others go away."""
    more = {"claims": "all links"} if kind is mw.Linkage else {}
    plan = kind(match_blocks=("REGION",), fields=("INCOME", "TAX", "AGE"), **options, **more)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", mw.MaskwellWarning)
        masking = mw.apply(mw.CorrelatedNoise(("INCOME", "TAX", "AGE"), sd_ratio=0.3), people, seed=5)
        whole = mw.attack(plan, masking)
        some = mw.attack(replace(plan, targets=mw.attacks.Sample(60)), masking)
    names = "target_id" if plan.to_masked else "linked_id"
    assert some.targets == 60
    rows = {row["target_id"]: row for row in whole.table.to_pylist()}
    assert 0 < some.table.num_rows <= 60
    for row in some.table.to_pylist():
        assert rows[row["target_id"]][names] == row[names]
        assert rows[row["target_id"]]["expected_correct"] == row["expected_correct"]


def test_masked_columns_are_not_among_the_blocks_by_themselves(people):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", mw.MaskwellWarning)
        masks = mw.CorrelatedNoise(("INCOME", "TAX"), sd_ratio=0.1), mw.Pram("REGION", stay=0.5)
        masking = mw.apply(mw.Chain(masks), people, seed=5)
        risk = mw.attack(mw.NearestRecord(), masking)
    assert risk.attack.match_blocks == ()
    assert Note("attacks.masked_blocks", {"columns": ("REGION",)}) in risk.notes
    assert risk.rate == mw.attack(mw.NearestRecord(match_blocks=()), masking).rate > 0.05

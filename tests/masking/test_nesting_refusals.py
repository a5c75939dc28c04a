"""What cannot be nested in an earlier release, and what the same plan must check again."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from maskwell.card import SwapParameters
from maskwell.errors import BadPlan
from maskwell.keys import Key
from maskwell.laws import Power
from maskwell.masking import apply
from maskwell.masks import (
    BiasNoise,
    Chain,
    CodeNoise,
    Coding,
    CorrelatedNoise,
    IndependentNoise,
    MixtureNoise,
    Pram,
    RankSwap,
    Recompute,
    Subsample,
)
from maskwell.schema import Column, Schema
from maskwell.table import Table

MakeAmounts = Callable[..., Table]
AB = ("A", "B")
GROWING = Power(1.0, 1.0)
TOP_1 = Coding("A", top=1.0)


def independent(*variances: float, **options: Any) -> IndependentNoise:
    return IndependentNoise(AB[: len(variances)], variance=variances, **options)


@pytest.fixture
def categories() -> Table:
    schema = Schema(
        (Column("ID", "text", frozenset({"id"})), Column("C", "category", categories=tuple("abcd")))
    )
    drawn = np.random.default_rng(8).choice(list("abcd"), 500)
    return Table.from_frame(pa.table({"ID": [f"{i}" for i in range(500)], "C": drawn}), schema)


def test_less_noise_is_refused_in_any_direction(make_amounts: MakeAmounts, study_key: Key):
    first = apply(CorrelatedNoise(AB, sd_ratio=0.5), make_amounts(), key=study_key)
    for plan in (CorrelatedNoise(AB, sd_ratio=0.4), independent(0.26, 0.26)):
        with pytest.raises(BadPlan, match="smaller than the earlier one in some direction"):
            apply(plan, make_amounts(), earlier=first)


@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
def test_less_noise_is_refused_whatever_the_scale_of_the_column(
    make_amounts: MakeAmounts, study_key: Key, scale: float
):
    """A column in small units must not hide behind one in large units."""
    table = make_amounts(200)
    first = apply(independent(1e8, 4 * scale**2), table, key=study_key)
    with pytest.raises(BadPlan, match="smaller than the earlier one"):
        apply(independent(4e8, scale**2), table, earlier=first)
    assert apply(independent(4e8, 5 * scale**2), table, earlier=first).number == 2


@pytest.mark.parametrize(
    ("before", "after", "reason"),
    [
        (independent(0.5, 0.5), independent(0.5), "'B' was masked .* now be released in clear"),
        (independent(0.5), IndependentNoise("A", variance=1.0, shape="laplace"), "of another kind"),
        (independent(0.5), RankSwap("A", 0.1), "of another kind"),
        (independent(0.5), BiasNoise("A", bias_sd=0.5, sd=1.0), "of another kind"),
        (independent(0.5), IndependentNoise("A", variance=1.0, transform="log", shift=9), "of another kind"),
        (CorrelatedNoise(AB, r0=0.9, keep="moments"), CorrelatedNoise(AB, r0=0.8, keep="moments"), "of another kind"),
        (MixtureNoise(AB, 0.5, 0.1), MixtureNoise(AB, 0.9, 0.1), "of another kind"),
        (Chain((independent(0.5), IndependentNoise("B", variance=1.0))), independent(1.0, 2.0), "keep its groups"),
        (independent(0.5, 0.5), Chain((independent(1.0), IndependentNoise("B", variance=1.0))), "keep its groups"),
        (independent(0.5, spread=GROWING), independent(1.0, spread=GROWING), "depends on the value"),
        (Chain((independent(0.5), TOP_1)), Chain((independent(1.0), Coding("A", top=2.0))), "codes further out"),
        (Coding("A", top=1.0, bottom=-1.0), Coding("A", top=1.0), "codes further out"),
        (Chain((independent(0.5), Subsample(0.5))), Chain((independent(0.5), Subsample(0.6))), "smaller sample"),
        (Chain((independent(0.5), Subsample(0.5))), independent(0.5), "smaller sample"),
    ],
)  # fmt: skip
def test_what_cannot_be_nested_is_refused(
    make_amounts: MakeAmounts, study_key: Key, before: Any, after: Any, reason: str
):
    table = make_amounts(300)
    first = apply(before, table, key=study_key, exact=True)
    with pytest.raises(BadPlan, match=reason):
        apply(after, table, earlier=first, exact=True)


def test_a_finer_unit_is_refused(make_amounts: MakeAmounts, study_key: Key):
    table = make_amounts(300)
    units = [replace(table.schema["A"], unit=unit) for unit in (0.5, 0.25, 1.0)]
    tables = [replace(table, schema=table.schema.changed({"A": column})) for column in units]
    first = apply(independent(0.5), tables[0], key=study_key)
    with pytest.raises(BadPlan, match="'A' would leave on a finer unit"):
        apply(independent(1.0), tables[1], earlier=first)
    assert apply(independent(1.0), tables[2], earlier=first).masked.schema["A"].unit == 1.0


def test_every_refusal_is_listed_at_once(make_amounts: MakeAmounts, study_key: Key):
    table = make_amounts(300, names="ABC")
    earlier = apply(
        Chain((independent(1.0, 1.0), IndependentNoise("C", variance=1.0), Subsample(0.5))),
        table,
        key=study_key,
    )
    with pytest.raises(BadPlan) as refusal:
        apply(independent(0.5, 1.0), table, earlier=earlier)
    assert len(refusal.value.problems) == 3


def test_a_total_must_be_computed_as_before_or_dropped(people: Table, study_key: Key):
    parts = IndependentNoise(("WAGE", "OTHER"), variance_ratio=0.1)
    plan = Chain((parts, Recompute("TOTAL", ("WAGE", "OTHER"))))
    first = apply(plan, people, key=study_key)
    with pytest.raises(BadPlan, match="'TOTAL' was computed from its parts"):
        apply(parts, people, earlier=first)
    without = people.schema.changed({"TOTAL": replace(people.schema["TOTAL"], drop=True)})
    assert apply(parts, replace(people, schema=without), earlier=first).number == 2


def test_a_masked_column_may_be_dropped(make_amounts: MakeAmounts, study_key: Key):
    table = make_amounts(300)
    first = apply(Chain((independent(0.5), IndependentNoise("B", variance=1.0))), table, key=study_key)
    dropped = replace(table, schema=table.schema.changed({"B": replace(table.schema["B"], drop=True)}))
    assert apply(independent(0.7), dropped, earlier=first).release.table.names == ("ID", "A")


def test_only_records_with_ids_of_the_same_series_and_key_can_be_nested(
    make_amounts: MakeAmounts, study_key: Key
):
    table = make_amounts(300)
    first = apply(independent(0.5), table, key=study_key)
    with pytest.raises(BadPlan, match="only where an id column"):
        apply(independent(0.5), table.select(AB), earlier=first)
    with pytest.raises(BadPlan, match="belongs to series 'default', this file to 'other'"):
        apply(independent(0.5), replace(table, schema=replace(table.schema, series="other")), earlier=first)
    with pytest.raises(BadPlan, match="uses the key of the earlier one"):
        apply(independent(0.5), table, earlier=first, key=Key.from_os())
    with pytest.raises(BadPlan, match="has no key"):
        apply(independent(0.5), table, earlier=replace(first, key=None))
    swapped = replace(first, card=replace(first.card, swapped=SwapParameters(0.1, ("A",))))
    with pytest.raises(BadPlan, match="were swapped"):
        apply(independent(0.5), table, earlier=swapped)
    assert apply(independent(0.5), table, earlier=first, key=study_key).number == 2


def test_the_same_plan_is_checked_against_the_new_data(make_amounts: MakeAmounts, study_key: Key):
    table = make_amounts(300)
    plan = IndependentNoise("A", variance=0.5, transform="log", shift=9)
    first = apply(plan, table, key=study_key)
    column, low = table.schema["A"], table.values(["A"])[:, 0] - 20
    with pytest.raises(BadPlan, match="logarithm is undefined"):
        apply(plan, table.with_columns({"A": (column, low, np.zeros(300, np.uint8))}), earlier=first)


def test_the_same_plan_with_other_categories_is_refused(categories: Table, study_key: Key):
    other = replace(
        categories,
        schema=categories.schema.changed({"C": replace(categories.schema["C"], categories=tuple("abcde"))}),
    )
    for plan in (Pram("C", stay=0.8), CodeNoise("C", variance=0.5)):
        first = apply(plan, categories, key=study_key)
        with pytest.raises(BadPlan, match="of another kind"):
            apply(plan, other, earlier=first)


def test_the_same_plan_takes_a_lower_top_code_into_account(make_amounts: MakeAmounts, study_key: Key):
    table = make_amounts(300)
    tops = [replace(table.schema["A"], top=top, unit=0.01) for top in (9.0, 6.0)]
    high, low = (replace(table, schema=table.schema.changed({"A": column})) for column in tops)
    plan = independent(4.0)
    first = apply(plan, high, key=study_key)
    second = apply(plan, low, earlier=first)
    assert np.nanmax(second.masked.values(["A"])) <= 5.99
    unclamped = first.masked.values(["A"])[:, 0] <= 5.99
    assert np.array_equal(second.masked.values(["A"])[unclamped], first.masked.values(["A"])[unclamped])


def test_smaller_samples_are_nested_in_larger_ones(make_amounts: MakeAmounts, study_key: Key):
    table = make_amounts(1000)
    first = apply(Chain((independent(0.5), Subsample(0.5))), table, key=study_key)
    second = apply(Chain((independent(0.5), Subsample(0.3))), table, earlier=first)
    assert set(second.kept.tolist()) < set(first.kept.tolist())


# --- columns that skipped a release

ONLY_B = IndependentNoise("B", variance=1.0)


@pytest.mark.parametrize(
    ("before", "after", "reason"),
    [
        (independent(2.0, 2.0), independent(4.0, 1.9), "smaller than the earlier one"),
        (Chain((independent(1.0), ONLY_B)), Chain((independent(0.25), ONLY_B)), "'A' would leave on a finer unit"),
        (Chain((independent(1.0), ONLY_B)), ONLY_B, "'A' was masked in the earlier release and would now be"),
        (CorrelatedNoise(AB, sd_ratio=0.5), CorrelatedNoise(AB, sd_ratio=0.2), "smaller than the earlier one"),
        (CorrelatedNoise(AB, sd_ratio=0.5), ONLY_B, "keep its groups"),
        (CorrelatedNoise(AB, sd_ratio=0.5), Chain((independent(4.0), ONLY_B)), "keep its groups"),
        (independent(1.0), IndependentNoise("A", variance=4.0, shape="laplace"), "of another kind"),
        (independent(1.0), RankSwap("A", 0.1), "of another kind"),
        (RankSwap("A", 0.1), RankSwap("A", 0.1), "left these columns out: they cannot return"),
        (Coding("A", top=1.0), Coding("A", top=2.0), "codes further out"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("skipped", [1, 2])
def test_what_cannot_be_nested_is_refused_after_a_release_without_the_column(
    make_amounts: MakeAmounts, study_key: Key, before: Any, after: Any, reason: str, skipped: int
):
    """With the last release alone in view, the same noise would come back at another scale, and cancel."""
    table = make_amounts(300, names="ABC")
    release = apply(before, table, key=study_key, exact=True)
    for _ in range(skipped):
        plan = IndependentNoise("C", variance=1.0)
        release = apply(plan, table.select(["ID", "C"]), earlier=release, exact=True)
    with pytest.raises(BadPlan, match=reason):
        apply(Chain((after, IndependentNoise("C", variance=1.0))), table, earlier=release, exact=True)


def test_a_total_that_skipped_a_release_must_be_computed_as_before(people: Table, study_key: Key):
    parts = IndependentNoise(("WAGE", "OTHER"), variance_ratio=0.1)
    plan = Chain((parts, Recompute("TOTAL", ("WAGE", "OTHER"))))
    first = apply(plan, people, key=study_key)
    second = apply(parts, people.select([name for name in people.names if name != "TOTAL"]), earlier=first)
    with pytest.raises(BadPlan, match="'TOTAL' was computed from its parts"):
        apply(parts, people, earlier=second)
    assert apply(plan, people, earlier=second).masked == first.masked

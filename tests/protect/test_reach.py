"""Columns that must move together."""

from __future__ import annotations

from dataclasses import replace

import pytest

import maskwell as mw
from maskwell.errors import BadPlan
from maskwell.protect.reach import reach_of

MASK = mw.Chain(
    [
        mw.CorrelatedNoise(("INCOME", "TAX"), sd_ratio=0.1),
        mw.IndependentNoise(("WAGE", "OTHER"), variance_ratio=0.01),
        mw.Recompute("TOTAL", ["WAGE", "OTHER"]),
        mw.Pram("EDU", stay=0.9),
    ]
)


@pytest.mark.parametrize(
    ("fields", "columns"),
    [
        (("INCOME",), ("INCOME", "TAX")),
        (("AGE",), ("AGE",)),
        (("TOTAL",), ("WAGE", "OTHER", "TOTAL")),
        (("OTHER", "EDU"), ("EDU", "WAGE", "OTHER", "TOTAL")),
    ],
)
def test_fields_are_widened_to_what_was_masked_together(masked, fields, columns):
    masking = masked(MASK)
    reach = reach_of(masking, mw.Linkage(match_blocks=("REGION",)), fields)
    assert (reach.fields, reach.columns, reach.blocks) == (fields, columns, ("REGION",))


def test_an_identity_in_clear_columns_is_kept(masking):
    assert reach_of(masking, mw.Linkage(match_blocks=()), ("WAGE",)).columns == ("WAGE", "OTHER", "TOTAL")


def test_the_sum_holds_after_a_swap(masked):
    plan = mw.Linkage(
        fields=("TOTAL",),
        match_blocks=("REGION",),
        weights=mw.attacks.Fixed(),
        rule=mw.attacks.Relative(0.001),
    )
    swapped = mw.swap(masked(MASK), plan, mw.tolerances.SwapShare(0.5))
    values = swapped.masked.values(("WAGE", "OTHER", "TOTAL"))
    assert swapped.swapping.swaps > 0
    assert (values[:, 0] + values[:, 1] == values[:, 2]).all()
    assert swapped.masked.array("WAGE") != swapped.unswapped.array("WAGE")


@pytest.mark.parametrize(
    ("fields", "said"),
    [((), "names no fields"), (("HH",), "'HH' says whose record it is"), (("AG",), "'AG'")],
)
def test_what_cannot_move_is_refused(masking, fields, said):
    with pytest.raises(BadPlan) as refusal:
        reach_of(masking, mw.Linkage(), fields)
    assert said in str(refusal.value)


def test_categories_move_by_their_released_values(masked, linkage):
    """PRAM and groups as compared fields: codes of the release move, and shares in the file stay."""
    mask = mw.Chain([mw.Pram("EDU", stay=0.9), mw.Grouping("AGE", breaks=(30, 50, 70))])
    plan = replace(linkage, fields=("EDU", "INCOME", "TAX"), rule=mw.attacks.Relative(0.001))
    swapped = mw.swap(masked(mask), plan, mw.MaxRate(0.5), exempt_values="he is after the rest")
    assert swapped.swapping.columns == ("INCOME", "TAX", "EDU")
    shares = [row for row in swapped.swapping.covariances.to_pylist() if row["column"] == "EDU is low"]
    assert all(row["before"] == row["after"] for row in shares if row["both_swapped"])
    assert swapped.card.logpdf(swapped.masked, swapped.truth).min() > -float("inf")

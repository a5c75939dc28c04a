"""Totals computed from released parts, and identities that a plan would break."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from maskwell.card import NoiseCard
from maskwell.errors import BadPlan
from maskwell.keys import Key
from maskwell.masking import apply
from maskwell.masking.totals import in_order, recompute_totals
from maskwell.masks import Chain, CorrelatedNoise, IndependentNoise, Recompute
from maskwell.schema import MISSING, OPEN, TOP_CODED, Column, Schema
from maskwell.table import Table


def amounts(*columns: Column, **values: Any) -> Table:
    return Table.from_frame(pa.table(values), Schema(columns))


def nested_totals(records: int = 60) -> Table:
    """NET = PAY + RENT, ALL = NET + GIFT: a total of a total."""
    rng = np.random.default_rng(3)
    pay, rent, gift = (rng.integers(1, 1000, records).astype(float) for _ in range(3))
    values = {"PAY": pay, "RENT": rent, "GIFT": gift, "NET": pay + rent, "ALL": pay + rent + gift}
    return amounts(*(Column(name, "continuous", unit=1) for name in values), **values)


def test_sums_come_after_the_sums_of_their_parts():
    sums = (
        ("ALL", (("NET", 1.0), ("GIFT", 1.0))),
        ("NET", (("PAY", 1.0),)),
        ("X", (("ALL", 1.0), ("NET", 1.0))),
    )
    assert [total for total, _ in in_order(sums)] == ["NET", "ALL", "X"]


@pytest.mark.parametrize(
    ("sums", "reason"),
    [
        ((("A", (("B", 1.0),)), ("B", (("A", 1.0),))), "A, B are recomputed from one another in a circle"),
        ((("A", (("B", 1.0),)), ("A", (("C", 1.0),))), "recomputed twice"),
    ],
)
def test_circles_and_doubled_sums_are_refused(sums: Any, reason: str):
    with pytest.raises(BadPlan, match=reason):
        in_order(sums)


@pytest.mark.parametrize("turned", [1, -1])
def test_a_total_of_a_total_never_uses_the_true_one(turned: int):
    """In whichever order the card names them: else the true NET would stand in ALL."""
    table = nested_totals()
    sums = (("ALL", (("NET", 1.0), ("GIFT", 1.0))), ("NET", (("PAY", 1.0), ("RENT", 2.0))))[::turned]
    pay, rent, gift, net, everything = (
        recompute_totals(table, NoiseCard(recomputed=sums)).values(table.names).T
    )
    assert np.array_equal(net, pay + 2 * rent)
    assert np.array_equal(everything, pay + 2 * rent + gift)


def test_an_identity_is_settled_only_by_the_sums_it_follows_from(study_key: Key):
    table = nested_totals()
    noise = IndependentNoise(("PAY", "RENT", "GIFT"), variance=400.0)
    with pytest.raises(
        BadPlan, match="ALL"
    ):  # recomputing NET does not hide that ALL - GIFT gives the true NET
        apply(Chain((noise, Recompute("NET", ("PAY", "RENT")))), table, key=study_key)
    both = (Recompute("NET", ("PAY", "RENT")), Recompute("ALL", ("PAY", "RENT", "GIFT")))
    assert apply(Chain((noise, *both)), table, key=study_key).card.columns == ("PAY", "RENT", "GIFT")


def test_correlated_noise_may_keep_an_identity_by_itself(study_key: Key):
    table = nested_totals().select(["PAY", "RENT", "NET"])
    masking = apply(CorrelatedNoise(("PAY", "RENT", "NET"), sd_ratio=0.3), table, key=study_key, exact=True)
    pay, rent, net = masking.masked.values(table.names).T
    assert np.abs(net - pay - rent).max() <= 1.5 + 1e-6  # each is rounded to its unit


def test_a_total_with_a_closed_part_is_missing_and_missing_codes_stay():
    codes = {"missing": (-9,)}
    table = amounts(
        Column("A", "continuous", unit=1, **codes),
        Column("B", "continuous", unit=1),
        Column("T", "continuous", unit=1, **codes),
        A=pa.array([1.0, -9.0, 1.0, None, 3.0]),
        B=[1.0, 2.0, 3.0, 4.0, 5.0],
        T=[2.0, 1.0, -9.0, -9.0, 8.0],
    )
    done = recompute_totals(table, NoiseCard(recomputed=(("T", (("A", 1.0), ("B", 1.0))),)))
    assert done.status("T").tolist() == [OPEN, MISSING, 4, 4, OPEN]
    assert done.values(["T"])[[0, 4], 0].tolist() == [2.0, 8.0]


def test_top_codes_of_a_total_follow_from_the_released_sum_alone():
    """The first total was top-coded in truth and no longer is, the second has become so."""
    table = amounts(
        Column("A", "continuous", unit=1),
        Column("T", "continuous", unit=1, top=10, bottom=0),
        A=[7.0, 12.0, -3.0, 5.0],
        T=[10.0, 4.0, 4.0, 0.0],
    )
    done = recompute_totals(table, NoiseCard(recomputed=(("T", (("A", 1.0),)),)))
    assert done.status("T").tolist() == [OPEN, TOP_CODED, 3, OPEN]
    assert done.values(["T"])[[0, 3], 0].tolist() == [7.0, 5.0]


def test_a_total_without_a_unit_takes_that_of_its_parts():
    table = amounts(
        Column("A", "continuous", unit=0.1),
        Column("B", "continuous", unit=0.25),
        Column("T", "continuous"),
        A=[0.1, 0.3],
        B=[0.25, 0.5],
        T=[0.0, 0.0],
    )
    done = recompute_totals(table, NoiseCard(recomputed=(("T", (("A", 1.0), ("B", 2.0))),)))
    assert done.schema["T"].unit == 0.1
    assert done.values(["T"])[:, 0].tolist() == [0.6, 1.3]


def test_a_total_steps_off_its_missing_codes():
    table = amounts(Column("A", "integer"), Column("T", "integer", missing=(-9,)), A=[-9, -8], T=[1, 1])
    done = recompute_totals(table, NoiseCard(recomputed=(("T", (("A", 1.0),)),)))
    assert -9 not in done.array("T").to_pylist()
    assert done.status("T").tolist() == [OPEN, OPEN]

"""Columns computed from exchanged ones, whatever the function, and those that only go along with them."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

import maskwell as mw
from maskwell.errors import BadPlan
from maskwell.notes import texts
from maskwell.protect.functional_dependence import dependent_columns
from maskwell.schema import Column, Schema

RECORDS = 1_500
RNG = np.random.default_rng(7)
AGE = np.round(np.clip(RNG.gamma(6.0, 7.0, RECORDS), 0, 95))
AMOUNT = np.exp(RNG.normal(10.0, 0.8, RECORDS))
OTHER = np.exp(RNG.normal(9.5, 1.0, RECORDS)) * (AMOUNT / 22_000) ** 0.3
NOISE = RNG.normal(size=RECORDS)
SCORE = (np.log(AMOUNT) - 10.0) / 0.8
REGION = RNG.integers(0, 4, RECORDS)
OFF = np.where(RNG.random(RECORDS) < 0.01, RNG.permutation(SCORE**2), SCORE**2)

COMPUTED = {
    "parity of an age": AGE % 2,
    "a table over ages": RNG.permutation(200)[AGE.astype(int)] % 5,
    "an absolute value": np.abs(SCORE),
    "a threshold": np.where(AMOUNT < 20_000, "low", "high"),
    "a band": np.where(np.abs(SCORE) < 0.5, "middle", "outside"),
    "a sum": AMOUNT + OTHER,
    "a ratio": AMOUNT / OTHER,
    "a ratio of powers": AMOUNT / OTHER**2,
    "which is larger": np.where(AMOUNT < OTHER, "one", "other"),
    "the larger": np.maximum(AMOUNT, OTHER),
    "a rounded combination": np.round(0.2 * AMOUNT + 0.7 * OTHER - 30 * AGE),
    "a linear threshold": np.where(AMOUNT + 3 * OTHER > 60_000, "yes", "no"),
    "one record in a hundred off": OFF,
    "a threshold by region": np.where(AMOUNT < 9_000 * (1 + REGION), "low", "high"),
    "the finer column": AGE + RNG.random(RECORDS) * 0.9,
}
NOT_COMPUTED = {
    "a coin": RNG.integers(0, 2, RECORDS),
    "noise": NOISE,
    "a correlated amount": SCORE + 0.3 * NOISE,
    "a threshold with noise": np.where(SCORE + 0.3 * NOISE > 0, "high", "low"),
    "rare": np.where(RNG.random(RECORDS) < 0.01, "yes", "no"),
}
UNDECIDED = {"parity of an amount": np.floor(AMOUNT) % 2}


def table_of(columns, groups=None):
    data = {"REGION": np.array(list("abcd"))[REGION], "AGE": AGE, "AMOUNT": AMOUNT, "OTHER": OTHER, **columns}
    made = []
    for name, values in data.items():
        kind = "continuous" if np.asarray(values).dtype.kind == "f" else "category"
        categories = () if kind == "continuous" else tuple(map(str, np.unique(values)))
        made.append(Column(name, kind, categories=categories))
    data = {
        name: v if np.asarray(v).dtype.kind == "f" else np.asarray(v).astype(str) for name, v in data.items()
    }
    if groups is not None:
        data["HOUSE"] = groups.astype(str)
        made.append(Column("HOUSE", "text", frozenset({"group"})))
    return mw.Table.from_frame(pa.table(data), Schema(tuple(made)))


def test_functions_of_exchanged_columns_are_found_whatever_their_form():
    table = table_of({**COMPUTED, **NOT_COMPUTED, **UNDECIDED})
    found = dependent_columns(table, ("AGE", "AMOUNT", "OTHER"), ("REGION",))
    assert set(found.computed) == set(COMPUTED)
    assert set(found.undecided) == {*NOT_COMPUTED, *UNDECIDED}
    assert found.unrepeated == ("AMOUNT", "OTHER")


def test_nothing_is_undecided_where_values_repeat():
    found = dependent_columns(table_of(NOT_COMPUTED), ("AGE",), ("REGION",), ("AGE", *NOT_COMPUTED))
    assert (found.computed, found.undecided, found.unrepeated) == ((), (), ())


def test_members_of_one_group_are_alike_without_any_function():
    """A household's income, the same for its members, tells their roof: by the household, not by a function."""
    house = np.repeat(np.arange(RECORDS // 5), 5)
    roof = np.random.default_rng(1).integers(0, 4, len(house))[house]
    income = np.exp(np.random.default_rng(2).normal(10, 1, len(house)))[house]
    given = {"INCOME": income, "ROOF": roof}
    assert dependent_columns(table_of(given), ("INCOME",), (), given).computed == ("ROOF",)
    assert dependent_columns(table_of(given, groups=house), ("INCOME",), (), given).computed == ()


def swap_of_one(rest, reason=None):
    """Exchange AGE and AMOUNT, which the intruder knows, with this left in the row."""
    table = table_of(rest).select(["REGION", "AGE", "AMOUNT", *rest])
    masking = mw.apply(mw.IndependentNoise(("AGE", "AMOUNT"), variance_ratio=1e-4), table, seed=3)
    plan = mw.Linkage(fields=("AGE", "AMOUNT"), match_blocks=("REGION",), weights=mw.attacks.Fixed())
    return mw.swap(masking, plan, mw.tolerances.SwapShare(0.2), exempt_values=reason)


def test_what_is_computed_moves_with_its_columns():
    """Parity of the age found the record again (all of its noise-free values stay in the row), and was exempt."""
    rest = {name: COMPUTED[name] for name in ("parity of an age", "an absolute value")} | {"noise": NOISE}
    swapping = swap_of_one(rest).swapping
    assert set(swapping.columns) == {"AGE", "AMOUNT", "parity of an age", "an absolute value"}
    assert swapping.rest == ("noise",)
    with pytest.raises(BadPlan) as refusal:
        swap_of_one(rest, "he knows them")
    assert "'parity of an age' is exchanged and the intruder does not know it" in str(refusal.value)


def test_where_all_is_computed_nothing_is_left_in_the_row():
    with pytest.raises(BadPlan, match="only renames rows"):
        swap_of_one({"an absolute value": np.abs(SCORE)})


def test_what_cannot_be_decided_is_said():
    """No value of an amount comes twice, so that its parity looks like a coin."""
    notes = " ".join(texts(swap_of_one(UNDECIDED).notes))
    assert "parity of an amount; whether computed from AMOUNT, whose values hardly repeat, was tried" in notes

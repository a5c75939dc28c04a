from __future__ import annotations

import numpy as np

from maskwell.masking import apply
from maskwell.masks import Coding
from maskwell.schema import BOTTOM_CODED, OPEN, TOP_CODED, Column

from .conftest import table_of


def ages(**described):
    return table_of(Column("AGE", "integer", **described), AGE=[3, 18, 45, 80, 81, 99, None])


def test_extreme_values_get_the_status_and_the_schema_the_code():
    table = ages()
    masking = apply(Coding("AGE", top=80, bottom=18), table, seed=1)
    status = masking.masked.status("AGE")
    assert status.tolist() == [BOTTOM_CODED, BOTTOM_CODED, OPEN, TOP_CODED, TOP_CODED, TOP_CODED, 1]
    column = masking.masked.schema["AGE"]
    assert (column.top, column.bottom, column.unit) == (80.0, 18.0, None)
    assert np.array_equal(masking.masked.values(["AGE"])[2], [45])
    assert masking.masked.to_arrow()["AGE"].to_pylist() == [18, 18, 45, 80, 80, 80, None]
    assert np.array_equal(masking.card.logpdf(masking.masked, table), np.zeros(7))


def test_values_that_are_coded_already_take_the_new_code():
    table = ages(top=99, missing=(45,))
    masking = apply(Coding("AGE", top=80), table, seed=1)
    assert masking.masked.status("AGE").tolist() == [0, 0, 4, TOP_CODED, TOP_CODED, TOP_CODED, 1]
    assert masking.masked.to_arrow()["AGE"].to_pylist() == [3, 18, 45, 80, 80, 80, None]
    assert np.array_equal(masking.card.logpdf(masking.masked, table), np.zeros(7))


def test_a_wrong_status_or_value_has_no_density():
    table = ages()
    masking = apply(Coding("AGE", top=80), table, seed=1)
    shifted = masking.masked.take(np.array([3, 1, 2, 0, 4, 5, 6]))
    assert np.array_equal(
        np.isfinite(masking.card.logpdf(shifted, table)), [False, True, True, False, True, True, True]
    )


def test_one_figure_for_each_column_and_one_law():
    table = table_of(Column("A", "integer"), Column("B", "continuous"), A=[1, 2, 3], B=[1.5, 2.5, 3.5])
    card = Coding(("A", "B"), top=[3, 3.25]).card(table)
    assert [law.columns for law in card.laws] == [("A",), ("B",)]
    assert [law.outlets[0].codes for law in card.laws] == [(None, 3.0), (None, 3.25)]
    masking = apply(Coding(("A", "B"), top=[3, 3.25]), table, seed=1)
    assert masking.masked.to_arrow().to_pydict() == {"A": [1, 2, 3], "B": [1.5, 2.5, 3.25]}
    assert Coding(("A", "B"), top=[3, 3.25]).top == (3, 3.25)


def test_what_is_wrong_is_said_at_once(messages):
    assert messages(lambda: Coding((), top=(1.0, 2.0))) == (
        "a mask needs at least one column",
        "top has 2 figures for 0 columns",
    )
    assert messages(lambda: Coding("AGE")) == ("Coding: give top, bottom or both",)
    assert messages(lambda: Coding("AGE", top=float("nan"))) == ("top must be a number",)
    assert messages(lambda: Coding(("A", "B"), top=5, bottom=(5, 6))) == (
        "column 'A': the top code must lie above the bottom code",
        "column 'B': the top code must lie above the bottom code",
    )
    table = ages(top=99, bottom=3, missing=(45,))
    assert messages(lambda: Coding("AGE", top=120, bottom=1).card(table)) == (
        "column 'AGE' is top-coded already below the new top code",
        "column 'AGE' is bottom-coded already above the new bottom code",
    )
    assert messages(lambda: Coding("AGE", top=45).card(table)) == (
        "column 'AGE': the top code is a missing code already",
    )
    assert messages(lambda: Coding("AGE", top=2).card(table)) == (
        "column 'AGE': the top code must lie above the bottom code",
    )

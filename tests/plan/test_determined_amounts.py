"""Ties between columns: each is told by columns that leave, gaps and dropped copies do not hide one."""

from __future__ import annotations

import numpy as np

from maskwell.plan.determined_amounts import Candidates, ties_of

N = 600


def test_a_logarithm_that_was_dropped_still_ties_its_column() -> None:
    rng = np.random.default_rng(1)
    scrap, before = rng.lognormal(1, 1, (2, N))
    change = np.log(scrap) - np.log(before)
    for column in (change, before):
        column[::3] = np.nan  # no year before the first one
    values = np.column_stack([scrap, np.log(before), change, np.log(scrap)])
    names = ("scrap", "log_before", "change", "log_scrap")
    said = ties_of(Candidates(values, names, 3, {3: 0}), ())
    assert list(said) == ["change"]
    assert "scrap (as log_scrap)" in said["change"]


def test_a_product_is_found_where_a_column_is_often_missing() -> None:
    rng = np.random.default_rng(2)
    income, hours = rng.lognormal(10, 0.5, N).round(), rng.integers(1, 3000, N).astype(float)
    wage = rng.lognormal(1, 0.5, N).round(4)
    wage[::3] = np.nan
    rest = (income - np.nan_to_num(wage) * hours) / 1000
    names = ("income", "hours", "wage", "rest")
    said = ties_of(Candidates(np.column_stack([income, hours, wage, rest]), names, 4, {}), ())
    assert list(said) == ["rest"]
    assert said["rest"].startswith("a sum or difference of income and ")
    assert said["rest"].endswith("in 400 of 400 records where all are known")


def test_every_tie_is_told_by_columns_that_leave() -> None:
    rng = np.random.default_rng(3)
    trend = rng.lognormal(0, 1, N).cumsum()
    values = np.column_stack(
        [trend * rng.lognormal(0, s, N) for s in (0.01, 0.012, 0.008, 0.02, 0.005, 0.015)]
    )
    names = tuple("abcdef")
    said = ties_of(Candidates(values, names, len(names), {}), ())
    assert said
    for text in said.values():
        by = text.removeprefix("nearly determined by ").split(" (")[0].split(", ")
        assert not set(by) & set(said)


def test_what_sums_need_stays() -> None:
    rng = np.random.default_rng(4)
    x = rng.normal(size=(N, 2))
    values = np.column_stack([x, x.sum(axis=1)])
    columns = Candidates(values, ("a", "b", "c"), 3, {})
    assert list(ties_of(columns, ())) == ["c"]
    assert list(ties_of(columns, ("c",))) == ["b"]
    assert ties_of(columns, ("a", "b", "c")) == {}

"""Whether a column is a function of others, judged by all records."""

from __future__ import annotations

import numpy as np
import pytest

from maskwell.plan.dependence import form_of, is_function, is_shared, is_shared_in_part, nearly_linear

RNG = np.random.default_rng(3)
X = RNG.lognormal(3, 1, 3000).round(1)


@pytest.mark.parametrize("of", [np.copy, np.log, np.square, lambda x: -x, lambda x: 12 * x + 3])
def test_functions_are_found(of) -> None:
    assert is_function(X, of(X))


def test_a_few_strays_and_gaps_do_not_hide_a_function() -> None:
    y = np.log(X)
    y[::500] = 3.3
    y[1::7] = np.nan
    assert is_function(X, y)


def test_independent_columns_of_few_values_are_no_functions() -> None:
    x, y = RNG.integers(0, 40, 20_000).astype(float), RNG.integers(0, 200, 20_000).astype(float)
    assert not is_function(x, y)
    assert not is_function(y, x)


def test_a_coarser_column_is_no_function_one_to_one() -> None:
    assert not is_function(X, np.floor(X / 10))
    assert not is_function(np.floor(X / 10), X)


def test_one_to_one_out_of_order_is_no_function() -> None:
    codes = np.arange(50.0)
    x = RNG.integers(0, 50, 3000)
    assert not is_function(codes[x], RNG.permutation(codes)[x])


def test_long_files_are_judged_by_all_records() -> None:
    x = RNG.normal(size=50_000)
    assert is_function(x, np.exp(x))
    assert not is_function(x, np.where(np.arange(50_000) % 3 == 1, RNG.normal(size=50_000), np.exp(x)))
    group = np.repeat(np.arange(25_000), 2)
    assert is_shared(group, x[group])
    assert not is_shared(group, np.where(np.arange(50_000) == 49_999, 9.0, x[group]))


def test_what_others_determine() -> None:
    values = RNG.normal(size=(400, 4))
    values[:, 3] = values[:, 0] - 2 * values[:, 1]
    assert set(nearly_linear(values, 3, [0, 1, 2])) == {0, 1}
    assert nearly_linear(values, 2, [0, 1, 3]) == []


def test_what_groups_share() -> None:
    group = np.repeat(np.arange(100), 3)
    income = RNG.normal(size=100)[group]
    assert is_shared(group, income)
    assert is_shared(np.where(group == 5, -1, group), np.where(np.arange(300) == 9, np.nan, income))
    income[7] += 1
    assert not is_shared(group, income)
    assert not is_shared(np.arange(300), RNG.normal(size=300))
    assert not is_shared(group, np.ones(300))


def test_what_groups_share_that_few_records_are_in() -> None:
    group = np.r_[np.arange(1000), np.arange(20)]
    income = RNG.normal(size=1000)[group]
    assert not is_shared(group, income)
    assert is_shared_in_part(group, income)
    assert not is_shared_in_part(group[:1014], income[:1014])  # 28 records in groups
    assert not is_shared_in_part(group, np.where(group == 7, RNG.normal(size=1020), income))
    mostly_zero = (np.arange(1000) % 100 == 50).astype(float)[group]
    assert not is_shared_in_part(group, mostly_zero)  # by chance
    far_more = np.r_[np.arange(4000), np.arange(20)]
    assert not is_shared_in_part(far_more, RNG.normal(size=4000)[far_more])  # under 1% of the file


def test_few_values_are_a_function_only_without_a_stray() -> None:
    wage = np.round(np.linspace(0.4, 4.25, 18), 2)[RNG.integers(0, 18, 600)]
    assert is_function(wage, np.log(wage))
    strays = np.log(wage)
    strays[3] = strays[4] + 0.5
    assert not is_function(wage, strays)
    assert not is_function(wage, RNG.integers(0, 18, 600).astype(float))


@pytest.mark.parametrize(
    ("of", "said"),
    [
        (np.copy, "on the same scale or another"),
        (lambda x: 12 * x + 3, "on the same scale or another"),
        (np.log, "its logarithm"),
        (lambda x: np.log(x).round(3), "its logarithm"),
        (np.square, "its square"),
        (lambda x: 1 / x, "1 over it"),
        (np.arctan, ""),
    ],
)
def test_the_function_is_named_where_it_is_a_usual_one(of, said) -> None:
    assert form_of(X, of(X)) == said


def test_trends_are_in_order_without_being_computed_from_one_another() -> None:
    first, second = RNG.lognormal(0, 1, (2, 60)).cumsum(axis=1)
    assert is_function(first, second)
    assert form_of(first, second) == ""

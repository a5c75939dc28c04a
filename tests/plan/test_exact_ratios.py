"""Rates, interactions and prices of another year are told as what they are, and chance is told as nothing."""

from __future__ import annotations

import numpy as np

from maskwell.plan.exact_ratios import exact_ratio, ratio_of_sum, scaled_by_class, usual_unit

N = 300
NAMES = ("y", "hits", "at_bats", "doubles", "code", "dist")


def counts() -> np.ndarray:
    """Return y (to be given), hits, times at bat, doubles, a code and a distance."""
    rng = np.random.default_rng(5)
    at_bats = rng.integers(50, 5_000, N).astype(float)
    hits = np.rint(at_bats * rng.uniform(0.2, 0.35, N))
    doubles = np.rint(hits * rng.uniform(0.05, 0.3, N))
    code, dist = (rng.random(N) < 0.5).astype(float), rng.lognormal(8, 1, N)
    return np.column_stack([np.zeros(N), hits, at_bats, doubles, code, dist])


def test_a_rounded_rate_is_found_with_its_constant_though_one_value_has_more_decimals() -> None:
    values = counts()
    values[:, 0] = np.rint(1_000 * values[:, 1] / values[:, 2])
    values[7, 0] += 0.123456
    found = exact_ratio(values, 0, range(1, 6), NAMES)
    assert found is not None
    assert found.said == "hits over at_bats (times 1000)"
    assert found.share > 0.99


def test_a_code_times_an_amount_is_found_by_all_records() -> None:
    values = counts()
    values[:, 0] = values[:, 4] * values[:, 5]
    found = exact_ratio(values, 0, range(1, 6), NAMES)
    assert found is not None
    assert found.said == "code times dist"
    values[:, 4] = 1.0 - values[:, 4]  # the other code goes with y on none of the records that tell
    assert exact_ratio(values, 0, range(1, 6), NAMES) is None


def test_the_ratio_of_a_sum_is_found() -> None:
    values = counts()
    values[:, 0] = (100 * (values[:, 1] + values[:, 3]) / values[:, 2]).astype(np.float32)
    assert exact_ratio(values, 0, range(1, 6), NAMES) is None
    found = ratio_of_sum(values, 0, [1, 2, 3, 5], NAMES)
    assert found is not None
    assert set(found.parts) == {1, 3, 2}
    assert found.said.endswith(", over at_bats")


def test_a_number_for_each_class_is_found_and_one_number_for_all_is_not() -> None:
    values = counts()
    codes = {4: values[:, 4].astype(np.int64)}
    values[:, 0] = np.where(values[:, 4] == 1, 0.768, 1.0) * values[:, 5]
    found = scaled_by_class(values, 0, [1, 2, 3, 5], codes, NAMES)
    assert found is not None
    assert found.said == "dist times a number for each code"
    values[:, 0] = np.where(values[:, 4] == 1, 250.0, -40.0) + values[:, 5]
    found = scaled_by_class(values, 0, [1, 2, 3, 5], codes, NAMES)
    assert found is not None
    assert found.said == "dist and a number for each code"
    values[:, 0] = 0.768 * values[:, 5]
    assert scaled_by_class(values, 0, [1, 2, 3, 5], codes, NAMES) is None


def test_chance_is_told_as_nothing() -> None:
    """Columns that have nothing to do with one another, over 40 draws: none is tied."""
    for seed in range(40):
        rng = np.random.default_rng(seed)
        values = np.column_stack([rng.lognormal(3, 1, N), rng.integers(1, 40, (N, 4)), rng.random(N) * 9])
        codes = {4: rng.integers(0, 5, N)}
        assert exact_ratio(values, 0, range(1, 6), NAMES) is None
        assert ratio_of_sum(values, 0, range(1, 6), NAMES) is None
        assert scaled_by_class(values, 0, range(1, 6), codes, NAMES) is None


def test_the_usual_unit_passes_over_a_stray() -> None:
    values = np.append(np.arange(100.0), 3.14159)
    assert usual_unit(values) == 1.0
    assert usual_unit(np.random.default_rng(0).random(100)) == 0.0

"""Sums, ratios and differences that hold for most records are found, and nothing is found by chance."""

from __future__ import annotations

import numpy as np
import pytest

from maskwell.plan.near_identities import Count, near_product, near_ratio, near_sum

N = 1200
NAMES = ("y", "a", "b", "c", "d")


def parts(rng: np.random.Generator) -> np.ndarray:
    """Four skewed amounts in whole units, two of them alike."""
    a = rng.lognormal(8, 1, N)
    return np.column_stack([a, a * rng.lognormal(0, 0.3, N), *rng.lognormal(7, 1, (2, N))]).round()


def with_first(y: np.ndarray, others: np.ndarray) -> np.ndarray:
    return np.column_stack([y, others])


@pytest.mark.parametrize("faults", [0.0, 0.005, 0.1])
def test_a_sum_with_faults_is_found(faults: float) -> None:
    rng = np.random.default_rng(1)
    x = parts(rng)
    y = x[:, 0] + x[:, 2] + x[:, 3]
    wrong = rng.random(N) < faults
    y[wrong] += rng.lognormal(9, 1, int(wrong.sum())).round()
    found = near_sum(with_first(y, x), 0, [1, 2, 3, 4], NAMES)
    assert found is not None
    assert set(found.parts) == {1, 3, 4}
    assert found.share == pytest.approx(1 - wrong.mean(), abs=0.01)


def test_a_scaled_difference_is_found() -> None:
    rng = np.random.default_rng(2)
    x = parts(rng)
    y = (x[:, 0] - 52 * x[:, 2]) / 1000
    y[rng.random(N) < 0.1] = 0.0
    found = near_sum(with_first(y, x), 0, [1, 2, 3, 4], NAMES)
    assert found is not None
    assert set(found.parts) == {1, 3}


@pytest.mark.parametrize(("sign", "said"), [(-1, "a over c"), (1, "a times c")])
def test_ratios_and_products_are_found(sign: int, said: str) -> None:
    rng = np.random.default_rng(3)
    x = parts(rng)
    found = near_ratio(with_first((x[:, 0] * x[:, 2] ** float(sign)).round(2), x), 0, [1, 2, 3, 4], NAMES)
    assert found is not None
    assert found.said == said


@pytest.mark.parametrize("seed", range(5))
def test_nothing_is_found_among_amounts_that_go_together(seed: int) -> None:
    rng = np.random.default_rng(seed)
    x = parts(rng)
    noisy = (x[:, 0] + x[:, 2]) * rng.lognormal(0, 0.05, N)
    many_zeros = np.where(rng.random(N) < 0.9, 0.0, x[:, 3])
    for y in (noisy.round(), many_zeros, rng.poisson(3, N).astype(float)):
        values = with_first(y, x)
        assert near_sum(values, 0, [1, 2, 3] if y is many_zeros else [1, 2, 3, 4], NAMES) is None
        assert near_ratio(values, 0, [1, 2, 3], NAMES) is None


def test_a_product_and_a_term_are_found() -> None:
    rng = np.random.default_rng(4)
    x = parts(rng)
    y = (x[:, 0] - x[:, 1] * (x[:, 3] / 100).round(2)) / 1000
    values = with_first(y, np.column_stack([x[:, :3], (x[:, 3] / 100).round(2)]))
    found = near_product(values, 0, [1, 2, 3, 4], NAMES)
    assert found is not None
    assert found.parts == (1, 2, 4)
    assert found.share == 1.0
    assert found.said == "a sum or difference of a and b times d (0.001 x a - 0.001 x b x d)"
    alone = near_product(with_first((x[:, 1] * x[:, 3] / 7).round(2), x), 0, [1, 2, 3, 4], NAMES)
    assert alone is not None
    assert alone.said.startswith("b times d (0.142857143 x b x d")
    noisy = y * rng.lognormal(0, 0.05, N)
    assert near_product(with_first(noisy, values[:, 1:]), 0, [1, 2, 3, 4], NAMES) is None


def test_the_share_is_told_with_the_records_that_it_is_about() -> None:
    rng = np.random.default_rng(5)
    x = parts(rng)
    y = np.where(np.arange(N) % 10 == 0, 0.0, x[:, 0] + x[:, 2])
    found = near_sum(with_first(y, x), 0, [1, 2, 3, 4], NAMES)
    assert found is not None
    assert (found.share, found.count.telling) == (1.0, 1080)
    counted = "but for rounding within 1.52, in 1,080 of 1,200 records where all are known"
    assert str(found) == f"a sum or difference of a, c (a + c), {counted}"
    tells = np.arange(N) % 3 > 0  # y is 0 for all others, to whom it does not apply
    assert Count.of(tells, tells).words("where all are known") == (
        "in 800 of 800 records where all are known and it is not its most frequent value"
    )

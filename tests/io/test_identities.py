from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from maskwell.io.identities import Identity, decimal_unit, find_identities, near_duplicates

RECORDS = 400


def amounts(seed: int, columns: int, records: int = RECORDS, high: int = 50_000) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, high, (records, columns)).astype(float)


def names(values: np.ndarray) -> list[str]:
    return [f"c{j}" for j in range(values.shape[1])]


def found(values: np.ndarray, labels: str | None = None) -> set[str]:
    return {
        str(identity) for identity in find_identities(values, labels.split() if labels else names(values))
    }


def holes(values: np.ndarray, share: float, seed: int = 1) -> np.ndarray:
    return np.where(np.random.default_rng(seed).random(values.shape) < share, np.nan, values)


def test_a_total_and_its_parts():
    a, b = amounts(1, 2).T
    assert find_identities(np.c_[a, a + b, b], ["a", "t", "b"]) == (Identity("t", (("a", 1.0), ("b", 1.0))),)


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 0, 1), (1, 2, 0)])
def test_the_total_is_the_column_with_all_coefficients_one(order):
    gross, tax = amounts(2, 2).T
    values = np.c_[gross - tax, gross, tax][:, order]
    labels = " ".join(np.array(["net", "gross", "tax"])[list(order)])
    (identity,) = find_identities(values, labels.split())
    assert identity.total == "gross"
    assert dict(identity.parts) == {"net": 1.0, "tax": 1.0}


def test_coefficients_may_be_whole_numbers_or_simple_fractions():
    month, bonus, first, second = amounts(3, 4).T
    values = np.c_[month, bonus, 12 * month + bonus, first, second, (first + second) / 2]
    assert found(values, "month bonus year first second mean") == {
        "year = 12 x month + bonus",
        "mean = 0.5 x first + 0.5 x second",
    }


def test_a_multiple_is_an_identity_and_a_copy_is_not():
    a, b = amounts(4, 2).T
    assert found(np.c_[a, 12 * a, a, b, -b], "a year copy b negative") == {"year = 12 x a"}


def test_overlapping_identities_come_in_their_simplest_form():
    a, b, c, d, e, other = amounts(5, 6).T
    total = a + b + c
    values = np.c_[a, b, c, d, e, total, total + d, total + d - e, other]
    assert found(values, "a b c d e t u v w") == {"t = a + b + c", "u = d + t", "u = e + v"}


def test_one_total_in_two_breakdowns():
    a, b, c = amounts(6, 3).T
    values = np.c_[a, b, a + b, c, a + b - c]
    assert found(values, "a b t c d") == {"t = a + b", "t = c + d"}


def test_many_columns_and_identities():
    values = amounts(7, 60)
    for k in range(10):
        values[:, 50 + k] = values[:, 4 * k : 4 * k + 4 + k % 3].sum(axis=1)
    identities = find_identities(values, names(values))
    assert [identity.total for identity in identities] == [f"c{50 + k}" for k in range(10)]
    assert [len(identity.parts) for identity in identities] == [4 + k % 3 for k in range(10)]


@pytest.mark.parametrize("share", [0.1, 0.3])
def test_missing_values_hide_no_identity(share):
    a, b, c, d = amounts(8, 4, 2000).T
    values = holes(np.c_[a, b, c, d, a + b + c], share)
    assert found(values, "a b c d t") == {"t = a + b + c"}


def test_an_identity_among_some_records_only():
    """Two questionnaires: one asks for a and b, the other for c and d; nobody answers both."""
    a, b, c, d = amounts(9, 4).T
    first = np.arange(RECORDS) < RECORDS // 2
    total = np.where(first, a + b, c + d)
    values = np.c_[total, np.where(first, [a, b], np.nan).T, np.where(first, np.nan, [c, d]).T]
    assert found(values, "t a b c d") == {"t = a + b", "t = c + d"}


def test_an_identity_needs_enough_records():
    a, b = amounts(10, 2).T
    values = np.c_[a, b, a + b]
    few = values.copy()
    few[19:, 2] = np.nan
    assert found(values[:20]) == {"c2 = c0 + c1"}
    assert found(values[:19]) == set()
    assert found(few) == set()


def test_a_rare_part_is_found_where_a_stride_would_miss_it():
    values = np.c_[amounts(11, 3, 30_000), np.zeros(30_000), np.zeros(30_000)]
    values[[17, 5001, 12_345, 20_011, 29_999], 3] = [7, 31, 5, 12, 400]
    values[:, 4] = values[:, :4].sum(axis=1)
    assert found(values) == {"c4 = c0 + c1 + c2 + c3"}


def test_one_record_that_breaks_it_is_enough():
    values = np.c_[amounts(12, 2, 30_000), np.zeros(30_000)]
    values[:, 2] = values[:, :2].sum(axis=1)
    values[12_345, 2] += 1
    assert found(values) == set()


def test_cents_must_agree_to_the_last():
    cents = amounts(13, 2)
    total = cents.sum(axis=1) / 100
    assert found(np.c_[cents / 100, total]) == {"c2 = c0 + c1"}
    total[3] += 0.01
    assert found(np.c_[cents / 100, total]) == set()


def test_numbers_without_a_unit_agree_up_to_their_size():
    x = np.random.default_rng(14).normal(size=(RECORDS, 3)) * [1.0, 1e3, 1e6]
    assert found(np.c_[x, x.sum(axis=1)]) == {"c3 = c0 + c1 + c2"}
    assert found(np.c_[x, x.sum(axis=1) * (1 + 1e-7)]) == set()


def test_an_odd_rate_hides_no_identity():
    gross = np.random.default_rng(15).normal(size=RECORDS)
    assert found(np.c_[gross, 0.0765 * gross, gross - 0.0765 * gross], "gross tax net") == {
        "gross = tax + net"
    }


def test_constants_prove_nothing():
    rng = np.random.default_rng(16)
    sex, region = rng.integers(0, 2, RECORDS), rng.integers(0, 4, RECORDS)
    dummies = [sex == 0, sex == 1, *(region == k for k in range(4))]
    fixed = [np.zeros(RECORDS), np.full(RECORDS, 5.0), np.full(RECORDS, 10.0), np.full(RECORDS, np.nan)]
    assert found(np.array([*dummies, *fixed], dtype=float).T) == set()


def test_nearly_singular_columns_are_no_identity():
    rng = np.random.default_rng(17)
    a, whole = rng.normal(size=RECORDS), rng.integers(0, 10**6, RECORDS).astype(float)
    close = np.c_[a, a + 1e-7 * rng.normal(size=RECORDS), 2 * a + 1e-8 * rng.normal(size=RECORDS)]
    off = np.c_[whole, whole + rng.integers(0, 2, RECORDS), 2 * whole + rng.integers(0, 2, RECORDS)]
    assert found(close) == found(off) == set()


def test_infinite_values_are_passed_over():
    a, b = amounts(18, 2).T
    values = np.c_[a, b, a + b]
    values[5, 0] = np.inf
    assert found(values) == {"c2 = c0 + c1"}


@pytest.mark.parametrize("shape", [(0, 3), (5, 0), (50, 1), (1, 4)])
def test_too_little_to_say_anything(shape):
    assert found(np.zeros(shape)) == set()
    assert near_duplicates(np.zeros(shape), names(np.zeros(shape))) == ()


@settings(max_examples=40, deadline=None, derandomize=True)
@given(
    seed=st.integers(0, 2**32),
    columns=st.integers(3, 12),
    parts=st.integers(2, 5),
    share=st.sampled_from([0.0, 0.05]),
    high=st.sampled_from([6, 1000, 10**7]),
)
def test_a_planted_identity_is_found_and_nothing_else(seed, columns, parts, share, high):
    rng = np.random.default_rng(seed)
    values = rng.integers(0, high, (300, columns)).astype(float)
    members = sorted(rng.choice(columns, min(parts, columns), replace=False).tolist())
    total = values[:, members].sum(axis=1)
    identities = find_identities(holes(np.c_[values, total], share, seed), [*names(values), "t"])
    assert identities == (Identity("t", tuple((f"c{j}", 1.0) for j in members)),)


@settings(max_examples=60, deadline=None, derandomize=True)
@given(
    seed=st.integers(0, 2**32),
    columns=st.integers(2, 12),
    high=st.sampled_from([2, 3, 5, 1000]),
    share=st.sampled_from([0.0, 0.2]),
)
def test_random_whole_numbers_hold_no_identity(seed, columns, high, share):
    values = amounts(seed, columns, 150, high)
    assert found(holes(values, share, seed)) == set()


@settings(max_examples=25, deadline=None, derandomize=True)
@given(seed=st.integers(0, 2**32), factor=st.sampled_from([0.01, 7.0, 1000.0]))
def test_scale_and_order_of_records_change_nothing(seed, factor):
    values = amounts(seed, 4)
    values[:, 3] = values[:, 0] + values[:, 1] - values[:, 2]
    shuffled = np.random.default_rng(seed).permutation(values)
    assert found(values * factor) == found(values) == found(shuffled)


def test_near_duplicates_with_their_sign():
    rng = np.random.default_rng(19)
    a = rng.normal(size=RECORDS)
    values = np.c_[a, -a + 0.01 * rng.normal(size=RECORDS), rng.normal(size=RECORDS), a]
    pairs = {
        (pair.first, pair.second): pair for pair in near_duplicates(values, ["a", "minus", "other", "copy"])
    }
    assert set(pairs) == {("a", "minus"), ("a", "copy"), ("minus", "copy")}
    assert pairs["a", "minus"].correlation < -0.98
    assert pairs["a", "copy"].exact
    assert not pairs["a", "minus"].exact


def test_correlations_are_those_of_the_common_records():
    rng = np.random.default_rng(20)
    a = rng.normal(10, 2, RECORDS)
    values = holes(np.c_[a, a + 0.3 * rng.normal(size=RECORDS)], 0.2)
    common = values[~np.isnan(values).any(axis=1)]
    (pair,) = near_duplicates(values, ["a", "b"], threshold=0.9)
    assert pair.correlation == pytest.approx(np.corrcoef(common.T)[0, 1], abs=1e-12)


def test_threshold_of_near_duplicates():
    rng = np.random.default_rng(21)
    a = rng.normal(size=RECORDS)
    values = np.c_[a, a + 0.5 * rng.normal(size=RECORDS)]
    assert near_duplicates(values, ["a", "b"]) == ()
    assert len(near_duplicates(values, ["a", "b"], threshold=0.8)) == 1


def test_columns_equal_in_half_of_the_records_are_near_duplicates():
    rng = np.random.default_rng(22)
    a, other = rng.normal(size=(2, 2000))
    for share, pairs in ((0.6, 1), (0.4, 0)):
        b = np.where(rng.random(2000) < share, a, 9 * other)
        found = near_duplicates(holes(np.c_[a, b], 0.1), ["a", "b"])
        assert len(found) == pairs
        assert all(abs(pair.equal_share - share) < 4 * np.sqrt(0.25 / 1600) for pair in found)


@pytest.mark.parametrize("common", [0.0, 1.0, 40.0])
def test_a_value_that_most_records_have_makes_no_duplicates(common):
    rng = np.random.default_rng(23)
    values = np.where(rng.random((2000, 2)) < 0.05, rng.integers(100, 9000, (2000, 2)), common)
    assert near_duplicates(values, ["a", "b"]) == ()


def test_a_part_that_repeats_among_many_zeros_is_found_in_a_large_file():
    rng = np.random.default_rng(24)
    a = np.where(rng.random(200_000) < 0.02, rng.integers(1, 9000, 200_000), 0).astype(float)
    b = np.where(rng.random(200_000) < 0.9, a, 0)
    (pair,) = near_duplicates(np.c_[a, b], ["a", "b"], threshold=0.999)
    assert pair.equal_share == pytest.approx(0.9, abs=4 * np.sqrt(0.09 / 4000))


@pytest.mark.parametrize(
    ("values", "unit"),
    [
        ([1.0, -20.0, np.nan], 1.0),
        ([0.1, 0.7, 12.3], 0.1),
        ([1234567.89, 0.05], 0.01),
        ([1e-6, 2.5], 1e-6),
        ([1e-7, 1.0], None),
        ([1 / 3], None),
        ([1e9 + 1 / 3], None),
        ([1e300, 1.5], None),
    ],
)
def test_decimal_unit(values, unit):
    assert decimal_unit(np.array(values)) == unit


def test_decimal_unit_of_single_precision():
    assert decimal_unit(np.array([0.1, 2.3, 99.9], dtype=np.float32)) == 0.1


@settings(max_examples=50, deadline=None, derandomize=True)
@given(st.lists(st.integers(-(10**9), 10**9), min_size=1), st.integers(0, 6))
def test_decimal_unit_divides_every_value(steps, decimals):
    unit = decimal_unit(np.array(steps) / 10.0**decimals)
    assert unit is not None
    assert unit >= float(f"1e-{decimals}")
    scaled = np.array(steps) / 10.0**decimals / unit
    assert np.allclose(scaled, np.rint(scaled), atol=1e-5)


def test_an_identity_reads_as_an_equation():
    identity = Identity("t", (("a", -1.0), ("b", 0.5), ("c", -12.0)))
    assert str(identity) == "t = - a + 0.5 x b - 12 x c"

"""Parts of the digits of another column are named with their divisor, and no part is seen where there is none."""

from __future__ import annotations

import numpy as np
import pytest

from maskwell.plan.integer_parts import integer_parts

N = 3_000


def times() -> np.ndarray:
    """Times of day written as 1545."""
    rng = np.random.default_rng(4)
    return (100 * rng.integers(0, 24, N) + rng.integers(0, 60, N)).astype(float)


def test_hour_and_minute_of_a_time_are_named() -> None:
    time = times()
    found = integer_parts({"time": time, "hour": time // 100, "minute": time % 100}, {"time": time})
    assert (
        str(found["hour"])
        == "time divided by 100, rounded down (in 3,000 of 3,000 records where both are known)"
    )
    assert str(found["minute"]).startswith("the remainder of time divided by 100 (in 3,000")
    assert list(found) == ["hour", "minute"]


def test_a_part_that_a_few_records_do_not_obey_is_counted() -> None:
    time = times()
    hour = time // 100
    hour[:20], hour[20:50] = 3.5 // 1 + (hour[:20] == 3), np.nan
    found = integer_parts({"hour": hour}, {"time": time})
    assert (found["hour"].obeying, found["hour"].known) == (int(np.sum(hour == time // 100)), N - 30)
    hour[:200] += 1
    assert not integer_parts({"hour": hour}, {"time": time})


@pytest.mark.parametrize(
    "other",
    [
        lambda x: np.zeros(N),  # no part: all are the same
        lambda x: x % 7_919,  # x itself, where it is below the divisor
        lambda x: np.random.default_rng(5).integers(0, 24, N).astype(float),
        lambda x: (x > 1_200).astype(float),
        lambda x: x / 100,
        lambda x: np.full(N, np.nan),
    ],
)
def test_what_is_no_part_is_none(other) -> None:
    time = times()
    assert not integer_parts({"other": other(time)}, {"time": time})


def test_age_in_months_gives_years() -> None:
    months = np.random.default_rng(6).integers(0, 900, N).astype(float)
    found = integer_parts({"years": months // 12}, {"months": months})
    assert (found["years"].divisor, found["years"].is_remainder) == (12, False)

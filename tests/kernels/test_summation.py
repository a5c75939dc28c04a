"""Sums that no order and no partition of the records can change, to the last bit."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from maskwell.kernels.summation import BLOCK, grids, partial, reproducible_sum, total

Floats = NDArray[np.float64]

TINY, HUGE = 5e-324, 1e299
numbers = st.one_of(
    st.floats(-1e6, 1e6),
    st.floats(-HUGE, HUGE),
    st.floats(-1e-300, 1e-300),
    st.sampled_from([0.0, -0.0, TINY, -TINY]),
)


def in_parts(values: Floats, cuts: list[int], grid: Floats) -> Floats:
    return total(sum((partial(part, grid) for part in np.split(values, cuts)), np.zeros(grid.shape)))


@given(values=st.lists(numbers, min_size=1, max_size=60), data=st.data())
def test_no_order_and_no_partition_changes_a_bit(values: list[float], data: st.DataObject):
    column = np.array(values)
    expected = reproducible_sum(column)
    order = data.draw(st.permutations(range(len(values))))
    cuts = sorted(data.draw(st.lists(st.integers(0, len(values)), max_size=5)))
    grid = grids(np.abs(column).max(), len(column))
    assert in_parts(column[order], cuts, grid).tobytes() == expected.tobytes()
    assert abs(expected - math.fsum(values)) <= 1e-15 * math.fsum(map(abs, values))


@pytest.mark.parametrize("n", [1, 2, 3, 1000, BLOCK + 1, 200_000])
def test_matrices_are_summed_by_column(n: int):
    rng = np.random.default_rng(n)
    values = (
        rng.standard_normal((n, 4)) * [1.0, 1e300 / n, 1e-310, 0.0] * rng.lognormal(0, 3, (n, 4)).clip(0, 1)
    )
    sums = reproducible_sum(values)
    for j in range(4):
        assert abs(sums[j] - math.fsum(values[:, j])) <= 1e-15 * math.fsum(np.abs(values[:, j]))
    shuffled = rng.permutation(values)
    grid = grids(np.abs(values).max(axis=0), n)
    pieces = [partial(part, grid) for part in np.array_split(np.asfortranarray(shuffled), 7)]
    np.testing.assert_array_equal(total(sum(reversed(pieces), np.zeros(grid.shape))), sums)
    np.testing.assert_array_equal(sums[0], reproducible_sum(values[:, 0]))


@pytest.mark.parametrize("count", [1, 2, 2**10, 2**19, 2**19 + 1, 2**27, 2**31])
def test_accuracy_holds_where_one_value_hides_the_others(count: int):
    """The worst case: one large value, all others just below what the last grid still holds."""
    grid = grids(1.0, count)
    last_step = grid[-1] / 1.5 * 2.0**-52
    assert count * last_step / 2 <= 1e-15
    assert len(grid) <= 4


@pytest.mark.parametrize("count", [2**16, 2**31])
def test_pieces_at_their_largest_add_up_exactly(count: int):
    """As many equal pieces as the count allows still fit into 53 digits of each grid."""
    largest = 1.0 - 2.0**-53
    grid = grids(largest, count)
    piece = partial(np.array([largest]), grid)
    assert piece.sum() == largest
    for level, constant in enumerate(grid):
        step = constant / 1.5 * 2.0**-52
        bound = count * (1.0 if level == 0 else grid[level - 1] / 1.5 * 2.0**-53)
        assert bound <= 2.0**53 * step
        assert (piece[level] / step).is_integer()


def test_small_numbers_are_kept_to_the_smallest():
    values = np.full(1000, TINY)
    assert reproducible_sum(values) == 1000 * TINY
    assert reproducible_sum(np.array([1e-300, TINY, -1e-300])) == pytest.approx(TINY, abs=1e-315)
    assert reproducible_sum(np.array([TINY, -TINY])) == 0.0


def test_nothing_adds_up_to_zero():
    assert reproducible_sum(np.zeros(0)).tolist() == 0.0
    assert reproducible_sum(np.zeros((0, 2))).tolist() == [0.0, 0.0]
    assert reproducible_sum(np.zeros((5, 0))).tolist() == []
    assert np.signbit(reproducible_sum(np.array([-0.0, 0.0]))).item() is False


def test_large_numbers_are_summed_or_refused():
    assert reproducible_sum(np.array([1e300, -1e300, 1.0, 1e300])) == 1e300
    for largest, count in [(1e300, 2**20), (1e308, 2), (math.inf, 1), (math.nan, 1), (1.0, 2**31 + 1)]:
        with pytest.raises(OverflowError):
            grids(largest, count)


def test_read_only_and_strided_values_are_left_as_they_are():
    values = np.arange(24.0).reshape(8, 3)[::2]
    values.flags.writeable = False
    np.testing.assert_array_equal(reproducible_sum(values), values.sum(axis=0))

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from maskwell.laws import Outlet
from maskwell.laws.transform import beyond, inside, on_unit

UNITS = ("1", "0.01", "0.05", "50", "0.3", "1/8")


@given(st.integers(-(10**9), 10**9), st.integers(0, 6))
def test_rounded_values_are_the_doubles_that_people_write(steps, places):
    unit = Fraction(1, 10**places)
    written = float(Decimal(steps).scaleb(-places))
    assert on_unit(np.array([written + 1e-8 * float(unit)]), unit)[0] == written


def test_zero_has_no_sign():
    rounded = on_unit(np.array([-0.3, -0.0, 0.3]), Fraction(1))
    assert not np.signbit(rounded).any()


@given(st.floats(-1e6, 1e6), st.sampled_from(UNITS))
def test_rounding_moves_by_half_a_unit_at_most(value, unit):
    moved = abs(on_unit(np.array([value]), Fraction(unit))[0] - value)
    assert moved <= float(Fraction(unit)) / 2 * (1 + 1e-9)


def test_the_grid_inside_a_limit():
    one, cent = Fraction(1), Fraction("0.01")
    assert inside(0.5, 1, one) == 1
    assert inside(0.5, -1, one) == 0
    assert inside(3.0, 1, one) == 3
    assert inside(3.0, 1, one, (3.0, 4.0)) == 5
    assert beyond(3.0, 1, one) == 4
    assert beyond(3.0, -1, one, (2.0,)) == 1
    assert beyond(0.07, 1, cent) == 0.08
    assert beyond(99.5, -1, one) == 99


def test_values_are_transformed_back_then_limited_then_rounded():
    outlet = Outlet(Fraction(10), low=20.0, high=90.0, log_shift=5.0)
    noised = np.log(np.array([9.0, 31.0, 69.9, 200.0]))
    assert outlet.leave(noised, np.full(4, 50.0)).tolist() == [20, 30, 60, 90]
    assert np.allclose(outlet.enter(np.array([26.0, 64.9])), noised[1:3])


def test_codes_are_stepped_off_towards_the_true_value():
    outlet = Outlet(Fraction(1), avoid=(8.0, 9.0, -1.0))
    noised = np.array([8.2, 8.9, 8.2, -1.1, -0.9, 7.0])
    x = np.array([12.0, 8.5, 3.0, -5.0, 5.0, 7.0])
    assert outlet.leave(noised, x).tolist() == [10, 10, 7, -2, 0, 7]


def test_coded_limits_may_lie_off_the_grid():
    outlet = Outlet(Fraction(1), high=98.5, high_coded=True, low=0.5, low_coded=True)
    noised = np.array([98.4, 98.49, 98.6, 99.0, 120.0, 0.4, 0.6])
    assert outlet.leave(noised, noised).tolist() == [98, 98, 98.5, 98.5, 98.5, 0.5, 1]
    assert outlet.codes == (0.5, 98.5)
    assert Outlet(low=0.0, high=9.0, high_coded=True).codes == (None, 9.0)


@st.composite
def outlets(draw):
    unit = Fraction(draw(st.sampled_from(UNITS)))
    codes = draw(st.lists(st.integers(-6, 6), unique=True, max_size=4))
    avoid = tuple(float(code * unit) for code in codes)
    low = draw(st.none() | st.integers(-9, -7).map(lambda k: float(k * unit)))
    high = draw(st.none() | st.integers(7, 9).map(lambda k: float(k * unit)))
    shift = draw(st.none() | st.just(20 * float(unit)) | st.just(9.3 * float(unit)))
    coded = draw(st.booleans())
    return Outlet(unit, low, high, coded and low is not None, coded and high is not None, shift, avoid)


@settings(max_examples=300)
@given(outlets(), st.floats(-12, 12), st.floats(-8, 8))
def test_what_leaves_came_from_its_own_cell(outlet, noised_steps, x_steps):
    """`leave` and `cell` are the same way in two directions."""
    unit = float(outlet.unit)
    shift = outlet.log_shift
    raw = noised_steps * unit if shift is None else max(noised_steps * unit, -shift + 1e-9 * unit)
    noised = np.array([raw if shift is None else np.log(raw + shift)])
    x = np.array([x_steps * unit])
    z = outlet.leave(noised.copy(), x)
    assert z[0] not in outlet.avoid
    for sd in (1e-9 * unit, 1e9 * unit):
        cell = outlet.cell(z, x, np.array([sd]))
        if cell.is_point[0]:
            assert cell.lower[0] == pytest.approx(outlet.enter(z)[0])
        else:
            slack = 1e-9 * max(1.0, abs(noised[0]))
            assert cell.lower[0] - slack <= noised[0] <= cell.upper[0] + slack


def test_cells_of_codes_and_of_values_beyond_a_limit_are_empty():
    outlet = Outlet(Fraction(1), low=0.0, high=9.0, avoid=(4.0,), log_shift=0.0)
    cell = outlet.cell(np.array([4.0, 10.0, -1.0]), np.array([5.0, 5.0, 5.0]), np.ones(3))
    assert np.array_equal(cell.lower, [np.inf] * 3)


def test_a_unit_small_against_the_noise_makes_points():
    fine = Outlet(Fraction("0.01"), high=3.0)
    cell = fine.cell(np.array([1.0, 3.0]), np.zeros(2), np.ones(2))
    assert cell.is_point.tolist() == [True, False]
    assert cell.log_factor.tolist() == [0, 0]
    coarse = Outlet(Fraction(1)).cell(np.array([2.0]), np.zeros(1), np.ones(1))
    assert (coarse.lower[0], coarse.upper[0], coarse.log_factor[0]) == (1.5, 2.5, 0)
    on_logs = Outlet(Fraction("0.01"), log_shift=1.0).cell(np.array([3.0, -0.9]), np.ones(2), np.ones(2))
    assert on_logs.is_point.tolist() == [True, False]
    assert on_logs.log_factor == pytest.approx([-np.log(4), -np.log(0.01)])


@given(outlets())
def test_plain_data_gives_the_same_outlet(outlet):
    assert Outlet.from_dict(outlet.to_dict()) == outlet


@pytest.mark.parametrize("residual", [0.0, 2.0, 4.0, 6.0])
def test_a_fine_unit_taken_for_exact_is_off_by_what_the_comment_says(residual):
    from scipy.stats import norm

    from maskwell.laws import Additive, Normal

    law = Additive(("a",), Normal((1.0,)), (Outlet(Fraction(1, 20)),))
    assert law.outlets[0].cell(np.array([residual]), np.zeros(1), np.ones(1)).is_point.all()
    interval = (norm.sf(residual - 0.025) - norm.sf(residual + 0.025)) / 0.05
    point = np.exp(law.logpdf(np.array([[residual]]), np.zeros((1, 1)))[0])
    expected = 0.05**2 / 24 * abs(residual**2 - 1)
    assert abs(point / interval - 1) == pytest.approx(expected, rel=0.02)

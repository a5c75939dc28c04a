from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import multivariate_normal, norm

from maskwell.laws import Additive, Multiplicative, Normal, Outlet, Power, SkewedBias
from maskwell.schema import Column

from .conftest import CORRELATIONS, DRAWS, NAN, PAIR, drawn, stream_of, whole

LOW = Fraction(1, 10**6)


def fine(**rest) -> Outlet:
    return Outlet(LOW, **rest)


def test_the_order_is_transform_noise_back_limits_unit():
    law = Additive(
        ("a",), Normal((0.5,)), (whole(10, low=20.0, high=90.0, log_shift=5.0),), mean_corrected=True
    )
    x = np.linspace(6, 200, 300)[:, None]
    noise = 0.5 * stream_of(300).normals("a")
    back = np.exp(np.log(x[:, 0] + 5) - 0.5**2 / 2 + noise) - 5
    expected = np.round(np.clip(back, 20, 90) / 10) * 10
    assert np.array_equal(law.draw(x, stream_of(300))[:, 0], expected)


def test_noise_is_scaled_and_centred_by_the_value():
    law = Additive(("a",), Normal((2.0,)), (Outlet(),), slope=0.8, offsets=(3.0,), spreads=(Power(0.5),))
    x = np.linspace(0, 9, 50)[:, None]
    expected = 0.8 * x[:, 0] + 3 + np.sqrt(x[:, 0]) * 2 * stream_of(50).normals("a")
    assert np.allclose(law.draw(x, stream_of(50))[:, 0], expected, rtol=1e-15)


def test_noise_on_logs_keeps_the_mean():
    law = Additive(("a",), Normal((0.4,)), (fine(log_shift=1.0),), mean_corrected=True)
    z = drawn(law, (3.0,))
    assert abs(z.mean() - 3) < 4 * z.std() / np.sqrt(DRAWS)
    biased = drawn(Additive(("a",), Normal((0.4,)), (fine(log_shift=1.0),)), (3.0,))
    assert abs(biased.mean() - 3) > 4 * biased.std() / np.sqrt(DRAWS)


def test_bias_has_its_moments_cell_by_cell():
    normal = Additive(("a",), Normal((1.0,)), (fine(),), spreads=(Multiplicative(0.3, 0.5),))
    for law in (normal, SkewedBias(("a",), 0.3, (0.5,), (fine(),))):
        z = drawn(law, (4.0,))[:, 0]
        assert abs(z.mean() - 4) < 4 * z.std() / np.sqrt(DRAWS)
        squares = (z - 4) ** 2
        assert abs(squares.mean() - (0.5**2 + 0.3**2 * 16)) < 4 * squares.std() / np.sqrt(DRAWS)


def test_a_lognormal_bias_never_turns_a_sign():
    law = SkewedBias(("a", "b"), 2.0, (0.0, 0.0), (fine(), fine()))
    z = drawn(law, (4.0, -4.0))
    assert z[:, 0].min() >= 0
    assert z[:, 1].max() <= 0
    assert abs(np.corrcoef(z.T)[0, 1]) < 4 / np.sqrt(DRAWS)


def test_the_density_is_that_of_the_open_columns():
    noise = Normal((1.0, 2.0, 3.0), CORRELATIONS)
    law = Additive(tuple("abc"), noise, (fine(),) * 3)
    x = np.array([[0.0, 1.0, 2.0], [0.0, NAN, 2.0], [NAN, 1.0, NAN]])
    z = np.array([[0.5, 2.0, -1.0], [0.5, NAN, -1.0], [NAN, 2.0, NAN]])
    kept = [0, 2]
    expected = [
        multivariate_normal(x[0], noise.covariance).logpdf(z[0]),
        multivariate_normal(x[1, kept], noise.covariance[np.ix_(kept, kept)]).logpdf(z[1, kept]),
        norm.logpdf(2.0, 1.0, 2.0),
    ]
    assert law.logpdf(z, x) == pytest.approx(expected, abs=1e-9)


def test_the_density_at_a_limit_is_the_tail_given_the_other_column():
    law = Additive(("a", "b"), Normal((1.0, 20.0), PAIR), (fine(), fine(high=110.0)))
    z, x = np.array([[1.0, 110.0]]), np.array([[0.0, 100.0]])
    expected = norm.logpdf(1.0) + norm.logsf(110.0, 116.0, 12.0)
    log, error = law.logpdf_with_error(z, x)
    assert log[0] == pytest.approx(expected, abs=1e-7)
    assert error[0] < 1e-9
    product = norm.logpdf(1.0) + norm.logsf(110.0, 100.0, 20.0)
    assert abs(log[0] - product) > 0.3


def test_both_columns_at_a_limit_have_the_probability_of_the_corner():
    law = Additive(("a", "b"), Normal((1.0, 20.0), PAIR), (fine(high=0.0), fine(high=100.0)))
    z = x = np.array([[0.0, 100.0]])
    assert np.exp(law.logpdf(z, x))[0] == pytest.approx(1 / 4 + np.arcsin(0.8) / (2 * np.pi), abs=1e-6)


def test_the_error_of_a_rectangle_is_stated_and_true():
    law = Additive(
        tuple("abcd"), Normal((1.0,) * 4, tuple(map(tuple, 0.5 + 0.5 * np.eye(4)))), (fine(high=0.0),) * 4
    )
    log, error = law.logpdf_with_error(np.zeros((1, 4)), np.zeros((1, 4)))
    assert 0 < error[0] < 1e-4
    assert abs(np.exp(log[0]) - 1 / 5) <= error[0]  # orthant of equicorrelated normals at 0.5


@pytest.mark.parametrize("unit", [Fraction(1), Fraction("0.5"), None])
def test_without_noise_a_value_leaves_as_what_it_becomes_alone(unit):
    law = Additive(("a",), Normal((0.0,)), (Outlet(unit, high=6.0, high_coded=True),))
    x = np.array([[2.5], [3.5], [4.0], [9.0]])
    z = law.draw(x, stream_of(4))
    assert np.isfinite(law.logpdf(z, x)).all()
    assert law.logpdf(z, x)[3] == 0
    assert np.array_equal(law.logpdf(z + 1, x), np.full(4, -np.inf))


def test_a_column_that_the_others_determine_only_has_to_agree_with_them():
    """Over all released totals, the density of a, b and a + b is that of a and b."""
    covariance = np.array([[4.0, 1.0, 5.0], [1.0, 9.0, 10.0], [5.0, 10.0, 15.0]])
    sds = np.sqrt(np.diag(covariance))
    noise = Normal(tuple(sds), tuple(map(tuple, (covariance / np.outer(sds, sds)).tolist())))
    law = Additive(("a", "b", "t"), noise, (whole("0.1"),) * 3)
    z = np.array([[11.3, 18.9, total] for total in (30.0, 30.1, 30.2, 30.3, 30.4)])
    x = np.tile([10.0, 20.0, 30.0], (5, 1))
    logs, error = law.logpdf_with_error(z, x)
    pair = Additive(("a", "b"), noise.only([0, 1]), (whole("0.1"),) * 2)
    assert np.isfinite(logs).tolist() == [False, True, True, True, False]
    assert error.max() < 1e-6
    assert np.exp(logs).sum() * 0.1 == pytest.approx(np.exp(pair.logpdf(z[:1, :2], x[:1, :2])[0]), rel=2e-3)


def test_impossible_values_have_no_density():
    law = Additive(("a", "b"), Normal((1.0, 20.0), PAIR), (fine(low=0.0, avoid=(3.0,)), fine()))
    x = np.array([[1.0, 100.0]] * 3)
    z = np.array([[-0.5, 100.0], [3.0, 100.0], [0.0, 100.0]])
    assert np.array_equal(np.isfinite(law.logpdf(z, x)), [False, False, True])


def test_columns_of_very_different_size_lose_no_digits():
    law = Additive(
        ("a", "b"), Normal((1e-6, 1e7), PAIR), (Outlet(Fraction(1, 10**9)), Outlet(Fraction(1000)))
    )
    small = Additive(
        ("a", "b"), Normal((1.0, 1.0), PAIR), (Outlet(Fraction(1, 1000)), Outlet(Fraction(1, 10**4)))
    )
    z = np.array([[0.7, -0.4]])
    wide = law.logpdf(z * [1e-6, 1e7], np.zeros((1, 2)))
    assert wide[0] == pytest.approx(small.logpdf(z, np.zeros((1, 2)))[0] - np.log(10), abs=1e-6)


def test_released_columns_are_described_as_they_leave():
    law = Additive(("a",), Normal((1.0,)), (whole("0.5", low=0.5, high=99.0, high_coded=True),))
    column = Column("a", "continuous", bottom=0.0, top=120.0)
    released = law.released(column)
    assert (released.unit, released.top, released.bottom) == (0.5, 99.0, 0.0)
    plain = Additive(("a",), Normal((1.0,)), (whole(1),)).released(Column("a", "integer", top=9))
    assert plain == Column("a", "integer", top=9)
    skewed = SkewedBias(("a",), 0.1, (1.0,), (whole(10, low=5.0, low_coded=True),)).released(
        Column("a", "integer")
    )
    assert (skewed.unit, skewed.bottom) == (10, 5.0)


def test_categories_with_noise_leave_as_numbers_unless_rounded():
    column = Column("a", "category", categories=("x", "y"), labels=(("x", "one"),), missing=("?",))
    noise, limits = Normal((0.5,)), {"low": 0.0, "high": 1.0}
    numbers = Additive(("a",), noise, (whole("0.01", **limits),), categories=(("x", "y"),)).released(column)
    assert (numbers.kind, numbers.unit, numbers.categories, numbers.labels) == ("continuous", 0.01, (), ())
    assert numbers.missing == ("?",)
    assert Additive(("a",), noise, (whole(1, **limits),), categories=(("x", "y"),)).released(column) == column


def test_the_density_nearly_is_the_density_but_for_rectangles_of_several_columns():
    rng, names = np.random.default_rng(5), ("A", "B", "C", "D")
    correlations = tuple(tuple(1.0 if i == j else 0.5 for j in range(4)) for i in range(4))
    noise = Normal((1.0, 2.0, 0.5, 1.0), correlations)
    x = rng.lognormal(1, 1, size=(300, 4))
    for outlets, off in (((Outlet(),) * 4, 1e-9), ((Outlet(low=0.0),) * 4, 0.1)):
        law = Additive(names, noise, outlets)
        z = np.column_stack([np.clip(x[:, j] + rng.normal(size=300), outlets[j].low, None) for j in range(4)])
        exact, nearly = law.logpdf(z, x), law.logpdf_nearly(z, x)
        assert (np.isneginf(exact) == np.isneginf(nearly)).all()
        assert nearly == pytest.approx(exact, abs=off)

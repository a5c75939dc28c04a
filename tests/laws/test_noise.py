from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from maskwell.laws import Laplace, Normal
from maskwell.laws.noise import combine, conditional_sds, scaled_root, symmetric_root, weight_box

from .conftest import CORRELATIONS, stream_of

SDS = (1.0, 2.0, 3.0)


def correlations_from(seed: int, width: int, rank: int) -> np.ndarray:
    factors = np.random.default_rng(seed).normal(size=(width, rank))
    factors /= np.linalg.norm(factors, axis=1, keepdims=True)
    matrix = factors @ factors.T
    np.fill_diagonal(matrix, 1.0)
    return matrix


def test_the_root_is_symmetric_and_squares_to_the_matrix():
    matrix = np.array(CORRELATIONS)
    root = symmetric_root(matrix)
    assert np.array_equal(root, root.T)
    assert np.abs(root @ root - matrix).max() < 1e-14


@settings(max_examples=30)
@given(
    seed=st.integers(0, 10**6),
    width=st.integers(2, 6),
    lost=st.integers(0, 2),
    powers=st.lists(st.integers(-8, 8), min_size=6, max_size=6),
)
def test_the_root_keeps_its_digits_whatever_the_units_and_the_rank(seed, width, lost, powers):
    matrix = correlations_from(seed, width, max(1, width - lost))
    sds = 10.0 ** np.array(powers[:width])
    root = scaled_root(tuple(sds), tuple(map(tuple, matrix)))
    assert np.abs(root @ root.T / np.outer(sds, sds) - matrix).max() < 1e-11


def test_draws_have_the_covariance_of_the_law():
    noise = Normal(SDS, CORRELATIONS)
    drawn = noise.draw(stream_of(100_000), "abc")
    products = np.einsum("ni,nj->nij", drawn, drawn)
    errors = products.std(axis=0) / np.sqrt(len(drawn))
    assert np.all(np.abs(products.mean(axis=0) - noise.covariance) < 4 * errors)
    assert np.all(np.abs(drawn.mean(axis=0)) < 4 * np.array(SDS) / np.sqrt(len(drawn)))


def test_a_stretched_column_stretches_its_own_noise_alone():
    plain = Normal(SDS, CORRELATIONS).draw(stream_of(500), "abc")
    stretched = Normal((1.0, 2.0 * 1024, 3.0), CORRELATIONS).draw(stream_of(500), "abc")
    assert np.array_equal(stretched, plain * [1.0, 1024.0, 1.0])


def test_singular_noise_keeps_an_identity():
    """total = a + b, with the covariance that the data of such columns have."""
    covariance = np.array([[4.0, 1.0, 5.0], [1.0, 9.0, 10.0], [5.0, 10.0, 15.0]])
    sds = np.sqrt(np.diag(covariance))
    matrix = covariance / np.outer(sds, sds)
    noise = Normal(tuple(sds), tuple(map(tuple, matrix.tolist())))
    a, b, total = noise.draw(stream_of(10_000), "abt").T
    assert np.abs(a + b - total).max() < 1e-13
    assert np.array_equal(noise.resolution, np.zeros(3))


def test_sums_do_not_depend_on_the_number_of_records():
    columns, matrix = np.random.default_rng(1).normal(size=(1000, 7)), correlations_from(1, 7, 7)
    together = combine(columns, matrix)
    assert all(
        np.array_equal(combine(columns[i : i + 1], matrix)[0], together[i]) for i in range(0, 1000, 50)
    )
    assert np.abs(together - columns @ matrix.T).max() < 1e-14


def test_conditional_sds_are_those_of_regressions():
    covariance = Normal(SDS, CORRELATIONS).covariance
    expected = 1 / np.sqrt(np.diag(np.linalg.inv(covariance)))
    assert np.allclose(conditional_sds(covariance), expected, rtol=1e-12)


def test_conditional_sds_of_singular_and_silent_columns():
    twins = np.array([[1.0, 1.0, 0.3], [1.0, 1.0, 0.3], [0.3, 0.3, 4.0]])
    assert np.allclose(conditional_sds(twins), [0, 0, np.sqrt(4 - 0.09)], atol=1e-12)
    silent = np.array([[1.0, 0.0, 0.5], [0.0, 0.0, 0.0], [0.5, 0.0, 1.0]])
    assert np.allclose(conditional_sds(silent), [np.sqrt(0.75), 0, np.sqrt(0.75)], atol=1e-12)


def test_the_box_of_all_positive_draws_has_sheppards_probability():
    (_, r12, r13), (_, _, r23), _ = CORRELATIONS
    expected = 1 / 8 + (np.arcsin(r12) + np.arcsin(r13) + np.arcsin(r23)) / (4 * np.pi)
    ends = np.zeros((1, 3)), np.full((1, 3), np.inf)
    log, error = Normal(SDS, CORRELATIONS).log_box(*ends, (False,) * 3)
    assert error[0] < 1e-5
    assert abs(np.exp(log[0]) - expected) <= error[0]


def test_the_box_is_a_density_times_a_conditional_probability():
    """Not a product of tails: given a = 1 (sd 1, correlation 0.8), b has mean 16 and sd 12."""
    from scipy.stats import norm

    noise = Normal((1.0, 20.0), ((1.0, 0.8), (0.8, 1.0)))
    lower, upper = np.array([[1.0, 10.0]]), np.array([[1.0, np.inf]])
    log, _ = noise.log_box(lower, upper, (True, False))
    assert log[0] == pytest.approx(norm.logpdf(1.0) + norm.logsf(10.0, 16.0, 12.0), abs=1e-12)


def test_one_column_of_several_is_its_own_noise():
    noise = Normal(SDS, CORRELATIONS)
    assert noise.only([0, 2]) == Normal((1.0, 3.0), ((1.0, -0.4), (-0.4, 1.0)))
    assert noise.only([2, 0]) == Normal((3.0, 1.0), ((1.0, -0.4), (-0.4, 1.0)))
    assert Normal(SDS).only([1]) == Normal((2.0,))
    assert Laplace(SDS).only([2, 1]) == Laplace((3.0, 2.0))


@pytest.mark.parametrize("noise", [Normal((0.4,)), Laplace((0.4,))])
def test_the_log_mean_is_the_integral_over_the_density(noise):
    values = np.linspace(-40, 40, 400_001)[:, None]
    density = np.exp(noise.log_box(values, values, (True,))[0])
    for scale in (0.5, 1.0, 2.0):
        integral = np.trapezoid(density * np.exp(scale * values[:, 0]), values[:, 0])
        assert noise.log_mean_exp(0, np.array([scale]))[0] == pytest.approx(np.log(integral), abs=1e-6)


def test_laplace_noise_from_sqrt_two_on_has_no_log_mean():
    assert Laplace((1.0,)).log_mean_exp(0, np.array([1.4, 1.42]))[0] < np.inf
    assert Laplace((1.0,)).log_mean_exp(0, np.array([1.4, 1.42]))[1] == np.inf


def test_laplace_draws_have_their_sd_and_reach_both_tails():
    drawn = Laplace((1.5,)).draw(stream_of(100_000), "a")[:, 0]
    error = np.sqrt((6 - 1) / len(drawn)) * 1.5**2  # the fourth moment of a Laplace law is 6 sd^4
    assert abs(np.mean(drawn**2) - 1.5**2) < 4 * error
    assert drawn.min() < -8
    assert drawn.max() > 8


def test_equal_boxes_are_computed_once_and_change_no_bit(monkeypatch):
    from maskwell.kernels import normal_box

    noise, rng = Normal(SDS, CORRELATIONS), np.random.default_rng(6)
    lower = rng.integers(-2, 2, size=(400, 3)).astype(float)
    computed, original = [], normal_box.conditional_rectangle
    monkeypatch.setattr(
        normal_box, "conditional_rectangle", lambda *a, **k: computed.append(len(a[0])) or original(*a, **k)
    )
    log, error = noise.log_box(lower, lower + 1, (False, False, False))
    assert computed == [len(np.unique(lower, axis=0))]
    for record in range(0, 400, 40):
        alone = noise.log_box(lower[[record]], lower[[record]] + 1, (False, False, False))
        assert (log[record], error[record]) == (alone[0][0], alone[1][0])


def test_a_weight_has_the_probability_of_its_box_to_a_hundredth():
    noise, rng = Normal(SDS, CORRELATIONS), np.random.default_rng(8)
    upper = np.array(SDS) * rng.normal(-1, 1, size=(300, 3))
    lower = np.where(rng.random((300, 3)) < 0.5, -np.inf, upper - np.array(SDS))
    exact, _ = noise.log_box(lower, upper, (False, False, False))
    rough, error = weight_box(noise, lower, upper, (False, False, False))
    assert np.abs(np.expm1(rough - exact)).max() < 0.01
    assert (
        error <= 0.01 * np.exp(rough)
    ).mean() > 0.95  # where the points are spent it says by how much it is off
    apart = Normal(SDS)
    same = weight_box(apart, lower, upper, (False,) * 3)[0]
    assert (same == apart.log_box(lower, upper, (False,) * 3)[0]).all()

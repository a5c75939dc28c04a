"""Single draws against scipy's laws, in the middle, in far tails and in narrow intervals."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from numba import njit
from numpy.typing import NDArray
from scipy import special, stats

from maskwell.kernels import random as r

INF = math.inf
DRAWS = 20_000
FAINT = 1e-5  # a p-value below this fails: some 40 are looked at


@njit
def fill(draw: Any, rng: np.random.Generator, given: tuple[float, ...], out: NDArray[np.float64]) -> None:
    for i in range(len(out)):
        out[i] = draw(rng, *given)


def drawn(draw: Any, *given: float, seed: int = 1, count: int = DRAWS) -> NDArray[np.float64]:
    out = np.empty(count)
    fill(draw, np.random.default_rng(seed), given, out)
    return out


def within(values: NDArray[np.float64], truth: float) -> bool:
    """Whether the mean is within four standard errors of the truth."""
    return bool(abs(values.mean() - truth) < 4 * values.std() / math.sqrt(len(values)))


# --- truncated normal --------------------------------------------------------------------------------------

ONE_SIDED = [
    (-3.0, INF),
    (-0.2, INF),
    (0.0, INF),
    (0.2, INF),
    (0.31, INF),
    (1.0, INF),
    (4.0, INF),
    (38.0, INF),
]
MIRRORED = [(-INF, -lower) for lower, _ in ONE_SIDED]
BETWEEN = [
    (-INF, INF),
    (-1.0, 1.0),
    (-0.1, 2.6),
    (-0.1, 1.0),
    (0.1, 3.0),
    (0.5, 0.6),
    (2.0, 2.5),
    (5.0, 9.0),
] + [
    (-7.0, -6.9),
    (-1e-9, 1e-9),
    (9.0, 9.0001),
    (0.0, 2.0),
    (-2.0, -0.1),
]


@pytest.mark.parametrize(("lower", "upper"), ONE_SIDED + MIRRORED + BETWEEN)
def test_truncated_normal_follows_its_law(lower: float, upper: float):
    values = drawn(r.truncated_normal, 2.0, 3.0, 2.0 + 3.0 * lower, 2.0 + 3.0 * upper)
    assert values.min() >= 2.0 + 3.0 * lower
    assert values.max() <= 2.0 + 3.0 * upper
    law = stats.truncnorm(lower, upper, loc=2.0, scale=3.0)
    assert stats.kstest(values, law.cdf).pvalue > FAINT


@pytest.mark.parametrize("lower", [40.0, 1e3, 1e8, 1e200])
def test_far_out_the_excess_of_a_truncated_normal_is_nearly_exponential(lower: float):
    # lower end 0 and the mean far below, so that the excess is what is returned
    values = drawn(r.truncated_normal, -lower, 1.0, 0.0, INF) * lower
    law = stats.truncnorm(lower, INF).sf if lower == 40.0 else None
    tail = (lambda v: 1 - law(40.0 + v / 40.0) / law(40.0)) if law else stats.expon.cdf
    assert stats.kstest(values, tail).pvalue > FAINT


def test_a_truncated_normal_at_its_edges():
    rng = np.random.default_rng(3)
    assert r.truncated_normal(rng, 5.0, 0.0, 0.0, 1.0) == 1.0
    assert r.truncated_normal(rng, 0.5, 0.0, 0.0, 1.0) == 0.5
    assert r.truncated_normal(rng, 0.5, 1.0, 2.0, 2.0) == 2.0
    assert math.isnan(r.truncated_normal(rng, math.nan, 1.0, -INF, INF))
    assert r.truncated_normal(rng, -1e300, 1e-300, 0.0, INF) == 0.0


# --- gamma, inverse Gaussian -------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", [0.05, 0.7, 1.0, 3.5, 800.0])
def test_gamma_draws_follow_their_laws(shape: float):
    assert stats.kstest(drawn(r.gamma_draw, shape), stats.gamma(shape).cdf).pvalue > FAINT
    if shape > 0.1:
        inverse = stats.invgamma(shape, scale=2.0)
        assert stats.kstest(drawn(r.inverse_gamma, shape, 2.0), inverse.cdf).pvalue > FAINT


def test_exponential_draws_follow_their_law():
    assert stats.kstest(drawn(r.exponential, 4.0), stats.expon(scale=0.25).cdf).pvalue > FAINT


@pytest.mark.parametrize(("mean", "shape"), [(1.0, 1.0), (0.02, 3.0), (50.0, 0.5), (1e6, 1e-3)])
def test_inverse_gaussian_draws_follow_their_law(mean: float, shape: float):
    law = stats.invgauss(mean / shape, scale=shape)
    assert stats.kstest(drawn(r.inverse_gaussian, mean, shape), law.cdf).pvalue > FAINT


@pytest.mark.parametrize("mean", [INF, 1e300])
def test_an_inverse_gaussian_of_unbounded_mean_is_levy(mean: float):
    law = stats.levy(scale=2.0)
    assert stats.kstest(drawn(r.inverse_gaussian, mean, 2.0), law.cdf).pvalue > FAINT


# --- small matrices ----------------------------------------------------------------------------------------

SCALE = np.array([[2.0, 0.6, -0.3], [0.6, 1.0, 0.2], [-0.3, 0.2, 0.5]])


def test_the_root_is_choleskys_and_refuses_what_has_none():
    np.testing.assert_allclose(r.root_of(SCALE), np.linalg.cholesky(SCALE), rtol=1e-14)
    with pytest.raises(ValueError, match="positive definite"):
        r.root_of(np.array([[1.0, 2.0], [2.0, 1.0]]))


def test_wishart_draws_have_their_mean_and_their_determinant():
    rng, root, df = np.random.default_rng(5), np.linalg.cholesky(SCALE), 6.5
    roots = np.array([r.wishart_root(rng, df, root) for _ in range(DRAWS)])
    draws = roots @ roots.transpose(0, 2, 1)
    for i in range(3):
        for j in range(i + 1):
            assert within(draws[:, i, j], df * SCALE[i, j])
            assert within(draws[:, i, j] ** 2, variance_of(df, i, j) + (df * SCALE[i, j]) ** 2)
    logs = np.linalg.slogdet(draws)[1]
    expected = sum(special.digamma((df - i) / 2) for i in range(3)) + 3 * math.log(2)
    assert within(logs, expected + math.log(np.linalg.det(SCALE)))


def variance_of(df: float, i: int, j: int) -> float:
    return float(df * (SCALE[i, j] ** 2 + SCALE[i, i] * SCALE[j, j]))


def test_inverse_wishart_draws_follow_their_law():
    rng, df = np.random.default_rng(6), 12.0
    draws = np.array([r.inverse_wishart(rng, df, SCALE) for _ in range(DRAWS)])
    np.testing.assert_array_equal(draws, draws.transpose(0, 2, 1))
    for i in range(3):
        for j in range(i + 1):
            assert within(draws[:, i, j], SCALE[i, j] / (df - 4))
    for k in range(3):  # a diagonal element is inverse gamma
        law = stats.invgamma((df - 2) / 2, scale=SCALE[k, k] / 2)
        assert stats.kstest(draws[:, k, k], law.cdf).pvalue > FAINT
    one = np.array([[3.0]])
    single = np.array([r.inverse_wishart(rng, 2.5, one)[0, 0] for _ in range(DRAWS)])
    assert stats.kstest(single, stats.invgamma(1.25, scale=1.5).cdf).pvalue > FAINT


# --- categories --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("shift", [0.0, -2000.0, 700.0])
def test_categories_are_drawn_in_proportion(shift: float):
    shares = np.array([0.1, 0.0, 0.6, 0.3])
    with np.errstate(divide="ignore"):
        logs = np.log(shares) + shift
    rng = np.random.default_rng(7)
    counts = np.bincount([r.categorical_from_logs(rng, logs) for _ in range(DRAWS)], minlength=4)
    assert counts[1] == 0
    open_ = shares > 0
    assert stats.chisquare(counts[open_], DRAWS * shares[open_]).pvalue > FAINT


def test_where_no_category_is_possible_none_is_drawn():
    assert r.categorical_from_logs(np.random.default_rng(8), np.full(3, -INF)) == -1

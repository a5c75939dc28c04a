"""Polya-Gamma draws against their moments, their Laplace transform and a plain sum of gammas."""

from __future__ import annotations

import cmath
import math

import numpy as np
import pytest
from numba import njit
from numpy.typing import NDArray
from scipy import stats

from maskwell.kernels import polya_gamma as p

DRAWS = 15_000
SHAPES = (0.05, 0.4, 1.0, 1.7, 2.0, 4.0, 7.3, 60.0, 170.5, 700.0, 5000.0)
TILTS = (0.0, 1e-3, 0.59, -1.3, 3.0, 3.2, 11.0, 19.9, 30.0)
STANDARD_ERRORS = 4.8  # 99 cases with six figures each: Bonferroni at one in a thousand


@njit
def fill(rng: np.random.Generator, b: float, c: float, out: NDArray[np.float64]) -> None:
    for i in range(len(out)):
        out[i] = p.polya_gamma(rng, b, c)


def drawn(b: float, c: float, count: int = DRAWS) -> NDArray[np.float64]:
    out = np.empty(count)
    fill(np.random.default_rng([int(1000 * b), int(1000 * abs(c))]), b, c, out)
    return out


def log_laplace(t: float, b: float, c: float) -> float:
    """log E exp(-t w) = b log(cosh(c / 2) / cosh(sqrt(c^2 / 4 + t / 2)))."""
    root = cmath.sqrt(c * c / 4 + t / 2)
    return b * (log_cosh(c / 2) - log_cosh(root))


def log_cosh(x: complex) -> float:
    x = x if x.real >= 0 else -x
    return (x + cmath.log((1 + cmath.exp(-2 * x)) / 2)).real


def cumulants(b: float, c: float) -> tuple[float, float]:
    if abs(c) < 0.1:
        return b / 4 * (1 - c * c / 12), b / 24 * (1 - c * c / 5)
    mean = b / (2 * c) * math.tanh(c / 2)
    return mean, b * (math.sinh(c) - c) / (4 * c**3 * math.cosh(c / 2) ** 2)


def check(values: NDArray[np.float64], truth: float) -> None:
    error = values.std() / math.sqrt(len(values))
    assert abs(values.mean() - truth) < STANDARD_ERRORS * error + 1e-12 * abs(truth)


@pytest.mark.parametrize("b", SHAPES)
def test_moments_and_laplace_transform(b: float):
    for c in TILTS:
        draws = drawn(b, c)
        mean, variance = cumulants(b, c)
        check(draws, mean)
        check((draws - mean) ** 2, variance)
        for times in (0.3, 1.0, 3.0):  # in units of the scale on which the law varies
            t = times / (mean + math.sqrt(variance))
            check(np.exp(-t * draws), math.exp(log_laplace(t, b, c)))
        t = -min(
            0.5 / math.sqrt(variance), 0.1 * (c * c + math.pi**2)
        )  # the right tail, well before its pole
        check(np.exp(-t * (draws - mean)), math.exp(log_laplace(t, b, c) + t * mean))


@pytest.mark.parametrize(
    ("b", "c"), [(1.0, 0.0), (1.0, 2.9), (1.0, 4.0), (3.0, 1.0), (0.5, 2.0), (12.5, 6.0)]
)
def test_draws_equal_a_long_sum_of_gammas(b: float, c: float):
    count = 4000
    rng, k = np.random.default_rng(9), np.arange(400) + 0.5
    weights = 1 / (2 * np.pi**2 * (k**2 + (c / (2 * np.pi)) ** 2))
    plain = rng.standard_gamma(b, (count, 400)) @ weights + b * (cumulants(1.0, c)[0] - weights.sum())
    assert stats.ks_2samp(drawn(b, c), plain).pvalue > 1e-5


def test_cumulants_join_where_their_series_ends_and_agree_with_the_sum():
    below, above = p._cumulants(0.2 - 1e-9), p._cumulants(0.2)
    np.testing.assert_allclose(below, above, rtol=1e-8)
    k = np.arange(100_000) + 0.5
    for u in (0.0, 0.1, 0.199, 0.2, 1.0, 9.0):
        weights = 1 / (2 * np.pi**2 * (k**2 + (u / np.pi) ** 2))
        expected = (weights.sum() + 0.5 / np.pi**2 / len(k), (weights**2).sum(), 2 * (weights**3).sum())
        np.testing.assert_allclose(p._cumulants(u), expected, rtol=1e-10)


def test_the_series_is_accepted_at_once_only_where_it_may_be():
    # the first correction is largest at the cut, from either side
    corrections = (3 * math.exp(-4 / p.CUT), 3 * math.exp(-(math.pi**2) * p.CUT))
    assert max(corrections) < 1 - p.SURE


def test_nothing_is_drawn_for_no_trials():
    assert p.polya_gamma(np.random.default_rng(1), 0.0, 1.0) == 0.0
    assert p.polya_gamma(np.random.default_rng(1), 0.0, 30.0) == 0.0

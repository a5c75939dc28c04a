from __future__ import annotations

import numpy as np
import pytest
from scipy import integrate, special, stats

from maskwell.analysis.samplers.marginal.families import rule
from maskwell.kernels import marginal_likelihood

MEANS = np.array([-3.0, -0.4, 0.0, 0.7, 2.5, 6.0])
VARIANCES = np.array([0.2, 1.5, 1e-18, 0.01, 0.6, 0.3])
COUNTS = np.array([0.0, 3.0, 1.0, 0.0, 20.0, 350.0])
SHAPE = 2.5


def integral(log_chance, mean: float, variance: float) -> float:
    """The log of the mean of a chance over a normal linear predictor, by adaptive quadrature about its mode."""
    sd = np.sqrt(variance)
    grid = mean + sd * np.linspace(-12, 12, 1001)
    logs = np.array([log_chance(eta) for eta in grid]) + stats.norm.logpdf(grid, mean, sd)
    top, at = logs.max(), grid[np.argmax(logs)]
    inside, _ = integrate.quad(
        lambda eta: np.exp(log_chance(eta) + stats.norm.logpdf(eta, mean, sd) - top),
        mean - 12 * sd,
        mean + 12 * sd,
        points=[at, at - sd, at + sd],
        limit=400,
        epsabs=1e-13,
    )
    return float(top + np.log(inside))


def poisson(count: float, eta: float) -> float:
    return float(count * eta - np.exp(eta))


def negative_binomial(count: float, eta: float) -> float:
    """Less log of gamma(y + shape) / gamma(shape) / y!, which the kernel leaves out."""
    rate = np.exp(eta)
    return float(SHAPE * np.log(SHAPE / (SHAPE + rate)) + count * np.log(rate / (SHAPE + rate)))


def test_what_is_left_out_is_constant():
    whole = stats.nbinom.logpmf(3.0, SHAPE, SHAPE / (SHAPE + np.exp([0.3, 1.0])))
    left = special.gammaln(3.0 + SHAPE) - special.gammaln(SHAPE) - special.gammaln(4.0)
    assert np.allclose([negative_binomial(3.0, eta) for eta in (0.3, 1.0)], whole - left)


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_logit_is_the_integral_over_the_linear_predictor(sign):
    signs = np.full(6, sign)
    exact = sum(
        integral(lambda eta: -np.logaddexp(0.0, -sign * eta), m, max(v, 1e-12))
        for m, v in zip(MEANS, VARIANCES, strict=True)
    )
    assert marginal_likelihood.logit_total(signs, MEANS, VARIANCES, *rule(24)) == pytest.approx(
        exact, abs=1e-7
    )


def test_far_out_the_logit_is_exponential_and_nothing_underflows():
    mean, variance = np.array([-900.0, -60.0, 800.0]), np.array([2.0, 1.0, 1.0])
    total = marginal_likelihood.logit_total(np.ones(3), mean, variance, *rule(8))
    assert total == pytest.approx(-900 + 1.0 - 60 + 0.5, rel=1e-12)
    many = marginal_likelihood.logit_total(np.ones(2000), np.full(2000, -20.0), np.zeros(2000), *rule(4))
    assert many == pytest.approx(-2000 * np.logaddexp(0.0, 20.0), rel=1e-9)


def test_probit_is_closed_and_exact_far_out():
    mean = np.array([-80.0, -25.0, -3.0, 0.2, 4.0])
    variance = np.array([0.0, 0.1, 2.0, 0.5, 0.3])
    exact = stats.norm.logcdf(mean / np.sqrt(1 + variance)).sum()
    assert marginal_likelihood.probit_total(np.ones(5), mean, variance) == pytest.approx(exact, rel=1e-10)


@pytest.mark.parametrize(("shape", "term"), [(0.0, poisson), (SHAPE, negative_binomial)])
def test_counts_are_integrals_over_the_linear_predictor(shape, term):
    exact = sum(
        integral(lambda eta, c=count: term(c, eta), m, max(v, 1e-12))
        for count, m, v in zip(COUNTS, MEANS, VARIANCES, strict=True)
    )
    means = MEANS if shape == 0 else MEANS - np.log(shape)
    found = marginal_likelihood.count_total(COUNTS, shape, (means, VARIANCES), rule(12))
    assert found == pytest.approx(exact, abs=1e-6)


def total(family: str, mean, variance, shape: float) -> float:
    signs = np.array([1.0, -1.0, 1.0, 1.0, -1.0, 1.0])
    if family == "logit":
        return marginal_likelihood.logit_total(signs, mean, variance, *rule(24))
    if family == "probit":
        return marginal_likelihood.probit_total(signs, mean, variance)
    return marginal_likelihood.count_total(COUNTS, shape, (mean, variance), rule(24))


@pytest.mark.parametrize(
    ("family", "shape"), [("logit", 0.0), ("probit", 0.0), ("counts", 0.0), ("counts", SHAPE)]
)
def test_slopes_are_those_of_the_total(family, shape):
    signs = np.array([1.0, -1.0, 1.0, 1.0, -1.0, 1.0])
    variance = VARIANCES + 0.05
    slopes, moments = (np.empty(6), np.empty(6)), (MEANS, variance)
    if family == "logit":
        value = marginal_likelihood.logit_slopes(signs, moments, rule(24), slopes)
    elif family == "probit":
        value = marginal_likelihood.probit_slopes(signs, moments, slopes)
    else:
        value, by_shape = marginal_likelihood.count_slopes(COUNTS, shape, moments, rule(24), slopes)
    assert value == pytest.approx(total(family, MEANS, variance, shape), rel=1e-12)
    for which in (0, 1):
        for i in range(6):
            step = np.zeros(6)
            step[i] = 1e-4
            moved = [
                total(
                    family, MEANS + sign * step * (which == 0), variance + sign * step * (which == 1), shape
                )
                for sign in (1, -1)
            ]
            assert slopes[which][i] == pytest.approx((moved[0] - moved[1]) / 2e-4, rel=1e-4, abs=1e-5)
    if shape > 0:  # at a fixed linear predictor: the mean is less log(shape)
        ahead, behind = (
            total(family, MEANS - np.log((shape + s) / shape), variance, shape + s) for s in (1e-5, -1e-5)
        )
        assert by_shape == pytest.approx((ahead - behind) / 2e-5, rel=1e-5)

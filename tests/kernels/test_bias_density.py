"""Kernels of bias and noise against quadrature over the bias, their limits, and sums over nodes against plain sums."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.polynomial.legendre import leggauss
from numpy.typing import NDArray
from scipy.integrate import quad
from scipy.special import logsumexp
from scipy.stats import norm

from maskwell.kernels import bias_density, compilation
from maskwell.kernels.bias_density import FMS, FORWARD, PAPER, bias_log, bias_log_mean, log_bias

Floats = NDArray[np.float64]
NODES, WEIGHTS = leggauss(24)
KINDS = (FORWARD, PAPER, FMS)


def over_theta(z: float, x: float, bias_sd: float, sd: float, kind: int) -> float:
    """Integrate N(theta; 1, bias_sd^2) N(z - theta x; 0, sd^2), for `PAPER` times |theta|, over theta.

    In panels, as seen from the peak: its distances from 1 and from z are computed in whole numbers.
    """
    z, x = (x, z) if kind == FMS else (z, x)
    width = 1.0 / math.hypot(1.0 / bias_sd, x / sd)
    peak = width**2 * (1.0 / bias_sd**2 + z * x / sd**2)
    away, left = peak_distances(z, x, peak)
    kink = [-peak / width] if abs(peak) < 13 * width else []
    edges = np.unique([*range(-13, 14), *kink])
    half, middle = np.diff(edges)[:, None] / 2, (edges[:-1] + edges[1:])[:, None] / 2
    step = width * (middle + half * NODES)
    logs = -0.5 * ((away + step) / bias_sd) ** 2 - 0.5 * ((left - step * x) / sd) ** 2
    factor = width * half * WEIGHTS * (np.abs(peak + step) if kind == PAPER else 1.0)
    top = logs.max()
    total = math.fsum((factor * np.exp(logs - top)).ravel())
    return float(top + math.log(total) - math.log(2 * math.pi * bias_sd * sd))


def peak_distances(z: float, x: float, peak: float) -> tuple[float, float]:
    return float(Fraction(peak) - 1), float(Fraction(z) - Fraction(peak) * Fraction(x))


def cases() -> list[tuple[float, float, float, float]]:
    """Return (z, x, bias_sd, sd) in every regime: bias or noise rules, theta surely positive or not, far tails."""
    grid = itertools.product(
        (-3.0, -0.4, 0.0, 0.7, 1.0, 25.0, 1e4), (1e-3, 0.08, 0.5, 2.0, 30.0), (1e-3, 0.3, 1.0, 40.0)
    )
    steps = (-24.0, -6.0, -1.0, 0.0, 0.3, 9.0, 23.0)
    return [(x + r * math.hypot(sd, phi * x), x, phi, sd) for x, phi, sd in grid for r in steps]


# --- one pair ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_kernels_equal_quadrature_over_the_bias(kind: int):
    checked = 0
    for z, x, phi, sd in cases():
        got = log_bias(z, x, phi, sd, kind)
        if got > -300:
            assert got == pytest.approx(over_theta(z, x, phi, sd, kind), rel=0, abs=1e-12)
            checked += 1
    assert checked > 700


def mass(density: Callable[[float], float]) -> float:
    """Integrate a density over the line, cut where those of the test below have their peaks."""
    cuts = [-np.inf, -9.0, -2.0, 0.0, 1.0, 2.0, 3.0, 9.0, np.inf]
    options = {"limit": 500, "epsabs": 1e-11, "epsrel": 1e-11}
    return math.fsum(quad(density, a, b, **options)[0] for a, b in itertools.pairwise(cuts))


@pytest.mark.parametrize(("phi", "sd"), [(0.08, 1.0), (0.5, 0.2), (1.5, 3.0)])
def test_forward_is_a_law_of_z_and_the_others_are_laws_of_x(phi: float, sd: float):
    assert mass(lambda z: math.exp(log_bias(z, 2.0, phi, sd, FORWARD))) == pytest.approx(1.0, abs=1e-9)
    assert mass(lambda x: math.exp(log_bias(2.0, x, phi, sd, PAPER))) == pytest.approx(1.0, abs=1e-9)
    assert mass(lambda x: math.exp(log_bias(2.0, x, phi, sd, FMS))) == pytest.approx(1.0, abs=1e-9)


def test_without_bias_all_kernels_are_the_normal_density():
    z, x = np.linspace(-30, 30, 41), np.full(41, 2.5)
    for kind in KINDS:
        np.testing.assert_allclose(bias_log(z, x, 0.0, 1.7, kind), norm.logpdf(z, x, 1.7), rtol=1e-14)


def test_without_noise_theta_is_known():
    for z, x, phi in itertools.product((-4.0, -0.1, 0.3, 2.0, 5.0), (-3.0, 0.2, 2.0, 1e5), (0.05, 0.5, 4.0)):
        expected = norm.logpdf(z / x, 1.0, phi) - math.log(abs(x))
        assert log_bias(z, x, phi, 0.0, FORWARD) == pytest.approx(expected, rel=1e-13)
        assert log_bias(z, x, phi, 0.0, PAPER) == pytest.approx(expected + math.log(abs(z / x)), rel=1e-13)
        assert log_bias(z, x, phi, 0.0, FMS) == pytest.approx(norm.logpdf(x, z, phi * abs(z)), rel=1e-13)
    assert (
        log_bias(0.0, 3.0, 0.1, 0.0, PAPER) == -math.inf
    )  # theta = 0 leads from no x to z = 0 but with density 0


def test_a_mean_of_theta_of_zero_leaves_half_a_normal_law():
    # sd = bias_sd = x = 1, z = -1: m = 0 and u = 1/2
    expected = norm.logpdf(-1.0, 1.0, math.sqrt(2.0)) + 0.5 * math.log(2 / math.pi / 2)
    assert log_bias(-1.0, 1.0, 1.0, 1.0, PAPER) == pytest.approx(expected, abs=1e-15)


def test_the_factor_of_the_paper_does_not_jump_where_its_formula_changes():
    sd = 0.1
    for mean in (0.8, -0.8):
        below, at = (bias_density._log_folded(mean * (1 + step), sd) for step in (-1e-15, 1e-15))
        assert below == pytest.approx(at, abs=1e-14)


def test_without_any_noise_values_are_the_same_or_impossible():
    for kind in KINDS:
        got = bias_log(np.array([2.0, 2.0, 0.0]), np.array([2.0, 2.1, 0.0]), 0.0, 0.0, kind)
        np.testing.assert_array_equal(got, [0.0, -np.inf, 0.0])
        assert log_bias(0.0, 0.0, 0.3, 0.0, kind) == 0.0
    assert log_bias(1.0, 0.0, 0.3, 0.0, FORWARD) == -math.inf
    assert log_bias(1.0, 0.0, 0.3, 0.0, PAPER) == -math.inf
    assert log_bias(0.0, 1.0, 0.3, 0.0, FMS) == -math.inf


wild = st.floats(-1e306, 1e306) | st.sampled_from([0.0, 1.0, -1.0, 5e-324, 1e-160, 1e160, -1e306])
size = st.floats(0, 1e306) | st.sampled_from([0.0, 5e-324, 1e-160, 1e-20, 1.0, 1e20, 1e160])


@given(wild, wild, size, size, st.sampled_from(KINDS))
def test_never_nan(z: float, x: float, bias_sd: float, sd: float, kind: int):
    one = log_bias(z, x, bias_sd, sd, kind)
    nodes = np.array([bias_sd, 0.1]), np.array([sd, 1.0]), np.log([0.5, 0.5])
    assert not math.isnan(one)
    assert not np.isnan(bias_log_mean(np.array([z]), np.array([x]), *nodes, kind)).any()


@given(
    st.floats(-5, 5),
    st.floats(-5, 5),
    st.floats(0.01, 3),
    st.floats(0.01, 3),
    st.integers(-300, 300),
    st.sampled_from(KINDS),
)
def test_a_change_of_unit_changes_the_density_by_the_unit(z, x, phi, sd, power, kind):
    unit = 2.0**power
    moved = log_bias(z * unit, x * unit, phi, sd * unit, kind)
    assert moved == pytest.approx(log_bias(z, x, phi, sd, kind) - math.log(unit), rel=1e-13, abs=1e-12)


# --- sums over nodes ---------------------------------------------------------------------------------------


def summed(z: Floats, x: Floats, bias_sds: Floats, sds: Floats, log_weights: Floats, kind: int) -> Floats:
    nodes = zip(bias_sds, sds, log_weights, strict=True)
    return np.asarray(logsumexp([w + bias_log(z, x, phi, sd, kind) for phi, sd, w in nodes], axis=0))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("bias_sd", "sd"), [(0.08, 1.0), (0.3, 30.0), (2.0, 5.0), (1e-3, 1e-2), (0.0, 1.0)])
def test_sums_over_nodes_equal_plain_sums(kind: int, bias_sd: float, sd: float):
    rng = np.random.default_rng(1)
    x = rng.normal(90, 30, 700)
    z = x + rng.uniform(-24, 24, 700) * np.hypot(sd, bias_sd * x)
    nodes = (
        bias_sd * np.exp(rng.normal(0, 0.3, 9)),
        sd * np.exp(rng.normal(0, 0.3, 9)),
        np.log(rng.dirichlet(np.ones(9))),
    )
    for count in (0, 1, 127, 128, 129, 700):
        got = bias_log_mean(z[:count], x[:count], *nodes, kind)
        np.testing.assert_allclose(got, summed(z[:count], x[:count], *nodes, kind), rtol=1e-14, atol=3e-13)


def test_a_single_node_is_the_kernel_and_weights_need_not_sum_to_one():
    z, x, one = np.linspace(-5, 9, 50), np.full(50, 2.0), np.ones(1)
    for kind in KINDS:
        got = bias_log_mean(z, x, 0.4 * one, 0.7 * one, 3.0 * one, kind)
        np.testing.assert_allclose(got, 3.0 + bias_log(z, x, 0.4, 0.7, kind), atol=1e-13)


@pytest.mark.parametrize("kind", KINDS)
def test_numbers_beyond_squares_and_nodes_without_noise_or_weight_are_summed_too(kind: int):
    z = np.array([1e200, 1e-200, 0.0, 0.0, 1.0, 3.0, 5.0])
    x = np.array([1.1e200, 2e-200, 0.0, 1.0, 1.0, 2.5, 4.0])
    for sds, weights in [
        ([0.0, 0.0], [0.5, 0.5]),
        ([0.0, 1.0], [0.5, 0.5]),
        ([1.0, 2.0], [0.0, 1.0]),
        ([1.0, 2.0], [0.0, 0.0]),
    ]:
        with np.errstate(divide="ignore"):
            nodes = np.array([0.3, 0.5]), np.array(sds), np.log(weights)
        got, expected = bias_log_mean(z, x, *nodes, kind), summed(z, x, *nodes, kind)
        np.testing.assert_array_equal(np.isneginf(got), np.isneginf(expected))
        finite = np.isfinite(expected)
        np.testing.assert_allclose(got[finite], expected[finite], rtol=1e-14, atol=1e-13)


def test_one_command_compiles_the_drivers():
    compilation.compile_all()
    assert bias_density.bias_log.signatures
    assert bias_density.bias_log_mean.signatures

"""Boxes under normal laws against closed forms, scipy, nested quadrature and Monte Carlo."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.polynomial.legendre import leggauss
from numpy.typing import NDArray
from scipy import stats
from scipy.special import log_ndtr, ndtr, owens_t

from maskwell.kernels.densities import normal_log_interval
from maskwell.kernels.normal_box import conditional_rectangle, normal_rectangle

INF = math.inf
Floats = NDArray[np.float64]
UNITS = np.array([1.0, 100.0, 0.01, 7.0, 3.0])


def random_covariance(rng: np.random.Generator, m: int) -> Floats:
    factor = rng.normal(size=(m, m)) + 0.5 * np.eye(m)
    return (factor @ factor.T + 0.1 * np.eye(m)) * np.outer(UNITS[:m], UNITS[:m])


def random_boxes(rng: np.random.Generator, n: int, covariance: Floats) -> tuple[Floats, Floats]:
    """Boxes of all kinds, about a third of the sides open."""
    shape, sds = (n, len(covariance)), np.sqrt(np.diag(covariance))
    lower = (rng.normal(size=shape) - 1) * sds
    upper = lower + rng.exponential(2, shape) * sds
    return np.where(rng.random(shape) < 0.3, -INF, lower), np.where(rng.random(shape) < 0.3, INF, upper)


def by_conditioning(lower: Floats, upper: Floats, covariance: Floats) -> float:
    """Integrate the first coordinate by dense quadrature, the others given it by `normal_rectangle` in the plane."""
    nodes, weights = leggauss(160)
    sd = math.sqrt(covariance[0, 0])
    low, high = max(lower[0], -9 * sd), min(upper[0], 9 * sd)
    first = (low + high) / 2 + (high - low) / 2 * nodes
    slope = covariance[1:, 0] / covariance[0, 0]
    rest = covariance[1:, 1:] - np.outer(slope, covariance[0, 1:])
    inner, _ = normal_rectangle(lower[1:] - first[:, None] * slope, upper[1:] - first[:, None] * slope, rest)
    return float(weights @ np.exp(inner + stats.norm.logpdf(first, 0, sd))) * (high - low) / 2


# --- one and two coordinates -------------------------------------------------------------------------------


def test_one_coordinate_is_the_interval_mass():
    ends = np.array([-INF, -300.0, -40.0, -3.0, -1e-5, 0.0, 1e-9, 0.2, 5.0, 38.0, 1e4, INF])
    low, high = (part.ravel() for part in np.meshgrid(ends, ends))
    keep = low < high
    low, high, sds = low[keep], high[keep], np.full(keep.sum(), 3.0)
    log_p, error = normal_rectangle(3 * low[:, None], 3 * high[:, None], np.array([[9.0]]))
    np.testing.assert_allclose(log_p, normal_log_interval(3 * low, 3 * high, sds), rtol=1e-11, atol=1e-300)
    assert not error.any()


@pytest.mark.parametrize("rho", [0.0, 0.4, -0.9, 0.999, -0.999999])
def test_orthants_of_the_plane(rho: float):
    log_p, error = normal_rectangle(
        np.zeros((1, 2)), np.full((1, 2), INF), np.array([[4.0, 2 * rho], [2 * rho, 1.0]])
    )
    assert math.exp(log_p[0]) == pytest.approx(0.25 + math.asin(rho) / (2 * math.pi), abs=1e-12)
    assert error[0] <= 1e-12


@given(
    h=st.floats(-6, 6).filter(lambda v: abs(v) > 1e-3),
    k=st.floats(-6, 6).filter(lambda v: abs(v) > 1e-3),
    rho=st.floats(-0.999, 0.999),
)
def test_quadrants_of_the_plane_equal_owens_formula(h: float, k: float, rho: float):
    across = math.sqrt(1 - rho * rho)
    formula = (
        (ndtr(h) + ndtr(k)) / 2
        - owens_t(h, (k - rho * h) / (h * across))
        - owens_t(k, (h - rho * k) / (k * across))
    )
    formula -= 0.5 if h * k < 0 else 0.0
    log_p, _ = normal_rectangle(np.full((1, 2), -INF), np.array([[h, k]]), np.array([[1, rho], [rho, 1]]))
    assert math.exp(log_p[0]) == pytest.approx(formula, abs=1e-12)


@pytest.mark.parametrize("rho", [0.3, -0.97, 0.99999])
def test_boxes_of_the_plane_add_up_also_in_the_tails(rho: float):
    cuts = np.array([-INF, -30.0, -8.0, -1.0, 0.001, 0.002, 2.5, 12.0, INF])
    low = np.array([(a, b) for a in cuts[:-1] for b in cuts[:-1]])
    high = np.array([(a, b) for a in cuts[1:] for b in cuts[1:]])
    covariance = np.array([[1.0, rho], [rho, 1.0]])
    log_p, _ = normal_rectangle(low, high, covariance)
    assert np.exp(log_p).sum() == pytest.approx(1.0, abs=1e-12)
    rows = np.logaddexp.reduce(log_p.reshape(8, 8), axis=1)
    np.testing.assert_allclose(
        rows, normal_log_interval(cuts[:-1], cuts[1:], np.ones(8)), rtol=1e-11, atol=1e-12
    )


# --- more coordinates --------------------------------------------------------------------------------------


@pytest.mark.parametrize("rho", [(0.5, 0.5, 0.5), (0.2, -0.3, 0.6), (0.95, 0.9, 0.97), (0.0, 0.0, 0.0)])
def test_orthants_of_space(rho: tuple[float, float, float]):
    covariance = np.array([[1, rho[0], rho[1]], [rho[0], 1, rho[2]], [rho[1], rho[2], 1]])
    log_p, error = normal_rectangle(np.full((1, 3), -INF), np.zeros((1, 3)), covariance)
    expected = 1 / 8 + sum(map(math.asin, rho)) / (4 * math.pi)
    assert abs(math.exp(log_p[0]) - expected) <= error[0] + 1e-14
    assert error[0] <= 5e-6


def test_independent_coordinates_multiply():
    rng = np.random.default_rng(4)
    covariance = np.diag(UNITS**2)
    lower, upper = random_boxes(rng, 50, covariance)
    log_p, error = normal_rectangle(lower, upper, covariance)
    sides = [
        normal_log_interval(lower[:, j].copy(), upper[:, j].copy(), np.full(50, UNITS[j])) for j in range(5)
    ]
    np.testing.assert_allclose(log_p, np.sum(sides, axis=0), rtol=1e-12, atol=1e-13)
    assert error.max() < 1e-12


@pytest.mark.parametrize("m", [2, 3, 4])
def test_boxes_equal_those_of_scipy(m: int):
    rng = np.random.default_rng(m)
    covariance = random_covariance(rng, m)
    lower, upper = random_boxes(rng, 12, covariance)
    log_p, error = normal_rectangle(lower, upper, covariance)
    law = stats.multivariate_normal(np.zeros(m), covariance, seed=1, maxpts=400_000, abseps=1e-7, releps=1e-7)
    expected = [law.cdf(b, lower_limit=a) for a, b in zip(lower, upper, strict=True)]
    np.testing.assert_allclose(np.exp(log_p), expected, rtol=0, atol=1e-5 if m > 2 else 1e-9)
    assert error.max() < 2e-5


def test_the_stated_error_is_honest():
    """Over 60 random boxes in space the true error exceeds the stated one for hardly any, and never by much."""
    rng = np.random.default_rng(8)
    ratios = []
    for _ in range(6):
        covariance = random_covariance(rng, 3)
        lower, upper = random_boxes(rng, 10, covariance)
        log_p, error = normal_rectangle(lower, upper, covariance, tolerance=1e-4)
        truth = np.array([by_conditioning(a, b, covariance) for a, b in zip(lower, upper, strict=True)])
        ratios.append(np.abs(np.exp(log_p) - truth) / (error + 1e-12))
    exceeded = np.concatenate(ratios) > 1
    assert exceeded.mean() <= 0.02
    assert np.concatenate(ratios).max() < 2


def test_smaller_tolerances_are_met():
    covariance = np.array([[1, 0.6, 0.3], [0.6, 1, 0.5], [0.3, 0.5, 1]])
    lower, upper = np.full((1, 3), -1.0), np.array([[1.0, 2.0, INF]])
    truth = by_conditioning(lower[0], upper[0], covariance)
    for tolerance in (1e-3, 1e-5, 1e-7):
        log_p, error = normal_rectangle(lower, upper, covariance, tolerance=tolerance)
        assert error[0] <= tolerance
        assert abs(math.exp(log_p[0]) - truth) <= error[0]


@pytest.mark.parametrize("distance", [8.0, 12.0, 30.0, 60.0, 1000.0])
def test_tails_keep_their_logarithm(distance: float):
    """Savage (1962) bounds the mass beyond a far corner c by the density there over the product of the pulls R^-1 c."""
    correlation = np.full((3, 3), 0.4) + 0.6 * np.eye(3)
    corner, inverse = np.full(3, distance), np.linalg.inv(correlation)
    pull = inverse @ corner
    highest = stats.multivariate_normal.logpdf(corner, cov=correlation) - np.log(pull).sum()
    lowest = highest + math.log1p(-np.sum(inverse * (1 + np.eye(3)) / np.outer(pull, pull)) / 2)
    log_p, error = normal_rectangle(corner[None], np.full((1, 3), INF), correlation)
    slack = 1e-2 + 1e-12 * abs(highest)
    assert lowest - slack <= log_p[0] <= highest + slack
    assert error[0] <= 1e-2 * math.exp(log_p[0])


def test_independent_deep_tails_are_exact():
    log_p, _ = normal_rectangle(np.array([[30.0, 50.0, 1e5]]), np.full((1, 3), INF), np.eye(3))
    assert log_p[0] == pytest.approx(log_ndtr(-np.array([30.0, 50.0, 1e5])).sum(), rel=1e-12)


# --- singular laws -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("lower", "upper"),
    [
        ([-1.0, -50.0, 0.0], [2.0, 100.0, 6.0]),
        ([-INF, -INF, 3.0], [INF, INF, INF]),
        ([0.0, -INF, -3.0], [INF, INF, 3.0]),
        ([-0.5, -300.0, -INF], [0.5, INF, -4.0]),
        ([0.0, 0.0, 9.0], [1.0, 100.0, 12.0]),
    ],
)
def test_a_coordinate_that_is_the_sum_of_two_others(lower: list[float], upper: list[float]):
    """x3 = 3 (x1 + x2 / 100): the mass is a one-dimensional integral over x1 of what both bounds leave to x2."""
    factor = np.array([[1.0, 0.0], [0.0, 100.0], [3.0, 3.0]])
    log_p, error = normal_rectangle(np.array([lower]), np.array([upper]), factor @ factor.T)
    nodes = np.linspace(max(lower[0], -9), min(upper[0], 9), 400_001)
    low = np.maximum(lower[1] / 100, lower[2] / 3 - nodes)
    high = np.minimum(upper[1] / 100, upper[2] / 3 - nodes)
    heights = stats.norm.pdf(nodes) * np.maximum(ndtr(high) - ndtr(low), 0.0)
    assert abs(np.exp(log_p[0]) - np.trapezoid(heights, nodes)) <= error[0] + 1e-9
    assert error[0] < 2e-6


def test_a_singular_law_against_monte_carlo():
    rng = np.random.default_rng(21)
    factor = rng.normal(size=(5, 3)) * UNITS[:, None]
    draws = rng.standard_normal((400_000, 3)) @ factor.T
    lower, upper = random_boxes(rng, 8, factor @ factor.T)
    log_p, error = normal_rectangle(lower, upper, factor @ factor.T, tolerance=1e-4)
    for a, b, p, e in zip(lower, upper, np.exp(log_p), error, strict=True):
        share = ((draws >= a) & (draws <= b)).all(axis=1).mean()
        assert abs(p - share) <= 4 * math.sqrt(max(p * (1 - p), 1e-6) / 400_000) + e


def test_equal_and_opposite_coordinates_intersect():
    signs = np.array([1.0, 1.0, -1.0])
    lower, upper = (
        np.array([[-1.0, -2.0, -0.5], [0.0, 0.1, 0.2]]),
        np.array([[1.0, 2.0, 3.0], [1.0, 1.0, 1.0]]),
    )
    log_p, error = normal_rectangle(lower, upper, np.outer(signs, signs))
    assert math.exp(log_p[0]) == pytest.approx(ndtr(0.5) - ndtr(-1.0), rel=1e-13)
    assert log_p[1] == -INF
    assert not error.any()


def test_constants_empty_boxes_and_missing_bounds():
    covariance = np.diag([0.0, 1.0])
    lower = np.array(
        [[-1.0, -1.0], [0.0, -INF], [0.1, -1.0], [-1.0, 1.0], [-1.0, 2.0], [-1.0, INF], [0.0, np.nan]]
    )
    upper = np.array([[1.0, 1.0], [0.0, INF], [0.2, 1.0], [1.0, 1.0], [1.0, 1.0], [1.0, INF], [0.0, 1.0]])
    log_p, error = normal_rectangle(lower, upper, covariance)
    np.testing.assert_allclose(
        log_p, [math.log(ndtr(1) - ndtr(-1)), 0.0, -INF, -INF, -INF, -INF, np.nan], rtol=1e-13
    )
    assert not error.any()
    assert normal_rectangle(np.zeros((2, 0)), np.zeros((2, 0)), np.zeros((0, 0)))[0].tolist() == [0.0, 0.0]
    assert normal_rectangle(np.zeros((0, 3)), np.zeros((0, 3)), np.eye(3))[0].shape == (0,)


def test_more_coordinates_than_the_lattice_has_are_refused():
    with pytest.raises(ValueError, match="at most 25 coordinates; this one has 26"):
        normal_rectangle(np.zeros((1, 26)), np.ones((1, 26)), np.eye(26))


# --- bits --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("m", [1, 2, 3, 5])
def test_answers_do_not_depend_on_the_batch(m: int):
    rng = np.random.default_rng(40 + m)
    covariance = random_covariance(rng, m)
    lower, upper = random_boxes(rng, 150 if m < 3 else 70, covariance)
    together = normal_rectangle(lower, upper, covariance, tolerance=1e-4)
    order = rng.permutation(len(lower))
    shuffled = normal_rectangle(lower[order], upper[order], covariance, tolerance=1e-4)
    alone = [
        normal_rectangle(lower[[i]], upper[[i]], covariance, tolerance=1e-4) for i in range(0, len(lower), 7)
    ]
    for k in range(2):
        np.testing.assert_array_equal(shuffled[k], together[k][order])
        np.testing.assert_array_equal([answer[k][0] for answer in alone], together[k][::7])


# --- points and boxes --------------------------------------------------------------------------------------


def test_points_alone_and_boxes_alone():
    rng = np.random.default_rng(6)
    units = np.array([1e-3, 1.0, 1e6])
    covariance = random_covariance(rng, 3) / np.outer(UNITS[:3], UNITS[:3]) * np.outer(units, units)
    point = rng.normal(size=(9, 3)) * units
    closed, missing = np.ones(3, bool), np.full((9, 3), np.nan)
    log_value, error = conditional_rectangle(point, missing, missing, covariance, closed)
    scaled = stats.multivariate_normal.logpdf(point / units, cov=covariance / np.outer(units, units))
    np.testing.assert_allclose(log_value, scaled - np.log(units).sum(), rtol=1e-12)
    assert not error.any()
    boxes = conditional_rectangle(missing, point - 1, point + 1, covariance, ~closed)
    np.testing.assert_array_equal(boxes, normal_rectangle(point - 1, point + 1, covariance))


@pytest.mark.parametrize("is_point", [(True, False, False), (False, True, True), (False, True, False)])
def test_density_times_probability_is_the_slope_of_the_box(is_point: tuple[bool, ...]):
    """A thin box about the points has the density times its widths as its mass."""
    rng = np.random.default_rng(2)
    covariance = random_covariance(rng, 3)
    lower, upper = random_boxes(rng, 6, covariance)
    points = np.array(is_point)
    point = rng.normal(size=(6, 3)) * UNITS[:3]
    log_value, _ = conditional_rectangle(point, lower, upper, covariance, points)
    thin = 1e-4 * UNITS[:3]
    box = np.where(points, point - thin / 2, lower), np.where(points, point + thin / 2, upper)
    log_mass, error = normal_rectangle(*box, covariance, tolerance=1e-12)
    relative = 2e-3 + error / np.exp(log_mass)
    assert (np.abs(log_value + np.log(thin[points]).sum() - log_mass) <= relative).all()


def test_densities_on_the_support_of_a_singular_law():
    """All three are multiples of one normal n: (n, 2n, 30n); a step of 1 in n is one of sqrt(905) along the support."""
    direction = np.array([1.0, 2.0, 30.0])
    covariance = np.outer(direction, direction)
    n = np.array([0.3, -2.0, 1.0])
    point = n[:, None] * direction
    point[2, 1] += 1e-6
    log_value, _ = conditional_rectangle(point, point, point, covariance, np.ones(3, bool))
    np.testing.assert_allclose(log_value[:2], stats.norm.logpdf(n[:2]) - math.log(math.sqrt(905)), rtol=1e-12)
    assert log_value[2] == -INF


def test_boxes_that_points_determine_hold_or_not():
    covariance = np.array([[1.0, 2.0, 0.5], [2.0, 4.0, 1.0], [0.5, 1.0, 1.0]])
    is_point = np.array([True, False, False])
    point = np.array([[0.7, 0, 0], [0.7, 0, 0], [0.7, 0, 0]])
    lower, upper = (
        np.array([[0, 1.4, 0], [0, 1.5, 0], [0, -INF, -INF]]),
        np.array([[0, 9.0, INF], [0, 9.0, INF], [0, INF, INF]]),
    )
    log_value, error = conditional_rectangle(point, lower, upper, covariance, is_point)
    log_density, share = stats.norm.logpdf(0.7), ndtr(0.35 / math.sqrt(0.75))
    np.testing.assert_allclose(log_value, [log_density + math.log(share), -INF, log_density], rtol=1e-12)
    assert not error.any()


def test_points_of_zero_variance_must_be_zero():
    covariance = np.diag([0.0, 4.0])
    point = np.array([[0.0, 1.0], [1e-12, 1.0]])
    log_value, _ = conditional_rectangle(point, point, point, covariance, np.ones(2, bool))
    np.testing.assert_allclose(log_value, [stats.norm.logpdf(1.0, 0, 2), -INF])


def test_conditional_answers_do_not_depend_on_the_batch():
    rng = np.random.default_rng(15)
    covariance = random_covariance(rng, 5)
    lower, upper = random_boxes(rng, 40, covariance)
    point = rng.normal(size=(40, 5)) * UNITS
    is_point = np.array([True, False, True, False, True])
    together = conditional_rectangle(point, lower, upper, covariance, is_point)
    for i in range(40):
        alone = conditional_rectangle(point[[i]], lower[[i]], upper[[i]], covariance, is_point)
        assert [alone[0][0], alone[1][0]] == [together[0][i], together[1][i]]

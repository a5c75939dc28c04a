"""Compiled boxes of one and two coordinates against sums over a fine grid in more digits, and a plain numpy version."""

from __future__ import annotations

import math

import numpy as np
import pytest
from numpy.polynomial.legendre import leggauss
from numpy.typing import NDArray
from scipy.special import log_ndtr

from maskwell.kernels.normal_box import conditional_rectangle, normal_rectangle
from maskwell.kernels.normal_box_planes import QUADRATURE_ERROR, few_bounded, log_mass, log_plane

INF = math.inf
Floats = NDArray[np.float64]
Long = np.longdouble
Longs = NDArray[np.longdouble]
Problem = tuple[float, float, float, float, float, float]  # ends of the first, ends of the second, slope, sd
NODES, WEIGHTS = leggauss(20)
TWO_PI = 2 * (Long(math.pi) + Long(1.2246467991473532e-16))


def compiled(problem: Problem) -> float:
    return log_plane(problem[0], problem[1], problem[2:])


def rounding(problem: Problem, log_p: float) -> float:
    """What a few last digits of the ends and of the exponent can change in log P."""
    largest = max((abs(end) for end in problem[:4] if math.isfinite(end)), default=0.0)
    return 1e-15 * (largest / problem[5] * math.sqrt(2 * abs(log_p) + 1) + abs(log_p))


# --- references --------------------------------------------------------------------------------------------


def panels(cuts: Longs) -> tuple[Longs, Longs]:
    half, middle = np.diff(cuts) / 2, (cuts[1:] + cuts[:-1]) / 2
    return (middle[:, None] + half[:, None] * NODES).ravel(), (half[:, None] * WEIGHTS).ravel()


def masses(a: Longs, b: Longs) -> tuple[Longs, Longs]:
    """Return e and f: P(a < N(0, 1) < b) = exp(e) f, by summing the density from the end nearest to zero."""
    near = np.where((a < 0) & (b > 0), 0, np.minimum(np.abs(a), np.abs(b)))
    reach = 120 / (near + np.sqrt(near * near + 120))
    low = np.where(b <= 0, np.maximum(a, b - reach), np.maximum(a, -reach))
    high = np.where(a >= 0, np.minimum(b, a + reach), np.minimum(b, reach))
    from_, sign = np.where(b <= 0, b, low), np.where(b <= 0, -1, 1)
    along, weights = panels(np.linspace(0, 1, 13).astype(Long))
    z = from_[:, None] + (sign * (high - low))[:, None] * along
    exponent = -near * near / 2
    heights = np.exp(-z * z / 2 - exponent[:, None])
    return exponent, (heights * weights).sum(axis=1) * (high - low) / np.sqrt(TWO_PI)


def log_joint(t: Longs, problem: Problem) -> Longs:
    low, high, slope, sd = (Long(value) for value in problem[2:])
    exponent, factor = masses((low - slope * t) / sd, (high - slope * t) / sd)
    return np.asarray(exponent - t * t / 2 + np.log(factor))


def highest(problem: Problem) -> Long:
    """Search the peak of the concave log-integrand by thirds."""
    far = max([abs(end) for end in problem[2:4] if math.isfinite(end)]) + 12
    low, high = (
        Long(max(problem[0], min(-far, problem[1] - 12))),
        Long(min(problem[1], max(far, problem[0] + 12))),
    )
    while high - low > 1e-9 * problem[5]:
        pair = np.array([low + (high - low) / 3, high - (high - low) / 3])
        left, right = log_joint(pair, problem)
        low, high = (pair[0], high) if left < right else (low, pair[1])
    middle = (low + high) / 2
    return min(max(middle, Long(problem[0])), Long(problem[1]))


def extent(peak: Long, sign: int, problem: Problem) -> Long:
    """Return where the log-integrand has fallen by 50, or the end of the first coordinate."""
    top, near, far = log_joint(np.array([peak]), problem)[0], Long(0), Long(12)
    far = min(far, Long(problem[1]) - peak if sign > 0 else peak - Long(problem[0]))
    for _ in range(60):
        middle = (near + far) / 2
        if top - log_joint(np.array([peak + sign * far]), problem)[0] < 60:
            break
        deep = top - log_joint(np.array([peak + sign * middle]), problem)[0] > 50
        near, far = (near, middle) if deep else (middle, far)
    return peak + sign * far


def by_fine_sums(problem: Problem) -> float:
    """Return log P from sums over a fine grid in both coordinates, in long doubles: no special functions."""
    low, high, slope, sd = (Long(value) for value in problem[2:])
    peak = highest(problem)
    start, end = extent(peak, -1, problem), extent(peak, 1, problem)
    edges = [(side + k * sd) / slope for side in (low, high) for k in range(-8, 9)]
    even = np.linspace(0, 1, 9).astype(Long)
    cuts = np.concatenate([start + even * (peak - start), peak + even * (end - peak), np.array(edges)])
    t, weights = panels(np.unique(np.clip(cuts, start, end)))
    logs = log_joint(t, problem)
    area = (np.exp(logs - logs.max()) * weights).sum()
    return float(logs.max() + np.log(area) - np.log(TWO_PI) / 2)


def log_interval(a: Floats, b: Floats) -> Floats:
    flip = a + b > 0
    a, b = np.where(flip, -b, a), np.where(flip, -a, b)
    return np.asarray(log_ndtr(b) + np.log1p(-np.exp(log_ndtr(a) - log_ndtr(b))))


def by_plain_sum(problem: Problem) -> float:
    """Return log P by scipy's log_ndtr at many nodes of the first coordinate within 9 of zero or of its nearest end."""
    low, high, low_2, high_2, slope, sd = problem
    nearest = min(max(0.0, low), high)
    cuts = np.linspace(max(low, nearest - 10), min(high, nearest + 10), 400)
    half, middle = np.diff(cuts)[:, None] / 2, (cuts[1:] + cuts[:-1])[:, None] / 2
    t = (middle + half * NODES).ravel()
    logs = log_interval((low_2 - slope * t) / sd, (high_2 - slope * t) / sd) - t * t / 2
    area = (np.exp(logs - logs.max()) * (half * WEIGHTS).ravel()).sum()
    return float(logs.max() + math.log(area) - math.log(2 * math.pi) / 2)


# --- problems ----------------------------------------------------------------------------------------------


def drawn(rng: np.random.Generator, size: float, correlation: float) -> Problem:
    """A box whose corner is about `size` from the centre, often near the line of the two; sides of all widths."""
    sd = math.sqrt((1 - correlation) * (1 + correlation))
    lower = rng.normal(size=2) * size
    if rng.random() < 0.4:
        lower[1] = correlation * lower[0] + sd * rng.normal() * 3
    upper = lower + 10 ** rng.uniform(-5, 1.3, 2)
    side = rng.random(2)
    upper[side < 0.25], lower[side > 0.75] = INF, -INF
    return (*(float(v) for v in (lower[0], upper[0], lower[1], upper[1])), correlation, sd)


EXTREME: list[Problem] = [
    (24.0, INF, 24.0, INF, 0.6, 0.8),  # log P about -360
    (-INF, -70.0, 30.0, 30.1, -0.6, 0.8),  # beyond -3000
    (2.0, INF, 2.0, INF, -0.999, math.sqrt(0.001 * 1.999)),
    (1.0, 1.0 + 1e-9, -2.0, -2.0 + 1e-7, 0.3, math.sqrt(0.91)),
    (-1.0, 2.0, 0.5, 0.75, 1 - 1e-12, math.sqrt(1e-12 * 2)),
    (-INF, 0.5, 0.5, INF, 1 - 2.0**-39, math.sqrt(2.0**-39 * (2 - 2.0**-39))),
    (-8.0, 8.0, -9.0, 9.0, 0.5, math.sqrt(0.75)),
    (3.0, 40.0, -INF, -3.0, 1e-9, 1.0),
]


# --- tests -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(3))
def test_planes_equal_fine_sums_in_more_digits(seed: int):
    rng = np.random.default_rng(seed)
    for strength in (
        rng.uniform(-1, 1),
        1 - 10 ** rng.uniform(-10, -1),
        10 ** rng.uniform(-10, -1) - 1,
        0.05,
    ):
        for size in (0.5, 2.0, 8.0, 20.0):
            problem = drawn(rng, size, float(strength))
            expected = by_fine_sums(problem)
            assert abs(compiled(problem) - expected) <= 1e-13 + rounding(problem, expected), problem


@pytest.mark.parametrize("problem", EXTREME)
def test_extreme_planes_equal_fine_sums_in_more_digits(problem: Problem):
    expected = by_fine_sums(problem)
    assert abs(compiled(problem) - expected) <= 1e-13 + rounding(problem, expected)


@pytest.mark.parametrize("correlation", [0.02, 0.5, -0.8, 0.97])
def test_planes_equal_a_plain_sum(correlation: float):
    """Widths as those of clamped and rounded columns."""
    rng, sd = np.random.default_rng(5), math.sqrt((1 - correlation) * (1 + correlation))
    for _ in range(100):
        low, low_2 = rng.normal(size=2) * 2
        width, width_2 = rng.choice([0.3, 1.35, 4.0, INF], 2)
        problem = (float(low), float(low + width), float(low_2), float(low_2 + width_2), correlation, sd)
        expected = by_plain_sum(problem)
        assert abs(compiled(problem) - expected) <= 2e-13 + 4 * rounding(problem, expected)


def test_the_mirror_and_the_order_change_nothing():
    rng = np.random.default_rng(11)
    for _ in range(300):
        correlation = float(rng.uniform(-0.95, 0.95))
        low, high, low_2, high_2, slope, sd = problem = drawn(rng, 4.0, correlation)
        here = compiled(problem)
        allowed = 1e-13 + 2 * rounding(problem, here)
        assert abs(compiled((-high, -low, -high_2, -low_2, slope, sd)) - here) <= allowed
        assert abs(compiled((low, high, -high_2, -low_2, -slope, sd)) - here) <= allowed
        assert abs(compiled((low_2, high_2, low, high, slope, sd)) - here) <= allowed


def test_masses_of_intervals_keep_their_digits():
    rng = np.random.default_rng(3)
    a = rng.normal(size=3000) * 10 ** rng.uniform(-2, 2, 3000)
    b = a + 10 ** rng.uniform(-12, 2, 3000)
    exponent, factor = masses(a.astype(Long), b.astype(Long))
    expected = (exponent + np.log(factor)).astype(float)
    found = np.array([log_mass(low, high) for low, high in zip(a, b, strict=True)])
    # b - a is exact to a last digit of b, and so is the middle
    digits = 1e-15 * (np.abs(expected) + 5)
    assert (np.abs(found - expected) <= digits).all()
    assert log_mass(-INF, INF) == 0.0
    assert log_mass(-9.0, INF) == pytest.approx(-float(np.exp(log_ndtr(-9.0))), rel=1e-13)
    assert log_mass(-INF, -1e5) == pytest.approx(log_ndtr(-1e5), rel=1e-15)
    assert log_mass(1.0, 1.0) == log_mass(2.0, 1.0) == log_mass(math.nan, 1.0) == -INF


def test_records_with_more_coordinates_are_left_to_others():
    lower, upper = np.full((5, 3), -1.0), np.full((5, 3), 1.0)
    lower[1, 0], upper[1, 0] = -INF, INF
    lower[2] = -INF
    lower[3, 1] = math.nan
    lower[4, 2] = 1.0
    log_p, error = np.empty(5), np.empty(5)
    many = few_bounded(lower, upper, np.eye(3) * 0.5 + 0.5, log_p, error)
    assert many.tolist() == [True, False, True, False, False]
    assert (error[1], error[3], error[4]) == (QUADRATURE_ERROR, 0.0, 0.0)
    assert math.isnan(log_p[3])
    assert log_p[4] == -INF


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_a_pair_that_determines_each_other_meets(sign: float):
    covariance = np.array([[4.0, 2 * sign], [2 * sign, 1.0]])
    lower, upper = np.array([[-2.0, -0.5], [2.0, -sign]]), np.array([[1.0, INF], [3.0, INF]])
    log_p, error = normal_rectangle(lower, upper, covariance)
    ends = (-0.5, 0.5) if sign > 0 else (-1.0, 0.5)
    assert log_p[0] == pytest.approx(log_mass(*ends), rel=1e-14)
    assert log_p[1] == (pytest.approx(log_mass(1.0, 1.5), rel=1e-14) if sign > 0 else -INF)
    assert not error.any()


def test_a_law_that_changed_in_place_is_read_again():
    covariance, is_point = np.array([[1.0, 0.5], [0.5, 1.0]]), np.array([True, False])
    point, high = np.zeros((1, 2)), np.ones((1, 2))
    before, _ = conditional_rectangle(point, -high, high, covariance, is_point)
    covariance[0, 0] = 4.0
    after, _ = conditional_rectangle(point, -high, high, covariance, is_point)
    rest = math.sqrt(1 - 0.25 / 4)
    expected = -0.5 * math.log(2 * math.pi * 4) + log_mass(-1 / rest, 1 / rest)
    assert after[0] == pytest.approx(expected, rel=1e-13)
    assert before[0] != after[0]


def test_the_layout_of_the_arrays_changes_no_bit():
    rng = np.random.default_rng(9)
    lower = rng.normal(size=(40, 2))
    upper, covariance = lower + rng.exponential(1, (40, 2)), np.array([[2.0, 0.7], [0.7, 1.0]])
    rows = normal_rectangle(lower, upper, covariance)
    columns = normal_rectangle(
        np.asfortranarray(lower), np.asfortranarray(upper), np.asfortranarray(covariance)
    )
    np.testing.assert_array_equal(rows, columns)

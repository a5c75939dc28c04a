"""Compiled boxes against closed forms and against the slow, accurate `rectangle`."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from numpy.polynomial.legendre import leggauss
from scipy.integrate import quad
from scipy.special import ndtr, ndtri

from maskwell.kernels import compilation, normal_box_lattice
from maskwell.kernels.normal_box import normal_rectangle

SHIFTS = 8
CORRELATION = np.array(
    [
        [1.0, 0.1410, 0.0265, 0.0427],
        [0.1410, 1.0, 0.6077, 0.2022],
        [0.0265, 0.6077, 1.0, 0.1657],
        [0.0427, 0.2022, 0.1657, 1.0],
    ]
)


def chances(lower, upper, correlation, points=256):
    out = np.empty((len(lower), SHIFTS))
    normal_box_lattice.box_chances(
        lower, upper, correlation, normal_box_lattice.lattice(lower.shape[1], points, SHIFTS), out
    )
    return out


def some_boxes(count, width, seed=5):
    """Make boxes around zero, one side in ten open."""
    rng = np.random.default_rng(seed)
    sides = np.abs(rng.normal(size=(2, count, width))) * 1.5
    sides[rng.random(sides.shape) < 0.1] = np.inf
    return -sides[0], sides[1]


def test_quantiles_are_those_of_scipy():
    probabilities = np.concatenate([10.0 ** -np.arange(1, 300, 7), np.linspace(0.001, 0.999, 500)])
    ours = np.array([normal_box_lattice.normal_quantile(p) for p in probabilities])
    np.testing.assert_allclose(ours, ndtri(probabilities), rtol=1e-13, atol=1e-15)
    assert normal_box_lattice.normal_quantile(0.0) == -np.inf
    assert normal_box_lattice.normal_quantile(1.0) == np.inf


def test_boxes_are_those_of_the_accurate_rectangle():
    lower, upper = some_boxes(60, 4)
    expected, reference_error = normal_rectangle(lower, upper, CORRELATION, tolerance=1e-5)
    found = chances(lower, upper, CORRELATION, 1024)
    assert np.abs(found.mean(axis=1) - np.exp(expected)).max() < 1e-4 + reference_error.max()


def test_the_spread_over_shifts_tells_the_error_of_a_sum():
    lower, upper = some_boxes(60, 4)
    fine = chances(lower, upper, CORRELATION, 4096).sum(axis=0).mean()
    for points in (16, 32, 64):
        by_shift = chances(lower, upper, CORRELATION, points).sum(axis=0)
        assert abs(by_shift.mean() - fine) < 4 * by_shift.std(ddof=1) / SHIFTS**0.5


def test_independent_coordinates_are_a_product_under_every_shift():
    lower, upper = some_boxes(50, 4)
    expected = (ndtr(upper) - ndtr(lower)).prod(axis=1)
    np.testing.assert_allclose(
        chances(lower, upper, np.eye(4), 2), expected[:, None] * np.ones(SHIFTS), rtol=1e-12
    )


def test_equal_correlations_are_one_integral():
    width, correlation = 5, 0.5
    lower, upper = np.full((1, width), -1.2), np.full((1, width), 0.7)

    def given(shared):
        ends = (
            (side[0, 0] - correlation**0.5 * shared) / (1 - correlation) ** 0.5 for side in (upper, lower)
        )
        above, below = map(ndtr, ends)
        return (above - below) ** width * np.exp(-(shared**2) / 2) / (2 * np.pi) ** 0.5

    matrix = correlation + (1 - correlation) * np.eye(width)
    assert chances(lower, upper, matrix, 2048).mean() == pytest.approx(quad(given, -9, 9)[0], abs=2e-5)


def test_orthants_of_two_have_their_closed_form():
    lower, upper = np.zeros((1, 2)), np.full((1, 2), np.inf)
    for r in (-0.9, -0.3, 0.0, 0.6, 0.95):
        expected = 0.25 + np.arcsin(r) / (2 * np.pi)
        assert chances(lower, upper, np.array([[1, r], [r, 1]]), 1024).mean() == pytest.approx(
            expected, abs=1e-4
        )


def test_a_coordinate_that_others_determine_narrows_them():
    total = np.array([[1.0, 0.0, 0.5**0.5], [0.0, 1.0, 0.5**0.5], [0.5**0.5, 0.5**0.5, 1.0]])
    lower, upper = some_boxes(20, 3)
    expected, error = normal_rectangle(lower, upper, total, tolerance=1e-5)
    found = chances(lower, upper, total, 2048).mean(axis=1)
    assert np.abs(found - np.exp(expected)).max() < 1e-3 + error.max()


def test_empty_boxes_are_impossible_and_open_ones_certain():
    lower = np.array([[-np.inf, -np.inf], [1.0, -1.0], [np.inf, -np.inf]])
    upper = np.array([[np.inf, np.inf], [1.0, 1.0], [-np.inf, np.inf]])
    found = chances(lower, upper, np.array([[1, 0.5], [0.5, 1]]))
    np.testing.assert_array_equal(found, np.array([[1.0], [0.0], [0.0]]) * np.ones(SHIFTS))


def test_boxes_of_too_many_coordinates_are_refused():
    with pytest.raises(ValueError, match="at most 25 coordinates"):
        normal_box_lattice.lattice(26, 8, SHIFTS)


def shared(chances, start, certain, nodes=64):
    places, weights = leggauss(nodes)
    out = np.empty((len(certain), chances.shape[1]))
    normal_box_lattice.shared_chances(
        chances, np.array(start), np.array(certain), (places + 1) / 2, weights / 2, out
    )
    return out


def test_shares_of_ties_are_those_of_all_outcomes():
    p = np.array([0.1, 0.8, 0.35])
    expected = 0.0
    for outcome in product((0, 1), repeat=3):
        chance = np.prod([q if here else 1 - q for q, here in zip(p, outcome, strict=True)])
        expected += chance / (1 + 2 + sum(outcome))
    found = shared(p[:, None], [0, 3, 3], [2, 0])
    np.testing.assert_allclose(found[:, 0], [expected, 1.0], rtol=1e-12)


@pytest.mark.parametrize("certain", [0, 1, 100])
def test_certain_ties_share_evenly(certain):
    assert shared(np.empty((0, 1)), [0, 0], [certain])[0, 0] == pytest.approx(1 / (1 + certain), rel=1e-6)


def test_they_are_compiled_with_all_others():
    compilation.compile_all()
    assert normal_box_lattice.box_chances.signatures
    assert normal_box_lattice.shared_chances.signatures

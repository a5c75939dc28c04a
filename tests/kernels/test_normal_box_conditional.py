"""Boxes one coordinate after another: exact where they must be, near where they are likely."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import multivariate_normal, norm

from maskwell.kernels.normal_box import conditional_rectangle
from maskwell.kernels.normal_box_conditional import BOX, POINT, UNUSED, conditioned_logs


def logs_of(lower, upper, kinds, correlation):
    out = np.empty(len(lower))
    conditioned_logs(
        *(np.ascontiguousarray(one) for one in (lower, upper)), kinds.astype(np.int8), correlation, out
    )
    return out


def correlation_of(size, seed=1):
    loadings = np.random.default_rng(seed).normal(size=(size, 3))
    matrix = loadings @ loadings.T + 1.5 * np.eye(size)
    sds = np.sqrt(np.diag(matrix))
    return matrix / np.outer(sds, sds)


def test_points_have_the_normal_density_and_unused_coordinates_no_part():
    correlation, rng = correlation_of(5), np.random.default_rng(2)
    points = rng.normal(size=(20, 5))
    used = [0, 2, 3]
    kinds = np.full((20, 5), UNUSED)
    kinds[:, used] = POINT
    expected = multivariate_normal(np.zeros(3), correlation[np.ix_(used, used)]).logpdf(points[:, used])
    assert logs_of(points, points, kinds, correlation) == pytest.approx(expected, abs=1e-10)


def test_one_interval_given_points_and_independent_intervals_are_exact():
    correlation, rng = correlation_of(4), np.random.default_rng(3)
    lower = rng.normal(size=(30, 4))
    upper, kinds = lower + rng.random((30, 4)), np.full((30, 4), POINT)
    kinds[:, 2] = BOX
    upper[:10, 2] = np.inf
    expected, _ = conditional_rectangle(lower, lower, upper, correlation, np.array([True, True, False, True]))
    assert logs_of(lower, upper, kinds, correlation) == pytest.approx(expected, abs=1e-8)
    apart = np.log(norm.cdf(upper) - norm.cdf(lower)).sum(axis=1)
    assert logs_of(lower, upper, np.full((30, 4), BOX), np.eye(4)) == pytest.approx(apart, abs=1e-10)


@pytest.mark.parametrize("size", [3, 5, 8])
def test_boxes_that_the_law_itself_makes_are_near(size):
    correlation, rng = correlation_of(size), np.random.default_rng(4)
    drawn = rng.multivariate_normal(np.zeros(size), correlation, 150)
    is_open = rng.random((150, size)) < 0.5
    lower, upper = np.where(is_open, -np.inf, drawn - 0.6), drawn + 0.6
    exact, _ = conditional_rectangle(lower, lower, upper, correlation, np.zeros(size, bool), tolerance=np.inf)
    off = logs_of(lower, upper, np.full((150, size), BOX), correlation) - exact
    assert np.sqrt((off**2).mean()) < 0.03
    assert np.abs(off).max() < 0.2


def test_an_impossible_box_weighs_nothing():
    ends = np.array([[0.0, 1.0]]), np.array([[0.0, 1.0]])
    assert logs_of(*ends, np.full((1, 2), BOX), correlation_of(2))[0] == -np.inf

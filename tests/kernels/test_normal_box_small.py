"""Small boxes: products of intervals where coordinates are independent, the lattice's answer where they are not."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from maskwell.kernels import normal_box
from maskwell.kernels.normal_box_small import one_wide, small_boxes


def boxes(rng: np.random.Generator, count: int, size: int, width: float) -> tuple[np.ndarray, np.ndarray]:
    centre = rng.normal(0, 1.2, (count, size))
    return centre - width / 2, centre + width / 2


@pytest.mark.parametrize(
    ("width", "size", "most"), [(0.5, 3, 1e-4), (1.0, 5, 1e-3), (1.5, 4, 1e-2), (3.0, 4, 1e-2)]
)
def test_independent_coordinates_multiply(width, size, most):
    # three nodes are off by width^6 He6(centre) / 2016000 of each coordinate's mass: 1e-5 at 4 sds for a half
    low, high = boxes(np.random.default_rng(1), 300, size, width)
    log_p, error = np.empty(300), np.empty(300)
    assert not small_boxes(low, high, np.eye(size), log_p, error).any()
    true = np.prod(stats.norm.cdf(high) - stats.norm.cdf(low), axis=1)
    assert np.abs(np.exp(log_p) / true - 1).max() < most
    assert (np.abs(np.exp(log_p) - true) <= error + 1e-15).all()


@pytest.mark.parametrize("size", [3, 5])
def test_correlated_coordinates_agree_with_the_lattice(size, monkeypatch):
    correlation = 0.6 * np.eye(size) + 0.4
    low, high = boxes(np.random.default_rng(2), 40, size, 0.7)
    found = normal_box.normal_rectangle(low, high, correlation)
    monkeypatch.setattr(normal_box, "_cells", lambda *given: np.ones(len(given[3]), bool))
    log_p, error = normal_box.normal_rectangle(low, high, correlation, tolerance=1e-9)
    assert (np.abs(np.exp(found[0]) - np.exp(log_p)) <= error + found[1]).all()
    assert np.abs(found[0] - log_p).max() < 0.02


def test_what_is_wide_open_or_singular_is_left():
    low, high = np.full((3, 3), -0.5), np.full((3, 3), 0.5)
    high[1, 0], high[2, 0] = np.inf, 9.0
    out = np.empty(3), np.empty(3)
    assert small_boxes(low, high, np.eye(3), *out).tolist() == [False, True, True]
    assert small_boxes(low, high, np.ones((3, 3)), *out).all()
    assert small_boxes(np.zeros((1, 9)), np.ones((1, 9)), np.eye(9), out[0][:1], out[1][:1]).all()


def test_far_out_it_is_the_density_times_the_volume():
    low = np.full((1, 3), 40.0)
    log_p, error = np.empty(1), np.empty(1)
    assert not small_boxes(low, low + 0.1, np.eye(3), log_p, error).any()
    assert log_p[0] == pytest.approx(3 * (stats.norm.logpdf(40.05) + np.log(0.1)))


@pytest.mark.parametrize("width", [0.15, 0.7, 2.0])
def test_one_coordinate_may_have_any_width(width):
    correlation = 0.6 * np.eye(4) + 0.4
    low, high = boxes(np.random.default_rng(3), 60, 4, width)
    low[::3, 2], high[1::3, 0], high[2::3, 3] = -np.inf, np.inf, low[2::3, 3] + 7.0
    log_p, error = np.empty(60), np.empty(60)
    found = ~one_wide(low, high, correlation, log_p, error)
    assert found.mean() > 0.9, "the others are so far out that more nodes do not tell them to a hundredth"
    normal = stats.multivariate_normal(np.zeros(4), correlation, maxpts=200_000, abseps=1e-9, releps=1e-6)
    true = np.array([normal.cdf(b, lower_limit=a) for a, b in zip(low, high, strict=True)])
    assert (np.abs(np.exp(log_p) - true) <= error + 1e-8)[found].all()
    assert (np.abs(np.exp(log_p) - true) <= 0.01 * true + 1e-8)[found].all()

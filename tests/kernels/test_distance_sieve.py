"""The sieve: its bounds hold for every pair, whatever the scale, and they leave little open."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from numba import njit

from maskwell.kernels import distance_sieve
from maskwell.kernels.kdtree import plant


@njit
def sifted(searchers, i, seen, lengths, middle, unit, limit):
    """Return how many points may lie within a limit and how many must, and the products."""
    size = lengths.shape[1]
    aim, products = np.empty(searchers.shape[1], np.float32), np.empty((1, size), np.float32)
    square = distance_sieve.fill_aim(searchers, i, middle, unit, aim)
    distance_sieve.fill_products(seen, 0, size, size, aim, products)
    may = distance_sieve.may_lie(square, limit, unit, searchers.shape[1])
    must = distance_sieve.must_lie(square, limit, unit, searchers.shape[1])
    possible = distance_sieve.count_within_bound(products, 0, 0, size, lengths, 0, 0, may)
    return possible, distance_sieve.count_within_bound(products, 0, 0, size, lengths, 1, 0, must), products


def leaf_of(points, searchers):
    """Return a forest of one leaf."""
    largest = max(float(np.abs(side).max()) for side in (points, searchers))
    unit = float(2.0 ** (-np.ceil(np.log2(largest)) - 1))
    begin = np.zeros(1, np.int64)
    return plant(points.copy(), np.arange(len(points)), begin, begin + len(points), 10**6, 2, unit)


def exact(searcher, point):
    return sum((Fraction(float(a)) - Fraction(float(b))) ** 2 for a, b in zip(searcher, point, strict=True))


SCALES = [1.0, 1e-8, 1e8, 1e-140, 1e140]


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("fields", [1, 2, 5, 20, 40])
def test_bounds_hold_at_the_distance_itself(fields, scale):
    """A limit one part in 10^15 above the true distance: the pair may lie within; as much below: it need not."""
    rng = np.random.default_rng(fields)
    spread = 10.0 ** rng.integers(-4, 3, (40, 1))
    points, searchers = scale * spread * rng.normal(size=(40, fields)), scale * rng.normal(size=(40, fields))
    points[:20] = searchers[:20] * (1 + 1e-5 * rng.normal(size=(20, fields)))  # nearly the same
    for i, point in enumerate(points):
        forest = leaf_of(point[None], searchers)
        distance = float(exact(searchers[i], point))
        seen = forest.seen, forest.lengths, forest.middle, forest.unit
        possible, _, _ = sifted(searchers, i, *seen, distance * (1 + 1e-15))
        _, sure, _ = sifted(searchers, i, *seen, distance * (1 - 1e-15))
        assert (possible, sure) == (1, 0)


@pytest.mark.parametrize("scale", SCALES)
def test_bounds_leave_few_pairs_open(scale):
    rng = np.random.default_rng(9)
    points, searchers = scale * rng.normal(size=(2000, 5)), scale * rng.normal(size=(50, 5))
    forest = leaf_of(points, searchers)
    seen = forest.seen, forest.lengths, forest.middle, forest.unit
    still = sum(np.diff(sifted(searchers, i, *seen, 4.0 * scale**2)[1::-1])[0] for i in range(50))
    assert still < 1e-3 * 2000 * 50


def test_products_are_those_of_the_rounded_points():
    rng = np.random.default_rng(10)
    points, searchers = rng.normal(size=(70, 7)), rng.normal(size=(1, 7))
    forest = leaf_of(points, searchers)
    seen = forest.seen, forest.lengths, forest.middle, forest.unit
    products = sifted(searchers, 0, *seen, 1.0)[2][0]
    expected = 2 * ((points - forest.middle) @ (searchers[0] - forest.middle)) * forest.unit**2
    np.testing.assert_allclose(products, expected, atol=1e-6)


def test_the_three_smallest_are_kept_in_order():
    rng = np.random.default_rng(12)
    for _ in range(50):
        distances = rng.integers(0, 6, rng.integers(1, 9)).astype(float)
        three = distance_sieve.Three(np.inf, np.inf, np.inf, -1, -1)
        for place, distance in enumerate(distances):
            three = distance_sieve.nearest_three(three, distance, place)
        ordered = np.append(np.sort(distances), [np.inf, np.inf])
        assert [three.one, three.two, three.three] == ordered[:3].tolist()
        assert distances[three.place] == three.one
        assert three.second == -1 or distances[three.second] == three.two
        assert distance_sieve.is_open(three, 1.0) == (
            (len(distances) > 1 and ordered[0] == ordered[1])
            or (len(distances) > 2 and ordered[1] == ordered[2])
        )

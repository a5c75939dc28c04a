"""Every way of finding neighbours gives what comparing all pairs gives, to the last bit and tie."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass

import numpy as np
import pytest

from maskwell.attacks.nearest import search
from maskwell.attacks.nearest.search import FEW, LEAF, SAME_DISTANCE, Nearest, closer, nearest
from maskwell.errors import BadInput, BadPlan

NOBODY = -1


# The specification: one searcher after the other, all pairs, in plain numpy.


def distances_from(searcher, points, norm):
    total = np.zeros(len(points))
    for j in range(points.shape[1]):
        apart = points[:, j] - searcher[j]
        total += apart * apart if norm == 2 else np.abs(apart)
    return total


def plain_nearest(searchers, candidates, blocks, norm):
    out = Nearest.nobody(len(searchers))
    for i in range(len(searchers)):
        here = np.flatnonzero(blocks[1] == blocks[0][i])
        if not len(here):
            continue
        distances = distances_from(searchers[i], candidates[here], norm)
        tied = np.flatnonzero(distances <= distances.min() * (1 + SAME_DISTANCE))
        out.place[i], out.distance[i], out.ties[i] = here[tied[0]], distances[tied[0]], len(tied)
        distances[tied[0]] = np.inf
        if len(here) > 1:
            next_one = np.flatnonzero(distances <= distances.min() * (1 + SAME_DISTANCE))[0]
            out.second[i], out.second_distance[i] = here[next_one], distances[next_one]
    return out


def plain_closer(searchers, points, blocks, radius, norm, most=None):
    out = np.zeros(len(searchers), np.int64)
    for i in range(len(searchers)):
        here = points[blocks[1] == blocks[0][i]]
        out[i] = np.count_nonzero(distances_from(searchers[i], here, norm) < radius[i] * (1 - SAME_DISTANCE))
    return out if most is None else np.minimum(out, most)


# Problems.


@dataclass(frozen=True)
class Problem:
    searchers: np.ndarray
    points: np.ndarray
    blocks: tuple[np.ndarray, np.ndarray]
    radius: np.ndarray
    norm: int
    most: int | None


def normal(rng, count, fields):
    return rng.normal(size=(count, fields))


def grid(rng, count, fields):
    """Whole numbers: nearly every distance ties with another."""
    return rng.integers(0, 3, (count, fields)).astype(float)


def tenths(rng, count, fields):
    """Numbers that binary fractions only approach: ties that differ by rounding."""
    return 3 + 0.1 * rng.integers(-3, 4, (count, fields))


def copies(rng, count, fields):
    """Few points, many times."""
    return rng.normal(size=(max(count // 12, 1), fields))[rng.integers(0, max(count // 12, 1), count)]


def alike(rng, count, fields):
    """All points the same."""
    return np.repeat(rng.normal(size=(1, fields)), count, axis=0)


def some_constant(rng, count, fields):
    """Every other coordinate has no spread."""
    return np.where(np.arange(fields) % 2, 0.7, rng.normal(size=(count, fields)))


def skewed(rng, count, fields):
    """A few points far beyond the others."""
    return np.exp(3 * rng.normal(size=(count, fields)))


KINDS = (normal, grid, tenths, copies, alike, some_constant, skewed)


def draw(rng, kind, *, most_points=220):
    """Draw a problem: sizes from nothing on, some searchers among the points, any scale, any blocks."""
    count, size, fields = rng.integers(0, 50), rng.integers(0, most_points), rng.integers(1, 21)
    points, searchers = kind(rng, size, fields), kind(rng, count, fields)
    among = rng.random(count) < (0.3 if size else 0.0)
    searchers[among] = points[rng.integers(0, max(size, 1), among.sum())]
    scale, shift = rng.choice([1.0, 1e-8, 1e8, 1e-3]), rng.choice([0.0, 0.0, 5.0, 1e6])
    searchers, points = (scale * (side + shift) for side in (searchers, points))
    number = rng.choice([1, 1, 3, 40])
    blocks = 7 * rng.integers(0, number, count), 7 * rng.integers(0, number, size)
    norm, most = int(rng.integers(1, 3)), None if rng.random() < 0.4 else int(rng.integers(0, 6))
    radius = (2 * rng.random(count) * scale) ** norm * fields
    if size and rng.random() < 0.7:  # exactly at another point: what ties must not count
        at = points[rng.integers(0, size, count)]
        radius = np.array(
            [distances_from(s, p[None], norm)[0] for s, p in zip(searchers, at, strict=True)]
        ).reshape(-1)
    return Problem(searchers, points, blocks, radius, norm, most)


def ways(norm):
    return ("tree", "brute", None, "matrix") if norm == 2 else ("tree", "brute", None)


def check(problem):
    """Hold every way against the plain version."""
    p = problem
    expected = plain_nearest(p.searchers, p.points, p.blocks, p.norm)
    count = plain_closer(p.searchers, p.points, p.blocks, p.radius, p.norm, p.most)
    for how in ways(p.norm):
        found = nearest(p.searchers, p.points, p.blocks, norm=p.norm, how=how)
        for ours, theirs in zip(found.columns, expected.columns, strict=True):
            np.testing.assert_array_equal(ours, theirs, err_msg=f"nearest by {how}")
        ours = closer(p.searchers, p.points, p.blocks, p.radius, norm=p.norm, most=p.most, how=how)
        np.testing.assert_array_equal(ours, count, err_msg=f"closer by {how}")


@pytest.mark.parametrize("kind", KINDS)
def test_every_way_is_comparing_all_pairs(kind):
    rng = np.random.default_rng(11)
    for _ in range(80):
        check(draw(rng, kind))


@pytest.mark.parametrize("norm", [1, 2])
@pytest.mark.parametrize("fields", [1, 2, 5, 13, 20])
def test_large_blocks_are_comparing_all_pairs(fields, norm):
    rng = np.random.default_rng(fields)
    points = rng.normal(size=(2 * FEW, fields))
    searchers = points[:40] + 0.3 * rng.normal(size=(40, fields))
    blocks = np.zeros(40, np.int64), (rng.random(len(points)) < 0.1).astype(np.int64)
    radius = (0.7 * fields) * np.exp(rng.normal(size=40))
    for most in (None, 3):
        check(Problem(searchers, points, blocks, radius, norm, most))


def test_ties_in_large_grids_are_comparing_all_pairs():
    rng = np.random.default_rng(3)
    points = rng.integers(0, 12, (6000, 2)).astype(float)
    searchers = rng.integers(0, 12, (50, 2)) + rng.choice([0.0, 0.5], (50, 2))
    nobody = np.zeros(50, np.int64), np.zeros(6000, np.int64)
    for norm in (1, 2):
        check(Problem(searchers, points, nobody, np.full(50, 4.0), norm, None))


def test_without_coordinates_all_points_tie():
    blocks = np.array([0, 1, 2]), np.array([0, 0, 1])
    found = nearest(np.empty((3, 0)), np.empty((3, 0)), blocks, how="tree")
    assert found.ties.tolist() == [2, 1, 0]
    assert found.place.tolist() == [0, 2, NOBODY]
    assert found.second.tolist() == [1, NOBODY, NOBODY]
    for how in ways(2):
        counts = closer(np.empty((3, 0)), np.empty((3, 0)), blocks, np.array([1.0, 0.0, 1.0]), how=how)
        assert counts.tolist() == [2, 0, 0]


@pytest.mark.parametrize("how", ways(2))
def test_blocks_without_candidates_find_nobody(how):
    points = np.arange(6.0).reshape(3, 2)
    found = nearest(points, points, (np.array([4, 5, 6]), np.array([5, 5, 9])), how=how)
    assert found.place.tolist() == [NOBODY, 1, NOBODY]
    assert found.distance.tolist() == [np.inf, 0.0, np.inf]
    assert found.ties.tolist() == [0, 1, 0]
    assert found.second.tolist() == [NOBODY, 0, NOBODY]
    assert found.second_distance.tolist() == [np.inf, 8.0, np.inf]
    empty = nearest(points, points[:0], (np.zeros(3, np.int64), np.zeros(0, np.int64)), how=how)
    assert empty.place.tolist() == [NOBODY] * 3


def test_many_copies_take_no_time():
    """Two points, fifty thousand times: pair by pair that would be 10,000 million comparisons a search."""
    count = 100_000
    points = np.repeat([[0.0, 1.0], [0.0, 2.0]], count // 2, axis=0)
    blocks = np.zeros(count, np.int64), np.zeros(count, np.int64)
    found = nearest(points, points, blocks)
    assert set(found.ties.tolist()) == {count // 2}
    assert found.place[[0, -1]].tolist() == [0, count // 2]
    assert found.second[[0, -1]].tolist() == [1, count // 2 + 1]
    assert set(closer(points, points, blocks, np.full(count, 4.0)).tolist()) == {count}
    assert set(closer(points, points, blocks, np.full(count, 1.0)).tolist()) == {count // 2}
    same = nearest(points[:10], points[: count // 2], (blocks[0][:10], blocks[1][: count // 2]))
    assert same.ties.tolist() == [count // 2] * 10


def test_many_small_blocks():
    rng = np.random.default_rng(8)
    points = rng.normal(size=(4000, 3))
    blocks = rng.integers(0, 1500, 400), rng.integers(0, 1500, 4000)
    check(Problem(points[:400] + 0.1, points, blocks, rng.chisquare(3, 400), 2, None))


def test_what_is_read_only_or_laid_out_otherwise_gives_the_same():
    rng = np.random.default_rng(4)
    points = rng.normal(size=(500, 4))
    blocks = np.zeros(500, np.int64), np.zeros(500, np.int64)
    expected = nearest(points, points[::-1].copy(), blocks)
    columns = np.asfortranarray(points)
    columns.setflags(write=False)
    found = nearest(columns, points[::-1], blocks)
    for ours, theirs in zip(found.columns, expected.columns, strict=True):
        np.testing.assert_array_equal(ours, theirs)


# The choice of the way.


ALL = np.zeros(FEW, np.int64), np.zeros(FEW, np.int64)  # one block


def spread(fields):
    rng = np.random.default_rng(fields)
    return rng.normal(size=(FEW, fields))


@pytest.mark.parametrize(("fields", "by_products"), [(2, False), (5, False), (20, True), (40, True)])
def test_where_trees_fade_products_are_taken(monkeypatch, fields, by_products):
    points, taken = spread(fields), []
    whole = search._nearest_by_products
    monkeypatch.setattr(search, "_nearest_by_products", lambda *a: taken.append(1) or whole(*a))
    nearest(points, points, ALL)
    assert bool(taken) is by_products


def test_many_coordinates_of_few_dimensions_stay_with_the_tree(monkeypatch):
    """Twenty columns that are sums of three: the tree still tells near from far."""
    points = spread(3) @ np.random.default_rng(1).normal(size=(3, 20))
    monkeypatch.setattr(search, "_nearest_by_products", None)
    found = nearest(points, points, ALL)
    assert found.place.tolist() == list(range(FEW))


def test_small_blocks_never_take_products(monkeypatch):
    points = spread(30)
    blocks = np.arange(FEW) // (LEAF // 2), np.arange(FEW) // (LEAF // 2)
    monkeypatch.setattr(search, "_nearest_by_products", None)
    assert nearest(points, points, blocks).place.tolist() == list(range(FEW))


# Refusals.


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"how": "guess"}, "how is one of tree, matrix, brute, or None for the quickest, not 'guess'"),
        ({"norm": 3}, "norm is 2 (Euclidean) or 1 (city block), not 3"),
        ({"norm": 1, "how": "matrix"}, "matrix products give Euclidean distances only"),
    ],
)
def test_ways_and_norms_that_are_not(options, sentence):
    blocks = np.zeros(2, np.int64), np.zeros(2, np.int64)
    with pytest.raises(BadPlan) as refused:
        nearest(np.zeros((2, 1)), np.zeros((2, 1)), blocks, **options)
    assert sentence in str(refused.value)


@pytest.mark.parametrize("value", [np.nan, np.inf, 1e200])
def test_points_that_have_no_distance_are_refused(value):
    blocks = np.zeros(2, np.int64), np.zeros(2, np.int64)
    with pytest.raises(BadInput, match="finite coordinates"):
        nearest(np.zeros((2, 1)), np.array([[0.0], [value]]), blocks)


# Memory.

MEMORY = """
import resource, sys
import numpy as np
from maskwell.attacks.nearest.search import closer, nearest
count, how = int(sys.argv[1]), sys.argv[2]
points = np.random.default_rng(0).normal(size=(12_000, 3))
both = lambda n: (np.zeros(n, np.int64), np.zeros(12_000, np.int64))
nearest(points[:200], points, both(200), how=how); closer(points[:200], points, both(200), np.ones(200), how=how)
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
nearest(points[:count], points, both(count), how=how)
closer(points[:count], points, both(count), np.ones(count), how=how)
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""


@pytest.mark.parametrize("how", ["tree", "matrix"])
def test_memory_does_not_grow_with_the_pairs(how):
    """12,000 x 12,000 pairs would take 1,152 MB at eight bytes each, 144 MB at one."""
    command = [sys.executable, "-c", MEMORY, "12000", how]
    added = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert int(added) < 40_000

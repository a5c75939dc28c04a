"""Trees: how they are grown, and that searching them is comparing all pairs at a fraction of the work."""

from __future__ import annotations

import numpy as np
import pytest

from maskwell.kernels import compilation, kdtree_search
from maskwell.kernels import kdtree as growing
from maskwell.kernels.kdtree import ALIKE, FAN

LEAF = 8
SAME = 1 + 1e-12


def grown(points, blocks=None, *, leaf=LEAF, norm=2):
    """Grow a tree for each block; blocks are numbered from 0 on, none empty."""
    blocks = np.zeros(len(points), np.int64) if blocks is None else blocks
    number = np.argsort(blocks, kind="stable")
    end = np.cumsum(np.bincount(blocks))
    begin = end - np.bincount(blocks)
    unit = 0.25 / max(float(np.abs(points).max(initial=0.0)), 1e-300)
    unit = 2.0 ** np.floor(np.log2(unit))
    return growing.plant(points[number], number, begin, end, leaf, norm, float(unit))


def nodes_of(forest, root=0):
    """List a tree's nodes with the boxes that their parents keep for them (none for the root)."""
    fields = len(forest.middle)
    out, waiting = [], [(root, None)]
    while waiting:
        node, box = waiting.pop()
        out.append((node, box))
        begin = forest.child[node]
        if begin >= 0:  # a leaf has no end
            size = forest.end[node] - begin
            sides = forest.boxes[2 * fields * begin :][: 2 * fields * size].reshape(2, fields, size)
            waiting += [(begin + j, sides[:, :, j]) for j in range(size)]
    return out


def leaf_points(forest, leaf):
    """Return the points of a leaf as they are laid out, n x q."""
    fields, first, size = len(forest.middle), forest.first[leaf], forest.stop[leaf] - forest.first[leaf]
    return forest.points[fields * first :][: fields * size].reshape(fields, size).T


KINDS = {
    "normal": lambda rng: rng.normal(size=(1000, 3)),
    "sorted": lambda rng: np.sort(rng.normal(size=(1000, 2)), axis=0),
    "reversed": lambda rng: np.sort(rng.normal(size=(1000, 2)), axis=0)[::-1].copy(),
    "organ pipes": lambda rng: np.abs(np.arange(1000.0) - 500)[:, None],
    "grid": lambda rng: rng.integers(0, 4, (1000, 2)).astype(float),
    "crowds": lambda rng: rng.normal(size=(40, 2))[np.minimum(rng.geometric(0.1, 6000), 40) - 1],
    "one far point": lambda rng: np.vstack([np.zeros((999, 2)), [[1e9, 1e-9]]]),
    "constant": lambda rng: np.full((1000, 4), 2.5),
    "no coordinates": lambda rng: np.empty((1000, 0)),
    "few": lambda rng: rng.normal(size=(3, 2)),
    "one": lambda rng: rng.normal(size=(1, 2)),
}


@pytest.mark.parametrize("kind", KINDS)
def test_every_point_stands_in_one_leaf_and_within_its_boxes(kind):
    points = KINDS[kind](np.random.default_rng(1))
    forest = grown(points)
    assert sorted(forest.number.tolist()) == list(range(len(points)))
    places = []
    for node, box in nodes_of(forest):
        here = points[forest.number[forest.first[node] : forest.stop[node]]]
        if box is not None:
            np.testing.assert_array_equal(box, [here.min(axis=0), here.max(axis=0)])
        if forest.child[node] < 0:
            places += range(forest.first[node], forest.stop[node])
            np.testing.assert_array_equal(leaf_points(forest, node), here)
            numbers = forest.number[forest.first[node] : forest.stop[node]]
            assert (np.diff(numbers) > 0).all()
            assert (forest.child[node] == ALIKE) == (here == here[:1]).all()
            assert len(here) <= LEAF or forest.child[node] == ALIKE
        else:
            assert 2 <= forest.end[node] - forest.child[node] <= FAN
    assert sorted(places) == list(range(len(points)))


@pytest.mark.parametrize("kind", ["normal", "sorted", "reversed", "organ pipes"])
def test_trees_are_balanced_and_leaves_full(kind):
    forest = grown(KINDS[kind](np.random.default_rng(2)))
    leaves = [node for node, _ in nodes_of(forest) if forest.child[node] < 0]
    assert len(leaves) == -(-1000 // LEAF)
    assert sum(forest.stop[node] - forest.first[node] < LEAF for node in leaves) <= 1


def test_blocks_have_trees_of_their_own():
    rng = np.random.default_rng(3)
    points, blocks = rng.normal(size=(500, 2)), np.sort(rng.integers(0, 40, 500))
    blocks = np.unique(blocks, return_inverse=True)[1]
    forest = grown(points, blocks)
    for block in range(blocks.max() + 1):
        here = forest.number[forest.first[block] : forest.stop[block]]
        assert sorted(here.tolist()) == np.flatnonzero(blocks == block).tolist()


def all_pairs(searchers, points, norm):
    total = np.zeros((len(searchers), len(points)))
    for k in range(points.shape[1]):
        apart = points[:, k] - searchers[:, k][:, None]
        total += apart * apart if norm == 2 else np.abs(apart)
    return total


def found_by(forest, searchers, norm):
    count = len(searchers)
    out = [np.full(count, -1), np.full(count, np.inf), np.zeros(count, np.int64)]
    out += [np.full(count, -1), np.full(count, np.inf)]
    compared = kdtree_search.find_nearest(forest, searchers, np.zeros(count, np.int64), norm, SAME, *out)
    return out, compared


def counted_by(forest, searchers, limit, most, norm):
    out = np.zeros(len(searchers), np.int64)
    roots = np.zeros(len(searchers), np.int64)
    return out, kdtree_search.count_closer(forest, searchers, roots, limit, most, norm, out)


@pytest.mark.parametrize("norm", [1, 2])
@pytest.mark.parametrize("kind", KINDS)
def test_searching_is_comparing_all_pairs(kind, norm):
    rng = np.random.default_rng(4)
    points = KINDS[kind](rng)
    forest = grown(points, norm=norm)
    searchers = points[rng.integers(0, len(points), 60)] + rng.choice([0.0, 0.3], (60, 1))
    distances = all_pairs(searchers, points, norm)
    (place, distance, ties, _, _), _ = found_by(forest, searchers, norm)
    tied = distances <= distances.min(axis=1, keepdims=True) * SAME
    np.testing.assert_array_equal(place, tied.argmax(axis=1))
    np.testing.assert_array_equal(distance, distances[np.arange(60), place])
    np.testing.assert_array_equal(ties, tied.sum(axis=1))
    limit = distances[np.arange(60), rng.integers(0, len(points), 60)]
    for most in (0, 1, 3, 10**6):
        count, _ = counted_by(forest, searchers, limit, most, norm)
        np.testing.assert_array_equal(count, np.minimum((distances < limit[:, None]).sum(axis=1), most))


def test_limits_one_step_around_a_distance_are_told_apart():
    """The sieve sees single precision, the answer does not."""
    rng = np.random.default_rng(5)
    points, searchers = rng.normal(size=(400, 3)), rng.normal(size=(400, 3))
    forest = grown(points)
    own = all_pairs(searchers, points, 2)[np.arange(400), rng.integers(0, 400, 400)]
    at, above = (
        counted_by(forest, searchers, limit, 10**6, 2)[0] for limit in (own, np.nextafter(own, np.inf))
    )
    assert (above == at + 1).all()


def test_a_tree_compares_a_fraction_of_the_pairs():
    rng = np.random.default_rng(6)
    points = rng.normal(size=(20_000, 3))
    forest = grown(points, leaf=64)
    searchers = points[:500] + 0.01 * rng.normal(size=(500, 3))
    _, compared = found_by(forest, searchers, 2)
    assert compared < 0.03 * 500 * 20_000
    wide = np.full(500, 100.0)
    whole, compared = counted_by(forest, searchers, wide, 10**9, 2)
    assert (whole == (all_pairs(searchers, points, 2) < 100.0).sum(axis=1)).all()
    assert compared < 0.01 * 500 * 20_000  # nearly all nodes lie wholly within
    small = np.full(500, 0.5)
    capped, fewer = counted_by(forest, searchers, small, 3, 2)
    full, more = counted_by(forest, searchers, small, 10**9, 2)
    np.testing.assert_array_equal(capped, np.minimum(full, 3))
    assert fewer < 0.2 * more


def test_places_near_a_searcher_are_located():
    rng = np.random.default_rng(7)
    points = rng.normal(size=(3000, 2))
    forest = grown(points)
    places = kdtree_search.locate(forest, points, np.where(np.arange(3000) < 2990, 0, -1))
    assert (places[2990:] == -1).all()
    apart = np.linalg.norm(points[forest.number[places[:2990]]] - points[:2990], axis=1)
    assert np.median(apart) < 0.2
    assert np.median(np.linalg.norm(points[rng.permutation(3000)] - points, axis=1)) > 1.0


def test_one_command_compiles_the_searches():
    compilation.compile_all()
    from maskwell.kernels import distance_sieve_search

    drivers = growing.plant, kdtree_search.locate, kdtree_search.find_nearest, kdtree_search.count_closer
    for driver in (*drivers, distance_sieve_search.sift_nearest, distance_sieve_search.sift_closer):
        assert len(driver.signatures) == 1

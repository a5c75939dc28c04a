"""Sums of normal densities over trees: what they are made of, what they may lack, and who scores best."""

from __future__ import annotations

import numpy as np
import pytest

from maskwell.kernels import gaussian_ranks, gaussian_sums, gaussian_tiles, gaussian_trees
from maskwell.kernels.gaussian_leaves import Rules
from maskwell.kernels.gaussian_tiles import SURE, WIDE
from maskwell.kernels.kdtree import FAN

KINDS = {
    "normal": lambda rng: 3 * rng.normal(size=(700, 3)),
    "sparse": lambda rng: 30 * rng.normal(size=(700, 3)),
    "far away": lambda rng: 1e6 + 3 * rng.normal(size=(700, 2)),
    "heavy tails": lambda rng: rng.standard_t(1, size=(500, 2)),
    "grid": lambda rng: rng.integers(0, 5, (900, 2)).astype(float),
    "crowds": lambda rng: 3 * rng.normal(size=(20, 2))[np.minimum(rng.geometric(0.2, 1500), 20) - 1],
    "constant": lambda rng: np.full((200, 2), 2.5),
    "nine": lambda rng: rng.normal(size=(400, 9)),
    "far apart": lambda rng: rng.normal(size=(3_000, 4)) * 10 ** rng.uniform(0, 5, (3_000, 1)),
    "few": lambda rng: rng.normal(size=(3, 1)),
    "one": lambda rng: rng.normal(size=(1, 5)),
}


def grown(points, offsets=None, blocks=None):
    """Grow a tree for each block; blocks are numbered from 0 on, none empty."""
    blocks = np.zeros(len(points), np.int64) if blocks is None else blocks
    number = np.argsort(blocks, kind="stable")
    end = np.cumsum(np.bincount(blocks))
    begin = end - np.bincount(blocks)
    offsets = np.zeros(len(points)) if offsets is None else offsets
    return gaussian_trees.grow(points[number], number, begin, end, offsets)


def weighed(grove, queries, rules, roots=None):
    """Return costs, places, log sums and what they lack."""
    count = len(queries)
    roots = np.zeros(count, np.int64) if roots is None else roots
    out = np.full((count, 3), np.inf), np.full((count, 2), -1), np.empty(count), np.empty(count)
    tiles = gaussian_trees.locate(grove, queries, roots)
    gaussian_sums.weigh(grove, queries, np.arange(count), roots, tiles, rules, *out)
    return out


def all_scores(queries, points, offsets):
    """Score all pairs: queries x points."""
    total = np.zeros((len(queries), len(points)))
    for k in range(points.shape[1]):
        apart = points[:, k] - queries[:, k][:, None]
        total += apart * apart
    return offsets - 0.5 * total


def log_sums(logs):
    top = logs.max(axis=1, keepdims=True)
    return np.log(np.exp(logs - top).sum(axis=1)) + top[:, 0]


def numbers_at(grove, places):
    return grove.order[grove.start[places // WIDE] + places % WIDE]


def test_exponentials_are_exact_enough_and_end_below():
    double = np.linspace(-700, 40, 20_001)
    found = np.array([gaussian_tiles.exp_64(x) for x in double])
    np.testing.assert_allclose(found, np.exp(double), rtol=5e-16)
    single = np.linspace(-80, 60, 20_001).astype(np.float32)
    found = np.array([gaussian_tiles.exp_32(x) for x in single], np.float64)
    assert np.abs(found / np.exp(single.astype(np.float64)) - 1).max() < gaussian_tiles.EXPONENTIAL / 2
    assert gaussian_tiles.exp_64(-1e30) == pytest.approx(np.exp(-700.0))
    assert gaussian_tiles.exp_32(np.float32(-1e30)) == pytest.approx(np.exp(-80.0), rel=1e-6)


@pytest.mark.parametrize("fields", [1, 4, 5, 12])
@pytest.mark.parametrize("middle", [0.0, 1e6])
def test_single_precision_keeps_its_bound(fields, middle):
    rng = np.random.default_rng(fields)
    points = middle + rng.normal(size=(WIDE, fields)) * rng.choice([0.1, 1.0, 4.0])
    offsets = rng.normal(size=WIDE) * 5
    grove, across = grown(points, offsets), gaussian_tiles.padded_width(fields)
    peak, diagonal, room = grove.about[0, across], grove.about[0, across + 1], np.zeros((3, WIDE), np.float32)
    shares = []
    for scale in rng.choice([0.3, 1.0, 3.0, 10.0], 200):
        query = middle + rng.normal(size=(1, fields)) * scale
        aim = np.zeros(across, np.float32)
        aim[:fields] = query[0] - grove.about[0, :fields]
        gaussian_tiles.values_32(grove.single, 0, aim, peak, room)
        exact = all_scores(query, points[grove.order], offsets[grove.order])[0]
        half = offsets[grove.order] - exact
        errors = np.abs(room[0] - exact)
        bounds = [
            gaussian_tiles.single_error(across, max(h, peak - o), diagonal, abs(peak) + abs(e))
            for h, o, e in zip(half, offsets[grove.order], exact, strict=True)
        ]
        shares.append((errors / bounds).max())
    assert max(shares) < 1
    assert max(shares) > 0.001  # a bound far from everything would be no use


@pytest.mark.parametrize("kind", KINDS)
def test_every_point_stands_in_one_tile_and_within_its_boxes(kind):
    points = KINDS[kind](np.random.default_rng(1))
    grove, fields = grown(points), points.shape[1]
    across, seen, waiting = (
        gaussian_tiles.padded_width(fields),
        [],
        [(int(grove.roots[0]), None, len(points))],
    )
    while waiting:
        node, box, count = waiting.pop()
        here = members(grove, node)
        assert len(here) == count
        if box is not None:
            np.testing.assert_array_equal(box, [points[here].min(axis=0), points[here].max(axis=0)])
        if node < 0:
            assert (np.diff(here) > 0).all()
            seen += here
            continue
        sides = grove.sides[node * 2 * across * FAN :][: 2 * across * FAN].reshape(2, across, FAN)[:, :fields]
        sizes = grove.sizes[node * FAN :][:FAN]
        lanes = np.flatnonzero(sizes)
        waiting += [(int(grove.kids[node * FAN + j]), sides[:, :, j], int(sizes[j])) for j in lanes]
    assert sorted(seen) == list(range(len(points)))


def members(grove, node):
    """List the numbers of the points below a node."""
    if node >= 0:
        kids = grove.kids[node * FAN :][:FAN][grove.sizes[node * FAN :][:FAN] > 0]
        return [number for kid in kids for number in members(grove, int(kid))]
    tile, across = -1 - node, grove.about.shape[1] - 3
    lanes = grove.exact[(tile * (across + 1) + across) * WIDE :][:WIDE] > -1e29
    repeat = int(grove.about[tile, across + 2])
    size = repeat if repeat > 1 else int(lanes.sum())
    assert repeat == 1 or lanes.sum() == 1
    return grove.order[grove.start[tile] :][:size].tolist()


@pytest.mark.parametrize("count", [33, 512, 513, 700, 20_000])
def test_nodes_of_tiles_are_full(count):
    grove = grown(np.random.default_rng(2).normal(size=(count, 2)))
    nodes = int((grove.sizes.reshape(-1, FAN) > 0).any(axis=1).sum())
    tiles = -(-count // WIDE)
    assert nodes <= tiles / FAN + np.log(tiles) / np.log(FAN) * FAN + 1


@pytest.mark.parametrize("kind", KINDS)
def test_no_point_scores_above_the_key_of_its_node(kind):
    rng = np.random.default_rng(3)
    points = KINDS[kind](rng)
    offsets, query = rng.normal(size=len(points)) * 3, np.zeros(gaussian_tiles.padded_width(points.shape[1]))
    grove, below, mass = grown(points, offsets), np.empty((1, FAN)), np.empty(FAN, np.float32)
    query[: points.shape[1]] = points[0] + rng.normal(size=points.shape[1])
    scores = all_scores(query[None, : points.shape[1]], points, offsets)[0]
    for node in np.flatnonzero((grove.sizes.reshape(-1, FAN) > 0).any(axis=1)):
        gaussian_tiles.keys_below(grove.sides, grove.peak, grove.sizes, node, query, 0.0, below, mass)
        for j in np.flatnonzero(grove.sizes[node * FAN :][:FAN]):
            here = members(grove, int(grove.kids[node * FAN + j]))
            assert scores[here].max() <= below[0, j]
            assert np.exp(scores[here]).sum() <= mass[j]


@pytest.mark.parametrize("relative", [1e-1, 1e-3, 1e-6, 1e-12])
@pytest.mark.parametrize("kind", KINDS)
def test_sums_lack_no_more_than_they_say(kind, relative):
    rng = np.random.default_rng(4)
    points = KINDS[kind](rng)
    offsets = rng.normal(size=len(points)) * 2
    queries = np.vstack([points[:100] + rng.normal(size=points[:100].shape), points[:5] + 40.0])
    scores, grove = all_scores(queries, points, offsets), grown(points, offsets)
    costs, places, logs, lacking = weighed(grove, queries, Rules(relative, False, False, True, 0.0))
    rounding = 1e-13 + 1e-15 * np.abs(scores.max(axis=1))
    short = log_sums(scores) - logs
    assert (short <= np.log1p(lacking) + rounding).all()
    assert (short >= -rounding).all()
    assert lacking.max() <= relative
    np.testing.assert_array_equal(-costs[:, 0], scores.max(axis=1))
    if len(points) > 1:
        np.testing.assert_array_equal(-costs[:, 1], np.sort(scores, axis=1)[:, -2])
    np.testing.assert_array_equal(
        -costs[:, 0], scores[np.arange(len(queries)), numbers_at(grove, places[:, 0])]
    )


@pytest.mark.parametrize("relative", [1e-2, 1e-4, 1e-7])
@pytest.mark.parametrize("kind", ["normal", "sparse", "heavy tails", "grid", "crowds", "nine", "far apart"])
def test_sums_without_their_largest_term_lack_no_more_than_they_say(kind, relative):
    rng = np.random.default_rng(5)
    points = KINDS[kind](rng)
    queries = points[:150] + rng.normal(size=points[:150].shape)
    scores, grove = all_scores(queries, points, np.zeros(len(points))), grown(points)
    _, _, logs, lacking = weighed(grove, queries, Rules(relative, True, False, False, 0.0))
    whole, largest = np.exp(log_sums(scores)), np.exp(scores.max(axis=1))
    rest = np.maximum(np.exp(logs) - largest, SURE * np.exp(logs))
    assert (whole - np.exp(logs) <= lacking * rest + 1e-14 * whole).all()
    assert lacking.max() <= relative


@pytest.mark.parametrize("kind", ["normal", "sparse", "grid", "crowds", "nine"])
@pytest.mark.parametrize("relative", [1e-1, 1e-3, 1e-6])
def test_sums_of_shares_over_what_is_left_lack_no_more_than_they_say(kind, relative):
    rng = np.random.default_rng(6)
    true = KINDS[kind](rng)
    points = true + rng.normal(size=true.shape)
    offsets = -log_sums(all_scores(points, true, np.zeros(len(true))))
    scores, grove = all_scores(true[:150], points, offsets), grown(points, offsets)
    _, _, logs, lacking = weighed(grove, true[:150], Rules(relative, False, True, True, 0.0))
    shares = np.exp(scores)
    exact = np.log((shares / np.maximum(1 - shares, SURE)).sum(axis=1))
    rounding = 1e-12 + 1e-13 / np.maximum(1 - shares.max(axis=1), SURE)
    assert (exact - logs <= np.log1p(lacking) + rounding).all()
    assert (logs - exact <= rounding).all()
    assert lacking.max() <= relative


def test_a_search_adds_little_where_few_points_count():
    rng = np.random.default_rng(7)
    points = 300 * rng.normal(size=(20_000, 2))
    queries = points[:50] + rng.normal(size=(50, 2))
    grove = grown(points)
    whole = weighed(grove, queries, Rules(1e-3, False, False, True, 0.0))
    # what lies far away plays no part: a search finds the same when it is moved further
    far = points.copy()
    is_far = (np.abs(points[:, None] - queries).max(axis=2) > 60).all(axis=1)
    far[is_far] += np.where(far[is_far] > 0, 1e5, -1e5)
    again = weighed(grown(far), queries, Rules(1e-3, False, False, True, 0.0))
    np.testing.assert_allclose(whole[2], again[2], atol=1e-3)
    assert is_far.mean() > 0.5


def test_blocks_are_searched_by_themselves():
    rng = np.random.default_rng(8)
    points, blocks = rng.normal(size=(600, 2)), np.sort(rng.integers(0, 9, 600))
    queries, roots = rng.normal(size=(80, 2)), rng.integers(0, 9, 80)
    grove = grown(points, blocks=blocks)
    _, places, logs, _ = weighed(grove, queries, Rules(1e-9, False, False, True, 0.0), roots)
    scores = np.where(blocks == roots[:, None], all_scores(queries, points, np.zeros(600)), -np.inf)
    np.testing.assert_allclose(logs, log_sums(scores), atol=1e-8)
    np.testing.assert_array_equal(numbers_at(grove, places[:, 0]), scores.argmax(axis=1))
    located = gaussian_trees.locate(grove, queries, roots)
    np.testing.assert_array_equal(blocks[grove.order[grove.start[located]]], roots)
    assert gaussian_trees.locate(grove, queries[:1], np.array([-1])).tolist() == [-1]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("most", [3, 10_000])
def test_sweeps_count_mark_and_name(kind, most):
    rng = np.random.default_rng(9)
    points = KINDS[kind](rng)
    offsets = np.round(rng.normal(size=len(points)))
    queries = points[:60]
    scores, grove = all_scores(queries, points, offsets), grown(points, offsets)
    middle = scores[np.arange(len(queries)), rng.integers(0, len(points), len(queries))]
    low, high, count = middle - 1e-9, middle + 0.5, len(queries)
    counts, lowest = np.zeros((count, 2), np.int64), np.full((count, 2), -1)
    costs, marks, roots = np.full((count, 2), np.inf), np.zeros(len(points), bool), np.zeros(count, np.int64)
    gaussian_ranks.sweep(grove, queries, roots, low, high, most, counts, lowest, costs, marks)
    above, within = scores > high[:, None], (scores >= low[:, None]) & (scores <= high[:, None])
    np.testing.assert_array_equal(counts[:, 0], np.minimum(above.sum(axis=1), most))
    if most > len(points):
        np.testing.assert_array_equal(counts[:, 1], within.sum(axis=1))
        np.testing.assert_array_equal(lowest[:, 0], within.argmax(axis=1))
        np.testing.assert_array_equal(-costs[:, 0], scores[np.arange(count), lowest[:, 0]])
        np.testing.assert_array_equal(marks, within.any(axis=0))


def test_offsets_are_renewed_in_both_precisions():
    rng = np.random.default_rng(10)
    points, offsets = rng.normal(size=(500, 2)), rng.normal(size=500)
    lower = offsets - rng.random(500)
    renewed, anew, queries = grown(points, offsets), grown(points, lower), points[:50] + 0.1
    gaussian_ranks.renew(renewed, lower)
    for rules in (Rules(1e-3, False, False, True, 0.0), Rules(1e-12, False, False, True, 0.0)):
        one, two = weighed(renewed, queries, rules), weighed(anew, queries, rules)
        np.testing.assert_array_equal(one[0], two[0])
        np.testing.assert_allclose(one[2], two[2], atol=2 * rules.relative)

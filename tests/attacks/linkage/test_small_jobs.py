"""Pairs compared by numpy give what the compiled passes give, to the bit."""

from __future__ import annotations

import numpy as np
import pytest

from maskwell.attacks.linkage import sorted_pairs
from maskwell.attacks.linkage.sorted_pairs import best_in_tiles, count_tiles, tiles_of
from maskwell.kernels.pairs import best_links, count_patterns

SEARCHERS, CANDIDATES = 400, 900


def sides(fields: int, seed: int):
    """Searchers' bounds, candidates, and from where to where each searcher looks: at nobody, at one, at many."""
    rng = np.random.default_rng(seed)
    middle = rng.integers(0, 5, (SEARCHERS, fields)).astype(float)
    found = rng.integers(0, 5, (fields, CANDIDATES)).astype(float)
    found[:, rng.random(CANDIDATES) < 0.05] = np.nan  # agrees with nothing
    width = rng.choice([0, 1, 2, 7, 30, CANDIDATES // 2], SEARCHERS)
    start = rng.integers(0, CANDIDATES - width + 1)
    return middle - 0.5, middle + rng.choice([0.5, 1.0], (SEARCHERS, fields)), found, start, start + width


@pytest.mark.parametrize("in_a_tile", [1, 100, sorted_pairs.PAIRS_IN_A_TILE])
@pytest.mark.parametrize("fields", [1, 3, 8, 9, 17])
def test_tiles_are_the_compiled_passes(fields, in_a_tile, monkeypatch):
    monkeypatch.setattr(sorted_pairs, "PAIRS_IN_A_TILE", in_a_tile)
    low, high, found, start, stop = sides(fields, seed=fields)
    rank = np.random.default_rng(0).integers(0, 1 + (1 << fields) // 2, 1 << fields)
    made = tiles_of(low, high, found, start, stop)

    counts = np.zeros(1 << fields, np.int64)
    count_patterns(low, high, found, start, stop, counts, np.zeros((SEARCHERS, 0), np.uint64))
    assert count_tiles(made, 1 << fields).tolist() == counts.tolist()

    best = [np.empty(SEARCHERS, np.int64) for _ in range(5)]
    best_links(low, high, found, start, stop, rank, *best)
    assert [one.tolist() for one in best_in_tiles(made, start, rank)] == [one.tolist() for one in best]


def test_nobody_to_compare():
    nobody = np.zeros(3, np.int64)
    made = tiles_of(np.zeros((3, 2)), np.ones((3, 2)), np.ones((2, 5)), nobody, nobody)
    assert count_tiles(made, 4).tolist() == [0, 0, 0, 0]
    best, ties, first, runner_up, second = best_in_tiles(made, nobody, np.arange(4))
    assert ties.tolist() == [0, 0, 0]
    assert all(one.tolist() == [-1, -1, -1] for one in (best, first, runner_up, second))

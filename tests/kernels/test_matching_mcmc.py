"""Matchings, counted by subsets and walked by loops, against listing them all."""

from __future__ import annotations

from itertools import permutations
from math import inf, lgamma

import numpy as np
import pytest

from maskwell.kernels import matching_mcmc, permanent

SHAPES = [(5, 5, 5), (3, 5, 5), (5, 3, 5), (4, 4, 6), (3, 5, 7), (4, 3, 8), (6, 4, 7), (1, 4, 6), (2, 1, 2)]
CIRCLE = np.array([[0.0, -inf, 0.0], [0.5, 0.0, -inf], [-inf, 0.3, 0.0]])


def listed(known, released, units):
    """Every matching of known units with records (-1: none) that leaves no record without a unit."""
    places = [*range(released), *[-1] * min(known, units - released)]
    return np.array(sorted(set(permutations(places, known))))


def log_weights(logs, units, every):
    known, released = logs.shape
    padded, pairs = np.column_stack([logs, np.zeros(known)]), (every >= 0).sum(axis=1)
    others = np.array([lgamma(units - known + 1) - lgamma(units - known - released + m + 1) for m in pairs])
    return padded[np.arange(known), every].sum(axis=1) + others


def shares(logs, units):
    """The share of the weight that has each pair, and none in the last column."""
    every = listed(*logs.shape, units)
    log_weight = log_weights(logs, units, every)
    weight, out = np.exp(log_weight - log_weight.max()), np.zeros((len(logs), logs.shape[1] + 1))
    for match, one in zip(every, weight / weight.sum(), strict=True):
        out[np.arange(len(logs)), match] += one
    return out


def size_weights(known, released, units):
    left = [units - known - released + m for m in range(min(known, released) + 1)]
    return np.array([lgamma(units - known + 1) - lgamma(m + 1) if m >= 0 else -inf for m in left])


def drawn(logs, units, draws, *, factors=0.0, longest=200, loops=2, seed=3):
    """How often each unit has each record in many batches of one walk."""
    known, released = logs.shape
    rows = matching_mcmc.rows_of(logs + factors, np.log(units - released) if units > released else -inf)
    others = np.append(np.exp(np.zeros(released) + factors), 1.0)
    match, owner = np.full(known, -1), np.full(released, -1)
    first = np.arange(min(known, released))
    match[first], owner[first] = first, first
    begins = matching_mcmc.rows_of(np.zeros((1, released)), -inf)
    walk = matching_mcmc.MatchingWalk(
        rows, others, begins, match, owner, np.zeros((longest + 1, 2), np.int64)
    )
    rng, out = np.random.default_rng(seed), []
    for _ in range(50):
        counts, kept = np.zeros((known, released + 1), np.int64), np.zeros((draws // 50, known), np.int32)
        _, undone = matching_mcmc.circulate(walk, units - released, loops, 1, counts, kept, rng)
        out.append(counts / (draws // 50))
    has = np.flatnonzero(match >= 0)
    assert np.array_equal(owner[match[has]], has)
    assert (owner >= 0).sum() == len(has)
    return np.array(out), undone


def within_four_errors(batches, truth, draws):
    """Whether all shares are right: batches hang together little, independent draws set the least error."""
    error = np.maximum(
        batches.std(axis=0, ddof=1) / np.sqrt(len(batches)), np.sqrt(truth * (1 - truth) / draws)
    )
    return (np.abs(batches.mean(axis=0) - truth) <= 4 * error + 1e-12).all()


# Counted.


@pytest.mark.parametrize("shape", SHAPES)
def test_pairs_are_counted_as_if_listed(shape):
    known, released, units = shape
    logs = np.random.default_rng(known).normal(0, 3, (known, released))
    weights = size_weights(*shape)
    if known <= released:
        found = permanent.pair_chances(logs, weights)
    else:
        found = permanent.pair_chances(np.ascontiguousarray(logs.T), weights).T
    assert found == pytest.approx(shares(logs, units)[:, :-1], abs=1e-13)


def test_sizes_are_counted_as_if_listed():
    logs = np.random.default_rng(2).normal(0, 2, (3, 5))
    logs[0, :4] = -inf
    every = listed(3, 5, 20)
    weight = np.exp(np.column_stack([logs, np.zeros(3)])[np.arange(3), every].sum(axis=1))
    by_size = np.bincount((every >= 0).sum(axis=1), weights=weight, minlength=4)
    assert np.exp(permanent.log_sizes(logs)) == pytest.approx(by_size, rel=1e-12)


def test_sizes_that_no_matching_has_weigh_nothing():
    logs = np.array([[0.0, -inf, -inf], [0.0, -inf, -inf]])
    assert np.exp(permanent.log_sizes(logs)).tolist() == [1.0, 2.0, 0.0]


def test_counting_is_safe_for_any_scale():
    rng = np.random.default_rng(4)
    logs = rng.normal(0, 2, (6, 6))
    far = logs + 3_000 * rng.normal(size=(6, 1)) + 3_000 * rng.normal(size=6)
    assert permanent.pair_chances(far, size_weights(6, 6, 6)) == pytest.approx(
        permanent.pair_chances(logs, size_weights(6, 6, 6)), abs=1e-11
    )


def test_all_pairs_alike_are_even_also_where_many_are_counted():
    found = permanent.pair_chances(np.zeros((14, 14)), size_weights(14, 14, 14))
    assert found == pytest.approx(np.full((14, 14), 1 / 14), abs=1e-12)


def test_no_possible_matching_is_no_number():
    logs = np.array([[0.0, -inf], [0.0, -inf]])
    assert np.isnan(permanent.pair_chances(logs, size_weights(2, 2, 2))).all()


# Walked.


def test_what_is_taken_follows_the_running_sums():
    rng = np.random.default_rng(1)
    logs = rng.normal(0, 8, (30, 37))
    logs[rng.random(logs.shape) < 0.5] = -inf
    rows, every = matching_mcmc.rows_of(logs, 1.0), np.column_stack([logs, np.full(30, 1.0)])
    sums = np.cumsum(np.exp(every - every.max(axis=1, keepdims=True)), axis=1)
    for uniform in [0.0, *rng.random(50), np.nextafter(1, 0)]:
        for row in range(30):
            aim = uniform * sums[row, -1]
            assert matching_mcmc.draw_from_row(rows, row, uniform) == np.searchsorted(
                sums[row], aim, side="right"
            )


def test_what_is_lost_in_rounding_is_not_held_but_a_row_is_never_empty():
    logs = np.array([[0.0, -30.0, -60.0], [-inf, -inf, -inf]])
    rows = matching_mcmc.rows_of(logs, -inf)
    assert rows.first.tolist() == [0, 2, 3]
    assert rows.which.tolist() == [0, 1, 3]
    assert matching_mcmc.draw_from_row(rows, 1, 0.5) == 3


@pytest.mark.parametrize("shape", SHAPES)
def test_loops_draw_matchings_by_weight(shape):
    known, released, units = shape
    logs = np.random.default_rng(known).normal(0, 1.5, (known, released))
    batches, _ = drawn(logs, units, 100_000)
    assert within_four_errors(batches, shares(logs, units), 100_000)


@pytest.mark.parametrize("shape", [(4, 4, 6), (3, 5, 5), (5, 3, 5)])
def test_factors_of_records_change_no_weights(shape):
    known, released, units = shape
    rng = np.random.default_rng(9)
    logs, factors = rng.normal(0, 1.5, (known, released)), rng.normal(0, 1, released)
    batches, _ = drawn(logs, units, 100_000, factors=factors)
    assert within_four_errors(batches, shares(logs, units), 100_000)


def test_undoing_long_loops_changes_no_weights():
    logs = np.random.default_rng(8).normal(0, 1, (4, 4))
    batches, undone = drawn(logs, 6, 100_000, longest=5)
    assert undone > 100
    assert within_four_errors(batches, shares(logs, 6), 100_000)


def test_matchings_that_no_exchange_of_two_connects_are_reached():
    batches, _ = drawn(CIRCLE, 3, 50_000)
    assert within_four_errors(batches, shares(CIRCLE, 3), 50_000)


def test_wrong_weights_would_be_seen():
    logs = np.random.default_rng(6).normal(0, 1.5, (4, 4))
    batches, _ = drawn(logs, 6, 100_000)
    assert not within_four_errors(batches, shares(logs, 7), 100_000)


def test_probing_notes_the_steps_of_a_loop_from_every_record():
    rows = matching_mcmc.rows_of(np.where(np.eye(4), 0.0, -inf), -inf)
    walk = matching_mcmc.MatchingWalk(
        rows, np.ones(5), rows, np.arange(4), np.arange(4), np.zeros((9, 2), np.int64)
    )
    lengths = np.zeros(4, np.int64)
    matching_mcmc.probe(walk, 0, lengths, np.random.default_rng(1))
    assert lengths.tolist() == [1, 1, 1, 1]

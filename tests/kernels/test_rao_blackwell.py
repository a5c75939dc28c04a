"""Averages of what a step leads to, against all matchings counted one by one."""

from __future__ import annotations

from itertools import product
from math import factorial

import numpy as np
import pytest

from maskwell.attacks.bayes.matching_posterior.belief_propagation import choices_of
from maskwell.attacks.bayes.matching_posterior.matchings import Sampling, marginals, rao_blackwell_weights
from maskwell.kernels.rao_blackwell import smooth


def all_matchings(logs, units):
    """Every matching of known units with records, and its weight."""
    known, released = logs.shape
    for match in product(range(-1, released), repeat=known):
        has = [(unit, record) for unit, record in enumerate(match) if record >= 0]
        left = units - known - released + len(has)
        if left < 0 or len({record for _, record in has}) < len(has):
            continue
        weight = factorial(units - known) / factorial(left)
        yield np.array(match, np.int32), weight * float(np.exp(sum(logs[pair] for pair in has)))


def shares(logs, units):
    out = np.zeros((logs.shape[0], logs.shape[1] + 1))
    for match, weight in all_matchings(logs, units):
        out[np.arange(len(match)), match] += weight
    return out / out.sum(axis=1, keepdims=True)


@pytest.mark.parametrize(
    ("known", "released", "units"), [(4, 4, 4), (2, 4, 5), (3, 3, 5), (4, 2, 4), (1, 4, 7)]
)
@pytest.mark.parametrize("size", [0.3, 3.0])
@pytest.mark.parametrize("least", [0.0, 0.9])
def test_a_step_leaves_the_law_of_matchings_as_it_is(known, released, units, size, least):
    logs = np.random.default_rng(known).normal(0, size, (known, released))
    out, total, choices = (
        np.zeros((known, released + 1)),
        0.0,
        choices_of(shares(logs, units), np.zeros(logs.shape, bool), least),
    )
    assert (len(choices[0]) < logs.size) == (least > 0)
    for match, weight in all_matchings(logs, units):
        one = np.zeros_like(out)
        smooth(logs, match[None], units - known - released, choices, one)
        np.testing.assert_allclose(one.sum(axis=1), 1.0, rtol=1e-12)
        out, total = out + weight * one, total + weight
    np.testing.assert_allclose(out / total, shares(logs, units), rtol=1e-12, atol=1e-15)


def test_near_ties_are_told_apart_where_visits_cannot():
    """Six records of nearly the same weight: 200 draws smoothed come nearer to the truth than 200 counted."""
    rng = np.random.default_rng(5)
    logs = rng.normal(0, 0.02, (6, 6))
    pairs = list(all_matchings(logs, 6))
    weights = np.array([weight for _, weight in pairs])
    truth, gaps = shares(logs, 6), []
    for _ in range(20):
        drawn = rng.choice(len(pairs), (4, 50), p=weights / weights.sum())
        kept = np.array([[pairs[i][0] for i in chain] for chain in drawn])
        counts = np.zeros((6, 7), np.int64)
        for match in kept.reshape(-1, 6):
            counts[np.arange(6), match] += 1
        far = np.tile([0.95, *[0.01] * 5, 0.0], (6, 1))  # an approximation that is not believed
        smooth_gap = np.abs(rao_blackwell_weights(logs, 6, kept, far).chances - truth).mean()
        gaps.append((smooth_gap, np.abs(counts / 200 - truth).mean()))
    assert all(one < 0.5 * two for one, two in gaps)


def test_sampled_rows_stay_probabilities_and_flat_ones_are_flat():
    logs = np.zeros((40, 40))
    found = marginals(logs, 40, np.random.default_rng(1), Sampling(draws=200))
    np.testing.assert_allclose(found.probability.sum(axis=1) + found.unreleased, 1.0, rtol=1e-9)
    assert found.probability.max() < 1.2 / 40

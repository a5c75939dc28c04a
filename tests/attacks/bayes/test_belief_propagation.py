"""Chances by messages, and links that are nobody's luck."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from maskwell.attacks.bayes.matching_posterior.belief_propagation import (
    an_exchange_away,
    choices_of,
    message_chances,
    shrinkage_estimate,
)
from maskwell.attacks.bayes.matching_posterior.bethe import bethe_marginals
from maskwell.attacks.bayes.matching_posterior.matchings import Sampling, marginals
from maskwell.attacks.bayes.matching_posterior.mcmc import log_factors

from .test_ceiling import drawn, joined, line


def messages(logs, units):
    return message_chances(logs, units, log_factors(logs, units))[0]


@pytest.mark.parametrize("shape", [(13, 13, 13), (9, 14, 14), (14, 9, 14), (8, 10, 15), (1, 6, 9)])
def test_flat_posteriors_are_nearly_right(shape):
    known, released, units = shape
    logs = 0.2 * drawn(3, known, released)
    counted = joined(marginals(logs, units, np.random.default_rng(1), Sampling()))
    found, even = messages(logs, units), np.full(counted.shape, 1 / units)
    even[:, -1] = (units - released) / units
    assert found.sum(axis=1) == pytest.approx(np.ones(known))
    assert np.abs(found - counted).max() < 0.03 * np.abs(even - counted).max()


def test_impossible_pairs_have_no_chance_and_a_unit_without_records_has_none():
    logs = drawn(5, 4, 5, impossible=0.3)
    logs[2] = -np.inf
    found = messages(logs, 7)
    assert (found[:, :-1][np.isneginf(logs)] == 0).all()
    assert found[2, -1] == 1.0


def test_messages_may_begin_where_others_ended():
    logs = line(40, 0.5)
    factors = log_factors(logs, 40)
    first, start = message_chances(logs, 40, factors)
    again, _ = message_chances(logs + 0.01 * drawn(1, 40, 40), 40, factors, start)
    afresh, _ = message_chances(logs + 0.01 * drawn(1, 40, 40), 40, factors)
    assert again == pytest.approx(afresh, abs=1e-3)
    assert np.abs(again - first).max() > 1e-3


# What is believed.


def chains_of(truth, draws, seed, chains=4):
    rng = np.random.default_rng(seed)
    return np.array([[rng.multinomial(draws, row) / draws for row in truth] for _ in range(chains)])


def test_draws_that_are_no_farther_than_their_error_leave_the_approximation_as_it_is():
    truth = np.append(np.full(50, 0.02), 0.0)[None].repeat(200, axis=0)
    found = shrinkage_estimate(chains_of(truth, 500, 1), truth)
    assert (found.chances == truth).all(axis=1).mean() > 0.95
    assert not found.decided.any()


def test_draws_overrule_an_approximation_that_is_off():
    truth = np.tile([0.7, 0.2, 0.1, 0.0], (100, 1))
    wrong = np.tile([0.4, 0.5, 0.1, 0.0], (100, 1))
    found = shrinkage_estimate(chains_of(truth, 2000, 2), wrong)
    error = np.sqrt(0.7 * 0.3 / 8000)
    assert np.abs(found.chances - truth).max() < 5 * error
    assert found.decided.all()


def test_what_is_decided_is_seldom_wrong():
    """Of links that are called decided at most some in a hundred have another first record."""
    rng = np.random.default_rng(3)
    truth = np.column_stack([rng.dirichlet(np.full(8, 2.0), 500), np.zeros(500)])
    found = shrinkage_estimate(chains_of(truth, 400, 4), np.full(truth.shape, 1 / 9))
    same = found.chances[:, :-1].argmax(axis=1) == truth[:, :-1].argmax(axis=1)
    assert 0.2 < found.decided.mean() < 0.98
    assert (~same & found.decided).sum() / found.decided.sum() < 0.025 + 4 * np.sqrt(0.025 / 500)
    assert same[~found.decided].mean() < 0.9


def test_choices_are_records_that_matter():
    which, begin = choices_of(
        np.array([[0.9, 0.0001, 0.09, 0.0099], [0.2, 0.2, 0.2, 0.4]]), np.zeros((2, 3), bool), 0.003
    )
    assert which.tolist() == [0, 2, 0, 1, 2]
    assert begin.tolist() == [0, 2, 5]


def test_records_an_exchange_away_matter_whatever_messages_say():
    logs = np.array([[0.0, -3.0, -9.0], [-3.0, 0.0, -9.0]])
    near = an_exchange_away(logs, np.array([0, 1]), 1e-3)
    assert near.tolist() == [[True, True, False], [True, True, False]]
    assert an_exchange_away(logs, np.array([0, -1]), 0.1).tolist() == [
        [True, False, False],
        [False, True, False],
    ]


@pytest.mark.parametrize("apart", [-0.5, -3.0])
def test_pairs_that_may_have_exchanged_are_not_taken_for_certain(apart):
    """Messages say of two units that may have each other's record that they have not."""
    logs = np.full((40, 40), -60.0)
    for a in range(0, 40, 2):
        logs[a : a + 2, a : a + 2] = [[0.0, apart], [apart, 0.0]]
    found = marginals(logs, 40, np.random.default_rng(1), Sampling())
    assert not found.exact
    exact = 1 / (1 + np.exp(-2 * apart))
    guessed = 1 - np.diag(messages(logs, 40)).mean()
    said = 1 - np.diag(found.probability).mean()
    error = np.sqrt(exact * (1 - exact) / (found.ess * 20))
    assert abs(guessed - exact) > 4 * error
    assert abs(said - exact) < 4 * error


@pytest.mark.parametrize("ratio", [0.1, 1.0])
def test_flat_links_are_those_of_other_and_of_more_draws(ratio):
    """By counts alone one in five to one in two were the same."""
    logs = line(120, ratio)
    short, long = Sampling(draws=500, most=500), Sampling(draws=4000, most=4000)
    one, two = (
        marginals(logs, 120, np.random.default_rng(seed), plan) for seed, plan in ((1, short), (2, long))
    )
    assert not one.exact
    same = one.probability.argmax(axis=1) == two.probability.argmax(axis=1)
    assert same.mean() > 0.8
    assert one.decided.mean() < 0.3
    truth = [np.diag(found.probability).mean() for found in (one, two)]
    assert truth[0] == pytest.approx(truth[1], rel=0.03)


def test_counted_links_are_all_decided():
    assert marginals(drawn(1, 5, 5), 5, np.random.default_rng(1), Sampling()).decided.all()


def test_parameters_are_averaged_over():
    """Where the parameters were drawn the approximation is that of values spread over all draws."""
    logs, traces = drawn(7, 4, 5), np.random.default_rng(1).normal(0, 0.3, (4, 100, 2))
    known = SimpleNamespace(
        side=SimpleNamespace(ends=np.array([0, 4])),
        released=SimpleNamespace(ends=np.array([0, 5])),
        matrices=lambda flat: [flat.reshape(4, 5)],
    )
    problem = SimpleNamespace(
        beliefs=(None,),
        units=np.array([6]),
        unreleased=np.zeros(4),
        known=known,
        model=SimpleNamespace(pair_logs=lambda at: np.exp(at[0]) * logs.ravel()),
        free=lambda at: np.zeros(5),
    )
    (found,) = bethe_marginals(problem, SimpleNamespace(traces=traces))
    every = [messages(np.exp(t) * logs, 6) for t in traces[:, ::4, 0].ravel()]
    assert found == pytest.approx(np.mean(every, axis=0), abs=0.01)

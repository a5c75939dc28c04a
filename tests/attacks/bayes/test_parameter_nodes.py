"""Many known units, unknown parameters: slopes from matchings, and what nodes along the axes of a posterior give."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import logsumexp

from maskwell.attacks.bayes.matching_posterior import parameter_nodes, unknown_noise
from maskwell.attacks.bayes.matching_posterior.matchings import Sampling, marginals
from maskwell.attacks.bayes.matching_posterior.unknown_noise import Kernel, group_posterior
from maskwell.attacks.bayes.unknown_noise.priors import Doubt
from maskwell.notes import has_code

from .test_known_units import (
    UNSURE,
    biased,
    block_logs,
    correlated,
    enumerated,
    match_logs,
    normal,
    off,
    world,
)

BY_CHAINS = Sampling(draws=2_000, most=64_000, ess=400.0)
SHAPE = 0.05  # of an sd: what polynomials through slopes may miss of a posterior that is not normal


class Seen(Exception):
    """A problem was seen."""


def problem_of(one, kernel, monkeypatch):
    """Return the problem that is handed on."""
    seen = []

    def catch(problem, sampling, seed):
        seen.append(problem)
        raise Seen

    monkeypatch.setattr(unknown_noise, "node_posterior", catch)
    with pytest.raises(Seen):
        group_posterior([one.law], one.group, Kernel(kernel), UNSURE, Sampling(), seed=1)
    return seen[0]


@pytest.mark.parametrize(
    ("law_of", "width", "counts", "kernel"),
    [
        (normal, 1, (6, 6, 6), "coherent"),
        (normal, 2, (7, 5, 4), "coherent"),
        (biased, 1, (7, 6, 4), "coherent"),
        (correlated, 2, (6, 5, 5), "forward"),
    ],
)
def test_slopes_are_those_of_all_matchings(law_of, width, counts, kernel, monkeypatch):
    one = world(law_of, width, counts, seed=3)
    problem, doubt = problem_of(one, kernel, monkeypatch), Doubt.of(UNSURE, one.law, one.z)
    logs = problem.centre + 0.3

    def log_posterior(at):
        pairs, free = block_logs(doubt.law_at(np.exp(at).tolist()), one, kernel, 0)
        weights = match_logs(pairs, free, counts[0], np.zeros(counts[2]))
        return doubt.log_prior(at) + logsumexp(weights)

    exact = [
        marginals(ratio, counts[0], np.random.default_rng(1), Sampling())
        for ratio in parameter_nodes.ratios_at(problem, logs)
    ]
    found = parameter_nodes.slope_at(problem, logs, [one.drawn for one in exact])
    steps = 1e-4 * np.eye(len(logs))
    wanted = [(log_posterior(logs + step) - log_posterior(logs - step)) / 2e-4 for step in steps]
    np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("seed", [5, 6, 7])
def test_with_one_parameter_few_units_are_not_far_off_either(seed, monkeypatch):
    """Seven units, where the posterior of the noise is far from normal: five nodes give what all matchings give."""
    monkeypatch.setattr(parameter_nodes, "LEAST_UNITS", 0)
    one = world(normal, 1, (7, 7, 7), seed=seed)
    found = group_posterior([one.law], one.group, Kernel(), UNSURE, Sampling(), seed=1)
    assert has_code(found.notes, "attacks.matchings_at_values")
    assert off(found, enumerated(one, UNSURE, "coherent")) < 0.005


@pytest.mark.parametrize(("law_of", "width"), [(normal, 1), (normal, 2), (biased, 1)])
def test_chains_find_the_same(law_of, width, monkeypatch):
    one = world(law_of, width, (40, 40, 40), seed=2)
    chains = group_posterior([one.law], one.group, Kernel(), UNSURE, BY_CHAINS, seed=1)
    monkeypatch.setattr(parameter_nodes, "LEAST_UNITS", 0)
    nodes = group_posterior([one.law], one.group, Kernel(), UNSURE, Sampling(), seed=1)
    assert chains.converged
    assert nodes.converged
    for a, b in zip(chains.psi, nodes.psi, strict=True):
        assert abs(np.log(a.mean) - np.log(b.mean)) < (4 / np.sqrt(a.ess) + SHAPE) * a.sd / a.mean
        assert b.sd == pytest.approx(a.sd, rel=4 / np.sqrt(2 * a.ess) + 2 * SHAPE)
    apart = chains.blocks[0].marginals.probability - nodes.blocks[0].marginals.probability
    errors = [4 * np.sqrt(0.25 / one.ess) for one in (chains, nodes)]
    assert np.abs(apart).max() < np.hypot(*errors)


def test_few_units_and_weights_of_their_own_are_left_to_chains(monkeypatch):
    one = world(biased, 1, (6, 4, 4), seed=6)
    assert parameter_nodes.node_posterior(problem_of(one, "coherent", monkeypatch), Sampling(), 1) is None

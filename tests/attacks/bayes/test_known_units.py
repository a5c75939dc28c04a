"""Helpers and unknown parameters together: against full enumeration over matchings and a grid of the parameters."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cache
from itertools import product
from math import lgamma
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from scipy import stats
from scipy.special import logsumexp

from maskwell.attacks.bayes.bias_likelihood.kernels import biased_terms
from maskwell.attacks.bayes.matching_posterior.block_pairs import BlockPairs, Side
from maskwell.attacks.bayes.matching_posterior.chain_state import MatchingProblem
from maskwell.attacks.bayes.matching_posterior.matchings import Sampling, marginals
from maskwell.attacks.bayes.matching_posterior.noise_kernels import (
    ListedKernel,
    NormalKernel,
    _factors,
    model_of,
)
from maskwell.attacks.bayes.matching_posterior.proposals import surface_of
from maskwell.attacks.bayes.matching_posterior.unknown_noise import (
    Group,
    Kernel,
    group_posterior,
    joint_step_groups,
)
from maskwell.attacks.bayes.unknown_noise.integral import over_shared
from maskwell.attacks.bayes.unknown_noise.priors import Doubt, Prior
from maskwell.attacks.pair_density import law_terms, summed_logs
from maskwell.kernels import matching_noise_mcmc as moves
from maskwell.kernels import matching_noise_steps
from maskwell.laws import Additive, Laplace, Multiplicative, Normal, Outlet, Transition
from maskwell.laws.unknowns import Unknown
from maskwell.notes import has_code
from maskwell.schema import Column, Schema
from maskwell.table import Table

UNSURE = Prior(mean_over_sd=2.0)
MANY = Sampling(draws=8_000, most=8_000, ess=100.0)
SHORT = Sampling(draws=1000, most=1000, ess=10.0, rhat=2.0)


def table_of(values, **more):
    names = [f"V{j}" for j in range(np.shape(values)[1])]
    described = [Column(name, "continuous") for name in names]
    columns = {name: pa.array(values[:, j], pa.float64()) for j, name in enumerate(names)}
    for name, (labels, codes) in more.items():
        described.append(Column(name, "category", categories=labels))
        columns[name] = pa.array([labels[code] for code in codes])
    return Table.from_frame(pa.table(columns), Schema(tuple(described)))


def normal(width, sd):
    return Additive(names(width), Normal((sd,) * width), (Outlet(),) * width)


def correlated(width, sd):
    off = tuple(tuple(1.0 if a == b else 0.6 for a in range(width)) for b in range(width))
    return Additive(names(width), Normal((sd,) * width, off), (Outlet(),) * width)


def biased(width, sd):
    spreads = (Multiplicative(0.2, sd),) * width
    return Additive(names(width), Normal((1.0,) * width), (Outlet(),) * width, spreads=spreads)


def names(width):
    return tuple(f"V{j}" for j in range(width))


@dataclass
class World:
    """A truth, a release of some of it, and some known units; blocks of all."""

    law: Additive
    truth: Table
    z: Table
    x: Table
    released: np.ndarray
    known: np.ndarray
    blocks: np.ndarray

    @property
    def group(self):
        blocks = self.blocks
        return Group(
            self.z, self.x, self.truth, blocks[self.released], blocks[self.known], blocks, self.known
        )


def world(law_of, width, counts, seed, *, blocks=None, sd=0.7):
    """Draw a truth of N units, n of them released, K of them known."""
    units, released, known = counts
    rng = np.random.default_rng(seed)
    true = rng.normal(3, 1.5, (units, width))
    law = law_of(width, sd)
    sds = np.hypot(sd, 0.2 * true) if any(law.spreads) else sd
    noised = true + sds * rng.normal(size=true.shape)
    out, who = rng.permutation(units)[:released], rng.permutation(units)[:known]
    blocks = np.zeros(units, np.int64) if blocks is None else np.array(blocks)
    return World(law, table_of(true), table_of(noised[out]), table_of(true[who]), out, who, blocks)


def pair_logs(terms, z, x):
    z, x = np.asarray(z), np.asarray(x)
    return summed_logs(terms, np.tile(z, len(x)), np.repeat(x, len(z))).reshape(len(x), len(z))


def block_logs(law, world, kernel, block):
    """Return kernels of pairs and the log density of free records of one block, at the parameters of a law."""
    z, x = (np.flatnonzero(world.blocks[part] == block) for part in (world.released, world.known))
    if kernel in ("paper", "fms"):
        return pair_logs(biased_terms([law], world.z, world.x, kernel, None), z, x), np.zeros(len(z))
    logs = pair_logs(law_terms([law], world.z, world.x), z, x)
    others = np.setdiff1d(np.flatnonzero(world.blocks == block), world.known)
    if kernel == "forward" or not len(others):
        return logs, np.zeros(len(z))
    of_others = pair_logs(law_terms([law], world.z, world.truth), z, others)
    return logs, logsumexp(of_others, axis=0) - np.log(len(others))


@cache
def every_match(units, known, released):
    """Return all matchings of a block."""
    return np.array(
        [
            match
            for match in product(range(-1, released), repeat=known)
            if len(has := [r for r in match if r >= 0]) == len(set(has))
            and units - known - released + len(has) >= 0
        ]
    )


def match_logs(logs, free, units, unreleased):
    """Return the log weights of all matchings of a block."""
    known, released = logs.shape
    matches = every_match(units, known, released)
    every = np.column_stack([logs - free, unreleased])
    ways = np.array([lgamma(max(units - known - released + m, 0) + 1) for m in range(known + 1)])
    return every[np.arange(known), matches].sum(axis=1) - ways[(matches >= 0).sum(axis=1)] + free.sum()


def enumerated(world, prior, kernel, unreleased=None):
    """Return for each block the probabilities of pairs (last: none), by all matchings at all nodes of a grid."""
    doubt = Doubt.of(prior, world.law, world.z)
    at = np.linspace(-8, 8, 33) if len(doubt.beliefs) == 1 else np.linspace(-6.5, 6.5, 27)
    axes = [b.centre + b.spread * at for b in doubt.beliefs]
    grid, blocks = list(product(*axes)), np.unique(world.blocks[world.known])
    unreleased = np.zeros(len(world.known)) if unreleased is None else unreleased
    sizes, weights = [int((world.blocks == block).sum()) for block in blocks], [[] for _ in blocks]
    for logs in grid:
        law = doubt.law_at(np.exp(logs).tolist())
        for block, size, here in zip(blocks, sizes, weights, strict=True):
            own = unreleased[world.blocks[world.known] == block]
            here.append(match_logs(*block_logs(law, world, kernel, block), size, own))
    nodes = np.array([doubt.log_prior(logs) for logs in grid])
    totals = [logsumexp(here, axis=1) for here in weights]
    found = []
    for block, size, here, own in zip(blocks, sizes, weights, totals, strict=True):
        counts = [int((world.blocks[part] == block).sum()) for part in (world.known, world.released)]
        rest = nodes + sum(totals) - own
        found.append(marginal(every_match(size, *counts), np.array(here) + rest[:, None], counts[1]))
    return found


def marginal(matches, logs, released):
    """Add the weights of matchings up over all nodes."""
    weight = np.exp(logsumexp(logs, axis=0) - logsumexp(logs))
    out = np.zeros((matches.shape[1], released + 1))
    for unit, record in enumerate(matches.T):
        np.add.at(out[unit], record, weight)
    return out


def joined(block):
    return np.column_stack([block.marginals.probability, block.marginals.unreleased])


def off(found, wanted):
    """Return the largest difference over all blocks."""
    return max(np.abs(joined(b) - w).max() for b, w in zip(found.blocks, wanted, strict=True))


def allowed(found):
    """Return four standard errors of a probability of one half."""
    return 4 * np.sqrt(0.25 / found.ess)


CASES = [
    (normal, 1, (6, 6, 6), "coherent"),
    (normal, 1, (6, 6, 3), "coherent"),
    (normal, 1, (7, 5, 3), "coherent"),
    (normal, 1, (7, 4, 5), "coherent"),
    (normal, 2, (6, 5, 3), "coherent"),
    (correlated, 2, (6, 5, 3), "coherent"),
    (biased, 1, (6, 5, 3), "coherent"),
    (biased, 1, (6, 6, 4), "paper"),
    (biased, 1, (6, 6, 4), "fms"),
    (normal, 1, (6, 6, 4), "forward"),
]


@pytest.mark.parametrize(("law_of", "width", "counts", "kernel"), CASES)
def test_chains_agree_with_enumeration(law_of, width, counts, kernel):
    one = world(law_of, width, counts, seed=5)
    found = group_posterior([one.law], one.group, Kernel(kernel), UNSURE, MANY, seed=1)
    assert found.rhat < 1.01
    assert off(found, enumerated(one, UNSURE, kernel)) < allowed(found) < 0.06


@pytest.mark.parametrize(("counts", "draws"), [((6, 6, 3), 100_000), ((7, 5, 3), 125_000)])
def test_half_a_percent_at_a_hundred_thousand_effective_draws(counts, draws):
    one = world(normal, 1, counts, seed=8)
    many = Sampling(draws=draws, most=draws, ess=100_000.0)
    found = group_posterior([one.law], one.group, Kernel(), UNSURE, many, seed=2)
    assert found.converged
    assert found.ess > 100_000
    assert off(found, enumerated(one, UNSURE, "coherent")) < 0.005


def test_blocks_share_the_parameters():
    one = world(normal, 1, (7, 7, 5), seed=3, blocks=[4, 4, 4, 9, 9, 9, 9])
    found = group_posterior([one.law], one.group, Kernel(), UNSURE, MANY, seed=3)
    assert [block.block for block in found.blocks] == [4, 9]
    assert off(found, enumerated(one, UNSURE, "coherent")) < allowed(found)
    for block in found.blocks:
        assert (one.blocks[one.known[block.known]] == block.block).all()
        assert (one.blocks[one.released[block.released]] == block.block).all()


def test_weights_of_units_that_were_not_released():
    one = world(biased, 1, (6, 4, 4), seed=6)
    own = np.array([-3.0, -1.0, -2.0, -4.0])
    found = group_posterior([one.law], one.group, Kernel("paper", None, own), UNSURE, MANY, seed=4)
    assert off(found, enumerated(one, UNSURE, "paper", own)) < allowed(found)


def test_laws_without_a_compiled_loop():
    one = world(normal, 1, (5, 5, 3), seed=7)
    law = Additive(("V0",), Laplace((0.7,)), (Outlet(low=0.5),))
    values = np.maximum(one.z.values(["V0"]), 0.5)
    one = World(law, one.truth, table_of(values), one.x, one.released, one.known, one.blocks)
    few = Sampling(chains=2, draws=600, most=600, ess=10.0, rhat=2.0)
    found = group_posterior([law], one.group, Kernel(), UNSURE, few, seed=5)
    assert off(found, enumerated(one, UNSURE, "coherent")) < allowed(found) < 0.2


# Both models.


def sides(one):
    codes = np.zeros(len(one.truth), np.int64)
    others = np.setdiff1d(np.arange(len(one.truth)), one.known)
    released = Side.of(one.z, codes[: len(one.z)], np.array([0]))
    known = BlockPairs(Side.of(one.x, codes[: len(one.x)], np.array([0])), released)
    return known, BlockPairs(Side.of(one.truth.take(others), codes[: len(others)], np.array([0])), released)


def with_gaps(table, which):
    """Return a table in which some values are missing."""
    status = np.zeros(len(table), np.uint8)
    status[list(which)] = 1
    return table.with_columns({"V0": (table.schema["V0"], table.floats("V0"), status)})


@pytest.mark.parametrize("law_of", [normal, correlated, biased])
@pytest.mark.parametrize("gaps", [False, True])
def test_compiled_kernels_are_those_of_the_law(law_of, gaps):
    one = world(law_of, 2, (30, 20, 12), seed=1)
    if gaps:
        one.z, one.x, one.truth = (
            with_gaps(one.z, [1, 5]),
            with_gaps(one.x, [2]),
            with_gaps(one.truth, [0, 3]),
        )
    doubts, (known, others) = [Doubt.of(UNSURE, one.law, one.z)], sides(one)
    quick = model_of(doubts, "coherent", known, others)
    slow = ListedKernel(known, others, _factors(doubts, "coherent", one.z))
    assert isinstance(quick, NormalKernel)
    for shift in (-0.5, 0.0, 0.7):
        logs = shift + np.array([belief.centre for belief in doubts[0].beliefs])
        np.testing.assert_allclose(quick.pair_logs(logs), slow.pair_logs(logs), rtol=1e-10)
        np.testing.assert_allclose(quick.log_marginal(logs), slow.log_marginal(logs), rtol=1e-10)


@pytest.mark.parametrize("kernel", ["paper", "fms"])
def test_compiled_kernels_of_the_paper_are_those_of_its_closed_form(kernel):
    one = world(biased, 2, (30, 20, 12), seed=2, sd=3.0)
    doubts, (known, others) = [Doubt.of(UNSURE, one.law, one.z)], sides(one)
    quick = model_of(doubts, kernel, known, others)
    assert isinstance(quick, NormalKernel)
    slow = ListedKernel(known, others, _factors(doubts, kernel, one.z))
    for shift in (-2.0, 0.0, 2.0):
        logs = shift + np.array([belief.centre for belief in doubts[0].beliefs])
        np.testing.assert_allclose(quick.pair_logs(logs), slow.pair_logs(logs), rtol=1e-10, atol=1e-10)


def test_kernels_between_nodes_are_those_of_the_law():
    one = world(normal, 1, (30, 20, 12), seed=1)
    law = Additive(("V0",), Laplace((0.7,)), (Outlet(low=0.5),))
    doubts, (known, others) = [Doubt.of(UNSURE, law, one.z)], sides(one)
    between = model_of(doubts, "coherent", known, others)
    slow = ListedKernel(known, others, _factors(doubts, "coherent", one.z))
    assert between.nodes is not None
    match = np.where(np.arange(12) < 10, np.arange(12), -1)
    for shift in (-0.53, 0.0, 0.71):
        logs = np.array([shift + doubts[0].beliefs[0].centre])
        np.testing.assert_allclose(between.pair_logs(logs), slow.pair_logs(logs), atol=1e-4)
        np.testing.assert_allclose(between.log_marginal(logs), slow.log_marginal(logs), atol=1e-5)
        np.testing.assert_allclose(
            between.matched_logs(logs, match), slow.matched_logs(logs, match), atol=1e-4
        )


def test_categories_are_told_beside_unknown_noise():
    one = world(normal, 1, (6, 6, 4), seed=9)
    labels, rng = ("a", "b", "c"), np.random.default_rng(1)
    true, out = rng.integers(0, 3, 6), rng.integers(0, 3, 6)
    of = {"z": out, "x": true[one.known], "truth": true}
    tables = {
        name: table_of(getattr(one, name).values(["V0"]), EDU=(labels, codes)) for name, codes in of.items()
    }
    told = Transition(("EDU",), labels, labels, ((0.8, 0.1, 0.1), (0.1, 0.8, 0.1), (0.1, 0.1, 0.8)))
    one = World(one.law, tables["truth"], tables["z"], tables["x"], one.released, one.known, one.blocks)
    doubts, (known, others) = [Doubt.of(UNSURE, law, one.z) for law in (told, one.law)], sides(one)
    quick = model_of(doubts, "coherent", known, others)
    assert isinstance(quick, NormalKernel)
    logs = np.array([doubts[1].beliefs[0].centre])
    slow = ListedKernel(known, others, _factors(doubts, "coherent", one.z))
    np.testing.assert_allclose(quick.pair_logs(logs), slow.pair_logs(logs), rtol=1e-10)
    found = group_posterior([told, one.law], one.group, Kernel(), UNSURE, SHORT, seed=1)
    assert found.notes[0].figures["columns"] == ("EDU",)


@pytest.mark.parametrize("law_of", [normal, biased])
def test_the_grid_of_densities_is_as_good_as_the_densities(law_of):
    one = world(law_of, 1, (60, 50, 10), seed=4)
    doubt, (known, others) = Doubt.of(UNSURE, one.law, one.z), sides(one)
    model, unknowns = model_of([doubt], "coherent", known, others), len(doubt.beliefs)
    groups, units = np.ones((1, unknowns), np.int64), np.array([60])
    surface = surface_of(MatchingProblem(model, doubt.beliefs, groups, units, np.zeros(10), None))
    assert surface.mode == 1
    rng, found = np.random.default_rng(2), np.empty(50)
    for _ in range(10):
        logs = np.array([b.centre + b.spread * rng.normal() for b in doubt.beliefs])
        matching_noise_steps.fill_free(surface, logs, found)
        np.testing.assert_allclose(found, model.log_marginal(logs), atol=2e-5)


# Between knowing nobody and everybody.


def test_nobody_known_is_the_quadrature_of_the_paper():
    one = world(biased, 1, (20, 20, 1), seed=11)
    found = group_posterior([one.law], one.group, Kernel("paper"), Prior(), MANY, seed=6)

    def terms_of(law, nodes_of):
        return biased_terms([law], one.z, one.x, "paper", nodes_of)

    logs = pair_logs(over_shared(one.law, Prior(), one.z, 33, terms_of), np.arange(20), [0])
    assert np.abs(joined(found.blocks[0])[0, :-1] - np.exp(logs - logsumexp(logs))[0]).max() < allowed(found)


def test_everybody_known_comes_near_the_ceiling():
    one = world(normal, 2, (80, 80, 80), seed=12, sd=0.15)
    prior = Prior(given={name: stats.lognorm(1.0, scale=0.5) for name in ("sd:V0", "sd:V1")})
    found = group_posterior([one.law], one.group, Kernel(), prior, Sampling(most=8000), seed=7)
    told = group_posterior([one.law], one.group, Kernel(), None, Sampling(), seed=7)
    assert found.converged
    assert told.converged
    for one_sd in found.psi:
        assert abs(one_sd.mean - one_sd.card) < 4 * one_sd.sd < 0.15
    own = [own_chance(one, answer) for answer in (found, told)]
    assert abs(own[0] - own[1]) < 0.02
    alone = world(normal, 2, (80, 80, 80), seed=12, sd=0.15)
    nobody = Group(alone.z, alone.x.take(np.arange(1)), *one_known(alone))
    first = group_posterior([one.law], nobody, Kernel("forward"), prior, Sampling(most=8000), seed=7)
    near, far = (joined(answer.blocks[0])[0] - joined(told.blocks[0])[0] for answer in (found, first))
    assert np.abs(near).max() < np.abs(far).max()


def one_known(one):
    return one.truth, one.blocks[one.released], one.blocks[one.known[:1]], one.blocks, one.known[:1]


def own_chance(one, found):
    """Return the mean probability that known units give to their own record."""
    place = np.argsort(one.released)[one.known]
    return float(found.blocks[0].marginals.probability[np.arange(len(place)), place].mean())


def test_where_everybody_is_known_coherent_is_forward():
    one = world(normal, 1, (6, 6, 6), seed=13)
    answers = [
        group_posterior([one.law], one.group, Kernel(name), UNSURE, SHORT, seed=8)
        for name in ("coherent", "forward")
    ]
    np.testing.assert_array_equal(*(joined(found.blocks[0]) for found in answers))


def test_told_parameters_are_matchings_alone():
    one = world(normal, 1, (8, 6, 4), seed=14)
    found = group_posterior([one.law], one.group, Kernel(), None, Sampling(), seed=9)
    logs, free = block_logs(one.law, one, "coherent", 0)
    wanted = marginals(logs - free, 8, np.random.default_rng(0), Sampling())
    assert wanted.exact
    np.testing.assert_allclose(found.blocks[0].marginals.probability, wanted.probability, rtol=1e-10)
    assert not found.psi


def test_a_given_density_of_records_is_used():
    one = world(normal, 1, (6, 6, 2), seed=15)
    likely = np.where(np.arange(6) == 3, 50.0, 0.0)
    found = group_posterior([one.law], one.group, Kernel("coherent", likely), UNSURE, SHORT, seed=10)
    assert joined(found.blocks[0])[:, 3].max() < 0.01


# What goes wrong.


def test_chains_that_do_not_agree_say_so():
    one = world(normal, 1, (150, 150, 150), seed=16, sd=0.2)
    wide = Prior(given={"sd": stats.lognorm(1.0, scale=0.5)})
    found = group_posterior([one.law], one.group, Kernel(), wide, Sampling(draws=100, most=100), seed=11)
    assert not found.converged
    assert not found.blocks[0].marginals.converged
    assert found.rhat > 1.01 or found.ess < 400


def test_a_unit_without_a_possible_record_has_none():
    one = world(normal, 1, (6, 6, 3), seed=17)
    group = one.group
    lost = Group(group.z, with_gaps(group.x, [1]), *[getattr(group, n) for n in Group.__slots__[2:]])
    found = group_posterior([one.law], lost, Kernel(), UNSURE, SHORT, seed=12)
    assert joined(found.blocks[0])[1, -1] == 1.0
    assert has_code(found.notes, "attacks.units_without_record")


def test_the_same_seed_gives_the_same_answer():
    one = world(normal, 1, (8, 8, 4), seed=18)
    first, again, other = (
        group_posterior([one.law], one.group, Kernel(), UNSURE, SHORT, seed) for seed in (1, 1, 2)
    )
    np.testing.assert_array_equal(joined(first.blocks[0]), joined(again.blocks[0]))
    assert (joined(first.blocks[0]) != joined(other.blocks[0])).any()


def test_parameters_of_the_same_columns_step_together():
    unknowns = [Unknown("bias_sd", ("A", "B"), 1.0), Unknown("sd", ("A",), 1.0), Unknown("sd", ("C",), 1.0)]
    assert joint_step_groups(unknowns).tolist() == [[1, 1, 0], [0, 0, 1]]


def test_near_ties_are_told_apart_better_than_by_counting_even_independent_draws():
    one = world(normal, 1, (40, 40, 2), seed=19)
    flat = Prior(given={"sd": stats.lognorm(0.05, scale=30.0)})
    few = Sampling(draws=400, most=400, ess=10.0, rhat=2.0)
    found = group_posterior([one.law], one.group, Kernel("forward"), flat, few, seed=13)
    counted = np.sqrt(1 / 40 * (1 - 1 / 40) / (4 * 400))
    of_80_counted_25_would_be_farther = off(found, enumerated(one, flat, "forward"))
    assert of_80_counted_25_would_be_farther < counted


def test_loops_are_compiled_anew_when_what_they_contain_changes():
    content = Path(moves.__file__).read_bytes()
    assert hashlib.sha256(content).hexdigest()[:16] == matching_noise_steps.HELPING, (
        "write it into kernels/matching_noise_steps.py"
    )

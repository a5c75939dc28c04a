"""All matchings at the nodes of a lattice of parameters: against enumeration, against chains, many groups at once."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from maskwell.attacks.bayes.matching_posterior import enumeration as counting
from maskwell.attacks.bayes.matching_posterior.enumeration import AGREED, enumerated_posteriors
from maskwell.attacks.bayes.matching_posterior.lattice import LatticeShape
from maskwell.attacks.bayes.matching_posterior.matchings import Sampling
from maskwell.attacks.bayes.matching_posterior.unknown_noise import Group, Kernel, group_posterior
from maskwell.attacks.bayes.unknown_noise.priors import Prior
from maskwell.laws import Additive, Laplace, Outlet

from .test_known_units import CASES, UNSURE, World, allowed, enumerated, joined, normal, off, table_of, world

ALONE = np.zeros


@pytest.fixture(autouse=True)
def whatever_it_takes(monkeypatch):
    """Count also where chains would be quicker."""
    monkeypatch.setattr(counting, "SWEEP", np.inf)


def answers(one, kernel="coherent", prior=UNSURE, labels=None, group=None):
    labels = np.zeros(len(one.known), np.int64) if labels is None else labels
    return enumerated_posteriors([one.law], group or one.group, labels, Kernel(kernel), prior)


@pytest.mark.parametrize(("law_of", "width", "counts", "kernel"), CASES)
def test_it_is_the_enumeration(law_of, width, counts, kernel):
    one = world(law_of, width, counts, seed=5)
    (found,) = answers(one, kernel)
    assert found.blocks[0].marginals.exact
    assert found.blocks[0].marginals.error <= AGREED
    assert off(found, enumerated(one, UNSURE, kernel)) < AGREED


def test_blocks_share_the_parameters():
    one = world(normal, 1, (7, 7, 5), seed=3, blocks=[4, 4, 4, 9, 9, 9, 9])
    (found,) = answers(one)
    assert [block.block for block in found.blocks] == [4, 9]
    assert off(found, enumerated(one, UNSURE, "coherent")) < AGREED


def test_a_block_without_released_records_has_none_for_its_units():
    one = world(normal, 1, (7, 7, 5), seed=3, blocks=[4, 4, 4, 9, 9, 9, 9])
    group, here = one.group, one.blocks[one.released] == 4
    z = one.z.take(np.flatnonzero(here))
    lost = Group(z, *[getattr(group, n) for n in ("x", "truth")], group.z_blocks[here], group.x_blocks,
                 group.truth_blocks, group.numbers)  # fmt: skip
    (found,) = answers(one, group=lost)
    assert [block.marginals.probability.shape[1] for block in found.blocks] == [3, 0]
    assert (found.blocks[1].marginals.unreleased == 1.0).all()


def test_weights_of_units_that_were_not_released():
    one = world(normal, 1, (6, 4, 4), seed=6)
    own = np.array([-3.0, -1.0, -2.0, 1.0])
    kernel = Kernel("forward", None, own)
    (found,) = enumerated_posteriors([one.law], one.group, np.zeros(4, np.int64), kernel, UNSURE)
    assert off(found, enumerated(one, UNSURE, "forward", own)) < AGREED


def test_a_law_without_a_compiled_loop():
    one = world(normal, 1, (5, 5, 3), seed=7)
    law = Additive(("V0",), Laplace((0.7,)), (Outlet(low=0.5),))
    values = np.maximum(one.z.values(["V0"]), 0.5)
    one = World(law, one.truth, table_of(values), one.x, one.released, one.known, one.blocks)
    (found,) = answers(one)
    assert off(found, enumerated(one, UNSURE, "coherent")) < 10 * AGREED  # densities have corners


def some_of(group, which):
    """Return a group of some of its known units."""
    return Group(
        group.z, group.x.take(which), group.truth, group.z_blocks, group.x_blocks[which], group.truth_blocks,
        group.numbers[which], group.as_true,
    )  # fmt: skip


def test_many_groups_at_once_are_each_group_by_itself():
    one = world(normal, 1, (30, 24, 8), seed=2, blocks=np.arange(30) % 2)
    which = np.array([0, 1, 2, 3, 4, 5, 6, 7, 6, 0])  # some in two groups
    labels = np.array([0, 0, 0, 1, 1, 2, 2, 2, 3, 3])
    together = answers(one, labels=labels, group=some_of(one.group, which))
    for number, found in enumerate(together):
        (alone,) = answers(one, labels=ALONE((labels == number).sum(), np.int64),
                           group=some_of(one.group, which[labels == number]))  # fmt: skip
        assert [block.block for block in found.blocks] == [block.block for block in alone.blocks]
        for mine, theirs in zip(found.blocks, alone.blocks, strict=True):
            np.testing.assert_array_equal(mine.known, theirs.known)
            np.testing.assert_allclose(joined(mine), joined(theirs), atol=2 * AGREED)


def test_true_values_are_left_out_of_f_whatever_he_believes_them_to_be():
    """His own values may differ from the true ones; where they do not, the quick way is the same."""
    one = world(normal, 1, (12, 10, 3), seed=4)
    group = one.group
    quick = Group(*[getattr(group, name) for name in Group.__slots__[:-1]], True)
    np.testing.assert_allclose(
        joined(answers(one, group=quick)[0].blocks[0]), joined(answers(one)[0].blocks[0]), atol=1e-12
    )
    moved = table_of(one.x.values(["V0"]) + 0.3)
    other = World(one.law, one.truth, one.z, moved, one.released, one.known, one.blocks)
    (found,) = answers(other)
    chains = group_posterior(
        [one.law], other.group, Kernel(), UNSURE, Sampling(draws=8000, most=8000), seed=1
    )
    assert off(chains, [joined(found.blocks[0])]) < allowed(chains)


@pytest.mark.parametrize("known", [2, 6])
def test_chains_agree_with_it_on_more_records(known):
    one = world(normal, 2, (40, 36, known), seed=9, sd=0.4)
    wide = Prior(given={name: stats.lognorm(0.8, scale=0.5) for name in ("sd:V0", "sd:V1")})
    (found,) = answers(one, prior=wide)
    chains = group_posterior([one.law], one.group, Kernel(), wide, Sampling(draws=2000, most=4000), seed=1)
    assert chains.converged
    assert off(chains, [joined(found.blocks[0])]) < allowed(chains)
    for mine, theirs in zip(found.psi, chains.psi, strict=True):
        assert abs(mine.mean - theirs.mean) < 4 * theirs.sd / np.sqrt(theirs.ess)
        assert mine.sd == pytest.approx(theirs.sd, rel=4 / np.sqrt(chains.ess))


def test_what_is_too_much_or_impossible_is_left_to_chains():
    many = world(normal, 1, (40, 40, 20), seed=1)
    assert answers(many) is None
    far = world(normal, 1, (6, 6, 2), seed=1)
    nowhere = World(far.law, far.truth, far.z, table_of(np.full((2, 1), 1e9)), *vars_of(far))
    assert answers(nowhere, "forward", Prior(mean_over_sd=200)) is None


def vars_of(one):
    return one.released, one.known, one.blocks


# Lattices.


def test_a_lattice_is_shaped_like_the_posterior_and_its_sums_are_exact():
    covariance = np.array([[0.04, 0.018], [0.018, 0.01]])
    mean, law = np.array([1.2, -0.4]), stats.multivariate_normal
    shape = LatticeShape.of(
        lambda at: float(law.logpdf(at, mean, covariance)), np.zeros(2), np.ones(2), np.full(2, 8.0)
    )
    np.testing.assert_allclose(shape.tops[0], mean, atol=1e-3)
    np.testing.assert_allclose(shape.root @ shape.root.T, covariance, rtol=1e-2)
    nodes = []

    def ask(at):
        nodes.append(at)
        return float(law.logpdf(at, mean, covariance) - law.logpdf(mean, mean, covariance))

    count = shape.walk(ask, 1.0, 0.5, 1000)
    assert count == len(nodes) < 150
    sums = law.pdf(np.array(nodes), mean, covariance) * abs(np.linalg.det(shape.root))
    assert sums.sum() == pytest.approx(1.0, abs=2e-4)
    assert np.average(nodes, axis=0, weights=sums) == pytest.approx(mean, abs=1e-4)


def test_a_lattice_finds_two_tops_far_apart_and_gives_up_where_it_never_ends():
    def two(at):
        return float(np.logaddexp(stats.norm.logpdf(at[0], -1.4, 0.1), stats.norm.logpdf(at[0], 1.4, 0.1)))

    shape = LatticeShape.of(two, np.zeros(1), np.ones(1), np.full(1, 8.0))
    assert sorted(round(float(top[0]), 1) for top in shape.tops)[::2] in ([-1.4, 1.4], [-1.4])
    nodes = []
    shape.walk(lambda at: nodes.append(at[0]) or two(at) - two(shape.tops[0]), 1.0, 0.0, 200)
    assert min(nodes) < -1.6
    assert max(nodes) > 1.6
    assert shape.walk(lambda at: 0.0, 1.0, 0.0, 200) is None

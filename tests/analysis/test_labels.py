"""Categories that noise hardly leaves: models whose levels have changed places fit nearly as well."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

import maskwell as mw
from maskwell.analysis.samplers.marginal.independence_chain import ChainProposal, ProposalMixture

FAR = 0.001  # probabilities that 8,000 draws can tell from 0


def scrambled(seed: int, records: int, stay: float = 0.4) -> mw.Release:
    """Three levels, 4 sds apart, most of them changed by chance."""
    rng = np.random.default_rng(seed)
    codes = rng.choice(3, records)
    values = {"Y": 4.0 * codes + rng.standard_normal(records), "C": np.array(["a", "b", "c"])[codes]}
    columns = (mw.Column("Y", "continuous"), mw.Column("C", "category", categories=("a", "b", "c")))
    table = mw.Table.from_frame(pa.table(values), mw.Schema(columns))
    return mw.apply(mw.Pram(("C",), stay=stay), table, seed=seed).release


def in_order(found: mw.Posterior) -> float:
    """The posterior probability that the levels are those of the original, of six ways to name three groups."""
    return float(((found["C[b]"] > 2) & (found["C[c]"] > found["C[b]"] + 2)).mean())


def evidence(release: mw.Release) -> float:
    """The same, by the records' likelihood with the groups' means and shares told."""
    from itertools import permutations

    y = release.table.floats("Y")
    labels = release.table.floats("C")
    heights = np.exp(-0.5 * (y[:, None] - np.array([0.0, 4.0, 8.0])) ** 2)
    totals = []
    for order in permutations(range(3)):
        kept = np.where(labels[:, None] == np.array(order), 0.4, 0.3)
        totals.append(np.log((heights * kept).sum(axis=1)).sum())
    shares = np.exp(np.array(totals) - np.logaddexp.reduce(totals))
    return float(shares[0])


@pytest.mark.parametrize("seed", [4, 202, 205, 216])
def test_all_ways_to_name_the_levels_are_visited(seed: int) -> None:
    """One way was found and called the answer, nine units of log density below another."""
    release = scrambled(seed, 300)
    found = mw.fit("Y ~ C", release, seed=1, naive=False, sampler="enumerated", draws=2000)
    # means, shares and sd are estimated too, so that the odds of two ways are told by another factor of a few
    odds, told = (np.log(p / (1 - p)) for p in np.clip([in_order(found), evidence(release)], FAR, 1 - FAR))
    assert abs(odds - told) < 2.0
    assert found.converged


def test_gibbs_chains_that_name_levels_otherwise_do_not_agree() -> None:
    with pytest.warns(mw.MaskwellWarning, match="have not converged"):
        found = mw.fit("Y ~ C", scrambled(205, 300), seed=1, naive=False, sampler="gibbs", draws=300)
    assert not found.converged


def test_light_noise_leaves_one_way() -> None:
    for sampler in ("enumerated", "gibbs"):
        found = mw.fit("Y ~ C", scrambled(4, 300, stay=0.7), seed=1, naive=False, sampler=sampler, draws=300)
        assert in_order(found) == 1.0


def test_a_mixture_has_the_density_it_draws_from() -> None:
    rng = np.random.default_rng(1)
    even = np.ones(2)
    parts = (
        ChainProposal(np.zeros(2), np.eye(2), 10.0, even, 2.0 * even),
        ChainProposal(np.array([3.0, 1.0]), np.array([[0.5, 0.0], [0.3, 0.4]]), 10.0, 1.5 * even, even),
    )
    thetas, logs = ProposalMixture(parts, np.array([0.3, 0.7])).draw(40_000, rng)
    # the normal law's density integrates to what it is, by weights of draws
    constant = np.log(2 * np.pi)  # of a t law in two dimensions: Gamma(6) / (Gamma(5) 10 pi) = 1 / (2 pi)
    target = -0.5 * ((thetas - 1.0) ** 2).sum(axis=1) - np.log(2 * np.pi)
    weights = np.exp(target - logs + constant)
    assert abs(weights.mean() - 1.0) < 4.0 * weights.std() / 200.0
    drawn, own = parts[1].draw(5, rng)
    np.testing.assert_allclose(parts[1].log_densities(drawn) - own, -np.log(0.2))

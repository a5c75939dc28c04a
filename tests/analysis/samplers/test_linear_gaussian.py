"""The one loop of linear gaussian systems gives what the general sampler gives."""

from __future__ import annotations

import warnings

import numpy as np
import pyarrow as pa
import pytest

import maskwell as mw
from maskwell.analysis.model import FAMILY, ModelRequest, build, read_formula
from maskwell.analysis.priors import Priors
from maskwell.analysis.results.draws import Draws
from maskwell.analysis.samplers.chains import ChainSettings, run_gibbs
from maskwell.analysis.samplers.gibbs import linear_gaussian
from maskwell.analysis.samplers.gibbs.linear_gaussian import applies, linear_gaussian_chain
from maskwell.analysis.samplers.gibbs.sweeps import plan_of
from maskwell.analysis.system import System
from maskwell.schema import Column, Schema
from maskwell.table import Table

from .geweke import Setting, World, differences, limit, scores

SCHEMA = Schema(
    (
        Column("y", "continuous"),
        Column("x1", "continuous"),
        Column("x2", "continuous"),
        Column("clean", "continuous"),
        Column("edu", "category", categories=("low", "middle", "high")),
        Column("school", "category", categories=tuple("abcdefgh")),
    )
)


def release(records: int = 100) -> mw.Release:
    rng = np.random.default_rng(11)
    edu, school = rng.integers(0, 3, records), rng.integers(0, 8, records)
    clean = np.round(rng.standard_normal(records))
    x1 = 0.5 * edu + 0.3 * clean + rng.standard_normal(records)
    x2 = 0.5 * x1 + rng.standard_normal(records)
    effect = 0.5 * rng.standard_normal(8)[school]
    y = 1 + x1 - 0.5 * x2 + 0.4 * (edu == 1) + effect + rng.standard_normal(records)
    columns = {"y": y, "x1": x1, "x2": x2, "clean": clean}
    columns |= {"edu": np.array(["low", "middle", "high"])[edu], "school": np.array(list("abcdefgh"))[school]}
    noise = mw.Chain(
        (mw.CorrelatedNoise(("y", "x1", "x2"), sd_ratio=0.5), mw.CodeNoise(("edu",), variance=0.3))
    )
    return mw.apply(noise, Table.from_frame(pa.table(columns), schema=SCHEMA), seed=7).release


def system_of(formula: str, family: str = "gaussian") -> System:
    given = release()
    parsed, seen = read_formula(formula, given)
    return build(ModelRequest(parsed, FAMILY[family]), given, seen)


def run(system: System, quickly: bool) -> Draws:
    running = ChainSettings(chains=2, draws=1500, warmup=200, quickly=quickly)
    return run_gibbs(system, Priors(coefficient_sd=2.0), running, np.random.SeedSequence(3))


@pytest.mark.parametrize(
    "formula", ["y ~ x1 + x2 + edu + clean + (1|school)", "y ~ x1 + edu", "y ~ x1 + (1|school)"]
)
def test_both_ways_agree(formula):
    """Means and mean squares of every parameter, within four standard errors for all of them together."""
    from arviz_stats.base import array_stats

    system = system_of(formula)
    assert applies(plan_of(system, Priors()))
    one, other = run(system, True), run(system, False)
    assert one.names == other.names
    assert one.nuisance_names == other.nuisance_names
    for power in (1, 2):
        found = []
        for draws in (one, other):
            both = np.concatenate([draws.values, draws.nuisance], axis=2) ** power
            error = array_stats.mcse(both, chain_axis=0, draw_axis=1)
            found.append((both.mean(axis=(0, 1)), error))
        z = (found[0][0] - found[1][0]) / np.hypot(found[0][1], found[1][1])
        assert np.abs(z).max() < 4.5, (power, dict(zip((*one.names, *one.nuisance_names), z, strict=True)))


@pytest.mark.parametrize(
    "formula", ["y ~ x1*x2", "y ~ x1:clean", "y ~ I(x1**2)", "y ~ x1 + (x1|school)", "y ~ edu:x1"]
)
def test_other_systems_are_left_to_the_general_sampler(formula):
    assert not applies(plan_of(system_of(formula), Priors()))


def test_true_values_are_kept_by_the_one_loop_too():
    """All four unknown columns, categories as their codes."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", mw.MaskwellWarning)  # the chains are short
        fitted = mw.fit("y ~ x1 + x2 + edu", release(), draws=200, seed=1, naive=False, keep_truths=True)
    assert fitted.draws.truths is not None
    assert fitted.draws.truths.shape[2:] == (100, 4)
    codes = fitted.draws.truths[..., fitted.draws.truth_names.index("edu")]
    assert set(np.unique(codes)) <= {0.0, 1.0, 2.0}


TOURS = 100
NUMBERS, CODE = mw.IndependentNoise(("x1", "x2"), variance=0.5), mw.CodeNoise(("k",), variance=0.3)
GROUPED = {"records": 16}  # of four groups: as many patterns of known columns as the one loop takes
SETTINGS = {
    "numbers": Setting("y ~ x1 + x2 + w", mask=NUMBERS),
    "numbers in groups": Setting("y ~ x1 + x2 + (1|school)", mask=NUMBERS, **GROUPED),
    "category": Setting("y ~ k", mask=CODE),
    "category of three levels": Setting("y ~ x1 + m", mask=mw.Chain((NUMBERS, mw.Pram(("m",), stay=0.7)))),
    "category in groups": Setting("y ~ x1 + k + (1|school)", mask=mw.Chain((NUMBERS, CODE)), **GROUPED),
    "noised response": Setting(
        "y ~ x1 + k", mask=mw.Chain((mw.CorrelatedNoise(("y", "x1"), sd_ratio=0.7), CODE))
    ),
}


class Quick(World):
    """Moves by the one loop: values are told, and the chain is carried into it anew."""

    def step(self) -> None:
        quick = linear_gaussian_chain(self.chain)
        assert quick is not None
        quick.step()
        quick.tell_state()


@pytest.mark.parametrize("name", SETTINGS)
def test_the_one_loop_leaves_the_joint_distribution_alone(name: str, monkeypatch: pytest.MonkeyPatch):
    """Geweke's test, as for the general sampler."""
    monkeypatch.setattr(linear_gaussian, "MOST_AHEAD", 1)
    moved = differences(Quick(SETTINGS[name], 13), TOURS)
    assert (moved.std(axis=0) > 0).sum() >= 10
    assert np.abs(scores(moved)).max() < limit(300, TOURS)

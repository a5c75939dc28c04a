"""Every kernel of the Gibbs sampler once, and every law once, by Geweke's joint-distribution test.

All products are in `make calibration`. A release with swapped records is left out: its law takes what another record
carries for normal, which is an approximation by design.
"""

from __future__ import annotations

import numpy as np
import pytest

from maskwell.analysis.samplers.gibbs import ordered_probit
from maskwell.laws import Power, Step
from maskwell.masks import (
    BiasNoise,
    Chain,
    CodeNoise,
    Coding,
    CorrelatedNoise,
    Grouping,
    IndependentNoise,
    MixtureNoise,
    Pram,
)

from .geweke import Setting, World, differences, limit, scores

TOURS, STATISTICS = 100, 1300  # at most so many in all: what the Bonferroni limit counts
ONE, BOTH = IndependentNoise(("x1",), variance=0.5), IndependentNoise(("x1", "x2"), variance=0.5)
SHARED = CorrelatedNoise(("x1", "x2"), sd_ratio=0.9)
MIXED = {"variance_ratio": 1.2, "within_variance_ratio": 0.4}

KERNELS = {
    "joint normal numbers": Setting("y ~ x1 + x2 + w", mask=BOTH),
    "coordinate blocks": Setting("y ~ x1*x2", mask=BOTH),
    "coordinate blocks that share noise": Setting("y ~ x1*x2", mask=SHARED),
    "elliptical slices": Setting("y ~ x1 + I(x1**2)", mask=ONE),
    "slices that share noise": Setting("y ~ x2 + I(x1**2)", mask=SHARED),
    "binary category": Setting("y ~ x1 + k", mask=Chain((ONE, CodeNoise(("k",), variance=0.3)))),
    "category of three levels": Setting("y ~ m + w", mask=CodeNoise(("m",), variance=0.4)),
    "probit": Setting("b ~ x1 + w", "probit", ONE),
    "logit": Setting("b ~ x1 + w", "logit", ONE),
    "ordered": Setting("o ~ x1 + w", "ordered", ONE),
    "poisson": Setting("c ~ x1 + w", "poisson", ONE),
    "negative binomial": Setting("c ~ x1", "negative binomial", ONE),
    "group intercepts": Setting("y ~ x1 + (1|school)", mask=ONE, records=16),
    "group intercepts and slopes": Setting("y ~ x1 + (x1|school)", mask=ONE, records=16),
    "nested factors": Setting("y ~ x1 + (1|school) + (1|school:room)", mask=ONE, records=16),
    "groups of a logit": Setting("b ~ x1 + (1|school)", "logit", ONE, records=16),
    "groups of counts": Setting("c ~ x1 + (1|school)", "poisson", ONE, records=16),
    "noised response": Setting("y ~ x1 + w", mask=CorrelatedNoise(("y", "x1"), sd_ratio=0.7)),
    "noised binary response": Setting("r ~ x1", "probit", Chain((ONE, CodeNoise(("r",), variance=0.3)))),
    "changed binary response": Setting("r ~ w", "logit", Pram(("r",), stay=0.8)),
    "missing cells": Setting("y ~ x1 + x2 + k", mask=ONE, missing=("x1", "x2", "k", "y")),
}

LAWS = {
    "independent": Setting("y ~ x1 + x2", mask=BOTH),
    "correlated": Setting("y ~ x1 + x2", mask=SHARED),
    "moment-preserving": Setting("y ~ x1 + x2", mask=CorrelatedNoise(("x1", "x2"), r0=0.6, keep="moments")),
    "mixture": Setting("y ~ x1", mask=MixtureNoise(("x1",), **MIXED)),
    "joint mixture": Setting(
        "y ~ x1 + x2", mask=MixtureNoise(("x1", "x2"), **MIXED, components=3, correlated=True)
    ),
    "rotated mixture": Setting(
        "y ~ x1 + x2", mask=MixtureNoise(("x1", "x2"), **MIXED, correlated=True, construction="rotation")
    ),
    "Laplace": Setting("y ~ x1", mask=IndependentNoise(("x1",), variance=0.5, shape="laplace")),
    "normal bias": Setting("y ~ x1", mask=BiasNoise(("x1",), 0.4, sd=0.4)),
    "lognormal bias": Setting("y ~ x1", mask=BiasNoise(("x1",), 0.3, sd=0.4, shape="lognormal")),
    "lognormal bias, integrated": Setting("y ~ x1", mask=BiasNoise(("x1",), 0.6, sd=0.05, shape="lognormal")),
    "code noise, clamped": Setting("y ~ k", mask=CodeNoise(("k",), variance=0.3)),
    "code noise, rounded": Setting("y ~ m", mask=CodeNoise(("m",), variance=0.4, rounded=True)),
    "PRAM": Setting("y ~ m", mask=Pram(("m",), stay=0.7)),
    "clamped": Setting("y ~ x1", mask=IndependentNoise(("x1",), variance=0.5, limits=(("x1", 0.0, 1.0),))),
    "coded after noise": Setting("y ~ x1", mask=Chain((ONE, Coding(("x1",), top=0.9)))),
    "coded before noise": Setting("y ~ x1", mask=ONE, top=1.0),
    "coded without noise": Setting("y ~ x1 + w", mask=Coding(("x1",), top=0.8)),
    "classes": Setting("y ~ x1", mask=Grouping(("x1",), breaks=(0.0, 0.6, 1.2))),
    "coarse unit": Setting("y ~ x1", mask=ONE, unit=1.0),
    "correlated, coarse unit": Setting("y ~ x1 + x2", mask=SHARED, unit=1.0),
    "log scale": Setting("y ~ log(x1)", mask=IndependentNoise(("x1",), variance=0.3, transform="log")),
    "log scale, curved": Setting("y ~ x1", mask=IndependentNoise(("x1",), variance=0.3, transform="log")),
    "step": Setting("y ~ x1", mask=IndependentNoise(("x1",), variance=0.5, spread=Step((0.3,), (0.5, 1.5)))),
    "power": Setting("y ~ x1", mask=IndependentNoise(("x1",), variance=0.3, spread=Power(0.5, 0.2))),
}


@pytest.fixture(autouse=True)
def cuts_of_a_size_that_few_records_speak_of(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ordered_probit, "CUT_SD", 1.0)


def check(setting: Setting, seed: int) -> None:
    moved = differences(World(setting, seed), TOURS)
    assert moved.shape[1] >= 10
    assert (moved.std(axis=0) > 0).sum() >= 10
    assert np.abs(scores(moved)).max() < limit(STATISTICS, TOURS)


@pytest.mark.parametrize("kernel", KERNELS)
def test_every_kernel_leaves_the_joint_distribution_alone(kernel: str):
    check(KERNELS[kernel], 11)


@pytest.mark.parametrize("law", LAWS)
def test_every_law_leaves_the_joint_distribution_alone(law: str):
    check(LAWS[law], 12)

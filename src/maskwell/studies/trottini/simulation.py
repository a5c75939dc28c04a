"""The simulations of section 5: one normal key, bias and noise of three sizes each, and the Bayesian intruder."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import isfinite
from typing import Any

import numpy as np

from ...attacks import BayesIntruder, Prior, Sample, Sampling, attack
from ...masking import Masking, apply
from ...masks import BiasNoise
from ...notes import has_code
from ...schema import Column, Schema
from ...table import Floats, Table
from ..plans import simulate_files

RECORDS = 100
FIELD = "X"
SOUGHT = 25  # of them are targets where he knows other units too, the same ones whatever he knows
MOST = 8_000  # draws of a chain; what has not converged by then says so
UNIT = 1e-9  # of released values: as good as none
LEVELS = ("minimum", "medium", "maximum")
BIAS_SDS = dict(zip(LEVELS, (0.01 / 6, 0.2 / 6, 1 / 6), strict=True))  # the paper's phi
SD_RATIOS = dict(zip(LEVELS, (1 / 100, 1 / 6, 1.0), strict=True))  # its c
MOMENTS = {"DATA1": (92.9, 3.2), "DATA2": (86.1, 22.0)}  # mean and sd: not in the paper, see the README

THRESHOLDS = (0.0, 0.01, 0.02, 0.03, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99)


@dataclass(frozen=True, slots=True)
class Scenario:
    """One file, and how much bias and noise it gets."""

    data: str
    bias: str
    noise: str

    @property
    def mask(self) -> BiasNoise:
        """The bias and the noise as a plan; the noise is a share of the sd of the file itself."""
        return BiasNoise((FIELD,), bias_sd=BIAS_SDS[self.bias], sd_ratio=SD_RATIOS[self.noise])


# phi ~ IG(402, 33), as printed. The range of theta in the text, 0.75 to 1.25, would make it 33.4: counts notice.
THETA = (1 - 3 * 33 / 401, 1 + 3 * 33 / 401)
TIGHT = Prior(theta_range=THETA)  # the paper's: its sd is a twentieth of its mean
WIDE = Prior(family="lognormal", mean_over_sd=1.0, theta_range=THETA)


def intruder(kernel: str = "paper", prior: Prior | None = None) -> BayesIntruder:
    """Return an intruder who was told the parameters (no prior), or was not."""
    return BayesIntruder(fields=(FIELD,), match_blocks=(), kernel=kernel, prior=prior)


def helped_intruder(prior: Prior | None, helpers: int) -> BayesIntruder:
    """Return the intruder who knows so many units beside his target; some records are targets, the same for all."""
    sampling = Sampling(most=MOST) if helpers else None
    return replace(intruder(prior=prior), helpers=helpers, targets=Sample(SOUGHT), sampling=sampling)


CASES = {"d.1": None, "d.2": TIGHT}  # told; not told, and nobody known but the target


@dataclass(frozen=True, slots=True)
class TrottiniAnswer:
    """What an intruder found in one file: correct links, their probability, and links and correct ones by threshold.

    Probability and sd are those of the correct links, NaN where there are too few; `truth` is the mean probability of
    the true records. `converged`: whether his chains did, as he says himself.
    """

    correct: float
    probability: float
    sd: float
    truth: float
    links: Floats
    right: Floats
    converged: bool = True


@dataclass(frozen=True, slots=True)
class TrottiniJob:
    """One intruder and one scenario."""

    scenario: Scenario
    plan: BayesIntruder

    @property
    def place(self) -> Scenario:
        """What decides how the file is masked."""
        return self.scenario

    def answer(self, masking: Masking) -> TrottiniAnswer:
        """Attack every record of a file in turn."""
        risk = attack(self.plan, masking)
        belief: Any = risk.belief
        chances, truth = belief.correct_probability, belief.truth_probability.mean
        curve = belief.curve(THRESHOLDS)
        links, right = (np.asarray(curve[name], np.float64) for name in ("links", "correct"))
        converged = not has_code(
            risk.notes, "attacks.matchings_not_converged", "attacks.chains_not_converged"
        )
        return TrottiniAnswer(risk.expected_correct, chances.mean, chances.sd, truth, links, right, converged)


def finite_values(values: Sequence[float]) -> list[float]:
    """Return the figures that there are."""
    return [value for value in values if isfinite(value)]


# Running.


def simulate(
    files: Mapping[TrottiniJob, int], seed: int, tick: Callable[[], None]
) -> dict[TrottiniJob, list[TrottiniAnswer]]:
    """Return what every job finds in so many files as it asks for."""

    def measure(scenario: Scenario, jobs: Sequence[TrottiniJob], replicate: int) -> list[TrottiniAnswer]:
        masking = mask_scenario(scenario, seed, replicate)
        return [job.answer(masking) for job in jobs]

    return simulate_files(files, measure, tick)


def mask_scenario(scenario: Scenario, seed: int, replicate: int) -> Masking:
    """Mask a file of one replicate; all scenarios come of the same draws."""
    draws = np.random.SeedSequence([seed, replicate])
    mean, sd = MOMENTS[scenario.data]
    table = _table(mean + sd * np.random.default_rng(draws).standard_normal(RECORDS))
    noise_seed = int(draws.generate_state(1, np.uint64)[0])
    return apply(scenario.mask, table, seed=noise_seed, exact=True)


def _table(values: Any) -> Table:
    import pyarrow as pa

    schema = Schema((Column(FIELD, "continuous", frozenset({"key"}), unit=UNIT),))
    return Table.from_frame(pa.table({FIELD: values}), schema)

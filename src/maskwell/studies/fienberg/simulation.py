"""The four scenarios of the slides: every person of the file in turn is whom the intruder looks for."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...attacks import BayesIntruder, Prior, attack
from ...masking import Masking, apply
from ...masks import BiasNoise, Chain, Subsample
from ...table import Floats, Table
from ..plans import simulate_files
from .file import FIELDS, interviews

BIAS_SD = 0.5 / 6  # a sixth of the range of theta, 0.75 to 1.25
NOTHING = 1e-6  # of a sixth of the range: what stands for no noise at all, which no mask will add
SAMPLED = 0.5

SCENARIOS = {  # by name: how much of the bias, and how much of the noise
    "no bias or noise": (0.0, NOTHING),
    "noise only": (0.0, 1.0),
    "bias only": (1.0, 0.0),
    "bias and noise": (1.0, 1.0),
}
GAMMA = Prior(family="gamma")
KERNELS = ("fms", "coherent")


@dataclass(frozen=True, slots=True)
class FienbergJob:
    """One intruder, one scenario, and whether all records are released."""

    scenario: str
    kernel: str = "fms"
    prior: Prior | None = GAMMA
    fraction: float = 1.0

    @property
    def place(self) -> tuple[str, float]:
        """What decides how the file is masked."""
        return self.scenario, self.fraction

    @property
    def plan(self) -> BayesIntruder:
        """The intruder."""
        return BayesIntruder(
            fields=FIELDS,
            match_blocks=(),
            kernel=self.kernel,
            prior=self.prior,
            response_knowledge=False,  # the paper's intruder does not know who was sampled
        )


@dataclass(frozen=True, slots=True)
class FienbergAnswer:
    """What he found in one file.

    `places`: how many true records he ranks 1st to 10th, and beyond; the mean probability that he gives to his first,
    to the true, and to his correct links. `out` and `inside`: the mean probability of "not released" that he gives to
    those who were not, and to those who were.
    """

    places: Floats
    first: float
    truth: float
    correct: float
    out: float = 0.0
    inside: float = 0.0


def attack_records(job: FienbergJob, masking: Masking) -> FienbergAnswer:
    """Attack every record in turn."""
    risk = attack(job.plan, masking)
    belief = risk.sure_belief
    chances = (belief.first_probability, belief.truth_probability, belief.correct_probability)
    return FienbergAnswer(belief.places, *(one.mean for one in chances), **_absence(risk.table, masking))


def _absence(table: Any, masking: Masking) -> dict[str, float]:
    """Return what he says of not being released, of those who were not and of those who were."""
    if "not_released" not in table.column_names:
        return {}
    absent = np.asarray(table["not_released"], np.float64)
    released = np.zeros(len(masking.truth), np.bool_)
    released[masking.order] = True
    return {"out": float(absent[~released].mean()), "inside": float(absent[released].mean())}


# Running.


def simulate(
    files: Mapping[FienbergJob, int], seed: int, tick: Callable[[], None]
) -> dict[FienbergJob, list[FienbergAnswer]]:
    """Return what every job finds in so many files as it asks for."""

    def measure(
        place: tuple[str, float], jobs: Sequence[FienbergJob], replicate: int
    ) -> list[FienbergAnswer]:
        masking = mask_interviews(*place, seed, replicate)
        return [attack_records(job, masking) for job in jobs]

    return simulate_files(files, measure, tick)


def mask_interviews(scenario: str, fraction: float, seed: int, replicate: int) -> Masking:
    """Mask the file of one replicate; all scenarios come of the same draws."""
    draws = np.random.SeedSequence([seed, replicate])
    table = interviews(np.random.default_rng(draws))
    noise_seed = int(draws.generate_state(1, np.uint64)[0])
    return apply(_mask(scenario, fraction, table), table, seed=noise_seed, exact=True)


def _mask(scenario: str, fraction: float, table: Table) -> Any:
    """Return bias and noise of a sixth of the ranges, and half of the file where it is sampled."""
    bias, noise = SCENARIOS[scenario]
    sds = noise * np.ptp(table.values(FIELDS), axis=0) / 6
    mask = BiasNoise(FIELDS, bias_sd=bias * BIAS_SD, sd=tuple(map(float, sds)))
    return mask if fraction == 1 else Chain((mask, Subsample(fraction)))

"""The three known faults must not pass Geweke's test: no Hastings ratio, (A2) as printed, noise variance 10% off."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import special, stats

from maskwell.analysis.samplers.goldstein.metropolis import NoisedData, PaperOptions, PaperState, step
from maskwell.masks import IndependentNoise

from .geweke import Setting, World, differences, limit, scores

Floats = NDArray[np.float64]
NOISE_SD, CODE_SD = 0.7, 0.5
PROPER = PaperOptions(coefficient_sd=1.0, probit_sd=1.0, variance_shape=4.0, variance_scale=3.0)


class PaperWorld:
    """A number and a binary category with noise in a linear model, and the paper's sampler: a `Joint`."""

    def __init__(self, options: PaperOptions, records: int, seed: int) -> None:
        self.options, self.rng = options, np.random.default_rng(seed)
        self.clean = np.column_stack([np.ones(records), np.linspace(-1, 1, records)])
        self.state: PaperState
        self.data: NoisedData

    def fresh(self) -> None:
        rng, clean, records = self.rng, self.clean, len(self.clean)
        beta, alpha, stick = rng.standard_normal(4), rng.standard_normal(3), rng.standard_normal(2)
        variance, other = 3.0 / rng.standard_gamma(4.0, 2)
        code = (clean @ stick + rng.standard_normal(records) < 0).astype(np.int64)
        x = np.column_stack([clean, code]) @ alpha + math.sqrt(other) * rng.standard_normal(records)
        truth = x[:, None], code[:, None], beta, variance, (alpha,), np.array([other]), (stick,)
        self.state = PaperState(*truth, np.zeros(2))
        self.renew()

    def renew(self) -> None:
        rng, state = self.rng, self.state
        mean = np.column_stack([self.clean, state.numbers, state.codes]) @ state.beta
        y = mean + math.sqrt(state.variance) * rng.standard_normal(len(mean))
        numbers = state.numbers + NOISE_SD * rng.standard_normal(state.numbers.shape)
        released = np.clip(state.codes[:, 0] + CODE_SD * rng.standard_normal(len(mean)), 0, 1)
        self.data = NoisedData(
            y, self.clean, numbers, np.full_like(numbers, NOISE_SD), (code_table(released),)
        )

    def step(self) -> None:
        self.state = step(self.rng, self.state, self.data, self.options)

    def statistics(self) -> Floats:
        state, y = self.state, np.tanh(self.data.response)
        x, code, noise = state.numbers[:, 0], state.codes[:, 0], (self.data.numbers - state.numbers)[:, 0]
        own = np.concatenate([state.beta, state.alphas[0], state.sticks[0]])
        variances = np.log([state.variance, state.variances[0]])
        records = [(noise**2).mean(), noise.mean(), code.mean(), np.tanh(x).mean(), (np.tanh(x) * y).mean()]
        return np.array(
            [*own, *own**2, *variances, *variances**2, *records, (noise * y).mean(), (code * y).mean()]
        )


def code_table(released: Floats) -> Floats:
    """The log density of a binary code with normal noise that is kept between 0 and 1."""
    code, value = np.arange(2), released[:, None]
    inside = stats.norm.logpdf(value - code, scale=CODE_SD)
    low, high = special.log_ndtr(-code / CODE_SD), special.log_ndtr((code - 1) / CODE_SD)
    return np.where(value <= 0, low, np.where(value >= 1, high, inside))


TOURS = 150


def worst(options: PaperOptions, records: int, tours: int = TOURS) -> tuple[float, float]:
    moved = differences(PaperWorld(options, records, 21), tours)
    return np.abs(scores(moved)).max(), limit(moved.shape[1], tours)


@pytest.mark.parametrize("records", [12, 400])
def test_the_papers_sampler_with_the_hastings_ratio_passes(records: int):
    score, bound = worst(PROPER, records)
    assert score < bound


@pytest.mark.parametrize("fault", ["hastings", "as_printed"])
def test_faults_of_the_print_are_caught(fault: str):
    score, bound = worst(replace(PROPER, **{fault: fault != "hastings"}), 12)
    assert score > bound


def test_a_noise_variance_that_is_a_tenth_off_is_caught_in_the_papers_sampler():
    score, bound = worst(replace(PROPER, noise_variance_factor=1.1), 400)
    assert score > bound


@pytest.mark.parametrize("factor", [0.9, 1.1])
def test_a_noise_variance_that_is_a_tenth_off_is_caught_in_gibbs(factor: float):
    setting = Setting("y ~ x1 + w", mask=IndependentNoise(("x1",), variance=0.1), records=200, assumed=factor)
    moved = differences(World(setting, 22), TOURS)
    assert np.abs(scores(moved)).max() > limit(moved.shape[1], TOURS)

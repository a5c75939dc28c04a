"""The paper's sampler against exact Gibbs in plain numpy, by Geweke's test, and with the faults of the print."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import special, stats

from maskwell.analysis.samplers.goldstein.metropolis import (
    NoisedData,
    PaperOptions,
    PaperState,
    paper_draws,
    start,
    step,
)
from maskwell.errors import BadInput

Floats = NDArray[np.float64]
NOISE_SD = math.sqrt(0.2)


def clamped_table(released: Floats, levels: int) -> Floats:
    """The log density of a code with normal noise, kept between the first and the last code (appendix)."""
    code, value = np.arange(levels), released[:, None]
    inside = -0.5 * ((value - code) / NOISE_SD) ** 2 - math.log(NOISE_SD * math.sqrt(2 * math.pi))
    low, high = special.log_ndtr(-code / NOISE_SD), special.log_ndtr((code - levels + 1) / NOISE_SD)
    return np.where(value <= 0, low, np.where(value >= levels - 1, high, inside))


def noised(rng: np.random.Generator, x: Floats) -> Floats:
    return x + NOISE_SD * rng.standard_normal(x.shape)


def table_four(records: int, seed: int) -> NoisedData:
    """The paper's simulation, model (6)."""
    rng = np.random.default_rng(seed)
    x = rng.standard_normal(records)
    group = (0.5 * x + math.sqrt(0.75) * rng.standard_normal(records) > 0).astype(float)
    y = 1 + x + group + rng.standard_normal(records)
    table = clamped_table(np.clip(noised(rng, group), 0, 1), 2)
    numbers = noised(rng, x)[:, None]
    return NoisedData(y, np.ones((records, 1)), numbers, np.full_like(numbers, NOISE_SD), (table,))


def several(records: int, seed: int) -> NoisedData:
    """Two numbers, a category of three levels, a clean column that they depend on; the noise varies by record."""
    rng = np.random.default_rng(seed)
    clean = np.column_stack([np.ones(records), rng.standard_normal(records)])
    code = np.clip(np.round(1 + 0.5 * clean[:, 1] + rng.standard_normal(records)), 0, 2)
    first = 0.4 * clean[:, 1] + 0.5 * (code == 1) + rng.standard_normal(records)
    second = 3 + 0.6 * first - 0.5 * (code == 2) + rng.standard_normal(records)
    y = first - second + clean[:, 1] + (code == 1) - (code == 2) + 0.7 * rng.standard_normal(records)
    sds = rng.uniform(0.3, 0.7, (records, 2))
    numbers = np.column_stack([first, second]) + sds * rng.standard_normal((records, 2))
    table = clamped_table(np.clip(noised(rng, code), 0, 2), 3)
    return NoisedData(y, clean, numbers, sds, (table,))


# --- exact Gibbs, in plain numpy ---------------------------------------------------------------------------


def regression(rng: np.random.Generator, design: Floats, y: Floats, variance: float) -> tuple[Floats, float]:
    gram = np.linalg.inv(design.T @ design)
    beta = rng.multivariate_normal(gram @ design.T @ y, variance * gram)
    half = 0.001 + 0.5 * float(np.sum((y - design @ beta) ** 2))
    return beta, half / rng.standard_gamma(0.001 + 0.5 * len(y))


def probit(rng: np.random.Generator, design: Floats, here: NDArray[np.bool_], old: Floats) -> Floats:
    mean = design @ old
    sign = np.where(here, 1.0, -1.0)
    tail = special.ndtr(sign * mean) * rng.random(len(mean))
    utility = mean - sign * special.ndtri(tail)
    gram = np.linalg.inv(design.T @ design + np.eye(design.shape[1]) / 100)
    return rng.multivariate_normal(gram @ design.T @ utility, gram)


def exact_gibbs(data: NoisedData, sweeps: int, seed: int) -> Iterator[Floats]:
    """Draws of beta and sigma: full conditionals of each number, each code by enumeration."""
    rng = np.random.default_rng(seed)
    y, clean, (table,) = data.response, data.clean, data.tables
    x, code, levels = data.numbers.copy(), data.tables[0].argmax(axis=1), table.shape[1]
    count, p = x.shape[1], clean.shape[1]
    variance, variances = 1.0, np.ones(count)
    sticks = [np.zeros(p) for _ in range(levels - 1)]
    indicator = np.eye(levels)[:, 1:]
    for _ in range(sweeps):
        dummies = indicator[code]
        beta, variance = regression(rng, np.hstack([clean, x, dummies]), y, variance)
        alphas = []
        for j in range(count):
            design = np.hstack([clean, dummies, x[:, :j]])
            alpha, variances[j] = regression(rng, design, x[:, j], variances[j])
            alphas.append(alpha)
        for s in range(levels - 1):
            reached = code >= s
            sticks[s] = probit(rng, clean[reached], code[reached] == s, sticks[s])
        for j in range(count):
            move_number(rng, x, j, (data, dummies, beta, variance, alphas, variances))
        log = table.copy()
        for level in range(levels):
            row = np.broadcast_to(indicator[level], (len(y), levels - 1))
            log[:, level] -= (y - np.hstack([clean, x, row]) @ beta) ** 2 / (2 * variance)
            for j in range(count):
                mean = np.hstack([clean, row, x[:, :j]]) @ alphas[j]
                log[:, level] -= (x[:, j] - mean) ** 2 / (2 * variances[j])
            for s in range(min(level + 1, levels - 1)):
                log[:, level] += special.log_ndtr((1 if s == level else -1) * (clean @ sticks[s]))
        code = np.argmax(log + rng.gumbel(size=log.shape), axis=1)
        yield np.append(beta, math.sqrt(variance))


def move_number(rng: np.random.Generator, x: Floats, j: int, given: tuple) -> None:  # type: ignore[type-arg]
    data, dummies, beta, variance, alphas, variances = given
    p, count = data.clean.shape[1], x.shape[1]
    x[:, j] = 0.0
    known = np.hstack([data.clean, dummies])
    precision = 1 / data.noise_sds[:, j] ** 2 + beta[p + j] ** 2 / variance + 1 / variances[j]
    pull = data.numbers[:, j] / data.noise_sds[:, j] ** 2
    pull += beta[p + j] * (data.response - np.hstack([data.clean, x, dummies]) @ beta) / variance
    pull += np.hstack([known, x[:, :j]]) @ alphas[j] / variances[j]
    for m in range(j + 1, count):
        slope = alphas[m][known.shape[1] + j]
        precision = precision + slope**2 / variances[m]
        pull += slope * (x[:, m] - np.hstack([known, x[:, :m]]) @ alphas[m]) / variances[m]
    x[:, j] = pull / precision + rng.standard_normal(len(x)) / np.sqrt(precision)


def mean_and_error(draws: Floats, batches: int = 25) -> tuple[Floats, Floats]:
    """The mean of each column and its Monte Carlo error, by the means of batches."""
    size = len(draws) // batches
    means = draws[: size * batches].reshape(batches, size, -1).mean(axis=1)
    return means.mean(axis=0), means.std(axis=0, ddof=1) / math.sqrt(batches)


def distances(data: NoisedData, exact: Floats, draws: int, options: PaperOptions) -> Floats:
    """How many standard errors the paper's sampler lies from exact Gibbs, by parameter."""
    found = paper_draws(data, chains=2, warmup=100, draws=draws, seed=5, options=options)
    runs = [mean_and_error(chain) for chain in found.values]
    mean, error = np.mean([m for m, _ in runs], axis=0), np.hypot(runs[0][1], runs[1][1]) / 2
    truth, other = mean_and_error(exact)
    return np.abs(mean - truth) / np.hypot(error, other)


FOUR = table_four(1000, 3)


@pytest.fixture(scope="module")
def exact_four() -> Floats:
    return np.array(list(exact_gibbs(FOUR, 1600, 4)))[100:]


def test_with_the_hastings_ratio_the_papers_sampler_agrees_with_exact_gibbs(exact_four: Floats):
    assert np.all(distances(FOUR, exact_four, 600, PaperOptions()) < 4.5)


@pytest.mark.parametrize("fault", [{"hastings": False}, {"as_printed": True}, {"noise_variance_factor": 2.0}])
def test_each_fault_of_the_print_is_caught_by_exact_gibbs(exact_four: Floats, fault: dict[str, float]):
    assert distances(FOUR, exact_four, 300, PaperOptions(**fault)).max() > 8


def test_without_the_hastings_ratio_the_residual_variance_is_far_off(exact_four: Floats):
    found = paper_draws(FOUR, chains=1, warmup=100, draws=500, seed=6, options=PaperOptions(hastings=False))
    ratio = found.values[0].mean(axis=0) / exact_four.mean(axis=0)
    assert abs(ratio[2] - 1) > 0.04  # PAPERS.md: 7%, on average over files
    assert abs(ratio[3] ** 2 - 1) > 0.05  # 8%


def test_several_numbers_and_a_category_of_three_levels_agree_with_exact_gibbs():
    data = several(200, 8)
    exact = np.array(list(exact_gibbs(data, 850, 9)))[100:]
    assert np.all(distances(data, exact, 500, PaperOptions()) < 4.5)


# --- Geweke's joint-distribution test ----------------------------------------------------------------------

PROPER = PaperOptions(coefficient_sd=1.0, probit_sd=1.0, variance_shape=4.0, variance_scale=3.0)
SQUARED_NOISE = 10  # its place among the statistics
LIMIT = stats.t.isf(0.001 / 28, 24)  # two-sided, fourteen statistics, errors from 25 batches


def prior_draw(rng: np.random.Generator, records: int) -> tuple[NoisedData, PaperState]:
    """Parameters from their priors, true values from the parameters, and the data they give."""
    beta, alpha, stick = rng.standard_normal(4), rng.standard_normal(3), rng.standard_normal(2)
    variance, other = 3.0 / rng.standard_gamma(4.0, 2)
    clean = np.column_stack([np.ones(records), np.linspace(-1, 1, records)])
    code = (clean @ stick + rng.standard_normal(records) < 0).astype(np.int64)
    mean = np.column_stack([clean, code]) @ alpha
    x = mean + math.sqrt(other) * rng.standard_normal(records)
    state = PaperState(
        x[:, None], code[:, None], beta, variance, (alpha,), np.array([other]), (stick,), np.zeros(2)
    )
    return released(rng, state, clean), state


def released(rng: np.random.Generator, state: PaperState, clean: Floats) -> NoisedData:
    """Data anew from true values and parameters."""
    code = state.codes[:, 0]
    mean = np.column_stack([clean, state.numbers, code]) @ state.beta
    y = mean + math.sqrt(state.variance) * rng.standard_normal(len(clean))
    table = clamped_table(np.clip(noised(rng, code.astype(float)), 0, 1), 2)
    numbers = state.numbers + 0.7 * rng.standard_normal(state.numbers.shape)
    return NoisedData(y, clean, numbers, np.full_like(numbers, 0.7), (table,))


def statistics(data: NoisedData, state: PaperState) -> Floats:
    """Fourteen functions of parameters, true values and data."""
    x, code, y = state.numbers[:, 0], state.codes[:, 0], data.response
    noise = data.numbers[:, 0] - x
    first = [*state.beta, math.log(state.variance), math.log(state.variances[0])]
    products = [state.alphas[0][2], state.sticks[0][1], state.beta[2] ** 2, state.beta[3] ** 2]
    records = [
        np.mean(noise**2),
        np.mean(x * data.clean[:, 1]),
        np.mean(code),
        np.tanh(np.mean(noise * (y - y.mean()))),
    ]
    return np.array([*first, *products, *records])


def geweke(options: PaperOptions, records: int, sweeps: int, seed: int) -> Floats:
    """Return how far parameters drawn in turn with data are from their priors, in standard errors."""
    rng = np.random.default_rng(seed)
    prior = np.array([statistics(*prior_draw(rng, records)) for _ in range(sweeps)])
    data, state = prior_draw(rng, records)
    joint = []
    for _ in range(sweeps):
        state = step(rng, state, data, options)
        joint.append(statistics(data, state))
        data = released(rng, state, data.clean)
    (truth, error), (mean, other) = mean_and_error(prior), mean_and_error(np.array(joint))
    return np.abs(mean - truth) / np.hypot(error, other)


def test_the_papers_sampler_passes_gewekes_test():
    assert geweke(PROPER, 12, 2000, 11).max() < LIMIT


@pytest.mark.parametrize("fault", [{"hastings": False}, {"as_printed": True}])
def test_gewekes_test_catches_the_faults_of_the_print(fault: dict[str, bool]):
    assert geweke(replace(PROPER, **fault), 12, 1000, 12).max() > LIMIT


@pytest.mark.parametrize(("factor", "caught"), [(1.0, False), (1.1, True)])
def test_gewekes_test_catches_a_noise_variance_that_is_a_tenth_off(factor: float, caught: bool):
    # many records for power; the parameters then mix slowly, so only the mean square of the noise is looked at
    found = geweke(replace(PROPER, noise_variance_factor=factor), 500, 900, 13)[SQUARED_NOISE]
    assert (found > LIMIT) == caught


# --- what goes in and comes out ----------------------------------------------------------------------------


def test_draws_have_their_shapes_and_their_seed():
    data = several(40, 1)
    first, again = (paper_draws(data, chains=2, warmup=2, draws=3, seed=7) for _ in range(2))
    assert first.values.shape == (2, 3, 2 + 2 + 2 + 1)
    assert first.nuisance.shape == (2, 3, (4 + 1) + (5 + 1) + 2 * 2)
    assert first.accepted.shape == (2, 3)
    assert np.all((first.accepted > 0) & (first.accepted <= 1))
    np.testing.assert_array_equal(first.values, again.values)
    assert not np.array_equal(first.values[0], first.values[1])


def test_a_step_leaves_the_state_it_was_given():
    data, rng = several(40, 2), np.random.default_rng(1)
    before = start(rng, data, PaperOptions())
    numbers, codes = before.numbers.copy(), before.codes.copy()
    step(rng, before, data, PaperOptions())
    np.testing.assert_array_equal(before.numbers, numbers)
    np.testing.assert_array_equal(before.codes, codes)


def test_only_numbers_or_only_categories_may_be_noised():
    data, nothing = several(40, 3), np.empty((40, 0))
    numbers = paper_draws(replace_tables(data, ()), chains=1, warmup=1, draws=2)
    assert numbers.values.shape == (1, 2, 2 + 2 + 1)
    second = clamped_table(noised(np.random.default_rng(1), np.arange(40.0) % 2), 2)
    both = (data.tables[0], second)
    codes = NoisedData(data.response, data.clean, nothing, nothing, both)
    found = paper_draws(codes, chains=1, warmup=1, draws=2)
    assert found.values.shape == (1, 2, 2 + 2 + 1 + 1)
    assert found.nuisance.shape == (1, 2, 2 * 2 + (2 + 2))


def replace_tables(data: NoisedData, tables: tuple[Floats, ...]) -> NoisedData:
    return NoisedData(data.response, data.clean, data.numbers, data.noise_sds, tables)


def test_records_without_noise_are_refused():
    data = several(40, 4)
    sds = data.noise_sds.copy()
    sds[3, 1] = 0.0
    with pytest.raises(BadInput, match="every record"):
        NoisedData(data.response, data.clean, data.numbers, sds, data.tables)


def test_columns_that_depend_on_each_other_are_refused():
    data = several(40, 5)
    twice = NoisedData(data.response, np.hstack([data.clean, data.clean]), data.numbers, data.noise_sds)
    with pytest.raises(BadInput, match="depend on each other"):
        paper_draws(twice, chains=1, warmup=1, draws=1)

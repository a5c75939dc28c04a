from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import stats

from maskwell.analysis.expressions import ONE, Binary, Number, Ref, Unary
from maskwell.analysis.priors import Priors
from maskwell.analysis.results.draws import Draws
from maskwell.analysis.samplers import conjugate, marginal
from maskwell.analysis.samplers.chains import ChainSettings
from maskwell.analysis.samplers.marginal.batches import log_densities
from maskwell.analysis.samplers.marginal.design import problem_of, resolved_priors
from maskwell.analysis.samplers.marginal.mode import first_guess, fit, refine
from maskwell.analysis.samplers.marginal.posterior import MarginalPosterior
from maskwell.analysis.samplers.marginal.true_values import with_truths
from maskwell.analysis.system import (
    GAUSSIAN,
    LOGIT,
    NEGATIVE_BINOMIAL,
    ORDERED,
    POISSON,
    PROBIT,
    Effects,
    Factor,
    System,
    Variable,
)

from .conjugate_systems import normal_noise, system_of, times

FAMILIES = (GAUSSIAN, PROBIT, LOGIT, POISSON, NEGATIVE_BINOMIAL)
COLUMNS = {
    "Intercept": ONE,
    "w1": Ref("w1"),
    "x1": Ref("x1"),
    "x2/2": Binary("div", Ref("x2"), Number(2.0)),
    "w1:x1": times(Ref("w1"), Binary("sub", Ref("x1"), Number(1.0))),
}
COEFFICIENTS = np.array([0.2, 0.4, 0.8, -0.9, 0.3])


def responses(family: int, eta: np.ndarray, rng) -> np.ndarray:
    n = len(eta)
    if family == GAUSSIAN:
        return eta + rng.normal(size=n)
    if family == PROBIT:
        return (eta + rng.normal(size=n) > 0).astype(float)
    if family == LOGIT:
        return (rng.random(n) < 1 / (1 + np.exp(-eta))).astype(float)
    more = rng.gamma(2.0, 0.5, size=n) if family == NEGATIVE_BINOMIAL else 1.0
    return rng.poisson(np.exp(np.minimum(0.6 * eta, 5.0)) * more).astype(float)


def make(
    family: int, records: int, seed: int, *, noised_response: bool = False, interaction: bool = True
) -> System:
    """Return a system with `COEFFICIENTS`; the noise of a noised response has covariance with that of predictors."""
    rng = np.random.default_rng(seed)
    w = rng.normal(size=(records, 1))
    x = np.column_stack([1 + 0.5 * w[:, 0] + rng.normal(size=records), np.zeros(records)])
    x[:, 1] = 0.4 * x[:, 0] + rng.normal(size=records)
    eta = 0.2 + 0.4 * w[:, 0] + 0.8 * x[:, 0] - 0.45 * x[:, 1]
    eta += 0.3 * w[:, 0] * (x[:, 0] - 1) * interaction
    both = np.column_stack([x, responses(family, eta, rng)])
    covariance = np.array([[0.3, 0.1, 0.12], [0.1, 0.4, -0.05], [0.12, -0.05, 0.2]])
    if not noised_response:
        covariance = covariance[:2, :2]
    size = len(covariance)
    both[:, :size] += rng.normal(size=(records, size)) @ np.linalg.cholesky(covariance).T
    columns = dict(list(COLUMNS.items())[: 5 if interaction else 4])
    return system_of(w, both[:, :2], both[:, 2], covariance, columns, family=family)


def with_patterns(system: System, covariance: np.ndarray) -> System:
    """Return it with less noise in some records, x2 missing in some, and x1 known in some."""
    n, q = len(system), len(covariance)
    pattern = (np.arange(n) % 3).astype(np.int64)
    is_open = np.ones((3, q), bool)
    is_open[2, 1] = False
    unknown = system.unknown.copy()
    unknown[::4, 1] = False
    released = system.state[:, 1 : 1 + q].copy()
    noise = normal_noise(
        released,
        [covariance, 0.5 * covariance, covariance],
        range(1, 1 + q),
        pattern=pattern,
        is_open=is_open,
    )
    return replace(system, noise=noise, unknown=unknown)


def posterior_of(system: System) -> tuple[MarginalPosterior, np.ndarray]:
    assert marginal.applies(system) is None
    posterior = MarginalPosterior(problem_of(system), resolved_priors(system, Priors()))
    theta, _ = first_guess(posterior)
    refine(posterior, theta)
    return posterior, theta


def brute(system: System, theta: np.ndarray) -> float:
    """The log posterior, constants apart, by sums over a grid of both unknown numbers of every record."""
    return sum(np.logaddexp.reduce(log.ravel()) for _, log in grids(system, theta)) + prior_log(system, theta)


def grids(system: System, theta: np.ndarray):
    """Yield, for each record, a grid of both unknown numbers and the log density of these and of what is known."""
    family, q = system.interest.family, len(system.noise.columns)
    extra = theta[5] if family in (GAUSSIAN, NEGATIVE_BINOMIAL) else 0.0
    rest = theta[5 + (family in (GAUSSIAN, NEGATIVE_BINOMIAL)) :]
    first, second, sds = rest[:2], rest[2:5], np.exp(rest[5:])
    arrays = system.noise.arrays
    grid = np.linspace(-9, 9, 181)
    for i in range(len(system)):
        w, y = system.state[i, 0], system.state[i, 3]
        known = [system.state[i, 1 + j] if not system.unknown[i, 1 + j] else None for j in (0, 1)]
        a, b = np.meshgrid(*(grid if at is None else [at] for at in known), indexing="ij")
        log = stats.norm.logpdf(a, first[0] + first[1] * w, sds[0])
        log += stats.norm.logpdf(b, second[0] + second[1] * w + second[2] * a, sds[1])
        eta = theta[0] + theta[1] * w + theta[2] * a + theta[3] * b / 2 + theta[4] * w * (a - 1)
        here = [j for j in range(q) if arrays.is_open[arrays.pattern[i], j] and system.unknown[i, 1 + j]]
        turn = arrays.turn[arrays.pattern[i]]
        among = [j for j in range(q) if arrays.is_open[arrays.pattern[i], j]]
        noise = np.linalg.inv((turn.T @ turn)[np.ix_(among, among)])
        inside = [among.index(j) for j in here]
        numbers = [a, b, eta]
        away = np.stack([arrays.u[i, j] - numbers[j] for j in here], axis=-1) if here else None
        if 2 in here:  # the response's own variance adds to that of its noise
            noise = noise.copy()
            noise[among.index(2), among.index(2)] += np.exp(2 * extra)
        if here:
            log += stats.multivariate_normal(cov=noise[np.ix_(inside, inside)]).logpdf(away).reshape(a.shape)
        if 2 not in here:
            log += response_log(family, y, eta, extra)
        yield (a, b), log


def response_log(family: int, y: float, eta: np.ndarray, extra: float) -> np.ndarray:
    if family == GAUSSIAN:
        return stats.norm.logpdf(y, eta, np.exp(extra))
    if family == PROBIT:
        return stats.norm.logcdf((2 * y - 1) * eta)
    if family == LOGIT:
        return -np.logaddexp(0, -(2 * y - 1) * eta)
    rate = np.exp(np.minimum(eta, 50.0))
    if family == POISSON:
        return y * eta - rate
    shape = np.exp(extra)
    return stats.nbinom.logpmf(y, shape, shape / (shape + rate))


def prior_log(system: System, theta: np.ndarray) -> float:
    priors = resolved_priors(system, Priors())
    family, total = system.interest.family, 0.0
    has = family in (GAUSSIAN, NEGATIVE_BINOMIAL)
    rest = theta[5 + has :]
    for prior, own in zip(priors, (rest[:2], rest[2:5], theta[:5]), strict=True):
        total += stats.norm.logpdf(own, prior.mean, prior.sd).sum()
    sds = [(rest[5], priors[0]), (rest[6], priors[1])] + (
        [(theta[5], priors[2])] if family == GAUSSIAN else []
    )
    for log_sd, prior in sds:
        total += stats.t(2).logpdf(np.exp(log_sd) / prior.residual_scale) + log_sd
    if family == NEGATIVE_BINOMIAL:
        total += stats.norm.logpdf(theta[5], 0, 2.0)
    return float(total)


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("patterns", [False, True])
def test_the_density_is_that_with_unknown_numbers_summed_over(family, patterns):
    noised = family == GAUSSIAN
    system = make(family, 8, 20 + family, noised_response=noised)
    if patterns:
        turn = system.noise.arrays.turn[0]
        system = with_patterns(system, np.linalg.inv(turn.T @ turn))
    posterior = MarginalPosterior(problem_of(system), resolved_priors(system, Priors()))
    posterior.family.pairs = 24
    rng = np.random.default_rng(1)
    start = np.zeros(len(posterior))
    start[:5] = COEFFICIENTS
    thetas = [start, start + 0.2 * rng.normal(size=len(start))]
    ours = posterior.value(thetas[1]) - posterior.value(thetas[0])
    assert ours == pytest.approx(brute(system, thetas[1]) - brute(system, thetas[0]), abs=1e-5)


def repeated(system: System, times_: int) -> System:
    """Return the same records several times over."""
    arrays = SimpleNamespace(**vars(system.noise.arrays))
    for name in ("u", "shift", "weight", "slope"):
        setattr(arrays, name, np.tile(getattr(arrays, name), (times_, 1)))
    arrays.pattern = np.tile(arrays.pattern, times_)
    noise = SimpleNamespace(columns=system.noise.columns, arrays=arrays, plain=True)
    state, unknown = np.tile(system.state, (times_, 1)), np.tile(system.unknown, (times_, 1))
    return replace(system, state=state, unknown=unknown, noise=noise)


@pytest.mark.parametrize("family", FAMILIES)
def test_true_values_have_their_own_law_given_the_parameters(family):
    system = make(family, 12, 50 + family, noised_response=family == GAUSSIAN)
    turn = system.noise.arrays.turn[0]
    system = with_patterns(system, np.linalg.inv(turn.T @ turn))
    extra = [1.3] if family in (GAUSSIAN, NEGATIVE_BINOMIAL) else []
    theta = np.concatenate([COEFFICIENTS, np.log(extra), [0.9, 0.4, 0.1, 0.0, 0.5], np.log([1.1, 0.9])])
    nuisance = np.array([0.9, 0.4, 1.1, 0.1, 0.0, 0.5, 0.9])
    names, values = (*COLUMNS, *(["extra"] if extra else [])), np.concatenate([COEFFICIENTS, extra])
    same = Draws(names, np.tile(values, (1, 10, 1)), nuisance=np.tile(nuisance, (1, 10, 1)))
    many, count = with_truths(repeated(system, 400), same, 10, np.random.default_rng(3)), 4000
    assert many.truths.shape[:3] == (1, 10, 4800)
    truths = many.truths[0].astype(float).reshape(count, 12, -1)
    for i, (numbers, log) in enumerate(grids(system, theta)):
        chance = np.exp(log - np.logaddexp.reduce(log.ravel()))
        for j in (0, 1):
            middle = (chance * numbers[j]).sum()
            sd = np.sqrt((chance * (numbers[j] - middle) ** 2).sum())
            assert abs(truths[:, i, j].mean() - middle) < 4.5 * sd / np.sqrt(count) + 1e-4
            assert truths[:, i, j].std() == pytest.approx(sd, rel=4.5 / np.sqrt(2 * count) + 0.01, abs=1e-4)
        product = (chance * numbers[0] * numbers[1]).sum()
        spread = np.sqrt((chance * (numbers[0] * numbers[1] - product) ** 2).sum())
        own = (truths[:, i, 0] * truths[:, i, 1]).mean()
        assert abs(own - product) < 4.5 * spread / np.sqrt(count) + 1e-3


def test_a_noised_response_is_drawn_with_the_rest():
    """Its true values have the residual sd about the linear predictor, its noise the covariance of the card."""
    system = make(GAUSSIAN, 4000, 60, noised_response=True)
    draws = marginal.draw(system, Priors(), ChainSettings(2, 60, keep_truths=True), np.random.SeedSequence(4))
    assert draws.truth_names == ("x1", "x2", "y")
    assert draws.truths.shape == (2, 60, 4000, 3)
    turn = system.noise.arrays.turn[0]
    for k in range(2):
        away = system.noise.arrays.u - draws.truths[k, -1]
        errors = np.cov(away.T) - np.linalg.inv(turn.T @ turn)
        assert np.abs(errors).max() < 5 * 0.45 / np.sqrt(4000)
        w, (x1, x2, y) = system.state[:, 0], draws.truths[k, -1].T
        own = draws.values[k, -1]
        eta = own[0] + own[1] * w + own[2] * x1 + own[3] * x2 / 2 + own[4] * w * (x1 - 1)
        assert np.std(y - eta) == pytest.approx(own[5], rel=5 / np.sqrt(2 * 4000))


@pytest.mark.parametrize("family", FAMILIES)
def test_gradients_are_differences_and_batches_are_values(family):
    system = make(family, 200, 30 + family, noised_response=family == GAUSSIAN)
    turn = system.noise.arrays.turn[0]
    posterior, theta = posterior_of(with_patterns(system, np.linalg.inv(turn.T @ turn)))
    posterior.family.pairs = 12
    theta = theta + 0.05 * np.random.default_rng(2).normal(size=len(theta))
    value, slope = posterior.gradient(theta)
    assert value == pytest.approx(posterior.value(theta), rel=1e-12)
    for k in range(len(theta)):
        step = 1e-4 * np.eye(len(theta))[k]
        ahead, behind = posterior.value(theta + step), posterior.value(theta - step)
        assert slope[k] == pytest.approx((ahead - behind) / 2e-4, rel=1e-4, abs=1e-3)
    many = theta + 0.05 * np.random.default_rng(3).normal(size=(5, len(theta)))
    assert np.allclose(log_densities(posterior, many), [posterior.value(each) for each in many], rtol=1e-11)


def test_what_has_no_density_is_never_accepted():
    posterior, theta = posterior_of(make(GAUSSIAN, 50, 3))
    bad = np.stack([theta, theta])
    bad[1, 2] = np.nan
    assert np.isfinite(log_densities(posterior, bad)).tolist() == [True, False]


@pytest.mark.parametrize("noised_response", [False, True])
def test_it_agrees_with_the_closed_form(noised_response):
    system = make(GAUSSIAN, 400, 4, noised_response=noised_response, interaction=False)
    one = conjugate.sample(system, Priors(), 4, 2000, np.random.default_rng(5))
    other = marginal.sample(system, Priors(), 4, 2000, np.random.default_rng(6))
    assert one.names == other.names
    assert one.nuisance_names == other.nuisance_names
    for mine, yours in ((one.values, other.values), (one.nuisance, other.nuisance)):
        sds = mine.std(axis=(0, 1))
        # 8,000 draws, at least half of them effective: 4.5 standard errors of a difference
        assert np.all(
            np.abs(mine.mean(axis=(0, 1)) - yours.mean(axis=(0, 1))) < 4.5 * sds * np.sqrt(2 / 4000)
        )
        assert np.allclose(sds, yours.std(axis=(0, 1)), rtol=4.5 * np.sqrt(1 / 4000))


@pytest.mark.parametrize("family", FAMILIES)
def test_the_truth_is_within_the_posterior(family):
    system = make(family, 1200, 40 + family)
    draws = marginal.sample(system, Priors(), 2, 400, np.random.default_rng(7))
    scale = 0.6 if family in (POISSON, NEGATIVE_BINOMIAL) else 1.0
    away = (draws.values.mean(axis=(0, 1))[:5] - scale * COEFFICIENTS) / draws.values.std(axis=(0, 1))[:5]
    assert np.all(np.abs(away) < 4.5)
    assert min(draws.info["acceptance"]) > 0.5
    assert draws.info["error of the log likelihood"] < 1e-3
    if family == NEGATIVE_BINOMIAL:
        assert draws.names[-1] == "shape"
        assert abs(draws.values[:, :, -1].mean() - 2.0) < 4.5 * draws.values[:, :, -1].std()


def test_the_curvature_is_that_of_the_posterior_at_its_mode():
    posterior, _ = posterior_of(make(LOGIT, 400, 8))
    found = fit(posterior)
    assert np.abs(found.root.T @ posterior.gradient(found.mode)[1]).max() < 0.1
    low = posterior.value(found.mode)
    for k in range(len(found.mode)):
        drop = low - 0.5 * sum(posterior.value(found.mode + s * 0.5 * found.root[:, k]) for s in (1, -1))
        assert drop == pytest.approx(0.125, rel=0.15)


def test_same_generator_same_draws():
    system = make(LOGIT, 100, 9)
    first, second = (marginal.sample(system, Priors(), 2, 50, np.random.default_rng(1)) for _ in range(2))
    assert np.array_equal(first.values, second.values)
    assert not np.array_equal(first.values[0], first.values[1])


def test_it_says_why_it_does_not_apply():
    good = make(LOGIT, 40, 10)
    assert marginal.applies(good) is None
    interest = good.interest
    assert "ordered" in marginal.applies(
        replace(good, equations=(*good.equations[:-1], replace(interest, family=ORDERED)))
    )
    effects = replace(interest, effects=(Effects(0, ("Intercept",), (ONE,)),))
    factor = Factor("g", np.zeros(40, np.int64), ("a",))
    grouped = replace(good, equations=(*good.equations[:-1], effects), factors=(factor,))
    assert "group effects" in marginal.applies(grouped)
    curved = replace(interest, names=("log",), columns=(Unary("log", Ref("x1")),))
    assert "not linear" in marginal.applies(replace(good, equations=(*good.equations[:-1], curved)))
    categories = tuple(Variable(v.name, ("a", "b") if v.name == "x2" else ()) for v in good.variables)
    assert "category" in marginal.applies(replace(good, variables=categories))
    busy = replace(good)
    busy.noise.plain = False
    assert "plainly" in marginal.applies(busy)


def test_a_column_on_the_log_scale_is_linear_in_its_log():
    good = make(LOGIT, 40, 11)
    variables = tuple(Variable(v.name, log_shift=1.0 if v.name == "x1" else None) for v in good.variables)
    node = Unary("log", Binary("add", Ref("x1"), Number(1.0)))
    columns = (ONE, Ref("w1"), node, Ref("x2"), Ref("w1"))
    covariates = tuple(
        replace(each, columns=tuple(node if c == Ref("x1") else c for c in each.columns))
        for each in good.equations[:-1]
    )
    logs = replace(
        good, variables=variables, equations=(*covariates, replace(good.interest, columns=columns))
    )
    assert marginal.applies(logs) is None
    assert "not linear" in marginal.applies(replace(good, variables=variables))

"""The sampler that sums unknown categories over, against sums written out, Gibbs, and draws of the prior."""

from __future__ import annotations

import warnings
from dataclasses import replace
from itertools import product

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from scipy.special import log_ndtr, ndtr

import maskwell as mw
from maskwell.analysis.expressions import ONE, Binary, Level, Number, Ref, Unary
from maskwell.analysis.formulas.expression_trees import evaluate, on_state
from maskwell.analysis.priors import Priors
from maskwell.analysis.results.draws import Draws
from maskwell.analysis.samplers import enumeration
from maskwell.analysis.samplers.chains import ChainSettings, run_gibbs
from maskwell.analysis.samplers.enumeration.design import problem_of, resolved_priors
from maskwell.analysis.samplers.enumeration.mode import modes_of
from maskwell.analysis.samplers.enumeration.posterior import EnumeratedPosterior
from maskwell.analysis.samplers.enumeration.sampler import chains_of
from maskwell.analysis.system import (
    GAUSSIAN,
    LOGIT,
    NEGATIVE_BINOMIAL,
    ORDERED,
    POISSON,
    PROBIT,
    Effects,
    Equation,
    Factor,
    System,
    Variable,
)

from .enumerated_systems import drawn_from_the_prior, make, misclassified, sticks, with_b_known

FAMILIES = (GAUSSIAN, PROBIT, LOGIT, ORDERED, POISSON, NEGATIVE_BINOMIAL)


def posterior_of(system: System, *, counting: bool = True) -> EnumeratedPosterior:
    assert enumeration.applies(system) is None
    return EnumeratedPosterior(problem_of(system, counting=counting), resolved_priors(system, Priors()))


def brute(system: System, theta: np.ndarray) -> np.ndarray:
    """The log of every combination of both categories (and of a hidden response), records x combinations."""
    family, size = system.interest.family, len(system.interest.names)
    extra = {GAUSSIAN: 1, NEGATIVE_BINOMIAL: 1, ORDERED: 3}.get(family, 0)
    parts = np.split(theta, np.cumsum([size, extra, 2, 2]))
    answer = system.interest.response
    hidden = system.unknown[:, answer].any()
    out = []
    for a, b, y in product(range(3), range(2), range(2 if hidden else 1)):
        state = system.state.copy()
        state[:, 1], state[:, 2] = a, b
        if hidden:
            state[system.unknown[:, answer], answer] = y
        values = {variable.name: state[:, j] for j, variable in enumerate(system.variables)}
        total = np.zeros(len(system))
        for j in np.flatnonzero(system.unknown.any(axis=0)):
            codes, here = state[:, j].astype(int), system.unknown[:, j]
            total += np.where(here, system.tables[j][np.arange(len(system)), codes], 0.0)
            total[~here & (state[:, j] != system.state[:, j])] = -np.inf
        if hidden and y:  # where the response is known one of the two combinations is the other
            total[~system.unknown[:, answer]] = -np.inf
        for equation, own in zip(system.equations[:-1], parts[2:], strict=True):
            eta = predictor(system, equation, own, values)
            code = state[:, equation.response]
            total += np.where(code == equation.stick, log_ndtr(eta), 0.0)
            total += np.where(code > equation.stick, log_ndtr(-eta), 0.0)
        eta = predictor(system, system.interest, parts[0], values)
        total += np.where(system.counted, response_log(family, state[:, answer], eta, parts[1]), 0.0)
        out.append(total)
    return np.array(out).T


def predictor(system: System, equation: Equation, own: np.ndarray, values: dict) -> np.ndarray:
    columns = np.stack(
        [evaluate(on_state(node, system.variables), values) for node in equation.columns], axis=1
    )
    eta = (columns - np.array(equation.centres or [0.0])) @ own
    return eta if equation.offset is None else eta + evaluate(equation.offset, values)


def response_log(family: int, y: np.ndarray, eta: np.ndarray, extra: np.ndarray) -> np.ndarray:
    if family == GAUSSIAN:
        return stats.norm.logpdf(y, eta, np.exp(extra[0]))
    if family == PROBIT:
        return log_ndtr((2 * y - 1) * eta)
    if family == LOGIT:
        return -np.logaddexp(0, -(2 * y - 1) * eta)
    if family == ORDERED:
        cuts = np.concatenate([[-np.inf], np.cumsum([extra[0], *np.exp(extra[1:])]), [np.inf]])
        return np.log(ndtr(cuts[y.astype(int) + 1] - eta) - ndtr(cuts[y.astype(int)] - eta))
    if family == POISSON:
        return stats.poisson.logpmf(y, np.exp(eta))
    shape = np.exp(extra[0])
    return stats.nbinom.logpmf(y, shape, shape / (shape + np.exp(eta)))


def prior_log(system: System, theta: np.ndarray) -> float:
    *covariates, interest = resolved_priors(system, Priors())
    family, size = system.interest.family, len(interest.mean)
    extra = {GAUSSIAN: 1, NEGATIVE_BINOMIAL: 1, ORDERED: 3}.get(family, 0)
    own, more, rest = np.split(theta, [size, size + extra])
    total = stats.norm.logpdf(own, interest.mean, interest.sd).sum()
    for prior, part in zip(covariates, np.split(rest, [2, 4]), strict=True):
        total += stats.norm.logpdf(part, prior.mean, prior.sd).sum()
    if family == GAUSSIAN:
        total += stats.t(2).logpdf(np.exp(more[0]) / interest.residual_scale) + more[0]
    if family == NEGATIVE_BINOMIAL:
        total += stats.norm.logpdf(more[0], 0, 2.0)
    if family == ORDERED:
        total += stats.norm.logpdf(np.cumsum([more[0], *np.exp(more[1:])]), 0, 10.0).sum() + more[1:].sum()
    return float(total)


def some_thetas(posterior: EnumeratedPosterior, count: int, seed: int) -> np.ndarray:
    return 0.4 * np.random.default_rng(seed).normal(size=(count, len(posterior)))


@pytest.mark.parametrize(
    ("family", "hidden"), [*((family, False) for family in FAMILIES), (PROBIT, True), (LOGIT, True)]
)
def test_the_density_is_that_with_unknown_categories_summed_over(family, hidden):
    system = (misclassified if hidden else make)(family, 60, 20 + family)
    if family == POISSON:
        offset = Binary("mul", Number(0.3), Ref("w"))
        system = replace(system, equations=(*system.equations[:-1], replace(system.interest, offset=offset)))
    posterior = posterior_of(system)
    thetas = some_thetas(posterior, 3, 1)
    ours = posterior.log_densities(thetas)
    theirs = [
        np.logaddexp.reduce(brute(system, each), axis=1).sum() + prior_log(system, each) for each in thetas
    ]
    assert np.diff(ours) == pytest.approx(np.diff(theirs), rel=1e-9)


@pytest.mark.parametrize("family", FAMILIES)
def test_gradients_are_differences_and_batches_are_values(family):
    posterior = posterior_of(make(family, 300, 30 + family))
    theta = some_thetas(posterior, 1, 2)[0]
    value, slope = posterior.gradient(theta)
    assert value == pytest.approx(posterior.log_densities(theta[None])[0], rel=1e-12)
    steps = 1e-5 * np.eye(len(theta))
    numeric = (posterior.log_densities(theta + steps) - posterior.log_densities(theta - steps)) / 2e-5
    assert slope == pytest.approx(numeric, rel=1e-5, abs=1e-4)


@pytest.mark.parametrize("family", [PROBIT, POISSON])
def test_records_alike_are_counted_once(family):
    system = make(family, 2000, 40, discrete=True)
    one, other = posterior_of(system), posterior_of(system, counting=False)
    assert one.problem.records.known.shape[1] < 500
    thetas = some_thetas(one, 4, 3)
    assert one.log_densities(thetas) == pytest.approx(other.log_densities(thetas), rel=1e-12)


def test_what_has_no_density_is_never_accepted():
    posterior = posterior_of(make(GAUSSIAN, 50, 3))
    thetas = some_thetas(posterior, 3, 4)
    thetas[1, 2], thetas[2, 6] = np.nan, 1e5
    assert np.isfinite(posterior.log_densities(thetas)).tolist() == [True, False, False]


def agree(one, other, *, limit: float) -> None:
    """Names are the same; means within their Monte Carlo errors, sds too."""
    from arviz_stats.base import array_stats

    assert one.names == other.names
    assert one.nuisance_names == other.nuisance_names
    both = [np.concatenate([each.values, each.nuisance], axis=2) for each in (one, other)]
    for k in range(both[0].shape[2]):
        means, errors, sds, counts = [], [], [], []
        for values in both:
            own = values[:, :, k]
            means.append(own.mean())
            sds.append(own.std())
            counts.append(float(array_stats.ess(own, chain_axis=0, draw_axis=1, method="mean")))
            spread = float(array_stats.ess((own - own.mean()) ** 2, chain_axis=0, draw_axis=1, method="mean"))
            errors.append((own.std() / np.sqrt(counts[-1]), 1.0 / np.sqrt(2 * spread)))
        (first, wide), (second, wider) = errors
        assert abs(means[0] - means[1]) < limit * np.hypot(first, second)
        assert abs(np.log(sds[0] / sds[1])) < limit * 1.3 * np.hypot(wide, wider)  # tails a little heavier


@pytest.mark.parametrize("family", FAMILIES)
def test_it_agrees_with_gibbs(family):
    system = with_b_known(make(family, 300, 80 + family, kept=0.95))
    one = enumeration.sample(system, Priors(), 2, 1200, np.random.default_rng(5))
    other = run_gibbs(system, Priors(), ChainSettings(2, 250, 80), np.random.SeedSequence(6))
    agree(one, other, limit=4.5)


def test_two_categories_agree_with_gibbs():
    system = make(GAUSSIAN, 300, 60, kept=0.9)
    one = enumeration.sample(system, Priors(), 2, 1200, np.random.default_rng(5))
    other = run_gibbs(system, Priors(), ChainSettings(2, 300, 80), np.random.SeedSequence(6))
    assert len(one.nuisance_names) == 8
    agree(one, other, limit=4.5)


def test_a_misclassified_response_agrees_with_gibbs():
    system = with_b_known(misclassified(PROBIT, 600, 62))
    one = enumeration.sample(system, Priors(), 2, 1200, np.random.default_rng(5))
    other = run_gibbs(system, Priors(), ChainSettings(2, 250, 80), np.random.SeedSequence(6))
    agree(one, other, limit=4.5)


def test_the_mode_has_no_slope_and_its_curvature_fits():
    posterior = posterior_of(make(LOGIT, 2000, 8, kept=0.95))
    (found,) = modes_of(posterior)
    assert np.abs(found.root.T @ posterior.gradient(found.mode)[1]).max() < 0.1
    top = posterior.gradient(found.mode)[0]
    for k in range(len(found.mode)):
        sides = found.mode + np.array([[0.5], [-0.5]]) * found.root[:, k]
        assert top - posterior.log_densities(sides).mean() == pytest.approx(0.125, rel=0.15)


def test_true_categories_are_drawn_given_the_parameters():
    system = misclassified(LOGIT, 30, 70)
    many = 300
    wide = replace(
        system,
        state=np.tile(system.state, (many, 1)),
        unknown=np.tile(system.unknown, (many, 1)),
        tables={j: np.tile(table, (many, 1)) for j, table in system.tables.items()},
        counted=np.tile(system.counted, many),
    )
    from maskwell.analysis.samplers.enumeration.true_categories import true_codes

    posterior = posterior_of(wide, counting=False)
    theta = some_thetas(posterior, 1, 5)
    rng = np.random.default_rng(6)
    drawn = [true_codes(posterior.problem, posterior.prepared(theta), rng) for _ in range(10)]
    codes = np.stack(drawn).reshape(10 * many, 30, 4)
    assert np.array_equal(codes[:, :, 0], np.tile(system.state[:, 0], (10 * many, 1)))
    logs = brute(system, theta[0])
    chances = np.exp(logs - np.logaddexp.reduce(logs, axis=1, keepdims=True))
    hidden = system.unknown[:, 3]
    for c, (a, b, y) in enumerate(product(range(3), range(2), range(2))):
        found = ((codes[:, :, 1] == a) & (codes[:, :, 2] == b) & (codes[:, :, 3] == y)).mean(axis=0)
        error = np.sqrt(chances[:, c] * (1 - chances[:, c]) / (10 * many))
        assert np.all(np.abs(found - chances[:, c])[hidden] <= 4.8 * error[hidden] + 1e-9)


def test_truths_are_kept_on_request():
    system = make(GAUSSIAN, 300, 71, kept=0.95)
    running = ChainSettings(2, 100, keep_truths=True)
    draws = enumeration.draw(system, Priors(), running, np.random.SeedSequence(4))
    assert draws.truth_names == ("a", "b")
    assert draws.truths.shape == (2, 100, 300, 2)
    known = ~system.unknown[:, 1]
    assert np.all(draws.truths[:, :, known, 0] == system.state[known, 1])
    noised = (np.arange(300) % 9 > 0) & ~known
    assert 0.9 < (draws.truths[:, :, noised, 0] == system.state[noised, 1]).mean() < 1.0


def test_same_generator_same_draws():
    system = make(LOGIT, 400, 9, kept=0.95)
    first, second = (enumeration.sample(system, Priors(), 2, 50, np.random.default_rng(1)) for _ in range(2))
    assert np.array_equal(first.values, second.values)
    assert not np.array_equal(first.values[0], first.values[1])


def test_noise_that_leaves_no_signal_is_left_to_gibbs():
    """Nothing is known of `a`: its levels may change places."""
    system = make(GAUSSIAN, 150, 10)
    unknown = system.unknown.copy()
    unknown[:, 1] = True
    lost = replace(system, unknown=unknown, tables={1: np.zeros((150, 3)), 2: system.tables[2]})
    assert enumeration.sample(lost, Priors(), 2, 100, np.random.default_rng(1)) is None


def test_it_says_why_it_does_not_apply():
    good = make(LOGIT, 40, 10)
    assert enumeration.applies(good) is None
    interest, before = good.interest, good.equations[:-1]

    def why(**changes: object) -> str:
        return str(enumeration.applies(replace(good, equations=(*before, replace(interest, **changes)))))

    assert "does not come apart" in why(names=("sum",), columns=(Binary("add", Ref("w"), Level("a", 1)),))
    assert why(names=("exp",), columns=(Unary("exp", Ref("b")),)) == "None"
    assert "offset" in why(offset=Ref("b"))
    assert "several levels" in enumeration.applies(
        replace(misclassified(LOGIT, 40, 10), equations=(*before, replace(interest, family=ORDERED)))
    )
    grouped = replace(interest, effects=(Effects(0, ("Intercept",), (ONE,)),))
    factor = Factor("g", np.zeros(40, np.int64), ("a",))
    assert "group effects" in enumeration.applies(
        replace(good, equations=(*before, grouped), factors=(factor,))
    )
    number = good.unknown.copy()
    number[3, 0] = True
    assert "unknown number" in enumeration.applies(replace(good, unknown=number))
    assert "no predictor" in enumeration.applies(
        replace(good, unknown=0 * good.unknown, equations=(interest,))
    )
    assert "sequential probits" in enumeration.applies(replace(good, equations=(*before[:-1], interest)))
    many = (good.variables[0], Variable("a", tuple(map(str, range(33)))), *good.variables[2:])
    every = [*sticks(many, 1, {"Intercept": ONE}), before[-1], interest]
    assert "64 combinations" in enumeration.applies(replace(good, variables=many, equations=tuple(every)))


def test_fit_takes_it_and_names_what_gibbs_names():
    """A noised code that was clamped, and a category changed at random, together."""
    rng, n = np.random.default_rng(12), 400
    frame = pd.DataFrame({"v": rng.normal(size=n), "g": rng.choice(["f", "m"], n)})
    code = np.digitize(0.5 * frame["v"] + rng.normal(size=n), [-0.5, 0.6])
    frame["c"] = np.array(["low", "middle", "top"])[code]
    frame["y"] = 0.5 * frame["v"] + code + (frame["g"] == "m") + rng.normal(size=n)
    plan = mw.Chain((mw.CodeNoise(("c",), variance=0.1), mw.Pram(("g",), stay=0.9)))
    release = mw.apply(plan, mw.Table.from_frame(frame), seed=1).release

    def fitted(**options: object) -> Draws:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", mw.MaskwellWarning)
            return mw.fit("y ~ v*c + g", release, naive=False, seed=1, **options).draws

    one, other = fitted(draws=400), fitted(draws=10, warmup=5, sampler="gibbs")
    assert "categories summed over" in one.sampler
    assert "Gibbs" in other.sampler
    assert one.names == other.names
    assert one.nuisance_names == other.nuisance_names
    named = fitted(draws=400, sampler="enumerated")
    assert np.array_equal(named.values, one.values)


@pytest.mark.parametrize(("way", "files", "bins"), [("independence", 100, 6), ("Hamiltonian", 40, 4)])
def test_ranks_of_the_truth_are_uniform(way, files, bins, monkeypatch):
    """Simulation-based calibration (Talts and others 2018): the truth is anywhere among draws given its own file."""
    if way == "Hamiltonian":
        monkeypatch.setattr("maskwell.analysis.samplers.enumeration.sampler.tune_all", lambda *_: None)
        monkeypatch.setattr("maskwell.analysis.samplers.enumeration.hmc.WARM_UP", 50)
    every = 8 if way == "independence" else 3
    rng, ranks = np.random.default_rng(11), []
    for _ in range(files):
        system, priors, truth = drawn_from_the_prior(100, rng)
        posterior = EnumeratedPosterior(problem_of(system), priors)
        found = chains_of(posterior, ChainSettings(1, 31 * every, cores=1), rng)
        if found is not None and found.way == way:  # which depends on the file, not on the truth behind it
            ranks.append((found.thetas[0, every - 1 :: every] < truth).sum(axis=0))
    assert len(ranks) > 0.6 * files
    for own in np.array(ranks).T:
        counts = np.bincount(own * bins // 32, minlength=bins)
        assert stats.chisquare(counts).pvalue > 1e-4 / len(truth)


def test_hamiltonian_chains_agree_with_independence_chains(monkeypatch):
    system = make(GAUSSIAN, 300, 90, kept=0.95)
    one = enumeration.sample(system, Priors(), 2, 1200, np.random.default_rng(5))
    monkeypatch.setattr("maskwell.analysis.samplers.enumeration.sampler.tune_all", lambda *_: None)
    other = enumeration.sample(system, Priors(), 2, 500, np.random.default_rng(5))
    assert "independence" in one.sampler
    assert "Hamiltonian" in other.sampler
    agree(one, other, limit=4.5)

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from maskwell.analysis.expressions import ONE, Binary, Number, Ref
from maskwell.analysis.priors import Priors
from maskwell.analysis.samplers import conjugate, marginal
from maskwell.analysis.samplers.chains import ChainSettings
from maskwell.analysis.samplers.conjugate.affine import released_numbers
from maskwell.analysis.samplers.conjugate.equation_order import form_of
from maskwell.analysis.samplers.conjugate.reduced_form import (
    Conjugate,
    draw_reduced,
    lower_roots,
    reduce,
    regressions,
    triangle,
)
from maskwell.analysis.samplers.conjugate.sampler import log_weights
from maskwell.analysis.system import LOGIT, Variable

from .conjugate_systems import normal_noise, system_of, times

PLAIN = {"Intercept": ONE, "w1": Ref("w1"), "x1": Ref("x1"), "x2": Ref("x2")}


def make(records: int, seed: int, noise: float = 0.25):
    """Clean w, numbers x1 and x2, y = 1 + 0.5 w + x1 - 0.7 x2 + e; noise of `noise` times their covariance."""
    rng = np.random.default_rng(seed)
    w = rng.normal(size=(records, 1))
    x = np.column_stack([5 + 0.5 * w[:, 0] + rng.normal(size=records), np.zeros(records)])
    x[:, 1] = 0.4 * x[:, 0] + rng.normal(size=records)
    y = 1 + 0.5 * w[:, 0] + x[:, 0] - 0.7 * x[:, 1] + rng.normal(size=records)
    covariance = noise * np.cov(x.T)
    u = x + rng.normal(size=x.shape) @ np.linalg.cholesky(covariance).T
    return w, u, y, covariance, x


def test_without_noise_the_posterior_is_that_of_least_squares():
    w, _, y, _, x = make(60, 1)
    system = system_of(w, x, y, 1e-12 * np.eye(2))
    assert conjugate.applies(system) is None
    draws = conjugate.sample(system, Conjugate(), 4, 5000, np.random.default_rng(2))
    design = np.column_stack([np.ones(60), w, x])
    inverse = np.linalg.inv(design.T @ design)
    middle = inverse @ design.T @ y
    rest, df = ((y - design @ middle) ** 2).sum(), 60 - 4
    values = draws.values.reshape(-1, 5)
    scaled = (values[:, :4] - middle) / np.sqrt(np.diag(inverse) * rest / df)
    for k in range(4):
        assert stats.kstest(scaled[:, k], stats.t(df).cdf).pvalue > 1e-4
    assert stats.kstest(rest / values[:, 4] ** 2, stats.chi2(df).cdf).pvalue > 1e-4
    assert draws.names == ("Intercept", "w1", "x1", "x2", "sigma")


def test_the_variance_under_noise_is_a_truncated_inverse_gamma():
    """A noised response alone: T = s^2 + N has density 1 / T times its likelihood, cut off at N."""
    rng = np.random.default_rng(3)
    y, noise = rng.normal(2.0, 1.0, size=40) + rng.normal(0, 1.2, size=40), 1.44
    reduced = reduce(np.ones((40, 1)), y[:, None], 40, Conjugate())
    found = draw_reduced(reduced, np.array([[noise]]), 20_000, rng)
    law = stats.invgamma((40 - 1) / 2, scale=((y - y.mean()) ** 2).sum() / 2)
    below = law.cdf(noise)
    totals = found.roots[:, 0, 0] ** 2 + noise
    assert stats.kstest(totals, lambda t: (law.cdf(t) - below) / (1 - below)).pvalue > 1e-4
    assert found.acceptance == pytest.approx(1 - below, abs=4 * np.sqrt(below * (1 - below) / 20_000))
    assert np.allclose(np.exp(found.log_det), totals)


def gibbs(w, u, y, covariance, sweeps: int, rng) -> np.ndarray:
    """A plain sampler of y ~ 1 + w + x, x ~ 1 + w, u = x + noise: coefficients and sds flat."""
    n, x, beta, s2, t2 = len(y), u.copy(), np.zeros(3), 1.0, 1.0
    base, out = np.column_stack([np.ones(n), w]), []
    alpha = np.zeros(2)
    for _ in range(sweeps):
        precision = 1 / covariance + beta[2] ** 2 / s2 + 1 / t2
        pull = u / covariance + beta[2] * (y - base @ beta[:2]) / s2 + base @ alpha / t2
        x = pull / precision + rng.normal(size=n) / np.sqrt(precision)
        for target, design, which in ((x, base, 0), (y, np.column_stack([base, x]), 1)):
            inverse = np.linalg.inv(design.T @ design)
            middle = inverse @ design.T @ target
            rest = ((target - design @ middle) ** 2).sum()
            # sd flat, as a half-t law far wider than the data: s^2 has density 1 / s
            variance = rest / rng.chisquare(n - design.shape[1] - 1)
            own = middle + np.linalg.cholesky(inverse * variance) @ rng.normal(size=design.shape[1])
            if which == 0:
                alpha, t2 = own, variance
            else:
                beta, s2 = own, variance
        out.append([*beta, np.sqrt(s2), *alpha, np.sqrt(t2)])
    return np.array(out[sweeps // 10 :])


def test_it_agrees_with_a_plain_gibbs_sampler():
    w, u, y, covariance, _ = make(150, 4, noise=0.3)
    rng = np.random.default_rng(5)
    exact = gibbs(w[:, 0], u[:, 0], y, covariance[0, 0], 6000, rng)
    system = system_of(w, u[:, :1], y, covariance[:1, :1])
    wide = Priors(coefficient_sd=1e4, sd_scale=1e4)
    draws = conjugate.sample(system, wide, 4, 4000, rng)
    found = np.concatenate([draws.values, draws.nuisance], axis=2).reshape(-1, 7)
    batches = exact[: len(exact) // 20 * 20].reshape(20, -1, 7).mean(axis=1)
    error = np.sqrt(batches.var(axis=0, ddof=1) / 20 + found.var(axis=0) / 8000)
    assert np.all(np.abs(found.mean(axis=0) - exact.mean(axis=0)) < 4.5 * error)
    assert np.allclose(found.std(axis=0), exact.std(axis=0), rtol=0.12)
    assert draws.nuisance_names == ("x1 ~ Intercept", "x1 ~ w1", "x1 ~ sigma")


def test_kims_noise_on_response_and_predictor_gives_a_slope_of_1():
    """A correction for the variance of the predictor's noise alone gives (1 + c^2) = 1.25 instead."""
    rng = np.random.default_rng(6)
    n = 40_000
    x = rng.normal(3, 1, size=n)
    y = x + rng.normal(size=n)
    both = np.column_stack([x, y])
    covariance = 0.25 * np.array([[1.0, 1.0], [1.0, 2.0]])
    u = both + rng.normal(size=both.shape) @ np.linalg.cholesky(covariance).T
    empty = np.empty((n, 0))
    right = conjugate.sample(system_of(empty, u[:, :1], u[:, 1], covariance), Priors(), 2, 500, rng)
    wrong = conjugate.sample(system_of(empty, u[:, :1], u[:, 1], covariance[:1, :1]), Priors(), 2, 500, rng)
    slopes = [draws.values[:, :, 1] for draws in (right, wrong)]
    assert right.names == ("Intercept", "x1", "sigma")
    assert abs(slopes[0].mean() - 1.0) < 4 * slopes[0].std()
    assert abs(slopes[1].mean() - 1.25) < 4 * slopes[1].std()
    assert abs(right.values[:, :, 2].mean() - 1.0) < 4 * right.values[:, :, 2].std()


def test_slopes_and_offsets_of_the_noise_and_units_of_columns_are_taken_off():
    w, u, y, covariance, _ = make(400, 7)
    plain = conjugate.sample(system_of(w, u, y, covariance), Conjugate(), 1, 2000, np.random.default_rng(8))
    shrunk = system_of(w, 0.8 * u + 3, y, 0.64 * covariance, slope=0.8, offset=np.full(2, 3.0))
    same = conjugate.sample(shrunk, Conjugate(), 1, 2000, np.random.default_rng(8))
    assert np.allclose(same.values, plain.values, rtol=1e-6, atol=1e-6)
    scaled = PLAIN | {"x1": Binary("div", Binary("sub", Ref("x1"), Number(5.0)), Number(2.0))}
    other = conjugate.sample(
        system_of(w, u, y, covariance, scaled), Conjugate(), 1, 2000, np.random.default_rng(8)
    )
    assert np.allclose(other.values[:, :, 2], 2 * plain.values[:, :, 2], rtol=1e-8)
    assert np.allclose(other.values[:, :, 0], plain.values[:, :, 0] + 5 * plain.values[:, :, 2], rtol=1e-6)


def test_named_priors_count_as_they_do_in_the_marginal_sampler():
    w, u, y, covariance, _ = make(300, 9)
    priors = Priors(coefficients={"x1": (0.9, 0.1)})
    system = system_of(w, u, y, covariance)
    one = conjugate.sample(system, priors, 4, 3000, np.random.default_rng(10))
    other = marginal.sample(system, priors, 4, 3000, np.random.default_rng(11))
    flat = conjugate.sample(system, Priors(), 4, 3000, np.random.default_rng(12))
    sds = one.values.std(axis=(0, 1))
    assert np.all(np.abs(one.values.mean(axis=(0, 1)) - other.values.mean(axis=(0, 1))) < 0.08 * sds)
    assert np.allclose(sds, other.values.std(axis=(0, 1)), rtol=0.06)
    assert sds[2] < 0.9 * flat.values.std(axis=(0, 1))[2]


def prior_draw(prior: Conjugate, noise: np.ndarray, rng) -> tuple[np.ndarray, np.ndarray]:
    """B and T from the conjugate prior, T - N positive definite."""
    while True:
        total = stats.invwishart(prior.df, prior.scale).rvs(random_state=rng)
        if np.linalg.eigvalsh(total - noise)[0] > 0:
            break
    spread = np.linalg.inv(np.linalg.cholesky(prior.precision)).T
    root = np.linalg.cholesky(total)
    return spread @ rng.normal(size=(len(spread), len(root))) @ root.T, total


def test_it_is_calibrated_under_a_proper_prior():
    """Simulation-based calibration: ranks of the truth among its own posterior's draws are uniform."""
    rng = np.random.default_rng(13)
    noise = np.array([[0.4, 0.2], [0.2, 0.5]])
    prior = Conjugate(df=6.0, scale=4.0 * np.eye(2), precision=np.array([[0.5, 0.1], [0.1, 0.8]]))
    ranks = []
    for _ in range(400):
        truth, total = prior_draw(prior, noise, rng)
        w = np.column_stack([np.ones(15), rng.normal(size=15)])
        y = w @ truth + rng.normal(size=(15, 2)) @ np.linalg.cholesky(total).T
        found = draw_reduced(reduce(w, y, 15, prior), noise, 31, rng)
        signal = np.linalg.cholesky(total - noise)
        slopes, own = regressions(found.roots, 1)[:, 0], signal[1, 0] / signal[0, 0]
        pairs = [
            (slopes, own),
            (found.roots[:, 1, 1], signal[1, 1]),
            (found.coefficients[:, 1, 1], truth[1, 1]),
        ]
        pairs += [
            (
                found.coefficients[:, 0, 1] - slopes * found.coefficients[:, 0, 0],
                truth[0, 1] - own * truth[0, 0],
            )
        ]
        ranks.append([int((each < value).sum()) for each, value in pairs])
    for column in np.array(ranks).T:
        counts = np.bincount(column // 4, minlength=8)
        assert stats.chisquare(counts).pvalue > 1e-3 / 4


def test_blocks_of_records_give_the_triangle_of_all():
    rng = np.random.default_rng(14)
    whole = rng.normal(size=(1000, 4)) + [1e6, 0, 0, 3]
    once, parts = triangle([whole]), triangle(np.array_split(whole, 7))
    assert np.allclose(np.abs(once), np.abs(parts), rtol=1e-8, atol=1e-6)


def test_roots_tell_which_matrices_are_positive_definite():
    rng = np.random.default_rng(15)
    matrices = rng.normal(size=(500, 3, 3))
    matrices = matrices + matrices.transpose(0, 2, 1) + 2 * np.eye(3)
    roots, good = lower_roots(matrices)
    assert np.array_equal(good, np.linalg.eigvalsh(matrices)[:, 0] > 0)
    assert 0 < good.sum() < 500
    assert np.allclose(roots[good] @ roots[good].transpose(0, 2, 1), matrices[good])


def test_it_gives_way_where_noise_drowns_the_signal():
    rng = np.random.default_rng(16)
    u, y = rng.normal(size=(200, 3)), rng.normal(size=200)
    system = system_of(np.empty((200, 0)), u, y, 1.5 * np.eye(3))
    assert conjugate.applies(system) is None
    assert conjugate.sample(system, Priors(), 2, 100, rng) is None


def test_it_says_why_it_does_not_apply():
    w, u, y, covariance, _ = make(50, 17)
    good = system_of(w, u, y, covariance)
    assert conjugate.applies(good) is None
    products = PLAIN | {"x1:w1": times(Ref("x1"), Ref("w1"))}
    assert "products" in conjugate.applies(system_of(w, u, y, covariance, products))
    squares = PLAIN | {"x1^2": times(Ref("x1"), Ref("x1"))}
    assert "not linear" in conjugate.applies(system_of(w, u, y, covariance, squares))
    no_intercept = {name: node for name, node in PLAIN.items() if name != "Intercept"}
    assert "same clean columns" in conjugate.applies(system_of(w, u, y, covariance, no_intercept))
    assert "gaussian" in conjugate.applies(system_of(w, u, y, covariance, family=LOGIT))
    assert "too few" in conjugate.applies(system_of(w[:5], u[:5], y[:5], covariance))
    some = np.zeros((50, 4), bool)
    some[:25, 1:3] = True
    assert "every record" in conjugate.applies(replace(good, unknown=some))
    logs = tuple(Variable(v.name, log_shift=0.0 if v.name == "x1" else None) for v in good.variables)
    assert "not linear" in conjugate.applies(replace(good, variables=logs))
    bounds = np.full(good.state.shape, -np.inf)
    bounds[:, 1] = 0.0
    assert "bounded" in conjugate.applies(replace(good, lower=bounds))
    assert "missing" in conjugate.applies(replace(good, counted=np.arange(50) > 3))


def test_patterns_of_noise_are_left_to_other_samplers():
    w, u, y, covariance, _ = make(50, 18)
    good = system_of(w, u, y, covariance)
    pattern = (np.arange(50) > 20).astype(np.int64)
    noise = normal_noise(u, [covariance, 2 * covariance], (1, 2), pattern=pattern)
    assert "every record" in conjugate.applies(replace(good, noise=noise))
    assert marginal.applies(replace(good, noise=noise)) is None


def test_a_noised_response_alone_is_closed_too_and_its_true_values_are_drawn():
    rng = np.random.default_rng(19)
    w = rng.normal(size=(800, 1))
    y = 1 + w[:, 0] + rng.normal(size=800)
    released = y + 0.7 * rng.normal(size=800)
    system = system_of(w, np.empty((800, 0)), released, np.array([[0.49]]))
    assert conjugate.applies(system) is None
    draws = conjugate.draw(
        system, Priors(), ChainSettings(2, 300, keep_truths=True), np.random.SeedSequence(1)
    )
    assert draws.names == ("Intercept", "w1", "sigma")
    assert np.all(np.abs(draws.values.mean(axis=(0, 1)) - [1, 1, 1]) < 4.5 * draws.values.std(axis=(0, 1)))
    assert draws.truths.shape == (2, 200, 800, 1)
    truths = draws.truths[..., 0].astype(float)
    # the posterior of a true value is calibrated: its sd is that of its error
    away = (truths.mean(axis=(0, 1)) - y) / truths.std(axis=(0, 1))
    assert away.std() == pytest.approx(1.0, abs=4.5 * np.sqrt(1 / 1600 + 1 / 800))


def test_noise_as_large_as_the_residual_does_not_hold_the_chains_up():
    """Given all else sigma is drawn by its own law: chains move on, and agree with weights on independent draws."""
    rng = np.random.default_rng(8)
    x = rng.normal(size=(300, 1))
    truth = np.column_stack([x, x[:, 0] + 0.25 * rng.normal(size=300)])
    u = truth + np.sqrt(0.3) * rng.normal(size=(300, 2))
    columns = {"Intercept": ONE, "x1": Ref("x1")}
    system = system_of(np.empty((300, 0)), u[:, :1], u[:, 1], 0.3 * np.eye(2), columns)
    draws = conjugate.sample(system, Priors(), 4, 5000, np.random.default_rng(9))
    assert "independence chains of draws in closed form, sigma by its" in draws.sampler
    assert draws.info["acceptance of the priors' ratio"] > 0.8
    form, reduced, noise = _reduced(system)
    found = draw_reduced(reduced, noise, 200_000, np.random.default_rng(10))
    weights = np.exp(log_weights(system, form, Priors(), found))
    weights /= weights.sum()
    level = np.quantile(found.roots[:, 1, 1], [0.1, 0.25, 0.5, 0.75])
    expected = ((found.roots[:, 1, 1, None] < level) * weights[:, None]).sum(axis=0)
    shares = (draws.values[:, :, -1].ravel()[:, None] < level).mean(axis=0)
    error = np.sqrt(expected * (1 - expected) * (1 / 10_000 + (weights**2).sum()))
    assert (np.abs(shares - expected) < 4 * error).all()


def _reduced(system):
    from maskwell.analysis.samplers.conjugate import sampler

    form = form_of(system)
    whole = triangle(sampler._blocks(system, form))
    r, order = len(form.bases), sampler._order(system, form)
    reduced = reduce(whole[:, :r], whole[:, r:], len(system), Conjugate())
    return form, reduced, order @ released_numbers(system)[1][0].covariance @ order.T


def test_the_label_says_whether_there_are_chains():
    w, u, y, covariance, _ = make(200, 4)
    system = system_of(w, u, y, covariance)
    alone, chained = (
        conjugate.sample(system, prior, 2, 50, np.random.default_rng(1)).sampler
        for prior in (Conjugate(), Priors())
    )
    assert alone.startswith("independent draws in closed form")
    assert chained.startswith("independence chains of draws in closed form")

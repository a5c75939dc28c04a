"""Nodes where prior times likelihood has its mass, tables of averaged densities: against scipy and plain sums."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest
from scipy import stats
from scipy.integrate import quad_vec

import maskwell as mw
from maskwell.attacks.bayes.unknown_noise.density_tables import WORTH, DensitySurface, EvenFunctionTable
from maskwell.attacks.bayes.unknown_noise.integral import integrated_terms
from maskwell.attacks.bayes.unknown_noise.normal_bias_factor import told_terms
from maskwell.attacks.bayes.unknown_noise.prior_average import AveragedNoise
from maskwell.attacks.bayes.unknown_noise.prior_families import GammaPower, LogNormal, Own
from maskwell.attacks.bayes.unknown_noise.priors import Prior
from maskwell.attacks.bayes.unknown_noise.quadrature_nodes import AdaptiveNodeRule
from maskwell.attacks.pair_density import law_terms, summed_logs
from maskwell.kernels.bias_density import FORWARD, bias_log_mean
from maskwell.laws import Additive, Laplace, Multiplicative, Normal, Outlet
from maskwell.notes import has_code
from maskwell.schema import Column, Schema
from maskwell.table import Table

FREE = Outlet()
PAIR = ((1.0, 0.6), (0.6, 1.0))
GRID = (1e-9, 1e-6, 1e-3, 0.05, 0.3, 0.5, 0.7, 0.95, 1 - 1e-3, 1 - 1e-6, 1 - 1e-9)


def table_of(**columns):
    described = tuple(Column(name, "continuous", frozenset({"key"})) for name in columns)
    return Table.from_frame(
        pa.table({k: pa.array(v, pa.float64()) for k, v in columns.items()}), Schema(described)
    )


X = table_of(A=np.array([1.0, 4.0, 11.0, 5.0, 20.0]))
Z = table_of(A=np.array([1.003, 4.1, 9.0, 5.0007, 26.0, 2.0]))
PRIORS = {
    "elicited": (Prior(), stats.invgamma(402, scale=401 * 24.997 / 6)),
    "elicited, unsure": (Prior(mean_over_sd=1), stats.invgamma(3, scale=2 * 24.997 / 6)),
    "log-normal": (Prior("lognormal", 1), stats.lognorm(1.0, scale=24.997 / 6)),
    "log-uniform, 4 decades": (None, stats.loguniform(0.01, 100)),
    "log-uniform, 6 decades": (None, stats.loguniform(0.001, 1000)),
    "half-normal": (None, stats.halfnorm(scale=2)),
    "exponential": (None, stats.expon(scale=2)),
    "narrow": (None, stats.truncnorm(-500, 500, loc=2, scale=2e-3)),
    "narrow log-normal": (None, stats.lognorm(1e-3, scale=0.05)),
    "wide log-normal": (None, stats.lognorm(3.0, scale=1)),
    "uniform": (None, stats.uniform(0.5, 2.5)),
    "gamma": (None, stats.gamma(0.7, scale=3)),
    "heavy tail": (None, stats.halfcauchy(scale=1)),
}


def placed(law, z, x, prior, tolerance=1e-7):
    rule = AdaptiveNodeRule(tolerance, z, x, {})
    terms = integrated_terms([law], z, x, prior, z, rule)
    i, k = np.divmod(np.arange(len(z) * len(x)), len(x))
    return summed_logs(terms, i, k).reshape(len(z), len(x)), rule


def by_scipy(own, distances, width=1):
    """Return log integrals over an sd of its prior and a normal density of so many columns, on the log scale."""
    distances = np.asarray(distances)
    peaks = np.log(np.maximum(distances, 1e-30))
    low, high = max(np.log(own.ppf(1e-14)), -60.0), max(np.log(own.isf(1e-14)), peaks.max() + 3.0)
    cuts = np.unique(
        np.clip([*np.linspace(low, high, 40), *np.log(own.ppf(GRID))], low, np.log(own.ppf(1.0)))
    )

    def log_part(u):
        s = np.exp(u)
        return own.logpdf(s) + u - width * u - (distances / s) ** 2 / 2

    with np.errstate(invalid="ignore"):
        top = np.max([log_part(u) for u in np.linspace(cuts[0], cuts[-1], 501)], axis=0)
    total = sum(
        quad_vec(lambda u: np.exp(log_part(u) - top), a, b, epsabs=1e-14, epsrel=1e-10, norm="max")[0]
        for a, b in pairwise(cuts)
    )
    return np.log(total) + top - width * np.log(2 * np.pi) / 2


@pytest.mark.parametrize("name", PRIORS)
def test_every_prior_is_integrated_as_by_scipy(name):
    prior, own = PRIORS[name]
    law = Additive(("A",), Normal((2.0,)), (FREE,))
    ours, rule = placed(law, Z, X, prior or Prior(given={"sd": own}))
    distances = np.abs(np.subtract.outer(Z.floats("A"), X.floats("A")))
    exact = by_scipy(own, distances)
    seen = exact > -300
    np.testing.assert_allclose(ours[seen], exact[seen], rtol=0, atol=1e-6)
    assert rule.most() > 0


@pytest.mark.parametrize(
    "own", [stats.expon(scale=2), stats.loguniform(1e-3, 1e3)], ids=["exponential", "decades"]
)
def test_a_shared_scale_is_integrated_as_by_scipy(own):
    law = Additive(("A", "B"), Normal((1.5, 4.0), PAIR), (FREE, FREE))
    rng = np.random.default_rng(2)
    x = rng.normal(0, 10, (6, 2))
    z = x + rng.normal(0, 2, x.shape)
    sides = table_of(A=z[:, 0], B=z[:, 1]), table_of(A=x[:, 0], B=x[:, 1])
    ours, _ = placed(law, *sides, Prior(given={"scale": own}))
    inverse = np.linalg.inv(law.noise.covariance)
    away = z[:, None] - x
    distances = np.sqrt(np.einsum("ikj,jl,ikl->ik", away, inverse, away))
    exact = by_scipy(own, distances, 2) + np.log(np.linalg.det(inverse)) / 2
    np.testing.assert_allclose(ours, exact, rtol=0, atol=1e-6)


def test_a_point_is_the_card():
    law = Additive(("A",), Normal((2.0,)), (FREE,))
    told = summed_logs(law_terms([law], Z, X), *np.divmod(np.arange(30), 5)).reshape(6, 5)
    for own in (stats.lognorm(1e-9, scale=2.0), stats.uniform(2.0, 1e-9)):
        ours, rule = placed(law, Z, X, Prior(given={"sd": own}))
        np.testing.assert_allclose(ours, told, rtol=0, atol=1e-6)
        assert rule.most() <= 9, "nothing to resolve"


def test_a_finer_tolerance_has_more_nodes_and_says_so():
    law, found = Additive(("A",), Normal((2.0,)), (FREE,)), {}
    counts = []
    for tolerance in (1e-3, 1e-6, 1e-9):
        rule = AdaptiveNodeRule(tolerance, Z, X, found)
        integrated_terms([law], Z, X, Prior(mean_over_sd=2), Z, rule)
        counts.append(rule.most())
    assert counts[0] < counts[1] < counts[2]
    nothing = AdaptiveNodeRule(1e-3, Z, X, {})
    integrated_terms([Additive(("A",), Normal((0.0,)), (FREE,))], Z, Z, Prior(), Z, nothing)
    assert nothing.most() == 0


@pytest.mark.parametrize(
    "belief",
    [
        GammaPower(402.0, 3.0, -1.0),
        GammaPower(1.0, 3.0, 0.5),
        GammaPower(1e12, 3.0, -1.0),
        LogNormal(0.0, 2.0),
    ]
    + [Own(own) for own in (stats.expon(), stats.loguniform(1, 10), stats.gamma(0.4), stats.halfcauchy())],
)
def test_cuts_hold_nearly_all_of_a_prior(belief):
    cuts, last = belief.cuts()
    assert (np.diff(cuts) > 0).all()
    assert cuts[-1] <= last
    grid = np.concatenate([np.linspace(start, end, 9)[:-1] for start, end in pairwise(cuts)] + [cuts[-1:]])
    parts = (quad_vec(lambda u: np.exp(belief.log_density(u)), a, b, epsabs=1e-12) for a, b in pairwise(grid))
    total = sum(part for part, _ in parts)
    assert total == pytest.approx(1.0, abs=1e-8)


# --- tables ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("reach", [0.2, 4.0, 12.0])
def test_a_table_gives_the_sum_over_nodes(reach):
    rng, scales = np.random.default_rng(3), np.exp(np.linspace(-reach, reach, 60))
    weights, none = np.full(60, -np.log(60)), np.zeros(60)

    def log_of(d):
        return bias_log_mean(d, np.zeros(len(d)), none, scales, weights, FORWARD)

    table = EvenFunctionTable.of(log_of, scales.min(), scales.max())
    assert np.isfinite(table.coefficients).all()
    d = np.append(np.exp(rng.uniform(-reach - 9, reach + 11, 20_000)), 0.0)
    np.testing.assert_allclose(table.logs(d), log_of(d), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("reach", [0.3, 2.0])
def test_a_table_of_bias_and_noise_gives_the_sum_over_nodes(reach):
    rng, steps = np.random.default_rng(3), np.linspace(-reach, reach, 9)
    logs = np.add.outer(-(steps**2), -(steps**2)).ravel()
    nodes = np.repeat(0.1 * np.exp(steps), 9), np.tile(2.0 * np.exp(steps), 9), logs
    x = np.concatenate([rng.normal(60, 20, 40), [0.0, 1e-9, -5.0]])
    surface = DensitySurface.of(nodes, x, 10**9)
    assert np.isfinite(surface.table).mean() > 0.9
    pairs = np.repeat(x, 300), rng.normal(60, 40, 43 * 300)
    expected = bias_log_mean(pairs[1], pairs[0], *nodes, FORWARD)
    np.testing.assert_allclose(surface.logs(pairs[1], pairs[0]), expected, rtol=1e-10, atol=1e-10)
    assert DensitySurface.of(nodes, x, 1_000) is None, "few pairs need no table"


@pytest.mark.parametrize("noise", [Normal((2.0,)), Laplace((2.0,))], ids=["normal", "laplace"])
@pytest.mark.parametrize("width", [0.0, 0.5])
def test_many_pairs_of_a_column_have_the_logs_of_few(noise, width):
    rng, scales = np.random.default_rng(4), np.exp(np.linspace(-3, 2, 20))
    average = AveragedNoise(noise, scales, np.full(20, -np.log(20)))
    middle = rng.normal(0, 8, (WORTH + 1, 1))
    ends = middle - width / 2, middle + width / 2
    if width:
        ends[1][:50], ends[0][50:100] = np.inf, -np.inf
    many = average.log_box(*ends, (width == 0,))[0]
    some = slice(None, 3_000)
    few = average.by_nodes(ends[0][some], ends[1][some], (width == 0,))[0]
    np.testing.assert_allclose(many[some], few, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("is_point", [(False, False), (True, False)])
def test_boxes_of_unknown_size_are_the_sum_over_nodes(is_point):
    rng, scales = np.random.default_rng(5), np.exp(np.linspace(-3, 2, 12))
    average = AveragedNoise(Normal((1.0, 2.0), PAIR), scales, np.full(12, -np.log(12)))
    middle = rng.normal(0, 3, (60, 2))
    lower, upper = middle - 0.1, middle + 0.1
    upper[:10, 1], lower[10:15, 1] = np.inf, -np.inf
    ours, plain = average.log_box(lower, upper, is_point), average.by_nodes(lower, upper, is_point)
    np.testing.assert_allclose(ours[0], plain[0], rtol=0, atol=1e-6)


def test_bias_told_is_the_law_of_the_card():
    rng = np.random.default_rng(6)
    x = rng.normal(50, 30, (40, 2))
    z = np.maximum(np.round(x * rng.normal(1, 0.2, x.shape) + rng.normal(0, 3, x.shape), 1), 0.0)
    sides = table_of(A=z[:, 0], B=[*z[:-1, 1], None]), table_of(A=x[:, 0], B=[None, *x[1:, 1]])
    outlets = (Outlet(low=0.0), Outlet(low=0.0, unit=mw.laws.transform.Fraction(1, 10)))
    spreads = (Multiplicative(0.2, 3.0), Multiplicative(0.2, 3.0))
    law = Additive(("A", "B"), Normal((1.0, 1.0)), outlets, spreads=spreads)
    pairs = np.divmod(np.arange(1600), 40)
    ours, plain = (summed_logs(make([law], *sides), *pairs) for make in (told_terms, law_terms))
    assert np.isneginf(plain).any()
    np.testing.assert_allclose(ours, plain, rtol=1e-12, atol=1e-12)


# --- attacks -----------------------------------------------------------------------------------------------


def survey(count=40, seed=7):
    rng = np.random.default_rng(seed)
    values = rng.multivariate_normal([90, 80], [[400, 200], [200, 400]], count)
    return table_of(A=np.round(values[:, 0]), B=np.round(values[:, 1]))


UNSETTLING = {
    "log-uniform, 4 decades": stats.loguniform(0.01, 100),
    "log-uniform, 6 decades": stats.loguniform(0.001, 1000),
    "exponential": stats.expon(scale=1),
    "half-normal": stats.halfnorm(scale=2),
    "narrow": stats.lognorm(1e-3, scale=2.0),
}


@pytest.mark.parametrize("name", UNSETTLING)
@pytest.mark.parametrize(
    "mask",
    [mw.CorrelatedNoise(("A", "B"), sd_ratio=0.2), mw.BiasNoise(("A",), bias_sd=0.05, sd_ratio=0.1)],
    ids=["correlated", "bias"],
)
def test_probabilities_settle_under_every_prior(mask, name):
    unknown = "scale" if isinstance(mask, mw.CorrelatedNoise) else "sd"
    intruder = mw.BayesIntruder(prior=mw.attacks.Prior(given={unknown: UNSETTLING[name]}))
    risk = mw.attack(intruder, mw.apply(mask, survey(), seed=1))
    (said,) = [note for note in risk.notes if "nodes" in note.figures]
    assert said.code == "attacks.settled"
    assert np.isfinite(risk.table["probability"].to_numpy()).all()


def test_nothing_unknown_has_no_nodes():
    table = mw.Table.from_frame(
        pa.table({"SEX": ["a", "b"] * 20}),
        Schema((Column("SEX", "category", frozenset({"key"}), categories=("a", "b")),)),
    )
    masking = mw.apply(mw.Pram(("SEX",), stay=0.7), table, seed=1)
    risk = mw.attack(mw.BayesIntruder(prior=mw.attacks.Prior()), masking)
    assert not any("nodes" in note.figures for note in risk.notes)
    assert has_code(risk.notes, "attacks.prior_plays_no_part")


def test_values_at_limits_that_pull_beyond_the_prior_do_not_overflow():
    """At a limit the likelihood of ever larger noise does not fall: only the prior ends the integral."""
    law = Additive(("A",), Normal((2.0,)), (Outlet(low=0.0, high=30.0),))
    z, x = table_of(A=[0.0, 30.0, 12.0, 7.0]), table_of(A=[1.0, 29.0, 12.5, 15.0])
    ours, _ = placed(law, z, x, Prior(mean_over_sd=1))
    belief = stats.invgamma(3, scale=2 * 5)
    exact, _ = quad_vec(
        lambda u: belief.pdf(np.exp(u)) * np.exp(u) * stats.norm.sf(x.floats("A") / np.exp(u)), -8.0, 20.0
    )
    np.testing.assert_allclose(ours[0], np.log(exact), rtol=0, atol=1e-5)


@pytest.mark.parametrize(("sds", "is_open"), [((30.0, 10.0, 15.0), False), ((2.0, 1.5, 1.0), True)])
def test_boxes_of_several_columns_are_averaged_to_a_hundredth(sds, is_open):
    rng = np.random.default_rng(7)
    noise = Normal(sds, ((1.0, 0.6, 0.3), (0.6, 1.0, 0.4), (0.3, 0.4, 1.0)))
    average = AveragedNoise(noise, np.geomspace(0.2, 5.0, 6), np.full(6, -np.log(6)))
    middle = rng.multivariate_normal(np.zeros(3), 4 * noise.covariance, size=40).round()
    lower, upper = middle - 0.5, middle + 0.5
    if is_open:
        lower[::2, 0] = -np.inf
    got, _ = average.log_box(lower, upper, (False,) * 3)
    exact, error = average.by_nodes(lower, upper, (False,) * 3)
    assert np.abs(np.expm1(got - exact)).max() < 0.01 + (error / np.exp(exact)).max()


def test_small_boxes_of_many_columns_add_their_variance_to_the_noise():
    """Sheppard's correction beside sums over 4 points of each side, for boxes as wide and boxes of several widths."""
    rng, columns = np.random.default_rng(8), 6
    spread = rng.normal(size=(columns, 9))
    covariance = spread @ spread.T
    sds = np.sqrt(np.diagonal(covariance))
    correlations = tuple(map(tuple, (covariance / np.outer(sds, sds)).tolist()))
    noise = Normal(tuple(sds.tolist()), correlations)
    average = AveragedNoise(noise, np.geomspace(1.0, 4.0, 5), np.full(5, -np.log(5)))
    middle = rng.multivariate_normal(np.zeros(columns), covariance, size=60)
    half = np.tile(0.2 * noise.resolution, (60, 1))
    half[30:, 1] *= 0.6
    got, _ = average.log_box(middle - half, middle + half, (False,) * columns)
    nodes, weights = np.polynomial.legendre.leggauss(4)
    grid = np.array(np.meshgrid(*(nodes,) * columns)).reshape(columns, -1)
    weight = np.array(np.meshgrid(*(weights / 2,) * columns)).reshape(columns, -1).prod(axis=0)
    by_middle = average.points(middle)
    apart = []
    for box in range(0, 60, 6):
        density = np.exp(average.points(middle[box] + half[box] * grid.T)) @ weight
        exact = np.log(density) + np.log(2 * half[box]).sum()
        assert abs(np.expm1(got[box] - exact)) < 1e-3
        apart.append(abs(np.expm1(by_middle[box] - np.log(density))))
    assert max(apart) > 0.01  # the middle alone is another answer

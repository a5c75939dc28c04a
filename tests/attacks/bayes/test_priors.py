"""Priors of what was not told, and the law integrated over them: against scipy's distributions and quadrature."""

from __future__ import annotations

import math
import warnings
from itertools import product

import numpy as np
import pyarrow as pa
import pytest
from scipy import stats
from scipy.integrate import dblquad, quad, quad_vec
from scipy.special import logsumexp

import maskwell as mw
from maskwell.attacks.bayes.unknown_noise.integral import integrated_terms, over_shared, shared_nodes
from maskwell.attacks.bayes.unknown_noise.prior_families import GammaPower, LogNormal, Own
from maskwell.attacks.bayes.unknown_noise.priors import (
    Doubt,
    Prior,
    prior_from_dict,
    prior_problems,
    resolve_priors,
)
from maskwell.attacks.pair_density import law_terms, laws_on, summed_logs
from maskwell.errors import BadInput, BadPlan
from maskwell.laws import Additive, Laplace, Mixture, Multiplicative, Normal, Outlet, Power, SkewedBias, Step
from maskwell.laws.unknowns import unknowns_of, with_values
from maskwell.schema import Column, Schema
from maskwell.table import Table

FREE = Outlet()
PAIR = ((1.0, 0.6), (0.6, 1.0))


def table_of(units=None, **columns):
    described = tuple(Column(name, "continuous", unit=(units or {}).get(name)) for name in columns)
    arrays = {name: pa.array(values, pa.float64()) for name, values in columns.items()}
    return Table.from_frame(pa.table(arrays), Schema(described))


def pairs_of(z, x):
    return tuple(np.divmod(np.arange(len(z) * len(x)), len(x)))


def integrated(law, z, x, prior, count, released=None):
    terms = integrated_terms([law], z, x, prior, released or z, count)
    return summed_logs(terms, *pairs_of(z, x))


def inverse_gamma(shape, mean):
    """Return the density of the inverse gamma with a mean, in plain mathematics."""
    scale = (shape - 1) * mean
    constant = shape * math.log(scale) - math.lgamma(shape)
    return lambda s: math.exp(constant - (shape + 1) * math.log(s) - scale / s)


def reach(shape, mean):
    """Return where an inverse gamma ends for all that an integral cares about: 20 sds of its log on either side."""
    far = math.exp(20 / math.sqrt(shape - 2))
    return mean / far, mean * far


def normal(d, sd):
    return math.exp(-((d / sd) ** 2) / 2) / (sd * math.sqrt(2 * math.pi))


def legendre(shape, mean):
    """Return nodes and weights of another rule for an inverse gamma: Gauss and Legendre on the log."""
    nodes, weights = np.polynomial.legendre.leggauss(200)
    low, high = np.log(reach(shape, mean))
    values = np.exp((low + high) / 2 + (high - low) / 2 * nodes)
    density = np.array([inverse_gamma(shape, mean)(value) for value in values])
    weights = weights * (high - low) / 2 * values * density
    return values[weights > 0], weights[weights > 0]


# --- the priors themselves ---------------------------------------------------------------------------------


RELEASED = table_of(A=[0.0, 2.0, 12.0, 7.0], B=[100.0, 400.0, 250.0, None])
TWO = Additive(("A", "B"), Normal((1.0, 30.0)), (FREE, FREE))
LOG_VALUES = np.linspace(-0.5, 1.5, 7)


def test_trottini_s_prior_is_inverse_gamma_on_the_sd():
    sd_a, sd_b = resolve_priors(Prior(), unknowns_of(TWO), TWO, RELEASED)
    expected = stats.invgamma(402, scale=401 * 12 / 6)
    np.testing.assert_allclose(
        sd_a.log_density(LOG_VALUES), expected.logpdf(np.exp(LOG_VALUES)) + LOG_VALUES, rtol=1e-10
    )
    values, logs = sd_b.nodes(17)
    assert np.exp(logs) @ values == pytest.approx(300 / 6, rel=1e-12)
    assert np.sqrt(np.exp(logs) @ (values - 50) ** 2) == pytest.approx(50 / 20, rel=1e-10)


def test_the_bias_is_elicited_from_its_range():
    law = Additive(("A",), Normal((1.0,)), (FREE,), spreads=(Multiplicative(0.3, 2.0),))
    bias, sd = resolve_priors(Prior(), unknowns_of(law), law, RELEASED)
    expected = stats.invgamma(402, scale=401 / 12)
    logs = np.log([0.07, 0.08, 0.1])
    np.testing.assert_allclose(bias.log_density(logs), expected.logpdf(np.exp(logs)) + logs, rtol=1e-10)
    assert np.exp(sd.centre) == pytest.approx(2.0, rel=0.01)


def test_fienberg_s_prior_is_gamma_on_the_variance():
    belief = resolve_priors(Prior("gamma", mean_over_sd=3), unknowns_of(TWO), TWO, RELEASED)[0]
    expected = stats.gamma(9, scale=4 / 9)
    jacobian = 2 * LOG_VALUES + np.log(2)
    np.testing.assert_allclose(
        belief.log_density(LOG_VALUES), expected.logpdf(np.exp(2 * LOG_VALUES)) + jacobian, rtol=1e-10
    )
    values, logs = belief.nodes(33)
    assert np.exp(logs) @ values**2 == pytest.approx(4.0, rel=1e-8)
    assert np.exp(logs) @ values**4 - 16 == pytest.approx((4 / 3) ** 2, rel=1e-7)


def test_the_lognormal_prior_has_its_median_there():
    belief = resolve_priors(Prior("lognormal", mean_over_sd=4), unknowns_of(TWO), TWO, RELEASED)[0]
    expected = stats.lognorm(0.25, scale=2)
    np.testing.assert_allclose(
        belief.log_density(LOG_VALUES), expected.logpdf(np.exp(LOG_VALUES)) + LOG_VALUES, rtol=1e-10
    )


@pytest.mark.parametrize(
    "belief",
    [
        GammaPower(402.0, 3.0, -1.0),
        GammaPower(3.0, 3.0, -1.0),
        GammaPower(1.0, 0.2, 0.5),
        GammaPower(1e12, 5.0, -1.0),
        LogNormal(-2.0, 0.7),
        Own(stats.gamma(5, scale=2)),
        Own(stats.uniform(1, 3)),
    ],
    ids=[
        "tight inverse gamma",
        "inverse gamma",
        "gamma",
        "very tight",
        "lognormal",
        "own gamma",
        "own uniform",
    ],
)
def test_densities_integrate_to_one_and_have_the_stated_moments(belief):
    grid = np.linspace(belief.centre - 25 * belief.spread, belief.centre + 25 * belief.spread, 400_001)
    density = np.exp(belief.log_density(grid))
    moments = [np.trapezoid(density * (grid - belief.centre) ** k, grid) for k in (0, 1, 2)]
    exact = [1.0, 0.0, belief.spread**2]
    np.testing.assert_allclose(moments, exact, rtol=2e-4, atol=2e-4 * belief.spread)
    values, logs = belief.nodes(33)
    assert (values > 0).all()
    assert np.exp(logs).sum() == pytest.approx(1.0, abs=1e-12)


def test_a_tight_gamma_is_normal_on_the_log():
    belief, limit = GammaPower(1e12, 5.0, -1.0), LogNormal(np.log(5.0), 1e-6)
    at = np.log(5.0) + 1e-6 * np.array([-3.0, 0.0, 2.0])
    np.testing.assert_allclose(belief.log_density(at), limit.log_density(at), atol=2e-5)


def test_the_scale_is_centred_where_the_columns_agree_on_average():
    law = Additive(("A", "B"), Normal((1.0, 30.0), PAIR), (FREE, FREE))
    (belief,) = resolve_priors(Prior("lognormal"), unknowns_of(law), law, RELEASED)
    assert np.exp(belief.centre) == pytest.approx(np.sqrt((2.0 / 1.0) * (50.0 / 30.0)), rel=1e-12)


def test_on_the_log_scale_the_range_is_that_of_logs():
    law = Additive(("B",), Normal((0.3,)), (Outlet(log_shift=50.0),))
    (belief,) = resolve_priors(Prior("lognormal"), unknowns_of(law), law, RELEASED)
    assert np.exp(belief.centre) == pytest.approx(np.log(450 / 150) / 6, rel=1e-12)


@pytest.mark.parametrize("spread", [Power(1.0), Power(0.5, 1.0), Step((3.0,), (0.5, 2.0))])
def test_under_a_spread_the_prior_is_of_the_noise_s_own_sd(spread):
    law = Additive(("A",), Normal((0.2,)), (FREE,), spreads=(spread,))
    (belief,) = resolve_priors(Prior("lognormal"), unknowns_of(law), law, RELEASED)
    usual = np.sqrt(np.mean(spread.factor(np.array([0.0, 2.0, 12.0, 7.0])) ** 2))
    assert np.exp(belief.centre) == pytest.approx(2.0 / usual, rel=1e-12)


def test_one_s_own_priors_come_first_that_of_a_column_before_that_of_all():
    own, other = stats.gamma(4), stats.gamma(9)
    prior = Prior(given={"sd": own, "sd:B": other})
    assert resolve_priors(prior, unknowns_of(TWO), TWO, RELEASED) == (Own(own), Own(other))


def test_shared_unknowns_become_one():
    spreads = (Multiplicative(0.1, 1.0), Multiplicative(0.3, 30.0))
    law = Additive(("A", "B"), Normal((1.0, 1.0)), (FREE, FREE), spreads=spreads)
    doubt = Doubt.of(Prior(shared="bias_sd"), law, RELEASED)
    assert [(u.name, u.columns) for u in doubt.unknowns] == [
        ("bias_sd", ("A", "B")),
        ("sd", ("A",)),
        ("sd", ("B",)),
    ]
    assert doubt.places == (0, 1, 0, 2)
    assert doubt.law_at([0.5, 2.0, 3.0]).spreads == (Multiplicative(0.5, 2.0), Multiplicative(0.5, 3.0))
    logs = np.log([0.08, 2.0, 50.0])
    each = [belief.log_density(logs[[i]])[0] for i, belief in enumerate(doubt.beliefs)]
    assert doubt.log_prior(logs) == pytest.approx(sum(each))


def test_a_constant_column_needs_a_prior_of_its_own():
    same = table_of(A=[5.0, 5.0, None], B=[1.0, 2.0, 3.0])
    with pytest.raises(BadInput, match="'A' has no two different released values"):
        resolve_priors(Prior(), unknowns_of(TWO), TWO, same)
    beliefs = resolve_priors(Prior(given={"sd:A": stats.gamma(4)}), unknowns_of(TWO), TWO, same)
    assert isinstance(beliefs[0], Own)
    closed = table_of(A=[None, None, None], B=[1.0, 2.0, 3.0])
    with pytest.raises(BadInput, match="no two different"):
        resolve_priors(Prior(), unknowns_of(TWO), TWO, closed)


BAD = {
    "no family": ({"family": "beta"}, "no family"),
    "zero": ({"mean_over_sd": 0}, "mean over sd"),
    "not a number": ({"mean_over_sd": float("nan")}, "mean over sd"),
    "range upside down": ({"theta_range": (1.2, 0.8)}, "theta_range"),
    "range of one": ({"theta_range": (1.2,)}, "theta_range"),
    "negative range": ({"theta_range": (-1.0, 1.0)}, "theta_range"),
    "unknown name": ({"given": {"variance": stats.gamma(4)}}, "no unknown 'variance'"),
    "not a distribution": ({"given": {"sd": 3.0}}, "logpdf and ppf"),
    "not frozen": ({"given": {"sd": stats.gamma}}, "logpdf and ppf"),
    "discrete": ({"given": {"sd": stats.poisson(4)}}, "logpdf and ppf"),
    "below zero": ({"given": {"sd": stats.norm(3, 1)}}, "above 0"),
    "no pairs": ({"given": ("sd",)}, "by the name"),
    "scale shared": ({"shared": ("scale",)}, "shared"),
    "given a number": ({"given": 5}, "by the name"),
    "given nothing": ({"given": None}, "by the name"),
    "given a distribution": ({"given": stats.gamma(4)}, "by the name"),
    "shared a number": ({"shared": 5}, "names of unknowns"),
    "shared numbers": ({"shared": (5,)}, "names of unknowns"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_priors_are_refused(name):
    options, words = BAD[name]
    with pytest.raises(BadPlan, match=words):
        Prior(**options)


def test_a_problem_is_listed_once():
    with pytest.raises(BadPlan) as caught:
        Prior(shared=("scale", "scale"))
    assert str(caught.value).count("scale") == 1
    assert len(prior_problems(Prior(shared=("bias_sd", "bias_sd")), [TWO])) == 1


def test_priors_are_written_and_read_back():
    for prior in (Prior(), Prior("gamma", 5, (0.5, 1.5), shared=("bias_sd",)), Prior("lognormal", 2.5)):
        assert prior_from_dict(prior.to_dict()) == prior
    assert Prior().to_dict() == {"family": "inverse gamma"}
    own = Prior(given={"sd:A": stats.invgamma(402, scale=33)}).to_dict()
    assert own["given"] == {"sd:A": "invgamma"}
    with pytest.raises(BadPlan, match="objects of Python"):
        prior_from_dict(own)
    with pytest.raises(BadPlan, match="did you mean 'family'"):
        prior_from_dict({"familly": "gamma"})


def test_priors_of_nothing_are_named():
    prior = Prior(given={"sd:C": stats.gamma(4), "sd:A": stats.gamma(4)}, shared=("bias_sd",))
    problems = prior_problems(prior, [TWO])
    assert len(problems) == 2
    assert "'sd:C'" in problems[0]
    assert "'bias_sd'" in problems[1]


# --- integrals against quadrature --------------------------------------------------------------------------


TRUE = table_of(A=[1.0, 4.0, 11.0])
OUT = table_of(A=[1.5, 6.0, 10.0, 0.0])
ONE_COLUMN = {
    "normal": Additive(("A",), Normal((2.0,)), (FREE,)),
    "laplace": Additive(("A",), Laplace((2.0,)), (FREE,)),
    "clamped": Additive(("A",), Normal((2.0,)), (Outlet(low=0.0, high=10.0),)),
    "steps": Additive(("A",), Normal((2.0,)), (FREE,), spreads=(Step((3.0,), (0.5, 2.0)),)),
    "kept moments": Additive(("A",), Normal((2.0,)), (FREE,), slope=0.8, offsets=(0.7,)),
    "log scale": Additive(("A",), Normal((0.2,)), (Outlet(log_shift=3.0),)),
    "log scale, means kept": Additive(("A",), Normal((0.2,)), (Outlet(log_shift=3.0),), mean_corrected=True),
    "laplace on the log scale, means kept": Additive(
        ("A",), Laplace((0.2,)), (Outlet(log_shift=3.0),), mean_corrected=True
    ),
    "mixture": Additive(("A",), Mixture((0.4, 0.6), ((-2.0, 1.5),), ((0.8, 1.1),)), (FREE,)),
}


# Laplace noise has a kink, which the sd moves where it moves the centre: no rule of nodes is exact there.
KINKED = {"laplace on the log scale, means kept": 1e-3}


@pytest.mark.parametrize("certainty", [20.0, 3.0])
@pytest.mark.parametrize("name", ONE_COLUMN)
def test_one_unknown_is_integrated_as_by_quadrature(name, certainty):
    law, shape = ONE_COLUMN[name], certainty**2 + 2
    mean = _elicited(law, OUT)
    ours = integrated(law, OUT, TRUE, Prior(mean_over_sd=certainty), 65)
    (i, k), density = pairs_of(OUT, TRUE), inverse_gamma(shape, mean)
    z, x = OUT.values(["A"])[i], TRUE.values(["A"])[k]
    at, tolerance = (math.log(end) for end in reach(shape, mean)), KINKED.get(name, 1e-6)

    def share(u):
        s = math.exp(u)
        return np.exp(with_values(law, [s]).logpdf(z, x) - ours) * density(s) * s

    ratio, _ = quad_vec(share, *at, points=[math.log(mean)], epsrel=tolerance / 100)
    np.testing.assert_allclose(ratio, 1.0, atol=tolerance)


def _elicited(law, released):
    """Return the centre of the prior, worked out once more."""
    values = released.floats("A")
    entered = values if law.outlets[0].log_shift is None else np.log(values + law.outlets[0].log_shift)
    usual = np.sqrt(np.mean(law.spreads[0].factor(values) ** 2)) if law.spreads else 1.0
    sd = np.sqrt(law.noise.covariance[0, 0]) if isinstance(law.noise, Mixture) else 1.0
    return float(np.ptp(entered)) / 6 / usual / sd


@pytest.mark.parametrize("family", ["inverse gamma", "gamma"])
def test_an_unsure_prior_converges(family):
    law, errors = ONE_COLUMN["normal"], []
    (belief,) = resolve_priors(Prior(family, mean_over_sd=1), unknowns_of(law), law, OUT)
    z, x = OUT.floats("A"), TRUE.floats("A")
    i, k = pairs_of(OUT, TRUE)
    grid = np.linspace(belief.centre - 30 * belief.spread, belief.centre + 40 * belief.spread, 200_001)
    density = np.exp(belief.log_density(grid) - grid - ((z[i] - x[k])[:, None] / np.exp(grid)) ** 2 / 2)
    exact = np.log(np.trapezoid(density, grid) / np.sqrt(2 * np.pi))
    for count in (9, 17, 33, 65):
        ours = integrated(law, OUT, TRUE, Prior(family, mean_over_sd=1), count)
        errors.append(np.abs(ours - exact).max())
    assert errors[0] > errors[1] > errors[2] > errors[3]
    assert errors[3] < 2e-4


BIAS = Additive(("A",), Normal((1.0,)), (Outlet(low=0.0),), spreads=(Multiplicative(0.1, 1.0),))


@pytest.mark.parametrize("certainty", [20.0, 4.0])
def test_two_unknowns_are_integrated_as_by_double_quadrature(certainty):
    ours = integrated(BIAS, OUT, TRUE, Prior(mean_over_sd=certainty), 33).reshape(4, 3)
    shape = certainty**2 + 2
    bias, sd = inverse_gamma(shape, 1 / 12), inverse_gamma(shape, 10 / 6)
    ends = (*reach(shape, 10 / 6), *reach(shape, 1 / 12))
    z, x = OUT.floats("A"), TRUE.floats("A")

    def density(b, s, z, x):
        at = math.hypot(s, b * x)
        probability = math.erfc(x / at / math.sqrt(2)) / 2 if z == 0 else normal(z - x, at)
        return probability * bias(b) * sd(s)

    for i, k in ((0, 0), (1, 2), (3, 0), (3, 2)):
        exact, _ = dblquad(density, *ends, args=(z[i], x[k]), epsabs=0, epsrel=1e-8)
        assert ours[i, k] == pytest.approx(np.log(exact), abs=1e-6)


def test_a_shared_bias_multiplies_columns_inside_its_integral():
    outlets = (FREE, FREE)
    spreads = (Multiplicative(0.1, 1.0), Multiplicative(0.1, 20.0))
    law = Additive(("A", "B"), Normal((1.0, 1.0)), outlets, spreads=spreads)
    z = table_of(A=[1.5, 6.0, 10.0, 0.0], B=[90.0, 300.0, None, 210.0])
    x = table_of(A=[1.0, 4.0, 11.0], B=[100.0, 250.0, None])
    prior = Prior(mean_over_sd=2, theta_range=(0.0, 1.5), shared=("bias_sd",))
    ours = integrated(law, z, x, prior, 33).reshape(4, 3)
    bias = inverse_gamma(6, 0.25)
    inner = {"A": legendre(6, 10 / 6), "B": legendre(6, 210 / 6)}

    def at(log_bias, i, k):
        b = math.exp(log_bias)
        out = bias(b) * b
        for name, (sds, weights) in inner.items():
            u, v = z.floats(name)[i], x.floats(name)[k]
            out *= 1.0 if np.isnan(u) else weights @ stats.norm.pdf(u, v, np.hypot(sds, b * v))
        return out

    ends = [math.log(end) for end in reach(6, 0.25)]
    for i, k in ((0, 0), (1, 1), (3, 0), (2, 2)):
        exact, _ = quad(at, *ends, args=(i, k), epsabs=0, epsrel=1e-9, limit=100)
        assert ours[i, k] == pytest.approx(np.log(exact), abs=1e-7)
    apart = integrated(law, z, x, Prior(mean_over_sd=2, theta_range=(0.0, 1.5)), 33).reshape(4, 3)
    assert abs(apart[0, 0] - ours[0, 0]) > 1e-3, "columns are dependent"
    assert apart[2, 2] == pytest.approx(ours[2, 2], abs=1e-6), "one open column: nothing is shared"
    assert np.isneginf(ours[2, :2]).all(), "a missing value is nobody's who has one"


@pytest.mark.parametrize("outlets", [(FREE, FREE), (Outlet(low=0.0), Outlet(high=300.0))])
def test_a_scale_is_integrated_over_all_columns_together(outlets):
    law = Additive(("A", "B"), Normal((1.5, 40.0), PAIR), outlets)
    z = table_of(A=[1.5, 6.0, 10.0, 0.0], B=[90.0, 300.0, None, 210.0])
    x = table_of(A=[1.0, 4.0, 11.0], B=[100.0, 250.0, None])
    ours = integrated(law, z, x, Prior(mean_over_sd=3), 65)
    scales, weights = legendre(11, np.sqrt((10 / 6 / 1.5) * (210 / 6 / 40.0)))
    each = [summed_logs(law_terms([with_values(law, [s])], z, x), *pairs_of(z, x)) for s in scales]
    exact = logsumexp(np.array(each) + np.log(weights)[:, None], axis=0)
    np.testing.assert_allclose(ours, exact, atol=1e-6)


def test_lognormal_bias_shares_its_bias_over_columns():
    law = SkewedBias(("A", "B"), 0.1, (2.0, 30.0), (FREE, FREE))
    z, x = table_of(A=[1.5, 6.0], B=[90.0, 300.0]), table_of(A=[1.0, 4.0], B=[100.0, 250.0])
    prior = Prior(mean_over_sd=2)
    ours = integrated(law, z, x, prior, 17)
    beliefs = resolve_priors(prior, unknowns_of(law), law, z)
    (bias, u), (a, v), (b, w) = (belief.nodes(17) for belief in beliefs)
    i, k = pairs_of(z, x)
    total = np.full(len(i), -np.inf)
    for value, log in zip(bias, u, strict=True):
        parts = np.full((2, len(i)), log / 2)
        for j, (sds, logs) in enumerate(((a, v), (b, w))):
            one = [
                with_values(law, [value, s, s]).logpdf(
                    np.where([j == 0, j == 1], z.values([*"AB"])[i], np.nan),
                    np.where([j == 0, j == 1], x.values([*"AB"])[k], np.nan),
                )
                for s in sds
            ]
            parts[j] += logsumexp(np.array(one) + logs[:, None], axis=0)
        total = np.logaddexp(total, parts.sum(axis=0))
    np.testing.assert_allclose(ours, total, rtol=1e-10)


# --- every mask --------------------------------------------------------------------------------------------


AMOUNTS = ("INCOME", "TAX", "AGE")
MASKS = {
    "correlated, clamped and rounded": mw.CorrelatedNoise(AMOUNTS, sd_ratio=0.5),
    "independent": mw.IndependentNoise(AMOUNTS, variance_ratio=0.3),
    "mixture": mw.MixtureNoise(AMOUNTS, variance_ratio=0.3, within_variance_ratio=0.02),
    "joint mixture": mw.MixtureNoise(
        ("TAX", "AGE"), variance_ratio=0.3, within_variance_ratio=0.02, components=3, correlated=True
    ),
    "bias": mw.BiasNoise(AMOUNTS, bias_sd=0.2, sd_ratio=0.1),
    "lognormal bias": mw.BiasNoise(("AGE",), bias_sd=0.2, sd_ratio=0.1, shape="lognormal"),
    "laplace": mw.IndependentNoise(("WAGE",), variance_ratio=0.2, shape="laplace"),
    "log scale": mw.IndependentNoise(("WAGE", "OTHER"), variance_ratio=0.1, transform="log", shift=1.0),
    "steps": mw.IndependentNoise(("WAGE",), variance_ratio=0.2, spread=mw.laws.Step((1000.0,), (0.5, 2.0))),
    "codes": mw.CodeNoise(("SEX",), variance=0.3),
    "rounded codes": mw.CodeNoise(("SEX",), variance=0.3, rounded=True),
    "pram": mw.Pram(("EDU",), stay=0.7),
    "grouping": mw.Grouping(("AGE",), breaks=(30, 50, 70)),
    "coding": mw.Coding(("WAGE",), top=4000, bottom=500),
    "chain": mw.Chain(
        (
            mw.CorrelatedNoise(("WAGE", "OTHER"), sd_ratio=0.3),
            mw.Coding(("WAGE",), top=4000, bottom=500),
            mw.Pram(("EDU",), stay=0.7),
        )
    ),
    "bias, then codes": mw.Chain(
        (mw.BiasNoise(("WAGE",), bias_sd=0.2, sd_ratio=0.1), mw.Coding(("WAGE",), top=4000, bottom=500))
    ),
}


@pytest.fixture(scope="module")
def people(make_people):
    table = make_people(60)
    return table.select([name for name in table.names if name != "TOTAL"])


def masked(mask, table):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", mw.MaskwellWarning)
        return mw.apply(mask, table, seed=3)


def some_pairs(masking):
    rng, count = np.random.default_rng(4), len(masking.order)
    z, x = np.concatenate([rng.integers(0, count, (2, 40)), [np.arange(40), masking.order[:40]]], axis=1)
    return z, x


@pytest.mark.parametrize("name", MASKS)
def test_every_law_equals_the_sum_over_the_whole_grid(name, people):
    """All unknowns at once on the product of their nodes, law by law: nothing factorised, nothing shared cleverly."""
    masking = masked(MASKS[name], people)
    released = masking.release.table
    z, x = some_pairs(masking)
    for law in laws_on(masking.release.card, masking.release.card.columns):
        terms = integrated_terms([law], released, people, Prior(), released, 3)
        nodes = [belief.nodes(3) for belief in resolve_priors(Prior(), unknowns_of(law), law, released)]
        total = np.full(len(z), -np.inf)
        for chosen in product(range(3), repeat=len(nodes)):
            at = with_values(law, [values[i] for (values, _), i in zip(nodes, chosen, strict=True)])
            weight = sum(logs[i] for (_, logs), i in zip(nodes, chosen, strict=True))
            total = np.logaddexp(total, weight + summed_logs(law_terms([at], released, people), z, x))
        ours = summed_logs(terms, z, x)
        assert np.isfinite(ours[-40:]).all(), "what was drawn is possible"
        finite = np.isfinite(total)
        np.testing.assert_array_equal(np.isfinite(ours), finite)
        np.testing.assert_allclose(ours[finite], total[finite], rtol=0, atol=5e-3)  # units taken for exact


@pytest.mark.parametrize("name", MASKS)
def test_a_sure_prior_at_the_card_s_values_is_the_card(name, people):
    masking = masked(MASKS[name], people)
    released, laws = masking.release.table, laws_on(masking.release.card, masking.release.card.columns)
    given = {
        f"{unknown.name}:{unknown.columns[0]}": stats.lognorm(1e-7, scale=unknown.value)
        for law in laws
        for unknown in unknowns_of(law)
    }
    z, x = some_pairs(masking)
    ours = summed_logs(integrated_terms(laws, released, people, Prior(given=given), released, 9), z, x)
    told = summed_logs(law_terms(laws, released, people), z, x)
    finite = np.isfinite(told)
    np.testing.assert_array_equal(np.isfinite(ours), finite)
    np.testing.assert_allclose(ours[finite], told[finite], rtol=1e-6, atol=1e-6)


def test_units_do_not_matter():
    rng = np.random.default_rng(8)
    true, noise = rng.gamma(4, 10, (40, 2)), rng.normal(0, 4, (40, 2))

    def logs(factor):
        x = table_of(A=true[:, 0], B=factor * true[:, 1])
        z = table_of(A=(true + noise)[:, 0], B=factor * (true + noise)[:, 1])
        spreads = (Multiplicative(0.1, 2.0), Multiplicative(0.1, 2.0 * factor))
        law = Additive(("A", "B"), Normal((1.0, 1.0)), (FREE, FREE), spreads=spreads)
        return integrated(law, z, x, Prior(shared=("bias_sd",)), 9)

    np.testing.assert_allclose(logs(1000.0) + np.log(1000.0), logs(1.0), rtol=0, atol=1e-9)


def test_a_prior_with_edges_is_integrated_too():
    law, own = ONE_COLUMN["normal"], stats.uniform(0.5, 2.5)
    ours = integrated(law, OUT, TRUE, Prior(given={"sd": own}), 65)
    z, x = OUT.floats("A"), TRUE.floats("A")
    i, k = pairs_of(OUT, TRUE)
    exact = [quad(lambda s, d=d: stats.norm.pdf(d, 0, s) / 2.5, 0.5, 3.0, epsabs=0)[0] for d in z[i] - x[k]]
    np.testing.assert_allclose(ours, np.log(exact), rtol=0, atol=1e-5)


# --- what others build on ----------------------------------------------------------------------------------


def column_nodes(law):
    ((weight, at, nodes_of),) = shared_nodes(law, Prior(), OUT, 5)
    assert weight == 0.0
    assert at == law
    return nodes_of(law, 0)


def test_nodes_of_a_column_are_the_product_of_its_unknowns():
    bias_sds, sds, logs = column_nodes(BIAS)
    beliefs = resolve_priors(Prior(), unknowns_of(BIAS), BIAS, OUT)
    expected = list(product(*(zip(*belief.nodes(5), strict=True) for belief in beliefs)))
    np.testing.assert_allclose(bias_sds, [a for (a, _), _ in expected])
    np.testing.assert_allclose(sds, [b for _, (b, _) in expected])
    np.testing.assert_allclose(logs, [u + v for (_, u), (_, v) in expected])
    np.testing.assert_array_equal(column_nodes(ONE_COLUMN["normal"])[0], np.zeros(5))
    silent = Additive(("A",), Normal((0.0,)), (FREE,))
    assert shared_nodes(silent, Prior(), OUT, 5) == [(0.0, silent, None)]


def test_an_unknown_that_columns_share_has_its_nodes_outside():
    law = Additive(("A", "B"), Normal((1.0, 30.0), PAIR), (FREE, FREE))
    nodes = shared_nodes(law, Prior(), RELEASED, 5)
    (belief,) = resolve_priors(Prior(), unknowns_of(law), law, RELEASED)
    values, logs = belief.nodes(5)
    assert [at for _, at, _ in nodes] == [with_values(law, [value]) for value in values]
    assert [log for log, _, _ in nodes] == logs.tolist()
    assert all(nodes_of is None for _, _, nodes_of in nodes)


def test_factors_of_any_kernel_are_averaged_over_what_is_shared():
    spreads = (Multiplicative(0.1, 1.0), None)
    law = Additive(("A", "B"), Normal((1.0, 30.0)), (FREE, FREE), spreads=spreads)
    seen = []

    def terms_of(at, nodes_of):
        seen.append((nodes_of(at, 0), nodes_of(at, 1)))
        return law_terms([at], RELEASED, RELEASED)

    (term,) = over_shared(law, Prior(shared=("sd",)), RELEASED, 5, terms_of)
    assert len(seen) == len(term.nodes) == 5
    assert [len(a[2]) for a, _ in seen] == [5] * 5
    assert all(a[1].tolist() == [b[1][0]] * 5 and b[0].tolist() == [0.0] for a, b in seen)


def test_two_shared_unknowns_are_integrated_jointly():
    """A bias and a noise that both columns share: against another rule for the integral of the product of columns."""
    spreads = (Multiplicative(0.1, 2.0), Multiplicative(0.1, 2.0))
    law = Additive(("A", "B"), Normal((1.0, 1.0)), (FREE, FREE), spreads=spreads)
    z, x = table_of(A=[1.5, 6.0, 12.0], B=[9.0, 3.0, 5.0]), table_of(A=[1.0, 4.0], B=[10.0, 2.5])
    prior = Prior(mean_over_sd=4, given={"sd": stats.invgamma(18, scale=34)}, shared=("bias_sd", "sd"))
    ours = integrated(law, z, x, prior, 33).reshape(3, 2)
    (biases, first), (sds, second) = legendre(18, 1 / 12), legendre(18, 2.0)
    values, other = z.values([*"AB"])[:, None], x.values([*"AB"])
    at = np.hypot(sds[:, None, None, None, None], biases[:, None, None, None] * other)
    density = np.exp(-(((values - other) / at) ** 2) / 2) / (at * math.sqrt(2 * math.pi))
    exact = np.einsum("s,b,sbik->ik", second, first, density.prod(axis=4))
    np.testing.assert_allclose(ours, np.log(exact), rtol=0, atol=1e-6)
    skewed = SkewedBias(("A", "B"), 0.1, (2.0, 30.0), (FREE, FREE))
    logs = integrated(skewed, z, x, Prior(shared=("sd",)), 5)
    assert np.isfinite(logs).all()

"""Compiled densities against scipy and plain numpy, in the middle, in the tails and at their edges."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import stats
from scipy.special import log_ndtr, logsumexp

from maskwell.kernels import densities as d

INF = math.inf
Floats = NDArray[np.float64]
WEIGHTS, MEANS, SDS = (
    np.array([0.5, 0.3, 0.2, 0.0]),
    np.array([0.0, -2.0, 3.0, 9.0]),
    np.array([1.0, 0.1, 2.0, 1.0]),
)

centre = st.floats(-30, 30)
width = st.floats(1e-9, 40)
sd = st.floats(1e-3, 1e3)


def brute_force(log_noise: Any, x: float, phi: float, points: int = 2**20, end: float = 12.0) -> float:
    """Integrate over the latent normal by the trapezoid rule: plain, slow, and right where its range suffices."""
    latent = np.linspace(-12, end, points + 1)
    s = math.sqrt(math.log1p(phi**2))
    log_joint = stats.norm.logpdf(latent) + log_noise(x * np.exp(s * latent - s * s / 2))
    return float(logsumexp(log_joint) + math.log(latent[1] - latent[0]))


def log_difference(high: float, low: float) -> float:
    return high + math.log1p(-math.exp(low - high)) if low > -INF else high


# --- normal and Laplace ------------------------------------------------------------------------------------


def test_densities_equal_closed_forms_far_into_the_tails():
    residual = np.concatenate([np.linspace(-24, 24, 97), [0.0, 1e-300, 1e6, -1e100]])
    for scale in (1e-8, 0.3, 1.0, 1e9):
        scales = np.full(len(residual), scale)
        np.testing.assert_allclose(
            d.normal_logpdf(residual * scale, scales),
            stats.norm.logpdf(residual) - math.log(scale),
            rtol=1e-13,
        )
        np.testing.assert_allclose(
            d.laplace_logpdf(residual * scale, scales),
            -np.abs(residual) - math.log(2 * scale),
            rtol=1e-13,
        )


@pytest.mark.parametrize(
    "end", [-40.0, -5.0, -0.1, 0.0, 0.7, 3.0, 8.0, 24.0, 25.0, 35.0, 36.0, 100.0, 1e8, 1e150]
)
def test_normal_tails_equal_log_ndtr(end: float):
    assert d.log_normal_interval(end, INF, 1.0) == pytest.approx(log_ndtr(-end), rel=2e-13)
    assert d.log_normal_interval(-INF, -3 * end, 3.0) == pytest.approx(log_ndtr(-end), rel=2e-13)


def test_normal_intervals_equal_differences_of_scipy():
    for low, high in itertools.combinations([-9.0, -4.0, -1.5, -0.2, 0.0, 0.5, 2.0, 6.0, 11.0], 2):
        low, high = (low, high) if low + high < 0 else (-high, -low)
        expected = log_difference(float(log_ndtr(high)), float(log_ndtr(low)))
        assert d.log_normal_interval(low, high, 1.0) == pytest.approx(expected, rel=1e-12)
        assert d.log_normal_interval(-5 * high, -5 * low, 5.0) == pytest.approx(expected, rel=1e-12)


def test_laplace_intervals_equal_differences_of_scipy():
    log_cdf = stats.laplace.logcdf
    for low, high in itertools.combinations([-700.0, -40.0, -3.0, -0.2, 0.0, 0.5, 30.0], 2):
        low, high = (low, high) if low + high < 0 else (-high, -low)
        expected = log_difference(float(log_cdf(high)), float(log_cdf(low)))
        assert d.log_laplace_interval(low, high, 1.0) == pytest.approx(expected, rel=1e-12)
        assert d.log_laplace_interval(-2 * high, -2 * low, 2.0) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("middle", [0.0, 0.3, -7.0, 24.0, 1e5])
@pytest.mark.parametrize("width", [1e-320, 1e-200, 1e-12, 1e-9])
def test_masses_of_narrow_intervals_are_density_times_width(middle: float, width: float):
    """The ends are symmetric about zero or so close to the middle that shifting them would lose the width."""
    if middle == 0.0:
        mass = d.log_normal_interval(-width / 2, width / 2, 1.0)
    else:
        mass = d._log_normal_mass(middle - width / 2, middle + width / 2, width, 1.0)
    assert mass == pytest.approx(d.log_normal(middle, 1.0) + math.log(width), rel=1e-12)


@pytest.mark.parametrize(
    "log_interval", [d.log_normal_interval, d.log_laplace_interval], ids=["normal", "laplace"]
)
@given(low=centre, first=width, second=width, scale=sd)
def test_masses_add_up_and_are_symmetric(
    log_interval: Any, low: float, first: float, second: float, scale: float
):
    cuts = [scale * low, scale * (low + first), scale * (low + first + second)]
    whole = log_interval(cuts[0], cuts[2], scale)
    parts = [log_interval(cuts[0], cuts[1], scale), log_interval(cuts[1], cuts[2], scale)]
    assert logsumexp(parts) == pytest.approx(whole, rel=1e-11, abs=1e-14)
    assert log_interval(-cuts[2], -cuts[0], scale) == whole


@pytest.mark.parametrize("low", [20.0, 30.0, 1e3, 1e6])
def test_bounded_intervals_in_the_far_tail(low: float):
    """There the law is all but exponential with rate `low`: one minus exp(-1) of the tail lies within 1 / low."""
    inside, whole = d.log_normal_interval(low, low + 1 / low, 1.0), d.log_normal_interval(low, INF, 1.0)
    assert inside == pytest.approx(whole + math.log1p(-math.exp(-1.0)), rel=2 / low**4 + 1e-13)


@pytest.mark.parametrize(
    ("log_density", "log_interval"),
    [(d.log_normal, d.log_normal_interval), (d.log_laplace, d.log_laplace_interval)],
    ids=["normal", "laplace"],
)
def test_zero_scale_is_a_point_mass_and_empty_intervals_have_none(log_density: Any, log_interval: Any):
    assert [log_density(0.0, 0.0), log_density(1e-300, 0.0)] == [0.0, -INF]
    assert [log_interval(0.0, 1.0, 0.0), log_interval(0.5, 1.0, 0.0), log_interval(-INF, INF, 0.0)] == [
        0.0,
        -INF,
        0.0,
    ]
    assert log_interval(-INF, INF, 1.0) == 0.0
    for low, high in [(1.0, 1.0), (2.0, 1.0), (INF, INF), (-INF, -INF)]:
        assert log_interval(low, high, 1.0) == -INF
    assert all(
        math.isnan(log_interval(*ends))
        for ends in [(math.nan, 1.0, 1.0), (0.0, math.nan, 1.0), (0.0, 1.0, math.nan)]
    )


# --- mixture -----------------------------------------------------------------------------------------------


def test_mixture_equals_its_numpy_reference():
    residual = np.linspace(-60, 60, 241)
    on = WEIGHTS > 0
    parts = np.log(WEIGHTS[on]) + stats.norm.logpdf(residual[:, None], MEANS[on], SDS[on])
    np.testing.assert_allclose(
        d.mixture_logpdf(residual, WEIGHTS, MEANS, SDS), logsumexp(parts, axis=1), rtol=1e-12
    )
    tails = np.log(WEIGHTS[on]) + log_ndtr((residual[:, None] - MEANS[on]) / SDS[on])
    np.testing.assert_allclose(
        d.mixture_log_interval(np.full(241, -INF), residual, WEIGHTS, MEANS, SDS),
        logsumexp(tails, axis=1),
        rtol=1e-12,
        atol=1e-15,
    )


def test_mixture_of_one_component_is_the_normal_to_the_bit():
    one = np.ones(1)
    for low, high in [(-3.0, 2.0), (5.0, 5.5), (-INF, -30.0)]:
        expected = d.log_normal_interval(low - 1.0, high - 1.0, 2.0)
        assert d.log_mixture_interval(low, high, one, one, 2 * one) == expected
    assert d.log_mixture(40.0, one, one, 2 * one) == d.log_normal(39.0, 2.0)


@given(low=centre, first=width, second=width)
def test_mixture_masses_add_up(low: float, first: float, second: float):
    masses = [
        d.log_mixture_interval(a, b, WEIGHTS, MEANS, SDS)
        for a, b in [(low, low + first), (low + first, low + first + second), (low, low + first + second)]
    ]
    assert logsumexp(masses[:2]) == pytest.approx(masses[2], rel=1e-11, abs=1e-13)


def test_mixture_of_points():
    weights, means, zero = np.array([0.25, 0.75]), np.array([-1.0, 1.0]), np.zeros(2)
    assert d.log_mixture(1.0, weights, means, zero) == math.log(0.75)
    assert d.log_mixture(0.5, weights, means, zero) == -INF
    assert d.log_mixture_interval(-5.0, 0.0, weights, means, zero) == math.log(0.25)
    assert d.log_mixture_interval(-INF, INF, weights, means, zero) == pytest.approx(0.0, abs=1e-15)


# --- lognormal bias plus noise -----------------------------------------------------------------------------


@pytest.mark.parametrize("phi", [0.02, 0.3, 2.0])
@pytest.mark.parametrize("ratio", [1e-4, 1e-2, 0.3, 1.0, 7.0, 1e2, 1e4])
@pytest.mark.parametrize(
    ("latent", "noise"), [(0.0, 0.0), (2.0, -1.5), (-3.0, 2.0), (1.0, 6.0), (-0.5, -4.0)]
)
def test_biased_noise_equals_brute_force_at_all_ratios(phi: float, ratio: float, latent: float, noise: float):
    x, sd, s = 700.0, ratio * phi * 700.0, math.sqrt(math.log1p(phi**2))
    z = x * math.exp(s * latent - s * s / 2) + sd * noise
    low, high = z - 0.4 * sd, z + 0.9 * phi * x
    points = 2**20 if ratio < 1e-2 else 2**14
    expected = brute_force(lambda u: stats.norm.logpdf(z, u, sd), x, phi, points)
    assert d.log_bias_lognormal(z, x, phi, sd) == pytest.approx(expected, abs=1e-9)
    assert d.log_bias_lognormal(-z, -x, phi, sd) == d.log_bias_lognormal(z, x, phi, sd)
    expected = brute_force(lambda u: log_ndtr((u - high) / sd), x, phi, points)
    assert d.log_bias_lognormal_interval(high, INF, x, phi, sd) == pytest.approx(expected, abs=1e-9)
    assert d.log_bias_lognormal_interval(-INF, -high, -x, phi, sd) == pytest.approx(expected, abs=1e-9)
    beyond = d.log_bias_lognormal_interval(low, high, x, phi, sd)
    whole = brute_force(lambda u: log_ndtr((u - low) / sd), x, phi, points)
    assert logsumexp([beyond, expected]) == pytest.approx(whole, abs=1e-9)


@pytest.mark.parametrize(
    ("x", "phi", "sd", "z"), [(0.1, 0.3, 1.0, 20.0), (0.1, 0.31, 1.0, 19.0), (1.0, 1.5, 40.0, 600.0)]
)
def test_both_peaks_of_the_latent_value_are_found(x: float, phi: float, sd: float, z: float):
    """So far out, either the noise or the bias may be extreme: the integrand has two peaks or a shoulder."""
    expected = brute_force(lambda u: stats.norm.logpdf(z, u, sd), x, phi, end=40.0)
    assert d.log_bias_lognormal(z, x, phi, sd) == pytest.approx(expected, abs=1e-9)


def test_closed_forms_where_a_part_of_the_bias_is_missing():
    phi, s = 0.4, math.sqrt(math.log1p(0.16))
    frozen = stats.lognorm(s, scale=5.0 * math.exp(-s * s / 2))
    for z in (0.01, 2.0, 5.0, 60.0):
        assert d.log_bias_lognormal(z, 5.0, phi, 0.0) == pytest.approx(frozen.logpdf(z), rel=1e-12)
        assert d.log_bias_lognormal_interval(-1.0, z, 5.0, phi, 0.0) == pytest.approx(
            frozen.logcdf(z), rel=1e-11
        )
        assert d.log_bias_lognormal_interval(-INF, -z, -5.0, phi, 0.0) == pytest.approx(
            frozen.logsf(z), rel=1e-11
        )
    assert (
        d.log_bias_lognormal(-1.0, 5.0, phi, 0.0)
        == d.log_bias_lognormal_interval(-2.0, 0.0, 5.0, phi, 0.0)
        == -INF
    )
    assert d.log_bias_lognormal(3.0, 0.0, phi, 2.0) == d.log_normal(3.0, 2.0)
    assert d.log_bias_lognormal(3.0, 1.0, 0.0, 2.0) == d.log_normal(2.0, 2.0)
    assert d.log_bias_lognormal_interval(1.0, 4.0, 1.0, 0.0, 2.0) == d.log_normal_interval(0.0, 3.0, 2.0)
    assert d.log_bias_lognormal(0.0, 0.0, phi, 0.0) == 0.0


@pytest.mark.parametrize("z", [1e-3, 0.8, 1.0, 1.2, 30.0])
def test_vanishing_noise_leads_to_the_closed_form(z: float):
    """The relative difference is of the order of the square of sd / (phi x), here below 1e-10."""
    near = d.log_bias_lognormal(z, 1.0, 0.3, 1e-10)
    assert near == pytest.approx(d.log_bias_lognormal(z, 1.0, 0.3, 0.0), abs=1e-9)


@given(
    low=st.floats(-20, 20),
    first=width,
    second=width,
    phi=st.floats(0.01, 3),
    ratio=st.floats(-4, 4),
    x=st.floats(0.1, 10),
)
def test_biased_masses_add_up(low: float, first: float, second: float, phi: float, ratio: float, x: float):
    sd = 10.0**ratio * phi * x
    low, first, second = (low * sd + x, first * sd, second * phi * x)
    cuts = [low, low + first, low + first + second]
    masses = [
        d.log_bias_lognormal_interval(cuts[i], cuts[j], x, phi, sd) for i, j in [(0, 1), (1, 2), (0, 2)]
    ]
    if masses[2] > -300:
        assert logsumexp(masses[:2]) == pytest.approx(masses[2], abs=3e-9)


@pytest.mark.parametrize("ratio", [0.02, 0.5, 30.0])
def test_biased_density_integrates_to_the_mass(ratio: float):
    nodes, weights = np.polynomial.legendre.leggauss(60)
    x, phi, sd = -3.0, 0.3, 0.9 * ratio
    low, high = x - 2 * sd - 0.5, x + sd + 0.5
    z = (low + high) / 2 + (high - low) / 2 * nodes
    density = d.bias_lognormal_logpdf(z, np.full(60, x), phi, np.full(60, sd))
    mass = math.log(weights @ np.exp(density) * (high - low) / 2)
    assert d.log_bias_lognormal_interval(low, high, x, phi, sd) == pytest.approx(mass, abs=1e-8)
    assert d.log_bias_lognormal_interval(-INF, INF, x, phi, sd) == pytest.approx(0.0, abs=1e-9)


@given(z=st.floats(-5, 20), power=st.integers(-60, 60), ratio=st.floats(-4, 4))
def test_stretching_everything_stretches_the_biased_density(z: float, power: int, ratio: float):
    unit = d.log_bias_lognormal(z, 2.0, 0.5, 10.0**ratio)
    stretch = 2.0**power
    stretched = d.log_bias_lognormal(z * stretch, 2.0 * stretch, 0.5, 10.0**ratio * stretch)
    assert stretched + power * math.log(2.0) == pytest.approx(unit, rel=1e-12, abs=1e-10)


def test_hopeless_arguments_give_an_answer_and_end():
    assert d.log_bias_lognormal(INF, 1.0, 0.3, 1.0) == d.log_bias_lognormal(1e200, 1.0, 0.3, 1e-200) == -INF
    assert d.log_bias_lognormal_interval(INF, INF, 1.0, 0.3, 1.0) == -INF
    assert math.isfinite(d.log_bias_lognormal_interval(1e200, INF, 1.0, 0.3, 1e-200))
    assert math.isfinite(d.log_bias_lognormal(0.0, 1.0, 0.3, 1e-9))
    for k in range(4):
        arguments = [1.0, 1.0, 0.3, 1.0]
        arguments[k] = math.nan
        assert math.isnan(d.log_bias_lognormal(*arguments))
        assert math.isnan(d.log_bias_lognormal_interval(-1.0, *arguments))


# --- drivers -----------------------------------------------------------------------------------------------

MIXTURE = (WEIGHTS, MEANS, SDS)
DRIVERS = {
    "normal": (
        d.normal_logpdf,
        d.log_normal,
        "z sd",
        d.normal_log_interval,
        d.log_normal_interval,
        "z high sd",
    ),
    "laplace": (
        d.laplace_logpdf,
        d.log_laplace,
        "z sd",
        d.laplace_log_interval,
        d.log_laplace_interval,
        "z high sd",
    ),
    "mixture": (
        d.mixture_logpdf,
        d.log_mixture,
        "z",
        d.mixture_log_interval,
        d.log_mixture_interval,
        "z high",
    ),
    "bias": (
        d.bias_lognormal_logpdf,
        d.log_bias_lognormal,
        "z x phi sd",
        d.bias_lognormal_log_interval,
        d.log_bias_lognormal_interval,
        "z high x phi sd",
    ),
}


@pytest.mark.parametrize("law", DRIVERS)
def test_drivers_equal_the_scalars_and_read_read_only_arrays(law: str):
    rng = np.random.default_rng(11)
    arrays: dict[str, Floats] = {
        "z": rng.normal(0, 4, 50),
        "sd": rng.exponential(size=50),
        "x": rng.normal(1, 2, 50),
    }
    arrays["high"] = arrays["z"] + rng.exponential(size=50)
    arrays["sd"][::7] = arrays["x"][::5] = 0.0
    for values in arrays.values():
        values.flags.writeable = False
    shared = MIXTURE if law == "mixture" else ()
    driver, scalar, names, interval_driver, interval, interval_names = DRIVERS[law]
    for each, one, wanted in [(driver, scalar, names), (interval_driver, interval, interval_names)]:
        got = each(*[arrays.get(name, 0.3) for name in wanted.split()], *shared)
        rows = [[arrays[name][i] if name in arrays else 0.3 for name in wanted.split()] for i in range(50)]
        np.testing.assert_array_equal(got, [one(*row, *shared) for row in rows])


# --- the normal distribution function ----------------------------------------------------------------------


def test_log_normal_cdf_keeps_its_digits_in_both_tails():
    x = np.concatenate([np.linspace(-37, 37, 1001), [-0.999999, -1.0, -1.000001]])
    logs = [d.log_normal_cdf(v) for v in x]
    np.testing.assert_allclose(logs, log_ndtr(x), rtol=1e-12)


@pytest.mark.parametrize("x", [-38.0, -100.0, -1e3, -1e4])
def test_log_normal_cdf_far_out_equals_its_continued_fraction(x: float):
    fraction = -x
    for k in range(60, 0, -1):
        fraction = -x + k / fraction
    expected = -0.5 * x * x - 0.5 * math.log(2 * math.pi) - math.log(fraction)
    assert d.log_normal_cdf(x) == pytest.approx(expected, rel=1e-13)


def test_log_normal_cdf_at_the_ends():
    assert d.log_normal_cdf(-INF) == -INF
    assert d.log_normal_cdf(INF) == 0.0

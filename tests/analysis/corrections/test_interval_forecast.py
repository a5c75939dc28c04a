"""What noise costs: the index and the inflation of a release, and the forecast of both before it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from maskwell.analysis.corrections import interval_forecast as module
from maskwell.analysis.corrections.design_arrays import CorrectionRequest, read_formula
from maskwell.analysis.corrections.efficiency_index import efficiency
from maskwell.analysis.corrections.fuller_moments import solve_moments
from maskwell.analysis.corrections.glm import FAMILIES, fit_ordinary
from maskwell.analysis.corrections.interval_forecast import Forecast, forecast
from maskwell.analysis.corrections.noise_moments import noised_columns
from maskwell.card import NoiseCard
from maskwell.errors import BadPlan
from maskwell.masks import (
    BiasNoise,
    Chain,
    CodeNoise,
    CorrelatedNoise,
    Grouping,
    IndependentNoise,
    MixtureNoise,
    RankSwap,
    Subsample,
)

from .corrections_cases import make_table, released

MODEL = "y ~ x1 + x2 + sex"
LINEAR = FAMILIES["gaussian"]
MASKS = {
    "independent": IndependentNoise(("x1", "x2"), variance_ratio=0.3),
    "on the response too": CorrelatedNoise(("y", "x1", "x2"), sd_ratio=0.6),
    "moments kept": CorrelatedNoise(("x2", "x1"), sd_ratio=0.6, keep="moments"),
    "laplace": IndependentNoise(("x1", "x2"), variance_ratio=0.3, shape="laplace"),
    "mixture": MixtureNoise(("x1", "x2"), variance_ratio=0.3, within_variance_ratio=0.02),
    "bias": BiasNoise(("x1",), bias_sd=0.15, sd_ratio=0.3),
    "lognormal bias": BiasNoise(("x1",), bias_sd=0.15, sd_ratio=0.3, shape="lognormal"),
}


@pytest.mark.parametrize("mask", MASKS)
def test_the_forecast_is_the_spread_of_estimates_over_fresh_noise(mask):
    """Given the file, corrected estimates vary by the forecast variance less the ordinary one."""
    table, runs = make_table(1_000), 200
    found = forecast(MODEL, table, MASKS[mask])
    named = read_formula(MODEL, table)
    noised = noised_columns(MASKS[mask].card(table), table, named.columns, None, released=False)
    truth, _ = module._truth(named, CorrectionRequest(MODEL, LINEAR), noised.columns)
    noisy = module._noisy(truth, noised, seed=77)
    estimates = np.array([solve_moments(noisy(number)).coefficients for number in range(runs)])
    ratios = 1 + np.array([found.widening[name] for name in found.names])
    expected = np.array(found.ordinary_errors) * np.sqrt(ratios**2 - 1)
    # 4 standard errors of an sd over the runs, and 5% for terms of higher order at 1,000 records.
    np.testing.assert_allclose(
        estimates.std(axis=0, ddof=1) / expected, 1.0, atol=4 / np.sqrt(2 * runs) + 0.05
    )


def test_the_forecast_is_what_the_release_then_shows():
    table = make_table(20_000)
    for mask in (MASKS["independent"], MASKS["moments kept"]):
        before, after = forecast(MODEL, table, mask), efficiency(MODEL, released(mask, table))
        for name, wider in before.widening.items():
            assert after.inflation[name] == pytest.approx(1 + wider, rel=0.04)


def test_efficiency_has_its_closed_form_for_one_predictor():
    """Fuller 1987, 1.2: with x and residuals of variance 1 and noise s: (1 + s)(1 + s) + s^2 times the variance."""
    rng, noise = np.random.default_rng(1), 0.6
    x = rng.standard_normal(40_000)
    table = make_table(40_000, x1=x, y=x + rng.standard_normal(40_000))
    found = efficiency("y ~ x1", released(IndependentNoise(("x1",), variance=noise), table))
    inflation = np.sqrt((1 + noise) ** 2 + noise**2)
    assert found.inflation["x1"] == pytest.approx(inflation, rel=0.03)
    assert found.index == pytest.approx(1 / (1 + noise), rel=0.03)
    assert found.relative == pytest.approx(1 / (inflation**2 * (1 + noise)), rel=0.06)
    assert found.index > 0.6 > 0.3 > found.relative  # the index is not the efficiency of the estimates
    assert "determinantal index 0.6" in repr(found)
    assert found.to_dict()["inflation"]["x1"] == found.inflation["x1"]


def test_limits_are_simulated():
    table = make_table(2_000)
    plain = forecast(MODEL, table, MASKS["independent"])
    clamped = replace(MASKS["independent"], limits=(("x1", 2, 4), ("x2", 8, 12)))
    harder = forecast(MODEL, table, clamped)
    assert harder.method.code == "analysis.forecast_by_simulation"
    assert plain.method.code == "analysis.forecast_asymptotic"
    assert harder.widening["x1"] > plain.widening["x1"] > 0.2


def test_other_families_are_simulated():
    table = make_table(2_000)
    logit = forecast("hit ~ x1 + sex", table, MASKS["laplace"], family="logit")
    assert logit.method.code == "analysis.forecast_by_simulation"
    assert logit.widening["x1"] > 0.05 > logit.errors["x1"] > 0
    assert logit.widening["sex[m]"] < logit.widening["x1"]


def test_numbers_and_categories_with_noise_are_forecast_together():
    table = make_table(1_500)
    number = IndependentNoise(("x1",), variance_ratio=0.3)
    both = Chain((CodeNoise("sex", variance=0.25), number))
    for formula, family in (
        ("y ~ x1 * sex + x2", "gaussian"),
        ("count ~ x1 + sex + offset(0.1 * x2)", "poisson"),
    ):
        alone, found = (
            forecast(formula, table, number, family=family),
            forecast(formula, table, both, family=family),
        )
        errors = np.hypot(alone.errors["sex[m]"], found.errors["sex[m]"])
        assert found.widening["sex[m]"] > alone.widening["sex[m]"] + 2 * errors
        assert found.widening["x1"] > 0.1


def test_sentences_say_it():
    table = make_table(2_000)
    found = forecast(MODEL, table, MASKS["independent"])
    wider = f"{found.widening['x1']:.0%}"
    assert found.sentences[0] == f"this noise will widen the interval of x1 by {wider}"
    assert len(found.sentences) == 3
    assert f"{wider}" in repr(found)
    assert found.to_dict()["sentences"] == list(found.sentences)
    nothing = forecast("y ~ sex", table, MASKS["independent"])
    assert nothing.sentences == ("this noise will hardly widen the interval of sex[m]",)
    many = Forecast("y ~ x", "gaussian", ("Intercept", "x"), {"Intercept": 0.1, "x": 2.5})
    assert many.sentences == ("this noise will make the interval of x 3.5 times as wide",)


def test_cards_masks_and_maskings_say_the_same():
    table, mask = make_table(500), MASKS["independent"]
    card = mask.card(table)
    assert isinstance(card, NoiseCard)
    assert forecast(MODEL, table, mask) == forecast(MODEL, table, card)
    with pytest.raises(BadPlan, match="a mask or a noise card"):
        forecast(MODEL, table, "noise")


def test_a_subsample_widens_every_interval():
    table = make_table(1_000)
    half = forecast(MODEL, table, Chain((MASKS["independent"], Subsample(0.5))))
    whole = forecast(MODEL, table, MASKS["independent"])
    for name, wider in whole.widening.items():
        assert half.widening[name] == pytest.approx((1 + wider) * np.sqrt(2) - 1)


@pytest.mark.parametrize(
    ("formula", "mask"),
    [
        (MODEL, Grouping("sex", groups={"all": ("f", "m")})),
        ("y ~ x2", IndependentNoise(("y",), variance_ratio=0.1, limits=(("y", -1, 1),))),
        (MODEL, RankSwap(("x1",), window_ratio=0.1)),
        ("y ~ I(x1**2)", MASKS["independent"]),
        (MODEL, IndependentNoise(("x2",), variance_ratio=0.1, transform="log")),
        (MODEL, IndependentNoise(("y", "x1"), variance_ratio=0.1, limits=(("y", -1, 1),))),
    ],
)
def test_what_cannot_be_forecast_is_said(formula, mask):
    found = forecast(formula, make_table(300), mask)
    assert found.widening == {}
    assert "cannot be forecast" in found.sentences[0]
    assert "cannot be forecast" in repr(found)


def test_groups_and_unknown_columns_are_refused():
    with pytest.raises(BadPlan, match="leave them out"):
        forecast("y ~ x1 + (1|school)", make_table(300), MASKS["independent"])
    with pytest.raises(BadPlan, match="x3"):
        forecast("y ~ x3", make_table(300), MASKS["independent"])


def test_ordinary_errors_are_those_of_the_true_fit():
    table = make_table(500)
    found = forecast(MODEL, table, MASKS["mixture"])
    named = read_formula(MODEL, table)
    truth, fitted = module._truth(named, CorrectionRequest(MODEL, LINEAR), ())
    np.testing.assert_allclose(
        found.ordinary_errors, np.sqrt(np.diag(fit_ordinary(truth.data, LINEAR).covariance))
    )
    np.testing.assert_allclose(fitted.coefficients, np.linalg.lstsq(truth.data.design, truth.data.y)[0])


@pytest.mark.parametrize("family", ["ordered", "negative binomial", "nb"])
def test_families_without_a_forecast_are_refused_with_those_that_have_one(family):
    with pytest.raises(BadPlan, match=r"forecasts know: these are gaussian, binary, logit, probit, poisson$"):
        forecast("y ~ x1", make_table(300), IndependentNoise(("x1",), variance_ratio=0.2), family=family)


def test_the_cost_of_noise_is_of_linear_models():
    release = released(IndependentNoise(("x1",), variance_ratio=0.2), make_table(300))
    assert efficiency("y ~ x1", release, family="normal") == efficiency("y ~ x1", release)
    with pytest.raises(BadPlan, match=r"efficiency is for gaussian models, not for family 'binary'.*fit"):
        efficiency("y ~ x1", release, family="binary")

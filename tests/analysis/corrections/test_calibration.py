"""Regression calibration: the moment correction where that exists, an approximation elsewhere, with honest errors."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from maskwell.analysis.corrections.calibration import calibrate, solve_calibrated
from maskwell.analysis.corrections.cross_checks import moment_correction, regression_calibration
from maskwell.analysis.corrections.fuller_moments import solve_moments
from maskwell.analysis.corrections.glm import FAMILIES, fit_ordinary
from maskwell.errors import BadPlan
from maskwell.masks import BiasNoise, CorrelatedNoise, IndependentNoise
from maskwell.notes import has_code

from .corrections_cases import PROBLEM_TRUTH, make_problem, make_table, released


def test_for_linear_models_it_is_the_moment_correction():
    problem = make_problem(np.random.default_rng(1), 500)
    ours, moments = solve_calibrated(problem, FAMILIES["gaussian"]), solve_moments(problem)
    np.testing.assert_allclose(ours.estimates, moments.estimates, rtol=1e-8)
    np.testing.assert_allclose(ours.joint, moments.joint, rtol=1e-5, atol=1e-8)


def test_from_a_release_it_is_the_moment_correction_too():
    release = released(CorrelatedNoise(("y", "x1", "x2"), sd_ratio=0.6, keep="moments"), make_table(800))
    ours, moments = (f("y ~ x1 + x2 + sex", release) for f in (regression_calibration, moment_correction))
    np.testing.assert_allclose(ours.estimates, moments.estimates, rtol=1e-7)
    np.testing.assert_allclose(ours.standard_errors, moments.standard_errors, rtol=1e-4)


def test_without_noise_it_is_the_ordinary_fit():
    problem = make_problem(np.random.default_rng(2), 500, family="logit")
    silent = replace(problem, covariance=np.zeros((2, 2)))
    ours, ordinary = (
        f(x, FAMILIES["logit"]) for f, x in ((solve_calibrated, silent), (fit_ordinary, problem.data))
    )
    np.testing.assert_allclose(ours.estimates[:4], ordinary.coefficients, rtol=1e-8)
    np.testing.assert_allclose(ours.joint[:4, :4], ordinary.sandwich, rtol=1e-4)


def test_logistic_estimates_are_nearly_right_with_honest_standard_errors():
    """With noise of an eighth of the signal's variance it is right to 4%, unadjusted slopes are 10% off."""
    rng, runs = np.random.default_rng(3), 100
    problems = [make_problem(rng, 700, family="logit", noise=0.4) for _ in range(runs)]
    found = [solve_calibrated(problem, FAMILIES["logit"]) for problem in problems]
    naive = np.array([fit_ordinary(problem.data, FAMILIES["logit"]).coefficients for problem in problems])
    estimates = np.array([one.estimates[:4] for one in found])
    spread = estimates.std(axis=0, ddof=1)
    allowed = 4 * spread / np.sqrt(runs) + 0.04
    assert (np.abs(estimates.mean(axis=0) - PROBLEM_TRUTH) < allowed).all()
    assert naive[:, 1].mean() < 0.9
    errors = np.sqrt(np.mean([np.diag(one.joint)[:4] for one in found], axis=0))
    np.testing.assert_allclose(errors / spread, 1.0, atol=4 / np.sqrt(2 * runs))


def test_the_calibrations_own_uncertainty_is_in_the_standard_errors():
    problem = make_problem(np.random.default_rng(4), 300, noise=2.0)
    found = solve_calibrated(problem, FAMILIES["gaussian"])
    kept = calibrate(problem)
    assert len(kept.used) == 2
    assert (np.array(found.attenuation) < 0.8).all()
    plain = fit_ordinary(problem.data, FAMILIES["gaussian"])
    assert found.joint[1, 1] > plain.joint[1, 1]


@pytest.mark.parametrize(
    ("family", "response"), [("logit", "hit"), ("probit", "hit"), ("poisson", "count"), ("binary", "hit")]
)
def test_every_family_moves_slopes_away_from_zero(family, response):
    release = released(IndependentNoise(("x1", "x2"), variance_ratio=0.2), make_table(3_000))
    found = regression_calibration(f"{response} ~ x1 + x2 + sex", release, family=family)
    assert found["x1"] > found.unadjusted[1] > 0
    assert has_code(found.notes, "analysis.approximate_family", "analysis.approximate_interactions")
    assert "sigma" not in found.names


def test_what_it_cannot_correct_is_refused():
    with pytest.raises(BadPlan, match="depends on the true value"):
        regression_calibration(
            "y ~ x1", released(BiasNoise(("x1",), bias_sd=0.1, sd_ratio=0.2), make_table(300))
        )
    noised = released(IndependentNoise(("count", "x1"), variance_ratio=1.0), make_table(300))
    with pytest.raises(BadPlan, match="only gaussian models"):
        regression_calibration("count ~ x1", noised, family="poisson")
    with pytest.raises(BadPlan, match="0 or 1"):
        regression_calibration("y ~ x1", noised, family="logit")
    problem = make_problem(np.random.default_rng(6), 200)
    with pytest.raises(BadPlan, match="larger than the signal"):
        solve_calibrated(
            replace(problem, covariance=problem.covariance + 5 * np.eye(3)), FAMILIES["gaussian"]
        )

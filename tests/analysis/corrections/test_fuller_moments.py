"""Moment correction: known truths, honest standard errors, and the columns it refuses."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from maskwell.analysis.corrections.cross_checks import moment_correction
from maskwell.analysis.corrections.design_arrays import CorrectionRequest, read_problem
from maskwell.analysis.corrections.fuller_moments import solve_moments
from maskwell.analysis.corrections.glm import FAMILIES, fit_ordinary
from maskwell.analysis.corrections.problem import CorrectionProblem
from maskwell.errors import BadInput, BadPlan, NoLaw
from maskwell.laws import Power
from maskwell.masks import (
    BiasNoise,
    Chain,
    CodeNoise,
    Coding,
    CorrelatedNoise,
    IndependentNoise,
    MixtureNoise,
    Pram,
    RankSwap,
    Recompute,
)
from maskwell.notes import Note, has_code

from .corrections_cases import PROBLEM_TRUTH, TRUTH, columns, make_problem, make_table, released

MODEL = "y ~ x1 + x2 + sex"
LINEAR = FAMILIES["gaussian"]


def off(found, truth=TRUTH) -> dict[str, float]:
    """How many standard errors each coefficient is off."""
    errors = dict(zip(found.names, found.standard_errors, strict=True))
    return {name: (found[name] - value) / errors[name] for name, value in truth.items()}


def test_kims_noise_on_response_and_predictor_needs_their_covariance():
    """Kim's noise at c = .5: the unadjusted slope is right, and a variance-only correction gives 1.25 for 1.00."""
    rng, x1 = np.random.default_rng(8), columns(20_000, 1)["x1"]
    table = make_table(20_000, x1=x1, y=x1 + 0.7 * rng.standard_normal(20_000))
    release = released(CorrelatedNoise(("y", "x1"), sd_ratio=0.5), table)
    problem = read_problem(CorrectionRequest("y ~ x1", LINEAR), release).problem
    alone = problem.loadings.copy()
    alone[:, 0] = 0.0
    variance_only = solve_moments(replace(problem, loadings=alone))
    found = moment_correction("y ~ x1", release)
    assert abs(found["x1"] - 1.0) < 4 * found.standard_errors[1]
    assert abs(found.unadjusted[1] - 1.0) < 4 * found.unadjusted_errors[1]
    assert abs(variance_only.coefficients[1] - 1.25) < 4 * np.sqrt(variance_only.joint[1, 1])


MASKS = {
    "independent": IndependentNoise(("x1", "x2"), variance_ratio=0.3),
    "laplace": IndependentNoise(("x1", "x2"), variance_ratio=0.3, shape="laplace"),
    "kim": CorrelatedNoise(("x1", "x2"), sd_ratio=0.6),
    "kim on all": CorrelatedNoise(("y", "x1", "x2"), sd_ratio=0.6),
    "shlomo": CorrelatedNoise(("x1", "x2"), sd_ratio=0.6, keep="moments"),
    "shlomo on all": CorrelatedNoise(("x1", "y", "x2"), sd_ratio=0.6, keep="moments"),
    "mixture": MixtureNoise(("x1", "x2"), variance_ratio=0.3, within_variance_ratio=0.1),
    "joint mixture": MixtureNoise(
        ("x1", "x2"), variance_ratio=0.3, within_variance_ratio=0.1, components=3, correlated=True
    ),
    "rotated mixture": MixtureNoise(
        ("x1", "x2"), variance_ratio=0.3, within_variance_ratio=0.1, correlated=True
    ),
    "bias": BiasNoise(("x1", "x2"), bias_sd=0.1, sd_ratio=0.3),
    "lognormal bias": BiasNoise(("x1", "x2"), bias_sd=0.1, sd_ratio=0.3, shape="lognormal"),
    "two parts": Chain(
        (IndependentNoise(("x1",), variance_ratio=0.3), IndependentNoise(("y", "x2"), variance_ratio=0.2))
    ),
}


@pytest.mark.parametrize("mask", MASKS)
def test_the_true_coefficients_are_found_under_every_law_it_takes(mask):
    found = moment_correction(MODEL, released(MASKS[mask], make_table(12_000)))
    assert max(map(abs, off(found).values())) < 4
    assert abs(found["sigma"] - 1) < 4 * found.standard_errors[-1]
    if mask not in ("kim on all", "shlomo on all"):
        assert abs(found.unadjusted[1] - 1) > 4 * found.unadjusted_errors[1]


def test_estimates_are_unbiased_and_their_standard_errors_right():
    rng, runs = np.random.default_rng(11), 300
    solved = [solve_moments(make_problem(rng, 400)) for _ in range(runs)]
    estimates = np.array([one.estimates for one in solved])
    errors = np.sqrt(np.mean([np.diag(one.joint) for one in solved], axis=0))
    spread = estimates.std(axis=0, ddof=1)
    truth = np.append(PROBLEM_TRUTH, 1.0)
    # Moments are unbiased to the order 1/n: half a percent of bias is allowed for at 400 records.
    assert (np.abs(estimates.mean(axis=0) - truth) < 4 * spread / np.sqrt(runs) + 0.005).all()
    np.testing.assert_allclose(errors / spread, 1.0, atol=4 / np.sqrt(2 * runs) + 0.03)


def test_without_noise_it_is_the_ordinary_fit():
    problem = make_problem(np.random.default_rng(2), 300)
    silent = replace(problem, covariance=np.zeros((3, 3)))
    ours, ordinary = solve_moments(silent), fit_ordinary(problem.data, LINEAR)
    np.testing.assert_allclose(ours.estimates, ordinary.estimates, rtol=1e-10)
    np.testing.assert_allclose(ours.joint, ordinary.joint, rtol=1e-8)


def test_rounding_to_a_unit_of_the_noise_is_part_of_it():
    table = make_table(60_000)
    schema = table.schema.changed({"x1": replace(table.schema["x1"], unit=1)})
    release = released(IndependentNoise(("x1",), variance=1.0), replace(table, schema=schema))
    read = read_problem(CorrectionRequest("y ~ x1 + x2 + sex", LINEAR), release)
    assert read.problem.covariance[0, 0] == pytest.approx(1 + 1 / 12)
    assert max(map(abs, off(moment_correction(MODEL, release)).values())) < 4
    without = solve_moments(replace(read.problem, covariance=np.array([[1.0]])))
    assert abs(without.coefficients[1] - 1) > 4 * np.sqrt(without.joint[1, 1])


def test_known_errors_of_measurement_add_to_the_noise():
    table, rng = make_table(12_000), np.random.default_rng(3)
    erring = make_table(12_000, x1=table.floats("x1") + np.sqrt(0.2) * rng.standard_normal(12_000))
    release = released(CorrelatedNoise(("x1", "x2"), sd_ratio=0.4, keep="moments"), erring)
    assert max(map(abs, off(moment_correction(MODEL, release, measurement_error={"x1": 0.2})).values())) < 4
    assert max(map(abs, off(moment_correction(MODEL, release)).values())) > 4
    with pytest.raises(BadPlan, match="no column of the formula"):
        moment_correction("y ~ x2", release, measurement_error={"x1": 0.2})
    with pytest.raises(BadPlan, match="is a mapping"):
        moment_correction("y ~ x1", release, measurement_error=0.2)
    with pytest.raises(BadPlan, match="is a variance"):
        moment_correction("y ~ x1", release, measurement_error={"x1": -1.0})


def test_interactions_with_clean_columns_are_corrected():
    given = columns(20_000, 4)
    sex = (given["sex"] == "m").astype(float)
    table = make_table(20_000, 4, y=given["y"] + 0.5 * sex * given["x1"])
    found = moment_correction(
        "y ~ x1 * sex + x2", released(CorrelatedNoise(("y", "x1", "x2"), sd_ratio=0.6), table)
    )
    assert max(map(abs, off(found, TRUTH | {"x1:sex[m]": 0.5}).values())) < 4


def test_weights_are_counts_of_records():
    table = make_table(500)
    release = released(MASKS["kim on all"], table)
    found = moment_correction(MODEL, release, weights="weight")
    each = release.table.floats("weight").astype(np.int64)
    repeated = release.table.take(np.repeat(np.arange(500), each))
    plain = moment_correction(MODEL, replace(release, table=repeated))
    np.testing.assert_allclose(found.estimates[:-1], plain.estimates[:-1], rtol=1e-9)
    assert Note("analysis.weighted_records", {"column": "weight"}) in found.notes
    with pytest.raises(BadPlan, match="cannot hold weights"):
        moment_correction(MODEL, release, weights="sex")


def test_records_with_missing_values_are_left_out_and_said():
    y = columns(500, 1)["y"]
    y[:20] = np.nan
    release = released(MASKS["kim"], make_table(500, y=y))
    found = moment_correction(MODEL, release)
    assert found.records == 480
    assert Note("analysis.incomplete_records", {"count": 20}) in found.notes
    few = make_table(500, y=np.where(np.arange(500) < 24, y, np.nan))
    with pytest.raises(BadInput, match="4 complete records"):
        moment_correction(MODEL, released(MASKS["kim"], few))


REFUSED = {
    "clamped": (IndependentNoise(("x1",), variance_ratio=0.3, limits=(("x1", 2, 4),)), "clamped at a limit"),
    "coded": (Chain((IndependentNoise(("x1",), variance_ratio=0.3), Coding("x1", top=5))), "'x1'"),
    "log": (IndependentNoise(("x2",), variance_ratio=0.1, transform="log"), "log scale"),
    "power": (IndependentNoise(("x2",), variance_ratio=0.1, spread=Power(0.5)), "depends on the true value"),
    "pram": (Pram("sex", stay=0.9), "is a category"),
    "codes": (CodeNoise("sex", variance=0.2), "is a category"),
    "total": (
        Chain((IndependentNoise(("x2",), variance_ratio=0.1), Recompute("x1", {"x2": 0.5}))),
        "write the parts",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_columns_that_moments_cannot_undo_are_refused(case):
    mask, why = REFUSED[case]
    with pytest.raises(BadPlan, match=why) as refusal:
        moment_correction(MODEL, released(mask, make_table(500)))
    assert case == "total" or "use fit alone" in str(refusal.value)


def test_limits_that_no_value_reached_do_not_matter():
    far = IndependentNoise(("x1",), variance_ratio=0.3, limits=(("x1", -50, 50),))
    assert moment_correction(MODEL, released(far, make_table(500))).records == 500


def test_coarse_units_are_refused():
    table = make_table(500)
    schema = table.schema.changed({"x1": replace(table.schema["x1"], unit=1)})
    with pytest.raises(BadPlan, match="rounded to a unit"):
        moment_correction(
            MODEL, released(IndependentNoise(("x1",), variance=0.5), replace(table, schema=schema))
        )


def test_exchanged_columns_have_no_law():
    with pytest.raises(NoLaw, match="swapped by rank"):
        moment_correction(MODEL, released(RankSwap(("x1",), window_ratio=0.1), make_table(200)))


@pytest.mark.parametrize(
    ("formula", "why"),
    [
        ("y ~ I(x1**2) + x2", "not linear"),
        ("y ~ x1 * x2", "not linear"),
        ("y ~ log(x2)", "not linear"),
        ("y ~ x2 + (1|school)", "effects of groups"),
        ("y ~ x2 + school", "text"),
        ("sex ~ x1", "is a category"),
        ("y ~ x3", "x3"),
    ],
)
def test_formulas_it_cannot_correct_are_refused(formula, why):
    with pytest.raises(BadPlan, match=why):
        moment_correction(formula, released(MASKS["kim"], make_table(300)))


def test_noise_larger_than_the_signal_is_said():
    rng = np.random.default_rng(6)
    problem: CorrectionProblem = make_problem(rng, 200)
    with pytest.raises(BadPlan, match="larger than the signal"):
        solve_moments(replace(problem, covariance=problem.covariance + 5 * np.eye(3)))


def test_a_residual_variance_below_zero_is_said():
    table = make_table(300)
    near = 1 + table.floats("x2")
    release = released(IndependentNoise(("y",), variance=1.0), make_table(300, y=near), seed=2)
    found = moment_correction("y ~ x2", release, measurement_error={"y": 1.0})
    assert np.isnan(found["sigma"])
    assert has_code(found.notes, "analysis.residual_variance")
    assert next(line for line in repr(found).splitlines() if "sigma" in line).split()[1:3] == ["-", "-"]


def test_the_result_says_what_it_is():
    found = moment_correction(MODEL, released(MASKS["kim"], make_table(500)))
    lines = repr(found).splitlines()
    assert lines[0] == "moment correction (Fuller), gaussian, 500 records"
    assert [line.split()[0] for line in lines[2:7]] == ["Intercept", "x1", "x2", "sex[m]", "sigma"]
    low, high = found.intervals(0.9)["x1"]
    assert (high - low) / 2 == pytest.approx(1.6448536 * found.standard_errors[found.names.index("x1")])
    assert found.to_dict()["estimates"] == list(found.estimates)
    with pytest.raises(BadPlan, match="between 0 and 1"):
        found.intervals(95)
    with pytest.raises(BadPlan, match="there is no coefficient"):
        found["x3"]
    with pytest.raises(BadPlan, match="made to a Release"):
        moment_correction(MODEL, make_table(20))


def test_families_that_are_not_linear_are_refused_with_what_takes_them():
    release = released(IndependentNoise(("x1",), variance_ratio=0.2), make_table(300))
    assert moment_correction("y ~ x1", release, family="gaussian").names == ("Intercept", "x1", "sigma")
    with pytest.raises(BadPlan, match="for gaussian models, not for family 'binary': take regression_calib"):
        moment_correction("y ~ x1", release, family="binary")
    with pytest.raises(BadPlan, match=r"'ordered' is none that the corrections know.*use fit"):
        moment_correction("y ~ x1", release, family="ordered")

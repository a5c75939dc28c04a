"""SIMEX: the curve back to no noise, its variance, and the noise it adds."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from maskwell.analysis.corrections.cross_checks import SimexRuns, back_to_none, follow_back, simex
from maskwell.analysis.corrections.design_arrays import CorrectionRequest, read_problem
from maskwell.analysis.corrections.glm import FAMILIES, fit_ordinary
from maskwell.errors import BadPlan
from maskwell.masks import BiasNoise, CorrelatedNoise, IndependentNoise, MixtureNoise

from .corrections_cases import PROBLEM_TRUTH, make_problem, make_table, released


def test_the_curve_is_exact_for_what_it_can_be():
    amounts = np.array([0.0, 0.5, 1.0, 1.5, 2.0])
    path = np.column_stack([2 + amounts - 0.3 * amounts**2, 1 - 0.2 * amounts])
    np.testing.assert_allclose(back_to_none(amounts, path, 2), [2 - 1 - 0.3, 1.2], rtol=1e-12)


def test_the_path_is_that_of_more_noise():
    """At lambda the estimates are those of a release with (1 + lambda) times the noise: here in closed form."""
    rng = np.random.default_rng(1)
    problem = make_problem(rng, 8_000)
    plan = SimexRuns(replicates=10)
    found = follow_back(problem, FAMILIES["gaussian"], plan)
    both = np.column_stack([problem.data.y, problem.data.design])
    raw, noise = both.T @ both, problem.noise_moments()
    for k, amount in enumerate((0.0, *plan.lambdas)):
        expected = raw + amount * noise
        beta = np.linalg.solve(expected[1:, 1:], expected[1:, 0])
        np.testing.assert_allclose(found.path[k, :4], beta, atol=0.015)


def test_small_noise_is_undone_with_honest_standard_errors():
    rng, runs = np.random.default_rng(2), 50
    problems = [make_problem(rng, 300, noise=0.3) for _ in range(runs)]
    found = [follow_back(one, FAMILIES["gaussian"], SimexRuns(replicates=10)) for one in problems]
    naive = np.mean([fit_ordinary(one.data, FAMILIES["gaussian"]).coefficients for one in problems], axis=0)
    estimates = np.array([one.estimates for one in found])
    spread = estimates.std(axis=0, ddof=1)
    allowed = 4 * spread / np.sqrt(runs) + 0.01
    assert (np.abs(estimates.mean(axis=0) - np.append(PROBLEM_TRUTH, 1.0)) < allowed).all()
    assert abs(naive[1] - 1) > 0.02
    errors = np.sqrt(np.mean([np.diag(one.joint) for one in found], axis=0))
    np.testing.assert_allclose(errors / spread, 1.0, atol=4 / np.sqrt(2 * runs))


def test_without_noise_it_is_the_ordinary_fit():
    problem = make_problem(np.random.default_rng(3), 300, family="logit")
    silent = replace(problem, draw=lambda number: np.zeros((300, 2)))
    found = follow_back(silent, FAMILIES["logit"], SimexRuns(replicates=2))
    ordinary = fit_ordinary(problem.data, FAMILIES["logit"])
    np.testing.assert_allclose(found.estimates, ordinary.estimates, rtol=1e-6)
    np.testing.assert_allclose(found.joint, ordinary.joint, rtol=1e-5, atol=1e-12)


@pytest.mark.parametrize(
    "mask",
    [
        CorrelatedNoise(("y", "x1", "x2"), sd_ratio=0.5, keep="moments"),
        MixtureNoise(("x1", "y", "x2"), variance_ratio=0.3, within_variance_ratio=0.1, correlated=True),
        MixtureNoise(
            ("x2", "y", "x1"), variance_ratio=0.3, within_variance_ratio=0.1, components=4, correlated=True
        ),
        IndependentNoise(("x1", "x2"), variance_ratio=0.3, shape="laplace"),
    ],
    ids=["shlomo", "rotated mixture", "joint mixture", "laplace"],
)
def test_added_noise_has_the_covariance_of_the_law(mask):
    """Also of a part of its columns: the model has x1 and x2 alone."""
    read = read_problem(
        CorrectionRequest("count ~ x1 + x2", FAMILIES["poisson"], {"x1": 0.1}, seed=3),
        released(mask, make_table(5_000)),
    )
    assert read.problem.draw is not None
    drawn = np.concatenate([read.problem.draw(number) for number in range(4)])
    count, expected = len(drawn), read.problem.covariance
    sds = np.sqrt(np.diag(expected))
    tolerance = 4 * 1.6 * np.outer(sds, sds) / np.sqrt(count)  # Laplace noise has the largest fourth moment
    assert (np.abs(np.cov(drawn, rowvar=False) - expected) < 1.5 * tolerance).all()
    assert (np.abs(drawn.mean(axis=0)) < 4 * sds / np.sqrt(count)).all()
    np.testing.assert_array_equal(read.problem.draw(1), read.problem.draw(1))
    assert not np.array_equal(read.problem.draw(1), read.problem.draw(2))


@pytest.mark.parametrize(("family", "response"), [("gaussian", "y"), ("logit", "hit"), ("poisson", "count")])
def test_slopes_move_towards_the_truth_and_the_seed_decides(family, response):
    release = released(IndependentNoise(("x1", "x2"), variance_ratio=0.2), make_table(1_500))
    ask = {"family": family, "replicates": 8, "seed": 1}
    found = simex(f"{response} ~ x1 + x2 + sex", release, **ask)
    assert found["x1"] > found.unadjusted[1] > 0
    assert found.estimates == simex(f"{response} ~ x1 + x2 + sex", release, **ask).estimates
    assert found.estimates != simex(f"{response} ~ x1 + x2 + sex", release, **(ask | {"seed": 2})).estimates
    assert repr(found).startswith("SIMEX")


def test_what_it_cannot_do_is_refused():
    release = released(BiasNoise(("x1",), bias_sd=0.1, sd_ratio=0.2), make_table(300))
    with pytest.raises(BadPlan, match="depends on the true value"):
        simex("y ~ x1", release)
    for options, why in [
        ({"extrapolant": "quadratc"}, "quadratic"),
        ({"lambdas": (1.0,)}, "more lambdas"),
        ({"lambdas": (-1.0, 1.0)}, "above 0"),
        ({"replicates": 1}, "2 replicates"),
        ({"seed": -1}, "whole number"),
    ]:
        with pytest.raises(BadPlan, match=why):
            simex("y ~ x1", release, **options)

"""What a fit found."""

from __future__ import annotations

import json
from dataclasses import FrozenInstanceError
from typing import Any

import numpy as np
import pytest

from maskwell.errors import BadPlan


def test_it_is_frozen_and_fits_on_one_screen(make_posterior: Any) -> None:
    posterior = make_posterior()
    with pytest.raises(FrozenInstanceError):
        posterior.records = 3
    lines = repr(posterior).splitlines()
    assert len(lines) < 25
    assert max(map(len, lines)) < 120


def test_repr_says_model_noise_and_sampler(make_posterior: Any) -> None:
    lines = repr(make_posterior()).splitlines()
    assert lines[0] == "Posterior of y ~ x1 + sex + (1|school) (gaussian): 4,059 records"
    assert lines[1] == "  true values unknown: x1; exact Gibbs; 4 chains of 1,000 draws"
    assert lines[-1] == "  - x1: true counts, whole numbers from 0 on, are drawn with the rest"
    assert sum(line.startswith(("  Intercept ", "  x1 ", "  sigma ")) for line in lines) == 3


def test_repr_without_noise_or_naive_fit(make_posterior: Any) -> None:
    said = repr(make_posterior(naive=None, noised=(), notes=()))
    assert "no column carries noise" in said
    assert "unadjusted" not in said


def test_nothing_stands_beside_where_nothing_is_unknown(make_posterior: Any) -> None:
    """The unadjusted fit is the same: only the chance of its draws was shown."""
    said = make_posterior(noised=())
    assert "unadjusted" not in repr(said)
    assert said.summary()["x1"].to_dict()["bias"] is None
    assert "unadjusted" in repr(make_posterior())


def test_a_bootstrap_has_resamples_and_no_chains(make_posterior: Any) -> None:
    posterior = make_posterior(info={"resamples": 4000, "independent": True})
    said = repr(posterior)
    assert "4,000 resamples; resamples are independent" in " ".join(said.split())
    for word in ("4 chains", "R-hat", "ESS", "NOT CONVERGED"):
        assert word not in said
    assert "unadjusted: released values taken for true" in said
    assert (posterior.to_dict()["resamples"], "resamples" in make_posterior().to_dict()) == (4000, False)


def test_rounded_counts_are_said_where_the_unadjusted_fit_stands(make_posterior: Any) -> None:
    noised = {"formula": "y ~ x1", "family": "poisson", "noised": ("y",)}
    assert "a noised count rounded" in " ".join(repr(make_posterior(**noised)).split())
    assert "rounded" not in repr(make_posterior(**noised, naive=None))
    assert "rounded" not in repr(make_posterior(**(noised | {"noised": ("x1",)})))


def test_repr_has_nothing_of_a_record(make_posterior: Any) -> None:
    truths = np.full((4, 1000, 3, 1), 98765.0, np.float32)
    posterior = make_posterior(truths=truths, truth_names=("x1",))
    assert "98765" not in repr(posterior) + repr(posterior.truths("x1")) + json.dumps(posterior.to_dict())


def test_many_parameters_stay_on_one_screen(make_posterior: Any) -> None:
    from maskwell.analysis.results.draws import Draws

    names = tuple(f"x{k}" for k in range(200))
    draws = Draws(names, np.random.default_rng(1).standard_normal((4, 500, 200)))
    posterior = type(make_posterior())(draws, formula="y ~ .", records=10)
    assert "and 170 more parameters" in repr(posterior)


def test_draws_by_name(make_posterior: Any) -> None:
    nuisance = np.random.default_rng(9).standard_normal((4, 1000, 1))
    posterior = make_posterior(nuisance_names=("x1 ~ sigma",), nuisance=nuisance)
    assert posterior.draws_of("x1").shape == (4, 1000)
    assert np.array_equal(posterior["x1"], posterior.draws.values[:, :, 1])
    assert np.array_equal(posterior["x1 ~ sigma"], nuisance[:, :, 0])
    assert "x1" in posterior
    assert "x1 ~ sigma" in posterior
    assert "x9" not in posterior
    with pytest.raises(BadPlan, match=r"no parameter 'X1'.*did you mean 'x1'"):
        posterior["X1"]


def test_intervals_are_equal_tailed(make_posterior: Any) -> None:
    posterior = make_posterior()
    low, high = posterior.interval("x1", 0.5)
    draws = posterior["x1"]
    assert np.mean(draws < low) == pytest.approx(0.25, abs=1e-3)
    assert np.mean(draws > high) == pytest.approx(0.25, abs=1e-3)
    row = posterior.summary(0.5)["x1"]
    assert (row.low, row.high) == (low, high)


def test_plain_data_has_figures_alone(make_posterior: Any) -> None:
    said = json.loads(json.dumps(make_posterior().to_dict(0.8), allow_nan=False))
    assert said["formula"] == "y ~ x1 + sex + (1|school)"
    assert (said["chains"], said["draws"], said["level"]) == (4, 1000, 0.8)
    assert said["converged"] is True
    assert said["warning"] is None
    assert said["noised"] == ["x1"]
    assert set(said["parameters"]) == set(make_posterior().names)


def test_plain_data_of_chains_that_stand_still(make_posterior: Any) -> None:
    def still(values: Any) -> Any:
        values[:, :, 1] = 1.0
        return values

    said = json.loads(json.dumps(make_posterior(still).to_dict(), allow_nan=False))
    assert said["converged"] is False
    assert said["parameters"]["x1"]["r_hat"] is None


def test_prediction_needs_a_predictor(make_posterior: Any) -> None:
    with pytest.raises(BadPlan, match="keeps no columns to predict from"):
        make_posterior().predict({"x1": [1.0]})

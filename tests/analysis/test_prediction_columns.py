"""Prediction by fitted models: what new records must have."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import maskwell as mw
from maskwell.errors import BadPlan, MaskwellWarning
from maskwell.schema import Column, Schema
from maskwell.table import Table


def _fitted(formula: str) -> mw.Posterior:
    rng = np.random.default_rng(1)
    k, x, school = rng.integers(1, 4, 200), rng.uniform(1, 2, 200), rng.integers(0, 10, 200)
    columns: dict[str, Any] = {"k": k, "x": x, "y": np.log(x) + (k == 3) + rng.standard_normal(200)}
    columns["school"] = school.astype(str)
    schema = Schema(
        (
            Column("k", "integer"),
            Column("x", "continuous"),
            Column("y", "continuous"),
            Column("school", "text"),
        )
    )
    release = mw.Release(Table.from_frame(pa.table(columns), schema=schema), mw.NoiseCard())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MaskwellWarning)
        return mw.fit(formula, release, draws=20, chains=1, seed=1, naive=False)


@pytest.mark.parametrize("formula", ["y ~ C(k)", "y ~ x + T(k, 3)", "y ~ S(k):x", "y ~ x + (C(k)|school)"])
def test_a_value_of_a_coded_number_that_did_not_occur_is_refused(formula: str) -> None:
    fitted, new = _fitted(formula), {"x": 1.5, "school": "1"}
    assert len(fitted.predict(new | {"k": [1, 2, 3]})) == 3
    with pytest.raises(BadPlan, match=r"column 'k' is taken for a category.*the model knows 1, 2, 3"):
        fitted.predict(new | {"k": [1, 7]})


def test_a_number_that_is_compared_may_have_any_value() -> None:
    assert len(_fitted("y ~ I(k == 3)").predict({"k": [1, 7]})) == 2


@pytest.mark.parametrize("formula", ["y ~ log(x)", "y ~ k + offset(log(x))", "y ~ k + (log(x)|school)"])
def test_a_logarithm_of_what_has_none_is_refused_by_name(formula: str) -> None:
    fitted, new = _fitted(formula), {"k": 1, "school": "1"}
    assert np.isfinite(fitted.predict(new | {"x": [1.0, 2.0]}).mean).all()
    for value in (-1.0, 0.0, np.inf):
        with pytest.raises(BadPlan, match=r"is not a finite number for some.*'x'"):
            fitted.predict(new | {"x": [1.0, value]})


COUNT = 800


def _masked() -> tuple[mw.Release, Any]:
    """Return a release with a noised number, a noised category and a noised whole number, and the true predictors.

    A release has its records in another order; the clean response tells which is which.
    """
    rng = np.random.default_rng(3)
    is_m, k = rng.random(COUNT) < 0.4, rng.binomial(4, 0.5, COUNT) + 3
    x, w = rng.standard_normal(COUNT) + 0.5 * is_m, rng.standard_normal(COUNT)
    eta = 1 + 0.8 * x - is_m + 0.3 * w
    columns: dict[str, Any] = {"x": x, "sex": np.where(is_m, "m", "f"), "w": w, "k": k}
    columns["y"] = eta + 0.5 * rng.standard_normal(COUNT)
    columns["v"] = 0.5 * k + 0.5 * rng.standard_normal(COUNT)
    kinds = {"x": "continuous", "w": "continuous", "k": "integer", "y": "continuous", "v": "continuous"}
    schema = [
        Column(n, kinds[n]) if n in kinds else Column(n, "category", categories=("f", "m")) for n in columns
    ]
    number, whole = (mw.IndependentNoise((name,), variance_ratio=0.4) for name in "xk")
    plan = mw.Chain((number, mw.Pram(("sex",), stay=0.9), whole))
    table = Table.from_frame(pa.table(columns), schema=Schema(tuple(schema)))
    release = mw.apply(plan, table, seed=2).release
    order = np.empty(COUNT, np.int64)
    order[np.argsort(release.table.floats("y"))] = np.argsort(columns["y"])
    return release, eta[order]


RELEASE, ETA = _masked()


def _kept(formula: str, **options: Any) -> mw.Posterior:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MaskwellWarning)
        given = {"chains": 1, "draws": 600, "warmup": 200, "seed": 1, "naive": False, "keep_truths": True}
        return mw.fit(formula, RELEASE, **(given | options))


def test_intervals_of_the_fitted_records_cover_their_true_predictors() -> None:
    """At posterior means and likeliest categories, as they once were taken, 26% did."""
    found = _kept("y ~ x + sex + w").predict()
    covered = float(np.mean((found.low <= ETA) & (found.high >= ETA)))
    assert abs(covered - 0.95) < 4 * np.sqrt(0.95 * 0.05 / COUNT)


def test_a_noised_whole_number_is_taken_as_it_is() -> None:
    """It was taken for its code, counted from the least value."""
    found = _kept("v ~ k", draws=20, warmup=10)
    level, slope = found["Intercept"].ravel(), found["k"].ravel()
    np.testing.assert_allclose(found.predict({"k": [5]}).mean, (level + 5 * slope).mean())
    least = float(found.truths("k").categories[0])
    drawn = least + found.draws.truths[0, :, :, 0].astype(np.float64)
    np.testing.assert_allclose(found.predict().mean, (level[:, None] + slope[:, None] * drawn).mean(axis=0))


def test_true_values_that_were_not_kept_are_asked_for() -> None:
    found = _kept("y ~ x + w", keep_truths=False)
    assert len(found.predict({"x": [1.0], "w": [0.0]})) == 1
    with pytest.raises(BadPlan, match=r"values of x .* fit with keep_truths=True"):
        found.predict()


def test_only_the_predictors_need_be_known() -> None:
    assert len(_kept("x ~ w", keep_truths=False).predict()) == COUNT

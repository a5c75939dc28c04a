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

"""What a fit refuses because numbers cannot tell it."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import maskwell as mw
from maskwell.errors import BadPlan, MaskwellWarning
from maskwell.notes import has_code
from maskwell.schema import Column, Schema
from maskwell.table import Table

RECORDS = 300


def _release(origin: float = 0.0) -> mw.Release:
    rng = np.random.default_rng(1)
    x = rng.uniform(-15, 15, RECORDS)
    columns = {"x": x + origin, "y": x + x**2 / 20 + rng.standard_normal(RECORDS)}
    schema = Schema(tuple(Column(name, "continuous") for name in columns))
    return mw.Release(Table.from_frame(pa.table(columns), schema=schema), mw.NoiseCard())


def _fitted(formula: str, release: mw.Release, **options: Any) -> mw.Posterior:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MaskwellWarning)
        return mw.fit(formula, release, **({"draws": 20, "chains": 1, "seed": 1, "naive": False} | options))


def test_columns_that_arithmetic_cannot_tell_apart_are_refused_with_a_remedy() -> None:
    """The sd of the square was twenty times too large at 20,000, and nothing told; at 30,000 it was nan."""
    with pytest.raises(BadPlan, match=r"'x' and 'I\(x \*\* 2\)' are so nearly collinear.*center\(x\).*poly"):
        _fitted("y ~ x + I(x**2)", _release(20_000.0))
    for formula in ("y ~ center(x) + I(center(x)**2)", "y ~ poly(x, 2)", "y ~ x"):
        assert np.isfinite(_fitted(formula, _release(20_000.0)).draws.values).all()


def test_an_error_larger_than_the_column_by_far_is_refused() -> None:
    release = _release()
    own = float(release.table.floats("x").var(ddof=1))
    with pytest.raises(BadPlan, match=r"measurement_error of 'x' is 3 times the variance.*not its sd"):
        _fitted("y ~ x", release, measurement_error={"x": 3.0 * own})


def test_an_error_that_chance_makes_larger_than_the_column_is_said_and_fitted() -> None:
    release = _release()
    own = float(release.table.floats("x").var(ddof=1))
    found = _fitted("y ~ x", release, measurement_error={"x": 1.02 * own})
    (note,) = [note for note in found.notes if note.code == "analysis.weak_signal"]
    assert note.figures == {"name": "x", "reliability": 0.0}


def test_the_noise_counts_with_the_error() -> None:
    masked = mw.apply(mw.IndependentNoise(("x",), variance_ratio=0.3), _release().table, seed=1).release
    own = float(masked.table.floats("x").var(ddof=1))
    found = _fitted("y ~ x", masked, measurement_error={"x": 0.5 * own})
    assert has_code(found.notes, "analysis.weak_signal")
    with pytest.raises(BadPlan, match="which cannot be"):
        _fitted("y ~ x", masked, measurement_error={"x": 1.9 * own})


def test_a_level_that_nobody_has_rests_on_its_prior_and_that_is_said() -> None:
    """Its coefficient had the sd of its prior, 75, and nothing told."""
    rng = np.random.default_rng(1)
    codes = rng.choice(2, 600)
    values = {"y": codes + rng.standard_normal(600), "c": np.array(["a", "b"])[codes]}
    schema = Schema((Column("y", "continuous"), Column("c", "category", categories=("a", "b", "never"))))
    table = Table.from_frame(pa.table(values), schema=schema)
    masked = mw.apply(mw.Pram(("c",), stay=0.8), table, seed=1).release
    found = _fitted("y ~ c", masked, draws=500, chains=2)
    said = [str(note) for note in found.notes if note.code == "analysis.prior"]
    assert said == ["c[never] rests on its prior: the released records hardly say anything of it"]
    given = _fitted(
        "y ~ c", masked, draws=500, chains=2, priors=mw.analysis.Priors(coefficients={"c[never]": (0, 1)})
    )
    assert not has_code(given.notes, "analysis.prior")

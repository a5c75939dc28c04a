"""Priors stay weak where columns are nearly one: powers of years, products of columns far from zero."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import maskwell as mw
from maskwell.analysis.expressions import ONE, Ref
from maskwell.analysis.priors import Priors, resolve
from maskwell.analysis.system import GAUSSIAN, Equation
from maskwell.schema import Column, Schema
from maskwell.table import Table


def clean(**columns: Any) -> mw.Release:
    schema = Schema(tuple(Column(name, "continuous") for name in columns))
    return mw.Release(Table.from_frame(pa.table(columns), schema=schema), mw.NoiseCard())


@pytest.mark.parametrize("origin", [2005.0, 5000.0])
def test_a_square_of_years_is_found(origin: float) -> None:
    """The prior took the coefficient of the square for seven times too small, and nothing told."""
    rng = np.random.default_rng(1)
    since = rng.uniform(-15, 15, 400)
    y = 3 + 0.2 * since + 0.05 * since**2 + rng.standard_normal(400)
    fitted = mw.fit("y ~ x + I(x**2)", clean(x=since + origin, y=y), seed=1, naive=False)["I(x ** 2)"]
    columns = np.column_stack([np.ones(400), since, since**2])
    least, sums, *_ = np.linalg.lstsq(columns, y, rcond=None)
    error = np.sqrt(sums[0] / 397 * np.linalg.inv(columns.T @ columns)[2, 2])
    # 4,000 draws, nearly independent: the mean is off by 1/60 of an sd, the sd by 1/90 of itself
    assert abs(fitted.mean() - least[2]) < 0.1 * error
    assert abs(fitted.std() / error - 1) < 0.06


def test_a_product_with_a_column_far_from_zero_is_found() -> None:
    rng = np.random.default_rng(2)
    x, w = rng.standard_normal((2, 400))
    eta = 2 * x + w - x * w
    y = eta + rng.standard_normal(400)
    near, far = (
        mw.fit("y ~ x*w", clean(x=x, w=w + shift, y=y), seed=1, naive=False, draws=700)["x:w"]
        for shift in (0.0, 200.0)
    )
    assert abs(near.mean() - far.mean()) < 0.3 * near.std()  # 400 effective draws and more of each


def _sds(columns: Any, *names: str) -> Any:
    equation = Equation(0, GAUSSIAN, ("Intercept", *names), (ONE, *map(Ref, names)))
    response = np.linspace(-1, 1, len(columns))
    return resolve(Priors(), equation, columns, response, (), named=False).sd


def test_a_slope_is_as_wide_as_what_the_other_columns_leave() -> None:
    a, b = np.random.default_rng(3).standard_normal((2, 200))
    ones, size = np.ones(200), 10 * np.linspace(-1, 1, 200).std()
    np.testing.assert_allclose(_sds(np.column_stack([ones, a]), "a")[1] * a.std(), size)
    for other in (b, a + b, a + 0.001 * b):
        left = np.sqrt(1 - np.corrcoef(a, other)[0, 1] ** 2)
        found = _sds(np.column_stack([ones, a, other]), "a", "b")[1]
        np.testing.assert_allclose(found * a.std() * left, size, rtol=1e-6)


def test_columns_that_are_one_keep_their_own_sds() -> None:
    a = np.random.default_rng(3).standard_normal(200)
    found = _sds(np.column_stack([np.ones(200), a, 2 * a]), "a", "b")[1]
    np.testing.assert_allclose(found * a.std(), 10 * np.linspace(-1, 1, 200).std())

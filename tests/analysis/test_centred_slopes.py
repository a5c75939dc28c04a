"""Slopes of groups on columns far from zero: drawn about the means, told on the data's scale."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import maskwell as mw
from maskwell.analysis.expressions import ONE, Level, Ref
from maskwell.analysis.model_fit import about_means, on_own_scale
from maskwell.analysis.results.draws import Draws
from maskwell.analysis.system import GAUSSIAN, Effects, Equation, Factor, System, Variable
from maskwell.errors import MaskwellWarning
from maskwell.schema import Column, Schema
from maskwell.table import Table

GROUPS, SIZE = 15, 8


def _release(shift: float) -> mw.Release:
    rng = np.random.default_rng(3)
    group, x = np.repeat(np.arange(GROUPS), SIZE), 3 * rng.standard_normal(GROUPS * SIZE)
    own = rng.multivariate_normal([0, 0], [[1, 0.3], [0.3, 0.25]], GROUPS)
    y = 2 + own[group, 0] + (0.5 + own[group, 1]) * x + rng.standard_normal(len(x))
    columns = {"x": x + shift, "y": y, "s": [f"g{k}" for k in group]}
    schema = Schema((Column("x", "continuous"), Column("y", "continuous"), Column("s", "text")))
    return mw.Release(Table.from_frame(pa.table(columns), schema=schema), mw.NoiseCard())


def _fitted(shift: float) -> mw.Posterior:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MaskwellWarning)
        return mw.fit("y ~ x + (x|s)", _release(shift), draws=400, warmup=150, seed=1, naive=False)


def test_years_give_what_years_since_the_middle_give() -> None:
    """About zero, slopes of groups had an sd of 0.0004 in place of 0.4, and chains of 75 effective draws."""
    near, far = _fitted(0.0), _fitted(2000.0)
    assert far.diagnostics.ess[:-1].min() > 400  # the correlation of few groups has fewer, near and far
    for name in (
        "x",
        "sigma",
        "sd(x|s)",
    ):  # 400 effective draws and more: 4 errors of a difference are 0.3 sds
        assert abs(near[name].mean() - far[name].mean()) < 0.3 * near[name].std(), name
    new = [{"x": shift + np.array([0.0, 3.0, 3.0]), "s": ["g1", "g2", "g1"]} for shift in (0.0, 2000.0)]
    one, two = near.predict(new[0]), far.predict(new[1])
    np.testing.assert_array_less(abs(one.mean - two.mean), 0.3 * one.sd)


def _system(columns: tuple[Any, ...]) -> System:
    rng = np.random.default_rng(1)
    state = np.column_stack([rng.normal(2000, 10, 200), rng.random(200) < 0.95, rng.standard_normal(200)])
    variables = (Variable("x"), Variable("d", ("no", "yes")), Variable("y"))
    names = tuple(str(k) for k in range(len(columns)))
    effects = (Effects(0, names, columns),)
    equation = Equation(2, GAUSSIAN, ("Intercept",), (ONE,), effects)
    factor = Factor("s", np.arange(200) % 10, tuple(map(str, range(10))), ("s",))
    return System(variables, state, np.zeros((200, 3), bool), (equation,), (factor,))


@pytest.mark.parametrize("columns", [(Ref("x"),), (ONE,), (ONE, Level("d", 1)), (ONE, Ref("y"))])
def test_slopes_without_intercept_dummies_and_columns_about_zero_stay(columns: tuple[Any, ...]) -> None:
    system = _system(columns)
    moved, turns = about_means(system)
    assert moved is system
    np.testing.assert_array_equal(turns[0], np.eye(len(columns)))


def test_draws_are_brought_back_by_the_covariance_and_the_effects() -> None:
    system = _system((ONE, Ref("x"), Ref("y")))
    _, turns = about_means(system)
    middle = system.state[:, 0].mean()
    np.testing.assert_allclose(turns[0], [[1, -middle, 0], [0, 1, 0], [0, 0, 1]])
    names = ("Intercept", "sigma", "sd(0|s)", "sd(1|s)", "sd(2|s)", "cor(0,1|s)", "cor(0,2|s)", "cor(1,2|s)")
    rng = np.random.default_rng(2)
    root = rng.standard_normal((3, 3))
    covariance = root @ root.T
    sds = np.sqrt(np.diag(covariance))
    held = covariance / np.outer(sds, sds)
    row = [1.0, 2.0, *sds, held[0, 1], held[0, 2], held[1, 2]]
    effects = rng.standard_normal((1, 2, 10, 3)).astype(np.float32)
    back = on_own_scale(Draws(names, np.tile(row, (1, 2, 1)), effects=(effects,)), system, turns)
    expected = turns[0] @ covariance @ turns[0].T
    np.testing.assert_allclose(back.values[0, 1, :2], [1, 2])
    np.testing.assert_allclose(back.values[0, 1, 2:5] ** 2, np.diag(expected))
    product = back.values[0, 1, 2] * back.values[0, 1, 3] * back.values[0, 1, 5]
    np.testing.assert_allclose(product, expected[0, 1])
    np.testing.assert_allclose(back.effects[0][..., 0], effects[..., 0] - middle * effects[..., 1], rtol=1e-6)
    np.testing.assert_array_equal(back.effects[0][..., 1:], effects[..., 1:])

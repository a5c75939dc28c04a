"""Separation by several columns together, where each alone overlaps."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import maskwell as mw
from maskwell.analysis.separation import separates
from maskwell.analysis.system import LOGIT, NEGATIVE_BINOMIAL, ORDERED, POISSON, PROBIT
from maskwell.errors import MaskwellWarning
from maskwell.schema import Column, Schema
from maskwell.table import Table

RECORDS = 300


def _made(seed: int, records: int = RECORDS) -> tuple[Any, Any, np.random.Generator]:
    """Return an intercept, two numbers far from zero and a dummy; and the linear predictor."""
    rng = np.random.default_rng(seed)
    one, two = rng.standard_normal((2, records))
    design = np.column_stack([np.ones(records), one + 2000, two - 50, rng.random(records) < 0.2])
    return design, one + two, rng


@pytest.mark.parametrize("family", [LOGIT, PROBIT, ORDERED])
@pytest.mark.parametrize("records", [RECORDS, 20_000])
def test_a_combination_separates_and_one_response_undoes_it(family: int, records: int) -> None:
    """20,000 records are more than the first programme has."""
    design, eta, _ = _made(1, records)
    y = np.digitize(eta, [-1.0, 1.0] if family == ORDERED else [0.0]).astype(float)
    assert separates(family, design, y)
    y[eta.argmin()] = y.max()
    assert not separates(family, design, y)


def test_a_tie_at_the_edge_is_separation_too() -> None:
    x = np.array([1.0, 2, 3, 3, 4, 5])
    design, y = np.column_stack([np.ones(6), x]), np.array([0.0, 0, 0, 1, 1, 1])
    assert separates(LOGIT, design, y)
    assert not separates(LOGIT, design, np.array([0.0, 0, 1, 0, 1, 0]))


@pytest.mark.parametrize("family", [POISSON, NEGATIVE_BINOMIAL])
def test_a_level_without_any_count_separates(family: int) -> None:
    design, eta, rng = _made(2)
    y = rng.poisson(np.exp(eta)).astype(float)
    assert not separates(family, design, y)
    y[design[:, 3] > 0] = 0
    assert separates(family, design, y)
    assert not separates(family, design[:, :3], y)


def _release(**columns: Any) -> mw.Release:
    schema = Schema(tuple(Column(name, "continuous") for name in columns))
    return mw.Release(Table.from_frame(pa.table(columns), schema=schema), mw.NoiseCard())


def _notes(formula: str, release: mw.Release, family: str) -> list[str]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MaskwellWarning)
        fitted = mw.fit(formula, release, family=family, draws=10, warmup=5, chains=1, seed=1, naive=False)
    codes = ("analysis.separation", "analysis.joint_separation")
    return [str(note) for note in fitted.notes if note.code in codes]


def test_a_fit_says_which_columns_separate() -> None:
    design, eta, rng = _made(3)
    held = {"one": design[:, 1], "two": design[:, 2], "other": rng.standard_normal(RECORDS)}
    apart = _release(**held, y=(eta > 0).astype(float))
    said = "one and two together separate the responses (no overlap, as released): "
    said += "their coefficients rest on their priors"
    assert _notes("y ~ one + two + other", apart, "logit") == [said]
    assert _notes("y ~ one + other", apart, "logit") == []
    alone = _release(**held, y=(eta > 0).astype(float), sum=eta)
    assert len(_notes("y ~ sum + other", alone, "probit")) == 1  # once, by the check of single columns


def test_a_fit_of_counts_says_which_level_has_only_zeros() -> None:
    design, eta, rng = _made(4)
    dummy = design[:, 3]
    release = _release(x=eta, d=dummy, y=np.where(dummy > 0, 0.0, rng.poisson(np.exp(eta))))
    said = "d separates the zeros from other counts (no overlap, as released): its coefficient rests on its prior"
    assert _notes("y ~ x + d", release, "poisson") == [said]
    assert _notes("y ~ x", release, "poisson") == []

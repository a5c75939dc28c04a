"""What fit() says to arguments that are not quite right, and what it tells of its own choices."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import maskwell as mw
from maskwell.analysis.building import FAMILY
from maskwell.analysis.fitting import family_of
from maskwell.errors import BadPlan, MaskwellWarning
from maskwell.schema import Column, Schema
from maskwell.table import Table

RECORDS = 200


def _table() -> Table:
    rng = np.random.default_rng(1)
    x, k = rng.standard_normal(RECORDS), rng.integers(1, 4, RECORDS)
    columns: dict[str, Any] = {"x": x, "y": x + rng.standard_normal(RECORDS), "one": ["a"] * RECORDS}
    columns |= {"edu": np.array(["low", "middle", "high"])[rng.integers(0, 3, RECORDS)]}
    columns |= {"sex": np.array(["f", "m"])[rng.integers(0, 2, RECORDS)]}
    columns["k"] = pa.array(k, mask=np.arange(RECORDS) % 10 == 0)
    kinds = {"x": "continuous", "y": "continuous", "k": "integer"}
    categories = {"one": ("a",), "edu": ("low", "middle", "high"), "sex": ("f", "m")}
    schema = [
        Column(name, "category", categories=categories[name])
        if name in categories
        else Column(name, kinds[name])
        for name in columns
    ]
    return Table.from_frame(pa.table(columns), schema=Schema(tuple(schema)))


TABLE = _table()
RELEASE = mw.Release(TABLE, mw.NoiseCard())


def _fitted(formula: Any, release: Any = RELEASE, **options: Any) -> mw.Posterior:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MaskwellWarning)
        given = {"draws": 20, "warmup": 10, "chains": 1, "seed": 1, "naive": False} | options
        return mw.fit(formula, release, **given)


@pytest.mark.parametrize(
    ("given", "family"),
    [
        ("Normal", "gaussian"),
        ("linear", "gaussian"),
        (" Gaussian", "gaussian"),
        ("binomial", "logit"),
        ("logistic", "logit"),
        ("ordinal", "ordered"),
        ("negbin", "negative binomial"),
        ("negative-binomial", "negative binomial"),
        ("negative_binomial", "negative binomial"),
    ],
)
def test_what_others_call_a_family_is_understood(given: str, family: str) -> None:
    assert family_of(given, None) == FAMILY[family]


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ("gausian", "did you mean 'gaussian'"),
        ("bernouli", "did you mean 'bernoulli'"),
        ("poison", "did you mean 'poisson'"),
        ("multinomial", "one against the others"),
        ("ordered_logit", "probit link"),
        ("gamma", "is not one of gaussian, binary"),
    ],
)
def test_what_is_no_family_has_a_hint(given: str, words: str) -> None:
    with pytest.raises(BadPlan, match=words):
        family_of(given, None)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"weights": np.ones(RECORDS)}, "names a column"),
        ({"measurement_error": 0.3}, r"such as \{'x1'"),
        ({"measurement_error": {"x": "a"}}, "must be a variance"),
        ({"measurement_error": {"x": float("nan")}}, "must be a variance"),
        ({"options": {"draws": 5}}, "must be a FitOptions"),
        ({"progress": 3}, "must be a function"),
        ({"sampler": None}, "is not one of"),
        ({"burnin": 100}, "those of its draws are chains, draws, warmup"),
    ],
)
def test_arguments_of_another_kind_are_refused_in_a_sentence(options: dict[str, Any], words: str) -> None:
    with pytest.raises(BadPlan, match=words):
        _fitted("y ~ x", **options)


def test_what_is_no_release_is_told_how_to_become_one() -> None:
    with pytest.raises(BadPlan, match=r"not a DataFrame.*mw.Table.from_frame\(frame\), card"):
        _fitted("y ~ x", TABLE.data.to_pandas())
    with pytest.raises(BadPlan, match=r"mw.Release\(table, card\)"):
        _fitted("y ~ x", TABLE)
    with pytest.raises(BadPlan, match="the formula comes first"):
        _fitted(RELEASE, "y ~ x")


def test_a_category_of_one_level_is_refused() -> None:
    """It was left out without a word."""
    with pytest.raises(BadPlan, match="one has the same value in every record"):
        _fitted("y ~ x + one")


@pytest.mark.parametrize("formula", ["y ~ x + C(k)", "y ~ I(k == 3)", "y ~ x + I(2*(k != 1))"])
def test_equality_with_a_number_that_is_drawn_is_refused(formula: str) -> None:
    """A missing value was drawn as a continuous number, which equals no level: it counted as the reference."""
    with pytest.raises(BadPlan, match=r"'k' with single values.*category in the schema"):
        _fitted(formula)
    assert "I(k > 1)" in _fitted("y ~ I(k > 1)").names


def test_a_category_as_response_is_told_how_it_is_read() -> None:
    assert "m of sex counts as 1, f as 0" in _fitted("sex ~ x", family="logit").notes
    order = "edu is taken in the order low, middle, high"
    assert order in _fitted("edu ~ x", family="ordered").notes
    assert _fitted("y ~ x").notes == ()


def test_one_chain_can_converge() -> None:
    """Its R-hat was not a number, so it ran to the last and "did not move"."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = mw.fit("y ~ x", RELEASE, chains=1, seed=1, naive=False)
    assert found.converged
    assert found.draws.values.shape[:2] == (1, 1000)


def test_a_chain_too_short_to_judge_is_not_said_to_stand_still() -> None:
    found = _fitted("y ~ x", draws=5)
    assert found.warning == "the chains are too short to be judged, with 5 draws each: take 1,000"

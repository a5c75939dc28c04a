"""What fit() says to arguments that are not quite right, and what it tells of its own choices."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import maskwell as mw
from maskwell.analysis.model import FAMILY
from maskwell.analysis.model_fit import family_of
from maskwell.errors import BadPlan, MaskwellWarning
from maskwell.notes import texts
from maskwell.schema import TOP_CODED, Column, Schema
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
        ("gamma", "is not one of gaussian, binary, logit, probit, ordered"),
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
        ({"progress": 3}, "must be True"),
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
    assert texts(_fitted("sex ~ x", family="logit").notes) == ("m of sex counts as 1, f as 0",)
    order = "edu is taken in the order low, middle, high"
    assert order in texts(_fitted("edu ~ x", family="ordered").notes)
    assert _fitted("y ~ x").notes == ()


def _with_gaps() -> mw.Release:
    """A noised number and a noised category with gaps, a clean number with gaps and codes, and a group of one."""
    rng, at = np.random.default_rng(2), np.arange(RECORDS)
    x, w = rng.standard_normal(RECORDS), rng.standard_normal(RECORDS)
    columns: dict[str, Any] = {
        "x": pa.array(x, mask=at % 2 == 0),
        "w": pa.array(np.minimum(w, 1.0), mask=at % 10 == 0),
        "sex": pa.array(np.array(["f", "m"])[rng.integers(0, 2, RECORDS)], mask=at == 3),
        "y": pa.array(x + w + rng.standard_normal(RECORDS), mask=at < 5),
        "school": np.where(at == 7, 99, at % 8).astype(str),
    }
    schema = Schema(
        (
            Column("x", "continuous"),
            Column("w", "continuous", top=1.0),
            Column("sex", "category", categories=("f", "m")),
            Column("y", "continuous"),
            Column("school", "text"),
        )
    )
    plan = mw.Chain((mw.IndependentNoise(("x",), variance_ratio=0.3), mw.Pram(("sex",), stay=0.9)))
    return mw.apply(plan, Table.from_frame(pa.table(columns), schema=schema), seed=1).release


def test_missing_and_coded_values_of_every_column_are_counted() -> None:
    """Those of noised columns were drawn without a word."""
    release = _with_gaps()
    found = _fitted("y ~ x + w + sex + (1|school)", release)
    top = int((release.table.status("w") == TOP_CODED).sum())
    assert top > 1
    for note in (
        "5 records without a response inform the covariate model alone",
        "x: 100 missing values (50%) are drawn with the rest",
        f"w: 20 missing values (10%) and {top} coded values ({top / RECORDS:.0%}) are drawn with the rest",
        "sex: 1 missing value (less than 1%) is drawn with the rest",
        "1 of 9 groups of school has one record: it tells little about differences between groups",
    ):
        assert note in texts(found.notes)


def test_a_missing_response_has_no_true_value() -> None:
    """Its first guess, the median, was given for it, with an sd of 0."""
    rng = np.random.default_rng(5)
    x = rng.standard_normal(RECORDS)
    y = pa.array(x + rng.standard_normal(RECORDS), mask=np.arange(RECORDS) < 20)
    schema = Schema((Column("x", "continuous"), Column("y", "continuous")))
    table = Table.from_frame(pa.table({"x": x, "y": y}), schema=schema)
    release = mw.apply(mw.IndependentNoise(("y",), variance_ratio=0.3), table, seed=1).release
    found = _fitted("y ~ x", release, keep_truths=True)
    missing = np.isnan(release.table.floats("y"))
    assert missing.sum() == 20
    assert np.array_equal(np.isnan(found.truths("y").sd), missing)
    assert np.isfinite(found.predict(kind="response", seed=1).mean).all()


def test_what_a_noised_count_is_rounded_to_is_said_beside_the_unadjusted_fit_alone() -> None:
    rng = np.random.default_rng(1)
    x = rng.standard_normal(RECORDS)
    schema = Schema((Column("x", "continuous"), Column("n", "integer")))
    table = Table.from_frame(pa.table({"x": x, "n": rng.poisson(np.exp(1 + 0.3 * x))}), schema=schema)
    release = mw.apply(mw.IndependentNoise(("n",), variance_ratio=0.3), table, seed=1).release
    alone, beside = (_fitted("n ~ x", release, family="poisson", naive=naive) for naive in (False, True))
    assert "n: true counts, whole numbers from 0 on, are drawn with the rest" in texts(alone.notes)
    assert "unadjusted" not in repr(alone)
    assert "noised count rounded" in " ".join(repr(beside).split())


def test_one_chain_can_converge() -> None:
    """Its R-hat was not a number, so it ran to the last and "did not move"."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = mw.fit("y ~ x", RELEASE, chains=1, seed=1, naive=False)
    assert found.converged
    assert found.draws.values.shape[:2] == (1, 1000)


def test_a_chain_too_short_to_judge_is_not_said_to_stand_still() -> None:
    found = _fitted("y ~ x", draws=5)
    assert str(found.warning) == "the chains are too short to be judged, with 5 draws each: take 1,000"

"""New covariates from tables of any kind."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from maskwell.analysis.results.covariates import label_of, read_covariates
from maskwell.errors import BadPlan
from maskwell.schema import Column, Schema
from maskwell.table import Table

LEVELS: dict[str, tuple[str, ...]] = {"x": (), "sex": ("f", "m")}
COLUMNS = {"x": [1.5, 2.0, 3.0], "sex": ["m", "f", "m"], "school": [7, 8, 7], "other": [0, 0, 0]}
SCHEMA = Schema(
    (
        Column("x", "continuous"),
        Column("sex", "category", categories=("m", "f")),  # in another order than the model has them
        Column("school", "integer"),
        Column("other", "integer"),
    )
)


@pytest.mark.parametrize(
    "new",
    [
        COLUMNS,
        {name: np.array(column) for name, column in COLUMNS.items()},
        pd.DataFrame(COLUMNS),
        pd.DataFrame(COLUMNS).astype({"school": float, "sex": "category"}),
        pl.DataFrame(COLUMNS),
        pa.table(COLUMNS),
        Table.from_frame(pa.table(COLUMNS), SCHEMA),
    ],
    ids=["lists", "arrays", "pandas", "pandas with floats", "polars", "pyarrow", "Table"],
)
def test_any_kind_of_table_gives_the_same(new: Any) -> None:
    found = read_covariates(new, LEVELS, ["school"])
    assert len(found) == 3
    assert found.values["x"].tolist() == [1.5, 2.0, 3.0]
    assert found.values["sex"].tolist() == [1.0, 0.0, 1.0]
    assert found.groups["school"].tolist() == ["7", "8", "7"]


def test_a_single_value_stands_for_all() -> None:
    found = read_covariates({"x": [1, 2], "sex": "m", "school": 3}, LEVELS, ["school"])
    assert found.values["sex"].tolist() == [1.0, 1.0]
    assert found.groups["school"].tolist() == ["3", "3"]
    assert len(read_covariates({"x": 1, "sex": "m"}, LEVELS, [])) == 1


def test_records_without_a_group_are_one() -> None:
    found = read_covariates({"school": [None, 1, float("nan")]}, {}, ["school"])
    assert found.groups["school"].tolist() == ["missing", "1", "missing"]


def test_parts_are_of_all_columns() -> None:
    part = read_covariates(COLUMNS, LEVELS, ["school"]).part(1, 3)
    assert (part.values["x"].tolist(), part.groups["school"].tolist()) == ([2.0, 3.0], ["8", "7"])


def test_labels_of_whole_numbers_have_no_point() -> None:
    labels = [label_of(value) for value in (7, 7.0, np.float64(7), np.int8(7), "7", b"7")]
    assert labels == ["7"] * 6
    assert (label_of(7.5), label_of("north")) == ("7.5", "north")


def test_all_problems_are_said_at_once_and_no_value() -> None:
    bad = {"x": ["98765", "a lot"], "sex": ["unheard", "m"], "school": [2, 1]}
    with pytest.raises(BadPlan) as refused:
        read_covariates(bad, LEVELS, ["school"])
    said = str(refused.value)
    assert "column 'x' must hold numbers" in said
    assert "column 'sex' has values that are none of the model's categories; the model knows" in said
    assert not any(value in said for value in ("98765", "a lot", "unheard"))


@pytest.mark.parametrize(
    ("new", "said"),
    [
        ({"x": [1.0]}, "needs the column 'sex'"),
        ({"X": [1.0], "sex": ["m"]}, r"needs the column 'x'.*did you mean 'X'"),
        ({"x": [1.0, 2.0], "sex": ["m", "m", "f"]}, "different lengths"),
        ({"x": [1.0, float("nan")], "sex": "m"}, "column 'x' misses 1"),
        ({"x": [1.0, None], "sex": "m"}, "column 'x' misses 1"),
        (3, "a Table, a dataframe or a mapping of columns, not a int"),
    ],
)
def test_what_cannot_be_read_is_refused(new: Any, said: str) -> None:
    with pytest.raises(BadPlan, match=said):
        read_covariates(new, LEVELS, [])

"""One small table that goes through every format: leading zeros, codes, missing cells, text that needs quotes."""

from __future__ import annotations

import pytest

from maskwell.io import read
from maskwell.schema import Column, Schema
from maskwell.table import Table

GOLDEN_SCHEMA = Schema(
    (
        Column("ID", "text", frozenset({"id"})),
        Column("AGE", "integer", frozenset({"key"}), top=90, missing=(-9, -8), description="age in years"),
        Column("INCOME", "continuous", frozenset({"sensitive"}), bottom=0.0, missing=(-9,)),
        Column("SEX", "category", categories=("1", "2"), labels=(("1", "male"), ("2", "female"))),
        Column("COUNTRY", "category", categories=("DE", "NA", "a, b"), missing=("?",)),
        Column("WEIGHT", "continuous", frozenset({"weight"})),
        Column("NOTE", "text"),
    )
)

GOLDEN_CSV = """ID,AGE,INCOME,SEX,COUNTRY,WEIGHT,NOTE
001,34,12.35,1,NA,1.5,plain
002,90,0,2,DE,0.00001,"a ""quoted"" word"
003,-9,-9,1,"a, b",2,
00000000000000017,,1234567.125,2,?,1,"comma, inside"
12345678901234567,-8,,,DE,1,é
006,0,0.1,2,,3,'
"""


@pytest.fixture
def golden_schema() -> Schema:
    return GOLDEN_SCHEMA


@pytest.fixture
def golden_csv() -> str:
    return GOLDEN_CSV


@pytest.fixture
def golden(tmp_path_factory: pytest.TempPathFactory) -> Table:
    path = tmp_path_factory.mktemp("golden") / "golden.csv"
    path.write_text(GOLDEN_CSV, encoding="utf-8")
    return read(path, GOLDEN_SCHEMA)

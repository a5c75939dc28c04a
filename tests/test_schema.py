"""Schemas: what they refuse, all at once, and that TOML gives them back as they were."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from maskwell.errors import BadPlan
from maskwell.schema import ROLES, Column, Schema

# --- TOML and plain data

NAMES = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=12)
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
NUMBERS = st.integers(-(10**12), 10**12) | st.floats(-1e12, 1e12)
SHARED = [role for role in ROLES if role not in ("id", "weight")]


@st.composite
def columns(draw: st.DrawFn, name: str) -> Column:
    kind = draw(st.sampled_from(["continuous", "integer", "category", "text"]))
    codes = draw(st.lists(NUMBERS | TEXTS, max_size=3, unique_by=str))
    common = {
        "roles": frozenset(draw(st.sets(st.sampled_from(SHARED)))),
        "missing": tuple(codes),
        "labels": tuple(draw(st.dictionaries(TEXTS, TEXTS, max_size=3)).items()),
        "description": draw(TEXTS),
        "drop": draw(st.booleans()),
    }
    if kind == "category":
        return Column(name, kind, categories=tuple(draw(st.lists(TEXTS, max_size=4, unique=True))), **common)
    if kind == "text":
        return Column(name, kind, **common)
    units = st.sampled_from([1, 5, 100]) if kind == "integer" else st.sampled_from([1, 50, 0.01, 0.25, 1e-7])
    bottom = draw(st.none() | NUMBERS)
    top = draw(st.none() | st.floats(1e12, 1e13, exclude_min=True))
    return Column(name, kind, unit=draw(st.none() | units), top=top, bottom=bottom, **common)


@st.composite
def schemas(draw: st.DrawFn) -> Schema:
    import unicodedata

    names = draw(st.lists(NAMES, min_size=1, max_size=4, unique_by=lambda n: unicodedata.normalize("NFC", n)))
    return Schema(tuple(draw(columns(name)) for name in names), series=draw(TEXTS))


@given(schemas())
def test_toml_gives_a_schema_back(schema: Schema):
    assert Schema.from_toml(schema.to_toml()) == schema
    assert Schema.from_dict(schema.to_dict()) == schema


def test_toml_is_written_for_people():
    column = Column(
        "AGE",
        "integer",
        frozenset({"key", "block"}),
        top=90,
        missing=(-9, "?"),
        labels=(("-9", "no answer"),),
    )
    text = Schema((column,), series="survey").to_toml({"AGE": ["years", "at the interview"]})
    assert text == (
        'series = "survey"\n\n# years\n# at the interview\n[columns.AGE]\nkind = "integer"\nroles = ["block", "key"]\n'
        'top = 90\nmissing = [-9, "?"]\nlabels = { "-9" = "no answer" }\n'
    )


@pytest.mark.parametrize(
    "name", ["a.b", 'quote "', "new\nline", "tab\t", "back\\slash", "[x]", "# no comment", "é", "\x00"]
)
def test_awkward_names_survive(name: str):
    schema = Schema((Column(name, "text", description=name, labels=((name, name),)),), series=name)
    assert Schema.from_toml(schema.to_toml()) == schema


def test_numbers_of_numpy_are_written_as_plain_ones():
    column = Column(
        "A", "continuous", unit=np.float64(0.01), top=np.float64(7.5), missing=(np.float64(-9.0),)
    )
    assert column.step == Fraction(1, 100)
    assert Schema.from_toml(Schema((column,)).to_toml()) == Schema((column,))


def test_files_are_read_with_and_without_a_mark(tmp_path: Path):
    schema = Schema((Column("É", "text"),))
    for prefix in ("", "\ufeff"):
        path = tmp_path / "schema.toml"
        path.write_text(prefix + schema.to_toml(), encoding="utf-8")
        assert Schema.read(path) == schema


@pytest.mark.parametrize(
    ("content", "reason"),
    [(b"columns = [", "not valid TOML"), (b"\xff\xfe", "not UTF-8"), (None, "cannot be read: No such file")],
)
def test_unreadable_files_are_refused_in_words(tmp_path: Path, content: bytes | None, reason: str):
    path = tmp_path / "schema.toml"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(BadPlan, match=reason):
        Schema.read(path)


# --- problems, all at once


def test_every_problem_of_a_schema_is_listed_at_once():
    with pytest.raises(BadPlan) as refusal:
        Schema(
            (
                Column("A", "continous", frozenset({"keys"})),
                Column("B", "category", unit=1, categories=("x", "x")),
                Column("C", "continuous", unit=-1, top=1, bottom=2),
                Column("D", "integer", unit=0.5, missing=(-9, -9)),
                Column("E", "text", frozenset({"weight", "id"}), categories=("y",)),
                Column("F", "continuous", frozenset({"weight", "id"})),
                Column("F", "text", labels=(("1", "a"), ("1", "b"))),
            )
        )
    expected = [
        "column 'A': role 'keys' is not one of id, block, key, sensitive, weight, group (did you mean 'key'?)",
        "column 'A': kind 'continous' is not one of continuous, integer, category, text (did you mean 'continuous'?)",
        "column 'B': unit is for numbers, not for kind 'category'",
        "column 'B': a category is listed twice",
        "column 'C': the unit must be positive",
        "column 'C': the top code must lie above the bottom code",
        "column 'D': an integer column needs a whole unit (1, 10, 1000)",
        "column 'D': a missing code is listed twice",
        "column 'E': a weight must be a number, not kind 'text'",
        "column 'E': categories are for kind 'category', not 'text'",
        "column 'F': a label is listed twice",
        "column 'F' is described twice",
        "only one column may have the role 'id', not 'E', 'F'",
        "only one column may have the role 'weight', not 'E', 'F'",
    ]
    assert list(refusal.value.problems) == expected
    assert str(refusal.value).startswith("14 problems:\n  - column 'A': role")


def test_every_problem_of_the_shape_is_listed_at_once():
    data = {
        "serie": "x",
        "series": 3,
        "columns": {
            "A": {"kind": "text", "role": ["id"], "roles": "id"},
            "B": {"unit": "1", "drop": 1, "labels": [1]},
            "C": 7,
            "D": {"kind": "integer", "top": True, "description": 1},
        },
    }
    with pytest.raises(BadPlan) as refusal:
        Schema.from_dict(data)
    assert list(refusal.value.problems) == [
        "unknown key 'serie' in the schema (did you mean 'series'?)",
        "series must be text",
        "column 'A': unknown key 'role' (did you mean 'roles'?)",
        "column 'A': roles must be a list of texts",
        "column 'B' has no kind: one of continuous, integer, category, text",
        "column 'B': unit must be a number of at most 1e+150",
        "column 'B': labels must be a table of code = label",
        "column 'B': drop must be true or false",
        "column 'C' must be a table: [columns.C]",
        "column 'D': top must be a number of at most 1e+150",
        "column 'D': description must be text",
    ]


@pytest.mark.parametrize("data", [{}, {"columns": {}}, {"columns": []}])
def test_a_schema_without_columns_is_refused(data: dict[str, Any]):
    with pytest.raises(BadPlan, match="no columns"):
        Schema.from_dict(data)


@pytest.mark.parametrize("number", [float("inf"), float("nan")])
@pytest.mark.parametrize("what", ["unit", "top", "bottom"])
def test_numbers_that_are_none_are_refused(what: str, number: float):
    with pytest.raises(BadPlan, match=f"{what} must be a finite number"):
        Schema((Column("A", "integer", **{what: number}),))


def test_names_that_look_the_same_are_the_same():
    with pytest.raises(BadPlan, match="described twice"):
        Schema((Column("\u00e9", "text"), Column("e\u0301", "text")))


# --- looking things up


@pytest.fixture
def schema() -> Schema:
    return Schema(
        (
            Column("ID", "text", frozenset({"id"})),
            Column("INCOME", "continuous", frozenset({"key", "sensitive"})),
            Column("SEX", "category", frozenset({"key"}), categories=("m", "f")),
        )
    )


def test_columns_are_found_by_name_and_role(schema: Schema):
    assert schema["SEX"].categories == ("m", "f")
    assert schema.names == ("ID", "INCOME", "SEX")
    assert schema.id_column == "ID"
    assert schema.with_role("key") == ("INCOME", "SEX")
    assert "SEX" in schema
    assert "AGE" not in schema
    assert schema.without(["ID"]).id_column is None


def test_a_wrong_name_is_answered_with_the_nearest(schema: Schema):
    with pytest.raises(BadPlan, match=r"there is no column 'income' \(did you mean 'INCOME'\?\)"):
        schema["income"]
    assert schema.missing_columns(["SEX", "SEXX", "zzz"]) == [
        "there is no column 'SEXX' (did you mean 'SEX'?)",
        "there is no column 'zzz'",
    ]


def test_changed_columns_keep_their_places(schema: Schema):
    other = Column("SEX", "integer")
    changed = schema.changed({"SEX": other})
    assert changed["SEX"] is other
    assert changed.names == schema.names
    assert schema["SEX"].kind == "category"


@pytest.mark.parametrize(
    ("column", "step"),
    [
        (Column("A", "continuous"), None),
        (Column("A", "integer"), Fraction(1)),
        (Column("A", "integer", unit=50), Fraction(50)),
        (Column("A", "continuous", unit=0.1), Fraction(1, 10)),
        (Column("A", "continuous", unit=0.25), Fraction(1, 4)),
    ],
)
def test_the_unit_is_an_exact_fraction(column: Column, step: Fraction | None):
    assert column.step == step

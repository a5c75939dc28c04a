from __future__ import annotations

import builtins
import datetime
import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyreadstat
import pytest

from maskwell.errors import BadInput, CannotWrite, MaskwellWarning
from maskwell.io import read, write
from maskwell.io.stat_export import codebook
from maskwell.notes import texts
from maskwell.schema import Column, Schema
from maskwell.table import Table

SENTINEL = "SENTINEL_7391"
ENDINGS = ["sav", "zsav", "dta", "xpt"]


def written(
    schema: Schema, columns: dict[str, Any], path: Path, closed: dict[str, list[int]] | None = None
) -> Path:
    marks = {name: np.array(status, np.uint8) for name, status in (closed or {}).items()}
    write(Table(schema, pa.table(columns), marks), path)
    return path


def refusal(schema: Schema, columns: dict[str, Any], path: Path) -> str:
    with pytest.raises(CannotWrite) as caught:
        written(schema, columns, path)
    assert SENTINEL not in str(caught.value)
    assert list(path.parent.iterdir()) == []
    return str(caught.value)


@pytest.mark.parametrize("ending", ENDINGS)
def test_golden_table_survives(ending: str, tmp_path: Path, golden: Table) -> None:
    path = tmp_path / f"t.{ending}"
    write(golden, path)
    back = read(path, golden.schema)
    assert back.data.equals(golden.data)
    assert {name: status.tolist() for name, status in back.closed.items()} == {
        name: status.tolist() for name, status in golden.closed.items()
    }
    assert back.schema == golden.schema
    assert back.source.kind == {"zsav": "sav"}.get(ending, ending)
    write(back, tmp_path / f"again.{ending}")
    assert (tmp_path / f"again.{ending}").read_bytes() == path.read_bytes()


@pytest.mark.parametrize("ending", ENDINGS)
def test_same_table_same_bytes_at_any_time(ending: str, tmp_path: Path, golden: Table) -> None:
    write(golden, tmp_path / f"a.{ending}")
    time.sleep(1.1)
    write(golden, tmp_path / f"b.{ending}")
    assert (tmp_path / f"a.{ending}").read_bytes() == (tmp_path / f"b.{ending}").read_bytes()
    readers = {"dta": pyreadstat.read_dta, "xpt": pyreadstat.read_xport}
    _, meta = readers.get(ending, pyreadstat.read_sav)(tmp_path / f"a.{ending}")
    assert meta.creation_time == datetime.datetime(1970, 1, 1)


def test_spss_labels_and_missing_codes_become_the_schema(tmp_path: Path) -> None:
    frame = pd.DataFrame(
        {
            "sex": [1.0, 2.0, 9.0, 1.0],
            "income": [1200.5, -9.0, -8.0, np.nan],
            "age": [34.0, 97.0, 98.0, 51.0],
            "city": ["A", "B", "ZZ", ""],
        }
    )
    pyreadstat.write_sav(
        frame,
        tmp_path / "in.sav",
        column_labels={"sex": "sex of the person"},
        variable_value_labels={"sex": {1.0: "male", 2.0: "female", 3.0: SENTINEL, 9.0: "refused"}},
        missing_ranges={"sex": [9], "income": [-9, -8], "age": [{"lo": 97, "hi": 99}, 0], "city": ["ZZ"]},
    )
    table = read(tmp_path / "in.sav")
    sex = table.schema["sex"]
    assert (sex.kind, sex.categories, sex.missing, sex.description) == (
        "category",
        ("1", "2"),
        (9,),
        "sex of the person",
    )
    assert sex.labels == (("1", "male"), ("2", "female"), ("9", "refused"))
    assert table.status("sex").tolist() == [0, 0, 4, 0]
    assert table.schema["income"].missing == (-9, -8)
    assert table.status("income").tolist() == [0, 4, 5, 1]
    assert table.schema["age"].missing == (97, 98, 0)
    assert table.status("age").tolist() == [0, 4, 5, 0]
    assert table.data.schema.field("age").type == pa.int64()
    assert "column 'income': missing codes taken from the file (-9, -8)" in texts(table.notes)

    write(table, tmp_path / "out.sav")
    _, meta = pyreadstat.read_sav(tmp_path / "out.sav", user_missing=True)
    assert meta.missing_ranges["age"] == [{"lo": 97.0, "hi": 99.0}, {"lo": 0.0, "hi": 0.0}]
    assert meta.missing_ranges["income"] == [{"lo": -9.0, "hi": -9.0}, {"lo": -8.0, "hi": -8.0}]
    assert meta.variable_value_labels["sex"] == {1.0: "male", 2.0: "female", 9.0: "refused"}
    assert meta.column_names_to_labels["sex"] == "sex of the person"
    assert SENTINEL.encode() not in (tmp_path / "out.sav").read_bytes()
    assert read(tmp_path / "out.sav").data.equals(table.data)


def test_a_given_schema_wins_but_the_files_missing_codes_still_count(tmp_path: Path) -> None:
    frame = pd.DataFrame({"x": [1.5, -9.0, -7.0]})
    pyreadstat.write_sav(frame, tmp_path / "t.sav", missing_ranges={"x": [-9]}, column_labels={"x": "theirs"})
    schema = Schema((Column("x", "continuous", missing=(-7,), description="ours"),))
    table = read(tmp_path / "t.sav", schema)
    assert table.schema["x"] == Column("x", "continuous", missing=(-7, -9), description="ours")
    assert table.status("x").tolist() == [0, 5, 4]


def test_an_open_value_in_a_missing_range_keeps_its_meaning(tmp_path: Path) -> None:
    frame = pd.DataFrame({"age": [34.0, 97.0, 98.0, 51.0]})
    pyreadstat.write_sav(frame, tmp_path / "in.sav", missing_ranges={"age": [{"lo": 90, "hi": 99}]})
    table = read(tmp_path / "in.sav", Schema((Column("age", "integer"),)))
    noisy = table.with_columns(
        {"age": (table.schema["age"], np.array([34.0, 0, 0, 92.0]), table.status("age"))}
    )
    write(noisy, tmp_path / "out.sav")
    back = read(tmp_path / "out.sav", Schema((Column("age", "integer"),)))
    assert back.status("age").tolist() == [0, 4, 5, 0]
    assert back.data.to_pydict()["age"] == [34, None, None, 92]


def test_stata_extended_missing_values_survive(tmp_path: Path) -> None:
    frame = pd.DataFrame(
        {
            "n": pd.Series([1, "a", None, "b", 2], dtype=object),
            "x": pd.Series([1.5, "z", 2.5, 3.5, None], dtype=object),
        }
    )
    pyreadstat.write_dta(
        frame,
        tmp_path / "in.dta",
        version=14,
        missing_user_values={"n": ["a", "b"], "x": ["z"]},
        variable_value_labels={"n": {1: "one", 2: "two", 3: SENTINEL, "a": "refused"}},
        column_labels={"n": "a count"},
    )
    table = read(tmp_path / "in.dta")
    assert table.schema["x"].missing == (".z",)
    assert table.schema["n"].missing == (".a", ".b")
    assert table.status("n").tolist() == [0, 4, 1, 5, 0]
    assert table.status("x").tolist() == [0, 4, 0, 0, 1]
    assert dict(table.schema["n"].labels) == {"1": "one", "2": "two", ".a": "refused"}
    write(table, tmp_path / "out.dta")
    found, meta = pyreadstat.read_dta(tmp_path / "out.dta", user_missing=True, output_format="dict")
    assert found["n"] == [1, "a", None, "b", 2]
    assert found["x"] == [1.5, "z", 2.5, 3.5, None]
    assert meta.missing_user_values == {"n": ["a", "b"], "x": ["z"]}
    assert meta.variable_value_labels == {"n": {1: "one", 2: "two", "a": "refused"}}
    assert SENTINEL.encode() not in (tmp_path / "out.dta").read_bytes()
    without = read(tmp_path / "in.dta", Schema((Column("n", "integer"), Column("x", "continuous"))))
    assert without.status("n").tolist() == [0, 4, 1, 5, 0]


def test_stata_numbers_are_as_narrow_as_they_may_be(tmp_path: Path) -> None:
    schema = Schema(tuple(Column(name, "integer") for name in ("small", "edge", "large", "gap")))
    columns = {
        "small": [1, 127],
        "edge": [0, 2**31 - 1],
        "large": [1, 2**40],
        "gap": pa.array([1, None], pa.int64()),
    }
    path = written(schema, columns, tmp_path / "t.dta", {"gap": [0, 1]})
    found, meta = pyreadstat.read_dta(path, output_format="dict")
    assert found == {"small": [1, 127], "edge": [0, 2**31 - 1], "large": [1, 2**40], "gap": [1, None]}
    assert meta.readstat_variable_types == {
        "small": "int32",
        "edge": "double",
        "large": "double",
        "gap": "int32",
    }


def test_labels_of_codes_from_csv_reach_the_file(tmp_path: Path, golden: Table) -> None:
    write(golden, tmp_path / "t.dta")
    _, meta = pyreadstat.read_dta(tmp_path / "t.dta")
    assert meta.variable_value_labels == {"SEX": {1: "male", 2: "female"}}
    write(golden, tmp_path / "t.sav")
    _, meta = pyreadstat.read_sav(tmp_path / "t.sav")
    assert meta.variable_value_labels == {"SEX": {1.0: "male", 2.0: "female"}}
    assert meta.variable_measure["AGE"] == "scale"
    assert meta.original_variable_types["AGE"] == "F8.0"


@pytest.mark.parametrize("ending", ["sav", "dta"])
def test_only_labels_of_declared_or_used_values_are_written(ending: str, tmp_path: Path) -> None:
    labels = (("1", "one"), ("2", "two"), ("3", SENTINEL), ("-9", "refused"), ("-8", SENTINEL))
    schema = Schema(
        (
            Column("n", "integer", labels=labels, missing=(-9, -8)),
            Column("c", "category", categories=("1", "2"), labels=labels, missing=(-9, -8)),
        )
    )
    path = tmp_path / "t.csv"
    path.write_text("n,c\n1,1\n2,1\n-9,-9\n")
    write(read(path, schema), tmp_path / f"t.{ending}")
    reader: Any = pyreadstat.read_sav if ending == "sav" else pyreadstat.read_dta
    _, meta = reader(tmp_path / f"t.{ending}", user_missing=True)
    expected = {1: "one", 2: "two", -9: "refused"}
    assert meta.variable_value_labels == {"n": expected, "c": expected}
    assert SENTINEL.encode() not in (tmp_path / f"t.{ending}").read_bytes()


def test_sas_files_are_read_and_written_as_transport_files_with_a_codebook(
    tmp_path: Path, golden: Table
) -> None:
    write(golden, tmp_path / "t.xpt")
    assert read(tmp_path / "t.xpt", golden.schema).data.equals(golden.data)
    assert codebook(golden) == ("column 'SEX': 1 = male, 2 = female",)
    with pytest.raises(CannotWrite, match=r"write a \.xpt transport file"):
        write(golden, tmp_path / "t.sas7bdat")


def test_limits_are_told_before_anything_is_written(tmp_path: Path) -> None:
    def column(name: str, **more: Any) -> Schema:
        return Schema((Column(name, "integer", **more),))

    n = {"n": [1]}
    assert "a SAS transport file allows names of at most 8 bytes" in refusal(
        column("household"), {"household": [1]}, tmp_path / "t.xpt"
    )
    assert "Stata does not allow this name" in refusal(column("a b"), {"a b": [1]}, tmp_path / "t.dta")
    assert "Stata does not allow this name" in refusal(column("with"), {"with": [1]}, tmp_path / "t.dta")
    assert "SPSS does not allow this name" in refusal(column("ALL"), {"ALL": [1]}, tmp_path / "t.sav")
    assert "Stata allows names of at most 32 bytes" in refusal(
        column("x" * 33), {"x" * 33: [1]}, tmp_path / "t.dta"
    )
    assert "its description is longer than 80 bytes" in refusal(
        column("n", description="x" * 81), n, tmp_path / "t.dta"
    )
    assert "a label longer than 120 bytes" in refusal(
        column("n", labels=(("1", "x" * 121),)), n, tmp_path / "t.sav"
    )
    assert "whole numbers beyond 2^53" in refusal(column("n"), {"n": [2**60]}, tmp_path / "t.sav")
    assert "SPSS allows three missing codes" in _four_codes(tmp_path)
    two = Schema((Column("a", "integer"), Column("A", "integer")))
    assert "differ only in upper and lower case" in refusal(two, {"a": [1], "A": [1]}, tmp_path / "t.sav")
    text = Schema((Column("t", "text"), Column("x", "continuous")))
    message = refusal(text, {"t": [SENTINEL * 200], "x": [8.95e307]}, tmp_path / "t.dta")
    assert "column 't': it holds text longer than 2045 bytes" in message
    assert "column 'x': it holds numbers that Stata takes for missing" in message


def _four_codes(folder: Path) -> str:
    schema = Schema((Column("n", "integer", missing=(-9, -8, -7, -6)),))
    table = Table(schema, pa.table({"n": pa.nulls(4, pa.int64())}), {"n": np.array([4, 5, 6, 7], np.uint8)})
    with pytest.raises(CannotWrite) as caught:
        write(table, folder / "t.sav")
    return str(caught.value)


def test_of_many_missing_codes_those_in_use_are_written(tmp_path: Path) -> None:
    schema = Schema((Column("n", "integer", missing=(-9, -8, -7, -6)),))
    columns = {"n": pa.array([1, None, None], pa.int64())}
    path = written(schema, columns, tmp_path / "t.sav", {"n": [0, 5, 7]})
    _, meta = pyreadstat.read_sav(path, user_missing=True)
    assert meta.missing_ranges == {"n": [{"lo": -8.0, "hi": -8.0}, {"lo": -6.0, "hi": -6.0}]}


def test_dates_ask_what_they_are(tmp_path: Path) -> None:
    frame = pd.DataFrame({"d": [datetime.date(2020, 1, 31)]})
    for name, writer in (("t.sav", pyreadstat.write_sav), ("t.dta", pyreadstat.write_dta)):
        writer(frame, tmp_path / name)
        with pytest.raises(
            BadInput, match="column 'd' holds dates or times: turn it into a number or a category"
        ):
            read(tmp_path / name, Schema((Column("d", "integer"),)))


def test_text_codes_that_the_format_cannot_hold_are_told(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("n\n1\nNA\n.a\n")
    table = read(tmp_path / "t.csv", Schema((Column("n", "integer", missing=("NA", ".a")),)))
    with pytest.warns(MaskwellWarning, match="become plain missing values"):
        write(table, tmp_path / "t.sav")
    with pytest.warns(MaskwellWarning, match="become plain missing values"):
        write(table, tmp_path / "t.dta")
    found, _ = pyreadstat.read_dta(tmp_path / "t.dta", user_missing=True, output_format="dict")
    assert found["n"] == [1, None, "a"]


@pytest.mark.parametrize("ending", [*ENDINGS, "sas7bdat"])
def test_damaged_and_too_large_files_are_refused(ending: str, tmp_path: Path) -> None:
    path = tmp_path / f"t.{ending}"
    path.write_text(f"x\n{SENTINEL}\n" * 10)
    with pytest.raises(BadInput, match=f"the file is not a readable {ending} file") as caught:
        read(path)
    assert SENTINEL not in str(caught.value)
    with pytest.raises(BadInput, match="of memory to be read"):
        read(path, memory_limit=10)


def test_without_pyreadstat_the_extra_is_named(
    tmp_path: Path, golden: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    original = builtins.__import__

    def without(name: str, *rest: Any, **more: Any) -> Any:
        if name == "pyreadstat":
            raise ImportError(name)
        return original(name, *rest, **more)

    (tmp_path / "t.sav").write_bytes(b"$FL2")
    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(BadInput, match=r"pip install maskwell\[stat\]"):
        read(tmp_path / "t.sav", golden.schema)
    with pytest.raises(CannotWrite, match=r"pip install maskwell\[stat\]"):
        write(golden, tmp_path / "u.sav")

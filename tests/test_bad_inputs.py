"""What a steward will really feed the tool, one test at least for each numbered row of the table of bad inputs.

Every refusal is one run of the command line: exit code 2, the reason on standard error, no value of the data in any
output, no traceback, nothing new on disk and an earlier release at the same path untouched. The Python verbs refuse
with the same words.
"""

from __future__ import annotations

import csv
import errno
import hashlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import maskwell as mw
from maskwell.errors import BadBundle, BadInput, BadPlan
from maskwell.io import bundle, memory

ROWS = range(1, 37)
RECORDS = 60
NAMES = ("ID", "REGION", "SEX", "INCOME", "TAX", "WEIGHT")
SCHEMA = """series = "survey"

[columns.ID]
kind = "text"
roles = ["id"]

[columns.REGION]
kind = "category"
roles = ["block"]
categories = ["north", "south"]

[columns.SEX]
kind = "category"
categories = ["1", "2"]

[columns.INCOME]
kind = "continuous"
roles = ["key"]

[columns.TAX]
kind = "continuous"
roles = ["key"]

[columns.WEIGHT]
kind = "continuous"
roles = ["weight"]
"""
NUMBER, WORD = "731640259", "Quux-Zanzibar"  # planted where a message must not quote them

Records = list[dict[str, str]]


def survey(records: int = RECORDS) -> Records:
    """A survey of text fields, as they stand in a file."""
    rng = np.random.default_rng(11)
    income = np.round(np.exp(10 + 0.5 * rng.standard_normal(records)), 2)
    tax = np.round(0.2 * income + 300 * rng.standard_normal(records), 2)
    return [
        {
            "ID": f"{i:04d}",
            "REGION": "north" if i % 2 else "south",
            "SEX": str(1 + i % 3 % 2),
            "INCOME": f"{income[i]:.2f}",
            "TAX": f"{tax[i]:.2f}",
            "WEIGHT": f"{1 + i % 5}.5",
        }
        for i in range(records)
    ]


def planted(column: str, fields: dict[int, str]) -> Records:
    """The survey with some fields of a column replaced, by record number."""
    records = survey()
    for number, field_ in fields.items():
        records[number - 1][column] = field_
    return records


def column_of(column: str, fields: Sequence[str]) -> Records:
    """The survey with a whole column replaced."""
    return [record | {column: value} for record, value in zip(survey(len(fields)), fields, strict=True)]


def csv_text(records: Records, delimiter: str = ",", names: Sequence[str] = NAMES) -> str:
    quoted = [
        [f'"{f}"' if delimiter in f else f for f in (record[name] for name in NAMES)] for record in records
    ]
    return "".join(delimiter.join(line) + "\n" for line in [list(names), *quoted])


def described(**changes: str) -> str:
    """The schema with the table of some columns replaced."""
    text = SCHEMA
    for name, lines in changes.items():
        text = re.sub(rf"(\[columns\.{name}\]\n)(?:[^\n]+\n)+", rf"\g<1>{lines}\n", text)
    return text


def states(folder: Path) -> dict[str, str]:
    """Every path below a folder, with a hash of its bytes."""
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        if path.is_file()
        else "folder"
        for path in sorted(folder.rglob("*"))
    }


def released(folder: Path) -> Records:
    with (folder / "data.csv").open(encoding="utf-8-sig", newline="") as file:
        return list(csv.DictReader(file))


@dataclass(frozen=True)
class Desk:
    """A steward's folder with an earlier release in it, and the command line."""

    folder: Path
    run: Callable[..., Any]
    earlier: Path

    def __truediv__(self, name: str) -> Path:
        return self.folder / name

    def put(self, name: str, content: str | bytes) -> Path:
        """Write a file."""
        path = self.folder / name
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    def mask(self, file: object, *options: object, release: str = "out", private: str = "inside") -> Any:
        """Run `maskwell mask` with folders, and with noise unless it is a plan."""
        noise = () if {"--r0", "--variance-ratio", "--sd-ratio"} & set(options) else ("--r0", 0.9)
        return self.run(
            "mask", file, *noise, *options, "--release", self / release, "--private", self / private
        )

    def plan(self, masks: str, file: str = "survey.csv", more: str = "") -> Path:
        """Write a plan for a file with the schema beside it."""
        schema = 'schema = "schema.toml"\n' if (self / "schema.toml").exists() else ""
        sections = (
            f'[input]\nfile = "{file}"\n{schema}\n[output]\nrelease = "out"\nprivate = "inside"\n{more}\n'
        )
        return self.put("plan.toml", sections + masks)

    def assert_refused(
        self, ran: Any, before: dict[str, str], *words: str, secrets: Sequence[str] = (NUMBER, WORD)
    ) -> None:
        """Check that a run was refused with these words, said nothing it must not, and left all as it was."""
        assert (ran.code, ran.out) == (2, "")
        assert ran.err.startswith("error: ")
        assert "Traceback" not in ran.err
        for word in words:
            assert word in ran.err
        for secret in secrets:
            assert secret not in ran.err
        assert states(self.folder) == before


@pytest.fixture(scope="module")
def earlier(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Both halves of an earlier release, to be copied."""
    folder = tmp_path_factory.mktemp("earlier")
    (folder / "survey.csv").write_text(csv_text(survey()))
    table = mw.read(folder / "survey.csv", mw.Schema.from_toml(SCHEMA))
    mw.apply(mw.CorrelatedNoise(("INCOME", "TAX"), r0=0.9), table, seed=1).write(
        release=folder / "out", private=folder / "inside"
    )
    return folder


@pytest.fixture
def desk(tmp_path: Path, run: Callable[..., Any], earlier: Path) -> Desk:
    shutil.copytree(earlier / "out", tmp_path / "out")
    shutil.copytree(earlier / "inside", tmp_path / "inside")
    return Desk(tmp_path, run, earlier)


# Files that are refused.


@dataclass(frozen=True)
class Case:
    """A file that is refused: what is in it, its schema, and the words of the refusal."""

    row: int
    what: str
    content: str | bytes
    words: tuple[str, ...]
    schema: str | None = SCHEMA
    columns: str | None = None
    mask: Any = field(default_factory=lambda: mw.CorrelatedNoise(("INCOME", "TAX"), r0=0.9))

    def __str__(self) -> str:
        return f"row {self.row:02d}: {self.what}"


def bad(row: int, what: str, content: str | bytes | Records, *words: str, **options: Any) -> Case:
    return Case(row, what, csv_text(content) if isinstance(content, list) else content, words, **options)


LINES = csv_text(survey())
HEADER = ",".join(NAMES)
INTEGER = 'kind = "integer"\nroles = ["key"]'

REFUSED = [
    bad(1, "empty file", "", "there are no records"),
    bad(1, "a byte-order mark alone", "\ufeff", "there are no records"),
    bad(1, "header alone", HEADER + "\n", "there are no records"),
    bad(1, "header alone, no schema", HEADER + "\n", "no records", schema=None),
    bad(2, "one record", survey(1), "column 'INCOME' has one open value", "undefined"),
    bad(
        2,
        "fewer records than columns + 2",
        survey(3),
        "column 'INCOME' has 3 open values; the covariance of 2 columns is undefined below 4",
    ),
    bad(
        3,
        "constant column",
        column_of("TAX", [NUMBER] * RECORDS),
        "column 'TAX' is constant",
        "skip_constant",
    ),
    bad(4, "all-missing column", column_of("TAX", [""] * RECORDS), "column 'TAX' has no open value to mask"),
    bad(
        4,
        "all-missing column, no schema",
        column_of("TAX", [""] * RECORDS),
        "column 'TAX' cannot be masked as it is (there is no value at all",
        schema=None,
        columns="INCOME,TAX",
    ),
    bad(6, "inf", planted("TAX", {7: "inf"}), "column 'TAX': an infinite", "first at record 7"),
    bad(
        6, "1e400", planted("TAX", {8: "1e400"}), "column 'TAX': an infinite, too large", "first at record 8"
    ),
    bad(6, "nan", planted("TAX", {9: "NaN"}), "column 'TAX'", "undefined number, first at record 9"),
    bad(7, "1e308", planted("TAX", {5: "1e308"}), "column 'TAX': the variance overflows (first at record 5)"),
    bad(
        8,
        "text in a numeric column",
        planted("TAX", {4: WORD, 6: WORD}),
        "column 'TAX': text where a number belongs, first at record 4 (2 records)",
        "declare it as a missing code",
    ),
    bad(
        8,
        "text in a numeric column, no schema",
        planted("TAX", {4: WORD, 6: WORD}),
        "column 'TAX': text where a number belongs, first at record 4 (2 records)",
        schema=None,
        columns="INCOME,TAX",
    ),
    bad(
        8,
        "thousands separators",
        planted("TAX", {3: "731,640,259"}),
        "column 'TAX': numbers with thousands separators, first at record 3",
        "the options delimiter and decimal",
    ),
    bad(
        8,
        "the other decimal sign",
        planted("TAX", {3: "7316402,5"}),
        "column 'TAX': numbers with the other decimal sign, first at record 3",
        "the options delimiter and decimal",
    ),
    bad(
        11,
        "UTF-16",
        LINES.encode("utf-16"),
        "is in UTF-16, not UTF-8: ",
    ),
    bad(11, "UTF-16 without a mark", LINES.encode("utf-16-le"), "UTF-16", "encoding", "utf-16-le"),
    bad(
        11,
        "Latin-1",
        LINES.replace("north", "Sør", 1).encode("latin-1"),
        "not in UTF-8 (line 3)",
        "it seems to be in Latin-1: ",
    ),
    bad(12, "doubled header", LINES.replace("TAX", "INCOME", 1), "columns 4, 5 share the name 'INCOME'"),
    bad(12, "blank header", LINES.replace("TAX", " ", 1), "column 5 has no name"),
    bad(
        12,
        "both at once",
        LINES.replace(HEADER, "ID,REGION,SEX,ID,,WEIGHT", 1),
        "columns 1, 4 share the name 'ID'",
        "column 5 has no name",
    ),
    bad(
        14,
        "a field too many",
        LINES.replace("\n0003,", f"\n0003,{NUMBER},"),
        "line 5 has 7 fields where the header has 6",
    ),
    bad(
        14,
        "a field too few",
        LINES.replace("\n0007,north", "\n0007"),
        "line 9 has 5 fields where the header has 6",
    ),
    bad(
        14, "an open quote", LINES.replace("\n0003,", f'\n"{NUMBER},'), "line 5: a quoted field is not closed"
    ),
    bad(
        16,
        "int64 overflow",
        planted("TAX", {4: f"9{NUMBER}{NUMBER}9"}),
        "column 'TAX': a whole number beyond 2^63 - 1, first at record 4",
        schema=described(TAX=INTEGER, INCOME='kind = "continuous"'),
    ),
    bad(
        18,
        "dates read as numbers",
        column_of("TAX", ["2031-07-19"] * RECORDS),
        "column 'TAX': dates or times, first at record 1 (60 records)",
        "a number (age, days since) or a category (year), or drop it",
    ),
    bad(
        18,
        "dates to be masked, no schema",
        column_of("TAX", [f"2031-07-{1 + i % 28:02d}" for i in range(RECORDS)]),
        "column 'TAX' cannot be masked as it is (dates or times: a number (age, days since), a category (year)",
        schema=None,
        columns="INCOME,TAX",
    ),
    bad(
        19,
        "mixed booleans",
        column_of("SEX", ["1", "0", "1", "0", "yes", "no"] * 10),
        "column 'SEX': yes and no in more than one spelling, first at record 5",
        schema=described(SEX='kind = "category"\ncategories = ["0", "1", "yes", "no"]'),
    ),
    bad(
        20,
        "duplicate ids",
        planted("ID", dict.fromkeys((2, 3, 5, 8, 13, 21, 34), WORD)),
        "column 'ID': ids that occur more than once, at records 2, 3, 5, 8, 13 and 2 more",
    ),
    bad(
        20,
        "a record without an id",
        planted("ID", {6: ""}),
        "column 'ID': a record without an id, first at record 6",
    ),
    bad(
        24,
        "weights zero, negative, missing",
        planted("WEIGHT", {4: "0", 9: f"-{NUMBER}", 2: ""}),
        "3 problems",
        "column 'WEIGHT': a missing weight, first at record 2",
        "column 'WEIGHT': a weight of zero, first at record 4",
        "column 'WEIGHT': a negative weight, first at record 9",
    ),
    bad(
        25,
        "category not in the schema",
        planted("REGION", {12: WORD, 40: WORD}),
        "column 'REGION': values that are not among its categories (1 different), first at record 12 (2 records)",
        "add them to the schema or correct them",
    ),
    bad(
        27,
        "top code below the maximum",
        planted("TAX", {10: NUMBER, 50: NUMBER}),
        "column 'TAX': values above the top code, first at record 10 (2 records)",
        schema=described(TAX='kind = "continuous"\nroles = ["key"]\ntop = 700000000'),
    ),
    bad(
        27,
        "bottom code above the minimum",
        planted("TAX", {11: f"-{NUMBER}"}),
        "column 'TAX': values below the bottom code, first at record 11:",
        schema=described(TAX='kind = "continuous"\nroles = ["key"]\nbottom = -700000000'),
    ),
]


@pytest.mark.parametrize("case", REFUSED, ids=str)
def test_file_is_refused_and_nothing_is_touched(desk: Desk, case: Case) -> None:
    file = desk.put("survey.csv", case.content)
    options: list[object] = []
    if case.schema is not None:
        options += ["--schema", desk.put("schema.toml", case.schema)]
    if case.columns is not None:
        options += ["--columns", case.columns]
    before = states(desk.folder)
    desk.assert_refused(
        desk.mask(file, *options), before, *case.words, secrets=(NUMBER, WORD, "731,640,259", "2031-07")
    )


@pytest.mark.parametrize("case", [case for case in REFUSED if case.schema is not None], ids=str)
def test_python_refuses_with_the_same_words(tmp_path: Path, case: Case) -> None:
    file = tmp_path / "survey.csv"
    file.write_bytes(case.content.encode() if isinstance(case.content, str) else case.content)
    with pytest.raises((BadInput, BadPlan)) as refusal:
        mw.apply(case.mask, mw.read(file, mw.Schema.from_toml(case.schema or "")), seed=1)
    for word in case.words:
        assert word in str(refusal.value) or word == f"{len(refusal.value.problems)} problems"
    assert NUMBER not in str(refusal.value)
    assert WORD not in str(refusal.value)


@pytest.mark.parametrize("case", REFUSED, ids=str)
def test_inspect_never_falls_over(desk: Desk, case: Case) -> None:
    """What cannot be masked can be looked at, or is refused in the same way."""
    file = desk.put("survey.csv", case.content)
    before = states(desk.folder)
    ran = desk.run("inspect", file)
    if ran.code == 0:
        assert mw.Schema.from_toml(ran.out).names
        assert ran.err == ""
        assert states(desk.folder) == before
    else:
        desk.assert_refused(ran, before)


DATE = pa.array(np.datetime64("2031-07-19") + np.arange(RECORDS).astype("timedelta64[D]"))
TYPED = [
    (4, "all-missing column", pa.nulls(RECORDS), "column 'TAX' has no open value to mask"),
    (
        6,
        "inf",
        pa.array([1.5, float("inf")] * 30),
        "column 'TAX': an infinite number, first at record 2 (30 records)",
    ),
    (
        7,
        "1e308",
        pa.array([1.5, 1e308, 2.5] * 20),
        "column 'TAX': the variance overflows (first at record 2)",
    ),
    (16, "uint64", pa.array([5, 2**63] * 30, pa.uint64()), "column 'TAX': a whole number beyond 2^63 - 1"),
    (16, "int64", pa.array([5, 2**62] * 30, pa.int64()), "column 'TAX' holds whole numbers beyond 2^53"),
    (18, "dates", DATE, "column 'TAX' holds dates or times: turn it into a number or a category, or drop it"),
]


@pytest.mark.parametrize(
    ("row", "what", "tax", "words"), TYPED, ids=[f"row {t[0]:02d}: {t[1]}" for t in TYPED]
)
def test_typed_column_is_refused(desk: Desk, row: int, what: str, tax: Any, words: str) -> None:
    columns = {name: [record[name] for record in survey()] for name in ("ID", "REGION", "SEX")}
    amounts = {name: [float(record[name]) for record in survey()] for name in ("INCOME", "WEIGHT")}
    pq.write_table(pa.table(columns | amounts | {"TAX": tax}), desk / "survey.parquet")
    kind = INTEGER if row == 16 else 'kind = "continuous"\nroles = ["key"]'
    schema = desk.put("schema.toml", described(TAX=kind))
    before = states(desk.folder)
    ran = desk.mask(desk / "survey.parquet", "--schema", schema, "--variance-ratio", 0.1)
    desk.assert_refused(ran, before, words, secrets=("2031", str(2**62), str(2**63)))


# Files that are fine, and that are read right.


def done(ran: Any) -> Any:
    assert (ran.code, ran.err) == (0, "")
    return ran


def truth_and_release(desk: Desk, ending: str = "") -> tuple[Records, Records]:
    """The records of the survey and of the release, brought into one order by the links."""
    masking = mw.Masking.read(release=desk / f"out{ending}", private=desk / f"inside{ending}")
    rows = masking.truth.to_arrow().to_pylist()
    return [rows[i] for i in masking.order], masking.release.table.to_arrow().to_pylist()


def test_row_03_constant_column_is_skipped_where_the_plan_says_so(desk: Desk) -> None:
    desk.put("survey.csv", csv_text(column_of("TAX", ["7"] * RECORDS)))
    desk.put("schema.toml", SCHEMA)
    masks = (
        '[[masks]]\nmask = "CorrelatedNoise"\ncolumns = ["INCOME", "TAX"]\nr0 = 0.9\nskip_constant = true\n'
    )
    ran = done(desk.run("mask", desk.plan(masks)))
    assert "left as they are because they are constant: TAX" in ran.out
    assert {record["TAX"] for record in released(desk / "out")} == {"7"}


def test_row_05_missing_cells_stay_missing(desk: Desk) -> None:
    desk.put("survey.csv", csv_text(planted("TAX", {4: "", 9: "", 33: " "})))
    done(desk.mask(desk / "survey.csv", "--schema", desk.put("schema.toml", SCHEMA)))
    assert sum(record["TAX"] == "" for record in released(desk / "out")) == 3
    for true, masked in zip(*truth_and_release(desk), strict=True):
        assert (true["TAX"] is None) == (masked["TAX"] is None)
        assert true["INCOME"] != masked["INCOME"]


@pytest.mark.parametrize("row", ["09", "10"])
def test_row_09_10_dialects_are_read_right_and_kept(desk: Desk, row: str) -> None:
    records = survey()
    if row == "09":
        records = [r | {n: r[n].replace(".", ",") for n in ("INCOME", "TAX", "WEIGHT")} for r in records]
        content = csv_text(records, ";").encode()
    else:
        content = b"\xef\xbb\xbf" + csv_text(records).replace("\n", "\r\n").encode()
    file = desk.put("survey.csv", content)
    said = "semicolon-separated, decimal comma" if row == "09" else "comma-separated, decimal point"
    inspected = done(desk.run("inspect", file))
    assert f"read as {said}" in inspected.out
    assert mw.Schema.from_toml(inspected.out).with_role("key") == ("INCOME", "TAX")
    ran = done(desk.mask(file, "--schema", desk.put("schema.toml", SCHEMA)))
    assert f"read as {said}" in ran.out
    truth, _ = truth_and_release(desk)
    plain = [float(record["INCOME"]) for record in survey()]
    assert sorted(record["INCOME"] for record in truth) == sorted(plain)
    first = (desk / "out" / "data.csv").read_bytes().splitlines(keepends=True)[:2]
    if row == "09":
        assert first[0] == b"ID;REGION;SEX;INCOME;TAX;WEIGHT\n"
        assert re.fullmatch(rb"[0-9a-f]{16};(north|south);[12];-?\d+(,\d+)?;-?\d+(,\d+)?;\d,5\n", first[1])
    else:
        assert first[0] == b"\xef\xbb\xbfID,REGION,SEX,INCOME,TAX,WEIGHT\r\n"
        assert first[1].endswith(b"\r\n")


@pytest.mark.parametrize("encoding", ["latin-1", "utf-16"])
def test_row_11_the_option_named_in_the_refusal_works(desk: Desk, encoding: str) -> None:
    records = [r | {"REGION": r["REGION"].replace("north", "Sør")} for r in survey()]
    file = desk.put("survey.csv", csv_text(records).encode(encoding))
    option = re.search(r"with --encoding (\S+)", desk.run("inspect", file).err)
    assert option is not None
    assert '"Sør"' in done(desk.run("inspect", file, "--encoding", option[1])).out
    schema = desk.put("schema.toml", SCHEMA.replace("north", "Sør"))
    said = re.search(
        r"put (encoding = \S+) under \[input\] in a plan", desk.mask(file, "--schema", schema).err
    )
    assert said is not None
    plan = desk.plan('[[masks]]\nmask = "CorrelatedNoise"\ncolumns = "role: key"\nr0 = 0.9\n')
    plan.write_text(plan.read_text().replace("[input]", f"[input]\n{said[1]}"))
    ran = done(desk.run("mask", plan))
    assert "it is written in UTF-8" in ran.out
    assert sum(record["REGION"] == "Sør" for record in released(desk / "out")) == RECORDS // 2


def test_row_11_a_plan_is_told_where_the_encoding_stands_in_it(desk: Desk) -> None:
    records = [r | {"REGION": r["REGION"].replace("north", "Sør")} for r in survey()]
    desk.put("survey.csv", csv_text(records).encode("latin-1"))
    plan = desk.plan('[[masks]]\nmask = "CorrelatedNoise"\ncolumns = ["INCOME"]\nr0 = 0.9\n')
    assert 'put encoding = "latin-1" under [input] in the plan' in desk.run("mask", plan).err


def test_row_13_headers_are_put_into_nfc_with_a_warning(desk: Desk) -> None:
    decomposed, composed = "REVENU_E\u0301TE\u0301", "REVENU_\u00c9T\u00c9"
    names = ("ID", "REGION", "SEX", decomposed, "TAX", "WEIGHT")
    file = desk.put("survey.csv", csv_text(survey(), names=names))
    schema = desk.put("schema.toml", SCHEMA.replace("[columns.INCOME]", f'[columns."{composed}"]'))
    ran = done(desk.mask(file, "--schema", schema))
    assert f"the name of column 4, '{composed}', was put into Unicode normal form (NFC)" in ran.out
    assert composed in released(desk / "out")[0]
    with pytest.warns(mw.MaskwellWarning, match="Unicode normal form"):
        assert composed in mw.read(file, schema).names


def test_row_13_lookalike_header_is_warned_of_where_it_is_not_found(desk: Desk) -> None:
    file = desk.put(
        "survey.csv", csv_text(survey(), names=("ID", "REGION", "SEX", "INCOME", "T\u0410X", "WEIGHT"))
    )
    before = states(desk.folder)
    ran = desk.mask(file, "--columns", "INCOME,TAX")
    assert (ran.code, ran.out, states(desk.folder)) == (2, "", before)
    assert (
        "warning: the name of column 5, 'T\u0410X', mixes Latin and Cyrillic letters, which can look alike"
        in ran.err
    )
    assert "error: there is no column 'TAX' (did you mean 'T\u0410X'?)" in ran.err


def test_row_15_ids_are_kept_as_text_exactly(desk: Desk) -> None:
    ids = [f"{i:06d}" if i % 2 else str(12345678901234567 + i) for i in range(RECORDS)]
    file = desk.put("survey.csv", csv_text(column_of("ID", ids)))
    schema = mw.Schema.from_toml(done(desk.run("inspect", file)).out)
    assert (schema.id_column, schema["ID"].kind) == ("ID", "text")
    done(desk.mask(file, "--columns", "INCOME,TAX"))
    truth, masked = truth_and_release(desk)
    assert sorted(record["ID"] for record in truth) == sorted(ids)
    assert not {record["ID"] for record in masked} & set(ids)


def test_row_15_long_whole_numbers_leave_as_they_came(desk: Desk) -> None:
    numbers = [str(12345678901234567 + i) for i in range(RECORDS)]
    schema = desk.put("schema.toml", described(TAX='kind = "integer"'))
    done(desk.mask(desk.put("survey.csv", csv_text(column_of("TAX", numbers))), "--schema", schema))
    assert sorted(record["TAX"] for record in released(desk / "out")) == numbers


def test_row_16_small_types_are_widened_never_wrapped(desk: Desk) -> None:
    values = np.tile(np.arange(196, 256, dtype=np.uint8), 5)
    columns = {"ID": [f"r{i}" for i in range(300)], "X": values, "Y": np.arange(300.0)}
    pq.write_table(pa.table(columns), desk / "survey.parquet")
    schema = desk.put("schema.toml", '[columns.ID]\nkind="text"\nroles=["id"]\n[columns.X]\nkind="integer"\n'
                      '[columns.Y]\nkind="continuous"\n')  # fmt: skip
    noise = ("--columns", "X", "--variance-ratio", 1, "--seed", 4, "--study")
    done(desk.mask(desk / "survey.parquet", "--schema", schema, *noise))
    found = pq.read_table(desk / "out-study" / "data.parquet")
    assert found.schema.field("X").type == pa.int64()
    assert max(found["X"].to_pylist()) > 255
    truth, masked = truth_and_release(desk, "-study")
    added = [m["X"] - t["X"] for t, m in zip(truth, masked, strict=True)]
    assert max(map(abs, added)) < 6 * 17.3  # sd of the noise: that of the data; a wrapped value is off by 256


def test_row_17_only_declared_codes_are_missing(desk: Desk) -> None:
    countries = ["NA", "DE", "FR"] * 20
    file = desk.put("survey.csv", csv_text(column_of("REGION", countries)))
    inspected = done(desk.run("inspect", file))
    assert 'is "NA" a category, or does it mean no value?' in inspected.out
    assert mw.Schema.from_toml(inspected.out)["REGION"].categories == ("DE", "FR", "NA")
    done(desk.mask(file, "--columns", "INCOME,TAX"))
    assert sorted(record["REGION"] for record in released(desk / "out")) == sorted(countries)
    declared = described(REGION='kind = "category"\ncategories = ["DE", "FR"]\nmissing = ["NA"]')
    table = mw.read(file, mw.Schema.from_toml(declared))
    assert int((table.status("REGION") == 4).sum()) == 20


def test_row_18_dates_are_asked_about_and_dropped(desk: Desk) -> None:
    dates = [f"2031-07-{1 + i % 28:02d}" for i in range(RECORDS)]
    inspected = done(desk.run("inspect", desk.put("survey.csv", csv_text(column_of("TAX", dates)))))
    assert (
        "dates or times: a number (age, days since), a category (year), or dropped as proposed?"
        in inspected.out
    )
    assert mw.Schema.from_toml(inspected.out)["TAX"].drop
    done(desk.mask(desk / "survey.csv", "--columns", "INCOME"))
    assert "TAX" not in released(desk / "out")[0]


def test_row_19_mixed_booleans_are_asked_about(desk: Desk) -> None:
    mixed = csv_text(column_of("SEX", ["1", "0", "1", "0", "yes", "no"] * 10))
    inspected = done(desk.run("inspect", desk.put("survey.csv", mixed)))
    assert "yes and no are spelled in several ways" in inspected.out
    assert mw.Schema.from_toml(inspected.out)["SEX"].drop


def test_row_21_blocks_of_one_record_are_counted(desk: Desk) -> None:
    file = desk.put("survey.csv", csv_text(planted("REGION", {7: "east", 30: "west"})))
    assert "records alone in their block (of REGION, SEX): 2" in done(desk.run("inspect", file)).out
    schema = desk.put(
        "schema.toml", SCHEMA.replace('["north", "south"]', '["north", "south", "east", "west"]')
    )
    ran = done(desk.mask(file, "--schema", schema))
    assert "- 2 records are alone in their block (REGION): no noise hides them" in ran.out
    with pytest.warns(mw.MaskwellWarning, match="2 records are alone in their block"):
        mw.apply(mw.IndependentNoise("TAX", variance_ratio=0.1), mw.read(file, schema))


def three_parts(last: float) -> str:
    """Three columns, each pair open in a third of the records, with correlations 0.9, 0.9 and `last`."""
    n = 100
    first, second = np.tile([1.0, -1.0], n // 2), np.repeat([1.0, -1.0], n // 2)
    lines = ["ID,A,B,C"]
    for part, (i, j, r) in enumerate([(0, 1, 0.9), (0, 2, 0.9), (1, 2, last)]):
        for k in range(n):
            cells = ["", "", ""]
            cells[i], cells[j] = f"{first[k]:.6f}", f"{r * first[k] + np.sqrt(1 - r * r) * second[k]:.6f}"
            lines.append(",".join([f"r{part}-{k}", *cells]))
    return "\n".join(lines) + "\n"


AMOUNTS = '[columns.ID]\nkind = "text"\nroles = ["id"]\n' + "".join(
    f'[columns.{name}]\nkind = "continuous"\nroles = ["key"]\n' for name in "ABC"
)


def test_row_22_correlations_of_pairs_are_repaired_and_it_is_said(desk: Desk) -> None:
    schema = desk.put("schema.toml", AMOUNTS)
    ran = done(desk.mask(desk.put("survey.csv", three_parts(0.55)), "--schema", schema))
    said = re.search(r"not positive semi-definite \(smallest eigenvalue (-0\.\d+)\)", ran.out)
    assert said is not None
    exact = np.linalg.eigvalsh([[1, 0.9, 0.9], [0.9, 1, 0.55], [0.9, 0.55, 1]])[0]
    assert float(said[1]) == pytest.approx(exact, rel=1e-2)
    assert "repaired to the nearest correlation matrix" in ran.out
    law = mw.read_release(desk / "out").card.laws[0]
    assert np.linalg.eigvalsh(np.array(law.noise.correlations))[0] >= -1e-12


def test_row_22_a_repair_that_moves_a_correlation_far_is_refused(desk: Desk) -> None:
    file, schema = desk.put("survey.csv", three_parts(-0.9)), desk.put("schema.toml", AMOUNTS)
    before = states(desk.folder)
    words = ("smallest eigenvalue -0.8", "more than 0.1: mask these columns in separate groups")
    desk.assert_refused(desk.mask(file, "--schema", schema), before, *words)


def with_total() -> str:
    rng = np.random.default_rng(5)
    parts = rng.integers(100, 5000, (RECORDS, 2))
    lines = [f"r{i},{a},{b},{a + b}" for i, (a, b) in enumerate(parts)]
    return "\n".join(["ID,A,B,C", *lines]) + "\n"


@pytest.mark.parametrize("columns", ["A,B,C", "A,B", "C"])
def test_row_23_noises_that_contradict_an_identity_are_refused(desk: Desk, columns: str) -> None:
    file, schema = desk.put("survey.csv", with_total()), desk.put("schema.toml", AMOUNTS)
    assert "'C' = 'A' + 'B', exactly" in done(desk.run("inspect", file)).out
    before = states(desk.folder)
    ran = desk.mask(file, "--schema", schema, "--columns", columns, "--variance-ratio", 0.1)
    desk.assert_refused(ran, before, "C = A + B exactly", "Recompute")


def test_row_23_the_plan_says_which_is_recomputed(desk: Desk) -> None:
    desk.put("survey.csv", with_total())
    desk.put("schema.toml", AMOUNTS.replace('"continuous"', '"integer"'))
    masks = (
        '[[masks]]\nmask = "CorrelatedNoise"\ncolumns = ["A", "B"]\nr0 = 0.9\n'
        '[[masks]]\nmask = "Recompute"\ncolumn = "C"\nparts = ["A", "B"]\n'
    )
    assert "C: recomputed from A, B" in done(desk.run("mask", desk.plan(masks))).out
    for record in released(desk / "out"):
        assert int(record["C"]) == int(record["A"]) + int(record["B"])


def test_row_26_logarithms_of_zeros_and_negatives_are_refused_with_a_remedy(desk: Desk) -> None:
    desk.put("survey.csv", csv_text(planted("TAX", {3: "0", 14: f"-{NUMBER}"})))
    desk.put("schema.toml", SCHEMA)
    masks = '[[masks]]\nmask = "IndependentNoise"\ncolumns = "TAX"\nvariance_ratio = 0.1\ntransform = "log"\n'
    plan = desk.plan(masks)
    before = states(desk.folder)
    words = "column 'TAX' has 2 values at or below 0 (first at record 3), where the logarithm is undefined"
    desk.assert_refused(desk.run("mask", plan), before, words, "give a larger shift")
    done(desk.run("mask", desk.plan(masks + "shift = 731640300\n")))


def test_row_28_codes_among_the_numbers_are_asked_about(desk: Desk) -> None:
    records = survey(200)
    for i in range(0, 200, 10):
        records[i]["INCOME"], records[i + 1]["TAX"], records[i + 2]["WEIGHT"] = "99999", "-9", "999"
    out = done(desk.run("inspect", desk.put("survey.csv", csv_text(records)))).out
    for code in ("-9", "999"):
        assert re.search(rf"of the values 10\.0% are {code}, apart from the rest: a code for no value\?", out)
        assert f"\n# missing = [{code}]\n" in out
    both = "a top code? Then switch on top; a code for no value? Then add missing = [99999]"  # incomes reach that far
    assert f"10.0% of the values are 99999, the largest: {both}" in out
    assert "\n# top = 99999\n" in out


# The machine, the disk and the folders.


@pytest.mark.parametrize("name", ["survey.csv", "survey.parquet"])
def test_row_29_a_file_larger_than_memory_is_refused(
    desk: Desk, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    mw.write(mw.read(desk.earlier / "survey.csv", mw.Schema.from_toml(SCHEMA)), desk / name)
    schema = desk.put("schema.toml", SCHEMA)
    monkeypatch.setattr(memory, "available", lambda: 3000)
    before = states(desk.folder)
    words = re.compile(
        r"the file needs about [\d.]+ [kM]B of memory to be read and 3\.0 kB is available: use a machine"
    )
    for ran in (desk.mask(desk / name, "--schema", schema), desk.run("inspect", desk / name)):
        desk.assert_refused(ran, before)
        assert words.search(ran.err)
    with pytest.raises(BadInput, match="needs about"):
        mw.read(desk / name, schema, memory_limit=3000)


def test_row_29_running_out_of_memory_all_the_same_is_no_crash(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    def exhausted(*_: object, **__: object) -> None:
        raise MemoryError

    monkeypatch.setattr("maskwell.pipeline.plan_files.apply", exhausted)
    file, schema = desk.put("survey.csv", LINES), desk.put("schema.toml", SCHEMA)
    before = states(desk.folder)
    desk.assert_refused(desk.mask(file, "--schema", schema), before, "there is not enough memory")


def test_row_30_a_kill_leaves_the_earlier_release(desk: Desk) -> None:
    file, schema = desk.put("survey.csv", LINES), desk.put("schema.toml", SCHEMA)
    before = states(desk / "out")
    options = ["--schema", schema, "--r0", "0.9", "--release", desk / "out", "--private", desk / "inside"]
    command = [sys.executable, "-m", "maskwell", "mask", file, *options]
    killed = subprocess.run(
        [str(word) for word in command],
        env=os.environ | {"MASKWELL_FAILPOINT": "before exchange"},
        capture_output=True,
        check=False,
    )
    assert (killed.returncode, killed.stdout) == (-signal.SIGKILL, b"")
    assert states(desk / "out") == before
    assert len(mw.read_release(desk / "out")) == RECORDS
    assert [path.name for path in desk.folder.glob(".out.building-*")] != []
    done(desk.mask(file, "--schema", schema))
    assert states(desk / "out") != before
    assert {path.name for path in desk.folder.iterdir()} == {"out", "inside", "survey.csv", "schema.toml"}


def test_row_30_a_full_disk_leaves_the_earlier_release(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    file, schema = desk.put("survey.csv", LINES), desk.put("schema.toml", SCHEMA)
    before = states(desk.folder)
    monkeypatch.setattr(bundle.os, "fsync", full)
    words = ("No space left on device", "free some space or choose a folder on another disk")
    desk.assert_refused(desk.mask(file, "--schema", schema), before, *words)


def unread(*_: object, **__: object) -> None:
    raise AssertionError("the input was read before the folders were checked")


def test_row_31_missing_folders_are_refused_before_any_work(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("maskwell.pipeline.plan_files.load", unread)
    file = desk.put("survey.csv", LINES)
    before = states(desk.folder)
    for release, private in (("no/out", "inside"), ("new", "no/inside")):
        ran = desk.mask(file, release=release, private=private)
        desk.assert_refused(
            ran, before, f"the folder {desk / 'no'} does not exist", "create it or choose another"
        )


def test_row_31_read_only_folders_are_refused_before_any_work(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("maskwell.pipeline.plan_files.load", unread)
    file = desk.put("survey.csv", LINES)
    before = states(desk.folder)
    monkeypatch.setattr(os, "access", lambda path, mode: not mode & os.W_OK)  # root may write anywhere
    ran = desk.mask(file, release="new")
    desk.assert_refused(ran, before, "is not writable; choose another or change its permissions")
    ran = desk.run("inspect", file, "--write", desk / "new.toml")
    desk.assert_refused(ran, before, f"the folder '{desk.folder}' does not exist or is not writable")


@pytest.mark.parametrize("link", ["the same", "a symbolic link", "a hard link", "the folder of the input"])
def test_row_32_output_equal_to_input_is_refused(desk: Desk, link: str) -> None:
    file, output = desk.put("survey.csv", LINES), desk / "output"
    if link == "a symbolic link":
        output.symlink_to(file)
    elif link == "a hard link":
        output.hardlink_to(file)
    elif link == "the folder of the input":
        output.mkdir()
        file = file.rename(output / "survey.csv")
    else:
        output = file
    before = states(desk.folder)
    desk.assert_refused(desk.mask(file, release=output.name), before, f"would overwrite the input {file}")


def test_row_32_a_release_is_not_masked_into_itself(desk: Desk) -> None:
    (desk / "link.csv").symlink_to(desk / "out" / "data.csv")
    before = states(desk.folder)
    for source in (desk / "out" / "data.csv", desk / "link.csv"):
        desk.assert_refused(
            desk.mask(source), before, f"the output {desk / 'out'} would overwrite the input {source}"
        )


def test_row_33_an_input_that_changes_while_it_is_read_is_refused(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    from maskwell.io import csv as reader

    file, schema = desk.put("survey.csv", LINES), desk.put("schema.toml", SCHEMA)
    check = reader.check_text

    def growing(path: Path) -> None:
        check(path)
        with file.open("a") as more:
            more.write(LINES.splitlines()[1] + "\n")

    monkeypatch.setattr(reader, "check_text", growing)
    before = states(desk / "out")
    ran = desk.mask(file, "--schema", schema)
    assert (ran.code, ran.out) == (2, "")
    assert (
        ran.err == f"error: the file '{file}' changed while it was read: read it again when it is complete\n"
    )
    assert states(desk / "out") == before


# Plans, keys and cards.


def test_row_34_every_error_of_a_plan_is_listed_at_once(desk: Desk) -> None:
    plan = desk.put(
        "plan.toml",
        """
        [inputs]
        [output]
        release = 5
        privat = "inside"
        [[masks]]
        mask = "CorelatedNoise"
        [[masks]]
        mask = "CorrelatedNoise"
        columns = ["INCOME"]
        r0 = "much"
        kep = "means"
        """,
    )
    before = states(desk.folder)
    words = (
        "unknown section [inputs] (did you mean 'input'?)",
        "the plan has no section [input]",
        "[output]: release must be a path",
        "[output]: private is needed",
        "[output]: unknown key 'privat' (did you mean 'private'?)",
        "mask 1: there is no mask 'CorelatedNoise' (did you mean 'CorrelatedNoise'?)",
        "mask 2 (CorrelatedNoise): r0 must be a number",
        "mask 2 (CorrelatedNoise): unknown key 'kep' (did you mean 'keep'?)",
    )
    desk.assert_refused(desk.run("mask", plan), before, "8 problems", *words)


@pytest.mark.parametrize("schema", [None, SCHEMA], ids=["proposed", "given"])
def test_row_34_every_column_that_is_not_there_is_listed(desk: Desk, schema: str | None) -> None:
    desk.put("survey.csv", LINES)
    if schema is not None:
        desk.put("schema.toml", schema)
    masks = (
        '[[masks]]\nmask = "CorrelatedNoise"\ncolumns = ["INCOM", "TAXES"]\nr0 = 0.9\n'
        '[[masks]]\nmask = "Pram"\ncolumns = "Sex"\nstay = 0.9\n'
    )
    plan = desk.plan(masks)
    before = states(desk.folder)
    words = [f"there is no column '{a}' (did you mean '{b}'?)" for a, b in
             (("INCOM", "INCOME"), ("TAXES", "TAX"), ("Sex", "SEX"))]  # fmt: skip
    desk.assert_refused(desk.run("mask", plan), before, "3 problems", *words)


def test_row_34_columns_of_the_schema_and_the_file_differ(desk: Desk) -> None:
    file = desk.put("survey.csv", LINES.replace("INCOME", "INCOMES", 1))
    schema = desk.put("schema.toml", SCHEMA)
    before = states(desk.folder)
    words = (
        "column 'INCOME' of the schema is not in the data (did you mean 'INCOMES'?)",
        "column 'INCOMES' is not in the schema (did you mean 'INCOME'?)",
    )
    desk.assert_refused(desk.mask(file, "--schema", schema), before, *words)


def private_folder(desk: Desk) -> Path:
    (folder,) = (desk / "inside").iterdir()
    return folder


@pytest.mark.parametrize("name", ["", "key.hex", "links.csv"])
def test_row_35_private_files_open_to_others_are_refused(desk: Desk, name: str) -> None:
    file, schema = desk.put("survey.csv", LINES), desk.put("schema.toml", SCHEMA)
    opened = private_folder(desk) / name
    opened.chmod(0o755 if name == "" else 0o644)
    before = states(desk.folder)
    ran = desk.mask(file, "--schema", schema, "--earlier", desk / "out", release="second")
    desk.assert_refused(ran, before, f"{opened} is open to others", "chmod 700 folders, 600 files")
    with pytest.raises(BadBundle, match="is open to others"):
        mw.Masking.read(release=desk / "out", private=desk / "inside")
    opened.chmod(0o700 if name == "" else 0o600)
    done(desk.mask(file, "--schema", schema, "--earlier", desk / "out", release="second"))


def sealed_anew(folder: Path) -> None:
    """Make the manifest of a bundle fit its card, as whoever wrote that card would have."""
    manifest = json.loads((folder / "manifest.json").read_text())
    card = (folder / "card.json").read_bytes()
    manifest["files"]["card.json"] = {"sha256": hashlib.sha256(card).hexdigest(), "bytes": len(card)}
    manifest["bundle"] = bundle._bundle_id(manifest["files"])
    (folder / "manifest.json").write_text(json.dumps(manifest))


def edited(path: Path, **changes: object) -> None:
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


CARDS = ["damaged", "cut short", "newer", "newer bundle", "edited", "of another release"]


@pytest.mark.parametrize("what", CARDS)
def test_row_36_bad_cards_are_refused_with_the_reason(desk: Desk, what: str) -> None:
    file, schema = desk.put("survey.csv", LINES), desk.put("schema.toml", SCHEMA)
    card = desk / "out" / "card.json"
    if what == "damaged":
        card.write_bytes(card.read_bytes().replace(b'"records": 60', b'"records": 61'))
        words = f"{card} is damaged or was changed"
    elif what == "cut short":
        card.write_bytes(card.read_bytes()[:100])
        sealed_anew(desk / "out")
        words = "the card is damaged: not JSON"
    elif what == "newer":
        edited(card, version=99)
        sealed_anew(desk / "out")
        words = "newer"
    elif what == "newer bundle":
        edited(desk / "out" / "manifest.json", version=99)
        words = "was written by a newer maskwell (version 99); update maskwell"
    elif what == "edited":
        edited(card, seeded=False)
        sealed_anew(desk / "out")
        words = "the card is damaged or was edited"
    else:
        done(desk.mask(file, "--schema", schema, release="other"))
        shutil.copy(desk / "other" / "card.json", card)
        sealed_anew(desk / "out")
        words = "the card belongs to another release"
    before = states(desk.folder)
    ran = desk.mask(file, "--schema", schema, "--earlier", desk / "out", release="second")
    desk.assert_refused(ran, before, words)
    with pytest.raises(BadBundle) as refusal:
        mw.read_release(desk / "out")
    assert words in str(refusal.value)


def test_row_36_a_private_half_of_another_release_is_refused(desk: Desk) -> None:
    file, schema = desk.put("survey.csv", LINES), desk.put("schema.toml", SCHEMA)
    done(desk.mask(file, "--schema", schema, release="other", private="elsewhere"))
    before = states(desk.folder)
    ran = desk.mask(
        file, "--schema", schema, "--earlier", desk / "out", release="second", private="elsewhere"
    )
    desk.assert_refused(
        ran, before, "the private half of this release is not in", "give the folder that has it"
    )


def test_every_row_of_the_table_has_a_test() -> None:
    named = {int(number) for name in globals() for number in re.findall(r"(?<=_)\d\d(?=_)", name)}
    assert named | {case.row for case in REFUSED} == set(ROWS)

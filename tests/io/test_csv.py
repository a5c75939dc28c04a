from __future__ import annotations

import csv
import os
import subprocess
import sys
import tempfile
from io import StringIO
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import maskwell.io.csv as csv_module
from maskwell.errors import BadInput, CannotWrite, MaskwellWarning
from maskwell.io import load, read, write
from maskwell.io.csv import Dialect
from maskwell.io.csv_scan import is_regular
from maskwell.io.dialect import find_dialect
from maskwell.io.memory import available
from maskwell.io.numbers import to_text
from maskwell.io.titles import title_problem
from maskwell.notes import Note
from maskwell.notes import texts as note_texts
from maskwell.schema import Column, Schema
from maskwell.table import Table
from maskwell.words.phrases import number_text

SECRET = "73914.2865"
TWO = Schema((Column("a", "continuous"), Column("b", "text")))


def saved(folder: Path, content: str | bytes, name: str = "input.csv") -> Path:
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def texts(path: Path, **options: object) -> dict[str, list[str | None]]:
    return load(path, **options).data.to_pydict()  # type: ignore[arg-type]


def refusal(path: Path, schema: Schema | None = TWO, **options: object) -> str:
    with pytest.raises(BadInput) as caught:
        read(path, schema, **options)  # type: ignore[arg-type]
    assert SECRET not in str(caught.value)
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__ or caught.value.__context__ is None
    return str(caught.value)


def test_golden_table_survives_byte_for_byte(tmp_path: Path, golden: Table, golden_csv: str) -> None:
    assert golden.data.to_pydict()["ID"][3:5] == ["00000000000000017", "12345678901234567"]
    assert golden.data.to_pydict()["AGE"] == [34, None, None, None, None, 0]
    assert golden.status("AGE").tolist() == [0, 2, 4, 1, 5, 0]
    assert golden.status("INCOME").tolist() == [0, 3, 4, 0, 1, 0]
    assert golden.data.to_pydict()["COUNTRY"] == ["NA", "DE", "a, b", None, "DE", None]
    assert note_texts(golden.notes) == ("read as comma-separated, decimal point",)
    write(golden, tmp_path / "out.csv")
    assert (tmp_path / "out.csv").read_bytes() == golden_csv.encode()


@pytest.mark.parametrize(
    ("delimiter", "decimal", "said"),
    [
        (",", ".", "comma-separated, decimal point"),
        (";", ",", "semicolon-separated, decimal comma"),
        (";", ".", "semicolon-separated, decimal point"),
        ("\t", ",", "tab-separated, decimal comma"),
        ("\t", ".", "tab-separated, decimal point"),
    ],
)
@pytest.mark.parametrize("newline", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("bom", [False, True])
def test_dialects_are_found_said_and_written_back(
    tmp_path: Path, delimiter: str, decimal: str, said: str, newline: str, bom: bool
) -> None:
    lines = [("a", "b"), (f"1{decimal}5", "x"), ("2", ""), (f"-0{decimal}25", "y z")]
    content = "".join(delimiter.join(line) + newline for line in lines)
    path = saved(tmp_path, b"\xef\xbb\xbf" * bom + content.encode())
    table = read(path, TWO)
    assert note_texts(table.notes) == (f"read as {said}",)
    assert table.data.to_pydict() == {"a": [1.5, 2.0, -0.25], "b": ["x", None, "y z"]}
    assert table.source.dialect == Dialect(delimiter, decimal, newline=newline, bom=bom)
    write(table, tmp_path / "out.csv")
    assert (tmp_path / "out.csv").read_bytes() == path.read_bytes()


def test_decimal_comma_needs_evidence_in_whole_columns() -> None:
    assert find_dialect("a;b\n1,5;NA\nNA;2\n", whole=True)[0].decimal == ","
    assert find_dialect("a;b\n1,5;1.5\n", whole=True)[0].decimal == "."
    assert find_dialect("a;b\n1,5 or 2;1\n", whole=True)[0].decimal == "."
    assert find_dialect("a\n1,5\n2,5\n", whole=True)[0] == Dialect(";", ",")
    dialect, notes = find_dialect("a;b\n1,234;x\n12,345;y\n", whole=True)
    assert dialect.decimal == ","
    assert notes[1].code == "io.commas_before_three_digits"


def test_delimiter_ignores_quoted_fields_and_a_cut_last_line() -> None:
    head = 'a,b\n"1;2;3;4",x\n"5;6;7;8",y\n9;0;'
    assert find_dialect(head, whole=False)[0].delimiter == ","
    assert find_dialect('a;b\n"x,\ny";1\n', whole=True)[0].delimiter == ";"
    with pytest.raises(BadInput, match="separated by comma and semicolon: say which"):
        find_dialect("a,b;c\n1,2;3\n", whole=True)


def test_given_dialect_is_used_and_line_ends_still_found(tmp_path: Path) -> None:
    path = saved(tmp_path, "a|b\r\n1,5|x\r\n")
    table = read(path, TWO, dialect=Dialect("|", ","))
    assert note_texts(table.notes) == ("read as separated by '|', decimal comma, as asked",)
    assert table.data.to_pydict() == {"a": [1.5], "b": ["x"]}
    write(table, tmp_path / "out.csv")
    assert (tmp_path / "out.csv").read_bytes() == path.read_bytes()


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"delimiter": ",", "decimal": ","}, "must differ"),
        ({"delimiter": "ab"}, "delimiter must be one ASCII character"),
        ({"quote": "\n"}, "quote must be one ASCII character"),
        ({"decimal": "x"}, "decimal sign must be a point or a comma"),
        ({"newline": "x"}, "newline must be LF, CRLF or CR"),
    ],
)
def test_impossible_dialects_are_refused(wrong: dict[str, str], message: str) -> None:
    with pytest.raises(BadInput, match=message):
        Dialect(**wrong)  # type: ignore[arg-type]


def test_quotes_and_line_ends_inside_fields(tmp_path: Path) -> None:
    path = saved(tmp_path, 'a,b\n1,"say ""hi"", twice\nand again"\n2,"x\r\ny"\n3,5" pipe\n')
    assert texts(path) == {"a": ["1", "2", "3"], "b": ['say "hi", twice\nand again', "x\r\ny", '5" pipe']}
    write(read(path, TWO), tmp_path / "out.csv")
    assert texts(tmp_path / "out.csv") == texts(path)


def test_empty_is_null_and_na_is_not(tmp_path: Path) -> None:
    path = saved(tmp_path, 'a,b\n,NA\n"",NULL\n1,nan\n')
    assert texts(path) == {"a": [None, None, "1"], "b": ["NA", "NULL", "nan"]}


@pytest.mark.parametrize("content", ["", "a,b\n", "a,b", "\ufeff", "\n\n"])
def test_no_records(tmp_path: Path, content: str) -> None:
    assert "no records" in refusal(saved(tmp_path, content))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (f"a,b\n1,x\n{SECRET}\n2,y\n", "line 3 has 1 fields where the header has 2:"),
        (f"a,b\n1,x\n2,y,{SECRET}\n3\n", "line 3 has 3 fields where the header has 2 (2 such lines)"),
        (f'a,b\n1,"x\ny\nz"\n{SECRET},2,\n', "line 5 has 3 fields"),
        (f'a,b\n1,"x"y{SECRET}\n', "line 2: a quoted field is not closed, or text follows"),
        (f'a,b\n1,x\n{SECRET},"x\n', "line 3: a quoted field is not closed"),
        (f"a,b\n1,x\r{SECRET},y,\n", "line 3 has 3 fields"),
        (f"\na,b\n{SECRET},x\n", "the first line is blank: put the line with the names"),
    ],
)
def test_broken_lines_are_named(tmp_path: Path, content: str, message: str) -> None:
    assert message in refusal(saved(tmp_path, content))


def test_ragged_line_far_into_a_file_is_found_at_any_chunk_size(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    good = "".join(f'{i},"x, {i}"\n' for i in range(2000))
    path = saved(tmp_path, "a,b\n" + good + f"{SECRET},y,\n" + good)
    assert "line 2002 has 3 fields" in refusal(path)
    fine = saved(tmp_path, "a,b\n" + good + "\n" + good.rstrip("\n"), "fine.csv")
    for size in (37, 1024, 1 << 20):
        monkeypatch.setattr("maskwell.io.csv_scan.CHUNK_BYTES", size)
        assert not is_regular(path, Dialect(), 2)
        assert is_regular(fine, Dialect(), 2)


def test_irregular_quotes_and_line_ends_are_read_exactly(tmp_path: Path) -> None:
    path = saved(tmp_path, 'a,b\r\n1, "x"\n2,5" pipe\r\n\n"3",a""b\n')
    assert not is_regular(path, Dialect(), 2)
    assert texts(path) == {"a": ["1", "2", "3"], "b": [' "x"', '5" pipe', 'a""b']}
    one = saved(tmp_path, 'a\n5"\n\n""\n', "one.csv")
    assert texts(one) == {"a": ['5"', None, None]}


FRAGMENTS = st.sampled_from(["a", "1", ",", ",", '"', '""', '"x"', "\n", "\n", " ", "\r\n", "\r"])


@settings(max_examples=150, deadline=None)
@given(st.sampled_from(["h\n", "h,k\n"]), st.lists(FRAGMENTS, max_size=14).map("".join))
def test_any_file_is_read_as_the_csv_module_reads_it_or_refused(header: str, body: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = saved(Path(folder), header + body)
        try:
            got = texts(path, dialect=Dialect())
        except BadInput:
            got = None
    assert got == by_csv_module(header + body)


def by_csv_module(text: str) -> dict[str, list[str | None]] | None:
    try:
        records = list(csv.reader(StringIO(text, newline=""), strict=True))
    except csv.Error:
        return None
    names = records[0]
    rest = [record or [""] for record in records[1:] if record or len(names) == 1]
    if any(len(record) != len(names) for record in rest):
        return None
    return {name: [record[i] or None for record in rest] for i, name in enumerate(names)}


@pytest.mark.parametrize(
    ("encoding", "found", "option"),
    [
        ("utf-16", "UTF-16", "utf-16"),
        ("utf-16-le", "UTF-16", "utf-16-le"),
        ("utf-16-be", "UTF-16", "utf-16-be"),
        ("utf-32", "UTF-32", "utf-32"),
        ("latin-1", "Latin-1", "latin-1"),
        ("cp1252", "Windows-1252", "cp1252"),
    ],
)
def test_other_encodings_are_named_and_can_be_read(
    tmp_path: Path, encoding: str, found: str, option: str
) -> None:
    text = "a,b\n1.5,caf\u00e9\n" + ("2,\u20ac\n" if encoding not in ("latin-1",) else "2,x\n")
    path = saved(tmp_path, text.encode(encoding))
    message = refusal(path)
    assert found in message
    assert f'encoding="{option}"' in message
    table = read(path, TWO, encoding=option)
    assert table.data.to_pydict()["b"][0] == "caf\u00e9"
    assert table.notes[-1].code == "io.encoding"
    write(table, tmp_path / "out.csv")
    assert read(tmp_path / "out.csv", TWO).data.equals(table.data)


def test_encoding_may_stand_in_the_dialect(tmp_path: Path) -> None:
    path = saved(tmp_path, "a,b\n1,\u00e9\n".encode("latin-1"))
    assert read(path, TWO, dialect=Dialect(encoding="latin-1")).data.to_pydict()["b"] == ["\u00e9"]


@pytest.mark.parametrize(
    ("content", "options", "message"),
    [
        (b"a,b\n1,x\n2,\x00y\n", {}, "line 3 holds a NUL byte"),
        (b"a,b\n1,\xe2\x82", {}, "line 2 ends in the middle of a UTF-8 character"),
        (b"a,b\n1,\xff\n", {"encoding": "ascii"}, "the file is not in ascii"),
        (b"a,b\n1,x\n", {"encoding": "utf-99"}, "there is no encoding 'utf-99'"),
        (b"PK\x03\x04....", {}, "this is a zip or Excel file"),
        (b"\x1f\x8b....", {}, "this is a gzip file"),
        (b"1,2\n3,4\n", {}, "the first line holds numbers, not names"),
    ],
)
def test_files_that_are_not_text(
    tmp_path: Path, content: bytes, options: dict[str, str], message: str
) -> None:
    assert message in refusal(saved(tmp_path, content), **options)


def test_headers_blank_and_double(tmp_path: Path) -> None:
    message = refusal(saved(tmp_path, "a,,b,a, \n1,2,3,4,5\n"))
    assert "column 2 has no name" in message
    assert "column 5 has no name" in message
    assert "columns 1, 4 share the name 'a'" in message


TABLE = "nr;region;income\n" + "1;4;2,5\n2;5;8,1\n3;4;9,9\n" * 2


@pytest.mark.parametrize(
    ("above", "line"),
    [
        ("Survey 2025;;\n;;Amounts\n", 3),
        ("Survey 2025\n", 2),
        ("Survey 2025\n\n", 3),
        ("Survey;Unnamed: 1;Unnamed: 2\n", 2),
    ],
)
def test_titles_above_the_header_are_named(tmp_path: Path, above: str, line: int) -> None:
    said = f"line 1 looks like a title: the header seems to be line {line}; take"
    assert said in refusal(saved(tmp_path, above + TABLE))
    assert said in refusal(saved(tmp_path, above + TABLE + ";;\n"))
    assert said in refusal(saved(tmp_path, (above + TABLE).replace(",", ".").replace(";", ",")))


@pytest.mark.parametrize(
    "text",
    [TABLE, "nr;a;b\nx;y;z\n1;2;3\n", "nr;;b\nx;y;z\nx;y;z\n", ";;b\n1;2;3\n4;5;6\n", "a,b\nx,y\n1,2\n"],
)
def test_what_is_no_title(text: str) -> None:
    assert title_problem(text, ";,") == ""


def test_headers_are_put_into_nfc_and_lookalikes_told(tmp_path: Path) -> None:
    path = saved(tmp_path, "Gro\u0308\u00dfe,INC\u041eME\n1,2\n")
    with pytest.warns(MaskwellWarning) as warned:
        raw = load(path)
    assert raw.data.column_names == ["Gr\u00f6\u00dfe", "INC\u041eME"]
    assert "was put into Unicode normal form (NFC)" in str(warned[0].message)
    assert "mixes Latin and Cyrillic letters" in str(warned[1].message)
    assert note_texts(raw.notes[1:]) == tuple(str(one.message) for one in warned)


def test_headers_that_nfc_makes_equal_are_refused(tmp_path: Path) -> None:
    message = refusal(saved(tmp_path, "\u00e9,e\u0301\n1,2\n"))
    assert "columns 1, 2 share the name '\u00e9', which differ only in how accents are encoded" in message


def test_a_file_too_large_for_memory_is_refused(tmp_path: Path) -> None:
    path = saved(tmp_path, "a,b\n" + f"{SECRET},x\n" * 1000)
    message = refusal(path, memory_limit=50_000)
    assert message.startswith("the file needs about 50.1 MB of memory to be read and 50.0 kB is available: ")
    assert len(read(path, TWO, memory_limit=10**9)) == 1000
    assert available() is None or available() > 10**6  # type: ignore[operator]


def test_a_file_that_changes_while_it_is_read_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = saved(tmp_path, f"a,b\n{SECRET},x\n")
    original = csv_module._duckdb_text

    def slow(file: Path, *rest: object) -> pa.Table | None:
        found = original(file, *rest)  # type: ignore[arg-type]
        os.utime(path, ns=(1, 1))
        return found

    monkeypatch.setattr(csv_module, "_duckdb_text", slow)
    assert "changed while it was read" in refusal(path)


def test_very_long_lines_and_headers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(csv_module, "HEAD_BYTES", 64)
    names = [f"column_{i:06d}" for i in range(300)]
    wide = saved(tmp_path, ",".join(names) + "\n" + ",".join("1" for _ in names) + "\n")
    assert load(wide).data.column_names == names
    long = saved(tmp_path, "a,b\n1," + "x" * 3_000_000 + "\n", "long.csv")
    assert [len(text or "") for text in texts(long)["b"]] == [3_000_000]
    odd = saved(tmp_path, 'a,b\n1,5" pipe\n2,' + "x" * 300_000 + "\n", "odd.csv")
    assert len(load(odd).data) == 2


def test_paths(tmp_path: Path) -> None:
    assert "cannot be read: No such file or directory" in refusal(tmp_path / "absent.csv")
    (tmp_path / "folder.csv").mkdir()
    assert "is not a file" in refusal(tmp_path / "folder.csv")
    assert "the format 'xlsx' is not one of csv," in refusal(saved(tmp_path, "x", "a.xlsx"))
    assert "(did you mean 'csv'?)" in refusal(saved(tmp_path, "x", "a.csvv"))
    odd = saved(tmp_path, "a,b\n1,x\n", "it's [odd]*?.csv")
    assert len(read(odd, TWO)) == 1
    assert len(read(saved(tmp_path, "a,b\n1,x\n", "plain"), TWO, format="csv")) == 1
    table = read(odd, TWO)
    with pytest.raises(CannotWrite, match="does not exist: make it first"):
        write(table, tmp_path / "no" / "out.csv")
    with pytest.raises(CannotWrite, match=r"cannot be written: Is a directory"):
        write(table, tmp_path / "folder.csv")
    with pytest.raises(CannotWrite, match="format"):
        write(table, tmp_path / "out.docx")
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(
        ["folder.csv", "a.xlsx", "a.csvv", "it's [odd]*?.csv", "plain"]
    )


def test_schema_may_be_a_path_or_absent(tmp_path: Path) -> None:
    path = saved(tmp_path, "a,b\n1.5,x\n2.5,y\n")
    (tmp_path / "schema.toml").write_text(TWO.to_toml())
    assert read(path, tmp_path / "schema.toml").schema == TWO
    proposed = read(path)
    assert proposed.schema["a"].kind == "continuous"
    assert proposed.notes[-1] == Note("io.no_schema")


def test_text_codes_in_numbers_and_numbers_are_written_plainly(tmp_path: Path) -> None:
    schema = Schema(
        (Column("x", "continuous", missing=("NA", -9, "a;b")), Column("n", "integer", missing=("NA",)))
    )
    content = 'x;n\nNA;1\n-9;NA\n12,35;\n"a;b";9007199254740993\n0,00001;-3\n1e+16;0\n100;7\n'
    table = read(saved(tmp_path, content), schema)
    assert table.status("x").tolist() == [4, 5, 0, 6, 0, 0, 0]
    assert table.status("n").tolist() == [0, 4, 1, 0, 0, 0, 0]
    write(table, tmp_path / "out.csv")
    assert (tmp_path / "out.csv").read_text() == content


def test_one_column_keeps_its_missing_records(tmp_path: Path) -> None:
    schema = Schema((Column("a", "integer"),))
    table = read(saved(tmp_path, 'a\n1\n\n3\n""\n'), schema)
    assert table.data.to_pydict() == {"a": [1, None, 3, None]}
    write(table, tmp_path / "out.csv")
    assert (tmp_path / "out.csv").read_text() == 'a\n1\n""\n3\n""\n'
    assert read(tmp_path / "out.csv", schema).data.equals(table.data)


def test_tables_from_elsewhere_are_written_as_rfc_4180(
    tmp_path: Path, golden: Table, golden_csv: str
) -> None:
    write(golden, tmp_path / "t.parquet")
    table = read(tmp_path / "t.parquet", golden.schema)
    write(table, tmp_path / "t.csv")
    assert (tmp_path / "t.csv").read_text() == golden_csv
    write(golden, tmp_path / "t.tsv")
    assert (tmp_path / "t.tsv").read_text().startswith("ID\tAGE\t")
    assert "\ta, b\t" in (tmp_path / "t.tsv").read_text()


@settings(deadline=None)
@given(st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1))
def test_numbers_read_back_exactly_and_have_no_small_exponents(numbers: list[float]) -> None:
    written = to_text(pa.array(numbers, pa.float64())).to_pylist()
    assert np.array_equal([float(text) for text in written], numbers)
    assert written == [number_text(number + 0.0) for number in numbers]
    for text in written:
        assert "e" not in text or abs(int(text.split("e")[1])) >= 16
        assert text not in ("-0", "-0.0")


@settings(max_examples=40, deadline=None)
@pytest.mark.filterwarnings("ignore:.*which a spreadsheet runs as formulas")
@given(
    st.lists(
        st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=12), min_size=1, max_size=8
    )
)
def test_any_text_reads_back(tmp_path_factory: pytest.TempPathFactory, fields: list[str]) -> None:
    schema = Schema((Column("n", "integer"), Column("t", "text")))
    folder = tmp_path_factory.mktemp("text")
    data = pa.table(
        {"n": pa.array(range(len(fields))), "t": pa.array([field or None for field in fields], pa.string())}
    )
    write(Table(schema, data), folder / "t.csv")
    assert read(folder / "t.csv", schema, dialect=Dialect()).data.to_pydict() == data.to_pydict()


def test_importing_io_loads_nothing_heavy() -> None:
    heavy = ["pyarrow", "duckdb", "pandas", "scipy", "numba", "narwhals", "polars", "pyreadstat"]
    code = f"import sys, maskwell.io; print([name for name in {heavy} if name in sys.modules])"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"

from __future__ import annotations

import datetime
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from maskwell.errors import BadInput
from maskwell.io.conform import conform
from maskwell.notes import Note, texts
from maskwell.schema import Column, Schema
from maskwell.table import Source, Table

SECRET = "73914.2865"
ID = frozenset({"id"})
WEIGHT = frozenset({"weight"})


def table(columns: Mapping[str, Any], *described: Column, decimal: str = ".", kind: str = "pyarrow") -> Table:
    raw = pa.table(columns)
    types = {} if kind == "csv" else {name: raw.schema.field(name).type for name in raw.column_names}
    return conform(raw, Schema(described), Source(kind, types), decimal=decimal)


def column(values: Any, described: Column, decimal: str = ".") -> Table:
    return table({described.name: values}, described, decimal=decimal)


def refusal(columns: Mapping[str, Any], *described: Column, decimal: str = ".") -> str:
    with pytest.raises(BadInput) as caught:
        table(columns, *described, decimal=decimal)
    assert SECRET not in str(caught.value)
    assert "\n" not in "".join(caught.value.problems)
    return str(caught.value)


def test_statuses_follow_the_contract() -> None:
    x = Column("x", "continuous", top=90, bottom=0, missing=(-9, "NA", 99))
    read = column(["1.5", None, "90", "0", "-9", "NA", "99", " 2 ", "  "], x)
    assert read.status("x").tolist() == [0, 1, 2, 3, 4, 5, 6, 0, 1]
    assert read.data.to_pydict() == {"x": [1.5, *[None] * 6, 2.0, None]}
    typed = column(pa.array([1.5, None, 90, 0, -9, np.nan, 99], from_pandas=False), x)
    assert typed.status("x").tolist() == [0, 1, 2, 3, 4, 1, 6]
    assert typed.data["x"].null_count == 6


def test_only_columns_with_closed_cells_have_statuses() -> None:
    read = table({"a": ["1", None], "b": ["1", "2"]}, Column("a", "integer"), Column("b", "integer"))
    assert set(read.closed) == {"a"}
    assert read.closed["a"].dtype == np.uint8
    assert read.data.schema.types == [pa.int64(), pa.int64()]


def test_nothing_is_kept_under_nulls() -> None:
    read = column(pa.array([1.0, -987654.25, 3.0]), Column("x", "continuous", missing=(-987654.25,)))
    buffers = [buffer for buffer in read.array("x").buffers() if buffer is not None]
    assert all(np.float64(-987654.25).tobytes() not in buffer.to_pybytes() for buffer in buffers)


def test_names_are_matched_with_the_nearest_hint() -> None:
    message = refusal({"INCOM": ["1"], "zzz": ["1"]}, Column("INCOME", "integer"), Column("AGE", "integer"))
    assert "column 'INCOME' of the schema is not in the data (did you mean 'INCOM'?)" in message
    assert "column 'AGE' of the schema is not in the data: add it" in message
    assert "column 'INCOM' is not in the schema (did you mean 'INCOME'?): describe it or drop it" in message
    assert "column 'zzz' is not in the schema: describe it or drop it" in message


def test_a_first_record_in_place_of_the_names_is_not_shown() -> None:
    message = refusal({SECRET: ["1"], "x": ["2"]}, Column("INCOME", "integer"), Column("AGE", "integer"))
    assert message.startswith(
        "no column of the schema is in the data: check that its first line holds the names"
    )


def test_names_match_in_any_unicode_form_and_take_the_order_of_the_schema() -> None:
    read = table({"b": ["1"], "e\u0301": ["2"]}, Column("\u00e9", "integer"), Column("b", "integer"))
    assert read.data.to_pydict() == {"\u00e9": [2], "b": [1]}


def test_dropped_columns_may_be_absent_or_anything() -> None:
    day = pa.array([datetime.date(2020, 1, 31)])
    dropped = [
        Column("gone", "text", drop=True),
        Column("day", "text", drop=True),
        Column("n", "integer", drop=True),
    ]
    read = table({"a": [1], "day": day, "n": ["x"]}, Column("a", "integer"), *dropped)
    assert read.names == ("a", "day", "n")
    assert read.data.to_pydict() == {"a": [1], "day": ["2020-01-31"], "n": ["x"]}
    assert read.schema["n"] == Column("n", "text", drop=True)
    assert set(read.source.types) == {"a"}


def test_all_problems_are_listed_at_once() -> None:
    columns = {
        "id": ["1", "1", None],
        "x": ["1", SECRET + "x", "2"],
        "n": ["1", "2.5", "3"],
        "c": ["a", "b", SECRET],
        "w": ["1", "0", "-1"],
    }
    described = (
        Column("id", "text", ID),
        Column("x", "continuous"),
        Column("n", "integer"),
        Column("c", "category", categories=("a", "b")),
        Column("w", "continuous", WEIGHT),
    )
    with pytest.raises(BadInput) as caught:
        table(columns, *described)
    assert caught.value.problems == (
        "column 'id': a record without an id, first at record 3: give each record an id of its own",
        "column 'id': ids that occur more than once, at records 1, 2: give each record its own",
        "column 'x': text where a number belongs, first at record 2: correct it, declare it as a missing code, "
        "or make the column a category",
        "column 'n': numbers that are not whole, first at record 2: make the column continuous, or round them",
        "column 'c': values that are not among its categories (1 different), first at record 3: add them to the "
        "schema or correct them",
        "column 'w': a weight of zero, first at record 2: every record needs a positive weight",
        "column 'w': a negative weight, first at record 3: every record needs a positive weight",
    )


@pytest.mark.parametrize(
    ("field", "decimal", "kind"),
    [
        ("abc", ".", "text where a number belongs"),
        (".", ".", "text where a number belongs"),
        ("0x1F", ".", "text where a number belongs"),
        ("1_000", ".", "text where a number belongs"),
        ("12-3", ",", "text where a number belongs"),
        ("1,234.5", ".", "numbers with thousands separators"),
        ("1,234", ".", "numbers with thousands separators"),
        ("1'234'567", ".", "numbers with thousands separators"),
        ("1 234", ".", "numbers with thousands separators"),
        ("1.234.567,8", ".", "numbers with thousands separators"),
        ("1.234,5", ",", "numbers with thousands separators"),
        ("12,35", ".", "numbers with the other decimal sign"),
        ("12.35", ",", "numbers with the other decimal sign"),
        ("inf", ".", "an infinite, too large or undefined number"),
        ("-Infinity", ".", "an infinite, too large or undefined number"),
        ("nan", ".", "an infinite, too large or undefined number"),
        ("1e400", ".", "an infinite, too large or undefined number"),
        ("1e400", ",", "an infinite, too large or undefined number"),
    ],
)
def test_fields_that_are_no_numbers_are_told_by_kind(field: str, decimal: str, kind: str) -> None:
    for described in (Column("x", "continuous"), Column("x", "integer")):
        message = refusal({"x": ["1", None, field, "2", field]}, described, decimal=decimal)
        assert message.startswith(f"column 'x': {kind}, first at record 3 (2 records): ")
        assert len(field) < 4 or field not in message


def test_several_kinds_in_one_column_are_several_sentences() -> None:
    message = refusal({"x": ["1,5", "abc", "inf", "2"]}, Column("x", "continuous"))
    assert message.startswith("3 problems:")


def test_decimal_comma() -> None:
    read = column(["1,5", "-2", "1e-3", ",25", None], Column("x", "continuous", missing=(-2,)), decimal=",")
    assert read.data.to_pydict()["x"] == [1.5, None, 0.001, 0.25, None]


def test_missing_codes_are_taken_out_before_the_limits_are_checked() -> None:
    x = Column("x", "integer", top=100, bottom=0, missing=(999, -9))
    assert column(["5", "999", "-9"], x).status("x").tolist() == [0, 4, 5]
    message = refusal({"x": ["5", "101", "999", "102", "-1"]}, x)
    assert (
        "column 'x': values above the top code, first at record 2 (2 records): raise the top code" in message
    )
    assert "column 'x': values below the bottom code, first at record 5: lower the bottom code" in message


def test_whole_numbers_stay_exact() -> None:
    large = [2**53 + 1, -(2**63), 2**63 - 1, 7]
    for values in (pa.array(large), pa.array([str(number) for number in large])):
        assert column(values, Column("n", "integer")).data.to_pydict()["n"] == large
    assert column(["12.0", "1e3", "+4"], Column("n", "integer")).data.to_pydict()["n"] == [12, 1000, 4]
    assert column(pa.array([1.0, None]), Column("n", "integer")).data.to_pydict()["n"] == [1, None]
    assert column(pa.array([Decimal("1.25")]), Column("x", "continuous")).data.to_pydict()["x"] == [1.25]
    assert column(pa.array([True, None]), Column("n", "integer")).data.to_pydict()["n"] == [1, None]


@pytest.mark.parametrize(
    "values", [pa.array([1, 2**63], pa.uint64()), ["1", "9223372036854775808"], pa.array([1.0, 1e19])]
)
def test_whole_numbers_beyond_int64_are_refused(values: Any) -> None:
    message = refusal({"n": values}, Column("n", "integer"))
    assert message.startswith(
        "column 'n': a whole number beyond 2^63 - 1, first at record 2: make the column"
    )


def test_infinite_numbers_of_typed_columns_are_refused() -> None:
    message = refusal({"x": pa.array([1.0, None, np.inf])}, Column("x", "continuous"))
    assert message == "column 'x': an infinite number, first at record 3: correct it, or leave it missing"


def test_widening_never_wraps() -> None:
    small = column(pa.array([200, 255, 0], pa.uint8()), Column("n", "integer"))
    assert small.to_arrow().schema.types == [pa.uint8()]
    for noisy in ([300.0, 1.0, 2.0], [-1.0, 1.0, 2.0]):
        out = small.with_columns(
            {"n": (small.schema["n"], np.array(noisy), np.zeros(3, np.uint8))}
        ).to_arrow()
        assert out.to_pydict()["n"] == noisy
    single = column(pa.array([1.5], pa.float32()), Column("x", "continuous"))
    out = single.with_columns(
        {"x": (single.schema["x"], np.array([1e300]), np.zeros(1, np.uint8))}
    ).to_arrow()
    assert out.to_pydict()["x"] == [1e300]
    flag = column(pa.array([True, False]), Column("n", "integer"))
    assert flag.to_arrow().schema.types == [pa.int64()]


@pytest.mark.parametrize(
    "values",
    [
        pa.array([1, 2, None, 1]),
        pa.array([1.0, 2.0, None, 1.0]),
        pa.array([1.0, 2.0, np.nan, 1.0], from_pandas=False),
        pa.array(["1", "2", "", "1"]),
        pa.array(["1", "2", None, "1"], pa.large_string()),
        pa.array(["1", "2", None, "1"], pa.string_view()),
        pa.array(["1", "2", None, "1"]).dictionary_encode(),
        pa.array([1, 2, None, 1]).dictionary_encode(),
        pa.array([Decimal(1), Decimal(2), None, Decimal(1)]),
    ],
)
def test_categories_come_in_any_type(values: Any) -> None:
    read = column(values, Column("c", "category", categories=("1", "2")))
    assert read.data.to_pydict()["c"] == ["1", "2", None, "1"]
    assert read.data.schema.types == [pa.string()]
    assert read.status("c").tolist() == [0, 0, 1, 0]


def test_categories_of_booleans_codes_and_undeclared_ones() -> None:
    flags = Column("c", "category", categories=("false", "true"))
    assert column(pa.array([True, False, None]), flags).data.to_pydict()["c"] == ["true", "false", None]
    coded = column(pa.array([1, -9, 2]), Column("c", "category", categories=("1", "2"), missing=(-9.0,)))
    assert coded.status("c").tolist() == [0, 4, 0]
    open_ended = column(["10", "9", None, "2"], Column("c", "category"))
    assert open_ended.schema["c"].categories == ("2", "9", "10")
    assert texts(open_ended.notes) == ("column 'c': the schema lists no categories; the 3 found are taken",)


def test_na_is_a_country_unless_declared_missing() -> None:
    assert column(["NA", "DE"], Column("c", "category", categories=("DE", "NA"))).status("c").tolist() == [
        0,
        0,
    ]
    assert column(["NA", "DE"], Column("c", "category", missing=("NA",))).status("c").tolist() == [4, 0]


def test_unknown_categories_are_counted_never_shown() -> None:
    message = refusal({"c": ["a", SECRET, "y", SECRET]}, Column("c", "category", categories=("a",)))
    assert message.startswith(
        "column 'c': values that are not among its categories (2 different), first at record 2 (3 records)"
    )


@pytest.mark.parametrize(
    "words", [["0", "1", "yes"], ["Yes", "no"], ["true", "0"], ["y", "N"], ["F", "N", "Y"]]
)
def test_mixed_booleans_are_refused(words: list[str]) -> None:
    for described in (Column("c", "category"), Column("c", "category", categories=tuple(words))):
        message = refusal({"c": [words[0], None, *words]}, described)
        assert "column 'c': yes and no in more than one spelling, first at record" in message
        assert "spell them in one way, such as 0 and 1" in message


@pytest.mark.parametrize(
    "words", [["0", "1"], ["Yes", "No"], ["0", "1", "2", "yes"], ["T", "F", "X"], ["F", "N"]]
)
def test_other_categories_are_not_taken_for_booleans(words: list[str]) -> None:
    assert column(words, Column("c", "category")).schema["c"].categories == tuple(sorted(words))


@pytest.mark.parametrize(
    "values",
    [
        pa.array([datetime.date(2020, 1, 31)]),
        pa.array([datetime.datetime(2020, 1, 31, 12)]),
        pa.array([datetime.time(12)]),
        pa.array([datetime.timedelta(1)]),
    ],
)
def test_dates_ask_what_they_are(values: Any) -> None:
    described = (Column("d", kind) for kind in ("continuous", "integer", "category", "text"))
    for column_kind in (
        *described,
        Column("d", "text", ID),
        Column("d", "text", frozenset({"key"}), drop=True),
    ):
        message = refusal({"d": values}, column_kind)
        assert message == "column 'd' holds dates or times: turn it into a number or a category, or drop it"


def test_other_types_are_refused() -> None:
    assert "holds lists or records" in refusal({"x": pa.array([[1]])}, Column("x", "integer"))
    assert "holds binary values, which are neither" in refusal({"x": pa.array([b"1"])}, Column("x", "text"))


def test_ids_are_kept_exactly() -> None:
    texts = ["007", "12345678901234567", "7"]
    assert column(texts, Column("id", "text", ID)).data.to_pydict()["id"] == texts
    whole = column(pa.array([7, 12345678901234567]), Column("id", "integer", ID))
    assert whole.data.to_pydict()["id"] == ["7", "12345678901234567"]
    assert whole.to_arrow().to_pydict()["id"] == [7, 12345678901234567]
    message = refusal({"id": pa.array([7.0])}, Column("id", "integer", ID))
    assert message == "column 'id' is the id and holds decimal numbers: store ids as text or as whole numbers"


def test_the_first_five_records_with_double_ids_are_named() -> None:
    ids = ["x", SECRET, "a", SECRET, "b", "b", "b", "c", "a"]
    message = refusal({"id": ids}, Column("id", "text", ID))
    assert message == (
        "column 'id': ids that occur more than once, at records 2, 3, 4, 5, 6 and 2 more: give each record its own"
    )


def test_weights_must_be_positive_numbers() -> None:
    message = refusal({"w": ["1", None, "0", "-2", "-9"]}, Column("w", "continuous", WEIGHT, missing=(-9,)))
    for what, record in (("a missing weight", 2), ("a weight of zero", 3), ("a negative weight", 4)):
        assert (
            f"column 'w': {what}, first at record {record}: every record needs a positive weight" in message
        )
    assert "column 'w': a code where a weight belongs, first at record 5" in message


def test_values_off_the_unit_are_noted() -> None:
    read = column(["0.1", "0.15", "0.3", "12.34"], Column("x", "continuous", unit=0.1))
    assert texts(read.notes) == ("column 'x': 2 values are off its unit 0.1",)
    assert column(["12.35", "0.07", "1e9"], Column("x", "continuous", unit=0.01)).notes == ()


def test_no_records_and_all_missing_columns() -> None:
    assert "there are no records" in refusal({"x": pa.array([], pa.string())}, Column("x", "integer"))
    described = (Column("x", "integer"), Column("c", "category", categories=("a",)), Column("t", "text"))
    read = table({name: pa.nulls(2) for name in "xct"}, *described)
    assert read.data.schema.types == [pa.int64(), pa.string(), pa.string()]
    assert all(read.status(name).tolist() == [1, 1] for name in "xct")


@pytest.mark.parametrize("kind", [pa.decimal128(12, 2), pa.decimal256(40, 2), pa.float32()], ids=str)
def test_decimals_and_single_floats_are_read_by_their_digits(kind: pa.DataType) -> None:
    cents = np.random.default_rng(3).integers(-5_000_000, 5_000_000, 3000)
    texts = [f"{value / 100:.2f}" for value in cents]
    given = pa.array(texts).cast(kind)
    table = conform(
        pa.table({"x": given}), Schema((Column("x", "continuous", unit=0.01),)), Source(types={"x": kind})
    )
    assert table.values(["x"])[:, 0].tolist() == [float(text) for text in texts]
    assert table.notes == ()
    assert table.written("x").equals(given)


@pytest.mark.parametrize("kind", [pa.decimal128(7, 2), pa.float32()], ids=str)
def test_a_type_that_cannot_hold_the_released_values_is_widened(kind: pa.DataType) -> None:
    column = Column("x", "continuous", unit=0.01)
    table = conform(
        pa.table({"x": pa.array([1.5, 2.25]).cast(kind)}), Schema((column,)), Source(types={"x": kind})
    )
    values = np.array([1234567.89, 0.01])
    masked = table.with_columns({"x": (column, values, np.zeros(2, np.uint8))}).written("x")
    assert masked.equals(pa.array(values))


def test_long_decimals_are_kept_as_text_exactly() -> None:
    ids = ["12345678901234567890", "12345678901234567891"]
    given = pa.table(
        {
            "ID": pa.array(ids).cast(pa.decimal128(22, 0)),
            "C": pa.array(["1.50", "2.00"]).cast(pa.decimal128(9, 2)),
        }
    )
    table = conform(
        given, Schema((Column("ID", "text", frozenset({"id"})), Column("C", "category"))), Source()
    )
    assert table.array("ID").to_pylist() == ids
    assert table.array("C").to_pylist() == ["1.5", "2"]
    tiny = pa.table({"C": pa.array(["0", "0.00000001"]).cast(pa.decimal128(9, 8))})
    assert conform(tiny, Schema((Column("C", "text"),)), Source()).array("C").to_pylist() == [
        "0",
        "0.00000001",
    ]


def test_a_file_without_any_name_of_the_schema_is_told_as_it_was_read() -> None:
    with pytest.raises(
        BadInput, match=r"is in the data \(it was read as comma-separated, decimal point\): check"
    ):
        conform(
            pa.table({"id|amount": ["1|2"]}),
            Schema((Column("zzz", "integer"),)),
            Source(),
            notes=(Note("io.dialect", {"delimiter": ",", "decimal": "."}),),
        )

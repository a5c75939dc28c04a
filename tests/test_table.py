"""Tables: statuses as the contract says, values and codes, and columns written back as they came."""

from __future__ import annotations

import pickle
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from maskwell.errors import BadInput, BadPlan
from maskwell.schema import BOTTOM_CODED, FIRST_MISSING_CODE, MISSING, OPEN, TOP_CODED, Column, Schema
from maskwell.table import Source, Table, coded_values, to_arrow

AGE = Column("AGE", "integer", top=90, bottom=15, missing=(-9, -8))
EDU = Column("EDU", "category", categories=("low", "high", "other"), missing=("?",))
PAY = Column("PAY", "continuous", missing=(-1.5,))
SCHEMA = Schema((Column("ID", "text", frozenset({"id"})), AGE, EDU, PAY))
ROWS = {
    "ID": ["a", "b", "c", "d", "e", "f"],
    "AGE": [15, 16, 90, None, -9, -8],
    "EDU": ["low", "?", None, "other", "high", "low"],
    "PAY": [0.5, -1.5, None, 3.0, 1e6, -0.0],
}


@pytest.fixture
def table() -> Table:
    return Table.from_frame(pa.table(ROWS), SCHEMA)


# --- the contract of statuses


def test_statuses_are_those_of_the_contract(table: Table):
    assert (OPEN, MISSING, TOP_CODED, BOTTOM_CODED, FIRST_MISSING_CODE) == (0, 1, 2, 3, 4)
    assert table.status("AGE").tolist() == [3, 0, 2, 1, 4, 5]
    assert table.status("EDU").tolist() == [0, 4, 1, 0, 0, 0]
    assert table.status("PAY").tolist() == [0, 4, 1, 0, 0, 0]
    assert table.status("ID").tolist() == [0] * 6
    assert {table.status(name).dtype for name in table.names} == {np.dtype(np.uint8)}


def test_values_are_nan_unless_open(table: Table):
    for name in ("AGE", "EDU", "PAY"):
        values = table.values([name])[:, 0]
        assert np.array_equal(np.isnan(values), table.status(name) != OPEN)
        assert np.array_equal(table.is_open([name])[:, 0], table.status(name) == OPEN)


def test_category_codes_follow_the_schema_and_not_the_data(table: Table):
    assert table.values(["EDU"])[[0, 3, 4, 5], 0].tolist() == [0.0, 2.0, 1.0, 0.0]


def test_only_columns_with_closed_cells_hold_statuses(table: Table):
    assert set(table.closed) == {"AGE", "EDU", "PAY"}
    assert table.take(np.array([0, 1])).closed.keys() == {"AGE", "EDU", "PAY"}
    assert table.take(np.array([1])).closed.keys() == {"EDU", "PAY"}


def test_what_is_written_for_each_status():
    assert coded_values(AGE) == {2: 90, 3: 15, 4: -9, 5: -8}
    assert coded_values(EDU) == {4: "?"}


# --- round trips


def test_columns_are_written_back_as_they_came(table: Table):
    assert table.to_arrow().to_pydict() == ROWS
    assert table.to_frame().schema.types == pa.table(ROWS).schema.types


@pytest.mark.parametrize(
    "kind", [pa.int8(), pa.int16(), pa.uint8(), pa.float32(), pa.float64(), pa.decimal128(5, 1)]
)
def test_types_come_back_where_the_values_fit(kind: Any):
    schema = Schema((Column("A", "continuous"),))
    frame = pa.table({"A": pa.array([1.0, 2.0, None, 120.0]).cast(kind)})
    assert Table.from_frame(frame, schema).written("A").equals(frame.column("A").chunk(0))


@pytest.mark.parametrize(
    ("kind", "value"), [(pa.int8(), 300.0), (pa.uint8(), -1.0), (pa.int64(), 0.5), (pa.float32(), 1e300)]
)
def test_values_that_no_longer_fit_their_type_are_widened_and_never_wrapped(kind: Any, value: float):
    column = Column("A", "continuous")
    table = Table.from_frame(pa.table({"A": pa.array([1, 2]).cast(kind)}), Schema((column,)))
    noisy = table.with_columns({"A": (column, np.array([value, 1.0]), np.zeros(2, np.uint8))})
    assert noisy.written("A").to_pylist() == [value, 1.0]


@st.composite
def cells(draw: st.DrawFn) -> tuple[Column, list[float], list[int]]:
    """A column with codes, some values (amounts or codes 0..K-1) and their statuses."""
    column = draw(st.sampled_from([AGE, EDU, PAY]))
    amounts = {
        "integer": st.integers(16, 89),
        "category": st.integers(0, 2),
        "continuous": st.floats(-1e9, 1e9).filter(lambda x: x != -1.5),
    }
    statuses = [OPEN, MISSING, *coded_values(column)]
    pairs = draw(st.lists(st.tuples(amounts[column.kind], st.sampled_from(statuses)), min_size=1, max_size=8))
    return column, [float(value) for value, _ in pairs], [status for _, status in pairs]


@given(cells())
def test_values_and_statuses_survive_being_written_and_read(cell: tuple[Column, list[float], list[int]]):
    column, amounts, marks = cell
    values, status = np.array(amounts), np.array(marks, np.uint8)
    table = Table(
        Schema((column,)), pa.table({column.name: to_arrow(column, values, status)}), {column.name: status}
    )
    assert np.array_equal(
        table.values([column.name])[:, 0], np.where(status == OPEN, values, np.nan), equal_nan=True
    )
    again = Table.from_frame(table.to_arrow(), Schema((column,)))
    assert np.array_equal(again.status(column.name), status)
    assert np.array_equal(again.values([column.name]), table.values([column.name]), equal_nan=True)


def test_nothing_stands_under_a_null():
    for column in (AGE, EDU, PAY):
        array = to_arrow(column, np.array([2.0, 1.0]), np.array([1, 0], np.uint8))
        assert array.null_count == 1
        if column.kind != "category":
            width = array.type.bit_width // 8
            assert array.buffers()[1].to_pybytes()[:width] == bytes(width)


def test_text_codes_in_a_column_of_numbers_stay_null_in_arrow():
    column = Column("A", "continuous", missing=(".a",))
    table = Table(
        Schema((column,)), pa.table({"A": pa.array([1.0, None])}), {"A": np.array([0, 4], np.uint8)}
    )
    assert table.written("A").to_pylist() == [1.0, None]


# --- taking, selecting, replacing


def test_taken_records_keep_nothing_of_the_others():
    secret = "do not keep this"
    frame = pa.table({"T": ["x", secret, None], "N": pa.array([1.0, 123.456, None])})
    table = Table.from_frame(frame, Schema((Column("T", "text"), Column("N", "continuous"))))
    taken = pickle.dumps(table.take(np.array([0, 2])))
    assert secret.encode() not in taken
    assert np.float64(123.456).tobytes() not in taken
    assert secret.encode() in pickle.dumps(table)


def test_take_selects_and_orders_values_and_statuses(table: Table):
    taken = table.take(np.array([5, 0, 0]))
    assert taken.array("ID").to_pylist() == ["f", "a", "a"]
    assert taken.status("AGE").tolist() == [5, 3, 3]


def test_select_refuses_every_unknown_column_at_once(table: Table):
    assert table.select(["PAY", "ID"]).names == ("PAY", "ID")
    with pytest.raises(BadPlan) as refusal:
        table.select(["PAYY", "ID", "zzz"])
    assert len(refusal.value.problems) == 2


def test_replaced_columns_bring_their_statuses(table: Table):
    status = np.array([0, 0, 0, 0, 0, 1], np.uint8)
    changed = table.with_columns({"PAY": (PAY, np.arange(6.0), status)})
    assert changed.status("PAY").tolist() == status.tolist()
    opened = changed.with_columns({"PAY": (PAY, np.arange(6.0), np.zeros(6, np.uint8))})
    assert "PAY" not in opened.closed
    assert table.status("PAY").tolist() == [0, 4, 1, 0, 0, 0]


def test_whole_numbers_beyond_doubles_are_refused_without_being_shown():
    column = Column("A", "integer")
    with pytest.raises(BadInput, match=r"'A' holds whole numbers beyond 2\^53") as refusal:
        to_arrow(column, np.array([2.0**60]), np.zeros(1, np.uint8))
    assert str(2**60) not in str(refusal.value)


def test_text_has_no_values(table: Table):
    with pytest.raises(BadPlan, match="'ID' is text"):
        table.values(["ID"])


def test_chunks_do_not_matter(table: Table):
    chunked = replace(table, data=pa.concat_tables([table.data.slice(0, 2), table.data.slice(2)]))
    assert chunked.data.column("AGE").num_chunks == 2
    assert chunked == table
    assert np.array_equal(chunked.values(["AGE", "EDU"]), table.values(["AGE", "EDU"]), equal_nan=True)


def test_equality_is_about_schema_values_and_statuses(table: Table):
    other = replace(table, source=Source("csv"), notes=("read elsewhere",))
    assert other == table
    assert table.take(np.array([1, 0, 2, 3, 4, 5])) != table
    status = table.status("PAY").copy()
    status[1] = MISSING
    assert replace(table, closed={**table.closed, "PAY": status}) != table
    assert table != "a table"


def test_the_repr_shows_shape_and_roles_and_no_value(table: Table):
    assert repr(table) == "<Table of 6 records x 4 columns; id: ID>"


def test_one_column_may_be_named_bare(table: Table):
    np.testing.assert_array_equal(table.values("AGE"), table.values(["AGE"]))
    np.testing.assert_array_equal(table.is_open("AGE"), table.is_open(["AGE"]))
    with pytest.raises(BadPlan, match="no column 'WAGE'"):
        table.values("WAGE")


@pytest.mark.parametrize("columns", [None, 3])
def test_values_of_what_is_no_name_are_refused_in_a_sentence(table: Table, columns: Any) -> None:
    with pytest.raises(BadPlan, match="values takes the names of columns"):
        table.values(columns)


def test_gap_patterns_are_those_of_the_first_column_that_has_them():
    schema = Schema(tuple(Column(name, "continuous") for name in "abcd"))
    some, other = [1.0, None, 2.0, None], [None, 1.0, 2.0, 3.0]
    table = Table.from_frame(pa.table({"a": [1.0, 2.0, 3.0, 4.0], "b": some, "c": other, "d": some}), schema)
    found = table.gap_patterns("abcd")
    assert {name: status.tolist() for name, status in found.items()} == {"b": [0, 1, 0, 1], "c": [1, 0, 0, 0]}

from __future__ import annotations

import datetime
import pickle
import warnings
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from maskwell.errors import BadInput, MaskwellWarning
from maskwell.io.frames import from_native, to_native
from maskwell.notes import texts
from maskwell.schema import Column, Schema
from maskwell.table import Table

SENTINEL = "SENTINEL_7391"
CATEGORY = Schema((Column("c", "category", categories=("a", "b")),))


def golden_arrow(golden: Table) -> pa.Table:
    return golden.to_arrow()


def as_pandas(golden: Table) -> Any:
    return golden_arrow(golden).to_pandas()


def as_pandas_arrow(golden: Table) -> Any:
    return golden_arrow(golden).to_pandas(types_mapper=pd.ArrowDtype)


def as_pandas_nullable(golden: Table) -> Any:
    return as_pandas(golden).convert_dtypes()


def as_polars(golden: Table) -> Any:
    return pl.from_arrow(golden_arrow(golden))


def as_duckdb(golden: Table) -> Any:
    return duckdb.from_arrow(golden_arrow(golden))


FRAMES = {
    "pandas": as_pandas,
    "pandas arrow": as_pandas_arrow,
    "pandas nullable": as_pandas_nullable,
    "polars": as_polars,
    "pyarrow": golden_arrow,
    "duckdb": as_duckdb,
}


def arrow_of(frame: Any) -> pa.Table:
    if isinstance(frame, pd.DataFrame):
        return pa.Table.from_pandas(frame, preserve_index=False)
    return (
        frame
        if isinstance(frame, pa.Table)
        else frame.to_arrow()
        if hasattr(frame, "to_arrow")
        else frame.to_arrow_table()
    )


@pytest.mark.parametrize("name", FRAMES)
def test_golden_table_survives_every_frame(name: str, golden: Table) -> None:
    frame = FRAMES[name](golden)
    table = from_native(frame, golden.schema)
    assert table.data.equals(golden.data)
    assert {column: status.tolist() for column, status in table.closed.items()} == {
        column: status.tolist() for column, status in golden.closed.items()
    }
    assert table.source.kind == name.split(" ")[0]
    back = to_native(table)
    assert type(back) is type(frame)
    assert from_native(back, golden.schema).data.equals(golden.data)
    assert arrow_of(back).to_pydict() == golden_arrow(golden).to_pydict()


def test_table_methods_are_the_same_functions(golden: Table) -> None:
    frame = as_polars(golden)
    assert Table.from_frame(frame, golden.schema).to_frame().equals(frame)
    assert isinstance(golden.to_frame(), pa.Table)
    assert Table.from_frame(frame).schema["INCOME"].kind == "continuous"


def test_whole_numbers_stay_whole_with_missing_cells() -> None:
    schema = Schema((Column("n", "integer"), Column("m", "integer"), Column("f", "continuous")))
    frame = pd.DataFrame({"n": pd.array([1, None], dtype="Int64"), "m": [1, 2], "f": [1.5, None]})
    back = from_native(frame, schema).to_frame()
    assert [str(dtype) for dtype in back.dtypes] == ["Int64", "int64", "float64"]
    assert back.equals(frame)
    objects = from_native(pd.DataFrame({"n": pd.Series([1, None], dtype=object)}), schema.without(["m", "f"]))
    assert str(objects.to_frame().dtypes["n"]) == "Int64"
    whole = pl.DataFrame({"n": [1, None], "m": [1, 2], "f": [1.5, None]})
    assert from_native(whole, schema).to_frame().equals(whole)


def test_pandas_backends_come_back() -> None:
    schema = Schema(
        (Column("n", "integer"), Column("a", "integer"), Column("t", "text"), Column("b", "category"))
    )
    frame = pd.DataFrame(
        {
            "n": pd.array([1, 2], dtype="Int16"),
            "a": pd.array([1, None], dtype=pd.ArrowDtype(pa.int32())),
            "t": ["x", "y"],
            "b": [True, False],
        }
    )
    back = from_native(frame, schema).to_frame()
    assert back.dtypes.to_dict() == frame.dtypes.to_dict()
    assert back.equals(frame)


def test_a_small_integer_that_no_longer_fits_is_widened() -> None:
    schema = Schema((Column("n", "integer"),))
    for frame in (
        pd.DataFrame({"n": np.array([1, 255], np.uint8)}),
        pl.DataFrame({"n": [1, 255]}, schema={"n": pl.UInt8}),
    ):
        table = from_native(frame, schema)
        noisy = table.with_columns({"n": (schema["n"], np.array([-5.0, 300.0]), np.zeros(2, np.uint8))})
        assert arrow_of(noisy.to_frame()).to_pydict() == {"n": [-5, 300]}


def labelled_frames() -> dict[str, Any]:
    labels = ["b", "a", SENTINEL]
    arrow = pa.DictionaryArray.from_arrays(pa.array([1, 0, None]), pa.array(labels))
    return {
        "pandas": pd.DataFrame({"c": pd.Categorical(["a", "b", None], categories=labels)}),
        "pandas ordered": pd.DataFrame(
            {"c": pd.Categorical(["a", "b", None], categories=labels, ordered=True)}
        ),
        "polars enum": pl.DataFrame({"c": pl.Series(["a", "b", None], dtype=pl.Enum(labels))}),
        "polars categorical": pl.DataFrame({"c": pl.Series(labels, dtype=pl.Categorical)})[:2],
        "pyarrow": pa.table({"c": arrow}).replace_schema_metadata({"note": SENTINEL}),
        "duckdb": duckdb.from_arrow(pa.table({"c": arrow})),
    }


@pytest.mark.parametrize(
    "name", ["pandas", "pandas ordered", "polars enum", "polars categorical", "pyarrow", "duckdb"]
)
@pytest.mark.parametrize("schema", [CATEGORY, None])
def test_labels_that_nobody_has_are_gone(name: str, schema: Schema | None) -> None:
    frame = labelled_frames()[name]
    table = from_native(frame, schema or Schema((Column("c", "category"),)))
    assert table.schema["c"].categories == ("a", "b")
    assert SENTINEL not in repr(table.source)
    assert SENTINEL.encode() not in pickle.dumps((table.schema, table.data, table.notes))
    back = table.to_frame()
    content = arrow_of(back)
    assert SENTINEL not in str(content.schema)
    assert SENTINEL.encode() not in pickle.dumps(content)
    if not name.startswith("duckdb"):
        assert type(back) is type(frame)
        assert SENTINEL.encode() not in pickle.dumps(back)


def test_labelled_columns_come_back_labelled_in_the_order_of_the_schema() -> None:
    frames = labelled_frames()
    pandas = from_native(frames["pandas ordered"], CATEGORY).to_frame()["c"]
    assert pandas.dtype == pd.CategoricalDtype(["a", "b"], ordered=True)
    enum = from_native(frames["polars enum"], CATEGORY).to_frame()["c"]
    assert enum.dtype == pl.Enum(["a", "b"])
    categorical = from_native(frames["polars categorical"], CATEGORY).to_frame()["c"]
    assert categorical.dtype == pl.Categorical()
    numbers = pd.DataFrame({"c": pd.Categorical([3, 1, 1], categories=[1, 3, 7])})
    back = from_native(numbers, Schema((Column("c", "category"),))).to_frame()["c"]
    assert back.astype(int).tolist() == [3, 1, 1]


def test_nothing_lies_under_the_nulls_of_a_frame() -> None:
    secret = 73914.28651
    schema = Schema((Column("x", "continuous", missing=(secret,)),))
    table = from_native(pa.table({"x": [1.0, secret, 2.0]}), schema)
    masked = table.with_columns(
        {"x": (Column("x", "continuous"), np.array([1.0, secret, 2.0]), np.array([0, 1, 0], np.uint8))}
    )
    assert np.float64(secret).tobytes() not in pickle.dumps(masked.to_frame())


def test_lazy_frames_are_collected_and_said() -> None:
    table = from_native(pl.LazyFrame({"n": [1, 2]}), Schema((Column("n", "integer"),)))
    assert texts(table.notes) == ("the lazy frame was collected",)
    assert isinstance(table.to_frame(), pl.DataFrame)
    broken = pl.LazyFrame({"n": [SENTINEL]}).select(pl.col("n").cast(pl.Int64))
    with pytest.raises(BadInput, match="the lazy frame could not be collected") as caught:
        from_native(broken)
    assert SENTINEL not in str(caught.value)
    relation = duckdb.sql(f"SELECT '{SENTINEL}'::INTEGER AS n FROM range(2)")
    with pytest.raises(BadInput, match="the duckdb relation could not be run") as caught:
        from_native(relation)
    assert SENTINEL not in str(caught.value)


def test_the_pandas_index_is_not_data() -> None:
    schema = Schema((Column("n", "integer"),))
    assert from_native(pd.DataFrame({"n": [1, 2]}), schema).notes == ()
    for index in (["a", "b"], range(1, 3), [1, 0]):
        table = from_native(pd.DataFrame({"n": [1, 2]}, index=index), schema)
        assert texts(table.notes) == ("the index of the pandas frame is not data and was left out",)
        assert table.to_frame().index.tolist() == [0, 1]


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (pd.Series([1, None, SENTINEL], dtype=object), "mixes int and str values, first at record 3"),
        (pd.Series([True, 1], dtype=object), "mixes bool and int values, first at record 2"),
        (pd.Series([1 + 2j]), "holds values that are neither numbers nor text"),
        (pd.Series([datetime.date(2020, 1, 1)]), "holds dates or times: turn it into a number"),
        (pd.Series(pd.period_range("2020", periods=1)), "neither numbers nor text"),
    ],
)
def test_columns_that_no_table_holds(values: Any, message: str) -> None:
    with pytest.raises(BadInput) as caught:
        from_native(pd.DataFrame({"x": values}), Schema((Column("x", "category"),)))
    assert message in str(caught.value)
    assert SENTINEL not in str(caught.value)


def test_frames_that_cannot_be_read() -> None:
    with pytest.raises(BadInput, match="a dict is not a frame that can be read: give a pandas or polars"):
        from_native({"a": [1]})
    with pytest.raises(BadInput, match="names of the frame's columns must all be text"):
        from_native(pd.DataFrame({1: [1]}))
    with pytest.raises(BadInput, match="columns 1, 2 share the name 'a'"):
        from_native(pd.DataFrame([[1, 2]], columns=["a", "a"]))
    with pytest.raises(BadInput, match="column 'o' holds Python objects"):
        from_native(pl.DataFrame({"o": pl.Series([object()], dtype=pl.Object)}))
    with pytest.raises(BadInput, match="there are no records"):
        from_native(pl.DataFrame({"n": []}, schema={"n": pl.Int64}), Schema((Column("n", "integer"),)))


def test_text_codes_in_numbers_become_missing_with_a_warning() -> None:
    schema = Schema((Column("n", "integer", missing=("NA",)),))
    table = from_native(pa.table({"n": ["1", "NA"]}), schema)
    with pytest.warns(
        MaskwellWarning, match="column 'n': its missing codes that are text become plain missing"
    ):
        assert table.to_frame().to_pydict() == {"n": [1, None]}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        from_native(pa.table({"n": ["1", "2"]}), schema).to_frame()


def test_groups_that_a_proposed_schema_drops_are_told() -> None:
    frame = pa.table({"hid": np.repeat(np.arange(60), 4), "income": np.arange(240.0) ** 1.5})
    with pytest.warns(MaskwellWarning, match="the one proposed drops hid"):
        table = Table.from_frame(frame)
    assert table.schema["hid"].drop

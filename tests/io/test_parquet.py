from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.feather as feather
import pyarrow.parquet as pq
import pytest

from maskwell.errors import BadInput, MaskwellWarning
from maskwell.io import read, write
from maskwell.schema import Column, Schema
from maskwell.table import Table

SENTINEL = "SENTINEL_7391"
ENDINGS = ["parquet", "pq", "arrow", "feather"]


def save(data: pa.Table, path: Path) -> Path:
    if path.suffix in (".parquet", ".pq"):
        pq.write_table(data, path)
    else:
        feather.write_feather(data, path)
    return path


def stored(path: Path) -> pa.Table:
    return pq.read_table(path) if path.suffix in (".parquet", ".pq") else feather.read_table(path)


@pytest.mark.parametrize("ending", ENDINGS)
def test_golden_table_survives(ending: str, tmp_path: Path, golden: Table) -> None:
    write(golden, tmp_path / f"t.{ending}")
    back = read(tmp_path / f"t.{ending}", golden.schema)
    assert back.data.equals(golden.data)
    assert {name: status.tolist() for name, status in back.closed.items()} == {
        name: status.tolist() for name, status in golden.closed.items()
    }
    assert back.schema == golden.schema
    assert back.source.kind == ("parquet" if ending in ("parquet", "pq") else "arrow")
    assert isinstance(back.to_frame(), pa.Table)
    assert stored(tmp_path / f"t.{ending}").to_pydict()["AGE"] == [34, 90, -9, None, -8, 0]


@pytest.mark.parametrize("ending", ENDINGS)
def test_same_table_same_bytes(ending: str, tmp_path: Path, golden: Table) -> None:
    for name in ("a", "b"):
        write(golden, tmp_path / f"{name}.{ending}")
    assert (tmp_path / f"a.{ending}").read_bytes() == (tmp_path / f"b.{ending}").read_bytes()
    write(read(tmp_path / f"a.{ending}", golden.schema), tmp_path / f"c.{ending}")
    assert stored(tmp_path / f"c.{ending}").equals(stored(tmp_path / f"a.{ending}"))


@pytest.mark.parametrize("ending", ["parquet", "arrow"])
def test_types_survive_and_small_ones_are_widened(ending: str, tmp_path: Path) -> None:
    types = {
        "n": pa.uint8(),
        "f": pa.float32(),
        "c": pa.dictionary(pa.int8(), pa.string()),
        "t": pa.large_string(),
    }
    data = pa.table(
        {"n": [1, 255], "f": [0.5, None], "c": ["a", "b"], "t": ["x", None]}, schema=pa.schema(types)
    )
    schema = Schema(
        (Column("n", "integer"), Column("f", "continuous"), Column("c", "category"), Column("t", "text"))
    )
    table = read(save(data, tmp_path / f"in.{ending}"), schema)
    write(table, tmp_path / f"out.{ending}")
    assert stored(tmp_path / f"out.{ending}").equals(data)
    noisy = table.with_columns({"n": (schema["n"], np.array([-1.0, 300.0]), np.zeros(2, np.uint8))})
    write(noisy, tmp_path / f"noisy.{ending}")
    assert stored(tmp_path / f"noisy.{ending}")["n"].to_pylist() == [-1, 300]


@pytest.mark.parametrize("ending", ["parquet", "arrow"])
def test_nothing_of_the_source_is_carried_over(ending: str, tmp_path: Path) -> None:
    secret = 73914.28651
    labels = pa.DictionaryArray.from_arrays(pa.array([0, 1, 0, None]), pa.array(["a", "b", SENTINEL]))
    text = pa.array(["x", SENTINEL, "y", "z"])
    field = pa.field("x", pa.float64(), metadata={"field": SENTINEL})
    data = pa.table(
        [pa.array([1.0, secret, 3.0, 4.0]), labels, text],
        schema=pa.schema([field, ("c", labels.type), ("t", pa.string())], metadata={"file": SENTINEL}),
    )
    schema = Schema(
        (Column("x", "continuous", missing=(secret,)), Column("c", "category"), Column("t", "text"))
    )
    table = read(save(data, tmp_path / f"in.{ending}"), schema)
    status = np.array([0, 1, 0, 0], np.uint8)
    plain = Column("x", "continuous")
    released = table.with_columns({"x": (plain, np.array([1.0, secret, 3.0, 4.0]), status)})
    released = released.take(np.array([0, 2, 3]))
    write(released, tmp_path / f"out.{ending}")
    content = (tmp_path / f"out.{ending}").read_bytes()
    assert SENTINEL.encode() not in content
    assert np.float64(secret).tobytes() not in content
    found = stored(tmp_path / f"out.{ending}")
    assert found.schema.metadata is None
    assert all(found.schema.field(name).metadata is None for name in found.column_names)
    assert found["c"].chunk(0).dictionary.to_pylist() == ["a"]


def test_parquet_has_no_statistics_and_uses_compression(tmp_path: Path, golden: Table) -> None:
    write(golden, tmp_path / "t.parquet")
    group = pq.ParquetFile(tmp_path / "t.parquet").metadata.row_group(0)
    for i in range(group.num_columns):
        assert not group.column(i).is_stats_set
        assert group.column(i).compression == "ZSTD"


def test_unused_values_under_nulls_of_codes_do_not_reach_arrow_files(tmp_path: Path) -> None:
    data = pa.table({"t": pa.array(["a", SENTINEL, "b"]), "n": [1, 2, 3]})
    schema = Schema((Column("t", "text", missing=(SENTINEL,)), Column("n", "integer")))
    table = read(save(data, tmp_path / "in.arrow"), schema)
    released = table.with_columns(
        {"n": (schema["n"], np.array([1.0, 2.0, 3.0]), np.array([0, 1, 0], np.uint8))}
    )
    released = Table(
        Schema((Column("t", "text"), schema["n"])),
        released.data,
        {"t": np.array([0, 1, 0], np.uint8)},
        released.source,
    )
    write(released, tmp_path / "out.arrow")
    assert SENTINEL.encode() not in (tmp_path / "out.arrow").read_bytes()


@pytest.mark.parametrize("ending", ["parquet", "arrow"])
def test_files_of_another_kind_and_too_large_ones_are_refused(
    ending: str, tmp_path: Path, golden: Table
) -> None:
    path = tmp_path / f"t.{ending}"
    path.write_text(f"x\n{SENTINEL}\n")
    with pytest.raises(
        BadInput, match=r"the file is not an? (Parquet|Arrow) file, or it is damaged"
    ) as caught:
        read(path, golden.schema)
    assert SENTINEL not in str(caught.value)
    path.write_bytes(b"")
    with pytest.raises(BadInput, match="damaged"):
        read(path, golden.schema)
    write(golden, path)
    with pytest.raises(BadInput, match=r"of memory to be read and 0\.1 kB is available"):
        read(path, golden.schema, memory_limit=100)
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(BadInput, match="damaged"):
        read(path, golden.schema)


def test_double_names_in_a_file_are_refused(tmp_path: Path) -> None:
    data = pa.Table.from_arrays([pa.array([1]), pa.array([2])], names=["a", "a"])
    with pytest.raises(BadInput, match="columns 1, 2 share the name 'a'"):
        read(save(data, tmp_path / "t.arrow"))


def test_text_codes_in_numbers_become_missing_with_a_warning(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("n\n1\nNA\n")
    table = read(tmp_path / "t.csv", Schema((Column("n", "integer", missing=("NA",)),)))
    with pytest.warns(MaskwellWarning, match="become plain missing values"):
        write(table, tmp_path / "t.parquet")
    assert stored(tmp_path / "t.parquet").to_pydict() == {"n": [1, None]}

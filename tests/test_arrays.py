"""Numbers go into Arrow and come back, by their buffers alone."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pyarrow as pa
import pytest

from maskwell.arrays import from_numpy, to_numpy

VALUES = [
    np.array([1.5, -0.0, np.inf]),
    np.array([1, -(2**62), 3]),
    np.array([1, 2, 3], np.int32),
    np.array([0, 255, 7], np.uint8),
    np.array([True, False, True, True, False, False, True, True, True]),
    np.array([], np.float64),
    np.array([], bool),
    np.arange(10)[::3],
]


@pytest.mark.parametrize("values", VALUES, ids=lambda values: f"{values.dtype}-{len(values)}")
def test_arrays_are_those_of_pyarrow(values: np.ndarray) -> None:
    made = from_numpy(values)
    made.validate(full=True)
    assert made.equals(pa.array(values))
    np.testing.assert_array_equal(to_numpy(made), values)
    assert to_numpy(made).dtype == values.dtype


@pytest.mark.parametrize("values", VALUES, ids=lambda values: f"{values.dtype}-{len(values)}")
def test_nulls_and_slices(values: np.ndarray) -> None:
    closed = np.arange(len(values)) % 2 == 1
    made = from_numpy(values, closed)
    made.validate(full=True)
    assert made.equals(pa.array(values, mask=closed))
    back = to_numpy(made[1:])
    if values.dtype == bool:
        np.testing.assert_array_equal(back, (values & ~closed)[1:])
    else:
        np.testing.assert_array_equal(back, np.where(closed, np.nan, values)[1:])
    np.testing.assert_array_equal(to_numpy(from_numpy(values)[1:]), values[1:])


def test_all_null() -> None:
    assert np.isnan(to_numpy(pa.nulls(3, pa.int64()))).all()
    assert not to_numpy(pa.nulls(3, pa.bool_())).any()


CODE = """
import sys
from maskwell.attacks import Linkage
from maskwell.attacks.contract import Known
from maskwell.card import NoiseCard
from maskwell.io import read
from maskwell.masking import Release
from maskwell.schema import Column, Schema
import numpy as np
key = frozenset({"key"})
schema = Schema((Column("ID", "text", frozenset({"id"})), Column("B", "integer", frozenset({"block"})),
                 Column("X", "continuous", key), Column("Y", "continuous", key)))
table = read(sys.argv[1], schema)
release = Release(table, NoiseCard(records=len(table)))
Linkage().guess(Known(table, table), release, lambda table, side="released": np.arange(len(table)))
print("pandas" in sys.modules)
"""


def test_reading_and_matching_a_clean_file_loads_no_pandas(tmp_path: object) -> None:
    import pyarrow.parquet as pq

    file = f"{tmp_path}/clean.parquet"
    columns = {"ID": pa.array(["a", "b"]), "B": pa.array([1, 1]), "X": pa.array([1.0, 2.0])}
    pq.write_table(pa.table(columns | {"Y": pa.array([3.0, 4.0])}), file)
    done = subprocess.run([sys.executable, "-c", CODE, file], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"

"""Numbers go into Arrow and come back, by their buffers alone."""

from __future__ import annotations

import subprocess
import sys
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest

from maskwell.arrow_buffers import (
    codes_of,
    from_numpy,
    is_null,
    letters_of,
    of_one_length,
    take_texts,
    to_numpy,
)

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


TEXTS = [
    pa.array(["ab", "cd", "ef", "gh"]),
    pa.array(["ab", "c", "", "gh"]),
    pa.array(["ab", None, "ef", "gh"]),
    pa.array(["äö", "ü1", "ñ2", "é3"]),
    pa.array(["ab", "cd", "ef", "gh"], pa.large_string()),
    pa.array(["ab", "cd", "ef", "gh"], pa.string_view()),
]


@pytest.mark.parametrize("texts", TEXTS, ids=lambda texts: str(texts.type))
@pytest.mark.parametrize("cut", [slice(None), slice(1, 3), slice(2, 2)])
def test_letters_and_texts(texts: pa.Array, cut: slice) -> None:
    some = texts[cut]
    begins, letters = letters_of(some)
    spelled = [bytes(letters[i:j]).decode() for i, j in pairwise(begins)]
    assert spelled == [text or "" for text in some.to_pylist()]
    assert is_null(some).tolist() == [text is None for text in some.to_pylist()]
    square = of_one_length(some)
    lengths = {None if text is None else len(text.encode()) for text in some.to_pylist()}
    assert (square is None) == (len(lengths) != 1 or lengths == {None})
    if square is not None:
        assert [bytes(row).decode() for row in square] == some.to_pylist()


@pytest.mark.parametrize("texts", TEXTS[:5], ids=lambda texts: str(texts.type))
@pytest.mark.parametrize("at", [[2, 0, 0, 3], [], [1]])
def test_texts_are_taken_as_arrow_takes_them(texts: pa.Array, at: list[int]) -> None:
    found = take_texts(texts, np.array(at, np.int64))
    found.validate(full=True)
    assert found.equals(texts.take(pa.array(at, pa.int64())))
    assert take_texts(texts[1:], np.array([0, 2])).equals(texts[1:].take(pa.array([0, 2])))


@pytest.mark.parametrize("at", [-1, 4])
def test_texts_that_are_not_there_are_not_taken(at: int) -> None:
    with pytest.raises(IndexError):
        take_texts(TEXTS[0], np.array([0, at]))


@pytest.mark.parametrize(
    "values",
    [
        np.array([5.0, 7.0, 5.0, 6.0]),
        np.array([-3, 4, -3, 0]),
        np.array([1.5, 2.5, 1.5]),
        np.array([0.0, 1e300, 0.0, -1e308, 1.7e308]),
        np.array([2**62, 0, 2**62]),
        np.array([10**15, 10**15 + 1, 10**15]),
        np.array([]),
    ],
    ids=str,
)
def test_the_same_values_have_the_same_code(values: np.ndarray) -> None:
    codes, count = codes_of(values)
    assert sorted(set(codes.tolist())) == list(range(count))
    assert count == len(np.unique(values))
    assert all(
        (codes == code).tolist() == (values == value).tolist()
        for code, value in zip(codes, values, strict=True)
    )


CODE = """
import sys
from itertools import pairwise
from maskwell.attacks import Linkage
from maskwell.attacks.protocol import IntruderKnowledge
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
Linkage().guess(IntruderKnowledge(table, table), release, lambda table, side="released": np.arange(len(table)))
print([name for name in ("numba", "pandas", "pyarrow.compute", "scipy", "maskwell.laws") if name in sys.modules])
"""


def test_reading_and_matching_a_clean_file_loads_little(tmp_path: object) -> None:
    import pyarrow.parquet as pq

    file = f"{tmp_path}/clean.parquet"
    columns = {"ID": pa.array(["a", "b"]), "B": pa.array([1, 1]), "X": pa.array([1.0, 2.0])}
    pq.write_table(pa.table(columns | {"Y": pa.array([3.0, 4.0])}), file)
    done = subprocess.run([sys.executable, "-c", CODE, file], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"

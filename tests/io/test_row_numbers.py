"""Row numbers of a part of a larger file are told from amounts, by their values and by their names."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from maskwell.io.column_drafts import are_row_numbers
from maskwell.io.column_names import says_record
from maskwell.io.column_profile import facts_of
from maskwell.io.inspect import propose


def numbered(values: np.ndarray) -> bool:
    """Whether whole numbers are taken for row numbers."""
    return are_row_numbers(facts_of("x", pa.chunked_array([pa.array(values.astype(int))]), "."))


@pytest.mark.parametrize(("part", "whole"), [(2_000, 53_940), (2_000, 22_272), (100, 22_272), (500, 600)])
def test_parts_of_numbered_files_are_found(part: int, whole: int) -> None:
    rng = np.random.default_rng(part)
    rows = rng.choice(whole, part, replace=False) + 1
    assert numbered(np.sort(rows))
    if part**2 / (2 * whole) >= 14:
        assert numbered(rows)  # shuffled too: so many amounts would repeat


def test_two_parts_put_together_are_found() -> None:
    rng = np.random.default_rng(3)
    parts = [np.sort(rng.choice(40_000, 150, replace=False)) for _ in range(2)]
    assert numbered(np.concatenate(parts))


@pytest.mark.parametrize("seed", range(20))
def test_amounts_are_not_taken_for_row_numbers(seed: int) -> None:
    rng = np.random.default_rng(seed)
    incomes = np.rint(rng.lognormal(10, 0.8, 800))
    assert not numbered(incomes)
    assert not numbered(np.unique(incomes))  # sorted, each once: crowded where incomes are
    assert not numbered(rng.integers(0, 90, 2_000))  # hours
    assert not numbered(rng.permutation(10**6)[:300])  # even, unsorted, and few for their range
    assert not numbered(np.sort(rng.integers(0, 3_000, 2_000)))  # even and sorted, but they repeat


def test_they_are_asked_about_with_three_answers_and_get_no_noise() -> None:
    rng = np.random.default_rng(1)
    rows, pay = np.sort(rng.choice(9_000, 400, replace=False)), rng.lognormal(9, 1, 400).round(2)
    raw = pa.table({"X": pa.array(map(str, rows)), "PAY": pa.array(map(str, pay))})
    found = propose(raw)
    assert found.schema["PAY"].roles == {"key"}
    assert "key" not in found.schema["X"].roles
    assert "whole numbers as the rows of a larger file have" in found.of("X")[0].text
    named = propose(raw.rename_columns(["rownames", "PAY"]))
    assert named.schema["rownames"].roles == {"id"}


def test_names_of_rows_say_so() -> None:
    for name in ("rownames", "RowNumber", "row_num", "rowid", "Unnamed: 0", "rec_no", "case"):
        assert says_record(name), name
    for name in ("rows_sold", "crown", "narrow", "income"):
        assert not says_record(name), name

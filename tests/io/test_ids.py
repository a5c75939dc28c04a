"""Ids that occur more than once are found, whatever their length and order."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from maskwell.io import ids
from maskwell.io.ids import duplicate_id_problems

RECORDS = 3 * ids._CHUNK


def spelled(width: int, numbers: np.ndarray) -> list[str]:
    """Write numbers with leading zeros."""
    return [f"{number:0{width}d}" for number in numbers.tolist()]


@pytest.mark.parametrize("width", [5, 7, 8, 9, 12, 16, 21])
@pytest.mark.parametrize("shuffled", [False, True])
def test_distinct_ids_pass(width, shuffled):
    numbers = np.arange(RECORDS)
    if shuffled:
        np.random.default_rng(width).shuffle(numbers)
    assert duplicate_id_problems("id", pa.array(spelled(width, numbers))) == []


@pytest.mark.parametrize("width", [5, 7, 8, 9, 12, 16, 21])
@pytest.mark.parametrize("shuffled", [False, True])
@pytest.mark.parametrize("first", [0, ids._CHUNK - 1, ids._CHUNK, RECORDS - 2])
def test_two_equal_ids_are_found(width, shuffled, first):
    numbers = np.arange(RECORDS)
    if shuffled:
        np.random.default_rng(width).shuffle(numbers)
    numbers[first + 1] = numbers[first]
    said = f"column 'id': ids that occur more than once, at records {first + 1}, {first + 2}"
    assert duplicate_id_problems("id", pa.array(spelled(width, numbers))) == [
        f"{said}: give each record its own"
    ]


@pytest.mark.parametrize("where", [0, 7, 8, 11, 15])
def test_ids_that_differ_in_one_letter_are_distinct(where):
    made = [f"{'x' * where}{letter}{'y' * (16 - where)}" for letter in "acbz09"]
    assert duplicate_id_problems("id", pa.array(made)) == []


def test_one_letter_and_several_lengths():
    assert duplicate_id_problems("id", pa.array(["b", "a", "c"])) == []
    assert duplicate_id_problems("id", pa.array(["b", "aa", "c"])) == []
    assert len(duplicate_id_problems("id", pa.array(["b", "a", "b"]))) == 1
    assert len(duplicate_id_problems("id", pa.array(["bb", "a", "bb"]))) == 1

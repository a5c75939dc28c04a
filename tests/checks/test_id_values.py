"""Released ids that follow true values of their records are found, and what leaves beside them explains others."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from maskwell.checks.evidence import Evidence
from maskwell.checks.file_checks import CHECKS
from maskwell.checks.findings import Finding
from maskwell.checks.id_values import followed_values
from maskwell.masking import Masking
from maskwell.schema import Column, Schema
from maskwell.table import Table

N = 800
RNG = np.random.default_rng([4, 2**40])
REGION = RNG.integers(0, 5, N)
PAY = np.round(50 + 3 * REGION + 10 * RNG.standard_normal(N), 2)
AGE = RNG.integers(18, 70, N)
NOISED = np.round(PAY + 8 * RNG.standard_normal(N), 2)
LETTERS = np.array(list("kqbzmaxcwd"))
COLUMNS = (
    Column("region", "category", frozenset({"block"}), categories=tuple("01234")),
    Column("pay", "continuous", frozenset({"key"}), unit=0.01),
)


def rank(values: np.ndarray) -> np.ndarray:
    return np.argsort(np.argsort(values, kind="stable"), kind="stable")


def given(ids: list[str], extra: dict[str, np.ndarray] | None = None) -> Masking:
    """A file masked elsewhere by noise of its own, its rows shuffled; the age is dropped."""
    order = np.random.default_rng([9, 2**40]).permutation(N)
    name, region = Column("id", "text", frozenset({"id"})), [str(one) for one in REGION]
    old = [f"t{i}" for i in np.random.default_rng(77).permutation(N)]
    age = Column("age", "integer", drop=True)
    frame = pa.table({"id": old, "region": region, "pay": PAY, "age": AGE})
    truth = Table.from_frame(frame, Schema((name, *COLUMNS, age)))
    more = tuple(Column(one, "continuous") for one in extra or {})
    frame = pa.table({"id": ids, "region": region, "pay": NOISED, **(extra or {})}).take(order)
    masked = Table.from_frame(frame, Schema((name, *COLUMNS, *more)))
    links = pa.table({"truth_id": [old[i] for i in order], "released_id": [ids[i] for i in order]})
    return Masking.from_files(truth, masked, links)


def followed(ids: list[str], extra: dict[str, np.ndarray] | None = None) -> dict[str, str]:
    return {name: one.column for name, one in followed_values(Evidence(given(ids, extra))).items()}


DRAWN = RNG.permutation(900)[:N]
TENTH = rank(PAY) * 10 // N
PLANTS = {
    "rank": [f"{i:06d}" for i in rank(PAY)],
    "leading signs": [f"{int((p - 0.1) * 2**50):016x}" for p in PAY + RNG.random(N) / 1e3],
    "value, then digits": [f"{int(10 * p):04d}{i:03d}" for p, i in zip(PAY, DRAWN, strict=True)],
    "digits, then value": [f"{i + 100}{int(10 * p):04d}" for p, i in zip(PAY, DRAWN, strict=True)],
    "letters without an order": [f"{LETTERS[t]}{i:03d}" for t, i in zip(TENTH, DRAWN, strict=True)],
}


@pytest.mark.parametrize("how", PLANTS)
def test_ids_that_follow_a_true_value_are_found(how: str) -> None:
    assert followed(PLANTS[how]) == {"id": "pay"}


def test_a_dropped_column_counts_too() -> None:
    assert followed([f"{a}{i:03d}" for a, i in zip(AGE, DRAWN, strict=True)]) == {"id": "age"}


def test_last_digits_of_a_new_number_count_and_its_size_does_not() -> None:
    """What the size of a number tells is for the checks of columns in clear."""
    ids = [f"{i:03d}" for i in DRAWN]
    size = np.round(PAY + 30 * RNG.standard_normal(N), 3)
    assert followed(ids, {"index": size}) == {}
    hidden = np.round(RNG.integers(100, 999, N) + TENTH / 10, 1)
    assert followed(ids, {"index": hidden}) == {"index": "pay"}


CLEAN = {
    "random": [f"{v:016x}" for v in RNG.integers(0, 2**63, N)],
    "region and number": [f"{r}{i:03d}" for r, i in zip(REGION, DRAWN, strict=True)],
    "by region": [f"{i:04d}" for i in rank(REGION + RNG.random(N))],
    "by the released value": [f"{i:04d}" for i in rank(NOISED)],
}


@pytest.mark.parametrize("how", CLEAN)
def test_ids_by_chance_or_by_what_leaves_pass(how: str) -> None:
    assert followed(CLEAN[how]) == {}


def test_ids_in_the_order_of_the_release_pass() -> None:
    order = np.random.default_rng([9, 2**40]).permutation(N)
    place = np.empty(N, int)
    place[order] = np.arange(N)
    assert followed([str(i + 1) for i in place]) == {}


def test_it_fails_the_release_without_a_value_in_its_words() -> None:
    (check,) = (one for one in CHECKS if one.name == "id-like columns")
    found: Finding = check.made(Evidence(given(PLANTS["rank"])))
    assert (found.verdict, found.where) == ("fail", "id")
    assert found.said == (
        "id tells a value: by the alphabet it goes with the true pay beyond what leaves beside it (correlation 1.00)"
    )
    assert check.made(Evidence(given(CLEAN["random"]))).verdict == "pass"

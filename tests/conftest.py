"""Small seeded tables that many tests share, and how hypothesis searches: without deadline, the same every time."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import settings

from maskwell import cli
from maskwell.keys import Key
from maskwell.schema import Column, Schema
from maskwell.table import Table

if (
    signal.getsignal(signal.SIGINT) is signal.SIG_IGN
):  # behind `&` a shell has jobs ignore Ctrl-C, which some tests send
    signal.signal(signal.SIGINT, signal.default_int_handler)

settings.register_profile("maskwell", deadline=None, derandomize=True, database=None)
settings.load_profile("maskwell")

RECORDS = 240
MOST_DRAWN = 250  # numbers of each common seed that are kept: 7 MB a generator


def role(*names: str) -> frozenset[str]:
    return frozenset(names)


# Names of at most eight letters, so that every format can hold them.
PEOPLE = Schema(
    (
        Column("ID", "text", role("id")),
        Column("HH", "integer", role("group"), missing=(7,)),
        Column("REGION", "category", role("block"), categories=("north", "south", "nowhere")),
        Column("INCOME", "continuous", role("key", "sensitive"), unit=0.01, top=90_000, missing=(-9,)),
        Column("TAX", "continuous", role("key")),
        Column("AGE", "integer", role("key"), top=90, bottom=15, missing=(-9, -8)),
        Column(
            "SEX", "category", role("key"), categories=("1", "2"), labels=(("1", "male"), ("2", "female"))
        ),
        Column("EDU", "category", categories=("low", "middle", "high"), missing=("?",)),
        Column("WAGE", "continuous", unit=1),
        Column("OTHER", "continuous", unit=1),
        Column("TOTAL", "continuous", unit=1),
        Column("WEIGHT", "continuous", role("weight")),
        Column("SECRET", "text", drop=True),
    ),
    series="people",
)


def people_frame(records: int, seed: int) -> pa.Table:
    """Make records with every kind of column, correlated amounts, codes and missing cells."""
    rng = np.random.default_rng(seed)
    shared = rng.standard_normal(records)
    wage, other = rng.integers(0, 5000, records), rng.integers(0, 900, records)
    columns: dict[str, Any] = {
        "ID": [f"person {i:05d}" for i in range(records)],
        "HH": 8 + rng.integers(0, records // 3, records),
        "REGION": rng.choice(["north", "south"], records),
        "INCOME": np.round(30_000 + 9_000 * (shared + rng.standard_normal(records)), 2),
        "TAX": np.round(5_000 + 1_500 * (shared + rng.standard_normal(records)), 4),
        "AGE": np.clip(np.rint(45 + 18 * rng.standard_normal(records)), 15, 90).astype(np.int64),
        "SEX": rng.choice(["1", "2"], records),
        "EDU": rng.choice(["low", "middle", "high"], records),
        "WAGE": wage.astype(float),
        "OTHER": other.astype(float),
        "TOTAL": (wage + other).astype(float),
        "WEIGHT": np.round(0.5 + rng.random(records), 6),
        "SECRET": [f"secret {i}" for i in range(records)],
    }
    columns["INCOME"][::11], columns["AGE"][::13], columns["EDU"][::17] = -9, -8, "?"
    columns["INCOME"][5::50] = 90_000
    columns["TAX"] = pa.array(columns["TAX"], mask=np.arange(records) % 19 == 3)
    return pa.table(columns)


MakePeople = Callable[..., Table]


@pytest.fixture(scope="session")
def make_people() -> MakePeople:
    """Return a function that makes a table of people; the same seed gives the same table."""

    def make(records: int = RECORDS, seed: int = 20240611, schema: Schema = PEOPLE) -> Table:
        return Table.from_frame(people_frame(records, seed), schema)

    return make


@pytest.fixture(scope="session")
def people(make_people: MakePeople) -> Table:
    """A table of 240 records with every kind of column."""
    return make_people()


MakeAmounts = Callable[..., Table]


@pytest.fixture(scope="session")
def make_amounts() -> MakeAmounts:
    """Return a function that makes a plain table: ids and normal amounts of sd 1 and correlation 0.5."""

    def make(records: int = 1000, names: str = "AB", seed: int = 3, first: int = 0) -> Table:
        rng = np.random.default_rng(seed)
        shared = rng.standard_normal(records)
        ids = pa.array([f"r{first + i}" for i in range(records)])
        amounts = {n: np.sqrt(0.5) * (shared + rng.standard_normal(records)) for n in names}
        columns = (Column("ID", "text", role("id")), *(Column(n, "continuous") for n in names))
        return Table.from_frame(pa.table({"ID": ids, **amounts}), Schema(columns))

    return make


@pytest.fixture(scope="session")
def study_key() -> Key:
    """A key that is the same in every run."""
    return Key.from_seed(20240611)


@dataclass(frozen=True, slots=True)
class Ran:
    """What a run of the command line gave back."""

    code: Any
    out: str
    err: str


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[..., Ran]:
    """Return a function that runs the command line in this process."""

    def run(*words: object) -> Ran:
        monkeypatch.setattr(sys, "argv", ["maskwell", *map(str, words)])
        monkeypatch.setattr(cli, "_stop_cleanly", lambda: None)  # the signals belong to pytest
        with pytest.raises(SystemExit) as ending:
            cli.main()
        captured = capsys.readouterr()
        return Ran(ending.value.code, captured.out, captured.err)

    return run


@pytest.fixture(scope="session", autouse=True)
def common_draws() -> Iterator[None]:
    """Draw what common programs make of common seeds once: every audit looks at the same numbers."""
    from maskwell.checks.seeds import GENERATORS, common_seeds

    seeds, plain = common_seeds(), dict(GENERATORS)

    def once(label: str) -> Callable[[np.ndarray, int], np.ndarray]:
        @cache
        def common(count: int) -> np.ndarray:
            drawn = plain[label](seeds, count)
            drawn.setflags(write=False)
            return drawn

        def draw(asked: np.ndarray, count: int) -> np.ndarray:
            is_common = count <= MOST_DRAWN and np.array_equal(asked, seeds)
            return common(count) if is_common else plain[label](asked, count)

        return draw

    GENERATORS.update({label: once(label) for label in plain})
    yield
    GENERATORS.update(plain)


@pytest.fixture(scope="session", autouse=True)
def no_wait_for_the_disk() -> Iterator[None]:
    """Leave out the wait for the disk after each file: what is synced, and when, is a test of `io.bundle`."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(os, "fsync", lambda descriptor: None)
        yield


LONGEST = ("tests/golden/test_golden.py::test_figures_are_as_they_were[calibrate]", "tests/test_examples.py")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with what takes longest, a search for noise and the examples: no worker is left with one at the end."""
    items.sort(key=lambda item: not item.nodeid.startswith(LONGEST))

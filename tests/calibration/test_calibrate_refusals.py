"""What `calibrate` refuses, and in what words: tolerances below the floor, and bad input."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from maskwell.attacks import Linkage, NearestRecord
from maskwell.calibration import Search, calibrate
from maskwell.calibration.measures import measure_of
from maskwell.calibration.trials import Bench
from maskwell.calibration.uniqueness import fingerprint_floor
from maskwell.errors import BadPlan
from maskwell.keys import Key
from maskwell.masks import Coding, CorrelatedNoise, IndependentNoise, Subsample
from maskwell.schema import Column, Schema
from maskwell.table import Table
from maskwell.tolerances import ExpectedH, MaxRate, ProbH, Ratio

from .conftest import terms

QUICK: dict[str, Any] = {"seed": 1, "replicates": 4, "confirmations": 5, "precision": 0.15}
KEY, COLUMNS = frozenset({"key"}), ("A", "B")


def table_of(values: dict[str, Any], **options: Any) -> Table:
    """Make a table of ids and number keys; columns given in `options` are described as told."""
    count = len(next(iter(values.values())))
    columns = tuple(options.get(name, Column(name, "continuous", KEY)) for name in values)
    schema = Schema((Column("ID", "text", frozenset({"id"})), *columns), series="calibration")
    return Table.from_frame(pa.table({"ID": [f"r{i}" for i in range(count)], **values}), schema)


@pytest.fixture(scope="module")
def table() -> Table:
    rng = np.random.default_rng(8)
    shared = rng.standard_normal(60)
    return table_of({name: shared + rng.standard_normal(60) for name in COLUMNS})


def noise(**scale: float) -> CorrelatedNoise:
    return CorrelatedNoise(COLUMNS, **scale)


# The floor.


@pytest.fixture(scope="module")
def marked_table(table: Table) -> Table:
    """A fifth of the records has a job of its own that leaves unmasked."""
    jobs = [f"job {i}" if i % 5 == 0 else "usual" for i in range(len(table))]
    names = tuple(dict.fromkeys(jobs))
    job = Column("JOB", "category", categories=names)
    return table_of({"JOB": jobs} | {name: table.floats(name) for name in COLUMNS}, JOB=job)


@pytest.mark.parametrize(
    "tolerance", [MaxRate(0.15), Ratio(0.2), ProbH(3, 0.19)], ids=lambda one: type(one).__name__
)
def test_a_tolerance_below_the_floor_is_refused_with_the_reason(marked_table, tolerance):
    with pytest.raises(BadPlan, match=r"20\.00% of the records judged have a fingerprint of their own"):
        calibrate(noise(sd_ratio=0.5), marked_table, NearestRecord(), tolerance, **terms(**QUICK))


@pytest.mark.parametrize("tolerance", [MaxRate(0.21), Ratio(0.26)], ids=lambda one: type(one).__name__)
def test_a_tolerance_above_the_floor_is_not(marked_table, tolerance):
    found = calibrate(noise(sd_ratio=0.5), marked_table, NearestRecord(), tolerance, **terms(**QUICK))
    assert found.floor == pytest.approx(0.2)
    assert "20.00% of them have a fingerprint" in repr(found)


def test_the_floor_may_be_reported_only(marked_table):
    found = calibrate(
        noise(sd_ratio=0.5), marked_table, NearestRecord(), MaxRate(0.15), **terms(floor="report", **QUICK)
    )
    assert found.met
    assert found.floor == pytest.approx(0.2)
    assert "finds 20.00% of the records judged whatever the noise" in str(found.notes[0])


def test_the_floor_is_that_of_the_records_judged(table):
    """Only records at the edge have a job of their own: few of all, all of the worst decile."""
    distance = np.hypot(*(table.floats(name) - table.floats(name).mean() for name in COLUMNS))
    outer = distance >= np.sort(distance)[-9]
    jobs = [f"job {i}" if outer[i] else "usual" for i in range(len(table))]
    job = Column("JOB", "category", categories=tuple(dict.fromkeys(jobs)))
    given = table_of({"JOB": jobs} | {name: table.floats(name) for name in COLUMNS}, JOB=job)
    found = calibrate(noise(sd_ratio=0.5), given, NearestRecord(), MaxRate(0.4), **terms(**QUICK))
    assert found.floor == pytest.approx(0.15)
    with pytest.raises(BadPlan, match=r"100\.00% of the records judged"):
        calibrate(
            noise(sd_ratio=0.5), given, NearestRecord(), MaxRate(0.4), **terms(over="outlying", **QUICK)
        )


def test_the_tenth_of_the_floor_is_the_one_that_is_judged(table):
    """Who is alone with a job lies far out by B, which the attack does not look at: that is not the judged tenth."""
    far, jobs = np.arange(len(table)) < 6, [f"job {i}" for i in range(6)] + ["none"] * (len(table) - 6)
    values = {"A": np.where(far, 0.0, table.floats("A")), "B": np.where(far, 50.0, table.floats("B"))}
    job = Column("JOB", "category", categories=tuple(dict.fromkeys(jobs)))
    given = table_of({"JOB": jobs, **values}, JOB=job)
    for fields, floor in ((("A",), 0.0), (("B",), 1.0), (None, 1.0)):
        plans = [NearestRecord(fields=fields)]
        bench = Bench(given, plans, Key.from_seed(1), measure_of(MaxRate(0.4)), over="outlying")
        assert fingerprint_floor(bench, noise(sd_ratio=0.5)) == pytest.approx(floor)
        both = replace(bench, plans=[*plans, NearestRecord()])
        assert fingerprint_floor(both, noise(sd_ratio=0.5)) == pytest.approx(1.0)


# Bad input.


def test_constant_columns_are_refused_in_the_plans_words(table):
    flat = table_of({"A": table.floats("A"), "B": np.full(len(table), 3.0)})
    with pytest.raises(BadPlan, match="column 'B' is constant"):
        calibrate(noise(sd_ratio=0.5), flat, NearestRecord(), **terms(**QUICK))
    skipping = CorrelatedNoise(COLUMNS, sd_ratio=0.5, skip_constant=True)
    assert calibrate(skipping, flat, NearestRecord(), MaxRate(0.2), **terms(**QUICK)).met


def test_duplicates_share_their_links(table):
    """Records that are all there four times are found with a quarter of the chance at most."""
    fourfold = table_of({name: np.tile(table.floats(name)[:25], 4) for name in COLUMNS})
    found = calibrate(noise(sd_ratio=0.5), fourfold, NearestRecord(), MaxRate(0.2), **terms(**QUICK))
    assert found.met
    assert all(trial.figure.mean <= 0.5 for trial in found.trace)


def test_a_column_of_missing_values_is_refused(table):
    empty = table_of({"A": table.floats("A"), "B": pa.array([None] * len(table), pa.float64())})
    with pytest.raises(BadPlan, match="column 'B' has no open value"):
        calibrate(noise(sd_ratio=0.5), empty, NearestRecord(), **terms(**QUICK))


def test_fewer_records_than_columns_are_refused(table):
    rng = np.random.default_rng(1)
    few = table_of({name: rng.standard_normal(3) for name in "ABCDE"})
    with pytest.raises(BadPlan, match="covariance of 5 columns is undefined"):
        calibrate(CorrelatedNoise(tuple("ABCDE"), sd_ratio=0.5), few, NearestRecord(), **terms(**QUICK))
    wide = calibrate(
        IndependentNoise(tuple("ABCDE"), variance=1.0), few, NearestRecord(), MaxRate(0.9), **terms(**QUICK)
    )
    assert wide.met


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"mask": Coding(("A",), top=1)}, "Coding has no free scale"),
        ({"mask": Subsample(0.5)}, "Subsample has no free scale"),
        ({"mask": "noise"}, "a str is no mask"),
        ({"table": "table.csv"}, "calibrate needs a Table, not a str"),
        ({"attack": "nearest"}, "is no attack"),
        ({"attack": NearestRecord}, "is no attack"),
        ({"attack": []}, "there is no attack in the list"),
        ({"tolerance": 0.15}, "a tolerance is"),
        ({"over": "decile"}, "over is 'all' or 'outlying'"),
        ({"seed": "one"}, "a seed a whole number"),
        ({"key": Key.from_seed(1)}, "not both"),
        ({"replicates": 1}, "at least 2"),
        ({"confirmations": 2.5}, "at least 2"),
        ({"precision": 0}, "precision is a number between"),
        ({"level": 0.7}, "level is a number between"),
        ({"floor": "ignore"}, "floor is 'refuse' or 'report'"),
        ({"per_column": True}, "per_column needs columns with scales of their own"),
        ({"per_column": True, "objective": "risk"}, "a loss is"),
        (
            {"mask": noise(sd_ratio=0.5), "attack": Linkage(), "tolerance": ExpectedH(3)},
            "Linkage measures no h",
        ),
    ],
)
def test_wrong_arguments_are_refused_in_a_sentence(table, change, words):
    given = {
        "mask": noise(sd_ratio=0.5),
        "table": table,
        "attack": NearestRecord(),
        "tolerance": MaxRate(0.2),
    }
    with pytest.raises(BadPlan, match=words) as refusal:
        calibrate(**terms(**{**given, **QUICK, **change}))
    assert len(refusal.value.problems) == 1


def test_all_wrong_terms_are_said_at_once(table):
    with pytest.raises(BadPlan) as refusal:
        calibrate(
            noise(sd_ratio=0.5), table, search=Search(replicates=1, confirmations=0, level=2, precision=-1)
        )
    assert len(refusal.value.problems) == 4


def test_an_empty_table_is_refused(table):
    with pytest.raises(BadPlan, match="no records"):
        calibrate(noise(sd_ratio=0.5), table.take(np.empty(0, np.int64)), NearestRecord(), **terms(**QUICK))

"""Classes in clear that tell an amount are found, by their share and width, and none that chance makes."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from maskwell.checks.evidence import Evidence
from maskwell.checks.findings import FAIL, NOT_CHECKED, PASS, WARN, Finding
from maskwell.checks.narrow_classes import (
    ClearClasses,
    Narrow,
    NoisedAmount,
    class_codes,
    narrow_amounts,
    records_looked_at,
)
from maskwell.checks.value_checks import CHECKS
from maskwell.keys import Key
from maskwell.masking import apply
from maskwell.masks import IndependentNoise
from maskwell.schema import Column, Schema
from maskwell.table import Floats, Table

KEY = Key(np.random.default_rng(43).bytes(32))
N = 2_000


def people(narrow: float = 2.6, pupils: float = 0.19) -> Table:
    """Ages; who has no income and is asked for a language goes to school: an age in few years."""
    rng = np.random.default_rng(12)
    is_pupil, is_infant = rng.random(N) < pupils, rng.random(N) < 0.05
    age = np.where(is_pupil, rng.normal(9.5, narrow, N), rng.uniform(15, 90, N))
    age = np.where(is_infant & ~is_pupil, rng.uniform(0, 90, N), age).round()
    income = pa.array(rng.lognormal(10, 0.5, N).round(), mask=is_pupil | is_infant)
    language = pa.array(rng.choice(["a", "b"], N), mask=is_infant & ~is_pupil)
    key = frozenset({"key"})
    schema = Schema(
        (
            Column("age", "continuous", key, unit=1),
            Column("income", "continuous", key, unit=1),
            Column("language", "category", frozenset({"block"}), categories=("a", "b")),
        )
    )
    return Table.from_frame(pa.table({"age": age, "income": income, "language": language}), schema)


def made(table: Table, sd_ratio: float = 0.75, **options: object) -> Finding:
    """Make the check of a release with noise on every amount."""
    names = table.schema.with_role("key")
    masking = apply(IndependentNoise(names, variance_ratio=sd_ratio**2, **options), table, key=KEY)  # type: ignore[arg-type]
    return next(one for one in CHECKS if one.name == "narrow classes").made(Evidence(masking))


def narrow_in(amount: NoisedAmount, classes: ClearClasses) -> Narrow | None:
    """Return what classes tell of one amount."""
    return narrow_amounts({"x": amount}, classes).get("x")


def test_who_has_no_income_and_a_language_is_a_pupil():
    table = people()
    found = made(table)
    of_pupils = np.isnan(table.floats("income")) & (table.status("language") == 0)
    assert found.verdict == FAIL
    assert found.where == "age by what is missing in income, language"
    assert found.figure == pytest.approx(of_pupils.mean(), abs=1e-9)


def test_an_age_as_wide_in_the_class_as_elsewhere_is_hidden_by_its_noise():
    assert made(people(narrow=20.0)).verdict == PASS


def test_noise_that_is_smaller_than_the_class_is_wide_tells_more_than_the_class():
    assert made(people(), sd_ratio=0.05).verdict == PASS


def test_few_records_are_warned_of():
    found = made(people(pupils=0.05))
    assert found.verdict == WARN
    assert 0.02 < found.figure < 0.12


def test_the_advice_keeps_what_it_says():
    found = made(people())
    assert "age would be told of 0.0% without language" in found.said
    table = people()
    others = Schema(tuple(column for column in table.schema.columns if column.name != "language"))
    frame = pa.table({name: table.array(name) for name in others.names})
    assert made(Table.from_frame(frame, others)).figure == 0.0


def _readers(x: Floats, inside: np.ndarray, sd: float, seed: int) -> tuple[float, float]:
    """By brute force: the mean width of 95% of p(x | z) over all values, and within what 95% of a class lie."""
    rng = np.random.default_rng(seed)
    z = x + sd * rng.standard_normal(len(x))
    values = np.sort(x)
    widths = []
    for one in rng.choice(np.flatnonzero(inside), 300):
        chances = np.exp(-0.5 * ((z[one] - values) / sd) ** 2).cumsum()
        ends = np.searchsorted(chances / chances[-1], [0.025, 0.975])
        widths.append(float(np.ptp(values[ends])))
    off = 2 * np.quantile(np.abs(x[inside] - z[inside].mean()), 0.95)
    return float(np.mean(widths)), float(off)


@pytest.mark.parametrize("sd", [0.5, 1.0, 2.0])
def test_widths_are_those_of_brute_force(sd: float):
    rng = np.random.default_rng(3)
    inside = np.arange(6_000) < 1_200
    x = np.where(inside, rng.normal(0.7, 0.1, 6_000), rng.normal(0, 1, 6_000))
    found = narrow_in(
        NoisedAmount(x, np.full(6_000, sd)), ClearClasses({"class": inside.astype(np.int64)}, {})
    )
    assert found is not None
    assert found.share == pytest.approx(0.2)
    alone, by_class = _readers(x, inside, sd, 5)
    # The widths of 300 readers have an error of some hundredths, and the class a quantile's of 1,200 records.
    assert found.width == pytest.approx(by_class / alone, rel=0.15)


@pytest.mark.parametrize("shape", ["normal", "skewed", "zeros", "few values"])
def test_classes_by_chance_tell_nothing(shape: str):
    rng = np.random.default_rng(17)
    x = {
        "normal": rng.normal(0, 1, N),
        "skewed": rng.lognormal(0, 2, N),
        "zeros": np.where(rng.random(N) < 0.7, 0.0, rng.lognormal(3, 1, N)),
        "few values": rng.integers(0, 5, N).astype(float),
    }[shape]
    levels = {f"{count} classes": rng.integers(0, count, N) for count in (2, 5, 20, 100, 700)}
    gaps = {f"gap {share}": (rng.random(N) < share).astype(np.int64) for share in (0.5, 0.02)}
    for ratio in (0.1, 1.0, 4.0):
        found = narrow_in(NoisedAmount(x, np.full(N, ratio * x.std())), ClearClasses(levels, gaps))
        assert found is not None
        assert found.share == 0.0


def test_a_class_of_three_tells_nothing_and_one_of_forty_does():
    rng = np.random.default_rng(8)
    x = rng.normal(0, 1, N)
    for members, told in ((3, 0.0), (40, 40 / N)):
        inside = np.arange(N) < members
        y = np.where(inside, 0.5 + 0.01 * x, x)
        found = narrow_in(NoisedAmount(y, np.ones(N)), ClearClasses({"class": inside.astype(np.int64)}, {}))
        assert found is not None
        assert found.share == pytest.approx(told)


def test_pairs_tell_what_no_column_does():
    rng = np.random.default_rng(9)
    first, second = rng.integers(0, 2, (2, N))
    x = np.where(first == second, rng.normal(1, 0.05, N), rng.normal(0, 1, N))
    levels = {"first": first, "second": second}
    found = narrow_in(NoisedAmount(x, np.ones(N)), ClearClasses(levels, {}))
    assert found is not None
    assert found.grouping.words == "first x second"
    assert found.share == pytest.approx(np.mean(first == second))
    assert found.without("first") == (0.0, 0.0)


def test_logarithms_are_the_scale_where_noise_is_on_them():
    """Wages of apprentices spread by a tenth, as a share; in units they are narrow, or not, by their size."""
    rng = np.random.default_rng(6)
    is_apprentice = rng.random(N) < 0.3
    wage = np.where(
        is_apprentice, 900 * np.exp(0.02 * rng.normal(0, 1, N)), np.exp(rng.normal(8, 0.7, N))
    ).round(2)
    grade = np.where(is_apprentice, "apprentice", "other")
    schema = Schema(
        (
            Column("wage", "continuous", frozenset({"key"}), unit=0.01),
            Column("grade", "category", frozenset({"block"}), categories=("apprentice", "other")),
        )
    )
    table = Table.from_frame(pa.table({"wage": wage, "grade": grade}), schema)
    found = made(table, transform="log")
    assert (found.verdict, found.where) == (FAIL, "wage by grade")
    assert found.figure == pytest.approx(is_apprentice.mean())


def test_nothing_in_clear_makes_no_classes():
    table = people()
    alone = Schema((table.schema["age"],))
    assert made(Table.from_frame(pa.table({"age": table.array("age")}), alone)).verdict == NOT_CHECKED


def test_numbers_in_clear_are_classes_of_about_equal_counts():
    values = np.random.default_rng(1).lognormal(0, 1, 1_000)
    counts = np.bincount(class_codes(values, is_category=False))
    assert counts.tolist() == [100] * 10
    few = class_codes(np.array([3.0, np.nan, 3.0, 5.0]), is_category=False)
    assert few.tolist() == [0, 2, 0, 1]


def test_work_is_bounded_for_wide_files():
    assert records_looked_at(5, 40) == 200_000
    assert records_looked_at(400, 366) == 2_000

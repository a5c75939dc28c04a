"""Lags and changes between rows of one group, and amounts that another amount gives."""

from __future__ import annotations

import numpy as np
import pytest

from maskwell.plan.dependence import classes_give, gives
from maskwell.plan.row_ties import row_ties, told_by_time


def panel(persons: int = 60, waves: int = 4) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return who, a wage that moves from wave to wave, and the wage of the wave before (none in the first)."""
    rng = np.random.default_rng(6)
    who = np.repeat(np.arange(persons), waves)
    wage = np.round(np.exp(rng.normal(3, 0.5, persons * waves)), 2)
    before = np.where(np.arange(len(who)) % waves == 0, np.nan, np.roll(wage, 1))
    return who, wage, before


@pytest.mark.parametrize(
    ("made", "what"),
    [
        (lambda wage, before: before, "wage of the record before"),
        (lambda wage, before: np.round(wage - before, 2), "the change of wage since the record before"),
    ],
)
def test_a_lag_and_a_change_are_found_inside_groups(made, what):
    who, wage, before = panel()
    columns = {"wage": wage, "other": made(wage, before)}
    found = row_ties(who, columns, ["wage", "other"], {})
    assert list(found) == ["other"]
    assert (
        found["other"].words("id") == f"{what} with the same id, in 180 of 180 records where both are known"
    )
    assert row_ties(np.arange(len(who)), columns, ["wage", "other"], {}) == {}  # nobody has a second row


def test_the_order_of_persons_in_the_file_does_not_matter_and_faults_are_few():
    who, wage, before = panel()
    order = np.argsort(np.arange(len(who)) % 4, kind="stable")  # wave by wave
    before[5::50] += 1
    found = row_ties(
        who[order], {"wage": wage[order], "lag": before[order]}, ["wage", "lag"], {"wage": "pay"}
    )
    tie = found["lag"]
    known = ~np.isnan(before)
    faults = np.count_nonzero(known[5::50])
    assert (tie.rows, tie.obeying) == (np.count_nonzero(known), np.count_nonzero(known) - faults)
    assert found["lag"].of == "pay"


def test_values_that_hardly_move_and_independent_ones_are_no_lags():
    who, wage, _ = panel()
    rng = np.random.default_rng(3)
    steady = np.repeat(rng.normal(size=60), 4)
    columns = {"wage": wage, "steady": steady, "same": steady.copy(), "noise": rng.normal(size=240)}
    assert row_ties(who, columns, list(columns), {}) == {}


def test_a_price_of_places_gives_their_tax_and_a_rare_event_is_chance():
    rng = np.random.default_rng(8)
    place = rng.integers(0, 40, 500)
    price, tax = rng.permutation(40), rng.integers(0, 25, 40).astype(float)
    assert gives(price[place], tax[place])
    assert not gives(price[place], rng.permutation(tax[place]))
    rare = np.where(np.isin(place, [3, 4]), 7.0, 0.0)
    assert not gives(price[place], rare)


def test_lags_and_changes_of_categories_are_found_and_dummies_of_the_year_are_none():
    rng, (who, _, _) = np.random.default_rng(5), panel(150, 3)
    wave = np.arange(len(who)) % 3
    grant = (rng.random(len(who)) < 0.3).astype(float)
    before = np.where(wave == 0, 0.0, np.roll(grant, 1))
    columns = {
        "wave": wave.astype(float),
        "second": (wave == 1) * 1.0,
        "third": (wave == 2) * 1.0,
        "grant": grant,
        "lag": before,
        "change": np.where(wave == 0, 0.0, grant - before),
        "ungranted": 1 - grant,
    }
    of_time = told_by_time(who, columns, list(columns))
    assert of_time == {"wave", "second", "third"}
    left = {name: x for name, x in columns.items() if name not in of_time}
    found = row_ties(who, left, list(left), {})
    assert {name: tie.what.format(tie.of) for name, tie in found.items()} == {
        "lag": "grant of the record before",
        "change": "the change of grant since the record before",
    }


def test_changes_in_two_waves_and_of_what_grows_are_no_time():
    rng, (who, _, _) = np.random.default_rng(7), panel(200, 2)
    wave = np.arange(len(who)) % 2
    hours = np.round(rng.integers(10, 60, 200)[who] + wave * rng.integers(9, 16, 200)[who]).astype(float)
    season = (rng.random(len(who)) < 0.5).astype(float)
    columns = {"hours": hours, "season": season}
    columns |= {f"c{name}": np.where(wave == 0, np.nan, x - np.roll(x, 1)) for name, x in columns.items()}
    columns["wave"] = wave.astype(float)
    of_time = told_by_time(who, columns, ["season", "chours", "cseason", "wave"])  # the hours are an amount
    assert of_time == {"wave"}
    left = {name: x for name, x in columns.items() if name not in of_time}
    found = row_ties(who, left, list(left), {})
    assert {name: (tie.of, tie.obeying) for name, tie in found.items()} == {
        "chours": ("hours", 200),
        "cseason": ("season", 200),
    }


def test_classes_give_what_is_the_same_inside_them_and_not_by_chance():
    rng = np.random.default_rng(4)
    year = rng.integers(0, 4, 200)
    assert classes_give(year, (year == 2).astype(np.int64))
    assert not classes_give((year == 2).astype(np.int64), year)
    assert not classes_give(np.arange(200), (year == 2).astype(np.int64))  # every record is its own class
    rare = (np.arange(200) == 7).astype(np.int64)
    assert not classes_give(np.where(rare == 1, 4, year), rare)  # one record alone is chance

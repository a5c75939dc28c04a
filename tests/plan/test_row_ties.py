"""Lags and changes between rows of one group, and amounts that another amount gives."""

from __future__ import annotations

import numpy as np
import pytest

from maskwell.plan.dependence import gives
from maskwell.plan.row_ties import row_ties


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
    assert str(found["other"]).startswith(what)
    assert found["other"].share == 1.0
    assert row_ties(np.arange(len(who)), columns, ["wage", "other"], {}) == {}  # nobody has a second row


def test_the_order_of_persons_in_the_file_does_not_matter_and_faults_are_few():
    who, wage, before = panel()
    order = np.argsort(np.arange(len(who)) % 4, kind="stable")  # wave by wave
    before[5::50] += 1
    found = row_ties(
        who[order], {"wage": wage[order], "lag": before[order]}, ["wage", "lag"], {"wage": "pay"}
    )
    assert 0.95 <= found["lag"].share < 1
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

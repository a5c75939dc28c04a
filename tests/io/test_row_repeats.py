"""Numbers that stand beside their like as those of a household do are asked about; order, chance and time are not."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from maskwell.io.inspect import SchemaProposal, propose
from maskwell.notes import texts

HOUSEHOLDS = 150


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(11)


def proposed(**columns) -> SchemaProposal:
    return propose(pa.table({name: pa.array(values).cast(pa.string()) for name, values in columns.items()}))


def members(rng: np.random.Generator) -> np.ndarray:
    """The household of each record, the members one below the other."""
    return np.repeat(np.arange(HOUSEHOLDS), rng.integers(1, 6, HOUSEHOLDS))


def asked(proposal: SchemaProposal, name: str) -> bool:
    return any(one.kind == "repeats" for one in proposal.of(name)) and proposal.schema[name].drop


def test_what_a_household_shares_is_dropped_and_asked_with_three_answers(rng):
    of = members(rng)
    income = rng.lognormal(10, 1, HOUSEHOLDS).round(2)[of]
    size = np.log(np.bincount(of)).round(3)[of]  # few values, so that households repeat one another's
    proposal = proposed(income=income, pay=rng.lognormal(9, 1, len(of)).round(2), deductible=np.sqrt(income))
    assert asked(proposal, "income")
    assert asked(proposal, "deductible")
    assert proposal.schema["pay"].roles == {"key"}
    found = next(one for one in proposal.of("income") if one.kind == "repeats")
    share = np.mean(income[1:] == income[:-1])
    assert f"equal to the record above in {share:.1%} of records, where chance gives" in found.text
    assert all(answer in found.otherwise for answer in ('["group"]', '["id"]', '["key"]'))
    assert texts(proposal.questions()["income"]) == (
        "dropped until a schema decides (an id, a group or an amount?)",
    )
    assert not asked(proposed(size=size), "size")  # five values are too few
    beside = proposed(size=size, income=income)
    assert asked(beside, "size")  # but these are the same wherever incomes repeat
    share = np.mean(size[1:] == size[:-1])
    text = next(one.text for one in beside.of("size") if one.kind == "repeats")
    assert f"equal to the record above in {share:.1%} of records" in text
    own = rng.choice([0.5, 1.5, 2.5], len(of))
    assert not asked(proposed(own=own, income=income), "own")


def test_many_zeros_are_no_hindrance_and_no_reason(rng):
    of = members(rng)
    shared = np.where(rng.random(HOUSEHOLDS) < 0.4, 0, rng.lognormal(8, 1, HOUSEHOLDS).round(2))[of]
    assert asked(proposed(x=shared), "x")
    by_household = (rng.random(HOUSEHOLDS) < 0.4)[of]  # only that there is none is shared
    assert not asked(proposed(x=np.where(by_household, 0, rng.lognormal(8, 1, len(of)).round(2))), "x")


@pytest.mark.parametrize("law", ["poisson", "normal", "zeros"])
def test_equal_neighbours_by_chance_are_no_reason(law):
    for seed in range(40):
        rng = np.random.default_rng(seed)
        draws = {
            "poisson": rng.poisson(30, 500),
            "normal": rng.normal(0, 20, 500).round(1),
            "zeros": np.where(rng.random(500) < 0.7, 0.0, rng.normal(0, 20, 500).round(1)),
        }
        assert not asked(proposed(x=draws[law]), "x")


def test_an_order_of_the_file_is_no_reason(rng):
    x = rng.normal(0, 20, 900).round()
    parts = np.repeat(np.arange(9), 100)
    assert not asked(proposed(x=np.sort(x)), "x")
    assert not asked(proposed(x=x[np.lexsort((x, parts))]), "x")  # in parts
    near = (parts * 40 + rng.integers(0, 4, 900)) / 2  # of a file that is sorted by something else
    assert not asked(proposed(x=near), "x")


def test_the_rate_of_a_day_that_rises_and_falls_is_asked_about(rng):
    """As in hotel_rates: a file in the order of days, each with many records and a rate that moves in waves."""
    day = np.repeat(np.arange(240), rng.integers(5, 15, 240))
    wave = 100 + 40 * np.sin(np.arange(240) / 8) + np.arange(240) / 50
    assert asked(proposed(rate=wave.round(6)[day]), "rate")
    assert not asked(proposed(rate=np.sort(wave.round(6)[day])), "rate")
    in_parts = wave.round(6)[day]
    assert not asked(proposed(rate=in_parts[np.lexsort((in_parts, day // 40))]), "rate")


def test_a_rounded_series_of_months_is_no_reason(rng):
    rate = (5 + rng.normal(0, 0.12, 400).cumsum()).round(1)
    assert np.mean(rate[1:] == rate[:-1]) > 0.2
    assert not asked(proposed(rate=rate), "rate")


def test_the_ties_of_a_column_by_which_the_file_is_sorted_are_no_reason(rng):
    """As in diamonds: stones sorted by price, and in the ties of one price few weights are usual."""
    of = np.repeat(np.arange(500), rng.integers(4, 9, 500))
    price = np.sort(rng.choice(9_000, 500, replace=False))[of] + 300
    usual = rng.choice(np.arange(20, 200), (500, 3))
    carat = usual[of, rng.integers(0, 3, len(of))] / 100
    assert asked(proposed(carat=carat), "carat")
    assert not asked(proposed(price_of=price, carat=carat), "carat")


def test_what_the_ties_of_a_sorted_column_share_is_still_asked_about(rng):
    of = members(rng)
    since = np.sort(rng.choice(20_000, HOUSEHOLDS, replace=False) / 4)[of]
    assert asked(proposed(since=since, income=rng.lognormal(10, 1, HOUSEHOLDS).round(2)[of]), "income")


def test_values_that_last_within_a_known_person_are_no_reason(rng):
    persons = np.repeat(np.arange(100), 8)
    spells = (rng.random(800) < 0.4).cumsum() + 1000 * persons
    wage = rng.lognormal(2, 0.5, int(spells.max()) + 1).round(2)[spells]
    assert not asked(proposed(person_id=persons + 5000, wage=wage), "wage")
    assert asked(proposed(wage=wage), "wage")


def test_what_a_known_school_shares_is_left_to_the_rule_on_groups(rng):
    school = np.repeat(np.arange(30), 60)
    proposal = proposed(school_id=school + 100, lowinc=rng.uniform(0, 100, 30).round(1)[school])
    assert not asked(proposal, "lowinc")


def test_households_in_a_known_commune_are_asked_about(rng):
    of = members(rng)
    commune, income = of // 50 + 100, rng.lognormal(10, 1, HOUSEHOLDS).round(2)[of]
    many = np.repeat(np.arange(30), 50) + 100
    proposal = proposed(commune_id=np.tile(commune, 8)[: len(many)], income=np.tile(income, 8)[: len(many)])
    assert asked(proposal, "income")


def test_codes_that_stand_together_but_for_a_part_of_the_file_are_a_group(rng):
    commune = np.repeat(np.arange(1, 195), 14)
    mixed = np.r_[rng.permutation(commune)[:140], commune]
    column = proposed(commune=mixed).schema["commune"]
    assert (column.roles, column.drop) == ({"group"}, True)
    column = proposed(commune=rng.permutation(mixed)).schema["commune"]
    assert (column.kind, column.roles) == ("category", frozenset())

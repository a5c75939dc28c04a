"""Intruders code their own records into the classes that leave, and rely on them as on any clear column."""

from __future__ import annotations

import warnings
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

import maskwell as mw
from maskwell.attacks import floor_of
from maskwell.attacks.class_codes import recode_table, seen_by
from maskwell.masks import Chain, Coding, Grouping
from maskwell.notes import has_code

NOISE = mw.IndependentNoise(("INCOME", "TAXES"), variance_ratio=0.05)
GROUPS = {
    "old": ("1919", "1920", "1930", "1940", "1950"),
    "new": ("1960", "1970", "1975", "1980", "1985", "1990"),
}
GROUPED = Grouping(("YR_BLT",), groups=GROUPS)
FIELDS = {"fields": ("INCOME", "TAXES")}
INTRUDERS = {
    "matcher": mw.Linkage(**FIELDS),
    "nearest": mw.NearestRecord(**FIELDS),
    "informed": mw.NearestRecord(**FIELDS, distance="posterior"),
    "law": mw.BayesIntruder(**FIELDS),
    "ceiling": mw.BayesIntruder(**FIELDS, helpers="all"),
    "small": mw.BayesIntruder(**FIELDS, largest_target_block=2, helpers="all"),
    "fingerprint": mw.Fingerprint(),
}


def quiet(mask: object, table: mw.Table, seed: int = 3) -> mw.Masking:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", mw.MaskwellWarning)
        return mw.apply(mask, table, seed=seed)


@pytest.fixture(scope="module")
def survey() -> mw.Table:
    return mw.datasets.housing(500)


@pytest.fixture(scope="module")
def masking(survey: mw.Table) -> mw.Masking:
    return quiet(Chain((GROUPED, NOISE)), survey)


@pytest.fixture(scope="module")
def by_hand(survey: mw.Table, masking: mw.Masking) -> mw.Masking:
    """The same noise on a file that had the classes from the beginning."""
    classes = masking.masked
    cells = classes.schema["YR_BLT"], classes.floats("YR_BLT"), classes.status("YR_BLT")
    return quiet(NOISE, survey.with_columns({"YR_BLT": cells}))


@pytest.mark.parametrize("name", [name for name in INTRUDERS if name != "small"])
def test_classes_are_blocks_as_if_they_had_been_collected_so(
    name: str, masking: mw.Masking, by_hand: mw.Masking
) -> None:
    found, same = (mw.attack(INTRUDERS[name], one) for one in (masking, by_hand))
    assert found.expected_correct == pytest.approx(same.expected_correct)
    assert found.claims == same.claims
    assert not has_code(found.notes, "attacks.masked_blocks")
    if name != "fingerprint":
        without = replace(INTRUDERS[name], match_blocks=("REGION", "BEDROOMS", "BATHS"))
        assert found.expected_correct > mw.attack(without, masking).expected_correct


def test_targets_are_chosen_by_the_blocks_as_they_were(survey: mw.Table, masking: mw.Masking) -> None:
    plan = INTRUDERS["small"]
    risk = mw.attack(plan, masking)
    assert risk.targets == len(plan.eligible_records(survey))
    assert risk.targets > len(plan.eligible_records(seen_by(plan, masking).masking.truth))


def test_blocks_that_are_named_are_coded_too(masking: mw.Masking) -> None:
    named = replace(INTRUDERS["nearest"], match_blocks=("REGION", "BEDROOMS", "BATHS", "YR_BLT"))
    assert mw.attack(named, masking).rate == mw.attack(INTRUDERS["nearest"], masking).rate


def test_a_file_of_the_intruders_own_is_coded_as_the_release_is(
    survey: mw.Table, masking: mw.Masking
) -> None:
    """His categories are in another order, and one of them is none of the truth's."""
    some = survey.take(np.arange(0, 500, 5))
    column = some.schema["YR_BLT"]
    names = ("1800", *reversed(column.categories))
    own = some.with_columns(
        {
            "YR_BLT": (
                replace(column, categories=names, labels=()),
                len(names) - 1 - some.floats("YR_BLT"),
                some.status("YR_BLT"),
            )
        }
    )
    plan = INTRUDERS["nearest"]
    risk = mw.attack(plan, masking, targets=own)
    assert risk.expected_correct == mw.attack(plan, masking, targets=some).expected_correct > 0
    assert "1800" in seen_by(plan, masking).coded(own).schema["YR_BLT"].categories


@pytest.mark.parametrize(
    "mask",
    [Grouping(("rooms",), breaks=(3, 5)), Coding(("rooms",), top=5)],
    ids=["classes", "end codes"],
)
def test_numbers_as_classes_or_with_codes_are_blocks(mask: object) -> None:
    rng = np.random.default_rng(1)
    data = pa.table({"rooms": rng.integers(1, 8, 200), "income": rng.normal(50, 10, 200)})
    columns = (
        mw.Column("rooms", "integer", roles=frozenset({"block"})),
        mw.Column("income", "continuous", roles=frozenset({"key"})),
    )
    table = mw.Table.from_frame(data, mw.Schema(columns))
    released = quiet(Chain((mask, mw.IndependentNoise(("income",), variance_ratio=0.5))), table)
    plan = mw.NearestRecord()
    found, without = mw.attack(plan, released), mw.attack(replace(plan, match_blocks=()), released)
    assert found.expected_correct > without.expected_correct
    assert found.baseline > without.baseline
    again = recode_table(table, [released.card.law_of("rooms")], table.schema)
    assert np.array_equal(again.status("rooms"), released.masked.status("rooms"))
    assert np.array_equal(again.floats("rooms"), released.masked.floats("rooms"), equal_nan=True)


def test_who_needs_a_law_keeps_that_of_the_classes_where_it_is_the_only_one(survey: mw.Table) -> None:
    only = quiet(GROUPED, survey)
    plan = mw.BayesIntruder(fields=("YR_BLT",))
    assert mw.attack(plan, only).rate > 0
    assert mw.attack(mw.BayesIntruder(), only).rate > 0
    assert mw.attack(INTRUDERS["nearest"], only).rate > 0.8


def test_fields_that_are_named_are_compared_by_their_law(masking: mw.Masking) -> None:
    plan = mw.BayesIntruder(fields=("INCOME", "TAXES", "YR_BLT"))
    risk = mw.attack(plan, masking)
    assert risk.fields == ("INCOME", "TAXES", "YR_BLT")
    assert risk.rate == pytest.approx(mw.attack(INTRUDERS["law"], masking).rate, abs=1e-9)


def test_swaps_are_within_the_classes(masking: mw.Masking) -> None:
    plan = INTRUDERS["nearest"]
    swapped = mw.swap(masking, plan, mw.MaxRate(0.4), exempt_values="he has both amounts")
    assert swapped.swapping.swaps > 0
    assert "YR_BLT" in swapped.card.swapped.blocks
    classes = swapped.masked.floats("YR_BLT")[swapped.swapping.pairs]
    assert np.array_equal(classes[:, 0], classes[:, 1])
    after = mw.attack(plan, swapped)
    assert after.rate <= 0.4
    assert after.expected_correct == pytest.approx(swapped.swapping.after.expected_correct)


def test_records_that_moved_are_weighed_within_the_classes(masking: mw.Masking, by_hand: mw.Masking) -> None:
    """Who does not search within the classes still knows that records were exchanged within them."""
    plan = mw.BayesIntruder(**FIELDS, match_blocks=())
    rates = []
    for one in (masking, by_hand):
        swapped = mw.swap(one, INTRUDERS["nearest"], mw.tolerances.SwapShare(0.2))
        rates.append(mw.attack(plan, swapped).expected_correct)
    assert rates[0] == pytest.approx(rates[1])


def test_the_floor_where_one_block_is_masked_and_another_dropped(survey: mw.Table) -> None:
    column = survey.schema["BATHS"]
    table = replace(survey, schema=survey.schema.changed({"BATHS": replace(column, drop=True)}))
    mask = Chain((mw.Pram("YR_BLT", stay=0.5), NOISE))
    risk = floor_of(mask, table)
    assert risk.floor.block_columns == ("REGION", "BEDROOMS")
    assert 0 < risk.rate < 1
    classes = floor_of(Chain((GROUPED, NOISE)), table)
    assert classes.floor.block_columns == ("REGION", "BEDROOMS", "YR_BLT")
    assert classes.rate > risk.rate

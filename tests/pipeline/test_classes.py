"""What leaves as classes: the intruder codes his records as the release does."""

from __future__ import annotations

import numpy as np
import pytest

import maskwell as mw
from maskwell.masks import Chain, Grouping
from maskwell.pipeline.classes import AS_IT_WAS, Coded
from maskwell.pipeline.intruders import attacked

NOISE = mw.IndependentNoise(("INCOME", "TAXES"), variance_ratio=0.05)
CLASSES = Grouping(
    ("YR_BLT",),
    groups={
        "old": ("1919", "1920", "1930", "1940", "1950"),
        "new": ("1960", "1970", "1975", "1980", "1985", "1990"),
    },
)
MASK = Chain((CLASSES, NOISE))
PLAN = mw.NearestRecord(fields=("INCOME", "TAXES"))


@pytest.fixture(scope="module")
def survey() -> mw.Table:
    return mw.datasets.housing(800)


@pytest.fixture(scope="module")
def masking(survey: mw.Table) -> mw.Masking:
    with pytest.warns(mw.MaskwellWarning, match="alone in their block"):
        return mw.apply(MASK, survey, seed=3)


def test_classes_are_blocks_to_who_can_code(survey: mw.Table, masking: mw.Masking) -> None:
    """The same file with the classes in the truth already is what he attacks."""
    coded = Coded.of(survey, MASK)
    assert coded.columns == ("YR_BLT",)
    ours = attacked({"nearest": PLAN}, masking, coded)["nearest"]
    recoded = survey.with_columns(
        {"YR_BLT": (masking.masked.schema["YR_BLT"], *_cells(masking.masked, "YR_BLT"))}
    )
    with pytest.warns(mw.MaskwellWarning, match="alone in their block"):
        by_hand = mw.attack(PLAN, mw.apply(NOISE, recoded, seed=3))
    assert ours.expected_correct == pytest.approx(by_hand.expected_correct)
    assert ours.expected_correct > mw.attack(PLAN, masking).expected_correct
    assert ours.attack == PLAN


def _cells(table: mw.Table, name: str) -> tuple[np.ndarray, np.ndarray]:
    return table.floats(name), table.status(name)


def test_targets_are_chosen_by_the_blocks_as_they_were(survey: mw.Table, masking: mw.Masking) -> None:
    plan = mw.NearestRecord(largest_target_block=2, fields=("INCOME", "TAXES"))
    coded = Coded.of(survey, MASK)
    risk = attacked({"nearest": plan}, masking, coded)["nearest"]
    assert risk.targets == len(plan.eligible_records(survey))
    assert AS_IT_WAS.format("YR_BLT") not in masking.release.table.names
    assert AS_IT_WAS.format("YR_BLT") not in coded.seen(masking).release.table.names


def test_without_classes_nothing_changes(survey: mw.Table) -> None:
    coded = Coded.of(survey, NOISE)
    assert coded.table is survey
    assert coded.mask is NOISE
    assert coded.whole(NOISE) is NOISE
    blurred = Chain((CLASSES, mw.Pram("YR_BLT", stay=0.9)))
    assert Coded.of(survey, Chain((*blurred.masks, NOISE))).columns == ()


def test_swaps_found_on_classes_are_carried_to_the_release(survey: mw.Table, masking: mw.Masking) -> None:
    coded = Coded.of(survey, MASK)
    seen = coded.seen(masking)
    swapped = mw.swap(seen, PLAN, mw.MaxRate(0.5))
    carried = coded.carried(masking, swapped, PLAN)
    assert carried.swapping.swaps == swapped.swapping.swaps > 0
    assert carried.truth is masking.truth
    assert carried.card.laws == masking.card.laws
    moved = carried.masked.floats("INCOME") != masking.masked.floats("INCOME")
    assert (
        0
        < np.count_nonzero(moved)
        <= 2 * carried.swapping.swaps + np.isnan(masking.masked.floats("INCOME")).sum()
    )
    assert attacked({"n": PLAN}, carried, coded)["n"].expected_correct == pytest.approx(
        swapped.swapping.after.expected_correct
    )

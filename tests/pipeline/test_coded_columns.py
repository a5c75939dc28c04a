"""What leaves as classes, coded before any noise: the same attacks find the same."""

from __future__ import annotations

import pytest

import maskwell as mw
from maskwell.attacks import floor_of
from maskwell.masks import Chain, Grouping
from maskwell.pipeline.coded_columns import AS_IT_WAS, CodedTable
from maskwell.pipeline.intruders import risks_by_intruder

NOISE = mw.IndependentNoise(("INCOME", "TAXES"), variance_ratio=0.05)
CLASSES = Grouping(
    ("YR_BLT",),
    groups={
        "old": ("1919", "1920", "1930", "1940", "1950"),
        "new": ("1960", "1970", "1975", "1980", "1985", "1990"),
    },
)
MASK = Chain((CLASSES, NOISE))
PLAN = mw.NearestRecord(largest_target_block=2, fields=("INCOME", "TAXES"))


@pytest.fixture(scope="module")
def survey() -> mw.Table:
    return mw.datasets.housing(800)


def masked(mask: object, table: mw.Table) -> mw.Masking:
    with pytest.warns(mw.MaskwellWarning, match="alone in their block"):
        return mw.apply(mask, table, seed=3)


def test_attacks_find_the_same_on_a_table_that_is_coded_already(survey: mw.Table) -> None:
    coded = CodedTable.of(survey, MASK)
    assert coded.columns == ("YR_BLT",)
    whole = risks_by_intruder({"nearest": PLAN}, masked(MASK, survey))["nearest"]
    before = masked(coded.mask, coded.table)
    again = risks_by_intruder(coded.attacks({"nearest": PLAN}), before)["nearest"]
    assert whole.expected_correct == pytest.approx(again.expected_correct)
    assert whole.targets == again.targets == len(PLAN.eligible_records(survey))
    assert AS_IT_WAS.format("YR_BLT") not in before.release.table.names
    assert whole.attack == PLAN


def test_the_floor_is_the_same_on_a_table_that_is_coded_already(survey: mw.Table) -> None:
    coded = CodedTable.of(survey, MASK)
    own = coded.attacks({"nearest": PLAN})["nearest"]
    floor = floor_of(coded.mask, coded.table, own)
    assert floor.expected_correct == pytest.approx(floor_of(MASK, survey, PLAN).expected_correct)
    assert 0 < floor.rate < 1


def test_the_masks_of_the_other_columns_go_back_into_the_whole(survey: mw.Table) -> None:
    assert CodedTable.of(survey, MASK).whole(NOISE) == MASK


def test_without_classes_nothing_changes(survey: mw.Table) -> None:
    coded = CodedTable.of(survey, NOISE)
    assert coded.table is survey
    assert coded.mask is NOISE
    assert coded.whole(NOISE) is NOISE
    blurred = Chain((CLASSES, mw.Pram("YR_BLT", stay=0.9)))
    assert CodedTable.of(survey, Chain((*blurred.masks, NOISE))).columns == ()

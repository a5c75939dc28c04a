"""What a plan gives up is counted, and noise that drowns what leaves is said."""

from __future__ import annotations

import pytest

import maskwell as mw
from maskwell.pipeline.candidates import Candidate, leaner, without
from maskwell.pipeline.information_loss import (
    change_losses,
    drowned_words,
    loss,
    noise_dominated_columns,
    noise_ratios,
)
from maskwell.pipeline.progress import Stages
from maskwell.pipeline.run import _situation

from .homes import KEY, folder, homes, plan_in

__all__ = ["folder"]


def test_noise_is_counted_in_sds_of_the_column() -> None:
    table = homes()
    sd = float(table.floats("X").std())
    masks = (mw.CorrelatedNoise(("X",), sd_ratio=1.5), mw.IndependentNoise(("Y",), variance_ratio=0.25))
    assert noise_ratios(masks, table) == {"X": 1.5, "Y": 0.5}
    assert noise_ratios((mw.CorrelatedNoise(("X",), r0=0.5),), table) == {"X": pytest.approx(1.0)}
    absolute = mw.IndependentNoise(("X",), variance=4 * sd**2)
    assert noise_ratios((mw.Chain((absolute,)),), table)["X"] == pytest.approx(2.0)


def test_loss_adds_columns_and_shares_of_noise() -> None:
    assert loss({"X": 1.0, "Y": 2.0}, dropped=1) == pytest.approx(1 + 0.5 + 0.8)
    assert noise_dominated_columns({"X": 1.0, "Y": 2.0}) == ("Y",)
    assert drowned_words({"X": 0.4}) == ""
    assert "more noise than signal in Y (2 sds of their own)" in drowned_words({"X": 0.5, "Y": 2.0})


def test_leaner_changes_leave_out_more_and_name_each_column_once(folder) -> None:
    case, _ = _situation(plan_in(folder), KEY, Stages())
    first = without(Candidate((), case.plan.masks), ("KIND",))
    found = leaner(case, first)
    assert found
    for one in found:
        assert set(one.dropped) > {"KIND"}
        assert one.said[0] == f"leave out {', '.join(one.dropped)}"
        assert len(one.said) == 1


def test_a_change_at_random_loses_what_the_released_category_tells_no_more() -> None:
    """Of K categories that stay with 1/K nothing is left; an invariant table counts by what it is."""
    table = homes()
    masks = (mw.Pram(("KIND",), stay=0.8), mw.Chain((mw.Pram(("REGION",), stay=0.5),)))
    assert change_losses(masks, table) == {
        "KIND": pytest.approx(1 - ((0.8 * 4 - 1) / 3) ** 2),
        "REGION": pytest.approx(1.0),
    }
    twice = change_losses((mw.Pram(("KIND",), stay=0.8, invariant=True),), table)["KIND"]
    assert twice > change_losses(masks, table)["KIND"]
    assert loss({}, 1, {"KIND": 0.25}) == pytest.approx(1.25)


def test_categories_that_change_at_random_are_left_out_too_those_first_that_tell_most(folder) -> None:
    masks = [{"mask": "Pram", "columns": ["REGION", "KIND", "SAID"], "stay": 0.8}]
    knows = [{"name": "knows the law", "attack": "BayesIntruder", "fields": ["REGION", "KIND"]}]
    blocks = {"match_blocks": []}
    case, _ = _situation(plan_in(folder, *masks, intruders=knows, targets=blocks), KEY, Stages())
    first = Candidate((), case.plan.masks)
    found = leaner(case, first)
    assert [one.dropped for one in found] == [("KIND",)]  # of four kinds; the others have two values
    assert [one.dropped for one in leaner(case, first, ("REGION",))] == [("REGION", "KIND")]
    alone = without(first, ("REGION", "SAID"))
    assert leaner(case, alone, ("KIND",)) == []  # something masked must be left

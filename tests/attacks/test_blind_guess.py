"""Guessing among records alike in all that leaves in clear: blocks, and what is missing or coded."""

import numpy as np
import pyarrow as pa
import pytest

import maskwell as mw
from maskwell.attacks.blind_guess import alike_numbers
from maskwell.schema import Column, Schema
from maskwell.table import Table


@pytest.fixture
def surveyed():
    """60 records of three regions; wage is missing in every fourth, hours in every sixth."""
    rng, i = np.random.default_rng(4), np.arange(60)
    wage = np.where(i % 4 == 0, np.nan, rng.normal(50, 10, 60).round(1))
    hours = np.where(i % 6 == 0, np.nan, rng.normal(30, 5, 60).round(1))
    schema = Schema(
        (
            Column("region", "category", frozenset({"block"}), categories=("a", "b", "c")),
            Column("wage", "continuous", frozenset({"key"}), unit=0.1),
            Column("hours", "continuous", frozenset({"key"}), unit=0.1),
        )
    )
    regions = np.array(["a", "b", "c"])[np.arange(60) // 20]
    data = {
        "region": regions,
        "wage": pa.array(wage, from_pandas=True),
        "hours": pa.array(hours, from_pandas=True),
    }
    return Table.from_frame(pa.table(data), schema)


def _by_hand(table, *, with_gaps):
    rows = list(
        zip(table.array("region").to_pylist(), table.status("wage"), table.status("hours"), strict=True)
    )
    rows = rows if with_gaps else [row[:1] for row in rows]
    return len(set(rows)) / len(rows)


@pytest.mark.parametrize(
    "plan",
    [mw.attacks.NearestRecord(), mw.attacks.BayesIntruder(), mw.attacks.Linkage(), mw.attacks.Fingerprint()],
)
def test_every_intruder_is_told_what_guessing_by_blocks_and_gaps_finds(surveyed, plan):
    masking = mw.apply(mw.CorrelatedNoise(("wage", "hours"), sd_ratio=0.8), surveyed, seed=3)
    risk = mw.attack(plan, masking)
    assert risk.baseline == pytest.approx(_by_hand(surveyed, with_gaps=False))
    assert risk.guessing == pytest.approx(_by_hand(surveyed, with_gaps=True))
    assert f"by all that shows in clear {risk.guessing:.1%}" in "\n".join(risk.lines())


def test_without_gaps_it_is_guessing_within_blocks(surveyed):
    whole = surveyed.take(np.flatnonzero((np.arange(60) % 4 > 0) & (np.arange(60) % 6 > 0)))
    card = mw.CorrelatedNoise(("wage", "hours"), sd_ratio=0.8).card(whole)
    assert alike_numbers(whole, whole, ["region"], card) is None
    risk = mw.attack(
        mw.attacks.NearestRecord(), mw.apply(mw.CorrelatedNoise(("wage",), sd_ratio=0.8), whole, seed=3)
    )
    assert risk.guessing == risk.baseline
    assert "by all that shows" not in "\n".join(risk.lines())


def test_who_goes_by_fingerprints_guesses_by_all_in_clear_whatever_its_role():
    """Answers of one value, and of no role, with gaps: they tell as much where a block is changed at random."""
    rng = np.random.default_rng(6)
    schema = Schema(
        (
            Column("region", "category", frozenset({"block"}), categories=("a", "b", "c")),
            Column("said", "category", categories=("yes",)),
        )
    )
    said = [None if gone else "yes" for gone in rng.random(60) < 0.3]
    data = {"region": rng.choice(["a", "b", "c"], 60), "said": said}
    masking = mw.apply(mw.Pram(("region",), stay=0.6), Table.from_frame(pa.table(data), schema), seed=3)
    assert mw.attack(mw.attacks.Fingerprint(), masking).guessing == pytest.approx(2 / 60)

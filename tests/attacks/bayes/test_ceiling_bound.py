"""The ceiling on blocks too large to be matched: a bound that holds, against all matchings where these are counted."""

from __future__ import annotations

import warnings

import numpy as np
import pyarrow as pa
import pytest

import maskwell as mw
from maskwell.attacks.attack_run import attack_by
from maskwell.attacks.bayes.matching_posterior import ceiling_bound, posterior
from maskwell.errors import BadPlan
from maskwell.notes import has_code
from maskwell.schema import Column, Schema
from maskwell.table import Table

NAMES = ("A", "B")
BLOCKS, SIZE = 40, 10
ALL = mw.BayesIntruder(helpers="all")


def masking_of(mask, gaps=0.0):
    rng = np.random.default_rng(3)
    values = rng.normal(size=(BLOCKS * SIZE, 2))
    values[rng.random(len(values)) < gaps, 1] = np.nan
    columns = {name: pa.array(column, from_pandas=True) for name, column in zip(NAMES, values.T, strict=True)}
    labels = tuple(f"{block:02d}" for block in range(BLOCKS))
    schema = Schema(
        (
            *(Column(name, "continuous", frozenset({"key"})) for name in NAMES),
            Column("G", "category", frozenset({"block"}), categories=labels),
        )
    )
    groups = pa.array(np.repeat(labels, SIZE))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", mw.MaskwellWarning)
        return mw.apply(mask, Table.from_frame(pa.table(columns | {"G": groups}), schema), seed=5)


NOISE = mw.IndependentNoise(NAMES, variance_ratio=0.5)


@pytest.fixture
def bounded(monkeypatch):
    """Call every block too large, and look at every target."""
    monkeypatch.setattr(posterior, "MATCHED_CELLS", 1)
    monkeypatch.setattr(ceiling_bound, "CELLS", BLOCKS * SIZE)


def exact(masking):
    """Return the largest probability of each target by all matchings."""
    guess = attack_by(ALL, masking)[1]
    return np.nan_to_num(guess.columns["probability"])


@pytest.mark.parametrize(
    ("mask", "gaps"),
    [(NOISE, 0.0), (NOISE, 0.2), (mw.Chain((mw.Subsample(fraction=0.8), NOISE)), 0.0)],
    ids=["all", "gaps", "some released"],
)
def test_where_whole_blocks_are_told_the_bound_is_the_ceiling(mask, gaps, monkeypatch, request):
    masking = masking_of(mask, gaps)
    truth = exact(masking)
    request.getfixturevalue("bounded")
    risk = mw.attack(ALL, masking)
    assert risk.ceiling.rate == pytest.approx(truth.mean(), rel=1e-6)
    assert risk.ceiling.sampled == 0
    assert risk.interval == (risk.rate, max(risk.ceiling.high, risk.rate))


def test_who_is_told_more_finds_no_less(monkeypatch, request):
    """Cells of 3 units with the records of 6 told, in blocks of 10: between the ceiling and certainty."""
    masking = masking_of(NOISE)
    truth = exact(masking)
    request.getfixturevalue("bounded")
    monkeypatch.setattr(ceiling_bound, "CORE", 3)
    monkeypatch.setattr(ceiling_bound, "TOLD", 6)
    found = mw.attack(ALL, masking).ceiling
    error = truth.reshape(BLOCKS, SIZE).mean(axis=1).std(ddof=1) / np.sqrt(BLOCKS)
    assert found.rate > truth.mean()
    assert found.rate < truth.mean() + 0.2
    assert found.targets == BLOCKS * SIZE
    assert truth.mean() - 4 * error < found.low < found.rate < found.high


def test_some_cells_stand_for_all(bounded, monkeypatch):
    """The interval over some cells has the figure of all cells in it, at 4 standard errors."""
    masking = masking_of(NOISE)
    every = mw.attack(ALL, masking).ceiling
    monkeypatch.setattr(ceiling_bound, "CELLS", 12)
    some = mw.attack(ALL, masking).ceiling
    assert some.cells <= 12 < every.cells
    assert abs(some.rate - every.rate) < 2 * (some.high - some.low)
    assert some.high - some.low > every.high - every.low


def test_of_a_sample_of_targets_the_bound_is_about_all_with_its_error(bounded):
    masking = masking_of(NOISE)
    risk, guess = attack_by(mw.BayesIntruder(helpers="all", targets=mw.attacks.Sample(50)), masking)[:2]
    whole = mw.attack(ALL, masking).ceiling
    wide = risk.ceiling.high - risk.ceiling.low
    assert len(guess) == risk.targets == 50
    assert abs(risk.ceiling.rate - whole.rate) < wide  # 95% reach half of it: 4 standard errors
    assert wide > whole.high - whole.low
    assert risk.interval[1] == max(risk.ceiling.high, risk.rate)


def test_the_bound_is_said_and_counted_the_same_twice(bounded):
    masking = masking_of(NOISE)
    risk = mw.attack(ALL, masking)
    assert risk.to_dict()["ceiling"] == mw.attack(ALL, masking).to_dict()["ceiling"]
    assert "nobody can expect more than" in repr(risk)
    assert has_code(risk.notes, "attacks.ceiling_bounded")


def test_who_does_not_hold_the_card_is_still_refused(bounded, monkeypatch):
    monkeypatch.setattr(posterior, "MOST_PAIRS", 1)
    with pytest.raises(BadPlan, match="can be held"):
        mw.attack(mw.BayesIntruder(helpers="all", prior=mw.attacks.Prior()), masking_of(NOISE))

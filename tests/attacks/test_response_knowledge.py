"""Who attacks a sample of the records knows that his target is in it: rates among those who left, and over all."""

from __future__ import annotations

import warnings
from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import linear_sum_assignment

import maskwell as mw
from maskwell.attacks.attack_run import attack_by
from maskwell.attacks.targets import RecordSet
from maskwell.errors import BadPlan
from maskwell.schema import Column, Schema
from maskwell.table import Table

NAMES = ("A", "B")
SD = 0.5


def people(count: int = 400, *, ids: bool = True) -> Table:
    rng = np.random.default_rng(5)
    frame = {name: rng.standard_normal(count) for name in NAMES}
    frame["R"] = rng.integers(0, 5, count) ** 2 // 4
    columns = [Column(name, "continuous", frozenset({"key"})) for name in NAMES]
    columns.append(Column("R", "integer", frozenset({"block"})))
    if ids:
        frame["ID"] = [f"p{i}" for i in range(count)]
        columns.append(Column("ID", "category", frozenset({"id"})))
    import pandas as pd

    return Table.from_frame(pd.DataFrame(frame), schema=Schema(tuple(columns)))


def sampled(table: Table, fraction: float = 0.3):
    mask = mw.Chain((mw.IndependentNoise(NAMES, variance=SD**2), mw.Subsample(fraction)))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", mw.MaskwellWarning)
        return mw.apply(mask, table, seed=7, exact=True)


def by_hand(masking) -> tuple[float, float]:
    """The share of the released who are found by f(z|x) / f(z) over the released, and one-to-one."""
    x, block = masking.truth.values(NAMES)[masking.order], np.asarray(masking.truth.array("R"))[masking.order]
    z, best, one = masking.release.table.values(NAMES), 0, 0
    for number in np.unique(block):
        here = np.flatnonzero(block == number)
        logs = -0.5 * (((z[here] - x[here][:, None]) / SD) ** 2).sum(axis=2)
        scores = logs - np.log(np.exp(logs).mean(axis=0))
        best += int((scores.argmax(axis=1) == np.arange(len(here))).sum())
        rows, columns = linear_sum_assignment(-logs)
        one += int((rows == columns).sum())
    return best / len(x), one / len(x)


@pytest.mark.parametrize("ids", [True, False])
def test_rates_are_those_of_brute_force_among_the_released(ids):
    masking = sampled(people(ids=ids))
    best, one = by_hand(masking)
    share = len(masking.order) / 400
    for plan, rate in ((mw.BayesIntruder(), best), (mw.BayesIntruder(assignment="one-to-one"), one)):
        risk = mw.attack(plan, masking)
        assert (risk.targets, risk.rate) == (len(masking.order), pytest.approx(rate))
        assert (risk.released_share, risk.rate_of_released) == (share, risk.rate)
        assert risk.rate_of_all == pytest.approx(share * rate)
        assert risk.to_dict()["rate_of_all"] == risk.rate_of_all
        unaware = mw.attack(replace(plan, response_knowledge=False), masking)
        assert (unaware.targets, unaware.rate) == (400, unaware.rate_of_all)
        assert unaware.rate_of_all <= risk.rate_of_all
        assert unaware.rate_of_released == pytest.approx(unaware.rate / share)


@pytest.mark.parametrize("ids", [True, False])
def test_records_are_named_as_in_the_whole_file(ids):
    masking = sampled(people(ids=ids))
    risk, guess, marks, numbers = attack_by(mw.BayesIntruder(), masking)
    links = dict(zip(*(masking.links[name].to_pylist() for name in ("truth_id", "released_id")), strict=True))
    rows = risk.table.to_pylist()
    assert all((links[row["target_id"]] == row["linked_id"]) == row["correct"] for row in rows)
    assert sorted(numbers) == sorted(masking.order)
    assert (masking.order[marks.counterpart] == numbers[guess.searcher]).all()
    assert risk.belief.labels.to_pylist() == [row["target_id"] for row in rows]


def test_a_few_targets_are_those_of_them_who_were_released():
    masking = sampled(people())
    asked = RecordSet(tuple(range(0, 400, 4)))
    risk = mw.attack(mw.BayesIntruder(targets=asked), masking)
    assert risk.targets == np.isin(np.arange(0, 400, 4), masking.order).sum()
    absent = int(np.setdiff1d(np.arange(400), masking.order)[0])
    with pytest.raises(BadPlan, match="none of the targets is in the release"):
        mw.attack(mw.BayesIntruder(targets=RecordSet((absent,))), masking)


def test_small_blocks_are_those_of_the_whole_file():
    table = people()
    masking = sampled(table)
    block = np.asarray(table.array("R"))
    limit = int(np.median(np.bincount(block)[np.bincount(block) > 0]))
    small = np.flatnonzero(np.bincount(block)[block] <= limit)
    risk = mw.attack(mw.BayesIntruder(largest_target_block=limit), masking)
    assert risk.targets == np.isin(small, masking.order).sum()
    some = mw.attack(mw.BayesIntruder(largest_target_block=limit, targets=mw.attacks.Sample(10)), masking)
    assert some.targets == 10
    assert some.interval is not None


def test_a_sample_is_drawn_among_the_released_and_its_interval_is_about_these():
    masking = sampled(people())
    risk = mw.attack(mw.BayesIntruder(targets=mw.attacks.Sample(60)), masking)
    assert risk.targets == 60
    low, high = risk.interval
    assert low < mw.attack(mw.BayesIntruder(), masking).rate < high


def test_a_swap_is_judged_among_the_released():
    table = people()
    masking = sampled(table)
    swapped = mw.swap(masking, mw.NearestRecord(), mw.MaxRate(0.25), columns=("A",))
    risk = mw.attack(mw.BayesIntruder(), swapped)
    assert risk.his_record.targets == risk.his_values.targets == len(masking.order)
    assert swapped.swapping.after.targets == len(masking.order)
    assert np.isin(swapped.swapping.pairs, masking.order).all()


def test_a_file_of_his_own_may_hold_anybody():
    masking = sampled(people())
    risk = mw.attack(mw.BayesIntruder(), masking, targets=masking.truth)
    assert (risk.targets, risk.among_released) == (400, False)
    assert risk.rate_of_released == pytest.approx(risk.rate * 400 / len(masking.order))


def test_the_table_shows_both_rates():
    masking = sampled(people())
    plans = {"aware": mw.BayesIntruder(), "unaware": mw.BayesIntruder(response_knowledge=False)}
    risks = mw.attack(plans, masking)
    text = " ".join(repr(risks).split())
    for name in plans:
        assert f"{name} {risks[name].rate_of_released:.1%} / {risks[name].rate_of_all:.1%}" in text
    assert "not known, who was released, to: unaware" in text
    assert "of the targets in the release" not in repr(mw.attack(plans, sampled(people(50), 0.999)))

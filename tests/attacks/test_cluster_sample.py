"""Targets in whole blocks: the rate among them is that of all, within an interval that knows of blocks."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

import maskwell as mw
from maskwell.attacks.cluster_sample import ClusterSample, effective_targets
from maskwell.attacks.risk import wilson
from maskwell.attacks.targets import choice_from_dict


def test_single_targets_count_for_themselves():
    rng = np.random.default_rng(1)
    found = (rng.random(20_000) < 0.2).astype(float)
    effective = effective_targets(np.ones(20_000), found, 0.0)
    assert 0.98 * 20_000 < effective <= 20_000  # the variance of 20,000 coins is known to a share of 0.01


def test_where_blocks_are_found_as_a_whole_each_counts_for_one():
    rng = np.random.default_rng(2)
    found = 50.0 * (rng.random(400) < 0.2)
    effective = effective_targets(np.full(400, 50.0), found, 0.0)
    assert 0.95 * 400 < effective < 400
    assert effective_targets(np.full(400, 50.0), np.zeros(400), 0.0) == 400


def test_the_interval_of_drawn_blocks_holds_the_rate_of_all():
    rng = np.random.default_rng(3)
    n = rng.integers(1, 40, 3_000).astype(float)
    y = rng.binomial(n.astype(int), rng.beta(1, 1, 3_000)).astype(float)
    inside, runs = 0, 2_000
    for _ in range(runs):
        at = rng.choice(3_000, 60, replace=False)
        rate = y[at].sum() / n[at].sum()
        low, high = wilson(rate, effective_targets(n[at], y[at], n[at].sum() / n.sum()))
        inside += low <= y.sum() / n.sum() <= high
    assert inside / runs > 0.95 - 4 * np.sqrt(0.95 * 0.05 / runs)


def masking_of(records: int) -> mw.Masking:
    rng = np.random.default_rng(5)
    data = {
        "BLOCK": [f"b{i % 60:03d}" for i in range(records)],
        "A": np.round(rng.normal(50, 9, records), 1),
        "B": np.round(rng.normal(50, 9, records), 1),
    }
    columns = [
        mw.Column("BLOCK", "category", frozenset({"block"})),
        mw.Column("A", "continuous", frozenset({"key"}), unit=0.1),
        mw.Column("B", "continuous", frozenset({"key"}), unit=0.1),
    ]
    table = mw.Table.from_frame(pa.table(data), mw.Schema(tuple(columns)))
    return mw.apply(mw.CorrelatedNoise(("A", "B"), sd_ratio=0.5), table, key=mw.Key.from_seed(4))


def test_an_intruder_judges_whole_blocks():
    masking = masking_of(1_200)
    whole = mw.attack(mw.BayesIntruder(), masking)
    risk = mw.attack(mw.BayesIntruder(targets=ClusterSample(290, ("BLOCK",))), masking)
    assert risk.targets == 300  # fifteen blocks of twenty
    low, high = risk.interval
    assert low < whole.rate < high
    assert risk.effective <= 300
    assert risk.to_dict()["effective_targets"] == risk.effective
    every = mw.attack(mw.BayesIntruder(targets=ClusterSample(5_000, ("BLOCK",))), masking)
    assert every.interval is None
    assert every.rate == whole.rate


def test_a_choice_of_blocks_is_read_back():
    choice = ClusterSample(100, ("A", "B"))
    assert choice_from_dict(choice.to_dict()) == choice

"""Swapped releases: what swapped records carry is weighed in one pass where it has the law of any record."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

import maskwell as mw
from maskwell.attacks.bayes import posterior_odds
from maskwell.schema import Column, Schema
from maskwell.table import Table

KEY, BLOCK = frozenset({"key"}), frozenset({"block"})


@pytest.fixture(scope="module")
def swapped() -> mw.Masking:
    rng = np.random.default_rng(4)
    columns = {"x": rng.normal(50, 9, 240).round(1), "y": rng.normal(20, 5, 240).round(1)}
    columns["r"] = rng.choice(["n", "s", "w"], 240)
    columns["said"] = rng.choice(["yes", "no"], 240)
    schema = Schema(
        (
            Column("x", "continuous", KEY, unit=0.1),
            Column("y", "continuous", KEY, unit=0.1),
            Column("r", "category", BLOCK, categories=("n", "s", "w")),
            Column("said", "category", categories=("yes", "no")),
        )
    )
    noise = mw.IndependentNoise(("x", "y"), variance_ratio=0.1)
    masking = mw.apply(noise, Table.from_frame(pa.table(columns), schema), seed=1)
    return mw.swap(masking, mw.NearestRecord(), mw.tolerances.SwapShare(0.3))


def test_one_pass_gives_what_two_give(swapped: mw.Masking, monkeypatch: pytest.MonkeyPatch) -> None:
    def nothing_again(*_: object) -> None:
        raise AssertionError("the pairs were weighed twice")

    with monkeypatch.context() as once:
        once.setattr(posterior_odds, "log_moved", nothing_again)
        found = mw.attack(mw.BayesIntruder(), swapped)
    monkeypatch.setattr(posterior_odds, "_is_f_moved", lambda *_: False)
    twice = mw.attack(mw.BayesIntruder(), swapped)
    assert found.table["linked_id"].equals(twice.table["linked_id"])
    np.testing.assert_allclose(found.table["probability"], twice.table["probability"], rtol=1e-9)


def test_who_is_not_told_the_noise_does_not_look_at_the_truth(
    swapped: mw.Masking, monkeypatch: pytest.MonkeyPatch
) -> None:
    def truth(*_: object) -> None:
        raise AssertionError("he has no true records but his own")

    monkeypatch.setattr(posterior_odds, "log_moved", truth)
    plan = mw.BayesIntruder(prior=mw.attacks.Prior(), kernel="forward")
    risk = mw.attack(plan, swapped)
    probabilities = np.asarray(risk.table["probability"])
    assert np.isfinite(probabilities).all()
    assert risk.rate > 5 * risk.baseline

"""Trials that are kept come back to the bit, and only for the plan, data and key they were made of."""

from __future__ import annotations

import stat
from pathlib import Path

import numpy as np

import maskwell as mw
from maskwell.calibration import Search
from maskwell.calibration.calibrate import TrialDraws, weakest_noise
from maskwell.calibration.trial_store import FILE, FOLDER, KeptTrials
from maskwell.keys import Key
from maskwell.tolerances import MaxRate

KEY = Key(bytes(range(32)))


def table() -> mw.Table:
    import pyarrow as pa

    rng = np.random.default_rng(3)
    columns = tuple(mw.Column(name, "continuous", frozenset({"key"}), unit=0.1) for name in "AB")
    data = pa.table({name: rng.normal(0, 10, 300).round(1) for name in "AB"})
    return mw.Table.from_frame(data, mw.Schema(columns))


def search(kept: KeptTrials | None) -> tuple[object, int]:
    drawn: list[object] = []
    mask = mw.IndependentNoise(("A", "B"), variance_ratio=0.1)
    draws = TrialDraws(KEY, progress=drawn.append, kept=kept)
    few = Search(replicates=3, confirmations=4)
    found = weakest_noise(mask, table(), mw.NearestRecord(), MaxRate(0.2), few, draws)
    return found, len(drawn)


def test_a_search_that_finds_its_trials_kept_draws_nothing_and_ends_alike(
    tmp_path: Path, monkeypatch
) -> None:
    private = tmp_path / "private"
    first, trials = search(KeptTrials.read(private, "this"))
    file = private / FOLDER / FILE
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(private.stat().st_mode) == 0o700
    kept = KeptTrials.read(private, "this")
    monkeypatch.setattr("maskwell.calibration.trials.apply", None)  # nothing is drawn
    again, told = search(kept)
    assert kept.used == told == trials
    assert again.to_dict() == first.to_dict()
    assert again.mask == first.mask


def test_trials_of_another_plan_are_not_used(tmp_path: Path) -> None:
    search(KeptTrials.read(tmp_path, "this"))
    assert KeptTrials.read(tmp_path, "that").trials == {}
    (tmp_path / FOLDER / FILE).write_text("{cut off")
    assert KeptTrials.read(tmp_path, "this").trials == {}

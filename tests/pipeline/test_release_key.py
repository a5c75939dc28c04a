"""One key for the same records: noise is not drawn again until it passes, nor beside what has left."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import maskwell as mw
from maskwell.errors import BadInput, BadPlan
from maskwell.keys import Key
from maskwell.pipeline import release

from .homes import EXCHANGED, LIGHT, NOISE, bytes_of, folder, homes, plan_in, short_audit

__all__ = ["folder", "short_audit"]

pytestmark = pytest.mark.usefixtures("short_audit")


HEAVY = NOISE | {"r0": 0.25}  # passes whatever the key


def noise_of(outcome: Any) -> np.ndarray:
    masking = outcome.masking
    return np.asarray(masking.masked.floats("X") - masking.truth.floats("X"))


def test_a_refused_run_keeps_its_key_and_the_next_draws_the_same_noise(folder: Path) -> None:
    first = release(plan_in(folder, LIGHT), advise=False)
    kept = folder / "inside" / "refused"
    assert not first.passed
    assert not (folder / "out").exists()
    assert oct(kept.stat().st_mode)[-3:] == "700"
    assert {oct(path.stat().st_mode)[-3:] for path in kept.iterdir()} == {"600"}
    second = release(plan_in(folder, LIGHT), advise=False)
    assert np.array_equal(noise_of(first), noise_of(second))
    assert len(json.loads((kept / "attempts.json").read_text())) == 2
    assert any(
        "2 runs that were refused" in str(one) for one in release(plan_in(folder, LIGHT), advise=False).mind
    )


def test_more_noise_is_the_same_noise_made_larger_and_what_was_refused_goes_on_record(folder: Path) -> None:
    first = release(plan_in(folder, LIGHT), advise=False)
    second = release(plan_in(folder, HEAVY))
    assert second.passed
    assert np.corrcoef(noise_of(first), noise_of(second))[0, 1] > 0.99
    (half,) = [path for path in (folder / "inside").iterdir() if path.is_dir()]
    (record,) = json.loads((half / "attempts.json").read_text())
    assert record["reasons"] == list(first.reasons)
    assert not (folder / "inside" / "refused").exists()


def test_the_same_plan_again_is_the_same_file(folder: Path) -> None:
    assert release(plan_in(folder, HEAVY)).passed
    before = bytes_of(folder)
    again = release(plan_in(folder, HEAVY))
    assert bytes_of(folder) == before
    assert "drawn by the same key, it is the same file" in str(again.mind[0])


def test_another_plan_for_records_that_left_needs_the_earlier_release(folder: Path) -> None:
    release(plan_in(folder, HEAVY))
    other = NOISE | {"r0": 0.2}
    with pytest.raises(BadPlan, match="name its public folder as earlier"):
        release(plan_in(folder, other))
    beside = {"release": "out-2", "private": "inside"}
    with pytest.raises(BadPlan, match="name its public folder as earlier"):
        release(plan_in(folder, HEAVY, output=beside))
    assert release(plan_in(folder, other, output=beside | {"earlier": "out"})).passed
    assert release(plan_in(folder, other, output={"release": "out-3", "private": "elsewhere"})).passed


def test_changed_data_are_not_the_same_plan(folder: Path) -> None:
    release(plan_in(folder, HEAVY))
    mw.write(homes(399), folder / "homes.csv")
    with pytest.raises(BadPlan, match="a release of some of these records"):
        release(plan_in(folder, HEAVY))


def test_studies_and_given_keys_keep_nothing(folder: Path) -> None:
    release(plan_in(folder, LIGHT), seed=1, study=True, advise=False)
    release(plan_in(folder, LIGHT), key=Key(bytes(range(32))), advise=False)
    assert not (folder / "inside").exists()
    release(plan_in(folder, HEAVY), seed=1, study=True)
    assert not (folder / "inside").exists()
    assert (folder / "inside-study").exists()
    assert release(plan_in(folder, NOISE | {"r0": 0.2})).passed  # what a study wrote never left


def test_a_key_that_others_can_read_is_refused(folder: Path) -> None:
    release(plan_in(folder, LIGHT), advise=False)
    (folder / "inside" / "refused" / "key.hex").chmod(0o644)
    with pytest.raises(BadInput, match="open to others: chmod 600"):
        release(plan_in(folder, LIGHT), advise=False)


def test_swaps_protect_all_targets_though_a_sample_is_looked_for(folder: Path) -> None:
    informed = {
        "name": "informed",
        "attack": "NearestRecord",
        "distance": "posterior",
        "targets": {"sample": 60},
    }
    plan = plan_in(folder, NOISE | {"r0": 0.75}, intruders=[informed], swap=EXCHANGED)
    found = release(plan, seed=3, study=True)
    assert found.swapping is not None
    everybody = mw.attack(mw.NearestRecord(distance="posterior"), found.masking)
    assert found.before["informed"].rate > 0.2
    assert everybody.rate <= 0.15 + 1e-9


def test_what_nobody_tried_has_no_rate(folder: Path) -> None:
    informed = {"name": "informed", "attack": "NearestRecord", "distance": "posterior"}
    elsewhere = {"release": "out-2", "private": "inside-2"}
    found = release(plan_in(folder, intruders=[informed]), seed=1, study=True)
    assert found.card_risk["sealed"] is None
    assert "sealed or kept not tried" in repr(found)
    assert release(plan_in(folder, output=elsewhere), seed=1, study=True).card_risk["sealed"] is not None


def test_a_release_does_not_overwrite_the_one_it_is_nested_in(folder: Path) -> None:
    release(plan_in(folder, HEAVY), seed=1, study=True)
    before = bytes_of(folder)
    again = {"release": "out", "private": "inside", "earlier": "out"}
    with pytest.raises(BadPlan, match="would overwrite the earlier one"):
        release(plan_in(folder, HEAVY, output=again), seed=1, study=True)
    assert bytes_of(folder) == before


def test_a_given_key_and_another_judgement_are_refused_before_any_noise_is_drawn(folder: Path) -> None:
    key, stages = Key(bytes(range(32))), list[str]()
    assert release(plan_in(folder, HEAVY), key=key).passed
    assert release(plan_in(folder, HEAVY), key=key).passed  # the same plan is the same file
    other = plan_in(folder, HEAVY, audit={"limits": {"informed links": {"warn": 0.12, "fail": 0.2}}})
    with pytest.raises(BadPlan, match="this release by this key, judged by another plan"):
        release(other, key=key, progress=lambda stage, *_: stages.append(stage))
    assert set(stages) <= {"read"}
    elsewhere = {"release": "out-2", "private": "inside-2"}
    sections = {"audit": {"limits": {"informed links": {"warn": 0.12, "fail": 0.2}}}, "output": elsewhere}
    assert release(plan_in(folder, HEAVY, **sections), key=key).passed

"""The whole job on small tables: what passes is written, what does not is not, and nothing is drawn twice."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import maskwell as mw
from maskwell.errors import BadPlan
from maskwell.keys import Key
from maskwell.notes import Note, has_code
from maskwell.pipeline import Outcome, release
from maskwell.pipeline.candidates import Candidate
from maskwell.schema import Column, Schema
from maskwell.table import Table

from .homes import EXCHANGED, INTRUDERS, KEY, LIGHT, NOISE, bytes_of, folder, homes, plan_in, short_audit

__all__ = ["folder", "short_audit"]

pytestmark = pytest.mark.usefixtures("short_audit")


@pytest.fixture(scope="module")
def passed(tmp_path_factory: pytest.TempPathFactory) -> tuple[Outcome, Path, list[tuple[str, int, int]]]:
    """A plan that passes, run once."""
    place = tmp_path_factory.mktemp("passed")
    mw.write(homes(), place / "homes.csv")
    (place / "homes.toml").write_text(homes().schema.to_toml())
    told: list[tuple[str, int, int]] = []
    models = [{"formula": "Y ~ X", "at_most_wider": 9.0}]
    outcome = release(
        plan_in(place, models=models),
        key=KEY,
        progress=lambda *step: told.append(step),
        reports=lambda found: ({"report.html": "for all"}, {"report.html": f"{len(found.reasons)} reasons"}),
    )
    return outcome, place, told


def test_what_passes_is_written_in_two_halves_with_its_reports(
    passed: tuple[Outcome, Path, list[tuple[str, int, int]]],
) -> None:
    outcome, place, _ = passed
    assert outcome.passed
    assert outcome.reasons == ()
    assert outcome.release == place / "out"
    masking = mw.Masking.read(release=place / "out", private=place / "inside")
    assert masking.release.table.to_arrow().equals(outcome.masking.release.table.to_arrow())
    assert (place / "out" / "report.html").read_text() == "for all"
    (half,) = [path for path in (place / "inside").iterdir() if path.is_dir()]
    assert (half / "report.html").read_text() == "0 reasons"
    figures = json.loads((half / "outcome.json").read_text())
    assert figures == json.loads(json.dumps(outcome.to_dict(), allow_nan=False))
    assert figures["after"]["intruders"]["informed"]["rate"] == outcome.after["informed"].rate
    assert not (place / "out" / "outcome.json").exists()


def test_every_stage_is_told_from_its_beginning_to_its_end(
    passed: tuple[Outcome, Path, list[tuple[str, int, int]]],
) -> None:
    outcome, _, told = passed
    names = list(dict.fromkeys(name for name, _, _ in told))
    assert names == ["read", "check", "fingerprint floor", "mask", "attack", "compare", "audit", "write"]
    assert list(outcome.seconds) == names
    for name in names:
        steps = [(done, total) for stage, done, total in told if stage == name]
        assert steps[0][0] == 0
        assert steps[-1][0] == steps[-1][1] > 0
    assert ("attack", 1, 2) in told


def test_the_verdict_is_that_of_the_verbs_by_hand(
    passed: tuple[Outcome, Path, list[tuple[str, int, int]]],
) -> None:
    outcome, place, _ = passed
    table = mw.read(place / "homes.csv", place / "homes.toml")
    masking = mw.apply(mw.CorrelatedNoise(("X", "Y"), r0=0.5), table, key=KEY)
    risk = mw.attack(mw.NearestRecord(distance="posterior"), masking)
    assert outcome.after["informed"].expected_correct == risk.expected_correct
    assert outcome.attempts[0].rate == max(one.rate for one in outcome.after.values())
    assert [one.how for one in outcome.attempts] == ["given"]
    assert outcome.card_risk == {
        "open": outcome.after.largest.rate,
        "sealed": outcome.after["nearest"].rate,
        "kept": outcome.after["nearest"].rate,
    }
    assert "passed" in repr(outcome)
    assert max(len(line) for line in outcome.lines() if str(place) not in line) <= 100


def test_the_same_plan_and_key_give_the_same_bytes(folder: Path) -> None:
    plan = plan_in(folder)
    release(plan, key=KEY)
    first = bytes_of(folder)
    again = release(plan, key=KEY)
    assert bytes_of(folder) == first
    assert again.mind[0] == Note("pipeline.unrelated_releases", {"count": 1})
    release(plan, key=Key(bytes(32)))
    assert bytes_of(folder)["out/manifest.json"] != first["out/manifest.json"]


def test_a_reason_to_release_all_the_same_goes_on_record(folder: Path) -> None:
    with pytest.raises(BadPlan, match="despite needs a reason"):
        release(plan_in(folder, LIGHT), key=KEY, despite=" ")
    outcome = release(plan_in(folder, LIGHT), key=KEY, despite="the board has seen it")
    assert not outcome.passed
    assert outcome.despite == "the board has seen it"
    (half,) = [path for path in (folder / "inside").iterdir() if path.is_dir()]
    assert json.loads((half / "outcome.json").read_text())["despite"] == "the board has seen it"
    public = b"".join(path.read_bytes() for path in (folder / "out").iterdir())
    assert b"the board" not in public


def test_a_calibrated_scale_is_raised_with_the_same_draws(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A calibration that finds too little stands for one that was unlucky."""
    from maskwell.pipeline import run

    monkeypatch.setattr(run, "_calibrated_setting", lambda case, floor: (case, None, []))
    lucky = plan_in(folder, NOISE | {"r0": 0.8}, calibrate={})
    outcome = release(lucky, key=KEY)
    hows = [one.how for one in outcome.attempts]
    factors = [one.factor for one in outcome.attempts]
    assert hows == ["calibrated", *["raised"] * (len(hows) - 1)]
    assert 1 < len(hows) <= 12
    assert factors[:3] == pytest.approx([1.0, 1.05, 1.155][: len(factors)])
    assert [one.met for one in outcome.attempts] == [*[False] * (len(hows) - 1), True]
    first = mw.apply(mw.CorrelatedNoise(("X", "Y"), r0=0.8), outcome.masking.truth, key=KEY, exact=True)
    noises = [m.masked.floats("X") - m.truth.floats("X") for m in (first, outcome.masking)]
    assert np.corrcoef(*noises)[0, 1] > 0.999


def test_swaps_are_made_until_the_tolerance_holds_for_all(folder: Path) -> None:
    exchanged = {"intruder": "informed"} | EXCHANGED
    outcome = release(plan_in(folder, LIGHT, swap=exchanged), key=KEY, despite="for its figures")
    assert outcome.swapping is not None
    assert outcome.before.largest.rate > 0.15 >= outcome.after.largest.rate
    assert outcome.attempts[-1].how == "swapped"
    assert outcome.attempts[-1].swaps == outcome.swapping.swaps == outcome.masking.swapping.swaps
    assert outcome.swapping.his_values.rate > 0.15
    assert outcome.to_dict()["after"]["intruders"]["informed"]["exempt"] == EXCHANGED["exempt_values"]
    assert not any("rate of correct links" in reason for reason in outcome.reasons)


@pytest.mark.parametrize("stage", ["mask", "attack", "audit", "write"])
def test_an_interrupt_leaves_nothing_behind(folder: Path, stage: str) -> None:
    before = bytes_of(folder)

    def interrupt(name: str, done: int, total: int) -> None:
        if name == stage and not done:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        release(plan_in(folder), key=KEY, progress=interrupt)
    assert bytes_of(folder) == before
    assert not (folder / "out").exists()
    assert not (folder / "inside").exists()


def test_a_release_is_nested_in_an_earlier_one(folder: Path) -> None:
    first = release(plan_in(folder, LIGHT), key=KEY, despite="to have an earlier one")
    where = {"release": "second", "private": "inside", "earlier": "out"}
    second = release(plan_in(folder, output=where))
    assert second.masking.number == 2
    assert second.masking.key == first.masking.key
    noises = [one.masking.masked.floats("X") - homes().floats("X") for one in (first, second)]
    assert np.corrcoef(*noises)[0, 1] > 0.2


def test_a_bound_on_a_model_is_a_reason(folder: Path) -> None:
    models = [{"formula": "Y ~ X", "at_most_wider": 0.01}]
    outcome = release(plan_in(folder, models=models), key=KEY, advise=False)
    assert outcome.reasons[0].startswith("Y ~ X: the interval of X widens by")


def test_the_floor_speaks_of_columns_to_leave_out(folder: Path) -> None:
    """A floor above the tolerance is refused before any noise is drawn; leaving the telling column out helps."""
    table = mw.read(folder / "homes.csv", folder / "homes.toml").to_arrow()
    numbered = table.append_column("AREA", pa.array([f"a{i % 150}" for i in range(len(table))]))
    areas = tuple(sorted(f"a{i}" for i in range(150)))
    schema = homes().schema
    schema = Schema((*schema.columns, Column("AREA", "category", categories=areas)), series="homes")
    mw.write(Table.from_frame(numbered, schema), folder / "homes.csv")
    (folder / "homes.toml").write_text(schema.to_toml())
    intruders = [*INTRUDERS, {"name": "prints", "attack": "Fingerprint"}]
    outcome = release(plan_in(folder, intruders=intruders), key=KEY, advise=False)
    assert outcome.floor.rate > 0.15
    assert outcome.masking is None
    assert list(outcome.seconds) == ["read", "check", "fingerprint floor"]
    assert "no noise hides" in outcome.reasons[0]
    remedy = next(one for one in outcome.advice if one.figures.get("columns") == "AREA")
    assert remedy.figures["floor"] <= 0.01
    assert not (folder / "inside").exists()
    figures = json.loads(json.dumps(outcome.to_dict(), allow_nan=False))
    assert (figures["verdict"], figures["masking"]) == ("refused", None)
    assert "REFUSED" in repr(outcome)
    written = release(plan_in(folder, intruders=intruders), key=KEY, despite="the board knows the areas")
    assert written.masking is not None
    dropped = Schema(tuple(replace(c, drop=c.name == "AREA") for c in schema.columns), series="homes")
    (folder / "homes.toml").write_text(dropped.to_toml())
    elsewhere = {"release": "out-2", "private": "inside-2"}
    assert release(plan_in(folder, intruders=intruders, output=elsewhere), key=KEY).floor.rate <= 0.01


def test_the_weakest_noise_is_calibrated_where_the_plan_asks_for_it(folder: Path) -> None:
    plan = plan_in(folder, LIGHT, calibrate={"replicates": 3, "confirmations": 5}, intruders=INTRUDERS[1:])
    outcome = release(plan, key=KEY)
    assert outcome.calibration is not None
    assert outcome.calibration.met
    assert outcome.attempts[0].how == "calibrated"
    if len(outcome.attempts) == 1:
        assert outcome.masking.mask == outcome.calibration.mask
    assert outcome.masking.mask.r0 < 0.9
    assert outcome.after["informed"].rate <= 0.15


def test_a_card_is_sealed_as_the_plan_says(folder: Path) -> None:
    pytest.importorskip("pyrage")
    plan = plan_in(folder, card={"leaves": "sealed"})
    with pytest.raises(BadPlan, match="name recipients in \\[card\\], or give a passphrase"):
        release(plan, key=KEY)
    assert release(plan, key=KEY, passphrase="correct horse battery").passed
    names = {path.name for path in (folder / "out").iterdir()}
    assert "card.json.age" in names
    assert "card.json" not in names


def test_a_bound_on_intervals_is_judged_with_swaps_and_where_nothing_can_be_forecast(folder: Path) -> None:
    models = [{"formula": "Y ~ X", "at_most_wider": 9.0}]
    swapped = release(
        plan_in(folder, NOISE | {"r0": 0.75}, models=models, swap=EXCHANGED),
        seed=3,
        study=True,
        advise=False,
    )
    assert swapped.swapping is not None
    assert swapped.swapping.swaps > 0
    assert not any("cannot be forecast" in reason for reason in swapped.reasons)
    logs = {"mask": "IndependentNoise", "columns": ["X", "Y"], "variance_ratio": 2.0, "transform": "log"}
    models = [{"formula": "log(Y) ~ log(X)", "at_most_wider": 0.01}]
    elsewhere = {"release": "out-2", "private": "inside-2"}
    found = release(plan_in(folder, logs, models=models, output=elsewhere), seed=3, study=True, advise=False)
    assert any("the interval of log(X) widens by" in reason for reason in found.reasons)


def test_advice_names_the_columns_with_long_tails_and_the_intruder_to_hold_it_against(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from maskwell.pipeline import advice

    rng = np.random.default_rng(1)
    columns = {"X": np.exp(rng.normal(0, 1.3, 600)).round(2), "Y": rng.normal(50, 9, 600).round(1)}
    schema = Schema(tuple(Column(name, "continuous", frozenset({"key"}), unit=0.01) for name in columns))
    mw.write(Table.from_frame(pa.table(columns), schema), tmp_path / "homes.csv")
    (tmp_path / "homes.toml").write_text(schema.to_toml())
    noise = {"mask": "IndependentNoise", "columns": ["X", "Y"], "variance_ratio": 0.03}
    options: list[str] = []  # changes that would be rehearsed, in words

    def noted(case: Any, changes: list[Candidate], *_: Any) -> list[Any]:
        options.extend(word for change in changes for word in change.said)
        return []

    monkeypatch.setattr(advice, "every_tried", noted)
    release(plan_in(tmp_path, noise), seed=1, study=True)
    assert any('noise on the log scale for X (transform = "log")' in one for one in options)
    light, against = noise | {"variance_ratio": 0.008}, {"max_rate": 0.9, "intruders": ["nearest"]}
    found = release(plan_in(tmp_path, light, tolerance=against), seed=1, study=True)
    assert any(
        one.change.startswith("informed links: hold the tolerance against 'informed' too")
        for one in found.advice
    )


def test_what_was_calibrated_is_kept_and_used_by_the_next_run(folder: Path) -> None:
    from maskwell.calibration.trial_store import FOLDER

    wanted = {"replicates": 3, "confirmations": 5}
    plan = plan_in(folder, LIGHT, calibrate=wanted, intruders=INTRUDERS[1:], tolerance={"max_rate": 0.3})
    another = plan_in(folder, LIGHT, calibrate=wanted, intruders=INTRUDERS[1:], tolerance={"max_rate": 0.4})

    def stopped(name: str, done: int, total: int) -> None:
        if name == "mask":
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        release(plan, progress=stopped)
    assert (folder / "inside" / FOLDER / "trials.json").exists()
    outcome = release(plan, advise=False)
    assert has_code(outcome.notes, "pipeline.trials_kept")
    assert outcome.mind[0] == Note("pipeline.key_kept")
    assert not has_code(release(another, key=KEY, advise=False).notes, "pipeline.trials_kept")


def test_a_swap_that_would_only_rename_rows_is_refused_before_any_noise_is_drawn(folder: Path) -> None:
    schema = homes().schema
    dropped = schema.changed({"SAID": replace(schema["SAID"], drop=True)})
    (folder / "homes.toml").write_text(dropped.to_toml())
    stages: list[str] = []
    with pytest.raises(BadPlan, match=r"\[swap\]: nothing else leaves in a row .* only renames rows"):
        release(plan_in(folder, LIGHT, swap={}), key=KEY, progress=lambda stage, *_: stages.append(stage))
    assert "mask" not in stages


def test_swaps_that_cannot_help_are_a_reason_in_the_verdict(folder: Path) -> None:
    outcome = release(plan_in(folder, LIGHT, swap={}), key=KEY, advise=False)
    assert not outcome.passed
    assert outcome.swapping is None
    assert any(reason.startswith("no exchange helps: by X, Y alone") for reason in outcome.reasons)


def with_weight(folder: Path, *roles: str) -> None:
    """Write the homes with a weight of two values, or a column of such with other roles."""
    table = homes()
    column = Column("WEIGHT", "continuous", frozenset(roles))
    weights = pa.array(np.where(np.arange(len(table)) % 2, 1.5, 0.5))
    schema = replace(table.schema, columns=(*table.schema.columns, column))
    wider = replace(table, schema=schema, data=table.data.append_column("WEIGHT", weights))
    mw.write(wider, folder / "homes.csv")
    (folder / "homes.toml").write_text(schema.to_toml())


@pytest.mark.parametrize("roles", [("weight",), ()])
def test_intruders_rely_on_all_that_leaves_in_clear(folder: Path, roles: tuple[str, ...]) -> None:
    plain = release(plan_in(folder, NOISE), key=KEY, advise=False)
    with_weight(folder, *roles)
    found = release(plan_in(folder, NOISE), key=KEY, advise=False)
    for name, risk in found.after.items():
        assert risk.attack.match_blocks == ("REGION", "KIND", "WEIGHT")  # SAID is sensitive: nobody has it
        assert risk.rate > plain.after[name].rate
    assert not any("WEIGHT" in reason for reason in found.not_judged)
    assert any(str(note).endswith("because sensitive: SAID") for note in found.notes)


def test_fewer_blocks_than_leave_in_clear_are_not_judged_without_a_reason(folder: Path) -> None:
    with_weight(folder, "weight")
    few, noise = {"match_blocks": ["REGION", "KIND"]}, NOISE | {"r0": 0.25}
    found = release(plan_in(folder, noise, targets=few), key=KEY, advise=False)
    assert not found.passed
    assert any(
        reason.startswith("WEIGHT leaves in clear, and nearest, informed") for reason in found.not_judged
    )
    why = {"WEIGHT": "it is drawn anew for the release"}
    again = release(plan_in(folder, noise, targets=few | {"not_known": why}), key=KEY, advise=False)
    assert not again.not_judged
    assert again.to_dict()["not_known"] == why
    assert "taken as not known: WEIGHT" in repr(again)
    places = {"release": "out again", "private": "inside again"}
    same = release(plan_in(folder, noise, targets={"not_known": why}, output=places), key=KEY, advise=False)
    assert same.after["nearest"].rate == again.after["nearest"].rate


def test_a_reason_why_nobody_knows_a_column_is_asked_for(folder: Path) -> None:
    with pytest.raises(BadPlan, match="not_known: 'SAID' needs a reason"):
        plan_in(folder, targets={"not_known": {"SAID": " "}})
    with pytest.raises(BadPlan, match="among match_blocks and under not_known"):
        plan_in(folder, targets={"match_blocks": ["KIND"], "not_known": {"KIND": "why"}})
    with pytest.raises(BadPlan, match="not_known must be a table of reasons"):
        plan_in(folder, targets={"not_known": ["KIND"]})
    with pytest.raises(BadPlan, match=r"\[targets\] not_known: .*'KIN'"):
        release(plan_in(folder, targets={"not_known": {"KIN": "why"}}), key=KEY, advise=False)


def test_categories_alone_are_attacked_where_no_column_is_a_key(folder: Path) -> None:
    """Who measures distances has nothing to compare; all others compare what is masked."""
    columns = homes().schema
    roles = {name: replace(columns[name], roles=frozenset()) for name in ("REGION", "KIND")}
    left_out = {name: replace(columns[name], drop=True) for name in ("X", "Y", "SAID")}
    (folder / "homes.toml").write_text(columns.changed(roles | left_out).to_toml())
    outcome = release(
        plan_in(folder, {"mask": "Pram", "columns": ["REGION", "KIND"], "stay": 0.7}, intruders=[])
    )
    assert outcome.passed
    assert "nearest record" not in outcome.after
    assert outcome.after["knows the law"].fields == ("REGION", "KIND")

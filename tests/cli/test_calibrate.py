"""`maskwell calibrate` and `maskwell fingerprint` on files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import maskwell as mw

FEW = ("--replicates", 3, "--confirmations", 4, "--seed", 1, "--ignore-floor")
WHERE = ("--columns", "INCOME,TAX", "--fields", "INCOME,TAX", "--match-blocks", "")


@pytest.fixture
def folder(tmp_path: Path, people: Any, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the people, their schema and a plan."""
    monkeypatch.chdir(tmp_path)
    mw.write(people, "people.csv")
    Path("people.toml").write_text(people.schema.to_toml(), encoding="utf-8")
    Path("plan.toml").write_text(
        '[input]\nfile = "people.csv"\nschema = "people.toml"\n\n'
        '[[masks]]\nmask = "IndependentNoise"\ncolumns = ["INCOME", "TAX"]\nvariance_ratio = 0.1\n',
        encoding="utf-8",
    )
    return tmp_path


def calibrated(run: Any, *options: Any) -> Any:
    return run("calibrate", "people.csv", "--schema", "people.toml", *WHERE, *FEW, *options)


def test_a_scale_is_found_and_told(run: Any, folder: Path) -> None:
    ran = calibrated(run, "--max-rate", 0.3, "--picture", "trace.png")
    assert ran.code == 0
    assert ran.out.startswith("Calibration met: CorrelatedNoise with sd_ratio=")
    assert Path("trace.png").stat().st_size > 5_000


def test_a_plan_is_calibrated_without_a_section_for_its_output(run: Any, folder: Path) -> None:
    ran = run(
        "calibrate",
        "plan.toml",
        "--fields",
        "INCOME,TAX",
        "--match-blocks",
        "",
        *FEW,
        "--prob-h",
        "3,0.6",
        "--json",
    )
    said = json.loads(ran.out)
    assert (ran.code, said["met"]) == (0, True)
    assert said["tolerance"] == {"prob_h": {"below": 3, "at_most": 0.6}}
    assert said["mask"]["mask"] == "IndependentNoise"
    assert "person 0" not in ran.out


def test_the_same_seed_gives_the_same_answer(run: Any, folder: Path) -> None:
    options = ("--max-rate", 0.3, "--intruder", "matcher", "--within", 0.2)
    assert calibrated(run, *options).out == calibrated(run, *options).out


def test_what_no_noise_meets_exits_with_one(run: Any, folder: Path) -> None:
    ran = calibrated(run, "--expected-h", 200)
    assert ran.code == 1
    assert ran.out.startswith("Calibration NOT met")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--max-rate", 0.1, "--max-ratio", 2), "exactly one of"),
        (("--prob-h", "3"), "such as 3,0.1"),
        (("--prob-h", "3,2"), "prob_h takes a share"),
        (("--intruder", "nobody"), "--intruder is one of"),
        (("--replicates", 0), "replicates"),
        (("--distance", "noise", "--intruder", "law"), "--distance is that of the nearest record"),
    ],
)
def test_wrong_options_are_refused_in_a_sentence(
    run: Any, folder: Path, options: tuple[Any, ...], said: str
) -> None:
    ran = calibrated(run, *options)
    assert ran.code == 2
    assert said in ran.err
    assert "Traceback" not in ran.err


def test_a_tolerance_below_the_floor_is_refused_with_what_to_do(run: Any, folder: Path) -> None:
    ran = run("calibrate", "people.csv", "--schema", "people.toml", *WHERE, "--max-rate", 0.01)
    assert ran.code == 2
    assert "fingerprint" in ran.err
    assert "--ignore-floor" in ran.err


def test_a_plan_says_it_all(run: Any, folder: Path) -> None:
    ran = run("calibrate", "plan.toml", "--columns", "INCOME")
    assert ran.code == 2
    assert "a plan says it all" in ran.err


def test_fingerprint_of_a_file(run: Any, folder: Path, people: Any) -> None:
    ran = run("fingerprint", "people.csv", "--schema", "people.toml", "--columns", "REGION,SEX,EDU")
    assert ran.code == 0
    risk = mw.attack(mw.Fingerprint(columns=("REGION", "SEX", "EDU")), people)
    assert ran.out.splitlines()[0] == repr(risk).splitlines()[0]
    said = json.loads(run("fingerprint", "people.csv", "--schema", "people.toml", "--json").out)
    assert 0 < said["rate"] <= 1
    assert "person 0" not in json.dumps(said)

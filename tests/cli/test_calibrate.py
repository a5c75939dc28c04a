"""`maskwell calibrate` and `maskwell fingerprint` on files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import maskwell as mw

AMOUNTS = '[[masks]]\nmask = "CorrelatedNoise"\ncolumns = ["INCOME", "TAX"]\nsd_ratio = 0.3\n'
TARGETS = '[targets]\nfields = ["INCOME", "TAX"]\nmatch_blocks = []\n'
FEW = "[calibrate]\nreplicates = 3\nconfirmations = 4\n"


@pytest.fixture
def folder(tmp_path: Path, people: Any, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the people, their schema and a plan."""
    monkeypatch.chdir(tmp_path)
    mw.write(people, "people.csv")
    Path("people.toml").write_text(people.schema.to_toml(), encoding="utf-8")
    return tmp_path


def calibrated(run: Any, sections: str, *options: Any, masks: str = AMOUNTS) -> Any:
    """Run the command on a plan with these sections."""
    source = '[input]\nfile = "people.csv"\nschema = "people.toml"\n'
    Path("plan.toml").write_text(f"{source}{masks}{TARGETS}{FEW}{sections}", encoding="utf-8")
    return run("calibrate", "plan.toml", "--seed", 1, "--ignore-floor", *options)


def test_a_scale_is_found_and_told(run: Any, folder: Path) -> None:
    ran = calibrated(run, "[tolerance]\nmax_rate = 0.3\n", "--picture", "trace.png")
    assert ran.code == 0
    assert ran.out.startswith("Calibration met: CorrelatedNoise with sd_ratio=")
    assert Path("trace.png").stat().st_size > 5_000


def test_a_plan_says_mask_tolerance_and_draws(run: Any, folder: Path) -> None:
    independent = '[[masks]]\nmask = "IndependentNoise"\ncolumns = ["INCOME", "TAX"]\nvariance_ratio = 0.1\n'
    h = "[tolerance]\nprob_h = { below = 3, at_most = 0.6 }\n"
    ran = calibrated(run, h, "--json", masks=independent)
    said = json.loads(ran.out)
    assert (ran.code, said["met"]) == (0, True)
    assert said["tolerance"] == {"prob_h": {"below": 3, "at_most": 0.6}}
    assert said["mask"]["mask"] == "IndependentNoise"
    assert (said["trace"][0]["replicates"], said["confirmation"]["replicates"]) == (3, 4)
    assert list(said["trace"][0]["intruders"]) == ["nearest record", "nearest, informed"]
    assert "person 0" not in ran.out


def test_the_same_seed_gives_the_same_answer(run: Any, folder: Path) -> None:
    matcher = (
        '[tolerance]\nmax_rate = 0.3\n[[intruders]]\nname = "he"\nattack = "Linkage"\n'
        'rule = { rule = "Relative", ratio = 0.2 }\n'
    )
    first = calibrated(run, matcher, "--json")
    assert first.out == calibrated(run, matcher, "--json").out
    assert list(json.loads(first.out)["trace"][0]["intruders"]) == ["he"]


def test_what_no_noise_meets_exits_with_one(run: Any, folder: Path) -> None:
    ran = calibrated(run, "[tolerance]\nexpected_h = 200\n")
    assert ran.code == 1
    assert ran.out.startswith("Calibration NOT met")


def test_models_of_a_plan_are_bounds_where_they_say_how_wide(run: Any, folder: Path) -> None:
    models = (
        '[[models]]\nformula = "INCOME ~ TAX"\nat_most_wider = 5.0\n[[models]]\nformula = "TAX ~ INCOME"\n'
    )
    said = json.loads(calibrated(run, f"[tolerance]\nmax_rate = 0.5\n{models}", "--json").out)
    assert [one["formula"] for one in said["widening"]] == ["INCOME ~ TAX"]


def test_a_whole_plan_of_a_release_is_calibrated(run: Any, folder: Path) -> None:
    output = '[output]\nrelease = "out"\nprivate = "inside"\n[report]\ntitle = "People"\n[tolerance]\nmax_rate = 0.5\n'
    assert calibrated(run, output).code == 0
    assert not Path("out").exists()


def test_few_options_are_enough_for_a_quick_try(run: Any, folder: Path) -> None:
    words = (
        "people.csv",
        "--schema",
        "people.toml",
        "--columns",
        "INCOME,TAX,AGE",
        "--seed",
        1,
        "--ignore-floor",
    )
    model = ("--model", "TAX ~ INCOME", "--at-most-wider", 100)
    ran = run(
        "calibrate", *words, "--max-rate", 1, "--outlying", "--intruder", "nearest record", *model, "--json"
    )
    said = json.loads(ran.out)
    assert (ran.code, said["over"], said["tolerance"]) == (0, "outlying", {"max_rate": 1.0})
    assert list(said["trace"][0]["intruders"]) == ["nearest record"]
    assert said["widening"][0]["at_most"] == 100


@pytest.mark.parametrize(
    ("sections", "said"),
    [
        ("[tolerance]\nmax_rate = 0.1\nmax_ratio = 2\n", "give one of max_rate, max_ratio, not several"),
        ("[tolerance]\nprob_h = 3\n", "prob_h must be a table such as { below = 3, at_most = 0.1 }"),
        ('[tolerance]\nintruders = ["nobody"]\n', "there is no intruder 'nobody'"),
        ("[tolerance]\nmax_rat = 0.1\n", "did you mean 'max_rate'?"),
        ("[budget]\nminutes = 0\n", "minutes is a number above 0"),
    ],
)
def test_wrong_plans_are_refused_in_a_sentence(run: Any, folder: Path, sections: str, said: str) -> None:
    ran = calibrated(run, sections)
    assert ran.code == 2
    assert said in ran.err
    assert "Traceback" not in ran.err


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--intruder", "nearest recrd"), "did you mean 'nearest record'?"),
        (("--at-most-wider", 0.3), "--at-most-wider is about a model"),
        (("--max-rate", 2), "max_rate takes a share between 0 and 1"),
        (("--picture", "trace.gif"), ".png, .svg or .pdf"),
    ],
)
def test_wrong_options_are_refused_in_a_sentence(
    run: Any, folder: Path, options: tuple[Any, ...], said: str
) -> None:
    ran = run("calibrate", "people.csv", "--schema", "people.toml", *options)
    assert ran.code == 2
    assert said in ran.err
    assert "Traceback" not in ran.err


def test_a_tolerance_below_the_floor_is_refused_with_what_to_do(run: Any, folder: Path) -> None:
    ran = run(
        "calibrate", "people.csv", "--schema", "people.toml", "--columns", "INCOME,TAX", "--max-rate", 0.01
    )
    assert ran.code == 2
    assert "fingerprint" in ran.err
    assert "--ignore-floor" in ran.err


def test_a_plan_says_it_all(run: Any, folder: Path) -> None:
    ran = calibrated(run, "", "--columns", "INCOME", "--outlying", "--intruder", "nearest record")
    assert ran.code == 2
    assert "a plan says it all: write --columns, --outlying, --intruder into the plan" in ran.err


def test_fingerprint_of_a_file(run: Any, folder: Path, people: Any) -> None:
    ran = run("fingerprint", "people.csv", "--schema", "people.toml", "--columns", "REGION,SEX,EDU")
    assert ran.code == 0
    risk = mw.attack(mw.Fingerprint(columns=("REGION", "SEX", "EDU")), people)
    assert ran.out.splitlines()[0] == repr(risk).splitlines()[0]
    said = json.loads(run("fingerprint", "people.csv", "--schema", "people.toml", "--json").out)
    assert 0 < said["rate"] <= 1
    assert "person 0" not in json.dumps(said)

"""`maskwell fit` on a written release; the sampler is played by draws made here."""

from __future__ import annotations

import json
import warnings
from dataclasses import replace
from pathlib import Path
from shutil import copytree
from typing import Any

import numpy as np
import pyarrow.csv as csv
import pyarrow.parquet as parquet
import pytest

import maskwell as mw
from maskwell.analysis.results.draws import Draws
from maskwell.analysis.results.posterior import Posterior
from maskwell.notes import Note

FORMULA = "TAX ~ INCOME + SEX"
NAMES = ("Intercept", "INCOME", "SEX[2]", "sigma")


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory, people: Any) -> Path:
    """A folder with a release of the people whose incomes carry noise."""
    where = tmp_path_factory.mktemp("written")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", mw.MaskwellWarning)
        masking = mw.apply(mw.IndependentNoise(("INCOME",), variance_ratio=0.2), people, seed=5)
    masking.write(release=where / "out", private=where / "inside", format="csv")
    return where


@pytest.fixture
def folder(written: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of that folder, in which the command runs."""
    here = Path(copytree(written, tmp_path / "here"))
    monkeypatch.chdir(here)
    return here


def options(text: str) -> str:
    """Write a file of options."""
    Path("fit.toml").write_text(text, encoding="utf-8")
    return "fit.toml"


class Stub:
    """Takes the place of fit: keeps how it was called and returns draws around zero."""

    def __init__(self) -> None:
        self.called: dict[str, Any] = {}
        self.apart = 0.0

    def __call__(self, formula: str, release: Any, **options: Any) -> Posterior:
        self.called = {"formula": formula, "release": release, **options}
        rng = np.random.default_rng(options.get("seed"))
        values = rng.standard_normal((options.get("chains", 4), options.get("draws") or 1000, 4))
        values[0] += self.apart
        kept = rng.standard_normal((options.get("chains", 4), 5, len(release), 1)).astype(np.float32)
        truths = {"truths": kept, "truth_names": ("INCOME",)} if options.get("keep_truths") else {}
        found = Posterior(
            Draws(NAMES, values, sampler="exact Gibbs", **truths),
            Draws(NAMES, 0.5 * values),
            formula,
            options["family"],
            len(release),
            ("INCOME",),
            (Note("analysis.true_counts", {"name": "INCOME"}),),
        )
        if found.warning:
            warnings.warn(str(found.warning), mw.MaskwellWarning, stacklevel=2)
        return found


@pytest.fixture
def stub(monkeypatch: pytest.MonkeyPatch) -> Stub:
    made = Stub()
    monkeypatch.setattr("maskwell.analysis.fit", made, raising=False)
    return made


def test_fit_prints_what_the_library_says(run: Any, folder: Path, stub: Stub) -> None:
    ran = run("fit", "out", FORMULA, "--seed", 3)
    expected = stub(FORMULA, mw.read_release("out"), family="gaussian", seed=3)
    assert (ran.code, ran.out, ran.err) == (0, f"{expected!r}\n", "")


def test_options_reach_the_library(run: Any, folder: Path, stub: Stub) -> None:
    more = options(
        'link = "probit"\nchains = 2\ndraws = 700\nwarmup = 9\nsampler = "gibbs"\ncores = 1\nweights = "WEIGHT"\n'
        'naive = false\ncovariate_groups = false\nmeasurement_error = { INCOME = 0.2, "A=B" = 3 }\n'
        "[priors]\nsd_scale = 2\ncoefficients = { INCOME = [0, 1.5] }\n"
    )
    words = ("--family", "binary", "--missing", "drop", "--seed", 4)
    assert run("fit", "out", FORMULA, *words, "--options", more).code == 0
    called = stub.called
    assert called.pop("release").table == mw.read_release("out").table
    assert called == {
        "formula": FORMULA,
        "family": "binary",
        "link": "probit",
        "chains": 2,
        "draws": 700,
        "warmup": 9,
        "sampler": "gibbs",
        "cores": 1,
        "seed": 4,
        "weights": "WEIGHT",
        "measurement_error": {"INCOME": 0.2, "A=B": 3.0},
        "missing": "drop",
        "naive": False,
        "covariate_groups": False,
        "priors": mw.analysis.Priors(sd_scale=2.0, coefficients={"INCOME": (0.0, 1.5)}),
    }


def test_what_is_not_given_is_left_to_the_library(run: Any, folder: Path, stub: Stub) -> None:
    assert run("fit", "out", FORMULA).code == 0
    assert set(stub.called) == {"formula", "release", "family"}


def test_json_has_figures_and_the_level(run: Any, folder: Path, stub: Stub) -> None:
    said = json.loads(run("fit", "out", FORMULA, "--json", "--options", options("level = 0.8")).out)
    assert (said["formula"], said["level"], said["converged"]) == (FORMULA, 0.8, True)
    assert set(said["parameters"]) == set(NAMES)
    assert "80% interval" in run("fit", "out", FORMULA, "--options", "fit.toml").out


def test_chains_that_do_not_agree_are_the_answer_no(run: Any, folder: Path, stub: Stub) -> None:
    stub.apart = 2.0
    ran = run("fit", "out", FORMULA)
    assert ran.code == 1
    assert "NOT CONVERGED: R-hat of" in ran.out
    assert ran.err == ""  # said once, where it is read
    as_json = run("fit", "out", FORMULA, "--json")
    assert as_json.code == 1
    warning = json.loads(as_json.out)["warning"]
    assert (warning["code"], warning["severity"]) == ("analysis.disagreement", "failure")
    assert warning["text"].startswith("the chains have not converged: R-hat of")


def test_picture_draws_and_truths_are_written(run: Any, folder: Path, stub: Stub) -> None:
    files = ("--picture", "fit.png", "--save", "draws.parquet")
    more = options('draws = 500\ntruths = "truths.csv"\n')
    ran = run("fit", "out", FORMULA, "--options", more, *files)
    assert ran.code == 0
    assert ran.err.split() == ["drawn:", "fit.png", "written:", "draws.parquet", "written:", "truths.csv"]
    assert Path("fit.png").stat().st_size > 10_000
    draws = parquet.read_table("draws.parquet")
    assert (draws.num_rows, draws.column_names) == (2000, ["chain", "draw", *NAMES])
    assert draws["chain"].to_pylist()[499:501] == [1, 2]
    truths = csv.read_csv("truths.csv")
    assert truths.num_rows == len(mw.read_release("out"))
    assert truths.column_names[-4:] == ["INCOME mean", "INCOME sd", "INCOME low", "INCOME high"]


def test_truths_are_those_of_the_fitted_records(run: Any, folder: Path) -> None:
    more = options('draws = 50\nchains = 1\nmissing = "drop"\ntruths = "truths.csv"\n')
    ran = run("fit", "out", FORMULA, "--options", more, "--seed", 1, "--json")
    fitted = json.loads(ran.out)["records"]
    assert fitted < len(mw.read_release("out"))
    assert csv.read_csv("truths.csv").num_rows == fitted


def test_a_data_file_needs_its_card(run: Any, folder: Path, stub: Stub) -> None:
    files = ("--card", "out/card.json", "--schema", "out/schema.toml")
    ran = run("fit", "out/data.csv", FORMULA, *files)
    assert (ran.code, ran.err) == (0, "")
    assert stub.called["release"].card == mw.read_release("out").card
    assert stub.called["release"].table == mw.read_release("out").table
    assert "name its noise card too (--card" in run("fit", "out/data.csv", FORMULA).err


def test_a_card_of_another_file_is_refused(run: Any, folder: Path, stub: Stub) -> None:
    text = Path("out/data.csv").read_text()
    Path("copy.csv").write_text(text + "\n")
    ran = run("fit", "copy.csv", FORMULA, "--card", "out/card.json", "--schema", "out/schema.toml")
    assert (ran.code, stub.called) == (2, {})
    assert ran.err.startswith("error: the card was written for another file than 'copy.csv'")


def test_a_card_that_names_no_file_is_taken(run: Any, folder: Path, stub: Stub) -> None:
    card = replace(mw.read_release("out").card, data_sha256="")
    Path("card.json").write_text(card.to_json())
    ran = run("fit", "out/data.csv", FORMULA, "--card", "card.json", "--schema", "out/schema.toml")
    assert ran.code == 0


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("nowhere", FORMULA, "--card", "out/card.json"), "nowhere"),
        (("out", FORMULA, "--schema", "out/schema.toml"), "a release has its schema"),
        (("inside", FORMULA), "error: "),
        ((FORMULA, "out"), "the release comes first, then the formula"),
        (("out", FORMULA, "--check", "magic"), "--check is one of moment, calibration, simex"),
        (("out", FORMULA, "--picture", "fit.gif"), ".png, .svg or .pdf"),
        (("out", FORMULA, "--save", "draws.nc"), "must end in .csv or .parquet"),
        (("out", FORMULA, "--save", "out/../there.csv"), "already there"),
        (("out", FORMULA, "--options", "none.toml"), "the options 'none.toml' cannot be read"),
        (("out", FORMULA, "--family", "magic"), "family 'magic' is not one of gaussian"),
        (("out",), "FORMULA"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_bad_input_is_refused_before_any_work(
    run: Any, folder: Path, stub: Stub, words: tuple[str, ...], said: str
) -> None:
    Path("there.csv").write_text("mine")
    ran = run("fit", *words)
    assert ran.code == 2
    assert said in ran.err
    assert stub.called == {}
    assert Path("there.csv").read_text() == "mine"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("level = 95.0", "level lies between 0 and 1, such as 0.95, and is not 95"),
        ('truths = "none/truths.csv"', "does not exist"),
        ('truths = "truths.nc"', "must end in .csv or .parquet"),
        ("measurement_error = 0.2", "measurement_error must be a table such as { x1 = 0.04 }"),
        (
            "measurement_error = { INCOME = 0 }",
            "the measurement error of 'INCOME' must be a variance above 0",
        ),
        ("chains = 0", "chains must be a whole number of at least 1"),
        ("chans = 2", "unknown key 'chans' (did you mean 'chains'?)"),
        ('draws = "many"', "draws must be a whole number"),
        ("seed = 2", "seed stands in 'fit.toml' too: say it once"),
        ("priors = 3", "priors must be a section"),
        ("[priors]\nsd_scal = 3", "did you mean 'sd_scale'?"),
        ("[priors]\ncoefficients = { INCOME = 3 }", "such as { x1 = [0, 1] }"),
        ("[priors]\nsd_scale = 0", "the prior's sd_scale must be a finite number above 0"),
        ("chains", "is not valid TOML"),
    ],
)
def test_a_bad_options_file_is_refused_before_any_work(
    run: Any, folder: Path, stub: Stub, text: str, said: str
) -> None:
    ran = run("fit", "out", FORMULA, "--seed", 1, "--options", options(text))
    assert (ran.code, stub.called) == (2, {})
    assert said in ran.err


def test_all_problems_of_an_options_file_are_listed(run: Any, folder: Path, stub: Stub) -> None:
    text = 'chans = 2\ndraws = "x"\n[priors]\nsd_scal = 3\n'
    assert "error: 3 problems:" in run("fit", "out", FORMULA, "--options", options(text)).err


def test_what_the_library_refuses_is_said(run: Any, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any, **__: Any) -> None:
        raise mw.errors.BadPlan("there is no column 'INCOM' (did you mean 'INCOME'?)")

    monkeypatch.setattr("maskwell.analysis.fit", refuse, raising=False)
    ran = run("fit", "out", FORMULA)
    assert (ran.code, ran.err) == (2, "error: there is no column 'INCOM' (did you mean 'INCOME'?)\n")


class Corrected:
    """Takes the place of a correction: keeps how it was called."""

    def __init__(self, formula: str, release: Any, **options: Any) -> None:
        self.said = f"{formula}: {options}"

    def __repr__(self) -> str:
        return self.said

    def to_dict(self) -> dict[str, Any]:
        return {"estimates": [1.0, float("nan")]}


@pytest.mark.parametrize(
    ("words", "options"),
    [
        (("simex", "--family", "binary"), {"family": "logit"}),
        (("simex", "--family", "Logistic"), {"family": "logit"}),
        (("simex", "--seed", "3"), {"family": "gaussian", "seed": 3}),
        (("calibration", "--family", "probit"), {"family": "probit"}),
        (("moment", "--seed", "3", "--options", "weights.toml"), {"weights": "WEIGHT"}),
    ],
    ids=lambda value: " ".join(value),
)
def test_a_cheap_correction_stands_below(
    run: Any,
    folder: Path,
    stub: Stub,
    monkeypatch: pytest.MonkeyPatch,
    words: tuple[str, ...],
    options: dict[str, Any],
) -> None:
    from maskwell.cli.fit_command import CHECKS

    options_file = Path("weights.toml")
    options_file.write_text('weights = "WEIGHT"\n', encoding="utf-8")
    monkeypatch.setattr(f"maskwell.analysis.corrections.cross_checks.{CHECKS[words[0]]}", Corrected)
    ran = run("fit", "out", FORMULA, "--check", *words)
    assert ran.out.endswith(f"\n\n{FORMULA}: {options}\n")
    said = json.loads(run("fit", "out", FORMULA, "--check", *words, "--json").out)
    assert said["check"] == {"estimates": [1.0, None]}


def test_a_moment_correction_of_another_family_is_refused_before_the_fit(
    run: Any, folder: Path, stub: Stub
) -> None:
    ran = run("fit", "out", FORMULA, "--check", "moment", "--family", "binary")
    assert (ran.code, stub.called) == (2, {})
    assert "--check moment is for gaussian models" in ran.err


def test_what_a_correction_refuses_is_said_before_the_fit(
    run: Any, folder: Path, stub: Stub, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: Any, **__: Any) -> None:
        raise mw.errors.BadPlan("the formula has effects of groups: use fit alone")

    monkeypatch.setattr("maskwell.analysis.corrections.cross_checks.simex", refuse)
    ran = run("fit", "out", FORMULA, "--check", "simex")
    assert (ran.code, stub.called) == (2, {})
    assert ran.err == "error: --check simex: the formula has effects of groups: use fit alone\n"

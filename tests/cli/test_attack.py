"""`maskwell attack` and `maskwell swap` on a written release."""

from __future__ import annotations

import json
import re
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import maskwell as mw

HALVES = ("--release", "out", "--private", "inside")
WHERE = ("--match-blocks", "REGION", "--fields", "INCOME,TAX,AGE")


@pytest.fixture
def folder(tmp_path: Path, people: Any, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a release of the people by light noise, and 40 of them in a file."""
    monkeypatch.chdir(tmp_path)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", mw.MaskwellWarning)
        masking = mw.apply(mw.CorrelatedNoise(("INCOME", "TAX", "AGE"), sd_ratio=0.1), people, seed=5)
    masking.write(release="out", private="inside")
    mw.write(people.take(np.arange(40)), tmp_path / "held.csv")
    return tmp_path


def test_attack_prints_what_the_library_says(run: Any, folder: Path) -> None:
    ran = run("attack", *HALVES, *WHERE)
    masking = mw.Masking.read(release="out", private="inside")
    risk = mw.attack(mw.Linkage(match_blocks=("REGION",), fields=("INCOME", "TAX", "AGE")), masking)
    assert (ran.code, ran.out) == (0, f"{risk!r}\n")


def test_attack_says_no_where_the_tolerance_is_not_met(run: Any, folder: Path) -> None:
    assert run("attack", *HALVES, *WHERE, "--max-rate", 0.01).code == 1
    assert run("attack", *HALVES, *WHERE, "--max-ratio", 0.1).code == 1
    ran = run("attack", *HALVES, *WHERE, "--max-rate", 1)
    assert ran.code == 0
    assert ran.out.endswith("tolerance (at most 1 of the targets linked correctly): met\n")


def test_attack_as_json_has_figures_and_no_record(run: Any, folder: Path) -> None:
    said = json.loads(run("attack", *HALVES, *WHERE, "--json").out)
    assert said["targets"] == 240
    assert set(said["classes"]) == {"re-identification", "questionable", "false", "no candidate"}
    assert "person 0" not in json.dumps(said)


def test_attack_by_all_sets_seven_intruders_side_by_side(run: Any, folder: Path) -> None:
    ran = run("attack", *HALVES, *WHERE, "--all")
    assert ran.code == 0
    rows = [re.split(r"  +", line)[0] for line in ran.out.splitlines()[1:8]]
    nearest = ["nearest record", "nearest, informed"]
    assert rows == [
        "Winkler's matcher",
        *nearest,
        "knows the law",
        "knows the law, one-to-one",
        "the ceiling",
        "fingerprint alone",
    ]


@pytest.mark.parametrize(
    ("options", "plan"),
    [
        (
            ("--intruder", "nearest"),
            mw.NearestRecord(match_blocks=("REGION",), fields=("INCOME", "TAX", "AGE")),
        ),
        (
            ("--intruder", "nearest", "--distance", "posterior"),
            mw.NearestRecord(match_blocks=("REGION",), fields=("INCOME", "TAX", "AGE"), distance="posterior"),
        ),
        (
            ("--intruder", "nearest", "--direction", "to_original", "--one-to-one"),
            mw.NearestRecord(
                match_blocks=("REGION",),
                fields=("INCOME", "TAX", "AGE"),
                direction="to_original",
                assignment="one-to-one",
            ),
        ),
        (("--intruder", "law"), mw.BayesIntruder(match_blocks=("REGION",), fields=("INCOME", "TAX", "AGE"))),
        (
            ("--intruder", "fingerprint", "--fields", "REGION,SEX"),
            mw.Fingerprint(match_blocks=("REGION",), columns=("REGION", "SEX")),
        ),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_attack_by_a_named_intruder(run: Any, folder: Path, options: tuple[str, ...], plan: Any) -> None:
    ran = run("attack", *HALVES, *WHERE, *options)
    assert (ran.code, ran.out) == (
        0,
        f"{mw.attack(plan, mw.Masking.read(release='out', private='inside'))!r}\n",
    )


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--intruder", "nearset"), "--intruder is one of matcher, nearest, law, fingerprint"),
        (("--intruder", "fingerprint", "--one-to-one"), "--one-to-one is not for fingerprints"),
        (("--direction", "back"), "direction must be"),
        (("--distance", "noise"), "say --intruder nearest too"),
        (("--intruder", "nearest", "--distance", "far"), "distance"),
        (("--intruder", "nearest", "--within", 0.1), "--within is the matcher's"),
        (("--intruder", "nearest", "--all"), "leave --intruder and its options out"),
    ],
)
def test_options_that_do_not_go_together(run: Any, folder: Path, options: tuple[Any, ...], said: str) -> None:
    ran = run("attack", *HALVES, *options)
    assert ran.code == 2
    assert said in ran.err


def test_attack_with_a_file_that_the_intruder_holds(run: Any, folder: Path) -> None:
    ran = run("attack", *HALVES, *WHERE, "--targets", "held.csv")
    assert ran.code == 0
    assert ran.out.startswith("Linkage: 40 targets")


def test_every_intruder_is_held_against_the_tolerance(run: Any, folder: Path) -> None:
    """Winkler's matcher claims little and is nearly always right: his ratio is the worst, not his rate."""
    strict = ("--match-blocks", "REGION", "--fields", "INCOME,TAX,AGE", "--within", 0.02)
    alone = run("attack", *HALVES, *strict, "--max-ratio", 5)
    every = run("attack", *HALVES, *strict, "--max-ratio", 5, "--all")
    assert (alone.code, every.code) == (1, 1)
    assert "NOT met by Winkler's matcher" in every.out
    said = json.loads(run("attack", *HALVES, *strict, "--max-ratio", 5, "--json").out)
    assert (said["tolerance"], said["met"]) == ({"max_ratio": 5.0}, False)


def test_a_file_that_the_intruder_collected_himself(run: Any, folder: Path, people: Any) -> None:
    """Fewer columns, others of his own, amounts beyond the top code and fractions of years."""
    import pyarrow as pa

    held = people.take(np.arange(40)).to_arrow().select(["ID", "REGION", "INCOME", "AGE"])
    amounts = held["INCOME"].to_numpy().copy()
    amounts[0] = 250_000.0
    held = held.set_column(2, "INCOME", pa.array(amounts)).append_column("SOURCE", pa.array(["web"] * 40))
    held = held.set_column(3, "AGE", pa.array(held["AGE"].to_numpy() + 0.5))
    import pyarrow.csv as csv

    csv.write_csv(held, folder / "collected.csv")
    ran = run("attack", *HALVES, "--fields", "INCOME,AGE", "--targets", "collected.csv")
    assert (ran.code, ran.err) == (0, "")
    assert ran.out.startswith("Linkage: 40 targets")


def test_swap_writes_a_release_that_meets_the_tolerance(run: Any, folder: Path, people: Any) -> None:
    known = replace(people.schema["INCOME"], roles=frozenset({"key"}))
    table = replace(people, schema=people.schema.changed({"INCOME": known}))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", mw.MaskwellWarning)
        masking = mw.apply(mw.CorrelatedNoise(("INCOME", "TAX", "AGE"), sd_ratio=0.1), table, seed=5)
    masking.write(release="known", private="known-inside")
    words = ("--to-release", "repaired", "--to-private", "inside")
    halves = ("--release", "known", "--private", "known-inside")
    reason = ("--exempt-values", "the amounts are public")
    ran = run("swap", *halves, *WHERE, "--max-rate", 0.2, *reason, *words)
    assert ran.code == 0
    repaired = ("--release", "repaired", "--private", "inside")
    assert run("attack", *repaired, *WHERE, "--max-rate", 0.2).code == 0
    assert run("attack", *HALVES, *WHERE, "--max-rate", 0.2).code == 1
    again = run("swap", *repaired, *WHERE, "--max-rate", 0.1, "--to-release", "x", "--to-private", "y")
    assert (again.code, "exchanged already" in again.err) == (2, True)


def test_swap_that_cannot_meet_the_tolerance_writes_nothing(run: Any, folder: Path) -> None:
    to = ("--max-rate", 0.1, "--to-release", "x", "--to-private", "y")
    hopeless = run("swap", *HALVES, *WHERE, *to)
    assert hopeless.code == 1
    assert hopeless.out.startswith("no exchange helps: by INCOME, TAX, AGE alone")
    sensitive = run("swap", *HALVES, *WHERE, *to, "--exempt-values", "the amounts are public")
    assert (sensitive.code, "'INCOME' is sensitive and exchanged" in sensitive.err) == (2, True)
    alone = ("--match-blocks", "REGION,WEIGHT", "--fields", "INCOME,TAX,AGE", "--within", 0.3)
    renaming = run("swap", *HALVES, *alone, *to)
    assert (renaming.code, "only renames rows" in renaming.err) == (2, True)
    assert not (folder / "x").exists()
    assert not (folder / "y").exists()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (
            ("attack", *HALVES, "--max-rate", 0.1, "--max-ratio", 2),
            "exactly one of --max-rate and --max-ratio",
        ),
        (("swap", *HALVES, "--to-release", "x", "--to-private", "y"), "exactly one of --max-rate"),
        (("attack", *HALVES, "--fields", "INCOM"), "did you mean 'INCOME'?"),
        (("attack", *HALVES, "--within", -1), "such as 0.10 for 10%"),
        (("attack", *HALVES, "--within", 10), "such as 0.10 for 10%"),
        (("attack", *HALVES, "--max-rate", 15), "between 0 and 1"),
        (
            ("swap", *HALVES, "--max-rate", 0.1, "--to-release", "x", "--to-private", "x/y"),
            "lies in the public",
        ),
        (("attack", "--release", "nowhere", "--private", "inside"), "nowhere"),
        (("attack", *HALVES, "--targets", "nobody.csv"), "nobody.csv"),
    ],
)
def test_bad_input_is_refused_in_a_sentence(
    run: Any, folder: Path, words: tuple[Any, ...], said: str
) -> None:
    ran = run(*words)
    assert ran.code == 2
    assert said in ran.err
    assert "Traceback" not in ran.err


LAW = ("attack", *HALVES, *WHERE, "--intruder", "law")


def test_the_law_takes_its_own_options(run: Any, folder: Path) -> None:
    masking = mw.Masking.read(release="out", private="inside")
    where: dict[str, Any] = {"match_blocks": ("REGION",), "fields": ("INCOME", "TAX", "AGE")}
    for options, more in (
        (("--kernel", "forward", "--threshold", 0.5), {"kernel": "forward", "threshold": 0.5}),
        (("--untold",), {"prior": mw.attacks.Prior()}),
        (("--marginal", "gaussian"), {"marginal": "gaussian"}),
        (
            ("--untold", "--family", "gamma", "--mean-over-sd", 4),
            {"prior": mw.attacks.Prior(family="gamma", mean_over_sd=4.0)},
        ),
        (("--helpers", "all"), {"helpers": "all"}),
    ):
        ran = run(*LAW, *options)
        assert (ran.code, ran.out) == (0, f"{mw.attack(mw.BayesIntruder(**where, **more), masking)!r}\n")


def test_what_the_law_believes_is_drawn(run: Any, folder: Path) -> None:
    ran = run(*LAW, "--picture", "belief.png")
    assert (ran.code, ran.err) == (0, "drawn: belief.png\n")
    assert (folder / "belief.png").stat().st_size > 10_000


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("attack", *HALVES, "--kernel", "forward"), "are those of --intruder law"),
        (("attack", *HALVES, "--picture", "a.png"), "what --intruder law believes"),
        ((*LAW, "--helpers", "many"), "--helpers is a whole number or all, not 'many'"),
        ((*LAW, "--kernel", "backward"), "kernel must be one of coherent, forward, paper, fms"),
        (("card-value", *HALVES, "--helpers", "1,x"), "--helpers is a whole number or all, not 'x'"),
        (("card-value", *HALVES, "--family", "normal"), "family"),
        (("card-value", *HALVES, "--helpers", "10,5000"), "5,000 helpers are more than there are others"),
        (("card-value", *HALVES, "--helpers", "-3"), "--helpers is a whole number or all, not '-3'"),
        ((*LAW, "--helpers", "5000"), "5,000 helpers are more than there are others: give at most 239"),
        ((*LAW, "--family", "gamma"), "say --untold too"),
        ((*LAW, "--marginal", "normal"), "marginal must be 'truth' or 'gaussian'"),
        ((*LAW, "--helpers", "3", "--one-to-one"), "leave the one-to-one assignment out"),
        ((*LAW, "--untold", "--mean-over-sd", 0), "mean over sd of a prior is a number"),
    ],
)
def test_options_of_the_law_that_make_no_sense_are_refused(
    run: Any, folder: Path, options: tuple[Any, ...], said: str
) -> None:
    ran = run(*options)
    assert ran.code == 2
    assert said in ran.err


def test_telling_prints_what_the_library_says(run: Any, folder: Path) -> None:
    ran = run("card-value", *HALVES, *WHERE, "--mean-over-sd", 5)
    masking = mw.Masking.read(release="out", private="inside")
    plan = mw.BayesIntruder(match_blocks=("REGION",), fields=("INCOME", "TAX", "AGE"))
    said = mw.attacks.card_value(masking, plan=plan, prior=mw.attacks.Prior(mean_over_sd=5.0))
    assert (ran.code, ran.out) == (0, f"{said!r}\n")
    figures = json.loads(run("card-value", *HALVES, *WHERE, "--mean-over-sd", 5, "--json").out)
    assert figures["difference"] == pytest.approx(said.difference)


def test_telling_of_a_file_that_the_intruder_holds(run: Any, folder: Path) -> None:
    ran = run("card-value", *HALVES, *WHERE, "--targets", "held.csv", "--no-ceiling", "--json")
    figures = json.loads(ran.out)
    assert (ran.code, figures["told"]["coherent"]["targets"], figures["ceiling"]) == (0, 40, None)


def test_the_fingerprint_beside_all_is_of_the_fields(run: Any, folder: Path) -> None:
    """What he may not know he may not use: the age that leaves masked tells only where it is missing or coded."""
    masking = mw.Masking.read(release="out", private="inside")
    few = json.loads(
        run("attack", *HALVES, "--match-blocks", "REGION", "--fields", "TAX", "--all", "--json").out
    )
    alone = mw.attack(mw.Fingerprint(match_blocks=("REGION",), columns=("REGION", "TAX")), masking)
    assert few["intruders"]["fingerprint alone"]["rate"] == alone.rate
    assert alone.rate < mw.attack(mw.Fingerprint(match_blocks=("REGION",)), masking).rate


def test_large_work_is_announced(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """240 x 240 pairs are nothing alone, and much where they are matched or integrated over."""
    from maskwell.cli import value_of_card

    heard: list[str] = []
    monkeypatch.setattr(value_of_card, "said_at_terminal", heard.append)
    masking = mw.Masking.read(release="out", private="inside")
    for options in ({}, {"helpers": 3}, {"prior": mw.attacks.Prior()}):
        value_of_card.said_before(mw.BayesIntruder(match_blocks=(), **options), masking, None)
    assert heard == ["up to 57,600 pairs of records for the intruder: this may take a while"] * 2


def test_telling_announces_large_work_in_a_pipe_too(
    run: Any, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from maskwell.cli import value_of_card

    words = ("card-value", *HALVES, *WHERE, "--targets", "held.csv", "--no-ceiling")
    assert run(*words).err == ""
    monkeypatch.setattr(value_of_card, "MANY_TOGETHER", 100)
    ran = run(*words, "--json")
    first, *steps = ran.err.splitlines()
    assert re.fullmatch(r"up to [\d,]+ pairs of records for each intruder: this may take a while", first)
    assert steps == [f"{name}, {told}" for name in ("coherent", "forward") for told in ("told", "not told")]
    assert json.loads(ran.out)["told"]["coherent"]["targets"] == 40
    assert run(*words, "--helpers", 5000).err.startswith("error: 5,000 helpers are more than there are")

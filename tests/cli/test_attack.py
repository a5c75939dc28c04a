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
from maskwell.plan import DEFAULT_INTRUDERS

HALVES = ("--release", "out", "--private", "inside")
TARGETS = '[targets]\nmatch_blocks = ["REGION"]\nfields = ["INCOME", "TAX", "AGE"]\n'
WHERE: dict[str, Any] = {"match_blocks": ("REGION",), "fields": ("INCOME", "TAX", "AGE")}
LAW = "knows the law"


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


def plan(text: str = "", name: str = "attack.toml", targets: str = TARGETS) -> str:
    """Write a plan for the release: its folders, the targets, and more sections."""
    Path(name).write_text(f'[output]\nrelease = "out"\nprivate = "inside"\n{targets}{text}', encoding="utf-8")
    return name


def by(attack: str, options: str = "", more: str = "") -> str:
    """A plan with one intruder."""
    return plan(f'[[intruders]]\nattack = "{attack}"\n{options}\n{more}')


def masking() -> mw.Masking:
    return mw.Masking.read(release="out", private="inside")


def test_attack_prints_what_the_library_says(run: Any, folder: Path) -> None:
    ran = run("attack", plan(), "--intruder", "Winkler's matcher")
    assert (ran.code, ran.out) == (0, f"{mw.attack(mw.Linkage(**WHERE), masking())!r}\n")


def test_without_a_plan_intruders_rely_on_all_that_leaves_in_clear(run: Any, folder: Path) -> None:
    clear = ("REGION", "EDU", "WAGE", "OTHER", "TOTAL", "WEIGHT", "SEX")
    said = json.loads(run("attack", *HALVES, "--json").out)
    assert set(said["attack"]["match_blocks"]) <= set(clear)
    assert said["targets"] == 240


def test_attack_says_no_where_the_tolerance_is_not_met(run: Any, folder: Path) -> None:
    assert run("attack", *HALVES, "--max-rate", 0.01).code == 1
    matcher = '[[intruders]]\nattack = "Linkage"\n'
    assert run("attack", plan(f"{matcher}[tolerance]\nmax_ratio = 0.1\n")).code == 1
    ran = run("attack", plan(f"{matcher}[tolerance]\nmax_rate = 1\n"))
    assert ran.code == 0
    assert ran.out.endswith("tolerance (at most 1 of the targets linked correctly): met\n")


def test_a_tolerance_on_h_or_on_the_outlying_is_judged_as_a_release_is(run: Any, folder: Path) -> None:
    near = '[[intruders]]\nname = "near"\nattack = "NearestRecord"\n[tolerance]\n'
    ran = run("attack", plan(f'{near}expected_h = 3\nover = "outlying"\n'))
    assert ran.code == 1
    assert ran.out.endswith("tolerance (a mean h of at least 3, over the outlying targets): NOT met\n")
    assert run("attack", plan(f"{near}expected_h = 0\n")).code == 0


def test_who_finds_too_much_and_is_not_held_makes_it_not_judged(run: Any, folder: Path) -> None:
    both = '[[intruders]]\nname = "near"\nattack = "NearestRecord"\n[[intruders]]\nattack = "Fingerprint"\n'
    held = f'{both}[tolerance]\nmax_rate = 0.2\nintruders = ["Fingerprint"]\n'
    targets = TARGETS.replace('fields = ["INCOME", "TAX", "AGE"]\n', "")
    ran = run(
        "attack",
        plan(held.replace('"Fingerprint"\n[', '"Fingerprint"\ncolumns = ["REGION"]\n[', 1), targets=targets),
    )
    assert ran.code == 1
    assert "not judged\n  - near: rate of correct links" in ran.out


def test_attack_as_json_has_figures_and_no_record(run: Any, folder: Path) -> None:
    said = json.loads(run("attack", by("Linkage"), "--json").out)
    assert said["targets"] == 240
    assert set(said["classes"]) == {"re-identification", "questionable", "false", "no candidate"}
    assert "person 0" not in json.dumps(said)


@pytest.mark.parametrize(
    "words", [("attack", *HALVES, "--all"), ("attack", "attack.toml")], ids=["--all", "a plan"]
)
def test_all_who_attack_by_default_stand_side_by_side(run: Any, folder: Path, words: tuple[str, ...]) -> None:
    plan()
    ran = run(*words)
    assert ran.code == 0
    rows = [re.split(r"  +", line)[0] for line in ran.out.splitlines()[1:9]]
    assert rows == list(DEFAULT_INTRUDERS)


@pytest.mark.parametrize(
    ("options", "intruder"),
    [
        (("--intruder", "nearest record"), mw.NearestRecord(**WHERE)),
        (("--intruder", "nearest, informed"), mw.NearestRecord(**WHERE, distance="posterior")),
        (("--intruder", LAW), mw.BayesIntruder(**WHERE)),
        (("--intruder", "knows the law, one-to-one"), mw.BayesIntruder(**WHERE, assignment="one-to-one")),
        (("--intruder", "the ceiling"), mw.BayesIntruder(**WHERE, helpers="all")),
        (("--intruder", "fingerprint alone"), mw.Fingerprint(match_blocks=("REGION",))),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_attack_by_a_named_intruder(run: Any, folder: Path, options: tuple[str, ...], intruder: Any) -> None:
    ran = run("attack", plan(), *options)
    assert (ran.code, ran.out) == (0, f"{mw.attack(intruder, masking())!r}\n")


@pytest.mark.parametrize(
    ("kind", "options", "more"),
    [
        (
            "NearestRecord",
            'direction = "to_original"\nassignment = "one-to-one"',
            {"direction": "to_original", "assignment": "one-to-one"},
        ),
        ("Linkage", 'rule = { rule = "Relative", ratio = 0.02 }', {"rule": mw.attacks.Relative(0.02)}),
        ("BayesIntruder", 'kernel = "forward"\nthreshold = 0.5', {"kernel": "forward", "threshold": 0.5}),
        ("BayesIntruder", "prior = {}", {"prior": mw.attacks.Prior()}),
        ("BayesIntruder", 'marginal = "gaussian"', {"marginal": "gaussian"}),
        (
            "BayesIntruder",
            'prior = { family = "gamma", mean_over_sd = 4.0 }',
            {"prior": mw.attacks.Prior(family="gamma", mean_over_sd=4.0)},
        ),
        ("BayesIntruder", 'helpers = "all"', {"helpers": "all"}),
    ],
)
def test_a_plan_says_what_an_intruder_does(
    run: Any, folder: Path, kind: str, options: str, more: Any
) -> None:
    ran = run("attack", by(kind, options))
    expected = mw.attack(getattr(mw, kind)(**WHERE, **more), masking())
    assert (ran.code, ran.out) == (0, f"{expected!r}\n")


def test_one_to_one_is_of_any_intruder_but_the_fingerprint(run: Any, folder: Path) -> None:
    said = json.loads(run("attack", *HALVES, "--intruder", "nearest record", "--one-to-one", "--json").out)
    assert said["attack"]["assignment"] == "one-to-one"


def test_one_intruder_of_a_plan_is_held_to_its_tolerance(run: Any, folder: Path) -> None:
    two = (
        '[[intruders]]\nname = "a"\nattack = "NearestRecord"\n[[intruders]]\nname = "b"\nattack = "Linkage"\n'
    )
    name = plan(f'{two}[tolerance]\nmax_rate = 0.01\nintruders = ["a"]\n')
    ran = run("attack", name, "--intruder", "b")
    assert (ran.code, ran.out.splitlines()[0][:7]) == (1, "Linkage")


def test_folders_beside_a_plan_are_taken_in_place_of_its_own(run: Any, folder: Path) -> None:
    Path("only.toml").write_text(f'{TARGETS}[[intruders]]\nattack = "Linkage"\n')
    ran = run("attack", "only.toml", *HALVES)
    assert (ran.code, ran.out) == (0, f"{mw.attack(mw.Linkage(**WHERE), masking())!r}\n")
    assert (
        "--release is needed: a folder (or release under [output] in a plan)"
        in run("attack", "only.toml").err
    )


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--intruder", "nearst"), "there is no 'nearst' (did you mean 'nearest record'?)"),
        (("--intruder", "x"), "there are \"Winkler's matcher\", 'nearest record',"),
        (("--intruder", "fingerprint alone", "--one-to-one"), "--one-to-one is not for fingerprints"),
        (("--intruder", "the ceiling", "--one-to-one"), "leave the one-to-one assignment out"),
        (("--intruder", "nearest record", "--all"), "leave --intruder and --one-to-one out"),
        (("--picture", "a.png"), "--picture draws what one intruder believes: name him"),
        (("--all", "--picture", "a.png"), "--picture draws what one intruder believes: name him"),
        (("--max-rate", 15), "max_rate takes a share between 0 and 1"),
    ],
)
def test_options_that_do_not_go_together(run: Any, folder: Path, options: tuple[Any, ...], said: str) -> None:
    ran = run("attack", *HALVES, *options)
    assert ran.code == 2
    assert said in ran.err


def test_attack_with_a_file_that_the_intruder_holds(run: Any, folder: Path) -> None:
    ran = run("attack", by("Linkage"), "--targets", "held.csv")
    assert ran.code == 0
    assert ran.out.startswith("Linkage: 40 targets")


def test_every_intruder_is_held_against_the_tolerance(run: Any, folder: Path) -> None:
    """Winkler's matcher claims little and is nearly always right: his ratio is the worst, not his rate."""
    strict = (
        '[[intruders]]\nname = "matcher"\nattack = "Linkage"\nrule = { rule = "Relative", ratio = 0.02 }\n'
    )
    near, ratio = '[[intruders]]\nattack = "NearestRecord"\n', "[tolerance]\nmax_ratio = 5\n"
    alone = run("attack", plan(strict + ratio))
    every = run("attack", plan(strict + near + ratio))
    assert (alone.code, every.code) == (1, 1)
    assert "NOT met by NearestRecord, matcher" in every.out
    said = json.loads(run("attack", plan(strict + ratio), "--json").out)
    assert (said["tolerance"], said["met"], said["not_judged"]) == ({"max_ratio": 5.0}, False, [])


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
    fields = '[targets]\nfields = ["INCOME", "AGE"]\n[[intruders]]\nattack = "Linkage"\n'
    ran = run("attack", plan(fields, targets=""), "--targets", "collected.csv")
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
    where = '[[intruders]]\nattack = "Linkage"\n[tolerance]\nmax_rate = 0.2\n'
    name = plan(f'{where}[swap]\nexempt_values = "the amounts are public"\n')
    ran = run("swap", name, *halves, *words)
    assert ran.code == 0
    repaired = ("--release", "repaired", "--private", "inside")
    assert run("attack", plan(where), *repaired).code == 0
    assert run("attack", plan(where)).code == 1
    again = run("swap", plan(where), *repaired, "--to-release", "x", "--to-private", "y")
    assert (again.code, "exchanged already" in again.err) == (2, True)


def test_swap_that_cannot_meet_the_tolerance_writes_nothing(run: Any, folder: Path) -> None:
    to = ("--to-release", "x", "--to-private", "y")
    where = '[[intruders]]\nattack = "Linkage"\n[tolerance]\nmax_rate = 0.1\n'
    hopeless = run("swap", plan(where), *to)
    assert hopeless.code == 1
    assert hopeless.out.startswith("no exchange helps: by INCOME, TAX, AGE alone")
    sensitive = run("swap", plan(f'{where}[swap]\nexempt_values = "the amounts are public"\n'), *to)
    assert (sensitive.code, "'INCOME' is sensitive and exchanged" in sensitive.err) == (2, True)
    loose = where.replace('"Linkage"', '"Linkage"\nrule = { rule = "Relative", ratio = 0.3 }')
    alone = plan(loose, targets=TARGETS.replace('["REGION"]', '["REGION", "WEIGHT"]'))
    renaming = run("swap", alone, *to)
    assert (renaming.code, "only renames rows" in renaming.err) == (2, True)
    assert not (folder / "x").exists()
    assert not (folder / "y").exists()


def test_swap_by_options(run: Any, folder: Path) -> None:
    to = ("--to-release", "x", "--to-private", "y")
    ran = run("swap", *HALVES, "--max-rate", 1, "--intruder", "nearest record", "--columns", "TAX", *to)
    assert (ran.code, ran.err) == (0, "")
    assert "against NearestRecord, at most 1 of the targets linked correctly: met\n  no record was" in ran.out


TO = ("--to-release", "x", "--to-private", "y")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (
            ("attack", "attack.toml", "--max-rate", 0.1, "--one-to-one"),
            "write --one-to-one, --max-rate into the plan",
        ),
        (("swap", *HALVES, *TO), "say what is tolerated over all targets: --max-rate, or one of [tolerance]"),
        (("swap", "attack.toml", "--columns", "TAX", *TO), "write --columns into the plan"),
        (("swap", "tolerant.toml", *TO), "say against whom: --intruder, or intruder under [swap]; one of"),
        (
            ("swap", "tolerant.toml", "--intruder", "fingerprint alone", *TO),
            "no exchange of masked values removes it",
        ),
        (("attack", "wrong.toml"), "did you mean 'fields'?"),
        (("attack", "wrong.toml"), "max_rate must be a number"),
        (("card-value", "wrong.toml"), "did you mean 'fields'?"),
        (("attack", "nothing.toml"), "cannot be read"),
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
    plan()
    plan("[tolerance]\nmax_rate = 0.2\n", "tolerant.toml")
    plan('[tolerance]\nmax_rate = "x"\n', "wrong.toml", '[targets]\nfield = ["TAX"]\n')
    ran = run(*words)
    assert ran.code == 2
    assert said in ran.err
    assert "Traceback" not in ran.err


def test_what_the_law_believes_is_drawn(run: Any, folder: Path) -> None:
    ran = run("attack", plan(), "--intruder", LAW, "--picture", "belief.png")
    assert (ran.code, ran.err) == (0, "drawn: belief.png\n")
    assert (folder / "belief.png").stat().st_size > 10_000


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ('kernel = "backward"', "kernel must be one of coherent, forward, paper, fms"),
        ("helpers = 5000", "5,000 helpers are more than there are others: give at most 239"),
        ('marginal = "normal"', "marginal must be 'truth' or 'gaussian'"),
        ('helpers = 3\nassignment = "one-to-one"', "leave the one-to-one assignment out"),
        ("prior = { mean_over_sd = 0 }", "mean over sd of a prior is a number"),
        ('direction = "back"', "direction must be"),
    ],
)
def test_an_intruder_that_makes_no_sense_is_refused(run: Any, folder: Path, options: str, said: str) -> None:
    ran = run("attack", by("BayesIntruder", options))
    assert ran.code == 2
    assert said in ran.err


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--helpers", "1,x"), "--helpers is a whole number or all, not 'x'"),
        (("--family", "normal"), "family"),
        (("--helpers", "10,5000"), "5,000 helpers are more than there are others"),
        (("--helpers", "-3"), "--helpers is a whole number or all, not '-3'"),
    ],
)
def test_options_of_the_cards_value_are_checked(
    run: Any, folder: Path, options: tuple[str, ...], said: str
) -> None:
    ran = run("card-value", *HALVES, *options)
    assert ran.code == 2
    assert said in ran.err


def test_telling_prints_what_the_library_says(run: Any, folder: Path) -> None:
    ran = run("card-value", plan(), "--mean-over-sd", 5)
    intruder, prior = mw.BayesIntruder(**WHERE), mw.attacks.Prior(mean_over_sd=5.0)
    said = mw.attacks.card_value(masking(), plan=intruder, prior=prior)
    assert (ran.code, ran.out) == (0, f"{said!r}\n")
    figures = json.loads(run("card-value", plan(), "--mean-over-sd", 5, "--json").out)
    assert figures["difference"] == pytest.approx(said.difference)


def test_telling_of_a_file_that_the_intruder_holds(run: Any, folder: Path) -> None:
    ran = run("card-value", plan(), "--targets", "held.csv", "--no-ceiling", "--json")
    figures = json.loads(ran.out)
    assert (ran.code, figures["told"]["coherent"]["targets"], figures["ceiling"]) == (0, 40, None)


def test_large_work_is_announced(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """240 x 240 pairs are nothing alone, and much where they are matched or integrated over."""
    from maskwell.cli import value_of_card

    heard: list[str] = []
    monkeypatch.setattr(value_of_card, "said_at_terminal", heard.append)
    for options in ({}, {"helpers": 3}, {"prior": mw.attacks.Prior()}):
        value_of_card.said_before({"he": mw.BayesIntruder(match_blocks=(), **options)}, masking(), None)
    assert heard == ["up to 57,600 pairs of records for the intruder: this may take a while"] * 2


def test_telling_announces_large_work_in_a_pipe_too(
    run: Any, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from maskwell.cli import value_of_card

    words = ("card-value", plan(), "--targets", "held.csv", "--no-ceiling")
    assert run(*words).err == ""
    monkeypatch.setattr(value_of_card, "MANY_TOGETHER", 100)
    ran = run(*words, "--json")
    first, *steps = ran.err.splitlines()
    assert re.fullmatch(r"up to [\d,]+ pairs of records for each intruder: this may take a while", first)
    assert steps == [f"{name}, {told}" for name in ("coherent", "forward") for told in ("told", "not told")]
    assert json.loads(ran.out)["told"]["coherent"]["targets"] == 40
    assert run(*words, "--helpers", 5000).err.startswith("error: 5,000 helpers are more than there are")

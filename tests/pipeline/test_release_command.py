"""`maskwell release`: exit codes, JSON, the key file, and what is told on the way."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from time import sleep
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import typer
from typer.testing import CliRunner

import maskwell as mw
from maskwell.cli import main
from maskwell.cli.release_command import ToldStages, release
from maskwell.errors import BadInput
from maskwell.pipeline.release_key import read_key
from maskwell.plan import ReleasePlan
from maskwell.schema import Column, Schema
from maskwell.table import Table

from .homes import short_audit

__all__ = ["short_audit"]

pytestmark = pytest.mark.usefixtures("short_audit")

PLAN = """
[input]
file = "homes.csv"
schema = "homes.toml"
[[masks]]
mask = "CorrelatedNoise"
columns = ["X", "Y"]
r0 = {r0}
[[intruders]]
name = "informed"
attack = "NearestRecord"
distance = "posterior"
[output]
release = "out"
private = "inside"
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with a small file, and a plan that passes and one that is refused."""
    rng = np.random.default_rng(5)
    x, y = rng.multivariate_normal([500, 900], [[10_000, 4_000], [4_000, 40_000]], 300).round().T
    schema = Schema(
        (
            Column("ID", "text", frozenset({"id"})),
            Column("X", "continuous", frozenset({"key"}), unit=1),
            Column("Y", "continuous", frozenset({"key"}), unit=1),
        ),
        series="homes",
    )
    table = Table.from_frame(pa.table({"ID": [f"h{i:04d}" for i in range(300)], "X": x, "Y": y}), schema)
    mw.write(table, tmp_path / "homes.csv")
    (tmp_path / "homes.toml").write_text(schema.to_toml())
    (tmp_path / "good.toml").write_text(PLAN.format(r0=0.5))
    (tmp_path / "bad.toml").write_text(PLAN.format(r0=0.99))
    (tmp_path / "key.hex").write_text("07" * 32 + "\n")
    (tmp_path / "key.hex").chmod(0o600)
    return tmp_path


Main = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run_main(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Main:
    """Run the command line as a shell does: exit code, output, errors."""

    def run(*words: object) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["maskwell", *map(str, words)])
        with pytest.raises(SystemExit) as ending:
            main()
        said = capsys.readouterr()
        return int(ending.value.code or 0), said.out, said.err

    return run


@pytest.fixture
def app() -> typer.Typer:
    """The command by itself."""
    made = typer.Typer()
    made.command()(release)
    return made


def test_what_passes_ends_with_0_and_json_has_all_figures(app: typer.Typer, folder: Path) -> None:
    asked = [str(folder / "good.toml"), "--json", "--key", str(folder / "key.hex")]
    result = CliRunner().invoke(app, asked)
    assert result.exit_code == 0, result.output
    figures = json.loads(result.stdout)
    assert figures["passed"]
    assert list(figures["after"]["intruders"]) == ["informed"]
    (half,) = [path for path in (folder / "inside").iterdir() if path.is_dir()]
    assert (half / "key.hex").read_text() == (folder / "key.hex").read_text()
    told = [line.split("  ")[0] for line in result.stderr.splitlines()]
    assert [name for name in told if name] == [
        "read", "check", "fingerprint floor", "mask", "attack", "compare", "audit", "write",
    ]  # fmt: skip


def test_what_is_refused_ends_with_1_unless_a_reason_is_given(app: typer.Typer, folder: Path) -> None:
    result = CliRunner().invoke(app, [str(folder / "bad.toml"), "--seed", "1", "--study", "--no-advice"])
    assert result.exit_code == 1, result.output
    assert not (folder / "out").exists()
    despite = ["--despite", "agreed by the board"]
    result = CliRunner().invoke(app, [str(folder / "bad.toml"), "--seed", "1", "--study", *despite])
    assert result.exit_code == 0, result.output
    assert (folder / "out-study" / "card.json").exists()
    assert not (folder / "out").exists()


def test_a_seed_without_study_ends_with_1_before_any_work(run_main: Main, folder: Path) -> None:
    code, out, err = run_main("release", folder / "good.toml", "--seed", 1)
    assert (code, out) == (1, "")
    assert err.startswith("error: a run by a seed is a study and no release: say so (--study")
    assert err.count("\n") == 1
    assert run_main("release", folder / "no such plan.toml", "--seed", 1)[0] == 1
    code, _, err = run_main("release", folder / "good.toml", "--study")
    assert (code, err) == (2, "error: a study is run by a seed: give one (--seed), or leave --study out\n")
    assert sorted(path.name for path in folder.iterdir()) == [
        "bad.toml", "good.toml", "homes.csv", "homes.toml", "key.hex",
    ]  # fmt: skip
    code, out, _ = run_main("release", folder / "good.toml", "--seed", 1, "--study")
    assert code == 0
    assert "FOR STUDIES ONLY" in out
    assert f"for studies:   {folder}/out-study/" in out
    assert {"out-study", "inside-study"} <= {path.name for path in folder.iterdir()}


def test_a_key_file_is_closed_to_others_and_holds_a_key(folder: Path) -> None:
    assert read_key(folder / "key.hex").secret == bytes([7] * 32)
    (folder / "key.hex").chmod(0o644)
    with pytest.raises(BadInput, match="open to others: chmod 600"):
        read_key(folder / "key.hex")
    (folder / "no.hex").write_text("seven")
    with pytest.raises(BadInput, match="holds no key: 64 hexadecimal digits"):
        read_key(folder / "no.hex")
    with pytest.raises(BadInput, match="cannot be read: No such file"):
        read_key(folder / "none.hex")


def test_a_stage_is_told_once_when_it_ends(capsys: pytest.CaptureFixture[str]) -> None:
    with ToldStages() as told:
        for step in (("attack", 0, 2), ("attack", 1, 2), ("attack", 2, 2), ("attack", 2, 2)):
            told(*step)
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("attack")
    assert line.endswith(" s")


def test_the_plans_of_the_demo_are_plans(tmp_path: Path) -> None:
    from maskwell.datasets import housing
    from maskwell.pipeline import demo_plans

    refused, passing = map(ReleasePlan.read, demo_plans(tmp_path, housing(1000)))
    assert refused.tolerance == passing.tolerance
    assert refused.targets.largest_target_block == passing.targets.largest_target_block
    schema = Schema.read(passing.input.schema)
    assert [column.name for column in schema.columns if column.drop] == [
        "BEDROOMS",
        "BATHS",
        "MAINTAIN",
        "TAXES",
    ]
    passing.mask(schema).card(mw.read(passing.input.file, schema))


@pytest.fixture
def short_minutes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a minute of the progress pass within a twentieth of a second."""
    monkeypatch.setattr("maskwell.cli.release_command.A_MINUTE", 0.05)
    monkeypatch.setattr("maskwell.cli.release_command.SHORT", 0.01)


def until(capsys: pytest.CaptureFixture[str], line: str, times: int) -> str:
    """Wait until a line was said so often, however busy the machine is, and return what was said."""
    said = ""
    for _ in range(1_500):
        said += capsys.readouterr().err
        if said.splitlines().count(line) >= times:
            return said
        sleep(0.02)
    raise AssertionError(f"not said within half a minute: {line}")


@pytest.mark.usefixtures("short_minutes")
def test_off_a_terminal_a_line_a_minute_says_how_far_it_is_and_what_is_left(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with ToldStages() as told:
        told("attack", 0, 8)
        told("attack", 3, 8)
        until(capsys, "attack, 3 of 8; then compare, audit, write", 2)
        told("attack", 8, 8)
    lines = capsys.readouterr().err.splitlines()
    assert lines[-1].startswith("attack  ")


@pytest.mark.usefixtures("short_minutes")
def test_a_refusal_is_told_while_it_is_searched_what_would_pass(capsys: pytest.CaptureFixture[str]) -> None:
    expected = "nothing is released: the floor is too high; a group leaves; now looking for what would pass"
    with ToldStages() as told:
        told.refusal(("the floor is too high", "a group leaves"))
        told("advise", 0, 8)
        said = until(capsys, expected, 1)
        sleep(0.5)
        told("advise", 8, 8)
    lines = (said + capsys.readouterr().err).splitlines()
    assert lines[0] == expected
    assert lines.count(expected) == 1
    assert not any("then write" in line for line in lines), "nothing is written after a refusal"
    with ToldStages() as told:  # what is found at once needs no word before it
        told.refusal(("the floor is too high",))
        told("advise", 0, 8)
        told("advise", 8, 8)
    assert "looking for" not in capsys.readouterr().err


@pytest.mark.parametrize(
    ("stage", "ending"),
    [("compare", "left; then audit, write"), ("advise, candidate 1 of 2, draw", "left for this part")],
)
def test_the_time_left_of_one_candidate_is_not_that_of_all(stage: str, ending: str) -> None:
    told = ToldStages()
    told(stage, 0, 20)
    told.started[stage] -= 10
    told.known = 10, 20
    assert told.line().startswith(f"{stage}, 10 of 20, about ")
    assert told.line().endswith(f" s {ending}")


@pytest.mark.parametrize("behind", [False, True])
def test_the_clock_stops_the_work_with_exit_code_1_and_changes_nothing_else(
    behind: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    import signal

    import typer

    from maskwell.cli import release_command

    monkeypatch.setattr(release_command, "SHORT", 0.01)

    def work() -> None:
        with ToldStages(0.001) as told:
            told("calibrate", 0, 0)
            for _ in range(1_000):
                sleep(0.02)

    before = signal.getsignal(signal.SIGINT)
    signal.signal(signal.SIGINT, signal.SIG_IGN if behind else signal.default_int_handler)
    try:
        with pytest.raises(typer.Exit) as stopped:
            work()
        assert (signal.getsignal(signal.SIGINT) is signal.SIG_IGN) == behind
    finally:
        signal.signal(signal.SIGINT, before)
    assert stopped.value.exit_code == 1
    assert "stopped during 'calibrate' after 0.001 minutes" in capsys.readouterr().err


def interrupted(*_: object, **__: object) -> None:
    raise KeyboardInterrupt


def test_a_stopped_run_says_what_it_leaves_and_the_next_goes_on_with_it(
    folder: Path, run_main: Main, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = folder / "good.toml"
    plan.write_text(plan.read_text() + "[calibrate]\nreplicates = 2\nconfirmations = 3\n")
    with monkeypatch.context() as patch:
        patch.setattr("maskwell.pipeline.run.meet", interrupted)
        code, out, err = run_main("release", plan)
    assert (code, out) == (130, "")
    inside = folder / "inside"
    said = (
        f"nothing was released; its key and what it tried stay in {str(inside)!r} (inside, closed to others)"
    )
    assert f"{said}, and the next run of the plan goes on from there" in err
    kept = (inside / "refused" / "key.hex").read_text()
    code, out, _ = run_main("release", plan, "--no-advice")
    assert code in (0, 1), "the weakest noise that meets a tolerance on some draws may miss it on another"
    assert "the key is that of a run that released nothing: what it tried is used" in out
    assert kept == next(inside.glob("*/key.hex")).read_text()


def test_who_stops_the_advice_on_a_refusal_gets_no_other_noise(
    folder: Path, run_main: Main, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr("maskwell.pipeline.advice.plan_advice", interrupted)
        code, _, err = run_main("release", folder / "bad.toml")
    kept = folder / "inside" / "refused" / "key.hex"
    before = kept.read_text()
    assert code == 130
    assert "nothing was released; its key stays in" in err
    code, out, _ = run_main("release", folder / "bad.toml", "--no-advice")
    assert code == 1
    assert "the noise is that of 1 run that was refused" in out
    assert kept.read_text() == before


@pytest.mark.parametrize("fault", [KeyError("4711"), BadInput("there is no column 'X, below 0'")])
def test_a_fault_of_the_advice_costs_no_verdict(
    folder: Path, run_main: Main, monkeypatch: pytest.MonkeyPatch, fault: Exception
) -> None:
    def broken(*_: Any) -> Any:
        raise fault

    monkeypatch.setattr("maskwell.pipeline.advice.candidates", broken)
    code, out, _ = run_main("release", folder / "bad.toml")
    assert code == 1
    assert "who could be found" in out
    said = " ".join(out.split())
    assert f"the search for what would pass broke off: {type(fault).__name__} (" in said
    assert "advice.py, line" in said
    assert "4711" not in out, "a message of another library may have values in it"
    assert ("there is no column" in said) == isinstance(fault, BadInput)
    code, out, _ = run_main("release", folder / "bad.toml", "--json")
    assert code == 1
    assert "pipeline.advice_failed" in [note["code"] for note in json.loads(out)["notes"]]


def test_a_run_that_is_stopped_before_any_noise_leaves_nothing(
    folder: Path, run_main: Main, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = {path.name for path in folder.iterdir()}
    monkeypatch.setattr("maskwell.pipeline.run.floor_of", interrupted)
    code, _, err = run_main("release", folder / "good.toml")
    assert (code, err.splitlines()[-1]) == (130, "stopped during 'fingerprint floor': nothing was released")
    assert err.count("stopped") == 1
    assert {path.name for path in folder.iterdir()} == before


def test_a_search_for_what_would_pass_that_is_stopped_says_what_it_tried_and_goes_on_from_there(
    folder: Path, run_main: Main, monkeypatch: pytest.MonkeyPatch
) -> None:
    from maskwell.pipeline import advice, rehearsal

    monkeypatch.setattr(advice, "MOST_ADVICE", 1)
    made: list[tuple[str, int]] = []  # a scale that fails is left for another one, where numbers begin again
    whole = rehearsal.one_draw

    def counted(case: Any, number: int) -> Any:
        if len(made) == 5:
            raise KeyboardInterrupt
        made.append((repr(case.mask), number))
        return whole(case, number)

    with monkeypatch.context() as patch:
        patch.setattr(rehearsal, "one_draw", counted)
        code, out, err = run_main("release", folder / "bad.toml")
    assert (code, out) == (130, "")
    assert err.count("stopped during") == 1
    assert not err.splitlines()[-1].startswith("stopped")
    assert "its key and what it tried stay in" in err
    tried = err[err.index("tried so far:") :]
    assert "stopped before its 20 draws were made (passed in" in tried
    assert len({*made}) == 5
    again: list[tuple[str, int]] = []

    def other(case: Any, number: int) -> Any:
        again.append((repr(case.mask), number))
        return whole(case, number)

    with monkeypatch.context() as patch:
        patch.setattr(rehearsal, "one_draw", other)
        code, first, _ = run_main("release", folder / "bad.toml")
    assert code == 1
    assert again
    assert not {*made} & {*again}, "the draws that were made are not made again"
    with monkeypatch.context() as patch:
        patch.setattr(rehearsal, "one_draw", interrupted)
        code, second, _ = run_main("release", folder / "bad.toml")
    assert code == 1
    sections = [text[text.index("what would pass") :] for text in (first, second)]
    assert sections[0].split("\nmind")[0] == sections[1].split("\nmind")[0], "all draws were kept"


def test_a_step_far_longer_than_those_before_it_is_no_measure_of_those_that_follow() -> None:
    told = ToldStages()
    told("calibrate", 0, 15)
    told.started["calibrate"] -= 60
    told("calibrate", 1, 15)
    assert told.line().startswith("calibrate, 1 of 15, about 840 s left")
    told.started["calibrate"] -= 30
    assert told.line().startswith("calibrate, 1 of 15, about 810 s left")
    told.started["calibrate"] -= 270
    expected = "calibrate, 1 of 15, this one for 300 s so far (those before took 60 s each)"
    assert told.line().startswith(expected)


def told_after(stage: str, steps: list[float], running: float, costs: tuple[float, ...] = ()) -> str:
    """Return the line of a stage whose steps took so many seconds, while the next one runs."""
    told = ToldStages()
    told.costs(stage, costs)
    total = len(costs) or len(steps) + 1
    told(stage, 0, total)
    for number, seconds in enumerate(steps, start=1):
        told.started[stage] -= seconds
        told(stage, number, total)
    told.started[stage] -= running
    return told.line().split(";")[0]


def test_the_table_of_costs_tells_of_a_step_far_dearer_than_those_before_it() -> None:
    """The ceiling of 8,802 targets: 42 of 44 seconds by the table, on a machine half as fast."""
    costs = (0.1, 0.1, 0.1, 0.4, 0.2, 0.5, 42.0, 0.1)
    before = [1.1, 1.1, 0.9, 1.0, 1.2, 1.5]
    assert told_after("attack", before, 0, costs) == "attack, 6 of 8, about 109 s left"
    assert told_after("attack", before, 48, costs) == "attack, 6 of 8, about 61 s left"
    late = told_after("attack", before, 400, costs)
    assert late == "attack, 6 of 8, this one for 400 s so far (about 109 s were expected)"
    assert told_after("attack", [0.2], 3, (0.1, 40.0)) == "attack, 1 of 2"
    assert told_after("attack", [], 10, (40.0, 1.0)) == "attack, 0 of 2, about 31 s left"


def test_no_time_is_said_to_be_left_of_the_last_step_once_it_takes_longer_than_those_before() -> None:
    assert told_after("attack", [20.0, 20.0], 10) == "attack, 2 of 3, about 10 s left"
    last = told_after("attack", [20.0, 20.0], 45)
    assert last == "attack, 2 of 3, this one for 45 s so far (those before took 20 s each)"
    assert told_after("attack", [0.1, 0.1], 45).endswith(
        "this one for 45 s so far (those before less than 1 s each)"
    )

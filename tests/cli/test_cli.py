"""The command line as a new user meets it."""

from __future__ import annotations

import csv
import errno
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable
from io import StringIO
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

import maskwell as mw
from maskwell import cli
from maskwell.errors import CannotWrite
from maskwell.io import load
from maskwell.table import Table

Run = Callable[..., Any]
HEAVY = ("numba", "pyarrow", "duckdb", "scipy", "pandas", "numpy")


@pytest.fixture
def folder(tmp_path: Path, people: Table, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder one works in, with the people as a CSV file and their schema."""
    mw.write(people, tmp_path / "people.csv")
    (tmp_path / "people.toml").write_text(people.schema.to_toml())
    monkeypatch.chdir(tmp_path)
    return tmp_path


NOISE = ("--columns", "INCOME,TAX", "--r0", "0.9")
FOLDERS = ("--release", "out", "--private", "inside")


def done(ran: Any) -> str:
    assert (ran.code, ran.err) == (0, "")
    return str(ran.out)


def refused(ran: Any) -> str:
    assert (ran.code, ran.out) == (2, "")
    assert "Traceback" not in ran.err
    return str(ran.err)


def left_in(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


# Help.


def test_version_is_printed(run: Run) -> None:
    assert done(run("--version")) == f"maskwell {mw.__version__}\n"


@pytest.mark.parametrize("command", ["inspect", "mask", "demo", "attack", "swap", "study"])
def test_help_of_each_command_has_an_example(run: Run, command: str) -> None:
    text = re.sub(r"\s+", " ", done(run(command, "--help")))
    assert re.search(rf"Examples?:( •)? maskwell {command} ", text)


def test_help_of_the_whole_lists_the_commands(run: Run) -> None:
    assert {"inspect", "mask", "demo", "attack", "swap", "study"} <= set(done(run("--help")).split())


MOST_OPTIONS = 12


@pytest.mark.parametrize("name", [cli._name_of(one).replace("_", "-") for one in cli.app.registered_commands])
def test_no_command_has_many_options(name: str) -> None:
    """What a few options do not say is said by a plan."""
    from typer.main import get_command

    command = get_command(cli.app).commands[name]  # type: ignore[attr-defined]
    options = [one.opts[-1] for one in command.params if one.param_type_name == "option"]
    assert len([one for one in options if one != "--help"]) <= MOST_OPTIONS


def test_help_and_import_load_nothing_heavy() -> None:
    code = f"""
import sys, maskwell
from maskwell import cli
from maskwell.errors import CannotWrite
for words in (["--help"], ["--version"], ["inspect", "--help"], ["mask", "--help"], ["attack", "--help"]):
    sys.argv = ["maskwell", *words]
    try:
        cli.main()
    except SystemExit as ending:
        assert not ending.code
assert dir(maskwell)
loaded = [name for name in {HEAVY!r} if name in sys.modules]
sys.exit(" ".join(loaded) or 0)
"""
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stderr) == (0, "")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("mask", "x.csv", "--relese", "out"), "--release"),
        (("inspct", "x.csv"), "inspect"),
        (("inspect",), "FILE"),
        (("mask", "x.csv", "--r0", "much"), "--r0"),
        (("demo", "--records", "3"), "--records"),
    ],
)
def test_wrong_usage_is_told_what_is_right(run: Run, words: tuple[str, ...], said: str) -> None:
    assert said in refused(run(*words))


def test_it_runs_as_a_module(folder: Path) -> None:
    ran = subprocess.run(
        [sys.executable, "-m", "maskwell", "inspect", "no.csv"], capture_output=True, text=True, check=False
    )
    assert (ran.returncode, ran.stdout) == (2, "")
    assert ran.stderr == "error: the file 'no.csv' cannot be read: No such file or directory\n"


# inspect


def test_inspect_prints_a_schema(run: Run, folder: Path) -> None:
    text = done(run("inspect", "people.csv"))
    assert text.startswith("# read as comma-separated, decimal point\n")
    assert mw.Schema.from_toml(text).id_column == "ID"


def test_inspect_writes_a_schema_that_mask_takes(run: Run, folder: Path) -> None:
    text = done(run("inspect", "people.csv", "--write", "new.toml"))
    assert text.startswith("- read as comma-separated, decimal point\n240 records x 13 columns")
    assert "schema written to new.toml: read it, decide what it asks, then use it with --schema" in text
    done(run("mask", "people.csv", "--schema", "new.toml", "--columns", "TAX", "--r0", 0.9, *FOLDERS))


def test_inspect_overwrites_nothing(run: Run, folder: Path) -> None:
    before = (folder / "people.toml").read_bytes()
    said = refused(run("inspect", "people.csv", "--write", "people.toml"))
    assert said == "error: 'people.toml' is already there; name another file or remove it\n"
    assert (folder / "people.toml").read_bytes() == before
    assert "does not exist" in refused(run("inspect", "people.csv", "--write", "no/people.toml"))


def test_a_schema_cut_short_by_a_full_disk_is_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Full(StringIO):
        def write(self, _: str) -> int:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    path = tmp_path / "new.toml"
    path.touch()  # what the true `open` makes
    monkeypatch.setattr(cli.Path, "open", lambda *_, **__: Full())
    with pytest.raises(CannotWrite, match=r"new.toml' cannot be written: No space left on device"):
        cli._write_new(path, "series")
    assert not path.exists()


AS_IT_IS = {"format": "csv", "encoding": "latin-1", "delimiter": "|", "decimal": "."}


@pytest.fixture
def strange(folder: Path) -> Path:
    """The people in a file without ending, in an encoding and with a delimiter of its own."""
    text = (folder / "people.csv").read_text().replace(",", "|").replace("north", "Sør")
    (folder / "people").write_bytes(text.encode("latin-1"))
    return folder


def test_files_are_read_as_the_options_say(run: Run, strange: Path) -> None:
    no_ending = "the file 'people' has no ending that says its format: name it with the option format"
    assert no_ending in refused(run("inspect", "people"))
    options = [word for name, value in AS_IT_IS.items() for word in (f"--{name}", value)]
    assert "separated by '|', decimal point, as asked" in done(run("inspect", "people", *options))
    assert "a decimal sign needs a delimiter too" in refused(run("inspect", "people", "--decimal", ","))
    assert "'cvs' is not one of csv" in refused(run("inspect", "people", "--format", "cvs"))


def test_files_are_masked_as_a_plan_says_to_read_them(run: Run, strange: Path) -> None:
    no_ending = "the file 'people' has no ending that says its format: name it with the option format"
    assert no_ending in refused(run("mask", "people", *NOISE, *FOLDERS))
    lines = "".join(f'{name} = "{value}"\n' for name, value in AS_IT_IS.items())
    path = plan(strange)
    text = path.read_text().replace('"people.csv"\nschema = "people.toml"', f'"people"\n{lines}')
    path.write_text(text.replace('"INCOME", "TAX"', '"TAX"'))
    assert "separated by '|', decimal point, as asked" in done(run("mask", path))


@pytest.mark.parametrize("command", [("inspect",), ("mask", *NOISE, *FOLDERS)], ids=lambda words: words[0])
def test_what_is_no_file_is_refused(run: Run, folder: Path, command: tuple[str, ...]) -> None:
    assert "the file 'no' cannot be read: No such file or directory" in refused(run(*command, "no"))
    assert "'.' is not a file" in refused(run(*command, "."))
    (folder / "people.xlsx").write_bytes(b"PK")
    assert "the format 'xlsx' is not one of csv," in refused(run(*command, "people.xlsx"))


# mask, by options


def test_mask_writes_both_halves(run: Run, folder: Path) -> None:
    text = done(run("mask", "people.csv", "--schema", "people.toml", *NOISE, *FOLDERS))
    assert text.startswith("240 records masked\n")
    assert left_in(folder / "out") == {"data.csv", "card.json", "schema.toml", "codebook.md", "manifest.json"}
    assert (folder / "inside").stat().st_mode & 0o777 == 0o700
    assert left_in(folder) == {"people.csv", "people.toml", "out", "inside"}
    assert mw.read_release("out").card.columns == ("INCOME", "TAX")


def test_without_columns_the_keys_are_masked(run: Run, folder: Path) -> None:
    done(run("mask", "people.csv", "--schema", "people.toml", "--variance-ratio", 0.1, *FOLDERS))
    card = mw.read_release("out").card
    assert card.columns == ("INCOME", "TAX", "AGE")
    assert card.laws[0].noise.correlations == ()
    text = (folder / "people.toml").read_text().replace('"key"', '"sensitive"')
    (folder / "people.toml").write_text(text)
    said = refused(run("mask", "people.csv", "--schema", "people.toml", "--r0", 0.9, *FOLDERS))
    assert "no number has the role key: name the columns to mask" in said


@pytest.mark.parametrize(
    ("options", "kind"),
    [(("--r0", 0.9), (1 / 9) ** 0.5), (("--sd-ratio", 0.5), 0.5), (("--variance-ratio", 0.25), 0.5)],
)
def test_the_noise_is_as_large_as_asked(
    run: Run, folder: Path, options: tuple[Any, ...], kind: float
) -> None:
    done(
        run(
            "mask", "people.csv", "--schema", "people.toml", "--columns", " TAX , INCOME,", *options, *FOLDERS
        )
    )
    sds = mw.read("people.csv", "people.toml").values(["TAX", "INCOME"])
    expected = [kind * float(column[column == column].std(ddof=1)) for column in sds.T]
    assert mw.read_release("out").card.laws[0].noise.sds == pytest.approx(
        expected, rel=0.11
    )  # 12 sizes a decade for 240 records


def test_all_missing_options_are_listed(run: Run, folder: Path) -> None:
    said = refused(run("mask", "people.csv", "--r0", 0.9, "--sd-ratio", 0.2))
    assert said.startswith("error: 3 problems:")
    for words in (
        "--release is needed",
        "--private is needed",
        "exactly one of --r0, --sd-ratio (correlated)",
    ):
        assert words in said
    assert "r0 must lie above 0" in refused(run("mask", "people.csv", "--r0", 3, *FOLDERS))


def test_an_unknown_format_of_the_release_is_refused_before_any_work(run: Run, folder: Path) -> None:
    (folder / "people.csv").write_bytes(b"")  # reading it would be refused
    said = refused(run("mask", "people.csv", *NOISE, *FOLDERS, "--format", "xls"))
    assert "[output]: the format 'xls' is not one of csv," in said


def test_private_inside_public_is_refused(run: Run, folder: Path) -> None:
    for private in ("out/inside", "out", "out/../out/x"):
        said = refused(run("mask", "people.csv", *NOISE, "--release", "out", "--private", private))
        assert (
            said
            == f"error: the private folder {private} lies in the public one, out; choose one outside it\n"
        )
    assert left_in(folder) == {"people.csv", "people.toml"}


def test_a_seed_marks_the_release(run: Run, folder: Path) -> None:
    for name in ("one", "two"):
        folders = ("--release", name, "--private", "inside", "--seed", 5, "--study")
        text = done(run("mask", "people.csv", "--schema", "people.toml", *NOISE, *folders))
        assert "The noise comes from a small seed: for studies, not for release." in text
    assert (folder / "one-study/data.csv").read_bytes() == (folder / "two-study/data.csv").read_bytes()
    assert mw.read_release("one-study").card.seeded
    assert left_in(folder) == {"people.csv", "people.toml", "one-study", "two-study", "inside-study"}


def test_a_seed_that_nobody_called_a_study_is_no_release(run: Run, folder: Path) -> None:
    before = left_in(folder)
    ran = run("mask", "people.csv", "--schema", "people.toml", *NOISE, *FOLDERS, "--seed", 5)
    assert ran.code == 1
    assert ran.err.startswith("error: a run by a seed is a study and no release")
    assert run("demo", "--seed", 5).code == 1
    assert left_in(folder) == before


def test_warnings_that_are_no_notes_are_said(run: Run, folder: Path) -> None:
    text = (folder / "people.toml").read_text().replace("missing = [-9, -8]", 'missing = [-9, -8, "NA"]')
    (folder / "people.toml").write_text(text)
    lines = (folder / "people.csv").read_text().replace(",-8,", ",NA,")
    (folder / "people.csv").write_text(lines)
    ran = run("mask", "people.csv", "--schema", "people.toml", *NOISE, *FOLDERS, "--format", "parquet")
    assert ran.code == 0
    assert (
        ran.err == "warning: column 'AGE': its missing codes that are text become plain missing values here\n"
    )


def test_nested_releases(run: Run, folder: Path) -> None:
    def mask(ratio: float, release: str, *options: object) -> Any:
        folders = ("--release", release, "--private", "inside")
        common = ("mask", "people.csv", "--schema", "people.toml", "--columns", "INCOME,TAX")
        return run(*common, "--sd-ratio", ratio, *folders, *options)

    done(mask(0.2, "first"))
    assert "release 2 of the series: 240 records keep their earlier noise" in done(
        mask(0.3, "second", "--earlier", "first")
    )
    assert "release 3 of the series" in done(mask(0.4, "third", "--earlier", "second"))
    before = left_in(folder)
    assert "smaller than the earlier one" in refused(mask(0.25, "fourth", "--earlier", "third"))
    seeded = mask(0.5, "fourth", "--earlier", "third", "--seed", 3, "--study")
    assert "third-study" in refused(seeded)  # a study is nested in studies
    assert left_in(folder) == before
    first, second = (mw.Masking.read(release=name, private="inside") for name in ("first", "second"))
    assert first.key == second.key
    assert len(list((folder / "inside").iterdir())) == 3


FORMATS = ("csv", "tsv", "parquet", "arrow", "sav", "zsav", "dta", "xpt")


@pytest.mark.parametrize("ending", FORMATS)
def test_formats_come_in_and_go_out(run: Run, folder: Path, people: Table, ending: str) -> None:
    names = ["ID", "REGION", "INCOME", "TAX", "SEX"]
    mw.write(people.select(names), folder / f"part.{ending}")
    (folder / "part.toml").write_text(people.select(names).schema.to_toml())
    assert "[columns.INCOME]" in done(run("inspect", f"part.{ending}"))
    done(run("mask", f"part.{ending}", "--schema", "part.toml", *NOISE, *FOLDERS))
    kept = {"tsv": "csv", "zsav": "sav"}.get(ending, ending)
    assert load(f"out/data.{kept}").data.column_names == names
    done(run("mask", "people.csv", "--schema", "people.toml", *NOISE, *FOLDERS, "--format", ending))
    assert len(mw.read_release("out")) == 240
    assert (folder / "out" / f"data.{ending}").exists()


# mask, by a plan


def plan(folder: Path, name: str = "plan.toml", **output: str) -> Path:
    said = {"release": "out", "private": "inside"} | output
    lines = "".join(f'{key} = "{value}"\n' for key, value in said.items())
    path = folder / name
    path.write_text(
        f'[input]\nfile = "people.csv"\nschema = "people.toml"\n[output]\n{lines}'
        '[[masks]]\nmask = "CorrelatedNoise"\ncolumns = ["INCOME", "TAX"]\nr0 = 0.9\n'
    )
    return path


def test_a_plan_is_run_from_anywhere(run: Run, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    elsewhere = folder / "elsewhere"
    elsewhere.mkdir()
    plan(folder)
    monkeypatch.chdir(elsewhere)
    assert "may leave:     ../out/" in done(run("mask", "../plan.toml"))
    assert left_in(folder) == {"people.csv", "people.toml", "plan.toml", "elsewhere", "out", "inside"}
    assert left_in(elsewhere) == set()


def test_a_plan_takes_no_options_but_the_seed(run: Run, folder: Path) -> None:
    options = ("--release", "x", "--schema", "people.toml", "--r0", "0.9")
    said = refused(run("mask", plan(folder, "plan.TOML"), *options))
    assert "a plan says it all: write --r0, --release, --schema into the plan instead" in said
    assert "small seed" in done(run("mask", plan(folder), "--seed", 3, "--study"))


def test_a_plan_can_nest_and_change_the_format(run: Run, folder: Path) -> None:
    done(run("mask", plan(folder)))
    louder = plan(folder, "louder.toml", release="second", earlier="out", format="parquet")
    louder.write_text(louder.read_text().replace("0.9", "0.8"))
    assert "release 2 of the series" in done(run("mask", louder))
    assert pq.read_table(folder / "second/data.parquet").num_rows == 240


SECTIONS = {
    "IndependentNoise": 'columns = "TAX"\nvariance_ratio = 0.1\nspread = { form = "power", exponent = 1.0 }',
    "CorrelatedNoise": 'columns = ["INCOME", "TAX"]\nsd_ratio = 0.2\nlimits = { TAX = { low = 0 } }',
    "MixtureNoise": 'columns = "TAX"\nvariance_ratio = 0.2\nwithin_variance_ratio = 0.05',
    "BiasNoise": 'columns = "TAX"\nbias_sd = 0.1\nsd_ratio = 0.1',
    "CodeNoise": 'columns = "EDU"\nvariance = 0.2',
    "Pram": 'columns = "SEX"\nmatrix = [[0.8, 0.2], [0.1, 0.9]]',
    "Grouping": 'columns = "EDU"\ngroups = { low = ["low", "middle"], high = ["high"] }',
    "Coding": 'columns = "AGE"\ntop = 80',
    "RankSwap": 'columns = "AGE"\nwindow_ratio = 0.05',
    "Subsample": "fraction = 0.5",
    "Recompute": 'column = "TOTAL"\nparts = { WAGE = 1, OTHER = 1 }',
}


@pytest.mark.parametrize("name", [name for name in mw.masks.MASKS if name != "Chain"])
def test_every_mask_runs_from_a_plan(run: Run, folder: Path, name: str) -> None:
    text = plan(folder).read_text().partition("[[masks]]")[0]
    (folder / "plan.toml").write_text(f'{text}[[masks]]\nmask = "{name}"\n{SECTIONS[name]}\n')
    done(run("mask", "plan.toml", "--seed", 2, "--study"))
    release = mw.read_release("out-study")
    columns = re.findall(r'"([A-Z]+)"', SECTIONS[name].splitlines()[0])
    assert set(columns) == {*release.card.columns, *(total for total, _ in release.card.recomputed)}
    with (folder / "out-study/data.csv").open(newline="") as file:
        records = list(csv.DictReader(file))
    assert len(records) == len(release) == (release.card.records or 0)
    assert (len(records) == 240) == (name != "Subsample")
    if name == "CorrelatedNoise":
        assert min(float(record["TAX"]) for record in records if record["TAX"]) >= 0
    if name == "Grouping":
        assert {record["EDU"] for record in records} == {"low", "high", "?"}


# Stopping, failing, waiting.


def test_ctrl_c_while_masking_leaves_nothing(run: Run, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    before = left_in(folder)
    for where in (
        "maskwell.pipeline.plan_files.apply",
        "maskwell.masking.release_files.codebook",
        "maskwell.masking.release_files._write_links",
    ):
        with monkeypatch.context() as patch:
            patch.setattr(where, interrupted)
            ran = run("mask", "people.csv", "--schema", "people.toml", *NOISE, *FOLDERS)
        assert (ran.code, ran.out, ran.err) == (130, "", "stopped\n")
        assert left_in(folder) == before


def test_a_signal_in_the_midst_of_masking_stops_it(folder: Path) -> None:
    """A true process, stopped when it has begun to write; nothing of it stays, in the temporary folder neither."""
    code = """
import os, signal, sys, maskwell.masking.release_files as stored
number = getattr(signal, sys.argv.pop())
stored.codebook = lambda release: os.kill(os.getpid(), number)
from maskwell.cli import main
main()
"""
    (folder / "tmp").mkdir()
    before = left_in(folder)
    for name in ("SIGINT", "SIGTERM"):
        words = [
            "mask",
            "people.csv",
            "--schema",
            "people.toml",
            *NOISE,
            *FOLDERS,
            name,
        ]
        ran = subprocess.run(
            [sys.executable, "-c", code, *words],
            env=os.environ | {"TMPDIR": str(folder / "tmp")},
            capture_output=True,
            text=True,
            check=False,
        )
        assert (ran.returncode, ran.stdout, ran.stderr) == (130, "", "stopped\n")
        assert left_in(folder) == before
        assert left_in(folder / "tmp") == set()


def test_polite_signals_clean_up_and_ignored_ones_stay_ignored() -> None:
    known = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGHUP)}
    try:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        signal.signal(signal.SIGHUP, signal.SIG_IGN)  # as nohup does
        cli._stop_cleanly()
        assert signal.getsignal(signal.SIGTERM) is signal.default_int_handler
        assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    finally:
        for number, handler in known.items():
            signal.signal(number, handler)


def test_a_fault_of_our_own_quotes_no_value(run: Run, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object, **__: object) -> None:
        raise ValueError("could not convert 731640259")

    monkeypatch.setattr("maskwell.pipeline.plan_files.inspect_file", broken)
    ran = run("inspect", "people.csv")
    assert (ran.code, ran.out) == (cli.FAULT_EXIT_CODE, "")
    assert re.fullmatch(
        r"error: a fault of maskwell's own \(ValueError in test_cli\.py, line \d+\): .*\n", ran.err
    )
    assert "731640259" not in ran.err
    monkeypatch.setenv("MASKWELL_TRACEBACK", "1")
    monkeypatch.setattr(sys, "argv", ["maskwell", "inspect", "people.csv"])
    with pytest.raises(ValueError, match="could not convert"):
        cli.main()


def test_long_work_shows_a_bar_at_a_terminal(run: Run, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    words = ("mask", "people.csv", "--schema", "people.toml", *NOISE, *FOLDERS)
    monkeypatch.setenv("FORCE_COLOR", "1")  # rich then takes the output for a terminal
    assert "masking" not in run(*words).err
    monkeypatch.setattr(cli, "LONG", 1)
    ran = run(*words)
    assert ran.code == 0
    assert "100%" in ran.err
    monkeypatch.setattr(cli, "LONG_BYTES", 1)
    assert "reading" in run(*words).err
    monkeypatch.delenv("FORCE_COLOR")
    assert done(run(*words)).startswith("240 records masked")


# demo


def test_demo_can_write_its_files_alone(run: Run, folder: Path) -> None:
    said = done(run("demo", "--records", 1000, "--files-only", "--folder", "a/demo"))
    assert said.startswith("The built-in housing survey, 1,000 records: a/demo/survey.csv\n")
    written = sorted(path.name for path in (folder / "a/demo").iterdir())
    assert written == [
        "plan.refused.toml",
        "plan.toml",
        "survey.csv",
        "survey.fewer.schema.toml",
        "survey.schema.toml",
    ]


def test_demo_into_a_file_is_refused(run: Run, folder: Path) -> None:
    said = refused(run("demo", "--folder", "people.csv/demo"))
    assert said == "error: the folder 'people.csv/demo' cannot be made: Not a directory; choose another\n"

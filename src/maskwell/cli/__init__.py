"""The command line: reads arguments, calls the library, prints; it computes nothing."""

from __future__ import annotations

import os
import signal
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from inspect import signature
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer

from ..errors import BadPlan, CannotWrite, MaskwellError, OtherEncoding
from ..notes import texts
from ..studies.command import study
from .attack_command import attack, swap
from .audit_command import audit, compare
from .calibrate_command import calibrate, fingerprint
from .demo_command import demo
from .file_options import (
    ColumnsOption,
    DecimalOption,
    DelimiterOption,
    EncodingOption,
    FileArgument,
    InputFormatOption,
    PlanArgument,
    SchemaOption,
    SeedOption,
    StudyOption,
    given_options,
    is_plan,
    noise,
)
from .fit_command import fit
from .messages import warnings_told
from .new_command import new
from .release_command import STOPPED_EXIT_CODE, ToldStop
from .release_command import release as release_plan
from .seal_command import seal, unseal
from .value_of_card import card_value

if TYPE_CHECKING:
    from ..masking import Masking
    from ..plan import MaskPlan

LONG = 300_000  # records from which on a progress bar is shown
LONG_BYTES = 20_000_000
FAULT_EXIT_CODE = 70  # a fault of our own is neither the answer no (1) nor bad input (2)

app = typer.Typer(
    name="maskwell",
    help="Release confidential microdata by noise.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
)


def _print_version(asked: bool) -> None:
    if asked:
        from .. import __version__

        typer.echo(f"maskwell {__version__}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and stop."),
    ] = False,
) -> None:
    """Release confidential microdata by noise."""


@app.command()
def inspect(
    file: FileArgument,
    write: Annotated[
        Path | None, typer.Option("--write", help="Write the proposed schema to this new file.")
    ] = None,
    encoding: EncodingOption = None,
    delimiter: DelimiterOption = None,
    decimal: DecimalOption = None,
    input_format: InputFormatOption = None,
) -> None:
    """Look at a file: propose a schema, and say what a person must decide.

    Example: `maskwell inspect survey.csv --write survey.schema.toml`
    """
    from ..pipeline import inspect_file
    from ..plan import InputPlan

    if write is not None:
        _check_new(write)
    read_as = given_options(encoding=encoding, delimiter=delimiter, decimal=decimal, format=input_format)
    with warnings_told() as told:
        proposal, notes = inspect_file(InputPlan(file=file, **read_as))
        told.extend(texts(notes))
    if write is None:
        typer.echo("".join(f"# {note}\n" for note in notes) + proposal.to_toml(), nl=False)
        return
    _write_new(write, proposal.to_toml())
    typer.echo("".join(f"- {note}\n" for note in notes) + proposal.summary())
    typer.echo(f"schema written to {write}: read it, decide what it asks, then use it with --schema")


def _check_new(path: Path) -> None:
    """Refuse, before any work, a file that is there already or a folder that is not."""
    if os.path.lexists(path):
        raise CannotWrite(f"{str(path)!r} is already there; name another file or remove it")
    if not os.access(path.parent, os.W_OK | os.X_OK):
        raise CannotWrite(f"the folder {str(path.parent)!r} does not exist or is not writable")


def _write_new(path: Path, text: str) -> None:
    try:
        file = path.open("x", encoding="utf-8")
    except OSError as error:
        raise CannotWrite(f"{str(path)!r} cannot be written: {error.strerror}") from None
    try:
        with file:
            file.write(text)
    except OSError as error:
        path.unlink()
        raise CannotWrite(f"{str(path)!r} cannot be written: {error.strerror}") from None


@app.command()
def mask(
    what: PlanArgument,
    columns: ColumnsOption = None,
    r0: Annotated[
        float | None, typer.Option(help="Correlated noise by its non-distortion factor, e.g. 0.97.")
    ] = None,
    sd_ratio: Annotated[float | None, typer.Option(help="Correlated noise by Kim's c, e.g. 0.2.")] = None,
    variance_ratio: Annotated[float | None, typer.Option(help="Independent noise, e.g. 0.1.")] = None,
    release: Annotated[Path | None, typer.Option(help="The folder that may leave.")] = None,
    private: Annotated[Path | None, typer.Option(help="The folder that stays: key, links, truth.")] = None,
    earlier: Annotated[
        Path | None, typer.Option(help="An earlier release of the same records to nest in.")
    ] = None,
    schema: SchemaOption = None,
    format: Annotated[
        str | None,
        typer.Option(help="Of the release: csv, parquet, arrow, sav, dta, xpt.", show_default="that of FILE"),
    ] = None,
    seed: SeedOption = None,
    study: StudyOption = False,
) -> None:
    """Mask a file and write the release: data, noise card, codebook, and a private folder for you.

    How a file is read that is not as usual (encoding, delimiter, decimal, format) is said under [input] in a plan.

    Examples:

    - `maskwell mask plan.toml`

    - `maskwell mask survey.csv --columns INCOME,TAXES --r0 0.97 --release out --private inside`
    """
    from ..pipeline.study import check_study, study_plan
    from ..plan import MaskPlan

    check_study(seed, study)
    ratios = given_options(r0=r0, sd_ratio=sd_ratio, variance_ratio=variance_ratio)
    output = given_options(release=release, private=private, earlier=earlier, format=format)
    read_as = given_options(schema=schema)
    if is_plan(what, given_options(columns=columns) | ratios | output | read_as):
        plan = MaskPlan.read(what)
    else:
        plan = _plan_of_options({"file": what} | read_as, output, columns, ratios)
    _run(study_plan(plan) if study else plan, seed)


def _plan_of_options(
    source: dict[str, Any], output: dict[str, Any], columns: str | None, ratios: dict[str, float]
) -> MaskPlan:
    from ..plan import MaskPlan

    problems = [f"--{name} is needed: a folder" for name in ("release", "private") if name not in output]
    if len(ratios) != 1:
        problems.append(
            "say how much noise: exactly one of --r0, --sd-ratio (correlated) and --variance-ratio (independent)"
        )
    if problems:
        raise BadPlan(problems)
    kind = "IndependentNoise" if "variance_ratio" in ratios else "CorrelatedNoise"
    return MaskPlan.from_dict({"input": source, "output": output, "masks": [noise(kind, columns, **ratios)]})


def _run(plan: MaskPlan, seed: int | None) -> None:
    from ..pipeline import check_folders, mask_by_plan, unrelated_releases

    check_folders(plan)
    beside = unrelated_releases(plan) if seed is None else []
    with warnings_told() as told, _progress(plan.input.file) as show:
        masking = mask_by_plan(plan, seed=seed, progress=show)
        told.extend(texts(masking.notes))
        summary = _written(masking, plan.output.release, plan.output.private, plan.output.format)
    typer.echo("\n".join([summary, *(f"\nmind: {text}" for text in beside)]))


def _written(masking: Masking, release: Path, private: Path, format: str | None) -> str:
    """Write both halves and return the summary, which is made first: it cannot fail after the writing."""
    from ..report import masking_summary

    summary = masking_summary(masking, release, private)
    masking.write(release=release, private=private, format=format)
    return summary


@contextmanager
def _progress(file: Path | None = None) -> Iterator[Callable[[int, int], None]]:
    """Show a bar on long work (a large file, many records) at a terminal; short work is silent."""
    from rich.console import Console
    from rich.progress import Progress

    console = Console(stderr=True)
    large = file is not None and file.is_file() and file.stat().st_size >= LONG_BYTES
    with Progress(console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task("reading", total=None, visible=large)

        def show(done: int, total: int) -> None:
            stage = "masking" if done < total else "writing"
            bar.update(task, description=stage, completed=done, total=total, visible=large or total >= LONG)

        yield show


app.command()(demo)
app.command("release")(release_plan)
for command in (
    new,
    fit,
    attack,
    card_value,
    swap,
    calibrate,
    fingerprint,
    compare,
    audit,
    seal,
    unseal,
    study,
):
    app.command()(command)


def main() -> None:
    """Run the command line; errors are sentences on standard error, with exit code 2."""
    _stop_cleanly()
    try:
        app(prog_name="maskwell")
    except OtherEncoding as error:
        _refuse(f"{error.fault}: {_encoding_hint(error.encoding)}", error.exit_code)
    except MaskwellError as error:
        _refuse(str(error), error.exit_code)
    except MemoryError:
        _refuse("there is not enough memory: use a machine with more, or read fewer records or columns", 2)
    except SystemExit as ending:
        if ending.code == STOPPED_EXIT_CODE and not isinstance(ending, ToldStop):
            typer.echo("stopped", err=True)
        raise
    except Exception as error:
        if "MASKWELL_TRACEBACK" in os.environ:
            raise
        _refuse(_fault(error), FAULT_EXIT_CODE)


def _stop_cleanly() -> None:
    """Let a polite kill or a closed terminal clean up as Ctrl-C does: no copy of the data stays behind."""
    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is signal.SIG_DFL:
            signal.signal(number, signal.default_int_handler)


def _refuse(text: str, exit_code: int) -> NoReturn:
    typer.echo(f"error: {text}", err=True)
    sys.exit(exit_code)


def _encoding_hint(encoding: str) -> str:
    """Say how the command at hand reads a file in another encoding: by its plan, by an option, or not at all."""
    name, *rest = sys.argv[1:] or [""]
    if any(word.endswith(".toml") for word in rest[:1]):
        return f'put encoding = "{encoding}" under [input] in the plan'
    command = next((one for one in app.registered_commands if _name_of(one) == name), None)
    taken = signature(command.callback).parameters if command is not None and command.callback else {}
    if "encoding" in taken:
        return f"read it with --encoding {encoding}"
    in_plan = f'put encoding = "{encoding}" under [input] in a plan'
    return in_plan if "what" in taken else "save it in UTF-8"


def _name_of(command: typer.models.CommandInfo) -> str:
    return str(command.name or getattr(command.callback, "__name__", ""))


def _fault(error: Exception) -> str:
    """Say where a fault of our own lies, never its message, which may quote a value."""
    place = traceback.extract_tb(error.__traceback__)[-1]
    return (
        f"a fault of maskwell's own ({type(error).__name__} in {Path(place.filename).name}, line {place.lineno}): "
        "please report it (MASKWELL_TRACEBACK=1 shows all, values of the data perhaps among it)"
    )


if __name__ == "__main__":
    main()

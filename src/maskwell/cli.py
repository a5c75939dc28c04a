"""The command line: reads arguments, calls the library, prints; it computes nothing."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from .errors import BadPlan, MaskwellError, MaskwellWarning

if TYPE_CHECKING:
    from .masking import Masking
    from .plan import MaskPlan
    from .table import Table

LONG = 300_000  # records from which on a progress bar is shown

app = typer.Typer(
    name="maskwell",
    help="Release confidential microdata by noise, and analyse what was released.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
)

SchemaOption = Annotated[
    Path | None, typer.Option("--schema", help="The schema (TOML); else one is proposed.")
]
EncodingOption = Annotated[str, typer.Option(help="The encoding of a CSV file.")]
SeedOption = Annotated[int | None, typer.Option(help="For studies only: the release is marked as such.")]
FormatOption = Annotated[str | None, typer.Option("--format", help="csv, parquet, arrow, sav, dta or xpt.")]


@app.callback()
def options(
    version: Annotated[bool, typer.Option("--version", help="Print the version and stop.")] = False,
) -> None:
    """Release confidential microdata by noise, and analyse what was released."""
    if version:
        from . import __version__

        typer.echo(f"maskwell {__version__}")
        raise typer.Exit


@app.command()
def inspect(
    file: Annotated[Path, typer.Argument(help="A CSV, Parquet, Arrow, SPSS, Stata or SAS file.")],
    write: Annotated[
        Path | None, typer.Option("--write", help="Write the proposed schema to this file.")
    ] = None,
    encoding: EncodingOption = "utf-8",
) -> None:
    """Look at a file: propose a schema, and say what a person must decide.

    Example: `maskwell inspect survey.csv --write survey.schema.toml`
    """
    from .pipeline import inspect_file

    proposal, notes = inspect_file(file, encoding=encoding)
    for note in notes:
        typer.echo(f"- {note}")
    if write is None:
        typer.echo(proposal.to_toml(), nl=False)
        return
    _write_new(write, proposal.to_toml())
    typer.echo(proposal.summary())
    typer.echo(f"schema written to {write}: read it, decide what it asks, then use it with --schema")


def _write_new(path: Path, text: str) -> None:
    from .errors import CannotWrite

    try:
        with path.open("x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError:
        raise CannotWrite(f"{str(path)!r} is already there; name another file or remove it") from None
    except OSError as error:
        raise CannotWrite(f"{str(path)!r} cannot be written: {error.strerror}") from None


@app.command()
def mask(
    what: Annotated[Path, typer.Argument(help="A plan (TOML), or a data file together with options.")],
    columns: Annotated[
        str | None, typer.Option(help="Columns to mask, with commas; else the key columns.")
    ] = None,
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
    format: FormatOption = None,
    encoding: EncodingOption = "utf-8",
    seed: SeedOption = None,
) -> None:
    """Mask a file and write the release: data, noise card, codebook, and a private folder for you.

    Examples: `maskwell mask plan.toml`, or
    `maskwell mask survey.csv --columns INCOME,TAXES --r0 0.97 --release out --private inside`
    """
    if what.suffix == ".toml":
        from .plan import MaskPlan

        _refuse_options(
            columns=columns, r0=r0, sd_ratio=sd_ratio, variance_ratio=variance_ratio, release=release,
            private=private, schema=schema, format=format, earlier=earlier,
        )  # fmt: skip
        plan = MaskPlan.read(what)
    else:
        ratios = {"r0": r0, "sd_ratio": sd_ratio, "variance_ratio": variance_ratio}
        folders = {"release": release, "private": private, "earlier": earlier}
        plan = _plan_of_options(what, columns, ratios, folders, schema, format, encoding)
    _run(plan, seed)


def _refuse_options(**given: Any) -> None:
    present = [f"--{name.replace('_', '-')}" for name, value in given.items() if value is not None]
    if present:
        raise BadPlan(f"a plan says it all: write {', '.join(present)} into the plan instead")


def _plan_of_options(
    file: Path,
    columns: str | None,
    ratios: dict[str, float | None],
    folders: dict[str, Path | None],
    schema: Path | None,
    format: str | None,
    encoding: str,
) -> MaskPlan:
    from .plan import MaskPlan

    given = {name: value for name, value in ratios.items() if value is not None}
    problems = []
    if len(given) != 1:
        problems.append(
            "say how much noise: exactly one of --r0, --sd-ratio (correlated) and --variance-ratio"
        )
    problems += [f"--{name} is needed: a folder" for name in ("release", "private") if folders[name] is None]
    if problems:
        raise BadPlan(problems)
    kind = "IndependentNoise" if "variance_ratio" in given else "CorrelatedNoise"
    chosen = columns.split(",") if columns else _key_columns(file, schema, encoding)
    data = {
        "input": {"file": file, "encoding": encoding} | ({"schema": schema} if schema else {}),
        "output": {name: value for name, value in folders.items() if value}
        | ({"format": format} if format else {}),
        "masks": [{"mask": kind, "columns": chosen, **given}],
    }
    return MaskPlan.from_dict(data)


def _key_columns(file: Path, schema: Path | None, encoding: str) -> list[str]:
    from .io import read

    described = read(file, schema, encoding=encoding).schema
    chosen = [name for name in described.with_role("key") if described[name].is_number]
    if not chosen:
        raise BadPlan("no column has the role key: name the columns to mask with --columns")
    return chosen


def _run(plan: MaskPlan, seed: int | None) -> None:
    from .pipeline import check_folders, mask_by_plan
    from .report import masking_summary

    check_folders(plan)
    with _progress() as show:
        masking = mask_by_plan(plan, seed=seed, progress=show)
    masking.write(release=plan.output.release, private=plan.output.private, format=plan.output.format)
    typer.echo(masking_summary(masking, plan.output.release, plan.output.private))


@contextmanager
def _progress() -> Iterator[Callable[[int, int], None]]:
    """Show a bar on long work; short work is silent."""
    from rich.console import Console
    from rich.progress import Progress

    console = Console(stderr=True)
    with Progress(console=console, transient=True, disable=not console.is_terminal) as bar:
        task: list[Any] = []

        def show(done: int, total: int) -> None:
            if total >= LONG:
                if not task:
                    task.append(bar.add_task("masking", total=total))
                bar.update(task[0], completed=done)

        yield show


@app.command()
def demo(
    folder: Annotated[Path, typer.Option("--folder", help="Where to put the demo's files.")] = Path("demo"),
    records: Annotated[int, typer.Option(help="The size of the survey.")] = 64_998,
    seed: SeedOption = None,
) -> None:
    """Make the built-in housing survey, mask it by Kim's noise and write the release.

    Example: `maskwell demo --folder demo`
    """
    from .datasets import housing
    from .pipeline import demo_masking
    from .report import masking_summary

    folder.mkdir(parents=True, exist_ok=True)
    typer.echo(
        f"The built-in housing survey ({records:,} records), masked by Kim's correlated noise with R0 = 0.97.\n"
    )
    survey: Table = housing(records)
    with _progress() as show:
        masking: Masking = demo_masking(survey, seed=seed, progress=show)
    release, private = folder / "release", folder / "private"
    masking.write(release=release, private=private, format="csv")
    typer.echo(masking_summary(masking, release, private))


def main() -> None:
    """Run the command line; errors are sentences on standard error, with exit code 2."""
    warnings.simplefilter("ignore", MaskwellWarning)
    try:
        app(prog_name="maskwell")
    except MaskwellError as error:
        typer.echo(f"error: {error}", err=True)
        sys.exit(error.exit_code)


if __name__ == "__main__":
    main()

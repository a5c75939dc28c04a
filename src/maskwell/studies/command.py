"""`maskwell study`: runs a published study again and prints what was published beside what we find."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

from . import SEED, STUDIES, check_pictures, chosen_tables, draw_study, run_study, table_names

NameArgument = Annotated[str | None, typer.Argument(metavar="[NAME]", help=f"One of {', '.join(STUDIES)}.")]


def study(
    name: NameArgument = None,
    table: Annotated[
        str | None, typer.Option(help="One table of the study only.", show_default="all")
    ] = None,
    replicates: Annotated[
        int | None,
        typer.Option(min=1, help="How often data and noise are drawn anew.", show_default="the study's"),
    ] = None,
    seed: Annotated[
        int, typer.Option(min=0, help="Where the draws start; the same seed gives the same figures.")
    ] = SEED,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    pictures: Annotated[
        Path | None, typer.Option(metavar="FOLDER", help="Also draw pictures (PNG) into this folder.")
    ] = None,
) -> None:
    """Run a published study again: what was published beside what we find.

    Beside our figure, the mean over replicates, stands the range from the smallest to the largest of them; from 20
    replicates on, their 5-95% band.

    Examples:

    - `maskwell study` lists the studies

    - `maskwell study hawala --table 3`

    - `maskwell study hawala --json --pictures drawn`
    """
    if name is None:
        typer.echo(_study_list())
        return
    chosen_tables(name, table)
    if pictures is not None:
        _prepare(pictures)
    with _progress(name) as show:
        result = run_study(name, table=table, replicates=replicates, seed=seed, progress=show)
    typer.echo(json.dumps(result.to_dict(), indent=2, allow_nan=False) if as_json else result.text())
    if pictures is not None:
        drawn = [f"drawn: {path}" for path in draw_study(result, pictures)]
        typer.echo("\n".join(drawn or [f"table {table} has no picture"]), err=as_json)


def _prepare(folder: Path) -> None:
    """Refuse pictures that cannot be drawn or written before the work begins."""
    from ..cli.demo_command import make_folder

    check_pictures()
    make_folder(folder)


def _study_list() -> str:
    width = max(map(len, STUDIES))
    lines = ["the studies; run one with maskwell study NAME", ""]
    for name, title in STUDIES.items():
        lines += [f"  {name:<{width}}  {title}", f"  {'':<{width}}  tables: {', '.join(table_names(name))}"]
    return "\n".join(lines)


@contextmanager
def _progress(name: str) -> Iterator[Callable[[int, int], None]]:
    """Show a bar at a terminal, on standard error."""
    from rich.console import Console
    from rich.progress import Progress

    console = Console(stderr=True)
    with Progress(console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task(f"study {name}", total=None)

        def show(done: int, total: int) -> None:
            bar.update(task, completed=done, total=total)

        yield show

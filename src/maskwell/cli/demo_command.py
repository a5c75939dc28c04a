"""`maskwell demo`: the whole job on the built-in survey, refused and then passed, and a recipient's model."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..errors import CannotWrite
from .file_options import SeedOption, StudyOption
from .release_command import NO, ToldStages, summary

if TYPE_CHECKING:
    from ..pipeline import Outcome
    from ..pipeline.demo import Recipient
    from ..table import Table


def demo(
    folder: Annotated[Path, typer.Option("--folder", help="Where to put the demo's files.")] = Path("demo"),
    records: Annotated[int, typer.Option(min=1000, help="The size of the survey.")] = 64_998,
    files_only: Annotated[
        bool, typer.Option("--files-only", help="Write the survey, its schemas and both plans, and stop.")
    ] = False,
    seed: SeedOption = None,
    study: StudyOption = False,
) -> None:
    """Release the built-in housing survey: one plan that is refused, one that passes, and a recipient's model.

    Example: `maskwell demo --folder demo`
    """
    from ..datasets import housing
    from ..pipeline import demo_plans
    from ..pipeline.demo import SURVEY
    from ..pipeline.study import check_study

    check_study(seed, study)
    make_folder(folder)
    survey = housing(records)
    refused, passing = demo_plans(folder, survey)
    typer.echo(f"The built-in housing survey, {records:,} records: {folder / SURVEY}")
    if files_only:
        typer.echo(f"two plans: {refused} (is refused), {passing} (passes); run them by maskwell release")
        return
    typer.echo(f"\n1. maskwell release {refused}: light noise, every class as it is\n")
    first = _run_demo_release(refused, seed)
    typer.echo("\n".join(f"   {line}".rstrip() for line in _in_short(first)))
    typer.echo(f"\n2. maskwell release {passing}: coarser classes, fewer columns, more noise\n")
    second = _run_demo_release(passing, seed)
    typer.echo("\n".join(f"   {line}".rstrip() for line in summary(second).splitlines()))
    if second.release is None or second.private is None:
        raise typer.Exit(NO)
    typer.echo(f"   the reports:   {_reports(second)}")
    _as_recipient(second.release, survey, seed)


def _run_demo_release(plan: Path, seed: int | None) -> Outcome:
    from ..release_job import release

    with ToldStages() as told:
        return release(plan, seed=seed, study=seed is not None, progress=told, refusal=told.refusal)


def _in_short(outcome: Outcome) -> list[str]:
    from ..report import refusal_summary

    if outcome.passed:
        return summary(outcome).splitlines()
    return [*refusal_summary(outcome).splitlines(), *(f"  - {one}" for one in outcome.mind)]


def _reports(outcome: Outcome) -> str:
    """Say where the reports lie: the board's in the newest of the private bundles."""
    assert outcome.private is not None
    newest = max(outcome.private.glob("*/report.html"), key=lambda path: path.stat().st_mtime)
    return f"{newest} (for the board), {outcome.release}/report.html (for recipients)"


def _as_recipient(release: Path, survey: Table, seed: int | None) -> None:
    from ..pipeline.demo import MODEL, recipients_fit

    typer.echo(f'\n3. What a recipient gets by maskwell fit {release} "{MODEL}" --missing drop\n')
    typer.echo("\n".join(_fit_lines(recipients_fit(release, survey, seed=seed))))


def _fit_lines(found: Recipient) -> list[str]:
    from ..report import short, text_table

    rows = [("", "original", "naive", "adjusted", "its 95% interval")]
    columns = zip(found.names, found.original, found.naive, found.adjusted, found.intervals, strict=True)
    for name, original, naive, adjusted, (low, high) in columns:
        rows.append((name, short(original), short(naive), short(adjusted), f"{short(low)} to {short(high)}"))
    lines = [f"   {line}" for line in text_table(rows)]
    lines.append(f"     {found.records:,} records with all three amounts; original: of the survey itself;")
    lines.append("     naive: released values taken for true; adjusted: by the card")
    return [*lines, *([f"     {found.warning}"] if found.warning else [])]


def make_folder(folder: Path) -> None:
    """Make a folder to write into, or refuse."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise CannotWrite(
            f"the folder {str(folder)!r} cannot be made: {error.strerror}; choose another"
        ) from None

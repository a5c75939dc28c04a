"""`maskwell new`: from a file to a commented plan that can be run."""

from __future__ import annotations

import os
from pathlib import Path
from textwrap import wrap
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..errors import CannotWrite
from ..notes import Note, has_code
from .file_options import (
    DecimalOption,
    DelimiterOption,
    EncodingOption,
    FileArgument,
    InputFormatOption,
    given_options,
)
from .messages import warnings_told

if TYPE_CHECKING:
    from ..plan import InputPlan
    from ..plan.draft_decisions import DecidedSchema


# Notes on how a CSV file was read
READING = ("io.dialect", "io.dialect_as_asked", "io.encoding", "io.commas_before_three_digits")


def new(
    file: FileArgument,
    write: Annotated[
        Path | None,
        typer.Option("--write", "-o", help="The plan.", show_default="plan.toml, or the next free"),
    ] = None,
    schema: Annotated[
        Path | None, typer.Option(help="A schema that is decided already.", show_default="one is drafted")
    ] = None,
    encoding: EncodingOption = None,
    delimiter: DelimiterOption = None,
    decimal: DecimalOption = None,
    input_format: InputFormatOption = None,
) -> None:
    """Draft a plan for a file: a schema and a commented plan, ready for `maskwell release`; nothing is overwritten.

    What a person must decide is answered cautiously, told, and stands at its place in the files.

    Example: `maskwell new survey.csv`
    """
    from ..plan import InputPlan
    from ..plan.draft import draft_plan, draft_schema, questions_of

    target = _free(Path("plan.toml")) if write is None else _new_file(write)
    drafted = None if schema is not None else _free(target.parent / f"{file.stem}.schema.toml")
    read_as = given_options(encoding=encoding, delimiter=delimiter, decimal=decimal, format=input_format)
    with warnings_told():
        decided, notes = _input_decisions(InputPlan(file=file, schema=schema, **read_as))
    places = _places(target, file, schema if drafted is None else drafted)
    texts = {} if drafted is None else {drafted: draft_schema(decided)}
    _write_all(texts | {target: draft_plan(decided, places, read_as)})
    _tell(decided, notes, questions_of(decided), target, drafted)


def _input_decisions(source: InputPlan) -> tuple[DecidedSchema, list[Note]]:
    """Return what is decided about a file, and how it was read where that is not the usual way."""
    from ..io import load
    from ..io.dialect import Dialect
    from ..pipeline import inspect_file
    from ..plan.draft_decisions import decide, decided_by
    from ..schema import Schema

    raw = load(source.file, format=source.format, dialect=source.dialect, encoding=source.encoding)
    usual = Note("io.dialect", Dialect().figures)
    notes = [note for note in raw.notes if has_code([note], *READING) and note != usual]
    if source.schema is not None:
        return decided_by(raw, Schema.read(source.schema)), notes
    proposal, _ = inspect_file(source)
    return decide(raw, proposal), notes


def _places(target: Path, file: Path, schema: Path | None) -> Any:
    from ..plan.draft import Places

    folder = target.parent

    def seen(path: Path) -> str:
        return Path(os.path.relpath(path, folder)).as_posix()

    assert schema is not None
    halves = [_free(folder / f"{file.stem}-{half}") for half in ("release", "private")]
    return Places(target.name, seen(file), seen(schema), *(seen(half) for half in halves))


def _free(path: Path) -> Path:
    """Return a path, with a number where there is something already."""
    number, found = 2, path
    while os.path.lexists(found):
        first, dot, rest = path.name.partition(".")
        found, number = path.with_name(f"{first}-{number}{dot}{rest}"), number + 1
    return _new_file(found)


def _new_file(path: Path) -> Path:
    """Refuse, before any work, a file that is there already or a folder that is not."""
    if os.path.lexists(path):
        raise CannotWrite(f"{str(path)!r} is already there; name another file or remove it")
    if not os.access(path.parent, os.W_OK | os.X_OK):
        raise CannotWrite(f"the folder {str(path.parent)!r} does not exist or is not writable")
    return path


def _write_all(texts: dict[Path, str]) -> None:
    """Write new files, all or none."""
    written: list[Path] = []
    try:
        for path, text in texts.items():
            with path.open("x", encoding="utf-8") as file:
                written.append(path)
                file.write(text)
    except OSError as error:
        for path in written:
            path.unlink(missing_ok=True)
        raise CannotWrite(f"the plan cannot be written: {error.strerror}") from None


def _tell(
    decided: DecidedSchema, notes: list[Note], asked: list[str], target: Path, drafted: Path | None
) -> None:
    """Say what will happen to which columns, every one of them, and what is to be decided."""
    lines = [f"{len(decided.table):,} records", *(f"  {note}" for note in notes)]
    for what, names in _fates(decided).items():
        if names:
            lines += wrap(
                f"  {what:<11} {' '.join(names)}", 100, subsequent_indent=" " * 14, break_on_hyphens=False
            )
    if decided.floor is not None:
        lines.append(
            f"  {decided.floor.rate:.1%} of the records are alone with what leaves in clear; guessing among "
            f"those alike in it finds {decided.clear.guessing():.1%}"
        )
    if asked:
        lines.append(f"for you to decide ({len(asked)}; answered cautiously until then):")
        for question in asked:
            lines += wrap(question, 100, initial_indent="  - ", subsequent_indent="    ")
    written = f"{target}" if drafted is None else f"{drafted} and {target}"
    lines.append(f"written: {written}; read them, then run: maskwell release {target}")
    typer.echo("\n".join(lines))


def _fates(decided: DecidedSchema) -> dict[str, list[str]]:
    """Return what happens to the columns: each is named once."""
    empty = {one.column for one in decided.proposal.findings if one.kind == "all-missing"}
    masked, sums = {*decided.amounts, *decided.changed}, {total for total, _ in decided.sums}
    fates: dict[str, list[str]] = {
        what: [] for what in ("id", "masked", "recomputed", "in clear", "weight", "group", "dropped")
    }
    for column in decided.schema.columns:
        name = column.name
        if column.drop:
            of = "group" if "group" in column.roles else "empty" if column.name in empty else ""
            what, name = "dropped", f"{name} ({of})" if of else name
        elif "id" in column.roles:
            what, name = "id", f"{name} (new ones leave)"
        elif column.name in masked:
            what = "masked"
        elif column.name in sums:
            what = "recomputed"
        else:
            what = next((role for role in ("weight", "group") if role in column.roles), "in clear")
        fates[what].append(name)
    return fates

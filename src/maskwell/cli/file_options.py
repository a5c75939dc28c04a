"""The options by which commands read a file or a plan."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from ..errors import BadPlan

FileArgument = Annotated[
    Path, typer.Argument(metavar="FILE", help="A CSV, Parquet, Arrow, SPSS, Stata or SAS file.")
]
PlanArgument = Annotated[
    Path, typer.Argument(metavar="PLAN_OR_FILE", help="A plan (TOML), or a data file together with options.")
]
ColumnsOption = Annotated[
    str | None, typer.Option(help="Columns to mask, with commas.", show_default="all numbers of role key")
]
SchemaOption = Annotated[Path | None, typer.Option(help="The schema (TOML).", show_default="one is proposed")]
EncodingOption = Annotated[
    str | None, typer.Option(help="The encoding of a CSV file, e.g. latin-1.", show_default="utf-8")
]
DelimiterOption = Annotated[
    str | None, typer.Option(help="What separates the fields of a CSV file.", show_default="found")
]
DecimalOption = Annotated[
    str | None, typer.Option(help="The decimal sign of a CSV file.", show_default="found")
]
InputFormatOption = Annotated[
    str | None,
    typer.Option("--format", help="The format of FILE: csv, parquet, sav, ...", show_default="its ending"),
]
SeedOption = Annotated[int | None, typer.Option(help="For studies: needs --study.")]
StudyOption = Annotated[
    bool, typer.Option("--study", help="A study by a seed: written to folders named -study, no release.")
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON.")]


def given_options(**options: Any) -> dict[str, Any]:
    """Return the options that were given."""
    return {name: value for name, value in options.items() if value is not None}


def is_plan(what: Path, options: dict[str, Any]) -> bool:
    """Whether a plan was named; options that belong into it are then refused."""
    if what.suffix.lower() != ".toml":
        return False
    refuse_beside_plan(options)
    return True


def refuse_beside_plan(options: Mapping[str, Any]) -> None:
    """Refuse options that belong into a plan."""
    if options:
        listed = ", ".join(f"--{name.replace('_', '-')}" for name in options)
        raise BadPlan(f"a plan says it all: write {listed} into the plan instead")


def noise(kind: str, columns: str | None, **scale: float) -> dict[str, Any]:
    """Return a mask of some columns, or of every number with the role key, as a plan has it."""
    from ..plan import KEYS

    return {"mask": kind, "columns": [KEYS] if columns is None else list(split_names(columns) or ()), **scale}


def split_names(names: str | None) -> tuple[str, ...] | None:
    """Return names with commas as a tuple."""
    return None if names is None else tuple(name.strip() for name in names.split(",") if name.strip())

"""`maskwell calibrate` and `maskwell fingerprint`: how much noise, and whom none protects."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..errors import BadPlan
from ..figure_style import check_picture
from .file_options import (
    ColumnsOption,
    DecimalOption,
    DelimiterOption,
    EncodingOption,
    InputFormatOption,
    JsonOption,
    PlanArgument,
    SchemaOption,
    given_options,
    is_plan,
    noise,
    split_names,
)
from .messages import said_at_terminal, warnings_told
from .plan_options import NAMES, MaxRateOption, SmallOption, sections_of

if TYPE_CHECKING:
    from ..attacks.protocol import Attack
    from ..masking import Mask
    from ..plan import CalibrationPlan
    from ..table import Table

NO = 1  # exit code: the answer is no
NEAREST = ("nearest record", "nearest, informed")  # by whom where nobody is named
OPTIONS = {"over": "outlying", "intruders": "intruder"}  # keys of a plan whose options have other names
WIDER = 0.3  # by how much intervals may widen where only a model is named


def calibrate(
    what: PlanArgument,
    columns: ColumnsOption = None,
    schema: SchemaOption = None,
    intruder: Annotated[
        list[str] | None,
        typer.Option(
            help=f"By whom it must hold, {NAMES}; again for others.",
            show_default="nearest record; nearest, informed",
        ),
    ] = None,
    largest_target_block: SmallOption = None,
    max_rate: MaxRateOption = None,
    outlying: Annotated[
        bool, typer.Option("--outlying", help="Judge the most outlying tenth of the targets.")
    ] = False,
    model: Annotated[
        list[str] | None,
        typer.Option(
            metavar="FORMULA", help="A linear model whose intervals may widen only so far; several times."
        ),
    ] = None,
    at_most_wider: Annotated[
        float | None,
        typer.Option(help="How much wider, as a share: 0.3 is 30%.", show_default="0.3 with --model"),
    ] = None,
    ignore_floor: Annotated[
        bool, typer.Option("--ignore-floor", help="Report records that no noise protects, and go on.")
    ] = False,
    picture: Annotated[Path | None, typer.Option(help="Draw the trace (PNG, SVG or PDF).")] = None,
    seed: Annotated[int | None, typer.Option(help="Repeat a calibration exactly.")] = None,
    as_json: JsonOption = False,
) -> None:
    """Search the weakest noise that meets a tolerance (15% of the targets by default); exit code 1 where none does.

    Nothing is written but the picture: put the scale it finds into a plan. With --model it keeps to a bound on utility
    too, by less noise in the columns that the model uses and more in the others; exit code 1 where no noise meets both.
    Other masks, intruders, tolerances and families of models, and how the search is made, are said by a plan.

    Examples:

    - `maskwell calibrate plan.toml --picture trace.png`

    - `maskwell calibrate survey.csv --schema survey.toml --columns INCOME,TAXES --max-rate 0.15`

    - `maskwell calibrate survey.csv --columns INCOME,TAXES,AGE --model "SPENT ~ INCOME" --at-most-wider 0.3`
    """
    from ..calibration import Search
    from ..calibration import calibrate as run
    from ..pipeline import bounds_of

    if at_most_wider is not None and not model:
        raise BadPlan("--at-most-wider is about a model: name it with --model 'y ~ x'")
    options = given_options(
        largest_target_block=largest_target_block,
        max_rate=max_rate,
        over="outlying" if outlying else None,
        intruders=intruder or None,
    )
    models = [{"formula": one, "at_most_wider": at_most_wider or WIDER} for one in model or ()]
    plan = _plan(what, given_options(columns=columns, schema=schema), options, models)
    if picture is not None:
        check_picture(picture)
    own = plan.calibrate
    mask, table, attacks = _search_arguments(plan)
    with warnings_told():
        found = run(
            mask,
            table,
            attacks,
            plan.tolerance.tolerance,
            search=Search(
                over=plan.tolerance.over,
                replicates=own.replicates,
                confirmations=own.confirmations,
                precision=own.precision,
                level=own.level,
                per_column=own.per_column,
                bounds=bounds_of(plan.models),
                floor="report" if ignore_floor else "refuse",
            ),
            seed=seed,
            progress=_tell if not as_json else None,
        )
    if picture is not None:
        found.plot(picture)
    typer.echo(json.dumps(found.to_dict(), indent=2, allow_nan=False) if as_json else repr(found))
    if not found.met:
        raise typer.Exit(NO)


def _plan(
    what: Path, source: dict[str, Any], options: dict[str, Any], models: list[dict[str, Any]]
) -> CalibrationPlan:
    """Return the plan that is named, or that of a file and options."""
    from ..plan import CalibrationPlan

    named = source | options | given_options(model=models or None)
    if is_plan(what, {OPTIONS.get(name, name): value for name, value in named.items()}):
        return CalibrationPlan.read(what)
    columns = source.pop("columns", None)
    masks = [noise("CorrelatedNoise", columns, sd_ratio=0.3)]
    sections = {"input": {"file": what} | source, "masks": masks, "models": models}
    return CalibrationPlan.from_dict(sections | sections_of(options))


def _search_arguments(plan: CalibrationPlan) -> tuple[Mask, Table, dict[str, Attack]]:
    """Read the file; return the mask, the records, and the intruders by whom the noise is judged."""
    from ..pipeline import intruders_of, read_input

    with warnings_told():
        table = read_input(plan)
    mask = plan.mask(table.schema)
    named = intruders_of(plan, table, mask.card(table))
    held = plan.tolerance.held(named) if plan.intruders or plan.tolerance.intruders else NEAREST
    return mask, table, {name: named[name] for name in held if name in named}


def _tell(trial: Any) -> None:
    """Say each trial, so that a long search is seen to go on."""
    said_at_terminal(f"{trial.round}: {trial.said}")


def fingerprint(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A data file, before any noise.")],
    schema: SchemaOption = None,
    masked: Annotated[
        str | None,
        typer.Option(
            help="Columns that will be masked, with commas.", show_default="all numbers of role key"
        ),
    ] = None,
    columns: Annotated[
        str | None, typer.Option(help="What the intruder knows, with commas.", show_default="every column")
    ] = None,
    largest_target_block: SmallOption = None,
    encoding: EncodingOption = None,
    delimiter: DelimiterOption = None,
    decimal: DecimalOption = None,
    input_format: InputFormatOption = None,
    as_json: JsonOption = False,
) -> None:
    """Count the records that no noise protects: unique by what leaves unmasked and by what is missing or coded.

    Example: `maskwell fingerprint survey.csv --schema survey.toml`
    """
    from ..attacks import Fingerprint, attack
    from ..pipeline import read_table
    from ..plan import InputPlan

    plan = Fingerprint(
        columns=split_names(columns), masked=split_names(masked), largest_target_block=largest_target_block
    )
    read_as = given_options(
        schema=schema, encoding=encoding, delimiter=delimiter, decimal=decimal, format=input_format
    )
    with warnings_told():
        table = read_table(InputPlan(file=file, **read_as))
        risk = attack(plan, table)
    if as_json:
        typer.echo(json.dumps(risk.to_dict(), indent=2, allow_nan=False))
        return
    left = [column.name for column in table.schema.columns if column.drop]
    said = f"  - left out, as columns that would be dropped: {', '.join(left)}"
    typer.echo("\n".join([repr(risk), *([said] if left else [])]))

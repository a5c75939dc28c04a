"""`maskwell calibrate` and `maskwell fingerprint`: how much noise, and whom none protects."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

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
from .plan_options import (
    DistanceOption,
    ExpectedHOption,
    FieldsOption,
    IntruderOptions,
    MatchBlocksOption,
    MaxRateOption,
    MaxRatioOption,
    ProbHOption,
    SmallOption,
    TargetBlocksOption,
    WithinOption,
    tolerance_of,
)

NO = 1  # exit code: the answer is no


def calibrate(
    what: PlanArgument,
    columns: ColumnsOption = None,
    independent: Annotated[
        bool, typer.Option("--independent", help="Independent noise in place of correlated.")
    ] = False,
    schema: SchemaOption = None,
    encoding: EncodingOption = None,
    delimiter: DelimiterOption = None,
    decimal: DecimalOption = None,
    input_format: InputFormatOption = None,
    intruder: Annotated[
        str | None,
        typer.Option(
            help="matcher, nearest, law or fingerprint; several with commas.",
            show_default="nearest, by euclid and by posterior",
        ),
    ] = None,
    distance: DistanceOption = None,
    largest_target_block: SmallOption = None,
    target_blocks: TargetBlocksOption = None,
    match_blocks: MatchBlocksOption = None,
    fields: FieldsOption = None,
    within: WithinOption = None,
    max_rate: MaxRateOption = None,
    max_ratio: MaxRatioOption = None,
    expected_h: ExpectedHOption = None,
    prob_h: ProbHOption = None,
    outlying: Annotated[
        bool, typer.Option("--outlying", help="Judge the most outlying tenth of the targets.")
    ] = False,
    per_column: Annotated[
        bool, typer.Option("--per-column", help="A scale for each column: least variance added in all.")
    ] = False,
    model: Annotated[
        list[str] | None,
        typer.Option(
            metavar="FORMULA", help="A model whose intervals noise may widen only so far; several times."
        ),
    ] = None,
    at_most_wider: Annotated[
        float | None,
        typer.Option(help="How much wider, as a share: 0.3 is 30%.", show_default="0.3 with --model"),
    ] = None,
    family: Annotated[str | None, typer.Option(help="Family of the models.", show_default="gaussian")] = None,
    ignore_floor: Annotated[
        bool, typer.Option("--ignore-floor", help="Report records that no noise protects, and go on.")
    ] = False,
    replicates: Annotated[int, typer.Option(help="Draws of the noise at each scale.")] = 20,
    confirmations: Annotated[int, typer.Option(help="Fresh draws that confirm the scale.")] = 40,
    picture: Annotated[Path | None, typer.Option(help="Draw the trace (PNG, SVG or PDF).")] = None,
    seed: Annotated[int | None, typer.Option(help="Repeat a calibration exactly.")] = None,
    as_json: JsonOption = False,
) -> None:
    """Search the weakest noise that meets a tolerance (15% of the targets by default); exit code 1 where none does.

    Nothing is written but the picture: put the scale it finds into a plan. With --model it keeps to a bound on utility
    too, by less noise in the columns that the model uses and more in the others; exit code 1 where no noise meets both.

    Examples:

    - `maskwell calibrate survey.csv --schema survey.toml --columns INCOME,TAXES --max-rate 0.15`

    - `maskwell calibrate survey.csv --columns INCOME,TAXES,AGE --model "SPENT ~ INCOME" --at-most-wider 0.3`

    - `maskwell calibrate plan.toml --prob-h 3,0.1 --outlying --picture trace.png`
    """
    from ..calibration import Search
    from ..calibration import calibrate as run
    from ..tolerances import MaxRate

    chosen = IntruderOptions(largest_target_block, target_blocks, match_blocks, fields, within, distance)
    attacks = _attacks(chosen, intruder)
    tolerance = tolerance_of(max_rate, max_ratio, expected_h, prob_h, default=MaxRate(0.15))
    bounds = _bounds(model, at_most_wider, family)
    if picture is not None:
        check_picture(picture)
    read_as = given_options(
        schema=schema, encoding=encoding, delimiter=delimiter, decimal=decimal, format=input_format
    )
    mask, table = _mask_and_table(what, columns, read_as, independent=independent)
    with warnings_told():
        found = run(
            mask,
            table,
            attacks,
            tolerance,
            search=Search(
                over="outlying" if outlying else "all",
                replicates=replicates,
                confirmations=confirmations,
                per_column=per_column,
                bounds=bounds,
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


def _bounds(models: list[str] | None, at_most_wider: float | None, family: str | None) -> list[Any]:
    """Return a bound for each model, refusing what is said of models where none is named."""
    from ..calibration import Bound

    if not models:
        if at_most_wider is not None or family is not None:
            raise BadPlan("--at-most-wider and --family are about a model: name it with --model 'y ~ x'")
        return []
    options = given_options(at_most=at_most_wider, family=family)
    return [Bound(formula, **options) for formula in models]


def _attacks(chosen: IntruderOptions, intruder: str | None) -> Any:
    """Return the named intruders, or the nearest record by two distances: all that is known, and all that is not."""
    if intruder is not None:
        return [chosen.plan(kind) for kind in split_names(intruder) or ()]
    if chosen.distance is not None:
        return [chosen.plan("nearest")]
    return [replace(chosen, distance=one).plan("nearest") for one in ("euclid", "posterior")]


def _mask_and_table(what: Path, columns: str | None, read_as: dict[str, Any], *, independent: bool) -> Any:
    from ..pipeline import read_input
    from ..plan import NoisePlan

    if is_plan(what, given_options(columns=columns, independent=independent or None) | read_as):
        plan = NoisePlan.read(what)
    else:
        start = (
            ("IndependentNoise", {"variance_ratio": 0.1})
            if independent
            else ("CorrelatedNoise", {"sd_ratio": 0.3})
        )
        source = {"file": what} | read_as
        plan = NoisePlan.from_dict({"input": source, "masks": [noise(start[0], columns, **start[1])]})
    with warnings_told():
        table = read_input(plan)
    return plan.mask(table.schema), table


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

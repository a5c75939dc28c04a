"""`maskwell attack` and `maskwell swap`: what intruders find in a written release, and the repair."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from ..errors import BadPlan
from .telling import warnings_told

NO = 1  # exit code: the answer is no

ReleaseOption = Annotated[Path, typer.Option(help="The folder that may leave.")]
PrivateOption = Annotated[Path, typer.Option(help="The folder that stays: key, links, truth.")]
FieldsOption = Annotated[
    str | None, typer.Option(help="Columns the intruder compares, with commas.", show_default="role key")
]
WithinOption = Annotated[float, typer.Option(help="Amounts agree within this share of the target's value.")]
SmallOption = Annotated[
    int | None,
    typer.Option(help="Targets are the records in blocks of at most so many.", show_default="all records"),
]
TargetBlocksOption = Annotated[
    str | None, typer.Option(help="Columns that define those blocks, with commas.", show_default="role block")
]
MatchBlocksOption = Annotated[
    str | None,
    typer.Option(help="Columns the intruder relies on, with commas; '' for none.", show_default="role block"),
]
MaxRateOption = Annotated[
    float | None, typer.Option(help="Tolerated: this share of the targets linked correctly, e.g. 0.15.")
]
MaxRatioOption = Annotated[
    float | None, typer.Option(help="Tolerated: so many correct links to one incorrect, e.g. 2.")
]


def attack(
    release: ReleaseOption,
    private: PrivateOption,
    targets: Annotated[
        Path | None, typer.Option(metavar="FILE", help="A file the intruder holds.", show_default="the truth")
    ] = None,
    largest_target_block: SmallOption = None,
    target_blocks: TargetBlocksOption = None,
    match_blocks: MatchBlocksOption = None,
    fields: FieldsOption = None,
    within: WithinOption = 0.10,
    everybody: Annotated[
        bool, typer.Option("--all", help="Beside Winkler's matcher: nearest record, and who knows the law.")
    ] = False,
    max_rate: MaxRateOption = None,
    max_ratio: MaxRatioOption = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Attack a release as an intruder would; exit code 1 where a tolerance is given and not met.

    Example: `maskwell attack --release out --private inside --largest-target-block 7 --max-rate 0.15`
    """
    from ..attacks import attack as run
    from ..io import read
    from ..masking import Masking

    plan = _plan(largest_target_block, target_blocks, match_blocks, fields, within)
    masking = Masking.read(release=release, private=private)
    held = None if targets is None else read(targets, masking.truth.schema)
    with warnings_told() as told:
        result: Any = run(_beside(plan) if everybody else plan, masking, targets=held)
        told.extend(note for risk in (result.values() if everybody else [result]) for note in risk.notes)
    typer.echo(json.dumps(result.to_dict(), indent=2, default=str) if as_json else repr(result))
    worst = result.largest if everybody else result
    tolerance = _tolerance(max_rate, max_ratio, needed=False)
    if tolerance is not None:
        met = tolerance.met(worst.expected_correct, worst.expected_incorrect, worst.targets)
        typer.echo(f"tolerance ({tolerance}): {'met' if met else 'NOT met'}", err=as_json)
        if not met:
            raise typer.Exit(NO)


def swap(
    release: ReleaseOption,
    private: PrivateOption,
    to_release: Annotated[Path, typer.Option(help="The folder for the repaired release.")],
    to_private: Annotated[Path, typer.Option(help="The folder for its private half.")],
    max_rate: MaxRateOption = None,
    max_ratio: MaxRatioOption = None,
    largest_target_block: SmallOption = None,
    target_blocks: TargetBlocksOption = None,
    match_blocks: MatchBlocksOption = None,
    fields: FieldsOption = None,
    within: WithinOption = 0.10,
) -> None:
    """Exchange re-identifiable records with similar ones until the tolerance holds, and write the release.

    Exit code 1, and nothing written, where no number of swaps meets the tolerance.

    Example: `maskwell swap --release out --private inside --max-rate 0.15 --to-release out2 --to-private inside2`
    """
    from ..masking import Masking
    from ..protect import swap as run

    plan = _plan(largest_target_block, target_blocks, match_blocks, fields, within)
    tolerance = _tolerance(max_rate, max_ratio, needed=True)
    masking = Masking.read(release=release, private=private)
    with warnings_told():
        swapped = run(masking, plan, tolerance)
    typer.echo(
        repr(swapped.swapping) if swapped.swapping is not None else "the tolerance holds without a swap"
    )
    if swapped.swapping is not None and not swapped.swapping.met:
        raise typer.Exit(NO)
    swapped.write(release=to_release, private=to_private)
    typer.echo(f"\nmay leave:     {to_release}/\nstays inside:  {to_private}/")


def _plan(
    small: int | None, targets: str | None, blocks: str | None, fields: str | None, within: float
) -> Any:
    from ..attacks import Linkage, Relative

    return Linkage(
        largest_target_block=small,
        target_blocks=_listed(targets),
        match_blocks=_listed(blocks),
        fields=_listed(fields),
        rule=Relative(within),
    )


def _beside(plan: Any) -> dict[str, Any]:
    """Return the intruders of one table: the same targets, blocks and fields for all."""
    from ..attacks import BayesIntruder, NearestRecord

    shared = {
        name: getattr(plan, name)
        for name in ("largest_target_block", "target_blocks", "match_blocks", "fields")
        if getattr(plan, name) is not None
    }
    return {
        "Winkler's matcher": plan,
        "nearest record": NearestRecord(**shared),
        "knows the law": BayesIntruder(**shared),
        "knows the law, one-to-one": BayesIntruder(**shared, assignment="one-to-one"),
    }


def _listed(names: str | None) -> tuple[str, ...] | None:
    return None if names is None else tuple(name.strip() for name in names.split(",") if name.strip())


def _tolerance(max_rate: float | None, max_ratio: float | None, *, needed: bool) -> Any:
    from ..tolerances import MaxRate, Ratio

    given: list[Any] = [MaxRate(max_rate)] if max_rate is not None else []
    given += [Ratio(max_ratio)] if max_ratio is not None else []
    if len(given) > 1 or (needed and not given):
        raise BadPlan("say what is tolerated: exactly one of --max-rate and --max-ratio")
    return given[0] if given else None

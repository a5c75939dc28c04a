"""`maskwell attack` and `maskwell swap`: what intruders find in a written release, and the repair."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

from ..errors import BadPlan, HopelessSwap
from .file_options import JsonOption, split_names
from .messages import warnings_told
from .plan_options import (
    DirectionOption,
    DistanceOption,
    FieldsOption,
    IntruderOptions,
    MatchBlocksOption,
    MaxRateOption,
    MaxRatioOption,
    OneToOneOption,
    SmallOption,
    TargetBlocksOption,
    WithinOption,
    tolerance_of,
)
from .value_of_card import (
    FamilyOption,
    HelpersOption,
    KernelOption,
    MeanOverSdOption,
    TargetsOption,
    ThresholdOption,
    UntoldOption,
    belief_options,
    check_drawable,
    draw,
    said_before,
)

NO = 1  # exit code: the answer is no
FINGERPRINT = "fingerprint alone"  # his name in the table of all intruders

ReleaseOption = Annotated[Path, typer.Option(help="The folder that may leave.")]
PrivateOption = Annotated[Path, typer.Option(help="The folder that stays: key, links, truth.")]


def attack(
    release: ReleaseOption,
    private: PrivateOption,
    targets: TargetsOption = None,
    largest_target_block: SmallOption = None,
    target_blocks: TargetBlocksOption = None,
    match_blocks: MatchBlocksOption = None,
    fields: FieldsOption = None,
    within: WithinOption = None,
    intruder: Annotated[str, typer.Option(help="matcher, nearest, law or fingerprint.")] = "matcher",
    distance: DistanceOption = None,
    direction: DirectionOption = None,
    one_to_one: OneToOneOption = False,
    kernel: KernelOption = None,
    untold: UntoldOption = False,
    family: FamilyOption = None,
    mean_over_sd: MeanOverSdOption = None,
    marginal: Annotated[
        str | None,
        typer.Option(
            help="Of --intruder law: his f(z) is that of the truth (an upper bound), or gaussian (an outsider's).",
            show_default="truth",
        ),
    ] = None,
    helpers: HelpersOption = None,
    threshold: ThresholdOption = None,
    picture: Annotated[
        Path | None,
        typer.Option(metavar="PNG", help="Of --intruder law: draw his thresholds and whether he is right."),
    ] = None,
    everybody: Annotated[
        bool, typer.Option("--all", help="Beside Winkler's matcher: nearest record, and who knows the law.")
    ] = False,
    max_rate: MaxRateOption = None,
    max_ratio: MaxRatioOption = None,
    as_json: JsonOption = False,
) -> None:
    """Attack a release as an intruder would; exit code 1 where a tolerance is given and not met.

    Example: `maskwell attack --release out --private inside --largest-target-block 7 --max-rate 0.15`
    """
    from ..attacks import attack as run
    from ..masking import Masking
    from ..pipeline import intruders_beside, read_targets

    if everybody and (intruder != "matcher" or direction is not None or one_to_one):
        raise BadPlan("--all sets all intruders side by side: leave --intruder and its options out")
    belief = belief_options(
        intruder,
        {"kernel": kernel, "marginal": marginal, "helpers": helpers, "threshold": threshold},
        {"family": family, "mean_over_sd": mean_over_sd},
        untold=untold,
    )
    if picture is not None:
        check_drawable(intruder, picture)
    chosen = IntruderOptions(
        largest_target_block,
        target_blocks,
        match_blocks,
        fields,
        within,
        distance,
        direction,
        one_to_one,
        belief,
    )
    plan = chosen.plan(intruder)
    tolerance = tolerance_of(max_rate, max_ratio)
    masking = Masking.read(release=release, private=private)
    held = None if targets is None else read_targets(targets, masking.truth.schema, plan)
    plan = _on_clear(plan, masking, held)
    plans = _with_fields(intruders_beside(plan), plan, masking) if everybody else plan
    said_before(plans, masking, held)
    with warnings_told() as told:
        result: Any = run(plans, masking, targets=held)
        risks = dict(result) if everybody else {result.name: result}
        told.extend(str(note) for risk in risks.values() for note in risk.notes)
    said, unmet = _tolerance_verdict(risks, tolerance)
    if as_json:
        typer.echo(json.dumps(result.to_dict() | said, indent=2, allow_nan=False))
    else:
        typer.echo("\n".join([repr(result), *([said["verdict"]] if said else [])]))
    if picture is not None:
        draw(result, picture)
    if unmet:
        raise typer.Exit(NO)


def _on_clear(plan: Any, masking: Any, held: Any) -> Any:
    """Let an intruder rely on all that leaves in clear and may be known outside, where no blocks are named.

    Of a file of his own on the columns that it has.
    """
    from ..attacks.known_columns import known_blocks, with_known_blocks
    from ..masking.hidden_cards import is_withheld

    if is_withheld(masking.card) or not masking.card.laws:  # no card says what left in clear
        return plan
    known = known_blocks(masking.truth, masking.card, {})
    if held is not None:
        known = tuple(name for name in known if name in held.schema)
    return with_known_blocks(plan, masking.truth, known)


def _with_fields(plans: dict[str, Any], plan: Any, masking: Any) -> dict[str, Any]:
    """Let the fingerprint be of what the others compare, where that was said."""
    if plan.fields is None:
        return plans
    known = dict.fromkeys([*plan.match_columns(masking.release.table.schema), *plan.fields])
    return {
        name: replace(one, columns=tuple(known)) if name == FINGERPRINT else one
        for name, one in plans.items()
    }


def _tolerance_verdict(risks: dict[str, Any], tolerance: Any) -> tuple[dict[str, Any], list[str]]:
    """Hold every intruder against a tolerance, if there is one; return what to say and who exceeds it."""
    if tolerance is None:
        return {}, []
    unmet = [
        name
        for name, risk in risks.items()
        if not all(
            tolerance.met(one.expected_correct, one.expected_incorrect, one.targets) for one in risk.counted
        )
    ]
    verdict = f"NOT met by {', '.join(unmet)}" if unmet and len(risks) > 1 else "NOT met" if unmet else "met"
    said = {
        "tolerance": tolerance.to_dict(),
        "met": not unmet,
        "verdict": f"tolerance ({tolerance}): {verdict}",
    }
    return said, unmet


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
    within: WithinOption = None,
    intruder: Annotated[str, typer.Option(help="matcher, nearest or law.")] = "matcher",
    distance: DistanceOption = None,
    columns: Annotated[
        str | None,
        typer.Option(
            help="The columns to exchange, with commas: some of those compared.", show_default="all compared"
        ),
    ] = None,
    exempt_values: Annotated[
        str | None,
        typer.Option(help="Why it does not count that the exchanged values are found: goes on record."),
    ] = None,
) -> None:
    """Exchange re-identifiable records with similar ones until the tolerance holds, and write the release.

    The tolerance is held against who finds the record (what stays in the row) and who finds the exchanged values. Exit
    code 1, and nothing written, where no number of swaps meets it.

    Example: `maskwell swap --release out --private inside --max-rate 0.15 --to-release out2 --to-private inside2`
    """
    from ..io.bundle import check_halves
    from ..masking import Masking
    from ..protect import swap as run

    if intruder == "fingerprint":
        raise BadPlan("a fingerprint is in what was not masked: no exchange of masked values removes it")
    chosen = IntruderOptions(largest_target_block, target_blocks, match_blocks, fields, within, distance)
    plan = chosen.plan(intruder)
    tolerance = tolerance_of(max_rate, max_ratio, needed=True)
    check_halves(to_release, to_private, ())
    masking = Masking.read(release=release, private=private)
    try:
        with warnings_told():
            swapped = run(masking, plan, tolerance, columns=split_names(columns), exempt_values=exempt_values)
    except HopelessSwap as refusal:
        typer.echo(f"no exchange helps: {refusal}")
        raise typer.Exit(NO) from None
    typer.echo(
        repr(swapped.swapping) if swapped.swapping is not None else "the tolerance holds without a swap"
    )
    if swapped.swapping is not None and not swapped.swapping.met:
        raise typer.Exit(NO)
    swapped.write(release=to_release, private=to_private)
    typer.echo(f"\nmay leave:     {to_release}/\nstays inside:  {to_private}/")

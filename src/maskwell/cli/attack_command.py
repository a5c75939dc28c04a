"""`maskwell attack` and `maskwell swap`: what intruders find in a written release, and the repair."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..errors import BadPlan, HopelessSwap
from .file_options import JsonOption, given_options, split_names
from .messages import warnings_told
from .plan_options import (
    MATCHER,
    NAMES,
    AttackPlanArgument,
    MaxRateOption,
    PrivateFolderOption,
    ReleaseFolderOption,
    SmallOption,
    TargetsOption,
    attack_plan,
    folders_of,
    intruder_named,
)
from .value_of_card import check_drawable, draw, said_before

if TYPE_CHECKING:
    from ..attacks import Risks
    from ..attacks.protocol import Attack
    from ..masking import Masking
    from ..plan import AttackPlan
    from ..plan.sections import TolerancePlan
    from ..table import Table

NO = 1  # exit code: the answer is no
FINGERPRINT = "fingerprint alone"  # who looks at what was not masked


def attack(
    plan: AttackPlanArgument = None,
    release: ReleaseFolderOption = None,
    private: PrivateFolderOption = None,
    targets: TargetsOption = None,
    largest_target_block: SmallOption = None,
    intruder: Annotated[
        str | None,
        typer.Option(help=f"Who attacks, {NAMES}.", show_default=f"{MATCHER}; of a plan, all of them"),
    ] = None,
    one_to_one: Annotated[
        bool, typer.Option("--one-to-one", help="Each candidate is linked once at most.")
    ] = False,
    everybody: Annotated[
        bool, typer.Option("--all", help="All eight who attack where a plan names nobody.")
    ] = False,
    max_rate: MaxRateOption = None,
    picture: Annotated[
        Path | None,
        typer.Option(
            metavar="PNG", help="Of one who knows the law: draw his thresholds and whether he is right."
        ),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Attack a release as intruders would; exit code 1 where a tolerance is given and not met.

    A plan says who attacks ([[intruders]]), whom and what they know ([targets]), and what is tolerated ([tolerance]).

    Examples:

    - `maskwell attack plan.toml`

    - `maskwell attack --release out --private inside --largest-target-block 7 --max-rate 0.15`
    """
    from ..masking import Masking
    from ..pipeline import named_intruders, read_targets

    if everybody and (intruder is not None or one_to_one):
        raise BadPlan("--all sets all intruders side by side: leave --intruder and --one-to-one out")
    once = one_to_one or None
    wanted = attack_plan(
        plan, given_options(largest_target_block=largest_target_block, one_to_one=once, max_rate=max_rate)
    )
    everybody = everybody or (plan is not None and intruder is None)
    named = named_intruders(wanted)
    if not everybody:
        name = intruder or MATCHER
        named = {name: _once(intruder_named(name, named), one_to_one)}
    if picture is not None:
        check_drawable(named, picture)
    public, inside = folders_of(wanted, release, private)
    masking = Masking.read(release=public, private=inside)
    held = None if targets is None else read_targets(targets, masking.truth.schema, named.values())
    section = wanted.tolerance
    if section is not None and not everybody:
        section = replace(section, intruders=tuple(named), not_held={})
    _attack(
        _with_known_columns(wanted, named, masking, held), masking, held, section, picture, as_json=as_json
    )


def _attack(
    plans: Mapping[str, Attack],
    masking: Masking,
    held: Table | None,
    section: TolerancePlan | None,
    picture: Path | None,
    *,
    as_json: bool,
) -> None:
    """Attack, and say what was found and whether it is tolerated."""
    from ..attacks import attack as run

    said_before(plans, masking, held)
    with warnings_told() as told:
        risks = run(plans, masking, targets=held)
        told.extend(str(note) for risk in risks.values() for note in risk.notes)
    result: Any = risks if len(plans) > 1 else next(iter(risks.values()))
    said = {} if section is None else _tolerance_verdict(section, plans, risks, masking)
    if as_json:
        typer.echo(json.dumps(result.to_dict() | said, indent=2, allow_nan=False))
    else:
        typer.echo("\n".join([repr(result), *([said["verdict"]] if said else [])]))
    if picture is not None:
        draw(result, picture)
    if said and not said["met"]:
        raise typer.Exit(NO)


def _once(plan: Attack, one_to_one: bool) -> Attack:
    """Let an intruder link each candidate once, where that was asked for."""
    from ..attacks import Fingerprint

    if not one_to_one:
        return plan
    if isinstance(plan, Fingerprint):
        raise BadPlan("--one-to-one is not for fingerprints: they are claimed only where they are unique")
    return replace(plan, assignment="one-to-one")


def _with_known_columns(
    wanted: AttackPlan, named: Mapping[str, Attack], masking: Masking, held: Table | None
) -> dict[str, Attack]:
    """Let intruders rely on all that leaves in clear and may be known outside, where no blocks are named.

    Of a file of their own on the columns that it has.
    """
    from ..masking.hidden_cards import is_withheld
    from ..pipeline import intruders_of

    if is_withheld(masking.card) or not masking.card.laws:  # no card says what left in clear
        return dict(named)
    own = None if held is None else held.schema.names
    chosen = replace(wanted, intruders=tuple(named.items()))
    return intruders_of(chosen, masking.truth, masking.card, own)


def _tolerance_verdict(
    section: TolerancePlan, plans: Mapping[str, Attack], risks: Risks, masking: Masking
) -> dict[str, Any]:
    """Hold intruders to a tolerance as a release does: say whether it is met, and by whom it is not."""
    from ..pipeline import Judge

    judge = Judge.of_section(section, plans, masking.truth)
    unmet = [one.name for one in judge.standings(risks) if not one.met]
    open_ = judge.not_judged(risks)
    verdict = f"NOT met by {', '.join(unmet)}" if unmet and len(risks) > 1 else "NOT met" if unmet else "met"
    verdict = "\n  - ".join(["not judged" if open_ and not unmet else verdict, *open_])
    over = "" if section.over == "all" else f", over the {section.over} targets"
    return {
        "tolerance": section.tolerance.to_dict(),
        "met": not unmet and not open_,
        "not_judged": open_,
        "verdict": f"tolerance ({section.tolerance}{over}): {verdict}",
    }


def swap(
    to_release: Annotated[Path, typer.Option(help="The folder for the repaired release.")],
    to_private: Annotated[Path, typer.Option(help="The folder for its private half.")],
    plan: AttackPlanArgument = None,
    release: ReleaseFolderOption = None,
    private: PrivateFolderOption = None,
    max_rate: MaxRateOption = None,
    largest_target_block: SmallOption = None,
    intruder: Annotated[
        str | None,
        typer.Option(help=f"Against whom, {NAMES}.", show_default=f"{MATCHER}; of a plan, its own"),
    ] = None,
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
    code 1, and nothing written, where no number of swaps meets it. A plan says the rest in [swap], [[intruders]],
    [targets] and [tolerance].

    Examples:

    - `maskwell swap plan.toml --to-release out2 --to-private inside2`

    - `maskwell swap --release out --private inside --max-rate 0.15 --to-release out2 --to-private inside2`
    """
    from ..io.bundle import check_halves
    from ..masking import Masking
    from ..protect import swap as run

    names = split_names(columns)
    options = given_options(max_rate=max_rate, largest_target_block=largest_target_block)
    options |= given_options(columns=None if names is None else list(names), exempt_values=exempt_values)
    wanted = attack_plan(plan, options)
    section = wanted.tolerance
    if section is None or section.over != "all":
        raise BadPlan("say what is tolerated over all targets: --max-rate, or one of [tolerance] in a plan")
    against = _swapped_against(wanted, intruder, by_plan=plan is not None)
    public, inside = folders_of(wanted, release, private)
    check_halves(to_release, to_private, ())
    masking = Masking.read(release=public, private=inside)
    own = wanted.swap
    try:
        with warnings_told():
            swapped = run(
                masking,
                against,
                section.tolerance,
                columns=own.columns,
                exempt_values=own.exempt_values,
                domains=own.domains,
            )
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


def _swapped_against(wanted: AttackPlan, name: str | None, *, by_plan: bool) -> Attack:
    """Return who is named: by the option, under [swap], or as the only one; without a plan, Winkler's matcher."""
    from ..attacks import Fingerprint
    from ..pipeline import named_intruders

    named = named_intruders(wanted)
    name = name or wanted.swap.intruder or (next(iter(named)) if len(named) == 1 else None)
    if name is None and by_plan:
        raise BadPlan(
            "say against whom: --intruder, or intruder under [swap]; one of " + ", ".join(map(repr, named))
        )
    found: Attack = intruder_named(name or MATCHER, named)
    if isinstance(found, Fingerprint):
        raise BadPlan("a fingerprint is in what was not masked: no exchange of masked values removes it")
    return found

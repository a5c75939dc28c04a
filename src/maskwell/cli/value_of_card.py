"""`maskwell card-value`, and the options of the Bayesian intruder."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

from ..errors import BadPlan
from .file_options import JsonOption, given_options
from .messages import echo_message, said_at_terminal, warnings_told
from .plan_options import FieldsOption, IntruderOptions, MatchBlocksOption, SmallOption, TargetBlocksOption

MANY, MANY_TOGETHER = 5_000_000, 50_000  # pairs of records from which on the work is announced

KernelOption = Annotated[
    str | None,
    typer.Option(help="Of --intruder law: coherent, forward, paper or fms.", show_default="coherent"),
]
UntoldOption = Annotated[
    bool, typer.Option("--untold", help="The intruder law has a prior instead of the noise's parameters.")
]
TargetsOption = Annotated[
    Path | None, typer.Option(metavar="FILE", help="A file the intruder holds.", show_default="the truth")
]
HelpersOption = Annotated[
    str | None,
    typer.Option(help="Of --intruder law: so many other units he knows, or all.", show_default="0"),
]
ThresholdOption = Annotated[
    float | None,
    typer.Option(help="Of --intruder law: he claims links of a probability above this.", show_default="0"),
]
FamilyOption = Annotated[
    str | None,
    typer.Option(help="The prior: inverse gamma, gamma or lognormal.", show_default="inverse gamma"),
]
MeanOverSdOption = Annotated[
    float | None, typer.Option(help="How tight the prior is: its mean over its sd.", show_default="20")
]


def belief_options(
    kind: str, options: dict[str, Any], prior: dict[str, Any], *, untold: bool
) -> dict[str, Any]:
    """Return what the options say of the Bayesian intruder; refuse them of another."""
    found = given_options(**options)
    if "helpers" in found:
        found["helpers"] = _helpers(found["helpers"])
    if given_options(**prior) and not untold:
        raise BadPlan("--family and --mean-over-sd are of the prior of --untold: say --untold too")
    if untold:
        from ..attacks import Prior

        found["prior"] = Prior(**given_options(**prior))
    if found and kind != "law":
        raise BadPlan(
            "--kernel, --untold, --family, --mean-over-sd, --helpers and --threshold are those of --intruder law"
        )
    return found


def said_before(plans: Any, masking: Any, held: Any) -> None:
    """Say at a terminal how large the work is, where it is large."""
    plan = next(iter(plans.values())) if isinstance(plans, dict) else plans
    pairs = _pairs(plan, masking, held)
    together = plan.helpers or plan.prior is not None
    if pairs >= (MANY_TOGETHER if together or isinstance(plans, dict) else MANY):
        who = f"{len(plans)} intruders" if isinstance(plans, dict) else "the intruder"
        said_at_terminal(f"up to {pairs:,} pairs of records for {who}: this may take a while")


def _pairs(plan: Any, masking: Any, held: Any) -> int:
    """Return how many pairs of records share a block, at most."""
    from ..attacks.bayes.candidates import pairs_within

    released = masking.release.table
    blocks = [name for name in plan.match_columns(released.schema) if name not in masking.card.masked]
    return pairs_within(masking.truth if held is None else held, released, blocks)


def _steps(plan: Any, masking: Any, held: Any, *, as_json: bool) -> Callable[[str], None]:
    """Return how the steps of the command are said: large work is announced, and seen to go on in a pipe too."""
    pairs = 0

    def step(text: str) -> None:
        nonlocal pairs
        if not pairs:  # only now, when nothing was refused
            truth = masking.truth
            sought = truth.take(plan.target_records(truth)) if held is None else held
            pairs = max(_pairs(plan, masking, sought), 1)
            if pairs >= MANY_TOGETHER:
                echo_message(f"up to {pairs:,} pairs of records for each intruder: this may take a while")
        if pairs >= MANY_TOGETHER:
            echo_message(text)
        elif not as_json:
            said_at_terminal(text)

    return step


def check_drawable(kind: str, picture: Path) -> None:
    """Refuse, before any work, a picture that cannot be drawn."""
    from ..figure_style import check_picture

    if kind != "law":
        raise BadPlan("--picture draws what --intruder law believes")
    check_picture(picture)


def draw(risk: Any, picture: Path) -> None:
    """Draw what the intruder believes."""
    from ..attacks.bayes.pictures import draw_belief

    typer.echo(f"drawn: {draw_belief(risk.belief, picture)}", err=True)


def _helpers(text: str) -> int | str:
    text = text.strip()
    if text == "all":
        return text
    try:
        count = int(text)
    except ValueError:
        count = -1
    if count < 0:
        raise BadPlan(f"--helpers is a whole number or all, not {text!r}")
    return count


def card_value(
    release: Annotated[Path, typer.Option(help="The folder that may leave.")],
    private: Annotated[Path, typer.Option(help="The folder that stays: key, links, truth.")],
    largest_target_block: SmallOption = None,
    target_blocks: TargetBlocksOption = None,
    match_blocks: MatchBlocksOption = None,
    fields: FieldsOption = None,
    targets: TargetsOption = None,
    helpers: Annotated[
        str | None, typer.Option(help="Also intruders who know so many other units, e.g. 10,100,all.")
    ] = None,
    family: FamilyOption = None,
    mean_over_sd: MeanOverSdOption = None,
    ceiling: Annotated[
        bool,
        typer.Option(
            "--ceiling/--no-ceiling", help="Also the one who knows all others: slow on large blocks."
        ),
    ] = True,
    as_json: JsonOption = False,
) -> None:
    """Compare the risk with the parameters of the noise told and not told, and say what that advises.

    Example: `maskwell card-value --release out --private inside --helpers 10,100`
    """
    from ..attacks import Prior
    from ..attacks import card_value as run
    from ..masking import Masking
    from ..pipeline import read_targets

    plan = IntruderOptions(largest_target_block, target_blocks, match_blocks, fields).plan("law")
    prior = Prior(**given_options(family=family, mean_over_sd=mean_over_sd))
    counts = [_helpers(one) for one in (helpers or "").split(",") if one.strip()]
    masking = Masking.read(release=release, private=private)
    held = None if targets is None else read_targets(targets, masking.truth.schema, plan)
    with warnings_told():
        result = run(
            masking,
            plan=plan,
            prior=prior,
            helpers=counts,
            ceiling=ceiling,
            targets=held,
            progress=_steps(plan, masking, held, as_json=as_json),
        )
    typer.echo(json.dumps(result.to_dict(), indent=2, allow_nan=False) if as_json else repr(result))

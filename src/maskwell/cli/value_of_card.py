"""`maskwell card-value`, and what is said and drawn of intruders who weigh by the law."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..errors import BadPlan
from .file_options import JsonOption, given_options
from .messages import echo_message, said_at_terminal, warnings_told
from .plan_options import (
    AttackPlanArgument,
    PrivateFolderOption,
    ReleaseFolderOption,
    SmallOption,
    TargetsOption,
    attack_plan,
    folders_of,
    pairs_told,
)

if TYPE_CHECKING:
    from ..attacks.protocol import Attack

MANY, MANY_TOGETHER = 5_000_000, 50_000  # pairs of records from which on the work is announced


def said_before(plans: Mapping[str, Attack], masking: Any, held: Any) -> None:
    """Say at a terminal how large the work is, where it is large."""
    plan: Any = next(iter(plans.values()))
    pairs = _pairs(plan, masking, held)
    together = len(plans) > 1 or plan.helpers or plan.prior is not None
    if pairs >= (MANY_TOGETHER if together else MANY):
        said_at_terminal(f"up to {pairs:,} pairs of records for {pairs_told(plans)}: this may take a while")


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


def check_drawable(plans: Mapping[str, Attack], picture: Path) -> None:
    """Refuse, before any work, a picture that cannot be drawn."""
    from ..attacks import BayesIntruder
    from ..figure_style import check_picture

    if len(plans) > 1 or not isinstance(next(iter(plans.values())), BayesIntruder):
        raise BadPlan(
            "--picture draws what one intruder believes: name him, as by --intruder 'knows the law'"
        )
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
    plan: AttackPlanArgument = None,
    release: ReleaseFolderOption = None,
    private: PrivateFolderOption = None,
    largest_target_block: SmallOption = None,
    targets: TargetsOption = None,
    helpers: Annotated[
        str | None, typer.Option(help="Also intruders who know so many other units, e.g. 10,100,all.")
    ] = None,
    family: Annotated[
        str | None,
        typer.Option(
            help="Of the prior on the noise: inverse gamma, gamma or lognormal.", show_default="inverse gamma"
        ),
    ] = None,
    mean_over_sd: Annotated[
        float | None, typer.Option(help="How tight the prior is: its mean over its sd.", show_default="20")
    ] = None,
    ceiling: Annotated[
        bool,
        typer.Option(
            "--ceiling/--no-ceiling", help="Also the one who knows all others: slow on large blocks."
        ),
    ] = True,
    as_json: JsonOption = False,
) -> None:
    """Compare the risk with the parameters of the noise told and not told, and say what that advises.

    Of a plan it reads [output] and [targets]: the folders, whom the intruder is after and what he knows.

    Example: `maskwell card-value --release out --private inside --helpers 10,100`
    """
    from ..attacks import BayesIntruder, Prior
    from ..attacks import card_value as run
    from ..masking import Masking
    from ..pipeline import read_targets

    wanted = attack_plan(plan, given_options(largest_target_block=largest_target_block))
    intruder = BayesIntruder(**wanted.targets.shared)
    prior = Prior(**given_options(family=family, mean_over_sd=mean_over_sd))
    counts = [_helpers(one) for one in (helpers or "").split(",") if one.strip()]
    public, inside = folders_of(wanted, release, private)
    masking = Masking.read(release=public, private=inside)
    held = None if targets is None else read_targets(targets, masking.truth.schema, [intruder])
    with warnings_told():
        result = run(
            masking,
            plan=intruder,
            prior=prior,
            helpers=counts,
            ceiling=ceiling,
            targets=held,
            progress=_steps(intruder, masking, held, as_json=as_json),
        )
    typer.echo(json.dumps(result.to_dict(), indent=2, allow_nan=False) if as_json else repr(result))

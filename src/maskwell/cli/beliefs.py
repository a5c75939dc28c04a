"""`maskwell telling`, and the options of the Bayesian intruder."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from ..errors import BadPlan
from .choosing import Chosen, FieldsOption, MatchBlocksOption, SmallOption, TargetBlocksOption
from .reading import JsonOption
from .telling import warnings_told

KernelOption = Annotated[
    str | None,
    typer.Option(help="Of --intruder law: coherent, forward, paper or fms.", show_default="coherent"),
]
UntoldOption = Annotated[
    bool, typer.Option("--untold", help="The intruder law has a prior instead of the noise's parameters.")
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
    kind: str, kernel: str | None, untold: bool, helpers: str | None, threshold: float | None
) -> dict[str, Any]:
    """Return what the options say of the Bayesian intruder; refuse them of another."""
    given: dict[str, Any] = {"kernel": kernel, "threshold": threshold}
    given = {name: value for name, value in given.items() if value is not None}
    if helpers is not None:
        given["helpers"] = helpers if helpers == "all" else _whole(helpers)
    if untold:
        from ..attacks import Prior

        given["prior"] = Prior()
    if given and kind != "law":
        raise BadPlan("--kernel, --untold, --helpers and --threshold are those of --intruder law")
    return given


def check_drawable(kind: str, picture: Path) -> None:
    """Refuse, before any work, a picture that cannot be drawn."""
    from ..drawing import check_picture

    if kind != "law":
        raise BadPlan("--picture draws what --intruder law believes")
    check_picture(picture)


def draw(risk: Any, picture: Path) -> None:
    """Draw what the intruder believes."""
    from ..attacks.bayes.pictures import draw_belief

    typer.echo(f"drawn: {draw_belief(risk.belief, picture)}", err=True)


def _whole(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise BadPlan(f"--helpers is a whole number or all, not {text!r}") from None


def telling(
    release: Annotated[Path, typer.Option(help="The folder that may leave.")],
    private: Annotated[Path, typer.Option(help="The folder that stays: key, links, truth.")],
    largest_target_block: SmallOption = None,
    target_blocks: TargetBlocksOption = None,
    match_blocks: MatchBlocksOption = None,
    fields: FieldsOption = None,
    helpers: Annotated[
        str | None, typer.Option(help="Also intruders who know so many other units, e.g. 10,100.")
    ] = None,
    family: FamilyOption = None,
    mean_over_sd: MeanOverSdOption = None,
    as_json: JsonOption = False,
) -> None:
    """Compare the risk with the parameters of the noise told and not told, and say what that advises.

    Example: `maskwell telling --release out --private inside --helpers 10,100`
    """
    from ..attacks import Prior
    from ..attacks import telling as run
    from ..masking import Masking

    chosen = Chosen(largest_target_block, target_blocks, match_blocks, fields)
    given: dict[str, Any] = {"family": family, "mean_over_sd": mean_over_sd}
    prior = Prior(**{name: value for name, value in given.items() if value is not None})
    counts = tuple(_whole(one) for one in (helpers or "").split(",") if one.strip())
    masking = Masking.read(release=release, private=private)
    with warnings_told():
        result = run(masking, plan=chosen.plan("law"), prior=prior, helpers=counts)
    typer.echo(json.dumps(result.to_dict(), indent=2, allow_nan=False) if as_json else repr(result))

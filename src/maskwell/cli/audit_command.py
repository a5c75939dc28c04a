"""`maskwell audit` and `maskwell compare`: what leaks from a written release, and what it still tells."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from ..errors import BadPlan
from .attack_command import NO
from .file_options import JsonOption, split_names
from .messages import warnings_told
from .plan_options import PrivateOption, ReleaseOption


def audit(
    release: ReleaseOption,
    private: PrivateOption,
    earlier: Annotated[
        Path | None, typer.Option(help="An earlier release of the same records, to join with this one.")
    ] = None,
    earlier_private: Annotated[
        Path | None, typer.Option(help="Its private folder.", show_default="that of --private")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Check a written release for every known leak; exit code 1 where a check fails.

    Example: `maskwell audit --release out --private inside`
    """
    from ..checks import audit as run
    from ..masking import Masking

    if earlier_private is not None and earlier is None:
        raise BadPlan("--earlier-private needs --earlier too: the folder of the release it belongs to")
    masking = Masking.read(release=release, private=private)
    before = () if earlier is None else (Masking.read(release=earlier, private=earlier_private or private),)
    with warnings_told():
        found = run(masking, earlier=before, folder=release)
    typer.echo(json.dumps(found.to_dict(), indent=2, allow_nan=False) if as_json else repr(found))
    if not found.passed:
        raise typer.Exit(NO)


def compare(
    release: ReleaseOption,
    private: PrivateOption,
    model: Annotated[
        list[str] | None,
        typer.Option(help="A regression to compare, such as 'y ~ x1 + x2'; may be given several times."),
    ] = None,
    family: Annotated[str, typer.Option(help="Of these models: gaussian, logit, probit, ...")] = "gaussian",
    groups: Annotated[
        str | None,
        typer.Option(help="Columns whose groups are compared, with commas.", show_default="role group"),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Compare a written release with the truth: moments, distances, groups, models naive and adjusted.

    Example: `maskwell compare --release out --private inside --model "HOME_VAL ~ INCOME"`
    """
    from ..masking import Masking
    from ..utility import Model
    from ..utility import compare as run

    masking = Masking.read(release=release, private=private)
    with warnings_told():
        found = run(
            masking, models=[Model(formula, family) for formula in model or ()], groups=split_names(groups)
        )
    typer.echo(json.dumps(found.to_dict(), indent=2, allow_nan=False) if as_json else repr(found))

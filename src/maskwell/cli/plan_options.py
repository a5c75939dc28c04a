"""The options by which commands choose an intruder and a tolerance, and the plan that says the rest."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from ..errors import BadPlan, nearest
from .file_options import refuse_beside_plan

if TYPE_CHECKING:
    from ..attacks.protocol import Attack
    from ..plan import AttackPlan

MATCHER = "Winkler's matcher"  # who attacks where nobody is named
NAMES = "as plans and reports call him, e.g. 'nearest record', 'nearest, informed', 'knows the law'"

AttackPlanArgument = Annotated[
    Path | None,
    typer.Argument(metavar="PLAN", help="A plan (TOML) in place of options.", show_default="options alone"),
]
ReleaseOption = Annotated[Path, typer.Option(help="The folder that may leave.")]
PrivateOption = Annotated[Path, typer.Option(help="The folder that stays: key, links, truth.")]
ReleaseFolderOption = Annotated[
    Path | None, typer.Option(help="The folder that may leave.", show_default="that of the plan")
]
PrivateFolderOption = Annotated[
    Path | None,
    typer.Option(help="The folder that stays: key, links, truth.", show_default="that of the plan"),
]
TargetsOption = Annotated[
    Path | None, typer.Option(metavar="FILE", help="A file the intruder holds.", show_default="the truth")
]
SmallOption = Annotated[
    int | None,
    typer.Option(help="Targets are the records in blocks of at most so many.", show_default="all records"),
]
MaxRateOption = Annotated[
    float | None, typer.Option(help="Tolerated: this share of the targets linked correctly, e.g. 0.15.")
]

Item = TypeVar("Item")


def sections_of(options: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Return options as the sections of a plan in which they stand there."""
    places = {
        "targets": ("largest_target_block",),
        "tolerance": ("max_rate", "over", "intruders"),
        "swap": ("columns", "exempt_values"),
    }
    found = {
        section: {name: options[name] for name in names if name in options}
        for section, names in places.items()
    }
    return {section: given for section, given in found.items() if given}


def attack_plan(path: Path | None, options: Mapping[str, Any]) -> AttackPlan:
    """Return the plan of a file, or that of options; beside a plan these are refused."""
    from ..plan import AttackPlan

    if path is None:
        return AttackPlan.from_dict(sections_of(options))
    refuse_beside_plan(options)
    return AttackPlan.read(path)


def folders_of(plan: AttackPlan, release: Path | None, private: Path | None) -> tuple[Path, Path]:
    """Return the folders of both halves: those that are named, else those of the plan."""
    own = plan.output
    public = release if own is None or release is not None else own.release
    inside = private if own is None or private is not None else own.private
    if public is None or inside is None:
        missing = [name for name, path in (("release", public), ("private", inside)) if path is None]
        raise BadPlan(
            f"--{name} is needed: a folder (or {name} under [output] in a plan)" for name in missing
        )
    return public, inside


def intruder_named(name: str, intruders: Mapping[str, Item]) -> Item:
    """Return an intruder by the name that plans and reports give him."""
    if name not in intruders:
        listed = ", ".join(map(repr, intruders))
        raise BadPlan(f"--intruder: there is no {name!r}{nearest(name, intruders)}; there are {listed}")
    return intruders[name]


def pairs_told(plans: Mapping[str, Attack]) -> str:
    """Say how many intruders there are."""
    return f"{len(plans)} intruders" if len(plans) > 1 else "the intruder"

"""Studies: runs by a small seed, which anybody can repeat. They are no releases, and lie in folders that say so."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TypeVar

from ..errors import BadPlan, NoRelease
from ..plan import MaskPlan

STUDY = "-study"  # what the names of a study's folders end in

AnyPlan = TypeVar("AnyPlan", bound=MaskPlan)


def check_study(seed: int | None, study: bool) -> None:
    """Refuse, before any work, a seed that nobody called a study, and a study without a seed."""
    if seed is not None and not study:
        raise NoRelease(
            "a run by a seed is a study and no release: say so (--study, in Python study=True) and it is written into "
            f"folders whose names end in {STUDY}; for a release leave the seed out"
        )
    if study and seed is None:
        raise BadPlan("a study is run by a seed: give one (--seed), or leave --study out")


def study_plan(plan: AnyPlan) -> AnyPlan:
    """Return a plan that writes to the folders of its study, and is nested in a study where it is nested."""
    own = plan.output
    output = replace(
        own,
        release=study_folder(own.release),
        private=study_folder(own.private),
        earlier=None if own.earlier is None else study_folder(own.earlier),
        earlier_private=tuple(map(study_folder, own.earlier_private)),
    )
    return replace(plan, output=output)


def study_folder(path: Path) -> Path:
    """Return the folder of a study beside that of the release."""
    named = path if path.name not in ("", "..") else path.resolve()
    return named if named.name.endswith(STUDY) else named.with_name(f"{named.name}{STUDY}")

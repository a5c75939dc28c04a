"""Whole jobs, in order: what the command line and the demo run; `release` is all of it."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .demo import demo_plans
    from .intruders import intruders_of, named_intruders
    from .noise_search import bounds_of
    from .outcome import Advice, Attempt, Outcome
    from .plan_files import (
        check_folders,
        earlier_of,
        inspect_file,
        mask_by_plan,
        read_input,
        read_table,
        read_targets,
        unrelated_releases,
    )
    from .run import release
    from .tolerance_checks import Judge

__all__ = [
    "Advice",
    "Attempt",
    "Judge",
    "Outcome",
    "bounds_of",
    "check_folders",
    "demo_plans",
    "earlier_of",
    "inspect_file",
    "intruders_of",
    "mask_by_plan",
    "named_intruders",
    "read_input",
    "read_table",
    "read_targets",
    "release",
    "unrelated_releases",
]

_WHERE = {
    "Advice": "outcome",
    "Attempt": "outcome",
    "Judge": "tolerance_checks",
    "Outcome": "outcome",
    "bounds_of": "noise_search",
    "check_folders": "plan_files",
    "demo_plans": "demo",
    "earlier_of": "plan_files",
    "inspect_file": "plan_files",
    "intruders_of": "intruders",
    "mask_by_plan": "plan_files",
    "named_intruders": "intruders",
    "read_input": "plan_files",
    "read_table": "plan_files",
    "read_targets": "plan_files",
    "release": "run",
    "unrelated_releases": "plan_files",
}


def __getattr__(name: str) -> Any:
    if name in _WHERE:
        return getattr(import_module(f".{_WHERE[name]}", __name__), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

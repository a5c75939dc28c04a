"""Whole jobs, in order: what the command line and the demo run; `release` is all of it."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .demo import demo_plans
    from .intruders import intruders_beside
    from .outcome import Advice, Attempt, Outcome
    from .reading import (
        check_folders,
        earlier_of,
        inspect_file,
        mask_by_plan,
        read_input,
        read_table,
        read_targets,
        unrelated_releases,
    )
    from .releasing import release

__all__ = [
    "Advice",
    "Attempt",
    "Outcome",
    "check_folders",
    "demo_plans",
    "earlier_of",
    "inspect_file",
    "intruders_beside",
    "mask_by_plan",
    "read_input",
    "read_table",
    "read_targets",
    "release",
    "unrelated_releases",
]

_WHERE = {
    "Advice": "outcome",
    "Attempt": "outcome",
    "Outcome": "outcome",
    "check_folders": "reading",
    "demo_plans": "demo",
    "earlier_of": "reading",
    "inspect_file": "reading",
    "intruders_beside": "intruders",
    "mask_by_plan": "reading",
    "read_input": "reading",
    "read_table": "reading",
    "read_targets": "reading",
    "release": "releasing",
    "unrelated_releases": "reading",
}


def __getattr__(name: str) -> Any:
    if name in _WHERE:
        return getattr(import_module(f".{_WHERE[name]}", __name__), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

"""Mask a table: `apply` gives a `Masking` that stays inside; only its `.release` may leave."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .applying import apply
    from .plans import Mask, Plan, Setting
    from .results import Masking, Release
    from .stored import read_release
    from .swapping import Swapping

__all__ = ["Mask", "Masking", "Plan", "Release", "Setting", "Swapping", "apply", "read_release"]

_WHERE = {
    "Mask": "plans",
    "Masking": "results",
    "Plan": "plans",
    "Release": "results",
    "Setting": "plans",
    "Swapping": "swapping",
    "apply": "applying",
    "read_release": "stored",
}


def __getattr__(name: str) -> Any:
    if name in _WHERE:
        return getattr(import_module(f".{_WHERE[name]}", __name__), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

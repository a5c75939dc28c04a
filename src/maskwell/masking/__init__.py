"""Mask a table: `apply` gives a `Masking` that stays inside; only its `.release` may leave."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .application import apply
    from .protocol import Mask, Setting, WrittenPlan
    from .release_files import read_release
    from .results import Masking, Release
    from .swap_record import Swapping

__all__ = ["Mask", "Masking", "Release", "Setting", "Swapping", "WrittenPlan", "apply", "read_release"]

_WHERE = {
    "Mask": "protocol",
    "Masking": "results",
    "WrittenPlan": "protocol",
    "Release": "results",
    "Setting": "protocol",
    "Swapping": "swap_record",
    "apply": "application",
    "read_release": "release_files",
}


def __getattr__(name: str) -> Any:
    if name in _WHERE:
        return getattr(import_module(f".{_WHERE[name]}", __name__), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

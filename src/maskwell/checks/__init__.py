"""The audit: every known way in which a noise-masked file leaks, each a figure with limits and a remedy."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .findings import Audit, Finding, Limits
    from .whole_audit import audit

__all__ = ["Audit", "Finding", "Limits", "audit"]

_WHERE = {"Audit": "findings", "Finding": "findings", "Limits": "findings", "audit": "whole_audit"}


def __getattr__(name: str) -> Any:
    if name in _WHERE:
        return getattr(import_module(f".{_WHERE[name]}", __name__), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

"""What people read: one screen of text, and two HTML documents, for the board and for recipients."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from .screen import masking_summary, short, text_table

if TYPE_CHECKING:
    from .external import external_report
    from .internal import internal_report
    from .summary import passing_sections, refusal_summary, release_summary, typed_sections

__all__ = [
    "external_report",
    "internal_report",
    "masking_summary",
    "passing_sections",
    "refusal_summary",
    "release_summary",
    "short",
    "text_table",
    "typed_sections",
]

_WHERE = {
    "external_report": "external",
    "internal_report": "internal",
    "passing_sections": "summary",
    "refusal_summary": "summary",
    "release_summary": "summary",
    "typed_sections": "summary",
}


def __getattr__(name: str) -> Any:
    if name in _WHERE:
        return getattr(import_module(f".{_WHERE[name]}", __name__), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

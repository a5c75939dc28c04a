"""Sections of a plan and columns of a schema as a steward types them: TOML that can be pasted, and is read back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..schema import toml_key, toml_value


def masks_text(masks: Sequence[Any]) -> str:
    """Return masks as the [[masks]] sections of a plan."""
    return sections_text("masks", [_mask(mask.to_dict()) for mask in masks])


def section_text(name: str, data: Mapping[str, Any]) -> str:
    """Return a section that stands in a plan once."""
    return _section(f"[{name}]", data) + "\n"


def sections_text(name: str, items: Sequence[Mapping[str, Any]]) -> str:
    """Return sections that stand in a plan several times."""
    return "\n\n".join(_section(f"[[{name}]]", item) for item in items) + "\n"


def dropped_text(columns: Sequence[str]) -> str:
    """Return what a schema says of columns that stay inside; the rest of their sections stays as it is."""
    return "\n\n".join(_section(f"[columns.{toml_key(name)}]", {"drop": True}) for name in columns) + "\n"


def _section(head: str, data: Mapping[str, Any]) -> str:
    return "\n".join([head, *(f"{toml_key(key)} = {toml_value(value)}" for key, value in data.items())])


def _mask(data: Mapping[str, Any]) -> dict[str, Any]:
    """Return a mask in the shapes that read well: one name bare, limits and groups as tables."""
    out = dict(data)
    if len(out.get("columns", ())) == 1:
        out["columns"] = out["columns"][0]
    if "limits" in out:
        out["limits"] = {name: _ends(low, high) for name, low, high in out["limits"]}
    for key in ("groups", "parts"):
        if isinstance(out.get(key), list):
            out[key] = dict(out[key])
    return out


def _ends(low: float | None, high: float | None) -> dict[str, float]:
    return {name: value for name, value in (("low", low), ("high", high)) if value is not None}

"""Sections of a plan and columns of a schema as a steward types them: TOML that can be pasted, and is read back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ..schema import toml_key, toml_value

if TYPE_CHECKING:
    from ..plan import ReleasePlan


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


def sections_without(plan: ReleasePlan, dropped: tuple[str, ...]) -> list[str]:
    """Return the sections of a plan that name columns which no longer leave, without them."""
    if not dropped:
        return []
    out, data = [], plan.to_dict()
    for name in ("targets", "utility"):
        section = data.get(name, {})
        if (fewer := _fewer(section, dropped)) != section:
            out.append(section_text(name, fewer))
    if any(_fewer(one, dropped) != one for one in data.get("intruders", ())):
        out.append(sections_text("intruders", [_fewer(one, dropped) for one in data["intruders"]]))
    return out


def _fewer(section: Mapping[str, Any], dropped: tuple[str, ...]) -> dict[str, Any]:
    """Take columns out of what is compared and relied upon; who is a target is still told by them."""
    out = dict(section)
    for key in ("match_blocks", "fields", "groups"):
        if isinstance(out.get(key), list):
            out[key] = [name for name in out[key] if name not in dropped]
    if isinstance(out.get("not_known"), dict):
        out["not_known"] = {name: why for name, why in out["not_known"].items() if name not in dropped}
    return out

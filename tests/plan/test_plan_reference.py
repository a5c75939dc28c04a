"""docs/plan.md has every key of a plan, with its type and default as the code has them, and examples that work."""

from __future__ import annotations

import re
import tomllib
from dataclasses import MISSING, Field, fields
from pathlib import Path
from typing import Any, get_type_hints

import pytest

import maskwell as mw
from maskwell.plan import (
    DEFAULT_INTRUDERS,
    InputPlan,
    ModelPlan,
    OutputPlan,
    ReleasePlan,
    TargetsPlan,
    type_words,
)
from maskwell.plan.release_plan import ONCE, STEPS
from maskwell.plan.sections import TOLERATED

PAGE = (Path(__file__).parents[2] / "docs" / "plan.md").read_text(encoding="utf-8")
SECTIONS: dict[str, Any] = {"input": InputPlan, "output": OutputPlan, "models": ModelPlan, **ONCE, **STEPS}
LEAST: dict[str, Any] = {
    "input": {"file": "a.csv"},
    "masks": [{"mask": "Subsample", "fraction": 0.5}],
    "output": {"release": "out", "private": "inside"},
}

BESIDE: dict[str, dict[str, Any]] = {
    "input": {"file": "a.csv"},
    "output": {"release": "out", "private": "inside"},
    "models": {"formula": "A ~ B"},
    "decimal": {"delimiter": ";"},
    "earlier_private": {"earlier": "first"},
}  # what a section, or a key, needs to stand beside it


def part(section: str) -> str:
    """The page from a section's heading to the next."""
    found = re.search(rf"^## \[+{section}\]+:.*?(?=^## |\Z)", PAGE, re.MULTILINE | re.DOTALL)
    assert found, f"docs/plan.md has no section {section}"
    return found.group()


def rows(section: str) -> list[list[str]]:
    """The cells of the section's table."""
    lines = [line for line in part(section).splitlines() if line.startswith("| `")]
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines]


def default_of(item: Field[Any]) -> str:
    """A default as the page writes it."""
    value = item.default if item.default is not MISSING else None
    if value is None and item.default_factory is not MISSING:
        value = item.default_factory()
    elif item.default is MISSING:
        return "needed"
    if value is None or value in ((), "") or value == {}:
        return "-"
    if isinstance(value, bool):
        return f"`{str(value).lower()}`"
    return f'`"{value}"`' if isinstance(value, str) else f"`{value}`"


def example(cell: str) -> dict[str, Any]:
    return tomllib.loads(cell.strip("`").replace("; ", "\n"))


def test_every_section_is_explained() -> None:
    headings = re.findall(r"^## \[+(\w+)\]+:", PAGE, re.MULTILINE)
    assert sorted(headings) == sorted(ReleasePlan.sections)


@pytest.mark.parametrize("section", SECTIONS)
def test_keys_types_and_defaults_are_those_of_the_code(section: str) -> None:
    kind = SECTIONS[section]
    hints = get_type_hints(kind, include_extras=True)
    told = [(row[0], row[1], row[2]) for row in rows(section)]
    assert told == [(f"`{i.name}`", type_words(hints[i.name]), default_of(i)) for i in fields(kind)]


@pytest.mark.parametrize("section", [*SECTIONS, "tolerance"])
def test_examples_are_read(section: str) -> None:
    for row in rows(section):
        key, data = row[0].strip("`"), example(row[-1])
        assert key in data
        given = {**BESIDE.get(section, {}), **BESIDE.get(key, {}), **data}
        plan = ReleasePlan.from_dict(LEAST | {section: [given] if section == "models" else given})
        assert isinstance(plan, ReleasePlan)


def test_tolerances_are_explained() -> None:
    assert [row[0].strip("`") for row in rows("tolerance")] == [*TOLERATED, "intruders", "over", "not_held"]


def test_every_key_of_every_mask_is_explained() -> None:
    told = {(row[0].strip("`"), mask, row[2], row[3]) for row in rows("masks") for mask in row[1].split(", ")}
    kept = {
        (item.name, name, type_words(get_type_hints(kind)[item.name]), default_of(item))
        for name, kind in mw.masks.MASKS.items()
        if name != "Chain"
        for item in fields(kind)
    }
    assert told == kept
    assert all(row[0].strip("`") in example(row[-1]) for row in rows("masks"))


def test_every_key_of_every_intruder_is_explained() -> None:
    shared = {item.name for item in fields(TargetsPlan)}
    told = {(row[0].strip("`"), attack) for row in rows("intruders") for attack in row[1].split(", ")}
    kept = {
        (item.name, name)
        for name, kind in mw.attacks.ATTACKS.items()
        for item in fields(kind)
        if item.name not in shared
    }
    assert told == kept
    assert all(f"`{name}`" in part("intruders") for name in DEFAULT_INTRUDERS)


@pytest.mark.parametrize("row", rows("intruders"), ids=lambda row: row[0])
def test_examples_of_intruders_are_read(row: list[str]) -> None:
    attack = row[1].split(", ")[0]
    beside = {"targets": {"presence_not_known": "drawn inside"}} if "response" in row[0] else {}
    plan = ReleasePlan.from_dict(LEAST | beside | {"intruders": [{"attack": attack} | example(row[-1])]})
    assert plan.intruders[0][1] != mw.attacks.ATTACKS[attack]() or row[0] == "`weights`"


def test_the_whole_examples_are_plans() -> None:
    for text in re.findall(r"```toml\n(.*?)```", PAGE, re.DOTALL):
        assert isinstance(ReleasePlan.from_dict(LEAST | tomllib.loads(text)), ReleasePlan)

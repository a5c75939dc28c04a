"""Sections of a plan file from plain data: names and types are checked, and every problem is listed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, fields
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_args, get_origin, get_type_hints

from ..errors import MaskwellError, nearest
from ..laws.spread import Power, Step

if TYPE_CHECKING:
    from pydantic import TypeAdapter


def section_of(kind: Any, given: Any, where: str, folder: Path, problems: list[str]) -> Any:
    """Build a section; relative paths are read from where the plan lies."""
    if given is None:
        problems.append(f"the plan has no section {where}")
        return None
    if not isinstance(given, Mapping):
        problems.append(f"{where} must be a section: write {where} on a line of its own, its keys below")
        return None
    hints = get_type_hints(kind)
    placed = {key: _resolve_value(value, hints.get(key), folder) for key, value in given.items()}
    return build_dataclass(kind, placed, where, problems)


def _resolve_value(value: Any, hint: Any, folder: Path) -> Any:
    """Allow one name where a list of them is wanted, and put paths where the plan lies."""
    if hint == tuple[Path, ...] and isinstance(value, str | Path | list):
        given = value if isinstance(value, list) else [value]
        return tuple(folder / one if isinstance(one, str | Path) else one for one in given)
    if isinstance(value, str | Path) and value and Path in (get_args(hint) or (hint,)):
        return folder / value
    if isinstance(value, str) and hint in (tuple[str, ...], tuple[str, ...] | None):
        return (value,)
    return tuple(map(_lists_as_tuples, value)) if isinstance(value, list) else value


def _lists_as_tuples(value: Any) -> Any:
    return tuple(map(_lists_as_tuples, value)) if isinstance(value, list) else value


def numbered_items(given: Any, name: str, problems: list[str]) -> list[tuple[int, Any]]:
    """Return the numbered items of a section that may stand in a plan several times, or not at all."""
    if given is None:
        return []
    if not isinstance(given, list | tuple):
        problems.append(f"{name} are a list: write [[{name}]], in double brackets, above each")
        return []
    return list(enumerate(given, 1))


def plain(value: Any) -> Any:
    """Return what stands at a key of a plan as plain data: paths as text, tuples as lists."""
    if isinstance(value, Path):
        return str(value)
    if isinstance(value, Mapping):
        return {name: plain(item) for name, item in value.items()}
    return [plain(item) for item in value] if isinstance(value, tuple) else value


def section_data(section: Any) -> dict[str, Any]:
    """Return a section as plain data; what is not set is left out."""
    values = {item.name: getattr(section, item.name) for item in fields(section)}
    return {name: plain(value) for name, value in values.items() if value not in (None, "", {}, ())}


def unknown(given: Mapping[str, Any], known: Any, where: str) -> list[str]:
    """Name the keys that nobody knows, each with the nearest that is known."""
    return [f"{where}: unknown key {key!r}{nearest(key, known)}" for key in given if key not in known]


def build_dataclass(kind: Any, given: Mapping[str, Any], where: str, problems: list[str]) -> Any:
    """Build a frozen dataclass of plain data after checking its names and types; nothing when one is wrong."""
    types = get_type_hints(kind, include_extras=True)
    hints = {item.name: types[item.name] for item in fields(kind)}
    needed = [
        item.name for item in fields(kind) if item.default is MISSING and item.default_factory is MISSING
    ]
    found = [f"{where}: {name} is needed" for name in needed if name not in given]
    found += unknown(given, list(hints), where)
    values = {key: typed_value(hints[key], value) for key, value in given.items() if key in hints}
    found += [
        f"{where}: {key} must be {type_words(hints[key])}"
        for key, value in values.items()
        if value is MISSING
    ]
    problems += found
    if len(values) < len(set(needed) | set(values)) or any(value is MISSING for value in values.values()):
        return None
    try:  # also where a key is unknown: what is wrong with the others is then said at once
        made = kind(**values)
        return None if found else made
    except MaskwellError as error:
        problems += [f"{where}: {problem}" for problem in error.problems]
    return None


def typed_value(hint: Any, value: Any) -> Any:
    """Return a value of a type, a whole number as a float where one is wanted; `MISSING` when it does not fit."""
    from pydantic import ValidationError

    try:
        return _adapter(hint).validate_python(value)
    except ValidationError:
        return MISSING


@cache
def _adapter(hint: Any) -> TypeAdapter[Any]:
    from pydantic import ConfigDict, TypeAdapter

    return TypeAdapter(hint, config=ConfigDict(strict=True, allow_inf_nan=False))


_WORDS: dict[Any, str] = {
    Path: "a path",
    tuple[Path, ...]: "a path, or a list of paths",
    str: "text",
    bool: "true or false",
    int: "a whole number",
    float: "a number",
    tuple[str, ...]: "a list of column names",
    tuple[str | tuple[str, ...], ...]: "a list of column names, or of lists of those to be crossed",
    dict[str, dict[str, float]]: 'a table such as { "informed links" = { warn = 0.1, fail = 0.15 } }',
    Mapping[str, str]: "a table of reasons",
    Mapping[str, float]: "a table such as { x1 = 0.04 }",
    Mapping[str, tuple[float, float]]: "a table of means and sds, such as { x1 = [0, 1] }",
    tuple[float, ...]: "a list of numbers",
    float | tuple[float, ...]: "a number or a list of numbers",
    tuple[tuple[float, ...], ...]: "a list of lists of numbers",
    tuple[tuple[str, float], ...]: "a list of column names, or a table of column = coefficient",
    tuple[tuple[str, tuple[str, ...]], ...]: 'a table such as { young = ["1", "2"], old = ["3"] }',
    tuple[
        tuple[str, float | None, float | None], ...
    ]: "a table such as { INCOME = { low = 0, high = 90000 } }",
    Step | Power: 'a table such as { form = "power", exponent = 1.0 }',
}


def type_words(hint: Any) -> str:
    """Say in a steward's words what a parameter of this type must be."""
    if get_origin(hint) is Annotated:
        return str(get_args(hint)[1])
    for known, words in _WORDS.items():
        if hint in (known, known | None):
            return words
    return "something else"

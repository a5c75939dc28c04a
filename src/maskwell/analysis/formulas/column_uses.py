"""Check what a formula does with the columns of a file, before anything is evaluated."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from ...errors import nearest
from .formula_tree import CODINGS, bare, name_of, parts_of

Values = Mapping[str, npt.NDArray[Any]]
Levels = Mapping[str, tuple[str, ...]]
MOST_LEVELS = 50  # of a number that is taken for a category


def names_in(tree: Any) -> list[str]:
    """Return the columns that an expression names, each once; names of functions and of arguments are none."""
    if type(tree).__name__ in ("Variable", "QuotedName"):
        return [str(name_of(tree))]
    return list(dict.fromkeys(name for part in parts_of(tree) for name in names_in(part)))


def unknown_columns(tree: Any, data: Values, variables: Levels) -> Iterator[str]:
    """Find the columns that a formula cannot use."""
    for name in names_in(tree):
        if name in data and np.asarray(data[name]).dtype.kind not in "biuf":
            yield f"{name} is a text; a formula can use numbers and categories."
        elif name in data and name not in variables:
            yield f"{name} is neither a number nor a category; a formula cannot use it."
        elif name not in data:
            yield f"There is no column {name!r}{nearest(name, variables)} for the formula."


def misused_columns(tree: Any, data: Values, variables: Levels, noised: Collection[str]) -> Iterator[str]:
    """Find categories that are computed with, numbers that cannot be categories, and levels that do not exist."""
    level = getattr(bare(tree.left), "level", None)
    if level is not None:
        yield from _level(str(name_of(bare(tree.left))), level.value, variables)
    for part in _calls(tree):
        function = name_of(part.callee)
        if function in (*CODINGS, "binary", "B"):
            yield from _coding_problems(part, data, variables, noised)
        else:
            for argument in part.args[:1]:
                yield from _arithmetic_problems(argument, variables)


def _calls(tree: Any) -> Iterator[Any]:
    """Yield the calls that are not inside another."""
    if type(tree).__name__ == "Call":
        yield tree
        return
    for part in parts_of(tree):
        yield from _calls(part)


def _coding_problems(call: Any, data: Values, variables: Levels, noised: Collection[str]) -> Iterator[str]:
    function, name = str(name_of(call.callee)), str(name_of(call.args[0]))
    others = [other.value if type(other).__name__ == "Assign" else other for other in call.args[1:]]
    levels = [other.value for other in others]
    if variables[name]:
        for level in levels:
            yield from _level(name, level, variables)
        return
    if any(isinstance(level, str) for level in levels):
        yield f"{name} is a number; name one of its values without quotes."
    if function not in CODINGS:
        return
    values = _values(data[name])
    if name in noised:
        yield f"{name} has noise and cannot be a category; write {name}, or a comparison as in I({name} > 3)."
    elif len(values) > MOST_LEVELS:
        yield f"{name} has more than {MOST_LEVELS} values and cannot be a category; write (1|{name}) for groups."
    elif any(level not in values for level in levels if not isinstance(level, str)):
        yield f"No record has the value of {name} that {function}(...) names."


def coded_numbers(tree: Any, data: Values, variables: Levels) -> dict[str, tuple[float, ...]]:
    """Return the values of each number that the right side of a formula takes for a category, as in C(n)."""
    coded = [part for part in _calls(tree.right) if name_of(part.callee) in CODINGS]
    names = dict.fromkeys(str(name_of(part.args[0])) for part in coded)
    return {name: tuple(_values(data[name]).tolist()) for name in names if not variables[name]}


def _values(column: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
    found = np.unique(np.asarray(column, np.float64))
    return found[np.isfinite(found)]


def _level(name: str, level: Any, variables: Levels) -> Iterator[str]:
    """Find levels that a category does not have."""
    if not variables[name]:
        yield f"{name} is a number; compare it with a number, not with a text."
    elif level not in variables[name]:
        yield f"{name} has no level {level!r}{nearest(str(level), variables[name])}."


def _arithmetic_problems(tree: Any, variables: Levels) -> Iterator[str]:
    """Find categories in arithmetic; comparisons with one of their levels are well."""
    if name := name_of(tree):
        if variables[name]:
            yield f"{name} is a category and cannot be computed with; write {name} by itself or I({name} == 'level')."
        return
    sides = [bare(side) for side in parts_of(tree)]
    texts = [side.value for side in sides if isinstance(getattr(side, "value", None), str)]
    if texts and type(tree).__name__ == "Binary":
        yield from _level(next(str(name_of(side)) for side in sides if name_of(side)), texts[0], variables)
        return
    for part in parts_of(tree):
        yield from _arithmetic_problems(part, variables)


def columns_at_most(model: Any, variables: Levels) -> int:
    """Return an upper bound of the number of coefficients of a described model."""
    return sum(_width(term, variables) for term in model.common_terms)


def _width(term: Any, variables: Levels) -> int:
    width = 1
    for component in getattr(term, "components", ()):
        call = getattr(component, "call", None)
        if call is None:
            width *= max(1, len(variables[component.name]))
        elif call.callee in CODINGS:
            width *= len(variables[call.args[0].name]) or MOST_LEVELS
    return width

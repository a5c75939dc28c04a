"""Top and bottom codes: extreme values released as a code that says no more than "at least this much".

z = top where x >= top, bottom where x <= bottom, else x: a law with no noise and two codes (`Outlet`), which draws
nothing. Own derivation: as the standard method, with the limit itself for all beyond it.
Named in plans as Coding; after noise in a `Chain` it codes the noised value.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..card import NoiseCard
from ..errors import BadPlan, raise_all
from ..laws import Additive, Normal, Outlet
from ..masking import Setting, WrittenPlan
from ..schema import Column
from ..table import Table
from .resolve import check_names, figure_or_tuple, names, numeric_codes, require_columns


@dataclass(frozen=True)
class Coding(WrittenPlan):
    """Release values at or above `top` as the top code, at or below `bottom` as the bottom code.

    After noise in a `Chain` it codes the noised values: then nothing shows which values the noise
    carried over the edge. A figure for all columns, or one for each.
    """

    columns: tuple[str, ...]
    top: float | tuple[float, ...] | None = None
    bottom: float | tuple[float, ...] | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "columns", names(self.columns))
        problems = check_names(self.columns)
        if self.top is None and self.bottom is None:
            problems.append("Coding: give top, bottom or both")
        for name in ("top", "bottom"):
            object.__setattr__(self, name, figure_or_tuple(getattr(self, name)))
            given = getattr(self, name)
            if isinstance(given, Sequence) and len(given) != len(self.columns):
                problems.append(f"{name} has {len(given)} figures for {len(self.columns)} columns")
            if given is not None and not np.all(np.isfinite(given)):
                problems.append(f"{name} must be a number")
        raise_all(problems, BadPlan)
        ends = zip(self.columns, self._each("bottom"), self._each("top"), strict=True)
        raise_all([_code_order_problem(name) for name, low, high in ends if _cross(low, high)], BadPlan)

    def _each(self, name: str) -> tuple[float | None, ...]:
        given = getattr(self, name)
        return tuple(given) if isinstance(given, Sequence) else (given,) * len(self.columns)

    def card(self, table: Table, setting: Setting | None = None) -> NoiseCard:
        """Resolve the plan to limits that are codes."""
        require_columns(table, self.columns, ("continuous", "integer"))
        ends = list(zip(self._each("bottom"), self._each("top"), strict=True))
        columns = [table.schema[name] for name in self.columns]
        raise_all(
            [p for c, (low, high) in zip(columns, ends, strict=True) for p in _problems(c, low, high)],
            BadPlan,
        )
        return NoiseCard(
            tuple(_law(column, low, high) for column, (low, high) in zip(columns, ends, strict=True))
        )


def _law(column: Column, low: float | None, high: float | None) -> Additive:
    """Return a law without noise, one for each column, so that it can follow any noise on that column."""
    outlet = Outlet(
        column.step,
        None if low is None else float(low),
        None if high is None else float(high),
        low_coded=low is not None,
        high_coded=high is not None,
        avoid=() if column.step is None else numeric_codes(column, column.step),
    )
    return Additive((column.name,), Normal((0.0,)), (outlet,))


def _cross(low: float | None, high: float | None) -> bool:
    return low is not None and high is not None and low >= high


def _code_order_problem(name: str) -> str:
    return f"column {name!r}: the top code must lie above the bottom code"


def _problems(column: Column, low: float | None, high: float | None) -> list[str]:
    found = []
    if _cross(column.bottom if low is None else low, column.top if high is None else high):
        found.append(_code_order_problem(column.name))
    for word, code in (("top", high), ("bottom", low)):
        if code is not None and float(code) in numeric_codes(column):
            found.append(f"column {column.name!r}: the {word} code is a missing code already")
    if high is not None and column.top is not None and high > column.top:
        found.append(f"column {column.name!r} is top-coded already below the new top code")
    if low is not None and column.bottom is not None and low < column.bottom:
        found.append(f"column {column.name!r} is bottom-coded already above the new bottom code")
    return found

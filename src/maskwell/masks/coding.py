"""Top and bottom codes: extreme values released as a code that says no more than "at least this much"."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..card import NoiseCard
from ..errors import BadPlan, raise_all
from ..laws import Additive, Normal, Outlet
from ..masking import Plan, Setting
from ..schema import Column
from ..table import Table
from .resolve import check_names, names, need


@dataclass(frozen=True)
class Coding(Plan):
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
            given = getattr(self, name)
            if isinstance(given, Sequence) and len(given) != len(self.columns):
                problems.append(f"{name} has {len(given)} figures for {len(self.columns)} columns")
        raise_all(problems, BadPlan)
        for name, low, high in zip(self.columns, self._each("bottom"), self._each("top"), strict=True):
            if low is not None and high is not None and low >= high:
                raise BadPlan(f"column {name!r}: the top code must lie above the bottom code")

    def _each(self, name: str) -> tuple[float | None, ...]:
        given = getattr(self, name)
        return tuple(given) if isinstance(given, Sequence) else (given,) * len(self.columns)

    def card(self, table: Table, setting: Setting | None = None) -> NoiseCard:
        """Resolve the plan to limits that are codes."""
        need(table, self.columns, ("continuous", "integer"))
        ends = list(zip(self._each("bottom"), self._each("top"), strict=True))
        columns = [table.schema[name] for name in self.columns]
        raise_all(
            [p for c, (low, high) in zip(columns, ends, strict=True) for p in _looser(c, low, high)], BadPlan
        )
        outlets = tuple(
            Outlet(column.step, _or(low, column.bottom), _or(high, column.top), coded=True)
            for column, (low, high) in zip(columns, ends, strict=True)
        )
        return NoiseCard((Additive(self.columns, Normal((0.0,) * len(columns)), outlets),))


def _or(given: float | None, present: float | None) -> float | None:
    return present if given is None else float(given)


def _looser(column: Column, low: float | None, high: float | None) -> list[str]:
    found = []
    if high is not None and column.top is not None and high > column.top:
        found.append(f"column {column.name!r} is top-coded already below the new top code")
    if low is not None and column.bottom is not None and low < column.bottom:
        found.append(f"column {column.name!r} is bottom-coded already above the new bottom code")
    return found

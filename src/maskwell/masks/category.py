"""Masks of categories: noise on their codes, random change (PRAM), and grouping of values into classes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise

import numpy as np

from ..card import NoiseCard
from ..errors import BadPlan, raise_all
from ..laws import Additive, Classes, Normal, Outlet, Step, Transition
from ..laws.noise import Matrix
from ..laws.outlet import inside
from ..masking import Plan, Setting
from ..schema import Column
from ..table import Floats, Table
from .resolve import check_names, frozen, names, need, numeric_codes


@dataclass(frozen=True)
class CodeNoise(Plan):
    """Add normal noise to category codes 0..K-1 and clamp it to the end codes (Goldstein and Shlomo).

    `variance` is one figure, or one for each category. Codes with noise are released as numbers in steps of
    `unit`; `rounded=True` releases the nearest category instead.
    """

    columns: tuple[str, ...]
    variance: float | tuple[float, ...]
    rounded: bool = False
    unit: float = 0.01

    def __post_init__(self) -> None:
        object.__setattr__(self, "columns", names(self.columns))
        object.__setattr__(self, "variance", frozen(self.variance))
        problems = check_names(self.columns)
        variances = np.atleast_1d(np.asarray(self.variance, dtype=np.float64))
        if not (np.all(np.isfinite(variances) & (variances >= 0)) and np.any(variances > 0)):
            problems.append("variance must be positive (one category may have 0, not all)")
        if not 0 < self.unit <= 1 or (1 / Fraction(str(self.unit))).denominator != 1:
            problems.append("unit must be 1 or a part of it, such as 0.5 or 0.01, so that codes lie on it")
        raise_all(problems, BadPlan)

    def card(self, table: Table, setting: Setting | None = None) -> NoiseCard:
        """Resolve the plan to one law for each column."""
        need(table, self.columns, ("category",))
        columns = [table.schema[name] for name in self.columns]
        raise_all([p for column in columns for p in self._problems(column, table)], BadPlan)
        return NoiseCard(tuple(self._law(column) for column in columns))

    def _problems(self, column: Column, table: Table) -> list[str]:
        if len(column.categories) < 2:
            return [f"column {column.name!r} has fewer than two categories: there is nothing to mask"]
        if not table.is_open([column.name]).any():
            return [f"column {column.name!r} has no open value to mask; drop it from the plan"]
        if np.ndim(self.variance) and np.size(self.variance) != len(column.categories):
            return [
                f"column {column.name!r} has {len(column.categories)} categories, "
                f"the plan {np.size(self.variance)} variances"
            ]
        return []

    def _law(self, column: Column) -> Additive:
        count = len(column.categories)
        unit = Fraction(1) if self.rounded else Fraction(str(self.unit))
        avoid = () if unit == 1 else numeric_codes(column, unit)
        low, high = inside(0.0, 1, unit, avoid), inside(float(count - 1), -1, unit, avoid)
        outlet = Outlet(unit, low, high, avoid=avoid)
        sds = np.sqrt(np.atleast_1d(np.asarray(self.variance, dtype=np.float64)))
        spread = None
        if len(sds) > 1:
            spread = Step(tuple((np.arange(count - 1) + 0.5).tolist()), tuple((sds / sds.max()).tolist()))
        noise = Normal((float(sds.max()),))
        spreads = () if spread is None else (spread,)
        return Additive((column.name,), noise, (outlet,), spreads=spreads, categories=(column.categories,))


@dataclass(frozen=True)
class Pram(Plan):
    """Change categories at random by a table of probabilities (post-randomisation).

    Give the `matrix` (row: true category, column: released one), or `stay`, the probability that a category
    stays what it is (else any other is equally likely). `invariant=True` makes the table such that the
    shares of the categories are the same before and after: the table is followed by the way back, so that
    a category then stays with about the square of `stay`.
    """

    columns: tuple[str, ...]
    stay: float | None = None
    matrix: tuple[tuple[float, ...], ...] | None = None
    invariant: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "columns", names(self.columns))
        problems = check_names(self.columns)
        if (self.stay is None) == (self.matrix is None):
            problems.append("Pram: give exactly one of stay and matrix")
        if self.stay is not None and not 0 <= self.stay < 1:
            problems.append("stay must lie from 0 to below 1")
        if self.matrix is not None:
            object.__setattr__(self, "matrix", tuple(tuple(map(float, row)) for row in self.matrix))
            problems += _matrix_problems(self.matrix)
        raise_all(problems, BadPlan)

    def card(self, table: Table, setting: Setting | None = None) -> NoiseCard:
        """Resolve the plan to one table of probabilities for each column."""
        setting = setting or Setting()
        need(table, self.columns, ("category",))
        laws, problems = [], []
        for name in self.columns:
            categories = table.schema[name].categories
            if len(categories) < 2:
                problems.append(f"column {name!r} has fewer than two categories: there is nothing to mask")
            elif self.matrix is not None and len(self.matrix) != len(categories):
                problems.append(
                    f"column {name!r} has {len(categories)} categories, the matrix {len(self.matrix)} rows"
                )
            else:
                laws.append(Transition((name,), categories, categories, self._matrix(table, name, setting)))
        raise_all(problems, BadPlan)
        return NoiseCard(tuple(laws))

    def _matrix(self, table: Table, name: str, setting: Setting) -> Matrix:
        count = len(table.schema[name].categories)
        if self.matrix is not None:
            base = np.array(self.matrix)
        else:
            assert self.stay is not None
            base = np.full((count, count), (1 - self.stay) / (count - 1))
            np.fill_diagonal(base, self.stay)
        if self.invariant:
            counts = _counts(table, name, count)
            shares = counts / counts.sum()
            base = _invariant(base, shares if setting.exact else _blurred(base, counts))
        return tuple(map(tuple, base.tolist()))


def _matrix_problems(matrix: tuple[tuple[float, ...], ...]) -> list[str]:
    if any(len(row) != len(matrix) for row in matrix):
        return ["the matrix of Pram must be square"]
    if not all(min(row) >= 0 and abs(sum(row) - 1) <= 1e-9 for row in matrix):
        return ["every row of the matrix must hold probabilities that sum to 1"]
    return []


def _counts(table: Table, name: str, count: int) -> Floats:
    codes = table.values([name])[:, 0]
    counts = np.bincount(codes[~np.isnan(codes)].astype(np.int64), minlength=count).astype(np.float64)
    if not counts.sum():
        raise BadPlan(f"column {name!r} has no open value to mask; drop it from the plan")
    return counts


def _blurred(base: Floats, counts: Floats) -> Floats:
    """Round the shares as coarsely as the change itself will blur them: no total moves by half its own sd."""
    matrix, total = _invariant(base, counts / counts.sum()), counts.sum()
    sds = np.sqrt(counts @ (matrix * (1 - matrix))) / total
    digits = [0 if sd == 0 else -int(np.floor(np.log10(sd))) for sd in sds]
    rounded = [round(float(c / total), digit) if c else 0.0 for c, digit in zip(counts, digits, strict=True)]
    return np.array(rounded) / sum(rounded)


def _invariant(base: Floats, shares: Floats) -> Floats:
    """Follow the table by the way back (Bayes): the shares are then the same before and after."""
    joint = shares[:, None] * base
    reached = joint.sum(axis=0)
    back = np.divide(joint, reached, out=np.zeros_like(joint), where=reached > 0).T
    back[reached == 0, :] = shares
    both = base @ back
    return np.asarray(both / both.sum(axis=1, keepdims=True))


@dataclass(frozen=True)
class Grouping(Plan):
    """Release classes instead of values: `breaks` for numbers, `groups` (new = [old, ...]) for categories.

    A number on a break belongs to the class above it. Coded values fall into the end classes.
    """

    columns: tuple[str, ...]
    breaks: tuple[float, ...] | None = None
    groups: tuple[tuple[str, tuple[str, ...]], ...] | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "columns", names(self.columns))
        problems = check_names(self.columns)
        if (self.breaks is None) == (self.groups is None):
            problems.append("Grouping: give exactly one of breaks and groups")
        if self.breaks is not None:
            object.__setattr__(self, "breaks", tuple(float(b) for b in self.breaks))
            if not self.breaks or any(b <= a for a, b in pairwise(self.breaks)):
                problems.append("breaks must be a rising list of numbers")
        if self.groups is not None:
            pairs = self.groups.items() if isinstance(self.groups, Mapping) else self.groups
            object.__setattr__(self, "groups", tuple((str(new), tuple(map(str, old))) for new, old in pairs))
            new = [name for name, _ in self.groups]
            problems += [
                f"group {name!r} is named twice" for name in sorted({n for n in new if new.count(n) > 1})
            ]
        raise_all(problems, BadPlan)

    def card(self, table: Table, setting: Setting | None = None) -> NoiseCard:
        """Resolve the plan to one law for each column."""
        need(table, self.columns, ("category",) if self.groups is not None else ("continuous", "integer"))
        columns = [table.schema[name] for name in self.columns]
        if self.groups is not None:
            raise_all([p for column in columns for p in self._group_problems(column)], BadPlan)
            return NoiseCard(tuple(self._regrouped(column) for column in columns))
        raise_all([p for column in columns for p in self._break_problems(column)], BadPlan)
        return NoiseCard(tuple(self._classes(column) for column in columns))

    def _group_problems(self, column: Column) -> list[str]:
        assert self.groups is not None
        listed = [old for _, members in self.groups for old in members]
        found = [
            f"column {column.name!r}: category {old!r} is in two groups"
            for old in sorted({o for o in listed if listed.count(o) > 1})
        ]
        found += [
            f"column {column.name!r} has no category {old!r}"
            for old in listed
            if old not in column.categories
        ]
        left = len(set(column.categories) - set(listed))
        if left:
            found.append(f"column {column.name!r}: {left} categories are in no group")
        missing = set(map(str, column.missing))
        return found + [
            f"column {column.name!r}: group {new!r} is a missing code"
            for new, _ in self.groups
            if new in missing
        ]

    def _regrouped(self, column: Column) -> Transition:
        assert self.groups is not None
        rows = tuple(
            tuple(1.0 if category in members else 0.0 for _, members in self.groups)
            for category in column.categories
        )
        return Transition((column.name,), column.categories, tuple(new for new, _ in self.groups), rows)

    def _break_problems(self, column: Column) -> list[str]:
        assert self.breaks is not None
        found = []
        if column.top is not None and column.top < self.breaks[-1]:
            found.append(
                f"column {column.name!r}: the top code lies below the last break, so its class is unknown"
            )
        if column.bottom is not None and column.bottom >= self.breaks[0]:
            found.append(
                f"column {column.name!r}: the bottom code lies above the first break, so its class is unknown"
            )
        return found

    def _classes(self, column: Column) -> Classes:
        assert self.breaks is not None
        edges = [str(int(edge)) if edge.is_integer() else repr(edge) for edge in self.breaks]
        middle = [f"{a} to below {b}" for a, b in pairwise(edges)]
        return Classes((column.name,), self.breaks, (f"below {edges[0]}", *middle, f"{edges[-1]} and over"))

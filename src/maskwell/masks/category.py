"""Masks of categories: noise on their codes, random change (PRAM), and grouping of values into classes.

Codes: nearest or exact value of code + N(0, variance), clamped to the end codes (Goldstein and Shlomo, section 5, (4),
whose table 4 is of clamping). PRAM: a table M; invariant, M times the way back by Bayes, so that shares s M' = s
(Gouweleeuw, Kooiman, Willenborg and de Wolf 1998). Named in plans as CodeNoise, Pram, Grouping.
"""

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
from ..laws.transform import inside
from ..masking import Setting, WrittenPlan
from ..notes import Note
from ..schema import Column
from ..table import Floats, Table
from .resolve import check_names, figure_or_tuple, names, numeric_codes, require_columns
from .size_grid import step_from

LEAST_STEP = 10.0  # records: the finest step to which counts behind an invariant table are rounded
SURE = 1e-12  # a probability this near to 1 is 1
TOLD = 0.001  # the share of records from which on a note says that shares are not quite invariant
NOTHING_CHANGES = "it would change nothing, so every value would leave as it is; give smaller chances to stay"


@dataclass(frozen=True)
class CodeNoise(WrittenPlan):
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
        object.__setattr__(self, "variance", figure_or_tuple(self.variance))
        problems = check_names(self.columns)
        variances = np.atleast_1d(np.asarray(self.variance, dtype=np.float64))
        if not (np.all(np.isfinite(variances) & (variances >= 0)) and np.any(variances > 0)):
            problems.append("variance must be positive (one category may have 0, not all)")
        if not 0 < self.unit <= 1 or (1 / Fraction(str(self.unit))).denominator != 1:
            problems.append("unit must be 1 or a part of it, such as 0.5 or 0.01, so that codes lie on it")
        raise_all(problems, BadPlan)

    def card(self, table: Table, setting: Setting | None = None) -> NoiseCard:
        """Resolve the plan to one law for each column."""
        require_columns(table, self.columns, ("category",))
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
class Pram(WrittenPlan):
    """Change categories at random by a table of probabilities (post-randomisation).

    Give the `matrix` (row: true category, column: released one), or `stay`, the probability that a category
    stays what it is (else any other is equally likely). `invariant=True` makes the table such that the
    shares of the categories are the same before and after: the table is followed by the way back, so that
    a category then stays with about the square of `stay`. The shares in it are rounded to steps of at least
    ten records (see `_rounded_shares`), so that in small files they are the same only nearly; a note says how nearly.
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
            problems += _matrix_problems(self.matrix, self.invariant)
        raise_all(problems, BadPlan)

    def card(self, table: Table, setting: Setting | None = None) -> NoiseCard:
        """Resolve the plan to one table of probabilities for each column."""
        setting = setting or Setting()
        require_columns(table, self.columns, ("category",))
        laws, notes, problems = list[Transition](), list[Note](), list[str]()
        for name in self.columns:
            categories = table.schema[name].categories
            if len(categories) < 2:
                problems.append(f"column {name!r} has fewer than two categories: there is nothing to mask")
            elif self.matrix is not None and len(self.matrix) != len(categories):
                problems.append(
                    f"column {name!r} has {len(categories)} categories, the matrix {len(self.matrix)} rows"
                )
            else:
                counts = _counts(table, name, len(categories))
                matrix, said = self._resolved(name, counts, setting)
                if np.any(counts) and np.all(np.diagonal(matrix)[counts > 0] >= 1 - SURE):
                    problems.append(f"column {name!r}: {NOTHING_CHANGES}")
                rows: Matrix = tuple(map(tuple, matrix.tolist()))
                laws.append(Transition((name,), categories, categories, rows))
                notes += said
        raise_all(problems, BadPlan)
        return NoiseCard(tuple(laws), notes=tuple(notes))

    def _resolved(self, name: str, counts: Floats, setting: Setting) -> tuple[Floats, list[Note]]:
        """Return the table of probabilities, and what its rounding does to the shares."""
        base = self._base(len(counts))
        if not self.invariant:
            return base, []
        if not np.any(counts):
            raise BadPlan(f"column {name!r} has no open value to mask; drop it from the plan")
        if setting.exact:
            return _invariant(base, counts / counts.sum()), []
        matrix = _invariant(base, _rounded_shares(base, counts))
        moved = float(np.abs(counts @ matrix - counts).max() / counts.sum())
        return matrix, [Note("masks.shares_move", {"column": name, "share": moved})] if moved >= TOLD else []

    def _base(self, count: int) -> Floats:
        if self.matrix is not None:
            return np.array(self.matrix)
        assert self.stay is not None
        base = np.full((count, count), (1 - self.stay) / (count - 1))
        np.fill_diagonal(base, self.stay)
        return base


def _matrix_problems(matrix: tuple[tuple[float, ...], ...], invariant: bool) -> list[str]:
    if any(len(row) != len(matrix) for row in matrix):
        return ["the matrix of Pram must be square"]
    if not all(min(row) >= 0 and abs(sum(row) - 1) <= 1e-9 for row in matrix):
        return ["every row of the matrix must hold probabilities that sum to 1"]
    whole = [row.index(max(row)) for row in matrix if max(row) >= 1 - SURE]
    if whole == list(range(len(matrix))) or (invariant and sorted(whole) == list(range(len(matrix)))):
        return [f"the matrix of Pram: {NOTHING_CHANGES}"]
    return []


def _counts(table: Table, name: str, count: int) -> Floats:
    codes = table.values([name])[:, 0]
    return np.bincount(codes[~np.isnan(codes)].astype(np.int64), minlength=count).astype(np.float64)


def _steps(base: Floats, counts: Floats) -> Floats:
    """Return for each category the step, in records, to which its count is rounded."""
    matrix = _invariant(base, counts / counts.sum())
    sds = np.sqrt(counts @ np.clip(matrix * (1 - matrix), 0.0, None))
    return np.array([float(step_from(max(LEAST_STEP, float(sd)))) for sd in sds])


def _rounded_shares(base: Floats, counts: Floats) -> Floats:
    """Return the shares that the card may tell: counts rounded to steps of many records, whatever their number.

    The step of a category is at least the sd of its released count, so that the card tells no more about a
    count than the released file does, and at least ten records, so that who knows all the other
    records seldom learns the category of the last one: only where a count lies at the edge of a step.
    A category below half a step counts as half a step, also when nobody has it: else the card would tell
    that somebody does. No rounded count is off by more than half its step, and after division by their sum
    no expected count moves by more than the sum of all steps.
    """
    steps = _steps(base, counts)
    rounded = steps * np.maximum(np.rint(counts / steps), 0.5)
    return np.asarray(rounded / rounded.sum())


def _invariant(base: Floats, shares: Floats) -> Floats:
    """Follow the table by the way back (Bayes): the shares are then the same before and after."""
    joint = shares[:, None] * base
    reached = joint.sum(axis=0)
    back = np.divide(joint, reached, out=np.zeros_like(joint), where=reached > 0).T
    back[reached == 0, :] = shares
    both = base @ back
    return np.asarray(both / both.sum(axis=1, keepdims=True))


@dataclass(frozen=True)
class Grouping(WrittenPlan):
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
        require_columns(
            table, self.columns, ("category",) if self.groups is not None else ("continuous", "integer")
        )
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

"""Which columns are computed from exchanged ones, or these from them.

Let y be a column that would stay in the row and t what exchanged columns make: one of them, the cells of several, a
sum, difference, product or ratio, the larger or smaller of two, the best linear or log-linear combination of all. With
d(y, y') = 1 for categories that differ, and the distance between ranks for numbers, y is nearly a function of t where

    mean d over pairs of records with the same (or neighbouring) t  <=  NEARLY x mean d over pairs drawn at random:

the ratio is 1 where t tells nothing of y, and 0 for a function. It needs no form of the function: pairs with the same t
see any (parity, a table), neighbours those with few jumps (an absolute value, a threshold, classes). Pairs of one group
(a household shares all its columns) say nothing of a function and are left out. The ratio of neighbours is von
Neumann's (1941, Annals of Mathematical Statistics 12, 367-395) on ranks. Where values hardly repeat, a function with
many jumps cannot be told from chance: such columns are named as undecided. Own derivation. Asked by `reach`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from ..attacks.protocol import Bools, Ints
from ..card import block_numbers
from ..table import Floats, Table

NEARLY = 0.04  # of what differs by chance: one record in 50 off the rule spoils two pairs
EXPECTED = 20.0  # pairs that would differ by chance: with fewer, none that differs says little
LOOK, SAMPLE = 1_000, 20_000  # records of a first look at neighbours, and of the second
MOST = 100_000  # records that are looked at at all: enough repeat where a column has up to some 10,000 values
PROMISING = 3 * NEARLY  # at the first look, where neighbours are further apart
PER_COLUMN = 10  # records for each column of a linear combination: fewer fit anything
BORDERS = (
    0.5,
    0.25,
    0.12,
)  # shares of the records, nearest to where two categories part, that are fitted again
UNMOVED = frozenset({"id", "group"})


@dataclass(frozen=True, slots=True)
class Dependence:
    """Columns that are computed from exchanged ones (or these from them), and those of which it cannot be told.

    `undecided` columns may be a function with many jumps of `unrepeated` columns, whose values hardly repeat.
    """

    computed: tuple[str, ...]
    undecided: tuple[str, ...]
    unrepeated: tuple[str, ...]


def dependent_columns(
    table: Table, exchanged: Iterable[str], blocks: Sequence[str], leaving: Iterable[str] | None = None
) -> Dependence:
    """Return which of the columns that leave are computed from exchanged ones, or the other way round."""
    names = table.names if leaving is None else set(leaving)
    moving = [name for name in table.names if name in set(exchanged)]
    others = [
        column.name
        for column in table.schema.columns
        if column.name in names
        and column.name not in {*moving, *blocks}
        and not column.drop
        and not column.roles & UNMOVED
    ]
    records = _Records.of(table, blocks)
    found = tuple(other for other in others if records.is_computed(other, moving))
    left = [other for other in others if other not in found]
    rare = tuple(name for name in moving if left and not records.repeats(name))
    return Dependence(found, tuple(left) if rare else (), rare)


@dataclass(frozen=True, slots=True)
class _Measure:
    """How far values of a column are apart, in parts of what two records drawn at random are."""

    codes: Ints
    ranks: Floats | None
    scale: float

    @classmethod
    def of(cls, table: Table, name: str, rng: np.random.Generator) -> _Measure:
        codes, ranks = block_numbers(table, [name]), None
        if table.schema[name].is_number:
            ranks = _ranks(table.floats(name))
        out = cls(codes, ranks, 1.0)
        one, other = rng.permutation(len(codes)), rng.permutation(len(codes))
        return cls(codes, ranks, float(out.apart(one, other).mean()) if len(codes) else 0.0)

    def apart(self, one: Ints, other: Ints) -> Floats:
        """Return how far records are apart: 0 for the same value and for numbers next to each other in rank."""
        differ = self.codes[one] != self.codes[other]
        if self.ranks is None:
            return np.asarray(differ / (self.scale or 1.0))
        far = np.abs(self.ranks[one] - self.ranks[other])
        most = max(len(self.ranks) / 3.0, 1.0)  # what ranks differ by at random; also a value from a code
        far = np.where(np.isnan(far), most * differ, np.maximum(far - 1.0, 0.0)) / most
        return np.asarray(far / (self.scale or 1.0))


@dataclass(frozen=True, slots=True)
class _Records:
    """A table with its blocks and groups, and an order that has nothing to do with it."""

    table: Table
    blocks: Ints
    groups: Ints | None
    shuffle: Ints
    measures: dict[str, _Measure]
    cells: dict[tuple[str, ...], tuple[Ints, Ints]]

    @classmethod
    def of(cls, table: Table, blocks: Sequence[str]) -> _Records:
        # A fixed generator, and no key: it chooses the records at which a relation of columns is looked for. Who knows
        # them learns which columns move together, which the card says, and nothing of who was exchanged with whom.
        rng = np.random.default_rng(0)
        if len(table) > MOST:
            table = table.take(np.sort(rng.permutation(len(table))[:MOST]))
        grouped = table.schema.with_role("group")
        groups = block_numbers(table, grouped) if grouped else None
        within = block_numbers(table, [name for name in blocks if name in table.schema])
        return cls(table, within, groups, rng.permutation(len(table)), {}, {})

    def measure(self, name: str) -> _Measure:
        if name not in self.measures:
            rng = np.random.default_rng(1)  # of the pairs at which differences are measured, as above
            self.measures[name] = _Measure.of(self.table, name, rng)
        return self.measures[name]

    def is_computed(self, other: str, moving: Sequence[str]) -> bool:
        """Whether a column is a function of exchanged ones, inside blocks too, or one of them a function of it."""
        if not self.measure(other).scale:
            return False
        return (
            any(self._by_cells(other, cell) for cell in _cells(moving))
            or self._by_neighbours(other, self._indices(other, moving))
            or any(self.measure(name).scale and self._from_one(name, other) for name in moving)
        )

    def _from_one(self, name: str, other: str) -> bool:
        """Whether an exchanged column is a function of one that stays."""
        if self._by_cells(name, (other,)):
            return True
        return self.table.schema[other].is_number and self._by_neighbours(name, [self.table.floats(other)])

    def repeats(self, name: str) -> bool:
        """Whether enough records share their value of a column with another."""
        return len(self._pairs((name,), False)[0]) >= EXPECTED

    def _by_cells(self, other: str, columns: tuple[str, ...]) -> bool:
        """Whether records of one cell of some columns (and of the block) have one value."""
        for inside in (False, True) if self.blocks.any() else (False,):
            apart = self.measure(other).apart(*self._pairs(columns, inside))
            if len(apart) * min(self.measure(other).scale, 1.0) >= EXPECTED and apart.mean() <= NEARLY:
                return True
        return False

    def _pairs(self, columns: tuple[str, ...], inside: bool) -> tuple[Ints, Ints]:
        """Return pairs of records, of different groups, that are the same in some columns."""
        key = (*columns, str(inside))
        if key not in self.cells:
            numbers = block_numbers(self.table, columns)
            if inside:
                numbers = numbers * (int(self.blocks.max(initial=0)) + 1) + self.blocks
            order = self.shuffle[np.argsort(numbers[self.shuffle], kind="stable")]
            same = numbers[order[1:]] == numbers[order[:-1]]
            self.cells[key] = self._of_different_groups(order[:-1][same], order[1:][same])
        return self.cells[key]

    def _of_different_groups(self, one: Ints, other: Ints) -> tuple[Ints, Ints]:
        if self.groups is None:
            return one, other
        differ = self.groups[one] != self.groups[other]
        return one[differ], other[differ]

    def _by_neighbours(self, other: str, indices: Iterable[Floats]) -> bool:
        """Whether records next to each other by one of some indices (inside blocks too) have nearly one value."""
        for index in indices:
            for inside in (False, True) if self.blocks.any() else (False,):
                if (
                    self._ratio(other, index, LOOK, inside) <= PROMISING
                    and self._ratio(other, index, SAMPLE, inside) <= NEARLY
                ):
                    return True
        return False

    def _ratio(self, other: str, index: Floats, most: int, inside: bool) -> float:
        """Return how far neighbours by an index are apart in a column; 1 where too few tell."""
        some = self.shuffle[np.isfinite(index[self.shuffle])][:most]
        block = self.blocks[some] if inside else np.zeros(len(some), np.int64)
        order = np.lexsort((index[some], block))
        some, block = some[order], block[order]
        same = block[1:] == block[:-1]
        one, two = self._of_different_groups(some[:-1][same], some[1:][same])
        measure = self.measure(other)
        if len(one) * min(measure.scale, 1.0) < EXPECTED:
            return 1.0
        thinned = len(self.shuffle) / max(len(some), 1)  # neighbours of a sample are so many ranks apart
        apart = measure.apart(one, two)
        return float(apart.mean() - (_lag(measure, thinned) if measure.ranks is not None else 0.0))

    def _indices(self, other: str, moving: Sequence[str]) -> Iterator[Floats]:
        """Return what exchanged numbers make: each by itself, of two, and the best linear combinations of all."""
        numbers = [self.table.floats(name) for name in moving if self.table.schema[name].is_number]
        yield from numbers
        with np.errstate(all="ignore"):
            for a, b in combinations(numbers, 2):
                yield from (a + b, a - b, a * b, a / b, b / a, np.maximum(a, b), np.minimum(a, b))
            if numbers and self.table.schema[other].is_number:
                y, x = self.table.floats(other), np.column_stack(numbers)
                yield _best_combination(y, x)
                yield _best_combination(np.log(np.abs(y)), np.log(np.abs(x)))
            codes = self.measure(other).codes
            if len(numbers) > 1 and codes.max(initial=0) == 1:
                yield _border(codes, np.column_stack(numbers))
                yield _border(codes, np.log(np.abs(np.column_stack(numbers))))


def _lag(measure: _Measure, thinned: float) -> float:
    """Return how far neighbours of a sample are apart where the column is a monotone function of the index."""
    assert measure.ranks is not None
    return max(thinned - 1.0, 0.0) / max(len(measure.ranks) / 3.0, 1.0) / (measure.scale or 1.0)


def _cells(moving: Sequence[str]) -> list[tuple[str, ...]]:
    """Return the columns whose cells are looked at: each, every two, and all."""
    out = [(name,) for name in moving] + list(combinations(moving, 2))
    return out + ([tuple(moving)] if len(moving) > 2 else [])


def _ranks(values: Floats) -> Floats:
    """Return ranks of open values, those of ties shared; NaN for others."""
    from ..checks.relations import shared_ranks

    out = np.full(len(values), np.nan)
    there = np.isfinite(values)
    out[there] = shared_ranks(values[there])
    return out


def _best_combination(y: Floats, x: Floats) -> Floats:
    """Return the best linear combination of some columns for another, NaN where one is not open."""
    return _weighted_sum(_weights(y, x), x)


def _weights(y: Floats, x: Floats) -> Floats | None:
    """Return the weights of columns in least squares on records that are open; nothing where these are too few."""
    there: Bools = np.isfinite(y) & np.isfinite(x).all(axis=1)
    if there.sum() < PER_COLUMN * (x.shape[1] + 1):
        return None
    spread = x[there].std(axis=0)
    spread = np.where(spread > 0, spread, 1.0)
    design = np.column_stack([np.ones(int(there.sum())), (x[there] - x[there].mean(axis=0)) / spread])
    return np.asarray(np.linalg.lstsq(design, y[there], rcond=None)[0][1:] / spread)


def _weighted_sum(weights: Floats | None, x: Floats) -> Floats:
    return np.full(len(x), np.nan) if weights is None else np.asarray(x @ weights)


def _border(codes: Ints, x: Floats) -> Floats:
    """Return the linear combination of some columns at which two categories part, where one does.

    Least squares give its direction where columns are elliptical (Brillinger, 1983, A Festschrift for Erich L. Lehmann,
    97-114); fits to ever fewer records about the border give it where they are not.
    """
    index = _best_combination(codes.astype(np.float64), x)
    for share in BORDERS:
        if np.isfinite(index).sum() < PER_COLUMN:
            break
        away = np.abs(index - _cut(codes, index))
        near = away <= np.nanquantile(away, share)
        index = _weighted_sum(_weights(np.where(near, codes, np.nan), x), x)
    return index


def _cut(codes: Ints, index: Floats) -> float:
    """Return where an index parts two categories best."""
    there = np.flatnonzero(np.isfinite(index))
    order = there[np.argsort(index[there], kind="stable")]
    ones = np.cumsum(codes[order] == 1)
    below = np.arange(1, len(order) + 1)
    right = np.abs((below - ones) + (ones[-1] - ones) - len(order) / 2)  # or wrong, where 1 lies below
    return float(index[order[int(right.argmax())]])

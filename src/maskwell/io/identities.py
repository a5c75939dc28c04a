"""Exact linear identities between columns (total = sum of parts), and columns that repeat one another."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations
from math import gcd, lcm

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Rows = npt.NDArray[np.intp]
Relation = tuple[
    int, ...
]  # whole coefficients of the columns and, last, of the constant 1; their sum is zero

FEWEST_RECORDS = 20
FEWEST_NONZERO = 5  # a column that is zero on all but a few records proves nothing
LEAST_EQUAL_SHARE = 0.5
CHUNK = 65_536
POOL = 20_000
LARGEST = 1e150
# Columns of a wide file: one is searched with the columns most like it, and not again where another set has them all
MANY, MOST_ALIKE = 60, 8


@dataclass(frozen=True, slots=True)
class Identity:
    """`total` = sum of coefficient x part, on every record where all of them are open."""

    total: str
    parts: tuple[tuple[str, float], ...]

    def __str__(self) -> str:
        terms = [
            f"{'-' if c < 0 else '+'} {'' if abs(c) == 1 else f'{abs(c):g} x '}{n}" for n, c in self.parts
        ]
        return f"{self.total} = " + " ".join(terms).removeprefix("+ ")


@dataclass(frozen=True, slots=True)
class NearDuplicate:
    """Two columns whose correlation is near 1 or -1, or that are equal in half of the records that can tell.

    `exact` where they are equal on all common records. `equal_share` passes over records where both have the value that
    is most frequent in each (zero, as a rule), so that two columns of many zeros are not alike for these. Where their
    most frequent values differ all records count: passing over such pairs would leave out what speaks against it.
    """

    first: str
    second: str
    correlation: float
    exact: bool
    equal_share: float
    has_common_mode: bool = False


def find_identities(values: Floats, names: Sequence[str], *, tolerance: float = 1e-9) -> tuple[Identity, ...]:
    """Return the simplest independent identities between the columns of records x columns, NaN unless open.

    Columns on a decimal unit (down to 1e-6) must agree to the last digit; in others a residual may be
    `tolerance` of the size of the terms. Coefficients are whole numbers up to 1000 or fractions down to 1/12.
    At least max(columns + 2, 20) records must have all members open. A copy of an earlier column is left out
    (see `near_duplicates`), and so is whatever follows from sums that are constant.
    """
    data = _Data.of(values, tolerance)
    found = {r for columns in _subsets(data) for r in _search(data, columns)}
    basis: list[Relation] = []
    for relation in sorted(found, key=_cost):
        if data.holds(relation) and _is_new(relation, basis):
            basis.append(relation)
    identities = [_identity(r, data, names) for r in basis if not r[-1]]
    return tuple(sorted((i for i in identities if i is not None), key=lambda i: list(names).index(i.total)))


def near_duplicates(
    values: Floats, names: Sequence[str], threshold: float = 0.98
) -> tuple[NearDuplicate, ...]:
    """Return the pairs of columns that repeat one another, over the records where both are open.

    Their correlation is beyond +-threshold, or their values are equal in half of the records (`equal_share`).
    All pairs are screened on a sample, the likely ones judged on all records.
    """
    values = _finite(values)
    screened = np.abs(pairwise_correlations(_thinned_values(values, 4 * CHUNK)))
    modes = _modes(values)
    shares = _equal_shares(values, modes)
    found = []
    for i, j in combinations(range(len(names)), 2):
        if screened[i, j] > threshold - 0.01 or shares[i, j] > LEAST_EQUAL_SHARE - 0.05:
            first, second = values[:, i], values[:, j]
            correlation = float(pairwise_correlations(values[:, [i, j]])[0, 1])
            share = _equal_share(first, second, modes[i], modes[j])
            if abs(correlation) > threshold or share >= LEAST_EQUAL_SHARE:
                exact = _equal(first, second)
                common = modes[i] == modes[j]
                found.append(NearDuplicate(names[i], names[j], correlation, exact, share, common))
    return tuple(found)


def _modes(values: Floats) -> list[float]:
    """The most frequent value of each column, from a sample."""
    modes = []
    for column in _thinned_values(values, POOL).T:
        support, counts = np.unique(column[~np.isnan(column)], return_counts=True)
        modes.append(float(support[np.argmax(counts)]) if len(support) else np.nan)
    return modes


def _equal_shares(values: Floats, modes: list[float]) -> Floats:
    """The shares of `_equal_share` for all pairs, from a sample."""
    columns = np.ascontiguousarray(_thinned_values(values, POOL).T)
    shares = np.zeros((len(columns), len(columns)))
    for i, j in combinations(range(len(columns)), 2):
        shares[i, j] = _equal_share(columns[i], columns[j], modes[i], modes[j])
    return shares


def _equal_share(first: Floats, second: Floats, first_mode: float, second_mode: float) -> float:
    """The share of equal values where both are open and not both at a common mode; 0 where too few records tell."""
    told = ~(np.isnan(first) | np.isnan(second))
    if first_mode == second_mode:
        told &= ~((first == first_mode) & (second == second_mode))
    records = int(np.count_nonzero(told))
    return float(np.count_nonzero(told & (first == second)) / records) if records >= FEWEST_RECORDS else 0.0


def decimal_unit(values: npt.NDArray[np.floating]) -> float | None:
    """Return the largest of 1, 0.1, ... 1e-6 that every value is a multiple of, if any; NaN are passed over."""
    known = values[np.isfinite(values)]
    for decimals in range(7):
        if _on_grid(known[:1000], decimals) and _on_grid(known, decimals):
            return float(f"1e-{decimals}")
    return None


def _on_grid(values: npt.NDArray[np.floating], decimals: int) -> bool:
    """Whether the values are the nearest floats to numbers of so many decimals."""
    with np.errstate(over="ignore"):
        steps = np.rint(values.astype(np.float64) * 10.0**decimals)
        nearest = (steps / 10.0**decimals).astype(values.dtype)
    return bool(np.all(np.abs(steps) < 2.0**53)) and bool(np.array_equal(nearest, values))


@dataclass(frozen=True, slots=True)
class _Data:
    """The columns that can take part, with `at` their places in the table and the evidence asked for."""

    x: Floats
    at: tuple[int, ...]
    units: tuple[float | None, ...]
    enough: int
    tolerance: float

    @classmethod
    def of(cls, values: Floats, tolerance: float) -> _Data:
        values = _finite(values)
        enough = max(values.shape[1] + 2, FEWEST_RECORDS)
        at = _distinct_columns(values, enough)
        units = tuple(decimal_unit(values[:, j]) for j in at)
        return cls(np.asfortranarray(values[:, at]), at, units, enough, tolerance)

    def holds(self, relation: Relation) -> bool:
        """Whether a relation is exact on every record where its members are open, with enough of those."""
        members = [j for j, c in enumerate(relation[:-1]) if c]
        residual = np.full(len(self.x), float(relation[-1]))
        for j in members:
            residual += relation[j] * self.x[:, j]
        known = ~np.isnan(residual)
        if np.count_nonzero(known) < self.enough:
            return False
        if any(np.count_nonzero(self.x[known, j]) < FEWEST_NONZERO for j in members):
            return False
        return bool(np.all(np.abs(residual[known]) < self._limit(relation, members)[known]))

    def _limit(self, relation: Relation, members: list[int]) -> Floats:
        """Half the finest unit; without units a share of the size of the terms."""
        units = [unit for j in members if (unit := self.units[j]) is not None]
        if len(units) == len(members):
            return np.full(len(self.x), min(units, default=1.0) / 2)
        size = np.full(len(self.x), abs(float(relation[-1])) + np.finfo(float).tiny)
        for j in members:
            size += np.abs(relation[j] * self.x[:, j])
        return size * self.tolerance


def _finite(values: Floats) -> Floats:
    """Pass over values whose square is no number."""
    too_large = np.abs(values) > LARGEST
    return np.where(too_large, np.nan, values) if too_large.any() else values


def _distinct_columns(values: Floats, enough: int) -> tuple[int, ...]:
    """The columns that vary, are open often enough and do not repeat an earlier one."""
    at: list[int] = []
    for j in range(values.shape[1]):
        known = values[~np.isnan(values[:, j]), j]
        varies = len(known) >= enough and known.min() < known.max()
        if varies and not any(_equal(values[:, i], values[:, j]) for i in at):
            at.append(j)
    return tuple(at)


def _equal(first: Floats, second: Floats) -> bool:
    """Whether two columns agree on all records where both are open, and there are enough of those."""
    head = slice(0, 1000)
    for part in (head, slice(None)):
        known = ~(np.isnan(first[part]) | np.isnan(second[part]))
        if not np.array_equal(first[part][known], second[part][known]):
            return False
    return int(np.count_nonzero(known)) >= FEWEST_RECORDS


def pairwise_correlations(values: Floats) -> Floats:
    """Correlations over the records where both are open; NaN where a column is constant or records are few."""
    columns = values.shape[1]
    count, total, square, cross = np.zeros((4, columns, columns))
    with np.errstate(all="ignore"):
        centre, scale = _centre_and_scale(values)
        for start in range(0, len(values), CHUNK):
            z = (values[start : start + CHUNK] - centre) / scale
            is_open = (~np.isnan(z)).astype(np.float64)
            z = np.nan_to_num(z, posinf=0.0, neginf=0.0)
            count += is_open.T @ is_open
            total += z.T @ is_open
            square += (z * z).T @ is_open
            cross += z.T @ z
        spread = square - total**2 / count
        correlation = (cross - total * total.T / count) / np.sqrt(spread * spread.T)
    return np.where((count >= FEWEST_RECORDS) & (np.minimum(spread, spread.T) > 1e-9), correlation, np.nan)


def _centre_and_scale(values: Floats) -> tuple[Floats, Floats]:
    known = np.maximum(np.count_nonzero(~np.isnan(values), axis=0), 1)
    centre = np.nansum(values, axis=0) / known
    scale = np.sqrt(np.nansum((values - centre) ** 2, axis=0) / known)
    return centre, np.where(scale > 0, scale, 1.0)


def _subsets(data: _Data) -> list[tuple[int, ...]]:
    """Sets of columns to search together: all of them, or, with missing values, those open on common records."""
    columns = len(data.at)
    if columns < 2:
        return []
    if not np.isnan(data.x).any():
        return [tuple(range(columns))]
    thinned = _thinned_values(data.x, POOL)
    seen, likeness = ~np.isnan(thinned), np.nan_to_num(np.abs(pairwise_correlations(thinned)))
    found: set[tuple[int, ...]] = set()
    for share in (0.0, 0.1, 0.5, 0.9):
        searched = list[frozenset[int]]()
        for j in range(columns):
            enough = max(data.enough, int(share * np.count_nonzero(seen[:, j])))
            chosen = _open_together(seen, j, likeness[j], enough)
            nearest = set(chosen[: 1 + MOST_ALIKE])
            if columns > MANY and any(nearest <= one for one in searched):
                continue
            searched.append(frozenset(chosen))
            found.add(tuple(sorted(chosen)))
    return sorted(found)


def _open_together(seen: npt.NDArray[np.bool_], column: int, likeness: Floats, enough: int) -> list[int]:
    """A column and, the most alike first, others, as long as enough records have all of them open."""
    chosen, together = [column], seen[:, column]
    for j in np.argsort(-likeness, kind="stable"):
        both = together & seen[:, j]
        if j != column and np.count_nonzero(both) >= enough:
            chosen.append(int(j))
            together = both
    return chosen


def _search(data: _Data, columns: tuple[int, ...]) -> list[Relation]:
    """Whole-number relations between some columns that hold on the records where all of these are open."""
    complete = np.flatnonzero(~np.isnan(data.x[:, columns]).any(axis=1))
    if len(complete) < max(data.enough, len(columns) + 2):
        return []
    vectors = _null_vectors(data.x, columns, complete)
    relations = []
    for relation in _simplest(_whole_relations(vectors)):
        full = np.zeros(data.x.shape[1] + 1, dtype=object)
        full[[*columns, -1]] = relation
        relations.append(tuple(int(c) for c in full))
    return relations


def _null_vectors(x: Floats, columns: tuple[int, ...], complete: Rows) -> Floats:
    """The linear relations that all complete records obey: from a sample, to which violators are added."""
    sample = _strided_rows(complete, max(500, 5 * len(columns)))
    vectors = _dependencies(_with_constant(x, sample, columns))
    for pool in (_strided_rows(complete, POOL), complete):
        while vectors.shape[1]:
            grown = np.union1d(sample, _violators(x, columns, vectors, pool))
            if len(grown) == len(sample):
                break
            sample = grown
            vectors = _dependencies(_with_constant(x, sample, columns))
    return vectors


def _strided_rows(rows: Rows, at_most: int) -> Rows:
    return rows[:: -(-len(rows) // at_most)]


def _thinned_values(values: Floats, at_most: int) -> Floats:
    return values[:: max(1, -(-len(values) // at_most))]


def _with_constant(x: Floats, rows: Rows, columns: tuple[int, ...]) -> Floats:
    return np.column_stack([*(x[rows, j] for j in columns), np.ones(len(rows))])


def _violators(x: Floats, columns: tuple[int, ...], vectors: Floats, pool: Rows) -> Rows:
    """Some records that break a relation, from the first chunk that has any."""
    for start in range(0, len(pool), CHUNK):
        rows = pool[start : start + CHUNK]
        block = _with_constant(x, rows, columns)
        broken = np.abs(block @ vectors) > 1e-8 * (np.abs(block) @ np.abs(vectors))
        if broken.any():
            return _strided_rows(rows[broken.any(axis=1)], 50)
    return pool[:0]


def _dependencies(block: Floats) -> Floats:
    """One column per dependent column of the block: its coefficient is -1, the others express it by a basis."""
    from scipy.linalg import qr, solve_triangular

    norms = np.sqrt((block**2).sum(axis=0))
    norms[norms == 0] = 1.0
    triangle, order = qr(block / norms, mode="r", pivoting=True)
    diagonal = np.abs(np.diagonal(triangle))
    rank = int(np.count_nonzero(diagonal > 1e-11 * diagonal[0]))
    basis, dependent = order[:rank], order[rank:]
    vectors = np.zeros((len(norms), len(dependent)))
    vectors[basis] = solve_triangular(triangle[:rank, :rank], triangle[:rank, rank:])
    vectors[np.abs(vectors) < 1e-9] = 0.0
    vectors[dependent, np.arange(len(dependent))] = -1.0
    return np.asarray(vectors * norms[dependent] / norms[:, None])


def _whole_relations(vectors: Floats) -> list[Relation]:
    """Those vectors whose coefficients are small fractions, as whole numbers; of others, sums and differences."""
    whole = [_whole(vector) for vector in vectors.T]
    rest = [vector for vector, relation in zip(vectors.T, whole, strict=True) if relation is None]
    mixed = [_whole(a + sign * b) for a, b in combinations(rest[:20], 2) for sign in (1, -1)]
    return [relation for relation in (*whole, *mixed) if relation is not None]


def _whole(vector: Floats) -> Relation | None:
    largest = float(np.abs(vector).max())
    fractions = []
    for c in vector.tolist():
        fraction = Fraction(c if abs(c) > 1e-12 * largest else 0).limit_denominator(60)
        if abs(float(fraction) - c) > max(1e-5 * abs(c), 1e-12 * largest):
            return None
        fractions.append(fraction)
    common = lcm(*(fraction.denominator for fraction in fractions))
    return _reduced_relation([int(fraction * common) for fraction in fractions])


def _reduced_relation(coefficients: Sequence[int]) -> Relation | None:
    """Divide by the common factor and make the first coefficient positive; nothing when all are zero."""
    divisor = gcd(*coefficients)
    if divisor == 0:
        return None
    sign = 1 if next(c for c in coefficients if c) > 0 else -1
    return tuple(sign * c // divisor for c in coefficients)


def _cost(relation: Relation) -> tuple[int, int, Relation]:
    """Fewer members are simpler, then smaller coefficients; the last makes the order definite."""
    return len(relation) - relation.count(0), sum(map(abs, relation)), relation


def _simplest(relations: list[Relation]) -> list[Relation]:
    """Replace relations by simpler combinations with others, as long as there are any."""
    kept = sorted(set(relations), key=_cost)
    improved = True
    while improved:
        improved = False
        for i, j in [(i, j) for i in range(len(kept)) for j in range(len(kept)) if i != j]:
            best = min([kept[i], *_eliminations(kept[i], kept[j])], key=_cost)
            if best != kept[i]:
                kept[i], improved = best, True
    return kept


def _eliminations(first: Relation, second: Relation) -> Iterator[Relation]:
    """Combinations of two relations in which a common member drops out."""
    for k in range(len(first)):
        if first[k] and second[k]:
            combined = [a * second[k] - b * first[k] for a, b in zip(first, second, strict=True)]
            reduced = _reduced_relation(combined)
            if reduced is not None:
                yield reduced


def _is_new(relation: Relation, basis: list[Relation]) -> bool:
    """Whether a relation does not follow from those already accepted."""
    rows = np.array([*basis, relation], dtype=np.float64)
    rows /= np.abs(rows).max(axis=1, keepdims=True)
    return int(np.linalg.matrix_rank(rows)) == len(rows)


def _identity(relation: Relation, data: _Data, names: Sequence[str]) -> Identity | None:
    """Write a relation as total = sum of parts, with a total that makes all coefficients 1 if there is one."""
    members = [j for j, c in enumerate(relation) if c]
    size = {j: float(np.nansum(np.abs(data.x[:, j]))) for j in members}

    def parts(total: int) -> dict[int, Fraction]:
        return {j: Fraction(-relation[j], relation[total]) for j in members if j != total}

    def merit(total: int) -> tuple[bool, bool, bool, int, float]:
        c = list(parts(total).values())
        ones = sum(one == 1 for one in c)
        return ones == len(c), min(c) > 0, all(one.denominator == 1 for one in c), ones, size[total]

    total = max(members, key=merit)
    coefficients = parts(total)
    is_copy = len(members) == 2 and abs(coefficients[members[members[0] == total]]) == 1
    if is_copy or any(c.denominator > 12 or abs(c) > 1000 for c in coefficients.values()):
        return None
    named = tuple((names[data.at[j]], float(c)) for j, c in coefficients.items())
    return Identity(names[data.at[total]], named)

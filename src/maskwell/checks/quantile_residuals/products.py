"""Trends of the noise along products of true columns, along waves, and inside classes.

With r the normal ranks of the true columns and y the scores of one released column,

    products of two     sum of (r_j r_k - m) y / sqrt(sum of (r_j r_k - m)^2),    m the mean of r_j r_k,
    products of three   sum of r_i r_j r_k y / sqrt(sum of (r_i r_j r_k)^2),
    inside a class      sum of (r_k - its mean there) y over the class, likewise,
    waves               |sum of exp(2 pi i f t) y_t|^2 / n over records in the order of a column, every f,

are N(0, 1) and Exp(1), exactly, whatever the true values are. Products see noise that follows two columns together,
squares one that is larger at both ends, a trend inside a class one that tells the truth of the largest 5% alone. Own
derivation; the waves are a periodogram (Fisher 1929). Called by `battery`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from ...table import Floats
from .families import TREND, Score, normal_p
from .ledger import Effect, Ledger
from .truths import FEWEST, TrueColumn

INSIDE = Effect("correlation", 0.2, 0.1)  # as for means of classes
MOST_IN_THREES = 16  # columns whose products by threes are looked at: 816 of them
MOST_TERMS = 2e9  # records x products of three columns: about a second
LEVEL = 1e-9  # variance of ranks in a class below which it has but one value


@dataclass(frozen=True)
class NormalRanks:
    """Normal ranks of the true columns with numbers, 0 where a value is not open; and classes as rows of members."""

    names: tuple[str, ...]
    matrix: Floats
    is_open: Floats
    members: tuple[tuple[tuple[str, ...], Any], ...]

    @classmethod
    def of(cls, columns: Sequence[TrueColumn]) -> NormalRanks:
        """Take the columns that have ranks."""
        able = [one for one in columns if one.numbers is not None and one.distinct > 2]
        count = len(columns[0].codes)
        matrix = np.column_stack([one.scores for one in able]) if able else np.empty((count, 0))
        known = ~np.isnan(matrix)
        members = tuple(found for one in columns if (found := _members(one)) is not None)
        return cls(
            tuple(one.name for one in able), np.where(known, matrix, 0.0), known.astype(np.float64), members
        )

    @cached_property
    def squares(self) -> Floats:
        """Squared ranks."""
        return np.asarray(self.matrix**2)

    @cached_property
    def all_open(self) -> bool:
        """Whether every value is open."""
        return bool(self.is_open.all())

    @property
    def has_threes(self) -> bool:
        """Whether products of three columns are few enough to be looked at."""
        width = len(self.names)
        return 3 <= width <= MOST_IN_THREES and width**3 * len(self.matrix) <= MOST_TERMS

    # What products and classes are where every record has a score: made once for all of those scores.
    @cached_property
    def of_twos(self) -> tuple[Floats, Floats, Floats]:
        """Count, mean and sum of squares of each product of two columns."""
        return _of_twos(self, 1.0)

    @cached_property
    def of_threes(self) -> list[tuple[Floats, Floats]]:
        """Count and sum of squares of each product of three columns."""
        return _of_threes(self, 1.0)

    @cached_property
    def of_classes(self) -> list[tuple[Floats, Floats, Floats]]:
        """Count, mean and sum of squares of each column inside each class."""
        return _of_classes(self, 1.0)


def _members(column: TrueColumn) -> tuple[tuple[str, ...], Any] | None:
    """Return the classes and outer shares of a column as a sparse matrix, classes x records."""
    from scipy.sparse import csr_array

    chosen = list[tuple[str, Any]]()
    if column.classes is not None:
        codes = column.classes.codes
        order = np.argsort(codes, kind="stable")
        ends = np.searchsorted(codes[order], np.arange(len(column.classes.labels) + 1))
        chosen += [(label, order[ends[i] : ends[i + 1]]) for i, label in enumerate(column.classes.labels)]
    chosen = [one for one in (*chosen, *column.ends) if len(one[1]) >= FEWEST]
    if not chosen:
        return None
    sizes = np.r_[0, np.cumsum([len(at) for _, at in chosen])]
    at = np.concatenate([at for _, at in chosen])
    rows = csr_array((np.ones(len(at)), at, sizes), shape=(len(chosen), len(column.codes)))
    return tuple(label for label, _ in chosen), rows


def product_trends(ledger: Ledger, score: Score, ranks: NormalRanks) -> None:
    """Correlate scores with products of two true columns, squares among them, and of three."""
    y, weight = _weights(score)
    n, means, sizes = ranks.of_twos if weight is None else _of_twos(ranks, weight)
    sums = (ranks.matrix * y).T @ ranks.matrix - means * ((ranks.is_open * y).T @ ranks.is_open)
    for i, name in enumerate(ranks.names):
        chosen = [
            j for j in range(i, len(ranks.names)) if n[i, j] >= FEWEST and sizes[i, j] > LEVEL * n[i, j]
        ]
        labels = [f"along {name} times {ranks.names[j]}" for j in chosen]
        _enter(ledger, score, sums[i, chosen], sizes[i, chosen], n[i, chosen], labels)
    if ranks.has_threes:
        _three_trends(
            ledger, score, ranks, y, ranks.of_threes if weight is None else _of_threes(ranks, weight)
        )


def _of_twos(ranks: NormalRanks, weight: Floats | float) -> tuple[Floats, Floats, Floats]:
    """Return for each product of two columns over how many records it goes, its mean and its sum of squares."""
    n = np.maximum((ranks.is_open * weight).T @ ranks.is_open, 1.0)
    means = (ranks.matrix * weight).T @ ranks.matrix / n
    return n, means, (ranks.squares * weight).T @ ranks.squares - n * means**2


def _of_threes(ranks: NormalRanks, weight: Floats | float) -> list[tuple[Floats, Floats]]:
    """Return for the products of each column with two after it over how many records they go, and their squares."""
    found = []
    for i in range(len(ranks.names)):
        squares, is_open = ranks.squares[:, i:], ranks.is_open[:, i:]
        sizes = (squares * (ranks.squares[:, i : i + 1] * weight)).T @ squares
        found.append(((is_open * (ranks.is_open[:, i : i + 1] * weight)).T @ is_open, sizes))
    return found


def _three_trends(
    ledger: Ledger, score: Score, ranks: NormalRanks, y: Floats, of_threes: list[tuple[Floats, Floats]]
) -> None:
    names = ranks.names
    for i, (n, sizes) in enumerate(of_threes):
        rest = ranks.matrix[:, i:]
        sums = (rest * (ranks.matrix[:, i : i + 1] * y)).T @ rest
        first, second = np.triu_indices(len(names) - i)
        chosen = (n[first, second] >= FEWEST) & (sizes[first, second] > 0)
        first, second = first[chosen], second[chosen]
        labels = [
            f"along {names[i]} times {names[i + j]} times {names[i + k]}"
            for j, k in zip(first.tolist(), second.tolist(), strict=True)
        ]
        _enter(ledger, score, sums[first, second], sizes[first, second], n[first, second], labels)


def _weights(score: Score) -> tuple[Floats, Floats | None]:
    """Return scores as a column, 0 without one, and whether there is one; nothing where all have one."""
    known = ~np.isnan(score.values)
    if known.all():
        return score.values[:, None], None
    return np.where(known, score.values, 0.0)[:, None], known.astype(np.float64)[:, None]


def _enter(
    ledger: Ledger, score: Score, sums: Floats, sizes: Floats, n: Floats, labels: Sequence[str]
) -> None:
    if len(labels):
        deviate = sums / np.sqrt(sizes)
        r = np.abs(deviate) / np.sqrt(n)
        ledger.add("products", score.label, TREND, normal_p(deviate), r, n, lambda k: labels[k])


def class_trends(ledger: Ledger, score: Score, ranks: NormalRanks) -> None:
    """Correlate scores with every true column inside every class of the others, and at their ends."""
    y, weight = _weights(score)
    of_classes = ranks.of_classes if weight is None else _of_classes(ranks, weight)
    weighted, own = ranks.matrix * y, y if ranks.all_open else ranks.is_open * y
    for (labels, rows), (n, means, sizes) in zip(ranks.members, of_classes, strict=True):
        sums = rows @ weighted - means * (rows @ own)
        at, column = np.nonzero((n >= FEWEST) & (sizes > LEVEL * n))
        if not len(at):
            continue
        deviate = sums[at, column] / np.sqrt(sizes[at, column])
        r_inside = np.abs(deviate) / np.sqrt(n[at, column])
        said = _inside_label(labels, ranks.names, at, column)
        p = normal_p(deviate)
        ledger.add("trends in classes", score.label, INSIDE, p, r_inside, n[at, column], said)


def _of_classes(ranks: NormalRanks, weight: Floats | float) -> list[tuple[Floats, Floats, Floats]]:
    """Return for the classes of each column, by rank, how many records there are, their mean and sum of squares."""
    is_open, r, squares = (one * weight for one in (ranks.is_open, ranks.matrix, ranks.squares))
    found = []
    for _, rows in ranks.members:
        n = np.maximum(rows @ is_open, 1.0)
        means = rows @ r / n
        found.append((n, means, rows @ squares - n * means**2))
    return found


def _inside_label(labels: tuple[str, ...], names: tuple[str, ...], at: Any, column: Any) -> Any:
    return lambda k: f"along {names[column[k]]} inside {labels[at[k]]}"


def waves(ledger: Ledger, score: Score, by: TrueColumn) -> None:
    """Look for waves of any length in the scores, in the order of a column."""
    from scipy.fft import rfft

    if by.numbers is None or by.distinct < 3:
        return
    y = score.values[by.order]
    y = y[~np.isnan(y)]
    n = len(y)
    if n < 2 * FEWEST:
        return
    power = np.abs(rfft(y)[1 : (n + 1) // 2]) ** 2 / n
    top = float(power.max())
    p = min(1.0, len(power) * float(np.exp(-top)))
    where = f"a wave of {n / (int(power.argmax()) + 1):.4g} records along {by.name}"
    ledger.add("trends", score.label, TREND, p, (2 * top / n) ** 0.5, n, where)

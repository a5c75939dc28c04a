"""Noise by arithmetic of the true values: residues, digit sums, the last digits of two columns, every so many records.

With classes c made of true values alone and y the scores (or their sizes) of one released column,

    q = sum over c of n_c mean_c^2 ~ chi^2 with as many degrees of freedom as classes,
    sqrt(n_c) mean_c ~ N(0, 1) in each class of 20 and more,

exactly. The first sees any function of the class (a sign by the parity of the digit sum), the second one class alone
(every 143rd record). A modulus sees its divisors too. What no list of classes can hold, a sign by a keyed hash of
values that never repeat, cannot be told from sound noise by anybody without the key. Own derivation. Called by
`battery`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial

import numpy as np

from ...table import Floats
from .cells import Integers
from .families import CLASS_MEAN, GROUPS, LARGE_GROUPS, MANY_MEMBERS, Score, normal_p
from .ledger import Ledger
from .truths import FEWEST, TrueColumn

# All moduli that a person would think of, and primes and powers up to what a file of some thousand records shows.
MODULI = (*range(3, 33), 37, 41, 43, 47, 49, 50, 53, 59, 60, 64, 97, 100, 128, 256, 360, 1_000)
MOST_EVERY = 300  # records after which a leak by position may come again: each has 20 records from 6,000 on
MOST_TWOS = 45  # pairs of columns whose last digits are looked at together: all of ten columns
DECIMAL = 10
DENSE = 4  # places for each record up to which positions are laid out as a table
CLOSED = np.iinfo(np.int64).min


@dataclass
class DigitSums:
    """Counts and sums of one score by the classes of many partitions, entered in the ledger together."""

    score: Score
    labels: list[str] = field(default_factory=list)
    counts: list[Integers] = field(default_factory=list)
    totals: list[Floats] = field(default_factory=list)

    def add(self, label: str, counts: Integers, total: Floats) -> None:
        """Add a partition."""
        self.labels.append(label)
        self.counts.append(counts)
        self.totals.append(total)

    def add_codes(self, label: str, codes: Integers) -> None:
        """Add the partition of records by a code, -1 where it has none."""
        own, known = self.score.of(codes), self.score.known
        inside = own >= 0
        if not inside.all():
            own, known = own[inside], known[inside]
        if len(own) >= FEWEST:
            self.add(label, np.bincount(own), np.asarray(np.bincount(own, known), np.float64))

    def enter(self, ledger: Ledger) -> None:
        """Enter the sums of all classes of a partition together, and of each one that has enough records."""
        if not self.labels:
            return
        widths = np.array([len(one) for one in self.counts])
        n, total = np.concatenate(self.counts).astype(np.float64), np.concatenate(self.totals)
        self._partitions(ledger, n, total, np.r_[0, np.cumsum(widths)[:-1]])
        large = np.flatnonzero(n >= FEWEST)
        if not len(large):
            return
        means = total[large] / n[large]
        whose = np.repeat(np.arange(len(widths)), widths)[large]
        within = (np.arange(len(n)) - np.repeat(np.cumsum(widths) - widths, widths))[large]
        told = (n[large], lambda i: f"{self.labels[whose[i]]}: {within[i]}", False, None)
        p = normal_p(means * np.sqrt(n[large]))
        ledger.add("residues", self.score.label, CLASS_MEAN, p, np.abs(means), *told, means)

    def _partitions(self, ledger: Ledger, n: Floats, total: Floats, starts: Integers) -> None:
        from scipy.special import chdtrc

        several = n > 1
        many = np.add.reduceat(several.astype(np.float64), starts)
        members = np.add.reduceat(np.where(several, n, 0.0), starts)
        q = np.add.reduceat(np.where(several, total**2 / np.maximum(n, 1.0), 0.0), starts)
        usable = np.flatnonzero((many >= 2) & (members >= FEWEST))
        size = members[usable] / many[usable]
        alike, p = (q[usable] / many[usable] - 1) / (size - 1), chdtrc(many[usable], q[usable])
        for effect, chosen in ((GROUPS, size < MANY_MEMBERS), (LARGE_GROUPS, size >= MANY_MEMBERS)):
            here = usable[chosen]
            if len(here):
                told = (members[here], partial(self._label, here))
                ledger.add("residues", self.score.label, effect, p[chosen], alike[chosen], *told)

    def _label(self, here: Integers, i: int) -> str:
        return self.labels[int(here[i])]


def residues(ledger: Ledger, scores: Sequence[Score], columns: Sequence[TrueColumn], own: str) -> None:
    """Test scores by residues, digit sums and binary ones of every true column, and by pairs of last digits.

    `scores` are views of one column, so that classes are made once for all of them; `own` is its name.
    """
    able = [one for one in columns if one.steps is not None and one.distinct > 2]
    sums = [DigitSums(score) for score in scores]
    for column in able:
        for label, codes in _classes_of(column):
            for one in sums:
                one.add_codes(label, codes)
    for first, second in _pairs(able, own):
        codes = _last_digits(first, second)
        for one in sums:
            one.add_codes(f"by the last digits of {first.name} and {second.name}", codes)
    for one in sums:
        one.enter(ledger)


def _classes_of(column: TrueColumn) -> Iterator[tuple[str, Integers]]:
    steps = column.steps
    assert steps is not None
    closed = steps == CLOSED
    size = np.abs(np.where(closed, 0, steps))
    for modulus in MODULI:
        if modulus < column.distinct:
            yield f"by {column.name} modulo {modulus}", np.where(closed, -1, steps % modulus)
    if column.distinct > DECIMAL:
        yield f"by the digit sum of {column.name}", np.where(closed, -1, _digit_sum(size, DECIMAL))
        yield f"by the binary ones of {column.name}", np.where(closed, -1, _digit_sum(size, 2))


def _digit_sum(values: Integers, base: int) -> Integers:
    total, rest = np.zeros_like(values), values.copy()
    while rest.any():
        total += rest % base
        rest //= base
    return total


def _pairs(columns: Sequence[TrueColumn], own: str) -> list[tuple[TrueColumn, TrueColumn]]:
    """Return pairs of columns, those with the released column's own true values first."""
    several = [one for one in columns if one.distinct > DECIMAL]
    pairs = [(one, other) for i, one in enumerate(several) for other in several[i + 1 :]]
    pairs.sort(key=lambda pair: own not in (pair[0].name, pair[1].name))
    return pairs[:MOST_TWOS]


def _last_digits(first: TrueColumn, second: TrueColumn) -> Integers:
    one, other = first.residues(DECIMAL), second.residues(DECIMAL)
    assert one is not None
    assert other is not None
    return np.where((one < 0) | (other < 0), -1, one.astype(np.int64) * DECIMAL + other)


def every_so_many(ledger: Ledger, score: Score, by: TrueColumn) -> None:
    """Test scores by position modulo all numbers: every 143rd record, from whichever one on."""
    places = score.of(by.codes)
    known = score.known if (places >= 0).all() else score.known[places >= 0]
    places = places[places >= 0]
    most = min(MOST_EVERY, len(places) // FEWEST)
    if most < 2:
        return
    width, sums = int(places.max()) + 1, DigitSums(score)
    if width > DENSE * len(places):  # stretches of a large file
        for modulus in range(2, most + 1):
            own = places % modulus
            total = np.asarray(np.bincount(own, known), np.float64)
            sums.add(f"by {by.name} modulo {modulus}", np.bincount(own), total)
    else:
        spread = np.zeros((2, width + MOST_EVERY))
        spread[0, places], spread[1, places] = known, 1.0
        for modulus in range(2, most + 1):
            rows = -(-width // modulus)
            total, counts = spread[:, : rows * modulus].reshape(2, rows, modulus).sum(axis=1)
            sums.add(f"by {by.name} modulo {modulus}", counts.astype(np.int64), total)
    sums.enter(ledger)

"""What the scores are sorted by: every column of the true file, dropped ones too, and both positions of a record.

A released column must not be used: it carries the noise itself. Values (up to 50) or tenths make classes, with the
outermost 1% and 5% and the last digits; ranks make trends and orders; values that repeat make groups. No law of its
own: what is here must be made without the released values, so that scores keep their law given it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from ...io.identities import decimal_unit
from ...table import Floats, Table
from ..evidence import Evidence
from .cells import Integers, ScoredCells, codes_of

MOST_VALUES = 50  # distinct values up to which each is a class; beyond, tenths are
MOST_CROSSED = 400  # cells of two columns crossed
MOST_PAIRS = 100  # of columns that are crossed: a file of 25 columns would have 300
FEWEST = 20  # records in a class
OUTER = (0.01, 0.02, 0.05)  # shares at both ends of a column that are classes of their own
OUTERMOST = (20, 100)  # and counts: the few whom everybody knows, in a file of any size
DECIMAL = 10
MOST_DIGITS = 15  # of a number at the end of a text: a double holds them
MOSTLY = 0.9  # of the texts: where fewer end in a number they are no ids of that kind
RUNS = (2, 5, 10)  # lengths of runs of neighbouring records
REMAINDERS = (7, 50, 100)  # of a position
Short = npt.NDArray[np.int16]  # classes and residues: a large file has dozens of such columns

PLACES = "released places"
ORIGINAL, RELEASED = "original position", "released position"


@dataclass(frozen=True)
class RecordClasses:
    """A partition of the records: the class of each (-1: none) and what each class is called."""

    codes: Short
    labels: tuple[str, ...]


@dataclass(frozen=True)
class TrueColumn:
    """One column of the truth (or a position): numbers where it has them, else codes alone."""

    name: str
    numbers: Floats | None
    codes: Integers
    unit: float | None = None
    categories: tuple[str, ...] = ()
    _residues: dict[int, Short | None] = field(default_factory=dict, repr=False, compare=False)

    @cached_property
    def distinct(self) -> int:
        """How many values there are."""
        return int(self.codes.max()) + 1 if len(self.codes) else 0

    @property
    def has_values(self) -> bool:
        """Whether each value is a class."""
        return 2 <= self.distinct <= MOST_VALUES

    @cached_property
    def steps(self) -> Integers | None:
        """The value in units, where it has one: -1 times the largest number where it is not open."""
        if self.numbers is None or self.unit is None:
            return None
        steps = np.rint(np.where(np.isnan(self.numbers), 0.0, self.numbers) / self.unit)
        if np.abs(steps).max(initial=0.0) >= 2.0**53:
            return None
        return np.where(np.isnan(self.numbers), np.iinfo(np.int64).min, steps).astype(np.int64)

    @cached_property
    def order(self) -> Integers:
        """The records with a number in the order of their numbers, ties as they stand."""
        assert self.numbers is not None
        order = np.argsort(self.numbers, kind="stable")
        return order[: int(np.count_nonzero(~np.isnan(self.numbers)))]

    @cached_property
    def shares(self) -> Floats:
        """The middle rank of each record among the open values, from 0 to 1; ties have one rank."""
        assert self.numbers is not None
        out, order = np.full(len(self.numbers), np.nan), self.order
        ranked = self.numbers[order]
        starts = np.flatnonzero(np.r_[True, ranked[1:] != ranked[:-1]]) if len(order) else np.empty(0, int)
        counts = np.diff(np.r_[starts, len(order)])
        out[order] = np.repeat((starts + counts / 2) / max(len(order), 1), counts)
        return out

    @cached_property
    def scores(self) -> Floats:
        """Normal scores of the ranks."""
        from scipy.special import ndtri

        return np.asarray(ndtri(self.shares))

    @cached_property
    def classes(self) -> RecordClasses | None:
        """Values, or tenths; what is not open is a class of its own."""
        if self.has_values:
            names = self.categories[: self.distinct] or [f"value {i + 1}" for i in range(self.distinct)]
            codes = np.where(self.codes < 0, self.distinct, self.codes)
            return self._named(codes, names)
        if self.numbers is None or self.distinct < 2:
            return None
        tenth = np.minimum(np.nan_to_num(self.shares, nan=0.0) * 10, 9).astype(np.int64)
        codes = np.where(np.isnan(self.numbers), 10, tenth)
        return self._named(codes, [f"tenth {i + 1} of 10" for i in range(10)])

    def _named(self, codes: Integers, names: Sequence[str]) -> RecordClasses:
        labels = tuple(f"{self.name}, {one}" for one in (*names, "not open"))
        return RecordClasses(codes.astype(np.int16), labels)

    @cached_property
    def ends(self) -> tuple[tuple[str, Integers], ...]:
        """The records of the outermost shares at both ends."""
        return () if self.numbers is None or self.has_values else self.ends_by_rank()

    def ends_by_rank(self) -> tuple[tuple[str, Integers], ...]:
        """Return the records of the outermost counts and shares at both ends of its numbers."""
        found = list[tuple[str, Integers]]()
        order = self.order
        for count in OUTERMOST:
            if 2 * count <= len(order):
                found.append((f"{count} largest of {self.name}", order[-count:]))
                found.append((f"{count} smallest of {self.name}", order[:count]))
        for share in OUTER:
            found.append((f"largest {share:.0%} of {self.name}", np.flatnonzero(self.shares >= 1 - share)))
            found.append((f"smallest {share:.0%} of {self.name}", np.flatnonzero(self.shares <= share)))
        return tuple(found)

    def residues(self, modulus: int) -> Short | None:
        """Return the value in units modulo a number, -1 where it is not open; nothing where there are too few."""
        if modulus not in self._residues:
            self._residues[modulus] = self._residue(modulus)
        return self._residues[modulus]

    def digit_places(self) -> Iterator[tuple[str, Short]]:
        """Return the digits before the last one and the first, -1 where the value is not open."""
        if self.steps is None or self.distinct <= DECIMAL:
            return
        size = np.abs(np.where(self.steps == np.iinfo(np.int64).min, -1, self.steps))
        for name, place in (("tens", 10), ("hundreds", 100), ("thousands", 1_000)):
            if size.max(initial=0) >= place:
                yield name, np.where(self.codes < 0, -1, size // place % 10).astype(np.int16)
        first = size // 10 ** np.floor(np.log10(np.maximum(size, 1))).astype(np.int64)
        yield "first digit", np.where(self.codes < 0, -1, np.clip(first, 0, 9)).astype(np.int16)

    def _residue(self, modulus: int) -> Short | None:
        if self.steps is None or self.distinct <= modulus:
            return None
        return np.where(self.steps == np.iinfo(np.int64).min, -1, self.steps % modulus).astype(np.int16)


def ends_of(name: str, cells: ScoredCells) -> tuple[tuple[str, Integers], ...]:
    """Return the records with the outermost true values of a column, by its cells alone."""
    own = TrueColumn(name, cells.x, np.empty(0, np.int64))
    return tuple((label, cells.at[members]) for label, members in own.ends_by_rank())


def true_columns(evidence: Evidence) -> tuple[TrueColumn, ...]:
    """Return all columns of the truth file."""
    truth = evidence.masking.truth
    return tuple(_true_column(truth, name) for name in truth.names)


def _true_column(truth: Table, name: str) -> TrueColumn:
    column = truth.schema[name]
    if not column.is_number:
        if column.kind != "category":
            return TrueColumn(name, _last_number(truth, name), codes_of(truth, name), 1.0)
        places = truth.floats(name)
        whole = np.where(np.isnan(places), -1, places).astype(np.int64)
        return TrueColumn(name, None, whole, categories=column.categories)
    numbers = truth.floats(name)
    known = ~np.isnan(numbers)
    codes = np.full(len(numbers), -1, np.int64)
    values, codes[known] = np.unique(numbers[known], return_inverse=True)
    unit = float(column.step) if column.step is not None else decimal_unit(values)
    return TrueColumn(name, numbers, codes, unit)


def _last_number(truth: Table, name: str) -> Floats | None:
    """Return the number at the end of each text, as of "u00123"; nothing where fewer than nine of ten have one."""
    import pyarrow as pa
    import pyarrow.compute as pc

    texts: Any = truth.array(name).cast(pa.string())
    found: Any = pc.extract_regex(texts, pattern=f"(?P<last>[0-9]{{1,{MOST_DIGITS}}})$")
    numbers: Any = pc.struct_field(found, "last").cast(pa.float64())
    if len(numbers) - numbers.null_count < MOSTLY * len(numbers):
        return None
    return np.asarray(numbers.to_numpy(zero_copy_only=False), dtype=np.float64)


def position(name: str, places: Floats) -> TrueColumn:
    """Return the place of each record as a column."""
    known = ~np.isnan(places)
    codes = np.where(known, np.nan_to_num(places), -1).astype(np.int64)
    return TrueColumn(name, places, codes, 1.0)


def released_position(evidence: Evidence, column: str = "") -> TrueColumn:
    """Return where each record leaves; of a column that was exchanged, where its value leaves."""
    return position(RELEASED, released_places(evidence, column))


def original_places(evidence: Evidence) -> Floats:
    """Return the place of each record in the original file."""
    return evidence.once(ORIGINAL, lambda: np.arange(len(evidence.masking.truth), dtype=np.float64))


def is_moved(evidence: Evidence, column: str) -> bool:
    """Whether values of a column were exchanged between records."""
    exchange = evidence.masking.exchange
    return exchange is not None and column in exchange.columns


def released_places(evidence: Evidence, column: str = "") -> Floats:
    """Return the place in the release of each record, or of its value in a column that was exchanged."""
    moved = column if is_moved(evidence, column) else ""
    return evidence.once(f"{PLACES} {moved}", lambda: _places(evidence, moved))


def _places(evidence: Evidence, moved: str) -> Floats:
    """Put each released place at the record whose value stands there: the one place that asks who was exchanged."""
    masking = evidence.masking
    places, donors = np.full(len(masking.truth), np.nan), masking.donors(moved) if moved else masking.order
    places[donors] = np.arange(len(donors))
    return places


def crossed_classes(columns: tuple[TrueColumn, ...]) -> Iterator[RecordClasses]:
    """Return the cells of two columns crossed: those of few values first, then with the tenths of others."""
    able = [column for column in columns if column.classes is not None]
    pairs = [(one, other) for i, one in enumerate(able) for other in able[i + 1 :]]
    pairs.sort(key=lambda pair: sum(not one.has_values for one in pair))
    for one, other in pairs[:MOST_PAIRS]:
        first, second = one.classes, other.classes
        assert first is not None
        assert second is not None
        width = len(second.labels) - 1  # the last class is what is not open
        if (len(first.labels) - 1) * width <= MOST_CROSSED:
            closed = (first.codes >= len(first.labels) - 1) | (second.codes >= width)
            labels = (f"{a}; {b}" for a in first.labels[:-1] for b in second.labels[:-1])
            yield RecordClasses(
                np.where(closed, -1, first.codes * width + second.codes).astype(np.int16), tuple(labels)
            )


def groupings(
    columns: tuple[TrueColumn, ...], positions: tuple[TrueColumn, ...]
) -> Iterator[tuple[str, Integers]]:
    """Return groups of records: equal values of a column that repeats, runs and remainders of positions."""
    for column in columns:
        if column.distinct > MOST_VALUES and column.distinct <= 0.9 * len(column.codes):
            yield f"equal {column.name}", column.codes
    for one in positions:
        for length in RUNS:
            yield f"runs of {length} by {one.name}", np.where(one.codes < 0, -1, one.codes // length)
        for remainder in REMAINDERS:
            yield f"{one.name} modulo {remainder}", np.where(one.codes < 0, -1, one.codes % remainder)

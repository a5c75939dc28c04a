"""What the checks look at: truth and release side by side, computed once for all of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from ..arrow_buffers import from_numpy
from ..attacks.known_columns import is_rounded, known_blocks
from ..attacks.risk import Risks
from ..masking import Masking
from ..masking.hidden_cards import is_withheld
from ..masking.results import Integers
from ..schema import OPEN
from ..table import Floats, Table

Kept = TypeVar("Kept")

# Numbers of columns that are kept between checks, about 100 MB: a large file's are read again
KEPT_VALUES = 12_000_000
LARGEST = 20_000  # records that a check looks at which cannot look at all of a large file


@dataclass(frozen=True)
class Evidence:
    """A masking and what else an audit was given.

    `risks` are attacks made on this masking already, `earlier` earlier releases of the same records, `folder` the
    written public half (nothing where it is not written yet), `largest` how many records a heavy check looks at;
    `not_known` are columns in clear that nobody outside knows, each with the reason why.
    Rows are those of the truth that were released, in the truth's order.
    """

    masking: Masking
    risks: Risks | None = None
    earlier: tuple[Masking, ...] = ()
    folder: Path | None = None
    largest: int = LARGEST
    seed: int = 0
    not_known: Mapping[str, str] = field(default_factory=dict)
    _kept: dict[str, Any] = field(default_factory=dict, repr=False, compare=False)
    _columns: dict[str, Any] = field(default_factory=dict, repr=False, compare=False)

    @cached_property
    def rows(self) -> Integers:
        """The numbers in the truth of the records that are released, ascending."""
        kept = self.masking.kept
        return np.arange(len(self.masking.truth)) if kept is None else np.sort(kept)

    @property
    def records(self) -> int:
        """How many records are released."""
        return len(self.rows)

    @cached_property
    def masked_columns(self) -> tuple[str, ...]:
        """The columns that the masks changed, totals recomputed from others among them, in the schema's order.

        Of a file masked elsewhere, whose card may not tell, also the columns that left with other values.
        """
        card = self.masking.card
        touched = {*card.masked, *(total for total, _ in card.recomputed)}
        if self.masking.given is not None:
            touched |= self._changed()
        columns = self.masking.masked.schema.columns
        return tuple(column.name for column in columns if column.name in touched and not column.drop)

    def _changed(self) -> set[str]:
        """The columns whose released values are not the true ones; ids and groups get new labels by design."""
        shared = [
            column
            for column in self.masking.masked.schema.columns
            if column.name in self.masking.truth.schema
        ]
        truth, masked = self.masking.truth, self.masking.masked
        told = [
            column
            for column in shared
            if not column.roles & {"id", "group"}
            and (column.kind != "text" or truth.has_classes(column.name) or masked.has_classes(column.name))
        ]
        return {column.name for column in told if not self._is_same(column.name)}

    def _is_same(self, name: str) -> bool:
        truth, masked = self.masking.truth, self.masking.masked
        if truth.schema[name].is_number and masked.schema[name].is_number:
            return np.array_equal(self.true(name), self.released(name), equal_nan=True)
        rows: Any = from_numpy(self.rows)
        return bool(masked.array(name).take(rows).equals(truth.array(name).take(rows)))

    @cached_property
    def places(self) -> Integers:
        """For each released record, in the order in which they leave, its place among `rows`."""
        return np.asarray(np.searchsorted(self.rows, self.masking.order))

    @cached_property
    def numbers(self) -> tuple[str, ...]:
        """The masked columns that are numbers before and after."""
        truth, masked = self.masking.truth.schema, self.masking.masked.schema
        return tuple(
            name
            for name in self.masked_columns
            if name in truth and truth[name].is_number and masked[name].is_number
        )

    @cached_property
    def clear(self) -> tuple[str, ...]:
        """The columns that leave unmasked, ids aside."""
        schema = self.masking.masked.schema
        return tuple(
            column.name
            for column in schema.columns
            if column.name not in self.masked_columns and not column.drop and column.name != schema.id_column
        )

    @cached_property
    def known_blocks(self) -> tuple[str, ...]:
        """The columns that are the same in both files and may be known outside, whatever their roles.

        Records that differ there need not be compared. Of a file masked elsewhere, whose card may not tell, only those
        whose values did not change, or that the card codes by a rule without chance.
        """
        truth, card, released = self.masking.truth, self.masking.card, self.masking.release.table.schema
        if not is_withheld(card):
            able = {*self.clear, *card.masked}
            names = known_blocks(truth, card, self.not_known)
            return tuple(name for name in names if name in able and name in released)
        moved = () if card.swapped is None else card.swapped.columns
        return tuple(
            name
            for name in self.clear
            if name in released
            and name in truth.schema
            and name not in {*moved, *self.not_known}
            and truth.schema[name].may_be_known
            and not is_rounded(truth, name)
        )

    @cached_property
    def gaps(self) -> dict[str, Integers]:
        """What leaves in clear of masked columns: whether a value is there, missing or a code; equal patterns once."""
        found = self.masking.masked.gap_patterns(self.masked_columns)
        rows = {f"whether {name} is missing": status[self.rows] for name, status in found.items()}
        return {name: status for name, status in rows.items() if np.ptp(status)}

    def true(self, name: str) -> Floats:
        """Return the true values of a column (codes of a category), not a number where they are not open."""
        return self._values("true", name)

    def released(self, name: str) -> Floats:
        """Return the released values of a column (numbers of texts), swaps and all, in the truth's order."""
        return self._values("released", name)

    def noised(self, name: str) -> Floats:
        """Return the masked values of a column as they were before any swap."""
        return self._values("noised", name)

    def _values(self, which: str, name: str) -> Floats:
        return self.lately(
            f"{which} {name}", lambda: self._released_rows(self._table(which).class_codes(name))
        )

    def _released_rows(self, values: Floats) -> Floats:
        """Return the values of the released records; those of all are not copied."""
        return values if self.masking.kept is None else values[self.rows]

    def _table(self, which: str) -> Table:
        masking = self.masking
        if which == "noised":
            return self.once("unswapped", lambda: masking.unswapped)
        return masking.truth if which == "true" else masking.masked

    def once(self, label: str, make: Callable[[], Kept]) -> Kept:
        """Return what was made under a label, making it the first time: several checks look at the same things."""
        if label not in self._kept:
            self._kept[label] = make()
        found: Kept = self._kept[label]
        return found

    def lately(self, label: str, make: Callable[[], Kept]) -> Kept:
        """Return what was made of a column under a label, or make it again where many others were made since."""
        found: Kept = self._columns.pop(label) if label in self._columns else make()
        self._columns[label] = found
        most = max(KEPT_VALUES // max(self.records, 1), 2)
        while len(self._columns) > most:
            self._columns.pop(next(iter(self._columns)))
        return found

    def open_both(self, name: str) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
        """Return where a column is open in the truth and in the release."""
        rows, masking = self.rows, self.masking
        both = (masking.truth.status(name)[rows] == OPEN) & (masking.masked.status(name)[rows] == OPEN)
        return np.asarray(both, dtype=np.bool_)

    def sample(self, of: int | None = None, purpose: Sequence[int] = (), most: int | None = None) -> Integers:
        """Return places among the released records: all of them, or a random `most` (else `largest`) of many."""
        count, most = self.records if of is None else of, self.largest if most is None else most
        if count <= most:
            return np.arange(count)
        rng = np.random.default_rng([self.seed, *purpose])
        return np.sort(rng.choice(count, most, replace=False))

    def looked_at(self, places: Integers) -> int | None:
        """Return how many records a check looked at, or nothing where it was all of them."""
        return len(places) if len(places) < self.records else None

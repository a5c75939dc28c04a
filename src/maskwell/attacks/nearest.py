"""The intruder by distance: he links a record to the one that lies nearest."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from ..errors import BadPlan, raise_all
from ..masking import Release
from ..table import Floats, Table
from .agreement import LARGEST, Relative, compare_tables, is_comparable
from .contract import Guess, Ints, Known, OrderOf
from .ranking import (
    Batch,
    Blocks,
    answered,
    check_fields_named,
    in_runs,
    option_problems,
    partners_of,
    search,
)
from .search import Search, check_fields

SCALE = 2.0**100  # lifts squared distances, exactly, to where ties are told by their digits alone


@dataclass(frozen=True, kw_only=True)
class NearestRecord(Search):
    """Link every record to the nearest in its block, by Euclidean distance in standard deviations.

    `fields` are amounts (the schema's key columns that are numbers). Each is divided by the sd of its open values in
    the release, which is all that an outsider sees; a column without spread there does not count. Values that are not
    open have no distance: statuses must agree before amounts count. The nearest record is the one with the fewest
    fields whose statuses differ (missing against open, a code against another), and among those the one at the
    smallest distance over the fields that are open on both sides.

    `assignment="best"` links every record to its nearest, "one-to-one" lets each candidate be linked once, with the
    smallest sum of squared distances in each block (again after the number of differing statuses). He stands by
    every link. In the table `score` is minus the distance, `mismatches` the number of statuses that differ.
    """

    fields: tuple[str, ...] | None = None
    assignment: str = "best"

    def __post_init__(self) -> None:
        raise_all(self.search_problems() + option_problems(self), BadPlan)

    def guess(self, known: Known, release: Release, order_of: OrderOf) -> Guess:
        """Link the intruder's records with the released ones, without any link."""
        fields, notes = self._fields(known.targets, release.table)
        orders = order_of(known.targets, "known"), order_of(release.table, "released")
        blocks = Blocks(*self.blocks_of(known.targets, release.table), orders)
        distances = Distances.of(known.targets, release.table, fields, blocks)
        best, is_tied = search(distances, blocks, to_masked=self.to_masked, assignment=self.assignment)
        partners = partners_of(distances, blocks, best, to_masked=self.to_masked)
        shown = [distances.shown(place, to_masked=self.to_masked) for place in (best.place, best.second)]
        return answered(
            self,
            blocks,
            best,
            is_tied,
            partners,
            scores=(shown[0][0], shown[1][0]),
            columns={"mismatches": shown[0][1]},
            fields=fields,
            notes=notes,
        )

    def _fields(self, known: Table, released: Table) -> tuple[tuple[str, ...], list[str]]:
        notes: list[str] = []
        fields = self.fields
        if fields is None:
            blocks = self.match_columns(released.schema)
            keys = [c for c in released.schema.columns if "key" in c.roles and c.name not in blocks]
            fields = tuple(c.name for c in keys if c.is_number)
            left = [c.name for c in keys if not c.is_number]
            notes = [f"no distance is taken on {', '.join(left)}: not numbers in the release"] if left else []
        check_fields_named(fields, "name amounts in fields")
        check_fields(fields, known, released)
        names = [name for name in fields if not _is_amount(known, released, name)]
        raise_all(
            [f"column {name!r} holds names, not amounts: make it a matching block" for name in names], BadPlan
        )
        return fields, notes


def _is_amount(known: Table, released: Table, name: str) -> bool:
    """Whether a distance makes sense: released numbers of amounts or of category codes."""
    ours, theirs = known.schema[name], released.schema[name]
    return theirs.is_number and ours.kind != "text" and is_comparable(ours, theirs)


@dataclass(frozen=True, slots=True)
class Distances:
    """Fields x records of both sides in units of the release's sds; a closed value stands far above all open ones.

    `penalty` is what a differing status adds to a squared distance: more than all open fields together can.
    """

    known: Floats
    released: Floats
    blocks: Blocks
    penalty: float

    @classmethod
    def of(cls, known: Table, released: Table, fields: tuple[str, ...], blocks: Blocks) -> Distances:
        """Put both sides on one scale."""
        compared = compare_tables(known, released, dict.fromkeys(fields), Relative(0.1))
        scaled = [_scaled(*pair) for pair in zip(compared.known, compared.released, strict=True)]
        ours, theirs = (np.array([pair[side] for pair in scaled]) for side in (0, 1))
        both = np.concatenate([ours, theirs], axis=1)
        low = np.where(both <= LARGEST, both, np.inf).min(axis=1)
        high = np.where(both <= LARGEST, both, -np.inf).max(axis=1)
        spans = np.where(high >= low, high - low, 0.0)
        return cls(ours, theirs, blocks, float((spans**2).sum()) + 1.0)

    def batches(self) -> Iterator[Batch]:
        """Score all pairs within blocks: minus the squared distance, differing statuses first."""
        for _, known, released in self.blocks:
            for some in in_runs(released, len(known)):
                differing, squared = _compared(self.known[:, known, None], self.released[:, None, some])
                yield Batch(known, some, -SCALE * (differing * self.penalty + squared))

    def pairs(self, known: Ints, released: Ints) -> Floats:
        """Score listed pairs."""
        differing, squared = _compared(self.known[:, known], self.released[:, released])
        return -SCALE * (differing * self.penalty + squared)

    def shown(self, found: Ints, *, to_masked: bool) -> tuple[Floats, Ints]:
        """Return minus the distance of each searcher to the candidate found, and how many statuses differ."""
        rows, found = np.arange(len(found)), np.maximum(found, 0)
        known, released = (rows, found) if to_masked else (found, rows)
        differing, squared = _compared(self.known[:, known], self.released[:, released])
        return -np.sqrt(squared), differing


def _scaled(known: Floats, released: Floats) -> tuple[Floats, Floats]:
    """Divide open values by the sd of the released ones; a column without spread becomes zero."""
    shown = released[released <= LARGEST]
    sd = float(shown.std(ddof=1)) if len(shown) > 1 else 0.0
    unit = 1.0 / sd if sd > 0 else 0.0
    factors = (np.where(side <= LARGEST, unit, 1.0) for side in (known, released))
    ours, theirs = (side * factor for side, factor in zip((known, released), factors, strict=True))
    return ours, theirs


def _compared(known: Floats, released: Floats) -> tuple[Ints, Floats]:
    """Return how many statuses of each pair differ, and the squared distance over what is open on both sides."""
    shape = np.broadcast_shapes(known.shape[1:], released.shape[1:])
    differing, squared = np.zeros(shape, np.int64), np.zeros(shape)
    for ours, theirs in zip(known, released, strict=True):
        closed = (ours > LARGEST) | (theirs > LARGEST)
        if closed.any():
            differing += closed & (ours != theirs)
            squared += np.where(closed, 0.0, ours - theirs) ** 2
        else:
            squared += (ours - theirs) ** 2
    return differing, squared

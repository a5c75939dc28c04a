"""What earlier releases of the same records showed, cell by cell, and which noise must be drawn anew because of it.

A cell (a record's value in a masked column) keeps its noise for as long as its value stays. A changed value gets fresh
noise: the same noise would show the change exactly. Cells that are no longer there (a withdrawn record, a value
now missing, a column left out) are remembered by keyed tags, so that they get their noise back when they return.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from ..card import NoiseCard
from ..engines import Part
from ..errors import BadPlan, raise_all
from ..keystream import Stream
from ..laws import Additive, JointMixture, Normal, RotatedMixture
from ..laws.chained import Chained, stages_of
from ..table import Floats, Table

if TYPE_CHECKING:
    from .results import Masking

Bools = npt.NDArray[np.bool_]
Integers = npt.NDArray[np.int64]
Revisions = Mapping[str, npt.NDArray[np.int32]]
Past = Mapping[str, Mapping[bytes, tuple[bytes, int]]]  # column: {record's tag: (value's tag, revision)}


@dataclass(frozen=True)
class History:
    """Which release this is, and for each cell in which release its noise was last drawn anew (0: never).

    `revisions` has an entry for those columns alone where noise was drawn anew; `past` remembers the cells of
    earlier releases that are not in this one.
    """

    number: int = 1
    revisions: Revisions = field(default_factory=dict)
    past: Past = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    def draw(self, law: Any, x: Floats, stream: Stream, part: Part) -> Floats:
        """Draw each cell under the stage of its last revision."""
        out = _draw(law, x, stream, "")
        if law.whole_file or not self.revisions.keys() & set(law.columns):
            return out
        never = np.zeros(len(x), np.int32)
        revised = np.column_stack(
            [self.revisions[name][part] if name in self.revisions else never for name in law.columns]
        )
        for revision in np.unique(revised[revised > 0]):
            here = np.flatnonzero((revised == revision).any(axis=1))
            drawn = _draw(law, x[here], stream.at(here), f"@{revision}")
            out[here] = np.where(revised[here] == revision, drawn, out[here])
        return out


def _draw(law: Any, x: Floats, stream: Stream, suffix: str) -> Floats:
    stage = suffix if isinstance(law, Chained) else f"0{suffix}"
    drawn: Floats = law.draw(x, stream.staged(stage))
    return drawn


def drawn_together(law: Any) -> bool:
    """Whether the columns of a law share noise, so that none can be drawn anew without the others."""
    noises = [stage.noise for _, stage in stages_of(law) if isinstance(stage, Additive)]
    return any(
        isinstance(noise, JointMixture | RotatedMixture)
        or (isinstance(noise, Normal) and bool(noise.correlations))
        for noise in noises
    )


def masked_columns(card: NoiseCard) -> tuple[str, ...]:
    """Return the columns that a card hides something of: all but those that are only put on their unit."""
    return tuple(name for law in card.laws if not _is_rounding(law) for name in law.columns)


def _is_rounding(law: Any) -> bool:
    return (
        isinstance(law, Additive)
        and not law.noise.covariance.any()
        and all(outlet.codes == (None, None) for outlet in law.outlets)
    )


@dataclass(frozen=True)
class Pairing:
    """The records of two releases paired by their ids: where each new record stands in the earlier truth."""

    known: Bools
    where: Integers
    withdrawn: Bools

    @classmethod
    def of(cls, earlier: Table, table: Table) -> Pairing:
        """Pair two tables that have ids."""
        import pyarrow.compute as pc

        ids: Any = table.ids
        earlier_ids: Any = earlier.ids
        found = pc.index_in(ids, value_set=earlier_ids)
        known = ~np.asarray(found.is_null())
        where = np.asarray(found.fill_null(0).to_numpy(zero_copy_only=False), dtype=np.int64)
        withdrawn = np.ones(len(earlier), bool)
        withdrawn[where[known]] = False
        return cls(known, where, withdrawn)


def history_of(earlier: Masking, table: Table, card: NoiseCard, stream: Stream) -> History:
    """Compare the records with those of the earlier release, by id and cell by cell."""
    pairing, number = Pairing.of(earlier.truth, table), earlier.number + 1
    raise_all(_whole_file_problems(earlier, table, card, pairing), BadPlan)
    cells = {name: _Cells.of(earlier, table, name, pairing, stream) for name in card.columns}
    changed = np.zeros(len(table), bool)
    revisions: dict[str, npt.NDArray[np.int32]] = {}
    for law in card.laws:
        anew = [cells[name].changed for name in law.columns]
        found = [np.where(cells[name].changed, number, cells[name].revisions) for name in law.columns]
        if drawn_together(law):
            found = [np.maximum.reduce(found)] * len(found)
        changed |= np.logical_or.reduce(anew)
        revisions |= dict(zip(law.columns, found, strict=True))
    kept = {name: found.astype(np.int32) for name, found in revisions.items() if found.any()}
    returned = ~pairing.known & np.logical_or.reduce([cell.remembered for cell in cells.values()])
    past = _remembered(earlier, table, cells, pairing)
    return History(number, kept, past, _spoken(number, pairing, changed, returned))


@dataclass(frozen=True)
class _Cells:
    """One column now: which cells have another value than when last released, and their revisions until now."""

    changed: Bools
    revisions: npt.NDArray[np.int32]
    remembered: Bools

    @classmethod
    def of(cls, earlier: Masking, table: Table, name: str, pairing: Pairing, stream: Stream) -> _Cells:
        now_open = table.is_open([name])[:, 0]
        changed, remembered = np.zeros(len(table), bool), np.zeros(len(table), bool)
        revisions = np.zeros(len(table), np.int32)
        values = table.values([name])[:, 0]
        if name in masked_columns(earlier.card):
            where = pairing.where
            both = now_open & pairing.known & earlier.truth.is_open([name])[where, 0]
            changed = both & (earlier.truth.values([name])[where, 0] != values)
            if name in earlier.revisions:
                revisions[both] = earlier.revisions[name][where[both]]
            now_open &= ~both
        past = earlier.past.get(name)
        if past:
            _recall(past, np.flatnonzero(now_open), values, name, stream, (changed, revisions, remembered))
        return cls(changed, revisions, remembered)


def _recall(
    past: Mapping[bytes, tuple[bytes, int]],
    records: Integers,
    values: Floats,
    name: str,
    stream: Stream,
    into: tuple[Bools, npt.NDArray[np.int32], Bools],
) -> None:
    """Look up cells that the earlier release did not have among those of still earlier ones."""
    changed, revisions, remembered = into
    part = stream.at(records)
    tags = zip(records, part.tags(name), part.tags(name, values[records]), strict=True)
    for i, record, value in tags:
        if record in past:
            before, revision = past[record]
            remembered[i], changed[i], revisions[i] = True, before != value, revision


def _remembered(earlier: Masking, table: Table, cells: Mapping[str, _Cells], pairing: Pairing) -> Past:
    """Return what was remembered before (cells that returned too: they do no harm), and the cells that are gone now."""
    from .results import stream_of

    stream = stream_of(earlier, "")
    past = {name: dict(known) for name, known in earlier.past.items()}
    for name in masked_columns(earlier.card):
        gone = earlier.truth.is_open([name])[:, 0]
        if name in cells:
            still = pairing.known & table.is_open([name])[:, 0]
            gone[pairing.where[still]] = False
        records = np.flatnonzero(gone)
        if len(records):
            past.setdefault(name, {}).update(_tagged(earlier, name, records, stream.at(records)))
    return {name: known for name, known in past.items() if known}


def _tagged(
    earlier: Masking, name: str, records: Integers, stream: Stream
) -> Iterable[tuple[bytes, tuple[bytes, int]]]:
    values = earlier.truth.values([name])[records, 0]
    revisions = earlier.revisions[name][records] if name in earlier.revisions else np.zeros(len(records))
    tags = zip(stream.tags(name), stream.tags(name, values), revisions.tolist(), strict=True)
    return ((record, (value, int(revision))) for record, value, revision in tags)


def _whole_file_problems(earlier: Masking, table: Table, card: NoiseCard, pairing: Pairing) -> list[str]:
    """A value exchanged with others depends on all of them: once more only among the same records and values."""
    problems = []
    for law in card.laws:
        shared = [name for name in law.columns if name in earlier.card.columns]
        if law.whole_file and shared:
            same = bool(pairing.known.all()) and not pairing.withdrawn.any()
            before = earlier.truth.values(shared)[pairing.where] if same else np.empty(0)
            if not same or not np.array_equal(before, table.values(shared), equal_nan=True):
                problems.append(
                    f"{law.form} of {', '.join(shared)} depends on the whole file: it can be released again only "
                    "with the same records and values; leave these columns out, or mask them by noise from the start"
                )
    return problems


def _spoken(number: int, pairing: Pairing, changed: Bools, returned: Bools) -> tuple[str, ...]:
    kept = int(np.count_nonzero((pairing.known | returned) & ~changed))
    new = int(np.count_nonzero(~pairing.known & ~returned))
    notes = [f"release {number} of the series: {kept:,} records keep their earlier noise"]
    if changed.any():
        notes.append(
            f"{int(changed.sum()):,} records have changed values and get fresh noise there, and in columns whose noise "
            "is drawn together with it (the same noise would show the change exactly); whoever holds both "
            "releases sees what did not change in those columns twice"
        )
    if returned.any():
        notes.append(f"{int(returned.sum()):,} records return after they were withdrawn")
    if new:
        notes.append(f"{new:,} records are new")
    withdrawn = int(pairing.withdrawn.sum())
    if withdrawn:
        notes.append(f"{withdrawn:,} records were withdrawn; they remain in copies of the earlier release")
    return tuple(notes)

"""What earlier releases of the same records showed, cell by cell, and which noise must be drawn anew because of it.

A cell (a record's value in a masked column) keeps its noise for as long as its value stays. A changed value gets other
noise (the same would show the change exactly), drawn from a keyed tag of the record and its new value: two
corrections of one value share nothing, and a value that was released before gets the noise that it had then.
Columns whose noise is drawn together are tagged together, by all their values, and return together. Cells that no
earlier release had are tagged too, but for a value that becomes known beside others of its group: it joins their noise.

Cells that are no longer there (a withdrawn record, a value now missing, a column left out) are remembered by keyed
tags, so that they get their noise back when they return; so is the value that a record's first noise belongs to.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from ..card import NoiseCard
from ..engines import Part
from ..errors import BadPlan, raise_all
from ..keys import Stream, Words, in_sixteens
from ..laws import Additive, JointMixture, Normal, RotatedMixture
from ..laws.chain import ChainedLaw, combined_of, stages_of
from ..notes import Note
from ..table import Floats, Table
from .lineage import Cells, Originals, Past, Revisions

if TYPE_CHECKING:
    from .results import Masking

Bools = npt.NDArray[np.bool_]
Integers = npt.NDArray[np.int64]
NO_TAG = bytes(16)


@dataclass(frozen=True)
class History:
    """Which release of the series this is, which cells draw their noise from tags, and what came before.

    `revisions` has an entry for those columns alone where some noise is not that of the record itself.
    """

    number: int = 1
    revisions: Revisions = field(default_factory=dict)
    past: Past = field(default_factory=Past)
    notes: tuple[Note, ...] = ()

    def draw(self, law: Any, x: Floats, stream: Stream, part: Part) -> Floats:
        """Draw each cell from its record, or from the tag of its revision."""
        revised = {name: self.revisions[name][part] for name in law.columns if name in self.revisions}
        own = {name: _revised_blocks(stream, tags) for name, tags in revised.items()}
        if own and drawn_together(law):
            stream = replace(stream, blocks=own[law.columns[0]])
        drawn: Floats = law.draw(
            x, replace(stream, stage="" if isinstance(law, ChainedLaw) else "0", own=own)
        )
        return drawn


def _revised_blocks(stream: Stream, tags: Words) -> npt.NDArray[np.uint8]:
    here = tags.any(axis=1)
    blocks = stream.blocks.copy()
    blocks[here] = tags[here].view(np.uint8)
    return blocks


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
    return tuple(name for law in card.laws if not is_rounding(law) for name in law.columns)


def is_rounding(law: Any) -> bool:
    """Whether a law has neither noise nor codes."""
    law = combined_of(law)
    return (
        isinstance(law, Additive)
        and not law.noise.covariance.any()
        and all(outlet.codes == (None, None) for outlet in law.outlets)
    )


@dataclass(frozen=True)
class RecordPairing:
    """The records of two releases paired by their ids: where each new record stands in the earlier truth."""

    known: Bools
    where: Integers
    withdrawn: Bools

    @classmethod
    def of(cls, earlier: Table, table: Table) -> RecordPairing:
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
    """Compare the records with those of the earlier releases, by id and cell by cell."""
    pairing = RecordPairing.of(earlier.truth, table)
    raise_all(_whole_file_problems(earlier, table, card, pairing), BadPlan)
    seen = {name: _Seen.of(earlier, table, name, pairing, stream) for name in card.columns}
    anew, revisions = np.zeros(len(table), bool), dict[str, Words]()
    for group in _groups(card):
        tags, fresh = _noise_tags([seen[name] for name in group], group, table, stream)
        anew |= fresh
        revisions |= dict.fromkeys(group, tags) if tags.any() else {}
    returned = ~pairing.known & np.logical_or.reduce([cell.remembered for cell in seen.values()])
    past = replace(
        earlier.past,
        cells=_gone_cells(earlier, table, seen, pairing),
        originals=_originals(earlier.past.originals, seen, revisions, stream),
    )
    number = earlier.number + 1
    return History(number, revisions, past, _series_notes(number, pairing, anew, returned))


def _groups(card: NoiseCard) -> Iterator[tuple[str, ...]]:
    """Return the columns whose noise is drawn together; exchanged values have no noise of their own."""
    for law in card.laws:
        if drawn_together(law):
            yield tuple(law.columns)
        elif not law.whole_file:
            yield from ((name,) for name in law.columns)


def _noise_tags(
    cells: Sequence[_Seen], group: Sequence[str], table: Table, stream: Stream
) -> tuple[Words, Bools]:
    """Return the tag that each record's noise in these columns is drawn from, and whether it is another than before."""
    tags, held = np.zeros((len(table), 2), np.uint64), np.zeros(len(table), bool)
    anew = np.logical_or.reduce([cell.changed for cell in cells])
    for cell in cells:
        anew |= held & cell.held & (cell.tags != tags).any(axis=1)
        first = cell.held & ~held
        tags[first] = cell.tags[first]
        held |= cell.held
    drawn = anew | (~held & table.is_open(group).any(axis=1))
    tags[drawn] = _value_tags(table, group, np.flatnonzero(drawn), stream)
    back = np.logical_or.reduce([cell.original for cell in cells])
    back &= ~np.logical_or.reduce([cell.parted for cell in cells])
    tags[anew & back] = 0
    return tags, anew


def _value_tags(table: Table, group: Sequence[str], records: Integers, stream: Stream) -> Words:
    """Return tags of the records and all their values in some columns, in whatever order these come."""
    group = sorted(group)
    label = group[0] if len(group) == 1 else "\x1f".join(("", *group))
    return stream.at(records).tags(label, table.values(group)[records])


@dataclass(frozen=True)
class _Seen:
    """What was released of one column's cells that are open now.

    `held` cells were released before, with noise drawn from `tags`; `changed` ones with another value, when last
    released. `original` ones have the value that their record's first noise belongs to, `parted` ones another.
    `before` are the tags of the values last released.
    """

    held: Bools
    changed: Bools
    original: Bools
    parted: Bools
    remembered: Bools
    tags: Words
    before: Words

    @classmethod
    def of(cls, earlier: Masking, table: Table, name: str, pairing: RecordPairing, stream: Stream) -> _Seen:
        now = np.flatnonzero(table.is_open([name])[:, 0])
        values = np.zeros((len(table), 2), np.uint64)
        values[now] = stream.at(now).tags(name, table.values([name])[now, 0])
        held, remembered = np.zeros(len(table), bool), np.zeros(len(table), bool)
        tags, before = np.zeros_like(values), np.zeros_like(values)
        if name in masked_columns(earlier.card):
            both = now[pairing.known[now]]
            both = both[earlier.truth.is_open([name])[pairing.where[both], 0]]
            held[both], there = True, pairing.where[both]
            before[both] = stream.at(both).tags(name, earlier.truth.values([name])[there, 0])
            if name in earlier.revisions:
                tags[both] = earlier.revisions[name][there]
        for i, (value, noise) in _matches_by_tag(earlier.past.cells.get(name), now[~held[now]], name, stream):
            held[i] = remembered[i] = True
            before[i], tags[i] = np.frombuffer(value, np.uint64), np.frombuffer(noise, np.uint64)
        changed = held & (before != values).any(axis=1)
        first = held & ~tags.any(axis=1)
        original, parted = first & ~changed, first & changed
        for i, value in _matches_by_tag(earlier.past.originals.get(name), now[~first[now]], name, stream):
            original[i] = values[i].tobytes() == value
            parted[i] = not original[i]
        return cls(held, changed, original, parted, remembered, tags, before)


def _matches_by_tag(
    known: Mapping[bytes, Any] | None, records: Integers, name: str, stream: Stream
) -> Iterator[tuple[int, Any]]:
    """Look records up by their tags."""
    if known:
        for i, record in zip(records.tolist(), in_sixteens(stream.at(records).tags(name)), strict=True):
            if record in known:
                yield i, known[record]


def _originals(
    known: Originals, seen: Mapping[str, _Seen], revisions: Revisions, stream: Stream
) -> Originals:
    """Add the values of cells that had their record's first noise until now."""
    originals = {name: dict(values) for name, values in known.items()}
    for name, tags in revisions.items():
        cell = seen[name]
        left = np.flatnonzero(cell.held & ~cell.tags.any(axis=1) & tags.any(axis=1))
        pairs = zip(in_sixteens(stream.at(left).tags(name)), in_sixteens(cell.before[left]), strict=True)
        if len(left):
            originals.setdefault(name, {}).update(pairs)
    return originals


def _gone_cells(earlier: Masking, table: Table, seen: Mapping[str, _Seen], pairing: RecordPairing) -> Cells:
    """Return what was remembered before (cells that returned too: they do no harm), and the cells that are gone now."""
    from .results import stream_of

    stream = stream_of(earlier, "")
    past = {name: dict(known) for name, known in earlier.past.cells.items()}
    for name in masked_columns(earlier.card):
        gone = earlier.truth.is_open([name])[:, 0]
        if name in seen:
            still = pairing.known & table.is_open([name])[:, 0]
            gone[pairing.where[still]] = False
        records = np.flatnonzero(gone)
        if len(records):
            past.setdefault(name, {}).update(_tagged_cells(earlier, name, records, stream.at(records)))
    return past


def _tagged_cells(
    earlier: Masking, name: str, records: Integers, stream: Stream
) -> Iterator[tuple[bytes, tuple[bytes, bytes]]]:
    values = stream.tags(name, earlier.truth.values([name])[records, 0])
    revised = earlier.revisions.get(name)
    noises = [NO_TAG] * len(records) if revised is None else in_sixteens(revised[records])
    cells = zip(in_sixteens(values), noises, strict=True)
    return zip(in_sixteens(stream.tags(name)), cells, strict=True)


def _whole_file_problems(
    earlier: Masking, table: Table, card: NoiseCard, pairing: RecordPairing
) -> list[str]:
    """A value exchanged with others depends on all of them: once more only among the same records and values."""
    problems = [
        f"{law.form} of {', '.join(law.columns)} depends on the whole file, and the last release left these columns "
        "out: they cannot return; leave them out, or mask them by noise from the start"
        for law in card.laws
        if law.whole_file and set(law.columns) & set(earlier.past.card.columns)
    ]
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


def _series_notes(number: int, pairing: RecordPairing, changed: Bools, returned: Bools) -> tuple[Note, ...]:
    kept = int(np.count_nonzero((pairing.known | returned) & ~changed))
    counts = {
        "masking.series_changed": int(changed.sum()),
        "masking.series_returned": int(returned.sum()),
        "masking.series_new": int(np.count_nonzero(~pairing.known & ~returned)),
        "masking.series_withdrawn": int(pairing.withdrawn.sum()),
    }
    first = Note("masking.series_kept", {"number": number, "count": kept})
    return (first, *(Note(code, {"count": count}) for code, count in counts.items() if count))

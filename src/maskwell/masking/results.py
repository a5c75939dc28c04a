"""What masking gives: a `Masking` with truth, links and key, and the `Release` that may leave."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from ..arrow_buffers import from_numpy, take_texts, to_numpy
from ..card import NoiseCard
from ..errors import BadInput, BadPlan
from ..keys import Blocks, Key, Stream, ids_from_numbers, ids_from_texts
from ..notes import Note
from ..schema import Schema
from ..table import Table
from .lineage import Past, Revisions

if TYPE_CHECKING:
    import pyarrow as pa

    from .protocol import Mask
    from .swap_record import Exchange, Swapping

Integers = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Release:
    """A masked table and its noise card: no original value, no key, no link, no original order."""

    table: Table
    card: NoiseCard

    def __len__(self) -> int:
        return len(self.table)

    def __repr__(self) -> str:
        from .hidden_cards import is_withheld

        closed = is_withheld(self.card)
        columns = "unknown, the card is not in the open" if closed else ", ".join(self.card.masked) or "none"
        return f"<Release of {len(self):,} records x {len(self.table.names)} columns; masked: {columns}>"

    def to_frame(self) -> Any:
        """Return the released records as a dataframe of the kind that came in."""
        return self.table.to_frame()

    def write(self, path: str | Path, *, format: str | None = None) -> str:
        """Write the public bundle (data, card, schema, codebook, manifest) and return its id."""
        from .release_files import write_release

        return write_release(self, Path(path), format)


@dataclass(frozen=True)
class Masking:
    """A masked table with everything that ties it to the truth. It never leaves the steward.

    `masked` holds the masked values in the order of `truth`; `kept` the records that a subsample releases.
    `number` counts the releases of a series, `revisions` has the tags that changed and new cells draw their noise
    from, `past` remembers the cells, laws and sums of earlier releases that are not in this one. `swapping` says what
    `swap` did, `exchange` whose values stand where: `masked` has them as they were exchanged, links follow the record.
    """

    truth: Table = field(repr=False)
    masked: Table = field(repr=False)
    card: NoiseCard = field(repr=False)
    mask: Mask | dict[str, Any] | None = None
    key: Key | None = field(default=None, repr=False)
    number: int = 1
    revisions: Revisions = field(default_factory=dict, repr=False)
    past: Past = field(default_factory=Past, repr=False)
    kept: Integers | None = field(default=None, repr=False)
    notes: tuple[Note, ...] = field(default=(), repr=False)
    given: tuple[Release, Integers] | None = field(default=None, repr=False)
    swapping: Swapping | None = field(default=None, repr=False)
    exchange: Exchange | None = field(default=None, repr=False)

    def __repr__(self) -> str:
        columns = ", ".join(self.card.masked) or "none"
        return f"<Masking of {len(self.truth):,} records; masked: {columns}; stays inside, only .release may leave>"

    @property
    def blocks(self) -> Blocks:
        """The 128-bit ids of the records."""
        return record_blocks(self.truth)

    @property
    def unswapped(self) -> Table:
        """The masked values, in the order of `truth`, as they were before any exchange."""
        from .swap_record import exchange

        if self.exchange is None:
            return self.masked
        return exchange(self.masked, self.exchange.columns, self.exchange.pairs)

    @cached_property
    def order(self) -> Integers:
        """For each released record its number in the truth, counted from 0: the links."""
        from .shuffle import released_order

        return self.given[1] if self.given is not None else released_order(self)

    def donors(self, column: str) -> Integers:
        """For each released record the number, in the truth, of the one whose value it carries in a column."""
        if self.exchange is None or column not in self.exchange.columns:
            return self.order
        return self.exchange.donors(self.order)

    @cached_property
    def release(self) -> Release:
        """The masked table, shuffled under the key, with new ids and rebuilt columns, and its card."""
        from .shuffle import leave

        return self.given[0] if self.given is not None else leave(self)

    @property
    def links(self) -> pa.Table:
        """The ids (or record numbers from 1) of each truth and its released record. For the steward only."""
        import pyarrow as pa

        return pa.table(
            {"truth_id": labels_of(self.truth, self.order), "released_id": labels_of(self.release.table)}
        )

    def to_dict(self) -> dict[str, Any]:
        """Return figures only: counts and columns, no record."""
        figures = {
            "records": len(self.truth),
            "released": len(self.order),
            "masked": list(self.card.masked),
            "recomputed": [total for total, _ in self.card.recomputed],
            "number": self.number,
            "notes": [note.to_dict() for note in self.notes],
        }
        return figures if self.swapping is None else {**figures, "swapping": self.swapping.to_dict()}

    def write(
        self,
        *,
        release: str | Path,
        private: str | Path,
        format: str | None = None,
        card: str = "open",
        sealing: Callable[[bytes], bytes] | None = None,
        public: Mapping[str, Callable[[Path], None]] | None = None,
        inside: Mapping[str, Callable[[Path], None]] | None = None,
    ) -> str:
        """Write both halves: the public bundle, and the key, links and truth to the private folder.

        The card leaves "open", "sealed" (by `sealing`, from its bytes to an age file) or is "kept": the private half
        then has the card that may be handed on. `public` and `inside` are writers of further files by name, reports
        for example, that go into the two halves and their manifests.
        """
        from .card_delivery import CardDelivery
        from .release_files import write_masking

        leaving = CardDelivery(card, sealing, public or {}, inside or {})
        return write_masking(self, Path(release), Path(private), format, leaving)

    @classmethod
    def read(cls, *, release: str | Path, private: str | Path) -> Masking:
        """Open a masking again from its two halves."""
        from .release_files import read_masking

        return read_masking(Path(release), [Path(private)])

    @classmethod
    def from_files(
        cls,
        truth: str | Path | Table,
        masked: str | Path | Table,
        links: str | Path | pa.Table,
        *,
        schema: Schema | None = None,
        card: NoiseCard | None = None,
    ) -> Masking:
        """Make a masking of files masked elsewhere; `links` has the columns truth_id and released_id."""
        from .from_files import from_files

        return from_files(truth, masked, links, schema, card)


def record_blocks(table: Table) -> Blocks:
    """Return the 128-bit ids of the records: from their ids, else from their numbers."""
    ids = table.ids
    return ids_from_numbers(len(table)) if ids is None else ids_from_texts(ids)


def stream_of(masking: Masking, stage: str) -> Stream:
    """Return the keyed stream of all records of a masking."""
    if masking.key is None:
        raise BadPlan("this masking was made elsewhere: it has no key")
    return Stream(masking.key, masking.truth.schema.series, stage, masking.blocks)


def labels_of(table: Table, order: Integers | None = None) -> Any:
    """Return the ids of some records, or their numbers from 1 on where they have none."""
    import pyarrow as pa

    records = np.arange(len(table)) if order is None else order
    if table.ids is None:
        return from_numpy((records + 1).astype(np.int64)).cast(pa.string())
    return take_texts(table.ids, records)


def pair_by_id(wanted: Any, among: Any, what: str) -> Integers:
    """Return where each wanted id stands among others, refusing ids that are not there."""
    import pyarrow.compute as pc

    found = pc.index_in(wanted, value_set=among)
    if found.null_count:
        first = int(np.flatnonzero(np.asarray(found.is_null()))[0])
        raise BadInput(
            f"{what}: {found.null_count:,} ids are not in the file (first at line {first + 1} of the links)"
        )
    return np.asarray(to_numpy(found), dtype=np.int64)

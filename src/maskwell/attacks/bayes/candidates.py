"""Which records the Bayesian intruder compares: blocks, split by what left in clear, and how many units they have.

A pair with p(z | x) = 0 for sure is no candidate: values that no law changes must agree (blocking, as in Fellegi and
Sunter 1969), and so must statuses under laws that keep them. Splitting by both leaves every posterior as it is
and has fewer pairs to weigh. `units` and `absent` count the true records of the unsplit block, on which the weight
of an absent record rests. Called by `posterior`, of one target and of all units.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ...masking import Release
from ...schema import BOTTOM_CODED, OPEN, TOP_CODED
from ...table import Table
from ..candidate_scores import Blocks, members
from ..joint_codes import block_codes
from ..pair_density import is_lowered, laws_on
from ..protocol import IntruderKnowledge, Ints, OrderOf
from .law_kernels import BACKWARD
from .likelihood import swapped_columns

if TYPE_CHECKING:
    from .plan import BayesIntruder

STATUSES = 257  # more than there are statuses
# A prime by which codes of many columns are folded: two that fold alike only stay in one block
FOLD = 2**53 - 111


@dataclass(frozen=True, slots=True)
class CandidateBlocks:
    """The records of a search. Values that left in clear, and statuses, split the blocks further: no possible candidate
    is lost by it.

    `blocks` are the fine ones, `true` those of the steward's true records, numbered alike; `matching` are those of the
    released records before they are split. `units` counts, for each released record, the true records of its matching
    block; `absent`, for each known record, those of its block that were not released.
    """

    blocks: Blocks
    true: Ints
    true_order: Ints
    units: Ints
    absent: Ints
    matching: Ints

    @classmethod
    def of(
        cls,
        known: IntruderKnowledge,
        release: Release,
        columns: Sequence[str],
        clear: Sequence[str],
        order_of: OrderOf,
        laws: Sequence[Any] = (),
    ) -> CandidateBlocks:
        """Number the blocks by `columns`, and the finer ones by what left in clear and by statuses under `laws`."""
        orders = order_of(known.targets, "known"), order_of(release.table, "released")
        ours, theirs, true = _common_block_codes(known, release.table, columns)
        present, units = (
            np.bincount(codes[codes >= 0], minlength=theirs.max() + 1) for codes in (theirs, true)
        )
        within = np.minimum(ours, len(units) - 1)
        absent = np.where(ours < len(units), np.maximum(units - present, 0)[within], 0)
        ours, fine, true = _common_block_codes(known, release.table, (*columns, *clear))
        ours, fine, true = _split((ours, fine, true), (known.targets, release.table, known.population), laws)
        return cls(
            Blocks(ours, fine, orders), true, order_of(known.population), units[theirs], absent, theirs
        )

    def largest_block(self) -> tuple[int, int]:
        """Return how many known and released records the fine block with the most pairs of them has."""
        sides = self.blocks.known, self.blocks.released
        count = int(max(codes.max(initial=0) for codes in sides)) + 1
        known, released = (np.bincount(codes, minlength=count) for codes in sides)
        at = int((known * released).argmax())
        return int(known[at]), int(released[at])

    def true_members(self) -> dict[int, Ints]:
        """Return the true records of each fine block."""
        return members(self.true, self.true_order)


def _common_block_codes(
    known: IntruderKnowledge, released: Table, columns: Sequence[str]
) -> tuple[Ints, Ints, Ints]:
    """Number blocks alike in the intruder's, the released and the true records (-1: no such released record)."""
    ours, theirs = block_codes(known.targets, released, columns)
    true, again = block_codes(known.population, released, columns)
    number = np.full(int(max(true.max(initial=0), again.max(initial=0))) + 1, -1, np.int64)
    number[again] = theirs
    return ours, theirs, number[true]


def _split(
    blocks: tuple[Ints, Ints, Ints], tables: tuple[Table, Table, Table], laws: Sequence[Any]
) -> tuple[Ints, Ints, Ints]:
    """Split blocks of known, released and true records where statuses tell that no law leads from one to another."""
    parts = [
        np.stack([codes, _status_codes(table, laws)]) for codes, table in zip(blocks, tables, strict=True)
    ]
    if not any(part[1].any() for part in parts):
        return blocks
    keys, number = np.unique(np.concatenate(parts[:2], axis=1), axis=1, return_inverse=True)
    ours, theirs = np.split(number.ravel(), [len(blocks[0])])
    among = np.unique(theirs)
    every, place = np.unique(np.concatenate([keys[:, among], parts[2]], axis=1), axis=1, return_inverse=True)
    found = np.full(every.shape[1], -1)
    found[place.ravel()[: len(among)]] = among
    return ours, theirs, found[place.ravel()[len(among) :]]


def _status_codes(table: Table, laws: Sequence[Any]) -> Ints:
    """Number the combinations of statuses under some laws; what a mask codes by itself can have been open."""
    code = np.zeros(len(table), np.int64)
    for law in laws:
        for name, outlet in zip(law.columns, law.outlets, strict=True):
            status = table.status(name).astype(np.int64)
            for own, limit in zip((BOTTOM_CODED, TOP_CODED), outlet.codes, strict=True):
                status[status == own] = own if limit is None else OPEN
            code = (code * STATUSES + status) % FOLD
    return code


def status_laws(plan: BayesIntruder, release: Release, fields: Sequence[str]) -> list[Any]:
    """Return the laws by which statuses split blocks: of noise that leaves closed values as they are, not exchanged."""
    if plan.prior is not None or plan.error is not None or plan.kernel in BACKWARD:
        return []
    loose = swapped_columns(release.card)
    return [law for law in laws_on(release.card, fields) if is_lowered(law) and loose.isdisjoint(law.columns)]


def clear_fields(release: Release, fields: Sequence[str], uncertain: Sequence[str] = ()) -> list[str]:
    """Return the fields that left as they were and that the intruder knows without doubt."""
    loose = {*swapped_columns(release.card), *uncertain}
    return [name for name in fields if release.card.law_of(name) is None and name not in loose]


def pairs_within(known: Table, released: Table, columns: Sequence[str]) -> int:
    """Return how many pairs of a known and a released record share a block."""
    ours, theirs = block_codes(known, released, columns)
    count = int(max(ours.max(initial=0), theirs.max(initial=0))) + 1
    return int(np.bincount(ours, minlength=count) @ np.bincount(theirs, minlength=count))

"""A masking in the blocks of some targets alone: an intruder who looks for a sample need not read the whole file.

By the card, records of other blocks have no part in the posterior of a target: f(z) and the units that were not
released are those of the target's block. So the answer is the same to the last digit, and a few hundred targets among
millions of records take no longer than their blocks do. Own derivation. Chosen by `attack_run` where targets are a
sample.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from ..arrow_buffers import from_numpy
from ..masking.hidden_cards import is_withheld
from ..masking.results import Masking, Release
from .joint_codes import block_codes
from .protocol import NOBODY, Attack, Guess, Ints, Marks

if TYPE_CHECKING:
    import pyarrow as pa

FEW = 0.5  # of the records: above, a part of the file saves nothing


@dataclass(frozen=True, slots=True)
class TargetBlocks:
    """A masking of the true and released records in the blocks of some targets.

    `records` and `rows` are the true and released records of the whole file that are in it, `place` tells where the
    former stand here.
    """

    masking: Masking
    records: Ints
    rows: Ints
    place: Ints

    def in_whole(self, guess: Guess, marks: Marks) -> tuple[Guess, Marks]:
        """Return an answer and its marks with the released records numbered as in the whole file."""
        number = np.append(self.rows, NOBODY)  # nobody, -1, is the last one
        here = np.full(int(self.rows.max(initial=0)) + 2, NOBODY, np.int64)
        here[self.rows] = np.arange(len(self.rows))
        in_whole = replace(
            guess,
            found=number[guess.found],
            second=None if guess.second is None else number[guess.second],
            is_tied=lambda rows, found: guess.is_tied(rows, here[found]),
            in_block=lambda rows, found: guess.in_block(rows, here[found]),
            partners=lambda known: self.rows[guess.partners(known)],
        )
        return in_whole, replace(marks, counterpart=number[marks.counterpart])

    def named(self, table: pa.Table, guess: Guess) -> pa.Table:
        """Return the table of links; released records without ids are named by their numbers in the whole file."""
        import pyarrow as pa

        if self.masking.release.table.ids is not None:
            return table
        for name, records in (("linked_id", guess.found), ("second_id", guess.second)):
            if records is not None:
                numbers = from_numpy((records + 1).astype(np.int64), records < 0).cast(pa.string())
                table = table.set_column(table.column_names.index(name), name, numbers)
        return table


def target_blocks(plan: Attack, masking: Masking, numbers: Ints) -> TargetBlocks | None:
    """Return the part of a masking that is in the blocks of some true records; nothing where that saves nothing."""
    columns = _columns(plan, masking)
    if not columns:
        return None
    true, released = block_codes(masking.truth, masking.release.table, columns)
    wanted = np.zeros(int(max(true.max(initial=0), released.max(initial=0))) + 1, bool)
    wanted[true[numbers]] = True
    records, rows = np.flatnonzero(wanted[true]), np.flatnonzero(wanted[released])
    if len(records) + len(rows) > FEW * (len(true) + len(released)):
        return None
    place = np.full(len(true), NOBODY, np.int64)
    place[records] = np.arange(len(records))
    order = place[masking.order[rows]]
    if (order < 0).any():  # a released record stands in another block than its true one: not by masks of ours
        return None
    part = masking.release.table.take(rows)
    card = replace(masking.release.card, records=len(rows))
    own = replace(masking, truth=masking.truth.take(records), given=(Release(part, card), order), kept=None)
    return TargetBlocks(own, records, rows, place)


def _columns(plan: Attack, masking: Masking) -> tuple[str, ...]:
    """Return the blocks of an intruder whose answer depends on those of his targets alone; of others none."""
    card = masking.release.card
    if plan.targets is None or not plan.answers_by_block:
        return ()
    if is_withheld(card) or card.swapped is not None or len(masking.release.table) == 0:
        return ()
    return tuple(plan.match_columns(masking.release.table.schema))

"""An intruder's answer on a masking: the records he holds, his guesses, and how they are marked by the links.

Chosen by `attack_run`, and by `donors` for every view of a release with exchanged records.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ..arrow_buffers import of_one_length, to_numpy
from ..card import SwapParameters
from ..errors import BadInput, BadPlan
from ..keys import Key, Stream, in_blocks, words
from ..masking.results import Masking, Release, record_blocks
from ..notes import Note
from ..table import Table
from .class_codes import seen_by, sure_columns
from .cluster_sample import ClusterSample
from .linkage.remarks import other_units
from .protocol import NOBODY, Attack, Guess, IntruderKnowledge, Ints, MarkedGuess, Marks, mark
from .target_blocks import TargetBlocks, target_blocks

if TYPE_CHECKING:
    from .bayes.own_error.error_law import OwnError
    from .risk import Risk


class AttackResult(NamedTuple):
    """What an intruder achieves, his answer, its marks, and the numbers of his records in the truth."""

    risk: Risk
    guess: Guess
    marks: Marks
    numbers: Ints


@dataclass(frozen=True)
class Answer:
    """An intruder's answer on a masking as he sees it, before it is marked.

    `known` are his records, `numbers` theirs in the truth (-1: not in it), `chosen` those that are judged (None: all).
    With a `part` of the file `masking` is that part, numbers are of records in it, and `records` counts the whole.
    """

    plan: Attack
    guess: Guess
    known: Table
    numbers: Ints
    chosen: Ints | None
    masking: Masking
    notes: tuple[Note, ...]
    part: TargetBlocks | None = None
    records: int = 0
    released_share: float | None = None

    def found(self, owners: Ints | None = None, swapped: SwapParameters | None = None) -> AttackResult:
        """Mark the answer by who owns each released row: its record, or the record that it has its values from.

        `swapped` names the columns that the row does not have from its owner.
        """
        from .risk_figures import score

        guess, marks, masking = self._marked(owners)
        if swapped is not None:
            card = replace(masking.release.card, swapped=swapped)
            masking = replace(masking, given=(Release(masking.release.table, card), masking.order))
        count = len(self.known) if self.chosen is None else len(self.chosen)
        tables, card = (self.known, masking.release.table), masking.release.card
        risk = score(self.plan, guess, marks, tables, card, count)
        chosen = self.plan.targets
        if isinstance(chosen, ClusterSample):
            right = np.where(guess.claimed, marks.share, 0.0)
            risk = replace(risk, effective=chosen.effective(self.known, guess.searcher, right, self.records))
        notes = (*self.notes, *risk.notes)
        risk = replace(risk, records=self.records, released_share=self.released_share, notes=notes)
        risk = self.plan.assessed(risk, MarkedGuess(guess, marks, self.known, self.numbers, masking))
        return self._in_whole(AttackResult(risk, guess, marks, self.numbers))

    def _in_whole(self, found: AttackResult) -> AttackResult:
        """Return what was found in a part of the file with its records numbered as in the whole."""
        if self.part is None:
            return found
        guess, marks = self.part.in_whole(found.guess, found.marks)
        risk = replace(found.risk, table=self.part.named(found.risk.table, guess))
        return AttackResult(risk, guess, marks, self.part.records[found.numbers])

    def correct(self, owners: Ints | None = None) -> float:
        """Return how many of the links that he stands by are right, ties shared."""
        guess, marks, _ = self._marked(owners)
        return float(marks.share[guess.claimed].sum())

    def _marked(self, owners: Ints | None) -> tuple[Guess, Marks, Masking]:
        masking, guess = self.masking, self.guess
        if owners is not None:
            masking = replace(masking, given=(masking.release, owners))
        if self.chosen is not None:
            searching = self.numbers if guess.to_masked else masking.order
            guess = guess.only(np.isin(searching[guess.searcher], self.chosen))
        return guess, mark(guess, self.numbers, masking.order), masking


def answer_of(
    plan: Attack, whole: Masking, targets: Table | None, shared: dict[Any, Any], among: Ints | None = None
) -> Answer:
    """Let an intruder answer, without any link; his targets are chosen `among` some records (None: as he says)."""
    seen = seen_by(plan, whole, shared)
    masking = seen.masking
    plan, said = _in_clear_blocks(plan, masking)
    table, numbers, chosen = intruder_records(plan, whole, targets, masking.truth, among)
    as_true = targets is None and plan.error is None
    if targets is None and plan.error is not None:
        table = _with_error(table, plan.error, whole)
    table = masking.truth if table is whole.truth else seen.coded(table)
    sought = None if chosen is None else np.flatnonzero(np.isin(numbers, chosen))
    judged = numbers if chosen is None else chosen
    here = int(np.isin(judged[judged >= 0], masking.order).sum())
    said += _on_presence(judged, here)
    said += other_units(targets, whole.truth) if targets is not None else []
    part = target_blocks(plan, masking, numbers) if as_true else None
    if part is not None:
        masking, shared = part.masking, {}
        numbers, chosen = part.place[numbers], None if chosen is None else part.place[chosen]
    known = IntruderKnowledge(table, masking.truth, numbers, sought, as_true, shared)
    guess = plan.guess(known, masking.release, order_of(masking))
    share = None if here == len(judged) else here / len(judged)
    return Answer(plan, guess, table, numbers, chosen, masking, tuple(said), part, len(whole.truth), share)


def _with_error(table: Table, error: OwnError, masking: Masking) -> Table:
    """Return true records as an intruder holds them whose own values are off, by a keyed draw."""
    from .bayes.own_error.error_law import draw_with_errors

    key = masking.key or Key.from_seed(0)
    return draw_with_errors(
        table, error, Stream(key, masking.truth.schema.series, "attack", record_blocks(table))
    )


def _in_clear_blocks(plan: Attack, masking: Masking) -> tuple[Attack, list[Note]]:
    """Leave masked columns out of the blocks that a plan takes from the schema: nobody relies on those.

    Who codes by himself relies on what leaves as classes.
    """
    if plan.match_blocks is not None:
        return plan, []
    schema, masked = masking.release.table.schema, set(masking.card.masked)
    blocks = [name for name in plan.match_columns(schema) if not schema[name].drop]
    if plan.codes_itself:
        masked -= set(sure_columns(masking.card, masking.truth.schema, masked))
    left = [name for name in blocks if name in masked]
    if not left:
        return plan, []
    kept = tuple(name for name in blocks if name not in masked)
    return replace(plan, match_blocks=kept), [Note("attacks.masked_blocks", {"columns": tuple(left)})]


def _on_presence(numbers: Ints, here: int) -> list[Note]:
    """Say how many of the intruder's records could be found at all, where not all can."""
    if here == len(numbers):
        return []
    counts = {"released": here, "targets": len(numbers), "in_truth": int((numbers >= 0).sum())}
    return [Note("attacks.targets_not_released", counts)]


def intruder_records(
    plan: Attack,
    masking: Masking,
    targets: Table | None,
    seen: Table | None = None,
    among: Ints | None = None,
) -> tuple[Table, Ints, Ints | None]:
    """Return the intruder's records, their numbers in the truth (-1: not in it), and those that are judged.

    Where records compete (one-to-one) or are searched among (to_original) he holds all, or all of the blocks in which
    the chosen targets compete, and the answer is judged on these; else he holds these alone. Who has helpers holds
    these too: who share their blocks in the truth as it is `seen`.
    """
    if targets is not None:
        return targets, _given_numbers(plan, targets, masking), None
    records, chosen = _chosen_targets(plan, masking, among), None
    if plan.helpers:
        records, chosen = plan.company(masking.truth if seen is None else seen, records), records
        everybody = len(records) == len(masking.truth)
        chosen = None if len(chosen) == len(records) else chosen
        return (masking.truth if everybody else masking.truth.take(records)), records, chosen
    competing = not plan.to_masked or plan.assignment != "best"
    if plan.targets is not None and competing:
        everyone = np.asarray(plan.eligible_records(masking.truth) if among is None else among)
        chosen = records
        truth = masking.truth if seen is None else seen
        records = everyone[np.isin(everyone, plan.company(truth, chosen))]
    everybody = len(records) == len(masking.truth)
    return (masking.truth if everybody else masking.truth.take(records)), records, chosen


def _given_numbers(plan: Attack, targets: Table, masking: Masking) -> Ints:
    if plan.largest_target_block is not None:
        raise BadPlan("give either a target file or largest_target_block, not both")
    if plan.targets is not None:
        raise BadPlan("give either a target file or targets in the plan, not both")
    return _numbers(targets, masking.truth)


def _chosen_targets(plan: Attack, masking: Masking, among: Ints | None = None) -> Ints:
    if among is not None and plan.targets is None:
        return among
    if plan.targets is None:
        return np.asarray(plan.target_records(masking.truth))
    keyed = order_of(masking)
    return np.asarray(plan.target_records(masking.truth, lambda truth: keyed(truth, "targets"), among))


def _numbers(targets: Table, truth: Table) -> Ints:
    import pyarrow.compute as pc

    if not len(targets):
        raise BadInput("the target file has no records")
    if targets.ids is None or truth.ids is None:
        raise BadInput(
            "the target file and the truth both need an id column: without one nobody can say which links are right"
        )
    if len(pc.unique(targets.ids)) < len(targets):
        raise BadInput("the target file names an id twice")
    found = pc.index_in(targets.ids, value_set=truth.ids)
    numbers: Ints = np.nan_to_num(to_numpy(found), nan=NOBODY).astype(np.int64)
    if not (numbers >= 0).any():
        raise BadInput(
            "no id of the target file is in the truth, so no link could ever be right: are the ids written alike?"
        )
    return numbers


def order_of(masking: Masking) -> Callable[..., Ints]:
    """Return a function that puts records in an order which the masking's key decides: ties go by it.

    A masking made elsewhere has no key; its ties go by a fixed one, which knows as little of the order of its files.
    """
    key, series = masking.key or Key.from_seed(0), masking.truth.schema.series

    def order(table: Table, side: str = "released") -> Ints:
        subkey = key.subkey(series=series, purpose="ties", stage="ids", column=side)
        return Stream(key, series, "attack", _blocks(table, subkey)).order(side, "ties")

    return order


def _blocks(table: Table, subkey: bytes) -> Any:
    """Return 128 bits for each record: ids of one length are packed by AES, 16 letters a step (CBC-MAC)."""
    letters = None if table.ids is None else of_one_length(table.ids)
    if letters is None:
        return record_blocks(table)
    blocks: Any = 0
    for start in range(0, letters.shape[1], 16):
        part = in_blocks(np.ascontiguousarray(letters[:, start : start + 16])).view(np.uint64)
        blocks = words(subkey, (part ^ blocks).view(np.uint8))
    return blocks.view(np.uint8)

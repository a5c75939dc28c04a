"""Blind guessing: what is found by taking any record that is alike in all that leaves in clear.

Alike are records of one block in which the same values are missing or coded, where noise does not change that; for an
intruder who goes by fingerprints, records with the same fingerprint. With n_i records alike target i in what is
searched,

    guessing = (1 / targets) sum over the targets whose own record is among these of 1 / n_i.

The expected rate of a draw at random (own derivation). No noise brings an intruder who stands by all links below it.
Chosen for the figure beside every rate, and before any noise is drawn for what no noise brings down
(`pipeline.high_floor`): both number records alike here.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from .joint_codes import block_codes, joint_codes
from .unmasked_values import Trait, comparable, fates, trait_of

if TYPE_CHECKING:
    from ..card import NoiseCard
    from ..table import Table
    from .protocol import Attack, Guess, Ints, Marks


def guessing_rate(
    plan: Attack, guess: Guess, marks: Marks, tables: tuple[Table, Table], card: NoiseCard, targets: int
) -> float:
    """Return the share of the targets that guessing finds; `tables` are the intruder's and the released records."""
    here = marks.findable
    by_blocks = _chances(guess.candidates[here]) / targets
    numbers = _numbers(plan, guess, tables, card)
    if numbers is None:
        return by_blocks
    near, far = numbers if guess.to_masked else numbers[::-1]
    own = near[guess.searcher[here]]
    is_alike = far[marks.counterpart[here]] == own
    sizes = np.bincount(far, minlength=int(near.max(initial=0)) + 1)[own]
    by_all = _chances(sizes[is_alike]) / targets
    return max(by_blocks, by_all)  # where records exchanged values, his gaps may stand in another's row


def _chances(sizes: Ints) -> float:
    """Return the sum of 1 / n over groups of n records: by their counts, so that no bit depends on the order."""
    different, counts = np.unique(sizes, return_counts=True)
    return float((counts / different).sum())


def _numbers(
    plan: Attack, guess: Guess, tables: tuple[Table, Table], card: NoiseCard
) -> tuple[Ints, Ints] | None:
    """Number what an intruder sees in clear, alike in both tables; nothing where that is his blocks alone."""
    prints = guess.figures.get("prints")
    if prints is not None:  # all of the fingerprint, whatever the blocks by which it is told
        return prints.numbers[0], prints.numbers[1]
    columns = plan.match_columns(tables[1].schema)
    known = [name for name in columns if all(name in table.schema for table in tables)]
    return alike_numbers(*tables, known, card)


def alike_numbers(
    known: Table, released: Table, blocks: Sequence[str], card: NoiseCard
) -> tuple[Ints, Ints] | None:
    """Number the combinations of blocks and of what is missing or coded for sure, alike in both tables.

    Nothing where no such gap or code tells records apart.
    """
    gaps = [trait for trait in _gap_traits(known, released, card, blocks) if trait.count > 1]
    if not gaps:
        return None
    codes = block_codes(known, released, blocks) if blocks else None
    cut, total = len(known), len(known) + len(released)
    parts = [] if codes is None else [np.concatenate(codes)]
    parts += [np.concatenate([trait.known, trait.released]) for trait in gaps]
    numbers = joint_codes(((part, int(part.max(initial=0)) + 1) for part in parts), total)
    return numbers[:cut], numbers[cut:]


def _gap_traits(known: Table, released: Table, card: NoiseCard, blocks: Sequence[str]) -> list[Trait]:
    """Return what is missing or coded, for sure, in columns whose values do not leave as they are."""
    traits = []
    for name, fate in fates(released.schema, card).items():
        if name in blocks or fate.values or not released.schema[name].may_be_known:
            continue
        seen = comparable(name, fate, known.schema, card)
        if seen is not None and (name in released.closed or name in known.closed):
            trait = trait_of(name, seen, known, released)
            shown = (trait.known, trait.released) if trait.pattern is None else trait.pattern
            count = 1 + max(int(side.max(initial=0)) for side in shown)
            traits.append(Trait(name, trait.what, *shown, count))
    return traits

"""What an intruder may know for sure: the columns that leave as they were collected.

An intruder who knows a record's values in the columns C that leave unchanged searches among the released records with
the same values there, and weighs the noised ones by p(z | x) inside. A rate that was found in larger blocks understates
this one. So the intruders of a release and of the commands match within all of C, weights and columns without any role
among them, but for those that the steward calls known to nobody; `attack` in Python says which of C its plan did not
use.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from ..laws.transform import on_unit
from ..masking.hidden_cards import is_withheld
from .class_codes import sure_columns
from .predicted_columns import predicted_columns

if TYPE_CHECKING:
    from ..card import NoiseCard
    from ..masking import Masking
    from ..schema import Column
    from ..table import Table
    from .protocol import Attack
    from .risk import Risk


def clear_columns(table: Table, card: NoiseCard) -> tuple[str, ...]:
    """Return the columns that leave by a card as they were collected, or coded by a rule without chance, and vary."""
    changed = {*card.masked, *(total for total, _ in card.recomputed)}
    changed -= set(sure_columns(card, table.schema, changed))
    changed |= set() if card.swapped is None else set(card.swapped.columns)
    return tuple(
        c.name for c in table.schema.columns if _leaves(c) and c.name not in changed and _varies(table, c)
    )


def _leaves(column: Column) -> bool:
    return not column.drop and not column.roles & {"id", "group"}


def _varies(table: Table, column: Column) -> bool:
    if len(np.unique(table.status(column.name))) > 1:
        return True
    values = table.array(column.name)
    return len(values) > 0 and len(values.unique()) > 1


def known_columns(table: Table, card: NoiseCard, not_known: Mapping[str, str]) -> tuple[str, ...]:
    """Return the columns in clear that an intruder may know: all but sensitive ones and those that a plan excepts.

    These too where what he knows tells them (see `predicted_columns`).
    """
    clear, told = clear_columns(table, card), told_columns(table, card, not_known)
    return tuple(name for name in clear if name in told or _may_be_known(table, name, not_known))


def _may_be_known(table: Table, name: str, not_known: Mapping[str, str]) -> bool:
    return table.schema[name].may_be_known and name not in not_known


def told_columns(table: Table, card: NoiseCard, not_known: Mapping[str, str]) -> dict[str, str]:
    """Return the columns in clear that are excepted in vain, each with what the intruder knows that tells it."""
    hidden = [name for name in clear_columns(table, card) if not _may_be_known(table, name, not_known)]
    if not hidden:
        return {}
    leaving = [c.name for c in table.schema.columns if _leaves(c)]
    return predicted_columns(table, hidden, [n for n in leaving if _may_be_known(table, n, not_known)])


def is_rounded(table: Table, name: str) -> bool:
    """Whether a number leaves on a coarser unit than it was collected on: it is then not the same in both files."""
    column = table.schema[name]
    if not column.is_number or column.unit is None or column.step is None or "weight" in column.roles:
        return False
    values = table.floats(name)
    return not np.array_equal(on_unit(values, column.step), values, equal_nan=True)


def with_known_blocks(attack: Attack, table: Table, known: Iterable[str]) -> Attack:
    """Return an attack that matches within all known columns, where its blocks are not named.

    What he compares is no block of his, and who looks at the fingerprint alone knows all of them anyway.
    """
    if attack.match_blocks is not None or attack.on_tables:
        return attack
    compared = set(attack.fields or ())
    named = set(table.schema.with_role("block"))  # a block that is compared too is refused, as ever
    return replace(attack, match_blocks=tuple(one for one in known if one in named or one not in compared))


def known_blocks(table: Table, card: NoiseCard, not_known: Mapping[str, str]) -> tuple[str, ...]:
    """Return the known columns that are the same in both files: those on which an intruder can rely."""
    return tuple(name for name in known_columns(table, card, not_known) if not is_rounded(table, name))


def unrelied_columns(risk: Risk, masking: Masking) -> tuple[str, ...]:
    """Return what leaves in clear, may be known outside, and was neither a block of an attack nor compared by it."""
    attack, card = risk.attack, masking.release.card
    if attack.on_tables or is_withheld(card):
        return ()
    schema, truth = masking.release.table.schema, masking.truth
    used = {*risk.fields, *attack.match_columns(schema)}
    changed = {*card.masked, *(total for total, _ in card.recomputed)}
    exchanged = () if card.swapped is None else card.swapped.columns
    return tuple(
        column.name
        for column in truth.schema.columns
        if column.name in schema
        and column.name not in {*used, *changed, *exchanged}
        and _leaves(column)
        and column.may_be_known
        and _varies(truth, column)
    )

"""What an intruder may know for sure: the columns that leave as they were collected.

Who knows a record's values in the columns C that leave unchanged searches among the released records with the same
values there, and weighs the noised ones by p(z | x) inside. A rate that was found in larger blocks understates his. So
every intruder matches within all of C, weights and columns without any role among them, unless the steward says that
nobody outside knows a column: by the role `sensitive` in the schema, or under `not_known` in [targets] with a reason,
which goes on record. A plan whose own blocks are fewer, without such reasons, is not judged.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ..attacks import Fingerprint, Risk
from ..attacks.coding import sure_columns
from ..errors import BadPlan, raise_all
from ..laws.outlet import on_unit
from .predicted_columns import predicted_columns

if TYPE_CHECKING:
    from ..card import NoiseCard
    from ..masking import Masking
    from ..plan import ReleasePlan
    from ..schema import Column
    from ..table import Table


def clear_columns(table: Table, card: NoiseCard) -> tuple[str, ...]:
    """Return the columns that leave by a card as they were collected, or coded by a rule without chance, and vary."""
    changed = {*card.masked, *(total for total, _ in card.recomputed)}
    changed -= set(sure_columns(card, table.schema, changed))
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


def on_known_columns(
    intruders: Mapping[str, Any], plan: ReleasePlan, table: Table, card: NoiseCard
) -> dict[str, Any]:
    """Let every intruder whose blocks are not named match within all that he may know in clear.

    What he compares is no block of his. Who looks at the fingerprint alone knows all of them anyway.
    """
    not_known = plan.targets.not_known
    raise_all((f"[targets] not_known: {said}" for said in table.schema.missing_columns(not_known)), BadPlan)
    known = [name for name in known_columns(table, card, not_known) if not _is_rounded(table, name)]
    found = dict[str, Any]()
    for name, attack in intruders.items():
        is_open = getattr(attack, "match_blocks", ()) is None and not isinstance(attack, Fingerprint)
        compared = set(getattr(attack, "fields", None) or ())
        named = set(table.schema.with_role("block"))  # a block that is compared too is refused, as ever
        blocks = tuple(one for one in known if one in named or one not in compared)
        found[name] = replace(attack, match_blocks=blocks) if is_open else attack
    return found


def _is_rounded(table: Table, name: str) -> bool:
    """Whether a number leaves on a coarser unit than it was collected on: it is then not the same in both files."""
    column = table.schema[name]
    if not column.is_number or column.unit is None or column.step is None or "weight" in column.roles:
        return False
    values = table.floats(name)
    return not np.array_equal(on_unit(values, column.step), values, equal_nan=True)


def unrelied_reasons(plan: ReleasePlan, masking: Masking, held: Mapping[str, Risk]) -> list[str]:
    """Name the columns in clear on which an intruder held to the tolerance did not rely, though he may know them."""
    known = known_columns(masking.truth, masking.card, plan.targets.not_known)
    schema, missing = masking.release.table.schema, dict[str, list[str]]()
    for name, risk in held.items():
        if isinstance(risk.attack, Fingerprint) or not hasattr(risk.attack, "match_columns"):
            continue
        used = {*risk.fields, *risk.attack.match_columns(schema)}
        left = ", ".join(one for one in known if one not in used)
        if left:
            missing.setdefault(left, []).append(name)
    return [_said(columns, names) for columns, names in missing.items()]


def _said(columns: str, names: list[str]) -> str:
    several = "," in columns
    leaves, it, them = ("leave", "they are", "them") if several else ("leaves", "it is", "it")
    return (
        f"{columns} {leaves} in clear, and {', '.join(names)} did not rely on {them}: take match_blocks out of "
        f"[targets] (or name {them} there), drop {them}, or say under not_known there why {it} known to nobody outside"
    )


def sensitive_words(table: Table, card: NoiseCard, not_known: Mapping[str, str]) -> list[str]:
    """Say which columns in clear are taken as known to nobody because the schema calls them sensitive."""
    told = told_columns(table, card, not_known)
    named = [n for n in clear_columns(table, card) if not table.schema[n].may_be_known and n not in told]
    said = [f"taken as known to no intruder, because sensitive: {', '.join(named)}"] if named else []
    return [*said, *(f"{name} is taken as known, because {by} tells it" for name, by in told.items())]

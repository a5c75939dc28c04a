"""The columns in clear on which the intruders of a plan rely.

They match within all that may be known (see `attacks.known_columns`), unless the steward says that nobody outside knows
a column: by the role `sensitive` in the schema, or under `not_known` in [targets] with a reason, which goes on record.
A plan whose own blocks are fewer, without such reasons, is not judged.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any, Protocol

from ..attacks import Fingerprint, Risk
from ..attacks.known_columns import (
    clear_columns,
    known_blocks,
    known_columns,
    told_columns,
    with_known_blocks,
)
from ..attacks.protocol import Attack
from ..errors import BadPlan, raise_all
from ..notes import Note

if TYPE_CHECKING:
    from ..card import NoiseCard
    from ..masking import Masking
    from ..plan import ReleasePlan, TargetsPlan
    from ..table import Table


class IntrudersPlan(Protocol):
    """A plan that says who attacks, and whom they are after."""

    @property
    def intruders(self) -> tuple[tuple[str, Attack], ...]:
        """Who attacks, by name; nobody where the default ones do."""
        ...

    @property
    def targets(self) -> TargetsPlan:
        """Whom they are after."""
        ...


def on_known_columns(
    intruders: Mapping[str, Attack],
    plan: IntrudersPlan,
    table: Table,
    card: NoiseCard,
    own: Collection[str] | None = None,
) -> dict[str, Any]:
    """Let every intruder whose blocks are not named match within all that he may know in clear.

    Of what he may know, who holds a file has its `own` columns.
    """
    not_known = plan.targets.not_known
    raise_all((f"[targets] not_known: {said}" for said in table.schema.missing_columns(not_known)), BadPlan)
    known = [name for name in known_blocks(table, card, not_known) if own is None or name in own]
    return {name: with_known_blocks(attack, table, known) for name, attack in intruders.items()}


def unrelied_reasons(plan: ReleasePlan, masking: Masking, held: Mapping[str, Risk]) -> list[str]:
    """Name the columns in clear on which an intruder held to the tolerance did not rely, though he may know them."""
    known = known_columns(masking.truth, masking.card, plan.targets.not_known)
    schema, missing = masking.release.table.schema, dict[tuple[str, ...], list[str]]()
    for name, risk in held.items():
        if isinstance(risk.attack, Fingerprint):
            continue
        used = {*risk.fields, *risk.attack.match_columns(schema)}
        left = tuple(one for one in known if one not in used)
        if left:
            missing.setdefault(left, []).append(name)
    return [_clear_columns_reason(columns, names) for columns, names in missing.items()]


def _clear_columns_reason(columns: tuple[str, ...], names: list[str]) -> str:
    leaves, it, them = ("leave", "they are", "them") if len(columns) > 1 else ("leaves", "it is", "it")
    return (
        f"{', '.join(columns)} {leaves} in clear, and {', '.join(names)} did not rely on {them}: take match_blocks "
        f"out of [targets] (or name {them} there), drop {them}, or say under not_known there why {it} known to "
        "nobody outside"
    )


def sensitive_words(table: Table, card: NoiseCard, not_known: Mapping[str, str]) -> list[Note]:
    """Say which columns in clear are taken as known to nobody because the schema calls them sensitive."""
    told = told_columns(table, card, not_known)
    named = tuple(n for n in clear_columns(table, card) if not table.schema[n].may_be_known and n not in told)
    said = [Note("pipeline.sensitive", {"columns": named})] if named else []
    return said + [Note("pipeline.told_column", {"column": name, "by": by}) for name, by in told.items()]

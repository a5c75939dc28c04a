"""Which columns a swap moves, and within which blocks."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from ..errors import BadPlan, raise_all
from ..masking import Masking
from ..masking.totals import amounts, exact_identities


@dataclass(frozen=True, slots=True)
class Reach:
    """The `fields` that the intruder compares, the `columns` that move with them, and the blocks he searches in."""

    fields: tuple[str, ...]
    columns: tuple[str, ...]
    blocks: tuple[str, ...]


def reach_of(masking: Masking, attack: Any, fields: tuple[str, ...]) -> Reach:
    """Widen the fields of an attack to columns that must move together, and name the blocks it searches in.

    An attack names its blocks by `match_columns(schema)`; one that does not searches the whole file.
    """
    schema = masking.release.table.schema
    if not fields:
        raise BadPlan(f"{type(attack).__name__} names no fields that it compares, so nothing can be swapped")
    raise_all(schema.missing_columns(fields), BadPlan)
    bound = [name for name in fields if schema[name].roles & {"id", "group"}]
    raise_all((f"column {name!r} says whose record it is and cannot be swapped" for name in bound), BadPlan)
    moving = _widened(set(fields), _together(masking))
    columns = tuple(name for name in masking.masked.schema.names if name in moving)
    blocks = tuple(attack.match_columns(schema)) if hasattr(attack, "match_columns") else ()
    return Reach(tuple(fields), columns, blocks)


def _together(masking: Masking) -> list[set[str]]:
    """Return the groups of columns that no swap may part: one law, or one sum."""
    card, table = masking.card, masking.release.table
    groups = [set(law.columns) for law in card.laws]
    groups += [{total, *dict(parts)} for total, parts in card.recomputed]
    names = amounts(table)
    if len(names) >= 3:
        found = exact_identities(table, names)
        groups += [{one.total, *(part for part, _ in one.parts)} for one in found]
    return groups


def _widened(names: set[str], groups: Iterable[set[str]]) -> set[str]:
    """Add whole groups until none is parted."""
    waiting = list(groups)
    while touched := [group for group in waiting if group & names]:
        names = names.union(*touched)
        waiting = [group for group in waiting if not group & names]
    return names

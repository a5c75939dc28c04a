"""Which columns a swap moves, within which blocks, and what it would part them from.

The closure of the columns asked for under "one law that is no product", "one sum" and "computed from"
(`functional_dependence`): left behind, such a column would show who was exchanged. Own derivation. Asked by
`directed_swaps` and, before any noise is drawn, by the release job.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..attacks.protocol import Attack
from ..card import NoiseCard, block_numbers
from ..errors import BadPlan, nearest, raise_all
from ..laws import Additive
from ..laws.unknowns import is_independent
from ..masking import Masking
from ..masking.swap_record import rest_columns
from ..masking.totals import amounts, exact_identities
from ..table import Table
from .functional_dependence import Dependence, dependent_columns

FEWEST_RECORDS = 5  # of a class: a class of one or two records lies at an amount's end by mere chance


@dataclass(frozen=True, slots=True)
class Reach:
    """The `fields` that the intruder compares, the `columns` that move, the blocks he searches in, and the `rest`.

    The rest is what stays in the row: all that leaves and is neither block, id, moved nor the same inside blocks. Of
    `undecided` columns in it nobody can tell whether they are computed, with many jumps, from those of `unrepeated`.
    """

    fields: tuple[str, ...]
    columns: tuple[str, ...]
    blocks: tuple[str, ...]
    rest: tuple[str, ...]
    undecided: tuple[str, ...] = ()
    unrepeated: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _About:
    """The blocks of a swap, and which columns leave."""

    blocks: tuple[str, ...]
    leaving: frozenset[str]


def reach_of(
    masking: Masking, attack: Attack, fields: tuple[str, ...], columns: Sequence[str] | str | None = None
) -> Reach:
    """Widen the columns to exchange (the fields of an attack) to those that must move together; name blocks and rest.

    An attack without blocks searches the whole file. A swap that would part the columns from nothing only renames rows,
    and is refused.
    """
    table = masking.release.table
    schema = table.schema
    if not fields:
        raise BadPlan(f"{type(attack).__name__} names no fields that it compares, so nothing can be swapped")
    asked = _columns_to_swap(fields, columns)
    raise_all(schema.missing_columns(asked), BadPlan)
    bound = [name for name in asked if schema[name].roles & {"id", "group"}]
    raise_all((f"column {name!r} says whose record it is and cannot be swapped" for name in bound), BadPlan)
    blocks = attack.match_columns(schema)
    groups = _together(masking)
    about = _About(blocks, frozenset(table.names))
    moving, found = _with_computed(_group_closure(set(asked), groups), groups, masking.truth, about)
    moved = tuple(name for name in masking.masked.schema.names if name in moving)
    rest = rest_columns(table, moved, blocks)
    if not rest:
        raise BadPlan(_renames(moved, blocks, groups))
    undecided = tuple(name for name in found.undecided if name in rest)
    return Reach(tuple(fields), moved, blocks, rest, undecided, found.unrepeated if undecided else ())


def check_rest(
    table: Table, card: NoiseCard, attacks: Iterable[Attack], columns: Sequence[str] | None
) -> None:
    """Refuse, before any noise is drawn, a swap that against none of some intruders would part anything.

    A column that is the same inside all blocks is seen in the release.
    """
    leaving = {c.name for c in table.schema.columns if not c.drop and "id" not in c.roles}
    groups = [set(law.columns) for law in card.laws if not is_product(law)]
    groups += [{total, *dict(parts)} for total, parts in card.recomputed]
    refusals = []
    for attack in attacks:
        numbers = [
            c.name for c in table.schema.columns if "key" in c.roles and c.is_number and c.name in leaving
        ]
        fields = attack.fields or tuple(numbers)
        blocks = attack.match_columns(table.schema)
        moved = _group_closure(set(columns or fields), groups)
        if fields and leaving - moved - set(blocks):
            moved, _ = _with_computed(moved, groups, table, _About(tuple(blocks), frozenset(leaving)))
        if not fields or leaving - moved - set(blocks):
            return
        refusals.append(_renames(tuple(name for name in table.names if name in moved), blocks, groups))
    raise_all([f"[swap]: {said}" for said in refusals[:1]], BadPlan)


def _columns_to_swap(fields: tuple[str, ...], columns: Sequence[str] | str | None) -> tuple[str, ...]:
    """Return the compared columns that are to be exchanged."""
    if columns is None:
        return fields
    names = (columns,) if isinstance(columns, str) else tuple(columns)
    strange = [
        f"column {name!r} is not compared by the intruder{nearest(str(name), fields)}: exchange some of "
        f"{', '.join(fields)}"
        for name in names
        if name not in fields
    ]
    raise_all(strange if names else ["name at least one column to exchange"], BadPlan)
    return names


def _renames(moved: tuple[str, ...], blocks: tuple[str, ...], groups: list[set[str]]) -> str:
    """Say that a swap would only rename rows, and what to do instead."""
    within = f" inside {', '.join(blocks)}" if blocks else ""
    parts = {frozenset(_group_closure({name}, groups)) for name in moved}
    said = (
        f"nothing else leaves in a row than what would be exchanged ({', '.join(moved)}{within}) and what the whole "
        "block shares, so that a swap only renames rows: "
    )
    if len(parts) > 1:
        return f"{said}exchange some of the columns and leave the others in the row (columns=...), or give more noise"
    return f"{said}give more noise, or mask these columns separately and exchange some of them"


def _together(masking: Masking) -> list[set[str]]:
    """Return the groups of columns that no swap may part: one law that is not a product, or one sum."""
    card, table = masking.card, masking.release.table
    groups = [set(law.columns) for law in card.laws if not is_product(law)]
    groups += [{total, *dict(parts)} for total, parts in card.recomputed]
    names = amounts(table)
    if len(names) >= 3:
        found = exact_identities(table, names)
        groups += [{one.total, *(part for part, _ in one.parts)} for one in found]
    return groups


def is_product(law: Any) -> bool:
    """Whether the noise of a law's columns is independent from column to column, so that some of them may move."""
    return isinstance(law, Additive) and is_independent(law.noise)


def _group_closure(names: set[str], groups: Iterable[set[str]]) -> set[str]:
    """Add whole groups until none is parted."""
    waiting = list(groups)
    while touched := [group for group in waiting if group & names]:
        names = names.union(*touched)
        waiting = [group for group in waiting if not group & names]
    return names


def _with_computed(
    names: set[str], groups: list[set[str]], table: Table, about: _About
) -> tuple[set[str], Dependence]:
    """Add the columns that are computed from some that move (classes, functions), and what must move with these.

    Left behind, they would show who was exchanged, and find his record by what the intruder knows.
    """
    while True:
        found = dependent_columns(table, names, about.blocks, about.leaving)
        classes = {
            other
            for other in found.undecided
            if any(_are_classes(table, other, name) for name in names if _is_amount(table, name))
        }
        more = _group_closure(names | {*found.computed, *classes}, groups)
        if more == names:
            return names, found
        names = more


def _is_amount(table: Table, name: str) -> bool:
    return name in table.schema and table.schema[name].is_number


def _are_classes(truth: Table, other: str, amount: str) -> bool:
    """Whether each value of a column is an interval of an amount: sorted by it, every value comes in one run."""
    values = truth.floats(amount)
    known = ~np.isnan(values)
    codes = block_numbers(truth, [other])[known]
    sizes = np.unique(codes, return_counts=True)[1]
    count = len(sizes)
    if count < 2 or sizes.min() < FEWEST_RECORDS:
        return False
    order = np.lexsort((codes, values[known]))
    is_single = len(np.unique(np.column_stack([values[known], codes]), axis=0)) == len(
        np.unique(values[known])
    )
    return bool(is_single and 1 + int(np.count_nonzero(np.diff(codes[order]))) == count)

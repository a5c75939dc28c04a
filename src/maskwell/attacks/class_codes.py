"""What leaves as classes is no secret to whoever knows the value: an intruder codes his records as the release does.

Groups, classes and end codes draw nothing: p(z | x) is 0 or 1. A block column that leaves so stays one on which an
intruder relies without doubt, once his own records are coded in the same way. `seen_by` gives the masking as he then
looks at it: the truth coded, the card without these laws, all else as it was.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..card import NoiseCard
from ..laws import Additive, Classes, Transition
from ..laws.chain import combined_of, only_rounds
from ..masking.hidden_cards import is_withheld
from ..masking.results import Masking, Release
from ..schema import OPEN, Column, Schema
from ..table import Floats, Statuses, Table
from .protocol import Attack
from .unchanged_values import draws_nothing
from .unmasked_values import deterministic_column


@dataclass(frozen=True, slots=True)
class CodedRecords:
    """A masking as an intruder looks at it; `laws` say how he codes records, which `true` describes as they were."""

    masking: Masking
    laws: tuple[Any, ...] = ()
    true: Schema | None = None

    def coded(self, table: Table) -> Table:
        """Return records coded as the release is."""
        return table if self.true is None else recode_table(table, self.laws, self.true)


def seen_by(plan: Attack, masking: Masking, shared: dict[Any, Any] | None = None) -> CodedRecords:
    """Return a masking with the plan's block columns that leave as classes coded in the truth already.

    Fields that a plan names are compared by their law, not coded. Plans that code by themselves (`codes_itself`) see
    the masking as it is, and so does who needs a law (`needs_law`) where no other is left. `shared` keeps what was
    coded for other intruders of one attack.
    """
    columns = _coded_blocks(plan, masking)
    if not columns:
        return CodedRecords(masking)
    kept = {} if shared is None else shared
    if ("coded", columns) not in kept:
        kept["coded", columns] = _recode_masking(masking, columns)
    seen: CodedRecords = kept["coded", columns]
    return CodedRecords(masking) if plan.needs_law and not seen.masking.card.laws else seen


def _coded_blocks(plan: Attack, masking: Masking) -> tuple[str, ...]:
    """Return the blocks of a plan that leave as classes, with those of one law together."""
    if plan.codes_itself:
        return ()
    schema = masking.truth.schema
    if is_withheld(masking.card):
        return ()
    asked = {name for name in plan.match_columns(masking.release.table.schema) if name in schema}
    wanted = asked - set(plan.fields or ())
    return sure_columns(masking.card, schema, wanted) if wanted else ()


def sure_columns(card: NoiseCard, schema: Schema, among: Collection[str]) -> tuple[str, ...]:
    """Return the columns of some whose law draws nothing and changes them, where all columns of the law are such."""
    found = []
    for law in card.laws:
        if set(law.columns) <= set(among) and not only_rounds(law):
            whole = combined_of(law)
            found += (
                list(law.columns)
                if all(name in schema and _is_sure(whole, schema[name]) for name in law.columns)
                else []
            )
    return tuple(found)


def _is_sure(law: Any, column: Column) -> bool:
    """Whether a law turns every value of a column into one released value."""
    if isinstance(law, Transition):
        return law.is_sure and column.kind == "category" and len(column.categories) == len(law.true)
    if isinstance(law, Classes):
        return column.is_number
    place = law.columns.index(column.name)
    return isinstance(law, Additive) and column.is_number and draws_nothing(law, place)


def _recode_masking(masking: Masking, columns: tuple[str, ...]) -> CodedRecords:
    laws = tuple(law for law in masking.card.laws if set(law.columns) <= set(columns))
    release, true = masking.release, masking.truth.schema
    given = Release(release.table, _without(release.card, columns)), masking.order
    truth, card = recode_table(masking.truth, laws, true), _without(masking.card, columns)
    return CodedRecords(replace(masking, truth=truth, card=card, given=given), laws, true)


def in_groups(masking: Masking) -> Masking:
    """Return a masking with the categories that leave as groups of categories coded in the truth already."""
    schema = masking.truth.schema
    if is_withheld(masking.card):
        return masking
    categories = [column.name for column in schema.columns if column.kind == "category"]
    columns = sure_columns(masking.card, schema, categories)
    return _recode_masking(masking, columns).masking if columns else masking


def _without(card: NoiseCard, columns: Sequence[str]) -> NoiseCard:
    if is_withheld(card):
        return card
    return replace(card, laws=tuple(law for law in card.laws if set(law.columns).isdisjoint(columns)))


def recode_table(table: Table, laws: Sequence[Any], true: Schema) -> Table:
    """Send records through laws that draw nothing; columns of another kind than the true ones stay as they are."""
    changes: dict[str, tuple[Column, Floats, Statuses]] = {}
    for law in map(combined_of, laws):
        for name in law.columns:
            if name in table.schema and (change := _change(law, table, true[name])) is not None:
                changes[name] = change
    return table.with_columns(changes) if changes else table


def coded_in(table: Table, card: NoiseCard, columns: Sequence[str]) -> Table:
    """Return true records with those of some columns coded that leave as classes by a card."""
    names = sure_columns(card, table.schema, columns)
    laws = [law for law in card.laws if set(law.columns) <= set(names)]
    return recode_table(table, laws, table.schema)


def _change(law: Any, table: Table, true: Column) -> tuple[Column, Floats, Statuses] | None:
    column = table.schema[true.name]
    if isinstance(law, Transition):
        return _group_categories(law, table, true) if column.kind == "category" else None
    return deterministic_column(law, table, true.name) if column.is_number else None


def _group_categories(law: Transition, table: Table, true: Column) -> tuple[Column, Floats, Statuses]:
    """Group categories by their names; those of a file of the intruder's own that the truth has not stay apart."""
    name = true.name
    column, codes = table.schema[name], table.floats(name)
    best = law.likeliest(np.arange(len(law.true), dtype=np.float64)).astype(int)
    groups = dict(zip(true.categories, (law.released_as[i] for i in best), strict=True))
    names = [groups.get(category, category) for category in column.categories]
    labels = (*law.released_as, *dict.fromkeys(one for one in names if one not in law.released_as))
    place = np.array([labels.index(one) for one in names], np.float64)
    known = (table.status(name) == OPEN) & ~np.isnan(codes)
    values = np.full(len(codes), np.nan)
    values[known] = place[codes[known].astype(np.int64)]
    return replace(law.released(column), categories=labels), values, table.status(name)

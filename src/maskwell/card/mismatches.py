"""Whether a card is that of a file: its columns are there, and are of the kind that its laws are about."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .validation import MOST_PROBLEMS, Problems, quote_name

if TYPE_CHECKING:
    from ..schema import Column, Schema
    from .noise_card import NoiseCard


def misfits(card: NoiseCard, schema: Schema) -> Problems:
    """Return where a card speaks of columns that a file does not have, or has of another kind."""
    swapped = card.swapped
    moved = () if swapped is None else (*swapped.columns, *swapped.blocks)
    totals = tuple(total for total, _ in card.recomputed)
    found = [
        f"the card speaks of column {quote_name(name)}, which the file does not have"
        for name in dict.fromkeys((*card.columns, *moved, *totals))
        if name not in schema
    ]
    for law in card.laws:
        found += [
            f"the card speaks of column {quote_name(name)} as {words}, which it is not in the file"
            for j, name in enumerate(law.columns)
            if name in schema and (words := _misfit(law, j, schema[name]))
        ]
    return found[:MOST_PROBLEMS]


def _misfit(law: Any, j: int, column: Column) -> str:
    """Say what a column must be for a law to speak of it, or nothing where it is."""
    from ..laws import Additive, Classes, RankSwapped, Transition
    from ..laws.chain import combined_of

    law = combined_of(law)
    if isinstance(law, Transition | Classes):
        names = law.released_as if isinstance(law, Transition) else law.labels
        fits = column.kind == "category" and column.categories == names
        return "" if fits else "a category with the categories of its law"
    if isinstance(law, RankSwapped):
        return ""
    codes = law.categories if isinstance(law, Additive) else ()
    if codes and column.kind == "category":
        return "" if column.categories == codes[j] else "a category with the categories of its law"
    return "" if column.is_number else "a number"

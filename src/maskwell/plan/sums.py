"""Columns that are exact sums of others, each solved for the member that is computed again from the masked ones."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from .draft_words import names_of, plain
from .questions import Question

if TYPE_CHECKING:
    from ..io.inspect import SchemaProposal
    from ..schema import Schema
    from ..table import Table

Sum = tuple[str, tuple[tuple[str, float], ...]]


def members(one: Sum) -> tuple[str, ...]:
    """Return the columns of a sum: the total first."""
    return (one[0], *dict(one[1]))


def exact_sums(table: Table) -> tuple[Sum, ...]:
    """Return the columns that are exact sums of others, each to be recomputed after those it needs."""
    from ..masking.totals import amounts, exact_identities

    names = amounts(table)
    found: list[Sum] = []
    if len(names) < 2:
        return ()
    used: set[str] = set()
    for identity in exact_identities(table, names):
        solved = _solve_identity(identity, {total for total, _ in found}, used)
        if solved is not None:
            found.append(solved)
            used |= {part for part, _ in solved[1]}
    return tuple(found)


def _solve_identity(identity: Any, totals: set[str], used: set[str]) -> Sum | None:
    """Solve an identity for a column that no other sum gives or needs: its total if that can be."""
    terms = dict(identity.parts)
    for name in (identity.total, *reversed(terms)):
        if name in totals or name in used:
            continue
        if name == identity.total:
            return name, tuple(terms.items())
        rest = {part: -c / terms[name] for part, c in terms.items() if part != name}
        return name, tuple({identity.total: 1 / terms[name], **rest}.items())
    return None


def on_dropped_parts(proposal: SchemaProposal, table_of: Callable[[Schema], Table]) -> list[Question]:
    """Say which sums numbers that were dropped as a household's are part of: who keeps one must drop another."""
    from ..masking.totals import amounts, exact_identities

    schema, questions = proposal.schema, list[Question]()
    asked = dict.fromkeys(one.column for one in proposal.findings if one.kind == "repeats" and one.column)
    kept = {
        name: replace(schema[name], drop=False)
        for name in asked
        if schema[name].drop and schema[name].is_number
    }
    if not kept:
        return []
    table = table_of(schema.changed(kept))
    for identity in exact_identities(table, amounts(table)):
        parts = [part for part, _ in identity.parts]
        own = [name for name in (identity.total, *parts) if name in kept]
        others = " or ".join(plain(name) for name in (identity.total, *parts) if name not in own)
        if not own or not others or len(parts) < 2:
            continue
        known = ~np.isnan(table.values([identity.total, *parts])).any(axis=1)
        taken = f"{identity} exactly, in all {np.count_nonzero(known):,} records in which they are known"
        otherwise = f"Should {names_of(own)} leave after all? Then drop {others} in the schema"
        questions.append(Question(None, taken, otherwise))
    return questions

"""Columns that are exact sums of others, each solved for the member that is computed again from the masked ones."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
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

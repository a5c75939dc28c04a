"""Exact relations between columns: totals computed anew from released parts, and plans that would break an identity."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from math import gcd, lcm
from typing import Any

import numpy as np

from ..card import NoiseCard
from ..errors import BadPlan, raise_all
from ..laws import Additive, Outlet
from ..laws.chain import combined_of
from ..schema import BOTTOM_CODED, MISSING, OPEN, TOP_CODED, Column
from ..table import Floats, Statuses, Table

FEW = 20_000  # records that show whether an identity is worth a search of the whole file
Sum = tuple[str, tuple[tuple[str, float], ...]]


def recompute_totals(masked: Table, card: NoiseCard) -> Table:
    """Compute totals anew from released parts; a total with a part that is not open becomes missing.

    A total keeps its missing codes; its top and bottom codes follow from the released sum alone, since those of
    the truth would tell how far the noise carried it.
    """
    for total, parts in in_order(card.recomputed):
        names = [name for name, _ in parts]
        values, is_open = masked.values(names), masked.is_open(names).all(axis=1)
        z = np.zeros(len(masked))
        for j, (_, coefficient) in enumerate(parts):
            z += coefficient * values[:, j]
        status = masked.status(total).copy()
        status[np.isin(status, (TOP_CODED, BOTTOM_CODED))] = OPEN
        status[~is_open & (status == OPEN)] = MISSING
        column, z = _on_unit(masked, total, parts, z)
        masked = masked.with_columns(
            {total: (column, z, coded_statuses(z, status, column.bottom, column.top))}
        )
    return masked


def in_order(sums: tuple[Sum, ...]) -> list[Sum]:
    """Order the sums so that each comes after those of its own parts; refuse doubled and circular ones."""
    waiting, ordered = dict(sums), list[Sum]()
    if len(waiting) < len(sums):
        raise BadPlan("a column is recomputed twice: say once how")
    while waiting:
        ready = [total for total, parts in waiting.items() if not waiting.keys() & dict(parts).keys()]
        if not ready:
            raise BadPlan(f"columns {', '.join(waiting)} are recomputed from one another in a circle")
        ordered += [(total, waiting.pop(total)) for total in ready]
    return ordered


def _on_unit(
    masked: Table, total: str, parts: tuple[tuple[str, float], ...], z: Floats
) -> tuple[Column, Floats]:
    """Put a total on its unit (without one: on that of its parts), off values that are codes."""
    column = masked.schema[total]
    unit = column.step or _common_unit([(masked.schema[name].step, c) for name, c in parts])
    if unit is None:
        return column, z
    if column.step is None:
        column = replace(column, unit=float(unit))
    avoid = tuple(float(code) for code in column.missing if not isinstance(code, str))
    return column, Outlet(unit, avoid=avoid).leave(z.copy(), z)


def _common_unit(parts: list[tuple[Fraction | None, float]]) -> Fraction | None:
    """Return the largest unit that the units of all parts, times their coefficients, are multiples of."""
    steps = [None if step is None else step * abs(Fraction(repr(c))) for step, c in parts]
    known = [step for step in steps if step]
    if len(known) < len(parts):
        return None
    denominator = lcm(*(step.denominator for step in known))
    return Fraction(gcd(*(int(step * denominator) for step in known)), denominator)


def coded_statuses(z: Floats, status: Statuses, low: float | None, high: float | None) -> Statuses:
    """Give open values at or beyond a limit the status of its code."""
    status = status.copy()
    with np.errstate(invalid="ignore"):
        if high is not None:
            status[(status == OPEN) & (z >= high)] = TOP_CODED
        if low is not None:
            status[(status == OPEN) & (z <= low)] = BOTTOM_CODED
    return status


def check_identities(table: Table, card: NoiseCard) -> None:
    """Refuse noises that would contradict an exact identity, or a total in clear beside noised parts."""
    noised = {
        n for law in card.laws if law.form in ("additive", "lognormal bias", "chained") for n in law.columns
    }
    names = amounts(table)
    noised &= set(names)
    if not noised or len(names) < 3:
        return
    problems = []
    for identity in exact_identities(table, names):
        members = (identity.total, *(part for part, _ in identity.parts))
        if (
            noised.intersection(members)
            and not _is_implied_identity(card, identity, names)
            and not _coherent(card, identity)
        ):
            problems.append(_identity_problem(identity.total, identity.parts))
    raise_all(problems, BadPlan)


def amounts(table: Table) -> list[str]:
    """Return the released columns that hold amounts."""
    return [
        column.name
        for column in table.schema.columns
        if column.is_number and not column.drop and not column.roles & {"weight", "id", "group"}
    ]


def exact_identities(table: Table, names: list[str]) -> Any:
    """Find exact identities; a long file without gaps is searched whole only where a part of it has one."""
    from ..io.identities import find_identities

    stride = len(table) // FEW
    if stride > 1 and not table.closed.keys() & set(names):
        thinned = np.column_stack([np.asarray(table.array(name))[::stride] for name in names])
        if not find_identities(thinned.astype(np.float64), names):
            return ()
    return find_identities(table.values(names), names)


def _identity_problem(total: str, parts: tuple[tuple[str, float], ...]) -> str:
    said = " + ".join(part if coefficient == 1 else f"{coefficient:g} {part}" for part, coefficient in parts)
    return (
        f"{total} = {said} exactly, so separate noises would contradict each other or give the noise away; "
        f"mask the parts and add a mask Recompute for {total!r} from them, or drop one of the columns"
    )


def _is_implied_identity(card: NoiseCard, identity: Any, names: list[str]) -> bool:
    """Whether the identity follows from the sums that the release is computed by."""
    sums = [(total, parts) for total, parts in card.recomputed if {total, *dict(parts)} <= set(names)]
    known = np.array([_relation(total, parts, names) for total, parts in sums]).reshape(len(sums), len(names))
    both = np.vstack([known, _relation(identity.total, identity.parts, names)])
    return bool(np.linalg.matrix_rank(both) == (np.linalg.matrix_rank(known) if sums else 0))


def _relation(total: str, parts: tuple[tuple[str, float], ...], names: list[str]) -> Floats:
    out = np.zeros(len(names))
    out[names.index(total)] = -1.0
    for part, coefficient in parts:
        out[names.index(part)] += coefficient
    return out


def _coherent(card: NoiseCard, identity: Any) -> bool:
    """Whether one correlated noise keeps the identity by itself (a singular covariance kept exactly)."""
    law = combined_of(card.law_of(identity.total)) if card.law_of(identity.total) is not None else None
    if not isinstance(law, Additive) or any(part not in law.columns for part, _ in identity.parts):
        return False
    direction = -_relation(identity.total, identity.parts, list(law.columns))
    covariance = law.noise.covariance
    return bool(direction @ covariance @ direction <= 1e-9 * np.trace(covariance))

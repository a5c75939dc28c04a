"""Which noised values a released one stands for, and which true ones where there was no noise.

A released z at a limit stands for all beyond it, on a unit u for [z - u/2, z + u/2], in a class for its ends: the
inverse of the order of operations in docs/design.md. Read by `card_arrays` (noise inside cells is drawn) and as limits
of true values without noise.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any, NamedTuple

import numpy as np

from ...card import NoiseCard
from ...laws import Additive, Classes, Outlet, SkewedBias
from ...schema import BOTTOM_CODED, OPEN, TOP_CODED, Column
from ...table import Table
from ..system import Bools, Floats, Variable
from .card_columns import is_noisy, law_of

COARSE = 0.05  # of a column's sd: a unit above it leaves the true value in doubt where nothing else does
ZERO = 1e-6  # of a column's sd: how far from 0 a value may be that noise in proportion to it left at 0


class NoiseCells(NamedTuple):
    """Of one column: the noised value of each record where it is a point, its interval and a value in it where not.

    `scale` is the factor of the noise at the released value; `is_open` says which records have a law.
    """

    point: Floats
    lower: Floats
    upper: Floats
    interval: Bools
    scale: Floats
    is_open: Bools


def cells_of(law: Any, table: Table, name: str) -> NoiseCells:
    """Return the cells of a column with noise.

    Beside codes that no value may equal the cell depends on the true value too; the released one stands for it there,
    as it does where the size of the noise, and so the fineness of a unit, depends on it.
    """
    j = law.columns.index(name)
    outlet: Outlet = law.outlets[j]
    z, is_open = released_values(outlet, table, name)
    with np.errstate(invalid="ignore"):
        scale, sds = local_scale(law, j, z)
        with np.errstate(divide="ignore"):
            cell, noised = outlet.cell(z, z, sds), outlet.enter(z)
    is_open &= scale > 0
    interval = is_open & ~cell.is_point
    within = np.where(np.isfinite(noised), noised, cell.upper)
    point = np.where(is_open, np.where(interval, within, cell.lower), 0.0)
    lower, upper = np.where(interval, cell.lower, -np.inf), np.where(interval, cell.upper, np.inf)
    return NoiseCells(point, lower, upper, interval, np.where(is_open, scale, 1.0), is_open)


def released_values(outlet: Outlet, table: Table, name: str) -> tuple[Floats, Bools]:
    """Return the released values with those that the mask coded at their limits, and which have a law."""
    z, status = np.array(table.floats(name)), table.status(name)
    is_open = status == OPEN
    for code, limit in zip((BOTTOM_CODED, TOP_CODED), outlet.codes, strict=True):
        if limit is not None:
            z[status == code] = limit
            is_open |= status == code
    return z, is_open


def local_scale(law: Any, j: int, z: Floats) -> tuple[Floats, Floats]:
    """Return the factor of the noise at the released values, and the sd that a unit must be fine against."""
    if isinstance(law, SkewedBias):
        size = np.hypot(law.sds[j], law.bias_sd * z)
        return np.where(size == 0, 0.0, 1.0), size / 4
    spread = law.spreads[j] if law.spreads else None
    scale = np.ones(len(z)) if spread is None else spread.factor(z)
    return scale, law.noise.resolution[j] * scale


def bounds(
    card: NoiseCard, table: Table, variables: Sequence[Variable], *, erring: Collection[str] = ()
) -> tuple[Floats, Floats] | None:
    """Return the limits of the true values, records x variables on the scale of the state, or nothing without any.

    Values coded at the top or bottom before any noise lie beyond their code; columns released as classes, rounded
    coarsely or coded without noise lie in their cell. Columns in `erring` were measured with error, so that their
    limits are not those of the truth: they are in the noise instead.
    """
    lower = np.full((len(table), len(variables)), -np.inf)
    upper = np.full((len(table), len(variables)), np.inf)
    for v, variable in enumerate(variables):
        if variable.is_category or variable.name not in table.schema or variable.name in erring:
            continue
        low, high = _limits(law_of(card, variable.name), table, variable.name)
        lower[:, v], upper[:, v] = _on_scale(low, variable.log_shift), _on_scale(high, variable.log_shift)
    found = (lower > -np.inf).any() or (upper < np.inf).any()
    return (lower, upper) if found else None


def _on_scale(ends: Floats, log_shift: float | None) -> Floats:
    if log_shift is None:
        return ends
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(np.maximum(ends + log_shift, 0.0)))


def _limits(law: Any, table: Table, name: str) -> tuple[Floats, Floats]:
    """Return the limits of one column's true values, infinite where there are none."""
    column, status = table.schema[name], table.status(name)
    lower, upper = np.full(len(table), -np.inf), np.full(len(table), np.inf)
    if isinstance(law, Classes):
        return _in_classes(law, table.floats(name))
    if column.top is not None:
        lower[status == TOP_CODED] = column.top
    if column.bottom is not None:
        upper[status == BOTTOM_CODED] = column.bottom
    if not isinstance(law, Additive | SkewedBias):
        return lower, upper
    outlet = law.outlets[law.columns.index(name)]
    if is_noisy(law)[law.columns.index(name)]:
        own = [np.full(len(status), limit is not None) for limit in outlet.codes]  # in the tail of the noise
        lower[own[1] & (status == TOP_CODED)] = -np.inf
        upper[own[0] & (status == BOTTOM_CODED)] = np.inf
        bottom, top = outlet.codes
        if column.top is not None and top is None:  # a value that was not coded lies below the code
            upper[status == OPEN] = column.top
        if column.bottom is not None and bottom is None:
            lower[status == OPEN] = column.bottom
        return _at_zero(law, table, name, lower, upper)
    return _within_codes(outlet, table, name, lower, upper)


def _within_codes(
    outlet: Outlet, table: Table, name: str, lower: Floats, upper: Floats
) -> tuple[Floats, Floats]:
    """Return the cells of a column without noise; what was coded before lies beyond its code, the rest within."""
    column, low_high, (bottom, top) = table.schema[name], _in_cells(outlet, table, name), outlet.codes
    doubtful = (np.isfinite(low_high[0]) | np.isfinite(low_high[1])) & (table.status(name) == OPEN)
    if column.top is not None and top is None:
        upper[doubtful] = column.top
    if column.bottom is not None and bottom is None:
        lower[doubtful] = column.bottom
    return np.maximum(lower, low_high[0]), np.minimum(upper, low_high[1])


def _at_zero(law: Any, table: Table, name: str, lower: Floats, upper: Floats) -> tuple[Floats, Floats]:
    """Add the limits of values that noise in proportion to them left as they are: zeros."""
    z = table.floats(name)
    j = law.columns.index(name)
    with np.errstate(invalid="ignore"):
        silent = ~np.isnan(z) & (local_scale(law, j, z)[0] == 0)
    unit = law.outlets[j].unit
    half = float(unit) / 2 if unit is not None else ZERO * float(np.nanstd(z)) if len(z) else ZERO
    lower[silent], upper[silent] = z[silent] - half, z[silent] + half
    return lower, upper


def _in_classes(law: Classes, codes: Floats) -> tuple[Floats, Floats]:
    edges = np.array([-np.inf, *law.breaks, np.inf])
    known = ~np.isnan(codes)
    at = np.where(known, codes, 0).astype(np.int64)
    return np.where(known, edges[at], -np.inf), np.where(known, edges[at + 1], np.inf)


def _in_cells(outlet: Outlet, table: Table, name: str) -> tuple[Floats, Floats]:
    """Return the cells of a column without noise: only limits where its unit is fine or was there before."""
    z, is_open = released_values(outlet, table, name)
    with np.errstate(invalid="ignore"):
        cell = outlet.cell(z, z, np.zeros(len(z)))
        tail = is_open & (np.isinf(cell.lower) | np.isinf(cell.upper))
    doubtful = is_open if is_coarse(outlet, table.schema[name], z) else tail
    lower, upper = np.where(doubtful, cell.lower, -np.inf), np.where(doubtful, cell.upper, np.inf)
    if outlet.log_shift is None:
        return lower, upper
    return np.exp(lower) - outlet.log_shift, np.exp(upper) - outlet.log_shift


def is_coarse(outlet: Outlet, column: Column, z: Floats) -> bool:
    """Whether rounding to the unit leaves the true values in doubt; whole numbers on the unit 1 are what they were."""
    if outlet.unit is None or (column.kind == "integer" and outlet.unit == 1):
        return False
    values = z[~np.isnan(z)]
    return len(values) > 1 and float(outlet.unit) > COARSE * float(values.std())

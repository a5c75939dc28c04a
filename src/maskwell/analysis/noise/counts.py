"""How likely a true count makes what was released: a row of whole numbers for every different released value.

c(y) = p(z | y) / max over y of p(z | y), y = first, first + 1, ..: listed until it is below exp(LEAST_LOG). Own
derivation: with c the true count can be summed over exactly (`kernels.count_likelihood`). Chosen by `count_response`
where the noise of a count is its own; else it is computed draw by draw.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from ...card import NoiseCard
from ...errors import BadInput, BadPlan
from ...laws import Additive, Classes, JointMixture, Mixture, Normal, SkewedBias, Transition
from ...laws.unknowns import is_independent, of_columns
from ...schema import BOTTOM_CODED, OPEN, TOP_CODED
from ...table import Table
from ..system import Bools, Floats, Ints
from .card_columns import is_noisy, law_of, levels_of
from .cells import released_values
from .law_parts import error_law, with_errors

LEAST_LOG = -37.0  # below the likeliest count of a row: what is left out
REACH, LONG_REACH = 9.0, 27.0  # sds of normal and of Laplace noise until it is that unlikely
MOST_CHANCES = 20_000_000  # that are kept: beyond them the noise is computed draw by draw
FARTHEST = 4.0  # times the largest released value: the largest count listed where noise grows with it
BLOCK = 1_000_000  # counts held in one go


class CountChances(NamedTuple):
    """The chance of what was released given each count, over that of the likeliest count.

    Record i has the row `which[i]` (-1: nothing to draw); row k lists the counts from `first[k]` on in
    `chance[begin[k]:begin[k + 1]]`, and where it is `endless` all further ones have its last chance.
    """

    which: Ints
    first: Ints
    begin: Ints
    chance: Floats
    endless: Bools

    def taken(self, records: Ints) -> CountChances:
        """Return the chances of some records."""
        return self._replace(which=np.ascontiguousarray(self.which[records]))


class _Rows(NamedTuple):
    """Released values with the counts from `low` to `high` that may have given them."""

    z: Floats
    low: Ints
    high: Ints
    endless: Bools


def is_shared(card: NoiseCard, name: str, others: set[str]) -> bool:
    """Whether the noise of a column tells of that of others."""
    law = law_of(card, name)
    if not isinstance(law, Additive) or is_independent(law.noise) or isinstance(law.noise, Mixture):
        return False
    noisy = {column for column, has in zip(law.columns, is_noisy(law), strict=True) if has}
    return name in noisy and bool(noisy & (others - {name}))


def count_chances(
    card: NoiseCard, table: Table, name: str, measurement_error: float | None = None
) -> CountChances | None:
    """Return the chances of what was released of a count, its noise being its own; None where they are too many."""
    law = _own_law(card, table, name, measurement_error)
    levels = levels_of(card, table.schema, name)
    z, is_open = _values(law, table, name)
    distinct, at = np.unique(z[is_open], return_inverse=True)
    rows = _of_levels(distinct, levels) if levels else _windows(law, distinct)
    widths = rows.high - rows.low + 1
    if (widths < 0).any() or (rows.low < 0).any():  # none is left, or they are beyond all whole numbers
        raise BadPlan(
            f"the noise that the card tells of {name!r} fits no counts: model it as an amount (family 'gaussian'), or "
            "ask the steward for the card of these data"
        )
    if int(widths.sum()) > MOST_CHANCES:
        return None
    counts = _ranges(rows.low, widths)
    logs = _level_logs(law, distinct, levels, widths) if levels else _logs(law, rows, counts, widths)
    if not levels:
        _below_codes(law, table, name, counts, logs)
    which = np.full(len(table), -1, np.int64)
    which[is_open] = at.ravel()
    return _with_codes(_trimmed_chances(name, rows, widths, logs, which), table, name, is_open)


def _own_law(card: NoiseCard, table: Table, name: str, measurement_error: float | None) -> Any:
    """Return the law of the column alone, a known measurement error in it."""
    law = law_of(card, name)
    if law is not None and len(law.columns) > 1:
        law = of_columns(law, [law.columns.index(name)])
    if isinstance(law, Additive) and isinstance(law.noise, JointMixture):
        law = replace(law, noise=law.noise.flat(0))
    if measurement_error is None:
        return law
    return (
        error_law(table, name, measurement_error)
        if law is None
        else with_errors(law, {name: measurement_error})
    )


def _values(law: Any, table: Table, name: str) -> tuple[Floats, Bools]:
    """Return what was released, and which records have a law."""
    if isinstance(law, Additive | SkewedBias):
        return released_values(law.outlets[0], table, name)
    return table.floats(name), (table.status(name) == OPEN) & (law is not None)


def _ranges(first: Ints, widths: Ints) -> Floats:
    """Return the counts of all rows, one row after the other."""
    begin = np.cumsum(widths) - widths
    whole = np.arange(int(widths.sum())) + np.repeat(first - begin, widths)
    return np.asarray(whole, dtype=np.float64)


# --- which counts ------------------------------------------------------------------------------------------


def _windows(law: Any, z: Floats) -> _Rows:
    """Return the counts that each released value leaves possible, as far as a law by itself says."""
    if isinstance(law, Classes):
        return _of_classes(law, z)
    if law is None:
        nothing = np.zeros(0, np.int64)
        return _Rows(z, nothing, nothing, np.zeros(0, bool))
    outlet = law.outlets[0]
    unit = 0.0 if outlet.unit is None else float(outlet.unit)
    grows = isinstance(law, SkewedBias) or any(law.spreads) or outlet.log_shift is not None
    if grows:
        top = int(np.ceil(FARTHEST * max(z.max(initial=0.0), 0.0) + _size(law, z) + unit)) + 30
        low, high = np.zeros(len(z), np.int64), np.full(len(z), top, np.int64)
        return _Rows(z, low, high, np.ones(len(z), bool))
    offset = law.offsets[0] if law.offsets else 0.0
    half = (_reach(law.noise) + unit) / law.slope + 1.0
    middle = np.maximum((z - offset) / law.slope, 0.0)
    low = np.maximum(np.floor(middle - half), 0.0)
    if outlet.low is not None:
        low[z <= outlet.low] = 0.0
    endless = np.zeros(len(z), bool) if outlet.high is None else z >= outlet.high
    return _Rows(z, low.astype(np.int64), np.ceil(middle + half).astype(np.int64), endless)


def _reach(noise: Any) -> float:
    """Return how far from 0 noise may be."""
    if isinstance(noise, Mixture):
        return float((np.abs(np.array(noise.means)) + REACH * np.array(noise.sds)).max())
    sd = float(np.sqrt(noise.covariance[0, 0]))
    return (REACH if isinstance(noise, Normal) else LONG_REACH) * sd


def _size(law: Any, z: Floats) -> float:
    """Return about how far noise that depends on the value may carry the least and the largest."""
    if isinstance(law, SkewedBias) or law.outlets[0].log_shift is not None:
        return 0.0 if not isinstance(law, SkewedBias) else REACH * law.sds[0]
    ends = np.array([0.0, max(z.max(initial=0.0), 0.0)])
    factors = law.spreads[0].factor(ends) if law.spreads[0] is not None else np.ones(2)
    return _reach(law.noise) * float(factors.max())


def _of_classes(law: Classes, z: Floats) -> _Rows:
    edges = np.array([0.0, *law.breaks, np.inf])
    at = z.astype(np.int64)
    low = np.maximum(np.floor(edges[at]), 0.0)
    endless = np.isinf(edges[at + 1])
    high = np.where(endless, low + 1, np.maximum(np.ceil(edges[at + 1]), low))
    return _Rows(z, low.astype(np.int64), high.astype(np.int64), endless)


def _of_levels(z: Floats, levels: tuple[str, ...]) -> _Rows:
    counts = [int(level) for level in levels]
    ends = np.full((2, len(z)), [[min(counts)], [max(counts)]])
    return _Rows(z, ends[0], ends[1], np.zeros(len(z), bool))


# --- how likely they are -----------------------------------------------------------------------------------


def _logs(law: Any, rows: _Rows, counts: Floats, widths: Ints) -> Floats:
    out, values = np.empty(len(counts)), np.repeat(rows.z, widths)
    for begin in range(0, len(counts), BLOCK):
        here = slice(begin, begin + BLOCK)
        out[here] = law.logpdf(values[here, None], counts[here, None])
    return np.where(np.isnan(out), -np.inf, out)


def _level_logs(law: Any, z: Floats, levels: tuple[str, ...], widths: Ints) -> Floats:
    """Return the logs of all counts, where those of some are levels of a category whose codes were changed."""
    assert isinstance(law, Additive | Transition)
    counts = np.array([int(level) for level in levels])
    out = np.full((len(z), int(widths.max(initial=1))), -np.inf)
    for code, count in enumerate(counts):
        out[:, count - counts.min()] = law.logpdf(z[:, None], np.full((len(z), 1), float(code)))
    return out.ravel()


def _below_codes(law: Any, table: Table, name: str, counts: Floats, logs: Floats) -> None:
    """Leave out counts that would have been coded before any noise: the value was not."""
    column = table.schema[name]
    bottom, top = law.outlets[0].codes if law is not None and law.outlets else (None, None)
    if isinstance(law, Classes):
        return
    if column.top is not None and top is None:
        logs[counts >= column.top] = -np.inf
    if column.bottom is not None and bottom is None:
        logs[counts <= column.bottom] = -np.inf


def _trimmed_chances(name: str, rows: _Rows, widths: Ints, logs: Floats, which: Ints) -> CountChances:
    """Bring the likeliest count of each row to 1, and leave out the ends of rows that hardly are possible."""
    begin = np.cumsum(widths) - widths
    if not len(widths):
        return CountChances(which, rows.low, np.zeros(1, np.int64), np.zeros(0), rows.endless)
    top = np.maximum.reduceat(logs, begin)
    if not np.isfinite(top).all():
        raise BadInput(
            f"the response {name!r} has released values that no whole number from 0 on can have given; a family of "
            "counts needs counts"
        )
    logs = logs - np.repeat(top, widths)
    row = np.repeat(np.arange(len(widths)), widths)
    kept = np.flatnonzero(logs > LEAST_LOG)
    start = kept[np.searchsorted(row[kept], np.arange(len(widths)), side="left")]
    end = kept[np.searchsorted(row[kept], np.arange(len(widths)), side="right") - 1]
    size = end - start + 1
    endless = rows.endless & (end == begin + widths - 1)
    chance = np.exp(logs[_ranges(start, size).astype(np.int64)])
    places = np.concatenate([[0], np.cumsum(size)]).astype(np.int64)
    return CountChances(which, rows.low + start - begin, places, chance, endless)


def _with_codes(chances: CountChances, table: Table, name: str, is_open: Bools) -> CountChances:
    """Add what values say that were coded before any noise: that they are at or beyond their code."""
    column, status, which = table.schema[name], table.status(name), chances.which.copy()
    for code, limit in ((TOP_CODED, column.top), (BOTTOM_CODED, column.bottom)):
        here = (status == code) & ~is_open
        if not here.any() or limit is None:
            continue
        first = max(int(np.ceil(limit)), 0) if code == TOP_CODED else 0
        width = 1 if code == TOP_CODED else max(int(np.floor(limit)), 0) + 1
        which[here] = len(chances.first)
        chances = CountChances(
            which,
            np.append(chances.first, first),
            np.append(chances.begin, chances.begin[-1] + width),
            np.concatenate([chances.chance, np.ones(width)]),
            np.append(chances.endless, code == TOP_CODED),
        )
    return chances._replace(which=which)

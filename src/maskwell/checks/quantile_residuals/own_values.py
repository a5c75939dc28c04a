"""Noise by the column's own true values: a family of few tests, so that what matters most is judged most sharply.

The largest values, those who stand alone, and values that nobody else has are whom an intruder looks for. Classes are
tenths and both ends of the true value, of the distance to its neighbours in rank, and of how often it occurs; inside
the ends also the trend along the rank. As every class is made of true values alone, sums have their exact laws. The
same classes stand in the large families too: here they share their chance of 1e-5 / families with fewer others. Own
choice of classes. Called by `battery`.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ...table import Floats
from . import families
from .cells import Integers
from .families import Score, normal_p
from .ledger import Ledger
from .products import INSIDE, LEVEL
from .truths import FEWEST, TrueColumn

MOST_TIMES = 20  # that a value occurs: beyond, all are one class


def own_values(ledger: Ledger, scores: Sequence[Score], own: TrueColumn) -> None:
    """Test views of a column's scores by its own true values."""
    own_family = ledger.within("own values")
    sorted_by = (own, *_derived_columns(own))
    for score in scores:
        for column in sorted_by:
            if column.classes is not None:
                families.classes(own_family, score, column.classes)
            families.selections(own_family, score, column.ends)
        for label, members in own.ends:
            _trend_inside(own_family, score, own, members, label)


def _derived_columns(own: TrueColumn) -> tuple[TrueColumn, ...]:
    """Return the distance of each value to its neighbours, and how often it occurs, as columns."""
    found = []
    gaps = _gaps(own)
    if gaps is not None:
        found.append(_column(f"the distance of {own.name} to its neighbours", gaps))
    inside = own.codes >= 0
    times = np.bincount(own.codes[inside], minlength=own.distinct)
    if len(times) and times.min() < times.max():
        often = np.full(len(own.codes), np.nan)
        often[inside] = np.minimum(times[own.codes[inside]], MOST_TIMES)
        found.append(_column(f"how often {own.name} occurs", often))
    return tuple(found)


def _gaps(own: TrueColumn) -> Floats | None:
    """Return how far the two neighbours of each value in rank lie apart; the outermost two values have but one."""
    order = own.order
    if len(order) < 2 * FEWEST or own.has_values:
        return None
    assert own.numbers is not None
    ranked = own.numbers[order]
    out = np.full(len(own.codes), np.nan)
    out[order[1:-1]] = ranked[2:] - ranked[:-2]
    return out


def _column(name: str, numbers: Floats) -> TrueColumn:
    codes: Integers = np.full(len(numbers), -1, np.int64)
    known = ~np.isnan(numbers)
    codes[known] = np.unique(numbers[known], return_inverse=True)[1]
    return TrueColumn(name, numbers, codes)


def _trend_inside(ledger: Ledger, score: Score, own: TrueColumn, members: Integers, label: str) -> None:
    """Correlate scores with the rank inside an end of a column."""
    y, ranks = score.values[members], own.shares[members]
    known = ~np.isnan(y)
    y, ranks = y[known], ranks[known]
    if len(y) < FEWEST:
        return
    ranks = ranks - ranks.mean()
    size = float((ranks**2).sum()) ** 0.5
    if size**2 <= LEVEL * len(y) / len(own.codes) ** 2:
        return
    deviate = float(ranks @ y) / size
    r = abs(deviate) / len(y) ** 0.5
    ledger.add(
        "trends in classes", score.label, INSIDE, normal_p(deviate), r, len(y), f"along the rank, {label}"
    )

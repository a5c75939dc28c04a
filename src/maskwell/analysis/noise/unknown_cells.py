"""Which true values of a release are unknown."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np

from ...card import NoiseCard
from ...laws import Additive, Classes, SkewedBias, Transition
from ...schema import OPEN
from ...table import Table
from ..system import Bools, Variable
from .card_columns import is_noisy, law_of
from .cells import bounds


def unknown_cells(
    card: NoiseCard, table: Table, variables: Sequence[Variable], *, erring: Collection[str] = ()
) -> Bools:
    """Return records x variables: whether the true value is not the released one for sure.

    Closed cells, noised columns and those in `erring` (measured with error), changed or exchanged categories, classes,
    and cells of columns that were coded or coarsely rounded without noise. Recomputed totals are not looked at.
    """
    out = np.zeros((len(table), len(variables)), bool)
    limits = bounds(card, table, variables)
    for v, variable in enumerate(variables):
        if variable.name not in table.schema:
            continue
        out[:, v] = table.status(variable.name) != OPEN
        if variable.name in erring or _is_masked(card, variable):
            out[:, v] = True
    if limits is not None:
        out |= np.isfinite(limits[0]) | np.isfinite(limits[1])
    return out


def _is_masked(card: NoiseCard, variable: Variable) -> bool:
    """Whether a law changes every value of a column."""
    law, name = law_of(card, variable.name), variable.name
    exchanged = card.swapped is not None and card.swapped.share > 0 and name in card.swapped.columns
    if isinstance(law, Classes):
        return True
    if isinstance(law, Transition) and not law.is_sure:
        return True
    if isinstance(law, Additive | SkewedBias):
        return bool(is_noisy(law)[law.columns.index(name)])
    return exchanged and variable.is_category

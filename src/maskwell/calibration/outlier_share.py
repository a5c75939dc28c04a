"""How far out the targets of an attack lie: by the attack itself where it says so, else by the true number keys.

Euclidean distance from the centre in sds, over the open columns times columns / open columns. The most outlying tenth
is what Goldstein and Shlomo (section 4, tables 1 and 3) look at apart. Read by `measures` for "worst decile".
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..arrow_buffers import to_numpy
from ..attacks import Risk
from ..attacks.protocol import Bools
from ..attacks.targets import number_keys, standardised_values
from ..errors import BadPlan
from ..masking.results import labels_of
from ..table import Floats, Table

COLUMN = "outlyingness"
ROUNDING = 1e-9  # distances that differ by less are the same


def worst_tenth(risk: Risk, truth: Table, columns: Sequence[str] | None = None) -> Bools:
    """Mark the links of the tenth of the targets that lies farthest out, and of all that lie as far as its last.

    Records whose outlyingness is not known are not in it. `columns` are as in `outlyingness_of`.
    """
    outlying = outlyingness_of(risk, truth, columns)
    known = np.sort(outlying[~np.isnan(outlying)])[::-1]
    if not len(known):
        raise BadPlan(
            "no target has a place among the deciles of outlyingness (no number key of them is open): judge over all"
        )
    edge = known[-(-len(known) // 10) - 1]
    return np.asarray(np.nan_to_num(outlying, nan=-np.inf) >= edge - ROUNDING)


def outlyingness_of(risk: Risk, truth: Table, columns: Sequence[str] | None = None) -> Floats:
    """Return how far from the centre the target of each link lies, NaN where that is not known.

    Attacks that measure h say it in their table. For others it is the Euclidean distance from the centre, in sds, over
    the open ones of `columns` (the key columns that are numbers), as though the others were like them.
    """
    if COLUMN in risk.table.column_names:
        return np.asarray(to_numpy(_array(risk, COLUMN)), dtype=np.float64)
    if not risk.attack.to_masked:
        raise BadPlan(
            f"{risk.name} searches from the release, where outlyingness is not known: judge over all records, or give "
            "it the direction 'to_masked'"
        )
    return _by_true_values(risk, truth, number_keys(truth) if columns is None else columns)


def columns_of(risk: Risk, released: Table) -> tuple[str, ...] | None:
    """Return the columns by which an attack that measures h says how far out its targets lie; nothing for others."""
    if risk.h is None:
        return None
    return tuple(name for name in risk.fields if released.schema[name].is_number)


def _array(risk: Risk, name: str) -> Any:
    return risk.table[name].combine_chunks()


def _by_true_values(risk: Risk, truth: Table, keys: Sequence[str]) -> Floats:
    import pyarrow.compute as pc

    if not keys:
        raise BadPlan("no key column is a number, so that no record lies farther out: judge over all")
    squares = standardised_values(truth.values(keys)) ** 2
    counts = (~np.isnan(squares)).sum(axis=1)
    share = np.divide(len(keys), counts, out=np.full(len(counts), np.nan), where=counts > 0)
    distances = np.append(np.sqrt(np.nansum(squares, axis=1) * share), np.nan)
    places: Any = pc.index_in(_array(risk, "target_id"), value_set=labels_of(truth))
    return np.asarray(distances[to_numpy(places.fill_null(len(truth)))])

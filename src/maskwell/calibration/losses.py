"""What masking costs in utility, as one figure: by name, or by a function of the steward's own.

IL1s = mean |z - x| / (sqrt(2) sd) (Yancey, Winkler and Creecy 2002); total variance ratio = sum over columns of mean
(z - x)^2 / variance. Read by `columns` as the price, and by `risk_utility_frontier`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from math import isfinite
from typing import Any

import numpy as np

from ..errors import BadPlan, nearest
from ..masking import Masking
from ..table import Floats
from ..tolerances import is_real

ROOT_2 = 2**0.5
IL1S, TOTAL_VARIANCE = "IL1s", "total variance ratio"


@dataclass(frozen=True, slots=True)
class Loss:
    """A utility loss and its name."""

    name: str
    of: Callable[[Masking], float]

    def __call__(self, masking: Masking) -> float:
        """Return the loss of a masking, refusing what is no number."""
        loss = self.of(masking)
        if not is_real(loss) or not isfinite(loss):
            raise BadPlan(f"the loss {self.name!r} must give a finite number for a masking, not {loss!r}")
        return float(loss)


def il1s(masking: Masking) -> float:
    """Return the mean of |released - true| / (sqrt(2) sd) over the masked columns (Yancey's IL1s).

    A category that is released as a category counts 1 where it changed. Values that are not open on both sides, and
    numbers released as classes, do not count.
    """
    per_column = [
        float((change if is_category else np.abs(change) / ROOT_2).mean())
        for change, is_category in _changes(masking)
    ]
    return float(np.mean(per_column))


def total_variance_ratio(masking: Masking) -> float:
    """Return the sum over the masked columns of mean (released - true)^2 / variance.

    A category that is released as a category counts by the share that changed.
    """
    return float(sum((change**2).mean() for change, _ in _changes(masking)))


def _changes(masking: Masking) -> Iterator[tuple[Floats, bool]]:
    """Yield for each masked column by how many sds its values changed, or which categories did."""
    truth, masked, found = masking.truth, masking.masked, False
    records = slice(None) if masking.kept is None else masking.kept
    touched = {*masking.card.masked, *(total for total, _ in masking.card.recomputed)}
    for name in (name for name in truth.names if name in touched):
        before, after = truth.schema[name], masked.schema[name]
        if "text" in (before.kind, after.kind) or (after.kind == "category" and before.kind != "category"):
            continue
        if after.kind == "category" and after.categories != before.categories:
            continue
        x, z = truth.floats(name)[records], masked.floats(name)[records]
        known = ~np.isnan(x) & ~np.isnan(z)
        sd = float(np.nanstd(x, ddof=1)) if np.count_nonzero(~np.isnan(x)) > 1 else 0.0
        if not known.any() or (sd == 0 and after.kind != "category"):
            continue
        found = True
        if after.kind == "category":
            yield (x[known] != z[known]).astype(np.float64), True
        else:
            yield (z[known] - x[known]) / sd, False
    if not found:
        raise BadPlan(
            "no masked column has values before and after to compare, so the loss is not defined: give a function of a "
            "masking"
        )


LOSSES: dict[str, Callable[[Masking], float]] = {IL1S: il1s, TOTAL_VARIANCE: total_variance_ratio}


def loss_of(given: Any) -> Loss:
    """Return a loss by its name, or a function of a masking as one."""
    if isinstance(given, str) and given in LOSSES:
        return Loss(given, LOSSES[given])
    if callable(given) and not isinstance(given, type):
        return Loss(getattr(given, "__name__", "loss"), given)
    hint = nearest(given, LOSSES) if isinstance(given, str) else ""
    raise BadPlan(
        f"a loss is {' or '.join(map(repr, LOSSES))}, or a function of a masking, not {given!r}{hint}"
    )

"""How numbers hang together with categories: the mean of every number in every level, before and after.

eta^2 = variance between the levels / variance (the correlation ratio, Pearson 1905), and the level whose mean moved
most in standard errors. A table of changes that keeps the shares of a category leaves every figure of the column alone
and can still make it pure noise. The means of the numbers by its levels show that, as released, not as corrected. Made
by `comparison` for every pair of which one column is masked.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ..schema import Column
from ..table import Floats
from .columns import comparable
from .pairs import TruthAndRelease
from .results import AssociationUtility

FEW_LEVELS = 30  # of a category that is looked at
FEWEST = 10  # open records of a level on both sides
Codes = npt.NDArray[np.int64]


def associations(sides: TruthAndRelease) -> tuple[AssociationUtility, ...]:
    """Compare the means of numbers by categories, for all pairs of which at least one is masked."""
    return tuple(one for column in sides.columns for one in _of_category(sides, column))


def _of_category(sides: TruthAndRelease, column: Column) -> Iterator[AssociationUtility]:
    if column.is_number or not 2 <= len(column.categories) <= FEW_LEVELS:
        return
    numbers = [name for name in sides.numbers if column.name in sides.touched or name in sides.touched]
    codes, known = comparable(column, sides) if numbers else (np.empty(0), False)
    if not known:
        return
    count = len(column.categories)
    before, after = _places(codes, count), _places(sides.after(column.name), count)
    for name in numbers:
        found = (
            _levels(sides.before(name), sides.weights, before, count),
            _levels(sides.after(name), sides.weights_after, after, count),
        )
        if (one := _largest(column, name, *found)) is not None:
            yield one


def _places(codes: Floats, count: int) -> Codes:
    """Return the levels of the records as whole numbers; what is closed comes after the last."""
    return np.where(np.isnan(codes), count, codes).astype(np.int64)


@dataclass(frozen=True, slots=True)
class _Levels:
    """A number by level: open records, means, and over all levels the sd and the share of variance between them."""

    records: Floats
    means: Floats
    sd: float
    explained: float


def _levels(values: Floats, weights: Floats | None, places: Codes, count: int) -> _Levels:
    is_open = ~np.isnan(values)
    centre = float(values[is_open].mean()) if is_open.any() else 0.0
    x = np.where(is_open, values - centre, 0.0)
    w = is_open.astype(np.float64) if weights is None else np.where(is_open, weights, 0.0)
    records = _sum_by_place(places, is_open.astype(np.float64), count)
    weight = records if weights is None else _sum_by_place(places, w, count)
    with np.errstate(divide="ignore", invalid="ignore"):
        means = _sum_by_place(places, w * x, count) / weight
        share = weight / weight.sum()
        inside = w * (places < count)
        middle = float(np.nansum(share * means))
        variance = float((inside * x) @ x / inside.sum()) - middle**2
        between = float(np.nansum(share * means**2)) - middle**2
    explained = between / variance if variance > 0 else float("nan")
    return _Levels(records, means + centre, float(np.sqrt(max(variance, 0.0))), explained)


def _sum_by_place(places: Codes, values: Floats, count: int) -> Floats:
    return np.asarray(np.bincount(places, values, count + 1)[:count])


def _largest(column: Column, name: str, before: _Levels, after: _Levels) -> Any:
    """Return the level whose mean moved most beyond chance; nothing where no level has enough records."""
    records = np.minimum(before.records, after.records)
    enough = (records >= FEWEST) & np.isfinite(before.means + after.means)
    if not enough.any() or not before.sd > 0:
        return None
    moved = np.abs(after.means - before.means) / before.sd - np.maximum(records, 1.0) ** -0.5
    at = int(np.argmax(np.where(enough, moved, -np.inf)))
    return AssociationUtility(
        category=column.name,
        column=name,
        level=column.categories[at],
        records=int(records[at]),
        mean=float(before.means[at]),
        mean_after=float(after.means[at]),
        sd=before.sd,
        explained=before.explained,
        explained_after=after.explained,
    )

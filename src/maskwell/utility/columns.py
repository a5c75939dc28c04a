"""The figures of each column, before and after, weighted where the schema has weights.

Numbers: mean, sd, quantiles, distances of distributions (`figures`), and the same corrected by the card
(`correction`). Categories: shares s, and corrected ones s M^-1 for a table of changes M (Gouweleeuw, Kooiman,
Willenborg and de Wolf 1998), where M has an inverse. Made by `comparison`.
"""

from __future__ import annotations

from math import sqrt
from typing import Any

import numpy as np
import numpy.typing as npt

from ..laws import Classes, Transition
from ..laws.chain import combined_of
from ..masking import Masking, Release
from ..notes import Note
from ..schema import Column
from ..table import Floats
from .correction import NO_CARD, NOTHING, ColumnCorrection, undoings
from .figures import (
    ColumnSpread,
    EmpiricalDistribution,
    between_shares,
    kolmogorov_smirnov,
    overlap,
)
from .hellinger import HellingerDistance, hellinger
from .pairs import TruthAndRelease
from .results import ColumnUtility

# A table of changes with a smaller singular value undoes them with errors a thousand times as large
SINGULAR = 1e-3
MANY = 0.05  # share of values at a limit beyond which a correction is told with a reservation


def column_utilities(sides: TruthAndRelease, known: dict[str, ColumnCorrection]) -> tuple[ColumnUtility, ...]:
    """Return the figures of every column that leaves and is a number or a category."""
    return tuple(
        _number(column, sides, known[column.name]) if column.is_number else _category(column, sides)
        for column in sides.columns
    )


def release_columns(release: Release) -> tuple[tuple[ColumnUtility, ...], bool]:
    """Return the figures of a release and its card alone, as any reader can compute them, and whether it has weights.

    What is said there of the truth is said of the release itself: a reader has nothing else.
    """
    sides = TruthAndRelease(Masking(release.table, release.table, release.card))
    return column_utilities(sides, undoings(sides)), sides.weights is not None


def _number(column: Column, sides: TruthAndRelease, undoing: ColumnCorrection) -> ColumnUtility:
    name = column.name
    before, after = sides.before(name), sides.after(name)
    spread, ordered = ColumnSpread.of(before, sides.weights), EmpiricalDistribution.of(before, sides.weights)
    same = after is before and sides.weights_after is sides.weights
    spread_after = spread if same else ColumnSpread.of(after, sides.weights_after)
    ordered_after = ordered if same else EmpiricalDistribution.of(after, sides.weights_after)
    mean, variance = undoing.moments(spread_after.mean, spread_after.sd**2)
    apart = HellingerDistance(0.0, 0.0)
    if not same:
        apart = hellinger(before, after, sides.weights, sides.weights_after, sides.rows)
    why = undoing.why_not
    if variance <= 0 and undoing.by != NOTHING:
        variance, why = float("nan"), "the noise is larger than what is left: the variance comes out below 0"
    return ColumnUtility(
        **_common(column, sides),
        mean=spread.mean,
        mean_after=spread_after.mean,
        mean_corrected=mean,
        mean_error=spread.error,
        mean_error_after=spread_after.error,
        overlap=overlap((spread.mean, spread.error), (spread_after.mean, spread_after.error)),
        sd=spread.sd,
        sd_after=spread_after.sd,
        sd_corrected=sqrt(variance) if variance >= 0 else float("nan"),
        quantiles=ordered.quantiles(),
        quantiles_after=ordered_after.quantiles(),
        ks=0.0 if same else kolmogorov_smirnov(ordered, ordered_after),
        hellinger=apart.value,
        hellinger_chance=apart.chance,
        corrected_by=undoing.by,
        why_not=why,
        notes=_limit_warning(name, undoing),
    )


def _limit_warning(name: str, undoing: ColumnCorrection) -> tuple[Note, ...]:
    """Say so where a correction leans on many values that limits cut off."""
    if undoing.why_not or undoing.at_limit <= MANY:
        return ()
    return (Note("utility.values_at_limit", {"name": name, "share": undoing.at_limit}),)


def _common(column: Column, sides: TruthAndRelease) -> dict[str, Any]:
    """Return what numbers and categories have in common."""
    name = column.name
    truth, released = sides.truth, sides.released
    return {
        "name": name,
        "kind": column.kind,
        "masked": name in sides.touched,
        "open_share": _open(truth.closed.get(name), len(truth)),
        "records": len(released) - int(np.count_nonzero(released.closed.get(name, ()))),
        "open_share_after": _open(released.closed.get(name), len(released)),
        "changed": _changed_share(column, sides),
    }


def _open(status: npt.NDArray[np.uint8] | None, count: int) -> float:
    return 1.0 if status is None else 1 - float(np.count_nonzero(status)) / max(count, 1)


def _changed_share(column: Column, sides: TruthAndRelease) -> float:
    """Return the share of the records, open on both sides, that have another value."""
    if column.name not in sides.touched:
        return 0.0
    x, z = comparable(column, sides)[0][sides.rows], sides.after(column.name)
    both = ~np.isnan(x) & ~np.isnan(z)
    return float((x[both] != z[both]).mean()) if both.any() else float("nan")


def comparable(column: Column, sides: TruthAndRelease) -> tuple[Floats, bool]:
    """Return the true values in the terms of the release (its classes, its categories), and whether that can be."""
    before, after = sides.truth.schema[column.name], column
    x = sides.before(column.name)
    if after.kind != "category" or (before.kind == "category" and before.categories == after.categories):
        return x, True
    law = combined_of(sides.masking.card.law_of(column.name))
    if isinstance(law, Classes):
        return law.draw(x[:, None], None)[:, 0], True  # type: ignore[arg-type]
    if isinstance(law, Transition) and law.true == before.categories:
        return law.likeliest(x), law.is_sure
    if before.kind == "category":
        places = {label: i for i, label in enumerate(after.categories)}
        turned = np.array([places.get(label, np.nan) for label in before.categories], np.float64)
        known = ~np.isnan(x)
        out = np.full(len(x), np.nan)
        out[known] = turned[x[known].astype(np.int64)]
        return out, set(before.categories) <= set(after.categories)
    return np.full(len(x), np.nan), False


def _category(column: Column, sides: TruthAndRelease) -> ColumnUtility:
    x, is_comparable = comparable(column, sides)
    z, count = sides.after(column.name), len(column.categories)
    shares = _shares(x, sides.weights, count)
    after = _shares(z, sides.weights_after, count)
    corrected, by, why = _undone(column, sides, after)
    notes = () if is_comparable else (Note("utility.no_counterpart"),)
    if is_comparable and sides.truth.schema[column.name].kind != "category":
        notes = (Note("utility.number_in_classes"),)
    return ColumnUtility(
        **_common(column, sides),
        hellinger=between_shares(shares, after),
        total_variation=float(np.abs(shares - after).sum()) / 2,
        shares=_shares_by_category(column, shares),
        shares_after=_shares_by_category(column, after),
        shares_corrected=corrected,
        corrected_by=by,
        why_not=why,
        notes=notes,
    )


def _shares(codes: Floats, weights: Floats | None, count: int) -> Floats:
    known = ~np.isnan(codes)
    counted = np.bincount(
        codes[known].astype(np.int64), None if weights is None else weights[known], minlength=count
    )
    return counted / max(float(counted.sum()), 1e-300)


def _shares_by_category(column: Column, shares: Floats) -> dict[str, float]:
    return dict(zip(column.categories, map(float, shares), strict=True))


def _undone(column: Column, sides: TruthAndRelease, after: Floats) -> tuple[dict[str, float], str, str]:
    """Return the shares of the true categories that the card's table of changes implies (Gouweleeuw et al. 1998)."""
    law = combined_of(sides.masking.card.law_of(column.name))
    if column.name not in sides.touched and not isinstance(
        law, Transition
    ):  # of a release alone nothing is touched
        return _shares_by_category(column, after), "nothing to correct", ""
    if law is None:
        swapped = sides.masking.card.swapped
        if swapped is not None and column.name in swapped.columns:
            return _shares_by_category(column, after), "nothing to correct", ""
        return {}, "", NO_CARD
    if not isinstance(law, Transition):
        return {}, "", "" if isinstance(law, Classes) else "its law has no table of changes to undo"
    matrix = np.array(law.matrix)
    if law.is_sure:
        return {}, "nothing to correct", ""
    sizes = np.linalg.svd(matrix, compute_uv=False)
    if matrix.shape[0] > matrix.shape[1] or sizes[-1] < SINGULAR:
        return {}, "", "its table of changes cannot be undone: some true categories leave alike"
    found = np.linalg.lstsq(matrix.T, after, rcond=None)[0]
    return dict(zip(law.true, map(float, found), strict=True)), "the table of changes", ""

"""A few figures on what masking did to each column, for the steward's screen."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..engines.local import Local
from ..laws import Additive, SkewedBias
from ..laws.chain import combined_of
from ..table import Floats
from .results import Masking


@dataclass(frozen=True, slots=True)
class ColumnFigures:
    """One masked column, its open values in the released records.

    `clamped` counts the values that noise carried to a limit or a code, which is what moves a mean;
    `negative` those now below zero in a column that had none; `unchanged` those that left as they were, because
    the noise is small against the unit;
    means and sds of too few values are NaN; `noise_sd` is None where the size of the noise depends on the value.
    """

    column: str
    open: int
    mean: float
    mean_after: float
    sd: float
    sd_after: float
    noise_sd: float | None
    clamped: int
    negative: int
    unchanged: int


def column_figures(masking: Masking) -> list[ColumnFigures]:
    """Return figures for every masked column that is a number in the release (codes by their numbers).

    They are about the noise: records that were exchanged afterwards are compared as they were before.
    """
    totals = [total for total, _ in masking.card.recomputed]
    names = [name for name in (*masking.card.columns, *totals) if masking.masked.schema[name].is_number]
    if not names:
        return []
    kept = slice(None) if masking.kept is None else masking.kept
    x, z = masking.truth.values(names)[kept], masking.unswapped.values(names)[kept]
    before, after = Local().moments(x), Local().moments(z)
    return [
        ColumnFigures(
            column=name,
            open=int(before.counts[j]),
            mean=_figure_or_nan(before.means[j], before.counts[j] > 0),
            mean_after=_figure_or_nan(after.means[j], after.counts[j] > 0),
            sd=_figure_or_nan(before.sds[j], before.counts[j] > 1),
            sd_after=_figure_or_nan(after.sds[j], after.counts[j] > 1),
            noise_sd=noise_sd(masking, name),
            clamped=_censored_count(masking, name, x[:, j], z[:, j]),
            negative=int(np.count_nonzero(z[:, j] < 0)) if before.low[j] >= 0 else 0,
            unchanged=int(np.count_nonzero(z[:, j] == x[:, j])),
        )
        for j, name in enumerate(names)
    ]


def _figure_or_nan(figure: float, is_defined: bool) -> float:
    return float(figure) if is_defined else float("nan")


def _censored_count(masking: Masking, name: str, x: Floats, z: Floats) -> int:
    """Count open values that stand at a limit where the true value does not, or that became a code."""
    law = combined_of(masking.card.law_of(name))
    if not isinstance(law, Additive | SkewedBias):
        return 0
    outlet = law.outlets[law.columns.index(name)]
    became_code = ~np.isnan(x) & np.isnan(z)
    at_limit = np.isin(z, [end for end in (outlet.low, outlet.high) if end is not None]) & (z != x)
    return int(np.count_nonzero(became_code | at_limit))


def noise_sd(masking: Masking, name: str) -> float | None:
    """Return the sd of a column's noise in the data's units, where it does not depend on the value."""
    law = combined_of(masking.card.law_of(name))
    if not isinstance(law, Additive) or any(law.spreads):
        return None
    j = law.columns.index(name)
    if law.outlets[j].log_shift is not None:
        return None
    return float(np.sqrt(law.noise.covariance[j, j]))

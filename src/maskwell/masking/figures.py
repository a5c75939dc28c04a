"""A few figures on what masking did to each column, for the steward's screen."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..engines.local import Local
from ..laws import Additive
from ..laws.chained import combined_of
from .results import Masking


@dataclass(frozen=True, slots=True)
class ColumnFigures:
    """One masked column: open values, mean and sd before and after, and the sd of the noise where it has one."""

    column: str
    open: int
    mean: float
    mean_after: float
    sd: float
    sd_after: float
    noise_sd: float | None


def column_figures(masking: Masking) -> list[ColumnFigures]:
    """Return figures for every masked column that is a number before and after (categories by their codes)."""
    released = masking.masked.schema
    names = [
        name
        for name in (*masking.card.columns, *(total for total, _ in masking.card.recomputed))
        if released[name].is_number or masking.truth.schema[name].kind == released[name].kind == "category"
    ]
    if not names:
        return []
    kept = slice(None) if masking.kept is None else masking.kept
    before = Local().moments(masking.truth.values(names)[kept])
    after = Local().moments(masking.masked.values(names)[kept])
    figures = []
    for j, name in enumerate(names):
        mean, mean_after = float(before.means[j]), float(after.means[j])
        sd, sd_after = float(before.sds[j]), float(after.sds[j])
        count = int(before.counts[j])
        figures.append(ColumnFigures(name, count, mean, mean_after, sd, sd_after, noise_sd(masking, name)))
    return figures


def noise_sd(masking: Masking, name: str) -> float | None:
    """Return the sd of a column's noise in the data's units, where it does not depend on the value."""
    law = combined_of(masking.card.law_of(name))
    if not isinstance(law, Additive) or any(law.spreads):
        return None
    j = law.columns.index(name)
    if law.outlets[j].log_shift is not None:
        return None
    return float(np.sqrt(law.noise.covariance[j, j]))

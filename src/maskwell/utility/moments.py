"""Pairwise moments of many columns at once, each pair over the records where both are open.

cov_ij = sum over records open in both of w (x_i - m_ij)(x_j - m_ji) / sum of w, summed about a centre near the means so
that no digits are lost (Chan, Golub and LeVeque 1983). Used by `comparison`, `correction` and `noise_covariance`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from ..table import Floats

CHUNK = 65_536  # records at a time, so that a million records need no copies of all their columns


@dataclass(frozen=True, slots=True)
class PairwiseMoments:
    """For each pair of columns over the records where both are open: weight, means and (co)variances.

    `means[i, j]` and `variances[i, j]` are those of column i over the records where column j is open too.
    """

    records: Floats
    means: Floats
    variances: Floats
    covariances: Floats

    @property
    def correlations(self) -> Floats:
        """The correlation of each pair, not a number where one does not vary."""
        return correlations(self.covariances, self.variances)


def correlations(covariances: Floats, variances: Floats) -> Floats:
    """Return covariances over the roots of both variances, each over the same records."""
    with np.errstate(divide="ignore", invalid="ignore"):
        found = covariances / np.sqrt(variances * variances.T)
    found = np.where((variances > 0) & (variances.T > 0), found, np.nan)
    here = np.isfinite(np.diag(found))
    found[here, here] = 1.0
    return np.asarray(found)


def pairwise_moments(
    names: Sequence[str], of: Callable[[str], Floats], weights: Floats | None, centres: Floats
) -> PairwiseMoments:
    """Sum the moments over chunks of records, about given centres (any near the means keeps the digits)."""
    columns, width = [of(name) for name in names], len(names)
    count = len(columns[0]) if columns else 0
    sums = [np.zeros((width, width)) for _ in range(5)]
    for start in range(0, count, CHUNK):
        part = slice(start, start + CHUNK)
        x = np.column_stack([column[part] for column in columns]) - centres
        is_open = ~np.isnan(x)
        x[~is_open] = 0.0
        seen = is_open.astype(np.float64)
        w = seen if weights is None else seen * weights[part, None]
        wx = x if weights is None else x * weights[part, None]
        for total, (left, right) in zip(
            sums, ((seen, seen), (w, seen), (wx, seen), (wx * x, seen), (wx, x)), strict=True
        ):
            total += left.T @ right
    return _of_sums(sums, centres)


def _of_sums(sums: list[Floats], centres: Floats) -> PairwiseMoments:
    records, weight, first, second, product = sums
    with np.errstate(divide="ignore", invalid="ignore"):
        means = first / weight
        free = np.where(records > 1, records / (records - 1), np.nan)
        variances = np.maximum(second / weight - means**2, 0.0) * free
        covariances = (product / weight - means * means.T) * free
    return PairwiseMoments(records, means + centres[:, None], variances, covariances)

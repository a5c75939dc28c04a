"""Weighted figures of one column: mean, spread, quantiles, and how far two distributions lie apart.

Kolmogorov and Smirnov's distance max |F - G|; Hellinger's sqrt(1 - sum of sqrt(p q)) over classes of equal shares of
the first; the overlap of intervals (Karr, Kohnen, Oganian, Reiter and Sanil 2006). The error of a weighted mean is that
of its linear part (Cochran 1977, section 6.3). Used by `columns`, `domains` and `models`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from math import isfinite, sqrt
from typing import Any

import numpy as np

from ..notes import Note
from ..table import Floats

PROBABILITIES = (0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95)  # of the quantiles that are told
REACH = 1.959963984540054  # half the width of a 95% interval, in standard errors


@dataclass(frozen=True)
class EmpiricalDistribution:
    """The open values of a column in ascending order, and the share of the weight up to each."""

    values: Floats
    shares: Floats  # one more than values: 0 first

    @classmethod
    def of(cls, values: Floats, weights: Floats | None) -> EmpiricalDistribution:
        """Sort the open values."""
        is_open = ~np.isnan(values)
        values = values[is_open]
        if weights is None:
            return cls(np.sort(values), np.arange(len(values) + 1) / max(len(values), 1))
        order = np.argsort(values, kind="stable")
        shares = np.append(0.0, np.cumsum(weights[is_open][order]))
        return cls(values[order], shares / shares[-1] if shares[-1] > 0 else shares)

    def __len__(self) -> int:
        return len(self.values)

    def up_to(self, points: Floats) -> Floats:
        """Return the share of the weight at or below each point."""
        return np.asarray(self.shares[np.searchsorted(self.values, points, side="right")])

    def quantiles(self, probabilities: tuple[float, ...] = PROBABILITIES) -> tuple[float, ...]:
        """Return the smallest values that have at least such a share at or below them."""
        if not len(self):
            return (float("nan"),) * len(probabilities)
        places = np.searchsorted(self.shares[1:], np.array(probabilities) - 1e-12, side="left")
        return tuple(map(float, self.values[np.minimum(places, len(self) - 1)]))

    @cached_property
    def steps(self) -> Floats:
        """Where the distribution function can change: its distinct values."""
        if not len(self):
            return self.values
        return np.asarray(self.values[np.append(True, np.diff(self.values) > 0)])


def kolmogorov_smirnov(first: EmpiricalDistribution, second: EmpiricalDistribution) -> float:
    """Return the largest difference of two distribution functions."""
    if not len(first) or not len(second):
        return float("nan")
    return max(
        float(np.abs(first.up_to(points) - second.up_to(points)).max())
        for points in (first.steps, second.steps)
    )


def between_shares(first: Floats, second: Floats) -> float:
    """Return the Hellinger distance of two lists of shares: 0 the same, 1 nothing in common."""
    affinity = float(np.sqrt(np.maximum(first, 0.0) * np.maximum(second, 0.0)).sum())
    return sqrt(max(0.0, 1.0 - affinity))


@dataclass(frozen=True, slots=True)
class ColumnSpread:
    """Mean and sd of the open values, and the standard error of the mean."""

    mean: float
    sd: float
    error: float
    open: int

    @classmethod
    def of(cls, values: Floats, weights: Floats | None) -> ColumnSpread:
        """Compute them, weighted where there are weights."""
        is_open = ~np.isnan(values)
        count = int(is_open.sum())
        if count < 2:
            return cls(float(values[is_open][0]) if count else float("nan"), *(float("nan"),) * 2, count)
        x = values[is_open]
        if weights is None:
            sd = float(x.std(ddof=1))
            return cls(float(x.mean()), sd, sd / sqrt(count), count)
        w = weights[is_open]
        total = float(w.sum())
        if total <= 0:
            return cls(*(float("nan"),) * 3, count)
        mean = float(w @ x) / total
        apart = x - mean
        sd = sqrt(float(w @ apart**2) / total * count / (count - 1))
        return cls(mean, sd, sqrt(float((w * apart) @ (w * apart))) / total, count)


def overlap(first: tuple[float, float], second: tuple[float, float]) -> float:
    """Return how far two 95% intervals (estimate, standard error) overlap: 1 the same, 0 apart.

    The mean over both of the share of each that lies in the other (Karr, Kohnen, Oganian, Reiter and Sanil 2006).
    """
    return float(overlaps(*(np.array([value]) for value in (*first, *second)))[0])


def overlaps(mean: Floats, error: Floats, other: Floats, other_error: Floats) -> Floats:
    """Return the overlap of many pairs of 95% intervals."""
    reach, other_reach = REACH * error, REACH * other_error
    shared = np.minimum(mean + reach, other + other_reach) - np.maximum(mean - reach, other - other_reach)
    with np.errstate(divide="ignore", invalid="ignore"):
        share = (shared / (2 * reach) + shared / (2 * other_reach)) / 2
    points = (error == 0) | (other_error == 0)
    share = np.where(points, (mean == other).astype(np.float64), np.maximum(share, 0.0))
    unknown = np.isnan(mean + error + other + other_error)
    return np.where(unknown, np.nan, share)


def flat(value: Mapping[str, Any]) -> dict[str, Any]:
    """Return a mapping as `plain` data."""
    return {str(key): plain(entry) for key, entry in value.items()}


def plain(value: Any) -> Any:
    """Return data that JSON can hold: lists and texts, and nothing in place of what is not a finite number."""
    if isinstance(value, Note):
        value = value.to_dict()
    if isinstance(value, Mapping):
        return flat(value)
    if isinstance(value, list | tuple | np.ndarray):
        return [plain(entry) for entry in value]
    if isinstance(value, bool | np.bool_):
        return bool(value)
    if isinstance(value, int | np.integer):
        return int(value)
    if isinstance(value, float | np.floating):
        return float(value) if isfinite(value) else None
    return value

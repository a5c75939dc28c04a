"""How far two distributions lie apart by Hellinger, over classes, with what chance alone makes taken off.

With shares p_k of the truth and q_k of the release in K classes, H^2 = 1 - sum_k sqrt(p_k q_k), which near p = q is
sum_k (p_k - q_k)^2 / (8 p_k). Where both have one distribution, chance alone makes

    E H^2 = sum_k Var(p_k - q_k) / (8 p_k), for independent samples of n and m records (K - 1) / 8 (1 / n + 1 / m),

and (8 / (1 / n + 1 / m)) H^2 is about chi-squared with K - 1 degrees of freedom, so that its sd is sqrt(2 / (K - 1))
times the mean. A release has the records of its truth: of Var(p_k - q_k) only those count that changed their class, by
the sum over records of (a_i (1{x_i in k} - p_k) - b_i (1{z_i in k} - q_k))^2, a_i and b_i the weights, each of sum 1.
What is told is sqrt(max(0, H^2 - E H^2)). Two classes cut at the median see no symmetric noise, hence at least ten,
by quantiles of both samples.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt

import numpy as np
import numpy.typing as npt

from ..table import Floats
from .figures import EmpiricalDistribution

Codes = npt.NDArray[np.int64]
LEAST_CLASSES, MOST_CLASSES, PER_CLASS = 10, 50, 100


@dataclass(frozen=True, slots=True)
class HellingerDistance:
    """The distance beyond chance, and the distance that one sd of chance alone makes."""

    value: float
    chance: float


@dataclass(frozen=True, slots=True)
class _Sample:
    """The class of each record (-1: no open value) and the share of all weight that it has."""

    codes: Codes
    weights: Floats

    @classmethod
    def of(cls, values: Floats, weights: Floats | None, edges: Floats) -> _Sample:
        is_open = ~np.isnan(values)
        own = is_open.astype(np.float64) if weights is None else np.where(is_open, weights, 0.0)
        codes = np.where(is_open, np.searchsorted(edges, values, side="left"), -1)
        return cls(codes, own / max(float(own.sum()), 1e-300))

    def sums(self, weights: Floats, count: int) -> Floats:
        """Return the sum of such weights in each class."""
        is_open = self.codes >= 0
        found: Floats = np.bincount(self.codes[is_open], weights[is_open], minlength=count).astype(np.float64)
        return found


def hellinger(
    before: Floats,
    after: Floats,
    weights: Floats | None = None,
    weights_after: Floats | None = None,
    rows: npt.NDArray[np.int64] | slice = slice(None),
) -> HellingerDistance:
    """Return the Hellinger distance of true and released values; `rows` are those of the truth that were released.

    A value that many records share has a class of its own; the classes at both ends are open.
    """
    first, second = EmpiricalDistribution.of(before, weights), EmpiricalDistribution.of(after, weights_after)
    if not len(first) or not len(second):
        return HellingerDistance(float("nan"), float("nan"))
    edges = _edges(first, second)
    count = len(edges) + 1
    truth, release = _Sample.of(before, weights, edges), _Sample.of(after, weights_after, edges)
    p, q = truth.sums(truth.weights, count), release.sums(release.weights, count)
    expected = float((_variances(truth, release, p, q, rows) / np.maximum(p + q, 1e-300)).sum()) / 4
    chance = expected * sqrt(2 / max(count - 1, 1))
    squared = float(((np.sqrt(p) - np.sqrt(q)) ** 2).sum()) / 2
    return HellingerDistance(sqrt(max(squared - expected, 0.0)), sqrt(chance))


def _edges(first: EmpiricalDistribution, second: EmpiricalDistribution) -> Floats:
    """Return the upper ends of all classes but the last: quantiles of both together, and values that are many."""
    count = int(np.clip(min(len(first), len(second)) // PER_CLASS, LEAST_CLASSES, MOST_CLASSES))
    probabilities = tuple(np.arange(1, count) / count)
    values = np.concatenate([first.values, second.values])
    shares = np.concatenate([np.diff(first.shares), np.diff(second.shares)])
    inner = np.unique(EmpiricalDistribution.of(values, shares).quantiles(probabilities))
    candidates = np.unique(np.concatenate([one.quantiles(probabilities) for one in (first, second)]))
    is_spike = np.logical_or(*(_mass_at(one, candidates) > 1 / count for one in (first, second)))
    spikes = candidates[is_spike]
    edges = np.unique(np.concatenate([inner, spikes, np.nextafter(spikes, -np.inf)]))
    return np.asarray(edges[edges < values.max()])


def _mass_at(one: EmpiricalDistribution, points: Floats) -> Floats:
    return one.up_to(points) - one.up_to(np.nextafter(points, -np.inf))


def _variances(
    truth: _Sample, release: _Sample, p: Floats, q: Floats, rows: npt.NDArray[np.int64] | slice
) -> Floats:
    """Return the variance of the difference of both shares of each class, each record counted on both sides."""
    own = _own_variances(truth, p) + _own_variances(release, q)
    codes, both = truth.codes[rows], truth.weights[rows] * release.weights
    is_same = codes == release.codes
    count = len(p)
    paired = _Sample(np.where(is_same, codes, -1), both)
    x, z = _Sample(codes, both), _Sample(release.codes, both)
    shared = paired.sums(both, count) - q * x.sums(both, count) - p * z.sums(both, count) + p * q * both.sum()
    return np.asarray(np.maximum(own - 2 * shared, 0.0))


def _own_variances(one: _Sample, shares: Floats) -> Floats:
    squares = one.weights**2
    return np.asarray(one.sums(squares, len(shares)) * (1 - 2 * shares) + shares**2 * squares.sum())

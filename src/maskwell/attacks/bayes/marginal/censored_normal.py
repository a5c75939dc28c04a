"""A normal law of amounts of which some lie beyond limits, where only the limit is seen: fitted by maximum likelihood.

Means and sds come from each column by itself: the log likelihood is the sum of log densities of values seen and of log
tail probabilities of the others (Tobin 1958), concave in 1 / sd and mean / sd (Olsen 1978). A correlation comes from
its pair of columns, given these. Chosen by `released_density` where a released column has values at a limit; else
plain moments do.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ....table import Floats
from ...protocol import Bools, Ints

SEEN, BELOW, ABOVE, UNSEEN = 0, 1, 2, 3
NEARLY_ONE = 1.0 - 1e-9  # the largest correlation that is tried
MOST_STEPS = 200  # of Newton, halved where the likelihood falls
SETTLED = 1e-10  # change of the parameters that ends the steps


@dataclass(frozen=True, slots=True)
class Partly:
    """Records x columns of amounts: values where they were seen, and on which side of a limit the others lie.

    `side` is 0 for seen values, 1 below the lower limit, 2 above the upper one, 3 where nothing is known; `edges` has
    the two limits of each column.
    """

    values: Floats
    side: Ints
    edges: Floats

    def moments(self) -> tuple[Floats, Floats]:
        """Return the mean and the covariance; where nothing lies beyond a limit, those of pairs that were seen."""
        mean, covariance = _seen_moments(self.values, self.side == SEEN)
        cut = np.flatnonzero(self._is_cut()).tolist()
        if not cut:
            return mean, covariance
        sds = np.sqrt(np.diag(covariance))
        correlations = covariance / np.maximum(np.outer(sds, sds), 1e-300)
        for j in cut:
            mean[j], sds[j] = self._alone(j, mean[j], sds[j])
        for j in cut:
            for i in range(len(mean)):
                if i != j and sds[i] > 0:
                    at = np.array([i, j])
                    scaled = (self.values[:, at] - mean[at]) / sds[at]
                    found = _correlation(scaled, self.side[:, at], (self.edges[:, at] - mean[at]) / sds[at])
                    correlations[i, j] = correlations[j, i] = found
        np.fill_diagonal(correlations, 1.0)
        return mean, np.where(np.eye(len(sds), dtype=bool), sds**2, correlations * np.outer(sds, sds))

    def _is_cut(self) -> Bools:
        """Return the columns of which some values were seen and some lie beyond a limit."""
        beyond = ((self.side == BELOW) | (self.side == ABOVE)).any(axis=0)
        return np.asarray(beyond & (self.side == SEEN).any(axis=0))

    def _alone(self, j: int, mean: float, sd: float) -> tuple[float, float]:
        side = self.side[:, j]
        seen = self.values[side == SEEN, j]
        scale = sd if sd > 0 else float(np.abs(self.edges[:, j] - mean).min())
        if scale == 0:
            return mean, sd
        counts = [int((side == which).sum()) for which in (SEEN, BELOW, ABOVE)]
        inside = (seen - mean) / scale
        centre, spread = _one_column(counts, float(inside.var()), (self.edges[:, j] - mean) / scale)
        return mean + scale * centre, scale * spread


def _seen_moments(values: Floats, seen: Bools) -> tuple[Floats, Floats]:
    mean = np.where(seen, values, 0.0).sum(axis=0) / np.maximum(seen.sum(axis=0), 1)
    centred, present = np.where(seen, values - mean, 0.0), seen.astype(np.float64)
    return mean, centred.T @ centred / np.maximum(present.T @ present, 1.0)


def _one_column(counts: Sequence[int], variance: float, edges: Floats) -> tuple[float, float]:
    """Return the mean and sd of largest likelihood; values that were seen have mean 0 and a given variance.

    In t = 1 / sd and g = mean / sd the log likelihood is concave (Olsen 1978): damped Newton steps find its top.
    """
    at = np.array([1.0, 0.0])
    value, slope, bend = _likelihood(at, counts, variance, edges)
    for _ in range(MOST_STEPS):
        step = -np.linalg.solve(bend, slope)
        size = min(1.0, 0.9 * at[0] / -step[0]) if step[0] < 0 else 1.0
        while (new := _likelihood(at + size * step, counts, variance, edges))[0] < value and size > SETTLED:
            size /= 2
        moved = float(np.abs(size * step).max())
        at, (value, slope, bend) = at + size * step, new
        if moved < SETTLED:
            break
    return float(at[1] / at[0]), float(1.0 / at[0])


def _likelihood(
    at: Floats, counts: Sequence[int], variance: float, edges: Floats
) -> tuple[float, Floats, Floats]:
    """Return the log likelihood of (1 / sd, mean / sd), its slope and its second derivatives."""
    from scipy.special import log_ndtr

    seen, (t, g) = counts[0], at
    value = seen * (np.log(t) - 0.5 * (t**2 * variance + g**2))
    slope = seen * np.array([1.0 / t - t * variance, -g])
    bend = -seen * np.array([[1.0 / t**2 + variance, 0.0], [0.0, 1.0]])
    for count, edge, sign in zip(counts[1:], edges, (1.0, -1.0), strict=True):
        if count:
            inner = sign * (t * edge - g)
            log = float(log_ndtr(inner))
            mills = np.exp(-0.5 * inner**2 - 0.5 * np.log(2.0 * np.pi) - log)
            along = sign * np.array([edge, -1.0])
            value += count * log
            slope = slope + count * mills * along
            bend = bend - count * mills * (inner + mills) * np.outer(along, along)
    return float(value), slope, bend


def _correlation(scaled: Floats, side: Ints, edges: Floats) -> float:
    """Return the correlation of largest likelihood of two columns in units of their own sds."""
    from scipy.optimize import minimize_scalar

    known = (side != UNSEEN).all(axis=1)
    if not known.any():
        return 0.0
    pairs = CensoredPairs.of(scaled[known], side[known], edges)
    ends = -NEARLY_ONE, NEARLY_ONE
    found = minimize_scalar(pairs.minus_log, bounds=ends, method="bounded", options={"xatol": 1e-7})
    return float(found.x)


@dataclass(frozen=True, slots=True)
class CensoredPairs:
    """What the likelihood of a correlation needs: moments of pairs seen, values beside a limit, counts of the rest.

    `single` has values with the interval in which the other column lies; `unseen` how often both lie in intervals.
    """

    count: int
    squares: float
    product: float
    single: tuple[tuple[Floats, float, float], ...]
    unseen: tuple[tuple[int, Floats, Floats], ...]

    @classmethod
    def of(cls, scaled: Floats, side: Ints, edges: Floats) -> CensoredPairs:
        """Sort pairs of values by the sides on which they lie."""
        both = scaled[(side == SEEN).all(axis=1)]
        beyond = (BELOW, ABOVE)
        single, unseen = [], []
        for which in beyond:
            for j in (0, 1):
                here = (side[:, j] == which) & (side[:, 1 - j] == SEEN)
                if here.any():
                    single.append((scaled[here, 1 - j], *_interval(which, edges[:, j])))
            for other in beyond:
                count = int(((side[:, 0] == which) & (side[:, 1] == other)).sum())
                ends = np.array([_interval(which, edges[:, 0]), _interval(other, edges[:, 1])])
                if count:
                    unseen.append((count, ends[:, 0], ends[:, 1]))
        squares, product = float((both**2).sum()), float((both[:, 0] * both[:, 1]).sum())
        return cls(len(both), squares, product, tuple(single), tuple(unseen))

    def minus_log(self, correlation: float) -> float:
        """Return minus the log likelihood of a correlation."""
        from ....kernels.densities import normal_log_interval
        from ....kernels.normal_box import conditional_rectangle

        rest = 1.0 - correlation**2
        total = 0.5 * self.count * np.log(rest) + 0.5 * (self.squares - 2 * correlation * self.product) / rest
        for values, low, high in self.single:
            sds = np.full(len(values), np.sqrt(rest))
            total -= normal_log_interval(low - correlation * values, high - correlation * values, sds).sum()
        matrix = np.array([[1.0, correlation], [correlation, 1.0]])
        for count, lower, upper in self.unseen:
            ends = lower[None], lower[None], upper[None]
            total -= count * conditional_rectangle(*ends, matrix, np.zeros(2, bool))[0][0]
        return float(total)


def _interval(which: int, edges: Floats) -> tuple[float, float]:
    return (-np.inf, float(edges[0])) if which == BELOW else (float(edges[1]), np.inf)

"""The distribution of true values estimated from that of released ones and the law of the noise, by EM.

The released values are counted on a grid that is fine against the noise, values at a limit apart. The share of each
true value on the grid then follows by the EM algorithm for mixtures with known components (Laird 1978), from the
released distribution on. Mean and sd of such an estimate settle long before its bumps do, and are all that is used.
Chosen by `correction` where moments do not correct.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..laws import SkewedBias
from ..laws.unknowns import of_columns
from ..table import Floats

STEPS, SETTLED = 400, 1e-7  # at most so many; until the mean and sd move by less than this share of the sd
FINEST, COARSEST = 5.0, 2.0  # cells of the grid within one sd of the noise: wanted, and at least
MOST_CELLS = 900  # of the grid: EM works on cells x cells


@dataclass(frozen=True, slots=True)
class DeconvolvedMoments:
    """Mean and variance of the true values, and cov(released, true) over the variance of the true ones."""

    mean: float
    variance: float
    keeps: float


def unmix(law: Any, j: int, values: Floats, weights: Floats | None) -> DeconvolvedMoments | None:
    """Estimate the moments of the true values of a column; nothing where the grid cannot be fine enough."""
    if len(values) < 2 or not np.ptp(values) > 0:
        return None
    alone, outlet = of_columns(law, [j]), law.outlets[j]
    edges = _edges(alone, values, outlet)
    if edges is None:
        return None
    points, counts, centres = _count_cells(values, weights, edges, outlet)
    pairs = np.repeat(points, len(centres))[:, None], np.tile(centres, len(points))[:, None]
    density = alone.logpdf(*pairs).reshape(len(points), len(centres))
    highest = density.max(axis=1, keepdims=True)
    reached = np.isfinite(highest[:, 0])
    density = np.exp(density[reached] - highest[reached])
    return _em_moments(density, counts[reached], points[reached], centres)


def _edges(law: Any, values: Floats, outlet: Any) -> Floats | None:
    """Return the edges of the cells, equal on the scale where noise is added."""
    low, high = float(values.min()), float(values.max())
    shift = outlet.log_shift
    ends = (
        np.array([low, high]) if shift is None else np.log(np.maximum(np.array([low, high]) + shift, 1e-300))
    )
    sd = _noise_sd(law, values)
    cells = int(np.ceil(FINEST * (ends[1] - ends[0]) / sd)) if sd > 0 else MOST_CELLS + 1
    if cells > MOST_CELLS:
        cells = MOST_CELLS
        if not sd > 0 or (ends[1] - ends[0]) / cells > sd / COARSEST:
            return None
    grid = np.linspace(ends[0], ends[1], max(cells, 20) + 1)
    return np.asarray(grid if shift is None else np.exp(grid) - shift)


def _noise_sd(law: Any, values: Floats) -> float:
    """Return the size of the noise of most values: a lower quartile where it depends on the value."""
    if isinstance(law, SkewedBias):
        return float(np.quantile(np.hypot(law.sds[0], law.bias_sd * values), 0.25))
    sd = float(np.sqrt(law.noise.covariance[0, 0])) / law.slope
    spread = law.spreads[0] if law.spreads else None
    return float(sd if spread is None else sd * np.quantile(spread.factor(values), 0.25))


def _count_cells(
    values: Floats, weights: Floats | None, edges: Floats, outlet: Any
) -> tuple[Floats, Floats, Floats]:
    """Count released values by cell, those at a limit apart, and return the points that stand for the cells."""
    w = np.ones(len(values)) if weights is None else weights
    inner = np.ones(len(values), bool)
    points, counts = [], []
    for limit in (outlet.low, outlet.high):
        at = values == limit if limit is not None else np.zeros(len(values), bool)
        if at.any():
            points.append(float(limit))
            counts.append(float(w[at].sum()))
        inner &= ~at
    cell = np.clip(np.searchsorted(edges, values[inner], side="right") - 1, 0, len(edges) - 2)
    held = np.bincount(cell, w[inner], len(edges) - 1)
    centres = (edges[1:] + edges[:-1]) / 2
    stand = _on_unit(centres, outlet)
    some = held > 0
    found = np.concatenate([points, stand[some]]), np.concatenate([counts, held[some]])
    return found[0], found[1] / found[1].sum(), centres


def _on_unit(centres: Floats, outlet: Any) -> Floats:
    """Put the points of cells on the released unit, within the limits and off codes: where values can stand."""
    if outlet.unit is None:
        return centres
    from ..laws.transform import on_unit

    points, unit = on_unit(centres, outlet.unit), float(outlet.unit)
    if outlet.low is not None:
        points = np.where(
            points <= outlet.low, points + unit * (1 + np.rint((outlet.low - points) / unit)), points
        )
    if outlet.high is not None:
        points = np.where(
            points >= outlet.high, points - unit * (1 + np.rint((points - outlet.high) / unit)), points
        )
    return np.asarray(np.where(np.isin(points, outlet.avoid), points + unit, points))


def _em_moments(
    density: Floats, counts: Floats, points: Floats, centres: Floats
) -> DeconvolvedMoments | None:
    """Run EM until mean and sd stand still, and return them with the attenuation that they imply."""
    counts = counts / counts.sum()
    shares = np.full(len(centres), 1.0 / len(centres))
    last = np.array([np.inf, np.inf])
    for _ in range(STEPS):
        mixed = density @ shares
        mixed = np.where(mixed > 0, mixed, 1.0)
        shares = shares * (density.T @ (counts / mixed))
        shares = shares / shares.sum()
        mean = float(shares @ centres)
        sd = float(np.sqrt(shares @ (centres - mean) ** 2))
        if not sd > 0:
            return None
        now = np.array([mean, sd])
        if np.abs(now - last).max() < SETTLED * sd:
            break
        last = now
    # E(true | released) gives cov(released, true) without drawing anything.
    mixed = density @ shares
    expected = (density @ (shares * centres)) / np.where(mixed > 0, mixed, 1.0)
    middle = float(counts @ points)
    shared = float(counts @ ((points - middle) * (expected - mean)))
    return DeconvolvedMoments(mean, sd**2, shared / sd**2)

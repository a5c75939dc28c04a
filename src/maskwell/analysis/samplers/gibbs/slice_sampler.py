"""Slice sampling of one parameter (Neal 2003): stepping out, shrinking in."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

MOST_STEPS = 50  # that a slice is widened on a side


def slice_draw(
    rng: np.random.Generator,
    log_density: Callable[[float], float],
    now: float,
    width: float,
    limits: tuple[float, float] = (-np.inf, np.inf),
) -> float:
    """Draw a new value of one parameter between limits, by a slice under its log density."""
    height = log_density(now) - rng.standard_exponential()
    low = now - width * rng.random()
    high = low + width
    for _ in range(MOST_STEPS):
        if low <= limits[0] or log_density(low) < height:
            break
        low -= width
    for _ in range(MOST_STEPS):
        if high >= limits[1] or log_density(high) < height:
            break
        high += width
    low, high = max(low, limits[0]), min(high, limits[1])
    while True:
        value = low + (high - low) * rng.random()
        if log_density(value) >= height or high - low < 1e-14 * (1 + abs(now)):
            return value if high - low >= 1e-14 * (1 + abs(now)) else now
        if value < now:
            low = value
        else:
            high = value

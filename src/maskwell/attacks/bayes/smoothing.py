"""Probabilities from draws of matchings: what units would take next, or what they had, whichever varies less."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ...table import Floats
from ..contract import Ints

MOST_DRAWS = 250  # of each chain that are smoothed: where that helps at all, few do
MOST_STEPS = 400_000_000  # pairs looked at


def smoothed(logs: Floats, units: int, kept: npt.NDArray[np.int32], counts: Ints) -> Floats:
    """Return the probabilities of each unit's record, none last, from matchings kept (chains x draws x units).

    Where a posterior is flat the most frequent record is that of luck, and the chances of the next step, averaged, tell
    near ties apart; where it is sharp steps hardly move and `counts` of all draws are better. The chains decide.
    """
    from ...kernels.smoothing import smooth

    chains, draws, known = kept.shape
    most = min(max(MOST_STEPS // (chains * logs.size), 1), MOST_DRAWS)
    thin = np.ascontiguousarray(kept[:, :: -(-draws // most)])
    steps = np.zeros((chains, known, logs.shape[1] + 1))
    for chain, into in zip(thin, steps, strict=True):
        smooth(logs, chain, units - known - logs.shape[1], into)
    steps /= thin.shape[1]
    better = _spread(steps) < _spread(_visits(kept, logs.shape[1]))
    return np.asarray(
        np.where(better[:, None], steps.mean(axis=0), counts / counts.sum(axis=1, keepdims=True))
    )


def _visits(kept: npt.NDArray[np.int32], released: int) -> Floats:
    """Return for each chain in what share of its draws each unit had each record."""
    _, draws, known = kept.shape
    cells = np.arange(known) * (released + 1) + np.where(kept < 0, released, kept)
    counts = [np.bincount(chain.ravel(), minlength=known * (released + 1)) for chain in cells]
    return np.asarray(np.reshape(counts, (-1, known, released + 1)) / draws)


def _spread(shares: Floats) -> Floats:
    """Return how much chains differ, for each unit."""
    return np.asarray(shares.var(axis=0).sum(axis=1))

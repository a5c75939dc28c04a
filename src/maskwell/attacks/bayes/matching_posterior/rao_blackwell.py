"""Probabilities from draws of matchings: what units would take next, or what they had, whichever varies less."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ....table import Floats
from .belief_propagation import FLAT, PairWeights, an_exchange_away, choices_of, shrinkage_estimate

MOST_DRAWS = 250  # of each chain that are smoothed: where that helps at all, few do
MOST_STEPS = 100_000_000  # records looked at
LEAST = 0.003  # a record this much less likely than the likeliest is no choice of a unit's next step,
RARE = 1e-6  # but where few records come into question all that were visited are, and all that are an exchange away


def rao_blackwell_weights(
    logs: Floats, units: int, kept: npt.NDArray[np.int32], guessed: Floats
) -> PairWeights:
    """Return the probabilities of each unit's record, none last, from matchings kept (chains x draws x units).

    Where a posterior is flat the most frequent record is that of luck, and the chances of the next step, averaged, tell
    near ties apart; where it is sharp steps hardly move and counts are better. The chains decide. What they cannot tell
    apart even so is left to an approximation (`guessed`).
    """
    from ....kernels.rao_blackwell import smooth

    chains, draws, known = kept.shape
    visits = _visits(kept, logs.shape[1])
    mean = visits.mean(axis=0)
    near = np.any([an_exchange_away(logs, chain[-1].astype(np.int64), RARE) for chain in kept], axis=0)
    near |= mean[:, :-1] > 0
    near &= ((mean**2).sum(axis=1) > 1.0 / FLAT)[:, None]
    choices = choices_of(np.maximum(guessed, mean), near, LEAST)
    most = min(max(MOST_STEPS // (chains * max(len(choices[0]), 1)), 1), MOST_DRAWS)
    thin = np.ascontiguousarray(kept[:, :: -(-draws // most)])
    steps = np.zeros((chains, known, logs.shape[1] + 1))
    for chain, into in zip(thin, steps, strict=True):
        smooth(logs, chain, units - known - logs.shape[1], choices, into)
    steps /= thin.shape[1]
    stays = _spread(visits) == 0.0  # no chain ever moved: what its next step might be says more
    better = stays | (_spread(steps) < _spread(visits))
    np.copyto(visits, steps, where=better[:, None])
    return shrinkage_estimate(visits, guessed)


def _visits(kept: npt.NDArray[np.int32], released: int) -> Floats:
    """Return for each chain in what share of its draws each unit had each record."""
    _, draws, known = kept.shape
    cells = np.arange(known) * (released + 1) + np.where(kept < 0, released, kept)
    counts = [np.bincount(chain.ravel(), minlength=known * (released + 1)) for chain in cells]
    return np.asarray(np.reshape(counts, (-1, known, released + 1)) / draws)


def _spread(shares: Floats) -> Floats:
    """Return how much chains differ, for each unit."""
    return np.asarray(shares.var(axis=0).sum(axis=1))

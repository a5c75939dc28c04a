"""EM in numpy: most climbs are at rest before a compiler would be loaded."""

from __future__ import annotations

import numpy as np

from ...table import Floats
from ..protocol import Bools, Ints

FIRST_STEPS = 300  # of some 50 microseconds: the compiler takes longer to load
MOST_CELLS = 2_000  # patterns x fields: a step on more of them takes longer


def climb(
    patterns: Ints,
    pairs: Floats,
    m: Floats,
    u: Floats,
    p: float,
    most_steps: int,
    tolerance: float,
    smallest: float,
) -> tuple[float, int, bool]:
    """Run EM in place on m and u from a start; return p, the steps taken, and whether it came to rest.

    The same as `kernels.em.climb`, to the bit, which does what is left after the first steps.
    """
    first_steps = min(FIRST_STEPS, most_steps) if len(patterns) * len(m) <= MOST_CELLS else 0
    agrees = _agrees(patterns, len(m))
    classes = np.array([[p, *m], [1.0 - p, *u]])
    done, moved = 0, np.inf
    while done < first_steps and moved > tolerance:
        moved, done = _step(agrees, pairs, classes, smallest), done + 1
    p, m[:], u[:] = float(classes[0, 0]), classes[0, 1:], classes[1, 1:]
    if moved <= tolerance or done == most_steps:
        return p, done, moved <= tolerance
    from ...kernels import em

    p, steps, rests = em.climb(patterns, pairs, m, u, p, most_steps - done, tolerance, smallest)
    return p, done + steps, rests


def _agrees(patterns: Ints, fields: int) -> Bools:
    """Return (1 + fields) x patterns: whether the field agrees; the first row is that a pair is a pair."""
    ones = np.ones((1, len(patterns)), bool)
    return np.concatenate([ones, patterns >> np.arange(fields)[:, None] & 1 == 1])


def _step(agrees: Bools, pairs: Floats, classes: Floats, smallest: float) -> float:
    """Move the two classes (share and chances of agreement of each) by one step, and return the largest move.

    Products and sums go from the first to the last, as in a loop.
    """
    chance = np.where(agrees, classes[:, :, None], 1.0 - classes[:, :, None])
    first, second = np.multiply.reduce(chance, axis=1)
    mine = pairs * (first / (first + second))
    sums = np.add.accumulate(agrees * np.array([mine, pairs - mine])[:, None], axis=2)[:, :, -1]
    total = pairs.sum()
    sizes = np.array([[sums[0, 0]], [total - sums[0, 0]]])
    new = np.divide(sums, sizes, out=np.full(sums.shape, 0.5), where=sizes > 0.0)
    new[0, 0] = sums[0, 0] / total
    new = np.clip(new, smallest, 1.0 - smallest)
    new[1, 0] = 1.0 - new[0, 0]
    moves = np.abs(new - classes)
    moves[1, 0] = 0.0
    classes[:] = new
    return float(moves.max())

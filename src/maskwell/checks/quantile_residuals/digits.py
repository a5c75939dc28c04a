"""Scores of the last digits of a released value: where it lies in its block of m units, given the block.

With K = z / unit and the block from L = (B - 1/2) units to U = (B + m - 1/2) units, B = m floor(K / m), cut at limits,

    u_m = (u - G(L)) / (G(U) - G(L)),

which is uniform for every law, unit and limit, whether the noise is large beside m units or not. Parity and digits do
not show in u itself: it moves by one unit's mass, a ten-thousandth perhaps. Own derivation: a uniform given an event
that its interval decides is uniform on the interval (Dunn and Smyth 1996). Called by `battery`.
"""

from __future__ import annotations

import numpy as np

from ...table import Floats
from .cells import Bools, ScoredCells
from .marginals import BiasMarginal, Tails

MODULI = (2, 5, 10, 100, 1000)  # blocks of 2 and 5 units see parity and fives, the others last digits
# Of the nearer tail: below it a block is so narrow that its density is level to a part in a million, while the
# difference of two distribution functions would have lost its digits.
NARROW = 1e-6
# Of the local sd: blocks of a law that is an integral are level to some thousandths, which no test sees.
LEVEL = 2e-3
SMALLEST = 1e-16  # what a uniform is at least


def digit_scores(
    cells: ScoredCells, ends: tuple[Tails, Tails], modulus: int, uniform: Floats
) -> tuple[Floats, Bools]:
    """Return the normal score of each cell's place in its block, and which cells have one.

    `ends` are the probabilities below and above the lower and the upper end of each cell.
    """
    from scipy.special import ndtri

    unit, outlet = cells.unit, cells.outlet
    if unit == 0.0:
        return np.empty(len(cells.at)), np.zeros(len(cells.at), bool)
    steps = np.rint(cells.z / unit)
    first = modulus * np.floor(steps / modulus)
    start, end = (first - 0.5) * unit, (first + modulus - 0.5) * unit
    if outlet.low is not None:
        start = np.maximum(start, outlet.low + unit / 2)
    if outlet.log_shift is not None:  # the cell where the logarithm ends has no lower end, and is no digit
        start = np.maximum(start, (np.floor(0.5 - outlet.log_shift / unit) + 0.5) * unit)
    if outlet.high is not None:
        end = np.minimum(end, outlet.high - unit / 2)
    usable = ~cells.is_clamped & (end - start > 1.5 * unit) & ~_beside_codes(cells, start, end)
    level = (steps - first + uniform) / modulus
    if isinstance(cells.marginal, BiasMarginal) and np.all(end - start < LEVEL * cells.local_sd):
        place = level
    else:
        place = _place(cells, ends, (start, end), level, uniform)
    return np.asarray(ndtri(np.clip(place, SMALLEST, 1 - SMALLEST))), usable


def _place(
    cells: ScoredCells,
    ends: tuple[Tails, Tails],
    block: tuple[Floats, Floats],
    level: Floats,
    uniform: Floats,
) -> Floats:
    """Return u_m from the smaller tail; `level` is what it is in a block of level density."""
    (low_a, high_a), (low_b, high_b) = ends
    (low_l, high_l), (low_u, high_u) = (cells.tails(cells.entered(edge)) for edge in block)
    upper = low_b >= 0.5
    inside = np.where(upper, high_l - high_u, low_u - low_l)
    below = np.where(
        upper, high_l - high_b - (1 - uniform) * (high_a - high_b), low_a + uniform * (low_b - low_a) - low_l
    )
    is_narrow = inside < NARROW * np.where(upper, high_l, low_u)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(is_narrow, level, below / inside)


def _beside_codes(cells: ScoredCells, start: Floats, end: Floats) -> Bools:
    """Whether a block has a code that values step off, in it or beside it."""
    touched = np.zeros(len(cells.at), bool)
    for code in cells.outlet.avoid:
        touched |= (start - 1.5 * cells.unit <= code) & (code <= end + 1.5 * cells.unit)
    return touched

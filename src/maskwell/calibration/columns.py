"""A scale for each column: the same tolerance at a smaller price.

From the common scale, one column's share of it is raised or lowered, and all scales are set so that the price (the
stated objective) is a little below the lowest so far. If the tolerance is met there, the move is kept and all scales
are lowered together as far as it stays met. So no move that is kept is dearer, and one that is not costs one trial: a
coordinate search (Nocedal and Wright 2006, section 9.3) along a constraint. Chosen by `calibrate(per_column=True)`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import sqrt
from typing import Any

import numpy as np

from ..errors import BadPlan
from ..table import Table
from .losses import Loss
from .scale import columns_apart, has_scale, join_masks, largest_factor, scale_mask, writable
from .search import SEARCH, Scales, bisect
from .trials import Trial

MOVES = (2.0, 1.4)  # by how much one column's scale is moved: coarse first
MOVES_PER_COLUMN = 8  # that are tried at most
CHEAPER = 0.02  # by which share a move must lower the price
LOWERED = 1.1  # the stride by which all scales are lowered after a move
# Of the bracket of a scale by its price; draws that a price is the mean of
HALVINGS_OF_PRICE, DRAWS_OF_PRICE = 7, 4


@dataclass(frozen=True)
class Pieces:
    """Masks with one scale each, and the shape: the scale of each relative to the common one."""

    masks: tuple[Any, ...]
    shape: tuple[float, ...]
    limits: tuple[float, ...]

    @classmethod
    def of(cls, mask: Any, table: Table) -> Pieces:
        """Take a mask apart, refusing one that does not come apart."""
        pieces = columns_apart(mask, table)
        if sum(map(has_scale, pieces)) < 2:
            raise BadPlan(
                f"per_column needs columns with scales of their own, and {type(mask).__name__} has one for all: give "
                "several columns to IndependentNoise (or to another mask that is not correlated), or a Chain of masks "
                "over groups of columns"
            )
        limits = tuple(largest_factor(one, table) if has_scale(one) else 1.0 for one in pieces)
        return cls(pieces, (1.0,) * len(pieces), limits)

    @property
    def free(self) -> list[int]:
        """The places of the masks that have a scale."""
        return [i for i, mask in enumerate(self.masks) if has_scale(mask)]

    def at(self, factor: float) -> Any:
        """Return the plan at a common factor."""
        sizes = zip(self.masks, self.shape, self.limits, strict=True)
        return join_masks(
            [
                writable(scale_mask(mask, min(share * factor, most))) if has_scale(mask) else mask
                for mask, share, most in sizes
            ]
        )

    def moved(self, place: int, by: float) -> Pieces:
        """Return the pieces with one share moved."""
        return replace(self, shape=(*self.shape[:place], self.shape[place] * by, *self.shape[place + 1 :]))


@dataclass(frozen=True, slots=True)
class ColumnScales:
    """What scales for each column save: the objective at the common scale and at those found, and the moves tried."""

    objective: str
    before: float
    after: float
    moves_tried: int
    moves_kept: int

    @property
    def gain(self) -> float:
        """The share of the objective that is saved."""
        return 1 - self.after / self.before


@dataclass(frozen=True)
class Cheapest:
    """The cheapest scales so far that meet the tolerance."""

    pieces: Pieces
    trial: Trial

    @property
    def price(self) -> float:
        """The objective."""
        assert self.trial.loss is not None
        return self.trial.loss


def spread_over_columns(
    scales: Scales, found: Trial, pieces: Pieces, precision: float
) -> tuple[Cheapest, ColumnScales]:
    """Move the scales of single columns while that lowers the price, coarse moves first."""
    loss = scales.bench.loss
    assert loss is not None
    best = first = Cheapest(pieces, found)
    tried, kept, most = 0, 0, MOVES_PER_COLUMN * len(pieces.free)
    for by in MOVES:
        gained = True
        while gained and tried < most:
            gained = False
            for place, direction in [(place, way) for place in pieces.free for way in (by, 1 / by)]:
                tried += 1
                better = _cheaper_shape(scales, loss, best, best.pieces.moved(place, direction), precision)
                if better is not None:
                    best, kept, gained = better, kept + 1, True
                if tried >= most:
                    break
    return best, ColumnScales(loss.name, first.price, best.price, tried, kept)


def _cheaper_shape(
    scales: Scales, loss: Loss, best: Cheapest, pieces: Pieces, precision: float
) -> Cheapest | None:
    """Try a shape at a slightly lower price; where the tolerance is met, lower it and return it if it is cheaper."""
    try:
        trial = _of_shape(scales, pieces).at(_factor_at(scales, loss, best, pieces))
    except BadPlan:  # a scale that the plan refuses is no move
        return None
    if trial is None or not scales.is_met(trial):
        return None
    moved = _lower_scales(scales, Cheapest(pieces, trial), precision)
    return moved if moved.price < best.price else None


def _of_shape(scales: Scales, pieces: Pieces) -> Scales:
    return replace(scales, mask_at=pieces.at, round="columns", tried={})


def _factor_at(scales: Scales, loss: Loss, best: Cheapest, pieces: Pieces) -> float:
    """Return the largest common factor at which a shape is a little cheaper than the best, by bisection.

    No attack is needed, and few draws: both prices are on the same ones.
    """

    def price_of(mask: Any) -> float:
        drawn = scales.bench.masked(mask, SEARCH, min(scales.replicates, DRAWS_OF_PRICE))
        return float(np.mean([loss(masking) for masking in drawn]))

    wanted = (1 - CHEAPER) * price_of(best.trial.mask)
    low, high = best.trial.factor / MOVES[0], best.trial.factor * MOVES[0]
    for _ in range(HALVINGS_OF_PRICE):
        middle = sqrt(low * high)
        low, high = (middle, high) if price_of(pieces.at(middle)) <= wanted else (low, middle)
    return low


def _lower_scales(scales: Scales, better: Cheapest, precision: float) -> Cheapest:
    """Lower all scales of a shape together as far as the tolerance stays met."""
    shaped = _of_shape(scales, better.pieces)
    meets = better.trial.factor
    shaped.tried[meets] = better.trial
    while shaped.meets(meets / LOWERED):
        meets /= LOWERED
    trial = shaped.at(bisect(shaped, meets / LOWERED, meets, precision))
    assert trial is not None
    return replace(better, trial=trial)

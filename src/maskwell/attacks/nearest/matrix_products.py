"""Distances by matrix products: a sieve in single precision, and full comparison of what it lets through."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ...table import Floats
from ..protocol import NOBODY, Ints

AT_ONCE = 128  # searchers of one product: an even number


@dataclass(frozen=True, slots=True)
class Products:
    """Searchers and the points of their block, near ones together; `first` is the place of the first point.

    `aims` and `seen` are both as the sieve sees them, searchers twice as long and points as columns; `squares` are the
    squared lengths of searchers, `lengths` those of points, less what rounding can do and with it.
    """

    searchers: Floats
    points: Floats
    first: int
    aims: Any
    seen: Any
    squares: Floats
    lengths: Any
    unit: float

    @classmethod
    def of(cls, searchers: Floats, points: Floats, forest: Any, first: int) -> Products:
        """Prepare a block of searchers and points, the points in the order of their places in the forest."""
        aims = _sieve_points(searchers, forest)
        squares = np.square(aims, dtype=np.float64).sum(axis=1)
        lengths = np.ascontiguousarray(forest.lengths[:, first : first + len(points)])
        seen = np.ascontiguousarray(_sieve_points(points, forest).T)
        return cls(searchers, points, first, 2 * aims, seen, squares, lengths, forest.unit)

    def runs(self) -> list[slice]:
        """Cut the searchers into runs."""
        return [slice(k, k + AT_ONCE) for k in range(0, len(self.searchers), AT_ONCE)]

    def nearest(self, run: slice, same: float) -> tuple[Floats, Ints]:
        """Return the three smallest distances of each searcher and the places of the first two."""
        from ...kernels.distance_sieve_search import sift_nearest

        searchers = self.searchers[run]
        distances = np.full((len(searchers), 3), np.inf)
        places = np.full((len(searchers), 2), NOBODY, np.int64)
        given = *self._sides(run), same, run.start / len(self.searchers), distances, places
        sift_nearest(*given)
        return distances, np.where(places < 0, NOBODY, places + self.first)

    def closer(self, run: slice, limit: Floats) -> Ints:
        """Return how many points lie at a distance below each searcher's limit."""
        from ...kernels.distance_sieve_search import sift_closer

        out = np.zeros(len(limit), np.int64)
        given = *self._sides(run), limit, out
        sift_closer(*given)
        return out

    def _sides(self, run: slice) -> tuple[Any, ...]:
        """Return what both searches need of a run of searchers: an even number of them is multiplied."""
        aims = self.aims[run]
        aims = np.vstack([aims, np.zeros_like(aims[:1])]) if len(aims) % 2 else aims
        sides = self.seen, self.lengths, self.points, self.searchers[run], self.squares[run]
        return aims, *sides, self.unit


def _sieve_points(points: Floats, forest: Any) -> Any:
    """Return points as the sieve sees them, with zeros up to a number of coordinates that is multiplied at once."""
    from ...kernels.distance_sieve_search import ACROSS

    fields = points.shape[1]
    out = np.zeros((len(points), -(-fields // ACROSS) * ACROSS), np.float32)
    out[:, :fields] = (points - forest.middle) * forest.unit
    return out

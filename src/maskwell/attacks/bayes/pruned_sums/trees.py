"""Trees over candidates, one for each block, for sums of exp(offset - |candidate - searcher|^2 / 2).

The k-d trees of `kernels.gaussian_trees` (Friedman, Bentley and Finkel 1977), searched on all cores, near searchers one
after the other so that what one reads is still at hand for the next. Used by `posterior_sums` and `cell_mixture`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ....errors import BadInput
from ....table import Floats
from ...nearest.search import LARGEST
from ...protocol import NOBODY, Bools, Ints
from ...threads import map_on_threads

AT_ONCE = 4096  # searchers that a thread takes


@dataclass(frozen=True, slots=True)
class Points:
    """Records in coordinates in which the noise has variance 1 and is independent (n x p), and their blocks."""

    values: Floats
    blocks: Ints

    def __post_init__(self) -> None:
        if not np.abs(self.values).max(initial=0.0) < LARGEST:
            raise BadInput(
                f"points must have finite coordinates below {LARGEST:g}: put them on a common scale first"
            )

    def take(self, rows: Ints) -> Points:
        """Return some of them."""
        return Points(self.values[rows], self.blocks[rows])


@dataclass(frozen=True, slots=True)
class TreeSums:
    """What one search finds for each searcher.

    `costs` are minus the three best scores, `numbers` the two best, ties not sorted out; exp(log_sum) lacks at most
    the share `lacking`.
    """

    costs: Floats
    numbers: Ints
    log_sum: Floats
    lacking: Floats


@dataclass(frozen=True, slots=True)
class Within:
    """How many candidates score above some bounds and within them; the two lowest numbers within, and their costs."""

    above: Ints
    count: Ints
    lowest: Ints
    costs: Floats


@dataclass(frozen=True, slots=True)
class Trees:
    """Trees over the blocks of some candidates, with an offset for each."""

    grove: Any
    blocks: Ints

    @classmethod
    def of(cls, points: Points, offset: Floats) -> Trees:
        """Grow the trees."""
        from ....kernels.gaussian_trees import grow

        number = np.argsort(points.blocks, kind="stable")
        blocks, begin = np.unique(points.blocks[number], return_index=True)
        rows, end = np.require(points.values[number], np.float64, ["C"]), np.append(begin, len(number))[1:]
        return cls(grow(rows, number, begin, end, np.require(offset, np.float64, ["C"])), blocks)

    def roots_of(self, blocks: Ints) -> Ints:
        """Return the tree of each searcher's block, -1 where there is none."""
        if not len(self.blocks):
            return np.full(len(blocks), NOBODY)
        at = np.minimum(np.searchsorted(self.blocks, blocks), len(self.blocks) - 1)
        return np.where(self.blocks[at] == blocks, at, NOBODY)

    def weigh(self, searchers: Points, rules: Any) -> TreeSums:
        """Sum and rank for all searchers, near ones one after the other."""
        from ....kernels.gaussian_sums import weigh
        from ....kernels.gaussian_tiles import WIDE

        count = len(searchers.values)
        costs, places = np.full((count, 3), np.inf), np.full((count, 2), NOBODY)
        log_sum, lacking = np.full(count, -np.inf), np.zeros(count)

        values, (turns, roots, tiles) = _rows(searchers, slice(None)), self._turns(searchers)

        def work(some: Ints) -> None:
            weigh(self.grove, values, some, roots, tiles, rules, costs, places, log_sum, lacking)

        map_on_threads(work, turns)
        tiles, lanes = np.divmod(np.maximum(places, 0), WIDE)
        numbers = self.grove.order[self.grove.start[tiles] + lanes] if len(self.blocks) else places
        return TreeSums(costs, np.where(places >= 0, numbers, NOBODY), log_sum, lacking)

    def within(
        self,
        searchers: Points,
        low: Floats,
        high: Floats | None = None,
        *,
        most: int = 1,
        marks: Bools | None = None,
    ) -> Within:
        """Count the candidates that score from `low` to `high`, and those above, up to `most`; set the marks of those
        within, by number.
        """
        from ....kernels.gaussian_ranks import sweep

        count, nobody = len(searchers.values), np.empty(0, bool)
        counts, lowest = np.zeros((count, 2), np.int64), np.full((count, 2), NOBODY)
        costs, top = np.full((count, 2), np.inf), np.full(count, np.inf) if high is None else high

        marked, (turns, roots, _) = nobody if marks is None else marks, self._turns(searchers)

        def work(some: Ints) -> None:
            found = counts[some], lowest[some], costs[some]
            sweep(self.grove, searchers.values[some], roots[some], low[some], top[some], most, *found, marked)
            counts[some], lowest[some], costs[some] = found

        map_on_threads(work, turns)
        return Within(counts[:, 0], counts[:, 1], lowest, costs)

    def renew(self, offset: Floats) -> None:
        """Take lower offsets."""
        from ....kernels.gaussian_ranks import renew

        renew(self.grove, offset)

    def _turns(self, searchers: Points) -> tuple[list[Ints], Ints, Ints]:
        """Cut the searchers that have a tree into turns, near ones together; return their trees and tiles too."""
        from ....kernels.gaussian_trees import locate

        roots = self.roots_of(searchers.blocks)
        tiles = locate(self.grove, _rows(searchers, slice(None)), roots)
        order = np.argsort(tiles, kind="stable")
        order = order[roots[order] >= 0]
        order = order[np.argsort(roots[order], kind="stable")] if len(self.blocks) > 1 else order
        turns = [order[begin : begin + AT_ONCE] for begin in range(0, len(order), AT_ONCE)]
        return turns, roots, tiles


def _rows(points: Points, rows: Any) -> Floats:
    """Return the coordinates of some records as the loops take them."""
    return np.require(points.values[rows], np.float64, ["C"])

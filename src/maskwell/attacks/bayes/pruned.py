"""The best candidates and all posterior weights without looking at every pair, for normal noise that is everywhere the
same: in coordinates in which it has variance 1 and is independent, log f(z|x) is a constant less |z - x|^2 / 2.

What is left out is bounded, not guessed (`kernels.gauss_sums`). Links, seconds and ties are those of comparing all
pairs: where a sum that lacks something leaves open who is first, the sums concerned are made whole, and only these.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ...errors import BadInput, BadPlan
from ...table import Floats
from ..contract import NOBODY, Ints
from ..neighbours import LARGEST
from ..ranking import SAME_SCORE
from .odds import SURE

LARGEST_EPS = 0.1
WHOLE = 1e-15  # what a sum may lack that is taken for whole
AT_ONCE = 4096  # searchers that a thread takes


@dataclass(frozen=True, slots=True)
class Points:
    """Records in coordinates in which the noise has variance 1 and is independent (n x p), and their blocks."""

    values: Floats
    blocks: Ints

    def take(self, rows: Ints) -> Points:
        """Return some of them."""
        return Points(self.values[rows], self.blocks[rows])


@dataclass(frozen=True, slots=True)
class Pruned:
    """What `ranking.Best` has, and `neglected`: every posterior is right within a factor of 1 +- it."""

    score: Floats
    ties: Ints
    place: Ints
    second_score: Floats
    second: Ints
    log_total: Floats
    neglected: Floats


@dataclass(frozen=True, slots=True)
class Sums:
    """What one search finds for each searcher.

    `costs` are minus the three best scores, `numbers` the two best, ties not sorted out; exp(log_sum) lacks at most
    the share `lacking`.
    """

    costs: Floats
    numbers: Ints
    log_sum: Floats
    lacking: Floats


@dataclass(frozen=True, slots=True)
class Trees:
    """Trees over the blocks of some candidates, with an offset for each."""

    forest: Any
    grove: Any
    blocks: Ints

    @classmethod
    def of(cls, points: Points, offset: Floats) -> Trees:
        """Grow the trees."""
        from ...kernels.forest import plant
        from ...kernels.gauss_tiles import WIDE, in_tiles

        number = np.argsort(points.blocks, kind="stable")
        blocks, begin = np.unique(points.blocks[number], return_index=True)
        rows, end = points.values[number], np.append(begin, len(number))[1:]
        forest = plant(rows, number, begin, end, WIDE, 2, 0.0)
        return cls(forest, in_tiles(forest, rows, offset, len(blocks)), blocks)

    def roots_of(self, blocks: Ints) -> Ints:
        """Return the tree of each searcher's block, -1 where there is none."""
        at = np.minimum(np.searchsorted(self.blocks, blocks), max(len(self.blocks) - 1, 0))
        return np.where(self.blocks[at] == blocks, at, NOBODY) if len(self.blocks) else np.full(len(blocks), NOBODY)

    def weigh(self, searchers: Points, rules: Any) -> Sums:
        """Sum and rank for all searchers, near ones one after the other."""
        from ...kernels.gauss_sums import weigh
        from ...kernels.gauss_tiles import WIDE

        count = len(searchers.values)
        out = np.full((count, 3), np.inf), np.full((count, 2), NOBODY), np.full(count, -np.inf), np.zeros(count)
        for rows, roots in self._turns(searchers):
            found = tuple(each[rows] for each in out)
            weigh(self.grove, searchers.values[rows], roots, rules, *found)
            for whole, part in zip(out, found, strict=True):
                whole[rows] = part
        tiles, lanes = np.divmod(out[1], WIDE)
        numbers = self.grove.order[np.minimum(self.grove.start[tiles] + lanes, len(self.grove.order) - 1)]
        return Sums(out[0], np.where(out[1] >= 0, numbers, NOBODY), out[2], out[3])

    def _turns(self, searchers: Points) -> Iterator[tuple[Ints, Ints]]:
        from ...kernels.trees import locate

        roots = self.roots_of(searchers.blocks)
        order = np.argsort(locate(self.forest, searchers.values, roots), kind="stable")
        order = order[roots[order] >= 0]
        for begin in range(0, len(order), AT_ONCE):
            rows = order[begin : begin + AT_ONCE]
            yield rows, roots[rows]

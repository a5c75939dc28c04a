"""Targets in whole blocks, drawn by the key: where records of a block are looked at together, all are judged at once.

With blocks b of n_b targets, y_b of whom are found, and m of M blocks drawn alike, the rate is the ratio r = sum y /
sum n, and by its linear part (Cochran, Sampling Techniques, 1977, section 6.3)

    var r = (1 - f) m / (m - 1) sum (y_b - r n_b)^2 / (sum n)^2,

f the share of the targets that were drawn. An interval takes r for the share of r (1 - r) / var r single targets, by
Student's t with m - 1 degrees where that is wider, and never for more than there are. It is for blocks of about one
size: where a few large ones have a share of the targets, draws without them look surer than they are.
"""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np

from ..errors import BadPlan, raise_all
from ..table import Floats, Table
from .joint_codes import block_codes
from .protocol import Ints

FEWEST = 40  # blocks of a file: the variance among a few of fewer is hardly known
NORMAL = 1.959964  # the 97.5% quantile


@dataclass(frozen=True, slots=True)
class ClusterSample:
    """Whole blocks by some columns, drawn by the key until they have so many targets."""

    targets: int
    blocks: tuple[str, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "blocks", tuple(self.blocks))
        count = self.targets
        if not isinstance(count, Integral) or isinstance(count, bool) or count < 1:
            raise BadPlan(f"targets of a ClusterSample is a whole number of at least 1, not {count!r}")

    def records(self, truth: Table, order: Ints) -> Ints:
        """Return the records of blocks in an order which the keyed order of the records decides."""
        raise_all(truth.schema.missing_columns(self.blocks), BadPlan)
        codes, _ = block_codes(truth, truth, self.blocks)
        sizes = np.bincount(codes)
        turn = np.random.default_rng(order[:8].tolist()).permutation(np.flatnonzero(sizes))
        count = int(np.searchsorted(np.cumsum(sizes[turn]), self.targets)) + 1
        chosen = np.zeros(len(sizes), bool)
        chosen[turn[:count]] = True
        return np.flatnonzero(chosen[codes])

    def to_dict(self) -> dict[str, Any]:
        """Return the choice as plain data."""
        return {"targets": int(self.targets), "blocks": list(self.blocks)}

    def effective(self, known: Table, rows: Ints, found: Floats, of: int) -> float:
        """Return how many single targets, drawn by themselves, would tell the rate as well, of so many in all.

        `rows` are those of the known records that were judged, `found` how right each of their links is.
        """
        codes, _ = block_codes(known, known, self.blocks)
        _, place = np.unique(codes[rows], return_inverse=True)
        n, y = (np.asarray(np.bincount(place, one), np.float64) for one in (np.ones(len(rows)), found))
        return effective_targets(n, y, len(rows) / max(of, len(rows)))


def ratio_variance(n: Floats, y: Floats) -> float:
    """Return the variance of the ratio sum y / sum n over blocks drawn, as if with replacement; infinite for one."""
    count, rate = len(n), float(y.sum() / n.sum())
    if count < 2:
        return float("inf")
    return count / (count - 1) * float(((y - rate * n) ** 2).sum()) / float(n.sum()) ** 2


def effective_targets(n: Floats, y: Floats, share: float) -> float:
    """Return r (1 - r) / var r from targets and those found in each block drawn, but at most the targets.

    Where nobody or everybody is found each block counts for one.
    """
    from scipy.stats import t

    count, total, rate = len(n), float(n.sum()), float(y.sum() / n.sum())
    if count < 2 or rate <= 0 or rate >= 1:
        return min(float(count), total)
    wide = float(t.ppf(0.975, count - 1)) / NORMAL
    variance, spread = (1 - share) * ratio_variance(n, y) * wide**2, rate * (1 - rate)
    return min(spread / variance, total) if variance * total > spread else total

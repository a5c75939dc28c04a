"""Targets of some blocks, drawn by the key: where records of a block are looked at together, many are judged at once.

Of n_b targets in block b at most k are looked for. Blocks are drawn with chances in proportion to max(n_b, k), by equal
steps along a random order of them (Hartley and Rao, 1962, Annals of Mathematical Statistics 33, 350-374); of a block
that c steps hit, c k targets are drawn, or all. Every target then has the same chance, whatever the size of his block:
large blocks are drawn more often, and none of those with a share of the targets is left out by chance. With y_b found
of the n_b that were drawn in each of m blocks, the rate is the ratio r = sum y / sum n, and by its linear part
(Cochran, Sampling Techniques, 1977, sections 6.3 and 11.9)

    var r = (1 - f) m / (m - 1) sum (y_b - r n_b)^2 / (sum n)^2,

f the share of the targets that were drawn. An interval takes r for the share of r (1 - r) / var r single targets, by
Student's t with m - 1 degrees where that is wider, and never for more than there are.
"""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np

from ..errors import BadPlan, raise_all
from ..table import Floats, Table
from .contract import Ints
from .search import block_codes

FEWEST = 40  # blocks of a file: the variance among a few of fewer is hardly known
NORMAL = 1.959964


@dataclass(frozen=True, slots=True)
class ClusterSample:
    """At least so many targets, in blocks by some columns that the key draws: at most `most_of_one`, or all of each."""

    targets: int
    blocks: tuple[str, ...]
    most_of_one: int | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "blocks", tuple(self.blocks))
        named = {"targets": self.targets, "most_of_one": 1 if self.most_of_one is None else self.most_of_one}
        wrong = [
            f"{name} of a ClusterSample is a whole number of at least 1, not {count!r}"
            for name, count in named.items()
            if not isinstance(count, Integral) or isinstance(count, bool) or count < 1
        ]
        raise_all(wrong, BadPlan)

    def records(self, truth: Table, order: Ints) -> Ints:
        """Return the targets, drawn by the keyed order of the records."""
        raise_all(truth.schema.missing_columns(self.blocks), BadPlan)
        codes, _ = block_codes(truth, truth, self.blocks)
        sizes = np.bincount(codes)
        taken = drawn_sizes(sizes, self.targets, self.most_of_one, np.random.default_rng(order[:8].tolist()))
        by_block = order[np.argsort(codes[order], kind="stable")]  # in each block by the keyed order
        place = np.arange(len(order)) - (np.cumsum(sizes) - sizes)[codes[by_block]]
        return np.sort(by_block[place < taken[codes[by_block]]])

    def to_dict(self) -> dict[str, Any]:
        """Return the choice as plain data."""
        out: dict[str, Any] = {"targets": int(self.targets), "blocks": list(self.blocks)}
        return out if self.most_of_one is None else out | {"most_of_one": int(self.most_of_one)}

    def effective(self, known: Table, rows: Ints, found: Floats, of: int) -> float:
        """Return how many single targets, drawn by themselves, would tell the rate as well, of so many in all.

        `rows` are those of the known records that were judged, `found` how right each of their links is.
        """
        codes, _ = block_codes(known, known, self.blocks)
        _, place = np.unique(codes[rows], return_inverse=True)
        n, y = (np.asarray(np.bincount(place, one), np.float64) for one in (np.ones(len(rows)), found))
        return effective_targets(n, y, len(rows) / max(of, len(rows)))


def steps_to(sizes: Ints, targets: int, most_of_one: int | None) -> tuple[Floats, float]:
    """Return the length of each block on the line that steps go along, and the step by which so many are drawn."""
    most = int(sizes.max(initial=1)) if most_of_one is None else most_of_one
    lengths = np.where(sizes > 0, np.maximum(sizes, most), 0).astype(np.float64)
    wanted = np.ceil(targets * lengths.sum() / (most * max(int(sizes.sum()), 1)))
    return lengths, max(lengths.sum() / max(wanted, 1.0), float(most))


def drawn_sizes(sizes: Ints, targets: int, most_of_one: int | None, rng: np.random.Generator) -> Ints:
    """Draw how many targets each block of given sizes gives: above half of all, none is left out."""
    if most_of_one is not None and 2 * targets >= sizes.sum():
        return sizes
    lengths, step = steps_to(sizes, targets, most_of_one)
    most = int(sizes.max(initial=1)) if most_of_one is None else most_of_one
    turn = rng.permutation(len(sizes))
    ends = np.cumsum(lengths[turn])
    hits = np.diff(np.floor((ends + rng.random() * step) / step + 1e-9), prepend=0.0)
    taken = np.zeros(len(sizes), np.int64)
    taken[turn] = np.minimum(hits.astype(np.int64) * most, sizes[turn])
    return taken


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

"""Columns that are the same for the records of a group: of all groups, or of nearly all, and not by chance.

Let K groups have several records in which a column is known, of which C have one value in all of these. Were values
given out at random, with the shares p_v that they have in the file, a group of m records would have one value with
probability q_m = sum over v of p_v^m. Whatever the sizes, the number of such groups exceeds C with no larger chance
than a binomial variable of K trials with the mean of the q_m does, C being above its mean (Hoeffding 1956, theorem 4).

A value that most records have makes classes agree whatever they are: groups all of whose records have it do not count,
and q_m is that of the others, (q_m - p^m) / (1 - p^m). Chosen for drafts: noise on each record of what its group shares
is undone by the group's mean, in as many groups as share it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Codes = npt.NDArray[np.integer]

NEARLY_ALL = 0.9  # of the groups: in a tenth a value was corrected, or changed over time
MOST_AT_ONE = (
    0.5  # share of records with the most frequent value, from which on groups of it alone do not count
)
FEWEST_TOGETHER, LEAST_TOGETHER = 30, 0.01  # records in groups of several, and their share of the file
BY_CHANCE = 1e-9  # over all pairs of columns of all files ever drafted


@dataclass(frozen=True, slots=True)
class Constancy:
    """How many groups of several records have one value in all of them, and the share that chance gives."""

    constant: int
    groups: int
    chance: float

    @property
    def share(self) -> float:
        """The share of the groups."""
        return self.constant / self.groups

    @property
    def is_nearly_all(self) -> bool:
        """Whether nearly all groups have one value, and not by chance."""
        from scipy.special import bdtrc

        if self.share < NEARLY_ALL:
            return False
        return bool(bdtrc(self.constant - 1, self.groups, min(self.chance, 1.0)) < BY_CHANCE)


def constancy(groups: Codes, values: Codes) -> Constancy | None:
    """Count the groups that have one value; both are numbered from 0 on, -1 where there is none.

    Nothing where too few records share a group.
    """
    known = (groups >= 0) & (values >= 0)
    if np.count_nonzero(known) < FEWEST_TOGETHER:
        return None
    order = np.argsort(groups[known], kind="stable")
    whose, codes = groups[known][order], values[known][order]
    starts = np.flatnonzero(np.diff(whose, prepend=-1))
    sizes = np.diff(np.append(starts, len(whose)))
    several = sizes > 1
    if sizes[several].sum() < max(FEWEST_TOGETHER, LEAST_TOGETHER * len(groups)):
        return None
    lows, highs = (f.reduceat(codes, starts)[several] for f in (np.minimum, np.maximum))
    shares = np.bincount(codes) / len(codes)
    usual = int(np.argmax(shares))
    counted = (
        ~((lows == highs) & (lows == usual)) if shares[usual] > MOST_AT_ONE else np.ones(len(lows), bool)
    )
    if not counted.any():
        return None
    chance = _chance(shares, sizes[several][counted], usual if shares[usual] > MOST_AT_ONE else None)
    return Constancy(int(np.count_nonzero((lows == highs)[counted])), int(counted.sum()), chance)


def _chance(shares: npt.NDArray[np.float64], sizes: Codes, usual: int | None) -> float:
    """Return the mean chance of one value in a group, without groups that have the usual value alone."""
    different, counts = np.unique(sizes, return_counts=True)
    left = shares[shares > 0]
    total = 0.0
    for size, count in zip(different.tolist(), counts.tolist(), strict=True):
        alike, gone = float((left**size).sum()), 0.0 if usual is None else float(shares[usual]) ** size
        total += count * max(alike - gone, 0.0) / max(1 - gone, 1e-12)
    return total / float(counts.sum())


def is_monotone(groups: Codes, values: Codes) -> bool:
    """Whether what groups have rises, or falls, with their numbers: classes of an amount do, and say no more of it."""
    known = (groups >= 0) & (values >= 0)
    first = np.full(int(groups.max(initial=-1)) + 1, -1)
    first[groups[known][::-1]] = values[known][::-1]
    steps = np.diff(first[first >= 0])
    return bool(np.all(steps >= 0) or np.all(steps <= 0))

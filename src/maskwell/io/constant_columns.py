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

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from .column_profile import Facts

Codes = npt.NDArray[np.integer]

NEARLY_ALL = 0.9  # of the groups: in a tenth a value was corrected, or changed over time
MOST_AT_ONE = (
    0.5  # share of records with the most frequent value, from which on groups of it alone do not count
)
FEWEST_TOGETHER, LEAST_TOGETHER = 30, 0.01  # records in groups of several, and their share of the file
# Pairs of records that refute most columns, and the share of them that differ: of groups a tenth of which is not
# constant, at most half of the pairs, unless these are far larger than the others
REFUTING, MOST_DIFFERENT = 400, 0.5
LEAST_SHARING = 0.5  # of the records, in groups of several
FEWEST_GROUPS, FEWEST_VALUES, FEWEST_TOLD = 20, 3, 2  # groups, values of a column they give, such columns
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


@dataclass(frozen=True, slots=True)
class GroupedRecords:
    """The records of groups of several, one group after the other: `whose` numbers the group of each."""

    order: Codes
    whose: Codes
    records: int

    @classmethod
    def of(cls, groups: Codes) -> GroupedRecords:
        """Sort the records by their group, which is numbered from 0 on, -1 where there is none."""
        sizes = np.bincount(groups[groups >= 0], minlength=1)
        together = np.flatnonzero((groups >= 0) & (sizes[groups] > 1))
        order = together[np.argsort(groups[together], kind="stable")]
        return cls(order, groups[order], len(groups))

    def constancy(self, values: Codes) -> Constancy | None:
        """Count the groups that have one value, numbered from 0 on, -1 where there is none.

        Nothing where too few records share a group, or where values differ so often that it cannot be nearly all.
        """
        if len(self.order) < FEWEST_TOGETHER or self._differ(values):
            return None
        known = values[self.order] >= 0
        whose, codes = self.whose[known], values[self.order][known]
        starts = np.flatnonzero(np.diff(whose, prepend=-1))
        sizes = np.diff(np.append(starts, len(whose)))
        several = sizes > 1
        if sizes[several].sum() < max(FEWEST_TOGETHER, LEAST_TOGETHER * self.records):
            return None
        lows, highs = (f.reduceat(codes, starts)[several] for f in (np.minimum, np.maximum))
        shares = np.bincount(values[values >= 0]) / np.count_nonzero(values >= 0)
        most = int(np.argmax(shares))
        usual = most if shares[most] > MOST_AT_ONE else -1
        counted = ~((lows == highs) & (lows == usual))
        if not counted.any():
            return None
        chance = _chance(shares, sizes[several][counted], usual)
        return Constancy(int(np.count_nonzero((lows == highs)[counted])), int(counted.sum()), chance)

    def _differ(self, values: Codes) -> bool:
        """Whether some pairs of records side by side in a group refute a column."""
        step = max(1, len(self.order) // REFUTING)
        first = np.arange(0, len(self.order) - 1, step)
        pairs = first[self.whose[first] == self.whose[first + 1]]
        one, other = values[self.order[pairs]], values[self.order[pairs + 1]]
        both = (one >= 0) & (other >= 0)
        different, compared = int(np.count_nonzero((one != other) & both)), int(np.count_nonzero(both))
        return different > MOST_DIFFERENT * max(compared, FEWEST_TOGETHER)


def value_codes(values: npt.NDArray[np.float64]) -> Codes:
    """Number different values from 0 on, -1 where there is none."""
    known = ~np.isnan(values)
    codes = np.full(len(values), -1, np.int64)
    codes[known] = np.unique(values[known], return_inverse=True)[1]
    return codes


def _chance(shares: npt.NDArray[np.float64], sizes: Codes, usual: int) -> float:
    """Return the mean chance of one value in a group, without groups that have the usual value alone."""
    different, counts = np.unique(sizes, return_counts=True)
    left = shares[shares > 0]
    total = 0.0
    for size, count in zip(different.tolist(), counts.tolist(), strict=True):
        alike, gone = float((left**size).sum()), float(shares[usual]) ** size if usual >= 0 else 0.0
        total += count * max(alike - gone, 0.0) / max(1 - gone, 1e-12)
    return total / float(counts.sum())


def is_monotone(groups: Codes, values: Codes) -> bool:
    """Whether what groups have rises, or falls, with their numbers: classes of an amount do, and say no more of it."""
    known = (groups >= 0) & (values >= 0)
    first = np.full(int(groups.max(initial=-1)) + 1, -1)
    first[groups[known][::-1]] = values[known][::-1]
    steps = np.diff(first[first >= 0])
    return bool(np.all(steps >= 0) or np.all(steps <= 0))


def told_by_value(facts: Facts, others: Iterable[Facts]) -> list[str]:
    """Return the columns that whole numbers give as the id of a group does; none where these are no groups.

    Most records must share their value, and there must be several such columns of more than two values each, which do
    not just rise or fall with the numbers, as classes and logarithms of an amount do.
    """
    codes = facts.category_codes
    grouping = GroupedRecords.of(codes)
    if len(grouping.order) < LEAST_SHARING * facts.present:
        return []
    found = [
        one.name
        for one in others
        if one is not facts
        and one.shape in ("number", "text")
        and FEWEST_VALUES <= one.distinct < one.present
        and (told := grouping.constancy(one.category_codes)) is not None
        and told.groups >= FEWEST_GROUPS
        and told.is_nearly_all
        and not is_monotone(codes, one.category_codes)
    ]
    return found if len(found) >= FEWEST_TOLD else []

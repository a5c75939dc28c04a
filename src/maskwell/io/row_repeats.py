"""Values that stand beside their like in the file far more often than by chance: of a household, a pupil, an employer.

Let q be the share of records that have the value of the record above, and P that of all pairs of records that agree.
Where units of m records on average stand together, share a value and are in no order, q = 1/m P + (1 - 1/m) to the
first order, so that (q - P) / (1 - P) estimates 1 - 1/m. Four kinds of order make neighbours agree without a unit:

- A part of the file is alike: P is no less than the agreement of records 4m to 8m apart, beyond any unit but near.
- Neighbours are near, and equal by rounding: if n1 and n2 of them lie one and two places apart among the values that
  occur, and these counts fall by one ratio from 0 on, n1 n1 / (n2 + 1) / 2 are equal so: P is no less than that share.
- The file is sorted in parts: among unlike neighbours the direction must change as often as in a file in random order,
  2 of 3 times (Bienayme 1874). What rises and falls in waves, as the rate of a day does, turns seldom too; but it goes
  both ways, comes by each value about twice, and most records stand with their like.
- The file is sorted by another column, and values repeat inside its ties no more than in random order.

The shares must be so without the most frequent value too, and where a group of records is known, between its groups. By
chance the number of equal neighbours is binomial but for a variance that is 1 + 2 (sum p^3 - P^2) / (P (1 - P)) times
as large, as two pairs have a record in common.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ..words.io import chance_phrase
from .column_profile import Facts

Codes = npt.NDArray[np.integer]
Bools = npt.NDArray[np.bool_]

FEWEST_VALUES = 8  # different ones: fewer agree by chance too often
LEAST_SHARE = 0.2  # of records that stand with their like beyond chance: 1.25 records to a unit
TIMES_CHANCE = 2.0
BY_CHANCE = 1e-9  # that so many neighbours are equal: over all columns of all files ever drafted
NEAR, FAR = 4, 8  # units' sizes, between which records are of other units but of the same part of the file
LAGS = 16  # distances that are looked at between these
# Records to a group between which nothing repeats: values last inside it, over time; a larger one may have households
MOST_IN_GROUP = 40
MOST_STRAYS = 0.01  # of neighbours inside a group: else it does not have one value
LEAST_TURNS = 0.5  # of changes: 2/3 in random order, 2/k in a file that is sorted in parts of k values
FEW_TURNS = 2.0  # sds, the variance being 8/45 of the changes: few changes may turn less by chance
# Of the changes that go on in one direction, the share of the rarer one: a half in waves, none in sorted parts
LEAST_BACK = 0.25
FEWEST_TURNS = 8  # a square of what the file is sorted by has one
WAVE_PASSES = (
    2  # runs to a value: a wave passes a level up and down; what lasts over time comes back more often
)
MOST_TOGETHER = 0.5  # of records that stand with their like in a wave: rounded series of months have less
SORTED = 0.95  # of changes in one direction: a file sorted by a column, put together of a few parts
MOST_IN_TIE = 0.5  # of neighbours in a tie: if more agree, the tie is what they share the value by


@dataclass(frozen=True, slots=True)
class Repeats:
    """How often records have the value of the record above, and how often they would by chance."""

    share: float
    chance: float

    @property
    def beyond(self) -> float:
        """The share of records that stand with their like beyond chance: 1 - units / records."""
        return (self.share - self.chance) / (1 - self.chance) if self.chance < 1 else 0.0

    def __str__(self) -> str:
        """Say both shares."""
        chance = chance_phrase(self.chance)
        return f"equal to the record above in {self.share:.1%} of records, where chance gives {chance}"


def row_repeats(facts: Facts, groups: Iterable[Facts] = (), others: Iterable[Facts] = ()) -> Repeats | None:
    """Return how often numbers stand beside their like, if that is no chance, no order and not by a known group.

    `others` are columns by which the file may be sorted.
    """
    codes = facts.category_codes
    if facts.distinct < FEWEST_VALUES or len(codes) <= FEWEST_VALUES:
        return None
    found = _repeats(codes, np.ones(len(codes) - 1, np.bool_), is_local=True)
    if found is None or _is_in_order(codes, found):
        return None
    if any(_is_by_group(codes, one) for one in groups):
        return None
    return None if any(_is_by_ties(codes, one) for one in others if one is not facts) else found


def neighbours(facts: Facts) -> Repeats | None:
    """Return how often numbers equal those of the record above, and all pairs of records; with two values at least."""
    codes = facts.category_codes
    both = (codes[1:] >= 0) & (codes[:-1] >= 0)
    counts = np.bincount(codes[codes >= 0])
    pairs, n = int(np.count_nonzero(both)), int(counts.sum())
    if not pairs or facts.distinct < 2:
        return None
    equal = int(np.count_nonzero((codes[1:] == codes[:-1]) & both))
    return Repeats(equal / pairs, float((counts * (counts - 1.0)).sum() / (n * (n - 1.0))))


def _is_by_group(codes: Codes, group: Facts) -> bool:
    """Whether values repeat for a known group alone: they are the same in all of it, or last in it over time."""
    inside = np.diff(group.category_codes) == 0
    both = inside & (codes[1:] >= 0) & (codes[:-1] >= 0)
    strays = np.count_nonzero((codes[1:] != codes[:-1]) & both)
    is_same = bool(strays <= MOST_STRAYS * np.count_nonzero(both))
    is_fine = group.present <= MOST_IN_GROUP * group.distinct
    return (is_same or is_fine) and _repeats(codes, ~inside, is_local=True) is None


def _is_by_ties(codes: Codes, other: Facts) -> bool:
    """Whether the file is sorted by a column, in whose ties values are in random order, and unlike between them."""
    if other.numbers is None and other.codes is None:
        return False
    steps = np.diff(other.category_codes)
    inside = steps == 0
    changes = np.count_nonzero(~inside)
    if (
        changes < FEWEST_VALUES
        or max(np.count_nonzero(steps > 0), np.count_nonzero(steps < 0)) < SORTED * changes
    ):
        return False
    both = inside & (codes[1:] >= 0) & (codes[:-1] >= 0)
    pairs = int(np.count_nonzero(both))
    if not pairs:
        return False
    found = Repeats(
        np.count_nonzero((codes[1:] == codes[:-1]) & both) / pairs, _chance_in_ties(codes, inside)
    )
    is_random = found.chance <= MOST_IN_TIE and not _is_far(found)
    return is_random and _repeats(codes, ~inside, is_local=True) is None


def _chance_in_ties(codes: Codes, inside: Bools) -> float:
    """Return how often neighbours in a tie would be equal if its records were in random order."""
    known = codes >= 0
    tie, distinct = np.cumsum(np.r_[True, ~inside])[known], int(codes.max()) + 1
    cells, counts = np.unique(tie * distinct + codes[known], return_counts=True)
    sizes = np.bincount(tie).astype(np.float64)
    equal = np.bincount(cells // distinct, counts * (counts - 1.0), len(sizes))
    several = sizes > 1
    return float((equal[several] / sizes[several]).sum() / max((sizes[several] - 1).sum(), 1.0))


def standing_together(facts: Facts) -> Repeats | None:
    """Return how often categories stand beside their like, if that is no chance; an order of the file may be why."""
    codes = facts.category_codes
    if facts.distinct < FEWEST_VALUES or len(codes) <= FEWEST_VALUES:
        return None
    return _repeats(codes, np.ones(len(codes) - 1, np.bool_), is_local=False)


def _repeats(codes: Codes, among: Bools, *, is_local: bool) -> Repeats | None:
    """Return how often some neighbours are equal, if that is no chance with and without the most frequent value."""
    counts = np.bincount(codes[codes >= 0])
    found = _repeat_shares(codes, counts, among, is_local=is_local)
    if found is None:
        return None
    counts[np.argmax(counts)] = 0
    rest = _repeat_shares(_without_most(codes), counts, among, is_local=is_local)
    return found if rest is not None else None


def _without_most(codes: Codes) -> Codes:
    """Return the codes without the most frequent one."""
    return np.where(codes == np.argmax(np.bincount(codes[codes >= 0])), -1, codes)


def _repeat_shares(
    codes: Codes, counts: npt.NDArray[np.int64], among: Bools, *, is_local: bool
) -> Repeats | None:
    both = among & (codes[1:] >= 0) & (codes[:-1] >= 0)
    pairs, n = int(np.count_nonzero(both)), int(counts.sum())
    if pairs < FEWEST_VALUES or n < 2:
        return None
    equal = int(np.count_nonzero((codes[1:] == codes[:-1]) & both))
    chance = float((counts * (counts - 1.0)).sum() / (n * (n - 1.0)))
    found = Repeats(equal / pairs, chance)
    if is_local and _is_far(found):
        near = max(_local_chance(codes, found.beyond), _rounding_chance(codes, both))
        found = Repeats(found.share, max(chance, near))
    spread = max(float(((counts / n) ** 3).sum()) - chance**2, 0.0) / max(chance * (1 - chance), 1e-300)
    is_sure = _tail(equal, pairs, found.chance, 1 + 2 * spread) < BY_CHANCE
    return found if _is_far(found) and is_sure else None


def _is_far(found: Repeats) -> bool:
    return found.beyond >= LEAST_SHARE and found.share >= TIMES_CHANCE * found.chance


def _local_chance(codes: Codes, beyond: float) -> float:
    """Return how often records agree that are some sizes of a unit apart."""
    size = 1 / max(1 - beyond, 1 / len(codes))
    ends = np.minimum(np.array([NEAR, FAR]) * size, len(codes) // 2)
    lags = np.unique(np.linspace(float(ends[0]), float(ends[1]), LAGS).astype(np.int64))
    equal = pairs = 0
    for lag in lags[lags > 0].tolist():
        both = (codes[lag:] >= 0) & (codes[:-lag] >= 0)
        pairs += int(np.count_nonzero(both))
        equal += int(np.count_nonzero((codes[lag:] == codes[:-lag]) & both))
    return equal / pairs if pairs else 0.0


def _tail(equal: int, pairs: int, chance: float, inflation: float) -> float:
    """Return the chance of so many equal neighbours, by a binomial law of as many pairs as have that variance."""
    from scipy.special import bdtrc

    if equal <= 0:
        return 1.0
    return float(bdtrc(np.ceil(equal / inflation) - 1, int(np.ceil(pairs / inflation)), chance))


def _rounding_chance(codes: Codes, among: Bools) -> float:
    """Return how often neighbours are equal by rounding alone, by those that lie one and two places apart."""
    apart = np.abs(codes[1:] - codes[:-1])[among]
    one, two = int(np.count_nonzero(apart == 1)), int(np.count_nonzero(apart == 2))
    return min(one**2 / (two + 1) / 2 / len(apart), 1.0)


def _is_in_order(codes: Codes, found: Repeats) -> bool:
    """Whether unlike neighbours go on in one direction, as in a file that is sorted in parts."""
    known = codes[codes >= 0]
    steps = np.diff(known)
    is_up = steps[steps != 0] > 0
    if len(is_up) < 2:
        return True
    turns, able = int(np.count_nonzero(is_up[1:] != is_up[:-1])), len(is_up) - 1
    if turns >= min(LEAST_TURNS * able, 2 / 3 * able - FEW_TURNS * np.sqrt(8 / 45 * able)):
        return False
    up, down = np.count_nonzero(is_up[1:] & is_up[:-1]), np.count_nonzero(~is_up[1:] & ~is_up[:-1])
    is_wave = turns >= FEWEST_TURNS and min(up, down) >= LEAST_BACK * (up + down)
    is_fine = len(is_up) < WAVE_PASSES * len(np.unique(known))
    return not (is_wave and is_fine and found.beyond >= MOST_TOGETHER)

"""Values that stand beside their like in the file far more often than by chance: of a household, a pupil, an employer.

Let q be the share of records that have the value of the record above, and P that of all pairs of records that agree.
Where units of m records on average stand together, share a value and are in no order, q = 1/m P + (1 - 1/m) to the
first order, so that (q - P) / (1 - P) estimates 1 - 1/m. In a sorted file neighbours agree without being of one unit:
P is therefore no less than the agreement of records 4m to 8m apart, beyond any unit but near in the file; and among
unlike neighbours the direction must change as often as in a file in random order, 2 of 3 times (Bienayme 1874), where
a file sorted in parts has few such turns. All of it must hold without the most frequent value too, and where a group of
records is known, between its groups. By chance the number of equal neighbours is binomial but for a variance that is
1 + 2 (sum p^3 - P^2) / (P (1 - P)) times as large, as two pairs have a record in common.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

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
        chance = f"{self.chance:.1%}" if self.chance >= 0.001 else "under 0.1%"
        return f"equal to the record above in {self.share:.1%} of records, where chance gives {chance}"


def row_repeats(facts: Facts, groups: Iterable[Facts] = ()) -> Repeats | None:
    """Return how often numbers stand beside their like, if that is no chance, no order and not by a known group."""
    codes = facts.category_codes
    if facts.distinct < FEWEST_VALUES or len(codes) <= FEWEST_VALUES:
        return None
    found = _repeats(codes, np.ones(len(codes) - 1, np.bool_), is_local=True)
    if found is None or _turn_share(codes) < LEAST_TURNS:
        return None
    return None if any(_is_by_group(codes, one) for one in groups) else found


def _is_by_group(codes: Codes, group: Facts) -> bool:
    """Whether values repeat for a known group alone: they are the same in all of it, or last in it over time."""
    inside = np.diff(group.category_codes) == 0
    both = inside & (codes[1:] >= 0) & (codes[:-1] >= 0)
    strays = np.count_nonzero((codes[1:] != codes[:-1]) & both)
    is_same = bool(strays <= MOST_STRAYS * np.count_nonzero(both))
    is_fine = group.present <= MOST_IN_GROUP * group.distinct
    return (is_same or is_fine) and _repeats(codes, ~inside, is_local=True) is None


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
    most = int(np.argmax(counts))
    rest = np.where(codes == most, -1, codes)
    counts[most] = 0
    return found if _repeat_shares(rest, counts, among, is_local=is_local) is not None else None


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
        found = Repeats(found.share, max(chance, _local_chance(codes, found.beyond)))
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


def _turn_share(codes: Codes) -> float:
    """Return the share of changes between unlike neighbours that go the other way than the one before."""
    steps = np.sign(np.diff(codes[codes >= 0]))
    steps = steps[steps != 0]
    return float(np.mean(steps[1:] != steps[:-1])) if len(steps) > 1 else 0.0

"""Ways to put the members of a group together that need no equal values: likeness, pointers, shares, and order.

The group g of each released record is known here. Each way gives every record i a guess of a companion, and a score of
how sure the guess is. From the surest on, guesses are looked at in lots of 30 and more: as long as a third of a lot is
right, its records are told together, as where equal values are counted (one guess of three is right). The ways:

- *likeness*: the nearest other record in the columns that members have in common, in units of their sd within groups
  (the part of a linear discriminant, Fisher 1936, that needs no labels once the scale is known), among records with
  equal values in the columns that groups share; surest where the second nearest is much farther;
- *pointers*: a record whose value in one column is that of another column of a companion (a spouse's year of birth),
  surest where few records have it;
- *shares*: of a column that adds up to one number T in every group, the record that has what is left of it, in groups
  of two. A group of k = 3 to 6 among m records that could be its members is told where at most two other sets are
  expected to add up too: with mean mu and sd s of the values, and u the step in which they are written,

      C(m - 1, k - 1) u / (s sqrt(k - 1)) phi((T - x - (k - 1) mu) / (s sqrt(k - 1))) <= 2,

  phi the normal density. Sets are not searched for: who has the time finds them (a subset sum);
- *order*: the next record in the file.

In a large file some of the records, evenly spread in its shuffled order, look for a companion among all.

Several of these at once, relations of other kinds (an age difference, names), and pointers among noised values are not
looked for, and the verdict says so.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Codes = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]
Way = tuple[str, tuple[str, ...]]  # by what, in words, and the columns

RIGHT = 1 / 3  # of the guesses: as few other groups as equal values may leave
FEWEST, LOT = 30, 0.01  # guesses in a lot, and their share: a third of fewer is right by chance too often
ALIKE = 0.05  # share of a column's variance that lies between groups, from which on it may tell companions
MOST_COLUMNS = 6  # by which likeness is looked for: a tree of more is no quicker than all pairs
MOST_RECORDS = 5_000_000  # in which companions are searched: a tree of them takes a minute and a gigabyte
MOST_SOUGHT = 20_000  # records that look for a companion, evenly spread: a share of 1% is then known to 0.07%
MOST_POINTED = 3  # records with a value, beyond which it points to none
FEWEST_VALUES = 20  # different values, for a column to point or to add up
OVERLAP = 0.2  # share of a column's values that occur in another, for these to point there
ADDS_UP = 0.9  # share of groups in which a column adds up to one number
MOST_MEMBERS = 6  # of a group whose shares are looked at
OTHER_SETS = 2.0  # expected beside a group that add up as it does: one of three is still right
FINEST = 1e-9  # of a total: what lies nearer is the same number, but for rounding
FAR = 1e6  # between blocks, in sds: no record is compared across


@dataclass(frozen=True, slots=True)
class Companions:
    """Who is put together, of `sought` records: `told` marks them, `how` says by what, in words that follow "by"."""

    told: Bools
    how: str
    columns: tuple[str, ...]
    sought: int

    @property
    def share(self) -> float:
        """The share of those who looked for a companion whom a good guess told."""
        return float(self.told.sum()) / max(self.sought, 1)


def companions(numbers: Mapping[str, Floats], group: Codes, blocks: Codes) -> Iterator[Companions]:
    """Try every way on released numbers (NaN where there is none); `blocks` number what groups share for sure."""
    sizes = np.bincount(group)
    several = sizes[group] >= 2
    if not several.any():
        return
    if len(group) <= MOST_RECORDS:
        yield from _alike(numbers, group, blocks, several)
        yield from _pointed(numbers, group, several)
    yield from _adding_up(numbers, group, sizes)
    yield from _adding_up_in_sets(numbers, group, sizes, blocks)
    at = np.flatnonzero(several)
    following = np.roll(np.arange(len(group)), -1)[at]
    yield _told(at, following, np.zeros(len(at)), group, ("their order in the file", ()), len(at))


def _told(at: Codes, guess: Codes, score: Floats, group: Codes, way: Way, sought: int) -> Companions:
    """Mark the records whose guesses are right in one of three, from the surest on, lot by lot, until a lot is not."""
    told = np.zeros(len(group), bool)
    order = np.argsort(score, kind="stable")
    right = np.append(0, np.cumsum(group[at[order]] == group[guess[order]]))
    # Guesses of one score are in one lot, so that their order does not choose the right ones.
    ends = np.append(np.flatnonzero(np.diff(score[order]) > 0) + 1, len(order))
    lot, start = max(FEWEST, int(LOT * len(order))), 0
    while start < len(order):
        end = int(ends[np.searchsorted(ends, min(start + lot, len(order)))])
        if end - start < FEWEST or right[end] - right[start] < RIGHT * (end - start):
            break
        start = end
    told[at[order[:start]]] = True
    return Companions(told, *way, sought)


# Likeness.


def _alike(
    numbers: Mapping[str, Floats], group: Codes, blocks: Codes, several: Bools
) -> Iterator[Companions]:
    within = {name: _within_sd(x, group, several) for name, x in numbers.items() if not np.isnan(x).any()}
    between = {
        name: 1 - sd**2 / float(np.var(numbers[name]))
        for name, sd in within.items()
        if sd > 0 and np.var(numbers[name]) > 0
    }
    chosen = sorted((n for n in between if between[n] > ALIKE), key=lambda n: -between[n])[:MOST_COLUMNS]
    if not chosen:
        return
    x = np.column_stack([FAR * blocks, *(numbers[name] / within[name] for name in chosen)])
    at = _some(several)
    guess, score = _nearest(x, at)
    yield _told(at, guess, score, group, (f"likeness in {', '.join(chosen)}", tuple(chosen)), len(at))


def _some(several: Bools) -> Codes:
    """Return the records that look for a companion: those in groups, evenly spread where they are many."""
    at = np.flatnonzero(several)
    return np.asarray(at[:: max(1, -(-len(at) // MOST_SOUGHT))])


def _within_sd(x: Floats, group: Codes, several: Bools) -> float:
    """Return the sd of a column within groups of two and more."""
    sizes = np.maximum(np.bincount(group), 1)
    off = (x - (np.bincount(group, x) / sizes)[group])[several]
    freedom = int(several.sum()) - len(np.unique(group[several]))
    return float(np.sqrt((off @ off) / freedom)) if freedom > 0 else 0.0


def _nearest(x: Floats, at: Codes) -> tuple[Codes, Floats]:
    """Return the nearest other record of some, and its distance over that of the second nearest."""
    from scipy.spatial import cKDTree

    answer = cKDTree(x).query(x[at], k=min(3, len(x)))
    distance, found = np.asarray(answer[0], np.float64), np.asarray(answer[1], np.int64)
    own = found == at[:, None]
    own[~own.any(axis=1), -1] = True  # equal records: the last of them is left out in place of itself
    rest = np.argsort(own, axis=1, kind="stable")[:, :-1]
    distance, found = np.take_along_axis(distance, rest, axis=1), np.take_along_axis(found, rest, axis=1)
    if distance.shape[1] < 2:
        return found[:, 0], np.zeros(len(at))
    with np.errstate(divide="ignore", invalid="ignore"):
        score = np.where(distance[:, 1] > 0, distance[:, 0] / distance[:, 1], 1.0)
    return found[:, 0], score


# Pointers and shares.


def _pointed(numbers: Mapping[str, Floats], group: Codes, several: Bools) -> Iterator[Companions]:
    """Try whether values of one column are those of another column in a companion's record."""
    support = {name: np.unique(x[~np.isnan(x)]) for name, x in numbers.items()}
    many = [name for name in numbers if len(support[name]) >= FEWEST_VALUES]
    among = np.zeros(len(group), bool)
    among[_some(several)] = True
    for to in many:
        ordered = _Ordered.of(numbers[to])
        for of in (name for name in many if name != to):
            if np.isin(support[of], support[to]).mean() < OVERLAP:
                continue
            way = f"{of} of one record, {to} of another", (of, to)
            yield from _links(numbers[of], ordered, group, among, way, int(among.sum()))


def _adding_up(numbers: Mapping[str, Floats], group: Codes, sizes: Codes) -> Iterator[Companions]:
    """Try whether a column adds up to one number in groups, and what is left of it points to the companion."""
    pairs, several = sizes[group] == 2, int((sizes[group] >= 2).sum())
    for name, x in numbers.items():
        if np.isnan(x).any() or len(np.unique(x)) < FEWEST_VALUES or not pairs.any():
            continue
        sums = np.bincount(group, x)[sizes == 2]
        usual = float(np.median(sums))
        if np.mean(np.abs(sums - usual) <= 1e-6 * max(abs(usual), 1.0)) >= ADDS_UP and usual:
            way = f"{name}, which adds up to one number", (name,)
            ordered = _Ordered.of(np.round(x, 9))
            yield from _links(np.round(usual - x, 9), ordered, group, pairs, way, several)


def _adding_up_in_sets(
    numbers: Mapping[str, Floats], group: Codes, sizes: Codes, blocks: Codes
) -> Iterator[Companions]:
    """Try whether a column adds up to one number in groups of three to six, and in few other sets of a block."""
    several = int((sizes[group] >= 2).sum())
    near = np.bincount(blocks)[blocks]
    for name, x in numbers.items():
        steps = np.diff(np.unique(x[~np.isnan(x)]))
        if np.isnan(x).any() or len(steps) + 1 < FEWEST_VALUES:
            continue
        told, sums = np.zeros(len(group), bool), np.bincount(group, x)
        for members in range(3, MOST_MEMBERS + 1):
            own = sums[sizes == members]
            usual = float(np.median(own)) if len(own) else 0.0
            fine = FINEST * max(abs(usual), 1.0)
            if not usual or np.mean(np.abs(own - usual) <= 1e3 * fine) < ADDS_UP:
                continue
            step = max(float(steps[steps > fine].min(initial=np.inf)), fine)
            few = _other_sets(x, usual, members, near, step) <= OTHER_SETS
            told |= few & (sizes[group] == members)
        if told.any():
            yield Companions(told, f"{name}, which adds up to one number in its groups", (name,), several)


def _other_sets(x: Floats, total: float, members: int, near: Codes, step: float) -> Floats:
    """Return how many sets of others are expected to make up a total with each record, by a normal law of their sum."""
    from scipy.special import gammaln

    others, room = members - 1, np.maximum(near - 1, members - 1)
    sets = gammaln(room + 1.0) - gammaln(others + 1.0) - gammaln(room - others + 1.0)
    sd = float(x.std()) * np.sqrt(others)
    off = (total - x - others * float(x.mean())) / sd
    chance = np.log(step / (sd * np.sqrt(2 * np.pi))) - 0.5 * off**2
    return np.asarray(np.exp(np.minimum(sets + chance, 700.0)))


@dataclass(frozen=True, slots=True)
class _Ordered:
    """A column to which others may point: its values, and the records that have one from the least on."""

    values: Floats
    known: Codes

    @classmethod
    def of(cls, values: Floats) -> _Ordered:
        order = np.argsort(values, kind="stable")  # NaN come last
        return cls(values, order[: int(np.count_nonzero(~np.isnan(values)))])


def _links(
    of: Floats, ordered: _Ordered, group: Codes, among: Bools, way: Way, sought: int
) -> Iterator[Companions]:
    """Guess, for records with a value that few others have in another column, one of these."""
    to, known = ordered.values, ordered.known
    at = np.flatnonzero(among & ~np.isnan(of))
    sorted_values = to[known]
    first = np.searchsorted(sorted_values, of[at], side="left")
    count = np.searchsorted(sorted_values, of[at], side="right") - first
    count = count - (to[at] == of[at])  # a record may have the same value in both columns
    some = (count > 0) & (count <= MOST_POINTED)
    at, first, count = at[some], first[some], count[some]
    if len(at) < FEWEST:
        return
    guess = known[first]
    guess = np.where(guess == at, known[np.minimum(first + 1, len(known) - 1)], guess)
    yield _told(at, guess, count.astype(np.float64), group, way, sought)

"""Ways to put the members of a group together that need no equal values: likeness, pointers, shares, and order.

The group g of each released record is known here. Each way gives every record i a guess of a companion, and a score of
how sure the guess is. From the surest on, guesses are looked at in lots of 30 and more: as long as a third of a lot is
right, its records are told together, as where equal values are counted (one guess of three is right). The ways:

- *likeness*: the nearest other record in the columns that members have in common, in units of their sd within groups
  (the part of a linear discriminant, Fisher 1936, that needs no labels once the scale is known), among records with
  equal values in the columns that groups share; surest where the second nearest is much farther;
- *pointers*: a record whose value in one column is that of another column of a companion (a spouse's year of birth),
  surest where few records have it;
- *shares*: of a column that adds up to one number in every group, the record that has what is left of it, in groups of
  two; larger ones are not solved for;
- *order*: the next record in the file.

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
MOST_RECORDS = 300_000  # in which the nearest is searched
MOST_SOUGHT = 20_000  # records that look for a companion, evenly spread: a share of 1% is then known to 0.07%
MOST_POINTED = 3  # records with a value, beyond which it points to none
FEWEST_VALUES = 20  # different values, for a column to point or to add up
OVERLAP = 0.2  # share of a column's values that occur in another, for these to point there
ADDS_UP = 0.9  # share of groups in which a column adds up to one number
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
    yield from _alike(numbers, group, blocks, several)
    yield from _pointed(numbers, group, several)
    yield from _adding_up(numbers, group, sizes)
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
    if not chosen or len(group) > MOST_RECORDS:
        return
    x = np.column_stack([FAR * blocks, *(numbers[name] / within[name] for name in chosen)])
    at = np.flatnonzero(several)
    at = at[:: max(1, -(-len(at) // MOST_SOUGHT))]
    guess, score = _nearest(x, at)
    yield _told(at, guess, score, group, (f"likeness in {', '.join(chosen)}", tuple(chosen)), len(at))


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
    pairs = [(of, to) for of in many for to in many if of != to]
    for of, to in pairs if len(group) <= MOST_RECORDS else ():
        if np.isin(support[of], support[to]).mean() < OVERLAP:
            continue
        way = f"{of} of one record, {to} of another", (of, to)
        yield from _links(numbers[of], numbers[to], group, several, way, int(several.sum()))


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
            yield from _links(np.round(usual - x, 9), np.round(x, 9), group, pairs, way, several)


def _links(of: Floats, to: Floats, group: Codes, among: Bools, way: Way, sought: int) -> Iterator[Companions]:
    """Guess, for records with a value that few others have in another column, one of these."""
    order = np.argsort(to, kind="stable")  # NaN come last
    known = order[: int(np.count_nonzero(~np.isnan(to)))]
    at = np.flatnonzero(among & ~np.isnan(of))
    first = np.searchsorted(to[known], of[at], side="left")
    count = np.searchsorted(to[known], of[at], side="right") - first
    count = count - (to[at] == of[at])  # a record may have the same value in both columns
    some = (count > 0) & (count <= MOST_POINTED)
    at, first, count = at[some], first[some], count[some]
    if len(at) < FEWEST:
        return
    guess = known[first]
    guess = np.where(guess == at, known[np.minimum(first + 1, len(known) - 1)], guess)
    yield _told(at, guess, count.astype(np.float64), group, way, sought)

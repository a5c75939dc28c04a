"""Ways to put the members of a group together that need no equal values: likeness, pointers, shares, and order.

The group g of each released record is known here. Each way gives every record i a guess of a companion, and a score of
how sure the guess is. How probably a guess is right falls along the scores and is estimated from them (isotonic
regression, by pooling adjacent violators: Ayer and others 1955); where it is a third and more, records are told
together, as where equal values are counted (one guess of three is right). The ways:

- *likeness*: the nearest other record by the linear discriminants of the groups (Fisher 1936; Rao 1948): with W the
  covariance within groups and T that of all records, the directions v with W v = lambda T v, v'Tv = 1 and the least
  lambda, each in units of its sd within groups. So a difference of two columns that all members share tells (a score
  and the same less the school's mean), though neither column does. By the columns themselves too, each in units of
  its sd within groups, as covariances say little of long tails. Among records with equal values in the columns
  that groups share; surest where the second nearest is much farther;
- *pointers*: a record whose value in one column is that of another column of a companion (a spouse's year of birth),
  surest where few records have it;
- *shares*: of a column that adds up to one number T in every group, the record that has what is left of it, in groups
  of two. A group of k = 3 to 6 among m records that could be its members is told where at most two other sets add up
  too. Sets are not searched for (who has the time finds them: a subset sum), their number is taken as Poisson's with
  the mean that independent records give, f the density of the sum of k - 1 values and u the step in which they are
  written,

      mu = C(m - 1, k - 1) u f(T - x),   told: as many records as the sum of P(Poisson(mu) <= 2), those of least mu;
- *order*: the next record in the file.

In a large file some of the records, evenly spread in its shuffled order, look for a companion among all.

Several of these at once, relations of other kinds (an age difference, names), and pointers among noised values are not
looked for, and the verdict says so.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Codes = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]
Way = tuple[str, tuple[str, ...]]  # by what, in words, and the columns

RIGHT = 1 / 3  # of the guesses: as few other groups as equal values may leave
FEWEST = 30  # guesses: a third of fewer is right by chance too often
ALIKE = 0.05  # share of a direction's variance that lies between groups, from which on it may tell companions
MOST_DIRECTIONS = 6  # by which likeness is looked for: a tree of more is no quicker than all pairs
MOST_FITTED = 200_000  # records in groups from which directions are estimated: more leave them the same
LEAST_WITHIN = 1e-8  # of a direction's variance: below it members are the same, but for rounding
RIDGE = 1e-10  # of a column's variance: columns that add up leave no direction of their own
MOST_GAPS = 0.5  # share of a column's values: of more missing ones nothing is learned
MOST_RECORDS = 5_000_000  # in which companions are searched: a tree of them takes a minute and a gigabyte
MOST_SOUGHT = 20_000  # records that look for a companion, evenly spread: a share of 1% is then known to 0.07%
MOST_POINTED = 3  # records with a value, beyond which it points to none
FEWEST_VALUES = 20  # different values, for a column to point or to add up
OVERLAP = 0.2  # share of a column's values that occur in another, for these to point there
ADDS_UP = 0.9  # share of groups in which a column adds up to one number
MOST_MEMBERS = 6  # of a group whose shares are looked at
OTHER_SETS = 2  # beside a group that add up as it does: one of three is still right
ROUNDING = 1e-12  # of a share: a third is one
BINS = 4_096  # at most, of the histogram whose sums are counted: a tenth of an sd then has some hundred
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
        yield from _pointer_companions(numbers, group, several)
    yield from _adding_up(numbers, group, sizes)
    yield from _adding_up_in_sets(numbers, group, sizes, blocks)
    at = np.flatnonzero(several)
    following = np.roll(np.arange(len(group)), -1)[at]
    yield _likely_companions(
        at, following, np.zeros(len(at)), group, ("their order in the file", ()), len(at)
    )


def _likely_companions(
    at: Codes, guess: Codes, score: Floats, group: Codes, way: Way, sought: int
) -> Companions:
    """Mark the records whose guesses are right in one of three, by what guesses as sure are."""
    from scipy.optimize import isotonic_regression

    told = np.zeros(len(group), bool)
    # Guesses of one score stand together, so that their order does not choose the right ones.
    _, place, count = np.unique(score, return_inverse=True, return_counts=True)
    right = np.bincount(place.ravel(), group[at] == group[guess]) / count
    chance = isotonic_regression(right, weights=count, increasing=False).x
    sure = (chance >= RIGHT - ROUNDING)[place.ravel()]
    if np.count_nonzero(sure) >= FEWEST:
        told[at[sure]] = True
    return Companions(told, *way, sought)


# Likeness.


def _alike(
    numbers: Mapping[str, Floats], group: Codes, blocks: Codes, several: Bools
) -> Iterator[Companions]:
    names = [name for name, x in numbers.items() if _varies_within(x, group)]  # else it is among the blocks
    if not names:
        return
    within, total = group_covariances([numbers[name] for name in names], group, several)
    at = _some(several)
    for weights in (_discriminants(within, total), _single_columns(within, total)):
        if not weights.shape[1]:
            continue
        x = np.zeros((len(group), 1 + weights.shape[1]))
        x[:, 0] = FAR * blocks
        for name, weight in zip(names, weights, strict=True):
            x[:, 1:] += np.outer(_standard_scores(numbers[name]), weight)
        guess, score = _nearest(x, at)
        telling = _dominant_columns(names, weights)
        yield _likely_companions(
            at, guess, score, group, (f"likeness in {', '.join(telling)}", telling), len(at)
        )


def _varies_within(x: Floats, group: Codes) -> bool:
    """Whether a column is known of enough records and not the same for all members of each group."""
    if np.isnan(x).mean() >= MOST_GAPS or not np.nanvar(x) > 0:
        return False
    one = np.zeros(int(group.max()) + 1)
    known = ~np.isnan(x)
    one[group[known]] = x[known]
    return bool(np.any(one[group[known]] != x[known]))


def group_covariances(columns: Sequence[Floats], group: Codes, several: Bools) -> tuple[Floats, Floats]:
    """Return the covariances of standardised columns, within groups and of all records."""
    numbers = np.unique(group[several])
    some = np.isin(group, numbers[:: max(1, -(-int(several.sum()) // MOST_FITTED))])
    x = np.column_stack([_standard_scores(column)[some] for column in columns])
    member = np.unique(group[some], return_inverse=True)[1].ravel()
    sizes = np.bincount(member)
    means = np.column_stack([np.bincount(member, one) / sizes for one in x.T])
    off, ridge = x - means[member], RIDGE * np.eye(len(columns))
    x = x - x.mean(axis=0)
    return off.T @ off / (len(member) - len(sizes)) + ridge, x.T @ x / len(x) + ridge


def _discriminants(within: Floats, total: Floats) -> Floats:
    """Return directions that groups have in common, a column each, in units of the sd within groups."""
    from scipy.linalg import eigh

    shares, vectors = eigh(within, total)
    chosen = np.flatnonzero(1 - shares > ALIKE)[:MOST_DIRECTIONS]
    return np.asarray(vectors[:, chosen] / np.sqrt(np.maximum(shares[chosen], LEAST_WITHIN)))


def _single_columns(within: Floats, total: Floats) -> Floats:
    """Return the columns themselves that groups have in common: where tails are long, covariances say too little."""
    shares = np.diag(within) / np.diag(total)
    chosen = np.argsort(shares, kind="stable")[:MOST_DIRECTIONS]
    chosen = chosen[1 - shares[chosen] > ALIKE]
    return np.asarray(np.eye(len(within))[:, chosen] / np.sqrt(np.diag(within)[chosen]))


def _standard_scores(x: Floats) -> Floats:
    """Return a column with mean 0 and sd 1; what is missing is taken as the mean."""
    filled = np.where(np.isnan(x), np.nanmean(x), x)
    return np.asarray((filled - filled.mean()) / filled.std())


def _dominant_columns(names: Sequence[str], weights: Floats) -> tuple[str, ...]:
    """Return the columns that weigh most in some direction."""
    strong = (np.abs(weights) >= 0.5 * np.abs(weights).max(axis=0)).any(axis=1)
    return tuple(name for name, much in zip(names, strong, strict=True) if much)


def _some(several: Bools) -> Codes:
    """Return the records that look for a companion: those in groups, evenly spread where they are many."""
    at = np.flatnonzero(several)
    return np.asarray(at[:: max(1, -(-len(at) // MOST_SOUGHT))])


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


def _pointer_companions(numbers: Mapping[str, Floats], group: Codes, several: Bools) -> Iterator[Companions]:
    """Try whether values of one column are those of another column in a companion's record."""
    support = {name: np.unique(x[~np.isnan(x)]) for name, x in numbers.items()}
    many = [name for name in numbers if len(support[name]) >= FEWEST_VALUES]
    among = np.zeros(len(group), bool)
    among[_some(several)] = True
    for to in many:
        ordered = _OrderedColumn.of(numbers[to])
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
            ordered = _OrderedColumn.of(np.round(x, 9))
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
            told[
                _told_sets(other_sets(x, usual, members, near, step), np.flatnonzero(sizes[group] == members))
            ] = True
        if told.any():
            yield Companions(told, f"{name}, which adds up to one number in its groups", (name,), several)


def _told_sets(expected: Floats, at: Codes) -> Codes:
    """Return as many of some records as are expected to have few other sets, those with the fewest first."""
    from scipy.special import pdtr

    count = round(float(pdtr(OTHER_SETS, expected[at]).sum()))
    return np.asarray(at[np.argsort(expected[at], kind="stable")[:count]])


def other_sets(x: Floats, total: float, members: int, near: Codes, step: float) -> Floats:
    """Return how many sets of others are expected to make up a total with each record, by the law of their sum.

    Its density is that of a histogram, convolved with itself by Fourier's transform.
    """
    from scipy.special import gammaln

    others, room = members - 1, np.maximum(near - 1, members - 1)
    sets = gammaln(room + 1.0) - gammaln(others + 1.0) - gammaln(room - others + 1.0)
    low, width = float(x.min()), max(float(np.ptp(x)) / (min(BINS, len(x)) - 1), step)
    counts = np.bincount(np.rint((x - low) / width).astype(np.int64))
    size = others * len(counts)
    mass = np.fft.irfft(np.fft.rfft(counts / len(x), size) ** others, size)
    place = np.rint((total - x - others * low) / width)
    inside = (place >= 0) & (place < size)
    density = (
        np.where(inside, np.maximum(mass[np.clip(place, 0, size - 1).astype(np.int64)], 0.0), 0.0) / width
    )
    return np.asarray(step * density * np.exp(np.minimum(sets, 700.0)))


@dataclass(frozen=True, slots=True)
class _OrderedColumn:
    """A column to which others may point: its values, and the records that have one from the least on."""

    values: Floats
    known: Codes

    @classmethod
    def of(cls, values: Floats) -> _OrderedColumn:
        order = np.argsort(values, kind="stable")  # NaN come last
        return cls(values, order[: int(np.count_nonzero(~np.isnan(values)))])


def _links(
    of: Floats, ordered: _OrderedColumn, group: Codes, among: Bools, way: Way, sought: int
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
    yield _likely_companions(at, guess, count.astype(np.float64), group, way, sought)

"""Laws of values that nobody outside knows, given what is known of a record and of its companions.

They are linear ones, of normal scores of numbers and of indicators of the levels of categories, fitted by least
squares: of groups of records no more is learned from a few thousand of them. What is left of likeness between two
members is a correlation along each discriminant of the numbers (Fisher 1936), and for each category the divergence of
the table of all pairs from the one that the law makes expected. Used by `companion_information`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import product

import numpy as np
import numpy.typing as npt

from .group_links import group_covariances

Codes = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

NEGLIGIBLE = 0.02  # correlation of members below which a direction tells nothing and only adds up to chance
LEAST_WITHIN = 1e-8  # of a direction's variance: below it members are the same, but for rounding
MOST_GAPS = 0.5  # share of a column's values: of more missing ones nothing is learned
MOST_LEVELS = 25  # of a category: more are dealt out over as many, which still tells four bits of a pair
MOST_MEANS = 30  # columns of what is known of companions: what more tell is mostly in these
GROUPS_EACH = 10  # groups for each of them: with fewer a law of them is chance
RIDGE = 1e-9  # of a column's square: columns that others make up leave no direction of their own
MOST_PAIRED = 12  # categories of which each is looked at beside each: 144 tables
LEAST_CHANGES = 50  # records: a share of fewer is chance
LEAST_CHANCE = 1e-3  # of a category, by a linear law: below 0 there is none


@dataclass(frozen=True, slots=True)
class CompanionColumns:
    """Columns by name: numbers (NaN where missing), and categories as codes from 0 on."""

    numbers: Mapping[str, Floats] = field(default_factory=dict)
    categories: Mapping[str, Codes] = field(default_factory=dict)


def is_usable(x: Floats) -> bool:
    """Whether enough of a number is known, and it varies."""
    return bool(np.isnan(x).mean() < MOST_GAPS and np.nanvar(x) > 0)


@dataclass(frozen=True, slots=True)
class UnknownValues:
    """Unknown values: a score for each number, an indicator for each level of each category."""

    table: Floats
    numbers: int
    levels: tuple[slice, ...]

    @classmethod
    def of(cls, unknown: CompanionColumns, some: npt.NDArray[np.bool_]) -> UnknownValues:
        """Take some records of unknown columns."""
        scores = [normal_scores(x[some]) for x in unknown.numbers.values() if is_usable(x[some])]
        columns = [np.column_stack([np.zeros((int(some.sum()), 0)), *scores])]
        levels, start = list[slice](), len(scores)
        for codes in unknown.categories.values():
            columns.append(indicators(codes[some]))
            levels.append(slice(start, start := start + columns[-1].shape[1]))
        return cls(np.column_stack(columns), len(scores), tuple(levels))

    def told(self, before: Floats, after: Floats) -> float:
        """Return the bits on a record's values by which one expectation tells more than another."""
        bits = 0.0
        if self.numbers:
            first, second = (self._residuals(one) for one in (before, after))
            ridge = LEAST_WITHIN * np.eye(self.numbers) * len(first)
            ratio = (
                np.linalg.slogdet(first.T @ first + ridge)[1]
                - np.linalg.slogdet(second.T @ second + ridge)[1]
            )
            bits += 0.5 * float(ratio) / float(np.log(2))
        for at in self.levels:
            ratio = _chances(after[:, at]) / _chances(before[:, at])
            bits += float((self.table[:, at] * np.log2(ratio)).sum(axis=1).mean())
        return bits

    def correlations(self, expected: Floats, member: Codes) -> tuple[Floats, Floats]:
        """Return the correlations of two members beyond what is expected: of each direction, and of each category.

        Of a category it is the one by which normal values have as much in common.
        """
        found = _correlations(self._residuals(expected), member) if self.numbers else np.zeros(0)
        pairs = [_divergence(self.table[:, at], _chances(expected[:, at]), member) for at in self.levels]
        return found, np.sqrt(1 - 2.0 ** (-2 * np.array(pairs)))

    def next_correlation(self, expected: Floats, first: Codes, second: Codes) -> float:
        """Return the correlation by which normal values have as much in common as two categories of neighbours.

        Of one record and the next of its group, a category of the one and any of the other, the two with most: what was
        last year is a column of this year. Less what chance does (the mean of a chi-square and four of its sds).
        """
        most, some = 0.0, self.levels[:MOST_PAIRED]
        for a, b in product(some, some):
            seen = self.table[first, a].T @ self.table[second, b] / max(len(first), 1)
            usual = _chances(expected[:, a])[first].T @ _chances(expected[:, b])[second] / max(len(first), 1)
            there = seen > 0
            bits = float((seen[there] * np.log2(seen[there] / usual[there])).sum())
            most = max(most, bits - _by_chance(seen, len(first)))
        return float(np.sqrt(1 - 2.0 ** (-2 * most)))

    def change_bits(self, known: Floats, member: Codes, place: Codes) -> float:
        """Return the bits that changes of known numbers between neighbours of a group tell of categories.

        Along the order of a change, levels that it gives follow one another: the share of neighbours in that order that
        agree, beyond chance and beyond what the order of the number itself has, times the entropy of the category. For
        each category the change that tells most: of a record, of the next, of the one before.
        """
        codes = [self.table[:, at].argmax(axis=1) for at in self.levels[:MOST_PAIRED]]
        bits = 0.0
        for u in codes:
            told = [
                is_known.mean()
                * (_in_step(u[is_known], change[is_known]) - _in_step(u[is_known], x[is_known]))
                for x in known.T
                for change in _changes(x, member, place)
                if (is_known := ~np.isnan(change)).sum() >= LEAST_CHANGES
            ]
            share = np.bincount(u) / len(u)
            entropy = -float((share[share > 0] * np.log2(share[share > 0])).sum())
            bits += entropy * max(0.0, *told) if told else 0.0
        return bits

    def _residuals(self, expected: Floats) -> Floats:
        return np.asarray(self.table[:, : self.numbers] - expected[:, : self.numbers])


@dataclass(frozen=True, slots=True)
class KnownDesign:
    """What is compared of a record: 1, the scores of numbers, and the indicators of categories."""

    own: Floats
    numbers: int

    @classmethod
    def of(cls, known: CompanionColumns, some: npt.NDArray[np.bool_]) -> KnownDesign:
        """Take some records of known columns."""
        scores = [normal_scores(x[some]) for x in known.numbers.values() if is_usable(x[some])]
        levels = [indicators(codes[some])[:, 1:] for codes in known.categories.values()]
        return cls(np.column_stack([np.ones(int(some.sum())), *scores, *levels]), len(scores))

    def beside(self, member: Codes) -> Floats:
        """Return it beside what is known of companions: size of the group, their means, the place among them."""
        sizes = np.bincount(member)
        sums = np.column_stack([np.bincount(member, x)[member] - x for x in self.own.T])
        means = sums / (sizes[member] - 1)[:, None]
        return self._joined(np.log(sizes)[member], means, self._places(member), len(sizes))

    def exchanged(self, member: Codes, rng: np.random.Generator) -> Floats:
        """Return it beside the means of another group and the places of others: what chance tells of companions."""
        sizes = np.bincount(member)
        means = np.column_stack([np.bincount(member, x) / sizes for x in self.own.T])
        other = rng.permutation(len(sizes))[member]
        places = rng.permutation(self._places(member))
        return self._joined(np.log(sizes)[other], means[other], places, len(sizes))

    def _places(self, member: Codes) -> Floats:
        """Return where in its group a record stands by each number, from 0 to 1: the eldest, the tallest."""
        sizes = np.bincount(member)
        before = np.cumsum(sizes) - sizes
        places = np.empty((len(member), self.numbers))
        for k in range(self.numbers):
            order = np.lexsort((self.own[:, 1 + k], member))
            places[order, k] = (np.arange(len(member)) - before[member[order]]) / (sizes[member[order]] - 1)
        return places

    def _joined(self, size: Floats, means: Floats, places: Floats, groups: int) -> Floats:
        """Put columns together, of companions as many as there are groups for."""
        split = 1 + self.numbers
        columns = np.column_stack([size, means[:, 1:split], places, means[:, split:]])
        most = min(max(groups // GROUPS_EACH, 1), MOST_MEANS)
        return np.column_stack([self.own, columns[:, :most]])


def known_numbers(known: CompanionColumns, some: npt.NDArray[np.bool_]) -> Floats:
    """Return known numbers as they are, of some records, 0 where one is missing."""
    columns = [np.nan_to_num(x[some]) for x in known.numbers.values() if is_usable(x[some])]
    return np.column_stack([np.zeros((int(some.sum()), 0)), *columns])


def neighbours(member: Codes, place: Codes) -> tuple[Codes, Codes]:
    """Return the records that have a next one in their group, by the place in the file, and these."""
    order = np.lexsort((place, member))
    first, second = order[:-1], order[1:]
    together = member[first] == member[second]
    return first[together], second[together]


def _changes(x: Floats, member: Codes, place: Codes) -> tuple[Floats, Floats, Floats]:
    """Return for each record the change of a number since the one before, to the next, and before the one before."""
    first, second = neighbours(member, place)
    since, to, before = (np.full(len(x), np.nan) for _ in range(3))
    since[second] = x[second] - x[first]
    to[first] = since[second]
    before[second] = since[first]
    return since, to, before


def _in_step(codes: Codes, along: Floats) -> float:
    """Return which share of neighbours along a number have one level, beyond chance: 1 where it gives the level."""
    ordered = codes[np.argsort(along, kind="stable")]
    alike = float(((np.bincount(codes) / len(codes)) ** 2).sum())
    agree = float((ordered[1:] == ordered[:-1]).mean())
    chance = 4 * (alike * (1 - alike) / len(codes)) ** 0.5
    return max((agree - alike - chance) / (1 - alike), 0.0) if alike < 1 else 0.0


def _by_chance(table: Floats, count: int) -> float:
    """Return the bits that a table of so many pairs has by chance: the mean of a chi-square and four of its sds."""
    free = (np.count_nonzero(table.sum(axis=1)) - 1) * (np.count_nonzero(table.sum(axis=0)) - 1)
    return float((free + 4 * (2 * free) ** 0.5) / (2 * np.log(2) * max(count, 1)))


def indicators(codes: Codes) -> Floats:
    """Return an indicator of every level, the most frequent first."""
    count = np.bincount(codes)
    place = np.empty(len(count), np.int64)
    place[np.argsort(-count, kind="stable")] = np.arange(len(count))
    code = place[codes] % MOST_LEVELS
    return np.asarray(np.eye(int(code.max()) + 1)[code])


def linear_expectation(values: Floats, design: Floats) -> Floats:
    """Return values as a linear law of a design expects them (least squares)."""
    from scipy.linalg import solve

    squares = design.T @ design
    ridge = RIDGE * np.diag(np.diag(squares)) + LEAST_WITHIN * np.eye(len(squares))
    return np.asarray(design @ solve(squares + ridge, design.T @ values, assume_a="pos"))


def _chances(expected: Floats) -> Floats:
    """Return chances of levels from indicators as expected, which a linear law may put below 0."""
    chance = np.maximum(expected, LEAST_CHANCE)
    return np.asarray(chance / chance.sum(axis=1)[:, None])


def _correlations(residuals: Floats, member: Codes) -> Floats:
    """Return the correlations of two members along discriminants, those that are not negligible."""
    from scipy.linalg import eigh

    varied = [x for x in residuals.T if x.std() > LEAST_WITHIN]
    if not varied:
        return np.zeros(0)
    within, total = group_covariances(varied, member, np.ones(len(member), bool))
    found = 1 - eigh(within, total, eigvals_only=True)
    return np.asarray(found[np.abs(found) > NEGLIGIBLE])


def _divergence(levels: Floats, chances: Floats, member: Codes) -> float:
    """Return the divergence of the table of all ordered pairs of members from what their chances make expected.

    Groups weigh by their records, not by their pairs: each record looks for its companions.
    """
    seen, expected = _pair_table(levels, member), _pair_table(chances, member)
    some = seen > 0
    return max(float((seen[some] * np.log2(seen[some] / expected[some])).sum()), 0.0)


def _pair_table(weights: Floats, member: Codes) -> Floats:
    sizes = np.bincount(member)
    sums = np.column_stack([np.bincount(member, one) for one in weights.T])
    own = weights / (sizes[member] - 1)[:, None]
    table = (sums / (sizes - 1)[:, None]).T @ sums - own.T @ weights
    return np.asarray(table / table.sum())


def normal_scores(x: Floats) -> Floats:
    """Return the normal quantiles of ranks, 0 where a value is missing."""
    from scipy.special import ndtri

    from ..checks.relations import shared_ranks

    out, known = np.zeros(len(x)), ~np.isnan(x)
    out[known] = ndtri(shared_ranks(x[known]) / (np.count_nonzero(known) + 1))
    return out

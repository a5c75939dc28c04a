"""Who holds two releases and cannot tell which row of one goes with which row of the other: all pairs are weighed.

Rows of both releases that look alike in what both show form classes. A row i of the earlier release and a row j of this
one, of one class, belong to the same record with a probability P(i ~ j), and a record with true values x is row j with
the weight

    W_j(x) = sum over i of  P(i ~ j) f1(i | x) f2(j | x) / f(i, j),      f(i, j) = sum over x of f1(i | x) f2(j | x),

f1 the density of what the earlier row adds and f2 that of the present row. P is the balanced matrix u_i f(i, j) v_j
(rows and columns of each class sum to 1; Sinkhorn 1964), so that f cancels:

    W_j(x) = v_j f2(j | x) sum over i of u_i f1(i | x).

The earlier file tells which class is right, this one which row of it. Whoever picks one of the k alike rows blindly and
attacks the pair finds far fewer (4 of 15 on a file of loans). Likewise with i and j exchanged, for the row of the
earlier release. Chosen by `joined_releases` where some rows are alike; of many records some targets and, for f, some
records are drawn (own derivation).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ..card.release_density import RecordPair, joint_codes
from ..laws import Law
from ..table import Floats, Table

Integers = npt.NDArray[np.int64]

MOST_ROWS, MOST_ALIKE = 20_000, 3_000  # of one pattern, of a class; beyond, alike rows are taken to be paired
MOST_PAIRS = 12_000_000  # of targets and rows: of more rows than the root of it some records are targets
ROUNDS = 60  # of balancing; three digits need some ten
AT_ONCE = 4_000_000  # pairs held in one go
TIED = 1e-9  # weights that differ by less are equal
HARDLY = (
    1e-100  # sums of densities, of their peaks, below which a row has no partner: beyond, products overflow
)
ERRORS = 2.0  # standard errors that are added where the targets are a sample


@dataclass(frozen=True)
class ReleaseRows:
    """What one release tells of records: its laws and its columns in clear, in a table of truths and one of rows."""

    laws: Sequence[Law]
    clear: Sequence[str]
    truth: Table
    rows: Table

    def log_densities(self, records: Integers, rows: Integers) -> Floats:
        """Return log f(row | true values) of records (lines) and rows (columns), up to what a row has in common."""
        sides = [RecordPair.of(law, self.rows, self.truth) for law in self.laws]
        codes = [joint_codes(name, self.rows, self.truth) for name in self.clear]
        codes += [side.patterns() for side in sides]
        out = np.full((len(records), len(rows)), -np.inf)
        step = max(1, AT_ONCE // max(len(rows), 1))
        for start in range(0, len(records), step):
            here = records[start : start + step]
            wanted = np.ones((len(here), len(rows)), bool)
            for of_rows, of_records in codes:
                wanted &= of_records[here][:, None] == of_rows[rows][None, :]
            line, column = np.nonzero(wanted)
            logs = np.zeros(len(line))
            for side in sides:
                logs += side.logpdf_nearly(rows[column], here[line])
            out[start : start + step][line, column] = logs
        return out


@dataclass(frozen=True)
class PairShares:
    """How surely each record's rows are found: in this release and in the earlier one."""

    now: Floats
    earlier: Floats

    def larger(self) -> Floats:
        """Return the shares in the release in which more are found."""
        return self.now if self.now.mean() >= self.earlier.mean() else self.earlier


def pair_shares(earlier: ReleaseRows, now: ReleaseRows, alike: Integers, records: Integers) -> PairShares:
    """Return for the records of one pattern with what share their rows are found, by sums over pairs that look alike.

    `records` are numbers in both tables, `alike` the class of each. Of many records some are targets; the others count
    as these do on average and two standard errors more.
    """
    order = records[np.argsort(alike, kind="stable")]
    classes = np.sort(alike, kind="stable")
    starts = np.flatnonzero(np.r_[True, classes[1:] != classes[:-1]])
    few = _spread(len(order), MOST_PAIRS // len(order))
    logs = [side.log_densities(order[few], order) for side in (earlier, now)]
    owns = [_own(side, order) for side in (earlier, now)]
    peaks = [_finite(np.maximum(one.max(axis=0), own)) for one, own in zip(logs, owns, strict=True)]
    f1, f2 = (np.exp(one - peak) for one, peak in zip(logs, peaks, strict=True))
    balance = _Balance(f1, f2, *_cross_terms((earlier, now), order, starts, peaks, few), len(order))
    u, v = balance.factors(starts)
    size = np.diff(np.r_[starts, len(order)])
    by_class = [np.add.reduceat(f * w, starts, axis=1) for f, w in ((f1, u), (f2, v))]
    shares = [
        _shares(own * weight * np.repeat(other, size, axis=1), few)
        for own, weight, other in ((f2, v, by_class[0]), (f1, u, by_class[1]))
    ]
    found = [_for_all(one, few, len(order)) for one in shares]
    place = np.empty(len(order), np.int64)
    place[np.argsort(alike, kind="stable")] = np.arange(len(order))
    return PairShares(found[0][place], found[1][place])


def can_be_weighed(alike: Integers) -> bool:
    """Whether rows of these classes are few enough, and some of them alike."""
    largest = np.unique(alike, return_counts=True)[1].max(initial=1)
    return len(alike) <= MOST_ROWS and 1 < int(largest) <= MOST_ALIKE


def _finite(logs: Floats) -> Floats:
    return np.where(np.isfinite(logs), logs, 0.0)


def _spread(count: int, most: int) -> Integers:
    """Return up to so many places, spread evenly over all: rows stand in the order of their classes."""
    return np.unique(np.linspace(0, count - 1, min(count, most)).round().astype(np.int64))


def _own(side: ReleaseRows, records: Integers) -> Floats:
    """Return the log density of each record's own row."""
    return _paired_logs(side, records, records)


def _paired_logs(side: ReleaseRows, rows: Integers, records: Integers) -> Floats:
    """Return log f(row | x) of pairs, minus infinity where the columns in clear differ."""
    total = np.zeros(len(rows))
    for name in side.clear:
        of_rows, of_records = joint_codes(name, side.rows, side.truth)
        total[of_rows[rows] != of_records[records]] = -np.inf
    for law in side.laws:
        total = total + RecordPair.of(law, side.rows, side.truth).logpdf_nearly(rows, records)
    return total


def _cross_terms(
    sides: tuple[ReleaseRows, ReleaseRows],
    order: Integers,
    starts: Integers,
    peaks: list[Floats],
    few: Integers,
) -> tuple[list[Floats], list[Floats]]:
    """Return for each class f1 and f2 of its rows given its own records, which few may not have among them."""
    if len(few) == len(order):
        return [], []
    found: tuple[list[Floats], list[Floats]] = ([], [])
    for members in _classes(starts, len(order)):
        rows, records = (one.ravel() for one in np.meshgrid(order[members], order[members]))
        for side, peak, out in zip(sides, peaks, found, strict=True):
            logs = _paired_logs(side, rows, records).reshape(len(members), len(members))
            out.append(np.exp(logs - peak[members]))
    return found


def _classes(starts: Integers, count: int) -> Iterator[Integers]:
    for start, end in zip(starts, np.r_[starts[1:], count], strict=True):
        yield np.arange(start, end)


@dataclass(frozen=True)
class _Balance:
    """Densities of rows given some records (and given those of their class), by which pairs are balanced."""

    f1: Floats
    f2: Floats
    own1: list[Floats]
    own2: list[Floats]
    count: int

    def factors(self, starts: Integers) -> tuple[Floats, Floats]:
        """Return u and v of every row."""
        u, v = np.empty(self.count), np.empty(self.count)
        for number, members in enumerate(_classes(starts, self.count)):
            u[members], v[members] = sinkhorn_factors(self._mean(number, members))
        return u, v

    def _mean(self, number: int, members: Integers) -> Floats:
        """Return sums over true values of f1(i | x) f2(j | x): of some records, weighed, and of the class's own."""
        total = self.f1[:, members].T @ self.f2[:, members]
        if self.own1:
            total = total * (self.count / len(self.f1)) + self.own1[number].T @ self.own2[number]
        return np.asarray(total)


def sinkhorn_factors(matrix: Floats) -> tuple[Floats, Floats]:
    """Return u and v that make all rows and columns of u_i m_ij v_j sum to 1 (Sinkhorn); what is 0 stays 0."""
    u, v = np.ones(len(matrix)), np.ones(len(matrix))
    for _ in range(ROUNDS if len(matrix) > 1 else 1):
        u = 1 / np.maximum(matrix @ v, HARDLY)
        v = 1 / np.maximum(u @ matrix, HARDLY)
    return u, v


def _shares(weights: Floats, own: Integers) -> Floats:
    """Return with what share each target's own row is the one of the largest weight, ties shared."""
    best = weights.max(axis=1)
    tied = (weights >= best[:, None] * (1 - TIED)).sum(axis=1)
    right = weights[np.arange(len(own)), own] >= best * (1 - TIED)
    return np.where((best > 0) & right, 1 / tied, 0.0)


def _for_all(shares: Floats, few: Integers, count: int) -> Floats:
    """Return a share for every record: of the others the mean one and two standard errors."""
    if len(few) == count:
        return shares
    mean, error = shares.mean(), shares.std(ddof=1) / len(shares) ** 0.5
    out = np.full(count, min(1.0, mean + ERRORS * error))
    out[few] = shares
    return out

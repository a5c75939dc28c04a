"""Rank swaps as a law of classes of rank, so that who knows the law can weigh them beside the noise of other columns.

Marginals are kept, so a value's rank in the truth is known of true and released values alike, and an exchange moves it
by at most the window. With g(k) the share of records that an exchange moves by k ranks, a record of class A (ranks a to
b - 1) is released in class C (ranks c to d - 1) with probability sum_{i in A} sum_{j in C} g(j - i) / (b - a), which is
(S(d-1-a) - S(d-1-b) - S(c-1-a) + S(c-1-b)) / (b - a) for the twice cumulated S of g. g is counted in exchanges of as
many ranks drawn anew; values that are equal are one class. It stands in for the law p(z | x) that `RankSwap` has not,
for attacks of the audit alone. Own derivation. Called by `links`.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from ..laws import RankSwapped, Transition
from ..masking import Masking, Release
from ..schema import MISSING, OPEN, Column
from ..table import Floats, Table

CLASSES = 400  # of a column at most: of a window of 1% each is a quarter
EXCHANGED = 200_000  # ranks that are exchanged to count g, at least: a share of 1% is known to 0.02%
STRAYS = (
    1e-9  # the probability of what no exchange gives: a file masked elsewhere may not do as its card says
)


def with_windows(masking: Masking) -> Masking:
    """Return a masking whose rank-swapped columns are classes of rank, with their law on the card."""
    card, truth = masking.release.card, masking.truth
    swaps = {
        name: law.window_ratio
        for law in card.laws
        if isinstance(law, RankSwapped)
        for name in law.columns
        if name in truth.schema and name in masking.release.table.schema and _is_open(truth, name)
    }
    if not swaps:
        return masking
    truth, released, laws = _in_classes(truth, masking.release.table, swaps)
    kept = [law for law in card.laws if not isinstance(law, RankSwapped)]
    known = replace(card, laws=(*kept, *laws))
    masked = _in_classes(masking.truth, masking.masked, swaps)[1]
    given = (Release(released, known), masking.order)
    return replace(masking, truth=truth, masked=masked, card=known, given=given)


def _is_open(table: Table, name: str) -> bool:
    return table.schema[name].is_number and bool((table.status(name) == OPEN).any())


def _in_classes(
    truth: Table, released: Table, swaps: dict[str, float]
) -> tuple[Table, Table, list[Transition]]:
    """Return both tables with classes of rank in place of values, and a law for each column."""
    ours, theirs, laws = dict[str, Any](), dict[str, Any](), list[Transition]()
    for name, window_ratio in swaps.items():
        tops, counts = _classes(truth.floats(name))
        labels = tuple(str(i) for i in range(len(tops)))
        column = Column(name, "category", truth.schema[name].roles, categories=labels)
        ours[name], theirs[name] = (_rank_codes(table, name, column, tops) for table in (truth, released))
        matrix = _moves(counts, window_ratio)
        laws.append(Transition((name,), labels, labels, tuple(map(tuple, matrix.tolist()))))
    return truth.with_columns(ours), released.with_columns(theirs), laws


def _classes(values: Floats) -> tuple[Floats, Floats]:
    """Return the largest value of each class of rank, and how many values it has; equal values are in one."""
    support, counts = np.unique(values[~np.isnan(values)], return_counts=True)
    middle = np.cumsum(counts) - (counts + 1) / 2
    of_each = np.floor(CLASSES * middle / counts.sum()).astype(np.int64)
    last = np.flatnonzero(np.diff(of_each, append=-1))
    return support[last], np.diff(np.cumsum(counts)[last], prepend=0)


def _rank_codes(table: Table, name: str, column: Column, tops: Floats) -> tuple[Column, Floats, Any]:
    values = table.floats(name)
    codes = np.minimum(np.searchsorted(tops, values), len(tops) - 1).astype(np.float64)
    status = np.where(table.status(name) == OPEN, OPEN, MISSING).astype(np.uint8)
    return column, np.where(np.isnan(values), np.nan, codes), status


def _moves(counts: Floats, window_ratio: float) -> Floats:
    """Return the probability that a record of one class is released in another."""
    ends = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    total = int(ends[-1])
    window = max(1, int(window_ratio * total))
    shares = _displacements(total, window)
    twice = np.cumsum(np.cumsum(np.pad(shares, (1, 0))))  # S(-window - 1), ..., S(window)

    def summed(last: Any) -> Floats:
        inside = twice[np.clip(last + window + 1, 0, len(twice) - 1)]
        return np.asarray(inside + np.maximum(last - window, 0))

    starts, stops = ends[:-1, None], ends[1:, None]
    upto = summed(ends[None, 1:] - 1 - starts) - summed(ends[None, 1:] - 1 - stops)
    before = summed(ends[None, :-1] - 1 - starts) - summed(ends[None, :-1] - 1 - stops)
    moved = np.maximum((upto - before) / counts[:, None], 0.0) + STRAYS
    return np.asarray(moved / moved.sum(axis=1, keepdims=True))


def _displacements(total: int, window: int) -> Floats:
    """Return g: the share of ranks that an exchange moves by -window to window, each step possible."""
    from ..kernels.rank_exchange import exchange_within

    rng, found = np.random.default_rng(9), np.ones(2 * window + 1)
    for _ in range(-(-EXCHANGED // total)):
        moved = exchange_within(rng.random(total), window) - np.arange(total)
        found += np.bincount(moved + window, minlength=2 * window + 1)
    return np.asarray(found / found.sum())

"""Random walks over matchings of known units with released records.

K units, n records, N units in all: each known unit has one record or none (-1), no record has two of them. The weight
of a matching with m pairs is the product of its pairs' weights times (N - K)! / (N - K - n + m)!: the records that no
known unit has belong to the N - K others. `match` has each unit's record, `owner` each record's unit; both are changed
in place.

It is the same to fill N places, n records and N - n of the units that were not released, with N units, where all
weights but those of known units with records are 1. A loop walks there: somebody gives up a record and takes another by
weight, who had that one takes another, until somebody takes the first. Walked backwards it gives every unit its old
record, with the same sums of weights below and the old weights above: the chances there and back are as the weights of
the two matchings, so that no loop is ever refused. Any matching can become any other, however few pairs are possible.
The target is that of Jerrum, Sinclair and Vigoda (2004); the loops are our own derivation, for the reason just given.
Chosen by `attacks/bayes/matching_posterior/mcmc` for blocks that are too large to sum over.
Steps are put into each other (`inline_bare_loop`) and make no array (`bare`), as in `matching_noise_mcmc`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from . import announce
from .matching_noise_mcmc import bare, inline_bare_loop

announce(__file__)

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Places = npt.NDArray[np.int32]

NONE = -1  # no record, no owner
OTHER = -2  # in hand: one of the N - K unknown units
DONE = -3  # in hand: nobody
ROUNDING = 2.0**-54  # what is less than this share of a sum does not change it


class Rows(NamedTuple):
    """What each known unit takes: running sums of the chances of its records (n: none), row after row; where to look.

    A row holds the records `which` that can be taken at all; those whose chance is lost in the rounding of the sum are
    not, and rows that fit into the cache are walked much faster. `guide` has for each of 2^k equal parts of the chances
    the first in the row that reaches into it. `first` and `part` tell where each row and its parts begin.
    """

    sums: Floats
    which: Places
    guide: Places
    first: Ints
    part: Ints


def rows_of(logs: Floats, log_none: float) -> Rows:
    """Return for each unit chances proportional to its weights."""
    every = np.column_stack([logs, np.full(len(logs), log_none)])
    top = every.max(axis=1, keepdims=True)
    weights = np.exp(every - np.where(np.isneginf(top), 0.0, top))
    held = weights > ROUNDING * weights.sum(axis=1, keepdims=True)
    held[~held.any(axis=1), -1] = True
    counts = held.sum(axis=1)
    first = np.concatenate([[0], np.cumsum(counts)])
    parts = 1 << np.ceil(np.log2(np.maximum(counts, 2))).astype(np.int64)
    part = np.concatenate([[0], np.cumsum(parts)])
    sums, guide = weights[held], np.empty(part[-1], np.int32)
    rows = Rows(sums, np.nonzero(held)[1].astype(np.int32), guide, first, part)
    _fill_row_guides(rows)
    return rows


@bare
def _fill_row_guides(rows: Rows) -> None:
    """Sum each row up, and find the first in it that reaches into each part."""
    for row in range(len(rows.first) - 1):
        begin, end = rows.first[row], rows.first[row + 1]
        for at in range(begin + 1, end):
            rows.sums[at] += rows.sums[at - 1]
        at, parts = begin, rows.part[row + 1] - rows.part[row]
        for part in range(parts):
            while at < end - 1 and rows.sums[at] <= part / parts * rows.sums[end - 1]:
                at += 1
            rows.guide[rows.part[row] + part] = at - begin


@inline_bare_loop
def draw_from_row(rows: Rows, row: int, uniform: float) -> int:
    """Return what is taken for a uniform number: the first whose running sum is above that share of the whole."""
    begin, last = rows.first[row], rows.first[row + 1] - 1
    parts = rows.part[row + 1] - rows.part[row]
    aim = uniform * rows.sums[last]
    at = begin + rows.guide[rows.part[row] + int(uniform * parts)]
    while at < last and rows.sums[at] <= aim:
        at += 1
    return int(rows.which[at])


class MatchingWalk(NamedTuple):
    """A matching on its way: what units take, where loops begin, who has what, and who gave up what in this loop.

    `others` are the weights of each record, and last of a place without one, for units that are not known. They are 1,
    but any factor may be put on a record's weights for all units alike.
    """

    rows: Rows
    others: Floats
    begins: Rows
    match: Ints
    owner: Ints
    trail: Ints


@inline_bare_loop
def _draw_unreleased_unit(walk: MatchingWalk, hand: int, rng: np.random.Generator) -> int:
    """Return one of the known units without a record, but the one in hand."""
    while True:
        unit = int(rng.random() * len(walk.match))
        if walk.match[unit] < 0 and unit != hand:
            return unit


@inline_bare_loop
def _by_other(walk: MatchingWalk, hole: int, rng: np.random.Generator) -> tuple[int, int]:
    """Let an unknown unit take the place of a known one, or the hole; return who is in hand now, and what it had.

    Whether it takes the places of other unknown units makes no difference.
    """
    none, whole = len(walk.owner), walk.others[hole]
    for unit in range(len(walk.match)):
        had = walk.match[unit]
        whole += walk.others[had if had >= 0 else none]
    aim = rng.random() * whole - walk.others[hole]
    for unit in range(len(walk.match) if aim >= 0 else 0):
        had = walk.match[unit]
        aim -= walk.others[had if had >= 0 else none]
        if aim < 0:
            if had >= 0:
                walk.owner[had], walk.match[unit] = NONE, NONE
            return unit, had
    return DONE, hole


@inline_bare_loop
def _by_known(
    walk: MatchingWalk, hole: int, hand: int, idle: int, slots: int, rng: np.random.Generator
) -> tuple[int, int]:
    """Let the known unit in hand take a place; return who is in hand now, and what it had.

    `idle` known units and unknown ones fill the `slots` of those not released.
    """
    record = draw_from_row(walk.rows, hand, rng.random())
    if record == len(walk.owner):
        if rng.random() * slots < idle:
            return _draw_unreleased_unit(walk, hand, rng), NONE
        return OTHER, NONE
    unit = walk.owner[record]
    walk.match[hand], walk.owner[record] = record, hand
    if record == hole:
        return DONE, hole
    if unit < 0:
        return OTHER, record
    walk.match[unit] = NONE
    return unit, record


@inline_bare_loop
def _undone(walk: MatchingWalk, hole: int) -> None:
    """Give everybody back what it had when the loop began."""
    walk.owner[hole] = NONE
    for step in range(len(walk.trail)):
        unit = walk.trail[step, 0]
        if unit >= 0 and walk.match[unit] >= 0:
            walk.owner[walk.match[unit]] = NONE
    for step in range(len(walk.trail) - 1, -1, -1):
        unit = walk.trail[step, 0]
        if unit >= 0:
            walk.match[unit] = walk.trail[step, 1]
    for step in range(len(walk.trail)):
        unit = walk.trail[step, 0]
        if unit >= 0 and walk.match[unit] >= 0:
            walk.owner[walk.match[unit]] = unit


@inline_bare_loop
def _loop(walk: MatchingWalk, hole: int, idle: int, slots: int, rng: np.random.Generator) -> tuple[int, int]:
    """Walk one loop that begins at a record; return how many known units have none, and the steps, negative if undone.

    Backwards it begins at the same record and takes as many steps, so that undoing long ones changes no weights.
    """
    hand, had, before = walk.owner[hole], hole, idle
    if hand >= 0:
        walk.match[hand], walk.owner[hole] = NONE, NONE
    else:
        hand = OTHER
    longest = len(walk.trail) - 1
    for step in range(longest):
        walk.trail[step, 0], walk.trail[step, 1] = hand, had
        if hand == OTHER:
            hand, had = _by_other(walk, hole, rng)
            idle -= hand >= 0 and had < 0
        else:
            hand, had = _by_known(walk, hole, hand, idle, slots, rng)
            idle += hand == OTHER and had < 0
        if hand == DONE:
            return idle, step + 1
    walk.trail[longest, 0], walk.trail[longest, 1] = hand, had
    _undone(walk, hole)
    return before, -longest


@inline_bare_loop
def _count_idle(walk: MatchingWalk) -> int:
    idle = 0
    for unit in range(len(walk.match)):
        idle += walk.match[unit] < 0
    return idle


@bare
def probe(walk: MatchingWalk, slots: int, lengths: Ints, rng: np.random.Generator) -> None:
    """Walk one loop from every record, and note its steps: negative if it was undone."""
    idle = _count_idle(walk)
    for hole in range(len(lengths)):
        idle, lengths[hole] = _loop(walk, hole, idle, slots, rng)


@bare
def circulate(
    walk: MatchingWalk,
    slots: int,
    loops: int,
    every: int,
    counts: Ints,
    kept: Places,
    rng: np.random.Generator,
) -> tuple[int, int]:
    """Draw matchings, each `loops` loops after the last; return the steps of all loops, and how many were undone.

    `slots` is N - n. Every draw is counted (K x (n + 1), last: none), and each `every`-th kept, one in a row of `kept`.
    """
    units, records = counts.shape[0], counts.shape[1] - 1
    idle, steps, undone = _count_idle(walk), 0, 0
    for draw in range(len(kept) * every):
        for _ in range(loops):
            hole = draw_from_row(walk.begins, 0, rng.random())
            idle, length = _loop(walk, hole, idle, slots, rng)
            steps += abs(length)
            undone += length < 0
        for unit in range(units):
            record = walk.match[unit]
            counts[unit, record if record >= 0 else records] += 1
        if draw % every == every - 1:
            for unit in range(units):
                kept[draw // every, unit] = walk.match[unit]
    return steps, undone

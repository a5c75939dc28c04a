"""Sums of exp(score) over the points of a tree, score = offset - |point - query|^2 / 2, and the points that score best.

What a node can add is at most its count times exp(key), key = its largest offset less half the squared distance of its
box: no point of it scores higher, rounding included; where s / (1 - s) is summed, that over 1 less the largest share.
Nodes wait on shelves by their keys, a shelf for each whole number below a first good score, and are taken from the
highest. As soon as all that still waits can add no more than the allowance, and can hold neither the best nor the
second, the search ends: every sum comes with a proven bound of what it lacks, and nobody who scores best is missed.

Where single precision takes too much of the allowance the query is repeated with more in double precision.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from numba import njit

from . import announce
from .forest import FAN, NONE
from .gauss_groves import Grove
from .gauss_leaves import (
    ABOVE,
    ACROSS,
    HIGHEST,
    LACK,
    NEAR,
    REF,
    SCALE,
    SEED,
    SINGLE,
    SPOILS,
    TOP,
    TOTAL,
    UNFLUSHED,
    WAITS,
    Rules,
    flush,
    leaf,
    spoilt_by,
    summed,
)
from .gauss_tiles import SURE, WIDE, cost_of, exp_64, keys_below, lean, padded
from .sieve import Three

announce(__file__)

SHELVES = 96
SAME = 1e-12  # scores closer than this, relative to their size or 1, differ by rounding alone
# How a search ended: well, spoilt by single precision, from too low a start; or not yet.
DONE, SPOILT, LOW, GOING = range(4)

Floats = npt.NDArray[np.float64]
Singles = npt.NDArray[np.float32]
Ints = npt.NDArray[np.int64]


@njit(cache=True, nogil=True, inline="always")
def around(score: float) -> float:
    """Return how much lower than a score one can be and still be the same but for rounding."""
    return SAME * max(abs(score), 1.0)


@lean()
def _begin(
    exact: Floats, seeds: tuple[int, int], query: Floats, room: Floats, room_32: Singles, state: Floats
) -> None:
    """Start from the scores of two points of the tree: the best and the second are no lower."""
    one = -cost_of(exact, seeds[0], query)
    two = -cost_of(exact, seeds[1], query) if seeds[1] >= 0 else -np.inf
    state[REF], state[TOP], state[SEED] = max(one, two), max(one, two), min(one, two)
    state[SCALE], state[SINGLE] = np.exp(state[REF]), 0.0
    state[ABOVE], state[ACROSS], state[UNFLUSHED], state[WAITS] = -np.inf, 0.0, 0.0, 0.0
    for j in range(WIDE):
        room[1, j], room_32[1, j] = 0.0, np.float32(0)


@lean()
def _best_place(exact: Floats, tile: int, query: Floats) -> int:
    """Return the place that costs least in a tile."""
    least, best = np.inf, tile * WIDE
    for place in range(tile * WIDE, (tile + 1) * WIDE):
        cost = cost_of(exact, place, query)
        if cost < least:
            least, best = cost, place
    return best


@lean()
def _left(masses: Floats, shelf: int, last: int) -> float:
    """Return the most that what stands on some shelves can add."""
    total = 0.0
    for s in range(shelf, last + 1):
        total += masses[s]
    return total


@lean(inline="always")
def _put(
    kids: Ints, counts: Singles, node: int, origin: float, at: tuple[int, int, int], below: Floats, mass: Singles,
    waiting: Ints, keys: Floats, heads: Ints, masses: Floats, state: Floats,
) -> tuple[int, int]:  # fmt: skip
    """Put the children of a node on their shelves; `at` are the shelf it stood on, the last one, and how many wait."""
    shelf, last, used = at
    waits, lane = 0.0, np.uintp(node * FAN)
    for j in range(FAN):
        if counts[lane] == 0:
            break
        to = max(int(min(origin - below[0, j], SHELVES - 1.0)), shelf)
        here, place = np.uintp(to), np.uintp(used)
        waiting[0, place], waiting[1, place], keys[place] = kids[lane], heads[here], below[0, j]
        heads[here] = used
        masses[here] += mass[j]
        waits += mass[j] if to > 0 else 0.0
        last, used, lane = max(last, to), used + 1, lane + np.uintp(1)
    state[WAITS] += waits
    return last, used


@lean()
def _ended(
    fields: int, rules: Rules, highest: float, shelf: int, last: int, masses: Floats, room: Floats, room_32: Singles,
    state: Floats, three: Three,
) -> int:  # fmt: skip
    """Say whether what stands on the shelves from one on can be left there: nothing of it scores above `highest`.

    The running sum of masses serves to look seldom; the judgement is by a sum of its own.
    """
    flush(room_32, state)
    spoilt = spoilt_by(fields, state)
    total = summed(room) + state[SINGLE] - spoilt
    base = total
    if rules.holds:
        base = max(total - np.exp(-three.one - state[REF]), SURE * total)
    allowed = rules.relative * base
    if shelf <= last:
        worst = -three.two - rules.slack - 2 * around(three.two) if rules.ranks else -three.one
        if not highest < worst or state[WAITS] > allowed + 1e-9:
            return GOING
    left = _left(masses, shelf, last)
    if rules.leaves_out and shelf <= last:
        left /= max(1.0 - np.exp(min(highest, 0.0)), SURE)
    state[TOTAL], state[LACK], state[SPOILS] = total, (left + 2 * spoilt) / base, spoilt / base
    if left + 2 * spoilt <= 0.98 * allowed or (left == 0 and spoilt == 0):
        return DONE
    return SPOILT if left <= 0.3 * allowed or shelf > last else GOING


@lean()
def _search(
    kids: Ints, sides: Floats, peaks: Floats, counts: Singles, exact: Floats, single: Singles, about: Floats,
    root: int, query: Floats, rules: Rules, waiting: Ints, keys: Floats, heads: Ints, masses: Floats,
    room: Floats, room_32: Singles, below: Floats, mass: Singles, aim: Singles, state: Floats,
) -> tuple[Three, int, int]:  # fmt: skip
    """Search one tree for one query; return the best three, how it ended, and a place to start from when too low."""
    three, origin = Three(np.inf, np.inf, np.inf, NONE, NONE), state[TOP]
    waiting[0, 0], waiting[1, 0], keys[0], heads[0] = root, NONE, np.inf, 0
    shelf, last, used, checked, end, place = 0, 0, 1, 0, GOING, NONE
    while True:
        while shelf <= last and heads[shelf] < 0:
            shelf += 1
        if shelf > checked:
            state[WAITS] -= _left(masses, max(checked, 1), min(shelf, last + 1) - 1)
            checked = shelf
            end = _ended(len(query), rules, origin - shelf, shelf, last, masses, room, room_32, state, three)
            if end != GOING:
                break
        here = heads[shelf]
        heads[shelf], node, key = waiting[1, here], waiting[0, here], keys[here]
        if node >= 0:
            keys_below(sides, peaks, counts, node, query, state[REF], below, mass)
            at = shelf, last, used
            last, used = _put(
                kids, counts, node, origin, at, below, mass, waiting, keys, heads, masses, state
            )
            continue
        if key - state[REF] > HIGHEST:
            place = _best_place(exact, -1 - node, query)
            if -cost_of(exact, place, query) - state[REF] > HIGHEST / 2:
                end = LOW
                break
        three = leaf(exact, single, about, -1 - node, key, query, rules, room, room_32, aim, state, three)
    for s in range(last + 1):
        heads[s], masses[s] = NONE, 0.0
    return three, end, place


@lean()
def _first_place(kids: Ints, node: int) -> int:
    while node >= 0:
        node = kids[node * FAN]
    return (-1 - node) * WIDE


@njit(cache=True, nogil=True)
def weigh(
    grove: Grove, queries: Floats, roots: Ints, rules: Rules,
    costs: Floats, places: Ints, log_sums: Floats, lacking: Floats,
) -> None:  # fmt: skip
    """Sum and rank for each query over the tree of its block; near queries should follow each other.

    `costs` (n x 3) and `places` (n x 2: tile times WIDE plus lane) are those of the best, without ties sorted out;
    exp(log_sums) is no more than the exact sum, and lacks no more of it (or of the sum without its largest term) than
    the share `lacking`.
    """
    first, kids, sides, peaks, counts = grove.roots, grove.kids, grove.sides, grove.peak, grove.sizes
    exact, single, about, fields = grove.exact, grove.single, grove.about, padded(queries.shape[1])
    waiting, keys = np.empty((2, len(kids) + 1), np.int64), np.empty(len(kids) + 1)
    heads, masses = np.full(SHELVES, NONE), np.zeros(SHELVES)
    room, room_32 = np.zeros((3, WIDE)), np.zeros((3, WIDE), np.float32)
    below, mass = np.empty((1, FAN)), np.empty(FAN, np.float32)
    query, aim = np.zeros(fields), np.zeros(fields, np.float32)
    state, before, seeds = np.zeros(13), NONE, (NONE, NONE)
    state[NEAR] = -1.0
    for i in range(len(queries)):
        if roots[i] != before:
            seeds, before = (_first_place(kids, first[roots[i]]), NONE), roots[i]
        for k in range(queries.shape[1]):
            query[k] = queries[i, k]
        end, three = GOING, Three(np.inf, np.inf, np.inf, NONE, NONE)
        while end != DONE:
            _begin(exact, seeds, query, room, room_32, state)
            three, end, place = _search(
                kids, sides, peaks, counts, exact, single, about, first[roots[i]], query, rules,
                waiting, keys, heads, masses, room, room_32, below, mass, aim, state,
            )  # fmt: skip
            if end == LOW:
                seeds = place, NONE
            elif end == SPOILT:
                state[NEAR] = 2 * max(state[NEAR], -1.0) + 3
        costs[i, 0], costs[i, 1], costs[i, 2] = three.one, three.two, three.three
        places[i, 0], places[i, 1] = three.place, three.second
        # From the best on, as one sums all: where it is all there is, nothing is lost by rounding.
        log_sums[i] = np.log(state[TOTAL] / exp_64(-three.one - state[REF])) - three.one
        lacking[i] = state[LACK]
        less = 0.1 if state[SPOILS] > 0.05 * rules.relative else 1.0
        seeds, state[NEAR] = (three.place, three.second), max(state[NEAR] - less, -1.0)

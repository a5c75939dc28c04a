"""Sums of exp(score) over the points of a tree, score = offset - |point - query|^2 / 2, and the points that score best.

What a node can add is at most its count times exp(key), key = its largest offset less half the squared distance of its
box: no point of it scores higher, rounding included. Nodes wait in shelves by their keys, a shelf for each whole number
below the first good score, and are taken from the highest. As soon as all that still waits can add no more than the
allowance, and can hold neither the best nor the second, the search ends: every sum comes with a proven bound of what it
lacks, and nobody who scores best is missed.

Tiles below the best are summed in single precision; what this can do is part of the bound, and where it takes too much
of the allowance the query is repeated with more in double precision. The best are always scored in double precision, by
the same sum in the same order.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from numba import njit

from . import announce
from .forest import FAN, NONE
from .gauss_tiles import (
    FLUSHED,
    SURE,
    WIDE,
    Grove,
    add_32,
    add_64,
    keys_below,
    single_error,
    values_32,
    values_64,
)
from .sieve import Three, kept

announce(__file__)

SHELVES = 96
SAME = 1e-12  # scores closer than this, relative to their size or 1, differ by rounding alone
HIGHEST = 40.0  # of a score above the reference
COUNTED = 30.0  # below the best: lower scores add nothing that single precision could spoil
WIDEST = 8.0  # half diagonal of a tile in single precision
LOG_TENTH = float(np.log(0.1))
REF, TOP, SEED, SINGLE, ABOVE, ACROSS, NEAR, UNFLUSHED = range(8)  # of the state

Floats = npt.NDArray[np.float64]
Singles = npt.NDArray[np.float32]
Ints = npt.NDArray[np.int64]


class Rules(NamedTuple):
    """What is summed, and how well.

    `relative`: what a sum may lack, of the sum itself; of the sum without its largest term where it `holds` that
    back. `leaves_out`: exp(score) is a share s, and s / (1 - s) is summed. `ranks`: the best and the second must be
    sure, scores closer than `slack` and rounding are open.
    """

    relative: float
    holds: bool
    leaves_out: bool
    ranks: bool
    slack: float


@njit(cache=True, nogil=True, inline="always")
def around(score: float) -> float:
    """Return how much lower than a score one can be and still be the same but for rounding."""
    return SAME * max(abs(score), 1.0)


@njit(cache=True, nogil=True)
def cost_of(exact: Floats, place: int, queries: Floats, i: int) -> float:
    """Return minus the score of the point at a place (tile times WIDE plus lane), by the same sum in the same order."""
    tile, lane, fields, total = place // WIDE, place % WIDE, queries.shape[1], 0.0
    for k in range(fields):
        apart = exact[tile, k, lane] - queries[i, k]
        total += apart * apart
    return 0.5 * total - exact[tile, fields, lane]


@njit(cache=True, nogil=True)
def _rank(
    exact: Floats, tile: int, repeat: int, queries: Floats, i: int, least: float, room: Floats, three: Three
) -> Three:
    """Keep the three best with those of a tile whose value is not below the least."""
    for lane in range(WIDE):
        if room[0, lane] >= least and exact[tile, queries.shape[1], lane] > NOBODY:
            place = tile * WIDE + lane
            cost = cost_of(exact, place, queries, i)
            for _ in range(min(repeat, 3)):
                three = kept(three, cost, place)
    return three


NOBODY = -1e29  # no point has so low an offset


@njit(cache=True, nogil=True)
def _flush(room: Singles, state: Floats) -> None:
    """Add what was summed in single precision to its sum."""
    a, b, c, d = 0.0, 0.0, 0.0, 0.0
    for j in range(0, WIDE, 4):
        a, b = a + room[1, j], b + room[1, j + 1]
        c, d = c + room[1, j + 2], d + room[1, j + 3]
    for j in range(WIDE):
        room[1, j] = np.float32(0)
    state[SINGLE] += (a + b) + (c + d)
    state[UNFLUSHED] = 0.0


@njit(cache=True, nogil=True)
def _summed(room: Floats) -> float:
    a, b, c, d = 0.0, 0.0, 0.0, 0.0
    for j in range(0, WIDE, 4):
        a, b = a + room[1, j], b + room[1, j + 1]
        c, d = c + room[1, j + 2], d + room[1, j + 3]
    return (a + b) + (c + d)


@njit(cache=True, nogil=True)
def _tile_64(
    exact: Floats, tile: int, repeat: int, queries: Floats, i: int, least: float, scale: float,
    room: Floats, state: Floats, three: Three,
) -> Three:  # fmt: skip
    """Add a tile in double precision, and keep the best three."""
    passing = values_64(exact, tile, queries, i, least, room)
    if repeat > 1:
        e = np.exp(room[0, 0] - state[REF])
        room[1, 0] += repeat * e / max(1.0 - e * scale, SURE)
    else:
        add_64(room, state[REF], scale)
    return _rank(exact, tile, repeat, queries, i, least, room, three) if passing else three


@njit(cache=True, nogil=True)
def _tile_32(
    exact: Floats, single: Singles, about: Floats, tile: int, queries: Floats, i: int, least: float, scale: float,
    room: Floats, room_32: Singles, state: Floats, three: Three,
) -> Three:  # fmt: skip
    """Add a tile in single precision, and keep the best three."""
    fields = queries.shape[1]
    peak, across = about[tile, fields], about[tile, fields + 1]
    base, low = peak - state[REF], least - state[REF]
    low -= single_error(fields, max(peak - least, 0.0), across, abs(base) + abs(low))
    passing = values_32(single, about, tile, queries, i, base, low, room_32)
    add_32(room_32, scale)
    state[UNFLUSHED] += 1
    if state[UNFLUSHED] == FLUSHED:
        _flush(room_32, state)
    state[ABOVE], state[ACROSS] = max(state[ABOVE], peak), max(state[ACROSS], across)
    if passing:
        for j in range(WIDE):
            room[0, j] = room_32[0, j]
        three = _rank(exact, tile, 1, queries, i, low - 1e-6 * abs(low), room, three)
    return three


@njit(cache=True, nogil=True)
def _spoilt(fields: int, state: Floats) -> float:
    """Return what single precision can have done to the sum."""
    if state[SINGLE] == 0:
        return 0.0
    half = max(state[ABOVE] - state[TOP], 0.0) + COUNTED
    other = abs(state[ABOVE] - state[REF]) + HIGHEST + COUNTED
    return state[SINGLE] * single_error(fields, half, state[ACROSS], other) + SURE


@njit(cache=True, nogil=True)
def _begin(exact: Floats, seeds: tuple[int, int], queries: Floats, i: int, state: Floats) -> None:
    """Start from the scores of two points of the tree: the best and the second are no lower."""
    one = -cost_of(exact, seeds[0], queries, i)
    two = -cost_of(exact, seeds[1], queries, i) if seeds[1] >= 0 else -np.inf
    state[REF], state[TOP], state[SEED] = max(one, two), max(one, two), min(one, two)
    state[SINGLE], state[ABOVE], state[ACROSS], state[UNFLUSHED] = 0.0, -np.inf, 0.0, 0.0


@njit(cache=True, nogil=True)
def _best_lane(exact: Floats, tile: int, queries: Floats, i: int) -> tuple[float, int]:
    """Return the least cost in a tile and its place."""
    least, place = np.inf, NONE
    for lane in range(WIDE):
        cost = cost_of(exact, tile * WIDE + lane, queries, i)
        if cost < least:
            least, place = cost, tile * WIDE + lane
    return least, place


@njit(cache=True, nogil=True)
def _first_place(kids: Ints, node: int) -> int:
    while node >= 0:
        node = kids[node, 0]
    return (-1 - node) * WIDE


@njit(cache=True, nogil=True)
def _left(masses: Floats, shelf: int, last: int) -> float:
    """Return the most that what waits from a shelf on can add."""
    total = 0.0
    for s in range(last, shelf - 1, -1):
        total += masses[s]
    return total


@njit(cache=True, nogil=True)
def weigh(
    grove: Grove, queries: Floats, roots: Ints, rules: Rules,
    costs: Floats, places: Ints, log_sums: Floats, lacking: Floats,
) -> int:  # fmt: skip
    """Sum and rank for each query over the tree of its root; near queries should follow each other.

    `costs` (n x 3) and `places` (n x 2: tile times WIDE plus lane) are those of the best, without ties sorted out;
    exp(log_sums) is no more than the exact sum, and lacks no more of it (or of the sum without its largest term) than
    the share `lacking`. Returns how many tiles were added.
    """
    kids, sides, peaks, counts = grove.kids, grove.sides, grove.peak, grove.count
    exact, single, about = grove.exact, grove.single, grove.about
    size, fields = len(kids) * FAN + 1, queries.shape[1]
    codes, keys, after = np.empty(size, np.int64), np.empty(size), np.empty(size, np.int64)
    heads, masses = np.full(SHELVES, NONE), np.zeros(SHELVES)
    room, room_32 = np.zeros((2, WIDE)), np.zeros((2, WIDE), np.float32)
    below, mass = np.empty((1, FAN)), np.empty(FAN, np.float32)
    state, tiles, before, seeds = np.zeros(8), 0, NONE, (NONE, NONE)
    for i in range(len(queries)):
        if roots[i] != before:
            seeds, before = (_first_place(kids, grove.roots[roots[i]]), NONE), roots[i]
        while True:
            _begin(exact, seeds, queries, i, state)
            room[1, :], room_32[1, :] = 0.0, np.float32(0)
            three, origin = Three(np.inf, np.inf, np.inf, NONE, NONE), state[TOP]
            codes[0], keys[0], after[0], heads[0], used = grove.roots[roots[i]], np.inf, NONE, 0, 1
            shelf, last, checked, again, lack, total, waits = 0, 0, 0, False, 0.0, 0.0, 0.0
            while True:
                while shelf <= last and heads[shelf] < 0:
                    shelf += 1
                if shelf > checked:
                    waits -= _left(masses, max(checked, 1), min(shelf - 1, last))
                    checked = shelf
                    _flush(room_32, state)
                    spoilt = _spoilt(fields, state)
                    total = _summed(room) + state[SINGLE] - spoilt
                    held = np.exp(-three.one - state[REF]) if rules.holds else 0.0
                    base = max(total - held, SURE * total)
                    allowed = rules.relative * base
                    worst = -three.two - rules.slack - 2 * around(three.two) if rules.ranks else -three.one
                    done = shelf > last
                    if not done and origin - shelf < worst and 0.7 * allowed + 1e-9 >= waits:
                        left = _left(masses, shelf, last)
                        done = left <= 0.7 * allowed
                    if done:
                        left = _left(masses, shelf, last)
                        again = 2 * spoilt > 0.25 * allowed
                        lack = (left + 2 * spoilt) / base
                        if again:
                            state[NEAR] = 2 * state[NEAR] + 2
                        break
                here = heads[shelf]
                heads[shelf] = after[here]
                code, key = codes[here], keys[here]
                if code < 0:
                    tile, tiles = -1 - code, tiles + 1
                    if key - state[REF] > HIGHEST:
                        cost, place = _best_lane(exact, tile, queries, i)
                        if -cost - state[REF] > HIGHEST / 2:
                            seeds, again = (place, NONE), True
                            break
                    bound = max(-three.two, state[SEED]) if rules.ranks else max(-three.one, state[TOP])
                    least = bound - rules.slack - 2 * around(bound)
                    repeat, across = int(about[tile, fields + 2]), about[tile, fields + 1]
                    near = key >= state[TOP] - state[NEAR] or repeat > 1 or across > WIDEST
                    if near or (rules.leaves_out and key > LOG_TENTH):
                        scale = np.exp(state[REF]) if rules.leaves_out and key > -40.0 else 0.0
                        three = _tile_64(exact, tile, repeat, queries, i, least, scale, room, state, three)
                    else:
                        scale = np.exp(state[REF]) if rules.leaves_out and key > -20.0 else 0.0
                        three = _tile_32(
                            exact, single, about, tile, queries, i, least, scale, room, room_32, state, three
                        )
                    state[TOP] = max(state[TOP], -three.one)
                    continue
                keys_below(sides, peaks, counts, code, queries, i, state[REF], below, mass)
                for j in range(FAN):
                    if counts[code, j] == 0:
                        break
                    to = max(min(int(origin - below[0, j]), SHELVES - 1), shelf)
                    codes[used], keys[used], after[used] = kids[code, j], below[0, j], heads[to]
                    heads[to] = used
                    used += 1
                    masses[to] += mass[j]
                    waits += mass[j] if to > 0 else 0.0
                    last = max(last, to)
            for s in range(last + 1):
                heads[s], masses[s] = NONE, 0.0
            if not again:
                break
        costs[i, 0], costs[i, 1], costs[i, 2] = three.one, three.two, three.three
        places[i, 0], places[i, 1] = three.place, three.second
        log_sums[i], lacking[i] = state[REF] + np.log(total), lack
        seeds = three.place, three.second
        state[NEAR] = max(state[NEAR] - 0.1, 0.0)
    return tiles

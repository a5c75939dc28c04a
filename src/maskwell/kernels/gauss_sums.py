"""Sums of exp(score) over the points of a tree, score = offset - |point - query|^2 / 2, and the points that score best.

What a node can add is at most its count times exp(key), key = its largest offset less half the squared distance of its
box: no point of it scores higher, rounding included; where s / (1 - s) is summed, that over 1 less the largest share.
Nodes wait on shelves by their keys, a shelf for each whole number below a first good score, and are taken from the
highest. As soon as all that still waits can add no more than the allowance, and can hold neither the best nor the
second, the search ends: every sum comes with a proven bound of what it lacks, and nobody who scores best is missed.

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
from .gauss_groves import Grove
from .gauss_tiles import (
    FLUSHED,
    SURE,
    WIDE,
    add_32,
    add_64,
    add_shares_32,
    cost_of,
    exp_64,
    keys_below,
    lean,
    padded,
    reaching_32,
    single_error,
    values_32,
    values_64,
)
from .sieve import Three, kept

announce(__file__)

SHELVES = 96
SAME = 1e-12  # scores closer than this, relative to their size or 1, differ by rounding alone
HIGHEST = 40.0  # of a score above the reference
COUNTED = 30.0  # below the best: what single precision does to lower scores is faint
FAINT = 1e-9  # of the best: a million times exp(-30), and one in a hundred of that is more than its rounding
WIDEST = 24.0  # half diagonal of a tile in single precision
LOOSE = 1e-9  # relative: more than the rounding of scores before they are made anew
LOG_THIRD = float(np.log(1 / 3))
NOBODY = 1e29  # no point costs as much
# Of the state.
REF, TOP, SEED, SCALE, SINGLE, ABOVE, ACROSS, NEAR, UNFLUSHED, WAITS, TOTAL, LACK, SPOILS = range(13)
# How a search ended: well, spoilt by single precision, from too low a start; or not yet.
DONE, SPOILT, LOW, GOING = range(4)

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


@lean()
def weight_of(score: float, ref: float, shares: bool) -> float:
    """Return exp(score - ref), over 1 - exp(score) where that is a share: not by way of ref, which would round it."""
    weight = np.exp(score - ref)
    return float(weight / max(1.0 - np.exp(score), SURE)) if shares else float(weight)


@lean()
def _rank(
    exact: Floats,
    tile: int,
    query: Floats,
    least: float,
    shares: bool,
    room: Floats,
    ref: float,
    three: Three,
) -> Three:
    """Keep the three best with those of a tile whose value is not below the least; large shares are made exact."""
    for lane in range(WIDE):
        is_large = shares and room[0, lane] >= LOG_THIRD
        if room[0, lane] >= least or is_large:
            place = tile * WIDE + lane
            cost = cost_of(exact, place, query)
            if is_large:
                room[1, lane] = room[2, lane] + weight_of(-cost, ref, True)
            if cost < NOBODY:
                three = kept(three, cost, place)
    return three


@lean()
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


@lean()
def _summed(room: Floats) -> float:
    """Return the sum in double precision."""
    a, b, c, d = 0.0, 0.0, 0.0, 0.0
    for j in range(0, WIDE, 4):
        a, b = a + room[1, j], b + room[1, j + 1]
        c, d = c + room[1, j + 2], d + room[1, j + 3]
    return (a + b) + (c + d)


@lean(inline="always")
def _tile_64(
    exact: Floats, tile: int, repeat: int, query: Floats, least: float, scale: float,
    room: Floats, state: Floats, three: Three,
) -> Three:  # fmt: skip
    """Add a tile in double precision, and keep the best three."""
    if repeat > 1:
        cost = cost_of(exact, tile * WIDE, query)
        room[1, 0] += repeat * weight_of(-cost, state[REF], scale > 0)
        for _ in range(min(repeat, 3) if -cost >= least else 0):
            three = kept(three, cost, tile * WIDE)
        return three
    passing = values_64(exact, tile, query, min(least, LOG_THIRD) if scale > 0 else least, room)
    add_64(room, state[REF], scale)
    if passing:
        three = _rank(exact, tile, query, least, scale > 0, room, state[REF], three)
    return three


@lean()
def _rank_single(
    exact: Floats, tile: int, query: Floats, low: float, least: float, scale: float,
    room: Floats, room_32: Singles, state: Floats, three: Three,
) -> Three:  # fmt: skip
    """Score the points of a tile anew whose value is not below `low`: their weights are made exact, the best kept."""
    for lane in range(WIDE):
        if room_32[0, lane] >= low:
            place = tile * WIDE + lane
            cost = cost_of(exact, place, query)
            if cost < NOBODY:
                room[1, lane] += weight_of(-cost, state[REF], scale > 0)
                room_32[1, lane] = room_32[2, lane]
                three = kept(three, cost, place) if -cost >= least else three
    return three


@lean(inline="always")
def _tile_32(
    exact: Floats, single: Singles, about: Floats, tile: int, key: float, query: Floats, least: float, scale: float,
    room: Floats, room_32: Singles, aim: Singles, state: Floats, three: Three,
) -> Three:  # fmt: skip
    """Add a tile in single precision, and keep the best three; the best and shares above a third are made exact."""
    fields = len(query)
    peak, across = about[tile, fields], about[tile, fields + 1]
    base, wanted, low = peak - state[REF], min(least, LOG_THIRD) if scale > 0 else least, np.inf
    if wanted == -np.inf:
        low = wanted
    elif key >= wanted:
        low = wanted - state[REF]
        low -= 1e-6 * abs(low) + single_error(fields, max(peak - wanted, 0.0), across, abs(base) + abs(low))
    for k in range(fields):
        aim[k] = np.float32(query[k] - about[tile, k])
    values_32(single, tile, aim, base, room_32)
    if scale > 0:
        add_shares_32(room_32, scale)
    else:
        add_32(room_32)
    state[ABOVE], state[ACROSS] = max(state[ABOVE], peak), max(state[ACROSS], across)
    if low < np.inf and reaching_32(room_32, low):
        three = _rank_single(
            exact, tile, query, float(np.float32(low)), least, scale, room, room_32, state, three
        )
    state[UNFLUSHED] += 1
    if state[UNFLUSHED] == FLUSHED:
        _flush(room_32, state)
    return three


@lean(inline="always")
def _leaf(
    exact: Floats, single: Singles, about: Floats, tile: int, key: float, query: Floats, rules: Rules,
    room: Floats, room_32: Singles, aim: Singles, state: Floats, three: Three,
) -> Three:  # fmt: skip
    """Add the tile of a leaf, in the precision that it needs, and keep the best three."""
    bound = max(-three.two, state[SEED]) if rules.ranks else max(-three.one, state[TOP])
    least = bound - rules.slack - LOOSE * (max(abs(bound), 1.0) + max(about[tile, len(query)] - bound, 0.0))
    repeat, across = int(about[tile, len(query) + 2]), about[tile, len(query) + 1]
    near = (state[NEAR] >= 0 and key >= state[TOP] - state[NEAR]) or repeat > 1 or across > WIDEST
    scale = state[SCALE] if rules.leaves_out and key > (-40.0 if near else -20.0) else 0.0
    if near:
        three = _tile_64(exact, tile, repeat, query, least, scale, room, state, three)
    else:
        three = _tile_32(
            exact, single, about, tile, key, query, least, scale, room, room_32, aim, state, three
        )
    state[TOP] = max(state[TOP], -three.one)
    return three


@lean()
def _spoilt(fields: int, state: Floats) -> float:
    """Return what single precision can have done to the sum.

    Shares are below a third where they are not made exact, and their weights off by half as much again.
    """
    if state[SINGLE] == 0:
        return 0.0
    half = max(state[ABOVE] - state[TOP], 0.0) + COUNTED
    other = abs(state[ABOVE] - state[REF]) + HIGHEST + COUNTED
    error = 1.5 * single_error(fields, half, state[ACROSS], other)
    return float(state[SINGLE] * error + FAINT * np.exp(state[TOP] - state[REF]))


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
    _flush(room_32, state)
    spoilt = _spoilt(fields, state)
    total = _summed(room) + state[SINGLE] - spoilt
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
        three = _leaf(exact, single, about, -1 - node, key, query, rules, room, room_32, aim, state, three)
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

"""Sums of exp(score) over the points of a tree, score = offset - |point - query|^2 / 2, and the points that score best.

The same sums as in Greengard and Strain (1991), by the boxes of a tree as in Gray and Moore (2000); the order of the
search and the bound are our own. What a node can add is at most its count times exp(key), key = its largest offset less
half the squared distance of its box: no point of it scores higher, rounding included; where s / (1 - s) is summed, that
over 1 less the largest share.
Nodes wait on shelves by their keys, in steps below a first good score, and are taken from the highest. The first good
scores are the two best of the tile where the query stands; steps are 1, or wider where the second is far below: half of
the shelves reach down to it. As soon as all that still waits can add no more than the allowance, and can hold neither
the best nor the second, the search ends: every sum comes with a proven bound of what it lacks, and nobody who scores
best is missed. Tiles in which every score is so low that all of them together add next to nothing are not summed at
all, and counted among what is lacking. Where single precision takes too much of the allowance the query is repeated
with more in double precision. Chosen by `attacks/bayes/pruned_sums` for blocks of many records with normal noise.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from numba import njit

from . import announce
from .distance_sieve import Three
from .gaussian_leaves import (
    ABOVE,
    ACROSS,
    DEEP,
    HIGHEST,
    LACK,
    NEAR,
    NOBODY,
    REF,
    SCALE,
    SEED,
    SINGLE,
    SKIPPED,
    SPOILS,
    TOP,
    TOTAL,
    UNFLUSHED,
    WAITS,
    Rules,
    flush,
    lane_sum,
    leaf,
    spoilt_by,
)
from .gaussian_tiles import SURE, WIDE, exp_64, keys_below, lean, padded_width, values_64
from .gaussian_trees import Grove
from .kdtree import FAN, NONE

announce(__file__)

SHELVES = 96  # half of them reach from the first good score to the second best
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


@njit(cache=True, nogil=True, inline="always")
def lowest_second(second: float, slack: float) -> float:
    """Return the score below which nobody can be first, second, or as good as these."""
    return second - slack - 2 * around(second)


@lean()
def _begin(
    exact: Floats, about: Floats, tile: int, query: Floats, room: Floats, room_32: Singles, state: Floats
) -> None:
    """Start from the two best scores of a tile: the best and the second of all are no lower."""
    one, two = _two_best(exact, about, tile, query, room)
    state[REF], state[TOP], state[SEED] = one, one, two
    state[SCALE], state[SINGLE] = np.exp(one), 0.0
    state[ABOVE], state[ACROSS], state[UNFLUSHED], state[WAITS], state[SKIPPED] = -np.inf, 0.0, 0.0, 0.0, 0.0
    for j in range(WIDE):
        room[1, j], room_32[1, j] = 0.0, np.float32(0)


@lean()
def _two_best(exact: Floats, about: Floats, tile: int, query: Floats, room: Floats) -> tuple[float, float]:
    """Return the two best scores of a tile; the second is minus infinity where it has but one point."""
    one, two = -np.inf, -np.inf
    values_64(exact, tile, query, 0.0, room)
    for j in range(WIDE):
        value = room[0, j]
        if value > two:
            one, two = max(one, value), min(one, value)
    if about[tile, len(query) + 2] > 1:
        two = one
    return one, two if two > -NOBODY else -np.inf


@lean()
def _step(top: float, seed: float) -> float:
    """Return how far shelves are apart, a power of 2: half of them reach from the top to the seed."""
    step = 1.0
    while seed > -np.inf and step * (SHELVES // 2) < top - seed:
        step *= 2.0
    return step


@lean()
def _remaining_mass(masses: Floats, shelf: int, last: int) -> float:
    """Return the most that what stands on some shelves can add."""
    total = 0.0
    for s in range(shelf, last + 1):
        total += masses[s]
    return total


@lean(inline="always")
def _shelve_children(
    kids: Ints, counts: Singles, node: int, levels: tuple[float, float, float], at: tuple[int, int, int],
    below: Floats, mass: Singles, waiting: Ints, keys: Floats, heads: Ints, masses: Floats, state: Floats,
) -> tuple[int, int]:  # fmt: skip
    """Put the children of a node on their shelves, or pass over them.

    `levels` are the score above the first shelf, how many shelves there are for each 1 below it, and the score below
    which nothing counts; `at` are the shelf where the node stood, the last one, and how many wait.
    """
    (shelf, last, used), (origin, per, lowest) = at, levels
    waits, skipped, lane = 0.0, 0.0, np.uintp(node * FAN)
    for j in range(FAN):
        if counts[lane] == 0:
            break
        if below[0, j] < lowest:
            skipped, lane = skipped + mass[j], lane + np.uintp(1)
            continue
        to = max(int(min((origin - below[0, j]) * per, SHELVES - 1.0)), shelf)
        here, place = np.uintp(to), np.uintp(used)
        waiting[0, place], waiting[1, place], keys[place] = kids[lane], heads[here], below[0, j]
        heads[here] = used
        masses[here] += mass[j]
        waits += mass[j] if to > 0 else 0.0
        last, used, lane = max(last, to), used + 1, lane + np.uintp(1)
    state[WAITS], state[SKIPPED] = state[WAITS] + waits, state[SKIPPED] + skipped
    return last, used


@lean()
def _stop_status(
    fields: int, rules: Rules, highest: float, shelf: int, last: int, masses: Floats, room: Floats, room_32: Singles,
    state: Floats, three: Three,
) -> int:  # fmt: skip
    """Say whether what stands on the shelves from one on can be left there: nothing of it scores above `highest`.

    The running sum of masses serves to look seldom; the judgement is by a sum of its own.
    """
    worst = lowest_second(-three.two, rules.slack) if rules.ranks else -three.one
    if shelf <= last and not highest < worst:
        return GOING
    if state[UNFLUSHED] > 0:
        flush(room_32, state)
    spoilt = spoilt_by(fields, state)
    total = lane_sum(room) + state[SINGLE] - spoilt
    base = total
    if rules.holds:
        base = max(total - np.exp(-three.one - state[REF]), SURE * total)
    allowed = rules.relative * base
    if shelf <= last and state[WAITS] > allowed + 1e-9:
        return GOING
    left = _remaining_mass(masses, shelf, last)
    if rules.leaves_out and shelf <= last:
        left /= max(1.0 - np.exp(min(highest, 0.0)), SURE)
    left += state[SKIPPED]
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
    """Search one tree for one query; return the best three, how it ended, and a tile to start from when too low."""
    three, origin = Three(np.inf, np.inf, np.inf, NONE, NONE), state[TOP]
    step, lowest = 1.0, state[REF] - state[DEEP]
    if rules.ranks:
        step, lowest = _step(origin, state[SEED]), min(lowest, lowest_second(state[SEED], rules.slack))
    levels = origin, 1.0 / step, lowest
    waiting[0, 0], waiting[1, 0], keys[0], heads[0] = root, NONE, np.inf, 0
    shelf, last, used, checked, end, tile = 0, 0, 1, 0, GOING, NONE
    while True:
        while shelf <= last and heads[shelf] < 0:
            shelf += 1
        if shelf > checked:
            state[WAITS] -= _remaining_mass(masses, max(checked, 1), min(shelf, last + 1) - 1)
            checked = shelf
            highest = origin - shelf * step
            end = _stop_status(len(query), rules, highest, shelf, last, masses, room, room_32, state, three)
            if end != GOING:
                break
        here = heads[shelf]
        heads[shelf], node, key = waiting[1, here], waiting[0, here], keys[here]
        if node >= 0:
            keys_below(sides, peaks, counts, node, query, state[REF], below, mass)
            at = shelf, last, used
            last, used = _shelve_children(
                kids, counts, node, levels, at, below, mass, waiting, keys, heads, masses, state
            )
            continue
        if key - state[REF] > HIGHEST:
            tile = -1 - node
            if _two_best(exact, about, tile, query, room)[0] - state[REF] > HIGHEST / 2:
                end = LOW
                break
        three = leaf(exact, single, about, -1 - node, key, query, rules, room, room_32, aim, state, three)
    for s in range(last + 1):
        heads[s], masses[s] = NONE, 0.0
    return three, end, tile


@lean()
def _deep(relative: float, points: int) -> float:
    """Return how far below the best scores are so low that all points together add a hundredth of the allowance."""
    return float(np.log(100.0 * points) - np.log(relative * SURE))


@njit(cache=True, nogil=True)
def weigh(
    grove: Grove, queries: Floats, some: Ints, roots: Ints, tiles: Ints, rules: Rules,
    costs: Floats, places: Ints, log_sums: Floats, lacking: Floats,
) -> None:  # fmt: skip
    """Sum and rank for some queries over the trees of their blocks, from the tiles where they stand; near ones should
    follow each other.

    `costs` (n x 3) and `places` (n x 2: tile times WIDE plus lane) are those of the best, without ties sorted out;
    exp(log_sums) is no more than the exact sum, and lacks no more of it (or of the sum without its largest term) than
    the share `lacking`.
    """
    first, kids, sides, peaks, counts = grove.roots, grove.kids, grove.sides, grove.peak, grove.sizes
    exact, single, about, fields = grove.exact, grove.single, grove.about, padded_width(queries.shape[1])
    waiting, keys = np.empty((2, len(kids) + 1), np.int64), np.empty(len(kids) + 1)
    heads, masses = np.full(SHELVES, NONE), np.zeros(SHELVES)
    room, room_32 = np.zeros((3, WIDE)), np.zeros((3, WIDE), np.float32)
    below, mass = np.empty((1, FAN)), np.empty(FAN, np.float32)
    query, aim = np.zeros(fields), np.zeros(fields, np.float32)
    state = np.zeros(15)
    state[NEAR], state[DEEP] = -1.0, _deep(rules.relative, len(grove.order) + WIDE * len(grove.start))
    for i in some:
        for k in range(queries.shape[1]):
            query[k] = queries[i, k]
        end, three, start = GOING, Three(np.inf, np.inf, np.inf, NONE, NONE), tiles[i]
        while end != DONE:
            _begin(exact, about, start, query, room, room_32, state)
            three, end, tile = _search(
                kids, sides, peaks, counts, exact, single, about, first[roots[i]], query, rules,
                waiting, keys, heads, masses, room, room_32, below, mass, aim, state,
            )  # fmt: skip
            if end == LOW:
                start = tile
            elif end == SPOILT:
                state[NEAR] = 2 * max(state[NEAR], -1.0) + 3
        costs[i, 0], costs[i, 1], costs[i, 2] = three.one, three.two, three.three
        places[i, 0], places[i, 1] = three.place, three.second
        # From the best on, as one sums all: where it is all there is, nothing is lost by rounding.
        log_sums[i] = np.log(state[TOTAL] / exp_64(-three.one - state[REF])) - three.one
        lacking[i] = state[LACK]
        less = 0.1 if state[SPOILS] > 0.05 * rules.relative else 1.0
        state[NEAR] = max(state[NEAR] - less, -1.0)

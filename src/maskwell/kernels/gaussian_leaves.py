"""Adding the tiles of a tree to the sum of one query, and keeping the points that score best.

A leaf of `gaussian_sums`: total += sum of exp(score_j - ref) over a tile, or of s / (1 - s) where exp(score) is a share
s. Tiles below the best are summed in single precision; what this can do is part of the bound of the sum (`spoilt_by`,
own derivation from the bound in `gaussian_tiles`). The best, and shares that are not small, are always taken in double
precision, by the same sum in the same order.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from .distance_sieve import Three, nearest_three
from .gaussian_tiles import (
    FLUSHED,
    SURE,
    WIDE,
    add_32,
    add_64,
    add_shares_32,
    cost_of,
    lean,
    reaching_32,
    single_error,
    values_32,
    values_64,
)

HIGHEST = 40.0  # of a score above the reference
COUNTED = 30.0  # below the best: what single precision does to lower scores is faint
FAINT = 1e-9  # of the best: a million times exp(-30), and one in a hundred of that is more than its rounding
WIDEST = 24.0  # half diagonal of a tile in single precision
LOOSE = 1e-9  # relative: more than the rounding of scores before they are made anew
# Shares above a third are made exact: below, weights are off by half as much again
LOG_THIRD = float(np.log(1 / 3))
NOBODY = 1e29  # no point costs as much
# Of the state of a search.
REF, TOP, SEED, SCALE, SINGLE, ABOVE, ACROSS, NEAR, UNFLUSHED, WAITS, TOTAL, LACK, SPOILS, DEEP, SKIPPED = (
    range(15)
)

Floats = npt.NDArray[np.float64]
Singles = npt.NDArray[np.float32]


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


@lean()
def _weight(score: float, ref: float, shares: bool) -> float:
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
                room[1, lane] = room[2, lane] + _weight(-cost, ref, True)
            if cost < NOBODY:
                three = nearest_three(three, cost, place)
    return three


@lean()
def flush(room: Singles, state: Floats) -> None:
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
def lane_sum(room: Floats) -> float:
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
        room[1, 0] += repeat * _weight(-cost, state[REF], scale > 0)
        for _ in range(min(repeat, 3) if -cost >= least else 0):
            three = nearest_three(three, cost, tile * WIDE)
        return three
    wanted = min(min(least, LOG_THIRD) if scale > 0 else least, state[REF] - state[DEEP])
    if values_64(exact, tile, query, wanted, room) == 0:
        state[SKIPPED] += WIDE * np.exp(-state[DEEP])
        return three
    add_64(room, state[REF], scale)
    return _rank(exact, tile, query, least, scale > 0, room, state[REF], three)


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
                room[1, lane] += _weight(-cost, state[REF], scale > 0)
                room_32[1, lane] = room_32[2, lane]
                three = nearest_three(three, cost, place) if -cost >= least else three
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
        flush(room_32, state)
    return three


@lean(inline="always")
def leaf(
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
def spoilt_by(fields: int, state: Floats) -> float:
    """Return what single precision can have done to the sum.

    Shares are below a third where they are not made exact, and their weights off by half as much again.
    """
    if state[SINGLE] == 0:
        return 0.0
    half = max(state[ABOVE] - state[TOP], 0.0) + COUNTED
    other = abs(state[ABOVE] - state[REF]) + HIGHEST + COUNTED
    error = 1.5 * single_error(fields, half, state[ACROSS], other)
    return float(state[SINGLE] * error + FAINT * np.exp(state[TOP] - state[REF]))

"""Chains over matchings and noise parameters together: who has which record, and how large the noise is.

A state gives every known unit a record of its block or none (-1: not released). Its log weight is the sum of the log
kernels of its pairs, of `free` for every record that is nobody's, of `unreleased` for every unit without a record, of
the ways the units nobody knows can have the rest, and of the log prior of the logs of the parameters.
Kernels are computed pair by pair as the parameters stand, so that a new value costs no matrix of pairs. Here are the
kernels and the moves of a matching; `matching_noise_steps` has the parameters and runs the chains.

Moves are `inline_bare_loop` and make no array (`bare`): ten times as quick as calls that hand all these arrays on and
count who holds them. After a change here write its digest into `matching_noise_steps`, whose loops are kept by that
file's content.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numba import njit
from numpy.typing import NDArray

from . import announce
from .densities import LOG_ROOT_2_PI, ROOT_HALF

announce(__file__)

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]
FORWARD, PAPER, FMS = 0, 1, 2
ROOT_2_OVER_PI = math.sqrt(2.0 / math.pi)
AT_RANDOM = 0.1  # share of exchanges between any two units of a block
FLAT = 0.5  # share of single proposals that are any record of the block: with narrow rows alone chains would stick
Loop = TypeVar("Loop", bound=Callable[..., Any])
BARE: dict[str, Any] = {"cache": True, "nogil": True, "_nrt": False}


def bare(loop: Loop) -> Loop:
    """Compile a loop that makes no array: no references need be counted."""
    compiled: Any = njit(**BARE)(loop)
    return compiled  # type: ignore[no-any-return]


def inline_bare_loop(loop: Loop) -> Loop:
    """Compile a bare part of other loops, to be put into them."""
    compiled: Any = njit(forceinline=True, **BARE)(loop)
    return compiled  # type: ignore[no-any-return]


class Scene(NamedTuple):
    """Normal kernels of units with records, both sorted by block; variance (sd noise)^2 + (bias_sd bias)^2.

    `noise`, `bias` and `used` (which of its columns are open) belong to units, for FMS to records. `fixed` are log
    factors without unknowns, that of unit l and record i at `row[l] + i` (empty: none); `lift` is added by record.
    """

    kind: int
    z: Floats
    x: Floats
    is_open: Bools
    used: Bools
    noise: Floats
    bias: Floats
    sd_at: Ints
    bias_at: Ints
    fixed: Floats
    row: Ints
    lift: Floats


class BlockPlace(NamedTuple):
    """Blocks of units: the records `first` to `last` and the units `begin` to `end` of each unit's block."""

    block: Ints
    first: Ints
    last: Ints
    begin: Ints
    end: Ints


class Ways(NamedTuple):
    """How moves are proposed: exchanges with near units, loops and records by rows of cumulated chances, units let go.

    The rows are fixed; how probable they made a move, and its way back, enters the ratio by which it is accepted.
    """

    exchange: float
    loop: float
    propose: float
    near: Ints
    near_from: Ints
    near_count: Ints
    cumulative: Floats


class State(NamedTuple):
    """Where a chain stands; `here` are the log weights of the units' own pairs, all arrays change in place."""

    match: Ints
    owner: Ints
    outside: Ints
    logs: Floats
    precision: Floats
    half: Floats
    free: Floats
    here: Floats
    unreleased: Floats
    trail: Ints


@bare
def prepare(scene: Scene, logs: Floats, precision: Floats, half: Floats) -> None:
    """Compute the precisions of all units (records) and half the logs of their variances."""
    for a in range(scene.noise.shape[0]):
        half[a] = 0.0
        for j in range(len(scene.sd_at)):
            if not scene.used[a, j]:
                precision[a, j] = 0.0
                continue
            sd = math.exp(logs[scene.sd_at[j]]) * scene.noise[a, j]
            variance = sd * sd
            if scene.bias_at[j] >= 0:
                bias = math.exp(logs[scene.bias_at[j]]) * scene.bias[a, j]
                variance += bias * bias
            precision[a, j] = 1.0 / variance
            half[a] += 0.5 * math.log(variance) + LOG_ROOT_2_PI


@inline_bare_loop
def pair(scene: Scene, logs: Floats, precision: Floats, half: Floats, unit: int, record: int) -> float:
    """Return the log kernel of one pair."""
    total: float = scene.lift[record]
    if len(scene.fixed):
        total += scene.fixed[scene.row[unit] + record]
        if total == -math.inf:
            return total
    at = record if scene.kind == FMS else unit
    total -= half[at]
    for j in range(len(scene.sd_at)):
        if scene.is_open[unit, j]:
            apart = scene.z[record, j] - scene.x[unit, j]
            total -= 0.5 * apart * apart * precision[at, j]
            if scene.kind == PAPER and scene.bias_at[j] >= 0:
                total += _log_fold(scene, logs, precision[at, j], unit, record, j)
    return total


@inline_bare_loop
def _log_fold(scene: Scene, logs: Floats, precision: float, unit: int, record: int, j: int) -> float:
    """Return log E|theta| given z and x, theta normal: the factor that turns f(z|x) into the paper's f(x|z)."""
    noise = math.exp(2.0 * logs[scene.sd_at[j]])
    bias = math.exp(2.0 * logs[scene.bias_at[j]])
    mean = (noise + bias * scene.x[unit, j] * scene.z[record, j]) * precision
    sd = math.sqrt(noise * bias * precision)
    if abs(mean) > 8.0 * sd:
        return math.log(abs(mean))
    ratio = mean / sd
    fold = ROOT_2_OVER_PI * math.exp(-0.5 * ratio * ratio) + ratio * math.erf(ROOT_HALF * ratio)
    return math.log(sd * fold)


@njit(cache=True, nogil=True)
def all_pairs(scene: Scene, place: BlockPlace, logs: Floats) -> Floats:
    """Return the log kernels of all pairs of a block, unit by unit."""
    rows, columns = scene.noise.shape
    precision, half = np.empty((rows, columns)), np.empty(rows)
    prepare(scene, logs, precision, half)
    out = np.empty((place.last - place.first).sum())
    for unit in range(len(place.block)):
        for record in range(place.first[unit], place.last[unit]):
            out[scene.row[unit] + record] = pair(scene, logs, precision, half, unit, record)
    return out


@bare
def fill_here(scene: Scene, state: State) -> float:
    """Compute the log weights of all units' own pairs and return their sum."""
    total = 0.0
    for unit in range(len(state.match)):
        state.here[unit] = _own(scene, state, unit, state.match[unit])
        total += state.here[unit]
    return total


@inline_bare_loop
def _own(scene: Scene, state: State, unit: int, record: int) -> float:
    """Return the log weight of a unit with a record, or without."""
    if record < 0:
        return float(state.unreleased[unit])
    return pair(scene, state.logs, state.precision, state.half, unit, record)


# --- matchings ---------------------------------------------------------------------------------------------


@bare
def sweep(
    scene: Scene, place: BlockPlace, ways: Ways, state: State, moves: int, rng: np.random.Generator
) -> None:
    """Try many moves of one matching at fixed parameters."""
    units = len(state.match)
    for _ in range(moves):
        unit = min(int(rng.random() * units), units - 1)
        choice = rng.random()
        if choice < ways.exchange:
            other = _near(place, ways, unit, rng)
            if other != unit:
                _swap(scene, state, unit, other, 0.0, rng)
        elif place.first[unit] == place.last[unit]:
            continue
        elif choice < ways.exchange + ways.loop:
            _loop(scene, place, ways, state, unit, rng)
        elif choice < ways.exchange + ways.loop + ways.propose:
            _propose(scene, place, ways, state, unit, rng)
        else:
            _let_go(scene, place, ways, state, unit, rng)


@inline_bare_loop
def _near(place: BlockPlace, ways: Ways, unit: int, rng: np.random.Generator) -> int:
    """Draw another unit of the block, the nearest most often; how often two meet depends on no matching."""
    count = ways.near_count[unit]
    if count == 0 or rng.random() < AT_RANDOM:
        size = place.end[unit] - place.begin[unit]
        return int(place.begin[unit] + min(int(rng.random() * size), size - 1))
    rank = int(math.exp(rng.random() * math.log(count + 1.0))) - 1
    return int(ways.near[ways.near_from[unit] + min(rank, count - 1)])


@inline_bare_loop
def accepts(log_ratio: float, rng: np.random.Generator) -> bool:
    """Draw whether a move is accepted."""
    return log_ratio >= 0.0 or rng.random() < math.exp(log_ratio)


@inline_bare_loop
def _swap(
    scene: Scene, state: State, unit: int, other: int, log_ways: float, rng: np.random.Generator
) -> None:
    """Exchange what two units have, if accepted; `log_ways` is the log ratio of the proposals."""
    mine, theirs = state.match[unit], state.match[other]
    if mine < 0 and theirs < 0:
        return
    new = _own(scene, state, unit, theirs)
    if new == -math.inf:
        return
    turned = _own(scene, state, other, mine)
    if accepts(new + turned - state.here[unit] - state.here[other] + log_ways, rng):
        _give(state, unit, theirs, new)
        _give(state, other, mine, turned)


@inline_bare_loop
def _give(state: State, unit: int, record: int, log_weight: float) -> None:
    state.match[unit] = record
    state.here[unit] = log_weight
    if record >= 0:
        state.owner[record] = unit


@inline_bare_loop
def _chance(place: BlockPlace, ways: Ways, row: Ints, unit: int, record: int) -> float:
    """Return how probable it is that a unit proposes a record."""
    at = row[unit] + record
    before = ways.cumulative[at - 1] if record > place.first[unit] else 0.0
    return float(ways.cumulative[at] - before)


@inline_bare_loop
def _draw_row_record(place: BlockPlace, ways: Ways, row: Ints, unit: int, uniform: float) -> int:
    """Draw a record from a unit's row."""
    low, high = place.first[unit], place.last[unit] - 1
    while low < high:
        middle = (low + high) // 2
        if ways.cumulative[row[unit] + middle] > uniform:
            high = middle
        else:
            low = middle + 1
    return int(low)


@inline_bare_loop
def _flat_chance(place: BlockPlace, ways: Ways, row: Ints, unit: int, record: int) -> float:
    """Return how probable it is that a unit proposes a record, where any may be proposed."""
    size = place.last[unit] - place.first[unit]
    return float(FLAT / size + (1.0 - FLAT) * _chance(place, ways, row, unit, record))


@inline_bare_loop
def _flat_drawn(place: BlockPlace, ways: Ways, row: Ints, unit: int, rng: np.random.Generator) -> int:
    """Draw any record of the block, or one from the unit's row."""
    size = place.last[unit] - place.first[unit]
    if rng.random() < FLAT:
        return int(place.first[unit] + min(int(rng.random() * size), size - 1))
    return _draw_row_record(place, ways, row, unit, rng.random())


@inline_bare_loop
def _loop(
    scene: Scene, place: BlockPlace, ways: Ways, state: State, unit: int, rng: np.random.Generator
) -> None:
    """Let a unit give up its record and take another, its owner a third, until one takes the first or a free one.

    The way back has the same steps from the other end. Loops longer than the trail are not made.
    """
    hole, ratio, steps = state.match[unit], 0.0, 0
    closed = hole < 0
    while not closed and steps < len(state.trail) and ratio > -math.inf:
        record, mine = _draw_row_record(place, ways, scene.row, unit, rng.random()), state.match[unit]
        new = _own(scene, state, unit, record)
        back = _chance(place, ways, scene.row, unit, mine)
        ratio += new - state.here[unit] + math.log(back / _chance(place, ways, scene.row, unit, record))
        other = state.owner[record]
        state.trail[steps, 0], state.trail[steps, 1] = unit, mine
        steps += 1
        closed = record == hole or other < 0
        if closed and record != hole:
            ratio += state.free[hole] - state.free[record]
            state.owner[hole] = -1
        _give(state, unit, record, new)
        unit = other
    if not closed:
        state.owner[state.match[unit]] = unit
    if steps > 0 and not (closed and accepts(ratio, rng)):
        _undo(scene, state, hole, steps)


@inline_bare_loop
def _undo(scene: Scene, state: State, hole: int, steps: int) -> None:
    """Go a loop back, from its last step to its first."""
    last = state.match[state.trail[steps - 1, 0]]
    if last != hole and state.owner[hole] < 0:
        state.owner[last] = -1
    for step in range(steps - 1, -1, -1):
        unit, record = state.trail[step, 0], state.trail[step, 1]
        _give(state, unit, record, _own(scene, state, unit, record))


@inline_bare_loop
def _propose(
    scene: Scene, place: BlockPlace, ways: Ways, state: State, unit: int, rng: np.random.Generator
) -> None:
    """Propose a record for a unit: a free one is taken, an owned one exchanged or, by a unit without, taken over."""
    record, mine = _flat_drawn(place, ways, scene.row, unit, rng), state.match[unit]
    other = state.owner[record]
    if other == unit:
        return
    if other < 0:
        _take(scene, place, ways, state, unit, record, rng)
        return
    there = _flat_chance(place, ways, scene.row, unit, record)
    back = _flat_chance(place, ways, scene.row, other, record)
    if mine >= 0:
        there += _flat_chance(place, ways, scene.row, other, mine)
        back += _flat_chance(place, ways, scene.row, unit, mine)
    _swap(scene, state, unit, other, math.log(back / there), rng)


@inline_bare_loop
def _take(
    scene: Scene,
    place: BlockPlace,
    ways: Ways,
    state: State,
    unit: int,
    record: int,
    rng: np.random.Generator,
) -> None:
    """Give a unit a free record, if accepted; what it had becomes free."""
    mine, block = state.match[unit], place.block[unit]
    new = _own(scene, state, unit, record)
    ratio = new - state.here[unit] - state.free[record]
    chance = _flat_chance(place, ways, scene.row, unit, record)
    if mine >= 0:
        ratio += state.free[mine] + math.log(_flat_chance(place, ways, scene.row, unit, mine) / chance)
    else:
        leaving = 1.0 - ways.exchange - ways.loop - ways.propose
        ratio += math.log(leaving / (ways.propose * chance)) - math.log(state.outside[block] + 1.0)
    if accepts(ratio, rng):
        if mine >= 0:
            state.owner[mine] = -1
        else:
            state.outside[block] += 1
        _give(state, unit, record, new)


@inline_bare_loop
def _let_go(
    scene: Scene, place: BlockPlace, ways: Ways, state: State, unit: int, rng: np.random.Generator
) -> None:
    """Let a unit be without a record, if accepted and if another unit can have it."""
    mine, block = state.match[unit], place.block[unit]
    if mine < 0 or state.outside[block] == 0:
        return
    leaving = 1.0 - ways.exchange - ways.loop - ways.propose
    chance = ways.propose * _flat_chance(place, ways, scene.row, unit, mine)
    ratio = state.unreleased[unit] + state.free[mine] - state.here[unit]
    if accepts(ratio + math.log(state.outside[block] * chance / leaving), rng):
        state.owner[mine] = -1
        state.outside[block] -= 1
        _give(state, unit, -1, state.unreleased[unit])

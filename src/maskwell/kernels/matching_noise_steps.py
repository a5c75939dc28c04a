"""Parameters of the noise given a matching, the density of records that are nobody's, and chains over both together.

Parameters step on the log scale, each group of them by itself, and are accepted by the whole weight of the state:
random-walk Metropolis-Hastings (Hastings 1970) on p(matching, parameters | release). `smooth` adds the expectation of
one more move in place of where it led (Gelfand and Smith 1990). Chosen by
`attacks/bayes/matching_posterior/parameter_chains` where the parameters are unknown and sums over matchings are too
long.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from . import announce
from .matching_noise_mcmc import (
    BlockPlace,
    Scene,
    State,
    Ways,
    accepts,
    bare,
    fill_here,
    pair,
    prepare,
    sweep,
)

announce(__file__)

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]
HELPING = "6e6e320487f56bb6"  # digest of that file: numba keeps these loops until this one changes
FAR = 40.0  # what lies this far below the largest term of a sum of exponentials adds nothing
NOBODYS = -1e4  # log density of a record that no other unit can have


class PriorsAndSteps(NamedTuple):
    """Log priors of the logs of the parameters on even grids, and the steps: rows of a root for each group of them."""

    prior: Floats
    low: Floats
    pace: Floats
    roots: Floats
    groups: Ints


class PosteriorSurface(NamedTuple):
    """The log density of free records: given (mode 0), from a grid filled as it is needed (1), or computed (2)."""

    mode: int
    others: Scene
    place: BlockPlace
    low: Floats
    pace: float
    shape: Ints
    table: Floats
    filled: Bools


class Book(NamedTuple):
    """What a chain writes down: matchings, logs of the parameters and of the weight, chances of who is where."""

    kept: NDArray[np.int32]
    traces: Floats
    counts: Floats
    absent: Floats
    room: Floats


# --- parameters --------------------------------------------------------------------------------------------


@bare
def log_prior(learning: PriorsAndSteps, logs: Floats) -> float:
    """Return the log prior, between the points of its grids on straight lines, minus infinity beyond them."""
    total = 0.0
    for d in range(len(logs)):
        at = (logs[d] - learning.low[d]) / learning.pace[d]
        cell = math.floor(at)
        if cell < 0 or cell >= learning.prior.shape[1] - 1:
            return -math.inf
        left, right = learning.prior[d, cell], learning.prior[d, cell + 1]
        if left == -math.inf or right == -math.inf:
            return -math.inf
        total += left + (at - cell) * (right - left)
    return total


@bare
def log_weight(state: State) -> float:
    """Return the log weight of units as they are matched and of records that are nobody's."""
    total = 0.0
    for unit in range(len(state.here)):
        total += state.here[unit]
    for record in range(len(state.owner)):
        if state.owner[record] < 0:
            total += state.free[record]
    return total


@bare
def _stride(
    learning: PriorsAndSteps, state: State, spare: State, group: int, rng: np.random.Generator
) -> None:
    """Propose new logs of one group of parameters."""
    for d in range(len(state.logs)):
        spare.logs[d] = state.logs[d]
    for b in range(len(state.logs)):
        if learning.groups[group, b]:
            step = rng.standard_normal()
            for d in range(len(state.logs)):
                spare.logs[d] += learning.roots[group, d, b] * step


@njit(cache=True, nogil=True)
def learn(
    setting: tuple[Scene, BlockPlace, Ways, PosteriorSurface, PriorsAndSteps],
    state: State,
    spare: State,
    rng: np.random.Generator,
    accepted: Ints,
) -> None:
    """Try one step of each group of parameters and count those that are accepted."""
    scene, _, _, surface, learning = setting
    before = log_prior(learning, state.logs) + log_weight(state)
    for group in range(len(accepted)):
        _stride(learning, state, spare, group, rng)
        after = log_prior(learning, spare.logs)
        if after == -math.inf:
            continue
        prepare(scene, spare.logs, spare.precision, spare.half)
        fill_here(scene, spare)
        if surface.mode:
            fill_free(surface, spare.logs, spare.free)
        after += log_weight(spare)
        if accepts(after - before, rng):
            before = after
            accepted[group] += 1
            _keep(state, spare)


@bare
def _keep(state: State, spare: State) -> None:
    """Let a chain stand where its spare room has led; loops of numbers, since copies of slices take long to compile."""
    for d in range(len(state.logs)):
        state.logs[d] = spare.logs[d]
    for a in range(len(state.half)):
        state.half[a] = spare.half[a]
        for j in range(state.precision.shape[1]):
            state.precision[a, j] = spare.precision[a, j]
    for unit in range(len(state.here)):
        state.here[unit] = spare.here[unit]
    for record in range(len(state.free)):
        state.free[record] = spare.free[record]


# --- the density of records that are nobody's --------------------------------------------------------------


@njit(cache=True, nogil=True)
def fill_free(surface: PosteriorSurface, logs: Floats, free: Floats) -> None:
    """Compute the log density of every record under the mean of the other true records of its block."""
    if surface.mode == 2:
        mean_others(surface.others, surface.place, logs, free)
        return
    for record in range(len(free)):
        free[record] = 0.0
    across = surface.shape[1]
    at = np.zeros(2, np.int64)
    weights = np.zeros((2, 4))
    weights[1, 0] = 1.0
    for d in range(len(logs)):
        at[d] = _cubic((logs[d] - surface.low[d]) / surface.pace, surface.shape[d], weights[d])
    for a in range(4):
        for b in range(4 if len(logs) > 1 else 1):
            node = (at[0] + a) * across + at[1] + b
            if not surface.filled[node]:
                _fill_node(surface, node, len(logs))
            weight = weights[0, a] * weights[1, b]
            for record in range(len(free)):
                free[record] += weight * surface.table[node, record]


@bare
def _cubic(at: float, size: int, weights: Floats) -> int:
    """Fill in the weights of four neighbouring nodes of a cubic through them and return the first of them."""
    first = min(max(math.floor(at) - 1, 0), size - 4)
    t = at - first
    weights[0] = -(t - 1.0) * (t - 2.0) * (t - 3.0) / 6.0
    weights[1] = t * (t - 2.0) * (t - 3.0) / 2.0
    weights[2] = -t * (t - 1.0) * (t - 3.0) / 2.0
    weights[3] = t * (t - 1.0) * (t - 2.0) / 6.0
    return first


@njit(cache=True, nogil=True)
def _fill_node(surface: PosteriorSurface, node: int, unknowns: int) -> None:
    across = surface.shape[1]
    logs = np.empty(unknowns)
    logs[0] = surface.low[0] + (node // across) * surface.pace
    if unknowns > 1:
        logs[1] = surface.low[1] + (node % across) * surface.pace
    mean_others(surface.others, surface.place, logs, surface.table[node])
    surface.filled[node] = True


@njit(cache=True, nogil=True)
def mean_others(others: Scene, place: BlockPlace, logs: Floats, out: Floats) -> None:
    """Put the log of the mean kernel over the others of each record's block into `out`."""
    rows, columns = others.noise.shape
    precision, half = np.empty((rows, columns)), np.empty(rows)
    prepare(others, logs, precision, half)
    _mean_others(others, place, logs, precision, half, out)


@bare
def _mean_others(
    others: Scene, place: BlockPlace, logs: Floats, precision: Floats, half: Floats, out: Floats
) -> None:
    for record in range(len(out)):
        top, total = -math.inf, 0.0
        for other in range(place.begin[record], place.end[record]):
            value = pair(others, logs, precision, half, other, record)
            if value > top:
                total = 1.0 + (total * math.exp(top - value) if total > 0.0 else 0.0)
                top = value
            elif value > top - FAR:
                total += math.exp(value - top)
        count = place.end[record] - place.begin[record]
        out[record] = max(top + math.log(total / count), NOBODYS) if total > 0.0 else NOBODYS


# --- chains ------------------------------------------------------------------------------------------------


@bare
def smooth(scene: Scene, place: BlockPlace, state: State, book: Book) -> None:
    """Add where each unit would go in one more move of its own, instead of where it is: near ties need no luck then.

    With a chance of (records that no other unit has) / n it would draw anew among these, or none, by weight; else it
    would try an exchange with one of the other owners, each as likely. Such a move leaves the posterior as it is.
    """
    for unit in range(len(state.match)):
        size = place.last[unit] - place.first[unit]
        if size == 0:
            book.absent[unit] += 1.0
            continue
        top, open_records = _weigh_open(scene, place, state, unit, book.room)
        _add_open(scene, place, state, unit, book, top, open_records / size)
        _add_exchanges(scene, place, state, unit, book, open_records)


@bare
def _weigh_open(scene: Scene, place: BlockPlace, state: State, unit: int, room: Floats) -> tuple[float, int]:
    """Put the log weights of records that no other unit has into `room`; return the largest, and how many there are."""
    top, count = -math.inf, 0
    for record in range(place.first[unit], place.last[unit]):
        owner = state.owner[record]
        if owner < 0 or owner == unit:
            log = pair(scene, state.logs, state.precision, state.half, unit, record) - state.free[record]
            room[record] = log
            top = max(top, log)
            count += 1
    return max(top, _log_none(place, state, unit)), count


@bare
def _log_none(place: BlockPlace, state: State, unit: int) -> float:
    """Return the log weight of a unit's having no record, beside those of its having one."""
    ways = state.outside[place.block[unit]] + (0.0 if state.match[unit] >= 0 else 1.0)
    return state.unreleased[unit] + math.log(ways) if ways > 0.0 else -math.inf


@bare
def _add_open(
    scene: Scene, place: BlockPlace, state: State, unit: int, book: Book, top: float, share: float
) -> None:
    """Add the chances of a draw among the records that no other unit has, and none."""
    none = math.exp(_log_none(place, state, unit) - top)
    total = none
    for record in range(place.first[unit], place.last[unit]):
        if state.owner[record] < 0 or state.owner[record] == unit:
            book.room[record] = math.exp(book.room[record] - top)
            total += book.room[record]
    book.absent[unit] += share * none / total
    for record in range(place.first[unit], place.last[unit]):
        if state.owner[record] < 0 or state.owner[record] == unit:
            book.counts[scene.row[unit] + record] += share * book.room[record] / total


@bare
def _add_exchanges(
    scene: Scene, place: BlockPlace, state: State, unit: int, book: Book, open_records: int
) -> None:
    """Add the chances of an exchange with any other owner; a unit without a record stays so."""
    mine, size = state.match[unit], place.last[unit] - place.first[unit]
    stays = (size - open_records) / size
    if mine < 0:
        book.absent[unit] += stays
        return
    for record in range(place.first[unit], place.last[unit]):
        other = state.owner[record]
        if other >= 0 and other != unit:
            gain = pair(scene, state.logs, state.precision, state.half, unit, record) - state.here[unit]
            gain += pair(scene, state.logs, state.precision, state.half, other, mine) - state.here[other]
            chance = math.exp(min(gain, 0.0)) / size
            book.counts[scene.row[unit] + record] += chance
            stays -= chance
    book.counts[scene.row[unit] + mine] += stays


@bare
def enter(state: State, book: Book, draw: int) -> None:
    """Keep a matching with its parameters and its log weight."""
    for unit in range(len(state.match)):
        book.kept[draw, unit] = state.match[unit]
    for d in range(len(state.logs)):
        book.traces[draw, d] = state.logs[d]
    book.traces[draw, len(state.logs)] = log_weight(state)


@njit(cache=True, nogil=True)
def run(
    setting: tuple[Scene, BlockPlace, Ways, PosteriorSurface, PriorsAndSteps],
    state: State,
    spare: State,
    rng: np.random.Generator,
    pace: tuple[int, int, int, int],
    book: Book,
) -> Ints:
    """Run a chain and return how often steps of the parameters were accepted.

    `pace` has the moves of a sweep, the steps of the parameters after each, the sweeps between kept draws, and those
    between draws whose chances are added up.
    """
    scene, place, ways, _, learning = setting
    accepted = np.zeros(learning.groups.shape[0], np.int64)
    for draw in range(len(book.kept)):
        for turn in range(pace[2]):
            sweep(scene, place, ways, state, pace[0], rng)
            for _ in range(pace[1]):
                learn(setting, state, spare, rng, accepted)
            if (draw * pace[2] + turn) % pace[3] == 0:
                smooth(scene, place, state, book)
        enter(state, book, draw)
    return accepted

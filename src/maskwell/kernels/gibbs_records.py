"""What Gibbs draws for each record: its unknown categories, the utilities behind them, and its unknown numbers.

Categories are drawn by enumeration of their levels. Utilities make probit and ordered equations gaussian (Albert and
Chib 1993), Polya-Gamma weights logistic ones (Polson, Scott and Windle 2013). Numbers are drawn from their normal
conditional where all equations are linear and gaussian in them, one after the other within limits; else by an
elliptical slice, the normal part as its prior (Murray, Adams and MacKay 2010). Used by
`analysis/samplers/gibbs/sweeps`.
"""

from __future__ import annotations

from math import cos, log, pi, sin, sqrt
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from . import announce
from .cholesky import back, factorise, solve
from .equations import (
    GAUSSIAN,
    LOGIT,
    ORDERED,
    PROBIT,
    Layout,
    Values,
    applies,
    coefficient,
    predictor,
    record_log,
)
from .gibbs_noise import noise_log, reference
from .polya_gamma import polya_gamma
from .programs import inline_lean, inner, lean, program_value
from .random import categorical_from_logs, truncated_normal

announce(__file__)

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]

MOST_SHRINKS = 200  # a slice that shrinks this often has met a wall of rounding: the state stays


class ResponseBlock(NamedTuple):
    """Unknown numbers that are drawn together: their variables, and how each equation enters.

    `exact` equations are linear and gaussian (or augmented) in the block and make its normal conditional;
    `other` ones enter by their likelihood, which a slice follows. `inside[j]` is the place of variable j in the block,
    `number[c]` the number of the block that column c is affine in (-1: none), `among` the places of the block's numbers
    among those that the noise speaks of (`columns`); `spread` whether noise depends on the value.
    """

    variables: Ints
    inside: Ints
    number: Ints
    exact: Ints
    other: Ints
    among: Ints
    columns: Ints
    spread: bool


class PlainNumbers(NamedTuple):
    """The noise where it is normal and nothing about it is drawn: its part of each record's conditional, once for all.

    Precisions by pattern of open cells; `linear` is empty where the noise is not plain.
    """

    precision: Floats
    pattern: Ints
    linear: Floats


class DrawLimits(NamedTuple):
    """Which cells are unknown, and between which limits their states lie (empty: none)."""

    unknown: Bools
    lower: Floats
    upper: Floats


@lean
def draw_categories(
    layout: Layout,
    values: Values,
    state: Floats,
    unknown: Bools,
    what: tuple[int, Floats, Ints, Floats],
    rng: np.random.Generator,
) -> None:
    """Draw an unknown category of every record by enumeration: `what` is its variable, table, equations and room."""
    j, table, equations, logs = what
    for i in range(len(state)):
        if not unknown[i, j]:
            continue
        row = state[i]
        for k in range(len(logs)):
            logs[k] = table[i, k]
            if logs[k] > -np.inf:
                row[j] = k
                for e in equations:
                    logs[k] += record_log(layout, values, e, i, row)
        row[j] = categorical_from_logs(rng, logs)


@lean
def augment(
    layout: Layout,
    values: Values,
    e: int,
    state: Floats,
    pseudo: tuple[Floats, Floats],
    rng: np.random.Generator,
) -> None:
    """Draw what makes an equation gaussian: utilities (Albert and Chib 1993), or Polya-Gamma weights (2013)."""
    targets, weights = pseudo
    family = layout.family[e]
    for i in range(len(state)):
        row = state[i]
        if not applies(layout, e, i, row):
            weights[i] = 0.0
            continue
        y, eta = row[layout.response[e]], predictor(layout, values, e, i, row)
        weights[i] = 1.0
        if family == PROBIT:
            ahead = y == layout.stick[e] if layout.stick[e] >= 0 else y > 0.5
            low, high = (0.0, np.inf) if ahead else (-np.inf, 0.0)
            targets[i] = truncated_normal(rng, eta, 1.0, low, high)
        elif family == ORDERED:
            code = int(y)
            low = values.cuts[code - 1] if code > 0 else -np.inf
            high = values.cuts[code] if code < len(values.cuts) else np.inf
            targets[i] = truncated_normal(rng, eta, 1.0, low, high)
        elif family == LOGIT:
            weights[i] = polya_gamma(rng, 1.0, eta)
            targets[i] = (y - 0.5) / weights[i]


@lean
def draw_numbers(
    layout: Layout,
    values: Values,
    state: Floats,
    limits: DrawLimits,
    block: ResponseBlock,
    noise: Any,
    plain: PlainNumbers,
    pseudo: tuple[Floats, Floats],
    room: RecordRoom,
    rng: np.random.Generator,
) -> int:
    """Draw the unknown numbers of a block for every record; return how many evaluations slices took."""
    size, total, here = len(block.variables), 0, room.here
    for i in range(len(state)):
        count = 0
        for a in range(size):
            if limits.unknown[i, block.variables[a]]:
                here[count] = a
                count += 1
        if count == 0:
            continue
        mine = here[:count]
        if len(plain.linear) > 0:
            _take(
                block,
                mine,
                limits.unknown[i],
                plain.precision[plain.pattern[i]],
                plain.linear[i],
                state[i],
                room,
            )
        else:
            reference(noise, i, room.noised, room.noised_linear)
            _take(block, mine, limits.unknown[i], room.noised, room.noised_linear, state[i], room)
        _add_equations(layout, values, state[i], i, block, limits.unknown[i], pseudo, mine, room)
        factorise(room.precision, count)
        solve(room.precision, room.linear, count)
        if len(block.other) == 0 and not block.spread:
            _normal(state[i], i, block, limits, mine, room, rng)
        else:
            total += _slice(layout, values, state[i], i, block, limits, noise, mine, room, rng)
    return total


class RecordRoom(NamedTuple):
    """Working space of one record: precision (then its root), linear part (then the mean), and vectors."""

    precision: Floats
    linear: Floats
    slopes: Floats
    step: Floats
    other: Floats
    row: Floats
    noised: Floats
    noised_linear: Floats
    here: Ints


def room_for(block: ResponseBlock, variables: int) -> RecordRoom:
    """Make the working space of a block."""
    size, noised = len(block.variables), len(block.columns)
    vectors = np.empty(size), np.empty(size), np.empty(size), np.empty(size)
    noise = np.zeros((noised, noised)), np.zeros(noised)
    return RecordRoom(np.empty((size, size)), *vectors, np.empty(variables), *noise, np.empty(size, np.int64))


@inline_lean
def _take(
    block: ResponseBlock,
    mine: Ints,
    unknown: Bools,
    precision: Floats,
    linear: Floats,
    row: Floats,
    room: RecordRoom,
) -> None:
    """Take the noise's normal part of the numbers to be drawn, given the other numbers that share its noise."""
    for a in range(len(mine)):
        first = block.among[mine[a]]
        room.linear[a] = linear[first]
        for k in range(len(block.columns)):
            j = block.columns[k]
            if block.inside[j] < 0 or not unknown[j]:
                room.linear[a] -= precision[first, k] * row[j]
        for b in range(a + 1):
            room.precision[a, b] = precision[first, block.among[mine[b]]]


@inline_lean
def _add_equations(
    layout: Layout,
    values: Values,
    row: Floats,
    i: int,
    block: ResponseBlock,
    unknown: Bools,
    pseudo: tuple[Floats, Floats],
    mine: Ints,
    room: RecordRoom,
) -> None:
    """Add what the linear gaussian equations say about the numbers of a record."""
    slopes, slot = room.slopes, room.other  # slot: place in `mine` of each member of the block
    for a in range(len(block.variables)):
        slot[a] = -1.0
    for a in range(len(mine)):
        slot[mine[a]] = a
    for e in block.exact:
        if not applies(layout, e, i, row):
            continue
        weight, rest = _residual(layout, values, e, i, row, block, unknown, pseudo, slopes[: len(mine)], slot)
        for a in range(len(mine)):
            scaled = weight * slopes[a]
            if scaled != 0.0:
                room.linear[a] -= scaled * rest
                for b in range(a + 1):
                    room.precision[a, b] += scaled * slopes[b]


@inline_lean
def _residual(
    layout: Layout,
    values: Values,
    e: int,
    i: int,
    row: Floats,
    block: ResponseBlock,
    unknown: Bools,
    pseudo: tuple[Floats, Floats],
    slopes: Floats,
    slot: Floats,
) -> tuple[float, float]:
    """Write an equation's residual as rest + slopes' numbers; return its weight and the rest."""
    interest = e == len(layout.family) - 1
    for a in range(len(slopes)):
        slopes[a] = 0.0
    weight = values.precision[e]
    rest = -layout.offset[i] if interest and len(layout.offset) > 0 else 0.0
    answer = layout.response[e]
    if layout.family[e] != GAUSSIAN:
        weight = pseudo[1][i]
        rest += pseudo[0][i]
    elif block.inside[answer] >= 0 and unknown[answer]:
        slopes[int(slot[block.inside[answer]])] += 1.0
    else:
        rest += row[answer]
    for c in range(layout.begin[e], layout.begin[e + 1]):
        value = coefficient(layout, values, c, i) * layout.clean[i, layout.source[c]]
        number = block.number[c]
        if number < 0 or not unknown[number]:
            rest -= value * program_value(layout.programs, c, row)
        elif layout.programs.kind[c] == 1:
            slopes[int(slot[block.inside[number]])] -= value
        else:  # affine: two values give intercept and slope
            kept = row[number]
            row[number] = 0.0
            at_zero = program_value(layout.programs, c, row)
            row[number] = 1.0
            slope = program_value(layout.programs, c, row) - at_zero
            row[number] = kept
            rest -= value * at_zero
            slopes[int(slot[block.inside[number]])] -= value * slope
    return weight, rest


@inline_lean
def _normal(
    row: Floats,
    i: int,
    block: ResponseBlock,
    limits: DrawLimits,
    mine: Ints,
    room: RecordRoom,
    rng: np.random.Generator,
) -> None:
    """Draw from the normal conditional; where limits bind, one coordinate after the other."""
    size = len(mine)
    if len(limits.lower) > 0 and _has_limits(i, block, limits, mine):
        _within(row, i, block, limits, mine, room, rng)
        return
    for a in range(size):
        room.step[a] = rng.standard_normal()
    back(room.precision, room.step, size)
    for a in range(size):
        row[block.variables[mine[a]]] = room.linear[a] + room.step[a]


@inline_lean
def _has_limits(i: int, block: ResponseBlock, limits: DrawLimits, mine: Ints) -> bool:
    for a in mine:
        j = block.variables[a]
        if limits.lower[i, j] > -np.inf or limits.upper[i, j] < np.inf:
            return True
    return False


@inner
def _within(
    row: Floats,
    i: int,
    block: ResponseBlock,
    limits: DrawLimits,
    mine: Ints,
    room: RecordRoom,
    rng: np.random.Generator,
) -> None:
    """Draw each coordinate from its truncated normal given the others."""
    size, root = len(mine), room.precision
    for a in range(size):
        own, pull = 0.0, 0.0
        for k in range(a + 1):
            own += root[a, k] * root[a, k]
        for b in range(size):
            if b != a:
                cross = 0.0
                for k in range(min(a, b) + 1):
                    cross += root[a, k] * root[b, k]
                pull += cross * (row[block.variables[mine[b]]] - room.linear[b])
        j = block.variables[mine[a]]
        mean = room.linear[a] - pull / own
        row[j] = truncated_normal(rng, mean, 1.0 / sqrt(own), limits.lower[i, j], limits.upper[i, j])


@inner
def _slice(
    layout: Layout,
    values: Values,
    row: Floats,
    i: int,
    block: ResponseBlock,
    limits: DrawLimits,
    noise: Any,
    mine: Ints,
    room: RecordRoom,
    rng: np.random.Generator,
) -> int:
    """Draw by an elliptical slice (Murray, Adams and MacKay 2010): the normal part is its prior."""
    size = len(mine)
    for a in range(size):
        room.step[a] = rng.standard_normal()
        room.other[a] = row[block.variables[mine[a]]] - room.linear[a]
    back(room.precision, room.step, size)
    for j in range(len(row)):
        room.row[j] = row[j]
    height = _rest_log(layout, values, row, i, block, limits, noise, mine, room) + log(rng.random())
    angle = 2.0 * pi * rng.random()
    low, high = angle - 2.0 * pi, angle
    for tried in range(1, MOST_SHRINKS + 1):
        for a in range(size):
            j = block.variables[mine[a]]
            row[j] = room.linear[a] + room.other[a] * cos(angle) + room.step[a] * sin(angle)
        if _rest_log(layout, values, row, i, block, limits, noise, mine, room) > height:
            return tried
        if angle < 0.0:
            low = angle
        else:
            high = angle
        angle = low + (high - low) * rng.random()
    for j in range(len(row)):
        row[j] = room.row[j]
    return MOST_SHRINKS


@inner
def _rest_log(
    layout: Layout,
    values: Values,
    row: Floats,
    i: int,
    block: ResponseBlock,
    limits: DrawLimits,
    noise: Any,
    mine: Ints,
    room: RecordRoom,
) -> float:
    """Return the log of what the normal part leaves out: other equations, noise that depends on the value, limits."""
    total = 0.0
    if len(limits.lower) > 0:
        for a in mine:
            j = block.variables[a]
            if not limits.lower[i, j] <= row[j] <= limits.upper[i, j]:
                return -np.inf
    for e in block.other:
        total += record_log(layout, values, e, i, row)
    if block.spread:
        total += noise_log(noise, block.columns, i, row) - _reference_log(room, block.columns, row)
    return total if total == total else -np.inf


@inner
def _reference_log(room: RecordRoom, columns: Ints, row: Floats) -> float:
    """Return the log of the noise's normal part, which the slice has as its prior."""
    total = 0.0
    for a in range(len(columns)):
        pull = 0.0
        for b in range(len(columns)):
            pull += room.noised[a, b] * row[columns[b]]
        total += row[columns[a]] * (room.noised_linear[a] - 0.5 * pull)
    return total

"""Levels of the category of linear gaussian systems, drawn with the numbers integrated out; what a sweep works in.

Given its code k and group g, the numbers t of a record are normal: root' t = H v + c[g, k] + z, where v are its fixed
values (known columns and the linear part of the noise, less their means in the group), H and c come from the
parameters, and z is standard normal. So the log weights of the levels, with t integrated out, are linear in v: own
derivation, a linear discriminant (Anderson 2003, chapter 6), since the precision of t is the same at all levels.
"""

from __future__ import annotations

from math import exp
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from . import announce
from .cholesky import factorise
from .gibbs_intercepts import JointIntercepts, joint_of
from .programs import inline_lean, inner

announce(__file__)

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

STEPS, END = 16.0, 16.0  # of the grid of the logistic function: points for 1, and where it ends
LEAST = -400.0  # log chance of a level, so that products of chances and weights stay numbers


def _grid() -> Floats:
    """Return the logistic function at the points of a grid, between 0 and 1."""
    points = np.arange(-END * STEPS, END * STEPS + 1) / STEPS
    return np.concatenate([[0.0], 1.0 / (1.0 + np.exp(-points)), [1.0]])


GRID = _grid()
LAST = float(len(GRID) - 2)  # the last cell of the grid


class LinearRecords(NamedTuple):
    """The records by pattern: those of pattern p from `begin[p]`. Only the codes change.

    `fixed` less the means of the group (`centre`); `gram` is their sum of products. `table` has the log chances of
    what was released given the levels; with two levels, only its log odds of the second.
    """

    fixed: Floats
    code: Ints
    group: Ints
    begin: Ints
    table: Floats
    centre: Floats
    gram: Floats
    noise_precision: Floats


class LinearShape(NamedTuple):
    """Where things are: numbers and levels in the basis, and the columns and responses of the gaussian equations.

    `level[k]` is the place of level k (-1: none); `columns[e, :width[e]]` are places; `known` are the places of what
    never changes, but for the 1 at place 0; `grouped` says whether groups have effects; `repeats` how often values and
    gaussian equations are drawn in a sweep.
    """

    number: Ints
    level: Ints
    known: Ints
    response: Ints
    width: Ints
    columns: Ints
    grouped: bool
    repeats: int


class LinearParameters(NamedTuple):
    """Of each gaussian equation: coefficients, precision, effects of the groups and their variance."""

    coefficients: Floats
    precision: Floats
    effects: Floats
    variance: Floats


class Sweep(NamedTuple):
    """Working space. `first` are sums of the basis by group and `second` sums of its products, where row >= column.

    Kept up to date with the codes: `counts` by pattern and level, `size` and `sums` of the fixed values by group and
    level. From the parameters: residual `slopes` of the equations, `root` of the numbers' precision, `lead` (H),
    `half` (c of a group and level 0) and `jump` (c of a level less that of level 0), log weights of levels by fixed
    value (`tilt`), group (`lift`) and pattern (`chance`), and weights by record;
    `changed` lists records and their new codes.
    """

    first: Floats
    second: Floats
    counts: Floats
    size: Floats
    sums: Floats
    slopes: Floats
    root: Floats
    lead: Floats
    half: Floats
    jump: Floats
    tilt: Floats
    lift: Floats
    chance: Floats
    weight: Floats
    changed: Ints
    logs: Floats
    left: Floats
    column: Floats
    best: Floats
    joint: JointIntercepts


def room_of(records: LinearRecords, shape: LinearShape, values: Floats, width: int) -> Sweep:
    """Make the working space, with what does not change of the sums, and the counts and sums of the codes now.

    `values` are those of the basis; no equation has more than `width` columns.
    """
    equations, places, fixed = len(shape.response), values.shape[1], records.fixed.shape[1]
    numbers, levels, groups, patterns = (
        len(shape.number),
        len(shape.level),
        len(records.centre),
        len(records.begin) - 1,
    )
    first, counts = np.zeros((groups, places)), np.zeros((patterns, levels))
    size, sums = np.zeros((groups, levels)), np.zeros((groups, levels, fixed))
    np.add.at(first, records.group, values)
    np.add.at(counts, (np.repeat(np.arange(patterns), np.diff(records.begin)), records.code), 1.0)
    np.add.at(size, (records.group, records.code), 1.0)
    np.add.at(sums, (records.group, records.code), records.fixed)
    return Sweep(
        first,
        values.T @ values,
        counts,
        size,
        sums,
        np.zeros((equations, places)),
        np.zeros((numbers, numbers)),
        np.zeros((numbers, fixed)),
        np.zeros((groups, numbers)),
        np.zeros((levels, numbers)),
        np.zeros((levels, fixed)),
        np.zeros((groups, levels)),
        np.zeros((patterns, levels)),
        np.zeros((len(values) if levels > 1 else 0, levels)),
        np.zeros((len(values) + 1, 2), np.int64),
        np.zeros((2, levels)),
        np.zeros((fixed, fixed)),
        np.zeros(numbers),
        np.zeros(places),
        joint_of(width, groups),
    )


@inner
def prepare(records: LinearRecords, shape: LinearShape, parameters: LinearParameters, room: Sweep) -> None:
    """Fill what the draws of unknown values take from the parameters."""
    _fill_slopes(shape, parameters, room)
    size, known = len(shape.number), len(shape.known)
    room.lead[:] = 0.0
    for a in range(size):
        room.lead[a, known + a] = 1.0
        for b in range(a + 1):
            room.root[a, b] = records.noise_precision[a, b]
        for e in range(len(shape.response)):
            weighted = parameters.precision[e] * room.slopes[e, shape.number[a]]
            for b in range(a + 1):
                room.root[a, b] += weighted * room.slopes[e, shape.number[b]]
            for j in range(known):
                room.lead[a, j] -= weighted * room.slopes[e, shape.known[j]]
    factorise(room.root, size)
    for a in range(size):
        for j in range(room.lead.shape[1]):
            for b in range(a):
                room.lead[a, j] -= room.root[a, b] * room.lead[b, j]
            room.lead[a, j] /= room.root[a, a]
    _fill_levels(shape, parameters, room)
    for g in range(len(room.half)):
        _fill_group(records, shape, parameters, g, room)


@inline_lean
def _fill_slopes(shape: LinearShape, parameters: LinearParameters, room: Sweep) -> None:
    room.slopes[:] = 0.0
    for e in range(len(shape.response)):
        room.slopes[e, shape.response[e]] += 1.0
        for c in range(shape.width[e]):
            room.slopes[e, shape.columns[e, c]] -= parameters.coefficients[e, c]


@inline_lean
def _step(shape: LinearShape, room: Sweep, e: int, k: int) -> float:
    """Return by how much a residual changes from level 0 to k."""
    step = room.slopes[e, shape.level[k]] if shape.level[k] >= 0 else 0.0
    if shape.level[0] >= 0:
        step -= room.slopes[e, shape.level[0]]
    return float(step)


@inline_lean
def _forward(root: Floats, vector: Floats) -> None:
    for a in range(len(vector)):
        for b in range(a):
            vector[a] -= root[a, b] * vector[b]
        vector[a] /= root[a, a]


@inline_lean
def _fill_levels(shape: LinearShape, parameters: LinearParameters, room: Sweep) -> None:
    """Fill what a level adds to the numbers, and its log weight by fixed value, both from level 0."""
    room.jump[:] = 0.0
    room.tilt[:] = 0.0
    for k in range(1, len(shape.level)):
        for e in range(len(shape.response)):
            weighted = parameters.precision[e] * _step(shape, room, e, k)
            for a in range(len(shape.number)):
                room.jump[k, a] -= weighted * room.slopes[e, shape.number[a]]
            for j in range(len(shape.known)):
                room.tilt[k, j] -= weighted * room.slopes[e, shape.known[j]]
        _forward(room.root, room.jump[k])
        for j in range(room.tilt.shape[1]):
            for a in range(len(shape.number)):
                room.tilt[k, j] += room.lead[a, j] * room.jump[k, a]


@inline_lean
def _fill_group(
    records: LinearRecords, shape: LinearShape, parameters: LinearParameters, g: int, room: Sweep
) -> None:
    """Fill the middle of the numbers of a group at level 0, and the log weights of levels there, from level 0."""
    size, known = len(shape.number), len(shape.known)
    for a in range(size):
        room.half[g, a] = records.centre[g, known + a]
    room.lift[g, :] = 0.0
    for e in range(len(shape.response)):
        off = room.slopes[e, 0] - (parameters.effects[e, g] if shape.grouped else 0.0)
        for j in range(known):
            off += room.slopes[e, shape.known[j]] * records.centre[g, j]
        if shape.level[0] >= 0:
            off += room.slopes[e, shape.level[0]]
        for a in range(size):
            room.half[g, a] -= parameters.precision[e] * off * room.slopes[e, shape.number[a]]
        for k in range(1, len(shape.level)):
            step = _step(shape, room, e, k)
            room.lift[g, k] -= parameters.precision[e] * step * (off + 0.5 * step)
    _forward(room.root, room.half[g])
    for k in range(1, len(shape.level)):
        for a in range(size):
            room.lift[g, k] += room.jump[k, a] * (room.half[g, a] + 0.5 * room.jump[k, a])


@inner
def fill_weights(records: LinearRecords, patterns: Ints, room: Sweep) -> None:
    """Fill the weights of the levels of every record, numbers integrated out, but for the chances of levels.

    The largest is 1. `patterns` are the groups of patterns.
    """
    levels, logs, weight = room.chance.shape[1], room.logs[0], room.weight
    for p in range(len(patterns)):
        g = patterns[p]
        for i in range(records.begin[p], records.begin[p + 1]):
            if levels == 2:
                odds = records.table[i, 0] + room.lift[g, 1]
                for j in range(records.fixed.shape[1]):
                    odds += room.tilt[1, j] * records.fixed[i, j]
                small = exp(-abs(odds))
                weight[i, 0] = small if odds > 0.0 else 1.0
                weight[i, 1] = 1.0 if odds > 0.0 else small
            else:
                top = -np.inf
                for k in range(levels):
                    logs[k] = _level_log(records, i, k, g, room)
                    top = max(top, logs[k])
                for k in range(levels):
                    weight[i, k] = exp(logs[k] - top)


@inner
def draw_codes(records: LinearRecords, patterns: Ints, room: Sweep, rng: np.random.Generator) -> None:
    """Draw the category of every record with the numbers integrated out; `patterns` are the groups of patterns."""
    levels, logs = room.chance.shape[1], room.logs[0]
    for p in range(len(patterns)):
        g, many, base = patterns[p], 0, 0.0
        if levels == 2:
            base = room.chance[p, 1] - room.chance[p, 0] + room.lift[g, 1]
        for i in range(records.begin[p], records.begin[p + 1]):
            if levels == 2:
                odds = records.table[i, 0] + base
                for j in range(records.fixed.shape[1]):
                    odds += room.tilt[1, j] * records.fixed[i, j]
                code = int(_happens(odds, rng.random()))
            else:
                for k in range(levels):
                    logs[k] = _level_log(records, i, k, g, room) + room.chance[p, k]
                code = _pick(logs, rng)
            # Changes come as no branch can foresee, so that they are listed without one.
            room.changed[many, 0] = i
            room.changed[many, 1] = code
            many += int(code != records.code[i])
        for m in range(many):
            _recode(records, room.changed[m, 0], room.changed[m, 1], p, g, room)


@inline_lean
def _level_log(records: LinearRecords, i: int, k: int, g: int, room: Sweep) -> float:
    """Return the log weight of one of three or more levels, but for its chance."""
    fit = records.table[i, k] + room.lift[g, k]
    for j in range(records.fixed.shape[1]):
        fit += room.tilt[k, j] * records.fixed[i, j]
    return float(fit)


@inline_lean
def _happens(odds: float, uniform: float) -> bool:
    """Whether a uniform is below the chance of these log odds; mostly the nearest points of a grid tell."""
    at = (odds + END) * STEPS + 1.0
    at = at if at > 0.0 else 0.0
    cell = int(at if at < LAST else LAST)
    below = uniform < GRID[cell]
    if below == (uniform < GRID[cell + 1]):
        return bool(below)
    return bool(uniform * (1.0 + exp(-odds)) < 1.0)


@inline_lean
def _recode(records: LinearRecords, i: int, code: int, p: int, g: int, room: Sweep) -> None:
    """Give a record another code, and keep the counts and sums up to date."""
    old = records.code[i]
    records.code[i] = code
    room.counts[p, old] -= 1.0
    room.counts[p, code] += 1.0
    room.size[g, old] -= 1.0
    room.size[g, code] += 1.0
    for j in range(records.fixed.shape[1]):
        room.sums[g, old, j] -= records.fixed[i, j]
        room.sums[g, code, j] += records.fixed[i, j]


@inner
def _pick(logs: Floats, rng: np.random.Generator) -> int:
    total, top = 0.0, -np.inf
    for k in range(len(logs)):
        top = max(top, logs[k])
    for k in range(len(logs)):
        logs[k] = exp(logs[k] - top)
        total += logs[k]
    left = rng.random() * total
    for k in range(len(logs)):
        left -= logs[k]
        if left < 0.0:
            return k
    return len(logs) - 1

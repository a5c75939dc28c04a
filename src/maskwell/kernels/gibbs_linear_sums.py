"""Sums of products of the unknown values of linear gaussian systems, drawn without the values.

The sums that the parameters need are those of the fixed values v of the records and of the normals z of their numbers
(see `gibbs_linear_levels`). Those of v do not change in all, and by cell (group and level) are kept up to date with the
codes. Those of z have a known law given v: by cell the sum of z is normal, with as many variances as records; within
cells z'v is normal, with covariance v'v, and what v leaves of z'z is Wishart, drawn by Bartlett's root (Anderson 2003,
section 7.2). Own derivation: a draw needs normals for each cell and each fixed value, not for each record.
"""

from __future__ import annotations

from math import sqrt

import numpy as np
import numpy.typing as npt

from . import announce
from .cholesky import back
from .gibbs_linear_levels import LinearRecords, LinearShape, Sweep
from .programs import inline_lean, inner

announce(__file__)

Floats = npt.NDArray[np.float64]

NO_SPREAD = 1e-12  # of a fixed value's own sum of squares: less than this is left of it by rounding


@inner
def draw_sums(records: LinearRecords, shape: LinearShape, room: Sweep, rng: np.random.Generator) -> None:
    """Draw the sums of products that involve unknown values, given the codes."""
    _clear(shape, room)
    spare = 0
    for g in range(len(room.first)):
        for k in range(len(shape.level)):
            if room.size[g, k] > 0.0:
                spare += int(room.size[g, k]) - 1
                _draw_cell(records, shape, g, k, room, rng)
    _spread_within(records, room)
    for j in range(len(room.left)):
        if room.left[j, j] > 0.0:
            spare -= 1
            _draw_along(shape, j, room, rng)
    for b in range(min(len(shape.number), spare)):  # Bartlett's root of a Wishart matrix, by columns
        for a in range(b):
            room.column[a] = 0.0
        room.column[b] = sqrt(2.0 * rng.standard_gamma(0.5 * (spare - b)))
        for a in range(b + 1, len(shape.number)):
            room.column[a] = rng.standard_normal()
        back(room.root, room.column, len(shape.number))
        _add_numbers(shape, 1.0, room)


@inline_lean
def _add(second: Floats, a: int, b: int, value: float) -> None:
    if a >= b:
        second[a, b] += value
    else:
        second[b, a] += value


@inline_lean
def _clear(shape: LinearShape, room: Sweep) -> None:
    """Forget the sums of unknown values."""
    for places in (shape.number, shape.level):
        for place in places:
            if place >= 0:
                for g in range(len(room.first)):
                    room.first[g, place] = 0.0
                for b in range(len(room.second)):
                    room.second[max(place, b), min(place, b)] = 0.0


@inline_lean
def _add_numbers(shape: LinearShape, share: float, room: Sweep) -> None:
    """Add products of the numbers in `column` with each other."""
    for a in range(len(shape.number)):
        for b in range(a + 1):
            _add(room.second, shape.number[a], shape.number[b], share * room.column[a] * room.column[b])


@inline_lean
def _draw_cell(
    records: LinearRecords, shape: LinearShape, g: int, k: int, room: Sweep, rng: np.random.Generator
) -> None:
    """Draw the sums of numbers of a cell, and add its products as if all its records had its means."""
    count, level, size = room.size[g, k], shape.level[k], len(shape.number)
    for a in range(size):
        total = count * (room.half[g, a] + room.jump[k, a]) + sqrt(count) * rng.standard_normal()
        for j in range(room.lead.shape[1]):
            total += room.lead[a, j] * room.sums[g, k, j]
        room.column[a] = total
    back(room.root, room.column, size)
    _add_numbers(shape, 1.0 / count, room)
    for a in range(size):
        place, total = shape.number[a], room.column[a]
        room.first[g, place] += total
        room.second[place, 0] += total
        if level >= 0:
            _add(room.second, place, level, total)
        for j in range(len(shape.known)):
            mean = room.sums[g, k, j] / count + records.centre[g, j]
            _add(room.second, place, shape.known[j], total * mean)
    if level >= 0:
        room.first[g, level] = count
        room.second[level, 0] += count
        room.second[level, level] += count
        for j in range(len(shape.known)):
            total = room.sums[g, k, j] + count * records.centre[g, j]
            _add(room.second, level, shape.known[j], total)


@inline_lean
def _spread_within(records: LinearRecords, room: Sweep) -> None:
    """Leave a root of the fixed values' sum of products within cells; columns of 0 where others tell a value."""
    width = len(room.left)
    for a in range(width):
        for b in range(a + 1):
            room.left[a, b] = records.gram[a, b]
    for g in range(len(room.size)):
        for k in range(room.size.shape[1]):
            if room.size[g, k] > 0.0:
                share = 1.0 / room.size[g, k]
                for a in range(width):
                    for b in range(a + 1):
                        room.left[a, b] -= share * room.sums[g, k, a] * room.sums[g, k, b]
    for b in range(width):
        for a in range(b, width):
            for c in range(b):
                room.left[a, b] -= room.left[a, c] * room.left[b, c]
        alone = room.left[b, b] > NO_SPREAD * records.gram[b, b]
        scale = 1.0 / sqrt(room.left[b, b]) if alone else 0.0
        for a in range(b, width):
            room.left[a, b] *= scale


@inline_lean
def _draw_along(shape: LinearShape, j: int, room: Sweep, rng: np.random.Generator) -> None:
    """Draw the numbers along column j of the fixed values' root within cells; add their products."""
    size = len(shape.number)
    for a in range(size):
        total = rng.standard_normal()
        for i in range(j, len(room.left)):
            total += room.lead[a, i] * room.left[i, j]
        room.column[a] = total
    back(room.root, room.column, size)
    _add_numbers(shape, 1.0, room)
    for a in range(size):
        for i in range(j, len(shape.known)):
            _add(room.second, shape.number[a], shape.known[i], room.column[a] * room.left[i, j])


@inner
def put_numbers(
    records: LinearRecords, shape: LinearShape, room: Sweep, numbers: Floats, rng: np.random.Generator
) -> None:
    """Draw the numbers of every record given its code."""
    size = len(shape.number)
    for i in range(len(numbers)):
        g, k = records.group[i], records.code[i]
        for a in range(size):
            numbers[i, a] = room.half[g, a] + room.jump[k, a] + rng.standard_normal()
            for j in range(room.lead.shape[1]):
                numbers[i, a] += room.lead[a, j] * records.fixed[i, j]
        back(room.root, numbers[i], size)

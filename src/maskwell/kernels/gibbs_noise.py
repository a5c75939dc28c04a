"""The noise on unknown numbers inside a sampler: its density given the state, and what is redrawn given it.

`arrays` is `analysis.noise.arrays`: u = slope t + offset - correction + s(t) e, e ~ Normal(shift, P^-1),
P = M' diag(weight) M. Given the state t, `refresh` redraws everything that makes e normal: noised values behind limits
and units, components of mixtures, scales of Laplace noise (inverse Gaussian, Park and Casella 2008), lognormal biases
(by slices, Neal 2003), and which records were swapped. Used by every Gibbs sweep whose noise is not plain normal.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from . import announce
from .densities import log_bias_lognormal
from .programs import inner_with_allocation
from .random import categorical_from_logs, inverse_gaussian, truncated_normal

announce(__file__)

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]
PLAIN, STEP, POWER, BIAS, SKEWED = range(5)  # as in analysis.noise.arrays
NOTHING, NORMAL, LAPLACE, THETA = range(4)  # what is drawn for each cell, as in analysis.noise.arrays
HEAVIEST = 1e14  # times the typical weight: a Laplace draw nearer to 0 than its double can say
STEPS = 40  # the most a slice is widened on a side


class Work(NamedTuple):
    """Of all records: the states of the unknown numbers, and centre, size and value of their noise there."""

    t: Floats
    centre: Floats
    size: Floats
    noise: Floats


# --- the size of the noise ---------------------------------------------------------------------------------


@njit(cache=True, nogil=True, error_model="numpy")
def spread_at(sizes: Any, j: int, t: float) -> float:
    """Return s(t): the factor of the noise of column j at a state."""
    kind = sizes.spread_kind[j]
    if kind in (PLAIN, SKEWED):
        return 1.0
    x = t if math.isnan(sizes.log_shift[j]) else math.exp(t) - sizes.log_shift[j]
    params = sizes.spread_params[j]
    if kind == POWER:
        return float(max(abs(x), params[1]) ** params[0])
    if kind == BIAS:
        return math.hypot(params[1], params[0] * x)
    count, step = int(params[0]), 0
    while step < count and x >= params[1 + step]:
        step += 1
    return float(params[1 + count + step])


@njit(cache=True, nogil=True, error_model="numpy")
def correction_at(sizes: Any, j: int, s: float) -> float:
    """Return log E exp(s e): what is taken off the centre where noise on the log scale is to keep the mean.

    Where the size of the noise does not depend on the value this is a part of the offset.
    """
    if sizes.spread_kind[j] == PLAIN:
        return 0.0
    if sizes.laplace_correction[j] > 0.0:
        inside = s * s * sizes.laplace_correction[j]
        return -math.log1p(-inside) if inside < 1.0 else math.inf
    total = 0.0
    for unit in range(sizes.correction.shape[1]):
        top, summed = -math.inf, 0.0
        for log_weight, mean, variance in sizes.correction[j, unit]:
            top = max(top, log_weight + s * mean + 0.5 * s * s * variance)
        for log_weight, mean, variance in sizes.correction[j, unit]:
            summed += math.exp(log_weight + s * mean + 0.5 * s * s * variance - top)
        total += top + math.log(summed)
    return total


# --- given the state ---------------------------------------------------------------------------------------


@njit(cache=True, nogil=True, error_model="numpy")
def noise_log(arrays: Any, columns: Ints, i: int, row: Floats) -> float:
    """Return the log density of the noised values of record i at a state, up to what does not depend on it."""
    q, pattern, sizes, total = len(columns), arrays.pattern[i], arrays.sizes, 0.0
    for j in range(q):
        kind = sizes.spread_kind[j]
        if kind == PLAIN or not arrays.is_open[pattern, j] or (arrays.swapped[i] and arrays.far.moved[j]):
            continue
        t = row[columns[j]]
        if kind == SKEWED:
            total += log_bias_lognormal(
                arrays.u[i, j], t, sizes.spread_params[j, 0], sizes.spread_params[j, 1]
            )
            continue
        s = spread_at(sizes, j, t)
        if s <= 0.0:
            return -math.inf
        total -= math.log(s)
    for r in range(q):
        if arrays.weight[i, r] > 0.0:
            v = 0.0
            for j in range(q):
                if arrays.turn[pattern, r, j] == 0.0:
                    continue
                t, s, correction = row[columns[j]], 1.0, 0.0
                if sizes.spread_kind[j] != PLAIN:
                    s = spread_at(sizes, j, t)
                    correction = correction_at(sizes, j, s)
                residual = arrays.u[i, j] - arrays.slope[i, j] * t - arrays.offset[j] + correction
                v += arrays.turn[pattern, r, j] * (residual / s - arrays.shift[i, j])
            total -= 0.5 * arrays.weight[i, r] * v * v
    return total


@njit(cache=True, nogil=True, error_model="numpy")
def reference(arrays: Any, i: int, precision: Floats, linear: Floats) -> None:
    """Fill in the Gaussian in t, exp(linear't - t'precision t / 2), that the noised values of record i give.

    It is exact (up to a constant) where the size of the noise does not depend on the value; elsewhere the size is
    that at the released value.
    """
    q, pattern, sizes = len(linear), arrays.pattern[i], arrays.sizes
    for j in range(q):
        linear[j] = 0.0
        for k in range(q):
            cell = 0.0
            for r in range(q):
                cell += arrays.turn[pattern, r, j] * arrays.weight[i, r] * arrays.turn[pattern, r, k]
            if cell != 0.0:
                cell *= arrays.slope[i, j] / arrays.spread_reference[i, j]
                cell *= arrays.slope[i, k] / arrays.spread_reference[i, k]
                s = arrays.spread_reference[i, k]
                told = arrays.u[i, k] - arrays.offset[k] + correction_at(sizes, k, s) - s * arrays.shift[i, k]
                linear[j] += cell * told / arrays.slope[i, k]
            precision[j, k] = cell
        far = arrays.swapped[i] and arrays.far.moved[j]
        if sizes.spread_kind[j] == SKEWED and arrays.is_open[pattern, j] and not far:
            precision[j, j] += arrays.spread_reference[i, j] ** -2.0
            linear[j] += arrays.u[i, j] * arrays.spread_reference[i, j] ** -2.0


# --- redrawn -----------------------------------------------------------------------------------------------


@njit(cache=True, nogil=True, error_model="numpy")
def refresh(arrays: Any, state: Floats, columns: Ints, rng: np.random.Generator) -> None:
    """Redraw, in place and given the state, all that makes the noise normal.

    Step by step over all records: which were swapped, scales and biases, components, and last what is inside cells.
    """
    kinds, units = arrays.sizes.scale_kind, len(arrays.units.row)
    something = units > 0 or arrays.far.share > 0.0
    for i in range(len(state)):
        something = something or arrays.busy[i]
    for j in range(len(columns)):
        something = something or kinds[j] > NORMAL
    if not something:
        return
    shape, logs = (len(state), len(columns)), np.empty(arrays.units.logs.shape[1])
    work = Work(np.empty(shape), np.empty(shape), np.empty(shape), np.empty(shape))
    if arrays.far.share > 0.0:
        _draw_anew(arrays, rng)
        for unit in range(units):
            _draw_components(arrays, unit, work.noise, logs, np.bool_(True), rng)
    _fill(arrays, state, columns, work)
    if arrays.far.share > 0.0:
        _draw_swaps(arrays, work, rng)
    for j in range(len(columns)):
        if kinds[j] == LAPLACE:
            _draw_scales(arrays, j, work.noise, rng)
        elif kinds[j] == THETA:
            _draw_biases(arrays, j, work, rng)
    for unit in range(units):  # no literal: one function for both
        _draw_components(arrays, unit, work.noise, logs, np.bool_(False), rng)
    for j in range(len(columns)):
        if arrays.far.moved[j]:
            _silence(arrays.weight, arrays.swapped, j)
    _draw_inside(arrays, work, rng)


@inner_with_allocation
def _fill(arrays: Any, state: Floats, columns: Ints, work: Any) -> None:
    """Fill in the noise e of all cells, 0 where a cell has no law or its bias is integrated out."""
    for j in range(len(columns)):
        kind, offset = arrays.sizes.spread_kind[j], arrays.offset[j]
        for i in range(len(state)):
            t, s = state[i, columns[j]], 1.0
            centre = arrays.slope[i, j] * t + offset
            if kind != PLAIN and kind != SKEWED:
                s = spread_at(arrays.sizes, j, t)
                centre -= correction_at(arrays.sizes, j, s)
            here = kind != SKEWED and arrays.is_open[arrays.pattern[i], j]
            work.t[i, j], work.centre[i, j], work.size[i, j] = t, centre, s
            work.noise[i, j] = (arrays.u[i, j] - centre) / s if here else 0.0


@inner_with_allocation
def _draw_scales(arrays: Any, j: int, noise: Floats, rng: np.random.Generator) -> None:
    """Draw the scales of Laplace noise: 1 / variance is inverse Gaussian (Park and Casella 2008)."""
    b, moved = arrays.sizes.scale[j], arrays.far.moved[j]
    for i in range(len(noise)):
        if arrays.is_open[arrays.pattern[i], j] and not (moved and arrays.swapped[i]):
            size = abs(noise[i, j])
            mean = 1.0 / (b * size) if size > 0.0 else math.inf
            arrays.weight[i, j] = min(inverse_gaussian(rng, mean, 1.0 / (b * b)), HEAVIEST / (b * b))


@inner_with_allocation
def _draw_biases(arrays: Any, j: int, work: Any, rng: np.random.Generator) -> None:
    """Draw lognormal biases by a slice sampler on their logarithm."""
    log_sd, moved, kind = arrays.sizes.scale[j], arrays.far.moved[j], arrays.sizes.scale_kind[j]
    for i in range(len(work.t)):
        if arrays.is_open[arrays.pattern[i], j] and not (moved and arrays.swapped[i]):
            room, t = arrays.u[i, j] - arrays.offset[j], work.t[i, j]
            law = (log_sd, t, room, arrays.turn[arrays.pattern[i], j, j])
            before = math.log(arrays.slope[i, j])
            arrays.slope[i, j] = math.exp(_slice(rng, before, log_sd, (-math.inf, math.inf), kind, law))
            work.centre[i, j] = arrays.slope[i, j] * t + arrays.offset[j]
            work.noise[i, j] = arrays.u[i, j] - work.centre[i, j]


@inner_with_allocation
def _draw_components(
    arrays: Any, unit: int, noise: Floats, logs: Floats, anew: bool | np.bool_, rng: np.random.Generator
) -> None:
    """Draw the component of one unit in every record, given the noise and the other units.

    Swapped records are passed over; with `anew` they alone are drawn, from the weights of the components.
    """
    units, q, row = arrays.units, noise.shape[1], arrays.units.row[unit]
    for i in range(len(noise)):
        pattern, now = arrays.pattern[i], arrays.component[i, unit]
        if (arrays.swapped[i] and units.is_moved[unit]) != anew:
            continue
        for k in range(len(logs)):
            logs[k] = units.logs[unit, k] if anew else units.peaks[unit, k]
        for r in range(q):
            if anew or (row >= 0 and (r != row or not arrays.is_open[pattern, r])):
                continue
            v = 0.0
            for j in range(q):
                e = noise[i, j] if row >= 0 else noise[i, j] - arrays.shift[i, j] + units.shift[unit, now, j]
                v += arrays.turn[pattern, r, j] * e
            for k in range(len(logs)):
                z, weight = v - units.means[unit, k], arrays.weight[i, r]
                if row >= 0:
                    weight = units.precisions[unit, k]
                else:
                    for j in range(q):
                        z -= arrays.turn[pattern, r, j] * units.shift[unit, k, j]
                logs[k] -= 0.5 * weight * z * z
        chosen = categorical_from_logs(rng, logs)
        arrays.component[i, unit] = chosen
        for j in range(q):
            arrays.shift[i, j] += units.shift[unit, chosen, j] - units.shift[unit, now, j]
        if row >= 0:
            arrays.weight[i, row] = units.precisions[unit, chosen]


# --- inside cells ------------------------------------------------------------------------------------------


@inner_with_allocation
def _draw_inside(arrays: Any, work: Any, rng: np.random.Generator) -> None:
    """Draw the noised values that are only known to lie in a cell, each given the noise of the other columns."""
    sizes = arrays.sizes
    known = (arrays.turn, arrays.weight, arrays.shift, work.noise)
    for i in range(len(work.t)):
        if not arrays.busy[i]:
            continue
        for j in range(work.t.shape[1]):
            if not arrays.interval[i, j] or not arrays.is_open[arrays.pattern[i], j]:
                continue
            lower, upper = arrays.cell_lower[i, j], arrays.cell_upper[i, j]
            if arrays.swapped[i] and arrays.far.moved[j]:
                mean, sd = _far_given_others(arrays.far, arrays.u, i, j)
                u = truncated_normal(rng, mean, sd, lower, upper)
            elif sizes.spread_kind[j] == SKEWED:
                phi, sd, t = sizes.spread_params[j, 0], sizes.spread_params[j, 1], work.t[i, j]
                width = math.hypot(sd, phi * t)
                kind = sizes.scale_kind[j]
                u = _slice(rng, arrays.u[i, j], width, (lower, upper), kind, (phi, t, sd, 0.0))
            else:
                mean, sd = _given_others(known, arrays.pattern[i], i, j)
                mean, sd = work.centre[i, j] + work.size[i, j] * mean, work.size[i, j] * sd
                u = truncated_normal(rng, mean, sd, lower, upper)
                work.noise[i, j] = (u - work.centre[i, j]) / work.size[i, j]
            arrays.u[i, j] = min(max(u, lower), upper)


@inner_with_allocation
def _given_others(known: Any, pattern: int, i: int, j: int) -> tuple[float, float]:
    """Return mean and sd of the noise of one column given that of the others."""
    turn, weight, shift, noise = known
    precision, cross, q = 0.0, 0.0, noise.shape[1]
    for r in range(q):
        own = turn[pattern, r, j]
        if own == 0.0:
            continue
        rest = 0.0
        for k in range(q):
            if k != j:
                rest += turn[pattern, r, k] * (noise[i, k] - shift[i, k])
        precision += weight[i, r] * own * own
        cross += weight[i, r] * own * rest
    return shift[i, j] - cross / precision, 1.0 / math.sqrt(precision)


@inner_with_allocation
def _slice(
    rng: np.random.Generator,
    x: float,
    width: float,
    ends: tuple[float, float],
    kind: int,
    law: tuple[float, float, float, float],
) -> float:
    """Return the next value of a slice sampler on an interval (Neal 2003, stepping out and shrinking)."""
    lower, upper = ends
    level = _log_target(kind, x, law) - rng.standard_exponential()
    left = max(x - width * rng.random(), lower)
    right = min(left + width, upper)
    for _ in range(STEPS):
        if left <= lower or _log_target(kind, left, law) <= level:
            break
        left = max(left - width, lower)
    for _ in range(STEPS):
        if right >= upper or _log_target(kind, right, law) <= level:
            break
        right = min(right + width, upper)
    while right > left:
        drawn = left + (right - left) * rng.random()
        if _log_target(kind, drawn, law) > level:
            return drawn
        if drawn < x:
            left = drawn
        elif drawn > x:
            right = drawn
        else:
            break
    return x


@inner_with_allocation
def _log_target(kind: int, x: float, law: tuple[float, float, float, float]) -> float:
    """Return the log density of a log bias given the noise (THETA), or of a value under bias and noise."""
    if kind == THETA:
        log_sd, t, room, root = law
        z, e = x / log_sd + 0.5 * log_sd, root * (room - t * math.exp(min(x, 600.0)))
        return -0.5 * (z * z + e * e)
    phi, t, sd, _ = law
    return float(log_bias_lognormal(x, t, phi, sd))


# --- swapped records ---------------------------------------------------------------------------------------


@inner_with_allocation
def _draw_anew(arrays: Any, rng: np.random.Generator) -> None:
    """Draw what the noise of swapped records would have been: scales and biases from their own laws."""
    sizes = arrays.sizes
    for j in range(arrays.u.shape[1]):
        kind, size = sizes.scale_kind[j], sizes.scale[j]
        for i in range(len(arrays.u)):
            if arrays.swapped[i] and arrays.far.moved[j]:
                arrays.weight[i, j] = 1.0
                if kind == LAPLACE:
                    drawn = max(rng.standard_exponential(), 1.0 / HEAVIEST)
                    arrays.weight[i, j] = 1.0 / (2.0 * size * size * drawn)
                elif kind == THETA:
                    arrays.slope[i, j] = math.exp(size * rng.standard_normal() - 0.5 * size * size)


@inner_with_allocation
def _draw_swaps(arrays: Any, work: Any, rng: np.random.Generator) -> None:
    """Draw which records were swapped, given what their noise would be if they were not."""
    far, sizes, q = arrays.far, arrays.sizes, work.t.shape[1]
    for i in range(len(work.t)):
        pattern = arrays.pattern[i]
        own = far.own_log[
            pattern
        ]  # the log density of what may have moved, given the record's own true values
        for r in range(q):
            if not far.moved[r] or not arrays.is_open[pattern, r]:
                continue
            if sizes.spread_kind[r] == SKEWED:
                phi, sd = sizes.spread_params[r, 0], sizes.spread_params[r, 1]
                own += log_bias_lognormal(arrays.u[i, r], work.t[i, r], phi, sd)
                continue
            v = 0.0
            for j in range(q):
                v += arrays.turn[pattern, r, j] * (work.noise[i, j] - arrays.shift[i, j])
            own += 0.5 * math.log(arrays.weight[i, r]) - 0.5 * arrays.weight[i, r] * v * v
            own -= math.log(work.size[i, r])
        odds = math.log(far.share) - math.log1p(-far.share) + _log_far(far, arrays.u, i) - own
        arrays.swapped[i] = rng.random() * (1.0 + math.exp(-min(max(odds, -700.0), 700.0))) < 1.0


@inner_with_allocation
def _log_far(far: Any, u: Floats, i: int) -> float:
    """Return the log density of the same values for a record of the block picked at random."""
    group, q, total = far.group[i], u.shape[1], 0.0
    for j in range(q):
        for k in range(q):
            weight = far.precision[group, j, k]
            if weight != 0.0:
                total += (u[i, j] - far.mean[group, j]) * weight * (u[i, k] - far.mean[group, k])
    return float(far.log[group] - 0.5 * total)


@inner_with_allocation
def _far_given_others(far: Any, u: Floats, i: int, j: int) -> tuple[float, float]:
    """Return mean and sd of a value given the others that came with it from another record."""
    group, cross = far.group[i], 0.0
    for k in range(u.shape[1]):
        if k != j:
            cross += far.precision[group, j, k] * (u[i, k] - far.mean[group, k])
    own = far.precision[group, j, j]
    return far.mean[group, j] - cross / own, 1.0 / math.sqrt(own)


@inner_with_allocation
def _silence(weight: Floats, swapped: Bools, j: int) -> None:
    """Take the weight from what came from another record."""
    for i in range(len(weight)):
        if swapped[i]:
            weight[i, j] = 0.0

"""Derivatives of the log likelihoods of `enumerated_likelihood`, and draws of the categories that it sums over.

With the combinations weighed by how likely they are given the record, the derivative by a linear predictor is the
weighted sum of those of the logs (Louis 1982): of a stick, phi / Phi(eta) where its level was taken and
-phi / Phi(-eta) where it was passed; of the response, l'(eta). For the modes and the Hamiltonian steps of
`analysis/samplers/enumeration`.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from . import announce
from .enumerated_likelihood import (
    BLOCK,
    GAUSSIAN,
    HIGHEST,
    LOGIT,
    NEGATIVE_BINOMIAL,
    ORDERED,
    PROBIT,
    CategoryBlock,
    CategoryRecords,
    EnumerationRoom,
    EnumerationShape,
    chances,
    fill_base,
    fill_eta,
    likelihoods,
    log_of,
)
from .normal_tails import (
    INVERSE_ROOT_2_PI,
    allow_any_order,
    allow_fusion,
    quick_exp,
    scaled_tail,
    softplus,
    within,
)

announce(__file__)

Floats = npt.NDArray[np.float64]
Slopes = tuple[Floats, Floats]  # by the coefficients; by log sigma, log shape or cuts


@allow_fusion
def slopes(
    records: CategoryRecords,
    shape: EnumerationShape,
    linear: Floats,
    extra: Floats,
    room: EnumerationRoom,
    by: Slopes,
) -> float:
    """Return what `totals` does for one row, and write its derivatives."""
    n, total = records.known.shape[1], 0.0
    by[0][:] = 0.0
    by[1][:] = 0.0
    for first in range(0, n, BLOCK):
        block = CategoryBlock(first, min(BLOCK, n - first))
        chances(records, shape, linear, block, room)
        likelihoods(records, shape, linear, extra, block, room)
        total += log_of(records.counts, block, room)
        if not total > -np.inf:
            return -np.inf
        _weigh(records, shape, block, room)
        _add_response(records, shape, (linear, extra), block, room, by)
        _add_sticks(records, shape, linear, block, room, by[0])
    return total


@within
def _weigh(
    records: CategoryRecords, shape: EnumerationShape, block: CategoryBlock, room: EnumerationRoom
) -> None:
    """Turn chances of combinations and of variants to weights that sum to one for a record (to its count)."""
    whole, size = room.whole, block.size
    for b in range(size):
        count = records.counts[block.first + b] if len(records.counts) > 0 else 1.0
        whole[b] = count / whole[b]
    for c in range(len(shape.variant)):
        chance, likelihood = room.chance[c], room.likelihood[shape.variant[c]]
        for b in range(size):
            chance[b] *= likelihood[b] * whole[b]
    for v in range(len(room.gathered)):
        gathered = room.gathered[v]
        for b in range(size):
            gathered[b] *= whole[b]


@within
def _add_response(
    records: CategoryRecords,
    shape: EnumerationShape,
    given: Slopes,
    block: CategoryBlock,
    room: EnumerationRoom,
    by: Slopes,
) -> None:
    """Add the derivatives of the response's likelihood."""
    (linear, extra), e, size = given, len(shape.begin) - 2, block.size
    response = records.response[:, block.first : block.first + size]
    fill_base(records, shape, linear, e, block, room.base)
    room.left[0, :size] = 0.0
    for v in range(len(room.likelihood)):
        fill_eta(records, shape, linear, (e, v), block, room)
        eta, weight, likelihood = room.eta[:size], room.gathered[v], room.likelihood[v]
        if shape.family in (PROBIT, LOGIT):
            _binary_slopes(shape.family, eta, response, weight)
        elif shape.family == ORDERED:
            _ordered_slopes(eta, response, weight, extra, by[1])
        elif shape.family == NEGATIVE_BINOMIAL:
            by[1][0] += _spread_slopes(eta, response, weight, likelihood, extra[0])
        else:
            by[1][0] += _plain_slopes(shape.family, eta, response, weight, likelihood, extra[0])
        _collect(records, shape, (e, v), block, eta, (room.left[0], by[0]))
    _collect_base(records, shape, e, block, room.left[0], by[0])


@within
def _binary_slopes(family: int, eta: Floats, response: Floats, weight: Floats) -> None:
    """Write weighted derivatives of the likelihoods of a binary response in the place of linear predictors."""
    for b in range(len(eta)):
        if family == PROBIT:
            density = INVERSE_ROOT_2_PI * quick_exp(-0.5 * eta[b] * eta[b])
        else:
            power = quick_exp(-abs(eta[b]))
            density = power / ((1.0 + power) * (1.0 + power))
        eta[b] = weight[b] * (response[1, b] - response[0, b]) * density


@within
def _ordered_slopes(eta: Floats, response: Floats, weight: Floats, cuts: Floats, by_cuts: Floats) -> None:
    """Write those of an ordered response; add the derivatives by the cuts."""
    for b in range(len(eta)):
        code, heard = int(response[0, b]), response[1, b] * weight[b] * INVERSE_ROOT_2_PI
        low, high = cuts[code] - eta[b], cuts[code + 1] - eta[b]
        below, above = heard * quick_exp(-0.5 * low * low), heard * quick_exp(-0.5 * high * high)
        by_cuts[code] -= below
        by_cuts[code + 1] += above
        eta[b] = below - above


@within
def _plain_slopes(
    family: int, eta: Floats, response: Floats, weight: Floats, likelihood: Floats, extra: float
) -> float:
    """Write those of a gaussian or Poisson response; return the derivative by log sigma."""
    total, precision = 0.0, math.exp(-2.0 * extra) if family == GAUSSIAN else 1.0
    for b in range(len(eta)):
        mine = weight[b] * likelihood[b] * response[1, b]
        if family == GAUSSIAN:
            off = response[0, b] - eta[b]
            total += mine * precision * off * off
            eta[b] = mine * precision * off
        else:
            eta[b] = mine * (response[0, b] - quick_exp(min(eta[b], HIGHEST)))
    return total


@within
def _spread_slopes(eta: Floats, response: Floats, weight: Floats, likelihood: Floats, extra: float) -> float:
    """Write those of a negative binomial response; return the derivative by the log of the shape."""
    total, shape = 0.0, math.exp(extra)
    for b in range(len(eta)):
        mine, at, y = weight[b] * likelihood[b] * response[1, b], eta[b] - extra, response[0, b]
        slope = y - (y + shape) / (1.0 + quick_exp(-at))
        total -= mine * (slope + shape * softplus(at))
        eta[b] = mine * slope
    return total


@within
def _collect(
    records: CategoryRecords,
    shape: EnumerationShape,
    which: tuple[int, int],
    block: CategoryBlock,
    own: Floats,
    sums: Slopes,
) -> None:
    """Add derivatives by a variant's linear predictors to the first of `sums`, by its differences to the second."""
    (e, v), (whole, by) = which, sums
    begin, stop = shape.turn[e], shape.turn[e + 1]
    place = shape.shift[e] + v * (stop - begin)
    for b in range(len(own)):
        whole[b] += own[b]
    for m in range(begin, stop):
        column = records.known[shape.move[m], block.first : block.first + block.size]
        by[place + m - begin] += _product(own, column)


@within
def _collect_base(
    records: CategoryRecords, shape: EnumerationShape, e: int, block: CategoryBlock, whole: Floats, by: Floats
) -> None:
    """Add the derivatives by the coefficients of known columns."""
    for place in range(shape.begin[e], shape.begin[e + 1]):
        column = records.known[shape.source[place], block.first : block.first + block.size]
        by[place] += _product(whole[: block.size], column)


@allow_any_order
def _product(left: Floats, right: Floats) -> float:
    total = 0.0
    for b in range(len(left)):
        total += left[b] * right[b]
    return total


@within
def _add_sticks(
    records: CategoryRecords,
    shape: EnumerationShape,
    linear: Floats,
    block: CategoryBlock,
    room: EnumerationRoom,
    by: Floats,
) -> None:
    """Add the derivatives of the chances of categories, the last one first; `room.chance` has the weights."""
    size, after = block.size, len(shape.begin) - 2
    before = len(shape.variant)
    for j in range(len(shape.levels) - 1, -1, -1):
        count = shape.levels[j]
        before //= count
        for p in range(before):  # what is left: the weight of the levels after a stick
            left, last = room.left[p], room.chance[p * count + count - 1]
            for b in range(size):
                left[b] = last[b]
        for s in range(count - 2, -1, -1):
            after -= 1
            fill_base(records, shape, linear, after, block, room.base)
            room.top[:size] = 0.0
            for p in range(before):
                fill_eta(records, shape, linear, (after, p), block, room)
                eta = room.eta[:size]
                _stick_slopes(eta, room.chance[p * count + s], room.left[p])
                _collect(records, shape, (after, p), block, eta, (room.top, by))
            _collect_base(records, shape, after, block, room.top, by)
        for p in range(before):
            left, chance = room.left[p], room.chance[p]
            for b in range(size):
                chance[b] = left[b]


@within
def _stick_slopes(eta: Floats, taken: Floats, passed: Floats) -> None:
    """Write weighted derivatives in the place of linear predictors; add the weight of the level to what passed."""
    for b in range(len(eta)):
        at = abs(eta[b])
        scaled = scaled_tail(at)
        power = quick_exp(-0.5 * at * at)
        near = INVERSE_ROOT_2_PI * power / (1.0 - power * scaled)
        far = INVERSE_ROOT_2_PI / scaled
        slope = taken[b] * near - passed[b] * far if eta[b] > 0.0 else taken[b] * far - passed[b] * near
        passed[b] += taken[b]
        eta[b] = slope


@allow_fusion
def draw_combinations(
    records: CategoryRecords,
    shape: EnumerationShape,
    parameters: Slopes,
    room: EnumerationRoom,
    uniforms: Floats,
    out: Floats,
) -> None:
    """Draw a combination of every record given the parameters (coefficients and `extra`), each by its own uniform."""
    linear, extra = parameters
    n = records.known.shape[1]
    for first in range(0, n, BLOCK):
        block = CategoryBlock(first, min(BLOCK, n - first))
        chances(records, shape, linear, block, room)
        likelihoods(records, shape, linear, extra, block, room)
        for b in range(block.size):
            rest, chosen = uniforms[first + b] * room.whole[b], -1
            for c in range(len(shape.variant)):
                mine = room.chance[c, b] * room.likelihood[shape.variant[c], b]
                if mine > 0.0 and (chosen < 0 or rest > 0.0):
                    chosen = c
                rest -= mine
            out[first + b] = chosen

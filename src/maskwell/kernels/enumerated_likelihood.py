"""Log likelihoods of records whose unknown values are categories, summed over.

    log L = sum over records of log sum over combinations c of (product of w(released | c_j)) P(c | sticks) P(y | eta_c)

A combination c is a level of each unknown category, the first one counting slowest. The chance of a level is a
sequential (stick-breaking) probit: Phi(eta_s) that it stops at level s, given that it got there (Albert and Chib 2001).
Records are worked on in blocks, one step for all of a block after the other, so that the processor takes several at a
time. A linear predictor is known columns times coefficients, the same for all combinations, and a difference that each
of its variants has: a constant, or multiples of some known columns.
Chosen by `analysis/samplers/enumeration` where every unknown value is a category and the combinations are few.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from . import announce
from .normal_tails import allow_any_order, allow_fusion, normal_tail, quick_exp, softplus, within

announce(__file__)

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

GAUSSIAN, PROBIT, LOGIT, ORDERED, POISSON, NEGATIVE_BINOMIAL = range(6)
BLOCK = 256  # records at a time: their rows of working space stay near the processor
NOTHING = 1e-290  # a likelihood that small has lost its digits
MANTISSA, ONE_BITS = (1 << 52) - 1, 1023 << 52  # the digits of a double, and the exponent of 1
LN_2 = math.log(2.0)
HIGHEST = 600.0  # of a log rate
LOWEST_LOG = -1e300  # stands for minus infinity where differences are taken


class CategoryRecords(NamedTuple):
    """Known columns x records; weights of levels (of all categories one after the other) x records; responses.

    Rows of `response`: the response and whether it is there (0 or 1); of a binary family what was released weighs for 0
    and for 1. `counts` says how many records each one stands for, empty where it is one.
    """

    known: Floats
    weight: Floats
    response: Floats
    counts: Floats


class EnumerationShape(NamedTuple):
    """What the equations are made of: the sticks of all categories, then the model of interest.

    Equation e has coefficients `linear[begin[e]:begin[e + 1]]` of the known columns `source[...]`; the differences of
    its variants lie from `shift[e]` on, one for each of the columns `move[turn[e]:turn[e + 1]]`. A stick has a variant
    for each combination of the categories before its own; `variant` says which one of the model of interest each
    combination has.
    """

    levels: Ints
    begin: Ints
    source: Ints
    shift: Ints
    turn: Ints
    move: Ints
    variant: Ints
    family: int


class EnumerationRoom(NamedTuple):
    """Space to work in, rows x block: chances of combinations, what is left of them; chances and likelihoods of
    variants; linear predictors, their known part, logs taken out, likelihoods of records.
    """

    chance: Floats
    left: Floats
    gathered: Floats
    likelihood: Floats
    eta: Floats
    base: Floats
    top: Floats
    whole: Floats


class CategoryBlock(NamedTuple):
    """Some records: the first of them and how many."""

    first: int
    size: int


def room_for(shape: EnumerationShape) -> EnumerationRoom:
    """Make the space that one call needs."""
    combinations, variants = len(shape.variant), int(shape.variant.max()) + 1
    rows = (combinations, combinations, variants, variants)
    return EnumerationRoom(*(np.empty((many, BLOCK)) for many in rows), *(np.empty(BLOCK) for _ in range(4)))


@allow_fusion
def totals(
    records: CategoryRecords,
    shape: EnumerationShape,
    linear: Floats,
    extra: Floats,
    room: EnumerationRoom,
    out: Floats,
) -> None:
    """Write the log likelihood for each row of coefficients, minus infinity where a record has hardly any.

    Rows of `extra` have the log of sigma or of the shape, or the cuts between -inf and inf. Factors of the likelihood
    that neither eta nor the cuts change are left out, though they have sigma or the shape in them.
    """
    n = records.known.shape[1]
    out[:] = 0.0
    for first in range(0, n, BLOCK):
        block = CategoryBlock(first, min(BLOCK, n - first))
        for t in range(len(linear)):
            if out[t] > -np.inf:
                chances(records, shape, linear[t], block, room)
                likelihoods(records, shape, linear[t], extra[t], block, room)
                out[t] += log_of(records.counts, block, room)


@within
def fill_base(
    records: CategoryRecords,
    shape: EnumerationShape,
    linear: Floats,
    e: int,
    block: CategoryBlock,
    base: Floats,
) -> None:
    """Write what the known columns give to the linear predictors of an equation."""
    base[: block.size] = 0.0
    for place in range(shape.begin[e], shape.begin[e + 1]):
        column = records.known[shape.source[place], block.first : block.first + block.size]
        by = linear[place]
        for b in range(block.size):
            base[b] += by * column[b]


@within
def fill_eta(
    records: CategoryRecords,
    shape: EnumerationShape,
    linear: Floats,
    which: tuple[int, int],
    block: CategoryBlock,
    room: EnumerationRoom,
) -> None:
    """Write the linear predictors of a variant: `which` are the number of its equation and its own."""
    e, v = which
    begin, stop = shape.turn[e], shape.turn[e + 1]
    place = shape.shift[e] + v * (stop - begin)
    eta, base = room.eta[: block.size], room.base
    for b in range(len(eta)):
        eta[b] = base[b]
    for m in range(begin, stop):
        column = records.known[shape.move[m], block.first : block.first + block.size]
        by = linear[place + m - begin]
        for b in range(len(column)):
            eta[b] += by * column[b]


@within
def chances(
    records: CategoryRecords,
    shape: EnumerationShape,
    linear: Floats,
    block: CategoryBlock,
    room: EnumerationRoom,
) -> None:
    """Write the chances of all combinations, times what was released weighs there."""
    first, size = block.first, block.size
    room.chance[0, :size] = 1.0
    before, e, row = 1, 0, 0
    for j in range(len(shape.levels)):
        count = shape.levels[j]
        for p in range(before):
            left, chance = room.left[p], room.chance[p]
            for b in range(size):
                left[b] = chance[b]
        for s in range(count - 1):
            fill_base(records, shape, linear, e, block, room.base)
            for p in range(before):
                fill_eta(records, shape, linear, (e, p), block, room)
                weight = records.weight[row + s, first : first + size]
                _break(room.eta, weight, room.left[p], room.chance[p * count + s], size)
            e += 1
        for p in range(before):
            weight = records.weight[row + count - 1, first : first + size]
            left, last = room.left[p], room.chance[p * count + count - 1]
            for b in range(size):
                last[b] = left[b] * weight[b]
        before *= count
        row += count


@within
def _break(eta: Floats, weight: Floats, left: Floats, out: Floats, size: int) -> None:
    """Break a stick: Phi(eta) of what is left is the chance of a level, the rest is left."""
    tails(eta, out, size)  # in a loop of its own: with what follows it would run one record at a time
    for b in range(size):
        tail, before = out[b], left[b]
        far = 1.0 - tail
        out[b] = before * weight[b] * (far if eta[b] > 0.0 else tail)
        left[b] = before * (tail if eta[b] > 0.0 else far)


@within
def tails(eta: Floats, out: Floats, size: int) -> None:
    """Write P(N > |eta|)."""
    for b in range(size):
        out[b] = normal_tail(abs(eta[b]))


@within
def likelihoods(
    records: CategoryRecords,
    shape: EnumerationShape,
    linear: Floats,
    extra: Floats,
    block: CategoryBlock,
    room: EnumerationRoom,
) -> None:
    """Write chances and likelihoods of the variants of the model of interest, and the sum of their products.

    The log of the largest likelihood of each record is taken out of them, to `top`.
    """
    e, size, variants = len(shape.begin) - 2, block.size, len(room.likelihood)
    room.gathered[:, :size] = 0.0
    for c in range(len(shape.variant)):
        gathered, chance = room.gathered[shape.variant[c]], room.chance[c]
        for b in range(size):
            gathered[b] += chance[b]
    fill_base(records, shape, linear, e, block, room.base)
    response = records.response[:, block.first : block.first + size]
    for v in range(variants):
        fill_eta(records, shape, linear, (e, v), block, room)
        if shape.family in (PROBIT, LOGIT, ORDERED):
            _direct(shape.family, room.eta, response, extra, room.likelihood[v])
        else:
            _exponents(shape.family, room.eta, response, extra[0], room.likelihood[v])
    room.whole[:size] = 0.0
    room.top[:size] = 0.0
    if shape.family not in (PROBIT, LOGIT, ORDERED):
        _exponentiate_logs(room.likelihood, room.gathered, room.top, size)
    for v in range(variants):
        gathered, likelihood, whole = room.gathered[v], room.likelihood[v], room.whole
        for b in range(size):
            whole[b] += gathered[b] * likelihood[b]


@within
def _exponentiate_logs(logs: Floats, chance: Floats, top: Floats, size: int) -> None:
    """Turn logs to numbers of which the largest that has a chance is 1, its log put aside."""
    top[:size] = LOWEST_LOG
    for v in range(len(logs)):
        log, has = logs[v], chance[v]
        for b in range(size):
            top[b] = max(top[b], log[b] if has[b] > 0.0 else LOWEST_LOG)
    for v in range(len(logs)):
        log = logs[v]
        for b in range(size):
            log[b] = quick_exp(log[b] - top[b])


@within
def _exponents(family: int, eta: Floats, response: Floats, extra: float, out: Floats) -> None:
    """Write the logs of likelihoods: gaussian, Poisson, negative binomial."""
    y, heard = response[0], response[1]
    if family == GAUSSIAN:
        half = -0.5 * math.exp(-2.0 * extra)
        for b in range(len(y)):
            off = y[b] - eta[b]
            out[b] = half * heard[b] * off * off
    elif family == POISSON:
        for b in range(len(y)):
            out[b] = heard[b] * (y[b] * eta[b] - quick_exp(min(eta[b], HIGHEST)))
    else:
        shape = math.exp(extra)
        for b in range(len(y)):
            at = eta[b] - extra
            out[b] = heard[b] * (y[b] * at - (y[b] + shape) * softplus(at))


@within
def _direct(family: int, eta: Floats, response: Floats, cuts: Floats, out: Floats) -> None:
    """Write likelihoods themselves: probit, logit, ordered."""
    zero, one = response[0], response[1]
    if family == PROBIT:
        tails(eta, out, len(zero))
        for b in range(len(zero)):
            tail = out[b]
            far = 1.0 - tail
            out[b] = zero[b] * (tail if eta[b] > 0.0 else far) + one[b] * (far if eta[b] > 0.0 else tail)
    elif family == LOGIT:
        for b in range(len(zero)):
            out[b] = quick_exp(-abs(eta[b]))
        for b in range(len(zero)):
            near = 1.0 / (1.0 + out[b])
            far = out[b] * near
            out[b] = zero[b] * (far if eta[b] > 0.0 else near) + one[b] * (near if eta[b] > 0.0 else far)
    else:
        for b in range(len(zero)):
            code = int(zero[b])
            chance = between(cuts[code] - eta[b], cuts[code + 1] - eta[b])
            out[b] = one[b] * chance + (1.0 - one[b])


@within
def between(low: float, high: float) -> float:
    """Return the chance of a standard normal between two numbers, by the tails that keep its digits."""
    below, above = normal_tail(abs(low)), normal_tail(abs(high))
    if low > 0.0:
        return below - above
    return above - below if high < 0.0 else 1.0 - above - below


@within
def log_of(counts: Floats, block: CategoryBlock, room: EnumerationRoom) -> float:
    """Return the log of a block's likelihood, minus infinity where one of its records has hardly any."""
    whole = room.whole[: block.size]
    if _without(whole) > 0:
        return -np.inf
    if len(counts) == 0:
        return _sum(room.top[: block.size]) + _log_product(whole)
    total = 0.0
    for b in range(block.size):
        total += counts[block.first + b] * (room.top[b] + math.log(whole[b]))
    return total


@within
def _without(values: Floats) -> int:
    """Return how many are hardly above 0, or no numbers."""
    count = 0
    for b in range(len(values)):
        count += 0 if NOTHING < values[b] < np.inf else 1
    return count


@allow_any_order
def _sum(values: Floats) -> float:
    total = 0.0
    for b in range(len(values)):
        total += values[b]
    return total


@allow_any_order
def _log_product(values: Floats) -> float:
    """Return the log of a product of ordinary numbers: the powers of 2 are added, the rest is multiplied."""
    product, powers = 1.0, np.int64(0)
    for b in range(len(values)):
        bits = np.float64(values[b]).view(np.int64)
        powers += (bits >> 52) - 1023
        product *= np.int64((bits & MANTISSA) | ONE_BITS).view(np.float64)
    return math.log(product) + powers * LN_2

"""Log kernels of multiplicative bias with additive noise: z = theta x + e, theta ~ N(1, bias_sd^2), e ~ N(0, sd^2).

The law is A2.1 and A2.2 of Trottini, Fienberg, Makov and Meyer (2003), with one draw of e for each cell. forward is
f(z|x) = N(z; x, V), V = sd^2 + bias_sd^2 x^2. paper is f(x|z) under a flat law of x, their (4): forward times E|theta|,
where theta given z and x is N(m, u), m = (sd^2 + bias_sd^2 x z) / V, u = bias_sd^2 sd^2 / V; E|theta| is the mean of a
folded normal (own derivation: complete the square in theta, so that no Monte Carlo is needed). fms is N(x; z, sd^2 +
bias_sd^2 z^2) of Fienberg, Makov and Sanil (1997): forward with z and x exchanged. Where the variance is 0 a kernel is
a point mass: 0 where z = x, else minus infinity.

The scalar function keeps its digits at every scale. The sum over nodes takes many pairs side by side, with an
exponential that the compiler can vectorise; pairs whose numbers it cannot hold go to the scalar function. The sums
serve `attacks/bayes/unknown_noise`, where nodes are values of the unknown sds.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit
from numpy.polynomial import Chebyshev, Polynomial
from numpy.typing import NDArray

from . import announce
from .densities import LOG_ROOT_2_PI, ROOT_HALF, log_normal

announce(__file__)

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Nodes = tuple[Floats, Floats, Floats]  # squared sds of the bias and of the noise, log weights
FORWARD, PAPER, FMS = 0, 1, 2
ROOT_2_OVER_PI = math.sqrt(2.0 / math.pi)  # E|N(0, 1)|
SURE = 8.0  # where |m| is this many times the sd of theta, or more, E|theta| = |m| in double precision
TILE = 128  # pairs side by side: their numbers at all nodes stay near the processor
LEAST = -700.0  # what lies this far below the largest node is as good as nothing
SMALL, LARGE, STEEP = 1e-70, 1e70, 1e5  # between these nothing squared overflows or loses digits
ROUND, INVERSE_LOG_2 = 1.5 * 2.0**52, 1.0 / math.log(2.0)  # adding 1.5 x 2^52 rounds to a whole number
LOG_2_HIGH, LOG_2_LOW = 0.693147180369123816490, 1.90821492927058770002e-10  # the first with zeros at its end


# --- one pair ----------------------------------------------------------------------------------------------


@njit(cache=True, nogil=True)
def log_bias(z: float, x: float, bias_sd: float, sd: float, kind: int) -> float:
    """Return the log kernel of one pair; `kind` is 0 forward, 1 paper, 2 fms."""
    if kind == FMS:
        z, x = x, z
    spread = math.hypot(sd, bias_sd * x)
    log = log_normal(z - x, spread)
    if kind != PAPER or spread == 0.0 or bias_sd == 0.0 or log == -math.inf:
        return log
    own, other = sd / spread, bias_sd * x / spread
    mean = own * own + other * (bias_sd * z / spread)
    if not math.isfinite(mean):
        mean = own * own + other * bias_sd * (z / spread)
    return log + _log_folded(mean, bias_sd * own)


@njit(cache=True, nogil=True)
def _log_folded(mean: float, sd: float) -> float:
    """Return log E|N(mean, sd^2)|."""
    if abs(mean) >= SURE * sd:
        return math.log(abs(mean)) if mean != 0.0 else -math.inf
    t = abs(mean) / sd
    return math.log(sd) + math.log(ROOT_2_OVER_PI * math.exp(-0.5 * t * t) + t * math.erf(ROOT_HALF * t))


@njit(cache=True, nogil=True)
def bias_log(z: Floats, x: Floats, bias_sd: float, sd: float, kind: int) -> Floats:
    """`log_bias` of each pair."""
    out = np.empty(len(z))
    for i in range(len(z)):
        out[i] = log_bias(z[i], x[i], bias_sd, sd, kind)
    return out


@njit(cache=True, nogil=True)
def _log_bias_mean(
    z: float, x: float, bias_sds: Floats, sds: Floats, log_weights: Floats, kind: int
) -> float:
    """Return the log of the sum over nodes, the largest first found and then taken out."""
    top, total = -math.inf, 0.0
    for k in range(len(sds)):
        top = max(top, log_weights[k] + log_bias(z, x, bias_sds[k], sds[k], kind))
    if math.isinf(top):
        return top
    for k in range(len(sds)):
        total += math.exp(log_weights[k] + log_bias(z, x, bias_sds[k], sds[k], kind) - top)
    return top + math.log(total)


# --- a sum over nodes, for many pairs side by side ---------------------------------------------------------


def _fold(t: float) -> float:
    """Return h(t) of E|N(t, 1)| = t + 2 phi(t) h(t), phi the standard normal density."""
    return 1.0 - t * math.sqrt(0.5 * math.pi) * math.exp(0.5 * t * t) * math.erfc(ROOT_HALF * t)


def _fold_terms(degree: int) -> tuple[float, ...]:
    """Return h as a polynomial in y = (t - 3) / (t + 3) for t up to `SURE`, its highest power first."""
    fitted = Chebyshev.interpolate(
        lambda some: np.array([_fold(3.0 * (1.0 + y) / (1.0 - y)) for y in some]),
        degree,
        domain=[-1.0, (SURE - 3.0) / (SURE + 3.0)],
    )
    powers = fitted.convert(kind=Polynomial, domain=[-1.0, 1.0], window=[-1.0, 1.0])
    return tuple(map(float, powers.coef[::-1]))


FOLD_TERMS = _fold_terms(18)  # degree 18: h then keeps nearly all digits of a double up to SURE
# Taylor's, to degree 13: the rest is below 2^-53 at |r| <= log(2) / 2
EXP_TERMS = tuple(1.0 / math.factorial(k) for k in range(13, -1, -1))


@njit(cache=True, nogil=True, error_model="numpy", fastmath={"contract"})
def _exp(value: float) -> float:
    """Return exp(value) of a value not above 0, without a branch or a call.

    Adding 1.5 x 2^52 rounds to a whole power of 2 and leaves it in the last bits; moved to where the exponent is,
    and added to the bits of 1.0, they make that power.
    """
    shifted = max(value, LEAST) * INVERSE_LOG_2 + ROUND
    steps = shifted - ROUND
    rest = (max(value, LEAST) - steps * LOG_2_HIGH) - steps * LOG_2_LOW
    total = 0.0
    for term in EXP_TERMS:
        total = total * rest + term
    bits = (np.float64(shifted).view(np.int64) << 52) + (1023 << 52)
    return float(total * np.int64(bits).view(np.float64))


@njit(cache=True, nogil=True)
def bias_log_mean(
    z: Floats, x: Floats, bias_sds: Floats, sds: Floats, log_weights: Floats, kind: int
) -> Floats:
    """Return for each pair the log of the sum over nodes k of exp(log_weights[k] + log kernel at node k)."""
    if kind == FMS:
        z, x, kind = x, z, FORWARD
    out, inverse, work = np.empty(len(z)), np.empty((len(sds), TILE)), np.empty((5, TILE))
    nodes = bias_sds * bias_sds, sds * sds, log_weights
    for begin in range(0, len(z), TILE):
        here = slice(begin, min(begin + TILE, len(z)))
        _peaks(z[here], x[here], nodes, work, inverse)
        fold = 0 if kind != PAPER else 1 if _is_sure(z[here], x[here], nodes, work[2], inverse) else 2
        _add(z[here], x[here], nodes, fold, work, inverse, out[here])
    _mend(z, x, bias_sds, sds, log_weights, kind, out)
    return out


@njit(cache=True, nogil=True, error_model="numpy", fastmath={"contract"})
def _peaks(z: Floats, x: Floats, nodes: Nodes, work: Floats, inverse: Floats) -> None:
    """Put 1 / V of each node and pair and the largest exponent of each pair in their places."""
    square, top = work[0], work[1]
    for j in range(len(z)):
        square[j], top[j] = 0.5 * (z[j] - x[j]) * (z[j] - x[j]), -math.inf
    for k in range(len(inverse)):
        bias, noise, weight, row = nodes[0][k], nodes[1][k], nodes[2][k], inverse[k]
        for j in range(len(z)):
            row[j] = 1.0 / (noise + bias * x[j] * x[j])
            top[j] = max(top[j], weight - square[j] * row[j])


@njit(cache=True, nogil=True, error_model="numpy", fastmath={"contract"})
def _is_sure(z: Floats, x: Floats, nodes: Nodes, doubt: Floats, inverse: Floats) -> bool:
    """Whether E|theta| = |m| for all pairs at all nodes."""
    doubt[:] = -math.inf
    for k in range(len(inverse)):
        bias, noise, row = nodes[0][k], nodes[1][k], inverse[k]
        for j in range(len(z)):
            mean = noise + bias * x[j] * z[j]
            doubt[j] = max(doubt[j], SURE * SURE * noise * bias - mean * mean * row[j])
    return bool(doubt.max() <= 0.0)


@njit(cache=True, nogil=True, error_model="numpy", fastmath={"contract"})
def _add(z: Floats, x: Floats, nodes: Nodes, fold: int, work: Floats, inverse: Floats, out: Floats) -> None:
    """Sum the kernels of a tile up: times nothing (fold 0), times |m| (1), times E|theta| (2)."""
    square, top, part = work[0], work[1], work[2][: len(z)]
    out[:] = 0.0
    for k in range(len(inverse)):
        bias, noise, weight, row = nodes[0][k], nodes[1][k], nodes[2][k], inverse[k]
        if fold == 0:
            part[:] = 1.0
        else:
            for j in range(len(z)):
                part[j] = abs(noise + bias * x[j] * z[j]) * row[j]
        if fold == 2:
            _fold_over(noise * bias, row, part, work[3], work[4])
        for j in range(len(z)):
            out[j] += _exp(weight - square[j] * row[j] - top[j]) * math.sqrt(row[j]) * part[j]
    for j in range(len(z)):
        out[j] = top[j] + math.log(out[j]) - LOG_ROOT_2_PI


@njit(cache=True, nogil=True, error_model="numpy", fastmath={"contract"})
def _fold_over(scale: float, row: Floats, part: Floats, y: Floats, h: Floats) -> None:
    """Turn the |m| of a tile into E|N(m, u)|, u = scale x row."""
    for j in range(len(part)):
        t = min(part[j] / max(math.sqrt(scale * row[j]), 1e-300), SURE)
        y[j], h[j] = (t - 3.0) / (t + 3.0), FOLD_TERMS[0]
    for i in range(1, len(FOLD_TERMS), 3):
        first, second, third = FOLD_TERMS[i], FOLD_TERMS[i + 1], FOLD_TERMS[i + 2]
        for j in range(len(part)):
            h[j] = ((h[j] * y[j] + first) * y[j] + second) * y[j] + third
    for j in range(len(part)):
        t = 3.0 * (1.0 + y[j]) / (1.0 - y[j])
        part[j] += ROOT_2_OVER_PI * math.sqrt(scale * row[j]) * _exp(-0.5 * t * t) * h[j]


@njit(cache=True, nogil=True)
def _mend(
    z: Floats, x: Floats, bias_sds: Floats, sds: Floats, log_weights: Floats, kind: int, out: Floats
) -> None:
    """Do again what squares in double precision cannot hold."""
    held = sds.max() < LARGE and bias_sds.max() < STEEP
    noisy, steep = sds.min() > SMALL, bias_sds.min() > 1.0 / STEEP
    for i in range(len(z)):
        ranged = abs(z[i]) < LARGE and abs(x[i]) < LARGE and (noisy or (steep and abs(x[i]) > SMALL))
        if not (held and ranged and math.isfinite(out[i])):
            out[i] = _log_bias_mean(z[i], x[i], bias_sds, sds, log_weights, kind)


# --- tables of functions of squares ------------------------------------------------------------------------

# Of a double behind its sign, its exponent and two bits of its fraction: four panels in a doubling
PANEL_BITS = 50
WITHIN = (1 << PANEL_BITS) - 1  # the bits that say where in its panel a number lies
PER_PANEL = 2.0 / (1 << PANEL_BITS)  # from those bits to (0, 2)


def panel_edges(low: float, high: float) -> tuple[float, Floats]:
    """Return where the panels of squares begin, at most `low`, and their edges from 0 to beyond `high`."""
    first, last = (int(np.float64(value).view(np.int64)) >> PANEL_BITS for value in (low, high))
    edges = (np.arange(first, last + 2) << PANEL_BITS).view(np.float64)
    return float(edges[0]), np.concatenate([[0.0], edges])


@njit(cache=True, nogil=True)
def panel_of(square: float, first: float) -> tuple[int, float]:
    """Return the panel of a square and the place in it, -1 to 1; panel 0 is all below `first`."""
    if square < first:
        return 0, 2.0 * square / first - 1.0
    base = (int(np.float64(first).view(np.int64)) >> PANEL_BITS) - 1
    bits = int(np.float64(square).view(np.int64))
    return (bits >> PANEL_BITS) - base, (bits & WITHIN) * PER_PANEL - 1.0


@njit(cache=True, nogil=True)
def even_logs(distances: Floats, first: float, coefficients: Floats) -> Floats:
    """Evaluate the polynomial of each squared distance's panel, NaN beyond them."""
    out = np.empty(len(distances))
    for i in range(len(distances)):
        row, t = panel_of(distances[i] * distances[i], first)
        if not 0 <= row < len(coefficients):
            out[i] = np.nan
            continue
        total = coefficients[row, 0]
        for k in range(1, coefficients.shape[1]):
            total = total * t + coefficients[row, k]
        out[i] = total
    return out


@njit(cache=True, nogil=True)
def surface_logs(z: Floats, x: Floats, firsts: tuple[float, float], where: Ints, table: Floats) -> Floats:
    """Evaluate a function of (z - x)^2 and x^2 by polynomials in both, NaN where there is none.

    `table` has panels of x^2 x its powers x panels of (z - x)^2 x its powers, highest first; `where` numbers the first,
    -1 for none. As long as x stays the same each panel of distances is made a polynomial in one once.
    """
    out, powers, panels = np.empty(len(z)), table.shape[1], table.shape[2]
    made, stamps, stamp, last = np.empty((panels, powers)), np.zeros(panels, np.int64), 0, np.nan
    own, u = -1, 0.0
    for i in range(len(z)):
        if x[i] != last:
            last, stamp = x[i], stamp + 1
            own, u = panel_of(last * last, firsts[0])
            own = where[own] if 0 <= own < len(where) else -1
        row, t = panel_of((z[i] - last) * (z[i] - last), firsts[1])
        if own < 0 or not 0 <= row < panels:
            out[i] = np.nan
            continue
        if stamps[row] != stamp:
            stamps[row] = stamp
            made[row] = table[own, 0, row]
            for k in range(1, powers):
                for j in range(powers):
                    made[row, j] = made[row, j] * u + table[own, k, row, j]
        total = made[row, 0]
        for k in range(1, powers):
            total = total * t + made[row, k]
        out[i] = total
    return out

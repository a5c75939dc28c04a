"""Draws of the Polya-Gamma law PG(b, c), which makes logistic and negative binomial likelihoods Gaussian.

PG(b, c) is the sum over k of gamma(b) / (2 pi^2 ((k - 1/2)^2 + (c / 2 pi)^2)). Polson, Scott and Windle, Journal of
the American Statistical Association 108 (2013) 1339-1349. b = 1 is drawn exactly by the alternating series of Devroye
(2009). Used by `gibbs_records.augment` for logistic responses.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit

from . import announce
from .densities import ROOT_HALF
from .random import inverse_gaussian, truncated_normal

announce(__file__)

CUT = 0.64  # where the two series of the density of 4 PG(1, 0) change places
SURE = 0.99  # a uniform below this is accepted whatever the series says: its first correction is below 0.006
LARGE_TILT = 20.0  # from this |c| on PG(b, c) is inverse Gaussian but for a part b exp(-|c|) < 2.1e-9 b
MOST_SUMMED = 4  # integers b up to here are sums of exact draws of b = 1; the series is quicker beyond
SERIES = (1 / 2, -1 / 12, 1 / 45, -17 / 2520, 31 / 14175, -691 / 935550, 10922 / 42567525) + (
    -929569 / 10216206000,
    3202291 / 97692469875,
)  # log cosh(sqrt(q)) in powers of q from the first on


@njit(cache=True, nogil=True)
def polya_gamma(rng: np.random.Generator, b: float, c: float) -> float:
    """Return a draw of PG(b, c), b >= 0.

    Exact for b = 1 to 4; see `_terms` for the error of other b, which no test of ten million draws would see. With
    one core 0.12-0.2 us for b = 1, 1.2 us for b < 1, 0.1-0.5 us for others (less as b grows), 0.06 us for |c| >= 20.
    """
    tilt = abs(c)
    if b <= 0.0:
        return 0.0
    if tilt >= LARGE_TILT:
        return inverse_gaussian(rng, 0.5 * b / tilt, 0.25 * b * b)
    if b <= MOST_SUMMED and b == math.floor(b):
        total = 0.0
        for _ in range(int(b)):
            total += _unit_draw(rng, 0.5 * tilt)
        return total
    return _series_draw(rng, b, tilt)


# --- b = 1, exactly ----------------------------------------------------------------------------------------


@njit(cache=True, nogil=True)
def _unit_draw(rng: np.random.Generator, z: float) -> float:
    """Return a draw of PG(1, 2 z) by Devroye's method: a proposal in two pieces, accepted by an alternating series."""
    rate = 0.125 * math.pi * math.pi + 0.5 * z * z
    chance = _right_chance(z, rate)
    while True:
        if rng.random() < chance:
            x = CUT + rng.standard_exponential() / rate
            decay = 0.5 * math.pi * math.pi * x
        else:
            x = _left_draw(rng, z)
            decay = 2.0 / x
        u = rng.random()
        if u < SURE or _is_below_series(u, decay):
            return 0.25 * x


@njit(cache=True, nogil=True)
def _right_chance(z: float, rate: float) -> float:
    """Return the chance that the proposal lies beyond the cut.

    Left over right: 4 / pi rate e^(rate cut) (e^-z Phi(z root - 1 / root) + e^z Phi(-z root - 1 / root)).
    """
    root = math.sqrt(CUT)
    first = math.erfc((1.0 / root - z * root) * ROOT_HALF)
    second = math.erfc((1.0 / root + z * root) * ROOT_HALF)
    ratio = 2.0 / math.pi * rate * (math.exp(rate * CUT - z) * first + math.exp(rate * CUT + z) * second)
    return 1.0 / (1.0 + ratio)


@njit(cache=True, nogil=True)
def _left_draw(rng: np.random.Generator, z: float) -> float:
    """Return an inverse Gaussian draw (mean 1 / z, shape 1) below the cut."""
    if z * CUT < 1.0:  # the mean is beyond the cut: tilt the draw of z = 0, one over a squared normal
        while True:
            root = truncated_normal(rng, 0.0, 1.0, 1.0 / math.sqrt(CUT), math.inf)
            x = 1.0 / (root * root)
            if rng.standard_exponential() >= 0.5 * z * z * x:
                return x
    while True:
        x = inverse_gaussian(rng, 1.0 / z, 1.0)
        if x <= CUT:
            return x


@njit(cache=True, nogil=True)
def _is_below_series(u: float, decay: float) -> bool:
    """Whether u lies below the alternating series of (2 n + 1) exp(-n (n + 1) decay)."""
    total, n = 1.0, 0
    while True:
        n += 1
        total -= (2 * n + 1) * math.exp(-n * (n + 1) * decay)
        if u <= total:
            return True
        n += 1
        total += (2 * n + 1) * math.exp(-n * (n + 1) * decay)
        if u > total:
            return False


# --- any b -------------------------------------------------------------------------------------------------


@njit(cache=True, nogil=True)
def _terms(b: float) -> int:
    """Return how many terms of the sum are drawn one by one: the larger b, the closer the rest is to a shifted gamma.

    Total variation from the law (by Fourier inversion): below 2e-5 for b >= 0.3 and any c, below 1e-7 for |c| <= 3 and
    b < 2000. For smaller b, where most of the mass is next to 0, E exp(-t w) is right to 1e-6 for t up to 300.
    """
    if b < 1.0:
        return 16
    if b < 5.0:
        return 8
    if b < 50.0:
        return 6
    if b < 500.0:
        return 3
    return 1 if b < 2000.0 else 0


@njit(cache=True, nogil=True)
def _series_draw(rng: np.random.Generator, b: float, tilt: float) -> float:
    """Return a draw by the first terms of the sum and, for the rest, a shifted gamma of its first three cumulants."""
    first, second, third = _cumulants(0.5 * tilt)
    square, total = (0.5 * tilt / math.pi) ** 2, 0.0
    for k in range(_terms(b)):
        weight = 0.5 / (math.pi * math.pi * ((k + 0.5) ** 2 + square))
        total += weight * rng.standard_gamma(b)
        first -= weight
        second -= weight * weight
        third -= 2.0 * weight * weight * weight
    scale = 0.5 * third / second
    shape = second / (scale * scale)
    return total + b * (first - shape * scale) + scale * rng.standard_gamma(b * shape)


@njit(cache=True, nogil=True)
def _cumulants(u: float) -> tuple[float, float, float]:
    """Return mean, variance and third cumulant of PG(1, 2 u), from the derivatives of log cosh(sqrt(q)) at q = u^2."""
    if u < 0.2:
        q, power = u * u, 1.0
        first = second = third = 0.0
        for i in range(len(SERIES)):
            n = i + 1
            first += n * SERIES[i] * power
            if i + 1 < len(SERIES):
                second += (n + 1) * n * SERIES[i + 1] * power
            if i + 2 < len(SERIES):
                third += (n + 2) * (n + 1) * n * SERIES[i + 2] * power
            power *= q
    else:
        t = math.tanh(u)
        s = 1.0 - t * t
        first = 0.5 * t / u
        second = 0.25 * (s * u - t) / u**3
        third = 0.125 * (3.0 * (t - s * u) - 2.0 * u * u * s * t) / u**5
    return 0.5 * first, -0.25 * second, 0.125 * third

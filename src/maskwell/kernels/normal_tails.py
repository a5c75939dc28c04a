"""Exponentials and normal chances as plain arithmetic, so that loops over records run several at a time.

exp(x), exp(u^2 / 2) P(N > u) after Shepherd and Laframboise (1981), P(N > u), and log(1 + exp(x)).
All are right to 1e-12 of their value, not to the last digit. Chosen by `enumerated_likelihood` and
`enumerated_gradient`; elsewhere `densities` keeps all digits.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numpy as np
from numba import njit

from . import announce

announce(__file__)

# Sums and products may be fused. Nothing may be reordered: the rounding below lives on the order.
FUSED: dict[str, Any] = {"cache": True, "nogil": True, "error_model": "numpy", "_nrt": False}
INNER: dict[str, Any] = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}
Function = TypeVar("Function", bound=Callable[..., Any])


def allow_fusion(function: Function) -> Function:
    """Compile a function whose sums and products may be fused."""
    return cast(Function, njit(fastmath={"contract", "nsz"}, **FUSED)(function))


def within(function: Function) -> Function:
    """Compile such a function that only compiled functions call."""
    return cast(Function, njit(fastmath={"contract", "nsz"}, **FUSED, **INNER)(function))


def allow_any_order(function: Function) -> Function:
    """Compile a function that only compiled functions call and whose sums may be taken in any order."""
    return cast(Function, njit(fastmath={"contract", "nsz", "reassoc"}, **FUSED, **INNER)(function))


LOWEST, HIGHEST = -708.0, 708.0  # exponents beyond have no ordinary number
# 1 / log 2, and log 2 in two parts whose first has zeros at its end
LOG2_E, LN_2_HIGH, LN_2_LOW = 1.4426950408889634, 0.6931471803691238, 1.9082149292705877e-10
ROUNDER = 6755399441055744.0  # 1.5 * 2^52: adding it leaves a whole number in the last bits
E = (
    1.0000000000000135,
    1.000000000000006,
    0.4999999999943757,
    0.16666666666583208,
    0.0416666670407969,
    0.008333333374141091,
    0.001388880172452438,
    0.00019841185088739454,
    2.4884470808075425e-05,
    2.7634178148978635e-06,
)
KNEE = 5.0  # of the map (u - 5) / (u + 5), which spreads the tail over (-1, 1)
FARTHEST = 37.5  # beyond it P(N > u) is no ordinary number
INVERSE_ROOT_2_PI = 0.3989422804014327
Q = (
    0.7691930497498053,
    -0.6653825028950676,
    0.4953056160120822,
    -0.31353315642839974,
    0.16502036503513162,
    -0.06911864215072638,
    0.0207950786287796,
    -0.002993354735955946,
    -0.0007979314716671628,
    0.0005448237086182545,
    -5.9191203422248436e-05,
    -4.9614421015333595e-05,
    1.6354296898354622e-05,
    3.8090968951084545e-06,
    -2.4221693227890554e-06,
    -2.2197390593528327e-07,
    2.2132266810582254e-07,
)

L = (
    1.9999999999998705,
    0.6666666668150377,
    0.3999999722029789,
    0.2857162640760843,
    0.22215338822675007,
    0.18310855268140372,
    0.14065437241730477,
    0.20081862731485683,
)


@allow_fusion
def quick_exp(x: float) -> float:
    """Return exp(x), between exp(-708) and exp(708): 2^k times a polynomial on half an octave to either side."""
    x = min(max(x, LOWEST), HIGHEST)
    shifted = x * LOG2_E + ROUNDER
    k = shifted - ROUNDER
    r = x - k * LN_2_HIGH - k * LN_2_LOW
    s = r * r
    even = E[0] + s * (E[2] + s * (E[4] + s * (E[6] + s * E[8])))
    odd = E[1] + s * (E[3] + s * (E[5] + s * (E[7] + s * E[9])))
    bits = np.float64(even + r * odd).view(np.int64) + (np.float64(shifted).view(np.int64) << 52)
    return float(np.int64(bits).view(np.float64))


@allow_fusion
def scaled_tail(u: float) -> float:
    """Return exp(u^2 / 2) P(N > u) of a standard normal N and u >= 0.

    It is a polynomial of (u - 5) / (u + 5), divided by u + 5: the shape of Shepherd and Laframboise (Mathematics of
    Computation 36, 1981, 249-253), coefficients by least squares at Chebyshev's points.
    """
    inverse = 1.0 / (u + KNEE)
    t = (u - KNEE) * inverse
    s = t * t
    even = Q[0] + s * (
        Q[2] + s * (Q[4] + s * (Q[6] + s * (Q[8] + s * (Q[10] + s * (Q[12] + s * (Q[14] + s * Q[16]))))))
    )
    odd = Q[1] + s * (Q[3] + s * (Q[5] + s * (Q[7] + s * (Q[9] + s * (Q[11] + s * (Q[13] + s * Q[15]))))))
    return (even + t * odd) * inverse


@allow_fusion
def normal_tail(u: float) -> float:
    """Return P(N > u) of a standard normal N and u >= 0; beyond 37.5 that of 37.5."""
    u = min(u, FARTHEST)
    return quick_exp(-0.5 * u * u) * scaled_tail(u)


@allow_fusion
def softplus(x: float) -> float:
    """Return log(1 + exp(x)): beyond max(x, 0), twice the inverse hyperbolic tangent of e / (2 + e), e = exp(-|x|)."""
    power = quick_exp(-abs(x))
    z = power / (2.0 + power)
    s = z * z
    series = L[0] + s * (L[1] + s * (L[2] + s * (L[3] + s * (L[4] + s * (L[5] + s * (L[6] + s * L[7]))))))
    return max(x, 0.0) + z * series

"""Draws of an equation's parameters given sums over its records: coefficients with group effects integrated out.

With t = X b + Z u + e, u_g ~ N(0, D) and weights W: b is drawn from its normal law given t alone, of precision X'WX +
prior - sum over g of M_g (Z_g'W Z_g + D^-1)^-1 M_g', M_g = X_g'W Z_g; then each u_g given b (Lindley and Smith 1972;
Chib and Carlin 1999 draw in this order, since b and u are then one block). Used by `analysis/samplers/gibbs/sweeps` for
every equation that is normal or made so.
"""

from __future__ import annotations

from math import sqrt

import numpy as np
import numpy.typing as npt
from numba import njit

from . import announce
from .cholesky import back, factorise, solve
from .equations import EquationMoments
from .programs import inner_with_allocation

announce(__file__)

Floats = npt.NDArray[np.float64]


@njit(cache=True, nogil=True)
def draw_coefficients(
    moments: EquationMoments,
    prior: tuple[Floats, Floats, float],
    group_precision: Floats,
    coefficients: Floats,
    effects: Floats,
    rng: np.random.Generator,
) -> None:
    """Draw coefficients with the effects of one factor integrated out, then these effects (groups x columns).

    `prior` has the coefficients' precisions, precisions times means, and 1 for a draw or 0 for the mean. The moments
    are used up.
    """
    size, width = len(coefficients), effects.shape[1]
    for a in range(size):
        moments.fixed[a, a] += prior[0][a]
        moments.fixed_target[a] += prior[1][a]
    if width > 0:
        for g in range(len(effects)):
            _integrate(moments, g, group_precision, size, width)
    _scaled_draw(moments.fixed, moments.fixed_target, coefficients, prior[2], rng)
    for g in range(len(effects)):
        if width > 0:
            _effects(moments, g, coefficients, effects[g], prior[2], rng)


@inner_with_allocation
def _integrate(moments: EquationMoments, g: int, group_precision: Floats, size: int, width: int) -> None:
    """Take the effects of a group out of the fixed moments; leave the root of their precision behind."""
    root, mixed, target = moments.group[g], moments.mixed[g], np.empty(width)
    for a in range(width):
        target[a] = moments.group_target[g, a]
        for b in range(a + 1):
            root[a, b] += group_precision[a, b]
    factorise(root, width)
    half = np.empty((size, width))
    for a in range(width):  # target becomes root^-1 target
        for k in range(a):
            target[a] -= root[a, k] * target[k]
        target[a] /= root[a, a]
    for c in range(size):
        for a in range(width):
            total = mixed[c, a]
            for k in range(a):
                total -= root[a, k] * half[c, k]
            half[c, a] = total / root[a, a]
            moments.fixed_target[c] -= half[c, a] * target[a]
        for d in range(c + 1):
            for a in range(width):
                moments.fixed[c, d] -= half[c, a] * half[d, a]


@inner_with_allocation
def _scaled_draw(
    precision: Floats, linear: Floats, out: Floats, noisy: float, rng: np.random.Generator
) -> None:
    """Draw from a normal given its precision and linear part; columns are first brought to one size."""
    size = len(out)
    scale = np.empty(size)
    for a in range(size):
        scale[a] = 1.0 / sqrt(precision[a, a])
    for a in range(size):
        out[a] = linear[a] * scale[a]
        for b in range(a + 1):
            precision[a, b] *= scale[a] * scale[b]
    factorise(precision, size)
    solve(precision, out, size)
    step = np.empty(size)
    for a in range(size):
        step[a] = noisy * rng.standard_normal()
    back(precision, step, size)
    for a in range(size):
        out[a] = (out[a] + step[a]) * scale[a]


@inner_with_allocation
def _effects(
    moments: EquationMoments,
    g: int,
    coefficients: Floats,
    out: Floats,
    noisy: float,
    rng: np.random.Generator,
) -> None:
    """Draw the effects of one group given the coefficients."""
    width, root = len(out), moments.group[g]
    for a in range(width):
        out[a] = moments.group_target[g, a]
        for c in range(len(coefficients)):
            out[a] -= moments.mixed[g, c, a] * coefficients[c]
    solve(root, out, width)
    step = np.empty(width)
    for a in range(width):
        step[a] = noisy * rng.standard_normal()
    back(root, step, width)
    for a in range(width):
        out[a] += step[a]

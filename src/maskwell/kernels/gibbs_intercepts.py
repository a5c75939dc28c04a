"""Linear models with one intercept for each group: coefficients with the intercepts integrated out, then these.

As `gibbs_coefficients` (Chib and Carlin 1999), for groups that have one effect each: with w_g the sum of weights and
1/v the precision of intercepts, a group takes m_g m_g' / (w_g + 1/v) from the precision of the coefficients. Nothing is
allocated, so that a sweep can afford it often.
"""

from __future__ import annotations

from math import sqrt
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from . import announce
from .cholesky import back, factorise, solve
from .programs import inner

announce(__file__)

Floats = npt.NDArray[np.float64]


class JointIntercepts(NamedTuple):
    """Weighted sums of products: of columns, of columns and target; and by group, of columns, weights and target.

    `fixed` is used up: it becomes a root, of columns brought to one size by `scale`. `step` is to work in.
    """

    fixed: Floats
    target: Floats
    mixed: Floats
    weight: Floats
    answer: Floats
    scale: Floats
    step: Floats


def joint_of(size: int, groups: int) -> JointIntercepts:
    """Make room for so many columns and groups."""
    return JointIntercepts(
        np.zeros((size, size)),
        np.zeros(size),
        np.zeros((groups, size)),
        np.zeros(groups),
        np.zeros(groups),
        np.zeros(size),
        np.zeros(size),
    )


@inner
def integrate(
    joint: JointIntercepts, size: int, groups: int, prior: tuple[Floats, Floats], between: float
) -> None:
    """Add the prior (precisions, and these times means), take the intercepts out, and factorise.

    `between` is the precision of the intercepts; without groups there are none.
    """
    for a in range(size):
        joint.fixed[a, a] += prior[0][a]
        joint.target[a] += prior[1][a]
    for g in range(groups):
        share = 1.0 / (joint.weight[g] + between)
        for a in range(size):
            part = joint.mixed[g, a] * share
            joint.target[a] -= part * joint.answer[g]
            for b in range(a + 1):
                joint.fixed[a, b] -= part * joint.mixed[g, b]
    for a in range(size):
        joint.scale[a] = 1.0 / sqrt(joint.fixed[a, a])
        joint.target[a] *= joint.scale[a]
        for b in range(a + 1):
            joint.fixed[a, b] *= joint.scale[a] * joint.scale[b]
    factorise(joint.fixed, size)
    solve(joint.fixed, joint.target, size)


@inner
def put_mean(
    joint: JointIntercepts, size: int, between: float, coefficients: Floats, effects: Floats
) -> None:
    """Put the mean in place; what `integrate` left stays."""
    for a in range(size):
        coefficients[a] = joint.target[a] * joint.scale[a]
    for g in range(len(effects)):
        effects[g] = _group_residual(joint, g, size, coefficients) / (joint.weight[g] + between)


@inner
def put_draw(
    joint: JointIntercepts,
    size: int,
    between: float,
    coefficients: Floats,
    effects: Floats,
    rng: np.random.Generator,
) -> None:
    """Put a draw in place; what `integrate` left stays."""
    for a in range(size):
        joint.step[a] = rng.standard_normal()
    back(joint.fixed, joint.step, size)
    for a in range(size):
        coefficients[a] = (joint.target[a] + joint.step[a]) * joint.scale[a]
    for g in range(len(effects)):
        share = 1.0 / (joint.weight[g] + between)
        effects[g] = (
            _group_residual(joint, g, size, coefficients) * share + sqrt(share) * rng.standard_normal()
        )


@inner
def _group_residual(joint: JointIntercepts, g: int, size: int, coefficients: Floats) -> float:
    """Return what the columns leave of a group's target."""
    total = joint.answer[g]
    for a in range(size):
        total -= joint.mixed[g, a] * coefficients[a]
    return float(total)

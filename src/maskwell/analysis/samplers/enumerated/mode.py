"""The mode of the posterior, and whether it is the only one in reach."""

from __future__ import annotations

import numpy as np

from ...formulas.trees import evaluate, on_state
from ...system import GAUSSIAN, NEGATIVE_BINOMIAL, ORDERED, Equation, Floats
from ..marginal.mode import Fit, climb, least_squares, settle, working
from .layout import parameter_starts
from .posterior import Posterior

APART = 1.0  # standard deviations from which on two climbs ended at different modes
MATTERS = 12.0  # log density below the highest at which another mode has no weight


def fit(posterior: Posterior) -> Fit | None:
    """Climb to the mode and take the curvature there; None where there is no proper one, or another as good."""
    start, root = first_guess(posterior)
    found = settle(posterior, climb(posterior, start, root), root)
    if found is None:
        return None
    mode, scale = found
    top, inverse = posterior.gradient(mode)[0], np.linalg.inv(scale)
    if not np.isfinite(top):
        return None
    for other in _others(posterior, start):
        end = climb(posterior, other, root)
        value = posterior.gradient(end)[0]
        if np.linalg.norm(inverse @ (end - mode)) > APART and value > top - MATTERS:
            return None
    return Fit(mode, scale, 0.0)


def _others(posterior: Posterior, start: Floats) -> list[Floats]:
    """Return starts from which another mode would be found: what depends on levels nil, and turned round."""
    problem = posterior.problem
    changing = np.abs(problem.turn[problem.shape.shift[-1] :]).sum(axis=0) > 0
    found = []
    for factor in (0.0, -1.0):
        other = start.copy()
        other[posterior.linear[changing]] *= factor
        found.append(other)
    return found


def first_guess(posterior: Posterior) -> tuple[Floats, Floats]:
    """Return a start from least squares on the released values, and the scale of the parameters around it."""
    system, size = posterior.problem.system, len(posterior)
    theta, root = np.zeros(size), np.zeros((size, size))
    for equation, start in zip(system.equations, parameter_starts(system), strict=True):
        here = posterior.linear[start : start + len(equation.names)]
        design, own = _columns(posterior, equation)
        prior_sd = posterior.sd[start : start + len(equation.names)]
        family = equation.family
        target, width = _ordered(own) if family == ORDERED else working(family, own)
        if equation is system.interest and equation.offset is not None:
            target = target - _offset(posterior)
        theta[here], inverse, sd = least_squares(design, target, prior_sd)
        root[np.ix_(here, here)] = (sd if family == GAUSSIAN else width) * inverse
        if equation is system.interest:
            _start_extra(posterior, own, sd, theta, root)
    return theta, root


def _columns(posterior: Posterior, equation: Equation) -> tuple[Floats, Floats]:
    """Return the columns and the response of an equation at the released values, of the records it speaks of."""
    system = posterior.problem.system
    own = system.state[:, equation.response]
    if equation.stick is not None:
        rows = own >= equation.stick
        own = (own == equation.stick).astype(np.float64)
    else:
        rows = np.ones(len(system), bool) if system.counted is None else system.counted
    rows = rows if rows.any() else np.ones(len(system), bool)
    values = {variable.name: system.state[rows, j] for j, variable in enumerate(system.variables)}
    columns = np.empty((int(rows.sum()), len(equation.columns)))
    for k, node in enumerate(equation.columns):
        centre = equation.centres[k] if equation.centres else 0.0
        columns[:, k] = evaluate(on_state(node, system.variables), values) - centre
    return columns, own[rows]


def _offset(posterior: Posterior) -> Floats:
    system = posterior.problem.system
    assert system.interest.offset is not None
    values = {variable.name: system.state[:, j] for j, variable in enumerate(system.variables)}
    offset = evaluate(on_state(system.interest.offset, system.variables), values)
    return offset if system.counted is None else offset[system.counted]


def _ordered(codes: Floats) -> tuple[Floats, float]:
    """Return the utilities expected of codes, and the sd one record leaves a coefficient of size 1."""
    from scipy.special import ndtri

    count = int(codes.max()) + 1
    shares = np.bincount(codes.astype(np.int64), minlength=count) / len(codes)
    middles = np.clip(np.cumsum(shares) - 0.5 * shares, 1e-3, 1.0 - 1e-3)
    return np.asarray(ndtri(middles))[codes.astype(np.int64)], 1.5


def _start_extra(posterior: Posterior, own: Floats, sd: float, theta: Floats, root: Floats) -> None:
    """Start log sigma, log shape or the cuts."""
    from scipy.special import ndtri

    n, here = len(own), posterior.extra
    if posterior.family == GAUSSIAN:
        theta[here], root[here, here] = np.log(max(sd, 1e-300)), 1.0 / np.sqrt(2.0 * n)
    elif posterior.family == NEGATIVE_BINOMIAL:
        theta[here], root[here, here] = 0.0, 3.0 / np.sqrt(n)
    elif posterior.family == ORDERED:
        below = np.array([(own <= k).mean() for k in range(len(here))])
        cuts = np.asarray(ndtri(np.clip(below, 0.5 / n, 1.0 - 0.5 / n)))
        theta[here[0]] = cuts[0]
        theta[here[1:]] = np.log(np.maximum(np.diff(cuts), 1e-3))
        root[here, here] = 2.0 / np.sqrt(n)

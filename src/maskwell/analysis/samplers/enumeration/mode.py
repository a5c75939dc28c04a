"""The modes of the posterior: where noise hardly leaves a category there may be several.

Climbs are those of `marginal.mode`. Levels that changed places fit nearly as well where noise hardly leaves a category
(label switching: Stephens 2000): the labels at the highest mode are permuted, and what is climbed to from there is a
mode too, unless its log density is MATTERS lower. Own derivation of the search. Used by `sampler` for its proposals.
"""

from __future__ import annotations

from itertools import combinations, islice, permutations
from typing import NamedTuple

import numpy as np

from ...formulas.expression_trees import evaluate, on_state
from ...system import GAUSSIAN, NEGATIVE_BINOMIAL, ORDERED, Equation, Floats, Ints
from ..marginal.mode import ModeFit, climb, least_squares, link_scale_response, settle
from .design import problem_of
from .layout import parameter_starts
from .posterior import EnumeratedPosterior
from .true_categories import true_codes

APART = 1.0  # standard deviations from which on two climbs ended at different modes
MATTERS = 12.0  # log density below the highest at which another mode has no weight
ROUNDS, HIGHER = 4, 0.5  # times that levels change places; the gain at which they do once more
LOOKED_AT = 2_000  # records by which modes with other labels are looked for
ALL_ORDERS, MOST_PAIRS = 4, 30  # levels of which all orders are tried; pairs that change places of more


class Ascent(NamedTuple):
    """Where a climb begins or has ended, and the scale of the parameters there."""

    point: Floats
    root: Floats


def modes_of(posterior: EnumeratedPosterior) -> tuple[ModeFit, ...]:
    """Climb from several starts and return the modes that matter, the highest first; none where it is not proper.

    Where noise hardly leaves a category, a model in which levels have changed places fits nearly as well: the
    highest mode's categories are given other places, until nothing higher is found.
    """
    start, root = first_guess(posterior)
    starts = [Ascent(one, root) for one in (start, *_others(posterior, start))]
    found: list[tuple[float, ModeFit]] = []
    improper = top = -np.inf
    for _ in range(ROUNDS):
        for ascent in starts:
            end = climb(posterior, *ascent)
            if _is_known(found, end) or not posterior.gradient(end)[0] > top - MATTERS:
                continue
            settled = settle(posterior, end, ascent.root)
            value = posterior.gradient(end if settled is None else settled[0])[0]
            if settled is None:
                improper = max(improper, value)
            elif not _is_known(found, settled[0]):
                found.append((value, ModeFit(*settled, 0.0)))
        highest = max((value for value, _ in found), default=-np.inf)
        if improper > highest or not highest > top + HIGHER:
            break
        top = highest
        starts = _relabelled_ascents(posterior, max(found, key=lambda one: one[0])[1])
    if improper > top:
        return ()
    kept = [one for one in found if one[0] > top - MATTERS]
    return tuple(fit for _, fit in sorted(kept, key=lambda one: -one[0]))


def _is_known(found: list[tuple[float, ModeFit]], theta: Floats) -> bool:
    """Whether a climb ended at one of the modes."""
    return any(np.linalg.norm(np.linalg.solve(fit.root, theta - fit.mode)) < APART for _, fit in found)


def _relabelled_ascents(posterior: EnumeratedPosterior, fit: ModeFit) -> list[Ascent]:
    """Return points near which there are modes with other labels on the levels, where such may matter.

    Of a large file some records are looked at: what is so much less likely there has no weight in all.
    """
    system, n = posterior.problem.system, len(posterior.problem.system)
    rows = np.linspace(0, n - 1, min(n, LOOKED_AT)).astype(np.int64)
    some = posterior if len(rows) == n else posterior.of(rows)
    own, share = some.problem.system, n / len(rows)
    each = problem_of(own, counting=False)
    drawn = true_codes(each, some.prepared(fit.mode[None]), np.random.default_rng(0))
    found, values = [], []
    for j, variable in enumerate(system.variables):
        if not variable.is_category or j == system.interest.response or not own.unknown[:, j].any():
            continue
        for order in _orders(len(variable.levels)):
            state, hidden = drawn.copy(), own.unknown[:, j]
            state[hidden, j] = order[state[hidden, j].astype(np.int64)]
            start, root = first_guess(some, state)
            end = climb(some, start, root)
            found.append(Ascent(end, root / share**0.5))
            values.append(some.gradient(end)[0])
    least = some.gradient(fit.mode)[0] - 2.0 * MATTERS * share**-0.5
    return [one for one, value in zip(found, values, strict=True) if value > least]


def _orders(levels: int) -> list[Ints]:
    """Return ways to change the places of levels: all of few, else those of two levels."""
    if levels <= ALL_ORDERS:
        return [np.array(order) for order in permutations(range(levels))][1:]
    found = []
    for a, b in islice(combinations(range(levels), 2), MOST_PAIRS):
        order = np.arange(levels)
        order[[a, b]] = b, a
        found.append(order)
    return found


def _others(posterior: EnumeratedPosterior, start: Floats) -> list[Floats]:
    """Return starts from which another mode would be found: what depends on levels nil, and turned round."""
    problem = posterior.problem
    changing = np.abs(problem.turn[problem.shape.shift[-1] :]).sum(axis=0) > 0
    found = []
    for factor in (0.0, -1.0):
        other = start.copy()
        other[posterior.linear[changing]] *= factor
        found.append(other)
    return found


def first_guess(posterior: EnumeratedPosterior, state: Floats | None = None) -> tuple[Floats, Floats]:
    """Return a start from least squares on released (or other) values, and the scale of the parameters around it."""
    system, size = posterior.problem.system, len(posterior)
    theta, root = np.zeros(size), np.zeros((size, size))
    for equation, start in zip(system.equations, parameter_starts(system), strict=True):
        here = posterior.linear[start : start + len(equation.names)]
        design, own = _columns(
            posterior, equation, posterior.problem.system.state if state is None else state
        )
        prior_sd = posterior.sd[start : start + len(equation.names)]
        family = equation.family
        target, width = _ordered_utilities(own) if family == ORDERED else link_scale_response(family, own)
        if equation is system.interest and equation.offset is not None:
            target = target - _offset(posterior)
        theta[here], inverse, sd = least_squares(design, target, prior_sd)
        root[np.ix_(here, here)] = (sd if family == GAUSSIAN else width) * inverse
        if equation is system.interest:
            _start_extra(posterior, own, sd, theta, root)
    return theta, root


def _columns(posterior: EnumeratedPosterior, equation: Equation, state: Floats) -> tuple[Floats, Floats]:
    """Return the columns and the response of an equation at some values, of the records it speaks of."""
    system = posterior.problem.system
    own = state[:, equation.response]
    if equation.stick is not None:
        rows = own >= equation.stick
        own = (own == equation.stick).astype(np.float64)
    else:
        rows = np.ones(len(system), bool) if system.counted is None else system.counted
    rows = rows if rows.any() else np.ones(len(system), bool)
    values = {variable.name: state[rows, j] for j, variable in enumerate(system.variables)}
    columns = np.empty((int(rows.sum()), len(equation.columns)))
    for k, node in enumerate(equation.columns):
        centre = equation.centres[k] if equation.centres else 0.0
        columns[:, k] = evaluate(on_state(node, system.variables), values) - centre
    return columns, own[rows]


def _offset(posterior: EnumeratedPosterior) -> Floats:
    system = posterior.problem.system
    assert system.interest.offset is not None
    values = {variable.name: system.state[:, j] for j, variable in enumerate(system.variables)}
    offset = evaluate(on_state(system.interest.offset, system.variables), values)
    return offset if system.counted is None else offset[system.counted]


def _ordered_utilities(codes: Floats) -> tuple[Floats, float]:
    """Return the utilities expected of codes, and the sd one record leaves a coefficient of size 1."""
    from scipy.special import ndtri

    count = int(codes.max()) + 1
    shares = np.bincount(codes.astype(np.int64), minlength=count) / len(codes)
    middles = np.clip(np.cumsum(shares) - 0.5 * shares, 1e-3, 1.0 - 1e-3)
    return np.asarray(ndtri(middles))[codes.astype(np.int64)], 1.5


def _start_extra(posterior: EnumeratedPosterior, own: Floats, sd: float, theta: Floats, root: Floats) -> None:
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

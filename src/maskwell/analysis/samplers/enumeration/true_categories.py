"""The categories that the enumerated sampler summed over, drawn afterwards given the parameters.

P(c | release, theta) is proportional to the summand of the likelihood: exact draws by inversion, one for each record
and kept draw of theta. Called by `sampler` where true values are asked for. Composition: p(theta | release) p(c |
theta, release) is the joint law (Tanner and Wong 1987).
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ...results.draws import Draws
from ...system import PROBIT, Floats, Ints
from ..gibbs.layout import unknown_variables
from .columns import categories_of, combinations_of
from .design import EnumeratedProblem, problem_of
from .posterior import EnumeratedPosterior, Extra


def with_truths(
    posterior: EnumeratedPosterior, draws: Draws, thetas: Floats, kept: int, rng: np.random.Generator
) -> Draws:
    """Add draws of the true categories, for `kept` evenly spaced draws of each chain."""
    system, problem = posterior.problem.system, posterior.problem
    if len(problem.records.counts):  # every record has its own categories
        problem = problem_of(system, counting=False)
    chains, count = thetas.shape[:2]
    kept = min(kept, count)
    columns = unknown_variables(system)
    truths = np.empty((chains, kept, len(system), len(columns)), np.float32)
    for c in range(chains):
        for k in range(kept):
            theta = thetas[c, k * max(count // kept, 1)]
            truths[c, k] = true_codes(problem, posterior.prepared(theta[None]), rng)[:, columns]
    return replace(draws, truths=truths, truth_names=tuple(system.variables[j].name for j in columns))


def true_codes(
    problem: EnumeratedProblem, prepared: tuple[Floats, Extra], rng: np.random.Generator
) -> Floats:
    """Draw the true state of all records given parameters as the compiled loops take them."""
    from ....kernels.enumerated_gradient import draw_combinations
    from ....kernels.enumerated_likelihood import room_for

    system, (linear, extra) = problem.system, prepared
    chosen = np.empty(len(system))
    given = linear[0], extra.values[0]
    draw_combinations(
        problem.records, problem.shape, given, room_for(problem.shape), rng.random(len(system)), chosen
    )
    categories, state = categories_of(system), system.state.copy()
    combination = chosen.astype(np.int64)
    state[:, categories] = combinations_of(system, categories)[combination]
    answer = system.interest.response
    hidden = system.unknown[:, answer]
    if hidden.any():
        zero, one = _binary_chances(problem, linear[0], combination)
        drawn = rng.random(len(system)) * (zero + one) < one
        state[hidden, answer] = drawn[hidden]
    return state


def _binary_chances(problem: EnumeratedProblem, linear: Floats, combination: Ints) -> tuple[Floats, Floats]:
    """Return how likely 0 and 1 are of a binary response, given what was released of it and the predictors."""
    from scipy.special import expit, ndtr

    shape, known, e = problem.shape, problem.records.known, len(problem.shape.begin) - 2
    eta = np.zeros(len(combination))
    for place in range(shape.begin[e], shape.begin[e + 1]):
        eta += linear[place] * known[shape.source[place]]
    moving = shape.move[shape.turn[e] : shape.turn[e + 1]]
    first = shape.shift[e] + shape.variant[combination] * len(moving)
    for m, source in enumerate(moving):
        eta += linear[first + m] * known[source]
    chance = ndtr if shape.family == PROBIT else expit
    return problem.records.response[0] * chance(-eta), problem.records.response[1] * chance(eta)

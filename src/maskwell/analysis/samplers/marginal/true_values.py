"""True values given parameters: what the closed form and the marginal sampler integrated out, drawn afterwards.

Given the parameters, x is normal given what was released, and the response tells of it by one linear combination. So
the linear predictor is drawn from its own law (a gaussian response gives it up to its error), and x is moved along its
regression on it until they agree (Matheron's rule, as in Wilson and others 2020: a draw given a value is a free one
plus the gain times what it lacks). Called by `joint_draws` where true values are asked for.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ...priors import Priors
from ...results.draws import Draws
from ...system import GAUSSIAN, LOGIT, NEGATIVE_BINOMIAL, PROBIT, Floats, System
from .design import problem_of, resolved_priors
from .families import has_extra
from .posterior import MarginalPosterior, ParameterLaw, ParameterLayout
from .problem import Filter, MarginalProblem, NormalKind, filter_of

POINTS = 121  # of the grid on which a linear predictor is drawn
REACH = 7.0  # standard deviations to either side of its mode
STEPS = 30  # of Newton to the mode of a linear predictor
CHUNK = 1 << 14  # records held in one go


def with_truths(system: System, draws: Draws, kept: int, rng: np.random.Generator) -> Draws:
    """Add draws of the true values to draws of the parameters, for `kept` evenly spaced draws of each chain."""
    posterior = MarginalPosterior(problem_of(system), resolved_priors(system, Priors()))
    chains, count = draws.values.shape[:2]
    kept = min(kept, count)
    columns = [int(j) for j in system.noise.columns]
    truths = np.empty((chains, kept, len(system), len(columns)), np.float32)
    for c in range(chains):
        for k in range(kept):
            at = k * max(count // kept, 1)
            theta = _theta(system, draws, c, at)
            truths[c, k] = _true_values(system, posterior, theta, rng)
    return replace(draws, truths=truths, truth_names=tuple(system.variables[j].name for j in columns))


def _theta(system: System, draws: Draws, chain: int, at: int) -> ParameterLayout:
    """Put the parameters of one draw together again."""
    values, nuisance = draws.values[chain, at], draws.nuisance
    size = len(system.interest.names)
    extra = float(np.log(values[size])) if has_extra(system.interest.family) else 0.0
    ends = np.cumsum([len(equation.names) + 1 for equation in system.equations[:-1]]).astype(int)
    parts = np.split(nuisance[chain, at], ends[:-1]) if nuisance is not None and len(ends) else []
    sds = np.array([part[-1] for part in parts])
    return ParameterLayout(values[:size], extra, tuple(part[:-1] for part in parts), np.log(sds))


def _true_values(
    system: System, posterior: MarginalPosterior, parameters: ParameterLayout, rng: np.random.Generator
) -> npt.NDArray[np.float32]:
    """Draw the true values of all records, in the order of the noise's columns and in the data's units."""
    problem, law = posterior.problem, posterior.law(parameters)
    given = TrueValueConditions(problem, law, parameters)
    filters = [filter_of(kind, law.covariance) for kind in problem.kinds]
    moments = posterior.predictors(parameters, law, filters)
    columns = [int(j) for j in system.noise.columns]
    places = [columns.index(equation.response) for equation in system.equations[:-1]]
    found = np.empty((len(problem), len(columns)))
    for kind, known in zip(problem.kinds, filters, strict=True):
        for start in range(kind.start, kind.stop, CHUNK):
            here = slice(start, min(start + CHUNK, kind.stop))
            x = _numbers(given, kind, known, (moments[0][here], moments[1][here]), here, rng)
            found[here, places] = x + problem.centre
            if system.interest.response in columns:
                own = _true_response(given, kind, x, here, rng)
                found[here, columns.index(system.interest.response)] = own
    out = np.empty_like(found)
    out[problem.order] = found
    for k, j in enumerate(columns):
        shift = system.variables[j].log_shift
        if shift is not None:
            out[:, k] = np.exp(out[:, k]) - shift
    return out.astype(np.float32)


class TrueValueConditions(NamedTuple):
    """What true values are drawn given."""

    problem: MarginalProblem
    law: ParameterLaw
    parameters: ParameterLayout

    def slopes(self, here: slice) -> Floats:
        """Return the slopes of the unknown numbers in the linear predictors of some records."""
        own = np.einsum("skq,k->sq", self.problem.slopes, self.parameters.coefficients)
        return np.asarray(self.problem.multipliers[here] @ own)


def _numbers(
    given: TrueValueConditions,
    kind: NormalKind,
    known: Filter,
    moments: tuple[Floats, Floats],
    here: slice,
    rng: np.random.Generator,
) -> Floats:
    """Draw the unknown numbers, less their centre, of records of one kind."""
    problem, extra = given.problem, given.parameters.extra
    u, y = problem.released[here], problem.response[here]
    mean, variance = moments
    slopes, level = given.slopes(here) - kind.lean, problem.clean[here] @ given.law.level
    middle = level + (u - level) @ known.gain.T
    x = middle + rng.standard_normal(middle.shape) @ _root(known.left).T
    guess = mean + ((x - middle) * slopes).sum(axis=1)
    if problem.family == GAUSSIAN:
        residual = np.exp(2.0 * extra)
        variance = variance + residual
        target = y - np.sqrt(residual + kind.extra) * rng.standard_normal(len(y))
    else:
        target = draw_predictor(problem.family, y, extra, moments, rng)
    share = (target - guess) / np.maximum(variance, 1e-300)
    x += (slopes @ known.left) * np.where(variance > 1e-300, share, 0.0)[:, None]
    return x


def _true_response(
    given: TrueValueConditions, kind: NormalKind, x: Floats, here: slice, rng: np.random.Generator
) -> Floats:
    """Draw the true response: its noise leans on that of the predictors, what is left is shared with the residual."""
    problem, parameters = given.problem, given.parameters
    y, residual = problem.response[here], np.exp(2.0 * parameters.extra)
    predicted = problem.columns[here] @ parameters.coefficients + (x * given.slopes(here)).sum(axis=1)
    if problem.fixed is not None:
        predicted = predicted + problem.fixed[here]
    expected = (problem.released[here] - x) @ kind.lean
    share = kind.extra / (kind.extra + residual)
    noise = expected + share * (y - expected - predicted)
    return np.asarray(y - noise - np.sqrt(share * residual) * rng.standard_normal(len(y)))


def _root(covariance: Floats) -> Floats:
    """Return a root of a covariance that may be singular: some numbers may be known."""
    values, vectors = np.linalg.eigh(0.5 * (covariance + covariance.T))
    return np.asarray(vectors * np.sqrt(np.maximum(values, 0.0)))


def draw_predictor(
    family: int, y: Floats, extra: float, moments: tuple[Floats, Floats], rng: np.random.Generator
) -> Floats:
    """Draw linear predictors from their density, normal times likelihood, tabulated about its mode."""
    mean, variance = moments[0], np.maximum(moments[1], 1e-14)
    at = mean.copy()
    for _ in range(STEPS):
        _, first, second = _terms(family, y, at, extra)
        step = np.clip((first - (at - mean) / variance) / (1.0 / variance - second), -2.0, 2.0)
        at += step
        if np.abs(step).max(initial=0.0) < 1e-6:
            break
    bend = 1.0 / variance - _terms(family, y, at, extra)[2]
    # a binary response bends less far from the mode, so that tails are those of the normal law alone
    sd = np.sqrt(variance) if family in (LOGIT, PROBIT) else 1.0 / np.sqrt(bend)
    grid = np.linspace(-REACH, REACH, POINTS)
    eta = at[:, None] + sd[:, None] * grid
    logs = _terms(family, y[:, None], eta, extra)[0] - 0.5 * (eta - mean[:, None]) ** 2 / variance[:, None]
    heights = np.exp(logs - logs.max(axis=1, keepdims=True))
    areas = np.cumsum(0.5 * (heights[:, 1:] + heights[:, :-1]), axis=1)
    wanted = rng.random(len(y)) * areas[:, -1]
    cell = np.minimum((areas < wanted[:, None]).sum(axis=1), POINTS - 2)
    rows = np.arange(len(y))
    before = np.where(cell > 0, areas[rows, cell - 1], 0.0)
    inside = (wanted - before) / np.maximum(areas[rows, cell] - before, 1e-300)
    return np.asarray(at + sd * (grid[cell] + inside * (grid[1] - grid[0])))


def _terms(family: int, y: Floats, eta: Floats, extra: float) -> tuple[Floats, Floats, Floats]:
    """Return l(eta), l'(eta) and l''(eta)."""
    from scipy.special import expit, log_ndtr

    if family == LOGIT:
        one = expit(eta)
        return y * eta - np.logaddexp(0.0, eta), y - one, -one * (1.0 - one)
    if family == PROBIT:
        sign = 2.0 * y - 1.0
        log = log_ndtr(sign * eta)
        ratio = np.exp(-0.5 * eta**2 - 0.5 * np.log(2.0 * np.pi) - log)
        return log, sign * ratio, -ratio * (ratio + sign * eta)
    eta = np.minimum(eta, 600.0)
    if family == NEGATIVE_BINOMIAL:
        shape, lean = np.exp(extra), expit(eta - extra)
        below = np.logaddexp(0.0, eta - extra)
        return y * eta - (y + shape) * below, y - (y + shape) * lean, -(y + shape) * lean * (1.0 - lean)
    rate = np.exp(eta)
    return y * eta - rate, y - rate, -rate

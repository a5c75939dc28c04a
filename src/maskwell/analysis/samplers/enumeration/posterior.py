"""The posterior of a model's parameters with its unknown categories summed over, and its gradient.

log p(theta | release) = log prior + sum over records of log sum over combinations (`kernels.enumerated_likelihood`,
`kernels.enumerated_gradient`), with log sigma, log shape, or the first cut and the logs of the gaps between cuts as
parameters and their Jacobians. Sampled by `sampler`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ...priors import ResolvedPriors
from ...system import GAUSSIAN, NEGATIVE_BINOMIAL, ORDERED, Floats, Ints
from ..gibbs.ordered_probit import CUT_SD
from ..marginal.problem import half_t
from .design import EnumeratedProblem

FARTHEST_CUT = 1e4  # stands for infinity where a normal law ends


class Extra(NamedTuple):
    """What a family has beside coefficients, as the loops take it; the logs of its prior and of what they leave out."""

    values: Floats
    log: Floats


class EnumeratedPosterior:
    """The log posterior density as a function of vectors of parameters, constants apart.

    A vector has the coefficients of interest; log sigma, log shape, or the first cut and the logs of the gaps between
    cuts; and the coefficients of all sticks.
    """

    def __init__(self, problem: EnumeratedProblem, priors: Sequence[ResolvedPriors]) -> None:
        interest = problem.system.interest
        self.problem, self.family, self.priors = problem, interest.family, priors
        self.interest_prior = priors[-1]
        ordered = (priors[-1], *priors[:-1])
        self.mean = np.concatenate([prior.mean for prior in ordered])
        self.sd = np.concatenate([prior.sd for prior in ordered])
        extra = 1 if self.family in (GAUSSIAN, NEGATIVE_BINOMIAL) else 0
        if self.family == ORDERED:
            extra = len(problem.system.variables[interest.response].levels) - 1
        first = len(interest.names)
        self.extra = np.arange(first, first + extra)
        self.linear = np.concatenate([np.arange(first), np.arange(first + extra, len(self.mean) + extra)])

    def __len__(self) -> int:
        return len(self.extra) + len(self.linear)

    def of(self, records: Ints) -> EnumeratedPosterior:
        """Return the posterior by some of the records."""
        from ...survey_weights.resamples import resampled_system
        from .design import problem_of

        return EnumeratedPosterior(problem_of(resampled_system(self.problem.system, records)), self.priors)

    @property
    def axes(self) -> Ints:
        """The parameters in the order of a proposal's axes: those of the covariate model and sigma first."""
        first = len(self.problem.system.interest.names)
        return np.concatenate([np.arange(first, len(self)), np.arange(first)])

    def log_densities(self, thetas: Floats) -> Floats:
        """Return the log density of each row, minus infinity where it has none."""
        from ....kernels.enumerated_likelihood import room_for, totals

        out, problem = np.empty(len(thetas)), self.problem
        with np.errstate(all="ignore"):
            linear, extra = self.prepared(thetas)
            bad = ~(np.isfinite(linear).all(axis=1) & np.isfinite(extra.log))
            linear[bad] = 0.0
            totals(problem.records, problem.shape, linear, extra.values, room_for(problem.shape), out)
            away = (thetas[:, self.linear] - self.mean) / self.sd
            out += extra.log - 0.5 * (away**2).sum(axis=1)
        return np.where(~bad & np.isfinite(out), out, -np.inf)

    def prepared(self, thetas: Floats) -> tuple[Floats, Extra]:
        """Return what the compiled loops take for each row."""
        linear = thetas[:, self.linear] @ self.problem.turn.T + self.problem.fixed
        return linear, self._extra(thetas[:, self.extra])

    def gradient(self, theta: Floats) -> tuple[float, Floats]:
        """Return the log density and its gradient."""
        from ....kernels.enumerated_gradient import slopes
        from ....kernels.enumerated_likelihood import room_for

        problem = self.problem
        with np.errstate(all="ignore"):
            linear, extra = self.prepared(theta[None])
            if not (np.isfinite(linear).all() and np.isfinite(extra.log[0])):
                return -np.inf, np.zeros(len(self))
            by = np.empty(linear.shape[1]), np.empty(extra.values.shape[1])
            room = room_for(problem.shape)
            total = slopes(problem.records, problem.shape, linear[0], extra.values[0], room, by)
        away = (theta[self.linear] - self.mean) / self.sd
        out = np.empty(len(self))
        out[self.linear] = problem.turn.T @ by[0] - away / self.sd
        out[self.extra] = self._extra_slopes(theta[self.extra], by[1])
        return float(total + extra.log[0] - 0.5 * (away @ away)), out

    def _extra(self, own: Floats) -> Extra:
        """Return log sigma, log shape or the cuts, with the log prior and what the loops leave out."""
        if self.family == GAUSSIAN:
            scale = np.array([self.interest_prior.residual_scale])
            return Extra(own, half_t(own[:, 0], scale)[0] - self.problem.heard * own[:, 0])
        if self.family == NEGATIVE_BINOMIAL:
            width = self.interest_prior.shape_log_sd
            return Extra(own, self._constant(np.exp(own[:, 0])) - 0.5 * (own[:, 0] / width) ** 2)
        if self.family == ORDERED:
            cuts = cuts_of(own)
            log = own[:, 1:].sum(axis=1) - 0.5 * ((cuts / CUT_SD) ** 2).sum(axis=1)
            end = np.full((len(own), 1), FARTHEST_CUT)
            return Extra(np.hstack([-end, cuts, end]), log)
        return Extra(np.zeros((len(own), 1)), np.zeros(len(own)))

    def _extra_slopes(self, own: Floats, by: Floats) -> Floats:
        """Return the derivatives by log sigma, log shape or what the cuts are made of; `by` are the likelihood's."""
        if self.family == GAUSSIAN:
            scale = np.array([self.interest_prior.residual_scale])
            return np.asarray(by + half_t(own, scale)[1] - self.problem.heard)
        if self.family == NEGATIVE_BINOMIAL:
            from scipy.special import digamma

            shape, width = float(np.exp(own[0])), self.interest_prior.shape_log_sd
            each = digamma(self.problem.levels + shape) - digamma(shape)
            return np.asarray(by + shape * (self.problem.level_counts @ each) - own / width**2)
        if self.family == ORDERED:
            by_cuts = by[1:-1] - cuts_of(own[None])[0] / CUT_SD**2
            sums = np.cumsum(by_cuts[::-1])[::-1]  # a gap moves all cuts after it
            return np.concatenate([sums[:1], sums[1:] * np.exp(own[1:]) + 1.0])
        return np.empty(0)

    def _constant(self, shape: Floats) -> Floats:
        """Return the sum of log gamma(y + shape) / gamma(shape)."""
        from scipy.special import gammaln

        each = gammaln(self.problem.levels[:, None] + shape) - gammaln(shape)
        return np.asarray(self.problem.level_counts @ each)


def cuts_of(own: Floats) -> Floats:
    """Return the cuts of which each row has the first and the logs of the gaps between them."""
    return np.cumsum(np.hstack([own[:, :1], np.exp(own[:, 1:])]), axis=1)

"""The posterior of a model's parameters with its unknown numbers integrated out, and its gradient.

log p(theta | release) = log prior + sum of log N(u; A'w, S + N) + sum of log p(y | mean, variance of eta given u)

with the letters of `problem`; own derivation of the gradient by the chain rule through the filter H = S (S + N)^-1.
Sampled by `sampler`; its mode serves weighted resamples (`survey_weights.estimates`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ...priors import ResolvedPriors
from ...system import GAUSSIAN, NEGATIVE_BINOMIAL, Floats, Ints
from .batches import log_densities
from .families import ResponseLikelihood, has_extra
from .problem import Filter, MarginalProblem, NormalKind, features_of, filter_of, half_t, moments_of


class ParameterLayout(NamedTuple):
    """Coefficients of interest, log of sigma or shape, coefficients of each covariate, logs of their sds."""

    coefficients: Floats
    extra: float
    covariates: tuple[Floats, ...]
    log_sds: Floats


class ParameterLaw(NamedTuple):
    """The law of the unknown numbers given the clean columns: mean A' w, covariance M diag(sd^2) M'."""

    level: Floats
    clean: Floats
    turn: Floats
    covariance: Floats


@dataclass(slots=True)
class Down:
    """Derivatives of the log likelihood by coefficients of interest, by A and by the covariance of the unknown."""

    coefficients: Floats
    level: Floats
    covariance: Floats


class MarginalPosterior:
    """The log posterior density as a function of one vector of parameters, constants apart."""

    def __init__(self, problem: MarginalProblem, priors: Sequence[ResolvedPriors]) -> None:
        self.problem, self.priors = problem, tuple(priors)
        self.family = ResponseLikelihood(problem.family, problem.response)
        self.features, self.moments = features_of(problem), moments_of(problem)
        sizes = [problem.columns.shape[1], int(has_extra(problem.family))]
        sizes += [covariate.clean.shape[1] for covariate in problem.covariates] + [len(problem.covariates)]
        self.ends = np.cumsum(sizes)
        self.distinct = self.features.means.shape[1]
        self.selection = np.eye(self.distinct)[self.features.chosen]

    def __len__(self) -> int:
        return int(self.ends[-1])

    def unpack(self, theta: Floats) -> ParameterLayout:
        """Return the parameters that a vector holds."""
        parts = np.split(theta, self.ends[:-1])
        return ParameterLayout(parts[0], float(parts[1].sum()), tuple(parts[2:-1]), parts[-1])

    def pack(self, parameters: ParameterLayout) -> Floats:
        """Return the vector that holds some parameters."""
        extra = [parameters.extra] if has_extra(self.problem.family) else []
        return np.concatenate([parameters.coefficients, extra, *parameters.covariates, parameters.log_sds])

    def value(self, theta: Floats) -> float:
        """Return the log density; minus infinity where it has none."""
        parameters = self.unpack(theta)
        law = self.law(parameters)
        try:
            filters = [filter_of(kind, law.covariance) for kind in self.problem.kinds]
        except np.linalg.LinAlgError:
            return -np.inf
        mean, variance = self.predictors(parameters, law, filters)
        total = self.family.total(mean, variance, parameters.extra)
        for which, known in enumerate(filters):
            total += self._released(which, known, law, None)
        total += self._prior(parameters)[0]
        return total if np.isfinite(total) else -np.inf

    @property
    def axes(self) -> Ints:
        """The parameters in the order of a proposal's axes: the logs of sds first."""
        sds = int(self.ends[-2])
        return np.concatenate([np.arange(sds, len(self)), np.arange(sds)])

    def log_densities(self, thetas: Floats) -> Floats:
        """Return the log density of each row, minus infinity where it has none."""
        return log_densities(self, thetas)

    def gradient(self, theta: Floats) -> tuple[float, Floats]:
        """Return the log density and its gradient."""
        parameters = self.unpack(theta)
        law = self.law(parameters)
        filters = [filter_of(kind, law.covariance) for kind in self.problem.kinds]
        mean, variance = self.predictors(parameters, law, filters)
        slopes = self.family.slopes(mean, variance, parameters.extra)
        prior, by_prior = self._prior(parameters)
        down = Down(
            *(np.zeros(shape.shape) for shape in (parameters.coefficients, law.level, law.covariance))
        )
        total = slopes.total + prior
        for which, known in enumerate(filters):
            total += self._released(which, known, law, down)
            self._response(which, known, law, parameters.coefficients, (slopes.mean, slopes.variance), down)
        covariates, log_sds = self._through(parameters, law, down)
        extra = slopes.extra
        return total, by_prior + self.pack(ParameterLayout(down.coefficients, extra, covariates, log_sds))

    def law(self, parameters: ParameterLayout) -> ParameterLaw:
        """Return the law of the unknown numbers."""
        q = len(self.problem.covariates)
        before = np.zeros((q, q))
        clean = np.zeros((self.problem.clean.shape[1], q))
        for j, (covariate, own) in enumerate(
            zip(self.problem.covariates, parameters.covariates, strict=True)
        ):
            before[j] = covariate.before @ own
            clean[:, j] = covariate.clean @ own + covariate.shift
        turn: Floats = np.linalg.inv(np.eye(q) - before).astype(np.float64, copy=False)
        wide = turn * np.exp(parameters.log_sds)
        return ParameterLaw(clean @ turn.T, clean, turn, wide @ wide.T)

    def predictors(
        self, parameters: ParameterLayout, law: ParameterLaw, filters: Sequence[Filter]
    ) -> tuple[Floats, Floats]:
        """Return means and variances of the linear predictors given what was released."""
        problem, features = self.problem, self.features
        mean, variance = np.empty(len(problem)), np.empty(len(problem))
        for kind, known in zip(problem.kinds, filters, strict=True):
            own = _own_slopes(problem, kind, parameters.coefficients)
            parts = [parameters.coefficients]
            for s, slope in enumerate(own):
                parts.append(law.level @ (slope - known.gain.T @ slope))
                parts.append(known.gain.T @ slope + (kind.lean if s == 0 else 0.0))
            every = np.bincount(features.chosen, np.concatenate(parts), self.distinct)
            here = slice(kind.start, kind.stop)
            mean[here] = features.means[here] @ every
            spread = own @ known.left @ own.T
            variance[here] = kind.extra + (
                spread[0, 0] if features.pairs is None else features.pairs[here] @ spread.ravel()
            )
        if problem.fixed is not None:
            mean += problem.fixed
        return mean, np.maximum(variance, 0.0)

    def _released(self, which: int, known: Filter, law: ParameterLaw, down: Down | None) -> float:
        """Return the log density of what was released; add its derivatives."""
        moments, level, precision = self.moments[which], law.level, known.precision
        across = level.T @ moments.mixed
        scatter = moments.released - across - across.T + level.T @ moments.clean @ level
        if down is not None:
            down.covariance += 0.5 * (precision @ scatter @ precision - moments.records * precision)
            down.level += (moments.mixed - moments.clean @ level) @ precision
        return -0.5 * moments.records * known.log_det - 0.5 * float((precision * scatter).sum())

    def _response(
        self,
        which: int,
        known: Filter,
        law: ParameterLaw,
        coefficients: Floats,
        by: tuple[Floats, Floats],
        down: Down,
    ) -> None:
        """Add the derivatives of the response's log likelihood, through means and variances of linear predictors."""
        problem, kind = self.problem, self.problem.kinds[which]
        here = slice(kind.start, kind.stop)
        own = _own_slopes(problem, kind, coefficients)
        count, r, q = len(own), problem.clean.shape[1], len(law.covariance)
        along = (self.features.means[here].T @ by[0][here])[self.features.chosen]
        by_pair = (
            np.full((1, 1), by[1][here].sum())
            if self.features.pairs is None
            else (self.features.pairs[here].T @ by[1][here]).reshape(count, count)
        )
        k = len(coefficients)
        by_clean, by_released = np.split(along[k:].reshape(count, r + q), [r], axis=1)
        heard = by_released - by_clean @ law.level
        rest = np.eye(q) - known.gain
        by_own = by_clean @ law.level + heard @ known.gain.T + 2.0 * by_pair @ own @ known.left
        down.coefficients += along[:k] + np.einsum("skq,sq->k", problem.slopes, by_own)
        down.level += by_clean.T @ own @ rest
        by_gain = rest.T @ (own.T @ heard) @ known.precision
        down.covariance += 0.5 * (by_gain + by_gain.T) + rest.T @ (own.T @ by_pair @ own) @ rest

    def _through(
        self, parameters: ParameterLayout, law: ParameterLaw, down: Down
    ) -> tuple[tuple[Floats, ...], Floats]:
        """Return the derivatives by the covariates' coefficients and log sds."""
        variances = np.exp(2.0 * parameters.log_sds)
        by_turn = 2.0 * down.covariance @ law.turn * variances + down.level.T @ law.clean
        by_clean, by_before = down.level @ law.turn, law.turn.T @ by_turn @ law.turn.T
        by_sds = 2.0 * variances * np.einsum("ij,ik,kj->j", law.turn, down.covariance, law.turn)
        found = [
            covariate.clean.T @ by_clean[:, j] + covariate.before.T @ by_before[j]
            for j, covariate in enumerate(self.problem.covariates)
        ]
        return tuple(found), by_sds

    def _prior(self, parameters: ParameterLayout) -> tuple[float, Floats]:
        """Return the log prior density and its gradient: normal coefficients, half-t sds, log-normal shape."""
        total, slopes = 0.0, []
        for prior, own in zip(self.priors, (*parameters.covariates, parameters.coefficients), strict=True):
            away = (own - prior.mean) / prior.sd
            total -= 0.5 * float(away @ away)
            slopes.append(-away / prior.sd)
        scales = np.array([prior.residual_scale for prior in self.priors])
        logs, by_sds = half_t(parameters.log_sds, scales[:-1])
        total, by_extra = total + float(logs.sum()), 0.0
        if self.problem.family == GAUSSIAN:
            log, slope = half_t(np.array([parameters.extra]), scales[-1:])
            total, by_extra = total + float(log[0]), float(slope[0])
        elif self.problem.family == NEGATIVE_BINOMIAL:
            width = self.priors[-1].shape_log_sd
            total, by_extra = total - 0.5 * (parameters.extra / width) ** 2, -parameters.extra / width**2
        return total, self.pack(ParameterLayout(slopes[-1], by_extra, tuple(slopes[:-1]), by_sds))


def _own_slopes(problem: MarginalProblem, kind: NormalKind, coefficients: Floats) -> Floats:
    """Return b_s = D_s' b: multipliers x unknown numbers; noise on the response takes its part from the first."""
    own = np.einsum("skq,k->sq", problem.slopes, coefficients)
    own[0] -= kind.lean
    return np.asarray(own)

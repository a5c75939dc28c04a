"""The log posterior density of many vectors of parameters at once: what `MarginalPosterior.value` gives for each.

The same sums as in `posterior` and `problem`. The small matrices of all vectors are worked on together; only the
records' likelihood is taken one vector at a time. Used for proposals of `independence_chain`, a batch at a time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ...system import GAUSSIAN, NEGATIVE_BINOMIAL, Bools, Floats
from ..conjugate.reduced_form import lower_roots
from .problem import NormalKind, half_t

if TYPE_CHECKING:
    from .posterior import MarginalPosterior


class Laws(NamedTuple):
    """Many laws of the unknown numbers: levels A, covariances."""

    level: Floats
    covariance: Floats


class Filters(NamedTuple):
    """Many `Filter`s of a kind, and which of them exist."""

    precision: Floats
    gain: Floats
    left: Floats
    log_det: Floats
    good: Bools


def log_densities(posterior: MarginalPosterior, thetas: Floats) -> Floats:
    """Return the log density of each row, minus infinity where it has none."""
    parts = np.split(thetas, posterior.ends[:-1], axis=1)
    coefficients, extras = parts[0], parts[1].sum(axis=1)
    with np.errstate(all="ignore"):
        laws = _laws(posterior, parts[2:-1], parts[-1])
        every, spreads = [], []
        total, good = _priors(posterior, parts), np.isfinite(thetas).all(axis=1)
        for which, kind in enumerate(posterior.problem.kinds):
            known = _filters(kind, laws.covariance)
            good &= known.good
            total += _released_log_likelihood(posterior, which, known, laws)
            coefficient, spread = _predictors(posterior, kind, known, laws, coefficients)
            every.append(coefficient)
            spreads.append(spread)
        good &= np.isfinite(total)
        for b in np.flatnonzero(good):
            mean, variance = _moments(posterior, [own[b] for own in every], [own[b] for own in spreads])
            total[b] += posterior.family.total(mean, variance, float(extras[b]))
    return np.where(good & np.isfinite(total), total, -np.inf)


def _laws(posterior: MarginalPosterior, covariates: list[Floats], log_sds: Floats) -> Laws:
    problem = posterior.problem
    q, count = len(covariates), len(log_sds)
    before, clean = np.zeros((count, q, q)), np.empty((count, problem.clean.shape[1], q))
    for j, (covariate, own) in enumerate(zip(problem.covariates, covariates, strict=True)):
        before[:, j] = own @ covariate.before.T
        clean[:, :, j] = own @ covariate.clean.T + covariate.shift
    turn = np.linalg.inv(np.eye(q) - before)
    wide = turn * np.exp(log_sds)[:, None, :]
    return Laws(clean @ turn.transpose(0, 2, 1), wide @ wide.transpose(0, 2, 1))


def _filters(kind: NormalKind, covariance: Floats) -> Filters:
    seen = np.flatnonzero(kind.seen)
    inside = np.ix_(seen, seen)
    roots, good = lower_roots(covariance[:, seen[:, None], seen] + kind.noise[inside])
    inverse = np.linalg.inv(roots)
    precision = np.zeros(covariance.shape)
    precision[:, seen[:, None], seen] = inverse.transpose(0, 2, 1) @ inverse
    gain = covariance @ precision
    log_det = 2.0 * np.log(np.einsum("bjj->bj", roots)).sum(axis=1)
    return Filters(precision, gain, covariance - gain @ covariance, log_det, good)


def _released_log_likelihood(posterior: MarginalPosterior, which: int, known: Filters, laws: Laws) -> Floats:
    moments, level = posterior.moments[which], laws.level
    turned = level.transpose(0, 2, 1)
    across = turned @ moments.mixed
    scatter = moments.released - across - across.transpose(0, 2, 1) + turned @ moments.clean @ level
    return np.asarray(
        -0.5 * moments.records * known.log_det - 0.5 * (known.precision * scatter).sum(axis=(1, 2))
    )


def _predictors(
    posterior: MarginalPosterior, kind: NormalKind, known: Filters, laws: Laws, coefficients: Floats
) -> tuple[Floats, Floats]:
    """Return the coefficients of the distinct columns of means, and those of the pairs of multipliers."""
    own = np.einsum("skq,bk->bsq", posterior.problem.slopes, coefficients)
    own[:, 0] -= kind.lean
    heard = own @ known.gain
    by_clean = (own - heard) @ laws.level.transpose(0, 2, 1)
    heard[:, 0] += kind.lean
    parts = np.concatenate([by_clean, heard], axis=2).reshape(len(own), -1)
    whole = np.hstack([coefficients, parts]) @ posterior.selection
    return whole, own @ known.left @ own.transpose(0, 2, 1)


def _moments(
    posterior: MarginalPosterior, every: list[Floats], spreads: list[Floats]
) -> tuple[Floats, Floats]:
    """Return means and variances of the linear predictors for one vector of parameters."""
    problem, features = posterior.problem, posterior.features
    mean, variance = np.empty(len(problem)), np.empty(len(problem))
    for kind, own, spread in zip(problem.kinds, every, spreads, strict=True):
        here = slice(kind.start, kind.stop)
        np.dot(features.means[here], own, out=mean[here])
        if features.pairs is None:
            variance[here] = max(kind.extra + spread[0, 0], 0.0)
        else:
            variance[here] = np.maximum(kind.extra + features.pairs[here] @ spread.ravel(), 0.0)
    if problem.fixed is not None:
        mean += problem.fixed
    return mean, variance


def _priors(posterior: MarginalPosterior, parts: list[Floats]) -> Floats:
    total = np.zeros(len(parts[0]))
    for prior, own in zip(posterior.priors, (*parts[2:-1], parts[0]), strict=True):
        total -= 0.5 * (((own - prior.mean) / prior.sd) ** 2).sum(axis=1)
    scales = np.array([prior.residual_scale for prior in posterior.priors])
    total += half_t(parts[-1], scales[:-1])[0].sum(axis=1)
    if posterior.problem.family == GAUSSIAN:
        total += half_t(parts[1], scales[-1:])[0].sum(axis=1)
    elif posterior.problem.family == NEGATIVE_BINOMIAL:
        total -= 0.5 * ((parts[1] / posterior.priors[-1].shape_log_sd) ** 2).sum(axis=1)
    return total

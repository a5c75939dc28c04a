"""Fits with survey weights: a weighted bootstrap, after Goldstein, Carpenter and Kenward (2018).

Records are resampled so that each stands for as many as its weight says; every resample is fitted with the
noise taken into account like a release of its own, and the estimates are the draws: their spread is the
sampling variance of the weighted estimate, for a population in which the model need not hold for the records
as sampled. We differ from the paper in the variance of the counts (`resamples`), which is that of
the sandwich, and in that a resample gives one estimate, not draws: adding the posterior variance within
resamples would count the same uncertainty twice. The draws are centred at the estimate from the weighted
sample itself, so that the bias of a resample is not added to that of the sample.

With groups, whole groups are resampled (those of the coarsest factor), and the copies of one are groups of
their own. The weight of a group is the mean of its records' weights; within it, weights are scaled to a sum
of its size (Pfeffermann et al. 1998, "scaling 2") and rounded to counts by chance. As in every weighted
multilevel fit, weights that differ within small groups make the residual sd too small and that of the groups
too large (by 3% with six records a group and weights of a coefficient of variation of 0.5).

The sandwich is a large-sample formula: with 250 records of which the weights leave the information of 190,
95% intervals of slopes covered 92 to 95%.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ...errors import BadPlan, nearest
from ...masking import Release
from ..results.draws import Draws
from ..system import Floats, System
from .estimates import ROUNDINGS, Estimator, estimator_of
from .resamples import ResampledUnits

if TYPE_CHECKING:
    from ..model_fit import FitOptions

NAIVE_RESAMPLES = 200  # of the unadjusted fit
SMALL_GROUPS = 20  # records on average
LEAST_SHARE = 0.25  # of the variance of the estimates that is left when the error of their draws is taken out


def fit_weighted(
    system: System, release: Release, column: str, options: FitOptions, seed: np.random.SeedSequence
) -> Draws:
    """Fit a system to resamples that carry the weights of a column; return their estimates as draws.

    `options.draws` times `options.chains` resamples are made; without `draws` 1,000, or 600 where chains are
    needed.
    """
    weights = weights_of(release, column)
    if options.keep_truths:
        raise BadPlan(
            "true values are not kept with weights, which copy records; fit without weights to see them"
        )
    return _bootstrap(system, weights, options, seed)


def naive_weighted(
    system: System, release: Release, column: str, options: FitOptions, seed: np.random.SeedSequence
) -> Draws | None:
    """Fit the same weighted model to the released values as if they were true."""
    from ..model import as_if_true, complete_records

    seen, kept = as_if_true(system), weights_of(release, column)[complete_records(system)]
    if seen is None:
        return None
    draws = -(-NAIVE_RESAMPLES // options.chains)
    plain = replace(options, draws=draws, sampler="auto", keep_truths=False, progress=None)
    return _bootstrap(seen, kept, plain, seed)


def weights_of(release: Release, column: str) -> Floats:
    """Return the weights of the records; refuse a column that cannot hold any."""
    table = release.table
    numbers = [each.name for each in table.schema.columns if each.is_number]
    if column not in table.schema:
        raise BadPlan(
            f"weights names {column!r}, which is no column of the release{nearest(column, numbers)}"
        )
    if column not in numbers:
        raise BadPlan(f"weights names {column!r}, which is not a number{nearest(column, numbers)}")
    swapped = release.card.swapped
    if column in release.card.masked or (swapped is not None and column in swapped.columns):
        raise BadPlan(
            f"the weights {column!r} carry noise, so they no longer weigh; use a column released as it was"
        )
    weights = np.array(table.floats(column), np.float64)
    if (table.status(column) != 0).any() or not np.isfinite(weights).all():
        raise BadPlan(
            f"the weights {column!r} are missing for some records; drop these records from the table, or impute "
            "their weights, before the fit"
        )
    if not (weights > 0).all():
        raise BadPlan(
            f"the weights {column!r} are not above 0 for every record; release the file without such records"
        )
    return weights


def effective_records(weights: Floats) -> float:
    """Return of how many equally weighted records a mean is as sure (Kish 1965)."""
    return float(weights.sum() ** 2 / (weights**2).sum())


def _bootstrap(system: System, weights: Floats, options: FitOptions, seed: np.random.SeedSequence) -> Draws:
    units = ResampledUnits.of(system, weights)
    fitted = estimator_of(system, options.priors, options.sampler, options.warmup)
    draws = options.draws or -(-fitted.resamples // options.chains)
    resamples = options.chains * draws
    share = 1 if units.is_certain else ROUNDINGS
    first, centres, others = (np.random.Generator(np.random.SFC64(child)) for child in seed.spawn(3))
    fitted.prepare(first)
    jobs: list[Callable[[], Floats]] = [
        lambda rng=rng: fitted.centre(units, rng, share)  # type: ignore[misc]
        for rng in centres.spawn(share)
    ]
    jobs += [lambda rng=rng: fitted.estimate(units, rng) for rng in others.spawn(resamples)]  # type: ignore[misc]
    found = _all(jobs, options)
    centre, halves = np.mean(found[:share], axis=(0, 1)), np.stack(found[share:])
    names = (*fitted.names, *fitted.nuisance_names)
    values = recentred_estimates(names, centre, halves).reshape(options.chains, draws, -1)
    size, effective = len(fitted.names), effective_records(weights)
    return Draws(
        names=fitted.names,
        values=np.ascontiguousarray(values[:, :, :size]),
        nuisance_names=fitted.nuisance_names,
        nuisance=np.ascontiguousarray(values[:, :, size:]),
        sampler=_words(units, fitted, resamples, (effective, len(weights))),
        info={"resamples": resamples, "independent": True, "effective records": effective},
    )


def _words(units: ResampledUnits, fitted: Estimator, resamples: int, records: tuple[float, int]) -> str:
    """Say what was done, and what to beware of."""
    said = (
        "weighted bootstrap after Goldstein, Carpenter and Kenward (2018), with the variance of the sandwich: "
        f"{resamples:,} resamples of {units.words}, {fitted.words}; the weights leave the information of "
        f"{records[0]:,.0f} of {records[1]:,} records"
    )
    if units.within is not None and units.sizes.mean() < SMALL_GROUPS:
        said += "; weights that differ within small groups bias sigma and the sds of groups by some percent"
    return said


def recentred_estimates(names: Sequence[str], centre: Floats, halves: Floats) -> Floats:
    """Return estimates of resamples centred at that of the sample, without the error of their own draws.

    `halves` are resamples x 2 x parameters. Standard deviations and shapes move on the log scale,
    correlations on Fisher's.
    """
    scales = [_scale(name) for name in names]
    means = halves.mean(axis=1)
    moved, where = _onto(scales, means), _onto(scales, centre[None])
    parts = _onto(scales, halves.reshape(-1, len(names))).reshape(halves.shape)
    error = (((parts[:, 0] - parts[:, 1]) / 2) ** 2).mean(axis=0)
    total = moved.var(axis=0)
    left = np.clip(1.0 - error / np.where(total > 0, total, 1.0), LEAST_SHARE, 1.0)
    return _back(scales, where + np.sqrt(left) * (moved - moved.mean(axis=0)))


def _scale(name: str) -> str:
    own = name.rsplit(" ~ ", 1)[-1]
    if own in ("sigma", "shape") or own.startswith("sd("):
        return "log"
    return "fisher" if own.startswith("cor(") else "own"


def _onto(scales: Sequence[str], values: Floats) -> Floats:
    out = values.copy()
    for k, scale in enumerate(scales):
        if scale == "log":
            out[:, k] = np.log(np.maximum(values[:, k], 1e-300))
        elif scale == "fisher":
            out[:, k] = np.arctanh(np.clip(values[:, k], -1 + 1e-12, 1 - 1e-12))
    return out


def _back(scales: Sequence[str], values: Floats) -> Floats:
    out = values.copy()
    for k, scale in enumerate(scales):
        if scale == "log":
            out[:, k] = np.exp(values[:, k])
        elif scale == "fisher":
            out[:, k] = np.tanh(values[:, k])
    return out


def _all(jobs: Sequence[Callable[[], Floats]], options: FitOptions) -> list[Floats]:
    """Do all jobs on as many cores as there are, and tell of it."""
    lock, stop, done = threading.Lock(), threading.Event(), [0]

    def one(job: Callable[[], Floats]) -> Any:
        if stop.is_set():
            raise InterruptedError("another resample failed")
        found = job()
        with lock:
            done[0] += 1
            if callable(options.progress) and (
                done[0] % max(len(jobs) // 200, 1) == 0 or done[0] == len(jobs)
            ):
                options.progress(done[0], len(jobs))
        return found

    with ThreadPoolExecutor(options.cores or os.cpu_count() or 1) as pool:
        try:
            return list(pool.map(one, jobs))
        except BaseException:
            stop.set()
            raise

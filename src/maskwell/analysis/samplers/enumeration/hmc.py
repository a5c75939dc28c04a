"""Hamiltonian chains, for posteriors too skewed for proposals that do not know where the chain is.

Parameters move on paths of Hamilton's equations, in coordinates in which the posterior has about unit covariance: first
by the curvature at the mode, then by what the chains have seen while they warmed up (Neal 2011). In such coordinates a
quarter of a turn makes draws nearly independent.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Executor
from functools import partial
from typing import NamedTuple

import numpy as np

from ...system import Floats
from ..marginal.independence_chain import ChainDraws, longest_stay
from ..marginal.mode import ModeFit
from .posterior import EnumeratedPosterior

WARM_UP = 120  # trajectories of a chain, twice: to learn the covariance, then the length of steps for it
WANTED = 0.8  # share of trajectories accepted
FIRST_STEP, SHORTEST_STEP = 0.5, 0.02
SHORTEST, FARTHEST = 1.0, 2.2  # of a trajectory: a quarter of a turn is 1.57
WIDEST = 4.0  # times as wide as the curvature at the mode says
TRIES = 64  # draws around the mode of which one is the start


class Point(NamedTuple):
    """Where a chain is: parameters, their log density and its slope."""

    theta: Floats
    value: float
    slope: Floats


class Warm(NamedTuple):
    """A chain that has warmed up: where it is, the length of its steps, and what it has seen."""

    point: Point
    step: float
    seen: Floats


def run_trajectories(
    posterior: EnumeratedPosterior,
    fit: ModeFit,
    draws: int,
    rngs: Sequence[np.random.Generator],
    pool: Executor,
) -> list[ChainDraws] | None:
    """Return the draws of several chains; None where the posterior is much wider somewhere than at its mode."""
    warm = list(pool.map(partial(_warm_up, posterior, fit.root), _starts(posterior, fit, rngs), rngs))
    root = _shrunk_covariance_root(fit.root, np.concatenate([chain.seen for chain in warm]))
    if np.linalg.norm(np.linalg.solve(fit.root, root), 2) > WIDEST:
        return None
    points = [chain.point for chain in warm]
    warm = list(pool.map(partial(_warm_up, posterior, root), points, rngs))
    if min(chain.step for chain in warm) < SHORTEST_STEP:
        return None
    return list(pool.map(lambda chain, rng: _run(posterior, root, chain, draws, rng), warm, rngs))


def _starts(posterior: EnumeratedPosterior, fit: ModeFit, rngs: Sequence[np.random.Generator]) -> list[Point]:
    """Return a start of each chain: one of some draws of the normal law at the mode, by their weights."""
    found = []
    for rng in rngs:
        round_ = rng.standard_normal((TRIES, len(posterior)))
        thetas = fit.mode + round_ @ fit.root.T
        logs = posterior.log_densities(thetas) + 0.5 * (round_**2).sum(axis=1)
        theta = thetas[int(np.argmax(logs + rng.gumbel(size=TRIES)))]
        found.append(Point(theta, *posterior.gradient(theta)))
    return found


def _warm_up(posterior: EnumeratedPosterior, root: Floats, point: Point, rng: np.random.Generator) -> Warm:
    """Move a chain and make its steps longer where it accepts too often, shorter where too rarely."""
    log_step, total, seen = np.log(FIRST_STEP), 0.0, np.empty((WARM_UP, len(posterior)))
    for k in range(WARM_UP):
        point, chance, _ = _move(posterior, root, float(np.exp(log_step)), point, rng)
        log_step = min(log_step + (chance - WANTED) * 2.0 / (k + 4.0) ** 0.6, 0.0)
        total += log_step * (k >= WARM_UP // 2)
        seen[k] = point.theta
    return Warm(point, float(np.exp(total / (WARM_UP - WARM_UP // 2))), seen[WARM_UP // 3 :])


def _shrunk_covariance_root(root: Floats, seen: Floats) -> Floats:
    """Return a root of the covariance of draws, drawn towards that at the mode as far as they are few."""
    size = len(root)
    share = len(seen) / (len(seen) + 10.0 * size)
    covariance = share * np.cov(seen.T) + (1.0 - share) * root @ root.T
    return np.asarray(np.linalg.cholesky(covariance))


def _move(
    posterior: EnumeratedPosterior, root: Floats, step: float, here: Point, rng: np.random.Generator
) -> tuple[Point, float, bool]:
    """Follow a trajectory; return where the chain is then, the chance to accept its end, and whether it was."""
    speed = rng.standard_normal(len(here.theta))
    count = max(round(rng.uniform(SHORTEST, FARTHEST) / step), 1)
    energy, there = here.value - 0.5 * float(speed @ speed), here
    for _ in range(count):
        speed = speed + 0.5 * step * (root.T @ there.slope)
        theta = there.theta + step * (root @ speed)
        there = Point(theta, *posterior.gradient(theta))
        if not np.isfinite(there.value):
            return here, 0.0, False
        speed = speed + 0.5 * step * (root.T @ there.slope)
    gain = there.value - 0.5 * float(speed @ speed) - energy
    chance = float(np.exp(min(gain, 0.0)))
    taken = bool(rng.random() < chance)
    return (there if taken else here), chance, taken


def _run(
    posterior: EnumeratedPosterior, root: Floats, warm: Warm, draws: int, rng: np.random.Generator
) -> ChainDraws:
    point, out, moved = warm.point, np.empty((draws, len(posterior))), np.zeros(draws, bool)
    for k in range(draws):
        point, _, moved[k] = _move(posterior, root, warm.step, point, rng)
        out[k] = point.theta
    return ChainDraws(out, float(moved.mean()), longest_stay(moved))

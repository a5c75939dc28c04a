"""How chains move: who exchanges with whom, which records are proposed, how parameters step, what free ones weigh.

All are fixed while draws count, and their chances enter the Metropolis-Hastings ratio (Hastings 1970). Records are
proposed by their weight at the mean of the parameters; where every record belongs to a known unit, columns are first
brought to nearly equal sums (Sinkhorn 1964). log f(z) of free records comes from a grid over log psi, made as fine as
CELLS allows. Used by `parameter_chains`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from ....table import Floats
from ...protocol import Ints
from .chain_state import LONGEST, MatchingProblem, scene_of
from .noise_kernels import NormalKernel

if TYPE_CHECKING:
    from ....kernels.matching_noise_mcmc import Ways
    from ....kernels.matching_noise_steps import PosteriorSurface, PriorsAndSteps
    from ..unknown_noise.prior_families import ResolvedPrior

NEAREST = 256  # units that a unit exchanges with most
SOFT = 4.0  # two units are near if their kernels, so much flatter, overlap
EVEN = 0.01  # share of proposals spread over all records of the block
OFTEN, RARELY = 0.3, 0.002  # share of moves that are loops, where most can close and where not
SCALINGS = 3  # of columns to equal sums, where every record is a known unit's
GRID = 65_537  # points of a prior's log density
# How far chains may go from the prior's centre: so many of its sds, or so far in log psi
REACH, FARTHEST = 8.0, 6.0
FINE = 4_000.0  # but no more sds than this, so that the points are close enough
FINEST = 0.02  # step of the grid of log f(z) in log psi: all 1,000 records together are then off by 1e-4,
COARSEST = 0.06  # and by 2e-3 with this one
CELLS = 40_000_000  # numbers that it may hold


def ways_of(problem: MatchingProblem, logs: Floats, near: tuple[Ints, Ints, Ints] | None = None) -> Ways:
    """Prepare proposals by the kernels at given parameters; who is near whom may be given."""
    from ....kernels.matching_noise_mcmc import Ways

    blocks, free = problem.known.matrices(problem.model.pair_logs(logs)), problem.free(logs)
    ends, loose = problem.known.released.ends, problem.is_loose
    rows = [_cumulative_chances(block - free[ends[b] : ends[b + 1]], loose) for b, block in enumerate(blocks)]
    loop = OFTEN if _usual_choice(rows) <= LONGEST else RARELY
    shares = (0.4 - loop, loop, 0.4) if loose else (1.0 - loop, loop, 0.0)
    listed = np.concatenate([np.empty(0), *(row.ravel() for row in rows)])
    return Ways(*shares, *(near or _near(problem, blocks)), listed)


def _usual_choice(rows: list[Floats]) -> float:
    """Return between how many records a unit chooses, as most do: a loop takes about as many steps to close."""
    counts = [1.0 / (np.diff(row, axis=1, prepend=0.0) ** 2).sum(axis=1) for row in rows if row.size]
    return float(np.median(np.concatenate(counts))) if counts else 1.0


def _near(problem: MatchingProblem, blocks: list[Floats]) -> tuple[Ints, Ints, Ints]:
    """Return who is near whom, unit after unit, where each unit's list begins, and how long it is."""
    begin = problem.known.side.ends
    near = [int(begin[b]) + row for b, block in enumerate(blocks) for row in _nearest(block)]
    counts = np.array([len(row) for row in near], np.int64)
    starts = np.concatenate([[0], np.cumsum(counts)])[:-1]
    return np.concatenate([np.empty(0, np.int64), *near]), starts, counts


def _nearest(logs: Floats) -> list[Ints]:
    """Return for each unit the others of its block, those with the most similar kernels first."""
    if len(logs) < 2 or not logs.shape[1]:
        return [np.empty(0, np.int64) for _ in logs]
    top = logs.max(axis=1, keepdims=True)
    soft = np.exp((logs - np.where(np.isfinite(top), top, 0.0)) / (2 * SOFT))
    soft /= np.maximum(np.linalg.norm(soft, axis=1, keepdims=True), 1e-300)
    overlap = soft @ soft.T
    np.fill_diagonal(overlap, -1.0)
    count = min(NEAREST, len(logs) - 1)
    return list(np.argsort(-overlap, axis=1, kind="stable")[:, :count])


def _cumulative_chances(scores: Floats, loose: bool) -> Floats:
    """Return rows of cumulated chances: by weight, and a share for every record."""
    if not scores.size:
        return scores
    top = scores.max(axis=1, keepdims=True)
    weights = np.exp(scores - np.where(np.isfinite(top), top, 0.0))
    for _ in range(0 if loose else SCALINGS):
        weights /= np.maximum(weights.sum(axis=0), 1e-200)
        weights /= np.maximum(weights.sum(axis=1, keepdims=True), 1e-200)
    weights /= np.maximum(weights.sum(axis=1, keepdims=True), 1e-200)
    sums = np.cumsum((1 - EVEN) * weights + EVEN / scores.shape[1], axis=1)
    return np.asarray(sums / sums[:, -1:])


# What is learned of the parameters.


def learning_of(problem: MatchingProblem) -> PriorsAndSteps:
    """Put the log priors on grids."""
    from ....kernels.matching_noise_steps import PriorsAndSteps

    beliefs = problem.beliefs
    low = np.array([b.centre - reach_of(b) for b in beliefs])
    pace = np.array([2 * reach_of(b) / (GRID - 1) for b in beliefs])
    prior = np.array(
        [b.log_density(a + h * np.arange(GRID)) for b, a, h in zip(beliefs, low, pace, strict=True)]
    )
    covariance = np.diag([b.spread**2 for b in beliefs])
    roots = roots_of(covariance, problem.groups, np.full(len(problem.groups), 1.0))
    return PriorsAndSteps(np.where(np.isnan(prior), -np.inf, prior), low, pace, roots, problem.groups)


def surface_of(problem: MatchingProblem) -> PosteriorSurface:
    """Choose how free records are weighed: as given (0), from a grid that fills as needed (1), or each time (2)."""
    from ....kernels.matching_noise_steps import PosteriorSurface

    model, records = problem.model, len(problem.known.released.records)
    low, shape, pace = _grid(problem.beliefs, records)
    if problem.log_free is not None or not problem.is_loose:
        mode = 0
    else:
        mode = 1 if isinstance(model, NormalKernel) and len(problem.beliefs) <= 2 and pace <= COARSEST else 2
    scene = model.others if isinstance(model, NormalKernel) else scene_of(problem)
    place = (
        model.other_pairs.others_of_records() if isinstance(model, NormalKernel) else problem.known.place()
    )
    nodes = int(shape.prod()) if mode == 1 else 1
    table = np.empty((nodes, records if mode == 1 else 1))  # pages that no node fills take no memory
    return PosteriorSurface(mode, scene, place, low, pace, shape, table, np.zeros(nodes, bool))


def reach_of(belief: ResolvedPrior) -> float:
    """Return how far from its centre, in log psi, a parameter may go: many records can outweigh a tight prior."""
    return min(max(REACH * belief.spread, FARTHEST), FINE * belief.spread)


def _grid(beliefs: Sequence[ResolvedPrior], records: int) -> tuple[Floats, Ints, float]:
    """Return where a grid over the first two logs begins, how many nodes it has, and how far apart they are."""
    some = beliefs[:2]
    widths = np.array([2 * reach_of(belief) for belief in some])
    pace = max(FINEST, float((widths.prod() * records / CELLS) ** (1 / len(some))))
    low, shape = np.zeros(2), np.ones(2, np.int64)
    low[: len(some)] = [belief.centre - reach_of(belief) for belief in some]
    shape[: len(some)] = (widths / pace).astype(np.int64) + 5
    return low, shape, pace


def roots_of(covariance: Floats, groups: Ints, scales: Floats) -> Floats:
    """Return for each group of parameters a root of the covariance of its steps, zero elsewhere."""
    out = np.zeros((len(groups), len(covariance), len(covariance)))
    for g, (group, scale) in enumerate(zip(groups, scales, strict=True)):
        chosen = np.flatnonzero(group)
        part = np.linalg.cholesky(covariance[np.ix_(chosen, chosen)])
        out[g][np.ix_(chosen, chosen)] = 2.4 / np.sqrt(len(chosen)) * scale * part
    return out

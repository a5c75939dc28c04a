"""What chains walk on, and where they start: the best matching of what is expected, and ever hotter ones.

Start 0 is the assignment of largest total log weight (Kuhn 1955, by scipy) at the centre of the prior; start k has
parameters drawn over 2 sds of the prior, and log kernels plus HOTTER^k times Gumbel noise. Starts that are far apart
let R-hat show chains that do not mix (Gelman and Rubin 1992). Used by `parameter_chains`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ....table import Floats
from ...protocol import Bools, Ints
from .block_pairs import BlockPairs
from .noise_kernels import ListedKernel, NormalKernel

if TYPE_CHECKING:
    from ....kernels.matching_noise_mcmc import Scene, State
    from ..unknown_noise.prior_families import ResolvedPrior

LONGEST = 32  # units that change records in one move
HOTTER = 3.0  # how much hotter each start after the first is than the one before
IMPOSSIBLE = -1e7  # stands for minus infinity where a best matching is sought


@dataclass(frozen=True, slots=True)
class MatchingProblem:
    """What chains walk on: kernels, priors, which parameters step together, and how many units each block has.

    `unreleased` is the log weight of each unit without a record, `log_free` that of each record that is nobody's, where
    no parameter bears on it.
    """

    model: NormalKernel | ListedKernel
    beliefs: tuple[ResolvedPrior, ...]
    groups: Ints
    units: Ints
    unreleased: Floats
    log_free: Floats | None

    @property
    def known(self) -> BlockPairs:
        """The pairs of known units with records."""
        return self.model.known

    @property
    def centre(self) -> Floats:
        """What the intruder expects of the logs of the parameters."""
        return np.array([belief.centre for belief in self.beliefs])

    @property
    def is_loose(self) -> bool:
        """Whether any record can be free, or any unit without one."""
        sizes, released = self.known.side.sizes, self.known.released.sizes
        return bool((sizes != released).any() or (self.units != sizes).any())

    def free(self, logs: Floats) -> Floats:
        """Return the log weight of each record that is nobody's."""
        return self.model.log_marginal(logs) if self.log_free is None else self.log_free.copy()


@dataclass(frozen=True, slots=True)
class MatchingChain:
    """One chain: where it stands, room for what it tries, its own generator."""

    state: State
    spare: State
    rng: np.random.Generator


def start_of(problem: MatchingProblem, number: int, rng: np.random.Generator) -> tuple[Floats, Ints]:
    """Return the parameters and the matching that a chain starts from; only the first is undisturbed."""
    spreads = np.array([belief.spread for belief in problem.beliefs])
    logs = problem.centre + (spreads * rng.uniform(-2, 2, len(spreads)) if number else 0.0)
    flat, free = problem.model.pair_logs(logs), problem.free(logs)
    noise = (HOTTER**number if number else 0.0) * rng.gumbel(size=len(flat))
    match, begin = np.full(len(problem.unreleased), -1), problem.known.released.ends
    at = 0
    for b, block in enumerate(problem.known.matrices(flat + noise)):
        records = slice(begin[b], begin[b + 1])
        match[at : at + len(block)] = _best(block - free[records]) + np.where(len(block), begin[b], 0)
        at += len(block)
    return logs, np.where(_possible(problem, flat, match), match, -1)


def _best(scores: Floats) -> Ints:
    """Return the best one-to-one records of units, a large negative number for a unit that gets none."""
    from scipy.optimize import linear_sum_assignment

    out = np.full(len(scores), -(2**40))
    rows, columns = linear_sum_assignment(np.maximum(scores, IMPOSSIBLE), maximize=True)
    out[rows] = columns
    return out


def _possible(problem: MatchingProblem, flat: Floats, match: Ints) -> Bools:
    """Whether units can have the records given to them."""
    at = problem.known.row + match
    has = match >= 0
    out = np.zeros(len(match), bool)
    out[has] = flat[at[has]] > -np.inf
    return out


def needed_units(problem: MatchingProblem, match: Ints) -> Ints:
    """Return how many units a block must have for a matching to be possible."""
    side = problem.known.side
    matched = np.bincount(side.block[match >= 0], minlength=len(problem.units))
    return np.asarray(side.sizes + problem.known.released.sizes - matched)


def chain_at(problem: MatchingProblem, logs: Floats, match: Ints, rng: np.random.Generator) -> MatchingChain:
    """Set a chain up at its start."""
    from ....kernels.matching_noise_mcmc import State, fill_here, prepare

    scene, released = scene_of(problem), problem.known.released
    owner = np.full(len(released.records), -1)
    owner[match[match >= 0]] = np.flatnonzero(match >= 0)
    outside = problem.units - needed_units(problem, match)
    shape, trail = scene.noise.shape, np.empty((LONGEST, 2), np.int64)
    states = [
        State(
            match, owner, outside, logs.copy(), np.zeros(shape), np.zeros(shape[0]),
            problem.free(logs), np.zeros(len(match)), problem.unreleased, trail,
        )
        for _ in range(2)
    ]  # fmt: skip
    if isinstance(problem.model, ListedKernel):
        scene.fixed[:] = problem.model.pair_logs(logs)
    prepare(scene, logs, states[0].precision, states[0].half)
    fill_here(scene, states[0])
    return MatchingChain(states[0], states[1], rng)


def scene_of(problem: MatchingProblem) -> Scene:
    """Return the scene of a model; that of listed laws has no columns, all is in its factors."""
    if isinstance(problem.model, NormalKernel):
        return problem.model.scene
    from ....kernels.matching_noise_mcmc import FORWARD, Scene

    pairs = problem.known
    units, records = len(pairs.side.records), len(pairs.released.records)
    z, x, nothing = np.zeros((records, 0)), np.zeros((units, 0)), np.zeros((units, 0), bool)
    none, flat = np.empty(0, np.int64), np.zeros(pairs.count)
    lift = np.zeros(records)
    return Scene(FORWARD, z, x, nothing, nothing, x, x, none, none, flat, pairs.row, lift)

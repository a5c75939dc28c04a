"""Chains over matchings and parameters together; steps are learned before draws count.

Random-walk Metropolis steps of log psi (Hastings 1970) between sweeps of the matching. Their covariance is 2.4^2 / d
that of the draws before (Gelman, Roberts and Gilks 1996), scaled to an acceptance of WANTED; it is adapted between
rounds only, so that the draws of a round have the right law. Chosen by `unknown_noise` where matchings are neither
counted (`enumeration`) nor drawn at nodes (`parameter_nodes`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from ....table import Floats
from ...protocol import Ints
from ...threads import in_turn, map_on_threads
from .block_pairs import BlockPairs
from .chain_state import MatchingChain, MatchingProblem, chain_at, needed_units, scene_of, start_of
from .noise_kernels import ListedKernel
from .proposals import learning_of, roots_of, surface_of, ways_of

if TYPE_CHECKING:
    from ....kernels.matching_noise_mcmc import BlockPlace, Scene, State, Ways
    from ....kernels.matching_noise_steps import Book, PosteriorSurface, PriorsAndSteps

LONG_ENOUGH = 4_000  # sweeps to run in
SEGMENTS = 10  # of the first round, after each of which steps are adapted
CHEAP_STEPS = 2  # of the parameters after each sweep, where they cost little
SWEEPS_LISTED = 5  # between steps of the parameters where they cost much
ROWS = 20  # records of a block that can be looked at for each unit after every sweep
LEAST_MOVES = 16  # of a matching in a sweep
WANTED = 0.35  # share of steps of the parameters that should be accepted
STORED = 16_000_000  # numbers of all matchings kept for diagnostics


@dataclass(frozen=True, slots=True)
class Round:
    """Draws of all chains: kept matchings (chains x draws x units), traces, and the sums of chances of all pairs."""

    kept: npt.NDArray[np.int32]
    traces: Floats
    counts: Floats
    absent: Floats
    sweeps: int
    added: int

    def chances(self) -> tuple[Floats, Floats]:
        """Return the probability of each pair, and of each unit's having no record."""
        pairs, absent = self.counts.sum(axis=0), self.absent.sum(axis=0)
        return pairs / self.added, absent / self.added

    def by_block(self, known: BlockPairs) -> list[Floats]:
        """Return for each block what every chain gives to its units' records, none last (chains x units x records)."""
        each, ends = self.added / len(self.counts), known.side.ends
        matrices = zip(*(known.matrices(chain / each) for chain in self.counts), strict=True)
        return [
            np.concatenate([np.stack(pairs), self.absent[:, ends[b] : ends[b + 1], None] / each], axis=2)
            for b, pairs in enumerate(matrices)
        ]


@dataclass
class ParameterWalk:
    """Chains on a problem; what they step by is adapted between rounds, never within one that counts."""

    problem: MatchingProblem
    chains: list[MatchingChain]
    place: BlockPlace
    ways: Ways
    surface: PosteriorSurface
    learning: PriorsAndSteps
    scene: Scene
    moves: int
    scales: Floats

    @classmethod
    def of(cls, problem: MatchingProblem, count: int, seed: int) -> ParameterWalk:
        """Start chains far apart: one at the best matching of what is expected, others at ever hotter ones."""
        units = problem.units.copy()
        starts = [start_of(problem, c, np.random.default_rng([seed, c])) for c in range(count)]
        for _, match in starts:
            units = np.maximum(units, needed_units(problem, match))
        problem = replace(problem, units=units)
        chains = [
            chain_at(problem, logs, match, np.random.default_rng([seed, count + c]))
            for c, (logs, match) in enumerate(starts)
        ]
        place, scene = problem.known.place(), scene_of(problem)
        ways, scales = ways_of(problem, problem.centre), np.full(len(problem.groups), 1.0)
        moves = max(2 * len(place.block), LEAST_MOVES)
        return cls(
            problem, chains, place, ways, surface_of(problem), learning_of(problem), scene, moves, scales
        )

    @property
    def steps(self) -> int:
        """How many steps of the parameters follow a sweep: one where each is costly."""
        costly = isinstance(self.problem.model, ListedKernel) or self.surface.mode == 2
        return 1 if costly else CHEAP_STEPS

    @property
    def every(self) -> int:
        """How many sweeps lie between draws whose chances are added up, which takes about as long as they do."""
        return max(1, int(self.problem.known.released.sizes.max()) // ROWS)

    def first(self, draws: int) -> None:
        """Run in and adapt; none of these draws is used."""
        for segment in range(SEGMENTS):
            past = self.round(max(min(draws, LONG_ENOUGH) // SEGMENTS, 20), thin=1)
            if segment == SEGMENTS // 2:
                self.ways = ways_of(self.problem, self._middle(past))

    def _middle(self, past: Round) -> Floats:
        """Return the mean logs of the parameters."""
        return np.asarray(past.traces[:, :, : len(self.problem.beliefs)].mean(axis=(0, 1)))

    def round(self, draws: int, thin: int) -> Round:
        """Run all chains, then adapt the steps for the next round."""
        books = [_book(self.problem, draws) for _ in self.chains]
        turns = [*zip(self.chains, books, strict=True)]
        work = map_on_threads if self._is_apart else in_turn
        accepted = np.sum(work(lambda turn: self._run(turn[0], turn[1], thin), turns), axis=0)
        kept, traces, counts, absent, _ = (np.stack(parts) for parts in zip(*books, strict=True))
        added = len(books) * -(-draws * thin // self.every)
        done = Round(kept, traces, counts, absent, draws * thin, added)
        self._adapt(done.traces, accepted / (draws * thin * self.steps * len(self.chains)))
        self.ways = ways_of(self.problem, self._middle(done), self.ways[3:6])
        return done

    @property
    def _is_apart(self) -> bool:
        """Whether chains write nothing that others read, so that they can run side by side."""
        return not isinstance(self.problem.model, ListedKernel) and self.surface.mode != 1

    def _run(self, chain: MatchingChain, book: Book, thin: int) -> Ints:
        from ....kernels.matching_noise_steps import run

        if isinstance(self.problem.model, ListedKernel):
            return _run_listed(self, chain, book, thin)
        setting = (self.scene, self.place, self.ways, self.surface, self.learning)
        return run(
            setting, chain.state, chain.spare, chain.rng, (self.moves, self.steps, thin, self.every), book
        )

    def _adapt(self, traces: Floats, accepted: Floats) -> None:
        """Shape the steps as the draws lie, and size them by how many were accepted."""
        unknowns = len(self.problem.beliefs)
        draws = traces[:, :, :unknowns].reshape(-1, unknowns)
        self.scales = self.scales * np.exp(np.clip(3.0 * (accepted - WANTED), -1.0, 1.0))
        spreads = np.array([belief.spread for belief in self.problem.beliefs])
        covariance = np.atleast_2d(np.cov(draws.T)) + np.diag((1e-3 * spreads) ** 2)
        self.learning = self.learning._replace(roots=roots_of(covariance, self.problem.groups, self.scales))


def thinning_interval(units: int, chains: int, draws: int) -> int:
    """Return how many sweeps lie between kept matchings, so that all of them can be held."""
    return max(1, -(-units * chains * draws // STORED))


def _book(problem: MatchingProblem, draws: int) -> Book:
    from ....kernels.matching_noise_steps import Book

    units, pairs = len(problem.unreleased), problem.known.count
    traces = np.empty((draws, len(problem.beliefs) + 1))
    room = np.empty(len(problem.known.released.records))
    return Book(np.empty((draws, units), np.int32), traces, np.zeros(pairs), np.zeros(units), room)


# Laws that are asked for all pairs.


def _run_listed(walk: ParameterWalk, chain: MatchingChain, book: Book, thin: int) -> Ints:
    """Run a chain whose laws have no compiled loop; the matching moves more between steps, which are costly."""
    from ....kernels.matching_noise_mcmc import sweep
    from ....kernels.matching_noise_steps import enter, smooth

    model, state, accepted = walk.problem.model, chain.state, np.zeros(len(walk.problem.groups), np.int64)
    assert isinstance(model, ListedKernel)
    walk.scene.fixed[:] = model.pair_logs(state.logs)
    for draw in range(len(book.kept)):
        for turn in range(thin):
            sweep(walk.scene, walk.place, walk.ways, state, SWEEPS_LISTED * walk.moves, chain.rng)
            accepted += _step_listed(walk, model, chain)
            if (draw * thin + turn) % walk.every == 0:
                smooth(walk.scene, walk.place, state, book)
        enter(state, book, draw)
    return accepted


def _step_listed(walk: ParameterWalk, model: ListedKernel, chain: MatchingChain) -> Ints:
    """Try one step of each group of parameters."""
    accepted = np.zeros(len(walk.problem.groups), np.int64)
    for g, roots in enumerate(walk.learning.roots):
        accepted[g] = _tried_listed(walk, model, chain, roots)
    return accepted


def _tried_listed(walk: ParameterWalk, model: ListedKernel, chain: MatchingChain, root: Floats) -> bool:
    from ....kernels.matching_noise_mcmc import fill_here
    from ....kernels.matching_noise_steps import log_prior

    state, spare, rng = chain.state, chain.spare, chain.rng
    spare.logs[:] = state.logs + root @ rng.standard_normal(len(root))
    after = log_prior(walk.learning, spare.logs)
    if after == -np.inf:
        return False
    without = np.where(state.match < 0, state.unreleased, 0.0)
    spare.here[:] = model.matched_logs(spare.logs, state.match) + without
    if walk.surface.mode:
        spare.free[:] = walk.problem.free(spare.logs)
    after += _log_weight(spare)
    before = log_prior(walk.learning, state.logs) + _log_weight(state)
    if after < before and rng.random() >= np.exp(after - before):
        return False
    for kept, new in ((state.logs, spare.logs), (state.free, spare.free)):
        kept[:] = new
    walk.scene.fixed[:] = model.pair_logs(state.logs)
    fill_here(walk.scene, state)
    return True


def _log_weight(state: State) -> float:
    """Return the log weight of units as they are matched and of records that are nobody's."""
    return float(state.here.sum() + state.free[state.owner < 0].sum())

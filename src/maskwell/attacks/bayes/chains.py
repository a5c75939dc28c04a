"""Chains over matchings and parameters: starts far apart, steps learned before draws count, as many draws as it takes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ...table import Floats
from ..contract import Ints
from .models import Listed, Normals, Pairs

if TYPE_CHECKING:
    from ...kernels.helping import Book, Learning, Place, Scene, State, Surface, Ways
    from .families import Resolved

GRID = 4097  # points of a prior's log density
REACH = 8.0  # prior sds of log psi on either side
FINEST, COARSEST = (
    0.02,
    0.06,
)  # steps of the grid of log f(z) in log psi: an error of 1e-4 to 2e-3 for 1,000 records
CELLS = 40_000_000  # numbers that it may hold
LONG_ENOUGH = 4_000  # sweeps to run in
SEGMENTS = 10  # of the first round, after each of which steps are adapted
NEAREST = 256  # units that a unit exchanges with most
CHEAP_STEPS = 2
LONGEST = 32  # units that change records in one move
LEAST_MOVES = 16  # of a matching between steps of the parameters
EVEN = 0.01  # share of proposals spread over all records of the block
SCALINGS = 3  # of columns to equal sums, where every record is a known unit's
SOFT = 4.0  # two units are near if their kernels, so much flatter, overlap
WANTED = 0.35  # share of steps of the parameters that should be accepted
STORED = 40_000_000  # numbers of all matchings kept for diagnostics
HOTTER = 3.0  # how much hotter each start after the first is than the one before
IMPOSSIBLE = -1e7  # stands for minus infinity where a best matching is sought


@dataclass(frozen=True, slots=True)
class Problem:
    """What chains walk on: the kernels, the priors, what free records and units without a record weigh, and N per block."""

    model: Normals | Listed
    beliefs: tuple[Resolved, ...]
    groups: Ints
    units: Ints
    unreleased: Floats
    log_free: Floats | None

    @property
    def known(self) -> Pairs:
        """The pairs of known units with records."""
        return self.model.known

    @property
    def centre(self) -> Floats:
        """What the intruder expects of the logs of the parameters."""
        return np.array([belief.centre for belief in self.beliefs])

    def free(self, logs: Floats) -> Floats:
        """Return the log weight of each record that is nobody's."""
        return self.model.log_marginal(logs) if self.log_free is None else self.log_free.copy()


@dataclass(frozen=True, slots=True)
class Chain:
    """One chain: where it stands, room for what it tries, its own generator."""

    state: State
    spare: State
    rng: np.random.Generator


@dataclass(frozen=True, slots=True)
class Round:
    """Draws of all chains: kept matchings (chains x draws x units), traces, and counts of every sweep."""

    kept: Ints
    traces: Floats
    counts: Ints
    absent: Ints
    sweeps: int

    def frequency(self) -> tuple[Floats, Floats]:
        """Return how often each pair was matched, and each unit without a record, as shares."""
        every = self.sweeps * len(self.counts)
        return self.counts.sum(axis=0) / every, self.absent.sum(axis=0) / every


@dataclass
class Walk:
    """Chains on a problem; what they step by is adapted between rounds, never within one that counts."""

    problem: Problem
    chains: list[Chain]
    place: Place
    ways: Ways
    surface: Surface
    learning: Learning
    scene: Scene
    moves: int
    scales: Floats

    @classmethod
    def of(cls, problem: Problem, count: int, seed: int) -> Walk:
        """Start chains far apart: one at the best matching of what is expected, others at ever hotter ones."""
        units = problem.units.copy()
        starts = [_start(problem, c, np.random.default_rng([seed, c])) for c in range(count)]
        for _, match in starts:
            units = np.maximum(units, _needed(problem, match))
        problem = replace(problem, units=units)
        chains = [
            _chain(problem, logs, match, np.random.default_rng([seed, count + c]))
            for c, (logs, match) in enumerate(starts)
        ]
        place, scene = problem.known.place(), _scene_of(problem)
        ways, scales = _ways(problem, problem.centre), np.full(len(problem.groups), 1.0)
        moves = max(2 * len(place.block), LEAST_MOVES)
        return cls(problem, chains, place, ways, _surface(problem), _learning(problem), scene, moves, scales)

    @property
    def steps(self) -> int:
        """How many steps of the parameters follow a sweep: one where each is costly."""
        costly = isinstance(self.problem.model, Listed) or self.surface.mode == 2
        return 1 if costly else CHEAP_STEPS

    def first(self, draws: int) -> None:
        """Run in and adapt; none of these draws is used."""
        for segment in range(SEGMENTS):
            past = self.round(max(min(draws, LONG_ENOUGH) // SEGMENTS, 20), thin=1)
            if segment == SEGMENTS // 2:
                self.ways = _ways(self.problem, self._middle(past))

    def _middle(self, past: Round) -> Floats:
        """Return the mean logs of the parameters."""
        return np.asarray(past.traces[:, :, : len(self.problem.beliefs)].mean(axis=(0, 1)))

    def round(self, draws: int, thin: int) -> Round:
        """Run all chains, then adapt the steps for the next round."""
        books, accepted = [], np.zeros(len(self.problem.groups))
        for chain in self.chains:
            book = _book(self.problem, draws)
            books.append(book)
            accepted += self._run(chain, book, thin)
        parts = [np.stack([getattr(book, name) for book in books]) for name in books[0]._fields]
        done = Round(*parts, draws * thin)
        self._adapt(done.traces, accepted / (draws * thin * self.steps * len(self.chains)))
        self.ways = _ways(self.problem, self._middle(done), self.ways[3:6])
        return done

    def _run(self, chain: Chain, book: Book, thin: int) -> Ints:
        from ...kernels.helping import run

        if isinstance(self.problem.model, Listed):
            return _run_listed(self, chain, book, thin)
        setting = (self.scene, self.place, self.ways, self.surface, self.learning)
        return run(setting, chain.state, chain.spare, chain.rng, (self.moves, self.steps, thin), book)

    def _adapt(self, traces: Floats, accepted: Floats) -> None:
        """Shape the steps as the draws lie, and size them by how many were accepted."""
        unknowns = len(self.problem.beliefs)
        draws = traces[:, :, :unknowns].reshape(-1, unknowns)
        self.scales = self.scales * np.exp(np.clip(3.0 * (accepted - WANTED), -1.0, 1.0))
        spreads = np.array([belief.spread for belief in self.problem.beliefs])
        covariance = np.atleast_2d(np.cov(draws.T)) + np.diag((1e-3 * spreads) ** 2)
        self.learning = self.learning._replace(roots=_roots(covariance, self.problem.groups, self.scales))


def thinning(units: int, chains: int, draws: int) -> int:
    """Return how many sweeps lie between kept matchings, so that all of them can be held."""
    return max(1, -(-units * chains * draws // STORED))


def _roots(covariance: Floats, groups: Ints, scales: Floats) -> Floats:
    """Return for each group of parameters a root of the covariance of its steps, zero elsewhere."""
    out = np.zeros((len(groups), len(covariance), len(covariance)))
    for g, (group, scale) in enumerate(zip(groups, scales, strict=True)):
        chosen = np.flatnonzero(group)
        part = np.linalg.cholesky(covariance[np.ix_(chosen, chosen)])
        out[g][np.ix_(chosen, chosen)] = 2.4 / np.sqrt(len(chosen)) * scale * part
    return out


def _book(problem: Problem, draws: int) -> Book:
    from ...kernels.helping import Book

    units, pairs = len(problem.unreleased), len(problem.known.listed()[0])
    traces = np.empty((draws, len(problem.beliefs) + 1))
    return Book(
        np.empty((draws, units), np.int64), traces, np.zeros(pairs, np.int64), np.zeros(units, np.int64)
    )


# Starts.


def _start(problem: Problem, number: int, rng: np.random.Generator) -> tuple[Floats, Ints]:
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


def _possible(problem: Problem, flat: Floats, match: Ints) -> Any:
    """Whether units can have the records given to them."""
    at = problem.known.row + match
    has = match >= 0
    out = np.zeros(len(match), bool)
    out[has] = flat[at[has]] > -np.inf
    return out


def _needed(problem: Problem, match: Ints) -> Ints:
    """Return how many units a block must have for a matching to be possible."""
    side = problem.known.side
    matched = np.bincount(side.block[match >= 0], minlength=len(problem.units))
    return np.asarray(side.sizes + problem.known.released.sizes - matched)


def _chain(problem: Problem, logs: Floats, match: Ints, rng: np.random.Generator) -> Chain:
    """Set a chain up at its start."""
    from ...kernels.helping import State, fill_here, prepare

    scene, released = _scene_of(problem), problem.known.released
    owner = np.full(len(released.records), -1)
    owner[match[match >= 0]] = np.flatnonzero(match >= 0)
    outside = problem.units - _needed(problem, match)
    shape, trail = scene.noise.shape, np.empty((LONGEST, 2), np.int64)
    states = [
        State(
            match, owner, outside, logs.copy(), np.zeros(shape), np.zeros(shape[0]),
            problem.free(logs), np.zeros(len(match)), problem.unreleased, trail,
        )
        for _ in range(2)
    ]  # fmt: skip
    if isinstance(problem.model, Listed):
        scene.fixed[:] = problem.model.pair_logs(logs)
    prepare(scene, logs, states[0].precision, states[0].half)
    fill_here(scene, states[0])
    return Chain(states[0], states[1], rng)


def _scene_of(problem: Problem) -> Scene:
    """Return the scene of a model; that of listed laws has no columns, all is in its factors."""
    if isinstance(problem.model, Normals):
        return problem.model.scene
    from ...kernels.helping import FORWARD, Scene

    pairs = problem.known
    units, records = len(pairs.side.records), len(pairs.released.records)
    sides, nothing = [np.zeros((n, 0)) for n in (records, units)], np.zeros((units, 0), bool)
    none, flat = np.empty(0, np.int64), np.zeros(len(pairs.listed()[0]))
    return Scene(
        FORWARD, *sides, nothing, nothing, sides[1], sides[1], none, none, flat, pairs.row, np.zeros(records)
    )


# How moves are proposed.


def _ways(problem: Problem, logs: Floats, near: tuple[Ints, Ints, Ints] | None = None) -> Ways:
    """Prepare proposals by the kernels at given parameters; who is near whom may be given."""
    from ...kernels.helping import Ways

    blocks, free = problem.known.matrices(problem.model.pair_logs(logs)), problem.free(logs)
    ends, loose = problem.known.released.ends, _is_loose(problem)
    rows = [_cumulated(block - free[ends[b] : ends[b + 1]], loose) for b, block in enumerate(blocks)]
    shares = (0.38, 0.02, 0.4) if loose else (0.98, 0.02, 0.0)
    listed = np.concatenate([np.empty(0), *(row.ravel() for row in rows)])
    return Ways(*shares, *(near or _near(problem, blocks)), listed)


def _near(problem: Problem, blocks: list[Floats]) -> tuple[Ints, Ints, Ints]:
    """Return who is near whom, unit after unit, where each unit's list begins, and how long it is."""
    begin = problem.known.side.ends
    near = [int(begin[b]) + row for b, block in enumerate(blocks) for row in _nearest(block)]
    counts = np.array([len(row) for row in near], np.int64)
    starts = np.concatenate([[0], np.cumsum(counts)])[:-1]
    return np.concatenate([np.empty(0, np.int64), *near]), starts, counts


def _is_loose(problem: Problem) -> bool:
    """Whether any record can be free, or any unit without one."""
    sizes, released = problem.known.side.sizes, problem.known.released.sizes
    return bool((sizes != released).any() or (problem.units != sizes).any())


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


def _cumulated(scores: Floats, loose: bool) -> Floats:
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


def _learning(problem: Problem) -> Learning:
    """Put the log priors on grids."""
    from ...kernels.helping import Learning

    beliefs = problem.beliefs
    low = np.array([b.centre - REACH * b.spread for b in beliefs])
    pace = np.array([2 * REACH * b.spread / (GRID - 1) for b in beliefs])
    prior = np.array(
        [b.log_density(a + h * np.arange(GRID)) for b, a, h in zip(beliefs, low, pace, strict=True)]
    )
    covariance = np.diag([b.spread**2 for b in beliefs])
    roots = _roots(covariance, problem.groups, np.full(len(problem.groups), 1.0))
    return Learning(np.where(np.isnan(prior), -np.inf, prior), low, pace, roots, problem.groups)


def _surface(problem: Problem) -> Surface:
    """Choose how the density of free records is computed: given (0), from a grid that fills as needed (1), each time (2)."""
    from ...kernels.helping import Surface

    model, records = problem.model, len(problem.known.released.records)
    low, shape, pace = _grid(problem.beliefs, records)
    if problem.log_free is not None or not _is_loose(problem):
        mode = 0
    else:
        mode = 1 if isinstance(model, Normals) and len(problem.beliefs) <= 2 and pace <= COARSEST else 2
    scene = model.others if isinstance(model, Normals) else _scene_of(problem)
    place = model.other_pairs.others_of_records() if isinstance(model, Normals) else problem.known.place()
    nodes = int(shape.prod()) if mode == 1 else 1
    table = np.empty((nodes, records if mode == 1 else 1))  # pages that no node fills take no memory
    return Surface(mode, scene, place, low, pace, shape, table, np.zeros(nodes, bool))


def _grid(beliefs: Sequence[Resolved], records: int) -> tuple[Floats, Ints, float]:
    """Return where a grid over the first two logs begins, how many nodes it has, and how far apart they are."""
    some = beliefs[:2]
    widths = np.array([2 * REACH * belief.spread for belief in some])
    pace = max(FINEST, float((widths.prod() * records / CELLS) ** (1 / len(some))))
    low, shape = np.zeros(2), np.ones(2, np.int64)
    low[: len(some)] = [belief.centre - REACH * belief.spread for belief in some]
    shape[: len(some)] = (widths / pace).astype(np.int64) + 5
    return low, shape, pace


# Laws that are asked for all pairs.


def _run_listed(walk: Walk, chain: Chain, book: Book, thin: int) -> Ints:
    """Run a chain whose laws have no compiled loop; the matching moves more between steps, which are costly."""
    from ...kernels.helping import enter, sweep, tally

    model, state, accepted = walk.problem.model, chain.state, np.zeros(len(walk.problem.groups), np.int64)
    assert isinstance(model, Listed)
    walk.scene.fixed[:] = model.pair_logs(state.logs)
    for draw in range(len(book.kept)):
        for _ in range(thin):
            for _ in range(5):
                sweep(walk.scene, walk.place, walk.ways, state, walk.moves, chain.rng)
            accepted += _step_listed(walk, model, chain)
            tally(walk.scene, state, book)
        enter(state, book, draw)
    return accepted


def _step_listed(walk: Walk, model: Listed, chain: Chain) -> Ints:
    """Try one step of each group of parameters."""
    accepted = np.zeros(len(walk.problem.groups), np.int64)
    for g, roots in enumerate(walk.learning.roots):
        accepted[g] = _tried_listed(walk, model, chain, roots)
    return accepted


def _tried_listed(walk: Walk, model: Listed, chain: Chain, root: Floats) -> bool:
    from ...kernels.helping import fill_here, log_prior, log_weight

    state, spare, rng = chain.state, chain.spare, chain.rng
    spare.logs[:] = state.logs + root @ rng.standard_normal(len(root))
    after = log_prior(walk.learning, spare.logs)
    if after == -np.inf:
        return False
    without = np.where(state.match < 0, state.unreleased, 0.0)
    spare.here[:] = model.matched_logs(spare.logs, state.match) + without
    if walk.surface.mode:
        spare.free[:] = walk.problem.free(spare.logs)
    after += log_weight(spare)
    before = log_prior(walk.learning, state.logs) + log_weight(state)
    if after < before and rng.random() >= np.exp(after - before):
        return False
    for kept, new in ((state.logs, spare.logs), (state.free, spare.free)):
        kept[:] = new
    walk.scene.fixed[:] = model.pair_logs(state.logs)
    fill_here(walk.scene, state)
    return True

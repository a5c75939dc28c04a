"""What an intruder learns from other units that are known, without knowing which records are theirs.

Who has which record, and the parameters psi of the noise that were not told, are drawn together from

    p(psi) prod over pairs of f(z | x; psi) prod over records of no known unit of f(z; psi)

Every known unit is a target at once. (Eq. (6) of Trottini, Fienberg, Makov and Meyer 2003 weights matchings by their
prior; helpers then mislead. Here their posterior counts.) Chosen by `posterior` where `enumeration` is too much; it
takes `parameter_nodes` for many units, else `parameter_chains`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from ....laws.unknowns import Unknown
from ....notes import Note
from ....table import Floats, Table
from ...pair_density import law_terms
from ...protocol import Bools, Ints
from ..law_kernels import BACKWARD
from ..unknown_noise.priors import Doubt, Prior
from .belief_propagation import shrinkage_estimate
from .bethe import bethe_marginals
from .block_pairs import BlockPairs, Side
from .chain_state import MatchingProblem
from .matchings import Marginals, Sampling, marginals, rhat_and_ess
from .noise_kernels import ListedKernel, model_of
from .parameter_chains import ParameterWalk, Round, thinning_interval
from .parameter_nodes import NodePosterior, node_posterior

SURE = 1e-3  # a share of draws too small to judge chains by
# Units whose R-hat, and as many whose ESS, is computed in full; parts of a chain to find them
WORST, BATCHES = 40, 20


@dataclass(frozen=True, slots=True)
class Group:
    """Known units of one group (`x`), the release, the steward's truth, and the blocks of all three, numbered alike.

    `numbers` has the record of each known unit in the truth (-1: not in it): these are left out of f(z). With `as_true`
    the values of those that are in it are the true ones.
    """

    z: Table
    x: Table
    truth: Table
    z_blocks: Ints
    x_blocks: Ints
    truth_blocks: Ints
    numbers: Ints
    as_true: bool = False


@dataclass(frozen=True, slots=True)
class Kernel:
    """How pairs are weighed, and what stands beside them.

    `log_marginal` has log f(z) of every released record (nothing: the mean over the true records of nobody he knows),
    `log_unreleased` the weight of every known unit without a record (nothing: 1).
    """

    name: str = "coherent"
    log_marginal: Floats | None = None
    log_unreleased: Floats | None = None


@dataclass(frozen=True, slots=True)
class HelpedBlock:
    """The probabilities of the known units of a block: numbers of known and of released records, and marginals."""

    block: int
    known: Ints
    released: Ints
    marginals: Marginals


@dataclass(frozen=True, slots=True)
class ParameterSummary:
    """What the chains say of one parameter: mean and sd of its draws; `card` is what the card says."""

    name: str
    columns: tuple[str, ...]
    mean: float
    sd: float
    rhat: float
    ess: float
    card: float


@dataclass(frozen=True, slots=True)
class GroupPosterior:
    """The answer for one group: its blocks, what was learned of the parameters, and whether the chains agree."""

    blocks: tuple[HelpedBlock, ...]
    psi: tuple[ParameterSummary, ...]
    converged: bool
    rhat: float
    ess: float
    draws: int
    notes: tuple[Note, ...] = ()


def group_posterior(
    laws: Sequence[Any], group: Group, kernel: Kernel, prior: Prior | None, sampling: Sampling, seed: int
) -> GroupPosterior:
    """Return the probabilities of all known units of a group; without a prior the parameters are told."""
    blocks = np.unique(group.x_blocks)
    released = Side.of(group.z, group.z_blocks, blocks)
    known = BlockPairs(Side.of(group.x, group.x_blocks, blocks), released)
    others = BlockPairs(_others(group, blocks), released)
    units = np.maximum(unit_counts(group, blocks), np.maximum(known.side.sizes, released.sizes))
    situation = _Situation(blocks, known, others, units, kernel)
    doubts = [Doubt.of(prior, law, group.z) for law in laws] if prior is not None else []
    if not any(doubt.unknowns for doubt in doubts):
        return situation.told(laws, sampling, seed)
    return situation.learned(doubts, sampling, seed)


def _others(group: Group, blocks: Ints) -> Side:
    """Return the true records of nobody he knows."""
    codes = group.truth_blocks.copy()
    codes[group.numbers[group.numbers >= 0]] = -1
    return Side.of(group.truth, codes, blocks)


def unit_counts(group: Group, blocks: Ints) -> Ints:
    """Return how many true records each of some blocks has."""
    codes = group.truth_blocks
    counts = np.bincount(codes[codes >= 0], minlength=int(blocks.max(initial=0)) + 1)
    return np.asarray(counts[blocks])


@dataclass(frozen=True, slots=True)
class _Situation:
    """The blocks of a group: pairs with known units, pairs with other true records, how many units each block has."""

    blocks: Ints
    known: BlockPairs
    others: BlockPairs
    units: Ints
    kernel: Kernel

    def told(self, laws: Sequence[Any], sampling: Sampling, seed: int) -> GroupPosterior:
        """Match with parameters that are told, block by block."""
        model = ListedKernel(self.known, self.others, lambda _, table: self._terms(laws, table))
        nothing = np.empty(0)
        flat, free, absent = model.pair_logs(nothing), self._free(model), self._unreleased()
        found, ends = [], self.known.released.ends
        for b, logs in enumerate(self.known.matrices(flat)):
            own = absent[self.known.side.ends[b] : self.known.side.ends[b + 1], None]
            ratio = logs - free[ends[b] : ends[b + 1]] - own
            rng = np.random.default_rng([seed, b])
            found.append(marginals(ratio, int(self.units[b]), rng, sampling))
        return self._answer(found, (), ())

    def _terms(self, laws: Sequence[Any], table: Table) -> Any:
        if self.kernel.name in BACKWARD:
            from ..bias_likelihood.kernels import biased_terms

            return biased_terms(laws, self.known.released.table, table, self.kernel.name, None)
        return law_terms(laws, self.known.released.table, table)

    def _free(self, model: ListedKernel) -> Floats:
        """Return the log weight of records that are nobody's, with parameters that are told."""
        given = self._given()
        return model.log_marginal(np.empty(0)) if given is None else given

    def _given(self) -> Floats | None:
        """Return the log weight of records that are nobody's where no parameter bears on it."""
        records = self.known.released.records
        if self.kernel.log_marginal is not None:
            return self.kernel.log_marginal[records]
        closed = not len(self.others.side.records)
        return np.zeros(len(records)) if self.kernel.name != "coherent" or closed else None

    def _unreleased(self) -> Floats:
        records, given = self.known.side.records, self.kernel.log_unreleased
        return np.zeros(len(records)) if given is None else given[records]

    def learned(self, doubts: Sequence[Doubt], sampling: Sampling, seed: int) -> GroupPosterior:
        """Match and learn the parameters together."""
        model = model_of(doubts, self.kernel.name, self.known, self.others)
        beliefs = tuple(belief for doubt in doubts for belief in doubt.beliefs)
        unknowns = [unknown for doubt in doubts for unknown in doubt.unknowns]
        given = self._given()
        together = given is None and len(unknowns) > 2
        groups = np.ones((1, len(unknowns)), np.int64) if together else joint_step_groups(unknowns)
        problem = MatchingProblem(model, beliefs, groups, self.units, self._unreleased(), given)
        if (wide := node_posterior(problem, sampling, seed)) is not None:
            return self._spanned(wide, unknowns, _notes(doubts, self, problem))
        walk = ParameterWalk.of(problem, sampling.chains, seed)
        done, judged = _until_converged(walk, sampling)
        return self._answer(
            self._marginals(walk, done, judged),
            _parameter_summaries(unknowns, done, judged),
            _notes(doubts, self, walk.problem),
        )

    def _spanned(
        self, wide: NodePosterior, unknowns: Sequence[Unknown], notes: tuple[Note, ...]
    ) -> GroupPosterior:
        """Answer with what was drawn at a few values of the parameters."""
        rhat, ess = max(one.rhat for one in wide.found), min(one.ess for one in wide.found)
        psi = tuple(
            ParameterSummary(one.name, one.columns, mean, sd, rhat, ess, one.value)
            for one, mean, sd in zip(unknowns, wide.mean.tolist(), wide.sd.tolist(), strict=True)
        )
        said = Note("attacks.matchings_at_values", {"values": wide.nodes})
        return self._answer(wide.found, psi, (said, *notes))

    def _marginals(self, walk: ParameterWalk, done: Round, judged: _RoundDiagnostics) -> list[Marginals]:
        """Return the probabilities of every block, with what the diagnostics say of all of them."""
        said = (False, judged.rhat, judged.ess, judged.error, judged.draws, judged.converged)
        found = []
        for drawn, guessed in zip(
            done.by_block(self.known), bethe_marginals(walk.problem, done), strict=True
        ):
            one = shrinkage_estimate(drawn, guessed)
            found.append(Marginals(one.chances[:, :-1], one.chances[:, -1], *said, one.decided))
        return found

    def _answer(
        self, found: Sequence[Marginals], psi: tuple[ParameterSummary, ...], notes: tuple[Note, ...]
    ) -> GroupPosterior:
        known, released = (
            [side.records[a:b] for a, b in pairwise(side.ends)]
            for side in (self.known.side, self.known.released)
        )
        blocks = tuple(map(HelpedBlock, self.blocks.tolist(), known, released, found))
        rhat, ess = max(one.rhat for one in found), min(one.ess for one in found)
        converged = all(one.converged for one in found)
        return GroupPosterior(blocks, psi, converged, rhat, ess, max(one.draws for one in found), notes)


@dataclass(frozen=True, slots=True)
class _RoundDiagnostics:
    """R-hat and ESS of each parameter, the worst of all that is watched, and the error of the probabilities."""

    each: Floats
    rhat: float
    ess: float
    error: float
    draws: int
    converged: bool


def _until_converged(walk: ParameterWalk, sampling: Sampling) -> tuple[Round, _RoundDiagnostics]:
    """Draw ever more until the chains agree; each round forgets those before, so that it may start anywhere."""
    units, chains, draws = len(walk.problem.unreleased), sampling.chains, sampling.draws
    walk.first(draws)
    while True:
        thin = thinning_interval(units, chains, draws)
        done = walk.round(-(-draws // thin), thin)
        judged = _diagnose_round(walk.problem, done, sampling)
        if judged.converged or 2 * draws > sampling.most:
            return done, judged
        draws = sampling.more(draws, judged.ess)


def _diagnose_round(problem: MatchingProblem, done: Round, sampling: Sampling) -> _RoundDiagnostics:
    """Compare the chains: parameters, log weight, how many are matched, and who has the record likeliest for him."""
    modal, share = _modal(problem, done)
    held = done.kept == modal
    matched = (done.kept >= 0).sum(axis=2, keepdims=True)
    watched = np.concatenate([done.traces, matched, held[:, :, _worst(held)]], axis=2, dtype=np.float64)
    moving = np.ptp(watched, axis=(0, 1)) > 0
    rhat, ess = rhat_and_ess(watched[:, :, moving])
    each = np.full((2, watched.shape[2]), np.nan)
    each[:, moving] = rhat, ess
    every = done.sweeps * len(done.kept)
    worst, least = float(np.max(rhat, initial=1.0)), float(np.min(ess, initial=every))
    error = float(np.sqrt(np.max(share * (1 - share), initial=0.0) / max(least, 1e-9)))
    converged = worst <= sampling.rhat and least >= sampling.ess
    return _RoundDiagnostics(each, worst, least, min(error, 1.0), done.sweeps, converged)


def _worst(held: Bools) -> Ints:
    """Return the units whose chains agree least, and whose draws hang together most, by means of batches of draws.

    Who is with one record in all but a few draws of every chain is left out: rare events have no useful R-hat.
    """
    size = max(held.shape[1] // BATCHES, 1)
    means = np.stack([held[:, a : a + size].mean(axis=1) for a in range(0, size * BATCHES, size)], axis=1)
    share = means.mean(axis=(0, 1))
    doubtful = np.flatnonzero(np.abs(means.mean(axis=1) - 1.0).max(axis=0) > SURE)
    spread = np.maximum(share * (1 - share), SURE)[doubtful]
    apart, clumped = (part.var(axis=0)[doubtful] / spread for part in _cuts(means))
    worst = np.concatenate([np.argsort(-one, kind="stable")[:WORST] for one in (apart, clumped)])
    return np.asarray(doubtful[np.unique(worst)])


def _cuts(means: Floats) -> tuple[Floats, Floats]:
    """Return the means of half chains, and of all batches, each with one row for a part."""
    chains, batches, units = means.shape
    return means.reshape(2 * chains, batches // 2, units).mean(axis=1), means.reshape(-1, units)


def _modal(problem: MatchingProblem, done: Round) -> tuple[Ints, Floats]:
    """Return the record (-1: none) that each unit has most often, and how often."""
    share, absent = done.chances()
    out, chance, at = np.full(len(absent), -1), absent.copy(), 0
    for b, block in enumerate(problem.known.matrices(share)):
        rows = slice(at, at + len(block))
        at += len(block)
        if block.size:
            best = block.max(axis=1)
            more = best > absent[rows]
            out[rows] = np.where(more, block.argmax(axis=1) + problem.known.released.ends[b], -1)
            chance[rows] = np.maximum(best, absent[rows])
    return out, chance


def _parameter_summaries(
    unknowns: Sequence[Unknown], done: Round, judged: _RoundDiagnostics
) -> tuple[ParameterSummary, ...]:
    values = np.exp(done.traces[:, :, : len(unknowns)])
    means, sds = values.mean(axis=(0, 1)).tolist(), values.std(axis=(0, 1)).tolist()
    rhat, ess = judged.each.tolist()
    return tuple(
        ParameterSummary(one.name, one.columns, means[i], sds[i], rhat[i], ess[i], one.value)
        for i, one in enumerate(unknowns)
    )


def joint_step_groups(unknowns: Sequence[Unknown]) -> Ints:
    """Return which unknowns step together: those that bear on the same columns (rows of ones)."""
    label = list(range(len(unknowns)))
    for i, one in enumerate(unknowns):
        for j in range(i):
            if set(one.columns) & set(unknowns[j].columns):
                label = [label[i] if a == label[j] else a for a in label]
    return np.array([[int(a == b) for b in label] for a in dict.fromkeys(label)], np.int64)


def _notes(doubts: Sequence[Doubt], situation: _Situation, problem: MatchingProblem) -> tuple[Note, ...]:
    """Say what was taken as told, and where the numbers of units could not be as they were said."""
    without = (problem.units > situation.units).any()
    return (*on_told_columns(doubts), *([Note("attacks.units_without_record")] if without else []))


def on_told_columns(doubts: Sequence[Doubt]) -> tuple[Note, ...]:
    """Name the columns whose laws leave nothing unknown."""
    told = tuple(name for doubt in doubts if not doubt.unknowns for name in doubt.law.columns)
    return (Note("attacks.nothing_to_learn", {"columns": told}),) if told else ()

"""How much likelier a target makes a released record: scores of all pairs within blocks, and what they sum to.

score = log f(z|x) - log f(z). With marginal="truth" f(z) is the mean of f(z|x_m) over the N true records of the block,
and the posterior weight leaves the target's own record out of it: r (N - 1) / (N - r), r = f(z|x) / f(z). Own
derivation (see `against_others`): it is the odds of "z is the target's" against "z is another's". The other kernels
take their own logs for the score. Chosen by `posterior` and `matching_posterior.posterior` wherever pairs are looked at
one by one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ...card import NoiseCard
from ...kernels.log_sums import log_sum
from ...masking import Release
from ...table import Floats, Table
from ..candidate_scores import PAIRS_AT_ONCE, SAME_SCORE, Batch, BestCandidates, Blocks, in_runs
from ..class_codes import coded_in
from ..joint_codes import block_codes
from ..pair_density import all_logs, laws_on
from ..protocol import MOVED, Bools, IntruderKnowledge, Ints
from .belief import BeliefStanding
from .candidates import CandidateBlocks
from .law_kernels import BACKWARD, LawReading
from .likelihood import PairLikelihood, Read

if TYPE_CHECKING:
    from .plan import BayesIntruder

SURE = 1e-9  # a record from which alone a released one can have come is not weighed higher than this allows
# Of a block from which on its pairs are a matrix: below, several blocks at once are quicker
MATRIX_PAIRS = 20_000
KEPT_PAIRS = 4_000_000  # scores that are kept for a second look


@dataclass(frozen=True, slots=True)
class Unit:
    """Some released records of a block with all its true ones and the intruder's."""

    true: Ints
    known: Ints
    released: Ints


@dataclass(frozen=True, slots=True)
class Odds:
    """Scores of pairs: log f(z|x) - log f(z), or what another kernel takes for it.

    With `truth` f(z) is the mean of f(z|x) over the true records of the block, and `log_f` is filled in as blocks are
    scored; without it `log_f` is given. `is_averaged` says that the known records are among those averaged, exactly as
    the intruder has them; `numbers` are then theirs, where known, and no pair is weighed twice. `log_absent` has the
    log weight, for each known record, of not being released. `shared` has densities of true records that were
    computed before. `is_f_moved` says that what swapped records carry has the law f(z) itself, so that `log_moved` is
    filled in with it; `is_f_known` that `log_f` was filled in before.
    """

    ground: CandidateBlocks
    targets: PairLikelihood
    truth: PairLikelihood | None
    log_f: Floats
    log_moved: Floats
    log_absent: Floats
    is_averaged: bool = True
    is_f_moved: bool = False
    is_f_known: bool = False
    numbers: Ints | None = None
    shared: dict[Any, Floats] = field(default_factory=dict)
    kept: list[Batch] = field(default_factory=list)

    @classmethod
    def by_truth(
        cls,
        ground: CandidateBlocks,
        known: IntruderKnowledge,
        release: Release,
        fields: Sequence[str],
        reads: tuple[Read, Read],
    ) -> Odds:
        """Prepare scores against the steward's true records; `reads` are for his and for the intruder's records.

        Densities of true records are taken from, and put into, what `known` shares: it must be of one reading.
        """
        card, released, population = release.card, release.table, known.population
        truth = PairLikelihood.of(card, fields, released, population, reads[0])
        numbers = _numbers(known) if reads[0] == reads[1] else None
        targets = (
            truth
            if numbers is not None
            else PairLikelihood.of(card, fields, released, known.targets, reads[1])
        )
        nothing = np.full(len(released), -np.inf)
        is_f_moved = bool(truth.share) and _is_f_moved(truth, release, known.population, ground)
        moved = nothing.copy()
        if truth.share and not is_f_moved:
            moved = _log_moved_once(truth, known, release, ground, tuple(fields))
        with np.errstate(divide="ignore"):
            absent = np.log(ground.absent)
        shared = known.shared.setdefault(("densities", tuple(fields)), {})
        odds = cls(ground, targets, truth, nothing.copy(), moved, absent, numbers=numbers, shared=shared)
        return replace(odds, is_averaged=reads[0] == reads[1], is_f_moved=is_f_moved)

    @classmethod
    def by_given(
        cls,
        ground: CandidateBlocks,
        known: IntruderKnowledge,
        release: Release,
        fields: Sequence[str],
        read: Read,
        logs: tuple[Floats, Floats, Floats | None],
    ) -> Odds:
        """Prepare scores against a given log f(z).

        `logs` are that, the log weights of not being released, and the log density of what swapped records carry,
        which where it is not given is taken over the block's true records.
        """
        wanted = np.isin(ground.blocks.released, ground.blocks.known)
        targets = PairLikelihood.of_part(release.card, fields, release.table, known.targets, read, wanted)
        moved = np.full(len(release.table), -np.inf) if logs[2] is None else logs[2]
        if targets.share and logs[2] is None:
            truth = PairLikelihood.of(release.card, fields, release.table, known.population, read)
            moved = log_moved(truth, release, known.population, ground.true_order, wanted)
        return cls(ground, targets, None, logs[0], moved, logs[1])

    @property
    def _sums_f(self) -> bool:
        """Whether f(z) is summed over the true records as blocks are scored."""
        return self.truth is not None and not self.is_f_known

    @property
    def pairs_in_blocks(self) -> int:
        """How many pairs of a known and a released record there are."""
        blocks = self.ground.blocks
        return int(blocks.sizes(released=False).sum())

    def batches(self) -> Iterator[Batch]:
        """Score all pairs within blocks, once or again."""
        if self.kept:
            yield from self.kept
            return
        keeping = self.pairs_in_blocks <= KEPT_PAIRS
        for batch in self._fresh():
            if keeping:
                self.kept.append(batch)
            yield batch

    def _fresh(self) -> Iterator[Batch]:
        some: list[Unit] = []
        for unit in self._units():
            some.append(unit)
            if sum(max(len(one.true), len(one.known)) * len(one.released) for one in some) >= PAIRS_AT_ONCE:
                yield from self._scored(some)
                some = []
        yield from self._scored(some)

    def _units(self) -> Iterator[Unit]:
        nobody = np.empty(0, np.int64)
        true = self.ground.true_members() if self._sums_f else {}
        for block, known, released in self.ground.blocks:
            theirs = true.get(block, nobody)
            for run in in_runs(released, max(len(theirs), len(known))):
                yield Unit(theirs, known, run)

    def _scored(self, units: list[Unit]) -> Iterator[Batch]:
        """Score the pairs of several blocks at once: the laws are asked once for all of them."""
        logs: list[Floats] = []
        if self.truth is not None and self._sums_f:
            logs = self._true_logs(self.truth, units)
            for unit, block in zip(units, logs, strict=True):
                self.log_f[unit.released] = _log_mean(block, self.ground.units[unit.released])
                if self.is_f_moved:
                    self.log_moved[unit.released] = self.log_f[unit.released]
        if self.numbers is None or not self._sums_f:
            own = [unit.known if self.numbers is None else self.numbers[unit.known] for unit in units]
            sides = [(one, unit.released) for one, unit in zip(own, units, strict=True)]
            logs = self._logs(self.targets, sides)
        else:
            logs = [
                block[_places(unit.true, self.numbers[unit.known])]
                for unit, block in zip(units, logs, strict=True)
            ]
        for unit, block in zip(units, logs, strict=True):
            scores = _against(block, self.log_f[unit.released])
            yield Batch(unit.known, unit.released, scores, self.weights(scores, unit.released))

    def _true_logs(self, truth: PairLikelihood, units: list[Unit]) -> list[Floats]:
        """Return for each unit the log densities of all its true records, those computed before not again."""
        keys = [(unit.released.tobytes(), unit.true.tobytes()) for unit in units]
        new = [(key, unit) for key, unit in zip(keys, units, strict=True) if key not in self.shared]
        sides = [(unit.true, unit.released) for _, unit in new]
        logs = self._mixed(truth, sides) if self.is_f_moved else self._logs(truth, sides)
        found = dict(zip((key for key, _ in new), logs, strict=True))
        if sum(block.size for block in (*self.shared.values(), *logs)) <= KEPT_PAIRS:
            self.shared.update(found)
        return [found[key] if key in found else self.shared[key] for key in keys]

    def _mixed(self, truth: PairLikelihood, sides: list[tuple[Ints, Ints]]) -> list[Floats]:
        """Return log p(z | x) of true records where a swapped one carries what has the law f(z): both in one pass."""
        own = self._logs(replace(truth, share=0.0), sides)
        others = [
            _log_mean(logs, self.ground.units[released])
            for logs, (_, released) in zip(own, sides, strict=True)
        ]
        stays, goes = np.log1p(-truth.share), np.log(truth.share)
        return [np.logaddexp(stays + logs, goes + other) for logs, other in zip(own, others, strict=True)]

    def _logs(self, pairing: PairLikelihood, sides: list[tuple[Ints, Ints]]) -> list[Floats]:
        """Return for each pair of sides the matrix of log p(z | x): true records x released ones."""
        small = [i for i, (a, b) in enumerate(sides) if len(a) * len(b) < MATRIX_PAIRS]
        z, x = _list_block_pairs([sides[i] for i in small])
        ends = np.cumsum([len(sides[i][0]) * len(sides[i][1]) for i in small])
        parts = dict(zip(small, np.split(pairing.logs(z, x, self.log_moved), ends), strict=False))
        return [
            parts[i].reshape(len(a), len(b)) if i in parts else pairing.matrix(b, a, self.log_moved)
            for i, (a, b) in enumerate(sides)
        ]

    def weights(self, scores: Floats, released: Ints) -> Floats:
        """Return the log posterior weights of scores."""
        averaged = self.truth is not None and self.is_averaged
        return against_others(scores, self.ground.units[released]) if averaged else scores

    def pairs(self, known: Ints, released: Ints) -> Floats:
        """Score listed pairs."""
        blocks = self.ground.blocks
        same = blocks.known[known] == blocks.released[released]
        out = np.full(len(known), -np.inf)
        x = known[same] if self.numbers is None else self.numbers[known[same]]
        logs = self.targets.logs(released[same], x, self.log_moved)
        out[same] = _against(logs, self.log_f[released[same]])
        return out

    def matrix(self, known: Ints, released: Ints) -> Floats:
        """Score all pairs of some records of one block: known x released."""
        x = known if self.numbers is None else self.numbers[known]
        return _against(self.targets.matrix(released, x, self.log_moved), self.log_f[released])

    def log_total(self, best: BestCandidates, *, to_masked: bool) -> Floats:
        """Return the log of all posterior weights of each searcher, of not being released too."""
        if to_masked:
            return np.asarray(np.logaddexp(best.log_total, self.log_absent))
        if self.truth is None:
            return best.log_total
        return np.maximum(best.log_total, np.log(self.ground.units))

    def probability(self, best: BestCandidates, *, to_masked: bool) -> Floats:
        """Return the posterior of each link, NaN where there is none."""
        linked = np.flatnonzero(best.place >= 0)
        own = best.score[linked]
        if to_masked:
            own = self.weights(own, best.place[linked])
        out = np.full(len(best.place), np.nan)
        out[linked] = np.exp(own - self.log_total(best, to_masked=to_masked)[linked])
        return out

    def standing(self, best: BestCandidates, rows: Ints, found: Ints, *, to_masked: bool) -> BeliefStanding:
        """Return, for some searchers, how given candidates stand among all of theirs."""
        known, released = (rows, found) if to_masked else (found, rows)
        own = self.pairs(known, released)
        weight = self.weights(own, released) if to_masked else own
        level = np.full(len(best.place), np.nan)
        level[rows] = own
        better, ties = _rank_counts(self.batches(), level, to_masked=to_masked)
        total = np.where(np.isfinite(own), self.log_total(best, to_masked=to_masked)[rows], 0.0)
        chance = np.exp(weight - total)
        inside = self.ground.blocks.known[known] == self.ground.blocks.released[released]
        return BeliefStanding(np.where(inside, better[rows], -1), np.where(inside, ties[rows], 0), chance)


def _numbers(known: IntruderKnowledge) -> Ints | None:
    """Return which true records the intruder's are, where they are these."""
    if known.targets is known.population:
        return np.arange(len(known.targets))
    return known.numbers if known.as_true else None


def _places(among: Ints, wanted: Ints) -> Ints:
    """Return where some numbers stand in a list that holds them all."""
    order = np.argsort(among, kind="stable")
    return np.asarray(order[np.searchsorted(among, wanted, sorter=order)])


def _rank_counts(batches: Iterator[Batch], level: Floats, *, to_masked: bool) -> tuple[Ints, Ints]:
    """Count for each searcher the candidates that score higher than a level, and those that score the same."""
    better, ties = np.zeros(len(level), np.int64), np.zeros(len(level), np.int64)
    for batch in batches:
        near, scores = (batch.known, batch.scores) if to_masked else (batch.released, batch.scores.T)
        here = level[near]
        possible = np.isfinite(here)
        here = np.where(possible, here, 0.0)[:, None]
        margin = SAME_SCORE * np.maximum(np.abs(here), 1.0)
        above, below = scores > here + margin, scores < here - margin
        better[near] += np.where(possible, above.sum(axis=1), np.isfinite(scores).sum(axis=1))
        ties[near] += np.where(possible, (~above & ~below).sum(axis=1), 0)
    return better, ties


def _log_moved_once(
    pairing: PairLikelihood,
    known: IntruderKnowledge,
    release: Release,
    ground: CandidateBlocks,
    fields: tuple[str, ...],
) -> Floats:
    """Return `log_moved`, computed once by intruders of one attack who look at the same blocks."""
    wanted = np.isin(ground.blocks.released, ground.blocks.known)
    key = (MOVED, fields, wanted.tobytes())
    if key not in known.shared:
        known.shared[key] = log_moved(pairing, release, known.population, ground.true_order, wanted)
    found: Floats = known.shared[key]
    return found


def _is_f_moved(truth: PairLikelihood, release: Release, population: Table, ground: CandidateBlocks) -> bool:
    """Whether all that is compared was exchanged, within the blocks of the search: its law is that of any record."""
    card: NoiseCard = release.card
    if truth.kept or card.swapped is None:
        return False
    true, theirs = block_codes(
        coded_in(population, card, card.swapped.blocks), release.table, card.swapped.blocks
    )
    size = int(max(true.max(initial=0), theirs.max(initial=0))) + 1
    number = np.full(size, -1, np.int64)
    number[theirs] = ground.blocks.released
    units = np.bincount(true, minlength=size)
    alike = np.array_equal(number[theirs], ground.blocks.released) and np.array_equal(
        number[true], ground.true
    )
    return alike and np.array_equal(units[theirs], ground.units)


def log_moved(
    pairing: PairLikelihood, release: Release, population: Table, true_order: Ints, wanted: Bools
) -> Floats:
    """Return for each wanted released record the log density of its swapped columns over its block's true records."""
    card: NoiseCard = release.card
    assert card.swapped is not None
    within = card.swapped.blocks
    true, theirs = block_codes(coded_in(population, card, within), release.table, within)
    sizes = np.bincount(true, minlength=int(theirs.max(initial=0)) + 1)
    out = np.full(len(release.table), -np.inf)
    for _, records, block in Blocks(true, theirs, (true_order, np.arange(len(theirs)))):
        for run in in_runs(block[wanted[block]], len(records)):
            out[run] = _log_mean(all_logs(pairing.moved, run, records), sizes[theirs[run]])
    return out


def _list_block_pairs(sides: list[tuple[Ints, Ints]]) -> tuple[Ints, Ints]:
    """List the pairs of all true with all released records of each block: released and true record numbers."""
    nothing = np.empty(0, np.int64)
    z = [np.tile(released, len(true)) for true, released in sides]
    x = [np.repeat(true, len(released)) for true, released in sides]
    return np.concatenate([nothing, *z]), np.concatenate([nothing, *x])


def _log_mean(logs: Floats, count: Ints) -> Floats:
    return np.asarray(log_sum(logs, axis=0) - np.log(np.maximum(count, 1)))


def against_others(scores: Floats, units: Ints) -> Floats:
    """Return log f(z|x) - log f'(z), f' the mean over the other true records of the block: x itself is left out.

    With r = f(z|x) / f(z) and N records this is r (N - 1) / (N - r). It grows with r, so the best link is the same, but
    only these weights make a posterior: who asks whether z is x's or another's must not find x among the others.
    """
    records = units.astype(np.float64)
    share = np.minimum(np.exp(scores - np.log(records)), 1.0)
    rest = np.maximum(1.0 - share, SURE)
    return np.asarray(scores + np.log(np.maximum(records - 1.0, SURE) / records) - np.log(rest))


def _against(logs: Floats, log_f: Floats) -> Floats:
    """Return log f(z|x) - log f(z), minus infinity where either is: what no true record leads to is nobody's."""
    with np.errstate(invalid="ignore"):  # a card of somebody else may make both infinite: then neither tells
        return np.where(np.isneginf(log_f), -np.inf, logs - np.where(np.isneginf(log_f), 0.0, log_f))


def swapped_log_density(release: Release, fields: Sequence[str], reading: LawReading) -> Floats | None:
    """Return the log density of what swapped records carry, as one who is not told the noise takes it.

    He does not have the true records either: it is a normal law, fitted to the release, in the blocks in which records
    were exchanged. For others it is nothing: they take it over the true records.
    """
    swapped = release.card.swapped
    if reading.prior is None or swapped is None:
        return None
    from .marginal.released_density import log_gaussian

    moved = [name for name in fields if name in swapped.columns]
    blocks = block_codes(release.table, release.table, swapped.blocks)[1]
    return log_gaussian(release.table, moved, release.card, blocks)


def log_f(plan: BayesIntruder, release: Release, fields: Sequence[str], blocks: Ints) -> Floats:
    """Return the f(z) of an outsider, or nothing for kernels without one."""
    if plan.kernel != "coherent":
        return np.zeros(len(release.table))
    from .marginal.released_density import log_gaussian, log_given

    if callable(plan.marginal):
        return log_given(plan.marginal, release.table)
    uncertain = () if plan.error is None else plan.error.columns
    sure = [n for n in fields if n not in uncertain or release.card.law_of(n) is not None]
    return log_gaussian(release.table, sure, release.card, blocks)


def log_absent(
    known: IntruderKnowledge,
    release: Release,
    fields: Sequence[str],
    ground: CandidateBlocks,
    reading: LawReading,
) -> Floats:
    """Return the log weight of not being released: the units that were not, by how well the target fits among them."""
    nothing = np.full(len(known.targets), -np.inf)
    if reading.kernel == "forward" or not ground.absent.any():
        return nothing
    with np.errstate(divide="ignore"):
        counts = np.log(ground.absent)
    if reading.kernel not in BACKWARD:
        return np.asarray(counts)
    return np.asarray(counts + reading.log_unreleased(laws_on(release.card, fields), known.targets))

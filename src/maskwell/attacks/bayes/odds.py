"""How much likelier a target makes a released record: scores of all pairs within blocks, and what they sum to."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from ...card import NoiseCard
from ...masking import Release
from ...table import Floats, Table
from ..contract import Bools, Ints, Known
from ..pairwise import summed_logs
from ..ranking import PAIRS_AT_ONCE, Batch, Best, Blocks, in_runs, log_sum, members
from ..search import block_codes
from .pairing import Pairing, swapped_columns

SURE = 1e-12  # a record from which alone a released one can have come is not weighed higher than this allows


@dataclass(frozen=True, slots=True)
class Unit:
    """Some released records of a block with all its true ones and the intruder's."""

    true: Ints
    known: Ints
    released: Ints


@dataclass(frozen=True, slots=True)
class Odds:
    """Scores log f(z|x) - log f(z); `log_f` is filled in as blocks are scored.

    Values that left in clear split the blocks further: no possible candidate is lost by it. `true` has the true
    records of each block; `total` and `unreleased` count, for each released record, the true records of its matching
    block and those of them that were not released.
    """

    truth: Pairing
    targets: Pairing
    blocks: Blocks
    true: dict[int, Ints]
    total: Ints
    unreleased: Ints
    log_f: Floats
    log_moved: Floats

    @classmethod
    def of(
        cls,
        known: Known,
        release: Release,
        fields: Sequence[str],
        columns: Sequence[str],
        orders: tuple[Ints, Ints],
        true_order: Ints,
    ) -> Odds:
        """Prepare the laws and the blocks of both sides and of the steward's true records."""
        card, released, population = release.card, release.table, known.population
        truth = Pairing.of(card, fields, released, population)
        same = known.targets is population
        targets = truth if same else Pairing.of(card, fields, released, known.targets)
        clear = [name for name in fields if card.law_of(name) is None and name not in swapped_columns(card)]
        fine, true = _refined(known, released, (*columns, *clear), orders)
        ours, theirs = block_codes(population, released, columns)
        total, nothing = _counted(ours, theirs), np.full(len(released), -np.inf)
        wanted = np.isin(fine.released, fine.known)
        moved = _log_moved(truth, card, released, population, true_order, wanted) if truth.share else nothing
        unreleased = np.maximum(total - _counted(theirs, theirs), 0)
        return cls(truth, targets, fine, members(true, true_order), total, unreleased, nothing.copy(), moved)

    def batches(self) -> Iterator[Batch]:
        """Score all pairs within blocks."""
        some: list[Unit] = []
        for unit in self._units():
            some.append(unit)
            if sum(len(one.true) * len(one.released) for one in some) >= PAIRS_AT_ONCE:
                yield from self._scored(some)
                some = []
        yield from self._scored(some)

    def _units(self) -> Iterator[Unit]:
        for block, known, released in self.blocks:
            true = known if self.targets is self.truth else self.true.get(block, np.empty(0, np.int64))
            for run in in_runs(released, len(true)):
                yield Unit(true, known, run)

    def _scored(self, units: list[Unit]) -> Iterator[Batch]:
        """Score the pairs of several blocks at once: the laws are asked once for all of them."""
        logs = self._logs(self.truth, [(unit.true, unit.released) for unit in units])
        for unit, block in zip(units, logs, strict=True):
            self.log_f[unit.released] = _log_mean(block, self.total[unit.released])
        if self.targets is not self.truth:
            logs = self._logs(self.targets, [(unit.known, unit.released) for unit in units])
        for unit, block in zip(units, logs, strict=True):
            scores = _against(block, self.log_f[unit.released])
            yield Batch(unit.known, unit.released, scores, _against_others(scores, self.total[unit.released]))

    def _logs(self, pairing: Pairing, sides: list[tuple[Ints, Ints]]) -> list[Floats]:
        """Return for each pair of sides the matrix of log p(z | x): true records x released ones."""
        z, x = _listed(sides)
        parts = np.split(pairing.logs(z, x, self.log_moved), np.cumsum([len(a) * len(b) for a, b in sides]))
        return [part.reshape(len(a), len(b)) for part, (a, b) in zip(parts, sides, strict=False)]

    def pairs(self, known: Ints, released: Ints) -> Floats:
        """Score listed pairs."""
        same = self.blocks.known[known] == self.blocks.released[released]
        out = np.full(len(known), -np.inf)
        logs = self.targets.logs(released[same], known[same], self.log_moved)
        out[same] = _against(logs, self.log_f[released[same]])
        return out

    def probability(self, best: Best, *, to_masked: bool) -> Floats:
        """Return the posterior of each link, NaN where there is none."""
        linked = np.flatnonzero(best.place >= 0)
        out, total, own = np.full(len(best.place), np.nan), best.log_total[linked], best.score[linked]
        if to_masked:
            own = _against_others(own, self.total[best.place[linked]])
            with np.errstate(divide="ignore"):
                total = np.logaddexp(total, np.log(self.unreleased[best.place[linked]]))
        else:
            total = np.maximum(total, np.log(self.total[linked]))
        out[linked] = np.exp(own - total)
        return out


def _log_moved(
    pairing: Pairing, card: NoiseCard, released: Table, population: Table, order: Ints, wanted: Bools
) -> Floats:
    """Return for each wanted released record the log density of its swapped columns over its block's true records."""
    assert card.swapped is not None
    true, theirs = block_codes(population, released, card.swapped.blocks)
    total, out = _counted(true, theirs), np.full(len(released), -np.inf)
    for _, records, block in Blocks(true, theirs, (order, np.arange(len(theirs)))):
        for run in in_runs(block[wanted[block]], len(records)):
            logs = summed_logs(pairing.moved, *_listed([(records, run)]))
            out[run] = _log_mean(logs.reshape(len(records), len(run)), total[run])
    return out


def _listed(sides: list[tuple[Ints, Ints]]) -> tuple[Ints, Ints]:
    """List the pairs of all true with all released records of each block: released and true record numbers."""
    nothing = np.empty(0, np.int64)
    z = [np.tile(released, len(true)) for true, released in sides]
    x = [np.repeat(true, len(released)) for true, released in sides]
    return np.concatenate([nothing, *z]), np.concatenate([nothing, *x])


def _log_mean(logs: Floats, count: Ints) -> Floats:
    return np.asarray(log_sum(logs, axis=0) - np.log(np.maximum(count, 1)))


def _counted(blocks: Ints, of: Ints) -> Ints:
    """Return how many records lie in the block of each of some others."""
    counts = np.bincount(blocks, minlength=int(max(blocks.max(initial=0), of.max(initial=0))) + 1)
    return np.asarray(counts[of])


def _refined(
    known: Known, released: Table, columns: Sequence[str], orders: tuple[Ints, Ints]
) -> tuple[Blocks, Ints]:
    """Return blocks by more columns, and those of the true records, numbered alike."""
    ours, theirs = block_codes(known.targets, released, columns)
    true, again = block_codes(known.population, released, columns)
    number = np.full(int(max(true.max(initial=0), again.max(initial=0))) + 1, -1, np.int64)
    number[again] = theirs
    return Blocks(ours, theirs, orders), number[true]


def _against_others(scores: Floats, count: Ints) -> Floats:
    """Return log f(z|x) - log f'(z), f' the mean over the other true records of the block: x itself is left out.

    With r = f(z|x) / f(z) and N records this is r (N - 1) / (N - r). It grows with r, so the best link is the same, but
    only these weights make a posterior: who asks whether z is x's or another's must not find x among the others.
    """
    records = count.astype(np.float64)
    share = np.minimum(np.exp(scores - np.log(records)), 1.0)
    rest = np.maximum(1.0 - share, SURE)
    return np.asarray(scores + np.log(np.maximum(records - 1.0, SURE) / records) - np.log(rest))


def _against(logs: Floats, log_f: Floats) -> Floats:
    """Return log f(z|x) - log f(z), minus infinity where either is: what no true record leads to is nobody's."""
    return np.where(np.isneginf(log_f), -np.inf, logs - np.where(np.isneginf(log_f), 0.0, log_f))

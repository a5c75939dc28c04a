"""Chains of matchings from starts far apart, and whether they agree.

The walk is that of `kernels.matching_mcmc`. Weights are first brought to nearly equal sums for each record by factors
(Sinkhorn 1964), which no matching's chance depends on and which make loops short. R-hat and effective sample size are
rank-normalised, of split chains (Vehtari, Gelman, Simpson, Carpenter and Buerkner 2021). Chosen by `matchings` for
pieces too large to count.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import inf
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from ....kernels.log_sums import log_sum
from ....table import Floats
from ...protocol import Ints
from ...threads import in_turn, map_on_threads
from .components import Piece, best_match

if TYPE_CHECKING:
    from ....kernels.matching_mcmc import MatchingWalk, Rows

COUNTED = 16_000_000  # visits that chains count side by side, each by itself
STORED = 16_000_000  # records of units kept for diagnostics, all chains together
LONGEST = 20  # a loop of more steps than so many times the number of units is undone
FIRST_LOOPS = 20  # walked from the start, before loops are probed
PROBES = 3  # from every record, the first of them not counted
PROBE_STEPS = 100  # of a loop that is only probed
WORK = 2.0  # steps of each unit between draws
# Most rounds of bringing columns to equal sums, and what is equal enough on the log scale
SCALINGS, EVEN = 20, 0.05
SMALL = 1e-200  # a divisor that is never 0
WORST = 15  # units whose R-hat, and as many whose ESS, is computed in full
BATCHES = 20  # means of draws by which units are judged roughly, before R-hat in full

Matches = npt.NDArray[np.int32]


@dataclass(frozen=True, slots=True)
class MatchingChains:
    """Chains of matchings, each with its walk and its generator; `starts` has the first matching of each."""

    walks: list[MatchingWalk]
    generators: list[np.random.Generator]
    starts: Ints
    slots: int
    loops: int

    @classmethod
    def of(
        cls, logs: Floats, units: int, factors: Floats, rng: np.random.Generator, chains: int
    ) -> MatchingChains:
        """Start chains, and learn where short loops begin: these are walked more often, at the same cost."""
        from ....kernels.matching_mcmc import rows_of

        (rows, others), starts = heat_rows(logs, units, factors), dispersed_starts(logs, units, rng, chains)
        even = rows_of(np.zeros((1, logs.shape[1])), -inf)
        walks = [_walk(rows, others, even, start) for start in starts]
        out = cls(walks, rng.spawn(chains), starts, units - logs.shape[1], FIRST_LOOPS)
        out.run(1)
        lengths = out.probed()
        begins, mean = rows_of(-np.log(lengths)[None, :], -inf), len(lengths) / np.sum(1 / lengths)
        loops = max(int(WORK * len(logs) / mean), 1)
        return replace(out, walks=[walk._replace(begins=begins) for walk in walks], loops=loops)

    def probed(self) -> Floats:
        """Return about how many steps loops take that begin at each record; long ones are not walked to their end."""
        from ....kernels.matching_mcmc import probe

        known, released = len(self.walks[0].match), len(self.walks[0].owner)
        lengths = np.empty((len(self.walks), PROBES, released), np.int64)
        for walk, room, generator in zip(self.walks, lengths, self.generators, strict=True):
            short = walk._replace(trail=walk.trail[: PROBE_STEPS + 1])
            for row in room:
                probe(short, self.slots, row, generator)
        steps = np.where(lengths < 0, np.maximum(known, -lengths), lengths)[:, 1:]
        return np.asarray(steps.mean(axis=(0, 1)))

    def run(self, draws: int) -> tuple[Ints, Matches]:
        """Make draws with all chains; return how often each unit had each record (last: none), and those kept."""
        from ....kernels.matching_mcmc import circulate

        known, released = len(self.walks[0].match), len(self.walks[0].owner)
        every = -(-draws * len(self.walks) * known // STORED)
        kept = np.empty((len(self.walks), -(-draws // every), known), np.int32)
        apart = len(self.walks) * known * (released + 1) <= COUNTED
        counts = np.zeros((len(self.walks) if apart else 1, known, released + 1), np.int64)

        def work(turn: tuple[MatchingWalk, Any, np.random.Generator, Ints]) -> None:
            walk, room, generator, own = turn
            circulate(walk, self.slots, self.loops, every, own, room, generator)

        own = counts if apart else [counts[0]] * len(self.walks)
        turns = [*zip(self.walks, kept, self.generators, own, strict=True)]
        (map_on_threads if apart else in_turn)(work, turns)
        return np.asarray(counts.sum(axis=0)), kept


def heat_rows(logs: Floats, units: int, factors: Floats) -> tuple[Rows, Floats]:
    """Return what known units take, by weight, and what others do: weights of records, and last of a place without."""
    from ....kernels.matching_mcmc import rows_of

    slots = units - logs.shape[1]
    rows = rows_of(logs + factors[:-1], factors[-1] + np.log(slots) if slots else -inf)
    return rows, np.exp(factors - factors.max())


def log_factors(logs: Floats, units: int) -> Floats:
    """Return logs of factors that bring the chances of each record, over all units, near 1; and of none, near N - n.

    With them everybody takes what he is likely to have, and not what nobody else wants: loops are short.
    """
    known, released = logs.shape
    every = np.zeros((known + 1, released + 1))
    every[:known, :released] = logs
    slots, many = units - released, np.append(np.ones(known), units - known)
    share = np.append(np.ones(released), slots)
    with np.errstate(divide="ignore"):
        factors = np.log(share) - log_sum(every + np.log(many)[:, None], axis=0)
    for _ in range(SCALINGS):
        scaled = every + factors
        chances = np.exp(scaled - scaled.max(axis=1, keepdims=True))
        sums = (many / chances.sum(axis=1)) @ chances
        more = np.log(np.maximum(share, SMALL) / np.maximum(sums, SMALL))
        factors = factors + np.where(share > 0, more, 0.0)
        if np.abs(more[share > 0]).max() < EVEN:
            break
    factors[-1] -= np.log(slots) if slots else 0.0
    return np.asarray(factors)


def _walk(rows: Rows, others: Floats, begins: Rows, start: Ints) -> MatchingWalk:
    from ....kernels.matching_mcmc import MatchingWalk

    owner, has = np.full(len(others) - 1, -1), np.flatnonzero(start >= 0)
    owner[start[has]] = has
    trail = np.empty((LONGEST * (len(start) + 5), 2), np.int64)
    return MatchingWalk(rows, others, begins, start.copy(), owner, trail)


def dispersed_starts(logs: Floats, units: int, rng: np.random.Generator, count: int) -> Ints:
    """Return possible matchings: the best one, then random ones that share as few pairs with those before as can be."""
    known, released = logs.shape
    starts = [best_match(logs, units)]
    used = np.zeros((known, released))
    while len(starts) < count:
        has = np.flatnonzero(starts[-1] >= 0)
        used[has, starts[-1][has]] = 4 * used[has, starts[-1][has]] + known
        scores = np.where(logs > -inf, rng.random(logs.shape) - used, -inf)
        starts.append(best_match(scores, units, rng.random(known)))
    return np.array(starts)


# Whether they agree.


def rhat_and_ess(series: Floats) -> tuple[Floats, Floats]:
    """Return R-hat and the effective sample size (rank-normalised, split chains) of chains x draws x quantities.

    What chains cannot show, because each stays where it is, has an infinite R-hat and no effective draw.
    """
    from arviz_stats.base import array_stats  # type: ignore[attr-defined]

    stats: Any = array_stats

    with np.errstate(all="ignore"):
        each = [np.ascontiguousarray(series[:, :, k]) for k in range(series.shape[2])]
        rhat = np.array([stats.rhat(one, chain_axis=0, draw_axis=1) for one in each], dtype=np.float64)
        ess = np.array([stats.ess(one, chain_axis=0, draw_axis=1) for one in each], dtype=np.float64)
    stays = ~(np.isfinite(rhat) & np.isfinite(ess))
    return np.where(stays, inf, rhat), np.where(stays, 0.0, ess)


@dataclass(frozen=True, slots=True)
class ChainDiagnostics:
    """What chains say of themselves: worst R-hat, least ESS, standard error, and how many units no chain ever moved.

    A unit that has one record in every draw can be trusted if chains came there from elsewhere; where all began
    there and none left, though other records are possible, nothing shows that they could have.
    """

    rhat: float
    ess: float
    error: float
    unmoved: int

    @classmethod
    def of(cls, piece: Piece, counts: Ints, kept: Matches, starts: Ints) -> ChainDiagnostics:
        """Compare chains by their log weight, their number of pairs, and each unit's most frequent record."""
        modal = counts.argmax(axis=1)
        share = counts[np.arange(len(counts)), modal] / counts[0].sum()
        modal[modal == piece.logs.shape[1]] = -1
        watched = np.concatenate(
            [_traces(piece, kept), (kept[:, :, (units := _worst(kept, modal))] == modal[units])], axis=2
        )
        rhat, ess = rhat_and_ess(watched[:, :, np.ptp(watched, axis=(0, 1)) > 0])
        least = float(np.min(ess, initial=counts[0].sum()))
        spread = float(np.max(share * (1 - share)))
        error = max(np.sqrt(spread / least) if least else inf, 1 / counts[0].sum())
        options = (piece.logs > -inf).sum(axis=1) + (piece.units > piece.logs.shape[1])
        unmoved = (share == 1.0) & (options > 1) & (starts == modal).all(axis=0)
        return cls(float(np.max(rhat, initial=1.0)), least, float(error), int(unmoved.sum()))

    def meets(self, rhat: float, ess: float) -> bool:
        """Whether all is as asked."""
        return self.rhat <= rhat and self.ess >= ess and not self.unmoved


def _traces(piece: Piece, kept: Matches) -> Floats:
    """Return the log weight and the number of pairs of every matching kept."""
    every = np.column_stack([piece.logs, np.zeros(len(piece.logs))])
    at = np.arange(len(piece.logs))
    pairs = (kept >= 0).sum(axis=2)
    log_weight = np.array([every[at, chain].sum(axis=1) for chain in kept])
    return np.stack([log_weight + piece.log_weights[pairs], pairs.astype(np.float64)], axis=2)


def _worst(kept: Matches, modal: Ints) -> Ints:
    """Return the units whose chains agree least, and those whose draws hang together most, by batches of draws."""
    chains, draws, known = kept.shape
    size = draws // BATCHES
    held = np.empty((chains, BATCHES, known))
    for chain in range(chains):
        same = kept[chain, draws - size * BATCHES :] == modal
        held[chain] = same.reshape(BATCHES, size, known).mean(axis=1)
    moving = np.flatnonzero(np.ptp(held, axis=(0, 1)) > 0)
    if len(moving) <= 2 * WORST:
        return moving
    held = held[:, :, moving]
    halves = held.reshape(2 * chains, BATCHES // 2, len(moving)).mean(axis=1)
    within = np.maximum((halves * (1 - halves)).mean(axis=0), 1e-12)
    share = held.mean(axis=(0, 1))
    apart, clumped = (
        halves.var(axis=0) / within,
        held.var(axis=(0, 1)) / np.maximum(share * (1 - share), 1e-12),
    )
    worst = np.concatenate([np.argsort(-apart)[:WORST], np.argsort(-clumped)[:WORST]])
    return np.asarray(moving[np.unique(worst)])

"""A bound on the ceiling of blocks too large to be matched: some neighbourhoods, with their own records told.

An intruder who knows all units x and all records z takes for target i the record j of the largest P(i has j | x, z),
and no intruder expects to find more. Tell this intruder for a set S of units, chosen by x alone, which records Z_S are
theirs. Matchings of S with Z_S are left, and max_j P(i has j | x, z, Z_S) is no smaller in expectation: with more known
the best guess is right no less often (Blackwell, 1953, Annals of Mathematical Statistics 24, 265-272). Its mean over
targets bounds the ceiling from above; what is told excludes records that are far from i, so the bound is near where
these have little weight, and too high by a few in |S| where all records of a block are alike.

Targets are drawn at random, each with its neighbourhood: a cell of a k-d partition of its block's units and those
nearest to the cell. The mean over a cell's targets, cells drawn by their number of targets, is unbiased (Hansen and
Hurwitz, 1943). What varies little is by how much it exceeds what each target's best link has by itself, which is known
for all: that is what cells are asked for. The interval is Student's, over cells, and so has the error of sampled
matchings in it; where one cell in fifty exceeds by much and the others not at all, forty may have missed it. Where the
targets are a sample the bound is about all records that it stands for, and has its error.
Chosen by `BayesIntruder(helpers="all")` with the card where blocks have more pairs than `matchings.MATCHED_CELLS`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from ....masking import Masking
from ....schema import OPEN
from ....table import Floats
from ...candidate_scores import members
from ...cluster_sample import ClusterSample, ratio_variance
from ...joint_codes import block_codes
from ...one_to_one import nearest_points, points_together
from ...pair_density import is_lowered, laws_on
from ...protocol import NOBODY, Bools, Ints, MarkedGuess
from ...risk import wilson
from ...targets import Sample
from ..candidates import clear_fields
from ..law_kernels import LawReading
from ..likelihood import PairLikelihood
from ..posterior_odds import log_moved
from .matchings import Sampling, marginals

CELLS = 40  # neighbourhoods that are drawn: the bound is then known to a point or two
# Units of a cell (few: all of them lie amid what is told), and all whose records are told
CORE, TOLD = 4, 192
CLOSED = 1e4  # a coordinate of values that are missing or coded, times the status: far from all others
CHANCE, NORMAL = 0.975, 1.959964  # of Student's quantile and the normal one, for an interval of 95%


@dataclass(frozen=True, slots=True)
class CeilingInputs:
    """What an answer leaves for the bound: a seed, and by number in the truth what each known unit's best link has.

    That is the probability of the link by itself, 0 where there is none and NaN for who is not known.
    """

    seed: int
    alone: Floats


@dataclass(frozen=True, slots=True)
class Ceiling:
    """A bound on what anybody can expect to find, with its interval (95%) and what it rests on.

    `rate` is the bound as measured on `targets` of `cells` neighbourhoods, in each of which the records of `told` units
    are told at most; `sampled` of these were matched by draws, `converged` tells whether all chains agree. `at_random`
    says that records exchanged values, which the bound takes for exchanges at random in the card's share.
    """

    rate: float
    low: float
    high: float
    cells: int
    targets: int
    told: int
    sampled: int
    converged: bool
    at_random: bool = False

    def to_dict(self) -> dict[str, Any]:
        """Return figures only."""
        return asdict(self)

    def lines(self) -> list[str]:
        """Return what a `Risk` prints of it."""
        failed = "" if self.converged else "; NOT CONVERGED: give more draws in Sampling"
        if self.at_random:
            failed += "; no ceiling: who knows by which rule records were exchanged may find more"
        whom = "nobody" if not self.at_random else "had exchanges been made at random, nobody"
        could = "can" if not self.at_random else "could"
        return [
            "",
            f"  {whom} {could} expect more than {self.rate:.1%} ({self.low:.1%} to {self.high:.1%}, 95%): a bound, "
            f"over {self.targets:,} targets",
            f"  in {self.cells:,} neighbourhoods, each with the records of up to {self.told:,} units told{failed}",
        ]


def ceiling_of(plan: Any, marked: MarkedGuess, fields: Sequence[str], given: CeilingInputs) -> Ceiling:
    """Bound what somebody can find who holds the card and knows every unit; the steward's links are told in parts."""
    place, seed = _Neighbourhoods.of(plan, marked, fields, given.alone), given.seed
    sought = np.unique(marked.numbers[marked.guess.searcher])
    drawn = np.random.default_rng(seed).choice(sought, min(CELLS, len(sought)), replace=False)
    seen: dict[int, _Chances] = {}
    values = []
    for unit in drawn.tolist():
        core, around = place.of_unit(unit)
        if (key := int(core.min())) not in seen:
            rng = np.random.default_rng([seed, key])
            seen[key] = place.chances(core, around, plan.sampling or Sampling(), rng)
        values.append(seen[key].more)
    alone = place.alone[sought]
    mean = float(np.mean(alone) + np.mean(values))
    reach, luck = _reach(np.array(values)), _luck(plan.targets, alone, place.blocks[sought])
    return Ceiling(
        mean,
        max(mean - float(np.hypot(reach, luck[0])), 0.0),
        min(mean + float(np.hypot(reach, luck[1])), 1.0),
        len(seen),
        sum(one.targets for one in seen.values()),
        TOLD,
        sum(not one.is_exact for one in seen.values()),
        all(one.is_converged for one in seen.values()),
        place.pairing.share > 0,
    )


def _luck(chosen: Any, alone: Floats, blocks: Ints) -> tuple[float, float]:
    """Return how far below and above a mean over targets that of all may lie, for which these were drawn.

    Probabilities scatter less than finds do, but a few hundred of them may have missed the few who stand out: for
    targets drawn one by one it is Wilson's interval, as if each were found or not.
    """
    mean = float(np.mean(alone))
    if isinstance(chosen, Sample):
        low, high = wilson(mean, len(alone))
        return mean - low, high - mean
    if not isinstance(chosen, ClusterSample):
        return 0.0, 0.0
    _, place = np.unique(blocks, return_inverse=True)
    n, total = (np.asarray(np.bincount(place, one), np.float64) for one in (np.ones(len(alone)), alone))
    reach = NORMAL * float(np.sqrt(ratio_variance(n, total)))
    return reach, reach


def _reach(values: Floats) -> float:
    """Return half of Student's interval of a mean; 1 where one value tells nothing of it."""
    from scipy.special import stdtrit

    if len(values) < 2:
        return 1.0
    return float(stdtrit(len(values) - 1, CHANCE) * values.std(ddof=1) / np.sqrt(len(values)))


@dataclass(frozen=True, slots=True)
class _Chances:
    """By how much the largest probabilities of a cell's targets exceed those by themselves, and how it was found."""

    more: float
    targets: int
    is_exact: bool
    is_converged: bool


@dataclass(frozen=True, slots=True)
class _Neighbourhoods:
    """All units of a truth with their blocks, where their noise is centred, and the record of each (-1: none).

    `alone` has the probability of the best link of each target by itself, NaN for who is none.
    """

    masking: Masking
    blocks: Ints
    units: dict[int, Ints]
    points: Floats
    record: Ints
    alone: Floats
    pairing: PairLikelihood
    cells: dict[int, Ints]

    @classmethod
    def of(cls, plan: Any, marked: MarkedGuess, fields: Sequence[str], alone: Floats) -> _Neighbourhoods:
        """Prepare the units of all blocks."""
        masking = marked.masking
        truth, released, card = masking.truth, masking.release.table, masking.release.card
        columns = (*plan.match_columns(released.schema), *clear_fields(masking.release, fields))
        blocks, _ = block_codes(truth, released, columns)
        record = np.full(len(truth), NOBODY)
        record[masking.order] = np.arange(len(masking.order))
        read = LawReading(plan.kernel, None, None, released).exact
        pairing = PairLikelihood.of(card, fields, released, truth, read)
        units = members(blocks, np.arange(len(blocks)))
        points = centres(masking, fields)
        return cls(masking, blocks, units, points, record, _of_targets(marked, alone), pairing, {})

    def of_unit(self, unit: int) -> tuple[Ints, Ints]:
        """Return the cell of a unit, and the cell with the units around it."""
        block = int(self.blocks[unit])
        every = self.units[block]
        if len(every) <= TOLD:
            return every, every
        if block not in self.cells:
            self.cells[block] = every[points_together(self.points[every], CORE)]
        order = self.cells[block]
        at = int(np.flatnonzero(order == unit)[0]) // CORE
        core = order[at * CORE : (at + 1) * CORE]
        away = nearest_points(self.points[core], self.points[every], 1)[1][:, 0]
        away[np.isin(every, core)] = -1.0
        return core, every[np.argpartition(away, TOLD - 1)[:TOLD]]

    def chances(self, core: Ints, around: Ints, sampling: Sampling, rng: np.random.Generator) -> _Chances:
        """Match the units around a cell with their records, and return what is found of the cell's targets."""
        sought = np.flatnonzero(np.isin(around, core) & ~np.isnan(self.alone[around]))
        records = self.record[around]
        records = np.sort(records[records >= 0])
        if not len(records):
            return _Chances(-float(self.alone[around[sought]].mean()), len(sought), True, True)
        moved = self._log_moved(records)
        z, x = np.tile(records, len(around)), np.repeat(around, len(records))
        logs = self.pairing.logs(z, x, moved).reshape(len(around), len(records))
        found = marginals(logs - logs.max(axis=0), len(around), rng, sampling)
        more = found.probability[sought].max(axis=1) - self.alone[around[sought]]
        return _Chances(float(more.mean()), len(sought), found.exact, found.converged)

    def _log_moved(self, records: Ints) -> Floats:
        """Return the log density of what swapped records carry, for some of them."""
        wanted: Bools = np.zeros(len(self.masking.order), bool)
        wanted[records] = True
        if not self.pairing.share:
            return np.full(len(wanted), -np.inf)
        truth = self.masking.truth
        return log_moved(self.pairing, self.masking.release, truth, np.arange(len(truth)), wanted)


def _of_targets(marked: MarkedGuess, alone: Floats) -> Floats:
    """Return what the best links of those have who are looked for, NaN for others."""
    targets = marked.numbers[marked.guess.searcher]
    out = np.full(len(alone), np.nan)
    out[targets] = alone[targets]
    return out


def centres(masking: Masking, fields: Sequence[str]) -> Floats:
    """Return true records where noise has an sd of 1, as far as its laws say: who is near in it is easily taken for.

    It chooses neighbourhoods and nothing else, so that a law without an sd may stand on its own scale.
    """
    truth, parts = masking.truth, []
    for law in laws_on(masking.release.card, fields):
        values = np.asfortranarray(np.column_stack([truth.floats(name) for name in law.columns]))
        if is_lowered(law):
            values = law.place(values, np.zeros(values.shape, order="F"))
            scale = np.sqrt(np.diag(law.noise.covariance))
        else:
            with np.errstate(all="ignore"):
                scale = np.nanstd(values, axis=0)
        status = np.column_stack([truth.status(name) for name in law.columns]).astype(np.float64)
        closed = (status != OPEN) | ~np.isfinite(values)
        away = CLOSED * np.maximum(status, 1.0)
        parts.append(np.where(closed, away, values / np.where(scale > 0, scale, 1.0)))
    return np.ascontiguousarray(np.concatenate(parts, axis=1))

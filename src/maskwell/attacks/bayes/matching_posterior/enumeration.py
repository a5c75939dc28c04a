"""Few known units and noise that was not told: all matchings are counted, at the nodes of a lattice of parameters.

    P(pair | z) = sum over nodes psi of p(psi) sum over matchings with the pair / the same over all matchings

It corrects (6) of Trottini, Fienberg, Makov and Meyer (2003), which weights matchings by their prior. Given the
parameters the sum over matchings is exact (`kernels.matching_enumeration`), and the sum over a lattice is as good as
exact where it is fine enough for a smooth posterior: two lattices, one between the nodes of the other, must agree.
Chosen by `posterior` for up to MOST_UNITS known units in a block and MOST_UNKNOWNS parameters, where it costs no more
than chains would; else `unknown_noise`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ....laws.unknowns import Unknown
from ....table import Floats
from ...protocol import Ints
from ..unknown_noise.priors import Doubt, Prior
from .block_pairs import BlockPairs, Side
from .components import size_weights
from .lattice import LatticeShape, average_of
from .matchings import Marginals
from .noise_kernels import ListedKernel, NormalKernel, model_of
from .proposals import reach_of
from .unknown_noise import (
    Group,
    GroupPosterior,
    HelpedBlock,
    Kernel,
    ParameterSummary,
    on_told_columns,
    unit_counts,
)

if TYPE_CHECKING:
    from ....kernels.matching_enumeration import Jobs, MatchingRoom, NodeView, Tally

MOST_UNITS = 12  # of a group in one block
MOST_UNKNOWNS = 4  # parameters: a lattice in five dimensions has too many nodes
PACES = (1.0, 0.6, 0.36)  # steps of the lattice, in posterior sds: the next where two lattices do not agree
AGREED = 1e-4  # no probability of two lattices differs by more
SEARCHED = 8  # groups whose mean log weight shows where lattices are needed
NODES = {1: 60, 2: 350, 3: 1_700, 4: 7_000}  # usually asked for, by the number of parameters
MOST_NODES = 4  # times as many are asked for before it is given up
PAIR, LISTED = 15.0, 150.0  # nanoseconds for a pair's kernel, in compiled loops and not
SWEEPS = 12_000  # that chains make for one group, if all goes well
# Nanoseconds for a sweep, for each of its pairs, for a unit of a subset
SWEEP, SWEPT, STEP = 60_000.0, 100.0, 4.0


@dataclass(frozen=True, slots=True)
class GroupEnumeration:
    """Known units of many groups at once: their kernels as functions of the parameters, and the jobs to be done."""

    model: NormalKernel | ListedKernel
    twins: NormalKernel | ListedKernel | None
    doubts: tuple[Doubt, ...]
    jobs: Jobs
    given: Floats | None
    own: Floats
    sizes: Floats
    room: MatchingRoom

    @property
    def groups(self) -> int:
        """How many groups there are."""
        return len(self.jobs.group_from) - 1

    @property
    def beliefs(self) -> list[Any]:
        """The priors of all unknowns."""
        return [belief for doubt in self.doubts for belief in doubt.beliefs]

    def view(self, logs: Floats) -> NodeView | None:
        """Return all kernels at given logs of the parameters; nothing where the prior rules them out."""
        from ....kernels.matching_enumeration import NodeView

        values = zip(self.beliefs, logs, strict=True)
        prior = float(sum(belief.log_density(np.array([log]))[0] for belief, log in values))
        if not np.isfinite(prior):
            return None
        nothing, pairs = np.empty(0), self.model.pair_logs(logs)
        every = nothing if self.given is not None else self.model.log_marginal(logs) + self.sizes
        twins = pairs if self.twins is None else self.twins.pair_logs(logs)
        given = nothing if self.given is None else self.given
        return NodeView(pairs, twins, self.model.known.row, every, given, self.own, prior)

    def tally(self) -> Tally:
        """Return an empty tally."""
        from ....kernels.matching_enumeration import Tally

        pairs = np.zeros(self.model.known.count)
        return Tally(np.full(self.groups, -np.inf), np.zeros(self.groups), pairs)

    def shape(self) -> LatticeShape | None:
        """Find where the posterior of the parameters is, as it is for the first groups on average."""
        from ....kernels.matching_enumeration import weigh_node

        some = np.empty(min(self.groups, SEARCHED))

        def ask(logs: Floats) -> float:
            view = self.view(logs)
            if view is None:
                return -np.inf
            weigh_node(self.jobs, view, self.room, len(some), some)
            return average_of(some.tolist())

        centre, spread = (np.array([getattr(b, of) for b in self.beliefs]) for of in ("centre", "spread"))
        return LatticeShape.of(ask, centre, spread, np.array([reach_of(b) for b in self.beliefs]))

    def added(self, shape: LatticeShape, pace: float, shift: float) -> _LatticeSums | None:
        """Add up all that lies on a lattice; nothing where it is too large."""
        from ....kernels.matching_enumeration import add_node

        tally, asked, weights = self.tally(), [], []

        def ask(logs: Floats) -> float:
            view, out = self.view(logs), np.full(self.groups, -np.inf)
            if view is not None:
                add_node(self.jobs, view, self.room, tally, out)
            asked.append(logs)
            weights.append(out)
            with np.errstate(invalid="ignore"):
                return float(np.max(np.where(np.isfinite(out), out - tally.top, -np.inf)))

        most = MOST_NODES * NODES[len(self.beliefs)]
        if shape.walk(ask, pace, shift, most) is None or not (tally.total > 0).all():
            return None
        return _LatticeSums(tally, np.array(asked), np.array(weights))

    def settled(self, shape: LatticeShape) -> tuple[_LatticeSums, float] | None:
        """Take ever finer lattices until two agree; return both together and how far they are apart, or nothing."""
        for pace in PACES:
            first = self.added(shape, pace, 0.0)
            second = None if first is None else self.added(shape, pace, 0.5)
            if first is None or second is None:
                return None
            joined, apart = first.with_other(second, self._spread(first), self._spread(second))
            if apart <= AGREED:
                return joined, apart
        return None

    def _spread(self, added: _LatticeSums) -> Floats:
        """Return for each pair the sum of weights of its group."""
        per_unit = np.empty(len(self.own))
        counts = np.diff(self.jobs.unit_from[self.jobs.group_from])
        per_unit[self.jobs.units] = np.repeat(added.tally.total, counts)
        known = self.model.known
        return np.repeat(per_unit, known.released.sizes[known.side.block])


@dataclass(frozen=True, slots=True)
class _LatticeSums:
    """What a lattice gave: sums, the nodes, and their log weights for each group."""

    tally: Tally
    nodes: Floats
    weights: Floats

    def with_other(self, other: _LatticeSums, own: Floats, others: Floats) -> tuple[_LatticeSums, float]:
        """Join two lattices of the same step; return also how far a probability of either is from that of both.

        `own` and `others` have for each pair the sum of the weights of its group.
        """
        one, two = self.tally.pairs / own, other.tally.pairs / others
        both = replace(
            self,
            tally=self.tally._replace(pairs=(one + two) / 2),
            nodes=np.concatenate([self.nodes, other.nodes]),
            weights=np.concatenate([self.weights, other.weights]),
        )
        return both, float(np.max(np.abs(one - two), initial=0.0)) / 2

    def learned(self, group: int, unknowns: Sequence[Unknown]) -> tuple[ParameterSummary, ...]:
        """Return mean and sd of each parameter for one group."""
        weights = np.exp(self.weights[:, group] - self.weights[:, group].max())
        values = np.exp(self.nodes)
        means = weights @ values / weights.sum()
        sds = np.sqrt(weights @ (values - means) ** 2 / weights.sum())
        return tuple(
            ParameterSummary(one.name, one.columns, float(means[d]), float(sds[d]), 1.0, np.inf, one.value)
            for d, one in enumerate(unknowns)
        )


def enumerated_posteriors(
    laws: Sequence[Any], group: Group, labels: Ints, kernel: Kernel, prior: Prior
) -> list[GroupPosterior] | None:
    """Return the answers of all groups (`labels`, rising from 0, say whose a unit is), or nothing if it is too much.

    Nothing is also returned where lattices do not agree, or no matching is possible: then chains must do it.
    """
    doubts = tuple(Doubt.of(prior, law, group.z) for law in laws)
    unknowns = [unknown for doubt in doubts for unknown in doubt.unknowns]
    if not 1 <= len(unknowns) <= MOST_UNKNOWNS:
        return None
    ground = _Ground.of(group, labels)
    if ground is None or not ground.is_affordable(doubts, kernel):
        return None
    counting = ground.counting(doubts, kernel)
    shape = counting.shape()
    found = None if shape is None else counting.settled(shape)
    return None if found is None else ground.answers(counting, *found, unknowns)


@dataclass(frozen=True, slots=True)
class _Ground:
    """The blocks of all groups, the members of each group in each block, and how many units each block has."""

    group: Group
    blocks: Ints
    known: BlockPairs
    others: BlockPairs
    labels: Ints
    members: tuple[tuple[tuple[int, Ints], ...], ...]
    units: Ints

    @classmethod
    def of(cls, group: Group, labels: Ints) -> _Ground | None:
        """Sort all units by block; nothing where a group has too many in one."""
        blocks = np.unique(group.x_blocks)
        released = Side.of(group.z, group.z_blocks, blocks)
        known = BlockPairs(Side.of(group.x, group.x_blocks, blocks), released)
        others = BlockPairs(Side.of(group.truth, group.truth_blocks, blocks), released)
        members = _by_group(labels[known.side.records], known.side.block)
        if max(len(units) for jobs in members for _, units in jobs) > MOST_UNITS:
            return None
        return cls(group, blocks, known, others, labels, members, unit_counts(group, blocks))

    def is_affordable(self, doubts: Sequence[Doubt], kernel: Kernel) -> bool:
        """Whether counting takes no longer than chains would, by and large."""
        unknowns = sum(len(doubt.unknowns) for doubt in doubts)
        sizes = self.known.released.sizes
        open_ended = kernel.name == "coherent" and kernel.log_marginal is None
        densities = PAIR * (self.others.count if open_ended else 0)
        subsets = sum(
            float(sizes[b]) * len(units) * 2.0 ** len(units) for jobs in self.members for b, units in jobs
        )
        counting = NODES[unknowns] * (densities + PAIR * self.known.count + STEP * subsets)
        steps = NODES[2] if unknowns <= 2 else SWEEPS
        pairs = sum(float(sizes[b]) * len(units) for jobs in self.members for b, units in jobs)
        chains = len(self.members) * (steps * densities + SWEEPS * SWEEP) + SWEEPS * SWEPT * pairs
        return bool(counting <= 2 * chains)

    def counting(self, doubts: tuple[Doubt, ...], kernel: Kernel) -> GroupEnumeration:
        """Prepare the sums."""
        from ....kernels.matching_enumeration import room_for

        jobs, records = self._jobs(), self.known.side.records
        model = _asked_directly(model_of(doubts, kernel.name, self.known, self.others))
        own, given = np.zeros(len(records)), self._given(kernel)
        if kernel.log_unreleased is not None:
            own = kernel.log_unreleased[records]
        sizes = np.log(np.maximum(self.others.side.sizes, 1))[self.known.released.block]
        twins = None
        if given is None and not self.group.as_true:
            true = Side(self.group.truth, np.maximum(self.group.numbers[records], 0), self.known.side.ends)
            twins = _asked_directly(
                model_of(doubts, kernel.name, BlockPairs(true, self.known.released), self.others)
            )
        return GroupEnumeration(model, twins, doubts, jobs, given, own, sizes, room_for(jobs))

    def _given(self, kernel: Kernel) -> Floats | None:
        """Return the log weight of records that are nobody's where no parameter bears on it."""
        records = self.known.released.records
        if kernel.log_marginal is not None:
            return np.asarray(kernel.log_marginal[records])
        return np.zeros(len(records)) if kernel.name != "coherent" else None

    def _jobs(self) -> Jobs:
        from ....kernels.matching_enumeration import Jobs

        listed = [job for jobs in self.members for job in jobs]
        blocks = np.array([b for b, _ in listed])
        units = np.concatenate([units for _, units in listed])
        is_true = self.group.numbers[self.known.side.records[units]] >= 0
        counts = np.array([len(units) for _, units in listed])
        ends, true = self.known.released.ends, self.others.side.sizes
        unit_from = np.concatenate([[0], np.cumsum(counts)])
        twins = np.add.reduceat(is_true.astype(np.int64), unit_from[:-1])
        log_sizes = [self._log_sizes(b, len(units)) for b, units in listed]
        return Jobs(
            np.cumsum([0, *map(len, self.members)]),
            unit_from,
            units,
            is_true,
            ends[:-1][blocks],
            ends[1:][blocks],
            (true[blocks] - twins).astype(np.float64),
            np.cumsum([0, *map(len, log_sizes)])[:-1],
            np.concatenate(log_sizes),
        )

    def _log_sizes(self, block: int, known: int) -> Floats:
        """Return the log weight of each number of pairs from 0 to all known units."""
        released = int(self.known.released.sizes[block])
        units = max(int(self.units[block]), known, released)
        weights = size_weights(known, released, units)
        return np.concatenate([weights, np.full(known + 1 - len(weights), -np.inf)])

    def answers(
        self, counting: GroupEnumeration, added: _LatticeSums, apart: float, unknowns: Sequence[Unknown]
    ) -> list[GroupPosterior]:
        """Return what each group believes."""
        matrices = self.known.matrices(added.tally.pairs)
        begin = self.known.side.ends
        notes = on_told_columns(counting.doubts)
        out = []
        for number, jobs in enumerate(self.members):
            blocks = []
            for b, units in jobs:
                share = matrices[b][units - begin[b]]
                absent = np.clip(1.0 - share.sum(axis=1), 0.0, 1.0)
                blocks.append(self._block(number, b, units, Marginals(share, absent, error=apart)))
            psi = added.learned(number, unknowns)
            out.append(GroupPosterior(tuple(blocks), psi, True, 1.0, np.inf, len(added.nodes), notes))
        return out

    def _block(self, number: int, block: int, units: Ints, marginals: Marginals) -> HelpedBlock:
        """Number known units within their group."""
        released, first = self.known.released, int(np.searchsorted(self.labels, number))
        records = released.records[released.ends[block] : released.ends[block + 1]]
        return HelpedBlock(
            int(self.blocks[block]), self.known.side.records[units] - first, records, marginals
        )


def _by_group(labels: Ints, block: Ints) -> tuple[tuple[tuple[int, Ints], ...], ...]:
    """Return for each group its blocks and the numbers of its units there."""
    order = np.lexsort((block, labels))
    cuts = np.flatnonzero(np.diff(labels[order]) | np.diff(block[order])) + 1
    out: list[list[tuple[int, Ints]]] = [[] for _ in range(int(labels.max()) + 1)]
    for units in np.split(order, cuts):
        out[labels[units[0]]].append((int(block[units[0]]), units))
    return tuple(map(tuple, out))


def _asked_directly(model: NormalKernel | ListedKernel) -> NormalKernel | ListedKernel:
    """Return a model that is asked at each node: no node is asked for twice."""
    return replace(model, nodes=None) if isinstance(model, ListedKernel) else model

"""The kernels of known units with released records as functions of the unknown parameters of the noise.

Normal noise whose columns are independent, or share one scale, goes to compiled loops that compute a pair as the
parameters stand: log N(z; x, (sd noise)^2 + (bias_sd bias)^2) of `kernels.matching_noise_mcmc` (`NormalKernel`). Every
other law is asked for all pairs, at each value of the parameters or at nodes of a grid over their logs, with Lagrange's
cubics between (`ListedKernel`). Own derivation; PACE says how fine the grid must be. Chosen by `model_of`, for
`enumeration` and `unknown_noise`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from ....card import RecordPair
from ....kernels.log_sums import log_sum
from ....laws import Additive, Multiplicative, Normal
from ....laws.unknowns import SCALE, is_independent, spread_of
from ....table import Floats, Table
from ...pair_density import LawTerm, law_terms, summed_logs
from ...protocol import Bools, Ints
from ..law_kernels import BACKWARD
from .block_pairs import BlockPairs, Side

if TYPE_CHECKING:
    from ....kernels.matching_noise_mcmc import Scene
    from ..unknown_noise.priors import Doubt

KINDS = {"coherent": 0, "forward": 0, "paper": 1, "fms": 2}
LOWEST = 3.0  # a unit must be fine also for noise this many prior sds (of its log) below what was expected
EVERY = slice(None)
PACE = 0.04  # between nodes in the log of a parameter: 1,000 records together are off by less than 1e-3
FEW_NODES, MOST_KEPT = 30, 50_000_000  # nodes that are visited for each parameter, and numbers kept at them
NOBODYS = -1e4  # log density of a record that no other unit can have


class NoiseModel(Protocol):
    """Log kernels of all pairs of known units with records, and of the records that are nobody's."""

    def pair_logs(self, logs: Floats) -> Floats:
        """Return the log kernels of all pairs at given logs of the parameters, block by block in one row."""

    def log_marginal(self, logs: Floats) -> Floats:
        """Return the log density of each record under the mean of the other true records of its block."""


@dataclass(frozen=True, slots=True)
class ParameterNodes:
    """Numbers that depend on the logs of parameters: computed at nodes of a grid when first needed, cubics between."""

    made: Callable[[Floats], Floats]
    kept: dict[tuple[int, ...], Floats]

    def at(self, logs: Floats, some: Ints | slice = EVERY) -> Floats:
        """Return the numbers, or some of them, at given logs; minus infinity where a node has it."""
        first = np.floor(logs / PACE).astype(np.int64) - 1
        weights = _cubic(logs / PACE - first)
        total: Any = 0.0
        with np.errstate(invalid="ignore"):
            for corner in product(range(4), repeat=len(logs)):
                weight = np.prod([weights[d, k] for d, k in enumerate(corner)])
                total = total + weight * self._node(tuple((first + corner).tolist()))[some]
        return np.where(np.isfinite(total), total, -np.inf)

    def _node(self, node: tuple[int, ...]) -> Floats:
        if node not in self.kept:
            self.kept[node] = self.made(PACE * np.array(node))
        return self.kept[node]


def _cubic(t: Floats) -> Floats:
    """Return the weights of the nodes 0 to 3 of the cubics through them, at places t."""
    weights = [
        -(t - 1) * (t - 2) * (t - 3) / 6,
        t * (t - 2) * (t - 3) / 2,
        -t * (t - 1) * (t - 3) / 2,
        t * (t - 1) * (t - 2) / 6,
    ]
    return np.stack(weights, axis=1)


@dataclass(frozen=True, slots=True)
class ListedKernel:
    """Any laws, asked for all pairs at values of the parameters, or at `nodes` of a grid (pairs, free records)."""

    known: BlockPairs
    others: BlockPairs
    factors: Callable[[Floats, Table], Sequence[LawTerm]]
    nodes: tuple[ParameterNodes, ParameterNodes] | None = None

    @classmethod
    def of(cls, doubts: Sequence[Doubt], kernel: str, known: BlockPairs, others: BlockPairs) -> ListedKernel:
        """Take a grid where one or two parameters and few pairs make it small."""
        each = cls(known, others, _factors(doubts, kernel, known.released.table))
        unknowns = sum(len(doubt.unknowns) for doubt in doubts)
        if unknowns > 2 or known.count * (FEW_NODES**unknowns) > MOST_KEPT:
            return each
        return replace(
            each, nodes=(ParameterNodes(each.pair_logs, {}), ParameterNodes(each.log_marginal, {}))
        )

    def pair_logs(self, logs: Floats) -> Floats:
        """Return the log kernels of all pairs."""
        if self.nodes is not None:
            return self.nodes[0].at(logs)
        return summed_logs(self.factors(logs, self.known.side.table), *self.known.listed())

    def matched_logs(self, logs: Floats, match: Ints) -> Floats:
        """Return the log kernels of the units with the records they have (0 for none)."""
        out, has = np.zeros(len(match)), match >= 0
        if self.nodes is not None:
            out[has] = self.nodes[0].at(logs, (self.known.row + match)[has])
            return out
        pairs = self.known.released.records[match[has]], self.known.side.records[has]
        out[has] = summed_logs(self.factors(logs, self.known.side.table), *pairs)
        return out

    def log_marginal(self, logs: Floats) -> Floats:
        """Return the log density of each record under the mean of the other true records of its block."""
        if self.nodes is not None:
            return self.nodes[1].at(logs)
        flat = summed_logs(self.factors(logs, self.others.side.table), *self.others.listed())
        parts = [
            log_sum(block, axis=0) - np.log(len(block)) if len(block) else np.full(block.shape[1], NOBODYS)
            for block in self.others.matrices(flat)
        ]
        return np.asarray(np.maximum(np.concatenate(parts), NOBODYS))


@dataclass(frozen=True, slots=True)
class NormalKernel:
    """Normal noise in compiled loops."""

    scene: Scene
    others: Scene
    known: BlockPairs
    other_pairs: BlockPairs

    def pair_logs(self, logs: Floats) -> Floats:
        """Return the log kernels of all pairs."""
        from ....kernels.matching_noise_mcmc import all_pairs

        return all_pairs(self.scene, self.known.place(), logs)

    def log_marginal(self, logs: Floats) -> Floats:
        """Return the log density of each record under the mean of the other true records of its block."""
        from ....kernels.matching_noise_steps import mean_others

        out = np.empty(len(self.known.released.records))
        mean_others(self.others, self.other_pairs.others_of_records(), logs, out)
        return out


def model_of(
    doubts: Sequence[Doubt], kernel: str, known: BlockPairs, others: BlockPairs
) -> NormalKernel | ListedKernel:
    """Choose the quickest model that is right for some laws."""
    columns = [_columns_of(doubt, kernel, known.released) for doubt in doubts if doubt.unknowns]
    if all(columns):
        told = [doubt.law for doubt in doubts if not doubt.unknowns]
        return _normals([c for c in columns if c], told, kernel, (known, others))
    return ListedKernel.of(doubts, kernel, known, others)


def _factors(
    doubts: Sequence[Doubt], kernel: str, released: Table
) -> Callable[[Floats, Table], Sequence[LawTerm]]:
    """Return what makes the factors at given logs of the parameters, for the records of a table."""
    ends = np.cumsum([0, *(len(doubt.unknowns) for doubt in doubts)])

    def made(logs: Floats, table: Table) -> Sequence[LawTerm]:
        values = np.exp(logs)
        laws = [
            doubt.law_at(values[a:b].tolist()) for doubt, a, b in zip(doubts, ends, ends[1:], strict=False)
        ]
        if kernel in BACKWARD:
            from ..bias_likelihood.kernels import biased_terms

            return biased_terms(laws, released, table, kernel, None)
        return law_terms(laws, released, table)

    return made


# Normal noise: columns, and the two sides on the scale where noise is added.


@dataclass(frozen=True, slots=True)
class KernelColumns:
    """A law of normal noise whose released values are all points, and which unknown each of its columns goes by."""

    law: Additive
    sd_at: Ints
    bias_at: Ints
    points: Floats
    lift: Floats


def _columns_of(doubt: Doubt, kernel: str, released: Side) -> KernelColumns | None:
    """Return a law's columns for the compiled loops, or nothing where they are not right for it."""
    law = doubt.law
    if not (isinstance(law, Additive) and isinstance(law.noise, Normal)) or law.mean_corrected:
        return None
    if not _plain(law, backward=kernel in BACKWARD):
        return None
    points = _points(law, _least(doubt), released)
    return None if points is None else KernelColumns(law, *_places(doubt), *points)


def _plain(law: Additive, *, backward: bool) -> bool:
    """Whether pairs are normal densities with variances that are never 0."""
    noise, spreads = law.noise, [spread for spread in law.spreads if spread is not None]
    if not is_independent(noise) and (spreads or np.linalg.cond(noise.covariance) > 1e10):
        return False
    if not (np.diag(noise.covariance) > 0).all():
        return False
    if not all(isinstance(spread, Multiplicative) for spread in spreads):
        return False
    moved = law.slope != 1.0 or bool(law.offsets) or any(o.log_shift is not None for o in law.outlets)
    return not (moved and (backward or spreads))


def _least(doubt: Doubt) -> Floats:
    """Return for each column how small its noise may be, by the prior."""
    least = [float(np.exp(b.centre - LOWEST * b.spread)) for b in doubt.beliefs]
    if doubt.unknowns[0].name == SCALE:
        return np.asarray(least[0] * doubt.law.noise.resolution)
    return np.array([least[at] for at in _places(doubt)[0]])


def _places(doubt: Doubt) -> tuple[Ints, Ints]:
    """Return for each column the numbers of its sd and of its bias among the unknowns of the law (-1: no bias)."""
    law, count = doubt.law, len(doubt.law.columns)
    if doubt.unknowns[0].name == SCALE:
        return np.zeros(count, np.int64), np.full(count, -1)
    sd_at, bias_at, own = np.zeros(count, np.int64), np.full(count, -1), iter(doubt.places)
    for j in range(count):
        if isinstance(spread_of(law, j), Multiplicative):
            bias_at[j] = next(own)
        sd_at[j] = next(own)
    return sd_at, bias_at


def _points(law: Additive, least: Floats, released: Side) -> tuple[Floats, Floats] | None:
    """Return released values on the scale of the noise (0 where closed) and the log factor of each record."""
    values = released.table.values(law.columns)[released.records]
    lift = np.zeros(len(values))
    for j, outlet in enumerate(law.outlets):
        here = ~np.isnan(values[:, j])
        own, sd = values[here, j].copy(), np.full(int(here.sum()), least[j])
        cells = [outlet.cell(own.copy(), np.full(len(own), end), sd) for end in (-np.inf, np.inf)]
        coded = any(code is not None for code in outlet.codes)
        if coded or not all(cell.is_point.all() for cell in cells):
            return None
        values[:, j] = 0.0
        values[here, j] = cells[0].lower
        lift[here] += cells[0].log_factor
    return values, lift


def _normals(
    columns: Sequence[KernelColumns], told: Sequence[Any], kernel: str, pairs: tuple[BlockPairs, BlockPairs]
) -> NormalKernel:
    """Put both sides together for the compiled loops."""
    scenes = [_scene(columns, told, KINDS[kernel], side) for side in pairs]
    return NormalKernel(scenes[0], scenes[1], *pairs)


def _scene(columns: Sequence[KernelColumns], told: Sequence[Any], kind: int, pairs: BlockPairs) -> Scene:
    from ....kernels.matching_noise_mcmc import FMS, Scene

    parts = [_part(one, pairs) for one in columns]
    z, x = (_stack_columns([part[k] for part in parts], np.float64) for k in range(2))
    is_open, released_open = (_stack_columns([part[k] for part in parts], np.bool_) for k in (2, 3))
    starts = np.cumsum([0, *(1 + max(c.sd_at.max(), c.bias_at.max()) for c in columns)])
    sd_at = np.concatenate([c.sd_at + a for c, a in zip(columns, starts, strict=False)])
    bias_at = np.concatenate(
        [np.where(c.bias_at >= 0, c.bias_at + a, -1) for c, a in zip(columns, starts, strict=False)]
    )
    base = z if kind == FMS else x
    fixed = _fixed_log_factors(columns, told, pairs)
    used = released_open if kind == FMS else is_open
    lift = sum((c.lift for c in columns), np.zeros(len(z))) + sum(part[4] for part in parts)
    return Scene(
        kind, z, x, is_open, used, np.ones(base.shape), np.abs(base), sd_at, bias_at, fixed, pairs.row, lift
    )


def _stack_columns(parts: Sequence[Any], kind: Any) -> Any:
    """Put columns side by side, in the one order of memory that the loops are compiled for."""
    return np.ascontiguousarray(np.hstack(parts), dtype=kind)


def _part(columns: KernelColumns, pairs: BlockPairs) -> tuple[Floats, Floats, Bools, Bools, Floats]:
    """Return released values, centres and what is open of one law, in units of correlated noise, and its log factor."""
    law, side = columns.law, pairs.side
    true = side.table.values(law.columns)[side.records]
    x = law.place(true, np.zeros(true.shape, order="F"))
    is_open = ~np.isnan(true)
    released = pairs.released
    released_open = ~np.isnan(released.table.values(law.columns)[released.records])
    z, x = columns.points, np.where(is_open, x, 0.0)
    if is_independent(law.noise):
        return z, x, is_open, released_open, np.zeros(len(z))
    white, lift = _whitened_values(law.noise.covariance, z, released_open)
    return white, _whitened_values(law.noise.covariance, x, is_open)[0], is_open, released_open, lift


def _whitened_values(covariance: Floats, values: Floats, is_open: Bools) -> tuple[Floats, Floats]:
    """Return values in units of correlated noise, for each pattern of open ones by itself, and the log factor."""
    out, lift = np.zeros(values.shape), np.zeros(len(values))
    for pattern in np.unique(is_open, axis=0):
        rows, chosen = np.flatnonzero((is_open == pattern).all(axis=1)), np.flatnonzero(pattern)
        if len(chosen):
            root = np.linalg.cholesky(covariance[np.ix_(chosen, chosen)])
            out[np.ix_(rows, chosen)] = np.linalg.solve(root, values[np.ix_(rows, chosen)].T).T
            lift[rows] = -np.log(np.diag(root)).sum()
    return out, lift


def _fixed_log_factors(columns: Sequence[KernelColumns], told: Sequence[Any], pairs: BlockPairs) -> Floats:
    """Return the log factors of all pairs that depend on no unknown: statuses that must agree, laws that are told."""
    released, table = pairs.released.table, pairs.side.table
    patterns = [RecordPair.of(one.law, released, table).patterns() for one in columns]
    if not told and all((z == z[:1]).all() and (x == z[:1]).all() for z, x in patterns):
        return np.empty(0)
    z, x = pairs.listed()
    flat = summed_logs(law_terms(told, released, table), z, x)
    for of_z, of_x in patterns:
        flat[of_z[z] != of_x[x]] = -np.inf
    return flat

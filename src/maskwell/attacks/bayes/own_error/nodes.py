"""Nodes of the true values behind known ones: lattices where the errors and the density of true values put them.

x is proportional to g(y | x) p(x). A few nodes are looked at, the lattice is moved and stretched to their weighted mean
and covariance, and so on until no axis gets narrower; then it is laid to REACH sds, as close as the noise resolves.
Equal weights on such a lattice are the trapezoid rule, nearly exact for smooth densities (Trefethen and Weideman 2014);
the adaptation is our own, as in Naylor and Smith (1982). Used by `density_prior`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

import numpy as np

from ....errors import BadPlan
from ....kernels.log_sums import log_sum
from ....laws import Additive, JointMixture, Laplace, Mixture, Normal, RotatedMixture, SkewedBias, Step
from ....table import Floats, Table
from ...candidate_scores import members
from ...joint_codes import joint_codes
from ...pair_density import summed_logs
from ...protocol import Bools, Ints
from .error_law import OwnError, own_terms
from .quadrature import noise_sds

Density = Callable[[Table], Any]
Nodes = tuple[Ints, Floats, Floats]  # whose they are, their values, their log weights

REACH = 6.0  # how many sds a lattice goes to each side
SETTLED = 0.4  # a look in which no axis gets narrower than this is the last
ROUNDS = 5  # of looking where the true values are, until it is known how widely they are spread
LOOKS = (1, 25, 13, 9)  # nodes of such a look along each axis, by the number of axes
MOST = (1, 1201, 61, 17)  # nodes along each axis in the end
# Their distance in widths of the integrand: where the noise is normal, where it bends, where it jumps.
SMOOTH, BENT, STEPPED = 1.0, 0.15, 0.02
NO_NOISE = 1e-6  # of the spread of true values: the noise of what has none
NEGLIGIBLE = 18.0  # log weights so far below the largest are left out
NODES_AT_ONCE = 400_000  # held in one go


@dataclass(frozen=True, slots=True)
class Lattices:
    """What makes nodes: known records, their errors in the `loose` columns, the density of true ones, the laws."""

    x: Table
    error: OwnError
    loose: Sequence[str]
    density: Density
    laws: Sequence[Any]

    def of(self, known: Ints) -> tuple[Ints, Table, Floats, bool]:
        """Return the nodes of known records, by record: its place among these, values, log weights, if they are few."""
        is_open = self.x.is_open(self.loose)[known]
        codes = joint_codes([(column.astype(np.int64), 2) for column in is_open.T], len(known))
        found = [
            Alike(self, tuple(name for j, name in enumerate(self.loose) if is_open[places[0], j])).nodes(
                known, places
            )
            for places in members(codes, np.arange(len(known))).values()
        ]
        owner, values, weights = (np.concatenate([part[i] for part, _ in found]) for i in range(3))
        order = np.argsort(owner, kind="stable")
        table = self.table(known[owner[order]], self.loose, values[order])
        return owner[order], table, weights[order], any(few for _, few in found)

    def table(self, owner: Ints, names: Sequence[str], values: Floats) -> Table:
        """Return known records with some of their values replaced; nodes need not be whole numbers."""
        some = self.x.take(owner)
        changed = {}
        for j, name in enumerate(names):
            column = some.schema[name]
            column = column if column.kind == "category" else replace(column, kind="continuous", unit=None)
            changed[name] = (column, np.ascontiguousarray(values[:, j]), some.status(name))
        return some.with_columns(changed)


@dataclass(frozen=True, slots=True)
class Alike:
    """Known records of which the same uncertain columns are open."""

    plan: Lattices
    names: tuple[str, ...]

    @property
    def amounts(self) -> list[int]:
        """Which of the columns hold amounts."""
        return [j for j, name in enumerate(self.names) if self.plan.x.schema[name].is_number]

    @property
    def is_whole(self) -> Bools:
        """Which of these amounts are whole numbers."""
        return np.array([self.plan.x.schema[self.names[j]].kind == "integer" for j in self.amounts], bool)

    def nodes(self, known: Ints, places: Ints) -> tuple[Nodes, bool]:
        """Return the nodes of known records at some places, and whether they are too few."""
        axes, names = len(self.amounts), [self.names[j] for j in self.amounts]
        if axes >= len(LOOKS):
            raise BadPlan(
                f"{axes} amounts are known with an error that does not simply add to the noise, and {len(LOOKS) - 1} "
                "can be: name fewer columns in the error"
            )
        records, sds = known[places], np.array([self.plan.error.sd_of[name] for name in names])
        around = np.tile(np.diag(sds), (len(places), 1, 1))
        shape = ErrorShape(self.plan.x.values(names)[records], around, self.is_whole)
        for _ in range(ROUNDS if axes else 0):
            before, shape = shape, self._looked(records, shape)
            if shape.least_ratio(before) > SETTLED:
                break
        counts, few = self._counts(shape)
        each, found = int(np.prod(counts)) * len(self._codes()), []
        for run in np.array_split(np.arange(len(places)), -(-len(places) * each // NODES_AT_ONCE)):
            values = self._full(shape.at(run).laid(counts))
            found.append(_prune_nodes(places[run], values, self._weights(records[run], values)))
        owner, kept, weights = (np.concatenate([part[i] for part in found]) for i in range(3))
        out = np.zeros((len(owner), len(self.plan.loose)))
        out[:, [list(self.plan.loose).index(name) for name in self.names]] = kept
        return (owner, out, weights), few

    def _looked(self, records: Ints, shape: ErrorShape) -> ErrorShape:
        """Lay few nodes, and return where the true values are by these."""
        count, found = LOOKS[len(self.amounts)], []
        each = count ** len(self.amounts) * len(self._codes())
        for run in np.array_split(np.arange(len(records)), -(-len(records) * each // NODES_AT_ONCE)):
            some = shape.at(run)
            values = some.laid([count] * len(self.amounts))
            weights = self._weights(records[run], self._full(values)).reshape(*values.shape[:2], -1)
            found.append(some.fitted(values, log_sum(weights, axis=2), count))
        centre, root = (np.concatenate([getattr(one, name) for one in found]) for name in ("centre", "root"))
        return ErrorShape(centre, root, shape.is_whole)

    def _codes(self) -> Floats:
        """Return all combinations of categories, one for each row; amounts are 0."""
        schema = self.plan.x.schema
        ends = [1 if schema[name].is_number else len(schema[name].categories) for name in self.names]
        return np.array(list(product(*map(range, ends))), np.float64).reshape(int(np.prod(ends)), len(ends))

    def _full(self, amounts: Floats) -> Floats:
        """Return records x nodes x columns: nodes of amounts with all combinations of categories."""
        codes = self._codes()
        out = np.tile(codes, (*amounts.shape[:2], 1, 1))
        out[:, :, :, self.amounts] = amounts[:, :, None, :]
        return out.reshape(len(amounts), amounts.shape[1] * len(codes), len(self.names))

    def _weights(self, records: Ints, values: Floats) -> Floats:
        """Return records x nodes: log g(y | x) + log p(x)."""
        count, width = values.shape[:2]
        nodes = self.plan.table(
            np.repeat(records, width), self.names, values.reshape(count * width, len(self.names))
        )
        terms = own_terms(self.plan.error, self.names, self.plan.x.take(records), nodes)
        logs = summed_logs(terms, np.repeat(np.arange(count), width), np.arange(count * width))
        return np.asarray((logs + self.plan.density(nodes)).reshape(count, width))

    def _counts(self, shape: ErrorShape) -> tuple[list[int], bool]:
        """Return how many nodes along each axis see all of the noise, and whether there are fewer."""
        noise, step, most = np.full(shape.centre.shape, np.inf), SMOOTH, MOST[len(self.amounts)]
        for law in self.plan.laws:
            for j, name in enumerate(law.columns):
                if name in self.names and self.plan.x.schema[name].is_number:
                    at = self.amounts.index(self.names.index(name))
                    noise[:, at] = _least_resolution(law, j, shape.centre[:, at], shape.sds[:, at])
                    step = min(step, _step(law, j))
        noise = np.maximum(noise, NO_NOISE * shape.sds)
        sharp = 1.0 / np.sqrt(1.0 + ((shape.root / noise[:, :, None]) ** 2).sum(axis=1))
        wanted = np.ceil(2.0 * REACH / (step * sharp.min(axis=0)))
        return [int(min(one, most)) // 2 * 2 + 1 for one in wanted], bool((wanted > most + 1).any())


@dataclass(frozen=True, slots=True)
class ErrorShape:
    """Where a lattice lies, records x axes, its axes, records x axes x axes, and which have whole steps."""

    centre: Floats
    root: Floats
    is_whole: Bools

    @property
    def sds(self) -> Floats:
        """Records x axes: how widely the nodes of each amount are spread."""
        return np.asarray(np.sqrt((self.root**2).sum(axis=2)))

    def at(self, some: Ints) -> ErrorShape:
        """Return the lattices of some records."""
        return ErrorShape(self.centre[some], self.root[some], self.is_whole)

    def laid(self, counts: Sequence[int]) -> Floats:
        """Return records x nodes x axes."""
        steps = [np.arange(count) - count // 2 for count in counts]
        grid = np.array(list(product(*steps)), np.float64).reshape(int(np.prod(counts)), len(counts))
        lengths = np.array([2.0 * REACH / max(count - 1, 1) for count in counts])
        values = self.centre[:, None, :] + np.einsum("mi,tji->tmj", grid * lengths, self.root)
        for j in np.flatnonzero(self.is_whole):
            size = np.maximum(np.rint(lengths[j] * self.root[:, j, j]), 1.0)
            values[:, :, j] = np.rint(self.centre[:, j])[:, None] + size[:, None] * grid[:, j]
        return np.asarray(values)

    def fitted(self, values: Floats, weights: Floats, count: int) -> ErrorShape:
        """Return the lattices that the weights of nodes ask for; never much finer than these could see."""
        top = weights.max(axis=1, keepdims=True)
        lost = np.isneginf(top[:, 0])
        share = np.exp(weights - np.where(np.isneginf(top), 0.0, top))
        share /= np.where(lost, 1.0, share.sum(axis=1))[:, None]
        centre = np.einsum("tm,tmj->tj", share, values)
        off = values - centre[:, None, :]
        seen = self.root * (REACH / (count - 1) / 2.0)
        covariance = np.einsum("tm,tmi,tmj->tij", share, off, off) + seen @ seen.transpose(0, 2, 1)
        if self.is_whole.any():
            covariance = covariance * np.eye(len(self.is_whole))
        covariance[lost] = self.root[lost] @ self.root[lost].transpose(0, 2, 1)
        centre[lost] = self.centre[lost]
        return ErrorShape(centre, np.linalg.cholesky(covariance), self.is_whole)

    def least_ratio(self, before: ErrorShape) -> float:
        """Return how much narrower the narrowest axis is than it was."""
        now, then = (np.diagonal(one.root, axis1=1, axis2=2) for one in (self, before))
        return float((now / then).min(initial=1.0))


def _prune_nodes(records: Ints, values: Floats, weights: Floats) -> Nodes:
    """Return the nodes that weigh something, with logs of weights that sum to 1; where none does, one of no weight."""
    top = weights.max(axis=1, keepdims=True)
    kept = weights >= top - NEGLIGIBLE
    kept[np.isneginf(top[:, 0])] = np.arange(weights.shape[1]) == 0
    row, node = np.nonzero(kept)
    total = log_sum(np.where(kept, weights, -np.inf), axis=1)
    logs = weights[row, node] - np.where(np.isneginf(total), 0.0, total)[row]
    return records[row], values[row, node], logs


def _least_resolution(law: Any, j: int, centre: Floats, sd: Floats) -> Floats:
    """Return the width of what the noise sees of true values, the least of it near where they are."""
    if not isinstance(law, Additive | SkewedBias):
        return np.zeros(len(centre))
    shift = law.outlets[j].log_shift
    least = -np.inf if shift is None else -shift + 0.2 * np.abs(centre + shift)
    near = [np.maximum(centre + cut * sd, least) for cut in (-2.0, 0.0, 2.0)]
    return np.asarray(np.min([_resolution(law, j, at) for at in near], axis=0))


def _resolution(law: Any, j: int, at: Floats) -> Floats:
    """Return the width of what the noise sees of true values, in their own units."""
    sds = noise_sds(law, j, at)
    if isinstance(law, SkewedBias) or isinstance(law.noise, Laplace) or law.noise.covariance[j, j] == 0:
        return sds
    return np.asarray(sds * law.noise.resolution[j] / np.sqrt(law.noise.covariance[j, j]))


def _step(law: Any, j: int) -> float:
    """Return how far nodes may be from each other, in widths of the integrand."""
    if not isinstance(law, Additive):
        return BENT
    if law.spreads and isinstance(law.spreads[j], Step):
        return STEPPED
    smooth = isinstance(law.noise, Normal | Mixture | JointMixture | RotatedMixture)
    return SMOOTH if smooth and law.outlets[j].log_shift is None else BENT

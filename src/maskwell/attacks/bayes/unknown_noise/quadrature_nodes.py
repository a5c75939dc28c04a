"""Nodes for the figures of a law that were not told, placed where prior times likelihood has its mass.

The integrals of some pairs of records that show all there is to resolve (`probe_pairs`) are first taken by
Gauss-Legendre panels of log psi that are halved until each is exact, by null rules (Berntsen and Espelid 1991). The
fewest nodes that give the same to a tolerance, of the prior's own rules or of panels, are then the nodes of all pairs.
Chosen by `law_kernels` for every integral over a prior.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import islice, pairwise
from typing import Any

import numpy as np
from numpy.polynomial.legendre import leggauss

from ....kernels.log_sums import log_sum
from ....laws.unknowns import BIAS_SD, SD, of_columns
from ....table import Floats, Table
from .prior_families import ResolvedPrior
from .priors import Doubt
from .probe_pairs import Probes

One = tuple[Floats, Floats]  # nodes of one unknown and the logs of their weights, which sum to 1
LogLike = Callable[[Floats], Floats]  # values of an unknown to log densities, pairs x values

EXACT = 1e-8  # to which panels are halved, against the whole integral
NEGLIGIBLE = 1e-3  # of the tolerance: nodes that no integral needs more than that are left out
WIDEST = 2.0  # a panel of log psi: normal densities change on a scale of 1 there
# Steps beyond a prior where data pull there, their length, log psi
FARTHER, FARTHEST, LARGEST = 24, 4.0, 300.0
ROUNDS, MOST = 12, 60  # of halving, and panels from which on none is halved
FEW = (5, 9, 17, 33, 49)  # nodes of the rules that are tried before panels
IN_PANELS = (7, 10)  # nodes in each panel that are tried before those that were halved for
OTHERS = (0.0, -1.5, 1.5)  # sds from their centre at which other unknowns are held
UNNEEDED = -32.0  # log share of an integral: nodes that give none more are left out
NOTHING = -1e300  # a log that can still be subtracted


@dataclass(frozen=True, slots=True)
class AdaptiveNodeRule:
    """A rule of nodes: as few as are exact to a tolerance, found once for each law and kept in `found`."""

    tolerance: float
    z: Table
    x: Table
    found: dict[Any, Any]

    def nodes(self, doubt: Doubt) -> tuple[One, ...]:
        """Return the nodes of each unknown of a law."""
        key = doubt.law.columns
        if key not in self.found:
            self.found[key] = _references(doubt, self.z, self.x)
        if (key, self.tolerance) not in self.found:
            self.found[key, self.tolerance] = tuple(
                reference.thinned(self.tolerance, self._fewest(key, i))
                for i, reference in enumerate(self.found[key])
            )
        made: tuple[One, ...] = self.found[key, self.tolerance]
        return made

    def _fewest(self, key: Any, number: int) -> int:
        """Return how many nodes an unknown must have, to be more than by a larger tolerance."""
        before = [
            k[1] for k in self.found if k[0] == key and isinstance(k[1], float) and k[1] > self.tolerance
        ]
        return max((1 + len(self.found[key, other][number][0]) for other in before), default=1)

    def most(self) -> int:
        """Return the largest number of nodes that an unknown has."""
        mine = (nodes for key, nodes in self.found.items() if key[1:] == (self.tolerance,))
        return max((len(values) for nodes in mine for values, _ in nodes), default=0)


def _references(doubt: Doubt, z: Table, x: Table) -> tuple[Reference, ...]:
    """Integrate over each unknown."""
    likes = (_log_like(doubt, number, z, x) for number in range(len(doubt.unknowns)))
    return tuple(Reference.of(b, like) for b, like in zip(doubt.beliefs, likes, strict=True))


def _log_like(doubt: Doubt, number: int, z: Table, x: Table) -> LogLike:
    """Return what gives the log densities of probing pairs at values of one unknown; a row of zeros is the prior.

    Other unknowns of the same columns are once in the middle, once low and once high.
    """
    own = set(doubt.unknowns[number].columns)
    chosen = [j for j, name in enumerate(doubt.law.columns) if name in own]
    is_alone = not any(own & set(u.columns) for i, u in enumerate(doubt.unknowns) if i != number)
    steps = OTHERS[:1] if is_alone else OTHERS
    settings = [[float(np.exp(b.centre + step * b.spread)) for b in doubt.beliefs] for step in steps]
    probes = Probes.of(of_columns(doubt.law_at(settings[0]), chosen), z, x)
    named = {u.name: i for i, u in enumerate(doubt.unknowns) if own & set(u.columns)}
    is_plain = probes.is_plain and len(chosen) == 1

    def at(value: float, others: list[float]) -> Floats:
        values = [value if i == number else other for i, other in enumerate(others)]
        if is_plain:
            return probes.column_logs(values[named[BIAS_SD]] if BIAS_SD in named else 0.0, values[named[SD]])
        return probes.logs(of_columns(doubt.law_at(values), chosen))

    def log_like(values: Floats) -> Floats:
        columns = [np.concatenate([at(value, others) for others in settings]) for value in values.tolist()]
        return np.vstack([np.zeros(len(values)), np.array(columns).reshape(len(values), -1).T])

    return log_like


@dataclass(frozen=True, slots=True)
class NodePanels:
    """Stretches of log psi: their ends, and pairs x panels x nodes of the log integrand, weights of nodes included."""

    start: Floats
    end: Floats
    log_prior: Floats
    logs: Floats

    @classmethod
    def of(cls, belief: ResolvedPrior, log_like: LogLike, start: Floats, end: Floats) -> NodePanels:
        """Evaluate prior times likelihood at the nodes."""
        from ....kernels.densities import NODES

        at, log_weights = _legendre(start, end, len(NODES))
        prior = np.maximum(belief.log_density(at), NOTHING) + log_weights
        logs = prior + np.maximum(log_like(np.exp(at)), NOTHING)
        shape = (len(start), len(NODES))
        return cls(start, end, prior.reshape(shape), logs.reshape(-1, *shape))

    def joined(self, other: NodePanels) -> NodePanels:
        """Return these panels and others."""
        return NodePanels(
            np.concatenate([self.start, other.start]),
            np.concatenate([self.end, other.end]),
            np.concatenate([self.log_prior, other.log_prior]),
            np.concatenate([self.logs, other.logs], axis=1),
        )

    def only(self, wanted: Any) -> NodePanels:
        """Return some of the panels."""
        return NodePanels(self.start[wanted], self.end[wanted], self.log_prior[wanted], self.logs[:, wanted])

    @property
    def log_totals(self) -> Floats:
        """The log integral of each pair."""
        return log_sum(self.logs.reshape(len(self.logs), -1), axis=1)

    def shares(self) -> Floats:
        """Return what nodes give of each integral: pairs x panels x nodes."""
        return np.asarray(np.exp(self.logs - self.log_totals[:, None, None]))

    def errors(self) -> Floats:
        """Return for each panel a guess of its largest error, relative to the integrals (as in `kernels.densities`)."""
        from ....kernels.densities import NULL_RULES, WEIGHTS

        parts = self.shares()
        value, null = parts.sum(axis=2), np.abs(parts @ (NULL_RULES / WEIGHTS).T).max(axis=2)
        errors = null * np.sqrt(np.minimum(null / np.where(value > 0, value, 1.0), 1.0))
        return np.asarray(errors.max(axis=0))


@dataclass(frozen=True, slots=True)
class Reference:
    """The integrals of probing pairs over one unknown, exact, and the panels that gave them."""

    belief: ResolvedPrior
    log_like: LogLike
    panels: NodePanels
    tried: list[tuple[One, float]] = field(default_factory=list)

    @classmethod
    def of(cls, belief: ResolvedPrior, log_like: LogLike) -> Reference:
        """Cut the prior into panels, farther up where the data pull there, and halve them until they are exact."""
        cuts, last = belief.cuts()
        panels = NodePanels.of(belief, log_like, *_between(cuts))
        reach, last = min(max(cuts[-1] - cuts[len(cuts) // 2], 1e-12), FARTHEST), min(last, LARGEST)
        for _ in range(FARTHER):
            edge = panels.end.max()
            if edge >= last or panels.shares()[:, panels.end == edge].max() < EXACT:
                break
            above = np.array([edge, min(edge + reach, last)])
            panels, reach = (
                panels.joined(NodePanels.of(belief, log_like, *_between(above))),
                min(2.0 * reach, FARTHEST),
            )
        for _ in range(ROUNDS):
            coarse = panels.errors() > EXACT
            if not coarse.any() or len(coarse) > MOST:
                break
            start, end = panels.start[coarse], panels.end[coarse]
            middle = 0.5 * (start + end)
            halves = np.concatenate([start, middle]), np.concatenate([middle, end])
            panels = panels.only(~coarse).joined(NodePanels.of(belief, log_like, *halves))
        return cls(belief, log_like, panels)

    def thinned(self, tolerance: float, fewest: int = 1) -> One:
        """Return the fewest nodes by which each integral is exact to a tolerance."""
        for nodes, error in self._errors():
            if len(nodes[0]) >= fewest and error <= tolerance:
                return nodes
        return self._all(tolerance)

    def _errors(self) -> Iterator[tuple[One, float]]:
        """Try rules of more and more nodes: their largest error, once found, is kept."""
        yield from self.tried
        for values, logs in islice(self._rules(), len(self.tried), None):
            parts = np.maximum(self.log_like(values), NOTHING) + logs
            found, totals = log_sum(parts, axis=1), self.panels.log_totals
            needed = (parts - found[:, None]).max(axis=0) > UNNEEDED
            error = float(np.abs(found[1:] - (totals[1:] - totals[0])).max(initial=0.0))
            self.tried.append(((values[needed], logs[needed]), error))
            yield self.tried[-1]

    def _rules(self) -> Iterator[One]:
        """Offer rules of more and more nodes."""
        start, end = self.panels.start, self.panels.end
        for values, logs in (self.belief.nodes(count) for count in FEW):
            yield np.maximum(values, np.exp(start.min())), logs
        for count in IN_PANELS:
            at, log_weights = _legendre(start, end, count)
            logs = self.belief.log_density(at) + log_weights
            order = np.argsort(at)[np.isfinite(logs[np.argsort(at)])]
            yield np.exp(at[order]), logs[order] - np.logaddexp.reduce(logs[order])

    def _all(self, tolerance: float) -> One:
        """Return the nodes of the panels without those that nothing needs."""
        at, _ = _legendre(self.panels.start, self.panels.end, self.panels.log_prior.shape[1])
        shares = self.panels.shares().max(axis=0).ravel()
        needed = shares > NEGLIGIBLE * tolerance / len(shares)
        order = np.flatnonzero(needed)[np.argsort(at[needed])]
        logs = self.panels.log_prior.ravel() - self.panels.log_totals[0]
        return np.exp(at[order]), logs[order]


def _legendre(start: Floats, end: Floats, count: int) -> One:
    """Return the nodes of Gauss and Legendre in panels, and the logs of their weights."""
    nodes, weights = leggauss(count)
    half = 0.5 * (end - start)[:, None]
    at = 0.5 * (start + end)[:, None] + half * nodes
    return at.ravel(), np.log(half * weights).ravel()


def _between(cuts: Floats) -> tuple[Floats, Floats]:
    """Return the starts and ends of panels between cuts, none too wide."""
    pieces = [np.linspace(a, b, 1 + int(np.ceil((b - a) / WIDEST))) for a, b in pairwise(cuts.tolist())]
    start, end = (np.concatenate([piece[part] for piece in pieces]) for part in (slice(-1), slice(1, None)))
    return start, end

"""log p(z | x) of pairs where the figures of the law are not told: its integral over the intruder's prior.

    p(z | x) = integral of p(psi) p(z | x; psi) dpsi = sum over nodes of weight x p(z | x; node)

which is case d.2 of Trottini, Fienberg, Makov and Meyer (2003), section 5, with one psi for all records. Unknowns of
one column are integrated column by column. One that several columns share makes them dependent: the sum over its nodes
is then the outermost, and the columns are multiplied inside it. Nodes come from `quadrature_nodes`. Chosen by
`law_kernels` with a `Prior`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

import numpy as np

from ....laws import Normal
from ....laws.unknowns import BIAS_SD, SCALE, SD, by_column, unknowns_of, with_values
from ....table import Floats, Table
from ...pair_density import LawTerm, LoweredLaw, PlainNoise, law_terms, summed_logs
from ...protocol import Bools, Ints
from .density_tables import Nodes
from .normal_bias_factor import NormalBiasFactor, is_bias_and_noise
from .prior_average import AveragedBias, AveragedNoise
from .priors import Doubt, Prior
from .quadrature_nodes import AdaptiveNodeRule, One

NodesOf = Callable[[Any, int], Nodes]
TermsOf = Callable[[Any, NodesOf | None], list[LawTerm]]
Rule = int | AdaptiveNodeRule  # so many nodes for each unknown, or as many as a tolerance asks for


def integrated_terms(
    laws: Sequence[Any], z: Table, x: Table, prior: Prior, released: Table, rule: Rule
) -> list[LawTerm]:
    """Prepare laws for pairs of records of two tables; priors are elicited from `released`.

    Whoever asks takes a finer rule until his probabilities stop changing.
    """
    terms: list[LawTerm] = []
    for law in laws:
        terms += _scaled_terms(law, z, x, prior, released, rule) or over_shared(
            law, prior, released, rule, lambda at, nodes_of: _law_terms(at, nodes_of, z, x)
        )
    return terms


def _nodes_by(doubt: Doubt, rule: Rule) -> tuple[One, ...]:
    """Return the nodes of each unknown."""
    if isinstance(rule, AdaptiveNodeRule):
        return rule.nodes(doubt)
    return tuple(belief.nodes(rule) for belief in doubt.beliefs)


def _scaled_terms(law: Any, z: Table, x: Table, prior: Prior, released: Table, rule: Rule) -> list[LawTerm]:
    """Return the factors of a law of which only the scale is unknown, or nothing for another."""
    doubt = Doubt.of(prior, law, released)
    if [unknown.name for unknown in doubt.unknowns] != [SCALE] or _moves_centre(doubt.law):
        return []
    noise: Any = AveragedNoise(doubt.law.noise, *_nodes_by(doubt, rule)[0])
    return [DistanceFactor.of(term) for term in law_terms([replace(doubt.law, noise=noise)], z, x)]


def _moves_centre(law: Any) -> bool:
    """Whether the size of the noise decides where it is centred: its mean is taken away on the log scale."""
    return law.mean_corrected and any(outlet.log_shift is not None for outlet in law.outlets)


def over_shared(law: Any, prior: Prior, released: Table, rule: Rule, terms_of: TermsOf) -> list[LawTerm]:
    """Make the factors of one law, `terms_of(law, nodes_of)`, and average them over unknowns that columns share."""
    nodes = shared_nodes(law, prior, released, rule)
    if len(nodes) == 1:
        return terms_of(*nodes[0][1:])
    logs = np.array([log_weight for log_weight, _, _ in nodes])
    return [PriorAverage(tuple(tuple(terms_of(at, nodes_of)) for _, at, nodes_of in nodes), logs)]


def shared_nodes(
    law: Any, prior: Prior, released: Table, rule: Rule
) -> list[tuple[float, Any, NodesOf | None]]:
    """Return log weight, law and the nodes of each column at all nodes of the unknowns that columns share.

    There is one entry, of log weight 0, where nothing is shared; its law is then the card's. The nodes of columns are
    None where nothing is left unknown.
    """
    doubt = Doubt.of(prior, law, released)
    nodes, shared = _nodes_by(doubt, rule), _shared_unknowns(doubt)
    if not shared:
        return [(0.0, doubt.law, _nodes_of(doubt, {}, nodes) if doubt.unknowns else None)]
    out = []
    for chosen in product(*(zip(*nodes[i], strict=True) for i in shared)):
        fixed = {i: float(value) for i, (value, _) in zip(shared, chosen, strict=True)}
        out.append((float(sum(log for _, log in chosen)), *_law_and_nodes(doubt, fixed, nodes)))
    return out


def _shared_unknowns(doubt: Doubt) -> list[int]:
    """Return the numbers of the unknowns that make columns dependent."""
    return [i for i, u in enumerate(doubt.unknowns) if u.name == SCALE or len(u.columns) > 1]


def _law_and_nodes(
    doubt: Doubt, fixed: dict[int, float], nodes: tuple[One, ...]
) -> tuple[Any, NodesOf | None]:
    """Return the law with some unknowns fixed, and the nodes of the others."""
    values = [fixed.get(i, unknown.value) for i, unknown in enumerate(doubt.unknowns)]
    alone = len(doubt.unknowns) == len(fixed)
    return doubt.law_at(values), None if alone else _nodes_of(doubt, fixed, nodes)


def _nodes_of(doubt: Doubt, fixed: dict[int, float], nodes: tuple[One, ...]) -> NodesOf:
    """Return what gives the nodes of a column: the product of its bias_sd's and its sd's, or what was fixed."""

    def one(name: str, column: str) -> One:
        own = [i for i, u in enumerate(doubt.unknowns) if u.name == name and column in u.columns]
        if own and own[0] not in fixed:
            return nodes[own[0]]
        return np.array([fixed[own[0]] if own else 0.0]), np.zeros(1)

    def nodes_of(law: Any, j: int) -> Nodes:
        (biases, biased), (sds, noised) = (one(name, law.columns[j]) for name in (BIAS_SD, SD))
        logs = np.add.outer(biased, noised).ravel()
        return np.repeat(biases, len(sds)), np.tile(sds, len(biases)), logs

    return nodes_of


# --- factors -----------------------------------------------------------------------------------------------


def _law_terms(law: Any, nodes_of: NodesOf | None, z: Table, x: Table) -> list[LawTerm]:
    if nodes_of is None:
        return law_terms([law], z, x)
    return [_column_term(one, nodes_of(law, j), z, x) for j, one in enumerate(by_column(law))]


def _column_term(law: Any, nodes: Nodes, z: Table, x: Table) -> LawTerm:
    """Return the factor of one column: by a law averaged over the nodes where there is one, else law by law."""
    unknowns = unknowns_of(law)
    if not unknowns:
        return law_terms([law], z, x)[0]
    if len(unknowns) == 1 and not _moves_centre(law):
        noise: Any = AveragedNoise(law.noise, nodes[1] / unknowns[0].value, nodes[2])
        return DistanceFactor.of(law_terms([replace(law, noise=noise)], z, x)[0])
    if is_bias_and_noise(law):
        average = AveragedBias(law.columns, law.outlets, *nodes)
        return NormalBiasFactor.of(law, nodes, z, x, law_terms([average], z, x)[0])
    figures = {BIAS_SD: nodes[0], SD: nodes[1]}
    values = np.column_stack([figures[unknown.name] for unknown in unknowns])
    terms = _node_terms([with_values(law, row) for row in values.tolist()], z, x)
    return Distinct.of(law.columns[0], z, x, PriorAverage(tuple((term,) for term in terms), nodes[2]))


def _node_terms(laws: list[Any], z: Table, x: Table) -> list[LawTerm]:
    """Prepare one law at many nodes; what does not depend on the node is kept once."""
    first = law_terms(laws[:1], z, x)[0]
    if isinstance(first, PlainNoise):
        return [PlainNoise(replace(first.sides, law=law)) for law in laws]
    return law_terms(laws, z, x)


@dataclass(frozen=True, slots=True)
class PriorAverage:
    """The log of the weighted sum over nodes of what the factors at each of them give."""

    nodes: tuple[tuple[LawTerm, ...], ...]
    log_weights: Floats

    def logs(self, z: Ints, x: Ints) -> Floats:
        """Return the log of the sum for each pair."""
        out = np.full(len(z), -np.inf)
        for terms, log_weight in zip(self.nodes, self.log_weights, strict=True):
            np.logaddexp(out, log_weight + summed_logs(terms, z, x), out=out)
        return out


@dataclass(frozen=True, slots=True)
class Distinct:
    """The factor of one column, asked for once for each pair of different values; `z` and `x` number the values."""

    z: Ints
    x: Ints
    first_z: Ints
    first_x: Ints
    term: LawTerm

    @classmethod
    def of(cls, column: str, z: Table, x: Table, term: LawTerm) -> Distinct:
        """Number the values and statuses of a column in both tables."""
        (z_numbers, first_z), (x_numbers, first_x) = _value_groups(column, z), _value_groups(column, x)
        return cls(z_numbers, x_numbers, first_z, first_x, term)

    def logs(self, z: Ints, x: Ints) -> Floats:
        """Return the log of the factor for pairs."""
        pairs, place = np.unique(self.z[z] * len(self.first_x) + self.x[x], return_inverse=True)
        own, other = np.divmod(pairs, max(len(self.first_x), 1))
        return np.asarray(self.term.logs(self.first_z[own], self.first_x[other])[place])


def _value_groups(column: str, table: Table) -> tuple[Ints, Ints]:
    """Return the number of each record's value and status, and the first record of each number."""
    both = np.column_stack([np.nan_to_num(table.floats(column)), table.status(column)])
    _, first, number = np.unique(both, axis=0, return_index=True, return_inverse=True)
    return number.ravel(), first


# Plain normal noise of unknown size as a factor of pairs: where values are open, only a distance matters.


@dataclass(frozen=True, slots=True)
class DistanceFactor:
    """The factor of columns whose released and true values are points, in sds of a size of 1.

    `factor` has what belongs to a released record alone; `rest` speaks of the pairs that are not ordinary.
    """

    z: Floats
    x: Floats
    factor: Floats
    ordinary_z: Bools
    ordinary_x: Bools
    noise: AveragedNoise
    rest: LoweredLaw

    @classmethod
    def of(cls, term: LawTerm) -> LawTerm:
        """Return the quick factor, or the same where there is none."""
        if not isinstance(term, LoweredLaw):
            return term
        noise = term.law.noise
        if not (isinstance(noise, AveragedNoise) and isinstance(noise.noise, Normal) and noise.is_regular):
            return term
        ordinary_z = term.is_point.all(axis=1) & term.fits.opened.all(axis=1)
        ordinary_x = np.asarray(term.fits.is_open[term.fits.x].all(axis=1))
        if not (ordinary_z.any() and ordinary_x.any()):
            return term
        origin = term.centre[ordinary_x].mean(axis=0)  # digits are for what is different
        released = np.where(ordinary_z[:, None], term.lower - origin, 0.0)
        true = np.where(ordinary_x[:, None], term.centre - origin, 0.0)
        sides = noise.whitened(released), noise.whitened(true)
        factor = term.factor.sum(axis=1) - noise.log_volume
        return cls(*sides, factor, ordinary_z, ordinary_x, noise, term)

    def logs(self, z: Ints, x: Ints) -> Floats:
        """Return the log of the factor for pairs."""
        ordinary = self.ordinary_z[z] & self.ordinary_x[x]
        if ordinary.all():
            return self._quick(z, x)
        out, here, there = np.empty(len(z)), np.flatnonzero(ordinary), np.flatnonzero(~ordinary)
        out[here], out[there] = self._quick(z[here], x[here]), self.rest.logs(z[there], x[there])
        return out

    def _quick(self, z: Ints, x: Ints) -> Floats:
        away = self.z[:, 0][z] - self.x[:, 0][x]
        if self.noise.width > 1:
            square = away * away
            for j in range(1, self.noise.width):
                away = self.z[:, j][z] - self.x[:, j][x]
                square += away * away
            away = np.sqrt(square)
        return np.asarray(self.noise.at_distances(away) + self.factor[z])

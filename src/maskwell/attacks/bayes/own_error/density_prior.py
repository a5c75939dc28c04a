"""log p(z | y) for a law of true values that has a density: nodes of true values behind each known record.

    p(z | y) = sum over nodes x of w(x) p(z | x),   w(x) proportional to g(y | x) p(x)

Nodes lie on a lattice around what y and the density of true values together make likely, close enough to each other
for the noise (`nodes`; own derivation). Columns that left in clear have no part in it: their factor is that of
`erring_terms`. Chosen by `true_value_law` for marginal="gaussian", or where the error has a `population`; where all is
normal, `closed_form` takes its place.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from ....card import NoiseCard
from ....errors import BadPlan
from ....laws import Additive, Classes, SkewedBias
from ....masking import Release
from ....table import Floats, Table
from ...pair_density import LawTerm, laws_on, summed_logs
from ...protocol import IntruderKnowledge, Ints
from ..candidates import clear_fields
from ..likelihood import PairLikelihood, swapped_columns
from ..marginal.true_value_law import TrueValueLaw
from .closed_form import shrunk
from .error_law import OwnError, erring_terms, is_independent
from .nodes import Density, Lattices

NODES_AT_ONCE = 200_000  # nodes x pairs held in one go
RECORDS_AT_ONCE = 500  # known records whose nodes are laid together
KEPT_NODES = 4_000_000  # that are kept for a second look


def density_likelihood(
    error: OwnError, known: IntruderKnowledge, release: Release, fields: Sequence[str]
) -> Any:
    """Prepare p(z | y) by the density of true values that goes with an outsider's f(z), or by that given."""
    loose = [name for name in fields if name in error.columns and name not in clear_fields(release, fields)]
    terms = erring_terms([], release.table, known.targets, error, clear=clear_fields(release, fields))
    if not loose:
        return PairLikelihood.of(release.card, fields, release.table, known.targets).with_terms(terms)
    _refuse_exchanged(release, [name for name in loose if name in error.sd_of])
    density: Density = (
        _checked_density(error.population)
        if error.population is not None
        else _fitted_true_law(release, fields, loose)
    )
    if isinstance(density, TrueValueLaw) and not swapped_columns(release.card):
        laws = laws_on(release.card, fields)
        closed = shrunk(laws, release.table, known.targets, error, density)
        if closed is not None:
            return closed.with_terms(terms)
    inner = list(fields) if swapped_columns(release.card) else _together(release.card, fields, loose)
    rest = [name for name in fields if name not in inner]
    sure = PairLikelihood.of(release.card, rest, release.table, known.targets) if rest else None
    numbers = [name for name in known.targets.names if known.targets.schema[name].kind != "text"]
    lattices = Lattices(known.targets.select(numbers), error, loose, density, laws_on(release.card, loose))
    found = LatticeLikelihood(lattices, release, tuple(inner), sure, tuple(terms))
    if isinstance(density, TrueValueLaw):
        return replace(found, flat=tuple(n for n in loose if n not in (*density.names, *density.log_shares)))
    return found


def _refuse_exchanged(release: Release, amounts: Sequence[str]) -> None:
    """Refuse amounts that left as they were but for an exchange: no node hits them exactly."""
    if bare := [name for name in amounts if release.card.law_of(name) is None]:
        raise BadPlan(
            f"{', '.join(map(repr, bare))} left without noise and exchanged between records, where an error of the "
            "intruder cannot be averaged over: leave it out of the error, or take marginal 'truth'"
        )


def _fitted_true_law(release: Release, fields: Sequence[str], loose: Sequence[str]) -> TrueValueLaw:
    categories = [
        name for name in loose if release.card.law_of(name) is not None and _is_coded(release, name)
    ]
    return TrueValueLaw.of(release.table, fields, release.card, categories)


def _is_coded(release: Release, name: str) -> bool:
    """Whether a column holds categories before the noise."""
    (law,) = laws_on(release.card, [name])
    if isinstance(law, Additive):
        return bool(law.categories)
    return not isinstance(law, SkewedBias | Classes)


def _checked_density(population: Density) -> Density:
    """Return a user's function that is refused where it gives no densities."""

    def density(table: Table) -> Floats:
        logs = np.asarray(population(table))
        if logs.shape != (len(table),) or logs.dtype.kind not in "fiu" or not (logs < np.inf).all():
            raise BadPlan(
                "the population of an OwnError must return one log density for each true record of the table it is "
                f"given, below infinity: it returned an array of shape {logs.shape} and type {logs.dtype}"
            )
        return logs.astype(np.float64)

    return density


@dataclass(frozen=True, slots=True)
class TrueValueNodes:
    """The nodes of some known records: those of one follow one another from its start on."""

    pairing: PairLikelihood
    start: Ints
    log_weight: Floats

    def logs(self, z: Ints, x: Ints, log_moved: Floats) -> Floats:
        """Return the log of the sum over nodes for listed pairs, not too many at once."""
        out, width = np.empty(len(z)), np.diff(self.start)[x]
        ends = np.searchsorted(np.cumsum(width), np.arange(NODES_AT_ONCE, int(width.sum()), NODES_AT_ONCE))
        for run in np.split(np.arange(len(z)), np.unique(ends)):
            if len(run):
                out[run] = self._summed(z[run], x[run], width[run], log_moved)
        return out

    def _summed(self, z: Ints, x: Ints, width: Ints, log_moved: Floats) -> Floats:
        begin = np.cumsum(width) - width
        nodes = np.arange(int(width.sum())) + np.repeat(self.start[x] - begin, width)
        logs = self.pairing.logs(np.repeat(z, width), nodes, log_moved) + self.log_weight[nodes]
        top = np.maximum.reduceat(logs, begin)
        shift = np.where(np.isfinite(top), top, 0.0)
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(np.add.reduceat(np.exp(logs - np.repeat(shift, width)), begin)) + shift)


@dataclass(frozen=True, slots=True)
class LatticeLikelihood:
    """p(z | y) as a sum over nodes, which are laid when they are asked for.

    Nodes are compared with released records in the `inner` columns, known records in all others by `sure`. Of `flat`
    columns the law of true values says nothing.
    """

    lattices: Lattices
    release: Release
    inner: tuple[str, ...]
    sure: PairLikelihood | None
    terms: tuple[LawTerm, ...]
    flat: tuple[str, ...] = ()
    kept: dict[bytes, TrueValueNodes] = field(default_factory=dict)
    rough: list[bool] = field(default_factory=list)

    @property
    def is_rough(self) -> bool:
        """Whether there were too few nodes somewhere."""
        return any(self.rough)

    def logs(self, z: Ints, x: Ints, log_moved: Floats) -> Floats:
        """Return log p(z | y) of listed pairs."""
        out = summed_logs(self.terms, z, x)
        if self.sure is not None:
            out += self.sure.logs(z, x, log_moved)
        order = np.argsort(x, kind="stable")
        known = np.unique(x)
        for some in np.split(known, range(RECORDS_AT_ONCE, len(known), RECORDS_AT_ONCE)):
            first, last = (
                np.searchsorted(x[order], some[0]),
                np.searchsorted(x[order], some[-1], side="right"),
            )
            pairs = np.sort(order[first:last])
            out[pairs] += self._nodes(some).logs(z[pairs], np.searchsorted(some, x[pairs]), log_moved)
        return out

    def _nodes(self, known: Ints) -> TrueValueNodes:
        key = known.tobytes()
        if key in self.kept:
            return self.kept[key]
        owner, table, weights, few = self.lattices.of(known)
        self.rough.append(few)
        start = np.searchsorted(owner, np.arange(len(known) + 1))
        pairing = PairLikelihood.of(self.release.card, self.inner, self.release.table, table)
        nodes = TrueValueNodes(pairing, start, weights)
        if sum(len(one.log_weight) for one in self.kept.values()) + len(weights) <= KEPT_NODES:
            self.kept[key] = nodes
        return nodes


def _together(card: NoiseCard, fields: Sequence[str], loose: Sequence[str]) -> list[str]:
    """Return the uncertain fields and those whose noise depends on theirs."""
    inner = set(loose)
    for law in laws_on(card, fields):
        if len(law.columns) > 1 and not is_independent(law) and inner & set(law.columns):
            inner |= set(law.columns)
    return [name for name in fields if name in inner]

"""From a system of equations to the records of the marginal sampler.

Columns are taken apart into clean parts and multiples of unknown numbers (`conjugate.affine`), records sorted by which
numbers were released and by their noise: within a kind one filter serves all (`problem`). `why_not` says what this
sampler cannot take: unknown categories, limits, noise that is not plain normal, or more than MOST_KINDS kinds.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ...expressions import ONE, Node
from ...formulas.expression_trees import evaluate
from ...priors import Priors, ResolvedPriors, resolve
from ...system import Floats, Ints, System
from ..conjugate.affine import (
    Affine,
    AffineTerm,
    NoiseKind,
    affine,
    columns_of,
    released_numbers,
    unknown_names,
    why_not_linear,
)
from .families import SUPPORTED
from .problem import Covariate, MarginalProblem, NormalKind

MOST_KINDS = 64  # patterns of what was released; every one costs matrix algebra at every step


def why_not(system: System) -> str | None:
    """Say why the marginal sampler does not apply; None if it does."""
    if system.interest.family not in SUPPORTED:
        return "the family is ordered"
    reason = why_not_linear(system)
    if reason is not None:
        return reason
    names = unknown_names(system)
    for number, equation in enumerate(system.equations[:-1]):
        earlier = {system.variables[other.response].name for other in system.equations[:number]}
        for node in columns_of(system, equation):
            slopes = affine(node, names).slopes
            if not set(slopes) <= earlier or any(term.base != ONE for term in slopes.values()):
                return "the covariate model has products of unknown numbers"
    if not system.equations[:-1]:
        return "no predictor is unknown"
    kinds = released_numbers(system)[1]
    if len(kinds) > MOST_KINDS:
        return "records differ in too many ways in what was released of them"
    place = list(system.noise.columns).index(system.interest.response) if _is_hidden(system) else None
    if place is not None and (system.interest.family != 0 or not all(kind.seen[place] for kind in kinds)):
        return "the response is noised and not gaussian, or missing in some records"
    return None


def _is_hidden(system: System) -> bool:
    """Whether the response is among the unknown numbers."""
    return bool(system.unknown[:, system.interest.response].any())


def problem_of(system: System) -> MarginalProblem:
    """Return the records of a system that `why_not` has nothing against, sorted by kind."""
    known, kinds = released_numbers(system)
    order = np.argsort(known.kind, kind="stable")
    values = {variable.name: system.state[order, j] for j, variable in enumerate(system.variables)}
    responses = [equation.response for equation in system.equations[:-1]]
    places = [list(system.noise.columns).index(j) for j in responses]
    response = _response(system, values, known.values[order])
    seen = np.stack([kind.seen[places] for kind in kinds])[known.kind[order]]
    numbers = np.where(seen, known.values[order][:, places], np.nan)
    centre = np.nan_to_num(np.nanmean(numbers, axis=0))
    bases, covariates = _covariates(system, responses, centre)
    columns, multipliers, slopes = _columns(system, values, responses)
    columns += np.einsum("ns,skq,q->nk", multipliers, slopes, centre)
    offset = system.interest.offset
    return MarginalProblem(
        family=system.interest.family,
        response=response,
        columns=columns,
        multipliers=multipliers,
        slopes=slopes,
        released=np.nan_to_num(numbers - centre),
        clean=np.stack([evaluate(base, values) for base in bases], axis=1),
        kinds=_kinds(system, kinds, known.kind, places),
        covariates=covariates,
        fixed=None if offset is None else evaluate(offset, values),
        centre=centre,
        order=order,
    )


def _response(system: System, values: dict[str, Floats], numbers: Floats) -> Floats:
    interest = system.interest
    if _is_hidden(system):
        return numbers[:, list(system.noise.columns).index(interest.response)].copy()
    return values[system.variables[interest.response].name].copy()


def _kinds(
    system: System, kinds: Sequence[NoiseKind], kind_of: Ints, places: Sequence[int]
) -> tuple[NormalKind, ...]:
    """Number the sorted records of every kind; noise on the response is told by that of the predictors."""
    ends = np.cumsum(np.bincount(kind_of, minlength=len(kinds)))
    found = []
    for which, kind in enumerate(kinds):
        covariance, lean, extra = kind.covariance[np.ix_(places, places)], np.zeros(len(places)), 0.0
        if _is_hidden(system):
            own = list(system.noise.columns).index(system.interest.response)
            shared, noisy = kind.covariance[places, own], np.flatnonzero(np.diag(covariance) > 0)
            lean[noisy] = np.linalg.solve(covariance[np.ix_(noisy, noisy)], shared[noisy])
            extra = float(kind.covariance[own, own] - lean @ shared)
        start = int(ends[which - 1]) if which else 0
        found.append(NormalKind(start, int(ends[which]), kind.seen[places], covariance, lean, extra))
    return tuple(found)


def _columns(
    system: System, values: dict[str, Floats], responses: Sequence[int]
) -> tuple[Floats, Floats, Floats]:
    """Return the known parts of the columns of interest, the multipliers of unknown numbers, and their slopes."""
    names = [system.variables[j].name for j in responses]
    parts = [affine(node, names) for node in columns_of(system, system.interest)]
    bases = list(dict.fromkeys([ONE, *(term.base for part in parts for term in part.slopes.values())]))
    slopes = np.zeros((len(bases), len(parts), len(names)))
    for k, part in enumerate(parts):
        for name, term in part.slopes.items():
            slopes[bases.index(term.base), k, names.index(name)] += term.factor
    columns = np.stack([_value(part.clean, values) for part in parts], axis=1)
    return columns, np.stack([evaluate(base, values) for base in bases], axis=1), slopes


def _value(term: AffineTerm, values: dict[str, Floats]) -> Floats:
    return np.asarray(term.factor * evaluate(term.base, values))


def _covariates(
    system: System, responses: Sequence[int], centre: Floats
) -> tuple[list[Node], tuple[Covariate, ...]]:
    """Return the clean columns of the covariate model, and its equations in numbers less their `centre`."""
    names = [system.variables[j].name for j in responses]
    parts: list[list[Affine]] = [
        [affine(node, names) for node in columns_of(system, equation)] for equation in system.equations[:-1]
    ]
    bases = list(dict.fromkeys([ONE, *(p.clean.base for own in parts for p in own if p.clean.factor != 0.0)]))
    found = []
    for j, own in enumerate(parts):
        clean, before = np.zeros((len(bases), len(own))), np.zeros((len(names), len(own)))
        for k, part in enumerate(own):
            if part.clean.factor != 0.0:
                clean[bases.index(part.clean.base), k] = part.clean.factor
            for name, term in part.slopes.items():
                before[names.index(name), k] = term.factor
        clean[0] += centre @ before
        shift = np.zeros(len(bases))
        shift[0] = -centre[j]
        found.append(Covariate(clean, shift, before))
    return bases, tuple(found)


def resolved_priors(system: System, priors: Priors) -> tuple[ResolvedPriors, ...]:
    """Bring priors to the scale of every equation, as the Gibbs sampler does."""
    values = {variable.name: system.state[:, j] for j, variable in enumerate(system.variables)}
    found = []
    for equation in system.equations:
        columns = np.stack([evaluate(node, values) for node in columns_of(system, equation)], axis=1)
        response = system.state[:, equation.response]
        last = equation is system.interest
        found.append(resolve(priors, equation, np.nan_to_num(columns), response, (), named=last))
    return tuple(found)

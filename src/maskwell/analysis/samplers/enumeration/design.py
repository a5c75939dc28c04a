"""From a system of equations to the records of the enumerated sampler.

eta of a record under combination c = known columns b + differences_c b (see `kernels.enumerated_likelihood`). Records
that are alike in all known columns and releases are counted once, with weight n: the sum over records is then a sum
over kinds. `why_not` says what this sampler cannot take: more than MOST_COMBINATIONS, or an unknown that is no
category.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ...expressions import ONE, Node
from ...formulas.expression_trees import evaluate, on_state, refs
from ...priors import Priors, ResolvedPriors, resolve
from ...system import LOGIT, NEGATIVE_BINOMIAL, PROBIT, Bools, Floats, Ints, System
from .columns import categories_of, columns_of
from .layout import lay_out

MOST_COMBINATIONS = 64  # of levels, each of which costs a likelihood for each record
MOST_CELLS = 10**8  # numbers kept for all records together
FEW = 0.25  # of the records: more kinds than this are not worth counting by
BINARY = (PROBIT, LOGIT)


@dataclass(frozen=True, slots=True)
class EnumeratedProblem:
    """The records and the equations as the compiled loops take them, and how parameters become their coefficients.

    Coefficients are `turn` times those of the model of interest and of all sticks, plus `fixed`. `heard` responses are
    there; the `levels` of a negative binomial one occur `level_counts` times.
    """

    system: System = field(repr=False)
    records: Any = field(repr=False)
    shape: Any = field(repr=False)
    turn: Floats = field(repr=False)
    fixed: Floats = field(repr=False)
    heard: int = 0
    levels: Floats = field(default_factory=lambda: np.empty(0), repr=False)
    level_counts: Floats = field(default_factory=lambda: np.empty(0), repr=False)


def why_not(system: System) -> str | None:
    """Say why the enumerated sampler does not apply; None if it does."""
    categories, interest = categories_of(system), system.interest
    unknown = [int(j) for j in np.flatnonzero(system.unknown.any(axis=0))]
    for j in unknown:
        if not system.variables[j].is_category:
            return f"{system.variables[j].name} is an unknown number"
    if system.factors or any(equation.effects for equation in system.equations):
        return "the model has group effects"
    if not categories:
        return "no predictor is an unknown category"
    if interest.response in unknown and interest.family not in BINARY:
        return "the response is an unknown category of several levels"
    if set(unknown) - {*categories, interest.response} or not _are_sticks(system, categories):
        return "the covariate model is not one of sequential probits"
    sizes = [len(system.variables[j].levels) for j in categories]
    if float(np.prod(sizes, dtype=float)) > MOST_COMBINATIONS:
        return f"the unknown categories have more than {MOST_COMBINATIONS} combinations of levels"
    if len(system) * (sum(sizes) + len(_known_nodes(system)) + 2) > MOST_CELLS:
        return "the file is too large to keep every record's columns at hand"
    return _why_not_apart(system, categories)


def _are_sticks(system: System, categories: Sequence[int]) -> bool:
    """Whether the covariate model is the sticks of the unknown categories, one after the other."""
    wanted = [(j, s) for j in categories for s in range(len(system.variables[j].levels) - 1)]
    return wanted == [(equation.response, equation.stick) for equation in system.equations[:-1]]


def _why_not_apart(system: System, categories: Sequence[int]) -> str | None:
    """Say which columns are no product of a known one and of levels alone."""
    names = [system.variables[j].name for j in categories]
    for equation in system.equations:
        before = names if equation is system.interest else names[: categories.index(equation.response)]
        for column in columns_of(system, equation):
            if not refs(column.latent) <= set(before):
                return "a column mixes known and unknown variables in a way that does not come apart"
    offset = system.interest.offset
    if offset is not None and refs(offset) & set(names):
        return "the offset is unknown"
    return None


def _known_nodes(system: System) -> list[Node]:
    """Return the known factors of all columns, each once, 1 first."""
    nodes = [column.known for equation in system.equations for column in columns_of(system, equation)]
    offset = [] if system.interest.offset is None else [on_state(system.interest.offset, system.variables)]
    return list(dict.fromkeys([ONE, *nodes, *offset]))


def problem_of(system: System, *, counting: bool = True) -> EnumeratedProblem:
    """Return the records of a system that `why_not` has nothing against; with `counting` those alike once."""
    from ....kernels.enumerated_likelihood import CategoryRecords

    values = {variable.name: system.state[:, j] for j, variable in enumerate(system.variables)}
    nodes = _known_nodes(system)
    known = np.stack([evaluate(node, values) for node in nodes])
    weight = np.concatenate([_weights(system, j) for j in categories_of(system)])
    response, heard = _response(system), _heard(system)
    kinds = _kinds([*known[1:], *weight, *response]) if counting else None
    counts = np.empty(0)
    if kinds is not None:
        first, counts = kinds
        known, weight, response = (np.ascontiguousarray(rows[:, first]) for rows in (known, weight, response))
    shape, turn, fixed = lay_out(system, nodes)
    levels, level_counts = np.empty(0), np.empty(0)
    if system.interest.family == NEGATIVE_BINOMIAL:
        own = system.state[heard, system.interest.response]
        levels, level_counts = (found.astype(np.float64) for found in np.unique(own, return_counts=True))
    return EnumeratedProblem(
        system,
        CategoryRecords(known, weight, response, counts),
        shape,
        turn,
        fixed,
        int(heard.sum()),
        levels,
        level_counts,
    )


def _heard(system: System) -> Bools:
    return np.ones(len(system), bool) if system.counted is None else system.counted


def _weights(system: System, j: int) -> Floats:
    """Return what was released weighs for each level of a category, levels x records, the largest 1."""
    count, unknown = len(system.variables[j].levels), system.unknown[:, j]
    table = system.tables.get(j)
    out = np.ones((count, len(system)))
    if table is not None:
        with np.errstate(invalid="ignore"):  # what no level could have given has no likelihood
            out[:] = np.exp(table - table.max(axis=1, keepdims=True)).T
    known = np.flatnonzero(~unknown)
    out[:, known] = 0.0
    out[system.state[known, j].astype(np.int64), known] = 1.0
    return out


def _response(system: System) -> Floats:
    """Return the rows that the compiled loops take for the response."""
    interest, heard = system.interest, _heard(system)
    own = np.where(heard, system.state[:, interest.response], 0.0)
    if interest.family not in BINARY:
        return np.stack([own, heard.astype(np.float64)])
    if system.unknown[:, interest.response].any():
        out = _weights(system, interest.response)
    else:
        out = np.stack([own <= 0.5, own > 0.5]).astype(np.float64)
    out[:, ~heard] = 1.0
    return out


def _kinds(rows: Sequence[Floats]) -> tuple[Ints, Floats] | None:
    """Return the first record of each kind and how many there are of it; None where hardly any are alike."""
    n = len(rows[0])
    whole = np.zeros(n, np.int64)
    for row in rows:
        some = row[:: n // 1000 + 1]  # enough to see a column whose values all differ
        if len(some) > 100 and len(np.unique(some)) > 0.9 * len(some):
            return None
        distinct, codes = np.unique(row, return_inverse=True)
        kinds, whole = np.unique(whole * len(distinct) + codes, return_inverse=True)
        if len(kinds) > FEW * n:
            return None
    _, first, counts = np.unique(whole, return_index=True, return_counts=True)
    return first, counts.astype(np.float64)


def resolved_priors(system: System, priors: Priors) -> tuple[ResolvedPriors, ...]:
    """Bring priors to the scale of every equation, as the Gibbs sampler does."""
    values = {variable.name: system.state[:, j] for j, variable in enumerate(system.variables)}
    found = []
    for equation in system.equations:
        nodes = [on_state(node, system.variables) for node in equation.columns]
        columns = np.empty((len(system), len(nodes)))
        for k, node in enumerate(nodes):
            columns[:, k] = evaluate(node, values) - (equation.centres[k] if equation.centres else 0.0)
        last, response = equation is system.interest, system.state[:, equation.response]
        response = response[_heard(system)] if last else response
        found.append(resolve(priors, equation, np.nan_to_num(columns), response, (), named=last))
    return tuple(found)

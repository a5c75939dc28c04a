"""From a formula and a table to the arrays that corrections work on, refusing models that they cannot correct.

Response and design must be linear in all noised columns together, so that y = y_0 + L_y u and x = x_0 + L_x u for the
noise u, with known loadings L: then E over the noise needs its covariance alone (Fuller 1987, section 2.2).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from ...errors import BadInput, BadPlan, raise_all
from ...masking import Release
from ...notes import Note
from ...table import Table
from ..expressions import Node
from ..system import Bools, Floats
from .glm import Data, Family
from .noise_moments import NoiseOfColumns, noised_columns
from .problem import CorrectionProblem


@dataclass(frozen=True, slots=True)
class CorrectionRequest:
    """What is asked of a release: the formula, the family, known errors of measurement, weights, and a seed."""

    formula: str
    family: Family
    measurement_error: Mapping[str, float] | None = None
    weights: str | None = None
    seed: int = 0


@dataclass(frozen=True, slots=True)
class FormulaColumns:
    """A formula with the values of the columns it names, as they stand in a table."""

    parsed: Any
    values: Mapping[str, Floats] = field(repr=False)
    levels: Mapping[str, tuple[str, ...]] = field(repr=False)

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of the model, in the order of the table."""
        return tuple(name for name in self.values if name in self.parsed.variables)


def read_formula(formula: str, table: Table, remedy: str = "use fit alone") -> FormulaColumns:
    """Read a formula against a table; groups are refused with a remedy."""
    from ..formulas.column_uses import names_in
    from ..formulas.formula import parse
    from ..formulas.formula_tree import tree_of

    named = set(names_in(tree_of(formula)))
    columns = [column for column in table.schema.columns if column.name in named]
    texts = {column.name for column in columns if column.kind == "text"}
    values = {
        column.name: np.zeros(len(table)) if column.name in texts else np.array(table.floats(column.name))
        for column in columns
    }
    levels = {column.name: column.categories for column in table.schema.columns}
    parsed = parse(formula, values, levels)
    raise_all(_group_problems(parsed, remedy) + _text_problems(parsed, texts), BadPlan)
    return FormulaColumns(parsed, values, levels)


def _group_problems(parsed: Any, remedy: str) -> list[str]:
    if not parsed.effects:
        return []
    return [f"the formula has effects of groups, which moments have no place for: {remedy}"]


def _text_problems(parsed: Any, texts: set[str]) -> list[str]:
    return [f"column {name!r} is text: it cannot enter a model" for name in sorted(texts & parsed.variables)]


@dataclass(frozen=True, slots=True)
class ReleasedProblem:
    """A model as arrays, its noise, and the same columns as they were released."""

    problem: CorrectionProblem
    noised: NoiseOfColumns
    released: Data = field(repr=False)


def read_problem(asked: CorrectionRequest, release: Release) -> ReleasedProblem:
    """Read a model of a release as arrays."""
    if not isinstance(release, Release):
        raise BadPlan(
            f"corrections are made to a Release, not to a {type(release).__name__}: read it with its card"
        )
    named = read_formula(asked.formula, release.table)
    noised = noised_columns(release.card, release.table, named.columns, asked.measurement_error)
    weights = _weights(asked.weights, release.table)
    raw = arrays(named, asked, weights, noised.columns)
    undone = {name: noised.undone(name, column) for name, column in named.values.items()}
    problem = arrays(replace(named, values=undone), asked, weights, noised.columns)
    problem = replace(
        problem, covariance=noised.covariance(problem.values), draw=noised.drawer(len(problem), asked.seed)
    )
    return ReleasedProblem(problem, noised, raw.data)


def _weights(name: str | None, table: Table) -> Floats:
    """Return survey weights."""
    if name is None:
        return np.ones(len(table))
    column = table.schema[name]
    if not column.is_number:
        raise BadPlan(f"column {name!r} is no number, so it cannot hold weights")
    values = np.array(table.floats(name))
    if (values < 0).any() or not np.nansum(values) > 0:
        raise BadPlan(
            f"column {name!r} has weights below 0 or none above: weights are counts of whom a record stands for"
        )
    return values


def arrays(
    named: FormulaColumns, asked: CorrectionRequest, weights: Floats, variables: Sequence[str]
) -> CorrectionProblem:
    """Evaluate a formula on its columns: response, design, and how they move with each of some variables."""
    parsed = named.parsed
    _check_linear(parsed, variables, asked.family)
    kept = _complete(named, weights)
    values = {name: column[kept] for name, column in named.values.items()}
    weights = weights[kept] / weights[kept].mean()
    nodes = [parsed.response, *parsed.columns]
    both = np.column_stack([expression_values(node, values, len(weights)) for node in nodes])
    _check_values(both, parsed, asked.family, named)
    offset = 0.0 if parsed.offset is None else expression_values(parsed.offset, values, len(weights))
    return CorrectionProblem(
        names=parsed.names,
        data=Data(both[:, 0].copy(), np.ascontiguousarray(both[:, 1:]), weights, offset),
        loadings=loadings(nodes, values, variables),
        variables=tuple(variables),
        values=np.column_stack([values[name] for name in variables])
        if variables
        else np.zeros((len(both), 0)),
        notes=_notes(kept, asked),
    )


def expression_values(node: Node, values: Mapping[str, Floats], count: int) -> Floats:
    """Return the value of an expression for every record."""
    from ..formulas.expression_trees import evaluate

    return np.array(np.broadcast_to(evaluate(node, values), (count,)))


def loadings(nodes: Sequence[Node], values: Mapping[str, Floats], variables: Sequence[str]) -> Floats:
    """Return the derivatives of expressions that are linear in some variables: records x expressions x variables."""
    from ..formulas.expression_trees import refs

    count = len(next(iter(values.values())))
    out = np.zeros((count, len(nodes), len(variables)))
    at_none = {**values, **{name: np.zeros(count) for name in variables}}
    for j, name in enumerate(variables):
        at_one = {**at_none, name: np.ones(count)}
        for k, node in enumerate(nodes):
            if name in refs(node):
                out[:, k, j] = expression_values(node, at_one, count) - expression_values(
                    node, at_none, count
                )
    return out


def _check_linear(parsed: Any, noised: Sequence[str], family: Family) -> None:
    """Refuse expressions that are not linear in the noised columns together."""
    from ..formulas.expression_trees import degree

    written = zip((parsed.response_name, *parsed.names), (parsed.response, *parsed.columns), strict=True)
    problems = [
        f"{name} of the formula is not linear in its noised columns, so that noise biases it in ways that "
        "moments do not tell: use fit alone"
        for name, node in written
        if degree(node, noised) > 1
    ]
    if degree(parsed.response, noised) and not family.has_scale:
        problems.append(
            f"the response {parsed.response_name} is noised, which only gaussian models are corrected for: "
            "use fit alone"
        )
    if parsed.offset is not None and degree(parsed.offset, noised):
        problems.append("the offset of the formula is noised: use fit alone")
    raise_all(problems, BadPlan)


def _complete(named: FormulaColumns, weights: Floats) -> Bools:
    kept = np.isfinite(weights) & (weights > 0)
    for name in named.columns:
        kept &= np.isfinite(named.values[name])
    if int(kept.sum()) <= len(named.parsed.columns):
        raise BadInput(
            f"there are {int(kept.sum()):,} complete records for {len(named.parsed.columns)} coefficients; "
            "a model needs more records than that"
        )
    return np.asarray(kept)


def _check_values(both: Floats, parsed: Any, family: Family, named: FormulaColumns) -> None:
    """Refuse a response that its family cannot have, and columns that are no numbers somewhere."""
    bad = [
        name
        for name, column in zip((parsed.response_name, *parsed.names), both.T, strict=True)
        if not np.isfinite(column).all()
    ]
    raise_all(
        [
            f"{name} of the formula is not a finite number in every record: take it without that transform, or of "
            "numbers that noise carried below 0 or a unit rounded to 0 log(x + c) in place of log(x), with c so that "
            "all are positive"
            for name in bad
        ],
        BadPlan,
    )
    y, name = both[:, 0], parsed.response_name
    if (y == y[0]).all():
        raise BadPlan(f"the response {name} is the same in every record: there is nothing to explain")
    levels = named.levels.get(name, ())
    if family.has_scale and levels:
        raise BadPlan(
            f"the response {name} is a category: use family 'logit' or 'probit' if it has two levels"
        )
    if family.name in ("logit", "probit") and not np.isin(y, (0.0, 1.0)).all():
        raise BadPlan(
            f"the response {name} must be 0 or 1, or a category of two levels, for family {family.name!r}"
        )
    if family.name == "poisson" and (levels or (y < 0).any() or (y != np.rint(y)).any()):
        raise BadPlan(f"the response {name} must be whole numbers from 0 on for family 'poisson'")


def _notes(kept: Bools, asked: CorrectionRequest) -> tuple[Note, ...]:
    left = int((~kept).sum())
    found = []
    if left:
        found.append(Note("analysis.incomplete_records", {"count": left}))
    if asked.weights is not None:
        found.append(Note("analysis.weighted_records", {"column": asked.weights}))
    return tuple(found)

"""Turn a formula into expressions: a response, a column for each coefficient, and those of the group effects.

formulae decides what the columns are (which levels, which interactions) and what they are called; the expressions
are read off its components and must give its design matrix when evaluated on the same values.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from ...errors import BadPlan, raise_all
from ..expressions import Binary, Node, Ref
from .column_uses import (
    Levels,
    Values,
    coded_numbers,
    columns_at_most,
    misused_columns,
    names_in,
    unknown_columns,
)
from .components import columns_of, lazy_node, level_of
from .expression_trees import evaluate, refs, simplify_node
from .formula_tree import bare, is_operator, name_of, walk
from .whitelist import MATHS, check, check_terms, terms_at_most

MOST_COLUMNS = 2_000
MOST_RECORDS = 5_000  # on which expressions are compared with formulae's columns
_BEFORE = (
    "A term of the formula comes after an interaction that has it; write terms before their interactions."
)


@dataclass(frozen=True, slots=True)
class GroupTerm:
    """Effects of groups: records with the same combination of the `factor` columns are a group."""

    factor: tuple[str, ...]
    names: tuple[str, ...]
    columns: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class ParsedFormula:
    """A formula as expressions of the true values. A category as response is its code (a `Ref`).

    `coded` has the values of numbers that are taken for categories, as in C(n).
    """

    formula: str
    response_name: str
    response: Node
    names: tuple[str, ...]
    columns: tuple[Node, ...]
    effects: tuple[GroupTerm, ...] = ()
    offset: Node | None = None
    coded: Mapping[str, tuple[float, ...]] = field(default_factory=dict)

    @property
    def variables(self) -> frozenset[str]:
        """The columns that the response, the coefficients and the effects are made of; not those of the groups."""
        nodes = [self.response, *self.columns, *(node for term in self.effects for node in term.columns)]
        return frozenset().union(*map(refs, nodes + ([self.offset] if self.offset is not None else [])))


def parse(formula: str, data: Values, variables: Levels, noised: Collection[str] = ()) -> ParsedFormula:
    """Return a formula as expressions.

    `data` has the released values of columns (numbers in their units, categories as codes, nan where missing);
    `variables` has the levels of categories in the order of the schema, () for numbers. The first level is the
    reference. What transforms learn (means, polynomials) is learnt from these values. The `noised` numbers cannot
    be taken for categories.
    """
    tree = check(formula, variables)
    raise_all(unknown_columns(tree, data, variables), BadPlan)
    raise_all(dict.fromkeys(misused_columns(tree, data, variables, noised)), BadPlan)
    check_terms(terms_at_most(tree.right, {name: len(levels) - 1 for name, levels in variables.items()}))
    filled = {name: _imputed_values(data[name], bool(variables[name])) for name in names_in(tree)}
    model = _model(tree)
    if (count := columns_at_most(model, variables)) > MOST_COLUMNS:
        raise BadPlan(
            f"The formula has more than {MOST_COLUMNS} coefficients, up to {count:,}; name large groups as (1|group)."
        )
    groups = _groups(tree, model)
    design = _design(model, _frame(filled, variables), [term for group in groups for term in group])
    response = _response(bare(tree.left), design, variables)
    common = [term for term in design.common.terms.values() if term.kind != "offset"] if design.common else []
    _check_columns(common)
    names, columns = _labelled_columns(common, variables)
    effects = tuple(_effects(group, variables) for group in groups)
    parsed = ParsedFormula(
        formula,
        _response_label(bare(tree.left), design),
        response,
        names,
        columns,
        effects,
        _offset(design, variables),
        coded_numbers(tree, data, variables),
    )
    _check_sides(parsed, tree)
    _check_reading(parsed, common, groups, filled)
    return parsed


def _imputed_values(values: npt.NDArray[Any], is_category: bool) -> npt.NDArray[np.float64]:
    """Return the values with a typical one where they are missing: formulae would drop the record."""
    found = np.array(values, np.float64)
    missing = ~np.isfinite(found) | (is_category & (found < 0.0))
    if missing.any():
        found[missing] = 0.0 if is_category or missing.all() else np.median(found[~missing])
    return found


def _frame(filled: Mapping[str, npt.NDArray[np.float64]], variables: Levels) -> Any:
    """Return a frame for formulae; ordered categories keep the order of the schema."""
    import pandas as pd

    columns = {
        name: pd.Categorical.from_codes(values.astype(np.int64), pd.Index(variables[name]), ordered=True)
        if variables[name]
        else values
        for name, values in filled.items()
    }
    return pd.DataFrame(columns)


def _model(tree: Any) -> Any:
    """Return formulae's description of the model, with nothing evaluated."""
    from .lazy_calls import resolve_terms

    try:
        model = resolve_terms(tree)
    except (TypeError, ValueError, AttributeError):
        raise BadPlan(
            "The formula combines terms in a way that has no meaning; write them as a sum."
        ) from None
    _check_terms(model, tree)
    # Terms of sex/x share formulae's component for sex, whose coding the later term would change.
    model.common_terms = [deepcopy(term) for term in model.common_terms]
    model.group_terms = [deepcopy(term) for term in model.group_terms]
    return model


def _check_terms(model: Any, tree: Any) -> None:
    """Refuse what formulae would silently keep twice, keep, or drop."""
    seen: dict[frozenset[str], str] = {}
    for term in model.common_terms:
        parts = frozenset(str(component.name) for component in getattr(term, "components", ()))
        if parts in seen and parts:
            raise BadPlan(f"{seen[parts]} and {term.name} of the formula are the same; write one of them.")
        seen[parts] = term.name
        if len(parts) > 1 and any(part.startswith("offset(") for part in parts):
            raise BadPlan("offset(...) can only be added to a formula, not multiplied.")
    for removed in _removed_terms(tree.right):
        if removed in seen:
            raise BadPlan(
                f"The formula takes out a term that it writes as {seen[removed]}; write it the same way."
            )


def _removed_terms(tree: Any) -> Iterator[frozenset[str]]:
    """Yield the components of each term that a minus takes out."""
    from .lazy_calls import resolve_terms

    if is_operator(tree, "PLUS", "MINUS"):
        yield from _removed_terms(tree.left)
        if tree.operator.kind == "MINUS":
            out = resolve_terms(tree.right)
            for term in getattr(out, "common_terms", [out]):
                if components := getattr(term, "components", ()):
                    yield frozenset(str(component.name) for component in components)


def _groups(tree: Any, model: Any) -> list[list[Any]]:
    """Return formulae's group terms: those with one factor of one parenthesis together, for they are correlated."""
    from .lazy_calls import resolve_terms

    left = list(model.group_terms)
    found: list[list[Any]] = []
    for part in walk(tree.right):
        if not is_operator(part, "PIPE"):
            continue
        terms = resolve_terms(part)
        here: dict[str, list[Any]] = {}
        for term in getattr(terms, "group_terms", [terms]):
            same = [other for other in left if other == term]
            if same:
                left.remove(same[0])
                here.setdefault(term.factor.name, []).append(same[0])
            elif term in model.group_terms:
                raise BadPlan(f"The formula has the group effects {term.name} twice; write them once.")
        found.extend(here.values())
    return found


def _design(model: Any, frame: Any, group_terms: Iterable[Any]) -> Any:
    """Let formulae evaluate a model. The factors of groups are left alone: it would make a dense matrix of them."""
    from formulae.environment import Environment  # type: ignore[import-untyped]
    from formulae.matrices import DesignMatrices  # type: ignore[import-untyped]

    # Names are looked up in this and in nothing else: not in the program that calls us.
    environment = Environment([{name: getattr(np, name) for name in MATHS}])
    terms = list(group_terms)
    intercepts = {term.factor.name for term in terms if type(term.expr).__name__ == "Intercept"}
    model.group_terms = []
    try:
        with np.errstate(all="ignore"):
            # Transforms learn from all records; the columns themselves are only made for some.
            for term in (*model.common_terms, model.response, *(term.expr for term in terms)):
                term.set_type(frame, environment)
            some = frame.iloc[_some(len(frame))]
            design = DesignMatrices(model, some, environment)
            for term in terms:
                term.expr.set_type(some, environment)
                # A category beside the intercept of the same groups leaves out its first level.
                term.expr.set_data(term.factor.name not in intercepts)
    except (ArithmeticError, TypeError, ValueError, KeyError) as problem:
        raise BadPlan("The formula cannot be computed on this file; check each of its terms.") from problem
    except IndexError:  # formulae finds nothing left for a term
        raise BadPlan(_BEFORE) from None
    if design.common and len(design.common.terms) != len(model.common_terms):
        raise BadPlan(_BEFORE)  # it has made an extra term for an interaction, which then comes again
    return design


def _some(records: int) -> npt.NDArray[np.int64]:
    """Return the numbers of records on which expressions are compared."""
    return np.unique(np.linspace(0, records - 1, min(records, MOST_RECORDS)).astype(np.int64))


def _response(tree: Any, design: Any, variables: Levels) -> Node:
    """Return the response: the codes of a category, a number, or a transform of one."""
    name = name_of(tree)
    if name is None:
        return simplify_node(lazy_node(design.response.term.term.components[0].call, variables))
    level = getattr(tree, "level", None)
    return Ref(name) if level is None else level_of(name, level.value, variables)


def _response_label(tree: Any, design: Any) -> str:
    level = getattr(tree, "level", None)
    return str(design.response.name) if level is None else f"{name_of(tree)}[{level.value}]"


def _labelled_columns(terms: Iterable[Any], variables: Levels) -> tuple[tuple[str, ...], tuple[Node, ...]]:
    found = [column for term in terms for column in columns_of(term, variables)]
    return tuple(name for name, _ in found), tuple(node for _, node in found)


def _check_columns(terms: Iterable[Any]) -> None:
    """Refuse terms that leave nothing beside the intercept: formulae would leave them out without a word."""
    empty = [term.name for term in terms if np.ndim(term.data) > 1 and np.shape(term.data)[1] == 0]
    raise_all(
        [
            f"{name} has the same value in every record, so it explains nothing; leave it out."
            for name in empty
        ],
        BadPlan,
    )


def _effects(group: list[Any], variables: Levels) -> GroupTerm:
    factor = tuple(str(component.name) for component in group[0].factor.components)
    return GroupTerm(factor, *_labelled_columns((term.expr for term in group), variables))


def _offset(design: Any, variables: Levels) -> Node | None:
    found: Node | None = None
    for term in design.common.terms.values() if design.common else ():
        if term.kind == "offset":
            node = lazy_node(term.components[0].call, variables)
            found = node if found is None else Binary("add", found, node)
    return None if found is None else simplify_node(found)


def _check_sides(parsed: ParsedFormula, tree: Any) -> None:
    left, right = names_in(tree.left), names_in(tree.right)
    if len(left) != 1:
        raise BadPlan(
            "The response must be made of one column; add what it combines to the file as a column."
        )
    if left[0] in right:
        raise BadPlan(f"{left[0]} is the response and cannot be on the right of the formula too.")
    if not parsed.columns and not parsed.effects:
        raise BadPlan("The formula has no coefficient; write 'y ~ 1' for an intercept alone.")


def _check_reading(
    parsed: ParsedFormula,
    common: list[Any],
    groups: list[list[Any]],
    filled: Mapping[str, npt.NDArray[np.float64]],
) -> None:
    """Raise unless the expressions give formulae's design, and every column has values and is there once."""
    records = len(next(iter(filled.values())))
    some = {name: values[_some(records)] for name, values in filled.items()}
    _compare(parsed.names, parsed.columns, common, some)
    for term, group in zip(parsed.effects, groups, strict=True):
        _compare(term.names, term.columns, [part.expr for part in group], some)


def _compare(
    names: tuple[str, ...],
    columns: tuple[Node, ...],
    terms: list[Any],
    some: Mapping[str, npt.NDArray[np.float64]],
) -> None:
    matrices = [np.asarray(term.data, np.float64).reshape(len(term.data), -1) for term in terms]
    theirs = [column for matrix in matrices for column in matrix.T]
    if len(theirs) != len(columns):
        raise RuntimeError("maskwell finds other columns in the formula than formulae; please report it")
    seen: dict[Node, str] = {}
    for name, node, column in zip(names, columns, theirs, strict=True):
        if seen.setdefault(node, name) != name:
            raise BadPlan(f"{seen[node]} and {name} of the formula are the same column; write one of them.")
        finite = np.isfinite(column)
        if not finite.any():
            raise BadPlan(f"{name} of the formula is defined for no record; check what it computes.")
        near = {"rtol": 1e-8, "atol": 1e-8 * np.abs(column[finite]).max()}
        if not np.isclose(evaluate(node, some), column, equal_nan=True, **near).all():
            raise RuntimeError(
                f"maskwell reads {name} of the formula otherwise than formulae; please report it"
            )

"""Turn formulae's evaluated components into expressions, one for each column of the design.

What a transform has learnt from the released values (means, norms of polynomials) becomes numbers here, so the same
expression can be evaluated on true values.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ...errors import BadPlan
from ..expressions import ONE, Binary, Level, Node, Number, Ref, Unary
from .column_uses import Levels
from .expression_trees import ZERO, simplify_node
from .whitelist import MATHS

_OPERATORS = {
    "add": "add",
    "sub": "sub",
    "mul": "mul",
    "truediv": "div",
    "pow": "pow",
    "eq": "eq",
    "ne": "ne",
    "lt": "lt",
    "le": "le",
    "gt": "gt",
    "ge": "ge",
}


def columns_of(term: Any, levels: Levels) -> list[tuple[str, Node]]:
    """Return the labels and expressions of the columns of an evaluated term, in formulae's order."""
    if type(term).__name__ == "Intercept":
        return [("Intercept", ONE)]
    joint: list[tuple[str, Node]] = [("", ONE)]
    for component in term.components:
        own = list(zip(component.labels, nodes_of(component, levels), strict=True))
        joint = [
            (f"{label}:{name}" if label else name, Binary("mul", before, node))
            for label, before in joint
            for name, node in own
        ]
    return [(label, simplify_node(node)) for label, node in joint]


def nodes_of(component: Any, levels: Levels) -> list[Node]:
    """Return the expressions of the columns of a variable or call."""
    if component.kind == "categoric":
        return _contrast_columns(component, levels)
    if type(component).__name__ == "Variable":
        return [Ref(component.name)]
    if component.call.callee == "poly":
        return _polynomials(component.call, levels)
    return [simplify_node(lazy_node(component.call, levels))]


def _contrast_columns(component: Any, levels: Levels) -> list[Node]:
    """Return the columns of a contrast matrix: level k of the category has its row k."""
    name = component.name if type(component).__name__ == "Variable" else component.call.args[0].name
    members: list[Node] = [Level(name, code) for code in range(len(component.levels))]
    if not levels[name]:  # a number whose values are taken for levels
        members = [Binary("eq", Ref(name), Number(float(value))) for value in component.levels]
    columns = []
    for weights in np.asarray(component.contrast_matrix.matrix, np.float64).T:
        column: Node = ZERO
        for weight, member in zip(weights, members, strict=True):
            column = Binary("add", column, Binary("mul", Number(float(weight)), member))
        columns.append(ONE if (weights == 1.0).all() else simplify_node(column))
    return columns


def lazy_node(lazy: Any, levels: Levels) -> Node:
    """Return the expression of a deferred call, operation, name or number."""
    if hasattr(lazy, "callee"):
        return _call_node(lazy, levels)
    if hasattr(lazy, "symbol"):
        return _operator_node(lazy, levels)
    if hasattr(lazy, "value"):
        return Number(float(lazy.value))
    return Ref(lazy.name)


def _operator_node(lazy: Any, levels: Levels) -> Node:
    op = lazy.op.__name__
    if op == "pos":
        return lazy_node(lazy.args[0], levels)
    if op == "neg":
        return Unary("neg", lazy_node(lazy.args[0], levels))
    for one, other in (lazy.args, lazy.args[::-1]):
        if isinstance(getattr(other, "value", None), str):
            member = level_of(one.name, other.value, levels)
            return member if op == "eq" else Binary("sub", ONE, member)
    return Binary(_OPERATORS[op], *(lazy_node(argument, levels) for argument in lazy.args))


def level_of(name: str, text: str, levels: Levels) -> Node:
    """Return whether a category has a level, by its name."""
    return Level(name, levels[name].index(text))


def _call_node(lazy: Any, levels: Levels) -> Node:
    function = lazy.callee
    if function in MATHS:
        return Unary(function, lazy_node(lazy.args[0], levels))
    if function in ("I", "offset"):
        return lazy_node(lazy.args[0], levels)
    if function in ("binary", "B"):
        return _binary(lazy, levels)
    if function in ("center", "scale", "standardize"):
        return _standard(lazy, levels)
    raise RuntimeError(f"maskwell does not read {function} inside an expression")


def _binary(lazy: Any, levels: Levels) -> Node:
    name = lazy.args[0].name
    success = [*lazy.args[1:], *lazy.kwargs.values()][0].value
    if isinstance(success, str):
        return level_of(name, success, levels)
    return Binary("eq", Ref(name), Number(float(success)))


def _standard(lazy: Any, levels: Levels) -> Node:
    """Return x less its mean, over its standard deviation; both at the released values."""
    learnt = lazy.stateful_transform
    mean, deviation = float(learnt.mean), float(getattr(learnt, "std", 1.0))
    if not (math.isfinite(mean) and math.isfinite(deviation) and deviation > 0.0):
        raise BadPlan(
            f"{lazy} cannot be computed: the released values of {lazy.args[0]} are constant or undefined."
        )
    less = Binary("sub", lazy_node(lazy.args[0], levels), Number(mean))
    return less if lazy.callee == "center" else Binary("mul", Number(1.0 / deviation), less)


def _polynomials(lazy: Any, levels: Levels) -> list[Node]:
    """Return the polynomials of degree 1, 2, ... of an expression.

    Orthogonal ones follow formulae's recurrence p[k] = (x - alpha[k-1]) p[k-1] - beta[k-1] p[k-2]; their
    coefficients are of powers of x less its mean, and they are evaluated from the highest on.
    """
    x, learnt = lazy_node(lazy.args[0], levels), lazy.stateful_transform
    if learnt.raw:
        return [
            simplify_node(Binary("pow", x, Number(float(power)))) for power in range(1, learnt.degree + 1)
        ]
    alpha = np.array([learnt.alpha[k] for k in range(learnt.degree)])
    norms = np.array([learnt.norms2[k] for k in range(learnt.degree + 1)])
    # Of as many distinct values as the degree the last polynomial is 0, but for rounding.
    with np.errstate(all="ignore"):
        sizes = norms / (norms[0] * (norms[1] / norms[0]) ** np.arange(learnt.degree + 1))
    if not (np.isfinite(alpha).all() and (sizes > 1e-24).all()):
        raise BadPlan(
            f"{lazy} cannot be computed: the released values of {lazy.args[0]} are too few or undefined."
        )
    less = Binary("sub", x, Number(float(alpha[0])))
    before, now = np.zeros(learnt.degree + 1), np.eye(learnt.degree + 1)[0]
    found = []
    for k in range(learnt.degree):
        beta = norms[k] / norms[k - 1] if k else 0.0
        before, now = now, np.roll(now, 1) - (alpha[k] - alpha[0]) * now - beta * before
        found.append(simplify_node(_horner(now[: k + 2] / math.sqrt(norms[k + 1]), less)))
    return found


def _horner(coefficients: Any, x: Node) -> Node:
    value: Node = Number(float(coefficients[-1]))
    for coefficient in coefficients[-2::-1]:
        value = Binary("add", Binary("mul", value, x), Number(float(coefficient)))
    return value

"""What is asked of an expression: its values, what it depends on and how, and the same written more simply.

`evaluate` is the reference in numpy; samplers run the programs of `kernels.programs`. Invalid arithmetic gives nan,
as it does there.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Mapping

import numpy as np

from ..expressions import ONE, Binary, Level, Node, Number, Ref, Unary
from ..system import Floats, Variable

ZERO = Number(0.0)
_UNARY: dict[str, Callable[[Floats], Floats]] = {
    "neg": np.negative,
    "log": np.log,
    "log1p": np.log1p,
    "log2": np.log2,
    "log10": np.log10,
    "sqrt": np.sqrt,
    "exp": np.exp,
    "expm1": np.expm1,
    "abs": np.abs,
    "sin": np.sin,
    "cos": np.cos,
    "tanh": np.tanh,
}
_BINARY: dict[str, Callable[[Floats, Floats], Floats]] = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "div": np.divide,
    "pow": np.power,
    "eq": np.equal,
    "ne": np.not_equal,
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
}
COMPARISONS = ("eq", "ne", "lt", "le", "gt", "ge")


def evaluate(node: Node, values: Mapping[str, Floats]) -> Floats:
    """Return the value of an expression for every record; `values` has numbers, and codes of categories."""
    with np.errstate(all="ignore"):
        found = _value(node, values)
    length = max((len(column) for column in values.values()), default=1)
    return np.array(np.broadcast_to(found, (length,)), np.float64)


def _value(node: Node, values: Mapping[str, Floats]) -> Floats:
    match node:
        case Number(value):
            return np.asarray(value, np.float64)
        case Ref(name):
            return np.asarray(values[name], np.float64)
        case Level(name, code):
            return np.asarray(values[name] == code, np.float64)
        case Unary(op, of):
            return _UNARY[op](_value(of, values))
        case Binary(op, left, right):
            return np.asarray(_BINARY[op](_value(left, values), _value(right, values)), np.float64)


def refs(node: Node) -> frozenset[str]:
    """Return the names of the variables an expression depends on, categories among them."""
    match node:
        case Number():
            return frozenset()
        case Ref(name) | Level(name, _):
            return frozenset((name,))
        case Unary(_, of):
            return refs(of)
        case Binary(_, left, right):
            return refs(left) | refs(right)


def substitute(node: Node, by: Mapping[str, Node]) -> Node:
    """Return the expression with some numeric variables replaced by expressions."""
    match node:
        case Ref(name):
            return by.get(name, node)
        case Unary(op, of):
            return Unary(op, substitute(of, by))
        case Binary(op, left, right):
            return Binary(op, substitute(left, by), substitute(right, by))
        case _:
            return node


def on_state(node: Node, variables: Iterable[Variable]) -> Node:
    """Return the expression of true values as one of the state: x is exp(t) - shift where t = log(x + shift).

    A whole number counted from a base is that base and its code.
    """
    variables = tuple(variables)
    by: dict[str, Node] = {
        variable.name: Binary("sub", Unary("exp", Ref(variable.name)), Number(variable.log_shift))
        for variable in variables
        if variable.log_shift is not None
    }
    by |= {v.name: Binary("add", Ref(v.name), Number(v.base)) for v in variables if v.base is not None}
    return simplify_node(substitute(node, by))


def degree(node: Node, names: Collection[str]) -> int:
    """Return 0 if the expression does not depend on these variables, 1 if it is affine in all of them together, else 2.

    Levels of a category are not affine in its code: 2.
    """
    return _degree(simplify_node(node), frozenset(names))


def _degree(node: Node, names: frozenset[str]) -> int:
    if not refs(node) & names:
        return 0
    match node:
        case Ref():
            return 1
        case Unary("neg", of):
            return _degree(of, names)
        case Binary("add" | "sub", left, right):
            return max(_degree(left, names), _degree(right, names))
        case Binary("mul", left, right):
            return min(_degree(left, names) + _degree(right, names), 2)
        case Binary("div", left, right) if not refs(right) & names:
            return _degree(left, names)
        case _:
            return 2


def split(node: Node, unknown: Collection[str]) -> tuple[Node, Node]:
    """Return factors (clean, rest) whose product is the expression; clean does not depend on the unknown variables."""
    clean, rest = _split(simplify_node(node), frozenset(unknown))
    return simplify_node(clean), simplify_node(rest)


def _split(node: Node, unknown: frozenset[str]) -> tuple[Node, Node]:
    if not refs(node) & unknown:
        return node, ONE
    match node:
        case Unary("neg", of):
            clean, rest = _split(of, unknown)
            return Unary("neg", clean), rest
        case Binary("mul" | "div" as op, left, right):
            first, second = _split(left, unknown), _split(right, unknown)
            return Binary(op, first[0], second[0]), Binary(op, first[1], second[1])
        case _:
            return ONE, node


def simplify_node(node: Node) -> Node:
    """Return an equal expression with constants folded, and logs of exponentials undone.

    Equal wherever the original is a number: 0 * log(x) becomes 0 also where log(x) is none.
    """
    match node:
        case Unary(op, of):
            return _unary(op, simplify_node(of))
        case Binary(op, left, right):
            return _binary(op, simplify_node(left), simplify_node(right))
        case _:
            return node


def _unary(op: str, of: Node) -> Node:
    if isinstance(of, Number):
        return _constant_node(Unary(op, of))
    match op, of:
        case "neg", Unary("neg", inner):
            return inner
        case "neg", Binary("sub", left, right):
            return _binary("sub", right, left)
        case "neg", Binary("mul", Number(value), right):
            return _binary("mul", Number(-value), right)
        case "expm1", _:
            return Unary(op, of)
        case "sqrt", Unary("exp", inner):
            return Unary("exp", _binary("mul", Number(0.5), inner))
    bases = {"log": 1.0, "log2": math.log(2.0), "log10": math.log(10.0)}
    inside = _log_of(_binary("add", of, ONE) if op == "log1p" else of) if op in {*bases, "log1p"} else None
    return Unary(op, of) if inside is None else _binary("div", inside, Number(bases.get(op, 1.0)))


def _log_of(node: Node) -> Node | None:
    """Return the log of what is a product of exponentials and positive constants, else None."""
    match node:
        case Number(value):
            return Number(math.log(value)) if value > 0.0 else None
        case Unary("exp", of):
            return of
        case Unary("sqrt", of):
            inside = _log_of(of)
            return None if inside is None else _binary("mul", Number(0.5), inside)
        case Binary("pow", base, Number() as power):
            inside = _log_of(base)
            return None if inside is None else _binary("mul", power, inside)
        case Binary("mul" | "div" as op, left, right):
            first, second = _log_of(left), _log_of(right)
            if first is None or second is None:
                return None
            return _binary("add" if op == "mul" else "sub", first, second)
        case _:
            return None


def _constant_node(node: Node) -> Node:
    """Return the number that an expression of numbers is."""
    return Number(float(evaluate(node, {})[0]))


def _binary(op: str, left: Node, right: Node) -> Node:
    if isinstance(left, Number) and isinstance(right, Number):
        return _constant_node(Binary(op, left, right))
    match op:
        case "add":
            return _sum(left, right)
        case "sub":
            return _difference(left, right)
        case "mul":
            return _product(left, right)
        case "div":
            return _quotient(left, right)
        case "pow" if right == ONE:
            return left
        case "pow" if right == ZERO:
            return ONE
        case _:
            return Binary(op, left, right)


def _sum(left: Node, right: Node) -> Node:
    """Return a sum; a constant goes last, and joins one that is there."""
    if isinstance(left, Number):
        left, right = right, left
    match left, right:
        case _, Number(0.0):
            return left
        case Binary("add", inner, Number(first)), Number(second):
            return _sum(inner, Number(first + second))
        case Binary("sub", inner, Number(first)), Number(second):
            return _sum(inner, Number(second - first))
        case Binary("sub", Number(first), inner), Number(second):
            return _difference(Number(first + second), inner)
        case _, Number(value) if value < 0.0:
            return Binary("sub", left, Number(-value))
        case _, Unary("neg", inner):
            return _difference(left, inner)
    return Binary("add", left, right)


def _difference(left: Node, right: Node) -> Node:
    match left, right:
        case _, Number(value):
            return _sum(left, Number(-value))
        case Number(0.0), _:
            return _unary("neg", right)
        case _, Unary("neg", inner):
            return _sum(left, inner)
        case Number(first), Binary("add", inner, Number(second)):
            return _difference(Number(first - second), inner)
        case Number(first), Binary("sub", inner, Number(second)):
            return _difference(Number(first + second), inner)
    return Binary("sub", left, right)


def _product(left: Node, right: Node) -> Node:
    """Return a product; a constant goes first, and joins one that is there."""
    if isinstance(right, Number):
        left, right = right, left
    match left, right:
        case Number(0.0), _:
            return ZERO
        case Number(1.0), _:
            return right
        case Number(-1.0), _:
            return _unary("neg", right)
        case Number(first), Binary("mul", Number(second), inner):
            return _product(Number(first * second), inner)
        case Number(), Unary("neg", inner):
            return _product(Number(-left.value), inner)
        case Binary("mul", Number() as first, inner), _:
            return _product(first, _product(inner, right))
        case _, Binary("mul", Number() as first, inner):
            return _product(first, _product(left, inner))
    return Binary("mul", left, right)


def _quotient(left: Node, right: Node) -> Node:
    match left, right:
        case _, Number(1.0):
            return left
        case Number(0.0), _:
            return ZERO
        case Binary("mul", Number(first), inner), Number(second) if second != 0.0:
            return _product(Number(first / second), inner)
    return Binary("div", left, right)

"""Expressions: their values, what they depend on, and the same written more simply."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from maskwell.analysis.expressions import ONE, Binary, Level, Node, Number, Ref, Unary
from maskwell.analysis.formulas.expression_trees import (
    degree,
    evaluate,
    on_state,
    refs,
    simplify_node,
    split,
    substitute,
)
from maskwell.analysis.system import Variable

X, Z, F = Ref("x"), Ref("z"), Level("sex", 1)
VALUES = {
    "x": np.array([0.3, 1.7, 2.9, 0.8]),
    "z": np.array([1.1, 0.4, 2.2, 3.1]),
    "sex": np.array([0.0, 1.0, 1.0, 0.0]),
}


def log(of: Node) -> Node:
    return Unary("log", of)


def exp(of: Node) -> Node:
    return Unary("exp", of)


def number(value: float) -> Node:
    return Number(value)


def trees(depth: int = 4) -> st.SearchStrategy[Node]:
    """Draw expressions of x, z and a level; numbers whose sums are exact."""
    leaves = st.one_of(
        st.sampled_from([X, Z, F]), st.sampled_from([-2.0, -1.0, 0.0, 0.5, 1.0, 2.0, 3.0]).map(number)
    )
    unary = st.sampled_from(
        ["neg", "log", "log1p", "log2", "log10", "sqrt", "exp", "expm1", "abs", "sin", "cos", "tanh"]
    )
    binary = st.sampled_from(["add", "sub", "mul", "div", "pow"])
    comparisons = st.builds(Binary, st.sampled_from(["eq", "ne", "lt", "le", "gt", "ge"]), st.just(X), leaves)
    return st.recursive(
        leaves | comparisons,
        lambda inner: st.one_of(st.builds(Unary, unary, inner), st.builds(Binary, binary, inner, inner)),
        max_leaves=2**depth,
    )


def steady(node: Node) -> np.ndarray:
    """Return where an expression is a number that a last digit of its arguments does not change."""
    moved = {name: column * (1 + 1e-10) if name != "sex" else column for name, column in VALUES.items()}
    here, there = evaluate(node, VALUES), evaluate(node, moved)
    with np.errstate(all="ignore"):
        return np.isfinite(here) & (np.abs(here - there) < 1e-7 * np.maximum(np.abs(here), 1e-6))


def test_values_are_those_of_numpy():
    node = Binary("mul", F, Unary("log", Binary("add", X, number(1.0))))
    assert np.array_equal(evaluate(node, VALUES), VALUES["sex"] * np.log(VALUES["x"] + 1.0))
    assert np.array_equal(evaluate(ONE, VALUES), np.ones(4))
    assert np.isnan(evaluate(log(number(-1.0)), VALUES)).all()
    assert np.array_equal(evaluate(Binary("gt", X, number(1.0)), VALUES), [0.0, 1.0, 1.0, 0.0])


@settings(deadline=None)
@given(trees())
def test_a_simplified_expression_has_the_same_values(node: Node):
    where = steady(node)
    assert np.allclose(
        evaluate(simplify_node(node), VALUES)[where], evaluate(node, VALUES)[where], rtol=1e-5, atol=1e-9
    )
    assert refs(simplify_node(node)) <= refs(node)


@settings(deadline=None)
@given(trees())
def test_the_factors_of_a_split_multiply_to_the_expression(node: Node):
    clean, rest = split(node, {"x"})
    assert "x" not in refs(clean)
    where = steady(node)
    with np.errstate(all="ignore"):
        product = evaluate(clean, VALUES) * evaluate(rest, VALUES)
    assert np.allclose(product[where], evaluate(node, VALUES)[where], rtol=1e-5, atol=1e-9)


@settings(deadline=None)
@given(trees())
def test_an_expression_of_degree_one_is_affine(node: Node):
    """At the middle of two points an affine expression has the mean of their values."""
    found = degree(node, {"x", "z"})
    ends = [VALUES, {**VALUES, "x": VALUES["x"] + 0.7, "z": VALUES["z"] - 0.3}]
    middle = {**VALUES, "x": VALUES["x"] + 0.35, "z": VALUES["z"] - 0.15}
    first, last, between = (evaluate(simplify_node(node), values) for values in (*ends, middle))
    whole = np.isfinite(first) & np.isfinite(last) & np.isfinite(between)
    if found < 2:
        assert np.allclose(between[whole], ((first + last) / 2)[whole], rtol=1e-9, atol=1e-9)
    if found == 0:
        assert np.array_equal(first[whole], last[whole])


@pytest.mark.parametrize(
    ("node", "names", "expected"),
    [
        (X, {"z"}, 0),
        (X, {"x"}, 1),
        (Binary("mul", X, Z), {"x"}, 1),
        (Binary("mul", X, Z), {"x", "z"}, 2),
        (Binary("add", X, Z), {"x", "z"}, 1),
        (Binary("mul", F, X), {"x"}, 1),
        (F, {"sex"}, 2),
        (Binary("div", X, Z), {"x"}, 1),
        (Binary("div", Z, X), {"x"}, 2),
        (Binary("pow", X, number(2.0)), {"x"}, 2),
        (Binary("pow", X, number(1.0)), {"x"}, 1),
        (log(exp(X)), {"x"}, 1),
        (log(Binary("sub", exp(X), number(0.0))), {"x"}, 1),
        (log(X), {"x"}, 2),
        (log(Z), {"x"}, 0),
    ],
)
def test_degrees(node: Node, names: set[str], expected: int):
    assert degree(node, names) == expected


@pytest.mark.parametrize(
    ("node", "shift", "expected"),
    [
        (log(X), 0.0, X),
        (log(Binary("add", X, number(1.0))), 1.0, X),
        (Unary("log1p", X), 1.0, X),
        (Unary("log10", X), 0.0, Binary("div", X, number(float(np.log(10.0))))),
        (log(Binary("mul", number(2.0), X)), 0.0, Binary("add", X, number(float(np.log(2.0))))),
        (log(Binary("div", X, number(1000.0))), 0.0, Binary("sub", X, number(float(np.log(1000.0))))),
        (log(Unary("sqrt", X)), 0.0, Binary("mul", number(0.5), X)),
        (log(Binary("pow", X, number(3.0))), 0.0, Binary("mul", number(3.0), X)),
        (X, 0.0, exp(X)),
        (X, 2.0, Binary("sub", exp(X), number(2.0))),
        (Z, 0.0, Z),
        (F, 0.0, F),
    ],
)
def test_logs_of_what_is_kept_on_the_log_scale_are_undone(node: Node, shift: float, expected: Node):
    variables = [Variable("x", log_shift=shift), Variable("z"), Variable("sex", ("m", "f"))]
    assert on_state(node, variables) == expected


def test_a_linear_predictor_of_logs_is_affine_in_the_state():
    state = on_state(Binary("mul", F, log(Binary("div", X, number(1000.0)))), [Variable("x", log_shift=0.0)])
    assert degree(state, {"x"}) == 1
    assert split(state, {"x"}) == (F, Binary("sub", X, number(float(np.log(1000.0)))))


def test_splitting_without_unknown_factors():
    assert split(Binary("mul", F, X), {"w"}) == (Binary("mul", F, X), ONE)
    assert split(Binary("mul", F, X), {"x"}) == (F, X)
    assert split(Binary("add", F, X), {"x"}) == (ONE, Binary("add", F, X))
    assert split(Binary("div", X, Z), {"x"}) == (Binary("div", ONE, Z), X)


def test_substituting_leaves_levels_alone():
    node = Binary("add", Binary("mul", F, X), Z)
    assert substitute(node, {"x": log(Z), "sex": X}) == Binary("add", Binary("mul", F, log(Z)), Z)

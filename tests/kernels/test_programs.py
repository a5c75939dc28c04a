"""Programs run by a loop give what the expressions they were made of give."""

from __future__ import annotations

import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numba import njit

from maskwell.analysis.expressions import ONE, UNARY, Binary, Level, Node, Number, Ref, Unary
from maskwell.analysis.formulas.expression_trees import evaluate, simplify_node
from maskwell.analysis.formulas.programs import programs_of
from maskwell.errors import BadPlan
from maskwell.kernels import programs as kernels

X, Z, F = Ref("x"), Ref("z"), Level("sex", 1)
NUMBERS = {"z": 0, "sex": 1, "x": 2}
STATE = np.array([[1.1, 0.0, 0.3], [-0.4, 1.0, 1.7], [2.2, 1.0, -2.9], [3.1, 2.0, 0.0]])
VALUES = {name: STATE[:, column].copy() for name, column in NUMBERS.items()}


def run(nodes: list[Node], state: np.ndarray = STATE) -> np.ndarray:
    """Return the values of the programs of expressions, one column each."""
    values = np.empty((len(state), len(nodes)))
    kernels.all_values(programs_of(nodes, NUMBERS), state, values)
    return values


def same(found: np.ndarray, node: Node) -> bool:
    """Whether values are those of the reference, but where a last digit of an argument changes them much."""
    expected = evaluate(simplify_node(node), VALUES)
    moved = {name: values * (1 + 1e-10) if name != "sex" else values for name, values in VALUES.items()}
    there = evaluate(simplify_node(node), moved)
    with np.errstate(all="ignore"):
        steady = (np.abs(expected - there) < 1e-7 * np.abs(expected)) | (expected == there)
    steady |= np.isnan(expected) & np.isnan(there)
    return bool(np.isclose(found, expected, rtol=1e-6, atol=1e-12, equal_nan=True)[steady].all())


def trees(leaves: int) -> st.SearchStrategy[Node]:
    """Draw expressions of two numbers and a level."""
    ends = st.one_of(
        st.sampled_from([X, Z, F, Level("sex", 2)]), st.sampled_from([-2.0, 0.5, 2.0, 3.0]).map(Number)
    )
    comparisons = st.builds(
        Binary, st.sampled_from(["eq", "ne", "lt", "le", "gt", "ge"]), ends, st.sampled_from([X, Z])
    )
    return st.recursive(
        ends | comparisons,
        lambda inner: st.one_of(
            st.builds(Unary, st.sampled_from(UNARY), inner),
            st.builds(Binary, st.sampled_from(["add", "sub", "mul", "div", "pow"]), inner, inner),
        ),
        max_leaves=leaves,
    )


@settings(max_examples=300, deadline=None)
@given(trees(16))
def test_programs_equal_the_reference(node: Node):
    assert same(run([node])[:, 0], node)


@pytest.mark.parametrize("op", UNARY)
def test_every_function_equals_the_reference_where_it_is_defined_and_where_it_is_not(op: str):
    values = run([Unary(op, X)])[:, 0]
    assert np.allclose(values, evaluate(Unary(op, X), VALUES), rtol=1e-14, equal_nan=True)


@pytest.mark.parametrize("op", ["add", "sub", "mul", "div", "pow", "eq", "ne", "lt", "le", "gt", "ge"])
@pytest.mark.parametrize(
    ("left", "right"),
    [
        (X, Z),
        (X, Number(2.0)),
        (Number(2.0), X),
        (F, X),
        (X, F),
        (Unary("exp", X), Unary("sin", Z)),  # both have to be computed
        (Unary("exp", X), Binary("mul", Unary("sin", X), Unary("cos", Z))),  # the right one is harder
        (Unary("exp", X), Z),
        (Z, Unary("exp", X)),
    ],
)
def test_every_operation_equals_the_reference_on_either_side(op: str, left: Node, right: Node):
    node = Binary(op, left, right)
    assert np.allclose(run([node])[:, 0], evaluate(node, VALUES), rtol=1e-13, equal_nan=True)


def test_common_columns_need_no_instructions():
    programs = programs_of([ONE, X, F, Binary("add", X, Number(0.0))], NUMBERS)
    assert programs.kind.tolist() == [kernels.CONSTANT_ONE, kernels.COLUMN, kernels.LEVEL, kernels.COLUMN]
    assert programs.first.tolist() == [0, 2, 1, 2]
    assert programs.second.tolist() == [0, 0, 1, 0]
    assert len(programs.code) == 0
    assert np.array_equal(run([ONE, X, F]), np.column_stack([np.ones(4), VALUES["x"], [0, 1, 1, 0]]))


def test_a_number_is_a_program():
    assert np.array_equal(run([Number(2.5)])[:, 0], np.full(4, 2.5))


def test_invalid_arithmetic_gives_nan_or_infinity():
    nodes = [Unary("log", Number(-1.0)), Binary("div", X, Binary("sub", Z, Z)), Unary("sqrt", X)]
    values = run(nodes)
    assert np.isnan(values[:, 0]).all()
    assert np.array_equal(values[:3, 1], np.copysign(np.inf, VALUES["x"][:3]))
    assert np.isnan(values[3, 1])
    assert np.array_equal(np.isnan(values[:, 2]), VALUES["x"] < 0.0)


def test_programs_of_nothing():
    programs = programs_of([], NUMBERS)
    assert len(programs.kind) == 0
    assert programs.begin.tolist() == [0]


def balanced(depth: int) -> Node:
    return (
        Unary("sin", X)
        if depth == 0
        else Binary("add", balanced(depth - 1), Unary("cos", balanced(depth - 1)))
    )


def test_what_needs_more_room_than_there_is_is_refused():
    deepest = balanced(kernels.MOST_ASIDE)
    assert same(run([deepest])[:, 0], deepest)
    with pytest.raises(BadPlan, match="too deeply"):
        programs_of([balanced(kernels.MOST_ASIDE + 1)], NUMBERS)


def test_levels_of_many_variables_and_codes():
    node = Binary("mul", Level("b", 300), Ref("a"))
    programs = programs_of([node], {"a": 0, "b": 70})
    state = np.zeros((2, 71))
    state[:, 0], state[1, 70] = 5.0, 300.0
    values = np.empty((2, 1))
    kernels.all_values(programs, state, values)
    assert values[:, 0].tolist() == [0.0, 5.0]


@njit
def sum_of(programs: kernels.Programs, state: np.ndarray) -> float:
    total = 0.0
    for i in range(len(state)):
        for c in range(len(programs.kind)):
            total += kernels.program_value(programs, c, state[i])
    return total


def test_loops_that_count_references_can_call_programs_that_do_not():
    """Programs are compiled without counting; the counts of the arrays they are given must come out even."""
    nodes = [X, Binary("mul", X, Z), Unary("abs", Binary("sub", Z, X))]
    programs, state = programs_of(nodes, NUMBERS), STATE.copy()
    arrays = [state, *programs]
    sum_of(programs, state)
    before = [sys.getrefcount(array) for array in arrays]
    totals = [sum_of(programs, state) for _ in range(50)]
    assert [sys.getrefcount(array) for array in arrays] == before
    assert np.allclose(totals, sum(evaluate(node, VALUES).sum() for node in nodes))

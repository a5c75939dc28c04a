"""Values of expressions for one record: small programs that a loop runs, in place of trees.

Most columns of a model are a variable, a level of a category or 1, and cost a few nanoseconds. Anything else is run
by a machine with one accumulator: an instruction applies an operation to the accumulator and an operand (a constant,
a variable, a level, or what was put aside), so that few values have to be put aside.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar, cast

import numpy as np
from numba import njit
from numpy.typing import NDArray

from . import announce

announce(__file__)

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

CONSTANT_ONE, COLUMN, LEVEL, GENERAL = range(4)  # kinds of programs
MOST_ASIDE = 6  # values that can be put aside at once
LEVELS = 1 << 20  # the operand of a level is its column * LEVELS + its code
# An instruction is operation * 4 + where the operand is.
ASIDE, NUMBER, VARIABLE, MEMBER = range(4)
LOAD, PUT_ASIDE, ADD, SUB, SUB_FROM, MUL, DIV, DIV_INTO, POW, POW_OF = range(10)
EQ, NE, LT, LE, GT, GE = range(10, 16)
NEG, SQUARE, LOG, LOG1P, LOG2, LOG10, SQRT, EXP, EXPM1, ABS, SIN, COS, TANH = range(16, 29)


# Without _nrt=False every call counts references to seven arrays, which costs more than the arithmetic; numpy's way
# with errors gives inf and nan where Python's raises.
LEAN: dict[str, Any] = {"cache": True, "nogil": True, "error_model": "numpy", "_nrt": False}
Function = TypeVar("Function", bound=Callable[..., Any])


def lean(function: Function) -> Function:
    """Compile a function that allocates nothing."""
    return cast(Function, njit(**LEAN)(function))


# Functions that only loops call need no way in from Python: with arguments of many arrays that is half of compiling.
INNER: dict[str, Any] = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}


def inner(function: Function) -> Function:
    """Compile a function that allocates nothing and that only compiled functions call."""
    return cast(Function, njit(**LEAN, **INNER)(function))


def inner_with_allocation(function: Function) -> Function:
    """Compile a function that may allocate and that only compiled functions call."""
    return cast(Function, njit(cache=True, nogil=True, error_model="numpy", **INNER)(function))


def inline_lean(function: Function) -> Function:
    """Compile a function that allocates nothing into those that call it."""
    return cast(Function, njit(forceinline=True, **LEAN, **INNER)(function))


class Programs(NamedTuple):
    """Expressions as programs: program c is 1 (kind 0), the variable `first` (1), whether that has code `second` (2),
    or what the instructions from `begin[c]` to `begin[c + 1]` leave (3).
    """

    kind: Ints
    first: Ints
    second: Ints
    begin: Ints
    code: Ints
    argument: Floats


@inline_lean
def program_value(programs: Programs, c: int, row: Floats) -> float:
    """Return the value of program c for the state of a record; nan where the arithmetic is invalid."""
    kind = programs.kind[c]
    if kind == CONSTANT_ONE:
        return 1.0
    if kind == COLUMN:
        return float(row[programs.first[c]])
    if kind == LEVEL:
        return 1.0 if row[programs.first[c]] == programs.second[c] else 0.0
    return run(programs, c, row)


@lean
def run(programs: Programs, c: int, row: Floats) -> float:
    """Run the instructions of a program for the state of a record, and return what they leave."""
    code, argument = programs.code, programs.argument
    now = 0.0
    a0, a1, a2, a3, a4, a5 = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
    for at in range(programs.begin[c], programs.begin[c + 1]):
        operation, where = code[at] >> 2, code[at] & 3
        if operation >= NEG:
            now = unary_value(operation, now)
            continue
        if operation == PUT_ASIDE:
            # Scalars, not an array: they stay in registers, and nothing is allocated for each value.
            a5, a4, a3, a2, a1, a0 = a4, a3, a2, a1, a0, now
            continue
        if where == NUMBER:
            operand = argument[at]
        elif where == VARIABLE:
            operand = row[int(argument[at])]
        elif where == MEMBER:
            which = int(argument[at])
            operand = 1.0 if row[which >> 20] == which & (LEVELS - 1) else 0.0
        else:
            operand = a0
            a0, a1, a2, a3, a4 = a1, a2, a3, a4, a5
        now = binary_value(operation, now, operand)
    return now


@inline_lean
def binary_value(operation: int, now: float, operand: float) -> float:
    """Return an operation of the accumulator and an operand; SUB_FROM and its like have them the other way round."""
    if operation == LOAD:
        return operand
    if operation == MUL:
        return now * operand
    if operation == ADD:
        return now + operand
    if operation == SUB:
        return now - operand
    if operation == SUB_FROM:
        return operand - now
    if operation == DIV:
        return now / operand
    if operation == DIV_INTO:
        return operand / now
    if operation == POW:
        return math.pow(now, operand)
    if operation == POW_OF:
        return math.pow(operand, now)
    if operation == EQ:
        return 1.0 if now == operand else 0.0
    if operation == NE:
        return 1.0 if now != operand else 0.0
    if operation == LT:
        return 1.0 if now < operand else 0.0
    if operation == LE:
        return 1.0 if now <= operand else 0.0
    if operation == GT:
        return 1.0 if now > operand else 0.0
    return 1.0 if now >= operand else 0.0


@inline_lean
def unary_value(operation: int, now: float) -> float:
    """Return a function of the accumulator."""
    if operation == NEG:
        return -now
    if operation == SQUARE:
        return now * now
    if operation == LOG:
        return math.log(now)
    if operation == EXP:
        return math.exp(now)
    if operation == SQRT:
        return math.sqrt(now)
    if operation == LOG1P:
        return math.log1p(now)
    if operation == LOG2:
        return math.log(now) / math.log(2.0)
    if operation == LOG10:
        return math.log10(now)
    if operation == EXPM1:
        return math.expm1(now)
    if operation == ABS:
        return abs(now)
    if operation == SIN:
        return math.sin(now)
    if operation == COS:
        return math.cos(now)
    return math.tanh(now)


@lean
def all_values(programs: Programs, state: Floats, values: Floats) -> None:
    """Write the values of all programs for all records: values[i, c] of the record state[i]."""
    for i in range(len(state)):
        for c in range(len(programs.kind)):
            values[i, c] = program_value(programs, c, state[i])

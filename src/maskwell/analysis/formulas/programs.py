"""Lower expressions on the state to the programs that samplers run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from ...errors import BadPlan
from ..expressions import ONE, Binary, Level, Node, Number, Ref, Unary
from .expression_trees import simplify_node

if TYPE_CHECKING:
    from ...kernels.programs import Programs

Instruction = tuple[str, str, float]  # operation, where its operand is, the operand
_BACKWARDS = {
    "add": "add",
    "mul": "mul",
    "sub": "sub_from",
    "div": "div_into",
    "pow": "pow_of",
    "eq": "eq",
    "ne": "ne",
    "lt": "gt",
    "le": "ge",
    "gt": "lt",
    "ge": "le",
}


def programs_of(nodes: Sequence[Node], numbers: Mapping[str, int]) -> Programs:
    """Lower expressions of state columns; `numbers` has the column of every variable."""
    from ...kernels import programs as kernels

    rows: list[tuple[int, int, int]] = []
    begin, code = [0], list[int]()
    argument: list[float] = []
    for node in map(simplify_node, nodes):
        here = (kernels.GENERAL, 0, 0)
        match node:
            case Level(name, level):
                here = (kernels.LEVEL, numbers[name], level)
            case Ref(name):
                here = (kernels.COLUMN, numbers[name], 0)
            case _ if node == ONE:
                here = (kernels.CONSTANT_ONE, 0, 0)
            case _:
                if _aside(node) > kernels.MOST_ASIDE:
                    raise BadPlan(
                        "A term of the formula is nested too deeply; add it to the file as a column."
                    )
                for operation, where, operand in _instructions(node, numbers, kernels.LEVELS):
                    code.append(getattr(kernels, operation.upper()) * 4 + getattr(kernels, where.upper()))
                    argument.append(operand)
        rows.append(here)
        begin.append(len(code))
    kind, first, second = np.array(rows, np.int64).reshape(-1, 3).T.copy()
    ends = np.array(begin, np.int64), np.array(code, np.int64)
    return kernels.Programs(kind, first, second, *ends, np.array(argument, np.float64))


def _leaf(node: Node, numbers: Mapping[str, int], levels: int) -> tuple[str, float] | None:
    """Return where an operand is and which it is, None for what has to be computed."""
    match node:
        case Number(value):
            return "number", value
        case Ref(name):
            return "variable", float(numbers[name])
        case Level(name, code):
            return "member", float(numbers[name] * levels + code)
        case _:
            return None


def _aside(node: Node) -> int:
    """Return how many values have to be put aside at once; the harder side goes first."""
    match node:
        case Unary(_, of):
            return _aside(of)
        case Binary(_, (Unary() | Binary()) as left, (Unary() | Binary()) as right):
            harder, easier = max(_aside(left), _aside(right)), min(_aside(left), _aside(right))
            return max(harder, easier + 1)
        case Binary(_, left, right):
            return max(_aside(left), _aside(right))
        case _:
            return 0


def _instructions(node: Node, numbers: Mapping[str, int], levels: int) -> Iterator[Instruction]:
    """Yield the instructions that leave the value of an expression in the accumulator."""
    match node:
        case Unary(op, of):
            yield from _instructions(of, numbers, levels)
            yield op, "aside", 0.0
        case Binary("pow", left, Number(0.5 | 2.0 as power)):
            yield from _instructions(left, numbers, levels)
            yield ("square" if power == 2.0 else "sqrt"), "aside", 0.0
        case Binary(op, left, right):
            if (operand := _leaf(right, numbers, levels)) is not None:
                yield from _instructions(left, numbers, levels)
                yield op, *operand
            elif (operand := _leaf(left, numbers, levels)) is not None:
                yield from _instructions(right, numbers, levels)
                yield _BACKWARDS[op], *operand
            else:
                swapped = _aside(left) < _aside(right)
                yield from _instructions(right if swapped else left, numbers, levels)
                yield "put_aside", "aside", 0.0
                yield from _instructions(left if swapped else right, numbers, levels)
                # The side that came first is the operand, so the operation is the other way round.
                yield (op if swapped else _BACKWARDS[op]), "aside", 0.0
        case _:
            operand = _leaf(node, numbers, levels)
            assert operand is not None
            yield "load", *operand

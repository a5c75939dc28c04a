"""Expressions of the columns of a file: small trees that formulas become and that samplers evaluate.

A `Ref` is the true value of a variable in the data's units, whatever scale the sampler keeps it on; `Level` is
1 where a category has that level, else 0. Everything else is arithmetic on these and on numbers.
"""

from __future__ import annotations

from dataclasses import dataclass

UNARY = ("neg", "log", "log1p", "log2", "log10", "sqrt", "exp", "expm1", "abs", "sin", "cos", "tanh")
BINARY = ("add", "sub", "mul", "div", "pow", "eq", "ne", "lt", "le", "gt", "ge")


@dataclass(frozen=True, slots=True)
class Number:
    """A constant."""

    value: float


@dataclass(frozen=True, slots=True)
class Ref:
    """The value of a numeric variable."""

    name: str


@dataclass(frozen=True, slots=True)
class Level:
    """Whether a category has one of its levels (by its code, 0..K-1)."""

    name: str
    code: int


@dataclass(frozen=True, slots=True)
class Unary:
    """One of `UNARY` of a node."""

    op: str
    of: Node


@dataclass(frozen=True, slots=True)
class Binary:
    """One of `BINARY` of two nodes; comparisons give 1 or 0."""

    op: str
    left: Node
    right: Node


Node = Number | Ref | Level | Unary | Binary
ONE = Number(1.0)

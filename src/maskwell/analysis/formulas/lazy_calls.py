"""formulae's deferred calls, with what maskwell needs otherwise.

Labels keep the parentheses that were written (formulae writes (x - 3)**2 as x - 3 ** 2, and takes the two for the
same term); numbers are floats (9**9**9 of whole numbers would never end); numbers can be hashed (formulae's cannot,
which fails for some products of sums); codings accept levels that no record has. Imports formulae: import it late.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from formulae.categorical import CategoricalBox, Sum, Treatment  # type: ignore[import-untyped]
from formulae.resolver import Resolver  # type: ignore[import-untyped]
from formulae.terms import Call, Term  # type: ignore[import-untyped]
from formulae.terms.call_resolver import (  # type: ignore[import-untyped]
    CallResolver,
    LazyCall,
    LazyOperator,
    LazyValue,
)

from .formula_tree import CODINGS

_TIGHTNESS = {"+": 2, "-": 2, "*": 3, "/": 3, "**": 5}
_LOOSEST, _SIGN = 1, 4


def resolve_terms(tree: Any) -> Any:
    """Return what formulae makes of an expression tree: a model, a term, group effects."""
    return _Terms(tree).resolve()


class _Value(LazyValue):  # type: ignore[misc]
    """A number or text as it was written."""

    def __hash__(self) -> int:
        return hash((self.value, self.lexeme))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Value) and (self.value, self.lexeme) == (other.value, other.lexeme)


class _Operator(LazyOperator):  # type: ignore[misc]
    """An operation that is written with the parentheses it needs."""

    def __str__(self) -> str:
        if len(self.args) == 1:
            return f"{self.symbol}{_operand_text(self.args[0], _SIGN)}"
        mine = _TIGHTNESS.get(self.symbol, _LOOSEST)
        # All operators are read from the left, so the right side needs them where it is as loose.
        right = _SIGN if self.symbol == "**" and len(getattr(self.args[1], "args", ())) == 1 else mine + 1
        return f"{_operand_text(self.args[0], mine)} {self.symbol} {_operand_text(self.args[1], right)}"

    def __hash__(self) -> int:
        return hash((self.symbol, *self.args))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Operator) and (self.symbol, self.args) == (other.symbol, other.args)


def _operand_text(part: Any, tightness: int) -> str:
    if isinstance(part, LazyOperator):
        own = _SIGN if len(part.args) == 1 else _TIGHTNESS.get(part.symbol, _LOOSEST)
        if own < tightness:
            return f"({part})"
    return str(part)


class _Call(LazyCall):  # type: ignore[misc]
    """A call that is compared by what is called: formulae compares it with what is no call and fails."""

    def __hash__(self) -> int:
        return hash((self.callee, *self.args, *self.kwargs))

    def __eq__(self, other: object) -> bool:
        mine = (self.callee, self.args, self.kwargs)
        return isinstance(other, LazyCall) and mine == (other.callee, other.args, other.kwargs)


class _CategoryCall(_Call):
    """C, T and S: a category coded for a model, whether all its levels occur or not."""

    def eval(self, data_mask: Any, env: Any) -> Any:
        """Return the category with its contrasts and all its levels; of a number, those of the first evaluation."""
        column = self.args[0].eval(data_mask, env)
        level = _level(self, data_mask, env)
        contrast = {"C": None, "T": Treatment(level), "S": Sum(level)}[self.callee]
        if hasattr(column, "cat"):
            levels, values = column.cat.categories.tolist(), column.to_numpy()
        else:
            values = column.to_numpy()
            if (values == np.rint(values)).all():
                values = values.astype(np.int64)  # labelled C(n)[2], not C(n)[2.0]
            levels = self.__dict__.setdefault("levels", sorted(set(values.tolist())))
        box = CategoricalBox(values, contrast, None)
        box._levels = levels  # the property refuses levels that no record has
        return box


class _Binary(_Call):
    """Whether a column has a value; formulae refuses values that no record has."""

    def eval(self, data_mask: Any, env: Any) -> Any:
        """Return 1 and 0."""
        return np.where(self.args[0].eval(data_mask, env) == _level(self, data_mask, env), 1, 0)


def _level(call: Any, data_mask: Any, env: Any) -> Any:
    """Return the value that a call names beside its column, None without."""
    others = [*call.args[1:], *call.kwargs.values()]
    return others[0].eval(data_mask, env) if others else None


class _Calls(CallResolver):  # type: ignore[misc]
    def visitBinaryExpr(self, expr: Any) -> Any:  # noqa: N802
        kind = self.BINARY_OPERATORS[expr.operator.kind]
        return _Operator(kind, expr.left.accept(self), expr.right.accept(self))

    def visitUnaryExpr(self, expr: Any) -> Any:  # noqa: N802
        return _Operator(self.UNARY_OPERATORS[expr.operator.kind], expr.right.accept(self))

    def visitLiteralExpr(self, expr: Any) -> Any:  # noqa: N802
        if isinstance(expr.value, bool | str):
            return _Value(expr.value, expr.lexeme)
        return _Value(float(expr.value), str(expr.value))

    def visitCallExpr(self, expr: Any) -> Any:  # noqa: N802
        plain = super().visitCallExpr(expr)
        if plain.callee == "poly":
            for value in [*plain.args[1:], *plain.kwargs.values()]:
                value.value = value.value if isinstance(value.value, bool) else int(value.value)
        kind = (
            _CategoryCall
            if plain.callee in CODINGS
            else _Binary
            if plain.callee in ("binary", "B")
            else _Call
        )
        return kind(plain.callee, plain.args, plain.kwargs)


class _Terms(Resolver):  # type: ignore[misc]
    def visitCallExpr(self, expr: Any) -> Any:  # noqa: N802
        return Term(Call(_Calls(expr).resolve()))

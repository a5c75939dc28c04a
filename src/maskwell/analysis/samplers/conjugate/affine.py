"""Expressions that are affine in the unknown numbers, taken apart; and normal noise that leaves nothing to draw.

A column is c(w) + sum over j of d_j(w) x_j, found by walking its expression; (own derivation: sums and products in
which at most one factor holds unknowns). Asked by `conjugate` and `marginal` whether they apply.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

import numpy as np

from ...expressions import ONE, Binary, Node, Number, Ref, Unary
from ...formulas.expression_trees import ZERO, degree, on_state, refs, simplify_node
from ...system import Bools, Equation, Floats, Ints, System


class AffineTerm(NamedTuple):
    """A constant times an expression of what is known."""

    factor: float
    base: Node


class Affine(NamedTuple):
    """A column as a known part plus known multiples of unknown numbers."""

    clean: AffineTerm
    slopes: dict[str, AffineTerm]


def affine(node: Node, names: Collection[str]) -> Affine:
    """Take apart an expression of degree 1 in some variables."""
    clean, slopes = _affine(simplify_node(node), frozenset(names))
    return Affine(_term(clean), {name: _term(slope) for name, slope in slopes.items()})


def _affine(node: Node, names: frozenset[str]) -> tuple[Node, dict[str, Node]]:
    if not refs(node) & names:
        return node, {}
    match node:
        case Ref(name):
            return ZERO, {name: ONE}
        case Unary("neg", of):
            return _times(Number(-1.0), *_affine(of, names))
        case Binary("add" | "sub" as op, left, right):
            first, slopes = _affine(left, names)
            second, others = _affine(right, names)
            both = {
                name: Binary(op, slopes.get(name, ZERO), others.get(name, ZERO))
                for name in {**slopes, **others}
            }
            return Binary(op, first, second), dict(both)
        case Binary("mul", left, right) if not refs(left) & names:
            return _times(left, *_affine(right, names))
        case Binary("mul", left, right):
            return _times(right, *_affine(left, names))
        case Binary("div", left, right) if not refs(right) & names:
            return _times(Binary("div", ONE, right), *_affine(left, names))
        case _:
            raise ValueError("not affine")


def _times(by: Node, clean: Node, slopes: dict[str, Node]) -> tuple[Node, dict[str, Node]]:
    return Binary("mul", by, clean), {name: Binary("mul", by, slope) for name, slope in slopes.items()}


def _term(node: Node) -> AffineTerm:
    match simplify_node(node):
        case Number(value):
            return AffineTerm(value, ONE)
        case Binary("mul", Number(value), base):
            return AffineTerm(value, base)
        case Unary("neg", base):
            return AffineTerm(-1.0, base)
        case other:
            return AffineTerm(1.0, other)


def columns_of(system: System, equation: Equation) -> tuple[Node, ...]:
    """Return an equation's columns on the scale of the state."""
    return tuple(on_state(node, system.variables) for node in equation.columns)


def unknown_names(system: System) -> tuple[str, ...]:
    """Return the names of the variables with unknown cells."""
    return tuple(system.variables[j].name for j in np.flatnonzero(system.unknown.any(axis=0)))


def why_not_linear(system: System) -> str | None:
    """Say why the unknown numbers cannot be integrated out, whatever the family; None if they can."""
    unknown = set(unknown_names(system))
    interest, numbers = system.interest, tuple(unknown_numbers(system))
    if any(variable.is_category for variable in system.variables if variable.name in unknown):
        return "a category is unknown"
    if any(equation.effects or equation.stick is not None for equation in system.equations):
        return "there are group effects"
    if sorted(equation.response for equation in system.equations[:-1]) != sorted(
        j for j in numbers if j != interest.response
    ):
        return "the covariate model is not one equation for each unknown number"
    if any(degree(node, unknown) > 1 for each in system.equations for node in columns_of(system, each)):
        return "a column is not linear in the unknown numbers"
    if interest.offset is not None and refs(interest.offset) & unknown:
        return "the offset is unknown"
    if interest.response in numbers and system.variables[interest.response].log_shift is not None:
        return "the response is unknown and transformed"
    if system.counted is not None and not system.counted.all():
        return "the response is missing in some records"
    if _is_bounded(system):
        return "true values are bounded"
    return _why_not_plain(system)


def _is_bounded(system: System) -> bool:
    sides = [side for side in (system.lower, system.upper) if side is not None]
    return any(bool(np.isfinite(side[system.unknown]).any()) for side in sides)


def unknown_numbers(system: System) -> list[int]:
    """Return which variables are numbers with unknown cells."""
    some = np.flatnonzero(system.unknown.any(axis=0))
    return [int(j) for j in some if not system.variables[j].is_category]


def _why_not_plain(system: System) -> str | None:
    """Say why the noise is more than normal noise on values released as they fell."""
    noise = system.noise
    if noise is None:
        return "there is no noise"
    if not noise.plain:
        return "the noise is not plainly normal"
    arrays, is_open = noise.arrays, noise.arrays.is_open[noise.arrays.pattern]
    for cells in (arrays.slope, arrays.shift, arrays.weight):
        if len(cells) and ((cells != cells[0]) & is_open).any():
            return "the noise differs between records"
    return None


class ReleasedNumbers(NamedTuple):
    """What was released of some records, in units of the state: values, and which of the kinds each record is."""

    values: Floats
    kind: Ints


class NoiseKind(NamedTuple):
    """Which unknown numbers were released for a kind of records, and the covariance of their noise (0: none)."""

    seen: Bools
    covariance: Floats


def released_numbers(system: System) -> tuple[ReleasedNumbers, tuple[NoiseKind, ...]]:
    """Return what was released of the unknown numbers, in the order of the noise's columns, with their noise."""
    noise, arrays = system.noise, system.noise.arrays
    columns = np.asarray(noise.columns)
    unknown = system.unknown[:, columns]
    kinds, kind = _distinct(arrays.pattern, unknown)
    is_open = arrays.is_open[arrays.pattern]
    slope = np.where(is_open, arrays.slope, 1.0)
    values = (arrays.u - arrays.offset - arrays.shift) / slope
    values = np.where(unknown, np.where(is_open, values, 0.0), system.state[:, columns])
    typical = np.where(is_open, arrays.slope, -np.inf).max(axis=0)
    weight = arrays.weight[0]
    found = [_noise_kind(arrays, pattern, hidden, weight, typical) for pattern, hidden in kinds]
    return ReleasedNumbers(values, kind), tuple(found)


def _distinct(pattern: Ints, unknown: Bools) -> tuple[list[tuple[int, Bools]], Ints]:
    """Return the patterns with what is unknown in them that occur, and which one each record has."""
    powers = 2 ** np.arange(unknown.shape[1], dtype=np.int64)
    codes = pattern * (2 * powers[-1]) + unknown @ powers
    _, first, kind = np.unique(codes, return_index=True, return_inverse=True)
    return [(int(pattern[i]), unknown[i]) for i in first], kind


def _noise_kind(arrays: object, pattern: int, unknown: Bools, weight: Floats, slope: Floats) -> NoiseKind:
    turn, is_open = arrays.turn[pattern], arrays.is_open[pattern]  # type: ignore[attr-defined]
    noisy = np.flatnonzero(is_open & unknown)
    covariance = np.zeros((len(unknown), len(unknown)))
    if len(noisy):
        among = np.flatnonzero(is_open)
        whole = np.linalg.inv((turn.T @ (weight[:, None] * turn))[np.ix_(among, among)])
        inside = np.isin(among, noisy)
        scale = np.outer(slope[noisy], slope[noisy])
        covariance[np.ix_(noisy, noisy)] = whole[np.ix_(inside, inside)] / scale
    return NoiseKind(is_open | ~unknown, covariance)

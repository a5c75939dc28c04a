"""Where the coefficients that the compiled loops take lie, and how parameters become them.

coefficients = turn theta + fixed: a linear map, so that gradients go back by its transpose. Made once by `design`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from ...expressions import Node
from ...formulas.expression_trees import on_state
from ...system import Equation, Floats, Ints, System
from .columns import DesignColumn, categories_of, columns_of, latent_values


class CoefficientPlace(NamedTuple):
    """A coefficient: the known column it multiplies, and the parameters (their numbers and shares) it is made of."""

    source: int
    of: dict[int, float]
    fixed: float = 0.0


def parameter_starts(system: System) -> list[int]:
    """Return where the coefficients of each equation begin among all of them: those of interest come first."""
    sizes = [len(equation.names) for equation in system.equations]
    after = np.cumsum([sizes[-1], *sizes[:-1]])
    return [int(start) for start in after[:-1]] + [0]


def lay_out(system: System, nodes: Sequence[Node]) -> tuple[Any, Floats, Floats]:
    """Return the shape of the equations, and the matrix and the constants that make coefficients of parameters."""
    from ....kernels.enumerated_likelihood import EnumerationShape

    categories, starts = categories_of(system), parameter_starts(system)
    places: list[CoefficientPlace] = []
    begin, shift, turn, move = [0], [], [0], list[int]()
    columns = [columns_of(system, equation) for equation in system.equations]
    for equation, own, start in zip(system.equations, columns, starts, strict=True):
        places += _same(system, equation, own, nodes, start)
        begin.append(len(places))
    source = [place.source for place in places]
    variant = np.zeros(0, np.int64)
    for equation, own, start in zip(system.equations, columns, starts, strict=True):
        last = equation is system.interest
        before = categories if last else categories[: categories.index(equation.response)]
        values, variant = _variants(system, own, before, distinct=last)
        moving = list(dict.fromkeys(nodes.index(column.known) for column in own if column.changes))
        shift.append(len(places))
        move += moving
        turn.append(len(move))
        places += _difference_places(own, nodes, values, moving, start)
    levels = [len(system.variables[j].levels) for j in categories]
    arrays = [np.array(each, np.int64) for each in (levels, begin, source, shift, turn, move)]
    shape = EnumerationShape._make([*arrays, variant, system.interest.family])
    return shape, *_matrix(places, sum(len(equation.names) for equation in system.equations))


def _matrix(places: Sequence[CoefficientPlace], size: int) -> tuple[Floats, Floats]:
    turn = np.zeros((len(places), size))
    for row, place in enumerate(places):
        for k, share in place.of.items():
            turn[row, k] += share
    return turn, np.array([place.fixed for place in places])


def _same(
    system: System, equation: Equation, columns: Sequence[DesignColumn], nodes: Sequence[Node], start: int
) -> Iterator[CoefficientPlace]:
    """Yield the coefficients that are the same for all combinations: of known columns, centres, and an offset."""
    for k, column in enumerate(columns):
        if not column.changes:
            share = float(latent_values(system, [column], ())[0, 0])
            yield CoefficientPlace(nodes.index(column.known), {start + k: share})
    if equation.centres:
        yield CoefficientPlace(0, {start + k: -centre for k, centre in enumerate(equation.centres)})
    if equation is system.interest and equation.offset is not None:
        yield CoefficientPlace(nodes.index(on_state(equation.offset, system.variables)), {}, 1.0)


def _variants(
    system: System, columns: Sequence[DesignColumn], before: Sequence[int], *, distinct: bool
) -> tuple[Floats, Ints]:
    """Return what levels give to the columns, variants x columns, and the variant of each combination."""
    values = latent_values(system, columns, before)
    every = np.arange(len(values))
    if not distinct:
        return values, every
    found, variant = (
        np.unique(values, axis=0, return_inverse=True) if len(columns) else (values[:1], 0 * every)
    )
    return found, np.asarray(variant).ravel().astype(np.int64)


def _difference_places(
    columns: Sequence[DesignColumn], nodes: Sequence[Node], values: Floats, moving: Sequence[int], start: int
) -> Iterator[CoefficientPlace]:
    """Yield the differences of each variant, one for each known column that they are multiples of."""
    of = [nodes.index(column.known) if column.changes else -1 for column in columns]
    for row in values:
        for source in moving:
            shares = {start + k: float(row[k]) for k in range(len(columns)) if of[k] == source}
            yield CoefficientPlace(source, shares)

"""Columns of equations whose only unknown variables are categories, taken apart.

A column is a known one times something that the levels of the unknown categories alone decide.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import NamedTuple

import numpy as np

from ...expressions import Node
from ...formulas.expression_trees import evaluate, on_state, refs, split
from ...system import Equation, Floats, Ints, System


class DesignColumn(NamedTuple):
    """A known factor, one of levels, and whether the levels matter."""

    known: Node
    latent: Node
    changes: bool


def categories_of(system: System) -> tuple[int, ...]:
    """Return the predictors with unknown cells, in the order of their equations."""
    responses = [equation.response for equation in system.equations[:-1]]
    return tuple(dict.fromkeys(responses))


def columns_of(system: System, equation: Equation) -> list[DesignColumn]:
    """Take the columns of an equation apart, on the scale of the state."""
    unknown = {system.variables[j].name for j in categories_of(system)}
    found = []
    for node in equation.columns:
        known, latent = split(on_state(node, system.variables), unknown)
        found.append(DesignColumn(known, latent, bool(refs(latent))))
    return found


def combinations_of(system: System, categories: Sequence[int]) -> Ints:
    """Return all combinations of the codes of some categories, combinations x categories, the first slowest."""
    ranges = [range(len(system.variables[j].levels)) for j in categories]
    found = list(product(*ranges))
    return np.array(found, np.int64).reshape(len(found), len(categories))


def latent_values(system: System, columns: Sequence[DesignColumn], categories: Sequence[int]) -> Floats:
    """Return what the levels give to each column, combinations x columns."""
    codes = combinations_of(system, categories).astype(np.float64)
    values = {system.variables[j].name: codes[:, k] for k, j in enumerate(categories)}
    out = np.empty((len(codes), len(columns)))
    for k, column in enumerate(columns):
        out[:, k] = evaluate(column.latent, values) if column.changes else evaluate(column.latent, {})[0]
    return out

"""Slopes of groups on columns far from zero, such as years: drawn about the columns' means, told on their own scale.

With x about its mean m the effects of a group are (b0, b1), on the scale of the data (b0 - m b1, b1): b = T c, and
their covariance is T C T'. The model is the same; what the priors of spreads and correlations are about is not. About
zero they would say that groups differ at the mean by next to nothing, or in their slopes by nothing at all.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from .expressions import ONE, Binary, Number
from .results.draws import Draws
from .system import Effects, Floats, System

FAR = 2.0  # sds that the mean of a column lies from zero


def about_means(system: System) -> tuple[System, tuple[Floats, ...]]:
    """Return the system with slopes of groups about the released means of their columns, and the way back of each set.

    Only numbers far from zero are moved, and only where their groups have an intercept too.
    """
    found = [_centred_effects(system, block) for block in system.interest.effects]
    turns = tuple(turn for _, turn in found)
    if all(_stays(turn) for turn in turns):
        return system, turns
    interest = replace(system.interest, effects=tuple(block for block, _ in found))
    return replace(system, equations=(*system.equations[:-1], interest)), turns


def _centred_effects(system: System, block: Effects) -> tuple[Effects, Floats]:
    from .formulas.expression_trees import evaluate, on_state, simplify_node

    turn, columns = np.eye(len(block.columns)), list(block.columns)
    if ONE not in columns:
        return block, turn
    values = {variable.name: system.state[:, j] for j, variable in enumerate(system.variables)}
    for k, node in enumerate(block.columns):
        column = evaluate(on_state(node, system.variables), values)
        column = column[np.isfinite(column)]
        distinct = len(np.unique(column)) if node != ONE else 1
        if distinct > 2 and abs(column.mean()) > FAR * column.std():
            centre = float(column.mean())
            columns[k] = simplify_node(Binary("sub", node, Number(centre)))
            turn[columns.index(ONE), k] = -centre
    return replace(block, columns=tuple(columns)), turn


def _stays(turn: Floats) -> bool:
    return bool((turn == np.eye(len(turn))).all())


def on_own_scale(draws: Draws, system: System, turns: Sequence[Floats]) -> Draws:
    """Bring the effects of groups, their sds and correlations to the scale of the data."""
    values, effects = draws.values.copy(), list(draws.effects)
    for k, (block, turn) in enumerate(zip(system.interest.effects, turns, strict=True)):
        if _stays(turn):
            continue
        group = system.factors[block.factor].name
        sds = [draws.names.index(f"sd({name}|{group})") for name in block.names]
        pairs = {
            (a, b): draws.names.index(f"cor({block.names[a]},{block.names[b]}|{group})")
            for b in range(len(sds))
            for a in range(b)
        }
        _turn(values, sds, pairs, turn)
        if effects:  # in double precision: an intercept far outside the data takes up what a slope adds
            effects[k] = np.asarray(effects[k], np.float64) @ turn.T
    return replace(draws, values=values, effects=tuple(effects))


def _turn(values: Floats, sds: Sequence[int], pairs: dict[tuple[int, int], int], turn: Floats) -> None:
    """Turn the covariances that sds and correlations stand for, in place."""
    covariance = values[..., sds, None] * values[..., None, sds]
    for (a, b), place in pairs.items():
        covariance[..., a, b] *= values[..., place]
        covariance[..., b, a] = covariance[..., a, b]
    turned = turn @ covariance @ turn.T
    sizes = np.sqrt(np.diagonal(turned, axis1=-2, axis2=-1))
    values[..., sds] = sizes
    for (a, b), place in pairs.items():
        with np.errstate(invalid="ignore"):
            correlation = turned[..., a, b] / (sizes[..., a] * sizes[..., b])
        values[..., place] = np.clip(np.nan_to_num(correlation), -1.0, 1.0)

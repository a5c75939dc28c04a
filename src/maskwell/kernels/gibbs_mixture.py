"""Moves of a mixture's component together with the true values that it implies.

Proposed are another component k' by its weight and true values x' at which the noise has the same place in k' as it had
in k: (z - x' - mean_k') / sd_k' = (z - x - mean_k) / sd_k. The density of the noise and the Jacobian of the move
cancel, so that it is accepted by the ratio of the equations at x' and x: own derivation, a deterministic move as in
Green (1995). Used by `analysis/samplers/gibbs/sweeps` for masks with mixtures, whose components a plain Gibbs step
hardly leaves when they lie apart.
"""

from __future__ import annotations

from math import log, sqrt
from typing import Any

import numpy as np
import numpy.typing as npt

from . import announce
from .equations import Layout, Values, record_log
from .gibbs_records import DrawLimits
from .programs import inner, lean
from .random import categorical_from_logs

announce(__file__)

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


@lean
def flip_components(
    layout: Layout,
    values: Values,
    state: Floats,
    limits: DrawLimits,
    columns: Ints,
    noise: Any,
    room: tuple[Floats, Floats],
    rng: np.random.Generator,
) -> None:
    """Propose, for each record and unit, another component and true values at which the noise keeps its place in it.

    Components that lie apart are not left by drawing one given the true value and the true value given it. A
    component is proposed by its weight; the density of the noise and the Jacobian of the move cancel, so that the
    equations decide. Units along turned axes with sds of their own, sizes that depend on the value and records that
    were swapped are left alone.
    """
    units, (old, logs) = noise.units, room
    for unit in range(len(units.row)):
        if not _can_move(noise, unit, len(columns)):
            continue
        for i in range(len(state)):
            if noise.swapped[i]:
                continue
            for c in range(len(logs)):
                logs[c] = units.logs[unit, c]
            now, chosen = noise.component[i, unit], categorical_from_logs(rng, logs)
            if chosen != now:
                _propose(layout, values, state[i], (i, unit, now, chosen), limits, columns, noise, old, rng)


@inner
def _can_move(noise: Any, unit: int, q: int) -> bool:
    """Whether a unit moves values of plain size, along one column or without changing its sd."""
    units, row = noise.units, noise.units.row[unit]
    for j in range(q):
        if noise.sizes.spread_kind[j] != 0:
            return False
    if row < 0:
        return True
    for k in range(units.precisions.shape[1]):
        if units.logs[unit, k] > -np.inf and units.precisions[unit, k] != units.precisions[unit, 0]:
            for pattern in range(len(noise.turn)):
                for j in range(q):
                    if j != row and noise.turn[pattern, row, j] != 0.0:
                        return False
    return True


@inner
def _propose(
    layout: Layout,
    values: Values,
    row: Floats,
    what: tuple[int, int, int, int],
    limits: DrawLimits,
    columns: Ints,
    noise: Any,
    old: Floats,
    rng: np.random.Generator,
) -> None:
    i, unit, now, chosen = what
    units, ratio, inside = noise.units, 0.0, True
    place = units.row[unit]
    stretch = 1.0 if place < 0 else sqrt(units.precisions[unit, now] / units.precisions[unit, chosen])
    for e in range(len(layout.family)):
        ratio -= record_log(layout, values, e, i, row)
    for j in range(len(columns)):
        old[j] = row[columns[j]]
        by = units.shift[unit, chosen, j] - units.shift[unit, now, j]
        own = stretch if j == place else 1.0
        if (by == 0.0 and own == 1.0) or not noise.is_open[noise.pattern[i], j]:
            continue
        rest = noise.u[i, j] - noise.offset[j]
        within = rest - noise.slope[i, j] * old[j] - noise.shift[i, j]
        row[columns[j]] = (rest - noise.shift[i, j] - by - own * within) / noise.slope[i, j]
        if len(limits.lower) > 0:
            inside = inside and limits.lower[i, columns[j]] <= row[columns[j]] <= limits.upper[i, columns[j]]
    for e in range(len(layout.family)):
        ratio += record_log(layout, values, e, i, row)
    if inside and log(rng.random()) < ratio:
        noise.component[i, unit] = chosen
        for j in range(len(columns)):
            noise.shift[i, j] += units.shift[unit, chosen, j] - units.shift[unit, now, j]
        if place >= 0:
            noise.weight[i, place] = units.precisions[unit, chosen]
    else:
        for j in range(len(columns)):
            row[columns[j]] = old[j]

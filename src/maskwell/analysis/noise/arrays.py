"""The law of the unknown numbers as arrays: what a sampler's loops read, and what they redraw.

    u = slope t + offset - correction + s(t) e,   e ~ Normal(shift, P^-1),   P = M' diag(weight) M

Every additive law is normal given what is drawn beside it: components of mixtures, variances of Laplace noise (Andrews
and Mallows 1974), biases. Filled by `card_arrays`, read by `kernels.gibbs_noise` and by samplers in closed form.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from ...notes import Note
from ..system import Bools, Floats, Ints

PLAIN, STEP, POWER, BIAS, SKEWED = range(5)  # spread_kind
NOTHING, NORMAL, LAPLACE, THETA = range(4)  # scale_kind: what is drawn for each cell beside components


class ArraySizes(NamedTuple):
    """What each column has alone: where its noise is centred, how its size depends on the value, what is drawn."""

    offset: Floats
    spread_kind: Ints
    spread_params: Floats
    log_shift: Floats
    correction: Floats
    laplace_correction: Floats
    scale_kind: Ints
    scale: Floats


class ArrayUnits(NamedTuple):
    """The components of mixtures: a unit is what one is drawn for (a cell, a record, a turned coordinate).

    `row` is the coordinate that a unit's components widen, or -1 where they only shift the noise. `logs` are log
    weights, `peaks` log weights times the densities at the means.
    """

    row: Ints
    logs: Floats
    peaks: Floats
    means: Floats
    precisions: Floats
    shift: Floats
    is_moved: Bools


class Far(NamedTuple):
    """Swapped records: their share, the columns that moved, and a normal law of what they carry for each group."""

    share: float
    moved: Bools
    own_log: Floats
    group: Ints
    mean: Floats
    precision: Floats
    log: Floats


class Arrays(NamedTuple):
    """The noise of n records in q unknown numbers.

    u = slope t + offset - correction + s(t) e, e ~ Normal(shift, P^-1), P = M' diag(weight) M, M = turn[pattern].
    The first six arrays belong to one chain and are redrawn by `kernels.gibbs_noise.refresh`; the others never change.
    `is_open` says which cells of a pattern have a law; u of an `interval` cell lies between its ends.
    """

    u: Floats
    shift: Floats
    weight: Floats
    slope: Floats
    component: Ints
    swapped: Bools
    offset: Floats
    turn: Floats
    pattern: Ints
    is_open: Bools
    cell_lower: Floats
    cell_upper: Floats
    interval: Bools
    busy: Bools
    spread_reference: Floats
    sizes: ArraySizes
    units: ArrayUnits
    far: Far


def smallest() -> Arrays:
    """Return the arrays of one record with plain noise in one column: enough to compile loops with."""
    cell, none, whole = np.ones((1, 1)), np.zeros(1, np.int64), np.zeros(1, np.int64)
    no, closed = np.zeros(1, bool), np.zeros((1, 1), bool)
    nothing = np.ones(1)
    sizes = ArraySizes(
        nothing, none, cell, np.full(1, np.nan), np.zeros((1, 0, 1, 3)), np.zeros(1), none, nothing
    )
    flat = np.zeros((0, 1))
    units = ArrayUnits(none[:0], flat, flat, flat, flat, np.zeros((0, 1, 1)), no[:0])
    far = Far(0.0, no, np.zeros(1), none, cell, np.ones((1, 1, 1)), np.zeros(1))
    component = np.zeros((1, 0), np.int64)
    own = (cell, np.zeros((1, 1)), cell.copy(), cell.copy(), component, no, np.zeros(1))
    cells = (np.ones((1, 1, 1)), whole, ~closed, -cell, cell, closed, no)
    return Arrays(*own, *cells, cell.copy(), sizes, units, far)


@dataclass(frozen=True, slots=True)
class NoiseArrays:
    """The law of the unknown numbers of a release, ready for any number of chains.

    `gaussian[j]` says whether what was released tells of column j by a Gaussian in its state, given what `refresh`
    draws; `plain` that nothing is left to draw at all: normal noise on values released as they fell. `sds` are the
    sds of the noise on the scale of the state (at the released values where they depend on them).
    """

    names: tuple[str, ...]
    columns: Ints
    arrays: Arrays = field(repr=False)
    gaussian: Bools
    sds: Floats
    notes: tuple[Note, ...] = ()

    @property
    def plain(self) -> bool:
        """Whether `refresh` has nothing to do and the law is Gaussian in the state."""
        arrays = self.arrays
        drawn = arrays.busy.any() or len(arrays.units.row) or (arrays.sizes.scale_kind > NORMAL).any()
        return bool(self.gaussian.all()) and not drawn and not arrays.far.moved.any()

    def start(self, rng: np.random.Generator) -> Arrays:
        """Return the arrays of one chain: what is redrawn is its own, and starts somewhere in its cell."""
        arrays = self.arrays
        if self.plain:
            return arrays
        names = ("u", "shift", "weight", "slope", "component", "swapped")
        own = arrays._replace(**{name: getattr(arrays, name).copy() for name in names})
        _place(own, self.sds, rng)
        _choose(own, rng)
        return own


def _place(arrays: Arrays, sds: Floats, rng: np.random.Generator) -> None:
    """Put what is unknown before limits and rounding somewhere in its cell."""
    for j in range(arrays.u.shape[1]):
        here = np.flatnonzero(arrays.interval[:, j])
        lower, upper = arrays.cell_lower[here, j], arrays.cell_upper[here, j]
        inside = np.where(np.isfinite(lower), lower, upper)
        reach = np.where(np.isfinite(lower) & np.isfinite(upper), upper - lower, sds[j])
        away = np.where(np.isfinite(lower), 1.0, -1.0) * reach * rng.uniform(0.05, 0.95, len(here))
        free = np.isinf(lower) & np.isinf(upper)
        arrays.u[here, j] = np.where(free, arrays.u[here, j], inside + away)


def _choose(arrays: Arrays, rng: np.random.Generator) -> None:
    """Draw components from their weights."""
    records, units = len(arrays.u), arrays.units
    for unit, logs in enumerate(units.logs):
        chosen = rng.choice(len(logs), records, p=np.exp(logs) / np.exp(logs).sum())
        arrays.component[:, unit] = chosen
        arrays.shift[:] += units.shift[unit][chosen]
        if units.row[unit] >= 0:
            arrays.weight[:, units.row[unit]] = units.precisions[unit][chosen]

"""From the card of a release to the arrays of the noise on the unknown numbers of a model.

For each column u = slope x + offset + s(x) e with e normal, Laplace or a component of a mixture: what `arrays` holds,
record by record (own derivation), with the cells of units and limits (`cells`), one precision M'M for each pattern of
open columns, and the background of swapped records (`swaps`). Called by `model` when a system is built.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ...card import NoiseCard
from ...laws import (
    Additive,
    JointMixture,
    Laplace,
    Mixture,
    Multiplicative,
    Power,
    RotatedMixture,
    SkewedBias,
    Step,
)
from ...table import Table
from ..system import Bools, Floats, Ints, Variable
from .arrays import (
    BIAS,
    LAPLACE,
    NORMAL,
    NOTHING,
    PLAIN,
    POWER,
    SKEWED,
    STEP,
    THETA,
    Arrays,
    ArraySizes,
    ArrayUnits,
    Far,
    NoiseArrays,
)
from .card_columns import check_fit
from .cells import NoiseCells, cells_of
from .law_parts import LawPart, parts_of, rotated_rows
from .swaps import background, swap_notes

# Of the typical size of the noise: the least at which a reference law takes it. The size at the released value would
# be too small where the truth lies elsewhere, and a slice within it would hardly move.
FLOOR = 3.0


def noise_arrays(
    card: NoiseCard,
    table: Table,
    variables: Sequence[Variable],
    unknown_numbers: Sequence[int],
    *,
    measurement_error: Mapping[str, float] | None = None,
) -> NoiseArrays:
    """Return the law of what was released for the unknown numbers of a model, given their true values.

    `measurement_error` has variances of known errors in the original values of some columns.
    """
    numbers = np.asarray(unknown_numbers, np.int64)
    names = tuple(variables[v].name for v in numbers)
    check_fit(card, table, names)
    parts = parts_of(card, table, names, measurement_error)
    built = _Builder(names, table, parts).built(card, numbers)
    return replace(built, notes=swap_notes(card, variables, built.arrays.far))


class _Builder:
    """The arrays while they are filled, part by part."""

    def __init__(self, names: tuple[str, ...], table: Table, parts: Sequence[LawPart]) -> None:
        self.names, self.table, self.parts = names, table, parts
        shape, q = (len(table), len(names)), len(names)
        self.u, self.shift, self.reference = np.zeros(shape), np.zeros(shape), np.ones(shape)
        self.weight, self.slope = np.ones(shape), np.ones(shape)
        self.lower, self.upper = np.full(shape, -np.inf), np.full(shape, np.inf)
        self.interval, self.has = np.zeros(shape, bool), np.zeros(shape, bool)
        self.offset, self.sds, self.scale = np.zeros(q), np.ones(q), np.ones(q)
        self.log_shift = np.full(q, np.nan)
        self.scale_kind = np.full(q, NOTHING)
        self.spreads: list[tuple[int, list[float]]] = [(PLAIN, [])] * q
        self.corrections: dict[int, list[Any]] = {}
        self.laplace = np.zeros(q)
        self.units: list[dict[str, Any]] = []

    def built(self, card: NoiseCard, numbers: Ints) -> NoiseArrays:
        """Fill everything and return it."""
        for part in self.parts:
            for i, place in enumerate(part.positions):
                cells = cells_of(part.law, self.table, part.names[i])
                self._cells(place, cells)
                self._column(part, i, place, cells)
            self._open_turned(part)
            self._units(part)
        pattern, is_open = _patterns(self.has)
        turn = np.stack([self._turn(open_) for open_ in is_open])
        far = background(card, self.table, self.parts, (self.u, self.has, pattern, is_open, turn))
        arrays = self._arrays(pattern, is_open, turn, far)
        gaussian = np.asarray(arrays.sizes.spread_kind == PLAIN)
        return NoiseArrays(self.names, numbers, arrays, gaussian, self.sds)

    def _cells(self, place: int, cells: NoiseCells) -> None:
        self.u[:, place], self.has[:, place] = cells.point, cells.is_open
        self.lower[:, place], self.upper[:, place] = cells.lower, cells.upper
        self.interval[:, place] = cells.interval
        typical = float(np.median(cells.scale[cells.is_open])) if cells.is_open.any() else 1.0
        varies = bool((cells.scale[cells.is_open] != typical).any())
        self.reference[:, place] = np.maximum(cells.scale, FLOOR * typical) if varies else typical

    def _column(self, part: LawPart, i: int, place: int, cells: NoiseCells) -> None:
        """Fill what one column has alone: slope, offset, how the size of its noise depends on the value."""
        law, j = part.law, part.chosen[i]
        if isinstance(law, SkewedBias):
            self._skewed(part, i, place, cells)
            return
        assert isinstance(law, Additive)
        self.slope[:, place] = law.slope
        self.offset[place] = law.offsets[j] if law.offsets else 0.0
        self.scale_kind[place] = LAPLACE if isinstance(law.noise, Laplace) else NORMAL
        sd = float(np.sqrt(law.noise.covariance[j, j] + part.errors[i]))
        self.scale[place] = sd / np.sqrt(2.0)
        self.sds[place] = sd * float(np.median(self.reference[:, place])) if len(self.table) else sd
        self.weight[:, place] = sd**-2.0 if isinstance(law.noise, Laplace) else 1.0
        spread, log_shift = (law.spreads[j] if law.spreads else None), law.outlets[j].log_shift
        self.log_shift[place] = np.nan if log_shift is None else log_shift
        self.spreads[place] = spread_params(spread)
        if law.mean_corrected and log_shift is not None:
            self._correct(law, j, place, spread)

    def _skewed(self, part: LawPart, i: int, place: int, cells: NoiseCells) -> None:
        """A lognormal bias: drawn as the slope of each record, or integrated out where that would hardly move."""
        law, sd = part.law, part.law.sds[part.chosen[i]]
        values = cells.point[cells.is_open]
        typical = float(np.sqrt(np.mean(values**2))) if len(values) else 0.0
        self.sds[place] = float(np.hypot(sd, law.bias_sd * typical)) or 1.0
        log_sd = float(np.sqrt(np.log1p(law.bias_sd**2)))
        self.scale[place] = log_sd
        if part.is_direct(i, typical):
            self.scale_kind[place], self.spreads[place] = NORMAL, (SKEWED, [law.bias_sd, sd])
            size = np.hypot(sd, law.bias_sd * self.u[:, place])
            self.reference[:, place] = np.maximum(size, FLOOR * self.sds[place])
        else:
            self.scale_kind[place] = THETA if law.bias_sd > 0 else NORMAL

    def _correct(self, law: Additive, j: int, place: int, spread: Any) -> None:
        """Take the bias of noise on the log scale away: a constant, unless the size depends on the value."""
        if spread is None:
            self.offset[place] -= float(law.noise.log_mean_exp(j, np.ones(1))[0])
        elif isinstance(law.noise, Laplace):
            self.laplace[place] = law.noise.sds[j] ** 2 / 2
        else:
            self.corrections[place] = _exponents(law.noise, j)

    def _open_turned(self, part: LawPart) -> None:
        """Where some columns of a turned mixture are closed, their noised values are drawn with the rest."""
        if not part.is_turned:
            return
        places = list(part.positions)
        some = self.has[:, places].any(axis=1)
        for place in places:
            here = some & ~self.has[:, place]
            seen = self.u[self.has[:, place], place]
            self.u[here, place] = np.median(seen) if len(seen) else 0.0
            self.has[here, place] = self.interval[here, place] = True

    def _units(self, part: LawPart) -> None:
        """List what components are drawn for."""
        noise, q = part.law.noise if isinstance(part.law, Additive) else None, len(self.names)
        if isinstance(noise, Mixture):
            for j, place in zip(part.chosen, part.positions, strict=True):
                shift = np.zeros((len(noise.weights), q))
                shift[:, place] = noise.means[j]
                self._unit(part, place, shift, noise.means[j], noise.sds[j])
        elif isinstance(noise, JointMixture):
            shift = np.zeros((len(noise.weights), q))
            shift[:, list(part.positions)] = noise.means[:, list(part.chosen)]
            self._unit(part, -1, shift)
        elif isinstance(noise, RotatedMixture):
            rows = rotated_rows(noise)[list(part.chosen)]
            for r in range(rows.shape[1]):
                shift = np.zeros((len(noise.weights), q))
                shift[:, list(part.positions)] = np.outer(noise.unit_means, rows[:, r])
                row = part.positions[r] if part.is_turned else -1
                self._unit(part, row, shift, noise.unit_means, noise.unit_sds)

    def _unit(self, part: LawPart, row: int, shift: Floats, means: Any = (), sds: Any = ()) -> None:
        with np.errstate(divide="ignore"):
            logs = np.log(np.array(part.law.noise.weights))
        unit = {"row": row, "logs": logs, "means": means, "sds": sds, "shift": shift}
        self.units.append({**unit, "places": part.positions})

    def _turn(self, open_: Bools) -> Floats:
        """Return M of the records with some open columns."""
        turn = np.zeros((len(open_), len(open_)))
        for part in self.parts:
            kept = [i for i, place in enumerate(part.positions) if open_[place]]
            kept = [i for i in kept if self.spreads[part.positions[i]][0] != SKEWED]
            if kept:
                places = [part.positions[i] for i in kept]
                turn[np.ix_(places, places)] = part.root(kept)
        return turn

    def _arrays(self, pattern: Ints, is_open: Bools, turn: Floats, far: Far) -> Arrays:
        records = len(self.table)
        return Arrays(
            u=self.u,
            shift=self.shift,
            weight=self.weight,
            slope=self.slope,
            component=np.zeros((records, len(self.units)), np.int64),
            swapped=np.zeros(records, bool),
            offset=self.offset,
            turn=turn,
            pattern=pattern,
            is_open=is_open,
            cell_lower=self.lower,
            cell_upper=self.upper,
            interval=self.interval,
            busy=np.asarray(self.interval.any(axis=1)),
            spread_reference=self.reference,
            sizes=self._sizes(),
            units=_array_units(self.units, far.moved),
            far=far,
        )

    def _sizes(self) -> ArraySizes:
        params = np.zeros((len(self.names), max([len(values) for _, values in self.spreads] + [1])))
        for j, (_, values) in enumerate(self.spreads):
            params[j, : len(values)] = values
        return ArraySizes(
            offset=self.offset,
            spread_kind=np.array([kind for kind, _ in self.spreads], np.int64),
            spread_params=params,
            log_shift=self.log_shift,
            correction=_padded_corrections(self.corrections, len(self.names)),
            laplace_correction=self.laplace,
            scale_kind=self.scale_kind.astype(np.int64),
            scale=self.scale,
        )


def spread_params(spread: Any) -> tuple[int, list[float]]:
    """Return how the size of the noise depends on the value, as numbers."""
    if isinstance(spread, Step):
        return STEP, [float(len(spread.breaks)), *spread.breaks, *spread.ratios]
    if isinstance(spread, Power):
        return POWER, [spread.exponent, spread.floor]
    if isinstance(spread, Multiplicative):
        return BIAS, [spread.bias_sd, spread.sd]
    return PLAIN, []


def _exponents(noise: Any, j: int) -> list[Any]:
    """Return units x components of (log weight, mean, variance), whose log mean exponentials sum to the correction."""
    if isinstance(noise, JointMixture):
        noise, j = noise.flat(j), 0
    if isinstance(noise, Mixture):
        return [_triples(noise.weights, np.array(noise.means[j]), np.array(noise.sds[j]))]
    if isinstance(noise, RotatedMixture):
        means, sds = np.array(noise.unit_means), np.array(noise.unit_sds)
        return [_triples(noise.weights, turn * means, turn * sds) for turn in rotated_rows(noise)[j]]
    return [_triples((1.0,), np.zeros(1), np.array([noise.sds[j]]))]


def _triples(weights: Any, means: Floats, sds: Floats) -> Floats:
    with np.errstate(divide="ignore"):
        return np.column_stack([np.log(np.array(weights)), means, sds**2])


def _padded_corrections(corrections: Mapping[int, list[Any]], q: int) -> Floats:
    """Return columns x units x components x 3; a column without a correction has no unit (log weights of nan)."""
    units = max([len(listed) for listed in corrections.values()] + [0])
    components = max([len(unit) for listed in corrections.values() for unit in listed] + [1])
    out = np.zeros((q, units, components, 3))
    out[:, :, :, 0] = -np.inf
    out[:, :, 0, 0] = 0.0
    for j, listed in corrections.items():
        for r, unit in enumerate(listed):
            out[j, r, : len(unit)] = unit
    return out


def _array_units(units: Sequence[Mapping[str, Any]], moved: Bools) -> ArrayUnits:
    """Return the units as arrays, padded with components that never come."""
    most = max([len(unit["logs"]) for unit in units] + [1])
    logs, shift = np.full((len(units), most), -np.inf), np.zeros((len(units), most, len(moved)))
    means, sds = np.zeros((len(units), most)), np.ones((len(units), most))
    for r, unit in enumerate(units):
        count = len(unit["logs"])
        logs[r, :count], shift[r, :count] = unit["logs"], unit["shift"]
        if unit["row"] >= 0:
            means[r, :count], sds[r, :count] = unit["means"], unit["sds"]
    rows = np.array([unit["row"] for unit in units], np.int64)
    is_moved = np.array([moved[list(unit["places"])].any() for unit in units], bool)
    return ArrayUnits(rows, logs, logs - np.log(sds), means, sds**-2.0, shift, is_moved)


def _patterns(has: Bools) -> tuple[Ints, Bools]:
    """Number the records by which of their cells have a law, and return those cells of each number."""
    if not len(has) or bool((has == has[0]).all()):
        return np.zeros(len(has), np.int64), has[:1].copy() if len(has) else np.ones((1, has.shape[1]), bool)
    packed = np.packbits(has, axis=1)
    member = np.zeros(len(has), np.int64)
    for byte in packed.T:  # numbers stay below the count of patterns, so that they never overflow
        member = np.unique(member * 256 + byte, return_inverse=True)[1].ravel()
    first = np.unique(member, return_index=True)[1]
    return member.astype(np.int64), has[first].copy()

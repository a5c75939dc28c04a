"""What a noise card tells an intruder about some fields: where the noise centres a value, and its covariance.

z = slope y + offset + noise; a unit u adds u^2 / 12 to a variance (Sheppard 1898). Noise whose size depends on the
value has its mean square: for z = theta x + e it follows from E z^2 = (1 + b^2) E x^2 + s^2. Own derivation: a distance
has one covariance for all records, so that averages stand where the law has more. Read by `distances` for all that
need the card.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from ...card import NoiseCard
from ...errors import NoLaw, raise_all
from ...laws import Additive, SkewedBias
from ...laws.chain import combined_of
from ...laws.spread import Multiplicative
from ...masking.totals import in_order
from ...notes import Note
from ...table import Floats, Table
from ..pair_density import laws_on

REMEDY = "leave it out of fields, or take distance 'euclid'"


@dataclass(frozen=True, slots=True)
class CardNoise:
    """The noise of some fields: z = slope y + offset + noise, where y and z are on the scale the noise is added on.

    That scale is log(value + log_shift) for fields that have a log_shift. `covariance` is that of the noise,
    fields x fields; `rounding` what the released unit adds to each variance (nothing to whole numbers without noise,
    which left as they were); `least` the least value a logarithm is taken of. `notes` say where these are averages.
    """

    slope: Floats
    offset: Floats
    covariance: Floats
    rounding: Floats
    log_shifts: tuple[float | None, ...]
    least: Floats
    notes: tuple[Note, ...] = ()

    def entered(self, values: Floats, chosen: Sequence[int]) -> Floats:
        """Put values (records x chosen fields) on the scale on which the noise is added."""
        if not any(self.log_shifts[j] is not None for j in chosen):
            return values
        out = np.array(values, order="F")
        for i, j in enumerate(chosen):
            shift = self.log_shifts[j]
            if shift is not None:
                out[:, i] = np.log(np.maximum(out[:, i] + shift, self.least[j]))
        return out


def card_noise(card: NoiseCard, fields: Sequence[str], released: Table) -> CardNoise:
    """Read the noise of some fields off a card; refuse what has none that a distance could be whitened by."""
    if not card.laws:
        raise NoLaw(
            "the release has no noise law, which this distance works by: give its card, "
            "or take distance 'euclid' or 'release'"
        )
    columns = _with_parts(card, fields)
    raise_all(_problems(card, columns), NoLaw)
    known = _of_laws(card, columns, released)
    for total, parts in in_order(card.recomputed):
        if total in known.places:
            known.add_sum(total, parts)
    return known.of(fields, released)


def _with_parts(card: NoiseCard, fields: Sequence[str]) -> list[str]:
    """Return the fields, and after them the parts of those that are sums, and the parts of parts."""
    columns, sums = list(fields), dict(card.recomputed)
    for name in columns:
        columns += [part for part, _ in sums.get(name, ()) if part not in columns]
    return columns


def _problems(card: NoiseCard, columns: Sequence[str]) -> list[str]:
    found = []
    for name in columns:
        law = card.law_of(name)
        if law is not None and not isinstance(combined_of(law), Additive | SkewedBias):
            found.append(f"{law.form} of {name!r} has no noise covariance: {REMEDY}")
    return found


@dataclass(slots=True)
class _NoiseCollector:
    """The noise of columns while it is collected."""

    places: dict[str, int]
    slope: Floats
    offset: Floats
    covariance: Floats
    log_shifts: list[float | None]
    units: list[Fraction | None]
    notes: list[Note]

    def add_law(self, law: Any, released: Table) -> None:
        """Take in what a law says."""
        at = [self.places[name] for name in law.columns]
        scales = np.array([_scale(law, j, released) for j in range(len(at))])
        self.covariance[np.ix_(at, at)] = np.outer(scales, scales) * _unscaled_covariance(law)
        for j, (place, outlet) in enumerate(zip(at, law.outlets, strict=True)):
            self.log_shifts[place], self.units[place] = outlet.log_shift, outlet.unit
            self.slope[place] = law.slope if isinstance(law, Additive) else 1.0
            self.offset[place] = _offset(law, j, scales[j])
        varying = tuple(name for j, name in enumerate(law.columns) if _varies(law, j))
        if varying:
            self.notes.append(Note("attacks.varying_noise", {"columns": varying}))

    def add_sum(self, total: str, parts: Sequence[tuple[str, float]]) -> None:
        """Take in a column that is computed anew from others: its noise is the sum of theirs."""
        at = [self.places[name] for name, _ in parts]
        weights, place = np.array([weight for _, weight in parts]), self.places[total]
        slopes = {float(self.slope[i]) for i in at}
        if len(slopes) > 1 or any(self.log_shifts[i] is not None for i in at):
            raise NoLaw(f"the noise of {total!r}, a sum of others, has no covariance of its own: {REMEDY}")
        row = weights @ self.covariance[at]
        self.covariance[place], self.covariance[:, place] = row, row
        self.covariance[place, place] = weights @ self.covariance[np.ix_(at, at)] @ weights
        self.slope[place], self.offset[place] = slopes.pop(), weights @ self.offset[at]

    def of(self, fields: Sequence[str], released: Table) -> CardNoise:
        """Return the noise of the fields alone."""
        at = [self.places[name] for name in fields]
        shifts = tuple(self.log_shifts[i] for i in at)
        seen = [_shifted_values(released, name, shift) for name, shift in zip(fields, shifts, strict=True)]
        exact = [
            self.covariance[i, i] == 0 and released.schema[name].kind == "integer"
            for name, i in self.places.items()
        ]
        units = [None if exact[i] else self.units[i] for i in at]
        least = np.array([_least(*both) for both in zip(seen, units, strict=True)])
        rounding = [_rounding_variance(*both) for both in zip(seen, units, shifts, least, strict=True)]
        return CardNoise(
            self.slope[at],
            self.offset[at],
            self.covariance[np.ix_(at, at)],
            np.array(rounding),
            shifts,
            least,
            tuple(self.notes),
        )


def _of_laws(card: NoiseCard, columns: Sequence[str], released: Table) -> _NoiseCollector:
    """Collect the laws of columns; those without one left as they were, on their unit."""
    count = len(columns)
    units = [released.schema[name].step for name in columns]
    places = {name: i for i, name in enumerate(columns)}
    known = _NoiseCollector(
        places, np.ones(count), np.zeros(count), np.zeros((count, count)), [None] * count, units, []
    )
    for law in laws_on(card, columns):
        known.add_law(law, released)
    return known


def _varies(law: Any, j: int) -> bool:
    return isinstance(law, SkewedBias) or bool(law.spreads and law.spreads[j] is not None)


def _scale(law: Any, j: int, released: Table) -> float:
    """Return by what the noise of a column is multiplied: in the mean square, over the released values.

    Of multiplicative noise, z = theta x + e, the mean square of the true values follows: E z^2 = (1 + b^2) E x^2 + s^2.
    """
    if not _varies(law, j):
        return 1.0
    values = released.floats(law.columns[j])
    values = values[~np.isnan(values)]
    if isinstance(law, SkewedBias):
        squares = (law.sds[j] ** 2 + (law.bias_sd * values) ** 2) / (1 + law.bias_sd**2)
    else:
        squares = law.spreads[j].factor(values) ** 2
        if isinstance(law.spreads[j], Multiplicative):
            squares /= 1 + law.spreads[j].bias_sd ** 2
    return float(np.sqrt(squares.mean())) if len(values) else 0.0


def _unscaled_covariance(law: Any) -> Floats:
    return np.eye(len(law.columns)) if isinstance(law, SkewedBias) else np.asarray(law.noise.covariance)


def _offset(law: Any, j: int, scale: float) -> float:
    if isinstance(law, SkewedBias):
        return 0.0
    offset = law.offsets[j] if law.offsets else 0.0
    if law.mean_corrected and law.outlets[j].log_shift is not None:
        offset -= float(law.noise.log_mean_exp(j, np.array([scale]))[0])
    return float(offset)


def _shifted_values(released: Table, name: str, shift: float | None) -> Floats:
    """Return the open released values, shifted."""
    values = released.floats(name)
    return np.asarray(values[~np.isnan(values)] + (shift or 0.0))


def _least(shifted: Floats, unit: Fraction | None) -> float:
    """Return the least value a logarithm is taken of: rounding can bring a released value to zero."""
    if unit is not None:
        return float(unit) / 4
    positive = shifted[shifted > 0]
    return float(positive.min()) / 2 if len(positive) else 1.0


def _rounding_variance(shifted: Floats, unit: Fraction | None, shift: float | None, least: float) -> float:
    """Return the variance that the released unit adds, on the scale on which the noise is added."""
    if unit is None or not len(shifted):
        return 0.0
    local = 1.0 if shift is None else float((1.0 / np.maximum(shifted, 2 * least) ** 2).mean())
    return float(unit) ** 2 / 12 * local

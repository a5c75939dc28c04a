"""What a card says of the noise of some columns, in the terms of moments: mean, covariance and fresh draws.

Corrections need noise whose mean is 0 given the true value (or known to be undone) and whose covariance is known. That
fails at limits and codes, which cut the noise off; on coarse units, where rounding depends on the value; on logs,
categories and exchanges. Such columns are refused here, all at once. A unit up to the noise's sd is fine: by the
characteristic function its error has then mean 0 to 1e-8 of the unit and the variance unit^2 / 12 (Sheppard 1898),
which is added. Noise that grows with the value as sd^2 + bias_sd^2 x^2 has the unbiased estimate (sd^2 + bias_sd^2 z^2)
/ (1 + bias_sd^2) for each record, which serves the moment correction; other steps and powers have none.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from ...card import NoiseCard
from ...errors import BadPlan, MomentRefusal, NoLaw, NoMoments, raise_all
from ...keys import Stream
from ...laws import (
    Additive,
    Laplace,
    Mixture,
    Multiplicative,
    Normal,
    Outlet,
    RankSwapped,
    SkewedBias,
    Transition,
)
from ...laws.chain import combined_of
from ...laws.mixture import JointMixture, RotatedMixture
from ...laws.noise import scaled_root
from ...laws.unknowns import of_columns, spread_of
from ...schema import BOTTOM_CODED, TOP_CODED
from ...table import Table
from ..system import Floats
from .problem import Draw

COARSE_LAPLACE = 0.25  # units beyond this share of the sd: the kink of the density shows
COARSE_CLEAN = 0.25  # units beyond this share of a column's sd take more than half a percent of its variance


@dataclass(frozen=True, slots=True)
class MomentPart:
    """The law of some noised columns, alone: what is undone (slope, offsets) and the moments of what is left.

    `whole` is the law with all its columns, of which these are the `chosen` ones: noise is drawn for all.
    """

    law: Additive | SkewedBias = field(repr=False)
    whole: Additive | SkewedBias = field(repr=False)
    chosen: tuple[int, ...]
    slope: float
    offsets: Floats
    units: Floats

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of the model that the law speaks of."""
        return self.law.columns

    @property
    def biases(self) -> Floats:
        """For each column the sd of its multiplicative bias (0: the noise does not depend on the value)."""
        if isinstance(self.law, SkewedBias):
            return np.full(len(self.columns), self.law.bias_sd)
        spreads = [spread_of(self.law, j) for j in range(len(self.columns))]
        sds = np.sqrt(np.diag(self.law.noise.covariance))
        given = zip(spreads, sds, strict=True)
        bias_sds = [sd * s.bias_sd if isinstance(s, Multiplicative) else 0.0 for s, sd in given]
        return np.array(bias_sds) / self.slope

    @property
    def covariance(self) -> Floats:
        """The covariance of the noise that does not depend on the value, on the scale of the true values."""
        if isinstance(self.law, SkewedBias):
            fixed = np.diag(np.square(self.law.sds))
        else:
            sizes = [_size(spread_of(self.law, j)) for j in range(len(self.columns))]
            fixed = self.law.noise.covariance * np.outer(sizes, sizes)
        return np.asarray((fixed + np.diag(self.units**2 / 12)) / self.slope**2)

    @property
    def is_normal(self) -> bool:
        """Whether the noise is normal, the same for every value."""
        return (
            isinstance(self.law, Additive)
            and isinstance(self.law.noise, Normal)
            and not any(self.law.spreads)
        )

    def drawn(self, x: Floats, stream: Stream) -> Floats:
        """Draw the noise of true values, on their scale and less its mean, before limits and units."""
        if isinstance(self.whole, SkewedBias) or isinstance(self.law, SkewedBias):
            free = replace(self.law, outlets=(Outlet(),) * len(self.columns))
            return np.asarray(free.draw(x, stream) - x)
        noise = self.whole.noise.draw(stream, self.whole.columns)[:, self.chosen] - noise_mean(self.law.noise)
        for j in range(len(self.columns)):
            spread = spread_of(self.law, j)
            if spread is not None:
                noise[:, j] *= spread.factor(x[:, j])
        return np.asarray(noise / self.slope)


@dataclass(frozen=True, slots=True)
class NoiseOfColumns:
    """The noised ones among the columns of a model, their laws, and the variances of further errors of measurement."""

    parts: tuple[MomentPart, ...] = ()
    errors: tuple[tuple[str, float], ...] = ()

    @property
    def columns(self) -> tuple[str, ...]:
        """The noised columns in the order of the covariance."""
        named = [name for part in self.parts for name in part.columns]
        return (*named, *(name for name, _ in self.errors if name not in named))

    @property
    def depends_on_value(self) -> bool:
        """Whether the size of some noise depends on the true value."""
        return any(part.biases.any() for part in self.parts)

    def undone(self, name: str, values: Floats) -> Floats:
        """Return released values with the slope and the mean of their noise undone."""
        for part in self.parts:
            if name in part.columns:
                return np.asarray((values - part.offsets[part.columns.index(name)]) / part.slope)
        return values

    def covariance(self, values: Floats) -> Floats:
        """Return the covariance of the noise: one for all records, or one each where it depends on the value."""
        fixed, biases = np.zeros((len(self.columns),) * 2), np.zeros(len(self.columns))
        for part in self.parts:
            at = [self.columns.index(name) for name in part.columns]
            fixed[np.ix_(at, at)] = part.covariance
            biases[at] = part.biases
        for name, variance in self.errors:
            at_one = self.columns.index(name)
            fixed[at_one, at_one] += variance * (1 + biases[at_one] ** 2)
        if not biases.any():
            return fixed
        out, diagonal = np.repeat(fixed[None], len(values), axis=0), np.arange(len(fixed))
        out[:, diagonal, diagonal] = (np.diag(fixed) + biases**2 * values**2) / (1 + biases**2)
        return out

    def drawer(self, count: int, seed: int) -> Draw | None:
        """Return how fresh noise is drawn, on the scale of the true values; None where it depends on them."""
        if self.depends_on_value:
            return None

        def draw(number: int) -> Floats:
            return self.drawn(np.zeros((count, len(self.columns))), seed, number)

        return draw

    def drawn(self, x: Floats, seed: int, number: int) -> Floats:
        """Draw the noise of true values, on their scale."""
        from ...keys import Key, ids_from_numbers

        rng, out = np.random.default_rng([seed, number]), np.zeros(x.shape)
        stream = Stream(Key.from_seed(seed), "corrections", str(number), ids_from_numbers(len(x)))
        for part in self.parts:
            at = [self.columns.index(name) for name in part.columns]
            noise = part.drawn(x[:, at], stream)
            out[:, at] = noise + part.units / part.slope * (rng.random(noise.shape) - 0.5)
        for name, variance in self.errors:
            out[:, self.columns.index(name)] += np.sqrt(variance) * rng.standard_normal(len(x))
        return out


def _size(spread: Any) -> float:
    return 1.0 if spread is None else float(spread.sd)


def noise_mean(noise: Any) -> Floats:
    """Return the mean of the noise of each column: 0 but for mixtures whose components do not balance."""
    if isinstance(noise, Mixture):
        return np.asarray(np.array(noise.means) @ np.array(noise.weights))
    if isinstance(noise, JointMixture):
        return np.asarray(np.array(noise.weights) @ noise.means)
    if isinstance(noise, RotatedMixture):
        unit = float(np.dot(noise.weights, noise.unit_means))
        turned = unit * scaled_root(noise.sds, noise.correlations).sum(axis=1)
        return np.asarray(turned[list(noise.chosen)] if noise.chosen else turned)
    return np.zeros(noise.width)


def rank_reason(name: str) -> str:
    """Say that a column was swapped by rank."""
    return f"column {name!r} was swapped by rank"


def noised_columns(
    card: NoiseCard,
    table: Table,
    names: Sequence[str],
    errors: Mapping[str, float] | None,
    *,
    released: bool = True,
) -> NoiseOfColumns:
    """Read the noise of the columns of a model from a card, refusing all that no correction is valid for.

    `released` says that the table holds released values, so that those at limits can be seen; for a planned release
    they cannot, and limits are not looked at.
    """
    problems, parts = list[MomentRefusal](), list[MomentPart]()
    for law in card.laws:
        combined = combined_of(law)
        chosen = [j for j, name in enumerate(law.columns) if name in names]
        if not chosen or (isinstance(combined, Transition) and _is_seen(combined, released)):
            continue
        found = _law_problems(combined, chosen)
        problems += found
        if not found:
            parts += _parts(combined, chosen)
    if released:
        problems += [one for name in names for one in _cell_problems(table, name)]
        problems += [one for part in parts for one in _limit_problems(part, table)]
    problems += [one for part in parts for one in _unit_problems(part, table)]
    problems += _card_problems(card, names)
    if problems:
        raise NoMoments(tuple(dict.fromkeys(problems)))
    noisy = tuple(part for part in parts if not _only_rounds(part))
    return NoiseOfColumns(noisy, _checked_errors(errors, names))


def _is_seen(law: Transition, released: bool) -> bool:
    """Whether categories are known: grouped ones are in a release, whose model is one of the groups."""
    return law.is_sure and (released or law.true == law.released_as)


def _law_problems(law: Any, chosen: Sequence[int]) -> list[MomentRefusal]:
    """Return why a law has no moments to correct by, for the columns of the model."""
    named = [law.columns[j] for j in chosen]
    if isinstance(law, RankSwapped):
        raise NoLaw(f"{rank_reason(named[0])}: there is no law to correct by, nor is any for fit(...)")
    if isinstance(law, SkewedBias):
        return []
    if not isinstance(law, Additive) or law.categories:
        return [
            _refusal(name, "is a category that was changed at random or put in classes") for name in named
        ]
    found = []
    for j in chosen:
        spread = spread_of(law, j)
        if law.outlets[j].log_shift is not None:
            found.append(_refusal(law.columns[j], "has noise on the log scale"))
        elif spread is not None and not isinstance(spread, Multiplicative):
            found.append(_refusal(law.columns[j], "has noise whose size depends on the true value"))
        elif isinstance(spread, Multiplicative) and _is_correlated(law, j):
            found.append(
                _refusal(law.columns[j], "has noise that is correlated and depends on the true value")
            )
    return found


def _is_correlated(law: Additive, j: int) -> bool:
    row = law.noise.covariance[j].copy()
    row[j] = 0.0
    return bool(row.any())


def _refusal(name: str, why: str) -> MomentRefusal:
    return MomentRefusal(
        f"column {name!r} {why}", ", which moments cannot undo: use fit alone, which models it"
    )


def _parts(law: Additive | SkewedBias, chosen: Sequence[int]) -> list[MomentPart]:
    alone = of_columns(law, chosen)
    units = np.array([float(outlet.unit or 0.0) for outlet in alone.outlets])
    both = alone, law, tuple(chosen)
    if isinstance(alone, SkewedBias):
        return [MomentPart(*both, 1.0, np.zeros(len(chosen)), units)]
    offsets = np.array(alone.offsets or (0.0,) * len(chosen)) + noise_mean(alone.noise)
    return [MomentPart(*both, alone.slope, offsets, units)]


def _cell_problems(table: Table, name: str) -> list[MomentRefusal]:
    coded = np.isin(table.status(name), (TOP_CODED, BOTTOM_CODED))
    if not coded.any():
        return []
    return [_refusal(name, "has top- or bottom-coded cells")]


def _limit_problems(part: MomentPart, table: Table) -> list[MomentRefusal]:
    """Refuse columns that were cut off: released values stand at a limit."""
    found = []
    for name, outlet in zip(part.columns, part.law.outlets, strict=True):
        values = table.floats(name)
        low = outlet.low is not None and bool((values <= outlet.low).any())
        high = outlet.high is not None and bool((values >= outlet.high).any())
        if low or high:
            found.append(_refusal(name, "has values that were clamped at a limit"))
    return found


def _unit_problems(part: MomentPart, table: Table) -> list[MomentRefusal]:
    """Refuse units that are coarse against the noise, or, without noise, against the column."""
    found, fine = [], _resolution(part)
    for j, (name, unit) in enumerate(zip(part.columns, part.units, strict=True)):
        allowed = fine[j]
        if fine[j] == 0.0:
            values = table.floats(name)
            allowed = COARSE_CLEAN * float(np.nanstd(values))
        if unit > allowed:
            found.append(_refusal(name, "was rounded to a unit that is coarse against its noise"))
    return found


def _resolution(part: MomentPart) -> Floats:
    """Return up to which unit the rounding of each column is itself like noise."""
    law = part.law
    if isinstance(law, SkewedBias):
        return np.array(law.sds)
    if isinstance(law.noise, Laplace):
        return COARSE_LAPLACE * np.array(law.noise.sds)
    sizes = [_size(spread_of(law, j)) for j in range(len(part.columns))]
    return np.asarray(law.noise.resolution * sizes)


def _only_rounds(part: MomentPart) -> bool:
    law = part.law
    return isinstance(law, Additive) and not law.noise.covariance.any()


def _card_problems(card: NoiseCard, names: Sequence[str]) -> list[MomentRefusal]:
    """Return what the card says of columns beside their laws: totals of noised parts, and exchanges."""
    found = [
        MomentRefusal(
            f"column {total!r} was computed anew from {', '.join(dict(parts))}",
            ": write the parts in the formula instead",
        )
        for total, parts in card.recomputed
        if total in names
    ]
    if card.swapped is not None and card.swapped.share > 0:
        found += [
            _refusal(name, "was exchanged between records") for name in card.swapped.columns if name in names
        ]
    return found


def _checked_errors(
    errors: Mapping[str, float] | None, names: Sequence[str]
) -> tuple[tuple[str, float], ...]:
    """Check the variances of errors of measurement that the original values had."""
    if not isinstance(errors, Mapping | None):
        raise BadPlan("measurement_error is a mapping of columns to variances, such as {'x1': 0.2}")
    given = dict(errors or {})
    problems = [
        f"measurement_error has {name!r}, which is no column of the formula: leave it out"
        for name in given
        if name not in names
    ]
    problems += [
        f"measurement_error of {name!r} is a variance: give a finite number of at least 0"
        for name, variance in given.items()
        if not isinstance(variance, int | float) or not 0 <= variance < np.inf
    ]
    raise_all(problems, BadPlan)
    return tuple((name, float(variance)) for name, variance in given.items() if variance > 0)

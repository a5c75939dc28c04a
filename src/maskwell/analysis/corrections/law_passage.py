"""How true values pass through the laws of a card, limits, units and all: drawn, and as a density p(z | x).

Read for `information`, which needs both: draws of z given x and log p(z | x), with slopes and means of the noise taken
off for proposals. No formula of its own: all are those of `laws`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...card import NoiseCard
from ...errors import BadPlan, raise_all
from ...keys import Key, Stream, ids_from_numbers
from ...laws import Additive, SkewedBias, Transition
from ...laws.chain import combined_of, only_rounds
from ...laws.unknowns import of_columns
from ..system import Floats, Ints
from .information import Channel
from .noise_moments import NoiseOfColumns, noise_mean


@dataclass(frozen=True, slots=True)
class NoisedColumnLaws:
    """The laws of some noised columns of a model, each with which of its columns the model uses."""

    laws: tuple[tuple[Any, tuple[int, ...]], ...] = ()

    @property
    def columns(self) -> tuple[str, ...]:
        """The noised columns of the model."""
        return tuple(law.columns[j] for law, chosen in self.laws for j in chosen)

    def release(self, x: Floats, seed: int) -> Floats:
        """Draw released values."""
        stream, out, at = (
            Stream(Key.from_seed(seed), "forecast", "", ids_from_numbers(len(x))),
            np.empty(x.shape),
            0,
        )
        for law, chosen in self.laws:
            whole = np.ones((len(x), len(law.columns)), order="F")
            whole[:, chosen] = x[:, at : at + len(chosen)]
            out[:, at : at + len(chosen)] = law.draw(whole, stream)[:, chosen]
            at += len(chosen)
        return out

    def log_density(self, z: Floats, x: Floats) -> Floats:
        """Return the log density of released values given true ones."""
        total, at = np.zeros(len(x)), 0
        for law, chosen in self.laws:
            columns = slice(at, at + len(chosen))
            total += of_columns(law, chosen).logpdf(
                np.asfortranarray(z[:, columns]), np.asfortranarray(x[:, columns])
            )
            at += len(chosen)
        return total

    def undone(self, z: Floats) -> Floats:
        """Return released values with slopes and means of the noise taken off."""
        out, at = z.copy(), 0
        for law, chosen in self.laws:
            columns = slice(at, at + len(chosen))
            at += len(chosen)
            if isinstance(law, Additive):
                shift = noise_mean(law.noise) + np.array(law.offsets or (0.0,) * len(law.columns))
                out[:, columns] = (z[:, columns] - shift[list(chosen)]) / law.slope
        return out

    def tables(self, z: Floats, codes: Floats) -> Floats:
        """Return records x kinds: the log density of released categories given the codes of each kind."""
        return np.column_stack([self.log_density(z, np.tile(kind, (len(z), 1))) for kind in codes])


def passing_columns(card: NoiseCard, names: Sequence[str]) -> tuple[NoisedColumnLaws, NoisedColumnLaws]:
    """Read which numbers and which categories of a model a card puts noise on; refuse what has no forecast."""
    problems = [
        f"column {total!r} is computed anew from noised parts"
        for total, _ in card.recomputed
        if total in names
    ]
    numbers: list[tuple[Any, tuple[int, ...]]] = []
    categories: list[tuple[Any, tuple[int, ...]]] = []
    for law in map(combined_of, card.laws):
        chosen = tuple(j for j, name in enumerate(law.columns) if name in names)
        if chosen and not only_rounds(law) and not is_same(law):
            problems += [text for j in chosen for text in _problems(law, j)]
            is_category = isinstance(law, Transition) or (isinstance(law, Additive) and bool(law.categories))
            (categories if is_category else numbers).append((law, chosen))
    if card.swapped is not None and card.swapped.share > 0:
        problems += [
            f"column {name!r} is exchanged between records" for name in card.swapped.columns if name in names
        ]
    raise_all(problems, BadPlan)
    return NoisedColumnLaws(tuple(numbers)), NoisedColumnLaws(tuple(categories))


def is_same(law: Any) -> bool:
    """Whether a table of categories leaves each as it is."""
    return isinstance(law, Transition) and law.is_sure and law.true == law.released_as


def _problems(law: Any, j: int) -> list[str]:
    name = law.columns[j]
    if isinstance(law, Transition) and law.is_sure:
        return [f"the categories of column {name!r} are released in groups"]
    if isinstance(law, SkewedBias | Transition):
        return []
    if not isinstance(law, Additive):
        return [f"column {name!r} is released as a class or exchanged by rank"]
    if law.outlets[j].log_shift is not None:
        return [f"column {name!r} has noise on the log scale"]
    if law.noise.covariance[j, j] == 0:
        return [f"column {name!r} is coded or cut off without noise"]
    return []


def channel_of(
    numbers: NoisedColumnLaws, categories: NoisedColumnLaws, codes: Floats, values: Floats, seed: int
) -> Channel:
    """Return how simulated true values pass; the covariance is that of the noise of the true numbers."""
    noise = numbers.undone(numbers.release(values, seed)) - values
    covariance = (
        np.cov(noise, rowvar=False).reshape((values.shape[1],) * 2) if noise.size else np.zeros((0, 0))
    )
    floor = 1e-6 * np.diag(np.var(values, axis=0))  # limits may leave no noise at all in a column

    def release(kinds: Ints, x: Floats) -> tuple[Floats, Floats]:
        z = categories.release(codes[kinds], seed + 2)
        return numbers.release(x, seed + 1), categories.tables(z, codes)

    return Channel(release, numbers.undone, numbers.log_density, covariance + floor)


def limits_bind(noised: NoiseOfColumns, values: Mapping[str, Floats], seed: int) -> bool:
    """Whether noise would carry some of the true values to a limit."""
    if not any(
        outlet.low is not None or outlet.high is not None
        for part in noised.parts
        for outlet in part.law.outlets
    ):
        return False
    for part in noised.parts:
        passing = NoisedColumnLaws(((part.whole, part.chosen),))
        x = np.column_stack([values[name] for name in part.columns])
        z = passing.release(x, seed)
        for outlet, column in zip(part.law.outlets, z.T, strict=True):
            if outlet.low is not None and (column <= outlet.low).any():
                return True
            if outlet.high is not None and (column >= outlet.high).any():
                return True
    return False

"""The laws of a card, cut to the columns of a model, and what each gives to the arrays.

The noise of some columns of a normal law is its marginal, with precision M'M = (their covariance)^-1; Laplace noise and
mixtures of single columns have M = 1 and their sizes apart; of a mixture turned with different sds all columns are
needed. A known measurement error of variance v is independent of the noise,
so that the covariances add (slope^2 v on the scale of the noise), which normal noise and mixtures of normals allow. Own
derivation. Called by `card_arrays` and by `swaps`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ...card import NoiseCard
from ...errors import BadPlan, NoLaw
from ...laws import (
    Additive,
    Classes,
    JointMixture,
    Laplace,
    Mixture,
    Normal,
    Outlet,
    RotatedMixture,
    SkewedBias,
)
from ...laws.chain import combined_of
from ...laws.convolution import convolve, normal_from_covariance
from ...laws.noise import NULL, scaled_root
from ...table import Table
from ..system import Floats
from .card_columns import check_spread, is_noisy

# Noise below this share of the bias: the bias is integrated out, since drawing it would hardly move
DIRECT = 0.3


@dataclass(frozen=True, slots=True)
class LawPart:
    """One law in a model: `chosen` are its columns there (by their number in the law), `positions` their places.

    `errors` are the variances of known measurement errors that are added inside the components of joint mixtures.
    """

    law: Any
    chosen: tuple[int, ...]
    positions: tuple[int, ...]
    errors: tuple[float, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the columns."""
        return tuple(self.law.columns[j] for j in self.chosen)

    @property
    def is_turned(self) -> bool:
        """Whether components have sds of their own along turned axes, so that none of the columns can be left out."""
        noise = self.law.noise if isinstance(self.law, Additive) else None
        return isinstance(noise, RotatedMixture) and len(set(noise.unit_sds)) > 1

    def root(self, places: Sequence[int]) -> Floats:
        """Return M, M'M the precision of the noise, for those of the chosen columns that are at some places."""
        if isinstance(self.law, SkewedBias):
            sds = np.array([self.law.sds[self.chosen[i]] for i in places])
            return np.diag([0.0 if sd == 0 else 1 / sd for sd in sds])
        noise = self.law.noise.only([self.chosen[i] for i in places])
        if isinstance(noise, Mixture | Laplace):
            return np.eye(len(places))
        if self.is_turned:
            return np.asarray(np.linalg.inv(scaled_root(noise.sds, noise.correlations)))
        return self._inverse_root(self._covariance(noise) + np.diag([self.errors[i] for i in places]))

    def _covariance(self, noise: Any) -> Floats:
        """Return the covariance within a component."""
        if isinstance(noise, JointMixture):
            return noise.within_covariance
        if isinstance(noise, RotatedMixture):
            rows = rotated_rows(noise)
            return np.asarray(noise.unit_sds[0] ** 2 * rows @ rows.T)
        return np.asarray(noise.covariance)

    def _inverse_root(self, covariance: Floats) -> Floats:
        sds = np.sqrt(np.diag(covariance))
        correlations = covariance / np.outer(sds, sds)
        if np.linalg.eigvalsh(correlations)[0] <= NULL:
            listed = ", ".join(map(repr, self.names))
            raise NoLaw(
                f"the noise of the columns {listed} is exactly dependent, so their joint law has no density to fit "
                "with; leave one of them out of the model"
            )
        return np.asarray(np.linalg.inv(np.linalg.cholesky(correlations)) / sds)

    def is_direct(self, i: int, typical: float) -> bool:
        """Whether the lognormal bias of a column is integrated out rather than drawn."""
        law = self.law
        return isinstance(law, SkewedBias) and law.sds[self.chosen[i]] < DIRECT * law.bias_sd * typical


def rotated_rows(noise: RotatedMixture) -> Floats:
    """Return the rows of the root that turn the units into the chosen columns."""
    return np.asarray(scaled_root(noise.sds, noise.correlations)[list(noise.chosen or range(len(noise.sds)))])


def parts_of(
    card: NoiseCard, table: Table, names: Sequence[str], measurement_error: Mapping[str, float] | None
) -> list[LawPart]:
    """Return the laws with noise on some numbers of a model, known measurement errors added."""
    errors = dict(measurement_error or {})
    parts, spoken_of = [], set[str]()
    for law in map(combined_of, card.laws):
        shared = [name for name in names if name in law.columns]
        own = {name: errors[name] for name in shared if name in errors}
        spoken_of |= set(shared)
        if shared and own:
            law = with_errors(law, own)
        if not isinstance(law, Additive | SkewedBias) or not shared:
            continue
        noisy = is_noisy(law)
        chosen = [j for j, name in enumerate(law.columns) if name in shared and noisy[j]]
        if chosen:
            parts.append(_part(law, chosen, names, own))
    alone = [name for name in errors if name in names and name not in spoken_of]
    return parts + [_part(error_law(table, name, errors[name]), [0], names, {}) for name in alone]


def _part(law: Any, chosen: list[int], names: Sequence[str], errors: Mapping[str, float]) -> LawPart:
    for j in chosen:
        check_spread(law, law.columns[j])
    positions = tuple(list(names).index(law.columns[j]) for j in chosen)
    joint = isinstance(law, Additive) and isinstance(law.noise, JointMixture | RotatedMixture)
    added = tuple(errors.get(law.columns[j], 0.0) if joint else 0.0 for j in chosen)
    part = LawPart(law, tuple(chosen), positions, added)
    if part.is_turned and len(chosen) < len(law.columns):
        listed = ", ".join(repr(name) for name in law.columns if name not in part.names)
        raise NoLaw(
            f"the mixture on {', '.join(map(repr, part.names))} is turned with components of different sds, so its "
            f"law needs all of its columns; take {listed} into the model too"
        )
    return part


def with_errors(law: Any, errors: Mapping[str, float]) -> Any:
    """Add known measurement errors to a law: z tells of the measured value, and the model is about the true one."""
    for name, variance in errors.items():
        _check_error(law, name, variance)
    variances = np.array([law.slope**2 * errors.get(name, 0.0) for name in law.columns])
    if isinstance(law.noise, Normal):
        return replace(law, noise=normal_from_covariance(law.noise.covariance + np.diag(variances)))
    if isinstance(law.noise, Mixture):
        return replace(law, noise=convolve(law.noise, Normal(tuple(np.sqrt(variances).tolist()))))
    return law  # joint mixtures: `Part.errors`


def _check_error(law: Any, name: str, variance: float) -> None:
    if not (np.isfinite(variance) and variance > 0):
        raise BadPlan(f"the measurement error of {name!r} must be a positive variance")
    why = None
    if isinstance(law, Classes):
        why = "it is released as classes"
    elif isinstance(law, SkewedBias) or not isinstance(law, Additive):
        why = (
            "its noise is a lognormal bias"
            if isinstance(law, SkewedBias)
            else "its law is not one of added noise"
        )
    elif isinstance(law.noise, Laplace):
        why = "its noise is Laplace"
    elif law.spreads and law.spreads[law.columns.index(name)] is not None:
        why = "the size of its noise depends on the value"
    elif law.outlets[law.columns.index(name)].log_shift is not None:
        why = "its noise is on the log scale"
    elif isinstance(law.noise, RotatedMixture) and len(set(law.noise.unit_sds)) > 1:
        why = "its noise is a turned mixture with different sds"
    if why is not None:
        raise BadPlan(
            f"column {name!r}: a measurement error cannot be added because {why}; leave it out of measurement_error "
            "and read the result as about the measured values"
        )


def error_law(table: Table, name: str, variance: float) -> Additive:
    """Return the law of a column that has measurement error and nothing else."""
    if not (np.isfinite(variance) and variance > 0):
        raise BadPlan(f"the measurement error of {name!r} must be a positive variance")
    column = table.schema[name]
    outlet = Outlet(
        column.step,
        column.bottom,
        column.top,
        low_coded=column.bottom is not None,
        high_coded=column.top is not None,
    )
    return Additive((name,), Normal((float(np.sqrt(variance)),)), (outlet,))

"""Priors: weak, proper, in the units of the data; each can be changed.

Slopes normal(0, coefficient_sd sd(y) / sd(what other columns leave of the column)), sds half-t with 2 degrees of
freedom and scale sd_scale sd(y) (Gelman 2006), covariances of group effects as Huang and Wand (2013): half-t sds and
uniform correlations. Resolved by each sampler for its equations, the same in all.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from ..errors import BadPlan, nearest
from .system import GAUSSIAN, Equation

Floats = npt.NDArray[np.float64]
EXACT = 1e12  # variance inflation from which on a column is an exact combination of the others


@dataclass(frozen=True, slots=True)
class Priors:
    """Normal coefficients and half-t standard deviations, in units of the released data.

    A slope is normal with mean 0 and sd `coefficient_sd` times sd(response) / sd(what the other columns leave of
    the column), an intercept correspondingly wider and around the mean response; for families other than gaussian
    the response counts as sd 1 and `link_coefficient_sd` is taken. Standard deviations (residual and of group
    effects) are half-t with 2 degrees of
    freedom and scale `sd_scale` times sd(response); correlations of group effects are uniform (Huang and Wand 2013).
    The shape of a negative binomial is log-normal around 1 with `shape_log_sd`. `coefficients` names (mean, sd) of
    single coefficients of the model of interest, in the data's units.
    """

    coefficient_sd: float = 10.0
    link_coefficient_sd: float = 5.0
    sd_scale: float = 2.5
    shape_log_sd: float = 2.0
    coefficients: Mapping[str, tuple[float, float]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name in ("coefficient_sd", "link_coefficient_sd", "sd_scale", "shape_log_sd"):
            if not 0 < getattr(self, name) < np.inf:
                raise BadPlan(f"the prior's {name} must be a finite number above 0")
        for name, (mean, sd) in self.coefficients.items():
            if not (np.isfinite(mean) and 0 < sd < np.inf):
                raise BadPlan(f"the prior of {name!r} must be a finite mean and an sd above 0")


@dataclass(frozen=True, slots=True)
class ResolvedPriors:
    """The prior of one equation in the data's units."""

    mean: Floats
    sd: Floats
    residual_scale: float
    effect_scales: tuple[Floats, ...]
    shape_log_sd: float = 2.0


def resolve(
    priors: Priors,
    equation: Equation,
    columns: Floats,
    response: Floats,
    effects: tuple[Floats, ...],
    *,
    named: bool,
) -> ResolvedPriors:
    """Bring a prior to the scale of an equation: its columns and response at the released values.

    `effects` are the columns of each set of group effects; `named` says that coefficients may be named.
    """
    gaussian = equation.family == GAUSSIAN
    size = _sd(response) if gaussian else 1.0
    width = priors.coefficient_sd if gaussian else priors.link_coefficient_sd
    sds = np.array([_sd(column) for column in columns.T]) if columns.size else np.empty(0)
    means = columns.mean(axis=0) if columns.size else np.empty(0)
    constant = sds <= 1e-12 * np.maximum(np.abs(means), 1e-300)
    own = np.where(constant, 1.0, sds)
    own[~constant] /= np.sqrt(_inflation(columns[:, ~constant], means[~constant], sds[~constant]))
    slope = width * size / own
    away = np.where(constant, 0.0, means / own)
    level = (
        width * size * np.sqrt(1.0 + (away**2).sum()) / np.where(constant & (means != 0), np.abs(means), 1.0)
    )
    sd, mean = np.where(constant, level, slope), np.zeros(len(sds))
    if gaussian:
        mean = np.where(
            constant & (means != 0),
            float(np.mean(response)) / np.where(constant & (means != 0), means, 1.0),
            0.0,
        )
    if named:
        _name(priors, equation, mean, sd)
    scale = priors.sd_scale * size
    scales = tuple(np.array([scale / _size(column) for column in block.T]) for block in effects)
    return ResolvedPriors(mean, sd, scale, scales, priors.shape_log_sd)


def _name(priors: Priors, equation: Equation, mean: Floats, sd: Floats) -> None:
    for name, (given_mean, given_sd) in priors.coefficients.items():
        if name not in equation.names:
            raise BadPlan(f"the prior names {name!r}, which is no coefficient{nearest(name, equation.names)}")
        place = equation.names.index(name)
        mean[place], sd[place] = given_mean, given_sd


def _inflation(columns: Floats, means: Floats, sds: Floats) -> Floats:
    """Return how much of its variance each column shares with the others: 1 / (1 - R^2); 1 where one is a combination.

    x and x**2 of years are nearly one column. Their coefficients are as large as what sets them apart is small, and a
    prior by the sds of the whole columns would not be weak: it would decide.
    """
    records, count = columns.shape
    if count < 2 or records <= count:
        return np.ones(count)
    root = np.linalg.qr((columns - means) / (sds * np.sqrt(records)), mode="r")
    if np.abs(np.diag(root)).min() < EXACT**-0.5:
        return np.ones(count)
    found = (np.linalg.inv(root) ** 2).sum(axis=1)
    return np.where(found < EXACT, np.maximum(found, 1.0), 1.0)


def _sd(values: Floats) -> float:
    """The sd of finite values; 1 where there is none to speak of."""
    seen = values[np.isfinite(values)]
    sd = float(seen.std()) if len(seen) else 0.0
    return sd if sd > 0 else 0.0 if len(seen) and seen.any() else 1.0


def _size(values: Floats) -> float:
    """How large a column of group effects is: its root mean square about 0 for a constant, its sd otherwise."""
    sd = float(values.std()) if len(values) else 0.0
    return sd if sd > 1e-9 else max(float(np.abs(values).max(initial=0.0)), 1e-300)

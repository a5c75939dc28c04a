"""Noise from mixtures of normals (Hawala's recipes and Roque's multivariate form, misprints mended).

Hawala, section 2, (4)-(6): means theta_j with mean 0 and sum of w (theta^2 + c sigma^2) = d sigma^2. Even k: +-j s, j =
1 .. k/2, s = sqrt(12 (d - c) / ((k + 1)(k + 2))) sigma; odd k: 0 and +-j s with s = sqrt(12 (d - c) / ((k - 1)(k + 1)))
sigma, j from 1 (printed from 2); asymmetric: -sqrt((d - c) / (k - 1)) sigma and +sqrt((k - 1)(d - c)) sigma (signs as
printed are wrong). Multivariate: Roque (2000), k >= p + 1. Named in plans as MixtureNoise.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..card import NoiseCard
from ..errors import BadPlan, raise_all
from ..laws import Additive, JointMixture, Mixture, Noise, RotatedMixture
from ..masking import Setting
from ..notes import Note
from ..table import Floats, Table
from .resolve import (
    NoiseOptions,
    PreparedColumns,
    card_sizes,
    check_names,
    correlations,
    figure_or_tuple,
    in_range,
    names,
    outlets,
    prepare,
    spreads,
)

MOST_COMPONENTS = 1_000  # of which each is weighed for every value; more than a few change nothing


@dataclass(frozen=True)
class MixtureNoise(NoiseOptions):
    """Add noise from `components` normals: total variance `variance_ratio` (d) times the data's variance.

    Each component has variance `within_variance_ratio` (c) times the data's; the rest lies between their
    means. `symmetric` places the means on both sides of zero, otherwise one far component balances the
    others. `weights` are equal unless given. `correlated` makes the covariance proportional to the data's
    (Roque): by one component for each record where there are more components than columns (and `symmetric` is
    not False), else by turning independent mixtures; `construction` ("components" or "rotation") chooses. An
    intruder who knows a mixture undoes much of it: compare its risk with plain normal noise of the same variance.
    """

    columns: tuple[str, ...]
    variance_ratio: float
    within_variance_ratio: float
    components: int = 2
    symmetric: bool = True
    weights: tuple[float, ...] | None = None
    correlated: bool = False
    construction: str | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "columns", names(self.columns))
        object.__setattr__(self, "weights", figure_or_tuple(self.weights))
        problems = check_names(self.columns) + self.option_problems(self.columns) + self._weight_problems()
        problems += in_range("variance_ratio", self.variance_ratio, 0)
        problems += in_range("within_variance_ratio", self.within_variance_ratio, 0)
        if self.within_variance_ratio >= self.variance_ratio:
            problems.append("within_variance_ratio must lie below variance_ratio")
        if self.construction not in (None, "components", "rotation"):
            problems.append(f"construction must be 'components' or 'rotation', not {self.construction!r}")
        if self.construction and not self.correlated:
            problems.append("a construction is for correlated=True only")
        if self.construction == "components" and not self.symmetric:
            problems.append("symmetric=False places means along a line: it needs construction 'rotation'")
        if self.construction == "components" and self.components < len(self.columns) + 1:
            problems.append(
                f"construction 'components' needs more components ({self.components}) than columns "
                f"({len(self.columns)}); raise components or use 'rotation'"
            )
        raise_all(problems, BadPlan)

    def _weight_problems(self) -> list[str]:
        if self.components < 2:
            return ["a mixture needs at least two components"]
        if self.components > MOST_COMPONENTS:
            return [f"a mixture has at most {MOST_COMPONENTS:,} components"]
        if self.weights is None:
            return []
        if len(self.weights) != self.components:
            return [f"there are {len(self.weights)} weights for {self.components} components"]
        if min(self.weights) <= 0 or abs(sum(self.weights) - 1) > 1e-9:
            return ["weights must be positive and sum to 1"]
        return []

    def unit_means(self) -> tuple[tuple[float, ...], Floats]:
        """Return weights and component means with mean 0 and variance 1."""
        count = self.components
        weights = np.array(self.weights or (1 / count,) * count)
        pattern = _symmetric(count) if self.symmetric else np.array([-1.0] * (count - 1) + [count - 1.0])
        centred = pattern - weights @ pattern
        return tuple(map(float, weights)), centred / np.sqrt(weights @ centred**2)

    def card(self, table: Table, setting: Setting | None = None) -> NoiseCard:
        """Resolve the plan to absolute noise, in the units of the data."""
        setting = setting or Setting()
        prepared = prepare(table, self.columns, self, setting, joint=self.correlated)
        spread, divisor = spreads(prepared, table, self, setting)
        notes = prepared.notes
        if self.correlated and len(prepared.columns) > 1:
            noise, said = self._joint(prepared, divisor, setting)
            notes = (*notes, *said)
        else:
            noise = self._independent(prepared, divisor, setting)
        ways_out = outlets(table, prepared, self, np.sqrt(np.diag(noise.covariance)) * divisor)
        corrected = self.transform == "log" and self.mean_corrected
        law = Additive(prepared.columns, noise, ways_out, spreads=spread, mean_corrected=corrected)
        return NoiseCard((law,), notes=notes)

    def _independent(self, prepared: PreparedColumns, divisor: Floats, setting: Setting) -> Noise:
        weights, unit = self.unit_means()
        sds = prepared.moments.sds / divisor
        between = card_sizes(
            np.sqrt(self.variance_ratio - self.within_variance_ratio) * sds, prepared, setting
        )
        within = card_sizes(np.sqrt(self.within_variance_ratio) * sds, prepared, setting)
        means = tuple(tuple((unit * size).tolist()) for size in between)
        return Mixture(weights, means, tuple((sd,) * self.components for sd in within))

    def _joint(
        self, prepared: PreparedColumns, divisor: Floats, setting: Setting
    ) -> tuple[Noise, tuple[Note, ...]]:
        matrix, notes = correlations(prepared, setting)
        sds = card_sizes(np.sqrt(self.variance_ratio) * prepared.moments.sds / divisor, prepared, setting)
        within = self.within_variance_ratio / self.variance_ratio
        weights, unit = self.unit_means()
        enough = self.symmetric and self.components > len(sds)
        if self.construction == "components" or (self.construction is None and enough):
            return JointMixture(
                weights, _unit_component_means(np.array(weights), len(sds)), within, sds, matrix
            ), notes
        turned = tuple((unit * np.sqrt(1 - within)).tolist())
        inside = (float(np.sqrt(within)),) * self.components
        return RotatedMixture(weights, turned, inside, sds, matrix), notes


def _symmetric(count: int) -> Floats:
    half = np.arange(1.0, count // 2 + 1)
    middle = [0.0] if count % 2 else []
    return np.array([*-half[::-1], *middle, *half])


def _unit_component_means(weights: Floats, width: int) -> tuple[tuple[float, ...], ...]:
    """Return unit means diag(w)^-1/2 Q with Q orthonormal and orthogonal to sqrt(w), by one reflection."""
    root = np.sqrt(weights)
    axis = root.copy()
    axis[0] += 1.0
    reflection = np.eye(len(weights)) - 2 * np.outer(axis, axis) / (axis @ axis)
    chosen = reflection[:, 1 : width + 1] / root[:, None]
    return tuple(tuple(row) for row in chosen.tolist())

"""Noise on amounts: independent for each column, or correlated like the data.

Kim (1986), Moore (1996), section IV: z = x + e, e ~ N(0, c^2 Sigma), so that covariances grow by 1 + c^2, and
R0 = 1 / (1 + c^2). keep="moments": z = d x + (1 - d) mean + e', d = sqrt(R0), e' ~ N(0, (1 - R0) Sigma) (Shlomo, in
Goldstein and Shlomo, section 1), which keeps mean and covariance. Named in plans as IndependentNoise, CorrelatedNoise.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..card import NoiseCard
from ..errors import BadPlan, raise_all
from ..laws import Additive, Laplace, Normal, Power
from ..laws.noise import Row
from ..masking import Setting
from ..table import Floats, Table
from .resolve import (
    NoiseOptions,
    PreparedColumns,
    card_sizes,
    check_means,
    check_names,
    correlations,
    exactly_one,
    figure_or_tuple,
    figures,
    in_range,
    names,
    offsets,
    outlets,
    per_column,
    prepare,
    spreads,
)


@dataclass(frozen=True)
class IndependentNoise(NoiseOptions):
    """Add independent noise with `variance_ratio` times each column's variance, or with `variance` itself.

    `shape` is "normal" or "laplace". Independent noise on correlated columns is partly filtered out by an
    informed intruder; prefer `CorrelatedNoise` there.
    """

    columns: tuple[str, ...]
    variance_ratio: float | None = None
    variance: float | tuple[float, ...] | None = None
    shape: str = "normal"

    def __post_init__(self) -> None:
        object.__setattr__(self, "columns", names(self.columns))
        object.__setattr__(self, "variance", figure_or_tuple(self.variance))
        problems = check_names(self.columns) + self.option_problems(self.columns)
        problems += exactly_one(
            "IndependentNoise", variance_ratio=self.variance_ratio, variance=self.variance
        )
        problems += in_range("variance_ratio", self.variance_ratio, 0)
        if self.variance is not None:
            problems += figures("variance", self.variance, self.columns)
        if self.shape not in ("normal", "laplace"):
            problems.append(f"shape must be 'normal' or 'laplace', not {self.shape!r}")
        raise_all(problems, BadPlan)

    def card(self, table: Table, setting: Setting | None = None) -> NoiseCard:
        """Resolve the plan to absolute noise, in the units of the data."""
        setting = setting or Setting()
        prepared = prepare(table, self.columns, self, setting, relative=self.variance is None)
        spread, divisor = spreads(prepared, table, self, setting)
        sds = self._sds(prepared, divisor, setting)
        noise = Laplace(sds) if self.shape == "laplace" else Normal(sds)
        ways_out = outlets(table, prepared, self, np.array(sds) * divisor)
        corrected = self.transform == "log" and self.mean_corrected
        law = Additive(prepared.columns, noise, ways_out, spreads=spread, mean_corrected=corrected)
        if corrected:
            check_means(law, table)
        return NoiseCard((law,), notes=prepared.notes)

    def _sds(self, prepared: PreparedColumns, divisor: Floats, setting: Setting) -> Row:
        """Return the sds, rounded unless the plan gives them and nothing of the data is in them."""
        if self.variance is None:
            assert self.variance_ratio is not None
            return card_sizes(
                np.sqrt(self.variance_ratio) * prepared.moments.sds / divisor, prepared, setting
            )
        sds = np.sqrt(per_column(self.variance, self.columns, prepared.columns)) / divisor
        return (
            card_sizes(sds, prepared, setting) if isinstance(self.spread, Power) else tuple(map(float, sds))
        )


@dataclass(frozen=True)
class CorrelatedNoise(NoiseOptions):
    """Add noise whose covariance is that of the data, scaled (Kim), or keep all moments (Shlomo).

    `sd_ratio` is Kim's c: the noise has covariance c^2 Sigma. `r0` is the same said as 1 / (1 + c^2).
    `keep="means"` adds the noise to the values, so covariances grow by (1 + c^2); `keep="moments"` also shrinks
    the values towards the mean by sqrt(r0), so that mean and covariance stay what they were (the mean nearly, in
    files of few records: see `resolve.offsets`).
    """

    columns: tuple[str, ...]
    sd_ratio: float | None = None
    r0: float | None = None
    keep: str = "means"

    def __post_init__(self) -> None:
        object.__setattr__(self, "columns", names(self.columns))
        problems = check_names(self.columns) + self.option_problems(self.columns)
        problems += exactly_one("CorrelatedNoise", sd_ratio=self.sd_ratio, r0=self.r0)
        problems += in_range("sd_ratio", self.sd_ratio, 0) + in_range("r0", self.r0, 0, 1)
        if self.r0 == 1:
            problems.append("r0 = 1 means no noise at all")
        if self.keep not in ("means", "moments"):
            problems.append(f"keep must be 'means' or 'moments', not {self.keep!r}")
        if self.keep == "moments" and (self.spread is not None or self.transform is not None):
            problems.append("keep='moments' holds for plain noise only: leave spread and transform out")
        raise_all(problems, BadPlan)

    @property
    def noise_sd_ratio(self) -> float:
        """Kim's c, however the plan says it."""
        return self.sd_ratio if self.r0 is None else float(np.sqrt((1 - self.r0) / self.r0))  # type: ignore[return-value]

    def card(self, table: Table, setting: Setting | None = None) -> NoiseCard:
        """Resolve the plan to absolute noise, in the units of the data."""
        setting = setting or Setting()
        prepared = prepare(table, self.columns, self, setting, joint=True)
        matrix, notes = correlations(prepared, setting)
        ratio = self.noise_sd_ratio
        slope = 1.0 if self.keep == "means" else float(np.sqrt(1 / (1 + ratio**2)))
        spread, divisor = spreads(prepared, table, self, setting)
        sds = card_sizes(ratio * slope * prepared.moments.sds / divisor, prepared, setting)
        shifts, said = offsets(prepared, slope, sds, setting) if slope != 1.0 else ((), ())
        law = Additive(
            prepared.columns,
            Normal(sds, matrix if len(sds) > 1 else ()),
            outlets(table, prepared, self, np.array(sds) * divisor),
            slope=slope,
            offsets=shifts,
            spreads=spread,
            mean_corrected=self.transform == "log" and self.mean_corrected,
        )
        return NoiseCard((law,), notes=(*prepared.notes, *notes, *said))

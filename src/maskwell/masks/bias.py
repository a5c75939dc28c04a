"""Multiplicative bias with additive noise, drawn for each cell (Trottini, Fienberg, Makov and Meyer 2003).

z = theta x + e, theta ~ (1, bias_sd^2), e ~ N(0, sd^2): their A2.1 and A2.2 with eps_ij in place of eps_j^2, which
would be one draw for a whole column. Named in plans as BiasNoise.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..card import NoiseCard
from ..errors import BadPlan, raise_all
from ..laws import Additive, Multiplicative, Normal, SkewedBias
from ..masking import Setting
from ..table import Floats, Table
from .resolve import (
    NoiseOptions,
    card_sizes,
    check_names,
    exactly_one,
    figure_or_tuple,
    figures,
    names,
    outlets,
    per_column,
    prepare,
)


@dataclass(frozen=True)
class BiasNoise(NoiseOptions):
    """Release theta x + e: theta with mean 1 and sd `bias_sd`, e normal with `sd` or `sd_ratio` times the data's sd.

    `shape` is the law of theta: "normal", or "lognormal" (never negative, skewed). Multiplicative noise leaves
    zeros and signs: give the additive part enough size where they tell something.
    """

    columns: tuple[str, ...]
    bias_sd: float
    sd_ratio: float | None = None
    sd: float | tuple[float, ...] | None = None
    shape: str = "normal"

    def __post_init__(self) -> None:
        object.__setattr__(self, "columns", names(self.columns))
        object.__setattr__(self, "sd", figure_or_tuple(self.sd))
        problems = check_names(self.columns) + self.option_problems(self.columns)
        problems += exactly_one("BiasNoise", sd_ratio=self.sd_ratio, sd=self.sd)
        for name in ("bias_sd", "sd_ratio", "sd"):
            if getattr(self, name) is not None:
                problems += figures(name, getattr(self, name), self.columns, zero=True)
        if self.bias_sd == 0 and not np.any(self.sd if self.sd_ratio is None else self.sd_ratio):
            problems.append("bias_sd and the additive noise are both zero: nothing would be masked")
        if self.shape not in ("normal", "lognormal"):
            problems.append(f"shape must be 'normal' or 'lognormal', not {self.shape!r}")
        if self.transform is not None or self.spread is not None:
            problems.append("BiasNoise has a spread of its own: leave transform and spread out")
        raise_all(problems, BadPlan)

    def card(self, table: Table, setting: Setting | None = None) -> NoiseCard:
        """Resolve the plan to absolute noise, in the units of the data."""
        setting = setting or Setting()
        prepared = prepare(table, self.columns, self, setting, relative=self.sd is None)
        moments = prepared.moments
        if self.sd is not None:
            sds = tuple(map(float, per_column(self.sd, self.columns, prepared.columns)))
        else:
            sds = card_sizes(np.asarray(self.sd_ratio) * moments.sds, prepared, setting)
        typical: Floats = np.hypot(sds, self.bias_sd * np.hypot(moments.means, moments.sds))
        ways_out = outlets(table, prepared, self, typical)
        if self.shape == "lognormal":
            return NoiseCard(
                (SkewedBias(prepared.columns, self.bias_sd, sds, ways_out),), notes=prepared.notes
            )
        spreads = tuple(Multiplicative(self.bias_sd, sd) for sd in sds)
        law = Additive(prepared.columns, Normal((1.0,) * len(sds)), ways_out, spreads=spreads)
        return NoiseCard((law,), notes=prepared.notes)

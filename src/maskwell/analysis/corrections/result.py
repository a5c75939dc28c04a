"""What a correction gives: estimates with standard errors, beside those of the released values taken at their word."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import isnan
from textwrap import wrap
from typing import Any

import numpy as np

from ...errors import BadPlan
from ...notes import Note
from ...words.phrases import text_table
from ..system import Floats
from .glm import Family

METHODS = {
    "moment correction": "moment correction (Fuller)",
    "regression calibration": "regression calibration",
    "simex": "SIMEX",
}


@dataclass(frozen=True, slots=True)
class Corrected:
    """Estimates of a model of the true values from a release, by a correction instead of a full model.

    `names` are the coefficients, then "sigma" for gaussian models. `unadjusted` has the ordinary estimates from the
    released values and `unadjusted_errors` their standard errors. `notes` say what was assumed and left out.
    """

    names: tuple[str, ...]
    estimates: tuple[float, ...]
    covariance: Floats = field(repr=False, compare=False)
    method: str = "moment correction"
    family: str = "gaussian"
    unadjusted: tuple[float, ...] = ()
    unadjusted_errors: tuple[float, ...] = ()
    records: int = 0
    notes: tuple[Note, ...] = ()

    @property
    def standard_errors(self) -> tuple[float, ...]:
        """The standard error of each estimate."""
        with np.errstate(invalid="ignore"):
            return tuple(map(float, np.sqrt(np.diag(self.covariance))))

    def __getitem__(self, name: str) -> float:
        """Return the estimate of a coefficient."""
        if name not in self.names:
            raise BadPlan(f"there is no coefficient {name!r}; there are {', '.join(self.names)}")
        return self.estimates[self.names.index(name)]

    def intervals(self, level: float = 0.95) -> Mapping[str, tuple[float, float]]:
        """Return the interval of each estimate by the normal approximation."""
        from statistics import NormalDist

        if not 0 < level < 1:
            raise BadPlan(f"the level of an interval lies between 0 and 1, not at {level!r}")
        reach = NormalDist().inv_cdf((1 + level) / 2)
        found = zip(self.names, self.estimates, self.standard_errors, strict=True)
        return {name: (value - reach * error, value + reach * error) for name, value, error in found}

    def to_dict(self) -> dict[str, Any]:
        """Return the result as plain data."""
        return {
            "method": self.method,
            "family": self.family,
            "records": self.records,
            "names": list(self.names),
            "estimates": list(self.estimates),
            "standard_errors": list(self.standard_errors),
            "covariance": self.covariance.tolist(),
            "unadjusted": list(self.unadjusted),
            "unadjusted_errors": list(self.unadjusted_errors),
            "notes": [note.to_dict() for note in self.notes],
        }

    def __repr__(self) -> str:
        head = f"{METHODS.get(self.method, self.method)}, {self.family}, {self.records:,} records"
        rows = [("", "estimate", "se", "95% interval", "unadjusted", "se")]
        intervals = self.intervals()
        for i, name in enumerate(self.names):
            low, high = intervals[name]
            errors = self.standard_errors[i], self.unadjusted_errors[i]
            span = f"{figure(low)} to {figure(high)}"
            cells = figure(self.estimates[i]), figure(errors[0]), span, figure(self.unadjusted[i])
            rows.append((name, *cells, figure(errors[1])))
        said = [line for note in self.notes for line in wrap(str(note), 100, subsequent_indent="  ")]
        return "\n".join([head, *text_table(rows), *said])


def reported_estimates(
    names: tuple[str, ...], estimates: Floats, joint: Floats, family: Family
) -> tuple[tuple[str, ...], tuple[float, ...], Floats]:
    """Return names, estimates and covariance as they are reported: the sd of the residuals, not their variance."""
    if not family.has_scale:
        p = len(names)
        return names, tuple(map(float, estimates[:p])), joint[:p, :p]
    variance = float(estimates[-1])
    sd = float(np.sqrt(variance)) if variance > 0 else float("nan")
    turn = np.append(np.ones(len(names)), 0.5 / sd)
    values = (*map(float, estimates[:-1]), sd)
    return (*names, "sigma"), values, np.asarray(joint * np.outer(turn, turn))


def negative_variance(estimates: Floats, family: Family) -> tuple[Note, ...]:
    """Say that the corrected residual variance is not positive, where it is not."""
    if not family.has_scale or estimates[-1] > 0:
        return ()
    return (Note("analysis.residual_variance"),)


def figure(value: float) -> str:
    """Write an estimate with four significant digits; a dash where there is none."""
    if isnan(value):
        return "-"
    if value == 0:
        return "0"
    if not 1e-4 <= abs(value) < 1e7:
        return f"{value:.3e}"
    decimals = max(0, 3 - int(np.floor(np.log10(abs(value)))))
    return f"{value:,.{decimals}f}"

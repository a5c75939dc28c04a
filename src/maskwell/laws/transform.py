"""How a noised value leaves: back-transform, limits, unit, codes it must not look like; and the way back.

`Outlet.leave` is the way out: z = round(clamp(g^-1(y))). `Outlet.cell` is the same way in the other direction: which
noised values y before rounding and clamping lead to a released value. Density of z: f(y) dy/dz at a point, P(cell) /
unit on a coarse unit, P(tail) at a limit. Both stand here side by side because the density is right only if they agree.
Own derivation of the order; limits are clamped, as table 4 of Goldstein and Shlomo has them, not truncated as (4) says.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]

# A unit u below this share of the local sd is treated as exact. For normal noise the density, r sds from its centre,
# is then off by a share of u^2 / 24 |r^2 - 1| / sd^2: 1e-4 at the centre, 3e-4 at 2 sds, 1.6e-3 at 4, 3.6e-3 at 6.
FINE = 0.05


def on_unit(values: Floats, unit: Fraction) -> Floats:
    """Round to whole multiples of a unit; each result is the double nearest to the decimal number, 0 unsigned."""
    steps = np.rint(values * (unit.denominator / unit.numerator)) + 0.0
    return np.asarray(steps * unit.numerator / unit.denominator)


def inside(limit: float, direction: int, unit: Fraction, avoid: tuple[float, ...] = ()) -> float:
    """Return the nearest multiple of the unit at or beyond `limit` in a direction (1 or -1) that is no code."""
    steps = Fraction(str(limit)) / unit
    step = -(-steps // 1) if direction > 0 else steps // 1
    while float(step * unit) in avoid:
        step += direction
    return float(step * unit)


def beyond(limit: float, direction: int, unit: Fraction, avoid: tuple[float, ...] = ()) -> float:
    """Return the nearest multiple of the unit beyond `limit` in a direction (1 or -1) that is no code."""
    return inside(limit, direction, unit, (*avoid, float(limit)))


@dataclass(frozen=True, slots=True)
class ReleasedCell:
    """The noised values that lead to each released one: between lower and upper, or a point at lower.

    `log_factor` is added to the log density: the Jacobian of a transform, or minus the log of the unit where
    a probability of an interval stands for a density.
    """

    lower: Floats
    upper: Floats
    is_point: Bools
    log_factor: Floats


@dataclass(frozen=True, slots=True)
class Outlet:
    """How one column leaves. A limit is a clamp, or where it is `coded` a code: the value is closed there.

    Clamps lie on the grid of the unit, so that it does not matter whether values are clamped or rounded first;
    codes may lie anywhere. `avoid` lists codes on the grid that no released value may equal; no limit is one.
    """

    unit: Fraction | None = None
    low: float | None = None
    high: float | None = None
    low_coded: bool = False
    high_coded: bool = False
    log_shift: float | None = None
    avoid: tuple[float, ...] = ()

    @property
    def codes(self) -> tuple[float | None, float | None]:
        """The bottom and the top code that this outlet itself gives."""
        return (self.low if self.low_coded else None, self.high if self.high_coded else None)

    def enter(self, x: Floats) -> Floats:
        """Transform true values to the scale on which noise is added."""
        if self.log_shift is None:
            return x
        with np.errstate(divide="ignore"):  # a released value may be rounded to where the logarithm ends
            return np.asarray(np.log(x + self.log_shift))

    def leave(self, noised: Floats, x: Floats) -> Floats:
        """Back-transform, keep within the limits and on the unit, and step off values that are codes."""
        z = noised if self.log_shift is None else np.exp(noised) - self.log_shift
        if self.unit is not None:
            z = on_unit(z, self.unit)
        if self.low is not None or self.high is not None:
            z = np.clip(z, self.low, self.high)
        for first, last, below, above in self._runs():
            here = (z >= first) & (z <= last)
            if here.any():
                z[here] = np.where(x[here] > first, above, below)
        return z

    def _runs(self) -> list[tuple[float, float, float, float]]:
        """Return each run of neighbouring codes within the limits: first and last, and the values below and above."""
        if self.unit is None or not self.avoid:
            return []
        low, high = (-np.inf if self.low is None else self.low), (np.inf if self.high is None else self.high)
        runs: list[list[int]] = []
        for code in sorted(code for code in self.avoid if low < code < high):
            step = int(Fraction(str(code)) / self.unit)
            if runs and step == runs[-1][1] + 1:
                runs[-1][1] = step
            else:
                runs.append([step, step])
        ends = [[float(step * self.unit) for step in (a, b, a - 1, b + 1)] for a, b in runs]
        return [(first, last, max(below, low), min(above, high)) for first, last, below, above in ends]

    def cell(self, z: Floats, x: Floats, sd: Floats) -> ReleasedCell:
        """Return what leads to z, given the local sd of the noise on the scale where it is added."""
        unit = 0.0 if self.unit is None else float(self.unit)
        local = sd if self.log_shift is None else sd * np.abs(z + self.log_shift)
        lower, upper = z - unit / 2, z + unit / 2
        is_point = unit <= FINE * local
        log_factor = np.full(len(z), -np.log(unit) if unit else 0.0)
        impossible = self._impossible(z, upper)
        self._at_limits(z, lower, upper, is_point, log_factor)
        self._beside_codes(z, x, lower, upper, is_point)
        lower[impossible], upper[impossible], is_point[impossible] = np.inf, np.inf, False
        return self._untransformed(z, ReleasedCell(lower, upper, is_point, log_factor))

    def _at_limits(
        self, z: Floats, lower: Floats, upper: Floats, is_point: Bools, log_factor: Floats
    ) -> None:
        """At a limit stands the whole tail: a probability, not a density."""
        if self.high is not None:
            here = z >= self.high
            lower[here], upper[here] = self._edge(self.high, 1), np.inf
            is_point[here], log_factor[here] = False, 0.0
        if self.low is not None:
            here = z <= self.low
            lower[here], upper[here] = -np.inf, self._edge(self.low, -1)
            is_point[here], log_factor[here] = False, 0.0

    def _edge(self, limit: float, direction: int) -> float:
        """Return where the noised values begin that end at a limit."""
        if self.unit is None:
            return limit
        return inside(limit, direction, self.unit) - direction * float(self.unit) / 2

    def _beside_codes(self, z: Floats, x: Floats, lower: Floats, upper: Floats, is_point: Bools) -> None:
        """The value beside a run of codes also takes what would have landed on one of them."""
        half = float(self.unit or 0) / 2
        for first, last, below, above in self._runs():
            up, down = (z == above) & (x > first), (z == below) & (x <= first)
            lower[up] = np.minimum(lower[up], first - half)
            upper[down] = np.maximum(upper[down], last + half)
            is_point[up | down] = False

    def _impossible(self, z: Floats, upper: Floats) -> Bools:
        outside = np.isin(z, self.avoid)
        if self.high is not None:
            outside |= z > self.high
        if self.low is not None:
            outside |= z < self.low
        if self.log_shift is not None:
            outside |= upper + self.log_shift <= 0
        return outside

    def _untransformed(self, z: Floats, cell: ReleasedCell) -> ReleasedCell:
        if self.log_shift is None:
            return ReleasedCell(
                np.where(cell.is_point, z, cell.lower), cell.upper, cell.is_point, _points_whole(cell)
            )
        with np.errstate(divide="ignore", invalid="ignore"):
            point = np.log(z + self.log_shift)
            lower = np.log(np.maximum(cell.lower + self.log_shift, 0.0))
            upper = np.log(np.maximum(cell.upper + self.log_shift, 0.0))
        factor = np.where(cell.is_point, -point, cell.log_factor)
        return ReleasedCell(np.where(cell.is_point, point, lower), upper, cell.is_point, factor)

    def to_dict(self) -> dict[str, Any]:
        """Return the outlet as plain data, defaults left out."""
        out: dict[str, Any] = {} if self.unit is None else {"unit": str(self.unit)}
        for name in ("low", "high", "log_shift"):
            if getattr(self, name) is not None:
                out[name] = getattr(self, name)
        for name in ("low_coded", "high_coded"):
            if getattr(self, name):
                out[name] = True
        if self.avoid:
            out["avoid"] = list(self.avoid)
        return out

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Outlet:
        """Build an outlet from plain data."""
        unit = Fraction(data["unit"]) if "unit" in data else None
        names = ("low", "high", "low_coded", "high_coded", "log_shift")
        rest = {name: data[name] for name in names if name in data}
        return cls(unit=unit, avoid=tuple(data.get("avoid", ())), **rest)


def _points_whole(cell: ReleasedCell) -> Floats:
    return np.where(cell.is_point, 0.0, cell.log_factor)

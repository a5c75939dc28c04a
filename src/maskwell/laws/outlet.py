"""How a noised value leaves: back-transform, limits, unit, codes it must not look like; and the way back.

`Outlet.leave` is the way out. `Outlet.cell` is the same way in the other direction: which noised values
before rounding and clamping lead to a released value. Both stand here side by side because the density
is right only if they agree.
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

FINE = 0.05  # a unit below this share of the local sd is treated as exact: relative error of the density 1e-4


def on_unit(values: Floats, unit: Fraction) -> Floats:
    """Round to whole multiples of a unit; each result is the double nearest to the decimal number."""
    steps = np.rint(values * (unit.denominator / unit.numerator))
    return np.asarray(steps * unit.numerator / unit.denominator)


@dataclass(frozen=True, slots=True)
class Cell:
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
    """How one column leaves. `coded` limits are codes (the value is closed there), others are clamps."""

    unit: Fraction | None = None
    low: float | None = None
    high: float | None = None
    coded: bool = False
    log_shift: float | None = None
    avoid: tuple[float, ...] = ()

    def enter(self, x: Floats) -> Floats:
        """Transform true values to the scale on which noise is added."""
        return x if self.log_shift is None else np.asarray(np.log(x + self.log_shift))

    def leave(self, noised: Floats, x: Floats) -> Floats:
        """Back-transform, clamp, round to the unit, and step off values that are codes."""
        z = noised if self.log_shift is None else np.exp(noised) - self.log_shift
        if self.low is not None or self.high is not None:
            z = np.clip(z, self.low, self.high)
        if self.unit is None:
            return z
        z = on_unit(z, self.unit)
        for code in self.avoid:
            here = z == code
            if here.any():
                up = x[here] > code
                z[here] = np.where(up, self._beside(code, 1), self._beside(code, -1))
        return z

    def _beside(self, code: float, direction: int) -> float:
        """Return the nearest value above or below a code that is no code itself."""
        assert self.unit is not None
        step, value = float(self.unit) * direction, code
        while value in self.avoid:
            value = float(on_unit(np.array([value + step]), self.unit)[0])
        return value

    def cell(self, z: Floats, x: Floats, sd: Floats) -> Cell:
        """Return what leads to z, given the local sd of the noise on the scale where it is added."""
        unit = 0.0 if self.unit is None else float(self.unit)
        local = sd if self.log_shift is None else sd * np.abs(z + self.log_shift)
        lower, upper = z - unit / 2, z + unit / 2
        is_point = unit <= FINE * local
        log_factor = np.full(len(z), -np.log(unit) if unit else 0.0)
        for code in self.avoid:
            self._take_over(code, z, x, lower, upper, is_point)
        self._at_limits(z, unit, lower, upper, is_point, log_factor)
        impossible = self._impossible(z)
        lower[impossible], upper[impossible], is_point[impossible] = np.inf, np.inf, False
        return self._untransformed(z, Cell(lower, upper, is_point, log_factor))

    def _take_over(
        self, code: float, z: Floats, x: Floats, lower: Floats, upper: Floats, is_point: Bools
    ) -> None:
        """The value beside a code also takes what would have landed on the code."""
        half = float(self.unit or 0) / 2
        above = (z == self._beside(code, 1)) & (x > code)
        below = (z == self._beside(code, -1)) & (x < code)
        lower[above] = np.minimum(lower[above], code - half)
        upper[below] = np.maximum(upper[below], code + half)
        is_point[above | below] = False

    def _at_limits(
        self, z: Floats, unit: float, lower: Floats, upper: Floats, is_point: Bools, log_factor: Floats
    ) -> None:
        """At a limit stands the whole tail: a probability, not a density."""
        if self.high is not None:
            here = z >= self.high
            lower[here], upper[here] = self.high - unit / 2, np.inf
            is_point[here], log_factor[here] = False, 0.0
        if self.low is not None:
            here = z <= self.low
            lower[here], upper[here] = -np.inf, self.low + unit / 2
            is_point[here], log_factor[here] = False, 0.0

    def _impossible(self, z: Floats) -> Bools:
        outside = np.isin(z, self.avoid)
        if self.high is not None:
            outside |= z > self.high
        if self.low is not None:
            outside |= z < self.low
        if self.log_shift is not None:
            outside |= z + self.log_shift < 0
        return outside

    def _untransformed(self, z: Floats, cell: Cell) -> Cell:
        if self.log_shift is None:
            return Cell(
                np.where(cell.is_point, z, cell.lower), cell.upper, cell.is_point, _points_whole(cell)
            )
        with np.errstate(divide="ignore", invalid="ignore"):
            point = np.log(z + self.log_shift)
            lower = np.log(np.maximum(cell.lower + self.log_shift, 0.0))
            upper = np.log(np.maximum(cell.upper + self.log_shift, 0.0))
        factor = np.where(cell.is_point, -point, cell.log_factor)
        return Cell(np.where(cell.is_point, point, lower), upper, cell.is_point, factor)

    def to_dict(self) -> dict[str, Any]:
        """Return the outlet as plain data, defaults left out."""
        out: dict[str, Any] = {} if self.unit is None else {"unit": str(self.unit)}
        for name in ("low", "high", "log_shift"):
            if getattr(self, name) is not None:
                out[name] = getattr(self, name)
        if self.coded:
            out["coded"] = True
        if self.avoid:
            out["avoid"] = list(self.avoid)
        return out

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Outlet:
        """Build an outlet from plain data."""
        unit = Fraction(data["unit"]) if "unit" in data else None
        rest = {name: data[name] for name in ("low", "high", "coded", "log_shift") if name in data}
        return cls(unit=unit, avoid=tuple(data.get("avoid", ())), **rest)


def _points_whole(cell: Cell) -> Floats:
    return np.where(cell.is_point, 0.0, cell.log_factor)

"""How the size of the noise depends on the true value: sd(z | x) = s(x) sd.

Step: a ratio for each range; power: max(|x|, floor)^exponent; multiplicative: sqrt(sd^2 + bias_sd^2 x^2), which is
z = theta x + e with one draw of both for each cell (Trottini, Fienberg, Makov and Meyer 2003, A2.1 and A2.2). Held by
`additive`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, ClassVar, Protocol

import numpy as np
import numpy.typing as npt

from ..errors import BadPlan

Floats = npt.NDArray[np.float64]


class Spread(Protocol):
    """A factor on the noise, as a function of the true value."""

    form: ClassVar[str]

    def factor(self, x: Floats) -> Floats:
        """Return the factor by which the noise of each true value is multiplied."""

    def to_dict(self) -> dict[str, Any]:
        """Return the spread as plain data."""


@dataclass(frozen=True, slots=True)
class Step:
    """Noise that changes at given values: `ratios[i]` times the sd between `breaks[i-1]` and `breaks[i]`."""

    form: ClassVar[str] = "step"
    breaks: tuple[float, ...]
    ratios: tuple[float, ...]

    def __post_init__(self) -> None:
        if len(self.ratios) != len(self.breaks) + 1:
            raise BadPlan("a step spread needs one more ratio than breaks")
        if any(b <= a for a, b in pairwise(self.breaks)):
            raise BadPlan("the breaks of a step spread must rise")
        if min(self.ratios) < 0 or max(self.ratios) <= 0:
            raise BadPlan("the ratios of a step spread must not be negative, nor all zero")

    def factor(self, x: Floats) -> Floats:
        """Return the ratio of the step each value lies in (a value on a break belongs above it)."""
        ratios = np.array([*self.ratios, np.nan])
        steps = np.searchsorted(np.array(self.breaks), x, side="right")
        return np.asarray(ratios[np.where(np.isnan(x), len(self.ratios), steps)])

    def to_dict(self) -> dict[str, Any]:
        """Return the spread as plain data."""
        return {"form": self.form, "breaks": list(self.breaks), "ratios": list(self.ratios)}


@dataclass(frozen=True, slots=True)
class Power:
    """Noise whose sd grows with a power of the value: `max(|x|, floor) ^ exponent`."""

    form: ClassVar[str] = "power"
    exponent: float
    floor: float = 0.0

    def __post_init__(self) -> None:
        if not 0 < self.exponent <= 4:
            raise BadPlan("the exponent of a power spread lies above 0 and at most at 4")
        if self.floor < 0:
            raise BadPlan("the floor of a power spread must not be negative")

    def factor(self, x: Floats) -> Floats:
        """Return the power of the absolute value."""
        return np.asarray(np.maximum(np.abs(x), self.floor) ** self.exponent)

    def to_dict(self) -> dict[str, Any]:
        """Return the spread as plain data."""
        return {"form": self.form, "exponent": self.exponent, "floor": self.floor}


@dataclass(frozen=True, slots=True)
class Multiplicative:
    """Multiplicative bias N(1, bias_sd^2) and additive noise in one cell: sd^2 + bias_sd^2 x^2."""

    form: ClassVar[str] = "bias"
    bias_sd: float
    sd: float

    def factor(self, x: Floats) -> Floats:
        """Return the sd of the cell."""
        return np.asarray(np.sqrt(self.sd**2 + (self.bias_sd * x) ** 2))

    def to_dict(self) -> dict[str, Any]:
        """Return the spread as plain data."""
        return {"form": self.form, "bias_sd": self.bias_sd, "sd": self.sd}


SPREADS: dict[str, Any] = {kind.form: kind for kind in (Step, Power, Multiplicative)}


def spread_from_dict(data: Mapping[str, Any]) -> Spread:
    """Build a spread from plain data."""
    fields = {n: tuple(v) if isinstance(v, list) else v for n, v in data.items() if n != "form"}
    spread: Spread = SPREADS[data["form"]](**fields)
    return spread

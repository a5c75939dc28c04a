"""What risk a steward tolerates."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any, TypeGuard

from .errors import BadPlan


def is_real(value: object) -> TypeGuard[float]:
    """Return whether something is a number (NaN and the infinities too), and not a yes or no."""
    return isinstance(value, Real) and not isinstance(value, bool)


@dataclass(frozen=True, slots=True)
class MaxRate:
    """At most this share of the targets may be linked correctly (Moore's conjecture 5: 0.15)."""

    max_rate: float

    def __post_init__(self) -> None:
        if not (is_real(self.max_rate) and 0 <= self.max_rate <= 1):
            raise BadPlan(f"max_rate takes a share between 0 and 1, not {self.max_rate!r}")

    def met(self, correct: float, incorrect: float, targets: int) -> bool:
        """Return whether so many correct and incorrect links of so many targets are tolerated."""
        return correct <= self.max_rate * targets + 1e-9

    def needed(self, correct: float, incorrect: float, targets: int) -> int:
        """Return how many correct links must go, if each goes without becoming an incorrect one."""
        return max(0, math.ceil(correct - self.max_rate * targets - 1e-9))

    def to_dict(self) -> dict[str, float]:
        """Return the tolerance as plain data."""
        return {"max_rate": self.max_rate}

    def __str__(self) -> str:
        return f"at most {self.max_rate:.4g} of the targets linked correctly"


@dataclass(frozen=True, slots=True)
class Ratio:
    """At most so many correct links to one incorrect (Moore's conjecture 6: 2.0)."""

    max_ratio: float

    def __post_init__(self) -> None:
        if not (is_real(self.max_ratio) and 0 <= self.max_ratio < math.inf):
            raise BadPlan(f"max_ratio takes a number from 0 on, not {self.max_ratio!r}")

    def met(self, correct: float, incorrect: float, targets: int) -> bool:
        """Return whether so many correct and incorrect links of so many targets are tolerated."""
        return correct <= self.max_ratio * incorrect + 1e-9

    def needed(self, correct: float, incorrect: float, targets: int) -> int:
        """Return how many correct links must become incorrect ones."""
        return max(0, math.ceil((correct - self.max_ratio * incorrect) / (1 + self.max_ratio) - 1e-9))

    def to_dict(self) -> dict[str, float]:
        """Return the tolerance as plain data."""
        return {"max_ratio": self.max_ratio}

    def __str__(self) -> str:
        return f"at most {self.max_ratio:.4g} correct links to one incorrect"


@dataclass(frozen=True, slots=True)
class SwapShare:
    """Not a tolerance but an amount: swap this share of the correctly linked records (Moore's p)."""

    share: float

    def __post_init__(self) -> None:
        if not (is_real(self.share) and 0 <= self.share <= 1):
            raise BadPlan(f"swap_share takes a share between 0 and 1, not {self.share!r}")

    def swaps(self, at_risk: int) -> int:
        """Return how many swaps that is where so many records are linked correctly."""
        return math.ceil(self.share * at_risk - 1e-9)

    def to_dict(self) -> dict[str, float]:
        """Return the amount as plain data."""
        return {"swap_share": self.share}

    def __str__(self) -> str:
        return f"{self.share:.4g} of the correctly linked records swapped"


@dataclass(frozen=True, slots=True)
class ExpectedH:
    """The h-index must be at least this on average (Goldstein and Shlomo: 3).

    An average hides: it can hold while nearly half of the records are found (h = 0). `ProbH` does not.
    """

    at_least: float

    def __post_init__(self) -> None:
        if not (is_real(self.at_least) and 0 <= self.at_least < math.inf):
            raise BadPlan(f"expected_h takes a number from 0 on, not {self.at_least!r}")

    def to_dict(self) -> dict[str, float]:
        """Return the tolerance as plain data."""
        return {"expected_h": self.at_least}

    def __str__(self) -> str:
        return f"a mean h of at least {self.at_least:.4g}"


@dataclass(frozen=True, slots=True)
class ProbH:
    """At most the share `at_most` of the records may have an h-index below `below` (Goldstein and Shlomo: 3, 0.1)."""

    below: int
    at_most: float

    def __post_init__(self) -> None:
        if not isinstance(self.below, Integral) or isinstance(self.below, bool) or self.below < 1:
            raise BadPlan(f"prob_h takes a whole number of at least 1 for below, not {self.below!r}")
        if not (is_real(self.at_most) and 0 <= self.at_most <= 1):
            raise BadPlan(f"prob_h takes a share between 0 and 1 for at_most, not {self.at_most!r}")

    def to_dict(self) -> dict[str, Any]:
        """Return the tolerance as plain data."""
        return {"prob_h": {"below": int(self.below), "at_most": self.at_most}}

    def __str__(self) -> str:
        return f"an h below {self.below} for at most {self.at_most:.4g} of the records"


TOLERANCES: dict[str, Any] = {
    "max_rate": MaxRate,
    "max_ratio": Ratio,
    "swap_share": SwapShare,
    "expected_h": ExpectedH,
    "prob_h": ProbH,
}
Tolerance = MaxRate | Ratio | ExpectedH | ProbH
SwapAim = MaxRate | Ratio | SwapShare
SWAPPED_TO = (MaxRate, Ratio, SwapShare)  # what swapping can be asked for


def tolerance_from_dict(data: Mapping[str, Any]) -> Any:
    """Build a tolerance from plain data."""
    ((name, value),) = data.items()
    return TOLERANCES[name](**value) if isinstance(value, Mapping) else TOLERANCES[name](value)

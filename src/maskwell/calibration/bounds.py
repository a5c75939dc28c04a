"""Bounds on what noise may cost: no interval of a named model wider than so much, by its forecast.

widening = sd of an estimate with the noise / sd without - 1, by `analysis.corrections.interval_forecast`. Goldstein and
Shlomo (section 6) ask for such figures beside the risk: inflation of standard errors for typical models. The loss here
is what the analyst sees of it, when the model is fitted as the card allows. It is forecast from the true table, so that
it takes no attack and, for linear models, no draw. Read by `calibrate` and `bounded_noise`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import inf, isfinite
from typing import TYPE_CHECKING, Any

from ..errors import BadInput, BadPlan, NoLaw, raise_all
from ..notes import texts
from ..tolerances import is_real
from ..words.calibration import widening_phrase
from ..words.phrases import percent_phrase
from .scale import writable
from .trials import Bench

if TYPE_CHECKING:
    from ..analysis import Forecast

INTERCEPT = "Intercept"
# How a forecast that takes no draw says its method
CLOSED_FORM = ("analysis.forecast_asymptotic", "analysis.forecast_without_noise")
HELD = 1 + 1e-9  # rounding


@dataclass(frozen=True, slots=True)
class Bound:
    """A bound on utility: noise widens no interval of a model by more than a share (0.30: by 30%).

    `formula` and `family` are those of `forecast`. The intercept does not count, unless the model has nothing else.
    """

    formula: str
    family: str = "gaussian"
    at_most: float = 0.30

    def __post_init__(self) -> None:
        problems = []
        if not isinstance(self.formula, str) or "~" not in self.formula:
            problems.append(f"the formula of a bound is text such as 'y ~ x1 + x2', not {self.formula!r}")
        if not isinstance(self.family, str):
            problems.append(f"the family of a bound is a name such as 'gaussian', not {self.family!r}")
        if not is_real(self.at_most) or not 0 < self.at_most < inf:
            problems.append(f"at_most is a positive share (0.30: wider by 30%), not {self.at_most!r}")
        raise_all(problems, BadPlan)

    def __str__(self) -> str:
        return f"no interval of {self.formula} wider by more than {percent_phrase(self.at_most)}"

    def to_dict(self) -> dict[str, Any]:
        """Return the bound as plain data."""
        return {"formula": self.formula, "family": self.family, "at_most": self.at_most}


@dataclass(frozen=True, slots=True)
class IntervalWidening:
    """How far a noise widens the interval of a bound's model that it widens most.

    `largest` is 0.38 where that is 38%, and infinite where the noise leaves nothing to tell the coefficient by. `error`
    is the Monte Carlo error of the forecast (0 for a closed form).
    """

    formula: str
    family: str
    at_most: float
    largest: float
    coefficient: str
    error: float = 0.0

    @property
    def met(self) -> bool:
        """Whether the bound holds."""
        return self.largest <= self.at_most * HELD

    @property
    def share(self) -> float:
        """The widening as a share of what the bound allows: above 1 it does not hold."""
        return self.largest / self.at_most

    @property
    def words(self) -> str:
        """How much wider, in words."""
        return widening_phrase(self.coefficient, self.finite)

    @property
    def finite(self) -> float | None:
        """How much wider; nothing where that has no end."""
        return self.largest if isfinite(self.largest) else None

    def to_dict(self) -> dict[str, Any]:
        """Return figures only; a widening without end is nothing."""
        return {
            "formula": self.formula,
            "family": self.family,
            "at_most": self.at_most,
            "largest": self.finite,
            "coefficient": self.coefficient,
            "error": self.error if isfinite(self.error) else None,
            "met": self.met,
        }


@dataclass(frozen=True)
class Bounds:
    """All bounds of a calibration, and what was forecast so far: plans with the same figures are forecast once."""

    bench: Bench = field(repr=False)
    bounds: tuple[Bound, ...]
    columns: tuple[frozenset[str], ...] = ()
    is_closed_form: bool = True
    known: list[tuple[Any, tuple[IntervalWidening, ...]]] = field(default_factory=list, repr=False)

    @classmethod
    def of(cls, given: Any, bench: Bench, mask: Any) -> Bounds:
        """Check bounds on a mask before anything is searched: what has no forecast is refused, with the reason."""
        bounds = _check_bounds(given)
        if not bounds:
            return cls(bench, ())
        card = bench.resolved(writable(mask)).resolved
        problems, columns, methods = [], [], []
        for bound in bounds:
            try:
                found = _forecast(bound, bench, card)
                columns.append(_columns_of(bound, bench))
            except (BadPlan, BadInput, NoLaw) as refusal:
                problems += [
                    f"the bound on {bound.formula} cannot be kept: {why}" for why in refusal.problems
                ]
                continue
            if found.method is not None:
                methods.append(found.method)
            if not found.widening:
                reason = "; ".join(texts(found.notes))
                problems.append(f"the bound on {bound.formula} cannot be kept, it has no forecast: {reason}")
        raise_all(problems, BadPlan)
        closed = all(method.code in CLOSED_FORM for method in methods)
        return cls(bench, bounds, tuple(columns), closed)

    def __bool__(self) -> bool:
        return bool(self.bounds)

    def widening(self, mask: Any) -> tuple[IntervalWidening, ...]:
        """Forecast each bound's widening under a mask."""
        for tried, found in self.known:
            if tried == mask:
                return found
        card = self.bench.resolved(mask).resolved
        found = tuple(_largest_widening(bound, _forecast(bound, self.bench, card)) for bound in self.bounds)
        self.known.append((mask, found))
        return found

    def share(self, mask: Any) -> float:
        """Return the largest widening under a mask, as a share of what its bound allows."""
        return max(one.share for one in self.widening(mask))

    def hold(self, mask: Any) -> bool:
        """Return whether every bound holds under a mask."""
        return all(one.met for one in self.widening(mask))

    def users(self, columns: Sequence[str]) -> frozenset[int]:
        """Return which bounds' models use some of these columns."""
        return frozenset(i for i, used in enumerate(self.columns) if used & set(columns))


def _check_bounds(given: Any) -> tuple[Bound, ...]:
    bounds = (given,) if isinstance(given, Bound) else given
    if not isinstance(bounds, Sequence) or not all(isinstance(one, Bound) for one in bounds):
        raise BadPlan(f"bounds is a list such as [Bound('y ~ x1 + x2', at_most=0.30)], not {given!r}")
    return tuple(bounds)


def _forecast(bound: Bound, bench: Bench, card: Any) -> Forecast:
    from ..analysis import forecast

    return forecast(bound.formula, bench.table, card, family=bound.family)


def _columns_of(bound: Bound, bench: Bench) -> frozenset[str]:
    from ..analysis.corrections.design_arrays import read_formula

    return frozenset(read_formula(bound.formula, bench.table).columns)


def _largest_widening(bound: Bound, found: Forecast) -> IntervalWidening:
    """Return the coefficient that a forecast widens most; what cannot be forecast is lost."""
    counted = [name for name in found.names if name != INTERCEPT] or list(found.names)
    wider = {name: found.widening.get(name, inf) for name in counted}
    figures = {name: value if isfinite(value) else inf for name, value in wider.items()} or {"the model": inf}
    worst = max(figures, key=figures.__getitem__)
    largest, error = max(figures[worst], 0.0), found.errors.get(worst, 0.0)
    return IntervalWidening(bound.formula, bound.family, bound.at_most, float(largest), worst, float(error))

"""What telling the parameters of the noise gives away: the same intruder with the card, and with a prior instead."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from textwrap import wrap
from typing import TYPE_CHECKING, Any

import numpy as np

from ...errors import BadPlan, NoLaw
from ...laws.chained import combined_of
from ...laws.unknowns import unknowns_of
from ..risk import Risk, Risks
from .plan import BayesIntruder

if TYPE_CHECKING:
    from ...masking import Masking
    from ...table import Table
    from .priors import Prior

ALWAYS = ("coherent", "forward")
OF_BIAS = ("paper", "fms")  # the same as forward where there is no bias
NEEDED = "without them nobody can analyse the release correctly"
MARGIN = 0.1  # a difference that may be this large is not called nothing
SURE = 2.0  # standard errors beyond which a difference is more than the luck of these targets


@dataclass(frozen=True)
class Telling:
    """Risk with and without the parameters of the noise, on one release. It never leaves the steward.

    `told` are intruders who hold the card, by their kernel, `untold` those who hold a prior instead; `helped` are
    coherent ones with the prior who know so many other units, `ceiling` the one who holds the card and knows
    everybody else. The advice sets whoever finds most with the card beside whoever finds most without it.
    """

    told: Risks
    untold: Risks
    helped: dict[int, Risk] = field(default_factory=dict)
    ceiling: Risk | None = None
    refused: dict[str, str] = field(default_factory=dict)

    @property
    def with_card(self) -> Risk:
        """Whoever finds most with the parameters; the ceiling too, where others have helpers without them."""
        top = [self.ceiling] if self.helped and self.ceiling is not None else []
        return max([*self.told.values(), *top], key=lambda risk: risk.rate)

    @property
    def without(self) -> Risk:
        """Whoever finds most without the parameters."""
        return max([*self.untold.values(), *self.helped.values()], key=lambda risk: risk.rate)

    @property
    def difference(self) -> float:
        """How much lower the rate is without the parameters."""
        return self.with_card.rate - self.without.rate

    @property
    def standard_error(self) -> float:
        """The standard error of the difference over targets; those that both find do not count."""
        one, two = (_shares(risk) for risk in (self.with_card, self.without))
        return float(np.std(one - two, ddof=1) / np.sqrt(len(one))) if len(one) > 1 else float("nan")

    @property
    def advice(self) -> str:
        """Trottini's section 6, for this file."""
        points = f"{abs(self.difference) * 100:.1f} points (s.e. {self.standard_error * 100:.1f})"
        if self.difference <= 0:
            return (
                f"tell the parameters: keeping them does not lower the rate ({points} higher), and {NEEDED}"
            )
        if not self.difference > SURE * self.standard_error:
            if self.difference + SURE * self.standard_error > MARGIN:
                return f"too few targets to say: keeping the parameters lowers the rate by {points}; {NEEDED}"
            return f"tell the parameters: keeping them lowers the rate by {points}, nothing to speak of, and {NEEDED}"
        return (
            f"keeping the parameters lowers the rate by {points}, against intruders with this prior, which nobody can "
            "check; more noise, told, protects against every intruder and leaves the release open to analysis"
        )

    def lines(self) -> list[str]:
        """Return what fits on one screen."""
        names = [*dict.fromkeys([*self.told, *self.untold])]
        rows = [(name, self.told.get(name), self.untold.get(name)) for name in names]
        rows += [(f"coherent, {count:,} helpers", None, risk) for count, risk in self.helped.items()]
        rows += [] if self.ceiling is None else [("knows all others (the ceiling)", self.ceiling, None)]
        width = max(len(name) for name, _, _ in rows)
        lines = ["right for, with the parameters", f"{'':<{width}}  {'told':>7}  {'not told':>8}"]
        lines += [
            f"{name:<{width}}  {_rate(told):>7}  {_rate(untold):>8}".rstrip() for name, told, untold in rows
        ]
        lines += [f"{name}: {reason}" for name, reason in self.refused.items()]
        return [*lines, "", *wrap(self.advice, 100)]

    def __repr__(self) -> str:
        return "\n".join(self.lines())

    def to_dict(self) -> dict[str, Any]:
        """Return figures only: no record."""
        return {
            "told": {name: risk.to_dict() for name, risk in self.told.items()},
            "untold": {name: risk.to_dict() for name, risk in self.untold.items()},
            "helped": {str(count): risk.to_dict() for count, risk in self.helped.items()},
            "ceiling": None if self.ceiling is None else self.ceiling.to_dict(),
            "difference": self.difference,
            "standard_error": None if np.isnan(self.standard_error) else self.standard_error,
            "advice": self.advice,
            "refused": self.refused,
        }


def telling(
    masking: Masking,
    *,
    plan: BayesIntruder | None = None,
    prior: Prior | None = None,
    helpers: Sequence[int] = (),
    ceiling: bool = True,
    targets: Table | None = None,
) -> Telling:
    """Attack a release with its parameters told and not told, and return both with what they advise.

    `plan` has the targets, fields and blocks; `prior` is the intruder's (elicited as Trottini's by default), `helpers`
    how many other units he knows as well, each number an attack of its own.
    """
    from ..running import attack
    from .priors import Prior as Default

    base, prior = _base(plan), prior or Default()
    refused: dict[str, str] = {}

    def run(options: dict[str, Any], name: str) -> dict[str, Risk]:
        try:
            return {name: attack(replace(base, **options), masking, targets=targets)}
        except (NoLaw, BadPlan) as error:
            refused[name] = str(error)
            return {}

    told: dict[str, Risk] = {}
    untold: dict[str, Risk] = {}
    for kernel in _kernels(masking):
        reading = {"kernel": kernel, "marginal": base.marginal if kernel == "coherent" else "truth"}
        told |= run(reading, kernel)
        untold |= run(reading | {"prior": prior}, kernel)
    if not told or not untold:
        raise NoLaw(list(refused.values()))
    helped = {count: run({"prior": prior, "helpers": count}, f"{count:,} helpers") for count in helpers}
    top = run({"helpers": "all"}, "the ceiling") if ceiling else {}
    found = {count: risk for count, one in helped.items() for risk in one.values()}
    return Telling(Risks(told), Risks(untold), found, next(iter(top.values()), None), refused)


def _kernels(masking: Masking) -> tuple[str, ...]:
    """Return the kernels that differ on this release."""
    unknowns = {unknown.name for law in masking.card.laws for unknown in unknowns_of(combined_of(law))}
    return (*ALWAYS, *(OF_BIAS if "bias_sd" in unknowns else ()))


def _base(plan: BayesIntruder | None) -> BayesIntruder:
    base = plan or BayesIntruder()
    if not isinstance(base, BayesIntruder):
        raise BadPlan(
            f"telling compares Bayesian intruders: give a BayesIntruder, not a {type(base).__name__}"
        )
    if base.prior is not None or base.helpers:
        raise BadPlan("telling sets prior and helpers itself: give them beside the plan")
    return base


def _shares(risk: Risk) -> Any:
    return risk.table["expected_correct"].to_numpy()


def _rate(risk: Risk | None) -> str:
    return "" if risk is None else f"{risk.rate:.1%}"

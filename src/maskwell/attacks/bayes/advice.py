"""What telling the parameters of the noise gives away: the same intruder with the card, and with a prior instead."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from math import hypot
from typing import TYPE_CHECKING, Any

import numpy as np

from ...errors import BadPlan, MaskwellError, NoLaw
from ...laws.chained import combined_of
from ...laws.unknowns import unknowns_of
from ..risk import Risk, Risks
from .plan import BayesIntruder

if TYPE_CHECKING:
    from ...masking import Masking
    from ...table import Table
    from .priors import Prior

UNTOLD = ("coherent", "forward")
OF_BIAS = ("paper", "fms")  # the same as forward where there is no bias
SURE = 2.0  # standard errors beyond which a difference is more than the luck of these targets


@dataclass(frozen=True)
class Telling:
    """Risk with and without the parameters of the noise, on one release. It never leaves the steward.

    `told` is the intruder who holds the card, `untold` those who hold a prior instead, by their kernel, `helped` those
    of them who know so many other units, `ceiling` the one who holds the card and knows everybody else.
    """

    told: Risk
    untold: Risks
    helped: dict[int, Risk] = field(default_factory=dict)
    ceiling: Risk | None = None
    refused: dict[str, str] = field(default_factory=dict)

    @property
    def difference(self) -> float:
        """How much lower the rate is without the parameters, against whoever finds most then."""
        return self.told.rate - self.untold.largest.rate

    @property
    def standard_error(self) -> float:
        """The standard error of the difference over targets, which the same targets make smaller."""
        one, two = (_shares(risk) for risk in (self.told, self.untold.largest))
        if len(one) != len(two) or len(one) < 2:
            return hypot(
                *(np.sqrt(r.rate * (1 - r.rate) / r.targets) for r in (self.told, self.untold.largest))
            )
        return float(np.std(one - two, ddof=1) / np.sqrt(len(one)))

    @property
    def advice(self) -> str:
        """Trottini's section 6, for this file."""
        said = f"{self.difference * 100:+.1f} points ({self.standard_error * 100:.1f} s.e.)"
        if self.difference <= SURE * self.standard_error:
            return (
                f"tell the parameters: keeping them changes the rate by {said}, nothing to speak of, and without "
                "them nobody can analyse the release correctly"
            )
        return (
            f"keeping the parameters lowers the rate by {said} against an intruder with this prior, which nobody can "
            "check; more noise, told, protects against every intruder and leaves the release open to analysis"
        )

    def lines(self) -> list[str]:
        """Return what fits on one screen."""
        rows = [("told the parameters", self.told)]
        rows += [(f"not told, {name}", risk) for name, risk in self.untold.items()]
        rows += [(f"not told, {count:,} helpers", risk) for count, risk in self.helped.items()]
        rows += [] if self.ceiling is None else [("told, knows all others", self.ceiling)]
        width = max(len(name) for name, _ in rows)
        head = f"{'':<{width}}  {'rate':>7}  {'links he is sure of':>19}  {'of these right':>14}"
        lines = [head, *(f"{name:<{width}}  {_figures(risk)}" for name, risk in rows)]
        lines += [f"{name}: {reason}" for name, reason in self.refused.items()]
        return [*lines, "", self.advice]

    def __repr__(self) -> str:
        return "\n".join(self.lines())

    def to_dict(self) -> dict[str, Any]:
        """Return figures only: no record."""
        return {
            "told": self.told.to_dict(),
            "untold": {name: risk.to_dict() for name, risk in self.untold.items()},
            "helped": {str(count): risk.to_dict() for count, risk in self.helped.items()},
            "ceiling": None if self.ceiling is None else self.ceiling.to_dict(),
            "difference": self.difference,
            "standard_error": self.standard_error,
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

    base = _base(plan)
    prior = prior or Default()
    refused: dict[str, str] = {}
    told = attack(base, masking, targets=targets)
    untold: dict[str, Risk] = {}
    unknowns = {unknown.name for law in masking.card.laws for unknown in unknowns_of(combined_of(law))}
    for kernel in (*UNTOLD, *(OF_BIAS if "bias_sd" in unknowns else ())):
        _tried(untold, refused, kernel, lambda kernel=kernel: _untold(base, masking, targets, prior, kernel))
    if not untold:
        raise NoLaw(list(refused.values()))
    helped = {
        count: attack(replace(base, prior=prior, helpers=count), masking, targets=targets)
        for count in helpers
    }
    top: dict[str, Risk] = {}
    if ceiling:
        _tried(
            top, refused, "ceiling", lambda: attack(replace(base, helpers="all"), masking, targets=targets)
        )
    return Telling(told, Risks(untold), helped, top.get("ceiling"), refused)


def _base(plan: BayesIntruder | None) -> BayesIntruder:
    base = plan or BayesIntruder()
    if not isinstance(base, BayesIntruder):
        raise BadPlan(
            f"telling compares Bayesian intruders: give a BayesIntruder, not a {type(base).__name__}"
        )
    if base.prior is not None or base.helpers:
        raise BadPlan("telling sets prior and helpers itself: give them beside the plan")
    return base


def _untold(base: BayesIntruder, masking: Masking, targets: Table | None, prior: Prior, kernel: str) -> Risk:
    from ..running import attack

    marginal = base.marginal if kernel == "coherent" else "truth"
    risk: Risk = attack(
        replace(base, prior=prior, kernel=kernel, marginal=marginal), masking, targets=targets
    )
    return risk


def _tried(into: dict[str, Risk], refused: dict[str, str], name: str, run: Any) -> None:
    """Run one attack; keep why it could not be run."""
    try:
        into[name] = run()
    except MaskwellError as error:
        refused[name] = str(error)


def _shares(risk: Risk) -> Any:
    return risk.table["expected_correct"].to_numpy()


def _figures(risk: Risk) -> str:
    """Return the rate and, of the links above one half, how many there are and how many are right."""
    chance = np.nan_to_num(risk.table["probability"].to_numpy(zero_copy_only=False).astype(float))
    sure = chance > 0.5
    right = f"{_shares(risk)[sure].mean():>14.0%}" if sure.any() else f"{'-':>14}"
    return f"{risk.rate:>7.1%}  {int(sure.sum()):>19,}  {right}"

"""What telling the parameters of the noise gives away: the same intruder with the card, and with a prior instead."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from numbers import Integral
from textwrap import wrap
from typing import TYPE_CHECKING, Any

import numpy as np

from ...errors import BadPlan, NoLaw, raise_all
from ...laws.chained import combined_of
from ...laws.unknowns import unknowns_of
from ..risk import Risk, Risks
from .plan import BayesIntruder

if TYPE_CHECKING:
    from ...masking import Masking
    from ...table import Table
    from .untold.priors import Prior

ALWAYS = ("coherent", "forward")
OF_BIAS = ("paper", "fms")  # the same as forward where there is no bias
NEEDED = "without them nobody can analyse the release correctly"
HEAD = "with the parameters"
MARGIN = 0.1  # a difference that may be this large is not called nothing
SURE = 2.0  # standard errors beyond which a difference is more than the luck of these targets

Tell = Callable[[str], None]


@dataclass(frozen=True)
class Telling:
    """Risk with and without the parameters of the noise, on one release. It never leaves the steward.

    `told` are intruders who hold the card, by their kernel, `untold` those who hold a prior instead; `helped` are
    coherent ones with the prior who know so many other units, `ceiling` the one who holds the card and knows
    everybody else (`in_file`: all of his own file). The advice sets whoever finds most with the card beside whoever
    finds most without it.

    What an intruder finds is his rate: he links every target with its likeliest record. Where matchings are sampled
    and many records are nearly as likely, which of them comes first is partly luck, and the rate too low. Who has
    helpers may therefore also draw his links by his probabilities: he then expects to be right for the sum of those
    he gives to the truth, which is stable. Of the two the larger counts.
    """

    told: Risks
    untold: Risks
    helped: dict[int | str, Risk] = field(default_factory=dict)
    ceiling: Risk | None = None
    refused: dict[str, str] = field(default_factory=dict)
    in_file: bool = False

    @property
    def with_card(self) -> Risk:
        """Whoever finds most with the parameters; the ceiling too, where others have helpers without them."""
        top = [self.ceiling] if self.helped and self.ceiling is not None else []
        return max([*self.told.values(), *top], key=found_by)

    @property
    def without(self) -> Risk:
        """Whoever finds most without the parameters."""
        return max([*self.untold.values(), *self.helped.values()], key=found_by)

    @property
    def difference(self) -> float:
        """How much less is found without the parameters, as a share of the targets."""
        return found_by(self.with_card) - found_by(self.without)

    @property
    def standard_error(self) -> float:
        """The standard error of the difference over targets; those that both find do not count."""
        one, two = (_found(risk) for risk in (self.with_card, self.without))
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
        rows = self._rows()
        width = max(len(name) for name in (HEAD, *(name for name, _, _ in rows)))
        lines = [
            f"{'':<{width}}  {'right for':>17}  {'given to the truth':>20}",
            f"{HEAD:<{width}}  {'told':>7}  {'not told':>8}  {'told':>10}  {'not told':>8}",
        ]
        for name, *pair in rows:
            rates = [_percent(risk, _rate) for risk in pair] + [_percent(risk, _given) for risk in pair]
            lines.append(
                f"{name:<{width}}  {rates[0]:>7}  {rates[1]:>8}  {rates[2]:>10}  {rates[3]:>8}".rstrip()
            )
        lines += [f"{name}: {reason}" for name, reason in self.refused.items()]
        assumed = next((risk.assumed for risk in self.told.values() if risk.assumed is not None), None)
        compared = [] if assumed is None else [line.strip() for line in assumed.compared()]
        return [*lines, "", *compared, *wrap(f"basis: {self._basis()}", 100), "", *wrap(self.advice, 100)]

    def _rows(self) -> list[tuple[str, Risk | None, Risk | None]]:
        names = [*dict.fromkeys([*self.told, *self.untold])]
        rows = [(name, self.told.get(name), self.untold.get(name)) for name in names]
        rows += [(f"coherent, {_helpers(count)}", None, risk) for count, risk in self.helped.items()]
        top = "knows all in his file" if self.in_file else "knows all others (the ceiling)"
        return rows + ([] if self.ceiling is None else [(top, self.ceiling, None)])

    def _basis(self) -> str:
        """Say which figures the advice compares."""
        said = []
        for who, risk in (("with the card", self.with_card), ("without", self.without)):
            kind = "given to the truth" if _is_drawn(risk) else "right for"
            name = next(name for name, *pair in self._rows() if any(one is risk for one in pair))
            said.append(f"{who}, {kind} {found_by(risk):.1%} ({name})")
        return "; ".join(said)

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
            "basis": self._basis(),
            "advice": self.advice,
            "refused": self.refused,
        }


def telling(
    masking: Masking,
    *,
    plan: BayesIntruder | None = None,
    prior: Prior | None = None,
    helpers: Sequence[int | str] | int | str = (),
    ceiling: bool = True,
    targets: Table | None = None,
    progress: Tell | None = None,
) -> Telling:
    """Attack a release with its parameters told and not told, and return both with what they advise.

    `plan` has the targets, fields and blocks; `prior` is the intruder's (elicited as Trottini's by default), `helpers`
    how many other units he knows as well (or "all"), each number an attack of its own. `progress` is called with what
    comes next.
    """
    from .untold.priors import Prior as Default

    _check(masking, prior)
    base, counts = _base(plan), _counts(helpers)
    runs = _Runs(base, masking, targets, progress or (lambda said: None))
    prior = prior or Default()
    told: dict[str, Risk] = {}
    untold: dict[str, Risk] = {}
    for kernel in _kernels(masking):
        reading = {"kernel": kernel, "marginal": base.marginal if kernel == "coherent" else "truth"}
        told |= runs.run(reading, kernel, "told")
        untold |= runs.run(reading | {"prior": prior}, kernel, "not told")
    if not told or not untold:
        raise NoLaw([*dict.fromkeys(runs.refused.values())])
    helped: dict[int | str, Risk] = {}
    for count in counts:
        found = runs.run({"prior": prior, "helpers": count}, _helpers(count), "not told")
        helped.update((count, risk) for risk in found.values())
    top = runs.run({"helpers": "all"}, "the ceiling", "told") if ceiling else {}
    best = next(iter(top.values()), None)
    return Telling(Risks(told), Risks(untold), helped, best, runs.refused, targets is not None)


@dataclass(frozen=True, slots=True)
class _Runs:
    """Attacks by plans that differ from a base, and why some were refused."""

    base: BayesIntruder
    masking: Masking
    targets: Table | None
    progress: Tell
    refused: dict[str, str] = field(default_factory=dict)

    def run(self, options: dict[str, Any], name: str, told: str) -> dict[str, Risk]:
        """Attack, or note why not."""
        from ..running import attack

        self.progress(f"{name}, {told}")
        try:
            return {name: attack(replace(self.base, **options), self.masking, targets=self.targets)}
        except (NoLaw, BadPlan) as error:
            key = name if name not in self.refused else f"{name}, {told}"
            if str(error) not in self.refused.values():
                self.refused[key] = str(error)
            return {}


def _kernels(masking: Masking) -> tuple[str, ...]:
    """Return the kernels that differ on this release."""
    unknowns = {unknown.name for law in masking.card.laws for unknown in unknowns_of(combined_of(law))}
    return (*ALWAYS, *(OF_BIAS if "bias_sd" in unknowns else ()))


def _check(masking: Any, prior: Any) -> None:
    from ...masking import Masking as Needed
    from .untold.priors import Prior as Default

    if not isinstance(masking, Needed):
        raise BadPlan(
            f"telling needs a Masking, not a {type(masking).__name__}: give what apply or Masking.read returns"
        )
    if not isinstance(prior, Default | None):
        raise BadPlan(f"prior is a Prior, not a {type(prior).__name__}")


def _base(plan: BayesIntruder | None) -> BayesIntruder:
    base = plan or BayesIntruder()
    if not isinstance(base, BayesIntruder):
        raise BadPlan(
            f"telling compares Bayesian intruders: give a BayesIntruder, not a {type(base).__name__}"
        )
    problems = []
    if base.prior is not None or base.helpers:
        problems.append("telling sets prior and helpers itself: give them beside the plan")
    if base.kernel != "coherent":
        problems.append("telling compares the kernels itself: leave kernel out of the plan")
    if base.error is not None:
        problems.append("telling is about intruders whose own values are right: leave error out of the plan")
    raise_all(problems, BadPlan)
    return base


def _counts(helpers: Any) -> list[int | str]:
    """Return the numbers of helpers, each once; none at all is a row of its own already."""
    given: Any = [helpers] if isinstance(helpers, str | Integral) else helpers
    if not isinstance(given, Sequence):
        raise BadPlan("helpers are whole numbers or 'all', such as helpers=(10, 100)")
    for count in given:
        if count != "all" and (not isinstance(count, Integral) or isinstance(count, bool) or int(count) < 0):
            raise BadPlan(f"helpers are whole numbers from 0 on or 'all', not {count!r}")
    return list(dict.fromkeys(count for count in given if count))


def _helpers(count: int | str) -> str:
    if count == "all":
        return "knows all others"
    return "1 helper" if count == 1 else f"{count:,} helpers"


def found_by(risk: Risk) -> float:
    """Return the share of the targets that an intruder finds: see `Telling` on those with helpers."""
    return _given(risk) if _is_drawn(risk) else risk.rate


def _is_drawn(risk: Risk) -> bool:
    """Whether drawing links by their probabilities finds more than taking the likeliest, for one with helpers."""
    return bool(risk.attack.helpers) and _given(risk) > risk.rate


def _found(risk: Risk) -> Any:
    """Return what is found of each target."""
    return _chances(risk) if _is_drawn(risk) else _claimed(risk)


def _claimed(risk: Risk) -> Any:
    claimed = risk.table["claimed"].to_numpy()
    return np.where(claimed, risk.table["expected_correct"].to_numpy(), 0.0)


def _chances(risk: Risk) -> Any:
    """Return the probability that each target gives to its own record, 0 where it has none."""
    return np.nan_to_num(risk.belief.standing.probability)


def _given(risk: Risk) -> float:
    return float(np.sort(_chances(risk)).sum()) / risk.targets


def _rate(risk: Risk) -> float:
    return risk.rate


def _percent(risk: Risk | None, figure: Callable[[Risk], float]) -> str:
    return "" if risk is None else f"{figure(risk):.1%}"

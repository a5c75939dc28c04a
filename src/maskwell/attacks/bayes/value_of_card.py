"""What telling the parameters of the noise gives away: the same intruder with the card, and with a prior instead.

difference = rate of the best intruder with the card - rate of the best without it, with its standard error over
targets: cases d.1 and d.2 of Trottini, Fienberg, Makov and Meyer (2003), section 5, on one release, and the advice of
their section 6. Called by the command that compares both (`cli/value_of_card`) and by `mw.attacks.card_value`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field, replace
from numbers import Integral
from textwrap import wrap
from typing import TYPE_CHECKING, Any

import numpy as np

from ...errors import BadPlan, MaskwellError, NoLaw, raise_all
from ...laws.chain import combined_of
from ...laws.unknowns import Unknown, unknowns_of
from ...notes import Note, has_code
from ...words.attacks import brief
from ..pair_density import laws_on
from ..risk import Risk, Risks
from .plan import BayesIntruder
from .value_of_card_notes import (
    FAILED,
    CardVerdict,
    assumptions_without_card,
    doubtful_notes,
    once_each,
    pointless,
)

if TYPE_CHECKING:
    from ...masking import Masking
    from ...table import Table
    from .unknown_noise.priors import Prior

ALWAYS = ("coherent", "forward")
OF_BIAS = ("paper", "fms")  # the same as forward where there is no bias
HEAD = "with the parameters"
IN_FILE = "knows all in his file"
SIDES = ("told", "not told")
WIDTH = 100

Tell = Callable[[str], None]


@dataclass(frozen=True)
class CardValue:
    """Risk with and without the parameters of the noise, on one release. It never leaves the steward.

    `told` are intruders who hold the card, by their kernel, `untold` those who hold a prior instead; `helped` are
    coherent ones with the prior who know so many other units, `ceiling` the one who holds the card and knows
    everybody else (`in_file`: all of his own file). `unknowns` is what the card tells. The advice compares like with
    like: who knows nobody else, told and not told; where both were asked for, who knows everybody else instead. He
    may do without his helpers. Of each side whoever finds most counts.

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
    unknowns: tuple[Unknown, ...] | None = None

    @property
    def with_card(self) -> Risk:
        """Whoever finds most with the parameters."""
        top = [self.ceiling] if self.ceiling is not None and self._everybody else []
        return max([*top, *self.told.values()], key=found_by)

    @property
    def without(self) -> Risk:
        """Whoever finds most without the parameters."""
        helped = self._everybody if self.ceiling is not None else []
        return max([*helped, *self.untold.values()], key=found_by)

    @property
    def _everybody(self) -> list[Risk]:
        """Those who know everybody else without the parameters."""
        one = next(iter(self.told.values()))
        records = one.targets if one.records is None else one.records
        most = (min(one.targets, records) if self.in_file else records) - 1
        return [risk for count, risk in self.helped.items() if count in ("all", most)]

    @property
    def difference(self) -> float:
        """How much less is found without the parameters, as a share of the targets."""
        return found_by(self.with_card) - found_by(self.without)

    @property
    def standard_error(self) -> float:
        """The standard error of the difference over targets; those that both find do not count."""
        one, two = (_hit_chances(risk) for risk in (self.with_card, self.without))
        return float(np.std(one - two, ddof=1) / np.sqrt(len(one))) if len(one) > 1 else float("nan")

    @property
    def pointless(self) -> Note | None:
        """Why there is nothing to tell on this release, where that is so."""
        return pointless(next(iter(self.told.values())).assumed, self.unknowns)

    @property
    def advice(self) -> Note:
        """Trottini's section 6, for this file; where there is nothing to tell, that."""
        if self.pointless is not None:
            return self.pointless
        unsettled = has_code((*self.with_card.notes, *self.without.notes), *FAILED)
        return CardVerdict(self.difference, self.standard_error, self.with_card.targets, unsettled).advice

    def lines(self) -> list[str]:
        """Return what fits on one screen."""
        first = [] if self.pointless is None else [*wrap(str(self.pointless), WIDTH), ""]
        remarks = [f"{name}: {reason}" for name, reason in once_each(self.refused)]
        remarks += [
            f"{', '.join(names)}: {brief(note)}" for note, names in doubtful_notes(self._notes()).items()
        ]
        remarks += [str(Note("attacks.above_ceiling"))] if self._is_below else []
        said = [line for text in remarks for line in wrap(text, WIDTH, subsequent_indent="  ")]
        last = [] if self.pointless is not None else ["", *wrap(str(self.advice), WIDTH)]
        return [*first, *self._table(), *said, "", *self._taken(), *last]

    def _table(self) -> list[str]:
        rows = self._rows()
        width = max(len(name) for name in (HEAD, *(name for name, _, _ in rows)))
        lines = [
            f"{'':<{width}}  {'right for':>17}  {'given to the truth':>20}",
            f"{HEAD:<{width}}  {'told':>7}  {'not told':>8}  {'told':>10}  {'not told':>8}",
        ]
        for name, *pair in rows:
            rates = [_percent(risk, _rate) for risk in pair] + [
                _percent(risk, _mean_truth_probability) for risk in pair
            ]
            lines.append(
                f"{name:<{width}}  {rates[0]:>7}  {rates[1]:>8}  {rates[2]:>10}  {rates[3]:>8}".rstrip()
            )
        return lines

    def _taken(self) -> list[str]:
        """Say what is compared, what is taken for granted, and on which figures the advice rests."""
        risk = next(iter(self.untold.values()))
        if risk.assumed is None:
            return wrap(f"basis: {self._basis()}", WIDTH)
        findable = "" if risk.sure_belief.findable == risk.sure_belief.targets else self._findable(risk)
        texts = [findable]
        if self.pointless is None and isinstance(risk.attack, BayesIntruder):
            held = assumptions_without_card(risk.assumed, risk.attack, self.unknowns)
            texts = [
                "; ".join(map(str, held)),
                findable,
                f"basis: {self._basis()}",
            ]
        compared = [line.strip() for line in risk.assumed.compared()]
        return compared + [line for text in texts for line in wrap(text, WIDTH, subsequent_indent="  ")]

    def _findable(self, risk: Risk) -> str:
        count = f"{risk.sure_belief.findable:,} of {risk.sure_belief.targets:,} targets"
        return (
            f"given to the truth: the mean over the {count} that have their own record among the candidates"
        )

    def _notes(self) -> list[tuple[str, Sequence[Note]]]:
        """Return what the attacks say of themselves, by their rows."""
        return [(name, risk.notes) for name, *pair in self._rows() for risk in pair if risk is not None]

    @property
    def _is_below(self) -> bool:
        """Whether another is right for more than the ceiling."""
        others = (*self.told.values(), *self.untold.values(), *self.helped.values())
        top = None if self.in_file else self.ceiling
        return top is not None and any(risk.rate > top.rate + 1e-12 for risk in others)

    def _rows(self) -> list[tuple[str, Risk | None, Risk | None]]:
        names = [*dict.fromkeys([*self.told, *self.untold])]
        rows = [(name, self.told.get(name), self.untold.get(name)) for name in names]
        for count, risk in self.helped.items():
            who = IN_FILE if count == "all" and self.in_file else _helpers(count)
            rows.append((f"coherent, {who}", None, risk))
        top = IN_FILE if self.in_file else "knows all others (the ceiling)"
        return rows + ([] if self.ceiling is None else [(top, self.ceiling, None)])

    def _basis(self) -> str:
        """Say which figures the advice compares."""
        everybody = self.ceiling is not None and bool(self._everybody)
        who = "nobody else" if not everybody else "all in his file" if self.in_file else "everybody else"
        said = []
        for side, risk in zip(SIDES, (self.with_card, self.without), strict=True):
            name = next(name for name, *pair in self._rows() if any(one is risk for one in pair))
            alone = ", his helpers left aside" if everybody and not risk.attack.helpers else ""
            drawn = ", links drawn by his probabilities" if _is_drawn(risk) else ""
            name = "the ceiling" if name.endswith("(the ceiling)") else name
            said.append(f"{side} right for {found_by(risk):.1%} ({name}{alone}{drawn})")
        return f"who knows {who}: {', '.join(said)}"

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
            "advice": self.advice.to_dict(),
            "nothing_to_tell": self.pointless is not None,
            "unknowns": None if self.unknowns is None else [asdict(one) for one in self.unknowns],
            "unsettled": [
                {"intruders": names} | note.to_dict() for note, names in doubtful_notes(self._notes()).items()
            ],
            "refused": self.refused,
        }


def card_value(
    masking: Masking,
    *,
    plan: BayesIntruder | None = None,
    prior: Prior | None = None,
    helpers: Sequence[int | str] | int | str = (),
    ceiling: bool = True,
    targets: Table | None = None,
    progress: Tell | None = None,
) -> CardValue:
    """Attack a release with its parameters told and not told, and return both with what they advise.

    `plan` has the targets, fields and blocks; `prior` is the intruder's (elicited as Trottini's by default), `helpers`
    how many other units he knows as well (or "all"), each number an attack of its own. `progress` is called with what
    comes next.
    """
    from .unknown_noise.priors import Prior as Default

    _check(masking, prior)
    base, counts = _base(plan), _counts(helpers)
    _check_counts(counts, masking, targets)
    runs = _Runs(base, masking, targets, progress or (lambda said: None))
    prior = prior or Default()
    told: dict[str, Risk] = {}
    untold: dict[str, Risk] = {}
    for kernel in _kernels(masking):
        reading = {"kernel": kernel, "marginal": base.marginal if kernel == "coherent" else "truth"}
        told |= runs.run(reading, kernel, "told")
        untold |= runs.run(reading | {"prior": prior}, kernel, "not told")
    if not told or not untold:
        raise runs.failure()
    helped: dict[int | str, Risk] = {}
    for count in counts:
        found = runs.run({"prior": prior, "helpers": count}, _helpers(count), "not told")
        helped.update((count, risk) for risk in found.values())
    top = runs.run({"helpers": "all"}, "the ceiling", "told") if ceiling else {}
    best = next(iter(top.values()), None)
    unknowns = _unknowns(masking, next(iter(told.values())).fields)
    return CardValue(Risks(told), Risks(untold), helped, best, runs.refused, targets is not None, unknowns)


@dataclass(frozen=True, slots=True)
class _Runs:
    """Attacks by plans that differ from a base, and why some were refused."""

    base: BayesIntruder
    masking: Masking
    targets: Table | None
    progress: Tell
    refused: dict[str, str] = field(default_factory=dict)
    kinds: set[type] = field(default_factory=set)

    def run(self, options: dict[str, Any], name: str, told: str) -> dict[str, Risk]:
        """Attack, or note why not."""
        from ..attack_run import attack

        self.progress(f"{name}, {told}")
        try:
            return {name: attack(replace(self.base, **options), self.masking, targets=self.targets)}
        except (NoLaw, BadPlan) as error:
            reason = "; ".join(error.problems)
            if self.refused.get(name) != reason:
                self.refused[name if name not in self.refused else f"{name}, {told}"] = reason
            self.kinds.add(type(error))
            return {}

    def failure(self) -> MaskwellError:
        """Return the error of a release that nobody can attack: that of the attacks themselves."""
        kind = BadPlan if self.kinds == {BadPlan} else NoLaw
        return kind([reason for _, reason in once_each(self.refused)])


def _kernels(masking: Masking) -> tuple[str, ...]:
    """Return the kernels that differ on this release."""
    unknowns = {unknown.name for law in masking.card.laws for unknown in unknowns_of(combined_of(law))}
    return (*ALWAYS, *(OF_BIAS if "bias_sd" in unknowns else ()))


def _unknowns(masking: Masking, fields: Sequence[str]) -> tuple[Unknown, ...]:
    """Return what the card tells of the compared columns."""
    return tuple(unknown for law in laws_on(masking.card, fields) for unknown in unknowns_of(law))


def _check(masking: Any, prior: Any) -> None:
    from ...masking import Masking as Needed
    from .unknown_noise.priors import Prior as Default

    if not isinstance(masking, Needed):
        raise BadPlan(
            f"card_value needs a Masking, not a {type(masking).__name__}: give what apply or Masking.read returns"
        )
    if not isinstance(prior, Default | None):
        raise BadPlan(f"prior is a Prior, not a {type(prior).__name__}")


def _base(plan: BayesIntruder | None) -> BayesIntruder:
    base = plan or BayesIntruder()
    if not isinstance(base, BayesIntruder):
        raise BadPlan(
            f"card_value compares Bayesian intruders: give a BayesIntruder, not a {type(base).__name__}"
        )
    problems = []
    if base.prior is not None or base.helpers:
        problems.append("card_value sets prior and helpers itself: give them beside the plan")
    if base.kernel != "coherent":
        problems.append("card_value compares the kernels itself: leave kernel out of the plan")
    if base.error is not None:
        problems.append(
            "card_value is about intruders whose own values are right: leave error out of the plan"
        )
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


def _check_counts(counts: Sequence[int | str], masking: Masking, targets: Any) -> None:
    """Refuse a target file that is none, and more helpers than there are other units, before any work."""
    from ...table import Table as Needed

    if not isinstance(targets, Needed | None):
        raise BadPlan(
            f"targets is a Table, not a {type(targets).__name__}: make one with read(...) or Table.from_frame(...)"
        )
    units = len(masking.truth) if targets is None else min(len(targets), len(masking.truth))
    too_many = [int(count) for count in counts if count != "all" and int(count) >= units]
    if too_many and units:
        named = ", ".join(f"{count:,}" for count in too_many)
        raise BadPlan(f"{named} helpers are more than there are others: give at most {units - 1:,}, or all")


def _helpers(count: int | str) -> str:
    if count == "all":
        return "knows all others"
    return "1 helper" if count == 1 else f"{count:,} helpers"


def found_by(risk: Risk) -> float:
    """Return the share of the targets that an intruder finds: see `CardValue` on those with helpers."""
    return _drawn_link_share(risk) if _is_drawn(risk) else risk.rate


def _is_drawn(risk: Risk) -> bool:
    """Whether drawing links by their probabilities finds more than taking the likeliest, for one with helpers."""
    return bool(risk.attack.helpers) and _drawn_link_share(risk) > risk.rate


def _hit_chances(risk: Risk) -> Any:
    """Return what is found of each target."""
    return _chances(risk) if _is_drawn(risk) else _claim_chances(risk)


def _claim_chances(risk: Risk) -> Any:
    claimed = risk.table["claimed"].to_numpy()
    return np.where(claimed, risk.table["expected_correct"].to_numpy(), 0.0)


def _chances(risk: Risk) -> Any:
    """Return the probability that each target gives to its own record, 0 where it has none."""
    return np.nan_to_num(risk.sure_belief.standing.probability)


def _drawn_link_share(risk: Risk) -> float:
    """Return the share of the targets that links drawn by their probabilities would find."""
    return float(np.sort(_chances(risk)).sum()) / risk.targets


def _mean_truth_probability(risk: Risk) -> float:
    """Return what the truth gets of those who have it among their candidates, as an attack says it."""
    return float(risk.sure_belief.truth_probability.mean)


def _rate(risk: Risk) -> float:
    return risk.rate


def _percent(risk: Risk | None, figure: Callable[[Risk], float]) -> str:
    share = float("nan") if risk is None else figure(risk)
    return f"{share:.1%}" if share == share else "" if risk is None else "-"

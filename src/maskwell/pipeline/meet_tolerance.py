"""Meeting the tolerance with noise that is drawn once: by exchanging records, or by raising the scale of that noise.

The noise of a key is never drawn anew until a figure passes: noise chosen because it came out well is not the noise on
the card. The same keyed draws are made larger instead, and every attempt is on record.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from ..attacks import BayesIntruder, Fingerprint, NearestRecord, Risks
from ..calibration.scale import has_scale, scale_mask, writable
from ..errors import BadPlan, HopelessSwap, MaskwellWarning
from ..keys import Key
from ..masking import Masking, apply
from ..notes import Note
from ..tolerances import MaxRate, Ratio
from .coded_columns import CodedTable
from .intruders import named_intruders, risks_by_intruder
from .outcome import Attempt
from .progress import Stages, StageStep
from .tolerance_checks import Judge, ToleranceStanding

if TYPE_CHECKING:
    from ..calibration.trial_store import KeptTrials
    from ..masking import Mask
    from ..plan import ReleasePlan
    from ..table import Table
    from .budget import Budget

MOST_ATTEMPTS = 8  # to meet the tolerance, each with attacks by those who found too much, in all
RAISED = 0.05  # by which share the scale is raised; twice that the second time, and so on
MOST_ROUNDS = 4  # of swaps, each to a tighter tolerance
LEFT_TO_OTHERS = 0.65  # of the tolerance, for a nearest record where a Bayesian intruder finds too much too
FURTHER = 1.2  # times what is still too much: a swap against one intruder helps a little less against another


@dataclass(frozen=True)
class MaskingSetting:
    """A plan with its data: what is masked, by which key, who attacks it, and who judges."""

    plan: ReleasePlan
    table: Table = field(repr=False)
    mask: Mask
    coded: CodedTable = field(repr=False)
    intruders: dict[str, Any]
    judge: Judge = field(repr=False)
    key: Key | None = field(repr=False)
    earlier: Masking | None = field(repr=False)
    stages: Stages = field(repr=False)
    budget: Budget | None = field(default=None, repr=False)
    untried: Mapping[str, str] = field(default_factory=dict, repr=False)
    keeps_key: bool = False
    part: Table | None = field(default=None, repr=False)
    on_all: Mapping[str, Any] = field(
        default_factory=dict, repr=False
    )  # the intruders before any sample is drawn
    part_of: int | None = (
        None  # records of the whole file, where the table is a part of it that stands for it
    )
    kept: KeptTrials | None = field(default=None, repr=False)  # draws of rehearsals, of earlier runs too
    before: tuple[Masking, ...] = field(
        default=(), repr=False
    )  # releases of the series before the earlier one
    aim: float | None = (
        None  # the rate of one record at a time that noise is searched for, where groups ask for less
    )

    def drawn(self, mask: Any) -> Masking:
        """Mask by the one key of this release: the same words at every scale."""
        with self.stages.stage("mask") as step:
            return apply(mask, self.table, key=self.key, earlier=self.earlier, progress=step)

    def attacked(self, masking: Masking, stage: str = "attack", only: tuple[str, ...] | None = None) -> Risks:
        """Attack by all intruders, or by some; what one finds who takes too long is bounded by another."""
        bounds = {} if self.budget is None else self.budget.bounds
        wanted = {name for name in self.intruders if only is None or name in only}
        run = {bounds.get(name, name) for name in wanted}
        plans = {name: plan for name, plan in self.intruders.items() if name in run}
        with self.stages.stage(stage, len(plans), self._costs(plans)) as step, warnings.catch_warnings():
            warnings.simplefilter("ignore", MaskwellWarning)
            found = risks_by_intruder(plans, masking, step, self.untried)
        return _joined_risks(
            self, found, _bounding_risks(found, {name: by for name, by in bounds.items() if name in wanted})
        )

    def _costs(self, plans: Mapping[str, Any]) -> list[float]:
        """Return what each attack costs by the table of costs, in seconds; nothing where that is not known."""
        known = {} if self.budget is None else {part.name: part.seconds for part in self.budget.parts}
        if not known.keys() >= plans.keys():
            return []
        return [0.0 if name in self.untried else known[name] for name in plans]

    @property
    def aimed(self) -> Judge:
        """The judge by whom noise is searched: a tighter one where who knows whole groups finds more than others do.

        Where noise does not count the tolerance is what it is.
        """
        tolerance = self.judge.tolerance
        if self.aim is None or not isinstance(tolerance, MaxRate):
            return self.judge
        held = tuple(name for name in self.judge.held if not isinstance(self.intruders[name], Fingerprint))
        return replace(self.judge, tolerance=MaxRate(min(self.aim, tolerance.max_rate)), held=held)

    @property
    def may_swap(self) -> bool:
        """Whether the attacks that a swap makes are within the budget."""
        return self.budget is None or self.budget.swaps

    def at(self, mask: Any, factor: float) -> Any:
        """Return the masks with the scale of their noise times a factor."""
        return mask if factor == 1.0 else writable(scale_mask(mask, factor, self.table))


@dataclass(frozen=True)
class ToleranceResult:
    """How it ended: the masking that would leave, what was found before and after swaps, and all attempts."""

    masking: Masking
    before: Risks
    after: Risks
    attempts: tuple[Attempt, ...]
    mask: Any
    hopeless: str = ""  # why no exchange of records can meet the tolerance, where that is so


def meet(case: MaskingSetting, mask: Any) -> ToleranceResult:
    """Draw the noise and attack; where the tolerance does not hold, swap, or raise a scale that was calibrated."""
    factor, attempts = 1.0, list[Attempt]()
    first = "given" if case.plan.calibrate is None else "calibrated"
    while True:
        own = case.at(mask, factor)
        masking = case.drawn(own)
        before = _attacked_first(case, masking, attempts)
        attempts.append(attempt(case, before, factor, "raised" if attempts else first))
        found = ToleranceResult(masking, before, before, tuple(attempts), own)
        if not attempts[-1].met and case.plan.swap is not None and case.may_swap:
            found = swap_until_met(case, found, attempts)
        following = None if attempts[-1].met else _next_scale(case, mask, factor, attempts)
        if following is None or len(attempts) >= MOST_ATTEMPTS:
            return _complete_attacks(case, replace(found, attempts=tuple(attempts)))
        factor = following


def _complete_attacks(case: MaskingSetting, found: ToleranceResult) -> ToleranceResult:
    """Let those attack what would leave who have not yet, because another found too much."""
    known = {*found.after, *found.after.refused}
    left = tuple(name for name in case.intruders if name not in known)
    if not left:
        return found
    after = _joined_risks(case, found.after, case.attacked(found.masking, "attack again", left))
    return replace(found, after=after, before=after if found.after is found.before else found.before)


def _attacked_first(case: MaskingSetting, masking: Masking, attempts: list[Attempt]) -> Risks:
    """Attack by all; after an attempt in vain first by who found too much, and by others where he no longer does."""
    if not attempts or attempts[-1].worst not in case.intruders:
        return case.attacked(masking)
    worst = attempts[-1].worst
    first = case.attacked(masking, only=(worst,))
    others = tuple(name for name in case.intruders if name != worst)
    if not others or (not case.judge.met(first) and case.plan.swap is None):
        return first
    return _joined_risks(case, first, case.attacked(masking, only=others))


def _bounding_risks(risks: Risks, bounds: Mapping[str, str]) -> Risks:
    """Return for those who take too long what bounds them; who is bounded by no more than one draw was not tried."""
    able = {name: by for name, by in bounds.items() if by in risks and risks[by].ceiling is not None}
    found = {
        name: replace(risks[by], notes=(Note("attacks.bounded_by_other", {"by": by}), *risks[by].notes))
        for name, by in able.items()
    }
    return Risks(
        found, {name: f"{by} gave no bound for him" for name, by in bounds.items() if name not in able}
    )


def _joined_risks(case: MaskingSetting, *some: Risks) -> Risks:
    """Put what several intruders found in the order of the plan."""
    found = {name: risks[name] for name in case.intruders for risks in some if name in risks}
    return Risks(found, {name: why for risks in some for name, why in risks.refused.items()})


def _next_scale(case: MaskingSetting, mask: Any, factor: float, attempts: list[Attempt]) -> float | None:
    """Return the next scale; nothing where the plan takes the noise as given, or there is no larger one."""
    if case.plan.calibrate is None or not has_scale(mask):
        return None
    raised = sum(one.how == "raised" for one in attempts)
    following = factor * (1 + RAISED * (raised + 1))
    try:
        case.at(mask, following).card(case.table)
    except BadPlan:
        return None
    return following


def attempt(case: MaskingSetting, risks: Risks, factor: float, how: str, swaps: int = 0) -> Attempt:
    """Write down an attempt."""
    worst = case.judge.worst(risks)
    if worst is None:
        return Attempt(factor, how, "", float("nan"), 0.0, met=False, swaps=swaps)
    rate = risks[worst.name].rate
    return Attempt(factor, how, worst.name, worst.figure, rate, case.judge.met(risks), swaps)


def swap_until_met(case: MaskingSetting, found: ToleranceResult, attempts: list[Attempt]) -> ToleranceResult:
    """Swap against whom the plan names, or the quickest who finds too much, until the tolerance holds for all.

    Records are exchanged once, from the masking as it was, to a tolerance that is tighter in proportion to how much
    more another intruder finds; where one still exceeds the plan's own it is made tighter again.
    """
    best, against = found, most_dangerous(case, found.before)
    if against is None or not isinstance(case.judge.tolerance, MaxRate | Ratio):
        return found
    limit = _limit(case, found.before, against)
    worst = next((one for one in case.judge.standings(found.before) if one.name != against), None)
    for turn in range(MOST_ROUNDS):
        try:
            with case.stages.stage("swap") as step:
                swapped = swap_to(case, found.masking, against, limit, step)
        except HopelessSwap as refusal:
            if (
                not turn and limit != case.judge.tolerance
            ):  # out of reach is our own limit, not yet the plan's
                limit = case.judge.tolerance
                continue
            return (
                best
                if best is not found
                else replace(found, hopeless=f"no exchange helps: {refusal.problems[0]}")
            )
        if swapped is None:
            return best
        done = swapped.swapping is None or not swapped.swapping.met or turn == MOST_ROUNDS - 1
        risks = _attacked_again(case, swapped, worst, everybody=done)
        best = replace(found, masking=swapped, after=risks)
        made = 0 if swapped.swapping is None else swapped.swapping.swaps
        attempts.append(attempt(case, risks, attempts[-1].factor, "swapped", made))
        worst = case.judge.worst(risks)
        if worst is None or worst.met or done:
            return best
        limit = _tighter(limit, worst)
    return best


def _attacked_again(
    case: MaskingSetting, swapped: Masking, worst: ToleranceStanding | None, *, everybody: bool
) -> Risks:
    """Attack by all; first by the one who found most, and by nobody else where he still finds too much."""
    if worst is None:
        return case.attacked(swapped, "attack again")
    first = case.attacked(swapped, "attack again", (worst.name,))
    names = tuple(name for name in case.intruders if name != worst.name)
    if not names or (not everybody and not case.judge.met(first)):
        return first
    return _joined_risks(case, first, case.attacked(swapped, "attack again", names))


def _limit(case: MaskingSetting, risks: Risks, against: str) -> Any:
    """Return the tolerance for whom is swapped against: tighter, where another finds too much as well.

    By as much as the other finds more, and by what a swap against a nearest record leaves the other: who weighs all
    records still finds up to half more of those that are left than the nearest record does (measured on the survey).
    """
    tolerance, worst = case.judge.tolerance, case.judge.worst(risks)
    if not isinstance(tolerance, MaxRate) or worst is None or not worst.figure:
        return tolerance
    others = [one for one in case.judge.standings(risks) if one.name != against and not one.met]
    weighs = [
        isinstance(case.intruders[name], BayesIntruder) for name in (against, *(one.name for one in others))
    ]
    left = LEFT_TO_OTHERS if any(weighs[1:]) and not weighs[0] else 1.0
    return MaxRate(tolerance.max_rate * left * min(risks[against].rate / worst.figure, 1.0))


def _tighter(limit: Any, worst: ToleranceStanding) -> Any:
    """Return a tolerance that is tighter by what is still too much."""
    if isinstance(limit, MaxRate):
        return MaxRate(max(limit.max_rate - max(FURTHER * worst.excess, 0.005), 0.0))
    return Ratio(limit.max_ratio / (1 + max(FURTHER * worst.excess, 0.05)))


def most_dangerous(case: MaskingSetting, risks: Risks) -> str | None:
    """Return whom to swap against: whom the plan names, else who exceeds the tolerance most and compares fields.

    Swapping attacks again and again, so that of those who exceed it the nearest record goes first, who is quick.
    """
    if case.plan.swap is not None and case.plan.swap.intruder is not None:
        return case.plan.swap.intruder
    able = [
        one.name
        for one in case.judge.standings(risks)
        if not one.met and not isinstance(case.intruders[one.name], Fingerprint) and risks[one.name].fields
    ]
    told = [name for name in able if case.intruders[name].prior is None]  # the others are slow
    near = [name for name in told if isinstance(case.intruders[name], NearestRecord)]
    return next(iter(near or told or able), None)


def swap_to(
    case: MaskingSetting, masking: Masking, name: str, tolerance: Any, step: StageStep | None = None
) -> Masking | None:
    """Swap against an intruder; advice that cannot be tried is nothing."""
    from ..protect import swap

    own = case.plan.swap
    options: dict[str, Any] = {}
    if own is not None:
        options = {"domains": own.domains, "columns": own.columns, "exempt_values": own.exempt_values}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MaskwellWarning)
        try:
            # Against a sample, swaps would protect it alone. Their blocks are those of the plan: what else leaves in
            # clear is what they part the amounts from.
            blocks = named_intruders(case.plan)[name].match_blocks
            attack = replace(case.intruders[name], targets=None, match_blocks=blocks)
            return swap(masking, attack, tolerance, **options, progress=step)
        except BadPlan:
            if case.plan.swap is not None:
                raise
            return None

"""Rehearsals: a plan is drawn, attacked, swapped and judged under keys of calibration, never under the release's own.

A change to a plan that was tried on the release's own noise until it passed would be noise chosen because it came out
well. So every change is tried on other draws,

    key of draw i = subkey(release's key; purpose "calibration", stage "advice i"),

with the intruders, the audit and the bounds of the plan itself, and "would pass" is said where at least 19 of 20
passed. How often a plan passes is a chance p: with p = 0.8 that happens in 7% of the cases, with p = 0.7 in 0.8%.

How much is computed follows from counts. The quick intruders decide first, a plan is given up at its second draw that
fails, and who would take more than a draw's part of the plan's budget looks for a sample of his targets: then the
unsafe end of the interval must meet the tolerance, so that a pass is still a pass. Tests of the noise against its own
law are made in the first draw alone: by their p-values they refuse one clean release in 100,000, so that what they
refuse at all they refuse there.

What a draw came to is kept as trials of a calibration are, under the plan that was drawn: a search that was stopped
goes on from there, and the same one ends at once.

A plan that is nested in an earlier release is rehearsed as such: the earlier one is drawn again by its own card under
the key of the draw, and the new one is nested in that.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from math import nan
from typing import TYPE_CHECKING, Any

from ..attacks import BayesIntruder, NearestRecord, Risks
from ..calibration.trials import ResolvedTrial
from ..checks.catalogue import checks
from ..checks.quantile_residuals.findings import CHECKS as LAW_CHECKS
from ..errors import MaskwellError, NoLaw
from ..keys import Key
from ..masking import apply
from .budget import ONE_DRAW, allot_budget, rehearsal_intruders
from .coded_columns import CodedTable
from .intruders import intruders_of
from .meet_tolerance import MaskingSetting, ToleranceResult, attempt, swap_until_met
from .progress import Stages
from .search_part import search_part
from .tolerance_checks import Judge
from .verdict import audit_masking, compare_with_truth, is_plain_law, judge_masking

if TYPE_CHECKING:
    from ..checks import Audit
    from ..masking import Masking
    from ..plan import ReleasePlan
    from ..table import Table

DRAWS, ENOUGH = 20, 19
QUICK_LAW = 1.0  # seconds by the table of costs: as much as all quick ones take
OF_KEYS = ("predictable noise",)  # checks that are about the key and say nothing of a plan
OF_LAWS = tuple(
    check.name for check in LAW_CHECKS
)  # checks that a law which is drawn as it says does not fail


@dataclass(frozen=True, slots=True)
class Draw:
    """What one draw came to: the worst intruder's figure beside the tolerance, and why it would be refused."""

    passed: bool
    worst: str = ""
    figure: float = float("nan")
    excess: float = float("nan")
    reasons: tuple[str, ...] = ()
    failed: tuple[str, ...] = ()  # checks of the audit
    aim: float | None = (
        None  # the rate that would settle what who knows whole groups finds, where it is too much
    )
    end: float | None = None  # the unsafe end of the figure's interval, where his targets are a sample

    def to_dict(self) -> dict[str, Any]:
        """Return the draw as plain data, where nothing stands for a figure that there is not."""
        out = asdict(self) | {"reasons": list(self.reasons), "failed": list(self.failed)}
        return out | {name: None for name in ("figure", "excess") if out[name] != out[name]}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Draw:
        """Return the draw that plain data are of."""
        figure, excess = (nan if data[name] is None else float(data[name]) for name in ("figure", "excess"))
        reasons, failed = (tuple(map(str, data[name])) for name in ("reasons", "failed"))
        aim, end = (None if data[name] is None else float(data[name]) for name in ("aim", "end"))
        return cls(bool(data["passed"]), str(data["worst"]), figure, excess, reasons, failed, aim, end)

    @property
    def judged(self) -> float:
        """The figure that is held against the tolerance: the unsafe end of its interval, where it has one."""
        return self.figure if self.end is None else self.end


@dataclass(frozen=True, slots=True)
class Rehearsal:
    """The draws of one plan, as many as it took to know."""

    draws: tuple[Draw, ...]

    @property
    def passed(self) -> int:
        """How many draws passed."""
        return sum(draw.passed for draw in self.draws)

    @property
    def passes(self) -> bool:
        """Whether the plan may be said to pass."""
        return len(self.draws) == DRAWS and self.passed >= ENOUGH

    @property
    def is_sure(self) -> bool:
        """Whether every draw passed: of plans that are tried until one has 19, some have them by luck."""
        return len(self.draws) == DRAWS == self.passed

    @property
    def is_impossible(self) -> bool:
        """Whether the plan cannot be run on this file: no draw came so far as to be attacked."""
        return not self.passed and all(draw.figure != draw.figure for draw in self.draws)

    @property
    def worst(self) -> Draw:
        """The draw that exceeded the tolerance most; one refused for other reasons only where none did."""
        failed = [draw for draw in self.draws if not draw.passed] or list(self.draws)
        return max(failed, key=lambda draw: draw.excess if draw.excess == draw.excess else float("-inf"))

    @property
    def failed(self) -> set[str]:
        """The checks of the audit that some draw failed."""
        return {check for draw in self.draws for check in draw.failed}

    @property
    def aim(self) -> float | None:
        """The least rate of one record at a time that groups ask for in some draw."""
        return min((draw.aim for draw in self.draws if draw.aim is not None), default=None)

    @property
    def figure(self) -> float:
        """The mean over the draws of the worst intruder's figure."""
        known = [draw.figure for draw in self.draws if draw.figure == draw.figure]
        return sum(known) / len(known) if known else float("nan")


def rehearse_plan(
    case: MaskingSetting, *, tell: Callable[[tuple[Draw, ...]], None] | None = None, draws: int = DRAWS
) -> Rehearsal:
    """Draw a plan until it is known whether it passes: given up at the second draw that fails."""
    found: list[Draw] = []
    for number in range(draws):
        found.append(_known_draw(case, number))
        if tell is not None:
            tell(tuple(found))
        if sum(not draw.passed for draw in found) > DRAWS - ENOUGH:
            break
    return Rehearsal(tuple(found))


def _known_draw(case: MaskingSetting, number: int) -> Draw:
    """Return what a draw came to, from an earlier run where that has kept it."""
    if case.kept is None:
        return one_draw(case, number)
    name = f"{trial_name(case)}, draw {number}"
    with suppress(KeyError, TypeError, ValueError):  # kept by another hand: then it is drawn again
        if (figures := case.kept.get(name)) is not None:
            return Draw.from_dict(figures)
    found = one_draw(case, number)
    case.kept.put(name, found.to_dict())
    return found


def trial_name(case: MaskingSetting) -> str:
    """Name a changed plan by what it is, and by what leaves: draws of another one are others."""
    gone = [column.name for column in case.table.schema.columns if column.drop]
    text = json.dumps([case.plan.to_dict(), gone], sort_keys=True)
    return f"advice {hashlib.sha256(text.encode()).hexdigest()}"


def one_draw(case: MaskingSetting, number: int) -> Draw:
    """Draw, attack, swap and judge once, under a key of calibration."""
    left_out = OF_KEYS if not number else (*OF_KEYS, *OF_LAWS)
    try:
        own = drawn_anew(case, number)
        masking = own.drawn(own.mask)
        quick = quick_risks(own, masking)
        if quick is not None and not own.judge.met(quick):
            return _of_risks(own, quick)
        masking, risks = _attack_and_swap(own, masking, quick)
        if not own.judge.met(risks):
            return _of_risks(own, risks)
        utility = compare_with_truth(own.plan, masking) if _needs_utility(own.plan, number) else None
        verdict = judge_masking(own, masking, risks, utility, left_out=left_out)
    except MaskwellError as refusal:
        return Draw(False, reasons=refusal.problems)
    return replace(
        _of_risks(own, risks),
        passed=verdict.passed,
        reasons=(*verdict.reasons, *verdict.not_judged),
        failed=tuple(one.check for one in verdict.audit.failures),
        aim=verdict.aim,
    )


def first_draw(case: MaskingSetting) -> tuple[Risks, Audit]:
    """Draw, attack and audit once, to know what stands against a plan that was never drawn.

    Where the quick intruders find too much nobody else is asked, and tests of laws are left to rehearsals.
    """
    own = drawn_anew(case, 0)
    masking = own.drawn(own.mask)
    risks = quick_risks(own, masking)
    if risks is None or own.judge.met(risks):
        risks = own.attacked(masking, "advise")
    return risks, audit_masking(own, masking, risks, (*OF_KEYS, *OF_LAWS))


def quick_or_cheapest_risks(case: MaskingSetting, masking: Masking) -> Risks:
    """Attack by the quick ones of the tolerance, or by the cheapest one: what is compared is known then."""
    return quick_risks(case, masking) or _cheapest_risks(case, masking)


def _cheapest_risks(case: MaskingSetting, masking: Masking) -> Risks:
    """Attack by the cheapest of the tolerance, to know what is compared."""
    held, budget = case.judge.held, case.budget
    order = held if budget is None else sorted(held, key=lambda name: budget.part(name).seconds)
    return case.attacked(masking, "calibrate", tuple(order[:1]))


def drawn_anew(case: MaskingSetting, number: int) -> MaskingSetting:
    """Return a situation under a key of calibration; an earlier release is drawn again under it, by its own card."""
    key = advice_key(case, number)
    if case.earlier is None or not can_be_nested(case):
        return replace(case, key=key, earlier=None, stages=Stages())
    earlier = apply(ResolvedTrial(case.earlier.card), case.earlier.truth, key=key)
    return replace(case, key=key, earlier=earlier, stages=Stages())


def can_be_nested(case: MaskingSetting) -> bool:
    """Whether the earlier release can be drawn again: not if it had earlier ones itself, or exchanged records."""
    earlier = case.earlier
    return earlier is not None and earlier.number == 1 and earlier.exchange is None


def is_quickly_met(case: MaskingSetting, number: int, suspects: Collection[str] = ()) -> tuple[bool, bool]:
    """Whether a draw holds against quick intruders and checks that were failed before; whether these were made."""
    if case.kept is None:
        return _quickly_met(case, number, suspects)
    name = f"{trial_name(case)}, look {number} by {sorted(suspects)}, aim {case.aim}"
    with suppress(KeyError, TypeError):
        if (figures := case.kept.get(name)) is not None:
            return bool(figures["met"]), bool(figures["audited"])
    met, is_audited = _quickly_met(case, number, suspects)
    case.kept.put(name, {"met": met, "audited": is_audited})
    return met, is_audited


def _quickly_met(case: MaskingSetting, number: int, suspects: Collection[str]) -> tuple[bool, bool]:
    """Attack by the quickest first, then by who knows the law if he is quick too, and make the checks last."""
    own = drawn_anew(case, number)
    masking = own.drawn(own.mask)
    if own.plan.swap is not None:
        return True, False
    risks = Risks({}, {})
    for names in _in_turn(own):
        try:
            found = own.attacked(masking, "advise", names)
        except NoLaw:
            continue
        risks = Risks({**risks, **found}, {**risks.refused, **found.refused})
        if not all(one.met for judge in (own.judge, own.aimed) for one in judge.standings(found)):
            return False, False
    if not suspects:
        return True, False
    others = tuple(check.name for check in checks() if check.name not in suspects)
    return not audit_masking(own, masking, risks, others).failures, True


def _in_turn(case: MaskingSetting) -> list[tuple[str, ...]]:
    """Return who looks at a draw: nearest records, other quick ones, and who knows the law, who decides most of them.

    He does where his part of a draw is a small one.
    """
    quick = _quick_names(case)
    near = tuple(name for name in quick if isinstance(case.intruders[name], NearestRecord))
    law = tuple(name for name in case.judge.held if _weighs_law(case, name))
    return [names for names in (near, tuple(name for name in quick if name not in near), law) if names]


def _weighs_law(case: MaskingSetting, name: str) -> bool:
    """Whether an intruder weighs single records by the law on the card, in about a second."""
    plan = case.intruders[name]
    if not is_plain_law(plan):
        return False
    return case.budget is None or case.budget.part(name).seconds <= QUICK_LAW


def quick_risks(case: MaskingSetting, masking: Masking) -> Risks | None:
    """Attack by the quick ones of the tolerance; nothing where there are none, or where records will be swapped."""
    quick = _quick_names(case)
    if case.plan.swap is not None or not quick:
        return None
    try:
        return case.attacked(masking, "advise", quick)
    except NoLaw:
        return None


def _quick_names(case: MaskingSetting) -> tuple[str, ...]:
    return tuple(name for name in case.judge.held if not isinstance(case.intruders[name], BayesIntruder))


def _attack_and_swap(case: MaskingSetting, masking: Masking, quick: Risks | None) -> tuple[Masking, Risks]:
    """Let all others attack, and swap as the plan says."""
    known = {} if quick is None else {**quick.refused, **quick}
    names = tuple(name for name in case.intruders if name not in known)
    risks = case.attacked(masking, "advise", names) if names else Risks({}, {})
    if quick is not None:
        risks = Risks({**quick, **risks}, {**quick.refused, **risks.refused})
    if case.plan.swap is None or not case.may_swap or case.judge.met(risks):
        return masking, risks
    attempts = [attempt(case, risks, 1.0, "given")]
    found = swap_until_met(case, ToleranceResult(masking, risks, risks, (), case.mask), attempts)
    return found.masking, found.after


def _of_risks(case: MaskingSetting, risks: Risks) -> Draw:
    worst = case.judge.worst(risks)
    reasons = tuple(case.judge.reasons(risks))
    if worst is None:
        return Draw(False, reasons=reasons)
    return Draw(False, worst.name, worst.figure, worst.excess, reasons, end=worst.end)


def _needs_utility(plan: ReleasePlan, number: int) -> bool:
    """Whether models are fitted: in every draw where intervals are bounded, else once, to know that they can be."""
    return any(model.at_most_wider is not None for model in plan.models) or (bool(plan.models) and not number)


def advice_key(case: MaskingSetting, number: int) -> Key:
    """Return the key of a draw: one of calibration's, with which no release shares a word."""
    key = case.key if case.earlier is None else case.earlier.key
    assert key is not None
    subkey = key.subkey(
        series=case.table.schema.series, purpose="calibration", stage=f"advice {number}", column=""
    )
    return Key(subkey, seeded=key.seeded)


def situation_of(case: MaskingSetting, plan: ReleasePlan, table: Table) -> MaskingSetting:
    """Return another plan in the situation of this one, refusing what its plan refuses.

    Each draw has a small part of the plan's budget. Who takes longer looks for a sample of his targets; who takes too
    long even so takes no part, and then nobody says that the plan would pass. Neither does who is not held to the
    tolerance and whom the audit does not look at, the ceiling above all.
    """
    mask = plan.mask(table.schema)
    card = mask.card(table)
    coded = CodedTable.of(table, mask)
    intruders = intruders_of(plan, table, card)
    for own in coded.attacks(intruders).values():
        own.eligible_records(coded.table)
    judge = Judge.of(plan, intruders, coded.table)
    few = replace(plan, budget=replace(plan.budget, minutes=plan.budget.minutes * ONE_DRAW))
    intruders, budget = allot_budget(few, rehearsal_intruders(intruders, judge.held), coded, card, judge.held)
    slow = {part.name: part.why for part in budget.parts if part.why and part.name in intruders}
    untried = {**slow, **case.untried}
    return replace(
        case,
        plan=plan,
        table=table,
        mask=mask,
        coded=coded,
        intruders=intruders,
        judge=replace(judge, held=tuple(name for name in judge.held if name not in untried)),
        stages=Stages(),
        budget=budget,
        untried=untried,
    )


def on_part(case: MaskingSetting) -> MaskingSetting:
    """Return the situation on a part of a large file, in whole blocks, where draws of all of it are above the budget.

    Then nobody says that a plan would pass, but how often it did on the part.
    """
    if case.budget is None or case.budget.rehearsals >= DRAWS:
        return case
    plan = case.plan
    part = search_part(case.table, case.on_all, case.mask.card(case.table))
    if part is None:
        return case
    mask = plan.mask(part.schema)
    card, coded = mask.card(part), CodedTable.of(part, mask)
    intruders = intruders_of(plan, part, card)
    judge = Judge.of(plan, intruders, coded.table)
    intruders, budget = allot_budget(plan, intruders, coded, card, judge.held)
    slow = {one.name: one.why for one in budget.parts if one.why}
    return replace(
        case,
        table=part,
        mask=mask,
        coded=coded,
        intruders=intruders,
        judge=judge,
        budget=budget,
        untried=slow,
        part_of=len(case.table),
    )


def left_out(case: MaskingSetting, own: MaskingSetting) -> tuple[str, ...]:
    """Return who attacks the release and is too slow to attack the draws of a rehearsal."""
    return tuple(name for name in own.untried if name not in case.untried)

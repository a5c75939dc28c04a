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

A plan that is nested in an earlier release is rehearsed as such: the earlier one is drawn again by its own card under
the key of the draw, and the new one is nested in that.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from ..attacks import BayesIntruder, Risks
from ..calibration.trials import Resolved
from ..checks.catalogue import checks
from ..checks.quantile_residuals.findings import CHECKS as LAW_CHECKS
from ..errors import MaskwellError, NoLaw
from ..keystream import Key
from ..masking import apply
from .budget import ONE_DRAW, budgeted, rehearsing
from .classes import Coded
from .intruders import intruders_of
from .judging import Judge
from .meeting import Met, Situation, attempt, exchanged
from .stages import Stages
from .verdict import audited, compared, judged

if TYPE_CHECKING:
    from ..checks import Audit
    from ..masking import Masking
    from ..plan import ReleasePlan
    from ..table import Table

DRAWS, ENOUGH = 20, 19
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
    def figure(self) -> float:
        """The mean over the draws of the worst intruder's figure."""
        known = [draw.figure for draw in self.draws if draw.figure == draw.figure]
        return sum(known) / len(known) if known else float("nan")


def rehearsed(case: Situation, *, tell: Callable[[int], None] | None = None, draws: int = DRAWS) -> Rehearsal:
    """Draw a plan until it is known whether it passes: given up at the second draw that fails."""
    found: list[Draw] = []
    for number in range(draws):
        found.append(one_draw(case, number))
        if tell is not None:
            tell(number + 1)
        if sum(not draw.passed for draw in found) > DRAWS - ENOUGH:
            break
    return Rehearsal(tuple(found))


def one_draw(case: Situation, number: int) -> Draw:
    """Draw, attack, swap and judge once, under a key of calibration."""
    left_out = OF_KEYS if not number else (*OF_KEYS, *OF_LAWS)
    try:
        own = drawn_anew(case, number)
        masking = own.drawn(own.mask)
        quick = quick_risks(own, masking)
        if quick is not None and not own.judge.met(quick):
            return _of_risks(own, quick)
        masking, risks = _attacked(own, masking, quick)
        if not own.judge.met(risks):
            return _of_risks(own, risks)
        utility = compared(own.plan, masking) if _needs_utility(own.plan, number) else None
        verdict = judged(own, masking, risks, utility, left_out=left_out)
    except MaskwellError as refusal:
        return Draw(False, reasons=refusal.problems)
    return replace(
        _of_risks(own, risks),
        passed=verdict.passed,
        reasons=(*verdict.reasons, *verdict.not_judged),
        failed=tuple(one.check for one in verdict.audit.failures),
    )


def first_draw(case: Situation) -> tuple[Risks, Audit]:
    """Draw, attack and audit once, to know what stands against a plan that was never drawn.

    Noise against its own law is no matter of the plan, and is tested when a change to it is rehearsed.
    """
    own = drawn_anew(case, 0)
    masking = own.drawn(own.mask)
    risks = own.attacked(masking, "advise")
    return risks, audited(own, masking, risks, (*OF_KEYS, *OF_LAWS))


def drawn_anew(case: Situation, number: int) -> Situation:
    """Return a situation under a key of calibration; an earlier release is drawn again under it, by its own card."""
    key = advice_key(case, number)
    if case.earlier is None or not can_be_nested(case):
        return replace(case, key=key, earlier=None, stages=Stages())
    earlier = apply(Resolved(case.earlier.card), case.earlier.truth, key=key)
    return replace(case, key=key, earlier=earlier, stages=Stages())


def can_be_nested(case: Situation) -> bool:
    """Whether the earlier release can be drawn again: not if it had earlier ones itself, or exchanged records."""
    earlier = case.earlier
    return earlier is not None and earlier.number == 1 and earlier.exchange is None


def is_quickly_met(case: Situation, number: int, suspects: Collection[str] = ()) -> tuple[bool, bool]:
    """Whether a draw holds against quick intruders and checks that were failed before; whether these were made."""
    own = drawn_anew(case, number)
    masking = own.drawn(own.mask)
    quick = quick_risks(own, masking)
    if quick is not None and not own.judge.met(quick):
        return False, False
    if not suspects or own.plan.swap is not None:
        return True, False
    others = tuple(check.name for check in checks() if check.name not in suspects)
    return not audited(own, masking, quick or Risks({}, {}), others).failures, True


def quick_risks(case: Situation, masking: Masking) -> Risks | None:
    """Attack by the quick ones of the tolerance; nothing where there are none, or where records will be swapped."""
    quick = tuple(name for name in case.judge.held if not isinstance(case.intruders[name], BayesIntruder))
    if case.plan.swap is not None or not quick:
        return None
    try:
        return case.attacked(masking, "advise", quick)
    except NoLaw:
        return None


def _attacked(case: Situation, masking: Masking, quick: Risks | None) -> tuple[Masking, Risks]:
    """Let all others attack, and swap as the plan says."""
    known = {} if quick is None else {**quick.refused, **quick}
    names = tuple(name for name in case.intruders if name not in known)
    risks = case.attacked(masking, "advise", names) if names else Risks({}, {})
    if quick is not None:
        risks = Risks({**quick, **risks}, {**quick.refused, **risks.refused})
    if case.plan.swap is None or not case.may_swap or case.judge.met(risks):
        return masking, risks
    attempts = [attempt(case, risks, 1.0, "given")]
    found = exchanged(case, Met(masking, risks, risks, (), case.mask), attempts)
    return found.masking, found.after


def _of_risks(case: Situation, risks: Risks) -> Draw:
    worst = case.judge.worst(risks)
    reasons = tuple(case.judge.reasons(risks))
    if worst is None:
        return Draw(False, reasons=reasons)
    return Draw(False, worst.name, worst.figure, worst.excess, reasons)


def _needs_utility(plan: ReleasePlan, number: int) -> bool:
    """Whether models are fitted: in every draw where intervals are bounded, else once, to know that they can be."""
    return any(model.at_most_wider is not None for model in plan.models) or (bool(plan.models) and not number)


def advice_key(case: Situation, number: int) -> Key:
    """Return the key of a draw: one of calibration's, with which no release shares a word."""
    key = case.key if case.earlier is None else case.earlier.key
    assert key is not None
    subkey = key.subkey(
        series=case.table.schema.series, purpose="calibration", stage=f"advice {number}", column=""
    )
    return Key(subkey, seeded=key.seeded)


def situation_of(case: Situation, plan: ReleasePlan, table: Table) -> Situation:
    """Return another plan in the situation of this one, refusing what its plan refuses.

    Each draw has a small part of the plan's budget. Who takes longer looks for a sample of his targets; who takes too
    long even so takes no part, and then nobody says that the plan would pass. Neither does who is not held to the
    tolerance and whom the audit does not look at, the ceiling above all.
    """
    mask = plan.mask(table.schema)
    card = mask.card(table)
    coded = Coded.of(table, mask)
    intruders = intruders_of(plan, table, card)
    for own in coded.attacks(intruders).values():
        own.eligible_records(coded.table)
    judge = Judge.of(plan, intruders, coded.table)
    few = replace(plan, budget=replace(plan.budget, minutes=plan.budget.minutes * ONE_DRAW))
    intruders, budget = budgeted(few, rehearsing(intruders, judge.held), coded, card, judge.held)
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


def left_out(case: Situation, own: Situation) -> tuple[str, ...]:
    """Return who attacks the release and is too slow to attack the draws of a rehearsal."""
    return tuple(name for name in own.untried if name not in case.untried)

"""`release`: the steward's whole job. One plan in; a masked, attacked, repaired, audited and told release out."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from traceback import extract_tb
from typing import TYPE_CHECKING, Any

from ..attacks.fingerprint import floor_of
from ..errors import BadPlan, MaskwellError, MaskwellWarning
from ..io.spreadsheets import formula_warning
from ..keys import Key
from ..notes import Note, texts
from ..plan import ReleasePlan
from .attack_counts import costs_alike
from .budget import allot_budget
from .coded_columns import CodedTable
from .intruders import card_risk, intruders_of, named_intruders
from .known_columns import sensitive_words
from .meet_tolerance import MaskingSetting, meet
from .outcome import Advice, Outcome
from .plan_files import before_of, check_folders, earlier_of, read_input, unrelated_releases
from .preconditions import check_models, check_swap, is_refused_anyway, not_possible, refused_at_once
from .progress import Progress, Refusal, Stages, Tried
from .reassembly import coverage_words
from .release_key import (
    ATTEMPTS,
    OUTCOME,
    REFUSED,
    check_given_key,
    forget_refused,
    keep_refused,
    key_of,
    refused_before,
)
from .search_part import search_part
from .study import check_study, study_plan
from .tolerance_checks import Judge
from .verdict import compare_with_truth, judge_masking

if TYPE_CHECKING:
    from ..attacks import Risk
    from ..calibration import Calibration
    from ..masking import Masking
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from .noise_search import searched_noise
from .rehearsal import drawn_anew, quick_or_cheapest_risks
from .verdict import group_rate, tolerated_rate

if TYPE_CHECKING:
    from ..calibration import Calibration
    from .meet_tolerance import MaskingSetting

PACKAGE = Path(__file__).parents[1]
Texts = Mapping[
    str, str | Callable[[Path], str]
]  # by name; some are made of the files already in their folder
Reports = Callable[[Outcome], tuple[Texts, Texts]]


def release(
    plan: ReleasePlan | str | Path,
    *,
    seed: int | None = None,
    study: bool = False,
    key: Key | None = None,
    despite: str | None = None,
    progress: Progress | None = None,
    reports: Reports | None = None,
    passphrase: str | None = None,
    advise: bool = True,
    refusal: Refusal | None = None,
    tried: Tried | None = None,
) -> Outcome:
    """Do all that a plan says, in order, and write the release where nothing stands against it.

    Read, check, look at what no noise protects, calibrate (or take the noise as given), mask, attack by every intruder,
    swap until the tolerance holds and attack again, compare, audit, write. The noise is drawn once, by `key` (from the
    operating system unless given). What does not pass is not written, and the outcome says
    what would; `despite` is a reason to write it all the same, which goes on record.

    A `seed` is for studies and needs `study=True`: all is as in a release, but the folders are named as a study's.

    `progress(stage, done, total)` is called on the way, `refusal(reasons)` where nothing is released, before it is
    searched what would pass, `tried(advice)` with each change as soon as it is known what it came to: who stops the
    search has these. `reports` makes further files of the outcome: two mappings from
    names to texts (or to what makes a text of the files already in its folder), for the public folder and for the
    private one. `passphrase` seals the card where the plan names no recipients. Without `advise`, or with a reason to
    release despite it, nobody searches what would pass. The same plan and key give the same bytes (but for a sealed
    card, which is never sealed alike twice).
    """
    check_study(seed, study)
    wanted = plan if isinstance(plan, ReleasePlan) else ReleasePlan.read(plan)
    wanted = study_plan(wanted) if study else wanted
    stages = Stages(progress, refusal, tried)
    sealing = _checked_sealing(wanted, despite, key, seed, passphrase)
    own = Key.from_seed(seed) if seed is not None else key
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MaskwellWarning)  # they are among the notes of the masking
        case, mind = _situation(wanted, own, stages)
        outcome = _release_outcome(case, despite, advise)
    if seed is None and (key is not None or case.table.schema.id_column is None):
        mind = [*mind, *unrelated_releases(wanted)]
    mind = [*outcome.mind, *mind]
    if not outcome.leaves:
        if _keeps_refused(case, outcome):
            mind = [
                *mind,
                Note("pipeline.key_of_refused", {"folder": str(wanted.output.private / REFUSED)}),
            ]
        return replace(outcome, mind=tuple(mind), seconds=dict(stages.seconds))
    if outcome.masking is not None and (said := formula_warning(outcome.masking.release.table)):
        mind = [*mind, said]
    outcome = replace(outcome, mind=tuple(mind))
    with stages.stage("write"):
        _write_release_halves(
            outcome, reports, sealing, refused_before(wanted.output.private) if case.keeps_key else []
        )
        if case.keeps_key:
            forget_refused(wanted.output.private)
    target = wanted.output
    return replace(outcome, release=target.release, private=target.private, seconds=dict(stages.seconds))


def _checked_sealing(
    plan: ReleasePlan, despite: str | None, key: Key | None, seed: int | None, passphrase: str | None
) -> Callable[[bytes], bytes] | None:
    """Refuse, before any work, what can be refused; return how the card is sealed."""
    if despite is not None and not despite.strip():
        raise BadPlan("despite needs a reason: it goes on record")
    if key is not None and seed is not None:
        raise BadPlan("give a key or a seed, not both")
    check_folders(plan)
    if plan.card.leaves != "sealed":
        return None
    from ..sealing import check_recipients, seal

    if plan.card.recipients:
        check_recipients(plan.card.recipients)
        return partial(seal, to=plan.card.recipients)
    if passphrase is None:
        raise BadPlan("the card is to be sealed: name recipients in [card], or give a passphrase")
    return partial(seal, passphrase=passphrase)


def _situation(plan: ReleasePlan, key: Key | None, stages: Stages) -> tuple[MaskingSetting, list[Note]]:
    """Read the data and resolve the plan on it, refusing what cannot be done before any noise is drawn."""
    with stages.stage("read"):
        earlier, table = earlier_of(plan.output), read_input(plan)
        before = before_of(plan.output, earlier)
        if key is not None:
            check_given_key(plan, table, key)
    with stages.stage("check"):
        check_models(plan, table)
        mask = plan.mask(table.schema)
        card = mask.card(table)
        coded = CodedTable.of(table, mask)
        intruders = intruders_of(plan, table, card)
        for own in coded.attacks(intruders).values():
            own.eligible_records(coded.table)
        judge = Judge.of(plan, intruders, coded.table)
        if not judge.held:
            raise BadPlan("the tolerance is about no intruder of the plan: name some in [tolerance]")
        check_swap(plan, named_intruders(plan), table, card)
        part = None if plan.calibrate is None else search_part(coded.table, coded.attacks(intruders), card)
        on_all = intruders
        intruders, budget = allot_budget(plan, on_all, coded, card, judge.held, part)
        untried = {part.name: part.why for part in budget.parts if part.why}
        if not is_refused_anyway(plan, judge, intruders, coded, card):
            untried |= not_possible(intruders, table, card)
    mind: list[Note] = []
    keeps_key = key is None and earlier is None  # it is ours to keep, whether this leaves or not
    if keeps_key:
        key, mind = key_of(plan, table)
    case = MaskingSetting(
        plan,
        table,
        mask,
        coded,
        intruders,
        judge,
        key,
        earlier,
        stages,
        budget,
        untried,
        keeps_key,
        part,
        on_all,
        before=before,
    )
    return case, mind


def _with_found_noise(case: MaskingSetting, mask: Any) -> MaskingSetting:
    """Share the budget out anew where the noise that was found costs attacks more or less than that of the plan.

    Weaker noise may leave units too coarse for trees, stronger noise the other way round.
    """
    planned, found = (one.card(case.table) for one in (case.mask, mask))
    if case.budget is None or costs_alike(case.table, planned, found):
        return case
    intruders, budget = allot_budget(case.plan, case.on_all, case.coded, found, case.judge.held, case.part)
    budget = budget.after_search(case.budget)
    slow = {part.name: part.why for part in budget.parts if part.why}
    impossible = {name: why for name, why in case.untried.items() if not case.budget.part(name).why}
    return replace(case, intruders=intruders, budget=budget, untried={**slow, **impossible})


def _release_outcome(case: MaskingSetting, despite: str | None, advise: bool) -> Outcome:
    """Run the stages between reading and writing."""
    with case.stages.stage("fingerprint floor"):
        floor = floor_of(
            case.coded.mask, case.coded.table, next(iter(case.coded.attacks(case.intruders).values()))
        )
        refused = None if despite is not None else refused_at_once(case, floor)
    if refused is not None:
        if not advise:
            return refused
        _tell_refusal(case, refused)
        return _outcome_with_advice(refused, partial(_advice_at_once, case, refused))
    case, calibration, notes = _calibrated_setting(case, floor)
    mask = case.mask if calibration is None or not calibration.met else case.coded.whole(calibration.mask)
    case = _with_found_noise(case, mask)
    found = meet(replace(case, judge=case.aimed), mask)
    masking = found.masking
    with case.stages.stage("compare"):
        utility = compare_with_truth(case.plan, masking)
    verdict = judge_masking(case, masking, found.after, utility)
    unmet = [] if calibration is None or calibration.met else [_unmet(calibration)]
    hopeless = (found.hopeless,) if found.hopeless else ()
    reasons = verdict.reasons if verdict.passed else (*unmet, *verdict.reasons, *hopeless)
    outcome = Outcome(
        plan=case.plan,
        passed=verdict.passed,
        reasons=reasons,
        not_judged=verdict.not_judged,
        tells_stronger=verdict.tells_stronger,
        despite=None if verdict.passed else despite,
        floor=floor,
        calibration=calibration,
        masking=masking,
        before=found.before,
        after=found.after,
        swapping=masking.swapping,
        utility=utility,
        audit=verdict.audit,
        attempts=found.attempts,
        card_risk=card_risk(found.after),
        budget=case.budget,
        held=case.judge.held,
        notes=(*_budget_notes(case), *_assumptions(case, masking), *verdict.notes, *notes, *masking.notes),
    )
    if not outcome.leaves and case.key is not None and _keeps_refused(case, outcome):
        keep_refused(outcome, case.key)  # before a word of it: who stops the advice gets no other noise
    if verdict.passed or not advise or despite is not None:
        return outcome
    from .advice import plan_advice

    _tell_refusal(case, outcome)
    return _outcome_with_advice(outcome, partial(plan_advice, case, found, verdict, floor))


def _outcome_with_advice(outcome: Outcome, search: Callable[[], tuple[Advice, ...]]) -> Outcome:
    """Return a refused outcome with what would change it; a fault of that search costs the advice, never the verdict.

    It is told by its class and place: messages of other libraries may have values in them.
    """
    try:
        return replace(outcome, advice=search())
    except Exception as fault:
        own = str(fault) if isinstance(fault, MaskwellError) else ""
        frames = extract_tb(fault.__traceback__)
        last = next((one for one in reversed(frames) if PACKAGE in Path(one.filename).parents), frames[-1])
        where = {"file": Path(last.filename).name, "line": last.lineno}
        note = Note("pipeline.advice_failed", {"fault": type(fault).__name__, "message": own, **where})
        return replace(outcome, notes=(*outcome.notes, note), mind=(*outcome.mind, note))


def _keeps_refused(case: MaskingSetting, outcome: Outcome) -> bool:
    """Whether the key of a refused run is kept: it is the run's own, and noise was drawn by it."""
    return case.keeps_key and case.key is not None and outcome.masking is not None


def _tell_refusal(case: MaskingSetting, outcome: Outcome) -> None:
    if case.stages.refusal is not None:
        case.stages.refusal((*outcome.reasons, *outcome.not_judged))


def _assumptions(case: MaskingSetting, masking: Masking) -> list[Note]:
    """Say what the figures take for granted."""
    return [
        *sensitive_words(case.table, masking.card, case.plan.targets.not_known),
        *coverage_words(case.table),
    ]


def _advice_at_once(case: MaskingSetting, refused: Outcome) -> tuple[Advice, ...]:
    from .advice import advised_at_once

    return advised_at_once(case, refused)


def _budget_notes(case: MaskingSetting) -> list[Note]:
    said = [] if case.budget is None else case.budget.notes()
    if case.plan.swap is not None and not case.may_swap:
        said.append(Note("pipeline.no_swap"))
    return said


def _unmet(calibration: Calibration) -> str:
    return "; ".join(
        ["no noise was found that meets the tolerance and the bounds", *texts(calibration.notes[:1])]
    )


def _calibrated_setting(
    case: MaskingSetting, floor: Risk
) -> tuple[MaskingSetting, Calibration | None, list[Note]]:
    """Search the weakest noise where the plan asks for it and the floor leaves any hope."""
    if case.plan.calibrate is None:
        return case, None, []
    if case.plan.swap is None and case.judge.hopeless(case.intruders, floor.rate):
        return case, None, [Note("pipeline.not_calibrated", {"rate": floor.rate})]
    return searched_for_groups(case)


def _write_release_halves(
    outcome: Outcome,
    reports: Reports | None,
    sealing: Callable[[bytes], bytes] | None,
    refused: list[dict[str, Any]],
) -> None:
    """Write both halves with the reports; the private one has all figures, the reason, and what was refused before."""
    target, masking = outcome.plan.output, outcome.masking
    assert masking is not None
    told = replace(outcome, release=target.release, private=target.private)
    public, inside = reports(told) if reports is not None else ({}, {})
    figures = json.dumps(outcome.to_dict(), indent=1, allow_nan=False) + "\n"
    inside = {**inside, OUTCOME: figures}
    if refused:
        inside[ATTEMPTS] = json.dumps(refused, indent=1) + "\n"
    masking.write(
        release=target.release,
        private=target.private,
        format=target.format,
        card=outcome.plan.card.leaves,
        sealing=sealing,
        public={name: _writer(text) for name, text in public.items()},
        inside={name: _writer(text) for name, text in inside.items()},
    )


def _writer(text: str | Callable[[Path], str]) -> Callable[[Path], None]:
    def write(path: Path) -> None:
        path.write_text(text if isinstance(text, str) else text(path.parent), encoding="utf-8")

    return write


# The search for noise where a group is dropped: one record at a time must find so little that groups find no
# more.
#
# Who knows a whole group finds more than who knows one record, by a factor that the noise changes too. Let a be
# the rate of one record at a time that noise is searched for, s(a) the weakest noise found, and g(s) the largest
# rate at which who knows whole groups is within the tolerance under s. Wanted is the largest a with a <= g(s(a)).
# The first a is g of the noise in the plan; then halves of the way, on the log scale, between a and g(s(a)):
# stronger noise leaves companions less to tell, so that g(s(a)) falls with a and the answer lies between the two.


MOST_SEARCHES = 3  # each as long as a search without groups
NEAR = 1.15  # ratio of two rates that are not told apart by the draws of a search


@dataclass(frozen=True)
class _Search:
    """A search for noise: with which aim, what was found, and the rate that groups allow under that noise."""

    case: MaskingSetting
    calibration: Calibration
    notes: list[Note]
    aim: float
    allowed: float

    @property
    def holds(self) -> bool:
        return self.calibration.met and self.aim <= self.allowed


def searched_for_groups(case: MaskingSetting) -> tuple[MaskingSetting, Calibration, list[Note]]:
    """Search the weakest noise; where groups ask for less than the tolerance, that at which they are within it too."""
    most = tolerated_rate(case)
    allowed = group_rate_of(case) if most else None
    if allowed is None or not 0 < allowed < most:
        return case, *searched_noise(case)
    searches = list(_searches(case, allowed, most))
    held = [one for one in searches if one.holds]
    best = max(held, key=lambda one: one.aim) if held else min(searches, key=lambda one: one.aim)
    aimed = Note("pipeline.aim_for_groups", {"rate": best.aim})
    return best.case, best.calibration, [*best.notes, aimed]


def _searches(case: MaskingSetting, aim: float, most: float) -> Iterator[_Search]:
    """Search with one aim after another, each between those that hold and those that do not."""
    low, high = 0.0, most
    for _ in range(MOST_SEARCHES):
        own = replace(case, aim=aim)
        found, notes = searched_noise(own)
        allowed = 0.0
        if found.met:
            mask = case.coded.whole(found.mask)
            allowed = group_rate_of(replace(own, mask=mask)) or 0.0
        search = _Search(own, found, notes, aim, allowed)
        yield search
        low, high = (aim, min(high, max(allowed, aim))) if search.holds else (max(low, allowed), aim)
        if low <= 0 or high <= NEAR * low:
            return
        aim = (low * high) ** 0.5


def group_rate_of(case: MaskingSetting) -> float | None:
    """Return what `group_rate` is by a draw of calibration's; nothing where no group is dropped."""
    groups = [column for column in case.table.schema.columns if "group" in column.roles and column.drop]
    if not groups:
        return None
    own = drawn_anew(case, 0)
    masking = own.drawn(own.mask)
    return group_rate(own, masking, quick_or_cheapest_risks(own, masking))

"""`release`: the steward's whole job. One plan in; a masked, attacked, repaired, audited and told release out."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..attacks.fingerprint import floor_of
from ..errors import BadPlan, MaskwellWarning
from ..keystream import Key
from ..plan import ReleasePlan
from .classes import Coded
from .intruders import card_risk, intruders_of
from .judging import Judge
from .keys import ATTEMPTS, OUTCOME, REFUSED, forget_refused, keep_refused, key_of, refused_before
from .meeting import Situation, meet
from .outcome import Outcome
from .reading import check_folders, earlier_of, read_input, unrelated_releases
from .stages import Progress, Stages
from .verdict import compared, judged

if TYPE_CHECKING:
    from ..attacks import Risk
    from ..calibration import Calibration

Reports = Callable[[Outcome], tuple[Mapping[str, str], Mapping[str, str]]]


def release(
    plan: ReleasePlan | str | Path,
    *,
    seed: int | None = None,
    key: Key | None = None,
    despite: str | None = None,
    progress: Progress | None = None,
    reports: Reports | None = None,
    passphrase: str | None = None,
) -> Outcome:
    """Do all that a plan says, in order, and write the release where nothing stands against it.

    Read, check, look at what no noise protects, calibrate (or take the noise as given), mask, attack by every intruder,
    swap until the tolerance holds and attack again, compare, audit, write. The noise is drawn once, by `key` (from the
    operating system unless given; a `seed` is for studies). What does not pass is not written, and the outcome says
    what would; `despite` is a reason to write it all the same, which goes on record.

    `progress(stage, done, total)` is called on the way. `reports` makes further files of the outcome: two mappings from
    names to texts, for the public folder and for the private one. `passphrase` seals the card where the plan names no
    recipients. The same plan and key give the same bytes (but for a sealed card, which is never sealed alike twice).
    """
    wanted = plan if isinstance(plan, ReleasePlan) else ReleasePlan.read(plan)
    stages = Stages(progress)
    sealing = _checked(wanted, despite, key, seed, passphrase)
    own = Key.from_seed(seed) if seed is not None else key
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MaskwellWarning)  # they are among the notes of the masking
        case, notes, mind = _situation(wanted, own, stages)
        outcome = _found(case, despite, tuple(notes))
    if seed is None and (key is not None or case.table.schema.id_column is None):
        mind = [*mind, *unrelated_releases(wanted)]
    is_kept = (
        own is None and wanted.output.earlier is None
    )  # the key is ours to keep, whether this leaves or not
    if not outcome.leaves:
        if is_kept and case.key is not None:
            keep_refused(outcome, case.key)
            mind = [
                *mind,
                f"the key is kept in {wanted.output.private / REFUSED}: the next run draws the same noise",
            ]
        return replace(outcome, mind=tuple(mind), seconds=dict(stages.seconds))
    outcome = replace(outcome, mind=tuple(mind))
    with stages.stage("write"):
        _written(outcome, reports, sealing, refused_before(wanted.output.private) if is_kept else [])
        if is_kept:
            forget_refused(wanted.output.private)
    target = wanted.output
    return replace(outcome, release=target.release, private=target.private, seconds=dict(stages.seconds))


def _checked(
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


def _situation(plan: ReleasePlan, key: Key | None, stages: Stages) -> tuple[Situation, list[str], list[str]]:
    """Read the data and resolve the plan on it, refusing what cannot be done before any noise is drawn."""
    with stages.stage("read"):
        earlier, table = earlier_of(plan.output), read_input(plan)
    with stages.stage("check"):
        mask = plan.mask(table.schema)
        mask.card(table)
        coded = Coded.of(table, mask)
        intruders, said = intruders_of(plan, table)
        for own in coded.attacks(intruders).values():
            own.eligible_records(coded.table)
        judge = Judge.of(plan, intruders, coded.table)
        if not judge.held:
            raise BadPlan("the tolerance is about no intruder of the plan: name some in [tolerance]")
    mind: list[str] = []
    if key is None and earlier is None:
        key, mind = key_of(plan, table)
    case = Situation(plan, table, mask, coded, intruders, judge, key, earlier, stages)
    return case, said, mind


def _found(case: Situation, despite: str | None, said: tuple[str, ...]) -> Outcome:
    """Run the stages between reading and writing."""
    with case.stages.stage("fingerprint floor"):
        floor = floor_of(
            case.coded.mask, case.coded.table, next(iter(case.coded.attacks(case.intruders).values()))
        )
    calibration, notes = _calibrated(case, floor)
    mask = case.mask if calibration is None or not calibration.met else case.coded.whole(calibration.mask)
    found = meet(case, mask)
    masking = found.masking
    with case.stages.stage("compare"):
        utility = compared(case.plan, masking)
    verdict = judged(case, masking, found.after, utility)
    unmet = [] if calibration is None or calibration.met else [_unmet(calibration)]
    hopeless = (found.hopeless,) if found.hopeless else ()
    reasons = verdict.reasons if verdict.passed else (*unmet, *verdict.reasons, *hopeless)
    outcome = Outcome(
        plan=case.plan,
        passed=verdict.passed,
        reasons=reasons,
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
        held=case.judge.held,
        notes=(*said, *notes, *masking.notes),
    )
    if verdict.passed:
        return outcome
    from .advising import advised

    return replace(outcome, advice=advised(case, found, verdict, floor))


def _unmet(calibration: Calibration) -> str:
    return "; ".join(["no noise was found that meets the tolerance and the bounds", *calibration.notes[:1]])


def _calibrated(case: Situation, floor: Risk) -> tuple[Calibration | None, list[str]]:
    """Search the weakest noise where the plan asks for it and the floor leaves any hope."""
    own = case.plan.calibrate
    if own is None:
        return None, []
    if case.plan.swap is None and case.judge.hopeless(case.intruders, floor.rate):
        return None, [f"not calibrated: {floor.rate:.1%} of the targets are found whatever the noise"]
    from ..attacks import Fingerprint
    from ..calibration import calibrate

    attacks = {
        name: plan
        for name, plan in case.coded.attacks(case.intruders).items()
        if name in case.judge.held and not isinstance(plan, Fingerprint)
    }
    bounds = _bounds(case.plan)
    with case.stages.stage("calibrate") as step:
        trials = iter(range(1, 10_000))
        found = calibrate(
            case.coded.mask,
            case.coded.table,
            attacks,
            case.judge.tolerance,
            over=case.judge.over,
            key=case.key if case.earlier is None else case.earlier.key,
            replicates=own.replicates,
            confirmations=own.confirmations,
            precision=own.precision,
            level=own.level,
            per_column=own.per_column,
            floor="report",
            progress=lambda _: step(next(trials)),
            bounds=bounds,
        )
    return found, []


def _bounds(plan: ReleasePlan) -> list[Any]:
    from ..calibration import Bound

    bounded = [(one, one.at_most_wider) for one in plan.models if one.at_most_wider is not None]
    return [Bound(one.formula, one.family, most) for one, most in bounded]


def _written(
    outcome: Outcome,
    reports: Reports | None,
    sealing: Callable[[bytes], bytes] | None,
    refused: list[dict[str, Any]],
) -> None:
    """Write both halves with the reports; the private one has all figures, the reason, and what was refused before."""
    target = outcome.plan.output
    told = replace(outcome, release=target.release, private=target.private)
    public, inside = reports(told) if reports is not None else ({}, {})
    figures = json.dumps(outcome.to_dict(), indent=1, allow_nan=False) + "\n"
    inside = {**inside, OUTCOME: figures}
    if refused:
        inside[ATTEMPTS] = json.dumps(refused, indent=1) + "\n"
    outcome.masking.write(
        release=target.release,
        private=target.private,
        format=target.format,
        card=outcome.plan.card.leaves,
        sealing=sealing,
        public={name: _writer(text) for name, text in public.items()},
        inside={name: _writer(text) for name, text in inside.items()},
    )


def _writer(text: str) -> Callable[[Path], None]:
    def write(path: Path) -> None:
        path.write_text(text, encoding="utf-8")

    return write

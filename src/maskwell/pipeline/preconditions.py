"""What is known before the first long step: who cannot be tried at all, and a floor that no noise brings down.

Every intruder attacks a few records first, under the card of the whole file: what his plan refuses is said within
seconds, and not after a search for the noise. The fingerprint floor is counted before any noise is drawn; where it
lies above what is tolerated, or above what the audit allows, or where guessing within blocks finds more than is
tolerated, or where columns in clear put the members of groups together again, nothing that follows could change the
answer.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ..attacks import Fingerprint, Linkage, Risk, Risks
from ..attacks.attack_run import attack_by
from ..attacks.fingerprint import floor_of
from ..attacks.linkage.em import EM
from ..attacks.protocol import Attack
from ..calibration.trials import ResolvedTrial
from ..errors import BadInput, BadPlan, MaskwellError, MaskwellWarning, NoLaw, nearest, raise_all
from ..keys import Key
from ..masking import apply
from ..masking.totals import check_identities
from ..notes import Note
from .coded_columns import CodedTable
from .high_floor import HighFloor, all_high, audit_limit
from .intruders import card_risk, intruders_of
from .outcome import Advice, Outcome
from .reassembly import Reassembly, sure_reassemblies, to_leave_out
from .tolerance_checks import Judge
from .verdict import unfit_reason

if TYPE_CHECKING:
    from ..card import NoiseCard
    from ..masking import Masking
    from ..plan import ReleasePlan
    from ..table import Table
    from .meet_tolerance import MaskingSetting

TRIED = (150, 2_000)  # records: what fails on so few is tried on more before it is believed
MANY_COLUMNS = 15  # with noise: a trial on few records then takes up to minutes
FLOOR_CHECK = "fingerprint floor"  # of the audit
FINGERPRINT = "fingerprint alone"  # who looks at it, where the plan has nobody of that kind
NOT_ATTACKED = "not tried: the release is refused before any noise is drawn"
MOST_COLUMNS = 4
SURE = 4.0  # standard errors of the share that is guessed right: by so much more than the limit
ROOM = 0.5  # of what is tolerated: who finds as much by guessing leaves as much again for what noise does not hide
FEW_STEPS = 20  # of EM: whether it can be run at all does not depend on them


def not_possible(plans: Mapping[str, Attack], table: Table, card: NoiseCard) -> dict[str, str]:
    """Try every intruder on a few records; say of those who need a law that is not there why they are not tried.

    What is wrong with a plan is raised.
    """
    found: dict[str, str] = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MaskwellWarning)
        for name, plan in plans.items():
            try:
                _try_out(plan, table, card)
            except NoLaw as error:
                found[name] = str(error)
            except (BadPlan, BadInput) as error:
                check_identities(table, card)  # a fault of the masks, whoever is tried first
                raise BadPlan([f"{name}: {problem}" for problem in error.problems]) from None
    return found


def is_refused_anyway(
    plan: ReleasePlan, judge: Judge, intruders: Mapping[str, Attack], coded: CodedTable, card: NoiseCard
) -> bool:
    """Whether trials would be dear (noise on many columns) and the fingerprint floor refuses the release whatever."""
    if len(card.masked) <= MANY_COLUMNS or plan.swap is not None:
        return False
    floor = floor_of(coded.mask, coded.table, next(iter(coded.attacks(intruders).values())))
    too_high = floor.rate > audit_limit(plan) or judge.hopeless(dict(intruders), floor.rate)
    return too_high and not floor.sure_floor.spared


def check_swap(plan: ReleasePlan, intruders: Mapping[str, Attack], table: Table, card: NoiseCard) -> None:
    """Refuse a swap that would only rename rows, whoever of the intruders it is against."""
    from ..protect.reach import check_rest

    own = plan.swap
    if own is None:
        return
    able = [attack for attack in intruders.values() if not isinstance(attack, Fingerprint)]
    check_rest(table, card, able if own.intruder is None else [intruders[own.intruder]], own.columns)


def check_models(plan: ReleasePlan, table: Table) -> None:
    """Refuse models, and groups of [utility], that name a column which is not there or does not leave."""
    from ..analysis.formulas.column_uses import names_in
    from ..analysis.formulas.whitelist import check

    problems: list[str] = []
    for model in plan.models:
        try:
            named = names_in(check(model.formula, table.schema.names))
        except BadPlan as error:
            problems += [f"[[models]] {model.formula}: {problem}" for problem in error.problems]
            continue
        problems += [f"[[models]] {model.formula}: {one}" for one in _not_released(named, table)]
    problems += [f"[utility] groups: {one}" for one in _not_released(plan.utility.groups or (), table)]
    raise_all(problems, BadPlan)


def _not_released(names: Iterable[str], table: Table) -> list[str]:
    schema, found = table.schema, list[str]()
    for name in dict.fromkeys(names):
        if name not in schema:
            found.append(f"there is no column {name!r}{nearest(name, schema.names)}")
        elif schema[name].drop:
            found.append(
                f"column {name!r} is dropped by the schema and does not leave: take drop out, or leave it out here"
            )
        elif "id" in schema[name].roles:
            found.append(f"column {name!r} is the id, which leaves renumbered: leave it out here")
    return found


def unfit_models(plan: ReleasePlan, table: Table, card: NoiseCard) -> list[str]:
    """Say which models of the plan `fit` refuses on a release of some records, and of more of them."""
    refused = dict.fromkeys(plan.models, "")
    for count in TRIED:
        if not refused:
            break
        masking = _some_masked(table, card, count)
        tried = {model: unfit_reason(model, masking) for model in refused}
        refused = {model: why for model, why in tried.items() if why}
    return list(refused.values())


def _some_masked(table: Table, card: NoiseCard, count: int) -> Masking:
    """Mask some records, spread over the file, by the card of all of them."""
    rows = np.unique(np.linspace(0, len(table) - 1, min(count, len(table))).astype(np.int64))
    some = table if len(rows) == len(table) else table.take(rows)
    return apply(ResolvedTrial(card), some, key=Key.from_seed(0))


def _try_out(plan: Any, table: Table, card: NoiseCard) -> None:
    for count in TRIED:
        records = min(count, len(table))
        try:
            attack_by(_small(plan, records), _some_masked(table, card, count))
        except (BadPlan, BadInput):
            if records == len(table) or count == TRIED[-1]:
                raise
        else:
            return


def _small(plan: Any, records: int) -> Any:
    """Return a plan as it is tried on few records: on all of them, with fewer helpers, and a few steps of EM."""
    options = {option.name for option in fields(plan)}
    changes: dict[str, Any] = dict.fromkeys(options & {"largest_target_block", "target_blocks", "targets"})
    if isinstance(plan, Linkage) and isinstance(plan.weights, EM):
        changes["weights"] = replace(plan.weights, iterations=min(plan.weights.iterations, FEW_STEPS))
    if isinstance(plan.helpers, int) and plan.helpers:
        changes["helpers"] = max(min(plan.helpers, records - 1), 0)
    return replace(plan, **changes)


def refused_at_once(case: MaskingSetting, floor: Risk) -> Outcome | None:
    """Return the outcome where it is known before any noise is drawn; nothing where it is open.

    What is advised on the floor comes after what is advised on groups: both are to be followed.
    """
    high = all_high(case, floor)
    missing = [name for name in case.judge.held if name in case.untried]
    groups = _groups(case)
    unfit = unfit_models(case.plan, case.table, case.mask.card(case.table))
    if not high and not missing and not groups and not unfit:
        return None
    own = next((name for name, plan in case.intruders.items() if isinstance(plan, Fingerprint)), FINGERPRINT)
    others = {name: case.untried.get(name, NOT_ATTACKED) for name in case.intruders if name != own}
    risks = Risks({own: floor}, others)
    not_judged = [one.said for one, _ in groups] + [
        f"{name} is held to the tolerance and cannot be tried: {case.untried[name]}" for name in missing
    ]
    advice = [
        Advice(
            f"say in the plan why the tolerance is not held against {name!r}, under [tolerance.not_held], or choose "
            "masks and blocks by which he can be tried"
        )
        for name in missing
    ]
    return Outcome(
        plan=case.plan,
        passed=False,
        reasons=(*(reason for one in high for reason in one.reasons), *unfit),
        despite=None,
        floor=floor,
        calibration=None,
        masking=None,
        before=risks,
        after=risks,
        swapping=None,
        utility=None,
        audit=None,
        attempts=(),
        card_risk=card_risk(risks),
        not_judged=tuple(not_judged),
        budget=case.budget,
        advice=(
            *(one for _, one in groups if one is not None),
            *_floor_advice(case, high, [name for _, one in groups if one for name in one.drops]),
            *advice,
        ),
        held=case.judge.held,
        notes=(Note("pipeline.refused_before_noise"),),
    )


def _groups(case: MaskingSetting) -> list[tuple[Reassembly, Advice | None]]:
    """Return the groups that columns in clear put together whatever the noise, each with what to leave out.

    Of a subsample it is known only once it is drawn; a swap moves amounts, and leaves blocks in the row. Nothing is
    advised where what is left out takes nobody apart; of a second group it is what is left after the first one's.
    """
    table, card = case.coded.table, case.coded.mask.card(case.coded.table)
    if card.subsampled is not None:
        return []
    clear = [
        column.name
        for column in table.schema.columns
        if not column.drop
        and column.name not in card.masked
        and (case.plan.swap is None or column.roles & {"block", "group"})
    ]
    out = list[tuple[Reassembly, Advice | None]]()
    fewer, left = table, clear
    for found in sure_reassemblies(table, clear):
        known = (found,) if left is clear else sure_reassemblies(fewer, left)
        before = next((one for one in known if one.column == found.column), None)
        advice = None if before is None else group_advice(before, to_leave_out(fewer, left, found.column))
        out.append((found, advice))
        if advice is not None:
            schema = fewer.schema
            fewer = replace(
                fewer,
                schema=schema.changed({name: replace(schema[name], drop=True) for name in advice.drops}),
            )
            left = [name for name in left if name not in advice.drops]
    return out


def group_advice(before: Reassembly, after: Reassembly) -> Advice | None:
    """Say what to leave out so that fewer groups stand together, or fewer records where as many groups do.

    `after.columns` are what is left out.
    """
    columns = ", ".join(after.columns)
    if after.together < before.together:
        fewer = f"fewer groups of {before.column} stand together"
        counts = f"it is {after.together:,} of {after.groups:,}, where it was {before.together:,}"
    elif after.records_together < before.records_together:
        fewer = f"fewer records stand together with their groups of {before.column}"
        counts = (
            f"it is {after.records_together:,} of {after.records:,}, where it was {before.records_together:,}"
        )
    else:
        return None
    said = (
        f"drop {columns} in the schema, or make classes coarser, so that {fewer}: without {columns} {counts}"
    )
    figures: dict[str, float | int | str | None] = {"columns": columns, "together": after.share}
    return Advice(said, figures, drops=tuple(after.columns))


def _floor_advice(case: MaskingSetting, high: Sequence[HighFloor], dropped: Sequence[str]) -> list[Advice]:
    """Return what brings the floor and guessing down, computed without the columns that other advice drops."""
    if dropped and high:
        try:
            fewer = _setting_without(case, dropped)
            first = next(iter(fewer.coded.attacks(fewer.intruders).values()))
            high = all_high(fewer, floor_of(fewer.coded.mask, fewer.coded.table, first))
        except MaskwellError:  # no mask or nobody who compares is left: then both are told side by side
            return [said for one in high for said in one.advice]
        said = [said for one in high for said in one.advice]
        return [replace(one, change=f"with {', '.join(dropped)} dropped: {one.change}") for one in said]
    return [said for one in high for said in one.advice]


def _setting_without(case: MaskingSetting, dropped: Sequence[str]) -> MaskingSetting:
    """Return the situation of a plan that leaves some columns out."""
    from .candidates import Candidate, without

    fewer = without(Candidate((), case.plan.masks), tuple(dropped))
    plan, table = fewer.plan(case.plan), fewer.table(case.table)
    mask = plan.mask(table.schema)
    coded = CodedTable.of(table, mask)
    intruders = intruders_of(plan, table, mask.card(table))
    judge = Judge.of(plan, intruders, coded.table)
    return replace(case, plan=plan, table=table, mask=mask, coded=coded, intruders=intruders, judge=judge)

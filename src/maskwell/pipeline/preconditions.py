"""What is known before the first long step: who cannot be tried at all, and a floor that no noise brings down.

Every intruder attacks a few records first, under the card of the whole file: what his plan refuses is said within
seconds, and not after a search for the noise. The fingerprint floor is counted before any noise is drawn; where it
lies above what is tolerated, or above what the audit allows, or where guessing within blocks finds more than is
tolerated, or where columns in clear put the members of groups together again, nothing that follows could change the
answer.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ..attacks import BayesIntruder, Fingerprint, Linkage, NearestRecord, Risk, Risks
from ..attacks.fingerprint import floor_of
from ..attacks.floor import HIDDEN, remedy
from ..attacks.latent import EM
from ..attacks.running import attack_by
from ..attacks.sampled_floor import Sampling
from ..attacks.surviving import PATTERN
from ..calibration.judging import ALL
from ..calibration.trials import Resolved
from ..errors import BadInput, BadPlan, MaskwellError, MaskwellWarning, NoLaw, nearest, raise_all
from ..keystream import Key
from ..masking import apply
from .attack_counts import counts_of
from .classes import Coded
from .intruders import card_risk
from .outcome import Advice, Outcome
from .reassembly import Reassembly, sure_reassemblies, to_leave_out
from .verdict import unfitted

if TYPE_CHECKING:
    from ..card import NoiseCard
    from ..masking import Masking
    from ..plan import ReleasePlan
    from ..table import Table
    from .costs import Counts
    from .judging import Judge
    from .meeting import Situation

TRIED = (150, 2_000)  # records: what fails on so few is tried on more before it is believed
MANY_COLUMNS = 15  # with noise: a trial on few records then takes up to minutes
FLOOR_CHECK = "fingerprint floor"  # of the audit
FINGERPRINT = "fingerprint alone"  # who looks at it, where the plan has nobody of that kind
NOT_ATTACKED = "not tried: the release is refused before any noise is drawn"
MOST_COLUMNS = 4
SURE = 4.0  # standard errors of the share that is guessed right: by so much more than the limit
ROOM = 0.5  # of what is tolerated: who finds as much by guessing leaves as much again for what noise does not hide
FEW_STEPS = 20  # of EM: whether it can be run at all does not depend on them


def not_possible(plans: Mapping[str, Any], table: Table, card: NoiseCard) -> dict[str, str]:
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
                raise BadPlan([f"{name}: {problem}" for problem in error.problems]) from None
    return found


def is_refused_anyway(
    plan: ReleasePlan, judge: Judge, intruders: Mapping[str, Any], coded: Coded, card: NoiseCard
) -> bool:
    """Whether trials would be dear (noise on many columns) and the fingerprint floor refuses the release whatever."""
    if len(card.masked) <= MANY_COLUMNS or plan.swap is not None:
        return False
    floor = floor_of(coded.mask, coded.table, next(iter(coded.attacks(intruders).values())))
    too_high = floor.rate > _audit_limit(plan) or judge.hopeless(dict(intruders), floor.rate)
    return too_high and not floor.floor.spared


def check_swap(plan: ReleasePlan, intruders: Mapping[str, Any], table: Table, card: NoiseCard) -> None:
    """Refuse a swap that would only rename rows, whoever of the intruders it is against."""
    from ..protect.reach import check_rest

    own = plan.swap
    if own is None:
        return
    able = [attack for attack in intruders.values() if not isinstance(attack, Fingerprint)]
    check_rest(table, card, able if own.intruder is None else [intruders[own.intruder]], own.columns)


def check_models(plan: ReleasePlan, table: Table) -> None:
    """Refuse models, and groups of [utility], that name a column which is not there or does not leave."""
    from ..analysis.formulas.uses import names_in
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
        tried = {model: unfitted(model, masking) for model in refused}
        refused = {model: why for model, why in tried.items() if why}
    return list(refused.values())


def _some_masked(table: Table, card: NoiseCard, count: int) -> Masking:
    """Mask some records, spread over the file, by the card of all of them."""
    rows = np.unique(np.linspace(0, len(table) - 1, min(count, len(table))).astype(np.int64))
    some = table if len(rows) == len(table) else table.take(rows)
    return apply(Resolved(card), some, key=Key.from_seed(0))


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
    changes: dict[str, Any] = {
        name: None for name in ("largest_target_block", "target_blocks", "targets") if hasattr(plan, name)
    }
    if isinstance(plan, Linkage) and isinstance(plan.weights, EM):
        changes["weights"] = replace(plan.weights, iterations=min(plan.weights.iterations, FEW_STEPS))
    helpers = getattr(plan, "helpers", 0)
    if isinstance(helpers, int) and helpers:
        changes["helpers"] = max(min(helpers, records - 1), 0)
    return replace(plan, **changes)


def refused_at_once(case: Situation, floor: Risk) -> Outcome | None:
    """Return the outcome where it is known before any noise is drawn; nothing where it is open."""
    high = [one for one in (high_floor(case, floor), high_guessing(case)) if one is not None]
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
        advice=(*(one for _, one in groups), *(said for one in high for said in one.advice), *advice),
        held=case.judge.held,
        notes=("refused before any noise was drawn: nothing that follows could change it",),
    )


def _groups(case: Situation) -> list[tuple[Reassembly, Advice]]:
    """Return the groups that columns in clear put together whatever the noise, each with what to leave out.

    Of a subsample it is known only once it is drawn; a swap moves amounts, and leaves blocks in the row.
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
    out = []
    for found in sure_reassemblies(table, clear):
        after = to_leave_out(table, clear, found.column)
        columns = ", ".join(after.columns)
        said = (
            f"drop {columns} in the schema, or make classes coarser, so that fewer groups of {found.column} stand "
            f"together: without {columns} it is {after.together:,} of {after.groups:,}, where it was {found.together:,}"
        )
        figures: dict[str, float | int | str | None] = {"columns": columns, "together": after.share}
        out.append((found, Advice(said, figures, drops=tuple(after.columns))))
    return out


@dataclass(frozen=True, slots=True)
class HighFloor:
    """A floor above what is allowed: why, and which changes bring it down."""

    reasons: tuple[str, ...]
    advice: tuple[Advice, ...]


def high_floor(case: Situation, floor: Risk) -> HighFloor | None:
    """Say why a release must be refused for its fingerprint floor; nothing where noise or swaps could still help."""
    sure = _sure_floor(case, floor)
    if sure is None:
        return None
    reasons, allowed = list[str](), list[float]()
    limit = _tolerated(case)
    if case.judge.hopeless(case.intruders, sure.rate):
        reasons.append(
            f"{_found(sure)}; tolerated is at most {100 * limit:.4g}%" if limit < 1 else _found(sure)
        )
        allowed.append(limit)
    fails = _audit_limit(case.plan)
    if sure.rate > fails:
        reasons.append(f"{_found(sure)}; the audit fails from {fails:.2%} on")
        allowed.append(fails)
    if not reasons:
        return None
    return HighFloor(tuple(reasons), tuple(_advice(case, sure, min(allowed))))


def _found(floor: Risk) -> str:
    return (
        f"{floor.rate:.1%} of {floor.targets:,} targets{_whose(floor.released_share, floor.among_released)} have a "
        "fingerprint of their own, which no noise hides from whoever knows it"
    )


def _whose(share: float | None, is_known: bool) -> str:
    """Say of whom a rate is where a share of the records is released."""
    if share is None:
        return ""
    return f" in the release (a share of {share:.4g} is expected there)" if is_known else ", released or not,"


def _sure_floor(case: Situation, floor: Risk) -> Risk | None:
    """Return the floor that neither noise nor swaps change: of values that noise spares it is not sure.

    A swap moves the columns that are compared, and what is missing or coded in them, within the blocks; what stays in
    the row for sure are blocks and classes that nobody compares.
    """
    if floor.floor.spared:
        return None
    if case.plan.swap is None:
        return floor
    schema = case.coded.table.schema
    stays = [
        name
        for name in floor.floor.values
        if "block" in schema[name].roles or ("key" not in schema[name].roles and not schema[name].is_number)
    ]
    if not stays:
        return None
    first = next(iter(case.coded.attacks(case.intruders).values()))
    return floor_of(case.coded.mask, case.coded.table, first, columns=stays)


def _tolerated(case: Situation) -> float:
    limit = getattr(case.judge.tolerance, "max_rate", None)
    return 1.0 if limit is None else float(limit)


def _audit_limit(plan: ReleasePlan) -> float:
    from ..checks.catalogue import checks

    own = plan.audit.limits.get(FLOOR_CHECK, {}).get("fail")
    known = next(check.limits.fail for check in checks() if check.name == FLOOR_CHECK)
    limit = known if own is None else own
    return 1.0 if limit is None else float(limit)


def _advice(case: Situation, floor: Risk, allowed: float) -> list[Advice]:
    """Say which columns bring the floor down, one alone, or one after the other until it is low enough.

    Gaps and codes count too: a column whose pattern tells records apart goes with them.
    """
    columns, remaining = list[str](), floor.floor.unique
    for one in floor.floor.steps.to_pylist():
        if remaining / floor.floor.targets <= allowed:
            break
        columns.append(one["column"])
        remaining = one["remaining"]
    columns = list(dict.fromkeys(columns))
    advice = []
    if columns and remaining / floor.floor.targets <= allowed:
        left = _floor_without(case, columns)
        share = remaining / floor.floor.targets if left is None else left
        figures: dict[str, float | int | str | None] = {"columns": ", ".join(columns), "floor": share}
        change = (
            f"drop {', '.join(columns)} in the schema, or make their classes coarser until the floor is below"
        )
        said = f"{change} {100 * allowed:.4g}%: without them it is {share:.2%}"
        advice.append(Advice(said, figures, drops=tuple(columns)))
    alone = [one for one in floor.floor.without.to_pylist() if one["part"] not in (PATTERN, HIDDEN)]
    advice += [
        Advice(
            f"{remedy(one['column'], one['part'])}: {one['remaining']:,.0f} of {floor.floor.unique:,.0f} "
            "fingerprints remain",
            {
                "column": one["column"],
                "remaining": one["remaining"],
                "floor": one["remaining"] / floor.floor.targets,
            },
        )
        for one in alone[:MOST_COLUMNS]
        if one["remaining"] < floor.floor.unique
    ]
    return advice


def _floor_without(case: Situation, columns: list[str]) -> float | None:
    """Count the floor again without some columns; nothing where no mask is left, or records are swapped."""
    from .candidates import Candidate, without

    if case.plan.swap is not None:
        return None
    fewer = without(Candidate((), case.plan.masks), tuple(columns))
    try:
        table = fewer.table(case.table)
        mask = fewer.plan(case.plan).mask(table.schema)
        first = next(iter(Coded.of(table, mask).attacks(case.intruders).values()))
        return float(floor_of(mask, table, first).rate)
    except MaskwellError:
        return None


def guessed(counts: Counts, sampling: Sampling | None = None) -> float:
    """Return the rate of who guesses within blocks: a target among n records of its block is found with 1 / n.

    Where a sample is released it is expected among the targets in it, unless nobody knows who they are.
    """
    alike = np.maximum(counts.records, 1)
    chance = 1 / alike if sampling is None else sampling.guessing(alike)
    return float((counts.targets * chance).sum()) / max(counts.total, 1)


def high_guessing(case: Situation) -> HighFloor | None:
    """Say why it must be refused where guessing within blocks finds more than is tolerated: noise can do no better.

    Only of intruders who stand by every link, and where the excess is beyond what a draw of the noise (and of the
    sample, where one is released) can hide.
    """
    limit, card = _tolerated(case), case.coded.mask.card(case.coded.table)
    if case.judge.over != ALL:
        return None
    for name, plan in case.coded.attacks(case.intruders).items():
        if name not in case.judge.held or not _stands_by_all(plan):
            continue
        counts = counts_of(plan, case.coded.table, card)
        sampling = _sampling(plan, card)
        rate = guessed(counts, sampling)
        total = max(counts.total if sampling is None else round(sampling.targets(counts.total)), 1)
        whose = "" if sampling is None else _whose(sampling.share, sampling.is_known)
        if rate - SURE * (rate / total) ** 0.5 > limit:
            reason = (
                f"{name}: guessing within the blocks finds {rate:.1%} of {total:,} targets{whose} "
                f"whatever the noise; tolerated is at most {100 * limit:.4g}%"
            )
            return HighFloor((reason,), tuple(_coarser(case, plan, card, limit)))
    return None


def _sampling(plan: Any, card: NoiseCard) -> Sampling | None:
    """Return how a sample is released, as an intruder knows it; nothing where all records are."""
    return None if card.subsampled is None else Sampling(card.subsampled, plan.response_knowledge)


def _stands_by_all(plan: Any) -> bool:
    """Whether an intruder claims a link for every target."""
    return isinstance(plan, NearestRecord) or (isinstance(plan, BayesIntruder) and plan.threshold == 0)


def _coarser(case: Situation, plan: Any, card: NoiseCard, limit: float) -> list[Advice]:
    """Take away, one after the other, the block columns that make guessing easiest, until it finds few enough."""
    table, sampling = case.coded.table, _sampling(plan, card)
    left = [name for name in plan.match_columns(table.schema) if not table.schema[name].drop]
    dropped, rate = list[str](), 1.0
    while left and rate > ROOM * limit:
        fewer = {name: _with_blocks(plan, [one for one in left if one != name]) for name in left}
        rates = {name: guessed(counts_of(one, table, card), sampling) for name, one in fewer.items()}
        best = min(left, key=lambda name: rates[name])
        dropped, rate = [*dropped, best], rates[best]
        left.remove(best)
    if rate > limit:
        return []
    columns = ", ".join(dropped)
    change = (
        f"drop {columns} in the schema, or make their classes coarser, so that more records share a block"
    )
    figures: dict[str, float | int | str | None] = {"columns": columns, "guessing": rate}
    return [Advice(f"{change}: without them guessing finds {rate:.1%}", figures, drops=tuple(dropped))]


def _with_blocks(plan: Any, columns: list[str]) -> Any:
    return replace(plan, match_blocks=tuple(columns))

"""What no noise brings down: fingerprints of their own, and guessing among records alike in all that leaves in clear.

Both are counted before any noise is drawn. Guessing finds, of n records in c combinations of what leaves in clear (the
values of columns that nothing masks, and which values of the others are missing or coded), c / n. What to drop is
counted as a draft counts it (`plan.hidden_columns`), so that both name the same columns.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ..attacks import BayesIntruder, NearestRecord, Risk
from ..attacks.blind_guess import alike_numbers
from ..attacks.fingerprint import floor_of
from ..attacks.joint_codes import block_codes
from ..attacks.protocol import Ints
from ..attacks.sampled_uniqueness import SampledBlocks
from ..attacks.uniqueness import HIDDEN, remedy
from ..attacks.unmasked_values import PATTERN
from ..calibration.measures import ALL
from ..errors import MaskwellError
from ..plan.hidden_columns import ROOM as CLEAR_ROOM
from ..plan.hidden_columns import Clear, columns_to_drop
from ..tolerances import MaxRate
from .attack_counts import counts_of
from .coded_columns import CodedTable
from .outcome import Advice

if TYPE_CHECKING:
    from ..card import NoiseCard
    from ..plan import ReleasePlan
    from ..table import Floats, Table
    from .costs import AttackCounts
    from .meet_tolerance import MaskingSetting

FLOOR_CHECK = "fingerprint floor"  # of the audit
BY_GAPS = ", among those with the same values missing or coded,"
MOST_COLUMNS = 4
WORTH_A_LINE = 0.1  # of the fingerprints: advice by which fewer go says nothing
SURE = 4.0  # standard errors of the share that is guessed right: by so much more than the limit
MOST_IN_TURN = 30  # columns of which each is tried: of more a tenth is dropped at once
ROOM = 0.5  # of what is tolerated: who finds as much by guessing leaves as much again for what noise does not hide


@dataclass(frozen=True, slots=True)
class HighFloor:
    """A floor above what is allowed: why, and which changes bring it down."""

    reasons: tuple[str, ...]
    advice: tuple[Advice, ...]


def all_high(case: MaskingSetting, floor: Risk) -> list[HighFloor]:
    """Return what no noise brings down, fingerprints and guessing, with the columns to drop for both together."""
    by_floor = high_floor(case, floor)
    by_guessing = high_guessing(case, is_refused=by_floor is not None)
    high = [one for one in (by_floor, by_guessing) if one is not None]
    together = _together(case, floor) if high else None
    if together is None:
        return high
    rest = [replace(one, advice=tuple(said for said in one.advice if not said.drops)) for one in high]
    return [replace(rest[0], advice=(together, *rest[0].advice)), *rest[1:]]


def _together(case: MaskingSetting, floor: Risk) -> Advice | None:
    """Return the fewest columns without which neither the floor nor guessing is too high, as a draft counts them.

    Nothing where targets are some of the records, or where a swap or a sample changes what is alike.
    """
    clear = _clear_of(case, floor)
    if clear is None:
        return None
    allowed = min(audit_limit(case.plan), _max_tolerated_rate(case))
    columns = columns_to_drop(clear, allowed, CLEAR_ROOM * _max_tolerated_rate(case))
    if not columns:
        return None
    alone, guessing = clear.alone(columns), clear.guessing(columns)
    figures: dict[str, float | int | str | None] = {
        "columns": ", ".join(columns),
        "floor": alone,
        "guessing": guessing,
    }
    gaps = [name for name in columns if name in clear.with_gaps()]
    filled = f" ({', '.join(gaps)}: or fill what is missing or coded)" if gaps else ""
    said = (
        f"drop {', '.join(columns)} in the schema{filled}, or {coarser(columns)}: {without(columns)} {alone:.2%} "
        f"have a fingerprint of their own, and guessing finds {guessing:.1%}"
    )
    return Advice(said, figures, drops=tuple(columns))


def _clear_of(case: MaskingSetting, floor: Risk) -> Clear | None:
    table, card = case.coded.table, case.coded.mask.card(case.coded.table)
    attacks = case.coded.attacks(case.intruders).values()
    if case.plan.swap is not None or card.subsampled is not None or floor.sure_floor.spared:
        return None
    if any(len(one.eligible_records(table)) < len(table) for one in attacks):
        return None
    schema, totals = table.schema, {total for total, _ in card.recomputed}
    masked = {*card.masked, *totals}
    kept = [column for column in schema.columns if not column.drop]
    drawn = tuple(c.name for c in kept if c.name in masked and c.name not in totals)
    known = [c.name for c in kept if c.name not in masked and c.may_be_known]
    clear = Clear(table, drawn, tuple(c.name for c in kept if c.name in masked), tuple(known), floor)
    return replace(clear, blocks=tuple(name for name in known if clear.codes(name).any()))


def high_floor(case: MaskingSetting, floor: Risk) -> HighFloor | None:
    """Say why a release must be refused for its fingerprint floor; nothing where noise or swaps could still help."""
    sure = _sure_floor(case, floor)
    if sure is None:
        return None
    said = dict[float, str]()
    limit = _max_tolerated_rate(case)
    if case.judge.hopeless(case.intruders, sure.rate):
        said[limit] = f"; tolerated is at most {100 * limit:.4g}%" if limit < 1 else ""
    fails = audit_limit(case.plan)
    if sure.rate > fails:
        said.setdefault(fails, f"; the audit fails from {fails:.2%} on")
    if not said:
        return None
    allowed = min(said)  # the limit that binds: the other is met with it
    return HighFloor((_fingerprint_sentence(sure) + said[allowed],), tuple(_advice(case, sure, allowed)))


def _fingerprint_sentence(floor: Risk) -> str:
    return (
        f"{floor.rate:.1%} of {floor.targets:,} targets{_whose(floor.released_share, floor.among_released)} have a "
        "fingerprint of their own, which no noise hides from whoever knows it"
    )


def _whose(share: float | None, is_known: bool) -> str:
    """Say of whom a rate is where a share of the records is released."""
    if share is None:
        return ""
    return f" in the release (a share of {share:.4g} is expected there)" if is_known else ", released or not,"


def _sure_floor(case: MaskingSetting, floor: Risk) -> Risk | None:
    """Return the floor that neither noise nor swaps change: of values that noise spares it is not sure.

    A swap moves the columns that are compared, and what is missing or coded in them, within the blocks; what stays in
    the row for sure are blocks and classes that nobody compares.
    """
    if floor.sure_floor.spared:
        return None
    if case.plan.swap is None:
        return floor
    schema = case.coded.table.schema
    stays = [
        name
        for name in floor.sure_floor.values
        if "block" in schema[name].roles or ("key" not in schema[name].roles and not schema[name].is_number)
    ]
    if not stays:
        return None
    first = next(iter(case.coded.attacks(case.intruders).values()))
    return floor_of(case.coded.mask, case.coded.table, first, columns=stays)


def _max_tolerated_rate(case: MaskingSetting) -> float:
    limit = case.judge.tolerance.max_rate if isinstance(case.judge.tolerance, MaxRate) else None
    return 1.0 if limit is None else float(limit)


def audit_limit(plan: ReleasePlan) -> float:
    """Return the share of fingerprints of their own from which on the audit fails."""
    from ..checks.catalogue import checks

    own = plan.audit.limits.get(FLOOR_CHECK, {}).get("fail")
    known = next(check.limits.fail for check in checks() if check.name == FLOOR_CHECK)
    limit = known if own is None else own
    return 1.0 if limit is None else float(limit)


def _advice(case: MaskingSetting, floor: Risk, allowed: float) -> list[Advice]:
    """Say which columns bring the floor down, one alone, or one after the other until it is low enough.

    Gaps and codes count too: a column whose pattern tells records apart goes with them.
    """
    columns, remaining = list[str](), floor.sure_floor.unique
    for one in floor.sure_floor.steps.to_pylist():
        if remaining / floor.sure_floor.targets <= allowed:
            break
        columns.append(one["column"])
        remaining = one["remaining"]
    columns = list(dict.fromkeys(columns))
    advice = []
    if columns and remaining / floor.sure_floor.targets <= allowed:
        left = _floor_without(case, columns)
        share = remaining / floor.sure_floor.targets if left is None else left
        figures: dict[str, float | int | str | None] = {"columns": ", ".join(columns), "floor": share}
        change = f"drop {', '.join(columns)} in the schema, or {coarser(columns)} until the floor is below"
        said = f"{change} {100 * allowed:.4g}%: {without(columns)} it is {share:.2%}"
        advice.append(Advice(said, figures, drops=tuple(columns)))
    alone = [one for one in floor.sure_floor.without.to_pylist() if one["part"] not in (PATTERN, HIDDEN)]
    advice += [
        Advice(
            f"{remedy(one['column'], one['part'])}: {one['remaining']:,.0f} of {floor.sure_floor.unique:,.0f} "
            "fingerprints remain",
            {
                "column": one["column"],
                "remaining": one["remaining"],
                "floor": one["remaining"] / floor.sure_floor.targets,
            },
        )
        for one in alone[:MOST_COLUMNS]
        if lowers_the_count(one["remaining"], floor.sure_floor.unique)
    ]
    return advice


def lowers_the_count(after: float, before: float) -> bool:
    """Whether a change lowers a count by so much that it is worth a line of advice."""
    return after <= (1 - WORTH_A_LINE) * before and after < before


def _floor_without(case: MaskingSetting, columns: list[str]) -> float | None:
    """Count the floor again without some columns; nothing where no mask is left, or records are swapped."""
    from .candidates import Candidate, without

    if case.plan.swap is not None:
        return None
    fewer = without(Candidate((), case.plan.masks), tuple(columns))
    try:
        table = fewer.table(case.table)
        mask = fewer.plan(case.plan).mask(table.schema)
        first = next(iter(CodedTable.of(table, mask).attacks(case.intruders).values()))
        return float(floor_of(mask, table, first).rate)
    except MaskwellError:
        return None


def block_guessing_rate(counts: AttackCounts, sampling: SampledBlocks | None = None) -> float:
    """Return the rate of who guesses within blocks: a target among n records of its block is found with 1 / n.

    Where a sample is released it is expected among the targets in it, unless nobody knows who they are.
    """
    chance = _chance(np.maximum(counts.records, 1), sampling)
    return float((counts.targets * chance).sum()) / max(counts.total, 1)


def _chance(alike: Ints, sampling: SampledBlocks | None) -> Floats:
    """Return how likely a guess is right among so many records alike."""
    return np.asarray(1 / alike if sampling is None else sampling.guessing(alike))


def _sampled_blocks(plan: Any, card: NoiseCard) -> SampledBlocks | None:
    """Return how a sample is released, as an intruder knows it; nothing where all records are."""
    return None if card.subsampled is None else SampledBlocks(card.subsampled, plan.response_knowledge)


def high_guessing(case: MaskingSetting, *, is_refused: bool = False) -> HighFloor | None:
    """Say why it must be refused where guessing among those alike finds more than is tolerated: noise does no better.

    Alike are records of one block with the same values missing or coded. Only of intruders who stand by every link; and
    where the excess is beyond what a draw of the noise (and of the sample, where one is released) can hide, or it is
    refused for another reason anyway.
    """
    limit, card = _max_tolerated_rate(case), case.coded.mask.card(case.coded.table)
    if case.judge.over != ALL:
        return None
    found = dict[str, tuple[float, int, str]]()
    attacks = case.coded.attacks(case.intruders)
    for name, plan in attacks.items():
        if name in case.judge.held and _stands_by_all(plan):
            counts = counts_of(plan, case.coded.table, card)
            sampling = _sampled_blocks(plan, card)
            by_blocks, by_gaps = (
                block_guessing_rate(counts, sampling),
                _guessed_by_gaps(plan, case.coded.table, card),
            )
            rate, beside = max((by_blocks, ""), (by_gaps, BY_GAPS))
            total = max(counts.total if sampling is None else round(sampling.targets(counts.total)), 1)
            room = 0.0 if is_refused else SURE * (rate / total) ** 0.5
            if rate - room > limit:
                found[name] = rate, total, beside
    if not found:
        return None
    worst = max(found, key=lambda name: found[name][0])
    rate, total, beside = found[worst]
    sampling = _sampled_blocks(attacks[worst], card)
    whose = "" if sampling is None else _whose(sampling.share, sampling.is_known)
    reason = (
        f"{worst}: guessing within the blocks{beside} finds {rate:.1%} of {total:,} targets{whose} whatever the noise; "
        f"tolerated is at most {100 * limit:.4g}%"
    )
    return HighFloor((reason,), tuple(_coarser(case, attacks[worst], card, limit)))


def _guessed_by_gaps(plan: Any, table: Table, card: NoiseCard) -> float:
    """Return the rate of guessing among the records of a block with the same values missing or coded."""
    masked = set(card.masked)
    blocks = [n for n in plan.match_columns(table.schema) if n in table.schema and n not in masked]
    numbers = alike_numbers(table, table, [n for n in blocks if not table.schema[n].drop], card)
    if numbers is None:
        return 0.0
    alike = numbers[1]
    targets = alike[plan.eligible_records(table)]
    chance = _chance(np.bincount(alike)[targets], _sampled_blocks(plan, card))
    return float(chance.sum()) / max(len(targets), 1)


def _stands_by_all(plan: Any) -> bool:
    """Whether an intruder claims a link for every target."""
    return isinstance(plan, NearestRecord) or (isinstance(plan, BayesIntruder) and plan.threshold == 0)


def _rate(plan: Any, table: Table, card: NoiseCard) -> float:
    """Return the rate of guessing within blocks, among those with the same values missing or coded."""
    return max(
        block_guessing_rate(counts_of(plan, table, card), _sampled_blocks(plan, card)),
        _guessed_by_gaps(plan, table, card),
    )


def _coarser(case: MaskingSetting, plan: Any, card: NoiseCard, limit: float) -> list[Advice]:
    """Take away, one after the other, the block columns that make guessing easiest, until it finds few enough.

    Of very many, first those that tell most by themselves, a tenth of what is left at a time.
    """
    table = case.coded.table
    left = [name for name in plan.match_columns(table.schema) if not table.schema[name].drop]
    dropped, rate = list[str](), 1.0
    left = sorted(left, key=lambda name: _entropy(table, name)) if len(left) > MOST_IN_TURN else left
    while len(left) > MOST_IN_TURN and rate > ROOM * limit:
        left, gone = left[: -len(left) // 10], left[-len(left) // 10 :]
        dropped += reversed(gone)
        rate = _rate(_with_blocks(plan, left), table, card)
    while left and rate > ROOM * limit:
        rates = {
            name: _rate(_with_blocks(plan, [one for one in left if one != name]), table, card)
            for name in left
        }
        best = min(left, key=lambda name: rates[name])
        dropped, rate = [*dropped, best], rates[best]
        left.remove(best)
    if rate > limit:
        return []
    columns = ", ".join(dropped)
    change = f"drop {columns} in the schema, or {coarser(dropped)}, so that more records share a block"
    figures: dict[str, float | int | str | None] = {"columns": columns, "guessing": rate}
    said = f"{change}: {without(dropped)} guessing finds {rate:.1%}"
    return [Advice(said, figures, drops=tuple(dropped))]


def coarser(columns: Sequence[str]) -> str:
    """Return what may be done with the classes of columns, of one or of several."""
    return f"make {'its' if len(columns) == 1 else 'their'} classes coarser"


def without(columns: Sequence[str]) -> str:
    """Return the words for a release without these columns."""
    return f"without {'it' if len(columns) == 1 else 'them'}"


def _entropy(table: Table, name: str) -> float:
    """Return the entropy of a column's values, a missing one among them: how much it tells records apart."""
    share = np.unique(block_codes(table, table, [name])[0], return_counts=True)[1] / max(len(table), 1)
    return float(-(share * np.log(share)).sum())


def _with_blocks(plan: Any, columns: list[str]) -> Any:
    return replace(plan, match_blocks=tuple(columns))

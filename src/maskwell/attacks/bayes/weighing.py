"""The answer of an intruder who knows his target alone: every candidate weighed, parameters integrated out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from ...errors import BadInput
from ...masking import Release
from ...table import Floats
from ..contract import Bools, Guess, Ints, Known, OrderOf
from ..pairwise import laws_on
from ..ranking import LINKED, NO_CANDIDATE, Best, Blocks, answered, partners_of, search
from .ground import Ground, clear_fields
from .odds import Odds
from .pairing import swapped_columns
from .reading import BACKWARD, Reading

if TYPE_CHECKING:
    from .scaled import Scaled

UPPER_BOUND = (
    "f(z) comes from the steward's own true records of the block: an upper bound on what an outsider can do"
)
TOO_SURE = (
    "records at risk were exchanged far more often than the card's share says: his probabilities are too sure"
)
CAUTIOUS = (
    "his values are off: his probabilities are rough, because any true value is as likely to him as any other"
)
IF_RELEASED = (
    "the forward kernel has no weight for units that were not released: probabilities are given release"
)
NODES = (9, 17, 33, 65)  # for each unknown parameter, until the probabilities stop changing
SETTLED = 1e-4
HARDLY = -300.0  # the log density of what lies more than 20 sds from everything
KINDS = (LINKED, "likelier absent", "below the threshold", NO_CANDIDATE)


@dataclass(frozen=True, slots=True)
class Answer:
    """One reading's answer."""

    odds: Odds | Scaled
    best: Best
    is_tied: Callable[[Ints, Ints], Bools]
    probability: Floats


def weighed(plan: Any, known: Known, release: Release, order_of: OrderOf, fields: Sequence[str]) -> Guess:
    """Link every target by its posterior, reading the laws as the plan says."""
    uncertain = () if plan.error is None else plan.error.columns
    columns = plan.match_columns(release.table.schema)
    orders = order_of(known.targets, "known"), order_of(release.table, "released")
    ours, theirs = plan.blocks_of(known.targets, release.table)
    blocks = Blocks(ours, theirs, orders)
    ground = Ground.of(known, release, columns, clear_fields(release, fields, uncertain), order_of)
    reading = Reading(plan.kernel, plan.prior, plan.error, release.table)
    answer, said = _settled(plan, known, release, fields, ground, blocks, reading)
    check_possible(answer.odds)
    odds, best = answer.odds, answer.best
    guess = answered(
        plan,
        blocks,
        best,
        answer.is_tied,
        partners_of(odds, blocks, best, to_masked=plan.to_masked),
        scores=(best.score, best.second_score),
        columns=_columns(answer, plan.to_masked),
        fields=tuple(fields),
        notes=[*_notes(plan, release, ground), *said],
    )
    return judged(_with_standing(guess, answer, plan.to_masked), plan.threshold)


def _settled(
    plan: Any,
    known: Known,
    release: Release,
    fields: Sequence[str],
    ground: Ground,
    blocks: Blocks,
    reading: Reading,
) -> tuple[Answer, list[str]]:
    """Answer; with a prior, with more and more nodes until the probabilities stop changing."""

    def answer(count: int) -> Answer:
        odds = odds_of(plan, known, release, fields, ground, replace(reading, count=count))
        best, is_tied = search(odds, blocks, to_masked=plan.to_masked, assignment=plan.assignment)
        return Answer(odds, best, is_tied, odds.probability(best, to_masked=plan.to_masked))

    if (quick := _quick(plan, known, release, fields, ground)) is not None:
        return quick
    if plan.prior is None:
        return answer(0), []
    now, change, count = answer(NODES[0]), np.inf, NODES[0]
    for count in NODES[1:]:
        before, now = now, answer(count)
        change = _change(before.probability, now.probability)
        if change <= SETTLED:
            return now, [
                f"{count} nodes for each unknown; with half of them no probability differs by {change:.0e}"
            ]
    return now, [
        f"NOT SETTLED: with {count} nodes for each unknown, probabilities still change by {change:.0e}"
    ]


def _quick(
    plan: Any, known: Known, release: Release, fields: Sequence[str], ground: Ground
) -> tuple[Answer, list[str]] | None:
    """Answer by trees where many records have plain noise; nothing where that is not possible."""
    plain = plan.prior is None and plan.error is None and plan.kernel not in BACKWARD
    if not plain or plan.assignment != "best" or not plan.to_masked or swapped_columns(release.card):
        return None
    from .scaled import scaled

    reading = Reading(plan.kernel, None, None, release.table)
    by_truth = plan.kernel == "coherent" and plan.marginal == "truth"
    nothing = np.zeros(len(release.table))
    logs = nothing if by_truth else log_f(plan, release, fields, ground.matching)
    odds = scaled(
        plan, known, release, fields, ground, (logs, log_absent(known, release, fields, ground, reading))
    )
    if odds is None:
        return None
    best, log_weights, neglected = odds.best()
    said = f"candidates left unseen: no probability is off by more than a share of {1.05 * neglected:.1e}"
    tied = partial(odds.is_tied, best)
    return Answer(odds, best, tied, odds.probability(best, log_weights)), [said]


def _change(before: Floats, now: Floats) -> float:
    linked = np.isfinite(before) & np.isfinite(now)
    return float(np.abs(now - before)[linked].max(initial=0.0))


def odds_of(
    plan: Any, known: Known, release: Release, fields: Sequence[str], ground: Ground, reading: Reading
) -> Odds:
    """Prepare the scores of pairs by a kernel and its marginal."""
    read = reading.exact if plan.error is None else reading.erring
    if plan.kernel == "coherent" and plan.marginal == "truth":
        known = known if reading.prior is None else replace(known, shared={})
        odds = Odds.by_truth(ground, known, release, fields, (reading.exact, read))
    else:
        logs = (
            log_f(plan, release, fields, ground.matching),
            log_absent(known, release, fields, ground, reading),
        )
        odds = Odds.by_given(ground, known, release, fields, read, logs)
    uncertain = clear_fields(release, fields)
    return replace(
        odds, targets=odds.targets.with_terms(reading.in_clear(uncertain, release.table, known.targets))
    )


def log_f(plan: Any, release: Release, fields: Sequence[str], blocks: Ints) -> Floats:
    """Return the f(z) of an outsider, or nothing for kernels without one."""
    if plan.kernel != "coherent":
        return np.zeros(len(release.table))
    from .marginals import log_gaussian, log_given

    if callable(plan.marginal):
        return log_given(plan.marginal, release.table)
    uncertain = () if plan.error is None else plan.error.columns
    sure = [n for n in fields if n not in uncertain or release.card.law_of(n) is not None]
    return log_gaussian(release.table, sure, release.card, blocks)


def log_absent(
    known: Known, release: Release, fields: Sequence[str], ground: Ground, reading: Reading
) -> Floats:
    """Return the log weight of not being released: the units that were not, by how well the target fits among them."""
    nothing = np.full(len(known.targets), -np.inf)
    if reading.kernel == "forward" or not ground.absent.any():
        return nothing
    with np.errstate(divide="ignore"):
        counts = np.log(ground.absent)
    if reading.kernel not in BACKWARD:
        return np.asarray(counts)
    return np.asarray(counts + reading.log_unreleased(laws_on(release.card, fields), known.targets))


def check_possible(odds: Odds | Scaled) -> None:
    """Refuse a card under which most released records can hardly have come from any true one."""
    if not isinstance(odds, Odds) or odds.truth is None:
        return
    blocks = odds.ground.blocks
    looked_at = np.isin(blocks.released, blocks.known)
    if looked_at.any() and np.median(np.maximum(odds.log_f[looked_at], -1e300)) < HARDLY:
        raise BadInput(
            "under this card most released records cannot have come from a true one: is it the card of another release?"
        )


def _columns(answer: Answer, to_masked: bool) -> dict[str, Floats]:
    columns = {"probability": answer.probability}
    if to_masked and answer.odds.ground.absent.any():
        total = answer.odds.log_total(answer.best, to_masked=True)
        columns["not_released"] = np.exp(answer.odds.log_absent - np.where(np.isneginf(total), 0.0, total))
    return columns


def _notes(plan: Any, release: Release, ground: Ground) -> list[str]:
    notes = [UPPER_BOUND] if plan.kernel == "coherent" and plan.marginal == "truth" else []
    notes += [CAUTIOUS] if plan.error is not None else []
    notes += [TOO_SURE] if swapped_columns(release.card) else []
    notes += [IF_RELEASED] if plan.kernel == "forward" and plan.to_masked and ground.absent.any() else []
    return notes


def _with_standing(guess: Guess, answer: Answer, to_masked: bool) -> Guess:
    def standing(rows: Ints, found: Ints) -> Any:
        return answer.odds.standing(answer.best, rows, found, to_masked=to_masked)

    return replace(guess, figures={**guess.figures, "standing": standing})


def judged(guess: Guess, threshold: float) -> Guess:
    """Let the intruder stand by the links he is sure enough of, and say which of them he doubts."""
    probability, linked = guess.columns["probability"], guess.found >= 0
    absent = guess.columns.get("not_released")
    sure = linked & ((np.nan_to_num(probability) > threshold) | (threshold == 0))
    kind = np.where(linked, np.where(sure, 0, 2), 3)
    if absent is not None:
        kind = np.where(sure & (absent > np.nan_to_num(probability)), 1, kind)
    shown = [0, *([1] if absent is not None else []), *([2] if threshold > 0 else []), 3]
    place = np.full(len(KINDS), 0)
    place[shown] = np.arange(len(shown))
    return replace(guess, claimed=sure, kind=place[kind], kinds=tuple(KINDS[i] for i in shown))

"""The answer of an intruder who knows its target alone: every candidate weighed, parameters integrated out.

P(i | x, z) = w_i / (sum of w_j + w_absent), w from `posterior_odds`; w_absent is the number of units that were not
released, times f(x | not released) for kernels f(x|z): (1), (2) and (4) of Fienberg, Makov and Sanil (1997), where the
printed (N - n) stands for (N - n)/N. With a prior the integral over the parameters is made finer until no probability
changes by more than SETTLED. Chosen by `BayesIntruder` without helpers; large blocks of plain normal noise go to
`pruned_sums`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from ...errors import BadInput
from ...masking import Release
from ...notes import Note
from ...table import Floats
from ..candidate_scores import (
    LINKED,
    NO_CANDIDATE,
    BestCandidates,
    Blocks,
    guess_from_links,
    partners_of,
    search,
)
from ..one_to_one import proved_gap
from ..pair_density import laws_on
from ..protocol import Bools, Guess, IntruderKnowledge, Ints, OrderOf
from .candidates import CandidateBlocks, clear_fields, status_laws
from .law_kernels import BACKWARD, LawReading
from .likelihood import PairLikelihood, swapped_columns
from .posterior_odds import Odds, log_absent, log_f, swapped_log_density

if TYPE_CHECKING:
    from .plan import BayesIntruder
    from .pruned_sums.scores import TreeScores

NODES = (9, 17)  # for each unknown parameter, where their number is fixed
TOLERANCES = (1e-3, 1e-6, 1e-9)  # of integrals over unknown parameters, until the probabilities stop changing
SETTLED = 1e-4  # change of a probability between two tolerances that ends them
SAME = 1e-9  # probabilities that differ by a smaller share differ by rounding alone
HARDLY = -300.0  # the log of a density, beside that without noise: what lies more than 20 sds from everything
MOST_LOOKED_AT = 1_000  # released records by which a card is judged: a median needs no more
KINDS = (LINKED, "likelier absent", "below the threshold", NO_CANDIDATE)


@dataclass(frozen=True, slots=True)
class PosteriorAnswer:
    """One reading's answer."""

    odds: Odds | TreeScores
    best: BestCandidates
    is_tied: Callable[[Ints, Ints], Bools]
    probability: Floats
    gap: float | None = None


def link_by_posterior(
    plan: BayesIntruder, known: IntruderKnowledge, release: Release, order_of: OrderOf, fields: Sequence[str]
) -> Guess:
    """Link every target by its posterior, reading the laws as the plan says."""
    uncertain = () if plan.error is None else plan.error.columns
    columns = plan.match_columns(release.table.schema)
    orders = order_of(known.targets, "known"), order_of(release.table, "released")
    ours, theirs = plan.blocks_of(known.targets, release.table)
    blocks = Blocks(ours, theirs, orders)
    clear, laws = clear_fields(release, fields, uncertain), status_laws(plan, release, fields)
    ground = CandidateBlocks.of(known, release, columns, clear, order_of, laws)
    reading = LawReading(plan.kernel, plan.prior, plan.error, release.table)
    answer, said = _posterior_answer(plan, known, release, fields, ground, blocks, reading)
    check_possible(answer.odds, release, fields)
    odds, best = answer.odds, answer.best
    guess = guess_from_links(
        plan,
        blocks,
        best,
        answer.is_tied,
        partners_of(odds, blocks, best, to_masked=plan.to_masked),
        scores=(best.score, best.second_score),
        columns=_columns(answer, plan.to_masked),
        fields=tuple(fields),
        notes=[
            *_notes(plan, release, ground),
            *_error_notes(plan, odds),
            *said,
            *_on_boxes(odds),
            *_on_gap(answer),
        ],
    )
    return claim_likely_links(_with_figures(guess, answer, plan.to_masked), plan.threshold)


def _posterior_answer(
    plan: BayesIntruder,
    known: IntruderKnowledge,
    release: Release,
    fields: Sequence[str],
    ground: CandidateBlocks,
    blocks: Blocks,
    reading: LawReading,
) -> tuple[PosteriorAnswer, list[Note]]:
    """Answer; with a prior, with more and more nodes until the probabilities stop changing."""

    def answer(at: LawReading) -> PosteriorAnswer:
        odds = odds_of(plan, known, release, fields, ground, at)
        best, is_tied, gap = search(odds, blocks, to_masked=plan.to_masked, assignment=plan.assignment)
        return PosteriorAnswer(odds, best, is_tied, odds.probability(best, to_masked=plan.to_masked), gap)

    if (quick := _quick(plan, known, release, fields, ground, blocks)) is not None:
        return quick
    if plan.prior is None:
        return answer(reading), []
    at = replace(reading, tolerance=TOLERANCES[0])
    now, change = answer(at), np.inf
    for tolerance in TOLERANCES[1:] if at.most_nodes else ():
        fewer, before = at.most_nodes, now
        at = replace(reading, tolerance=tolerance)
        now = answer(at)
        change = _change(before.probability, now.probability)
        if change <= SETTLED:
            figures = {"nodes": at.most_nodes, "fewer": fewer, "change": change}
            return now, [Note("attacks.settled", figures)]
    if not at.most_nodes:
        return now, [Note("attacks.prior_plays_no_part")]
    return now, [Note("attacks.not_settled", {"nodes": at.most_nodes, "change": change})]


def _quick(
    plan: BayesIntruder,
    known: IntruderKnowledge,
    release: Release,
    fields: Sequence[str],
    ground: CandidateBlocks,
    blocks: Blocks,
) -> tuple[PosteriorAnswer, list[Note]] | None:
    """Answer by trees where many records have plain noise; nothing where that is not possible."""
    plain = plan.prior is None and plan.error is None and plan.kernel not in BACKWARD
    if not plain or swapped_columns(release.card):
        return None
    from .pruned_sums.scores import prepare_tree_scores

    reading = LawReading(plan.kernel, None, None, release.table)
    by_truth = plan.kernel == "coherent" and plan.marginal == "truth"
    nothing = np.zeros(len(release.table))
    logs = nothing if by_truth else log_f(plan, release, fields, ground.matching)
    odds = prepare_tree_scores(
        plan, known, release, fields, ground, (logs, log_absent(known, release, fields, ground, reading))
    )
    if odds is None:
        return _by_parts(plan, known, release, fields, ground, blocks) if by_truth else None
    best, log_weights, neglected = odds.best()
    said = [Note("attacks.unseen_candidates", {"share": 1.05 * neglected})]
    if odds.rounding:
        said.append(Note("attacks.units_as_noise", {"error": odds.rounding}))
    if plan.assignment == "one-to-one":
        from .pruned_sums.assignment import one_to_one

        links = one_to_one(odds, best, log_weights)
        return PosteriorAnswer(
            odds, links.best, links.is_tied, odds.probability(links.best, log_weights), links.gap
        ), said
    tied = partial(odds.is_tied, best)
    return PosteriorAnswer(odds, best, tied, odds.probability(best, log_weights)), said


def _by_parts(
    plan: BayesIntruder,
    known: IntruderKnowledge,
    release: Release,
    fields: Sequence[str],
    ground: CandidateBlocks,
    blocks: Blocks,
) -> tuple[PosteriorAnswer, list[Note]] | None:
    """Answer by cells in parts where units are too coarse for trees; nothing where that is not possible."""
    from .pruned_sums.cell_mixture import least_split_pairs, parts_of, split_odds
    from .pruned_sums.scores import pairs_of

    laws = laws_on(release.card, fields)
    if not parts_of(laws) or pairs_of(ground) < least_split_pairs(laws):
        return None
    odds, said = split_odds(known, release, fields, ground, laws, plan.eps)
    best, is_tied, gap = search(odds, blocks, to_masked=plan.to_masked, assignment=plan.assignment)
    return PosteriorAnswer(odds, best, is_tied, odds.probability(best, to_masked=plan.to_masked), gap), said


def _change(before: Floats, now: Floats) -> float:
    linked = np.isfinite(before) & np.isfinite(now)
    return float(np.abs(now - before)[linked].max(initial=0.0))


def odds_of(
    plan: BayesIntruder,
    known: IntruderKnowledge,
    release: Release,
    fields: Sequence[str],
    ground: CandidateBlocks,
    reading: LawReading,
) -> Odds:
    """Prepare the scores of pairs by a kernel and its marginal."""
    if plan.error is not None:
        from .own_error.true_value_law import erring_odds

        return erring_odds(plan, known, release, fields, ground, reading)
    if plan.kernel == "coherent" and plan.marginal == "truth":
        known = known if reading.prior is None else replace(known, shared={})
        return Odds.by_truth(ground, known, release, fields, (reading.exact, reading.exact))
    logs = log_f(plan, release, fields, ground.matching), log_absent(known, release, fields, ground, reading)
    return Odds.by_given(
        ground, known, release, fields, reading.exact, (*logs, swapped_log_density(release, fields, reading))
    )


def check_possible(odds: Odds | TreeScores, release: Release, fields: Sequence[str]) -> None:
    """Refuse a card under which most released records can hardly have come from any true one.

    Densities are held against those of records to which no noise was added, so that units and the number of fields do
    not matter: of k fields the law itself takes k / 2 from the log, or some more.
    """
    if not isinstance(odds, Odds) or odds.truth is None:
        return
    looked_at = np.flatnonzero(np.isin(odds.ground.blocks.released, odds.ground.blocks.known))
    looked_at = looked_at[:: max(1, len(looked_at) // MOST_LOOKED_AT)]
    if not len(looked_at):
        return
    part, numbers = release.table.take(looked_at), np.arange(len(looked_at))
    amounts = [name for name in fields if part.schema[name].is_number]
    without = PairLikelihood.of(release.card, amounts, part, part).logs(
        numbers, numbers, odds.log_moved[looked_at]
    )
    usual = np.where(np.isfinite(without), without, 0.0) - len(fields)
    if np.median(np.maximum(odds.log_f[looked_at], -1e300) - usual) < HARDLY:
        raise BadInput(
            "under this card most released records cannot have come from a true one: is it the card of another release?"
        )


def _columns(answer: PosteriorAnswer, to_masked: bool) -> dict[str, Floats]:
    columns = {"probability": answer.probability}
    if to_masked and np.isfinite(answer.odds.log_absent).any():
        total = answer.odds.log_total(answer.best, to_masked=True)
        columns["not_released"] = np.exp(answer.odds.log_absent - np.where(np.isneginf(total), 0.0, total))
    return columns


def _notes(plan: BayesIntruder, release: Release, ground: CandidateBlocks) -> list[Note]:
    weighs = plan.kernel == "coherent" and plan.to_masked
    notes = [Note("attacks.upper_bound")] if weighs and plan.marginal == "truth" else []
    notes += on_exchanges(release)
    if plan.kernel == "forward" and plan.to_masked and ground.absent.any():
        notes.append(Note("attacks.given_release"))
    return notes


def on_exchanges(release: Release) -> list[Note]:
    """Say that probabilities are too sure where records exchanged values."""
    return [Note("attacks.too_sure")] if swapped_columns(release.card) else []


def _error_notes(plan: BayesIntruder, odds: Any) -> list[Note]:
    if plan.error is None:
        return []
    from .own_error.true_value_law import error_notes

    return error_notes(plan, odds)


def _on_boxes(odds: Any) -> list[Note]:
    """Say where weights are near and not exact: many values of a record at limits or near units of correlated noise."""
    is_rough = isinstance(odds, Odds) and isinstance(odds.targets, PairLikelihood) and odds.targets.is_rough
    return [Note("attacks.rough_boxes")] if is_rough else []


def _on_gap(answer: PosteriorAnswer) -> list[Note]:
    return [] if answer.gap is None else [Note("attacks.one_to_one_score", {"gap": proved_gap(answer.gap)})]


def _with_figures(guess: Guess, answer: PosteriorAnswer, to_masked: bool) -> Guess:
    def standing(rows: Ints, found: Ints) -> Any:
        return answer.odds.standing(answer.best, rows, found, to_masked=to_masked)

    return replace(guess, figures={**guess.figures, "standing": standing, "gap": answer.gap})


def claim_likely_links(guess: Guess, threshold: float) -> Guess:
    """Let the intruder stand by the links he is sure enough of, and say which of them he doubts."""
    probability, linked = guess.columns["probability"], guess.found >= 0
    absent = guess.columns.get("not_released")
    sure = linked & ((np.nan_to_num(probability) > threshold) | (threshold == 0))
    kind = np.where(linked, np.where(sure, 0, 2), 3)
    if absent is not None:
        kind = np.where(sure & (absent > (1 + SAME) * np.nan_to_num(probability)), 1, kind)
    shown = [0, *([1] if absent is not None else []), *([2] if threshold > 0 else []), 3]
    place = np.full(len(KINDS), 0)
    place[shown] = np.arange(len(shown))
    return replace(guess, claimed=sure, kind=place[kind], kinds=tuple(KINDS[i] for i in shown))

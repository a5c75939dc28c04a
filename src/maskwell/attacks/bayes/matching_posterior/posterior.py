"""The answer of an intruder who knows other units too: each released record belongs to one of them or to a stranger.

Case L > 0 of Trottini, Fienberg, Makov and Meyer (2003), section 4.1, with matchings weighed by their posterior. With
the card blocks are independent: `matchings`. Without it: `enumeration`, else `unknown_noise`. Too large blocks are
bounded: `ceiling_bound`. Chosen by `BayesIntruder` with `helpers`; without helpers it is `attacks.bayes.posterior`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ....errors import BadPlan
from ....masking import Release
from ....notes import Note
from ....table import Floats
from ...candidate_scores import SAME_SCORE, BestCandidates, Blocks, guess_from_links
from ...pair_density import laws_on
from ...protocol import NOBODY, Bools, Guess, IntruderKnowledge, Ints, OrderOf
from ..belief import BeliefStanding
from ..candidates import CandidateBlocks, clear_fields, status_laws
from ..law_kernels import BACKWARD, LawReading
from ..likelihood import swapped_columns
from ..posterior import (
    NODES,
    check_possible,
    claim_likely_links,
    link_by_posterior,
    odds_of,
    on_exchanges,
)
from ..posterior_odds import log_absent, log_f
from .ceiling_bound import CeilingInputs
from .matchings import MATCHED_CELLS, MOST_CELLS, Sampling
from .notes import on_chains, on_links, on_matchings

if TYPE_CHECKING:
    from .unknown_noise import Group, GroupPosterior, Kernel
from ....kernels.log_sums import log_sum
from ...candidate_scores import Batch, whole_blocks
from ..posterior_odds import SURE, Odds
from .matchings import Marginals, marginals

MOST_PAIRS = 30_000_000  # of known and released records of one block, for which probabilities are kept


@dataclass(frozen=True, slots=True)
class PosteriorRow:
    """What one target's probabilities are, over the released records of its block."""

    released: Ints
    probability: Floats
    absent: float
    is_decided: bool = True


def together(
    plan: Any, known: IntruderKnowledge, release: Release, order_of: OrderOf, fields: Sequence[str]
) -> Guess:
    """Link every target with the help of other units, group by group."""
    columns = plan.match_columns(release.table.schema)
    orders = order_of(known.targets, "known"), order_of(release.table, "released")
    ours, theirs = plan.blocks_of(known.targets, release.table)
    blocks = Blocks(ours, theirs, orders)
    every = list(_groups(plan, known, orders[0]))
    used = _taking_part(every)
    some, groups = _only(known, used), [np.searchsorted(used, members) for members in every]
    clear, laws = clear_fields(release, fields), status_laws(plan, release, fields)
    ground = CandidateBlocks.of(some, release, columns, clear, order_of, laws)
    if _is_bounded(plan, some, ground):
        return _without_helpers(plan, known, release, order_of, fields)
    _check_size(ground.blocks, MOST_CELLS if len(groups) == 1 and plan.prior is None else MOST_PAIRS)
    if plan.kernel == "forward" and ground.absent.any():
        raise BadPlan(
            "kernel 'forward' has no weight for units that were not released: take kernel 'coherent'"
        )
    ask = _match_given_noise if plan.prior is None else _untold
    parts, notes = ask(plan, some, release, fields, ground, groups)
    rows: list[PosteriorRow | None] = [None] * len(known.targets)
    for part in parts:
        _store_posterior_rows(replace(part, known=used[part.known]), rows)
    guess = _guess_from_rows(plan, blocks, rows, fields, ground)
    everybody = _knows_everybody(plan, some, ground)
    said = [*_on_others(plan, release, everybody), *_on_groups(plan, known, groups)]
    sought = range(len(rows)) if known.sought is None else known.sought.tolist()
    luck = on_links([row.is_decided for at in sought if (row := rows[at]) is not None])
    return claim_likely_links(replace(guess, notes=(*said, *notes, *luck)), plan.threshold)


def has_exchanges(release: Release) -> bool:
    """Whether the card says that records exchanged values."""
    swapped = release.card.swapped
    return swapped is not None and swapped.share > 0


def _is_bounded(plan: Any, known: IntruderKnowledge, ground: CandidateBlocks) -> bool:
    """Whether the ceiling is sought on blocks too large to be matched: then it is bounded."""
    told = plan.helpers == "all" and plan.prior is None and plan.kernel not in BACKWARD
    return told and _all_pairs(known, ground.blocks) > MATCHED_CELLS and _knows_everybody(plan, known, ground)


def _without_helpers(
    plan: Any, known: IntruderKnowledge, release: Release, order_of: OrderOf, fields: Sequence[str]
) -> Guess:
    """Answer as one who knows each target alone; what others could add is bounded with links in hand (`assessed`)."""
    alone = replace(plan, helpers=0, sampling=None)
    guess = link_by_posterior(alone, replace(known, sought=None), release, order_of, fields)
    numbers = np.arange(len(known.targets)) if known.numbers is None else known.numbers
    chance = np.full(len(known.population), np.nan)
    chance[numbers[guess.searcher]] = np.nan_to_num(guess.columns["probability"])
    bound = CeilingInputs(_seed(order_of(release.table, "released")), chance)
    return replace(
        guess,
        figures={**guess.figures, "bound": bound},
        notes=(Note("attacks.ceiling_bounded"), *guess.notes),
    )


def _taking_part(groups: Sequence[Ints]) -> Ints:
    """Return the known units of any group."""
    return np.unique(np.concatenate([np.empty(0, np.int64), *groups]))


def _only(known: IntruderKnowledge, used: Ints) -> IntruderKnowledge:
    """Return what he knows of the units that take part."""
    if len(used) == len(known.targets):
        return known
    numbers = known.numbers
    if known.targets is known.population:
        numbers = np.arange(len(known.targets))
    sought = None if known.sought is None else np.searchsorted(used, np.sort(known.sought))
    return replace(
        known,
        targets=known.targets.take(used),
        numbers=None if numbers is None else numbers[used],
        sought=sought,
        as_true=_as_true(known),
    )


def _as_true(known: IntruderKnowledge) -> bool:
    return known.as_true or known.targets is known.population


def _knows_everybody(plan: Any, known: IntruderKnowledge, ground: CandidateBlocks) -> bool:
    """Whether every unit of the blocks that hold a target is known to him."""
    sought = slice(None) if known.sought is None else known.sought
    blocks = np.unique(ground.blocks.known[sought])
    counts = [np.isin(codes, blocks).sum() for codes in (ground.blocks.known, ground.true)]
    return bool(_has_all(plan, known) and counts[0] >= counts[1])


def _has_all(plan: Any, known: IntruderKnowledge) -> bool:
    """Whether all known units are in one group."""
    return bool(plan.helpers == "all" or plan.helpers + 1 >= len(known.targets))


def _groups(plan: Any, known: IntruderKnowledge, order: Ints) -> Iterator[Ints]:
    """Yield known units, those sought first, in groups of a target and its helpers."""
    count = len(known.targets)
    sought = np.zeros(count, bool)
    sought[slice(None) if known.sought is None else known.sought] = True
    size = count if _has_all(plan, known) else plan.helpers + 1
    queue = np.concatenate([order[sought[order]], order[~sought[order]]])
    starts = range(0, int(sought.sum()), size)
    return (queue[min(begin, count - size) :][:size] for begin in starts)


def _seed(order: Ints) -> int:
    """Return a seed that the key decides through the order it gives to released records."""
    return int.from_bytes(hashlib.sha256(order.astype(np.int64).tobytes()).digest()[:8], "little")


def _sizes(blocks: Blocks) -> list[Ints]:
    """Return how many known and how many released records each block has."""
    count = int(max(blocks.known.max(initial=0), blocks.released.max(initial=0))) + 1
    return [np.bincount(codes, minlength=count) for codes in (blocks.known, blocks.released)]


def _all_pairs(known: IntruderKnowledge, blocks: Blocks) -> int:
    """Return how many pairs the blocks of those sought have together: all of them would be matched."""
    units, released = _sizes(blocks)
    sought = np.unique(blocks.known if known.sought is None else blocks.known[known.sought])
    return int((units * released)[sought].sum())


def _check_size(blocks: Blocks, most: int) -> None:
    """Refuse more pairs of a block than can be held, or matched at once where all are in one group."""
    sides = _sizes(blocks)
    pairs = sides[0] * sides[1]
    if pairs.max(initial=0) > most:
        known, released = (int(side[pairs.argmax()]) for side in sides)
        raise BadPlan(
            f"a block has {known:,} targets and helpers and {released:,} released records, {int(pairs.max()):,} pairs "
            f"where {most:,} can be held: name finer match_blocks, or fewer targets (Sample) and helpers"
        )


def _match_given_noise(
    plan: Any,
    known: IntruderKnowledge,
    release: Release,
    fields: Sequence[str],
    ground: CandidateBlocks,
    groups: Sequence[Ints],
) -> tuple[list[BlockPart], list[Note]]:
    """Match with the parameters told: blocks tell nothing of one another."""
    odds = odds_of(plan, known, release, fields, ground, LawReading(plan.kernel, None, None, release.table))
    wanted = np.arange(len(known.targets)) if known.sought is None else known.sought
    seed = _seed(ground.blocks.orders[1])
    parts = list(told_parts(odds, groups, wanted, plan.sampling or Sampling(), seed))
    check_possible(odds, release, fields)
    said = on_matchings([part.marginals for part in parts])
    return parts, [*said, *on_exchanges(release)]


def _untold(
    plan: Any,
    known: IntruderKnowledge,
    release: Release,
    fields: Sequence[str],
    ground: CandidateBlocks,
    groups: Sequence[Ints],
) -> tuple[list[BlockPart], list[Note]]:
    """Draw matchings and parameters together, group by group."""
    from .unknown_noise import group_posterior

    if swapped_columns(release.card):
        raise BadPlan("on a release with exchanged records helpers need the card: leave prior or helpers out")
    laws, seed = laws_on(release.card, fields), _seed(ground.blocks.orders[1])
    said = _enumerate_matchings(plan, known, release, fields, ground, groups) or [
        group_posterior(
            laws,
            _group(known, release, ground, members),
            _kernel(plan, known, release, fields, ground, members),
            plan.prior,
            plan.sampling or Sampling(),
            seed + number,
        )
        for number, members in enumerate(groups)
    ]
    parts = [
        BlockPart(members[one.known], one.released, one.marginals)
        for members, found in zip(groups, said, strict=True)
        for one in found.blocks
    ]
    return parts, on_chains(said)


def _enumerate_matchings(
    plan: Any,
    known: IntruderKnowledge,
    release: Release,
    fields: Sequence[str],
    ground: CandidateBlocks,
    groups: Sequence[Ints],
) -> list[GroupPosterior] | None:
    """Count all matchings at values of the parameters, all groups at once; nothing where that is too much."""
    from .enumeration import enumerated_posteriors

    members = np.concatenate(groups)
    labels = np.repeat(np.arange(len(groups)), [len(one) for one in groups])
    group = _group(known, release, ground, members)
    kernel = _kernel(plan, known, release, fields, ground, members)
    return enumerated_posteriors(laws_on(release.card, fields), group, labels, kernel, plan.prior)


def _group(known: IntruderKnowledge, release: Release, ground: CandidateBlocks, members: Ints) -> Group:
    from .unknown_noise import Group

    blocks = ground.blocks
    numbers = np.full(len(known.targets), NOBODY) if known.numbers is None else known.numbers
    sides = known.targets.take(members), known.population
    codes = blocks.released, blocks.known[members], ground.true
    return Group(release.table, *sides, *codes, numbers[members], _as_true(known))


def _kernel(
    plan: Any,
    known: IntruderKnowledge,
    release: Release,
    fields: Sequence[str],
    ground: CandidateBlocks,
    members: Ints,
) -> Kernel:
    from .unknown_noise import Kernel

    marginal = None
    if plan.kernel == "coherent" and plan.marginal != "truth":
        fine = np.bincount(ground.blocks.released)[ground.blocks.released]
        within = np.log(fine) - np.log(np.bincount(ground.matching)[ground.matching])
        marginal = log_f(plan, release, fields, ground.matching) - within
    if plan.kernel not in BACKWARD or not ground.absent.any():
        return Kernel(plan.kernel, marginal)
    reading = LawReading(plan.kernel, plan.prior, None, release.table, NODES[1])
    some = replace(known, targets=known.targets.take(members))
    absent = log_absent(some, release, fields, replace(ground, absent=ground.absent[members]), reading)
    with np.errstate(divide="ignore"):
        return Kernel(plan.kernel, marginal, absent - np.log(ground.absent[members]))


def _store_posterior_rows(part: BlockPart, rows: list[PosteriorRow | None]) -> None:
    """Enter the probabilities of a group; who was a target in an earlier group stays as he is."""
    for place, row in enumerate(part.known.tolist()):
        if rows[row] is None:
            found = part.marginals
            decided = found.decided is None or bool(found.decided[place])
            rows[row] = PosteriorRow(
                part.released, found.probability[place], float(found.unreleased[place]), decided
            )


def _guess_from_rows(
    plan: Any, blocks: Blocks, rows: list[PosteriorRow | None], fields: Sequence[str], ground: CandidateBlocks
) -> Guess:
    best = _best(rows)
    chance = np.where(best.place >= 0, np.exp(best.score), np.nan)
    columns = {"probability": chance}
    if ground.absent.any():
        columns["not_released"] = np.array([0.0 if row is None else row.absent for row in rows])

    def is_tied(at: Ints, found: Ints) -> Bools:
        return _of(rows, at, found) >= chance[at] * (1 - SAME_SCORE)

    def partners(known: int) -> Ints:
        row = rows[known]
        if row is None:
            return np.empty(0, np.int64)
        order = np.argsort(-row.probability, kind="stable")
        return np.asarray(row.released[order[row.released[order] != best.place[known]]])

    guess = guess_from_links(
        plan,
        blocks,
        best,
        is_tied,
        partners,
        scores=(best.score, best.second_score),
        columns=columns,
        fields=tuple(fields),
    )
    return replace(
        guess, figures={**guess.figures, "standing": lambda at, found: _belief_standing(rows, at, found)}
    )


def _best(rows: list[PosteriorRow | None]) -> BestCandidates:
    """Return the likeliest released record of each target, and the next."""
    best = BestCandidates.nothing(len(rows))
    with np.errstate(divide="ignore"):
        for at, row in enumerate(rows):
            if row is not None and len(row.released) and row.probability.max() > 0:
                _enter_best(best, at, row)
    return best


def _enter_best(best: BestCandidates, at: int, row: PosteriorRow) -> None:
    top = int(row.probability.argmax())
    best.place[at], best.score[at] = row.released[top], np.log(row.probability[top])
    best.ties[at] = int((row.probability >= row.probability[top] * (1 - SAME_SCORE)).sum())
    rest = row.probability.copy()
    rest[top] = 0.0
    then = int(rest.argmax())
    if rest[then] > 0:
        best.second[at], best.second_score[at] = row.released[then], np.log(rest[then])


def _of(rows: list[PosteriorRow | None], at: Ints, found: Ints) -> Floats:
    """Return the probabilities that targets give to released records."""
    return _belief_standing(rows, at, found).probability


def _belief_standing(rows: list[PosteriorRow | None], at: Ints, found: Ints) -> BeliefStanding:
    """Return how given released records stand among all of their targets'."""
    better, ties, chance = np.full(len(at), -1), np.zeros(len(at), np.int64), np.zeros(len(at))
    for i, (target, record) in enumerate(zip(at.tolist(), found.tolist(), strict=True)):
        row = rows[target]
        where = np.empty(0, np.int64) if row is None else np.flatnonzero(row.released == record)
        if row is None or not len(where):
            continue
        chance[i] = row.probability[where[0]]
        margin = SAME_SCORE * chance[i]
        better[i] = int((row.probability > chance[i] + margin).sum())
        ties[i] = int((np.abs(row.probability - chance[i]) <= margin).sum()) if chance[i] > 0 else 0
    return BeliefStanding(better, ties, chance)


def _on_others(plan: Any, release: Release, everybody: bool) -> list[Note]:
    """Say in which sense a rate is the largest: by whom he knows, and by whose records f(z) is."""
    notes = []
    if everybody and plan.prior is None and plan.kernel not in BACKWARD:
        notes.append(Note("attacks.no_ceiling") if has_exchanges(release) else Note("attacks.ceiling"))
    if plan.kernel == "coherent" and plan.marginal == "truth" and not everybody:
        notes.append(Note("attacks.upper_bound"))
    return notes


def _on_groups(plan: Any, known: IntruderKnowledge, groups: Sequence[Ints]) -> list[Note]:
    """Say how many others help, where these are fewer than asked for, and that targets help each other."""
    notes, others = [], len(known.targets) - 1
    if plan.helpers != "all" and plan.helpers > others:
        notes.append(Note("attacks.all_others", {"others": others}))
    if len(groups) > 1:
        notes.append(Note("attacks.target_groups", {"count": len(groups)}))
    return notes


# Matchings with the card in hand: the pairs of a block are weighed once, and each record belongs to one unit.


@dataclass(frozen=True, slots=True)
class BlockPart:
    """Probabilities of some known units of a block over its released records."""

    known: Ints
    released: Ints
    marginals: Marginals


def told_parts(
    odds: Odds, groups: Sequence[Ints], wanted: Ints, sampling: Sampling, seed: int
) -> Iterator[BlockPart]:
    """Yield the probabilities of every group in every block that holds one of the wanted units."""
    units, blocks = odds.ground.true_members(), odds.ground.blocks.known
    by_block = _members_by_block(groups, blocks)
    looked_at = set(blocks[wanted].tolist())
    for batch in whole_blocks(odds.batches()):
        block = int(blocks[batch.known[0]])
        if block in looked_at:
            batch = _within_block(odds, batch, len(units.get(block, ())))
            count = max(len(units.get(block, ())), len(batch.released))
            for number, members in by_block.get(block, ()):
                rng = np.random.default_rng([seed, number, int(batch.released.min())])
                yield _of_group(odds, batch, members, count, sampling, rng)


def _within_block(odds: Odds, batch: Batch, units: int) -> Batch:
    """Make f(z) that of the fine block: values that left in clear are known, so only its own units can have them."""
    return replace(
        batch, scores=batch.scores + log_within(odds.ground, batch.released, units, odds.truth is not None)
    )


def log_within(ground: CandidateBlocks, released: Ints, units: int, by_truth: bool) -> Floats:
    """Return the log share of released records' matching block that their fine block is, by units or by records."""
    if by_truth:
        return np.asarray(np.log(max(units, 1)) - np.log(np.maximum(ground.units[released], 1)))
    sizes = np.bincount(ground.matching)[ground.matching[released]]
    return np.asarray(np.log(len(released)) - np.log(sizes))


def _members_by_block(groups: Sequence[Ints], blocks: Ints) -> dict[int, list[tuple[int, Ints]]]:
    """Return for each block the numbers of the groups that have members there, and these."""
    out: dict[int, list[tuple[int, Ints]]] = {}
    for number, members in enumerate(groups):
        for block in np.unique(blocks[members]).tolist():
            out.setdefault(block, []).append((number, members[blocks[members] == block]))
    return out


def _of_group(
    odds: Odds, batch: Batch, members: Ints, units: int, sampling: Sampling, rng: np.random.Generator
) -> BlockPart:
    here = np.flatnonzero(np.isin(batch.known, members))
    known, count = batch.known[here], max(units, len(here))
    logs = _against_strangers(odds, batch.scores[here], count)
    absent = _own_absence(odds, known, count - len(batch.released))
    return BlockPart(known, batch.released, marginals(logs - absent[:, None], count, rng, sampling))


def _against_strangers(odds: Odds, scores: Floats, units: int) -> Floats:
    """Return log f(z|x) - log f'(z), f' the mean over the units that he does not know.

    With r = f(z|x) / f(z) of K known of N units f'(z) / f(z) = (N - sum of r) / (N - K). Who knows all needs no f(z).
    """
    known = len(scores)
    if odds.truth is None or known >= units:
        return scores
    rest = 1.0 - np.minimum(np.exp(log_sum(scores, axis=0) - np.log(units)), 1.0)
    return np.asarray(scores - np.log(np.maximum(rest, SURE) * units / (units - known)))


def _own_absence(odds: Odds, known: Ints, absent: int) -> Floats:
    """Return the log weight that each unit itself has for not being released, beyond the number of those units."""
    if absent <= 0 or odds.truth is not None:
        return np.zeros(len(known))
    with np.errstate(divide="ignore"):
        own = odds.log_absent[known] - np.log(odds.ground.absent[known])
    return np.where(np.isfinite(own), own, 0.0)

"""The answer of an intruder who knows other units too: each released record belongs to one of them or to a stranger."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ...errors import BadPlan
from ...masking import Release
from ...table import Floats
from ..contract import NOBODY, Bools, Guess, Ints, Known, OrderOf
from ..pairwise import laws_on
from ..ranking import SAME_SCORE, Best, Blocks, answered
from .belief import Standing
from .ground import Ground, clear_fields
from .matchings import Sampling
from .pairing import swapped_columns
from .reading import BACKWARD, Reading
from .told import Part, told_parts
from .weighing import NODES, TOO_SURE, UPPER_BOUND, check_possible, judged, log_absent, log_f, odds_of

if TYPE_CHECKING:
    from .helping import Group, Helped, Kernel

MOST_PAIRS = 30_000_000  # of known and released records of one block, for which probabilities are kept
CEILING = "every unit is known to him: no intruder who holds this card can expect to do better (the ceiling)"


@dataclass(frozen=True, slots=True)
class Row:
    """What one target's probabilities are, over the released records of its block."""

    released: Ints
    probability: Floats
    absent: float


def together(plan: Any, known: Known, release: Release, order_of: OrderOf, fields: Sequence[str]) -> Guess:
    """Link every target with the help of other units, group by group."""
    columns = plan.match_columns(release.table.schema)
    orders = order_of(known.targets, "known"), order_of(release.table, "released")
    ours, theirs = plan.blocks_of(known.targets, release.table)
    blocks = Blocks(ours, theirs, orders)
    ground = Ground.of(known, release, columns, clear_fields(release, fields), order_of)
    _check_size(ground.blocks)
    if plan.kernel == "forward" and ground.absent.any():
        raise BadPlan(
            "kernel='forward' has no weight for units that were not released: take kernel='coherent'"
        )
    groups = list(_groups(plan, known, orders[0]))
    ask = _told if plan.prior is None else _untold
    parts, notes = ask(plan, known, release, fields, ground, groups)
    rows: list[Row | None] = [None] * len(known.targets)
    for part in parts:
        _entered(part, rows)
    guess = _answered(plan, blocks, rows, fields, ground)
    said = _notes(plan, _knows_everybody(plan, known, ground), groups)
    return judged(replace(guess, notes=(*said, *notes)), plan.threshold)


def _knows_everybody(plan: Any, known: Known, ground: Ground) -> bool:
    """Whether every unit of the blocks that hold a target is known to him."""
    sought = slice(None) if known.sought is None else known.sought
    blocks = np.unique(ground.blocks.known[sought])
    counts = [np.isin(codes, blocks).sum() for codes in (ground.blocks.known, ground.true)]
    return bool(plan.helpers == "all" and counts[0] >= counts[1])


def _groups(plan: Any, known: Known, order: Ints) -> Iterator[Ints]:
    """Yield known units, those sought first, in groups of a target and its helpers."""
    count = len(known.targets)
    sought = np.zeros(count, bool)
    sought[slice(None) if known.sought is None else known.sought] = True
    size = count if plan.helpers == "all" else min(plan.helpers + 1, count)
    queue = np.concatenate([order[sought[order]], order[~sought[order]]])
    starts = range(0, int(sought.sum()), size)
    return (queue[min(begin, count - size) :][:size] for begin in starts)


def _seed(order: Ints) -> int:
    """Return a seed that the key decides through the order it gives to released records."""
    return int.from_bytes(hashlib.sha256(order.astype(np.int64).tobytes()).digest()[:8], "little")


def _check_size(blocks: Blocks) -> None:
    count = int(max(blocks.known.max(initial=0), blocks.released.max(initial=0))) + 1
    pairs = np.bincount(blocks.known, minlength=count) * np.bincount(blocks.released, minlength=count)
    if pairs.max(initial=0) > MOST_PAIRS:
        raise BadPlan(
            f"a block has {int(pairs.max()):,} pairs of a known and a released record, too many to match them all: "
            "name finer match_blocks"
        )


def _told(
    plan: Any, known: Known, release: Release, fields: Sequence[str], ground: Ground, groups: Sequence[Ints]
) -> tuple[list[Part], list[str]]:
    """Match with the parameters told: blocks tell nothing of one another."""
    odds = odds_of(plan, known, release, fields, ground, Reading(plan.kernel, None, None, release.table))
    wanted = np.arange(len(known.targets)) if known.sought is None else known.sought
    seed = _seed(ground.blocks.orders[1])
    parts = list(told_parts(odds, groups, wanted, plan.sampling or Sampling(), seed))
    check_possible(odds)
    return parts, [*_on_matchings(parts), *([TOO_SURE] if swapped_columns(release.card) else [])]


def _on_matchings(parts: Sequence[Part]) -> list[str]:
    """Say how the matchings were counted."""
    sampled = [part.marginals for part in parts if not part.marginals.exact]
    if not sampled:
        return ["all matchings were counted"]
    of = f"in {len(sampled):,} of {len(parts):,} blocks matchings were sampled"
    rhat, ess = max(one.rhat for one in sampled), min(one.ess for one in sampled)
    said = f"{of}: R-hat up to {rhat:.3f}, ESS from {ess:,.0f}, errors of probabilities up to "
    said += f"{max(one.error for one in sampled):.3f}"
    failed = sum(not one.converged for one in sampled)
    return [said, *([f"NOT CONVERGED in {failed:,} blocks: give more draws in Sampling"] if failed else [])]


def _untold(
    plan: Any, known: Known, release: Release, fields: Sequence[str], ground: Ground, groups: Sequence[Ints]
) -> tuple[list[Part], list[str]]:
    """Draw matchings and parameters together, group by group."""
    from .helping import helped

    if swapped_columns(release.card):
        raise BadPlan("on a release with exchanged records helpers need the card: leave prior or helpers out")
    laws, seed = laws_on(release.card, fields), _seed(ground.blocks.orders[1])
    parts: list[Part] = []
    said: list[Helped] = []
    for number, members in enumerate(groups):
        group, kernel = (
            _group(known, release, ground, members),
            _kernel(plan, known, release, fields, ground, members),
        )
        found = helped(laws, group, kernel, plan.prior, plan.sampling or Sampling(), seed + number)
        parts += [Part(members[one.known], one.released, one.marginals) for one in found.blocks]
        said.append(found)
    return parts, _on_chains(said)


def _group(known: Known, release: Release, ground: Ground, members: Ints) -> Group:
    from .helping import Group

    blocks = ground.blocks
    numbers = np.full(len(known.targets), NOBODY) if known.numbers is None else known.numbers
    sides = known.targets.take(members), known.population
    codes = blocks.released, blocks.known[members], ground.true
    return Group(release.table, *sides, *codes, numbers[members])


def _kernel(
    plan: Any, known: Known, release: Release, fields: Sequence[str], ground: Ground, members: Ints
) -> Kernel:
    from .helping import Kernel

    marginal = None
    if plan.kernel == "coherent" and plan.marginal != "truth":
        fine = np.bincount(ground.blocks.released)[ground.blocks.released]
        within = np.log(fine) - np.log(np.bincount(ground.matching)[ground.matching])
        marginal = log_f(plan, release, fields, ground.matching) - within
    if plan.kernel not in BACKWARD or not ground.absent.any():
        return Kernel(plan.kernel, marginal)
    reading = Reading(plan.kernel, plan.prior, None, release.table, NODES[1])
    some = replace(known, targets=known.targets.take(members))
    absent = log_absent(some, release, fields, replace(ground, absent=ground.absent[members]), reading)
    with np.errstate(divide="ignore"):
        return Kernel(plan.kernel, marginal, absent - np.log(ground.absent[members]))


def _on_chains(said: Sequence[Helped]) -> list[str]:
    """Say what was learned of the parameters, and what had not converged."""
    rhat, ess = max(one.rhat for one in said), min(one.ess for one in said)
    notes = [f"matchings and parameters were sampled: R-hat up to {rhat:.3f}, ESS from {ess:,.0f}"]
    notes += dict.fromkeys(note for one in said for note in one.notes)
    failed = [one for one in said if not one.converged]
    if failed:
        of = f"{len(failed):,} of {len(said):,} groups" if len(said) > 1 else "the chains"
        worst = max(one.rhat for one in failed)
        notes.append(f"NOT CONVERGED: {of} (R-hat up to {worst:.2f}): give more draws in Sampling")
    learned = said[0].psi if len(said) == 1 else ()
    names = [f"{one.name} of {', '.join(one.columns)} {one.mean:.3g} +- {one.sd:.2g}" for one in learned]
    return [*notes, *([f"what he learned of the noise: {'; '.join(names)}"] if names else [])]


def _entered(part: Part, rows: list[Row | None]) -> None:
    """Enter the probabilities of a group; who was a target in an earlier group stays as he is."""
    for place, row in enumerate(part.known.tolist()):
        if rows[row] is None:
            found = part.marginals
            rows[row] = Row(part.released, found.probability[place], float(found.unreleased[place]))


def _answered(
    plan: Any, blocks: Blocks, rows: list[Row | None], fields: Sequence[str], ground: Ground
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

    guess = answered(
        plan,
        blocks,
        best,
        is_tied,
        partners,
        scores=(best.score, best.second_score),
        columns=columns,
        fields=tuple(fields),
    )
    return replace(guess, figures={**guess.figures, "standing": lambda at, found: _standing(rows, at, found)})


def _best(rows: list[Row | None]) -> Best:
    """Return the likeliest released record of each target, and the next."""
    best = Best.nothing(len(rows))
    with np.errstate(divide="ignore"):
        for at, row in enumerate(rows):
            if row is not None and len(row.released) and row.probability.max() > 0:
                _enter_best(best, at, row)
    return best


def _enter_best(best: Best, at: int, row: Row) -> None:
    top = int(row.probability.argmax())
    best.place[at], best.score[at] = row.released[top], np.log(row.probability[top])
    best.ties[at] = int((row.probability >= row.probability[top] * (1 - SAME_SCORE)).sum())
    rest = row.probability.copy()
    rest[top] = 0.0
    then = int(rest.argmax())
    if rest[then] > 0:
        best.second[at], best.second_score[at] = row.released[then], np.log(rest[then])


def _of(rows: list[Row | None], at: Ints, found: Ints) -> Floats:
    """Return the probabilities that targets give to released records."""
    return _standing(rows, at, found).probability


def _standing(rows: list[Row | None], at: Ints, found: Ints) -> Standing:
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
    return Standing(better, ties, chance)


def _notes(plan: Any, everybody: bool, groups: Sequence[Ints]) -> list[str]:
    """Say what the figures rest on."""
    notes = [CEILING] if everybody and plan.prior is None and plan.kernel not in BACKWARD else []
    notes += [UPPER_BOUND] if plan.kernel == "coherent" and plan.marginal == "truth" and not everybody else []
    if len(groups) > 1:
        notes.append(f"{len(groups):,} groups of a target and its helpers, each member of which is a target")
    return notes

"""Matchings with the card in hand: the pairs of a block are weighed once, and each record belongs to one unit."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from ....table import Floats
from ...candidate_scores import Batch, log_sum, whole_blocks
from ...protocol import Ints
from ..candidates import CandidateBlocks
from ..posterior_odds import SURE, Odds
from .matchings import Marginals, Sampling, marginals


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

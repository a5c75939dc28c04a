"""The walk along the records at risk: who exchanges with whom, each at most once, in an order that the key decides.

Greedy: at risk is a record whose true link the intruder claims, or has among the tied best of a claim; each takes the
most similar free record of its block that the intruder would not claim for it (Winkler's swap, with the second best
match: Moore 1996, section IX). Relief of a swap = sum over both records of the share of their claimed link that is
right. Called by `directed_swaps`, which takes as many of the swaps as the tolerance needs.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..attacks.protocol import Guess, Marks
from ..card import block_numbers
from ..keys import Key, Stream
from ..masking import Masking
from ..masking.results import Integers
from ..masking.swap_record import Stuck
from ..table import Floats

ALONE = "alone in its block"
LIKE_ALL = "with no other in its block that the intruder would not claim for it"
SAME_REST = "with no other to exchange with in its block that differs in what stays in the row"
NONE_LEFT = "whose partners had all moved"


@dataclass(frozen=True, slots=True)
class SwapWalk:
    """All swaps that can be made, in order, and the records passed over.

    `pairs` are record numbers of the truth: the record at risk, and its partner. `relief` is how many correct links,
    ties shared, each swap takes away if the intruder finds nothing new; `counts` how many of the two are at risk.
    """

    at_risk: int
    pairs: Integers
    relief: Floats
    stuck: tuple[Stuck, ...]
    counts: Integers

    def moved(self, swaps: int) -> int:
        """Return how many records at risk move in the first so many swaps."""
        return int(self.counts[:swaps].sum())


def walk_along(
    masking: Masking,
    guess: Guess,
    marks: Marks,
    blocks: tuple[str, ...],
    key: Key,
    *,
    rest: tuple[str, ...] = (),
    at_random: bool = False,
) -> SwapWalk:
    """Give each record at risk the most similar partner that has not moved, in the order of the key.

    Where a part of the compared columns is exchanged, the partner is any (`at_random`, by the key): with one that is
    like it in these columns too, the row would be found by the others all the same. The mixture on the card, a share of
    values from anywhere in the block, is then exact.

    One with the same `rest` is passed over, where columns are named: exchanging with it only renames two rows.

    At risk is a record whose true link the intruder claims, or has among the tied best of a link he claims. One that
    moved as another's partner is not moved again.
    """
    rank = _ranks(masking, key)
    known, places, shares = _at_risk(masking, guess, marks, rank)
    sizes = _block_sizes(masking, blocks)
    kinds = block_numbers(masking.release.table, rest) if rest else np.arange(len(masking.order))
    moved, danger = np.zeros(len(masking.order), bool), np.zeros(len(masking.order))
    danger[places] = shares
    pairs, stuck = list[tuple[int, int]](), list[Stuck]()
    for mine, place in zip(known, places, strict=True):
        if moved[place]:
            continue
        partners = guess.partners(int(mine))
        others = partners[partners != place]
        partners = others[kinds[others] != kinds[place]]
        if at_random:
            partners = partners[np.argsort((rank[partners] - rank[place]) % len(rank), kind="stable")]
        free = partners[~moved[partners]]
        if len(free):
            pairs.append((place, free[0]))
            moved[[place, free[0]]] = True
        else:
            alone = ALONE if sizes[place] == 1 else LIKE_ALL
            reason = NONE_LEFT if len(partners) else SAME_REST if len(others) else alone
            stuck.append(Stuck(int(masking.order[place]), reason, len(pairs)))
    swaps = np.array(pairs, np.int64).reshape(-1, 2)
    both = danger[swaps]
    counts = np.count_nonzero(both, axis=1)
    return SwapWalk(
        len(known), masking.order[swaps], both.sum(axis=1), tuple(stuck), np.asarray(counts, np.int64)
    )


def _ranks(masking: Masking, key: Key) -> Integers:
    """Return the place of each released record in an order that the key decides."""
    stream = Stream(key, masking.truth.schema.series, "directed swapping", masking.blocks)
    rank = np.empty(len(masking.truth), np.int64)
    rank[stream.order("", "swap")] = np.arange(len(rank))
    return np.asarray(rank[masking.order])


def _at_risk(
    masking: Masking, guess: Guess, marks: Marks, rank: Integers
) -> tuple[Integers, Integers, Floats]:
    """Return the intruder's and the released number of each record at risk, in the order of the key, and how right
    his link is.
    """
    rows = np.flatnonzero(guess.claimed & (marks.share > 0))
    both = guess.searcher[rows], marks.counterpart[rows]
    known, places = both if guess.to_masked else both[::-1]
    order = np.argsort(rank[places], kind="stable")
    return known[order], places[order], marks.share[rows][order]


def _block_sizes(masking: Masking, blocks: tuple[str, ...]) -> Integers:
    numbers = block_numbers(masking.release.table, blocks)
    return np.bincount(numbers)[numbers]

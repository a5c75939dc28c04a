"""One-to-one links without looking at every pair, where plain normal noise and many records allow it.

A score is an offset of the released record less half the squared distance where the noise has variance 1, so records of
one block and one kind (which of their values are open) make a block of `attacks.one_to_one.NearPairs`; no other pair
can be. The assignment is that of Kuhn (1955), certified by its dual there. Chosen by `posterior` with
assignment="one-to-one" where `scores` searches by trees.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ....table import Floats
from ...candidate_scores import BestCandidates, OneToOneLinks, members
from ...one_to_one import DENSE_CELLS, Assignment, NearPairs, dense, optimal, transpose_assignment
from ...protocol import NOBODY, Ints
from .posterior_sums import PrunedSearch
from .scores import ScorePart, TreeScores


def one_to_one(odds: TreeScores, best: BestCandidates, log_weights: Floats) -> OneToOneLinks:
    """Return the one-to-one links of largest total score; `log_weights` of best links become theirs.

    Sums of weights stay as they are in `best`: a probability is that of one link by itself.
    """
    count = len(odds.kind[1 if odds.to_masked else 0])
    links = replace(BestCandidates.nothing(len(best.place)), log_total=best.log_total)
    out = OneToOneLinks(links, np.arange(count))
    return replace(out, gap=sum(_of_part(part, out, log_weights) for part in odds.parts.values()))


def _of_part(part: ScorePart, out: OneToOneLinks, log_weights: Floats) -> float:
    """Link the records of one kind, block by block; return the sum of the gaps."""
    search, gap = part.pruning, 0.0
    near, far = (_by_block(one.blocks) for one in (search.searchers, search.candidates))
    if any(len(far.get(block, ())) != len(rows) for block, rows in near.items()):
        search.make_whole()  # offsets decide who is left out
    place = np.full(len(part.searchers), NOBODY)
    alike = _alike(search)
    for block, rows in near.items():
        columns = far.get(block, np.empty(0, np.int64))
        columns = columns[np.isfinite(search.offset[columns])]
        if len(columns):
            found = _of_block(search, rows, columns)
            has = np.flatnonzero(found.column >= 0)
            place[rows[has]] = columns[found.column[has]]
            gap += found.gap
    has = np.flatnonzero(place >= 0)
    searchers, sizes = part.searchers[has], np.bincount(alike, minlength=len(alike))
    out.alike[part.candidates] = part.candidates[alike]
    out.best.place[searchers] = part.candidates[place[has]]
    out.best.ties[searchers] = sizes[alike[place[has]]]
    out.best.score[searchers] = search.pairs(has, place[has]) + part.above[has]
    log_weights[part.searchers] = np.where(place >= 0, search.log_weights(place) + part.above, np.nan)
    return gap


def _by_block(blocks: Ints) -> dict[int, Ints]:
    return members(blocks, np.arange(len(blocks)))


def _alike(search: PrunedSearch) -> Ints:
    """Return for each candidate the first one of its block with the same values."""
    points = np.column_stack([search.candidates.values + 0.0, search.candidates.blocks])
    _, first, inverse = np.unique(points, axis=0, return_index=True, return_inverse=True)
    return np.asarray(first[inverse.ravel()])


def _of_block(search: PrunedSearch, rows: Ints, columns: Ints) -> Assignment:
    """Assign the candidates of one block to its searchers; the smaller side searches."""
    points = search.searchers.values[rows], search.candidates.values[columns]
    offset = search.offset[columns]
    if len(rows) * len(columns) <= DENSE_CELLS:
        return dense(NearPairs.of(*points, offset).matrix())
    if len(rows) <= len(columns):
        return optimal(NearPairs.of(*points, offset))
    return transpose_assignment(optimal(NearPairs.of(points[1], points[0], np.zeros(len(rows)))), len(rows))

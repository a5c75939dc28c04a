"""One-to-one links by distance in large blocks: the smallest sum of squared distances.

Fewer differing statuses come before any distance. Where the searchers of every kind of statuses are no more than its
candidates (or no fewer, in every kind), an assignment without any differing status is possible, so that the best one
has none: kinds are then independent of one another, and within one the costs are squared distances of points, which
`one_to_one.NearPairs` solves over certified candidates (Kuhn's problem, 1955). In other blocks, and by distances that
are no Euclidean ones, all pairs are scored, with a penalty for a differing status above any cost; beyond what can be
held, anew in every round. Chosen by `NearestRecord(assignment="one-to-one")` for blocks beyond
`one_to_one.DENSE_CELLS`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from ...table import Floats
from ..candidate_scores import members
from ..linkage.assignment import CHUNK_CELLS, MOST_CELLS, optimal_of
from ..one_to_one import (
    DENSE_CELLS,
    Assignment,
    Chunk,
    Digests,
    NearPairs,
    ScoreBlock,
    best_of_matrix,
    dense,
    in_chunks,
    optimal,
    transpose_assignment,
)
from ..protocol import NOBODY, Ints
from .status_search import StatusSearch


@dataclass(frozen=True, slots=True)
class BlockLinks:
    """The candidate of each searcher of a block (-1: none), the first candidate like each, and the gap."""

    place: Ints
    alike: Ints
    gap: float


def block_links(measured: StatusSearch, near: Ints, far: Ints) -> BlockLinks:
    """Link the searchers `near` of a block with its candidates `far`, each once."""
    parts = _parts(measured, near, far) if measured.metric.norm == 2 else None
    if parts is None:
        return _by_pairs(measured, near, far)
    place, alike, gap = np.full(len(near), NOBODY), np.arange(len(far)), 0.0
    for rows, columns in parts:
        here, there = measured.points(near[rows], far[columns])
        found = _nearest_sum(here, there)
        has = np.flatnonzero(found.column >= 0)
        place[rows[has]] = columns[found.column[has]]
        first, inverse = np.unique(there + 0.0, axis=0, return_index=True, return_inverse=True)[1:]
        alike[columns] = columns[first[inverse.ravel()]]
        gap += found.gap
    return BlockLinks(place, alike, gap)


def _parts(measured: StatusSearch, near: Ints, far: Ints) -> list[tuple[Ints, Ints]] | None:
    """Return searchers and candidates of each kind of statuses, where kinds are independent; else nothing."""
    ours = {measured.searchers.kinds[kind].tobytes(): kind for kind in range(len(measured.searchers.kinds))}
    theirs = {
        measured.candidates.kinds[kind].tobytes(): kind for kind in range(len(measured.candidates.kinds))
    }
    rows = members(measured.searchers.kind[near], np.arange(len(near)))
    columns = members(measured.candidates.kind[far], np.arange(len(far)))
    nobody = np.empty(0, np.int64)
    parts = [
        (rows.get(ours.get(kind, NOBODY), nobody), columns.get(theirs.get(kind, NOBODY), nobody))
        for kind in ours.keys() | theirs.keys()
    ]
    more = [len(mine) - len(candidates) for mine, candidates in parts]
    independent = max(more, default=0) <= 0 or min(more, default=0) >= 0
    return [part for part in parts if len(part[0]) and len(part[1])] if independent else None


def _nearest_sum(here: Floats, there: Floats) -> Assignment:
    """Return the assignment of the smallest sum of squared distances; the smaller side searches."""
    if not here.shape[1]:  # nothing is open: all are alike
        column = np.where(np.arange(len(here)) < len(there), np.arange(len(here)), NOBODY)
        return Assignment(column, 0.0)
    if len(here) * len(there) <= DENSE_CELLS:
        return dense(NearPairs.of(here, there, np.zeros(len(there))).matrix())
    if len(here) <= len(there):
        return optimal(NearPairs.of(here, there, np.zeros(len(there))))
    return transpose_assignment(optimal(NearPairs.of(there, here, np.zeros(len(here)))), len(here))


def _by_pairs(measured: StatusSearch, near: Ints, far: Ints) -> BlockLinks:
    """Link a block by the scores of all pairs: held where they can be, else computed anew in every round."""
    every, digests, most = np.arange(len(far)), Digests.of(len(far)), 0.0
    is_squared = measured.metric.norm == 2
    for run in in_chunks(len(near), len(far), CHUNK_CELLS):
        differing, distance = measured.table(near[run], far)
        cost = distance if is_squared else distance**2
        most = max(most, float(cost.max()))
        digests.add(run, every, cost)
        digests.add(run + len(near), every, differing.astype(np.float64))

    def scored(differing: Ints, distance: Floats) -> Floats:
        return np.asarray(-((most + 1.0) * differing + (distance if is_squared else distance**2)))

    def chunks() -> Iterator[Chunk]:
        for run in in_chunks(len(near), len(far), CHUNK_CELLS):
            yield run, every, scored(*measured.table(near[run], far))

    if len(near) * len(far) <= MOST_CELLS:
        found = best_of_matrix(np.concatenate([scores for _, _, scores in chunks()]))
    else:
        listed = ScoreBlock(
            (len(near), len(far)), chunks, lambda i, j: scored(*measured.pairs(near[i], far[j]))
        )
        found = optimal_of(listed)
    return BlockLinks(found.column, digests.alike(every), found.gap)

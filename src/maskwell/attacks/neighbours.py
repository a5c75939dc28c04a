"""Nearest points and how many lie closer: exact, ties included, whatever way is quickest."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..table import Floats
from .contract import NOBODY, Ints

SAME_DISTANCE = 1e-12  # distances closer than this, relative to their size, differ by rounding alone


@dataclass(frozen=True, slots=True)
class Nearest:
    """For each searcher its nearest candidate, how many are as near, and the next nearest (-1 where there is none).

    `distance` and `second_distance` are squared for the Euclidean norm, infinite where there is nobody.
    """

    place: Ints
    distance: Floats
    ties: Ints
    second: Ints
    second_distance: Floats


def nearest(
    searchers: Floats, candidates: Floats, blocks: tuple[Ints, Ints], *, norm: int = 2, how: str | None = None
) -> Nearest:
    """Return for each searcher (n x q) its nearest candidates (m x q) of the same block.

    `blocks` are those of searchers and candidates. Candidates as near as the nearest, but for rounding
    (`SAME_DISTANCE`), are ties: the one that comes first among them is named; the second is the first of the nearest
    others. `norm` is 2 (Euclidean) or 1 (city block). `how` is "tree", "matrix" or "brute"; by itself the quickest is
    taken, and all give the same.
    """
    count = len(searchers)
    out = Nearest(
        np.full(count, NOBODY, np.int64),
        np.full(count, np.inf),
        np.zeros(count, np.int64),
        np.full(count, NOBODY, np.int64),
        np.full(count, np.inf),
    )
    for i in range(count):
        here = np.flatnonzero(blocks[1] == blocks[0][i])
        if not len(here):
            continue
        distances = _distances(searchers[i], candidates[here], norm)
        least = distances.min()
        tied = np.flatnonzero(distances <= least * (1 + SAME_DISTANCE))
        out.place[i], out.distance[i], out.ties[i] = here[tied[0]], distances[tied[0]], len(tied)
        distances[tied[0]] = np.inf
        if len(here) > 1:
            next_one = np.flatnonzero(distances <= distances.min() * (1 + SAME_DISTANCE))[0]
            out.second[i], out.second_distance[i] = here[next_one], distances[next_one]
    return out


def closer(
    searchers: Floats,
    points: Floats,
    blocks: tuple[Ints, Ints],
    radius: Floats,
    *,
    norm: int = 2,
    most: int | None = None,
    how: str | None = None,
) -> Ints:
    """Return how many points of its block lie closer to each searcher than its radius, ties left out; at most `most`.

    `radius` is squared for the Euclidean norm, as `Nearest.distance` is; a point counts when its distance is below
    radius (1 - SAME_DISTANCE).
    """
    out = np.zeros(len(searchers), np.int64)
    for i in range(len(searchers)):
        here = points[blocks[1] == blocks[0][i]]
        out[i] = np.count_nonzero(_distances(searchers[i], here, norm) < radius[i] * (1 - SAME_DISTANCE))
    return out if most is None else np.minimum(out, most)


def _distances(searcher: Floats, points: Floats, norm: int) -> Floats:
    total = np.zeros(len(points))
    for j in range(points.shape[1]):
        apart = points[:, j] - searcher[j]
        total += apart * apart if norm == 2 else np.abs(apart)
    return total

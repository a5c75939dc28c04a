"""Nearest points and how many lie closer: exact, ties included, whatever way is quickest."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..table import Floats
from .contract import NOBODY, Ints

SAME_DISTANCE = 1e-12  # distances closer than this, relative to their size, differ by rounding alone
LEAF = 32
AT_ONCE = 4096


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
    from ..kernels.trees import find_nearest

    count = len(searchers)
    out = Nearest(
        np.full(count, NOBODY, np.int64),
        np.full(count, np.inf),
        np.zeros(count, np.int64),
        np.full(count, NOBODY, np.int64),
        np.full(count, np.inf),
    )
    forest, roots, order = _planted(searchers, candidates, blocks, how)
    columns = out.place, out.distance, out.ties, out.second, out.second_distance

    def work(some: Ints) -> None:
        mine = [column[some] for column in columns]
        find_nearest(forest, searchers[some], roots[some], norm, 1 + SAME_DISTANCE, *mine)
        for whole, part in zip(columns, mine, strict=True):
            whole[some] = part

    _threaded(work, order)
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
    from ..kernels.trees import count_closer

    out = np.zeros(len(searchers), np.int64)
    forest, roots, order = _planted(searchers, points, blocks, how)
    limit = np.asarray(radius * (1 - SAME_DISTANCE))

    def work(some: Ints) -> None:
        mine = np.zeros(len(some), np.int64)
        enough = len(points) if most is None else most
        count_closer(forest, searchers[some], roots[some], limit[some], enough, norm, mine)
        out[some] = mine

    _threaded(work, order)
    return out


def _planted(
    searchers: Floats, points: Floats, blocks: tuple[Ints, Ints], how: str | None
) -> tuple[Any, Ints, Ints]:
    """Grow a tree for each block; return the root of each searcher (-1: none) and an order that keeps near ones together."""
    from ..kernels.trees import locate, plant

    order = np.argsort(blocks[1], kind="stable")
    there, begin = np.unique(blocks[1][order], return_index=True)
    end = np.append(begin[1:], len(order)).astype(np.int64)
    leaf = len(points) + 1 if how == "brute" else LEAF
    forest = plant(np.ascontiguousarray(points, float)[order], order, begin.astype(np.int64), end, leaf)
    roots = np.searchsorted(there, blocks[0])
    roots[roots == len(there)] = 0
    roots = np.where(there[roots] == blocks[0], roots, NOBODY) if len(there) else np.full(len(roots), NOBODY)
    near = locate(forest, np.ascontiguousarray(searchers, float), roots)
    return forest, roots, np.argsort(near, kind="stable")


def _threaded(work: Callable[[Ints], None], order: Ints) -> None:
    runs = [order[k : k + AT_ONCE] for k in range(0, len(order), AT_ONCE)]
    threads = min(os.cpu_count() or 1, len(runs))
    if threads <= 1:
        for run in runs:
            work(run)
        return
    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(work, runs))

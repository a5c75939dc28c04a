"""Nearest points and how many lie closer: exact, ties included, whatever way is quickest.

argmin |s - c|^2 or sum |s - c| over the candidates of a block, by k-d trees (Friedman, Bentley and Finkel 1977,
`kernels.kdtree`). Where a tree compares more than the share FADED of all pairs, measured on TRIED searchers, Euclidean
searches go by matrix products instead (`kernels.distance_sieve_search`). Used by `status_search`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...errors import BadInput, BadPlan, raise_all
from ...table import Floats
from ..protocol import NOBODY, Bools, Ints
from ..threads import cores, map_on_threads

SAME_DISTANCE = 1e-12  # distances closer than this, relative to their size, differ by rounding alone
LARGEST = 1e150  # of a coordinate, so that squares are finite
NO_BLOCK = np.iinfo(np.int64).min
WAYS = ("tree", "matrix", "brute")
LEAF = 64  # points of a leaf: the tile of the sieve
SHORTEST_TURN, LONGEST_TURN = 512, 4096  # searchers that a thread takes at once
FEW = 4000  # candidates: with fewer a tree is always quick enough
TRIED = 64  # searchers whose work in the tree is counted
FADED = 0.35  # share of the candidates that are compared in a tree: beyond it matrix products are quicker


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

    @classmethod
    def nobody(cls, count: int) -> Nearest:
        """Return what searchers without candidates find."""
        place, second = (np.full(count, NOBODY, np.int64) for _ in range(2))
        return cls(place, np.full(count, np.inf), np.zeros(count, np.int64), second, np.full(count, np.inf))

    @property
    def columns(self) -> tuple[Any, ...]:
        """All arrays, in order."""
        return self.place, self.distance, self.ties, self.second, self.second_distance


def nearest(
    searchers: Floats, candidates: Floats, blocks: tuple[Ints, Ints], *, norm: int = 2, how: str | None = None
) -> Nearest:
    """Return for each searcher (n x q) its nearest candidates (m x q) of the same block.

    `blocks` are those of searchers and candidates. Candidates as near as the nearest, but for rounding
    (`SAME_DISTANCE`), are ties: the one that comes first among them is named; the second is the first of the nearest
    others. `norm` is 2 (Euclidean) or 1 (city block). `how` is "tree", "matrix" (Euclidean only) or "brute"; by itself
    the quickest is taken, and all give the same.
    """
    from ...kernels.kdtree_search import find_nearest

    out = Nearest.nobody(len(searchers))
    search = SearchForest.of(searchers, candidates, blocks, norm, how)

    def by_tree(some: Ints) -> int:
        found = Nearest.nobody(len(some))
        who = search.searchers[some], search.roots[some]
        compared = find_nearest(search.forest, *who, norm, 1 + SAME_DISTANCE, *found.columns)
        for whole, part in zip(out.columns, found.columns, strict=True):
            whole[some] = part
        return int(compared)

    multiply = search.products_are_quicker(by_tree, how)
    tied = [each for block in search.blocks(multiply) for each in _nearest_by_products(search, block, out)]
    map_on_threads(by_tree, _turns(np.concatenate([search.order[~multiply[search.order]], *tied])))
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
    radius (1 - SAME_DISTANCE). `norm` and `how` are those of `nearest`.
    """
    from ...kernels.kdtree_search import count_closer

    out, enough = np.zeros(len(searchers), np.int64), len(points) if most is None else most
    limit = np.asarray(radius, np.float64) * (1 - SAME_DISTANCE)
    search = SearchForest.of(searchers, points, blocks, norm, how)

    def by_tree(some: Ints) -> int:
        found = np.empty(len(some), np.int64)
        who = search.searchers[some], search.roots[some]
        compared = count_closer(search.forest, *who, limit[some], enough, norm, found)
        out[some] = found
        return int(compared)

    multiply = search.products_are_quicker(by_tree, how)
    for block in search.blocks(multiply):
        _closer_by_products(search, block, limit, out)
    map_on_threads(by_tree, _turns(search.order[~multiply[search.order]]))
    return np.minimum(out, enough)


@dataclass(frozen=True, slots=True)
class SearchForest:
    """Searchers and points, with a tree for each block of points.

    `roots` are those of the searchers' trees (-1: no candidates), `order` lets near searchers follow each other.
    """

    searchers: Floats
    points: Floats
    forest: Any
    roots: Ints
    order: Ints
    norm: int

    @classmethod
    def of(
        cls, searchers: Floats, points: Floats, blocks: tuple[Ints, Ints], norm: int, how: str | None
    ) -> SearchForest:
        """Grow the trees; for "brute" each is a single leaf."""
        from ...kernels.kdtree import plant
        from ...kernels.kdtree_search import locate

        raise_all(_problems(norm, how), BadPlan)
        same = searchers is points
        searchers, points = (np.require(side, np.float64, ["C", "W"]) for side in (searchers, points))
        number = np.argsort(blocks[1], kind="stable")
        there, begin = np.unique(blocks[1][number], return_index=True)
        end = np.append(begin, len(number))[1:]
        leaf = len(points) + 1 if how == "brute" else LEAF
        forest = plant(points[number], number, begin, end, leaf, norm, _unit(searchers, points))
        at = np.searchsorted(there, blocks[0])
        roots = np.where(np.append(there, NO_BLOCK)[at] == blocks[0], at, NOBODY)
        order = number if same else np.argsort(locate(forest, searchers, roots), kind="stable")
        return cls(searchers, points, forest, roots, order, norm)

    def products_are_quicker(self, by_tree: Callable[[Ints], int], how: str | None) -> Bools:
        """Mark the searchers for whom matrix products are quicker than the tree.

        Some of those with many candidates try the tree, and the pairs that it compares are counted: how far a tree
        carries depends on the data, not only on the number of coordinates.
        """
        candidates = np.append(self.forest.stop - self.forest.first, 0)[self.roots]
        if how is not None or self.norm != 2:
            return np.asarray((candidates > 0) & (how == "matrix"))
        many = np.asarray(candidates >= FEW)
        if not many.any():
            return many
        order = self.order[many[self.order]]
        some = order[:: max(len(order) // TRIED, 1)]
        return np.asarray(many & (by_tree(some) > FADED * int(candidates[some].sum())))

    def blocks(self, chosen: Bools) -> list[Ints]:
        """Return the chosen searchers of each block, near ones together."""
        if not chosen.any():
            return []
        order = self.order[chosen[self.order]]
        order = order[np.argsort(self.roots[order], kind="stable")]
        cuts = np.flatnonzero(np.diff(self.roots[order])) + 1
        return [block for block in np.split(order, cuts) if len(block)]

    def products(self, block: Ints) -> Products:
        """Prepare the searchers of a block for matrix products with its points."""
        root = self.roots[block[0]]
        first, stop = int(self.forest.first[root]), int(self.forest.stop[root])
        points = self.points[self.forest.number[first:stop]]
        return Products.of(self.searchers[block], points, self.forest, first)


def _problems(norm: int, how: str | None) -> list[str]:
    """Say what is wrong with a norm and a way."""
    problems = [] if norm in (1, 2) else [f"norm is 2 (Euclidean) or 1 (city block), not {norm!r}"]
    if how is not None and how not in WAYS:
        problems.append(f"how is one of {', '.join(WAYS)}, or None for the quickest, not {how!r}")
    if how == "matrix" and norm == 1:
        problems.append("matrix products give Euclidean distances only: take norm=2, or another way")
    return problems


def _unit(*sides: Floats) -> float:
    """Return a power of two by which no coordinate is beyond 1, seen from any middle of them."""
    largest = float(np.max([[side.max(initial=0.0), -side.min(initial=0.0)] for side in sides]))
    if not largest < LARGEST:
        raise BadInput(
            f"points must have finite coordinates below {LARGEST:g}: put them on a common scale first"
        )
    return float(2.0 ** min(-np.ceil(np.log2(largest)) - 1, 1000.0)) if largest > 0 else 1.0


def _nearest_by_products(search: SearchForest, block: Ints, out: Nearest) -> list[Ints]:
    """Find the nearest in one block; return the searchers whose ties are still to be sorted out."""
    same, number, products = 1 + SAME_DISTANCE, search.forest.number, search.products(block)

    def work(run: slice) -> Ints:
        distances, places = products.nearest(run, same)
        some, one, two, three = block[run], *distances.T
        out.place[some], out.distance[some], out.ties[some] = number[places[:, 0]], one, 1
        out.second[some] = np.where(places[:, 1] < 0, NOBODY, number[places[:, 1]])
        out.second_distance[some] = two
        return np.asarray(some[(two < np.inf) & ((two <= one * same) | (three <= two * same))])

    return map_on_threads(work, products.runs())


def _closer_by_products(search: SearchForest, block: Ints, limit: Floats, out: Ints) -> None:
    """Count in one block how many lie closer."""
    products = search.products(block)

    def work(run: slice) -> None:
        out[block[run]] = products.closer(run, limit[block[run]])

    map_on_threads(work, products.runs())


def _turns(order: Ints) -> list[Ints]:
    """Cut searchers into turns for threads: several for each, so that all end together."""
    length = max(SHORTEST_TURN, min(LONGEST_TURN, len(order) // (8 * cores())))
    return [order[k : k + length] for k in range(0, len(order), length)]


# Distances by matrix products: a sieve in single precision, and full comparison of what it lets through.


AT_ONCE = 128  # searchers of one product: an even number


@dataclass(frozen=True, slots=True)
class Products:
    """Searchers and the points of their block, near ones together; `first` is the place of the first point.

    `aims` and `seen` are both as the sieve sees them, searchers twice as long and points as columns; `squares` are the
    squared lengths of searchers, `lengths` those of points, less what rounding can do and with it.
    """

    searchers: Floats
    points: Floats
    first: int
    aims: Any
    seen: Any
    squares: Floats
    lengths: Any
    unit: float

    @classmethod
    def of(cls, searchers: Floats, points: Floats, forest: Any, first: int) -> Products:
        """Prepare a block of searchers and points, the points in the order of their places in the forest."""
        aims = _sieve_points(searchers, forest)
        squares = np.square(aims, dtype=np.float64).sum(axis=1)
        lengths = np.ascontiguousarray(forest.lengths[:, first : first + len(points)])
        seen = np.ascontiguousarray(_sieve_points(points, forest).T)
        return cls(searchers, points, first, 2 * aims, seen, squares, lengths, forest.unit)

    def runs(self) -> list[slice]:
        """Cut the searchers into runs."""
        return [slice(k, k + AT_ONCE) for k in range(0, len(self.searchers), AT_ONCE)]

    def nearest(self, run: slice, same: float) -> tuple[Floats, Ints]:
        """Return the three smallest distances of each searcher and the places of the first two."""
        from ...kernels.distance_sieve_search import sift_nearest

        searchers = self.searchers[run]
        distances = np.full((len(searchers), 3), np.inf)
        places = np.full((len(searchers), 2), NOBODY, np.int64)
        given = *self._sides(run), same, run.start / len(self.searchers), distances, places
        sift_nearest(*given)
        return distances, np.where(places < 0, NOBODY, places + self.first)

    def closer(self, run: slice, limit: Floats) -> Ints:
        """Return how many points lie at a distance below each searcher's limit."""
        from ...kernels.distance_sieve_search import sift_closer

        out = np.zeros(len(limit), np.int64)
        given = *self._sides(run), limit, out
        sift_closer(*given)
        return out

    def _sides(self, run: slice) -> tuple[Any, ...]:
        """Return what both searches need of a run of searchers: an even number of them is multiplied."""
        aims = self.aims[run]
        aims = np.vstack([aims, np.zeros_like(aims[:1])]) if len(aims) % 2 else aims
        sides = self.seen, self.lengths, self.points, self.searchers[run], self.squares[run]
        return aims, *sides, self.unit


def _sieve_points(points: Floats, forest: Any) -> Any:
    """Return points as the sieve sees them, with zeros up to a number of coordinates that is multiplied at once."""
    from ...kernels.distance_sieve_search import ACROSS

    fields = points.shape[1]
    out = np.zeros((len(points), -(-fields // ACROSS) * ACROSS), np.float32)
    out[:, :fields] = (points - forest.middle) * forest.unit
    return out

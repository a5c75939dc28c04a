"""The one-to-one assignment of largest total score on blocks of any size, with a bound that certifies it.

Only some pairs are listed: the best of each row. Prices u, v that make the assignment over these the best one prove it
to be the best over all pairs where no other pair has a cost below u + v; pairs that have are listed too, and so on
(column generation: Dantzig's rule on the dual of Kuhn 1955). What is left, the sum over rows of cost - v less its
minimum over all columns, bounds by how much any assignment can be better: the `gap`. A block of at most DENSE_CELLS
pairs goes to scipy, which is the reference (`tests` compare both); larger ones to `kernels.assignment`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

import numpy as np

from ..table import Floats
from .protocol import NOBODY, Bools, Ints
from .threads import map_on_threads

if TYPE_CHECKING:
    from ..kernels.assignment import Graph, Match, Prices, Tiles

DENSE_CELLS = 1_000_000  # pairs of a block up to which scipy's matrix is quick
FIRST, BACK, MORE = 16, 4, 16  # pairs listed at first of each row and of each column, and in each later round
STEPS = (
    1.0,
    0.25,
    0.06,
    0.015,
    0.003,
)  # of bids, from coarse to fine, in what listed costs of a row differ by
LATER_STEPS = STEPS[-2:]
MOST_BIDS = 20  # for each row and step: beyond, paths are quicker
FEW = 0.02  # share of rows with an unlisted cheaper pair below which prices are good enough for paths
MOST_AUCTIONS, MOST_ROUNDS, EXACT_ROUNDS = 30, 60, 10  # of the rounds the last ones are always exact
TOLERANCE = 1e-14  # of costs and prices, relative to the largest of them: rounding
ROWS_AT_ONCE = 512  # searched by one thread in one go
LEAST_GAP = 1e-9  # what is said of a sum of thousands of scores, whose own rounding is about that
ROUNDED_AT_ONCE = 2_000_000  # pairs whose rounded scores are widened at once
Rounded = np.ndarray[tuple[int, int], np.dtype[np.float32]]
Chunk = tuple[Ints, Ints, Floats]  # numbers of rows and of columns, and the scores of their pairs


@dataclass(frozen=True, slots=True)
class Assignment:
    """The column of each row (-1: none can be had) and by how much no assignment has a larger total score."""

    column: Ints
    gap: float


def proved_gap(gap: float) -> float:
    """Return how near the best an assignment is proved to be, as it can be said: rounding is no proof."""
    return max(gap, LEAST_GAP)


@dataclass(frozen=True, slots=True)
class Offers:
    """The cheapest columns of each row at some prices, cheapest first (-1: no more), and their costs less prices."""

    column: Ints
    cost: Floats


class AssignmentBlock(Protocol):
    """Rows and columns whose pairs have scores."""

    @property
    def shape(self) -> tuple[int, int]:
        """How many rows and columns."""

    def first(self) -> tuple[Ints, Ints]:
        """List pairs to begin with: rows and columns."""

    def cheapest(self, prices: Floats, allowed: Bools | None, bounds: Floats) -> Offers:
        """Return the cheapest (allowed) columns of each row below its bound at prices of columns."""

    def scores(self, rows: Ints, columns: Ints) -> Floats:
        """Score listed pairs."""


def optimal(block: AssignmentBlock, rough: AssignmentBlock | None = None) -> Assignment:
    """Return the assignment of largest total score: first as many pairs as can be, then the largest total.

    `rough` is the same block with scores that are rounded where pairs are passed over: it is searched first, and what
    it finds is mended and certified by the block itself, whose passes are dear.
    """
    return _Search.of(block, block if rough is None else rough).run()


def dense(scores: Floats) -> Assignment:
    """Return the same by scipy from a matrix of scores, without the impossible pairs it could not avoid."""
    from scipy.optimize import linear_sum_assignment

    column, possible = np.full(len(scores), NOBODY), np.isfinite(scores)
    if not possible.any():
        return Assignment(column, 0.0)
    low, high = scores[possible].min(), scores[possible].max()
    penalty = low - (high - low + 1.0) * (min(scores.shape) + 1)
    rows, columns = linear_sum_assignment(np.where(possible, scores, penalty), maximize=True)
    kept = possible[rows, columns]
    column[rows[kept]] = columns[kept]
    return Assignment(column, 0.0)


def best_of_matrix(scores: Floats) -> Assignment:
    """Return the best assignment of a matrix of scores: by scipy where it is small."""
    if scores.size <= DENSE_CELLS:
        return dense(scores)
    if scores.shape[0] <= scores.shape[1]:
        return optimal(matrix(scores))
    return transpose_assignment(optimal(matrix(np.ascontiguousarray(scores.T))), len(scores))


def transpose_assignment(found: Assignment, rows: int) -> Assignment:
    """Return an assignment of columns to rows as one of rows to columns."""
    column, has = np.full(rows, NOBODY), np.flatnonzero(found.column >= 0)
    column[found.column[has]] = has
    return Assignment(column, found.gap)


@dataclass(slots=True)
class _Search:
    """The pairs listed so far (numbers row x columns + column, in order, and costs), prices and the matching."""

    block: AssignmentBlock
    keys: Ints
    costs: Floats
    rows: Prices
    columns: Prices
    match: Match
    is_cold: bool  # every start is from prices of 0: some columns stay free
    exact: AssignmentBlock
    scale: float = 1.0

    @classmethod
    def of(cls, exact: AssignmentBlock, block: AssignmentBlock) -> _Search:
        from ..kernels.assignment import Match, Prices

        count, wide = block.shape
        rows, columns = (Prices(np.zeros(n, np.int64), np.zeros(n)) for n in (count, wide))
        match = Match(np.full(count, NOBODY), np.full(wide, NOBODY))
        out = cls(block, np.empty(0, np.int64), np.empty(0), rows, columns, match, count != wide, exact)
        out.add(*block.first())
        return out

    @property
    def slack(self) -> float:
        """What costs and prices may differ by from rounding alone."""
        return TOLERANCE * self.scale

    def run(self) -> Assignment:
        """List, price and match until no pair is left that could do better."""
        if not self.is_cold:
            self._bid()
        for turn in range(MOST_ROUNDS):
            if turn == MOST_ROUNDS - EXACT_ROUNDS:
                self.block = self.exact
            self._match()
            low, offers = self._lowest()
            if not self._more(offers):
                if self.block is self.exact:
                    break
                self.block = self.exact
        return Assignment(self.match.column, self._gap(low))

    def add(self, rows: Ints, columns: Ints) -> int:
        """List pairs; return how many were new and possible."""
        keys = np.unique(rows * self.block.shape[1] + columns)
        place = np.minimum(np.searchsorted(self.keys, keys), max(len(self.keys) - 1, 0))
        keys = keys[self.keys[place] != keys] if len(self.keys) else keys
        costs = -self.block.scores(*np.divmod(keys, self.block.shape[1]))
        keys, costs = keys[costs < np.inf], costs[costs < np.inf]
        self.scale = max(self.scale, float(np.abs(costs).max(initial=0.0)))
        both, every = np.concatenate([self.keys, keys]), np.concatenate([self.costs, costs])
        order = np.argsort(both, kind="stable")
        self.keys, self.costs = both[order], every[order]
        return len(keys)

    def graph(self) -> Graph:
        """Return the pairs as the loops take them."""
        from ..kernels.assignment import Graph

        rows, columns = np.divmod(self.keys, self.block.shape[1])
        start = np.concatenate([[0], np.cumsum(np.bincount(rows, minlength=self.block.shape[0]))])
        return Graph(start, columns, self.costs)

    def _bid(self) -> None:
        """Find good prices by auctions over ever more pairs, where every column is taken in the end."""
        from ..kernels.assignment import auction

        steps: tuple[float, ...] = STEPS
        spread = _spread_listed(self.graph())
        for _ in range(MOST_AUCTIONS):
            graph, count = self.graph(), len(self.match.column)
            for step in steps:
                self.match.column[:], self.match.row[:] = NOBODY, NOBODY
                auction(graph, self.columns, self.match, spread * step, MOST_BIDS * count)
            bounds = _lowest_listed(graph, self.columns.value) - self.slack
            offers = self.block.cheapest(self.columns.value, None, bounds)
            below = offers.column >= 0
            new = self.add(np.repeat(np.arange(count), below.sum(axis=1)), offers.column[below])
            if not new or below[:, 0].mean() < FEW:
                break
            steps = LATER_STEPS

    def _match(self) -> None:
        """Match over the listed pairs; where some row stays alone no column's price may have fallen for nothing."""
        from ..kernels.assignment import assign

        if self.is_cold:
            self._reset()
        assign(self.graph(), self.rows, self.columns, self.match, self.slack)
        if not self.is_cold and (self.match.column < 0).any():
            self.is_cold = True
            self._match()

    def _reset(self) -> None:
        for side, match in ((self.rows, self.match.column), (self.columns, self.match.row)):
            side.level[:], side.value[:], match[:] = 0, 0.0, NOBODY

    def _lowest(self) -> tuple[Floats, list[Offers]]:
        """Return the lowest cost less price of each row, and who offers less than its price: by the columns' levels.

        A row of level 1 takes any column of level 0 first; one of level 0 never one of a lower level.
        """
        high, u = self.rows.level == 1, self.rows.value - self.slack
        lower = self.columns.level < 0
        if not high.any() and not lower.any():
            offers = self.block.cheapest(self.columns.value, None, u)
            return np.minimum(u, offers.cost[:, 0]), [offers]
        near = self.block.cheapest(self.columns.value, ~lower, np.where(high, np.inf, u))
        far = self.block.cheapest(self.columns.value, lower, np.where(high, u, -np.inf))
        low = np.where(high, np.minimum(u, far.cost[:, 0]), np.minimum(u, near.cost[:, 0]))
        return np.where(high & (near.column[:, 0] >= 0), -np.inf, low), [near, far]

    def _more(self, offers: list[Offers]) -> int:
        """List pairs that are cheaper than the prices say; return how many are new."""
        new = 0
        for one in offers:
            below = one.column >= 0
            new += self.add(np.repeat(np.arange(len(below)), below.sum(axis=1)), one.column[below])
        return new

    def _gap(self, low: Floats) -> float:
        """Return by how much costs of the pairs chosen exceed what the prices prove to be the least."""
        has = np.flatnonzero(self.match.column >= 0)
        columns = self.match.column[has]
        paid = -self.block.scores(has, columns) - self.columns.value[columns]
        return float(np.maximum(paid - low[has], 0.0).sum())


def _spread_listed(graph: Graph) -> float:
    """Return by how much the listed costs of a row differ, in the middle of all rows; 1 where they do not."""
    some = np.flatnonzero(np.diff(graph.start))
    if not len(some):
        return 1.0
    high, low = (one.reduceat(graph.cost, graph.start[some]) for one in (np.maximum, np.minimum))
    return float(np.median(high - low)) or 1.0


def _lowest_listed(graph: Graph, prices: Floats) -> Floats:
    """Return the lowest cost less price of each row over the listed pairs."""
    low = np.full(len(graph.start) - 1, np.inf)
    some = np.flatnonzero(np.diff(graph.start))
    if len(some):
        low[some] = np.minimum.reduceat(graph.cost - prices[graph.column], graph.start[some])
    return low


# Blocks whose pairs are scored one after the other.


@dataclass(frozen=True, slots=True)
class ScoreBlock:
    """Any scores, passed over in chunks each time; minus infinity is impossible."""

    shape: tuple[int, int]
    chunks: Callable[[], Iterable[Chunk]]
    scores: Callable[[Ints, Ints], Floats]

    def first(self) -> tuple[Ints, Ints]:
        """List the best columns of each row and the best rows of each column, in one pass."""
        from ..kernels.assignment import keep_cheapest

        count, wide = self.shape
        ours, theirs = _Kept.of(count, FIRST), _Kept.of(wide, BACK)
        for rows, columns, scores in self.chunks():
            keep_cheapest(scores, rows, columns, np.zeros(wide), ours.cost, ours.column)
            turned = np.ascontiguousarray(scores.T)
            keep_cheapest(turned, columns, rows, np.zeros(count), theirs.cost, theirs.column)
        mine, back = ours.listed(), theirs.listed()
        return np.concatenate([mine[0], back[1]]), np.concatenate([mine[1], back[0]])

    def cheapest(self, prices: Floats, allowed: Bools | None, bounds: Floats) -> Offers:
        """Return the cheapest columns of each row below its bound."""
        from ..kernels.assignment import keep_cheapest

        kept = _Kept.of(self.shape[0], MORE)
        kept.cost[:] = bounds[:, None]
        paid = prices if allowed is None else np.where(allowed, prices, -np.inf)
        for rows, columns, scores in self.chunks():
            keep_cheapest(scores, rows, columns, paid, kept.cost, kept.column)
        return Offers(kept.column, kept.cost)


@dataclass(frozen=True, slots=True)
class _Kept:
    """So many of the cheapest for each record, with their costs."""

    column: Ints
    cost: Floats

    @classmethod
    def of(cls, count: int, most: int) -> _Kept:
        return cls(np.full((count, most), NOBODY), np.full((count, most), np.inf))

    def listed(self) -> tuple[Ints, Ints]:
        """Return the pairs, records first."""
        there = self.column >= 0
        return np.repeat(np.arange(len(self.column)), there.sum(axis=1)), self.column[there]


def rounded_block(scores: Rounded, block: ScoreBlock) -> ScoreBlock:
    """Return a block as it is passed over by scores at hand, rounded to half their digits; listed ones are exact."""
    every = np.arange(scores.shape[1])

    def chunks() -> Iterator[Chunk]:
        for run in in_chunks(*scores.shape, ROUNDED_AT_ONCE):
            yield run, every, scores[run[0] : run[-1] + 1].astype(np.float64)

    return ScoreBlock(block.shape, chunks, block.scores)


def matrix(scores: Floats) -> ScoreBlock:
    """Return a block whose scores are at hand."""
    rows, columns = (np.arange(n) for n in scores.shape)
    return ScoreBlock(scores.shape, lambda: [(rows, columns, scores)], lambda i, j: np.asarray(scores[i, j]))


# Blocks whose scores are offsets less half of squared distances.


@dataclass(frozen=True, slots=True)
class NearPairs:
    """Points of rows and of columns (n x p), and what columns have above: score = offset - |row - column|^2 / 2.

    Every row may have every column, and there are no fewer columns than rows. `order` has the columns by tile.
    """

    rows: Floats
    columns: Floats
    offset: Floats
    order: Ints
    tiles: Tiles = field(repr=False)

    @classmethod
    def of(cls, rows: Floats, columns: Floats, offset: Floats) -> NearPairs:
        """Put columns that lie together into tiles."""
        from ..kernels.assignment import WIDE, Tiles

        order = points_together(columns, WIDE)
        points = np.ascontiguousarray(columns[order].T)
        begin = np.arange(0, len(columns), WIDE)
        low, high = (
            np.ascontiguousarray(one.reduceat(points, begin, axis=1).T) for one in (np.minimum, np.maximum)
        )
        return cls(rows, columns, offset, order, Tiles(points, offset[order], low, high))

    @property
    def shape(self) -> tuple[int, int]:
        """How many rows and columns."""
        return len(self.rows), len(self.columns)

    def first(self) -> tuple[Ints, Ints]:
        """List near pairs, and one column for every row so that all can be matched."""
        count, wide = self.shape
        near = self.cheapest(np.zeros(wide), None, np.full(count, np.inf)).column[:, :FIRST]
        there = near >= 0
        back = nearest_points(self.rows, self.columns, min(BACK, count))[0]
        spread = np.argsort(self.columns[:, 0], kind="stable")[
            np.linspace(0, wide - 1, count).astype(np.int64)
        ]
        rows = [
            np.repeat(np.arange(count), there.sum(axis=1)),
            back.ravel(),
            np.argsort(self.rows[:, 0], kind="stable"),
        ]
        columns = [near[there], np.repeat(np.arange(wide), back.shape[1]), spread]
        return np.concatenate(rows), np.concatenate(columns)

    def cheapest(self, prices: Floats, allowed: Bools | None, bounds: Floats) -> Offers:
        """Return the cheapest columns of each row below its bound."""
        from ..kernels.assignment import cheaper

        column, cost = np.full((len(self.rows), MORE), NOBODY), np.empty((len(self.rows), MORE))
        paid = (prices if allowed is None else np.where(allowed, prices, -np.inf))[self.order]

        def work(run: slice) -> None:
            cheaper(self.tiles, self.rows[run], paid, bounds[run], cost[run], column[run])

        map_on_threads(work, [slice(a, a + ROWS_AT_ONCE) for a in range(0, len(self.rows), ROWS_AT_ONCE)])
        return Offers(np.where(column >= 0, self.order[column], NOBODY), cost)

    def scores(self, rows: Ints, columns: Ints) -> Floats:
        """Score listed pairs."""
        apart = self.rows[rows] - self.columns[columns]
        return np.asarray(self.offset[columns] - 0.5 * np.einsum("ij,ij->i", apart, apart))

    def matrix(self) -> Floats:
        """Return the scores of all pairs, where these are few."""
        count, wide = self.shape
        every = self.scores(np.repeat(np.arange(count), wide), np.tile(np.arange(wide), count))
        return every.reshape(count, wide)


def nearest_points(points: Floats, searchers: Floats, count: int) -> tuple[Ints, Floats]:
    """Return so many nearest points of each searcher, and how far they are."""
    from scipy.spatial import cKDTree

    far, place = cKDTree(points).query(searchers, k=count)
    shape = len(searchers), count
    return np.asarray(place).reshape(shape), np.asarray(far).reshape(shape)


def points_together(points: Floats, wide: int) -> Ints:
    """Return an order in which each stretch of `wide` points lies together: halves by the widest field, and so on."""
    waiting, done = [np.arange(len(points))], []
    while waiting:
        some = waiting.pop()
        if len(some) <= wide:
            done.append(some)
            continue
        widest = int(np.ptp(points[some], axis=0).argmax()) if points.shape[1] else 0
        half = -(-len(some) // (2 * wide)) * wide
        split = some[np.argpartition(points[some, widest], half - 1)] if points.shape[1] else some
        waiting += [split[half:], split[:half]]
    return np.concatenate(done) if done else np.empty(0, np.int64)


# Which candidates nobody can tell apart.


@dataclass(slots=True)
class Digests:
    """Digests of the scores that candidates have with searchers, added up chunk by chunk: the same where these are."""

    words: np.ndarray[tuple[int], np.dtype[np.uint64]]

    @classmethod
    def of(cls, candidates: int) -> Digests:
        """Begin with nothing."""
        return cls(np.zeros(candidates, np.uint64))

    def add(self, searchers: Ints, candidates: Ints, scores: Floats) -> None:
        """Take scores (searchers x candidates) in."""
        from ..kernels.assignment import add_digests

        some = np.zeros(len(candidates), np.uint64)
        bits = np.ascontiguousarray(scores + 0.0, dtype=np.float64).view(np.uint64)
        add_digests(bits, (searchers.astype(np.uint64) + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15), some)
        self.words[candidates] += some

    def alike(self, candidates: Ints) -> Ints:
        """Return for each of some candidates the place of the first one that is the same."""
        _, first, inverse = np.unique(self.words[candidates], return_index=True, return_inverse=True)
        return np.asarray(first[inverse])


def in_chunks(rows: int, columns: int, cells: int) -> Iterator[Ints]:
    """Cut rows into runs that make about so many pairs with all columns."""
    length = max(1, cells // max(columns, 1))
    return (np.arange(begin, min(begin + length, rows)) for begin in range(0, rows, length))

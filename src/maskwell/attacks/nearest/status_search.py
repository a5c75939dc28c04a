"""Searches in which statuses count before distances: records are grouped by the statuses of their fields.

Order of candidates: number of differing statuses first, then the distance over the fields open on both sides. Own
derivation: the number of differing statuses is the same for all pairs of two kinds of statuses, so that kinds are
searched in turn, and only as far as a searcher still lacks candidates. Used by `plan`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from ...arrow_buffers import to_numpy
from ...table import Floats, Table
from ..agreement import CLOSED, CLOSED_STEP, LARGEST, Exact, Relative, compare_tables
from ..candidate_scores import members
from ..protocol import NOBODY, Bools, Ints
from .distances import Chosen, Metric
from .search import SAME_DISTANCE, Nearest, closer, nearest

FAR = np.iinfo(np.int64).max


@dataclass(frozen=True, slots=True)
class ComparedRecords:
    """Fields x records of tables of true values and of the release on one scale, closed values far above all others.

    `levels` is the number of names of each field that holds names, which are numbered alike in all; 0 for numbers.
    """

    known: tuple[Floats, ...]
    released: Floats
    levels: tuple[int, ...]

    @classmethod
    def of(cls, tables: Sequence[Table], released: Table, fields: Sequence[str]) -> ComparedRecords:
        """Put tables on one scale; a table that comes twice is read once."""
        rules = dict.fromkeys(fields)
        made = {id(table): compare_tables(table, released, rules, Relative(0.1)) for table in tables}
        known = tuple(made[id(table)].known for table in tables)
        theirs = made[id(tables[0])]
        levels = [0] * len(fields)
        for j, name in enumerate(fields):
            if isinstance(theirs.rules[j], Exact):
                levels[j] = _name_alike([*tables, released], [*known, theirs.released], j, name)
        return cls(known, theirs.released, tuple(levels))


def _name_alike(tables: Sequence[Table], values: Sequence[Floats], j: int, name: str) -> int:
    """Number the names of a field alike in several tables, in place where it is open; return how many there are."""
    import pyarrow as pa
    import pyarrow.compute as pc

    texts: Any = [table.array(name).cast(pa.string()) for table in tables]
    labels = pc.unique(pa.concat_arrays(texts)).drop_null()
    for text, rows in zip(texts, values, strict=True):
        codes = to_numpy(pc.index_in(text, value_set=labels))
        rows[j] = np.where(rows[j] > LARGEST, rows[j], codes)
    return len(labels)


@dataclass(frozen=True, slots=True)
class StatusRecords:
    """Records of one side: values (records x fields, 0 unless open), the kind of their statuses, blocks.

    `kinds` has the statuses of each kind (kinds x fields, 0 is open), `order` is a keyed order of the records.
    """

    values: Floats
    kinds: Ints
    kind: Ints
    blocks: Ints
    order: Ints

    @classmethod
    def of(cls, compared: Floats, blocks: Ints, order: Ints) -> StatusRecords:
        """Take records in as `compare_tables` leaves them: fields x records, closed values far above all others."""
        closed = compared > LARGEST
        if not closed.any():
            nothing = np.zeros((1, len(compared)), np.int64)
            return cls(compared.T, nothing, np.zeros(len(blocks), np.int64), blocks, order)
        statuses = np.where(closed, np.rint((compared - CLOSED) / CLOSED_STEP), 0.0).astype(np.int64)
        kinds, kind = _status_patterns(statuses)
        return cls(np.where(closed, 0.0, compared).T, kinds, kind, blocks, order)

    def __len__(self) -> int:
        return len(self.kind)

    def take(self, records: Ints, blocks: Ints) -> StatusRecords:
        """Return some records, in blocks that may be others, looked at as they come."""
        return replace(
            self,
            values=self.values[records],
            kind=self.kind[records],
            blocks=blocks,
            order=np.arange(len(records)),
        )


def _status_patterns(statuses: Ints) -> tuple[Ints, Ints]:
    """Return the different columns of statuses, as rows, and the number of each record's."""
    number = np.zeros(statuses.shape[1], np.int64)
    first = np.zeros(min(statuses.shape[1], 1), np.int64)
    for row in statuses:
        _, first, number = np.unique(number * 512 + row, return_index=True, return_inverse=True)
    return statuses[:, first].T, number


@dataclass(frozen=True, slots=True)
class NearestFound:
    """For each searcher its nearest candidate, how many are as near, and the next (-1 where there is none).

    `differing` counts the statuses that differ; `distance` is squared for Euclidean metrics.
    """

    place: Ints
    ties: Ints
    differing: Ints
    distance: Floats
    second: Ints
    second_differing: Ints
    second_distance: Floats

    @classmethod
    def nothing(cls, count: int) -> NearestFound:
        """Start with nobody."""
        nobody, far, infinite = np.full(count, NOBODY), np.full(count, FAR), np.full(count, np.inf)
        zero = np.zeros(count, np.int64)
        return cls(nobody, zero, far, infinite, nobody.copy(), far.copy(), infinite.copy())

    def add(self, rows: Ints, places: Ints, near: Nearest, differing: int, rank: Ints) -> None:
        """Take in what a search among further candidates (`places`) found for some rows."""
        firsts, seconds = (_record_places(places, found) for found in (near.place, near.second))
        place = np.stack([self.place[rows], self.second[rows], firsts, seconds])
        distance = np.stack(
            [self.distance[rows], self.second_distance[rows], near.distance, near.second_distance]
        )
        counts = np.stack([self.differing[rows], self.second_differing[rows], firsts, seconds])
        counts[2:] = np.where(place[2:] >= 0, differing, FAR)
        ranks = np.where(place >= 0, rank[place], FAR)
        best, tied, at = *_first(counts, distance, ranks), np.arange(len(rows))
        self.ties[rows] = self.ties[rows] * tied[0] + near.ties * tied[2]
        self.place[rows], self.differing[rows] = place[best, at], counts[best, at]
        self.distance[rows] = distance[best, at]
        counts[best, at], distance[best, at], ranks[best, at] = FAR, np.inf, FAR
        place[best, at] = NOBODY
        then, _ = _first(counts, distance, ranks)
        self.second[rows], self.second_differing[rows] = place[then, at], counts[then, at]
        self.second_distance[rows] = distance[then, at]


def _record_places(places: Ints, found: Ints) -> Ints:
    return np.where(found >= 0, places[found], NOBODY)


def _first(differing: Ints, distance: Floats, ranks: Ints) -> tuple[Ints, Bools]:
    """Return which of several is nearest in each column, the first among ties, and which are tied."""
    nearest_here = np.where(differing == differing.min(axis=0), distance, np.inf)
    tied = (differing == differing.min(axis=0)) & as_near(nearest_here, nearest_here.min(axis=0))
    return np.where(tied, ranks, FAR).argmin(axis=0), tied


def as_near(distance: Floats, least: Floats) -> Bools:
    """Whether distances are not larger than others but for rounding."""
    return np.asarray(distance <= least * (1 + SAME_DISTANCE))


@dataclass(frozen=True, slots=True)
class StatusSearch:
    """Searchers and candidates under a metric; `released` says which side of it each is put on."""

    searchers: StatusRecords
    candidates: StatusRecords
    metric: Metric
    released: tuple[bool, bool]
    groups: dict[int, Ints] = field(init=False, repr=False, compare=False)
    blocks: int = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        sides = self.searchers.blocks, self.candidates.blocks
        object.__setattr__(self, "blocks", 1 + max(int(side.max(initial=0)) for side in sides))
        object.__setattr__(self, "groups", members(self.candidates.kind, self.candidates.order))

    def nearest(self) -> NearestFound:
        """Search for everybody: the fewest differing statuses first, then the distance over what is open on both."""
        found, rank = NearestFound.nothing(len(self.searchers)), np.empty(len(self.candidates), np.int64)
        rank[self.candidates.order] = np.arange(len(rank))
        for kind, rows in _by_kind(self.searchers.kind):
            apart = self._apart(kind)
            first, last = self._levels(apart, rows)
            for level in np.unique(apart).tolist():
                wanted = rows[(first <= level) & (level <= last)]
                blocks = self._blocks_of(wanted)
                for other in np.flatnonzero(apart == level).tolist() if len(wanted) else ():
                    places = self._candidates(other, blocks)
                    if len(places):
                        near = nearest(*self._sides(kind, other, wanted, places), norm=self.metric.norm)
                        found.add(wanted, places, near, level, rank)
        return found

    def closer(self, rows: Ints, differing: Ints, distance: Floats, most: int | None = None) -> Ints:
        """Count the candidates that lie strictly closer to each of some searchers than a given nearness (or `most`)."""
        out = np.zeros(len(rows), np.int64)
        for kind, at in _by_kind(self.searchers.kind[rows]):
            apart = self._apart(kind)
            table = self._counts(apart)
            before = np.concatenate([np.zeros((len(table), 1), np.int64), table.cumsum(axis=1)], axis=1)
            out[at] = before[self.searchers.blocks[rows[at]], differing[at]]
            for other in np.flatnonzero(np.isin(apart, differing[at])).tolist():
                wanted = at[differing[at] == apart[other]]
                places = self._candidates(other, self._blocks_of(rows[wanted]))
                if len(places):
                    sides = self._sides(kind, other, rows[wanted], places)
                    out[wanted] += closer(*sides, distance[wanted], norm=self.metric.norm, most=most)
        return out if most is None else np.minimum(out, most)

    def pairs(self, rows: Ints, places: Ints) -> tuple[Ints, Floats]:
        """Return how many statuses of listed pairs differ, and their distances."""
        differing, distance = np.empty(len(rows), np.int64), np.empty(len(rows))
        ours, theirs = self.searchers.kind[rows], self.candidates.kind[places]
        for code, at in _by_kind(ours * len(self.candidates.kinds) + theirs):
            kind, other = divmod(code, len(self.candidates.kinds))
            differing[at] = (self.searchers.kinds[kind] != self.candidates.kinds[other]).sum()
            distance[at] = point_distances(*self._points(kind, other, rows[at], places[at]), self.metric.norm)
        return differing, distance

    def table(self, rows: Ints, places: Ints) -> tuple[Ints, Floats]:
        """Return the same for every pair of some searchers and some candidates: rows x places."""
        distance = np.empty((len(rows), len(places)))
        differing = np.empty(distance.shape, np.int64)
        for kind, mine in _by_kind(self.searchers.kind[rows]):
            differing[mine] = self._apart(kind)[self.candidates.kind[places]]
            for other, theirs in _by_kind(self.candidates.kind[places]):
                here, there = self._points(kind, other, rows[mine], places[theirs])
                distance[np.ix_(mine, theirs)] = point_distances(here[:, None], there[None], self.metric.norm)
        return differing, distance

    def points(self, rows: Ints, places: Ints) -> tuple[Floats, Floats]:
        """Return points of searchers and of candidates that are all of one kind, over the fields open in it."""
        return self._points(
            int(self.searchers.kind[rows[0]]), int(self.candidates.kind[places[0]]), rows, places
        )

    def _apart(self, kind: int) -> Ints:
        """Return in how many statuses each kind of candidates differs from a kind of searchers."""
        return np.asarray((self.searchers.kinds[kind] != self.candidates.kinds).sum(axis=1))

    def _blocks_of(self, rows: Ints) -> Bools | None:
        """Mark the blocks of some searchers; None where these are all."""
        wanted = np.zeros(self.blocks, bool)
        wanted[self.searchers.blocks[rows]] = True
        return None if wanted.all() else wanted

    def _candidates(self, kind: int, blocks: Bools | None) -> Ints:
        """Return the candidates of a kind in some blocks, in keyed order."""
        places = self.groups.get(kind, np.empty(0, np.int64))
        return places if blocks is None else places[blocks[self.candidates.blocks[places]]]

    def _counts(self, apart: Ints) -> Ints:
        """Return blocks x numbers of differing statuses: how many candidates there are."""
        width = self.searchers.kinds.shape[1] + 1
        codes = self.candidates.blocks * width + apart[self.candidates.kind]
        return np.bincount(codes, minlength=self.blocks * width).reshape(-1, width)

    def _levels(self, apart: Ints, rows: Ints) -> tuple[Ints, Ints]:
        """Return from which number of differing statuses a searcher has a candidate, and from which two."""
        totals = self._counts(apart).cumsum(axis=1)[self.searchers.blocks[rows]]
        first, second = ((totals >= least).argmax(axis=1) for least in (1, 2))
        nobody, alone = totals[:, -1] == 0, totals[:, -1] < 2
        return np.where(nobody, FAR, first), np.where(alone, first, second)

    def _sides(
        self, kind: int, other: int, rows: Ints, places: Ints
    ) -> tuple[Floats, Floats, tuple[Ints, Ints]]:
        here, there = self._points(kind, other, rows, places)
        return here, there, (self.searchers.blocks[rows], self.candidates.blocks[places])

    def _points(self, kind: int, other: int, rows: Ints, places: Ints) -> tuple[Floats, Floats]:
        """Return points over the fields that are open in both kinds."""
        both = (self.searchers.kinds[kind] == 0) & (self.candidates.kinds[other] == 0)
        chosen: Chosen = tuple(np.flatnonzero(both).tolist())
        here = self.metric.points(self.searchers.values[rows], chosen, released=self.released[0])
        there = self.metric.points(self.candidates.values[places], chosen, released=self.released[1])
        return here, there


def point_distances(here: Floats, there: Floats, norm: int) -> Floats:
    """Return the distances of points, squared for norm 2, summed in the order of `search`."""
    total = np.zeros(np.broadcast_shapes(here.shape[:-1], there.shape[:-1]))
    for j in range(here.shape[-1]):
        apart = there[..., j] - here[..., j]
        total += apart * apart if norm == 2 else np.abs(apart)
    return total


def _by_kind(kinds: Ints) -> Iterator[tuple[int, Ints]]:
    """Yield each number that occurs with the places where it does."""
    return iter(members(kinds, np.arange(len(kinds))).items() if len(kinds) else ())

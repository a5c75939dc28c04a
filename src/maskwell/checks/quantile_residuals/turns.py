"""Noise that runs through its range many times along other noises, true ranks and true values.

With u uniform of one released column and a, b what it may follow (uniforms of other columns' noises, shares of records
below in true columns, true values on their range, and products of two of these), each record has a phase

    w = exp(2 pi i u),      S = sum of w exp(-2 pi i (k a + l b)),      |S|^2 / n ~ Exp(1) in the tail,

for all whole numbers k and l, whatever a and b are: all of them are read off a Fourier transform. u = 19 a + 23 b, or
500 a b, or a b's wave on a line, modulo 1, has no trend, no class and no small table in which it shows, but here it has
|S| = n. A curve that is no line is a line from each record to the next: differences of u along the edges of a forest
are independent and uniform again, so that with records in the order of a

    S = sum of exp(2 pi i (u' - u)) exp(-2 pi i l (b' - b))

has the same law, and, with each record and its nearest in a and b, T = sum of cos 2 pi (u' - u) has P(T > t) <=
exp(-t^2 / edges), since the mean of exp(s cos) is at most exp(s^2 / 4) (Hoeffding's way). The scores of several columns
must be independent of each other within records. Hoeffding (1963) for the bound. Called by `battery`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations, combinations_with_replacement

import numpy as np
import numpy.typing as npt

from ...table import Floats
from .cells import Integers
from .families import Score
from .ledger import Ledger
from .spectra import IN_STEP
from .truths import FEWEST, TrueColumn

Phases = npt.NDArray[np.complex64]

FAMILY = "turns"
MOST_RECORDS = 3_000  # drawn at random: more would show faster turns between neighbours
MOST_NOISES, MOST_TRUE = 5, 4  # other columns' noises and true columns, those that are released first
MOST_BESIDE = 8  # true columns by which records are neighbours, and whose values these have
MANY_VALUES = 40  # of a true column: what follows fewer of them shows in classes
# Bins and the largest number of turns that is looked at: along one axis (of records or from one to the next), a
# product and an axis, two axes, three.
ONE, CURVED, TWO, THREE = (4096, 1000), ((256, 100), (64, 20)), ((256, 100),) * 2, ((32, 10),) * 3
TIES = 1e-9  # of the range: breaks ties between nearest records, so that edges make no ring
BATCH = 64  # axes transformed at once


@dataclass(frozen=True)
class Axis:
    """What the noise may follow: a name and a number of turns' worth, NaN where it is not open."""

    name: str
    values: Floats
    is_share: bool = True


def on_range(values: Floats) -> Floats:
    """Return values as shares of their range, which a few far ones do not stretch."""
    if np.isnan(values).all():
        return values
    low, high = np.nanquantile(values, (0.01, 0.99))
    return np.asarray((values - low) / (high - low if high > low else 1.0))


def turns(
    ledger: Ledger,
    scores: Sequence[Score],
    columns: Sequence[TrueColumn],
    positions: Sequence[TrueColumn],
    seed: int,
) -> None:
    """Test the scores of each column along the others', their neighbours' and true columns; scores are independent."""
    from scipy.special import ndtr

    if not scores:
        return
    rng = np.random.default_rng([seed, 24])
    chosen = np.sort(rng.permutation(len(columns[0].codes))[:MOST_RECORDS])
    for score in scores:
        known = chosen[~np.isnan(score.values[chosen])]
        if len(known) < FEWEST:
            continue
        some = [score, *(one for one in scores if one is not score)][: MOST_NOISES + 1]
        noises = [Axis(f"the noise of {one.label}", np.asarray(ndtr(one.values[known]))) for one in some[1:]]
        able = _true_columns(columns, score, scores)
        axes = _open((*noises, *_true_axes(able[:MOST_TRUE], known)))
        beside = (*_noises_beside(some, (*positions, *able), known), *_truths_beside(able, known))
        alone = _open((*_normal_products(some[1:], known), *beside))
        if axes or alone:
            _tests(ledger, score, np.asarray(ndtr(score.values[known])), axes, alone, rng)


def _open(axes: Iterable[Axis]) -> tuple[Axis, ...]:
    """Return the axes that are open in enough records."""
    return tuple(axis for axis in axes if np.count_nonzero(~np.isnan(axis.values)) >= FEWEST)


def _normal_products(others: Sequence[Score], chosen: Integers) -> Iterator[Axis]:
    """Return products of two normal scores, squares among them, on their range."""
    for one, other in combinations_with_replacement(others, 2):
        product = one.values[chosen] * other.values[chosen]
        name = f"the noise of {one.label} times that of {other.label}, in sds"
        yield Axis(name, on_range(product), is_share=False)


def _noises_beside(
    scores: Sequence[Score], positions: Sequence[TrueColumn], chosen: Integers
) -> Iterator[Axis]:
    """Return the noises of the records before and after, its own column's among them."""
    from scipy.special import ndtr

    for position in positions:
        for word, own, beside in _beside(position):
            for score in scores:
                values = np.full(len(score.values), np.nan)
                values[own] = score.values[beside]
                name = f"the noise of {score.label} in the record {word} by {position.name}"
                yield Axis(name, np.asarray(ndtr(values[chosen])))


def _truths_beside(columns: Sequence[TrueColumn], chosen: Integers) -> Iterator[Axis]:
    """Return the true ranks of the records before and after in the order of each other column."""
    for order in columns:
        for word, own, beside in _beside(order):
            for column in (one for one in columns if one is not order):
                values = np.full(len(column.shares), np.nan)
                values[own] = column.shares[beside]
                yield Axis(f"the rank of {column.name} in the record {word} by {order.name}", values[chosen])


def _beside(order: TrueColumn) -> Iterator[tuple[str, Integers, Integers]]:
    """Return records and those before them, and after."""
    yield "before", order.order[1:], order.order[:-1]
    yield "after", order.order[:-1], order.order[1:]


def _true_columns(
    columns: Sequence[TrueColumn], score: Score, scores: Sequence[Score]
) -> tuple[TrueColumn, ...]:
    """Return true columns of many values: the score's own first, then others that are released with noise."""
    released = {one.column for one in scores}
    able = [one for one in columns if one.numbers is not None and one.distinct > MANY_VALUES]
    return tuple(
        sorted(able, key=lambda one: (one.name != score.column, one.name not in released))[:MOST_BESIDE]
    )


def _true_axes(columns: Sequence[TrueColumn], chosen: Integers) -> Iterator[Axis]:
    """Return ranks and values of true columns."""
    for column in columns:
        assert column.numbers is not None
        yield Axis(f"the rank of {column.name}", column.shares[chosen])
        yield Axis(f"the value of {column.name}", on_range(column.numbers[chosen]), is_share=False)


def _tests(
    ledger: Ledger,
    score: Score,
    uniform: Floats,
    axes: Sequence[Axis],
    alone: Sequence[Axis],
    rng: np.random.Generator,
) -> None:
    """Make the tests of one column of scores; axes that stand alone are not looked at in pairs."""
    phases = _phases(uniform)
    shares = [axis for axis in axes if axis.is_share]
    products = tuple(_products(shares))
    curved = [(product, axis) for product in products for axis in shares]
    _enter(ledger, score, _largest(phases, [(axis,) for axis in (*axes, *products, *alone)], (ONE,)))
    _enter(ledger, score, _largest(phases, list(combinations(axes, 2)), TWO))
    _enter(ledger, score, _largest(phases, list(combinations(shares, 3)), THREE))
    _enter(ledger, score, _largest(phases, curved, CURVED))
    _enter(ledger, score, _between_next(uniform, (*axes, *products), axes))
    _nearest(ledger, score, uniform, shares, rng)


def _phases(uniform: Floats) -> Phases:
    return np.asarray(np.exp(2j * np.pi * uniform), np.complex64)


def _products(shares: Sequence[Axis]) -> Iterator[Axis]:
    """Return products of two shares, squares among them."""
    for one, other in combinations_with_replacement(shares, 2):
        yield Axis(f"{one.name} times {other.name}", one.values * other.values)


@dataclass(frozen=True)
class Largest:
    """The largest of many sums: its power per record, how many records and sums there were, and where it was."""

    power: float
    records: int
    sums: int
    where: str


def _largest(
    phases: Phases, together: Sequence[tuple[Axis, ...]], tables: tuple[tuple[int, int], ...]
) -> Largest | None:
    """Return the largest sum along some axes at once, of all numbers of turns."""
    from scipy.fft import fftn

    best, sums = None, 0
    size = int(np.prod([bins for bins, _ in tables]))
    for i in range(0, len(together), BATCH):
        some = together[i : i + BATCH]
        grid = np.empty((len(some), size), np.complex64)
        counts = np.empty(len(some), np.int64)
        for j, axes in enumerate(some):
            grid[j, :], counts[j] = _deposit(phases, axes, tables)
        shape = (len(some), *(bins for bins, _ in tables))
        found = fftn(grid.reshape(shape), axes=range(1, len(shape)), overwrite_x=True)
        for axis, (bins, most) in enumerate(tables, 1):
            found = np.take(found, np.r_[0 : most + 1, bins - most : bins], axis=axis)
        power = (found.real**2 + found.imag**2).reshape(len(some), -1) / np.maximum(counts, 1)[:, None]
        power[counts < FEWEST] = 0.0
        sums += power.size
        at, place = divmod(int(power.argmax()), power.shape[1])
        if best is None or power[at, place] > best.power:
            numbers = np.unravel_index(place, [2 * most + 1 for _, most in tables])
            signed = [_signed_frequency(int(k), most) for k, (_, most) in zip(numbers, tables, strict=True)]
            said = " and ".join(f"{k} of {axis.name}" for k, axis in zip(signed, some[at], strict=True))
            best = Largest(float(power[at, place]), int(counts[at]), 0, f"turns: {said}")
    return None if best is None else Largest(best.power, best.records, sums, best.where)


def _signed_frequency(place: int, most: int) -> int:
    return place if place <= most else place - 2 * most - 1


def _deposit(phases: Phases, axes: Sequence[Axis], tables: tuple[tuple[int, int], ...]) -> tuple[Phases, int]:
    """Add the phases up in a table of bins along some axes; also returns of how many records."""
    place, size = np.zeros(len(phases)), 1
    for axis, (bins, _) in zip(axes, tables, strict=True):
        place = place * bins + np.floor((axis.values - np.floor(axis.values)) * bins)
        size *= bins
    known = ~np.isnan(place)
    at = np.minimum(place[known].astype(np.int64), size - 1)
    some = phases[known]
    table = np.bincount(at, some.real, size) + 1j * np.bincount(at, some.imag, size)
    return table.astype(np.complex64), len(at)


def _between_next(uniform: Floats, orders: Sequence[Axis], axes: Sequence[Axis]) -> Largest | None:
    """Return the largest sum of differences to the next record in each order, along each other axis."""
    found, sums = list[Largest](), 0
    for order in orders:
        at = np.argsort(order.values, kind="stable")[: np.count_nonzero(~np.isnan(order.values))]
        if len(at) <= FEWEST:
            continue
        phases = _phases(np.diff(uniform[at]))
        along = [(Axis(axis.name, np.diff(axis.values[at])),) for axis in axes if axis is not order]
        one = _largest(phases, along or [(Axis("nothing", np.zeros(len(phases))),)], (ONE,))
        if one is not None:
            sums += one.sums
            where = f"from each record to the next by {order.name}, {one.where}"
            found.append(Largest(one.power, one.records, 0, where))
    if not found:
        return None
    best = max(found, key=lambda one: one.power)
    return Largest(best.power, best.records, sums, best.where)


def _nearest(
    ledger: Ledger, score: Score, uniform: Floats, shares: Sequence[Axis], rng: np.random.Generator
) -> None:
    """Compare each record with the nearest by two shares."""
    p, size, records, said = list[float](), list[float](), list[int](), list[str]()
    for one, other in combinations(shares, 2):
        points = np.column_stack([one.values, other.values])
        known = np.flatnonzero(~np.isnan(points).any(axis=1))
        if len(known) < 2 * FEWEST:
            continue
        edges = known[_edges(points[known] + TIES * rng.random((len(known), 2)))]
        total = float(np.cos(2 * np.pi * (uniform[edges[:, 0]] - uniform[edges[:, 1]])).sum())
        p.append(float(np.exp(-(max(total, 0.0) ** 2) / len(edges))))
        size.append(max(total, 0.0) / len(edges))
        records.append(len(known))
        said.append(f"nearest records by {one.name} and {other.name}")
    if p:
        ledger.add(
            FAMILY, score.label, IN_STEP, np.array(p), np.array(size), np.array(records), said.__getitem__
        )


def _edges(points: Floats) -> Integers:
    """Return each pair of a point and its nearest once: no ring, as no two distances are alike."""
    from scipy.spatial import cKDTree

    nearest = np.asarray(cKDTree(points).query(points, k=2)[1])[:, 1]
    own = np.arange(len(points))
    is_first = (nearest[nearest] != own) | (own < nearest)
    return np.asarray(np.column_stack([own, nearest])[is_first])


def _enter(ledger: Ledger, score: Score, largest: Largest | None) -> None:
    if largest is not None:
        p = min(1.0, largest.sums * float(np.exp(-largest.power)))
        size = (largest.power / max(largest.records, 1)) ** 0.5
        ledger.add(FAMILY, score.label, IN_STEP, p, size, largest.records, largest.where)

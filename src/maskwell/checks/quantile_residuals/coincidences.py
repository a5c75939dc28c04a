"""Noise that is a value of the file: counts of records whose noise lies close to what a true column would make of it.

A wrong program adds, in some records, another column of its own: its rank, its distance from the mean, or itself. For
targets s of the true columns alone the number of records with |y - s| < d has the mean sum of Phi(s + d) - Phi(s - d),
and its upper tail is below the Poisson's (Anderson and Samuels 1967). Between two columns with independent noise
y - y' is N(0, 2). A part of 1% that repeats is seen, which a correlation (0.01) does not show.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from ...table import Floats
from .cells import ScoredCells
from .digit_families import TIMES, near_targets
from .families import TEN, Score
from .ledger import Effect, Ledger
from .marginals import BiasMarginal
from .truths import FEWEST, TrueColumn

SHARE = Effect("share of records beyond what the law explains", 0.02, 0.01)
CLOSE = 0.01  # sds of the noise that are called equal
COARSE = 0.2  # units beyond so many sds of the noise hide what this looks for


def noise_from_truth(
    ledger: Ledger, score: Score, columns: Sequence[TrueColumn], cells: ScoredCells | None
) -> None:
    """Count records whose noise is a true column's rank, distance from its mean, or value."""
    width = _width(cells)
    if width is None:
        return
    for column in columns:
        if column.numbers is None or column.distinct <= 2:
            continue
        for what, target in _targets(column):
            _count(ledger, score, target, width, f"the {what} of {column.name}")
        if cells is not None and not isinstance(cells.marginal, BiasMarginal):  # each would take an integral
            _values(ledger, cells, column)


def _targets(column: TrueColumn) -> Iterator[tuple[str, Floats]]:
    assert column.numbers is not None
    yield "normal rank", column.scores
    known = column.numbers[~np.isnan(column.numbers)]
    sd = float(known.std())
    if sd > 0:
        yield "distance from the mean", (column.numbers - known.mean()) / sd


def _values(ledger: Ledger, cells: ScoredCells, column: TrueColumn) -> None:
    """Count released values that are a true one of another column, or differ by it from their own."""
    assert column.numbers is not None
    other = column.numbers[cells.at]
    ways = [(cells.x + other, "more by"), (cells.x - other, "less by")]
    if column.name != cells.name:
        ways.append((other, "equal to"))
    for target, word in ways:
        near_targets(ledger, cells, target, f"{word} the true {column.name}")


def noise_of_columns(ledger: Ledger, scores: Sequence[Score], cells: dict[str, ScoredCells]) -> None:
    """Count records in which two columns have the same noise, or one that is opposite."""
    for i, one in enumerate(scores):
        for other in scores[i + 1 :]:
            widths = [_width(cells.get(score.column)) for score in (one, other)]
            if None not in widths:
                width = max(found for found in widths if found is not None)
                _same_noise(ledger, one, other, width)


def _same_noise(ledger: Ledger, one: Score, other: Score, width: float) -> None:
    from scipy.special import ndtr

    known = ~np.isnan(one.values) & ~np.isnan(other.values)
    count = int(known.sum())
    if count < FEWEST:
        return
    first, second = one.values[known], other.values[known]
    chance = float(ndtr(width * 0.5**0.5) - ndtr(-width * 0.5**0.5))  # y - y' is N(0, 2)
    for apart, word in ((first - second, "the same"), (first + second, "opposite")):
        seen = int(np.count_nonzero(np.abs(apart) < width))
        _enter(ledger, one, seen, count * chance, count, f"{word} noise in {one.label} and {other.label}")


def _width(cells: ScoredCells | None) -> float | None:
    """Return how close is close: a hundredth of the noise, or the unit where that is larger."""
    if cells is None or not len(cells.local_sd):
        return None
    unit = cells.unit / max(float(np.median(cells.local_sd)), 1e-300)
    return None if unit > COARSE else max(CLOSE, unit)


def _count(ledger: Ledger, score: Score, target: Floats, width: float, what: str) -> None:
    """Count noises at a target and at its opposite, which by symmetry have the same mean."""
    from scipy.special import ndtr

    own, known = score.of(target), score.known
    is_open = ~np.isnan(own)
    count = int(is_open.sum())
    if count < FEWEST:
        return
    own, known = own[is_open], known[is_open]
    mean = float((ndtr(own + width) - ndtr(own - width)).sum())
    for apart, word in ((known - own, "is"), (known + own, "is minus")):
        seen = int(np.count_nonzero(np.abs(apart) < width))
        _enter(ledger, score, seen, mean, count, f"the noise {word} {what}")


def _enter(ledger: Ledger, score: Score, seen: int, mean: float, count: int, where: str) -> None:
    from scipy.special import pdtrc

    p = float(pdtrc(seen - 1, mean)) if seen else 1.0
    share = (seen - mean) / count
    many = (seen >= TIMES * mean and seen - mean >= TEN) or share >= SHARE.fail
    said = f"{where} in {seen:,} records, {mean:.3g} expected"
    ledger.add("coincidences", score.label, SHARE, p, share, count, said, is_large=many)

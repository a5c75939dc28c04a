"""What columns in clear, and gaps, tell of masked ones: each by itself, and the cells that several make together.

Share explained = 1 - sum of squares left on held-out folds / sum of squares (cross-validation, Stone 1974): by least
squares on clear numbers and levels, and by means of cells, shrunk by one record. Called by `noise_checks`, and by
`narrow_classes` for its cells.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations
from typing import Any

import numpy as np
import numpy.typing as npt

from ..table import Floats
from .evidence import Evidence
from .protocol import CheckFigure
from .residuals import FEWEST, NOTHING

Integers = npt.NDArray[np.int64]

FOLDS = 4  # of the records, each predicted from the three others
MOST_LEVELS, FEWEST_IN_LEVEL = 60, 5  # categories of a clear column that predict, and the records they need
MOST_CROSSED = 12  # columns whose cells are looked at: 66 pairs


def predictable_from_clear(evidence: Evidence) -> CheckFigure:
    """Measure how well columns that leave in clear predict the true values of masked ones, on records held out."""
    clear, sample = [*predictors(evidence)], evidence.sample(purpose=(5,))
    gaps = [status[sample] for status in evidence.gaps.values()]
    if not (clear or gaps) or not evidence.numbers:
        return CheckFigure(
            NOTHING, "there is no clear column beside a masked number: nothing can be predicted"
        )
    missing = _stack_columns([(status > 0).astype(np.float64) for status in gaps], len(sample))
    empty = np.empty((len(sample), 0))
    simple = np.hstack([empty, *(_features(evidence, name, sample, False) for name in clear)])
    bent = np.hstack([empty, *(_features(evidence, name, sample, True) for name in clear)])
    designs = [simple, bent] if bent.shape[1] > simple.shape[1] else [simple]
    if gaps:  # with and without: columns that tell nothing cost some of what is explained on records held out
        designs += [np.hstack([one, missing]) for one in designs]
    levels = _levels(evidence, clear, sample)
    if gaps:
        levels["what is missing"] = cells_of(gaps)
    cells = {names: cells_of([levels[name] for name in names]) for names in _crossings(tuple(levels))}
    found, crossed = dict[str, float](), dict[str, tuple[str, ...]]()
    for name in evidence.numbers:
        x = evidence.true(name)[sample]
        known = ~np.isnan(x)
        if known.sum() >= FEWEST * FOLDS and np.ptp(x[known]) > 0:
            inside = {names: numbers[known] for names, numbers in cells.items()}
            found[name], crossed[name] = _explained_variance([d[known] for d in designs], inside, x[known])
    if not found:
        return CheckFigure(NOTHING, "too few open values to predict masked numbers from clear columns")
    worst = max(found, key=lambda name: found[name])
    by_cells = f" (with the cells of {' x '.join(crossed[worst])})" if crossed[worst] else ""
    said = (
        f"columns in clear explain {found[worst]:.0%} of the variance of the true {worst} on records held out"
        f"{by_cells}: noise cannot hide that part of it"
    )
    return CheckFigure(found[worst], said, worst, found, evidence.looked_at(sample))


def _explained_variance(
    designs: list[Floats], cells: dict[tuple[str, ...], Integers], x: Floats
) -> tuple[float, tuple[str, ...]]:
    """Return the share of variance explained on records held out, and the columns whose cells add to it."""
    x = (x - x.mean()) / x.std()
    rest = min([x, *(_held_out(design, x) for design in designs)], key=lambda left: float(left @ left))
    best, chosen = float(rest @ rest), tuple[str, ...]()
    for names, numbers in cells.items():
        left = _left_by_cells(numbers, rest)
        if left < best:
            best, chosen = left, names
    return 1 - best / len(x), chosen


def _crossings(names: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    """Return pairs of columns, and all of them together."""
    yield from combinations(names, 2)
    if len(names) > 2:
        yield names


def _levels(evidence: Evidence, clear: list[str], sample: Any) -> dict[str, Integers]:
    """Return the levels of clear categories, and of numbers that have few values; what is not open is a level."""
    levels: dict[str, Integers] = {}
    for name in clear:
        values, codes = np.unique(evidence.released(name)[sample], return_inverse=True)
        is_category = not evidence.masking.masked.schema[name].is_number
        if 1 < len(values) <= (len(sample) / FEWEST_IN_LEVEL if is_category else MOST_LEVELS):
            levels[name] = codes.ravel()
    fewest = sorted(levels, key=lambda name: int(levels[name].max()))[:MOST_CROSSED]
    return {name: levels[name] for name in levels if name in fewest}


def cells_of(levels: list[Integers]) -> Integers:
    """Number the combinations of levels; those that occur alone where there would be many more than records."""
    cells = levels[0]
    for codes in levels[1:]:
        cells = cells * (codes.max() + 1) + codes
        if cells.max() > len(cells):
            cells = np.unique(cells, return_inverse=True)[1].ravel()
    return cells


def _left_by_cells(cells: Integers, rest: Floats) -> float:
    """Return the sum of squares left by the mean of each record's cell in the other folds.

    A cell counts one record more, of mean zero, than it has: many small cells then explain nothing by being many.
    """
    fold = np.arange(len(rest)) % FOLDS
    shape = (int(cells.max()) + 1, FOLDS)
    place = cells * FOLDS + fold
    sums = np.bincount(place, rest, shape[0] * FOLDS).reshape(shape)
    counts = np.bincount(place, minlength=shape[0] * FOLDS).reshape(shape)
    means = (sums.sum(axis=1, keepdims=True) - sums) / (counts.sum(axis=1, keepdims=True) - counts + 1)
    left = rest - means.ravel()[place]
    return float(left @ left)


def predictors(evidence: Evidence) -> Iterator[str]:
    """Return the columns in clear that may tell of masked ones: no groups, and of texts those whose values repeat."""
    masked = evidence.masking.masked
    for name in evidence.clear:
        column = masked.schema[name]
        if "group" not in column.roles and (column.is_number or masked.has_classes(name)):
            yield name


def _features(evidence: Evidence, name: str, sample: Any, bent: bool) -> Floats:
    """Return what a clear column predicts with: its value (and its square and logarithm), or its larger categories."""
    values = evidence.released(name)[sample]
    known = ~np.isnan(values)
    closed = [] if known.all() else [(~known).astype(np.float64)]
    if not evidence.masking.masked.schema[name].is_number:
        levels, counts = np.unique(values[known], return_counts=True)
        large = levels[np.argsort(-counts, kind="stable")][:MOST_LEVELS]
        large = large[np.sort(-counts)[: len(large)] <= -FEWEST_IN_LEVEL]
        dummies = [(values == level).astype(np.float64) for level in large[1:]]
        return _stack_columns([*dummies, *closed], len(values))
    centre = values[known].mean() if known.any() else 0.0
    spread = values[known].std() if known.any() else 0.0
    if not spread > 0:
        return _stack_columns(closed, len(values))
    scaled = np.where(known, (values - centre) / spread, 0.0)
    further = [scaled**2, np.sign(scaled) * np.log1p(np.abs(scaled))] if bent else []
    return _stack_columns([scaled, *further, *closed], len(values))


def _stack_columns(columns: list[Floats], count: int) -> Floats:
    return np.column_stack(columns) if columns else np.empty((count, 0))


def _held_out(design: Floats, x: Floats) -> Floats:
    """Return what a linear fit leaves of values on folds that it did not see; a slight ridge steadies it."""
    design = np.column_stack([np.ones(len(x)), design])
    fold = np.arange(len(x)) % FOLDS  # records stand in the truth's order: each fold has some of every part
    parts = [(design[fold == k], x[fold == k]) for k in range(FOLDS)]
    grams = [d.T @ d for d, _ in parts]
    sums = [d.T @ y for d, y in parts]
    ridge = 1e-6 * len(x) * np.eye(design.shape[1])
    left = np.empty(len(x))
    for k, (d, y) in enumerate(parts):
        solved = np.linalg.solve(sum(grams) - grams[k] + ridge, sum(sums) - sums[k])
        left[fold == k] = y - d @ solved
    return left

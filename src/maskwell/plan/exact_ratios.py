"""Columns that others give exactly by a ratio, a product or a number for each class: rates, interactions, prices.

Three relations, each counted over all records in which its members are open, and told where nearly all obey it:

    y = c x1 / x2  or  y = c x1 x2             a batting average, an age times a dummy,
    y = (c1 x1 + ... + ck xk) / x0 + c0        a slugging average, of counts over a count,
    y = c(class) x  or  y = x + c(class)       a price in the money of another year.

Ratios and products are screened by logarithms: log|y| - log|x1| -/+ log|x2| is a constant where the relation holds, so
that medians over a few records refute nearly all pairs of columns at once. The ratio of a sum is a sum (see
`near_identities.near_sum`) of the columns x / x0. Chosen before relations that only nearly hold: y81 log(dist) is also
nearly linear in y81 and dist, and it is the exact one that says what to compute.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import numpy.typing as npt

from ..io.identities import decimal_unit
from .near_identities import (
    ALL_KNOWN,
    FINEST,
    HOPELESS,
    LEAST_SPREAD,
    Bools,
    Count,
    Floats,
    NearIdentity,
    mode,
    near_sum,
    ratio_words,
)

Ints = npt.NDArray[np.int64]

NEARLY_ALL = 0.99  # share of records that obey, of all and of those that tell something
FEWEST = 30  # records that tell something: not the most frequent value of y, no 0
# Records that refute pairs of columns; a relation that holds leaves the median of their spread near 0
SCREENED = 64
REFUTED_BY = 15  # of them, by which all pairs are tried at once
NEAR = 0.02  # spread of logarithms in the screen: what rounding of y may come to
MOST_TRIED = 12  # pairs that a screen leaves, those with the least spread first
USUAL = 0.95  # share of values on a unit, to be it: one value with more decimals is a stray
MOST_COUNTS = 30  # columns of a ratio of a sum
REFUTING = 200  # records by which least squares on all of them is tried first
RELATIVE = 1e-6  # single precision has six digits
MOST_CLASSES, FEWEST_IN_CLASS = 30, 10  # of a column that gives a number for each class
MOST_GROUPINGS = 30  # columns of classes that are tried, of many those with most classes: years, states
MEANT = 0.005  # a constant so near one of three digits was meant to be that


def exact_ratio(
    values: Floats, place: int, others: Sequence[int], names: Sequence[str]
) -> NearIdentity | None:
    """Return two others whose ratio or product, times a constant, gives a column in nearly all records."""
    y = values[:, place]
    tells = (y != mode(y)) & (y != 0)
    able = [j for j in others if j != place]
    if np.count_nonzero(tells) < FEWEST or len(able) < 2:
        return None
    for first, second, sign in _log_screen(values[tells], place, able):
        found = _obeyed_ratio(values, tells, (place, first, second), sign)
        if found is not None:
            constant, count = found
            said = ratio_words(names[first], names[second], sign, constant)
            known = ALL_KNOWN if sign > 0 else f"{ALL_KNOWN} and {names[second]} is not 0"
            return NearIdentity(place, (first, second), count, said, known)
    return None


def _log_screen(values: Floats, place: int, able: Sequence[int]) -> Iterator[tuple[int, int, int]]:
    """Give pairs of columns with -1 (ratio) or 1 (product) that some records do not refute, the best first."""
    some = values[:: max(1, len(values) // SCREENED)][:SCREENED]
    with np.errstate(divide="ignore"):
        logs = np.log(np.abs(some[:, list(able)]))
        left = np.log(np.abs(some[:, place]))[:, None] - logs
    usable = np.flatnonzero(np.isfinite(logs).mean(axis=0) > 0.5)
    logs, left = (np.where(np.isfinite(x), x, np.nan)[:, usable] for x in (logs, left))
    found = list[tuple[float, int, int, int]]()
    for sign in (-1, 1):
        for i, k in zip(*_not_refuted(logs, left, sign), strict=True):
            apart = left[:, [i]] - sign * logs[:, [k]]
            with np.errstate(invalid="ignore"):
                spread = float(_median(np.abs(apart - _median(apart)))[0])
            if spread < NEAR and (k > i if sign > 0 else k != i):
                found.append((spread, able[int(usable[i])], able[int(usable[k])], sign))
    yield from ((first, second, sign) for _, first, second, sign in sorted(found)[:MOST_TRIED])


def _not_refuted(logs: Floats, left: Floats, sign: int) -> tuple[Ints, Ints]:
    """Return the pairs of columns that a few records do not refute: a third of these must agree on the constant."""
    step = max(1, len(logs) // REFUTED_BY)
    few, own = logs[::step][:REFUTED_BY], left[::step][:REFUTED_BY]
    agree = max(2, len(few) // 3)
    ordered = np.sort(own[:, :, None] - sign * few[:, None, :], axis=0)  # what is not known comes last
    with np.errstate(invalid="ignore"):
        close = (ordered[agree - 1 :] - ordered[: len(few) - agree + 1] < 2 * NEAR).any(axis=0)
    first, second = np.nonzero(close)
    return first, second


def _median(x: Floats) -> Floats:
    """Return medians of columns; what is not known counts as far out."""
    return np.asarray(np.median(np.nan_to_num(x, nan=1e3), axis=0))


def _obeyed_ratio(
    values: Floats, tells: Bools, members: tuple[int, int, int], sign: int
) -> tuple[float, Count] | None:
    """Return the constant of a ratio or product and how many records obey it, if nearly all do."""
    y, first, second = (values[:, j] for j in members)
    with np.errstate(divide="ignore", invalid="ignore"):
        given = first * second if sign > 0 else first / second
        constant = _meant(float(np.nanmedian(y[tells] / given[tells])))
    known = np.isfinite(given)
    if not np.isfinite(constant) or constant == 0 or np.count_nonzero(known & tells) < FEWEST:
        return None
    allowed = usual_unit(y) / 2 * (1 + 1e-9) + RELATIVE * np.abs(constant * given)
    obeys = np.abs(y - constant * given) <= allowed
    spread = float(np.std(y[known & tells]))
    if spread < LEAST_SPREAD * float(np.median(allowed[known])):
        return None
    share, of_all = float(np.mean((obeys & known)[tells])), float(np.mean(obeys[known]))
    return (constant, Count.of(obeys[known], tells[known])) if min(share, of_all) >= NEARLY_ALL else None


def _meant(constant: float) -> float:
    """Return a constant on three digits where it is near that."""
    rounded = float(f"{constant:.3g}") if np.isfinite(constant) else constant
    return rounded if abs(constant - rounded) <= MEANT * abs(rounded) else constant


def usual_unit(x: Floats) -> float:
    """Return the coarsest decimal unit that nearly all values are on; 0 where there is none."""
    known = x[np.isfinite(x)]
    for decimals in range(7):
        steps = known * 10.0**decimals
        on_unit = np.abs(steps - np.rint(steps)) <= 1e-6 * np.maximum(np.abs(steps), 1e-3)
        if len(known) and np.mean(on_unit) >= USUAL:
            return float(10.0**-decimals)
    return 0.0


# The ratio of a sum.


def ratio_of_sum(
    values: Floats, place: int, others: Sequence[int], names: Sequence[str]
) -> NearIdentity | None:
    """Return some others whose sum, with coefficients, over a count gives a column in nearly all records."""
    able = sorted((j for j in others if j != place), key=lambda j: abs(j - place))[:MOST_COUNTS]
    for below in (j for j in able if _is_count(values[:, j])):
        rest = [j for j in able if j != below]
        if len(rest) < 2:
            return None
        some = values[values[:, below] > 0]
        ratios = np.column_stack([some[:, place], some[:, rest] / some[:, [below]]])
        columns = list(range(1, len(rest) + 1))
        if _is_refuted(ratios):
            continue
        words = [names[place], *(names[j] for j in rest)]
        found = near_sum(ratios, 0, columns, words)
        if found is not None and found.share >= NEARLY_ALL and len(found.parts) > 1:
            parts = (*(rest[j - 1] for j in found.parts), below)
            known = f"{ALL_KNOWN} and {names[below]} is above 0"
            return NearIdentity(place, parts, found.count, f"{found.said}, over {names[below]}", known)
    return None


def _is_refuted(ratios: Floats) -> bool:
    """Whether all columns together do not come near the first in half of some records."""
    some = ratios[:: max(1, len(ratios) // REFUTING)]
    if len(some) < 2 * some.shape[1]:
        return True
    design = np.column_stack([some[:, 1:], np.ones(len(some))])
    off = some[:, 0] - design @ np.linalg.lstsq(design, some[:, 0], rcond=None)[0]
    return bool(np.median(np.abs(off)) > HOPELESS * np.std(some[:, 0]))


def _is_count(x: Floats) -> bool:
    """Whether a column can be what a rate is over: whole numbers, nearly all above 0, that vary."""
    return bool(np.mean(x > 0) >= NEARLY_ALL and decimal_unit(x) == 1.0 and np.ptp(x) > 1)


# A number for each class.


def scaled_by_class(
    values: Floats,
    place: int,
    others: Sequence[int],
    classes: Mapping[int, Ints],
    names: Sequence[str],
) -> NearIdentity | None:
    """Return an amount that gives a column once it is multiplied by, or moved by, a number for each class."""
    y = values[:, place]
    tells = (y != mode(y)) & (y != 0)
    able = [j for j in others if j != place]
    if np.count_nonzero(tells) < FEWEST or not able:
        return None
    some = slice(None, None, max(1, len(y) // SCREENED))
    apart = _apart(y[some], values[some][:, able])
    sizes = {j: int(codes.max(initial=0)) for j, codes in classes.items()}
    fit = [j for j in classes if 1 <= sizes[j] < min(MOST_CLASSES, len(y) / FEWEST_IN_CLASS)]
    for at in sorted(fit, key=sizes.__getitem__)[-MOST_GROUPINGS:]:
        codes = classes[at]
        for k, is_ratio in _class_screen(apart, float(np.std(y[some])), codes[some]):
            count = _class_count(y, values[:, able[k]], codes, tells, is_ratio=is_ratio)
            if count is not None:
                said = f"{names[able[k]]} {'times' if is_ratio else 'and'} a number for each {names[at]}"
                return NearIdentity(place, (able[k], at), count, said)
    return None


def _apart(y: Floats, x: Floats) -> tuple[Floats, Floats]:
    """Return what columns are from another: in logarithms, and as they are."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.log(np.abs(y))[:, None] - np.log(np.abs(x)), y[:, None] - x


def _class_screen(apart: tuple[Floats, Floats], sd: float, codes: Ints) -> list[tuple[int, bool]]:
    """Return the columns that some records do not refute: in half the pairs of one class their logarithms go with y's.

    Or they themselves do. Pairs are records that follow one another in the order of the classes.
    """
    order = np.argsort(codes, kind="stable")
    first = np.flatnonzero(np.diff(codes[order]) == 0)
    found = list[tuple[int, bool]]()
    if not len(first):
        return found
    for one, is_ratio in zip(apart, (True, False), strict=True):
        with np.errstate(invalid="ignore"):
            moved = np.abs(one[order[first + 1]] - one[order[first]])
            near = np.count_nonzero(moved <= 2 * NEAR * (1.0 if is_ratio else sd), axis=0) >= len(first) / 2
        found += [(int(k), is_ratio) for k in np.flatnonzero(near)]
    return found


def _class_count(y: Floats, x: Floats, codes: Ints, tells: Bools, *, is_ratio: bool) -> Count | None:
    """Count the records whose y is x times (or plus) their class's number, which must differ, if nearly all are."""
    with np.errstate(divide="ignore", invalid="ignore"):
        constant = y / x if is_ratio else y - x
    numbers, differ = _class_medians(constant, codes)
    given = numbers[codes] * x if is_ratio else numbers[codes] + x
    unit = 0.5 * (usual_unit(y) + usual_unit(x) * (np.abs(numbers[codes]) if is_ratio else 1.0))
    allowed = unit * (1 + 1e-9) + FINEST * np.maximum(np.abs(y), np.abs(given)) * 4
    obeys = np.abs(y - given) <= allowed
    typical = float(np.median(allowed[tells]))
    if differ <= 4 * typical / max(float(np.median(np.abs(x[tells]))), 1e-300) ** is_ratio:
        return None
    if float(np.std(y[tells])) < LEAST_SPREAD * typical:
        return None
    return Count.of(obeys, tells) if min(np.mean(obeys[tells]), np.mean(obeys)) >= NEARLY_ALL else None


def _class_medians(x: Floats, codes: Ints) -> tuple[Floats, float]:
    """Return the median of each class, and by how much the classes' differ."""
    order = np.lexsort((x, codes))
    known = order[np.isfinite(x[order])]
    starts = np.searchsorted(codes[known], np.arange(int(codes.max(initial=0)) + 2))
    middle = np.where(np.diff(starts) > 0, (starts[:-1] + starts[1:] - 1) // 2, -1)
    found = np.where(middle >= 0, x[known][np.maximum(middle, 0)] if len(known) else np.nan, np.nan)
    is_there = np.isfinite(found)
    return found, float(np.ptp(found[is_there])) if is_there.any() else 0.0

"""Whether a column is a function of others: one to one, nearly linear, or the same inside groups of records.

y is a function of x, one to one, where almost all records with one value of x have one value of y, and the other way
round, and the values of y rise (or fall) with x throughout: a copy, a logarithm, a square, a change of units. All
records count, those with equal x above all: a test of the places where x changes alone takes any column of few values
for a function of any other. Where there are few different values, order may be chance: then no record may stray. y is
nearly linear in a few others where least squares on these (chosen one by one, by their correlation with what is left)
leaves a thousandth of its variance.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ..io.identities import decimal_unit

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

# Different values: fewer are in order by chance too often, unless one to one without a stray
FEWEST_VALUES = 20
FEWEST_ORDERED = 5  # different values: 5 that are one to one are in order by chance in 1 of 60 cases
MOST_STRAYS = 0.01  # share of records beside the rule: rounding, a corrected value
MOST_EXPLAINING, UNEXPLAINED = 4, 0.001
REFUTING = 200  # records by which most columns are refuted
LOOKED_AT = 800  # records by which least squares is tried first: their variances are known to a twentieth
SCREENED = 20_000  # records that are looked at before all are: they refute most
FITS = 3  # of a function's scale: strays are few
SINGLE = 1e-6  # single precision has six digits
# Sds of y: what nearly all records may be off by, to be said to be a function but for rounding
ROUNDED = 2e-3
LINEAR = "on the same scale or another"
FORMS: dict[str, Callable[[Floats], Floats]] = {
    LINEAR: lambda x: x,
    "its logarithm": np.log,
    "the logarithm of it and 1": np.log1p,
    "its square": np.square,
    "its cube": lambda x: x**3,
    "its square root": np.sqrt,
    "1 over it": lambda x: 1 / x,
    "its exponential": np.exp,
    "the square of its logarithm": lambda x: np.log(x) ** 2,
}
MOST_AT_ONE = 0.5  # share of records at the most frequent value of a column that another is said to give
# Share of records in groups of two and more, for these to say that a column is the group's
LEAST_SHARING = 0.5
# The same of groups, persons of whom few came twice: records in groups of two and more, and their share of the file
FEWEST_TOGETHER, LEAST_TOGETHER = 30, 0.01
BY_CHANCE = np.log(1e-9)  # of a column that is the same inside the classes of another, of thousands of pairs


def is_function(x: Floats, y: Floats) -> bool:
    """Whether two columns say the same but for their scale, over the records where both are open."""
    step = -(-len(x) // SCREENED)
    strays = MOST_STRAYS if step == 1 else 2 * MOST_STRAYS  # of a part, more by chance
    return _is_function(x[::step], y[::step], strays) and (step == 1 or _is_function(x, y, MOST_STRAYS))


def _is_function(x: Floats, y: Floats, strays: float) -> bool:
    both = ~(np.isnan(x) | np.isnan(y))
    if 2 * np.count_nonzero(both) < np.count_nonzero(~np.isnan(y)):
        return False
    x, y = x[both], y[both]
    xs, x_codes = np.unique(x, return_inverse=True)
    ys, y_codes = np.unique(y, return_inverse=True)
    if min(len(xs), len(ys)) < FEWEST_VALUES:
        strays = 0.0
    if min(len(xs), len(ys)) < FEWEST_ORDERED:
        return False
    image, kept = _usual(x_codes, y_codes, len(ys))
    _, kept_back = _usual(y_codes, x_codes, len(xs))
    if min(kept, kept_back) < (1 - strays) * len(x):
        return False
    steps = np.diff(image)
    against = min(np.count_nonzero(steps > 0), np.count_nonzero(steps < 0))
    return bool(against <= strays * len(steps))


def form_of(x: Floats, y: Floats) -> str:
    """Say which function of x a column is, up to scale and rounding; nothing where it is none of the usual ones.

    Where none fits to the last digit, as x or y was rounded by hand, the one that comes nearest is said to do so.
    """
    both = ~(np.isnan(x) | np.isnan(y))
    x, y = x[both], y[both]
    at_zero = x == 0
    if at_zero.any() and np.ptp(y[at_zero]) == 0 and 2 * np.count_nonzero(~at_zero) > FEWEST_VALUES:
        return _best_form(x, y) or _beside_zero(_best_form(x[~at_zero], y[~at_zero]))
    return _best_form(x, y)


def _beside_zero(form: str) -> str:
    return f"{form}, where it is not 0" if form else ""


def _best_form(x: Floats, y: Floats) -> str:
    near = dict[str, float]()
    for said, form in FORMS.items():
        with np.errstate(all="ignore"):
            given = form(x)
        if not np.isfinite(given).all() or not np.ptp(given) > 0:
            continue
        fit = _trimmed_fit(x, given, y, form)
        scaled = said if fit.is_same or said == LINEAR else f"{said}, on another scale"
        if fit.is_exact:
            return scaled
        near[f"{scaled}, but for rounding"] = fit.off
    best = min(near, key=lambda said: near[said], default="")
    return best if best and near[best] <= ROUNDED else ""


@dataclass(frozen=True, slots=True)
class _Fit:
    """How y = a + b g(x) fits: to the last digit; with a = 0, b = 1; and by what nearly all are off, in sds of y."""

    is_exact: bool
    is_same: bool
    off: float


def _trimmed_fit(x: Floats, given: Floats, y: Floats, form: Callable[[Floats], Floats]) -> _Fit:
    """Fit y = a + b g(x) to almost all records; those farthest off are left out of the fit."""
    kept, most = np.ones(len(y), bool), int((1 - MOST_STRAYS) * (len(y) - 1))
    half = 0.5 * (decimal_unit(x) or 0.0)
    for _ in range(FITS):
        slope, constant = np.polyfit(given[kept], y[kept], 1)
        off = np.abs(y - constant - slope * given)
        kept = off <= np.partition(off, most)[most]
    with np.errstate(all="ignore"):
        moved = np.nan_to_num(np.abs(form(x + half) - form(x - half)) / 2)
    allowed = 0.5 * (decimal_unit(y) or 0.0) + abs(slope) * moved + SINGLE * (np.abs(y) + abs(constant))
    is_exact = bool(np.mean(off <= allowed) >= 1 - MOST_STRAYS)
    spread = float(np.std(y)) or 1.0
    own = np.partition(np.abs(y - given), most)[most]
    is_same = bool(own <= max(2 * float(np.partition(off, most)[most]), float(np.median(allowed))))
    return _Fit(is_exact, is_same, float(off[kept].max()) / spread)


def _usual(given: Ints, codes: Ints, count: int) -> tuple[Ints, int]:
    """Return the most frequent code for each value given, and how many records have it."""
    pairs, times = np.unique(given.astype(np.int64) * count + codes, return_counts=True)
    whose, which = pairs // count, pairs % count
    order = np.lexsort((times, whose))
    last = np.append(np.flatnonzero(np.diff(whose[order])), len(order) - 1)
    return which[order][last], int(times[order][last].sum())


def nearly_linear(values: Floats, place: int, others: list[int]) -> list[int]:
    """Return the few columns that linearly explain one but for a thousandth of its variance, if there are such.

    Of many records some are looked at first: what leaves ten times as much of these leaves too much of all.
    """
    step = len(values) // LOOKED_AT
    if step > 1 and not _greedy_columns(values[::step], place, others, 10 * UNEXPLAINED):
        return []
    return _greedy_columns(values, place, others, UNEXPLAINED)


def _greedy_columns(values: Floats, place: int, others: list[int], allowed: float) -> list[int]:
    """Return a few columns, chosen one by one, that leave less than a share of a column's variance."""
    left = values[:, place] - values[:, place].mean()
    whole, chosen = float(left @ left), list[int]()
    centred = values - values.mean(axis=0)
    while whole and others and len(chosen) < MOST_EXPLAINING:
        sizes = np.linalg.norm(centred[:, others], axis=0)
        gains = np.abs(left @ centred[:, others]) / np.where(sizes > 0, sizes, np.inf)
        chosen.append(others[int(np.argmax(gains))])
        others = [j for j in others if j != chosen[-1]]
        left = _least_squares_residuals(centred, place, chosen)
        if float(left @ left) < allowed * whole:
            return _needed_columns(centred, place, chosen, allowed * whole)
    return []


def _least_squares_residuals(centred: Floats, place: int, chosen: list[int]) -> Floats:
    """Return what least squares on some columns leaves of another."""
    design = centred[:, chosen]
    return np.asarray(centred[:, place] - design @ np.linalg.lstsq(design, centred[:, place], rcond=None)[0])


def _needed_columns(centred: Floats, place: int, chosen: list[int], allowed: float) -> list[int]:
    """Leave out, the first one first, the columns without which little enough is left: they were steps on the way."""
    needed = list(chosen)
    for j in chosen:
        fewer = [one for one in needed if one != j]
        if fewer and float(np.sum(_least_squares_residuals(centred, place, fewer) ** 2)) < allowed:
            needed = fewer
    return needed


def is_shared(groups: Ints, values: Floats) -> bool:
    """Whether all records of each group have one value, most records have company, and groups differ.

    `groups` numbers the group of each record; records below 0 have none.
    """
    known = (groups >= 0) & ~np.isnan(values)
    if 2 * np.count_nonzero(known) < len(values) or _differ_inside(groups[known], values[known]):
        return False
    values = values[known]
    return sharing_records(groups, known) >= LEAST_SHARING * len(values) and _are_constant(
        groups[known], values
    )


def is_shared_in_part(groups: Ints, values: Floats) -> bool:
    """Whether all records of each group have one value, and not by chance, also where few records have company."""
    known = (groups >= 0) & ~np.isnan(values)
    if sharing_records(groups, known) < max(FEWEST_TOGETHER, LEAST_TOGETHER * len(values)):
        return False
    if _differ_inside(groups[known], values[known]):
        return False
    classes = np.unique(groups[known], return_inverse=True)[1]
    return classes_give(classes, np.unique(values[known], return_inverse=True)[1])


def sharing_records(groups: Ints, known: npt.NDArray[np.bool_]) -> int:
    """Return how many records have company in their group, among those that are known."""
    sizes = np.unique(groups[known & (groups >= 0)], return_counts=True)[1]
    return int(sizes[sizes > 1].sum())


def _are_constant(groups: Ints, values: Floats) -> bool:
    """Whether all records of each group have one value, and groups differ."""
    order = np.argsort(groups, kind="stable")
    starts = np.flatnonzero(np.diff(groups[order], prepend=-1))
    lows, highs = (f.reduceat(values[order], starts) for f in (np.minimum, np.maximum))
    return bool(np.array_equal(lows, highs) and np.ptp(values) > 0)


def _differ_inside(groups: Ints, values: Floats) -> bool:
    """Whether two of the first records are of one group and have two values: that refutes most columns at once."""
    order = np.argsort(groups[:REFUTING], kind="stable")
    first, x = groups[:REFUTING][order], values[:REFUTING][order]
    return bool(np.any((first[1:] == first[:-1]) & (x[1:] != x[:-1])))


def gives(groups: Ints, values: Floats) -> bool:
    """Whether an amount whose values repeat (`groups` numbers them, -1: none) gives another, and not by chance.

    Many of its values must be shared by several records, and the other must vary: one with half its records at one
    value is constant in 20 groups of two once in a million cases.
    """
    known = (groups >= 0) & ~np.isnan(values)
    sizes = np.bincount(groups[known]) if known.any() else np.zeros(1, np.int64)
    if np.count_nonzero(sizes > 1) < FEWEST_VALUES or not is_shared(groups, values):
        return False
    counts = np.unique(values[known], return_counts=True)[1]
    return bool(len(counts) >= FEWEST_ORDERED and counts.max() <= MOST_AT_ONE * counts.sum())


def classes_give(classes: Ints, values: Ints) -> bool:
    """Whether all records of a class have one value, and not by chance; both are numbered from 0 on.

    Were values given out at random, with the shares p that they have, every record but the first of its class would
    have that one's value with probability p: the product over these records.
    """
    first = np.full(int(classes.max(initial=-1)) + 1, -1)
    first[classes] = values
    if not np.array_equal(first[classes], values):
        return False
    logs = np.log(
        np.bincount(values) / len(values), where=np.bincount(values) > 0, out=np.zeros(values.max() + 1)
    )
    by_chance = logs[values].sum() - logs[first[first >= 0]].sum()
    return bool(values.min() < values.max() and by_chance < BY_CHANCE)

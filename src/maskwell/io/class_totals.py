"""Numbers that add up to 1 or to 100 in every class of records: shares of a whole, such as the weights of cells.

With s the sd of a column x and m records in a class, sums of m values in random order lie within t of a total T with
probability 2 t / (s sqrt(2 pi m)) at most (the density of a normal law at its mode). Where nearly all classes of one or
two columns are so near one T, or near their own m (weights that are scaled to a mean of 1 by country), the product of
these probabilities is no chance: noise on each would destroy the shares, and the total would tell of the last one.
Columns of few values are left out: in a planned experiment they have one sum in each block by design. Chosen for
weights that neither a name nor a label tells (`roles`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
import numpy.typing as npt

from .column_profile import MOST_NUMBER_CATEGORIES, Facts, Floats

Codes = npt.NDArray[np.integer]

TOTALS = (1.0, 100.0)
WITHIN = 0.01  # of a total: rounding, and a small record that was left out
NEARLY_ALL = 0.9  # of the classes of several records: some are cut off by the sample
FEWEST_CLASSES = 5
MOST_AT_ONE = 0.5  # of records at one value: where nearly all have a 1, so has every class
MOST_CLASSES = 60  # of one column
MOST_COLUMNS = 12  # that make classes: 78 ways with their pairs
ROOM = 0.5  # of what all classes together must add up to, for each to be looked at
LOG_CHANCE = np.log(1e-12)  # over all columns, totals and classes of all files ever drafted


@dataclass(frozen=True, slots=True)
class ClassTotals:
    """In how many classes of several records values add up to a total, or have a mean of 1."""

    by: tuple[str, ...]
    total: float | None
    obeying: int
    classes: int

    def __str__(self) -> str:
        """Say what a reader can count again."""
        what = "has a mean of 1" if self.total is None else f"adds up to {self.total:g}"
        return (
            f"{what}, to within {WITHIN:.0%}, in {self.obeying:,} of the {self.classes:,} classes of several records "
            f"alike in {' and '.join(self.by)}"
        )


def class_totals(columns: Sequence[Facts], sought: Sequence[Facts]) -> dict[str, ClassTotals]:
    """Return the first classes, by one column or two, in which each of some columns adds up to one total."""
    left = {one.name: one.numbers for one in sought if one.numbers is not None and _may_be_shares(one)}
    found = dict[str, ClassTotals]()
    for by, codes in _groupings(columns) if left else ():
        sizes = np.bincount(codes)
        for name, x in left.items():
            one = _totals_by(x, by, codes, sizes) if name not in by and name not in found else None
            if one is not None:
                found[name] = one
    return found


def _may_be_shares(facts: Facts) -> bool:
    is_several = facts.distinct > MOST_NUMBER_CATEGORIES and facts.counts.max() <= MOST_AT_ONE * facts.records
    return is_several and not facts.missing and bool(facts.support[0] >= 0)


def _groupings(columns: Sequence[Facts]) -> Iterator[tuple[tuple[str, ...], Codes]]:
    """Return the classes that single columns of few values and pairs of them make."""
    able = sorted((one for one in columns if _is_classes(one)), key=lambda one: -one.distinct)[:MOST_COLUMNS]
    able = [one for one in columns if one in able]
    codes = {one.name: one.category_codes.astype(np.int64) + 1 for one in able}
    yield from (((name,), one) for name, one in codes.items())
    for first, second in combinations(able, 2):
        yield (first.name, second.name), codes[first.name] * (second.distinct + 1) + codes[second.name]


def _is_classes(facts: Facts) -> bool:
    """Whether a column is a text or whole numbers of few values."""
    is_class = facts.shape == "text" or (facts.shape == "number" and facts.unit == 1.0)
    return is_class and 1 < facts.distinct <= MOST_CLASSES


def _totals_by(x: Floats, by: tuple[str, ...], codes: Codes, sizes: Codes) -> ClassTotals | None:
    several = sizes > 1
    classes, whole = int(np.count_nonzero(several)), float(x.sum())
    if classes < FEWEST_CLASSES or 2 * classes > len(x):
        return None
    able = [one for one in TOTALS if ROOM < whole / (one * classes) < 1 / ROOM]
    totals = [*able, *([None] if ROOM < whole / len(x) < 1 / ROOM else [])]
    if not totals:
        return None
    sums, sizes, sd = np.bincount(codes, x)[several], sizes[several], float(x.std())
    for total in totals:
        wanted = sizes.astype(np.float64) if total is None else np.full(classes, total)
        obeys = np.abs(sums - wanted) <= WITHIN * wanted
        obeying = int(np.count_nonzero(obeys))
        if obeying >= max(NEARLY_ALL * classes, FEWEST_CLASSES) and sd > 0:
            chances = 2 * WITHIN * wanted[obeys] / (sd * np.sqrt(2 * np.pi * sizes[obeys]))
            if _log_chance(chances, classes) < LOG_CHANCE:
                return ClassTotals(by, total, obeying, classes)
    return None


def _log_chance(chances: Floats, classes: int) -> float:
    """Return the log of a bound on the chance that so many of the classes are near their total."""
    from scipy.special import gammaln

    k = len(chances)
    ways = gammaln(classes + 1) - gammaln(k + 1) - gammaln(classes - k + 1)
    return float(np.log(np.minimum(chances, 1.0)).sum() + ways)

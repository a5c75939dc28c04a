"""Columns that are a part of another's digits: y = floor(x / u) or y = x - u floor(x / u), for a usual divisor u.

An hour and a minute of a time written as 1545, a region in the first digits of a code of places, the years of an age in
months. Such a column in clear tells its part of the other whatever the noise, and noised beside it is a second reading.
A relation counts where nearly all records obey in which both are known, and where it says something: the part takes two
values and more, and a remainder differs from x itself. Few records refute nearly all pairs of columns. Chosen for
drafts, after copies on another scale and before the columns that give others without a rule (`repeated_values`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]

DIVISORS = (10, 100, 1_000, 10_000, 100_000, 60, 3_600, 24, 12, 7, 52, 365)  # digits, and parts of time
NEARLY_ALL = 0.99  # share of records that obey, of all and of those beside the most frequent value
FEWEST = 30  # records beside the most frequent value of the part: fewer obey by chance too easily
SCREENED = 50  # records that refute most pairs
MOST_COMPARED = 120  # columns: all pairs of more would take long


@dataclass(frozen=True, slots=True)
class IntegerPart:
    """Which part of another column's whole numbers a column is, and in how many records where both are known."""

    of: str
    divisor: int
    is_remainder: bool
    obeying: int
    known: int

    def __str__(self) -> str:
        what = "the remainder of {} divided by {}" if self.is_remainder else "{} divided by {}, rounded down"
        counted = f"in {self.obeying:,} of {self.known:,} records where both are known"
        return f"{what.format(self.of, self.divisor)} ({counted})"


def integer_parts(columns: Mapping[str, Floats], wholes: Mapping[str, Floats]) -> dict[str, IntegerPart]:
    """Return which of some columns are parts of the digits of one of `wholes`; NaN is no value.

    A part is no whole of another: of a time, its hour and its minute are found.
    """
    whole = {name: x for name, x in columns.items() if _are_whole(x)}
    able = {name: x for name, x in wholes.items() if _are_whole(x) and np.nanmax(x) >= min(DIVISORS)}
    found = dict[str, IntegerPart]()
    if max(len(whole), len(able)) > MOST_COMPARED:
        return found
    for name, y in whole.items():
        for other, x in able.items():
            if other == name or other in found:
                continue
            part = _part(other, x, y)
            if part is not None:
                found[name] = part
                break
    return found


def _are_whole(x: Floats) -> bool:
    """Whether there are values, none below 0, and all of them whole."""
    known = x[~np.isnan(x)]
    return bool(len(known) >= FEWEST and known.min() >= 0 and not (known % 1).any())


def _part(of: str, x: Floats, y: Floats) -> IntegerPart | None:
    """Return the first divisor by which y is a part of x in nearly all records."""
    both = np.flatnonzero(~(np.isnan(x) | np.isnan(y)))
    if len(both) < FEWEST or 2 * len(both) < np.count_nonzero(~np.isnan(y)):
        return None
    some = both[:: max(1, len(both) // SCREENED)]
    for divisor in DIVISORS:
        for is_remainder in (False, True):
            if np.mean(
                _quotient_or_remainder(x[some], divisor, is_remainder) == y[some]
            ) < NEARLY_ALL - 1 / np.sqrt(SCREENED):
                continue
            obeying = _conforming_count(x[both], y[both], divisor, is_remainder)
            if obeying is not None:
                return IntegerPart(of, divisor, is_remainder, obeying, len(both))
    return None


def _quotient_or_remainder(x: Floats, divisor: int, is_remainder: bool) -> Floats:
    return np.asarray(x % divisor if is_remainder else x // divisor)


def _conforming_count(x: Floats, y: Floats, divisor: int, is_remainder: bool) -> int | None:
    """Return how many records obey, if nearly all do and enough of them say something."""
    obeys = _quotient_or_remainder(x, divisor, is_remainder) == y
    values, counts = np.unique(y, return_counts=True)
    tells = (y != values[counts.argmax()]) & (y != x)
    if np.count_nonzero(tells) < FEWEST or min(np.mean(obeys), np.mean(obeys[tells])) < NEARLY_ALL:
        return None
    return int(np.count_nonzero(obeys))

"""The chance that masked values agree: boxes in units of the noise, and their probabilities.

    P(all open fields agree | x) = P(lower(x) <= N(0, R) <= upper(x))

A value agrees when it is released between two bounds. The way out of the law is monotone, so that these are bounds
on the noise: moved to half units by the rounding, infinite on a side where the agreeing values hold the clamp. The
noise of several columns is correlated, so that the chance of all is one normal box (Genz 1992, by
`kernels.normal_box_lattice`), never a product; k of n fields by inclusion and exclusion (Feller 1968, section IV.5).
It replaces the Taylor series of Moore (1996), section VII. Used by `comparison_setting` for G(c).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import combinations
from math import comb

import numpy as np
import numpy.typing as npt

from ..errors import BadPlan
from ..laws import Additive, Laplace, Outlet
from ..laws.noise import sds_and_correlations
from ..table import Floats

Bools = npt.NDArray[np.bool_]
Ints = npt.NDArray[np.int64]
Boxes = tuple[Floats, Floats]

SHIFTS = 8  # of the lattice: they tell the error of every sum
MOST_POINTS, FEWEST_POINTS = 128, 8  # of the lattice for a box
# Boxes x points under each shift: the more boxes are summed, the fewer points each needs.
POINTS_IN_ALL = 2**15
POINTS_OF_SUBSETS = 2**17  # of alternating sums, in which errors add up
STANDARD_ERRORS = 3.5  # what is called the error of a sum
MOST_SUBSETS = 5_000  # of fields that may disagree: beyond, inclusion and exclusion takes too long


@dataclass(frozen=True, slots=True)
class Sum:
    """A sum of chances, and its numerical error: 3.5 standard errors over the shifts of the lattice."""

    value: float
    error: float

    @classmethod
    def of(cls, chances: Floats) -> Sum:
        """Add chances (records x shifts) up."""
        by_shift = chances.sum(axis=0)
        error = STANDARD_ERRORS * float(by_shift.std(ddof=1)) / SHIFTS**0.5
        return cls(float(by_shift.mean()), error)


def restrict_law(law: Additive, columns: tuple[str, ...]) -> Additive:
    """Return the law of some of its columns, in the order given."""
    chosen = [law.columns.index(name) for name in columns]
    return replace(
        law,
        columns=columns,
        noise=law.noise.only(chosen),
        outlets=tuple(law.outlets[j] for j in chosen),
        offsets=tuple(law.offsets[j] for j in chosen) if law.offsets else (),
        spreads=tuple(law.spreads[j] for j in chosen) if law.spreads else (),
    )


def noise_boxes(law: Additive, low: Floats, high: Floats, x: Floats) -> Boxes:
    """Return between which standard normal values the noise of true values `x` is released from `low` to `high`.

    All are records x columns; closed values (NaN) agree whatever the noise. An empty box has its bounds crossed.
    """
    lower, upper = np.full(x.shape, -np.inf), np.full(x.shape, np.inf)
    centres = law.place(x, np.zeros(x.shape))
    sds = np.sqrt(np.diag(law.noise.covariance))
    for j, outlet in enumerate(law.outlets):
        here = ~np.isnan(x[:, j])
        spread = law.spreads[j] if law.spreads else None
        scale = sds[j] * (np.ones(here.sum()) if spread is None else spread.factor(x[here, j]))
        ends = noised_ends(outlet, low[here, j], high[here, j], x[here, j])
        ends = _in_sds(ends, centres[here, j], scale)
        lower[here, j], upper[here, j] = _as_normal(ends, law)
    return lower, upper


def noised_ends(outlet: Outlet, low: Floats, high: Floats, x: Floats) -> Boxes:
    """Return between which noised values of true `x` what is released lies from `low` to `high`."""
    first, last = _released_ends(outlet, low, high)
    possible = first <= last
    nothing = np.zeros(len(x))
    lower, upper = outlet.cell(first, x, nothing).lower, outlet.cell(last, x, nothing).upper
    return np.where(possible, lower, np.inf), np.where(possible, upper, -np.inf)


def _released_ends(outlet: Outlet, low: Floats, high: Floats) -> Boxes:
    """Return the least and the largest value that can be released from `low` to `high` (crossed: there is none)."""
    least = -np.inf if outlet.low is None else outlet.low
    largest = np.inf if outlet.high is None else outlet.high
    if outlet.unit is None:
        return np.maximum(low, least), np.minimum(high, largest)
    unit = float(outlet.unit)
    if outlet.log_shift is not None:
        least = max(least, (np.floor(-outlet.log_shift / unit - 0.5) + 1) * unit)
    with np.errstate(over="ignore"):
        first, last = np.ceil(low / unit), np.floor(high / unit)
        for _ in range(2):  # division may be off by one double
            first = np.where(_value(outlet, first) < low, first + 1, first)
            first = np.where(_value(outlet, first - 1) >= low, first - 1, first)
            last = np.where(_value(outlet, last) > high, last - 1, last)
            last = np.where(_value(outlet, last + 1) <= high, last + 1, last)
        for _ in outlet.avoid:
            first = np.where(np.isin(_value(outlet, first), outlet.avoid), first + 1, first)
            last = np.where(np.isin(_value(outlet, last), outlet.avoid), last - 1, last)
        return np.maximum(_value(outlet, first), least), np.minimum(_value(outlet, last), largest)


def _value(outlet: Outlet, steps: Floats) -> Floats:
    assert outlet.unit is not None
    return np.asarray(steps * outlet.unit.numerator / outlet.unit.denominator)


def _in_sds(ends: Boxes, centre: Floats, scale: Floats) -> Boxes:
    """Standardise; where there is no noise the box is everything or nothing."""
    safe = np.where(scale == 0, 1.0, scale)
    lower, upper = (ends[0] - centre) / safe, (ends[1] - centre) / safe
    silent, stays = scale == 0, (lower <= 0) & (upper >= 0)
    lower = np.where(silent, np.where(stays, -np.inf, np.inf), lower)
    return lower, np.where(silent, -lower, upper)


def _as_normal(ends: Boxes, law: Additive) -> Boxes:
    """Give Laplace bounds in sds the normal quantiles of the same probability: the columns are independent."""
    from scipy.special import ndtri

    if not isinstance(law.noise, Laplace):
        return ends
    lower, upper = (-np.sign(end) * ndtri(np.exp(-(2**0.5) * np.abs(end)) / 2) for end in ends)
    return np.asarray(lower), np.asarray(upper)


def box_chances(law: Additive, boxes: Boxes, points: int) -> Floats:
    """Return the probability of each box, records x shifts of the lattice."""
    from ..kernels import normal_box_lattice as kernel

    lower, upper = boxes
    _, correlation = sds_and_correlations(law.noise.covariance)
    out = np.empty((len(lower), SHIFTS))
    lattice = kernel.lattice(lower.shape[1], points, SHIFTS)
    kernel.box_chances(lower, upper, np.ascontiguousarray(correlation), lattice, out)
    return out


def points_each(boxes: int, in_all: int = POINTS_IN_ALL, fewest: int = FEWEST_POINTS) -> int:
    """Return how many points of the lattice each of so many boxes gets: a power of two."""
    share = int(np.log2(max(in_all / max(boxes, 1), 1)))
    return int(np.clip(2**share, fewest, MOST_POINTS))


def chances_of_most(law: Additive, boxes: Boxes, is_open: Bools, allowed: Ints) -> Floats:
    """Return the chance that at most `allowed` of each record's open columns disagree, records x shifts.

    By inclusion and exclusion over boxes: of m columns at least r agree with probability
    sum over sets S of at least r columns of (-1)^(|S| - r) C(|S| - 1, r - 1) P(all of S agree).
    """
    out = np.where(allowed >= is_open.sum(axis=1), 1.0, 0.0)[:, None] * np.ones(SHIFTS)
    groups = list(_alike(is_open, allowed))
    boxes_in_all = sum(len(records) * _subsets(len(columns), spare) for records, columns, spare in groups)
    in_all = POINTS_IN_ALL if boxes_in_all <= len(allowed) else POINTS_OF_SUBSETS
    points = points_each(boxes_in_all, in_all)
    for records, columns, spare in groups:
        for left_out in range(spare + 1):
            m, r = len(columns) - left_out, len(columns) - spare
            times = (-1) ** (spare - left_out) * comb(m - 1, r - 1)
            for dropped in combinations(columns, left_out):
                out[records] += times * box_chances(law, _without(boxes, records, dropped), points)
    return out


def _alike(is_open: Bools, allowed: Ints) -> Iterator[tuple[Ints, list[int], int]]:
    """Group the records that can fail by their open columns and how many of these may disagree."""
    wanted = np.flatnonzero((allowed >= 0) & (allowed < is_open.sum(axis=1)))
    if not len(wanted):
        return
    plain = np.flatnonzero(allowed[wanted] == 0)
    if len(plain):  # no subsets, so that the patterns need no parting
        yield wanted[plain], list(range(is_open.shape[1])), 0
    wanted = np.delete(wanted, plain)
    kinds, member = np.unique(
        np.column_stack([is_open[wanted], allowed[wanted]]), axis=0, return_inverse=True
    )
    for i, kind in enumerate(kinds):
        yield wanted[member.ravel() == i], np.flatnonzero(kind[:-1]).tolist(), int(kind[-1])


def _without(boxes: Boxes, records: Ints, dropped: tuple[int, ...]) -> Boxes:
    lower, upper = boxes[0][records], boxes[1][records]
    lower[:, list(dropped)], upper[:, list(dropped)] = -np.inf, np.inf
    return lower, upper


def _subsets(columns: int, spare: int) -> int:
    """Return how many sets of columns may disagree, refusing too many."""
    count = sum(comb(columns, j) for j in range(spare + 1))
    if count > MOST_SUBSETS:
        raise BadPlan(
            f"{spare} of {columns} fields may disagree in {count:,} ways, more than {MOST_SUBSETS:,}: "
            "name fewer fields or a smaller disagreeing"
        )
    return count

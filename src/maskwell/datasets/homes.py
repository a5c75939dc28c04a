"""Homes, all invented: how many of each class there are, and who lives in which."""

from __future__ import annotations

from functools import cache
from itertools import pairwise

import numpy as np

from .arrays import Flags, Floats, Integers, read_only
from .published_figures import INCOME, LARGEST_TARGET_CELL, MAINTAIN, SIZE, TARGETS

# A class is named by its first value.
_YEARS = (1919, 1920, 1930, 1940, 1950, 1960, 1970, 1975, 1980, 1985, 1990)
CLASSES: dict[str, tuple[int, ...]] = {
    "REGION": (1, 2, 3, 4),
    "BEDROOMS": (1, 2, 3, 4, 5, 6),
    "BATHS": (1, 2, 3, 4),
    "YR_BLT": _YEARS,
}
CLASS_LABELS: dict[str, dict[int, str]] = {
    "REGION": {1: "Northeast", 2: "Midwest", 3: "South", 4: "West"},
    "BEDROOMS": {6: "6 or more"},
    "BATHS": {4: "4 or more"},
    "YR_BLT": {1919: "1919 or earlier"}
    | {first: f"{first} to {after - 1}" for first, after in pairwise((*_YEARS[1:], 1994))},
}
_REGION_SHARES = (0.20, 0.25, 0.34, 0.21)
_REGION_LIFT = (0.5, 0.0, -0.5, 1.0)  # how dear its homes are
_REGION_NEWNESS = (-1.0, -0.7, 0.6, 1.0)  # how new they are
_BEDROOM_SHARES = (0.14, 0.30, 0.37, 0.14, 0.037, 0.013)
_YEAR_SHARES = (0.11, 0.07, 0.06, 0.08, 0.13, 0.15, 0.12, 0.11, 0.08, 0.06, 0.03)
_BATHS_WITHOUT_BEDROOM, _BATHS_PER_BEDROOM, _BATHS_SD = 0.75, 0.3, 0.67
_HOME_NOISE_SD = 1.2

# Odd homes (cells of at most 7) hold the targets of Moore's Table 4. At his heaviest noise 136 links agree on all
# fields, 174 on all but one and 461 on fewer; already at his lightest nearly every target with an open value fails on
# one field, so it has an income that is small against the noise. Hence, out of 18 odd homes: 3 of households without
# any open value, 3 of the poorest renters, 10 of the poorest owners without an open upkeep, and 2 of other owners.
SILENT, POOR_RENTER, POOR_OWNER, OTHER_OWNER = range(4)
ODD_HOME_ODDS = (3, 3, 10, 2)


@cache
def cell_counts() -> Integers:
    """Return how many of 64,998 records each REGION x BEDROOMS x BATHS x YR_BLT cell holds.

    Exactly 771 of them are in cells of at most 7.
    """
    expected = SIZE * _cell_shares()
    counts = np.floor(expected).astype(np.int64)
    order = np.argsort((counts - expected).ravel(), kind="stable")
    counts.flat[order[: SIZE - counts.sum()]] += 1
    return read_only(_with_exact_targets(counts))


def _cell_shares() -> Floats:
    bedrooms, baths = np.array(CLASSES["BEDROOMS"])[:, None], np.array(CLASSES["BATHS"])
    usual_baths = _BATHS_WITHOUT_BEDROOM + _BATHS_PER_BEDROOM * bedrooms
    rooms = _rows_summing_to(np.exp(-0.5 * ((baths - usual_baths) / _BATHS_SD) ** 2), _BEDROOM_SHARES)
    newness = np.linspace(-1, 1, len(_YEAR_SHARES))
    tilted = np.array(_YEAR_SHARES) * np.exp(np.outer(_REGION_NEWNESS, newness))
    years = _rows_summing_to(tilted, _REGION_SHARES)
    shares = rooms[None, :, :, None] * years[:, None, None, :]
    return np.asarray(shares / shares.sum())


def _rows_summing_to(weights: Floats, sums: tuple[float, ...]) -> Floats:
    return np.asarray(weights * (np.array(sums) / weights.sum(axis=1))[:, None])


def _with_exact_targets(counts: Integers) -> Integers:
    """Move single records between small cells and the largest one until the small cells hold 771."""
    flat = counts.ravel().copy()
    gap = TARGETS - int(flat[flat <= LARGEST_TARGET_CELL].sum())
    step = 1 if gap > 0 else -1
    movable = (flat >= 1) & (flat <= LARGEST_TARGET_CELL) & (flat + step <= LARGEST_TARGET_CELL)
    moved = np.flatnonzero(movable)[: abs(gap)]
    flat[moved] += step
    flat[flat.argmax()] -= step * len(moved)
    return flat.reshape(counts.shape)


def home_classes(
    rng: np.random.Generator, is_open: Flags, income: Floats, comfort: Floats
) -> dict[str, Integers]:
    """Return each record's classes: who lives in more comfort has, by and large, the better home.

    `comfort` ranks the dwellers of all homes but the odd ones, which have dwellers of their own.
    """
    cells, is_odd = cell_counts(), is_odd_home().ravel()
    counts = drawn_counts(rng, len(comfort), cells)
    dwellers = _odd_home_dwellers(rng, is_open, income, int(counts[is_odd].sum()))
    noisy = comfort + _HOME_NOISE_SD * rng.standard_normal(len(comfort))
    noisy[dwellers] = np.inf
    order = np.argsort(noisy, kind="stable")
    order[len(order) - len(dwellers) :] = rng.permutation(dwellers)
    homes = np.argsort(np.where(is_odd, np.inf, _cell_comfort()), kind="stable")
    cell = np.empty(len(comfort), dtype=np.int64)
    cell[order] = np.repeat(homes, counts[homes])
    codes = np.unravel_index(cell, cells.shape)
    return {name: np.array(CLASSES[name])[code] for name, code in zip(CLASSES, codes, strict=True)}


@cache
def is_odd_home() -> Flags:
    """Return which cells are so small that who lives there is a target."""
    return read_only(cell_counts() <= LARGEST_TARGET_CELL)


def _odd_home_dwellers(rng: np.random.Generator, is_open: Flags, income: Floats, count: int) -> Integers:
    """Return `count` records, of each kind of household by its odds; if a kind runs out, more of the others."""
    kind = household_kinds(is_open)
    is_poorest_first = (kind == POOR_RENTER) | (kind == POOR_OWNER)
    order = np.lexsort((np.where(is_poorest_first, income, rng.random(len(kind))), kind))
    sizes = np.bincount(kind, minlength=len(ODD_HOME_ODDS))
    turns = [(np.arange(size) + 0.5) / odds for size, odds in zip(sizes, ODD_HOME_ODDS, strict=True)]
    return np.asarray(order[np.argsort(np.concatenate(turns), kind="stable")[:count]])


def household_kinds(is_open: Flags) -> Integers:
    """Return of which of the four kinds each record is; the poor kinds are those whose poorest have odd homes."""
    is_silent, is_renter = ~is_open.any(axis=0), ~is_open[1:].any(axis=0)
    has_income_without_upkeep = is_open[INCOME] & ~is_open[MAINTAIN]
    kinds = [SILENT, POOR_RENTER, POOR_OWNER]
    return np.asarray(np.select([is_silent, is_renter, has_income_without_upkeep], kinds, OTHER_OWNER))


def _cell_comfort() -> Floats:
    region, bedrooms, baths, year = np.indices(cell_counts().shape)
    return np.asarray(np.array(_REGION_LIFT)[region] + bedrooms + baths + year / 4).ravel()


def drawn_counts(rng: np.random.Generator, n: int, counts: Integers) -> Integers:
    """Return how many of `n` records fall to each class: the very counts at the published size, else a draw."""
    return counts.ravel() if n == SIZE else rng.multinomial(n, counts.ravel() / SIZE)

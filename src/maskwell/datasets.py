"""The built-in survey: synthetic housing records matched to the published figures of a real file.

Tables 1 and 3 of Moore describe five amounts on 64,998 records of a housing survey: how many values
are open, their means and sds, and for each pair how many records hold both and how they correlate. `housing`
draws records with these figures; `docs/survey.md` says how closely, and what is invented.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from itertools import combinations, pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from .errors import BadPlan

if TYPE_CHECKING:
    from .schema import Column
    from .table import Table

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Flags = NDArray[np.bool_]
Uniforms = Callable[[Floats], Floats]

SIZE = 64_998
TARGETS = 771
LARGEST_TARGET_CELL = 7


@dataclass(frozen=True, slots=True)
class Amount:
    """A field of Table 1, in whole dollars above the bottom code 0.

    The shares are invented: they split those closed values that can hold a code; the rest is at the top code.
    """

    name: str
    description: str
    open_count: int
    top: int
    mean: float
    sd: float
    missing_share: float
    bottom_share: float


AMOUNTS = (
    Amount("INCOME", "annual household income", 35_717, 100_000, 11_369, 13_986, 0.35, 0.40),
    Amount("HOME_VAL", "market value of the home", 31_394, 350_000, 97_698, 67_184, 0.50, 0.05),
    Amount("MORTGAGE", "monthly mortgage payment", 15_908, 1_800, 607, 359, 0.25, 0.65),
    Amount("MAINTAIN", "annual cost of maintenance", 18_374, 9_000, 571, 821, 0.30, 0.65),
    Amount("TAXES", "monthly property taxes", 30_671, 62, 19.83, 12.83, 0.45, 0.15),
)
HOME_VAL = 1

# Table 3: the records on which both fields of a pair are open, and the correlation over them.
PAIRS = tuple(combinations(range(len(AMOUNTS)), 2))
PAIR_COUNTS = (24_495, 12_002, 14_763, 23_996, 15_511, 17_735, 29_871, 10_869, 15_323, 17_487)
PAIR_CORRELATIONS = (0.1410, 0.0265, 0.0427, 0.0910, 0.6077, 0.2022, 0.5763, 0.1657, 0.5116, 0.1667)

# All that follows is invented. A class is named by its first value.
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

# Of the records without an open value: homes without an interview, and owners; the others are renters.
_NO_INTERVIEW_SHARE, _SILENT_OWNER_SHARE = 0.5, 0.1
_SAME_ANSWER_SHARE = 0.5
_OWNER_LIFT, _HOME_NOISE_SD = 1.5, 1.2

_CALIBRATION_STEPS = 8
_HERMITE_TERMS = 16


def _read_only(array: NDArray[Any]) -> NDArray[Any]:
    """Keep a cached array from being changed by who asked for it."""
    array.setflags(write=False)
    return array


@cache
def pattern_counts() -> Integers:
    """Return how many of 64,998 records have each of the 2^5 open patterns (axis: field, index 1: open).

    This is the law of maximum entropy with the published counts, made whole: for every set of fields the
    number of records on which they are all open is rounded (for one or two fields it is whole already), and
    these numbers are turned back into counts of patterns by differences.
    """
    table = np.full((2,) * len(AMOUNTS), SIZE / 2 ** len(AMOUNTS))
    for _ in range(300):
        for pair, both in zip(PAIRS, PAIR_COUNTS, strict=True):
            table = _fitted_to_pair(table, pair, both)
    return _read_only(_add_open(np.rint(_add_open(table, 1)), -1).astype(np.int64))


def _fitted_to_pair(table: Floats, pair: tuple[int, int], both: int) -> Floats:
    """Scale a table of counts to the two-way margin of a pair of fields."""
    first, second = (AMOUNTS[field].open_count for field in pair)
    wanted = np.array([[SIZE - first - second + both, second - both], [first - both, both]])
    others = tuple(field for field in range(len(AMOUNTS)) if field not in pair)
    return np.asarray(table * np.expand_dims(wanted / table.sum(axis=others), others))


def _add_open(table: Floats, sign: int) -> Floats:
    """Make index 0 mean "open or not" (sign 1), or undo that (sign -1)."""
    table = table.copy()
    for field in range(table.ndim):
        by_field = np.moveaxis(table, field, 0)
        by_field[0] += sign * by_field[1]
    return table


@cache
def cell_counts() -> Integers:
    """Return how many of 64,998 records each REGION x BEDROOMS x BATHS x YR_BLT cell holds.

    Exactly 771 of them are in cells of at most 7.
    """
    expected = SIZE * _cell_shares()
    counts = np.floor(expected).astype(np.int64)
    order = np.argsort((counts - expected).ravel(), kind="stable")
    counts.flat[order[: SIZE - counts.sum()]] += 1
    return _read_only(_with_exact_targets(counts))


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


@dataclass(frozen=True, slots=True)
class WholeLognormal:
    """A lognormal kept between 1/2 and `top` - 1/2 and rounded: whole numbers strictly inside the codes."""

    log_mean: float
    log_sd: float
    top: int

    def values(self, uniforms: Floats) -> Floats:
        """Return the quantiles of the law at probabilities strictly between 0 and 1."""
        from scipy.special import ndtri

        low, high = self._normal_cdf(np.array([0.5, self.top - 0.5]))
        amounts = np.exp(self.log_mean + self.log_sd * ndtri(low + uniforms * (high - low)))
        return np.asarray(np.clip(np.rint(amounts), 1, self.top - 1))

    def moments(self) -> tuple[float, float]:
        """Return the mean and the sd."""
        cdf = self._normal_cdf(np.arange(0.5, self.top))
        shares, amounts = np.diff(cdf) / (cdf[-1] - cdf[0]), np.arange(1, self.top)
        mean = float(shares @ amounts)
        return mean, float(np.sqrt(shares @ (amounts - mean) ** 2))

    def _normal_cdf(self, amounts: Floats) -> Floats:
        from scipy.special import ndtr

        return np.asarray(ndtr((np.log(amounts) - self.log_mean) / self.log_sd))


@cache
def amount_laws() -> tuple[WholeLognormal, ...]:
    """Return the law of each amount's open values: the one with the published mean and sd."""
    return tuple(_fitted_law(amount) for amount in AMOUNTS)


def _fitted_law(amount: Amount) -> WholeLognormal:
    from scipy.optimize import root

    sd = amount.sd * np.sqrt(1 - 1 / amount.open_count)  # published with divisor n - 1

    def misses(guess: Floats) -> list[float]:
        found_mean, found_sd = WholeLognormal(guess[0], np.exp(guess[1]), amount.top).moments()
        return [found_mean / amount.mean - 1, found_sd / sd - 1]

    log_variance = np.log1p((sd / amount.mean) ** 2)
    untruncated = [np.log(amount.mean) - log_variance / 2, np.log(log_variance) / 2]
    log_mean, log_of_log_sd = root(misses, untruncated, tol=1e-10).x
    return WholeLognormal(float(log_mean), float(np.exp(log_of_log_sd)), amount.top)


@cache
def latent_correlations() -> Floats:
    """Return the correlations of the normals under the amounts that give the published ones above.

    Functions of two normals that correlate by r have the covariance sum_k a_k b_k r^k, where a and b are
    their coefficients in normalised Hermite polynomials (Mehler).
    """
    from scipy.optimize import brentq

    coefficients = _hermite_coefficients()
    out = np.eye(len(AMOUNTS))
    for (i, j), wanted in zip(PAIRS, PAIR_CORRELATIONS, strict=True):
        series = np.polynomial.Polynomial(np.append(-wanted, coefficients[i] * coefficients[j]))
        out[i, j] = out[j, i] = brentq(series, -0.99, 0.99, xtol=1e-12)
    return _read_only(out)


def _hermite_coefficients() -> Floats:
    """Return amounts x terms 1, 2, ...: coefficients of each amount, in units of its sd."""
    from scipy.special import factorial, ndtr

    normals = np.linspace(-8, 8, 40_001)
    weights = np.exp(-(normals**2) / 2)
    weights /= weights.sum()
    polynomials = np.polynomial.hermite_e.hermevander(normals, _HERMITE_TERMS)
    polynomials /= np.sqrt(factorial(np.arange(_HERMITE_TERMS + 1)))
    uniforms = ndtr(normals)
    sds = np.array([law.moments()[1] for law in amount_laws()])
    amounts = np.array([law.values(uniforms) for law in amount_laws()])
    return np.asarray(((amounts * weights) @ polynomials)[:, 1:] / sds[:, None])


def housing_arrays(n: int = SIZE, seed: int = 1993) -> dict[str, NDArray[Any]]:
    """Draw the survey as numpy arrays: ids as text, classes as integers, amounts as floats.

    Amounts are NaN where missing and equal to a code where coded. At 64,998 records the published counts hold
    exactly for every seed; at any other size records are drawn with the same probabilities.
    """
    if n < 1:
        raise BadPlan("the survey needs at least one record: n must be 1 or more")
    rng = np.random.default_rng(seed)
    is_open = _open_fields(rng, n)
    latent, uniforms_of = _latent_normals(rng, is_open)
    owner, may_hold_code = _household_kinds(rng, is_open)
    amounts = _closed_values(rng, may_hold_code)
    _fill_open(amounts, is_open, latent, uniforms_of)
    classes = _housing_classes(rng, latent[HOME_VAL] + _OWNER_LIFT * owner)
    values = {amount.name: amounts[field] for field, amount in enumerate(AMOUNTS)}
    return {"IDNUM": _identifiers(rng, n), **classes, **values}


def _drawn_counts(rng: np.random.Generator, n: int, counts: Integers) -> Integers:
    return counts.ravel() if n == SIZE else rng.multinomial(n, counts.ravel() / SIZE)


def _open_fields(rng: np.random.Generator, n: int) -> Flags:
    """Return fields x records: whether the value is open."""
    counts = pattern_counts()
    patterns = np.repeat(np.arange(counts.size, dtype=np.uint8), _drawn_counts(rng, n, counts))
    rng.shuffle(patterns)
    of_pattern = np.array(np.unravel_index(np.arange(counts.size), counts.shape), dtype=bool)
    return of_pattern[:, patterns]


def _latent_normals(rng: np.random.Generator, is_open: Flags) -> tuple[Floats, Uniforms]:
    """Return correlated normals, fields x records, and what makes them uniform.

    At the published size ranks do: the open values of a field are then the quantiles of its law, whatever the
    seed, and have its mean and sd; and the correlations are set for this very sample.
    """
    from scipy.special import ndtr

    normals = rng.standard_normal(is_open.shape)
    if is_open.shape[1] != SIZE:
        return np.linalg.cholesky(latent_correlations()) @ normals, ndtr
    return np.linalg.cholesky(_calibrated_correlations(normals, is_open)) @ normals, _even_ranks


def _fill_open(amounts: Floats, is_open: Flags, latent: Floats, uniforms_of: Uniforms) -> None:
    for field, law in enumerate(amount_laws()):
        amounts[field, is_open[field]] = law.values(uniforms_of(latent[field, is_open[field]]))


def _even_ranks(numbers: Floats) -> Floats:
    ranks = np.empty(len(numbers))
    ranks[np.argsort(numbers, kind="stable")] = np.arange(len(numbers)) + 0.5
    return ranks / len(numbers)


def _calibrated_correlations(normals: Floats, is_open: Flags) -> Floats:
    """Return latent correlations with which these normals give the published correlations of the amounts."""
    latent = latent_correlations().copy()
    rows, columns = np.transpose(PAIRS)
    wanted = np.array(PAIR_CORRELATIONS)
    slopes = latent[rows, columns] / wanted
    for _ in range(_CALIBRATION_STEPS):
        found = _pair_correlations(np.linalg.cholesky(latent) @ normals, is_open)
        latent[rows, columns] += slopes * (wanted - found)
        latent[columns, rows] = latent[rows, columns]
    return latent


def _pair_correlations(latent: Floats, is_open: Flags) -> Floats:
    amounts = np.full(latent.shape, np.nan)
    _fill_open(amounts, is_open, latent, _even_ranks)
    both = [is_open[i] & is_open[j] for i, j in PAIRS]
    return np.array(
        [np.corrcoef(amounts[i, k], amounts[j, k])[0, 1] for (i, j), k in zip(PAIRS, both, strict=True)]
    )


def _household_kinds(rng: np.random.Generator, is_open: Flags) -> tuple[Flags, Flags]:
    """Return which records are owners, and fields x records: where a code can stand.

    A record with an open housing amount is an owner; one with an open income alone a renter, whose housing
    amounts are missing. The silent ones are homes without an interview (all missing), renters and owners.
    """
    silent = ~is_open.any(axis=0)
    kind = rng.random(is_open.shape[1])
    owner = np.logical_or(is_open[1:].any(axis=0), silent & (kind >= 1 - _SILENT_OWNER_SHARE))
    interviewed = ~(silent & (kind < _NO_INTERVIEW_SHARE))
    return owner, np.stack([interviewed, *[owner] * len(AMOUNTS[1:])])


def _closed_values(rng: np.random.Generator, may_hold_code: Flags) -> Floats:
    """Return fields x records: NaN, 0 or the top code, to be overwritten where open.

    One answer in two is common to the record, so that who refuses one question tends to refuse others.
    """
    out = np.full(may_hold_code.shape, np.nan)
    n = may_hold_code.shape[1]
    of_record = rng.random(n)
    for field, amount in enumerate(AMOUNTS):
        answer = np.where(rng.random(n) < _SAME_ANSWER_SHARE, of_record, rng.random(n))
        coded = may_hold_code[field] & (answer >= amount.missing_share)
        is_bottom = answer < amount.missing_share + amount.bottom_share
        out[field, coded] = np.where(is_bottom[coded], 0, amount.top)
    return out


def _housing_classes(rng: np.random.Generator, comfort: Floats) -> dict[str, Integers]:
    """Return each record's classes: who lives in more comfort has, by and large, the better home."""
    cells = cell_counts()
    counts = _drawn_counts(rng, len(comfort), cells)
    best_last = np.argsort(_cell_comfort(), kind="stable")
    order = np.argsort(comfort + _HOME_NOISE_SD * rng.standard_normal(len(comfort)), kind="stable")
    cell = np.empty(len(comfort), dtype=np.int64)
    cell[order] = np.repeat(best_last, counts[best_last])
    codes = np.unravel_index(cell, cells.shape)
    return {name: np.array(CLASSES[name])[code] for name, code in zip(CLASSES, codes, strict=True)}


def _cell_comfort() -> Floats:
    region, bedrooms, baths, year = np.indices(cell_counts().shape)
    return np.asarray(np.array(_REGION_LIFT)[region] + bedrooms + baths + year / 4).ravel()


def _identifiers(rng: np.random.Generator, n: int) -> NDArray[np.str_]:
    """Return unique 12-digit numbers as text, in random order."""
    step = 10**12 // n
    left = np.arange(n) * step + rng.integers(0, step, n)
    rng.shuffle(left)
    digits = np.empty((n, 12), dtype=np.uint32)
    for place in reversed(range(12)):
        left, digits[:, place] = np.divmod(left, 10)
    return (digits + np.uint32(ord("0"))).view("U12").ravel()


def housing(n: int = SIZE, seed: int = 1993) -> Table:
    """Draw the synthetic housing survey as a table.

    The amounts are keys; REGION, BEDROOMS, BATHS and YR_BLT are the blocks. All four together make the small
    cells that hold the 771 targets; an intruder's matching drops REGION.
    """
    import pyarrow as pa

    from .schema import Schema
    from .table import Table, to_arrow

    arrays, columns = housing_arrays(n, seed), _columns()
    statuses = {a.name: _status(arrays[a.name], a.top) for a in AMOUNTS}
    codes = {name: np.searchsorted(CLASSES[name], arrays[name]).astype(np.float64) for name in CLASSES}
    data: dict[str, Any] = {"IDNUM": pa.array(arrays["IDNUM"], pa.string())}
    for column in columns[1:]:
        values = codes.get(column.name, arrays[column.name])
        data[column.name] = to_arrow(column, values, statuses.get(column.name, np.zeros(n, np.uint8)))
    closed = {name: status for name, status in statuses.items() if status.any()}
    return Table(Schema(columns, series="housing"), pa.table(data), closed)


def _status(amounts: Floats, top: int) -> NDArray[np.uint8]:
    from .schema import BOTTOM_CODED, MISSING, OPEN, TOP_CODED

    kinds = [np.isnan(amounts), amounts == top, amounts == 0]
    return np.select(kinds, [MISSING, TOP_CODED, BOTTOM_CODED], OPEN).astype(np.uint8)


def _columns() -> tuple[Column, ...]:
    from .schema import Column

    identifier = Column("IDNUM", "text", frozenset({"id"}), description="identifying number of 12 digits")
    classes = (_class_column(name) for name in CLASSES)
    key = frozenset({"key"})
    amounts = (Column(a.name, "integer", key, 1, a.top, 0, description=a.description) for a in AMOUNTS)
    return identifier, *classes, *amounts


def _class_column(name: str) -> Column:
    from .schema import Column

    roles = frozenset({"block"})
    labels = tuple((str(value), label) for value, label in CLASS_LABELS[name].items())
    return Column(name, "category", roles, categories=tuple(map(str, CLASSES[name])), labels=labels)

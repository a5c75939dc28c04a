"""Identities that hold for most records, though not for all: totals with some faults, ratios, scaled differences.

Sums: y = c0 + c1 x1 + ... + ck xk for most records. The few x are chosen one by one, by their correlation with what is
left, and those that the relation does not need are taken out again; each time the coefficients come from least trimmed
squares (Rousseeuw 1984; concentration steps of Rousseeuw and Van Driessen 2006): least squares on the records that fit
best, again and again. Ratios and products: log y = c + a log x1 + b log x2 with a, b = 1 or -1, c the median of what is
left. A product and a term: y = c0 + c1 x1 + c2 x2 x3, screened by the correlations of all columns with all products,

    R^2(x1, p) = (r1^2 + rp^2 - 2 r1 rp r1p) / (1 - r1p^2),    p = x2 x3,

so that 30 columns, with 435 products, take one matrix product. A relation counts where it is exact but for rounding in
four of five records that tell something (those with the most frequent value of y do not), and y varies by far more than
rounding, so that it is no chance.

Chosen where exact identities (`io.identities`) and least squares (`dependence.nearly_linear`) find nothing: noise on
all members would leave the tie as it is, and who knows it averages the noise out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ..io.identities import decimal_unit

Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]

MOST_TERMS, MOST_TRIED = 5, 10  # of a sum, and columns that are tried on the way: likely ones that are none
LEAST_SHARE = 0.8  # of the records that tell something
FEWEST = 30  # such records
KEPT = 0.8  # share of records on which coefficients are fitted: up to a fifth may be faults
STEPS = 12  # of concentration: they come to rest after a few
# Of them, after which what is left must be within so many times of what is near
FIRST_STEPS, IN_SIGHT = 3, 5.0
LEAST_SPREAD = 20.0  # sds of y in units of what rounding allows: else a relation holds by chance
FINEST = 3e-7  # of the largest term: columns without a unit are equal to so much in single precision
SCREENED = 1_000  # records that are looked at before all are
# Of the variance, so that copies among the columns do no harm; one refinement takes its bias away
RIDGE = 1e-10
HOPELESS = 0.02  # sds of y, by which half the records are off with all columns at once: a few do no better
NEAR = 0.05  # of logarithms: what a ratio may be off in half the records, to be looked at closely
REFUTING = 41  # records by which pairs of columns are refuted first
MOST_FACTORS = 30  # columns whose products are looked at: 435
DIGITS = 9  # of a coefficient: who computes the relation again must come as near as the count did
UNEXPLAINED = 1e-6  # of the variance of y: what a product and a term leave, to be looked at closely
ALL_KNOWN = "where all are known"
LIKE = 0.9999  # correlation of a term and a product that cannot be told apart


@dataclass(frozen=True, slots=True)
class Count:
    """How many records obey a relation: of those `telling` something, and of all in which its members are `known`.

    Records tell something where y is not its most frequent value.
    """

    telling: int
    obeying: int
    known: int
    obeying_known: int

    @classmethod
    def of(cls, obeys: Bools, tells: Bools) -> Count:
        """Count the records that obey, among those that tell something and among all."""
        telling, obeying = int(np.count_nonzero(tells)), int(np.count_nonzero(obeys & tells))
        return cls(telling, obeying, len(obeys), int(np.count_nonzero(obeys)))

    @property
    def share(self) -> float:
        """The share of the telling records that obey."""
        return self.obeying / self.telling if self.telling else 0.0

    def words(self, known: str) -> str:
        """Say in how many records a relation holds, such that a reader can count them again.

        All records in which its members are `known` are counted; where too few of these obey, as y is 0 for all to whom
        it does not apply, those that tell something.
        """
        if self.obeying_known >= LEAST_SHARE * self.known:
            return f"in {self.obeying_known:,} of {self.known:,} records {known}"
        beside = "and it is not its most frequent value"
        return f"in {self.obeying:,} of {self.telling:,} records {known} {beside}"


@dataclass(frozen=True, slots=True)
class NearIdentity:
    """A relation that most records obey: `place` is the column it gives, by `parts`, in so many records.

    `known` says which records are counted, `within` how far off those may be that obey, where that is one number.
    """

    place: int
    parts: tuple[int, ...]
    count: Count
    said: str
    known: str = ALL_KNOWN
    within: float = 0.0

    @property
    def share(self) -> float:
        """The share of the telling records that obey."""
        return self.count.share

    def __str__(self) -> str:
        off = f" within {self.within:.3g}" if self.within else ""
        return f"{self.said}, but for rounding{off}, {self.count.words(self.known)}"


def near_sum(values: Floats, place: int, others: Sequence[int], names: Sequence[str]) -> NearIdentity | None:
    """Return a sum of a few others that gives a column in most records, if there is one."""
    some, rest = _screening_sample(values), [j for j in others if j != place]
    if not rest or not _is_near(some, place, rest):
        return None
    chosen, left = list[int](), some[:, place] - np.median(some[:, place])
    while rest and len(chosen) < MOST_TRIED:
        chosen.append(rest[int(np.argmax(_likeness(left, some[:, rest])))])
        rest.remove(chosen[-1])
        coefficients = _trimmed_least_squares(some, place, chosen)
        left = some[:, place] - _fitted_values(some, chosen, coefficients)
        if _count(some, place, chosen, coefficients).share < LEAST_SHARE:
            continue
        needed = _needed_members(some, place, chosen)
        coefficients = _trimmed_least_squares(values, place, needed)
        count = _count(values, place, needed, coefficients)
        if count.share >= LEAST_SHARE and len(needed) <= MOST_TERMS:
            said = _sum_words([names[j] for j in needed], coefficients)
            within = _rounding_bound(values, [place, *needed], np.array([1.0, *np.abs(coefficients[:-1])]))
            return NearIdentity(place, tuple(needed), count, said, within=within)
    return None


def _is_near(values: Floats, place: int, others: Sequence[int]) -> bool:
    """Whether all others together come near a column in half the records.

    A few steps of concentration bring them within sight of it where they do: most columns are refuted by these.
    """
    near = HOPELESS * np.std(values[:, place])
    for steps, allowed in ((FIRST_STEPS, IN_SIGHT * near), (STEPS, near)):
        off = np.abs(
            values[:, place]
            - _fitted_values(values, others, _trimmed_least_squares(values, place, others, steps))
        )
        if not np.median(off) < allowed:
            return False
    return True


def _needed_members(values: Floats, place: int, chosen: Sequence[int]) -> list[int]:
    """Leave out, one by one, the columns without which the relation holds as often."""
    needed = list(chosen)
    for j in chosen:
        fewer = [one for one in needed if one != j]
        if (
            fewer
            and _count(values, place, fewer, _trimmed_least_squares(values, place, fewer)).share
            >= LEAST_SHARE
        ):
            needed = fewer
    return needed


def _sum_words(names: list[str], coefficients: Floats) -> str:
    formula = linear_words(names, coefficients)
    if len(names) > 1:
        return f"a sum or difference of {', '.join(names)} ({formula})"
    is_copy = abs(coefficients[0] - 1) < FINEST and abs(coefficients[1]) < FINEST
    return f"equal to {names[0]}" if is_copy else f"{names[0]} on another scale ({formula})"


def linear_words(names: Sequence[str], coefficients: Floats) -> str:
    """Write a sum with its coefficients, the constant last; those that are 0 are left out."""
    terms = [(c, name) for c, name in zip(coefficients, [*names, ""], strict=True) if abs(c) > FINEST]
    words = [
        f"{'-' if c < 0 else '+'} {number_words(abs(c), name)}" for c, name in terms
    ]  # as identities are written
    return " ".join(words).removeprefix("+ ")


def number_words(size: float, name: str) -> str:
    """Write a coefficient and what it is of."""
    number = f"{size:.{DIGITS}g}"
    return number if not name else name if number == "1" else f"{number} x {name}"


def near_ratio(
    values: Floats, place: int, others: Sequence[int], names: Sequence[str]
) -> NearIdentity | None:
    """Return two others whose ratio or product, times a constant, gives a positive column in most records."""
    positive = [j for j in others if j != place and np.mean(values[:, j] > 0) > 0]
    for first, second, sign in _ratio_candidates(_screening_sample(values)[::2], place, positive):
        constant, count = _ratio_count(values, place, first, second, sign)
        if count.share >= LEAST_SHARE:
            said = ratio_words(names[first], names[second], sign, constant)
            return NearIdentity(place, (first, second), count, said, f"{ALL_KNOWN} and above 0")
    return None


def ratio_words(first: str, second: str, sign: int, constant: float) -> str:
    """Write a ratio (-1) or product (1) of two columns, and what it is multiplied by."""
    times = "" if constant == 1 else f" (times {constant:.{DIGITS}g})"
    return f"{first} {'times' if sign > 0 else 'over'} {second}{times}"


def near_product(
    values: Floats, place: int, others: Sequence[int], names: Sequence[str]
) -> NearIdentity | None:
    """Return one column and the product of two that give another by a sum or difference in most records."""
    factors = sorted((j for j in others if j != place), key=lambda j: abs(j - place))[:MOST_FACTORS]
    found = _product_candidate(_screening_sample(values), place, factors)
    if found is None:
        return None
    term, first, second = found
    for parts in ((first, second), (term, first, second)):
        coefficients, count = _product_count(values, place, parts)
        if count.share >= LEAST_SHARE:
            product = f"{names[first]} times {names[second]}"
            said = product if len(parts) == 2 else f"a sum or difference of {names[term]} and {product}"
            terms = [*(names[j] for j in parts[:-2]), f"{names[first]} x {names[second]}"]
            said = f"{said} ({linear_words(terms, coefficients)})"
            return NearIdentity(place, parts, count, said)
    return None


def _product_count(values: Floats, place: int, parts: Sequence[int]) -> tuple[Floats, Count]:
    """Return the coefficients of the parts, the product of the last two being one, and how many records obey."""
    *terms, first, second = parts
    product = values[:, first] * values[:, second]
    design = np.column_stack([values[:, [place, *terms]], product])
    chosen = list(range(1, design.shape[1]))
    coefficients = _trimmed_least_squares(design, 0, chosen)
    sizes = np.abs(coefficients)
    allowed = _rounding_bound(values, [place, *terms], np.array([1.0, *sizes[: len(terms)]]))
    off_by = allowed + sizes[len(terms)] * _product_rounding(values[:, first], values[:, second])
    obeys = np.abs(design[:, 0] - _fitted_values(design, chosen, coefficients)) <= off_by
    return coefficients, _obeying_record_count(values[:, place], obeys, float(np.median(off_by)))


# Sums.


def _screening_sample(values: Floats) -> Floats:
    return values[:: max(1, -(-len(values) // SCREENED))]


def _likeness(left: Floats, x: Floats) -> Floats:
    """Return how well columns go with what is left, by the middle of the records: faults are far out."""
    spread = np.abs(left - np.median(left))
    usual = spread <= np.quantile(spread, 0.95)
    return np.abs(_unit_length(left[usual][:, None])[:, 0] @ _unit_length(x[usual]))


def _fitted_values(values: Floats, chosen: Sequence[int], coefficients: Floats) -> Floats:
    return np.asarray(values[:, list(chosen)] @ coefficients[:-1] + coefficients[-1])


def _trimmed_least_squares(values: Floats, place: int, chosen: Sequence[int], steps: int = STEPS) -> Floats:
    """Return coefficients (the constant last) by least trimmed squares, from all records on."""
    x, y = values[:, list(chosen)], values[:, place]
    kept = np.ones(len(values), bool)
    coefficients = np.zeros(len(chosen) + 1)
    for _ in range(steps):
        coefficients = _least_squares(x[kept], y[kept])
        off = np.abs(y - x @ coefficients[:-1] - coefficients[-1])
        again = off <= np.partition(off, int(KEPT * (len(off) - 1)))[int(KEPT * (len(off) - 1))]
        if np.array_equal(again, kept):
            break
        kept = again
    return _rounded_coefficients(coefficients)


def _least_squares(x: Floats, y: Floats) -> Floats:
    """Return slopes and constant by normal equations in sds, refined once: far quicker than by singular values."""
    centre, middle = x.mean(axis=0), float(y.mean())
    scale = x.std(axis=0)
    scale[scale == 0] = 1.0
    design, left = (x - centre) / scale, y - middle
    gram = design.T @ design
    gram[np.diag_indices_from(gram)] += RIDGE * len(x)
    slopes = np.linalg.solve(gram, design.T @ left)
    slopes += np.linalg.solve(gram, design.T @ (left - design @ slopes))
    slopes = slopes / scale
    return np.append(slopes, middle - float(centre @ slopes))


def _rounded_coefficients(coefficients: Floats) -> Floats:
    """Put coefficients on three digits where they are that to a millionth: they were meant so."""
    meant = np.array([float(f"{c:.3g}") for c in coefficients])
    near = np.abs(coefficients - meant) <= 1e-6 * np.maximum(np.abs(coefficients), 1.0)
    return np.where(near, meant, coefficients)


def _count(values: Floats, place: int, chosen: Sequence[int], coefficients: Floats) -> Count:
    """Count the records that obey a sum; none where few tell or y hardly varies."""
    y = values[:, place]
    members = [place, *chosen]
    allowed = _rounding_bound(values, members, np.array([1.0, *np.abs(coefficients[:-1])]))
    obeys = np.abs(y - _fitted_values(values, chosen, coefficients)) <= allowed
    return _obeying_record_count(y, obeys, allowed)


def _obeying_record_count(y: Floats, obeys: Bools, allowed: float) -> Count:
    """Count the records that obey; none where few tell or y hardly varies beyond what is allowed."""
    tells = y != mode(y)
    if np.count_nonzero(tells) < FEWEST or np.std(y[tells]) < LEAST_SPREAD * allowed:
        return Count.of(np.zeros_like(obeys), tells)
    return Count.of(obeys, tells)


def mode(x: Floats) -> float:
    """Return the most frequent value."""
    support, counts = np.unique(x, return_counts=True)
    return float(support[np.argmax(counts)])


def _rounding_bound(values: Floats, members: Sequence[int], sizes: Floats) -> float:
    """Return by how much a sum may be off for rounding: half a unit of each member, times its coefficient."""
    largest = np.abs(values[:, members]).max(axis=0, initial=0.0)
    units = np.array([decimal_unit(values[:, j]) or 0.0 for j in members])
    return float(0.5 * (units * sizes).sum() * (1 + 1e-9) + FINEST * float((largest * sizes).max()))


# Ratios.


def _ratio_candidates(values: Floats, place: int, others: Sequence[int]) -> list[tuple[int, int, int]]:
    """Return pairs whose ratio (-1) or product (1) goes with a column in half the records, by a screen of some."""
    with np.errstate(divide="ignore", invalid="ignore"):
        logs = np.where(values > 0, np.log(values), np.nan)
    found = []
    if not np.nanstd(logs[:, place]) > NEAR:
        return []
    few = logs[:: max(1, len(logs) // REFUTING)][:REFUTING]
    for first in others:
        own, some = (x[:, place] - x[:, first] for x in (logs, few))
        for sign in (-1, 1):
            able = [j for j in others if (j > first if sign > 0 else j != first)]
            able = [
                j for j, is_open in zip(able, _not_refuted(some, few, able, sign), strict=True) if is_open
            ]
            level = _are_level(own[:, None] - sign * logs[:, able])
            found += [(first, second, sign) for second, is_level in zip(able, level, strict=True) if is_level]
    return found


def _not_refuted(left: Floats, logs: Floats, able: Sequence[int], sign: int) -> Bools:
    """Return whether the middle fifth of a few records lies close together, or few of these are known.

    It does for a ratio that holds in four of five records but once in some hundred, were all others off to one side.
    """
    apart = left[:, None] - sign * logs[:, list(able)]
    ordered, at = np.sort(apart, axis=0), np.arange(apart.shape[1])  # unknown ones come last
    known = np.count_nonzero(~np.isnan(apart), axis=0)
    low, high = (ordered[(share * np.maximum(known - 1, 0)).astype(np.int64), at] for share in (0.4, 0.6))
    with np.errstate(invalid="ignore"):
        return np.asarray((known < REFUTING // 2) | (high - low < NEAR))


def _are_level(left: Floats) -> Bools:
    """Return whether the middle half of each column, where it is known, lies close together."""
    known, ordered = (
        np.count_nonzero(~np.isnan(left), axis=0),
        np.sort(left, axis=0),
    )  # unknown ones come last
    at = np.arange(left.shape[1])
    lower, upper = ordered[known // 4, at], ordered[np.maximum(3 * known // 4 - 1, 0), at]
    return np.asarray((known >= FEWEST) & (upper - lower < NEAR))


def _ratio_count(values: Floats, place: int, first: int, second: int, sign: int) -> tuple[float, Count]:
    """Return the constant of a ratio or product of positive members, and how many records obey it."""
    members = [place, first, second]
    some = values[(values[:, members] > 0).all(axis=1)]
    if len(some) < FEWEST:
        return 0.0, Count(len(some), 0, len(some), 0)
    y, given = some[:, place], some[:, first] * some[:, second] ** float(sign)
    constant = float(np.median(y / given))
    meant = float(f"{constant:.3g}")
    constant = meant if abs(constant - meant) < 0.005 * meant else constant
    unit = decimal_unit(y) or 0.0
    allowed = unit / 2 * (1 + 1e-9) + 1e-6 * np.abs(constant * given)  # single precision has six digits
    return constant, _obeying_record_count(
        y, np.abs(y - constant * given) <= allowed, float(np.median(allowed))
    )


# A product and a term.


def _product_candidate(values: Floats, place: int, factors: Sequence[int]) -> tuple[int, int, int] | None:
    """Return the term and the product that explain a column best, where they leave next to nothing of it."""
    first, second = np.triu_indices(len(factors), 1)
    if not len(first) or not np.ptp(values[:, place]) > 0:
        return None
    x = values[:, list(factors)]
    terms, products = _unit_length(x), _unit_length(x[:, first] * x[:, second])
    y = _unit_length(values[:, [place]])[:, 0]
    r_term, r_product, r_both = (terms.T @ y)[:, None], products.T @ y, terms.T @ products
    apart = np.abs(r_both) < LIKE
    left = 1 - (r_term**2 + r_product**2 - 2 * r_term * r_product * r_both) / np.where(
        apart, 1 - r_both**2, 1.0
    )
    left = np.where(apart, left, np.inf)
    at, pair = np.unravel_index(int(np.argmin(left)), left.shape)
    if not left[at, pair] < UNEXPLAINED:
        return None
    return factors[int(at)], factors[int(first[pair])], factors[int(second[pair])]


def _unit_length(x: Floats) -> Floats:
    """Centre columns and bring them to length 1; constant ones to 0."""
    centred = x - x.mean(axis=0)
    sizes = np.linalg.norm(centred, axis=0)
    return np.asarray(centred / np.where(sizes > 0, sizes, np.inf))


def _product_rounding(first: Floats, second: Floats) -> Floats:
    """Return by how much each product may be off for the rounding of its factors."""
    units = [decimal_unit(x) or 0.0 for x in (first, second)]
    by_unit = 0.5 * (units[0] * np.abs(second) + units[1] * np.abs(first))
    return np.asarray(by_unit + FINEST * np.abs(first * second))

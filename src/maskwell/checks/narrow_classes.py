"""Classes of what leaves in clear inside which a masked amount hardly varies: there the class tells it, not the noise.

Who reads z alone takes the amount for one of the file's, and is left with the posterior p(x | z) over all records; who
knows the class as well takes it for one of the class's. Both errors are measured by 95% intervals. With noise of sd s
(in the units of the noise: logarithms where it is added to these), a class of m records whose middle 95% span w and
d = 3.92 s, the span of 95% of the noise,

    squared width by z and the class = w^2 d^2 / (w^2 + d^2) + (d^2 / m) (d^2 / (w^2 + d^2))^2,

the first term being the normal posterior, the second what is unknown of where the class lies to who has only the mean
of its m released values: so the figure asks for no knowledge from outside, and a class of a few records, narrow by
chance, tells nothing. Who does know the range of a class (children of school age) needs no such mean. A record is told
by its class where this is at most a tenth of the squared width by z alone, averaged over the class: the share of
variance at which columns in clear fail as predictors of all records (`clear_columns`).

By chance m records lie as close together with P(Bin(m, p) >= 0.95 m) <= exp(-m KL(0.95 || p)), p being the share of all
records inside the class's span (Chernoff 1952); classes count below 1e-5 over all classes and spans that are looked at.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
import numpy.typing as npt

from ..laws import Additive
from ..table import Floats
from .clear_columns import cells_of, predictors
from .evidence import Evidence
from .protocol import CheckFigure
from .residuals import FEWEST, NOTHING
from .scales import column_on_scale, law_of, noised_columns

Integers = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]
Cells = npt.NDArray[np.unsignedinteger]

SURE, NORMAL_WIDTH = 0.95, 3.92  # of the readers' intervals, and the width of a normal one in sds
TOLD = 0.1  # of the squared width by z alone, at most: 90% explained
BY_CHANCE = np.log(1e-5)  # over all classes that are looked at: as for all tests of the residuals
POINTS = 256  # quantiles that stand for the file's values in a reader's posterior
NODES, WEIGHTS = np.polynomial.hermite_e.hermegauss(5)  # of the noise: widths change little with it
MOST_LEVELS, IN_A_PART = 60, 100  # values of a clear number that are classes; else parts of so many records
MOST_CROSSED = 12  # columns, those of the fewest classes, that are looked at in pairs: 66
MOST_SINGLE = 300  # columns that are looked at alone
MOST_PASSES = 4e7  # records x groupings x columns, about five seconds; else fewer records
LARGEST, LEAST = 200_000, 2_000  # records that are looked at, of many and whatever the passes
MOST_TRIED = 4  # columns to drop, of those that promise most
MOST_NAMED = 4  # columns with gaps: of more it is said that something is missing
NEARLY_AS_MANY = 0.95  # of the most records: a pair that tells no more than one column is that column
# Clear columns that are named to be dropped, and numbers for which they are
MOST_DROPPED, MOST_ADVISED = 3, 3
FEW, MANY = 0.01, 0.15  # of the records: what the check warns of, and what it fails


@dataclass(frozen=True, slots=True)
class NoisedAmount:
    """True values on the scale of their noise (NaN unless open), and the sd of each one's noise there."""

    x: Floats
    sd: Floats


@dataclass(frozen=True, slots=True)
class ClassGrouping:
    """Classes by some columns in clear, or by their gaps, and in words."""

    columns: tuple[str, ...]
    words: str


@dataclass(frozen=True, slots=True)
class ClearClasses:
    """What leaves in clear of some records: the classes of each column, and where columns have gaps or codes.

    `levels` numbers the classes of a column, a missing value too; `gaps` has the statuses of a column that is not open
    throughout, masked or in clear. Columns with the same gaps make one grouping, under the name of the first.
    """

    levels: dict[str, Integers]
    gaps: dict[str, Integers]

    def without(self, columns: Sequence[str]) -> ClearClasses:
        """Return what is left where some columns are dropped."""
        return ClearClasses(
            {name: codes for name, codes in self.levels.items() if name not in columns},
            {name: codes for name, codes in self.gaps.items() if name not in columns},
        )

    def groupings(self) -> Iterator[tuple[ClassGrouping, Cells]]:
        """Return every column's classes, the patterns of gaps, and the cells of pairs of those with fewest classes."""
        single = {ClassGrouping((name,), name): codes for name, codes in self.levels.items() if np.ptp(codes)}
        patterns = {codes.tobytes(): name for name, codes in reversed(self.gaps.items())}
        for name in (one for one in self.gaps if one in patterns.values() and one not in self.levels):
            single[ClassGrouping((name,), f"whether {name} is missing")] = self.gaps[name]
        if len(self.gaps) > 1:
            every = [(status > 0).astype(np.int64) for status in self.gaps.values()]
            named = f" in {', '.join(self.gaps)}" if len(self.gaps) <= MOST_NAMED else ""
            single[ClassGrouping(tuple(self.gaps), f"what is missing{named}")] = cells_of(every)
        order = sorted(single, key=lambda one: int(single[one].max()))
        for one in order[:MOST_SINGLE]:
            yield one, _compact_codes(single[one])
        for first, second in combinations(order[:MOST_CROSSED], 2):
            both = ClassGrouping((*first.columns, *second.columns), f"{first.words} x {second.words}")
            yield both, _compact_codes(cells_of([single[first], single[second]]))


def grouping_count(columns: int) -> int:
    """Return how many groupings some columns make at most."""
    crossed = min(columns + 1, MOST_CROSSED)
    return min(columns + 1, MOST_SINGLE) + crossed * (crossed - 1) // 2


@dataclass(frozen=True, slots=True)
class Narrow:
    """Which of an amount's open records their class tells, by each grouping that tells any.

    `width` is the median over these records of the width by z and class, over that by z alone.
    """

    told: Mapping[ClassGrouping, Bools]
    share: float
    width: float

    @property
    def grouping(self) -> ClassGrouping:
        """The grouping that tells most records, of nearly equal ones the one of fewest columns."""
        counts = {one: int(told.sum()) for one, told in self.told.items()}
        most = max(counts.values())
        return min(
            (one for one in counts if counts[one] >= NEARLY_AS_MANY * most), key=lambda one: len(one.columns)
        )

    def without(self, column: str) -> tuple[float, float]:
        """Return the share told by groupings that a column has no part in, and the sum over these groupings.

        Less than is told without the column where other gaps make the same classes as all together do.
        """
        left = [told for one, told in self.told.items() if column not in one.columns]
        every = np.logical_or.reduce(left) if left else np.zeros(1, np.bool_)
        return float(every.mean()), float(sum(told.mean() for told in left))

    def __str__(self) -> str:
        """Say how many are told by the grouping that tells most."""
        return f"{self.told[self.grouping].mean():.1%} by {self.grouping.words}"


def _compact_codes(codes: Integers) -> Cells:
    """Number classes by the smallest integers that hold them: those of 16 bits are sorted by digits, at once."""
    return codes.astype(np.uint16 if codes.max(initial=0) < 2**16 else np.uint32)


def narrow_in(amount: NoisedAmount, groupings: Sequence[tuple[ClassGrouping, Cells]]) -> Narrow | None:
    """Return how many records of an amount their class tells; nothing where few are open or all are the same."""
    known = np.flatnonzero(~(np.isnan(amount.x) | np.isnan(amount.sd)))
    if len(known) < FEWEST or not np.ptp(amount.x[known]) > 0:
        return None
    known = known[np.argsort(amount.x[known], kind="stable")]
    x, sd = amount.x[known], amount.sd[known]
    alone = _widths_alone(x, sd)
    width, told = np.full(len(x), np.inf), dict[ClassGrouping, Bools]()
    for one, cells in groupings:
        ratio = _width_ratios(x, sd, alone, cells[known], len(groupings))
        inside = ratio**2 <= TOLD
        if inside.any():
            told[one] = inside
            width = np.fmin(width, np.where(inside, ratio, np.inf))
    every = np.isfinite(width)
    return Narrow(told, float(every.mean()), float(np.median(width[every])) if every.any() else 1.0)


def narrow_amounts(amounts: Mapping[str, NoisedAmount], classes: ClearClasses) -> dict[str, Narrow]:
    """Return what classes tell of each amount that has enough values."""
    groupings = [*classes.groupings()] if amounts else []
    return {name: found for name, one in amounts.items() if (found := narrow_in(one, groupings)) is not None}


def to_leave_out(
    amounts: Mapping[str, NoisedAmount], classes: ClearClasses, limit: float, most: int
) -> tuple[str, ...]:
    """Return clear columns, at most so many, without which no amount has more than a share told; none where more.

    One after the other, each time that without which least is told.
    """
    gone, found = list[str](), narrow_amounts(amounts, classes)
    while told := {name: one for name, one in found.items() if one.share > limit}:
        left = classes.without(gone)
        best = best_to_drop(told, amounts, left, (*left.levels, *left.gaps)) if len(gone) < most else None
        if best is None:
            return ()
        gone.append(best)
        found = narrow_amounts(amounts, classes.without(gone))
    return tuple(gone)


def best_to_drop(
    told: Mapping[str, Narrow],
    amounts: Mapping[str, NoisedAmount],
    classes: ClearClasses,
    able: Iterable[str],
) -> str | None:
    """Return the one of some columns without which least is told of some amounts, of equals the first.

    By what other groupings tell first (`order_by_disclosure`); the most promising are tried.
    """

    def left(name: str) -> float:
        others = {amount: amounts[amount] for amount in told if amount != name}
        return sum(one.share for one in narrow_amounts(others, classes.without((name,))).values())

    return min(order_by_disclosure(told, able)[:MOST_TRIED], key=left, default=None)


def order_by_disclosure(told: Mapping[str, Narrow], able: Iterable[str]) -> list[str]:
    """Return those of some columns that tell an amount, or are told, that first without which others tell least.

    An amount that is dropped is told no more.
    """

    def left_by_others(name: str) -> tuple[float, float]:
        each = [one.without(name) for amount, one in told.items() if amount != name]
        return sum(share for share, _ in each), sum(total for _, total in each)

    tell = {name for one in told.values() for grouping in one.told for name in grouping.columns}
    named = [name for name in dict.fromkeys(able) if name in tell or name in told]
    return sorted(named, key=left_by_others)


def _widths_alone(x: Floats, sd: Floats) -> Floats:
    """Return for each of some sorted values the expected width of 95% of p(x | z), by quantiles of the file."""
    places = ((np.arange(POINTS) + 0.5) * len(x) / POINTS).astype(np.int64)
    t, s = x[places], np.maximum(sd[places], np.finfo(np.float64).tiny)
    widths = np.zeros(POINTS)
    for node, weight in zip(NODES, WEIGHTS / WEIGHTS.sum(), strict=True):
        z = t + s * node
        logs = -0.5 * ((z[:, None] - t) / s) ** 2 - np.log(s)
        chances = np.exp(logs - logs.max(axis=1, keepdims=True)).cumsum(axis=1)
        chances /= chances[:, -1:]
        low = (chances < (1 - SURE) / 2).sum(axis=1)
        high = (chances < (1 + SURE) / 2 - 1e-12).sum(axis=1)
        widths += weight * (t[np.minimum(high, POINTS - 1)] - t[low])
    return np.asarray(widths[np.minimum(np.arange(len(x)) * POINTS // len(x), POINTS - 1)])


def _width_ratios(x: Floats, sd: Floats, alone: Floats, cells: Cells, tries: int) -> Floats:
    """Return for each of some sorted values the width by z and its class over that by z alone; 1 where by chance."""
    every = np.bincount(cells)
    codes = (np.cumsum(every > 0) - 1)[cells]  # without classes that no open record is in
    counts, order = every[every > 0], np.argsort(cells, kind="stable")
    starts = np.cumsum(counts) - counts
    cut = (counts * (1 - SURE) / 2).astype(np.int64)
    low, high = x[order[starts + cut]], x[order[starts + counts - 1 - cut]]
    noise = NORMAL_WIDTH * np.bincount(codes, sd) / counts
    w, d = (high - low) ** 2, np.maximum(noise**2, np.finfo(np.float64).tiny)
    squared = w * d / (w + d) + d / counts * (d / (w + d)) ** 2
    usual = np.bincount(codes, alone) / counts
    inside = (np.searchsorted(x, high, "right") - np.searchsorted(x, low, "left")) / len(x)
    needed = np.log(counts * len(counts) * tries) - BY_CHANCE  # a class has about as many spans as records
    sure = counts * _divergence(1 - 2 * cut / counts, inside) > needed
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.where(sure & (usual > 0), np.sqrt(squared) / usual, 1.0)
    return np.asarray(ratio[codes])


def _divergence(share: Floats, chance: Floats) -> Floats:
    """Return the Kullback-Leibler divergence of two probabilities where the first is the larger, else 0."""
    with np.errstate(divide="ignore", invalid="ignore"):
        rest = np.where(share < 1, (1 - share) * np.log((1 - share) / (1 - chance)), 0.0)
        found = share * np.log(share / chance) + rest
    return np.where(share > chance, found, 0.0)


# The audit.


def narrow_classes(evidence: Evidence) -> CheckFigure:
    """Measure the largest share of a noised number's records that a class in clear tells whatever the noise."""
    names = noised_columns(evidence)
    groupings = grouping_count(len([*predictors(evidence)]) + len(evidence.gaps))
    places = evidence.sample(purpose=(12,), most=records_looked_at(len(names), groupings))
    classes = _classes(evidence, places)
    if not names or not (classes.levels or classes.gaps):
        return CheckFigure(NOTHING, "no column is noised, or nothing leaves in clear that would make classes")
    amounts = {name: _amount(evidence, name, places) for name in names}
    found = narrow_amounts(amounts, classes)
    if not found:
        return CheckFigure(NOTHING, "no noised number has enough open values that differ")
    shares = {name: one.share for name, one in found.items()}
    worst = max(shares, key=shares.__getitem__)
    told = sorted((name for name in shares if shares[name] > MANY), key=lambda name: -shares[name])
    named = told[:MOST_ADVISED] or [worst]
    said = (
        _narrow_class_sentence(worst, found)
        + "".join(_advice(name, amounts[name], classes) for name in named)
        if shares[worst] > 0
        else "no class of what leaves in clear tells a noised number better than its noise lets it be known"
    )
    where = f"{worst} by {found[worst].grouping.words}" if shares[worst] > 0 else ""
    gone = to_leave_out(amounts, classes, MANY, MOST_DROPPED)
    looked_at = evidence.looked_at(places)
    return CheckFigure(shares[worst], said, where, shares, looked_at, without=gone, by_column=shares)


def _narrow_class_sentence(name: str, found: Mapping[str, Narrow]) -> str:
    one = found[name]
    others = [f"{other} ({this})" for other, this in found.items() if other != name and this.share > FEW]
    also = f"; so it is with {', '.join(others)}" if others else ""
    return (
        f"of the records with a value of {name} {one.share:.1%} are in a class of what leaves in clear that tells it "
        f"({one}): who knows where such a class lies, from outside or by the mean of its released values, knows the "
        f"value, as surely as 95%, within {one.width:.0%} of the span that the released value leaves others, so that "
        f"no noise hides it{also}"
    )


def _advice(name: str, amount: NoisedAmount, classes: ClearClasses) -> str:
    """Say what to leave out so that the check would not fail, or not warn."""
    found = narrow_amounts({name: amount}, classes).get(name)
    if found is None or found.share <= FEW:
        return ""
    gone = to_leave_out({name: amount}, classes, FEW if found.share <= MANY else MANY, MOST_DROPPED)
    if not gone:
        return f"; leaving out {MOST_DROPPED} columns in clear is not enough to change that for {name}"
    left = narrow_amounts({name: amount}, classes.without(gone))[name]
    return f"; {name} would be told of {left.share:.1%} without {', '.join(gone)}"


def records_looked_at(columns: int, groupings: int) -> int:
    """Return how many records are looked at, at most: fewer where there are many columns and groupings."""
    return int(np.clip(MOST_PASSES / max(groupings * columns, 1), LEAST, LARGEST))


def _classes(evidence: Evidence, places: Integers) -> ClearClasses:
    masked = evidence.masking.masked
    levels, gaps = dict[str, Integers](), dict[str, Integers]()
    for name in predictors(evidence):
        values = evidence.released(name)[places]
        levels[name] = class_codes(values, is_category=not masked.schema[name].is_number)
    for name in (*evidence.masked_columns, *evidence.clear):
        own = masked.status(name)[evidence.rows[places]].astype(np.int64) if name in masked.closed else None
        if own is not None and np.ptp(own):
            gaps[name] = own
    return ClearClasses(levels, gaps)


def class_codes(values: Floats, *, is_category: bool) -> Integers:
    """Number the classes of a column in clear: its values, or parts of about equal counts of many numbers."""
    different, codes = np.unique(values, return_inverse=True)
    codes = codes.astype(np.int64).ravel()
    if is_category or len(different) <= MOST_LEVELS:
        return codes
    parts = int(np.clip(len(values) // IN_A_PART, 10, MOST_LEVELS))
    ends = np.cumsum(np.bincount(codes))
    return np.asarray((ends - 1) * parts // len(values), dtype=np.int64)[codes]


def _amount(evidence: Evidence, name: str, places: Integers) -> NoisedAmount:
    """Return true values with the noise that the card's law gives each; without a law, that which they got."""
    column, law = column_on_scale(evidence, name), law_of(evidence, name)
    x = column.x[places]
    if isinstance(law, Additive):
        sd = float(np.sqrt(law.noise.covariance[0, 0])) / law.slope
        return NoisedAmount(x, np.full(len(x), sd) if column.size is None else sd * column.size[places])
    ends = (
        np.nanquantile(column.error[places], [(1 - SURE) / 2, (1 + SURE) / 2])
        if (~np.isnan(x)).any()
        else [0, 0]
    )
    return NoisedAmount(x, np.full(len(x), (ends[1] - ends[0]) / NORMAL_WIDTH))

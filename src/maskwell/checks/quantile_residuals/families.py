"""Tests of scores: sums, squares, bins, tails and repeats; by class, trend, order and group; between columns.

Every statistic is a sum of independent N(0, 1) or of their squares, so that its law is exact: normal, chi^2, F,
binomial, or Poisson for pairs of equal scores. Sums see what a Kolmogorov-Smirnov test does not: 30 unmasked records of
3,000 have a sum of squares with a chance of 1e-128, and a largest distance with one of 2e-7. Own arrangement of
standard tests (Anderson 2003; for repeats the birthday problem, Knuth 1998, section 3.3.2). Called by `battery`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TypeVar

import numpy as np

from ...table import Floats
from .cells import Integers
from .ledger import Effect, Ledger
from .truths import FEWEST, RecordClasses, Short, TrueColumn

Array = TypeVar("Array", Floats, Integers, Short)

WHOLE_MEAN, WHOLE_SD = Effect("mean", 0.1, 0.03), Effect("sd ratio", 0.1, 0.03)
BINS = Effect("misfit of the shape", 0.1, 0.04)
TAILS = Effect("times the expected count", 1.5, 1.5)
LARGEST = Effect("largest score", 0.0, 0.0)
REPEATS = Effect("times the expected pairs", 1.5, 1.5)
CLASS_MEAN, CLASS_SD = Effect("mean", 0.2, 0.1), Effect("sd ratio", 0.2, 0.1)
CANCELLED = Effect("share of the noise missing from sums", 0.8, 0.1)
TREND, HALVES = Effect("correlation", 0.1, 0.03), Effect("sd ratio of halves off by", 0.15, 0.05)
NEIGHBOURS, BETWEEN = Effect("correlation", 0.1, 0.04), Effect("correlation", 0.1, 0.04)
GROUPS, LARGE_GROUPS = (
    Effect("intraclass correlation", 0.05, 0.02),
    Effect("intraclass correlation", 0.02, 0.02),
)
MANY_MEMBERS = 50  # of a group: a smaller intraclass correlation then matters
MOST_BINS, LEAST_EXPECTED = 20, 50  # of equal probability; records in each, so that chi^2 holds
LEVELS = (2.0, 3.0, 4.0)  # of a score, beyond which tails are counted
BITS = (1, 4, 7)  # beyond the log of the number of records: bins so fine that two scores in one are rare
TEN = 10  # records by which a count must differ as well


@dataclass(frozen=True)
class Score:
    """A column of scores over all records of the truth, NaN where there is none.

    `column` is the released column that it belongs to, `is_digit` whether it scores digits, `is_size` whole records,
    `is_placed` whether where a record leaves may be looked at: who is left out of a sample leaves nowhere.
    """

    label: str
    values: Floats
    column: str = ""
    is_digit: bool = False
    is_size: bool = False
    is_placed: bool = True

    @cached_property
    def at(self) -> Integers | None:
        """The records that have a score; nothing where all have one."""
        known = ~np.isnan(self.values)
        return None if known.all() else np.flatnonzero(known)

    @cached_property
    def known(self) -> Floats:
        """The scores that there are."""
        return self.values if self.at is None else self.values[self.at]

    @cached_property
    def squares(self) -> Floats:
        """Their squares."""
        return np.asarray(self.known**2)

    @cached_property
    def uniforms(self) -> Floats:
        """The scores as uniforms."""
        from scipy.special import ndtr

        return np.asarray(ndtr(self.known))

    def of(self, array: Array) -> Array:
        """Return an array over all records at those with a score."""
        return array if self.at is None else array[self.at]


def chi_square_p(total: Floats | float, df: Floats | float) -> Floats:
    """Return the two-sided p-value of a sum of squares."""
    from scipy.special import chdtr, chdtrc

    return np.asarray(np.minimum(1.0, 2 * np.minimum(chdtr(df, total), chdtrc(df, total))))


def normal_p(deviate: Floats | float) -> Floats:
    """Return the two-sided p-value of a standard normal deviate."""
    from scipy.special import ndtr

    return np.asarray(2 * ndtr(-np.abs(deviate)))


def f_p(ratio: Floats | float, first: Floats | float, second: Floats | float) -> Floats:
    """Return the two-sided p-value of a ratio of mean squares."""
    from scipy.special import fdtr, fdtrc

    return np.asarray(
        np.minimum(1.0, 2 * np.minimum(fdtr(first, second, ratio), fdtrc(first, second, ratio)))
    )


def whole(ledger: Ledger, score: Score) -> None:
    """Test the mean and the square of all scores."""
    count, total, squares = len(score.known), float(score.known.sum()), float(score.squares.sum())
    mean, ratio = total / count, (squares / count) ** 0.5
    told = (count, "all records", score.is_digit, None)
    ledger.add("whole", score.label, WHOLE_MEAN, normal_p(total / count**0.5), abs(mean), *told, mean)
    ledger.add("whole", score.label, WHOLE_SD, chi_square_p(squares, count), abs(ratio - 1), *told, ratio)


def bins(ledger: Ledger, score: Score) -> None:
    """Count scores in bins of equal probability."""
    from scipy.special import chdtrc

    count = len(score.known)
    width = min(MOST_BINS, count // LEAST_EXPECTED)
    if width < 2:
        return
    seen = np.bincount(np.minimum((score.uniforms * width).astype(np.int64), width - 1), minlength=width)
    misfit = float(((seen - count / width) ** 2).sum() / (count / width))
    effect = max(misfit - (width - 1), 0.0) / count
    ledger.add(
        "bins",
        score.label,
        BINS,
        float(chdtrc(width - 1, misfit)),
        effect**0.5,
        count,
        "all records",
        score.is_digit,
    )


def tails(ledger: Ledger, score: Score) -> None:
    """Count scores far out (of whole records, those that are too small apart), and look at the farthest."""
    from scipy.special import ndtr

    size = np.abs(score.known)
    count, farthest = len(size), float(size.max())
    for level in LEVELS:
        _tail(
            ledger, score, int(np.count_nonzero(size > level)), 2 * float(ndtr(-level)), f"beyond {level:g}"
        )
        if score.is_size:
            few = int(np.count_nonzero(score.known < -level))
            _tail(ledger, score, few, float(ndtr(-level)), f"below -{level:g}")
    p = min(1.0, 2 * count * float(ndtr(-farthest)))
    ledger.add("tails", score.label, LARGEST, p, farthest, count, "the farthest record", score.is_digit)


def _tail(ledger: Ledger, score: Score, seen: int, chance: float, what: str) -> None:
    """Compare a count with its binomial law."""
    from scipy.special import bdtr, bdtrc

    count = len(score.known)
    mean = count * chance
    p = 2 * min(float(bdtr(seen, count, chance)), float(bdtrc(seen - 1, count, chance)) if seen else 1.0)
    times = max(seen / mean, mean / max(seen, 0.5))
    large = times >= TAILS.fail and abs(seen - mean) >= TEN
    where = f"{seen:,} scores {what} where {mean:.3g} are expected"
    ledger.add(
        "tails", score.label, TAILS, min(p, 1.0), times if large else 0.0, count, where, score.is_digit
    )


def repeats(ledger: Ledger, score: Score) -> None:
    """Count pairs of records whose scores are the same up to fine bins, or the same without their sign."""
    count = len(score.known)
    sizes = np.abs(2 * score.uniforms - 1)
    base = int(np.ceil(np.log2(count)))
    for further in BITS:
        expected = count * (count - 1) / 2.0 ** (base + further + 1)
        for uniform, what in ((score.uniforms, "one score"), (sizes, "one score without its sign")):
            pairs = _pairs_in_bins(uniform, base + further)
            _enter_repeats(ledger, score.label, pairs, expected, count, f"pairs of records with {what}")


def repeats_of_columns(ledger: Ledger, scores: Sequence[Score]) -> None:
    """Count pairs of cells of different columns, of whichever records, whose scores are the same."""
    several = [score for score in scores if len(score.known) >= FEWEST]
    if len(several) < 2:
        return
    counts = [len(score.known) for score in several]
    every = np.concatenate([score.uniforms for score in several])
    base = int(np.ceil(np.log2(len(every))))
    different = (len(every) ** 2 - sum(count**2 for count in counts)) / 2
    for further in BITS:
        width = base + further
        pairs = _pairs_in_bins(every, width) - sum(_pairs_in_bins(one.uniforms, width) for one in several)
        what = "pairs of cells of two columns with one score"
        _enter_repeats(ledger, "all columns", pairs, different / 2.0**width, len(every), what)


def _pairs_in_bins(uniform: Floats, bits: int) -> float:
    ranked = np.sort((uniform * 2.0**bits).astype(np.int64))
    runs = np.diff(np.flatnonzero(np.r_[True, ranked[1:] != ranked[:-1], True]))
    return float((runs * (runs - 1) // 2).sum())


def _enter_repeats(ledger: Ledger, label: str, pairs: float, mean: float, count: int, what: str) -> None:
    from scipy.special import pdtrc

    p = float(pdtrc(pairs - 1, mean)) if pairs >= 1 else 1.0
    large = pairs >= REPEATS.fail * mean and pairs - mean >= TEN
    where = f"{pairs:,.0f} {what} where {mean:.3g} are expected"
    ledger.add("repeats", label, REPEATS, p, pairs / mean if large else 0.0, count, where)


def classes(ledger: Ledger, score: Score, by: RecordClasses) -> None:
    """Test mean and square in every class, and whether the sums of all classes are too small together."""
    from scipy.special import chdtr

    codes = score.of(by.codes)
    inside = codes >= 0
    all_inside = bool(inside.all())
    codes = codes if all_inside else codes[inside]
    known, squared = (
        (score.known, score.squares) if all_inside else (score.known[inside], score.squares[inside])
    )
    counts = np.bincount(codes, minlength=len(by.labels))
    kept = np.flatnonzero(counts >= FEWEST)
    if len(kept) < 1:
        return
    n = counts[kept].astype(np.float64)
    total, squares = (
        np.asarray(np.bincount(codes, weights, minlength=len(by.labels))[kept], np.float64)
        for weights in (known, squared)
    )
    sums_of_classes(ledger, score, n, total, squares, lambda i: by.labels[kept[i]])
    q, many = float((total**2 / n).sum()), len(kept)
    where = f"sums over classes such as {by.labels[kept[0]]}"
    ledger.add(
        "classes",
        score.label,
        CANCELLED,
        float(chdtr(many, q)),
        1 - q / many,
        int(n.sum()),
        where,
        score.is_digit,
    )


def sums_of_classes(
    ledger: Ledger, score: Score, n: Floats, total: Floats, squares: Floats, where: Callable[[int], str] | str
) -> None:
    """Enter mean and square of classes whose sums are given."""
    means, ratios = total / n, np.sqrt(squares / n)
    told = (n, where, score.is_digit, None)
    ledger.add("classes", score.label, CLASS_MEAN, normal_p(total / np.sqrt(n)), np.abs(means), *told, means)
    ledger.add("classes", score.label, CLASS_SD, chi_square_p(squares, n), np.abs(ratios - 1), *told, ratios)


def selections(ledger: Ledger, score: Score, chosen: Sequence[tuple[str, Integers]]) -> None:
    """Test mean and square of some records, such as the largest 1% of a column."""
    labels, sums = list[str](), list[tuple[int, float, float]]()
    for label, members in chosen:
        y = score.values[members]
        if score.at is not None:
            y = y[~np.isnan(y)]
        if len(y) >= FEWEST:
            labels.append(label)
            sums.append((len(y), float(y.sum()), float(y @ y)))
    if labels:
        n, total, squares = np.array(sums, np.float64).T
        sums_of_classes(ledger, score, n, total, squares, lambda i: labels[i])


def trends(ledger: Ledger, score: Score, by: TrueColumn) -> None:
    """Correlate scores with the normal ranks of a column, and compare the squares of its halves."""
    if by.numbers is None or by.distinct < 3:
        return
    ranks, known, squares = score.of(by.scores), score.known, score.squares
    both = ~np.isnan(ranks)
    if not both.all():
        ranks, known, squares = ranks[both], known[both], squares[both]
    n = len(ranks)
    if n < FEWEST:
        return
    size = float((ranks**2).sum()) ** 0.5
    if size == 0:
        return
    along = float(ranks @ known) / size
    where = f"along {by.name}"
    ledger.add("trends", score.label, TREND, normal_p(along), abs(along) / n**0.5, n, where, score.is_digit)
    low, high = ranks < 0, ranks > 0
    counts = int(low.sum()), int(high.sum())
    if min(counts) >= FEWEST:
        ratio = float(squares[low].mean() / squares[high].mean())
        off = abs(ratio**0.5 - 1) if ratio >= 1 else abs(ratio**-0.5 - 1)
        ledger.add("trends", score.label, HALVES, f_p(ratio, *counts), off, n, where, score.is_digit)


def neighbours(ledger: Ledger, score: Score, by: TrueColumn, lags: bool = True) -> None:
    """Compare sums and differences of neighbours in an order, and correlations at all distances."""
    from scipy.special import ndtr

    y = score.values[by.order]
    y = y[~np.isnan(y)]
    n = len(y)
    if n < 2 * FEWEST:
        return
    for first in (0, 1):
        pairs = (n - first) // 2
        one, other = y[first : first + 2 * pairs : 2], y[first + 1 : first + 2 * pairs : 2]
        ratio = float(((one + other) ** 2).sum() / max(((one - other) ** 2).sum(), 1e-300))
        r = abs((ratio - 1) / (ratio + 1))
        ledger.add("neighbours", score.label, NEIGHBOURS, f_p(ratio, pairs, pairs), r, n, f"by {by.name}")
    if lags:
        r, lag = _largest_lag(y)
        p = min(1.0, 2 * (n - 1) * float(ndtr(-(n**0.5) * r)))
        ledger.add("neighbours", score.label, NEIGHBOURS, p, r, n, f"{lag:,} records apart by {by.name}")


def _largest_lag(y: Floats) -> tuple[float, int]:
    """Return the largest correlation of a series with itself at some distance, without its sign, and that distance."""
    from scipy.fft import irfft, next_fast_len, rfft

    width = next_fast_len(2 * len(y), real=True)
    spectrum = rfft(y, width)
    found = irfft(spectrum * spectrum.conj(), width)[: len(y)]
    lag = int(np.abs(found[1:]).argmax()) + 1
    return float(abs(found[lag]) / found[0]), lag


def groups(ledger: Ledger, score: Score, label: str, codes: Integers) -> None:
    """Test whether the scores of one group are alike, or cancel in its sum."""
    found = group_sums(score, codes)
    if found is None:
        return
    q, many, members = found
    _enter_groups(ledger, "groups", score, label, q, many, members)


def group_sums(score: Score, codes: Integers) -> tuple[float, int, int] | None:
    """Return the sum over groups of two and more of n times the squared mean, how many they are, and their members."""
    own = score.of(codes)
    inside = own >= 0
    own, known = (own, score.known) if inside.all() else (own[inside], score.known[inside])
    if not len(own):
        return None
    counts = np.bincount(own)
    several = counts > 1
    many, members = int(several.sum()), int(counts[several].sum())
    if many < 2 or members < FEWEST:
        return None
    total = np.bincount(own, known)
    return float((total[several] ** 2 / counts[several]).sum()), many, members


def _enter_groups(
    ledger: Ledger, family: str, score: Score, label: str, q: float, many: int, members: int
) -> None:
    from scipy.special import chdtr, chdtrc

    size = members / many
    alike = (q / many - 1) / (size - 1)
    effect = LARGE_GROUPS if size >= MANY_MEMBERS else GROUPS
    ledger.add(family, score.label, effect, float(chdtrc(many, q)), alike, members, label, score.is_digit)
    ledger.add(
        family,
        score.label,
        CANCELLED,
        float(chdtr(many, q)),
        1 - q / many,
        members,
        f"sums of {label}",
        score.is_digit,
    )


def residue_groups(ledger: Ledger, score: Score, label: str, codes: Short) -> None:
    """Test digit scores by the residues of a true column."""
    found = group_sums(score, codes.astype(np.int64))
    if found is not None:
        q, many, members = found
        from scipy.special import chdtrc

        alike = (q / many - 1) / (members / many - 1)
        ledger.add("digits", score.label, GROUPS, float(chdtrc(many, q)), alike, members, label, True)


def between(ledger: Ledger, scores: Sequence[Score], label: str, shifted: Integers | None = None) -> None:
    """Compare sums and differences of the scores of two columns, of one record or of the next one in an order."""
    if len(scores) < 2:
        return
    y = np.column_stack([one.values if shifted is None else one.values[shifted] for one in scores])
    first, second = (y, y) if shifted is None else (y[:-1], y[1:])
    known, known_next = ~np.isnan(first), ~np.isnan(second)
    first, second = np.where(known, first, 0.0), np.where(known_next, second, 0.0)
    counts = known.T.astype(np.float64) @ known_next
    squares = (first**2).T @ known_next + known.T.astype(np.float64) @ (second**2)
    products = first.T @ second
    for i, j in _pairs(len(scores), shifted is not None):
        n = counts[i, j]
        if n >= FEWEST:
            ratio = (squares[i, j] + 2 * products[i, j]) / max(squares[i, j] - 2 * products[i, j], 1e-300)
            r = abs(2 * products[i, j] / squares[i, j])
            where = f"{scores[i].label} and {scores[j].label} {label}"
            ledger.add("between", scores[i].label, BETWEEN, f_p(ratio, n, n), r, n, where)


def _pairs(count: int, ordered: bool) -> Iterator[tuple[int, int]]:
    for i in range(count):
        for j in range(count):
            if i < j or (ordered and i != j):
                yield i, j

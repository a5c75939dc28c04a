"""Noise that a group's mean takes away: a value that all members share, noised for each of them.

Where x is the same for the m members of a group and each gets noise of its own, the mean of the released values has
an error of sd / sqrt(m); where the noises inside a group have correlation rho it is sd sqrt(rho + (1 - rho) / m). The
figure is the root of the mean of that square over the members of groups of two and more, in the noise's sd; members
of groups in which x is not constant keep their whole noise. (A noise sd of .566 in groups of 50 leaves .080.) Of a
category changed at random the most frequent released one stands for the mean: the figure is the share that is wrong
after that vote over the share that was changed.

Where most records have one value, classes agree by that alone: 83% of some bookings stood in classes that agree, as 92%
of all have the value 0, and of those with another value 6% did. So where a share p of the records has the commonest
value each of these counts c = 3 - 4 p between p = 1/2 (one, as all others do) and 3/4 (nothing: who says it of
everybody is right for three of four), and the figure squared is

    1 - w + w v,   w = (count of the members of constant groups) / (count of all members of groups),

with v the mean of rho + (1 - rho) / m over members of constant groups, counted so.

Members are put together by any columns that leave in clear, not by the group's id alone: a household without its id is
known by region, roof, walls and weight. The search begins with all clear columns and leaves out one after the other,
each time the one without which most averages out (backward elimination). Own derivation, from the variance of a mean of
correlated errors (Kish 1965, section 5.4, the design effect). Called by `value_checks`, and ahead of any noise by
`plan.shared_values`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import comb
from typing import Any

import numpy as np
import numpy.typing as npt

from ..laws import Additive, Transition
from ..laws.chain import combined_of
from ..table import Floats
from .evidence import Evidence
from .protocol import CheckFigure
from .residuals import FEWEST, NOTHING, SURE
from .scales import column_on_scale, noised_columns

Integers = npt.NDArray[np.int64]
Marks = npt.NDArray[np.uint64]

SYSTEMATIC = 0.1  # of the groups, beyond chance: fewer constant ones are coincidences that nobody knows of
FEWEST_MEMBERS = 0.05  # of the records: fewer that share a group are doubles by accident
MANY_GROUPS = 5  # groups of two and more from which on shares of constant ones are compared with chance
RARE = 1e-8  # chance that as many of fewer groups are constant: below it none of thousands of groupings is by accident
MOST_AHEAD = 3 * 10**8  # the same for all amounts of a draft together: the audit looks again
MOST_SORTED = 10**8  # marks that the search by several columns numbers, in about two seconds; else one column
MOST_HAVE_IT = 0.5  # of the records: a value that so many have is said to be the commonest
NEARLY_ALL = 0.995  # of the members: "all" where it is rounded to 100%
MARKS = 11  # a stream of their own for the marks of values


@dataclass(frozen=True, slots=True)
class GroupMean:
    """What is left of the noise by averaging over a grouping: the figure and the groups' typical size.

    `share` is that of the members of groups whose group has one true value, `others` that of those members that have
    another value than the commonest of the file, which has a share of `commonest`.
    """

    left: float
    size: float
    columns: tuple[str, ...]
    share: float = 1.0
    others: float = 1.0
    commonest: float = 0.0

    @property
    def share_words(self) -> str:
        """Say whose value the groups tell, of the records that are not alone."""
        beside = ""
        if self.commonest > MOST_HAVE_IT:
            beside = f" ({self.others:.0%} of those who have another value than the commonest)"
        return f"{self.share:.0%} of those who are not alone{beside}"


def averages(evidence: Evidence) -> CheckFigure:
    """Measure the error left of a group's mean, in the noise's sd, for values that members of a group share."""
    columns = {name: at for name in _noisy(evidence) if (at := _shared_column(evidence, name)) is not None}
    clear = _clear_marks(evidence)
    by_one = [name for name, at in columns.items() if not _is_searched(at, clear)]
    if not columns or not clear:
        return CheckFigure(
            NOTHING, "no column is noised, or nothing leaves in clear that would put records together"
        )
    found = {name: _least_left(at, clear) for name, at in columns.items()}
    left = {name: 1.0 if one is None else one.left for name, one in found.items()}
    worst = min(left, key=left.__getitem__)
    one = found[worst]
    if one is None:
        said = "no noised column is the same for all members of a group that leaves together"
        return CheckFigure(1.0, said + _not_searched(by_one, clear), "", left, by_column=left)
    together = ", ".join(one.columns)
    what = (
        f"the most frequent of a group is wrong {left[worst]:.2f} times as often as one of them"
        if columns[worst].voted is not None
        else f"the mean of a group is off by {left[worst]:.2f} sds of the noise"
    )
    where = "" if one.share >= NEARLY_ALL else f"for {one.share_words} "
    what = what if not where else f"over all groups, {what}"
    said = (
        f"{where}{worst} is the same for records alike in {together}, and each of them has noise of its own: "
        f"{what} ({one.size:.0f} records, typically)"
    )
    said += _not_searched(by_one, clear)
    return CheckFigure(left[worst], said, f"{worst} by {', '.join(one.columns)}", left, by_column=left)


def averages_ahead(
    values: Mapping[str, Floats],
    clear: Mapping[str, Integers],
    by: Mapping[str, tuple[str, ...]] | None = None,
) -> dict[str, GroupMean]:
    """Return, before any noise is drawn, what the mean over records alike in clear columns leaves of own noise.

    `values` are true ones, NaN unless open; `clear` numbers the values of each column that leaves in clear, from 0 on.
    `by` has for each of the values the columns by which records are grouped; without it the best ones are searched.
    """
    rng = np.random.default_rng(MARKS)
    marks = {name: _random_marks(0, name, codes) for name, codes in clear.items() if codes.max(initial=0) > 0}
    found = dict[str, GroupMean]()
    for name, x in values.items():
        known = np.flatnonzero(~np.isnan(x))
        if not marks or len(known) < FEWEST or x[known].min() == x[known].max():
            continue
        numbered = np.unique(x[known], return_inverse=True)[1].astype(np.int64).ravel()
        column = SharedColumn(known, numbered, rng.standard_normal(len(known)))
        is_searched = len(known) * len(marks) ** 2 * len(values) <= MOST_AHEAD
        one = _least_left(column, marks, is_searched) if by is None else _left_by(column, marks, by[name])
        if one is not None:
            found[name] = one
    return found


def _is_searched(one: SharedColumn, clear: dict[str, Marks]) -> bool:
    """Whether combinations of clear columns are few enough to be searched."""
    return len(clear) < 2 or len(one.known) * len(clear) ** 2 <= MOST_SORTED


def _not_searched(names: list[str], clear: dict[str, Marks]) -> str:
    """Say of which columns only groups by one clear column were looked at."""
    if not names:
        return ""
    return (
        f"; of {', '.join(names)} groups by each of the {len(clear)} clear columns alone and by all together were "
        f"looked at, not by some of them: records x columns^2 are above {MOST_SORTED:.0e}"
    )


@dataclass(frozen=True, slots=True)
class SharedColumn:
    """A noised column where it is open: true values numbered, and the noise of each or, of a category, what left."""

    known: Integers
    values: Integers
    error: Floats
    voted: Integers | None = None


def _noisy(evidence: Evidence) -> list[str]:
    """Return the columns that carry noise for each record: numbers, codes with noise, categories changed at random."""
    numbers = noised_columns(evidence)
    laws = {name: combined_of(evidence.masking.card.law_of(name)) for name in evidence.masked_columns}
    random = [name for name, law in laws.items() if isinstance(law, Transition) and not law.is_sure]
    coded = [name for name, law in laws.items() if isinstance(law, Additive) and law.categories]
    return [*numbers, *(name for name in (*random, *coded) if name not in numbers)]


def _shared_column(evidence: Evidence, name: str) -> SharedColumn | None:
    """Return a column's true values and noises where both are open; nothing where they are few or all the same."""
    if name not in evidence.masking.truth.schema:
        return None
    x, z = evidence.true(name), evidence.noised(name)
    is_vote = isinstance(combined_of(evidence.masking.card.law_of(name)), Transition)
    error = (
        z - x if is_vote or name not in noised_columns(evidence) else column_on_scale(evidence, name).error
    )
    known = np.flatnonzero(~(np.isnan(x) | np.isnan(error)))
    if len(known) < FEWEST or x[known].min() == x[known].max():
        return None
    values = np.unique(x[known], return_inverse=True)[1].astype(np.int64).ravel()
    if not is_vote:
        return SharedColumn(known, values, error[known])
    return SharedColumn(known, x[known].astype(np.int64), error[known], z[known].astype(np.int64))


def _clear_marks(evidence: Evidence) -> dict[str, Marks]:
    """Mark the values of every column that leaves in clear, missing ones as a value of their own, and all gaps.

    Who has no group is in none: there each missing value is a value of its own.
    """
    found = {name: _random_marks(evidence.seed, name, status) for name, status in evidence.gaps.items()}
    schema = evidence.masking.masked.schema
    for name in evidence.clear:
        array = evidence.masking.masked.array(name).dictionary_encode()
        codes = np.asarray(array.indices.fill_null(-1))[evidence.rows].astype(np.int64)
        if "group" in schema[name].roles:
            alone = np.flatnonzero(codes < 0)
            codes[alone] = codes.max(initial=0) + 1 + np.arange(len(alone))
        if codes.max(initial=0) > codes.min(initial=0):
            found[name] = _random_marks(evidence.seed, name, codes)
    return found


def _least_left(one: SharedColumn, clear: dict[str, Marks], is_searched: bool = True) -> GroupMean | None:
    """Return the grouping by clear columns that averages most of a column's noise away; nothing where none does."""
    inside = {column: codes[one.known] for column, codes in clear.items()}
    ways: list[tuple[str, ...]] = [(column,) for column in inside]
    if is_searched and _is_searched(one, clear):
        ways += _elimination(one.values, inside)
    else:
        ways.append(tuple(inside))
    tried = [_average_in_groups(one, _together(inside, way), way) for way in dict.fromkeys(ways)]
    found = [this for this in tried if this is not None]
    return min(found, key=lambda this: this.left, default=None)


def _left_by(one: SharedColumn, clear: dict[str, Marks], columns: tuple[str, ...]) -> GroupMean | None:
    """Return what a mean over records alike in some columns leaves, those that vary; nothing where it takes nothing."""
    varying = tuple(name for name in columns if name in clear)
    inside = {name: clear[name][one.known] for name in varying}
    return _average_in_groups(one, _together(inside, varying), varying) if varying else None


def _elimination(values: Integers, clear: dict[str, Marks]) -> list[tuple[str, ...]]:
    """Return sets of columns: all, then without one after the other, so that most records share value and group."""
    different = {name: len(np.unique(codes)) for name, codes in clear.items()}
    chosen, counted = tuple(clear), _counts_beyond_commonest(values)
    ways = [chosen]
    every = _sum_of(clear, chosen)
    while len(chosen) > 2:
        finest_first = sorted(chosen, key=lambda name: -different[name])  # of equals the finest goes
        scores = [
            _mean_square_left(values, _dictionary_codes(every - clear[name]), counted)
            for name in finest_first
        ]
        gone = finest_first[int(np.argmin(scores))]
        chosen, every = tuple(name for name in chosen if name != gone), every - clear[gone]
        ways.append(chosen)
    return ways


def _together(clear: dict[str, Marks], columns: tuple[str, ...]) -> Integers:
    """Number the combinations of values of some columns: those whose marks have the same sum."""
    return _dictionary_codes(_sum_of(clear, columns))


def _sum_of(clear: dict[str, Marks], columns: tuple[str, ...]) -> Marks:
    """Add the marks of some columns up, modulo 2^64."""
    marks = clear[columns[0]].copy()
    for name in columns[1:]:
        marks += clear[name]
    return marks


def _dictionary_codes(marks: Marks) -> Integers:
    import pyarrow as pa
    import pyarrow.compute as pc

    numbered: Any = pc.dictionary_encode(pa.array(marks))  # by hashing: sorting takes ten times as long
    return np.asarray(numbered.indices, dtype=np.int64)


def _random_marks(seed: int, name: str, codes: Integers) -> Marks:
    """Give each value of a column a random mark of 64 bits, so that sums of marks tell combinations apart."""
    rng = np.random.default_rng([seed, MARKS, *name.encode()])
    codes = codes - codes.min()
    return rng.integers(0, 2**64, int(codes.max()) + 1, np.uint64)[codes]


def _constant(values: Integers, member: Integers) -> tuple[Integers, npt.NDArray[np.bool_]]:
    """Return the size of each group, and in which of them all values are the same."""
    sizes = np.bincount(member)
    least = np.full(len(sizes), np.iinfo(np.int64).max)
    most = np.full(len(sizes), -1)
    np.minimum.at(least, member, values)
    np.maximum.at(most, member, values)
    return sizes, least == most


def _chances(values: Integers, sizes: Integers) -> Floats:
    """Return how probably groups of given sizes have one value only, if values fell on records at random."""
    # Values that occur equally often have the same share: of 200,000 there are some hundred different ones.
    counts, times = np.unique(np.bincount(values), return_counts=True)
    each, group = np.unique(sizes, return_inverse=True)
    return np.asarray(((counts / len(values)) ** each[:, None] @ times)[group.ravel()])


def _counts_beyond_commonest(values: Integers) -> Floats:
    """Return what each record counts: one, and less where it has a value that most of the records have."""
    times = np.bincount(values)
    counts = np.ones(len(times))
    counts[np.argmax(times)] = np.clip(3 - 4 * times.max() / len(values), 0.0, 1.0)
    return np.asarray(counts[values])


def _mean_square_left(values: Integers, member: Integers, counted: Floats) -> float:
    """Return the mean square of the error left by averaging independent noise, members alone included."""
    sizes, constant = _constant(values, member)
    weights = np.bincount(member, counted)
    return float((weights * np.where(constant, 1.0 / sizes, 1.0)).sum() / weights.sum())


def _average_in_groups(one: SharedColumn, member: Integers, columns: tuple[str, ...]) -> GroupMean | None:
    """Return what averaging over a grouping leaves; nothing where values are not constant inside it, but by chance."""
    sizes, constant = _constant(one.values, member)
    several = sizes > 1
    if sizes[several].sum() < FEWEST_MEMBERS * len(one.values):
        return None
    if float(constant[several].mean()) < SYSTEMATIC:  # whatever chance explains of it
        return None
    if _is_accident(constant[several], _chances(one.values, sizes[several])):
        return None
    inside = (several & constant)[member]
    typical = float(np.median(sizes[several & constant]))
    counted, members = _counts_beyond_commonest(one.values), several[member]
    if not counted[inside].any():
        return None
    weight = float(
        counted[inside].sum() / counted[members].sum()
    )  # of members of groups, those in constant ones
    counts = np.bincount(one.values)
    rare = members & (one.values != int(np.argmax(counts)))
    told = {
        "share": float(inside.sum() / members.sum()),
        "others": float(inside[rare].mean()) if rare.any() else 0.0,
        "commonest": float(counts.max() / len(one.values)),
    }
    if one.voted is not None:
        left = _wrong_by_vote(one.values[inside], one.voted[inside], member[inside])
        return GroupMean(1 - weight + weight * left, typical, columns, **told)
    alike = _intraclass(one.error[inside], member[inside])
    squares = alike + (1 - alike) / sizes[member[inside]]
    mean = float(np.average(squares, weights=counted[inside]))
    return GroupMean(float(np.sqrt(1 - weight + weight * mean)), typical, columns, **told)


def _is_accident(constant: npt.NDArray[np.bool_], chances: Floats) -> bool:
    """Whether chance gives as many constant groups, by the chances that groups of their sizes are.

    Of many groups their share is compared with its mean and error; of two to four large ones (regions, a sector) the
    chance that just these are constant counts, times the number of ways to choose as many.
    """
    groups, found = len(constant), int(constant.sum())
    if groups < MANY_GROUPS:
        tiny = np.finfo(np.float64).tiny
        return comb(groups, found) * float(np.prod(np.maximum(chances[constant], tiny))) > RARE
    chance = float(chances.mean())
    error = max(float(np.sqrt((chances * (1 - chances)).sum())), 1.0) / groups
    return found / groups - chance < max(SYSTEMATIC * (1 - chance), SURE * error)


def _wrong_by_vote(x: Integers, z: Integers, member: Integers) -> float:
    """Return how often the most frequent released category of a group is wrong, over how often a single one is."""
    wrong = float((z != x).mean())
    if wrong == 0:
        return 1.0
    groups, group = np.unique(member, return_inverse=True)
    counts = np.zeros((len(groups), int(max(x.max(), z.max())) + 1))
    np.add.at(counts, (group.ravel(), z), 1.0)
    first = counts == counts.max(axis=1, keepdims=True)
    right = (first / first.sum(axis=1, keepdims=True))[group.ravel(), x]
    return min(1.0, float(1 - right.mean()) / wrong)


def _intraclass(error: Floats, member: Integers) -> float:
    """Return the correlation of the noises inside groups (0 within the sampling error): noise drawn once has 1."""
    _, group = np.unique(member, return_inverse=True)
    group, counts = group.ravel(), np.bincount(group.ravel())
    sums, squares = np.bincount(group, error), np.bincount(group, error**2)
    pairs = float((counts * (counts - 1)).sum())
    total = float(squares.sum())
    if pairs == 0 or total == 0:
        return 0.0
    rho = float((sums**2 - squares).sum()) / pairs / (total / len(error))
    return float(np.clip(rho, 0.0, 1.0)) if rho > SURE / np.sqrt(pairs / 2) else 0.0

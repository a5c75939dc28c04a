"""Columns that repeat what stands in another row of the same group: lags, leads and changes since the row before.

In a panel, row t of a person may have, beside a_t, the value of the row before, or the change since then:

    b_t = a_(t-1)   or   b_t = a_t - a_(t-1),

a being a column that leaves, or its logarithm. Dropping the group's id is then no help: who looks for the rows whose b
is another row's a puts the rows of a person together again, and two rows that both tell a_(t-1) average its noise.

Rows are taken in the order of the file. A column counts where nearly all rows obey in which both sides are known, and
nearly all that can tell: not both the most frequent value, and a different from the row before (else a itself would do
for its lag). Of a category without numbers lags and leads are looked for alone. Chosen for drafts of files with a group
that is dropped; what ties members together within a row is in `determined_amounts`.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from .dependence import classes_give
from .exact_ratios import usual_unit
from .near_identities import mode

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

FEWEST = 30  # rows that tell: fewer agree by chance too easily
NEARLY_ALL = 0.95  # share of these that must obey: first rows of a part, corrected values
FEWEST_GROUPS = 5  # that share a time on average: amounts differ inside groups too, and are shared by few
RELATIVE = 2e-6  # of the size of a value: single precision has six to seven digits


@dataclass(frozen=True, slots=True)
class RowTie:
    """A column that a neighbouring row of the same group gives: `of` which column, and `what` of it.

    `rows` are those in which both are known, `obeying` as many of them as agree but for rounding.
    """

    of: str
    what: str
    rows: int
    obeying: int

    def words(self, group: str) -> str:
        """Say what the column is, and in how many records: a reader can count them again."""
        what = self.what.format(self.of)
        return (
            f"{what} with the same {group}, in {self.obeying:,} of {self.rows:,} records where both are known"
        )


def row_ties(
    groups: Ints,
    columns: Mapping[str, Floats],
    sought: Sequence[str],
    words: Mapping[str, str],
    labels: Collection[str] = (),
) -> dict[str, RowTie]:
    """Return which of the sought columns neighbouring rows of a group give, the first way found.

    `columns` are numbers, NaN unless open; `words` says how one is named. Numbers of `labels` are but names, of which
    there is no change. What is found gives no other any more.
    """
    before, now = _neighbours(groups)
    found = dict[str, RowTie]()
    if len(now) < FEWEST:
        return found
    for name in reversed(sought):  # lags and changes follow what they are of
        others = [n for n in columns if n != name and n not in found]
        tie = _tie(columns, name, others, (before, now), labels)
        if tie is not None:
            found[name] = replace(tie, of=words.get(tie.of, tie.of))
    return {name: found[name] for name in sought if name in found}


def told_by_time(groups: Ints, columns: Mapping[str, Floats], classes: Sequence[str]) -> set[str]:
    """Return those of some classes that the time of a row gives: dummies of a year say nothing of the row before.

    Time is a column, known in all rows, whose values differ between all rows of a group, and a row's place in it.
    An amount that differs so, as what grows over time does, is sought and compared all the same.
    """
    order = np.argsort(groups, kind="stable")
    starts = np.flatnonzero(np.diff(groups[order], prepend=groups[order][:1] - 1))
    place = np.empty(len(groups), np.int64)
    place[order] = np.arange(len(groups)) - np.repeat(starts, np.diff(np.append(starts, len(groups))))
    numbered = {name: np.unique(x, return_inverse=True)[1].astype(np.int64) for name, x in columns.items()}
    known = [name for name, x in columns.items() if not np.isnan(x).any()]
    times = {name: numbered[name] for name in known if _is_time(groups, numbered[name])}
    given = (
        name
        for name in classes
        if name in numbered
        and any(classes_give(time, numbered[name]) for other, time in times.items() if other != name)
    )
    return {
        *given,
        *(name for name in classes if name in times),
        *(name for name in classes if name in numbered and classes_give(place, numbered[name])),
    }


def _is_time(groups: Ints, values: Ints) -> bool:
    """Whether values differ between all rows of a group, and most are shared by several groups."""
    pairs = groups * (int(values.max(initial=0)) + 1) + values
    return len(np.unique(pairs)) == len(pairs) and FEWEST_GROUPS * len(np.unique(values)) <= len(values)


def _neighbours(groups: Ints) -> tuple[Ints, Ints]:
    """Return the rows that follow another of the same group, in the order of the file, and the row before each."""
    order = np.argsort(groups, kind="stable")
    same = (groups[order][1:] == groups[order][:-1]) & (groups[order][1:] >= 0)
    return order[:-1][same], order[1:][same]


def _tie(
    columns: Mapping[str, Floats],
    name: str,
    others: Sequence[str],
    rows: tuple[Ints, Ints],
    labels: Collection[str],
) -> RowTie | None:
    """Return the first other column whose value before, after, or whose change gives a column in nearly all rows."""
    before, now = rows
    b = columns[name]
    for other in others:
        a = columns[other]
        moved = a[now] - a[before]
        ways = (
            ("{} of the record before", b[now], a[before], a[now]),
            ("{} of the record after", b[before], a[now], a[before]),
            ("the change of {} since the record before", b[now], moved, a[now]),
        )
        for what, given, wanted, own in ways[:2] if other in labels else ways:
            counts = _agreement(given, wanted, own, usual_unit(b))
            if counts is not None:
                return RowTie(other, what, *counts)
    return None


def _agreement(given: Floats, wanted: Floats, own: Floats, unit: float) -> tuple[int, int] | None:
    """Return in how many rows two sides are known, and in how many of these they agree, if they do in nearly all."""
    known = ~(np.isnan(given) | np.isnan(wanted))
    if np.count_nonzero(known) < FEWEST:
        return None
    given, wanted, own = given[known], wanted[known], own[known]
    usual = mode(given)
    tells = ~((given == usual) & (wanted == usual)) & (own != wanted) & ~np.isnan(own)
    if np.count_nonzero(tells) < FEWEST or np.ptp(given) == 0:
        return None
    size = np.fmax(np.abs(own), np.abs(wanted))
    allowed = RELATIVE * size + (unit / 2 * (1 + 1e-9) if unit < 1 else 0.0)
    obeys = np.abs(given - wanted) <= allowed
    if min(np.mean(obeys), np.mean(obeys[tells])) < NEARLY_ALL:
        return None
    return len(obeys), int(np.count_nonzero(obeys))

"""Columns that repeat what stands in another row of the same group: lags, leads and changes since the row before.

In a panel, row t of a person may have, beside a_t, the value of the row before, or the change since then:

    b_t = a_(t-1)   or   b_t = a_t - a_(t-1),

a being a column that leaves, or its logarithm. Dropping the group's id is then no help: who looks for the rows whose b
is another row's a puts the rows of a person together again, and two rows that both tell a_(t-1) average its noise.

Rows are taken in the order of the file. A column counts where nearly all rows obey that can tell: both sides open, not
both the most frequent value, and a different from the row before (else a itself would do for its lag). Chosen for
drafts of files with a group that is dropped; what ties members together within a row is in `ties`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from .exact_ratios import usual_unit
from .near_identities import mode

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

FEWEST = 30  # rows that tell: fewer agree by chance too easily
NEARLY_ALL = 0.95  # share of these that must obey: first rows of a part, corrected values
RELATIVE = 2e-6  # of the size of a value: single precision has six to seven digits


@dataclass(frozen=True, slots=True)
class RowTie:
    """A column that a neighbouring row of the same group gives: `of` which column, and `what` of it."""

    of: str
    what: str
    share: float
    rows: int

    def __str__(self) -> str:
        return f"{self.what.format(self.of)} in {self.share:.0%} of {self.rows:,} records that tell"


def row_ties(
    groups: Ints, columns: Mapping[str, Floats], sought: Sequence[str], words: Mapping[str, str]
) -> dict[str, RowTie]:
    """Return which of the sought columns neighbouring rows of a group give, the first way found.

    `columns` are numbers, NaN unless open; `words` says how one is named. What is found gives no other any more.
    """
    before, now = _neighbours(groups)
    found = dict[str, RowTie]()
    if len(now) < FEWEST:
        return found
    for name in reversed(sought):  # lags and changes follow what they are of
        tie = _tie(columns, name, [n for n in columns if n != name and n not in found], (before, now))
        if tie is not None:
            found[name] = RowTie(words.get(tie.of, tie.of), tie.what, tie.share, tie.rows)
    return {name: found[name] for name in sought if name in found}


def _neighbours(groups: Ints) -> tuple[Ints, Ints]:
    """Return the rows that follow another of the same group, in the order of the file, and the row before each."""
    order = np.argsort(groups, kind="stable")
    same = (groups[order][1:] == groups[order][:-1]) & (groups[order][1:] >= 0)
    return order[:-1][same], order[1:][same]


def _tie(
    columns: Mapping[str, Floats], name: str, others: Sequence[str], rows: tuple[Ints, Ints]
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
        for what, given, wanted, own in ways:
            share, count = _share(given, wanted, own, usual_unit(b))
            if share >= NEARLY_ALL:
                return RowTie(other, what, share, count)
    return None


def _share(given: Floats, wanted: Floats, own: Floats, unit: float) -> tuple[float, int]:
    """Return the share of telling rows in which two sides agree but for rounding, and how many tell."""
    known = ~(np.isnan(given) | np.isnan(wanted) | np.isnan(own))
    if np.count_nonzero(known) < FEWEST:
        return 0.0, 0
    given, wanted, own = given[known], wanted[known], own[known]
    usual = mode(given)
    tells = ~((given == usual) & (wanted == usual)) & (own != wanted)
    if np.count_nonzero(tells) < FEWEST or np.ptp(given[tells]) == 0:
        return 0.0, 0
    size = np.maximum(np.abs(own[tells]), np.abs(wanted[tells]))
    allowed = RELATIVE * size + (unit / 2 * (1 + 1e-9) if unit < 1 else 0.0)
    obeys = np.abs(given[tells] - wanted[tells]) <= allowed
    return float(np.mean(obeys)), int(np.count_nonzero(tells))

"""Whether a release puts the members of a group (a household, a school, a firm) together again.

Every rate of a release is about one record at a time. Who knows a whole group finds more, and can use it wherever the
release shows which records belong together: by the column of the group itself, or by released values that its members
share and few others have (a region, a roof, an income drawn once for a household). The group of a record is known
here, so that this is counted and not guessed: with S some released columns and c the combination of their values, a
group stands together where

    one c has (nearly) all its members, and few others: at most two other groups, or two records of others for each.

S grows from the column that is most often the same within groups, and every other column is tried alone (a telephone
that two of five households share, where the others have their own); the S that puts most records together counts.
Beside equal values there are others that point to companions (see `group_links`): the way that tells most counts. What
columns that no intruder compares tell of companions, however vaguely, is measured apart (`companion_information`).

A value of the group column that holds more than a fifth of the records, and more than three times as many as the next
one, is a code for "none" (`not_applicable` for 14,012 of 15,402 bookings by company) and no group: who stands under it
has no companions. A fifth, as to be one of so many singles nobody out; three times, as the largest of real groups
follows on from the others (of sizes 1, 1/2, 1/3, ... it is twice the second, and of four large schools none stands
out). It is said and asked about.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from ..notes import Note
from .companion_information import CompanionInformation, companion_information, whole_groups
from .companion_laws import CompanionColumns
from .group_links import MOST_RECORDS, MOST_SOUGHT, companions

if TYPE_CHECKING:
    from ..masking import Masking
    from ..table import Table

Codes = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]

SHARED = 0.5  # share of groups within which a column is the same, from which on it may be one of the group
NEARLY = 0.9  # share of a group's members: one pupil with a missing value does not hide a school
# Groups beside it, or records of others for each of its own: one guess of three is still right
MOST_OTHERS = 2
MOST_TOGETHER = 0.01  # share of records: what so few add to a rate is within its own error
MOST_IN_TURN = 30  # columns of which each is tried: of more a tenth is left out at once
MOST_NAMED = 4  # columns
NONE_SHARE, NONE_TIMES = (
    0.2,
    3,
)  # of the records, and of the next value's: above both a value is a code for none


@dataclass(frozen=True, slots=True)
class Reassembly:
    """What a release tells of the groups of one column.

    `groups` counts those of which two or more records are released, `records` their records; `together` and
    `records_together` those whose members stand together by the released values of `columns`. `leaves` says whether
    the column itself is in the release, `how` by what else than equal values they are told.
    """

    column: str
    leaves: bool
    groups: int
    records: int
    together: int
    records_together: int
    columns: tuple[str, ...]
    how: str = ""

    @property
    def share(self) -> float:
        """The share of the records in groups whose groups stand together."""
        return self.records_together / self.records if self.records else 0.0

    @property
    def is_judged(self) -> bool:
        """Whether figures about one record at a time say enough: no group leaves, or none can be told."""
        return not self.groups or (not self.leaves and self.share <= MOST_TOGETHER)

    @property
    def said(self) -> str:
        """Why figures about one record at a time do not judge the release, and what to do."""
        alone = "every figure is about one record at a time, and who knows a whole group finds more"
        if self.leaves:
            return (
                f"{self.column} leaves and puts the records of {self.groups:,} groups together: {alone}; drop it "
                "(drop = true in the schema)"
            )
        if self.how:
            return (
                f"{self.column} is dropped, but {self.share:.1%} of the records in its groups are told together with "
                f"one of their own by {self.how}: drop, mask or coarsen what tells it; {alone}"
            )
        return (
            f"{self.column} is dropped, but {_names_text(self.columns)} put {self.together:,} of {self.groups:,} "
            "groups "
            f"({self.share:.1%} of their records) together again: drop, mask or coarsen some of them; {alone}"
        )

    def to_dict(self) -> dict[str, Any]:
        """Return figures only."""
        return {
            "column": self.column,
            "leaves": self.leaves,
            "groups": self.groups,
            "together": self.together,
            "records": self.records,
            "records_together": self.records_together,
            "share": self.share,
            "columns": list(self.columns),
            "how": self.how,
        }


def reassemblies(masking: Masking) -> tuple[Reassembly, ...]:
    """Return, for every column of the truth with the role group, what the release tells of its groups."""
    named = [column.name for column in masking.truth.schema.columns if "group" in column.roles]
    return tuple(reassembly(masking, name) for name in named)


def group_reasons(masking: Masking) -> tuple[str, ...]:
    """Say why a release is not judged by figures about one record at a time; nothing where it is."""
    return tuple(found.said for found in reassemblies(masking) if not found.is_judged)


def unknown_companions(
    masking: Masking, compared: Collection[str], rate: float
) -> tuple[CompanionInformation, ...]:
    """Return, for every dropped group, what released columns that no intruder compares tell of who belongs together."""
    truth, released, order = masking.truth, masking.release.table, masking.order
    named = [
        one.name for one in truth.schema.columns if "group" in one.roles and one.name not in released.schema
    ]
    # A total of parts that are released follows from these.
    left_out = {*compared, released.schema.id_column, *(total for total, _ in masking.card.recomputed)}
    columns = [
        one.name for one in released.schema.columns if one.name not in left_out and "group" not in one.roles
    ]
    known = [name for name in compared if name in truth.schema]
    tied = not {*compared} & {name for name in masking.card.columns if truth.schema[name].is_number}
    found = list[CompanionInformation]()
    for name in named if columns else ():
        group = _group_numbers(truth, name, order)
        at = whole_groups(group)
        unknown, others = columns_of(released, columns, at), columns_of(truth, known, order[at])
        if len(at) and (unknown.numbers or unknown.categories):
            found.append(companion_information(name, unknown, group[at], rate, others, tied, order[at]))
    return tuple(found)


def columns_of(table: Table, names: Sequence[str], at: Codes) -> CompanionColumns:
    """Return the numbers and categories of some records, texts whose values repeat and gaps among these."""
    numbers = [name for name in names if table.schema[name].is_number]
    gaps = {f"whether {name} is missing": _statuses(table, name)[at] for name in numbers}
    codes = {name: _codes(table, name)[at] for name in names if table.has_classes(name)}
    return CompanionColumns(
        {name: table.values([name])[at, 0] for name in numbers},
        {**codes, **{name: status for name, status in gaps.items() if len(np.unique(status)) > 1}},
    )


def reassembly(masking: Masking, column: str) -> Reassembly:
    """Count the groups of a column that the released values put together, by equal values or by other ways."""
    released = masking.release.table
    gaps = {name: _statuses(released, name) for name in _hidden_with_gaps(masking)}
    found = _column_reassembly(masking.truth, released, masking.order, column, gaps)
    if not found.groups or found.leaves:
        return found
    return _by_companions(masking, found)


def _by_companions(masking: Masking, found: Reassembly) -> Reassembly:
    """Return what tells more records together: equal values, or another way."""
    released, column = masking.release.table, found.column
    group = _group_numbers(masking.truth, column, masking.order)
    several = np.bincount(group) >= 2
    names = [name for name in released.names if name not in (column, released.schema.id_column)]
    numbers = {name: released.values([name])[:, 0] for name in names if released.schema[name].is_number}
    # A number that is the same for all members (years of schooling) parts the file as a class does.
    shared = [name for name in names if _share_alike(_codes(released, name), group, several) >= SHARED]
    blocks = np.zeros(len(group), np.int64)
    for name in shared:
        code = _codes(released, name)
        blocks = np.unique(blocks * (int(code.max()) + 1) + code, return_inverse=True)[1]
    for way in companions(numbers, group, blocks):
        count = round(way.share * found.records)
        if count > found.records_together:
            together = len(np.unique(group[way.told]))
            found = replace(
                found, together=together, records_together=count, columns=way.columns, how=way.how
            )
    return found


def coverage_words(table: Table) -> list[Note]:
    """Say how companions were looked for, and how they were not, where a table has groups."""
    none = [
        Note("pipeline.code_for_none", {"column": name, "share": share})
        for name, share in codes_for_none(table).items()
    ]
    figures = {"records": len(table), "most_pairs": MOST_RECORDS, "most_sought": MOST_SOUGHT}
    named = [column.name for column in table.schema.columns if "group" in column.roles]
    return none + [Note("pipeline.companion_search", {"column": name, **figures}) for name in named]


def sure_reassemblies(table: Table, clear: Sequence[str]) -> tuple[Reassembly, ...]:
    """Return, before any noise is drawn, what leaves as it is tells of groups, where it is too much: gaps do too."""
    named = [column.name for column in table.schema.columns if "group" in column.roles]
    found = (_sure(table, clear, _with_gaps(table), name) for name in named)
    return tuple(one for one in found if not one.is_judged)


def to_leave_out(table: Table, clear: Sequence[str], column: str) -> Reassembly:
    """Return what is left, in `columns` what to leave out: the column that puts most together, until it is judged.

    Of very many columns a tenth at once, those first that are most often the same within groups.
    """
    out, gaps = list[str](), _with_gaps(table)
    found = _sure(table, clear, gaps, column)
    while not found.is_judged:
        if len(found.columns) > MOST_IN_TURN and not found.leaves:
            out += found.columns[: len(found.columns) // 10]
            found = _sure(table, _except(clear, out), _except(gaps, out), column)
            continue
        trials = {
            name: _sure(table, _except(clear, (*out, name)), _except(gaps, (*out, name)), column)
            for name in ([column] if found.leaves else found.columns)
        }
        best = min(trials, key=lambda name: trials[name].records_together)
        out.append(best)
        found = trials[best]
    return replace(found, columns=tuple(out))


def telling_columns(masking: Masking) -> tuple[str, ...]:
    """Return the released columns to leave out so that no dropped group is told by equal values any more.

    In turn that which puts most together by what was drawn; of other ways to companions the columns of the first.
    """
    gone = list[str]()
    for found in reassemblies(masking):
        if found.leaves or found.is_judged:
            continue
        gone += found.columns if found.how else _told_by_values(masking, found, gone)
    return tuple(dict.fromkeys(gone))


def _told_by_values(masking: Masking, found: Reassembly, gone: Sequence[str]) -> list[str]:
    """Return what to leave out beside some columns until equal values tell little of a group."""
    released = masking.release.table
    gaps = {name: _statuses(released, name) for name in _hidden_with_gaps(masking)}
    out = list[str]()

    def counted(left_out: Collection[str]) -> Reassembly:
        kept = released.select([name for name in released.names if name not in left_out])
        statuses = {name: status for name, status in gaps.items() if name not in left_out}
        return _column_reassembly(masking.truth, kept, masking.order, found.column, statuses)

    left = counted(gone)
    while not left.is_judged and left.columns:
        trials = {name: counted((*gone, *out, name)) for name in left.columns[:MOST_IN_TURN]}
        best = min(trials, key=lambda name: trials[name].records_together)
        out.append(best)
        left = trials[best]
    return out


def _except(names: Sequence[str], left_out: Sequence[str]) -> list[str]:
    return [name for name in names if name not in left_out]


def _sure(table: Table, clear: Sequence[str], gaps: Sequence[str], column: str) -> Reassembly:
    """Count by what leaves in clear, and by which values are missing or coded in columns that are masked."""
    statuses = {name: _statuses(table, name) for name in gaps if name not in clear}
    return _column_reassembly(table, table.select(clear), np.arange(len(table)), column, statuses)


def _with_gaps(table: Table) -> list[str]:
    """Return the columns that leave and are missing or coded in some records."""
    names = [c.name for c in table.schema.columns if not c.drop and (c.is_number or c.kind == "category")]
    return [name for name in names if len(np.unique(table.status(name))) > 1]


def _hidden_with_gaps(masking: Masking) -> list[str]:
    """Return the released columns of which what is missing or coded may tell more than values: numbers, masked ones."""
    released, masked = masking.release.table, set(masking.card.masked)
    return [name for name in _with_gaps(released) if released.schema[name].is_number or name in masked]


def _statuses(table: Table, name: str) -> Codes:
    return np.asarray(table.status(name), dtype=np.int64)


def _column_reassembly(
    truth: Table, released: Table, order: Codes, column: str, gaps: Mapping[str, Codes]
) -> Reassembly:
    group = _group_numbers(truth, column, order)
    sizes = np.bincount(group)
    several = sizes >= 2
    leaves = column in released.schema
    best = np.zeros(len(sizes), bool)
    chosen: tuple[str, ...] = ()
    for names, together in _prefixes(released, group, several, column, gaps):
        if sizes[together].sum() > sizes[best].sum():
            best, chosen = together, names
    return Reassembly(
        column,
        leaves,
        int(several.sum()),
        int(sizes[several].sum()),
        int(best.sum()),
        int(sizes[best].sum()),
        chosen,
    )


def _prefixes(
    released: Table, group: Codes, several: Bools, column: str, gaps: Mapping[str, Codes]
) -> Iterator[tuple[tuple[str, ...], Bools]]:
    """Give ever more columns, those first that are most often the same within groups, and who stands together.

    Of columns whose values are not the same within groups it is looked at which of them are missing or coded.
    """
    left_out = {column, released.schema.id_column}
    codes = {name: _codes(released, name) for name in released.names if name not in left_out}
    same = {name: _share_alike(code, group, several) for name, code in codes.items()}
    for name, code in gaps.items():
        alike = _share_alike(code, group, several)
        if same.get(name, 0.0) < NEARLY * alike and name not in left_out:
            codes[name], same[name] = code, alike
    shared = sorted((name for name in codes if same[name] >= SHARED), key=lambda name: -same[name])
    joint = np.zeros(len(group), np.int64)
    for count, name in enumerate(shared, start=1):
        joint = np.unique(joint * (int(codes[name].max()) + 1) + codes[name], return_inverse=True)[1]
        yield tuple(shared[:count]), several & _together(joint, group)
    for name in (name for name in codes if name not in shared):
        yield (name,), several & _together(codes[name], group)


def _together(joint: Codes, group: Codes) -> Bools:
    """Return, for each group, whether nearly all its records have one combination that few others have."""
    combination, whose, count = _code_group_counts(joint, group)
    groups_with, records_with = np.bincount(combination), np.bincount(joint)
    few = groups_with[combination] <= 1 + MOST_OTHERS
    few |= records_with[combination] <= (1 + MOST_OTHERS) * count
    stands = few & (count >= NEARLY * np.bincount(group)[whose])
    return np.asarray(np.bincount(whose[stands], minlength=int(group.max(initial=0)) + 1) > 0)


def _share_alike(code: Codes, group: Codes, several: Bools) -> float:
    """Return the share of the groups of two and more within which a column has (nearly) one value."""
    _, whose, count = _code_group_counts(code, group)
    alike = np.zeros(len(several), bool)
    alike[whose[count >= NEARLY * np.bincount(group)[whose]]] = True
    return float(alike[several].mean()) if several.any() else 0.0


def _code_group_counts(codes: Codes, group: Codes) -> tuple[Codes, Codes, Codes]:
    """Return the combinations of a code and a group that occur: the code, the group, and how many records."""
    groups = int(group.max(initial=0)) + 1
    pairs, count = np.unique(codes * groups + group, return_counts=True)
    return pairs // groups, pairs % groups, count


def _codes(table: Table, name: str) -> Codes:
    """Return a number for every different value or status of a column."""
    array: Any = table.array(name).dictionary_encode()
    values = np.asarray(array.indices.fill_null(-1), dtype=np.int64) + 1
    return np.asarray(np.unique(values * 256 + table.status(name), return_inverse=True)[1], dtype=np.int64)


def _group_numbers(truth: Table, name: str, order: Codes) -> Codes:
    """Return groups numbered from 0 on; a record without a group is one of its own."""
    codes = _codes(truth, name)
    own = np.asarray(truth.array(name).is_null()) | _has_code_for_none(truth, name)
    codes = np.where(own[order], int(codes.max(initial=0)) + 1 + np.arange(len(order)), codes[order])
    return np.asarray(np.unique(codes, return_inverse=True)[1], dtype=np.int64)


def _has_code_for_none(table: Table, name: str) -> Bools:
    """Whether each record has the value of a group column that says that there is no group; nobody where none does."""
    codes, known = _codes(table, name), ~np.asarray(table.array(name).is_null())
    counts = np.bincount(codes[known], minlength=2)
    most = int(np.argmax(counts))
    next_most = int(np.delete(counts, most).max())
    is_code = next_most and counts[most] > max(NONE_SHARE * len(codes), NONE_TIMES * next_most)
    return np.asarray(known & (codes == most)) if is_code else np.zeros(len(codes), bool)


def codes_for_none(table: Table) -> dict[str, float]:
    """Return the columns with the role group of which a value is taken for a code for none, with its share."""
    named = [column.name for column in table.schema.columns if "group" in column.roles]
    shares = {name: float(_has_code_for_none(table, name).mean()) for name in named}
    return {name: share for name, share in shares.items() if share > 0}


def _names_text(columns: tuple[str, ...]) -> str:
    if len(columns) <= MOST_NAMED:
        return ", ".join(columns)
    return f"{', '.join(columns[:MOST_NAMED])} and {len(columns) - MOST_NAMED} more"

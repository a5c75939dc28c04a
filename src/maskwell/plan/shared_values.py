"""Amounts that many records alike in clear columns share: the mean over these undoes noise on each.

Hours of work are 0 for whoever is out of work: where that leaves in clear, the hours of all of them are told by a
mean, and the audit refuses it (`checks.group_means`). The draft leaves out the clear columns without which no amount
is shared so, where these are no more than the amounts, and else the amounts.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from .column_numbers import class_numbers, group_codes
from .dependence import is_shared_in_part
from .questions import DraftAnswer, Question

if TYPE_CHECKING:
    from ..checks.group_means import GroupMean, Integers
    from ..table import Floats, Table

# Of the records that a set of columns puts together with one value: who does so many needs no other
BY_ITSELF = 0.9
MOSTLY = 0.5  # of the records that are not alone
GAPS = "gaps of "  # before the name of an amount: where it is missing


def without_averages(table: Table, fixed: Collection[str]) -> list[DraftAnswer]:
    """Return what to leave out so that no mean over records alike undoes the noise; `fixed` amounts stay."""
    from ..attacks.joint_codes import block_codes

    columns = [c for c in table.schema.columns if not c.drop]
    amounts = {
        c.name: table.values([c.name])[:, 0]
        for c in columns
        if "key" in c.roles and c.is_number and c.name not in fixed
    }
    clear = {
        c.name: block_codes(table, table, (c.name,))[0]
        for c in columns
        if c.kind == "category" or "weight" in c.roles
    }
    gaps = table.gap_patterns([*amounts])  # they leave in clear
    clear |= {GAPS + name: status for name, status in gaps.items() if np.ptp(status)}
    found = _revealing_means(amounts, clear)
    if not found:
        return []
    by = _culprits({name: amounts[name] for name in found}, clear, found)
    if not by:
        return [
            _amount_answer(table, name, one, _each_by_itself(name, amounts, clear))
            for name, one in found.items()
        ]
    shared = {name: amounts[name] for name in found}
    return [_class_answer(table, name, _told_by(name, by, shared, clear) or found) for name in by]


def _told_by(
    name: str, by: Sequence[str], amounts: Mapping[str, Floats], clear: Mapping[str, Integers]
) -> dict[str, GroupMean]:
    """Return the amounts that a clear column would put together, the others that are dropped being gone.

    Where it does so by itself, no other column is named.
    """
    gone = {other for other in by if other != name}
    left = _revealing_means(amounts, {other: codes for other, codes in clear.items() if other not in gone})
    alone = {one: _constant_share({one: amounts[one]}, clear[name]) for one in left}
    return {
        one: replace(found, columns=(name,)) if alone[one] >= BY_ITSELF * found.share else found
        for one, found in left.items()
    }


def _class_answer(table: Table, name: str, told: Mapping[str, GroupMean]) -> DraftAnswer:
    """Say which amounts are the same for records alike in a column, and in which others beside."""
    named = ", ".join(told)
    beside = dict.fromkeys(other for one in told.values() for other in one.columns if other != name)
    others = [f"in {', '.join(beside)}"] if beside else []
    own = name.removeprefix(GAPS)
    records = "records" if own == name else "where it is missing or a code, records"
    often = "mostly" if min(one.share for one in told.values()) > MOSTLY else "often"
    alike = " and ".join((["in it"] if own == name else []) + others)
    taken = (
        f"{records}{f' alike {alike}' if alike else ''} {often} have the same {named}. Their mean would show it, so "
        f"{own} is dropped"
    )
    if own == name and (of := _group_of(table, name)):
        taken = f"the same for all records with one {of}; {taken}"
    question = Question(own, taken, f"Wanted in the release? Then drop {named} in its place")
    return DraftAnswer(replace(table.schema[own], drop=True, roles=frozenset()), "shared", question)


def _group_of(table: Table, name: str) -> str:
    """Return the first dropped group all records of which are alike in a category; nothing where there is none."""
    schema, values = table.schema, class_numbers(table, name)
    groups = (one for one in schema.with_role("group", dropped=True) if schema[one].drop)
    return next((one for one in groups if is_shared_in_part(group_codes(table, one), values)), "")


def _still_averaged(
    amounts: Mapping[str, Floats], clear: Mapping[str, Integers], before: Mapping[str, GroupMean]
) -> dict[str, GroupMean]:
    """Return those of some averaged amounts that fewer clear columns average too.

    What is left of the grouping that did so before is looked at first: where it still does, no other is searched.
    """
    ways = {name: tuple(c for c in one.columns if c in clear) for name, one in before.items()}
    found = _revealing_means({name: amounts[name] for name in before}, clear, ways)
    others = {name: amounts[name] for name in before if name not in found}
    return found | _revealing_means(others, clear)


def _revealing_means(
    amounts: Mapping[str, Floats],
    clear: Mapping[str, Integers],
    by: Mapping[str, tuple[str, ...]] | None = None,
) -> dict[str, GroupMean]:
    """Return the amounts of whose noise a mean leaves less than the audit allows."""
    from ..checks.catalogue import checks
    from ..checks.group_means import averages_ahead

    limit = next(one.limits.fail for one in checks() if one.name == "averaging") or 0.0
    return {name: one for name, one in averages_ahead(amounts, clear, by).items() if one.left <= limit}


def _culprits(
    amounts: Mapping[str, Floats], clear: Mapping[str, Integers], found: Mapping[str, GroupMean]
) -> list[str]:
    """Return clear columns, no more than there are amounts, without which none of these is shared any more.

    One after the other, each time the one without which fewest are shared; of equals the one that by itself has most
    records in classes with one value, for others only help to make classes.
    """
    chosen, left = list[str](), dict(found)
    while left and len(chosen) < len(found):
        able = sorted({name for one in left.values() for name in one.columns})
        after = {
            name: _still_averaged(amounts, {n: c for n, c in clear.items() if n not in (*chosen, name)}, left)
            for name in able
        }
        best = min(able, key=lambda name: (len(after[name]), -_constant_share(amounts, clear[name])))
        chosen.append(best)
        left = after[best]
    return chosen if not left else []


def _constant_share(amounts: Mapping[str, Floats], codes: Integers) -> float:
    """Return the mean share of records in classes of a column in which an amount has one value."""
    shares = []
    for x in amounts.values():
        known = ~np.isnan(x)
        least, most = np.full(codes.max() + 1, np.inf), np.full(codes.max() + 1, -np.inf)
        np.minimum.at(least, codes[known], x[known])
        np.maximum.at(most, codes[known], x[known])
        shares.append(float(np.mean((least == most)[codes[known]])))
    return sum(shares) / max(len(shares), 1)


def _each_by_itself(name: str, amounts: Mapping[str, Floats], clear: Mapping[str, Integers]) -> list[str]:
    """Return the clear columns and gaps each of which puts records together by itself that share an amount."""
    own = {name: amounts[name]}
    return [other for other, codes in clear.items() if _revealing_means(own, {other: codes})]


def _amount_answer(table: Table, name: str, one: GroupMean, alone: Sequence[str]) -> DraftAnswer:
    alike, by = ", ".join(one.columns), ", ".join(alone or one.columns)
    taken = (
        f"the same for records alike in {alike}, for {one.share_words} with them: dropped, as the mean over them "
        "undoes noise on each"
    )
    question = Question(name, taken, f"Wanted in the release? Then drop what puts them together ({by})")
    return DraftAnswer(replace(table.schema[name], drop=True, roles=frozenset()), "shared", question)

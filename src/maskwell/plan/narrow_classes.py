"""Amounts that a class in clear tells whatever the noise: what the draft leaves out for it, and what it asks.

The audit refuses a release where a class of what leaves in clear, or a gap, confines an amount of many records to a
small part of what its noise would leave open (`checks.narrow_classes`: who has no income is a child). The draft looks
ahead with the noise at which its search begins. It leaves out as few columns as are enough, clear ones before amounts,
and asks about what the audit would warn of. Where the search ends nobody knows yet: of two and four times that noise it
asks about what the audit would refuse (in `MedExp`, which ends there, children's ages: the more noise, the more a class
tells beside it).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from .questions import DraftAnswer, Question

if TYPE_CHECKING:
    from ..checks.narrow_classes import ClearClasses, Narrow, NoisedAmount
    from ..table import Table

START = 0.75  # of each column's sd: where the search for the weakest noise begins, near where it often ends
LARGER = (2, 4)  # times START: a search that needs more than that finds few releases that pass
WIDE, AT_ONCE = (
    40,
    10,
)  # columns that tell: of more a tenth is dropped at once, as each look at all takes seconds
SEED = 12  # of the records that are looked at: any would do


def without_narrow(table: Table, fixed: Collection[str]) -> list[DraftAnswer]:
    """Return what to leave out so that no class tells too many records of an amount; `fixed` amounts stay.

    One column after the other: a clear one that is enough by itself, else that without which fewest are told. Where
    very many tell, several at once.
    """
    from ..checks.narrow_classes import MANY, narrow_amounts

    amounts, classes = _amounts_and_classes(table, fixed)
    noised, answers, found = frozenset(amounts), list[DraftAnswer](), narrow_amounts(amounts, classes)
    while told := {name: one for name, one in found.items() if one.share > MANY}:
        gone = _next_to_drop(told, amounts, classes, fixed, noised)
        if not gone:
            break
        answers += [_answer(table, name, told) for name in gone]
        amounts = {name: amounts[name] for name in told if name not in gone}
        classes = classes.without(gone)
        found = narrow_amounts(amounts, classes)
    return answers


def _next_to_drop(
    told: Mapping[str, Narrow],
    amounts: Mapping[str, NoisedAmount],
    classes: ClearClasses,
    fixed: Collection[str],
    noised: Collection[str],
) -> list[str]:
    """Return the best column to leave out, a clear one if it is enough, or some of very many that tell."""
    from ..checks.narrow_classes import MANY, best_to_drop, narrow_amounts, order_by_disclosure

    able = [name for name in (*classes.levels, *classes.gaps, *told) if name not in fixed]
    named = order_by_disclosure(told, able)
    if len(named) > WIDE:
        return named[: len(named) // AT_ONCE]
    clear = [name for name in able if name not in noised]
    best = best_to_drop(told, amounts, classes, clear)
    if best is not None:
        rest = {name: amounts[name] for name in told}
        left = narrow_amounts(rest, classes.without((best,)))
        if all(one.share <= MANY for one in left.values()):
            return [best]
    best = best_to_drop(told, amounts, classes, able)
    return [] if best is None else [best]


def on_narrow(table: Table, fixed: Collection[str]) -> list[Question]:
    """Ask about amounts of which a class tells more records than the audit lets pass without a word.

    So much at the noise of the draft, or so much that the audit would refuse it, at more noise.
    """
    from ..checks.narrow_classes import FEW, MANY, NoisedAmount, narrow_amounts

    amounts, classes = _amounts_and_classes(table, fixed)
    questions, asked = list[Question](), set[str]()
    for times in (1, *LARGER):
        noised = {
            name: NoisedAmount(one.x, times * one.sd) for name, one in amounts.items() if name not in asked
        }
        limit = FEW if times == 1 else MANY
        told = {name: one for name, one in narrow_amounts(noised, classes).items() if one.share > limit}
        asked |= told.keys()
        questions += _questions(told, times)
    return questions


def _questions(told: Mapping[str, Narrow], times: int) -> list[Question]:
    """Ask about amounts that classes tell at some noise, those that the same class tells together."""
    from ..checks.narrow_classes import FEW, MANY

    by = dict[str, list[str]]()
    for name, one in told.items():
        share = one.told[one.grouping].mean()
        by.setdefault(one.grouping.words, []).append(f"{name} ({share:.1%} of its records)")
    if times == 1:
        than, audit = (
            "than noise would let it be known",
            f"warns from {FEW:.0%} on and refuses from {MANY:.0%} on",
        )
    else:
        than = f"than noise of {times * START:g} sds would let it be known, if the search for the weakest ends there"
        audit = f"then refuses from {MANY:.0%} on"
    return [
        Question(
            None,
            f"{words}: tells {', '.join(names)} better {than}, and leaves in clear; the audit {audit}",
            "Too much? Then drop it, put it in coarser classes, or drop what it tells",
        )
        for words, names in by.items()
    ]


def _amounts_and_classes(
    table: Table, fixed: Collection[str]
) -> tuple[dict[str, NoisedAmount], ClearClasses]:
    """Return the amounts with the noise of a draft, and the classes of what leaves in clear; some of many records."""
    from ..checks.narrow_classes import (
        ClearClasses,
        NoisedAmount,
        class_codes,
        grouping_count,
        records_looked_at,
    )

    leaves = [
        c
        for c in table.schema.columns
        if not c.drop and not c.roles & {"id", "group"} and (c.is_number or table.has_classes(c.name))
    ]
    noised = [c.name for c in leaves if c.is_number and ("key" in c.roles or c.name in fixed)]
    clear = [c for c in leaves if c.name not in noised]
    most = records_looked_at(len(noised), grouping_count(len(leaves)))
    rows = np.arange(len(table))
    if len(rows) > most:
        rows = np.sort(np.random.default_rng(SEED).choice(len(rows), most, replace=False))
    levels = {
        c.name: class_codes(table.class_codes(c.name)[rows], is_category=not c.is_number) for c in clear
    }
    gaps = {c.name: table.status(c.name)[rows].astype(np.int64) for c in leaves if c.name in table.closed}
    values = {name: table.floats(name)[rows] for name in noised}
    amounts = {
        name: NoisedAmount(x, np.full(len(x), START * float(np.nanstd(x)) if (~np.isnan(x)).any() else 0.0))
        for name, x in values.items()
    }
    return amounts, ClearClasses(levels, {name: status for name, status in gaps.items() if np.ptp(status)})


def _answer(table: Table, name: str, told: Mapping[str, Narrow]) -> DraftAnswer:
    """Say what was dropped: an amount that classes tell, or a column whose classes or gaps tell amounts."""
    if name in told:
        taken = (
            f"of its records {told[name].share:.1%} are in a class of what leaves in clear that tells it better than "
            f"noise would let it be known ({told[name]}): dropped, as no noise hides that"
        )
        otherwise = "Wanted in the release? Then drop what makes the classes, or leave such records out"
    else:
        by = {amount: one for amount, one in told.items() if any(name in g.columns for g in one.told)}
        shown = ", ".join(
            f"{amount} ({_share_by(one, name):.1%} of its records)" for amount, one in by.items()
        )
        what = "its gaps and codes tell" if table.schema[name].is_number else "its classes and gaps tell"
        taken = f"{what} {shown} better than noise would let it be known: dropped, as no noise hides that"
        otherwise = (
            f"Wanted in the release? Then put it in coarser classes, or drop {', '.join(by)} in its place"
        )
    made = replace(table.schema[name], drop=True, roles=frozenset())
    return DraftAnswer(made, "shared", Question(name, taken, otherwise))


def _share_by(one: Narrow, name: str) -> float:
    """Return the share of records told by groupings that a column has part in."""
    told = [told for grouping, told in one.told.items() if name in grouping.columns]
    return float(np.logical_or.reduce(told).mean())

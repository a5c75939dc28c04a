"""Survey weights among the columns of a file: by a name, a label, a mean of 1, or totals in classes.

The weight of a body or at birth (which goes with a height) and the shares of a budget (which add up) are none. One
weight keeps its role; noise is never proposed for any. Called by `roles`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import groupby

import numpy as np

from .class_totals import class_totals
from .column_drafts import Draft
from .column_names import is_bare_weight, says_size, says_weight
from .column_profile import MOST_NUMBER_CATEGORIES, Facts, Floats

FINE = 1e-3  # weights that were scaled have many decimals; a mean of 1 of coarser amounts is chance
BODY_CORRELATION = 0.3  # of ranks with those of a height, from which on a weight is that of a body
# The same times sqrt(n - 1), for a bare name (wt, weight): 1 in 16,000 without any tie; weights at birth have about 0.2
BODY_SCORE = 4.0
SHARES, ROUNDED_SHARES = 3, 0.01  # columns that add up to one total, but for this part of it: a budget
AN_AMOUNT = 'An amount? Then roles = ["key"], without drop'
NO_NOISE = ": dropped, as no weight gets noise"
OF_A_BODY = "named like a weight, and goes with a height beside it"
A_SURVEY_WEIGHT = 'A survey weight? Then roles = ["weight"]'
OF_TOTALS = f'A weight, or the share of a whole? Then roles = ["weight"] without drop. {AN_AMOUNT}'
_A_WEIGHT = 'A weight? Then give every record a positive one in the file, and it roles = ["weight"]'


def with_weights(drafts: Sequence[Draft]) -> list[Draft]:
    """Give the first fit weight its role; others are dropped, as noise on a weight would be a fault."""
    found, out = "", list[Draft]()
    for draft in drafts:
        why = _weight_reason(draft, drafts)
        if why == OF_A_BODY:
            out.append(
                draft.asked("body", why, ": taken for an amount, and masked", otherwise=A_SURVEY_WEIGHT)
            )
            continue
        if not why or draft.facts.distinct < 2:
            out.append(draft)
            continue
        draft = replace(draft, findings=tuple(one for one in draft.findings if one.kind != "few-values"))
        if not _is_fit(draft.facts):
            out.append(
                _without_weight(draft, f"{why}, but missing or not positive in places", NO_NOISE, _A_WEIGHT)
            )
        elif found:
            asks = ": dropped, as one weight leaves at most, and none gets noise"
            own = f'The one to use? Then roles = ["weight"] without drop, and drop {found}'
            out.append(_without_weight(draft, f"{why}, beside {found}", asks, own))
        else:
            found = draft.column.name
            out.append(_as_weight(draft, why))
    return out


def _without_weight(draft: Draft, found: str, asks: str, own: str) -> Draft:
    return draft.asked("weight", found, asks, otherwise=f"{own}. {AN_AMOUNT}", drop=True)


def _as_weight(draft: Draft, why: str) -> Draft:
    return draft.asked(
        "weight",
        f"{why}, and positive",
        ": taken for a survey weight",
        otherwise=AN_AMOUNT,
        figures={"reason": why},
        roles=frozenset({"weight"}),
    )


def with_totals(drafts: Sequence[Draft]) -> list[Draft]:
    """Drop numbers that add up to one total in classes, as weights of cells and shares of a whole do, and ask."""
    open_ones = [
        one for one in drafts if one.column.is_number and not one.column.drop and not one.column.roles
    ]
    found = class_totals(
        [draft.facts for draft in drafts],
        [draft.facts for draft in open_ones if not any(one.kind == "id" for one in draft.findings)],
    )
    return [
        draft.asked("weight", str(found[name]), NO_NOISE, otherwise=OF_TOTALS, drop=True)
        if (name := draft.facts.name) in found
        else draft
        for draft in drafts
    ]


def _weight_reason(draft: Draft, drafts: Sequence[Draft]) -> str:
    """Say why numbers may be survey weights: their name, their label, or a mean of exactly 1."""
    facts, column = draft.facts, draft.column
    if not column.is_number or column.drop or column.roles:
        return ""
    if says_weight(facts.name, facts.label):
        if _is_of_bodies(draft, drafts) or _is_share(draft, drafts):
            return ""
        return OF_A_BODY if _may_be_of_bodies(draft, drafts) else "named like a survey weight"
    return "with a mean of exactly 1, as weights are scaled" if _is_scaled(facts) else ""


def _is_fit(facts: Facts) -> bool:
    return not (facts.missing or facts.literals) and bool(facts.support[0] > 0)


def _is_scaled(facts: Facts) -> bool:
    """Whether positive fractions have a mean of 1 but for their rounding, which amounts have by no accident."""
    if (
        facts.whole
        or not _is_fit(facts)
        or facts.distinct <= MOST_NUMBER_CATEGORIES
        or facts.support[-1] < 1.5
    ):
        return False
    step = facts.unit or 1e-6
    if step > FINE:
        return False
    mean = float(facts.support @ facts.counts) / facts.records
    return bool(abs(mean - 1) <= 4 * step / np.sqrt(12 * facts.records))


def _is_of_bodies(draft: Draft, drafts: Sequence[Draft]) -> bool:
    """Whether a weight goes with a height beside it."""
    return any(one > BODY_CORRELATION for one, _ in _rank_correlations(draft, drafts))


def _may_be_of_bodies(draft: Draft, drafts: Sequence[Draft]) -> bool:
    """Whether a weight of a bare name, which may be any, goes with a height beyond chance, as those at birth do."""
    if not is_bare_weight(draft.facts.name):
        return False
    return any(one * np.sqrt(count - 1) > BODY_SCORE for one, count in _rank_correlations(draft, drafts))


def _rank_correlations(draft: Draft, drafts: Sequence[Draft]) -> Iterator[tuple[float, int]]:
    """Return the correlation of ranks with every height in the file, and the number of records that have both."""
    own = draft.facts.numbers
    for other in drafts:
        if own is None or other.facts.numbers is None or not says_size(other.facts.name):
            continue
        both = ~(np.isnan(own) | np.isnan(other.facts.numbers))
        first, second = (_mean_ranks(values[both]) for values in (own, other.facts.numbers))
        if np.count_nonzero(both) > 2 and np.ptp(first) > 0 and np.ptp(second) > 0:
            yield float(np.corrcoef(first, second)[0, 1]), int(np.count_nonzero(both))


def _mean_ranks(values: Floats) -> Floats:
    """Return ranks, of equal values their mean: the order of the file must not make any tie."""
    _, codes, counts = np.unique(values, return_inverse=True, return_counts=True)
    return np.asarray((np.cumsum(counts) - counts / 2)[codes.ravel()])


def _is_share(draft: Draft, drafts: Sequence[Draft]) -> bool:
    """Whether columns side by side that begin with one letter add up to one total, as the shares of a budget do."""
    first = draft.facts.name[:1].casefold()
    parts = [
        [*run] for key, run in groupby(drafts, lambda one: one.facts.name[:1].casefold()) if key == first
    ]
    alike = [one.facts.numbers for one in next(run for run in parts if draft in run)]
    if len(alike) < SHARES or any(numbers is None for numbers in alike):
        return False
    total = np.sum([numbers for numbers in alike if numbers is not None], axis=0)
    known = total[~np.isnan(total)]
    if not len(known) or not np.median(known) > 0:
        return False
    return bool(np.all(np.abs(known / np.median(known) - 1) <= ROUNDED_SHARES))

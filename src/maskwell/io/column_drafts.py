"""A column on its way into the schema, and the codes found among its numbers."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from ..schema import Column
from ..words.io import present_share, spike_phrase, word_phrase
from ..words.phrases import number_text
from .column_names import says_code, says_group, says_id, says_weight
from .column_profile import MOST_NUMBER_CATEGORIES, Counts, Facts, Floats

FEWEST_ROWS = 30  # records: fewer lie evenly too often
SURE_REPEATS = 14.0  # expected among amounts: none, or one, is then a chance of 1 in 80,000
MOST_UNNUMBERED = 0.05  # share of records without a number: a file put together of parts
MOST_PARTS = 3  # places where row numbers begin anew: a file put together of parts
FEW_STRAYS, FEW_STRAYS_SHARE = (
    5,
    0.01,
)  # records without a number that are mistakes in typing, the larger counts
NO_VALUE = {"na", "n/a", "nan", "null", "none", ".", "..", "?", "-", "missing", "unknown", "refused"}
OF_STRAYS = (
    'An amount? Then correct these in the file, and draft the schema anew. The id of each record? Then roles = ["id"], '
    "without drop"
)
CROWDED = 0.05  # share of records at the largest value, from which on classes of amounts end in "and more"
# A code is at least so many times as far from the values below it as ten of these are from one another at most: of
# eleven gaps by one exponential law the outermost is so in 2 / (11 x 12) = 1.5% of cases
FAR = 2.0
SHOWN = 5  # records named by their numbers
NEAR = 10  # values on a side that an end is compared with
UNEVEN = 1.63  # Kolmogorov's distance times sqrt(n), which 1 of 100 samples of an even law exceeds
_CODE = re.compile(r"9*[6-9]|7+|8+|-[1-9]|-(9+[0-9]|7+|8+)")  # 9, 98, 777; -1, -9, -97


@dataclass(frozen=True, slots=True)
class ColumnFinding:
    """Something the steward should know or decide.

    `found` says what there is, and `asks` goes on with what was taken for granted or is asked. `suggestion` is a line
    of the schema that may be switched on; `otherwise` says what to write where the answer that was taken is wrong.
    `others` are the columns that it speaks of beside its own, `figures` what was found as data, by the kind.
    """

    column: str | None
    kind: str
    found: str
    suggestion: str = ""
    otherwise: str = ""
    others: tuple[str, ...] = ()
    asks: str = ""
    figures: Mapping[str, Any] = field(default_factory=dict, hash=False)

    @property
    def text(self) -> str:
        """What was found and what is asked."""
        return f"{self.found}{self.asks}"

    @property
    def said(self) -> str:
        """The whole remark."""
        end = "" if self.text.endswith("?") else "."
        return f"{self.text}{end} {self.otherwise}" if self.otherwise else self.text


@dataclass(frozen=True, slots=True)
class Draft:
    """A column on its way into the schema, with what was found about it; `spikes` may be missing codes."""

    facts: Facts
    column: Column
    findings: tuple[ColumnFinding, ...] = ()
    spikes: tuple[float, ...] = ()

    def asked(
        self,
        what: str,
        found: str,
        asks: str = "",
        *,
        suggestion: str = "",
        otherwise: str = "",
        figures: Mapping[str, Any] | None = None,
        **changes: Any,
    ) -> Draft:
        """Add a finding, and change the column with it."""
        name = self.column.name
        finding = ColumnFinding(name, what, found, suggestion, otherwise, asks=asks, figures=figures or {})
        return replace(self, column=replace(self.column, **changes), findings=(*self.findings, finding))

    def as_text(self, what: str, found: str, asks: str = "", **changes: Any) -> Draft:
        """Add a finding that makes the column text, kept exactly as it is written."""
        return self.asked(what, found, asks, kind="text", unit=None, missing=(), categories=(), **changes)


def with_literals(draft: Draft) -> Draft:
    """Ask about words that stand among numbers; words that usually say that there is no value are told alone."""
    facts = draft.facts
    usual = [literal for literal in facts.literals if literal.casefold() in NO_VALUE]
    if usual:
        counts = [
            len(p) for word, p in zip(facts.literals, facts.literal_places, strict=True) if word in usual
        ]
        listed = ", ".join(json.dumps(literal, ensure_ascii=False) for literal in usual)
        share = present_share(sum(counts), facts.present)
        found = f"{share} of the values are {listed}, among numbers"
        draft = draft.asked("code", found, ": taken as missing; right?")
    for word, places in zip(facts.literals, facts.literal_places, strict=True):
        if word not in usual:
            figures: dict[str, Any] = {"word": word, "records": len(places), "first": int(places[0]) + 1}
            found = f"{word_phrase(**figures)}, a word among numbers"
            draft = draft.asked("word", found, ": taken as missing; right?", figures=figures)
    return draft


def with_strays(draft: Draft) -> Draft:
    """Drop numbers among which a few values are none, and name these: mistakes in typing make no text of an amount."""
    facts = draft.facts
    many = max(FEW_STRAYS, FEW_STRAYS_SHARE * facts.present)
    values = facts.distinct - len(np.unique(facts.category_codes[facts.strays]))
    named = says_code(facts.name, facts.label) or says_id(facts.name, facts.label) or says_group(facts.name)
    is_few = 0 < len(facts.strays) <= min(many, MOST_UNNUMBERED * facts.present)
    if not is_few or named or values <= MOST_NUMBER_CATEGORIES:
        return draft
    hold = "holds" if len(facts.strays) == 1 else "hold"
    text = f"{len(facts.strays):,} of {facts.records:,} records {hold} no number ({record_numbers(facts.strays)})"
    return draft.asked("stray", f"{text}, all others do", ": dropped", otherwise=OF_STRAYS, drop=True)


def with_spikes(draft: Draft) -> Draft:
    """Ask about values that look like codes: frequent nines, or far from the rest."""
    facts, is_category = draft.facts, draft.column.kind == "category"
    spikes = _spikes(facts.support, facts.counts)
    if says_weight(facts.name, facts.label):  # a weight may lie far from the rest and be no code
        spikes = tuple(one for one in spikes if _is_code(one))
    if not spikes:
        return draft
    counts = facts.counts[np.searchsorted(facts.support, spikes)].tolist()
    written = [number_text(value) for value in spikes]
    said: dict[str, Any] = {
        "codes": tuple(map(float, spikes)),
        "counts": tuple(counts),
        "present": facts.present,
    }
    may_be_top = not is_category and bool(spikes[-1] == facts.support[-1])
    asks = ": a code for no value? Then switch on missing"
    if is_category:
        asks += " and take it out of the categories"
    elif may_be_top:
        asks += f"; a top code? Then add top = {written[-1]}"
    listed = ", ".join(f'"{code}"' if is_category else code for code in written)
    return replace(
        draft.asked(
            "spike",
            f"of the values {spike_phrase(**said)}, apart from the rest",
            asks,
            suggestion=f"missing = [{listed}]",
            figures={**said, "may_be_top": may_be_top},
        ),
        spikes=spikes,
    )


def _spikes(support: Floats, counts: Counts) -> tuple[float, ...]:
    """Values that look like codes: conventional ones below zero or far out, frequent ones far from the rest."""
    found: set[float] = set()
    negative = support[support < 0]
    are_few = 1 <= len(negative) <= 5 and len(support) >= len(negative) + 2
    if are_few and all(map(_is_code, negative)) and _is_apart(support, counts, len(negative)):
        found |= set(negative.tolist())
    for sign in (1, -1):
        kept = ~np.isin(support, list(found))
        found |= set(_far_out(support[kept], counts[kept], sign)) - {0.0}
    return tuple(sorted(found | _frequent_nines(support, counts)))


def _is_apart(support: Floats, counts: Counts, negative: int) -> bool:
    """Whether values below 0 are more than a step from the others, or too frequent to be the lowest of them."""
    steps = np.diff(support[negative : negative + 11])
    gap = support[negative] - support[negative - 1]
    return bool(gap > 1.5 * np.median(steps)) or any(_in_excess(counts, i, 3) for i in range(negative))


def _frequent_nines(support: Floats, counts: Counts) -> set[float]:
    """Codes such as 99 near the upper end, or 99999 anywhere, that are too frequent for their place.

    Those near the end, of which each is compared with what is no such code, must be apart from the others too: hours of
    90, 96, 98 and 99 and more go on to their end, and a pile-up there is a top code.
    """
    near_end = [
        i for i in range(max(5, len(support) - 5), len(support)) if support[i] > 9 and _is_code(support[i])
    ]
    inside = np.flatnonzero(np.isin(support, [10.0**k - 1 for k in range(4, 10)])).tolist()
    last = len(support) - 1
    piled = [i for i in {*near_end, *inside} if i and _in_excess(*_without(counts, near_end, i), 3)]
    apart = [i for i in piled if (i in inside and i < last) or _is_beyond(support, i, piled)]
    return {float(support[i]) for i in apart}


def _without(counts: Counts, others: Sequence[int], i: int) -> tuple[Counts, int]:
    """Return counts without those of other codes, and the place of a value among them."""
    gone = [other for other in others if other != i]
    return np.delete(counts, gone), i - sum(other < i for other in gone)


def _is_beyond(support: Floats, i: int, codes: Sequence[int]) -> bool:
    """Whether a value lies farther from the values below it that may be no codes than these from one another."""
    below = np.delete(support[:i], [code for code in codes if code < i])[-NEAR - 1 :]
    return len(below) < 2 or bool(support[i] - below[-1] >= FAR * np.diff(below).max())


def _is_code(value: float) -> bool:
    return bool(_CODE.fullmatch(number_text(float(value))))


def _far_out(support: Floats, counts: Counts, sign: int) -> list[float]:
    """Up to five values beyond a gap at one end, if all of them are conventional codes or frequent ones."""
    outward, often = (sign * support)[::sign], (counts >= max(5, 0.01 * counts.sum()))[::sign]
    for k in range(1, min(6, len(outward) - 1)):
        rest, out = outward[:-k], outward[-k:]
        gap, step = out[0] - rest[-1], np.diff(rest).max()
        is_wide = gap > (rest[-1] - rest[0]) / 2 and gap >= 2 * step
        all_codes = bool(out[0] > 0) and all(_is_code(sign * value) for value in out)
        if (all_codes and (is_wide or gap >= 5 * step)) or (is_wide and len(rest) >= 10 and often[-k:].all()):
            return [float(sign * value) for value in out]
    return []


def _in_excess(counts: Counts, i: int, times: float = 5) -> bool:
    """Whether a value is so many times as frequent as its ten neighbours on either side."""
    near = np.r_[counts[max(0, i - NEAR) : i], counts[i + 1 : i + 1 + NEAR]]
    return bool(counts[i] >= max(5, 0.001 * counts.sum(), times * near.mean()) and counts[i] > near.max())


def with_pile_ups(draft: Draft) -> Draft:
    """Ask whether a pile-up at an end is a top or bottom code; of one at 0, anywhere, whether these are real zeros."""
    kept = ~np.isin(draft.facts.support, draft.spikes)
    support, counts = draft.facts.support[kept], draft.facts.counts[kept]
    if len(support) <= 10:
        return draft
    zero = np.flatnonzero(support == 0)
    if len(zero) and _in_excess(counts, int(zero[0])):
        count = int(counts[zero[0]])
        asks = (
            ": real zeros? Then nothing is to do, noise hides who has none; if 0 says that there is no value, "
            "add missing = [0]"
        )
        found = f"{present_share(count, draft.facts.present)} of the values are 0"
        draft = draft.asked("zeros", found, asks, figures={"share": count / draft.facts.present})
    for what, end, i in (("top", "largest", -1), ("bottom", "smallest", 0)):
        if support[i] == 0:
            continue
        if _in_excess(counts, i % len(counts)) or (what == "top" and _is_crowded_top(counts)):
            draft = _with_pile_up(draft, what, end, float(support[i]), int(counts[i]))
    return draft


def _with_pile_up(draft: Draft, what: str, end: str, value: float, count: int) -> Draft:
    """Ask whether a value at an end, with many records, is a top or bottom code."""
    shown, may_be_missing = number_text(value), what == "top" and _is_code(value)
    asks = f": a {what} code? Then switch on {what}"
    if may_be_missing:
        asks += f"; a code for no value? Then add missing = [{shown}]"
    return draft.asked(
        "pile-up",
        f"{present_share(count, draft.facts.present)} of the values are {shown}, the {end}",
        asks,
        suggestion=f"{what} = {shown}",
        figures={"end": what, "share": count / draft.facts.present, "may_be_missing": may_be_missing},
    )


def _is_crowded_top(counts: Counts) -> bool:
    """Whether the largest value has many records, more than any near it and twice those right below: a class on top."""
    near = counts[-11:-1]
    enough = max(5, CROWDED * counts.sum(), 2 * near[-3:].mean())
    return bool(counts[-1] >= enough and counts[-1] > near.max())


def with_unit(draft: Draft) -> Draft:
    """Say in which unit the numbers come."""
    facts = draft.facts
    support = facts.support[~np.isin(facts.support, draft.spikes)]
    if facts.unit is None:
        return draft.asked(
            "unit", "more than 6 decimals, so no unit is proposed", ": which one may be released?"
        )
    if not facts.whole:
        return draft.asked(
            "unit", f"all values are multiples of {number_text(facts.unit)}", ": the unit proposed"
        )
    coarse = next(
        (10**k for k in range(6, 0, -1) if not (np.any(support[:100] % 10**k) or np.any(support % 10**k))), 1
    )
    if coarse == 1 or len(support) < 10:
        return draft
    asks = ": released in that unit? Then switch on unit"
    found = f"all values are multiples of {coarse}"
    return draft.asked("unit", found, asks, suggestion=f"unit = {coarse}")


def is_labelled(draft: Draft) -> bool:
    """Whether whole numbers (floats too) look like identifiers: few repeat, and they are made like labels.

    At least 99% of the values present differ, codes aside, none is negative, and there are 20 or more. They
    are labels if 99% have the same number of digits, 8 or more; or 6 or 7 and their middle half takes 40% of
    the range from the 1st to the 99th percentile (half of it in numbers given out evenly, 30% or less in
    amounts, which crowd in the middle or at the lower end); or if half of them follow one another in the same
    step, a sequence with gaps. Incomes, taxes and weights differ in their digits.
    """
    facts = draft.facts
    kept = ~np.isin(facts.support, draft.spikes)
    values = facts.support[kept]
    if (
        facts.unit != 1.0
        or len(values) < 20
        or values[0] < 0
        or len(values) < 0.99 * facts.counts[kept].sum()
    ):
        return False
    often = np.unique(np.diff(values), return_counts=True)[1].max()
    return bool(2 * often >= len(values)) or _has_fixed_length(values)


def id_faults(draft: Draft) -> str:
    """Say which records repeat an earlier value of a column, and how many have none; nothing where all have their own.

    Codes among its numbers are no values.
    """
    facts = draft.facts
    if facts.numbers is None:
        is_known = facts.category_codes >= 0
    else:
        is_known = ~(np.isnan(facts.numbers) | np.isin(facts.numbers, draft.spikes))
    known, without = np.flatnonzero(is_known), np.flatnonzero(~is_known)
    values = facts.category_codes if facts.numbers is None else facts.numbers
    again = np.delete(known, np.unique(values[known], return_index=True)[1])
    said = list[str]()
    if len(again):
        verb = "repeats" if len(again) == 1 else "repeat"
        said.append(f"{len(again):,} of {facts.records:,} records {verb} a value ({record_numbers(again)})")
    if len(without):
        said.append(
            f"{len(without):,} {'has' if len(without) == 1 else 'have'} none ({record_numbers(without)})"
        )
    return " and ".join(said)


def record_numbers(places: Counts) -> str:
    """Name the first records by their numbers."""
    shown = ", ".join(f"{place + 1:,}" for place in places[:SHOWN])
    more = ", ..." if len(places) > SHOWN else ""
    return f"record{'s' * (len(places) > 1)} {shown}{more}"


def are_row_numbers(facts: Facts) -> bool:
    """Whether whole numbers are those of the rows of a larger file, of which these records are a part.

    Of n independent amounts on R whole numbers n^2 / 2R pairs or more are equal on average, whatever their law (by
    Cauchy's inequality the sum of p^2 is at least 1 / R): where nearly none is, they were given out one by one. In a
    small part of a large file that says little; but there they rise from record to record, and lie as evenly as rows do
    (Kolmogorov's distance from the uniform law), where a file sorted by an amount has it crowded.
    """
    if facts.unit != 1.0 or facts.numbers is None or facts.literals or facts.support[0] < 0:
        return False
    values = facts.numbers[~np.isnan(facts.numbers)]
    n, span = len(values), float(facts.support[-1] - facts.support[0]) + 1
    if n < FEWEST_ROWS or facts.missing > MOST_UNNUMBERED * facts.records:
        return False
    expected, repeats = n**2 / (2 * span), n - facts.distinct
    pairs = float((facts.counts * (facts.counts - 1.0)).sum()) / 2
    if expected >= SURE_REPEATS and pairs <= expected / 10 and repeats <= MOST_UNNUMBERED * n:
        return True
    falls = int(np.count_nonzero(np.diff(values) <= 0))
    return falls <= MOST_PARTS and repeats <= falls and _are_even(facts.support)


def _are_even(values: Floats) -> bool:
    """Whether different numbers lie evenly between the least and the largest, as far as chance allows."""
    places = (values - values[0]) / max(values[-1] - values[0], 1.0)
    ranks = np.arange(len(values)) / (len(values) - 1)
    return bool(np.abs(places - ranks).max() * np.sqrt(len(values)) <= UNEVEN)


def has_label_digits(values: Floats) -> bool:
    """Whether different numbers are made like labels: as many digits each, and not rounded as amounts are."""
    if len(values) < 20 or values[0] < 0 or not _has_fixed_length(values):
        return False
    return bool(np.count_nonzero(values % 10 == 0) < 0.2 * len(values))  # a tenth in numbers given out evenly


def _has_fixed_length(values: Floats) -> bool:
    digits = np.bincount(np.floor(np.log10(np.maximum(values, 1))).astype(int) + 1)
    usual = int(np.argmax(digits))
    if usual < 6 or digits[usual] < 0.99 * len(values):
        return False
    low, lower, upper, high = np.quantile(values, [0.01, 0.25, 0.75, 0.99])
    return usual >= 8 or bool(upper - lower >= 0.4 * (high - low))

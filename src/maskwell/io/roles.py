"""What each column is for: the id, groups of records, survey weights, amounts to be masked, categories to match by.

An id or a group is known by its name or its label, or by its values: every record has its own, made like a label; or
they repeat in runs, each value in one run of records, as the members of a household or the years of a person do. Noise
is never proposed for one, nor for a weight: what stays in doubt is dropped, and asked.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from ..schema import Column
from .column_drafts import Draft, are_row_numbers, has_label_digits, id_faults, is_labelled
from .column_names import (
    says_amount,
    says_code,
    says_first_name,
    says_group,
    says_id,
    says_personal,
    says_record,
    says_unit,
    says_weight,
)
from .column_profile import LARGEST_CATEGORY_SHARE, MOST_NUMBER_CATEGORIES, Facts
from .constant_columns import told_by_value
from .household_companions import with_companions
from .row_repeats import row_repeats, standing_together
from .survey_weights import with_totals, with_weights

MOST_BLOCK_VALUES = 60
NAMED = 7  # more than all else that speaks for an id
# Different values, and records to each: one person in a household is no run
FEWEST_RUNS, LEAST_RUN = 10, 1.25
SHOWN = 4  # columns that a group gives, named in a question
LONGEST_RUN = 0.35  # share of records: a longer one is a frequent amount in a sorted file
MOST_WAVES = 40  # of a panel: an amount of few values can occur as often by design
BALANCED = 0.95  # share of values that occur as often as most do
BROKEN_RUNS = 0.01  # share of values that may come in a second run: a file put together of parts
TOGETHER = 0.5  # of records that stand with their like: two to a run, of codes in a file that is sorted but for a part
FEWEST_UNITS = 6  # different values: a "firm" of two or three is a kind of firm
FEW_REPEATS = 0.05  # share of records: an id that so few repeat is an id with faults, not a group
TOGETHER_ANSWER = (
    "Records that belong together (a household, an employer, a school, a person over time)? Then "
    'roles = ["group"] with drop = true.'
)
ID_ANSWER = "The id of each record? Then"
NO_AMOUNT = (
    f'{TOGETHER_ANSWER} {ID_ANSWER} roles = ["id"]. A category? Then kind = "category" with roles = ["block"], '
    "without drop"
)  # of texts
CORRECT_FIRST = "correct these in the file first, and give it "
OF_NUMBERS = (
    "Records that belong together (a household, an employer, a school, a person over time) by it? Then "
    'kind = "text" with roles = ["group"] and drop = true, without unit. The id of each record? Then kind = "text" '
    'with roles = ["id"], without unit and drop. An amount of each record by itself, that noise on each hides? Then '
    'roles = ["key"], without drop'
)


def _three_answers(*, has_faults: bool = False) -> str:
    """Say what numbers may be that are made like identifiers; an id only once its faults are corrected."""
    first = CORRECT_FIRST * has_faults
    amount = 'An amount? Then kind = "integer" with roles = ["key"]'
    return f'{TOGETHER_ANSWER} {ID_ANSWER} {first}roles = ["id"]. {amount}'


def _text_answers(*, has_faults: bool = False) -> str:
    """Say what texts may be of which every record has its own."""
    name = "A name, or words of the respondent? Then leave it dropped: nothing masks a text"
    return f'{ID_ANSWER} {CORRECT_FIRST * has_faults}roles = ["id"], without drop. {name}'


def with_roles(drafts: list[Draft]) -> list[Draft]:
    """Propose roles; columns that may identify or weigh are found before amounts are."""
    drafts = [_with_group(_without_names(draft)) for draft in drafts]
    drafts = [_with_times(draft, drafts) for draft in drafts]
    scores = [_id_score(draft) for draft in drafts]
    best = int(np.argmax(scores)) if any(scores) else None
    drafts = [_with_id(draft, scores[i], i == best) for i, draft in enumerate(drafts)]
    drafts = [_with_label(draft, best is not None) for draft in drafts]
    drafts = with_totals(with_weights(drafts))
    drafts = [_with_what_it_tells(draft, drafts) for draft in drafts]
    groups = [draft.facts for draft in drafts if "group" in draft.column.roles]
    others = [draft.facts for draft in drafts if "group" not in draft.column.roles]
    drafts = with_companions([_with_repeats(draft, groups, others) for draft in drafts], OF_NUMBERS)
    return [_with_use(draft) for draft in drafts]


def _is_nominal(draft: Draft) -> bool:
    """Whether the values can be names of something: text, or whole numbers without codes among them."""
    facts = draft.facts
    numbered = facts.unit == 1.0 or (says_group(facts.name) and facts.unit is not None and in_runs(facts))
    is_name = facts.shape == "text" or (numbered and not facts.literals)
    return is_name and not draft.column.drop and not draft.column.roles and facts.distinct > 1


def _without_names(draft: Draft) -> Draft:
    """Drop what identifies persons by itself, however often it repeats."""
    facts = draft.facts
    many = facts.distinct > MOST_NUMBER_CATEGORIES
    if facts.shape != "text" or not many or not _is_nominal(draft) or not says_personal(facts.name):
        return draft
    if facts.distinct == facts.records:
        return draft
    bare = replace(draft, findings=())
    found = "named like what identifies persons (a name, an address)"
    if facts.present >= LEAST_RUN * facts.distinct and not says_first_name(facts.name):
        found += ", with values that stand for several records"
        asks, group = ": taken for a group, and dropped", frozenset({"group"})
        return bare.as_text("group", found, asks, otherwise=NO_AMOUNT, roles=group, drop=True)
    return bare.as_text("id", found, ": dropped, as proposed?", drop=True)


# Groups.


def _with_group(draft: Draft) -> Draft:
    """Propose a group, dropped, where a name or runs speak for one and values repeat."""
    facts = draft.facts
    repeats = facts.present - facts.distinct
    if not _is_nominal(draft) or repeats <= 0:
        return draft
    few, named = facts.distinct <= MOST_NUMBER_CATEGORIES, says_id(facts.name, facts.label)
    draft = _with_few_numbers(draft) if named else draft
    named_unit = facts.distinct >= FEWEST_UNITS and says_unit(facts.name)
    if few and draft.column.kind == "category" and not named_unit:
        found, asks = "named like an id, with few values", ": taken for a category"
        is_asked = named and facts.distinct > 2
        return draft.asked("named-id", found, asks, otherwise=_three_answers()) if is_asked else draft
    if repeats < FEW_REPEATS * facts.records and named:
        return draft  # an id with faults
    why = "named like a group of records" if named_unit else _group_reason(facts, named)
    if not why:
        return draft
    found, asks = f"{why}, with values that repeat", ": taken for a group, and dropped"
    bare, answers = replace(draft, findings=()), NO_AMOUNT if facts.shape == "text" else _three_answers()
    return bare.as_text("group", found, asks, otherwise=answers, roles=frozenset({"group"}), drop=True)


def _with_few_numbers(draft: Draft) -> Draft:
    """Take few whole numbers that are written with decimals for categories, as those without are."""
    facts = draft.facts
    few = facts.distinct <= min(MOST_NUMBER_CATEGORIES, LARGEST_CATEGORY_SHARE * facts.records)
    if draft.column.kind == "category" or not few or facts.unit != 1.0 or not facts.texts:
        return draft
    column = Column(facts.name, "category", categories=facts.texts)
    return replace(draft, column=column, findings=())


def _with_times(draft: Draft, drafts: Sequence[Draft]) -> Draft:
    """Take no number for a group that a time or an amount beside it gives; it stays dropped, and is asked about."""
    facts = draft.facts
    is_named = says_id(facts.name, facts.label) or says_group(facts.name) or says_unit(facts.name)
    if "group" not in draft.column.roles or is_named or facts.shape != "number":
        return draft
    of = next((other.facts.name for other in drafts if _gives(other.facts, facts)), None)
    if of is None:
        return draft
    found = f"the same for all records with one {of}, so that noise on each would average out"
    bare, answers = replace(draft, findings=()), _three_answers()
    return bare.as_text("group", found, ": dropped", otherwise=answers, roles=frozenset(), drop=True)


def _with_what_it_tells(draft: Draft, drafts: Sequence[Draft]) -> Draft:
    """Take whole numbers for a group of which several other columns are functions, as of the id of a class."""
    facts, column = draft.facts, draft.column
    is_open = column.is_number and _is_nominal(draft) and not any(one.kind == "id" for one in draft.findings)
    if not is_open or facts.distinct <= MOST_NUMBER_CATEGORIES or says_amount(facts.name):
        return draft
    told = told_by_value(facts, [other.facts for other in drafts])
    if not told:
        return draft
    shown = ", ".join(told[:SHOWN]) + f" and {len(told) - SHOWN} more" * (len(told) > SHOWN)
    found = f"records with one value have one {shown} too, as with the id of a group"
    bare, asks = replace(draft, findings=()), ": taken for a group, and dropped"
    group = frozenset({"group"})
    return bare.as_text("group", found, asks, otherwise=_three_answers(), roles=group, drop=True)


def _with_repeats(draft: Draft, groups: Sequence[Facts], others: Sequence[Facts]) -> Draft:
    """Drop numbers that repeat the record above as what a household shares does: noise on each would average out."""
    column = draft.column
    if column.drop or column.roles or not column.is_number or any(one.kind == "id" for one in draft.findings):
        return draft
    found = row_repeats(draft.facts, groups, others)
    if found is None:
        return draft
    return replace(draft, findings=()).asked(
        "repeats",
        f"{found}, as it is with what records that belong together share",
        ": dropped",
        otherwise=OF_NUMBERS,
        figures={"share": found.share, "chance": found.chance},
        drop=True,
    )


def _gives(time: Facts, facts: Facts) -> bool:
    """Whether a column named as a time or an amount, with values that repeat, gives another."""
    if time is facts or time.shape != "number" or not says_amount(time.name) or time.missing:
        return False
    if time.distinct < FEWEST_RUNS or time.present < LEAST_RUN * time.distinct:
        return False
    codes, values = time.category_codes, facts.category_codes
    first = np.full(time.distinct, -1, np.int64)
    first[codes[::-1]] = values[::-1]
    return bool(np.array_equal(first[codes], values))


def _group_reason(facts: Facts, named: bool) -> str:
    """Say why a column whose values repeat may tell which records belong together; nothing where it may not."""
    if named:
        return "named like an id"
    if says_group(facts.name) and facts.distinct > MOST_NUMBER_CATEGORIES:
        return "named like a group of records"
    is_code = says_code(facts.name, facts.label) and facts.distinct <= MOST_BLOCK_VALUES
    if says_amount(facts.name) or is_code or says_weight(facts.name, facts.label):
        return ""
    if in_runs(facts):
        return "equal values stand in runs"
    if together := _together(facts):
        return together
    if is_balanced(facts):
        return "each value as often as any other"
    if (
        facts.shape == "number"
        and facts.present >= LEAST_RUN * facts.distinct
        and has_label_digits(facts.support)
    ):
        return "numbers made like identifiers"
    return ""


def in_runs(facts: Facts) -> bool:
    """Whether equal values stand together, each in a run of its own, and there are many such runs."""
    codes = facts.category_codes
    codes = codes[codes >= 0]
    if (
        facts.distinct <= MOST_NUMBER_CATEGORIES
        or facts.distinct < FEWEST_RUNS
        or len(codes) < LEAST_RUN * facts.distinct
    ):
        return False
    runs = 1 + int(np.count_nonzero(np.diff(codes)))
    is_long = int(np.bincount(codes).max()) > LONGEST_RUN * len(codes)
    return runs <= (1 + BROKEN_RUNS) * facts.distinct and not is_long


def _together(facts: Facts) -> str:
    """Say that equal values of too many categories to leave in clear stand together, in more runs than one each."""
    is_code = facts.shape == "text" or says_code(facts.name, facts.label)
    found = standing_together(facts) if is_code and facts.distinct > MOST_BLOCK_VALUES else None
    return str(found) if found is not None and found.beyond >= TOGETHER else ""


def is_balanced(facts: Facts) -> bool:
    """Whether nearly all values occur equally often, twice or more, as persons do in a panel of waves."""
    codes = facts.category_codes
    counts = np.bincount(codes[codes >= 0])
    usual = int(np.bincount(counts).argmax())
    is_even = bool(np.mean(counts == usual) >= BALANCED)
    return facts.distinct > MOST_NUMBER_CATEGORIES and 2 <= usual <= MOST_WAVES and is_even


# The id.


def _id_score(draft: Draft) -> int:
    """Zero unless every record has its own value; numbers need a name or a sequence to be more than amounts."""
    facts = draft.facts
    is_text = facts.shape == "text"
    if (
        not _is_nominal(draft)
        or facts.distinct < facts.records
        or facts.is_float
        or not (is_text or facts.whole)
    ):
        return 0
    named = says_record(facts.name) or says_id("", facts.label)
    grouped = says_group(facts.name)  # the only member of each group
    in_sequence = facts.shape == "number" and facts.support[-1] - facts.support[0] == facts.records - 1
    in_sequence = in_sequence and not says_amount(facts.name)
    coded = facts.shape == "number" and says_code(facts.name, facts.label)
    return NAMED * named + 3 * grouped + 2 * in_sequence + (is_text or coded)


def _with_id(draft: Draft, score: int, best: bool) -> Draft:
    facts, bare = draft.facts, replace(draft, findings=())
    answers = _text_answers if facts.shape == "text" else _three_answers
    if best:
        otherwise = "" if score >= NAMED else answers()
        found = "every record has its own value"
        return bare.as_text("id", found, ": the id?", otherwise=otherwise, roles=frozenset({"id"}))
    if score:
        found = "every record has its own value, as an id has"
        return bare.as_text("id", found, ": dropped, as proposed?", otherwise=answers(), drop=True)
    if says_id(facts.name, facts.label) and _is_nominal(draft) and draft.column.kind != "category":
        if faults := id_faults(draft):
            found, corrected = f"named like an id, but {faults}", answers(has_faults=True)
            return bare.as_text("id", found, ": dropped; correct it?", otherwise=corrected, drop=True)
        found = "named like an id, and every record has its own value"
        return bare.as_text("id", found, ": dropped, as proposed?", otherwise=answers(), drop=True)
    return draft


def _with_label(draft: Draft, has_id: bool) -> Draft:
    """Ask about numbers that look like identifiers; beside an id they are proposed to be dropped."""
    column, facts = draft.column, draft.facts
    if column.drop or column.roles or not column.is_number or says_weight(facts.name, facts.label):
        return draft
    faults = ""
    if is_labelled(draft):
        faults = id_faults(draft)
        own = "every record has its own value, as an identifier has"
        what = f"nearly {own}, but {faults}" if faults else own
    elif are_row_numbers(facts) and not says_amount(facts.name):
        what = "whole numbers as the rows of a larger file have"
    else:
        return draft
    has_faults = bool(faults)
    if has_id:
        bare, answers = replace(draft, findings=()), _three_answers(has_faults=has_faults)
        return bare.as_text("id", what, ": dropped, as proposed?", otherwise=answers, drop=True)
    role = "role id, once these are corrected in the file" if has_faults else "role id"
    asks = f": is it one? Then drop = true or {role}; else it leaves in clear unless masked"
    return draft.asked("id", what, asks, suggestion="drop = true", figures={"has_faults": has_faults})


# Amounts and categories.


def _with_use(draft: Draft) -> Draft:
    facts, column = draft.facts, draft.column
    is_open = any(finding.kind == "id" for finding in draft.findings)
    if (
        is_open
        or column.drop
        or column.roles
        or (facts.distinct + len(facts.literals) <= 1 and column.kind != "text")
    ):
        return draft
    if column.kind == "text":
        at = f" (record {facts.stray:,} is the first that is no number)" if facts.stray else ""
        return draft.asked("text", f"text that cannot be masked{at}", ": dropped, as proposed?", drop=True)
    if column.is_number:
        return replace(draft, column=replace(column, roles=frozenset({"key"})))
    if len(column.categories) <= MOST_BLOCK_VALUES:
        return replace(draft, column=replace(column, roles=frozenset({"block"})))
    found = f"{len(column.categories)} categories are too many for a block"
    return draft.asked("category", found, ": group them?")

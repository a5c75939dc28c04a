"""Columns that say again what another column, or another row of the same group, says.

Amounts: one noise more on one value. Categories that another gives (dummies of a year) say nothing new, and where both
are changed at random the change of one undoes that of the other; a lag ties the rows of a dropped group together.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from .column_numbers import are_numbers, class_numbers, code_numbers, group_codes, label_numbers
from .dependence import MOST_STRAYS, classes_give, form_of, gives, is_function
from .integer_parts import integer_parts
from .questions import KEPT_ROLES, DraftAnswer, Question
from .row_ties import row_ties, told_by_time

if TYPE_CHECKING:
    from ..table import Table

MOST_COMPARED = 60  # columns: all pairs of more would take long
NEIGHBOURS = 5  # columns before one in the file, with which it is compared where there are more


def without_copies(table: Table) -> list[DraftAnswer]:
    """Drop columns that rank the records as an earlier one does: a copy, a logarithm, a square."""
    used = [c for c in table.schema.columns if c.is_number and not c.drop and not c.roles & KEPT_ROLES]
    names = [column.name for column in used]
    values = table.values(names) if names else np.empty((0, 0))
    answers, gone = [], set[int]()
    for later in range(1, len(names)):
        first = 0 if len(names) <= MOST_COMPARED else max(0, later - NEIGHBOURS)
        of = next(
            (i for i in range(first, later) if i not in gone and is_function(values[:, i], values[:, later])),
            None,
        )
        if of is not None:
            gone.add(later)
            form = form_of(values[:, of], values[:, later])
            taken = f"{_function_words(names[of], form)}: dropped, as the noise of one would undo that of the other"
            computed = f"Analysts can compute it from {names[of]}; to" if form else "To"
            otherwise = f"{computed} keep it, drop {names[of]} in its place"
            made = replace(used[later], drop=True, roles=frozenset())
            question = Question(names[later], taken, otherwise)
            answers.append(DraftAnswer(made, "near-duplicate", question, copy_of=names[of]))
    return answers


def _function_words(name: str, form: str) -> str:
    """Say that a column is a function of another, and which; where none is known, that each gives the other."""
    known = f"one value for each value of {name} and back, in all records but {MOST_STRAYS:.0%} at most"
    return f"a function of {name} ({form})" if form else known


def without_parts(table: Table) -> list[DraftAnswer]:
    """Drop columns that are a part of another's digits: the hour of a time, the first digits of a code."""
    schema = table.schema
    numbers = {c.name: table.floats(c.name) for c in schema.columns if c.is_number and not c.drop}
    wholes = {name: x for name, x in numbers.items() if not schema[name].roles & KEPT_ROLES}
    coded = [c for c in schema.columns if c.kind == "category" and not c.drop and are_numbers(c.categories)]
    parts = integer_parts(wholes | {c.name: code_numbers(table, c.name) for c in coded}, wholes)
    answers = []
    for name, part in parts.items():
        taken = f"{part}: dropped, as it tells that part of {part.of} whatever its noise"
        otherwise = f"Analysts can compute it from {part.of}; to keep it, drop {part.of} in its place"
        made = replace(schema[name], drop=True, roles=frozenset())
        question = Question(name, taken, otherwise)
        answers.append(DraftAnswer(made, "near-duplicate", question, given_by=part.of))
    return answers


def without_functions(table: Table) -> list[DraftAnswer]:
    """Drop amounts that are the same wherever another amount is, whose values repeat: the tax by the price of a state.

    Such columns are one value in two forms (of a place, a firm, a price list), so that noise on each is two readings.
    """
    names = [c.name for c in table.schema.columns if "key" in c.roles and c.is_number and not c.drop]
    if len(names) < 2 or len(names) > MOST_COMPARED:
        return []
    answers, gone = list[DraftAnswer](), set[str]()
    codes = {name: group_codes(table, name) for name in names}
    for name in reversed(names):
        values = table.floats(name)
        able = (one for one in names if one != name and one not in gone)
        of = next((one for one in able if gives(codes[one], values)), None)
        if of is None:
            continue
        gone.add(name)
        taken = f"the same for all records with one {of}: dropped, as noise on both would be two readings of one value"
        question = Question(name, taken, f"Wanted in the release? Then drop {of} in its place")
        made = replace(table.schema[name], drop=True, roles=frozenset())
        answers.append(DraftAnswer(made, "near-duplicate", question))
    return answers[::-1]


def given_categories(table: Table) -> dict[str, str]:
    """Return the categories that another one gives, of several the coarsest; of a pair that says the same the later."""
    names = [c.name for c in table.schema.columns if c.kind == "category" and not c.drop]
    if len(names) > MOST_COMPARED or not len(table):
        return {}
    codes = {name: class_numbers(table, name).astype(np.int64) for name in names}
    sizes = {name: len(np.unique(one)) for name, one in codes.items()}
    found = dict[str, str]()
    for name in reversed(names):
        able = sorted((one for one in codes if one != name and one not in found), key=lambda one: sizes[one])
        finer = (one for one in able if sizes[one] >= sizes[name])
        of = next((one for one in finer if classes_give(codes[one], codes[name])), None)
        if of is not None:
            found[name] = of
    return {name: found[name] for name in names if name in found}


def without_given(table: Table) -> list[DraftAnswer]:
    """Drop categories that another one gives: dummies of a year, regions of a state."""
    answers = []
    for name, of in given_categories(table).items():
        taken = f"the same for all records with one {of}: dropped, as it says nothing that {of} does not"
        otherwise = f"Analysts can compute it from {of}; to keep it, drop {of} in its place"
        made = replace(table.schema[name], drop=True, roles=frozenset())
        question = Question(name, taken, otherwise)
        answers.append(DraftAnswer(made, "near-duplicate", question, given_by=of))
    return answers


def without_lags(table: Table, copies: Mapping[str, str]) -> list[DraftAnswer]:
    """Drop what stands in another row of a dropped group too: a lag, or a change since the row before.

    `copies` are dropped columns, each with the one that it is a function of.
    """
    schema, answers = table.schema, dict[str, DraftAnswer]()
    amounts = [c.name for c in schema.columns if "key" in c.roles and c.is_number and not c.drop]
    classes = [c.name for c in schema.columns if c.kind == "category" and not c.drop]
    labels = [name for name in classes if not are_numbers(schema[name].categories)]
    words = {name: f"{of} (as {name})" for name, of in copies.items() if of in amounts}
    for group in (c.name for c in schema.columns if "group" in c.roles and c.drop and len(table)):
        groups = group_codes(table, group)
        numbers = {name: table.floats(name) for name in (*amounts, *words)}
        numbers |= label_numbers(table, classes if len(classes) <= MOST_COMPARED else ())
        of_time = told_by_time(groups, numbers, classes)
        numbers = {name: x for name, x in numbers.items() if name not in (*of_time, *answers)}
        sought = [name for name in schema.names if name in numbers and name not in words]
        for name, tie in row_ties(groups, numbers, sought, words, labels).items():
            taken = f"{tie.words(group)}: dropped, as it puts the records of a {group} together again"
            otherwise = (
                "Wanted? Then drop what it is of in its place. Chance? Then take drop out of the schema"
            )
            made = replace(schema[name], drop=True, roles=frozenset())
            answers[name] = DraftAnswer(made, "shared", Question(name, taken, otherwise))
    return list(answers.values())

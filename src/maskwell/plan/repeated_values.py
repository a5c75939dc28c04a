"""Amounts that say again what another column, or another row of the same group, says: one noise more on one value."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from .column_numbers import group_codes
from .dependence import gives
from .questions import Answer, Question
from .row_ties import row_ties

if TYPE_CHECKING:
    from ..table import Table

MOST_COMPARED = 60  # columns: all pairs of more would take long


def without_functions(table: Table) -> list[Answer]:
    """Drop amounts that are the same wherever another amount is, whose values repeat: the tax by the price of a state.

    Such columns are one value in two forms (of a place, a firm, a price list), so that noise on each is two readings.
    """
    names = [c.name for c in table.schema.columns if "key" in c.roles and c.is_number and not c.drop]
    if len(names) < 2 or len(names) > MOST_COMPARED:
        return []
    answers, gone = list[Answer](), set[str]()
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
        answers.append(Answer(made, "near-duplicate", question))
    return answers[::-1]


def without_lags(table: Table, copies: Mapping[str, str]) -> list[Answer]:
    """Drop what stands in another row of a dropped group too: a lag, or a change since the row before.

    `copies` are dropped columns, each with the one that it is a function of.
    """
    schema, answers = table.schema, dict[str, Answer]()
    amounts = [c.name for c in schema.columns if "key" in c.roles and c.is_number and not c.drop]
    words = {name: f"{of} (as {name})" for name, of in copies.items() if of in amounts}
    numbers = {name: table.floats(name) for name in (*amounts, *words)}
    for group in (c.name for c in schema.columns if "group" in c.roles and c.drop):
        sought = [name for name in amounts if name not in answers]
        for name, tie in row_ties(group_codes(table, group), numbers, sought, words).items():
            taken = f"{tie}, with one {group}: dropped, as it puts the records of a {group} together again"
            otherwise = (
                "Wanted? Then drop what it is of in its place. Chance? Then take drop out of the schema"
            )
            made = replace(schema[name], drop=True, roles=frozenset())
            answers[name] = Answer(made, "shared", Question(name, taken, otherwise))
    return list(answers.values())

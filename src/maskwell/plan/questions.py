"""What a person must decide about a file: the questions of a draft, and the answers taken until then."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from ..schema import Column, Schema
from ..words.io import chance_phrase, word_phrase
from .draft_words import sentences

if TYPE_CHECKING:
    from ..io.column_drafts import ColumnFinding
    from ..io.inspect import SchemaProposal


KEPT_ROLES = frozenset({"id", "group", "weight"})  # what gets no noise
FEW_SHARE = 0.05  # of the records: fewer are told with their share


@dataclass(frozen=True, slots=True)
class Question:
    """What a person must decide: about which column, what was taken for granted, and what to write otherwise."""

    column: str | None
    taken: str
    otherwise: str

    def __str__(self) -> str:
        head = f"{self.column}: " if self.column is not None else ""
        return f"{head}{sentences(self.taken, self.otherwise)}"


@dataclass(frozen=True, slots=True)
class DraftAnswer:
    """A column described anew by what was taken; `kind` is that of the remark by inspect which it settles.

    `copy_of` names the column that it is a function of, where it was dropped for that; `given_by` that from which it
    can be computed as a part or a class.
    """

    column: Column
    kind: str
    question: Question
    is_asked: bool = True
    copy_of: str = ""
    given_by: str = ""


def on_dropped(proposal: SchemaProposal) -> list[Question]:
    """Ask about the columns that inspect proposes to drop; nothing is lost where there is no value at all."""
    questions = []
    for column in proposal.schema.columns:
        found = proposal.of(column.name)
        if not column.drop or any(finding.kind in ("all-missing", "repeats") for finding in found):
            continue
        asked = [one for one in found if one.otherwise] or list(found)
        otherwise = asked[0].otherwise if asked else ""
        why = "; ".join(finding.found for finding in asked)
        what = "taken for a group, and dropped" if "group" in column.roles else "dropped"
        wanted = "Wanted in the release? Then describe it in the schema and take drop out"
        questions.append(Question(column.name, f"{why}: {what}", otherwise or wanted))
    return questions


def on_totals(proposal: SchemaProposal) -> list[Question]:
    """Ask about a last record that looks like a row of totals."""
    return [Question(None, one.text, one.otherwise) for one in proposal.findings if one.kind == "total"]


def on_repeats(proposal: SchemaProposal) -> list[Question]:
    """Ask, once for all columns, about numbers that repeat the record above as what a household shares does."""
    found = [
        one for one in proposal.findings if one.kind == "repeats" and proposal.schema[one.column or ""].drop
    ]
    if not found:
        return []
    named = [
        f"{one.column} ({one.figures['share']:.1%}, by chance {chance_phrase(one.figures['chance'])})"
        for one in found
    ]
    taken = (
        f"{', '.join(named)}: equal to the record above in so many of the records, as it is with what records that "
        "belong together share: dropped, as the mean over them would undo noise on each"
    )
    return [Question(None, taken, found[0].otherwise)]


def on_names(proposal: SchemaProposal) -> list[Question]:
    """Ask about categories named like ids or parts of a date, weights beside heights, and an id by its values alone."""
    questions = [
        Question(one.column, one.text, one.otherwise)
        for one in proposal.findings
        if one.kind in ("named-id", "date-part", "few-values", "body")
    ]
    for column in (column for column in proposal.schema.columns if "id" in column.roles):
        unsure = [one for one in proposal.of(column.name) if one.kind == "id" and one.otherwise]
        taken = "every record has its own value: taken for the id, which is replaced by new ones"
        questions += [Question(column.name, taken, one.otherwise) for one in unsure]
    return questions


def on_values(proposal: SchemaProposal) -> list[Question]:
    """Ask about words, largest values and zeros of amounts, each once for all columns."""
    return [*on_words(proposal), *on_top_codes(proposal), *on_zeros(proposal)]


def on_words(proposal: SchemaProposal) -> list[Question]:
    """Ask, once for all columns, about words among numbers that are taken for codes."""
    found = _piled_up(proposal, "word")
    named = [f"{one.column}: {word_phrase(**one.figures)}" for one in found]
    if not named:
        return []
    word = "a word" if len(named) == 1 else "words"
    taken = f"{'; '.join(named)}: {word} among numbers, taken as missing, to leave as a code"
    otherwise = (
        "A mistake, a header or a footer in the file? Then correct it there, and draft the schema anew"
    )
    return [Question(None, taken, otherwise)]


def on_zeros(proposal: SchemaProposal) -> list[Question]:
    """Ask, once for all columns, whether many zeros are amounts."""
    names = [_with_share(one) for one in _piled_up(proposal, "zeros")]
    if not names:
        return []
    taken = f"{', '.join(names)}: many records have 0: real zeros? Taken for such, and masked like any other value"
    otherwise = (
        "If 0 says that nothing is known, add missing = [0] in the schema, so that it leaves as a code"
    )
    return [Question(None, taken, otherwise)]


def on_top_codes(proposal: SchemaProposal) -> list[Question]:
    """Ask, once for all columns, about amounts that pile up at the largest."""
    found = _piled_up(proposal, "pile-up")
    names = [_with_share(one) for one in found if one.figures["end"] == "top"]
    if not names:
        return []
    taken = f"{', '.join(names)}: many records have the largest value, which is masked like any other"
    otherwise = "A top code? Then switch on top in the schema, so that it leaves as a code"
    coded = [str(one.column) for one in found if one.figures["may_be_missing"]]
    if coded:
        otherwise += (
            f". Does it say of {', '.join(coded)} that nothing is known? Then add it to missing instead"
        )
    return [Question(None, taken, otherwise)]


def _piled_up(proposal: SchemaProposal, kind: str) -> list[ColumnFinding]:
    """Return the findings of a kind about amounts that leave."""
    found = [one for one in proposal.findings if one.kind == kind and one.column is not None]
    columns = {column.name: column for column in proposal.schema.columns}
    return [
        one for one in found if columns[one.column or ""].is_number and not columns[one.column or ""].drop
    ]


def _with_share(finding: ColumnFinding) -> str:
    """Name a column, with the share of its records where that is not what one would call many."""
    share = round(finding.figures["share"], 3)
    return f"{finding.column} ({share:.1%})" if 0 < share < FEW_SHARE else str(finding.column)


def still_open(questions: list[Question], schema: Schema) -> list[Question]:
    """Leave out what was asked of a column before it was dropped."""
    last = {question.column: question for question in questions}
    dropped = {column.name for column in schema.columns if column.drop}
    return [one for one in questions if one.column not in dropped or one is last[one.column]]


def told_of_dropped(
    questions: Iterable[Question], copies: Mapping[str, str], gone: Collection[str]
) -> list[Question]:
    """Say of functions of a column that was dropped itself that nothing which leaves gives them at once."""
    lost = {copy: of for copy, of in copies.items() if of in gone}
    return [
        replace(one, otherwise=f"{lost[one.column]} is dropped too: to keep either, see what is said of that")
        if one.column is not None and one.column in lost
        else one
        for one in questions
    ]

"""Look at a file without a schema, propose one, and list the questions that a person must answer."""

from __future__ import annotations

import json
import re
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from ..errors import BadInput
from ..schema import Column, Schema
from .drafts import Draft, Finding, is_labelled, with_literals, with_pile_ups, with_spikes, with_unit
from .identities import LEAST_EQUAL_SHARE, Identity, NearDuplicate, find_identities, near_duplicates
from .profile import LARGEST_CATEGORY_SHARE, MOST_NUMBER_CATEGORIES, Facts, Floats, facts_of
from .texts import booleans_mixed

if TYPE_CHECKING:
    import pyarrow as pa


MOST_BLOCK_VALUES = 60

_BOOLEANS = ({"true", "false"}, {"yes", "no"}, {"0", "1"}, {"t", "f"}, {"y", "n"})
_NO_VALUE = {"na", "n/a", "nan", "null", "none", ".", "..", "?", "-", "missing", "unknown", "refused"}
_ID_WORD = "id|ids|idnum|idno|idnr|ident|identifier|uuid|guid|serial|caseno"
_NUMBER_WORD = "nr|no|num|number|key|seq"
_ID_NAME = re.compile(
    rf"(.*[^a-z])?({_ID_WORD})([^a-z].*)?|(.*[^a-z])?({_NUMBER_WORD})|(person|case|record|row)"
    rf"|(p|pers|person|case|rec|record|resp|respondent|pat|patient|subject|member|client)({_ID_WORD}|{_NUMBER_WORD})"
)
_QUESTIONS = {
    "spike": "codes for no value among its values?",
    "code": "words for no value among its categories?",
    "unit": "a coarser unit?",
    "identity": "recomputed from others?",
}
_DROPPED = {
    "all-missing": "no value at all",
    "nested": "lists or records",
    "date": "dates or times",
    "boolean": "yes and no in several spellings",
    "id": "an identifier?",
    "text": "text that cannot be masked",
    "thousands": "numbers with thousands separators",
}
_GROUP = "hh|hhold|household|haushalt|school|schule|cluster|psu|family|class|hospital|firm|village|segment"
_GROUP_NAME = re.compile(rf"((id|nr|no)_?)?({_GROUP})_?({_ID_WORD}|{_NUMBER_WORD}|code)?")
_WEIGHT_NAME = re.compile(r".*(weight|wgt|gewicht).*|(.*[^a-z])?(wt|pond[a-z]*)([^a-z].*)?")


@dataclass(frozen=True, slots=True, repr=False)
class Proposal:
    """A schema to start from and what was found on the way. For the steward's own screen: it shows codes."""

    schema: Schema
    findings: tuple[Finding, ...]
    records: int = 0

    def of(self, column: str | None) -> tuple[Finding, ...]:
        """Return the findings about a column; those about the whole file for `None`."""
        return tuple(finding for finding in self.findings if finding.column == column)

    def questions(self) -> dict[str, tuple[str, ...]]:
        """Return what is open about each column in short words, without any value; what is settled is left out."""
        asked = {
            name: tuple(dict.fromkeys(said for finding in self.of(name) if (said := self._question(finding))))
            for name in self.schema.names
        }
        return {name: said for name, said in asked.items() if said}

    def _question(self, finding: Finding) -> str:
        """A finding that was not applied as a question, or that its column is dropped."""
        column = self.schema[finding.column or ""]
        if column.drop:
            return f"dropped until a schema decides ({_DROPPED.get(finding.kind, finding.kind)})"
        if finding.kind == "id":
            return "" if "id" in column.roles else "an identifier?"
        if finding.kind == "pile-up":
            return f"a {finding.suggestion.split(' ')[0]} code?"
        return _QUESTIONS.get(finding.kind, "") if finding.kind == "identity" or finding.suggestion else ""

    def to_toml(self) -> str:
        """Write the schema with the findings above their columns and the suggestions as lines commented out."""
        notes = {name: [f"{f.kind}: {f.text}" for f in self.of(name)] for name in self.schema.names}
        blocks = self.schema.to_toml(notes).rstrip("\n").split("\n\n")
        head = ["# A proposal by maskwell inspect: check every line, the roles above all."]
        head += [f"# {finding.kind}: {finding.text}" for finding in self.of(None)]
        blocks[0] = "\n".join([*head, blocks[0]])
        for i, name in enumerate(self.schema.names, 1):
            blocks[i] += "".join(
                f"\n# {finding.suggestion}" for finding in self.of(name) if finding.suggestion
            )
        return "\n\n".join(blocks) + "\n"

    def summary(self, lines: int = 40) -> str:
        """Return one screen of text: the proposed roles, then the findings as far as they fit."""
        out = [f"{self.records:,} records x {len(self.schema.columns)} columns; proposed, for you to check:"]
        for role, names in self._roles():
            out += textwrap.wrap(
                f"  {role:<8} {' '.join(names)}", 100, subsequent_indent=" " * 11, max_lines=3
            )
        out.append(f"{len(self.findings)} findings:" if self.findings else "nothing to ask")
        for i, finding in enumerate(self.findings):
            said = textwrap.wrap(
                f"  {finding.column or 'file'}: {finding.text}", 100, subsequent_indent="      "
            )
            if len(out) + len(said) >= lines:
                return "\n".join([*out, f"  and {len(self.findings) - i} more: see the proposed schema"])
            out += said
        return "\n".join(out)

    def _roles(self) -> list[tuple[str, list[str]]]:
        shown = [
            (role, list(self.schema.with_role(role))) for role in ("id", "group", "weight", "block", "key")
        ]
        shown.append(("no role", [c.name for c in self.schema.columns if not c.roles and not c.drop]))
        shown.append(("dropped", [c.name for c in self.schema.columns if c.drop]))
        return [(role, names) for role, names in shown if names]

    def __repr__(self) -> str:
        return self.summary()


def propose(raw: pa.Table, *, decimal: str = ".") -> Proposal:
    """Propose a schema for a table whose columns are all text (a CSV file) or have the types of their source.

    Types are decided over whole columns. Whole numbers are a category when they have at most 20 different
    values and these are at most 5% of the records; text is one unless most values differ. Nothing that a
    person must decide is applied: it is asked in the findings.
    """
    if not raw.num_columns or not raw.num_rows:
        raise BadInput("the file has no records" if raw.num_columns else "the file has no columns")
    names = raw.column_names
    drafts = [_describe(facts_of(name, raw.column(i), decimal)) for i, name in enumerate(names)]
    drafts = _with_roles(drafts)
    schema = Schema(tuple(draft.column for draft in drafts))
    found = [finding for draft in drafts for finding in draft.findings]
    return Proposal(schema, (*found, *_relations(drafts), *_file_findings(drafts)), raw.num_rows)


def taken(schema: Schema) -> Schema:
    """Return a proposed schema as it may be used unseen: of words among numbers only those like NA are codes."""
    changes = {}
    for column in schema.columns:
        known = tuple(c for c in column.missing if not isinstance(c, str) or c.casefold() in _NO_VALUE)
        changes[column.name] = replace(column, missing=known)
    return schema.changed(changes)


# What each column is.


def _describe(facts: Facts) -> Draft:
    draft = Draft(facts, Column(facts.name, "text"))
    if facts.shape == "empty":
        return draft.asked("all-missing", "there is no value at all; proposed to be dropped", drop=True)
    if facts.shape == "nested":
        return draft.asked("nested", "lists and records cannot be masked; proposed to be dropped", drop=True)
    if facts.shape == "date" or _counts_days(facts):
        text = "dates or times: a number (age, days since), a category (year), or dropped as proposed?"
        return draft.asked("date", text, drop=True)
    if facts.grouped:
        text = (
            "numbers with thousands separators: remove the separators in the file (or export it without), so "
            "that they can be masked; proposed to be dropped"
        )
        return draft.asked("thousands", text, drop=True)
    if facts.texts and booleans_mixed(facts.texts):
        text = "yes and no are spelled in several ways: spell them in one, or leave it dropped"
        return _category(draft).asked("boolean", text, drop=True)
    return _describe_number(draft) if facts.shape == "number" else _describe_text(draft)


def _counts_days(facts: Facts) -> bool:
    """Whether whole numbers are all dates such as 20240131."""
    if not facts.whole or len(facts.support) < 10 or not 19e6 < facts.support[0] < facts.support[-1] < 21e6:
        return False
    month, day = facts.support // 100 % 100, facts.support % 100
    return bool(np.all((month >= 1) & (month <= 12) & (day >= 1) & (day <= 31)))


def _category(draft: Draft) -> Draft:
    return replace(draft, column=Column(draft.facts.name, "category", categories=draft.facts.texts))


def _describe_text(draft: Draft) -> Draft:
    facts = draft.facts
    if facts.distinct == 1:
        return _category(draft).asked("constant", "all values are the same")
    if facts.texts and {text.casefold() for text in facts.texts} in _BOOLEANS:
        return _category(draft).asked("boolean", "two values that say yes and no: a category")
    if facts.texts and 2 * facts.distinct <= facts.present:
        return _with_absent_labels(_category(draft))
    return draft


def _with_absent_labels(draft: Draft) -> Draft:
    absent = [label for label in draft.column.categories if label.casefold() in _NO_VALUE]
    if not absent:
        return draft
    listed = ", ".join(json.dumps(label) for label in absent)
    text = f"is {listed} a category, or does it mean no value? Then take it out of the categories"
    return draft.asked("code", text, f"missing = [{listed}]")


def _describe_number(draft: Draft) -> Draft:
    facts = draft.facts
    kind = "integer" if facts.whole else "continuous"
    unit = None if facts.whole else facts.unit
    draft = replace(draft, column=Column(facts.name, kind, unit=unit, missing=facts.literals))
    if facts.stray is not None:
        draft = draft.asked("infinite", f"the value of record {facts.stray:,} is not finite: correct it")
    if facts.distinct + len(facts.literals) <= 1:
        return draft.asked("constant", "all values are the same: noise has no scale here")
    if facts.whole and np.array_equal(facts.support, [0.0, 1.0]):
        return _with_absent_labels(_category(draft).asked("boolean", "0 and 1: a category"))
    few = len(facts.support) <= min(MOST_NUMBER_CATEGORIES, LARGEST_CATEGORY_SHARE * facts.records)
    if facts.whole and few and not _WEIGHT_NAME.fullmatch(facts.lower_name):
        text = f"only {len(facts.support)} different whole numbers: a category; a count? Then kind integer"
        return with_spikes(_with_absent_labels(_category(draft).asked("category", text)))
    return with_unit(with_pile_ups(with_spikes(with_literals(draft))))


# What each column is for.


def _with_roles(drafts: list[Draft]) -> list[Draft]:
    drafts = [_with_group(draft) for draft in drafts]
    scores = [_id_score(draft) for draft in drafts]
    best = int(np.argmax(scores)) if any(scores) else None
    drafts = [_with_id(draft, scores[i], i == best) for i, draft in enumerate(drafts)]
    drafts = [_with_label(draft, best is not None) for draft in drafts]
    weights = [i for i, draft in enumerate(drafts) if _may_be_weight(draft)]
    return [_with_weight(d) if weights[:1] == [i] else _with_use(d) for i, d in enumerate(drafts)]


def _is_nominal(draft: Draft) -> bool:
    """Whether the values can be names of something: text, or whole numbers without codes among them."""
    facts = draft.facts
    is_name = facts.shape == "text" or (facts.whole and not facts.literals)
    return is_name and not draft.column.drop and not draft.column.roles and facts.distinct > 1


def _with_group(draft: Draft) -> Draft:
    facts = draft.facts
    repeated = MOST_NUMBER_CATEGORIES < facts.distinct < facts.present
    if not (_is_nominal(draft) and repeated and _GROUP_NAME.fullmatch(facts.lower_name)):
        return draft
    text = f"{facts.distinct:,} different values that repeat: records that belong together? If not, drop it"
    return replace(draft, findings=()).as_text("group", text, roles=frozenset({"group"}))


def _id_score(draft: Draft) -> int:
    """Zero unless every record has its own value; numbers need a name or a sequence to be more than amounts."""
    facts = draft.facts
    if not _is_nominal(draft) or facts.distinct < facts.records or facts.is_float:
        return 0
    named = bool(_ID_NAME.fullmatch(facts.lower_name) or _GROUP_NAME.fullmatch(facts.lower_name))
    in_sequence = facts.shape == "number" and facts.support[-1] - facts.support[0] == facts.records - 1
    return 4 * named + 2 * in_sequence + (facts.shape == "text")


def _with_id(draft: Draft, score: int, best: bool) -> Draft:
    facts, bare = draft.facts, replace(draft, findings=())
    if best:
        return bare.as_text("id", "every record has its own value: the id?", roles=frozenset({"id"}))
    if score:
        return bare.as_text(
            "id", "every record has its own value, as an id has: dropped, as proposed?", drop=True
        )
    named = re.fullmatch(rf"(.*[^a-z]|case|person|patient)?({_ID_WORD})", facts.lower_name)
    if named and _is_nominal(draft) and 2 * facts.distinct > facts.records:
        other = facts.records - facts.distinct
        text = f"named like an id, but some records repeat a value or have none ({other:,}): correct it?"
        return bare.as_text("id", text, drop=True)
    return draft


def _with_label(draft: Draft, has_id: bool) -> Draft:
    """Ask about numbers that look like identifiers; beside an id they are proposed to be dropped."""
    column = draft.column
    if column.drop or column.roles or not column.is_number or _may_be_weight(draft) or not is_labelled(draft):
        return draft
    what = "every record has its own value, as an identifier has"
    if has_id:
        text = f"{what}: dropped, as proposed? Else, an amount, make it kind integer and mask it"
        return replace(draft, findings=()).as_text("id", text, drop=True)
    text = f"{what}: is it one? Then drop = true or role id; else it leaves in clear unless masked"
    return draft.asked("id", text, "drop = true")


def _may_be_weight(draft: Draft) -> bool:
    return draft.column.is_number and bool(_WEIGHT_NAME.fullmatch(draft.facts.lower_name))


def _with_weight(draft: Draft) -> Draft:
    facts = draft.facts
    if facts.missing or facts.literals or facts.distinct < 2 or facts.support[0] <= 0:
        text = "named like a survey weight, but constant, or missing or not positive in places: a weight?"
        return _with_use(draft.asked("weight", text))
    text = "positive and named like a survey weight: is it one? Else make its role key"
    return draft.asked("weight", text, roles=frozenset({"weight"}))


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
        text = f"text that cannot be masked{at}: dropped, as proposed?"
        return draft.asked("text", text, drop=True)
    if column.is_number:
        return replace(draft, column=replace(column, roles=frozenset({"key"})))
    if len(column.categories) <= MOST_BLOCK_VALUES:
        return replace(draft, column=replace(column, roles=frozenset({"block"})))
    text = f"{len(column.categories)} categories are too many for a block: group them?"
    return draft.asked("category", text)


# What columns say of one another.


def _relations(drafts: Sequence[Draft]) -> list[Finding]:
    used = [draft for draft in drafts if draft.column.is_number and not draft.column.drop]
    if len(used) < 2:
        return []
    names = [draft.column.name for draft in used]
    values = np.column_stack([_without_spikes(draft) for draft in used])
    identities = find_identities(values, names)
    same = {frozenset((i.total, i.parts[0][0])) for i in identities if len(i.parts) == 1}
    found = [Finding(identity.total, "identity", _identity_text(identity)) for identity in identities]
    for pair in near_duplicates(values, names):
        if frozenset((pair.first, pair.second)) not in same:
            text = f"{_likeness(pair)}: one quantity in two columns? Then one noise for both, or drop one"
            found.append(Finding(pair.second, "near-duplicate", text))
    return found


def _likeness(pair: NearDuplicate) -> str:
    if pair.exact:
        return f"is equal to {pair.first!r}"
    if pair.equal_share < LEAST_EQUAL_SHARE:
        return f"has a correlation of {pair.correlation:.3f} with {pair.first!r}"
    return (
        f"is equal to {pair.first!r} in {pair.equal_share:.0%} of the records (the most frequent value aside)"
    )


def _without_spikes(draft: Draft) -> Floats:
    numbers = draft.facts.numbers
    assert numbers is not None
    return np.where(np.isin(numbers, draft.spikes), np.nan, numbers) if draft.spikes else numbers


def _identity_text(identity: Identity) -> str:
    shown = Identity(repr(identity.total), tuple((repr(name), c) for name, c in identity.parts))
    return f"{shown}, exactly: which one is recomputed from the masked others? Never noise on all of them"


def _file_findings(drafts: Sequence[Draft]) -> list[Finding]:
    found = []
    if not any("id" in draft.column.roles for draft in drafts):
        text = "no column identifies the records: their numbers will, and later releases cannot build on this one"
        found.append(Finding(None, "id", text))
    blocks = [draft.facts for draft in drafts if "block" in draft.column.roles]
    alone = _alone(blocks) if blocks else 0
    if alone:
        listed = ", ".join(repr(facts.name) for facts in blocks)
        text = f"records alone in their block ({listed}): {alone:,}; merge categories, or use fewer blocks?"
        found.append(Finding(None, "small-blocks", text))
    return found


def _alone(blocks: Sequence[Facts]) -> int:
    """The number of records that no other record shares all categories with."""
    cells, size = np.zeros(blocks[0].records, np.int64), 1
    for facts in blocks:
        if size * (facts.distinct + 1) > 2**62:
            cells = np.unique(cells, return_inverse=True)[1]
            size = int(cells.max()) + 1
        cells = cells * (facts.distinct + 1) + facts.category_codes + 1
        size *= facts.distinct + 1
    return int(np.count_nonzero(np.unique(cells, return_counts=True)[1] == 1))

"""Look at a file without a schema, propose one, and list the questions that a person must answer."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from ..errors import BadInput
from ..notes import Note
from ..schema import Column, Schema
from .column_drafts import (
    NO_VALUE,
    ColumnFinding,
    Draft,
    with_literals,
    with_pile_ups,
    with_spikes,
    with_strays,
    with_unit,
)
from .column_names import calendar_part, says_amount, says_code, says_weight, says_years
from .column_profile import LARGEST_CATEGORY_SHARE, MOST_NUMBER_CATEGORIES, Facts, Floats, facts_of
from .identities import LEAST_EQUAL_SHARE, Identity, NearDuplicate, find_identities, near_duplicates
from .roles import with_roles
from .texts import booleans_mixed
from .total_rows import total_row

if TYPE_CHECKING:
    import pyarrow as pa


AN_AMOUNT = 'An amount (how many of them)? Then kind = "integer" with roles = ["key"], without categories'
CLASSES = (
    'Classes? Then kind = "category", with categories = [...] as the file writes them, without unit and roles'
)
OF_DATES = "Wanted in the release? Then give it in the file as a number of days or as a year, and draft the schema anew"
OF_SEPARATORS = (
    "Wanted in the release? Then remove the separators in the file (or export it without), "
    "and draft the schema anew"
)
# Different numbers, not all whole, that may be classes: 0, 0.5 and 1 for none, some and much
MOST_FRACTIONS = 5
FEWEST_YEARS = 8  # different values: fewer are classes (of ages, of schooling)
_BOOLEANS = ({"true", "false"}, {"yes", "no"}, {"0", "1"}, {"t", "f"}, {"y", "n"})
_QUESTIONS = {
    "spike": "io.asks_spike",
    "code": "io.asks_code",
    "unit": "io.asks_unit",
    "identity": "io.asks_identity",
    "zeros": "io.asks_zeros",
    "named-id": "io.asks_named_id",
    "date-part": "io.asks_date_part",
    "few-values": "io.asks_few_values",
    "body": "io.asks_body",
}
_END_QUESTIONS = {"top": "io.asks_top_code", "bottom": "io.asks_bottom_code"}
_ALWAYS_ASKED = (
    "identity",
    "zeros",
    "named-id",
    "date-part",
    "few-values",
    "body",
)  # without a line of the schema to switch on


@dataclass(frozen=True, slots=True, repr=False)
class SchemaProposal:
    """A schema to start from and what was found on the way. For the steward's own screen: it shows codes."""

    schema: Schema
    findings: tuple[ColumnFinding, ...]
    records: int = 0

    def of(self, column: str | None) -> tuple[ColumnFinding, ...]:
        """Return the findings about a column; those about the whole file for `None`."""
        return tuple(finding for finding in self.findings if finding.column == column)

    def questions(self) -> dict[str, tuple[Note, ...]]:
        """Return what is open about each column in short notes, without any value; what is settled is left out."""
        asked = {
            name: tuple(dict.fromkeys(note for one in self.of(name) if (note := self._question(one))))
            for name in self.schema.names
        }
        return {name: notes for name, notes in asked.items() if notes}

    def _question(self, finding: ColumnFinding) -> Note | None:
        """A finding that was not applied as a question, or that its column is dropped."""
        column = self.schema[finding.column or ""]
        if column.drop:
            return Note("io.dropped", {"kind": finding.kind})
        if finding.kind == "id":
            return None if "id" in column.roles else Note("io.asks_identifier")
        if finding.kind == "pile-up":
            return Note(_END_QUESTIONS[finding.figures["end"]])
        is_asked = finding.kind in _QUESTIONS and (finding.kind in _ALWAYS_ASKED or finding.suggestion)
        return Note(_QUESTIONS[finding.kind]) if is_asked else None

    def to_toml(self, *head: str) -> str:
        """Write the schema with the findings above their columns and the suggestions as lines commented out.

        `head` are lines to stand first, of comment.
        """
        notes = {name: [f"{f.kind}: {f.said}" for f in self.of(name)] for name in self.schema.names}
        blocks = self.schema.to_toml(notes).rstrip("\n").split("\n\n")
        first = head or ("# A proposal by maskwell inspect: check every line, the roles above all.",)
        first += tuple(f"# {finding.kind}: {finding.said}" for finding in self.of(None))
        blocks[0] = "\n".join([*first, blocks[0]])
        for i, name in enumerate(self.schema.names, 1):
            blocks[i] += "".join(
                f"\n# {finding.suggestion}" for finding in self.of(name) if finding.suggestion
            )
        return "\n\n".join(blocks) + "\n"

    def summary(self, lines: int = 40) -> str:
        """Return one screen of text: the proposed role of every column, then the findings as far as they fit."""
        out = [f"{self.records:,} records x {len(self.schema.columns)} columns; proposed, for you to check:"]
        for role, names in self._roles():
            out += textwrap.wrap(f"  {role:<8} {' '.join(names)}", 100, subsequent_indent=" " * 11)
        out.append(f"{len(self.findings)} findings:" if self.findings else "nothing to ask")
        for i, finding in enumerate(self.findings):
            said = textwrap.wrap(
                f"  {finding.column or 'file'}: {finding.said}", 100, subsequent_indent="      "
            )
            if len(out) + len(said) >= lines:
                return "\n".join([*out, f"  and {len(self.findings) - i} more: see the proposed schema"])
            out += said
        return "\n".join(out)

    def _roles(self) -> list[tuple[str, list[str]]]:
        shown = [
            (role, list(self.schema.with_role(role))) for role in ("id", "group", "weight", "block", "key")
        ]
        named = {name for _, names in shown for name in names}
        shown.append(("other", [c.name for c in self.schema.columns if c.name not in named and not c.drop]))
        shown.append(("dropped", [_with_reason(c) for c in self.schema.columns if c.drop]))
        return [(role, names) for role, names in shown if names]

    def __repr__(self) -> str:
        return self.summary()


def _with_reason(column: Column) -> str:
    """Name a dropped column, with the role for which it is kept inside."""
    return f"{column.name} ({', '.join(sorted(column.roles))})" if column.roles else column.name


def propose(raw: pa.Table, *, decimal: str = ".", labels: Mapping[str, str] | None = None) -> SchemaProposal:
    """Propose a schema for a table whose columns are all text (a CSV file) or have the types of their source.

    `labels` are what the file says of its columns in words.

    Types are decided over whole columns. Whole numbers are a category when they have at most 20 different
    values and these are at most 5% of the records; text is one unless most values differ. Nothing that a
    person must decide is applied: it is asked in the findings.
    """
    if not raw.num_columns or not raw.num_rows:
        raise BadInput("the file has no records" if raw.num_columns else "the file has no columns")
    names = raw.column_names
    said = labels or {}
    facts = [facts_of(name, raw.column(i), decimal) for i, name in enumerate(names)]
    drafts = with_roles([_describe(replace(one, label=said.get(one.name, ""))) for one in facts])
    schema = Schema(tuple(draft.column for draft in drafts))
    found = [finding for draft in drafts for finding in draft.findings]
    of_file = (*total_row(raw, facts), *_file_findings(drafts))
    return SchemaProposal(schema, (*found, *_relations(drafts), *of_file), raw.num_rows)


def unreviewed_schema(schema: Schema) -> Schema:
    """Return a proposed schema as it may be used unseen: of words among numbers only those like NA are codes."""
    changes = {}
    for column in schema.columns:
        known = tuple(c for c in column.missing if not isinstance(c, str) or c.casefold() in NO_VALUE)
        changes[column.name] = replace(column, missing=known)
    return schema.changed(changes)


# What each column is.


def _describe(facts: Facts) -> Draft:
    draft = Draft(facts, Column(facts.name, "text"))
    if facts.shape == "empty":
        return draft.asked("all-missing", "there is no value at all", "; proposed to be dropped", drop=True)
    if facts.shape == "nested":
        return draft.asked(
            "nested", "lists and records cannot be masked", "; proposed to be dropped", drop=True
        )
    if facts.shape == "date" or _counts_days(facts):
        asks = ": a number (age, days since), a category (year), or dropped as proposed?"
        return draft.asked("date", "dates or times", asks, otherwise=OF_DATES, drop=True)
    if facts.grouped:
        found, asks = "numbers with thousands separators, which cannot be masked", "; proposed to be dropped"
        return draft.asked("thousands", found, asks, otherwise=OF_SEPARATORS, drop=True)
    if facts.texts and booleans_mixed(facts.texts):
        found, asks = "yes and no are spelled in several ways", ": spell them in one, or leave it dropped"
        return _category(draft).asked("boolean", found, asks, drop=True)
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
        return _category(draft).asked("boolean", "two values that say yes and no", ": a category")
    strayed = with_strays(draft)
    if not strayed.column.drop and facts.texts and 2 * facts.distinct <= facts.present:
        return _with_absent_labels(_category(draft))
    return strayed


def _with_absent_labels(draft: Draft) -> Draft:
    absent = [label for label in draft.column.categories if label.casefold() in NO_VALUE]
    if not absent:
        return draft
    listed = ", ".join(json.dumps(label) for label in absent)
    text = f"is {listed} a category, or does it mean no value? Then take it out of the categories"
    return draft.asked("code", text, suggestion=f"missing = [{listed}]")


def _describe_number(draft: Draft) -> Draft:
    facts = draft.facts
    kind = "integer" if facts.whole else "continuous"
    unit = None if facts.whole else facts.unit
    draft = replace(draft, column=Column(facts.name, kind, unit=unit, missing=facts.literals))
    if facts.stray is not None:
        draft = draft.asked("infinite", f"the value of record {facts.stray:,} is not finite", ": correct it")
    if facts.distinct + len(facts.literals) <= 1:
        return draft.asked("constant", "all values are the same", ": noise has no scale here")
    if facts.whole and np.array_equal(facts.support, [0.0, 1.0]):
        return _with_absent_labels(_category(draft).asked("boolean", "0 and 1", ": a category"))
    few = len(facts.support) <= min(MOST_NUMBER_CATEGORIES, LARGEST_CATEGORY_SHARE * facts.records)
    if facts.whole and few and are_years(facts.name, facts.support):
        found = f"{len(facts.support)} different whole numbers, by its name years"
        draft = draft.asked("years", found, ": an amount; classes? Then a category")
    elif facts.whole and few and not says_weight(facts.name, facts.label):
        found, asks = (
            f"only {len(facts.support)} different whole numbers",
            ": a category; a count? Then kind integer",
        )
        return with_spikes(_with_absent_labels(_category(draft).asked("category", found, asks)))
    if part := _calendar_part(facts):
        found, asks = f"by its name and values {part}", ": taken for a category, to which no noise is added"
        return _category(draft).asked("date-part", found, asks, otherwise=AN_AMOUNT)
    if facts.unit == 1.0 and _are_codes(facts):
        found, asks = (
            f"{facts.distinct} different codes, by its name",
            ": a category; an amount? Then kind integer",
        )
        return with_spikes(_with_absent_labels(_category(draft).asked("category", found, asks)))
    has_fractions = bool(np.any(facts.support % 1))
    if has_fractions and len(facts.support) <= MOST_FRACTIONS <= LARGEST_CATEGORY_SHARE * facts.records:
        found, asks = (
            f"only {len(facts.support)} different numbers",
            ": taken for an amount, to which noise is added",
        )
        draft = draft.asked("few-values", found, asks, otherwise=CLASSES)
    return with_unit(with_pile_ups(with_spikes(with_literals(draft))))


def are_years(name: str, support: Floats) -> bool:
    """Whether a few whole numbers are years of a life, by name and number: as categories they would leave in clear."""
    return says_years(name) and len(support) >= FEWEST_YEARS and bool(support[0] >= 0)


def _calendar_part(facts: Facts) -> str:
    """Say which part of a date or a time of day whole numbers are; nothing where they are an amount, or have codes."""
    if not facts.whole or facts.literals or len(facts.support) < 2 or len(facts.texts) != len(facts.support):
        return ""
    return calendar_part(facts.name, float(facts.support[0]), float(facts.support[-1]))


def _are_codes(facts: Facts) -> bool:
    """Whether whole numbers are named or labelled as codes (of occupations, of places) and repeat as such do."""
    named = says_code(facts.name, facts.label) and not says_amount(facts.name)
    return named and bool(facts.texts) and not facts.literals and 2 * facts.distinct <= facts.present


# What columns say of one another.


def _relations(drafts: Sequence[Draft]) -> list[ColumnFinding]:
    used = [draft for draft in drafts if draft.column.is_number and not draft.column.drop]
    if len(used) < 2:
        return []
    names = [draft.column.name for draft in used]
    values = np.column_stack([_without_spikes(draft) for draft in used])
    identities = find_identities(values, names)
    same = {frozenset((i.total, i.parts[0][0])) for i in identities if len(i.parts) == 1}
    found = [
        ColumnFinding(
            one.total,
            "identity",
            f"{_identity_phrase(one)}, exactly",
            others=tuple(name for name, _ in one.parts),
            asks=": which one is recomputed from the masked others? Never noise on all of them",
        )
        for one in identities
    ]
    for pair in near_duplicates(values, names):
        if frozenset((pair.first, pair.second)) not in same:
            asks = ": one quantity in two columns? Then one noise for both, or drop one"
            like = _likeness(pair)
            found.append(ColumnFinding(pair.second, "near-duplicate", like, others=(pair.first,), asks=asks))
    return found


def _likeness(pair: NearDuplicate) -> str:
    if pair.exact:
        return f"is equal to {pair.first!r}"
    if pair.equal_share < LEAST_EQUAL_SHARE:
        return f"has a correlation of {pair.correlation:.3f} with {pair.first!r}"
    of = (
        " in which not both have the most frequent value"
        if pair.has_common_mode
        else " in which both are known"
    )
    return f"is equal to {pair.first!r} in {pair.equal_share:.0%} of the records{of}"


def _without_spikes(draft: Draft) -> Floats:
    numbers = draft.facts.numbers
    assert numbers is not None
    return np.where(np.isin(numbers, draft.spikes), np.nan, numbers) if draft.spikes else numbers


def _identity_phrase(identity: Identity) -> str:
    return str(Identity(repr(identity.total), tuple((repr(name), c) for name, c in identity.parts)))


def _file_findings(drafts: Sequence[Draft]) -> list[ColumnFinding]:
    found = []
    if not any("id" in draft.column.roles for draft in drafts):
        text = "no column identifies the records: their numbers will, and later releases cannot build on this one"
        found.append(ColumnFinding(None, "id", text))
    blocks = [draft.facts for draft in drafts if "block" in draft.column.roles]
    alone = _alone(blocks) if blocks else 0
    if alone:
        listed = ", ".join(facts.name for facts in blocks)
        text = (
            f"records alone in their block (of {listed}): {alone:,}; merge categories, or use fewer blocks?"
        )
        found.append(ColumnFinding(None, "small-blocks", text))
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

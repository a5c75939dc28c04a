"""Look at a file without a schema, propose one, and list the questions that a person must answer."""

from __future__ import annotations

import json
import re
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from ..errors import BadInput
from ..schema import Column, Schema
from .identities import Identity, decimal_unit, find_identities, near_duplicates
from .numbers import number_text
from .texts import as_text, booleans_mixed, in_order

if TYPE_CHECKING:
    import pyarrow as pa

Floats = npt.NDArray[np.float64]
Counts = npt.NDArray[np.int64]

MOST_NUMBER_CATEGORIES, LARGEST_CATEGORY_SHARE = 20, 0.05
MOST_TEXT_CATEGORIES = 1000
MOST_BLOCK_VALUES = 60
MOST_LITERALS = 5

_NUMBER = r"^[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]{1,2})?$"
_LABEL = r"^(\+|-?0[0-9]|-?[0-9]{16,}$)"  # digits that are a name: leading zeros, a plus, more than 15 digits
_DATE = (
    r"^(([0-9]{4}[-/.][0-9]{1,2}[-/.][0-9]{1,2}|[0-9]{1,2}[-/.][0-9]{1,2}[-/.]([0-9]{4}|[0-9]{2}))([ T].*)?"
    r"|[0-9]{4}[-/][0-9]{1,2}|[0-9]{1,2}[- ]?[A-Za-z]{3}[- ]?([0-9]{4}|[0-9]{2})|[0-9]{1,2}:[0-9]{2}(:[0-9.]+)?)$"
)
_BOOLEANS = ({"true", "false"}, {"yes", "no"}, {"0", "1"}, {"t", "f"}, {"y", "n"})
_NO_VALUE = {"na", "n/a", "nan", "null", "none", ".", "..", "?", "-", "missing", "unknown", "refused"}
_ID_WORD = "id|ids|idnum|idno|idnr|ident|identifier|uuid|guid|serial|caseno"
_NUMBER_WORD = "nr|no|num|number|key|seq"
_ID_NAME = re.compile(
    rf"(.*[^a-z])?({_ID_WORD})([^a-z].*)?|(.*[^a-z])?({_NUMBER_WORD})|(person|case|record|row)"
    rf"|(p|pers|person|case|rec|record|resp|respondent|pat|patient|subject|member|client)({_ID_WORD}|{_NUMBER_WORD})"
)
_GROUP = "hh|hhold|household|haushalt|school|schule|cluster|psu|family|class|hospital|firm|village|segment"
_GROUP_NAME = re.compile(rf"((id|nr|no)_?)?({_GROUP})_?({_ID_WORD}|{_NUMBER_WORD}|code)?")
_WEIGHT_NAME = re.compile(r".*(weight|wgt|gewicht).*|(.*[^a-z])?(wt|pond[a-z]*)([^a-z].*)?")
_STRAY = re.compile(r"[0-9]|^[+-]?inf(inity)?$|[^ -~\u00a1-\u024f]", re.IGNORECASE)  # no code for "no value"
_CODE = re.compile(r"9*[6-9]|7+|8+|-[1-9]|-(9+[0-9]|7+|8+)")  # 9, 98, 777; -1, -9, -97


@dataclass(frozen=True, slots=True)
class Finding:
    """Something the steward should know or decide; `suggestion` is a line of the schema that may be switched on."""

    column: str | None
    kind: str
    text: str
    suggestion: str = ""


@dataclass(frozen=True, slots=True, repr=False)
class Proposal:
    """A schema to start from and what was found on the way. For the steward's own screen: it shows codes."""

    schema: Schema
    findings: tuple[Finding, ...]
    records: int = 0

    def of(self, column: str | None) -> tuple[Finding, ...]:
        """Return the findings about a column; those about the whole file for `None`."""
        return tuple(finding for finding in self.findings if finding.column == column)

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
    drafts = [_describe(_facts(name, raw.column(i), decimal)) for i, name in enumerate(names)]
    drafts = _with_roles(drafts)
    schema = Schema(tuple(draft.column for draft in drafts))
    found = [finding for draft in drafts for finding in draft.findings]
    return Proposal(schema, (*found, *_relations(drafts), *_file_findings(drafts)), raw.num_rows)


@dataclass(frozen=True, slots=True)
class _Facts:
    """What a column holds: amounts (`numbers`, one a record) or texts (`codes`, one a record, point to them)."""

    name: str
    records: int
    shape: str  # number, text, date, empty or nested
    missing: int = 0
    distinct: int = 0
    support: Floats = field(default_factory=lambda: np.empty(0))
    counts: Counts = field(default_factory=lambda: np.empty(0, np.int64))
    numbers: Floats | None = None
    unit: float | None = None
    whole: bool = False
    is_float: bool = False  # in its source, so that it can be no id
    texts: tuple[str, ...] = ()
    codes: npt.NDArray[np.int32] | None = None
    literals: tuple[str, ...] = ()
    stray: int | None = None  # the first record whose value does not fit the others

    @property
    def present(self) -> int:
        return self.records - self.missing

    @property
    def lower_name(self) -> str:
        return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", self.name).lower()

    @property
    def category_codes(self) -> npt.NDArray[np.integer]:
        """The place of each record's value among the different ones, -1 where there is none."""
        if self.codes is not None:
            return self.codes
        assert self.numbers is not None
        return np.where(np.isnan(self.numbers), -1, np.searchsorted(self.support, self.numbers))


@dataclass(frozen=True, slots=True)
class _Draft:
    """A column on its way into the schema, with what was found about it; `spikes` may be missing codes."""

    facts: _Facts
    column: Column
    findings: tuple[Finding, ...] = ()
    spikes: tuple[float, ...] = ()

    def asked(self, what: str, text: str, suggestion: str = "", **changes: Any) -> _Draft:
        """Add a finding, and change the column with it."""
        finding = Finding(self.column.name, what, text, suggestion)
        return replace(self, column=replace(self.column, **changes), findings=(*self.findings, finding))

    def as_text(self, what: str, text: str, **changes: Any) -> _Draft:
        """Add a finding that makes the column text, kept exactly as it is written."""
        return self.asked(what, text, kind="text", unit=None, missing=(), categories=(), **changes)


# What a column holds.


def _facts(name: str, column: Any, decimal: str) -> _Facts:
    import pyarrow.types as types

    array = _plain(column)
    if array.null_count == len(array):
        return _Facts(name, len(array), "empty")
    if types.is_large_string(array.type):
        return _text_facts(name, array, decimal)
    if types.is_integer(array.type) or types.is_floating(array.type):
        return _number_facts(name, array, array)
    return _Facts(name, len(array), "date" if types.is_temporal(array.type) else "nested")


def _plain(column: Any) -> Any:
    """One array: text for text and booleans, floats for decimals, whole numbers that floats cannot hold as text."""
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.types as types

    if types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    kind = column.type
    if types.is_boolean(kind) or types.is_string(kind) or types.is_string_view(kind):
        column = column.cast(pa.large_string())
    elif types.is_decimal(kind):
        column = column.cast(pa.string()).cast(pa.float64())  # directly, Arrow is off by a last bit
    elif types.is_integer(kind):
        ends: Any = pc.min_max(column).as_py()
        if max(abs(end or 0) for end in ends.values()) >= 10**15:
            column = column.cast(pa.large_string())
    return pa.concat_arrays(column.chunks)


def _number_facts(name: str, array: Any, source: Any, **more: Any) -> _Facts:
    """Facts of numbers, given as they are and as their source has them (text or numbers)."""
    import pyarrow.types as types

    given = np.asarray(array.to_numpy(zero_copy_only=False))
    given = given if given.dtype == np.float32 else given.astype(np.float64)
    unit, infinite = decimal_unit(given), np.isinf(given)
    numbers = given.astype(np.float64)
    if given.dtype == np.float32 and unit is not None:
        numbers = np.round(numbers, round(-np.log10(unit)))
    numbers[infinite] = np.nan
    support, counts = np.unique(numbers[~np.isnan(numbers)], return_counts=True)
    known: dict[str, Any] = {
        "missing": len(numbers) - int(counts.sum()),
        "distinct": len(support),
        "unit": unit,
        "whole": unit == 1.0
        and not (types.is_large_string(source.type) and _matches(source, "[.,eE]").any()),
        "is_float": types.is_floating(source.type),
        "texts": _words(source) if len(support) <= MOST_NUMBER_CATEGORIES else (),
        "stray": int(np.argmax(infinite)) + 1 if infinite.any() else None,
    }
    return _Facts(
        name, len(numbers), "number", numbers=numbers, support=support, counts=counts, **known | more
    )


def _words(source: Any) -> tuple[str, ...]:
    """The different values as the reader spells them, in the order of their size."""
    words: Any = as_text(source.unique()).drop_null()
    return tuple(in_order(words.to_pylist()))


def _text_facts(name: str, array: Any, decimal: str) -> _Facts:
    import pyarrow.compute as pc

    amounts = _amounts(array, decimal)
    if amounts is None:
        amounts = _amounts(_trimmed(array), decimal)
    if amounts is not None:
        return _number_facts(name, amounts, array)
    encoded = array.dictionary_encode()
    codes = encoded.indices.fill_null(-1).to_numpy()
    known = {
        "missing": array.null_count,
        "distinct": len(encoded.dictionary),
        "codes": codes,
        "texts": _words(encoded.dictionary) if len(encoded.dictionary) <= MOST_TEXT_CATEGORIES else (),
    }
    words = pc.ascii_trim_whitespace(encoded.dictionary)
    if _matches(words.slice(0, 100), _DATE).all() and _matches(words, _DATE).all():
        return _Facts(name, len(array), "date", **known)
    is_number = _matches(_pointed(words, decimal), _NUMBER)
    counts = np.bincount(codes[codes >= 0], minlength=len(words))
    if is_number.all() or 2 * counts[is_number].sum() < counts.sum():
        return _Facts(name, len(array), "text", **known)
    return _mixed_facts(name, words, is_number, decimal, known)


def _mixed_facts(
    name: str, words: Any, is_number: npt.NDArray[np.bool_], decimal: str, known: dict[str, Any]
) -> _Facts:
    """Numbers with other texts among them: a few words are codes (NA, refused), anything else is a stray."""
    import pyarrow as pa

    codes, numerals = known["codes"], words.filter(pa.array(is_number))
    literals = words.filter(pa.array(~is_number)).slice(0, MOST_LITERALS + 1).to_pylist()
    amounts = _amounts(numerals, decimal)
    if amounts is None or len(literals) > MOST_LITERALS or any(map(_STRAY.search, literals)):
        first = int(np.argmax((codes >= 0) & ~is_number[codes])) + 1
        return _Facts(name, len(codes), "text", stray=first, **known)
    values = np.full(len(words) + 1, np.nan)
    values[:-1][is_number] = amounts.to_numpy()
    more = known | {"literals": tuple(literal for literal in literals if literal)}
    return _number_facts(name, pa.array(values[codes]), numerals, **more)


def _amounts(texts: Any, decimal: str) -> Any:
    """The texts as floats, or nothing unless all are finite numbers and none is a label made of digits."""
    import pyarrow as pa
    import pyarrow.compute as pc

    pointed = _pointed(texts, decimal)
    try:
        pointed.slice(0, 1000).cast(pa.float64())  # to fail early: Arrow words an error for every text
        amounts = pointed.cast(pa.float64())
    except pa.ArrowInvalid:
        return None
    finite = pc.all(pc.is_finite(amounts)).as_py()
    return amounts if finite and not _matches(texts, _LABEL).any() else None


def _trimmed(texts: Any) -> Any:
    """Texts as the reader of numbers takes them: without blanks around them, null where nothing is left."""
    import pyarrow as pa
    import pyarrow.compute as pc

    trimmed: Any = pc.ascii_trim_whitespace(texts)
    return pc.if_else(pc.equal(trimmed, pa.scalar("", trimmed.type)), pa.scalar(None, trimmed.type), trimmed)


def _pointed(texts: Any, decimal: str) -> Any:
    """Texts with a decimal point in place of the decimal sign; a point that is no decimal sign makes no number."""
    import pyarrow.compute as pc

    if decimal == ".":
        return texts
    return pc.replace_substring(pc.replace_substring(texts, ".", "'"), decimal, ".")


def _matches(texts: Any, pattern: str) -> npt.NDArray[np.bool_]:
    import pyarrow.compute as pc

    found = pc.match_substring_regex(texts, pattern).fill_null(False)
    return np.asarray(found.to_numpy(zero_copy_only=False), bool)


# What each column is.


def _describe(facts: _Facts) -> _Draft:
    draft = _Draft(facts, Column(facts.name, "text"))
    if facts.shape == "empty":
        return draft.asked("all-missing", "there is no value at all; proposed to be dropped", drop=True)
    if facts.shape == "nested":
        return draft.asked("nested", "lists and records cannot be masked; proposed to be dropped", drop=True)
    if facts.shape == "date" or _counts_days(facts):
        text = "dates or times: a number (age, days since), a category (year), or dropped as proposed?"
        return draft.asked("date", text, drop=True)
    if facts.texts and booleans_mixed(facts.texts):
        text = "yes and no are spelled in several ways: spell them in one, or leave it dropped"
        return _category(draft).asked("boolean", text, drop=True)
    return _describe_number(draft) if facts.shape == "number" else _describe_text(draft)


def _counts_days(facts: _Facts) -> bool:
    """Whether whole numbers are all dates such as 20240131."""
    if not facts.whole or len(facts.support) < 10 or not 19e6 < facts.support[0] < facts.support[-1] < 21e6:
        return False
    month, day = facts.support // 100 % 100, facts.support % 100
    return bool(np.all((month >= 1) & (month <= 12) & (day >= 1) & (day <= 31)))


def _category(draft: _Draft) -> _Draft:
    return replace(draft, column=Column(draft.facts.name, "category", categories=draft.facts.texts))


def _describe_text(draft: _Draft) -> _Draft:
    facts = draft.facts
    if facts.distinct == 1:
        return _category(draft).asked("constant", "all values are the same")
    if facts.texts and {text.casefold() for text in facts.texts} in _BOOLEANS:
        return _category(draft).asked("boolean", "two values that say yes and no: a category")
    if facts.texts and 2 * facts.distinct <= facts.present:
        return _with_absent_labels(_category(draft))
    return draft


def _with_absent_labels(draft: _Draft) -> _Draft:
    absent = [label for label in draft.column.categories if label.casefold() in _NO_VALUE]
    if not absent:
        return draft
    listed = ", ".join(json.dumps(label) for label in absent)
    text = f"is {listed} a category, or does it mean no value? Then take it out of the categories"
    return draft.asked("code", text, f"missing = [{listed}]")


def _describe_number(draft: _Draft) -> _Draft:
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
        return _with_spikes(_with_absent_labels(_category(draft).asked("category", text)))
    return _with_unit(_with_pile_ups(_with_spikes(_with_literals(draft))))


# Codes among the numbers.


def _with_literals(draft: _Draft) -> _Draft:
    facts = draft.facts
    if not facts.literals:
        return draft
    listed = ", ".join(json.dumps(literal, ensure_ascii=False) for literal in facts.literals)
    share = _share(facts.present - int(facts.counts.sum()), facts)
    return draft.asked("code", f"{share} of the values are {listed}, among numbers: taken as missing; right?")


def _with_spikes(draft: _Draft) -> _Draft:
    facts, is_category = draft.facts, draft.column.kind == "category"
    spikes = _spikes(facts.support, facts.counts)
    if not spikes:
        return draft
    counts = facts.counts[np.searchsorted(facts.support, spikes)].tolist()
    written = [number_text(value) for value in spikes]
    shares = ", ".join(f"{_share(c, facts)} are {code}" for c, code in zip(counts, written, strict=True))
    text = f"of the values {shares}, apart from the rest: a code for no value? Then switch on missing"
    if is_category:
        text += " and take it out of the categories"
    elif spikes[-1] == facts.support[-1]:
        text += f"; a top code? Then add top = {written[-1]}"
    listed = ", ".join(f'"{code}"' if is_category else code for code in written)
    return replace(draft.asked("spike", text, f"missing = [{listed}]"), spikes=spikes)


def _spikes(support: Floats, counts: Counts) -> tuple[float, ...]:
    """Values that look like codes: conventional ones below zero or far out, frequent ones far from the rest."""
    found: set[float] = set()
    negative = support[support < 0]
    if 1 <= len(negative) <= 5 and len(support) >= len(negative) + 2 and all(map(_is_code, negative)):
        found |= set(negative.tolist())
    for sign in (1, -1):
        kept = ~np.isin(support, list(found))
        found |= set(_far_out(support[kept], counts[kept], sign)) - {0.0}
    return tuple(sorted(found | _frequent_nines(support, counts)))


def _frequent_nines(support: Floats, counts: Counts) -> set[float]:
    """Codes such as 99 near the upper end, or 99999 anywhere, that are too frequent for their place."""
    near_end = [
        i for i in range(max(5, len(support) - 5), len(support)) if support[i] > 9 and _is_code(support[i])
    ]
    anywhere = np.flatnonzero(np.isin(support, [10.0**k - 1 for k in range(4, 10)])).tolist()
    return {float(support[i]) for i in {*near_end, *anywhere} if i and _in_excess(counts, i, 3)}


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
    near = np.r_[counts[max(0, i - 10) : i], counts[i + 1 : i + 11]]
    return bool(counts[i] >= max(5, 0.001 * counts.sum(), times * near.mean()) and counts[i] > near.max())


def _with_pile_ups(draft: _Draft) -> _Draft:
    kept = ~np.isin(draft.facts.support, draft.spikes)
    support, counts = draft.facts.support[kept], draft.facts.counts[kept]
    if len(support) <= 10:
        return draft
    for what, end, i in (("top", "largest", -1), ("bottom", "smallest", 0)):
        if _in_excess(counts, i % len(counts)):
            share, value = _share(int(counts[i]), draft.facts), number_text(float(support[i]))
            text = f"{share} of the values are {value}, the {end}: a {what} code? Then switch on {what}"
            draft = draft.asked("pile-up", text, f"{what} = {value}")
    return draft


def _with_unit(draft: _Draft) -> _Draft:
    facts = draft.facts
    support = facts.support[~np.isin(facts.support, draft.spikes)]
    if facts.unit is None:
        return draft.asked("unit", "more than 6 decimals, so no unit is proposed: which one may be released?")
    if not facts.whole:
        return draft.asked(
            "unit", f"all values are multiples of {number_text(facts.unit)}: the unit proposed"
        )
    coarse = next(
        (10**k for k in range(6, 0, -1) if not (np.any(support[:100] % 10**k) or np.any(support % 10**k))), 1
    )
    if coarse == 1 or len(support) < 10:
        return draft
    text = f"all values are multiples of {coarse}: released in that unit? Then switch on unit"
    return draft.asked("unit", text, f"unit = {coarse}")


def _share(count: int, facts: _Facts) -> str:
    share = count / facts.present
    return f"{share:.1%}" if share >= 0.001 else f"{count:,}"


# What each column is for.


def _with_roles(drafts: list[_Draft]) -> list[_Draft]:
    drafts = [_with_group(draft) for draft in drafts]
    scores = [_id_score(draft) for draft in drafts]
    best = int(np.argmax(scores)) if any(scores) else None
    drafts = [_with_id(draft, scores[i], i == best) for i, draft in enumerate(drafts)]
    weights = [i for i, draft in enumerate(drafts) if _may_be_weight(draft)]
    return [_with_weight(d) if weights[:1] == [i] else _with_use(d) for i, d in enumerate(drafts)]


def _is_nominal(draft: _Draft) -> bool:
    """Whether the values can be names of something: text, or whole numbers without codes among them."""
    facts = draft.facts
    is_name = facts.shape == "text" or (facts.whole and not facts.literals)
    return is_name and not draft.column.drop and not draft.column.roles and facts.distinct > 1


def _with_group(draft: _Draft) -> _Draft:
    facts = draft.facts
    repeated = MOST_NUMBER_CATEGORIES < facts.distinct < facts.present
    if not (_is_nominal(draft) and repeated and _GROUP_NAME.fullmatch(facts.lower_name)):
        return draft
    text = f"{facts.distinct:,} different values that repeat: records that belong together? If not, drop it"
    return replace(draft, findings=()).as_text("group", text, roles=frozenset({"group"}))


def _id_score(draft: _Draft) -> int:
    """Zero unless every record has its own value; numbers need a name or a sequence to be more than amounts."""
    facts = draft.facts
    if not _is_nominal(draft) or facts.distinct < facts.records or facts.is_float:
        return 0
    named = bool(_ID_NAME.fullmatch(facts.lower_name) or _GROUP_NAME.fullmatch(facts.lower_name))
    in_sequence = facts.shape == "number" and facts.support[-1] - facts.support[0] == facts.records - 1
    return 4 * named + 2 * in_sequence + (facts.shape == "text")


def _with_id(draft: _Draft, score: int, best: bool) -> _Draft:
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


def _may_be_weight(draft: _Draft) -> bool:
    return draft.column.is_number and bool(_WEIGHT_NAME.fullmatch(draft.facts.lower_name))


def _with_weight(draft: _Draft) -> _Draft:
    facts = draft.facts
    if facts.missing or facts.literals or facts.distinct < 2 or facts.support[0] <= 0:
        text = "named like a survey weight, but constant, or missing or not positive in places: a weight?"
        return _with_use(draft.asked("weight", text))
    text = "positive and named like a survey weight: is it one? Else make its role key"
    return draft.asked("weight", text, roles=frozenset({"weight"}))


def _with_use(draft: _Draft) -> _Draft:
    facts, column = draft.facts, draft.column
    if column.drop or column.roles or (facts.distinct + len(facts.literals) <= 1 and column.kind != "text"):
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


def _relations(drafts: Sequence[_Draft]) -> list[Finding]:
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
            said = "is equal to" if pair.exact else f"has a correlation of {pair.correlation:.3f} with"
            text = f"{said} {pair.first!r}: one quantity in two columns? Then one noise for both, or drop one"
            found.append(Finding(pair.second, "near-duplicate", text))
    return found


def _without_spikes(draft: _Draft) -> Floats:
    numbers = draft.facts.numbers
    assert numbers is not None
    return np.where(np.isin(numbers, draft.spikes), np.nan, numbers) if draft.spikes else numbers


def _identity_text(identity: Identity) -> str:
    shown = Identity(repr(identity.total), tuple((repr(name), c) for name, c in identity.parts))
    return f"{shown}, exactly: which one is recomputed from the masked others? Never noise on all of them"


def _file_findings(drafts: Sequence[_Draft]) -> list[Finding]:
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


def _alone(blocks: Sequence[_Facts]) -> int:
    """The number of records that no other record shares all categories with."""
    cells, size = np.zeros(blocks[0].records, np.int64), 1
    for facts in blocks:
        if size * (facts.distinct + 1) > 2**62:
            cells = np.unique(cells, return_inverse=True)[1]
            size = int(cells.max()) + 1
        cells = cells * (facts.distinct + 1) + facts.category_codes + 1
        size *= facts.distinct + 1
    return int(np.count_nonzero(np.unique(cells, return_counts=True)[1] == 1))

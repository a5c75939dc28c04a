"""Look at a file without a schema, propose one, and list the questions that a person must answer."""

from __future__ import annotations

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

if TYPE_CHECKING:
    import pyarrow as pa

Floats = npt.NDArray[np.float64]
Counts = npt.NDArray[np.int64]

MOST_NUMBER_CATEGORIES, LARGEST_CATEGORY_SHARE = 20, 0.05
MOST_TEXT_CATEGORIES = 1000
MOST_BLOCK_VALUES = 60
MOST_LITERALS = 5

_NUMBER = r"^-?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?$"
_LABEL = r"^(\+|-?0[0-9]|-?[0-9]{16,}$)"  # digits that are a name: leading zeros, a plus, more than 15 digits
_DATE = (
    r"^([0-9]{4}[-/.][0-9]{1,2}([-/.][0-9]{1,2}([ T].*)?)?|[0-9]{1,2}[-/.][0-9]{1,2}[-/.]([0-9]{4}|[0-9]{2})"
    r"([ T].*)?|[0-9]{1,2}:[0-9]{2}(:[0-9.]+)?)$"
)
_BOOLEANS = ({"true", "false"}, {"yes", "no"}, {"0", "1"}, {"t", "f"}, {"y", "n"})
_NO_VALUE = {"na", "n/a", "nan", "null", "none", ".", "..", "?", "-", "missing", "unknown", "refused"}
_ID_WORD, _NUMBER_WORD = (
    "id|ids|idnum|idno|idnr|ident|identifier|uuid|guid|serial|caseno",
    "nr|no|num|number|key|seq",
)
_ID_NAME = re.compile(
    rf"(.*[^a-z])?({_ID_WORD})([^a-z].*)?|(.*[^a-z])?({_NUMBER_WORD})|(person|case|record|row)"
    rf"|(p|pers|person|case|rec|record|resp|respondent|pat|patient|subject|member|client)({_ID_WORD}|{_NUMBER_WORD})"
)
_GROUP = (
    "hh|hhold|household|haushalt|school|schule|cluster|psu|family|fam|class|hospital|firm|village|segment"
)
_GROUP_NAME = re.compile(rf"((id|nr|no)_?)?({_GROUP})_?({_ID_WORD}|{_NUMBER_WORD}|code)?")
_WEIGHT_NAME = re.compile(r".*(weight|wgt|gewicht).*|(.*[^a-z])?(wt|pond[a-z]*)([^a-z].*)?")
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
        if self.codes is not None or self.numbers is None:
            return np.zeros(self.records, np.int32) if self.codes is None else self.codes
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


def _facts(name: str, column: pa.ChunkedArray[Any], decimal: str) -> _Facts:
    import pyarrow.types as types

    array = _plain(column)
    if array.null_count == len(array):
        return _Facts(name, len(array), "empty")
    if types.is_large_string(array.type):
        return _text_facts(name, array, decimal)
    if types.is_integer(array.type) or types.is_floating(array.type):
        return _number_facts(name, array)
    return _Facts(name, len(array), "date" if types.is_temporal(array.type) else "nested")


def _plain(column: pa.ChunkedArray[Any]) -> Any:
    """One array: text for text and booleans, floats for decimals, whole numbers that floats cannot hold as text."""
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.types as types

    if types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    kind, wanted = column.type, None
    if types.is_boolean(kind) or types.is_string(kind) or types.is_string_view(kind):
        wanted = pa.large_string()
    elif types.is_decimal(kind):
        wanted = pa.float64()
    elif types.is_int64(kind) or types.is_uint64(kind):
        ends = pc.min_max(column).as_py()
        wanted = pa.large_string() if max(abs(ends["min"] or 0), abs(ends["max"] or 0)) >= 10**15 else None
    column = column if wanted is None else column.cast(wanted)
    return pa.concat_arrays(column.chunks)


def _number_facts(name: str, array: Any, *, written_whole: bool = True, **more: Any) -> _Facts:
    given = np.asarray(array.to_numpy(zero_copy_only=False))
    given = given if given.dtype.kind == "f" else given.astype(np.float64)
    infinite = np.isinf(given)
    unit = decimal_unit(given)
    numbers = given.astype(np.float64)
    if given.dtype != np.float64 and unit is not None:
        numbers = np.round(numbers, round(-np.log10(unit)))
    numbers[infinite] = np.nan
    known = numbers[~np.isnan(numbers)]
    support, counts = np.unique(known, return_counts=True)
    facts = _Facts(
        name,
        len(numbers),
        "number",
        len(numbers) - len(known),
        len(support),
        support,
        counts,
        numbers,
        unit,
        whole=unit == 1.0 and written_whole,
        stray=int(np.argmax(infinite)) + 1 if infinite.any() else None,
    )
    return replace(facts, **more)


def _text_facts(name: str, array: Any, decimal: str) -> _Facts:
    amounts = _amounts(array, decimal)
    if amounts is not None:
        return _number_facts(name, amounts, written_whole=not _matches(array, "[.,eE]").any())
    encoded = array.dictionary_encode()
    codes = encoded.indices.fill_null(-1).to_numpy()
    counts = np.bincount(codes[codes >= 0], minlength=len(encoded.dictionary))
    texts = encoded.dictionary
    common: dict[str, Any] = {
        "distinct": len(texts),
        "missing": array.null_count,
        "codes": codes,
        "texts": tuple(texts.to_pylist()) if len(texts) <= MOST_TEXT_CATEGORIES else (),
    }
    if _matches(texts.slice(0, 100), _DATE).all() and _matches(texts, _DATE).all():
        return _Facts(name, len(array), "date", **common)
    is_number = _matches(_pointed(texts, decimal), _NUMBER)
    if 2 * counts[is_number].sum() < counts.sum() or is_number.all():
        return _Facts(name, len(array), "text", **common)
    return _mixed_facts(name, texts, is_number, decimal, common)


def _mixed_facts(
    name: str, texts: Any, is_number: npt.NDArray[np.bool_], decimal: str, common: dict[str, Any]
) -> _Facts:
    """Numbers with other texts among them: a few words are codes (NA, refused), anything else is a stray."""
    import pyarrow as pa

    codes = common["codes"]
    literals = texts.filter(pa.array(~is_number)).slice(0, MOST_LITERALS + 1).to_pylist()
    amounts = _amounts(texts.filter(pa.array(is_number)), decimal)
    strange = any(re.search(r"[0-9]|^-?inf", literal.lower()) for literal in literals)
    if amounts is None or strange or len(literals) > MOST_LITERALS:
        first = int(np.argmax((codes >= 0) & ~is_number[codes])) + 1
        return _Facts(name, len(codes), "text", stray=first, **common)
    values = np.full(len(texts) + 1, np.nan)
    values[:-1][is_number] = amounts.to_numpy()
    whole = not _matches(texts.filter(pa.array(is_number)), "[.,eE]").any()
    return _number_facts(
        name, pa.array(values[codes]), written_whole=whole, literals=tuple(literals), **common
    )


def _amounts(texts: Any, decimal: str) -> Any:
    """The texts as floats, or nothing unless all are finite numbers and none is a label made of digits."""
    import pyarrow as pa
    import pyarrow.compute as pc

    try:
        amounts = _pointed(texts, decimal).cast(pa.float64())
    except pa.ArrowInvalid:
        return None
    finite = pc.all(pc.is_finite(amounts)).as_py()
    return amounts if finite and not _matches(texts, _LABEL).any() else None


def _pointed(texts: Any, decimal: str) -> Any:
    """Texts with a decimal point in place of the decimal sign; a point that is no decimal sign makes no number."""
    import pyarrow.compute as pc

    if decimal == ".":
        return texts
    return pc.replace_substring(pc.replace_substring(texts, ".", "'"), decimal, ".")


def _matches(texts: Any, pattern: str) -> npt.NDArray[np.bool_]:
    import pyarrow.compute as pc

    return np.asarray(
        pc.match_substring_regex(texts, pattern).fill_null(False).to_numpy(zero_copy_only=False), bool
    )


# What each column is.


def _describe(facts: _Facts) -> _Draft:
    draft = _Draft(facts, Column(facts.name, "text"))
    if facts.shape == "empty":
        return draft.asked("all-missing", "there is no value at all; proposed to be dropped", drop=True)
    if facts.shape == "nested":
        return draft.asked(
            "nested", "lists and structures cannot be masked; proposed to be dropped", drop=True
        )
    if facts.shape == "date" or _counts_days(facts):
        return draft.asked("date", f"dates or times: {_DATE_QUESTION}", drop=True)
    if _mixes_booleans(facts.texts):
        return _category(draft).asked(
            "boolean", "yes and no are written in several ways: recode, or drop", drop=True
        )
    return _describe_number(draft) if facts.shape == "number" else _describe_text(draft)


_DATE_QUESTION = "a number (age, days since), a category (year), or dropped as proposed?"


def _counts_days(facts: _Facts) -> bool:
    """Whether whole numbers are all dates such as 20240131."""
    if not facts.whole or len(facts.support) < 10 or not 19e6 < facts.support[0] < facts.support[-1] < 21e6:
        return False
    month, day = facts.support // 100 % 100, facts.support % 100
    return bool(np.all((month >= 1) & (month <= 12) & (day >= 1) & (day <= 31)))


def _mixes_booleans(texts: tuple[str, ...]) -> bool:
    folded = {text.casefold() for text in texts}
    if not folded or not folded <= set().union(*_BOOLEANS):
        return False
    letters = all(len(text) == 1 and text.isalpha() for text in folded)
    return len(texts) > len(folded) or not (letters or any(folded <= family for family in _BOOLEANS))


def _category(draft: _Draft) -> _Draft:
    facts = draft.facts
    labels = [str(int(value)) for value in facts.support] if facts.shape == "number" else sorted(facts.texts)
    column = Column(facts.name, "category", categories=(*labels, *facts.literals))
    return replace(draft, column=column)


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
    listed = ", ".join(f'"{label}"' for label in absent)
    text = (
        f"is {listed} a category, or does it mean that there is no value? Then take it out of the categories"
    )
    return draft.asked("code", text, f"missing = [{listed}]")


def _describe_number(draft: _Draft) -> _Draft:
    facts = draft.facts
    kind = "integer" if facts.whole else "continuous"
    unit = None if facts.whole else facts.unit
    draft = replace(draft, column=Column(facts.name, kind, unit=unit, missing=facts.literals))
    if facts.stray is not None:
        draft = draft.asked(
            "infinite", f"the value of record {facts.stray:,} is not finite: correct it first"
        )
    if facts.distinct + len(facts.literals) <= 1:
        return draft.asked("constant", "all values are the same: noise has no scale here")
    if facts.whole and set(facts.support) == {0, 1}:
        return _with_absent_labels(_category(draft).asked("boolean", "0 and 1: a category"))
    few = len(facts.support) <= min(MOST_NUMBER_CATEGORIES, LARGEST_CATEGORY_SHARE * facts.records)
    if facts.whole and few and not _WEIGHT_NAME.fullmatch(facts.lower_name):
        text = (
            f"only {len(facts.support)} different whole numbers: a category; if they count something, integer"
        )
        return _with_spikes(_with_absent_labels(_category(draft).asked("category", text)))
    return _with_unit(_with_pile_ups(_with_spikes(_with_literals(draft))))


# Codes among the numbers.


def _with_literals(draft: _Draft) -> _Draft:
    if not draft.column.missing:
        return draft
    listed = ", ".join(f'"{literal}"' for literal in draft.column.missing)
    return draft.asked("code", f"{listed} among the numbers: taken to mean that there is no value; right?")


def _with_spikes(draft: _Draft) -> _Draft:
    facts = draft.facts
    spikes = _spikes(facts.support, facts.counts)
    if not spikes:
        return draft
    counts = facts.counts[np.searchsorted(facts.support, spikes)]
    shares = ", ".join(
        f"{_share(int(c), facts)} are {_number(v)}" for v, c in zip(spikes, counts, strict=True)
    )
    as_text = draft.column.kind == "category"
    listed = ", ".join(f'"{_number(v)}"' if as_text else _number(v) for v in spikes)
    also = " and take it out of the categories" if as_text else ""
    top = (
        f"; a top code? Then top = {_number(spikes[-1])}"
        if spikes[-1] == facts.support[-1] and not as_text
        else ""
    )
    text = (
        f"of the values {shares}, apart from the rest: a code for no value? Then switch on missing{also}{top}"
    )
    return replace(draft.asked("spike", text, f"missing = [{listed}]"), spikes=spikes)


def _spikes(support: Floats, counts: Counts) -> tuple[float, ...]:
    """Values that look like codes: conventional ones below zero or far out, and frequent ones far from the rest."""
    total, found = int(counts.sum()), set[float]()
    negative = support[support < 0]
    if 1 <= len(negative) <= 5 and len(support) >= len(negative) + 2 and all(map(_is_code, negative)):
        found |= set(negative.tolist())
    kept = ~np.isin(support, list(found))
    found |= set(_far_out(support[kept], counts[kept], total))
    kept = ~np.isin(support, list(found))
    found |= {-value for value in _far_out(-support[kept][::-1], counts[kept][::-1], total)} - {0.0}
    for i in range(len(support) - 5, len(support)):
        if i >= 5 and support[i] > 9 and _is_code(support[i]) and _in_excess(counts, i):
            found.add(float(support[i]))
    for nines in (9999.0, 99999.0, 999999.0, 9999999.0, 99999999.0):
        i = int(np.searchsorted(support, nines))
        if 0 < i < len(support) and support[i] == nines and _in_excess(counts, i):
            found.add(nines)
    return tuple(sorted(found))


def _is_code(value: float) -> bool:
    return bool(_CODE.fullmatch(_number(value)))


def _far_out(support: Floats, counts: Counts, total: int) -> list[float]:
    """Up to five largest values beyond a gap of half the range of the others, if all are codes or frequent."""
    for k in range(1, min(6, len(support) - 1)):
        gap, spread = support[-k] - support[-k - 1], support[-k - 1] - support[0]
        values = support[-k:].tolist()
        frequent = counts[-k:] >= max(5, 0.01 * total)
        if gap > spread / 2 and all(often or _is_code(v) for v, often in zip(values, frequent, strict=True)):
            return values
    return []


def _in_excess(counts: Counts, i: int) -> bool:
    """Whether a value is five times as frequent as its ten neighbours on either side."""
    near = np.r_[counts[max(0, i - 10) : i], counts[i + 1 : i + 11]]
    return bool(counts[i] >= max(5, 0.001 * counts.sum(), 5 * near.mean()) and counts[i] > near.max())


def _with_pile_ups(draft: _Draft) -> _Draft:
    kept = ~np.isin(draft.facts.support, draft.spikes)
    support, counts = draft.facts.support[kept], draft.facts.counts[kept]
    if len(support) <= 10:
        return draft
    for what, end, i in (("top", "largest", -1), ("bottom", "smallest", 0)):
        if _in_excess(counts, i % len(counts)):
            share, value = _share(int(counts[i]), draft.facts), _number(support[i])
            text = f"{share} of the values are {value}, the {end}: a {what} code? Then switch on {what}"
            draft = draft.asked("pile-up", text, f"{what} = {value}")
    return draft


def _with_unit(draft: _Draft) -> _Draft:
    facts = draft.facts
    support = facts.support[~np.isin(facts.support, draft.spikes)]
    if facts.unit is None:
        return draft.asked(
            "unit", "more than 6 decimals, so no unit is proposed: in which one may values leave?"
        )
    if not facts.whole:
        return draft.asked("unit", f"all values are multiples of {_number(facts.unit)}, proposed as the unit")
    coarse = next((10**k for k in range(6, 0, -1) if not np.any(support % 10**k)), 1)
    if coarse == 1 or len(support) < 10:
        return draft
    text = f"all values are multiples of {coarse}: released in that unit? Then switch on unit"
    return draft.asked("unit", text, f"unit = {coarse}")


def _share(count: int, facts: _Facts) -> str:
    share = count / facts.present
    return f"{share:.1%}" if share >= 0.001 else f"{count:,}"


def _number(value: float) -> str:
    return str(int(value)) if float(value).is_integer() and abs(value) < 1e15 else repr(float(value))


# What each column is for.


def _with_roles(drafts: list[_Draft]) -> list[_Draft]:
    drafts = [_with_group(draft) for draft in drafts]
    scores = [_id_score(draft) for draft in drafts]
    best = int(np.argmax(scores)) if any(scores) else None
    drafts = [
        _with_id(draft, score, i == best) for i, (draft, score) in enumerate(zip(drafts, scores, strict=True))
    ]
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
    if not _is_nominal(draft) or facts.distinct < facts.records:
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
            "id", "every record has its own value, as an id has: drop it as proposed?", drop=True
        )
    named = re.fullmatch(rf"(.*[^a-z]|case|person|patient)?({_ID_WORD})", facts.lower_name)
    if named and _is_nominal(draft) and 2 * facts.distinct > facts.records:
        other = facts.records - facts.distinct
        text = f"named like an id, but {other:,} records repeat a value or have none: correct it, or drop it"
        return bare.as_text("id", text, drop=True)
    return draft


def _may_be_weight(draft: _Draft) -> bool:
    facts = draft.facts
    named = draft.column.is_number and _WEIGHT_NAME.fullmatch(facts.lower_name)
    return bool(named and not facts.missing and facts.distinct > 1 and facts.support[0] > 0)


def _with_weight(draft: _Draft) -> _Draft:
    text = "positive and named like a survey weight: is it one? Else make its role key"
    return draft.asked("weight", text, roles=frozenset({"weight"}))


def _with_use(draft: _Draft) -> _Draft:
    facts, column = draft.facts, draft.column
    if column.drop or column.roles or (facts.distinct + len(facts.literals) <= 1 and column.kind != "text"):
        return draft
    if column.kind == "text":
        at = f"; record {facts.stray:,} is the first that is no number" if facts.stray else ""
        return draft.asked(
            "text", f"text with mostly different values cannot be masked: drop it?{at}", drop=True
        )
    if column.is_number:
        return replace(draft, column=replace(column, roles=frozenset({"key"})))
    if len(column.categories) <= MOST_BLOCK_VALUES:
        return replace(draft, column=replace(column, roles=frozenset({"block"})))
    return draft.asked(
        "category", f"{len(column.categories)} categories are too many for a block: group them?"
    )


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
    blocks = [draft for draft in drafts if "block" in draft.column.roles]
    alone = _alone([draft.facts for draft in blocks]) if blocks else 0
    if alone:
        listed = ", ".join(repr(draft.column.name) for draft in blocks)
        text = f"{alone:,} records are alone in their block ({listed}), where noise protects no one: merge categories, or use fewer blocks"
        found.append(Finding(None, "small-blocks", text))
    return found


def _alone(blocks: Sequence[_Facts]) -> int:
    """The number of records that no other record shares all categories with."""
    cells = np.zeros(blocks[0].records, np.int64)
    for facts in blocks:
        _, cells = np.unique(cells * (facts.distinct + 1) + facts.category_codes + 1, return_inverse=True)
    return int(np.count_nonzero(np.bincount(cells) == 1))

"""The cautious answer to every question that a file leaves open, so that a plan can be run and then improved.

What `inspect` asks is answered such that nothing leaves that should not: what may be an identifier is dropped, what may
be a code stays a code, of two columns that say the same one is dropped. Every answer is told, with what to write where
it is wrong.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from ..errors import BadInput, MaskwellWarning
from ..io.constant_columns import GroupedRecords
from ..notes import has_code
from ..schema import Column, Schema
from ..words.io import spike_phrase
from .column_numbers import SHORT, are_numbers, class_numbers, code_numbers, group_codes
from .dependence import is_shared, is_shared_in_part
from .determined_amounts import Candidates, ties_of
from .draft_words import sentences
from .group_constancy import few_sharing_words, is_nearly_shared, own_value_words, sharing_share_words
from .hidden_columns import STAY, Clear
from .narrow_classes import on_narrow, without_narrow
from .near_identities import linear_words
from .questions import (
    KEPT_ROLES,
    DraftAnswer,
    Question,
    on_dropped,
    on_names,
    on_repeats,
    on_totals,
    on_values,
    still_open,
    told_of_dropped,
)
from .repeated_values import (
    without_copies,
    without_functions,
    without_given,
    without_lags,
    without_parts,
)
from .shared_values import without_averages
from .sums import Sum, exact_sums, members, on_dropped_parts

if TYPE_CHECKING:
    from ..attacks import Risk
    from ..io.inspect import SchemaProposal
    from ..io.raw_columns import Raw
    from ..pipeline.reassembly import Reassembly
    from ..table import Table

MOST_CATEGORIES, LARGEST_CATEGORY_SHARE = 20, 0.05  # as inspect has them
RARE = 5  # records
CODE = re.compile(r"-.*|9*[6-9](\.0)?|7+|8+")
WRITTEN = re.compile(r"-?\d+(\.\d{1,2})?")
# Draws of changes at random, to see which groups they leave together, and the first one's seed: no release is one
CHANGES, SEED = 3, 20_240_611
DRAWN_WORDS = f"after changes at random with stay = {STAY:g}, in the worst of {CHANGES} draws; "
TOP_DIGITS = 4  # of a top code: 112500, 99.99; an amount of a town or a firm has more


@dataclass(frozen=True, slots=True)
class DecidedSchema:
    """A schema in which everything is decided, and what a plan for it must know.

    `proposal` has the schema with the remarks on its columns, `sums` are the columns that are recomputed, `floor` is
    what an intruder finds by what leaves in clear alone.
    """

    proposal: SchemaProposal
    table: Table
    sums: tuple[Sum, ...] = ()
    questions: tuple[Question, ...] = ()
    floor: Risk | None = field(default=None, compare=False)
    known: dict[str, Any] = field(default_factory=dict, compare=False, repr=False)

    @property
    def schema(self) -> Schema:
        """The decided schema."""
        return self.proposal.schema

    def once(self, name: str, make: Callable[[], Any]) -> Any:
        """Return what is known by a name, made at the first asking."""
        if name not in self.known:
            self.known[name] = make()
        return self.known[name]

    def codes(self, name: str) -> Any:
        """Return the values of a column as numbers from 0 on; a missing value is one too."""
        from ..attacks.joint_codes import block_codes

        return self.once(f"codes of {name}", lambda: block_codes(self.table, self.table, (name,))[0])

    @property
    def clear(self) -> Clear:
        """What leaves in clear, and what an intruder finds by it."""
        floor = self.floor
        assert floor is not None
        masked = (*self.amounts, *(total for total, _ in self.sums), *self.changed)
        drawn = (*self.amounts, *self.changed)
        made = self.once("clear", lambda: Clear(self.table, drawn, masked, self.blocks, floor))
        return cast("Clear", made)

    def block_count(self, columns: Iterable[str]) -> int:
        """Return how many combinations of some columns' values occur."""
        from ..attacks.joint_codes import joint_codes

        parts = [(self.codes(name), int(self.codes(name).max(initial=0)) + 1) for name in columns]
        return int(joint_codes(parts, len(self.table)).max(initial=-1)) + 1

    @property
    def amounts(self) -> tuple[str, ...]:
        """The columns that noise masks: the numbers of role key that are not recomputed."""
        totals = {total for total, _ in self.sums}
        return tuple(name for name in self.keys if name not in totals)

    @property
    def keys(self) -> tuple[str, ...]:
        """The numbers of role key that leave."""
        return tuple(name for name in self.schema.with_role("key") if self.schema[name].is_number)

    @property
    def categories(self) -> tuple[str, ...]:
        """The category columns that leave."""
        return tuple(c.name for c in self.schema.columns if c.kind == "category" and not c.drop)

    @property
    def changed(self) -> tuple[str, ...]:
        """The categories that are changed at random: all that vary, where there is no amount to be masked."""
        several = [name for name in self.categories if len(self.schema[name].categories) > 1]
        return () if self.amounts else tuple(several)

    @property
    def blocks(self) -> tuple[str, ...]:
        """The columns by which an intruder can match for sure: all that leaves as it is and that he may know."""
        moved = {*self.amounts, *self.changed, *(total for total, _ in self.sums)}
        return tuple(
            c.name
            for c in self.schema.columns
            if not c.drop and c.name not in moved and c.may_be_known and self.codes(c.name).any()
        )

    @property
    def rest(self) -> tuple[str, ...]:
        """What an exchange of the amounts inside blocks would part them from: all else that differs there."""
        blocks, moved = self.schema.with_role("block"), {*self.amounts, *(total for total, _ in self.sums)}
        fixed = moved | set(blocks)
        others = [
            c.name for c in self.schema.columns if not c.drop and c.name not in fixed and "id" not in c.roles
        ]

        count = self.block_count(blocks)
        return tuple(name for name in others if self.block_count((*blocks, name)) > count)


def decide(raw: Raw, proposal: SchemaProposal) -> DecidedSchema:
    """Answer what a proposal leaves open."""
    steps = (
        _as_categories,
        _with_codes,
        _without_ids,
        _weight_answers,
        _without_many,
        _without_shared,
        _on_table(without_copies),
        _on_table(without_parts),
    )
    asked = [*on_totals(proposal), *on_dropped(proposal), *on_repeats(proposal), *on_names(proposal)]
    questions, copies, given = asked, dict[str, str](), dict[str, str]()
    for step in steps:
        answers = step(raw, proposal)
        copies |= {answer.column.name: answer.copy_of for answer in answers if answer.copy_of}
        given |= {answer.column.name: answer.given_by for answer in answers if answer.given_by}
        proposal = _amended_proposal(proposal, answers)
        questions += [answer.question for answer in answers if answer.is_asked]
    table = _table(raw, proposal.schema)
    answers = [*without_functions(table), *without_lags(table, copies)]
    proposal = _amended_proposal(proposal, answers)
    questions += [answer.question for answer in answers]
    sums = exact_sums(_table(raw, proposal.schema))
    proposal = _with_sums(proposal, sums)
    answers = _dependents_and_averages(raw, proposal, sums, copies)
    proposal = _amended_proposal(proposal, answers)
    questions = told_of_dropped(questions, copies, {answer.column.name for answer in answers})
    questions += [answer.question for answer in answers]
    answers = without_given(_table(raw, proposal.schema))
    proposal = _amended_proposal(proposal, answers)
    questions += [answer.question for answer in answers]
    given |= {answer.column.name: answer.given_by for answer in answers}
    gone = {column.name for column in proposal.schema.columns if column.drop}
    questions = told_of_dropped(questions, given, gone)
    decided = _complete_decisions(raw, proposal, sums, ())
    questions += [
        *on_values(proposal),
        *_on_groups(decided),
        *on_dropped_parts(proposal, lambda schema: _table(raw, schema)),
    ]
    questions += on_narrow(decided.table, [name for one in sums for name in members(one)])
    return replace(decided, questions=tuple(still_open(questions, proposal.schema)))


def decided_by(raw: Raw, schema: Schema) -> DecidedSchema:
    """Take a schema as its author has decided it; only sums and the floor are looked for."""
    from ..io.inspect import SchemaProposal

    return _complete_decisions(
        raw, SchemaProposal(schema, (), raw.data.num_rows), exact_sums(_table(raw, schema)), []
    )


def _complete_decisions(
    raw: Raw, proposal: SchemaProposal, sums: tuple[Sum, ...], questions: Iterable[Question]
) -> DecidedSchema:
    from ..attacks import Fingerprint, attack

    table = _table(raw, proposal.schema)
    dropped = {column.name for column in proposal.schema.columns if column.drop}
    told = tuple(
        one
        for one in proposal.findings
        if one.kind != "small-blocks"  # the floor is told in its place
        and not dropped & {*one.others, one.column if one.others else None}
    )
    decided = DecidedSchema(replace(proposal, findings=told), table, sums, tuple(questions))
    if not decided.amounts and not decided.changed:
        raise BadInput("no column of the file can be masked: there is neither an amount nor a category")
    masked = (*decided.amounts, *(total for total, _ in sums), *decided.changed)
    return replace(decided, floor=attack(Fingerprint(masked=masked), table))


def _on_table(
    step: Callable[[Table], list[DraftAnswer]],
) -> Callable[[Raw, SchemaProposal], list[DraftAnswer]]:
    """Return a step that looks at the table alone."""
    return lambda raw, proposal: step(_table(raw, proposal.schema))


def _table(raw: Raw, schema: Schema) -> Table:
    from ..io import conform_raw

    return conform_raw(raw, schema)


def _amended_proposal(proposal: SchemaProposal, answers: Iterable[DraftAnswer]) -> SchemaProposal:
    """Return a proposal in which columns are described anew; the remark that led there tells what was taken."""
    from ..io.column_drafts import ColumnFinding

    changes, findings = {}, list(proposal.findings)
    for answer in answers:
        name = answer.column.name
        changes[name] = answer.column
        text = sentences(answer.question.taken, answer.question.otherwise).removesuffix(".")
        findings = [one for one in findings if (one.column, one.kind) != (name, answer.kind)]
        findings.append(ColumnFinding(name, answer.kind, text))
    return replace(proposal, schema=proposal.schema.changed(changes), findings=tuple(findings))


# What each column is.


def _as_categories(raw: Raw, proposal: SchemaProposal) -> list[DraftAnswer]:
    """Take few short whole numbers that are written with decimals for codes, as those without are."""
    from ..io.texts import as_text, in_order

    answers = []
    for column in proposal.schema.columns:
        if column.kind != "continuous" or column.drop or column.missing or column.roles & KEPT_ROLES:
            continue
        labels = as_text(raw.data.column(column.name).combine_chunks()).unique().drop_null().to_pylist()
        few = 1 < len(labels) <= min(MOST_CATEGORIES, LARGEST_CATEGORY_SHARE * proposal.records)
        if few and all(map(SHORT.fullmatch, labels)) and not _are_years(column.name, labels):
            ordered = tuple(in_order(labels))
            made = Column(column.name, "category", frozenset({"block"}), categories=ordered)
            taken = f"only {len(labels)} different whole numbers: a category"
            question = Question(column.name, taken, "An amount? Then kind continuous, without categories")
            answers.append(DraftAnswer(made, "unit", question, is_asked=False))
    return answers


def _are_years(name: str, labels: Iterable[str]) -> bool:
    from ..io.inspect import are_years

    return are_years(name, np.sort([float(label.replace(",", ".")) for label in labels]))


def _with_codes(raw: Raw, proposal: SchemaProposal) -> list[DraftAnswer]:
    """Take what may be a code for one: it then leaves as it is, and counts among what noise does not hide."""
    answers = []
    for finding in proposal.findings:
        column = proposal.schema[finding.column] if finding.column is not None else None
        if column is None or finding.kind != "spike" or not column.is_number or column.drop:
            continue
        if "weight" in column.roles:
            continue  # a code is no weight, and few weights lie far from the rest
        codes = finding.figures["codes"]
        if not all(map(WRITTEN.fullmatch, (f"{code:.15g}" for code in codes))):
            continue  # nobody writes a code with many decimals
        shown = ", ".join(f"{code:.15g}" for code in codes)
        values = _table(raw, proposal.schema).values([column.name])
        if min(np.count_nonzero(values == code) for code in codes) < RARE:
            continue  # a value of few records would tell them apart: masked, as inspect leaves it
        made, line, is_top = replace(column, missing=(*column.missing, *codes)), f"missing = [{shown}]", False
        if finding.figures["may_be_top"] and len(codes) == 1 and not CODE.fullmatch(shown):
            made, line, is_top = replace(column, top=codes[0]), f"top = {shown}", True
        if not (_is_round(codes[0]) if is_top else all(map(CODE.fullmatch, map("{:.15g}".format, codes)))):
            continue  # the population of a large town stands apart too: an amount, and masked
        what = "a top code" if is_top else "codes for no value"
        figures = {name: finding.figures[name] for name in ("codes", "counts", "present")}
        taken = f"{spike_phrase(**figures)}, apart from the rest: taken for {what}, to leave unchanged"
        question = Question(column.name, taken, f"Amounts? Then take {line} out of the schema")
        answers.append(DraftAnswer(made, "spike", question))
    return answers


def _is_round(value: float) -> bool:
    """Whether a number has few digits but zeros at its end, as a top code that somebody chose has."""
    return float(f"{value:.{TOP_DIGITS}g}") == value


def _without_ids(raw: Raw, proposal: SchemaProposal) -> list[DraftAnswer]:
    """Drop what may be an identifier."""
    answers = []
    for name, asked in proposal.questions().items():
        if has_code(asked, "io.asks_identifier"):
            found = next(one for one in proposal.of(name) if one.kind == "id")
            first = "correct these in the file first, and give it " * found.figures["has_faults"]
            otherwise = (
                'An amount? Then take drop out of the schema and give it roles = ["key"]. The id of each record? Then '
                f'{first}roles = ["id"] in its place. A group of records? Then roles = ["group"] beside drop'
            )
            taken = f"{found.found}: dropped"
            made = replace(proposal.schema[name], drop=True, roles=frozenset())
            answers.append(DraftAnswer(made, "id", Question(name, taken, otherwise)))
    return answers


def _weight_answers(raw: Raw, proposal: SchemaProposal) -> list[DraftAnswer]:
    """Drop a weight by which any record is alone: weights are never masked by noise, and this one is only supposed."""
    from ..attacks import Fingerprint, attack

    name = next(iter(proposal.schema.with_role("weight")), None)
    if name is None:
        return []
    table = _table(raw, proposal.schema)
    share = attack(Fingerprint(columns=(name,), masked=()), table).rate
    why = next(one.figures["reason"] for one in proposal.of(name) if one.kind == "weight")
    by = proposal.schema.with_role("group", dropped=True)
    alone = next(filter(None, (own_value_words(table, name, one) for one in by)), "")
    if share == 0 and not alone:
        taken = f"{why}: taken for one, to leave as it is"
        question = Question(name, taken, 'The weight of a body, or another amount? Then roles = ["key"]')
        return [DraftAnswer(proposal.schema[name], "weight", question)]
    told = f"{share:.0%}" if share >= 0.01 else "under 1%"
    by_itself = f"by itself it identifies {told} of the records" if share else alone
    taken = f"{why}. A survey weight gets no noise, and so it is dropped; {by_itself}"
    shared = next((one for one in by if is_nearly_shared(table, name, one)), "")
    amount = 'Then roles = ["key"], without drop'
    if shared:
        amount = f"Then put it in classes (a category): a mean over records with one {shared} would undo noise on each"
    otherwise = (
        f"Needed as a weight? Then round it in the file to few values and take drop out. An amount? {amount}"
    )
    made = replace(proposal.schema[name], drop=True)
    return [DraftAnswer(made, "weight", Question(name, taken, otherwise))]


def _without_many(raw: Raw, proposal: SchemaProposal) -> list[DraftAnswer]:
    """Drop categories of so many values that nobody can match by them, and few records share one."""
    answers = []
    for column in proposal.schema.columns:
        count = len(column.categories)
        if column.kind == "category" and not column.drop and not column.roles and count > 1:
            taken = f"{count} categories, too many to leave in clear: dropped"
            otherwise = "Wanted? Then put them in classes in the file, and describe it anew"
            question = Question(column.name, taken, otherwise)
            answers.append(DraftAnswer(replace(column, drop=True), "category", question))
    return answers


# Columns that say the same.


def _without_shared(raw: Raw, proposal: SchemaProposal) -> list[DraftAnswer]:
    """Drop amounts that are the same for all records of a group or a category: noise on each would average out."""
    from ..attacks.joint_codes import block_codes

    table, schema = _table(raw, proposal.schema), proposal.schema
    by = [c.name for c in schema.columns if "group" in c.roles or (c.kind == "category" and not c.drop)]
    used = [c for c in schema.columns if c.is_number and not c.drop and not c.roles & KEPT_ROLES]
    codes = {f"with one {name}": group_codes(table, name) for name in by}
    persons = {
        who: codes[who] for who in (f"with one {name}" for name in schema.with_role("group", dropped=True))
    }
    nearly = [(who, GroupedRecords.of(numbers)) for who, numbers in persons.items()]
    clear = tuple(name for name in by if not schema[name].drop)
    if len(clear) > 1:
        codes[f"alike in {', '.join(clear)}"] = block_codes(table, table, clear)[0]
    answers = []
    for column in used:
        values = table.values([column.name])[:, 0]
        of = next((who for who, numbers in codes.items() if is_shared(numbers, values)), None)
        few = [who for who, numbers in persons.items() if of is None and is_shared_in_part(numbers, values)]
        of = of or next((few_sharing_words(who, persons[who], values) for who in few), None)
        said = "" if of is None else f"the same for all records {of}"
        said = said or next(
            filter(None, (sharing_share_words(who, group, values) for who, group in nearly)), ""
        )
        if said:
            taken = f"{said}: dropped, as the mean over them undoes noise on each"
            otherwise = "Wanted in the release? Then put it in classes in the file (a category)"
            made = replace(column, drop=True, roles=frozenset())
            answers.append(DraftAnswer(made, "shared", Question(column.name, taken, otherwise)))
    return answers


def _on_groups(decided: DecidedSchema) -> list[Question]:
    """Ask about what leaves and puts the members of a dropped group together again, counted as a release counts it."""
    from ..pipeline.reassembly import codes_for_none, sure_reassemblies

    table, questions = decided.table, list[Question]()
    for name, share in codes_for_none(table).items():
        taken = f"{name}: one value holds {share:.1%} of the records: taken for a code for none, and not for a group"
        questions.append(Question(None, taken, "A group? Then see to it that nothing that leaves tells it"))
    left = [c for c in table.schema.columns if not c.drop]
    clear = [c.name for c in left if "weight" in c.roles or table.has_classes(c.name)]
    sure = sure_reassemblies(table, [name for name in clear if name not in decided.changed])
    known = {one.column for one in sure}
    drawn = [one for one in _after_changes(decided) if one.column not in known] if decided.changed else []
    for one in (found for found in (*sure, *drawn) if not found.leaves):
        by, less = (DRAWN_WORDS, ", or give a smaller stay") if one in drawn else ("", "")
        taken = (
            f"{', '.join(one.columns)}: put {one.together:,} of {one.groups:,} groups by {one.column} together "
            f"again although it is dropped ({by}each alone with what it shares, or with two others at most), which no "
            "figure about single records judges"
        )
        questions.append(
            Question(None, taken, f"Decide: drop some of them in the schema, or put them in classes{less}")
        )
    return questions


def _after_changes(decided: DecidedSchema) -> list[Reassembly]:
    """Return what changed categories tell of groups where that is too much: of a few draws that which tells most.

    True values would tell far more than leaves.
    """
    from ..keys import Key
    from ..masking import apply
    from ..masks import Pram
    from ..pipeline.reassembly import reassemblies

    most: dict[str, Reassembly] = {}
    for number in range(CHANGES):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", MaskwellWarning)
            masking = apply(Pram(decided.changed, stay=STAY), decided.table, key=Key.from_seed(SEED + number))
        for one in reassemblies(masking):
            if one.column not in most or one.share > most[one.column].share:
                most[one.column] = one
    return [one for one in most.values() if not one.is_judged]


def _dependents_and_averages(
    raw: Raw, proposal: SchemaProposal, sums: tuple[Sum, ...], copies: Mapping[str, str]
) -> list[DraftAnswer]:
    """Drop what others determine, what averages out and what classes tell; then ties are told anew."""
    tied = _without_dependents(_table(raw, proposal.schema), proposal, sums, copies)
    rest = _table(raw, _amended_proposal(proposal, tied).schema)
    fixed = [name for one in sums for name in members(one)]
    answers = without_averages(rest, fixed)
    rest = _table(raw, rest.schema.changed({answer.column.name: answer.column for answer in answers}))
    answers += without_narrow(rest, fixed)
    if not answers:
        return tied
    fewer = _amended_proposal(proposal, answers)
    return [*answers, *_without_dependents(_table(raw, fewer.schema), fewer, sums, copies)]


def _without_dependents(
    table: Table, proposal: SchemaProposal, sums: Iterable[Sum], copies: Mapping[str, str]
) -> list[DraftAnswer]:
    """Drop amounts that a few others nearly determine: noise like the data's would leave that tie as it is."""
    fixed = [name for one in sums for name in members(one)]
    names = [c.name for c in proposal.schema.columns if "key" in c.roles and c.is_number and not c.drop]
    left = [c for c in proposal.schema.columns if c.kind == "category" and not c.drop]
    codes = [c.name for c in left if are_numbers(c.categories)]
    copies = {name: of for name, of in copies.items() if of in names}
    classes = [c.name for c in left]
    every = (*names, *codes, *copies)
    if not names or not len(table):
        return []
    columns = [code_numbers(table, name) if name in codes else table.floats(name) for name in every]
    columns += [class_numbers(table, name) for name in classes]
    of_copies = {every.index(name): names.index(of) for name, of in copies.items()}
    numbered = tuple(range(len(every), len(columns)))
    every = (*every, *classes)
    among = Candidates(np.column_stack(columns), every, len(names), of_copies, numbered)
    answers: list[DraftAnswer] = []
    for name, said in ties_of(among, fixed).items():
        taken = f"{said}: dropped, as noise would leave that tie as it is"
        question = Question(name, taken, "Wanted in the release? Then drop one of those in its place")
        made = replace(proposal.schema[name], drop=True, roles=frozenset())
        answers.append(DraftAnswer(made, "near-duplicate", question))
    return answers


# Sums.


def _with_sums(proposal: SchemaProposal, sums: Iterable[Sum]) -> SchemaProposal:
    """Take the role key from columns that are recomputed: the noise of their parts is theirs."""
    answers = []
    for total, parts in sums:
        column = proposal.schema[total]
        formula = linear_words([part for part, _ in parts], np.array([*(c for _, c in parts), 0.0]))
        question = Question(total, f"exactly {formula}: recomputed from the masked ones", "")
        answers.append(DraftAnswer(replace(column, roles=column.roles - {"key"}), "identity", question))
    return _amended_proposal(proposal, answers)

"""A commented plan for a file whose schema is decided: what `maskwell new` writes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from .column_numbers import are_numbers
from .draft_decisions import DecidedSchema
from .draft_masks import (
    clear_words,
    drafted_rate,
    floor_limit,
    masks_section,
    pram_offer,
    to_drop,
)
from .draft_words import comment, is_word, names_of, plain, toml_list, toml_string
from .hidden_columns import Clear
from .questions import Question
from .sections import FIFTEEN_PERCENT

LAW = "knows the law"
MANY = 20_000  # records
TITLE = "Masked microdata"
MOST_MODEL_TERMS, MOST_MODEL_LEVELS = 3, 10
COMPARE_CATEGORIES = {  # of the eight, those for whom a category need not be a block
    "Winkler's matcher": ['attack = "Linkage"'],
    LAW: ['attack = "BayesIntruder"'],
    f"{LAW}, one-to-one": ['attack = "BayesIntruder"', 'assignment = "one-to-one"'],
    "the ceiling": ['attack = "BayesIntruder"', 'helpers = "all"'],
    "fingerprint alone": ['attack = "Fingerprint"'],
}


@dataclass(frozen=True, slots=True)
class Places:
    """The paths that a plan names, as it writes them."""

    plan: str
    file: str
    schema: str
    release: str
    private: str


def draft_plan(decided: DecidedSchema, places: Places, read_as: Mapping[str, str]) -> str:
    """Write a plan with comments; `read_as` are keys of [input] beside file and schema."""
    parts: list[Callable[[DecidedSchema], list[str]]] = [
        masks_section,
        _tolerance,
        _calibrate,
        _swap,
        _targets,
        _intruders,
        _models,
        _utility,
        _audit,
        _card,
    ]
    text = [_head(decided, places), _input(decided, places, read_as), *(part(decided) for part in parts)]
    text += [_report(), _output(places)]
    return "\n\n".join("\n".join(lines) for lines in text if lines) + "\n"


def draft_schema(decided: DecidedSchema) -> str:
    """Write the decided schema with a remark above every column of which there is one."""
    return decided.proposal.to_toml(
        "# A schema drafted by maskwell new: what each column is and whether it leaves. Check the roles above all:",
        '# "key" is masked by noise, "block" leaves as it is and an intruder relies on it, drop = true stays inside.',
    )


def floor_question(decided: DecidedSchema) -> Question | None:
    """Ask what to do about records that no noise protects, where the audit or the tolerance would refuse them."""
    floor = decided.floor
    guessing = 0.0 if floor is None else decided.clear.guessing()
    said = []
    if floor is not None and floor.rate > floor_limit():
        said.append(
            f"what leaves unmasked ({clear_words(decided)}) tells {floor.rate:.1%} of the records apart, where "
            f"{floor_limit():.0%} fails the audit"
        )
    if guessing > drafted_rate():
        alike = "all of that" if said else clear_words(decided)
        said.append(
            f"guessing among those alike in {alike} finds {guessing:.1%}, where {drafted_rate():.0%} is tolerated"
        )
    if floor is None or not said:
        return None
    columns, weights = to_drop(decided), decided.schema.with_role("weight")
    ways = []
    if columns:
        change = pram_offer(decided)
        it = "it" if len(columns) == 1 else "them"
        also = f", or switch on the mask Pram for {it} in the plan" if change is not None else ""
        also += _as_amounts(decided, columns)
        ways.append(f"drop {names_of(columns)} in the schema{also}{_same_gaps(decided, columns)}")
    if any(step["column"] in weights for step in floor.sure_floor.steps.to_pylist()):
        ways.append(f"give {names_of(weights)} fewer different values in the file")
    ways = ways or [
        "put categories in classes in the file, and fill gaps of what is masked or leave such records out"
    ]
    return Question(None, f"{', and '.join(said)}: no noise changes that", f"Decide: {', or '.join(ways)}")


def _as_amounts(decided: DecidedSchema, columns: Sequence[str]) -> str:
    """Offer to mask those of some categories that may be counts."""
    labels = {name: decided.schema[name].categories for name in columns}
    counts = [name for name, found in labels.items() if len(found) > 2 and are_numbers(found)]
    if not counts:
        return ""
    if len(counts) == 1:
        which = f"{'it' if len(columns) == 1 else names_of(counts)}, if it is a count, an amount"
    else:
        which = f"those of {names_of(counts)} that are counts amounts"
    return (
        f', or make {which} (kind = "integer", roles = ["key"], without categories), to which noise is added'
    )


def _same_gaps(decided: DecidedSchema, columns: Sequence[str]) -> str:
    """Say of amounts to drop that it is for their gaps, and that all with the same gaps must go."""
    gaps = decided.clear.with_gaps()
    named = [name for name in columns if name in gaps]
    if not named:
        return ""
    it = "it" if len(named) == 1 else "them"
    return f" ({names_of(named)} for what is missing or coded in {it}: filling that in the file would do as well)"


def gap_questions(decided: DecidedSchema) -> list[Question]:
    """Say of columns with gaps or codes that these leave as they are, and which have them in the same records."""
    if decided.floor is None:
        return []
    clear = decided.clear
    bundles = clear.gap_bundles()
    single = tuple(names[0] for names in bundles if len(names) == 1)
    return [
        _gap_question(clear, names, is_shared=names is not single)
        for names in (*(one for one in bundles if len(one) > 1), single)
        if names
    ]


def _gap_question(clear: Clear, names: tuple[str, ...], *, is_shared: bool) -> Question:
    counts = [int(np.count_nonzero(clear.table.status(name))) for name in names]
    shown = [plain(name) + (" (in clear)" if name in clear.blocks else "") for name in names]
    if is_shared:
        what = f"{', '.join(shown)}: no value, or a code, in the same {counts[0]:,} record{'s' * (counts[0] != 1)}"
    else:
        each = ", ".join(_with_count(clear, name, count) for name, count in zip(names, counts, strict=True))
        what = f"{each}: records without a value, or with a code"
    columns = "this column" if len(names) == 1 else "these columns"
    taken = (
        f"{what}, which no noise hides: guessing among those alike in what leaves in clear finds "
        f"{clear.guessing():.1%}, and without {columns} {clear.guessing(names):.1%}"
    )
    whole = "all of them" if is_shared else "such columns"
    alone = ", for without one of them the others still tell who they are" if is_shared else ""
    return Question(None, taken, f"Too much? Then drop {whole}{alone}{_fill_instead(clear, names)}")


def _fill_instead(clear: Clear, names: tuple[str, ...]) -> str:
    """Offer values for gaps of what is masked, as noise then hides them; a clear column goes on telling apart."""
    masked = [name for name in names if name not in clear.blocks]
    if not masked:
        return ""
    if len(masked) == len(names):
        return ". Values for these records in the file do as well: noise then hides them"
    are = "is" if len(masked) == 1 else "are"
    return f". For {names_of(masked)}, which {are} masked, values for these records in the file do as well"


def _with_count(clear: Clear, name: str, count: int) -> str:
    """Name a column with the number of its gaps: "sales (98)", "union (in clear, 6)"."""
    return f"{plain(name)} ({'in clear, ' if name in clear.blocks else ''}{count:,})"


def questions_of(decided: DecidedSchema) -> list[str]:
    """Return what a person should decide, in words; columns of which the same is asked stand together."""
    floor = floor_question(decided)
    alike: dict[tuple[str, str], list[Question]] = {}
    for question in (*decided.questions, *gap_questions(decided), *([floor] if floor else ())):
        alike.setdefault((question.taken, question.otherwise), []).append(question)
    return [
        str(replace(some[0], column=", ".join(one.column for one in some if one.column) or None))
        for some in alike.values()
    ]


def _head(decided: DecidedSchema, places: Places) -> list[str]:
    ready = (
        "It can be run as it is; whether it passes, the attacks and the audit will say:"
        if floor_question(decided) is None
        else "Decide what is asked below, then run"
    )
    lines = comment(f"The plan of a release, drafted by maskwell new. {ready}")
    lines += [f"#   maskwell release {places.plan}"]
    lines += comment(
        "Lines that begin with a # and a blank are remarks. Those that begin with a # alone are switched on by taking "
        "it away. Every key is explained in docs/plan.md."
    )
    asked = questions_of(decided)
    if asked:
        lines += ["#", "# For you to decide, answered cautiously until then:"]
        lines += [line for text in asked for line in comment(text, "#   - ", "#     ")]
    return lines


def _input(decided: DecidedSchema, places: Places, read_as: Mapping[str, str]) -> list[str]:
    lines = ["[input]", f"file = {toml_string(places.file)}"]
    lines.append(f"schema = {toml_string(places.schema)}  # what each column is, and what is dropped")
    return lines + [f"{key} = {toml_string(value)}" for key, value in read_as.items()]


# What is tolerated, and how it is met.


def _tolerance(decided: DecidedSchema) -> list[str]:
    lines = comment(
        "At most this share of the targets may be found, by any intruder but the ceiling, who knows everybody else. "
        f"The audit fails where the strongest finds {FIFTEEN_PERCENT.max_rate:.0%}, or half of those farthest out."
    )
    lines.append("[tolerance]")
    lines.append(f"max_rate = {drafted_rate():.2f}  # or max_ratio, expected_h, prob_h: see docs/plan.md")
    lines.append(
        '#over = "outlying"  # judged by the tenth of the targets that lies farthest out, not by all'
    )
    return lines


def _calibrate(decided: DecidedSchema) -> list[str]:
    if not decided.amounts:
        return comment("The chances above are taken as they are: change stay until the tolerance holds.")
    draws = 20 if len(decided.table) < MANY else 5  # many targets make the rate of one draw exact enough
    return [
        "# Search the weakest noise that meets the tolerance; without this section sd_ratio is taken as it is.",
        "[calibrate]",
        f"replicates = {draws}  # draws of the noise at each scale",
        f"confirmations = {2 * draws}  # fresh draws that confirm the scale found",
        "#per_column = true  # a scale for each column: less noise in all, a longer search",
    ]


def _swap(decided: DecidedSchema) -> list[str]:
    """Offer to exchange amounts where something stays in the row, and else say why that would be no help."""
    if not decided.amounts:
        return []
    if not decided.rest:
        return comment(
            "No swap is proposed. Beside the amounts nothing leaves that differs between records alike in all blocks, "
            "so that exchanging the amounts would only give the records other ids: whoever was found would be found "
            "again. Where this very draw of the noise exceeds the tolerance, its scale is raised."
        )
    if decided.sums:
        totals = names_of([total for total, _ in decided.sums])
        return comment(
            f"No swap is proposed. {totals} would move with the amounts and are not among what an intruder is taken to "
            "know, so that finding his amounts again would tell him something. Where this very draw exceeds "
            "the tolerance, its scale is raised."
        )
    lines = comment(
        f"A swap would part the amounts of those who were found from what stays in the row ({names_of(decided.rest)}). "
        "It makes nobody's amounts harder to find, so that it helps only where finding these alone does no harm: say "
        "why, which goes on record. Without this section the scale of the noise is raised."
    )
    return [*lines, "#[swap]", '#exempt_values = "..."']


def _targets(decided: DecidedSchema) -> list[str]:
    blocks = decided.blocks
    lines = ["# Whom the intruders are after, and what they rely on.", "[targets]"]
    if set(decided.amounts) != set(decided.keys) and decided.amounts:
        lines.append(
            f"fields = {toml_list(decided.amounts)}  # compared; what is recomputed from them adds nothing"
        )
    if decided.changed:
        lines.append(
            f"fields = {toml_list(decided.changed)}  # compared, by the chances that they were changed"
        )
    if blocks:
        lines.append(
            "#largest_target_block = 7  # only records in blocks of at most so many; else all records"
        )
        lines += comment(
            "Intruders rely on all that leaves in clear. Nobody outside knows one of them? Say why (on record):"
        )
        lines.append(f'#not_known = {{ {toml_string(blocks[-1])} = "..." }}')
    if len(decided.table) >= MANY:
        lines.append("#sample = 5000  # so many targets drawn at random: faster; rates then have an interval")
    return lines if len(lines) > 2 else []


def _intruders(decided: DecidedSchema) -> list[str]:
    if decided.changed:
        lines = ["# Who attacks the release: those who compare categories."]
        for name, attack in COMPARE_CATEGORIES.items():
            lines += ["", "[[intruders]]", f"name = {toml_string(name)}", *attack]
        return lines
    return [
        "# Eight intruders attack the release, from Winkler's matcher to one who knows everybody else. To name your",
        "# own instead, write one such section for each:",
        "#[[intruders]]",
        '#name = "nearest, informed"',
        '#attack = "NearestRecord"',
        '#distance = "posterior"',
    ]


# What is compared, checked and told.


def _models(decided: DecidedSchema) -> list[str]:
    formula = _formula(decided)
    if not formula:
        return []
    return [
        "# Models that analysts will fit: compared before and after, corrected by the card. With at_most_wider no",
        "# interval may widen by more than that share, or the release is refused.",
        "#[[models]]",
        f"#formula = {toml_string(formula)}",
        "#at_most_wider = 0.30",
    ]


def _formula(decided: DecidedSchema) -> str:
    """Return a model of the file's own columns: an amount on others and on a category of few levels."""
    from ..io.column_names import says_id

    doubtful = {question.column for question in decided.questions}
    amounts = [n for n in decided.amounts if is_word(n) and n not in doubtful and not says_id(n)]
    few = [
        name
        for name in decided.categories
        if is_word(name)
        and name not in doubtful
        and not says_id(name)
        and 2 <= len(decided.schema[name].categories) <= MOST_MODEL_LEVELS
    ]
    if not amounts or len(amounts) + len(few) < 2:
        return ""
    terms = [*amounts[1:MOST_MODEL_TERMS], *few[:1]]
    return f"{amounts[0]} ~ {' + '.join(terms)}"


def _utility(decided: DecidedSchema) -> list[str]:
    few = [name for name in decided.schema.with_role("block") if name not in decided.changed][:2]
    if not few:
        return []
    lines = ["# Means are compared within the groups of every column with the role block, or of these only:"]
    return [*lines, "#[utility]", f"#groups = {toml_list(few)}"]


def _audit(decided: DecidedSchema) -> list[str]:
    return [
        "# The audit looks for every known leak; a check's limits are changed so:",
        '#[audit.limits."informed links"]',
        "#warn = 0.10",
        "#fail = 0.15",
    ]


def _card(decided: DecidedSchema) -> list[str]:
    return [
        "# How the card leaves, which says what noise was added: with it analysts get unbiased estimates, and an",
        "# intruder links better. The report has the risk of each choice.",
        "[card]",
        'leaves = "open"  # or "sealed" (for named recipients, or by a passphrase that is asked for), or "kept"',
        '#recipients = ["age1..."]  # of a sealed card',
    ]


def _report() -> list[str]:
    return [
        "[report]",
        f"title = {toml_string(TITLE)}  # recipients read it too: it need not name the file",
        '#organisation = "..."',
        '#contact = "..."',
    ]


def _output(places: Places) -> list[str]:
    return [
        "[output]",
        f"release = {toml_string(places.release)}  # may leave: data, card, codebook, report",
        f"private = {toml_string(places.private)}  # stays inside: key, links, truth, internal report",
        '#format = "parquet"  # else that of the input',
        '#earlier = "..."  # the folder of an earlier release of the same records, to nest the noise in',
    ]

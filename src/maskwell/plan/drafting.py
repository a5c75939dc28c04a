"""A commented plan for a file whose schema is decided: what `maskwell new` writes."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from textwrap import wrap
from typing import Any

import numpy as np

from .deciding import Decided, Question
from .sections import FIFTEEN_PERCENT

WIDTH = 100
START = 0.5  # of each column's sd: where the search for the weakest noise begins
INFORMED, LAW = "nearest, informed", "knows the law"
STAY = 0.8  # the chance that PRAM leaves a category as it is, where it is offered
MANY = 20_000  # records
SKEWED = 2.0  # skewness from which on noise on the log scale is named as the alternative
MOST_MODEL_TERMS, MOST_MODEL_LEVELS = 3, 10


@dataclass(frozen=True, slots=True)
class Places:
    """The paths that a plan names, as it writes them."""

    plan: str
    file: str
    schema: str
    release: str
    private: str


def draft_plan(decided: Decided, places: Places, read_as: Mapping[str, str]) -> str:
    """Write a plan with comments; `read_as` are keys of [input] beside file and schema."""
    parts: list[Callable[[Decided], list[str]]] = [
        _masks,
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
    text += [_report(places), _output(places)]
    return "\n\n".join("\n".join(lines) for lines in text if lines) + "\n"


def draft_schema(decided: Decided) -> str:
    """Write the decided schema with a remark above every column of which there is one."""
    text = decided.proposal.to_toml()
    head, rest = text.split("\n", 1)
    first = [
        "# A schema drafted by maskwell new: what each column is and whether it leaves. Check the roles above all:",
        '# "key" is masked by noise, "block" leaves as it is and an intruder relies on it, drop = true stays inside.',
    ]
    return "\n".join([*first, rest]) if head.startswith("#") else text


def floor_question(decided: Decided) -> Question | None:
    """Ask what to do about records that no noise protects, where the audit or the tolerance would refuse them."""
    floor, guessing = decided.floor, _guessing(decided, decided.schema.with_role("block"))
    if floor is None or (floor.rate <= _floor_limit() and guessing <= FIFTEEN_PERCENT.max_rate):
        return None
    columns = _telling(decided)
    limit = f"{_floor_limit():.0%}"
    taken = (
        f"what leaves unmasked ({_names(decided.categories)}, and what is missing) tells {floor.rate:.1%} of the "
        f"records apart, where {limit} fails the audit, and guessing among those alike finds {guessing:.1%}: "
        "no noise changes that"
    )
    drop = f"drop {_names(columns)} in the schema, or switch on" if columns else "see"
    return Question(None, taken, f"Decide: {drop} the mask Pram for them in the plan, with match_blocks")


def _floor_limit() -> float:
    from ..checks.catalogue import checks

    limits = {check.name: check.limits for check in checks()}
    return limits["fingerprint floor"].fail or 1.0


def _guessing(decided: Decided, blocks: Sequence[str]) -> float:
    """Return the share of records that guessing finds among those with the same values in some columns."""
    from ..attacks.search import block_codes

    codes, _ = block_codes(decided.table, decided.table, tuple(blocks))
    return len(np.unique(codes)) / len(codes)


def questions_of(decided: Decided) -> list[str]:
    """Return what a person should decide, in words."""
    floor = floor_question(decided)
    return [str(question) for question in (*decided.questions, *([floor] if floor else ()))]


def _head(decided: Decided, places: Places) -> list[str]:
    ready = (
        "It can be run as it is:"
        if floor_question(decided) is None
        else "Decide what is asked below, then run"
    )
    lines = _comment(f"The plan of a release, drafted by maskwell new. {ready}")
    lines += [f"#   maskwell release {places.plan}"]
    lines += _comment(
        "Lines that begin with a # and a blank are remarks. Those that begin with a # alone are switched on by taking "
        "it away. Every key is explained in docs/plan.md."
    )
    asked = questions_of(decided)
    if asked:
        lines += ["#", "# For you to decide, answered cautiously until then:"]
        lines += [line for text in asked for line in _comment(text, "#   - ", "#     ")]
    return lines


def _input(decided: Decided, places: Places, read_as: Mapping[str, str]) -> list[str]:
    lines = ["[input]", f"file = {_quoted(places.file)}"]
    lines.append(f"schema = {_quoted(places.schema)}  # what each column is, and what is dropped")
    return lines + [f"{key} = {_quoted(value)}" for key, value in read_as.items()]


# How it is masked.


def _masks(decided: Decided) -> list[str]:
    lines = _noise(decided) if decided.amounts else []
    for total, parts in decided.sums:
        shown = "{ " + ", ".join(f"{_quoted(part)} = {c:.15g}" for part, c in parts) + " }"
        lines += [
            "",
            f"# {_plain(total)} is exactly this sum of the others, so it is computed again from the masked",
        ]
        lines += [
            "# ones: noise of its own would give part of theirs away.",
            "[[masks]]",
            'mask = "Recompute"',
        ]
        lines += [f"column = {_quoted(total)}", f"parts = {shown}"]
    clear = _clear(decided)
    return [*lines, *(["", *clear] if clear and lines else clear)]


def _noise(decided: Decided) -> list[str]:
    by_role = set(decided.amounts) == set(decided.keys)
    columns = '"role: key"' if by_role else _list(decided.amounts)
    lines = _comment(
        f"Noise with the covariance of the data on {_counted(decided.amounts, 'amount')}: "
        f"{_names(decided.amounts)}. Correlations stay as they are, and near-copies cannot average it out."
    )
    lines += ["[[masks]]", 'mask = "CorrelatedNoise"']
    lines.append(
        f"columns = {columns}" + ("  # every number with the role key in the schema" if by_role else "")
    )
    lines.append(f"sd_ratio = {START}  # the noise's sd in sds of each column; [calibrate] starts here")
    lines += [
        '#keep = "moments"  # also keeps variances: analysts then need no correction for means and variances'
    ]
    skewed = _skewed(decided)
    if skewed:
        lines += _comment(
            f"Strongly skewed and positive: {_names(skewed)}. Noise on the log scale suits such amounts "
            '(proportional, never negative): give them a mask of their own, with columns = [...] and transform = "log".'
        )
    return lines


def _skewed(decided: Decided) -> list[str]:
    """Return amounts that are positive throughout and have a long upper tail."""
    found = []
    for name in decided.amounts:
        values = decided.table.values([name])[:, 0]
        values = values[~np.isnan(values)]
        sd = values.std() if len(values) else 0.0
        if sd > 0 and values.min() > 0 and float((((values - values.mean()) / sd) ** 3).mean()) > SKEWED:
            found.append(name)
    return found


def _clear(decided: Decided) -> list[str]:
    """Say what leaves as it is, how many that tells apart, and what would change it."""
    names = decided.categories
    if not names or decided.floor is None:
        return []
    floor = decided.floor
    lines = _comment(
        f"These leave as they are: {_names(names)}. An intruder who knows them relies on them: together with what is "
        f"missing or coded they tell {floor.rate:.1%} of the records apart (the fingerprint floor), whom no noise "
        "protects."
    )
    columns = _telling(decided) or list(names[:1])
    active = not decided.amounts
    if active:
        return [*lines, *_pram(list(names), active=True)]
    remain = f"{_alone(decided, columns):.1%} remain"
    lines += _comment(
        f"Where that is too much, change categories at random, as here those that tell most ({remain}), "
        "or drop columns in the schema. Intruders can then rely on the others only: see match_blocks in [targets]."
    )
    lines += _pram(columns, active=False)
    lines += _comment(
        'Other ways: classes of categories (mask = "Grouping"), or noise on ordered codes (mask = "CodeNoise").'
    )
    return lines


def _pram(columns: Sequence[str], *, active: bool) -> list[str]:
    lines = ["[[masks]]", 'mask = "Pram"', f"columns = {_list(columns)}"]
    lines += [f"stay = {STAY}  # the chance that a category stays; else any other is equally likely"]
    return lines if active else [f"#{line}" for line in lines]


def _telling(decided: Decided) -> list[str]:
    """Return the categories to hide, those that tell most first, until neither the audit nor guessing objects."""
    floor = getattr(decided.floor, "floor", None)
    if floor is None or not floor.unique:
        return []
    steps = [step for step in floor.steps.to_pylist() if step["column"] in decided.categories]
    chosen: list[str] = []
    for step in steps:
        chosen += [step["column"]] if step["column"] not in chosen else []
        rest = [name for name in decided.schema.with_role("block") if name not in chosen]
        if (
            _alone(decided, chosen) <= _floor_limit()
            and _guessing(decided, rest) <= FIFTEEN_PERCENT.max_rate / 2
        ):
            break
    return chosen


def _alone(decided: Decided, hidden: Sequence[str]) -> float:
    """Return the share of records that stay alone where categories are hidden; what is missing in them still shows."""
    from ..attacks import Fingerprint, attack

    masked = (*decided.amounts, *(total for total, _ in decided.sums), *hidden)
    return float(attack(Fingerprint(masked=masked), decided.table).rate)


# What is tolerated, and how it is met.


def _tolerance(decided: Decided) -> list[str]:
    who = INFORMED if decided.amounts else LAW
    lines = ["# At most this share of the targets may be found, by whom.", "[tolerance]"]
    lines.append(
        f"max_rate = {FIFTEEN_PERCENT.max_rate}  # or max_ratio, expected_h, prob_h: see docs/plan.md"
    )
    what = (
        "knows the public card and compares all amounts at once" if decided.amounts else "weighs by the card"
    )
    lines.append(f"intruders = [{_quoted(who)}]  # he {what}")
    lines.append(
        '#over = "outlying"  # judged by the tenth of the targets that lies farthest out, not by all'
    )
    return lines


def _calibrate(decided: Decided) -> list[str]:
    if not decided.amounts:
        return _comment("The chances above are taken as they are: change stay until the tolerance holds.")
    draws = 20 if len(decided.table) < MANY else 5  # many targets make the rate of one draw exact enough
    return [
        "# Search the weakest noise that meets the tolerance; without this section sd_ratio is taken as it is.",
        "[calibrate]",
        f"replicates = {draws}  # draws of the noise at each scale",
        f"confirmations = {2 * draws}  # fresh draws that confirm the scale found",
        "#per_column = true  # a scale for each column: less noise in all, a longer search",
    ]


def _swap(decided: Decided) -> list[str]:
    if not decided.amounts:
        return []
    return [
        "# Where this very draw of the noise exceeds the tolerance, records that were found exchange their amounts",
        "# with others like them. Leave the section out to have more noise instead.",
        "[swap]",
    ]


def _targets(decided: Decided) -> list[str]:
    blocks = decided.schema.with_role("block")
    lines = ["# Whom the intruders are after, and what they rely on.", "[targets]"]
    if set(decided.amounts) != set(decided.keys) and decided.amounts:
        lines.append(
            f"fields = {_list(decided.amounts)}  # compared; what is recomputed from them adds nothing"
        )
    if blocks:
        hidden = _telling(decided) or list(decided.categories[:1])
        rest = [name for name in blocks if name not in hidden]
        lines.append(
            "#largest_target_block = 7  # only records in blocks of at most so many; else all records"
        )
        lines.append(
            f"#match_blocks = {_list(rest)}  # known for sure; else every column with the role block"
        )
    if len(decided.table) >= MANY:
        lines.append("#sample = 5000  # so many targets drawn at random: faster; rates then have an interval")
    return lines if len(lines) > 2 else []


def _intruders(decided: Decided) -> list[str]:
    return [
        "# Eight intruders attack the release, from Winkler's matcher to one who knows everybody else. To name your",
        "# own instead, write one such section for each:",
        "#[[intruders]]",
        '#name = "nearest, informed"',
        '#attack = "NearestRecord"',
        '#distance = "posterior"',
    ]


# What is compared, checked and told.


def _models(decided: Decided) -> list[str]:
    formula = _formula(decided)
    if not formula:
        return []
    return [
        "# Models that analysts will fit: compared before and after, corrected by the card. With at_most_wider no",
        "# interval may widen by more than that share, or the release is refused.",
        "#[[models]]",
        f"#formula = {_quoted(formula)}",
        "#at_most_wider = 0.30",
    ]


def _formula(decided: Decided) -> str:
    """Return a model of the file's own columns: an amount on others and on a category of few levels."""
    doubtful = {question.column for question in decided.questions}
    amounts = [name for name in decided.amounts if _is_word(name) and name not in doubtful]
    few = [
        name
        for name in decided.categories
        if _is_word(name) and 2 <= len(decided.schema[name].categories) <= MOST_MODEL_LEVELS
    ]
    if not amounts or len(amounts) + len(few) < 2:
        return ""
    terms = [*amounts[1:MOST_MODEL_TERMS], *few[:1]]
    return f"{amounts[0]} ~ {' + '.join(terms)}"


def _utility(decided: Decided) -> list[str]:
    few = decided.schema.with_role("block")[:2]
    if not few:
        return []
    lines = ["# Means are compared within the groups of every column with the role block, or of these only:"]
    return [*lines, "#[utility]", f"#groups = {_list(few)}"]


def _audit(decided: Decided) -> list[str]:
    return [
        "# The audit looks for every known leak; a check's limits are changed so:",
        '#[audit.limits."informed links"]',
        "#warn = 0.10",
        "#fail = 0.15",
    ]


def _card(decided: Decided) -> list[str]:
    return [
        "# How the card leaves, which says what noise was added: with it analysts get unbiased estimates, and an",
        "# intruder links better. The report has the risk of each choice.",
        "[card]",
        'leaves = "open"  # or "sealed" (for named recipients, or by a passphrase that is asked for), or "kept"',
        '#recipients = ["age1..."]  # of a sealed card',
    ]


def _report(places: Places) -> list[str]:
    return [
        "[report]",
        f"title = {_quoted('Release of ' + places.file.rsplit('/', 1)[-1])}",
        '#organisation = "..."',
        '#contact = "..."',
    ]


def _output(places: Places) -> list[str]:
    return [
        "[output]",
        f"release = {_quoted(places.release)}  # may leave: data, card, codebook, report",
        f"private = {_quoted(places.private)}  # stays inside: key, links, truth, internal report",
        '#format = "parquet"  # else that of the input',
        '#earlier = "..."  # the folder of an earlier release of the same records, to nest the noise in',
    ]


# Words.


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def _list(names: Iterable[str]) -> str:
    return "[" + ", ".join(map(_quoted, names)) + "]"


def _plain(name: str) -> str:
    return name if name.isprintable() else repr(name)


def _names(names: Sequence[str]) -> str:
    return ", ".join(map(_plain, names))


def _counted(names: Sequence[Any], what: str) -> str:
    return f"{len(names)} {what}{'s' if len(names) != 1 else ''}"


def _comment(text: str, first: str = "# ", rest: str = "# ") -> list[str]:
    return wrap(text, WIDTH, initial_indent=first, subsequent_indent=rest, break_on_hyphens=False)


def _is_word(name: str) -> bool:
    return re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name) is not None

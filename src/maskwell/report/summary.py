"""The end of a whole release on the terminal: one screen of plain text."""

from __future__ import annotations

from textwrap import wrap
from typing import TYPE_CHECKING, Any

from .first_screen import NARROWER, TOO_NARROW, utility_sentences, widest_interval
from .words import (
    advice_of,
    count_of,
    every_reason,
    held_names,
    is_not_judged,
    is_seeded,
    laxer_words,
    noise_is_no_help,
    not_held_words,
    percent,
    sampled_words,
    title_of,
    tolerance_words,
)

if TYPE_CHECKING:
    from ..pipeline import Advice, Outcome

WIDTH, HEIGHT = 100, 45
MOST_ADVICE_LINES = 6  # a change is to be followed, so that it is shown whole
MOST_BUT_LINES = 5  # of limits that a plan made laxer: three of them
MOST_REASONS, MOST_ADVICE, MOST_FINDINGS, MOST_VERDICTS, MOST_INTRUDERS = 4, 3, 4, 3, 9

PASSED = "MAY BE RELEASED: the tolerance holds and no check of the audit fails"
FOR_STUDIES = "WOULD PASS, BUT IS FOR STUDIES ONLY (--seed): run again without a seed to release"
NOT_JUDGED = "NOT JUDGED: the tolerance is not known to hold, so that nothing is released"
DESPITE_SEEDED = "FOR STUDIES ONLY (--seed), WRITTEN DESPITE what follows"


def release_summary(outcome: Outcome) -> str:
    """Return the three answers on one screen: may it be released, who could be found, what can be learned."""
    lines = [*_wrap_text(title_of(outcome), ""), *_answer(outcome), ""]
    lines += [*_risk(outcome), *_utility_lines(outcome), *_audit(outcome)]
    lines += [*_advice(outcome), *_location_lines(outcome)]
    shown = (
        lines if outcome.release is None else _cut_to_screen(lines)
    )  # of what is refused no report has the rest
    return "\n".join(line.rstrip() for line in shown)


def refusal_summary(outcome: Outcome) -> str:
    """Return in short why a plan is refused, and what would change that."""
    lines = [*_answer(outcome), f"  {count_of(outcome.floor.targets, 'target')}; {_floor_words(outcome)}"]
    return "\n".join(line.rstrip() for line in [*lines, *_advice(outcome), *_location_lines(outcome)])


def _floor_words(outcome: Any) -> str:
    return f"{percent(outcome.floor.rate)} have a fingerprint that no noise hides"


def _cut_to_screen(lines: list[str]) -> list[str]:
    """Cut what does not fit on the screen from before its last three lines, which say where everything lies."""
    if len(lines) <= HEIGHT:
        return lines
    return [*lines[: HEIGHT - 4], "  ... the internal report has the rest", *lines[-3:]]


def _answer(outcome: Any) -> list[str]:
    but = [line for said in laxer_words(outcome) for line in _wrap_text(f"but {said}", most=MOST_BUT_LINES)]
    if outcome.passed:
        loud = _wrap_text(f"but {outcome.too_loud}", most=3) if outcome.too_loud else []
        return [FOR_STUDIES if is_seeded(outcome) else PASSED, *but, *loud]
    head = NOT_JUDGED if is_not_judged(outcome) else "MAY NOT BE RELEASED"
    if outcome.despite:
        head = DESPITE_SEEDED if is_seeded(outcome) else "RELEASED DESPITE what follows"
    lines = [head, *(_wrap_text(f"the reason given: {outcome.despite}") if outcome.despite else [])]
    lines += but if outcome.despite else []
    every = outcome.not_judged if is_not_judged(outcome) else every_reason(outcome)
    if outcome.release is None:  # no report was written that has the rest
        return [*lines, *(line for reason in every for line in _wrap_text(f"- {reason}", most=None))]
    shown = every[:MOST_REASONS]
    left = len(every) - len(shown)
    lines += [line for reason in shown for line in _wrap_text(f"- {reason}")]
    return [*lines, *([f"  and {count_of(left, 'more reason')}"] if left else [])]


def _risk(outcome: Any) -> list[str]:
    """Show the intruders beside each other, and say who counts."""
    after, held = outcome.after, held_names(outcome)
    swapped = outcome.swapping is not None and outcome.swapping.swaps > 0
    shown = list(after)[:MOST_INTRUDERS]
    width = min(max(len(name) for name in shown), 40)
    lines = _wrap_text(f"who could be found (tolerated: {tolerance_words(outcome)})", "")
    heads = f"{'before swaps':>14}{'his record':>12}{'his values':>12}" if swapped else f"{'found':>9}"
    sampled = any(risk.released_share is not None for risk in after.values())
    heads += f"{'of all':>9}" if sampled else ""
    lines.append(f"  {'':<{width}}{heads}{'guessing':>10}")
    for name in shown:
        risk, before = after[name], outcome.before.get(name, after[name])
        rates = f"{percent(before.rate):>14}" if swapped else ""
        mark = "" if name in held else "   not held to it"
        mark += f"   {said}" if (said := sampled_words(risk)) else ""
        if swapped:
            sides = [(side or risk).rate for side in (risk.his_record, risk.his_values)]
            rates += "".join(f"{percent(rate):>12}" for rate in sides)
        else:
            rates += f"{percent(risk.rate):>9}"
        rates += f"{percent(risk.rate_of_all):>9}" if sampled else ""
        rates += f"{percent(risk.guessing):>10}"
        lines.append(f"  {_cut(name, width):<{width}}{rates}{mark}")
    lines += _wrap_text(f"after the swaps {outcome.swapping.two_rates()}") if swapped else []
    lines += _wrap_text(said) if (said := _on_sample(outcome)) else []
    lines += [line for note in after.on_ceiling() for line in _wrap_text(str(note))]
    untried = _wrap_text(f"not tried: {'; '.join(after.refused)}") if after.refused else []
    untried += [line for said in not_held_words(outcome) for line in _wrap_text(said)]
    return [*lines, *untried, f"  {count_of(outcome.floor.targets, 'target')}; {_floor_words(outcome)}"]


def _on_sample(outcome: Any) -> str:
    """Say whom the rates are about where a sample of the records would leave; nothing where all would."""
    if all(risk.released_share is None for risk in outcome.after.values()):
        return ""
    if outcome.plan.targets.presence_not_known is None:
        return (
            "rates are among the targets in the release: who looks for one knows that he is in it (of all: released or "
            "not)"
        )
    return (
        "rates are over all targets, released or not, as the plan has it that nobody knows who was released"
    )


def _utility_lines(outcome: Any) -> list[str]:
    if outcome.utility is None:
        return []
    lines = ["", "what can be learned"]
    if widest := widest_interval(outcome.utility):
        wider, name, formula = widest
        if wider < TOO_NARROW:
            lines += _wrap_text(f"the interval of {name} in {formula} is {NARROWER}")
        else:
            most = f"wider by more than {wider:.0%}" if wider > 0 else "wider than the original's"
            lines += _wrap_text(f"with the card no interval is {most} ({name} in {formula})")
    for said in utility_sentences(outcome.utility)[:MOST_VERDICTS]:
        lines += _wrap_text(said)
    return lines


def _audit(outcome: Any) -> list[str]:
    audit = outcome.audit
    if audit is None:
        return ["", "refused before any noise was drawn: nothing that follows could change it"]
    counts = [(len(audit.having(word)), word) for word in ("pass", "warn", "fail", "not checked")]
    lines = ["", "audit: " + ", ".join(f"{count} {word}" for count, word in counts)]
    bad = [*audit.failures, *audit.warnings]
    for finding in bad[:MOST_FINDINGS]:
        lines += _wrap_text(f"{finding.verdict.upper()} {finding.check}: {finding.said}")
    left = len(bad) - MOST_FINDINGS
    return [*lines, *([f"  and {left} more"] if left > 0 else [])]


def _advice(outcome: Any) -> list[str]:
    """Show what passes; else what no noise changes, what comes closest, and what was not tried."""
    every = advice_of(outcome)
    shown = [one for one in every if one.passes] or list(every)
    if not shown:
        return []
    lines = ["", _advice_head(every)]
    for one in shown[:MOST_ADVICE]:
        lines += _wrap_text(f"- {one.change}{_advice_result(one)}", most=MOST_ADVICE_LINES)
    return lines


def _advice_head(advice: Any) -> str:
    """Say whether a change was found that would pass."""
    if any(one.passes for one in advice):
        return "what would pass"
    tried = sum(one.draws > 0 for one in advice)
    if not tried:
        return "what would change it"
    return f"no change was found that would pass ({count_of(tried, 'change')} tried); what came of them"


def _advice_result(advice: Any) -> str:
    """Say what a change came to where it was tried; what says so itself is left out."""
    if advice.passes:
        return f" (passed in {advice.passed} of {advice.draws} draws)"
    says_itself = noise_is_no_help(advice) or (advice.passes is None and not advice.draws and not advice.why)
    return "" if says_itself else f": {advice.comes_to}"


def passing_sections(outcome: Outcome) -> str:
    """Return the first change that would pass as it is typed, nothing where none does."""
    best = next((one for one in advice_of(outcome) if one.passes), None)
    return "" if best is None else typed_sections(best)


def typed_sections(advice: Advice) -> str:
    """Return the sections of the plan and of the schema that a change is, as they are typed."""
    parts = [
        ("in the plan, in place of its own sections" + _taken_out(advice), advice.plan),
        ("in the schema", advice.schema),
    ]
    return "".join(f"\n\n# {head}:\n{text.rstrip()}" for head, text in parts if text)


def _taken_out(advice: Any) -> str:
    gone = " and ".join(f"[{name}]" for name in advice.without)
    return f" (and without {gone})" if gone else ""


def _location_lines(outcome: Any) -> list[str]:
    if outcome.release is None:
        return ["", "nothing was released"]
    card = {"open": "card in the open", "sealed": "card sealed", "kept": "without the card"}
    where = "for studies:" if is_seeded(outcome) else "may leave:"
    return [
        "",
        f"{where:<15}{outcome.release}/ ({card[outcome.plan.card.leaves]})",
        f"stays inside:  {outcome.private}/ (key, links, truth, internal report)",
    ]


def _cut(text: str, width: int) -> str:
    return text if len(text) <= width else f"{text[: width - 1]}…"


def _wrap_text(text: str, indent: str = "  ", most: int | None = 2) -> list[str]:
    """Return text on so many lines at most (nothing: on as many as it takes); the report has all of it."""
    return wrap(
        text, WIDTH, initial_indent=indent, subsequent_indent=f"{indent}  ", max_lines=most, placeholder=" …"
    )

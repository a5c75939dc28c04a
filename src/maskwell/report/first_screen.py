"""The first screen of the internal report: may it be released, who could be found by whom, what can be learned."""

from __future__ import annotations

from math import isfinite
from typing import Any

from .at_risk import by_outlyingness
from .elements import Child, Html, joined, listed, paragraph, tag
from .wording import (
    LEAVES,
    counted,
    held_names,
    knows,
    limit_rate,
    percent,
    sentence,
    title_of,
    tolerance_words,
    trimmed,
    worst_name,
)

MOST_SAID = 2


def first_screen(outcome: Any) -> Html:
    """Return the head of the report with the answers to the three questions."""
    report, masking = outcome.plan.report, outcome.masking
    touched = {*masking.card.masked, *(total for total, _ in masking.card.recomputed)}
    about = (
        f"{counted(len(masking.release), 'record')}, {counted(len(masking.release.table.names), 'column')}, "
        f"{len(touched)} of them masked"
    )
    whose = f"{report.organisation} · " if report.organisation else ""
    head = tag("header", tag("h1", title_of(outcome)), paragraph(f"{whose}{about}", kind="subtitle"))
    cards = (_release_card(outcome), _risk_card(outcome), _utility_card(outcome))
    return joined(head, _verdict(outcome), tag("div", *cards, class_="questions"))


def _verdict(outcome: Any) -> Html:
    """Say the answer in one line, with the reasons against it, and the steward's own where it left all the same."""
    if outcome.passed:
        held = "The tolerance holds and no check of the audit fails."
        written = "" if outcome.release is not None else " Nothing has been written yet."
        return _box("good", "✓", "This may be released.", paragraph(held + written))
    reasons = listed(sentence(reason) for reason in outcome.reasons)
    if outcome.despite:
        why = paragraph(tag("strong", "The reason given: "), outcome.despite)
        return _box("bad", "!", "Released despite the findings below.", joined(why, reasons))
    return _box("bad", "✕", "This may not be released as it is.", reasons)


def _box(kind: str, sign: str, answer: str, more: Child) -> Html:
    line = paragraph(tag("span", sign, aria_hidden="true"), " ", answer, kind="answer")
    return tag("div", line, more, class_=f"verdict {kind}", role="status")


def _question(title: str, value: str, unit: str, *said: Child) -> Html:
    big = [paragraph(value, kind="figure"), paragraph(unit, kind="unit")]
    return tag("div", tag("h2", title), *big, listed(said), class_="question")


def _release_card(outcome: Any) -> Html:
    audit, swapping = outcome.audit, outcome.swapping
    made = len(audit.findings) - len(audit.having("not checked"))
    said: list[Child] = [f"Tolerated: {tolerance_words(outcome)}, by {_each(len(held_names(outcome)))}."]
    said.append(
        f"Audit: {len(audit.failures)} fail, {len(audit.warnings)} warn{_named(audit.failures or audit.warnings)}."
    )
    if swapping is not None and swapping.swaps:
        said.append(
            f"{counted(swapping.records, 'record')} ({percent(swapping.share)}) exchanged to get there."
        )
    elif outcome.calibration is not None:
        said.append("The noise is the weakest that was confirmed to meet the tolerance.")
    said.append(f"{LEAVES[outcome.plan.card.leaves]}.")
    holds = "holds" if _holds(outcome) else "does not hold"
    unit = "released all the same: " if outcome.despite else ""
    unit += f"the tolerance {holds}; {len(audit.failures)} of {made} checks fail"
    return _question("May this be released?", "Yes" if outcome.passed else "No", unit, *said)


def _holds(outcome: Any) -> bool:
    """Whether the last attempt met the tolerance."""
    return bool(outcome.attempts[-1].met) if outcome.attempts else bool(outcome.passed)


def _each(count: int) -> str:
    return "the intruder of the plan" if count == 1 else f"each of {count} intruders"


def _named(findings: Any) -> str:
    if not findings:
        return ""
    names = [finding.check for finding in findings[:3]]
    more = f" and {len(findings) - 3} more" if len(findings) > 3 else ""
    return f" ({', '.join(names)}{more})"


def _risk_card(outcome: Any) -> Html:
    after, name = outcome.after, worst_name(outcome)
    risk = after[name]
    limit = limit_rate(outcome)
    unit = f"of {counted(risk.targets, 'target')}, by the intruder “{name}”"
    unit += f"; tolerated {100 * limit:.4g}%" if limit is not None else ""
    said: list[Child] = [f"{knows(name, risk)} Guessing would find {percent(risk.baseline)}."]
    if limit is None and outcome.attempts:
        last = outcome.attempts[-1]
        said.append(
            f"Tolerated: {tolerance_words(outcome)}. The figure of “{last.worst}” is {trimmed(last.figure)}."
        )
    far = [share.rate for share in by_outlyingness(risk, outcome.masking) if share.label == "10"]
    said += [
        f"Of the tenth that lies farthest out he finds {percent(rate)}." for rate in far if rate is not None
    ]
    others = [other for other in after if other not in held_names(outcome)]
    said += [
        f"“{other}”, not held to the tolerance, finds {percent(after[other].rate)}. {knows(other, after[other])}"
        for other in sorted(others, key=lambda other: -after[other].rate)[:1]
        if after[other].rate > risk.rate
    ]
    said.append(f"Found by any of the {len(after)} intruders: {counted(after.found_by_any, 'record')}.")
    said.append(_floor(outcome.floor.rate))
    if after.refused:
        said.append(f"Not tried: {'; '.join(after.refused)}. Their rates are not known.")
    return _question("Who could still be found, and by whom?", percent(risk.rate), unit, *said)


def _floor(rate: float) -> str:
    if rate == 0:
        return "No target has a fingerprint that noise cannot hide."
    return f"{percent(rate)} have a fingerprint that no noise hides, only swaps or coarser columns."


def _utility_card(outcome: Any) -> Html:
    value, unit = _headline(outcome)
    kept = (
        ["The card is kept: recipients cannot correct for the noise."]
        if outcome.plan.card.leaves == "kept"
        else []
    )
    return _question("What can still be learned?", value, unit, *kept, *learned(outcome.utility))


def learned(utility: Any) -> list[str]:
    """Say in a few sentences what the release still tells: how many figures are good, and what counts most of them."""
    judged = [one for one in utility.judgements if one.verdict in ("good", "fair", "poor")]
    counts = [(sum(one.verdict == word for one in judged), word) for word in ("good", "fair", "poor")]
    told = ", ".join(f"{count} {word}" for count, word in counts if count)
    said = [f"Of {counted(len(judged), 'figure')} compared with the original: {told}."] if judged else []
    adjusted = [one for one in judged if one.figure.endswith(", adjusted")]
    bad = [one for one in judged if one.verdict != "good" and one not in adjusted]
    chosen = [*adjusted[:1], *sorted(bad, key=lambda one: one.verdict != "poor")]
    return said + [sentence(f"{one.figure} ({one.verdict}): {one.said}") for one in chosen[:MOST_SAID]]


def _headline(outcome: Any) -> tuple[str, str]:
    """Return the figure that stands for utility: the widest interval of the named models, else how far values moved."""
    if outcome.plan.card.leaves != "kept" and (widest := widest_interval(outcome.utility)):
        wider, name, formula = widest
        return f"{wider:+.0%}", f"the widest interval of the named models with the card ({name} in {formula})"
    moved = 2**0.5 * outcome.utility.il1s
    return f"{moved:.2f} sds", "is how far masked values moved on average"


def widest_interval(utility: Any) -> tuple[float, str, str] | None:
    """Return by how much the widest interval is wider than the original's, forecast or fitted; its name and model."""
    forecast = {
        (one.formula, name): wider for one in utility.forecasts for name, wider in one.widening.items()
    }
    fitted = {
        (one.formula, name): wider
        for one in utility.models
        if one.widening
        for name, wider in zip(one.names, one.widening, strict=True)
    }
    every = [
        (wider, name, formula)
        for (formula, name), wider in (fitted | forecast).items()
        if name not in ("Intercept", "sigma") and isfinite(wider)
    ]
    return max(every) if every else None

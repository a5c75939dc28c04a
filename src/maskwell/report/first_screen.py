"""The first screen of the internal report: may it be released, who could be found by whom, what can be learned."""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite
from typing import Any

from .at_risk import UNKNOWN, Share, by_block, by_outlyingness
from .elements import Child, Html, html_list, join_children, paragraph, tag
from .words import (
    count_of,
    every_reason,
    figure_text,
    held_names,
    is_not_judged,
    is_seeded,
    knows,
    laxer_words,
    leaves_words,
    limit_rate,
    not_held_words,
    percent,
    released_words,
    sampled_words,
    sentence,
    title_of,
    tolerance_words,
    worst_name,
)

MOST_SAID = 2
TOO_NARROW = -0.05  # noise adds no knowledge, and chains of draws err by less
NARROWER = "narrower than the original's, which noise cannot make it: the model does not fit these values"
_NTH = {"1": "first", "2": "second", "3": "third"}
# Times the tolerance: from there on a class of targets is told of though the whole is within it
FAR_ABOVE = 2.0
RUN_AGAIN = "Its noise comes from a small seed, which can be guessed: run again without a seed to release."


def first_screen(outcome: Any) -> Html:
    """Return the head of the report with the answers to the three questions."""
    report, masking = outcome.plan.report, outcome.masking
    touched = {*masking.card.masked, *(total for total, _ in masking.card.recomputed)}
    about = (
        f"{count_of(len(masking.release), 'record')}, {count_of(len(masking.release.table.names), 'column')}, "
        f"{len(touched)} of them masked"
    )
    whose = f"{report.organisation} · " if report.organisation else ""
    head = tag("header", tag("h1", title_of(outcome)), paragraph(f"{whose}{about}", kind="subtitle"))
    cards = (_release_card(outcome), _risk_card(outcome), _utility_card(outcome))
    return join_children(head, _verdict(outcome), tag("div", *cards, class_="questions"))


def _verdict(outcome: Any) -> Html:
    """Say the answer in one line, with the reasons against it, and the steward's own where it left all the same."""
    seeded = paragraph(tag("strong", RUN_AGAIN)) if is_seeded(outcome) else None
    laxer = html_list(sentence(one) for one in laxer_words(outcome)) if laxer_words(outcome) else None
    if outcome.passed:
        held = "The tolerance holds and no check of the audit fails."
        written = "" if outcome.release is not None else " Nothing has been written yet."
        if seeded:
            answer = "This would pass, but is for studies only."
            return _box("fair", "!", answer, join_children(seeded, paragraph(held + written), laxer))
        if laxer is not None:
            answer = "This may be released, by what the plan makes laxer."
            return _box("fair", "!", answer, join_children(paragraph(held + written), laxer))
        return _box("good", "✓", "This may be released.", paragraph(held + written))
    reasons = html_list(sentence(reason) for reason in every_reason(outcome))
    if outcome.despite:
        why = paragraph(tag("strong", "The reason given: "), outcome.despite)
        answer = "For studies only, and written" if seeded else "Released"
        more = join_children(seeded, why, reasons, laxer)
        return _box("bad", "!", f"{answer} despite the findings below.", more)
    if is_not_judged(outcome):
        return _box("bad", "?", "Not judged: the tolerance is not known to hold.", reasons)
    return _box("bad", "✕", "This may not be released as it is.", reasons)


def _box(kind: str, sign: str, answer: str, more: Child) -> Html:
    line = paragraph(tag("span", sign, aria_hidden="true"), " ", answer, kind="answer")
    return tag("div", line, more, class_=f"verdict {kind}", role="status")


def _question(title: str, value: str, unit: str, *said: Child) -> Html:
    big = [paragraph(value, kind="figure"), paragraph(unit, kind="unit")]
    return tag("div", tag("h2", title), *big, html_list(said), class_="question")


def _release_card(outcome: Any) -> Html:
    audit, swapping = outcome.audit, outcome.swapping
    made = len(audit.findings) - len(audit.having("not checked"))
    said: list[Child] = [f"Tolerated: {tolerance_words(outcome)}, by {_each(len(held_names(outcome)))}."]
    said.append(
        f"Audit: {len(audit.failures)} fail, {len(audit.warnings)} warn"
        f"{_check_names(audit.failures or audit.warnings)}."
    )
    if swapping is not None and swapping.swaps:
        said.append(
            f"{count_of(swapping.records, 'record')} ({percent(swapping.share)}) exchanged to get there."
        )
    elif outcome.calibration is not None:
        said.append("The noise is the weakest that was confirmed to meet the tolerance.")
    said.append(f"{leaves_words(outcome)}.")
    said += [f"{sentence(one)}" for one in not_held_words(outcome)]
    holds = "is not judged" if outcome.not_judged else "holds" if _holds(outcome) else "does not hold"
    seeded = is_seeded(outcome)
    unit = "for studies only, made with a seed: " if seeded else ""
    unit += "released all the same: " if outcome.despite and not seeded else ""
    unit += f"the tolerance {holds}; {len(audit.failures)} of {made} checks fail"
    answer = "Yes" if outcome.passed and not seeded else "No"
    return _question("May this be released?", answer, unit, *said)


def _holds(outcome: Any) -> bool:
    """Whether the last attempt met the tolerance."""
    return bool(outcome.attempts[-1].met) if outcome.attempts else bool(outcome.passed)


def _each(count: int) -> str:
    return "the intruder of the plan" if count == 1 else f"each of {count} intruders"


def _check_names(findings: Any) -> str:
    if not findings:
        return ""
    names = [finding.check for finding in findings[:3]]
    more = f" and {len(findings) - 3} more" if len(findings) > 3 else ""
    return f" ({', '.join(names)}{more})"


def _risk_card(outcome: Any) -> Html:
    after, name = outcome.after, worst_name(outcome)
    risk = after[name]
    limit = limit_rate(outcome)
    unit = f"of {count_of(risk.targets, 'target')}, by the intruder “{name}”"
    unit += f"; tolerated {100 * limit:.4g}%" if limit is not None else ""
    unit += f" ({sampled})" if (sampled := sampled_words(risk)) else ""
    said: list[Child] = [f"{knows(name, risk)} Guessing would find {percent(risk.guessing)}."]
    said += [sentence(words)] if (words := released_words(risk)) else []
    if limit is None and outcome.attempts:
        last = outcome.attempts[-1]
        said.append(
            f"Tolerated: {tolerance_words(outcome)}. The figure of “{last.worst}” is {figure_text(last.figure)}."
        )
    tenths = by_outlyingness(risk, outcome.masking)
    far = [share.rate for share in tenths if share.label == "10"]
    said += [
        f"Of the tenth that lies farthest out he finds {percent(rate)}." for rate in far if rate is not None
    ]
    if limit is not None and risk.rate <= limit:
        said += _far_above(by_block(risk), tenths, FAR_ABOVE * limit)
    others = [other for other in after if other not in held_names(outcome)]
    said += [
        f"“{other}”, not held to the tolerance, finds {percent(after[other].rate)}. {knows(other, after[other])}"
        for other in sorted(others, key=lambda other: -after[other].rate)[:1]
        if after[other].rate > risk.rate
    ]
    whom = "the one intruder" if len(after) == 1 else f"any of the {len(after)} intruders"
    found = after.found_by_any
    said.append(f"Found by {whom}: {found:,} of {count_of(max(found, _target_count(after)), 'target')}.")
    said.append(_floor(outcome.floor.rate))
    if after.refused:
        said.append(f"Not tried: {'; '.join(after.refused)}. Their rates are not known.")
    return _question("Who could still be found, and by whom?", percent(risk.rate), unit, *said)


def _far_above(blocks: Sequence[Share], tenths: Sequence[Share], rate: float) -> list[str]:
    """Name the class of targets that is found most where that is more than a rate, though the whole is within."""
    named = [(f"in blocks of {_records(share.label)}", share.rate) for share in blocks]
    named += [
        (f"in the {_NTH.get(share.label, share.label + 'th')} tenth from the middle of the data", share.rate)
        for share in tenths
        if share.label not in ("10", UNKNOWN)  # the farthest has its own line
    ]
    above = [(found, where) for where, found in named if found is not None and found > rate]
    if not above:
        return []
    found, where = max(above, key=lambda one: one[0])
    return [f"Far above the tolerance: of targets {where} {percent(found)} are found."]


def _records(label: str) -> str:
    return "1 record" if label == "1" else f"{label} records"


def _target_count(after: Any) -> int:
    """Count the targets of all intruders together: samples may differ."""
    ids: set[Any] = set()
    for risk in after.values():
        ids |= set(risk.table["target_id"].to_pylist()) if risk.attack.to_masked else set()
    most: int = max(risk.targets for risk in after.values())
    return max(len(ids), most)


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
    loud = [sentence(outcome.too_loud)] if outcome.too_loud else []
    return _question(
        "What can still be learned?", value, unit, *kept, *loud, *utility_sentences(outcome.utility)
    )


def utility_sentences(utility: Any) -> list[str]:
    """Say in a few sentences what the release still tells: how many figures are good, and what counts most of them."""
    judged = [one for one in utility.judgements if one.verdict in ("good", "fair", "poor")]
    counts = [(sum(one.verdict == word for one in judged), word) for word in ("good", "fair", "poor")]
    told = ", ".join(f"{count} {word}" for count, word in counts if count)
    said = [f"Of {count_of(len(judged), 'figure')} compared with the original: {told}."] if judged else []
    adjusted = [one for one in judged if one.figure.endswith(", adjusted")]
    bad = [one for one in judged if one.verdict != "good" and one not in adjusted]
    chosen = [*adjusted[:1], *sorted(bad, key=lambda one: one.verdict != "poor")]
    return said + [sentence(f"{one.figure} ({one.verdict}): {one.said}") for one in chosen[:MOST_SAID]]


def _headline(outcome: Any) -> tuple[str, str]:
    """Return the figure that stands for utility: the widest interval of the named models, else how far values moved."""
    if outcome.plan.card.leaves != "kept" and (widest := widest_interval(outcome.utility)):
        wider, name, formula = widest
        said = f"the widest interval of the named models with the card ({name} in {formula})"
        return f"{wider:+.0%}", f"{said}: {NARROWER}" if wider < TOO_NARROW else said
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

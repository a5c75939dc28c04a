"""The sections that frame the figures: the plan as it was run, what would pass, what was not checked, and limits."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import PurePath
from typing import Any

from .elements import (
    Child,
    Html,
    data_table,
    folded_details,
    html_list,
    join_children,
    paragraph,
    part,
    section,
    tag,
)
from .words import advice_of, count_of, figure_text, laxer_words, not_held_words, sentence, whole_lines

PATHS = ("file", "schema", "release", "private", "earlier", "earlier_private")
LIMITS = (
    "The rates are about this release and these intruders. One who holds other columns, or better ones, may find more; "
    "the ceiling bounds, in expectation, only those who hold the columns compared and compare record by record. It "
    "does not cover who knows which records belong together (a household, a school, one firm month by month), who "
    "knows further columns, or who knows more of the population than this file.",
    "To be found is to be linked. What can be learned about a group, or about someone who is not in the file, is not "
    "measured here.",
    "Other files about the same people, released elsewhere or later, are taken into account only where the plan names "
    "them as earlier releases.",
    "A tolerance is a decision and not a law of nature: it holds for those whom the plan names, and for no one else.",
    "Columns that leave unmasked are taken to be as sensitive as the schema says; the audit cannot know more.",
)


def plan_section(outcome: Any) -> Html:
    """Return the plan as it was run, section by section."""
    text = tag("pre", tag("code", plan_text(outcome.plan.to_dict())), tabindex="0")
    said = [sentence(str(note)) for note in outcome.notes]
    notes = part("What was noted on the way", html_list(said)) if said else None
    return section(
        "plan",
        "The plan as run",
        _done(outcome),
        folded_details("The plan", text, is_open=True),
        notes,
    )


def _done(outcome: Any) -> Html:
    """Say what was done to each masked column."""
    from ..masking.codebook import describe

    card = outcome.masking.card
    rows = [(name, sentence(describe(law, name))) for law in card.laws for name in law.columns]
    rows += [
        (total, f"Computed anew from {', '.join(name for name, _ in parts)}.")
        for total, parts in card.recomputed
    ]
    if not rows:
        return paragraph("No column was masked.")
    return data_table("What was done to each masked column", ("column", "what was done"), rows)


def plan_text(plan: Mapping[str, Any]) -> str:
    """Write a plan as a plan file has it, of every path the last part: the same wherever the plan lies."""
    blocks = []
    for name, given in plan.items():
        parts = given if isinstance(given, list | tuple) else [given]
        mark = f"[[{name}]]" if isinstance(given, list | tuple) else f"[{name}]"
        blocks += [
            "\n".join([mark, *(f"{key} = {_value(value, key)}" for key, value in one.items())])
            for one in parts
        ]
    return "\n\n".join(blocks)


def _value(value: Any, key: str = "") -> str:
    """Write a value as a plan file has it."""
    if isinstance(value, PurePath) or (key in PATHS and isinstance(value, str)):
        value = PurePath(value).name
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{_key(name)} = {_value(one)}" for name, one in value.items()) + " }"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(_value(one, key) for one in value) + "]"
    return json.dumps(value, ensure_ascii=False)


def _key(name: str) -> str:
    return name if name.isidentifier() else json.dumps(name, ensure_ascii=False)


def advice_section(outcome: Any) -> Html:
    """Return which changes to the plan would pass; nothing where it passes or no advice was asked for."""
    advice = advice_of(outcome)
    if not advice:
        return Html("")
    rows = [
        (
            sentence(one.change),
            one.comes_to,
            "; ".join(f"{name.replace('_', ' ')} {_figure(value)}" for name, value in one.figures.items()),
        )
        for one in advice
    ]
    table = data_table("Changes to the plan, and what they come to", ("change", "comes to", "figures"), rows)
    title = "What would pass" if any(one.passes for one in advice) else "What would change it"
    return section("advice", title, table)


def _figure(value: Any) -> str:
    return figure_text(value) if isinstance(value, float) else "–" if value is None else str(value)


def limits_section(outcome: Any) -> Html:
    """Return what was not checked, and what no figure of this report says."""
    unchecked: list[Child] = [
        f"Audit, {finding.check}: {sentence(finding.said)}" for finding in outcome.audit.having("not checked")
    ]
    unchecked += [f"Intruder “{name}”: {sentence(why)}" for name, why in outcome.after.refused.items()]
    sampled = [finding for finding in outcome.audit.findings if finding.sampled]
    if sampled:
        names = ", ".join(finding.check for finding in sampled)
        most = max(finding.sampled for finding in sampled)
        unchecked.append(f"Checked on a sample of {count_of(most, 'record')} at most: {names}.")
    for name, risk in outcome.after.items():
        if risk.interval is not None:
            low, high = risk.interval
            unchecked.append(
                f"“{name}” sought a sample of the targets: among all his rate is {low:.1%} to {high:.1%} (95%)."
            )
    unchecked += [sentence(one) for one in (*not_held_words(outcome), *laxer_words(outcome))]
    unchecked += [sentence(one) for one in whole_lines(outcome.after.on_limits())]
    unchecked += [sentence(str(note)) for note in (*outcome.audit.notes, *outcome.utility.notes)]
    unchecked += [
        f"Model {model.formula}: {sentence(str(note))}"
        for model in outcome.utility.models
        for note in model.notes
    ]
    if outcome.masking.card.seeded:
        unchecked.insert(
            0, "The noise comes from a small seed, which can be guessed: for studies, not for release."
        )
    first = (
        html_list(unchecked) if unchecked else paragraph("Every check was made and every intruder attacked.")
    )
    return section(
        "limits",
        "What was not checked, and limits",
        join_children(
            part("Not checked, or not on all records", first),
            part("What no figure here says", html_list(LIMITS)),
        ),
    )

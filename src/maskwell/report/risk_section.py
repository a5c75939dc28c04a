"""The sections on risk: every intruder before and after swaps, who is at risk, what the card's choice changes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import isfinite
from typing import Any

from .at_risk import Share, by_amount, by_block, by_outlyingness
from .charts import picture
from .elements import Html, data_table, html_list, join_children, paragraph, part, section
from .pictures import ASIDE, EXCEEDS, HELD, WITHIN, decile_heat, risk_by_intruder, share_bars
from .words import (
    NOT_TRIED,
    count_of,
    figure_text,
    held_names,
    knows,
    leaves_words,
    limit_rate,
    percent,
    sampled_words,
    sentence,
    tolerance_words,
    whole_lines,
    worst_name,
)

SIDES = ("his record", "his exchanged values")


def risk_section(outcome: Any) -> Html:
    """Return what each intruder finds before and after the swaps, beside the tolerance."""
    rows = [_intruder(outcome, name) for name in outcome.after]
    limit = limit_rate(outcome)
    swapped = outcome.swapping is not None and outcome.swapping.swaps > 0
    said = "Bars: the share of the targets found in the release"
    said += "; ticks: before records were exchanged" if swapped else ""
    said += f". Tolerated: {tolerance_words(outcome)}."
    heads = (
        "intruder",
        "targets",
        "found before swaps",
        "found in the release",
        *SIDES,
        "by guessing",
        "held to it",
    )
    table = data_table(
        "What each intruder finds",
        heads,
        [
            (
                row["who"],
                row["targets"],
                percent(row["before"]),
                percent(row["after"]),
                *row["sides"],
                row["guess"],
                row["kind"],
            )
            for row in rows
        ],
    )
    chart = picture(
        "risk-chart",
        "What each intruder finds",
        said,
        lambda width: risk_by_intruder([_plain(row) for row in rows], limit, width),
        table,
    )
    knowing = data_table(
        "What each intruder knows and does",
        ("intruder", "what he knows and does"),
        [(name, knows(name, risk)) for name, risk in outcome.after.items()],
    )
    return section(
        "risk", "Risk by intruder", chart, _swaps(outcome), part("Who they are", knowing, _notes(outcome))
    )


def _intruder(outcome: Any, name: str) -> dict[str, Any]:
    after = outcome.after[name]
    before = outcome.before.get(name, after)
    limit, held = limit_rate(outcome), name in held_names(outcome)
    swapped = outcome.swapping is not None and outcome.swapping.swaps > 0
    end = (
        after.rate if after.interval is None else after.interval[1]
    )  # of a sample the upper end must be within
    exceeds = limit is not None and end > limit + 1e-12
    return {
        "who": name,
        "before": before.rate,
        "after": after.rate,
        "said": percent(after.rate) if not swapped else f"{percent(before.rate)} → {percent(after.rate)}",
        "brief": percent(after.rate),
        "kind": ASIDE if not held else HELD if limit is None else EXCEEDS if exceeds else WITHIN,
        "targets": sampled_words(after) or f"{after.targets:,}",
        "guess": percent(after.guessing),
        "sides": [percent((side or after).rate) for side in (after.his_record, after.his_values)],
    }


def _plain(row: Mapping[str, Any]) -> dict[str, Any]:
    return {name: row[name] for name in ("who", "before", "after", "said", "brief", "kind")}


def _swaps(outcome: Any) -> Html:
    swapping = outcome.swapping
    if swapping is None or not swapping.swaps:
        return paragraph("No record was exchanged: the figures before and after are the same.", kind="note")
    before, after = swapping.before, swapping.after
    said = [
        sentence(str(swapping.note())),
        f"Of {count_of(swapping.at_risk, 'record')} at risk {swapping.swaps:,} found a partner; correct links fell "
        "from "
        f"{before.expected_correct:,.1f} to {after.expected_correct:,.1f}.",
        sentence(
            f"{percent(swapping.his_record.rate)} have their record found and "
            f"{percent(swapping.his_values.rate)} their exchanged values; {swapping.two_rates()}"
        ),
    ]
    if swapping.stuck:
        why = ", ".join(f"{count:,} {reason}" for reason, count in swapping.reasons.items())
        said.append(f"Could not be exchanged: {why}.")
    shift, where = swapping.largest_domain_shift
    if where:
        said.append(f"The largest change of a sub-domain's mean is {figure_text(shift)} sds ({where}).")
    said.append(
        "The release as it was before the swaps must not leave as well: the two together show who moved."
    )
    return part("Records exchanged", html_list(said))


def _notes(outcome: Any) -> Html:
    after = outcome.after
    said = whole_lines([*after.on_released(), *map(str, after.on_ceiling()), *after.on_clear()])
    said += [f"{name}: {reason}" for name, reason in after.refused.items()]
    return html_list(sentence(" ".join(line.split())) for line in said)


def people_section(outcome: Any) -> Html:
    """Return who is at risk: by how many records the intruder had to choose among, and by decile."""
    name = worst_name(outcome)
    risk, limit = outcome.after[name], limit_rate(outcome)
    lead = paragraph(
        f"Shares of the targets that “{name}” finds in the release: the intruder who finds most of those the tolerance "
        "holds for. Classes of fewer than 5 targets have no share.",
        kind="lead",
    )
    parts = [
        _shares("blocks-chart", "By the size of the block", by_block(risk), limit, BLOCKS),
        _shares(
            "deciles-chart",
            "By how far out the target lies",
            by_outlyingness(risk, outcome.masking),
            limit,
            OUT,
        ),
        _amounts(by_amount(risk, outcome.masking)),
    ]
    return section("people", "Who is at risk", lead, *parts)


BLOCKS = (
    "released records that the intruder must choose among",
    "The fewer records share what he knows for certain, the easier a target is found.",
)
OUT = (
    "tenth of the targets, from the middle of the data to its edge",
    "Records far from the rest stay recognisable under noise that hides the others; “none”: no open amount.",
)


def _shares(
    slug: str, title: str, shares: Sequence[Share], limit: float | None, said: tuple[str, str]
) -> Html:
    if not any(share.rate is not None for share in shares):
        return Html("")
    rows = [{"label": share.label, "rate": share.rate} for share in shares]
    table = data_table(
        title,
        (said[0], "targets", "found"),
        [(share.label, f"{share.targets:,}", percent(share.rate)) for share in shares],
    )
    words = said[1] + (" Dashed: the tolerance." if limit is not None else "")
    return picture(slug, title, words, lambda width: share_bars(rows, limit, said[0], width), table)


def _amounts(amounts: Mapping[str, Sequence[Share]]) -> Html:
    rows = [
        {"amount": name, "decile": i, "rate": share.rate, "said": percent(share.rate, 0)}
        for name, shares in amounts.items()
        for i, share in enumerate(shares[:10], 1)
    ]
    if not any(row["rate"] is not None for row in rows):
        return Html("")
    table = data_table(
        "Share found by tenth of each amount",
        ("amount", *map(str, range(1, 11))),
        [(name, *(percent(share.rate) for share in shares[:10])) for name, shares in amounts.items()],
    )
    said = "The share found in each tenth of a masked column's true values; the fuller the square, the more are found."
    return picture(
        "amounts-chart", "By the size of the amount", said, lambda width: decile_heat(rows, width), table
    )


def card_section(outcome: Any) -> Html:
    """Return how the card leaves, and what each choice means for risk."""
    leaves = outcome.plan.card.leaves
    lead = paragraph(
        f"{leaves_words(outcome)}. Whoever holds the card can undo the noise in an analysis; an intruder who holds it "
        "finds more. A card that is sealed or kept protects only as long as nobody passes it on.",
        kind="lead",
    )
    rows = [
        (
            f"{name} (this release)" if name == leaves else name,
            "every intruder" if name == "open" else "those who do without the card",
            NOT_TRIED if rate is None or not isfinite(rate) else percent(rate),
        )
        for name, rate in outcome.card_risk.items()
    ]
    table = data_table(
        "The largest share that an intruder finds, by how the card leaves",
        ("card", "who counts", "found at most"),
        rows,
    )
    recipients = len(outcome.plan.card.recipients)
    said = (
        f"It is sealed for {count_of(recipients, 'recipient')}." if leaves == "sealed" and recipients else ""
    )
    return section(
        "card",
        "The noise card",
        join_children(lead, paragraph(said) if said else None),
        table if rows else None,
    )

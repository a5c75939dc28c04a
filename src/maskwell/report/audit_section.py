"""The section on the audit: what fails first, then what warns, what was not checked, and what passes."""

from __future__ import annotations

from math import isfinite
from typing import Any

from .elements import Html, badge, data_table, folded_details, join_children, paragraph, section, tag
from .words import count_of, figure_text, sentence

WORDS = {"fail": ("fails", "bad"), "warn": ("warns", "fair"), "pass": ("passes", "good")}
NOT_CHECKED = ("not checked", "none")
MOST_FIGURES = 12


def audit_section(outcome: Any) -> Html:
    """Return every check with its figure against its limits, what it means and what helps."""
    audit = outcome.audit
    counts = [
        f"{len(audit.having(verdict))} {words}"
        for verdict, words in (
            ("fail", "fail"),
            ("warn", "warn"),
            ("pass", "pass"),
            ("not checked", "not checked"),
        )
    ]
    lead = paragraph(
        f"Every known way in which a noise-masked file leaks, each a figure with limits: {', '.join(counts)}.",
        kind="lead",
    )
    bad = [_finding_block(finding) for finding in (*audit.failures, *audit.warnings)]
    rest = [
        (
            finding.check,
            _verdict(finding),
            figure_text(finding.figure),
            _limits(finding.limits),
            _finding_text(finding),
        )
        for verdict in ("pass", "not checked")
        for finding in audit.having(verdict)
    ]
    heads = ("check", "verdict", "figure", "limits", "what it means here")
    table = data_table("Checks that pass or could not be made", heads, rest) if rest else None
    return section("audit", "Audit", lead, *bad, table)


def _verdict(finding: Any) -> Html:
    return badge(*WORDS.get(finding.verdict, NOT_CHECKED))


def _limits(limits: Any) -> str:
    """Write limits for a table: from which figure on a check warns and fails."""
    side = "<" if limits.below else ">"
    given = [("warn", limits.warn), ("fail", limits.fail)]
    return ", ".join(f"{word} {side} {limit:.4g}" for word, limit in given if limit is not None) or "none"


def _finding_text(finding: Any) -> Html:
    sampled = f"Looked at {count_of(finding.sampled, 'record')}." if finding.sampled else None
    return join_children(sentence(finding.said), " " if sampled else None, sampled)


def _finding_block(finding: Any) -> Html:
    """Return a check that fails or warns, with its remedy."""
    _, kind = WORDS.get(finding.verdict, NOT_CHECKED)
    head = tag("h3", _verdict(finding), " ", finding.check)
    where = f" Worst at {finding.where}." if finding.where else ""
    why = f" Why there: {finding.limits.reason}." if finding.limits.reason else ""
    figures = paragraph(
        f"Figure {figure_text(finding.figure)}; {finding.limits}.{where}{why}",
        kind="note",
    )
    said = paragraph(_finding_text(finding))
    helps = paragraph(tag("strong", "What helps: "), sentence(finding.remedy)) if finding.remedy else None
    return tag("div", head, said, helps, figures, _figures(finding), class_=f"finding {kind}")


def _figures(finding: Any) -> Html | None:
    """Return the figure of each column that was looked at, where there are several."""
    known = [(name, value) for name, value in finding.figures.items() if isfinite(value)]
    if len(known) < 2:
        return None
    known.sort(key=lambda item: item[1] if finding.limits.below else -item[1])
    rows = [(name, figure_text(value)) for name, value in known[:MOST_FIGURES]]
    left = len(known) - len(rows)
    more = paragraph(f"and {left} more that are less bad", kind="note") if left > 0 else None
    return folded_details(
        "The figure of each", data_table(f"{finding.check}: each figure", ("what", "figure"), rows), more
    )

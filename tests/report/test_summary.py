"""The summary on the terminal: one screen."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from maskwell.pipeline import Advice, Outcome
from maskwell.report import release_summary

Build = Callable[..., Outcome]


def test_what_passed_is_told_with_where_it_lies(outcome: Outcome) -> None:
    lines = release_summary(outcome).splitlines()
    assert lines[:2] == [
        "Housing survey 1993",
        "MAY BE RELEASED: the tolerance holds and no check of the audit fails",
    ]
    assert lines[-2:] == [
        "may leave:     out/release/ (card in the open)",
        "stays inside:  out/private/ (key, links, truth, internal report)",
    ]
    rate = f"{outcome.after['nearest record'].rate:.1%}"
    assert any(line.startswith("  nearest record") and rate in line for line in lines)
    assert any(line.endswith("not held to it") for line in lines)
    assert any(line.startswith("  WARN links in the outer 5%") for line in lines)


def test_a_refusal_says_why_what_would_pass_and_that_nothing_was_written(build: Build) -> None:
    text = release_summary(build(passed=False))
    assert "MAY NOT BE RELEASED\n  - nearest record finds 32%" in text
    assert "what would pass\n  - more noise: r0 = 0.9" in text
    assert text.endswith("nothing was written")


def test_a_reason_to_release_all_the_same_is_told(build: Build) -> None:
    assert "the reason given: the board asked" in release_summary(
        build(passed=False, despite="the board asked")
    )


@pytest.mark.parametrize("passed", [True, False])
def test_it_fits_one_screen_however_much_there_is(build: Build, passed: bool) -> None:
    long = "word " * 90
    outcome = build(passed=passed, report={"title": long})
    findings = tuple(
        replace(one, check=f"{one.check} {i}", said=long) for i in range(9) for one in outcome.audit.findings
    )
    risks = type(outcome.after)(
        {f"{who} {i} {long}": risk for i in range(6) for who, risk in outcome.after.items()}
    )
    crowded = replace(
        outcome,
        audit=replace(outcome.audit, findings=findings),
        reasons=(long,) * 12,
        advice=(Advice(long, {}, True),) * 9,
        after=risks,
        before=risks,
        held=tuple(risks),
        despite=None if passed else long,
    )
    lines = release_summary(crowded).splitlines()
    assert len(lines) <= 45
    assert max(map(len, lines)) <= 100
    assert lines[-1] == (
        "stays inside:  out/private/ (key, links, truth, internal report)"
        if passed
        else "nothing was written"
    )

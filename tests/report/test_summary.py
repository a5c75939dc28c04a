"""The summary on the terminal: one screen."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace

import pytest

from maskwell.pipeline import Advice, Outcome
from maskwell.report import passing_sections, refusal_summary, release_summary
from maskwell.report.plan_section import advice_section

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
    assert text.endswith("nothing was released")


def test_what_comes_from_a_seed_is_for_studies_only(seeded: Outcome) -> None:
    text = release_summary(seeded)
    assert text.splitlines()[1] == (
        "WOULD PASS, BUT IS FOR STUDIES ONLY (--seed): run again without a seed to release"
    )
    assert "MAY BE RELEASED" not in text
    assert "may leave" not in text
    assert "for studies:   out/release/ (card in the open)" in text
    despite = replace(seeded, passed=False, despite="the board asked", reasons=("too much",))
    assert release_summary(despite).splitlines()[1].startswith("FOR STUDIES ONLY (--seed)")


FAILED = Advice(
    "leave out TAXES",
    {"columns": "TAXES", "floor": 0.1, "rate": 0.3},
    False,
    draws=2,
    why="comes close: nearest 15.80% of 15.00%",
    plan='[[masks]]\nmask = "Subsample"\nfraction = 0.5\n',
    schema="[columns.TAXES]\ndrop = true\n",
)
UNTRIED = Advice("leave out BATHS, or group its categories", {"column": "BATHS"})
VAIN = Advice("no scale up to 16 times this one meets the tolerance", {"factor": 16.0, "rate": 0.2}, False)
NOISE = Advice("informed links: Give more noise (calibrate finds how much), or swap the records", {})


def test_what_was_tried_says_how_far_it_came_and_what_passed_in_how_many_draws(build: Build) -> None:
    text = release_summary(build(passed=False, advice=(FAILED, UNTRIED)))
    head = "no change was found that would pass (1 change tried); what came of them"
    changes = text[text.index(head) :].splitlines()[1:3]
    assert changes == [
        f"  - {FAILED.change}: comes close: nearest 15.80% of 15.00% (passed in 0 of 2 draws)",
        f"  - {UNTRIED.change}",
    ]
    assert passing_sections(build(passed=False, advice=(FAILED, UNTRIED))) == ""
    passing = replace(FAILED, passes=True, draws=20, passed=19, why="")
    refused = build(passed=False, advice=(FAILED, UNTRIED, passing))
    assert f"what would pass\n  - {FAILED.change} (passed in 19 of 20 draws)\n\nnothing" in refusal_summary(
        refused
    )
    text = passing_sections(refused)
    assert "# in the plan, in place of its own sections" in text
    assert FAILED.plan.rstrip() in text
    assert text.endswith(f"\n\n# in the schema:\n{FAILED.schema.rstrip()}")
    assert "would pass: passed in 19 of 20 draws" in advice_section(refused)


def test_more_noise_is_not_advised_where_it_was_tried_in_vain(build: Build) -> None:
    assert "Give more noise" in release_summary(build(passed=False, advice=(NOISE,)))
    both = build(passed=False, advice=(VAIN, NOISE))
    assert f"what would change it\n  - {VAIN.change}\n\nnothing" in release_summary(both)
    assert "Give more noise" not in advice_section(both)


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
    cut = any("the internal report has the rest" in line for line in lines)
    assert (len(lines) <= 45, cut) == (passed, passed)  # of what is refused there is no report with the rest
    assert max(map(len, lines)) <= 100
    assert lines[-1] == (
        "stays inside:  out/private/ (key, links, truth, internal report)"
        if passed
        else "nothing was released"
    )


@pytest.mark.parametrize(
    ("wider", "said"),
    [
        (-0.42, "is narrower than the original's, which noise cannot make it"),
        (-0.01, "with the card no interval is wider than the original's"),
        (0.41, "with the card no interval is wider by more than 41%"),
    ],
)
def test_an_interval_that_noise_made_narrower_is_not_called_good(
    build: Build, wider: float, said: str
) -> None:
    outcome = build()
    forecast = SimpleNamespace(formula="Y ~ X", widening={"X": wider})
    changed = replace(outcome, utility=replace(outcome.utility, models=(), forecasts=(forecast,)))
    assert said in " ".join(release_summary(changed).split())

"""The internal report: the three answers first, every part there, no record and no id, nothing from elsewhere."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable
from dataclasses import replace
from html.parser import HTMLParser
from typing import Any

from maskwell.pipeline import Outcome
from maskwell.report import internal_report
from maskwell.report.at_risk import by_block
from maskwell.report.calibration_section import calibration_section
from maskwell.report.first_screen import first_screen
from maskwell.report.internal import LINKS
from maskwell.report.plan_section import advice_section, plan_text
from maskwell.report.risk_section import card_section, risk_section
from maskwell.report.words import KNOWS

Build = Callable[..., Outcome]
VOID = {"meta", "br", "hr", "col"}


class Checked(HTMLParser):
    """Notes the headings and attributes of a page, and that every element is closed."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.headings: list[int] = []
        self.ids: list[str] = []
        self.feed(page)
        assert not self.open

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        given = dict(attrs)
        assert tag not in ("script", "link", "img", "iframe", "object", "embed")
        assert not any(name.startswith("on") or name == "src" for name in given)
        self.ids += [given["id"]] if "id" in given else []
        if re.fullmatch("h[1-6]", tag):
            self.headings.append(int(tag[1]))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: Any) -> None:
        """Elements of a drawing that hold nothing."""

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def test_the_page_is_whole_and_needs_nothing_beside_it(internal: str) -> None:
    page = Checked(internal)
    assert internal.startswith("<!DOCTYPE html>\n<html lang=")
    assert len(page.ids) == len(set(page.ids))
    assert page.headings[0] == 1
    assert all(after - before <= 1 for before, after in zip(page.headings, page.headings[1:], strict=False))
    assert not re.search(r"https?://|@import|url\((?!#)", internal)
    assert len(internal.encode()) < 1_500_000


def test_every_section_is_there_and_linked(internal: str, outcome: Outcome) -> None:
    for slug in LINKS:
        assert f'href="#{slug}"' in internal
        assert f'<section id="{slug}"' in internal
    for part in (
        "Attempts on record",
        "What no figure here says",
        "Records exchanged",
        "The search for the noise",
    ):
        assert part in internal
    for finding in outcome.audit.findings:
        assert finding.check in internal


def test_every_chart_has_its_figures_behind_it(internal: str) -> None:
    figures = re.findall(r"<figure.*?</figure>", internal, re.DOTALL)
    assert len(figures) >= 6
    for one in figures:
        assert one.count("<svg") == 2
        assert re.search(r"<details>.*<table", one, re.DOTALL)


def test_the_first_screen_answers_three_questions(outcome: Outcome) -> None:
    screen = first_screen(outcome)
    assert "This may be released." in screen
    asked = re.findall(r'<h2>([^<]*)</h2><p class="figure">([^<]*)</p>', screen)
    assert [question for question, _ in asked] == [
        "May this be released?",
        "Who could still be found, and by whom?",
        "What can still be learned?",
    ]
    assert asked[0][1] == "Yes"
    assert asked[1][1] == f"{outcome.after['nearest record'].rate:.1%}"
    assert "tolerated 15%" in screen


def test_what_comes_from_a_seed_is_for_studies_only(seeded: Outcome) -> None:
    screen = first_screen(seeded)
    assert "This would pass, but is for studies only." in screen
    assert "run again without a seed to release." in screen
    assert "This may be released." not in screen
    assert re.search(
        r'<h2>May this be released\?</h2><p class="figure">No</p><p class="unit">for studies only', screen
    )
    despite = first_screen(replace(seeded, passed=False, despite="asked for"))
    assert "For studies only, and written despite the findings below." in despite


def test_a_choice_of_the_card_that_nobody_tried_has_no_figure(build: Build) -> None:
    for none in (None, float("nan")):
        page = card_section(build(card_risk={"open": 0.325, "sealed": none, "kept": none}))
        assert "32.5%" in page
        assert page.count(">not tried<") == 2
        assert "0.0%" not in page


def test_a_card_sealed_by_a_passphrase_names_no_recipients(build: Build) -> None:
    page = internal_report(build(card={"leaves": "sealed"}))
    assert "The card is sealed by a passphrase." in page
    assert "named recipients" not in page


def test_those_found_are_counted_among_the_targets(outcome: Outcome) -> None:
    after = outcome.after
    sought = f"{after['nearest record'].targets:,} targets"
    assert f"Found by any of the 3 intruders: {after.found_by_any:,} of {sought}." in first_screen(outcome)
    one = type(after)({"nearest record": after["nearest record"]})
    alone = replace(outcome, after=one, held=("nearest record",))
    assert f"Found by the one intruder: {one.found_by_any:,} of {sought}." in first_screen(alone)


def test_a_class_far_above_the_tolerance_is_told_where_the_whole_is_within_it(build: Build) -> None:
    rate = build().after["nearest record"].rate
    shares = by_block(build().after["nearest record"])
    worst = max((share for share in shares if share.rate is not None), key=lambda share: share.rate or 0)
    assert worst.rate is not None
    assert worst.rate > 2 * rate  # the sample has such a class
    said = f"Far above the tolerance: of targets in blocks of {worst.label} record"
    assert said in first_screen(build(tolerance={"max_rate": rate}))
    assert said not in first_screen(build(tolerance={"max_rate": 0.9 * rate}))
    assert said not in first_screen(build(tolerance={"max_rate": worst.rate}))


def test_the_ceiling_is_one_in_expectation() -> None:
    assert "in expectation" in KNOWS["the ceiling"]


def test_a_refusal_gives_its_reasons_and_what_would_pass(build: Build) -> None:
    refused = build(passed=False)
    page = first_screen(refused) + advice_section(refused)
    assert "This may not be released as it is." in page
    assert "nearest record finds 32% of the targets, tolerated are 15%" in page
    assert "would pass" in page
    assert "not tried" in page


def test_a_reason_to_release_all_the_same_is_in_plain_sight(build: Build) -> None:
    screen = first_screen(build(passed=False, despite="asked for by the <board>"))
    assert "Released despite the findings below." in screen
    assert "asked for by the &lt;board&gt;" in screen


def test_no_record_and_no_id_is_shown(internal: str, outcome: Outcome) -> None:
    ids = outcome.masking.truth.ids
    assert ids is not None
    assert not [one for one in ids.to_pylist() if one in internal]
    released = outcome.masking.release.table.ids
    assert released is not None
    assert not [one for one in released.to_pylist() if one in internal]


def test_the_same_outcome_gives_the_same_bytes(internal: str, outcome: Outcome) -> None:
    slower = replace(outcome, seconds={"attack": 12.5})
    assert internal_report(slower) == internal


def test_hostile_names_stay_text(build: Build) -> None:
    name = "<script>alert(1)</script>\"'é" + "x" * 200
    parts = build(report={"title": name, "organisation": name, "contact": name})
    renamed = {name if who == "nearest record" else who: risk for who, risk in parts.after.items()}
    risks = type(parts.after)(renamed, {name: name})
    page = internal_report(replace(parts, after=risks, before=risks, held=(name,)))
    Checked(page)
    assert "<script" not in page


def test_the_plan_is_told_as_a_plan_file_has_it(outcome: Outcome) -> None:
    given = outcome.plan.to_dict()
    read = tomllib.loads(plan_text(given))
    assert list(read) == list(given)
    assert read["masks"][0]["r0"] == given["masks"][0]["r0"]
    assert read["output"] == {"release": "release", "private": "private"}
    limits = {"audit": {"limits": {"informed links": {"warn": 0.1}}}}
    assert tomllib.loads(plan_text(limits)) == limits


def test_a_tolerance_over_other_figures_draws_no_line(outcome: Outcome, build: Build) -> None:
    over = build(tolerance={"max_rate": 0.15, "over": "outlying"})
    screen = first_screen(over)
    assert "at most 15% of the most outlying tenth of the targets" in screen
    assert "tolerated 15%" not in screen
    assert "held to the tolerance" in risk_section(over)


def test_a_plan_without_calibration_or_swaps_is_told_so(build: Build) -> None:
    given = build(calibration=None, swapping=None, attempts=())
    page = calibration_section(given) + risk_section(given)
    assert "taken as the plan gives it" in page
    assert "No record was exchanged" in page

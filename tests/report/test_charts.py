"""Charts: drawn without a network, in the page's colours, the same every time, with their figures behind them."""

from __future__ import annotations

import re
from html import unescape
from typing import Any

import pytest

from maskwell.report import charts
from maskwell.report.charts import picture
from maskwell.report.elements import data_table
from maskwell.report.pictures import WITHIN, dots, risk_by_intruder, share_bars

# long names are cut where the fonts at hand say, so that what is looked for stands first
HOSTILE = '<script>x()</script> & "q" 数 id="clip1" fill="#010101" 0.12345 ' + "x" * 30


def bars(width: int) -> Any:
    rows = [
        {"who": who, "before": 0.3, "after": 0.1, "said": "30% → 10%", "brief": "10%", "kind": WITHIN}
        for who in ("nearest record", HOSTILE)
    ]
    return risk_by_intruder(rows, 0.15, width)


def drawn() -> str:
    return picture("risk", "Risk", "What is found.", bars, data_table("t", ("a", "b"), [("x", "1")]))


@pytest.fixture(scope="module")
def made() -> str:
    return drawn()


def test_a_chart_is_drawn_for_wide_and_narrow_pages_and_named(made: str) -> None:
    assert re.findall(r'<svg class="(\w+)" role="img" aria-label="Chart: Risk\. What is found\."', made) == [
        "wide",
        "narrow",
    ]
    assert "<details><summary>The figures behind this chart</summary>" in made


def test_a_chart_fetches_nothing_and_holds_no_markup_of_its_names(made: str) -> None:
    assert "http" not in made
    assert "xlink" not in made
    assert "<script" not in made
    assert 'id="clip1" fill="#010101" 0.12345' in unescape(
        re.findall("<text[^>]*>([^<]*script[^<]*)<", made)[0]
    )


def test_a_chart_has_the_colours_of_the_page(made: str) -> None:
    colours = {"#000", "black", "#888", "#ddd", *charts._VARIABLES}
    elements = "".join(re.findall("<[a-z][^>]*>", made))
    left = {colour for _, colour in re.findall(r' (fill|stroke)="([^"]*)"', elements)}
    assert not left & colours, left
    assert {"fill:var(--blue)", "fill:var(--ink)", "stroke:var(--line)"} <= set(
        re.findall(r"(?:fill|stroke):var\(--\w+\)", made)
    )


def test_ids_do_not_clash_between_charts() -> None:
    rows = [{"label": "1", "rate": 0.1}, {"label": "2", "rate": None}]
    pages = [
        picture(slug, "t", "s", lambda width: share_bars(rows, 0.1, "x", width), data_table("t", ("a",), []))
        for slug in ("one", "two")
    ]
    ids = re.findall(r'\bid="([^"]+)"', "".join(pages))
    assert len(ids) == len(set(ids))


def test_the_same_chart_is_the_same_bytes(made: str) -> None:
    assert drawn() == made


def test_without_altair_the_table_stands_in(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(charts, "find_spec", lambda name: None)
    page = drawn()
    assert "<svg" not in page
    assert "<table" in page
    assert "Altair and vl-convert were not installed" in page


def test_all_kinds_that_occur_are_in_the_legend() -> None:
    rows = [{"name": "a", "kind": kind, "value": 0.1} for kind in ("first", "second")]
    chart = dots(rows, [("first", charts.INK), ("second", charts.BLUE), ("third", charts.GREEN)], "x", 600)
    assert chart.to_dict()["layer"][1]["encoding"]["color"]["scale"]["domain"] == ["first", "second"]

"""How charts are made: Altair describes them, vl-convert draws them as SVG, the page's own colours go in.

A chart is drawn twice, for a wide and for a narrow page, and follows the page from light to dark because its colours
are the page's variables. Nothing is fetched: the fonts are the reader's. Where Altair is not installed the table
behind a chart stands in its place.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from importlib.util import find_spec
from typing import Any

from .elements import Html, escape_text, folded_details, paragraph, tag

WIDE, NARROW = 900, 350
PER_LETTER = 7.3  # pixels that a letter takes at most on average, in the widest of the common fonts
Draw = Callable[[int], Any]

# Colours as they are drawn, and the page's variable that takes their place. Okabe and Ito's, and shades of ink.
INK, MUTED, LINE, BAND, GREY = "#010101", "#020202", "#030303", "#040404", "#050505"
BLUE, VERMILLION, GREEN, PINK, PAPER = "#0072b2", "#d55e00", "#009e73", "#cc79a7", "#fefefe"
_VARIABLES = {
    INK: "ink",
    MUTED: "muted",
    LINE: "line",
    BAND: "band",
    GREY: "grey",
    BLUE: "blue",
    VERMILLION: "vermillion",
    GREEN: "green",
    PINK: "pink",
    PAPER: "paper",
}
_COLOUR = re.compile(r' (fill|stroke)="(#[0-9a-fA-F]{3,8})"')
_ELEMENT = re.compile(r"<[a-zA-Z][^<>]*>")
_LEFT_OUT = re.compile(r' (?:role|aria-[a-z]+|class|pointer-events)="[^"]*"')
_ID = re.compile(r'(\bid="|url\(#)([^")]+)(["\)])')
_DIGITS = re.compile(r"\d+\.\d{3,}")
_SIZE = re.compile(r'<svg[^>]*? width="([\d.]+)" height="([\d.]+)"[^>]*>')


def picture(slug: str, title: str, said: str, draw: Draw, table: Html) -> Html:
    """Return a chart with its title, what it shows in words, and the figures behind it.

    `draw` makes the chart for a page so many pixels wide.
    """
    caption = tag("figcaption", tag("strong", title), said)
    if not can_draw():
        missing = paragraph(
            "The chart is left out: Altair and vl-convert were not installed. Its figures:", kind="note"
        )
        return tag("figure", caption, missing, table, id=slug)
    label = f"Chart: {title}. {said}"
    both = [
        _render_chart(draw(width), f"{slug}-{kind}", kind, label)
        for kind, width in (("wide", WIDE), ("narrow", NARROW))
    ]
    return tag("figure", caption, *both, folded_details("The figures behind this chart", table), id=slug)


def can_draw() -> bool:
    """Return whether charts can be drawn here."""
    return find_spec("altair") is not None and find_spec("vl_convert") is not None


def _render_chart(chart: Any, name: str, kind: str, label: str) -> Html:
    import vl_convert

    # The charts are ours: checking each against the whole of Vega-Lite's schema would take longer than drawing it.
    spec = chart.to_dict(validate=False)
    svg: str = vl_convert.vegalite_to_svg(spec, config=_LOOK, allowed_base_urls=[])
    return _inline_svg(svg, name, kind, label)


def _inline_svg(svg: str, name: str, kind: str, label: str) -> Html:
    """Give a drawing its own ids, the page's colours, and a name for those who cannot see it."""
    size = _SIZE.match(svg)
    assert size is not None
    ids: dict[str, str] = {}
    inner = _ELEMENT.sub(lambda found: _own(found[0], name, ids), svg[size.end() :])
    width, height = size[1], size[2]
    opening = (
        f'<svg class="{kind}" role="img" aria-label="{escape_text(label)}" width="{width}" height="{height}" '
        f'viewBox="0 0 {width} {height}">'
    )
    return Html(opening + inner)


def _own(element: str, name: str, ids: dict[str, str]) -> str:
    """Return an element as the page has it; text between elements is not touched.

    Ids are numbered anew: the program that draws counts on from chart to chart. Digits beyond a hundredth of a pixel
    are nobody's.
    """

    def renamed(found: re.Match[str]) -> str:
        return f"{found[1]}{ids.setdefault(found[2], f'{name}-{len(ids) + 1}')}{found[3]}"

    element = _LEFT_OUT.sub("", element)
    element = _ID.sub(renamed, element)
    element = _DIGITS.sub(lambda found: f"{float(found[0]):.2f}".rstrip("0").rstrip("."), element)
    return _themed_element(element)


def _themed_element(element: str) -> str:
    """Replace an element's colours by the page's variables, as style: attributes cannot hold them everywhere."""
    styles = [
        f"{which}:var(--{_VARIABLES[colour.lower()]})"
        for which, colour in _COLOUR.findall(element)
        if colour.lower() in _VARIABLES
    ]
    if not styles:
        return element
    rest = _COLOUR.sub(lambda f: "" if f[2].lower() in _VARIABLES else f[0], element)
    end = "/>" if rest.endswith("/>") else ">"
    return f'{rest[: -len(end)]} style="{";".join(styles)}"{end}'


_AXIS = {
    "labelColor": MUTED,
    "titleColor": MUTED,
    "gridColor": LINE,
    "domainColor": GREY,
    "tickColor": GREY,
    "titleFontWeight": "normal",
    "labelFontSize": 12,
    "titleFontSize": 12,
    "titlePadding": 8,
    "labelPadding": 6,
}
_TEXT = {"labelColor": INK, "titleColor": MUTED, "labelFontSize": 12, "titleFontSize": 12, "title": None}
_LOOK: dict[str, Any] = {
    "font": "sans-serif",
    "aria": False,
    "background": "transparent",
    "view": {"stroke": None},
    "axis": _AXIS,
    "axisY": {"labelColor": INK, "ticks": False, "domain": False},
    "axisX": {"labelFlush": False},
    "legend": {
        **_TEXT,
        "orient": "top",
        "direction": "horizontal",
        "offset": 22,
        "columnPadding": 28,
        "symbolSize": 80,
        "labelLimit": 320,
    },
    "header": {**_TEXT, "labelFontWeight": "bold", "labelAnchor": "start", "labelPadding": 2},
    "text": {"fontSize": 12, "color": INK},
}


def values(rows: Any) -> Any:
    """Return rows as the data of a chart, inside it."""
    import altair as alt

    return alt.InlineData(values=list(rows))


def fit_chart(chart: Any, width: int, height: int | None = None) -> Any:
    """Return a chart that fits a page, labels and all."""
    import altair as alt

    fitted = chart.properties(width=width, autosize=alt.AutoSizeParams(type="fit-x", contains="padding"))
    return fitted if height is None else fitted.properties(height=height)


def legend_of(pairs: list[tuple[str, str]]) -> Any:
    """Return a scale that gives each name its colour."""
    import altair as alt

    return alt.Scale(domain=[name for name, _ in pairs], range=[colour for _, colour in pairs])


def room_for(names: Iterable[str], most: float) -> dict[str, Any]:
    """Return the options of an axis that leave room for names in whatever font the reader has, cut where too long."""
    wide = max((PER_LETTER * len(name) for name in names), default=0.0)
    return {"labelLimit": int(most), "minExtent": int(min(wide, most)) + 6, "maxExtent": int(most) + 6}

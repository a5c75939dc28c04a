"""The charts of the reports, each from plain rows and for a page so many pixels wide."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from .charts import (
    BAND,
    BLUE,
    GREEN,
    GREY,
    INK,
    LINE,
    MUTED,
    PAPER,
    VERMILLION,
    fit_chart,
    legend_of,
    room_for,
    values,
)

Rows = Sequence[Mapping[str, Any]]

WITHIN, EXCEEDS, ASIDE = "within the tolerance", "exceeds the tolerance", "not held to the tolerance"
SEARCH, FRESH, COLUMNS = "during the search", "on fresh draws", "column by column"
ORIGINAL, NAIVE, ADJUSTED = "original (band: its 95% interval)", "release, naively", "release, with the card"
HELD = "held to the tolerance"  # which is about another figure than the one drawn
THICKEST = 48  # pixels of a bar
NARROWEST = 500  # pixels, below which a chart says less
KINDS = [(WITHIN, BLUE), (HELD, BLUE), (EXCEEDS, VERMILLION), (ASIDE, GREY)]


def risk_by_intruder(rows: Rows, limit: float | None, width: int) -> Any:
    """Draw the rate of each intruder after the swaps as a bar, before them as a tick, and the tolerance as a line."""
    import altair as alt

    top = max([row["after"] for row in rows] + [row["before"] for row in rows] + [limit or 0.0, 0.01])
    x = alt.X(
        "after:Q",
        title="share of the targets found",
        scale=alt.Scale(domain=[0, top * (1.3 if width > NARROWEST else 1.4)], nice=False),
        axis=alt.Axis(format="%", tickCount=5),
    )
    names = [row["who"] for row in rows]
    y = alt.Y("who:N", title=None, sort=None, axis=alt.Axis(**room_for(names, width * 0.4)))
    colour = alt.Color("kind:N", scale=_present(rows, KINDS), legend=_legend(width))
    base = alt.Chart(values(rows))
    bars = base.mark_bar(height=14, cornerRadiusEnd=2).encode(x=x, y=y, color=colour)
    said = base.mark_text(align="right").encode(
        x=alt.value("width"), y=y, text="said:N" if width > NARROWEST else "brief:N"
    )
    layers = [bars, said]
    if any(row["before"] != row["after"] for row in rows):
        ticks = base.mark_tick(color=INK, thickness=2, height=20).encode(x="before:Q", y=y)
        layers.insert(1, ticks)
    return fit_chart(alt.layer(*layers, *_limit_x(limit)), width, 34 * len(rows))


def share_bars(rows: Rows, limit: float | None, title: str, width: int) -> Any:
    """Draw the share found in each class as bars, and the tolerance as a line."""
    import altair as alt

    top = max([row["rate"] for row in rows if row["rate"] is not None] + [limit or 0.0, 0.01])
    x = alt.X("label:N", title=title, sort=None, axis=alt.Axis(labelAngle=-40 if width < NARROWEST else 0))
    y = alt.Y(
        "rate:Q",
        title=None,
        scale=alt.Scale(domain=[0, top * 1.1], nice=False),
        axis=alt.Axis(format="%", tickCount=4, labelColor=MUTED),
    )
    thick = min(THICKEST, 0.55 * (width - 60) / len(rows))
    bars = alt.Chart(values(rows)).mark_bar(color=BLUE, cornerRadiusEnd=2, size=thick).encode(x=x, y=y)
    rule: list[Any] = []
    if limit is not None:
        at = alt.Chart(values([{"rate": limit}]))
        rule = [at.mark_rule(color=INK, strokeDash=[5, 4]).encode(y="rate:Q")]
    return fit_chart(alt.layer(bars, *rule), width, 170)


def decile_heat(rows: Rows, width: int) -> Any:
    """Draw the share found by amount and decile: the fuller the square, the more are found."""
    import altair as alt

    names = list(dict.fromkeys(row["amount"] for row in rows))
    x = alt.X("decile:O", title="tenth of the targets, smallest to largest amount", sort=None)
    y = alt.Y("amount:N", title=None, sort=names, axis=alt.Axis(**room_for(names, width * 0.3)))
    base = alt.Chart(values(rows)).encode(
        x=x.axis(labelAngle=0, orient="bottom", domain=False, ticks=False), y=y
    )
    top = max([row["rate"] for row in rows if row["rate"] is not None] + [0.01])
    shade = alt.Opacity("rate:Q", scale=alt.Scale(domain=[0, top], range=[0.04, 0.5]), legend=None)
    squares = base.mark_rect(color=BLUE, stroke=PAPER, strokeWidth=2).encode(opacity=shade)
    said = base.mark_text(fontSize=9 if width < NARROWEST else 11).encode(text=alt.Text("said:N"))
    return fit_chart(alt.layer(squares, said), width, 30 * len(names))


def calibration_trace(rows: Rows, limit: float | None, names: tuple[str, str], width: int) -> Any:
    """Draw the judged figure along the scale of the noise: the search, and fresh draws, with standard errors."""
    import altair as alt

    across, up = names
    x = alt.X("at:Q", title=across, scale=alt.Scale(type="log", nice=False, padding=12))
    is_share = all(row["is_share"] for row in rows)
    y = alt.Y(
        "mean:Q", title=up, axis=alt.Axis(format="%" if is_share else "", labelColor=MUTED, tickCount=5)
    )
    kinds = [(SEARCH, BLUE), (COLUMNS, GREY), (FRESH, VERMILLION)]
    colour = alt.Color("round:N", scale=_present(rows, kinds, "round"), legend=_legend(width))
    shape = alt.Shape(
        "round:N",
        scale=alt.Scale(domain=[SEARCH, COLUMNS, FRESH], range=["circle", "square", "diamond"]),
        legend=None,
    )
    base = alt.Chart(values(rows)).encode(x=x, color=colour)
    bars = base.mark_rule(strokeWidth=1.5).encode(y=alt.Y("low:Q", title=up), y2="high:Q")
    size = alt.condition(alt.datum.round == FRESH, alt.value(130), alt.value(60))
    points = base.mark_point(filled=True, opacity=1).encode(y=y, shape=shape, size=size)
    layers = [bars, points]
    if limit is not None:
        layers.append(
            alt.Chart(values([{"mean": limit}])).mark_rule(color=INK, strokeDash=[5, 4]).encode(y="mean:Q")
        )
    return fit_chart(alt.layer(*layers), width, 260)


def risk_and_loss(rows: Rows, limit: float | None, across: str, width: int) -> Any:
    """Draw what is found against what it costs; the release is marked."""
    import altair as alt

    scale = alt.Scale(type="log", nice=False, padding=20)
    x = alt.X("loss:Q", title=across, scale=scale).axis(format="~%", tickCount=6)
    y = alt.Y(
        "rate:Q",
        title="share of the targets found",
        scale=alt.Scale(domainMin=0),
        axis=alt.Axis(format="%", labelColor=MUTED, tickCount=5),
    )
    base = alt.Chart(values(rows)).encode(x=x, y=y)
    points = base.mark_point(filled=True, opacity=1).encode(
        color=alt.Color("kind:N", scale=_present(rows, RISK_KINDS), legend=_legend(width)),
        size=alt.Size("size:Q", scale=None, legend=None),
    )
    layers = [points]
    if limit is not None:
        layers.append(
            alt.Chart(values([{"rate": limit}])).mark_rule(color=INK, strokeDash=[5, 4]).encode(y="rate:Q")
        )
    return fit_chart(alt.layer(*layers), width, 260)


TRIED, NOISE_ALONE, RELEASED = "tried in calibration", "noise alone", "the release"
RISK_KINDS = [(TRIED, GREY), (NOISE_ALONE, GREEN), (RELEASED, BLUE)]


def forest(rows: Rows, width: int) -> Any:
    """Draw the coefficients of a model: the original's interval as a band, naive and adjusted ones as intervals.

    Every coefficient has an axis of its own, in its own units.
    """
    import altair as alt

    names = list(dict.fromkeys(row["name"] for row in rows))
    inner = width - 40
    y = alt.Y("kind:N", title=None, sort=[ORIGINAL, NAIVE, ADJUSTED], axis=None)
    x = alt.X("estimate:Q", title=None, scale=alt.Scale(zero=False, padding=8), axis=alt.Axis(tickCount=5))
    kinds = [(ORIGINAL, INK), (NAIVE, VERMILLION), (ADJUSTED, BLUE)]
    colour = alt.Color("kind:N", scale=_present(rows, kinds), legend=_legend(width))
    base = alt.Chart().encode(color=colour)
    band = (
        alt.Chart()
        .transform_filter(alt.datum.kind == ORIGINAL)
        .mark_rect(color=BAND)
        .encode(x=alt.X("low:Q", title=None), x2="high:Q")
    )
    bars = base.mark_rule(strokeWidth=2).encode(x=alt.X("low:Q", title=None), x2="high:Q", y=y)
    points = base.mark_point(filled=True, size=60, opacity=1).encode(x=x, y=y)
    layered = alt.layer(band, bars, points).properties(width=inner, height=48)
    return layered.facet(
        data=values(rows),
        row=alt.Row("name:N", sort=names, title=None, header=alt.Header(labelOrient="top", labelAngle=0)),
        spacing=14,
    ).resolve_scale(x="independent")


def dots(rows: Rows, kinds: Sequence[tuple[str, str]], across: str, width: int) -> Any:
    """Draw figures of several kinds as dots on one line for each name."""
    import altair as alt

    names = list(dict.fromkeys(row["name"] for row in rows))
    y = alt.Y("name:N", title=None, sort=names, axis=alt.Axis(**room_for(names, width * 0.4)))
    x = alt.X("value:Q", title=across, scale=alt.Scale(zero=False, padding=10), axis=alt.Axis(tickCount=6))
    colour = alt.Color("kind:N", scale=_present(rows, kinds), legend=_legend(width))
    shape = alt.Shape(
        "kind:N",
        scale=alt.Scale(domain=[name for name, _ in kinds], range=["circle", "square", "diamond"]),
        legend=None,
    )
    base = alt.Chart(values(rows))
    line = base.mark_line(color=LINE, strokeWidth=2).encode(x=x, y=y, detail="name:N")
    points = base.mark_point(filled=True, size=70, opacity=1).encode(x=x, y=y, color=colour, shape=shape)
    return fit_chart(alt.layer(line, points), width, 26 * len(names))


def signal_and_noise(rows: Rows, width: int) -> Any:
    """Draw for each column how its variance in the release divides into that of the original and the noise."""
    import altair as alt

    names = list(dict.fromkeys(row["name"] for row in rows))
    kinds = [("spread of the original values", BLUE), ("added noise", GREY)]
    x = alt.X("share:Q", title="share of the variance in the release", axis=alt.Axis(format="%", tickCount=5))
    bars = (
        alt.Chart(values(rows))
        .mark_bar(height=16)
        .encode(
            x=x.scale(domain=[0, 1]),
            y=alt.Y("name:N", title=None, sort=names, axis=alt.Axis(**room_for(names, width * 0.4))),
            color=alt.Color("kind:N", scale=legend_of(kinds), legend=_legend(width)),
            order=alt.Order("order:Q"),
        )
    )
    return fit_chart(bars, width, 30 * len(names))


def _limit_x(limit: float | None) -> list[Any]:
    import altair as alt

    if limit is None:
        return []
    base = alt.Chart(values([{"after": limit, "text": f"tolerated {100 * limit:.4g}%"}]))
    rule = base.mark_rule(color=INK, strokeDash=[5, 4]).encode(x="after:Q")
    text = base.mark_text(align="left", baseline="bottom", dx=4, dy=-3, color=MUTED, fontSize=11)
    return [rule, text.encode(x="after:Q", y=alt.value(0), text="text:N")]


def _present(rows: Rows, kinds: Sequence[tuple[str, str]], key: str = "kind") -> Any:
    """Return the colours of the kinds that occur, in their order."""
    there = {row[key] for row in rows}
    return legend_of([(name, colour) for name, colour in kinds if name in there])


def _legend(width: int) -> Any:
    import altair as alt

    return alt.Legend(columns=1 if width < NARROWEST else 4, symbolOpacity=1)

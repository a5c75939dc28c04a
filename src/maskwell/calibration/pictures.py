"""The pictures of calibration: the trace of a search, and risk against utility loss."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..figure_style import BLUE, GREEN, GREY, INK, ORANGE, PINK, SHADE, SKY, panels
from .measures import ALL
from .scale import one_figure, scale_words
from .search import SEARCH
from .trials import Trial

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from .measures import Measure
    from .result import Calibration
    from .risk_utility_frontier import Frontier, FrontierPoint

COLOURS = (BLUE, ORANGE, GREEN, PINK, SKY, INK)
MARKS = "osD^vP"
FLOOR_WITHIN = 2.0  # a floor above so many times the largest figure is only said
NEAR = 1.5  # the second panel of a trace: scales within this factor of the one found

Place = Callable[[Trial], float]


def trace_picture(found: Calibration) -> Figure:
    """Draw the judged figure along the scale: all that was tried, and what is next to the scale found."""
    place, name = _places(found)
    middle = place(found.confirmation or found.closest or found.trace[0])
    near = [t for t in found.trace if middle / NEAR <= place(t) <= middle * NEAR]
    figure, (whole, near_it) = panels(2, width=4.2, height=3.8, share_y=False)
    for axes, trials in zip((whole, near_it), (found.trace, near), strict=True):
        _draw_trace(axes, found, trials, place)
        if axes is whole:
            _draw_floor(axes, found)
        _limit(axes, found.measure)
        axes.set_xlabel(name, fontsize=9, color=INK)
    whom = "" if found.over == ALL else ", most outlying tenth"
    whole.set_ylabel(f"{found.measure.name}{whom}", fontsize=9, color=INK)
    said = f"with {scale_words(found.mask)}" if found.met else "does not meet the tolerance"
    whole.set_title(_cut(f"{type(found.given).__name__} {said}"), loc="left", fontsize=10, color=INK)
    near_it.set_title(_near_title(found), loc="left", fontsize=9, color=INK)
    _legend(whole, _trace_rows(found), 2 if found.measure.at_least else 1)
    return figure


def _near_title(found: Calibration) -> str:
    if not found.met or found.confirmation is None:
        return "where it came nearest"
    text = f"confirmed {found.confirmation.said}"
    return text if found.measure.at_least else f"{text}, fresh draws"


def _draw_trace(axes: Axes, found: Calibration, trials: Sequence[Trial], place: Place) -> None:
    searched = sorted((t for t in trials if t.round == SEARCH), key=place)
    columns = [t for t in trials if t.round == "columns"]
    fresh = [t for t in trials if t.round.startswith("confirmation")]
    axes.set_xscale("log")
    axes.plot([place(t) for t in searched], [t.figure.mean for t in searched], color=BLUE, lw=1, alpha=0.5)
    _with_bars(axes, searched, place, BLUE, "o", 4)
    axes.plot([place(t) for t in columns], [t.figure.mean for t in columns], ".", color=SKY, ms=5)
    _with_bars(axes, [t for t in fresh if not _is_confirmed(found, t)], place, ORANGE, "x", 6)
    _with_bars(axes, [t for t in fresh if _is_confirmed(found, t)], place, ORANGE, "D", 6)
    _plain_ticks(axes, [place(t) for t in trials])
    _percent(axes, found.measure)


def _draw_floor(axes: Axes, found: Calibration) -> None:
    """Draw the floor where that leaves the figures their room."""
    if _shows_floor(found):
        axes.axhline(found.floor or 0.0, color=PINK, lw=1.2, ls=":", zorder=1)


def _shows_floor(found: Calibration) -> bool:
    """Whether there is a floor, not above twice what the figures and their limit need."""
    tops = [found.measure.limit, *(trial.figure.mean for trial in found.trace)]
    return bool(found.floor) and (found.floor or 0.0) <= FLOOR_WITHIN * max(filter(np.isfinite, tops))


def _is_confirmed(found: Calibration, trial: Trial) -> bool:
    return found.met and trial is found.confirmation


def _places(found: Calibration) -> tuple[Place, str]:
    """Return where a trial stands on the scale: its own figure if it is one that grows, else the factor."""
    named = [one_figure(trial.mask) for trial in found.trace]
    if any(one is None for one in named):
        return (lambda trial: trial.factor), "scale, in units of the given one"
    return (lambda trial: (one_figure(trial.mask) or ("", np.nan))[1]), str(named[0][0] if named[0] else "")


def _with_bars(axes: Axes, trials: Sequence[Trial], place: Place, color: str, mark: str, size: float) -> None:
    """Draw figures with their 95% intervals."""
    if not trials:
        return
    figures = [trial.figure for trial in trials]
    reach = np.nan_to_num([[f.mean - f.low for f in figures], [f.high - f.mean for f in figures]])
    places, means = [place(trial) for trial in trials], [f.mean for f in figures]
    axes.errorbar(places, means, reach, fmt=mark, color=color, ms=size, lw=1, zorder=3, clip_on=False)


def _limit(axes: Axes, measure: Measure) -> None:
    """Shade what is tolerated."""
    low, high = axes.get_ylim()
    room = 0.08 * (high - low)
    low, high = min(low, measure.limit - room), max(high, measure.limit + room)
    low = max(low, 0.0)
    axes.set_ylim(low, high)
    side = (measure.limit, high) if measure.at_least else (low, measure.limit)
    axes.axhspan(*side, color=SHADE, zorder=0, lw=0)
    axes.axhline(measure.limit, color=GREY, lw=1, ls="--", zorder=1)


def _trace_rows(found: Calibration) -> list[Any]:
    """Say what the marks are."""
    rounds = {trial.round.split()[0]: trial for trial in found.trace}
    rows = [_row(BLUE, "o", f"search, {rounds[SEARCH].replicates} draws each")]
    if "columns" in rounds:
        rows.append(_row(SKY, ".", "a scale for each column"))
    if found.met:
        rows.append(_row(ORANGE, "D", f"confirmed, {rounds['confirmation'].replicates} fresh draws"))
    if found.attempts > (1 if found.met else 0):
        rows.append(_row(ORANGE, "x", "not confirmed"))
    rows.append(_row(GREY, "", f"limit {_limit_words(found.measure)}", "--"))
    if found.floor:
        drawn = _shows_floor(found)
        words = "floor that no noise removes" if drawn else "floor, far above:"
        rows.append(_row(PINK, "", f"{words} {found.floor:.3g}", ":" if drawn else ""))
    return rows


def _legend(axes: Axes, rows: list[Any], place: int) -> None:
    """Write what the marks are on a ground that lines behind it do not cross."""
    legend = axes.legend(handles=rows, loc=place, fontsize=8, labelcolor=INK)
    legend.get_frame().set(facecolor="white", alpha=0.85, linewidth=0)


def _limit_words(measure: Measure) -> str:
    return f"{100 * measure.limit:.4g}%" if measure.is_share else f"{measure.limit:.4g}"


def _row(color: str, mark: str, words: str, line: str = "") -> Any:
    from matplotlib.lines import Line2D

    return Line2D([], [], color=color, marker=mark, ls=line, lw=1.2, ms=5, label=words)


def _plain_ticks(axes: Axes, places: Sequence[float]) -> None:
    """Write the scale in plain figures: 1, 2 and 5 times powers of ten, or any that suit a short range."""
    from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullLocator

    decades = np.log10(max(places) / min(places)) if places else 1.0
    if decades < 0.7:
        axes.xaxis.set_major_locator(MaxNLocator(5))
    else:
        axes.xaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0) if decades < 2.5 else (1.0,)))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:.4g}"))


def _percent(axes: Axes, measure: Measure) -> None:
    from matplotlib.ticker import PercentFormatter

    if measure.is_share:
        axes.yaxis.set_major_formatter(PercentFormatter(1.0))


def _cut(text: str, most: int = 52) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}…"


def frontier_picture(found: Frontier) -> Figure:
    """Draw risk against loss: one line a mask, points on the frontier filled, the chosen one ringed."""
    figure, (axes,) = panels(1, width=6.8, height=4.4)
    names = list(dict.fromkeys(point.name for point in found.points))
    rows: list[Any] = []
    for i, name in enumerate(names):
        color, mark = COLOURS[i % len(COLOURS)], MARKS[i % len(MARKS)]
        _draw_line(axes, [point for point in found.points if point.name == name], color, mark)
        rows.append(_row(color, mark, name, "-"))
    if not all(point.on_frontier for point in found.points):
        rows.append(_row(GREY, "o", "open: another has less of both"))
        rows[-1].set_markerfacecolor("white")
    axes.set_xlim(left=0)
    if found.tolerance is not None:
        _limit(axes, found.measure)
        rows.append(_row(GREY, "", f"limit {_limit_words(found.measure)}", "--"))
    axes.set_ylim(bottom=0)
    if found.chosen is not None:
        _mark_chosen(axes, found.chosen)
    axes.set_xlabel(f"utility loss ({found.loss_name})", fontsize=9, color=INK)
    whom = "worst intruder" if found.over == ALL else "worst intruder, most outlying tenth"
    axes.set_ylabel(f"{found.measure.name}, {whom}", fontsize=9, color=INK)
    _percent(axes, found.measure)
    _legend(axes, rows, 4 if found.measure.at_least else 1)
    axes.set_title(
        "Risk against utility: a line for each mask, scale by scale", loc="left", fontsize=10, color=INK
    )
    return figure


def _draw_line(axes: Axes, points: list[FrontierPoint], color: str, mark: str) -> None:
    points = sorted(points, key=lambda point: point.loss.mean)
    x, y = [p.loss.mean for p in points], [p.risk.mean for p in points]
    axes.plot(x, y, color=color, lw=1.2, alpha=0.7)
    reach = np.nan_to_num(
        [[p.risk.mean - p.risk.low for p in points], [p.risk.high - p.risk.mean for p in points]]
    )
    axes.errorbar(x, y, reach, fmt="none", ecolor=color, lw=0.9, alpha=0.7)
    for at, height, point in zip(x, y, points, strict=True):
        face = color if point.on_frontier else "white"
        axes.plot([at], [height], mark, color=color, mfc=face, ms=5.5, zorder=3, clip_on=False)


def _mark_chosen(axes: Axes, chosen: FrontierPoint) -> None:
    """Ring the chosen point and say what it is, beside it and towards the middle."""
    at = chosen.loss.mean, chosen.risk.mean
    axes.plot(*at, "o", mfc="none", mec=INK, mew=1.4, ms=13, zorder=4)
    words = scale_words(chosen.trial.mask).replace(", ", "\n") or "as it is"
    left = at[0] > 0.6 * axes.get_xlim()[1]
    below = at[1] > 0.6 * axes.get_ylim()[1]
    axes.annotate(
        f"chosen: {chosen.name}\n{words}",
        at,
        xytext=(-46 if left else 46, -52 if below else 52),
        textcoords="offset points",
        fontsize=8,
        color=INK,
        ha="right" if left else "left",
        va="top" if below else "bottom",
        arrowprops={"arrowstyle": "-", "color": GREY, "lw": 0.8, "shrinkB": 8},
    )

"""Pictures of a fit: chains, densities and intervals, with the fit that takes noise for truth beside."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ...errors import BadPlan
from ...figure_style import (
    BLUE,
    GREEN,
    GREY,
    INK,
    ORANGE,
    PINK,
    SKY,
    check_picture,
    panels,
    plain,
    save,
    title,
)
from .summary import LEVEL, check_level, index_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from .draws import Draws, Floats
    from .posterior import Posterior

COLORS = (BLUE, ORANGE, GREEN, PINK, SKY, GREY)
MOST = 30  # parameters in one picture
ACROSS = 3  # panels of densities side by side
POINTS = 1000  # of a chain in a picture
GRID = 256  # points of a density
UNADJUSTED = "unadjusted: the released values taken for true"


def draw_fit(posterior: Posterior, path: str | Path) -> Path:
    """Draw the intervals of a fit into a file."""
    check_picture(path)
    return save(forest(posterior), path)


def trace(posterior: Posterior, names: Sequence[str] | None = None) -> Figure:
    """Return, for each parameter, the density of each chain and the chains from draw to draw."""
    chosen = _chosen_parameters(posterior, names)
    figure, grid = _grid(len(chosen), 2, (9.0, 1.5))
    for (left, right), name in zip(grid, chosen, strict=True):
        series = posterior.draws_of(name)
        for chain, color in zip(series, _colors(len(series)), strict=True):
            _draw_density(left, chain, color, fill=False)
            kept = np.arange(0, len(chain), max(ceil(len(chain) / POINTS), 1))
            right.plot(kept + 1, chain[kept], color=color, lw=0.5, alpha=0.7)
        _as_density(left)
        title(left, _escaped_name(name))
        if name in posterior.names:
            k = posterior.names.index(name)
            judged, ess = posterior.diagnostics, "effective draws"
            title(right, f"R-hat {judged.r_hat[k]:.3f}, {judged.ess[k]:,.0f} {ess}")
        right.set_xlim(1, max(series.shape[1], 2))
    grid[-1][1].set_xlabel("draw", fontsize=8, color=INK)
    return figure


def density(posterior: Posterior, names: Sequence[str] | None = None) -> Figure:
    """Return the density of each parameter, of all chains together, and that of the naive fit."""
    chosen = _chosen_parameters(posterior, names)
    across = min(len(chosen), ACROSS)
    rows = ceil(len(chosen) / across)
    figure, grid = _grid(rows, across, (3.2 * across, 2.1))
    places = [axes for row in grid for axes in row]
    for axes, name in zip(places, chosen, strict=False):
        if (naive := _naive_of(posterior.naive, name)) is not None:
            _draw_density(axes, naive, ORANGE)
        _draw_density(axes, posterior.draws_of(name), BLUE)
        _as_density(axes)
        title(axes, _escaped_name(name))
    for axes in places[len(chosen) :]:
        axes.set_visible(False)
    _headline(figure, posterior)
    return figure


def forest(posterior: Posterior, names: Sequence[str] | None = None, level: float = LEVEL) -> Figure:
    """Return the interval of each parameter on a scale of its own, adjusted above and naive below."""
    check_level(level)
    chosen, summary = _chosen_parameters(posterior, names, nuisance=False), posterior.summary(level)
    figure, grid = _grid(len(chosen), 1, (6.4, 0.62), above=0.7)
    for (axes,), name in zip(grid, chosen, strict=True):
        row = summary[name]
        _bar(axes, 1.0, (row.low, row.estimate, row.high), BLUE)
        if not np.isnan(row.naive):
            _bar(axes, 0.0, (row.naive_low, row.naive, row.naive_high), ORANGE)
        _zero(axes)
        axes.set(yticks=[0.5], yticklabels=[_escaped_name(name)], ylim=(-0.6, 1.6))
        axes.tick_params(axis="y", length=0)
        axes.spines["left"].set_visible(False)
    _headline(figure, posterior, f", {100 * level:g}% intervals")
    return figure


def _chosen_parameters(posterior: Posterior, names: Sequence[str] | None, nuisance: bool = True) -> list[str]:
    """Return the parameters to draw: those named, or the first of the model of interest."""
    if names is None:
        return list(posterior.names[:MOST])
    given = [names] if isinstance(names, str) else list(names)
    if not given:
        raise BadPlan("name at least one parameter to draw")
    known = (*posterior.names, *(posterior.draws.nuisance_names if nuisance else ()))
    for name in given:
        index_of(name, known)
    return given


def _grid(
    rows: int, columns: int, size: tuple[float, float], above: float = 0.4
) -> tuple[Figure, list[list[Axes]]]:
    """Return a figure with a grid of panels: the width of all, and the height of a row."""
    figure, _ = panels(1)
    figure.clear()
    figure.set_size_inches(size[0], size[1] * rows + above)
    grid = [list(row) for row in figure.subplots(rows, columns, squeeze=False)]
    for axes in (one for row in grid for one in row):
        plain(axes)
    return figure, grid


def _escaped_name(name: str) -> str:
    """Return a name as it is: without this two dollars would make a formula."""
    return name.replace("$", r"\$")


def _colors(count: int) -> list[str]:
    return [COLORS[k % len(COLORS)] for k in range(count)]


def _draw_density(axes: Axes, series: Floats, color: str, fill: bool = True) -> None:
    """Draw the density of some draws; where they are all the same, a line."""
    flat = np.ravel(series)
    if np.ptp(flat) == 0:
        axes.axvline(float(flat[0]), color=color, lw=1.2)
        return
    from arviz_stats.base import array_stats  # type: ignore[attr-defined]

    stats: Any = array_stats
    at, height, _ = stats.kde(flat, grid_len=GRID)
    axes.plot(at, height, color=color, lw=1.2)
    if fill:
        axes.fill_between(at, 0, height, color=color, alpha=0.12, lw=0)


def _as_density(axes: Axes) -> None:
    """Leave the height of a density out: nobody reads it."""
    axes.set_yticks([])
    axes.spines["left"].set_visible(False)
    axes.set_ylim(bottom=0)


def _naive_of(naive: Draws | None, name: str) -> Floats | None:
    if naive is None or name not in naive.names:
        return None
    return naive.values[:, :, naive.names.index(name)]


def _bar(axes: Axes, height: float, ends: tuple[float, float, float], color: str) -> None:
    low, middle, high = ends
    axes.plot([low, high], [height, height], color=color, lw=1.6, solid_capstyle="butt")
    axes.plot([middle], [height], "o", color=color, ms=4.5)


def _zero(axes: Axes) -> None:
    """Mark zero where it is near."""
    low, high = axes.get_xlim()
    if low - 0.5 * (high - low) < 0 < high + 0.5 * (high - low):
        axes.axvline(0.0, color=GREY, lw=0.8, ls="--", zorder=0)


def _headline(figure: Figure, posterior: Posterior, more: str = "") -> None:
    """Say above all panels what the two colours are, each in its own."""
    words = [(f"adjusted for the noise{more}", BLUE)]
    words += [(UNADJUSTED, ORANGE)] if posterior.naive is not None else []
    width, height = figure.get_size_inches()
    engine: Any = figure.get_layout_engine()
    engine.set(rect=(0, 0, 1, 1 - 0.17 * (len(words) + 0.4) / height))
    for k, (text, color) in enumerate(words):
        figure.text(0.08 / width, 1 - (0.06 + 0.17 * k) / height, text, color=color, fontsize=8, va="top")

"""The pictures of Trottini's study: the 36 counts, the kernels, the thresholds, and the helpers."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ...drawing import BLUE, GREEN, GREY, INK, ORANGE, label, panels, save, spread_out, title
from ..plans import named
from ..results import Cell, Study, StudyTable
from .simulation import LEVELS, MOMENTS, RECORDS
from .tables import HELPED, HELPERS, KERNELS, KNOWING, SHOWN_AT, amounts

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COLORS = {"d.1": BLUE, "d.2": ORANGE}
WORDS = {"d.1": "told the parameters (d.1)", "d.2": "not told (d.2)"}
TICKS = (0, 1, 5, 10, 20, 40, 60, 80, 100)
ROWS = [(bias, noise) for bias, noise in product(LEVELS, LEVELS)]


def draw(study: Study, folder: Path) -> list[Path]:
    """Draw what the study has tables for, and return the files."""
    drawn = []
    if "2" in study and "3" in study:
        drawn.append(counts(study, folder / "counts.png"))
    if "kernels" in study:
        drawn.append(kernels(study["kernels"], folder / "kernels.png"))
    if "threshold" in study:
        drawn.append(threshold(study["threshold"], folder / "threshold.png"))
    if "helpers" in study:
        drawn.append(helpers(study["helpers"], folder / "helpers.png"))
    return drawn


def _headline(figure: Figure, text: str) -> None:
    figure.suptitle(text, x=0.01, ha="left", fontsize=10, color=INK)


def _say(axes: Axes, x: str = "", y: str = "") -> None:
    axes.set_xlabel(x, fontsize=8, color=INK)
    if y:
        axes.set_ylabel(y, fontsize=8, color=INK)


def _legend(axes: Axes, rows: Sequence[tuple[str, str]], place: tuple[float, float] = (0.97, 0.97)) -> None:
    """Write names in the colours of their lines, from the top right corner down."""
    x, y = place
    for i, (text, color) in enumerate(rows):
        where: dict[str, Any] = {"transform": axes.transAxes, "va": "top", "ha": "right"}
        axes.text(x, y - 0.055 * i, text, color=color, fontsize=8, **where)


def _roots(axes: Axes) -> None:
    """Scale counts by their roots, so that small ones can be told apart."""
    axes.set_xscale("function", functions=(lambda v: np.sqrt(np.maximum(v, 0)), np.square))
    axes.set_xlim(-0.0, RECORDS)
    axes.set_xticks(TICKS, [str(tick) for tick in TICKS])


def _rows(axes: Axes, names: Sequence[str]) -> None:
    axes.set_yticks(range(len(names)), list(names))
    axes.set_ylim(len(names) - 0.5, -0.6)
    axes.tick_params(axis="y", length=0)
    axes.spines["left"].set_visible(False)


# Tables 2 and 3.


def counts(study: Study, path: Path) -> Path:
    """Draw the published counts on our bands; those outside are crossed."""
    figure, axes = panels(2, width=5.0, height=4.6)
    for one, data in zip(axes, MOMENTS, strict=True):
        for color, name, side in zip(COLORS.values(), ("2", "3"), (-0.17, 0.17), strict=True):
            cells = [study[name][named(amounts(bias, noise), data)] for bias, noise in ROWS]
            for place, cell in enumerate(cells):
                _count(one, place + side, cell, color)
        _roots(one)
        _rows(one, [f"{bias}, {noise}" for bias, noise in ROWS])
        title(one, data)
        _say(one, "correct links of 100 (on the scale of roots)")
    _say(axes[0], "correct links of 100 (on the scale of roots)", "bias, noise")
    _legend(axes[0], [(WORDS[case], color) for case, color in COLORS.items()], (0.99, 0.16))
    _headline(
        figure,
        "Tables 2 and 3: published (circles; crossed outside), our mean (bar) and band (line) over files",
    )
    return save(figure, path)


def _count(axes: Axes, height: float, cell: Cell, color: str) -> None:
    if cell.low is not None and cell.high is not None:
        axes.plot([cell.low, cell.high], [height, height], color=color, linewidth=4, alpha=0.3)
    axes.plot(cell.ours, height, marker="|", color=color, markersize=9, markeredgewidth=1.6)
    published = float(cell.published or 0)
    axes.plot(published, height, "o", color=color, markerfacecolor="white", markersize=4.5, clip_on=False)
    if cell.within is False:
        axes.plot(published, height, "x", color=INK, markersize=7)


# The kernels.


def kernels(table: StudyTable, path: Path) -> Path:
    """Draw what each kernel finds, told and not told, with little and with much bias and noise."""
    figure, axes = panels(4, width=2.7, height=3.0)
    places = list(product(MOMENTS, (LEVELS[0], LEVELS[-1])))
    for one, (data, level) in zip(axes, places, strict=True):
        for height, kernel in enumerate(KERNELS):
            found = {case: table[named(f"{data}, {case}, {level}", kernel)].ours for case in COLORS}
            one.plot(list(found.values()), [height, height], color=GREY, linewidth=1, zorder=1)
            for (case, value), size in zip(found.items(), (8, 5), strict=True):
                one.plot(value, height, "o", color=COLORS[case], markersize=size)
        _roots(one)
        _rows(one, KERNELS)
        title(one, f"{data}, {level} bias and noise")
        _say(one, "correct links of 100 (roots)")
    _legend(axes[1], [(WORDS[case], color) for case, color in COLORS.items()], (0.99, 0.98))
    _headline(figure, "Whether secrecy of the parameters protects depends on the kernel")
    return save(figure, path)


# Thresholds.


def threshold(table: StudyTable, path: Path) -> Path:
    """Draw links made and correct ones by threshold for the intruder who was told."""
    figure, axes = panels(2, width=4.4, height=3.6)
    for one, data in zip(axes, MOMENTS, strict=True):
        ends = []
        for what, color in (("links", BLUE), ("correct", GREEN)):
            for case, style in (("d.1", "solid"), ("d.2", (0, (3, 2)))):
                at = SHOWN_AT[case]
                cells = [table[named(f"{case}, t {t:g}", f"{data} {what}")] for t in at]
                one.plot(at, [cell.ours for cell in cells], color=color, linewidth=1.6, linestyle=style)
                if case == "d.1" and all(cell.low is not None for cell in cells):
                    low, high = ([getattr(cell, side) for cell in cells] for side in ("low", "high"))
                    one.fill_between(at, low, high, color=color, alpha=0.15, linewidth=0)
            ends.append(what)
        one.set_xlim(0, 1)
        title(one, data)
        _say(one, "threshold t of the probability")
    axes[0].set_ylim(0, RECORDS)
    _say(axes[0], "threshold t of the probability", "of 100 targets")
    rows = [("links made", BLUE), ("correct ones", GREEN), ("solid: told (d.1); dashed: not told (d.2)", INK)]
    _legend(axes[0], rows)
    _headline(
        figure, "An intruder who makes a link only above t (minimum bias and noise, the paper's kernel)"
    )
    return save(figure, path)


# Helpers.


def helpers(table: StudyTable, path: Path) -> Path:
    """Draw the probability of the truth as the number of known units grows: of the figures the one that is no draw."""
    figure, (axes,) = panels(1, width=6.4, height=3.8)
    x, ends = [count + 1 for count in HELPERS], []
    for name, color in zip(KNOWING, (ORANGE, GREEN, BLUE), strict=True):
        heights = [table[named(f"L {count}", f"{name}, truth")].ours for count in HELPERS]
        axes.plot(x, heights, color=color, marker="o", markersize=4)
        ends.append((heights[-1], name, color))
    for height, (_, text, color) in zip(spread_out([end[0] for end in ends], 5), ends, strict=True):
        label(axes, (x[-1], height), text, color)
    axes.set_xscale("log")
    axes.set_xticks(x, [str(count) for count in HELPERS])
    axes.minorticks_off()
    axes.set_ylim(0, RECORDS)
    _say(
        axes,
        "L: other units he knows, not which records are theirs",
        "mean probability of the true record, %",
    )
    title(axes, f"What known units teach ({HELPED}, minimum bias and noise, the paper's kernel)")
    return save(figure, path)

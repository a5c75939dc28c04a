"""The pictures: the ranks of the true record, what telling the parameters gives away, and who was not released."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ...drawing import BLUE, GREY, INK, ORANGE, PINK, label, panels, save, spread_out, title
from ..plans import named
from ..results import Study, StudyTable, expected
from .file import RECORDS
from .simulation import KERNELS, SCENARIOS
from .tables import MASKED, ROWS

if TYPE_CHECKING:
    from matplotlib.axes import Axes

COLORS = dict(zip(SCENARIOS, (GREY, ORANGE, BLUE, PINK), strict=True))


def draw(study: Study, folder: Path) -> list[Path]:
    """Draw what the study has tables for, and return the files."""
    drawn = []
    if "ranks" in study:
        drawn.append(ranks(study["ranks"], folder / "ranks.png"))
    if "telling" in study:
        drawn.append(telling(study["telling"], folder / "telling.png"))
    return drawn


def ranks(table: StudyTable, path: Path) -> Path:
    """Draw how many true records are among the first so many, beside what the slides tell."""
    figure, (axes,) = panels(1, width=6.6, height=4.0)
    places = np.arange(1, len(ROWS))
    ends = []
    for name, color in COLORS.items():
        shares = np.cumsum([table[named(row, name)].ours for row in ROWS[:-1]]) / RECORDS * 100
        axes.plot(places, shares, color=color, marker="o", markersize=4)
        _published(axes, name, color)
        ends.append((float(shares[-1]), name, color))
    for height, (_, text, color) in zip(spread_out([end[0] for end in ends], 5), ends, strict=True):
        label(axes, (places[-1], height), text, color, xytext=(12, 0))
    axes.set_ylim(0, 110)
    axes.set_xticks(places)
    axes.set_xlabel("rank of the true record, at most", fontsize=8, color=INK)
    axes.set_ylabel("% of the records", fontsize=8, color=INK)
    title(axes, "Shape only: a synthetic file (lines) and what the slides tell of another (open circles)")
    return save(figure, path)


def _published(axes: Axes, name: str, color: str) -> None:
    published = expected("fienberg")["ranks"]
    first, beyond = (float(published.published(named(row, name)) or 0) for row in (ROWS[0], ROWS[-1]))
    heights = [100 * first / RECORDS, 100 * (1 - beyond / RECORDS)]
    axes.plot([1, 10], heights, "o", color=color, markerfacecolor="white", markersize=7, zorder=1)


def telling(table: StudyTable, path: Path) -> Path:
    """Draw how many are ranked first by each kernel, told and not told."""
    figure, axes = panels(len(MASKED), width=3.2, height=3.0)
    for one, name in zip(axes, MASKED, strict=True):
        for height, kernel in enumerate(KERNELS):
            told, secret = (table[named(f"{name}, {case}", kernel)].ours for case in ("told", "not told"))
            one.plot([told, secret], [height, height], color=GREY, linewidth=1, zorder=1)
            one.plot(told, height, "o", color=BLUE, markersize=8)
            one.plot(secret, height, "o", color=ORANGE, markersize=5)
        one.set_yticks(range(len(KERNELS)), KERNELS)
        one.set_ylim(len(KERNELS) - 0.5, -0.5)
        one.set_xlim(0, 1.08 * one.get_xlim()[1])
        one.tick_params(axis="y", length=0)
        one.spines["left"].set_visible(False)
        one.set_xlabel(f"ranked first, of {RECORDS}", fontsize=8, color=INK)
        title(one, name)
    place: dict[str, Any] = {"transform": axes[0].transAxes, "fontsize": 8, "ha": "left"}
    axes[0].text(0.03, 0.1, "told the parameters", color=BLUE, **place)
    axes[0].text(0.03, 0.03, "not told", color=ORANGE, **place)
    figure.suptitle(
        "What telling the parameters gives away (synthetic file)", x=0.01, ha="left", fontsize=10, color=INK
    )
    return save(figure, path)

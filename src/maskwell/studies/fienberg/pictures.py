"""The pictures: the ranks of the true record, what telling the parameters gives away, and who was not released."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ...figure_style import BLUE, GREY, INK, ORANGE, PINK, panels, save, title
from ..pictures import Picture, draw_all, headline, legend, name_ends, rows_down, say
from ..plans import cell_name
from ..results import Study, read_expected
from .file import RECORDS
from .simulation import KERNELS, SCENARIOS
from .tables import CASES, INSIDE, MASKED, OUT, ROWS

if TYPE_CHECKING:
    from matplotlib.axes import Axes

COLORS = dict(zip(SCENARIOS, (GREY, ORANGE, BLUE, PINK), strict=True))


def draw(study: Study, folder: Path) -> list[Path]:
    """Draw what the study has tables for, and return the files."""
    return draw_all(PICTURES, study, folder)


def ranks(study: Study, path: Path) -> Path:
    """Draw how many true records are among the first so many, beside what the slides tell."""
    figure, (axes,) = panels(1, width=6.6, height=4.0)
    places = np.arange(1, len(ROWS))
    ends = []
    for name, color in COLORS.items():
        shares = np.cumsum([study["ranks"][cell_name(row, name)].ours for row in ROWS[:-1]]) / RECORDS * 100
        axes.plot(places, shares, color=color, marker="o", markersize=4)
        _plot_published_ranks(axes, name, color)
        ends.append((float(shares[-1]), name, color))
    axes.set_xlim(0.7, 10.4)
    name_ends(axes, 10.4, ends, 5)
    axes.set_ylim(0, 105)
    axes.set_xticks(places)
    say(axes, "rank of the true record, at most", "% of the records")
    title(axes, "Shape only: a synthetic file (lines) and what the slides tell of another (open circles)")
    return save(figure, path)


def _plot_published_ranks(axes: Axes, name: str, color: str) -> None:
    published = read_expected("fienberg")["ranks"]
    first, beyond = (float(published.published(cell_name(row, name)) or 0) for row in (ROWS[0], ROWS[-1]))
    heights = [100 * first / RECORDS, 100 * (1 - beyond / RECORDS)]
    axes.plot([1, 10], heights, "o", color=color, markerfacecolor="white", markersize=7, zorder=3)


def draw_telling(study: Study, path: Path) -> Path:
    """Draw how many are ranked first by each kernel, told and not told."""
    figure, axes = panels(len(MASKED), width=3.2, height=3.0)
    for one, name in zip(axes, MASKED, strict=True):
        for height, kernel in enumerate(KERNELS):
            told, secret = (study["telling"][cell_name(f"{name}, {case}", kernel)].ours for case in CASES)
            one.plot([told, secret], [height, height], color=GREY, linewidth=1, zorder=1)
            one.plot(told, height, "o", color=BLUE, markersize=8)
            one.plot(secret, height, "o", color=ORANGE, markersize=5)
        rows_down(one, KERNELS)
        one.set_xlim(0, 1.08 * one.get_xlim()[1])
        say(one, f"ranked first, of {RECORDS} (mean over files)")
        title(one, name)
    axes[0].set_ylabel("kernel", fontsize=8, color=INK)
    legend(axes[0], [("told the parameters", BLUE), ("not told", ORANGE)], (0.03, 0.6))
    headline(figure, "Shape only: what telling the parameters gives away (synthetic file; scales differ)")
    return save(figure, path)


def draw_half_release(study: Study, path: Path) -> Path:
    """Draw what he thinks of those who were not released and of those who were, where half of the file was."""
    figure, axes = panels(len(CASES), width=4.2, height=3.0)
    for one, case in zip(axes, CASES, strict=True):
        for height, name in enumerate(MASKED):
            out, inside = (
                study["sampled"][cell_name(f"{name}, {case}, fms", column)].ours for column in (OUT, INSIDE)
            )
            one.plot([out, inside], [height, height], color=GREY, linewidth=1, zorder=1)
            one.plot(out, height, "o", color=ORANGE, markersize=8)
            one.plot(inside, height, "o", color=BLUE, markersize=5)
        rows_down(one, MASKED)
        one.set_xlim(0, 100)
        say(one, 'mean probability of "not released", % (kernel fms)')
        title(one, case)
    legend(axes[0], [("those not released", ORANGE), ("those released", BLUE)])
    headline(figure, "Shape only: half of the file released, and whom he thinks left out (synthetic file)")
    return save(figure, path)


PICTURES: dict[str, Picture] = {
    "ranks.png": (("ranks",), ranks),
    "telling.png": (("telling",), draw_telling),
    "sampled.png": (("sampled",), draw_half_release),
}

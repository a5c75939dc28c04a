"""The pictures of Trottini's study: the 36 counts, the kernels, the thresholds, and the helpers."""

from __future__ import annotations

from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ...figure_style import BLUE, GREEN, GREY, INK, ORANGE, panels, save, title
from ..pictures import Picture, draw_all, headline, legend, name_ends, rows_down, say, shade
from ..plans import cell_name
from ..results import Study, TableCell, band_name
from .simulation import LEVELS, MOMENTS, RECORDS
from .tables import HELPED, HELPERS, KERNELS, KNOWING, SHOWN_AT, amounts

if TYPE_CHECKING:
    from matplotlib.axes import Axes

COLORS = {"d.1": BLUE, "d.2": ORANGE}
WORDS = {"d.1": "told the parameters (d.1)", "d.2": "not told (d.2)"}
IN_COLORS = [(WORDS[case], color) for case, color in COLORS.items()]
TICKS = (0, 1, 5, 10, 20, 40, 60, 80, 100)
FEWER_TICKS = (0, 1, 5, 20, 50, 100)
ROWS = [(bias, noise) for bias, noise in product(LEVELS, LEVELS)]
DASHES: dict[str, Any] = {"d.1": "solid", "d.2": (0, (3, 2))}


def draw(study: Study, folder: Path) -> list[Path]:
    """Draw what the study has tables for, and return the files."""
    return draw_all(PICTURES, study, folder)


def _roots(axes: Axes, ticks: tuple[int, ...]) -> None:
    """Scale counts by their roots, so that small ones can be told apart."""
    axes.set_xscale("function", functions=(lambda v: np.sqrt(np.maximum(v, 0)), np.square))
    axes.set_xlim(0, RECORDS)
    axes.set_xticks(ticks, [str(tick) for tick in ticks])


# Tables 2 and 3.


def counts(study: Study, path: Path) -> Path:
    """Draw the published counts on our bands; those outside are crossed."""
    figure, axes = panels(2, width=5.0, height=4.6)
    for one, data in zip(axes, MOMENTS, strict=True):
        for color, name, side in zip(COLORS.values(), ("2", "3"), (-0.17, 0.17), strict=True):
            cells = [study[name][cell_name(amounts(bias, noise), data)] for bias, noise in ROWS]
            for place, cell in enumerate(cells):
                _count(one, place + side, cell, color)
        _roots(one, TICKS)
        rows_down(one, [f"{bias}, {noise}" for bias, noise in ROWS])
        title(one, data)
        say(one, "correct links of 100 (root scale)")
    axes[0].set_ylabel("bias, noise", fontsize=8, color=INK)
    legend(axes[0], IN_COLORS, (0.99, 0.16), "right")
    kind = band_name(study["2"].cells)
    band = f" and {'5-95% band' if kind == '5-95%' else kind} (line)" if kind else ""
    headline(figure, f"Tables 2 and 3: published (circles; crossed outside), our mean (bar){band} over files")
    return save(figure, path)


def _count(axes: Axes, height: float, cell: TableCell, color: str) -> None:
    if cell.low is not None and cell.high is not None:
        axes.plot([cell.low, cell.high], [height, height], color=color, linewidth=4, alpha=0.3)
    axes.plot(cell.ours, height, marker="|", color=color, markersize=9, markeredgewidth=1.6)
    published = float(cell.published or 0)
    axes.plot(published, height, "o", color=color, markerfacecolor="white", markersize=4.5, clip_on=False)
    if cell.within is False:
        axes.plot(published, height, "x", color=INK, markersize=7, clip_on=False)


# The kernels.


def kernels(study: Study, path: Path) -> Path:
    """Draw what each kernel finds, told and not told, with little and with much bias and noise."""
    figure, axes = panels(4, width=2.7, height=3.0)
    places = list(product(MOMENTS, (LEVELS[0], LEVELS[-1])))
    for one, (data, level) in zip(axes, places, strict=True):
        for height, kernel in enumerate(KERNELS):
            found = {
                case: study["kernels"][cell_name(f"{data}, {case}, {level}", kernel)].ours for case in COLORS
            }
            one.plot(list(found.values()), [height, height], color=GREY, linewidth=1, zorder=1)
            for (case, value), size in zip(found.items(), (8, 5), strict=True):
                one.plot(value, height, "o", color=COLORS[case], markersize=size)
        _roots(one, FEWER_TICKS)
        rows_down(one, KERNELS)
        title(one, f"{data}, {level} bias and noise")
        say(one, "correct links of 100 (root scale)")
    axes[0].set_ylabel("kernel", fontsize=8, color=INK)
    legend(axes[1], IN_COLORS, (0.99, 0.6), "right")
    headline(figure, "Whether secrecy of the parameters protects depends on the kernel (means over files)")
    return save(figure, path)


# Thresholds.


def threshold(study: Study, path: Path) -> Path:
    """Draw links made and correct ones by threshold for the intruder who was told, and for him who was not."""
    figure, axes = panels(2, width=4.4, height=3.6)
    for one, data in zip(axes, MOMENTS, strict=True):
        for what, color in (("links", BLUE), ("correct", GREEN)):
            for case, dashes in DASHES.items():
                at = SHOWN_AT[case]
                cells = [study["threshold"][cell_name(f"{case}, t {t:g}", f"{data} {what}")] for t in at]
                one.plot(at, [cell.ours for cell in cells], color=color, linewidth=1.6, linestyle=dashes)
                if case == "d.1":
                    shade(one, at, cells, color)
        one.set_xlim(0, 1)
        one.set_ylim(0, RECORDS)
        title(one, data)
        say(one, "threshold t of the probability")
    axes[0].set_ylabel("of 100 targets", fontsize=8, color=INK)
    kind = band_name(study["threshold"].cells)
    shaded = [(f"shaded: {kind} of the files, told", INK)] if kind else []
    rows = [
        ("links made", BLUE),
        ("correct ones", GREEN),
        ("solid: told (d.1)", INK),
        ("dashed: not told (d.2)", INK),
    ]
    legend(axes[0], [*rows, *shaded], (0.97, 0.97), "right")
    headline(figure, "An intruder who makes a link only above t (minimum bias and noise, the paper's kernel)")
    return save(figure, path)


# Helpers.


def helpers(study: Study, path: Path) -> Path:
    """Draw the probability of the truth as the number of known units grows: of the figures the one that is no draw."""
    figure, (axes,) = panels(1, width=6.4, height=3.8)
    x, ends = [count + 1 for count in HELPERS], []
    for name, color in zip(KNOWING, (ORANGE, GREEN, BLUE), strict=True):
        cells = [study["helpers"][cell_name(f"L {count}", name)] for count in HELPERS]
        axes.plot(x, [cell.ours for cell in cells], color=color, marker="o", markersize=4)
        shade(axes, x, cells, color)
        ends.append((cells[-1].ours, name, color))
    name_ends(axes, x[-1], ends, 5)
    axes.set_xscale("log")
    axes.set_xticks(x, [str(count) for count in HELPERS])
    axes.minorticks_off()
    axes.set_ylim(0, RECORDS)
    kind = band_name(study["helpers"].cells)
    say(
        axes,
        "L: other units he knows, not which records are theirs (scale of log(L + 1))",
        f"probability of the true record, %\n(mean{f' and {kind}' if kind else ''} over files)",
    )
    title(axes, f"What known units teach ({HELPED}, minimum bias and noise, the paper's kernel)")
    return save(figure, path)


PICTURES: dict[str, Picture] = {
    "counts.png": (("2", "3"), counts),
    "kernels.png": (("kernels",), kernels),
    "threshold.png": (("threshold",), threshold),
    "helpers.png": (("helpers",), helpers),
}

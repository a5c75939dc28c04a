"""The pictures of Moore's study: table 4 as curves, the fine sweep with its prediction, swapping before and after."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ...figure_style import BLUE, GREEN, GREY, INK, ORANGE, PINK, label, panels, save, title
from ..pictures import Picture, draw_all, headline, shade
from ..results import BETWEEN, Study, StudyTable, TableCell, band_name, read_expected
from .matching import published_rows, rows_of_table_4
from .simulation import FIELDS

if TYPE_CHECKING:
    from matplotlib.axes import Axes

COLORS = {"correct": BLUE, "incorrect": ORANGE, "questionable": GREEN, "false": PINK}
DASHES = (0, (3, 2))


def draw(study: Study, folder: Path) -> list[Path]:
    """Draw what the study has tables for, and return the files."""
    return draw_all(PICTURES, study, folder)


def _with_band(words: str, cells: Sequence[TableCell]) -> str:
    """Say how ours is drawn, and what its band is."""
    return ", ".join(text for text in (words, band_name(cells)) if text)


# Table 4.


def table_4_curves(study: Study, path: Path) -> Path:
    """Draw the classes of the links against c: published dashed, ours solid with its band."""
    table = study["4"]
    figure, axes = panels(2, width=4.6, height=4.0, share_y=False)
    _curves(axes[0], table, ("correct", "incorrect"))
    _curves(axes[1], table, ("questionable", "false"))
    title(axes[0], "all five fields agree: re-identifications")
    title(axes[1], "one field disagrees (questionable), or more (false)")
    axes[0].set_ylabel("links of the 771 targets", fontsize=8, color=INK)
    headline(
        figure,
        "Moore's table 4: published (dashed), and on the survey made to resemble it "
        f"({_with_band('solid', table.cells)})",
    )
    return save(figure, path)


def _curves(axes: Axes, table: StudyTable, names: Sequence[str]) -> None:
    c = [factors[1] for factors in rows_of_table_4().values()]
    for name in names:
        cells = [table[f"{row}{BETWEEN}{name}"] for row in table.rows]
        published = [float(one.published or 0) for one in cells]
        axes.plot(c, published, color=COLORS[name], linestyle=DASHES, linewidth=1.2)
        axes.plot(c, [one.ours for one in cells], color=COLORS[name], linewidth=1.8)
        shade(axes, c, cells, COLORS[name])
    axes.set_ylim(0, None)
    _name_ends(axes, table, names, c[-1])
    _log_axis(axes)


def _name_ends(axes: Axes, table: StudyTable, names: Sequence[str], last: float) -> None:
    """Label the ends of the lines at the right."""
    ends = [table[f"{table.rows[-1]}{BETWEEN}{name}"] for name in names]
    for name, one in zip(names, ends, strict=True):
        height = (one.ours + float(one.published or 0)) / 2
        label(axes, (last, height), name, COLORS[name])


def _log_axis(axes: Axes) -> None:
    ticks = (0.07, 0.1, 0.2, 0.3, 0.5, 1, 3)
    axes.set_xscale("log")
    axes.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
    axes.set_xticks([], minor=True)
    axes.set_xlabel("c: sd of the noise, as a share of the field's (log scale)", fontsize=8, color=INK)


# The sweep.


def fine_sweep(study: Study, path: Path) -> Path:
    """Draw simulated and predicted correct links along c, with the published rows that fall inside."""
    table = study["sweep"]
    figure, (axes,) = panels(1, width=6.4, height=4.2)
    c = [float(row.split()[-1]) for row in table.rows]
    lines = {name: [table[f"{row}{BETWEEN}{name}"] for row in table.rows] for name in table.columns}
    simulated, predicted, agreeing = lines.values()
    shade(axes, c, simulated, BLUE)
    axes.plot(c, [one.ours for one in simulated], "o", color=BLUE, markersize=3.5)
    axes.plot(c, [one.ours for one in predicted], color=INK, linewidth=1.2)
    axes.plot(c, [one.ours for one in agreeing], color=GREY, linewidth=1.2)
    ends = [
        (f"correct links: predicted (line)\nand simulated ({_with_band('dots', simulated)})", predicted, BLUE)
    ]
    ends.append(("true record agrees,\nbefore ties are shared", agreeing, GREY))
    for text, cells, color in ends:
        label(axes, (c[-1], cells[-1].ours), text, color)
    _published_points(axes, c)
    _his_values(axes)
    axes.set_xlabel("c: sd of the noise, as a share of the field's", fontsize=8, color=INK)
    axes.set_ylabel("of the 771 targets", fontsize=8, color=INK)
    title(axes, "R0 from 0.999 to 0.975 in steps of 0.001: a smooth fall that theory predicts")
    return save(figure, path)


def _published_points(axes: Axes, c: Sequence[float]) -> None:
    places = [(x, row["correct"]) for x, row in published_rows().items() if x <= max(c) + 1e-3]
    axes.plot(*zip(*places, strict=True), "o", color=ORANGE, markerfacecolor="white", markersize=6)
    label(axes, places[0], "published (table 4)", ORANGE, xytext=(0, -12), ha="right")


def _his_values(axes: Axes) -> None:
    """Mark at the foot where single fields are said to stop masking."""
    cells = read_expected("moore")["5"]
    values = {name: float(cells.published(f"{name} | c") or 0) for name in FIELDS}
    low, high = axes.get_xlim()
    inside = {name: value for name, value in values.items() if low < value < high}
    axes.set_ylim(0, None)
    for value in inside.values():
        axes.axvline(value, ymax=0.06, color=INK, linewidth=0.8)
    first = min(inside.values())
    text = f"Moore's c of {', '.join(sorted(inside, key=inside.__getitem__))}"
    label(axes, (first, 0), text, INK, xytext=(-5, 8), ha="right")


# Swapping.


def before_and_after(study: Study, path: Path) -> Path:
    """Draw how far swapping moves correct and incorrect links, for each tolerance."""
    table = study["swapping"]
    figure, (axes,) = panels(1, width=7.0, height=3.4)
    rows = table.rows[::-1]
    for place, row in enumerate(rows):
        _moves(axes, table, row, place)
    swaps = [f"{row}\n{table[f'{row}{BETWEEN}swaps made'].ours:.1f} swaps" for row in rows]
    axes.set_yticks(range(len(rows)), swaps)
    axes.set_ylim(-0.5, len(rows) - 0.6)
    axes.set_xlim(0, None)
    axes.spines["left"].set_visible(False)
    axes.tick_params(axis="y", length=0)
    axes.set_xlabel("links (open circle: before, filled: after)", fontsize=8, color=INK)
    title(axes, "Swapping at c = 0.1005 on the built-in survey")
    return save(figure, path)


def _moves(axes: Axes, table: StudyTable, row: str, place: int) -> None:
    for name, lift in (("correct", 0.14), ("incorrect", -0.14)):
        before, after = (table[f"{row}{BETWEEN}{name} {when}"].ours for when in ("before", "after"))
        height, color = place + lift, COLORS[name]
        axes.plot([before, after], [height, height], color=color, linewidth=1.5)
        axes.plot(before, height, "o", color=color, markerfacecolor="white", markersize=7, clip_on=False)
        axes.plot(after, height, "o", color=color, markersize=5, clip_on=False)
        right = max(before, after)
        label(axes, (right, height), f"{name} {before:.1f} to {after:.1f}", color)


PICTURES: dict[str, Picture] = {
    "table_4.png": (("4",), table_4_curves),
    "sweep.png": (("sweep",), fine_sweep),
    "swapping.png": (("swapping",), before_and_after),
}

"""What the pictures of several studies do alike: which are drawn, headlines, axes, bands, and names in colours."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..figure_style import INK, label, spread_out
from .results import Study, TableCell

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Picture = tuple[tuple[str, ...], Callable[[Study, Path], Path]]  # the tables it needs, and what draws it
LINE = 12.5  # points from one line of a legend to the next


def draw_all(pictures: Mapping[str, Picture], study: Study, folder: Path) -> list[Path]:
    """Draw the pictures, by the names of their files, for which the study has the tables."""
    return [
        draw(study, folder / name)
        for name, (needs, draw) in pictures.items()
        if all(table in study for table in needs)
    ]


def headline(figure: Figure, text: str) -> None:
    """Write what the whole figure is about, at its left."""
    figure.suptitle(text, x=0.01, ha="left", fontsize=10, color=INK)


def say(axes: Axes, x: str = "", y: str = "") -> None:
    """Write what the axes are."""
    axes.set_xlabel(x, fontsize=8, color=INK)
    if y:
        axes.set_ylabel(y, fontsize=8, color=INK)


def shade(axes: Axes, x: Sequence[float], cells: Sequence[TableCell], color: str) -> None:
    """Shade the band of some cells, where all have one."""
    if all(one.low is not None for one in cells):
        low, high = ([getattr(one, side) for one in cells] for side in ("low", "high"))
        axes.fill_between(x, low, high, color=color, alpha=0.18, linewidth=0)


def legend(
    axes: Axes, rows: Sequence[tuple[str, str]], place: tuple[float, float] = (0.03, 0.97), side: str = "left"
) -> None:
    """Write names in the colours of their lines, from a place of the panel down; `side` of them is at the place."""
    for i, (text, color) in enumerate(rows):
        where: dict[str, Any] = {"xycoords": "axes fraction", "textcoords": "offset points"}
        axes.annotate(text, place, xytext=(0, -LINE * i), color=color, fontsize=8, va="top", ha=side, **where)


def name_ends(axes: Axes, x: float, ends: Sequence[tuple[float, str, str]], apart: float) -> None:
    """Name lines at the right of where they end: height, name and colour of each; names are so far apart."""
    for height, (_, text, color) in zip(spread_out([one[0] for one in ends], apart), ends, strict=True):
        label(axes, (x, height), text, color)


def rows_down(axes: Axes, names: Sequence[str]) -> None:
    """Name rows from the top down, without an axis."""
    axes.set_yticks(range(len(names)), list(names))
    axes.set_ylim(len(names) - 0.5, -0.6)
    axes.tick_params(axis="y", length=0)
    axes.spines["left"].set_visible(False)

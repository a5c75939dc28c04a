"""How pictures look: plain axes, labels at the lines, colours that everybody can tell apart."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .errors import BadPlan, CannotWrite

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Okabe and Ito's colours: safe for the colour-blind.
BLUE, ORANGE, GREEN, PINK, SKY = "#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9"
GREY, INK, SHADE = "#757575", "#333333", "#F0F0F0"


def panels(
    columns: int, *, width: float = 4.0, height: float = 3.6, share_y: bool = True
) -> tuple[Figure, list[Axes]]:
    """Return a figure with panels side by side, and the panels."""
    if find_spec("matplotlib") is None:
        raise BadPlan("pictures need matplotlib, which is not installed: pip install 'maskwell[plot]'")
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width * columns, height), dpi=150, layout="constrained")
    grid = figure.subplots(1, columns, squeeze=False, sharey=share_y)
    axes = list(grid[0])
    for one in axes:
        plain(one)
    return figure, axes


def plain(axes: Axes) -> None:
    """Leave the axes that are read, and nothing else."""
    axes.spines[["top", "right"]].set_visible(False)
    axes.spines[["left", "bottom"]].set_color(GREY)
    axes.tick_params(which="both", colors=INK, labelsize=8, color=GREY)


def title(axes: Axes, text: str) -> None:
    """Write a panel's title at its left."""
    axes.set_title(text, loc="left", fontsize=9, color=INK)


def label(axes: Axes, place: tuple[float, float], text: str, color: str, **options: Any) -> None:
    """Write a label in a line's colour, a little to the right of a point of it."""
    given: dict[str, Any] = {"va": "center", "fontsize": 8, "xytext": (6, 0)} | options
    axes.annotate(text, place, textcoords="offset points", color=color, annotation_clip=False, **given)


def spread_out(heights: Sequence[float], apart: float) -> list[float]:
    """Return heights for labels that do not overlap, near to those given."""
    order = sorted(range(len(heights)), key=lambda i: heights[i])
    out = list(heights)
    for below, above in pairwise(order):
        out[above] = max(out[above], out[below] + apart)
    return out


KINDS = {".png": {"Software": None}, ".svg": {"Date": None}, ".pdf": {"CreationDate": None}}


def check_picture(path: str | Path) -> Path:
    """Refuse, before any work, what is no file of a picture or cannot be written."""
    if not isinstance(path, str | Path) or Path(path).suffix.lower() not in KINDS:
        raise BadPlan(f"a picture is a file that ends in .png, .svg or .pdf, and not {str(path)!r}")
    if not Path(path).parent.is_dir():
        raise CannotWrite(f"{str(path)!r} cannot be written: there is no such folder")
    return Path(path)


def save(figure: Figure, path: str | Path) -> Path:
    """Write a picture; the same figure gives the same bytes."""
    file = check_picture(path)
    try:
        figure.savefig(file, metadata=KINDS[file.suffix.lower()])
    except OSError as error:
        raise CannotWrite(f"{str(path)!r} cannot be written: {error.strerror}") from None
    return file

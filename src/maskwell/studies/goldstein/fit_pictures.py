"""The pictures of the analyses: what each way of fitting is off by, the pupils, the farms, and a logistic model."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...figure_style import BLUE, GREEN, GREY, INK, ORANGE, PINK, panels, save, title
from ..pictures import Picture, headline, legend, rows_down, say
from ..plans import cell_name
from ..results import Study, StudyTable, TableCell, band_name
from .analyses import ERROR, ON_ALL, ON_PREDICTORS, SKEWS
from .farms import Farms
from .files import MixedPredictors, Outcomes
from .models import ADJUSTED, FLAT, HASTINGS, NAIVE, ORIGINAL, PRINTED

if TYPE_CHECKING:
    from matplotlib.axes import Axes

COLORS = {ORIGINAL: INK, NAIVE: ORANGE, ADJUSTED: BLUE, FLAT: PINK, HASTINGS: GREEN, PRINTED: PINK}
SYMBOLS = {
    "beta": "β",
    "sigma^2": "σ²",
    "sigma": "σ",
    "_0": "₀",
    "_1": "₁",
    "_2": "₂",
    "_3": "₃",
    "_e^2": "ₑ²",
    "_u^2": "ᵤ²",
}
WHOLE = 95.0


def _symbol(row: str) -> str:
    """Write a parameter as in the paper."""
    for plain, symbol in SYMBOLS.items():
        row = row.replace(plain, symbol)
    return row


def _dot(axes: Axes, cell: TableCell, height: float, color: str, marker: str = "o") -> None:
    """Draw our figure with its band, and the published one as an open mark."""
    if cell.low is not None and cell.high is not None:
        axes.plot([cell.low, cell.high], [height, height], color=color, linewidth=1.3, alpha=0.55)
    axes.plot(cell.ours, height, marker, color=color, markersize=5.5)
    if cell.published is not None:
        open_mark: dict[str, Any] = {"markerfacecolor": "none", "markeredgecolor": INK, "markersize": 8}
        axes.plot(cell.published, height, marker, markeredgewidth=0.9, **open_mark)


def _zero(axes: Axes, at: float) -> None:
    axes.axvline(at, color=GREY, linewidth=0.8, zorder=0)


def _band_caption(cells: Sequence[TableCell]) -> str:
    name = band_name(cells)
    return f"; lines: {name}" if name else ""


# Table 4.

WAYS_4 = (NAIVE, ADJUSTED)
WAYS_H = (ADJUSTED, HASTINGS, PRINTED)


def table_4_ways(study: Study, path: Path) -> Path:
    """Draw by how much fits are off, how many intervals contain the parameter, and the paper's sampler."""
    figure, axes = panels(3, width=4.0, height=3.7)
    for place, row in enumerate(MixedPredictors.model.rows):
        for way, height in zip(WAYS_4, (place - 0.12, place + 0.12), strict=True):
            _dot(axes[0], study["4-paired"][cell_name(row, way)], height, COLORS[way])
            share = study["4-intervals"][cell_name(row, way)].ours
            axes[1].plot(share, height, "o", color=COLORS[way], markersize=5.5)
        for way, height in zip(WAYS_H, (place - 0.2, place, place + 0.2), strict=True):
            _dot(axes[2], study["4-hastings"][cell_name(row, way)], height, COLORS[way])
    for one, at in zip(axes, (0.0, WHOLE, 1.0), strict=True):
        rows_down(one, [_symbol(row) for row in MixedPredictors.model.rows])
        _zero(one, at)
    axes[1].set_xlim(-3, 103)
    legend(axes[1], [(way, COLORS[way]) for way in WAYS_4])
    legend(axes[2], [(way, COLORS[way]) for way in WAYS_H[1:]], (0.99, 0.97), "right")
    _words_4(axes, study)
    headline(
        figure,
        "Table 4: with the noise in mind estimates are right; (A3) as printed, without Hastings, is not",
    )
    return save(figure, path)


def _words_4(axes: Sequence[Axes], study: Study) -> None:
    title(axes[0], f"less the original fit{_band_caption(study['4-paired'].cells)}")
    title(axes[1], "intervals of 95% with the parameter")
    title(axes[2], f"the paper's sampler{_band_caption(study['4-hastings'].cells)}")
    say(axes[0], "estimate less that of the same original file")
    say(axes[1], "% of files")
    say(axes[2], "estimate (all parameters are 1)")


# Table 5.

WAYS_5 = {ORIGINAL: "original", NAIVE: "not adjusted", FLAT: "adjusted, flat", ADJUSTED: "adjusted, schools"}


def pupils(study: Study, path: Path) -> Path:
    """Draw both slopes of the pupils' model by the way of fitting; published figures are open circles."""
    figure, axes = panels(2, width=4.6, height=2.9)
    table = study["5"]
    for one, (row, name) in zip(axes, (("beta_1", "β₁, reading test"), ("beta_2", "β₂, girls")), strict=True):
        for place, way in enumerate(WAYS_5):
            _dot(one, table[cell_name(row, way)], place, COLORS[way])
        _zero(one, table[cell_name(row, ORIGINAL)].ours)
        rows_down(one, list(WAYS_5.values()))
        title(one, name)
        say(one, f"estimate{_band_caption(table.cells)}")
    headline(
        figure, "Pupils (circles: published, one draw of noise): the covariate model needs the schools too"
    )
    return save(figure, path)


# Tables 6a and 6b.

KINDS_6 = {"6a": (BLUE, "noise on predictors"), "6b": (ORANGE, "noise on predictors and response")}


def farm_fits(study: Study, path: Path) -> Path:
    """Draw the slope of the harvest, its error and the residual variance by noise, for both tables."""
    slope = Farms.model.rows[2]
    rows = {
        slope: "slope of the harvest x 1,000",
        f"{ERROR}{slope}": "its standard error",
        "sigma^2": "residual variance",
    }
    figure, axes = panels(3, width=3.5, height=3.6)
    for one, (row, name) in zip(axes, rows.items(), strict=True):
        _farm_panel(one, [study[table] for table in KINDS_6], row)
        rows_down(one, study["6a"].columns)
        title(one, name)
        say(one, "circles: published, other farms")
    legend(axes[2], [(text, color) for color, text in KINDS_6.values()], (0.99, 0.97), "right")
    headline(
        figure,
        f"Farms: correlated noise, not adjusted, and independent noise, adjusted{_band_caption(study['6a'].cells)}",
    )
    return save(figure, path)


def _farm_panel(axes: Axes, tables: Sequence[StudyTable], row: str) -> None:
    for table, (color, _), shift in zip(tables, KINDS_6.values(), (-0.14, 0.14), strict=True):
        for place, column in enumerate(table.columns):
            _dot(axes, table[cell_name(row, column)], place + shift, color)
    _zero(axes, tables[0][cell_name(row, ORIGINAL)].ours)


# The logistic model.

WAYS_L = {
    ORIGINAL: (INK, "original"),
    ON_PREDICTORS: (ORANGE, "correlated noise on predictors"),
    ON_ALL: (PINK, "correlated noise on all"),
    ADJUSTED: (BLUE, "on predictors, adjusted"),
}


def logistic(study: Study, path: Path) -> Path:
    """Draw the slopes of the logistic model by noise and way of fitting."""
    figure, axes = panels(2, width=4.6, height=2.9)
    table, slopes = study["logistic"], Outcomes.model.rows[1:]
    for one, kind in zip(axes, SKEWS, strict=True):
        for place, (column, (color, _)) in enumerate(WAYS_L.items()):
            for row, shift, marker in zip(slopes, (-0.12, 0.12), ("o", "s"), strict=True):
                _dot(one, table[cell_name(f"{kind}, {row}", column)], place + shift, color, marker)
        _zero(one, 1.0)
        rows_down(one, [text for _, text in WAYS_L.values()])
        title(one, kind)
        say(one, f"slopes (circle β₁, square β₂){_band_caption(table.cells)}")
    headline(figure, "A logistic model: noise that keeps the covariances is not enough")
    return save(figure, path)


FIT_PICTURES: dict[str, Picture] = {
    "table_4.png": (("4-paired", "4-intervals", "4-hastings"), table_4_ways),
    "pupils.png": (("5",), pupils),
    "farm_fits.png": (("6a", "6b"), farm_fits),
    "logistic.png": (("logistic",), logistic),
}

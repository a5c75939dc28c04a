"""The pictures of Hawala's study: the noise, the risk by CV, and the intruders by d."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ...figure_style import BLUE, GREEN, GREY, INK, ORANGE, PINK, label, panels, save, title
from ...masking import Setting
from ...masks import IndependentNoise
from ...table import Floats
from ..pictures import Picture, draw_all, headline, name_ends, say, shade
from ..results import BETWEEN, Study, StudyTable, read_expected
from .statements import INFORMED, MATCHER, NEAREST, NORMAL
from .study import CVS, FIELDS, C, D, mixture, simulate_variables

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def draw(study: Study, folder: Path) -> list[Path]:
    """Draw what the study has tables for, and return the files."""
    return draw_all(PICTURES, study, folder)


# The noise.


def densities(_: Study, path: Path) -> Path:
    """Draw the densities of the noise for 2, 3 and 7 components."""
    figure, axes = panels(3, width=3.2, height=3.0)
    noise = np.linspace(-1.7, 1.7, 681)
    for one, k in zip(axes, (2, 3, 7), strict=True):
        _densities(one, k, noise)
        title(one, f"{k} components")
        say(one, "noise, in sds of the variable")
    axes[0].set_ylabel("density", fontsize=8, color=INK)
    axes[0].set_ylim(0, None)
    headline(figure, f"Noise of one variance (d = {D:g} of the variable's; c = {C:g} within components)")
    return save(figure, path)


def _densities(axes: Axes, k: int, noise: Floats) -> None:
    symmetric = _density(mixture(k), noise)
    normal = _density(IndependentNoise(FIELDS[:1], variance_ratio=D), noise)
    axes.plot(noise, normal, color=GREY, linewidth=1.0)
    axes.plot(noise, symmetric, color=BLUE, linewidth=1.8)
    _label_at(
        axes, noise, symmetric, int(np.argmax(symmetric >= 0.97 * symmetric.max())), "symmetric", BLUE, -1
    )
    if k == 2:
        _label_at(axes, noise, normal, int(np.argmin(np.abs(noise - 0.95))), "normal", GREY, 1)
        return
    asymmetric = _density(mixture(k, symmetric=False), noise)
    axes.plot(noise, asymmetric, color=ORANGE, linewidth=1.8)
    _label_at(axes, noise, asymmetric, int(np.argmax(asymmetric)), "asymmetric", ORANGE, 1)


def _label_at(axes: Axes, noise: Floats, density: Floats, at: int, name: str, color: str, side: int) -> None:
    """Label a line at one of its points, to the right (1) or to the left (-1) of it."""
    place = (float(noise[at]), float(density[at]))
    label(axes, place, name, color, xytext=(6 * side, 3), ha="left" if side > 0 else "right")


def _density(mask: Any, noise: Floats) -> Floats:
    """Return the density of the noise, read off the law on the card, on the scale of the variable's sd."""
    table = simulate_variables(np.random.default_rng(0).standard_normal((len(FIELDS), 1000)), 1.0)
    law = replace(mask, columns=FIELDS[:1]).card(table, Setting(exact=True)).laws[0]
    sd = float(np.sqrt(law.noise.covariance[0, 0] / D))
    released = (noise * sd)[:, None]
    return np.asarray(sd * np.exp(law.logpdf(released, np.zeros_like(released))))


# The risk by CV.


def risk_by_cv(study: Study, path: Path) -> Path:
    """Draw published and our rates by CV: the two shapes have little in common, and the picture shows it."""
    figure, axes = panels(2, width=4.4)
    for one, name in zip(axes, ("1", "2"), strict=True):
        _by_cv(one, study[name])
        one.set_xscale("log")
        one.set_xticks(CVS, [f"{cv:g}" for cv in CVS])
        one.minorticks_off()
        say(one, "coefficient of variation of the data (sd/mean)")
    title(axes[0], "three components")
    title(axes[1], "symmetric noise")
    axes[0].set_ylabel("records re-identified, %", fontsize=8, color=INK)
    axes[0].set_ylim(0, None)
    headline(figure, "Published rates (dashed) and those of the matcher that reproduces table 3 (solid)")
    return save(figure, path)


def _by_cv(axes: Axes, table: StudyTable) -> None:
    x = [_number(row) for row in table.rows]
    ends, tops = [], []
    dashes: dict[str, Any] = {"linestyle": (0, (3, 2)), "markerfacecolor": "white"}
    for column, color in zip(table.columns, (BLUE, ORANGE), strict=True):
        cells = [table[f"{row}{BETWEEN}{column}"] for row in table.rows]
        published, ours = [float(one.published or 0) for one in cells], [one.ours for one in cells]
        axes.plot(x, published, color=color, marker="o", markersize=4, **dashes)
        axes.plot(x, ours, color=color, marker="o", markersize=4)
        tops.append(max(zip(published, x, strict=True)))
        ends.append((ours[-1], f"{column}, ours", color))
    height, place = max(tops)
    label(axes, (place, height), "published", INK)
    name_ends(axes, x[-1], ends, 1.3)


def _number(row: str) -> float:
    return float(row.split()[-1])


# The intruders by d.


def intruders_by_d(study: Study, path: Path) -> Path:
    """Draw what each intruder finds as the variance of the noise grows."""
    figure, (axes,) = panels(1, width=6.4, height=4.2)
    table = study["informed"]
    x = [_number(row) for row in table.rows]
    colors = {INFORMED: ORANGE, NORMAL: GREEN, NEAREST: PINK, MATCHER: BLUE}
    words = {INFORMED: "knows the mixture", NORMAL: "knows plain normal noise\nof the same variance"}
    for column, color in colors.items():
        cells = [table[f"{row}{BETWEEN}{column}"] for row in table.rows]
        axes.plot(x, [one.ours for one in cells], color=color, marker="o", markersize=4)
        shade(axes, x, cells, color)
        label(axes, (x[-1], cells[-1].ours), words.get(column, column), color)
    _plot_published_rates(axes)
    axes.set_ylim(0, 100)
    say(axes, "d: variance of the noise, as a share of the variable's", "records re-identified, %")
    title(
        axes,
        f"More noise d hardly hinders an intruder who knows the mixture\n(CV = 1, two components, c = {C:g})",
    )
    return save(figure, path)


def _plot_published_rates(axes: Axes) -> None:
    cells = read_expected("hawala")["3"].cells
    places = [(_number(cell), float(value)) for cell, value in cells.items()]
    axes.plot(*zip(*places, strict=True), "o", color=INK, markerfacecolor="white", markersize=6, zorder=1)
    label(axes, places[1], "published (table 3)", INK, xytext=(4, 9))


PICTURES: dict[str, Picture] = {
    "noise_densities.png": ((), densities),
    "risk_by_cv.png": (("1", "2"), risk_by_cv),
    "intruders_by_d.png": (("informed",), intruders_by_d),
}

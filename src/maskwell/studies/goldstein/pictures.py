"""The pictures: the curves of h by decile, table 2, what knowing the noise is worth, the farms; and the analyses."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...figure_style import BLUE, GREEN, GREY, INK, ORANGE, PINK, label, panels, save, title
from ..pictures import Picture, draw_all, headline, legend, name_ends, say, shade
from ..results import BETWEEN, Study, StudyTable, read_expected
from .farms import NOISES as FARM_NOISES
from .farms import QUANTILES
from .fit_pictures import FIT_PICTURES
from .simulation import EUCLID, EXPECTED, POSTERIOR
from .tables import COVARIANCES, LAST, NOISES

if TYPE_CHECKING:
    from matplotlib.axes import Axes

OPEN_CIRCLES: dict[str, Any] = {"linestyle": "none", "marker": "o", "markerfacecolor": "white"}
WORDS = {EUCLID: "nearest record", EXPECTED: "nearest to E(y|z)", POSTERIOR: "fully informed"}
FARM_KINDS: dict[str, tuple[str, Any]] = {"correlated": ("7a", "solid"), "independent": ("7b", (0, (3, 2)))}
COLORS = {EUCLID: BLUE, EXPECTED: GREEN, POSTERIOR: ORANGE}


def draw(study: Study, folder: Path) -> list[Path]:
    """Draw what the study has tables for, and return the files."""
    return draw_all(PICTURES, study, folder)


# Table 1.


def cumulative(study: Study, path: Path) -> Path:
    """Draw the cumulative distribution of h: deciles that mirror each other share a panel."""
    figure, axes = panels(5, width=2.3, height=3.4)
    for one, share in zip(axes, (10, 20, 30, 40, 50), strict=True):
        _decile_pair(one, study["1"], share)
        say(one, "h")
    axes[0].set_ylim(35, 100)
    say(axes[0], "h", "simulations with h at most this, %")
    headline(
        figure, "Table 1: published (circles) and ours (lines; shaded: where 1,000 simulations lie, 5-95%)"
    )
    return save(figure, path)


def _decile_pair(axes: Axes, table: StudyTable, share: int) -> None:
    x = range(LAST + 1)
    shares = [share] if share == 50 else [share, 100 - share]
    for one, color in zip(shares, (BLUE, ORANGE), strict=False):
        cells = [table[f"h {h}{BETWEEN}decile {one}"] for h in x]
        shade(axes, x, cells, color)
        axes.plot(x, [cell.ours for cell in cells], color=color, linewidth=1.5)
        published = [float(cell.published or 0) for cell in cells]
        axes.plot(x, published, color=color, markersize=3.5, markeredgewidth=0.9, **OPEN_CIRCLES)
    axes.set_xticks((0, 5, 10, 15))
    title(axes, "median" if share == 50 else "deciles")
    if share != 50:
        _in_colors(axes, f"{share}", f"{100 - share}")


def _in_colors(axes: Axes, first: str, second: str) -> None:
    """Write two names after the title, in the colours of their lines."""
    for text, color, right in ((first, BLUE, 46), (second, ORANGE, 64)):
        place: dict[str, Any] = {"xycoords": "axes fraction", "textcoords": "offset points"}
        axes.annotate(text, (0, 1), xytext=(right, 6), color=color, fontsize=9, weight="bold", **place)


# Table 2.


def table_2_curves(study: Study, path: Path) -> Path:
    """Draw table 2 against the covariance, a line for each noise; cells that do not agree are crossed."""
    table = study["2"]
    kinds = list(dict.fromkeys(row.rpartition(", ")[0] for row in table.rows))
    figure, axes = panels(3, width=3.7, height=3.9)
    for one, kind in zip(axes, kinds, strict=True):
        _by_covariance(one, table, kind)
        title(one, kind.replace("pr", "Pr").replace("N ", "").replace("000", "000 records"))
        say(one, "covariance of the identifiers")
        one.set_xticks(COVARIANCES)
    axes[0].set_ylim(0, 1)
    say(axes[0], "covariance of the identifiers", "probability, lowest decile")
    headline(
        figure,
        "Table 2: published (circles; crossed where z is beyond 3.5) and ours (lines), by the variance of the noise",
    )
    return save(figure, path)


def _by_covariance(axes: Axes, table: StudyTable, kind: str) -> None:
    ends = []
    for noise, color in zip(NOISES, (BLUE, GREEN, ORANGE, PINK), strict=True):
        cells = [table[f"{kind}, noise {noise:g}{BETWEEN}covariance {rho:g}"] for rho in COVARIANCES]
        shade(axes, COVARIANCES, cells, color)
        axes.plot(COVARIANCES, [one.ours for one in cells], color=color, linewidth=1.5)
        places = [(rho, float(one.published or 0)) for rho, one in zip(COVARIANCES, cells, strict=True)]
        axes.plot(*zip(*places, strict=True), color=color, markersize=4.5, **OPEN_CIRCLES)
        crossed = [place for place, one in zip(places, cells, strict=True) if one.within is False]
        for place in crossed:
            axes.plot(*place, "x", color=INK, markersize=8)
        ends.append((cells[-1].ours, f"noise {noise:g}", color))
    name_ends(axes, COVARIANCES[-1], ends, 0.045)


# What knowing the noise is worth.


def draw_informed_intruders(study: Study, path: Path) -> Path:
    """Draw h by intruder in the paper's setting, and who is found where data or noise are more correlated."""
    figure, axes = panels(2, width=5.2, height=3.9, share_y=False)
    _by_intruder(axes[0], study["informed"])
    _settings(axes[1], study["knowledge"])
    headline(
        figure,
        "In the paper's setting knowing the noise gains little; where data or noise are correlated it gains much",
    )
    return save(figure, path)


def _by_intruder(axes: Axes, table: StudyTable) -> None:
    published = {EUCLID: read_expected("goldstein")["1"], EXPECTED: read_expected("goldstein")["3"]}
    for share in (10, 50):
        for name, color in COLORS.items():
            heights = [table[f"decile {share}, h {h}{BETWEEN}{name}"].ours for h in range(6)]
            axes.plot(range(6), heights, color=color, linewidth=1.5)
            if name in published:
                cells = [published[name].published(f"h {h}{BETWEEN}decile {share}") for h in range(6)]
                axes.plot(
                    range(6), [float(one or 0) for one in cells], color=color, **OPEN_CIRCLES, markersize=4
                )
        label(axes, (5, heights[-1]), f"decile {share}", INK)
    axes.set_ylim(35, 100)
    legend(axes, [(WORDS[name], color) for name, color in COLORS.items()])
    say(axes, "h", "simulations with h at most this, %")
    title(axes, "files of table 1 (circles: published, tables 1 and 3)")


def _settings(axes: Axes, table: StudyTable) -> None:
    rows = table.rows[::-1]
    for place, row in enumerate(rows):
        found = {name: table[f"{row}{BETWEEN}{name}"].ours for name in COLORS}
        axes.plot(
            [min(found.values()), max(found.values())], [place, place], color=GREY, linewidth=1, zorder=1
        )
        for name, value in found.items():
            axes.plot(value, place, "o", color=COLORS[name], markersize=6)
        label(axes, (max(found.values()), place), f"{found[POSTERIOR]:.0f}%", ORANGE)
        label(axes, (min(found.values()), place), f"{found[EUCLID]:.0f}%", BLUE, xytext=(-6, 0), ha="right")
    axes.set_yticks(range(len(rows)), [_two_lines(row) for row in rows])
    axes.set_ylim(-0.6, len(rows) - 0.4)
    axes.set_xlim(0, 100)
    axes.tick_params(axis="y", length=0)
    axes.spines["left"].set_visible(False)
    say(axes, "records found (h = 0), %; 1,000 records, all of them targets")
    title(axes, "by correlation of the data and of the noise")


def _two_lines(row: str) -> str:
    identifiers, covariance, noise = row.split(", ")
    return f"{identifiers}, {covariance}\n{noise.replace('own', 'independent')}"


# The farms.


def farms(study: Study, path: Path) -> Path:
    """Draw who is found by quantile: published, Euclid, and informed, for both kinds of noise."""
    figure, axes = panels(2, width=4.8, height=3.8)
    for one, noise in zip(axes, FARM_NOISES, strict=True):
        for kind, (name, dashes) in FARM_KINDS.items():
            _farm_lines(one, study, noise, kind, name, dashes)
        one.set_xticks(range(len(QUANTILES)), [f"{share * 100:.0f}" for share in QUANTILES])
        title(one, f"noise of {noise:.0%} of the variances")
        say(one, "quantile of the distance from the centre, %")
    axes[0].set_ylim(0, 1.03)
    say(axes[0], "quantile of the distance from the centre, %", "probability that the farm is found (h = 0)")
    _farm_legend(axes[0])
    headline(
        figure, "Farms: correlated noise looks as safe as independent noise, until the intruder knows it"
    )
    return save(figure, path)


def _farm_lines(axes: Axes, study: Study, noise: float, kind: str, name: str, dashes: Any) -> None:
    x, rows = range(len(QUANTILES)), [f"quantile {share * 100:.0f}" for share in QUANTILES]
    cells = [study[name][f"{row}{BETWEEN}pr(h = 0), {noise:.0%} noise"] for row in rows]
    best = [study["7-informed"][f"{row}{BETWEEN}{kind} {noise:.0%}"].ours for row in rows]
    axes.plot(x, [one.ours for one in cells], color=BLUE, linewidth=1.5, linestyle=dashes)
    axes.plot(x, best, color=ORANGE, linewidth=1.5, linestyle=dashes)
    mark = {"marker": "o" if kind == "correlated" else "s"}
    published = [float(one.published or 0) for one in cells]
    axes.plot(x, published, color=GREY, markersize=4.5, **(OPEN_CIRCLES | mark))


def _farm_legend(axes: Axes) -> None:
    """Say what colours, dashes and marks are."""
    rows = (
        ("nearest record", BLUE),
        ("informed intruder", ORANGE),
        ("solid, circles: correlated noise", INK),
        ("dashed, squares: independent noise", INK),
        ("marks: published, other farms", GREY),
    )
    legend(axes, rows, (0.03, 0.98))


PICTURES: dict[str, Picture] = {
    "h_by_decile.png": (("1",), cumulative),
    "table_2.png": (("2",), table_2_curves),
    "informed.png": (("informed", "knowledge"), draw_informed_intruders),
    "farms.png": (("7a", "7b", "7-informed"), farms),
    **FIT_PICTURES,
}

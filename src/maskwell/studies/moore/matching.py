"""Table 4, its shape, and the same without codes: how the links of the targets change with the noise."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from ..results import BETWEEN, ExpectedTable, read_expected
from .simulation import Draws, LinkCounts, MooreSimulation, by_column, kim

CLASSES = ("correct", "incorrect", "questionable", "false")
C_UNCODED = (0.0709, 0.1005, 0.1759, 0.2526, 0.3333, 0.4830, 3.0)
C_KNEE = 0.1759  # from where, the paper says, very little protection is gained

Row = Mapping[str, float]


def rows_of_table_4() -> dict[str, tuple[float, float]]:
    """Return the printed R0 and c of each row."""
    names = dict.fromkeys(cell.partition(BETWEEN)[0] for cell in read_expected("moore")["4"].cells)
    return {name: _factors(name) for name in names}


def _factors(row: str) -> tuple[float, float]:
    r0, c = (float(part.split()[-1]) for part in row.split(","))
    return r0, c


def published_rows() -> dict[float, Row]:
    """Return the published counts by c."""
    table = read_expected("moore")["4"]
    return {
        c: {name: float(table.published(f"{row}{BETWEEN}{name}") or 0) for name in CLASSES}
        for row, (_, c) in rows_of_table_4().items()
    }


def published_at(c: float) -> Row:
    """Return the published counts of the row with this c."""
    return published_rows()[c]


def factors(simulation: MooreSimulation) -> Draws:
    """Return the c of each printed R0."""
    return {row: [c_of(r0)] for row, (r0, _) in rows_of_table_4().items()}


def c_of(r0: float) -> float:
    """Return c = sqrt((1 - R0) / R0)."""
    return replace(kim(1.0), sd_ratio=None, r0=r0).noise_sd_ratio


def r0_of(c: float) -> float:
    """Return R0 = 1 / (1 + c^2)."""
    return 1 / (1 + c**2)


def table_4(simulation: MooreSimulation) -> Draws:
    """Return the classes of the links for every row, and how many of the doubtful links are right."""
    draws: Draws = {}
    for row, (_, c) in rows_of_table_4().items():
        links = simulation.links(c)
        draws |= by_column(row, _columns(links) | _right(links))
    return draws


def _columns(links: Sequence[LinkCounts]) -> dict[str, list[float]]:
    return {name: [getattr(one, name) for one in links] for name in CLASSES}


def _right(links: Sequence[LinkCounts]) -> dict[str, list[float]]:
    return {
        "questionable, yet right": [one.questionable_right for one in links],
        "false, yet right": [one.false_right for one in links],
        "right in all": [one.right for one in links],
    }


def uncoded_draws(simulation: MooreSimulation) -> Draws:
    """Return rows of table 4 where nothing is coded, with the correct links where it is."""
    draws: Draws = {}
    for c in C_UNCODED:
        with_codes = {"correct, with codes": [one.correct for one in simulation.links(c)]}
        draws |= by_column(f"c {c:.4f}", _columns(simulation.links(c, coded=False)) | with_codes)
    return draws


# The shape of table 4.


def shape(simulation: MooreSimulation) -> Draws:
    """Return what the paper says about table 4 in figures, for each replicate."""
    runs: list[dict[float, Row]] = [{} for _ in simulation.seeds]
    for _, c in rows_of_table_4().values():
        for run, links in zip(runs, simulation.links(c), strict=True):
            run[c] = {name: getattr(links, name) for name in CLASSES}
    figures = [shape_figures(run) for run in runs]
    return {name: [one[name] for one in figures] for name in figures[0]}


def shape_figures(rows: Mapping[float, Row]) -> dict[str, float]:
    """Return the figures that make the shape of table 4: in % where not said otherwise."""
    least, most = min(rows), max(rows)
    first, knee, last = rows[least], rows[C_KNEE], rows[most]
    fall, incorrect = first["correct"] - last["correct"], [row["incorrect"] for row in rows.values()]
    targets = sum(last.values())
    return {
        f"correct falls, from c {least:g} to c {most:g}": 100 * fall / first["correct"],
        f"of that fall, before c {C_KNEE:g}": 100 * (first["correct"] - knee["correct"]) / fall,
        "questionable falls": 100 * (1 - last["questionable"] / first["questionable"]),
        "false rises, in % of the targets": 100 * (last["false"] - first["false"]) / targets,
        "incorrect, largest less smallest, links": max(incorrect) - min(incorrect),
        "incorrect, mean, links": sum(incorrect) / len(incorrect),
        f"correct at c {most:g}, in % of the targets": 100 * last["correct"] / targets,
        f"correct of the re-identifications at c {most:g}": 100
        * last["correct"]
        / (last["correct"] + last["incorrect"]),
    }


def published_shape() -> ExpectedTable:
    """Return the table of the shape, its published figures computed from those of table 4."""
    figures = {name: round(figure, 1) for name, figure in shape_figures(published_rows()).items()}
    return replace(read_expected("moore")["shape"], cells=figures)

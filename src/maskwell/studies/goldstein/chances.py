"""How far a simulated figure may be from a published one: both have the error of so many simulations."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files
from math import sqrt

import numpy as np

from ...table import Floats
from ..results import StudyTable, TableCell, read_expected

Figures = Mapping[str, Floats]  # for each cell one value for every target of every file

NORMAL_90, NORMAL_95, NORMAL_975 = 1.2816, 1.6449, 1.96  # normal quantiles


@dataclass(frozen=True, slots=True)
class Errors:
    """What expected.toml says: the simulations behind a published figure, the largest z, and where it is asked."""

    simulations: int
    largest_z: float
    compared: tuple[str, ...]


@cache
def errors() -> Errors:
    """Read by what tables are compared."""
    text = files(__package__).joinpath("expected.toml").read_text(encoding="utf-8")
    given = tomllib.loads(text)["errors"]
    return Errors(given["simulations"], given["largest_z"], tuple(given["compared"]))


def z_score(published: float, values: Floats, whole: float = 1.0) -> float:
    """Return ours less the published share of `whole`, in standard errors.

    Both are shares of simulations that give 0 or `whole`; their binomial errors are taken at the share of all
    simulations together.
    """
    ours, count, simulations = float(np.mean(values)), values.size, errors().simulations
    apart = ours - published
    pooled = (count * ours + simulations * published) / (count + simulations)
    error = sqrt(max(pooled * (whole - pooled), 0.0) * (1 / count + 1 / simulations))
    return apart / error if error > 0 else 0.0  # without error both are 0, or both are everything


def detectable_gap(targets: int, *, surely: bool = False) -> float:
    """Return how far off a share near a half must be for z to pass its limit every second (or nine in ten) times."""
    error = 0.5 * sqrt(1 / targets + 1 / errors().simulations)
    return (errors().largest_z + (NORMAL_90 if surely else 0.0)) * error


def whole_of(name: str) -> float:
    """Return what a share of one is in the unit of a table."""
    return 100.0 if read_expected("goldstein")[name].unit.startswith("%") else 1.0


def z_scores(name: str, figures: Figures) -> dict[str, float]:
    """Return the z of every published cell of a table."""
    table = read_expected("goldstein")[name]
    published = {cell: table.published(cell) for cell in figures}
    return {
        cell: z_score(figure, figures[cell], whole_of(name))
        for cell, figure in published.items()
        if figure is not None
    }


def table_of(name: str, figures: Figures, note: str = "") -> StudyTable:
    """Put our figures beside the published ones; the band is where the paper's simulations would lie if run again."""
    table = read_expected("goldstein")[name].table(
        {cell: values.tolist() for cell, values in figures.items()}, note
    )
    scores = z_scores(name, figures) if name in errors().compared else {}
    cells = [_with_errors(one, figures[one.cell], scores.get(one.cell)) for one in table.cells]
    return replace(table, cells=tuple(cells))


def _with_errors(cell: TableCell, values: Floats, z: float | None) -> TableCell:
    low, high = band(values)
    within = cell.within if z is None else abs(z) <= errors().largest_z
    return replace(cell, low=low, high=high, within=within, is_range=False)


def band(values: Floats) -> tuple[float, float] | tuple[None, None]:
    """Return where a mean over the paper's number of simulations would lie, 5-95%, with the error of ours in it."""
    if len(values) < 2:
        return None, None
    error = float(np.std(values)) * sqrt(1 / errors().simulations + 1 / len(values))
    ours, low, high = float(np.mean(values)), float(np.min(values)), float(np.max(values))
    return max(ours - NORMAL_95 * error, low), min(ours + NORMAL_95 * error, high)

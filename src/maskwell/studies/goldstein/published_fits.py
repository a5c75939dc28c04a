"""Fits beside the published ones: a published mean has the error of the simulations behind it."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from importlib.resources import files
from math import sqrt

import numpy as np

from ...table import Floats
from ..conclusions import FEWEST
from ..results import StudyTable, TableCell, read_expected
from .analyses import ERROR
from .chances import Figures, errors


@cache
def simulations() -> Mapping[str, int]:
    """Read of how many simulated files (or draws of noise) the published fits are the mean, by table."""
    text = files(__package__).joinpath("expected.toml").read_text(encoding="utf-8")
    given: Mapping[str, int] = tomllib.loads(text)["fits"]
    return given


def fits_of(name: str, figures: Figures, note: str = "") -> StudyTable:
    """Put our fits beside the published ones. Those that are said to be compared otherwise, and errors, have no z."""
    published = read_expected("goldstein")[name]
    table = published.table({cell: values.tolist() for cell, values in figures.items()}, note)
    if published.unit.startswith("%"):  # files that are 0 or 100 have no band
        return replace(table, cells=tuple(replace(one, low=None, high=None) for one in table.cells))
    if name not in simulations():
        return table
    cells = [
        one
        if published.comparison(one.cell) != "shape"
        else _judge_cell(one, figures[one.cell], simulations()[name])
        for one in table.cells
    ]
    return replace(table, cells=tuple(cells))


def _judge_cell(cell: TableCell, values: Floats, count: int) -> TableCell:
    if cell.published is None or cell.cell.startswith(ERROR) or len(values) < FEWEST:
        return cell
    return replace(cell, within=abs(z_of(cell.published, values, count)) <= errors().largest_z)


def z_of(published: float, values: Floats, count: int) -> float:
    """Return ours less a published mean of so many fits in standard errors, both errors together."""
    error = float(np.std(values, ddof=1)) * sqrt(1 / len(values) + 1 / count)
    return (float(np.mean(values)) - published) / error

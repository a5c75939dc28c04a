"""Tables 1 to 3: the survey's own figures, the noise alone, and what the noise leaves of variances and correlations."""

from __future__ import annotations

from itertools import combinations

import numpy as np

from ...schema import Column, Schema
from ...table import Floats, Table
from .simulation import FIELDS, Draws, MooreSimulation, by_column, kim, mask_by_seed

PAIRS = tuple(combinations(range(len(FIELDS)), 2))
C_NOISE, C_CORRELATIONS = 0.1, 0.1005  # of tables 2 and 3
C_MOMENTS = (0.1005, 0.3333)


def table_1(simulation: MooreSimulation) -> Draws:
    """Return count, mean and sd of the open values."""
    draws: Draws = {}
    for name in FIELDS:
        values = _open(simulation.survey.floats(name))
        figures = {"open values": len(values), "mean": values.mean(), "sd": values.std(ddof=1)}
        draws |= by_column(name, {column: [float(figure)] for column, figure in figures.items()})
    return draws


def table_2(simulation: MooreSimulation) -> Draws:
    """Return the moments and ends of the noise, masked less true, on a copy without codes and units."""
    truth = plain_copy(simulation.survey)
    noises = [_noise(truth, seed) for seed in simulation.seeds]
    draws: Draws = {}
    for j, name in enumerate(FIELDS):
        of_field = [_open(noise[:, j]) for noise in noises]
        draws |= by_column(
            name,
            {
                "mean": [float(one.mean()) for one in of_field],
                "sd": [float(one.std(ddof=1)) for one in of_field],
                "minimum": [float(one.min()) for one in of_field],
                "maximum": [float(one.max()) for one in of_field],
            },
        )
    return draws


def _noise(truth: Table, seed: int) -> Floats:
    after = mask_by_seed(kim(C_NOISE), truth, seed).masked
    return np.asarray(after.values(FIELDS) - truth.values(FIELDS))


def plain_copy(table: Table) -> Table:
    """Return the open amounts as continuous columns: nothing to clamp to, nothing to round to."""
    import pyarrow as pa

    schema = Schema(tuple(Column(name, "continuous", frozenset({"key"})) for name in FIELDS))
    columns = {name: pa.array(table.floats(name), from_pandas=True) for name in FIELDS}
    return Table.from_frame(pa.table(columns), schema)


def table_3(simulation: MooreSimulation) -> Draws:
    """Return for each pair the records with both values, and the correlations before and after the noise."""
    before = simulation.survey.values(FIELDS)
    after = [simulation.masking(C_CORRELATIONS, seed).masked.values(FIELDS) for seed in simulation.seeds]
    draws: Draws = {}
    for i, j in PAIRS:
        both = ~np.isnan(before[:, i]) & ~np.isnan(before[:, j])
        columns = {
            "both open": [float(both.sum())],
            "original": [_correlation(before[both][:, [i, j]])],
            "after the noise": [_correlation(one[both][:, [i, j]]) for one in after],
        }
        draws |= by_column(f"{FIELDS[i]}, {FIELDS[j]}", columns)
    return draws


def moments(simulation: MooreSimulation) -> Draws:
    """Return how far variances are from (1 + c^2) times the original ones, with clamp and unit and without."""
    draws: Draws = {}
    tables = {"as released": simulation.survey, "without clamp and unit": plain_copy(simulation.survey)}
    for c in C_MOMENTS:
        growth = {
            name: [_growth(table, c, seed) for seed in simulation.seeds] for name, table in tables.items()
        }
        for j, name in enumerate(FIELDS):
            columns = {column: [float(one[j]) for one in runs] for column, runs in growth.items()}
            draws |= by_column(f"{name}, c {c:g}", columns)
    return draws


def _growth(table: Table, c: float, seed: int) -> Floats:
    before, after = table.values(FIELDS), mask_by_seed(kim(c), table, seed).masked.values(FIELDS)
    return np.asarray(np.nanvar(after, axis=0) / np.nanvar(before, axis=0) / (1 + c**2))


def _open(values: Floats) -> Floats:
    return values[~np.isnan(values)]


def _correlation(values: Floats) -> float:
    return float(np.asarray(np.corrcoef(values.T))[0, 1])

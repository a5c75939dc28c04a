"""A synthetic analogue of the file of 662 interviews: two scales of opinion, age and income."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...schema import Column, Schema
from ...table import Floats, Table

RECORDS = 662
FIELDS = ("CIVIL", "CAN_US", "AGE", "INCOME")
CUTS = (-0.84, -0.25, 0.25, 0.84)  # five points, each about a fifth of the answers
LOADING = 0.7  # of every answer on what its scale measures
TOP = 80_000.0
UNIT = 1e-9  # of released values: as good as none, so that bias alone is seen on values near zero too


def interviews(rng: np.random.Generator) -> Table:
    """Draw a file."""
    import pyarrow as pa

    columns: tuple[Any, ...] = (_civil(rng), _can_us(rng), _age(rng), _income(rng))
    schema = Schema(tuple(Column(name, "continuous", frozenset({"key"}), unit=UNIT) for name in FIELDS))
    return Table.from_frame(pa.table(dict(zip(FIELDS, columns, strict=True))), schema)


def _answers(rng: np.random.Generator) -> Floats:
    """Draw the sum of four answers on five points to questions that measure the same."""
    common = rng.standard_normal(RECORDS)
    own = rng.standard_normal((4, RECORDS))
    points = 1 + np.searchsorted(CUTS, LOADING * common + np.sqrt(1 - LOADING**2) * own)
    return np.asarray(points.sum(axis=0) + np.sqrt(0.5) * rng.standard_normal(RECORDS))


def _civil(rng: np.random.Generator) -> Floats:
    """Draw C1 + C2 + C3 + (8 - C5) + N(0, 1/2)."""
    return _answers(rng) + 2.0


def _can_us(rng: np.random.Generator) -> Floats:
    """Draw (5 - CUS1) + CUS5 + (5 - CUS6) + CUS7 + N(0, 1/2)."""
    return _answers(rng) - 2.0


def _age(rng: np.random.Generator) -> Floats:
    """Draw the age in years + N(0, 4)."""
    years = 18 + np.floor(62 * rng.beta(1.0, 1.4, RECORDS))
    return np.asarray(years + 2.0 * rng.standard_normal(RECORDS))


def _income(rng: np.random.Generator) -> Floats:
    """Draw incomes known in steps of 10,000, spread evenly within them, and from 80,000 on by half of a t law."""
    steps = np.floor(9.5 * rng.beta(1.3, 2.3, RECORDS))
    below = 10_000.0 * (steps + rng.random(RECORDS))
    beyond = TOP + 25_000.0 * np.abs(rng.standard_t(8, RECORDS))
    return np.where(10_000.0 * steps < TOP, below, beyond)

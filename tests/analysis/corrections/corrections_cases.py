"""A small file with a known model, released under any mask, for tests of corrections."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from maskwell.analysis.corrections.glm import Data
from maskwell.analysis.corrections.problem import CorrectionProblem
from maskwell.masking import Release, apply
from maskwell.schema import Column, Schema
from maskwell.table import Table

TRUTH = {"Intercept": 1.0, "x1": 1.0, "x2": -0.5, "sex[m]": 0.7}
SPREAD = np.array([[1.0, 0.6], [0.6, 2.0]])
CENTRE = np.array([3.0, 10.0])
SCHEMA = Schema(
    (
        Column("y", "continuous"),
        Column("x1", "continuous"),
        Column("x2", "continuous"),
        Column("sex", "category", categories=("f", "m")),
        Column("hit", "integer"),
        Column("count", "integer"),
        Column("weight", "continuous"),
        Column("school", "text"),
    )
)


def columns(records: int, seed: int, size: float = 1.0) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    x1, x2 = rng.multivariate_normal(CENTRE, SPREAD, records).T
    sex = rng.integers(0, 2, records)
    eta = 1.0 + x1 - 0.5 * x2 + 0.7 * sex
    about = size * (eta + 0.6)  # near 0 on average
    return {
        "y": eta + rng.standard_normal(records),
        "x1": x1,
        "x2": x2,
        "sex": np.array(["f", "m"])[sex],
        "hit": (rng.random(records) < 1 / (1 + np.exp(-about))).astype(np.int64),
        "count": rng.poisson(np.exp(0.5 * about)).astype(np.int64),
        "weight": rng.integers(1, 4, records).astype(float),
        "school": [f"school {i}" for i in rng.integers(0, 9, records)],
    }


def make_table(records: int = 4000, seed: int = 1, **changed: Any) -> Table:
    return Table.from_frame(pa.table(columns(records, seed) | changed), SCHEMA)


def released(mask: Any, table: Table | None = None, seed: int = 5) -> Release:
    return apply(mask, make_table() if table is None else table, seed=seed, exact=True).release


NOISE = np.array([[0.3, 0.1, 0.1], [0.1, 0.5, 0.05], [0.1, 0.05, 0.4]])
ROOT = np.linalg.cholesky(NOISE)


def make_problem(
    rng: np.random.Generator, records: int, *, family: str = "gaussian", noise: float = 1.0
) -> CorrectionProblem:
    """Two noised predictors, a clean one and, in a gaussian model, a noised response; noise correlated throughout."""
    x = rng.multivariate_normal([0, 0], SPREAD, records)
    clean = (rng.random(records) < 0.4) + 0.3 * x[:, 0]
    eta = -0.3 + x[:, 0] - 0.7 * x[:, 1] + 0.5 * clean
    linear = family == "gaussian"
    y = eta + rng.standard_normal(records) if linear else (rng.random(records) < 1 / (1 + np.exp(-eta))) * 1.0
    width = 3 if linear else 2
    root = np.sqrt(noise) * ROOT[:width, :width]
    true = np.column_stack([x, y])[:, :width]
    z = true + rng.standard_normal((records, width)) @ root.T
    loadings = np.zeros((records, 5, width))
    loadings[:, 2, 0] = loadings[:, 3, 1] = 1.0
    if linear:
        loadings[:, 0, 2] = 1.0
    data = Data(
        z[:, 2] if linear else y, np.column_stack([np.ones(records), z[:, :2], clean]), np.ones(records)
    )
    covariance = root @ root.T

    def draw(number: int) -> np.ndarray:
        return np.random.default_rng([9, number]).standard_normal((records, width)) @ root.T

    return CorrectionProblem(
        ("Intercept", "x1", "x2", "w"), data, loadings, ("x1", "x2", "y")[:width], z, covariance, draw
    )


PROBLEM_TRUTH = np.array([-0.3, 1.0, -0.7, 0.5])

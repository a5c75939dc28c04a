"""Small seeded tables, and the checks that several masks share."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from maskwell.masking import Setting
from maskwell.schema import Column, Schema
from maskwell.table import Table

EXACT = Setting(exact=True)
SIGMA = np.array([[4.0, 3.0, -0.8], [3.0, 9.0, 1.5], [-0.8, 1.5, 1.0]])
MEANS = np.array([10.0, -5.0, 100.0])


def table_of(*columns: Column, **data: Any) -> Table:
    """Make a table of described columns and their values."""
    return Table.from_frame(pa.table(data), Schema(columns))


def numbers(count: int, seed: int = 1) -> np.ndarray:
    """Return correlated normal columns."""
    return np.random.default_rng(seed).multivariate_normal(MEANS, SIGMA, size=count)


def plain(values: np.ndarray, **described: Any) -> Table:
    """Make a table of continuous columns A, B, C from records x columns (NaN: missing)."""
    names = "ABCDEFGH"[: values.shape[1]]
    data = {n: pa.array(v, from_pandas=True) for n, v in zip(names, values.T, strict=True)}
    return table_of(*(Column(n, "continuous", **described) for n in names), **data)


def within_four(errors: np.ndarray, expected: Any = 0.0) -> bool:
    """Whether the mean over records lies within 4 standard errors of what was promised."""
    standard = errors.std(axis=0) / np.sqrt(len(errors))
    return bool(np.all(np.abs(errors.mean(axis=0) - expected) <= 4 * standard))


def growth(z: np.ndarray, x: np.ndarray) -> np.ndarray:
    """Return for each record how much it adds to the covariances: records x columns x columns."""
    centre = x.mean(axis=0)
    return np.einsum("ni,nj->nij", z - centre, z - centre) - np.einsum("ni,nj->nij", x - centre, x - centre)


@pytest.fixture(scope="session")
def table() -> Table:
    return plain(numbers(20_000))


@pytest.fixture(scope="session")
def holes() -> Table:
    """Columns with a fifth of the values missing, not at the same records."""
    values = numbers(3_000, seed=2)
    values[np.random.default_rng(3).random(values.shape) < 0.2] = np.nan
    return plain(values)


@pytest.fixture
def messages() -> Any:
    """Return all problems of a refusal, checking that none quotes a value of the file."""
    from maskwell.errors import BadPlan

    def collect(work: Any, *hidden: str) -> tuple[str, ...]:
        with pytest.raises(BadPlan) as refusal:
            work()
        text = str(refusal.value)
        assert not [value for value in hidden if value in text]
        return refusal.value.problems

    return collect

"""A small true file and ways to release it badly, for the tests of the audit."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

import maskwell as mw
from maskwell.checks.evidence import Evidence
from maskwell.checks.findings import Finding
from maskwell.checks.noise_checks import CHECKS
from maskwell.masking import Masking
from maskwell.schema import Column, Schema
from maskwell.table import Table

AMOUNTS = ("income", "wealth", "spending")


def true_file(n: int = 1500, seed: int = 5) -> Table:
    """Three correlated amounts on whole units, a region, and households of two."""
    rng = np.random.default_rng([seed, 77])
    shape = np.array([[1.0, 0.5, 0.6], [0.5, 1.0, 0.3], [0.6, 0.3, 1.0]])
    amounts = rng.standard_normal((n, 3)) @ np.linalg.cholesky(shape).T
    data = {"region": rng.choice(list("abcd"), n), "household": np.arange(n) // 2 + 1}
    for j, name in enumerate(AMOUNTS):
        data[name] = np.rint(50_000 + 12_000 * amounts[:, j]).astype(np.int64)
    columns = (
        Column("region", "category", frozenset({"block"}), categories=tuple("abcd")),
        Column("household", "integer", frozenset({"group"})),
        *(Column(name, "integer", frozenset({"key"})) for name in AMOUNTS),
    )
    return Table.from_frame(pa.table(data), Schema(columns))


def released(
    truth: Table, values: dict[str, Any], order: Any = None, columns: dict[str, Column] | None = None
) -> Masking:
    """Release other values of some columns, shuffled or in a given order, as a file masked elsewhere."""
    order = np.random.default_rng([99, 2**40]).permutation(len(truth)) if order is None else np.asarray(order)
    changes = {
        name: ((columns or {}).get(name, truth.schema[name]), np.asarray(z, np.float64), truth.status(name))
        for name, z in values.items()
    }
    masked = truth.with_columns(changes).take(order)
    links = pa.table(
        {
            "truth_id": pa.array([str(i + 1) for i in order]),
            "released_id": pa.array([str(i + 1) for i in range(len(order))]),
        }
    )
    return Masking.from_files(truth, masked, links)


def noise(n: int, width: int = 3, seed: int = 8) -> Any:
    """Standard normal noise that no common seed gives."""
    return np.random.default_rng([seed, 2**40 + 17]).standard_normal((n, width))


def with_noise(truth: Table, sd: float = 6_000.0, names: tuple[str, ...] = AMOUNTS) -> dict[str, Any]:
    """The values of a clean release: every amount with independent noise, on its unit."""
    e = noise(len(truth), len(names))
    return {name: np.rint(truth.floats(name) + sd * e[:, j]) for j, name in enumerate(names)}


def finding(masking: Masking, check: str, earlier: Any = ()) -> Finding:
    """Make one check."""
    (chosen,) = [one for one in CHECKS if one.name == check]
    return chosen.made(Evidence(masking, earlier=tuple(earlier)))


def found(masking: Masking, *, without: tuple[str, ...] = ()) -> dict[str, Finding]:
    """Make all checks of the noise but some."""
    evidence = Evidence(masking)
    return {one.name: one.made(evidence) for one in CHECKS if one.name not in without}


__all__ = ["AMOUNTS", "finding", "found", "mw", "noise", "released", "true_file", "with_noise"]

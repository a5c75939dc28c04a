"""The simulations of section 4: normal identifiers with noise, and the intruder who takes the nearest record."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...attacks import NearestRecord, Quantiles, attack
from ...masking import Masking, apply
from ...masks import CorrelatedNoise, IndependentNoise
from ...schema import Column, Schema
from ...table import Floats, Table

DECILES = tuple(share / 10 for share in range(1, 10))


def _around(middle: float, step: float, sides: int = 2) -> tuple[float, ...]:
    """Return eleven quantiles around one and, since data and noise are symmetric, around the one that mirrors it."""
    below = [round(middle + step * i, 4) for i in range(-5, 6)]
    return (*below, *(round(1 - share, 4) for share in below)) if sides == 2 else tuple(below)


LOWEST, FIFTH, MEDIAN = _around(0.10, 0.004), _around(0.05, 0.002), _around(0.50, 0.004, sides=1)

EUCLID, PER_VARIABLE, EXPECTED, POSTERIOR = "Euclid", "E(y|z) by variable", "E(y|z)", "posterior"
OMEGA, INVERSE = "W = Omega", "W = inverse of Omega"


@dataclass(frozen=True, slots=True)
class NormalFile:
    """Standard normal identifiers, any two of them with the same covariance (the paper's y and Omega)."""

    records: int = 1000
    identifiers: int = 5
    covariance: float = 0.25

    @property
    def fields(self) -> tuple[str, ...]:
        """The names of the identifiers."""
        return tuple(f"y{i}" for i in range(1, self.identifiers + 1))

    @property
    def omega(self) -> Floats:
        """The covariance matrix."""
        return self.covariance + (1 - self.covariance) * np.eye(self.identifiers)

    @property
    def inverse(self) -> Floats:
        """The inverse of the covariance matrix, in closed form and so exactly symmetric."""
        rest, count = 1 - self.covariance, self.identifiers
        return (np.eye(count) - self.covariance / (rest + count * self.covariance)) / rest

    def table(self, rng: np.random.Generator) -> Table:
        """Draw a file."""
        common = rng.standard_normal(self.records)
        own = rng.standard_normal((self.identifiers, self.records))
        return keys_of(self.fields, np.sqrt(self.covariance) * common + np.sqrt(1 - self.covariance) * own)


def keys_of(fields: Sequence[str], values: Floats) -> Table:
    """Return a table of key columns, given one row of values for each."""
    import pyarrow as pa

    schema = Schema(tuple(Column(name, "continuous", frozenset({"key"})) for name in fields))
    return Table.from_frame(pa.table(dict(zip(fields, values, strict=True))), schema)


def independent(data: Any, variance_ratio: float) -> IndependentNoise:
    """Return independent noise; identifiers have variance 1, so that the ratio is the paper's variance."""
    return IndependentNoise(data.fields, variance=variance_ratio)


def kim(data: Any, variance_ratio: float) -> CorrelatedNoise:
    """Return noise that is correlated like the data."""
    return CorrelatedNoise(data.fields, sd_ratio=float(np.sqrt(variance_ratio)))


@dataclass(frozen=True, slots=True)
class GoldsteinJob:
    """The h of some records of a file with noise: of those at quantiles `at`, or of all."""

    data: Any
    mask: Any
    intruder: str = EUCLID
    at: tuple[float, ...] | None = DECILES
    of: str = "row sum"

    def found(self, masking: Masking) -> Floats:
        """Return the h of each target."""
        h = attack(self.plan, masking).h
        assert h is not None
        return np.asarray(h.values, dtype=np.float64)

    @property
    def plan(self) -> NearestRecord:
        """The intruder. True records are ranked by Euclidean distance, or by W where he weights by it."""
        targets = None if self.at is None else Quantiles(self.at, of=self.of, columns=self.data.fields)
        return NearestRecord(
            fields=self.data.fields, match_blocks=(), targets=targets, **_options(self.intruder, self.data)
        )


def _options(intruder: str, data: Any) -> dict[str, Any]:
    if intruder in (OMEGA, INVERSE):
        return {"weights": data.omega if intruder == OMEGA else data.inverse, "ranked_by": "same"}
    options: dict[str, dict[str, Any]] = {
        EUCLID: {},
        PER_VARIABLE: {"shrink": "per_variable"},
        EXPECTED: {"shrink": "matrix"},
        POSTERIOR: {"distance": "posterior"},
    }
    return options[intruder]


# Running.

Found = Mapping[Any, Floats]  # for each job files x targets


def simulate(files: Mapping[Any, int], seed: int, tick: Callable[[], None]) -> dict[Any, Floats]:
    """Return what every job finds in so many files as it asks for; a job's figures do not depend on the others."""
    found: dict[Any, list[Floats]] = {job: [] for job in files}
    for replicate in range(max(files.values(), default=0)):
        wanted = [job for job, count in files.items() if replicate < count]
        for job, values in _measure_jobs(wanted, seed, replicate):
            found[job].append(values)
            tick()
    return {job: np.array(values) for job, values in found.items()}


def _measure_jobs(jobs: Sequence[Any], seed: int, replicate: int) -> Iterator[tuple[Any, Floats]]:
    """Measure jobs on one replicate: all files come of the same draws, and one masked serves every intruder."""
    draws = np.random.SeedSequence([seed, replicate])
    noise_seed = int(draws.generate_state(1, np.uint64)[0])
    tables = {
        data: data.table(np.random.default_rng(draws)) for data in dict.fromkeys(job.data for job in jobs)
    }
    for data, mask in dict.fromkeys((job.data, job.mask) for job in jobs):
        masking = apply(mask, tables[data], seed=noise_seed, exact=True)
        for job in jobs:
            if (job.data, job.mask) == (data, mask):
                yield job, job.found(masking)

"""The tables: which files and intruders each needs, and its cells, computed from the h that they give."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from ...table import Floats
from ..plans import StudyPlan, cell_name
from . import binary, farms
from .analyses import ANALYSES
from .chances import Figures
from .simulation import (
    DECILES,
    EUCLID,
    EXPECTED,
    FIFTH,
    INVERSE,
    LOWEST,
    MEDIAN,
    OMEGA,
    PER_VARIABLE,
    POSTERIOR,
    Found,
    GoldsteinJob,
    NormalFile,
    independent,
    kim,
)

PERCENT = 100.0
LAST = 19  # the last single h of table 1
COVARIANCES = (0.1, 0.2, 0.3, 0.4, 0.5)
NOISES = (0.1, 0.2, 0.3, 0.4)
SWEEP = (0.05, 0.1, 0.12, 0.2, 0.34, 0.5, 1.0, 2.0)
INTRUDERS = (EUCLID, PER_VARIABLE, EXPECTED, POSTERIOR)
NOISE = 0.1

# On which share of the replicates a table is run: files that give many targets, and slow ones, are fewer.
HALF, AROUND, FARMS, ALL, BINARY = 0.5, 0.05, 0.1, 0.01, 0.04


def normal(
    data: NormalFile | None = None,
    noise: float = NOISE,
    intruder: str = EUCLID,
    at: tuple[float, ...] | None = DECILES,
) -> GoldsteinJob:
    """Return a job with independent noise; without more said, that of table 1."""
    data = data or NormalFile()
    return GoldsteinJob(data, independent(data, noise), intruder, at)


def decile(share: float) -> str:
    """Name the column of a decile."""
    return f"decile {share * 100:.0f}"


def at_most(h: Floats, count: int) -> Floats:
    """Return 100 where h is at most so large, else 0."""
    return np.asarray(PERCENT * (h.ravel() <= count))


def zero(h: Floats) -> Floats:
    """Return 1 where h = 0, else 0."""
    return np.asarray((h.ravel() == 0).astype(np.float64))


def beyond(h: Floats, count: int) -> Floats:
    """Return 1 where h is above a count, else 0."""
    return np.asarray((h.ravel() > count).astype(np.float64))


# Tables 1 and 3, the weights, and what knowledge of the noise is worth.


def _cumulative(job: GoldsteinJob, counts: int, deciles: Sequence[float]) -> Callable[[Found], Figures]:
    def figures(found: Found) -> Figures:
        return {
            cell_name(f"h {count}", decile(share)): at_most(found[job][:, DECILES.index(share)], count)
            for count in range(counts)
            for share in deciles
        }

    return figures


def _table_1() -> StudyPlan:
    some = _cumulative(normal(), LAST + 1, DECILES)

    def figures(found: Found) -> Figures:
        rest = np.full(len(found[normal()]), PERCENT)
        return {**some(found), **{cell_name(f"h {LAST + 1}+", decile(share)): rest for share in DECILES}}

    return StudyPlan((normal(),), figures)


def _table_3() -> StudyPlan:
    job = normal(intruder=EXPECTED)
    return StudyPlan((job,), _cumulative(job, 6, DECILES[:5]))


def _weighting_plan() -> StudyPlan:
    jobs = {name: normal(intruder=name) for name in (EUCLID, OMEGA, INVERSE)}

    def figures(found: Found) -> Figures:
        return {
            cell_name(f"{decile(share)}, h {count}", name): at_most(
                found[job][:, DECILES.index(share)], count
            )
            for share in (0.1, 0.5, 0.9)
            for count in range(6)
            for name, job in jobs.items()
        }

    return StudyPlan(tuple(jobs.values()), figures, HALF)


def _intruder_plan() -> StudyPlan:
    jobs = {name: normal(intruder=name) for name in INTRUDERS}

    def figures(found: Found) -> Figures:
        return {
            cell_name(f"{decile(share)}, h {count}", name): at_most(found[job][:, i], count)
            for i, share in enumerate(DECILES[:5])
            for count in range(6)
            for name, job in jobs.items()
        }

    return StudyPlan(tuple(jobs.values()), figures, HALF)


def _knowledge() -> StudyPlan:
    rows = {
        f"{q} identifiers, covariance {rho:g}, {name} noise {noise:g}": (NormalFile(1000, q, rho), law, noise)
        for q, noise in ((5, 0.1), (10, 0.34))
        for rho, name, law in ((0.25, "own", independent), (0.8, "own", independent), (0.8, "Kim's", kim))
    }
    jobs = {
        cell_name(row, name): GoldsteinJob(data, law(data, noise), name, None)
        for row, (data, law, noise) in rows.items()
        for name in INTRUDERS
    }
    return StudyPlan(
        tuple(jobs.values()), lambda found: {cell: at_most(found[job], 0) for cell, job in jobs.items()}, ALL
    )


# Table 2 and the statements in words.


def _table_2() -> StudyPlan:
    kinds: dict[str, tuple[int, Callable[[Floats], Floats]]] = {
        "pr(h > 5), N 1,000": (1000, lambda h: beyond(h, 5)),
        "pr(h > 5), N 5,000": (5000, lambda h: beyond(h, 5)),
        "pr(h = 0), N 1,000": (1000, zero),
    }
    cells = {
        cell_name(f"{kind}, noise {noise:g}", f"covariance {rho:g}"): (
            normal(NormalFile(count, 5, rho), noise, at=LOWEST),
            measure,
        )
        for kind, (count, measure) in kinds.items()
        for noise in NOISES
        for rho in COVARIANCES
    }
    jobs = tuple(dict.fromkeys(job for job, _ in cells.values()))
    return StudyPlan(
        jobs, lambda found: {cell: measure(found[job]) for cell, (job, measure) in cells.items()}, AROUND
    )


def _distribution(h: Floats) -> dict[str, Floats]:
    return {"pr(h = 0)": zero(h), "pr(h > 3)": beyond(h, 3), "pr(h > 5)": beyond(h, 5)}


def _sizes() -> StudyPlan:
    larger = {count: normal(NormalFile(count), at=LOWEST) for count in (1000, 5000, 10_000)}
    middle = normal(at=MEDIAN)
    rows = {f"N {count:,}, decile 10": job for count, job in larger.items()} | {"N 1,000, decile 50": middle}

    def figures(found: Found) -> Figures:
        return {
            cell_name(row, column): values
            for row, job in rows.items()
            for column, values in _distribution(found[job]).items()
        }

    return StudyPlan(tuple(rows.values()), figures, AROUND)


def _identifiers() -> StudyPlan:
    jobs = {
        "5 identifiers, noise 0.1": normal(at=LOWEST),
        "10 identifiers, noise 0.34": normal(NormalFile(identifiers=10), 0.34, at=LOWEST),
    }

    def figures(found: Found) -> Figures:
        return {
            cell_name(f"h {count}", name): at_most(found[job], count)
            for count in (0, 1, 2, 3, 5, 10, 15, 19)
            for name, job in jobs.items()
        }

    return StudyPlan(tuple(jobs.values()), figures, AROUND)


def _covariance() -> StudyPlan:
    jobs = {rho: normal(NormalFile(covariance=rho), at=FIFTH) for rho in (0.1, 0.3, 0.5)}

    def figures(found: Found) -> Figures:
        out: dict[str, Floats] = {}
        for rho, job in jobs.items():
            out[cell_name(f"covariance {rho:g}", "pr(h = 0)")] = zero(found[job])
            out[cell_name(f"covariance {rho:g}", "pr(h > 5)")] = beyond(found[job], 5)
        return out

    return StudyPlan(tuple(jobs.values()), figures, 4 * AROUND)


def _expectation() -> StudyPlan:
    jobs = {noise: normal(noise=noise, at=LOWEST) for noise in SWEEP}

    def figures(found: Found) -> Figures:
        out: dict[str, Floats] = {}
        for noise, job in jobs.items():
            h, row = found[job], f"noise {noise:g}"
            out[cell_name(row, "E(h)")] = h.ravel()
            out[cell_name(row, "pr(h = 0)")] = zero(h)
            out[cell_name(row, "pr(h < 3)")] = 1 - beyond(h, 2)
        return out

    return StudyPlan(tuple(jobs.values()), figures, AROUND)


# Section 5, and the farms.


def _binary() -> StudyPlan:
    return StudyPlan((binary.FavourableRecords(),), binary.figures, BINARY)


FARM_MASKS: Mapping[str, Callable[[float], Any]] = {
    "correlated": farms.shlomo_noise,
    "independent": farms.by_itself,
}


def _table_7(law: Callable[[float], Any]) -> StudyPlan:
    jobs = {noise: farms.job(law(noise), EUCLID) for noise in farms.NOISES}

    def figures(found: Found) -> Figures:
        out: dict[str, Floats] = {}
        for i, share in enumerate(farms.QUANTILES):
            h = {f"{noise:.0%} noise": farms.at_quantile(found[job], i) for noise, job in jobs.items()}
            row = f"quantile {share * 100:.0f}"
            out |= {cell_name(row, f"h, {name}"): values for name, values in h.items()}
            out |= {cell_name(row, f"pr(h = 0), {name}"): zero(values) for name, values in h.items()}
        return out

    return StudyPlan(tuple(jobs.values()), figures, FARMS)


def _farms_informed() -> StudyPlan:
    jobs = {
        f"{name} {noise:.0%}": farms.job(law(noise), POSTERIOR)
        for name, law in FARM_MASKS.items()
        for noise in farms.NOISES
    }

    def figures(found: Found) -> Figures:
        return {
            cell_name(f"quantile {share * 100:.0f}", name): zero(farms.at_quantile(found[job], i))
            for i, share in enumerate(farms.QUANTILES)
            for name, job in jobs.items()
        }

    return StudyPlan(tuple(jobs.values()), figures, FARMS)


SCORES = {"1-z": "1", "2-z": "2", "3-z": "3"}  # the tables of z, and of which tables they are

TABLES: dict[str, Callable[[], StudyPlan]] = {
    "1": _table_1,
    "1-z": _table_1,
    "weighted": _weighting_plan,
    "sizes": _sizes,
    "2": _table_2,
    "2-z": _table_2,
    "3": _table_3,
    "3-z": _table_3,
    "informed": _intruder_plan,
    "knowledge": _knowledge,
    "identifiers": _identifiers,
    "covariance": _covariance,
    "expectation": _expectation,
    "binary": _binary,
    **ANALYSES,
    "7a": lambda: _table_7(farms.shlomo_noise),
    "7b": lambda: _table_7(farms.by_itself),
    "7-informed": _farms_informed,
}

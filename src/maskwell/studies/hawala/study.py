"""Hawala's simulations: eight independent normal variables, masked by mixtures, linked by several intruders."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ...attacks import BayesIntruder, Fixed, Linkage, NearestRecord, Relative, attack
from ...masking import Masking, apply
from ...masks import IndependentNoise, MixtureNoise
from ...schema import Column, Schema
from ...table import Table
from ..results import BETWEEN, Draws, Study, read_expected
from .statements import notes

REPLICATES = 6
SLOW = {"c", "informed"}  # the informed intruder takes a second each time
RECORDS = 1500
FIELDS = tuple(f"X{i}" for i in range(1, 9))

CVS = (0.01, 0.1, 1.0, 10.0, 100.0)
DS = (0.1, 0.2, 0.2445, 0.3, 0.4)
CS = (0.005, 0.01, 0.025, 0.05, 0.1)
D, C = 0.2445, 0.025  # Roque's d, and the c of every table

Progress = Callable[[int, int], None]


# What is attacked, and by whom.


def mixture(components: int = 2, *, d: float = D, c: float = C, symmetric: bool = True) -> MixtureNoise:
    """Return the paper's noise, in its letters."""
    return MixtureNoise(
        FIELDS, variance_ratio=d, within_variance_ratio=c, components=components, symmetric=symmetric
    )


def matcher(q: float, claims: str = "all links") -> Linkage:
    """Return Winkler's matcher as far as the paper describes it: a masked record looks for its original."""
    return Linkage(
        fields=FIELDS,
        match_blocks=(),
        rule=Relative(q, base="larger"),
        weights=Fixed(),
        direction="to_original",
        claims=claims,
    )


NEAREST = NearestRecord(fields=FIELDS, match_blocks=(), direction="to_original")
INFORMED = BayesIntruder(fields=FIELDS, match_blocks=(), direction="to_original")
ONE_TO_ONE = BayesIntruder(fields=FIELDS, match_blocks=(), direction="to_original", assignment="one-to-one")
FROM_ORIGINAL = {
    "nearest record, from the original": replace(NEAREST, direction="to_masked"),
    "informed, from the original": replace(INFORMED, direction="to_masked"),
}


@dataclass(frozen=True, slots=True)
class HawalaJob:
    """One rate to be measured."""

    cv: float
    mask: Any
    intruder: Any

    def rate(self, masking: Masking) -> float:
        """Return the share of the records that the intruder links correctly, in per cent."""
        return 100.0 * float(attack(self.intruder, masking).rate)


def winkler(mask: Any, cv: float = 1.0, q: float = 0.5) -> HawalaJob:
    """Return the recipe that reproduces table 3: tolerance 0.5, and a tie is no link."""
    return HawalaJob(cv, mask, matcher(q, claims="clear links"))


# The tables.

Cells = dict[str, HawalaJob]


def _cell_label(row: str, column: str) -> str:
    return f"{row}{BETWEEN}{column}"


def _by_cv(masks: dict[str, Any]) -> Cells:
    return {_cell_label(f"CV {cv:g}", name): winkler(mask, cv) for cv in CVS for name, mask in masks.items()}


def _table_1() -> Cells:
    return _by_cv({"symmetric": mixture(3), "asymmetric": mixture(3, symmetric=False)})


def _table_2() -> Cells:
    return _by_cv({f"k = {k}": mixture(k) for k in (2, 7)})


def _table_3() -> Cells:
    return {f"d {d:g}": winkler(mixture(d=d)) for d in DS}


def _recipes() -> Cells:
    def jobs(mask: Any) -> dict[str, HawalaJob]:
        return {
            "q 0.4, ties shared": HawalaJob(1.0, mask, matcher(0.4)),
            "q 0.4, ties refused": winkler(mask, q=0.4),
            "q 0.7, ties shared": HawalaJob(1.0, mask, matcher(0.7)),
        }

    return {_cell_label(f"d {d:g}", name): job for d in DS for name, job in jobs(mixture(d=d)).items()}


def _intruders() -> Cells:
    noises = {"mixture": mixture(), "normal": IndependentNoise(FIELDS, variance_ratio=D)}
    others = {"informed": INFORMED, "informed, one-to-one": ONE_TO_ONE} | FROM_ORIGINAL
    return {
        _cell_label(row, column): job
        for row, mask in noises.items()
        for column, job in _all_intruders(mask, others).items()
    }


def _all_intruders(mask: Any, others: dict[str, Any]) -> dict[str, HawalaJob]:
    plans = {"nearest record": NEAREST} | others
    return {"Winkler's matcher": winkler(mask)} | {
        name: HawalaJob(1.0, mask, plan) for name, plan in plans.items()
    }


def _within() -> Cells:
    return {
        _cell_label(f"c {c:g}", name): job
        for c in CS
        for name, job in _all_intruders(mixture(c=c), {"informed": INFORMED}).items()
    }


def _informed_cells() -> Cells:
    cells: Cells = {}
    for d in DS:
        jobs = _all_intruders(mixture(d=d), {"informed": INFORMED})
        jobs["informed, normal noise"] = HawalaJob(1.0, IndependentNoise(FIELDS, variance_ratio=d), INFORMED)
        cells |= {_cell_label(f"d {d:g}", name): job for name, job in jobs.items()}
    return cells


TABLES: dict[str, Callable[[], Cells]] = {
    "1": _table_1,
    "2": _table_2,
    "3": _table_3,
    "recipes": _recipes,
    "intruders": _intruders,
    "c": _within,
    "informed": _informed_cells,
}


# Running.


def run(tables: Sequence[str], *, replicates: int, seed: int, progress: Progress) -> Study:
    """Run some tables; a table's figures do not depend on which others are run."""
    cells = {name: TABLES[name]() for name in tables}
    counts = {name: _count(name, replicates) for name in tables}
    rates: dict[HawalaJob, list[float]] = {}
    wanted = [_replicate_jobs(cells, counts, replicate) for replicate in range(max(counts.values()))]
    total, done = sum(map(len, wanted)), 0
    for replicate, jobs in enumerate(wanted):
        for job, rate in zip(jobs, _measure_rates(jobs, seed, replicate), strict=True):
            rates.setdefault(job, []).append(rate)
            done += 1
            progress(done, total)
    draws = {
        name: {cell: rates[job][: counts[name]] for cell, job in table.items()}
        for name, table in cells.items()
    }
    return _study(draws, counts, seed)


def _count(table: str, replicates: int) -> int:
    """Return on how many replicates a table is measured: slow ones on a quarter."""
    return -(-replicates // 4) if table in SLOW else replicates


def _replicate_jobs(
    cells: Mapping[str, Cells], counts: Mapping[str, int], replicate: int
) -> tuple[HawalaJob, ...]:
    """Return the jobs of one replicate, each once."""
    tables = [table for name, table in cells.items() if replicate < counts[name]]
    return tuple(dict.fromkeys(job for table in tables for job in table.values()))


def _study(draws: Mapping[str, Draws], counts: Mapping[str, int], seed: int) -> Study:
    published = read_expected("hawala")
    tables = tuple(published[name].table(values, _files(counts[name])) for name, values in draws.items())
    said = f"ours: the mean over simulated files, each with noise of its own, from seed {seed}"
    return Study("hawala", tables, (said, *notes(draws)), published.paper)


def _files(count: int) -> str:
    return f"[{count} file{'s' if count > 1 else ''} of {RECORDS:,} records]"


def _measure_rates(jobs: Sequence[HawalaJob], seed: int, replicate: int) -> Iterator[float]:
    """Measure jobs on one replicate; a file masked once serves every intruder."""
    draws = np.random.SeedSequence([seed, replicate])
    standard = np.random.default_rng(draws).standard_normal((len(FIELDS), RECORDS))
    noise_seed = int(draws.generate_state(1, np.uint64)[0])
    places = dict.fromkeys((job.cv, job.mask) for job in jobs)
    maskings = {
        (cv, mask): apply(mask, simulate_variables(standard, cv), seed=noise_seed, exact=True)
        for cv, mask in places
    }
    with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        yield from pool.map(lambda job: job.rate(maskings[job.cv, job.mask]), jobs)


def simulate_variables(standard: Any, cv: float) -> Table:
    """Return variables of mean 1 and sd `cv` made of standard normal ones."""
    import pyarrow as pa

    schema = Schema(tuple(Column(name, "continuous", frozenset({"key"})) for name in FIELDS))
    values = {name: 1.0 + cv * row for name, row in zip(FIELDS, standard, strict=True)}
    return Table.from_frame(pa.table(values), schema)

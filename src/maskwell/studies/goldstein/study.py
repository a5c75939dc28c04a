"""Goldstein and Shlomo's study, part 1: the h-index by simulation, the worked example of section 5, the farms."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..results import BETWEEN, Study, StudyTable, expected
from .chances import Figures, table_of, z_scores
from .simulation import Found, simulate
from .statements import notes
from .tables import SCORES, TABLES, Plan

REPLICATES = 700  # about two minutes on one core

Progress = Callable[[int, int], None]


@dataclass(slots=True)
class Steps:
    """Counts steps and tells of them."""

    total: int
    progress: Progress
    done: int = field(default=0)

    def __call__(self) -> None:
        """Count one step."""
        self.done += 1
        self.progress(self.done, self.total)


def run(tables: Sequence[str], *, replicates: int, seed: int, progress: Progress) -> Study:
    """Run some tables; a table's figures do not depend on which others are run."""
    plans = {name: TABLES[name]() for name in tables}
    files = _files(plans.values(), replicates)
    found = simulate(files, seed, Steps(sum(files.values()), progress))
    figures = {name: plan.figures(_own(plan, found, replicates)) for name, plan in plans.items()}
    counts = {name: plan.files(replicates) for name, plan in plans.items()}
    written = tuple(_written(name, values, counts[name]) for name, values in figures.items())
    said = f"ours: over simulated files, each with noise of its own, from seed {seed}"
    return Study("goldstein", written, (said, *notes(figures, counts)), expected("goldstein").paper)


def _files(plans: Any, replicates: int) -> dict[Any, int]:
    """Return how many files each job needs for all tables together."""
    files: dict[Any, int] = {}
    for plan in plans:
        for job in plan.jobs:
            files[job] = max(files.get(job, 0), plan.files(replicates))
    return files


def _own(plan: Plan, found: Found, replicates: int) -> Found:
    """Return what a table may see: its own jobs, on as many files as it asks for."""
    return {job: found[job][: plan.files(replicates)] for job in plan.jobs}


def _written(name: str, figures: Figures, count: int) -> StudyTable:
    note = f"[{count:,} file{'s' if count > 1 else ''}]"
    if name in SCORES:
        scores = {_short(cell): [z] for cell, z in z_scores(SCORES[name], figures).items()}
        return expected("goldstein")[name].table(scores, note)
    if name == "binary":
        draws = {cell: values.tolist() for cell, values in figures.items()}
        return expected("goldstein")[name].table(draws, note)
    return table_of(name, figures, note)


def _short(cell: str) -> str:
    """Name a column by its figure alone, so that a table of z is not wider than a page."""
    row, _, column = cell.partition(BETWEEN)
    return f"{row}{BETWEEN}{column.split()[-1]}"

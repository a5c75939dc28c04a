"""What several studies do alike: tables that say which jobs they need on how many files, and how these are run."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from math import ceil
from typing import Any

from .results import BETWEEN, Draws, ExpectedTable, StudyTable

Progress = Callable[[int, int], None]
Found = Mapping[Any, Any]  # for each job its answers, a sequence with one for each file


@dataclass(frozen=True, slots=True)
class StudyPlan:
    """The jobs of a table, how its cells come of their answers, and on which share of the replicates it is run."""

    jobs: tuple[Any, ...]
    cells: Callable[[Found], Any]
    share: float = 1.0

    def files(self, replicates: int) -> int:
        """Return how many files are simulated for each job."""
        return ceil(self.share * replicates)

    def own(self, found: Found, replicates: int) -> Found:
        """Return what the table may see: its own jobs, on as many files as it asks for."""
        return {job: found[job][: self.files(replicates)] for job in self.jobs}


@dataclass(slots=True)
class StudySteps:
    """Counts steps and tells of them."""

    total: int
    progress: Progress
    done: int = field(default=0)

    def __call__(self) -> None:
        """Count one step."""
        self.done += 1
        self.progress(self.done, self.total)


def cell_name(row: str, column: str) -> str:
    """Name a cell."""
    return f"{row}{BETWEEN}{column}"


def files_of(plans: Iterable[StudyPlan], replicates: int) -> dict[Any, int]:
    """Return how many files each job needs for all tables together."""
    files: dict[Any, int] = {}
    for plan in plans:
        for job in plan.jobs:
            files[job] = max(files.get(job, 0), plan.files(replicates))
    return files


Measure = Callable[
    [Any, Sequence[Any], int], Sequence[Any]
]  # a place, its jobs and a replicate: their answers


def simulate_files(
    files: Mapping[Any, int], measure: Measure, tick: Callable[[], None]
) -> dict[Any, list[Any]]:
    """Return what every job finds in so many files as it asks for; a job's figures do not depend on the others.

    Jobs of one `place` share a masked file. Files are taken on all cores at once.
    """
    found: dict[Any, list[Any]] = {job: [] for job in files}
    parts = _parts(files)
    with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        for (_, jobs, _), answers in zip(parts, pool.map(lambda part: measure(*part), parts), strict=True):
            for job, answer in zip(jobs, answers, strict=True):
                found[job].append(answer)
                tick()
    return found


def _parts(files: Mapping[Any, int]) -> list[tuple[Any, list[Any], int]]:
    """Return the work in pieces, replicate by replicate: a place, and the jobs that need its file."""
    parts = []
    for replicate in range(max(files.values(), default=0)):
        places: dict[Any, list[Any]] = {}
        for job, count in files.items():
            if replicate < count:
                places.setdefault(job.place, []).append(job)
        parts += [(place, jobs, replicate) for place, jobs in places.items()]
    return parts


def file_count_note(files: int, records: int, more: str = "") -> str:
    """Say how many files there were, of how many records, and what else there is to say of them."""
    return f"[{files:,} file{'s' if files > 1 else ''} of {records} records{more}]"


def comparison_table(published: ExpectedTable, draws: Draws, said: str) -> StudyTable:
    """Put ours beside what was published; a cell of which no file has a figure is left out."""
    there = {cell: values for cell, values in draws.items() if len(values)}
    cells = {cell: figure for cell, figure in published.cells.items() if cell in there or cell not in draws}
    return replace(published, cells=cells).table(there, said)

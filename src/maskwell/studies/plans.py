"""What several studies do alike: tables that say which jobs they need on how many files, and the steps of a run."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from math import ceil
from typing import Any

from .results import BETWEEN, Draws, ExpectedTable, StudyTable

Progress = Callable[[int, int], None]
Found = Mapping[Any, Any]  # for each job its answers, a sequence with one for each file


@dataclass(frozen=True, slots=True)
class Plan:
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
class Steps:
    """Counts steps and tells of them."""

    total: int
    progress: Progress
    done: int = field(default=0)

    def __call__(self) -> None:
        """Count one step."""
        self.done += 1
        self.progress(self.done, self.total)


def named(row: str, column: str) -> str:
    """Name a cell."""
    return f"{row}{BETWEEN}{column}"


def files_of(plans: Iterable[Plan], replicates: int) -> dict[Any, int]:
    """Return how many files each job needs for all tables together."""
    files: dict[Any, int] = {}
    for plan in plans:
        for job in plan.jobs:
            files[job] = max(files.get(job, 0), plan.files(replicates))
    return files


def written(published: ExpectedTable, draws: Draws, said: str) -> StudyTable:
    """Put ours beside what was published; a cell of which no file has a figure is left out."""
    there = {cell: values for cell, values in draws.items() if len(values)}
    cells = {cell: figure for cell, figure in published.cells.items() if cell in there or cell not in draws}
    return replace(published, cells=cells).table(there, said)

"""Goldstein and Shlomo's study: the h-index by simulation, the example of section 5, the farms; and the analyses."""

from __future__ import annotations

from collections.abc import Sequence

from ..plans import Progress, StudySteps, files_of
from ..results import BETWEEN, Study, StudyTable, read_expected
from .analyses import ANALYSES
from .chances import Figures, table_of, z_scores
from .published_fits import fits_of
from .simulation import simulate
from .statements import notes
from .tables import SCORES, TABLES

REPLICATES = 700  # about six minutes on two cores


def run(tables: Sequence[str], *, replicates: int, seed: int, progress: Progress) -> Study:
    """Run some tables; a table's figures do not depend on which others are run."""
    plans = {name: TABLES[name]() for name in tables}
    files = files_of(plans.values(), replicates)
    found = simulate(files, seed, StudySteps(sum(files.values()), progress))
    figures = {name: plan.cells(plan.own(found, replicates)) for name, plan in plans.items()}
    counts = {name: plan.files(replicates) for name, plan in plans.items()}
    written = tuple(_study_table(name, values, counts[name]) for name, values in figures.items())
    said = f"ours: over simulated files, each with noise of its own, from seed {seed}"
    return Study("goldstein", written, (said, *notes(figures, counts)), read_expected("goldstein").paper)


def _study_table(name: str, figures: Figures, count: int) -> StudyTable:
    note = f"[{count:,} file{'s' if count > 1 else ''}]"
    if name in SCORES:
        scores = {_short(cell): [z] for cell, z in z_scores(SCORES[name], figures).items()}
        return read_expected("goldstein")[name].table(scores, note)
    if name in ANALYSES:
        return fits_of(name, figures, note)
    if name == "binary":
        draws = {cell: values.tolist() for cell, values in figures.items()}
        return read_expected("goldstein")[name].table(draws, note)
    return table_of(name, figures, note)


def _short(cell: str) -> str:
    """Name a column by its figure alone, so that a table of z is not wider than a page."""
    row, _, column = cell.partition(BETWEEN)
    return f"{row}{BETWEEN}{column.split()[-1]}"

"""Fienberg's case study on a synthetic file: four scenarios, and half of the file released."""

from __future__ import annotations

from collections.abc import Sequence

from ..plans import Progress, StudySteps, comparison_table, file_count_note, files_of
from ..results import Study, read_expected
from .file import RECORDS
from .simulation import simulate
from .statements import notes
from .tables import TABLES

REPLICATES = 6


def run(tables: Sequence[str], *, replicates: int, seed: int, progress: Progress) -> Study:
    """Run some tables; a table's figures do not depend on which others are run."""
    plans = {name: TABLES[name]() for name in tables}
    files = files_of(plans.values(), replicates)
    found = simulate(files, seed, StudySteps(sum(files.values()), progress))
    draws = {name: plan.cells(plan.own(found, replicates)) for name, plan in plans.items()}
    said = {name: file_count_note(plan.files(replicates), RECORDS) for name, plan in plans.items()}
    published = read_expected("fienberg")
    shown = tuple(comparison_table(published[name], values, said[name]) for name, values in draws.items())
    first = f"ours: the mean over synthetic files, each with noise of its own, from seed {seed}"
    return Study("fienberg", shown, (first, *notes(draws)), published.paper)

"""Trottini's study: the 36 scenarios, other kernels, thresholds, and helpers between d.2 and d.1."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ..plans import Found, Progress, StudySteps, comparison_table, file_count_note, files_of
from ..results import Draws, ExpectedTable, Study, read_expected
from .simulation import RECORDS, simulate
from .statements import notes
from .tables import BANDS, TABLES, first_records

REPLICATES = 200


def run(tables: Sequence[str], *, replicates: int, seed: int, progress: Progress) -> Study:
    """Run some tables; a table's figures do not depend on which others are run."""
    plans = {name: TABLES[name]() for name in tables if name in TABLES}
    files = files_of(plans.values(), replicates)
    found = simulate(files, seed, StudySteps(sum(files.values()), progress))
    draws: dict[str, Draws] = {"1": first_records(seed)} if "1" in tables else {}
    draws |= {name: plan.cells(plan.own(found, replicates)) for name, plan in plans.items()}
    said = {name: _attack_note(plan.own(found, replicates)) for name, plan in plans.items()}
    shown = tuple(
        comparison_table(_expected_table(name, replicates), values, said.get(name, ""))
        for name, values in draws.items()
    )
    first = f"ours: the mean over simulated files, each with noise of its own, from seed {seed}"
    return Study("trottini", shown, (first, *notes(draws, shown)), read_expected("trottini").paper)


def _expected_table(name: str, files: int) -> ExpectedTable:
    """Return what was published; bands of few files are shown, but no verdict is built on them."""
    published = read_expected("trottini")[name]
    if published.compare != "band" or files >= BANDS:
        return published
    note = f"{published.note} Not compared: from {BANDS} files on the band is firm enough."
    return replace(published, compare="shape", note=note)


def _attack_note(found: Found) -> str:
    """Say how many files there were, and how many attacks did not converge."""
    answers = [one for several in found.values() for one in several]
    short = sum(not one.converged for one in answers)
    chains = f"; {short:,} of {len(answers):,} attacks did not converge" if short else ""
    return file_count_note(max(map(len, found.values())), RECORDS, chains)

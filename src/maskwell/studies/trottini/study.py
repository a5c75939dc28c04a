"""Trottini's study: the 36 scenarios, other kernels, thresholds, and helpers between d.2 and d.1."""

from __future__ import annotations

from collections.abc import Sequence

from ..plans import Found, Progress, Steps, files_of, written
from ..results import Draws, Study, expected
from .simulation import RECORDS, simulate
from .statements import notes
from .tables import TABLES, first_records

REPLICATES = 200


def run(tables: Sequence[str], *, replicates: int, seed: int, progress: Progress) -> Study:
    """Run some tables; a table's figures do not depend on which others are run."""
    plans = {name: TABLES[name]() for name in tables if name in TABLES}
    files = files_of(plans.values(), replicates)
    found = simulate(files, seed, Steps(sum(files.values()), progress))
    draws: dict[str, Draws] = {"1": first_records(seed)} if "1" in tables else {}
    draws |= {name: plan.cells(plan.own(found, replicates)) for name, plan in plans.items()}
    said = {name: _said(plan.own(found, replicates)) for name, plan in plans.items()}
    published = expected("trottini")
    shown = tuple(written(published[name], values, said.get(name, "")) for name, values in draws.items())
    first = f"ours: the mean over simulated files, each with noise of its own, from seed {seed}"
    return Study("trottini", shown, (first, *notes(draws, shown)), published.paper)


def _said(found: Found) -> str:
    """Say how many files there were, and how many attacks did not converge."""
    count = max(map(len, found.values()))
    answers = [one for several in found.values() for one in several]
    short = sum(not one.converged for one in answers)
    chains = f"; {short:,} of {len(answers):,} attacks did not converge" if short else ""
    return f"[{count:,} file{'s' if count > 1 else ''} of {RECORDS} records{chains}]"

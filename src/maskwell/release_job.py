"""The whole job with its reports: what `maskwell.release` and the command line run."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from .pipeline import Outcome
from .pipeline.run import Texts
from .pipeline.run import release as run
from .plan import ReleasePlan
from .report import external_report, internal_report

if TYPE_CHECKING:
    from .keys import Key
    from .pipeline.progress import Progress, Refusal, Tried

REPORT = "report.html"


def release(
    plan: ReleasePlan | str | Path,
    *,
    seed: int | None = None,
    study: bool = False,
    key: Key | None = None,
    despite: str | None = None,
    progress: Progress | None = None,
    passphrase: str | None = None,
    advise: bool = True,
    refusal: Refusal | None = None,
    tried: Tried | None = None,
) -> Outcome:
    """Do all that a plan says, in order, and write the release with its reports where nothing stands against it.

    Read, check, look at what no noise protects, calibrate (or take the noise as given), mask, attack by every intruder,
    swap until the tolerance holds and attack again, compare, audit, write. Options are `seed` (with `study=True`:
    for studies, whose folders are named as such), `key`,
    `despite` (a reason to write what does not pass, which goes on record), `progress` (called with stage, done and
    total), `passphrase` (of a card that is sealed for no recipients) and `advise` (whether changes that would pass are
    searched; `refusal` is called with the reasons before that, `tried` with each change). What does not pass is not
    written, and the outcome says what would.
    """
    return run(
        plan,
        seed=seed,
        study=study,
        key=key,
        despite=despite,
        progress=progress,
        reports=_reports,
        passphrase=passphrase,
        advise=advise,
        refusal=refusal,
        tried=tried,
    )


def _reports(outcome: Outcome) -> tuple[Texts, Texts]:
    """Return the reports: that of the recipients is made when the files that it is about are written beside it."""
    return {REPORT: partial(external_report, outcome)}, {REPORT: internal_report(outcome)}

"""`audit`: every known way in which a noise-masked file leaks, checked."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from ..attacks.risk import Risks
from ..errors import BadPlan, nearest, raise_all
from ..masking import Masking
from ..notes import Note
from .catalogue import checks
from .evidence import LARGEST, Evidence
from .findings import Audit, Finding, Limits
from .protocol import Check
from .quantile_residuals.battery import battery, steps_of
from .quantile_residuals.findings import CHECKS as LAW_CHECKS
from .quantile_residuals.findings import residual_notes


def audit(
    masking: Masking,
    *,
    limits: Mapping[str, Limits | Mapping[str, float]] | None = None,
    risks: Risks | None = None,
    earlier: Masking | Sequence[Masking] = (),
    folder: str | Path | None = None,
    largest: int = LARGEST,
    left_out: Collection[str] = (),
    progress: Callable[[int, int], None] | None = None,
    not_known: Mapping[str, str] | None = None,
) -> Audit:
    """Check a masking for every known leak; each check has a figure, its limits, an explanation and a remedy.

    `limits` changes those of checks by name: `{"informed links": {"warn": 0.05, "fail": 0.1}}`. `risks` are attacks
    made on this masking already, which spares making them again; `earlier` earlier releases of the same records;
    `folder` the written public half, whose bytes are searched (without it the release is written to a temporary
    folder). Heavy checks look at `largest` records at most, drawn at random, and say so. `left_out` names checks that
    are not made: where a plan is rehearsed under other keys, what is asked of the key alone. `progress(done, of)` is
    told of every check; those of residuals, which are tested together column by column, count as far as these are.
    `not_known` has columns in clear that nobody outside knows, each with the reason, as a plan has them: the audit's
    own intruders rely on all others.
    """
    if not isinstance(masking, Masking):
        raise BadPlan(
            f"audit needs a Masking, not a {type(masking).__name__}: only the steward holds the truth"
        )
    every = checks()
    asked = _limits(limits or {}, every)
    before = (earlier,) if isinstance(earlier, Masking) else tuple(earlier)
    written = None if folder is None else Path(folder)
    evidence = Evidence(masking, risks, before, written, largest, not_known=not_known or {})
    wanted = [check for check in every if check.name not in left_out]
    with_laws = sum(check in LAW_CHECKS for check in wanted)
    steps = _Steps(progress, len(wanted))
    if with_laws:
        battery(evidence, partial(steps.tested, with_laws, steps_of(evidence)))
        steps.reach(with_laws)
    findings = []
    for check in wanted:
        findings.append(check.made(evidence, asked.get(check.name)))
        if check not in LAW_CHECKS:
            steps.reach(steps.done + 1)
    notes = residual_notes(evidence) if with_laws else ()
    return Audit(tuple(findings), (*_notes(findings, evidence), *notes))


@dataclass
class _Steps:
    """Counts the checks that are done, and tells of each."""

    progress: Callable[[int, int], None] | None
    of: int
    done: int = 0
    tests: int = 0

    def reach(self, done: int) -> None:
        """Take note of how many checks are done."""
        while self.done < done:
            self.done += 1
            if self.progress is not None:
                self.progress(self.done, self.of)

    def tested(self, checks: int, steps: int) -> None:
        """Take note of a step of the tests that so many checks share; they are done when all steps are."""
        self.tests += 1
        self.reach(checks * min(self.tests, steps) // max(steps, 1))


def _limits(given: Mapping[str, Any], every: Sequence[Check]) -> dict[str, Limits]:
    """Return the limits that a plan changes, listing every problem at once."""
    known = {check.name: check.limits for check in every}
    problems, changed = list[str](), dict[str, Limits]()
    for name, own in given.items():
        if name not in known:
            problems.append(f"the audit has no check {name!r}{nearest(name, known)}")
        elif isinstance(own, Limits):
            changed[name] = own
        elif not isinstance(own, Mapping):
            problems.append(f"the limits of {name!r} are given as warn and fail, not as {type(own).__name__}")
        else:
            try:
                changed[name] = known[name].changed(own)
            except BadPlan as refusal:
                problems += [f"the limits of {name!r}: {problem}" for problem in refusal.problems]
    raise_all(problems, BadPlan)
    return changed


def _notes(findings: Sequence[Finding], evidence: Evidence) -> tuple[Note, ...]:
    """Say which checks looked at a part of the records."""
    counts = Counter(finding.sampled for finding in findings if finding.sampled is not None)
    return tuple(
        Note("checks.sampled", {"checks": checks, "looked_at": records, "records": evidence.records})
        for records, checks in sorted(counts.items())
    )

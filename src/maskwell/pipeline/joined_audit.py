"""What joined rows of two releases give away without a tolerance: the audit's own checks, made of the joined rows.

A sum whose parts left in another release averages noise away as one inside a file does, and who stands out is found
first in joined rows too. So the checks that see this look at the rows of both releases side by side; those that need
the right pair of rows only where most rows are paired, and with the earlier value alone wherever this release has the
same with more noise. What the earlier release fails by itself is out already.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from functools import partial
from typing import Any

from ..attacks.risk import Risk, Risks
from ..checks import Audit, Finding, audit
from ..checks.catalogue import checks
from ..masking.results import Masking
from .joined_releases import Joined

OUTER = "outer links"
OF_PAIRS = ("identities", "best estimate", "near-duplicate columns", "ratios")
MOSTLY_PAIRED = 0.5  # mean chance of the right pair from which on rows count as paired


def joined_failures(
    joined: Joined,
    earlier: Masking,
    risk: Risk,
    limits: Mapping[str, Any],
    not_known: Mapping[str, str] | None = None,
) -> tuple[Finding, ...]:
    """Return the checks that joined rows fail and the earlier release alone does not."""
    check = partial(_audit, limits=limits, not_known=not_known)
    once = joined.masking if joined.told_once is None else joined.told_once
    failed = check(joined.masking, {OUTER}, risks=Risks({"joined": risk}, {})).failures
    if joined.paired.mean() >= MOSTLY_PAIRED:
        failed += check(once, OF_PAIRS).failures
    if not failed:
        return ()
    before = check(earlier, {one.check for one in failed}).failures
    return tuple(one for one in failed if one.check not in {past.check for past in before})


def _audit(
    masking: Masking,
    made: Collection[str],
    *,
    limits: Mapping[str, Any],
    not_known: Mapping[str, str] | None,
    risks: Risks | None = None,
) -> Audit:
    every = [check.name for check in checks()]
    own = {name: given for name, given in limits.items() if name in made}
    left_out = [name for name in every if name not in made]
    return audit(masking, limits=own, risks=risks, left_out=left_out, not_known=not_known)

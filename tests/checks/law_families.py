"""Some checks of residuals alone: without the families of tests that take long and belong to none of them.

A check's p-values are adjusted by the number of tests in their own family and the number of families, so that leaving
other families out changes nothing about it. Whole batteries are made for clean releases and by the audit's own tests.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import pytest

from maskwell.checks.evidence import Evidence
from maskwell.checks.findings import Finding
from maskwell.checks.quantile_residuals import congruences, fine_phases, noise_matches, residue_matches, turns
from maskwell.checks.quantile_residuals.findings import CHECKS
from maskwell.masking import Masking

LONG: dict[str, tuple[tuple[Any, str], ...]] = {
    "noise by class": (
        (noise_matches, "noise_matches"),
        (fine_phases, "fine_phases"),
        (fine_phases, "phases_of_two"),
        (turns, "turns"),
    ),
    "digits": ((congruences, "congruences"), (residue_matches, "residue_matches")),
}


def some_findings(masking: Masking, names: Collection[str]) -> dict[str, Finding]:
    """Make some checks of residuals, by name."""
    evidence = Evidence(masking)
    with pytest.MonkeyPatch.context() as patched:
        for check, functions in LONG.items():
            for module, name in functions if check not in names else ():
                patched.setattr(module, name, lambda *_: 0)
        return {check.name: check.made(evidence) for check in CHECKS if check.name in names}

"""Every check by its name: what it measures, from which figure on it warns and fails, and why there."""

from __future__ import annotations

from .file_checks import CHECKS as FILE_CHECKS
from .noise_checks import CHECKS as NOISE_CHECKS
from .protocol import Check
from .quantile_residuals.findings import CHECKS as RESIDUAL_CHECKS
from .value_checks import CHECKS as VALUE_CHECKS

CHECKS: dict[str, Check] = {
    check.name: check for check in (*NOISE_CHECKS, *RESIDUAL_CHECKS, *VALUE_CHECKS, *FILE_CHECKS)
}


def checks() -> tuple[Check, ...]:
    """Return all checks in the order in which they are told."""
    return tuple(CHECKS.values())

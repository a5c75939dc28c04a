"""The share of records that no noise protects, and what it means for a tolerance."""

from __future__ import annotations

from typing import Any

from ..attacks.fingerprint import floor_of
from ..errors import BadPlan
from ..tolerances import MaxRate, ProbH, Ratio
from .judging import ALL, counted
from .trials import Bench


def fingerprint_floor(bench: Bench, mask: Any) -> float:
    """Return the share of the judged records whose fingerprint is theirs alone, whatever the size of the noise.

    Of intruders with different targets the one with the largest share counts.
    """
    plans = list(bench.plans.values()) if isinstance(bench.plans, dict) else bench.plans
    kinds = {str([getattr(plan, name, None) for name in TARGETS]): plan for plan in plans}
    return max(_share(bench, mask, plan) for plan in kinds.values())


TARGETS = ("largest_target_block", "target_blocks", "targets")


def _share(bench: Bench, mask: Any, plan: Any) -> float:
    risk = floor_of(mask, bench.table, plan)
    if bench.over == ALL:
        return float(risk.rate)
    found = counted(risk, bench.table, bench.over)
    released = mask.card(bench.table).subsampled or 1.0
    return released * found.correct / found.targets


def check_floor(tolerance: Any, floor: float) -> None:
    """Refuse a tolerance that lies below what no noise protects."""
    least = _least(tolerance, floor)
    if least is not None:
        raise BadPlan(
            f"no noise meets this tolerance ({tolerance}): {floor:.2%} of the records judged have a fingerprint of "
            f"their own (blocks, unmasked columns, missing or coded values), which allows {least}; see "
            "attack(Fingerprint(), table) for what would remove them, or say floor='report' (--ignore-floor) to "
            "judge the given attacks alone"
        )


def floor_notes(tolerance: Any, floor: float) -> tuple[str, ...]:
    """Say that the floor lies above the tolerance, where that was not refused."""
    least = _least(tolerance, floor)
    if least is None:
        return ()
    return (
        f"judged by the given attacks alone: whoever looks at all that leaves unmasked finds {floor:.2%} of the "
        f"records judged whatever the noise, which allows {least}",
    )


def _least(tolerance: Any, floor: float) -> str | None:
    """Say the least figure that the floor allows, where that is above the tolerance."""
    match tolerance:
        case MaxRate() if floor > tolerance.max_rate:
            return f"no rate below {floor:.4g}"
        case Ratio() if floor > tolerance.max_ratio * (1 - floor):
            return "no link to be wrong" if floor == 1 else f"no ratio below {floor / (1 - floor):.4g}"
        case ProbH() if floor > tolerance.at_most:
            return f"no share below {floor:.4g}"
    return None

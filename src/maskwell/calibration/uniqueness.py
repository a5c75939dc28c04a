"""The share of records that no noise protects, and what it means for a tolerance.

The fingerprint floor of `attacks.fingerprint`, over the targets that are judged: no scale has a smaller expected rate.
Asked by `calibrate` before any noise is drawn.
"""

from __future__ import annotations

from typing import Any

from ..attacks.fingerprint import floor_of
from ..errors import BadPlan
from ..notes import Note
from ..tolerances import MaxRate, ProbH, Ratio
from ..words.calibration import least_phrase
from .measures import ALL, count_links
from .outlier_share import columns_of
from .trials import Bench

TARGETS = ("largest_target_block", "target_blocks", "targets", "response_knowledge")


def is_certain(mask: Any, table: Any) -> bool:
    """Whether the floor is the same at every scale: of values that noise spares more of it may cover some."""
    return not floor_of(mask, table).sure_floor.spared


def fingerprint_floor(bench: Bench, mask: Any) -> float:
    """Return the share of the judged records whose fingerprint is theirs alone, whatever the size of the noise.

    Of intruders with different targets, or who judge another tenth of them, the one with the largest share counts.
    """
    plans = list(bench.plans.values()) if isinstance(bench.plans, dict) else bench.plans
    pairs = [(plan, None) for plan in plans] if bench.over == ALL else _outlying_by(bench, mask)
    kinds = {str([by, *(getattr(plan, name, None) for name in TARGETS)]): (plan, by) for plan, by in pairs}
    return max(_share(bench, mask, plan, columns) for plan, columns in kinds.values())


def _outlying_by(bench: Bench, mask: Any) -> list[tuple[Any, tuple[str, ...] | None]]:
    """Return the intruders who can work on such a release, and by which columns each tells who lies far out."""
    masking, risks = next(bench.drawn(mask, "floor", 1))
    return [(risk.attack, columns_of(risk, masking.release.table)) for risk in risks.values()]


def _share(bench: Bench, mask: Any, plan: Any, outlying_by: tuple[str, ...] | None) -> float:
    risk = floor_of(mask, bench.table, plan)
    if bench.over == ALL:
        return float(risk.rate)
    found = count_links(risk, bench.table, bench.over, outlying_by)
    released = 1.0 if risk.among_released else mask.card(bench.table).subsampled or 1.0
    return released * found.correct / found.targets  # who is alone in the file is so in every sample


def check_floor(tolerance: Any, floor: float, *, certain: bool = True) -> None:
    """Refuse a tolerance that lies below what no noise protects."""
    least = _least(tolerance, floor)
    if least is not None and certain:
        raise BadPlan(
            f"no noise meets this tolerance ({tolerance}): {floor:.2%} of the records judged have a fingerprint of "
            f"their own (blocks, unmasked columns, missing or coded values), which allows {least_phrase(*least)}; see "
            "attack(Fingerprint(), table) for what would remove them, or say floor='report' (--ignore-floor) to "
            "judge the given attacks alone"
        )


def floor_notes(tolerance: Any, floor: float) -> tuple[Note, ...]:
    """Say that the floor lies above the tolerance, where that was not refused."""
    least = _least(tolerance, floor)
    if least is None:
        return ()
    kind, figure = least
    return (Note("calibration.floor", {"floor": floor, "kind": kind, "least": figure}),)


def _least(tolerance: Any, floor: float) -> tuple[str, float | None] | None:
    """Return the kind of figure and the least that the floor allows, where that is above the tolerance.

    It has no figure where no link can be wrong.
    """
    match tolerance:
        case MaxRate() if floor > tolerance.max_rate:
            return "rate", floor
        case Ratio() if floor > tolerance.max_ratio * (1 - floor):
            return "ratio", None if floor == 1 else floor / (1 - floor)
        case ProbH() if floor > tolerance.at_most:
            return "share", floor
    return None

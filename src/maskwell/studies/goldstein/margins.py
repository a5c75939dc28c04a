"""Means of fits, and margins that are meant for a number of files."""

from __future__ import annotations

from ...table import Floats
from ..conclusions import FAILS, HOLDS, UNDECIDED, StudyEstimate, estimate, judge_margin

OURS = "ours"
TENTH = 0.1  # of a slope of 1: valid, or not; of an error: the same, or not


def mean_of(values: Floats) -> StudyEstimate:
    """Estimate a mean of fits: they are never all alike, so that their spread is error enough."""
    return estimate(values, 0.0)


def near(values: Floats, target: float, margin: float, files: int) -> str:
    """Judge whether a mean is what it should be, within a margin that is meant for so many files.

    Fewer files can show that it is not, but not that it is.
    """
    if len(values) < files:
        outcome = judge_margin([mean_of(values)], target - margin, target + margin)
        return FAILS if outcome == FAILS else UNDECIDED
    return HOLDS if abs(float(values.mean()) - target) <= margin else FAILS

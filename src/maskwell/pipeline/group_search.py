"""The search for noise where a group is dropped: one record at a time must find so little that groups find no more.

Who knows a whole group finds more than who knows one record, by a factor that the noise changes too. Let a be the rate
of one record at a time that noise is searched for, s(a) the weakest noise found, and g(s) the largest rate at which who
knows whole groups is within the tolerance under s. Wanted is the largest a with a <= g(s(a)). The first a is g of the
noise in the plan; then halves of the way, on the log scale, between a and g(s(a)): stronger noise leaves companions
less to tell, so that g(s(a)) falls with a and the answer lies between the two.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from .noise_search import searched_noise
from .rehearsal import drawn_anew, quick_or_cheapest_risks
from .verdict import group_rate, tolerated_rate

if TYPE_CHECKING:
    from ..calibration import Calibration
    from .meet_tolerance import MaskingSetting

MOST_SEARCHES = 3  # each as long as a search without groups
NEAR = 1.15  # ratio of two rates that are not told apart by the draws of a search
AIMED = (
    "the noise was searched so that one record at a time finds at most {:.1%}: with the noise where the search began "
    "who knows whole groups would find more than one record at a time does"
)


@dataclass(frozen=True)
class _Search:
    """A search for noise: with which aim, what was found, and the rate that groups allow under that noise."""

    case: MaskingSetting
    calibration: Calibration
    notes: list[str]
    aim: float
    allowed: float

    @property
    def holds(self) -> bool:
        return self.calibration.met and self.aim <= self.allowed


def searched_for_groups(case: MaskingSetting) -> tuple[MaskingSetting, Calibration, list[str]]:
    """Search the weakest noise; where groups ask for less than the tolerance, that at which they are within it too."""
    most = tolerated_rate(case)
    allowed = group_rate_of(case) if most else None
    if allowed is None or not 0 < allowed < most:
        return case, *searched_noise(case)
    searches = list(_searches(case, allowed, most))
    held = [one for one in searches if one.holds]
    best = max(held, key=lambda one: one.aim) if held else min(searches, key=lambda one: one.aim)
    return best.case, best.calibration, [*best.notes, AIMED.format(best.aim)]


def _searches(case: MaskingSetting, aim: float, most: float) -> Iterator[_Search]:
    """Search with one aim after another, each between those that hold and those that do not."""
    low, high = 0.0, most
    for _ in range(MOST_SEARCHES):
        own = replace(case, aim=aim)
        found, notes = searched_noise(own)
        allowed = 0.0
        if found.met:
            mask = case.coded.whole(found.mask)
            allowed = group_rate_of(replace(own, mask=mask)) or 0.0
        search = _Search(own, found, notes, aim, allowed)
        yield search
        low, high = (aim, min(high, max(allowed, aim))) if search.holds else (max(low, allowed), aim)
        if low <= 0 or high <= NEAR * low:
            return
        aim = (low * high) ** 0.5


def group_rate_of(case: MaskingSetting) -> float | None:
    """Return what `group_rate` is by a draw of calibration's; nothing where no group is dropped."""
    groups = [column for column in case.table.schema.columns if "group" in column.roles and column.drop]
    if not groups:
        return None
    own = drawn_anew(case, 0)
    masking = own.drawn(own.mask)
    return group_rate(own, masking, quick_or_cheapest_risks(own, masking))

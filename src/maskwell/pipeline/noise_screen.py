"""First looks at a change: the weakest noise at which quick intruders and failed checks let two draws pass.

Who knows the law is among them where he takes about a second: noise that only the others let pass fails in rehearsals.

The scale is doubled until they do, then the way back is halved. All looks are counted against the draws that the plan's
budget has for advice (`Budget.rehearsals`), and enough of these is left for a whole rehearsal.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from ..errors import MaskwellError
from .progress import Stages
from .rehearsal import DRAWS, is_quickly_met, situation_of

if TYPE_CHECKING:
    from .candidates import Candidate
    from .meet_tolerance import MaskingSetting

LARGEST_FACTOR = 16.0  # on the scale: beyond it a release tells next to nothing
HALVINGS, SEARCH_DRAWS = 2, 2  # of the search by quick intruders
SCREEN = 0.35  # of a draw: a screen makes neither the slow attacks nor most of the audit
QUICK_SCREEN = 0.1  # of a draw: one that the quick intruders end makes no audit
RESERVE = 4  # draws that screens leave beside a whole rehearsal: two plans are given up with as many


@dataclass
class Purse:
    """How many draws of whole plans are left, by the plan's budget."""

    left: float
    all: float = 0.0

    @classmethod
    def of(cls, draws: float) -> Purse:
        """Return a full one."""
        return cls(draws, draws)

    def spend(self, draws: float) -> None:
        """Take so many draws out."""
        self.left -= draws

    @property
    def has_rehearsal(self) -> bool:
        """Whether a whole rehearsal is within it."""
        return self.left >= DRAWS

    @property
    def has_two(self) -> bool:
        """Whether two whole rehearsals are within it."""
        return self.left >= 2 * DRAWS

    @property
    def has_another(self) -> bool:
        """Whether enough is left to look for a second change once one passes: a half of all."""
        return self.left >= max(self.all / 2, DRAWS)

    @property
    def has_screen(self) -> bool:
        """Whether a screen leaves enough for a whole rehearsal, and for some that are given up before it."""
        return self.left >= DRAWS + RESERVE


@dataclass
class ScreenedChange:
    """A change with the weakest noise that its screens let pass (nothing: none did), and the draws they made.

    `is_cut` says that the budget ended the search.
    """

    candidate: Candidate
    factor: float | None
    draws: int = field(default=0)
    is_cut: bool = field(default=False)


def screen(
    case: MaskingSetting,
    candidate: Candidate,
    suspects: Collection[str],
    start: float,
    purse: Purse,
    tell: Callable[[int], None] | None = None,
) -> ScreenedChange:
    """Double the scale until the screens let two draws pass, then halve the way back."""
    aim = None if candidate.settles_groups else case.aim
    quiet, found = replace(case, stages=Stages(), aim=aim), ScreenedChange(candidate, None)

    def is_enough(factor: float) -> bool:
        own = candidate.at(factor, case.table)
        situation = situation_of(quiet, own.plan(case.plan), own.table(case.table))
        for number in range(SEARCH_DRAWS):
            met, is_audited = is_quickly_met(situation, number, suspects)
            purse.spend(SCREEN if is_audited else QUICK_SCREEN)
            found.draws += 1
            if tell is not None:
                tell(found.draws)
            if not met:
                return False
        return True

    try:
        if not candidate.has_scale:
            found.factor = 1.0 if is_enough(1.0) else None
            return found
        low, high = 0.0, start
        while high <= LARGEST_FACTOR and purse.has_screen and not is_enough(high):
            low, high = high, 2 * high
            if candidate.at(low, case.table).masks == candidate.at(high, case.table).masks:
                return found  # its scale ends there: changes at random that hide most
        if high > LARGEST_FACTOR or not purse.has_screen:
            found.is_cut = high <= LARGEST_FACTOR
            return found
        found.factor = high
        is_worth_it = (
            low >= 1.0 or purse.has_two
        )  # below the scale that was found noise may fail a whole rehearsal
        for _ in range(HALVINGS if low and is_worth_it else 0):
            middle = (low * found.factor) ** 0.5
            if is_enough(middle):
                found.factor = middle
            else:
                low = middle
    except MaskwellError:  # a scale that the masks or the file do not allow ends the search
        pass
    return found

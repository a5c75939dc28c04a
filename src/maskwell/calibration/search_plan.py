"""`Search`: on how many draws the risk over possible noise is estimated, and how a scale is searched by it.

One plan serves `calibrate`, `frontier` and `expected_risk`, so that their figures can be set side by side:
the same records judged, the same number of draws. What a verb does not use is refused there, not ignored.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

from ..errors import BadPlan, raise_all
from ..tolerances import is_real
from .bounds import Bound
from .measures import ALL
from .trials import over_problems, replicate_problems

if TYPE_CHECKING:
    from ..masking import Masking

LEVEL = 0.05  # the chance that a scale which exceeds the tolerance is confirmed
PRECISION = 0.02  # of the scale
DRAWS, DRAWS_PER_POINT = 20, 10  # of a scale that is searched, and of each point of a frontier
REFUSE, REPORT = "refuse", "report"
FLOORS = (REFUSE, REPORT)


@dataclass(frozen=True)
class Search:
    """How risk is estimated over possible noise, and how the weakest noise is searched.

    `over` is "all" targets or the "outlying" tenth of them. Each scale is judged on the same `replicates` draws (20, in
    a frontier 10). `calibrate` puts the scale found to `confirmations` fresh draws; `level` is the error that all its
    attempts share, `precision` that of the scale. `per_column` gives each column a scale of its own that makes the
    `objective` small: "total variance ratio", "IL1s" or a function of a masking; in a frontier it is the loss that is
    drawn. `bounds` are on utility: no interval of a named model widened by more than a share. A tolerance below the
    fingerprint floor is refused; `floor="report"` only reports it. `exact` leaves the law of the noise unrounded.
    """

    over: str = ALL
    replicates: int | None = None
    confirmations: int = 40
    precision: float = PRECISION
    level: float = LEVEL
    per_column: bool = False
    objective: str | Callable[[Masking], float] | None = None
    bounds: Sequence[Bound] = ()
    floor: str = REFUSE
    exact: bool = False

    def __post_init__(self) -> None:
        problems = _share_problems("precision", self.precision, 1.0) + _share_problems(
            "level", self.level, 0.5
        )
        if self.replicates is not None:
            problems += replicate_problems("replicates", self.replicates)
        problems += replicate_problems("confirmations", self.confirmations) + over_problems(self.over)
        if self.floor not in FLOORS:
            problems.append(f"floor is 'refuse' or 'report', not {self.floor!r}")
        raise_all(problems, BadPlan)

    def draws(self, usual: int = DRAWS) -> int:
        """Return how many draws each scale is judged on."""
        return usual if self.replicates is None else int(self.replicates)

    def check_unused(self, verb: str, used: Collection[str]) -> None:
        """Refuse what a verb would not look at."""
        changed = [one.name for one in fields(self) if getattr(self, one.name) != one.default]
        if unused := [name for name in changed if name not in used]:
            raise BadPlan(f"{verb} searches no scale: leave {', '.join(unused)} out of the Search")


def check_search(search: Any) -> Search:
    """Refuse what is no search."""
    if not isinstance(search, Search):
        raise BadPlan(f"search is a Search, such as calibration.Search(replicates=40), not {search!r}")
    return search


def _share_problems(name: str, value: Any, most: float) -> list[str]:
    if is_real(value) and 0 < value < most:
        return []
    return [f"{name} is a number between 0 and {most:g}, not {value!r}"]

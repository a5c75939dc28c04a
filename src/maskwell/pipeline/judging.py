"""Whether the tolerance holds: for each intruder that the plan names, by the figure that it is about."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ..attacks import Fingerprint, Risk, Risks
from ..calibration.judging import ALL, WORST_DECILE, check_has_h, counted, measure_of

if TYPE_CHECKING:
    from ..plan import ReleasePlan
    from ..table import Table

ROUNDING = 1e-9


@dataclass(frozen=True, slots=True)
class Standing:
    """One intruder against the tolerance: the figure it is about, and by how much that exceeds it (negative: met)."""

    name: str
    figure: float
    excess: float
    said: str

    @property
    def met(self) -> bool:
        """Whether the tolerance holds for him."""
        return self.excess <= ROUNDING


@dataclass(frozen=True)
class Judge:
    """The tolerance of a plan, and for whom it holds."""

    tolerance: Any
    held: tuple[str, ...]
    over: str
    truth: Table
    named: tuple[str, ...] = ()

    @classmethod
    def of(cls, plan: ReleasePlan, intruders: dict[str, Any], truth: Table) -> Judge:
        """Read it from a plan."""
        over = ALL if plan.tolerance.over == "all" else WORST_DECILE
        return cls(plan.tolerance.tolerance, plan.held(intruders), over, truth, plan.tolerance.intruders)

    def standings(self, risks: Risks) -> tuple[Standing, ...]:
        """Judge the intruders for whom the tolerance is to hold, the worst first; the refused ones are left out."""
        found = [self._standing(name, risks) for name in self.held if name in risks]
        return tuple(sorted(found, key=lambda one: -one.excess))

    def _standing(self, name: str, risks: Risks) -> Standing:
        """Judge one intruder by the worse of what a tolerance counts: after a swap his record and his values."""
        found = [self._one(name, risk) for risk in risks[name].counted]
        return max(found, key=lambda one: one.excess)

    def _one(self, name: str, risk: Risk) -> Standing:
        measure = measure_of(self.tolerance)
        check_has_h(name, risk, measure)
        counts = counted(risk, self.truth, self.over)
        top, bottom = measure.parts(counts)
        excess = float(measure.excess(np.asarray(top), np.asarray(bottom)))
        figure = top / bottom if bottom else float("inf") if top else 0.0
        whom = f"{measure.judged(counts):,} targets" + ("" if self.over == ALL else ", the most outlying")
        side = "at least" if measure.at_least else "at most"
        said = (
            f"{name}: {measure.name} {measure.shown(figure)} of {whom}; tolerated is {side} "
            f"{measure.shown(measure.limit)}"
        )
        return Standing(name, figure, excess, said)

    def worst(self, risks: Risks) -> Standing | None:
        """Return the intruder who exceeds the tolerance most."""
        return next(iter(self.standings(risks)), None)

    def met(self, risks: Risks) -> bool:
        """Whether the tolerance holds for all whom it is about; not where none of them could be tried."""
        standings = self.standings(risks)
        return bool(standings) and standings[0].met

    def reasons(self, risks: Risks) -> list[str]:
        """Say who exceeds the tolerance, and who could not be tried."""
        said = [one.said for one in self.standings(risks) if not one.met]
        said += [
            f"{name} is named in the tolerance and could not be tried"
            for name in self.named
            if name not in risks
        ]
        return said or ([] if self.standings(risks) else ["no intruder of the tolerance could be tried"])

    def hopeless(self, intruders: dict[str, Any], floor: float) -> bool:
        """Whether no noise can meet the tolerance, because one of its intruders looks at the fingerprint alone."""
        from ..calibration.floors import check_floor
        from ..errors import BadPlan

        if self.over != ALL or not any(isinstance(intruders[name], Fingerprint) for name in self.held):
            return False
        try:
            check_floor(self.tolerance, floor)
        except BadPlan:
            return True
        return False

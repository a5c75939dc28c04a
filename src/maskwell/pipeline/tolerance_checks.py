"""Whether the tolerance holds: for each intruder that the plan names, by the figure that it is about.

Where targets were sampled the unsafe end of the figure's 95% interval must meet the tolerance, not the figure. Who is
held to the tolerance and was not tried, or on a part of the targets that has no interval, is not judged: then the
tolerance is not met, whatever the others find.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ..attacks import Fingerprint, Risk, Risks
from ..attacks.risk import wilson
from ..attacks.targets import Quantiles
from ..calibration.estimates import figure_of
from ..calibration.measures import ALL, MeasureCounts, check_has_h, count_links, measure_of
from ..tolerances import ExpectedH, MaxRate

if TYPE_CHECKING:
    from ..attacks.bayes.matching_posterior.ceiling_bound import Ceiling
    from ..attacks.protocol import Attack
    from ..plan import ReleasePlan, TolerancePlan
    from ..table import Table

ROUNDING = 1e-9
ONE_SIDE, Z = 0.025, 1.959964  # of a 95% interval: the chance beyond one end, and the normal quantile there


@dataclass(frozen=True, slots=True)
class ToleranceStanding:
    """One intruder against the tolerance: the figure it is about, and by how much that exceeds it (negative: met).

    Where his targets are a sample, `end` is the unsafe end of the figure's interval, and the excess is about that.
    """

    name: str
    figure: float
    excess: float
    said: str
    end: float | None = None

    @property
    def met(self) -> bool:
        """Whether the tolerance holds for him."""
        return self.excess <= ROUNDING


@dataclass(frozen=True)
class Judge:
    """The tolerance of a plan, and for whom it holds.

    `waived` are those who need not be held to it: by a reason on record, because nobody knows as much (the ceiling), or
    because they have no figure of its kind.
    """

    tolerance: Any
    held: tuple[str, ...]
    over: str
    truth: Table
    waived: tuple[str, ...] = ()

    @classmethod
    def of(cls, plan: ReleasePlan, intruders: dict[str, Any], truth: Table) -> Judge:
        """Read it from a plan."""
        return cls.of_section(plan.tolerance, intruders, truth)

    @classmethod
    def of_section(cls, section: TolerancePlan, intruders: Mapping[str, Attack], truth: Table) -> Judge:
        """Read it from the [tolerance] of a plan."""
        usual = replace(section, intruders=()).held(intruders)
        waived = tuple(name for name in intruders if name not in usual)
        return cls(section.tolerance, section.held(intruders), section.over, truth, waived)

    def standings(self, risks: Risks) -> tuple[ToleranceStanding, ...]:
        """Judge the intruders for whom the tolerance is to hold, the worst first; who was not tried is left out."""
        found = [self._standing(name, risks) for name in self.held if name in risks]
        return tuple(sorted(found, key=lambda one: -one.excess))

    def _standing(self, name: str, risks: Risks) -> ToleranceStanding:
        """Judge one intruder by the worse of what a tolerance counts: after a swap his record and his values."""
        found = [self._one(name, risk) for risk in risks[name].counted]
        return max(found, key=lambda one: one.excess)

    def _one(self, name: str, risk: Risk) -> ToleranceStanding:
        measure = measure_of(self.tolerance)
        check_has_h(name, risk, measure)
        counts = count_links(risk, self.truth, self.over)
        top, bottom = measure.parts(counts)
        figure, end = figure_of(top, bottom), None
        whom = f"{measure.judged(counts):,} targets" + ("" if self.over == ALL else ", the most outlying")
        if risk.released_share is not None:
            whom += " in the release" if risk.among_released else ", released or not"
        if risk.interval is not None:
            top, bottom = _unsafe_end(self.tolerance, counts, risk.ceiling, risk.effective)
            end = figure_of(top, bottom)
            far = "little" if measure.at_least else "much"
            of = "; with all that can be known" if risk.ceiling is not None else " in a sample, of all"
            whom += f"{of} it may be as {far} as {measure.shown(end)} (95%)"
        excess = float(measure.excess(np.asarray(top), np.asarray(bottom)))
        side = "at least" if measure.at_least else "at most"
        said = (
            f"{name}: {measure.name} {measure.shown(figure)} of {whom}; tolerated is {side} "
            f"{measure.shown(measure.limit)}"
        )
        return ToleranceStanding(name, figure, excess, said, end)

    def worst(self, risks: Risks) -> ToleranceStanding | None:
        """Return the intruder who exceeds the tolerance most."""
        return next(iter(self.standings(risks)), None)

    def met(self, risks: Risks) -> bool:
        """Whether the tolerance holds for all of these whom it is about; not where there are none."""
        standings = self.standings(risks)
        return bool(standings) and standings[0].met

    def reasons(self, risks: Risks) -> list[str]:
        """Say who exceeds the tolerance."""
        return [one.said for one in self.standings(risks) if not one.met]

    def not_judged(self, risks: Risks) -> list[str]:
        """Say who is held to the tolerance and was not tried, or on a part of the targets without an interval.

        And who was tried, exceeds it, and is not held to it without a word on why.
        """
        untried = {name: risks.refused.get(name, "") for name in self.held if name not in risks}
        said = [
            f"{name} is held to the tolerance and was not tried" + (f": {why}" if why else "")
            for name, why in untried.items()
        ]
        said += [
            f"{name} is held to the tolerance and looked for {risks[name].targets:,} chosen records alone, which say "
            "nothing of the others: leave quantiles out of his targets"
            for name in self.held
            if name in risks and isinstance(risks[name].attack.targets, Quantiles)
        ]
        said += [
            f"{self._standing(name, risks).said}; he is not held to it: leave intruders out of [tolerance], or say why "
            "he does not count under [tolerance.not_held]"
            for name in risks
            if name not in self.held and name not in self.waived and not self._standing(name, risks).met
        ]
        said += [
            f"{name} is held to the tolerance, and what he finds is bounded for all targets together alone: give finer "
            'match_blocks, or a max_rate over "all"'
            for name in self.held
            if name in risks and risks[name].ceiling is not None and not self._bounds_judge
        ]
        said += [
            f"{name} is held to the tolerance, and after directed exchanges nothing bounds what can be found: leave "
            "him out of the intruders of [tolerance]"
            for name in self.held
            if name in risks
            and risks[name].his_record is not None
            and (risks[name].is_of_all_helpers or risks[name].ceiling is not None)
        ]
        return said

    @property
    def _bounds_judge(self) -> bool:
        """Whether a bound on the rate of all targets says whether the tolerance holds."""
        return isinstance(self.tolerance, MaxRate) and self.over == ALL

    def hopeless(self, intruders: dict[str, Any], floor: float) -> bool:
        """Whether no noise can meet the tolerance, because one of its intruders looks at the fingerprint alone."""
        from ..calibration.uniqueness import check_floor
        from ..errors import BadPlan

        if self.over != ALL or not any(isinstance(intruders[name], Fingerprint) for name in self.held):
            return False
        try:
            check_floor(self.tolerance, floor)
        except BadPlan:
            return True
        return False


def _unsafe_end(
    tolerance: Any, counts: MeasureCounts, ceiling: Ceiling | None = None, effective: float | None = None
) -> tuple[float, float]:
    """Return the parts of a figure as far on the unsafe side as the sample of targets lets that of all lie.

    A rate has Wilson's interval, as the risk shows it, a mean h the normal one; each other share that of its count.
    Where a bound on the ceiling stands in for it, as many links are right as the bound's upper end allows.
    """
    measure = measure_of(tolerance)
    if ceiling is not None:
        correct = max(counts.correct, ceiling.high * counts.targets)
        wrong = max(counts.correct + counts.incorrect - correct, 0.0)
        return measure.parts(replace(counts, correct=correct, incorrect=wrong))
    top, bottom = measure.parts(counts)
    end = measure.unsafe_end(top, bottom, float(measure.judged(counts)), ONE_SIDE)
    if isinstance(tolerance, MaxRate):
        return wilson(min(top, 1.0), counts.targets if effective is None else effective)[1], 1.0
    if isinstance(tolerance, ExpectedH) and counts.h is not None and len(counts.h) > 1:
        reach = Z * float(counts.h.std(ddof=1)) / len(counts.h) ** 0.5
        return max(min(end[0], top - reach), 0.0), 1.0
    return end

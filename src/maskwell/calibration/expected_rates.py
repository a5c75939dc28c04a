"""`expected_risk`: what intruders achieve on average over all possible noise of a mask, not on one release of it.

E(rate) by the mean over draws of the noise under calibration keys, with Student's interval, not narrower than the
pooled count allows (Clopper and Pearson 1934, in `estimates`). Called by the steward and by the commands.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from numbers import Integral
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import BadPlan
from ..keys import Key
from ..masking.protocol import is_mask
from ..notes import Note
from ..table import Table
from .estimates import Estimate
from .measures import ALL, Measure, MeasureCounts, below_measure, count_links, mean_h_measure, rate_measure
from .search_plan import Search, check_search
from .trials import Bench, check_key, check_plans, check_table

SEARCH = Search()

if TYPE_CHECKING:
    from ..attacks.protocol import Attacks
    from ..masking import Mask


@dataclass(frozen=True, slots=True)
class ExpectedFigures:
    """What one intruder achieves on average over the noise: rate, and of h (where he measures it) its distribution.

    `at_zero` is Pr(h = 0), `below` Pr(h < below_count), `expected_h` E(h), which is not to be read without `at_zero`.
    """

    rate: Estimate
    below_count: int
    at_zero: Estimate | None = None
    below: Estimate | None = None
    expected_h: Estimate | None = None

    def named(self) -> dict[str, Estimate]:
        """Return the figures there are by what they are."""
        figures = {
            "rate": self.rate,
            "Pr(h = 0)": self.at_zero,
            f"Pr(h < {self.below_count})": self.below,
            "E(h)": self.expected_h,
        }
        return {name: figure for name, figure in figures.items() if figure is not None}


class ExpectedRisk(Mapping[str, ExpectedFigures]):
    """Several intruders side by side, on average over the noise: a mapping from their names to their figures."""

    def __init__(
        self,
        mask: Any,
        over: str,
        replicates: int,
        figures: Mapping[str, ExpectedFigures],
        notes: tuple[Note, ...],
    ) -> None:
        self.mask, self.over, self.replicates, self.notes = mask, over, replicates, notes
        self._figures = dict(figures)

    def __getitem__(self, name: str) -> ExpectedFigures:
        return self._figures[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._figures)

    def __len__(self) -> int:
        return len(self._figures)

    @property
    def largest(self) -> ExpectedFigures:
        """The figures of the intruder with the highest rate."""
        return max(self._figures.values(), key=lambda figures: figures.rate.mean)

    def to_dict(self) -> dict[str, Any]:
        """Return figures only."""
        return {
            "mask": self.mask.to_dict(),
            "over": self.over,
            "replicates": self.replicates,
            "intruders": {
                name: {what: one.to_dict() for what, one in figures.named().items()}
                for name, figures in self.items()
            },
            "notes": [note.to_dict() for note in self.notes],
        }

    def __repr__(self) -> str:
        whom = "all targets" if self.over == ALL else "the most outlying tenth of the targets"
        lines = [
            f"Expected over the noise of {type(self.mask).__name__}, {self.replicates} draws, {whom}",
            f"  {'':<22}{'mean':>10}{'standard error':>16}{'95% interval':>22}",
        ]
        for name, figures in self.items():
            lines += [f"  {name}", *(_line(what, one) for what, one in figures.named().items())]
        return "\n".join([*lines, *(f"  - {note}" for note in self.notes)])


def _line(what: str, one: Estimate) -> str:
    interval = f"{one.low:.4f} to {one.high:.4f}"
    return f"    {what:<20}{one.mean:>10.4f}{one.se:>16.4f}{interval:>22}"


def expected_risk(
    mask: Mask,
    table: Table,
    attack: Attacks | None = None,
    *,
    below: int = 3,
    search: Search = SEARCH,
    key: Key | None = None,
    seed: int | None = None,
) -> ExpectedRisk:
    """Return what intruders achieve on average over possible noise, with Monte Carlo standard errors.

    `attack` is one plan or several (by default the nearest-record intruder, plain and informed); `below` is the p of
    Pr(h < p); `search` says over whom and on how many draws, which come from subkeys of the key that no release uses.
    """
    if not is_mask(mask):
        raise BadPlan(
            f"expected_risk needs a mask, such as CorrelatedNoise(columns, sd_ratio=0.3), not {mask!r}"
        )
    if not isinstance(below, Integral) or isinstance(below, bool) or below < 1:
        raise BadPlan(f"below is a whole number of at least 1, not {below!r}")
    check_search(search).check_unused("expected_risk", ("over", "replicates", "exact"))
    bench = Bench(
        table=check_table(table, "expected_risk"),
        plans=check_plans(attack),
        key=check_key(key, seed),
        measure=rate_measure(),
        over=search.over,
        exact=search.exact,
    )
    count, over = search.draws(), search.over
    found: dict[str, list[MeasureCounts]] = {}
    refused: dict[str, str] = {}
    for _, risks in bench.drawn(mask, "expected", count):
        refused |= risks.refused
        for name, risk in risks.items():
            found.setdefault(name, []).append(count_links(risk, table, over))
    figures = {name: _figures(counts, int(below)) for name, counts in found.items()}
    notes = [
        Note("calibration.refused_intruder", {"name": name, "reason": why}) for name, why in refused.items()
    ]
    return ExpectedRisk(mask, over, count, figures, tuple(notes))


def _figures(counts: list[MeasureCounts], below: int) -> ExpectedFigures:
    rate = _estimate(rate_measure(), counts)
    if any(one.h is None or not len(one.h) for one in counts):
        return ExpectedFigures(rate, below)
    return ExpectedFigures(
        rate,
        below,
        at_zero=_estimate(below_measure(1), counts),
        below=_estimate(below_measure(below), counts),
        expected_h=_estimate(mean_h_measure(), counts),
    )


def _estimate(measure: Measure, counts: list[MeasureCounts]) -> Estimate:
    parts = np.array([(*measure.parts(one), measure.judged(one)) for one in counts])
    return measure.estimate(*parts.T)

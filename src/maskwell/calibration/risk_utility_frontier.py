"""`frontier`: risk against utility loss for several masks, each at several scales.

The risk-utility map (Duncan, Keller-McNulty and Stokes 2001): a point is on the frontier where no other has less of
both. All points are of the same draws (`trials`), so that differences are told apart with few of them. Called by the
steward and by the command.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import inf
from pathlib import Path
from textwrap import wrap
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import BadPlan
from ..keys import Key
from ..masking.protocol import is_mask
from ..notes import Note, texts
from ..table import Table
from ..tolerances import is_real
from .estimates import Estimate
from .losses import IL1S, loss_of
from .measures import Measure, measure_of, rate_measure
from .scale import has_scale, largest_factor, scale_mask, scale_words, writable
from .search_plan import DRAWS_PER_POINT, Search, check_search
from .trials import (
    Bench,
    Progress,
    Trial,
    check_key,
    check_plans,
    check_table,
)

if TYPE_CHECKING:
    import pyarrow as pa
    from matplotlib.figure import Figure

    from ..attacks.protocol import Attacks
    from ..masking import Mask
    from ..tolerances import Tolerance

SEARCH = Search()
GRID = (0.25, 0.5, 1.0, 2.0, 4.0)  # factors on the scale of each mask
LEVEL = 0.05  # of the Monte Carlo error that is allowed for
MOST_LINES = 24


@dataclass(frozen=True, eq=False)
class FrontierPoint:
    """One mask at one scale: the figure of the worst intruder and the utility loss, each with its standard error."""

    name: str
    trial: Trial
    loss: Estimate
    on_frontier: bool = False

    @property
    def risk(self) -> Estimate:
        """The judged figure of the worst intruder."""
        return self.trial.figure


@dataclass(frozen=True, eq=False)
class Frontier:
    """Risk against utility loss. `chosen` is the point of least loss that meets the tolerance, if one was given.

    A point is on the frontier when no other has less of both. The chosen point was chosen because it came out well:
    confirm it by `calibrate`.
    """

    points: tuple[FrontierPoint, ...]
    measure: Measure
    loss_name: str
    over: str
    tolerance: Tolerance | None = None
    chosen: FrontierPoint | None = None
    notes: tuple[Note, ...] = ()

    @property
    def table(self) -> pa.Table:
        """One row for each mask and scale."""
        import pyarrow as pa

        points = self.points
        columns: dict[str, list[Any]] = {
            "mask": [p.name for p in points],
            "factor": [p.trial.factor for p in points],
            "scale": [scale_words(p.trial.mask) for p in points],
            "risk": [p.risk.mean for p in points],
            "risk_se": [p.risk.se for p in points],
            "loss": [p.loss.mean for p in points],
            "loss_se": [p.loss.se for p in points],
            "at_zero": [p.trial.at_zero for p in points],
            "on_frontier": [p.on_frontier for p in points],
            "chosen": [p is self.chosen for p in points],
        }
        for name in dict.fromkeys(name for p in points for name in p.trial.names):
            columns[name] = [p.trial.figures[name].mean if name in p.trial.names else None for p in points]
        return pa.table(columns)

    def to_dict(self) -> dict[str, Any]:
        """Return figures only: no record."""
        return {
            "figure": self.measure.name,
            "loss": self.loss_name,
            "over": self.over,
            "tolerance": None if self.tolerance is None else self.tolerance.to_dict(),
            "points": [_plain(point) for point in self.points],
            "chosen": None if self.chosen is None else _plain(self.chosen),
            "notes": [note.to_dict() for note in self.notes],
        }

    def figure(self) -> Figure:
        """Return the picture: risk against loss, one line a mask, the chosen point marked."""
        from .pictures import frontier_picture

        return frontier_picture(self)

    def plot(self, path: str | Path) -> Path:
        """Write the picture to a file (PNG, SVG or PDF)."""
        from ..figure_style import save

        return save(self.figure(), Path(path))

    def __repr__(self) -> str:
        return "\n".join(self.lines())

    def lines(self) -> list[str]:
        """Return what fits on one screen; of many points those on the frontier."""
        names = list(dict.fromkeys(point.name for point in self.points))
        shown = self.points if len(self.points) <= MOST_LINES else [p for p in self.points if p.on_frontier]
        width = max([len(point.name) for point in shown] + [4])
        words = {id(p): scale_words(p.trial.mask) or "no scale" for p in shown}
        wide = max(map(len, words.values()))
        lines = [
            f"Frontier: {len(names)} masks, {len(self.points)} scales; * on the frontier{self._whose()}",
            f"    {'mask':<{width}}  {'scale':<{wide}}  {self.measure.name:>22}  {self.loss_name:>12}",
        ]
        for point in shown:
            mark = ">" if point is self.chosen else " "
            star = "*" if point.on_frontier else " "
            risk = self.measure.shown(point.risk.mean)
            risk += f" (Pr(h = 0) {point.trial.at_zero:.1%})" if self.measure.at_least else ""
            lines.append(
                f"  {mark}{star}{point.name:<{width}}  {words[id(point)]:<{wide}}  {risk:>22}  {point.loss.mean:>12.4f}"
            )
        said = [
            line
            for n in self.notes
            for line in wrap(str(n), 100, initial_indent="  - ", subsequent_indent="    ")
        ]
        return [*lines, *said]

    def _whose(self) -> str:
        several = any(len(point.trial.names) > 1 for point in self.points)
        return "; of the worst intruder in each draw" if several else ""


def _plain(point: FrontierPoint) -> dict[str, Any]:
    return {
        "mask": point.name,
        "plan": point.trial.mask.to_dict(),
        **point.trial.to_dict(),
        "loss": point.loss.to_dict(),
        "on_frontier": point.on_frontier,
    }


def frontier(
    masks: Mask | Sequence[Mask] | Mapping[str, Mask],
    table: Table,
    attacks: Attacks | None = None,
    grid: Sequence[float] = GRID,
    *,
    tolerance: Tolerance | None = None,
    search: Search = SEARCH,
    key: Key | None = None,
    seed: int | None = None,
    progress: Progress | None = None,
) -> Frontier:
    """Return risk and utility loss of several masks at several scales, over the same draws of the noise.

    `masks` is a plan, several, or a mapping of names to plans; `grid` are factors on the scale of each; a mask
    without a free scale is one point. The risk is the figure that `tolerance` looks at (else the rate of correct
    links) of the worst of `attacks` (by default the nearest-record intruder, plain and informed), over the targets and
    on the draws that `search` says; the loss is its `objective` ("IL1s" by default). With a tolerance the point of
    least loss whose figure lies within it, Monte Carlo error allowed for, is the chosen one.
    """
    named = _masks_by_name(masks)
    factors = _factors(grid)
    check_search(search).check_unused("frontier", ("over", "replicates", "objective", "exact"))
    measured = loss_of(search.objective or IL1S)
    bench = Bench(
        table=check_table(table, "frontier"),
        plans=check_plans(attacks),
        key=check_key(key, seed),
        measure=rate_measure() if tolerance is None else measure_of(tolerance),
        over=search.over,
        loss=measured,
        exact=search.exact,
        progress=progress,
    )
    count = search.draws(DRAWS_PER_POINT)
    points, notes = list[FrontierPoint](), list[Note]()
    for name, mask in named.items():
        found, said = _line_of(bench, name, mask, factors, count)
        points += found
        notes += said
    if not points:
        raise BadPlan(list(texts(notes)) or ["there is no mask in the list"])
    marked = _on_frontier(points, bench.measure.at_least)
    chosen = _least_loss_point(marked) if tolerance is not None else None
    notes += [
        Note(
            "calibration.unattacked_mask", {"mask": p.name, "intruder": who, "reason": " ".join(why.split())}
        )
        for p in points
        for who, why in p.trial.refused.items()
    ]
    notes += _notes(tolerance, chosen)
    return Frontier(
        tuple(marked),
        bench.measure,
        measured.name,
        bench.over,
        tolerance,
        chosen,
        tuple(dict.fromkeys(notes)),
    )


def _masks_by_name(masks: Any) -> dict[str, Mask]:
    if isinstance(masks, Mapping):
        named = {str(name): mask for name, mask in masks.items()}
    else:
        listed = list(masks) if isinstance(masks, list | tuple) else [masks]
        kinds = [type(mask).__name__ for mask in listed]
        numbered = [
            f"{k} {kinds[: i + 1].count(k)}" if kinds.count(k) > 1 else k for i, k in enumerate(kinds)
        ]
        named = dict(zip(numbered, listed, strict=True))
    wrong = [mask for mask in named.values() if not is_mask(mask)]
    if wrong or not named:
        what = f"{wrong[0]!r} is no mask" if wrong else "there is no mask in the list"
        raise BadPlan(f"{what}: frontier takes plans such as CorrelatedNoise(columns, sd_ratio=0.3)")
    return named


def _factors(grid: Any) -> list[float]:
    listed = list(grid) if isinstance(grid, Sequence | np.ndarray) and not isinstance(grid, str) else [grid]
    if not listed or not all(is_real(factor) and 0 < factor < inf for factor in listed):
        raise BadPlan(f"grid is a list of positive factors on the scale, such as [0.5, 1, 2], not {grid!r}")
    return sorted({float(factor) for factor in listed})


def _line_of(
    bench: Bench, name: str, mask: Mask, factors: list[float], replicates: int
) -> tuple[list[FrontierPoint], list[Note]]:
    """Try a mask at all scales that its plan allows; say which it refuses."""
    if not has_scale(mask):
        return [_point(name, bench.run(mask, 1.0, "frontier", replicates))], []
    largest = largest_factor(mask, bench.table)
    points, notes = list[FrontierPoint](), list[Note]()
    for factor in [one for one in factors if one <= largest]:
        try:
            plan = writable(scale_mask(mask, factor, bench.table))
            bench.resolved(plan)
        except BadPlan as refusal:
            figures = {"mask": name, "factor": factor, "reason": refusal.problems[0]}
            notes.append(Note("calibration.refused_scale", figures))
            continue
        points.append(_point(name, bench.run(plan, factor, "frontier", replicates)))
    if any(factor > largest for factor in factors):
        notes.append(Note("calibration.largest_growth", {"mask": name, "factor": largest}))
    return points, notes


def _point(name: str, trial: Trial) -> FrontierPoint:
    assert trial.losses is not None
    return FrontierPoint(name, trial, Estimate.of(trial.losses))


def _on_frontier(points: list[FrontierPoint], at_least: bool) -> list[FrontierPoint]:
    """Mark the points that no other undercuts in both risk and loss."""
    sign = -1.0 if at_least else 1.0
    pairs = np.array([(sign * point.risk.mean, point.loss.mean) for point in points])
    out = []
    for point, pair in zip(points, pairs, strict=True):
        beaten = ((pairs <= pair).all(axis=1) & (pairs < pair).any(axis=1)).any()
        out.append(FrontierPoint(point.name, point.trial, point.loss, not beaten))
    return out


def _least_loss_point(points: list[FrontierPoint]) -> FrontierPoint | None:
    """Return the point of least loss that meets the tolerance, Monte Carlo error allowed for, before all intruders."""
    able = [point for point in points if not point.trial.refused and point.trial.bound(LEVEL) <= 0]
    return min(able, key=lambda point: point.loss.mean, default=None)


def _notes(tolerance: Tolerance | None, chosen: FrontierPoint | None) -> list[Note]:
    if tolerance is None:
        return []
    code = "calibration.no_point" if chosen is None else "calibration.chosen_point"
    return [Note(code, {"tolerance": str(tolerance)})]
